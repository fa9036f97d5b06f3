//! Finds parameters that change nothing, start outside their bounds, or are fixed for lack of a
//! yield.

use super::finding::{Finding, FindingKind, FindingPlace};
use crate::expected::expected_main;
use crate::model::Model;
use crate::parameters::ParameterSet;
use crate::spec::{ModifierKind, Workspace};

pub(super) fn look(workspace: &Workspace, model: &Model, findings: &mut Vec<Finding>) {
    starts(model, findings);
    effects(model, findings);
    for set in &model.parameters.sets {
        fixed_gammas(workspace, model, set, findings);
    }
}

fn at(parameter: &str) -> FindingPlace {
    FindingPlace { parameter: Some(parameter.to_owned()), ..FindingPlace::default() }
}

fn starts(model: &Model, findings: &mut Vec<Finding>) {
    let parameters = &model.parameters;
    for (p, name) in parameters.names.iter().enumerate() {
        let (start, lower, upper) = (parameters.init[p], parameters.lower[p], parameters.upper[p]);
        if !parameters.fixed[p] && !(lower..=upper).contains(&start) {
            findings.push(Finding { problem: FindingKind::StartOutsideBounds { start, lower, upper }, at: at(name) });
        }
    }
}

/// Examines every free parameter without a constraint: there are few, and each costs two
/// evaluations.
fn effects(model: &Model, findings: &mut Vec<Finding>) {
    let parameters = &model.parameters;
    for &poi in &model.pois {
        let (name, value) = (&parameters.names[poi], parameters.init[poi]);
        if !changes_yields(model, poi) {
            findings.push(Finding { problem: FindingKind::PoiWithoutEffect, at: at(name) });
        } else if parameters.fixed[poi] {
            findings.push(Finding { problem: FindingKind::PoiFixed { value }, at: at(name) });
        }
    }
    for (p, name) in parameters.names.iter().enumerate() {
        let is_free = parameters.constraint[p].is_none() && !parameters.fixed[p] && !model.pois.contains(&p);
        if is_free && !changes_yields(model, p) {
            findings.push(Finding { problem: FindingKind::ParameterWithoutEffect, at: at(name) });
        }
    }
}

/// Returns `true` if moving the parameter changes any yield. Other factors are moved away
/// from zero first, where they would suppress the effect.
fn changes_yields(model: &Model, param: usize) -> bool {
    let parameters = &model.parameters;
    let mut point: Vec<f64> = parameters.init.iter().map(|&value| if value == 0.0 { 0.5 } else { value }).collect();
    let before = expected_main(model, &point);
    point[param] += 0.25;
    expected_main(model, &point) != before
}

/// Finds elements of per-bin factors that are fixed although the measurement does not fix them.
fn fixed_gammas(workspace: &Workspace, model: &Model, set: &ParameterSet, findings: &mut Vec<Finding>) {
    let kind = set.kinds[0];
    let mut measurements = workspace.measurements.iter().filter(|measurement| measurement.name == model.measurement);
    let is_set =
        measurements.any(|m| m.parameters.iter().any(|config| config.name == set.name && config.fixed.is_some()));
    if is_set || !matches!(kind, ModifierKind::ShapeSys | ModifierKind::StatError) {
        return;
    }
    // Bins below a threshold, which have no term, are fixed on purpose.
    let is_lacking = |i: usize| model.parameters.fixed[i] && model.parameters.constraint[i].is_some();
    let bins: Vec<usize> = (0..set.len).filter(|&i| is_lacking(set.first + i)).collect();
    if !bins.is_empty() {
        findings.push(Finding { problem: FindingKind::FixedGammas { kind, bins }, at: at(&set.name) });
    }
}
