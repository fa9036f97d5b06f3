//! Patch sets: reading, choosing, verifying, applying, and the messages about broken ones.

use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::patchset::{PatchContents, PatchSet, PatchSetError, PatchValue};
use serde_json::json;

const WORKSPACE: &[u8] = br#"{"channels": [{"name": "SR", "samples": []}]}"#;

fn good() -> String {
    let sha256 = digest(WORKSPACE, DigestAlgorithm::Sha256).expect("JSON");
    format!(
        r#"{{"metadata": {{"references": {{"hepdata": "ins1234567"}}, "description": "two masses",
  "digests": {{"sha256": "{sha256}"}}, "labels": ["mass", "kind"], "more": {{"is": ["allowed"]}}}},
"patches": [
  {{"metadata": {{"name": "heavy", "values": [2100, "x"], "note": 1}}, "patch": [
    {{"op": "add", "path": "/channels/0/samples/-", "value": {{"name": "heavy", "data": [1.5]}}}}]}},
  {{"metadata": {{"name": "light", "values": [700.0, "x"]}}, "patch": [
    {{"op": "replace", "path": "/channels/0/name", "value": "CR"}}]}}],
"version": "1.0.0"}}"#
    )
}

fn set() -> PatchSet {
    PatchSet::from_bytes(good().as_bytes()).expect("a good set")
}

fn values(mass: f64) -> Vec<PatchValue> {
    vec![PatchValue::Number(mass), PatchValue::Text("x".to_owned())]
}

#[test]
fn a_set_is_described_by_its_metadata() {
    let set = set();
    let metadata = set.metadata();
    assert_eq!(metadata.labels, ["mass", "kind"]);
    assert_eq!(metadata.description, "two masses");
    assert_eq!(metadata.references, [("hepdata".to_owned(), "ins1234567".to_owned())]);
    assert_eq!(set.patches().iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["heavy", "light"]);
}

#[test]
fn patches_are_found_by_name_and_by_values() {
    let set = set();
    assert_eq!(set.by_values(&values(2100.0)).expect("heavy"), set.by_name("heavy").expect("heavy"));
    assert_eq!(set.by_values(&values(700.0)).expect("light").name, "light");

    let error = set.by_name("hevy").expect_err("a typo");
    assert_eq!(error.to_string(), "the patch set has no patch named `hevy`");
    assert_eq!(error.advice(), Some("it has `heavy`, `light`".into()));
    let error = set.by_values(&values(1.5)).expect_err("no such mass");
    assert_eq!(error.to_string(), "the patch set has no patch with the values `1.5`, `x`");
    assert_eq!(error.advice(), Some("the values stand for `mass`, `kind`".into()));
}

