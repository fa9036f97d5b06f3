//! Which parameters of a model may hide minima: those whose effect on the expected counts is far from linear.

use super::growth::growth;
use ns_core::Model;
use ns_core::nonlinearity::NearDegeneratePair;
use std::collections::{BTreeSet, HashSet};

/// Parameters that are bent less than this hide no minima (`ns_core::nonlinearity`).
const BENT: f64 = 0.3;

/// From this bend on a pair is moved in large models too.
const STRONGLY_BENT: f64 = 3.0;

/// A normsys factor above this makes a parameter a strong suspect, from a smaller bend on.
const EXPLOSIVE: f64 = 3.0;
const EXPLOSIVELY_BENT: f64 = 0.1;

/// Where nuisance parameters are moved to, in standard deviations of their constraint terms.
const MOVED_TO: [f64; 7] = [-4.5, -2.0, -1.0, 0.0, 1.0, 2.0, 4.5];

/// The same for parameters of an explosive normsys.
const MOVED_FAR_TO: [f64; 7] = [-3.5, -2.0, -1.0, 0.0, 1.0, 2.0, 3.5];

/// Where one parameter of a near-degenerate pair is moved to, and the other one against it.
const PAIR_MOVED_TO: [f64; 2] = [-1.0, 1.0];

/// The largest number of pairs.
const MOST_PAIRS: usize = 8;

/// Why parameters may hide minima.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One parameter whose effect is far from linear.
    Bent,
    /// One parameter with a normsys that multiplies a yield several times.
    Explosive,
    /// Two parameters with nearly the same effect.
    Pair,
    /// An explosive parameter and all others that let the same yield grow: for large models.
    Growth,
    /// A free scale factor of a model that has other suspects.
    Scale,
}

/// Parameters that may hide minima.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// Why they may.
    pub kind: Kind,
    /// The parameters, which are moved together.
    pub parameters: Vec<usize>,
    /// Their bend; 0 for a free scale factor.
    pub bend: f64,
    /// Where they are moved to: one value for each parameter.
    pub points: Vec<Vec<f64>>,
}

impl Suspect {
    /// Whether they are moved in large models too.
    #[must_use]
    pub fn is_strong(&self) -> bool {
        match self.kind {
            Kind::Explosive | Kind::Growth => true,
            Kind::Pair => self.bend > STRONGLY_BENT,
            Kind::Bent | Kind::Scale => false,
        }
    }
}

/// The suspects of `model`, most bent first, then its free scale factors. Empty if nothing is bent.
#[must_use]
pub fn suspects(model: &Model) -> Vec<Suspect> {
    let nonlinearity = &model.nonlinearity;
    let pairs: Vec<&NearDegeneratePair> =
        nonlinearity.pairs.iter().filter(|pair| pair.bend > BENT).take(MOST_PAIRS).collect();
    let mut found: Vec<Suspect> = (0..nonlinearity.bend.len())
        .filter_map(|parameter| {
            let (bend, factor) = (nonlinearity.bend[parameter], nonlinearity.factor[parameter]);
            // With one parameter of a pair fixed, the other one is all that is left to move.
            let is_paired = pairs.iter().any(|pair| pair.parameters.contains(&parameter));
            let is_explosive = factor > EXPLOSIVE && bend > EXPLOSIVELY_BENT;
            let moved_to = if is_explosive { &MOVED_FAR_TO[..] } else { &MOVED_TO };
            (bend > BENT || is_explosive || is_paired).then(|| Suspect {
                kind: if is_explosive { Kind::Explosive } else { Kind::Bent },
                parameters: vec![parameter],
                bend,
                points: moved_to.iter().map(|&value| vec![value]).collect(),
            })
        })
        .collect();
    found.extend(pairs.into_iter().map(|pair| Suspect {
        kind: Kind::Pair,
        parameters: pair.parameters.to_vec(),
        bend: pair.bend,
        points: PAIR_MOVED_TO.map(|value| vec![value, pair.sign * value]).to_vec(),
    }));
    let explosive = found.iter().filter(|suspect| suspect.kind == Kind::Explosive);
    let mut growing: Vec<Suspect> = explosive.filter_map(|s| growth(model, s.parameters[0], s.bend)).collect();
    growing.sort_by(|a, b| b.bend.total_cmp(&a.bend));
    // Two explosive parameters of one template let it grow in the same way.
    let mut templates = HashSet::new();
    growing.retain(|suspect| templates.insert(suspect.parameters.iter().copied().collect::<BTreeSet<_>>()));
    found.extend(growing);
    found.sort_by(|a, b| b.bend.total_cmp(&a.bend));
    if !found.is_empty() {
        found.extend(free_scales(model));
    }
    found
}

/// The unconstrained scale factors, each to be moved to nothing, to its start, to twice that and more, and to
/// the upper end of its range.
fn free_scales(model: &Model) -> Vec<Suspect> {
    let mut params: Vec<u32> = model.table(model.layout.scale_param).to_vec();
    params.sort_unstable();
    params.dedup();
    let parameters = &model.parameters;
    let free = params.into_iter().map(|param| param as usize).filter(|&i| parameters.constraint[i].is_none());
    let suspect = |parameter: usize| {
        let init = parameters.init[parameter];
        let mut points = [0.0, init, 2.0 * init + 1.0].map(|value| vec![value]).to_vec();
        points.extend(parameters.upper[parameter].is_finite().then(|| vec![parameters.upper[parameter]]));
        Suspect { kind: Kind::Scale, parameters: vec![parameter], bend: 0.0, points }
    };
    free.map(suspect).collect()
}
