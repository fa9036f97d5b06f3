//! Errors of operations on workspaces.

use std::fmt;

use ns_core::similar_name;
use ns_core::spec::ModifierKind;

use super::difference::{PlacedValue, WorkspaceDifference};
use crate::hint::in_backticks;

/// Why workspaces cannot be combined, pruned or renamed as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// A name that the workspace does not have.
    #[error("the workspace has no {part} named `{name}`")]
    Unknown {
        /// The kind of item.
        part: WorkspacePart,
        /// Its name.
        name: String,
        /// The names that it has, sorted.
        known: Vec<String>,
    },
    /// A type that no modifier has.
    #[error("no modifier of the workspace is of the type `{}`", .kind.as_str())]
    NoSuchType {
        /// The type.
        kind: ModifierKind,
        /// The types that it has.
        known: Vec<ModifierKind>,
    },
    /// A list that must have an entry and would have none.
    #[error("no {part} would be left{}", in_channel(.channel.as_deref()))]
    Emptied {
        /// The kind of item that would be missing.
        part: WorkspacePart,
        /// The channel; `None` for the whole workspace.
        channel: Option<String>,
    },
    /// Two new names for one item.
    #[error("the {part} `{name}` is given two new names, `{}` and `{}`", .to[0], .to[1])]
    RenamedTwice {
        /// The kind of item.
        part: WorkspacePart,
        /// Its name.
        name: String,
        /// The new names.
        to: [String; 2],
    },
    /// A new name that another item has.
    #[error("the {part} `{name}` cannot be called `{to}`: {scope} would have that name twice")]
    Taken {
        /// The kind of item.
        part: WorkspacePart,
        /// Its name.
        name: String,
        /// The new name.
        to: String,
        /// Where the name would be twice.
        scope: NameScope,
    },
    /// A new name that would change what a formula means.
    #[error("the modifier `{name}` cannot be called `{to}`: a formula has that name or uses it")]
    NamedInFormula {
        /// The modifier's name.
        name: String,
        /// The new name.
        to: String,
    },
    /// Another name for a `lumi` modifier.
    #[error("a `lumi` modifier must be named `lumi`, not `{to}`")]
    LumiRenamed {
        /// The new name.
        to: String,
    },
    /// A parameter is to be removed that a formula names.
    #[error("cannot remove the parameter `{parameter}`: the formula of `{formula}` names it")]
    InFormula {
        /// The parameter.
        parameter: String,
        /// The formula or morphing modifier.
        formula: String,
    },
    /// Names that both workspaces have, although none may be in both.
    #[error("both have the {part}{} {}", plural(.names), in_backticks(.names))]
    InBoth {
        /// The kind of item.
        part: WorkspacePart,
        /// The names, sorted.
        names: Vec<String>,
    },
    /// A name that one of two workspaces has twice.
    #[error("the {side} one has the {part} `{name}` twice in {scope}")]
    Twice {
        /// Which workspace.
        side: WorkspaceSide,
        /// The kind of item.
        part: WorkspacePart,
        /// Its name.
        name: String,
        /// The part of the document that has the name.
        scope: NameScope,
    },
    /// Items of the same name that differ.
    #[error("the {part} `{name}` of the two differs: {difference}")]
    Differs {
        /// The kind of item.
        part: WorkspacePart,
        /// Its name.
        name: String,
        /// The first difference.
        difference: Box<WorkspaceDifference>,
    },
    /// Merged channels, although no name may be in both workspaces.
    #[error("channels are merged by outer joins only")]
    MergeWithoutJoin,
}

/// A part of a workspace that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkspacePart {
    /// A channel.
    Channel,
    /// A sample.
    Sample,
    /// A modifier.
    Modifier,
    /// A measurement.
    Measurement,
    /// The observed data of a channel.
    Observation,
    /// The settings of a measurement for one parameter.
    Setting,
}

/// Where names are unique.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameScope {
    /// The whole workspace.
    Workspace,
    /// A channel.
    Channel(String),
    /// A sample of a channel.
    Sample {
        /// The channel.
        channel: String,
        /// The sample.
        sample: String,
    },
    /// A measurement.
    Measurement(String),
}

/// One of two workspaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceSide {
    /// The first.
    Left,
    /// The second.
    Right,
}

impl WorkspaceError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { name, known, .. } => similar_name(name, known.iter().map(String::as_str))
                .map(|similar| format!("names are case sensitive; did you mean `{similar}`?"))
                .or_else(|| some_of(known)),
            Self::NoSuchType { known, .. } if known.is_empty() => None,
            Self::NoSuchType { known, .. } => {
                Some(format!("it has {}", in_backticks(known.iter().map(|kind| kind.as_str()))))
            }
            Self::Emptied { part: WorkspacePart::Sample, channel: Some(channel) } => {
                Some(format!("leave out the channel `{channel}` as a whole"))
            }
            Self::InBoth { part: WorkspacePart::Measurement, .. } => {
                Some("rename them in one workspace, or merge what they set with an outer join".to_owned())
            }
            Self::InBoth { .. } => Some("rename them in one workspace, or choose an outer join".to_owned()),
            Self::Differs { part: WorkspacePart::Channel, .. } => {
                Some("left and right outer joins keep one of the two; merging keeps the samples of both".to_owned())
            }
            Self::Differs { .. } => Some("left and right outer joins keep one of the two".to_owned()),
            Self::InFormula { formula, .. } => Some(format!("remove `{formula}` too, or fix the parameter in fits")),
            Self::NamedInFormula { .. } => Some("choose a name that nothing has and no formula uses".to_owned()),
            Self::MergeWithoutJoin => Some("choose `outer`, `left outer` or `right outer` as the join".to_owned()),
            _ => None,
        }
    }
}

/// Returns a hint with as many names as fit into a line.
fn some_of(known: &[String]) -> Option<String> {
    const SHOWN: usize = 10;
    match known.len() {
        0 => None,
        all if all <= SHOWN => Some(format!("it has {}", in_backticks(known))),
        all => Some(format!("it has {all}, {} and others", in_backticks(&known[..SHOWN]))),
    }
}

fn plural(names: &[String]) -> &'static str {
    if names.len() == 1 { "" } else { "s" }
}

fn in_channel(channel: Option<&str>) -> String {
    channel.map_or_else(String::new, |channel| format!(" in the channel `{channel}`"))
}

impl fmt::Display for WorkspacePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Channel => "channel",
            Self::Sample => "sample",
            Self::Modifier => "modifier",
            Self::Measurement => "measurement",
            Self::Observation => "observation",
            Self::Setting => "parameter setting",
        })
    }
}

impl fmt::Display for NameScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace => f.write_str("the workspace"),
            Self::Channel(name) => write!(f, "the channel `{name}`"),
            Self::Sample { channel, sample } => write!(f, "the sample `{sample}` of the channel `{channel}`"),
            Self::Measurement(name) => write!(f, "the measurement `{name}`"),
        }
    }
}

impl fmt::Display for WorkspaceSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "first",
            Self::Right => "second",
        })
    }
}

impl fmt::Display for WorkspaceDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of the first, {} of the second", self.left, self.right)
    }
}

impl fmt::Display for PlacedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Some(found) => write!(f, "{found} at `{}`", self.pointer),
            None => write!(f, "nothing at `{}`", self.pointer),
        }
    }
}
