//! Results as JSON documents, the same for the command, Python and Rust.

use ns_core::Model;
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

/// Adds the measurement and the version to `document`.
pub(crate) fn identify(document: &mut Value, model: &Model) {
    document["measurement"] = json!(model.measurement);
    document["nextstat_version"] = json!(VERSION);
}
