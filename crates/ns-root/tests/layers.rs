//! The order of the modules of this crate.

use ns_testkit::layers::assert_order;
use std::path::Path;

/// The layers from the bottom to the top.
const LAYERS: &[&[&str]] = &[
    &["cursor", "error", "limits", "output", "zstandard"],
    &["compression", "histogram", "key", "layouts", "source"],
    &["directory", "write_histogram"],
    &["file", "writer"],
];

#[test]
fn modules_import_only_lower_layers() {
    assert_order(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), LAYERS, |name| Some(name));
}
