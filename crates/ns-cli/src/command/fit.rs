//! `nextstat fit`: the maximum-likelihood fit of a model.

use ns_core::Model;
use ns_core::expected::lowest_negative_yield;
use ns_inference::{Errors, FitOptions, fit};

use super::Status;
use super::device::choose;
use super::setup::{Setup, setup};
use crate::args::FitArgs;
use crate::error::CliError;
use crate::parameters::elements;
use crate::report::{self, Talk};

pub(super) fn run(args: &FitArgs) -> Result<Status, CliError> {
    let Setup { model, data, mut likelihood, options, .. } = setup(&args.setup)?;
    let is_fixed = |i: usize| model.parameters.fixed[i] || options.fixed.iter().any(|(held, _)| *held == i);
    let minos = minos(&args.minos, &model, is_fixed)?;
    let wants_matrix = args.covariance || args.correlation;
    let errors = if wants_matrix { Errors::Covariance } else { Errors::Hessian };
    let options = FitOptions { minos, errors, ..options };
    let chosen = choose(&args.device, &model)?;
    let options = chosen.started(&model, &data, options);
    let mut result = fit(&model, &data, &mut likelihood, &options);
    if result.nll.is_finite() {
        result.warnings.extend(negative_yield(&model, &result.bestfit));
    }

    let wanted = report::fit::Matrices { covariance: args.covariance, correlation: args.correlation };
    let document = report::fit::document(&model, &result, wanted);
    report::write_json(&chosen.sign(document)?, &args.output)?;
    Talk::new(&args.output).warn(&args.ignored.warnings());
    let alarm = (!result.converged).then(|| result.warnings.join("; "));
    Talk::new(&args.output).say_or_warn(alarm.as_deref(), |paint| report::fit::summary(&model, &data, &result, paint));
    Ok(Status::positive_if(result.converged))
}

/// pyhf allows a negative yield of one sample, ROOT does not; a reader who compares the two must know.
#[must_use]
pub fn negative_yield(model: &Model, params: &[f64]) -> Option<String> {
    let (place, sample, lowest) = lowest_negative_yield(model, params)?;
    Some(format!(
        "sample `{sample}` has a negative yield ({lowest:.4}) in {place} at the minimum; ROOT would clip it at zero and find another minimum"
    ))
}

/// The parameters whose intervals are asked for, each once. An empty name means the parameters of interest.
fn minos(names: &[String], model: &Model, is_fixed: impl Fn(usize) -> bool) -> Result<Vec<usize>, CliError> {
    const OPTION: &str = "--minos";
    let parameters = &model.parameters;
    let mut wanted = Vec::new();
    for name in names {
        let named: Vec<usize> = match name.as_str() {
            "" if model.pois.is_empty() => return Err(CliError::NoPoi { option: OPTION }),
            "" => model.pois.clone(),
            "all" if parameters.set("all").is_none() => (0..parameters.len()).filter(|&i| !is_fixed(i)).collect(),
            name => elements(parameters, OPTION, name)?.collect(),
        };
        if let Some(&fixed) = named.iter().find(|&&i| is_fixed(i)) {
            return Err(CliError::MinosOfFixed { name: parameters.names[fixed].clone() });
        }
        wanted.extend(named);
    }
    let mut seen = vec![false; parameters.len()];
    wanted.retain(|&i| !std::mem::replace(&mut seen[i], true));
    Ok(wanted)
}
