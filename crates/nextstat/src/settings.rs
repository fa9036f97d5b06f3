//! Settings that all procedures share, with parameters by name, and their resolution to indices.

use crate::blinding::Blinding;
use crate::data_sets::invalid_number;
use crate::error::{NeedsPoi, Setting, SettingsError};
use crate::stored::StoredFit;
use ns_core::likelihood::diagnose;
use ns_core::pattern::is_pattern;
use ns_core::{Data, Model, Parameters, expected};
use ns_device::DeviceName;
use ns_inference::ranking::ParameterGroup;
use ns_inference::yields::YieldPropagation;
use ns_inference::{FitOptions, MultiStart, Uncertainties};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

/// Data, conditions on parameters by name, and the machine. The default uses the observed data on
/// the CPU with all threads.
///
/// ```
/// use nextstat::settings::{AsimovPoi, AsimovPoint};
/// use nextstat::{Analysis, CompiledModel, DataSource, FitRequest, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let point = AsimovPoint { poi: AsimovPoi::At(0.5), ..AsimovPoint::default() };
/// let settings = Settings { data: DataSource::Asimov(point), ..Settings::default() };
/// let fit = Analysis::new(&model, &settings)?.fit(&FitRequest::default())?;
/// assert!((fit.result.bestfit[0] - 0.5).abs() < 1e-6);
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The data.
    pub data: DataSource,
    /// Channels that fits use, all others being masked: names or patterns; empty for all.
    pub fit_channels: Vec<String>,
    /// Channels and bins that fits leave out: names, patterns such as `SR_*`, and bins such as
    /// `SR[3]` or `SR[2:5]` (bins 2 to 4). They stay in yields.
    pub mask: Vec<String>,
    /// Bins whose data are not shown, and not fitted either unless it says so.
    pub blind: Blinding,
    /// Samples that yields and reports sum, too: the name of each group, with the names of its
    /// samples or patterns (`VV*`).
    pub sample_groups: Vec<(String, Vec<String>)>,
    /// How the uncertainties of parameters become those of yields.
    pub propagation: YieldPropagation,
    /// Starting values of fits.
    pub start: Start,
    /// Parameters fixed at a value; the name of a vector fixes every element.
    pub fixed: Vec<(String, f64)>,
    /// Ranges that replace those of the model; likewise.
    pub bounds: Vec<(String, [f64; 2])>,
    /// Number of random starting points of each fit, in addition to the usual one.
    pub multi_start: Option<usize>,
    /// Seed of everything random.
    pub seed: u64,
    /// Maximum number of threads; all of the machine if `None`. Results do not depend on it.
    pub threads: Option<NonZeroUsize>,
    /// The device; the CPU if `None`.
    pub device: Option<DeviceName>,
}

/// The data to fit.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum DataSource {
    /// The observed data of the workspace.
    #[default]
    Observed,
    /// Data of the caller.
    Given(Data),
    /// The data that the model expects at a point.
    Asimov(AsimovPoint),
}

/// The point of an Asimov data set: the values of a stored fit or the model's starting values,
/// except for the values given here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AsimovPoint {
    /// The stored fit; starting values if `None`.
    pub fit: Option<Arc<StoredFit>>,
    /// The parameters of interest.
    pub poi: AsimovPoi,
    /// Other parameters, by name. One of several parameters of interest has the value that it is
    /// given here.
    pub parameters: Vec<(String, f64)>,
}

impl DataSource {
    /// Returns `data` as Asimov data if they are exactly those that `model` expects at `point`, and
    /// as data of the caller otherwise.
    ///
    /// ```
    /// use nextstat::settings::AsimovPoint;
    /// use nextstat::{CompiledModel, DataSource};
    ///
    /// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
    /// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
    /// let point = AsimovPoint::default();
    /// let data = point.data(model.model())?;
    /// assert_eq!(DataSource::of(data, &point, model.model()).label(), "Asimov data");
    /// let observed = model.model().observed.clone();
    /// assert_eq!(DataSource::of(observed, &point, model.model()).label(), "given data");
    /// # Ok::<(), nextstat::Error>(())
    /// ```
    #[must_use]
    pub fn of(data: Data, point: &AsimovPoint, model: &Model) -> Self {
        let bits = |data: &Data| data.main.iter().chain(&data.aux).map(|value| value.to_bits()).collect::<Vec<_>>();
        match point.data(model) {
            Ok(expected) if bits(&expected) == bits(&data) => Self::Asimov(point.clone()),
            _ => Self::Given(data),
        }
    }
}

