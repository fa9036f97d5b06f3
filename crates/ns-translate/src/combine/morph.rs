//! The templates of one process in one channel, as the data, shifts and factors of a sample.
//!
//! Without `autoMCStats` Combine normalises every template, morphs it, clips it at 10⁻⁹, normalises
//! it again and scales it to the expected events; with it, templates keep their contents, and only
//! the variations are scaled to the nominal sum. In both cases the sum follows a variation by a
//! factor of its own ([`norm_factor`]).

use std::sync::Arc;

use ns_core::interpolate::InterpolationRule;
use ns_core::spec::{ModifierData, ModifierInterpolation, TemplateRule};

use super::numbers::six_decimals;
use super::templates::Template;

/// The lowest content of a bin in Combine: of normalised templates, and of others with
/// `autoMCStats`.
pub(super) const LOWEST: f64 = 1e-9;

/// Kappas this close to 1 change no sum.
const NEGLIGIBLE: f64 = 1e-3;

/// The largest value of a parameter of `shape?`, and of one that is `lnN` elsewhere; those of
/// `shape` alone end at 4.
const FARTHEST: f64 = 7.0;

/// A pair of templates that an uncertainty moves a process between.
pub(super) struct Variation {
    pub(super) name: String,
    /// The number in the card.
    pub(super) effect: f64,
    pub(super) up: Arc<Template>,
    pub(super) down: Arc<Template>,
}

/// How a channel treats its templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemplateMode {
    /// They are normalised.
    Normalized,
    /// They keep their contents, and variations have the nominal sum: `autoMCStats`.
    Scaled,
    /// They keep their contents and their sums: mode 2 of `autoMCStats`.
    AsWritten,
}

/// What becomes of the templates of a process.
pub(super) struct Morphed {
    /// Nominal yields (B), without factors.
    pub(super) data: Vec<f64>,
    /// Shifts by name.
    pub(super) shifts: Vec<(String, ModifierData, ModifierInterpolation)>,
    pub(super) rule: TemplateRule,
}

/// Returns the factors at -1σ and +1σ of the sum of a template; `None` if it does not change.
pub(super) fn norm_factor(nominal: &Template, variation: &Variation) -> Option<[f64; 2]> {
    let [down, up] = [variation.down.sum / nominal.sum, variation.up.sum / nominal.sum];
    if (up - 1.0).abs() < NEGLIGIBLE && (down - 1.0).abs() < NEGLIGIBLE {
        return None;
    }
    // Combine passes them through text.
    Some([down, up].map(|kappa| six_decimals(kappa.powf(variation.effect))))
}

/// Morphs `nominal` by `variations`, for `norm` expected events where it is normalised.
pub(super) fn morph(
    nominal: &Template,
    variations: &[Variation],
    (mode, is_logarithmic): (TemplateMode, bool),
    norm: f64,
) -> Morphed {
    let scaled = |template: &Template| scaled(template, nominal, mode);
    let mut data = scaled(nominal);
    let region = variations.iter().map(|variation| variation.effect).fold(1.0, f64::min);
    let mut ends: Vec<[Vec<f64>; 2]> = variations
        .iter()
        .map(|variation| {
            [&variation.down, &variation.up].map(|end| within(&data, &scaled(end), region, is_logarithmic))
        })
        .collect();
    let mut rule = TemplateRule::default();
    let is_normalized = mode == TemplateMode::Normalized;
    if is_logarithmic && !variations.is_empty() {
        rule = TemplateRule { clip: (!is_normalized).then_some(LOWEST), normalize: true };
    } else {
        raise_empty(&mut data, &mut ends, is_normalized);
        if may_be_clipped(&data, &ends, variations, region) {
            let clip = if is_normalized { LOWEST * norm } else { LOWEST };
            rule = TemplateRule { clip: Some(clip), normalize: is_normalized };
        }
    }
    if is_normalized {
        let all = ends.iter_mut().flatten().chain([&mut data]);
        all.flatten().for_each(|content| *content *= norm);
    }
    let shifts = variations.iter().zip(ends).map(|(variation, [lo_data, hi_data])| {
        let rule = if is_logarithmic { InterpolationRule::SmoothLogarithm } else { InterpolationRule::SmoothLinear };
        let scale = Some(variation.effect / region).filter(|scale| *scale != 1.0);
        let interpolation = ModifierInterpolation { rule: Some(rule), scale };
        (variation.name.clone(), ModifierData::HistoSys { lo_data, hi_data }, interpolation)
    });
    Morphed { data, shifts: shifts.collect(), rule }
}

/// Returns the contents of a template as the channel uses them.
fn scaled(template: &Template, nominal: &Template, mode: TemplateMode) -> Vec<f64> {
    let sum = |template: &Template| template.values.iter().sum::<f64>();
    let total = sum(template);
    match mode {
        TemplateMode::Normalized if total > 0.0 => template.values.iter().map(|value| value * (1.0 / total)).collect(),
        TemplateMode::Scaled if total > 0.0 && !std::ptr::eq(template, nominal) => {
            let factor = sum(nominal) / total;
            template.values.iter().map(|value| f64::from((value * factor) as f32)).collect()
        }
        _ => template.values.clone(),
    }
}

/// Returns the template whose smooth region ends at 1 where that of `end` ends at `region`.
fn within(nominal: &[f64], end: &[f64], region: f64, is_logarithmic: bool) -> Vec<f64> {
    let pairs = nominal.iter().zip(end);
    if region == 1.0 {
        end.to_vec()
    } else if is_logarithmic {
        let ratio = |n: f64, e: f64| if n > 0.0 && e > 0.0 { n * (e / n).powf(region) } else { n };
        pairs.map(|(&n, &e)| ratio(n, e)).collect()
    } else {
        pairs.map(|(&n, &e)| n + region * (e - n)).collect()
    }
}

/// Gives bins that no variation changes, and that are below the lowest content, that content.
fn raise_empty(data: &mut [f64], ends: &mut [[Vec<f64>; 2]], is_normalized: bool) {
    for bin in 0..data.len() {
        let is_constant = ends.iter().flatten().all(|end| end[bin] == data[bin]);
        if data[bin] < LOWEST && is_constant {
            data[bin] = LOWEST;
            ends.iter_mut().flatten().for_each(|end| end[bin] = LOWEST);
        }
    }
    // What the others lose is the same for all variations, whose sums are equal.
    let total: f64 = data.iter().sum();
    if is_normalized && total > 0.0 {
        let all = ends.iter_mut().flatten().map(Vec::as_mut_slice).chain([data]);
        all.flatten().for_each(|content| *content /= total);
    }
}

/// Returns whether a bin can fall below the lowest content within the ranges of the parameters.
fn may_be_clipped(data: &[f64], ends: &[[Vec<f64>; 2]], variations: &[Variation], region: f64) -> bool {
    let farthest = |variation: &Variation| FARTHEST * variation.effect / region;
    (0..data.len()).any(|bin| {
        let drop = |(ends, variation): (&[Vec<f64>; 2], &Variation)| {
            let change = ends.iter().map(|end| (end[bin] - data[bin]).abs()).fold(0.0, f64::max);
            change * farthest(variation)
        };
        data[bin] - ends.iter().zip(variations).map(drop).sum::<f64>() < LOWEST
    })
}
