//! What `hypotest`, `significance` and `limit` say to people.

use std::fmt::Write;

use ns_inference::hypotest::{HypotestResult, SignificanceResult};
use ns_inference::limit::LimitResult;

use serde_json::Value;

use super::number::{optional, significant};
use super::table::{Align, table};
use super::talk::{harmless, warnings};

/// How the five expected values are called.
pub(super) const BAND: [&str; 5] = ["-2 sigma", "-1 sigma", "expected", "+1 sigma", "+2 sigma"];

/// CLs, its band, and what the fits say.
pub(crate) fn summary(result: &HypotestResult) -> String {
    let name = harmless(&result.parameter);
    let mut text = format!("test of `{name}` = {}\n\n", significant(result.mu, 6));
    let mut rows = vec![row("observed", [result.cls_obs, result.clsb_obs, result.clb_obs])];
    for (i, label) in BAND.iter().enumerate() {
        let at = |band: Option<[f64; 5]>| band.map(|band| band[i]);
        rows.extend(
            result.cls_exp.is_some().then(|| row(label, [at(result.cls_exp), at(result.clsb_exp), at(result.clb_exp)])),
        );
    }
    let columns = [("", Align::Left), ("CLs", Align::Right), ("CLs+b", Align::Right), ("CLb", Align::Right)];
    text.push_str(&table(&columns, &rows));
    let _ = writeln!(text, "\n  best fit {}", significant(result.mu_hat, 5));
    text + &warnings(&result.warnings)
}

/// Z and p, observed and expected.
pub(crate) fn significance(result: &SignificanceResult) -> String {
    let name = harmless(&result.parameter);
    let expected = format!("expected at `{name}` = {}", significant(result.mu_expected, 6));
    let median = result.p0_exp.map(|band| band[2]);
    let rows = [
        vec!["observed".to_owned(), optional(result.z_obs, 4), optional(result.p0_obs, 4)],
        vec![expected, optional(result.z_exp, 4), optional(median, 4)],
    ];
    let mut text = format!("significance of `{name}` > 0\n\n");
    text.push_str(&table(&[("", Align::Left), ("Z", Align::Right), ("p-value", Align::Right)], &rows));
    let _ = writeln!(text, "\n  best fit {}", significant(result.mu_hat, 5));
    text + &warnings(&result.warnings)
}

/// The limits.
pub(crate) fn limit(result: &LimitResult) -> String {
    let (name, level) = (harmless(&result.parameter), confidence(result.level));
    let mut text = format!("upper limits on `{name}` at {level} confidence level (CLs)\n\n");
    let mut rows = vec![vec!["observed".to_owned(), optional(result.observed, 6)]];
    rows.extend(BAND.iter().zip(result.expected).map(|(label, value)| vec![(*label).to_owned(), optional(value, 6)]));
    text.push_str(&table(&[("", Align::Left), ("limit", Align::Right)], &rows));
    let _ = writeln!(text, "\n  best fit {}", significant(result.mu_hat, 5));
    text + &warnings(&result.warnings)
}

/// The confidence level of a limit where CLs is `level`, such as 95 %; what would round to 100 % is written as a difference from 1.
fn confidence(level: f64) -> String {
    let percent = significant(100.0 * (1.0 - level), 4);
    if percent == "100" { format!("1 - {}", significant(level, 4)) } else { format!("{percent} %") }
}

fn row(label: &str, values: [Option<f64>; 3]) -> Vec<String> {
    std::iter::once(label.to_owned()).chain(values.map(|value| optional(value, 4))).collect()
}

/// One line per patch: what is observed and what is expected in the middle, of CLs or of limits.
pub(crate) fn patches(documents: &[Value]) -> String {
    let number = |value: &Value| optional(value.as_f64(), 5);
    let row = |document: &Value| {
        let either = |keys: [&str; 2]| keys.map(|key| document[key].clone()).into_iter().find(|value| !value.is_null());
        let expected = either(["CLs_exp", "expected"]).map_or(Value::Null, |band| band[2].clone());
        let observed = either(["CLs_obs", "observed"]).unwrap_or_default();
        vec![harmless(document["patch"].as_str().unwrap_or_default()), number(&observed), number(&expected)]
    };
    let rows: Vec<_> = documents.iter().map(row).collect();
    table(&[("patch", Align::Left), ("observed", Align::Right), ("expected", Align::Right)], &rows)
}
