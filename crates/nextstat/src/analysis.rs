//! Resolves settings against a model: an [`Analysis`] is the starting point of every procedure.

use crate::cancel::{CancellableLikelihood, Cancellation};
use crate::device::OnDevice;
use crate::error::{NeedsPoi, Procedure, Setting, SettingsError};
use crate::regions::without_hidden;
use crate::sample_groups::sample_groups;
use crate::settings::{DataSource, Settings, index_of};
use crate::stored::StoredFit;
use crate::{CompiledModel, Error};
use ns_compute::CpuLikelihood;
use ns_compute::cpu::ModelPlan;
use ns_core::likelihood::diagnose;
use ns_core::{Data, Likelihood, Model};
use ns_device::{Backend, DeviceName};
use ns_inference::minimize::Domain;
use ns_inference::monitor::Monitor;
use ns_inference::options::domain_and_start;
use ns_inference::parallel::{ExecutionContext, all_threads};
use ns_inference::toys::ToyRun;
use ns_inference::yields::SampleGroup;
use ns_inference::{FitOptions, Problem, memory};
use serde_json::Value;
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

/// A model, its data and how to fit them, with one method per procedure.
///
/// Every procedure takes its request first, then a monitor if it is long; it checks the request,
/// opens the device if the settings name one, computes, and returns an
/// [`Answer`](crate::Answer). Clones share everything.
///
/// ```
/// use nextstat::hypothesis::LimitRequest;
/// use nextstat::{Analysis, CompiledModel, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let analysis = Analysis::new(&model, &Settings::default())?;
/// let limit = analysis.limit(&LimitRequest::default())?.result;
/// assert!((limit.observed.unwrap() - 1.705).abs() < 0.001);
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Analysis {
    /// The model that is fitted.
    model: CompiledModel,
    /// The model with its masked bins, if there are any.
    whole: Option<Arc<MaskedModel>>,
    settings: Arc<Settings>,
    data: Arc<Data>,
    /// The data of all bins as results show them: NaN where they are hidden.
    shown: Arc<Data>,
    /// Which bins of the whole model (B) are hidden; `None` if no blinding was asked for.
    hidden: Option<Arc<[bool]>>,
    /// The groups of samples in yields.
    sample_groups: Arc<[SampleGroup]>,
    /// The stored fit that results refer to, for their provenance.
    stored_fit: Option<Arc<StoredFit>>,
    options: Arc<FitOptions>,
    threads: NonZeroUsize,
    device: Option<Arc<LazyDevice>>,
    cancellation: Option<Arc<dyn Cancellation>>,
}

/// A model of which some bins are not fitted.
#[derive(Debug)]
struct MaskedModel {
    model: CompiledModel,
    /// Which bins are masked (B).
    masked: Vec<bool>,
}

/// A device that is opened when a procedure first needs it.
#[derive(Debug)]
struct LazyDevice {
    name: DeviceName,
    opened: OnceLock<OnDevice>,
}

impl LazyDevice {
    fn open(&self, model: &CompiledModel) -> Result<&OnDevice, Error> {
        if let Some(device) = self.opened.get() {
            return Ok(device);
        }
        let device = OnDevice::of(model.session(self.name)?);
        Ok(self.opened.get_or_init(|| device))
    }
}

impl Analysis {
    /// Resolves `settings` for `model`.
    ///
    /// # Errors
    /// Settings that do not fit the model. A device that is not available is an error of the first
    /// procedure that needs it.
    pub fn new(model: &CompiledModel, settings: &Settings) -> Result<Self, Error> {
        let options = settings.options(model.model())?;
        let sample_groups = sample_groups(&settings.sample_groups, model.model())?;
        let hidden = settings.hidden_bins(model.model(), &options)?;
        let masked = settings.masked_bins(model.model(), hidden.as_deref())?;
        let data = settings.data(model.model(), masked.as_deref())?;
        let shown = hidden.as_ref().map(|hidden| without_hidden(&data, hidden));
        let (model, whole, data, shown) = match masked {
            None => {
                let shown = shown.unwrap_or_else(|| data.clone());
                // Nothing hidden is at hand where everything is.
                let data = if settings.blind.may_hide_all { shown.clone() } else { data };
                (model.clone(), None, data, shown)
            }
            Some(masked) => {
                let (fitted, fitted_data) = (model.without_bins(&masked)?, data.without_bins(&masked));
                let whole = MaskedModel { model: model.clone(), masked };
                (fitted, Some(Arc::new(whole)), fitted_data, shown.unwrap_or(data))
            }
        };
        let device = settings.device.map(|name| LazyDevice { name, opened: OnceLock::new() });
        Ok(Self {
            model,
            whole,
            settings: Arc::new(settings.clone()),
            data: Arc::new(data),
            shown: Arc::new(shown),
            hidden: hidden.map(Arc::from),
            sample_groups: Arc::from(sample_groups),
            stored_fit: None,
            options: Arc::new(options),
            threads: settings.threads.unwrap_or_else(every_thread),
            device: device.map(Arc::new),
            cancellation: None,
        })
    }

