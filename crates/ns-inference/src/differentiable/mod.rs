//! Differentiates profiled test statistics and limits with respect to templates, to train networks
//! on them.
//!
//! The values are those of `hypotest` and `limit`. Their derivatives with respect to the inputs x
//! (`ns_core::templates`) are exact, not finite differences:
//! - of a minimum, by the envelope theorem: d min_θ f/dx = ∂f/∂x at the minimum, whether or not
//!   parameters are at their bounds;
//! - of quantities that depend on the position of a minimum (Asimov data, which are made at a
//!   conditional fit; σ), by implicit differentiation: dθ̂/dx = -H⁻¹ ∂²f/∂θ∂x over the parameters
//!   that are neither fixed nor at a bound nor in the corner of a kink. The adjoint form needs one
//!   solve with the factorised exact Hessian and one pass along the solution;
//! - of a limit, by implicit differentiation of CLs(μ, x) = α;
//! - of the gradient of a minimum, again by implicit differentiation: products with its Hessian
//!   with respect to the inputs and the tested value (`second`).
//!
//! A statistic has gradient 0 where it is constant: q₀ with μ̂ ≤ 0, q_μ with μ̂ ≥ μ. A fit that
//! fails returns an error, never a gradient.
//!
//! Legend: M inputs, P parameters, B bins, K auxiliary data.

mod asimov;
mod batch;
mod corners;
mod device;
mod error;
mod limit;
mod points;
mod second;
mod sigma;
mod statistics;
mod warm_start;

pub use asimov::AsimovPoint;
pub use batch::{BatchMinimum, BatchStatistic};
pub use error::{DifferentiableError, FitTarget};
pub use limit::LimitKind;
pub use points::{BatchPoints, BatchValues, InvalidInputs};
pub use second::InputDirection;
pub use statistics::{CLS, TestValues};
pub use warm_start::FitStart;

use crate::hessian::Hessian;
use crate::limit::LimitOptions;
use crate::minimize::{Domain, Minimum};
use crate::options::{FitOptions, domain_and_start};
use crate::profile::Profiler;
use crate::search::Candidates;
use asimov::Asimov;
use device::SessionDevice;
use error::{fit_name, require_finite, require_minimum};
use ns_core::batch::TemplateMinimizer;
use ns_core::nonlinearity::Nonlinearity;
use ns_core::templates::{InputError, JointDirection, LineExpansion};
use ns_core::{Data, Inputs, Model, TemplateLikelihood};
use warm_start::{DataSetFits, WarmStartedFit};

/// Options of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DifferentiableOptions {
    /// Options of the fits. Uncertainties and intervals are ignored.
    pub fit: FitOptions,
    /// The point at which Asimov data are made.
    pub asimov: AsimovPoint,
    /// The point at which fits start.
    pub start: FitStart,
}

/// A model with variable templates, its observed and Asimov data, and the fits to both.
#[derive(Debug)]
pub struct ProfiledDifferentiableSession<L> {
    model: Model,
    inputs: Inputs,
    observed: L,
    asimov: L,
    options: DifferentiableOptions,
    poi: usize,
    memory: Memory,
    warm_fits: WarmStartedFits,
    device: Option<SessionDevice>,
    /// Likelihoods of the observed data, one for each thread that evaluates batches.
    evaluators: Vec<L>,
    /// The most recent limits with their options and kinds. With warm starts, the search for a
    /// limit with the same options and of the same kind starts there.
    last_limits: Vec<(LimitOptions, LimitKind, f64)>,
    /// Whether the model's nonlinearity has been computed for the current inputs.
    is_nonlinearity_current: bool,
}

/// The state that each kind of fit starts from.
#[derive(Debug, Default)]
struct WarmStartedFits {
    /// Fits to the observed data without a tested value.
    free: WarmStartedFit,
    /// Fits to the observed data with the parameter of interest fixed at a tested value.
    conditional: WarmStartedFit,
    /// Fits to the observed data at which the Asimov data set is made.
    asimov_point: WarmStartedFit,
    /// Fits to the Asimov data set with the parameter of interest fixed at a tested value.
    asimov: WarmStartedFit,
}

/// Kinds of fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Free,
    Conditional,
    AsimovPoint,
    Asimov,
}

/// Buffers for gradients (P and M) and yields (B), reused from call to call.
#[derive(Debug, Default)]
struct Memory {
    gradient: Vec<f64>,
    by_inputs: Vec<f64>,
    lambda: Vec<f64>,
    other: Vec<f64>,
    along: LineExpansion,
}

