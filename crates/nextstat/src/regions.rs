//! Which channels and bins a fit uses: by name, by pattern, or bin by bin.

use crate::error::{Setting, SettingsError};
use crate::settings::Settings;
use ns_core::Model;
use ns_core::pattern::{is_pattern, matches};
use serde_json::{Map, Value, json};
use std::ops::Range;

impl Settings {
    /// Returns which bins of `model` (B) are masked, if any are.
    ///
    /// # Errors
    /// A channel or a bin that the model does not have, or no bin that is left.
    pub(crate) fn masked_bins(&self, model: &Model) -> Result<Option<Vec<bool>>, SettingsError> {
        let mut masked = vec![!self.fit_channels.is_empty(); model.n_bins()];
        for name in &self.fit_channels {
            bins(model, Setting::FitChannels, name)?.into_iter().for_each(|bins| masked[bins].fill(false));
        }
        for name in &self.mask {
            bins(model, Setting::Mask, name)?.into_iter().for_each(|bins| masked[bins].fill(true));
        }
        match masked.iter().filter(|is_masked| **is_masked).count() {
            0 => Ok(None),
            n if n == masked.len() => Err(SettingsError::EverythingMasked),
            _ => Ok(Some(masked)),
        }
    }
}

/// Returns the bins of the model that `selection` names: a channel, a pattern of channels, or bins
/// of either (`SR[3]`, `SR[2:5]` for bins 2 to 4).
///
/// # Errors
/// [`SettingsError::UnknownChannel`], or [`SettingsError::NoSuchBins`].
pub fn bins(model: &Model, setting: Setting, selection: &str) -> Result<Vec<Range<usize>>, SettingsError> {
    let whole = channels(model, selection);
    if !whole.is_empty() {
        return Ok(whole.into_iter().map(|channel| model.channel_bins(channel)).collect());
    }
    let unknown = |name: &str| SettingsError::UnknownChannel {
        setting,
        name: name.to_owned(),
        similar: ns_core::similar_name(name, model.channels.iter().map(String::as_str)).map(str::to_owned),
    };
    let (name, text) = selection
        .strip_suffix(']')
        .and_then(|selection| selection.rsplit_once('['))
        .ok_or_else(|| unknown(selection))?;
    let found = channels(model, name);
    if found.is_empty() {
        return Err(unknown(name));
    }
    let piece = |channel: usize| {
        let bins = model.channel_bins(channel);
        let no_such_bins = || SettingsError::NoSuchBins {
            setting,
            selection: selection.to_owned(),
            channel: model.channels[channel].clone(),
            n_bins: bins.len(),
        };
        let run = run(text, bins.len()).ok_or_else(no_such_bins)?;
        Ok(bins.start + run.start..bins.start + run.end)
    };
    found.into_iter().map(piece).collect()
}

/// Returns the channels that `name` names, itself or as a pattern.
fn channels(model: &Model, name: &str) -> Vec<usize> {
    let all = || 0..model.channels.len();
    if let Some(channel) = all().find(|&c| model.channels[c] == name) {
        return vec![channel];
    }
    all().filter(|&c| is_pattern(name) && matches(name, &model.channels[c])).collect()
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

/// Returns the masked bins by channel, `all` for a whole channel.
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
