//! Asimov data as a function of the inputs: directly, since they are expected counts, and through
//! the fit at which they are made.
//!
//! n_A = λ(θ_A, x) and a_A = E[a | θ_A]. For a function f of them with derivatives c = ∂f/∂n_A and
//! e = ∂f/∂a_A, df/dx = cᵀ ∂λ/∂x + rᵀ dθ_A/dx with r = Jᵀc + (∂a/∂θ)ᵀe. If θ_A is the conditional
//! minimum of the fit to the observed data, rᵀ dθ_A/dx = -uᵀ ∂²(-ln L)/∂θ∂x with u = H⁻¹ r.

use super::error::{DifferentiableError, FitTarget, require_minimum};
use super::warm_start;
use super::{Kind, ProfiledDifferentiableSession};
use crate::options::domain_and_start;
use ns_core::expected::expected_aux;
use ns_core::{Data, TemplateLikelihood};

/// Expected counts below this are zero.
const ZERO_COUNT: f64 = 1e-50;

/// The point at which Asimov data are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AsimovPoint {
    /// The conditional fit to the observed data, as in pyhf (arXiv:1007.1727). It depends on the
    /// inputs.
    #[default]
    Fitted,
    /// The starting values, for analyses that are not unblinded. They depend neither on the
    /// observed data nor on the inputs.
    Nominal,
}

/// The parameters (P) at which the Asimov data set was made, and its value of the parameter of
/// interest.
#[derive(Debug)]
pub(super) struct Asimov {
    pub(super) params: Vec<f64>,
    pub(super) mu: f64,
}

/// Derivatives of a function of an Asimov data set with respect to its main bins (B), its auxiliary
/// data (K), and the parameters at which it was made (P).
pub(super) struct AsimovDerivatives {
    pub(super) main: Vec<f64>,
    pub(super) aux: Vec<f64>,
    pub(super) params: Vec<f64>,
}

impl<L: TemplateLikelihood + Clone> ProfiledDifferentiableSession<L> {
    /// Makes the Asimov data set with the parameter of interest at `mu`, and passes it to the
    /// Asimov likelihood.
    pub(super) fn make_asimov(&mut self, mu: f64) -> Result<Asimov, DifferentiableError> {
        let options = self.options_at(Some(mu));
        let params = match self.options.asimov {
            AsimovPoint::Nominal => domain_and_start(&self.model, &options).1,
            AsimovPoint::Fitted => {
                self.fit_on_device(Kind::AsimovPoint, Some(mu))?;
                let start = self.start();
                let warm = warm_start::if_enabled(&mut self.warm_fits.asimov_point, start);
                let best = warm_start::fit(&self.model, &mut self.observed, &options, warm).best().clone();
                require_minimum("the conditional fit", FitTarget::Observed, &best)?;
                best.params
            }
        };
        let mut data = Data { main: vec![0.0; self.model.n_bins()], aux: expected_aux(&self.model, &params) };
        self.asimov.expected(&params, &mut data.main);
        self.asimov.set_data(&data);
        if let Some(device) = &mut self.device {
            device.asimov = Some(data);
        }
        Ok(Asimov { params, mu })
    }

    /// Adds to `by_inputs` (M) the gradient that a function with `derivatives` has through the
    /// Asimov data.
    pub(super) fn through_asimov(
        &mut self,
        asimov: &Asimov,
        derivatives: &AsimovDerivatives,
        by_inputs: &mut [f64],
    ) -> Result<(), DifferentiableError> {
        let (model, memory) = (&self.model, &mut self.memory);
        self.asimov.pull_back(&asimov.params, &derivatives.main, &mut memory.gradient, &mut memory.by_inputs);
        by_inputs.iter_mut().zip(&memory.by_inputs).for_each(|(sum, part)| *sum += part);
        if self.options.asimov == AsimovPoint::Nominal {
            return Ok(());
        }
        let mut rhs = memory.gradient.clone();
        rhs.iter_mut().zip(&derivatives.params).for_each(|(r, derivative)| *r += derivative);
        for ((param, constraint), derivative) in model.constraint_terms().zip(&derivatives.aux) {
            rhs[param] += derivative * constraint.expected_datum().ratio;
        }
        if rhs.iter().all(|&r| r == 0.0) {
            return Ok(());
        }
        let (domain, _) = domain_and_start(&self.model, &self.options_at(Some(asimov.mu)));
        let mut hessian = self.curvature("the conditional fit", FitTarget::Observed, &asimov.params, &domain)?;
        let mut direction = vec![0.0; rhs.len()];
        hessian.solve(&rhs, &mut direction);
        let changes = &mut self.memory.by_inputs;
        self.observed.inputs_along(&asimov.params, &direction, changes);
        by_inputs.iter_mut().zip(changes).for_each(|(sum, change)| *sum -= *change);
        Ok(())
    }

    /// Returns an error if a bin with `is_empty` (B) depends on an input at the parameters of
    /// `asimov`.
    pub(super) fn refuse_empty(&mut self, asimov: &Asimov, is_empty: &[bool]) -> Result<(), DifferentiableError> {
        for bin in (0..is_empty.len()).filter(|&bin| is_empty[bin]) {
            let memory = &mut self.memory;
            memory.other.fill(0.0);
            memory.other[bin] = 1.0;
            self.asimov.pull_back(&asimov.params, &memory.other, &mut memory.gradient, &mut memory.by_inputs);
            if memory.by_inputs.iter().any(|derivative| derivative.abs() > ZERO_COUNT) {
                return Err(DifferentiableError::Empty { place: self.model.place(bin) });
            }
        }
        Ok(())
    }
}

/// Returns whether an expected count is zero.
pub(super) fn is_zero(count: f64) -> bool {
    count.abs() < ZERO_COUNT
}
