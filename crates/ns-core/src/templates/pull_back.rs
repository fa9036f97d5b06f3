//! Derivatives of expected counts with respect to parameters and templates by reverse accumulation,
//! for any number type: the reference implementation.
//!
//! A yield is (nominal + Σ morphing terms + Σ shifts) · Π factors. For weights c_b of the bins, Σ_b
//! c_b ∂λ_b/∂z of every parameter and input z takes one pass over the templates, each factor's
//! derivative being the product of all others from the left and from the right: no division, so
//! factors of zero need no special case. Over [`Taylor`] numbers the same lines give the
//! derivatives of these sums along a line of parameters: Hessian-vector products, and third
//! derivatives contracted twice. Sums by derived quantities are pulled back to the parameters with
//! the gradients of the formulas.

use super::Inputs;
use super::choice::{MorphingInput, TemplateInput, YieldSource};
use crate::interpolate::{Jet, NormSysFactor};
use crate::model::{Data, Model};
use crate::scalar::Scalar;
use crate::taylor::Taylor;
use std::borrow::Cow;

/// Both gradients of -ln L, and the expected counts, along a line of parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineExpansion {
    /// The gradient with respect to the parameters (P).
    pub gradient: Vec<Taylor>,
    /// The gradient with respect to the inputs (M).
    pub by_inputs: Vec<Taylor>,
    /// λ (B).
    pub lambda: Vec<Taylor>,
}

/// A line of parameters, along which the inputs may move too.
#[derive(Debug, Clone, Copy)]
pub struct ParameterLine<'a> {
    /// Where it starts (P).
    pub start: &'a [f64],
    /// Its direction (P).
    pub direction: &'a [f64],
    /// The direction of the inputs (M); `None` if they do not move.
    pub input_direction: Option<&'a [f64]>,
}

/// A direction of parameters and inputs together.
#[derive(Debug, Clone, Copy)]
pub struct JointDirection<'a> {
    /// The direction of the parameters (P).
    pub params: &'a [f64],
    /// The direction of the inputs (M).
    pub inputs: &'a [f64],
}

/// Writes to `out` the gradients of -ln L of `data` with respect to parameters and inputs along
/// `line`.
///
/// If the inputs move too, only values and first derivatives are right. The first derivatives are
/// then the product of the Hessian with respect to parameters and inputs with the direction.
pub fn along(model: &Model, inputs: &Inputs, data: &Data, line: ParameterLine<'_>, out: &mut LineExpansion) {
    let ParameterLine { start: params, direction, input_direction } = line;
    let line: Vec<Taylor> = params.iter().zip(direction).map(|(&x, &v)| Taylor::line(x, v)).collect();
    let weight = |bin: usize, lambda: &Taylor| poisson_derivative(data.main[bin], lambda);
    let moving = Moving { inputs, direction: input_direction };
    pull_back_of(model, inputs, &moving, &line, weight, out);
    let terms = model.table(model.layout.constraint_param).iter().zip(&data.aux);
    for (&param, &aux) in terms {
        let param = param as usize;
        let Some(constraint) = model.parameters.constraint[param] else { continue };
        out.gradient[param] = out.gradient[param] + line[param].chain(constraint.derivative_jet(aux, params[param]));
    }
}

/// Returns 1 - n/λ.
fn poisson_derivative<S: Scalar>(n: f64, lambda: &S) -> S {
    if n == 0.0 {
        return S::from(1.0);
    }
    let ratio = n / lambda.value();
    let first = ratio / lambda.value();
    lambda.chain(Jet { value: 1.0 - ratio, first, second: -2.0 * first / lambda.value() })
}

/// Writes to `out` λ, and Σ_b c_b ∂λ_b/∂z of every parameter and input z at `params` (P), without
/// constraint terms. `weight` returns c_b from b and λ_b.
pub fn pull_back<S: Scalar + Default + Copy + PartialEq>(
    model: &Model,
    inputs: &Inputs,
    params: &[S],
    weight: impl FnMut(usize, &S) -> S,
    out: &mut impl PullBackOutput<S>,
) {
    pull_back_of(model, inputs, &Still, params, weight, out);
}

