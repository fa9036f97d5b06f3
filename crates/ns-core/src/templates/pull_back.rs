//! Derivatives of expected counts with respect to parameters and templates, backwards, for any number type: the plain version.
//!
//! A yield is (nominal + Σ shifts) · Π factors. For weights c_b of the bins, Σ_b c_b ∂λ_b/∂z of every parameter and input z takes one pass over the templates, each
//! factor's derivative being the product of all others from the left and from the right: no division, so that factors of zero are right. Over [`Taylor`] numbers
//! the same lines say how these sums change along a line of parameters: Hessian-vector products, and third derivatives contracted twice.

use super::Inputs;
use super::choice::{Absolute, TemplateInput};
use crate::interpolate::{Jet, NormSysFactor};
use crate::likelihood::constraint_slopes;
use crate::model::{Data, Model};
use crate::parameters::Constraint;
use crate::scalar::Scalar;
use crate::taylor::Taylor;

/// Both gradients of -ln L, and the expected counts, along a line of parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Along {
    /// The gradient with respect to the parameters (P).
    pub gradient: Vec<Taylor>,
    /// The gradient with respect to the inputs (M).
    pub by_inputs: Vec<Taylor>,
    /// λ (B).
    pub lambda: Vec<Taylor>,
}

/// The gradients of -ln L of `data` with respect to parameters and inputs along `params` + ε `direction`, written to `out`.
pub fn along(model: &Model, inputs: &Inputs, data: &Data, (params, direction): (&[f64], &[f64]), out: &mut Along) {
    let line: Vec<Taylor> = params.iter().zip(direction).map(|(&x, &v)| Taylor::line(x, v)).collect();
    let weight = |bin: usize, lambda: &Taylor| poisson_slope(data.main[bin], lambda);
    pull_back(model, inputs, &line, weight, out);
    let terms = model.table(model.layout.constraint_param).iter().zip(&data.aux);
    for (&param, &aux) in terms {
        let param = param as usize;
        let Some(constraint) = model.parameters.constraint[param] else { continue };
        out.gradient[param] = out.gradient[param] + line[param].chain(constraint_slope(constraint, aux, params[param]));
    }
}

/// 1 - n/λ.
fn poisson_slope<S: Scalar>(n: f64, lambda: &S) -> S {
    if n == 0.0 {
        return S::from(1.0);
    }
    let ratio = n / lambda.value();
    let first = ratio / lambda.value();
    lambda.chain(Jet { value: 1.0 - ratio, first, second: -2.0 * first / lambda.value() })
}

/// The slope of a constraint term with its own derivatives.
fn constraint_slope(constraint: Constraint, aux: f64, param: f64) -> Jet {
    let (value, first) = constraint_slopes(constraint, aux, param);
    let second = match constraint {
        Constraint::Gaussian { .. } => 0.0,
        Constraint::Poisson { .. } if aux == 0.0 => 0.0,
        Constraint::Poisson { .. } => -2.0 * first / param,
    };
    Jet { value, first, second }
}

/// λ, and Σ_b c_b ∂λ_b/∂z of every parameter and input z at `params` (P), where `weight` gives c_b from b and λ_b; without constraint terms.
pub fn pull_back<S: Scalar + Default + Copy>(
    model: &Model,
    inputs: &Inputs,
    params: &[S],
    mut weight: impl FnMut(usize, &S) -> S,
    out: &mut impl PulledBack<S>,
) {
    let (gradient, by_inputs, lambda) = out.parts();
    reset(gradient, params.len());
    reset(by_inputs, inputs.len());
    reset(lambda, model.n_bins());
    let mut parts: Vec<Parts<S>> = Vec::new();
    for channel in 0..model.channels.len() {
        let bins = model.channel_bins(channel);
        let lambda = &mut lambda[bins.clone()];
        let templates = model.channel_templates(channel);
        parts.clear();
        parts.extend(templates.clone().map(|template| Parts::of(model, template, params)));
        for parts in &parts {
            for (bin, lambda) in lambda.iter_mut().enumerate() {
                *lambda = *lambda + parts.shape[bin] * parts.gammas[bin] * parts.scale;
            }
        }
        let weights: Vec<S> = lambda.iter().enumerate().map(|(bin, l)| weight(bins.start + bin, l)).collect();
        for (parts, template) in parts.iter().zip(templates) {
            parts.pull(model, template, params, &weights, gradient);
            if let Some(input) = inputs.of_template(template) {
                parts.pull_inputs(model, input, params, &weights, by_inputs);
            }
        }
    }
}

