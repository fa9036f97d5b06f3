//! Errors of correlation maps and of what they ask for.

use std::fmt;

use ns_core::similar_name;
use ns_core::spec::ModifierKind;

use super::super::{NameScope, WorkspacePart};
use crate::hint::{in_backticks, meant_or_known};
use crate::json::JsonError;
use crate::place::DocumentPlace;
use crate::pyhf::PyhfError;
use crate::yaml::YamlError;

/// Why a map cannot be read, or workspaces cannot be combined or split as it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapError {
    /// What is wrong.
    pub problem: MapProblem,
    /// Where in the map; `None` if nothing in it is to blame, or there is none.
    pub place: Option<DocumentPlace>,
}

/// What is wrong with a map, or with workspaces that it is for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapProblem {
    /// Text that is not JSON, or a value of another type.
    #[error(transparent)]
    Json(JsonError),
    /// Text that is not YAML.
    #[error(transparent)]
    Yaml(YamlError),
    /// A setting that pyhf does not have.
    #[error(transparent)]
    Setting(PyhfError),
    /// A map without workspaces, where it should name them.
    #[error("no workspaces were named, and the map has no `analyses`")]
    NoAnalyses,
    /// A workspace without a file, where the map should name it.
    #[error("no workspaces were named, and the map has no file for `{label}`")]
    NoFile {
        /// Its label.
        label: String,
    },
    /// A name without a character.
    #[error("a name is empty")]
    EmptyName,
    /// A word that is not one of a few.
    #[error("unknown word `{word}`")]
    UnknownWord {
        /// As written.
        word: String,
        /// The words.
        known: Vec<&'static str>,
    },
    /// A rule with two lists of members.
    #[error("a rule has `parameters` or `analyses`, not both")]
    TwoMembers,
    /// A key that a split by analysis does not have.
    #[error("`{key}` does not apply to a rule with `by: analysis`")]
    NotByAnalysis {
        /// The key.
        key: &'static str,
    },
    /// A pattern where a name is expected.
    #[error("`{name}` is a pattern, and one name is expected")]
    PatternAsName {
        /// As written.
        name: String,
    },
    /// A pattern with other wildcards than the common name.
    #[error("`{pattern}` has {}, and the common name `{name}` has {expected}", counted(*.found, "wildcard"))]
    Wildcards {
        /// The pattern.
        pattern: String,
        /// The common name.
        name: String,
        /// Wildcards of the pattern.
        found: usize,
        /// Wildcards of the name.
        expected: usize,
    },
    /// A label that no workspace has.
    #[error("no workspace has the label `{label}`")]
    UnknownAnalysis {
        /// The label.
        label: String,
        /// The labels.
        known: Vec<String>,
    },
    /// A file that is not combined.
    #[error("no workspace is from the file `{file}`")]
    UnknownFile {
        /// As written.
        file: String,
        /// The files.
        known: Vec<String>,
    },
    /// A name of a file that several workspaces have.
    #[error("{n_found} workspaces are from a file `{file}`")]
    AmbiguousFile {
        /// As written.
        file: String,
        /// How many.
        n_found: usize,
    },
    /// A label of two workspaces.
    #[error("two workspaces have the label `{label}`")]
    LabelTwice {
        /// The label.
        label: String,
    },
    /// A measurement that a workspace does not have.
    #[error("`{analysis}` has no measurement named `{name}`")]
    UnknownMeasurement {
        /// The label of the workspace.
        analysis: String,
        /// The name.
        name: String,
        /// Its measurements.
        known: Vec<String>,
    },
    /// A workspace with several measurements, of which none is chosen.
    #[error("`{analysis}` has {} measurements, and one is combined", .known.len())]
    SeveralMeasurements {
        /// The label of the workspace.
        analysis: String,
        /// Its measurements.
        known: Vec<String>,
    },
    /// A workspace that has a name twice.
    #[error("`{analysis}` has the {part} `{name}` twice in {scope}")]
    Duplicate {
        /// The label of the workspace.
        analysis: String,
        /// The kind of item.
        part: WorkspacePart,
        /// Its name.
        name: String,
        /// The part of the document that has the name.
        scope: NameScope,
    },
    /// A channel that two workspaces have.
    #[error("`{}` and `{}` both have the channel `{channel}`", .analyses[0], .analyses[1])]
    ChannelInBoth {
        /// The channel.
        channel: String,
        /// The labels of the two.
        analyses: [String; 2],
    },
    /// A name that nothing has.
    #[error("{} no {what} named `{name}`", whose(.analysis.as_deref()))]
    Unknown {
        /// `parameter`, `channel` or `sample`.
        what: &'static str,
        /// The name.
        name: String,
        /// The label of the workspace; `None` for all of them.
        analysis: Option<String>,
        /// The names that there are.
        known: Vec<String>,
        /// Parameters that the name was split into.
        parts: Vec<String>,
    },
    /// A pattern that nothing matches.
    #[error("no {what} of {} matches the pattern `{pattern}`", of_whom(.analysis.as_deref()))]
    NoMatch {
        /// `parameter`, `channel` or `sample`.
        what: &'static str,
        /// The pattern.
        pattern: String,
        /// The label of the workspace; `None` for all of them.
        analysis: Option<String>,
        /// The names that there are.
        known: Vec<String>,
    },
    /// A parameter with two rules of equal rank.
    #[error("`{name}` already has {}", other_rule(.first.as_ref()))]
    TwoRules {
        /// The parameter, channel or sample.
        name: String,
        /// The place of the first.
        first: Option<DocumentPlace>,
        /// Whether both name it exactly.
        is_exact: bool,
    },
    /// A rule that correlates nothing.
    #[error("only {} has `{name}`, so there is nothing to correlate", one_of(.analyses))]
    Alone {
        /// The common name.
        name: String,
        /// Labels of the workspaces that have it.
        analyses: Vec<String>,
    },
    /// Patterns without a member in two workspaces.
    #[error("nothing that `{name}` stands for is in two workspaces")]
    NothingInTwo {
        /// The common name.
        name: String,
    },
    /// A part that no modifier is in.
    #[error("no modifier of {} is in the part `{part}`", in_backticks(.parameters))]
    EmptyPart {
        /// The part.
        part: String,
        /// The parameters that are split.
        parameters: Vec<String>,
    },
    /// A parameter that has no modifier in the channels and samples of a rule.
    #[error("no modifier of `{name}` is in these channels and samples")]
    NothingSplit {
        /// The parameter.
        name: String,
    },
    /// A new name that another parameter has.
    #[error("`{from}` of `{analysis}` cannot be called `{to}`: {taken_by}")]
    Taken {
        /// The parameter.
        from: String,
        /// The label of its workspace.
        analysis: String,
        /// The new name.
        to: String,
        /// What has it.
        taken_by: String,
    },
    /// Two modifiers of a sample that would be the same.
    #[error("`{name}` would modify the sample `{sample}` of the channel `{channel}` twice as {kind}")]
    TwiceInSample {
        /// The common name.
        name: String,
        /// The channel.
        channel: String,
        /// The sample.
        sample: String,
        /// The type of the two.
        kind: ModifierKind,
    },
    /// Another name for a `lumi` modifier.
    #[error("a `lumi` modifier must be named `lumi`, not `{to}`")]
    Lumi {
        /// The new name.
        to: String,
    },
    /// A parameter that a formula names and that would be split.
    #[error("`{name}` cannot be split: the formula of `{formula}` names it")]
    InFormula {
        /// The parameter.
        name: String,
        /// The formula or morphing modifier.
        formula: String,
    },
    /// A staterror that would be split by sample.
    #[error("`{name}` is a staterror, which the samples of a channel share")]
    StatErrorBySample {
        /// The parameter.
        name: String,
    },
    /// Names that several workspaces have and no rule mentions.
    #[error("no rule says what {} of several workspaces {}", some(.names), if .names.len() == 1 { "is" } else { "are" })]
    SameNames {
        /// The names.
        names: Vec<String>,
    },
    /// Types of modifiers that cannot share a parameter.
    #[error("`{name}` cannot be one parameter: it is {} in `{}` and {} in `{}`", .kinds[0], .analyses[0], .kinds[1], .analyses[1])]
    Kinds {
        /// The parameter.
        name: String,
        /// The labels of two workspaces.
        analyses: [String; 2],
        /// The type in each.
        kinds: [ModifierKind; 2],
    },
    /// Per-bin factors of different channels that would be one.
    #[error("`{name}` cannot be one parameter: it is a {kind}, whose factors belong to the bins of the channels {}", in_backticks(.channels))]
    PerBin {
        /// The parameter.
        name: String,
        /// The type.
        kind: ModifierKind,
        /// The channels.
        channels: Vec<String>,
    },
    /// Settings of one parameter that differ.
    #[error("`{name}` cannot be one parameter: its `{key}` is {} in `{}` and {} in `{}`", .values[0], .analyses[0], .values[1], .analyses[1])]
    Settings {
        /// The parameter.
        name: String,
        /// The setting.
        key: String,
        /// The labels of two workspaces.
        analyses: [String; 2],
        /// The value in each, as JSON.
        values: [String; 2],
    },
    /// A range whose first end is not below the second.
    #[error("the bounds of `{name}` are [{}, {}]; the first must be below the second", .ends[0], .ends[1])]
    EmptyRange {
        /// The parameter.
        name: String,
        /// The ends.
        ends: [String; 2],
    },
    /// Workspaces with different parameters of interest.
    #[error("the parameters of interest differ: {}", pois_of(.pois))]
    PoisDiffer {
        /// Each with the label of its workspace.
        pois: Vec<[String; 2]>,
    },
    /// Workspaces that clip yields differently.
    #[error("`{}` and `{}` clip yields differently", .analyses[0], .analyses[1])]
    ClipsDiffer {
        /// The labels of two workspaces.
        analyses: [String; 2],
    },
    /// A parameter of interest that is split.
    #[error("the parameter of interest `{poi}` is split into {}", in_backticks(.parts))]
    PoiSplit {
        /// The parameter.
        poi: String,
        /// What it becomes.
        parts: Vec<String>,
        /// The measurement.
        measurement: String,
    },
}

