//! Checks of Combine's data cards.

use std::path::Path;

use ns_translate::{CardOptions, DocumentSource, ReadRequest, read_document_with};

use crate::{FuzzStage, evaluate, refused};

/// Reads `data` as a data card next to the templates of the examples, and returns the stage that it
/// reaches.
pub fn card(data: &[u8]) -> FuzzStage {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/combine");
    // Whatever it is, it is read as a card.
    let text = [b"jmax *\n", data].concat();
    let options = CardOptions { mass: Some(125.0), ..CardOptions::default() };
    let origin = DocumentSource::Path(folder.join("card.txt"));
    let request = ReadRequest { card: Some(&options), ..ReadRequest::new(&origin) };
    match read_document_with(&text, &request) {
        Ok(read) => evaluate(&read.workspace),
        Err(error) => refused(error),
    }
}
