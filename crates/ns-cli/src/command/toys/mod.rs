//! `nextstat toys`: an ensemble of toys, thrown and fitted, to JSON or to a NumPy file; and the merging of such files.

mod identity;
mod merge;
pub(crate) mod record;

pub(super) use identity::{common, test_identity};
pub(super) use record::{TestRecord, is_npy};

use std::num::NonZeroUsize;
use std::path::Path;

use ns_inference::toys::{Ended, Ensemble, FitToys, Run, Source, Thrower, ToyFit, ToysError};
use ns_inference::{Errors, FitOptions, fit};
use ns_translate::toys::{Identity, Mode, Shard, ToyFile};
use serde_json::json;

use super::Status;
use super::device::{Chosen, choose};
use super::setup::{Setup, setup};
use crate::args::{RunArgs, ThrowArgs, ThrowAt, ToysArgs, ToysVerb};
use crate::error::CliError;
use crate::parameters::elements;
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
pub(super) fn mode(run: &RunArgs) -> Mode {
    if run.resume { Mode::Resume } else { Mode::Fresh }
}

/// The option that only makes sense with a NumPy file, if it is given.
pub(super) fn needs_file(run: &RunArgs) -> Option<&'static str> {
    let shard = run.shard.map(|_| "--shard");
    shard.or_else(|| run.resume.then_some("--resume"))
}

/// Everything that is decided before the first toy.
struct Plan {
    setup: Setup,
    thrower: Thrower,
    /// Parameters that are written.
    written: Vec<usize>,
    uncertainty_of: Option<usize>,
    identity: Identity,
    threads: NonZeroUsize,
    batch: NonZeroUsize,
    chosen: Chosen,
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
    let left = file.filter(|_| ended == Ended::Cancelled).map(|path| format!("{}.part", path.display()));
    let alarm = tally.alarm(wanted, left.as_deref());
    talk.say_or_warn(alarm.as_deref(), |paint| tally.summary(wanted, left.as_deref(), paint));
    Ok(match ended {
        Ended::Cancelled => Status::Interrupted,
        _ => Status::positive_if(tally.n_failed() == 0),
    })
}

fn plan(args: &ThrowArgs) -> Result<Plan, CliError> {
    let mut setup = setup(&args.setup)?;
    let params = thrown_at(args, &mut setup)?;
    let source = Source { seed: args.setup.seed, ensemble: Ensemble::Fits, aux: args.run.aux.aux() };
    let thrower = Thrower::new(&setup.model, &setup.data, &params, source).map_err(ToysError::from)?;
    let written = written(&args.parameter, &setup)?;
    let uncertainty_of = if args.poi_uncertainty { Some(setup.poi("--poi-uncertainty")?) } else { None };
    let identity = identity::fit_identity(args, &setup, &thrower, &written);
    let chosen = choose(&args.device, &setup.model)?;
    let (threads, batch) = (args.threads.count(), args.run.batch);
    Ok(Plan { setup, thrower, written, uncertainty_of, identity, threads, batch, chosen })
}

/// The point at which toys are thrown.
fn thrown_at(args: &ThrowArgs, setup: &mut Setup) -> Result<Vec<f64>, CliError> {
    let mut options = FitOptions { errors: Errors::None, ..setup.options.clone() };
    if let Some(mu) = args.mu {
        let poi = setup.poi("--mu")?;
        options.fixed.retain(|(held, _)| *held != poi);
        options.fixed.push((poi, mu));
    }
    if args.throw_at == ThrowAt::Init {
        let mut params = setup.model.parameters.init.clone();
        options.fixed.iter().for_each(|&(i, value)| params[i] = value);
        return Ok(params);
    }
    let best = fit(&setup.model, &setup.data, &mut setup.likelihood, &options);
    if best.converged { Ok(best.bestfit) } else { Err(CliError::NothingToThrowAt { why: best.warnings.join("; ") }) }
}

/// The parameters to write: those that are named, in the model's order, or all.
fn written(names: &[String], setup: &Setup) -> Result<Vec<usize>, CliError> {
    let parameters = &setup.model.parameters;
    let mut wanted = vec![names.is_empty(); parameters.len()];
    for name in names {
        elements(parameters, "--parameter", name)?.for_each(|i| wanted[i] = true);
    }
    Ok((0..parameters.len()).filter(|&i| wanted[i]).collect())
}

impl Plan {
    /// Fits the toys of the run from `first` on.
    fn fit<E>(&self, first: u64, talk: Talk, sink: impl FnMut(Vec<ToyFit>) -> Result<(), E>) -> Result<Ended, E> {
        let range = self.identity.range();
        let progress = Progress::new(talk, "toys");
        let whole = Some([range.start, range.end]);
        let accelerator = self.chosen.accelerator();
        let run = Run { batch: self.batch, whole, accelerator, ..Run::new(self.threads, &progress) };
        let (model, options) = (&self.setup.model, &self.setup.options);
        let toys = FitToys { model, options, thrower: &self.thrower, uncertainty_of: self.uncertainty_of };
        toys.run(&self.setup.likelihood, first..range.end, &run, sink)
    }

    fn to_file(&self, path: &Path, mode: Mode, talk: Talk) -> Result<(Ended, Tally), CliError> {
        let record = FitRecord::of(&self.identity);
        let mut file = ToyFile::open(path, self.identity.clone(), mode, |toy, bytes| record.is_of(bytes, toy))?;
        let mut tally = Tally::new(&self.identity);
        file.read(|bytes| {
            tally.add(&record.read(bytes));
            true
        })?;
        let first = self.identity.range().start + file.n_records();
        let ended = self.fit(first, talk, |fits| file.append(&self.encode(&record, &fits, &mut tally)))?;
        self.chosen.report()?;
        if ended != Ended::Cancelled {
            file.finish()?;
        }
        Ok((ended, tally))
    }

    fn to_json(&self, args: &ThrowArgs, talk: Talk) -> Result<(Ended, Tally), CliError> {
        let record = FitRecord::of(&self.identity);
        let mut tally = Tally::new(&self.identity);
        let mut document = Document::begin(&self.identity, &args.output)?;
        let ended = self.fit(0, talk, |fits| {
            let records = self.encode(&record, &fits, &mut tally);
            records.chunks_exact(record.bytes()).try_for_each(|bytes| document.toy(&record.read(bytes)))
        })?;
        // What is there is ended, also where the device failed in the middle.
        let report = self.chosen.report();
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