fn reset<S: Default + Clone>(values: &mut Vec<S>, len: usize) {
    values.clear();
    values.resize(len, S::default());
}

/// Where the results of [`pull_back`] go.
pub trait PulledBack<S> {
    /// The sums by parameters, those by inputs, and λ; whatever they hold is replaced.
    fn parts(&mut self) -> (&mut Vec<S>, &mut Vec<S>, &mut Vec<S>);
}

impl PulledBack<Taylor> for Along {
    fn parts(&mut self) -> (&mut Vec<Taylor>, &mut Vec<Taylor>, &mut Vec<Taylor>) {
        (&mut self.gradient, &mut self.by_inputs, &mut self.lambda)
    }
}

impl<S> PulledBack<S> for (Vec<S>, Vec<S>, Vec<S>) {
    fn parts(&mut self) -> (&mut Vec<S>, &mut Vec<S>, &mut Vec<S>) {
        (&mut self.0, &mut self.1, &mut self.2)
    }
}

/// A yield taken apart: shape · gammas · scale.
struct Parts<S> {
    /// nominal + Σ shifts, bin by bin.
    shape: Vec<S>,
    /// The product of the per-bin factors, bin by bin.
    gammas: Vec<S>,
    /// The product of the factors that are the same in every bin.
    scale: S,
    /// For each of those, scale modifiers first: the product of all others.
    others: Vec<S>,
}

impl<S: Scalar + Copy> Parts<S> {
    fn of(model: &Model, template: usize, params: &[S]) -> Self {
        let layout = &model.layout;
        let nominal = &model.values(layout.nominal)[model.part(layout.template_cell, template)];
        let mut shape: Vec<S> = nominal.iter().map(|&n| S::from(n)).collect();
        crate::expected::shift(model, template, params, &mut shape);
        let mut gammas = vec![S::from(1.0); nominal.len()];
        for &first in &model.table(layout.bin_factor_param)[model.part(layout.template_bin_factor, template)] {
            for (bin, gamma) in gammas.iter_mut().enumerate() {
                *gamma = *gamma * params[first as usize + bin];
            }
        }
        let scale_params = &model.table(layout.scale_param)[model.part(layout.template_scale, template)];
        let mut values: Vec<S> = scale_params.iter().map(|&param| params[param as usize]).collect();
        for entry in model.part(layout.template_normsys, template) {
            let alpha = params[model.table(layout.normsys_param)[entry] as usize];
            values.push(alpha.chain(factor(model, entry).at(alpha.value(), model.interpolation.normsys)));
        }
        let (scale, others) = all_others(&values);
        Self { shape, gammas, scale, others }
    }

