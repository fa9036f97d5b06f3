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
        for import in imports(code).iter().filter_map(|name| home(name)).filter(|import| *import != module) {
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

/// Returns what `text` imports by `crate::name` and `crate::{name, …}`, which may have several
/// lines and lists in lists.
fn imports(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let after = code.match_indices("crate::").map(|(start, word)| &code[start + word.len()..]);
    after
        .flat_map(|rest| match rest.strip_prefix('{') {
            Some(list) => entries(list),
            None => vec![rest],
        })
        .map(first_word)
        .collect()
}

/// Returns what begins each entry of the list in braces that `text` begins with, without the first
/// brace.
fn entries(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut entries) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                entries.push(&text[start..at]);
                start = at + 1;
            }
            '}' => {
                entries.push(&text[start..at]);
                break;
            }
            _ => {}
        }
    }
    // The last entry of a list may have a comma, too.
    entries.retain(|entry| !entry.trim().is_empty());
    entries
}

/// Returns the word that `text` begins with.
fn first_word(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::imports;

    #[test]
    fn imports_of_several_lines_and_lists_in_lists_are_found() {
        let text = "use crate::alpha::{One, Two};
use crate::{
    beta::{Three, four::{Five, Six}},
    gamma,
    // delta,
    epsilon as zeta,
};
use crate::{eta, theta::Seven}; // crate::iota
    // crate::kappa
fn f() { crate::lambda::mu(crate::NU) }";
        let found = imports(text);
        assert_eq!(found, ["alpha", "beta", "gamma", "epsilon", "eta", "theta", "iota", "lambda", "NU"]);
    }
}
