//! Solving with the second-order information of a likelihood, by its structure.
//!
//! Both factorisations solve (H + diag(damping)) x = r over the free parameters; the others are
//! left out, so that x is 0 there. An [`ArrowheadFactor`] eliminates the local parameters bin by
//! bin, a [`SparseFactor`] all parameters of a model in which few meet; a [`MatrixFactor`] is
//! either. A [`GaussNewtonFactor`] works in the space of the bins.

mod arrowhead;
mod cholesky;
mod gauss_newton;
mod matrix;
mod rank;
mod rows;
mod small;
mod sparse;

pub use arrowhead::ArrowheadFactor;
pub use gauss_newton::GaussNewtonFactor;
pub use matrix::MatrixFactor;
pub use rank::{inverse_form, is_positive_semidefinite, rank, scaled_factor};
pub use rows::{SparseRows, WhitenedRows};
pub(crate) use small::{factor_small, lower_small, upper_small};
pub use sparse::SparseFactor;

/// Whether to give a factorisation up.
pub type StopCheck<'a> = &'a dyn Fn() -> bool;

/// The matrix is not positive definite over the free parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotPositiveDefinite;
