//! What depends on the parameters but not on the bin: weights of the histosys shifts, and the scalar factors of each template.
//!
//! Forwards, the factors of a template are multiplied one after the other, and each leaves behind itself and the product so far times its own
//! derivative. Backwards, a running product of the factors behind completes that to the derivative of the whole. Nothing is divided by a factor, so
//! factors of exactly zero need no care.

use super::lanes::{LANES, Lanes};
use crate::cpu::factors::exp;
use crate::cpu::isa::Isa;
use crate::cpu::plan::{ChannelPlan, Plan, TemplatePlan};
use ns_core::interpolate::{HistoSysInterpolation, NormSysInterpolation};
use std::ops::Range;

/// Weights of the shifts, and the derivative of Σ deviances with respect to them.
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    /// p and q of each parameter (P).
    pub(crate) value: Vec<[Lanes; 2]>,
    /// p' and q' of each parameter (P).
    slope: Vec<[Lanes; 2]>,
    /// Adjoints of p and q (P).
    pub(crate) adjoint: Vec<[Lanes; 2]>,
}

impl Weights {
    pub(crate) fn new(plan: &Plan) -> Self {
        let room = || vec![[Lanes::ZERO; 2]; plan.n_params];
        Self { value: room(), slope: room(), adjoint: room() }
    }

    /// Weights at `params` (P), adjoints zero.
    #[inline(always)]
    pub(crate) fn set(&mut self, plan: &Plan, params: &[Lanes]) {
        for &param in &plan.histosys_params {
            let param = param as usize;
            let (value, slope) = match plan.histosys_rule {
                HistoSysInterpolation::Linear => linear_weights(params[param]),
                HistoSysInterpolation::Quadratic => quadratic_weights(params[param]),
                HistoSysInterpolation::SmoothLinear => smooth_weights(params[param]),
            };
            self.value[param] = value;
            self.slope[param] = slope;
            self.adjoint[param] = [Lanes::ZERO; 2];
        }
    }

    /// Carries the adjoints on to `gradient` (P).
    #[inline(always)]
    pub(crate) fn finish<I: Isa>(&self, isa: I, plan: &Plan, gradient: &mut [Lanes]) {
        for &param in &plan.histosys_params {
            let param = param as usize;
            let ([p, q], [dp, dq]) = (self.adjoint[param], self.slope[param]);
            gradient[param] = p.times_plus(isa, dp, q.times_plus(isa, dq, gradient[param]));
        }
    }
}

/// (p, q) and (p', q') of `HistoSysInterpolation::Linear`.
#[inline(always)]
fn linear_weights(alpha: Lanes) -> ([Lanes; 2], [Lanes; 2]) {
    let (mut value, mut slope) = ([Lanes::ZERO; 2], [Lanes::ZERO; 2]);
    for lane in 0..LANES {
        let a = alpha.0[lane];
        let up = a.is_sign_positive();
        value[0].0[lane] = if up { a } else { 0.0 };
        value[1].0[lane] = if up { 0.0 } else { -a };
        slope[0].0[lane] = if up { 1.0 } else { 0.0 };
        slope[1].0[lane] = if up { 0.0 } else { -1.0 };
    }
    (value, slope)
}

/// (p, q) and (p', q') of `HistoSysInterpolation::Quadratic`.
#[inline(always)]
fn quadratic_weights(alpha: Lanes) -> ([Lanes; 2], [Lanes; 2]) {
    let (mut value, mut slope) = ([Lanes::ZERO; 2], [Lanes::ZERO; 2]);
    for lane in 0..LANES {
        let a = alpha.0[lane];
        let (inside, edge) = (a.abs() <= 1.0, a.signum());
        for (side, sign) in [1.0, -1.0].into_iter().enumerate() {
            let tangent = edge + sign / 2.0;
            let outer = (1.0 + edge * sign) / 2.0 + tangent * (a - edge);
            value[side].0[lane] = if inside { a * (a + sign) / 2.0 } else { outer };
            slope[side].0[lane] = if inside { a + sign / 2.0 } else { tangent };
        }
    }
    (value, slope)
}

