//! `nextstat fit`: the maximum-likelihood fit of a model.

use std::borrow::Cow;
use std::sync::Arc;

use ns_compute::CpuLikelihood;
use ns_compute::cpu::Plan;
use ns_core::expected::{expected_aux, expected_main, lowest_negative_yield};
use ns_core::likelihood::diagnose;
use ns_core::{Data, Model};
use ns_inference::{Errors, FitOptions, MultiStart, fit};

use super::{Status, model};
use crate::args::FitArgs;
use crate::error::CliError;
use crate::parameters::{elements, settings};
use crate::report::{self, Talk};

pub(super) fn run(args: &FitArgs) -> Result<Status, CliError> {
    let (_, model) = model::model(&args.model)?;
    let options = options(args, &model)?;
    let data = match args.asimov {
        None => Cow::Borrowed(&model.observed),
        Some(mu) => Cow::Owned(asimov(&model, mu)?),
    };
    let mut likelihood = CpuLikelihood::with_plan(Arc::new(Plan::new(&model)), &data);
    let mut result = fit(&model, &data, &mut likelihood, &options);
    if result.nll.is_finite() {
        result.warnings.extend(negative_yield(&model, &result.bestfit));
    }

    let wanted = report::fit::Matrices { covariance: args.covariance, correlation: args.correlation };
    let document = report::fit::document(&model, &result, wanted, options.multi_start.is_some());
    report::write_json(&document, &args.output)?;
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output).say_or_warn(alarm.as_deref(), |paint| report::fit::summary(&model, &data, &result, paint));
    Ok(Status::positive_if(result.converged))
}

/// pyhf allows a negative yield of one sample, ROOT does not; a reader who compares the two must know.
fn negative_yield(model: &Model, params: &[f64]) -> Option<String> {
    let (place, sample, lowest) = lowest_negative_yield(model, params)?;
    Some(format!(
        "sample `{sample}` has a negative yield ({lowest:.4}) in {place} at the minimum; ROOT would clip it at zero and find another minimum"
    ))
}

fn options(args: &FitArgs, model: &Model) -> Result<FitOptions, CliError> {
    let parameters = &model.parameters;
    let fixed = settings(parameters, "--fix", args.fix.iter().map(|fix| (fix.name.as_str(), fix.value)))?;
    let bounds = settings(parameters, "--bounds", args.bounds.iter().map(|range| (range.name.as_str(), range.bounds)))?;
    let is_fixed = |i: usize| parameters.fixed[i] || fixed.iter().any(|(held, _)| *held == i);
    let minos = minos(&args.minos, model, is_fixed)?;
    let wants_matrix = args.covariance || args.correlation;
    Ok(FitOptions {
        minos,
        fixed,
        bounds,
        errors: if wants_matrix { Errors::Covariance } else { Errors::Hessian },
        multi_start: args.multi_start.map(|n_starts| MultiStart { n_starts, seed: args.seed }),
        ..FitOptions::default()
    })
}

/// The parameters whose intervals are asked for, each once. An empty name is the parameter of interest.
fn minos(names: &[String], model: &Model, is_fixed: impl Fn(usize) -> bool) -> Result<Vec<usize>, CliError> {
    const OPTION: &str = "--minos";
    let parameters = &model.parameters;
    let mut wanted = Vec::new();
    for name in names {
        let named = match name.as_str() {
            "" => model.poi().map(|poi| poi..poi + 1).ok_or(CliError::NoPoi { option: OPTION })?,
            "all" if parameters.set("all").is_none() => {
                wanted.extend((0..parameters.len()).filter(|&i| !is_fixed(i)));
                continue;
            }
            name => elements(parameters, OPTION, name)?,
        };
        if let Some(fixed) = named.clone().find(|&i| is_fixed(i)) {
            return Err(CliError::MinosOfFixed { name: parameters.names[fixed].clone() });
        }
        wanted.extend(named);
    }
    let mut seen = vec![false; parameters.len()];
    wanted.retain(|&i| !std::mem::replace(&mut seen[i], true));
    Ok(wanted)
}

/// What the model expects at its starting values, with the parameter of interest at `mu` (1 if not given) where there is one.
fn asimov(model: &Model, mu: Option<f64>) -> Result<Data, CliError> {
    let mut point = model.parameters.init.clone();
    match (model.poi(), mu) {
        (Some(poi), mu) => point[poi] = mu.unwrap_or(1.0),
        (None, None) => {}
        (None, Some(_)) => return Err(CliError::NoPoi { option: "--asimov=MU" }),
    }
    let data = Data { main: expected_main(model, &point), aux: expected_aux(model, &point) };
    match diagnose(model, &data, &point) {
        None => Ok(data),
        Some(reason) => Err(CliError::NoAsimov(reason)),
    }
}
