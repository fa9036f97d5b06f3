//! Which parameters of a model may hide minima: those whose effect on the expected counts is far
//! from linear.

use super::explore::THOROUGH;
use super::growth::{growth, reversal};
use super::mirror::curved_by_formulas;
use ns_core::Model;
use ns_core::nonlinearity::NearDegeneratePair;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Parameters that are bent less than this hide no minima (`ns_core::nonlinearity`).
const BENT: f64 = 0.3;

/// From this bend on a parameter or a pair is moved in large models too.
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

/// Where parameters of formulas are moved to, as parts of their ranges.
const RANGE: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// A template that becomes negative within this number of standard deviations makes its scale
/// factor a suspect.
const REVERSED: f64 = 3.0;

/// The largest number of pairs.
const MOST_PAIRS: usize = 8;

/// Why parameters may hide minima.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspectKind {
    /// One parameter whose effect is far from linear.
    Bent,
    /// One parameter with a normsys that multiplies a yield several times.
    Explosive,
    /// Two parameters with nearly the same effect.
    Pair,
    /// An explosive parameter and all others that let the same yield grow: for large models.
    Growth,
    /// A free scale factor of a model that has other suspects, or of a template that can become
    /// negative or has several.
    Scale,
    /// A parameter on which a formula depends, but not linearly.
    Formula,
    /// The same where all such formulas are polynomials of the second degree.
    Quadratic,
}

/// Parameters that may hide minima.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// Why they may.
    pub kind: SuspectKind,
    /// The parameters, which are moved together.
    pub parameters: Vec<usize>,
    /// Their bend; 0 for a free scale factor.
    pub bend: f64,
    /// Where they are moved to: one value for each parameter.
    pub points: Vec<Vec<f64>>,
}

impl Suspect {
    /// Returns `true` if they are moved in large models too.
    #[must_use]
    pub fn is_strong(&self) -> bool {
        match self.kind {
            SuspectKind::Explosive | SuspectKind::Growth => true,
            SuspectKind::Pair | SuspectKind::Bent => self.bend > STRONGLY_BENT,
            SuspectKind::Scale | SuspectKind::Formula | SuspectKind::Quadratic => false,
        }
    }
}

/// Returns the suspects of `model`, most bent first, then its free scale factors. Empty if nothing
/// is bent and, in a small model, no template with a free scale factor can become negative or has
/// two.
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
                kind: if is_explosive { SuspectKind::Explosive } else { SuspectKind::Bent },
                parameters: vec![parameter],
                bend,
                points: moved_to.iter().map(|&value| vec![value]).collect(),
            })
        })
        .collect();
    found.extend(pairs.into_iter().map(|pair| Suspect {
        kind: SuspectKind::Pair,
        parameters: pair.parameters.to_vec(),
        bend: pair.bend,
        points: PAIR_MOVED_TO.map(|value| vec![value, pair.sign * value]).to_vec(),
    }));
    let explosive = found.iter().filter(|suspect| suspect.kind == SuspectKind::Explosive);
    let mut growing: Vec<Suspect> = explosive.filter_map(|s| growth(model, s.parameters[0], s.bend)).collect();
    growing.sort_by(|a, b| b.bend.total_cmp(&a.bend));
    // Two explosive parameters of one template let it grow in the same way.
    let mut templates = HashSet::new();
    growing.retain(|suspect| templates.insert(suspect.parameters.iter().copied().collect::<BTreeSet<_>>()));
    found.extend(growing);
    found.sort_by(|a, b| b.bend.total_cmp(&a.bend));
    let (is_bent, is_small) = (!found.is_empty(), model.n_params().pow(2) <= THOROUGH);
    if is_bent || is_small {
        found.extend(free_scales(model, |templates| {
            is_bent || can_reverse(model, templates) || have_products(model, templates)
        }));
    }
    found.extend(curved_by_formulas(model).into_iter().filter(|&(i, _)| !model.parameters.fixed[i]).map(
        |(i, degree)| {
            let [lower, upper] = [model.parameters.lower[i], model.parameters.upper[i]];
            let points = RANGE.map(|part| vec![lower + part * (upper - lower)]).to_vec();
            let kind = if degree == 2 { SuspectKind::Quadratic } else { SuspectKind::Formula };
            Suspect { kind, parameters: vec![i], bend: 0.0, points }
        },
    ));
    found
}

/// Returns the unconstrained scale factors of templates that `may_hide` something, each to be moved
/// to nothing, to its start, to twice that and more, and to the finite ends of its range.
fn free_scales(model: &Model, may_hide: impl Fn(&[usize]) -> bool) -> Vec<Suspect> {
    let (layout, parameters) = (model.layout, &model.parameters);
    let mut scaled: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for template in 0..model.n_templates() {
        for &param in &model.table(layout.scale_param)[model.part(layout.template_scale, template)] {
            if (param as usize) < model.n_params() {
                scaled.entry(param as usize).or_default().push(template);
            }
        }
    }
    scaled.retain(|&param, templates| parameters.constraint[param].is_none() && may_hide(templates));
    let suspect = |parameter: usize| {
        let init = parameters.init[parameter];
        let ends = [parameters.lower[parameter], parameters.upper[parameter]];
        let far = ends.into_iter().filter(|end| end.is_finite() && *end != 0.0);
        let mut values: Vec<f64> = [0.0, init, 2.0 * init + 1.0].into_iter().chain(far).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let points = values.into_iter().map(|value| vec![value]).collect();
        Suspect { kind: SuspectKind::Scale, parameters: vec![parameter], bend: 0.0, points }
    };
    scaled.into_keys().map(suspect).collect()
}

/// Returns `true` if one of `templates` has several free scale factors without a constraint: only
/// their product is linear.
fn have_products(model: &Model, templates: &[usize]) -> bool {
    let (layout, parameters) = (model.layout, &model.parameters);
    let is_free = |&&param: &&u32| {
        let i = param as usize;
        // Derived quantities are suspects for themselves.
        i < model.n_params() && parameters.constraint[i].is_none() && !parameters.fixed[i]
    };
    let scales = |template: usize| &model.table(layout.scale_param)[model.part(layout.template_scale, template)];
    templates.iter().any(|&template| scales(template).iter().filter(is_free).count() > 1)
}

/// Returns `true` if histosys can make the yield of one of `templates` negative within
/// [`REVERSED`]: a large scale factor then takes away what other templates expect too much.
fn can_reverse(model: &Model, templates: &[usize]) -> bool {
    templates.iter().any(|&template| reversal(model, template) < REVERSED)
}