impl MapError {
    /// Returns the place in the map, or `None` for an error that is not in its text.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match &self.problem {
            MapProblem::Json(error) => error.place(),
            MapProblem::Yaml(error) => error.place(),
            MapProblem::Setting(error) => error.place(),
            _ => self.place.as_ref(),
        }
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.problem.hint()
    }
}

impl MapProblem {
    fn hint(&self) -> Option<String> {
        let fixed = match self {
            Self::Json(error) => return error.hint(),
            Self::Yaml(error) => return error.hint(),
            Self::Setting(error) => return error.text_of_advice(),
            Self::UnknownWord { word, known } => {
                return Some(meant_or_known(word, known.iter().copied(), "choose one of"));
            }
            Self::Unknown { name, parts, .. } if !parts.is_empty() => {
                return Some(format!(
                    "`{name}` is split into {} before parameters are correlated",
                    in_backticks(parts)
                ));
            }
            Self::Unknown { name, known, .. } | Self::NoMatch { pattern: name, known, .. } => {
                return nearest(name, known);
            }
            Self::UnknownAnalysis { label: name, known }
            | Self::UnknownFile { file: name, known }
            | Self::UnknownMeasurement { name, known, .. } => return nearest(name, known),
            Self::SeveralMeasurements { analysis, known } => {
                let first = known.first().map_or("", String::as_str);
                return Some(format!(
                    "name one of {} in the map: `analyses: {{{analysis}: {{measurement: {first}}}}}`",
                    in_backticks(known)
                ));
            }
            Self::PoisDiffer { pois } => {
                let members: Vec<String> = pois.iter().map(|[label, poi]| format!("{label}: {poi}")).collect();
                return Some(format!(
                    "`poi: {{name: mu, parameters: {{{}}}}}` makes them one; `poi: NAME` chooses one of them",
                    members.join(", ")
                ));
            }
            Self::ClipsDiffer { .. } => {
                return Some("a measurement has one `clip` for all channels; give both workspaces the same".to_owned());
            }
            Self::PoiSplit { parts, .. } => {
                return Some(format!("say which part is of interest, `{}` for one; the others are free", parts[0]));
            }
            Self::SameNames { names } => {
                return Some(format!("list them, `{}` for one, under `correlate` or `decorrelate`", names[0]));
            }
            Self::Settings { name, key, .. } => {
                let decorrelate =
                    if name == "lumi" { String::new() } else { format!(", or decorrelate `{name}` by analysis") };
                return Some(format!("state it in the map, `settings: [{{name: {name}, {key}: …}}]`{decorrelate}"));
            }
            Self::PerBin { name, .. } | Self::Kinds { name, .. } => {
                return Some(format!("decorrelate it: `decorrelate: [{{parameters: {name}, by: analysis}}]`"));
            }
            Self::TwoRules { is_exact: true, .. } => "leave it out of one of the rules",
            Self::TwoRules { is_exact: false, .. } => "a rule with the exact name precedes patterns",
            Self::LabelTwice { .. } | Self::AmbiguousFile { .. } => {
                "give them labels in the map: `analyses: {LABEL: path/of/file.json}`"
            }
            Self::NoAnalyses | Self::NoFile { .. } => {
                "name the workspaces, or their files in the map: `analyses: {LABEL: path/of/file.json}`"
            }
            Self::ChannelInBoth { .. } => "rename it in one of them with `nextstat rename --channel`",
            Self::Wildcards { .. } => {
                "each wildcard of the common name stands for what one of the pattern matches; a common name without any takes all"
            }
            Self::Lumi { .. } => {
                "`correlate: [lumi]` keeps it one parameter; a normsys has the same effect and any name"
            }
            Self::TwiceInSample { .. } | Self::StatErrorBySample { .. } | Self::InFormula { .. } => {
                "leave it out of the rule"
            }
            Self::EmptyPart { .. } => {
                "a part has patterns of channels for `by: channel`, and of samples for `by: sample`"
            }
            Self::Alone { .. } => "`parameters: {LABEL: NAME}` correlates parameters of different names",
            _ => return None,
        };
        Some(fixed.to_owned())
    }
}

