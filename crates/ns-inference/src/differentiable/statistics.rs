//! Computes q of the observed and of the Asimov data set, and the p-values and significances that
//! follow from them.
//!
//! dq/dx = 2 [∂f/∂x at the conditional minimum - ∂f/∂x at the free one] with f = -ln L. For the
//! Asimov data set, f changes with the data too: ∂(f(θ₁) - f(θ₂))/∂n = ln(λ(θ₂)/λ(θ₁)), and for a
//! constraint term (θ₂ - θ₁)/σ² or ln(θ₂/θ₁).

use super::asimov::{Asimov, AsimovDerivatives, is_zero};
use super::error::{DifferentiableError, FitTarget, require_finite, require_minimum};
use super::warm_start::DataSetFits;
use super::{Kind, ProfiledDifferentiableSession};
use crate::asymptotic::{BAND, PValues, expected_p_value_derivatives, p_value_derivatives};
use crate::search::{falls_below, told_apart};
use crate::test_statistic::TestStatistic;
use ns_core::{Constraint, TemplateLikelihood};

/// The number of CLs values: observed, and expected at -2, -1, 0, +1, +2 standard deviations of the
/// background.
pub const CLS: usize = 6;

/// A statistic of the observed and of the Asimov data set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestValues {
    /// The statistic.
    pub statistic: TestStatistic,
    /// q of the observed data.
    pub q: f64,
    /// q_A of the Asimov data set.
    pub q_asimov: f64,
    /// dq/dμ.
    pub q_by_mu: f64,
    /// dq_A/dμ.
    pub q_asimov_by_mu: f64,
}

impl TestValues {
    /// Returns CLs, observed and expected, each with its derivatives with respect to q and to q_A.
    /// For q₀, CLs is the p-value of the background.
    #[must_use]
    pub fn cls(&self) -> [[f64; 3]; CLS] {
        self.each(|p| p.cls)
    }

    /// Returns CL_s+b in the same form.
    #[must_use]
    pub fn clsb(&self) -> [[f64; 3]; CLS] {
        self.each(|p| p.clsb)
    }

    /// Returns CL_b in the same form.
    #[must_use]
    pub fn clb(&self) -> [[f64; 3]; CLS] {
        self.each(|p| p.clb)
    }

    fn each(&self, of: impl Fn(&PValues) -> f64) -> [[f64; 3]; CLS] {
        let mut all = [[0.0; 3]; CLS];
        all[0] = p_value_derivatives(self.statistic, self.q, self.q_asimov).each_ref().map(&of);
        for (entry, n) in all[1..].iter_mut().zip(BAND) {
            let [value, derivative] =
                expected_p_value_derivatives(self.statistic, -n, self.q_asimov).each_ref().map(&of);
            *entry = [value, 0.0, derivative];
        }
        all
    }
}

/// A statistic with the two points (P each) that it compares.
pub(super) struct StatisticPoints {
    pub(super) q: f64,
    /// dq/dμ.
    pub(super) by_mu: f64,
    pub(super) conditional: Vec<f64>,
    pub(super) free: Vec<f64>,
    /// Whether the statistic is constant here.
    pub(super) is_constant: bool,
}

impl<L: TemplateLikelihood + Clone> ProfiledDifferentiableSession<L> {
    /// Returns the statistic of the observed data at `mu` and dq/dμ, and writes its gradient to
    /// `by_inputs` (M). q₀ is tested at 0 for any `mu`.
    ///
    /// # Errors
    /// If a fit fails.
    pub fn statistic(
        &mut self,
        statistic: TestStatistic,
        mu: f64,
        by_inputs: Option<&mut [f64]>,
    ) -> Result<[f64; 2], DifferentiableError> {
        let compared = self.compare_observed(statistic, tested(statistic, mu))?;
        if let Some(by_inputs) = by_inputs {
            self.difference(FitTarget::Observed, &compared, by_inputs)?;
        }
        Ok([compared.q, compared.by_mu])
    }