/// (p, q) and (p', q') of `HistoSysInterpolation::SmoothLinear`.
#[inline(always)]
fn smooth_weights(alpha: Lanes) -> ([Lanes; 2], [Lanes; 2]) {
    let (mut value, mut slope) = linear_weights(alpha);
    for lane in 0..LANES {
        let a = alpha.0[lane];
        let x = a * a;
        let inside = a.abs() < 1.0;
        let even = x * (15.0 + x * (3.0 * x - 10.0)) / 16.0;
        let even_slope = a * (30.0 + x * (18.0 * x - 40.0)) / 16.0;
        for (side, sign) in [1.0, -1.0].into_iter().enumerate() {
            value[side].0[lane] = if inside { even + sign * a / 2.0 } else { value[side].0[lane] };
            slope[side].0[lane] = if inside { even_slope + sign / 2.0 } else { slope[side].0[lane] };
        }
    }
    (value, slope)
}

/// The scalar factors of the templates of one channel.
#[derive(Debug, Clone)]
pub(crate) struct Chains {
    /// K, the product of each template's factors (T of the channel).
    pub(crate) scale: Vec<Lanes>,
    /// Adjoint of K (T of the channel).
    pub(crate) adjoint: Vec<Lanes>,
    /// Each normsys factor, and its derivative times the product of the factors before it.
    normsys: Vec<[Lanes; 2]>,
    /// The product of the factors before each scale modifier.
    scales: Vec<Lanes>,
    /// α in lanes where normsys factors are polynomials of it, 0 elsewhere (P).
    inner: Vec<Lanes>,
    /// Whether any lane of a parameter is where they are exponentials (P).
    has_outer: Vec<bool>,
}

impl Chains {
    pub(crate) fn new(plan: &Plan) -> Self {
        let most = |of: fn(&Plan, &ChannelPlan) -> usize| plan.channels.iter().map(|c| of(plan, c)).max().unwrap_or(0);
        let n_templates = most(|_, channel| channel.templates.len());
        Self {
            scale: vec![Lanes::ZERO; n_templates],
            adjoint: vec![Lanes::ZERO; n_templates],
            normsys: vec![[Lanes::ZERO; 2]; most(|plan, channel| normsys(plan, channel).len())],
            scales: vec![Lanes::ZERO; most(|plan, channel| scales(plan, channel).len())],
            inner: vec![Lanes::ZERO; plan.n_params],
            has_outer: vec![false; plan.n_params],
        }
    }

    /// Finds out where the parameters of the group are beyond the polynomials.
    #[inline(always)]
    pub(crate) fn look_at(&mut self, plan: &Plan, params: &[Lanes]) {
        let smooth = plan.normsys_table.rule() == NormSysInterpolation::SmoothExponential;
        for ((inner, has_outer), alpha) in self.inner.iter_mut().zip(&mut self.has_outer).zip(params) {
            let mut all_inside = true;
            for lane in 0..LANES {
                let inside = is_inside(smooth, alpha.0[lane]);
                inner.0[lane] = if inside { alpha.0[lane] } else { 0.0 };
                all_inside &= inside;
            }
            *has_outer = !all_inside;
        }
    }

    /// K of each template of `channel`, its adjoint zero; and what `backward` needs.
    #[inline(always)]
    pub(crate) fn forward<I: Isa>(&mut self, isa: I, plan: &Plan, channel: &ChannelPlan, params: &[Lanes]) {
        self.evaluate_polynomials(isa, plan, channel);
        let (mut scales, mut first) = (self.scales.iter_mut(), 0);
        for (i, t) in channel.templates.clone().enumerate() {
            let template = &plan.templates[t];
            let factors = &mut self.normsys[first..first + template.normsys.len()];
            first += factors.len();
            let exponent = add_exponentials(isa, plan, template, params, &self.has_outer, factors);
            let mut product = exp_all(isa, exponent);
            for (modifier, before) in plan.scales[template.scales.clone()].iter().zip(&mut scales) {
                *before = product;
                product = product * params[modifier.param as usize];
            }
            for [factor, slope] in factors {
                *slope = product * *slope;
                product = product * *factor;
            }
            self.scale[i] = product;
            self.adjoint[i] = Lanes::ZERO;
        }
    }

    /// Value and derivative of the polynomial of each normsys modifier of `channel`, at 0 in lanes where it is an exponential.
    #[inline(always)]
    fn evaluate_polynomials<I: Isa>(&mut self, isa: I, plan: &Plan, channel: &ChannelPlan) {
        for (entry, factor) in normsys(plan, channel).zip(&mut self.normsys) {
            let alpha = self.inner[plan.normsys[entry].param as usize];
            *factor = polynomial(isa, &plan.normsys_table.coefficients(entry), alpha);
        }
    }