/// Returns the most similar of `known`, or some of them.
fn nearest(name: &str, known: &[String]) -> Option<String> {
    const SHOWN: usize = 10;
    if let Some(similar) = similar_name(name, known.iter().map(String::as_str)) {
        return Some(format!("did you mean `{similar}`?"));
    }
    match known.len() {
        0 => None,
        1 => Some(format!("there is {}", in_backticks(known))),
        all if all <= SHOWN => Some(format!("there are {}", in_backticks(known))),
        all => Some(format!("there are {all}, {} and others", in_backticks(&known[..SHOWN]))),
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.problem, &self.place) {
            (problem @ (MapProblem::Json(_) | MapProblem::Yaml(_) | MapProblem::Setting(_)), _) | (problem, None) => {
                problem.fmt(f)
            }
            (problem, Some(place)) => write!(f, "{problem}, {place}"),
        }
    }
}

impl std::error::Error for MapError {}

impl From<JsonError> for MapError {
    fn from(error: JsonError) -> Self {
        Self { problem: MapProblem::Json(error), place: None }
    }
}

impl From<YamlError> for MapError {
    fn from(error: YamlError) -> Self {
        Self { problem: MapProblem::Yaml(error), place: None }
    }
}

impl From<PyhfError> for MapError {
    fn from(error: PyhfError) -> Self {
        Self { problem: MapProblem::Setting(error), place: None }
    }
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn whose(analysis: Option<&str>) -> String {
    analysis.map_or_else(|| "there is".to_owned(), |label| format!("`{label}` has"))
}

fn of_whom(analysis: Option<&str>) -> String {
    analysis.map_or_else(|| "the workspaces".to_owned(), |label| format!("`{label}`"))
}

fn one_of(analyses: &[String]) -> String {
    analyses.first().map_or_else(|| "no workspace".to_owned(), |label| format!("`{label}`"))
}

fn other_rule(first: Option<&DocumentPlace>) -> String {
    first.map_or_else(|| "another rule".to_owned(), |place| format!("the rule {place}"))
}

fn pois_of(pois: &[[String; 2]]) -> String {
    let each: Vec<String> = pois.iter().map(|[label, poi]| format!("`{poi}` in `{label}`")).collect();
    each.join(", ")
}

/// Returns as many names as fit into a line.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names.len() {
        all if all <= SHOWN => in_backticks(names),
        all => format!("{} and {} more names", in_backticks(&names[..SHOWN]), all - SHOWN),
    }
}
