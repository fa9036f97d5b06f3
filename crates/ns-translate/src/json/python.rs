//! JSON in the spelling of Python's `json` module: how numbers and strings look, and a writer with `json.dumps(…, indent=4)`'s layout.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// The document that `value` serializes to, as `json.dumps(value, indent=4)` writes it: four spaces, ASCII only, floats as Python has them.
///
/// Keys stay in the order in which `value` gives them; a number that is not finite becomes `null`.
///
/// # Errors
///
/// Keys that are not text.
///
/// # Example
///
/// ```
/// let text = ns_translate::python_json(&serde_json::json!({"α": [1, 1e-5, 1e16]}))?;
/// assert_eq!(text, "{\n    \"\\u03b1\": [\n        1,\n        1e-05,\n        1e+16\n    ]\n}");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn python_json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::new();
    let layout = Layout(PrettyFormatter::with_indent(b"    "));
    value.serialize(&mut Serializer::with_formatter(&mut bytes, layout))?;
    // ASCII, by construction.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Python's `repr` of a float.
pub(crate) fn python_repr(number: f64) -> Cow<'static, str> {
    if number.is_infinite() {
        return Cow::Borrowed(if number > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let scientific = shortest_digits(number);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        return Cow::Owned(fixed_point(mantissa, exponent));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    Cow::Owned(format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs()))
}

/// The fewest digits that round-trip, the nearest of them, and of two equally near the even one, as `d.ddde±x`.
///
/// Rust's own shortest form differs in the last point: it writes 1248851666500989.25 with `.3`, Python with `.2`.
fn shortest_digits(number: f64) -> String {
    /// So many digits tell any two doubles apart that differ in them: no two neighbours can be equally near.
    const ALWAYS_DISTINCT: usize = 15;
    let shortest = format!("{number:e}");
    let n_digits = shortest.bytes().take_while(|&byte| byte != b'e').filter(u8::is_ascii_digit).count();
    if n_digits <= ALWAYS_DISTINCT {
        return shortest;
    }
    let half_to_even = format!("{number:.*e}", n_digits - 1);
    if half_to_even.parse() == Ok(number) { half_to_even } else { shortest }
}

/// `d.ddd` times ten to the `exponent`, written without exponent and with at least one decimal.
fn fixed_point(mantissa: &str, exponent: i32) -> String {
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let shift = exponent.unsigned_abs() as usize;
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(shift - 1));
    }
    let padded = format!("{digits:0<width$}", width = shift + 2);
    let (whole, decimals) = padded.split_at(shift + 1);
    format!("{sign}{whole}.{decimals}")
}

/// Python's spelling in serde_json's layout.
struct Layout(PrettyFormatter<'static>);

impl Formatter for Layout {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(python_repr(value).as_bytes())
    }

    /// Text without quotes, backslashes and control characters. What is not printable ASCII is written as UTF-16 escapes, as
    /// `ensure_ascii` has it.
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let is_plain = |character: char| (' '..='~').contains(&character);
        let mut rest = fragment;
        while let Some(end) = rest.find(|character| !is_plain(character)) {
            let (plain, from) = rest.split_at(end);
            writer.write_all(plain.as_bytes())?;
            let mut characters = from.chars();
            let mut units = [0; 2];
            for unit in characters.next().unwrap_or_default().encode_utf16(&mut units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_ascii_with_pythons_escapes() {
        let text = "a/\"\\\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}é\u{2028}😀z";
        let python = r#""a/\"\\\b\f\n\r\t\u0000\u001f\u007f\u00e9\u2028\ud83d\ude00z""#;
        assert_eq!(python_json(&text).expect("text"), python);
    }

    #[test]
    fn empty_lists_and_objects_stay_on_their_line() {
        let document = serde_json::json!({"a": [], "b": {}, "c": [[1.0]], "d": null});
        let python = "{\n    \"a\": [],\n    \"b\": {},\n    \"c\": [\n        [\n            1.0\n        ]\n    ],\n    \"d\": null\n}";
        assert_eq!(python_json(&document).expect("text keys"), python);
    }
}
