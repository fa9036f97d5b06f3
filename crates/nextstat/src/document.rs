//! Results as JSON documents, the same for the command, Python and Rust.

use ns_core::Model;
use serde::Serialize;
use serde_json::{Value, json};

/// Version of nextstat in documents.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

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
