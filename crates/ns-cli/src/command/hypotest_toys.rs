//! `nextstat hypotest-toys`: CLs by toys.

use std::ops::ControlFlow;

use nextstat::Analysis;
use nextstat::error::Procedure;
use nextstat::hypothesis::tested_by_toys;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{HypotestSettings, HypotestToys, RunStatus, StatisticSamples, ToyHypotest, ToyRun};
use ns_translate::toys::{ToyFile, ToyFileError, ToyRunIdentity};

use super::Status;
use super::setup::{Machine, analysis};
use super::toys::{TestRecord, common, mode, needs_file, test_identity};
use crate::args::{HypotestToysArgs, ToyStatistic};
use crate::error::CliError;
use crate::report::{self, Progress, Talk};

pub(super) fn run(args: &HypotestToysArgs) -> Result<Status, CliError> {
    if let (None, Some(option)) = (&args.toys_file, needs_file(&args.run)) {
        return Err(CliError::NeedsToyFile { option, file: "--toys-file FILE.npy" });
    }
    let analysis = analysis(&args.setup, Machine::with_device(&args.threads, &args.device))?;
    let settings = settings(args, &analysis)?;
    let known = common(&args.setup, &args.run, &analysis);
    let mut likelihood = analysis.likelihood()?;
    let test = ToyHypotest::new(analysis.model(), &mut likelihood, analysis.options(), settings)?;
    let identity = test_identity(known, &test, args);
    let mut work = Work { identity, samples: StatisticSamples::default(), file: None, n_done: 0 };
    work.open(args, &settings)?;
    let ended = work.run(args, &test, &analysis)?;
    let device = analysis.device_report()?;
    let range = work.identity.range();
    let interrupted = (ended == RunStatus::Cancelled).then_some((work.n_done, range.end - range.start));
    let result = HypotestToys::new(test.observed(), &work.samples);
    report::hypotest_toys::write(&work.identity, result, interrupted, (device, &args.output))
}

fn settings(args: &HypotestToysArgs, analysis: &Analysis) -> Result<HypotestSettings, CliError> {
    let test_statistic = match args.test_stat {
        ToyStatistic::Q => TestStatistic::Q,
        ToyStatistic::Qtilde => TestStatistic::QTilde,
        ToyStatistic::Q0 => TestStatistic::Q0,
    };
    Ok(HypotestSettings {
        test_statistic,
        poi: analysis.varied(None, Procedure::HypotestToys)?,
        mu: tested_by_toys(test_statistic, args.mu)?,
        n_toys: [args.n_toys, args.n_toys_b.unwrap_or(args.n_toys)],
        seed: args.setup.seed,
        aux: args.run.aux.aux(),
    })
}

/// The toys so far.
struct Work {
    identity: ToyRunIdentity,
    samples: StatisticSamples,
    /// Where they are kept, if anywhere.
    file: Option<ToyFile>,
    n_done: u64,
}

impl Work {
    /// Opens the file of toys, and takes those that are in it.
    fn open(&mut self, args: &HypotestToysArgs, settings: &HypotestSettings) -> Result<(), CliError> {
        let Some(path) = &args.toys_file else { return Ok(()) };
        let is_unit = |unit, bytes: &[u8]| TestRecord::read(bytes).unit == settings.unit(unit);
        let mut file = ToyFile::open(path, self.identity.clone(), mode(&args.run), is_unit)?;
        file.read(|bytes| {
            let record = TestRecord::read(bytes);
            self.samples.push(record.unit.which, record.value);
            true
        })?;
        self.n_done = file.n_records();
        self.file = Some(file);
        Ok(())
    }

    /// Makes the toys that are still wanted.
    fn run(
        &mut self,
        args: &HypotestToysArgs,
        test: &ToyHypotest<'_>,
        analysis: &Analysis,
    ) -> Result<RunStatus, CliError> {
        let (range, stop) = (self.identity.range(), args.stop_at_error);
        let progress = Progress::new(Talk::new(&args.output), "toys");
        let whole = Some([range.start, range.end]);
        let run = ToyRun { batch: args.run.batch, whole, ..analysis.run(&progress) };
        let likelihood = analysis.likelihood()?;
        let is_finished = self.file.as_ref().is_some_and(ToyFile::is_complete);
        loop {
            let next = range.start + self.n_done;
            let is_enough = test.settings().is_enough(next, &self.samples, &test.observed(), stop);
            if is_finished || next >= range.end || is_enough {
                break;
            }
            let end = test.settings().next_check(next, stop).min(range.end);
            let ended = test.run(&likelihood, next..end, &run, |tests| {
                let mut bytes = Vec::new();
                tests.iter().for_each(|test| TestRecord::write(test, &mut bytes));
                self.file.as_mut().map_or(Ok(()), |file| file.append(&bytes))?;
                tests.iter().for_each(|test| self.samples.push(test.unit.which, test.value));
                self.n_done += tests.len() as u64;
                Ok::<_, ToyFileError>(ControlFlow::Continue(()))
            })?;
            if matches!(ended, RunStatus::Cancelled | RunStatus::Failed) {
                return Ok(ended);
            }
        }
        self.file.as_mut().map_or(Ok(()), ToyFile::finish)?;
        Ok(RunStatus::Done)
    }
}
