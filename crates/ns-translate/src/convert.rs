//! Converts workspaces between formats. What a format cannot hold is an error if it is part of the
//! model, and a warning if it is not.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ns_core::spec::Workspace;

use crate::format::{WriteRequest, Writer, WrittenDocument, write_hs3, write_pyhf_xml, write_workspace, write_xml};
use crate::hint;
use crate::histfactory::XmlLayout;
use crate::hs3::KeptKeys;
use crate::not_representable::NotRepresentable;
use crate::pyhf;
use crate::whole_file::{NewFile, second_at_one_place};

/// The formats that workspaces are converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetFormat {
    /// pyhf JSON as pyhf reads it.
    Pyhf,
    /// pyhf JSON with keys that pyhf does not have.
    Extended,
    /// HS3 0.2.
    Hs3,
    /// HistFactory XML with a ROOT file: several files.
    Xml,
}

impl TargetFormat {
    /// Every format, with its name.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Pyhf, "pyhf"), (Self::Extended, "extended"), (Self::Hs3, "hs3"), (Self::Xml, "xml")];

    /// Returns the format called `word`.
    ///
    /// # Errors
    ///
    /// A name that is not that of a format to write.
    ///
    /// # Example
    ///
    /// ```
    /// use ns_translate::TargetFormat;
    ///
    /// assert_eq!(TargetFormat::from_word("hs3"), Ok(TargetFormat::Hs3));
    /// assert_eq!(TargetFormat::from_word("card").unwrap_err().to_string(), "unknown format `card`");
    /// ```
    pub fn from_word(word: &str) -> Result<Self, UnknownFormatError> {
        let found = Self::ALL.into_iter().find(|(_, name)| *name == word);
        found.map(|(format, _)| format).ok_or_else(|| UnknownFormatError { format: word.to_owned() })
    }

    fn writer(self) -> Writer {
        match self {
            Self::Pyhf => write_strict,
            Self::Extended => write_workspace,
            Self::Hs3 => write_hs3,
            Self::Xml => write_xml,
        }
    }

    fn described(self) -> &'static str {
        match self {
            Self::Pyhf => "pyhf JSON",
            Self::Extended => "pyhf JSON with further keys",
            Self::Hs3 => "an HS3 document",
            Self::Xml => "HistFactory XML",
        }
    }
}

/// A name that is not that of a format to convert to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{format}`")]
pub struct UnknownFormatError {
    /// The name.
    pub format: String,
}

impl UnknownFormatError {
    /// Returns one line of advice.
    #[must_use]
    pub fn hint(&self) -> String {
        let known = hint::in_backticks(TargetFormat::ALL.map(|(_, name)| name));
        format!("choose one of {known}; data cards are only read")
    }
}

/// A document that was converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedDocument {
    /// Its text.
    pub text: String,
    /// Further files, which the text names as they are called here: from the folder that it is in.
    pub files: Vec<NewFile>,
    /// What it does not have of the document that was read, other than parts of the model.
    pub warnings: Vec<String>,
}

/// A model that a format cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot hold {}", format.described(), hint::listed(items))]
pub struct ConversionError {
    /// The format.
    pub format: TargetFormat,
    /// What it cannot hold.
    pub items: Vec<NotRepresentable>,
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
    convert_as(workspace, &WriteRequest::new(kept), format)
}

/// Converts as [`convert`] does, to a document of the name that `request` has.
///
/// # Errors
///
/// As [`convert`].
pub fn convert_as(
    workspace: &Workspace,
    request: &WriteRequest<'_>,
    format: TargetFormat,
) -> Result<ConvertedDocument, ConversionError> {
    converted(format.writer()(workspace, request), format)
}

/// A combination in HistFactory XML that is to be written, with its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XmlFiles {
    /// The files, each with the place where it goes: the combination is the last.
    pub files: Vec<NewFile>,
    /// What it does not have of the document that was read, and what ROOT does otherwise.
    pub warnings: Vec<String>,
}

