//! The JSON Schemas of documents: printed, strict, and complete. `support` validates by them every
//! document that a test gets.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use jsonschema::Validator;
use nextstat::schema;
use serde_json::{Value, json};

use crate::support::{Run, Scratch, folder, is_valid, nextstat, with_stdin};

fn examples(arguments: &[&str]) -> Run {
    nextstat(&folder("examples"), arguments)
}

/// Runs that write a document of every schema, but for `contours`, which Python alone writes.
const RUNS: &[&[&str]] = &[
    &["fit", "histfactory/combination.xml"],
    &[
        "fit",
        "combine/productions.txt",
        "--mass",
        "125",
        "--physics-model",
        "multiSignalModel",
        "--PO",
        "map=.*/ggH.*:r_ggH[1,0,10]",
        "--PO",
        "map=.*/qqH.*:r_qqH[1,0,10]",
        "--keyword-value",
        "WORD=1",
    ],
    &["fit", "shapes.json", "--minos", "--multi-start=2", "--covariance", "--correlation"],
    &["fit", "background.json", "--poi", "none", "--fix", "norm_ttbar=1", "--bounds", "theory_ttbar=-2:2"],
    &["fit", "shapes.json", "--asimov=2"],
    &["fit", "simple.json", "--asimov=0.5", "--mask", "singlechannel[0]", "--interp-defaults", "pyhf"],
    &["fit", "background.json", "--patchset", "signals.json", "--patch-name", "signal_300"],
    &["fit", "background.json", "--patch", "signal.json", "--bounds", "mu=1:3", "--asimov=0"],
    &["gof", "shapes.json", "--toys", "20"],
    &["report", "simple.json"],
    &["report", "simple.json", "--blind", "singlechannel[0]", "--fit-blinded"],
    &["yields", "simple.json"],
    &["yields", "simple.json", "--uncertainty", "half-difference"],
    &["scan", "simple.json", "--points", "3"],
    &[
        "scan",
        "simple.json",
        "--parameter",
        "mu",
        "--parameter",
        "uncorr_bkguncrt[0]",
        "--points",
        "3",
        "--contour",
        "0.68",
    ],
    &["ranking", "shapes.json", "--group", "theory=theory_*", "--minos"],
    &["hypotest", "simple.json"],
    &["limit", "simple.json"],
    &["significance", "simple.json"],
    &["limit", "shapes.json", "--at", "lumi=0.99:1:2"],
    &["limit", "shapes.json", "--poi", "mu", "--poi", "lumi"],
    &["hypotest", "shapes.json", "--poi", "mu", "--poi", "lumi"],
    &["significance", "shapes.json", "--poi", "mu", "--poi", "lumi"],
    &["limit", "shapes.json", "--poi", "mu", "--poi", "norm_ttbar", "--at", "lumi=0.99:1:2"],
    &["limit", "background.json", "--patchset", "signals.json", "--every-patch", "--poi", "mu", "--poi", "lumi"],
    &["toys", "simple.json", "--n-toys", "3", "--poi-uncertainty"],
    &["hypotest-toys", "simple.json", "--n-toys", "20"],
    &["hypotest-toys", "simple.json", "--n-toys", "20", "--test-stat", "q0"],
    &["interval", "simple.json", "--tolerance", "0.2"],
    &["interval", "simple.json", "--construction", "upper", "--max-toys", "1000"],
    &["interval", "shapes.json", "--poi", "mu", "--poi", "norm_ttbar", "--max-toys", "1000"],
    &["interval", "shapes.json", "--grid", "mu=0:4:3", "--grid", "norm_ttbar=0.8:1.2:3", "--tolerance", "0.5"],
    &["limit", "simple.json", "--toys", "--tolerance", "0.2"],
    &["limit", "simple.json", "--toys", "--observed-only", "--criterion", "clsb", "--tolerance", "0.1"],
    &["significance", "simple.json", "--toys"],
    &["significance", "simple.json", "--toys", "--importance-sampling"],
    &["coverage", "simple.json", "--true", "0,1", "--n-toys", "100"],
    &["coverage", "simple.json", "--true", "1", "--n-toys", "20", "--method", "fc", "--max-inner-toys", "40"],
    &["coverage", "shapes.json", "--poi", "mu", "--poi", "norm_ttbar", "--true", "1", "--n-toys", "20"],
    &["hypotest", "background.json", "--patchset", "signals.json", "--every-patch"],
    &["search", "background.json", "--patchset", "signals.json"],
    &["search", "background.json", "--patchset", "plane.json", "--toys", "20", "--limits", "--correlations"],
    &["signal-scan", "background.json", "--signals", "signal_events.json", "--limits"],
    &["signal-scan", "background.json", "--signals", "signal_events.json", "--explore", "yes"],
    &["limit", "background.json", "--patchset", "signals.json", "--every-patch"],
    &["limit", "background.json", "--patchset", "signals.json", "--every-patch", "--shard", "1/2"],
    &["evaluate", "simple.json"],
    &["check", "shapes.json"],
    &["check", "../testdata/check/suspicious.json"],
    &["check", "../testdata/check/wrong.json"],
    &["check", "../testdata/gallery/empty-bin-with-data.json"],
    &["fit", "../testdata/gallery/empty-bin-with-data.json"],
    &["evaluate", "../testdata/gallery/empty-bin-with-data.json"],
    &["fit", "simple.json", "--device", "emulated"],
    &["inspect", "simple.json"],
    &["devices", "--log"],
    &["patchset", "inspect", "signals.json"],
    &["patchset", "verify", "background.json", "signals.json"],
];

