//! Errors of pyhf workspaces: what the schema of pyhf demands beyond JSON.

use ns_core::advice::Advice;
use ns_core::spec::ModifierKind;

use super::VERSION;
use crate::hint::meant_or_known;
use crate::json::{FoundValue, JsonError};
use crate::kind::WrongDocumentError;
use crate::place::DocumentPlace;

/// Why a document is not a pyhf workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PyhfError {
    /// The document is not JSON, or its lists, objects and values are not those of the schema.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The whole document is of another kind.
    #[error(transparent)]
    WrongDocument(#[from] WrongDocumentError),
    /// A modifier whose data do not fit its type.
    #[error("a `{kind}` modifier's data must be {}, found {found} {place}", shape_of(*.kind))]
    ModifierData {
        /// The modifier's type.
        kind: ModifierKind,
        /// The value there.
        found: FoundValue,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A modifier type that HistFactory does not have.
    #[error("unknown modifier type `{kind}` {place}")]
    UnknownModifier {
        /// As written.
        kind: String,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A lumi modifier with another name than `lumi`.
    #[error("a `lumi` modifier must be named `lumi`, found `{name}` {place}")]
    MisnamedLumi {
        /// Its name.
        name: String,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A word that the key cannot have.
    #[error("unknown word `{word}` {place}")]
    UnknownWord {
        /// As written.
        word: String,
        /// The words that are known.
        known: &'static [&'static str],
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A rule or a scale for a modifier that has no template at ±1σ.
    #[error("a `{kind}` modifier is not interpolated {place}")]
    NotInterpolated {
        /// The modifier's type.
        kind: ModifierKind,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// A schema version other than 1.0.0.
    #[error("version `{found}` is not supported {place}")]
    UnsupportedVersion {
        /// As written.
        found: String,
        /// The place in the document.
        place: DocumentPlace,
    },
}

fn shape_of(kind: ModifierKind) -> &'static str {
    match kind {
        ModifierKind::NormFactor | ModifierKind::ShapeFactor | ModifierKind::Lumi => "`null`",
        ModifierKind::NormSys => "an object with `lo` and `hi`",
        ModifierKind::HistoSys => "an object with `lo_data` and `hi_data`",
        ModifierKind::Formula => "an object with `expression`",
        ModifierKind::Morphing => "an object with `terms`",
        ModifierKind::ShapeSys | ModifierKind::StatError | ModifierKind::McStat => "a list of numbers, one per bin",
    }
}

impl PyhfError {
    /// Returns the place in the document, or `None` where the whole document is at fault.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::Json(error) => error.place(),
            Self::WrongDocument(_) => None,
            Self::ModifierData { place, .. }
            | Self::UnknownModifier { place, .. }
            | Self::MisnamedLumi { place, .. }
            | Self::UnknownWord { place, .. }
            | Self::NotInterpolated { place, .. }
            | Self::UnsupportedVersion { place, .. } => Some(place),
        }
    }

    /// Returns the JSON pointer of [`Self::place`].
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        self.place().map(|place| place.pointer.as_str())
    }

    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn advice(&self) -> Option<Advice> {
        match self {
            Self::WrongDocument(error) => Some(error.advice()),
            other => other.text_of_advice().map(Advice::from),
        }
    }

    /// Returns advice that is the same in every interface, or `None`.
    pub(crate) fn text_of_advice(&self) -> Option<String> {
        match self {
            Self::Json(error) => error.hint(),
            Self::UnknownModifier { kind, .. } => {
                Some(meant_or_known(kind, ModifierKind::ALL.map(ModifierKind::as_str), "the types are"))
            }
            Self::UnsupportedVersion { .. } => Some(format!("this is written for pyhf schema version `{VERSION}`")),
            Self::UnknownWord { word, known, .. } => Some(meant_or_known(word, known.iter().copied(), "the words are")),
            Self::NotInterpolated { .. } => {
                Some("`interpolation` and `scale` are for `normsys` and `histosys`".to_owned())
            }
            Self::WrongDocument(_) | Self::ModifierData { .. } | Self::MisnamedLumi { .. } => None,
        }
    }
}