/// Writes to `by_inputs` (M) Σ_b c_b ∂λ_b/∂x of every input x along a line of parameters, for the
/// `weights` (B) along it. Only templates with inputs are evaluated.
pub fn pull_back_inputs(
    model: &Model,
    inputs: &Inputs,
    line: &[Taylor],
    weights: &[Taylor],
    by_inputs: &mut Vec<Taylor>,
) {
    let line = &*model.extended(line);
    reset(by_inputs, inputs.len());
    for channel in 0..model.channels.len() {
        let weights = &weights[model.channel_bins(channel)];
        for template in model.channel_templates(channel) {
            if let Some(input) = inputs.of_template(template) {
                Parts::of(model, &Still, template, line).pull_inputs(model, input, line, weights, by_inputs);
            }
        }
    }
}

fn pull_back_of<S: Scalar + Default + Copy + PartialEq, N: Numbers<S>>(
    model: &Model,
    inputs: &Inputs,
    numbers: &N,
    params: &[S],
    mut weight: impl FnMut(usize, &S) -> S,
    out: &mut impl PullBackOutput<S>,
) {
    let (gradient, by_inputs, lambda) = out.parts();
    let point = ExtendedPoint::of(model, params);
    let extended = &*point.params;
    reset(gradient, extended.len());
    reset(by_inputs, inputs.len());
    reset(lambda, model.n_bins());
    let mut parts: Vec<Parts<S>> = Vec::new();
    for channel in 0..model.channels.len() {
        let bins = model.channel_bins(channel);
        let lambda = &mut lambda[bins.clone()];
        let templates = model.channel_templates(channel);
        parts.clear();
        parts.extend(templates.clone().map(|template| Parts::of(model, numbers, template, extended)));
        for parts in &parts {
            for (bin, lambda) in lambda.iter_mut().enumerate() {
                *lambda = *lambda + parts.shape[bin] * parts.gammas[bin] * parts.scale;
            }
        }
        let weights: Vec<S> = lambda.iter().enumerate().map(|(bin, l)| weight(bins.start + bin, l)).collect();
        for (parts, template) in parts.iter().zip(templates) {
            parts.pull(model, template, extended, &weights, gradient);
            if let Some(input) = inputs.of_template(template) {
                parts.pull_inputs(model, input, extended, &weights, by_inputs);
            }
        }
    }
    point.pull_derived(model, gradient);
}

/// The extended point, and the gradients of the derived quantities there.
struct ExtendedPoint<'a, S: Clone> {
    params: Cow<'a, [S]>,
    gradients: Vec<Vec<S>>,
}

impl<'a, S: Scalar + Copy + PartialEq> ExtendedPoint<'a, S> {
    fn of(model: &Model, params: &'a [S]) -> Self {
        let tapes = &model.derived.tapes;
        if tapes.is_empty() {
            return Self { params: Cow::Borrowed(params), gradients: Vec::new() };
        }
        let (values, gradients): (Vec<S>, Vec<Vec<S>>) = tapes.iter().map(|tape| tape.expand(params)).unzip();
        Self { params: Cow::Owned([params, &values].concat()), gradients }
    }

    /// Adds the sums by derived quantities, the last of `gradient` (P + D), to those by their
    /// arguments, and removes them.
    fn pull_derived(&self, model: &Model, gradient: &mut Vec<S>) {
        let by_derived = gradient.split_off(model.n_params());
        for ((tape, by_arguments), by_derived) in model.derived.tapes.iter().zip(&self.gradients).zip(by_derived) {
            for (&argument, &derivative) in tape.arguments().iter().zip(by_arguments) {
                gradient[argument as usize] = gradient[argument as usize] + by_derived * derivative;
            }
        }
    }
}

fn reset<S: Default + Clone>(values: &mut Vec<S>, len: usize) {
    values.clear();
    values.resize(len, S::default());
}

/// Memory for the results of [`pull_back`].
pub trait PullBackOutput<S> {
    /// Returns the vectors for the sums by parameters, the sums by inputs, and λ, which are
    /// overwritten.
    fn parts(&mut self) -> (&mut Vec<S>, &mut Vec<S>, &mut Vec<S>);
}