#[test]
fn a_patch_applies_only_to_the_workspace_of_its_set() {
    let set = set();
    let patched = set.apply(WORKSPACE, "heavy").expect("made for it");
    assert_eq!(patched, json!({"channels": [{"name": "SR", "samples": [{"name": "heavy", "data": [1.5]}]}]}));

    let reformatted = br#"{ "channels":[{"samples":[],"name":"SR"}]}"#;
    assert!(set.apply(reformatted, "light").is_ok());

    let error = set.apply(br#"{"channels": []}"#, "heavy").expect_err("another workspace");
    assert!(matches!(&error, PatchSetError::DigestMismatch { algorithm: DigestAlgorithm::Sha256, .. }), "{error}");
    assert!(error.to_string().starts_with("the patch set was made for another workspace: its sha256 digest is `"));
}

#[test]
fn broken_sets_are_placed_and_explained() {
    for (old, new, message) in [
        (
            "\"light\"",
            "\"heavy\"",
            "two patches are named `heavy`: the second at `/patches/1/metadata/name` (line 6, column 25)",
        ),
        (
            "700.0",
            "2.1e3",
            "patches `heavy` and `light` have the same values at `/patches/1/metadata/values` (line 6, column 44)",
        ),
        ("700.0, ", "", "patch `light` has 1 values for 2 labels at `/patches/1/metadata/values` (line 6, column 44)"),
        ("\"sha256\"", "\"sha1\"", "unknown key `sha1` at `/metadata/digests/sha1` (line 2, column 15)"),
        (
            "\"sha256\": \"",
            "\"md5\": \"",
            "is not an MD5 digest (32 of `0-9a-f`) at `/metadata/digests/md5` (line 2, column 22)",
        ),
        (
            "\"hepdata\": \"ins1234567\"",
            "",
            "expected at least one entry, found none at `/metadata/references` (line 1, column 29)",
        ),
        (
            "\"labels\": [\"mass\"",
            "\"labels\": [\"m ss\"",
            "`m ss` is not a name of letters, digits and underscores at `/metadata/labels/0` (line 2, column 105)",
        ),
        (
            "\"replace\"",
            "\"repalce\"",
            "unknown patch operation `repalce` at `/patches/1/patch/0/op` (line 7, column 12)",
        ),
        (
            "\"value\": \"CR\"",
            "\"valeu\": \"CR\"",
            "missing key `value` in the object at `/patches/1/patch/0` (line 7, column 5)",
        ),
        ("\"1.0.0\"", "\"0.1\"", "version `0.1` is not supported at `/version` (line 8, column 12)"),
        (
            "[1.5]",
            "[1.5",
            "expected a comma or a closing bracket, found `}` at `/patches/0/patch/0/value/data` (line 5, column 91)",
        ),
    ] {
        let text = good();
        assert!(text.contains(old), "`{old}` is not in the good set");
        let error = PatchSet::from_bytes(text.replacen(old, new, 1).as_bytes()).expect_err(new).to_string();
        assert!(error.ends_with(message), "`{old}` -> `{new}`: {error}");
    }
}

#[test]
fn values_in_a_patch_are_checked_when_it_is_read() {
    let text = good().replacen("[1.5]", "[NaN]", 1);
    let set = PatchSet::from_bytes(text.as_bytes()).expect("readable down to the operations");
    let error = set.read(set.by_name("heavy").expect("there")).expect_err("not a number");
    assert_eq!(
        error.to_string(),
        "`NaN` is not a JSON number, at `/patches/0/patch/0/value/data/0` (line 5, column 88)"
    );
    assert!(set.read(set.by_name("light").expect("there")).is_ok());
}

#[test]
fn an_extracted_patch_has_all_that_the_set_has_of_it() {
    let set = set();
    let extract =
        |name, what| serde_json::to_value(set.extract(set.by_name(name).expect("there"), what).expect("good"));
    let operations = extract("light", PatchContents::Operations).expect("text keys");
    assert_eq!(operations, json!([{"op": "replace", "path": "/channels/0/name", "value": "CR"}]));
    let heavy = extract("heavy", PatchContents::WithMetadata).expect("text keys");
    let metadata = &heavy["metadata"];
    assert_eq!((&metadata["name"], &metadata["values"]), (&json!("heavy"), &json!([2100, "x"])));
    assert_eq!((&metadata["note"], &metadata["more"]), (&json!(1), &json!({"is": ["allowed"]})));
    assert_eq!((&metadata["labels"], &metadata["description"]), (&json!(["mass", "kind"]), &json!("two masses")));
    assert_eq!(heavy["patch"][0]["op"], "add");
    // Whole numbers stay whole, the others do not become it.
    assert_eq!(
        extract("light", PatchContents::WithMetadata).expect("text keys")["metadata"]["values"][0],
        json!(700.0)
    );
}

#[test]
fn other_documents_are_recognised() {
    let error = PatchSet::from_bytes(br#"[{"op": "remove", "path": "/a"}]"#).expect_err("a patch");
    assert_eq!(error.to_string(), "expected a pyhf patch set, found a JSON patch");
    let advice = error.advice().expect("advice").to_string();
    assert_eq!(advice, "pass a single patch with `patches`");
}
