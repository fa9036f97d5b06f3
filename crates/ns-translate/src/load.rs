//! Loads the workspace that a user asks for: a document, patched by patches and a patch of a set.

use std::path::PathBuf;

use ns_core::spec::Workspace;
use serde_json::Value;

use crate::combine::{self, CardOptions, LabelledCard};
use crate::document_text::DocumentText;
use crate::error::DocumentError;
use crate::format::{ReadDocument, ReadRequest, pyhf_text, read_document_with};
use crate::hs3::KeptKeys;
use crate::kind::DocumentKind;
use crate::patch::{self, Patch};
use crate::patchset::{PatchSet, PatchSetError};
use crate::pyhf;
use crate::source::{DocumentSource, read_bytes};

/// A workspace, and the patches to apply before it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadRequest {
    /// The workspace.
    pub workspace: DocumentSource,
    /// JSON patches, applied in order, after the patch of the set.
    pub patches: Vec<DocumentSource>,
    /// A patch set, and the name of its patch to apply first, to the workspace that the set was
    /// made for.
    pub patchset: Option<(PathBuf, String)>,
    /// The measurement that will be chosen: documents in which each has its own data are read for
    /// it. `None` is the first one.
    pub measurement: Option<String>,
    /// How a data card of Combine is read.
    pub card: CardOptions,
}

impl LoadRequest {
    /// Returns the request for a workspace without patches.
    #[must_use]
    pub fn new(workspace: DocumentSource) -> Self {
        let card = CardOptions::default();
        Self { workspace, patches: Vec::new(), patchset: None, measurement: None, card }
    }

    fn reading(&self) -> ReadRequest<'_> {
        ReadRequest { origin: &self.workspace, measurement: self.measurement.as_deref(), card: Some(&self.card) }
    }
}

/// A workspace and the document that it was read from.
#[derive(Debug, Clone)]
pub struct LoadedWorkspace {
    /// The workspace.
    pub workspace: Workspace,
    /// The text of the document, with the patches applied; for a document that is not pyhf's, that
    /// of the workspace as pyhf JSON.
    pub document: DocumentText,
    /// The files that it was read from; `None` for text in memory.
    pub origin: Option<LoadRequest>,
    /// Further files that the document names and that were read.
    pub files: Vec<PathBuf>,
    /// What the workspace does not have of the document, or has otherwise than its format says.
    pub warnings: Vec<String>,
    /// What an HS3 document has and the workspace has not.
    pub kept: KeptKeys,
}

impl LoadedWorkspace {
    /// Returns a workspace that was read from the JSON text `document`, which was in memory.
    #[must_use]
    pub fn from_memory(workspace: Workspace, document: DocumentText) -> Self {
        Self { workspace, document, origin: None, files: Vec::new(), warnings: Vec::new(), kept: KeptKeys::default() }
    }
}

/// A workspace as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceText {
    /// The bytes of a JSON document, or those that describe the workspace of another one.
    pub bytes: Vec<u8>,
    /// What the text does not have of the document, or has otherwise than its format says.
    pub warnings: Vec<String>,
}

/// Reads the bytes of a document; HistFactory XML, HS3 and data cards are read as a workspace,
/// which is written as pyhf JSON.
///
/// # Errors
///
/// A document that cannot be read. JSON other than HS3 is not parsed.
pub fn read_workspace_text(source: &DocumentSource) -> Result<WorkspaceText, DocumentError> {
    read_workspace_text_with(source, &CardOptions::default())
}

/// Data cards of Combine that were joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedCards {
    /// The workspace.
    pub text: WorkspaceText,
    /// The names that the channels of each card have in it.
    pub channels: Vec<Vec<String>>,
}

/// Reads several data cards of Combine as one workspace, as `combineCards.py` joins them.
///
/// # Errors
///
/// Those of the reader with the name of the card, and what the cards do not agree about.
pub fn join_cards(cards: &[LabelledCard], options: &CardOptions) -> Result<JoinedCards, DocumentError> {
    let combine::ReadCards { whole, channels } = combine::read_joined(cards, options)?;
    let read = ReadDocument::from(whole);
    Ok(JoinedCards { text: WorkspaceText { bytes: bytes_as_pyhf(&read), warnings: read.warnings }, channels })
}

/// Reads a text as [`read_workspace_text`] does, a data card as `card` says.
///
/// # Errors
///
/// As [`read_workspace_text`]; options for cards with another document.
pub fn read_workspace_text_with(source: &DocumentSource, card: &CardOptions) -> Result<WorkspaceText, DocumentError> {
    let request = ReadRequest { card: Some(card), ..ReadRequest::new(source) };
    workspace_text(read_bytes(source)?, &request)
}

/// Returns the text of a workspace as [`read_workspace_text`] does, of the `bytes` of a document.
///
/// # Errors
///
/// As [`read_workspace_text`]; options for cards with another document.
pub fn workspace_text(bytes: Vec<u8>, request: &ReadRequest<'_>) -> Result<WorkspaceText, DocumentError> {
    Ok(match read_if_converted(&bytes, request)? {
        None => WorkspaceText { bytes, warnings: Vec::new() },
        Some(read) => WorkspaceText { bytes: bytes_as_pyhf(&read), warnings: read.warnings },
    })
}