/// Why a combination cannot be written to a place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XmlFilesError {
    /// The place is a folder, by its last part.
    #[error("`{}` is not the name of a file", path.display())]
    NoName {
        /// The place.
        path: PathBuf,
    },
    /// A name that others cannot begin with.
    #[error("names of further files cannot begin with `{}`, which is not Unicode", path.display())]
    NotUnicode {
        /// The place of the combination.
        path: PathBuf,
    },
    /// A file that the combination names would have its name.
    #[error("the combination and a file that it names would both be `{}`", path.display())]
    SamePlace {
        /// The place of the combination.
        path: PathBuf,
    },
    /// A model that XML cannot hold.
    #[error(transparent)]
    Conversion(ConversionError),
}

impl XmlFilesError {
    /// Returns one line of advice on the name, or `None`.
    #[must_use]
    pub fn name_hint(&self) -> Option<String> {
        match self {
            Self::NoName { path } => Some(format!("name the combination: `{}`", path.join("model.xml").display())),
            Self::SamePlace { path } if path.extension() != Some(OsStr::new("xml")) => {
                Some(format!("name the combination `{}`", path.with_extension("xml").display()))
            }
            Self::NotUnicode { .. } | Self::SamePlace { .. } => Some("give the combination another name".to_owned()),
            Self::Conversion(_) => None,
        }
    }
}

/// Returns the files that describe `workspace` in HistFactory XML, with the combination at `path`
/// and the others beside it.
///
/// # Errors
///
/// A path that the combination cannot have, and as [`convert`].
pub fn convert_to_xml_at(workspace: &Workspace, kept: &KeptKeys, path: &Path) -> Result<XmlFiles, XmlFilesError> {
    let stem = path.file_stem().ok_or_else(|| XmlFilesError::NoName { path: path.to_owned() })?;
    let stem = OsStr::to_str(stem).ok_or_else(|| XmlFilesError::NotUnicode { path: path.to_owned() })?;
    let converted = convert_as(workspace, &WriteRequest { kept, stem }, TargetFormat::Xml);
    let ConvertedDocument { text, files, warnings } = converted.map_err(XmlFilesError::Conversion)?;
    let further = files.into_iter().map(|file| NewFile { path: path.with_file_name(file.path), ..file });
    let files: Vec<NewFile> = further.chain([NewFile { path: path.to_owned(), bytes: text.into() }]).collect();
    match second_at_one_place(&files) {
        None => Ok(XmlFiles { files, warnings }),
        Some(file) => Err(XmlFilesError::SamePlace { path: file.path.clone() }),
    }
}

/// Returns HistFactory XML with the names of `layout`, which are pyhf's, and for pyhf's reading.
///
/// # Errors
///
/// As [`convert`].
pub fn convert_to_pyhf_xml(
    workspace: &Workspace,
    kept: &KeptKeys,
    layout: &XmlLayout,
) -> Result<ConvertedDocument, ConversionError> {
    converted(write_pyhf_xml(workspace, layout, kept), TargetFormat::Xml)
}

fn converted(
    written: Result<WrittenDocument, Vec<NotRepresentable>>,
    format: TargetFormat,
) -> Result<ConvertedDocument, ConversionError> {
    let WrittenDocument { text, files, lost: pointers, mut warnings } =
        written.map_err(|items| ConversionError { format, items })?;
    warnings.extend(lost(&pointers, format));
    Ok(ConvertedDocument { text, files, warnings })
}

/// Writes pyhf JSON that pyhf reads.
fn write_strict(workspace: &Workspace, request: &WriteRequest<'_>) -> Result<WrittenDocument, Vec<NotRepresentable>> {
    pyhf::require_schema(workspace)?;
    let (plain, dropped) = pyhf::without_labels(workspace);
    let mut written = write_workspace(&plain, request)?;
    written.lost.extend(dropped);
    Ok(written)
}

fn lost(pointers: &[String], format: TargetFormat) -> Vec<String> {
    if pointers.is_empty() {
        return Vec::new();
    }
    let shown = hint::listed_in_backticks(pointers);
    vec![format!("left out, because {} has no room for them: {shown}", format.described())]
}
