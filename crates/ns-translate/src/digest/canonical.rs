//! Rewrites JSON exactly as Python does with
//! `json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False)`.
//!
//! | | Python's way |
//! |---|---|
//! | separators | `, ` and `: ` |
//! | keys | sorted by code point; of duplicate keys the last |
//! | integers | digits as they are, at any length; `-0` is `0` |
//! | floats | `repr`: the fewest digits that round-trip (of two equally near, the even one), an exponent below 1e-4 and from 1e16 on; beyond range `Infinity` |
//! | strings | `"`, `\` and control characters escaped, all else as it is |

use super::{DigestError, streaming};
use crate::json::{self, JsonNode, JsonTree, ObjectMember, python_repr};

/// Returns a document as Python's `json` module writes it, with sorted keys: the text of digests.
///
/// # Errors
///
/// If the document is not UTF-8 or not JSON. `NaN` and `Infinity` are accepted, as in Python.
///
/// # Example
///
/// ```
/// let canonical = ns_translate::digest::canonical_json(br#"{"b":[1,1e-5,1E22],"a":"\u00e9"}"#)?;
/// assert_eq!(canonical, r#"{"a": "é", "b": [1, 1e-05, 1e+22]}"#);
/// # Ok::<(), ns_translate::digest::DigestError>(())
/// ```
pub fn canonical_json(bytes: &[u8]) -> Result<String, DigestError> {
    let text = json::decode(bytes)?;
    let mut out = Vec::new();
    let done = streaming::rewrite(text, &mut |part| out.extend_from_slice(part));
    done.and_then(|()| String::from_utf8(out).ok()).map_or_else(|| canonical_by_tree(text), Ok)
}

/// Calls `update` with every part of that text, which is not in memory as a whole, on the state
/// that `begin` returns, and returns the state.
pub(super) fn state_of_canonical<S>(
    bytes: &[u8],
    begin: impl Fn() -> S,
    update: impl Fn(&mut S, &[u8]),
) -> Result<S, DigestError> {
    let text = json::decode(bytes)?;
    let mut state = begin();
    if streaming::rewrite(text, &mut |part| update(&mut state, part)).is_some() {
        return Ok(state);
    }
    let mut state = begin();
    update(&mut state, canonical_by_tree(text)?.as_bytes());
    Ok(state)
}

/// Returns the same for any document, and what is wrong with one that is not JSON.
fn canonical_by_tree(text: &str) -> Result<String, DigestError> {
    let root = json::parse(text)?;
    let mut out = String::with_capacity(text.len());
    write_node(&mut out, &root);
    Ok(out)
}

fn write_node(out: &mut String, node: &JsonNode<'_>) {
    match &node.tree {
        JsonTree::Null => out.push_str("null"),
        JsonTree::Bool(true) => out.push_str("true"),
        JsonTree::Bool(false) => out.push_str("false"),
        JsonTree::Number(spelling) => write_number(out, spelling),
        JsonTree::NonFinite(literal) => out.push_str(literal),
        JsonTree::Text(text) => write_string(out, text),
        JsonTree::List(items) => write_list(out, items),
        JsonTree::Object(members) => write_object(out, members),
        // A document that was read completely has no skipped parts.
        JsonTree::Skipped => {}
    }
}

fn write_list(out: &mut String, items: &[JsonNode<'_>]) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_node(out, item);
    }
    out.push(']');
}

