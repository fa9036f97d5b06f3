//! The terms of eight points that do not depend on the bin: weights of the histosys shifts, and the
//! scalar factors of each template.
//!
//! The forward pass multiplies the factors of a template one after the other, and stores for each
//! its value and the product so far times its derivative. The backward pass completes that, with a
//! running product of the later factors, to the derivative of the whole. No division by a factor
//! occurs, so factors of exactly zero need no special case.

use super::lanes::{LANES, Lanes};
use crate::cpu::factors::exp;
use crate::cpu::isa::Isa;
use crate::cpu::plan::{ChannelPlan, ModelPlan, TemplatePlan};
use ns_core::interpolate::{HistoSysInterpolation, NormSysInterpolation};
use std::ops::Range;

/// Weights of the shifts, and the derivative of Σ deviances with respect to them.
#[derive(Debug, Clone)]
pub(crate) struct ShiftWeights {
    /// p and q of each parameter (P), then those of own responses.
    pub(crate) value: Vec<[Lanes; 2]>,
    /// p' and q' of each parameter (P).
    derivative: Vec<[Lanes; 2]>,
    /// Adjoints of p and q (P).
    pub(crate) adjoint: Vec<[Lanes; 2]>,
    /// Adjoints of the coefficients of morphing terms (P + D).
    pub(crate) morphing: Vec<Lanes>,
}

impl ShiftWeights {
    pub(crate) fn new(plan: &ModelPlan) -> Self {
        let room = || vec![[Lanes::ZERO; 2]; plan.n_weights()];
        Self { value: room(), derivative: room(), adjoint: room(), morphing: vec![Lanes::ZERO; plan.n_extended] }
    }

    /// Computes the weights at `params` (P), with adjoints of zero.
    #[inline(always)]
    pub(crate) fn set(&mut self, plan: &ModelPlan, params: &[Lanes]) {
        for &param in &plan.histosys_params {
            let param = param as usize;
            let (value, derivative) = match plan.histosys_rule {
                HistoSysInterpolation::Linear => linear_weights(params[param]),
                HistoSysInterpolation::Quadratic => quadratic_weights(params[param]),
                HistoSysInterpolation::SmoothLinear => smooth_weights(params[param]),
            };
            self.value[param] = value;
            self.derivative[param] = derivative;
            self.adjoint[param] = [Lanes::ZERO; 2];
        }
        for (own, place) in plan.own_weights.iter().zip(plan.n_params..) {
            self.adjoint[place] = [Lanes::ZERO; 2];
            for lane in 0..LANES {
                let (p, q) = own.response.weights(params[own.param as usize].0[lane]);
                for (side, weight) in [p, q].into_iter().enumerate() {
                    self.value[place][side].0[lane] = weight.value;
                    self.derivative[place][side].0[lane] = weight.first;
                }
            }
        }
        for &param in &plan.morphing_params {
            self.morphing[param as usize] = Lanes::ZERO;
        }
    }

    /// Adds the contributions of the adjoints to `gradient` (P).
    #[inline(always)]
    pub(crate) fn finish<I: Isa>(&self, isa: I, plan: &ModelPlan, gradient: &mut [Lanes]) {
        for &param in &plan.histosys_params {
            let param = param as usize;
            let ([p, q], [dp, dq]) = (self.adjoint[param], self.derivative[param]);
            gradient[param] = p.times_plus(isa, dp, q.times_plus(isa, dq, gradient[param]));
        }
        for (own, place) in plan.own_weights.iter().zip(plan.n_params..) {
            let ([p, q], [dp, dq]) = (self.adjoint[place], self.derivative[place]);
            let gradient = &mut gradient[own.param as usize];
            *gradient = p.times_plus(isa, dp, q.times_plus(isa, dq, *gradient));
        }
        for &param in &plan.morphing_params {
            let param = param as usize;
            gradient[param] = gradient[param] + self.morphing[param];
        }
    }
}