/// Objects whose keys are names: any may be there or not.
const BY_NAME: &[&str] = &[
    "mle_parameters",
    "data/parameters",
    "fixed",
    "bounds",
    "masked",
    "blinded",
    "failures",
    "asimov_at",
    "values",
    "at",
    "modifiers",
    "digests",
    "references",
    "keywords",
];

/// Keys that an object need not have, by the end of its JSON pointer.
const OPTIONAL: &[(&str, &[&str])] = &[
    // What was asked for, or what there is.
    ("", &["minima", "not_parabolic", "covariance", "correlation", "conditional_bestfit", "contours", "device"]),
    ("", &["unmatched", "unused"]),
    ("", &["importance_sampling"]),
    ("/fit", &["minima", "not_parabolic", "correlation"]),
    ("/checksums", &["covariance", "correlation"]),
    ("", &["Z_obs", "p0_obs", "p0_obs_error", "Z_exp", "p0_exp", "p0_exp_errors"]),
    ("", &["shard"]),
    ("/shard/question", &["grid", "level", "mu"]),
    ("/comparison/signals/0", &["patch", "values"]),
    ("/toys/0", &["poi_uncertainty"]),
    ("/data_sets/0", &["uncertainties"]),
    ("/points/0", &["not_finite"]),
    // Settings, if they differ from the defaults, and files.
    ("/provenance", &["command", "stored_fit", "map", "file"]),
    ("/provenance/grid", &["command"]),
    ("/grid/workspace", &["file"]),
    ("/grid/patchset", &["file"]),
    ("/provenance/workspace", &["card", "file", "files", "patches", "patchset"]),
    ("/workspace/card", &["keywords", "mass", "model_options", "physics_model"]),
    ("/provenance/patchset", &["file"]),
    ("/provenance/data", &["fit"]),
    ("/provenance/workspaces/0", &["file"]),
    ("/provenance/map", &["file"]),
    ("/provenance/settings", &["blinded", "bounds", "fixed", "init", "interpolation", "masked", "multi_start"]),
    ("/provenance/settings", &["propagation"]),
    // Python has the settings of toys in the provenance only.
    ("", &["ensemble", "asimov", "asimov_at", "bounds", "fixed", "interpolation", "multi_start", "workspace_sha256"]),
    ("/thrown_at", &["rule", "mu", "par_names"]),
    ("/findings/0", &["pointer", "channel", "sample", "modifier", "bin", "parameter", "kind", "up", "down", "n_bins"]),
    ("/findings/0", &["observed", "total", "value", "name", "other", "what", "similar", "curvature", "parameters"]),
    ("/devices/0", &["index", "name", "precisions", "memory_bytes", "compute_capability", "log", "self_test"]),
];

/// Returns whether the object at `pointer` need not have `key`.
fn is_optional(pointer: &str, key: &str) -> bool {
    let is_place = |end: &str| if end.is_empty() { pointer.is_empty() } else { pointer.ends_with(end) };
    OPTIONAL.iter().any(|(end, keys)| is_place(end) && keys.contains(&key))
}

/// A document, and what is changed in it.
struct Mutation<'a> {
    document: Value,
    validator: &'a Validator,
}

