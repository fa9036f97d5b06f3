//! Computes digests of documents, equal to those of `pyhf.utils.digest`, which patch sets carry.
//!
//! The digest is that of the document as Python writes it with
//! `json.dumps(json.loads(…), sort_keys=True, ensure_ascii=False)`. So line breaks and the order of
//! keys do not matter, but `1` and `1.0` differ.

mod canonical;
mod error;
mod streaming;

use std::fmt;

use md5::Md5;
use sha2::{Digest, Sha256};

pub use canonical::canonical_json;
use canonical::state_of_canonical;
pub use error::DigestError;

/// The digest algorithms of pyhf's patch sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DigestAlgorithm {
    /// MD5, 32 hexadecimal digits.
    Md5,
    /// SHA-256, 64 hexadecimal digits.
    Sha256,
}

impl DigestAlgorithm {
    /// Every algorithm.
    pub const ALL: [Self; 2] = [Self::Md5, Self::Sha256];

    /// Returns the word for the algorithm in documents and in pyhf.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
        }
    }

    /// Returns the algorithm with this name.
    ///
    /// # Errors
    ///
    /// [`DigestError::UnknownAlgorithm`].
    pub fn from_word(word: &str) -> Result<Self, DigestError> {
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == word);
        found.ok_or_else(|| DigestError::UnknownAlgorithm { name: word.to_owned() })
    }
}

impl fmt::Display for DigestAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the digest of a JSON document, in lower-case hexadecimal digits.
///
/// # Errors
///
/// If the document is not UTF-8 or not JSON. `NaN` and `Infinity` are accepted, as in Python.
///
/// # Example
///
/// The example of pyhf's documentation:
///
/// ```
/// use ns_translate::digest::{DigestAlgorithm, digest};
///
/// let document = br#"{"a": 2.0, "b": 3.0, "c": 1.0}"#;
/// assert_eq!(digest(document, DigestAlgorithm::Md5)?, "2c0633f242928eb55c3672fed5ba8612");
/// # Ok::<(), ns_translate::digest::DigestError>(())
/// ```
pub fn digest(bytes: &[u8], algorithm: DigestAlgorithm) -> Result<String, DigestError> {
    match algorithm {
        DigestAlgorithm::Md5 => digest_by::<Md5>(bytes),
        DigestAlgorithm::Sha256 => digest_by::<Sha256>(bytes),
    }
}

fn digest_by<D: Digest>(bytes: &[u8]) -> Result<String, DigestError> {
    let state = state_of_canonical(bytes, D::new, |state, part| state.update(part))?;
    Ok(hex(&state.finalize()))
}

/// Returns the digest of a document that [`canonical_json`] has written, so that several digests
/// cost one reading.
pub(crate) fn digest_of_canonical(canonical: &str, algorithm: DigestAlgorithm) -> String {
    match algorithm {
        DigestAlgorithm::Md5 => hex(&Md5::digest(canonical)),
        DigestAlgorithm::Sha256 => hex(&Sha256::digest(canonical)),
    }
}

/// Returns the SHA-256 digest of any bytes, as `sha256sum` prints it.
///
/// ```
/// // printf abc | sha256sum
/// let digest = ns_translate::digest::sha256_of_bytes(b"abc");
/// assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
/// ```
#[must_use]
pub fn sha256_of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the SHA-256 digest of numbers: of the bytes of little-endian doubles.
///
/// ```
/// // python3 -c "import hashlib, struct; print(hashlib.sha256(struct.pack('<2d', 1, 2)).hexdigest())"
/// let digest = ns_translate::digest::sha256_of_numbers(&[1.0, 2.0]);
/// assert_eq!(digest, "dc91ce9a50ddc828740aa26743716897fdb2bb64f1db662fe263a59be56145ae");
/// ```
#[must_use]
pub fn sha256_of_numbers(values: &[f64]) -> String {
    let mut state = Sha256::new();
    values.iter().for_each(|value| state.update(value.to_le_bytes()));
    hex(&state.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
