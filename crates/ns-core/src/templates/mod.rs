//! The templates of chosen samples as one vector of inputs, and likelihoods as functions of it.
//!
//! An input is a number of a workspace's histograms: a nominal yield, a yield of a histosys at ±1σ,
//! a factor of a normsys at ±1σ, a yield of a morphing term. They are independent of each other: a
//! changed nominal yield leaves the templates at ±1σ unchanged. What compilation computed from the
//! nominal yields stays unchanged too: the widths of constraint terms, which describe the sizes of
//! Monte-Carlo samples and control regions, and the auxiliary data.
//!
//! Legend: M inputs, P parameters, B bins.

pub mod choice;
mod pull_back;

pub use choice::{InputBlock, InputError, InputKind, Inputs, TemplateSelection, TemplateVariations};
pub use pull_back::{JointDirection, LineExpansion, ParameterLine, along, pull_back, pull_back_inputs};

use crate::likelihood::DataLikelihood;

/// A likelihood whose chosen templates can be replaced, with derivatives with respect to them, from
/// which gradients of test statistics are computed.
pub trait TemplateLikelihood: DataLikelihood {
    /// Returns the description of the inputs (M).
    fn inputs(&self) -> &Inputs;

    /// Replaces the inputs by `values` (M).
    fn set_inputs(&mut self, values: &[f64]);

    /// Returns -ln L at `params` (P), and writes its gradients with respect to the parameters to
    /// `gradient` (P) and with respect to the inputs to `by_inputs` (M).
    ///
    /// Outside the domain of the model it returns +∞ with gradients of zero.
    fn nll_and_gradients(&mut self, params: &[f64], gradient: &mut [f64], by_inputs: &mut [f64]) -> f64;

    /// Writes the expected counts λ at `params` (P) to `lambda` (B).
    fn expected(&mut self, params: &[f64], lambda: &mut [f64]);

    /// Writes Σ_b c_b ∂λ_b/∂θ and Σ_b c_b ∂λ_b/∂x for the weights c (B) to `gradient` (P) and to
    /// `by_inputs` (M).
    fn pull_back(&mut self, params: &[f64], weights: &[f64], gradient: &mut [f64], by_inputs: &mut [f64]);

    /// Writes to `out` both gradients of -ln L, and λ, along `params` + ε `direction`.
    fn along(&mut self, params: &[f64], direction: &[f64], out: &mut LineExpansion);

    /// Writes to `by_inputs` (M) the derivative along `params` + ε `direction` of the gradient with
    /// respect to the inputs: the first derivatives in `by_inputs` of [`Self::along`], without the
    /// rest.
    fn inputs_along(&mut self, params: &[f64], direction: &[f64], by_inputs: &mut [f64]);

    /// Writes to `out` both gradients where the inputs move too: their first derivatives are the
    /// product of the Hessian with `direction`. Other numbers in `out` are not meaningful.
    fn hessian_product(&mut self, params: &[f64], direction: JointDirection<'_>, out: &mut LineExpansion);
}