impl Mutation<'_> {
    /// Changes every object in the document in every way: without each key, with another key, and
    /// with each value replaced. Returns the changes that nothing noticed.
    fn unnoticed(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        for pointer in objects(&self.document, String::new()) {
            let Some(Value::Object(object)) = self.document.pointer(&pointer).cloned() else { continue };
            let is_by_name = BY_NAME.iter().any(|name| pointer.ends_with(&format!("/{name}")));
            let keys: Vec<&String> = object.keys().collect();
            for key in keys {
                let mut without = object.clone();
                without.remove(key);
                if !is_by_name && !is_optional(&pointer, key) && self.is_valid_with(&pointer, Value::Object(without)) {
                    found.push(format!("`{pointer}` without `{key}`"));
                }
                let mut replaced = object.clone();
                replaced[key] = json!({"nothing": [true]});
                if self.is_valid_with(&pointer, Value::Object(replaced)) {
                    found.push(format!("`{pointer}` with another `{key}`"));
                }
            }
            let mut with = object.clone();
            with.insert("unknown_key".to_owned(), json!([{}]));
            if self.is_valid_with(&pointer, Value::Object(with)) {
                found.push(format!("`{pointer}` with an unknown key"));
            }
        }
        found
    }

    /// Returns whether the document is valid with `value` at `pointer`.
    fn is_valid_with(&mut self, pointer: &str, value: Value) -> bool {
        let Some(place) = self.document.pointer_mut(pointer) else { return false };
        let before = std::mem::replace(place, value);
        let is_valid = self.validator.is_valid(&self.document);
        if let Some(place) = self.document.pointer_mut(pointer) {
            *place = before;
        }
        is_valid
    }
}

/// Returns the JSON pointers of the objects in `value`; of a list, those in its first entry.
fn objects(value: &Value, pointer: String) -> Vec<String> {
    match value {
        Value::Object(members) => {
            let inner = members.iter().flat_map(|(key, member)| {
                objects(member, format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")))
            });
            let inner: Vec<String> = inner.collect();
            std::iter::once(pointer).chain(inner).collect()
        }
        Value::Array(items) => items.first().map_or_else(Vec::new, |item| objects(item, format!("{pointer}/0"))),
        _ => Vec::new(),
    }
}

/// Returns the documents of [`RUNS`], and those of runs that read or write other files.
fn documents() -> Vec<(String, Value)> {
    // Tests of one process call this at the same time.
    static N_CALLS: AtomicUsize = AtomicUsize::new(0);
    let scratch = Scratch::new(&format!("documents-{}", N_CALLS.fetch_add(1, Ordering::Relaxed)));
    let mut found: Vec<(String, Value)> =
        RUNS.iter().map(|arguments| (format!("{arguments:?}"), examples(arguments).document())).collect();
    let (fit, report, both) = (scratch.path("fit.json"), scratch.path("report.json"), scratch.path("both.json"));
    assert_eq!(examples(&["fit", "simple.json", "--covariance", "-o", &fit]).code, Some(0));
    for verb in ["gof", "report", "yields", "ranking"] {
        let run = examples(&[verb, "simple.json", "--from", &fit]);
        found.push((format!("{verb} --from"), run.document()));
    }
    found.push(("asimov-from".to_owned(), examples(&["fit", "simple.json", "--asimov-from", &fit]).document()));
    let combine = ["combine", "simple.json", "shapes.json", "-o", &both, "--report", &report];
    assert_eq!(examples(&combine).code, Some(0), "{}", examples(&combine).stderr);
    found.push(("combine".to_owned(), serde_json::from_slice(&scratch.read("report.json")).expect("JSON")));
    let grid: &[&str] = &["background.json", "--patchset", "signals.json", "--compare"];
    for arguments in [&["shapes.json"][..], &["shapes.json", "--compare"], grid] {
        let rest = ["-c", "signal_region", "--fix", "norm_ttbar=1", "-o", &both, "--report", &report];
        let simplify = [&["simplify"], arguments, &rest].concat();
        assert_eq!(examples(&simplify).code, Some(0), "{}", examples(&simplify).stderr);
        found.push(("simplify".to_owned(), serde_json::from_slice(&scratch.read("report.json")).expect("JSON")));
    }
    let grid = examples(&["hypotest", "background.json", "--patchset", "plane.json", "--every-patch"]);
    for change in [false, true] {
        let mut grid = grid.document();
        if change {
            grid["patches"][3]["result"]["converged"] = json!(false);
        }
        let run = with_stdin(&folder("examples"), &["exclusion", "-"], grid.to_string().as_bytes());
        found.push(("exclusion".to_owned(), run.document()));
    }
    let data = ["fits", "simple.json", "--data", "-", "--uncertainties"];
    found.push(("fits".to_owned(), with_stdin(&folder("examples"), &data, b"57 63\n51 48\n").document()));
    found
}

/// Returns the name in `$schema`.
fn name_of(document: &Value) -> &str {
    document["$schema"].as_str().and_then(|urn| urn.split(':').nth(3)).unwrap_or_default()
}

fn validator(name: &str) -> Validator {
    jsonschema::draft202012::new(&schema::bundled(name).expect("a schema")).expect("a sound schema")
}

#[test]
fn a_document_with_a_missing_an_unknown_or_another_value_is_not_valid() {
    let mut seen = BTreeSet::from(["contours".to_owned()]);
    for (run, document) in documents() {
        let name = name_of(&document).to_owned();
        let validator = validator(&name);
        assert!(validator.is_valid(&document), "{run}");
        let unnoticed = Mutation { document, validator: &validator }.unnoticed();
        assert!(unnoticed.is_empty(), "{run}:\n{}", unnoticed.join("\n"));
        seen.insert(name);
    }
    assert_eq!(seen, schema::names().map(str::to_owned).collect());
}

/// Keys that none of the documents has: of failed toys, of a start without a likelihood, of a map,
/// and of Python.
const RARE: &[&str] = &[
    "CLs_obs_range",
    "cause",
    "map",
    "action",
    "line",
    "without_counterpart",
    "toys_tested",
    "toys_alternative",
    "init",
    "result",
];

#[test]
fn every_key_of_a_schema_is_in_a_document() {
    let mut written = BTreeSet::new();
    documents().iter().for_each(|(_, document)| keys_of(document, &mut written));
    let mut described = BTreeSet::new();
    for name in schema::names() {
        described_by(&schema::bundled(name).expect("a schema"), &mut described);
    }
    let absent: Vec<&String> = described.difference(&written).filter(|key| !RARE.contains(&key.as_str())).collect();
    assert!(absent.is_empty(), "{absent:?}");
}

fn keys_of(document: &Value, keys: &mut BTreeSet<String>) {
    match document {
        Value::Object(members) => members.iter().for_each(|(key, member)| {
            keys.insert(key.clone());
            keys_of(member, keys);
        }),
        Value::Array(items) => items.iter().for_each(|item| keys_of(item, keys)),
        _ => {}
    }
}

fn described_by(schema: &Value, keys: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => members.iter().for_each(|(key, member)| {
            keys.extend(
                member.as_object().filter(|_| key == "properties").into_iter().flatten().map(|(name, _)| name.clone()),
            );
            described_by(member, keys);
        }),
        Value::Array(items) => items.iter().for_each(|item| described_by(item, keys)),
        _ => {}
    }
}