/// Returns (p, q) and (p', q') of `HistoSysInterpolation::Linear`.
#[inline(always)]
fn linear_weights(alpha: Lanes) -> ([Lanes; 2], [Lanes; 2]) {
    let (mut value, mut derivative) = ([Lanes::ZERO; 2], [Lanes::ZERO; 2]);
    for lane in 0..LANES {
        let a = alpha.0[lane];
        let up = a.is_sign_positive();
        value[0].0[lane] = if up { a } else { 0.0 };
        value[1].0[lane] = if up { 0.0 } else { -a };
        derivative[0].0[lane] = if up { 1.0 } else { 0.0 };
        derivative[1].0[lane] = if up { 0.0 } else { -1.0 };
    }
    (value, derivative)
}

/// Returns (p, q) and (p', q') of `HistoSysInterpolation::Quadratic`: beyond ±1 the tangents there.
#[inline(always)]
fn quadratic_weights(alpha: Lanes) -> ([Lanes; 2], [Lanes; 2]) {
    let (mut value, mut derivative) = ([Lanes::ZERO; 2], [Lanes::ZERO; 2]);
    for (side, sign) in [1.0, -1.0].into_iter().enumerate() {
        for lane in 0..LANES {
            let a = alpha.0[lane].clamp(-1.0, 1.0);
            let tangent = a + sign / 2.0;
            value[side].0[lane] = a * (a + sign) / 2.0 + tangent * (alpha.0[lane] - a);
            derivative[side].0[lane] = tangent;
        }
    }
    (value, derivative)
}

/// Returns (p, q) and (p', q') of `HistoSysInterpolation::SmoothLinear`. Beyond ±1 it is linear,
/// and so equal to its tangent at ±1, which avoids a branch.
#[inline(always)]
fn smooth_weights(alpha: Lanes) -> ([Lanes; 2], [Lanes; 2]) {
    let (mut value, mut derivative) = ([Lanes::ZERO; 2], [Lanes::ZERO; 2]);
    for (side, sign) in [1.0, -1.0].into_iter().enumerate() {
        for lane in 0..LANES {
            let a = alpha.0[lane].clamp(-1.0, 1.0);
            let x = a * a;
            let even = x * (15.0 + x * (3.0 * x - 10.0)) / 16.0;
            let tangent = a * (30.0 + x * (18.0 * x - 40.0)) / 16.0 + sign / 2.0;
            value[side].0[lane] = even + sign * a / 2.0 + tangent * (alpha.0[lane] - a);
            derivative[side].0[lane] = tangent;
        }
    }
    (value, derivative)
}

/// The scalar factors of the templates of one channel.
#[derive(Debug, Clone)]
pub(crate) struct FactorChains {
    /// K, the product of each template's factors (T of the channel).
    pub(crate) scale: Vec<Lanes>,
    /// Adjoint of K (T of the channel).
    pub(crate) adjoint: Vec<Lanes>,
    /// The excess of each normsys factor over 1.
    excesses: Vec<Lanes>,
    /// Its derivative times the product of the factors before it.
    partials: Vec<Lanes>,
    /// The product of the factors before each scale modifier.
    scales: Vec<Lanes>,
    /// α in lanes where normsys factors are polynomials of it, 0 elsewhere (P).
    inner: Vec<Lanes>,
    outer: OuterLanes,
}

/// The lanes of each parameter (P) where normsys factors are exponentials.
#[derive(Debug, Clone)]
struct OuterLanes {
    /// Whether there are any.
    is_present: Vec<bool>,
    exponents: Vec<Outer>,
}

/// Lanes where normsys factors are exponentials of a parameter, in numbers that avoid branches.
#[derive(Debug, Clone, Copy, Default)]
struct Outer {
    /// The exponent is ln hi · `up` + ln lo · `down`: α on the upper side, -α on the lower one, 0
    /// elsewhere.
    up: Lanes,
    down: Lanes,
    /// Derivatives of `up` and `down`: 1 and 0, 0 and -1, 0 and 0.
    up_derivative: Lanes,
    down_derivative: Lanes,
    /// 1 where the factor is a polynomial, 0 elsewhere.
    is_inner: Lanes,
}

