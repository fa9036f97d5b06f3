//! Computes products with the Hessians of minima of the observed data, and of statistics that
//! consist of them, with respect to the inputs and the tested value.
//!
//! If x moves along v and μ along w, the free parameters of a minimum move along θ' = -H⁻¹
//! (∂²f/∂θ∂x v + ∂²f/∂θ∂μ w) with f = -ln L, while fixed parameters stay. The gradient of min_θ f
//! then changes by ∂²f/∂x² v + ∂²f/∂x∂θ θ' + ∂²f/∂x∂μ w, and its derivative with respect to μ
//! likewise: one solve with the factorised exact Hessian H between two passes along a direction.

use super::ProfiledDifferentiableSession;
use super::error::{DifferentiableError, FitTarget, fit_name, require_finite};
use super::statistics::tested;
use crate::hessian::Hessian;
use crate::options::domain_and_start;
use crate::test_statistic::TestStatistic;
use ns_core::TemplateLikelihood;
use ns_core::templates::JointDirection;

/// A solution is accepted if its residual, measured by rᵀH⁻¹r, is below this fraction of the
/// right-hand side: 10⁻⁶ in norm.
const MAX_RESIDUAL: f64 = 1e-12;

/// The components of a product that belong to the inputs (M) and to the tested value.
type Product = (Vec<f64>, f64);

/// A direction in the space of inputs and tested value.
#[derive(Debug, Clone, Copy)]
pub struct InputDirection<'a> {
    /// The components along the inputs (M).
    pub inputs: &'a [f64],
    /// The component along the tested value.
    pub mu: f64,
}

impl<L: TemplateLikelihood + Clone> ProfiledDifferentiableSession<L> {
    /// Computes the product of the Hessian of the minimum of -ln L with respect to the inputs and
    /// `mu` with `direction`, whose `mu` is ignored if `mu` is not given. Writes the components
    /// along the inputs to `by_inputs` (M), and returns the component along `mu`.
    ///
    /// # Errors
    /// If the fit fails, or if the derivative of the minimum is unknown.
    pub fn profiled_nll_product(
        &mut self,
        mu: Option<f64>,
        direction: InputDirection<'_>,
        by_inputs: &mut [f64],
    ) -> Result<f64, DifferentiableError> {
        let best = self.minimum(mu)?;
        let (product, by_mu) = self.minimum_product(&best.params, mu, direction)?;
        require_finite("the gradient of the minimum of -ln L", std::iter::once(&by_mu).chain(&product))?;
        by_inputs.copy_from_slice(&product);
        Ok(by_mu)
    }

    /// Computes the product with the Hessian of the statistic of the observed data at `mu`, as
    /// [`Self::profiled_nll_product`] does. q₀ is tested at 0 for any `mu` and does not depend on
    /// it. Where the statistic is constant, the product is zero.
    ///
    /// # Errors
    /// If a fit fails, or if the derivative of a minimum is unknown.
    pub fn statistic_product(
        &mut self,
        statistic: TestStatistic,
        mu: f64,
        direction: InputDirection<'_>,
        by_inputs: &mut [f64],
    ) -> Result<f64, DifferentiableError> {
        let mu = tested(statistic, mu);
        let compared = self.compare_observed(statistic, mu)?;
        if compared.is_constant {
            by_inputs.fill(0.0);
            return Ok(0.0);
        }
        let along_mu = if statistic == TestStatistic::Q0 { 0.0 } else { direction.mu };
        let (conditional, conditional_by_mu) =
            self.minimum_product(&compared.conditional, Some(mu), InputDirection { mu: along_mu, ..direction })?;
        let (free, _) = self.minimum_product(&compared.free, None, InputDirection { mu: 0.0, ..direction })?;
        let product: Vec<f64> =
            conditional.iter().zip(&free).map(|(conditional, free)| 2.0 * (conditional - free)).collect();
        let by_mu = if statistic == TestStatistic::Q0 { 0.0 } else { 2.0 * conditional_by_mu };
        require_finite("the gradient of the statistic", std::iter::once(&by_mu).chain(&product))?;
        by_inputs.copy_from_slice(&product);
        Ok(by_mu)
    }

