//! The order of the modules of this crate.

use ns_testkit::layers::assert_order;
use std::path::Path;

/// The layers from the bottom to the top, as in the documentation of the crate.
const LAYERS: &[&[&str]] = &[
    &["clip", "hint", "memory_files", "message", "not_representable", "place", "whole_file"],
    &["text", "source"],
    &["json"],
    &["xml", "yaml"],
    &["digest", "fits", "kind", "number_table", "points", "toys"],
    &["document_text"],
    &["combine", "histfactory", "patch", "pyhf"],
    &["hs3", "patchset", "workspace", "xml_origin"],
    &["error"],
    // The entry points.
    &["format"],
    &["convert", "load"],
];

#[test]
fn modules_import_only_lower_layers() {
    assert_order(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), LAYERS, |name| Some(name));
}