    /// Adds Σ_b c_b ∂y_b/∂θ to `gradient` (P).
    fn pull(&self, model: &Model, template: usize, params: &[S], weights: &[S], gradient: &mut [S]) {
        let layout = &model.layout;
        let mut add = |param: usize, value: S| gradient[param] = gradient[param] + value;
        let weighted: Vec<S> = weights.iter().zip(&self.gammas).map(|(&w, &g)| w * g).collect();
        let total = sum(weighted.iter().zip(&self.shape).map(|(&w, &y)| w * y));
        let scale_params = &model.table(layout.scale_param)[model.part(layout.template_scale, template)];
        for (&param, &others) in scale_params.iter().zip(&self.others) {
            add(param as usize, total * others);
        }
        let normsys = model.part(layout.template_normsys, template);
        for (entry, &others) in normsys.zip(&self.others[scale_params.len()..]) {
            let param = model.table(layout.normsys_param)[entry] as usize;
            let alpha = params[param];
            let slope = alpha.chain(factor(model, entry).slope(alpha.value(), model.interpolation.normsys));
            add(param, total * others * slope);
        }
        for entry in model.part(layout.template_histosys, template) {
            let param = model.table(layout.histosys_param)[entry] as usize;
            let alpha = params[param];
            let (p, q) = model.interpolation.histosys.slopes(alpha.value());
            let cells = model.part(layout.histosys_cell, entry);
            let along = |differences| {
                let differences = &model.values(differences)[cells.clone()];
                sum(weighted.iter().zip(differences).map(|(&w, &d)| w * S::from(d)))
            };
            let (up, down) = (along(layout.histosys_up), along(layout.histosys_down));
            add(param, (alpha.chain(p) * up + alpha.chain(q) * down) * self.scale);
        }
        let firsts = &model.table(layout.bin_factor_param)[model.part(layout.template_bin_factor, template)];
        for (k, &first) in firsts.iter().enumerate() {
            for (bin, (&weight, &shape)) in weights.iter().zip(&self.shape).enumerate() {
                let others = firsts.iter().enumerate().filter(|(i, _)| *i != k);
                let gammas = others.fold(S::from(1.0), |product, (_, &other)| product * params[other as usize + bin]);
                add(first as usize + bin, weight * shape * self.scale * gammas);
            }
        }
    }

    /// Writes Σ_b c_b ∂y_b/∂x of the template's inputs x to `by_inputs` (M).
    fn pull_inputs(&self, model: &Model, input: &TemplateInput, params: &[S], weights: &[S], by_inputs: &mut [S]) {
        let layout = &model.layout;
        // Nominal yields count with 1 minus the weights of all shifts, because the templates at ±1σ stay where they are.
        let mut rest = S::from(1.0);
        let weighted: Vec<S> = weights.iter().zip(&self.gammas).map(|(&w, &g)| w * g * self.scale).collect();
        for histosys in &input.histosys {
            let alpha = params[model.table(layout.histosys_param)[histosys.entry] as usize];
            let (p, q) = model.interpolation.histosys.weights(alpha.value());
            for (end, weight) in [(&histosys.hi, p), (&histosys.lo, q)] {
                let weight = alpha.chain(weight);
                rest = rest + weight * S::from(-1.0);
                if let Absolute::Input(start) = *end {
                    for (bin, &weighted) in weighted.iter().enumerate() {
                        by_inputs[start + bin] = weighted * weight;
                    }
                }
            }
        }
        for (bin, &weighted) in weighted.iter().enumerate() {
            by_inputs[input.nominal + bin] = weighted * rest;
        }
        let first = model.part(layout.template_normsys, input.template).start;
        let n_scales = model.part(layout.template_scale, input.template).len();
        for normsys in &input.normsys {
            let alpha = params[model.table(layout.normsys_param)[normsys.entry] as usize];
            let others = self.others[n_scales + normsys.entry - first];
            let total = sum(weights.iter().enumerate().map(|(bin, &w)| w * self.gammas[bin] * self.shape[bin]));
            let [by_lo, by_hi] = factor(model, normsys.entry)
                .by_ends(alpha.value(), model.interpolation.normsys)
                .map(|f| alpha.chain(f));
            by_inputs[normsys.hi] = total * others * by_hi;
            by_inputs[normsys.hi + 1] = total * others * by_lo;
        }
    }
}

fn factor(model: &Model, entry: usize) -> NormSysFactor {
    let layout = &model.layout;
    NormSysFactor::new(model.values(layout.normsys_lo)[entry], model.values(layout.normsys_hi)[entry])
}

fn sum<S: Scalar>(values: impl Iterator<Item = S>) -> S {
    values.fold(S::from(0.0), |sum, value| sum + value)
}

/// The product of `values`, and for each of them the product of all others.
fn all_others<S: Scalar + Copy>(values: &[S]) -> (S, Vec<S>) {
    let mut others = Vec::with_capacity(values.len());
    let mut product = S::from(1.0);
    for &value in values {
        others.push(product);
        product = product * value;
    }
    let mut after = S::from(1.0);
    for (other, &value) in others.iter_mut().zip(values).rev() {
        *other = *other * after;
        after = after * value;
    }
    (product, others)
}
