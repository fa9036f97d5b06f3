//! What depends on the parameters but not on the bin: weights of the histosys shifts, and the scalar factors of each template.
//!
//! Forwards, the factors of a template are multiplied one after the other, and each leaves behind itself and the product so far times its own
//! derivative. Backwards, a running product of the factors behind completes that to the derivative of the whole. Nothing is divided by a factor, so
//! factors of exactly zero need no care.

use super::lanes::{LANES, Lanes};
use crate::cpu::factors::{NormSysTable, exp};
use crate::cpu::isa::Isa;
use crate::cpu::plan::{ChannelPlan, Plan};
use ns_core::interpolate::{HistoSysInterpolation, NormSysInterpolation};

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

/// The scalar factors of the templates of one channel, each with its partial derivative so far.
#[derive(Debug, Clone)]
pub(crate) struct Chains {
    /// K, the product of each template's factors (T of the channel).
    pub(crate) scale: Vec<Lanes>,
    /// Adjoint of K (T of the channel).
    pub(crate) adjoint: Vec<Lanes>,
    /// Each factor, and the product of the ones before it times its derivative.
    links: Vec<[Lanes; 2]>,
    /// Whether any lane of a parameter is where normsys factors are exponentials (P).
    exponential: Vec<bool>,
}

impl Chains {
    pub(crate) fn new(plan: &Plan) -> Self {
        let links_of = |c: &ChannelPlan| {
            let templates = &plan.templates[c.templates.clone()];
            templates.iter().map(|t| t.scales.len() + t.normsys.len()).sum::<usize>()
        };
        let n_templates = plan.channels.iter().map(|c| c.templates.len()).max().unwrap_or(0);
        let n_links = plan.channels.iter().map(links_of).max().unwrap_or(0);
        Self {
            scale: vec![Lanes::ZERO; n_templates],
            adjoint: vec![Lanes::ZERO; n_templates],
            links: vec![[Lanes::ZERO; 2]; n_links],
            exponential: vec![false; plan.n_params],
        }
    }

    /// Finds out which parameters of the group are beyond the polynomials.
    #[inline(always)]
    pub(crate) fn look_at(&mut self, plan: &Plan, params: &[Lanes]) {
        let always = plan.normsys_table.rule() == NormSysInterpolation::Exponential;
        for (flag, alpha) in self.exponential.iter_mut().zip(params) {
            let mut inside = true;
            for lane in 0..LANES {
                inside &= alpha.0[lane].abs() < 1.0;
            }
            *flag = always | !inside;
        }
    }

    /// K of each template of `channel`, its adjoint zero; with `GRADIENT`, what `backward` needs.
    #[inline(always)]
    pub(crate) fn forward<I: Isa, const GRADIENT: bool>(
        &mut self,
        isa: I,
        plan: &Plan,
        channel: &ChannelPlan,
        params: &[Lanes],
    ) {
        let mut links = self.links.iter_mut();
        for (i, t) in channel.templates.clone().enumerate() {
            let template = &plan.templates[t];
            let mut product = Lanes::ONE;
            for (modifier, link) in plan.scales[template.scales.clone()].iter().zip(&mut links) {
                let factor = params[modifier.param as usize];
                if GRADIENT {
                    *link = [factor, product];
                }
                product = product * factor;
            }
            for (entry, link) in template.normsys.clone().zip(&mut links) {
                let param = plan.normsys[entry].param as usize;
                let modifier = plan.normsys_table.modifier(entry);
                let [factor, slope] = if self.exponential[param] {
                    beyond(isa, plan.normsys_table.rule(), &modifier, params[param])
                } else {
                    polynomial(isa, &modifier, params[param])
                };
                if GRADIENT {
                    *link = [factor, product * slope];
                }
                product = product * factor;
            }
            self.scale[i] = product;
            self.adjoint[i] = Lanes::ZERO;
        }
    }

    /// Carries the adjoints of K on to `gradient` (P).
    #[inline(always)]
    pub(crate) fn backward<I: Isa>(&self, isa: I, plan: &Plan, channel: &ChannelPlan, gradient: &mut [Lanes]) {
        let mut start = 0;
        for (i, t) in channel.templates.clone().enumerate() {
            let template = &plan.templates[t];
            let (scales, normsys) = (&plan.scales[template.scales.clone()], &plan.normsys[template.normsys.clone()]);
            let (middle, end) = (start + scales.len(), start + scales.len() + normsys.len());
            let mut rest = self.adjoint[i];
            for (modifiers, links) in [(normsys, middle..end), (scales, start..middle)] {
                for (modifier, &[factor, partial]) in modifiers.iter().zip(&self.links[links]).rev() {
                    let slope = &mut gradient[modifier.param as usize];
                    *slope = partial.times_plus(isa, rest, *slope);
                    rest = rest * factor;
                }
            }
            start = end;
        }
    }
}

/// Coefficients of α¹ … α⁶, ln hi, ln lo of a normsys modifier.
type Modifier = [f64; 8];

/// Value and derivative of the polynomial 1 + a₁α + … + a₆α⁶, both by Horner's rule.
#[inline(always)]
fn polynomial<I: Isa>(isa: I, &[a1, a2, a3, a4, a5, a6, ..]: &Modifier, alpha: Lanes) -> [Lanes; 2] {
    let mut value = Lanes::all(a6);
    let mut slope = value;
    for a in [a5, a4, a3, a2, a1] {
        value = value.times_plus(isa, alpha, Lanes::all(a));
        slope = slope.times_plus(isa, alpha, value);
    }
    [value.times_plus(isa, alpha, Lanes::ONE), slope]
}

/// Value and derivative where some lane is beyond the polynomial.
#[inline(always)]
fn beyond<I: Isa>(isa: I, rule: NormSysInterpolation, modifier: &Modifier, alpha: Lanes) -> [Lanes; 2] {
    let [mut value, mut slope] = polynomial(isa, modifier, alpha);
    let [.., ln_hi, ln_lo] = *modifier;
    let smooth = rule == NormSysInterpolation::SmoothExponential;
    for lane in 0..LANES {
        let a = alpha.0[lane];
        let rate = if a.is_sign_positive() { ln_hi } else { -ln_lo };
        let exponential = exp(isa, rate * a);
        let inside = smooth & (a.abs() < 1.0);
        value.0[lane] = if inside { value.0[lane] } else { exponential };
        slope.0[lane] = if inside { slope.0[lane] } else { rate * exponential };
    }
    [value, slope]
}

impl NormSysTable {
    /// The numbers of modifier `entry`.
    #[inline(always)]
    fn modifier(&self, entry: usize) -> Modifier {
        let (group, lane) = self.place(entry);
        let mut modifier = [0.0; 8];
        for (number, row) in modifier.iter_mut().zip(group) {
            *number = row[lane];
        }
        modifier
    }
}