    /// Returns the same analysis whose procedures end early once `cancellation` says so; the caller
    /// then drops the result.
    #[must_use]
    pub fn cancelled_by(self, cancellation: Arc<dyn Cancellation>) -> Self {
        Self { cancellation: Some(cancellation), ..self }
    }

    /// Returns the same analysis with fits that start at `params` (P).
    pub(crate) fn starting_at(&self, params: Vec<f64>) -> Self {
        let options = FitOptions { start: Some(params), ..FitOptions::clone(&self.options) };
        Self { options: Arc::new(options), ..self.clone() }
    }

    /// Returns the same analysis with parameter `poi` as its only one of interest. The data stay.
    pub(crate) fn of_poi(&self, poi: usize) -> Self {
        let masked =
            |whole: &Arc<MaskedModel>| MaskedModel { model: whole.model.with_poi(poi), masked: whole.masked.clone() };
        Self {
            model: self.model.with_poi(poi),
            whole: self.whole.as_ref().map(|whole| Arc::new(masked(whole))),
            settings: Arc::new(self.settings.with_asimov_by_name(self.model())),
            ..self.clone()
        }
    }

    /// Returns the same analysis whose results refer to a stored fit.
    pub(crate) fn referring_to(&self, fit: &StoredFit) -> Self {
        Self { stored_fit: Some(Arc::new(fit.clone())), ..self.clone() }
    }

    /// Returns the stored fit that results refer to, if they do.
    #[must_use]
    pub fn stored_fit(&self) -> Option<&StoredFit> {
        self.stored_fit.as_deref()
    }

    /// Returns the same analysis on the CPU and without cancellation, for results that outlive
    /// both.
    #[must_use]
    pub fn on_cpu(&self) -> Self {
        Self { model: self.model.without_devices(), device: None, cancellation: None, ..self.clone() }
    }

    /// Returns the model that is fitted, without masked bins.
    #[must_use]
    pub fn model(&self) -> &Model {
        self.model.model()
    }

    /// Returns the layout of the model that is fitted.
    pub(crate) fn plan(&self) -> &Arc<ModelPlan> {
        self.model.plan()
    }

    /// Returns the model with all its bins.
    #[must_use]
    pub fn whole_model(&self) -> &Model {
        self.whole.as_ref().map_or(self.model(), |whole| whole.model.model())
    }

    /// Returns the model with all its bins and its workspace.
    pub(crate) fn whole_compiled(&self) -> &CompiledModel {
        self.whole.as_ref().map_or(&self.model, |whole| &whole.model)
    }

    /// Returns which bins of the whole model (B) are masked; `None` if none are.
    #[must_use]
    pub fn masked_bins(&self) -> Option<&[bool]> {
        self.whole.as_ref().map(|whole| &whole.masked[..])
    }

    /// Returns the data of all bins as results show them: also of those that are masked, and NaN
    /// for those that are hidden.
    #[must_use]
    pub fn shown_data(&self) -> &Data {
        &self.shown
    }

    /// Returns which bins of the whole model (B) are hidden; `None` if no blinding was asked for.
    #[must_use]
    pub fn hidden_bins(&self) -> Option<&[bool]> {
        self.hidden.as_deref()
    }

    /// Returns the groups of samples in yields.
    #[must_use]
    pub fn sample_groups(&self) -> &[SampleGroup] {
        &self.sample_groups
    }

    /// Returns `true` if masked and hidden bins are all bins, so that no data can be looked at.
    pub(crate) fn hides_everything(&self) -> bool {
        let is_hidden = self.hidden.as_ref().is_some_and(|hidden| hidden.contains(&true));
        self.settings.blind.may_hide_all && is_hidden && self.whole.is_none()
    }

