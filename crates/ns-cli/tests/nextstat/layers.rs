//! The order of the modules of the command.

use ns_testkit::layers::assert_order;
use std::path::Path;

/// The layers from the bottom to the top.
const LAYERS: &[&[&str]] = &[&["status"], &["error"], &["output"], &["args"], &["verbs"], &["usage"]];

/// Items of the crate's root.
const ROOT: &[&str] = &["command_line", "exit_code", "parsed_words", "UNUSABLE"];

#[test]
fn modules_import_only_lower_layers() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_order(&src, LAYERS, |name| Some(name).filter(|name| !ROOT.contains(name)));
}
