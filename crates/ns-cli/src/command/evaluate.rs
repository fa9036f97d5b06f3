//! `nextstat evaluate`: likelihood, gradient and expected data at points.

use std::num::NonZeroUsize;
use std::sync::Arc;

use ns_compute::cpu::ModelPlan;
use ns_compute::{BatchDataSet, BatchDataSets, CpuBatch};
use ns_core::Model;
use ns_core::expected::expected_data;
use ns_core::likelihood::diagnose;
use ns_inference::parallel::{self, ExecutionContext};
use ns_translate::{DocumentError, DocumentSource, read_bytes, read_points};

use super::{Status, model};
use crate::args::EvaluateArgs;
use crate::error::CliError;
use crate::report::evaluate::{Evaluation, Point, summary};
use crate::report::{self, Talk};

pub(super) fn run(args: &EvaluateArgs) -> Result<Status, CliError> {
    let workspace = args.model.input.workspace.source()?;
    let mut documents = args.model.input.patch.iter().chain([&workspace]);
    if args.points == Some(DocumentSource::Stdin) && documents.any(|source| *source == DocumentSource::Stdin) {
        return Err(CliError::TwoFromStdin);
    }
    let compiled = model::model(&args.model)?;
    let model = compiled.model();
    let points = match &args.points {
        None => vec![model.parameters.init.clone()],
        Some(source) => read_points(&read_bytes(source)?, model.n_params())
            .map_err(|error| DocumentError::from(error).in_file(&source.name()))?,
    };
    let evaluation =
        Evaluation { par_names: &model.parameters.names, points: evaluate_all(model, &points, args.threads.count()) };
    report::write_json(&report::to_document(&evaluation), &args.output)?;
    Talk::new(&args.output).say(|_| summary(&evaluation));
    Ok(Status::Done)
}

/// Points in order, a part of them on each thread; a point's numbers do not depend on which part it is in.
fn evaluate_all(model: &Model, points: &[Vec<f64>], threads: NonZeroUsize) -> Vec<Point> {
    /// Starting a thread costs about as much as evaluating this many points of a large model.
    const WORTH_A_THREAD: usize = 16;
    let batch = CpuBatch::new(Arc::new(ModelPlan::new(model)));
    let observed = BatchDataSet::new(batch.plan(), model.observed.clone());
    let part_len = points.len().div_ceil(threads.get()).max(WORTH_A_THREAD);
    let parts: Vec<&[Vec<f64>]> = points.chunks(part_len).collect();
    let part = |batch: &mut CpuBatch, k: usize| evaluate(model, &observed, batch, parts[k]);
    let done = parallel::map(parts.len(), ExecutionContext::with_threads(threads), || batch.clone(), part);
    done.into_iter().flatten().flatten().collect()
}

fn evaluate(model: &Model, observed: &BatchDataSet, batch: &mut CpuBatch, points: &[Vec<f64>]) -> Vec<Point> {
    let mut nll = vec![0.0; points.len()];
    let mut gradient = vec![0.0; points.len() * model.n_params()];
    batch.nll_and_grad(BatchDataSets::Shared(observed), &points.concat(), &mut nll, &mut gradient);
    gradient.iter_mut().for_each(|slope| *slope *= 2.0);
    // Not `chunks`: a model may have no parameters.
    let slopes = |i: usize| &gradient[i * model.n_params()..(i + 1) * model.n_params()];
    let evaluated = |(i, params): (usize, &Vec<f64>)| point(model, params, nll[i], slopes(i));
    points.iter().enumerate().map(evaluated).collect()
}

fn point(model: &Model, params: &[f64], nll: f64, gradient: &[f64]) -> Point {
    let is_finite = nll.is_finite();
    Point {
        twice_nll: 2.0 * nll,
        gradient: is_finite.then(|| gradient.to_vec()),
        expected_data: expected_data(model, params),
        not_finite: if is_finite { None } else { diagnose(model, &model.observed, params) },
    }
}
