//! Checks of Combine's data cards.

use std::path::Path;

use ns_translate::{CardOptions, DocumentSource, read_document_with};

use crate::{FuzzStage, evaluate, refused};

/// Reads `data` as a data card next to the templates of the tests, and returns the stage that it
/// reaches.
pub fn card(data: &[u8]) -> FuzzStage {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/combine");
    // Whatever it is, it is read as a card.
    let text = [b"jmax *\n", data].concat();
    let options = CardOptions { mass: Some(125.0), ..CardOptions::default() };
    match read_document_with(&text, &DocumentSource::Path(folder.join("card.txt")), &options) {
        Ok(read) => evaluate(&read.workspace),
        Err(error) => refused(error),
    }
}
