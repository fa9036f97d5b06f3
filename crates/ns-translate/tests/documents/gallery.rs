//! Broken workspaces with the message, the place and the hint that their reader gets.

use ns_core::advice::Advice;
use ns_translate::JsonError;
use ns_translate::pyhf::{PyhfError, read_workspace};

const GOOD: &str = r#"{"channels": [{"name": "SR", "samples": [
  {"name": "signal", "data": [5, 6.5], "modifiers": [
    {"name": "mu", "type": "normfactor", "data": null},
    {"data": {"lo": 0.9, "hi": 1.1}, "name": "norm", "type": "normsys"},
    {"name": "lumi", "type": "lumi", "data": null},
    {"name": "shape", "type": "histosys", "data": {"lo_data": [4, 6], "hi_data": [6, 7]}},
    {"name": "mc", "type": "staterror", "data": [0.1, 0.2]}]}]}],
"observations": [{"name": "SR", "data": [7, 8]}],
"measurements": [{"name": "m", "config": {"poi": "mu", "parameters": [
  {"name": "mu", "inits": [1], "bounds": [[0, 10]], "fixed": false}]}}],
"version": "1.0.0"}"#;

/// Returns the error of the good workspace with one text replaced by another.
fn broken(old: &str, new: &str) -> PyhfError {
    assert!(GOOD.contains(old), "`{old}` is not in the good workspace");
    let text = GOOD.replacen(old, new, 1);
    read_workspace(text.as_bytes()).expect_err(&text)
}

/// Returns a line of advice as text, empty for none.
fn said(advice: Option<Advice>) -> String {
    advice.map_or_else(String::new, |advice| advice.to_string())
}

/// A text, its replacement, the message, and the hint (empty for none).
type Case = (&'static str, &'static str, &'static str, &'static str);

fn check(cases: &[Case]) {
    for (old, new, message, hint) in cases {
        let error = broken(old, new);
        assert_eq!(error.to_string(), *message, "`{old}` -> `{new}`");
        assert_eq!(said(error.advice()), *hint, "`{old}` -> `{new}`");
    }
}

#[test]
fn the_good_workspace_is_read() {
    let workspace = read_workspace(GOOD.as_bytes()).expect("good");
    assert_eq!(workspace.channels[0].samples[0].modifiers.len(), 5);
    assert_eq!(workspace.measurements[0].poi.as_deref(), Some("mu"));
    let with_mark = [b"\xef\xbb\xbf", GOOD.as_bytes()].concat();
    assert_eq!(read_workspace(&with_mark).expect("a byte-order mark does no harm"), workspace);
    let background = GOOD.replace("\"poi\": \"mu\"", "\"poi\": \"\"");
    let background = read_workspace(background.as_bytes()).expect("a measurement may have no parameter of interest");
    assert_eq!(background.measurements[0].poi, None);
}

#[test]
fn text_that_is_not_json_is_placed_and_explained() {
    check(&[
        (
            "\"1.0.0\"}",
            "\"1.0.",
            "the document breaks off at `/version` (line 11, column 17)",
            "was the file copied or downloaded to its end?",
        ),
        (
            "6.5",
            "6.5,",
            "expected a value, found `]` at `/channels/0/samples/0/data/2` (line 2, column 38)",
            "JSON allows no comma before a closing bracket",
        ),
        (
            "6.5",
            "True",
            "expected a value, found `True` at `/channels/0/samples/0/data/1` (line 2, column 34)",
            "JSON writes `true`, `false` and `null`",
        ),
        (
            "6.5",
            "6.",
            "`6.` is not a JSON number at `/channels/0/samples/0/data/1` (line 2, column 34)",
            "JSON wants a digit on both sides of the decimal point",
        ),
        (
            "6.5",
            "+6",
            "`+6` is not a JSON number at `/channels/0/samples/0/data/1` (line 2, column 34)",
            "JSON numbers carry no plus sign",
        ),
        (
            "\"SR\"",
            "'SR'",
            "expected a value, found `'` at `/channels/0/name` (line 1, column 24)",
            "JSON puts strings in double quotes",
        ),
        (
            "\"SR\"",
            "\"S\nR\"",
            "raw control character `\\u000a` in a string at `/channels/0/name` (line 1, column 26)",
            "write a line break as `\\n` and a tab as `\\t`",
        ),
        (
            "\"SR\"",
            "\"\\ud800\"",
            "`\\ud800` is half of a surrogate pair at `/channels/0/name` (line 1, column 25)",
            "",
        ),
        (
            "\"SR\", \"samples\"",
            "\"SR\" \"samples\"",
            "expected a comma or a closing bracket, found `\"` at `/channels/0` (line 1, column 29)",
            "",
        ),
        (
            "\"1.0.0\"}",
            "\"1.0.0\"}}",
            "text after the end of the document, beginning with `}` at line 11, column 20",
            "one file holds one document",
        ),
    ]);
    for (text, message) in [
        ("", "the document is empty at line 1, column 1"),
        (" \n", "the document is empty at line 2, column 1"),
        ("<Combination>", "expected a value, found `<` at line 1, column 1"),
    ] {
        assert_eq!(read_workspace(text.as_bytes()).expect_err(text).to_string(), message);
    }
}

