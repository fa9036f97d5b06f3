//! Combines, prunes, renames and sorts workspaces as documents, like the methods of pyhf's
//! `Workspace`; correlates and splits parameters as a [`CorrelationMap`] says.
//!
//! A [`WorkspaceDocument`] is a workspace with the spelling of every number (`5` or `5.0`), so that
//! untouched parts stay as they are, and digests of the result equal those of pyhf. Results are
//! checked where an operation could invalidate them; whether a document makes a model is not.

mod combine;
mod correlate;
mod difference;
mod error;
mod map;
mod mapped;
mod prune;
mod read;
mod rename;
mod report;
mod settings;
mod sort;
mod split;
mod uses;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use ns_core::spec::ModifierKind;
use serde::{Serialize, Serializer};

pub use combine::{ChannelJoin, CombinedWorkspace, JoinDecision, combine};
pub use difference::{PlacedValue, WorkspaceDifference};
pub use error::{NameScope, WorkspaceError, WorkspacePart, WorkspaceSide};
pub use map::{CorrelationMap, MapError, MapProblem, MapSyntax, SameNames, SplitBy};
pub use mapped::{DecorrelateRequest, LabelledWorkspace, MappedWorkspace, combine_by_map, decorrelate, stem};
pub use prune::{OrphanedMeasurement, PruneRequest, PrunedWorkspace, prune};
pub use rename::{NewName, RenameRequest, rename};
pub use report::{
    AnalysisSummary, CombinationReport, CombinedParameter, CorrelatedBy, MeasurementSummary, ParameterUse, RuleOutcome,
    report_by_name,
};
pub use sort::sort;

use crate::json::WrittenValue;
use crate::pyhf::formula;

/// How two workspaces are joined: what happens to a channel, an observation or a measurement whose
/// name both have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WorkspaceJoin {
    /// No channel may be in both; measurements of one name and one parameter of interest are
    /// merged, and must agree on what both set.
    #[default]
    Distinct,
    /// No name may be in both, as in pyhf.
    None,
    /// Items of both must be equal; measurements of one parameter of interest may set different
    /// parameters.
    Outer,
    /// That of the first workspace is kept.
    LeftOuter,
    /// That of the second workspace is kept; items of the second also come first.
    RightOuter,
}

