//! The text of a document with its digest.

use std::sync::{Arc, OnceLock};

use crate::digest::{DigestAlgorithm, digest};

/// The text of a document, and its SHA-256 digest, which is computed once. Clones share both.
///
/// ```
/// use ns_translate::DocumentText;
///
/// let document = DocumentText::new(br#"{"b": 1, "a": 2}"#.to_vec());
/// document.begin_digest();
/// assert_eq!(document.sha256(), DocumentText::new(br#"{"a":2,"b":1}"#.to_vec()).sha256());
/// ```
#[derive(Debug, Clone)]
pub struct DocumentText {
    bytes: Arc<Vec<u8>>,
    sha256: Arc<OnceLock<Option<String>>>,
}

impl DocumentText {
    /// Returns the document with this text.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes: Arc::new(bytes), sha256: Arc::default() }
    }

    /// Returns the text.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the digest that [`digest`] returns, or `None` if the text is not JSON.
    #[must_use]
    pub fn sha256(&self) -> Option<&str> {
        self.sha256.get_or_init(|| digest(&self.bytes, DigestAlgorithm::Sha256).ok()).as_deref()
    }

    /// Begins to compute the digest on a thread of its own. A caller of [`DocumentText::sha256`]
    /// waits for it.
    pub fn begin_digest(&self) {
        let document = self.clone();
        // Without a thread the digest is computed when it is asked for.
        let _ = std::thread::Builder::new().spawn(move || {
            let _ = document.sha256();
        });
    }
}
