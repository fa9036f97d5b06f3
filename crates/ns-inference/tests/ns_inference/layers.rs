//! The order of the modules of this crate, and which of them compares minima.

use ns_testkit::layers::assert_order;
use std::fs;
use std::path::{Path, PathBuf};

/// The layers from the bottom to the top.
const LAYERS: &[&[&str]] = &[
    &["chi_squared", "linear", "memory", "monitor", "normal", "random", "replicas", "root"],
    &["minimize", "poisson_interval"],
    &["accelerator", "crossing", "options", "result"],
    &["hessian", "parallel", "problem", "pulls"],
    &["bootstrap", "degeneracy", "propagate", "response"],
    &["search", "simplified", "yields"],
    &["gof", "minos", "parabolic", "polish", "profile"],
    &["fit", "prediction_test", "scan", "test_statistic"],
    &["asymptotic", "contour", "ranking"],
    &["hypotest"],
    &["limit"],
    &["differentiable", "signal_scan", "toys"],
    &["data_sets", "global_significance"],
];

/// Modules that may compare values of -ln L: `search` compares minima, and `minimize` the points of
/// one descent.
const COMPARING: [&str; 2] = ["search", "minimize"];

/// Calls that put values of -ln L in order.
const ORDERING: [&str; 2] = ["nll.total_cmp(", "nll.partial_cmp("];

/// Returns `true` if `line` compares values whose names end in `nll` by an operator, or puts them
/// in order.
fn compares_minima(line: &str) -> bool {
    let is_path = |c: char| c.is_alphanumeric() || "_.".contains(c);
    let words: Vec<&str> = line.split(' ').collect();
    let by_operator = words.windows(3).any(|three| {
        let operands = [three[0].trim_end_matches("()"), three[2]];
        let left = operands[0].rsplit(|c| !is_path(c)).next();
        let right = operands[1].trim_start_matches(['&', '-', '(']).split(|c| !is_path(c)).next();
        let is_nll = |operand: Option<&str>| operand.is_some_and(|operand| operand.ends_with("nll"));
        ["<", ">", "<=", ">="].contains(&three[1]) && (is_nll(left) || is_nll(right))
    });
    by_operator || ORDERING.iter().any(|call| line.contains(call))
}

/// Appends the Rust sources below `folder` to `files`.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, files),
            false => files.push(path),
        }
    }
}

#[test]
fn modules_import_only_lower_layers() {
    assert_order(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), LAYERS, |name| Some(name));
}

#[test]
fn minima_are_compared_by_the_search_only() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let (mut elsewhere, mut n_in_search) = (Vec::new(), 0);
    for file in files {
        let path = file.strip_prefix(&src).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        let lines = code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
        let found = lines.filter(|(_, line)| compares_minima(line));
        if COMPARING.iter().any(|module| path.starts_with(module)) {
            n_in_search += found.count();
        } else {
            elsewhere.extend(found.map(|(i, line)| format!("{}:{}: {}", path.display(), i + 1, line.trim())));
        }
    }
    assert!(n_in_search > 0, "no comparison was found where there are some");
    assert!(elsewhere.is_empty(), "`search` has functions that compare minima:\n{}", elsewhere.join("\n"));
}

#[test]
fn comparisons_of_minima_are_recognised() {
    let comparisons = [
        "if profiler.best().nll >= known {",
        "(a.nll < b.nll).then(|| a)",
        "if rise > 0.0 && 1.0 < -other.best_nll {",
        "let lower = lower.min_by(|a, b| a.nll.total_cmp(&b.nll));",
        "if likelihood.nll() > bar {",
    ];
    let others = ["let at: Vec<f64> = nll;", "let rise = a.nll - b.nll;", "if x < y && nll.is_finite() {"];
    assert!(comparisons.into_iter().all(compares_minima));
    assert!(!others.into_iter().any(compares_minima));
}
