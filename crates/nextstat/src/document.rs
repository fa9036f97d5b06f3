//! Results as JSON documents, the same for every face.

use ns_core::Model;
use serde::Serialize;
use serde_json::{Value, json};

/// Returns a result as a document: keys sorted, numbers that are not finite `null`.
pub fn to_document(result: &impl Serialize) -> Value {
    // Results have text keys, and nothing else could fail.
    serde_json::to_value(result).unwrap_or(Value::Null)
}

/// Adds the measurement and the version to `document`.
pub(crate) fn identify(document: &mut Value, model: &Model) {
    document["measurement"] = json!(model.measurement);
    document["nextstat_version"] = json!(env!("CARGO_PKG_VERSION"));
}
