//! What a page shows: documents without what it does not need, and numbers with seven digits.

use nextstat::document::{headed, to_document};
use nextstat::full_report::{FullReport, ReportPart};
use nextstat::yields::Overview;
use nextstat::{Answer, Document};
use ns_core::check::Finding;
use ns_core::summary::WorkspaceSummary;
use serde_json::{Number, Value, json};

/// Digits after the first of the numbers in a page.
const DECIMALS: usize = 6;

/// Keys of a fit that a page does not show, or shows otherwise.
const UNSHOWN: [&str; 3] = ["correlation", "mle_parameters", "minima"];

/// Returns what the page of a report shows: `title`, the documents `report`, `inspect` and `check`,
/// lists of the documents `ranking`, `scans` and `limits` with one for each parameter of interest,
/// `correlation`, `minima`, and in `absent` why a part is not there.
#[must_use]
pub fn data(answer: &Answer<FullReport>) -> Value {
    let report = &answer.result;
    let mut page = overview(&report.overview, &report.summary, &report.findings);
    let parts = [
        ("ranking", documents(&report.rankings)),
        ("scans", documents(&report.scans)),
        ("limits", documents(&report.limits)),
    ];
    for (name, part) in parts {
        match part {
            Ok(documents) => page[name] = documents,
            Err(reason) => page["absent"][name] = json!(reason),
        }
    }
    round(&mut page);
    page
}

/// Returns what the page of a report shows of one fit, with all digits: as [`data`], without
/// `ranking`, `scans` and `limits`.
#[must_use]
pub fn overview(answer: &Answer<Overview>, summary: &WorkspaceSummary, findings: &[Finding]) -> Value {
    let mut report = answer.document();
    let minima = report["fit"].get("minima").cloned().unwrap_or_default();
    remove(&mut report["fit"], &UNSHOWN);
    let absent = if minima.is_null() { json!({"minima": "only one starting point was tried"}) } else { json!({}) };
    json!({
        "title": title(&report),
        "report": report,
        "inspect": headed("inspect", to_document(summary)),
        "check": answer.analysis.compiled().findings_document(findings),
        "correlation": correlation(answer),
        "minima": minima,
        "absent": absent,
    })
}

/// Returns the document `report` of [`overview`] alone.
#[must_use]
pub fn shown_report(answer: &Answer<Overview>) -> Value {
    let mut report = answer.document();
    remove(&mut report["fit"], &UNSHOWN);
    report
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
fn correlation(answer: &Answer<Overview>) -> Value {
    let fit = &answer.result.yields.fit.result;
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