/// Reads a document of a kind that is made into a workspace, or one with options for cards; returns
/// `None` for all others.
fn read_if_converted(bytes: &[u8], request: &ReadRequest<'_>) -> Result<Option<ReadDocument>, DocumentError> {
    let has_card_options = request.card.is_some_and(|card| !card.is_default());
    match DocumentKind::recognize(bytes) {
        Some(kind) if kind.is_converted() || has_card_options => {
            read_document_with(bytes, request).map(Some).map_err(|error| error.in_file(&request.origin.name()))
        }
        _ => Ok(None),
    }
}

fn bytes_as_pyhf(read: &ReadDocument) -> Vec<u8> {
    pyhf_text(&read.workspace).into_bytes()
}

/// Reads a document, applies the patches, and returns the workspace.
///
/// Patches are for pyhf JSON. Without patches the document may be of any readable
/// [`DocumentKind`](crate::DocumentKind).
///
/// # Errors
///
/// Everything that is wrong with one of the files, with the file's name; and, as in pyhf, a patch
/// set that was made for another workspace.
///
/// # Example
///
/// ```
/// use ns_translate::{DocumentSource, LoadRequest, load};
///
/// let file = DocumentSource::Path("../../examples/simple.json".into());
/// assert_eq!(load(&LoadRequest::new(file))?.channels.len(), 1);
/// # Ok::<(), ns_translate::DocumentError>(())
/// ```
pub fn load(request: &LoadRequest) -> Result<Workspace, DocumentError> {
    load_document(request).map(|loaded| loaded.workspace)
}

/// Reads a document and applies the patches, as [`load`] does, and keeps the document.
///
/// # Errors
///
/// As [`load`].
pub fn load_document(request: &LoadRequest) -> Result<LoadedWorkspace, DocumentError> {
    load_document_with(request, |_| {})
}

/// Reads a document as [`load_document`] does, and calls `begin` with its text, patches applied,
/// before the text of a document without patches is read.
///
/// # Errors
///
/// As [`load`].
pub fn load_document_with(
    request: &LoadRequest,
    begin: impl FnOnce(&DocumentText),
) -> Result<LoadedWorkspace, DocumentError> {
    let name = request.workspace.name();
    let bytes = read_bytes(&request.workspace)?;
    let reading = request.reading();
    let converted = read_if_converted(&bytes, &reading)?;
    if request.patches.is_empty() && request.patchset.is_none() {
        return load_unpatched(request, bytes, converted, begin);
    }
    let bytes = converted.as_ref().map_or(bytes, bytes_as_pyhf);
    let mut document = pyhf::read_value(&bytes).map_err(|error| DocumentError::from(error).in_file(&name))?;
    if let Some((path, patch_name)) = &request.patchset {
        apply_from_set(&mut document, &bytes, &request.workspace.sibling(path), patch_name)?;
    }
    for source in &request.patches {
        apply_from(&mut document, source)?;
    }
    let patched = format!("{name}, patched");
    let workspace = pyhf::from_value(&document).map_err(|error| DocumentError::from(error).in_file(&patched))?;
    let document = DocumentText::new(document.to_string().into_bytes());
    begin(&document);
    let ReadDocument { files, warnings, kept, .. } = converted.unwrap_or_default();
    Ok(LoadedWorkspace { workspace, document, origin: Some(request.clone()), files, warnings, kept })
}

/// Reads a document without patches; `converted` is its workspace, if it is not pyhf's.
fn load_unpatched(
    request: &LoadRequest,
    bytes: Vec<u8>,
    converted: Option<ReadDocument>,
    begin: impl FnOnce(&DocumentText),
) -> Result<LoadedWorkspace, DocumentError> {
    let document = DocumentText::new(converted.as_ref().map_or(bytes, bytes_as_pyhf));
    begin(&document);
    let read = match converted {
        Some(read) => Ok(read),
        None => read_document_with(document.bytes(), &request.reading()),
    };
    let ReadDocument { workspace, files, warnings, kept } =
        read.map_err(|error| error.in_file(&request.workspace.name()))?;
    Ok(LoadedWorkspace { workspace, document, origin: Some(request.clone()), files, warnings, kept })
}

fn apply_from_set(
    document: &mut Value,
    workspace_bytes: &[u8],
    source: &DocumentSource,
    patch_name: &str,
) -> Result<(), DocumentError> {
    let set_bytes = read_bytes(source)?;
    let mut apply = || -> Result<(), PatchSetError> {
        let set = PatchSet::from_bytes(&set_bytes)?;
        let patch = set.read(set.by_name(patch_name)?)?;
        set.require(workspace_bytes)?;
        Ok(patch::apply(document, &patch)?)
    };
    apply().map_err(|error| DocumentError::from(error).in_file(&source.name()))
}

fn apply_from(document: &mut Value, source: &DocumentSource) -> Result<(), DocumentError> {
    let bytes = read_bytes(source)?;
    let done = Patch::from_bytes(&bytes).and_then(|patch| patch::apply(document, &patch));
    done.map_err(|error| DocumentError::from(error).in_file(&source.name()))
}
