//! `nextstat evaluate`: likelihood, gradient and expected data at points.

use ns_compute::CpuLikelihood;
use ns_core::Likelihood;
use ns_core::expected::expected_data;
use ns_core::likelihood::diagnose;
use ns_core::{Data, Model};
use ns_translate::{Source, read_bytes, read_points};

use super::{Status, model};
use crate::args::EvaluateArgs;
use crate::error::CliError;
use crate::report::evaluate::{Evaluation, Point, summary};
use crate::report::{self, Talk};

pub(super) fn run(args: &EvaluateArgs) -> Result<Status, CliError> {
    let from_stdin = [Some(&args.model.input.source()), args.points.as_ref()];
    if from_stdin.iter().all(|source| *source == Some(&Source::Stdin)) {
        return Err(CliError::TwoFromStdin);
    }
    let (_, model) = model::model(&args.model)?;
    let points = match &args.points {
        None => vec![model.parameters.init.clone()],
        Some(source) => {
            read_points(&read_bytes(source)?, model.n_params()).map_err(|error| error.in_file(&source.name()))?
        }
    };
    let mut likelihood = CpuLikelihood::new(&model);
    let evaluation = Evaluation {
        par_names: &model.parameters.names,
        points: points.iter().map(|point| evaluate(&model, &model.observed, &mut likelihood, point)).collect(),
    };
    report::write_json(&report::to_document(&evaluation), &args.output)?;
    Talk::new(&args.output).say(|_| summary(&evaluation));
    Ok(Status::Done)
}

fn evaluate(model: &Model, data: &Data, likelihood: &mut CpuLikelihood, params: &[f64]) -> Point {
    let mut gradient = vec![0.0; params.len()];
    let nll = likelihood.nll_and_grad(params, &mut gradient);
    gradient.iter_mut().for_each(|slope| *slope *= 2.0);
    let is_finite = nll.is_finite();
    Point {
        twice_nll: 2.0 * nll,
        gradient: is_finite.then_some(gradient),
        expected_data: expected_data(model, params),
        not_finite: if is_finite { None } else { diagnose(model, data, params) },
    }
}
