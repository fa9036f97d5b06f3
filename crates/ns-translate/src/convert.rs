//! Converts workspaces between formats. What a format cannot hold is an error if it is part of the
//! model, and a warning if it is not.

use ns_core::spec::Workspace;

use crate::format::write_document;
use crate::hs3::{self, KeptKeys};
use crate::json::python_json;
use crate::kind::DocumentKind;
use crate::not_representable::NotRepresentable;
use crate::pyhf;

/// The number of items that a message lists.
const LISTED: usize = 10;

/// The formats that workspaces are converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetFormat {
    /// pyhf JSON as pyhf reads it.
    Pyhf,
    /// pyhf JSON with keys that pyhf does not have.
    Extended,
    /// HS3 0.2.
    Hs3,
}

impl TargetFormat {
    /// Every format, with its name.
    pub const ALL: [(Self, &'static str); 3] = [(Self::Pyhf, "pyhf"), (Self::Extended, "extended"), (Self::Hs3, "hs3")];

    /// Returns the format called `word`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, name)| *name == word).map(|(format, _)| format)
    }

    fn described(self) -> &'static str {
        match self {
            Self::Pyhf => "pyhf JSON",
            Self::Extended => "pyhf JSON with further keys",
            Self::Hs3 => "an HS3 document",
        }
    }
}

/// A document that was converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedDocument {
    /// Its text.
    pub text: String,
    /// What it does not have of the document that was read, other than parts of the model.
    pub warnings: Vec<String>,
}

/// A model that a format cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot hold {}", format.described(), listed(items))]
pub struct ConversionError {
    /// The format.
    pub format: TargetFormat,
    /// What it cannot hold.
    pub items: Vec<NotRepresentable>,
}

impl ConversionError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self.format {
            TargetFormat::Pyhf => Some("the format `extended` has keys for it, which pyhf does not read"),
            TargetFormat::Extended | TargetFormat::Hs3 => None,
        }
    }
}

fn listed(items: &[NotRepresentable]) -> String {
    let shown: Vec<String> = items.iter().take(LISTED).map(ToString::to_string).collect();
    let rest = items.len().saturating_sub(LISTED);
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}

/// Returns the document of format `format` that describes `workspace`; `kept` is what the document
/// that it was read from had beside it.
///
/// # Errors
///
/// A model that the format cannot hold.
///
/// # Example
///
/// ```
/// use ns_translate::{DocumentSource, TargetFormat, convert, read_bytes, read_document};
///
/// let file = DocumentSource::Path("../../examples/simple.json".into());
/// let read = read_document(&read_bytes(&file)?, &file)?;
/// let converted = convert(&read.workspace, &read.kept, TargetFormat::Hs3).expect("a model that HS3 has");
/// let back = read_document(converted.text.as_bytes(), &DocumentSource::Stdin)?;
/// assert_eq!(back.workspace, read.workspace);
/// # Ok::<(), ns_translate::DocumentError>(())
/// ```
pub fn convert(
    workspace: &Workspace,
    kept: &KeptKeys,
    format: TargetFormat,
) -> Result<ConvertedDocument, ConversionError> {
    let failed = |items| ConversionError { format, items };
    if format == TargetFormat::Hs3 {
        let written = hs3::write(workspace, kept).map_err(failed)?;
        let text = python_json(&written.document).unwrap_or_else(|error| unreachable!("all keys are text: {error}"));
        return Ok(ConvertedDocument { text, warnings: lost(&written.lost, format) });
    }
    if format == TargetFormat::Pyhf {
        pyhf::require_schema(workspace).map_err(failed)?;
    }
    let kept: Vec<&str> = kept.pointers().collect();
    Ok(ConvertedDocument { text: pyhf_text(workspace), warnings: lost(&kept, format) })
}

fn pyhf_text(workspace: &Workspace) -> String {
    write_document(workspace, DocumentKind::Workspace).unwrap_or_default()
}

fn lost(pointers: &[impl AsRef<str>], format: TargetFormat) -> Vec<String> {
    if pointers.is_empty() {
        return Vec::new();
    }
    let shown = crate::hint::in_backticks(pointers.iter().take(LISTED));
    let rest = pointers.len().saturating_sub(LISTED);
    let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    vec![format!("left out, because {} has no room for them: {shown}{more}", format.described())]
}
