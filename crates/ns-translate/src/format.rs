//! The table of formats: the reader and the writer of each kind of document, where there are any.
//!
//! A new format is a module with a reader, a row in the table of [`crate::kind`] that says how it
//! is recognised, and an arm in [`DocumentKind::reader`] and [`DocumentKind::writer`] each. Data
//! cards are only read.

use std::path::PathBuf;

use ns_core::spec::Workspace;

use crate::combine::{self, CardError, CardOptionError, CardOptions, ReadCard};
use crate::error::DocumentError;
use crate::histfactory::{self, ReadCombination, WrittenCombination, XmlDialect, XmlLayout};
use crate::hs3::{self, KeptKeys, ReadHs3, WrittenHs3};
use crate::json::python_json;
use crate::kind::DocumentKind;
use crate::not_representable::NotRepresentable;
use crate::pyhf;
use crate::source::DocumentSource;
use crate::whole_file::NewFile;
use crate::xml_origin;

/// Reads a workspace from the bytes of a document.
type Reader = fn(&[u8], &ReadRequest<'_>) -> Result<ReadDocument, DocumentError>;

/// What a reader is told beside the bytes.
#[derive(Debug, Clone, Copy)]
pub struct ReadRequest<'a> {
    /// Where the bytes are from: for formats whose documents name further files.
    pub origin: &'a DocumentSource,
    /// The measurement that is asked for: for formats in which each has its own data.
    pub measurement: Option<&'a str>,
    /// How a data card is read; `None` for the defaults.
    pub card: Option<&'a CardOptions>,
}

impl<'a> ReadRequest<'a> {
    /// Returns the request for a document from `origin` without options.
    #[must_use]
    pub fn new(origin: &'a DocumentSource) -> Self {
        Self { origin, measurement: None, card: None }
    }
}

/// A workspace that was read from a document, and what there is to say about it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadDocument {
    /// The workspace.
    pub workspace: Workspace,
    /// Further files that the document names and that were read, each once.
    pub files: Vec<PathBuf>,
    /// What the workspace does not have of the document, or has otherwise than its format says.
    pub warnings: Vec<String>,
    /// What an HS3 document has and the workspace does not have.
    pub kept: KeptKeys,
}

impl From<Workspace> for ReadDocument {
    fn from(workspace: Workspace) -> Self {
        Self { workspace, ..Self::default() }
    }
}

impl From<ReadCombination> for ReadDocument {
    fn from(read: ReadCombination) -> Self {
        let ReadCombination { workspace, files, moved, warnings, .. } = xml_origin::restore(read);
        Self { workspace, files, warnings: [moved, warnings].concat(), ..Self::default() }
    }
}

impl From<ReadHs3> for ReadDocument {
    fn from(read: ReadHs3) -> Self {
        let ReadHs3 { workspace, kept, warnings } = read;
        Self { workspace, warnings, kept, ..Self::default() }
    }
}

impl From<ReadCard> for ReadDocument {
    fn from(read: ReadCard) -> Self {
        Self { workspace: read.workspace, files: read.files, warnings: read.warnings, ..Self::default() }
    }
}

/// A document that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenDocument {
    /// Its text.
    pub text: String,
    /// Further files, which the text names as they are called here: from the folder that it is in.
    pub files: Vec<NewFile>,
    /// JSON pointers of what it does not have of the document that was read, other than parts of
    /// the model.
    pub lost: Vec<String>,
    /// What other programs that read it do otherwise than the workspace says.
    pub warnings: Vec<String>,
}

impl WrittenDocument {
    /// Returns a document without further files.
    fn new(text: String, lost: Vec<String>) -> Self {
        Self { text, files: Vec::new(), lost, warnings: Vec::new() }
    }
}

/// What a writer is told beside the workspace.
#[derive(Debug, Clone, Copy)]
pub struct WriteRequest<'a> {
    /// What was kept of the document that the workspace was read from.
    pub kept: &'a KeptKeys,
    /// The name of the document without its ending, with which those of further files begin.
    pub stem: &'a str,
}

impl<'a> WriteRequest<'a> {
    /// Returns the request for a document called `workspace`.
    #[must_use]
    pub fn new(kept: &'a KeptKeys) -> Self {
        Self { kept, stem: "workspace" }
    }
}

