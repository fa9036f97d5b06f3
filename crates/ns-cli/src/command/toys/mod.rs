//! `nextstat toys`: an ensemble of toys, thrown and fitted, to JSON or to a NumPy file; and the merging of such files.

mod identity;
mod merge;
pub(crate) mod record;

pub(super) use identity::{common, test_identity};
pub(super) use record::{TestRecord, is_npy};

use std::num::NonZeroUsize;
use std::path::Path;

use nextstat::Analysis;
use nextstat::error::{NeedsPoi, Setting};
use nextstat::settings::elements;
use ns_core::Model;
use ns_inference::toys::{Ensemble, RunStatus, ToyFit, ToyFitter, ToyRun, ToySampler, ToySource, ToysError};
use ns_inference::{FitOptions, Problem, Uncertainties, fit};
use ns_translate::toys::{Shard, ToyFile, ToyFileMode, ToyRunIdentity};
use serde_json::json;

use super::Status;
use super::setup::{Machine, analysis};
use crate::args::{RunArgs, ThrowArgs, ThrowAt, ToysArgs, ToysVerb};
use crate::error::CliError;
use crate::report::toys::{Document, Tally};
use crate::report::{Progress, Talk};
use record::FitRecord;

pub(super) fn run(args: &ToysArgs) -> Result<Status, CliError> {
    match &args.verb {
        Some(ToysVerb::Merge(merge)) => merge::run(merge),
        None => throw(&args.throw),
    }
}

/// What `--resume` means.
pub(super) fn mode(run: &RunArgs) -> ToyFileMode {
    if run.resume { ToyFileMode::Resume } else { ToyFileMode::Fresh }
}

/// The option that only makes sense with a NumPy file, if it is given.
pub(super) fn needs_file(run: &RunArgs) -> Option<&'static str> {
    let shard = run.shard.map(|_| "--shard");
    shard.or_else(|| run.resume.then_some("--resume"))
}

/// Everything that is decided before the first toy.
struct Plan {
    analysis: Analysis,
    sampler: ToySampler,
    /// Parameters that are written.
    written: Vec<usize>,
    uncertainty_of: Option<usize>,
    identity: ToyRunIdentity,
    batch: NonZeroUsize,
}

fn throw(args: &ThrowArgs) -> Result<Status, CliError> {
    let file = args.output.output_file.as_deref().filter(|path| is_npy(path));
    if let (None, Some(option)) = (file, needs_file(&args.run)) {
        return Err(CliError::NeedsToyFile { option, file: "--output-file OUT.npy" });
    }
    let plan = plan(args)?;
    let talk = Talk::new(&args.output);
    let (ended, tally) = match file {
        Some(path) => plan.to_file(path, mode(&args.run), talk)?,
        None => plan.to_json(args, talk)?,
    };
    let range = plan.identity.range();
    let wanted = range.end - range.start;
    let left = file.filter(|_| ended == RunStatus::Cancelled).map(|path| format!("{}.part", path.display()));
    let alarm = tally.alarm(wanted, left.as_deref());
    talk.say_or_warn(alarm.as_deref(), |paint| tally.summary(wanted, left.as_deref(), paint));
    Ok(match ended {
        RunStatus::Cancelled => Status::Interrupted,
        _ => Status::positive_if(tally.n_failed() == 0),
    })
}

fn plan(args: &ThrowArgs) -> Result<Plan, CliError> {
    let analysis = analysis(&args.setup, Machine::with_device(&args.threads, &args.device))?;
    let params = thrown_at(args, &analysis)?;
    let source = ToySource { seed: args.setup.seed, ensemble: Ensemble::Fits, aux: args.run.aux.aux() };
    let sampler = ToySampler::new(analysis.model(), analysis.data(), &params, source).map_err(ToysError::from)?;
    let written = written(&args.parameter, analysis.model())?;
    let uncertainty_of = if args.poi_uncertainty { Some(analysis.poi_with_uncertainty()?) } else { None };
    let identity = identity::fit_identity(args, &analysis, &sampler, &written);
    Ok(Plan { analysis, sampler, written, uncertainty_of, identity, batch: args.run.batch })
}

