//! Errors of HistFactory XML and of the histograms that it names.

use ns_core::advice::Advice;
use ns_core::{CompileError, did_you_mean};
use ns_root::RootFileError;

use crate::hint::{in_backticks, meant_or_known};
use crate::place::DocumentPlace;
use crate::source::SourceError;
use crate::text::NotUtf8Error;
use crate::xml::XmlError;

/// Why HistFactory XML cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistFactoryError {
    /// An error in the file of a channel; the source is what is wrong.
    #[error("in {name}")]
    InFile {
        /// The file in backticks.
        name: String,
        /// The error.
        source: Box<HistFactoryError>,
    },
    /// The bytes of a channel's file cannot be had.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The text is not XML.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// Bytes that are not text.
    #[error(transparent)]
    NotUtf8(#[from] NotUtf8Error),
    /// A combination without data, whose expected counts cannot be computed.
    #[error("there are no data, and the expected counts cannot be computed")]
    NoExpectation(#[source] Box<CompileError>),
    /// Something that is wrong at a place of the document.
    #[error("{problem} {place}")]
    At {
        /// What is wrong.
        problem: HistFactoryProblem,
        /// The element or attribute.
        place: DocumentPlace,
        /// Why a histogram cannot be read.
        source: Option<Box<RootFileError>>,
    },
}

/// What is wrong with an element or an attribute.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HistFactoryProblem {
    /// The document is about something else.
    #[error("expected an element `{wanted}`, found `{found}`")]
    Root {
        /// The element that such a document consists of.
        wanted: &'static str,
        /// The element that this one consists of.
        found: String,
    },
    /// An element that its parent does not have.
    #[error("unknown element `{name}` in `{parent}`")]
    UnknownElement {
        /// The element.
        name: String,
        /// The element that it is in.
        parent: String,
        /// The elements that may be there.
        known: &'static [&'static str],
    },
    /// An attribute that its element does not have.
    #[error("unknown attribute `{name}` of `{element}`")]
    UnknownAttribute {
        /// The attribute.
        name: String,
        /// The element.
        element: String,
        /// The attributes that may be there.
        known: &'static [&'static str],
    },
    /// An attribute that is absent or empty.
    #[error("`{element}` has no attribute `{name}`")]
    NoAttribute {
        /// The attribute.
        name: &'static str,
        /// The element.
        element: String,
    },
    /// An element that is absent.
    #[error("`{parent}` has no element `{name}`")]
    NoElement {
        /// The element.
        name: &'static str,
        /// The element that it should be in.
        parent: String,
    },
    /// An element without text.
    #[error("`{element}` is empty: expected {wanted}")]
    NoText {
        /// The element.
        element: String,
        /// What its text is.
        wanted: &'static str,
    },
    /// A value that is not a finite number.
    #[error("expected a number for `{attribute}`, found `{value}`")]
    Number {
        /// The attribute.
        attribute: String,
        /// Its value.
        value: String,
    },
    /// A value that is not among those allowed.
    #[error("expected one of {} for `{attribute}`, found `{value}`", in_backticks(allowed.iter()))]
    Word {
        /// The attribute.
        attribute: String,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: &'static [&'static str],
    },
    /// A normalisation factor whose limits exclude its value, or each other.
    #[error("the value {value} of `{name}` is not within its limits {low} and {high}")]
    Limits {
        /// The factor.
        name: String,
        /// Its value.
        value: f64,
        /// Its lower limit.
        low: f64,
        /// Its upper limit.
        high: f64,
    },
    /// A histogram without a file.
    #[error("no `InputFile` says where the histogram `{histogram}` is")]
    NoInputFile {
        /// The histogram's name.
        histogram: String,
    },
    /// A file on another machine.
    #[error("`{file}` is on the network")]
    Network {
        /// The file as written.
        file: String,
    },
    /// A file that is nowhere.
    #[error("there is no file `{file}`")]
    NoFile {
        /// The file as written.
        file: String,
        /// Where it was looked for.
        tried: Vec<String>,
    },
    /// A ROOT file that cannot be opened.
    #[error("`{file}` cannot be read")]
    File {
        /// The file.
        file: String,
    },
    /// A histogram that cannot be read.
    #[error("the histogram `{histogram}` of `{file}` cannot be read")]
    Histogram {
        /// Its path in the file.
        histogram: String,
        /// The file.
        file: String,
        /// Names that are there instead, if it is not there.
        known: Vec<String>,
    },
    /// A histogram with a content or an uncertainty that is not finite.
    #[error("{what} of the histogram `{histogram}` is {value} in bin {bin}")]
    NotFinite {
        /// `the content` or `the uncertainty`.
        what: &'static str,
        /// Its path in the file.
        histogram: String,
        /// The bin, from 0.
        bin: usize,
        /// The value.
        value: f64,
    },
    /// Histograms of one channel with different numbers of bins.
    #[error("the histogram `{histogram}` has {found} bins, and the channel has {wanted}")]
    Bins {
        /// Its path in the file.
        histogram: String,
        /// Its bins.
        found: usize,
        /// The bins of the channel's first sample.
        wanted: usize,
    },
    /// A combination in which some channels have data and others have none.
    #[error("the channel `{without}` has no data, and `{with}` has")]
    PartialData {
        /// A channel without data.
        without: String,
        /// A channel with data.
        with: String,
    },
    /// Something that HistFactory has and models here have not.
    #[error("{what}: `{name}`")]
    Unsupported {
        /// That it is not supported.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Two definitions of one parameter that exclude each other.
    #[error("`{name}` is defined twice, with different {what}")]
    Contradiction {
        /// The parameter.
        name: String,
        /// What differs.
        what: &'static str,
    },
    /// A parameter with one value for each bin, of which some are to be fixed and others free.
    #[error("{found} of the {wanted} parameters `{name}` are constant: all or none can be")]
    PartlyFixed {
        /// The common part of their names.
        name: String,
        /// How many are to be fixed.
        found: usize,
        /// How many there are.
        wanted: usize,
    },
    /// Measurements with different luminosities, where the data of samples depend on it.
    #[error("the luminosities of the measurements differ, and the sample `{sample}` is scaled by it")]
    Luminosities {
        /// A sample that is not normalised by theory.
        sample: String,
    },
}