impl PullBackOutput<Taylor> for LineExpansion {
    fn parts(&mut self) -> (&mut Vec<Taylor>, &mut Vec<Taylor>, &mut Vec<Taylor>) {
        (&mut self.gradient, &mut self.by_inputs, &mut self.lambda)
    }
}

impl<S> PullBackOutput<S> for (Vec<S>, Vec<S>, Vec<S>) {
    fn parts(&mut self) -> (&mut Vec<S>, &mut Vec<S>, &mut Vec<S>) {
        (&mut self.0, &mut self.1, &mut self.2)
    }
}

/// The inputs of templates, and their rates of change along a line.
trait Numbers<S> {
    /// Returns the inputs of template `template`, or `None` if they do not move.
    fn input_of(&self, template: usize) -> Option<&TemplateInput>;

    /// Returns the rate of change of input `input`.
    fn rate(&self, input: usize) -> S;
}

/// Templates that do not change.
struct Still;

impl<S: Scalar> Numbers<S> for Still {
    fn input_of(&self, _: usize) -> Option<&TemplateInput> {
        None
    }

    fn rate(&self, _: usize) -> S {
        S::from(0.0)
    }
}

/// Templates whose inputs move along a direction (M), if any.
struct Moving<'a> {
    inputs: &'a Inputs,
    direction: Option<&'a [f64]>,
}

impl Numbers<Taylor> for Moving<'_> {
    fn input_of(&self, template: usize) -> Option<&TemplateInput> {
        self.direction.and_then(|_| self.inputs.of_template(template))
    }

    fn rate(&self, input: usize) -> Taylor {
        Taylor::line(0.0, self.direction.map_or(0.0, |direction| direction[input]))
    }
}

/// A normsys factor f(α; lo, hi) and its derivatives.
#[derive(Clone, Copy)]
struct Factor<S> {
    value: S,
    /// ∂f/∂α
    derivative: S,
    /// ∂f/∂lo, ∂f/∂hi
    by_ends: [S; 2],
}

impl<S: Scalar + Copy> Factor<S> {
    fn of(model: &Model, entry: usize, alpha: S, rates: Option<[S; 2]>) -> Self {
        let (layout, rule, response) = (&model.layout, model.interpolation.normsys, model.normsys_response(entry));
        let factor = NormSysFactor::new(model.values(layout.normsys_lo)[entry], model.values(layout.normsys_hi)[entry]);
        // Only modifiers of the model's rule can be inputs.
        let ends = factor.by_ends(alpha.value(), rule);
        let mut found = Self {
            value: alpha.chain(response.at(&factor, alpha.value())),
            derivative: alpha.chain(response.derivative(&factor, alpha.value())),
            by_ends: ends.map(|end| alpha.chain(end)),
        };
        if let Some(rates) = rates {
            // f is the sum of a function of α and lo and one of α and hi, so the mixed second
            // derivative vanishes.
            let second = factor.by_ends_twice(alpha.value(), rule);
            for (end, rate) in rates.into_iter().enumerate() {
                found.value = found.value + rate * S::from(ends[end].value);
                found.derivative = found.derivative + rate * S::from(ends[end].first);
                found.by_ends[end] = found.by_ends[end] + rate * S::from(second[end]);
            }
        }
        found
    }
}

/// A histosys: the two weights of its parameter with their derivatives, and the differences bin by
/// bin.
struct Shift<S> {
    param: usize,
    weights: [S; 2],
    derivatives: [S; 2],
    differences: [Vec<S>; 2],
}

/// The factors of a yield: shape · gammas · scale.
struct Parts<S> {
    shifts: Vec<Shift<S>>,
    /// The templates of the morphing terms, bin by bin.
    terms: Vec<Vec<S>>,
    /// nominal + Σ morphing terms + Σ shifts, bin by bin.
    shape: Vec<S>,
    /// The product of the per-bin factors, bin by bin.
    gammas: Vec<S>,
    factors: Vec<Factor<S>>,
    /// The product of the factors that are the same in every bin.
    scale: S,
    /// For each of those, scale modifiers first: the product of all others.
    others: Vec<S>,
}

