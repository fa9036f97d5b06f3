//! The checks that need no parameters: names unique, lengths equal, numbers finite, observations
//! present.

use super::error::{CompileError, SamplePlace};
use crate::spec::{Channel, Modifier, ModifierData, ModifierKind, Workspace};
use std::collections::HashMap;

/// The indices that channels and samples have in the document, in the order of the model.
pub(super) struct SortedOrder {
    /// Indices of the channels, sorted by name (C).
    pub(super) channels: Vec<usize>,
    /// For each channel, in that order: indices of its samples, sorted by name.
    pub(super) samples: Vec<Vec<usize>>,
}

pub(super) fn place(workspace: &Workspace, channel: usize, sample: usize, rest: &str) -> SamplePlace {
    let c = &workspace.channels[channel];
    SamplePlace {
        pointer: format!("/channels/{channel}/samples/{sample}{rest}"),
        channel: c.name.clone(),
        sample: c.samples[sample].name.clone(),
    }
}

/// Checks the channels and returns the order of the model.
pub(super) fn check(workspace: &Workspace) -> Result<SortedOrder, CompileError> {
    let names = workspace.channels.iter().map(|c| c.name.as_str());
    unique("channel", names, |i| format!("/channels/{i}"))?;
    if workspace.channels.is_empty() {
        return Err(CompileError::Empty {
            what: "workspace",
            name: "channels".to_owned(),
            pointer: "/channels".to_owned(),
        });
    }
    for (c, channel) in workspace.channels.iter().enumerate() {
        check_channel(workspace, c, channel)?;
    }
    let sorted = |names: Vec<&str>| {
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|&i| names[i]);
        order
    };
    let channels = sorted(workspace.channels.iter().map(|c| c.name.as_str()).collect());
    let samples_of = |&c: &usize| sorted(workspace.channels[c].samples.iter().map(|s| s.name.as_str()).collect());
    let samples = channels.iter().map(samples_of).collect();
    Ok(SortedOrder { channels, samples })
}

fn check_channel(workspace: &Workspace, c: usize, channel: &Channel) -> Result<(), CompileError> {
    unique("sample", channel.samples.iter().map(|s| s.name.as_str()), |i| format!("/channels/{c}/samples/{i}"))?;
    let empty = |what, name: &str, pointer| Err(CompileError::Empty { what, name: name.to_owned(), pointer });
    let Some(first) = channel.samples.first() else {
        return empty("channel", &channel.name, format!("/channels/{c}/samples"));
    };
    for (s, sample) in channel.samples.iter().enumerate() {
        if sample.data.is_empty() {
            return empty("sample", &sample.name, format!("/channels/{c}/samples/{s}/data"));
        }
        let (expected, found) = (first.data.len(), sample.data.len());
        if expected != found {
            return Err(CompileError::SampleLength { place: place(workspace, c, s, "/data"), expected, found });
        }
        check_sample(workspace, c, s)?;
    }
    Ok(())
}

fn check_sample(workspace: &Workspace, c: usize, s: usize) -> Result<(), CompileError> {
    let sample = &workspace.channels[c].samples[s];
    finite(&sample.data, || format!("/channels/{c}/samples/{s}/data"))?;
    finite_limit(sample.template.clip, || format!("/channels/{c}/samples/{s}/clip"))?;
    let mut seen: HashMap<(&str, ModifierKind), usize> = HashMap::with_capacity(sample.modifiers.len());
    for (m, modifier) in sample.modifiers.iter().enumerate() {
        let pointer = |m: usize| format!("/channels/{c}/samples/{s}/modifiers/{m}");
        if let Some(first) = seen.insert((&modifier.name, modifier.kind()), m) {
            let name = modifier.name.clone();
            return Err(CompileError::Duplicate { what: "modifier", name, first: pointer(first), pointer: pointer(m) });
        }
        ModifierCheck { workspace, at: [c, s, m], modifier }.data()?;
    }
    super::responses::check(sample, &format!("/channels/{c}/samples/{s}"))
}

/// A modifier that is checked.
struct ModifierCheck<'a> {
    workspace: &'a Workspace,
    /// Channel, sample and modifier in the document.
    at: [usize; 3],
    modifier: &'a Modifier,
}