/// Writes a workspace, or says what the format cannot hold.
pub(crate) type Writer = fn(&Workspace, &WriteRequest<'_>) -> Result<WrittenDocument, Vec<NotRepresentable>>;

/// Returns the text of a workspace as pyhf JSON, with keys that pyhf does not have.
pub(crate) fn pyhf_text(workspace: &Workspace) -> String {
    let document = pyhf::write_workspace(workspace);
    python_json(&document).unwrap_or_else(|error| unreachable!("all keys are text: {error}"))
}

/// Writes pyhf JSON, with keys that pyhf does not have.
pub(crate) fn write_workspace(
    workspace: &Workspace,
    request: &WriteRequest<'_>,
) -> Result<WrittenDocument, Vec<NotRepresentable>> {
    Ok(WrittenDocument::new(pyhf_text(workspace), lost(request.kept)))
}

fn lost(kept: &KeptKeys) -> Vec<String> {
    kept.pointers().map(str::to_owned).collect()
}

/// Writes HS3.
pub(crate) fn write_hs3(
    workspace: &Workspace,
    request: &WriteRequest<'_>,
) -> Result<WrittenDocument, Vec<NotRepresentable>> {
    let WrittenHs3 { document, lost } = hs3::write(workspace, request.kept)?;
    let text = python_json(&document).unwrap_or_else(|error| unreachable!("all keys are text: {error}"));
    Ok(WrittenDocument::new(text, lost))
}

/// Writes HistFactory XML with a ROOT file, for ROOT and for the reader here.
pub(crate) fn write_xml(
    workspace: &Workspace,
    request: &WriteRequest<'_>,
) -> Result<WrittenDocument, Vec<NotRepresentable>> {
    let layout = XmlLayout::beside(request.stem);
    let mut written = histfactory::write(workspace, &layout, XmlDialect::Root)?;
    xml_origin::annotate(&mut written, workspace).map_err(|refused| vec![refused])?;
    let WrittenCombination { text, files, warnings, lost: mut all_lost } = written;
    all_lost.extend(lost(request.kept));
    Ok(WrittenDocument { text, files, lost: all_lost, warnings })
}

/// Writes HistFactory XML with a ROOT file in the folders that pyhf has for them, and for pyhf.
///
/// # Errors
///
/// What XML cannot hold.
pub(crate) fn write_pyhf_xml(
    workspace: &Workspace,
    layout: &XmlLayout,
    kept: &KeptKeys,
) -> Result<WrittenDocument, Vec<NotRepresentable>> {
    let written = histfactory::write(workspace, layout, XmlDialect::Pyhf)?;
    let WrittenCombination { text, files, warnings, lost: mut all_lost } = written;
    all_lost.extend(lost(kept));
    Ok(WrittenDocument { text, files, lost: all_lost, warnings })
}

impl DocumentKind {
    /// Returns the reader of workspaces in documents of this kind, or `None` if there is none:
    /// then [`crate::WrongDocumentError::advice`] says what to do instead.
    fn reader(self) -> Option<Reader> {
        match self {
            // The reader of workspaces says what a model lacks.
            Self::Workspace | Self::Model => Some(|bytes, _| Ok(pyhf::read_workspace(bytes)?.into())),
            Self::HistFactory => Some(|bytes, request| Ok(histfactory::read(bytes, request.origin)?.into())),
            Self::Hs3 => Some(|bytes, request| Ok(hs3::read(bytes, request.measurement)?.into())),
            Self::Card => Some(|bytes, request| {
                let defaults = CardOptions::default();
                Ok(combine::read(bytes, request.origin, request.card.unwrap_or(&defaults))?.into())
            }),
            Self::Patch | Self::PatchSet => None,
        }
    }

    /// Returns the writer of workspaces as documents of this kind, or `None` if there is none.
    fn writer(self) -> Option<Writer> {
        match self {
            Self::Workspace => Some(write_workspace),
            Self::Hs3 => Some(write_hs3),
            Self::HistFactory => Some(write_xml),
            Self::Model | Self::Patch | Self::PatchSet | Self::Card => None,
        }
    }

    /// Returns whether documents of this kind are made into workspaces before patches are applied
    /// and digests computed.
    #[must_use]
    pub fn is_converted(self) -> bool {
        matches!(self, Self::HistFactory | Self::Hs3 | Self::Card)
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
    read_document_with(bytes, &ReadRequest::new(origin))
}

/// Reads a workspace as [`read_document`] does, with the measurement and the options of `request`.
///
/// # Errors
///
/// As [`read_document`]; a measurement that the document does not have, if it must be known; and
/// options for cards with another document.
pub fn read_document_with(bytes: &[u8], request: &ReadRequest<'_>) -> Result<ReadDocument, DocumentError> {
    let kind = DocumentKind::recognize(bytes);
    if request.card.is_some_and(|card| !card.is_default()) && kind != Some(DocumentKind::Card) {
        let found = kind.map_or_else(|| "another one".to_owned(), |kind| kind.to_string());
        return Err(CardError::from(CardOptionError::NotACard { found }).into());
    }
    match kind.and_then(DocumentKind::reader) {
        Some(read) => read(bytes, request),
        None => Ok(pyhf::read_workspace(bytes)?.into()),
    }
}

/// Returns the document of kind `kind` that describes `workspace`; `None` if such documents are
/// only read.
///
/// # Errors
///
/// What the format cannot hold.
pub fn write_document(
    workspace: &Workspace,
    request: &WriteRequest<'_>,
    kind: DocumentKind,
) -> Option<Result<WrittenDocument, Vec<NotRepresentable>>> {
    kind.writer().map(|write| write(workspace, request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for name in ["simple", "shapes", "background"] {
            let file = DocumentSource::Path(format!("../../examples/{name}.json").into());
            let text = crate::source::read_bytes(&file).expect("readable");
            let workspace = read_document(&text, &file).expect("a workspace").workspace;
            for kind in DocumentKind::ALL.into_iter().filter(|kind| kind.is_writable()) {
                let written = write_document(&workspace, &WriteRequest::new(&KeptKeys::default()), kind);
                let written = written.expect("a writable kind").expect("a model that every format can hold");
                assert_eq!(DocumentKind::recognize(written.text.as_bytes()), Some(kind));
                let folder = tempfile::tempdir().expect("a folder");
                for file in &written.files {
                    std::fs::write(folder.path().join(&file.path), &file.bytes).expect("written");
                }
                let origin = DocumentSource::Path(folder.path().join("written"));
                let read = read_document(written.text.as_bytes(), &origin).expect("readable");
                assert_eq!(read.workspace, workspace, "{name} as {kind}");
            }
        }
    }

    #[test]
    fn all_documents_of_whole_models_but_cards_are_written() {
        let is_written = |kind: &DocumentKind| kind.is_writable();
        let written: Vec<DocumentKind> = DocumentKind::ALL.into_iter().filter(is_written).collect();
        assert_eq!(written, [DocumentKind::Workspace, DocumentKind::Hs3, DocumentKind::HistFactory]);
    }
}
