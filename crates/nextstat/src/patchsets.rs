//! Patch sets as documents.

use ns_translate::patchset::{DigestCheck, PatchEntry, PatchSet, PatchValue};
use serde_json::{Map, Value, json};

/// Returns the metadata of the set, and the name and values of every patch.
#[must_use]
pub fn patchset(set: &PatchSet) -> Value {
    let mut document = metadata(set);
    let patch = |entry: &PatchEntry| json!({"name": entry.name, "values": values(entry)});
    document.insert("patches".to_owned(), set.patches().iter().map(patch).collect());
    document.insert("n_patches".to_owned(), json!(set.patches().len()));
    Value::Object(document)
}

fn metadata(set: &PatchSet) -> Map<String, Value> {
    let metadata = set.metadata();
    let digests: Map<String, Value> =
        metadata.digests.iter().map(|(algorithm, digest)| (algorithm.to_string(), json!(digest))).collect();
    let references: Map<String, Value> =
        metadata.references.iter().map(|(kind, reference)| (kind.clone(), json!(reference))).collect();
    Map::from_iter([
        ("description".to_owned(), json!(metadata.description)),
        ("digests".to_owned(), Value::Object(digests)),
        ("labels".to_owned(), json!(metadata.labels)),
        ("references".to_owned(), Value::Object(references)),
    ])
}

fn values(entry: &PatchEntry) -> Value {
    entry.values.iter().map(value_of).collect()
}

/// Returns one value of a patch. Whole numbers stay whole: most values are masses in GeV.
#[must_use]
pub fn value_of(value: &PatchValue) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        PatchValue::Text(text) => json!(text),
        PatchValue::Number(number) if number.fract() == 0.0 && number.abs() < EXACT => json!(*number as i64),
        PatchValue::Number(number) => json!(number),
    }
}

/// Returns every digest of the set with that of the workspace.
#[must_use]
pub fn verification(checks: &[DigestCheck]) -> Value {
    let check = |check: &DigestCheck| {
        let (algorithm, matches) = (check.algorithm.as_str(), check.matches());
        json!({"algorithm": algorithm, "expected": check.expected, "found": check.found, "matches": matches})
    };
    let verified = checks.iter().all(DigestCheck::matches);
    json!({"verified": verified, "digests": checks.iter().map(check).collect::<Vec<_>>()})
}
