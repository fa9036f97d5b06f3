//! The other minimum of a parameter on which expected counts depend quadratically.
//!
//! Along a parameter, λ_b(θ + t) = λ_b + λ'_b t + ½ λ''_b t². A bin expects the same again at
//! t = -2 λ'_b/λ''_b. All bins together come nearest to what they expect at
//! t = -2 Σ w λ'λ'' / Σ w λ''² with w = 1/λ, and meet it there if their parabolas have one vertex.
//! For expected counts that are not quadratic, the parabola at the minimum takes their place.

use crate::minimize::{Domain, Minimum};
use ns_core::expected::{expected_main, template_yields};
use ns_core::model::TableSpan;
use ns_core::taylor::Taylor;
use ns_core::{Model, SearchLikelihood};
use std::sync::Arc;

use super::explore::HIGHEST_RISE;
use super::{FoundBy, Search};

/// A move that is shorter than this part of the range is too short for another minimum.
const SHORTEST: f64 = 1e-6;

/// The parameters of a model on which formulas depend, but not linearly.
#[derive(Debug, Clone, PartialEq)]
pub struct Mirrors {
    model: Model,
    mirrors: Vec<Mirror>,
}

/// One of these parameters.
#[derive(Debug, Clone, PartialEq)]
struct Mirror {
    parameter: usize,
    /// The templates whose yields depend on it, with the first bin of each; `None` if more than
    /// yields does.
    templates: Option<Vec<(usize, usize)>>,
}

impl Mirrors {
    /// Returns those of `model`, or `None` if there are none.
    pub(super) fn of(model: &Model) -> Option<Arc<Self>> {
        let templates = |parameter| {
            let sums_only = model.rules.mc_stats.is_empty() && model.rules.clip_bins.is_none();
            sums_only.then(|| templates_of(model, parameter))
        };
        let mirror = |(parameter, _)| Mirror { parameter, templates: templates(parameter) };
        let mirrors: Vec<Mirror> = curved_by_formulas(model).into_iter().map(mirror).collect();
        (!mirrors.is_empty()).then(|| Arc::new(Self { model: model.clone(), mirrors }))
    }

    /// Returns those that are free in `domain`.
    fn free(&self, domain: &Domain) -> impl Iterator<Item = &Mirror> {
        self.mirrors.iter().filter(|mirror| !domain.fixed[mirror.parameter])
    }

    /// Returns where the parameter of `mirror` has nearly the same effect as at `params` (P), where
    /// `lambda` (B) are the expected counts.
    fn across(&self, mirror: &Mirror, params: &[f64], lambda: &[f64]) -> Option<f64> {
        let (mut product, mut square) = (0.0, 0.0);
        for ([first, second], lambda) in self.derivatives(mirror, params).into_iter().zip(lambda) {
            // Less than one event is counted as one, as for the bend of a systematic.
            let weight = lambda.max(1.0).recip();
            product += weight * first * second;
            square += weight * second * second;
        }
        let step = -2.0 * product / square;
        step.is_finite().then_some(params[mirror.parameter] + step)
    }

    /// Returns λ' and λ'' of each bin (B) along the parameter of `mirror` at `params` (P).
    fn derivatives(&self, mirror: &Mirror, params: &[f64]) -> Vec<[f64; 2]> {
        let line = |(k, &x): (usize, &f64)| Taylor::line(x, f64::from(k == mirror.parameter));
        let line: Vec<Taylor> = params.iter().enumerate().map(line).collect();
        let Some(templates) = &mirror.templates else {
            return expected_main(&self.model, &line).into_iter().map(|y| [y.first, y.second]).collect();
        };
        let mut derivatives = vec![[0.0; 2]; self.model.n_bins()];
        for &(template, first_bin) in templates {
            for (sum, y) in derivatives[first_bin..].iter_mut().zip(template_yields(&self.model, template, &line)) {
                *sum = [sum[0] + y.first, sum[1] + y.second];
            }
        }
        derivatives
    }
}

/// Returns the templates of `model` on whose scale or shape a formula of `parameter` acts, or the
/// parameter itself, each with its first bin.
fn templates_of(model: &Model, parameter: usize) -> Vec<(usize, usize)> {
    let layout = model.layout;
    let depends = |params: TableSpan, entries: TableSpan, template: usize| {
        let indices = &model.table(params)[model.part(entries, template)];
        indices.iter().any(|&index| model.parameters_of(index).any(|i| i as usize == parameter))
    };
    let has_bin_factor = |template: usize| {
        let firsts = &model.table(layout.bin_factor_param)[model.part(layout.template_bin_factor, template)];
        let n_bins = model.part(layout.template_cell, template).len();
        firsts.iter().any(|&first| (first as usize..first as usize + n_bins).contains(&parameter))
    };
    let is_one = |&template: &usize| {
        depends(layout.scale_param, layout.template_scale, template)
            || depends(layout.morphing_param, layout.template_morphing, template)
            || depends(layout.normsys_param, layout.template_normsys, template)
            || depends(layout.histosys_param, layout.template_histosys, template)
            || model.rules.scaling_params(template).any(|i| i as usize == parameter)
            || has_bin_factor(template)
    };
    let of_channel = |channel: usize| {
        let first_bin = model.channel_bins(channel).start;
        model.channel_templates(channel).filter(is_one).map(move |template| (template, first_bin))
    };
    (0..model.channels.len()).flat_map(of_channel).collect()
}

/// Returns the parameters on which a formula depends, but not linearly, with the highest degree of
/// such a formula (`Tape::degree`).
pub(super) fn curved_by_formulas(model: &Model) -> Vec<(usize, u8)> {
    let mut degrees = vec![0; model.n_params()];
    for tape in &model.derived.tapes {
        let degree = tape.degree();
        for &i in tape.arguments() {
            degrees[i as usize] = degree.max(degrees[i as usize]);
        }
    }
    degrees.into_iter().enumerate().filter(|(_, degree)| *degree > 1).collect()
}

impl<L: SearchLikelihood + ?Sized> Search<'_, L> {
    /// Returns `minimum` with one parameter of formulas across the vertex of its effect, where -ln
    /// L is not much higher.
    pub(super) fn mirrored_starts(&mut self, minimum: &Minimum) -> Vec<(Vec<f64>, FoundBy)> {
        let Some(mirrors) = self.candidates.mirrors.clone().filter(|_| minimum.converged()) else { return Vec::new() };
        let mut starts = Vec::new();
        let lambda = expected_main(&mirrors.model, &minimum.params);
        for mirror in mirrors.free(&self.domain) {
            let i = mirror.parameter;
            let (lower, upper) = (self.domain.lower[i], self.domain.upper[i]);
            let Some(value) = mirrors.across(mirror, &minimum.params, &lambda) else { continue };
            let value = value.clamp(lower, upper);
            if (value - minimum.params[i]).abs() <= SHORTEST * (upper - lower) {
                continue;
            }
            let mut start = minimum.params.clone();
            start[i] = value;
            if self.likelihood.nll(&start) - minimum.nll < HIGHEST_RISE {
                starts.push((start, FoundBy::Move(i, value)));
            }
        }
        starts
    }
}
