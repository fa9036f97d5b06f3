//! Results as JSON documents, the same for the command, Python and Rust.
//!
//! A document has a head, which says what it is (`$schema`, `nextstat_version`) and what it is
//! about (`measurement`, `provenance`), and the keys of its procedure. A document inside another
//! one has only the latter.

use crate::schema;
use serde::Serialize;
use serde_json::{Value, json};

/// Version of nextstat in documents.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Matrices in the document of a fit; they need
/// [`Uncertainties::Covariance`](ns_inference::Uncertainties::Covariance).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Matrices {
    /// The covariance (P × P).
    pub covariance: bool,
    /// The correlations (P × P).
    pub correlation: bool,
}

/// Optional parts of a document, as the request asked for them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DocumentParts {
    /// Matrices of a fit.
    pub(crate) matrices: Matrices,
    /// Parameters of every conditional fit of a scan.
    pub(crate) has_params: bool,
}

/// Returns a result as a document: keys sorted, numbers that are not finite as `null`.
///
/// ```
/// let document = nextstat::document::to_document(&[1.5, f64::NAN]);
/// assert_eq!(document, serde_json::json!([1.5, null]));
/// ```
pub fn to_document(result: &impl Serialize) -> Value {
    // Results have text keys, and nothing else can fail.
    serde_json::to_value(result).unwrap_or(Value::Null)
}

/// Returns `fields` as a document of the schema `name`, with `$schema` and `nextstat_version`.
///
/// ```
/// let document = nextstat::document::headed("devices", serde_json::json!({"devices": []}));
/// assert_eq!(document["$schema"], "urn:nextstat:schema:devices:1");
/// ```
#[must_use]
pub fn headed(name: &str, mut fields: Value) -> Value {
    fields["$schema"] = json!(schema::urn(name));
    fields["nextstat_version"] = json!(VERSION);
    fields
}

/// Returns `fields` as a document of the schema `name` about a measurement. `provenance` may be
/// `null`.
pub(crate) fn about(name: &str, measurement: &Value, provenance: Value, fields: Value) -> Value {
    let mut document = headed(name, fields);
    document["measurement"] = measurement.clone();
    document["provenance"] = provenance;
    document
}