impl FactorChains {
    pub(crate) fn new(plan: &ModelPlan) -> Self {
        let most =
            |of: fn(&ModelPlan, &ChannelPlan) -> usize| plan.channels.iter().map(|c| of(plan, c)).max().unwrap_or(0);
        let n_templates = most(|_, channel| channel.templates.len());
        Self {
            scale: vec![Lanes::ZERO; n_templates],
            adjoint: vec![Lanes::ZERO; n_templates],
            excesses: vec![Lanes::ZERO; most(|plan, channel| normsys(plan, channel).len())],
            partials: vec![Lanes::ZERO; most(|plan, channel| normsys(plan, channel).len())],
            scales: vec![Lanes::ZERO; most(|plan, channel| scales(plan, channel).len())],
            inner: vec![Lanes::ZERO; plan.n_extended],
            outer: OuterLanes {
                is_present: vec![false; plan.n_extended],
                exponents: vec![Outer::default(); plan.n_extended],
            },
        }
    }

    /// Finds the lanes in which the parameters are beyond the polynomials.
    #[inline(always)]
    pub(crate) fn find_outer(&mut self, plan: &ModelPlan, params: &[Lanes]) {
        let smooth = plan.normsys_table.rule() == NormSysInterpolation::SmoothExponential;
        for (param, &alpha) in params.iter().enumerate() {
            let (inner, outer) = (&mut self.inner[param], &mut self.outer.exponents[param]);
            let mut all_inside = true;
            for lane in 0..LANES {
                let a = alpha.0[lane];
                let inside = smooth & (a.abs() < 1.0);
                let (is_up, is_down) = (!inside & a.is_sign_positive(), !inside & a.is_sign_negative());
                all_inside &= inside;
                inner.0[lane] = if inside { a } else { 0.0 };
                outer.up.0[lane] = if is_up { a } else { 0.0 };
                outer.down.0[lane] = if is_down { -a } else { 0.0 };
                outer.up_derivative.0[lane] = if is_up { 1.0 } else { 0.0 };
                outer.down_derivative.0[lane] = if is_down { -1.0 } else { 0.0 };
                outer.is_inner.0[lane] = if inside { 1.0 } else { 0.0 };
            }
            self.outer.is_present[param] = !all_inside;
        }
    }

    /// Computes K of each template of `channel`, with an adjoint of zero, and what `backward`
    /// needs.
    #[inline(always)]
    pub(crate) fn forward<I: Isa>(&mut self, isa: I, plan: &ModelPlan, channel: &ChannelPlan, params: &[Lanes]) {
        self.evaluate_polynomials(isa, plan, channel);
        let (mut scales, mut first) = (self.scales.iter_mut(), 0);
        for (i, t) in channel.templates.clone().enumerate() {
            let template = &plan.templates[t];
            let links = first..first + template.normsys.len();
            first = links.end;
            let (excesses, partials) = (&mut self.excesses[links.clone()], &mut self.partials[links]);
            let exponent = add_exponentials(isa, plan, template, &self.outer, partials);
            for own in plan.normsys_table.own(template.normsys.clone()) {
                let link = own.entry - template.normsys.start;
                for lane in 0..LANES {
                    let jet = own.at(params[own.param as usize].0[lane]);
                    excesses[link].0[lane] = jet.value - 1.0;
                    partials[link].0[lane] = jet.first;
                }
            }
            let mut product = exp_all(isa, exponent);
            for (modifier, before) in plan.scales[template.scales.clone()].iter().zip(&mut scales) {
                *before = product;
                product = product * params[modifier.param as usize];
            }
            for (&mut excess, partial) in excesses.iter_mut().zip(partials) {
                *partial = product * *partial;
                product = product.times_plus(isa, excess, product);
            }
            self.scale[i] = product;
            self.adjoint[i] = Lanes::ZERO;
        }
    }

    /// Computes excess and derivative of the polynomial of each normsys modifier of `channel`, at 0
    /// in lanes where it is an exponential.
    #[inline(always)]
    fn evaluate_polynomials<I: Isa>(&mut self, isa: I, plan: &ModelPlan, channel: &ChannelPlan) {
        let links = self.excesses.iter_mut().zip(&mut self.partials);
        for (entry, (excess, derivative)) in normsys(plan, channel).zip(links) {
            let alpha = self.inner[plan.normsys[entry].param as usize];
            [*excess, *derivative] = polynomial(isa, &plan.normsys_table.coefficients(entry), alpha);
        }
    }

