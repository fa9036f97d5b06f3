//! Reads published likelihoods with reference numbers, which are beside the repository and never
//! in it.

use ns_core::spec::Workspace;
use ns_core::{CompileOptions, Model, PoiChoice, compile};
use ns_translate::{DocumentSource, LoadRequest, load};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Returns the folder of published data: the one that `NEXTSTAT_DATA` names, or else `shared/data`
/// beside the repository. It may be absent.
fn configured_folder() -> PathBuf {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    std::env::var_os("NEXTSTAT_DATA").map_or_else(beside, PathBuf::from)
}

/// Returns the folder of published data, for tests that need it: they are
/// `#[ignore = "needs published likelihoods"]`, and run where it is there.
///
/// # Panics
/// If the folder is absent.
#[must_use]
pub fn data_folder() -> PathBuf {
    let path = configured_folder();
    assert!(
        path.is_dir(),
        "this test needs published likelihoods, and there is no folder {}; `NEXTSTAT_DATA` names another",
        path.display()
    );
    path
}

/// Returns the folder `name` of the published data, or `None`, with a message, where it is absent:
/// for tests that do more where it is there.
#[must_use]
pub fn folder(name: &str) -> Option<PathBuf> {
    let path = configured_folder().join(name);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no published data in {}", path.display());
    None
}

/// A published likelihood, and the points at which there are reference numbers.
#[derive(Debug)]
pub struct PublishedCase {
    /// Its name, as in the list of cases.
    pub name: String,
    /// The document, patched.
    pub workspace: Workspace,
    /// How it is compiled.
    pub options: CompileOptions,
    /// The model, with its own interpolation rules.
    pub model: Model,
    /// Points (P) by name; the first is the starting point.
    pub points: Vec<(String, Vec<f64>)>,
}

/// Returns every published case, patched as its entry in the list says.
///
/// # Panics
/// If the data are absent ([`data_folder`]), or a file of a case is absent or not what it should
/// be.
#[must_use]
pub fn cases() -> Vec<PublishedCase> {
    cases_in(&data_folder())
}

/// Returns the same of the published data in the folder `data`.
///
/// # Panics
/// If a file of a case is absent or not what it should be.
#[must_use]
pub fn cases_in(data: &Path) -> Vec<PublishedCase> {
    let list = json(&data.join("cases.json"));
    let list = list.as_object().expect("cases by name");
    list.iter().map(|(name, entry)| case(data, name, entry)).collect()
}

fn case(data: &Path, name: &str, entry: &Value) -> PublishedCase {
    let file = |stem: &Value| -> PathBuf {
        let stem = stem.as_str().expect("a name");
        let paths = ["json", "json.zst"].map(|end| data.join("workspaces").join(format!("{stem}.{end}")));
        let found = paths.into_iter().find(|path| path.exists());
        found.unwrap_or_else(|| panic!("{name}: there is no file `{stem}` in {}", data.join("workspaces").display()))
    };
    let mut request = LoadRequest::new(DocumentSource::Path(file(&entry["file"])));
    for patch in entry["patches"].as_array().expect("a list") {
        let path = file(&patch[1]);
        match patch[0].as_str() {
            Some("patchset") => request.patchset = Some((path, patch[2].as_str().expect("a name").to_owned())),
            _ => request.patches.push(DocumentSource::Path(path)),
        }
    }
    let options = CompileOptions {
        measurement: entry["measurement"].as_str().map(str::to_owned),
        poi: if entry["poi"].is_null() { PoiChoice::None } else { PoiChoice::FromMeasurement },
        ..CompileOptions::default()
    };
    let workspace = load(&request).unwrap_or_else(|error| panic!("{name}: {error}"));
    let model = compile(&workspace, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
    let reference = data.join("reference").join(format!("{name}.json"));
    let reference = json(&reference);
    let points = reference["settings"]["default"]["points"].as_object().expect("points by name");
    let numbers = |point: &Value| point["pars"].as_array().expect("numbers").iter().filter_map(Value::as_f64).collect();
    PublishedCase {
        name: name.to_owned(),
        workspace,
        options,
        model,
        points: points.iter().map(|(name, point)| (name.clone(), numbers(point))).collect(),
    }
}

fn json(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
