//! Which tables a document has, and what all of them have in common: captions and notes.

use super::document::Place;
use super::entries::Entries;
use super::{Column, Row, Table, TableError, coverage, curves, fits, goodness, limits, ranking, signals, toys, yields};
use crate::number::significant;

/// The beginning of the names of schemas.
const URN: &str = "urn:nextstat:schema:";

/// What is said of a result some of whose fits did not converge.
pub(super) const LEFT_OUT: &str = "numbers of fits that did not converge are left out";

/// What a table shows, without what it has in common with the others of its document.
pub(super) struct Contents {
    pub(super) caption: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    pub(super) is_matrix: bool,
}

/// Makes a table of a document.
pub(super) type Maker<'a> = Box<dyn Fn() -> Result<Contents, TableError> + 'a>;

/// Returns whether a document is that of a fit.
pub(super) fn is_fit(document: &serde_json::Value) -> bool {
    kind(&Place::root(document)).is_ok_and(|kind| kind == "fit")
}

/// Returns the table `wanted` of `document`, or its first.
pub(super) fn table(document: &serde_json::Value, wanted: Option<&str>) -> Result<Table, TableError> {
    let root = Place::root(document);
    let kind = kind(&root)?;
    let none = || TableError::NoTables { kind: kind.to_owned() };
    let (tables, mut notes) = match kind {
        "report" => (yields::of_report(&root), Vec::new()),
        "yields" => (yields::tables(&root, &root), Vec::new()),
        _ => {
            let entries = Entries::read(&root)?.ok_or_else(none)?;
            let notes = entries.notes.clone();
            (of_entries(&root, entries), notes)
        }
    };
    let found = match wanted {
        None => tables.first(),
        Some(name) => tables.iter().find(|(known, _)| *known == name),
    };
    let Some((name, make)) = found else {
        let Some(wanted) = wanted else { return Err(none()) };
        return Err(TableError::NoSuchTable {
            name: wanted.to_owned(),
            known: tables.iter().map(|(name, _)| *name).collect(),
        });
    };
    let Contents { caption, columns, rows, is_matrix } = make()?;
    notes.splice(0..0, notes_of(&root)?);
    Ok(Table {
        name: (*name).to_owned(),
        caption: format!("{caption}{}", conditions(&root)),
        label: format!("tab:{name}"),
        columns,
        rows,
        notes,
        converged: root.has_converged(),
        is_matrix,
        has_given_caption: false,
    })
}

/// Returns the names of the tables that results of the schema `kind` may have, the first by
/// default; none for one without tables. Scans of one parameter and of two have different ones.
pub(super) fn names(kind: &str) -> &'static [&'static str] {
    match kind {
        "fit" => &["parameters", "pulls", "correlation", "covariance"],
        "report" => &["parameters", "pulls", "correlation", "yields", "prefit", "postfit", "bins", "goodness"],
        "yields" => &["yields", "prefit", "postfit", "bins"],
        "ranking" => &["ranking", "groups", "breakdown"],
        "limit" | "limit-scan" => &["limits"],
        // With `--calctype toybased` the verb `hypotest` has the result of toys.
        "hypotest" => &["tests", "p_values"],
        "significance" => &["significance"],
        "scan" => &["scan", "intervals", "contours"],
        "contours" => &["contours"],
        "gof" | "comparison" => &["goodness"],
        "hypotest-toys" => &["tests", "p_values"],
        "exclusion" => &["points", "contours"],
        "coverage" => &["coverage"],
        "signal-scan" => &["signals"],
        "region" => &["contours", "points"],
        "toys" => &["toys"],
        "fits" => &["parameters", "data_sets", "correlation"],
        _ => &[],
    }
}

/// Returns the name of the schema of a document.
fn kind<'a>(root: &Place<'a>) -> Result<&'a str, TableError> {
    let urn = root.value.get("$schema").and_then(|urn| urn.as_str()).and_then(|urn| urn.strip_prefix(URN));
    urn.map(|name| name.split(':').next().unwrap_or(name)).ok_or(TableError::NotAResult)
}