    /// Returns the statistic of the Asimov data set at `mu` and dq_A/dμ, and writes its gradient to
    /// `by_inputs` (M). q₀ is tested at 0 for any `mu`.
    ///
    /// # Errors
    /// If a fit fails, or if the statistic has no derivative.
    pub fn asimov_statistic(
        &mut self,
        statistic: TestStatistic,
        mu: f64,
        by_inputs: Option<&mut [f64]>,
    ) -> Result<[f64; 2], DifferentiableError> {
        let mu = tested(statistic, mu);
        let asimov = self.make_asimov(statistic.asimov_mu())?;
        self.fit_on_device(Kind::Asimov, Some(mu))?;
        let compared = self.compare_asimov(&asimov, statistic, mu)?;
        if let Some(by_inputs) = by_inputs {
            self.asimov_gradient(&asimov, &compared, by_inputs)?;
        }
        Ok([compared.q, compared.by_mu])
    }

    /// Returns the statistics of the observed and of the Asimov data set, and writes their
    /// gradients to `by_inputs` (M each).
    ///
    /// # Errors
    /// Those of [`Self::statistic`] and [`Self::asimov_statistic`].
    pub fn test(
        &mut self,
        statistic: TestStatistic,
        mu: f64,
        by_inputs: Option<[&mut [f64]; 2]>,
    ) -> Result<TestValues, DifferentiableError> {
        let (observed, asimov) = match by_inputs {
            None => (None, None),
            Some([observed, asimov]) => (Some(observed), Some(asimov)),
        };
        let [q, q_by_mu] = self.statistic(statistic, mu, observed)?;
        let [q_asimov, q_asimov_by_mu] = self.asimov_statistic(statistic, mu, asimov)?;
        Ok(TestValues { statistic, q, q_asimov, q_by_mu, q_asimov_by_mu })
    }

    pub(super) fn compare_observed(
        &mut self,
        statistic: TestStatistic,
        mu: f64,
    ) -> Result<StatisticPoints, DifferentiableError> {
        let poi = self.poi;
        self.fit_on_device(Kind::Free, None)?;
        self.fit_on_device(Kind::Conditional, Some(mu))?;
        compare(&mut self.observed_fits(), statistic, poi, mu, FitTarget::Observed)
    }

    pub(super) fn compare_asimov(
        &mut self,
        asimov: &Asimov,
        statistic: TestStatistic,
        mu: f64,
    ) -> Result<StatisticPoints, DifferentiableError> {
        let poi = self.poi;
        compare(&mut self.asimov_fits(asimov), statistic, poi, mu, FitTarget::Asimov)
    }

    /// Writes 2 [∂f/∂x at the conditional minimum - ∂f/∂x at the free one], for fixed data, to
    /// `by_inputs` (M).
    pub(super) fn difference(
        &mut self,
        of: FitTarget,
        compared: &StatisticPoints,
        by_inputs: &mut [f64],
    ) -> Result<(), DifferentiableError> {
        if compared.is_constant {
            by_inputs.fill(0.0);
            return Ok(());
        }
        let likelihood = match of {
            FitTarget::Observed => &mut self.observed,
            FitTarget::Asimov => &mut self.asimov,
        };
        let memory = &mut self.memory;
        // The gradients are zero where -ln L is infinite.
        let values = [
            likelihood.nll_and_gradients(&compared.conditional, &mut memory.gradient, by_inputs),
            likelihood.nll_and_gradients(&compared.free, &mut memory.gradient, &mut memory.by_inputs),
        ];
        by_inputs
            .iter_mut()
            .zip(&memory.by_inputs)
            .for_each(|(derivative, free)| *derivative = 2.0 * (*derivative - free));
        require_finite("the statistic", values.iter().chain(&*by_inputs))
    }