/// The point at which toys are thrown.
fn thrown_at(args: &ThrowArgs, analysis: &Analysis) -> Result<Vec<f64>, CliError> {
    let mut options = FitOptions { uncertainties: Uncertainties::None, ..analysis.options().clone() };
    if let Some(mu) = args.mu {
        let poi = analysis.poi(NeedsPoi::Setting(Setting::Mu))?;
        options.fixed.retain(|(held, _)| *held != poi);
        options.fixed.push((poi, mu));
    }
    if args.throw_at == ThrowAt::Init {
        let mut params = analysis.model().parameters.init.clone();
        options.fixed.iter().for_each(|&(i, value)| params[i] = value);
        return Ok(params);
    }
    let best = fit(&mut Problem::new(analysis.model(), &mut analysis.likelihood()?, &options));
    if best.converged { Ok(best.bestfit) } else { Err(CliError::NothingToThrowAt { why: best.warnings.join("; ") }) }
}

/// The parameters to write: those that are named, in the model's order, or all.
fn written(names: &[String], model: &Model) -> Result<Vec<usize>, CliError> {
    let parameters = &model.parameters;
    let mut wanted = vec![names.is_empty(); parameters.len()];
    for name in names {
        elements(parameters, Setting::Parameter, name)?.for_each(|i| wanted[i] = true);
    }
    Ok((0..parameters.len()).filter(|&i| wanted[i]).collect())
}

impl Plan {
    /// Fits the toys of the run from `first` on.
    fn fit<E>(
        &self,
        first: u64,
        talk: Talk,
        sink: impl FnMut(Vec<ToyFit>) -> Result<(), E>,
    ) -> Result<RunStatus, CliError>
    where
        CliError: From<E>,
    {
        let range = self.identity.range();
        let progress = Progress::new(talk, "toys");
        let whole = Some([range.start, range.end]);
        let run = ToyRun { batch: self.batch, whole, ..self.analysis.run(&progress) };
        let (model, options) = (self.analysis.model(), self.analysis.options());
        let toys = ToyFitter { model, options, sampler: &self.sampler, uncertainty_of: self.uncertainty_of };
        let likelihood = self.analysis.likelihood()?;
        Ok(toys.run(&likelihood, first..range.end, &run, sink)?)
    }

    fn to_file(&self, path: &Path, mode: ToyFileMode, talk: Talk) -> Result<(RunStatus, Tally), CliError> {
        let record = FitRecord::of(&self.identity);
        let mut file = ToyFile::open(path, self.identity.clone(), mode, |toy, bytes| record.is_of(bytes, toy))?;
        let mut tally = Tally::new(&self.identity);
        file.read(|bytes| {
            tally.add(&record.read(bytes));
            true
        })?;
        let first = self.identity.range().start + file.n_records();
        let ended = self.fit(first, talk, |fits| file.append(&self.encode(&record, &fits, &mut tally)))?;
        self.analysis.device_report()?;
        if ended != RunStatus::Cancelled {
            file.finish()?;
        }
        Ok((ended, tally))
    }

    fn to_json(&self, args: &ThrowArgs, talk: Talk) -> Result<(RunStatus, Tally), CliError> {
        let record = FitRecord::of(&self.identity);
        let mut tally = Tally::new(&self.identity);
        let mut document = Document::begin(&self.identity, &args.output)?;
        let ended = self.fit(0, talk, |fits| {
            let records = self.encode(&record, &fits, &mut tally);
            records.chunks_exact(record.bytes()).try_for_each(|bytes| document.toy(&record.read(bytes)))
        })?;
        // What is there is ended, also where the device failed in the middle.
        let report = self.analysis.device_report();
        let said = report.as_ref().map_or_else(|error| Some(json!({"error": error.to_string()})), Clone::clone);
        document.end(&tally, self.identity.n_toys, said.as_ref())?;
        report?;
        Ok((ended, tally))
    }

    /// The records of `fits`, which `tally` counts.
    fn encode(&self, record: &FitRecord, fits: &[ToyFit], tally: &mut Tally) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(fits.len() * record.bytes());
        for fit in fits {
            let start = bytes.len();
            record.write(fit, &self.written, &mut bytes);
            tally.add(&record.read(&bytes[start..]));
        }
        bytes
    }
}

/// The share of the toys that the arguments mean.
pub(super) fn shard(run: &RunArgs) -> Shard {
    run.shard.unwrap_or(Shard::WHOLE)
}
