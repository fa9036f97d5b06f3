//! What `hypotest-toys` says: CLs with its errors, what was tested, and what to beware of.

use std::fmt::Write as _;

use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::HypotestToys;
use ns_translate::toys::{Shard, ToyRunIdentity};
use serde_json::{Value, json};

use super::hypotest::BAND;
use super::number::{optional, significant};
use super::table::{Align, table};
use super::talk::{Paint, Talk, harmless};
use super::toys::FIXED_AUX;
use super::{to_document, write_json};
use crate::args::OutputArgs;
use crate::command::Status;
use crate::error::CliError;

/// The statistic that documents call `word`.
pub(crate) fn statistic(word: &str) -> Option<TestStatistic> {
    let known = [TestStatistic::Q, TestStatistic::QTilde, TestStatistic::Q0];
    known.into_iter().find(|statistic| to_document(statistic) == word)
}

/// Writes the result; `interrupted` has the numbers of toys done and wanted.
pub(crate) fn write(
    identity: &ToyRunIdentity,
    mut result: HypotestToys,
    interrupted: Option<(u64, u64)>,
    (device, output): (Option<Value>, &OutputArgs),
) -> Result<Status, CliError> {
    if identity.settings["aux"] == "fixed" {
        result.warnings.insert(0, FIXED_AUX.to_owned());
    }
    if identity.shard != Shard::WHOLE {
        let Shard { index, of } = identity.shard;
        result.warnings.insert(0, format!("these are the toys of share {index} of {of} only; `toys merge` joins them"));
    }
    if let Some(limit) = identity.settings["stop_at_error"].as_f64().filter(|_| interrupted.is_none()) {
        let error = result.cls_observed_error;
        result.warnings.extend(
            (error.is_nan() || error >= limit)
                .then(|| format!("the error of CLs did not come below {limit} with the toys that were allowed")),
        );
    }
    if let Some((done, wanted)) = interrupted {
        result.warnings.insert(0, format!("interrupted after {done} of {wanted} toys"));
    }
    let mut document = document(identity, &result);
    if let Some(device) = device {
        document["device"] = device;
    }
    write_json(&document, output)?;
    let n_failed = result.n_failed[0] + result.n_failed[1];
    let alarm = (!result.warnings.is_empty()).then(|| result.warnings.join("; "));
    let poi = identity.settings["poi"].as_str().unwrap_or("mu");
    Talk::new(output).say_or_warn(alarm.as_deref(), |paint| summary(poi, &result, paint));
    Ok(if interrupted.is_some() { Status::Interrupted } else { Status::positive_if(n_failed == 0) })
}

fn document(identity: &ToyRunIdentity, result: &HypotestToys) -> Value {
    let Value::Object(mut document) = to_document(result) else { return Value::Null };
    for key in ["measurement", "seed", "aux", "thrown_at", "par_names", "nextstat_version"] {
        document.insert(key.to_owned(), identity.settings[key].clone());
    }
    document.insert("parameter".to_owned(), identity.settings["poi"].clone());
    let counts = ["CLsb_obs", "CLb_obs"].map(|key| (key.to_owned(), document.remove(key).unwrap_or_default()));
    for ((key, _), tail) in counts.iter().zip([result.clsb, result.clb]) {
        document.insert(key.clone(), json!(tail.value));
        document.insert(format!("{key}_error"), json!(tail.error));
    }
    document.insert("tail_probabilities".to_owned(), Value::Object(counts.into_iter().collect()));
    document.insert("n_toys_wanted".to_owned(), json!(identity.settings["n_toys_of_hypotheses"]));
    Value::Object(document)
}

fn summary(poi: &str, result: &HypotestToys, paint: Paint) -> String {
    let observed = result.observed;
    let [tested, alternative] = result.n_toys;
    let mut text = format!(
        "test of `{}` = {} with {tested} and {alternative} toys\n\n",
        harmless(poi),
        significant(observed.mu, 6)
    );
    let name = if observed.test_statistic == TestStatistic::Q0 { "p-value" } else { "CLs" };
    let row = |label: &str, value: f64, error: f64| {
        vec![label.to_owned(), optional(Some(value), 4), optional(Some(error), 2)]
    };
    let mut rows = vec![row("observed", result.cls_observed, result.cls_observed_error)];
    let band = BAND.iter().zip(result.cls_expected.iter().zip(result.cls_expected_errors));
    rows.extend(band.map(|(label, (value, error))| row(label, *value, error)));
    text.push_str(&table(&[("", Align::Left), (name, Align::Right), ("error", Align::Right)], &rows));
    let (statistic, best) = (significant(observed.value, 6), significant(observed.mu_hat, 5));
    let _ = writeln!(text, "\n  best fit {best}, statistic {statistic}");
    for warning in &result.warnings {
        let _ = writeln!(text, "{} {}", paint.alarm("warning:"), harmless(warning));
    }
    text
}
