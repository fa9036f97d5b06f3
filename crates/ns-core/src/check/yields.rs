//! Finds empty bins, negative yields, and observations far from their expectation.

use super::finding::{Finding, FindingKind, FindingPlace};
use crate::expected::expected_main;
use crate::likelihood::{diagnose, nll};
use crate::model::Model;
use crate::spec::{Channel, ModifierData, Workspace};

/// The largest distance of an observation from its expectation at the starting values: this factor
/// and this many √λ.
const FAR_FACTOR: f64 = 2.0;
const FAR_SIGMAS: f64 = 5.0;

pub(super) fn look(workspace: &Workspace, model: &Model, findings: &mut Vec<Finding>) {
    let n_before = findings.len();
    for (c, channel) in workspace.channels.iter().enumerate() {
        let Some(index) = model.channels.iter().position(|name| *name == channel.name) else { continue };
        let observed = &model.observed.main[model.channel_bins(index)];
        totals(c, channel, observed, findings);
        negative_yields(c, channel, findings);
    }
    let explained = findings[n_before..].iter().any(|finding| match finding.problem {
        FindingKind::EmptyBin { observed } => observed > 0.0,
        FindingKind::NegativeTotal { .. } => true,
        _ => false,
    });
    let start = &model.parameters.init;
    let reason = if explained { None } else { diagnose(model, &model.observed, start) };
    match reason {
        Some(reason) => {
            findings.push(Finding { problem: FindingKind::NotFiniteAtStart { reason }, at: FindingPlace::default() });
        }
        None if !explained && !nll(model, &model.observed, start).is_finite() => overflow(model, findings),
        None => far_observations(workspace, model, findings),
    }
}

/// Reports an -ln L that is not finite although every expected count is.
fn overflow(model: &Model, findings: &mut Vec<Finding>) {
    let lambda = expected_main(model, &model.parameters.init);
    let bins = (0..model.channels.len()).map(|channel| model.channel_bins(channel));
    let largest =
        |bins: std::ops::Range<usize>| lambda[bins].iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    let found = bins.enumerate().filter_map(|(channel, bins)| Some((channel, largest(bins)?)));
    let Some((channel, (bin, expected))) = found.max_by(|a, b| a.1.1.total_cmp(&b.1.1)) else { return };
    let at = FindingPlace { channel: Some(model.channels[channel].clone()), bin: Some(bin), ..FindingPlace::default() };
    findings.push(Finding { problem: FindingKind::Overflow { expected }, at });
}

fn totals(c: usize, channel: &Channel, observed: &[f64], findings: &mut Vec<Finding>) {
    for (bin, &observed) in observed.iter().enumerate() {
        let total: f64 = channel.samples.iter().map(|sample| sample.data[bin]).sum();
        let problem = if total < 0.0 {
            FindingKind::NegativeTotal { total }
        } else if is_empty(channel, bin) {
            FindingKind::EmptyBin { observed }
        } else {
            continue;
        };
        let (pointer, name) = (Some(format!("/channels/{c}")), Some(channel.name.clone()));
        findings.push(Finding {
            problem,
            at: FindingPlace { pointer, channel: name, bin: Some(bin), ..FindingPlace::default() },
        });
    }
}

/// Returns `true` if no sample has a nominal or varied yield in the bin.
fn is_empty(channel: &Channel, bin: usize) -> bool {
    channel.samples.iter().all(|sample| {
        let mut variations = sample.modifiers.iter().filter_map(|modifier| match &modifier.data {
            ModifierData::HistoSys { lo_data, hi_data } => Some(lo_data[bin] == 0.0 && hi_data[bin] == 0.0),
            _ => None,
        });
        sample.data[bin] == 0.0 && variations.all(|empty| empty)
    })
}

fn negative_yields(c: usize, channel: &Channel, findings: &mut Vec<Finding>) {
    for (s, sample) in channel.samples.iter().enumerate() {
        let n_bins = sample.data.iter().filter(|yields| **yields < 0.0).count();
        let lowest = sample.data.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
        let Some((bin, &value)) = lowest.filter(|_| n_bins > 0) else { continue };
        let at = FindingPlace {
            pointer: Some(format!("/channels/{c}/samples/{s}/data/{bin}")),
            channel: Some(channel.name.clone()),
            sample: Some(sample.name.clone()),
            bin: Some(bin),
            ..FindingPlace::default()
        };
        findings.push(Finding { problem: FindingKind::NegativeYield { value, n_bins }, at });
    }
}

fn far_observations(workspace: &Workspace, model: &Model, findings: &mut Vec<Finding>) {
    let lambda = expected_main(model, &model.parameters.init);
    for (index, name) in model.channels.iter().enumerate() {
        let bins = model.channel_bins(index);
        let observed: f64 = model.observed.main[bins.clone()].iter().sum();
        let expected: f64 = lambda[bins].iter().sum();
        let sigmas = (observed - expected).abs() / expected.max(1.0).sqrt();
        let is_near = (expected / FAR_FACTOR..=expected * FAR_FACTOR).contains(&observed);
        if is_near || sigmas < FAR_SIGMAS {
            continue;
        }
        let position = workspace.observations.iter().position(|observation| observation.name == *name);
        let (pointer, channel) = (position.map(|o| format!("/observations/{o}")), Some(name.clone()));
        let problem = FindingKind::FarFromObservation { observed, expected };
        findings.push(Finding { problem, at: FindingPlace { pointer, channel, ..FindingPlace::default() } });
    }
}
