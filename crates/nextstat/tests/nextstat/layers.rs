//! The order of the modules of the facade.

use ns_testkit::layers::assert_order;
use std::path::Path;

/// The layers from the bottom to the top.
const LAYERS: &[&[&str]] = &[
    &[
        "blinding",
        "bootstrap",
        "cancel",
        "fit_counts",
        "freed_memory",
        "jobs",
        "number",
        "replicas",
        "sample_groups",
        "schema",
        "stored",
    ],
    &["data_sets", "document"],
    &["error"],
    &["device", "settings"],
    &["model", "regions"],
    &["analysis"],
    &["provenance", "stored_point"],
    &["answer", "check", "evaluate", "exclusion"],
    &["pois"],
    &["comparison", "curves", "fit", "hypothesis", "patchsets", "ranking", "toys"],
    &["combination", "limit_scan", "scanner", "signal_search", "simplify"],
    &["fits", "goodness", "intervals", "toy_tests", "yields"],
    &["coverage", "projection", "tables", "toy_limits"],
    &["full_report"],
    &["alarm"],
];

/// The modules of what the crate's root exports.
fn home(name: &str) -> &str {
    match name {
        "Analysis" => "analysis",
        "Answer" | "Document" => "answer",
        "Error" | "Face" | "Hint" => "error",
        "FitRequest" => "fit",
        "CompiledModel" => "model",
        "Provenance" => "provenance",
        "DataSource" | "Settings" => "settings",
        module => module,
    }
}

#[test]
fn modules_import_only_lower_layers() {
    assert_order(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), LAYERS, |name| Some(home(name)));
}
