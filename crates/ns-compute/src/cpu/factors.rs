//! All normsys factors of a model at once: value, f'/f and f''/f of each, eight at a time.
//!
//! The formulas are `ns_core::interpolate`'s; its polynomial coefficients and logarithms are
//! interleaved here so that one vector instruction serves eight modifiers. The reference
//! implementation is `NormSysFactor::at`.

use super::isa::Isa;
use ns_core::interpolate::{Jet, NormSysFactor, NormSysInterpolation};
use ns_core::model::Model;
use ns_core::response::NormSysResponse;
use std::ops::Range;

/// Modifiers that are evaluated together.
pub(crate) const LANES: usize = 8;

/// Eight modifiers: polynomial coefficients of α¹ … α⁶, ln hi, ln lo.
type Group = [[f64; LANES]; 8];

/// The normsys modifiers of a model, in groups of eight; the last group is filled up with factors
/// that are 1 everywhere.
#[derive(Debug, Clone)]
pub(crate) struct NormSysTable {
    groups: Vec<Group>,
    params: Vec<u32>,
    rule: NormSysInterpolation,
    /// The modifiers with a response of their own, by entry; in the groups they are 1 everywhere.
    own: Vec<OwnFactor>,
}

/// A normsys with a response of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnFactor {
    pub(crate) entry: usize,
    pub(crate) param: u32,
    factor: NormSysFactor,
    response: NormSysResponse,
}

impl OwnFactor {
    /// Returns the factor at `param`.
    pub(crate) fn at(&self, param: f64) -> Jet {
        self.response.at(&self.factor, param)
    }
}

/// f, f'/f and f''/f of every modifier.
#[derive(Debug, Clone, Default)]
pub(crate) struct NormSysValues {
    pub(crate) value: Vec<f64>,
    pub(crate) log_derivative: Vec<f64>,
    pub(crate) relative_curvature: Vec<f64>,
}

impl NormSysTable {
    pub(crate) fn new(model: &Model) -> Self {
        let mut params = model.table(model.layout.normsys_param).to_vec();
        let (lo, hi) = (model.values(model.layout.normsys_lo), model.values(model.layout.normsys_hi));
        let groups = vec![[[0.0; LANES]; 8]; params.len().div_ceil(LANES)];
        params.resize(groups.len() * LANES, 0);
        let mut table = Self { groups, params, rule: model.interpolation.normsys, own: Vec::new() };
        for (entry, (&lo, &hi)) in lo.iter().zip(hi).enumerate() {
            let (factor, response) = (NormSysFactor::new(lo, hi), model.normsys_response(entry));
            if response == model.responses.normsys[0] {
                table.set(entry, factor);
            } else {
                table.own.push(OwnFactor { entry, param: table.params[entry], factor, response });
            }
        }
        table
    }

    /// Returns the modifiers among `entries` that have a response of their own.
    #[inline(always)]
    pub(crate) fn own(&self, entries: Range<usize>) -> &[OwnFactor] {
        let place = |entry: usize| self.own.partition_point(|own| own.entry < entry);
        &self.own[place(entries.start)..place(entries.end)]
    }

    /// Replaces modifier `entry`, which has the model's rule.
    pub(crate) fn set(&mut self, entry: usize, factor: NormSysFactor) {
        let group = &mut self.groups[entry / LANES];
        for (k, coefficient) in factor.coefficients.into_iter().chain([factor.ln_hi, factor.ln_lo]).enumerate() {
            group[k][entry % LANES] = coefficient;
        }
    }

    /// Returns ∂f/∂lo and ∂f/∂hi of modifier `entry` at `alpha`.
    pub(crate) fn by_ends(&self, entry: usize, alpha: f64) -> [f64; 2] {
        self.factor(entry).by_ends(alpha, self.rule).map(|jet| jet.value)
    }

    /// Evaluates modifier `entry` at `alpha`.
    pub(crate) fn at(&self, entry: usize, alpha: f64) -> Jet {
        match self.own(entry..entry + 1) {
            [] => self.factor(entry).at(alpha, self.rule),
            [own, ..] => own.at(alpha),
        }
    }

    fn factor(&self, entry: usize) -> NormSysFactor {
        let [ln_hi, ln_lo] = self.logarithms(entry);
        NormSysFactor { ln_hi, ln_lo, coefficients: self.coefficients(entry) }
    }

    /// Returns the rule of every modifier.
    #[inline(always)]
    pub(crate) fn rule(&self) -> NormSysInterpolation {
        self.rule
    }

    /// Returns the coefficients of α¹ … α⁶ of modifier `entry`.
    #[inline(always)]
    pub(crate) fn coefficients(&self, entry: usize) -> [f64; 6] {
        let (group, lane) = (&self.groups[entry / LANES], entry % LANES);
        let mut coefficients = [0.0; 6];
        for (coefficient, row) in coefficients.iter_mut().zip(group) {
            *coefficient = row[lane];
        }
        coefficients
    }

    /// Returns ln hi and ln lo of modifier `entry`.
    #[inline(always)]
    pub(crate) fn logarithms(&self, entry: usize) -> [f64; 2] {
        let (group, lane) = (&self.groups[entry / LANES], entry % LANES);
        [group[6][lane], group[7][lane]]
    }

    /// Allocates memory for the results.
    pub(crate) fn factors(&self) -> NormSysValues {
        let room = || vec![0.0; self.params.len()];
        NormSysValues { value: room(), log_derivative: room(), relative_curvature: room() }
    }

