//! `nextstat check`: what makes a model wrong, before a fit does.

use std::sync::Arc;

use ns_compute::CpuLikelihood;
use ns_compute::cpu::Plan;
use ns_core::check::{At, Finding, Problem, Severity, check};
use ns_core::expected;
use ns_core::spec::Workspace;
use ns_core::{Likelihood, Model};
use ns_inference::degeneracy;
use ns_inference::memory::{self, TooLarge};

use super::{Status, model};
use crate::args::CheckArgs;
use crate::error::CliError;
use crate::report::{self, Talk};

/// Expected correlations above this are worth a warning.
const CORRELATION_LIMIT: f64 = 0.995;

pub(super) fn run(args: &CheckArgs) -> Result<Status, CliError> {
    let (workspace, model) = model::model(&args.model)?;
    let mut likelihood = expected_likelihood(&model)?;
    let findings = findings(&workspace, &model, &mut likelihood);
    report::write_json(&report::check::document(&model, &findings), &args.output)?;
    let worst_allowed = if args.strict { Severity::Note } else { Severity::Warning };
    let n_bad = findings.iter().filter(|finding| finding.severity() < worst_allowed).count();
    let alarm = (n_bad > 0).then(|| format!("{n_bad} things are wrong with the model"));
    Talk::new(&args.output).say_or_warn(alarm.as_deref(), |paint| report::check::summary(&findings, paint));
    Ok(Status::positive_if(n_bad == 0))
}

/// Everything that is found, as the command writes it; `likelihood` is an [`expected_likelihood`] of the model.
#[must_use]
pub fn document(workspace: &Workspace, model: &Model, likelihood: &mut impl Likelihood) -> serde_json::Value {
    report::check::document(model, &findings(workspace, model, likelihood))
}

/// The likelihood of the data that the model expects at its starting values.
///
/// # Errors
/// [`TooLarge`] if the matrices that are to be looked at do not fit into memory.
pub fn expected_likelihood(model: &Model) -> Result<CpuLikelihood, TooLarge> {
    let data = expected::asimov(model, &model.parameters.init);
    let likelihood = CpuLikelihood::with_plan(Arc::new(Plan::new(model)), &data);
    memory::require(&likelihood.structure()).map(|()| likelihood)
}

/// Everything that is found, worst first.
fn findings(workspace: &Workspace, model: &Model, likelihood: &mut impl Likelihood) -> Vec<Finding> {
    let mut findings = check(workspace, model);
    findings.extend(degenerate_parameters(model, likelihood));
    findings.sort_by_key(Finding::severity);
    findings
}

/// Parameters that data would hardly tell apart, from the likelihood of the data that the model expects.
fn degenerate_parameters(model: &Model, likelihood: &mut impl Likelihood) -> Vec<Finding> {
    if !likelihood.nll(&model.parameters.init).is_finite() {
        return Vec::new();
    }
    let found = degeneracy(model, likelihood, CORRELATION_LIMIT);
    let name = |i: usize| model.parameters.names[i].clone();
    // A single parameter that nothing determines has its own finding.
    let directions =
        found.flat_directions.into_iter().filter(|direction| direction.parameters.len() > 1).map(|direction| {
            let problem = Problem::Degenerate { curvature: direction.curvature, parameters: direction.parameters };
            Finding { problem, at: At::default() }
        });
    let pairs = found.pairs.into_iter().map(|pair| {
        let problem = Problem::StronglyCorrelated { other: name(pair.second), correlation: pair.correlation };
        Finding { problem, at: At { parameter: Some(name(pair.first)), ..At::default() } }
    });
    directions.chain(pairs).collect()
}
