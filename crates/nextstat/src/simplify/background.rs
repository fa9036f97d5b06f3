//! The background of the channels that are simplified: its fit to the other channels.

use super::SimplifiedSignal;
use crate::error::{NeedsPoi, Procedure, Setting, SimplifyError};
use crate::regions::Regions;
use crate::{Analysis, CompiledModel, Error, Settings};
use ns_core::compile::PoiChoice;
use ns_core::expected::expected_main;
use ns_core::spec::{Modifier, ModifierData, Sample, Workspace};
use ns_core::{CompileOptions, Model};
use ns_inference::fit::fit;
use ns_inference::options::domain_and_start;
use ns_inference::propagate::Propagator;
use ns_inference::simplified::{NoMoments, YieldMoments};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Yields whose change per unit of the strength differs by less than this fraction of them are
/// linear in it.
const LINEAR: f64 = 1e-9;

/// A background with its parameters, and the channels that are simplified.
#[derive(Debug, Clone)]
pub(super) struct Background {
    analysis: Analysis,
    /// Indices of the simplified channels in the whole model, in its order.
    channels: Vec<usize>,
    /// The name of the strength of signals, if there is one.
    strength: Option<String>,
    /// Parameters, without signal (P).
    params: Vec<f64>,
    covariance: Arc<Propagator>,
    /// The warnings of the fit.
    warnings: Vec<String>,
    /// Parameters at a bound of their range.
    at_bounds: Vec<String>,
}

/// Where the yields are expanded.
struct PointOfExpansion {
    /// Parameters, without signal (P).
    params: Vec<f64>,
    /// What is known of them.
    covariance: Propagator,
    /// The warnings of the fit.
    warnings: Vec<String>,
    /// Parameters at a bound of their range.
    at_bounds: Vec<String>,
}

/// A signal at a strength of 1.
pub(super) struct SignalInChannels {
    /// Its yields in the simplified channels.
    pub(super) signal: SimplifiedSignal,
    /// The fraction of its events in the other channels.
    pub(super) left_out: f64,
}

impl Background {
    /// Fits the background of `full`, its model without the samples that its strength scales, to
    /// the channels that are not among `selections`.
    pub(super) fn of_model(full: &Analysis, selections: &[String]) -> Result<Self, Error> {
        let model = full.whole_model();
        if model.pois.len() > 1 {
            let names = model.pois.iter().map(|&i| model.parameters.names[i].clone()).collect();
            return Err(SimplifyError::SeveralStrengths { names }.into());
        }
        let Some(&poi) = model.pois.first() else {
            return Self::fit(full.whole_compiled(), full, None, selections);
        };
        let name = model.parameters.names[poi].clone();
        if let Some((_, value)) = full.settings().fixed.iter().find(|(fixed, value)| *fixed == name && *value != 0.0) {
            return Err(SimplifyError::FixedSignal { name, value: *value }.into());
        }
        let workspace = without_signal(full.whole_compiled().workspace(), &name);
        let options = CompileOptions {
            measurement: Some(model.measurement.clone()),
            poi: PoiChoice::None,
            interpolation: model.interpolation,
        };
        Self::fit(&CompiledModel::new(workspace, &options)?, full, Some(name), selections)
    }

    /// Fits the background `model`, whose signals have the strength `strength`, with the settings
    /// of `full`, to the channels that are not among `selections`.
    pub(super) fn fit(
        model: &CompiledModel,
        full: &Analysis,
        strength: Option<String>,
        selections: &[String],
    ) -> Result<Self, Error> {
        let channels = channels(model.model(), selections)?;
        require_unmasked(full, model.model(), &channels)?;
        let mut settings = settings_of(full, model.model(), strength.as_deref());
        let is_fitted = channels.len() < model.model().channels.len();
        if is_fitted {
            settings.mask.extend(channels.iter().map(|&channel| model.model().channels[channel].clone()));
        }
        let analysis = Analysis::new(model, &settings)?;
        analysis.require_cpu("a simplified model")?;
        let PointOfExpansion { params, covariance, warnings, at_bounds } =
            if is_fitted { of_fit(&analysis)? } else { of_constraints(&analysis)? };
        let covariance = Arc::new(covariance);
        let found = Self { analysis, channels, strength, params, covariance, warnings, at_bounds };
        found.require_data()?;
        Ok(found)
    }

    pub(super) fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// Returns the name of the strength of signals, if there is one.
    pub(super) fn strength(&self) -> Option<&str> {
        self.strength.as_deref()
    }

    fn model(&self) -> &Model {
        self.analysis.whole_model()
    }

    /// Returns the moments of the yields.
    pub(super) fn moments(&self) -> Result<YieldMoments, Error> {
        let moments = YieldMoments::of(self.model(), &self.channels, &self.params, &self.covariance);
        let error = |error: NoMoments| match error {
            NoMoments::NotFinite { bin } => SimplifyError::NotFinite { bin: self.place(bin) },
            NoMoments::Undetermined { param } => {
                SimplifyError::Undetermined { name: self.model().parameters.names[param].clone() }
            }
            NoMoments::TooLarge(shortage) => SimplifyError::TooLarge(shortage),
        };
        Ok(moments.map_err(error)?)
    }