    /// Fills `out.value` at `params`, and the derivatives too if `DERIVATIVES`.
    #[inline(always)]
    pub(crate) fn evaluate<I: Isa, const DERIVATIVES: bool>(&self, isa: I, params: &[f64], out: &mut NormSysValues) {
        for (g, group) in self.groups.iter().enumerate() {
            let lanes = g * LANES..(g + 1) * LANES;
            let mut alpha = [0.0; LANES];
            for (a, &param) in alpha.iter_mut().zip(&self.params[lanes.clone()]) {
                *a = params[param as usize];
            }
            let mut jets = polynomial(isa, group, &alpha);
            let outside = |a: f64| self.rule == NormSysInterpolation::Exponential || a.abs() >= 1.0;
            if alpha.iter().any(|&a| outside(a)) {
                let exponential = exponential(isa, group, &alpha);
                for lane in 0..LANES {
                    for (jet, other) in jets.iter_mut().zip(&exponential) {
                        jet[lane] = if outside(alpha[lane]) { other[lane] } else { jet[lane] };
                    }
                }
            }
            out.value[lanes.clone()].copy_from_slice(&jets[0]);
            if DERIVATIVES {
                for lane in 0..LANES {
                    let inverse = 1.0 / super::nonzero(jets[0][lane]);
                    jets[1][lane] *= inverse;
                    jets[2][lane] *= inverse;
                }
                out.log_derivative[lanes.clone()].copy_from_slice(&jets[1]);
                out.relative_curvature[lanes].copy_from_slice(&jets[2]);
            }
        }
        for own in &self.own {
            let jet = own.at(params[own.param as usize]);
            out.value[own.entry] = jet.value;
            if DERIVATIVES {
                let inverse = 1.0 / super::nonzero(jet.value);
                out.log_derivative[own.entry] = jet.first * inverse;
                out.relative_curvature[own.entry] = jet.second * inverse;
            }
        }
    }
}

/// Returns value, first and second derivative of the polynomials at `alpha`.
#[inline(always)]
fn polynomial<I: Isa>(isa: I, group: &Group, alpha: &[f64; LANES]) -> [[f64; LANES]; 3] {
    let mut jets = [[0.0; LANES]; 3];
    for lane in 0..LANES {
        let x = alpha[lane];
        let a = |k: usize| group[k - 1][lane];
        let horner = |terms: [f64; 6]| terms.into_iter().reduce(|sum, term| isa.fma(sum, x, term)).unwrap_or(0.0);
        let shifted = horner([a(6), a(5), a(4), a(3), a(2), a(1)]);
        jets[0][lane] = isa.fma(shifted, x, 1.0);
        jets[1][lane] = horner([6.0 * a(6), 5.0 * a(5), 4.0 * a(4), 3.0 * a(3), 2.0 * a(2), a(1)]);
        jets[2][lane] = horner([0.0, 30.0 * a(6), 20.0 * a(5), 12.0 * a(4), 6.0 * a(3), 2.0 * a(2)]);
    }
    jets
}

/// Returns value, first and second derivative of hi^α (α ≥ 0) or lo^-α.
#[inline(always)]
fn exponential<I: Isa>(isa: I, group: &Group, alpha: &[f64; LANES]) -> [[f64; LANES]; 3] {
    let mut jets = [[0.0; LANES]; 3];
    for lane in 0..LANES {
        let rate = if alpha[lane].is_sign_positive() { group[6][lane] } else { -group[7][lane] };
        let value = exp(isa, rate * alpha[lane]);
        jets[0][lane] = value;
        jets[1][lane] = rate * value;
        jets[2][lane] = rate * rate * value;
    }
    jets
}

/// Returns eˣ without a branch or a call, so that it vectorises; within 2 units in the last place,
/// 0 below -708, +∞ above 709.
///
/// x = k ln 2 + r with |r| ≤ ½ ln 2 (Cody and Waite, in two parts), e^r by its Taylor polynomial of
/// degree 13 (remainder < 5e-18).
#[inline(always)]
pub(crate) fn exp<I: Isa>(isa: I, x: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2^52: adding it leaves the nearest integer in the low bits
    const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const INVERSE_FACTORIAL: [f64; 14] = [
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let clamped = x.clamp(-708.0, 709.0);
    let shifted = isa.fma(clamped, std::f64::consts::LOG2_E, ROUND);
    let k = shifted - ROUND;
    let r = isa.fma(k, -LN2_LOW, isa.fma(k, -LN2_HIGH, clamped));
    let mut sum = INVERSE_FACTORIAL[0];
    for &term in &INVERSE_FACTORIAL[1..] {
        sum = isa.fma(sum, r, term);
    }
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let value = sum * power;
    let capped = if x > 709.0 { f64::INFINITY } else { value };
    if x < -708.0 { 0.0 } else { capped }
}

#[cfg(test)]
mod tests {
    use super::super::isa::{FusedMultiplyAdd, SeparateMultiplyAdd};
    use super::*;

    #[test]
    fn exp_agrees_with_the_standard_library() {
        for i in -69_000..=69_000 {
            let x = f64::from(i) * 0.010_123;
            let exact = x.exp();
            for value in [exp(FusedMultiplyAdd, x), exp(SeparateMultiplyAdd, x)] {
                assert!((value / exact - 1.0).abs() < 5e-16, "exp({x}) = {value}, not {exact}");
            }
        }
        assert_eq!(exp(FusedMultiplyAdd, 0.0), 1.0);
        assert_eq!(exp(FusedMultiplyAdd, 1e4), f64::INFINITY);
        assert_eq!(exp(FusedMultiplyAdd, -1e4), 0.0);
        assert!(exp(FusedMultiplyAdd, f64::NAN).is_nan());
    }
}
