//! Errors of Combine's data cards and of the templates that they name.

use ns_core::did_you_mean;
use ns_core::formula::FormulaError;
use ns_root::RootFileError;

use super::option_error::CardOptionError;
use crate::hint::{in_backticks, meant_or_known};
use crate::place::DocumentPlace;
use crate::source::SourceError;
use crate::text::NotUtf8Error;

/// Why a data card cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CardError {
    /// An error in one of several cards; the source is what is wrong.
    #[error("in {name}")]
    InFile {
        /// The file in backticks.
        name: String,
        /// The error.
        source: Box<CardError>,
    },
    /// The bytes of a card, or of a table of templates, cannot be had.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Bytes that are not text.
    #[error(transparent)]
    NotUtf8(#[from] NotUtf8Error),
    /// Something that is wrong with the options of the reader.
    #[error(transparent)]
    Option(#[from] CardOptionError),
    /// Something that is wrong at a place of the card.
    #[error("{problem} {place}")]
    At {
        /// What is wrong.
        problem: CardProblem,
        /// The line and the column.
        place: DocumentPlace,
        /// Which of the cards that are joined.
        card: usize,
        /// Why a file or a formula cannot be read.
        source: Option<Box<CardCause>>,
    },
}

/// Why something that a card names cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CardCause {
    /// A ROOT file.
    #[error(transparent)]
    Root(#[from] RootFileError),
    /// A table of templates.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A formula.
    #[error(transparent)]
    Formula(#[from] FormulaError),
    /// A regular expression.
    #[error(transparent)]
    Pattern(#[from] regex_lite::Error),
}

/// What is wrong with a line of a card, or a word of it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CardProblem {
    /// A line that is absent.
    #[error("the card has no line `{name}`")]
    NoLine {
        /// Its first word.
        name: &'static str,
    },
    /// A line that begins with an unknown word.
    #[error("unknown line `{word}`")]
    UnknownLine {
        /// Its first word.
        word: String,
    },
    /// A line with fewer words than it needs.
    #[error("the line `{line}` is too short: expected {wanted}")]
    Short {
        /// What the line is.
        line: String,
        /// What it should have.
        wanted: &'static str,
    },
    /// A word that is not a finite number.
    #[error("expected {wanted}, found `{word}`")]
    Word {
        /// What should be there.
        wanted: &'static str,
        /// What is there.
        word: String,
    },
    /// A count that differs from what was declared.
    #[error("`{declaration}` declares {declared} {what}, and the card has {found}")]
    Declared {
        /// `imax`, `jmax` or `kmax`.
        declaration: &'static str,
        /// What it counts.
        what: &'static str,
        /// Its number.
        declared: usize,
        /// How many there are.
        found: usize,
    },
    /// Lines of different lengths.
    #[error("the line `{line}` has {found} entries, and {wanted} are needed")]
    Length {
        /// The line's first word.
        line: String,
        /// Its entries.
        found: usize,
        /// The entries of the lines before.
        wanted: usize,
    },
    /// A channel whose name begins with a digit.
    #[error("the name of the channel `{name}` begins with a digit")]
    DigitFirst {
        /// The channel.
        name: String,
    },
    /// Something that is there twice.
    #[error("{what} `{name}` is there twice")]
    Twice {
        /// What it is.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A name that nothing has.
    #[error("there is no {what} `{name}`")]
    Unknown {
        /// What it should be.
        what: &'static str,
        /// The name.
        name: String,
        /// What there is instead.
        known: Vec<String>,
    },
    /// A card without signal.
    #[error("the card has no signal: no process has an index of 0 or below")]
    NoSignal,
    /// A process that is a signal in one channel and a background in another.
    #[error("the process `{process}` is a signal in one channel and a background in another")]
    BothKinds {
        /// The process.
        process: String,
    },
    /// A channel without a process that has a rate.
    #[error("the channel `{channel}` has no {what}")]
    EmptyChannel {
        /// The channel.
        channel: String,
        /// `process with a rate` or `background with a rate`.
        what: &'static str,
    },
    /// A number that means nothing here.
    #[error("{what} is {value}")]
    Value {
        /// What the number is.
        what: String,
        /// Its value.
        value: f64,
    },
    /// A kind of uncertainty that cannot be read.
    #[error("`{kind}` is not supported: {reason}")]
    Unsupported {
        /// The kind as written.
        kind: String,
        /// The reason.
        reason: &'static str,
    },
    /// A kind of uncertainty that there is not.
    #[error("unknown kind of uncertainty `{kind}`")]
    UnknownKind {
        /// The kind as written.
        kind: String,
    },
    /// Uncertainties of one name that do not agree.
    #[error("the uncertainty `{name}` is `{kind}` here and `{other}` before")]
    Kinds {
        /// The uncertainty.
        name: String,
        /// Its kind here.
        kind: String,
        /// Its kind before.
        other: String,
    },
    /// Two values with a slash where one is needed.
    #[error("`{word}` gives two values, which `{kind}` does not take")]
    TwoValues {
        /// The word.
        word: String,
        /// The kind of the uncertainty.
        kind: String,
    },
    /// A `gmN` whose numbers contradict the rate.
    #[error("{count} events times {factor} are not the rate {rate} of `{process}` in `{channel}`")]
    GammaRate {
        /// The events.
        count: f64,
        /// The factor.
        factor: f64,
        /// The rate.
        rate: f64,
        /// The process.
        process: String,
        /// The channel.
        channel: String,
    },
    /// A card that needs the mass, without one.
    #[error("the card names `$MASS`, and no mass is given")]
    NoMass,
    /// A file that is nowhere.
    #[error("there is no file `{file}`")]
    NoFile {
        /// The file as written.
        file: String,
        /// Where it was looked for.
        tried: Vec<String>,
    },
    /// A file that cannot be opened.
    #[error("`{file}` cannot be read")]
    File {
        /// The file.
        file: String,
    },
    /// A template that cannot be read.
    #[error("the template `{template}` of `{file}` cannot be read")]
    Template {
        /// Its name in the file.
        template: String,
        /// The file.
        file: String,
        /// Names that are there instead, if it is not there.
        known: Vec<String>,
    },
    /// A process without a line `shapes`.
    #[error("no line `shapes` says where the templates of `{process}` in `{channel}` are")]
    NoShape {
        /// The process.
        process: String,
        /// The channel.
        channel: String,
    },
    /// An uncertainty of the shape without a name for its templates.
    #[error("the line `shapes` of `{process}` in `{channel}` does not say where the templates of `{systematic}` are")]
    NoVariation {
        /// The process.
        process: String,
        /// The channel.
        channel: String,
        /// The uncertainty.
        systematic: String,
    },
    /// Templates of one channel with different numbers of bins.
    #[error("the template `{template}` has {found} bins, and the channel `{channel}` has {wanted}")]
    Bins {
        /// The template.
        template: String,
        /// Its bins.
        found: usize,
        /// The channel.
        channel: String,
        /// The bins of its first template.
        wanted: usize,
    },
    /// A sum of a template that cannot be normalised.
    #[error("the sum of the template `{template}` is {sum}")]
    Sum {
        /// The template.
        template: String,
        /// Its sum.
        sum: f64,
    },
    /// A content that is not finite.
    #[error("bin {bin} of the template `{template}` is {value}")]
    NotFinite {
        /// The template.
        template: String,
        /// The bin, from 0.
        bin: usize,
        /// The value.
        value: f64,
    },
    /// A number of the card that contradicts a template.
    #[error("the card has {rate} events for `{process}` in `{channel}`, and the template has {sum}")]
    Rate {
        /// The process, or the data.
        process: String,
        /// The channel.
        channel: String,
        /// The number of the card.
        rate: f64,
        /// The sum of the template.
        sum: f64,
    },
    /// Different algorithms for one template.
    #[error("`{process}` in `{channel}` has uncertainties `shape` and `shapeN`: a template has one algorithm")]
    Algorithms {
        /// The process.
        process: String,
        /// The channel.
        channel: String,
    },
    /// A formula that cannot be read.
    #[error("`{formula}` is not a formula that can be read")]
    Formula {
        /// The formula.
        formula: String,
    },
    /// A regular expression that cannot be read.
    #[error("`{pattern}` is not a regular expression that can be read")]
    Pattern {
        /// The pattern.
        pattern: String,
    },
    /// A `nuisance edit` that does not do anything.
    #[error("`nuisance edit {edit}` finds nothing")]
    NothingFound {
        /// The edit.
        edit: String,
    },
    /// A `nuisance edit` that cannot be done.
    #[error("`nuisance edit {edit}` cannot be done: {reason}")]
    Edit {
        /// The edit.
        edit: String,
        /// The reason.
        reason: String,
    },
    /// Cards that cannot be joined.
    #[error("the cards differ about `{name}`: {reason}")]
    Join {
        /// The parameter or process.
        name: String,
        /// In what.
        reason: &'static str,
    },
    /// More than a card can ask for.
    #[error("the card asks for more than {limit} {what}")]
    TooMuch {
        /// What of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// The first words of lines before the uncertainties.
pub(super) const LINES: &[&str] = &["imax", "jmax", "kmax", "shapes", "bin", "observation", "process", "rate"];

/// The kinds of uncertainty that are read.
pub(super) const KINDS: &[&str] = &[
    "lnN",
    "lnU",
    "gmN",
    "gmM",
    "trG",
    "unif",
    "shape",
    "shapeN",
    "shape?",
    "shapeN?",
    "shapeU",
    "param",
    "flatParam",
    "rateParam",
    "extArg",
    "group",
    "autoMCStats",
];

impl CardProblem {
    /// Returns the error that this is at `place`.
    pub(super) fn at(self, place: super::words::CardPlace) -> CardError {
        CardError::At { problem: self, place: place.document(), card: place.card, source: None }
    }

    /// Returns the error that this is at `place`, because of `cause`.
    pub(super) fn because(self, cause: impl Into<CardCause>, place: super::words::CardPlace) -> CardError {
        let source = Some(Box::new(cause.into()));
        CardError::At { problem: self, place: place.document(), card: place.card, source }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownLine { word } => did_you_mean(word, LINES.iter().copied()),
            Self::UnknownKind { kind } => Some(meant_or_known(kind, KINDS.iter().copied(), "kinds that are read are")),
            Self::Unknown { name, known, .. } if !known.is_empty() => {
                did_you_mean(name, known.iter().map(String::as_str))
            }
            Self::Template { template, known, .. } if !known.is_empty() => {
                let name = template.rsplit('/').next().unwrap_or(template);
                did_you_mean(name, known.iter().map(String::as_str))
            }
            Self::NoFile { tried, .. } => Some(format!("looked for {}", in_backticks(tried))),
            Self::NothingFound { .. } => Some("the option `ifexists` at its end allows that".to_owned()),
            _ => self.fixed_hint().map(str::to_owned),
        }
    }

    fn fixed_hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Declared { .. } => "`*` counts them",
            Self::DigitFirst { .. } => "Combine refuses such names; rename the channel",
            Self::NoMass => "give the mass with `-m`, or `mass=` in Python",
            Self::Kinds { .. } => "`shape?` is a shape where there are templates and `lnN` elsewhere",
            Self::Rate { .. } => "write -1 in the card to take the sum of the template",
            Self::NoShape { .. } => "`shapes * CHANNEL FAKE` makes a channel a counting experiment",
            Self::Unsupported { .. } => "the page on not supported features lists what cards may contain",
            _ => return None,
        })
    }
}

impl CardError {
    /// Returns this error in the file that it is in, if there are several cards: `names` are
    /// theirs, in backticks.
    pub(super) fn in_card(self, names: &[String]) -> Self {
        match self {
            Self::At { card, .. } if names.len() > 1 => match names.get(card) {
                Some(name) => Self::InFile { name: name.clone(), source: Box::new(self) },
                None => self,
            },
            other => other,
        }
    }

    /// Returns whether a template is not in its file.
    pub(super) fn is_absent_template(&self) -> bool {
        let Self::At { problem: CardProblem::Template { .. }, source, .. } = self else { return false };
        match source.as_deref() {
            None => true,
            Some(CardCause::Root(error)) => error.missing().is_some(),
            Some(_) => false,
        }
    }

    /// Returns whether the error names its file, or is in none.
    pub(crate) fn is_in_file(&self) -> bool {
        matches!(self, Self::InFile { .. } | Self::Source(_) | Self::Option(_))
    }

    /// Returns the line and the column, or `None` for an error that is not in the text.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::InFile { source, .. } => source.place(),
            Self::At { place, .. } => Some(place),
            Self::Source(_) | Self::NotUtf8(_) | Self::Option(_) => None,
        }
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::InFile { source, .. } => source.hint(),
            Self::Source(error) => error.hint(),
            Self::NotUtf8(_) => None,
            Self::Option(error) => error.hint(),
            Self::At { problem, source, .. } => problem.hint().or_else(|| source.as_deref().and_then(CardCause::hint)),
        }
    }
}

impl CardCause {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Root(error) => error.hint().map(str::to_owned),
            Self::Source(error) => error.hint(),
            Self::Formula(error) => error.hint(),
            Self::Pattern(_) => None,
        }
    }
}
