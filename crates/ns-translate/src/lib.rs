//! Documents to workspaces and back: pyhf JSON, patches, patch sets, digests; workspaces combined, pruned, renamed and sorted.
//!
//! [`load`] is the usual way in: a workspace from a file or standard input, compressed or not, with its patches. What
//! comes out is [`ns_core::spec::Workspace`], as written; whether it makes a model is the compiler's business there.
//! Everything that can be wrong is a [`DocumentError`] with its place in the document and, often, a hint.

pub mod digest;
pub mod patch;
pub mod patchset;
pub mod pyhf;
pub mod toys;
pub mod whole_file;
pub mod workspace;

mod error;
mod hint;
mod json;
mod kind;
mod load;
mod place;
mod points;
mod source;
mod text;

pub use error::{DocumentError, FoundValue};
pub use json::{SyntaxProblem, python_json};
pub use kind::DocumentKind;
pub use load::{LoadRequest, load};
pub use place::{DocumentPlace, TextPosition};
pub use points::read_points;
pub use source::{DocumentSource, read_bytes};