#[test]
fn a_document_of_another_schema_is_not_valid() {
    let limit = examples(&["limit", "simple.json"]).document();
    for name in schema::names().filter(|name| *name != "limit") {
        assert!(!validator(name).is_valid(&limit), "{name}");
    }
    let mut renamed = limit;
    renamed["$schema"] = json!("urn:nextstat:schema:limit:2");
    assert!(!is_valid(&renamed));
}

#[test]
fn the_command_prints_schemas() {
    let run = examples(&["schema"]);
    assert_eq!(run.stdout.lines().collect::<Vec<_>>(), schema::names().collect::<Vec<_>>());
    for name in schema::names() {
        let run = examples(&["schema", name]);
        assert_eq!(run.code, Some(0));
        assert_eq!(run.document(), schema::bundled(name).expect("a schema"));
    }
    insta::assert_snapshot!(examples(&["schema", "hypotset"]).transcript(), @r"
    exit code 2
    -- stderr --
    error: there is no schema `hypotset`
    hint: did you mean `hypotest`?
    ");
}

#[test]
fn schemas_are_valid_themselves() {
    for name in schema::names() {
        let schema = schema::bundled(name).expect("a schema");
        assert!(jsonschema::draft202012::meta::is_valid(&schema), "{name}");
    }
}

#[test]
fn the_page_of_documents_is_made_of_the_schemas() {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let check = ["scripts/json_page.py", "--check", "docs/reference/json.md"];
    match Command::new(&python).args(check).current_dir(folder(".")).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => eprintln!("skipped: `{python}` cannot be run: {error}"),
    }
}