impl HistFactoryProblem {
    /// Returns the error that this is at `place`.
    pub(super) fn at(self, place: &DocumentPlace) -> HistFactoryError {
        HistFactoryError::At { problem: self, place: place.clone(), source: None }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Root { wanted: "Combination", found } if found == "Channel" => {
                Some("this is the file of one channel: name the file with the element `Combination`".to_owned())
            }
            Self::UnknownElement { name, known, .. } => {
                Some(meant_or_known(name, known.iter().copied(), "expected one of"))
            }
            Self::UnknownAttribute { name, known, .. } => {
                Some(meant_or_known(name, known.iter().copied(), "expected one of"))
            }
            Self::NoElement { name: "Input", .. } => {
                Some("`<Input>channel.xml</Input>` names the file of a channel".to_owned())
            }
            Self::Network { .. } => Some("copy the file, and change `InputFile`".to_owned()),
            Self::NoFile { tried, .. } => Some(format!("looked for {}", in_backticks(tried))),
            Self::Histogram { histogram, known, .. } if !known.is_empty() => {
                let name = histogram.rsplit('/').next().unwrap_or(histogram);
                did_you_mean(name, known.iter().map(String::as_str))
            }
            Self::Luminosities { .. } => Some("write one file for each luminosity".to_owned()),
            _ => None,
        }
    }
}

impl From<CompileError> for HistFactoryError {
    fn from(error: CompileError) -> Self {
        Self::NoExpectation(Box::new(error))
    }
}

impl HistFactoryError {
    /// Returns this error in the file `name`.
    pub(super) fn in_file(self, name: &str) -> Self {
        Self::InFile { name: name.to_owned(), source: Box::new(self) }
    }

    /// Returns whether the error names its file.
    pub(crate) fn is_in_file(&self) -> bool {
        matches!(self, Self::InFile { .. } | Self::Source(_))
    }

    /// Returns the place in the document, or `None` for an empty one.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::InFile { source, .. } => source.place(),
            Self::Xml(error) => error.place(),
            Self::At { place, .. } => Some(place),
            Self::Source(_) | Self::NotUtf8(_) | Self::NoExpectation(_) => None,
        }
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn advice(&self) -> Option<Advice> {
        match self {
            Self::InFile { source, .. } => source.advice(),
            Self::Source(error) => error.hint().map(Advice::from),
            Self::Xml(error) => error.hint().map(Advice::from),
            Self::NotUtf8(_) => None,
            Self::NoExpectation(error) => error.advice(),
            Self::At { problem, source, .. } => {
                let of_file = || source.as_ref().and_then(|error| error.hint()).map(str::to_owned);
                problem.hint().or_else(of_file).map(Advice::from)
            }
        }
    }
}
