//! Every committed PTX was made from the sources that are committed with it.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The value of `key: value;` in a PTX's first line.
fn field<'a>(line: &'a str, key: &str) -> &'a str {
    let marker = format!("{key}: ");
    let value = line.split_once(&marker).unwrap_or_else(|| panic!("`{key}` in `{line}`")).1;
    value.split(';').next().expect("split gives one item").trim()
}

fn committed(crates: &Path) -> Vec<PathBuf> {
    let folders = crates.read_dir().expect("the crates").flatten().map(|entry| entry.path().join("kernels"));
    let files = folders.filter_map(|folder| folder.read_dir().ok()).flat_map(Iterator::flatten);
    files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|extension| extension == "ptx")).collect()
}

#[test]
fn ptx_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = committed(&root.join("crates"));
    assert!(files.len() >= 2, "ns-device's own, at least");
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a text");
        let line = text.lines().next().unwrap_or_default();
        let mut digest = Sha256::new();
        for source in field(line, "sources").split(' ') {
            digest.update(std::fs::read(root.join(source)).unwrap_or_else(|error| panic!("{source}: {error}")));
        }
        digest.update(format!("{}\n{}\n", field(line, "nvrtc"), field(line, "options")));
        let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(field(line, "sha256"), hex, "{} is out of date: run `make ptx`", path.display());
        let mut parts = text.splitn(3, '\n').skip(1);
        let (second, body) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let hex: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(field(second, "sha256"), hex, "{} was changed after the compiler wrote it", path.display());
    }
}