    /// Returns the product for the minimum at `params` (P), with the parameter of interest fixed if
    /// `mu` is given.
    fn minimum_product(
        &mut self,
        params: &[f64],
        mu: Option<f64>,
        InputDirection { inputs: along_inputs, mu: along_mu }: InputDirection<'_>,
    ) -> Result<Product, DifferentiableError> {
        let (domain, _) = domain_and_start(&self.model, &self.options_at(mu));
        let mut hessian = self.curvature(fit_name(mu), FitTarget::Observed, params, &domain)?;
        let mut step = vec![0.0; params.len()];
        if mu.is_some() {
            step[self.poi] = along_mu;
        }
        let pushed = self.change_of_derivatives(params, &step, along_inputs);
        let mut response = vec![0.0; params.len()];
        hessian.solve(&pushed, &mut response);
        step.iter_mut().zip(&response).for_each(|(step, response)| *step -= response);
        let derivatives = self.change_of_derivatives(params, &step, along_inputs);
        let by_inputs = self.memory.along.by_inputs.iter().map(|change| change.first).collect();
        // The residual of the free parameters must vanish; that of a fixed parameter is the change
        // of its derivative.
        let residual = weight(&mut hessian, &derivatives);
        let is_small = |pushes: f64| residual <= MAX_RESIDUAL * pushes;
        if !is_small(weight(&mut hessian, &pushed)) {
            let parts = self.pushes_of_parts(
                &mut hessian,
                params,
                InputDirection { inputs: along_inputs, mu: mu.map_or(0.0, |_| along_mu) },
            );
            if !parts.into_iter().any(is_small) {
                return Err(DifferentiableError::Curvature { fit: fit_name(mu), of: FitTarget::Observed });
            }
        }
        Ok((by_inputs, if mu.is_some() { derivatives[self.poi] } else { 0.0 }))
    }

    /// Returns how strongly each part of a direction pushes the free parameters on its own: the
    /// inputs that grow, the inputs that shrink, and the tested value. Where the parts cancel,
    /// their sum is only rounding, and no residual is small compared with it.
    fn pushes_of_parts(
        &mut self,
        hessian: &mut Hessian,
        params: &[f64],
        InputDirection { inputs: along_inputs, mu: along_mu }: InputDirection<'_>,
    ) -> [f64; 3] {
        let (still, nothing) = (vec![0.0; params.len()], vec![0.0; along_inputs.len()]);
        let mut tested = still.clone();
        tested[self.poi] = along_mu;
        let more: Vec<f64> = along_inputs.iter().map(|v| v.max(0.0)).collect();
        let less: Vec<f64> = along_inputs.iter().map(|v| v.min(0.0)).collect();
        [(&still, &more), (&still, &less), (&tested, &nothing)]
            .map(|(step, along)| weight(hessian, &self.change_of_derivatives(params, step, along)))
    }

    /// Returns the change of ∂f/∂θ (P) where parameters move along `step` (P) and inputs along
    /// `along_inputs` (M). Leaves the change of ∂f/∂x in the session's memory.
    fn change_of_derivatives(&mut self, params: &[f64], step: &[f64], along_inputs: &[f64]) -> Vec<f64> {
        let along = &mut self.memory.along;
        let direction = JointDirection { params: step, inputs: along_inputs };
        self.observed.hessian_product(params, direction, along);
        along.gradient.iter().map(|change| change.first).collect()
    }
}

/// Returns rᵀH⁻¹r over the free parameters.
fn weight(hessian: &mut Hessian, r: &[f64]) -> f64 {
    let mut solved = vec![0.0; r.len()];
    hessian.solve(r, &mut solved);
    r.iter().zip(&solved).map(|(r, s)| r * s).sum()
}
