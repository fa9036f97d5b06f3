//! Correlation maps: which parameters of several workspaces are one, and which are split.
//!
//! A [`CorrelationMap`] is the document as written, with the place of every name for messages. What
//! it does to workspaces is in [`super::correlate`] and [`super::split`].

mod error;
mod read;
mod rules;

use ns_core::pattern;

pub use error::{MapError, MapProblem};
pub use read::MapSyntax;
pub(in crate::workspace) use rules::{chosen, matched};

use super::Setting;
use crate::place::DocumentPlace;

/// How the parameters of several workspaces are combined.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CorrelationMap {
    pub(in crate::workspace) analyses: Vec<AnalysisEntry>,
    pub(in crate::workspace) measurement: Option<String>,
    pub(in crate::workspace) poi: Option<Placed>,
    pub(in crate::workspace) same_names: SameNames,
    /// Where [`Self::same_names`] is, if it is there.
    pub(in crate::workspace) same_names_place: Option<DocumentPlace>,
    pub(in crate::workspace) correlate: Vec<CorrelateRule>,
    pub(in crate::workspace) decorrelate: Vec<DecorrelateRule>,
    pub(in crate::workspace) settings: Vec<(Setting, DocumentPlace)>,
    /// SHA-256 digest of the document as JSON; empty for a map that was not read.
    pub(in crate::workspace) sha256: String,
}

impl CorrelationMap {
    /// Returns the SHA-256 digest of the map as canonical JSON, the same for YAML and JSON; empty
    /// for a map that was not read from a document.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns the files of the workspaces as the map names them.
    ///
    /// # Errors
    /// A map without workspaces, or with one without a file.
    pub fn files(&self) -> Result<Vec<String>, MapError> {
        if self.analyses.is_empty() {
            return Err(MapError { problem: MapProblem::NoAnalyses, place: None });
        }
        let file = |entry: &AnalysisEntry| match &entry.file {
            Some(file) => Ok(file.text.clone()),
            None => Err(entry.label.error(MapProblem::NoFile { label: entry.label.text.clone() })),
        };
        self.analyses.iter().map(file).collect()
    }
}

/// What happens to a name that several workspaces have and no rule mentions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SameNames {
    /// They are one parameter.
    #[default]
    Correlate,
    /// Each workspace gets its own, with its label as a suffix.
    Decorrelate,
    /// A rule must say what they are.
    Error,
}

/// A name or a pattern and its place; `None` if it is not from a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::workspace) struct Placed {
    pub(in crate::workspace) text: String,
    pub(in crate::workspace) place: Option<DocumentPlace>,
}

impl Placed {
    pub(in crate::workspace) fn is_pattern(&self) -> bool {
        pattern::is_pattern(&self.text)
    }

    pub(in crate::workspace) fn error(&self, problem: MapProblem) -> MapError {
        MapError { problem, place: self.place.clone() }
    }
}

impl From<String> for Placed {
    fn from(text: String) -> Self {
        Self { text, place: None }
    }
}

/// What a map says of one workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::workspace) struct AnalysisEntry {
    pub(in crate::workspace) label: Placed,
    pub(in crate::workspace) file: Option<Placed>,
    pub(in crate::workspace) measurement: Option<Placed>,
}

/// Parameters that are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::workspace) struct CorrelateRule {
    /// The common name; its wildcards stand for what those of the members match.
    pub(in crate::workspace) name: Placed,
    pub(in crate::workspace) members: Members,
    pub(in crate::workspace) place: DocumentPlace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::workspace) enum Members {
    /// Parameters with the common name, of these workspaces; none are all.
    SameName(Vec<Placed>),
    /// Names and patterns for each workspace, with its label.
    Named(Vec<(Placed, Vec<Placed>)>),
}

/// Parameters that are split.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::workspace) struct DecorrelateRule {
    pub(in crate::workspace) parameters: Vec<Placed>,
    /// `None`: by workspace.
    pub(in crate::workspace) by: Option<SplitBy>,
    /// Labels; none are all.
    pub(in crate::workspace) analyses: Vec<Placed>,
    /// Channels of the modifiers that are split off; none are all.
    pub(in crate::workspace) channels: Vec<Placed>,
    /// Their samples; none are all.
    pub(in crate::workspace) samples: Vec<Placed>,
    /// Suffixes with the channels or samples that have them; without any, each has its own name.
    pub(in crate::workspace) parts: Vec<(Placed, Vec<Placed>)>,
    pub(in crate::workspace) place: Option<DocumentPlace>,
}

/// What the parts of a parameter differ in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SplitBy {
    /// The channel.
    #[default]
    Channel,
    /// The sample.
    Sample,
}

impl CorrelateRule {
    pub(in crate::workspace) fn error(&self, problem: MapProblem) -> MapError {
        MapError { problem, place: Some(self.place.clone()) }
    }
}

impl DecorrelateRule {
    pub(in crate::workspace) fn error(&self, problem: MapProblem) -> MapError {
        MapError { problem, place: self.place.clone() }
    }

    /// Returns whether the rule is for the workspace `label`.
    pub(in crate::workspace) fn is_for(&self, label: &str) -> bool {
        self.analyses.is_empty() || self.analyses.iter().any(|named| named.text == label)
    }
}
