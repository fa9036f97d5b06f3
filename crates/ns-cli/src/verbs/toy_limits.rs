//! `nextstat limit --toys` and `nextstat significance --toys`: limits and significances by toys.

use super::every_poi;
use super::hypotest::BAND;
use super::limit::confidence;
use crate::error::CliError;
use crate::output::reporter::warnings;
use crate::output::table::{Align, table};
use crate::output::{Progress, Reporter, ResultArgs, escape};
use crate::status::Status;
use nextstat::number::{best_fit, optional, significant};
use nextstat::toy_limits::{ToyLimitRequest, ToySignificanceRequest};
use nextstat::{Analysis, Answer};
use ns_inference::toys::{LimitCriterion, ToyLimit, ToySignificanceResult};
use std::fmt::Write;
use std::num::NonZeroUsize;

/// Finds the limits on every parameter of interest by toys.
pub(super) fn limit(analysis: &Analysis, request: &ToyLimitRequest, output: &ResultArgs) -> Result<Status, CliError> {
    let progress = Progress::new(Reporter::new(output), "toys");
    let answer = analysis.every_poi(NonZeroUsize::MIN, |analysis| analysis.toy_limit(request, &progress))?;
    drop(progress);
    every_poi::write(&answer, output, |answer, _| limit_summary(answer))?;
    let results = answer.result.answers.iter().map(|answer| &answer.result);
    Ok(status(results.map(|result| (result.is_complete, result.converged))))
}

/// Finds the significance of every parameter of interest by toys.
pub(super) fn significance(
    analysis: &Analysis,
    request: &ToySignificanceRequest,
    output: &ResultArgs,
) -> Result<Status, CliError> {
    let progress = Progress::new(Reporter::new(output), "toys");
    let answer = analysis.every_poi(NonZeroUsize::MIN, |analysis| analysis.toy_significance(request, &progress))?;
    drop(progress);
    every_poi::write(&answer, output, |answer, _| significance_summary(answer))?;
    let results = answer.result.answers.iter().map(|answer| &answer.result);
    Ok(status(results.map(|result| (result.is_complete, result.converged))))
}

/// Returns the status of results, each of which is complete and has converged, or not.
pub(super) fn status(results: impl Iterator<Item = (bool, bool)>) -> Status {
    let results: Vec<(bool, bool)> = results.collect();
    if results.iter().any(|(is_complete, _)| !is_complete) {
        return Status::Interrupted;
    }
    Status::done_if(results.iter().all(|(_, converged)| *converged))
}

/// Formats the limits with their errors, next to the asymptotic ones.
fn limit_summary(answer: &Answer<ToyLimit>) -> String {
    let result = &answer.result;
    let (name, level) = (escape(&result.poi.name), confidence(result.level));
    let criterion = match result.criterion {
        LimitCriterion::Cls => "CLs",
        LimitCriterion::Clsb => "CLs+b",
    };
    let n_toys: u64 = result.n_toys.iter().sum();
    let mut text = format!("upper limits on `{name}` at {level} confidence level ({criterion}), by {n_toys} toys\n\n");
    let row = |label: &str, value: Option<f64>, error: Option<f64>, asymptotic: Option<f64>| {
        vec![label.to_owned(), optional(value, 5), optional(error, 2), optional(asymptotic, 5)]
    };
    let label = answer.analysis.settings().data.label();
    let mut rows = vec![row(label, result.observed, result.observed_error, result.asymptotic.observed)];
    for (i, label) in BAND.iter().enumerate().filter(|(i, _)| result.expected[*i].is_some()) {
        rows.push(row(label, result.expected[i], result.expected_errors[i], result.asymptotic.expected[i]));
    }
    let columns = [("", Align::Left), ("limit", Align::Right), ("error", Align::Right), ("asymptotic", Align::Right)];
    text.push_str(&table(&columns, &rows));
    let _ = writeln!(text, "\n  best fit {}", best_fit(result.poi.bestfit));
    text + &warnings(&result.warnings)
}

/// Formats Z and p with their errors and bounds.
fn significance_summary(answer: &Answer<ToySignificanceResult>) -> String {
    let result = &answer.result;
    let mut text = format!("significance of `{}` > 0, by {} toys\n\n", escape(&result.poi.name), result.n_toys);
    let rows = [
        vec![
            "Z".to_owned(),
            optional(result.z_observed, 4),
            optional(result.z_observed_error, 2),
            format!("> {}", significant(result.z_observed_lower, 4)),
        ],
        vec![
            "p-value".to_owned(),
            optional(Some(result.p0_observed), 4),
            optional(Some(result.p0_observed_error), 2),
            format!("< {}", significant(result.p0_observed_upper, 4)),
        ],
    ];
    let columns = [("", Align::Left), ("value", Align::Right), ("error", Align::Right), ("at 95 %", Align::Right)];
    text.push_str(&table(&columns, &rows));
    if let Some(sampling) = &result.importance_sampling {
        let _ = writeln!(
            text,
            "\n  same error as {} toys of the background alone",
            significant(sampling.n_toys_without, 2)
        );
    }
    let _ = writeln!(text, "\n  best fit {}", best_fit(result.poi.bestfit));
    text + &warnings(&result.warnings)
}
