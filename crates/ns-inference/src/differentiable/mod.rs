//! Profiled test statistics as functions of templates, with their gradients: what a network needs to be trained on a limit.
//!
//! Values are those of `hypotest` and `limit`; their derivatives with respect to the inputs x (`ns_core::templates`) are exact, not differences:
//! - of a minimum, by the envelope theorem: d min_θ f/dx = ∂f/∂x at the minimum, whether or not parameters are at their bounds;
//! - of what depends on where a minimum is (Asimov data, which are made at a conditional fit; σ), by implicit differentiation: dθ̂/dx = -H⁻¹ ∂²f/∂θ∂x over the parameters that
//!   are neither fixed nor at a bound nor in the corner of a kink. The adjoint form needs one solve with the factorised exact Hessian and one pass along the solution;
//! - of a limit, by the implicit function CLs(μ, x) = α;
//! - of a minimum once more, by implicit differentiation too: products with its Hessian by inputs and tested value (`second`).
//!
//! Where a statistic is constant it has gradient 0: q₀ with μ̂ ≤ 0, q_μ with μ̂ ≥ μ. A fit that fails is an error, never a gradient.
//!
//! Legend: M inputs, P parameters, B bins, K auxiliary data.

mod asimov;
mod batch;
mod corners;
mod device;
mod error;
mod follow;
mod limit;
mod points;
mod second;
mod sigma;
mod statistics;

pub use asimov::AsimovPoint;
pub use batch::{BatchMinimum, BatchStatistic};
pub use error::{DifferentiableError, FitTarget};
pub use follow::FitStart;
pub use limit::LimitKind;
pub use points::{BatchPoints, BatchValues, InvalidInputs};
pub use second::InputDirection;
pub use statistics::{CLS, TestValues};

use crate::hessian::Hessian;
use crate::limit::LimitOptions;
use crate::minimize::{Domain, Minimum};
use crate::options::{FitOptions, domain_and_start};
use crate::profile::Profiler;
use crate::search::Candidates;
use asimov::Asimov;
use device::SessionDevice;
use error::{arrived, finite, fit_name};
use follow::{DataSetFits, WarmStartedFit};
use ns_core::batch::TemplateMinimizer;
use ns_core::nonlinearity::Nonlinearity;
use ns_core::templates::{InputError, JointDirection, LineExpansion};
use ns_core::{Data, Inputs, Model, TemplateLikelihood};

/// What a session does.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DifferentiableOptions {
    /// How fits are done; errors and intervals do not matter here.
    pub fit: FitOptions,
    /// Where Asimov data are made.
    pub asimov: AsimovPoint,
    /// Where fits begin.
    pub start: FitStart,
}

/// A model with templates that change, its observed data and its Asimov data, and the fits to both.
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
    /// Of the observed data too, one for each thread that evaluates rows.
    evaluators: Vec<L>,
    /// The last limits found, and which they were: the next one of that kind is looked for there first.
    last_limits: Vec<(LimitOptions, LimitKind, f64)>,
    /// Whether the model's nonlinearity is that of the inputs.
    is_judged: bool,
}

/// What each kind of fit goes on from.
#[derive(Debug, Default)]
struct WarmStartedFits {
    /// Of the observed data, with nothing fixed.
    free: WarmStartedFit,
    /// Of the observed data, with the parameter of interest at a tested value.
    conditional: WarmStartedFit,
    /// Of the observed data, where the Asimov data set is made.
    asimov_point: WarmStartedFit,
    /// Of the Asimov data set, with the parameter of interest at a tested value.
    asimov: WarmStartedFit,
}

/// Which of the fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Free,
    Conditional,
    AsimovPoint,
    Asimov,
}

/// Room for gradients (P and M) and for yields (B), reused from call to call.
#[derive(Debug, Default)]
struct Memory {
    gradient: Vec<f64>,
    by_inputs: Vec<f64>,
    lambda: Vec<f64>,
    other: Vec<f64>,
    along: LineExpansion,
}