    /// Adds the contributions of the adjoints of K to `gradient` (P).
    #[inline(always)]
    pub(crate) fn backward<I: Isa>(
        &self,
        isa: I,
        plan: &ModelPlan,
        channel: &ChannelPlan,
        params: &[Lanes],
        gradient: &mut [Lanes],
    ) {
        let (first_scale, first_normsys) = (scales(plan, channel).start, normsys(plan, channel).start);
        for (i, t) in channel.templates.clone().enumerate() {
            let template = &plan.templates[t];
            let mut rest = self.adjoint[i];
            let links = template.normsys.start - first_normsys..template.normsys.end - first_normsys;
            let links = self.excesses[links.clone()].iter().zip(&self.partials[links]);
            for (modifier, (&excess, &partial)) in plan.normsys[template.normsys.clone()].iter().zip(links).rev() {
                let derivative = &mut gradient[modifier.param as usize];
                *derivative = partial.times_plus(isa, rest, *derivative);
                rest = rest.times_plus(isa, excess, rest);
            }
            let befores = &self.scales[template.scales.start - first_scale..template.scales.end - first_scale];
            for (modifier, &before) in plan.scales[template.scales.clone()].iter().zip(befores).rev() {
                let derivative = &mut gradient[modifier.param as usize];
                *derivative = before.times_plus(isa, rest, *derivative);
                rest = rest * params[modifier.param as usize];
            }
        }
    }
}

/// Returns the normsys modifiers of a channel; those of neighbouring templates are neighbours.
fn normsys(plan: &ModelPlan, channel: &ChannelPlan) -> Range<usize> {
    let templates = &plan.templates[channel.templates.clone()];
    templates.first().map_or(0, |t| t.normsys.start)..templates.last().map_or(0, |t| t.normsys.end)
}

/// Returns the scale modifiers of a channel; those of neighbouring templates are neighbours.
fn scales(plan: &ModelPlan, channel: &ChannelPlan) -> Range<usize> {
    let templates = &plan.templates[channel.templates.clone()];
    templates.first().map_or(0, |t| t.scales.start)..templates.last().map_or(0, |t| t.scales.end)
}

/// Returns value and derivative of the polynomial a₁α + … + a₆α⁶, both by Horner's rule.
#[inline(always)]
fn polynomial<I: Isa>(isa: I, &[a1, a2, a3, a4, a5, a6]: &[f64; 6], alpha: Lanes) -> [Lanes; 2] {
    let mut value = Lanes::all(a6);
    let mut derivative = value;
    for a in [a5, a4, a3, a2, a1] {
        value = value.times_plus(isa, alpha, Lanes::all(a));
        derivative = derivative.times_plus(isa, alpha, value);
    }
    [value * alpha, derivative]
}

/// Returns, for the lanes where factors of `template` are exponentials, the sum of their exponents,
/// so that one exponential gives their product. Adds the derivatives of the exponents to
/// `derivatives`, as the factors themselves are 1 there.
#[inline(always)]
fn add_exponentials<I: Isa>(
    isa: I,
    plan: &ModelPlan,
    template: &TemplatePlan,
    outer: &OuterLanes,
    derivatives: &mut [Lanes],
) -> Lanes {
    let mut exponent = Lanes::ZERO;
    for (entry, derivative) in template.normsys.clone().zip(derivatives) {
        let param = plan.normsys[entry].param as usize;
        if outer.is_present[param] {
            let [ln_hi, ln_lo] = plan.normsys_table.logarithms(entry).map(Lanes::all);
            let outer = &outer.exponents[param];
            exponent = ln_hi.times_plus(isa, outer.up, ln_lo.times_plus(isa, outer.down, exponent));
            let rate = ln_hi.times_plus(isa, outer.up_derivative, ln_lo * outer.down_derivative);
            *derivative = outer.is_inner.times_plus(isa, *derivative, rate);
        }
    }
    exponent
}

#[inline(always)]
fn exp_all<I: Isa>(isa: I, x: Lanes) -> Lanes {
    let mut out = Lanes::ZERO;
    for lane in 0..LANES {
        out.0[lane] = exp(isa, x.0[lane]);
    }
    out
}