impl ModifierCheck<'_> {
    fn place(&self, rest: &str) -> SamplePlace {
        let [c, s, m] = self.at;
        place(self.workspace, c, s, &format!("/modifiers/{m}{rest}"))
    }

    /// Rejects numbers that are no data of a modifier of this kind.
    fn data(&self) -> Result<(), CompileError> {
        match &self.modifier.data {
            ModifierData::HistoSys { lo_data, hi_data } => {
                self.list("lo_data", lo_data, "/data/lo_data")?;
                self.list("hi_data", hi_data, "/data/hi_data")
            }
            ModifierData::ShapeSys(data) | ModifierData::StatError(data) | ModifierData::McStat(data) => {
                self.list("data", data, "/data")
            }
            ModifierData::NormSys { lo, hi } => {
                self.factor("lo", *lo)?;
                self.factor("hi", *hi)
            }
            ModifierData::Lumi if self.modifier.name != "lumi" => {
                Err(CompileError::LumiName { place: self.place("/name"), modifier: self.modifier.name.clone() })
            }
            ModifierData::Morphing(terms) => {
                let mut terms = terms.iter().enumerate();
                terms.try_for_each(|(k, term)| self.list("data", &term.data, &format!("/data/terms/{k}/data")))
            }
            ModifierData::Formula(_) | ModifierData::Lumi | ModifierData::NormFactor | ModifierData::ShapeFactor => {
                Ok(())
            }
        }
    }

    /// Rejects a list that has not one finite number for each bin.
    fn list(&self, field: &'static str, values: &[f64], rest: &str) -> Result<(), CompileError> {
        let [c, s, _] = self.at;
        let (expected, found) = (self.workspace.channels[c].samples[s].data.len(), values.len());
        if found != expected {
            let (kind, modifier) = (self.modifier.kind(), self.modifier.name.clone());
            return Err(CompileError::ModifierLength {
                place: self.place(rest),
                kind,
                modifier,
                field,
                expected,
                found,
            });
        }
        finite(values, || self.place(rest).pointer)
    }

    /// Rejects a factor of a normsys that has no logarithm.
    fn factor(&self, field: &'static str, value: f64) -> Result<(), CompileError> {
        let place = || self.place(&format!("/data/{field}"));
        if !value.is_finite() {
            return Err(CompileError::NotFinite { pointer: place().pointer, value });
        }
        if value <= 0.0 {
            let (place, modifier) = (place(), self.modifier.name.clone());
            return Err(CompileError::NormSysNotPositive { place, modifier, field, value });
        }
        Ok(())
    }
}

/// Rejects the second of two equal names.
pub(super) fn unique<'a>(
    what: &'static str,
    names: impl Iterator<Item = &'a str>,
    pointer: impl Fn(usize) -> String,
) -> Result<(), CompileError> {
    let mut seen = HashMap::new();
    for (i, name) in names.enumerate() {
        if let Some(first) = seen.insert(name, i) {
            return Err(CompileError::Duplicate {
                what,
                name: name.to_owned(),
                first: pointer(first),
                pointer: pointer(i),
            });
        }
    }
    Ok(())
}

/// Rejects a limit that is no number; `pointer` names it.
pub(super) fn finite_limit(limit: Option<f64>, pointer: impl Fn() -> String) -> Result<(), CompileError> {
    match limit.filter(|limit| !limit.is_finite()) {
        None => Ok(()),
        Some(value) => Err(CompileError::NotFinite { pointer: pointer(), value }),
    }
}

/// Rejects NaN and infinities in a list; `pointer` names the list.
pub(super) fn finite(values: &[f64], pointer: impl Fn() -> String) -> Result<(), CompileError> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(i) => Err(CompileError::NotFinite { pointer: format!("{}/{i}", pointer()), value: values[i] }),
    }
}

/// Returns the observed counts in the channel order of the model.
pub(super) fn observed(workspace: &Workspace, order: &SortedOrder) -> Result<Vec<f64>, CompileError> {
    let names = workspace.observations.iter().map(|o| o.name.as_str());
    unique("observation", names, |i| format!("/observations/{i}"))?;
    let mut main = Vec::new();
    for &c in &order.channels {
        let channel = &workspace.channels[c];
        let Some(o) = workspace.observations.iter().position(|o| o.name == channel.name) else {
            let is_channel = |name: &str| workspace.channels.iter().any(|c| c.name == name);
            let unused = workspace.observations.iter().filter(|o| !is_channel(&o.name)).map(|o| o.name.clone());
            return Err(CompileError::MissingObservation { channel: channel.name.clone(), unused: unused.collect() });
        };
        let data = &workspace.observations[o].data;
        let pointer = format!("/observations/{o}/data");
        let (expected, found) = (channel.samples[0].data.len(), data.len());
        if expected != found {
            return Err(CompileError::ObservationLength { channel: channel.name.clone(), pointer, expected, found });
        }
        finite(data, || pointer.clone())?;
        if let Some(bin) = data.iter().position(|&n| n < 0.0) {
            let (channel, value) = (channel.name.clone(), data[bin]);
            return Err(CompileError::NegativeObservation { channel, bin, value, pointer: format!("{pointer}/{bin}") });
        }
        main.extend_from_slice(data);
    }
    Ok(main)
}
