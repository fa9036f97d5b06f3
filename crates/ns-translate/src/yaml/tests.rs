//! Trees of YAML equal those of the same JSON, and what is refused says where and why.

use serde_json::{Value, json};

use super::*;
use crate::json::{self, JsonCursor};

fn value(text: &str) -> Value {
    json::to_value(&JsonCursor::top(text, &parse(text).expect("YAML"))).expect("finite")
}

fn refused(text: &str) -> String {
    let error = parse(text).expect_err("refused");
    error.hint().map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}"))
}

#[test]
fn scalars_follow_the_core_schema() {
    let text = "a: no\nb: 1.50\nc: '1'\nd: ~\ne:\nf: [true, \"x\\n\", -3, 0x5, 1e3, v1.2]\n? g\n: 2024-01-02\n";
    let expected = json!({"a": "no", "b": 1.5, "c": "1", "d": null, "e": null,
        "f": [true, "x\n", -3, "0x5", 1000.0, "v1.2"], "g": "2024-01-02"});
    assert_eq!(value(text), expected);
}

#[test]
fn json_is_yaml_with_the_same_tree() {
    let text = "{\"a\": [1, {\"b\": \"c\\u00e9\"}], \"d\": {}, \"e\": [], \"f\": null}";
    assert_eq!(value(text), serde_json::from_str::<Value>(text).expect("JSON"));
}

#[test]
fn places_count_characters_in_lines() {
    let text = "# é\nnäme: \"é\"\nlist:\n- x: é\n  y: 7\n";
    let root = parse(text).expect("YAML");
    let place = JsonCursor::top(text, &root).place_below("/list/0/y");
    assert_eq!(place.to_string(), "at `/list/0/y` (line 5, column 6)");
}

#[test]
fn what_could_expand_or_hide_is_refused() {
    assert_eq!(
        refused("a:\n  - *_JES\n"),
        "aliases of YAML are not allowed here: found `*` at line 2, column 5; \
         write a name or a pattern that begins with `*` in quotes: \"*_JES\""
    );
    assert!(refused("a: &x [1]\nb: *x").starts_with("anchors of YAML are not allowed here"));
    assert!(refused("a: !!python/object b").starts_with("tags of YAML are not allowed here"));
    assert!(refused("{[a]: b}").starts_with("expected a name as a key"));
    assert!(refused("a: 1\n---\nb: 2\n").starts_with("expected one document, found a second one"));
    assert_eq!(refused("# nothing\n"), "the document is empty");
    assert!(refused("a: [1, 2").starts_with("invalid YAML: "));
}

#[test]
fn deep_and_long_documents_end_in_an_error_or_a_tree() {
    for (opening, n) in [("[", 100_000), ("- ", 20_000), ("{a: ", 100_000), ("? ", 20_000)] {
        assert!(parse(&opening.repeat(n)).is_err(), "{opening}");
    }
    let long = format!("[{}]", "é, ".repeat(100_000));
    assert!(parse(&long).is_ok());
}