/// The parameters of interest of an Asimov data set: all that the model has.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum AsimovPoi {
    /// At the values of the stored fit, or their starting values.
    #[default]
    Initial,
    /// At 1, if the model has any.
    One,
    /// At this value.
    At(f64),
}

/// Starting values of fits.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Start {
    /// The starting values of the model.
    #[default]
    Model,
    /// These values (P).
    All(Vec<f64>),
    /// The starting values of the model, except for these parameters.
    Named(Vec<(String, f64)>),
}

/// Returns the indices of the parameter `name`: one, those of all elements of a vector, or those of
/// all parameters whose name or whose vector's name matches a pattern (`JES_*`).
///
/// # Errors
/// [`SettingsError::UnknownParameter`]
pub fn elements(
    parameters: &Parameters,
    setting: impl Into<Option<Setting>>,
    name: &str,
) -> Result<Vec<usize>, SettingsError> {
    if let Some(named) = named(parameters, name) {
        return Ok(named.collect());
    }
    let matching = || ParameterGroup::matching(name, &[name], parameters).members;
    let found = if is_pattern(name) { matching() } else { Vec::new() };
    (!found.is_empty()).then_some(found).ok_or_else(|| SettingsError::UnknownParameter {
        setting: setting.into(),
        name: name.to_owned(),
        similar: parameters.similar(name).map(str::to_owned),
    })
}

/// Returns the indices of the parameter, or of the vector, that is called `name`.
fn named(parameters: &Parameters, name: &str) -> Option<Range<usize>> {
    let element = parameters.index_of(name).map(|index| index..index + 1);
    element.or_else(|| parameters.set(name).map(ns_core::parameters::ParameterSet::range))
}

/// Returns the index of the parameter `name`.
///
/// # Errors
/// [`SettingsError::UnknownParameter`], or [`SettingsError::Vector`] for a vector of several.
pub fn index_of(
    parameters: &Parameters,
    setting: impl Into<Option<Setting>>,
    name: &str,
) -> Result<usize, SettingsError> {
    let setting = setting.into();
    match elements(parameters, setting, name)?[..] {
        [index] => Ok(index),
        ref several => Err(SettingsError::Vector { setting, name: name.to_owned(), len: several.len() }),
    }
}

/// Resolves values by name to values by index, and refuses to set a parameter twice. The value of a
/// name precedes that of a pattern.
fn by_index<V: Copy>(
    parameters: &Parameters,
    setting: Setting,
    given: &[(String, V)],
    check: impl Fn(&str, V) -> Result<(), SettingsError>,
) -> Result<Vec<(usize, V)>, SettingsError> {
    let (names, patterns): (Vec<_>, Vec<_>) =
        given.iter().partition(|(name, _)| named(parameters, name).is_some() || !is_pattern(name));
    let mut found: Vec<(usize, V)> = Vec::new();
    let mut n_named = None;
    for (name, value) in names.into_iter().chain(patterns) {
        let elements = elements(parameters, setting, name)?;
        check(name, *value)?;
        if is_pattern(name) {
            n_named.get_or_insert(found.len());
        }
        for element in elements {
            match found.iter().position(|(known, _)| *known == element) {
                Some(known) if n_named.is_some_and(|n_named| known < n_named) => {}
                Some(_) => return Err(SettingsError::SetTwice { setting, name: parameters.names[element].clone() }),
                None => found.push((element, *value)),
            }
        }
    }
    Ok(found)
}

/// Refuses a number of values other than `expected`.
fn require_length(setting: Setting, found: usize, expected: usize) -> Result<(), SettingsError> {
    if found == expected { Ok(()) } else { Err(SettingsError::WrongLength { setting, found, expected }) }
}