impl<L: TemplateLikelihood + Clone> ProfiledDifferentiableSession<L> {
    /// Creates a session of `model` with the parameter of interest `poi`. `likelihood` belongs to
    /// the observed data and has the model's own inputs.
    pub fn new(model: &Model, likelihood: L, poi: usize, options: DifferentiableOptions) -> Self {
        let inputs = likelihood.inputs().clone();
        let memory = Memory {
            gradient: vec![0.0; model.n_params()],
            by_inputs: vec![0.0; inputs.len()],
            lambda: vec![0.0; model.n_bins()],
            other: vec![0.0; model.n_bins()],
            along: LineExpansion::default(),
        };
        let asimov = likelihood.clone();
        Self {
            model: model.clone(),
            inputs,
            observed: likelihood,
            asimov,
            options,
            poi,
            memory,
            warm_fits: WarmStartedFits::default(),
            device: None,
            evaluators: Vec::new(),
            last_limits: Vec::new(),
            is_nonlinearity_current: true,
        }
    }

    /// Returns this session with a device for fits to `observed`, which must be the observed data,
    /// and to Asimov data: free fits, fits at which Asimov data are made, and conditional fits at
    /// values known in advance. The host continues from the minima of the device, and does the fits
    /// in the search for a limit. With [`FitStart::Initial`], [`Self::set_inputs`] then discards
    /// all earlier minima.
    #[must_use]
    pub fn on_device(mut self, minimizer: Box<dyn TemplateMinimizer>, observed: Data) -> Self {
        self.device = Some(SessionDevice::new(minimizer, observed));
        self
    }

    /// Returns how many fits converged on the device.
    #[must_use]
    pub fn n_device_fits(&self) -> u64 {
        self.device.as_ref().map_or(0, |device| device.n_fits)
    }

    /// Returns which numbers are the inputs (M).
    #[must_use]
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// Returns the model with the current inputs. Its nonlinearity is that of the last fit.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Replaces the inputs by `values` (M).
    ///
    /// # Errors
    /// If a value is not valid for a template.
    pub fn set_inputs(&mut self, values: &[f64]) -> Result<(), InputError> {
        self.inputs.check(values)?;
        self.inputs.apply(values, &mut self.model);
        self.is_nonlinearity_current = false;
        self.observed.set_inputs(values);
        self.asimov.set_inputs(values);
        if let Some(device) = &mut self.device {
            device.is_current = false;
            if self.options.start == FitStart::Initial {
                // The host continues only from the device's fits with the current inputs.
                self.warm_fits = WarmStartedFits::default();
            }
        }
        Ok(())
    }

    /// Updates the model's nonlinearity, which indicates where minima may be hidden, if the inputs
    /// have changed since the last fit.
    fn update_nonlinearity(&mut self) {
        if !std::mem::replace(&mut self.is_nonlinearity_current, true) {
            self.model.nonlinearity = Nonlinearity::of(&self.model);
        }
    }

    /// Returns how fits on the host start: from the minima of the device if there is one.
    fn start(&self) -> FitStart {
        if self.device.is_some() { FitStart::Warm } else { self.options.start }
    }

    /// Returns -ln L of the observed data at `params` (P), and writes its gradients with respect to
    /// the parameters (P) and the inputs (M). Outside the domain, -ln L is +∞ and the gradients are
    /// zero.
    pub fn nll(&mut self, params: &[f64], gradient: &mut [f64], by_inputs: &mut [f64]) -> f64 {
        self.observed.nll_and_gradients(params, gradient, by_inputs)
    }

    /// Writes the product of the Hessian of -ln L with respect to parameters and inputs with
    /// `direction` (P and M) to `out`: the directional derivatives of both gradients.
    pub fn hessian_product(&mut self, params: &[f64], direction: JointDirection<'_>, out: &mut LineExpansion) {
        self.observed.hessian_product(params, direction, out);
    }

    /// Returns the minimum of -ln L, with the parameter of interest fixed at `mu` if given, and its
    /// derivative with respect to `mu` (0 if not given). Writes its gradient to `by_inputs` (M).
    ///
    /// # Errors
    /// If the fit fails.
    pub fn profiled_nll(
        &mut self,
        mu: Option<f64>,
        by_inputs: Option<&mut [f64]>,
    ) -> Result<[f64; 2], DifferentiableError> {
        let best = self.minimum(mu)?;
        if let Some(by_inputs) = by_inputs {
            let value = self.observed.nll_and_gradients(&best.params, &mut self.memory.gradient, by_inputs);
            require_finite("the minimum of -ln L", std::iter::once(&value).chain(&*by_inputs))?;
        }
        Ok([best.nll, if mu.is_some() { best.gradient[self.poi] } else { 0.0 }])
    }

