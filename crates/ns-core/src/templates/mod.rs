//! The templates of chosen samples as one vector of inputs, and likelihoods that are functions of it.
//!
//! An input is a number of a workspace's histograms: a nominal yield, a yield of a histosys at ±1σ, a factor of a normsys at ±1σ. They are independent of each other:
//! a changed nominal yield leaves the templates at ±1σ where they are. What was made of the nominal yields when the model was compiled stays as it was: the
//! widths of constraint terms, which say how large the Monte-Carlo samples and the control regions were, and the auxiliary data.
//!
//! Legend: M inputs, P parameters, B bins.

pub mod choice;
mod pull_back;

pub use choice::{InputBlock, InputError, InputKind, Inputs, TemplateSelection, TemplateVariations};
pub use pull_back::{LineExpansion, along, hessian_product, pull_back, pull_back_inputs};

use crate::likelihood::DataLikelihood;

/// A likelihood whose chosen templates can be replaced, with derivatives with respect to them: what a device offers to gradients of test statistics.
pub trait TemplateLikelihood: DataLikelihood {
    /// Which numbers are the inputs (M).
    fn inputs(&self) -> &Inputs;

    /// Replaces the inputs by `values` (M).
    fn set_inputs(&mut self, values: &[f64]);

    /// -ln L at `params` (P), its gradient with respect to the parameters (P) and with respect to the inputs (M).
    ///
    /// Outside the model's domain it is +∞ with gradients of zero.
    fn nll_and_gradients(&mut self, params: &[f64], gradient: &mut [f64], by_inputs: &mut [f64]) -> f64;

    /// The expected counts λ (B) at `params` (P).
    fn expected(&mut self, params: &[f64], lambda: &mut [f64]);

    /// Σ_b c_b ∂λ_b/∂θ and Σ_b c_b ∂λ_b/∂x for the weights c (B), written to `gradient` (P) and to `by_inputs` (M).
    fn pull_back(&mut self, params: &[f64], weights: &[f64], gradient: &mut [f64], by_inputs: &mut [f64]);

    /// How both gradients of -ln L, and λ, change along `params` + ε `direction`, written to `out`.
    fn along(&mut self, params: &[f64], direction: &[f64], out: &mut LineExpansion);

    /// How the gradient of -ln L by the inputs changes along `params` + ε `direction`, written to `by_inputs` (M): what [`Self::along`] finds in `by_inputs`' first
    /// derivatives, without the rest.
    fn inputs_along(&mut self, params: &[f64], direction: &[f64], by_inputs: &mut [f64]);

    /// What [`Self::along`] does where the inputs move too, along `direction` (P and M): the first derivatives of both gradients are the product of the whole Hessian with it, and
    /// nothing else of `out` is to be used.
    fn hessian_product(&mut self, params: &[f64], direction: (&[f64], &[f64]), out: &mut LineExpansion);
}
