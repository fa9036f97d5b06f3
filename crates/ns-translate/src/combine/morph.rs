//! The templates of one process in one channel, as the data, shifts and factors of a sample.
//!
//! Without `autoMCStats` Combine normalises every template, morphs it, clips it at 10⁻⁹, normalises
//! it again and scales it to the expected events; with it, templates keep their contents, and only
//! the variations are scaled to the nominal sum. In both cases the sum follows a variation by a
//! factor of its own ([`norm_factor`]).

use std::sync::Arc;

use ns_core::interpolate::InterpolationRule;
use ns_core::spec::{Modifier, ModifierData, ModifierInterpolation, TemplateRule};

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

/// What there is at -1σ and at +1σ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends<T> {
    pub(super) low: T,
    pub(super) high: T,
}

impl<T> Ends<T> {
    fn both(&self) -> [&T; 2] {
        [&self.low, &self.high]
    }

    fn both_mut(&mut self) -> [&mut T; 2] {
        [&mut self.low, &mut self.high]
    }
}

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
    pub(super) shifts: Vec<Modifier>,
    pub(super) rule: TemplateRule,
}

/// Returns the factors at -1σ and +1σ of the sum of a template; `None` if it does not change.
pub(super) fn norm_factor(nominal: &Template, variation: &Variation) -> Option<Ends<f64>> {
    let [down, up] = [variation.down.sum / nominal.sum, variation.up.sum / nominal.sum];
    if (up - 1.0).abs() < NEGLIGIBLE && (down - 1.0).abs() < NEGLIGIBLE {
        return None;
    }
    // Combine passes them through text.
    let factor = |kappa: f64| six_decimals(kappa.powf(variation.effect));
    Some(Ends { low: factor(down), high: factor(up) })
}

/// The template of a process and what it is morphed by.
pub(super) struct Morphing<'t> {
    pub(super) nominal: &'t Template,
    pub(super) variations: &'t [Variation],
    pub(super) mode: TemplateMode,
    pub(super) is_logarithmic: bool,
    /// The expected events of a template that is normalised.
    pub(super) events: f64,
}

impl Morphing<'_> {
    pub(super) fn morphed(&self) -> Morphed {
        let mut data = self.contents(self.nominal);
        let region = self.region();
        let of_end = |end: &Template| within(&data, &self.contents(end), region, self.is_logarithmic);
        let of_variation = |one: &Variation| Ends { low: of_end(&one.down), high: of_end(&one.up) };
        let mut ends: Vec<Ends<Vec<f64>>> = self.variations.iter().map(of_variation).collect();
        let is_normalized = self.mode == TemplateMode::Normalized;
        let mut rule = TemplateRule::default();
        if self.is_logarithmic && !self.variations.is_empty() {
            rule = TemplateRule { clip: (!is_normalized).then_some(LOWEST), normalize: true };
        } else {
            raise_empty(&mut data, &mut ends, is_normalized);
            if self.may_be_clipped(&data, &ends) {
                let clip = if is_normalized { LOWEST * self.events } else { LOWEST };
                rule = TemplateRule { clip: Some(clip), normalize: is_normalized };
            }
        }
        if is_normalized {
            let all = ends.iter_mut().flat_map(Ends::both_mut).chain([&mut data]);
            all.flatten().for_each(|content| *content *= self.events);
        }
        let shifts = self.variations.iter().zip(ends).map(|(variation, ends)| self.shift(variation, ends));
        Morphed { data, shifts: shifts.collect(), rule }
    }

    /// Returns where smooth regions end, in standard deviations.
    fn region(&self) -> f64 {
        self.variations.iter().map(|variation| variation.effect).fold(1.0, f64::min)
    }

    fn shift(&self, variation: &Variation, ends: Ends<Vec<f64>>) -> Modifier {
        let rule =
            if self.is_logarithmic { InterpolationRule::SmoothLogarithm } else { InterpolationRule::SmoothLinear };
        let scale = Some(variation.effect / self.region()).filter(|scale| *scale != 1.0);
        Modifier {
            name: variation.name.clone(),
            data: ModifierData::HistoSys { lo_data: ends.low, hi_data: ends.high },
            interpolation: ModifierInterpolation { rule: Some(rule), scale },
        }
    }

    /// Returns the contents of a template as the channel uses them.
    fn contents(&self, template: &Template) -> Vec<f64> {
        let sum = |template: &Template| template.values.iter().sum::<f64>();
        let total = sum(template);
        match self.mode {
            TemplateMode::Normalized if total > 0.0 => {
                template.values.iter().map(|value| value * (1.0 / total)).collect()
            }
            TemplateMode::Scaled if total > 0.0 && !std::ptr::eq(template, self.nominal) => {
                let factor = sum(self.nominal) / total;
                template.values.iter().map(|value| f64::from((value * factor) as f32)).collect()
            }
            _ => template.values.clone(),
        }
    }

    /// Returns whether a bin can fall below the lowest content within the ranges of the parameters.
    fn may_be_clipped(&self, data: &[f64], ends: &[Ends<Vec<f64>>]) -> bool {
        let region = self.region();
        (0..data.len()).any(|bin| {
            let drop = |(ends, variation): (&Ends<Vec<f64>>, &Variation)| {
                let change = ends.both().map(|end| (end[bin] - data[bin]).abs());
                change[0].max(change[1]) * FARTHEST * variation.effect / region
            };
            data[bin] - ends.iter().zip(self.variations).map(drop).sum::<f64>() < LOWEST
        })
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
fn raise_empty(data: &mut [f64], ends: &mut [Ends<Vec<f64>>], is_normalized: bool) {
    for bin in 0..data.len() {
        let is_constant = ends.iter().flat_map(Ends::both).all(|end| end[bin] == data[bin]);
        if data[bin] < LOWEST && is_constant {
            data[bin] = LOWEST;
            ends.iter_mut().flat_map(Ends::both_mut).for_each(|end| end[bin] = LOWEST);
        }
    }
    // What the others lose is the same for all variations, whose sums are equal.
    let total: f64 = data.iter().sum();
    if is_normalized && total > 0.0 {
        let all = ends.iter_mut().flat_map(Ends::both_mut).map(Vec::as_mut_slice).chain([data]);
        all.flatten().for_each(|content| *content /= total);
    }
}