fn write_object(out: &mut String, members: &[ObjectMember<'_>]) {
    let mut sorted: Vec<&ObjectMember<'_>> = members.iter().collect();
    // Stable, so the last of duplicate keys stays last; UTF-8 bytes sort as code points do.
    sorted.sort_by(|a, b| a.key.cmp(&b.key));
    let is_last_of_its_key = |&(index, member): &(usize, &&ObjectMember<'_>)| {
        sorted.get(index + 1).is_none_or(|next| next.key != member.key)
    };
    out.push('{');
    for (count, (_, member)) in sorted.iter().enumerate().filter(is_last_of_its_key).enumerate() {
        if count > 0 {
            out.push_str(", ");
        }
        write_string(out, &member.key);
        out.push_str(": ");
        write_node(out, &member.value);
    }
    out.push('}');
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

fn write_number(out: &mut String, spelling: &str) {
    let is_whole = !spelling.contains(['.', 'e', 'E']);
    match (is_whole, spelling.parse::<f64>()) {
        (true, _) if spelling == "-0" => out.push('0'),
        (false, Ok(number)) => out.push_str(&python_repr(number, &mut zmij::Buffer::new())),
        _ => out.push_str(spelling),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        canonical_json(text.as_bytes()).expect("JSON")
    }

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (written, python) in [
            ("1.0", "1.0"),
            ("1E5", "100000.0"),
            ("-0.0", "-0.0"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("1.5e300", "1.5e+300"),
            ("5e-324", "5e-324"),
            ("1e-400", "0.0"),
            ("-1e400", "-Infinity"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("1248851666500989.25", "1248851666500989.2"),
            ("-167241692498904.125", "-167241692498904.12"),
        ] {
            assert_eq!(canonical(written), python);
        }
    }

    #[test]
    fn integers_keep_their_digits() {
        let long = "123456789012345678901234567890";
        assert_eq!(canonical(long), long);
        assert_eq!(canonical("[-0, -12]"), "[0, -12]");
    }

    #[test]
    fn keys_are_sorted_by_code_point_and_the_last_of_duplicates_is_written() {
        assert_eq!(
            canonical(r#"{"é":1,"z":2,"\ud83d\ude00":3,"｡":4,"A":5,"z":6,"":{}}"#),
            r#"{"": {}, "A": 5, "z": 6, "é": 1, "｡": 4, "😀": 3}"#
        );
    }

    #[test]
    fn strings_escape_what_python_escapes() {
        assert_eq!(
            canonical(r#""\u0000\u001f\u007f\/\"\\\b\f\n\r\t\u2028é""#),
            "\"\\u0000\\u001f\u{7f}/\\\"\\\\\\b\\f\\n\\r\\t\u{2028}é\""
        );
    }

    #[test]
    fn pythons_extra_literals_are_accepted() {
        assert_eq!(canonical("[NaN, Infinity, -Infinity]"), "[NaN, Infinity, -Infinity]");
    }

    /// Returns what one pass writes.
    fn streamed(text: &str) -> Option<String> {
        let mut out = Vec::new();
        streaming::rewrite(text, &mut |part| out.extend_from_slice(part))?;
        Some(String::from_utf8(out).expect("made of UTF-8"))
    }

    #[test]
    fn long_lists_move_with_their_objects() {
        let list = |first: u32| (first..first + 200).map(|i| format!("{i}.50")).collect::<Vec<_>>().join(",");
        let object = |name: &str| format!(r#"{{"name":"{name}","hi":[{}],"data":[{}]}}"#, list(1), list(7));
        let text = format!(r#"{{"z":[{},[[]],{}],"a":{{"y":[ {} ],"b":"[]"}}}}"#, object("A"), object("B"), list(3));
        assert_eq!(streamed(&text), canonical_by_tree(&text).ok());
        for damage in ["1.50,,2", "1.50 2", "1.50,", "x", "1.5.0", "{}"] {
            let damaged = text.replacen("101.50", damage, 1);
            let by_tree = canonical_by_tree(&damaged).ok();
            assert!(streamed(&damaged).is_none() || streamed(&damaged) == by_tree, "{damage}");
            let digests = [&text, &damaged]
                .map(|text| crate::digest::digest(text.as_bytes(), crate::digest::DigestAlgorithm::Sha256).ok());
            assert!(digests[0].is_some() && digests[1].is_some() == by_tree.is_some() && digests[0] != digests[1]);
        }
    }

    /// Generates numbers as programs spell them, and in every other way.
    fn number() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<f64>().prop_filter("JSON", |number| number.is_finite()).prop_map(|number| format!("{number:?}")),
            (-1e6..1e6_f64).prop_map(|number| format!("{number}")),
            "-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?",
            "-?0\\.0{0,6}[0-9]{1,12}",
        ]
    }

    fn document() -> impl Strategy<Value = String> {
        let text = prop_oneof![9 => "\"[a-zé😀 ]{0,3}\"", 1 => "\"[a-z]?(\\\\n|\\\\u00e9)\""];
        let leaf = prop_oneof![4 => number(), 2 => text.clone(), 1 => "true|false|null|NaN|-?Infinity"];
        leaf.prop_recursive(5, 60, 8, move |inner| {
            let blanks = || "[ \\n\\t]{0,20}";
            let item = (blanks(), inner.clone(), blanks()).prop_map(|(before, value, after)| before + &value + &after);
            let member =
                (text.clone(), blanks(), item.clone()).prop_map(|(key, blank, value)| key + &blank + ":" + &value);
            prop_oneof![
                prop::collection::vec(number(), 12..30).prop_map(|numbers| format!("[{}]", numbers.join(", "))),
                prop::collection::vec(item, 0..8).prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::vec(member, 0..8).prop_map(|members| format!("{{{}}}", members.join(", "))),
            ]
        })
    }

    proptest! {
        #[test]
        fn one_pass_writes_what_the_tree_writes(text in document()) {
            let by_tree = canonical_by_tree(&text).ok();
            let streamed = streamed(&text);
            prop_assert!(streamed.is_none() || streamed == by_tree, "{streamed:?} instead of {by_tree:?}");
            let is_usual = !text.contains('\\') && text.matches(':').count() < 2;
            prop_assert!(streamed.is_some() || !is_usual, "{text} was left to the tree");
        }

        #[test]
        fn one_pass_takes_no_document_that_the_tree_refuses(text in document(), at: prop::sample::Index, by in "[-0-9.eE\\[\\]{},:\"a ]?") {
            let at = at.index(text.chars().count().max(1));
            let damaged: String = text.chars().take(at).chain(by.chars()).chain(text.chars().skip(at + 1)).collect();
            let streamed = streamed(&damaged);
            prop_assert!(streamed.is_none() || streamed == canonical_by_tree(&damaged).ok(), "{damaged}");
        }
    }

    #[test]
    fn one_pass_ends_where_the_tree_ends() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        for depth in [1, json::DEPTH_LIMIT, json::DEPTH_LIMIT + 1, 100_000] {
            let is_read = canonical_by_tree(&nested(depth)).is_ok();
            assert_eq!(streamed(&nested(depth)).is_some(), is_read, "depth {depth}");
        }
    }
}
