//! The table of formats: the reader and the writer of each kind of document, where there are any.
//!
//! A new format is a module with a reader, a row in the table of [`crate::kind`] that says how it
//! is recognised, and an arm in [`DocumentKind::reader`] and [`DocumentKind::writer`] each.

use std::path::PathBuf;

use ns_core::spec::Workspace;

use crate::combine::{self, CardError, CardOptionError, CardOptions, LabelledCard, ReadCard};
use crate::error::DocumentError;
use crate::histfactory::{self, ReadCombination};
use crate::json::python_json;
use crate::kind::DocumentKind;
use crate::pyhf;
use crate::source::DocumentSource;

/// Reads a workspace from the bytes of a document. The origin is for formats whose documents name
/// further files, the options for data cards.
type Reader = fn(&[u8], &DocumentSource, &CardOptions) -> Result<ReadDocument, DocumentError>;

/// A workspace that was read from a document, and what there is to say about it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadDocument {
    /// The workspace.
    pub workspace: Workspace,
    /// Further files that the document names and that were read, each once.
    pub files: Vec<PathBuf>,
    /// What the workspace does not have of the document, or has otherwise than its format says.
    pub warnings: Vec<String>,
}

impl From<Workspace> for ReadDocument {
    fn from(workspace: Workspace) -> Self {
        Self { workspace, ..Self::default() }
    }
}

impl From<ReadCombination> for ReadDocument {
    fn from(read: ReadCombination) -> Self {
        Self { workspace: read.workspace, files: read.files, warnings: read.warnings }
    }
}

impl From<ReadCard> for ReadDocument {
    fn from(read: ReadCard) -> Self {
        Self { workspace: read.workspace, files: read.files, warnings: read.warnings }
    }
}

/// Returns the text of a document that describes a workspace.
type Writer = fn(&Workspace) -> String;

impl DocumentKind {
    /// Returns the reader of workspaces in documents of this kind, or `None` if there is none:
    /// then [`crate::WrongDocumentError::hint`] says what to do instead.
    fn reader(self) -> Option<Reader> {
        match self {
            // The reader of workspaces says what a model lacks.
            Self::Workspace | Self::Model => Some(|bytes, _, _| Ok(pyhf::read_workspace(bytes)?.into())),
            Self::HistFactory => Some(|bytes, origin, _| Ok(histfactory::read(bytes, origin)?.into())),
            Self::Card => Some(|bytes, origin, options| Ok(combine::read(bytes, origin, options)?.into())),
            Self::Patch | Self::PatchSet | Self::Hs3 => None,
        }
    }

    /// Returns the writer of workspaces as documents of this kind, or `None` if there is none.
    fn writer(self) -> Option<Writer> {
        match self {
            Self::Workspace => Some(|workspace| {
                let document = pyhf::write_workspace(workspace);
                python_json(&document).unwrap_or_else(|error| unreachable!("all keys are text: {error}"))
            }),
            Self::Model | Self::Patch | Self::PatchSet | Self::Hs3 | Self::HistFactory | Self::Card => None,
        }
    }

    /// Returns whether documents of this kind are JSON, as patches and digests need them.
    #[must_use]
    pub fn is_json(self) -> bool {
        !matches!(self, Self::HistFactory | Self::Card)
    }

    /// Returns whether [`read_document`] reads documents of this kind.
    #[must_use]
    pub fn is_readable(self) -> bool {
        self.reader().is_some()
    }

    /// Returns whether [`write_document`] writes documents of this kind.
    #[must_use]
    pub fn is_writable(self) -> bool {
        self.writer().is_some()
    }
}

/// Reads a workspace from a document of any readable kind, recognised by its first keys.
///
/// A document of another or of no known kind goes to the reader of pyhf workspaces, which says
/// what is wrong with it.
///
/// # Errors
///
/// Those of the reader, without the name of the file.
///
/// # Example
///
/// ```
/// use ns_translate::{DocumentSource, read_document};
///
/// let patch = br#"[{"op": "remove", "path": "/channels/0"}]"#;
/// let error = read_document(patch, &DocumentSource::Stdin).unwrap_err();
/// assert_eq!(error.to_string(), "expected a pyhf workspace, found a JSON patch");
/// ```
pub fn read_document(bytes: &[u8], origin: &DocumentSource) -> Result<ReadDocument, DocumentError> {
    read_document_with(bytes, origin, &CardOptions::default())
}

/// Reads a workspace as [`read_document`] does, a data card as `options` say.
///
/// # Errors
///
/// Those of the reader, without the name of the file; options for cards with another document.
pub fn read_document_with(
    bytes: &[u8],
    origin: &DocumentSource,
    options: &CardOptions,
) -> Result<ReadDocument, DocumentError> {
    let kind = DocumentKind::recognize(bytes);
    if !options.is_default() && kind != Some(DocumentKind::Card) {
        let found = kind.map_or_else(|| "another one".to_owned(), |kind| kind.to_string());
        return Err(CardError::from(CardOptionError::NotACard { found }).into());
    }
    match kind.and_then(DocumentKind::reader) {
        Some(read) => read(bytes, origin, options),
        None => Ok(pyhf::read_workspace(bytes)?.into()),
    }
}

/// Reads several data cards of Combine as one, as `combineCards.py` joins them.
///
/// # Errors
///
/// Those of the reader with the name of the card, and what the cards do not agree about.
pub fn read_joined_cards(cards: &[LabelledCard], options: &CardOptions) -> Result<ReadDocument, DocumentError> {
    Ok(combine::read_joined(cards, options)?.into())
}

/// Returns the text of a document of kind `kind` that describes `workspace`, or `None` if such
/// documents cannot be written.
#[must_use]
pub fn write_document(workspace: &Workspace, kind: DocumentKind) -> Option<String> {
    kind.writer().map(|write| write(workspace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let text = include_bytes!("../../../examples/simple.json");
        let workspace = read_document(text, &DocumentSource::Stdin).expect("a workspace").workspace;
        for kind in DocumentKind::ALL.into_iter().filter(|kind| kind.is_writable()) {
            let written = write_document(&workspace, kind).expect("a writable kind");
            assert_eq!(DocumentKind::recognize(written.as_bytes()), Some(kind));
            let read = read_document(written.as_bytes(), &DocumentSource::Stdin).expect("readable");
            assert_eq!(read.workspace, workspace);
        }
    }
}
