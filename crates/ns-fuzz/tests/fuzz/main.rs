//! The short fuzz run: a fixed number of damaged documents with a fixed seed. `make fuzz` runs the
//! same functions for any time.
//!
//! A failure prints the document: add it to the seeds in `testdata/fuzz`, and fix the code.

use ns_fuzz::FuzzStage;
use ns_fuzz::mutate::mutate;
use ns_testkit::random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Inputs per kind of document: workspaces, patches, patch sets, correlation maps.
const INPUTS: [usize; 4] = [30_000, 10_000, 10_000, 10_000];

fn seeds(kind: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fuzz").join(kind);
    let entries = std::fs::read_dir(&folder).expect("a folder of seeds");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a readable seed")).collect()
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
fn no_correlation_map_violates_an_invariant() {
    let reached = run("map", INPUTS[3], ns_fuzz::map);
    assert!(
        reached[FuzzStage::Compiled as usize] > INPUTS[3] / 10,
        "too few of the mutations are combined: {reached:?}"
    );
    assert!(reached[FuzzStage::Read as usize] > 100, "too few of the mutations do not fit the workspaces: {reached:?}");
}