/// Refuses a range of the parameter `name` whose lower end is not below its upper end, or whose
/// ends are not numbers.
///
/// # Errors
/// [`SettingsError::EmptyRange`]
pub fn require_range(setting: Setting, name: &str, bounds: [f64; 2]) -> Result<(), SettingsError> {
    if let Some(&value) = bounds.iter().find(|bound| bound.is_nan()) {
        return Err(SettingsError::NotFinite { setting, name: name.to_owned(), value });
    }
    let problem = || SettingsError::EmptyRange { setting, name: name.to_owned(), bounds };
    if bounds[0] < bounds[1] { Ok(()) } else { Err(problem()) }
}

/// Refuses a value of the parameter `name` that is not finite.
///
/// # Errors
/// [`SettingsError::NotFinite`]
pub fn require_finite(setting: Setting, name: &str, value: f64) -> Result<(), SettingsError> {
    let problem = || SettingsError::NotFinite { setting, name: name.to_owned(), value };
    if value.is_finite() { Ok(()) } else { Err(problem()) }
}

fn finite(setting: Setting) -> impl Fn(&str, f64) -> Result<(), SettingsError> {
    move |name, value| require_finite(setting, name, value)
}

/// Refuses a value of `setting` that is not between 0 and 1.
///
/// # Errors
/// [`SettingsError::BadLevel`]
pub fn require_probability(setting: Setting, level: f64) -> Result<(), SettingsError> {
    if 0.0 < level && level < 1.0 { Ok(()) } else { Err(SettingsError::BadLevel { setting, level }) }
}

/// Reads a seed.
///
/// # Errors
/// [`SettingsError::BadSeed`]
///
/// ```
/// use nextstat::error::Face;
/// let error = nextstat::settings::seed("-1").unwrap_err();
/// let message = "`seed` must be a whole number from 0 to 18446744073709551615, got `-1`";
/// assert_eq!(error.message(Face::Library), message);
/// ```
pub fn seed(text: &str) -> Result<u64, SettingsError> {
    text.trim().parse().map_err(|_| SettingsError::BadSeed { found: text.to_owned() })
}

impl Settings {
    /// Resolves the options of fits.
    pub(crate) fn options(&self, model: &Model) -> Result<FitOptions, SettingsError> {
        let parameters = &model.parameters;
        let is_range = |name: &str, bounds| require_range(Setting::Bounds, name, bounds);
        Ok(FitOptions {
            start: self.start(model)?,
            fixed: by_index(parameters, Setting::Fixed, &self.fixed, finite(Setting::Fixed))?,
            bounds: by_index(parameters, Setting::Bounds, &self.bounds, is_range)?,
            multi_start: self.multi_start.map(|n_starts| MultiStart { n_starts, seed: self.seed }),
            uncertainties: Uncertainties::None,
            ..FitOptions::default()
        })
    }

    /// Returns the same settings with the values of Asimov data for the parameters of interest
    /// given by their names, so that others can take their place.
    pub(crate) fn with_asimov_by_name(&self, model: &Model) -> Self {
        let mut settings = self.clone();
        if let DataSource::Asimov(point) = &mut settings.data
            && !model.pois.is_empty()
            && point.poi != AsimovPoi::Initial
            && let Ok(values) = point.resolve(model)
        {
            for &poi in &model.pois {
                let name = &model.parameters.names[poi];
                if !point.parameters.iter().any(|(known, _)| known == name) {
                    point.parameters.push((name.clone(), values[poi]));
                }
            }
            point.poi = AsimovPoi::Initial;
        }
        settings
    }

    fn start(&self, model: &Model) -> Result<Option<Vec<f64>>, SettingsError> {
        let parameters = &model.parameters;
        match &self.start {
            Start::Model => Ok(None),
            Start::All(values) => {
                require_length(Setting::Init, values.len(), model.n_params())?;
                let check = finite(Setting::Init);
                parameters.names.iter().zip(values).try_for_each(|(name, value)| check(name, *value))?;
                Ok(Some(values.clone()))
            }
            Start::Named(values) => {
                let mut start = parameters.init.clone();
                for (i, value) in by_index(parameters, Setting::Init, values, finite(Setting::Init))? {
                    start[i] = value;
                }
                Ok(Some(start))
            }
        }
    }