#[test]
fn values_that_are_not_numbers_are_named() {
    check(&[
        (
            "6.5",
            "NaN",
            "`NaN` is not a JSON number, at `/channels/0/samples/0/data/1` (line 2, column 34)",
            "JSON has no NaN and no infinity; leave the entry out or write a finite number",
        ),
        (
            "\"lo\": 0.9",
            "\"lo\": -Infinity",
            "`-Infinity` is not a JSON number, at `/channels/0/samples/0/modifiers/1/data/lo` (line 4, column 21)",
            "JSON has no NaN and no infinity; leave the entry out or write a finite number",
        ),
        (
            "6.5",
            "1e999",
            "the number `1e999` is out of range at `/channels/0/samples/0/data/1` (line 2, column 34)",
            "",
        ),
        ("6.5", "true", "expected a number, found `true` at `/channels/0/samples/0/data/1` (line 2, column 34)", ""),
        (
            "6.5",
            "\"6.5\"",
            "expected a number, found the string `6.5` at `/channels/0/samples/0/data/1` (line 2, column 34)",
            "",
        ),
        ("6.5", "null", "expected a number, found `null` at `/channels/0/samples/0/data/1` (line 2, column 34)", ""),
    ]);
}

#[test]
fn numbers_follow_the_syntax_of_json() {
    for number in ["01", "-", "--1", "1e", "1e+", "1.e5", ".5", "-.5", "+1", "0x1", "1_000", "1,5e", "1f"] {
        let error = broken("6.5", number);
        assert!(matches!(error, PyhfError::Json(JsonError::Syntax { .. })), "`{number}`: {error}");
        assert!(error.pointer().is_some_and(|pointer| pointer.starts_with("/channels/0/samples/0/data")));
    }
    for number in ["-0", "0.0", "1E5", "1e-05", "-1.5E+2", "123456789012345678901234567890", "1e-999"] {
        let text = GOOD.replacen("6.5", number, 1);
        let workspace = read_workspace(text.as_bytes()).expect(number);
        assert_eq!(Ok(workspace.channels[0].samples[0].data[1]), number.parse());
    }
}

#[test]
fn keys_are_checked() {
    check(&[
        (
            "\"samples\"",
            "\"sampels\"",
            "unknown key `sampels` at `/channels/0/sampels` (line 1, column 30)",
            "did you mean `samples`?",
        ),
        (
            "\"lo_data\"",
            "\"comment\"",
            "unknown key `comment` at `/channels/0/samples/0/modifiers/3/data/comment` (line 6, column 52)",
            "the keys here are `lo_data`, `hi_data`",
        ),
        (
            ", \"hi\": 1.1",
            "",
            "missing key `hi` in the object at `/channels/0/samples/0/modifiers/1/data` (line 4, column 14)",
            "",
        ),
        (",\n\"version\": \"1.0.0\"", "", "missing key `version` in the object at line 1, column 1", ""),
        (
            "\"lo\": 0.9",
            "\"lo\": 0.9, \"lo\": 0.8",
            "duplicate key `lo` at `/channels/0/samples/0/modifiers/1/data/lo` (line 4, column 26)",
            "the same object has this key before; other readers silently take the last one",
        ),
        (
            "\"name\": \"signal\"",
            "\"name\": \"signal\", \"name\": \"noise\"",
            "duplicate key `name` at `/channels/0/samples/0/name` (line 2, column 22)",
            "the same object has this key before; other readers silently take the last one",
        ),
    ]);
}

