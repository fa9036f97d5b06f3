//! What programs that read the XML do otherwise than the workspace says, and what it leaves out.

use std::collections::HashSet;

use ns_core::spec::{ConstraintTerm, Measurement, ModifierKind, ParameterConfig, Workspace};

use super::roles::{Role, RoleKind, Roles};
use crate::clip::{ALPHA_LIMIT, cut_off};
use crate::hint::listed_in_backticks;

/// Returns what programs that read the XML do otherwise than the workspace says.
pub(super) fn of(workspace: &Workspace, roles: &Roles<'_>) -> Vec<String> {
    let measurements = workspace.measurements.iter().enumerate();
    let ranges = measurements.filter_map(|(m, measurement)| ranges(measurement, m, roles));
    renamed(workspace, roles).into_iter().chain(ranges).chain(cut(workspace)).chain(scaled(workspace, roles)).collect()
}

/// Says that a staterror is called after its channel.
fn renamed(workspace: &Workspace, roles: &Roles<'_>) -> Vec<String> {
    let new_name = |role: &Role<'_>| match role.kind {
        RoleKind::Stat { channel } => format!("staterror_{}", workspace.channels[channel].name),
        _ => role.name.to_owned(),
    };
    let renamed = roles.roles.iter().filter(|role| new_name(role) != role.name);
    let said = renamed.map(|role| {
        let (old, new) = (role.name, new_name(role));
        format!("modifier `{old}` is called `{new}` in XML: a staterror has no name of its own there")
    });
    said.collect()
}

/// Says which ranges of parameters are not in the XML: it has those of factors, once for all
/// measurements.
fn ranges(measurement: &Measurement, m: usize, roles: &Roles<'_>) -> Option<String> {
    let is_lost = |config: &&ParameterConfig| match (roles.get(&config.name), &config.bounds) {
        (Some(role), Some(bounds)) => bounds.iter().any(|range| *range != range_in_xml(role, m, *range)),
        _ => false,
    };
    let lost: Vec<&str> = measurement.parameters.iter().filter(is_lost).map(|config| config.name.as_str()).collect();
    let (name, shown) = (&measurement.name, listed_in_backticks(&lost));
    (!lost.is_empty()).then(|| format!("measurement `{name}`: XML cannot say bounds of {shown}"))
}

/// Returns the range that a parameter has by the XML, or `own` where it is that of the program.
fn range_in_xml(role: &Role<'_>, m: usize, own: [f64; 2]) -> [f64; 2] {
    match role.kind {
        RoleKind::Norm => role.factor().1,
        RoleKind::Systematic { .. } if role.replacement(m).is_none() => [-ALPHA_LIMIT, ALPHA_LIMIT],
        // Both of pyhf's and of ROOT's, which depend on widths.
        RoleKind::Shape | RoleKind::Stat { .. } if own[0] < 1.0 && own[1] >= 10.0 => own,
        RoleKind::Shape | RoleKind::Stat { .. } => [1e-10, 10.0],
        _ => own,
    }
}

/// Says which templates ROOT cuts off at zero.
fn cut(workspace: &Workspace) -> Option<String> {
    let mut lost = Vec::new();
    for channel in &workspace.channels {
        let mut cut = channel.clone();
        cut_off(&mut cut, &[]);
        for (before, after) in channel.samples.iter().zip(&cut.samples) {
            let is_all = workspace.measurements.iter().all(|measurement| measurement.clip.templates.is_some());
            if before.template.clip.is_none() && after.template.clip.is_some() && !is_all {
                lost.push(format!("{}/{}", channel.name, before.name));
            }
        }
    }
    let shown = listed_in_backticks(&lost);
    (!lost.is_empty()).then(|| format!("ROOT cuts off templates at zero, which the workspace does not: {shown}"))
}

/// Says which samples ROOT scales although they do not follow the luminosity.
fn scaled(workspace: &Workspace, roles: &Roles<'_>) -> Option<String> {
    let lumi = roles.lumi()?;
    let is_free = |config: &Option<&ParameterConfig>| {
        config.is_none_or(|config| {
            config.fixed != Some(true) && config.constraints.as_deref() != Some(&[ConstraintTerm::Flat])
        })
    };
    if !lumi.configs.iter().any(is_free) {
        return None;
    }
    let (mut names, mut known) = (Vec::new(), HashSet::new());
    for sample in workspace.channels.iter().flat_map(|channel| &channel.samples) {
        let follows = sample.modifiers.iter().any(|modifier| modifier.kind() == ModifierKind::Lumi);
        if !follows && known.insert(sample.name.as_str()) {
            names.push(sample.name.as_str());
        }
    }
    let shown = listed_in_backticks(&names);
    (!names.is_empty()).then(|| format!("ROOT 6.40 scales samples by Lumi that do not follow it here: {shown}"))
}

/// Returns the JSON pointers of what the XML does not have, other than parts of the model: settings
/// of parameters and observations of channels that the model does not have, and labels.
pub(super) fn lost(workspace: &Workspace, roles: &Roles<'_>) -> Vec<String> {
    let mut lost = Vec::new();
    for (o, observation) in workspace.observations.iter().enumerate() {
        if !workspace.channels.iter().any(|channel| channel.name == observation.name) {
            lost.push(format!("/observations/{o}"));
        }
    }
    for (m, measurement) in workspace.measurements.iter().enumerate() {
        for (p, config) in measurement.parameters.iter().enumerate() {
            let pointer = format!("/measurements/{m}/config/parameters/{p}");
            if roles.get(&config.name).is_none() {
                lost.push(pointer);
                continue;
            }
            if config.is_poi {
                lost.push(format!("{pointer}/poi"));
            }
            if !config.groups.is_empty() {
                lost.push(format!("{pointer}/groups"));
            }
        }
    }
    lost
}
