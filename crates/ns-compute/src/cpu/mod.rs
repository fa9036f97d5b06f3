//! The likelihood of a model on the CPU: analytic value, gradient and curvature, vectorised over
//! bins and modifiers or over points.
//!
//! [`ModelPlan`] is the model laid out for evaluation. [`CpuLikelihood`] evaluates one data set at
//! a time, [`CpuBatch`] value and gradient of many points, [`DifferentiableSession`] one data set
//! with templates that change. None allocates per call, except a few vectors of P where single
//! parameters are moved. The formulas are those of `ns_core`: λ_b = Σ_t (nominal + shifts) · K_t ·
//! Π γ; this module has only their order of evaluation and their derivatives.

pub mod isa;

mod accelerate;
mod batch;
mod channel;
mod differentiable;
mod elimination;
mod evaluator;
mod exact;
mod factors;
mod gram;
mod limits;
mod moves;
pub(crate) mod plan;
mod pull_back;
mod rules;
pub(crate) mod terms;

pub use batch::{BatchDataSet, BatchDataSets, CpuBatch};
pub use differentiable::DifferentiableSession;
pub use evaluator::CpuLikelihood;
pub use plan::ModelPlan;

/// Replaces an exactly zero factor where a derivative divides by it: small enough to vanish from
/// every sum, large enough that products of two of them do not underflow. The derivative with
/// respect to a factor is (product)/(factor), so it comes out right to the last digit.
const TINY: f64 = 1e-100;

#[inline(always)]
fn nonzero(factor: f64) -> f64 {
    if factor == 0.0 { TINY } else { factor }
}
