//! The order of the modules: each imports only modules of lower layers, so there are no cycles.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers from the bottom to the top.
const LAYERS: &[&[&str]] = &[
    &["cancel", "document", "number", "stored"],
    &["error"],
    &["device", "settings"],
    &["model", "regions"],
    &["analysis", "check", "evaluate"],
    &["provenance"],
    &["answer"],
    &["curves", "fit", "hypothesis", "patchsets", "ranking", "toys"],
    &["goodness", "toy_tests", "yields"],
    &["alarm", "projection"],
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

fn layer(module: &str) -> usize {
    let found = LAYERS.iter().position(|layer| layer.contains(&module));
    found.unwrap_or_else(|| panic!("module `{module}` has no layer"))
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

/// Returns what `text` imports by `crate::name` and `crate::{name, …}`.
fn imports(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let after = code.flat_map(|line| line.match_indices("crate::").map(|(start, word)| &line[start + word.len()..]));
    after
        .flat_map(|rest| match rest.strip_prefix('{').and_then(|rest| rest.split('}').next()) {
            Some(list) => list.split(',').map(str::trim).collect::<Vec<_>>(),
            None => vec![rest],
        })
        .map(|rest| rest.split(|c: char| !is_word(c)).next().unwrap_or(""))
        .collect()
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
        if ["lib", "main"].contains(&module) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for import in imports(code).into_iter().map(home).filter(|import| *import != module) {
            let is_lower = layer(import) < layer(module);
            assert!(is_lower, "{}: `{module}` imports `{import}`, which is not below it", path.display());
        }
    }
}
