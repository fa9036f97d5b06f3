//! Which channels and bins a fit uses, and whose data are hidden: by name, by pattern, bin by bin,
//! or by the signal in them.

use crate::blinding::{Blinding, BlindingThreshold};
use crate::error::{NeedsPoi, Setting, SettingsError};
use crate::settings::Settings;
use ns_core::expected::expected_main;
use ns_core::pattern::{is_pattern, matches};
use ns_core::{Data, Model};
use ns_inference::FitOptions;
use ns_inference::options::domain_and_start;
use serde_json::{Map, Value, json};
use std::ops::Range;

impl Settings {
    /// Returns which bins of `model` (B) are masked, if any are; `hidden` ones (B) are, too, unless
    /// they are to be fitted.
    ///
    /// # Errors
    /// A channel or a bin that the model does not have, or no bin that is left.
    pub(crate) fn masked_bins(
        &self,
        model: &Model,
        hidden: Option<&[bool]>,
    ) -> Result<Option<Vec<bool>>, SettingsError> {
        let regions = Regions::of(model);
        let mut masked = vec![!self.fit_channels.is_empty(); model.n_bins()];
        for name in &self.fit_channels {
            regions.bins(Setting::FitChannels, name)?.into_iter().for_each(|bins| masked[bins].fill(false));
        }
        for name in &self.mask {
            regions.bins(Setting::Mask, name)?.into_iter().for_each(|bins| masked[bins].fill(true));
        }
        let hidden = hidden.filter(|_| !self.blind.is_fitted);
        masked.iter_mut().zip(hidden.into_iter().flatten()).for_each(|(masked, hidden)| *masked |= *hidden);
        match masked.iter().filter(|is_masked| **is_masked).count() {
            0 => Ok(None),
            n if n == masked.len() && hidden.is_some() && self.blind.may_hide_all => Ok(None),
            n if n == masked.len() => Err(match hidden {
                None => SettingsError::EverythingMasked,
                Some(_) => SettingsError::EverythingBlinded,
            }),
            _ => Ok(Some(masked)),
        }
    }

    /// Returns which bins of `model` (B) are hidden; `None` if no blinding was asked for.
    ///
    /// # Errors
    /// A channel or a bin that the model does not have, a threshold that is no number, or one
    /// without a parameter of interest.
    pub(crate) fn hidden_bins(&self, model: &Model, options: &FitOptions) -> Result<Option<Vec<bool>>, SettingsError> {
        let Blinding { bins, above, .. } = &self.blind;
        if bins.is_empty() && above.is_none() {
            return Ok(None);
        }
        let mut hidden = Regions::of(model).selected(Setting::Blind, bins)?;
        if let Some(threshold) = above {
            let above = bins_above(model, options, *threshold)?;
            hidden.iter_mut().zip(above).for_each(|(hidden, above)| *hidden |= above);
        }
        Ok(Some(hidden))
    }
}

/// Returns which bins (B) have at least as much signal as `threshold`, before the fit.
fn bins_above(
    model: &Model,
    options: &FitOptions,
    BlindingThreshold { value, measure }: BlindingThreshold,
) -> Result<Vec<bool>, SettingsError> {
    if !(value.is_finite() && value >= 0.0) {
        return Err(SettingsError::BadThreshold { value });
    }
    if model.pois.is_empty() {
        return Err(SettingsError::NoPoi(NeedsPoi::Setting(Setting::BlindAbove)));
    }
    let (_, start) = domain_and_start(model, options);
    let expected = |poi: f64| {
        let mut point = start.clone();
        model.pois.iter().for_each(|&i| point[i] = poi);
        expected_main(model, &point)
    };
    let (both, background) = (expected(1.0), expected(0.0));
    // A measure that is not a number hides the bin.
    let is_below = |both: f64, b: f64| measure.of(both - b, b) < value;
    Ok(both.iter().zip(&background).map(|(both, b)| !is_below(*both, *b)).collect())
}

/// Returns `data` with NaN in the bins that are `hidden` (B).
pub(crate) fn without_hidden(data: &Data, hidden: &[bool]) -> Data {
    let shown = |(count, hidden): (&f64, &bool)| if *hidden { f64::NAN } else { *count };
    Data { main: data.main.iter().zip(hidden).map(shown).collect(), ..data.clone() }
}

/// The channels of a model or of a result: their names, and the bins of each.
///
/// ```
/// use nextstat::error::Setting;
/// use nextstat::regions::Regions;
///
/// let regions = Regions::new(&["CR", "SR"], &[1, 3]);
/// assert_eq!(regions.selected(Setting::Blind, &["SR[1:]"])?, [false, false, true, true]);
/// # Ok::<(), nextstat::error::SettingsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regions<'a> {
    names: Vec<&'a str>,
    bins: Vec<Range<usize>>,
}

