//! From the arguments that verbs with fits share to a model, its data, its likelihood, and how to fit it.

use std::sync::Arc;

use ns_compute::CpuLikelihood;
use ns_compute::cpu::Plan;
use ns_core::expected;
use ns_core::likelihood::diagnose;
use ns_core::spec::Workspace;
use ns_core::{Data, Likelihood, Model};
use ns_inference::fit::domain_and_start;
use ns_inference::{FitOptions, MultiStart, memory};

use super::model;
use crate::args::SetupArgs;
use crate::error::CliError;
use crate::parameters::settings;

/// What a verb with fits works on.
pub(super) struct Setup {
    pub(super) workspace: Workspace,
    pub(super) model: Model,
    /// Observed, or an Asimov data set.
    pub(super) data: Data,
    /// Of `data`.
    pub(super) likelihood: CpuLikelihood,
    pub(super) options: FitOptions,
}

impl Setup {
    /// The parameter of interest, which `what` needs.
    pub(super) fn poi(&self, what: &'static str) -> Result<usize, CliError> {
        self.model.poi().ok_or(CliError::NoPoi { option: what })
    }

    /// The parameter of interest, which `verb` is to test.
    pub(super) fn tested_poi(&self, verb: &'static str) -> Result<usize, CliError> {
        let poi = self.poi(verb)?;
        let (domain, _) = domain_and_start(&self.model, &self.options);
        if domain.fixed[poi] {
            return Err(CliError::TestedIsFixed { name: self.model.parameters.names[poi].clone() });
        }
        Ok(poi)
    }
}

/// Reads and compiles what `args` mean.
pub(super) fn setup(args: &SetupArgs) -> Result<Setup, CliError> {
    let (workspace, model) = model::model(&args.model)?;
    of_model(args, workspace, model)
}

/// The same for a workspace, called `name` in messages, that was read already.
pub(super) fn setup_of(args: &SetupArgs, workspace: Workspace, name: String) -> Result<Setup, CliError> {
    let model = model::model_of(&args.model, &workspace, name)?;
    of_model(args, workspace, model)
}

fn of_model(args: &SetupArgs, workspace: Workspace, model: Model) -> Result<Setup, CliError> {
    let options = options(args, &model)?;
    let data = data(args, &model)?;
    let likelihood = CpuLikelihood::with_plan(Arc::new(Plan::new(&model)), &data);
    memory::require(&likelihood.structure())?;
    Ok(Setup { workspace, model, data, likelihood, options })
}

fn options(args: &SetupArgs, model: &Model) -> Result<FitOptions, CliError> {
    let parameters = &model.parameters;
    Ok(FitOptions {
        fixed: settings(parameters, "--fix", args.fix.iter().map(|fix| (fix.name.as_str(), fix.value)))?,
        bounds: settings(parameters, "--bounds", args.bounds.iter().map(|range| (range.name.as_str(), range.bounds)))?,
        multi_start: args.multi_start.map(|n_starts| MultiStart { n_starts, seed: args.seed }),
        ..FitOptions::default()
    })
}

/// The observed data, or what the model expects at its starting values with some parameters elsewhere.
fn data(args: &SetupArgs, model: &Model) -> Result<Data, CliError> {
    if args.asimov.is_none() && args.asimov_at.is_empty() {
        return Ok(model.observed.clone());
    }
    let mut point = model.parameters.init.clone();
    match (model.poi(), args.asimov) {
        (Some(poi), Some(mu)) => point[poi] = mu.unwrap_or(1.0),
        (None, Some(Some(_))) => return Err(CliError::NoPoi { option: "--asimov=MU" }),
        _ => {}
    }
    let given = args.asimov_at.iter().map(|at| (at.name.as_str(), at.value));
    let is_given = matches!(args.asimov, Some(Some(_)));
    for (element, value) in settings(&model.parameters, "--asimov-at", given)? {
        if is_given && model.poi() == Some(element) {
            return Err(CliError::AsimovTwice { name: model.parameters.names[element].clone() });
        }
        point[element] = value;
    }
    let data = expected::asimov(model, &point);
    match diagnose(model, &data, &point) {
        None => Ok(data),
        // The same with what was really seen, for the message.
        Some(reason) => Err(CliError::NoAsimov(diagnose(model, &model.observed, &point).unwrap_or(reason))),
    }
}
