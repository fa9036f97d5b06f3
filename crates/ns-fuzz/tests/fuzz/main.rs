//! The short fuzz run: a fixed number of damaged documents with a fixed seed. `make fuzz` runs the
//! same functions for any time.
//!
//! A failure prints the document: add it to the seeds in `testdata/fuzz`, and fix the code.

use ns_fuzz::FuzzStage;
use ns_fuzz::mutate::mutate;
use ns_testkit::random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Inputs per kind of document: workspaces, patches, patch sets, correlation maps, XML, ROOT files,
/// data cards, HS3 documents.
const INPUTS: [usize; 8] = [30_000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000];

/// Seeds that are larger make the run slow.
const SEED_LIMIT: usize = 30_000;

fn seeds(kind: &str) -> Vec<Vec<u8>> {
    match kind {
        "xml" => [seeds_in("histfactory", Some("xml")), seeds_in("histfactory/channels", Some("xml"))].concat(),
        "card" => seeds_in("../examples/combine", Some("txt")),
        "hs3" => [seeds_in("hs3/written", Some("json")), seeds_in("hs3/root", Some("json"))].concat(),
        "root_file" => seeds_in("root", Some("root")),
        kind => seeds_in(&format!("fuzz/{kind}"), None),
    }
}

/// Returns the files of a folder of the test data, with one extension if it is given.
fn seeds_in(folder: &str, extension: Option<&str>) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(folder);
    let entries = std::fs::read_dir(&folder).expect("a folder of seeds");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| extension.is_none_or(|wanted| path.extension().is_some_and(|found| found == wanted)));
    paths.sort();
    let seeds = paths.iter().map(|path| std::fs::read(path).expect("a readable seed"));
    seeds.filter(|seed| seed.len() < SEED_LIMIT).collect()
}

/// Runs `body` on the seeds and on `inputs` mutations of them, and returns how many end at each
/// stage.
fn run(kind: &str, inputs: usize, body: fn(&[u8]) -> FuzzStage) -> [usize; 4] {
    let seeds = seeds(kind);
    let mut random = Random::new(20_260_101);
    let mut reached = [0; 4];
    let mutations = (0..inputs).map(|_| mutate(&seeds, &mut random));
    for data in seeds.iter().cloned().chain(mutations) {
        match catch_unwind(AssertUnwindSafe(|| body(&data))) {
            Ok(stage) => reached[stage as usize] += 1,
            Err(cause) => {
                eprintln!("offending {kind}:\n{}", String::from_utf8_lossy(&data));
                std::panic::resume_unwind(cause);
            }
        }
    }
    println!("{kind}: {reached:?} refused, read, compiled, fitted");
    reached
}

#[test]
fn no_workspace_violates_an_invariant() {
    let reached = run("workspace", INPUTS[0], ns_fuzz::workspace);
    assert!(reached[FuzzStage::Fitted as usize] > INPUTS[0] / 10, "too few of the mutations reach a fit: {reached:?}");
}

#[test]
fn no_patch_violates_an_invariant() {
    let reached = run("patch", INPUTS[1], ns_fuzz::patch);
    assert!(reached[FuzzStage::Fitted as usize] > INPUTS[1] / 10, "too few of the mutations reach a fit: {reached:?}");
}

#[test]
fn no_patch_set_violates_an_invariant() {
    let reached = run("patchset", INPUTS[2], ns_fuzz::patchset);
    assert!(reached[FuzzStage::Fitted as usize] > INPUTS[2] / 10, "too few of the mutations reach a fit: {reached:?}");
}

#[test]
fn no_hs3_document_violates_an_invariant() {
    let reached = run("hs3", INPUTS[7], ns_fuzz::hs3);
    assert!(reached[FuzzStage::Fitted as usize] > INPUTS[7] / 10, "too few of the mutations reach a fit: {reached:?}");
}

#[test]
fn no_histfactory_xml_violates_an_invariant() {
    let reached = run("xml", INPUTS[4], ns_fuzz::xml);
    assert!(reached[FuzzStage::Fitted as usize] > INPUTS[4] / 20, "too few of the mutations reach a fit: {reached:?}");
}

#[test]
fn no_data_card_violates_an_invariant() {
    let reached = run("card", INPUTS[6], ns_fuzz::card);
    assert!(reached[FuzzStage::Fitted as usize] > INPUTS[6] / 20, "too few of the mutations reach a fit: {reached:?}");
}

#[test]
fn no_root_file_violates_an_invariant() {
    let reached = run("root_file", INPUTS[5], ns_fuzz::root_file);
    assert!(reached[FuzzStage::Compiled as usize] > INPUTS[5] / 4, "too few histograms are read: {reached:?}");
}

#[test]
fn no_correlation_map_violates_an_invariant() {
    let reached = run("map", INPUTS[3], ns_fuzz::map);
    assert!(
        reached[FuzzStage::Compiled as usize] > INPUTS[3] / 10,
        "too few of the mutations are combined: {reached:?}"
    );
    assert!(reached[FuzzStage::Read as usize] > 100, "too few of the mutations do not fit the workspaces: {reached:?}");
}