/// A workspace as a document, in document order. It serializes with sorted keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkspaceDocument {
    channels: Vec<Channel>,
    measurements: Vec<Measurement>,
    observations: Vec<Observation>,
    version: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Channel {
    name: String,
    samples: Vec<Sample>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Sample {
    #[serde(skip_serializing_if = "Option::is_none")]
    clip: Option<WrittenValue>,
    data: WrittenValue,
    modifiers: Vec<Modifier>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    normalize: Option<WrittenValue>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Modifier {
    data: WrittenValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    interpolation: Option<WrittenValue>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<WrittenValue>,
    #[serde(rename = "type")]
    kind: ModifierKind,
    /// The names in its formulas.
    #[serde(skip)]
    parameters: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Observation {
    data: WrittenValue,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Measurement {
    config: Config,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Config {
    #[serde(skip_serializing_if = "Option::is_none")]
    clip: Option<WrittenValue>,
    parameters: Vec<Setting>,
    /// Empty for none.
    poi: String,
}

impl Config {
    /// Returns the names of the parameters of interest, the first one first.
    fn pois(&self) -> impl Iterator<Item = &str> {
        let first = Some(&*self.poi).filter(|poi| !poi.is_empty());
        let others = self.parameters.iter().filter(|setting| setting.is_poi()).map(|setting| &*setting.name);
        first.into_iter().chain(others.filter(move |name| Some(*name) != first))
    }

    /// Makes `poi` the only parameter of interest.
    fn set_poi(&mut self, poi: &str) {
        poi.clone_into(&mut self.poi);
        self.parameters.retain_mut(|setting| setting.values.remove("poi").is_none() || !setting.values.is_empty());
    }
}

/// The settings of a measurement for one parameter.
#[derive(Debug, Clone, PartialEq)]
struct Setting {
    name: String,
    /// Those of [`crate::pyhf::PARAMETER_KEYS`] that are given, without the name.
    values: BTreeMap<String, WrittenValue>,
}

impl Setting {
    /// Returns whether it makes its parameter one of interest.
    fn is_poi(&self) -> bool {
        self.values.get("poi") == Some(&WrittenValue::Bool(true))
    }
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = WrittenValue::Text(self.name.clone());
        let values = self.values.iter().map(|(key, value)| (key.as_str(), value));
        let members: BTreeMap<&str, &WrittenValue> = values.chain([("name", &name)]).collect();
        members.serialize(serializer)
    }
}

/// The numbers of items of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceCounts {
    /// The number of channels.
    pub channels: usize,
    /// Samples, counted in each channel.
    pub samples: usize,
    /// Modifiers, counted in each sample.
    pub modifiers: usize,
    /// The number of measurements.
    pub measurements: usize,
}

impl WorkspaceDocument {
    /// Returns the numbers of its items.
    #[must_use]
    pub fn counts(&self) -> WorkspaceCounts {
        WorkspaceCounts {
            channels: self.channels.len(),
            samples: self.samples().count(),
            modifiers: self.modifiers().count(),
            measurements: self.measurements.len(),
        }
    }

    /// Returns the part of the workspace with these channels, and the settings of the parameters
    /// that they use.
    #[must_use]
    pub fn part(&self, channels: &[String]) -> Self {
        let mut part = self.clone();
        part.channels.retain(|channel| channels.contains(&channel.name));
        part.observations.retain(|observation| channels.contains(&observation.name));
        let used: HashSet<String> = part.names(WorkspacePart::Modifier).into_iter().map(str::to_owned).collect();
        for Measurement { config, .. } in &mut part.measurements {
            config.parameters.retain(|setting| used.contains(&setting.name));
            if !used.contains(&config.poi) {
                config.poi.clear();
            }
        }
        part
    }

    fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.channels.iter().flat_map(|channel| &channel.samples)
    }

    fn modifiers(&self) -> impl Iterator<Item = &Modifier> {
        self.samples().flat_map(|sample| &sample.modifiers)
    }

    /// Returns the names of its `part`s, in document order, with duplicates.
    fn names(&self, part: WorkspacePart) -> Vec<&str> {
        match part {
            WorkspacePart::Channel => names(&self.channels),
            WorkspacePart::Sample => self.samples().map(Named::name).collect(),
            WorkspacePart::Modifier => {
                let names =
                    self.modifiers().flat_map(|modifier| [&modifier.name].into_iter().chain(&modifier.parameters));
                names.map(String::as_str).collect()
            }
            WorkspacePart::Measurement => names(&self.measurements),
            WorkspacePart::Observation => names(&self.observations),
            WorkspacePart::Setting => self.measurements.iter().flat_map(|m| names(&m.config.parameters)).collect(),
        }
    }
}

impl Modifier {
    /// Gives the parameters in its formulas the names that `new_name` returns.
    fn rename_parameters(&mut self, new_name: impl Fn(&str) -> String) {
        if self.kind.has_formula() {
            formula::rename(&mut self.data, &new_name);
            self.parameters = formula::names(&self.data);
        }
    }
}

/// An item that is found by its name.
trait Named {
    fn name(&self) -> &str;
}

fn names<T: Named>(items: &[T]) -> Vec<&str> {
    items.iter().map(Named::name).collect()
}

macro_rules! named {
    ($($kind:ty),+) => {
        $(impl Named for $kind {
            fn name(&self) -> &str {
                &self.name
            }
        })+
    };
}

named!(Channel, Sample, Modifier, Observation, Measurement, Setting);