/// Returns the names of the tables of results, and how to make them.
fn of_entries<'a>(root: &Place<'a>, entries: Entries<'a>) -> Vec<(&'static str, Maker<'a>)> {
    let (kind, data) = (entries.kind, data(root));
    let mut tables: Vec<(&'static str, Maker<'a>)> = Vec::new();
    let only = entries.only();
    match kind {
        "limit" => tables.push(("limits", Box::new(move || limits::limits(&entries, &data)))),
        "hypotest" => tables.push(("tests", Box::new(move || limits::tests(&entries, &data)))),
        "hypotest-toys" => tables.push(("tests", Box::new(move || toys::tests(&entries, &data)))),
        "coverage" => tables.push(("coverage", Box::new(move || coverage::table(&entries)))),
        "significance" => tables.push(("significance", Box::new(move || limits::significance(&entries, &data)))),
        "gof" | "comparison" => tables.push(("goodness", Box::new(move || goodness::table(&entries)))),
        "fit" => tables.push(("parameters", Box::new(move || fits::parameters(&entries)))),
        "ranking" => {
            let [for_groups, for_breakdown] = [entries.clone(), entries.clone()];
            tables.push(("ranking", Box::new(move || ranking::ranking(&entries))));
            tables.push(("groups", Box::new(move || ranking::groups(&for_groups))));
            tables.push(("breakdown", Box::new(move || ranking::breakdown(&for_breakdown))));
        }
        _ => {}
    }
    tables.extend(only.map(|result| of_one(root, kind, result)).unwrap_or_default());
    tables
}

/// Returns the tables that only a document of one result has, and how to make them.
fn of_one<'a>(root: &Place<'a>, kind: &str, result: Place<'a>) -> Vec<(&'static str, Maker<'a>)> {
    type Make<'a> = fn(&Place<'a>) -> Result<Contents, TableError>;
    let data = data(root);
    let one_parameter = result.get("parameter").is_some();
    let made: &[(&'static str, Make<'a>)] = match kind {
        "fit" => &[
            ("pulls", fits::pulls),
            ("correlation", |fit| fits::matrix(fit, "correlation")),
            ("covariance", |fit| fits::matrix(fit, "covariance")),
        ],
        "hypotest-toys" => &[("p_values", toys::p_values)],
        "toys" => &[("toys", toys::toys)],
        "fits" => &[("parameters", toys::spread), ("data_sets", toys::data_sets), ("correlation", toys::correlation)],
        "scan" if one_parameter => &[("scan", curves::scan), ("intervals", curves::intervals)],
        "scan" => &[("scan", curves::scan), ("contours", curves::contours)],
        "contours" => &[("contours", curves::contours)],
        "signal-scan" => &[("signals", signals::table)],
        "region" => &[("contours", curves::region), ("points", curves::region_points)],
        "exclusion" => {
            let (other, of_data) = (result.clone(), data.clone());
            return vec![
                ("points", Box::new(move || curves::points(&result, &data))),
                ("contours", Box::new(move || curves::exclusion(&other, &of_data))),
            ];
        }
        _ => &[],
    };
    let maker = |(name, make): &(&'static str, Make<'a>)| {
        let (make, result) = (*make, result.clone());
        (*name, Box::new(move || make(&result)) as Maker<'a>)
    };
    made.iter().map(maker).collect()
}

/// Returns the name of the data: `observed`, or what they are instead.
pub(super) fn data(root: &Place<'_>) -> String {
    let source = root.value.pointer("/provenance/data/source").and_then(|source| source.as_str());
    match source {
        Some("asimov") => "Asimov data".to_owned(),
        Some("given") => "given data".to_owned(),
        _ => "observed".to_owned(),
    }
}

/// Returns what a caption must say of data that are not the observed ones.
fn conditions(root: &Place<'_>) -> String {
    let Some(data) = root.value.pointer("/provenance/data") else { return String::new() };
    match data["source"].as_str() {
        Some("asimov") => {
            let values = data["parameters"].as_object().into_iter().flatten();
            let value = |(name, value): (&String, &serde_json::Value)| {
                Some(format!("{name} = {}", significant(value.as_f64()?, 6)))
            };
            let at = values.filter_map(value).collect::<Vec<_>>().join(", ");
            if at.is_empty() { " Asimov data.".to_owned() } else { format!(" Asimov data ({at}).") }
        }
        Some("given") => " Data given by the caller.".to_owned(),
        _ => String::new(),
    }
}

/// Returns how the numbers were computed, and the warnings.
fn notes_of(root: &Place<'_>) -> Result<Vec<String>, TableError> {
    let text = |pointer: &str| root.value.pointer(pointer).and_then(|text| text.as_str());
    let mut notes = Vec::new();
    if let Some(digest) = text("/provenance/workspace/digest") {
        let version = text("/nextstat_version").unwrap_or_default();
        notes.push(format!("nextstat {version}, workspace with SHA-256 digest {digest}"));
    }
    let settings = root.value.pointer("/provenance/settings").and_then(|settings| settings.as_object());
    notes.extend(settings.into_iter().flatten().map(|(name, value)| format!("{name}: {value}")));
    if !root.has_converged() {
        notes.push(format!("NOT CONVERGED: {LEFT_OUT}"));
    }
    for warning in root.get("warnings").map_or(Ok(Vec::new()), |warnings| warnings.items())? {
        notes.push(format!("warning: {}", warning.text()?));
    }
    Ok(notes)
}
