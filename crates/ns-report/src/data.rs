//! What a page shows: documents without what it does not need, and numbers with seven digits.

use nextstat::document::{headed, to_document};
use nextstat::full_report::{FullReport, ReportPart};
use nextstat::{Answer, Document};
use serde_json::{Map, Number, Value, json};

/// Digits after the first of the numbers in a page.
const DECIMALS: usize = 6;

/// Returns what the page of a report shows: `title`, the documents `report`, `inspect` and `check`,
/// lists of the documents `ranking`, `scans` and `limits` with one for each parameter of interest,
/// `correlation`, `minima`, and in `absent` why a part is not there.
#[must_use]
pub fn data(answer: &Answer<FullReport>) -> Value {
    let report = &answer.result;
    let mut overview = report.overview.document();
    let minima = overview["fit"].get("minima").cloned().unwrap_or_default();
    remove(&mut overview["fit"], &["correlation", "mle_parameters", "minima"]);
    let mut page = json!({
        "title": title(&overview),
        "report": overview,
        "inspect": headed("inspect", to_document(&report.summary)),
        "check": answer.analysis.compiled().findings_document(&report.findings),
        "correlation": correlation(report),
        "minima": minima,
    });
    let mut absent = Map::new();
    if page["minima"].is_null() {
        absent.insert("minima".to_owned(), json!("only one starting point was tried"));
    }
    let parts = [
        ("ranking", documents(&report.rankings)),
        ("scans", documents(&report.scans)),
        ("limits", documents(&report.limits)),
    ];
    for (name, part) in parts {
        match part {
            Ok(documents) => page[name] = documents,
            Err(reason) => drop(absent.insert(name.to_owned(), json!(reason))),
        }
    }
    page["absent"] = Value::Object(absent);
    round(&mut page);
    page
}

/// Returns the name of the file, if there is one, and of the measurement.
fn title(overview: &Value) -> String {
    let measurement = overview["measurement"].as_str().unwrap_or_default();
    match overview["provenance"]["workspace"]["file"].as_str() {
        Some(file) if !measurement.is_empty() => format!("{file}: {measurement}"),
        file => file.unwrap_or(measurement).to_owned(),
    }
}

fn documents<T: Document>(part: &ReportPart<T>) -> Result<Value, String> {
    Ok(part.as_ref().map_err(Clone::clone)?.iter().map(Answer::result_document).collect())
}

fn remove(document: &mut Value, keys: &[&str]) {
    if let Value::Object(document) = document {
        keys.iter().for_each(|key| drop(document.remove(*key)));
    }
}

/// Returns the correlations below the diagonal (row i has i entries) in millionths, `null` where
/// a parameter has no uncertainty; `null` without a covariance.
fn correlation(report: &FullReport) -> Value {
    let fit = &report.overview.result.yields.fit.result;
    let Some(matrix) = fit.correlation() else { return Value::Null };
    let n = fit.par_names.len();
    let is_known = |i: usize| fit.uncertainties[i].is_some_and(|width| width > 0.0);
    let entry = |i: usize, j: usize| (is_known(i) && is_known(j)).then(|| (1e6 * matrix[i * n + j]).round() as i64);
    let row = |i: usize| (0..i).map(|j| entry(i, j)).collect::<Vec<_>>();
    json!({"par_names": fit.par_names, "millionths": (0..n).map(row).collect::<Vec<_>>()})
}

/// Rounds every number that is not whole.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().and_then(|number| format!("{number:.DECIMALS$e}").parse().ok());
            if let Some(rounded) = rounded.and_then(Number::from_f64) {
                *number = rounded;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        _ => {}
    }
}
