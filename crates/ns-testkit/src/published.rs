//! Where published likelihoods with reference numbers are, if they are there: beside the repository, never in it.

use std::path::PathBuf;

/// The folder `name` of the published data; where it is absent, says that the test which asks is skipped.
#[must_use]
pub fn folder(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).join(name);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no published data in {}", path.display());
    None
}
