//! Counts and lists the contents of a workspace, as `pyhf inspect` does.

use crate::compile::{CompileError, choose_measurement};
use crate::formula::Formula;
use crate::spec::{Modifier, ModifierKind, Workspace};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The contents of a workspace; lists are sorted by name, measurements are in document order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkspaceSummary {
    /// The number of elements of each kind.
    pub summary: WorkspaceCounts,
    /// Channels and their numbers of bins.
    pub channels: Vec<(String, usize)>,
    /// The names of the samples.
    pub samples: Vec<String>,
    /// Modifiers and their types; of several types, the last by name.
    pub modifiers: BTreeMap<String, ModifierKind>,
    /// Parameters and the kinds of their constraints.
    pub parameters: Vec<(String, ConstraintKind)>,
    /// Parameters, their constraints, and the types of the modifiers that use them.
    pub systematics: Vec<(String, ConstraintKind, Vec<ModifierKind>)>,
    /// Measurements, their parameters of interest (empty if none), and the parameters that they
    /// set.
    pub measurements: Vec<(String, String, Vec<String>)>,
    /// The measurement that is used by default.
    pub measurement: String,
}

/// The number of elements of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WorkspaceCounts {
    /// The number of channels.
    pub channels: usize,
    /// Bins of all channels.
    pub bins: usize,
    /// Samples, by name.
    pub samples: usize,
    /// Parameters, by name: a vector counts as one.
    pub parameters: usize,
    /// Modifiers, by name.
    pub modifiers: usize,
}

/// How a parameter is constrained, in pyhf's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConstraintKind {
    /// Not at all.
    Unconstrained,
    /// By a Gaussian.
    ConstrainedByNormal,
    /// By a Poisson term.
    ConstrainedByPoisson,
}

impl ConstraintKind {
    /// Returns the constraint that modifiers of a kind bring along.
    #[must_use]
    pub fn of(kind: ModifierKind) -> Self {
        match kind {
            ModifierKind::NormFactor | ModifierKind::ShapeFactor | ModifierKind::Formula | ModifierKind::Morphing => {
                Self::Unconstrained
            }
            ModifierKind::ShapeSys => Self::ConstrainedByPoisson,
            _ => Self::ConstrainedByNormal,
        }
    }

    /// Returns pyhf's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unconstrained => "unconstrained",
            Self::ConstrainedByNormal => "constrained_by_normal",
            Self::ConstrainedByPoisson => "constrained_by_poisson",
        }
    }
}

/// Returns the contents of `workspace`, which need not be valid enough to compile.
///
/// # Errors
/// A `measurement` that the workspace does not have, two with one name, or none at all.
pub fn summarize(workspace: &Workspace, measurement: Option<&str>) -> Result<WorkspaceSummary, CompileError> {
    let (_, chosen) = choose_measurement(workspace, measurement)?;
    let mut channels: Vec<(String, usize)> =
        workspace.channels.iter().map(|c| (c.name.clone(), c.samples.first().map_or(0, |s| s.data.len()))).collect();
    channels.sort();
    let samples: BTreeSet<&str> =
        workspace.channels.iter().flat_map(|c| c.samples.iter().map(|s| s.name.as_str())).collect();
    let systematic = |(name, kinds): (&String, &BTreeSet<&'static str>)| {
        let mut kinds: Vec<ModifierKind> = kinds.iter().filter_map(|word| ModifierKind::from_word(word)).collect();
        kinds.dedup();
        (name.clone(), ConstraintKind::of(kinds[0]), kinds)
    };
    let systematics: Vec<_> = kinds_by_parameter(workspace).iter().map(systematic).collect();
    let modifiers = kinds_by_name(workspace);
    let measurements = workspace.measurements.iter().map(|m| {
        let parameters = m.parameters.iter().map(|p| p.name.clone()).collect();
        (m.name.clone(), m.poi.clone().unwrap_or_default(), parameters)
    });
    let summary = WorkspaceCounts {
        channels: channels.len(),
        bins: channels.iter().map(|(_, bins)| bins).sum(),
        samples: samples.len(),
        parameters: systematics.len(),
        modifiers: modifiers.len(),
    };
    let last = |(name, kinds): (&&str, &BTreeSet<&'static str>)| {
        Some(((*name).to_owned(), ModifierKind::from_word(kinds.last()?)?))
    };
    Ok(WorkspaceSummary {
        summary,
        channels,
        samples: samples.into_iter().map(str::to_owned).collect(),
        modifiers: modifiers.iter().filter_map(last).collect(),
        parameters: systematics.iter().map(|(name, constraint, _)| (name.clone(), *constraint)).collect(),
        systematics,
        measurements: measurements.collect(),
        measurement: chosen.name.clone(),
    })
}

fn kinds_by_name(workspace: &Workspace) -> BTreeMap<&str, BTreeSet<&'static str>> {
    let mut kinds: BTreeMap<&str, BTreeSet<&'static str>> = BTreeMap::new();
    for modifier in modifiers(workspace) {
        kinds.entry(&modifier.name).or_default().insert(modifier.kind().as_str());
    }
    kinds
}

fn modifiers(workspace: &Workspace) -> impl Iterator<Item = &Modifier> {
    workspace.channels.iter().flat_map(|channel| &channel.samples).flat_map(|sample| &sample.modifiers)
}

/// Returns the parameters, with the kinds of modifier that use them. Formulas have no parameter of
/// their own name, and those that they name are theirs unless another modifier uses them.
fn kinds_by_parameter(workspace: &Workspace) -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut kinds: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    for modifier in modifiers(workspace).filter(|modifier| !modifier.kind().has_formula()) {
        kinds.entry(modifier.name.clone()).or_default().insert(modifier.kind().as_str());
    }
    let (others, formulas): (BTreeSet<String>, Vec<&Modifier>) = (
        kinds.keys().cloned().collect(),
        modifiers(workspace).filter(|modifier| modifier.kind().has_formula()).collect(),
    );
    let is_formula = |name: &str| formulas.iter().any(|m| m.kind() == ModifierKind::Formula && m.name == name);
    for modifier in &formulas {
        for expression in modifier.expressions() {
            let arguments = expression.parameters.as_deref().unwrap_or_default();
            // What is not a formula is for the compiler to refuse.
            let Ok(formula) = Formula::parse(&expression.text, arguments) else { continue };
            let names = formula.names().iter().map(|name| name.split('[').next().unwrap_or(name).to_owned());
            for name in names.filter(|name| !others.contains(name) && !is_formula(name)) {
                kinds.entry(name).or_default().insert(modifier.kind().as_str());
            }
        }
    }
    kinds
}
