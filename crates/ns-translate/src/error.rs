//! The one error of the crate for callers that handle all documents alike. Each module has its own.

use ns_core::advice::Advice;

use crate::combine::CardError;
use crate::digest::DigestError;
use crate::histfactory::HistFactoryError;
use crate::hs3::Hs3Error;
use crate::json::JsonError;
use crate::kind::{DocumentKind, WrongDocumentError};
use crate::number_table::NumberTableError;
use crate::patch::PatchError;
use crate::patchset::PatchSetError;
use crate::place::DocumentPlace;
use crate::points::PointsError;
use crate::pyhf::PyhfError;
use crate::source::{DocumentSource, SourceError};
use crate::workspace::MapError;

/// Why a document cannot be read, patched or verified.
///
/// [`full_message`](crate::full_message) puts it and its causes into one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The bytes cannot be had.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An error in a file; the source is what is wrong.
    #[error("in {name}")]
    InFile {
        /// The file in backticks, or `standard input`.
        name: String,
        /// The error.
        source: Box<DocumentError>,
    },
    /// A pyhf workspace that is invalid.
    #[error(transparent)]
    Pyhf(#[from] PyhfError),
    /// HistFactory XML that is invalid, or a histogram that it names.
    #[error(transparent)]
    HistFactory(#[from] HistFactoryError),
    /// A data card of Combine that is invalid, or a template that it names.
    #[error(transparent)]
    Card(#[from] CardError),
    /// An HS3 document that is invalid, or is no binned model.
    #[error(transparent)]
    Hs3(#[from] Hs3Error),
    /// A JSON patch that is invalid or does not fit.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// A patch set that is invalid, or has no such patch, or belongs to another workspace.
    #[error(transparent)]
    PatchSet(#[from] PatchSetError),
    /// A document without a digest.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// A list of points that is invalid.
    #[error(transparent)]
    Points(#[from] PointsError),
    /// A table of numbers that is invalid.
    #[error(transparent)]
    NumberTable(#[from] NumberTableError),
    /// A correlation map that is invalid, or does not fit the workspaces.
    #[error(transparent)]
    Map(#[from] MapError),
}

impl DocumentError {
    /// Returns this error in the file `name`; one that names its file already is returned as it is.
    #[must_use]
    pub fn in_file(self, name: &str) -> Self {
        match self {
            named @ (Self::Source(_) | Self::InFile { .. }) => named,
            Self::HistFactory(error) if error.is_in_file() => Self::HistFactory(error),
            Self::Card(error) if error.is_in_file() => Self::Card(error),
            other => Self::InFile { name: name.to_owned(), source: Box::new(other) },
        }
    }

    /// Returns whether a patch or a patch set was given instead of a workspace.
    #[must_use]
    pub fn is_of_patches(&self) -> bool {
        let wrong = match self {
            Self::InFile { source, .. } => return source.is_of_patches(),
            Self::Pyhf(PyhfError::WrongDocument(wrong))
            | Self::Patch(PatchError::WrongDocument(wrong))
            | Self::PatchSet(
                PatchSetError::WrongDocument(wrong) | PatchSetError::Pyhf(PyhfError::WrongDocument(wrong)),
            ) => wrong,
            _ => return false,
        };
        matches!(wrong, WrongDocumentError { found: DocumentKind::Patch | DocumentKind::PatchSet, .. })
    }

    /// Returns the place in the document, or `None` for an error that is not in its text.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::InFile { source, .. } => source.place(),
            Self::Pyhf(error) => error.place(),
            Self::HistFactory(error) => error.place(),
            Self::Card(error) => error.place(),
            Self::Hs3(error) => error.place(),
            Self::Patch(error) => error.place(),
            Self::PatchSet(error) => error.place(),
            Self::Points(error) => error.place(),
            Self::NumberTable(error) => error.place(),
            Self::Map(error) => error.place(),
            Self::Digest(error) => error.place(),
            Self::Source(_) => None,
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
            Self::InFile { name, source } if *name == DocumentSource::Stdin.name() && source.is_blank() => {
                Some("name a file, or pipe a document in".into())
            }
            Self::InFile { source, .. } => source.advice(),
            Self::Source(error) => error.hint().map(Advice::from),
            Self::Pyhf(error) => error.advice(),
            Self::HistFactory(error) => error.advice(),
            Self::Card(error) => error.hint().map(Advice::from),
            Self::Hs3(error) => error.hint().map(Advice::from),
            Self::Patch(error) => error.advice(),
            Self::PatchSet(error) => error.advice(),
            Self::Digest(error) => error.hint().map(Advice::from),
            Self::Points(error) => error.hint().map(Advice::from),
            Self::NumberTable(error) => error.hint().map(Advice::from),
            Self::Map(error) => error.hint().map(Advice::from),
        }
    }

    /// Returns the error of the JSON text, if it is one.
    fn json(&self) -> Option<&JsonError> {
        match self {
            Self::Pyhf(PyhfError::Json(error))
            | Self::Hs3(Hs3Error::Json(error))
            | Self::Patch(PatchError::Json(error))
            | Self::PatchSet(PatchSetError::Json(error) | PatchSetError::Digest(DigestError::Json(error)))
            | Self::Digest(DigestError::Json(error))
            | Self::Points(PointsError::Json(error))
            | Self::NumberTable(NumberTableError::Json(error)) => Some(error),
            _ => None,
        }
    }

    fn is_blank(&self) -> bool {
        self.json().is_some_and(JsonError::is_blank)
    }
}
