//! Reads documents to workspaces and writes them back: pyhf JSON, HistFactory XML, HS3, data cards
//! of Combine (read only), JSON patches, patch sets, digests and files of toys.
//!
//! [`load`] is the usual entry point: it reads a workspace from a file (on the disk or one of
//! [`MemoryFiles`]) or standard input, compressed or not, and applies its patches. The result is an
//! [`ns_core::spec::Workspace`], as written. Whether it makes a model is decided by
//! [`ns_core::compile()`].
//!
//! ```
//! use ns_translate::{DocumentSource, LoadRequest, full_message, load, pyhf};
//!
//! let file = DocumentSource::Path("../../examples/simple.json".into());
//! let workspace = load(&LoadRequest::new(file))?;
//! assert_eq!(workspace.channels[0].samples.len(), 2);
//!
//! let text = pyhf::write_workspace(&workspace).to_string();
//! let broken = text.replacen("normfactor", "normfactr", 1);
//! let error = pyhf::read_workspace(broken.as_bytes()).unwrap_err();
//! assert!(full_message(&error).starts_with("unknown modifier type `normfactr` at `/channels/0/samples/0"));
//! assert_eq!(error.advice(), Some("did you mean `normfactor`?".into()));
//! # Ok::<(), ns_translate::DocumentError>(())
//! ```
//!
//! # Why not only serde
//!
//! `serde_json` reads valid workspaces: the fast reader of [`pyhf`] derives its types, in one pass
//! and without a tree. Three things need a tree of our own, the private module `json`:
//!
//! * **Errors with their place.** A message says at which JSON pointer, line and column a value is
//!   wrong, and what was found there. Whatever the fast reader refuses, a diagnosing reader reads
//!   again from the tree. Both accept the same documents; tests compare them on random, damaged and
//!   published ones.
//! * **Duplicate keys**, of which most parsers silently take the last. Here they are errors.
//! * **Spelling.** The digests of pyhf distinguish `1` from `1.0` and need integers of any length;
//!   workspaces that are combined, pruned or renamed keep every number as it was written.
//!
//! # Modules
//!
//! * [`pyhf`]: workspaces in the JSON of pyhf, read and written.
//! * [`patch`]: JSON patches (RFC 6902), applied whole or not at all.
//! * [`patchset`]: named patches for one workspace, found by name or values and verified by digest.
//! * [`digest`]: canonical JSON and the digests that pyhf computes.
//! * [`workspace`]: workspaces combined, pruned, renamed and sorted as documents; correlation maps.
//! * [`toys`]: ensembles of toys in NumPy files that survive a kill, their records, shards,
//!   merging.
//! * [`whole_file`]: files that are written whole or not at all.
//!
//! Each module has its own error with a place and a hint; [`DocumentError`] wraps them. An outer
//! error says what failed and its [`source`](std::error::Error::source) why; [`full_message`] puts
//! both into one line.
//!
//! A module imports only modules of lower layers, which a test checks:
//!
//! | layer | modules |
//! |---|---|
//! | entry points | `load` and `convert` over `format`, the table of readers and writers |
//! | all errors | `error` |
//! | documents of several parts | `hs3`, `patchset`, `workspace`, `xml_origin` |
//! | workspaces and patches | `combine` (data cards), `histfactory`, `patch`, `pyhf` |
//! | a text with its digest | `document_text` |
//! | documents | `digest`, `fits`, `kind` (how each is recognised), `number_table`, `points`, `toys` |
//! | syntax | `xml`, `yaml`, then `json` |
//! | bytes | `source`, `text` |
//! | tools | `clip`, `hint`, `memory_files`, `message`, `not_representable`, `place`, `whole_file` |

pub mod digest;
pub mod patch;
pub mod patchset;
pub mod pyhf;
pub mod toys;
pub mod whole_file;
pub mod workspace;

mod clip;
mod combine;
mod convert;
mod document_text;
mod error;
mod fits;
mod format;
mod hint;
mod histfactory;
mod hs3;
mod json;
mod kind;
mod load;
mod memory_files;
mod message;
mod not_representable;
mod number_table;
mod place;
mod points;
mod source;
mod text;
mod xml;
mod xml_origin;
mod yaml;

pub use combine::{CardCause, CardError, CardOptionError, CardOptions, CardProblem, LabelledCard};
pub use convert::{
    ConversionError, ConvertedDocument, TargetFormat, UnknownFormatError, XmlFiles, XmlFilesError, convert, convert_as,
    convert_to_pyhf_xml, convert_to_xml_at,
};
pub use document_text::{DocumentDigest, DocumentText};
pub use error::DocumentError;
pub use fits::{FitDocument, FitOrigin, fit_checksums, read_fit};
pub use format::{
    ReadDocument, ReadRequest, WriteRequest, WrittenDocument, read_document, read_document_with, write_document,
};
pub use histfactory::{HistFactoryError, HistFactoryProblem, XmlLayout};
pub use hs3::{Hs3Error, KeptKeys};
pub use json::{FoundValue, JsonError, SyntaxProblem, python_json};
pub use kind::{DocumentKind, WrongDocumentError};
pub use load::{
    JoinedCards, LoadRequest, LoadedWorkspace, WorkspaceText, join_cards, load, load_document, load_document_with,
    read_workspace_text, read_workspace_text_with, workspace_text,
};
pub use memory_files::MemoryFiles;
pub use message::full_message;
pub use not_representable::NotRepresentable;
pub use number_table::{NumberTable, NumberTableError, read_named_tables, read_number_table};
pub use place::{DocumentPlace, TextPosition};
pub use points::{PointsError, read_points};
pub use source::{DocumentSource, SourceError, read_bytes};
pub use text::NotUtf8Error;
pub use xml::XmlError;
pub use yaml::{YamlError, YamlFeature};
