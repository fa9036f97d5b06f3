//! `nextstat hypotest-toys`: CLs by toys.

use super::hypotest::BAND;
use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::values::{finite, n_toys, number};
use crate::args::{DeviceArgs, ResultFile, SetupArgs, ShardedArgs, ThreadArgs, ToyRunArgs, ToyStatistic, is_piped};
use crate::error::CliError;
use crate::output::reporter::{Notice, conditions};
use crate::output::table::{Align, table};
use crate::output::{OutputArgs, Paint, Progress, Reporter, ResultArgs, escape};
use crate::status::Status;
use clap::Args;
use nextstat::Analysis;
use nextstat::alarm::Alarm;
use nextstat::number::{optional, significant};
use nextstat::toy_tests::{ToyTestRequest, ToyTestResult, ToyTestRun, record};
use ns_translate::toys::{ToyFile, ToyTestRecord};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Arguments of `hypotest-toys`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct HypotestToysArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Tested value of the parameter of interest, 1 if not given; `q0` always tests 0
    #[arg(long, value_name = "MU", value_parser = number, allow_hyphen_values = true)]
    mu: Option<f64>,

    /// Number of toys of the tested hypothesis
    #[arg(long, value_name = "N", value_parser = n_toys, default_value = "1000", allow_hyphen_values = true)]
    n_toys: u64,

    /// Number of toys of the alternative hypothesis; the same if not given
    #[arg(long, value_name = "N", value_parser = n_toys, allow_hyphen_values = true)]
    n_toys_b: Option<u64>,

    /// Test statistic
    #[arg(long, value_name = "STATISTIC", value_enum, default_value_t)]
    test_stat: ToyStatistic,

    /// Stop as soon as the Monte Carlo error of CLs is below ERROR, checked every 500 toys
    #[arg(long, value_name = "ERROR", value_parser = finite, conflicts_with = "shard", allow_hyphen_values = true)]
    stop_at_error: Option<f64>,

    /// Write the statistic of every toy to this NumPy file
    #[arg(long, value_name = "FILE.npy")]
    toys_file: Option<PathBuf>,

    #[command(flatten)]
    run: ToyRunArgs,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    device: DeviceArgs,
}

impl HypotestToysArgs {
    /// Returns the arguments of the test that `hypotest --calctype toybased` makes.
    pub(super) fn like_pyhf(
        setup: SetupArgs,
        mu: Option<f64>,
        test_stat: ToyStatistic,
        output: ResultArgs,
        threads: ThreadArgs,
    ) -> Self {
        const N_TOYS: u64 = 2000;
        Self {
            setup,
            mu,
            n_toys: N_TOYS,
            n_toys_b: None,
            test_stat,
            stop_at_error: None,
            toys_file: None,
            run: ToyRunArgs::default(),
            output,
            threads,
            device: DeviceArgs::default(),
        }
    }

    /// Opens the file of toys and counts the toys in it.
    fn open_file(&self, test: &mut ToyTestRun<'_>) -> Result<Option<ToyFile>, CliError> {
        let Some(path) = &self.toys_file else { return Ok(None) };
        let is_unit = |unit, bytes: &[u8]| {
            let (record, unit) = (ToyTestRecord::decode(bytes), test.unit(unit));
            (record.toy, usize::from(record.hypothesis)) == (unit.toy, unit.which)
        };
        let mut file = ToyFile::open(path, test.identity().clone(), self.run.mode(), is_unit)?;
        file.read(|bytes| {
            test.resume(ToyTestRecord::decode(bytes).value);
            true
        })?;
        Ok(Some(file))
    }
}