    /// Returns `true` if fits use observed or given data that are hidden.
    #[must_use]
    pub fn fits_hidden(&self) -> bool {
        let is_hidden = |b: usize| self.hidden.as_ref().is_some_and(|hidden| hidden[b]);
        let is_fitted = |b: usize| self.masked_bins().is_none_or(|masked| !masked[b]);
        let is_asimov = matches!(self.settings.data, DataSource::Asimov(_));
        !is_asimov && !self.hides_everything() && (0..self.whole_model().n_bins()).any(|b| is_hidden(b) && is_fitted(b))
    }

    /// Returns the model with its workspace.
    #[must_use]
    pub fn compiled(&self) -> &CompiledModel {
        &self.model
    }

    /// Returns the data that are fitted, without masked bins.
    #[must_use]
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Returns the settings as the caller gave them.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns what a reader should know about the data: which parameters the stored fit of Asimov
    /// data and the model do not have in common.
    #[must_use]
    pub fn data_warnings(&self) -> Vec<String> {
        match &self.settings.data {
            DataSource::Asimov(point) => point.warnings(self.whole_model()),
            _ => Vec::new(),
        }
    }

    /// Returns the options of fits, without uncertainties.
    #[must_use]
    pub fn options(&self) -> &FitOptions {
        &self.options
    }

    /// Returns how many threads are used at most.
    #[must_use]
    pub fn threads(&self) -> NonZeroUsize {
        self.threads
    }

