//! Values as CPython writes them: `str` and `repr` of what templates have.
//!
//! Characters that do not print are escaped by the Unicode version of Rust's standard library. An
//! older CPython also escapes the characters that its version does not have yet.

use std::fmt::Write as _;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr, ValueKind};

/// A tuple, which only differs from a list in what `str`, `repr` and `%` make of it.
#[derive(Debug)]
pub(super) struct Tuple(pub(super) Vec<Value>);

impl Object for Tuple {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.len())
    }
}

/// Returns the lists in a list as tuples: items of a dictionary.
pub(super) fn tuples(pairs: &Value) -> Result<Value, minijinja::Error> {
    let one = |pair: Value| Ok(Value::from_object(Tuple(pair.try_iter()?.collect())));
    pairs.try_iter()?.map(one).collect::<Result<Vec<_>, minijinja::Error>>().map(Value::from)
}

/// Returns `str(value)`.
pub(super) fn str_of(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_undefined() => String::new(),
        None => repr_of(value),
    }
}

/// Returns `repr(value)`.
pub(super) fn repr_of(value: &Value) -> String {
    let mut out = String::new();
    write_repr(value, &mut out);
    out
}

fn write_repr(value: &Value, out: &mut String) {
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => match float(value) {
            Some(number) => out.push_str(&float_repr(number)),
            None => out.push_str(&value.to_string()),
        },
        ValueKind::String => write_text(value.as_str().unwrap_or_default(), out),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => match value.as_object() {
            Some(object) => write_object(value, object, out),
            None => out.push_str(&value.to_string()),
        },
        _ => out.push_str(&value.to_string()),
    }
}

fn write_object(value: &Value, object: &DynObject, out: &mut String) {
    if let Some(Tuple(items)) = object.downcast_ref() {
        out.push('(');
        write_items(items.iter().cloned(), out);
        // That of one element has a comma.
        out.push_str(if items.len() == 1 { ",)" } else { ")" });
        return;
    }
    // Namespaces are maps for the engine, and not for CPython.
    if object.type_name().ends_with("Namespace") {
        out.push_str(&value.to_string());
        return;
    }
    match object.repr() {
        ObjectRepr::Map => {
            out.push('{');
            for (index, (key, item)) in object.try_iter_pairs().into_iter().flatten().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_repr(&key, out);
                out.push_str(": ");
                write_repr(&item, out);
            }
            out.push('}');
        }
        _ => {
            out.push('[');
            write_items(object.try_iter().into_iter().flatten(), out);
            out.push(']');
        }
    }
}

fn write_items(items: impl Iterator<Item = Value>, out: &mut String) {
    for (index, item) in items.enumerate() {
        out.push_str(if index == 0 { "" } else { ", " });
        write_repr(&item, out);
    }
}

/// Writes a text in quotes: double ones if it has single ones only.
fn write_text(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            _ if character == quote => out.extend(['\\', quote]),
            _ if prints(character) => out.push(character),
            _ => write_escape(character, out),
        }
    }
    out.push(quote);
}

/// Writes the number of a character.
pub(super) fn write_escape(character: char, out: &mut String) {
    let number = u32::from(character);
    // Writing to a text does not fail.
    let _ = match number {
        0..0x100 => write!(out, "\\x{number:02x}"),
        0x100..0x1_0000 => write!(out, "\\u{number:04x}"),
        _ => write!(out, "\\U{number:08x}"),
    };
}

/// Returns whether a character prints: whether it is no control, format, surrogate, private,
/// unassigned or separating character, the space excepted.
fn prints(character: char) -> bool {
    if character.is_ascii() {
        return (' '..='~').contains(&character);
    }
    // The standard library escapes the same categories. Behind another character it does not escape
    // marks that combine.
    let (mut bytes, mut shown) = ([b'a'; 5], String::with_capacity(16));
    let length = character.encode_utf8(&mut bytes[1..]).len();
    let text = std::str::from_utf8(&bytes[..1 + length]).unwrap_or_default();
    shown.extend(text.escape_debug());
    shown == text
}

/// Returns the number if it is of floating point.
pub(super) fn float(value: &Value) -> Option<f64> {
    if value.kind() != ValueKind::Number || value.is_integer() { None } else { f64::try_from(value.clone()).ok() }
}

/// Returns the shortest digits that are the number again: in powers of ten below 10⁻⁴ and from 10¹⁶
/// on.
pub(super) fn float_repr(number: f64) -> String {
    if !number.is_finite() {
        return not_finite(number).to_owned();
    }
    let shortest = format!("{number:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    format!("{digits}{}", power(exponent, 'e'))
}

/// Returns `nan`, `inf` or `-inf`.
pub(super) fn not_finite(number: f64) -> &'static str {
    match number {
        f64::INFINITY => "inf",
        f64::NEG_INFINITY => "-inf",
        _ => "nan",
    }
}

/// Returns a power of ten as C writes it: a sign and two digits or more.
pub(super) fn power(exponent: i32, letter: char) -> String {
    format!("{letter}{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs())
}