    /// Returns names and bins of the simplified channels; bins count from 0 in the first one.
    pub(super) fn channels(&self) -> Vec<(&str, Range<usize>)> {
        let mut end = 0;
        let mut channel = |&channel: &usize| {
            let start = end;
            end += self.model().channel_bins(channel).len();
            (self.model().channels[channel].as_str(), start..end)
        };
        self.channels.iter().map(&mut channel).collect()
    }

    /// Returns the name of a bin for messages.
    pub(super) fn place(&self, bin: usize) -> String {
        let channels = self.channels();
        let found = channels.iter().find(|(_, bins)| bins.contains(&bin));
        found.map_or(String::new(), |(name, bins)| format!("bin {} of channel `{name}`", bin - bins.start))
    }

    /// Returns those of `values`, one for each bin of the whole model, that the simplified channels
    /// have.
    pub(super) fn of_channels(&self, values: &[f64]) -> Vec<f64> {
        self.channels.iter().flat_map(|&channel| &values[self.model().channel_bins(channel)]).copied().collect()
    }

    /// Returns the data of the simplified channels.
    pub(super) fn data(&self) -> Vec<f64> {
        self.of_channels(&self.analysis.shown_data().main)
    }

    fn require_data(&self) -> Result<(), SimplifyError> {
        let data = self.data();
        let is_hidden = |(_, bins): &&(&str, Range<usize>)| data[bins.clone()].iter().any(|count| count.is_nan());
        match self.channels().iter().find(is_hidden) {
            Some((channel, _)) => Err(SimplifyError::Hidden { channel: (*channel).to_owned() }),
            None => Ok(()),
        }
    }

    /// Returns what to know of the expansion of the yields with these `moments`.
    pub(super) fn expansion_warnings(&self, moments: &YieldMoments) -> Vec<String> {
        let mut warnings = self.warnings.clone();
        let names = &self.model().parameters.names;
        let kinked = self.model().kinked();
        let listed = |names: Vec<&str>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let acting = || moments.params.iter().copied();
        let at_bounds: Vec<&str> =
            acting().map(|i| names[i].as_str()).filter(|name| self.at_bounds.iter().any(|at| at == name)).collect();
        if !at_bounds.is_empty() {
            warnings.push(format!(
                "parameters at bounds of their ranges have no uncertainty in the simplified model: {}",
                listed(at_bounds)
            ));
        }
        let bent: Vec<&str> = acting().filter(|&i| kinked[i]).map(|i| names[i].as_str()).collect();
        if !bent.is_empty() {
            warnings.push(format!(
                "the interpolation has a kink at 0, and only the derivative on one side counts: {}",
                listed(bent)
            ));
        }
        warnings
    }

    /// Returns the signal of `full` in the simplified channels at a strength of 1, the parameters
    /// being those of the background; those that it does not have are nominal.
    pub(super) fn signal(&self, full: &Analysis) -> Result<SignalInChannels, Error> {
        let (own, model) = (self.model(), full.whole_model());
        let poi = full.poi(NeedsPoi::Procedure(Procedure::Simplify))?;
        let n_bins = |model: &Model| (0..model.channels.len()).map(|c| model.channel_bins(c).len()).collect::<Vec<_>>();
        let has_own_bins = own.channels == model.channels && n_bins(own) == n_bins(model);
        if !has_own_bins || self.of_channels(&full.shown_data().main) != self.data() {
            return Err(SimplifyError::OtherBins.into());
        }
        let known: HashMap<&str, f64> =
            own.parameters.names.iter().map(String::as_str).zip(self.params.iter().copied()).collect();
        let (_, start) = domain_and_start(model, full.options());
        let named = model.parameters.names.iter().zip(&start);
        let mut point: Vec<f64> =
            named.map(|(name, start)| known.get(name.as_str()).copied().unwrap_or(*start)).collect();
        let [none, one, two] = [0.0, 1.0, 2.0].map(|strength| {
            point[poi] = strength;
            expected_main(model, &point)
        });
        let left_out = {
            let sum = |yields: &[f64]| yields.iter().sum::<f64>();
            let total = sum(&one) - sum(&none);
            let inside = sum(&self.of_channels(&one)) - sum(&self.of_channels(&none));
            if total > 0.0 { 1.0 - inside / total } else { 0.0 }
        };
        let [none, one, two] = [none, one, two].map(|yields| self.of_channels(&yields));
        let own_yields = self.of_channels(&expected_main(own, &self.params));
        let is_same = |(a, b): (&f64, &f64)| (a - b).abs() <= LINEAR * b.abs().max(1.0);
        if !none.iter().zip(&own_yields).all(is_same) {
            return Err(SimplifyError::OtherBackground.into());
        }
        let is_linear = |bin: usize| {
            let bend = (two[bin] - one[bin]) - (one[bin] - none[bin]);
            bend.abs() <= LINEAR * two[bin].abs().max(1.0)
        };
        for (channel, mut bins) in self.channels() {
            if !bins.all(is_linear) {
                let name = model.parameters.names[poi].clone();
                return Err(SimplifyError::NotLinear { channel: channel.to_owned(), name }.into());
            }
        }
        let yields = one.iter().zip(&none).map(|(one, none)| one - none).collect();
        let domain = full.domain();
        let signal = SimplifiedSignal { yields, range: [domain.lower[poi], domain.upper[poi]] };
        Ok(SignalInChannels { signal, left_out })
    }
}

