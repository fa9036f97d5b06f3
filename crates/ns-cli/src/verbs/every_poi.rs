//! Results for each of several parameters of interest: one document, and a table for each.

use crate::error::CliError;
use crate::output::reporter::{Notice, conditions};
use crate::output::{Paint, Reporter, ResultArgs};
use nextstat::alarm::Alarm;
use nextstat::pois::PoiResults;
use nextstat::{Answer, Document};

/// Writes the document, and `summary` of each answer below what all of them have in common.
pub(crate) fn write<T: Document + Alarm>(
    answer: &Answer<PoiResults<T>>,
    output: &ResultArgs,
    summary: impl Fn(&Answer<T>, Paint) -> String,
) -> Result<(), CliError> {
    let document = answer.document();
    output.write(&document)?;
    let notice = Notice { alarm: answer.result.alarm(), is_failure: document["converged"] == false };
    Reporter::new(output).summary_or_warning(notice, |paint| {
        let tables: Vec<String> = answer.result.answers.iter().map(|answer| summary(answer, paint)).collect();
        conditions(&answer.analysis) + &tables.join("\n")
    });
    Ok(())
}
