//! Documents as text: digests, patches, patch sets.

use ns_translate::digest::{Algorithm, digest};
use ns_translate::patch::{self, Patch};
use ns_translate::pyhf::read_value;
use pyo3::prelude::*;

use crate::error;

/// The digest of a JSON text, as pyhf computes it.
#[pyfunction]
fn digest_of(py: Python<'_>, text: &[u8], algorithm: &str) -> PyResult<String> {
    let algorithm = match algorithm {
        "sha256" => Algorithm::Sha256,
        "md5" => Algorithm::Md5,
        other => {
            let hint = Some("there are `sha256` and `md5`".to_owned());
            return Err(error::parameter(py, format!("`{other}` is no digest algorithm"), hint));
        }
    };
    digest(text, algorithm).map_err(|problem| error::document(py, &problem))
}

/// A JSON text with a JSON patch applied.
#[pyfunction]
fn apply_patch(py: Python<'_>, text: &[u8], operations: &[u8]) -> PyResult<String> {
    let done = read_value(text).and_then(|mut document| {
        let patch = Patch::from_bytes(operations)?;
        patch::apply(&mut document, &patch)?;
        Ok(document.to_string())
    });
    done.map_err(|problem| error::document(py, &problem))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(digest_of, module)?)?;
    module.add_function(wrap_pyfunction!(apply_patch, module)?)
}