#[test]
fn modifiers_are_checked_in_any_order_of_their_keys() {
    check(&[
        (
            "\"normfactor\"",
            "\"normfactr\"",
            "unknown modifier type `normfactr` at `/channels/0/samples/0/modifiers/0/type` (line 3, column 28)",
            "did you mean `normfactor`?",
        ),
        (
            "\"normfactor\"",
            "\"jes\"",
            "unknown modifier type `jes` at `/channels/0/samples/0/modifiers/0/type` (line 3, column 28)",
            "the types are `histosys`, `lumi`, `normfactor`, `formula`, `morphing`, `normsys`, `shapefactor`, `shapesys`, `staterror`, `mcstat`",
        ),
        (
            "{\"lo\": 0.9, \"hi\": 1.1}",
            "[0.9, 1.1]",
            "a `normsys` modifier's data must be an object with `lo` and `hi`, found a list of 2 at `/channels/0/samples/0/modifiers/1/data` (line 4, column 14)",
            "",
        ),
        (
            "\"type\": \"normsys\"",
            "\"type\": \"histosys\"",
            "unknown key `lo` at `/channels/0/samples/0/modifiers/1/data/lo` (line 4, column 15)",
            "did you mean `lo_data`?",
        ),
        (
            "\"type\": \"lumi\", \"data\": null",
            "\"type\": \"lumi\", \"data\": []",
            "a `lumi` modifier's data must be `null`, found a list of 0 at `/channels/0/samples/0/modifiers/2/data` (line 5, column 46)",
            "",
        ),
        (
            "\"name\": \"lumi\"",
            "\"name\": \"Lumi\"",
            "a `lumi` modifier must be named `lumi`, found `Lumi` at `/channels/0/samples/0/modifiers/2/name` (line 5, column 14)",
            "",
        ),
    ]);
}

#[test]
fn lists_have_the_length_that_the_schema_wants() {
    check(&[
        ("[7, 8]", "[]", "expected at least one entry, found none at `/observations/0/data` (line 8, column 41)", ""),
        (
            "[[0, 10]]",
            "[[0, 10, 20]]",
            "expected 2 entries, found 3 at `/measurements/0/config/parameters/0/bounds/0` (line 10, column 43)",
            "",
        ),
        (
            "\"inits\": [1]",
            "\"inits\": null",
            "expected a list, found `null` at `/measurements/0/config/parameters/0/inits` (line 10, column 27)",
            "",
        ),
        (
            "\"fixed\": false",
            "\"fixed\": 0",
            "expected `true` or `false`, found the number `0` at `/measurements/0/config/parameters/0/fixed` (line 10, column 62)",
            "",
        ),
    ]);
}

#[test]
fn other_versions_and_other_documents_are_recognised() {
    check(&[(
        "\"1.0.0\"",
        "\"2.0.0\"",
        "version `2.0.0` is not supported at `/version` (line 11, column 12)",
        "this is written for pyhf schema version `1.0.0`",
    )]);
    for (text, message, hint) in [
        (
            r#"[{"op": "remove", "path": "/channels/0"}]"#,
            "expected a pyhf workspace, found a JSON patch",
            "this looks like a JSON patch; pass it with `patches`, after the workspace it changes",
        ),
        (
            r#"{"metadata": {}, "patches": [], "version": "1.0.0"}"#,
            "expected a pyhf workspace, found a pyhf patch set",
            "pass it with `patchset`, after the workspace it was made for",
        ),
        (
            r#"{"distributions": [], "metadata": {"hs3_version": "0.2"}}"#,
            "expected a pyhf workspace, found an HS3 document",
            "name the document instead of the workspace",
        ),
        (
            r#"{"channels": [], "parameters": []}"#,
            "expected a pyhf workspace, found a pyhf model without observations and measurements",
            "a workspace also has `observations`, `measurements` and `version`",
        ),
        ("[1, 2]", "expected an object, found a list of 2 at line 1, column 1", ""),
        ("3", "expected an object, found the number `3` at line 1, column 1", ""),
    ] {
        let error = read_workspace(text.as_bytes()).expect_err(text);
        assert_eq!((error.to_string().as_str(), said(error.advice()).as_str()), (message, hint));
    }
}

#[test]
fn bytes_that_are_not_utf8_are_placed() {
    let mut bytes = GOOD.as_bytes().to_vec();
    let at = GOOD.find("signal").expect("a sample");
    bytes[at] = 0xff;
    let error = read_workspace(&bytes).expect_err("not UTF-8");
    assert_eq!(error.to_string(), "the document is not UTF-8 text: byte 0xff at line 2, column 13");
}

#[test]
fn deep_nesting_is_an_error_and_not_a_stack_overflow() {
    for open in ["[", "{\"a\":"] {
        let text = open.repeat(100_000);
        let error = read_workspace(text.as_bytes()).expect_err("too deep").to_string();
        assert!(error.starts_with("more than 127 lists and objects inside each other at `/"), "{error}");
        let inside = GOOD.replacen("6.5", &text, 1);
        let error = read_workspace(inside.as_bytes()).expect_err("too deep").to_string();
        assert!(error.starts_with("more than 127 lists and objects"), "{error}");
    }
}
