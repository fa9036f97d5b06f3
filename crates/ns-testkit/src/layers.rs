//! The order of a crate's modules: each imports only modules of lower layers, so there are no
//! cycles.

use std::fs;
use std::path::{Path, PathBuf};

/// Asserts that every module below `src` imports only modules of lower layers.
///
/// `layers` lists the modules from the bottom to the top. `home` returns the module of an item that
/// the crate's root exports, the name itself for a module, and `None` for what belongs to no
/// module.
/// `lib.rs`, `main.rs` and tests are not looked at.
///
/// # Panics
/// A module that imports one that is not below it, or has no layer; no modules at all.
pub fn assert_order(src: &Path, layers: &[&[&str]], home: impl Fn(&str) -> Option<&str>) {
    let layer = |module: &str| {
        let found = layers.iter().position(|layer| layer.contains(&module));
        found.unwrap_or_else(|| panic!("module `{module}` has no layer"))
    };
    let mut files = Vec::new();
    sources(src, &mut files);
    let mut n_imports = 0;
    for file in files {
        let path = file.strip_prefix(src).expect("below the folder");
        let module = path.iter().next().and_then(|step| Path::new(step).file_stem()).and_then(|name| name.to_str());
        let module = module.expect("a name");
        if ["lib", "main"].contains(&module) || path.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for import in imports(code).into_iter().filter_map(&home).filter(|import| *import != module) {
            n_imports += 1;
            let is_lower = layer(import) < layer(module);
            assert!(is_lower, "{}: `{module}` imports `{import}`, which is not below it", path.display());
        }
    }
    assert!(n_imports > 0, "no imports were found below {}", src.display());
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
