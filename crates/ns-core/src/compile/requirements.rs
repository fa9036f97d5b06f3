//! Collects the parameters that the modifiers of a workspace need, in pyhf's order.
//!
//! Kinds come in the order of [`ModifierKind::ALL`]; inside a kind names come by first appearance
//! over sorted channels, sorted samples and sorted modifiers, except staterror, whose names are
//! sorted. A name that histosys and normsys share is one parameter.

use super::error::CompileError;
use super::formulas::FormulaTable;
use super::settings::Requirement;
use super::structure::{SortedOrder, place};
use crate::constraint::Constraint;
use crate::spec::{Measurement, Modifier, ModifierData, ModifierKind, Sample, Workspace};
use std::collections::HashMap;

/// A modifier with its place in the document.
#[derive(Clone, Copy)]
struct Use<'a> {
    channel: usize,
    sample: usize,
    index: usize,
    modifier: &'a Modifier,
    nominal: &'a [f64],
    workspace: &'a Workspace,
}

impl Use<'_> {
    fn place(&self, rest: &str) -> super::error::SamplePlace {
        place(self.workspace, self.channel, self.sample, &format!("/modifiers/{}{rest}", self.index))
    }
}

/// Returns every modifier, by kind, in the order of the model.
fn uses_by_kind<'a>(workspace: &'a Workspace, order: &SortedOrder) -> [Vec<Use<'a>>; 10] {
    let mut uses: [Vec<Use<'a>>; 10] = Default::default();
    for (&channel, samples) in order.channels.iter().zip(&order.samples) {
        for &sample in samples {
            let Sample { data, modifiers, .. } = &workspace.channels[channel].samples[sample];
            let mut sorted: Vec<usize> = (0..modifiers.len()).collect();
            sorted.sort_by_key(|&m| (modifiers[m].name.as_str(), modifiers[m].kind().as_str()));
            for index in sorted {
                let modifier = &modifiers[index];
                // Parameters of formulas come with normfactors, so that a formula `mu` equals a
                // normfactor `mu`.
                let kind = if modifier.kind().has_formula() { ModifierKind::NormFactor } else { modifier.kind() };
                uses[kind as usize].push(Use { channel, sample, index, modifier, nominal: data, workspace });
            }
        }
    }
    uses
}

/// Returns the parameter sets that the modifiers need, in order, before any measurement's settings.
pub(super) fn collect(
    workspace: &Workspace,
    order: &SortedOrder,
    formulas: &FormulaTable<'_>,
    measurement: &Measurement,
) -> Result<Vec<Requirement>, CompileError> {
    let uses = uses_by_kind(workspace, order);
    let settings = measurement.parameters.iter().map(|setting| setting.name.as_str());
    let declared: Vec<&str> = settings.chain(measurement.poi.as_deref()).collect();
    let mut collected = Collected::default();
    for kind in ModifierKind::ALL {
        let uses = &uses[kind as usize];
        match kind {
            ModifierKind::StatError => collected.add_staterrors(uses, order)?,
            ModifierKind::McStat => uses.iter().try_for_each(|u| collected.add_mc_stat(u))?,
            _ => uses.iter().try_for_each(|u| {
                if u.modifier.kind().has_formula() {
                    return collected.add_formula(u, formulas, &declared);
                }
                collected.add(u)
            })?,
        }
    }
    if collected.requirements.is_empty() { Err(CompileError::NoParameters) } else { Ok(collected.requirements) }
}

#[derive(Default)]
struct Collected {
    requirements: Vec<Requirement>,
    by_name: HashMap<String, usize>,
}

impl Collected {
    fn add(&mut self, u: &Use<'_>) -> Result<(), CompileError> {
        let kind = u.modifier.kind();
        let Some(&known) = self.by_name.get(&u.modifier.name) else {
            self.push(requirement(u));
            return Ok(());
        };
        let known = &mut self.requirements[known];
        if known.kinds.contains(&kind) {
            return check_repeat(u, known);
        }
        let alphas = [ModifierKind::HistoSys, ModifierKind::NormSys];
        if alphas.contains(&kind) && known.kinds.iter().all(|k| alphas.contains(k)) {
            known.kinds.push(kind);
            return Ok(());
        }
        Err(incompatible(u, known))
    }

    /// Adds the parameters that only formulas name: free factors.
    fn add_formula(&mut self, u: &Use<'_>, formulas: &FormulaTable<'_>, declared: &[&str]) -> Result<(), CompileError> {
        for name in formulas.own_parameters([u.channel, u.sample, u.index], declared)? {
            match self.by_name.get(name) {
                Some(&known) if !self.requirements[known].kinds.contains(&u.modifier.kind()) => {
                    self.requirements[known].kinds.push(u.modifier.kind());
                }
                Some(_) => {}
                None => self.push(Requirement { name: name.to_owned(), ..requirement(u) }),
            }
        }
        Ok(())
    }

    /// Adds the parameters of the statistical uncertainty of sums, or the bins that another sample
    /// of the channel has uncertainties in.
    fn add_mc_stat(&mut self, u: &Use<'_>) -> Result<(), CompileError> {
        let Some(&known) = self.by_name.get(&u.modifier.name) else {
            self.push(requirement(u));
            return Ok(());
        };
        let known = &mut self.requirements[known];
        if !known.kinds.contains(&ModifierKind::McStat) {
            return Err(incompatible(u, known));
        }
        let place = u.place("");
        if place.channel != known.place.channel {
            let (modifier, first) = (known.name.clone(), known.place.pointer.clone());
            return Err(CompileError::SharedMcStat { place, modifier, first });
        }
        let ModifierData::McStat(errors) = &u.modifier.data else { return Ok(()) };
        known.fixed.iter_mut().zip(errors).for_each(|(fixed, error)| *fixed &= *error == 0.0);
        Ok(())
    }

    fn push(&mut self, requirement: Requirement) {
        self.by_name.insert(requirement.name.clone(), self.requirements.len());
        self.requirements.push(requirement);
    }

    fn add_staterrors(&mut self, uses: &[Use<'_>], order: &SortedOrder) -> Result<(), CompileError> {
        let mut names: Vec<&str> = uses.iter().map(|u| u.modifier.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let mut by_name: HashMap<&str, Vec<Use<'_>>> = HashMap::new();
        for u in uses {
            by_name.entry(&u.modifier.name).or_default().push(*u);
        }
        for name in names {
            let uses = &by_name[name];
            if let Some(&known) = self.by_name.get(name) {
                return Err(incompatible(&uses[0], &self.requirements[known]));
            }
            check_same_channels(uses)?;
            self.push(staterror(uses, order));
        }
        Ok(())
    }
}

fn incompatible(u: &Use<'_>, known: &Requirement) -> CompileError {
    let (name, kind, other) = (known.name.clone(), u.modifier.kind(), known.kinds[0]);
    CompileError::IncompatibleKinds { place: u.place(""), name, kind, other }
}

fn check_repeat(u: &Use<'_>, known: &Requirement) -> Result<(), CompileError> {
    let modifier = || known.name.clone();
    match u.modifier.kind() {
        ModifierKind::ShapeSys => {
            let first = known.place.pointer.clone();
            Err(CompileError::SharedShapeSys { place: u.place(""), modifier: modifier(), first })
        }
        ModifierKind::ShapeFactor if known.init.len() != u.nominal.len() => {
            let (expected, found) = (known.init.len(), u.nominal.len());
            Err(CompileError::ShapeFactorLength { place: u.place(""), modifier: modifier(), expected, found })
        }
        _ => Ok(()),
    }
}

fn requirement(u: &Use<'_>) -> Requirement {
    let kind = u.modifier.kind();
    let unit_gaussian = vec![Some(Constraint::Gaussian { sigma: 1.0 })];
    let n_bins = u.nominal.len();
    let (init, bounds, constraints, aux, fixed) = match &u.modifier.data {
        ModifierData::HistoSys { .. } | ModifierData::NormSys { .. } => {
            (vec![0.0], vec![[-5.0, 5.0]], unit_gaussian, vec![0.0], vec![false])
        }
        // The measurement must set these; settings::apply refuses a lumi without them.
        ModifierData::Lumi => (vec![1.0], vec![[0.0, 10.0]], unit_gaussian, vec![1.0], vec![false]),
        ModifierData::NormFactor | ModifierData::Formula(_) | ModifierData::Morphing(_) => {
            (vec![1.0], vec![[0.0, 10.0]], vec![None], vec![0.0], vec![false])
        }
        ModifierData::McStat(errors) => {
            let fixed = errors.iter().map(|error| *error == 0.0).collect();
            let terms = vec![Some(Constraint::Gaussian { sigma: 1.0 }); n_bins];
            (vec![0.0; n_bins], vec![NU_BOUNDS; n_bins], terms, vec![0.0; n_bins], fixed)
        }
        ModifierData::ShapeFactor | ModifierData::StatError(_) => {
            (vec![1.0; n_bins], vec![[0.0, 10.0]; n_bins], vec![None; n_bins], vec![0.0; n_bins], vec![false; n_bins])
        }
        ModifierData::ShapeSys(uncertainties) => {
            let usable = |(&nominal, &sigma): (&f64, &f64)| nominal > 0.0 && sigma > 0.0;
            let bins = || u.nominal.iter().zip(uncertainties);
            // The relative uncertainty first: one rounding less than n²/s², as pyhf has it, and the
            // same to within an ulp or two.
            let tau = |(n, s): (&f64, &f64)| if usable((n, s)) { (n / s).powi(2) } else { 1.0 };
            let taus: Vec<f64> = bins().map(tau).collect();
            let constraints = taus.iter().map(|&tau| Some(Constraint::Poisson { tau })).collect();
            (vec![1.0; n_bins], vec![GAMMA_BOUNDS; n_bins], constraints, taus, bins().map(|b| !usable(b)).collect())
        }
    };
    let (name, place) = (u.modifier.name.clone(), u.place(""));
    let (is_scalar, kinds) = (!kind.is_per_bin(), vec![kind]);
    Requirement { name, kinds, is_scalar, init, bounds, fixed, constraints, aux, elements: None, place }
}

/// The range of the parameter of a statistical uncertainty of sums: Combine's.
const NU_BOUNDS: [f64; 2] = [-7.0, 7.0];

/// The range of a constrained per-bin factor.
const GAMMA_BOUNDS: [f64; 2] = [1e-10, 10.0];

/// Checks that every sample with a staterror has it in the same channels.
fn check_same_channels(uses: &[Use<'_>]) -> Result<(), CompileError> {
    let mut channels_of: Vec<(&str, Vec<usize>, usize)> = Vec::new();
    for (i, u) in uses.iter().enumerate() {
        let sample = u.workspace.channels[u.channel].samples[u.sample].name.as_str();
        match channels_of.iter_mut().find(|(name, ..)| *name == sample) {
            Some((_, channels, _)) => channels.push(u.channel),
            None => channels_of.push((sample, vec![u.channel], i)),
        }
    }
    let (reference, expected, _) = &channels_of[0];
    let Some((_, _, i)) = channels_of.iter().find(|(_, channels, _)| channels != expected) else {
        return Ok(());
    };
    let (modifier, other_sample) = (uses[*i].modifier.name.clone(), (*reference).to_owned());
    Err(CompileError::StatErrorChannels { place: uses[*i].place(""), modifier, other_sample })
}

/// Returns the requirement of a staterror, one factor per bin of the channels that have it: σ =
/// √Σu² / Σnominal over the samples that carry it.
///
/// In pyhf the sum of nominals runs over samples that carry the name in any channel; they carry it
/// in the same ones, so it is the same. A bin without nominal yield or uncertainty has σ = 0; it
/// becomes σ = 1 and the factor is fixed.
fn staterror(uses: &[Use<'_>], order: &SortedOrder) -> Requirement {
    let mut constraints = Vec::new();
    let mut fixed = Vec::new();
    for &channel in &order.channels {
        let here: Vec<&Use<'_>> = uses.iter().filter(|u| u.channel == channel).collect();
        for bin in 0..here.first().map_or(0, |u| u.nominal.len()) {
            let nominal: f64 = here.iter().map(|u| u.nominal[bin]).sum();
            let square = |u: &&Use<'_>| match &u.modifier.data {
                ModifierData::StatError(sigmas) if nominal > 0.0 => (sigmas[bin] / nominal).powi(2),
                _ => 0.0,
            };
            let sigma = here.iter().map(square).sum::<f64>().sqrt();
            fixed.push(sigma == 0.0);
            constraints.push(Some(Constraint::Gaussian { sigma: if sigma == 0.0 { 1.0 } else { sigma } }));
        }
    }
    let n = fixed.len();
    Requirement {
        init: vec![1.0; n],
        bounds: vec![GAMMA_BOUNDS; n],
        fixed,
        constraints,
        aux: vec![1.0; n],
        ..requirement(&uses[0])
    }
}
