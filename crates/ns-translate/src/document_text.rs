//! The text of a document with its digest.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
    digest: Arc<DigestOnce>,
}

impl DocumentText {
    /// Returns the document with this text.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes: Arc::new(bytes), digest: Arc::default() }
    }

    /// Returns the text.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the digest that [`digest`] returns, or `None` if the text is not JSON.
    #[must_use]
    pub fn sha256(&self) -> Option<&str> {
        self.digest.get(|| Some(Arc::clone(&self.bytes)))
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

    /// Gives up the text, whose memory is free once the digest is computed and no other clone has
    /// it.
    #[must_use]
    pub fn into_digest(self) -> DocumentDigest {
        let Self { bytes, digest } = self;
        digest.keep(bytes);
        DocumentDigest { digest }
    }
}

/// The SHA-256 digest of a document, with its text only until it is computed. Clones share both.
#[derive(Debug, Clone)]
pub struct DocumentDigest {
    digest: Arc<DigestOnce>,
}

impl DocumentDigest {
    /// Returns the digest that [`digest`] returns, or `None` if the text is not JSON.
    #[must_use]
    pub fn sha256(&self) -> Option<&str> {
        self.digest.get(|| self.digest.text().take())
    }
}

/// A digest, and the text that it is computed of where no clone of the document is left.
#[derive(Debug, Default)]
struct DigestOnce {
    sha256: OnceLock<Option<String>>,
    text: Mutex<Option<Arc<Vec<u8>>>>,
}

impl DigestOnce {
    fn text(&self) -> std::sync::MutexGuard<'_, Option<Arc<Vec<u8>>>> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps `bytes` until the digest is computed.
    fn keep(&self, bytes: Arc<Vec<u8>>) {
        let mut text = self.text();
        if self.sha256.get().is_none() {
            *text = Some(bytes);
        }
    }

    /// Returns the digest; computes it of what `text` returns if that has not been done.
    fn get(&self, text: impl FnOnce() -> Option<Arc<Vec<u8>>>) -> Option<&str> {
        let compute = || text().and_then(|text| digest(&text, DigestAlgorithm::Sha256).ok());
        let found = self.sha256.get_or_init(compute).as_deref();
        self.text().take();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_given_up_once_its_digest_is_known() {
        let text = || br#"{"b": 1, "a": 2}"#.to_vec();
        let expected = digest(&text(), DigestAlgorithm::Sha256).expect("JSON");
        // Before the digest is asked for, and after.
        for is_early in [true, false] {
            let document = DocumentText::new(text());
            let bytes = Arc::downgrade(&document.bytes);
            if is_early {
                assert_eq!(document.sha256(), Some(expected.as_str()));
            }
            let digest = document.into_digest();
            assert_eq!(bytes.upgrade().is_none(), is_early);
            assert_eq!((digest.sha256(), digest.clone().sha256()), (Some(expected.as_str()), Some(expected.as_str())));
            assert!(bytes.upgrade().is_none());
        }
    }
}
