//! Expected counts per bin and expected auxiliary data at a point: the reference implementation,
//! for any number type.
//!
//! λ_b = Σ_samples (nominal + Σ histosys shifts) · Π scale factors · Π normsys factors · Π per-bin
//! factors (CERN-OPEN-2012-016, eq. 1-3), and what [`crate::yield_rules`] add. Written once over
//! [`Scalar`], so that the same lines give values and, with second-order dual numbers, derivatives.
//! Tests compare every fast evaluator with it.

use crate::constraint::Constraint;
use crate::interpolate::{Jet, NormSysFactor};
use crate::model::{BinPlace, Data, Model, TemplateShifts};
use crate::scalar::Scalar;
use crate::yield_rules::{McStat, ShapeRule};

/// Returns the yield of every template cell at `params` (P): one entry per template and bin,
/// templates in model order.
#[must_use]
pub fn cell_yields<S: Scalar>(model: &Model, params: &[S]) -> Vec<S> {
    let extended = &*model.extended(params);
    (0..model.n_templates()).flat_map(|template| yields_at(model, template, extended)).collect()
}

/// Returns the yields of `template` at `params` (P): one entry per bin.
#[must_use]
pub fn template_yields<S: Scalar>(model: &Model, template: usize, params: &[S]) -> Vec<S> {
    yields_at(model, template, &model.extended(params))
}

/// Returns the yields of `template` at the extended point `params`.
fn yields_at<S: Scalar>(model: &Model, template: usize, params: &[S]) -> Vec<S> {
    let nominal = &model.values(model.layout.nominal)[model.part(model.layout.template_cell, template)];
    let mut yields: Vec<S> = nominal.iter().map(|&n| S::from(n)).collect();
    shift(model, template, params, &mut yields);
    if let Some(rule) = model.rules.shape(template) {
        reshape(rule, params, &mut yields);
    }
    let scale = template_scale(model, template, params);
    let first_params = model.part(model.layout.template_bin_factor, template);
    for (bin, y) in yields.iter_mut().enumerate() {
        let mut factor = scale.clone();
        for &first in &model.table(model.layout.bin_factor_param)[first_params.clone()] {
            factor = factor * params[first as usize + bin].clone();
        }
        *y = at_least(y.clone() * factor, model.rules.clip_samples);
    }
    yields
}

/// Returns `value`, or the limit if it is below that.
fn at_least<S: Scalar>(value: S, limit: Option<f64>) -> S {
    match limit {
        Some(limit) if value.value() < limit => S::from(limit),
        _ => value,
    }
}

/// Scales the shifted `yields` of a template, clips and normalises them.
pub(crate) fn reshape<S: Scalar>(rule: &ShapeRule, params: &[S], yields: &mut [S]) {
    for scaling in &rule.scaling {
        let param = &params[scaling.param as usize];
        for (y, factor) in yields.iter_mut().zip(&scaling.factors) {
            *y = y.clone() * chain(param, scaling.response.at(factor, param.value()));
        }
    }
    yields.iter_mut().for_each(|y| *y = at_least(y.clone(), rule.clip));
    let Some(total) = rule.total else { return };
    let sum = yields.iter().cloned().fold(S::from(0.0), |sum, y| sum + y);
    if sum.value() > 0.0 {
        let scale = total / sum.value();
        let first = -scale / sum.value();
        let scale = chain(&sum, Jet { value: scale, first, second: -2.0 * first / sum.value() });
        yields.iter_mut().for_each(|y| *y = y.clone() * scale.clone());
    }
}

/// Adds the histosys shifts and the morphing terms of `template` to its nominal `yields`, at the
/// extended point `params` (P + D).
pub(crate) fn shift<S: Scalar>(model: &Model, template: usize, params: &[S], yields: &mut [S]) {
    morph(model, template, params, yields);
    let cell_starts = model.table(model.layout.histosys_cell);
    let TemplateShifts { up, down } = &*model.shifts;
    for entry in model.part(model.layout.template_histosys, template) {
        let alpha = &params[model.table(model.layout.histosys_param)[entry] as usize];
        let (p, q) = model.histosys_response(entry).weights(alpha.value());
        let (p, q) = (chain(alpha, p), chain(alpha, q));
        for (bin, y) in yields.iter_mut().enumerate() {
            let cell = cell_starts[entry] as usize + bin;
            *y = y.clone() + p.clone() * S::from(up[cell]) + q.clone() * S::from(down[cell]);
        }
    }
}

/// Adds the morphing terms of `template` to its nominal `yields`.
pub(crate) fn morph<S: Scalar>(model: &Model, template: usize, params: &[S], yields: &mut [S]) {
    let (cells, terms) = (model.table(model.layout.morphing_cell), model.values(model.layout.morphing));
    for entry in model.part(model.layout.template_morphing, template) {
        let coefficient = &params[model.table(model.layout.morphing_param)[entry] as usize];
        for (bin, y) in yields.iter_mut().enumerate() {
            *y = y.clone() + coefficient.clone() * S::from(terms[cells[entry] as usize + bin]);
        }
    }
}

pub(crate) fn template_scale<S: Scalar>(model: &Model, template: usize, params: &[S]) -> S {
    let mut scale = S::from(1.0);
    for entry in model.part(model.layout.template_scale, template) {
        scale = scale * params[model.table(model.layout.scale_param)[entry] as usize].clone();
    }
    let (lo, hi) = (model.values(model.layout.normsys_lo), model.values(model.layout.normsys_hi));
    for entry in model.part(model.layout.template_normsys, template) {
        let alpha = &params[model.table(model.layout.normsys_param)[entry] as usize];
        let factor = model.normsys_response(entry).at(&NormSysFactor::new(lo[entry], hi[entry]), alpha.value());
        scale = scale * chain(alpha, factor);
    }
    scale
}

