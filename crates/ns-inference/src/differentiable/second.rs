//! Second derivatives of minima of the observed data, and of the statistics made of them, by inputs and by the tested value: products with the Hessian.
//!
//! Where x moves along v and μ along w, the free parameters of a minimum follow with θ' = -H⁻¹ (∂²f/∂θ∂x v + ∂²f/∂θ∂μ w), f = -ln L, and what is conditional stays. So the gradient of min_θ f
//! changes by ∂²f/∂x² v + ∂²f/∂x∂θ θ' + ∂²f/∂x∂μ w, and its derivative along μ likewise: one solve with the factorised exact Hessian H between two passes along a direction.

use super::ProfiledDifferentiableSession;
use super::error::{DifferentiableError, FitTarget, finite, fit_name};
use super::statistics::tested;
use crate::hessian::Hessian;
use crate::options::domain_and_start;
use crate::test_statistic::TestStatistic;
use ns_core::TemplateLikelihood;
use ns_core::templates::JointDirection;

/// A solution counts if what it leaves of the right-hand side, measured as -ln L is (½ rᵀH⁻¹r), is a smaller part of it than this: 10⁻⁶ in size.
const MOST_LEFT: f64 = 1e-12;

/// A product by the inputs (M), and by the tested value.
type Product = (Vec<f64>, f64);

/// The direction in which inputs and tested value move.
#[derive(Debug, Clone, Copy)]
pub struct InputDirection<'a> {
    /// Components by the inputs (M).
    pub inputs: &'a [f64],
    /// The component by the tested value.
    pub mu: f64,
}

impl<L: TemplateLikelihood + Clone> ProfiledDifferentiableSession<L> {
    /// The product of the Hessian of the minimum of -ln L by inputs and `mu` with `direction` (M and one; the latter does not count if `mu` is not given): its part by the inputs
    /// is written to `by_inputs` (M), its part by `mu` returned.
    ///
    /// # Errors
    /// If the fit fails, or if nothing says how the minimum moves.
    pub fn profiled_nll_product(
        &mut self,
        mu: Option<f64>,
        direction: InputDirection<'_>,
        by_inputs: &mut [f64],
    ) -> Result<f64, DifferentiableError> {
        let best = self.minimum(mu)?;
        let (product, by_mu) = self.minimum_product(&best.params, mu, direction)?;
        finite("the gradient of the minimum of -ln L", std::iter::once(&by_mu).chain(&product))?;
        by_inputs.copy_from_slice(&product);
        Ok(by_mu)
    }

    /// The same of the statistic of the observed data at `mu` (q₀: at 0, whatever `mu` is, which does not move); zeros where it is constant.
    ///
    /// # Errors
    /// If a fit fails, or if nothing says how a minimum moves.
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
        finite("the gradient of the statistic", std::iter::once(&by_mu).chain(&product))?;
        by_inputs.copy_from_slice(&product);
        Ok(by_mu)
    }

    /// The product for the minimum at `params` (P), where the parameter of interest is fixed if `mu` is given.
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
        let mut follows = vec![0.0; params.len()];
        hessian.solve(&pushed, &mut follows);
        step.iter_mut().zip(&follows).for_each(|(step, follows)| *step -= follows);
        let derivatives = self.change_of_derivatives(params, &step, along_inputs);
        let by_inputs = self.memory.along.by_inputs.iter().map(|change| change.first).collect();
        // Of the free parameters nothing is to be left; that of a fixed one is how its derivative changes.
        let left = weight(&mut hessian, &derivatives);
        let is_small = |pushes: f64| left <= MOST_LEFT * pushes;
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

    /// How strongly parts of a direction push the free parameters, each alone: what adds events, what takes some away, the tested value. Where they cancel all of it pushes by no more
    /// than rounding, and nothing can be small beside that.
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

    /// How ∂f/∂θ (P) changes where parameters move along `step` (P) and inputs along `along_inputs` (M); how ∂f/∂x does is left in the session's memory.
    fn change_of_derivatives(&mut self, params: &[f64], step: &[f64], along_inputs: &[f64]) -> Vec<f64> {
        let along = &mut self.memory.along;
        let direction = JointDirection { params: step, inputs: along_inputs };
        self.observed.hessian_product(params, direction, along);
        along.gradient.iter().map(|change| change.first).collect()
    }
}

/// rᵀH⁻¹r over the free parameters.
fn weight(hessian: &mut Hessian, r: &[f64]) -> f64 {
    let mut solved = vec![0.0; r.len()];
    hessian.solve(r, &mut solved);
    r.iter().zip(&solved).map(|(r, s)| r * s).sum()
}
