//! What can be wrong with a document: names, values and places in variants, words in their messages, advice in `hint`.

use std::fmt;

use ns_core::spec::ModifierKind;

use crate::json::SyntaxProblem;
use crate::kind::DocumentKind;
use crate::patch::PatchProblem;
use crate::patchset::PatchValue;
use crate::place::{DocumentPlace, TextPosition};

/// Why a document could not be read, patched or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The file system, or the decompressor, refused.
    #[error("cannot read {name}")]
    Unreadable {
        /// The file in backticks, or `standard input`.
        name: String,
        /// Its reason.
        source: std::io::Error,
    },
    /// More bytes than anybody's workspace has.
    #[error("{name} holds more than {limit} bytes")]
    TooLarge {
        /// The file in backticks, or `standard input`.
        name: String,
        /// The limit in bytes, after decompression.
        limit: u64,
    },
    /// A compressed file with more in it than is unpacked unasked.
    #[error("{name} unpacks to more than {limit} bytes")]
    UnpackedTooLarge {
        /// The file in backticks, or `standard input`.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A limit in the environment that is no number.
    #[error("`{variable}={value}` is not a number of bytes")]
    NotALimit {
        /// The variable's name.
        variable: &'static str,
        /// What it is set to.
        value: String,
    },
    /// Another error, and the file in which it is.
    #[error("in {name}: {error}")]
    InFile {
        /// The file in backticks, or `standard input`.
        name: String,
        /// What is wrong in it.
        error: Box<DocumentError>,
    },
    /// Bytes that are no text.
    #[error("the document is not UTF-8 text: byte {byte:#04x} at {position}")]
    NotUtf8 {
        /// The first byte that does not belong.
        byte: u8,
        /// Where it is.
        position: TextPosition,
    },
    /// Text that is not JSON.
    #[error("{problem} {place}")]
    Syntax {
        /// In what way it is not.
        problem: SyntaxProblem,
        /// Where.
        place: DocumentPlace,
    },
    /// `NaN` or an infinity in place of a number.
    #[error("`{literal}` is not a JSON number, {place}")]
    NotFinite {
        /// As written.
        literal: String,
        /// Where.
        place: DocumentPlace,
    },
    /// A number that no double holds.
    #[error("the number `{number}` is out of range {place}")]
    NumberOutOfRange {
        /// As written, shortened.
        number: String,
        /// Where.
        place: DocumentPlace,
    },
    /// The whole document is of another kind.
    #[error("expected {wanted}, found {found}")]
    WrongDocument {
        /// The kind asked for.
        wanted: DocumentKind,
        /// The kind given.
        found: DocumentKind,
    },
    /// A value of another type.
    #[error("expected {expected}, found {found} {place}")]
    WrongType {
        /// The type wanted, with its article.
        expected: &'static str,
        /// What stands there.
        found: FoundValue,
        /// Where.
        place: DocumentPlace,
    },
    /// A modifier's data does not fit its type.
    #[error("a `{kind}` modifier's data must be {}, found {found} {place}", shape_of(*.kind))]
    ModifierData {
        /// The modifier's type.
        kind: ModifierKind,
        /// What stands there.
        found: FoundValue,
        /// Where.
        place: DocumentPlace,
    },
    /// A modifier type that HistFactory does not have.
    #[error("unknown modifier type `{kind}` {place}")]
    UnknownModifier {
        /// As written.
        kind: String,
        /// Where.
        place: DocumentPlace,
    },
    /// A lumi modifier that is not called `lumi`.
    #[error("a `lumi` modifier must be named `lumi`, found `{name}` {place}")]
    MisnamedLumi {
        /// Its name.
        name: String,
        /// Where.
        place: DocumentPlace,
    },
    /// A key that does not belong here.
    #[error("unknown key `{key}` {place}")]
    UnknownKey {
        /// As written.
        key: String,
        /// The keys that do belong.
        known: &'static [&'static str],
        /// Where.
        place: DocumentPlace,
    },
    /// A key that comes twice in one object.
    #[error("duplicate key `{key}` {place}")]
    DuplicateKey {
        /// The key.
        key: String,
        /// Where it stands for the second time.
        place: DocumentPlace,
    },
    /// A key that should be here.
    #[error("missing key `{key}` in the object {place}")]
    MissingKey {
        /// The key.
        key: &'static str,
        /// The object.
        place: DocumentPlace,
    },
    /// A list, or an object, that needs at least one entry.
    #[error("expected at least one entry, found none {place}")]
    Empty {
        /// Where.
        place: DocumentPlace,
    },
    /// A list of another length than wanted.
    #[error("expected {expected} entries, found {found} {place}")]
    WrongLength {
        /// The length wanted.
        expected: usize,
        /// The length found.
        found: usize,
        /// Where.
        place: DocumentPlace,
    },
    /// A schema version other than 1.0.0.
    #[error("version `{found}` is not supported {place}")]
    UnsupportedVersion {
        /// As written.
        found: String,
        /// Where.
        place: DocumentPlace,
    },
    /// A string that does not look as the schema demands.
    #[error("`{text}` is not {expected} {place}")]
    Malformed {
        /// As written.
        text: String,
        /// What it should be.
        expected: &'static str,
        /// Where.
        place: DocumentPlace,
    },
    /// A patch operation that RFC 6902 does not have.
    #[error("unknown patch operation `{op}` {place}")]
    UnknownOperation {
        /// As written.
        op: String,
        /// Where.
        place: DocumentPlace,
    },
    /// A patch that does not fit the document.
    #[error("operation {index} (`{op} {path}`): {problem}")]
    Patch {
        /// The operation, from 0.
        index: usize,
        /// Its kind.
        op: &'static str,
        /// Its path.
        path: String,
        /// Why it cannot be done.
        problem: Box<PatchProblem>,
    },
    /// Two patches of a set with one name.
    #[error("two patches are named `{name}`: the second {place}")]
    DuplicatePatchName {
        /// The name.
        name: String,
        /// Where it comes again.
        place: DocumentPlace,
    },
    /// Two patches of a set with the same values.
    #[error("patches `{first}` and `{second}` have the same values {place}")]
    DuplicatePatchValues {
        /// The first patch.
        first: String,
        /// The second patch.
        second: String,
        /// The second patch's values.
        place: DocumentPlace,
    },
    /// A patch whose values do not match the set's labels.
    #[error("patch `{name}` has {found} values for {expected} labels {place}")]
    ValuesPerLabel {
        /// The patch.
        name: String,
        /// The number of labels.
        expected: usize,
        /// The number of values.
        found: usize,
        /// Where.
        place: DocumentPlace,
    },
    /// A patch name that the set does not have.
    #[error("the patch set has no patch named `{name}`")]
    UnknownPatch {
        /// The name asked for.
        name: String,
        /// The names it has.
        known: Vec<String>,
    },
    /// Patch values that the set does not have.
    #[error("the patch set has no patch with the values {}", listed(.values))]
    UnknownPatchValues {
        /// The values asked for.
        values: Vec<PatchValue>,
        /// The set's labels.
        labels: Vec<String>,
    },
    /// A digest algorithm that is not offered.
    #[error("unknown digest algorithm `{name}`")]
    UnknownAlgorithm {
        /// As written.
        name: String,
    },
    /// A workspace that is not the one a patch set was made for.
    #[error(
        "the patch set was made for another workspace: its {algorithm} digest is `{expected}`, this one's `{found}`"
    )]
    DigestMismatch {
        /// The algorithm.
        algorithm: crate::digest::DigestAlgorithm,
        /// The digest in the patch set.
        expected: String,
        /// The digest of the workspace given.
        found: String,
    },
}

