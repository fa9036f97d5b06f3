//! The background of the channels that are simplified: its fit to the other channels.

use crate::error::{NeedsPoi, Setting, SimplifyError};
use crate::regions::Regions;
use crate::{Analysis, CompiledModel, Error, Settings};
use ns_core::Model;
use ns_core::expected::expected_main;
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
    /// The strength of the signal, if the model has one.
    poi: Option<usize>,
    /// Parameters at the minimum, without signal (P).
    params: Vec<f64>,
    covariance: Arc<Propagator>,
    /// The warnings of the fit.
    pub(super) warnings: Vec<String>,
}

/// Where the yields are expanded.
struct PointOfExpansion {
    /// Parameters, without signal (P).
    params: Vec<f64>,
    /// What is known of them.
    covariance: Propagator,
    /// The warnings of the fit.
    warnings: Vec<String>,
}

impl Background {
    /// Fits the background of `model` to the channels that are not among `selections`.
    pub(super) fn fit(model: &CompiledModel, settings: &Settings, selections: &[String]) -> Result<Self, Error> {
        let channels = channels(model.model(), selections)?;
        let mut settings = settings.clone();
        let poi = Analysis::new(model, &settings)?.poi(NeedsPoi::Setting(Setting::Channel)).ok();
        if let Some(poi) = poi {
            fix_at_zero(&mut settings, &model.model().parameters.names[poi])?;
        }
        let is_fitted = channels.len() < model.model().channels.len();
        if is_fitted {
            settings.mask.extend(channels.iter().map(|&channel| model.model().channels[channel].clone()));
        }
        let analysis = Analysis::new(model, &settings)?;
        analysis.require_cpu("a simplified model")?;
        let PointOfExpansion { params, covariance, warnings } =
            if is_fitted { of_fit(&analysis)? } else { of_constraints(&analysis)? };
        let found = Self { analysis, channels, poi, params, covariance: Arc::new(covariance), warnings };
        found.require_data()?;
        Ok(found)
    }

    pub(super) fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// Returns the index of the strength of the signal, if there is one.
    pub(super) fn poi(&self) -> Option<usize> {
        self.poi
    }

    fn model(&self) -> &Model {
        self.analysis.whole_model()
    }

    /// Returns the moments of the yields.
    pub(super) fn moments(&self) -> Result<YieldMoments, Error> {
        let moments = YieldMoments::of(self.model(), &self.channels, &self.params, &self.covariance);
        let error = |error: NoMoments| match error {
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

    /// Returns the signal of `model`, whose strength is `poi`, in the simplified channels at a
    /// strength of 1. Parameters that the background does not have are nominal.
    pub(super) fn signal(&self, model: &Model, poi: usize) -> Result<Vec<f64>, SimplifyError> {
        let own = self.model();
        if own.channels != model.channels || own.n_bins() != model.n_bins() {
            return Err(SimplifyError::OtherBins);
        }
        let known: HashMap<&str, f64> =
            own.parameters.names.iter().map(String::as_str).zip(self.params.iter().copied()).collect();
        let named = model.parameters.names.iter().zip(&model.parameters.init);
        let mut point: Vec<f64> =
            named.map(|(name, init)| known.get(name.as_str()).copied().unwrap_or(*init)).collect();
        let [none, one, two] = [0.0, 1.0, 2.0].map(|strength| {
            point[poi] = strength;
            self.of_channels(&expected_main(model, &point))
        });
        let is_bent = |bin: &usize| {
            let bend = (two[*bin] - one[*bin]) - (one[*bin] - none[*bin]);
            bend.abs() > LINEAR * two[*bin].abs().max(1.0)
        };
        for (channel, mut bins) in self.channels() {
            if bins.any(|bin| is_bent(&bin)) {
                let name = model.parameters.names[poi].clone();
                return Err(SimplifyError::NotLinear { channel: channel.to_owned(), name });
            }
        }
        Ok(one.iter().zip(&none).map(|(one, none)| one - none).collect())
    }
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

/// Fixes the strength `name` of the signal at 0.
fn fix_at_zero(settings: &mut Settings, name: &str) -> Result<(), SimplifyError> {
    if let Some((_, value)) = settings.fixed.iter().find(|(fixed, value)| fixed == name && *value != 0.0) {
        return Err(SimplifyError::FixedSignal { name: name.to_owned(), value: *value });
    }
    settings.fixed.retain(|(fixed, _)| fixed != name);
    settings.fixed.push((name.to_owned(), 0.0));
    Ok(())
}

/// Returns the best fit of `analysis`, and its covariance.
fn of_fit(analysis: &Analysis) -> Result<PointOfExpansion, Error> {
    let mut likelihood = analysis.likelihood()?;
    let mut problem = analysis.problem(&mut likelihood);
    let found = fit(&mut problem);
    if !found.converged {
        return Err(SimplifyError::Background.into());
    }
    let covariance = Propagator::postfit(problem.model, problem.likelihood, &found.bestfit, &analysis.domain());
    Ok(PointOfExpansion { params: found.bestfit, covariance, warnings: found.warnings })
}

/// Returns the nominal parameters of `analysis`, and what their constraint terms say of them.
fn of_constraints(analysis: &Analysis) -> Result<PointOfExpansion, Error> {
    let model = analysis.model();
    let (domain, start) = domain_and_start(model, analysis.options());
    let is_loose = |&i: &usize| !domain.fixed[i] && model.parameters.constraint[i].is_none();
    if let Some(i) = (0..model.n_params()).find(is_loose) {
        return Err(SimplifyError::Undetermined { name: model.parameters.names[i].clone() }.into());
    }
    let covariance = Propagator::prefit(model, analysis.data(), &domain.fixed);
    Ok(PointOfExpansion { params: start, covariance, warnings: Vec::new() })
}