impl<L: TemplateLikelihood + Clone> ProfiledDifferentiableSession<L> {
    /// A session of `model` with the parameter of interest `poi`; `likelihood` is of its observed data and has the model's own inputs.
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
            is_judged: true,
        }
    }

    /// The same with fits to `observed`, which are the observed data, and to Asimov data done on a device: free fits, those where Asimov data are made, and conditional ones
    /// at values that are known beforehand. The host goes on from where they end, and does the fits of a search for a limit. With [`FitStart::Initial`] what was fitted
    /// before [`Self::set_inputs`] is forgotten then.
    #[must_use]
    pub fn on_device(mut self, minimizer: Box<dyn TemplateMinimizer>, observed: Data) -> Self {
        self.device = Some(SessionDevice::new(minimizer, observed));
        self
    }

    /// How many fits have ended in a minimum on the device.
    #[must_use]
    pub fn n_device_fits(&self) -> u64 {
        self.device.as_ref().map_or(0, |device| device.n_fits)
    }

    /// Which numbers are the inputs (M).
    #[must_use]
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// The model with the inputs in it; its nonlinearity is that of the last fit.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Replaces the inputs by `values` (M): all that follows is of them.
    ///
    /// # Errors
    /// Where a value is none that a template can have.
    pub fn set_inputs(&mut self, values: &[f64]) -> Result<(), InputError> {
        self.inputs.check(values)?;
        self.inputs.apply(values, &mut self.model);
        self.is_judged = false;
        self.observed.set_inputs(values);
        self.asimov.set_inputs(values);
        if let Some(device) = &mut self.device {
            device.is_current = false;
            if self.options.start == FitStart::Initial {
                // The host goes on from the device's fits of these inputs only.
                self.warm_fits = WarmStartedFits::default();
            }
        }
        Ok(())
    }

    /// Judges before a fit of new inputs which parameters may hide minima.
    fn judge(&mut self) {
        if !std::mem::replace(&mut self.is_judged, true) {
            self.model.nonlinearity = Nonlinearity::of(&self.model);
        }
    }

    /// How the host's fits begin: where there is a device they go on from its own.
    fn start(&self) -> FitStart {
        if self.device.is_some() { FitStart::Warm } else { self.options.start }
    }

    /// -ln L of the observed data at `params` (P) with its gradients by parameters (P) and inputs (M); +∞ with zeros outside the domain.
    pub fn nll(&mut self, params: &[f64], gradient: &mut [f64], by_inputs: &mut [f64]) -> f64 {
        self.observed.nll_and_gradients(params, gradient, by_inputs)
    }

    /// The product of the Hessian of -ln L by parameters and inputs with `direction` (P and M): the first derivatives of both gradients in `out`.
    pub fn hessian_product(&mut self, params: &[f64], direction: JointDirection<'_>, out: &mut LineExpansion) {
        self.observed.hessian_product(params, direction, out);
    }

    /// The minimum of -ln L, with the parameter of interest at `mu` if that is given, and its derivative along `mu` (0 if it is not); its gradient is written to `by_inputs` (M).
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
            finite("the minimum of -ln L", std::iter::once(&value).chain(&*by_inputs))?;
        }
        Ok([best.nll, if mu.is_some() { best.gradient[self.poi] } else { 0.0 }])
    }

    /// The minimum to the observed data, with the parameter of interest at `mu` if that is given.
    fn minimum(&mut self, mu: Option<f64>) -> Result<Minimum, DifferentiableError> {
        let options = self.options_at(mu);
        self.ask_device(if mu.is_some() { Kind::Conditional } else { Kind::Free }, mu)?;
        let start = self.start();
        let warm = if mu.is_some() { &mut self.warm_fits.conditional } else { &mut self.warm_fits.free };
        let warm = follow::wanted(warm, start);
        let best = follow::fit(&self.model, &mut self.observed, &options, warm).best().clone();
        arrived(fit_name(mu), FitTarget::Observed, &best)?;
        Ok(best)
    }

    /// Lets the device find where a fit will end, with the parameter of interest at `mu` if that is given; without a device, nothing happens. Fits of models that may hide minima
    /// go on from nowhere: they are the host's.
    fn ask_device(&mut self, kind: Kind, mu: Option<f64>) -> Result<(), DifferentiableError> {
        self.judge();
        let Some(device) = self.device.as_mut().filter(|_| self.options.fit.multi_start.is_none()) else {
            return Ok(());
        };
        let mut options = self.options.fit.clone();
        options.fixed.extend(mu.map(|mu| (self.poi, mu)));
        let (domain, start) = domain_and_start(&self.model, &options);
        let is_hosts = Candidates::of(&self.model).explore_widely(&domain);
        let found = if is_hosts { None } else { device.fit(&self.model, kind == Kind::Asimov, &domain, &start)? };
        let warm = match kind {
            Kind::Free => &mut self.warm_fits.free,
            Kind::Conditional => &mut self.warm_fits.conditional,
            Kind::AsimovPoint => &mut self.warm_fits.asimov_point,
            Kind::Asimov => &mut self.warm_fits.asimov,
        };
        warm.warm_start_from(&domain, found);
        Ok(())
    }

    /// The fits to the observed data, of which the free one is done.
    fn observed_fits(&mut self) -> DataSetFits<'_, L> {
        let (start, warm_fits) = (self.start(), &mut self.warm_fits);
        let free = follow::wanted(&mut warm_fits.free, start);
        let profiler = follow::fit(&self.model, &mut self.observed, &self.options.fit, free);
        DataSetFits::new(profiler, self.poi, follow::wanted(&mut warm_fits.conditional, start))
    }

    /// The fits to the Asimov data set, whose free minimum is known.
    fn asimov_fits(&mut self, asimov: &Asimov) -> DataSetFits<'_, L> {
        self.judge();
        let start = self.start();
        let profiler = Profiler::of_asimov(&self.model, &mut self.asimov, &self.options.fit, &asimov.params);
        DataSetFits::new(profiler, self.poi, follow::wanted(&mut self.warm_fits.asimov, start))
    }

    /// The options with the parameter of interest fixed at `mu` if that is given.
    fn options_at(&self, mu: Option<f64>) -> FitOptions {
        let mut options = self.options.fit.clone();
        options.fixed.extend(mu.map(|mu| (self.poi, mu)));
        options
    }

    /// The factorised exact Hessian at the minimum `params` (P) of one likelihood; what is fixed, at a bound or in the corner of a kink is left out. On a kink where
    /// -ln L has no derivative, it is the Hessian of the upper side.
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
        corners::status(likelihood, params, &mut domain)
            .map_err(|i| DifferentiableError::Kink { parameter: self.model.parameters.names[i].clone() })?;
        let hessian = Hessian::damped_at(likelihood, params, &domain, &[0.0, 1e-12, 1e-10]);
        if hessian.is_covariance() { Ok(hessian) } else { Err(DifferentiableError::Curvature { fit, of }) }
    }
}