fn chain<S: Scalar>(x: &S, f: Jet) -> S {
    x.chain(f)
}

/// Returns expected event counts λ (B) at `params` (P), channels in model order.
#[must_use]
pub fn expected_main<S: Scalar>(model: &Model, params: &[S]) -> Vec<S> {
    let extended = &*model.extended(params);
    (0..model.channels.len()).flat_map(|channel| counts_at(model, channel, extended)).collect()
}

/// Returns expected event counts in the bins of `channel` at `params` (P).
#[must_use]
pub fn expected_of_channel<S: Scalar>(model: &Model, channel: usize, params: &[S]) -> Vec<S> {
    counts_at(model, channel, &model.extended(params))
}

/// Returns expected event counts in the bins of `channel` at the extended point `params`.
fn counts_at<S: Scalar>(model: &Model, channel: usize, params: &[S]) -> Vec<S> {
    let mut lambda = vec![S::from(0.0); model.channel_bins(channel).len()];
    for template in model.channel_templates(channel) {
        for (sum, y) in lambda.iter_mut().zip(yields_at(model, template, params)) {
            *sum = sum.clone() + y;
        }
    }
    for mc_stat in model.rules.mc_stats_of(channel) {
        add_mc_stat(model, mc_stat, params, &mut lambda);
    }
    lambda.into_iter().map(|lambda| at_least(lambda, model.rules.clip_bins)).collect()
}

/// Adds ν √Σ(c e)² to the sums `lambda` of a channel's bins, at the extended point `params`.
fn add_mc_stat<S: Scalar>(model: &Model, mc_stat: &McStat, params: &[S], lambda: &mut [S]) {
    let mut variances = vec![S::from(0.0); lambda.len()];
    for part in &mc_stat.errors {
        let scale = template_scale(model, part.template, params);
        for (variance, &error) in variances.iter_mut().zip(&part.errors) {
            let error = scale.clone() * S::from(error);
            *variance = variance.clone() + error.clone() * error;
        }
    }
    for (bin, (lambda, variance)) in lambda.iter_mut().zip(variances).enumerate() {
        let nu = params[mc_stat.first_param as usize + bin].clone();
        *lambda = lambda.clone() + nu * square_root(&variance);
    }
}

/// Returns the square root, with derivatives of zero at zero.
fn square_root<S: Scalar>(x: &S) -> S {
    let root = x.value().sqrt();
    let first = if root > 0.0 { 0.5 / root } else { 0.0 };
    let second = if root > 0.0 { -0.5 * first / x.value() } else { 0.0 };
    chain(x, Jet { value: root, first, second })
}

/// Returns expected auxiliary data (K) at `params` (P): for each constraint term the datum for
/// which it is smallest at θ.
#[must_use]
pub fn expected_aux(model: &Model, params: &[f64]) -> Vec<f64> {
    let datum = |(param, constraint): (usize, Constraint)| constraint.expected_datum().at(params[param]);
    model.constraint_terms().map(datum).collect()
}

/// Returns the Asimov data set of `params` (P): main bins and auxiliary data exactly as expected
/// there, so that a fit returns `params` (arXiv:1007.1727, section 3.2).
#[must_use]
pub fn asimov(model: &Model, params: &[f64]) -> Data {
    Data { main: expected_main(model, params), aux: expected_aux(model, params) }
}

/// Returns expected data at `params` (P), as pyhf's `expected_data`: main bins (B), then auxiliary
/// data (K).
#[must_use]
pub fn expected_data(model: &Model, params: &[f64]) -> Vec<f64> {
    let mut data = expected_main(model, params);
    data.extend(expected_aux(model, params));
    data
}

/// The negative yield of a sample at a minimum.
///
/// It is allowed while the total is positive, as in pyhf; ROOT clips it at zero, so its minimum is
/// another one.
#[derive(Debug, Clone, PartialEq)]
pub struct NegativeYield {
    /// Its bin.
    pub place: BinPlace,
    /// The sample.
    pub sample: String,
    /// The yield.
    pub value: f64,
}

impl std::fmt::Display for NegativeYield {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { place, sample, value } = self;
        write!(f, "sample `{sample}` has a negative yield ({value:.4}) in {place} at the minimum; ")?;
        f.write_str("ROOT would clip it at zero and find another minimum")
    }
}

/// Returns the lowest sample yield at `params` (P) if it is negative.
#[must_use]
pub fn lowest_negative_yield(model: &Model, params: &[f64]) -> Option<NegativeYield> {
    let yields = cell_yields(model, params);
    let (cell, &lowest) = yields.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1))?;
    if lowest >= 0.0 {
        return None;
    }
    let template = model.table(model.layout.template_cell).partition_point(|&start| start as usize <= cell) - 1;
    let channel = model.table(model.layout.channel_template).partition_point(|&start| start as usize <= template) - 1;
    let bin = cell - model.part(model.layout.template_cell, template).start;
    let sample = model.table(model.layout.template_sample)[template] as usize;
    Some(NegativeYield { place: model.place_in(channel, bin), sample: model.samples[sample].clone(), value: lowest })
}
