//! Computes the standard deviation of the parameter of interest as a function of the inputs.
//!
//! σ² = V = (H⁻¹)_μμ, so dV = -vᵀ dH v with v = H⁻¹ e_μ over the free parameters. vᵀHv changes with
//! the inputs at fixed θ (the second derivative of ∂f/∂x along v), with θ̂ (t = second derivative
//! of ∂f/∂θ along v, contracted with dθ̂/dx), and for an Asimov data set with its data.

use super::asimov::{Asimov, AsimovDerivatives, is_zero};
use super::error::{AT_END, DifferentiableError, FitTarget, require_finite, require_minimum};
use super::{Kind, ProfiledDifferentiableSession};
use crate::hessian::Hessian;
use crate::options::domain_and_start;
use ns_core::{Constraint, TemplateLikelihood};

impl<L: TemplateLikelihood + Clone> ProfiledDifferentiableSession<L> {
    /// Returns σ(μ̂) at the best fit to the observed data, from the exact Hessian, and writes its
    /// gradient to `by_inputs` (M).
    ///
    /// # Errors
    /// If the fit fails, or if the best fit is at an end of the parameter's range.
    pub fn sigma(&mut self, by_inputs: Option<&mut [f64]>) -> Result<f64, DifferentiableError> {
        let poi = self.poi;
        self.fit_on_device(Kind::Free, None)?;
        let fits = self.observed_fits();
        let (best, domain) = (fits.free().clone(), fits.domain().clone());
        require_minimum("the free fit", FitTarget::Observed, &best)?;
        let mut hessian = self.curvature("the free fit", FitTarget::Observed, &best.params, &domain)?;
        let sigma = self.sigma_of(&hessian)?;
        let Some(by_inputs) = by_inputs else { return Ok(sigma) };
        let mut column = vec![0.0; best.params.len()];
        hessian.covariance_column(poi, &mut column);
        let along = &mut self.memory.along;
        self.observed.along(&best.params, &column, along);
        by_inputs.iter_mut().zip(&along.by_inputs).for_each(|(derivative, change)| *derivative = change.second);
        let third: Vec<f64> = along.gradient.iter().map(|change| change.second).collect();
        // dθ̂/dx = -H⁻¹ ∂²f/∂θ∂x
        hessian.solve(&third, &mut column);
        let changes = &mut self.memory.by_inputs;
        self.observed.inputs_along(&best.params, &column, changes);
        by_inputs.iter_mut().zip(changes).for_each(|(derivative, change)| *derivative -= *change);
        by_inputs.iter_mut().for_each(|derivative| *derivative /= -2.0 * sigma);
        require_finite("σ", &*by_inputs)?;
        Ok(sigma)
    }

    /// Returns σ(μ̂) of the Asimov data set with the parameter of interest at `mu`, ignoring its
    /// range, and writes its gradient to `by_inputs` (M).
    ///
    /// # Errors
    /// If a fit fails.
    pub fn asimov_sigma(&mut self, mu: f64, by_inputs: Option<&mut [f64]>) -> Result<f64, DifferentiableError> {
        let asimov = self.make_asimov(mu)?;
        let mut hessian = self.asimov_curvature(&asimov)?;
        let sigma = self.sigma_of(&hessian)?;
        let Some(by_inputs) = by_inputs else { return Ok(sigma) };
        let mut column = vec![0.0; asimov.params.len()];
        hessian.covariance_column(self.poi, &mut column);
        let along = &mut self.memory.along;
        self.asimov.along(&asimov.params, &column, along);
        by_inputs.iter_mut().zip(&along.by_inputs).for_each(|(derivative, change)| *derivative = change.second);
        // -ln L contains -n ln λ of each bin: a count contributes the second derivative of -ln λ
        // along v to vᵀHv.
        let of_bin = |lambda: &ns_core::taylor::Taylor| {
            let rate = lambda.first / lambda.value;
            if is_zero(lambda.value) { 0.0 } else { rate * rate - lambda.second / lambda.value }
        };
        let main = along.lambda.iter().map(of_bin).collect();
        let is_empty: Vec<bool> = along.lambda.iter().map(|lambda| is_zero(lambda.value)).collect();
        let params: Vec<f64> = along.gradient.iter().map(|change| change.second).collect();
        let of_aux = |(param, constraint): (usize, Constraint)| {
            let theta = asimov.params[param];
            constraint.datum_curvature(constraint.expected_datum().at(theta), theta, column[param])
        };
        let aux = self.model.constraint_terms().map(of_aux).collect();
        self.refuse_empty(&asimov, &is_empty)?;
        self.through_asimov(&asimov, &AsimovDerivatives { main, aux, params }, by_inputs)?;
        by_inputs.iter_mut().for_each(|derivative| *derivative /= -2.0 * sigma);
        require_finite("σ", &*by_inputs)?;
        Ok(sigma)
    }

    /// Returns the Hessian of the Asimov data set at its own parameters, with the parameter of
    /// interest free and its range ignored.
    pub(super) fn asimov_curvature(&mut self, asimov: &Asimov) -> Result<Hessian, DifferentiableError> {
        let (mut domain, _) = domain_and_start(&self.model, &self.options.fit);
        (domain.lower[self.poi], domain.upper[self.poi]) = (f64::NEG_INFINITY, f64::INFINITY);
        self.curvature("the best fit", FitTarget::Asimov, &asimov.params, &domain)
    }

    fn sigma_of(&self, hessian: &Hessian) -> Result<f64, DifferentiableError> {
        let variance = hessian.variance(self.poi);
        let reason = if !hessian.free[self.poi] {
            AT_END
        } else if hessian.determines(self.poi) {
            return Ok(variance.sqrt());
        } else {
            "the data do not determine it"
        };
        Err(DifferentiableError::NoUncertainty { parameter: self.model.parameters.names[self.poi].clone(), reason })
    }
}
