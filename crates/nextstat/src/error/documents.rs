//! Advice on documents and models: the crates below name remedies, which are spelled here.

use super::{Face, Hint};
use crate::stored::StoredFitError;
use ns_core::CompileError;
use ns_translate::DocumentError;

impl Hint for DocumentError {
    fn hint(&self, face: Face) -> Option<String> {
        self.advice().map(|advice| face.words(&advice))
    }
}

impl Hint for CompileError {
    fn hint(&self, face: Face) -> Option<String> {
        self.advice().map(|advice| face.words(&advice))
    }
}

impl Hint for StoredFitError {
    fn hint(&self, face: Face) -> Option<String> {
        let either = |command: &str, library: &str| Some(face.either(command, library).to_owned());
        match self {
            Self::NotAFit(_) => either(
                "`nextstat fit --covariance --output-file fit.json` writes one",
                "`nextstat.fit(...).to_json()` makes one",
            ),
            Self::Damaged { .. } => either(
                "a stored fit is what `nextstat fit` or `nextstat report` wrote, unchanged",
                "a stored fit is what `to_json` of a fit or a report returned, unchanged",
            ),
            Self::Changed { .. } => either(
                "take the file as `nextstat` wrote it; remove `checksums` if the numbers were changed on purpose",
                "take the document as `nextstat` wrote it; remove `checksums` if the numbers were changed on purpose",
            ),
            Self::NoCovariance => either(
                "store it with `nextstat fit --covariance`; a fit that does not determine a parameter has none",
                "store it with `nextstat.fit`; a fit that does not determine a parameter has none",
            ),
            Self::NotConverged | Self::NothingInCommon { .. } => None,
        }
    }
}