impl Command for HypotestToysArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output).writing(self.toys_file.as_ref()).with_documents()
    }

    fn sharded(&self) -> Option<ShardedArgs<'_>> {
        let toys_file = ResultFile { options: &["--toys-file"], path: self.toys_file.as_deref() };
        Some(ShardedArgs {
            verb: "hypotest-toys",
            merged_by: "toys",
            file_option: "--toys-file",
            resumes: true,
            division: self.run.division(),
            results: vec![toys_file, ResultFile::of(&self.output)],
            is_table: self.output.is_table(),
            is_piped: is_piped(&self.setup, None),
            threads: self.threads.given(),
        })
    }

    fn run(self) -> Result<Status, CliError> {
        if self.toys_file.is_none() {
            self.run.require_no_file_options("--toys-file FILE.npy")?;
        }
        let request = ToyTestRequest {
            mu: self.mu,
            statistic: self.test_stat.into(),
            n_toys: [self.n_toys, self.n_toys_b.unwrap_or(self.n_toys)],
            stop_at_error: self.stop_at_error,
            options: self.run.options(),
        };
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        let mut test = analysis.hypotest_toys(&request)?;
        let mut file = self.open_file(&mut test)?;
        let progress = Progress::new(Reporter::new(&self.output), "toys");
        if !file.as_ref().is_some_and(ToyFile::is_complete) {
            test.run(&progress, |tests| {
                let mut bytes = Vec::new();
                tests.iter().for_each(|test| record(test).encode(&mut bytes));
                Ok::<_, CliError>(file.as_mut().map_or(Ok(()), |file| file.append(&bytes))?)
            })?;
        }
        drop(progress);
        if test.is_finished() {
            file.as_mut().map_or(Ok(()), ToyFile::finish)?;
        }
        let answer = test.answer()?;
        self.output.write(&answer.document())?;
        Ok(report(&answer.result, Some(&answer.analysis), &self.output))
    }
}

/// Writes the summary of a test, and returns its status; merged files have no `analysis`.
pub(super) fn report(result: &ToyTestResult, analysis: Option<&Analysis>, output: &OutputArgs) -> Status {
    let notice = Notice { alarm: result.alarm(), is_failure: result.n_failed() > 0 };
    Reporter::new(output).summary_or_warning(notice, |paint| {
        let label = analysis.map_or("observed", |analysis| analysis.settings().data.label());
        analysis.map(conditions).unwrap_or_default() + &summary(result, label, paint)
    });
    if result.is_interrupted { Status::Interrupted } else { Status::done_if(result.n_failed() == 0) }
}

/// Formats CLs of the `data`, its expected band, the observed statistic and the warnings.
fn summary(result: &ToyTestResult, data: &str, paint: Paint) -> String {
    let poi = result.identity.settings["poi"].as_str().unwrap_or("mu");
    let test = &result.test;
    let [tested, alternative] = test.n_toys;
    let mu = significant(test.observed.mu, 6);
    let mut text = format!("test of `{}` = {mu} with {tested} and {alternative} toys\n\n", escape(poi));
    let name = if test.discovery.is_some() { "p-value" } else { "CLs" };
    let row = |label: &str, value: f64, error: f64| {
        vec![label.to_owned(), optional(Some(value), 4), optional(Some(error), 2)]
    };
    let mut rows = vec![row(data, test.cls_observed, test.cls_observed_error)];
    let band = BAND.iter().zip(test.cls_expected.iter().zip(test.cls_expected_errors));
    rows.extend(band.map(|(label, (value, error))| row(label, *value, error)));
    text.push_str(&table(&[("", Align::Left), (name, Align::Right), ("error", Align::Right)], &rows));
    let (statistic, best) = (significant(test.observed.value, 6), significant(test.observed.mu_hat, 5));
    let _ = writeln!(text, "\n  best fit {best}, statistic {statistic}");
    if let Some(found) = &test.discovery {
        let [z, expected] = [found.z_observed, found.z_expected].map(|z| optional(z, 4));
        let _ = writeln!(text, "  significance {z}, expected {expected}");
    }
    for warning in &test.warnings {
        let _ = writeln!(text, "{} {}", paint.alarm("warning:"), escape(warning));
    }
    text
}
