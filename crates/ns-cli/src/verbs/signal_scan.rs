//! `nextstat signal-scan`: many signals, given as numbers of events, with one background.

use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::values::{Range, normsys, number, source};
use crate::args::{SetupArgs, ThreadArgs};
use crate::error::CliError;
use crate::output::reporter::{Notice, conditions_of, warnings};
use crate::output::table::{Align, table};
use crate::output::{Progress, Reporter, ResultArgs, escape};
use crate::status::Status;
use clap::{Args, ValueEnum};
use nextstat::number::optional;
use nextstat::scanner::{Scanner, SignalScan, SignalScanRequest, SignalSlot, Signals};
use ns_inference::parallel::ExecutionContext;
use ns_inference::test_statistic::TestStatistic;
use ns_translate::{DocumentError, DocumentSource, read_bytes, read_named_tables};
use std::fmt::Write as _;

/// The largest number of signals that a summary lists.
const SHOWN: usize = 40;

/// Arguments of `signal-scan`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct SignalScanArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Signals: an archive of NumPy arrays (.npz) or a JSON object, with the events of each channel
    /// (a row for each signal, a column for each bin) under the channel's name, and their absolute
    /// statistical uncertainties under that name with `.uncertainty` appended
    #[arg(long, value_name = "FILE", value_parser = source())]
    signals: DocumentSource,

    /// Strength of the signals that is tested
    #[arg(long, value_name = "MU", value_parser = number, default_value_t = 1.0, allow_hyphen_values = true)]
    mu: f64,

    /// Test statistic
    #[arg(long, value_name = "STATISTIC", value_enum, default_value_t = StatisticArg::Qtilde)]
    test_stat: StatisticArg,

    /// Find upper limits on the strengths, too
    #[arg(long)]
    limits: bool,

    /// CLs at the limits
    #[arg(long, value_name = "LEVEL", value_parser = number, default_value_t = 0.05, requires = "limits", allow_hyphen_values = true)]
    level: f64,

    /// Whether to search for the lowest minima with every signal. Otherwise fits start at the
    /// minima of the background: much faster in large models, and some end in higher minima
    #[arg(long, value_name = "YES_OR_NO", value_enum, default_value_t = ExploreArg::Yes)]
    explore: ExploreArg,

    /// Name of the parameter that scales the signals; the parameter of interest of the measurement
    /// if not given
    #[arg(long, value_name = "NAME")]
    strength: Option<String>,

    /// Name of the signals as a sample
    #[arg(long, value_name = "NAME", default_value = "signal")]
    sample: String,

    /// Name of the luminosity that scales the signals, too
    #[arg(long, value_name = "NAME")]
    lumi: Option<String>,

    /// Normalisation uncertainty of all signals, with the factors at -1 and +1 standard deviation;
    /// repeatable
    #[arg(long, value_name = "NAME=LO:HI", value_parser = normsys)]
    normsys: Vec<Range>,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,
}

/// Test statistics for upper limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StatisticArg {
    /// q̃_μ: the best fit is not below zero
    Qtilde,
    /// q_μ
    Q,
}

/// Whether to search for the lowest minima.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExploreArg {
    /// With every signal
    Yes,
    /// With the background, with signals that are far from it or whose fits fail, and with all if
    /// the model has a normsys that multiplies a yield several times
    No,
}

impl Command for SignalScanArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output).reading(Some(&self.signals))
    }

    fn run(self) -> Result<Status, CliError> {
        let input = &self.setup.model.input;
        if self.signals == DocumentSource::Stdin && input.workspace.source()? == DocumentSource::Stdin {
            return Err(CliError::TwoFromStdin);
        }
        let options = self.setup.model.options()?;
        let (loaded, _) = input.load_for(options.measurement.clone())?;
        let slot = SignalSlot {
            sample: self.sample.clone(),
            strength: self.strength.clone(),
            lumi: self.lumi.clone(),
            normsys: self.normsys.iter().map(|normsys| (normsys.name.clone(), normsys.bounds)).collect(),
        };
        let scanner = Scanner::new(&loaded, &options, &self.setup.settings_of_several()?, &slot)?;
        let tables = read_named_tables(&read_bytes(&self.signals)?);
        let signals = tables.map_err(|error| DocumentError::from(error).in_file(&self.signals.name()))?;
        let request = SignalScanRequest {
            mu: Some(self.mu),
            statistic: match self.test_stat {
                StatisticArg::Qtilde => TestStatistic::QTilde,
                StatisticArg::Q => TestStatistic::Q,
            },
            limit_level: self.limits.then_some(self.level),
            explore: self.explore == ExploreArg::Yes,
        };
        let reporter = Reporter::new(&self.output);
        let progress = Progress::new(reporter, "signals");
        let execution = ExecutionContext::new(self.threads.count(), &progress);
        let found = scanner.scan(&Signals::of_arrays(signals), &request, execution)?;
        drop(progress);
        self.output.write(&found.document())?;
        let notice = Notice { alarm: found.alarm(), is_failure: !found.converged };
        reporter.summary_or_warning(notice, |_| summary(&found));
        Ok(if found.complete { Status::done_if(found.converged) } else { Status::Interrupted })
    }
}

/// Formats the results of the first signals.
fn summary(found: &SignalScan) -> String {
    let mut columns = vec![
        ("signal", Align::Right),
        ("best fit", Align::Right),
        ("CLs", Align::Right),
        ("expected CLs", Align::Right),
    ];
    if found.limits.is_some() {
        columns.extend([("limit", Align::Right), ("expected limit", Align::Right)]);
    }
    let number = |value: f64| optional(Some(value).filter(|value| value.is_finite()), 4);
    let row = |i: usize| {
        let mut cells =
            vec![i.to_string(), number(found.bestfit[i]), number(found.cls_obs[i]), number(found.cls_exp[i][2])];
        if let Some(limits) = &found.limits {
            cells.extend([number(limits.observed[i]), number(limits.expected[i][2])]);
        }
        cells
    };
    let rows: Vec<Vec<String>> = (0..found.n_signals.min(SHOWN)).map(row).collect();
    let mut text = conditions_of(found.provenance());
    let _ = writeln!(text, "`{}` = {}", escape(&found.poi), found.mu);
    text += &table(&columns, &rows);
    if found.n_signals > SHOWN {
        let _ = writeln!(text, "  and {} more signals", found.n_signals - SHOWN);
    }
    text + &warnings(&found.warnings)
}
