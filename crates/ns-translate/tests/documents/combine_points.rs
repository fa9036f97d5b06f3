//! Data cards equal what Combine makes of them: -ln L, expected events and parameters at the points
//! of `references/points` beside the published likelihoods, which are not part of this repository;
//! and the page on Combine says which of its cards load.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ns_core::expected::expected_main;
use ns_core::likelihood::nll;
use ns_core::{CompileOptions, Model, compile};
use ns_translate::{CardOptions, DocumentSource, LoadRequest, full_message, load_document};
use serde_json::Value;

/// Of a difference of -ln L, relative to differences above 1.
const NLL: f64 = 1e-9;

/// The same where Combine clips contents at 10⁻⁹.
const NLL_WHERE_CLIPPED: f64 = 1e-6;

/// Of expected events.
const EVENTS: f64 = 1e-10;

fn folder() -> PathBuf {
    ns_testkit::published::data_folder().join("../combine")
}

/// The points of every card, by the name of the file.
fn references(folder: &Path) -> BTreeMap<String, Value> {
    let files = std::fs::read_dir(folder.join("references/points")).expect("points");
    let read = |path: PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).expect("readable");
        // Python writes infinite ends of ranges in its own way.
        let text = text.replace("-Infinity", "null").replace("Infinity", "null");
        (name, serde_json::from_str(&text).expect("JSON"))
    };
    files.map(|entry| read(entry.expect("readable").path())).collect()
}

fn model(folder: &Path, name: &str, reference: &Value) -> Result<Model, String> {
    let card = format!("{}.txt", folder.join("cards").join(name.replace("__", "/")).display());
    let mass = reference["mass"].as_str().expect("a mass").parse().ok();
    let request = LoadRequest {
        card: CardOptions { mass, ..CardOptions::default() },
        ..LoadRequest::new(DocumentSource::Path(card.into()))
    };
    let loaded = load_document(&request).map_err(|error| full_message(&error))?;
    compile(&loaded.workspace, &CompileOptions::default()).map_err(|error| error.to_string())
}

/// Returns the value here of the parameter that is `value` in Combine: factors of processes with a
/// Poisson term are numbers of events there.
fn translated(reference: &Value, model: &Model, name: &str, value: f64) -> f64 {
    let start = reference["parameters"][name]["value"].as_f64().unwrap_or(0.0);
    let index = model.parameters.index_of(name).expect("a parameter");
    if name.starts_with("prop_bin") && model.parameters.init[index] == 1.0 && start > 0.0 {
        value / start
    } else {
        value
    }
}

fn point(reference: &Value, model: &Model, values: &Value) -> Result<Vec<f64>, String> {
    let mut point = model.parameters.init.clone();
    for (name, value) in values.as_object().expect("values") {
        let index = model.parameters.index_of(name).ok_or_else(|| format!("there is no parameter `{name}`"))?;
        point[index] = translated(reference, model, name, value.as_f64().expect("a number"));
    }
    Ok(point)
}

/// Returns whether two numbers differ, relative to numbers above 1; a NaN differs from all.
fn is_far(found: f64, wanted: f64, tolerance: f64) -> bool {
    let difference = (found - wanted).abs();
    difference.is_nan() || difference > tolerance * wanted.abs().max(1.0)
}

fn compared(folder: &Path, name: &str, reference: &Value) -> Result<Vec<String>, String> {
    let model = model(folder, name, reference)?;
    let points = reference["points"].as_array().expect("points");
    let mut differences = Vec::new();
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for one in points {
        let at = point(reference, &model, &one["values"])?;
        here.push(nll(&model, &model.observed, &at));
        there.push(one["nll"].as_f64().expect("a number"));
        let expected = expected_main(&model, &at);
        for (channel, wanted) in one["expected_events"].as_object().into_iter().flatten() {
            let index = model.channels.iter().position(|known| known == channel);
            let index = index.ok_or_else(|| format!("there is no channel `{channel}`"))?;
            let found: f64 = expected[model.channel_bins(index)].iter().sum();
            let wanted = wanted.as_f64().expect("a number");
            if is_far(found, wanted, EVENTS) {
                differences.push(format!("{} {channel}: {found:.12} events and {wanted:.12}", one["name"]));
            }
        }
    }
    for (index, (found, wanted)) in here.iter().zip(&there).enumerate() {
        let (found, wanted) = (found - here[0], wanted - there[0]);
        let tolerance = tolerance(name);
        if is_far(found, wanted, tolerance) {
            differences.push(format!(
                "{}: -ln L {found:.12} and {wanted:.12}, {:e}",
                points[index]["name"],
                found - wanted
            ));
        }
    }
    Ok(differences)
}

/// Cards whose templates Combine pads with bins of 10⁻⁹ up to the channel with the most bins.
const PADDED: &[&str] = &["ci__htt_multiple_regions", "htt__125__htt_tt"];

/// Combine normalises the terms of `trG` and `gmM` in the range of their auxiliary data, which
/// makes them depend on the parameter; with that integral, SciPy gives Combine's numbers to 10⁻⁸.
fn tolerance(name: &str) -> f64 {
    if name.ends_with("-gmM") {
        1e-3
    } else if name.ends_with("test-edit") {
        1e-5
    } else if PADDED.contains(&name) {
        NLL_WHERE_CLIPPED
    } else {
        NLL
    }
}

/// Returns the paths of the cards in `folder` and below, plain or compressed.
fn cards(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_card = |path: &PathBuf| path.to_string_lossy().trim_end_matches(".gz").ends_with(".txt");
    files.into_iter().filter(is_card).chain(folders.iter().flat_map(|folder| cards(folder))).collect()
}

/// Returns how many cards load by folder, as the page says it.
fn rows_of_page() -> BTreeMap<String, usize> {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorials/coming-from-combine.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, table) = page.split_once("| Folder | Cards that load |").expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let (name, number) = line.trim_matches('|').split_once('|').expect("two columns");
        (name.trim().trim_matches('`').to_owned(), number.trim().parse().expect("a number"))
    };
    rows.map(row).collect()
}

#[test]
#[ignore = "needs the cards of Combine"]
fn as_many_cards_load_as_the_page_says() {
    let folder = folder().join("cards");
    let mut loaded: BTreeMap<String, usize> = BTreeMap::new();
    let all = cards(&folder);
    for path in &all {
        let loads_with = |mass: f64| {
            let card = CardOptions { mass: Some(mass), ..CardOptions::default() };
            load_document(&LoadRequest { card, ..LoadRequest::new(DocumentSource::Path(path.clone())) }).is_ok()
        };
        // Templates are for one of these masses.
        if loads_with(125.0) || loads_with(200.0) {
            let parent = path.parent().and_then(|parent| parent.strip_prefix(&folder).ok()).expect("below");
            *loaded.entry(parent.to_string_lossy().into_owned()).or_default() += 1;
        }
    }
    assert_eq!((loaded, all.len()), (rows_of_page(), 107));
}

#[test]
#[ignore = "needs the cards of Combine"]
fn points_are_those_of_combine() {
    let folder = folder();
    let mut failed = Vec::new();
    let references = references(&folder);
    assert_eq!(references.len(), 82);
    for (name, reference) in references {
        match compared(&folder, &name, &reference) {
            Ok(differences) if differences.is_empty() => {}
            Ok(differences) => {
                failed.push(format!("{name}: {}", differences[..differences.len().min(3)].join("\n    ")));
            }
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    assert!(failed.is_empty(), "{} cards differ:\n{}", failed.len(), failed.join("\n"));
}
