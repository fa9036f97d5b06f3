//! Errors of HS3 documents: what the standard demands beyond JSON, and what is not supported.

use crate::hint::meant_or_known;
use crate::json::JsonError;
use crate::place::DocumentPlace;

/// The number of names that a message lists.
const LISTED: usize = 12;

/// Why an HS3 document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Hs3Error {
    /// The document is not JSON, or its lists, objects and values are not those of the standard.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A version of the standard other than 0.2.
    #[error("version `{found}` of HS3 is not supported {place}")]
    Version {
        /// As written.
        found: String,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// Content that models do not have here.
    #[error("{what} `{name}` cannot be read {place}")]
    Unsupported {
        /// What it is, with its article.
        what: &'static str,
        /// Its name or type.
        name: String,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A name that nothing has.
    #[error("unknown {what} `{name}` {place}")]
    UnknownName {
        /// What is named.
        what: &'static str,
        /// As written.
        name: String,
        /// The names that there are.
        known: Vec<String>,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A name that two entries of a list have.
    #[error("the name `{name}` is taken {place}")]
    DuplicateName {
        /// The name.
        name: String,
        /// The second entry.
        place: DocumentPlace,
    },
    /// A list of another length.
    #[error("{what} must have {expected} entries, found {found} {place}")]
    Length {
        /// What the list is.
        what: &'static str,
        /// The expected length.
        expected: usize,
        /// The length found.
        found: usize,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A name whose value is needed and is in no parameter point.
    #[error("`{name}` has no value in a parameter point {place}")]
    NoValue {
        /// The name.
        name: String,
        /// Where it is used.
        place: DocumentPlace,
    },
    /// A term that constrains none of the parameters, or not the one that it should.
    #[error("the distribution `{name}` is not a constraint term of {parameter} {place}")]
    NotConstraint {
        /// The distribution.
        name: String,
        /// The parameter in backticks, or `a parameter`.
        parameter: String,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// Two different constraint terms of one parameter.
    #[error("the parameter `{parameter}` has two different constraint terms {place}")]
    TwoTerms {
        /// The parameter.
        parameter: String,
        /// The second one.
        place: DocumentPlace,
    },
    /// An analysis that the document does not have.
    #[error("the document has no analysis `{name}`")]
    UnknownAnalysis {
        /// As asked for.
        name: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// A document without likelihoods.
    #[error("the document has no likelihood")]
    NoLikelihood,
    /// More of something than any document needs.
    #[error("there are more than {limit} {what} {place}")]
    TooMuch {
        /// What it is.
        what: &'static str,
        /// How many there may be.
        limit: usize,
        /// Where the limit is passed.
        place: DocumentPlace,
    },
    /// A vector of parameters of which a part is constant.
    #[error("{fixed} of the {total} parameters of `{name}` are constant {place}")]
    PartlyFixed {
        /// The modifier.
        name: String,
        /// How many are constant.
        fixed: usize,
        /// How many there are.
        total: usize,
        /// The parameter point.
        place: DocumentPlace,
    },
}

impl Hs3Error {
    /// Returns the place in the document, or `None` where the whole document is at fault.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::Json(error) => error.place(),
            Self::UnknownAnalysis { .. } | Self::NoLikelihood => None,
            Self::Version { place, .. }
            | Self::Unsupported { place, .. }
            | Self::UnknownName { place, .. }
            | Self::DuplicateName { place, .. }
            | Self::Length { place, .. }
            | Self::NoValue { place, .. }
            | Self::NotConstraint { place, .. }
            | Self::TwoTerms { place, .. }
            | Self::TooMuch { place, .. }
            | Self::PartlyFixed { place, .. } => Some(place),
        }
    }

    /// Returns the JSON pointer of [`Self::place`].
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        self.place().map(|place| place.pointer.as_str())
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Json(error) => error.hint(),
            Self::Version { .. } => Some("this is written for version `0.2`".to_owned()),
            Self::UnknownName { what, known, .. } if known.is_empty() => Some(format!("the document has no {what}")),
            Self::UnknownAnalysis { known, .. } if known.is_empty() => Some("the document has no analyses".to_owned()),
            Self::UnknownName { name, known, .. } => {
                let known = known.iter().map(String::as_str);
                Some(meant_or_known(name, known.take(LISTED), "there are"))
            }
            Self::UnknownAnalysis { name, known } => {
                let known = known.iter().map(String::as_str);
                Some(meant_or_known(name, known.take(LISTED), "the analyses are"))
            }
            Self::NoLikelihood => Some("`likelihoods` says which data belong to which distributions".to_owned()),
            Self::PartlyFixed { .. } => Some("make all of them constant, or none".to_owned()),
            Self::NoValue { .. } => Some("give it one in `parameter_points`".to_owned()),
            Self::TwoTerms { .. } => Some("modifiers that share a parameter share its constraint term".to_owned()),
            _ => None,
        }
    }
}
