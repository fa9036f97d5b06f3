//! The order of the modules: each uses those before it only, so that there are no cycles.

use std::path::{Path, PathBuf};

/// The modules of `src`, from the one that uses none to the one that uses all.
const ORDER: [&str; 14] = [
    "config",
    "preference",
    "error",
    "simd",
    "weights",
    "files",
    "model",
    "cpu",
    "device",
    "encoder",
    "engine",
    "backend",
    "text",
    "cli",
];

/// Returns the Rust sources below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().expect("a readable folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let inner = folders.iter().flat_map(|folder| sources(folder));
    files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")).chain(inner).collect()
}

#[test]
fn no_module_uses_a_later_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let place = |name: &str| ORDER.iter().position(|module| *module == name);
    let mut n_uses = 0;
    for path in sources(&root) {
        let relative = path.strip_prefix(&root).expect("a file of the folder");
        let module = relative.components().next().expect("a name").as_os_str().to_string_lossy().replace(".rs", "");
        if module == "lib" || module == "main" {
            continue;
        }
        let here = place(&module).unwrap_or_else(|| panic!("`{module}` is not listed"));
        let text = std::fs::read_to_string(&path).expect("a readable file");
        // Unit tests stand at the end of a file, and may use what they like.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for after in line.split("crate::").skip(1) {
                let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let there = place(&name).unwrap_or_else(|| panic!("{}: `crate::{name}`", path.display()));
                assert!(there <= here, "{}: `{module}` uses `{name}`", path.display());
                n_uses += 1;
            }
        }
    }
    assert!(n_uses > 50, "the sources were not found");
}
