//! `nextstat limit --at`: upper limits with another parameter fixed at each of several values.

use super::every_poi;
use super::hypotest::BAND;
use super::limit::confidence;
use crate::error::CliError;
use crate::output::reporter::warnings;
use crate::output::table::{Align, table};
use crate::output::{Progress, Reporter, ResultArgs, escape};
use crate::status::Status;
use nextstat::limit_scan::{LimitScan, LimitScanRequest};
use nextstat::number::{optional, significant};
use nextstat::{Analysis, Answer};

/// Finds the limits on every parameter of interest but the one that is fixed.
pub(super) fn run(analysis: &Analysis, request: &LimitScanRequest, output: &ResultArgs) -> Result<Status, CliError> {
    let progress = Progress::new(Reporter::new(output), "limits");
    let answer = analysis.limit_scans(request, &progress)?;
    drop(progress);
    every_poi::write(&answer, output, |answer, _| summary(answer, request.limit.level.cls()))?;
    let scans = &answer.result.answers;
    let is_interrupted = Progress::is_interrupted() && scans.iter().any(|scan| !scan.result.is_complete());
    let is_good = scans.iter().all(|scan| scan.result.is_converged());
    Ok(if is_interrupted { Status::Interrupted } else { Status::done_if(is_good) })
}

/// Formats a row for each value: the limits, observed and expected.
fn summary(answer: &Answer<LimitScan>, level: f64) -> String {
    let scan = &answer.result;
    let (name, parameter) = (escape(&answer.model().parameters.names[scan.poi]), escape(&scan.parameter));
    let level = confidence(level);
    let label = answer.analysis.settings().data.label();
    let columns = [parameter.as_str(), label].into_iter().chain(BAND).map(|column| (column, Align::Right));
    let rows = scan.values.iter().zip(&scan.limits).filter_map(|(value, limit)| {
        let limit = limit.as_ref()?;
        let limits = std::iter::once(limit.observed).chain(limit.expected).map(|limit| optional(limit, 5));
        Some(std::iter::once(significant(*value, 5)).chain(limits).collect())
    });
    let table = table(&columns.collect::<Vec<_>>(), &rows.collect::<Vec<_>>());
    let heading = format!("upper limits on `{name}` at {level} confidence level (CLs), with `{parameter}` fixed");
    format!("{heading}\n\n{table}{}", warnings(&scan.warnings))
}
