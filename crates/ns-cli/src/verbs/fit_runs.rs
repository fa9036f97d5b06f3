//! The end of a run of many fits, of toys or of data sets.

use crate::error::CliError;
use crate::output::reporter::{Notice, alarm_if};
use crate::output::{OutputArgs, Paint, Reporter, RowsDocument, with_command};
use nextstat::{Analysis, Answer};
use serde_json::{Value, json};
use std::path::Path;

/// Ends the document of a run: `whole` makes it from its provenance. If the device failed, the
/// document has the error.
pub(super) fn end_document<T>(
    rows: RowsDocument,
    analysis: &Analysis,
    answer: Result<Answer<T>, nextstat::Error>,
    whole: impl FnOnce(Value) -> Value,
) -> Result<(), CliError> {
    let device = match &answer {
        Ok(answer) => answer.device.clone(),
        Err(error) => Some(json!({"error": error.to_string()})),
    };
    let mut document = whole(with_command(&json!({"provenance": analysis.provenance()}))["provenance"].clone());
    if let Some(device) = device {
        document["device"] = device;
    }
    rows.end(&document)?;
    Ok(answer.map(|_| ())?)
}

/// How a run ended, for its summary.
pub(super) struct RunEnd<'a> {
    /// The lines that say what the fits are of.
    pub(super) head: String,
    /// The NumPy file of the result, if it goes to one.
    pub(super) file: Option<&'a Path>,
    pub(super) is_interrupted: bool,
    /// Whether a fit did not converge.
    pub(super) is_failure: bool,
    pub(super) warnings: Vec<String>,
}

/// Writes the summary of a run: what it was computed with, then the text of `summary`, which is
/// given the warnings.
pub(super) fn report(ended: RunEnd<'_>, output: &OutputArgs, summary: impl Fn(Option<&str>, Paint) -> String) {
    let RunEnd { head, file, is_interrupted, is_failure, mut warnings } = ended;
    if let (Some(path), Some(first)) = (file.filter(|_| is_interrupted), warnings.first_mut()) {
        first.push_str(&format!("; they are in `{}.part`, and `--resume` continues", path.display()));
    }
    let alarm = alarm_if(!warnings.is_empty(), &warnings);
    let notice = Notice { alarm: alarm.clone(), is_failure };
    Reporter::new(output).summary_or_warning(notice, |paint| head.clone() + &summary(alarm.as_deref(), paint));
}