    /// Returns the seed of everything random.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.settings.seed
    }

    /// Returns the backend of the device; `None` for the CPU.
    #[must_use]
    pub fn backend(&self) -> Option<Backend> {
        self.device.as_ref().map(|device| device.name.backend)
    }

    /// Returns the device, opening it the first time; `None` for the CPU.
    ///
    /// # Errors
    /// A device that is not available, computes wrongly, or cannot hold the model.
    pub fn device(&self) -> Result<Option<&OnDevice>, Error> {
        self.device.as_ref().map(|device| device.open(&self.model)).transpose()
    }

    /// Returns the likelihood of the data.
    ///
    /// # Errors
    /// A model whose matrices do not fit into memory.
    pub fn likelihood(&self) -> Result<CancellableLikelihood, Error> {
        let likelihood = CpuLikelihood::with_plan(Arc::clone(self.model.plan()), &self.data);
        memory::require(&likelihood.structure())?;
        Ok(CancellableLikelihood::new(likelihood, self.cancellation.clone()))
    }

    /// Returns the ranges of the parameters and which of them are fixed.
    #[must_use]
    pub fn domain(&self) -> Domain {
        domain_and_start(self.model(), &self.options).0
    }

    /// Returns the parameter of interest, which `what` needs.
    ///
    /// # Errors
    /// [`SettingsError::NoPoi`]
    pub fn poi(&self, what: NeedsPoi) -> Result<usize, SettingsError> {
        self.model().poi().ok_or(SettingsError::NoPoi(what))
    }

    /// Refuses `values` outside the range of parameter `index`.
    pub(crate) fn require_inside(&self, setting: Setting, index: usize, values: &[f64]) -> Result<(), SettingsError> {
        let domain = self.domain();
        let bounds = [domain.lower[index], domain.upper[index]];
        let name = &self.model().parameters.names[index];
        match values.iter().find(|value| !(bounds[0]..=bounds[1]).contains(*value)) {
            Some(&value) => Err(SettingsError::ValueOutside { setting, name: name.clone(), value, bounds }),
            None => Ok(()),
        }
    }

    /// Returns the parameter of interest, for the uncertainties of toys.
    ///
    /// # Errors
    /// [`SettingsError::NoPoi`], or [`SettingsError::UncertaintyOfFixed`].
    pub fn poi_with_uncertainty(&self) -> Result<usize, SettingsError> {
        let index = self.poi(NeedsPoi::Setting(Setting::PoiUncertainty))?;
        if self.is_fixed(index) {
            return Err(SettingsError::UncertaintyOfFixed { name: self.model().parameters.names[index].clone() });
        }
        Ok(index)
    }

    /// Returns the parameter that `procedure` varies: the one called `name`, or the parameter of
    /// interest.
    ///
    /// # Errors
    /// A name that the model does not have, no parameter of interest, or a fixed parameter.
    pub fn varied(&self, name: Option<&str>, procedure: Procedure) -> Result<usize, SettingsError> {
        let index = match name {
            Some(name) => index_of(&self.model().parameters, Setting::Parameter, name)?,
            None => self.poi(NeedsPoi::Procedure(procedure))?,
        };
        let name = || self.model().parameters.names[index].clone();
        if self.fixed_by_mask().contains(&index) {
            return Err(SettingsError::VariesMasked { procedure, name: name() });
        }
        if self.is_fixed(index) {
            return Err(SettingsError::VariesFixed { procedure, name: name() });
        }
        Ok(index)
    }

    /// Returns the parameters that are fixed because only masked bins depend on them, without those
    /// that the settings fix.
    #[must_use]
    pub fn fixed_by_mask(&self) -> Vec<usize> {
        let (fitted, whole) = (&self.model().parameters, &self.whole_model().parameters);
        let is_set = |i: usize| self.options.fixed.iter().any(|(fixed, _)| *fixed == i);
        (0..fitted.len()).filter(|&i| fitted.fixed[i] && !whole.fixed[i] && !is_set(i)).collect()
    }

    /// Returns `true` if the measurement or the settings fix parameter `i`.
    #[must_use]
    pub fn is_fixed(&self, i: usize) -> bool {
        self.model().parameters.fixed[i] || self.options.fixed.iter().any(|(fixed, _)| *fixed == i)
    }

    /// Returns the problem that procedures solve: the model, `likelihood` and the fit options.
    pub(crate) fn problem<'a>(
        &'a self,
        likelihood: &'a mut CancellableLikelihood,
    ) -> Problem<'a, CancellableLikelihood> {
        Problem::new(self.model(), likelihood, self.options())
    }

    /// Returns the threads and the device that a procedure uses, under `monitor`.
    ///
    /// # Errors
    /// As [`Analysis::device`].
    pub fn execution<'a>(&'a self, monitor: &'a dyn Monitor) -> Result<ExecutionContext<'a>, Error> {
        let execution = ExecutionContext::new(self.threads, monitor);
        Ok(self.device()?.map_or(execution, |device| device.assist(execution, &self.data)))
    }

    /// Returns the threads and the device that toys use, under `monitor`.
    ///
    /// # Errors
    /// As [`Analysis::device`].
    pub fn run<'a>(&'a self, monitor: &'a dyn Monitor) -> Result<ToyRun<'a>, Error> {
        let accelerator = self.device()?.map(OnDevice::accelerator);
        Ok(ToyRun { accelerator, ..ToyRun::new(self.threads, monitor) })
    }

    /// Returns `options` with the start moved to where the device's fit ends.
    ///
    /// # Errors
    /// As [`Analysis::device`].
    pub fn started(&self, options: FitOptions) -> Result<FitOptions, Error> {
        Ok(match self.device()? {
            None => options,
            Some(device) => device.started(self.model(), &self.data, options),
        })
    }

    /// Refuses a device for `what`.
    ///
    /// # Errors
    /// [`Error::OnCpuOnly`]
    pub fn require_cpu(&self, what: &'static str) -> Result<(), Error> {
        if self.device.is_some() { Err(Error::OnCpuOnly { what }) } else { Ok(()) }
    }

    /// Returns what the device did; `None` on the CPU.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`]: results are then not to be used.
    pub fn device_report(&self) -> Result<Option<Value>, Error> {
        let failed = |device: &OnDevice, error| Error::DeviceFailed { device: device.name(), error };
        let opened = self.device.as_ref().and_then(|device| device.opened.get());
        opened.map(|device| device.report().map_err(|error| failed(device, error))).transpose()
    }

    /// Returns why the data are impossible at `params` (P), if they are.
    pub(crate) fn impossible_at(&self, params: &[f64]) -> Option<String> {
        diagnose(self.model(), &self.data, params).map(|reason| reason.to_string())
    }
}

/// Returns as many threads as the machine runs at once. The system is asked once because asking
/// takes longer than a small fit.
fn every_thread() -> NonZeroUsize {
    static ALL: OnceLock<NonZeroUsize> = OnceLock::new();
    *ALL.get_or_init(all_threads)
}
