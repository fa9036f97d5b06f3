//! Cancellation: a likelihood that a caller can stop between two evaluations.
//!
//! After cancellation every point is outside the domain, so running searches terminate. The caller
//! then drops their result. Work that is counted in units has a monitor too
//! (`ns_inference::monitor`).

use ns_compute::CpuLikelihood;
use ns_core::curvature::{Curvature, CurvatureStructure};
use ns_core::{Data, DataLikelihood, Likelihood, LimitKinks, SearchLikelihood};
use std::fmt::Debug;
use std::sync::Arc;

/// Says whether to stop. Asked before every evaluation, from any thread.
pub trait Cancellation: Debug + Send + Sync {
    /// Returns `true` once the work should end.
    fn is_cancelled(&self) -> bool;
}

/// The likelihood that all procedures of this crate use. Clones share the cancellation.
#[derive(Debug, Clone)]
pub struct CancellableLikelihood {
    inner: CpuLikelihood,
    cancellation: Option<Arc<dyn Cancellation>>,
}

impl CancellableLikelihood {
    /// Wraps `inner`; `None` never stops it.
    #[must_use]
    pub fn new(inner: CpuLikelihood, cancellation: Option<Arc<dyn Cancellation>>) -> Self {
        Self { inner, cancellation }
    }
}

impl Likelihood for CancellableLikelihood {
    fn n_params(&self) -> usize {
        self.inner.n_params()
    }

    fn structure(&self) -> CurvatureStructure {
        self.inner.structure()
    }

    fn nll(&mut self, params: &[f64]) -> f64 {
        if self.is_stopped() { f64::INFINITY } else { self.inner.nll(params) }
    }

    fn nll_and_grad(&mut self, params: &[f64], gradient: &mut [f64]) -> f64 {
        if self.is_stopped() {
            gradient.fill(0.0);
            return f64::INFINITY;
        }
        self.inner.nll_and_grad(params, gradient)
    }

    fn nll_and_curvature(&mut self, params: &[f64], gradient: &mut [f64], curvature: &mut Curvature) -> f64 {
        if self.is_stopped() {
            gradient.fill(0.0);
            return f64::INFINITY;
        }
        self.inner.nll_and_curvature(params, gradient, curvature)
    }

    fn kinks(&mut self, params: &[f64], out: &mut LimitKinks) {
        self.inner.kinks(params, out);
    }
}

impl SearchLikelihood for CancellableLikelihood {
    fn nll_and_derivative_moved(&mut self, params: &[f64], moves: &[(usize, f64)], out: &mut Vec<[f64; 2]>) {
        if self.is_stopped() {
            *out = vec![[f64::INFINITY, 0.0]; moves.len()];
            return;
        }
        self.inner.nll_and_derivative_moved(params, moves, out);
    }

    fn set_floor(&mut self, floor: Option<f64>) -> bool {
        self.inner.set_floor(floor)
    }

    fn is_stopped(&self) -> bool {
        self.cancellation.as_ref().is_some_and(|cancellation| cancellation.is_cancelled())
    }
}

impl DataLikelihood for CancellableLikelihood {
    fn data(&self) -> &Data {
        self.inner.data()
    }

    fn set_data(&mut self, data: &Data) {
        self.inner.set_data(data);
    }
}