    /// Resolves the data, of which fits do not use the `masked` bins (B).
    pub(crate) fn data(&self, model: &Model, masked: Option<&[bool]>) -> Result<Data, SettingsError> {
        match &self.data {
            DataSource::Observed => Ok(model.observed.clone()),
            DataSource::Given(data) => {
                let (found, expected) = (data.main.len() + data.aux.len(), model.n_bins() + model.n_aux());
                require_length(Setting::Data, found, expected)?;
                require_length(Setting::Data, data.main.len(), model.n_bins())?;
                match invalid_number(model, &data.main, &data.aux, masked) {
                    None => Ok(data.clone()),
                    Some(number) => Err(SettingsError::InvalidData(number)),
                }
            }
            DataSource::Asimov(point) => point.data(model),
        }
    }
}

impl AsimovPoint {
    /// Returns the point `params` (P) of `model`, with the names of the parameters that are not at
    /// their starting values.
    ///
    /// # Errors
    /// A wrong number of values, or one that is not finite.
    pub fn at(model: &Model, params: &[f64]) -> Result<Self, SettingsError> {
        let Parameters { names, init, .. } = &model.parameters;
        require_length(Setting::AsimovAt, params.len(), names.len())?;
        names.iter().zip(params).try_for_each(|(name, value)| finite(Setting::AsimovAt)(name, *value))?;
        let moved = |i: &usize| params[*i].to_bits() != init[*i].to_bits();
        let parameters = (0..names.len()).filter(moved).map(|i| (names[i].clone(), params[i])).collect();
        Ok(Self { parameters, ..Self::default() })
    }

    /// Returns the data that `model` expects at the point.
    ///
    /// # Errors
    /// As [`AsimovPoint::resolve`], or a point at which the model has no Asimov data set.
    pub fn data(&self, model: &Model) -> Result<Data, SettingsError> {
        let point = self.resolve(model)?;
        let data = expected::asimov(model, &point);
        match diagnose(model, &data, &point) {
            None => Ok(data),
            Some(reason) => Err(SettingsError::NoAsimov(reason)),
        }
    }

    /// Returns which parameters the stored fit and `model` do not have in common, one sentence for
    /// each side, and which of them the fit left at their starting values, unless they are set
    /// here.
    #[must_use]
    pub fn warnings(&self, model: &Model) -> Vec<String> {
        let Some(fit) = &self.fit else { return Vec::new() };
        let is_poi = |i: usize| self.poi != AsimovPoi::Initial && model.pois.contains(&i);
        let is_named = |i: usize| self.parameters.iter().any(|(name, _)| *name == model.parameters.names[i]);
        let left = fit.left_alone(model, |i| is_poi(i) || is_named(i));
        fit.mismatches(model).unwrap_or_default().into_iter().chain(left).collect()
    }

    /// Returns the point of `model` (P).
    ///
    /// # Errors
    /// Names that the model does not have, a parameter that is given two values (the only parameter
    /// of interest by [`AsimovPoi::At`] and by its name), or a stored fit of another model.
    pub fn resolve(&self, model: &Model) -> Result<Vec<f64>, SettingsError> {
        let init = || Ok(model.parameters.init.clone());
        let stored = |fit: &Arc<StoredFit>| fit.point(model).map_err(SettingsError::StoredFit);
        let mut point = self.fit.as_ref().map_or_else(init, stored)?;
        if model.pois.is_empty() && matches!(self.poi, AsimovPoi::At(_)) {
            return Err(SettingsError::NoPoi(NeedsPoi::Setting(Setting::Asimov)));
        }
        if let Some(mu) = self.poi.value() {
            for &poi in &model.pois {
                require_finite(Setting::Asimov, &model.parameters.names[poi], mu)?;
                point[poi] = mu;
            }
        }
        let check = finite(Setting::AsimovAt);
        for (i, value) in by_index(&model.parameters, Setting::AsimovAt, &self.parameters, check)? {
            if model.pois == [i] && matches!(self.poi, AsimovPoi::At(_)) {
                return Err(SettingsError::AsimovTwice { name: model.parameters.names[i].clone() });
            }
            point[i] = value;
        }
        Ok(point)
    }
}
