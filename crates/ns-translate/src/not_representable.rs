//! What a workspace has and a format does not have.

use std::collections::HashSet;
use std::fmt;

use ns_core::spec::{Clipping, Modifier, ModifierKind, Sample, Workspace};

/// Content of a workspace that a format cannot hold, with its place in the workspace as pyhf JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NotRepresentable {
    /// What it is, with its article.
    pub what: &'static str,
    /// The name of the modifier, parameter or measurement.
    pub name: String,
    /// The JSON pointer; empty for the whole workspace.
    pub pointer: String,
    /// What the format says against it, where `what` does not say it.
    pub reason: Option<String>,
}

impl fmt::Display for NotRepresentable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, name, pointer, reason } = self;
        write!(f, "{what} `{name}`")?;
        match (pointer.as_str(), reason) {
            ("", None) => Ok(()),
            ("", Some(reason)) => write!(f, " ({reason})"),
            (pointer, None) => write!(f, " (`{pointer}`)"),
            (pointer, Some(reason)) => write!(f, " (`{pointer}`: {reason})"),
        }
    }
}

/// The lowest values of templates that a format has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemplateLimits {
    /// None at all.
    None,
    /// That of ROOT: 0 in samples with a histosys.
    OfRoot,
}

impl TemplateLimits {
    /// Returns whether a template may have this limit.
    fn has(self, limit: Option<f64>) -> bool {
        limit.is_none_or(|limit| self == Self::OfRoot && limit == 0.0)
    }
}

/// Collects what a format cannot hold.
#[derive(Default)]
pub(crate) struct Lacking {
    items: Vec<NotRepresentable>,
    known: HashSet<NotRepresentable>,
}

impl Lacking {
    /// Adds something, unless it is known.
    pub(crate) fn add(&mut self, what: &'static str, name: &str, pointer: String) {
        self.push(NotRepresentable { what, name: name.to_owned(), pointer, reason: None });
    }

    /// Adds an item, unless it is known.
    pub(crate) fn push(&mut self, item: NotRepresentable) {
        if self.known.insert(item.clone()) {
            self.items.push(item);
        }
    }

    /// Adds the rules of yields of `workspace`, which no format but ours has: the lowest yields
    /// beside those of `limits`, templates that keep their sum, statistical uncertainties of whole
    /// bins, and the names of elements.
    pub(crate) fn add_yield_rules(&mut self, workspace: &Workspace, limits: TemplateLimits) {
        for (c, channel) in workspace.channels.iter().enumerate() {
            for (s, sample) in channel.samples.iter().enumerate() {
                self.add_sample(sample, limits, &format!("/channels/{c}/samples/{s}"));
            }
        }
        for (m, measurement) in workspace.measurements.iter().enumerate() {
            let pointer = format!("/measurements/{m}/config");
            let Clipping { templates, samples, bins } = measurement.clip;
            if samples.is_some() || bins.is_some() || !limits.has(templates) {
                self.add("clipping in the measurement", &measurement.name, format!("{pointer}/clip"));
            }
            for (p, config) in measurement.parameters.iter().enumerate().filter(|(_, config)| config.elements.is_some())
            {
                self.add("names of the elements of", &config.name, format!("{pointer}/parameters/{p}/elements"));
            }
        }
    }

    fn add_sample(&mut self, sample: &Sample, limits: TemplateLimits, pointer: &str) {
        let mut kinds = sample.modifiers.iter().map(Modifier::kind);
        let limits = if kinds.any(|kind| kind == ModifierKind::HistoSys) { limits } else { TemplateLimits::None };
        if !limits.has(sample.template.clip) {
            self.add("clipping of the sample", &sample.name, format!("{pointer}/clip"));
        }
        if sample.template.normalize {
            self.add("the normalised template of", &sample.name, format!("{pointer}/normalize"));
        }
        for (m, modifier) in sample.modifiers.iter().enumerate() {
            if modifier.kind() == ModifierKind::McStat {
                self.add("the mcstat", &modifier.name, format!("{pointer}/modifiers/{m}"));
            }
        }
    }

    /// Returns what was added, or `()` if nothing was.
    pub(crate) fn into_result(self) -> Result<(), Vec<NotRepresentable>> {
        if self.items.is_empty() { Ok(()) } else { Err(self.items) }
    }
}