    /// Writes the gradient of the Asimov data set's statistic to `by_inputs` (M).
    pub(super) fn asimov_gradient(
        &mut self,
        asimov: &Asimov,
        compared: &StatisticPoints,
        by_inputs: &mut [f64],
    ) -> Result<(), DifferentiableError> {
        self.difference(FitTarget::Asimov, compared, by_inputs)?;
        if compared.is_constant {
            return Ok(());
        }
        let memory = &mut self.memory;
        self.asimov.expected(&compared.free, &mut memory.lambda);
        self.asimov.expected(&compared.conditional, &mut memory.other);
        let pairs = || memory.lambda.iter().zip(&memory.other);
        let is_empty: Vec<bool> = pairs().map(|(&free, &conditional)| is_zero(free) || is_zero(conditional)).collect();
        let log_ratio = |(&free, &conditional): (&f64, &f64)| {
            if is_zero(free) || is_zero(conditional) { 0.0 } else { 2.0 * (free / conditional).ln() }
        };
        let main = pairs().map(log_ratio).collect();
        let aux_derivative = |(param, constraint): (usize, Constraint)| {
            let datum = constraint.expected_datum().at(asimov.params[param]);
            2.0 * constraint.datum_derivative(datum, compared.conditional[param], compared.free[param])
        };
        let aux = self.model.constraint_terms().map(aux_derivative).collect();
        let derivatives = AsimovDerivatives { main, aux, params: vec![0.0; self.model.n_params()] };
        self.refuse_empty(asimov, &is_empty)?;
        self.through_asimov(asimov, &derivatives, by_inputs)?;
        require_finite("the statistic of the Asimov data set", &*by_inputs)
    }
}

/// Returns the value at which `statistic` is tested for `mu`: 0 for q₀, which tests the background.
pub(super) fn tested(statistic: TestStatistic, mu: f64) -> f64 {
    if statistic == TestStatistic::Q0 { 0.0 } else { mu }
}

/// Returns the statistic at `mu` of the data that `fits` belongs to.
pub(super) fn compare<L: TemplateLikelihood>(
    fits: &mut DataSetFits<'_, L>,
    statistic: TestStatistic,
    poi: usize,
    mu: f64,
    of: FitTarget,
) -> Result<StatisticPoints, DifferentiableError> {
    require_minimum("the free fit", of, fits.free())?;
    let conditional = fits.checked_at(mu);
    require_minimum("the conditional fit", of, &conditional)?;
    let best = fits.free();
    require_minimum("the free fit", of, best)?;
    if falls_below(conditional.nll - best.nll, best.nll) {
        return Err(DifferentiableError::Below { of });
    }
    let mu_hat = best.params[poi];
    let at = TestedPoi { mu, mu_hat, is_at_end: fits.domain().bound_at(poi, mu_hat).is_some() };
    let q = compared_value(statistic, &at, conditional.nll, best.nll);
    let is_constant = q == 0.0;
    let by_mu = if is_constant || statistic == TestStatistic::Q0 { 0.0 } else { 2.0 * conditional.gradient[poi] };
    Ok(StatisticPoints { q, by_mu, free: best.params.clone(), conditional: conditional.params, is_constant })
}

/// A tested value of the parameter of interest, and its best fit.
pub(super) struct TestedPoi {
    pub(super) mu: f64,
    pub(super) mu_hat: f64,
    /// Whether the best fit is at an end of its range.
    pub(super) is_at_end: bool,
}

/// Returns the statistic at `tested` from -ln L at the conditional minimum and at the free one; 0
/// where it is constant.
pub(super) fn compared_value(statistic: TestStatistic, tested: &TestedPoi, conditional: f64, free: f64) -> f64 {
    let &TestedPoi { mu, mu_hat, is_at_end } = tested;
    // If the best fit is at the tested value, the difference is only rounding.
    if is_at_end && (mu_hat - mu).abs() <= 1e-8 * mu.abs().max(1.0) {
        return 0.0;
    }
    statistic.value(mu, mu_hat, told_apart(conditional - free, free))
}