impl<S: Scalar + Copy> Parts<S> {
    /// Returns the factors at the extended point `params` (P + D).
    fn of<N: Numbers<S>>(model: &Model, numbers: &N, template: usize, params: &[S]) -> Self {
        let layout = &model.layout;
        let input = numbers.input_of(template);
        let nominal = &model.values(layout.nominal)[model.part(layout.template_cell, template)];
        let moving = |start: Option<usize>, bin: usize| start.map_or(S::from(0.0), |start| numbers.rate(start + bin));
        let first = input.map(|input| input.nominal);
        let mut shape: Vec<S> = nominal.iter().enumerate().map(|(bin, &n)| S::from(n) + moving(first, bin)).collect();
        let terms = morphing_terms(model, numbers, template);
        for (entry, term) in model.part(layout.template_morphing, template).zip(&terms) {
            let coefficient = params[model.table(layout.morphing_param)[entry] as usize];
            shape.iter_mut().zip(term).for_each(|(y, &t)| *y = *y + coefficient * t);
        }
        let mut shifts = Vec::new();
        for (k, entry) in model.part(layout.template_histosys, template).enumerate() {
            let param = model.table(layout.histosys_param)[entry] as usize;
            let (alpha, cells) = (params[param], model.histosys_cells(entry, nominal.len()));
            let response = model.histosys_response(entry);
            let (p, q) = response.weights(alpha.value());
            let (p_derivative, q_derivative) = response.derivatives(alpha.value());
            let ends = [&model.shifts.up, &model.shifts.down];
            let sources = input.map(|input| [&input.histosys[k].hi, &input.histosys[k].lo]);
            let differences = [0, 1].map(|end| {
                let values = ends[end][cells.clone()].iter().enumerate();
                let start = sources.and_then(|sources| sources[end].input());
                let change = |bin| moving(start, bin) + moving(first, bin) * S::from(-1.0);
                values.map(|(bin, &d)| S::from(d) + change(bin)).collect::<Vec<S>>()
            });
            let shift = Shift {
                param,
                weights: [alpha.chain(p), alpha.chain(q)],
                derivatives: [alpha.chain(p_derivative), alpha.chain(q_derivative)],
                differences,
            };
            for (weight, differences) in shift.weights.into_iter().zip(&shift.differences) {
                shape.iter_mut().zip(differences).for_each(|(y, &d)| *y = *y + weight * d);
            }
            shifts.push(shift);
        }
        let mut gammas = vec![S::from(1.0); nominal.len()];
        for &first in &model.table(layout.bin_factor_param)[model.part(layout.template_bin_factor, template)] {
            for (bin, gamma) in gammas.iter_mut().enumerate() {
                *gamma = *gamma * params[first as usize + bin];
            }
        }
        let scale_params = &model.table(layout.scale_param)[model.part(layout.template_scale, template)];
        let mut values: Vec<S> = scale_params.iter().map(|&param| params[param as usize]).collect();
        let factor = |entry: usize| {
            let alpha = params[model.table(layout.normsys_param)[entry] as usize];
            let found = input.and_then(|input| input.normsys.iter().find(|normsys| normsys.entry == entry));
            Factor::of(model, entry, alpha, found.map(|n| [numbers.rate(n.hi + 1), numbers.rate(n.hi)]))
        };
        let factors: Vec<Factor<S>> = model.part(layout.template_normsys, template).map(factor).collect();
        values.extend(factors.iter().map(|factor| factor.value));
        let (scale, others) = all_others(&values);
        Self { shifts, terms, shape, gammas, factors, scale, others }
    }

