//! The order of the modules: each imports only modules of lower layers, so there are no cycles.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers from the bottom to the top, as in the documentation of the crate.
const LAYERS: [&[&str]; 7] = [
    &["hint", "message", "place", "whole_file"],
    &["text", "source"],
    &["json"],
    &["digest", "kind", "points", "toys"],
    &["patch", "pyhf"],
    &["patchset", "workspace"],
    &["error"],
];

/// What uses everything: the entry points.
const TOP: [&str; 2] = ["format", "load"];

fn layer(module: &str) -> usize {
    let top = TOP.iter().position(|name| *name == module).map(|index| LAYERS.len() + index);
    let below = || LAYERS.iter().position(|layer| layer.contains(&module));
    top.or_else(below).unwrap_or_else(|| panic!("module `{module}` has no layer"))
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns the modules that `text` imports by `crate::module`.
fn imports(text: &str) -> Vec<&str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let after = code.flat_map(|line| line.match_indices("crate::").map(|(start, word)| &line[start + word.len()..]));
    after.map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or("")).collect()
}

#[test]
fn modules_import_only_lower_layers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    for file in files {
        let path = file.strip_prefix(&root).expect("below the root");
        let module = path.iter().next().and_then(|step| Path::new(step).file_stem()).and_then(|name| name.to_str());
        let module = module.expect("a name");
        let is_test = path.ends_with("tests.rs");
        if module == "lib" || is_test {
            continue;
        }
        let text = fs::read_to_string(&file).expect("readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for import in imports(code).into_iter().filter(|import| *import != module) {
            let is_lower = layer(import) < layer(module);
            assert!(is_lower, "{}: `{module}` imports `{import}`, which is not below it", path.display());
        }
    }
}
