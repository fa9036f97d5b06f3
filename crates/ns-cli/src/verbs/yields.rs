//! `nextstat yields`: the yields of every channel before and after a fit, or as a stored fit
//! predicts them.

use super::fit::verdict;
use super::report::tables;
use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::{PredictionArgs, SetupArgs, ThreadArgs, in_fit, stored_fit};
use crate::error::CliError;
use crate::output::reporter::{Notice, conditions, warnings};
use crate::output::{Reporter, ResultArgs};
use crate::status::Status;
use clap::Args;
use nextstat::alarm::Alarm;
use nextstat::projection::Projection;
use nextstat::yields::Yields;
use nextstat::{Analysis, Answer};
use std::path::{Path, PathBuf};

/// Arguments of `yields`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct YieldsArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Predict with the fit that `nextstat fit --covariance` or `nextstat report` wrote to this
    /// file, instead of fitting; parameters are matched by name, so the fit may be of other
    /// channels
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["fix", "bounds", "fit_channels", "mask", "multi_start", "fit_blinded"]
    )]
    from: Option<PathBuf>,

    #[command(flatten)]
    shown: PredictionArgs,

    /// Show the yields of every bin in the table, not only their sums over each channel; the result
    /// has both
    #[arg(long)]
    bins: bool,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,
}

impl Command for YieldsArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output).reading_paths(self.from.as_slice())
    }

    fn run(self) -> Result<Status, CliError> {
        match &self.from {
            None => self.fitted(&self.setup.prediction(&self.threads, &self.shown)?),
            Some(path) => self.stored(&self.setup.projection(&self.threads, &self.shown)?, path),
        }
    }
}

impl YieldsArgs {
    /// Predicts with a fit to the data.
    fn fitted(&self, analysis: &Analysis) -> Result<Status, CliError> {
        let answer = analysis.yields()?;
        self.output.write(&answer.document())?;
        let Yields { fit, prefit, postfit } = &answer.result;
        let notice = Notice { alarm: answer.result.alarm(), is_failure: !fit.result.converged };
        Reporter::new(&self.output).summary_or_warning(notice, |paint| {
            let tables = tables(analysis, prefit, postfit, self.bins);
            let said = tables + &warnings(&fit.result.warnings);
            // A bad verdict is first and last, as in the summary of a fit.
            let bad = (!fit.result.converged).then(|| format!("{}\n", verdict(&fit.result, paint)));
            let last = bad.as_ref().map(|verdict| format!("\n{verdict}"));
            conditions(analysis) + &bad.unwrap_or_default() + &said + &last.unwrap_or_default()
        });
        Ok(Status::done_if(fit.result.converged))
    }

    /// Predicts with the fit in the file `path`.
    fn stored(&self, analysis: &Analysis, path: &Path) -> Result<Status, CliError> {
        let fit = stored_fit(path)?;
        let answer = analysis.project(&fit).map_err(in_fit(path))?;
        self.output.write(&answer.document())?;
        Reporter::new(&self.output).summary(|_| projected(&answer, self.bins));
        Ok(Status::Done)
    }
}

/// Formats what a stored fit predicts, and which parameters it does not have.
fn projected(answer: &Answer<Projection>, has_bins: bool) -> String {
    let Projection { prefit, postfit, warnings: said, .. } = &answer.result;
    let tables = tables(&answer.analysis, prefit, postfit, has_bins);
    conditions(&answer.analysis) + &tables + &warnings(said)
}
