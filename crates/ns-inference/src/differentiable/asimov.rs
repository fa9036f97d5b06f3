//! Asimov data as a function of the inputs: directly, since they are expected counts, and through the fit that they are made at.
//!
//! n_A = λ(θ_A, x) and a_A = E[a | θ_A]. If f depends on them with derivatives c = ∂f/∂n_A and e = ∂f/∂a_A, then df/dx = cᵀ ∂λ/∂x + rᵀ dθ_A/dx with r = Jᵀc + (∂a/∂θ)ᵀe, and where θ_A is
//! the conditional minimum on the observed data, rᵀ dθ_A/dx = -uᵀ ∂²(-ln L)/∂θ∂x with u = H⁻¹ r.

use super::error::{DifferentiableError, FitTarget, arrived};
use super::follow;
use super::{Kind, ProfiledDifferentiableSession};
use crate::options::domain_and_start;
use ns_core::expected::expected_aux;
use ns_core::{Data, TemplateLikelihood};

/// An expected count below this is none.
const NOTHING: f64 = 1e-50;

/// Where Asimov data are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AsimovPoint {
    /// At the conditional fit to the observed data, as pyhf does (arXiv:1007.1727): it moves with the inputs.
    #[default]
    Fitted,
    /// At the starting values, whatever was observed: for analyses that are not unblinded. It stays where it is.
    Nominal,
}

/// The Asimov data set, and the parameters (P) that it is made at.
#[derive(Debug)]
pub(super) struct Asimov {
    pub(super) params: Vec<f64>,
    pub(super) mu: f64,
}

/// What depends on an Asimov data set: derivatives with respect to the main bins (B), to the auxiliary data (K) and to the point itself (P).
pub(super) struct AsimovDerivatives {
    pub(super) main: Vec<f64>,
    pub(super) aux: Vec<f64>,
    pub(super) params: Vec<f64>,
}

impl<L: TemplateLikelihood + Clone> ProfiledDifferentiableSession<L> {
    /// Makes the Asimov data set for the parameter of interest at `mu`, and gives it to the Asimov likelihood.
    pub(super) fn make_asimov(&mut self, mu: f64) -> Result<Asimov, DifferentiableError> {
        let options = self.options_at(Some(mu));
        let params = match self.options.asimov {
            AsimovPoint::Nominal => domain_and_start(&self.model, &options).1,
            AsimovPoint::Fitted => {
                self.ask_device(Kind::AsimovPoint, Some(mu))?;
                let start = self.start();
                let warm = follow::wanted(&mut self.warm_fits.asimov_point, start);
                let best = follow::fit(&self.model, &mut self.observed, &options, warm).best().clone();
                arrived("the conditional fit", FitTarget::Observed, &best)?;
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

    /// Adds to `by_inputs` (M) the derivative of what has `derivatives` with respect to the Asimov data.
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
        let layout = &model.layout;
        let scales = model.values(layout.constraint_scale).iter().zip(model.table(layout.constraint_is_poisson));
        for ((&param, (&scale, &poisson)), derivative) in
            model.table(layout.constraint_param).iter().zip(scales).zip(&derivatives.aux)
        {
            rhs[param as usize] += derivative * if poisson == 1 { scale } else { 1.0 };
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

    /// Fails if a bin that expects nothing at `asimov` would expect something with other inputs: bins are those of `is_empty` (B).
    pub(super) fn refuse_empty(&mut self, asimov: &Asimov, is_empty: &[bool]) -> Result<(), DifferentiableError> {
        for bin in (0..is_empty.len()).filter(|&bin| is_empty[bin]) {
            let memory = &mut self.memory;
            memory.other.fill(0.0);
            memory.other[bin] = 1.0;
            self.asimov.pull_back(&asimov.params, &memory.other, &mut memory.gradient, &mut memory.by_inputs);
            if memory.by_inputs.iter().any(|derivative| derivative.abs() > NOTHING) {
                return Err(DifferentiableError::Empty { place: self.model.place(bin) });
            }
        }
        Ok(())
    }
}

/// Whether a count is none.
pub(super) fn is_nothing(count: f64) -> bool {
    count.abs() < NOTHING
}
