//! Numbers as text: the command and the page of a report round alike.

use nextstat::number::measured;
use serde_json::Value;
use std::path::Path;

/// The reference is the package uncertainties 3.2.3 (web/tests/make_numbers.py); the unit tests of
/// the page read the same file.
#[test]
fn values_are_rounded_to_two_digits_of_their_uncertainties() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/tests/unit/numbers.json");
    let numbers: Value = serde_json::from_slice(&std::fs::read(path).expect("in the repository")).expect("JSON");
    let cases = numbers["roundings"].as_array().expect("cases");
    assert!(cases.len() > 50);
    for case in cases {
        let [value, uncertainty] = ["value", "uncertainty"].map(|key| case[key].as_f64().expect("a number"));
        assert_eq!(measured(value, Some(uncertainty)), case["text"].as_str().expect("text"));
    }
}