/// Refuses masked bins in `channels` of `model`: simplified channels are whole.
fn require_unmasked(full: &Analysis, model: &Model, channels: &[usize]) -> Result<(), SimplifyError> {
    let Some(masked) = full.masked_bins() else { return Ok(()) };
    let is_masked =
        |&&channel: &&usize| masked.get(model.channel_bins(channel)).is_none_or(|bins| bins.contains(&true));
    match channels.iter().find(is_masked) {
        Some(&channel) => Err(SimplifyError::Masked { channel: model.channels[channel].clone() }),
        None => Ok(()),
    }
}

/// Returns `workspace` without the samples that a normfactor `strength` scales. A channel keeps
/// them if it has no others, and all do if the others have no modifier: a model has parameters.
fn without_signal(mut workspace: Workspace, strength: &str) -> Workspace {
    let is_signal = |sample: &Sample| {
        let scales = |modifier: &Modifier| modifier.name == strength && modifier.data == ModifierData::NormFactor;
        sample.modifiers.iter().any(scales)
    };
    let samples = workspace.channels.iter().flat_map(|channel| &channel.samples);
    if samples.filter(|sample| !is_signal(sample)).all(|sample| sample.modifiers.is_empty()) {
        return workspace;
    }
    for channel in &mut workspace.channels {
        if !channel.samples.iter().all(is_signal) {
            channel.samples.retain(|sample| !is_signal(sample));
        }
    }
    workspace
}

/// Returns the settings of `full` for its background `model`, which has fewer parameters, with
/// `strength` at 0 if it still has that.
fn settings_of(full: &Analysis, model: &Model, strength: Option<&str>) -> Settings {
    let mut settings = full.settings().clone();
    let has = |model: &Model, name: &str| model.parameters.names.iter().any(|own| own == name);
    let is_gone = |name: &str| has(full.whole_model(), name) && !has(model, name);
    settings.fixed.retain(|(name, _)| !is_gone(name));
    settings.bounds.retain(|(name, _)| !is_gone(name));
    if let Some(strength) = strength.filter(|strength| has(model, strength)) {
        settings.fixed.retain(|(name, _)| name != strength);
        settings.fixed.push((strength.to_owned(), 0.0));
    }
    settings
}

/// Returns the indices of the channels that `selections` name, in the order of the model.
fn channels(model: &Model, selections: &[String]) -> Result<Vec<usize>, Error> {
    let regions = Regions::of(model);
    let mut chosen = Vec::new();
    for selection in selections {
        for bins in regions.bins(Setting::Channel, selection)? {
            let whole = (0..model.channels.len()).find(|&channel| model.channel_bins(channel) == bins);
            chosen.push(whole.ok_or_else(|| SimplifyError::Bins { selection: selection.clone() })?);
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    if chosen.is_empty() { Err(SimplifyError::NoChannel.into()) } else { Ok(chosen) }
}

/// Returns the best fit of `analysis`, and its covariance.
fn of_fit(analysis: &Analysis) -> Result<PointOfExpansion, Error> {
    let mut likelihood = analysis.likelihood()?;
    let mut problem = analysis.problem(&mut likelihood);
    let found = fit(&mut problem);
    if !found.converged {
        return Err(SimplifyError::Background { warnings: found.warnings }.into());
    }
    let covariance = Propagator::postfit(problem.model, problem.likelihood, &found.bestfit, &analysis.domain());
    let at_bounds = found.at_bounds.into_iter().map(|at| at.parameter).collect();
    Ok(PointOfExpansion { params: found.bestfit, covariance, warnings: found.warnings, at_bounds })
}

/// Returns the parameters of `analysis` where their auxiliary data are, and what their constraint
/// terms say of them.
fn of_constraints(analysis: &Analysis) -> Result<PointOfExpansion, Error> {
    let model = analysis.model();
    let (domain, start) = domain_and_start(model, analysis.options());
    let is_loose = |&i: &usize| !domain.fixed[i] && model.parameters.constraint[i].is_none();
    if let Some(i) = (0..model.n_params()).find(is_loose) {
        return Err(SimplifyError::Undetermined { name: model.parameters.names[i].clone() }.into());
    }
    let covariance = Propagator::prefit(model, analysis.data(), &domain.fixed);
    let mut params = start;
    for ((i, constraint), &aux) in model.constraint_terms().zip(&analysis.data().aux) {
        if !domain.fixed[i] {
            params[i] = constraint.center(aux);
        }
    }
    Ok(PointOfExpansion { params, covariance, warnings: Vec::new(), at_bounds: Vec::new() })
}