    /// Returns the minimum of the fit to the observed data, with the parameter of interest fixed at
    /// `mu` if given.
    fn minimum(&mut self, mu: Option<f64>) -> Result<Minimum, DifferentiableError> {
        let options = self.options_at(mu);
        self.fit_on_device(if mu.is_some() { Kind::Conditional } else { Kind::Free }, mu)?;
        let start = self.start();
        let warm = if mu.is_some() { &mut self.warm_fits.conditional } else { &mut self.warm_fits.free };
        let warm = warm_start::if_enabled(warm, start);
        let best = warm_start::fit(&self.model, &mut self.observed, &options, warm).best().clone();
        require_minimum(fit_name(mu), FitTarget::Observed, &best)?;
        Ok(best)
    }

    /// Fits on the device, with the parameter of interest fixed at `mu` if given, so that the
    /// host's fit starts from the result. Does nothing without a device. Models that may hide
    /// minima are not fitted on the device, and the host's fit then starts from the starting
    /// values.
    fn fit_on_device(&mut self, kind: Kind, mu: Option<f64>) -> Result<(), DifferentiableError> {
        self.update_nonlinearity();
        let Some(device) = self.device.as_mut().filter(|_| self.options.fit.multi_start.is_none()) else {
            return Ok(());
        };
        let mut options = self.options.fit.clone();
        options.fixed.extend(mu.map(|mu| (self.poi, mu)));
        let (domain, start) = domain_and_start(&self.model, &options);
        let explores_widely = Candidates::of(&self.model).explore_widely(&domain);
        let found =
            if explores_widely { None } else { device.fit(&self.model, kind == Kind::Asimov, &domain, &start)? };
        let warm = match kind {
            Kind::Free => &mut self.warm_fits.free,
            Kind::Conditional => &mut self.warm_fits.conditional,
            Kind::AsimovPoint => &mut self.warm_fits.asimov_point,
            Kind::Asimov => &mut self.warm_fits.asimov,
        };
        warm.warm_start_from(&domain, found);
        Ok(())
    }

    /// Fits the observed data, and returns that fit with access to conditional fits.
    fn observed_fits(&mut self) -> DataSetFits<'_, L> {
        let (start, warm_fits) = (self.start(), &mut self.warm_fits);
        let free = warm_start::if_enabled(&mut warm_fits.free, start);
        let profiler = warm_start::fit(&self.model, &mut self.observed, &self.options.fit, free);
        DataSetFits::new(profiler, self.poi, warm_start::if_enabled(&mut warm_fits.conditional, start))
    }

    /// Returns access to fits to the Asimov data set, whose free minimum is known.
    fn asimov_fits(&mut self, asimov: &Asimov) -> DataSetFits<'_, L> {
        self.update_nonlinearity();
        let start = self.start();
        let profiler = Profiler::of_asimov(&self.model, &mut self.asimov, &self.options.fit, &asimov.params);
        DataSetFits::new(profiler, self.poi, warm_start::if_enabled(&mut self.warm_fits.asimov, start))
    }

    /// Returns the options with the parameter of interest fixed at `mu` if given.
    fn options_at(&self, mu: Option<f64>) -> FitOptions {
        let mut options = self.options.fit.clone();
        options.fixed.extend(mu.map(|mu| (self.poi, mu)));
        options
    }

    /// Returns the factorised exact Hessian of the likelihood of `of` at the minimum `params` (P),
    /// without the parameters that are fixed, at a bound or in the corner of a kink. On a kink
    /// where -ln L has no second derivative, the Hessian is that of the upper side.
    fn curvature(
        &mut self,
        fit: &'static str,
        of: FitTarget,
        params: &[f64],
        domain: &Domain,
    ) -> Result<Hessian, DifferentiableError> {
        let mut domain = domain.clone();
        let likelihood = match of {
            FitTarget::Observed => &mut self.observed,
            FitTarget::Asimov => &mut self.asimov,
        };
        corners::fix_cornered(likelihood, params, &mut domain)
            .map_err(|i| DifferentiableError::Kink { parameter: self.model.parameters.names[i].clone() })?;
        let hessian = Hessian::damped_at(likelihood, params, &domain, &[0.0, 1e-12, 1e-10]);
        if hessian.is_covariance() { Ok(hessian) } else { Err(DifferentiableError::Curvature { fit, of }) }
    }
}