    /// Adds Σ_b c_b ∂y_b/∂z of the entries z of the extended point `params` to `gradient` (P + D).
    fn pull(&self, model: &Model, template: usize, params: &[S], weights: &[S], gradient: &mut [S]) {
        let layout = &model.layout;
        let mut add = |param: usize, value: S| gradient[param] = gradient[param] + value;
        let weighted: Vec<S> = weights.iter().zip(&self.gammas).map(|(&w, &g)| w * g).collect();
        let total = sum(weighted.iter().zip(&self.shape).map(|(&w, &y)| w * y));
        let scale_params = &model.table(layout.scale_param)[model.part(layout.template_scale, template)];
        for (&param, &others) in scale_params.iter().zip(&self.others) {
            add(param as usize, total * others);
        }
        let normsys = model.part(layout.template_normsys, template).zip(&self.factors);
        for ((entry, factor), &others) in normsys.zip(&self.others[scale_params.len()..]) {
            add(model.table(layout.normsys_param)[entry] as usize, total * others * factor.derivative);
        }
        for shift in &self.shifts {
            let [up, down] =
                shift.differences.each_ref().map(|list| sum(weighted.iter().zip(list).map(|(&w, &d)| w * d)));
            add(shift.param, (shift.derivatives[0] * up + shift.derivatives[1] * down) * self.scale);
        }
        for (entry, term) in model.part(layout.template_morphing, template).zip(&self.terms) {
            let total = sum(weighted.iter().zip(term).map(|(&w, &t)| w * t));
            add(model.table(layout.morphing_param)[entry] as usize, total * self.scale);
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

    /// Writes Σ_b c_b ∂y_b/∂x of the template's inputs x to `by_inputs` (M), at the extended point
    /// `params`.
    fn pull_inputs(&self, model: &Model, input: &TemplateInput, params: &[S], weights: &[S], by_inputs: &mut [S]) {
        let layout = &model.layout;
        // Nominal yields count with 1 minus the weights of all shifts, because the templates at ±1σ
        // do not change.
        let mut rest = S::from(1.0);
        let weighted: Vec<S> = weights.iter().zip(&self.gammas).map(|(&w, &g)| w * g * self.scale).collect();
        for (histosys, shift) in input.histosys.iter().zip(&self.shifts) {
            for (end, weight) in [&histosys.hi, &histosys.lo].into_iter().zip(shift.weights) {
                rest = rest + weight * S::from(-1.0);
                if let YieldSource::Input(start) = *end {
                    for (bin, &weighted) in weighted.iter().enumerate() {
                        by_inputs[start + bin] = weighted * weight;
                    }
                }
            }
        }
        for (bin, &weighted) in weighted.iter().enumerate() {
            by_inputs[input.nominal + bin] = weighted * rest;
        }
        for &MorphingInput { entry, start } in &input.morphing {
            let coefficient = params[model.table(layout.morphing_param)[entry] as usize];
            for (bin, &weighted) in weighted.iter().enumerate() {
                by_inputs[start + bin] = weighted * coefficient;
            }
        }
        let first = model.part(layout.template_normsys, input.template).start;
        let n_scales = model.part(layout.template_scale, input.template).len();
        for normsys in &input.normsys {
            let others = self.others[n_scales + normsys.entry - first];
            let total = sum(weights.iter().enumerate().map(|(bin, &w)| w * self.gammas[bin] * self.shape[bin]));
            let [by_lo, by_hi] = self.factors[normsys.entry - first].by_ends;
            by_inputs[normsys.hi] = total * others * by_hi;
            by_inputs[normsys.hi + 1] = total * others * by_lo;
        }
    }
}

/// Returns the templates of the morphing terms of `template`, bin by bin, which may move.
fn morphing_terms<S: Scalar + Copy, N: Numbers<S>>(model: &Model, numbers: &N, template: usize) -> Vec<Vec<S>> {
    let layout = &model.layout;
    let input = numbers.input_of(template);
    let term = |entry: usize| {
        let found = input.and_then(|input| input.morphing.iter().find(|morphing| morphing.entry == entry));
        let rate = |bin: usize| found.map_or(S::from(0.0), |morphing| numbers.rate(morphing.start + bin));
        let values = &model.values(layout.morphing)[model.part(layout.morphing_cell, entry)];
        values.iter().enumerate().map(|(bin, &value)| S::from(value) + rate(bin)).collect()
    };
    model.part(layout.template_morphing, template).map(term).collect()
}

fn sum<S: Scalar>(values: impl Iterator<Item = S>) -> S {
    values.fold(S::from(0.0), |sum, value| sum + value)
}

/// Returns the product of `values`, and for each of them the product of all others.
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
