//! Quantities that formulas derive from the parameters, and a point with their values appended.
//!
//! Scale factors and morphing terms of a model refer to parameters and, from index P on, to derived
//! quantities. An evaluator computes yields at the *extended* point (P + D numbers) and pulls
//! derivatives back to the parameters: with J = ∂(extended point)/∂θ the gradient is Jᵀg, and the
//! Hessian JᵀHJ + Σ_d g_d ∇²f_d.
//!
//! Legend: P parameters, D derived quantities.

use crate::formula::{Expansion, Tape, TapeScratch};
use crate::model::Model;
use crate::scalar::Scalar;
use std::borrow::Cow;

/// The derived quantities of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DerivedQuantities {
    /// What each is called in messages: the modifier, or its term (D).
    pub names: Vec<String>,
    /// How each is computed from the parameters (D).
    pub tapes: Vec<Tape>,
}

impl DerivedQuantities {
    /// Returns D, their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tapes.len()
    }

    /// Returns `true` if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tapes.is_empty()
    }

    /// Returns for each of `n_params` parameters whether a derived quantity depends on it.
    #[must_use]
    pub fn arguments(&self, n_params: usize) -> Vec<bool> {
        let mut is_argument = vec![false; n_params];
        for &argument in self.tapes.iter().flat_map(Tape::arguments) {
            is_argument[argument as usize] = true;
        }
        is_argument
    }
}

impl Model {
    /// Returns P + D, the length of the extended point.
    #[must_use]
    pub fn n_extended(&self) -> usize {
        self.n_params() + self.derived.len()
    }

    /// Returns `params` (P) with the derived quantities appended (P + D): the reference
    /// implementation, for any number type.
    #[must_use]
    pub fn extended<'a, S: Scalar>(&self, params: &'a [S]) -> Cow<'a, [S]> {
        if self.derived.is_empty() {
            return Cow::Borrowed(params);
        }
        Cow::Owned(params.iter().cloned().chain(self.derived.tapes.iter().map(|tape| tape.evaluate(params))).collect())
    }

    /// Returns `true` if the model has derived quantities or morphing terms.
    #[must_use]
    pub fn has_formulas(&self) -> bool {
        !self.derived.is_empty() || self.layout.morphing_param.len > 0
    }

    /// Returns the parameters that index `index` of an extended point depends on: itself, or the
    /// arguments of a derived quantity.
    pub fn parameters_of(&self, index: u32) -> impl Iterator<Item = u32> + '_ {
        let derived = (index as usize).checked_sub(self.n_params());
        let arguments = derived.map_or(&[][..], |d| self.derived.tapes[d].arguments());
        derived.is_none().then_some(index).into_iter().chain(arguments.iter().copied())
    }
}

/// Values and derivatives of all derived quantities at a point. Allocates nothing per evaluation.
#[derive(Debug, Clone, Default)]
pub struct DerivedPoint {
    /// The extended point (P + D).
    pub extended: Vec<f64>,
    /// Value, gradient and Hessian of each (D); derivatives are those of the last request for them.
    pub expansions: Vec<Expansion>,
    /// Which may be steep: their derivatives are always computed, so that -ln L is infinite in the
    /// same places whatever is asked for (D).
    may_be_steep: Vec<bool>,
    scratch: TapeScratch,
}

/// The derivatives that a caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DerivativeOrder {
    /// Values only.
    Values,
    /// Gradients too.
    Gradients,
    /// Hessians too.
    Hessians,
}

impl DerivedPoint {
    /// Returns memory for `derived`.
    #[must_use]
    pub fn new(derived: &DerivedQuantities) -> Self {
        let expansions = derived.tapes.iter().map(Expansion::for_tape).collect();
        let may_be_steep = derived.tapes.iter().map(Tape::may_be_steep).collect();
        Self { extended: Vec::new(), expansions, may_be_steep, scratch: TapeScratch::default() }
    }

    /// Computes the derived quantities at `params` (P) with derivatives up to `order`. Returns
    /// whether they and their derivatives are finite; where they are not, -ln L is +∞.
    pub fn set(&mut self, derived: &DerivedQuantities, params: &[f64], order: DerivativeOrder) -> bool {
        let Self { extended, expansions, may_be_steep, scratch } = self;
        extended.clear();
        extended.extend_from_slice(params);
        let mut is_finite = true;
        for ((tape, out), &may_be_steep) in derived.tapes.iter().zip(expansions).zip(&*may_be_steep) {
            let order = if may_be_steep { DerivativeOrder::Hessians } else { order };
            match order {
                DerivativeOrder::Values => out.value = tape.value(params, scratch),
                DerivativeOrder::Gradients => tape.gradient(params, scratch, out),
                DerivativeOrder::Hessians => tape.hessian(params, scratch, out),
            }
            is_finite &= match order {
                DerivativeOrder::Values => out.value.is_finite(),
                DerivativeOrder::Gradients => out.value.is_finite() && out.gradient.iter().all(|x| x.is_finite()),
                DerivativeOrder::Hessians => out.is_finite(),
            };
            extended.push(out.value);
        }
        is_finite
    }

    /// Adds to `gradient` (P) what the derivatives `by_derived` (D) with respect to the derived
    /// quantities contribute.
    pub fn pull_back(&self, derived: &DerivedQuantities, by_derived: &[f64], gradient: &mut [f64]) {
        for ((tape, expansion), by_derived) in derived.tapes.iter().zip(&self.expansions).zip(by_derived) {
            for (&argument, derivative) in tape.arguments().iter().zip(&expansion.gradient) {
                gradient[argument as usize] += by_derived * derivative;
            }
        }
    }
}
