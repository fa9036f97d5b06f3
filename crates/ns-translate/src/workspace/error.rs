//! What can be wrong with an operation on workspaces: names and places in variants, words in their messages, advice in `hint`.

use std::fmt;

use ns_core::similar_name;
use ns_core::spec::ModifierKind;

use super::difference::{PlacedValue, WorkspaceDifference};

/// Why workspaces cannot be combined, pruned or renamed as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// A name that the workspace does not have.
    #[error("the workspace has no {part} named `{name}`")]
    Unknown {
        /// What was looked for.
        part: WorkspacePart,
        /// Its name.
        name: String,
        /// The names that it does have, sorted.
        known: Vec<String>,
    },
    /// A type that no modifier has.
    #[error("no modifier of the workspace is of the type `{}`", .kind.as_str())]
    NoSuchType {
        /// The type.
        kind: ModifierKind,
        /// The types that it does have.
        known: Vec<ModifierKind>,
    },
    /// A list that must have an entry would have none.
    #[error("no {part} would be left{}", in_channel(.channel.as_deref()))]
    Emptied {
        /// What would be missing.
        part: WorkspacePart,
        /// In which channel, if in one.
        channel: Option<String>,
    },
    /// Two new names for one old.
    #[error("the {part} `{name}` is given two new names, `{}` and `{}`", .to[0], .to[1])]
    RenamedTwice {
        /// What is to be renamed.
        part: WorkspacePart,
        /// Its name.
        name: String,
        /// The new names.
        to: [String; 2],
    },
    /// A new name that is another's.
    #[error("the {part} `{name}` cannot be called `{to}`: {scope} would have that name twice")]
    Taken {
        /// What is to be renamed.
        part: WorkspacePart,
        /// Its name.
        name: String,
        /// The new name.
        to: String,
        /// Where the name would stand twice.
        scope: NameScope,
    },
    /// Another name for what has but one.
    #[error("a `lumi` modifier must be named `lumi`, not `{to}`")]
    LumiRenamed {
        /// The new name.
        to: String,
    },
    /// Names that both workspaces have, where none may be.
    #[error("both have the {part}{} {}", plural(.names), in_backticks(.names))]
    InBoth {
        /// What they name.
        part: WorkspacePart,
        /// The names, sorted.
        names: Vec<String>,
    },
    /// A name that one of two workspaces has twice.
    #[error("the {side} one has the {part} `{name}` twice in {scope}")]
    Twice {
        /// Which workspace.
        side: WorkspaceSide,
        /// What is there twice.
        part: WorkspacePart,
        /// Its name.
        name: String,
        /// Where.
        scope: NameScope,
    },
    /// Something of the same name that is not the same.
    #[error("the {part} `{name}` of the two differs: {difference}")]
    Differs {
        /// What differs.
        part: WorkspacePart,
        /// Its name.
        name: String,
        /// Where.
        difference: Box<WorkspaceDifference>,
    },
    /// Channels cannot be merged where no name may be in both workspaces.
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
    /// What was observed in a channel.
    Observation,
    /// What a measurement says of a parameter.
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
    /// One line of advice, where there is any.
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
            Self::MergeWithoutJoin => Some("choose `outer`, `left outer` or `right outer` as the join".to_owned()),
            _ => None,
        }
    }
}

/// So many names as a line has room for.
fn some_of(known: &[String]) -> Option<String> {
    const SHOWN: usize = 10;
    match known.len() {
        0 => None,
        all if all <= SHOWN => Some(format!("it has {}", in_backticks(known))),
        all => Some(format!("it has {all}, {} and others", in_backticks(&known[..SHOWN]))),
    }
}

fn in_backticks(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(", ")
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