    /// Carries the adjoints of K on to `gradient` (P).
    #[inline(always)]
    pub(crate) fn backward<I: Isa>(
        &self,
        isa: I,
        plan: &Plan,
        channel: &ChannelPlan,
        params: &[Lanes],
        gradient: &mut [Lanes],
    ) {
        let (first_scale, first_normsys) = (scales(plan, channel).start, normsys(plan, channel).start);
        for (i, t) in channel.templates.clone().enumerate() {
            let template = &plan.templates[t];
            let mut rest = self.adjoint[i];
            let links = &self.normsys[template.normsys.start - first_normsys..template.normsys.end - first_normsys];
            for (modifier, &[factor, partial]) in plan.normsys[template.normsys.clone()].iter().zip(links).rev() {
                let slope = &mut gradient[modifier.param as usize];
                *slope = partial.times_plus(isa, rest, *slope);
                rest = rest * factor;
            }
            let befores = &self.scales[template.scales.start - first_scale..template.scales.end - first_scale];
            for (modifier, &before) in plan.scales[template.scales.clone()].iter().zip(befores).rev() {
                let slope = &mut gradient[modifier.param as usize];
                *slope = before.times_plus(isa, rest, *slope);
                rest = rest * params[modifier.param as usize];
            }
        }
    }
}

/// The normsys modifiers of a channel; those of neighbouring templates are neighbours.
fn normsys(plan: &Plan, channel: &ChannelPlan) -> Range<usize> {
    let templates = &plan.templates[channel.templates.clone()];
    templates.first().map_or(0, |t| t.normsys.start)..templates.last().map_or(0, |t| t.normsys.end)
}

/// The scale modifiers of a channel, likewise.
fn scales(plan: &Plan, channel: &ChannelPlan) -> Range<usize> {
    let templates = &plan.templates[channel.templates.clone()];
    templates.first().map_or(0, |t| t.scales.start)..templates.last().map_or(0, |t| t.scales.end)
}

/// Value and derivative of the polynomial 1 + a₁α + … + a₆α⁶, both by Horner's rule.
#[inline(always)]
fn polynomial<I: Isa>(isa: I, &[a1, a2, a3, a4, a5, a6]: &[f64; 6], alpha: Lanes) -> [Lanes; 2] {
    let mut value = Lanes::all(a6);
    let mut slope = value;
    for a in [a5, a4, a3, a2, a1] {
        value = value.times_plus(isa, alpha, Lanes::all(a));
        slope = slope.times_plus(isa, alpha, value);
    }
    [value.times_plus(isa, alpha, Lanes::ONE), slope]
}

/// Whether a normsys factor is a polynomial at `alpha`.
#[inline(always)]
fn is_inside(smooth: bool, alpha: f64) -> bool {
    smooth & (alpha.abs() < 1.0)
}

/// Where factors of `template` are exponentials: the sum of their exponents, as the product of exponentials needs but one; and into `factors` the
/// derivatives of the exponents, which stand beside values of 1.
#[inline(always)]
fn add_exponentials<I: Isa>(
    isa: I,
    plan: &Plan,
    template: &TemplatePlan,
    params: &[Lanes],
    has_outer: &[bool],
    factors: &mut [[Lanes; 2]],
) -> Lanes {
    let smooth = plan.normsys_table.rule() == NormSysInterpolation::SmoothExponential;
    let mut exponent = Lanes::ZERO;
    for (entry, [_, slope]) in template.normsys.clone().zip(factors) {
        let param = plan.normsys[entry].param as usize;
        if has_outer[param] {
            let [ln_hi, ln_lo] = plan.normsys_table.logarithms(entry);
            let alpha = params[param];
            for lane in 0..LANES {
                let a = alpha.0[lane];
                let inside = is_inside(smooth, a);
                let rate = if a.is_sign_positive() { ln_hi } else { -ln_lo };
                let sum = isa.fma(rate, a, exponent.0[lane]);
                exponent.0[lane] = if inside { exponent.0[lane] } else { sum };
                slope.0[lane] = if inside { slope.0[lane] } else { rate };
            }
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
