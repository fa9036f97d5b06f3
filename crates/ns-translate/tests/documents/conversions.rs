//! Workspaces in the format that holds every model.

use std::path::Path;

use ns_core::spec::Workspace;
use ns_testkit::random::{Shape, workspace};
use ns_translate::{DocumentSource, KeptKeys, LoadRequest, TargetFormat, convert, full_message, load, read_document};

fn assert_is_kept(workspace: &Workspace, place: &str) {
    let written = convert(workspace, &KeptKeys::default(), TargetFormat::Extended);
    let written = written.unwrap_or_else(|error| panic!("{place}: {error}"));
    let read = read_document(written.text.as_bytes(), &DocumentSource::Stdin);
    let read = read.unwrap_or_else(|error| panic!("{place}: {}", full_message(&error)));
    assert_eq!(read.workspace, *workspace, "{place}");
    assert!(written.warnings.is_empty() && written.files.is_empty(), "{place}");
}

/// Hints say that this format writes every model.
#[test]
fn the_extended_format_holds_every_random_workspace() {
    for (name, shape) in [("small", Shape::SMALL), ("rules of yields", Shape::YIELD_RULES), ("pyhf", Shape::PYHF)] {
        for seed in 0..100 {
            assert_is_kept(&workspace(seed, shape), &format!("{name}, seed {seed}"));
        }
    }
}

#[test]
fn the_extended_format_holds_formulas_and_the_terms_of_other_formats() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let models = std::fs::read_dir(root.join("testdata/hs3/models")).expect("a folder");
    let models = models.map(|entry| entry.expect("readable").path());
    for path in models.chain(["eft", "simple", "shapes"].map(|name| root.join(format!("examples/{name}.json")))) {
        let read = load(&LoadRequest::new(DocumentSource::Path(path.clone())));
        assert_is_kept(&read.unwrap_or_else(|error| panic!("{}", full_message(&error))), &path.display().to_string());
    }
}