/// What stands where something else should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundValue {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as written.
    Number(String),
    /// A string.
    Text(String),
    /// A list of so many entries.
    List(usize),
    /// An object.
    Object,
    /// A list or an object, which of them was not looked at.
    Nested,
}

impl fmt::Display for FoundValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 60;
        match self {
            Self::Null => f.write_str("`null`"),
            Self::Bool(value) => write!(f, "`{value}`"),
            Self::Number(spelling) => write!(f, "the number `{}`", cut(spelling, LONGEST)),
            Self::Text(text) => write!(f, "the string `{}`", cut(text, LONGEST)),
            Self::List(length) => write!(f, "a list of {length}"),
            Self::Object => f.write_str("an object"),
            Self::Nested => f.write_str("a list or an object"),
        }
    }
}

fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn shape_of(kind: ModifierKind) -> &'static str {
    match kind {
        ModifierKind::NormFactor | ModifierKind::ShapeFactor | ModifierKind::Lumi => "`null`",
        ModifierKind::NormSys => "an object with `lo` and `hi`",
        ModifierKind::HistoSys => "an object with `lo_data` and `hi_data`",
        ModifierKind::ShapeSys | ModifierKind::StatError => "a list of numbers, one per bin",
    }
}

fn listed(values: &[PatchValue]) -> String {
    let words: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
    words.join(", ")
}

impl DocumentError {
    /// Names the file in which the error is.
    #[must_use]
    pub fn in_file(self, name: &str) -> Self {
        match self {
            named @ (Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::UnpackedTooLarge { .. }
            | Self::NotALimit { .. }
            | Self::InFile { .. }) => named,
            other => Self::InFile { name: name.to_owned(), error: Box::new(other) },
        }
    }

    /// Whether a patch or a patch set stands where a workspace should.
    #[must_use]
    pub fn is_of_patches(&self) -> bool {
        match self {
            Self::InFile { error, .. } => error.is_of_patches(),
            Self::WrongDocument { found, .. } => matches!(found, DocumentKind::Patch | DocumentKind::PatchSet),
            _ => false,
        }
    }

    /// The place in the document, where the error has one.
    #[must_use]
    pub fn place(&self) -> Option<&DocumentPlace> {
        match self {
            Self::InFile { error, .. } => error.place(),
            Self::Syntax { place, .. }
            | Self::NotFinite { place, .. }
            | Self::NumberOutOfRange { place, .. }
            | Self::WrongType { place, .. }
            | Self::ModifierData { place, .. }
            | Self::UnknownModifier { place, .. }
            | Self::MisnamedLumi { place, .. }
            | Self::UnknownKey { place, .. }
            | Self::DuplicateKey { place, .. }
            | Self::MissingKey { place, .. }
            | Self::Empty { place }
            | Self::WrongLength { place, .. }
            | Self::UnsupportedVersion { place, .. }
            | Self::Malformed { place, .. }
            | Self::UnknownOperation { place, .. }
            | Self::DuplicatePatchName { place, .. }
            | Self::DuplicatePatchValues { place, .. }
            | Self::ValuesPerLabel { place, .. } => Some(place),
            _ => None,
        }
    }

    /// The JSON pointer of [`Self::place`].
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        self.place().map(|place| place.pointer.as_str())
    }

    /// One line of advice, where there is any.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        crate::hint::of(self)
    }
}