impl<'a> Regions<'a> {
    /// Returns the channels of `model`.
    #[must_use]
    pub fn of(model: &'a Model) -> Self {
        let names = model.channels.iter().map(String::as_str).collect();
        Self { names, bins: (0..model.channels.len()).map(|channel| model.channel_bins(channel)).collect() }
    }

    /// Returns the channels `names` (C) with numbers of bins `n_bins` (C).
    #[must_use]
    pub fn new(names: &[&'a str], n_bins: &[usize]) -> Self {
        let mut end = 0;
        let mut bins_of = |n: &usize| {
            end += n;
            end - n..end
        };
        Self { bins: n_bins.iter().map(&mut bins_of).collect(), names: names.to_vec() }
    }

    /// Returns which bins (B) one of the `selections` names.
    ///
    /// # Errors
    /// As [`Regions::bins`].
    pub fn selected(&self, setting: Setting, selections: &[impl AsRef<str>]) -> Result<Vec<bool>, SettingsError> {
        let mut selected = vec![false; self.bins.last().map_or(0, |bins| bins.end)];
        for selection in selections {
            let bins = self.bins(setting, selection.as_ref())?;
            bins.into_iter().for_each(|bins| selected[bins].fill(true));
        }
        Ok(selected)
    }

    /// Returns the bins that `selection` names: a channel, a pattern of channels, or bins of either
    /// (`SR[3]`, `SR[2:5]` for bins 2 to 4).
    ///
    /// # Errors
    /// [`SettingsError::UnknownChannel`], or [`SettingsError::NoSuchBins`].
    pub fn bins(&self, setting: Setting, selection: &str) -> Result<Vec<Range<usize>>, SettingsError> {
        let whole = self.channels(selection);
        if !whole.is_empty() {
            return Ok(whole.into_iter().map(|channel| self.bins[channel].clone()).collect());
        }
        let unknown = |name: &str| SettingsError::UnknownChannel {
            setting,
            name: name.to_owned(),
            similar: ns_core::similar_name(name, self.names.iter().copied()).map(str::to_owned),
        };
        let (name, text) = selection
            .strip_suffix(']')
            .and_then(|selection| selection.rsplit_once('['))
            .ok_or_else(|| unknown(selection))?;
        let found = self.channels(name);
        if found.is_empty() {
            return Err(unknown(name));
        }
        let piece = |channel: usize| {
            let bins = self.bins[channel].clone();
            let no_such_bins = || SettingsError::NoSuchBins {
                setting,
                selection: selection.to_owned(),
                channel: self.names[channel].to_owned(),
                n_bins: bins.len(),
            };
            let run = run(text, bins.len()).ok_or_else(no_such_bins)?;
            Ok(bins.start + run.start..bins.start + run.end)
        };
        found.into_iter().map(piece).collect()
    }

    /// Returns the channels that `name` names, itself or as a pattern.
    fn channels(&self, name: &str) -> Vec<usize> {
        let all = || 0..self.names.len();
        if let Some(channel) = all().find(|&c| self.names[c] == name) {
            return vec![channel];
        }
        all().filter(|&c| is_pattern(name) && matches(name, self.names[c])).collect()
    }
}

/// Reads `3` or `2:5`, of which either end may be left out; `None` for bins that are not among
/// `n_bins`.
fn run(text: &str, n_bins: usize) -> Option<Range<usize>> {
    let end = |text: &str, default: usize| {
        if text.trim().is_empty() { Some(default) } else { text.trim().parse::<usize>().ok() }
    };
    let run = match text.split_once(':') {
        Some((start, stop)) => end(start, 0)?..end(stop, n_bins)?,
        None => {
            let bin: usize = text.trim().parse().ok()?;
            bin..bin.checked_add(1)?
        }
    };
    (run.start < run.end && run.end <= n_bins).then_some(run)
}

/// Returns the `masked` or hidden bins (B) by channel, `all` for a whole channel.
pub(crate) fn by_channel(model: &Model, masked: &[bool]) -> Map<String, Value> {
    let channel = |c: usize| {
        let bins = model.channel_bins(c);
        let n_bins = bins.len();
        let found: Vec<usize> = bins.clone().filter(|&b| masked[b]).map(|b| b - bins.start).collect();
        let value = if found.len() == n_bins { json!("all") } else { json!(found) };
        (!found.is_empty()).then(|| (model.channels[c].clone(), value))
    };
    (0..model.channels.len()).filter_map(channel).collect()
}
