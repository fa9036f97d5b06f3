//! Runs the built command, validates the documents that it writes by their schemas, and makes what
//! it says comparable: numbers rounded, counts of steps left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

/// What a run ended with.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// The JSON on standard output.
    pub(crate) fn document(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in:\n{}", self.stdout))
    }

    /// The JSON on standard output without its provenance, which differs by command line.
    pub(crate) fn result(&self) -> Value {
        without_provenance(self.document())
    }

    /// Exit code, standard output with its numbers rounded, and standard error.
    pub(crate) fn transcript(&self) -> String {
        let mut text = format!("exit code {}\n", self.code.map_or("none".to_owned(), |code| code.to_string()));
        let stdout = match serde_json::from_str(&self.stdout) {
            Ok(document) => compact(&rounded(without_provenance(document)), 0),
            Err(_) => self.stdout.clone(),
        };
        for (stream, said) in [("stdout", &stdout), ("stderr", &self.stderr)] {
            if !said.is_empty() {
                let _ = write!(text, "-- {stream} --\n{}\n", said.trim_end());
            }
        }
        text
    }
}

/// A folder of the repository.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Runs `nextstat` in `folder`.
pub(crate) fn nextstat(folder: &Path, arguments: &[&str]) -> Run {
    with_stdin(folder, arguments, b"")
}

/// Runs `nextstat` in `folder` with something on standard input.
pub(crate) fn with_stdin(folder: &Path, arguments: &[&str], stdin: &[u8]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nextstat"));
    command.args(arguments).current_dir(folder).env("COLUMNS", "100");
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the command starts");
    // A command that refuses its arguments does not read its input.
    let _ = child.stdin.take().expect("piped").write_all(stdin);
    let output = child.wait_with_output().expect("the command ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the command writes text");
    require_valid(&output.stdout);
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: without_progress(&text(output.stderr)) }
}

/// The validators of all schemas.
static VALIDATORS: LazyLock<BTreeMap<String, Validator>> = LazyLock::new(|| {
    let validator = |name: &str| {
        let schema = nextstat::schema::bundled(name).expect("a schema");
        let validator = jsonschema::draft202012::new(&schema).expect("a sound schema");
        (schema["$id"].as_str().expect("text").to_owned(), validator)
    };
    nextstat::schema::names().map(validator).collect()
});

/// Whether the document is valid by the schema that it names.
pub(crate) fn is_valid(document: &Value) -> bool {
    let schema = document["$schema"].as_str().and_then(|name| VALIDATORS.get(name));
    schema.is_some_and(|schema| schema.is_valid(document))
}

/// Refuses a JSON object that is not valid by its schema. Those of pyhf and HS3 have none:
/// workspaces, patches, digests and distributions.
fn require_valid(text: &[u8]) {
    let Ok(document @ Value::Object(_)) = serde_json::from_slice::<Value>(text) else { return };
    let is_of_pyhf = || ["channels", "patch", "sha256", "distributions"].iter().any(|key| document.get(key).is_some());
    match document["$schema"].as_str() {
        None => assert!(is_of_pyhf(), "a document without `$schema`: {document}"),
        // A schema.
        Some(draft) if draft.starts_with("https://json-schema.org/") => {}
        Some(name) => {
            let schema = VALIDATORS.get(name).unwrap_or_else(|| panic!("there is no schema {name}"));
            let errors: Vec<String> =
                schema.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(errors.is_empty(), "{document:#} is not valid by {name}:\n{}", errors.join("\n"));
        }
    }
}

/// What was said but for the lines that tell how far the work is: a slow machine has them, a quick
/// one has not.
pub(crate) fn without_progress(said: &str) -> String {
    said.split_inclusive('\n')
        .filter(|line| !(line.contains(" per second, ") && line.trim_end().ends_with(" left")))
        .collect()
}

/// Fields that depend on the last bits, or change with every improvement of the minimiser.
const VOLATILE: [&str; 7] =
    ["edm", "projected_gradient", "n_iterations", "n_evaluations", "nextstat_version", "n_starts", "checksums"];

/// Drops the provenance, which tests of its own look at.
pub(crate) fn without_provenance(mut document: Value) -> Value {
    let provenance = document.as_object_mut().and_then(|document| document.remove("provenance"));
    drop(provenance);
    if let Some(patches) = document.get_mut("patches").and_then(Value::as_array_mut) {
        patches.iter_mut().for_each(|patch| *patch = without_provenance(patch.take()));
    }
    document
}

fn rounded(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(key, value)| {
                let value = if VOLATILE.contains(&key.as_str()) { "…".into() } else { rounded(value) };
                (key, value)
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Number(number) => number.as_f64().filter(|_| number.is_f64()).map_or(Value::Number(number), round),
        other => other,
    }
}

/// Six significant digits, and nothing below 1e-6: what fits agree on.
fn round(number: f64) -> Value {
    if number.abs() < 1e-6 {
        return 0.0.into();
    }
    format!("{number:.5e}").parse::<f64>().map_or(Value::Null, Value::from)
}

/// JSON in which whatever fits on a line stays on one.
fn compact(value: &Value, indent: usize) -> String {
    let flat = value.to_string();
    let inner = " ".repeat(indent + 2);
    let lines: Vec<String> = match value {
        _ if flat.chars().count() + indent <= 110 => return flat,
        Value::Array(items) => items.iter().map(|item| format!("{inner}{}", compact(item, indent + 2))).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| format!("{inner}\"{key}\": {}", compact(value, indent + 2))).collect()
        }
        _ => return flat,
    };
    let (open, close) = if value.is_array() { ('[', ']') } else { ('{', '}') };
    format!("{open}\n{}\n{}{close}", lines.join(",\n"), " ".repeat(indent))
}

/// A folder for one test, removed at its end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nextstat-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("text").to_owned()
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        let bytes = fs::read(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        // The description of a file of toys is not a document.
        if !name.ends_with(".npy.json") {
            require_valid(&bytes);
        }
        bytes
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
