//! `nextstat evaluate`: likelihood, gradient and expected data at given points.

use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::values::source;
use crate::args::{ModelArgs, ThreadArgs};
use crate::error::CliError;
use crate::output::table::{Align, table};
use crate::output::{OutputArgs, Reporter, write_result};
use crate::status::Status;
use clap::Args;
use nextstat::document::to_document;
use nextstat::number::significant;
use ns_compute::cpu::ModelPlan;
use ns_compute::{BatchDataSet, BatchDataSets, CpuBatch};
use ns_core::Model;
use ns_core::expected::expected_data;
use ns_core::likelihood::{NonFinite, diagnose};
use ns_inference::parallel::{self, ExecutionContext};
use ns_translate::{DocumentError, DocumentSource, read_bytes, read_points};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Arguments of `evaluate`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct EvaluateArgs {
    #[command(flatten)]
    model: ModelArgs,

    /// Points: a JSON list of parameter vectors, each in the order of `par_names`; `-` reads
    /// standard input; the model's starting values if not given
    #[arg(long, value_name = "FILE", value_parser = source())]
    points: Option<DocumentSource>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    threads: ThreadArgs,
}

impl Command for EvaluateArgs {
    fn files(&self) -> Files<'_> {
        Files::new(&self.model.input, &self.output).reading(self.points.as_ref())
    }

    fn run(self) -> Result<Status, CliError> {
        let workspace = self.model.input.workspace.source()?;
        let mut documents = self.model.input.patch.iter().chain([&workspace]);
        if self.points == Some(DocumentSource::Stdin) && documents.any(|source| *source == DocumentSource::Stdin) {
            return Err(CliError::TwoFromStdin);
        }
        let compiled = self.model.model()?;
        let model = compiled.model();
        let points = match &self.points {
            None => vec![model.parameters.init.clone()],
            Some(source) => read_points(&read_bytes(source)?, model.n_params())
                .map_err(|error| DocumentError::from(error).in_file(&source.name()))?,
        };
        let points = evaluate_all(model, &points, self.threads.count());
        let evaluation = Evaluation { par_names: &model.parameters.names, points };
        write_result(&to_document(&evaluation), &self.output)?;
        Reporter::new(&self.output).summary(|_| summary(&evaluation));
        Ok(Status::Done)
    }
}

/// Evaluates the points in order, a part of them on each thread. No number depends on the division.
fn evaluate_all(model: &Model, points: &[Vec<f64>], threads: NonZeroUsize) -> Vec<Point> {
    /// Starting a thread takes about as long as evaluating this many points of a large model.
    const PER_THREAD: usize = 16;
    let batch = CpuBatch::new(Arc::new(ModelPlan::new(model)));
    let observed = BatchDataSet::new(batch.plan(), model.observed.clone());
    let part_len = points.len().div_ceil(threads.get()).max(PER_THREAD);
    let parts: Vec<&[Vec<f64>]> = points.chunks(part_len).collect();
    let part = |batch: &mut CpuBatch, k: usize| evaluate(model, &observed, batch, parts[k]);
    let done = parallel::map(parts.len(), ExecutionContext::with_threads(threads), || batch.clone(), part);
    done.into_iter().flatten().flatten().collect()
}

fn evaluate(model: &Model, observed: &BatchDataSet, batch: &mut CpuBatch, points: &[Vec<f64>]) -> Vec<Point> {
    let mut nll = vec![0.0; points.len()];
    let mut gradient = vec![0.0; points.len() * model.n_params()];
    batch.nll_and_grad(BatchDataSets::Shared(observed), &points.concat(), &mut nll, &mut gradient);
    gradient.iter_mut().for_each(|derivative| *derivative *= 2.0);
    // Not `chunks`, because a model may have no parameters.
    let of = |i: usize| &gradient[i * model.n_params()..(i + 1) * model.n_params()];
    let evaluated = |(i, params): (usize, &Vec<f64>)| point(model, params, nll[i], of(i));
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

/// The document.
#[derive(Debug, Serialize)]
struct Evaluation<'a> {
    /// Parameter names (P).
    par_names: &'a [String],
    /// One entry per point.
    points: Vec<Point>,
}

/// One point.
#[derive(Debug, Serialize)]
struct Point {
    /// 2·(-ln L), `null` where it is not finite.
    twice_nll: f64,
    /// Its gradient (P); `null` where `twice_nll` is not finite.
    gradient: Option<Vec<f64>>,
    /// Expected data: main bins (B), then auxiliary data (K).
    expected_data: Vec<f64>,
    /// Why `twice_nll` is not finite.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_finite: Option<NonFinite>,
}

/// Formats 2NLL and the largest derivative at each point.
fn summary(evaluation: &Evaluation<'_>) -> String {
    let row = |(i, point): (usize, &Point)| {
        let largest = point.gradient.iter().flatten().zip(evaluation.par_names);
        let largest = largest.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
        let derivative = largest
            .map_or_else(String::new, |(derivative, name)| format!("{} along `{name}`", significant(*derivative, 4)));
        let reason = point.not_finite.as_ref().map_or(derivative, ToString::to_string);
        vec![i.to_string(), significant(point.twice_nll, 10), reason]
    };
    let rows: Vec<Vec<String>> = evaluation.points.iter().enumerate().map(row).collect();
    table(&[("point", Align::Right), ("2NLL", Align::Right), ("largest derivative", Align::Left)], &rows)
}
