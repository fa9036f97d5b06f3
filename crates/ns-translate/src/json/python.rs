//! Writes JSON as Python's `json` module does: its spelling of numbers and strings, and the layout
//! of `json.dumps(…, indent=4)`.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// Returns the JSON text of `value` as `json.dumps(value, indent=4)` writes it: indented by four
/// spaces, ASCII only, with Python's spelling of floats.
///
/// Keys keep the order of `value`; a number that is not finite becomes `null`.
///
/// # Errors
///
/// If a key is not text.
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
    let layout = PythonLayout(PrettyFormatter::with_indent(b"    "));
    value.serialize(&mut Serializer::with_formatter(&mut bytes, layout))?;
    // ASCII, by construction.
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Returns Python's `repr` of a float. `buffer` holds its digits.
///
/// The digits are the fewest that round-trip, the nearest of them, and of two equally near the even
/// ones: those of zmij. Rust's own formatting writes 1248851666500989.25 with `.3`.
pub(crate) fn python_repr(number: f64, buffer: &mut zmij::Buffer) -> Cow<'_, str> {
    if number.is_infinite() {
        return Cow::Borrowed(if number > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let has_exponent = !(1e-4..1e16).contains(&number.abs()) && number != 0.0 && !number.is_nan();
    let digits = buffer.format(number);
    if has_exponent { Cow::Owned(pythons_exponent(digits)) } else { Cow::Borrowed(digits) }
}

/// Returns `digits` with an exponent of a sign and at least two digits. zmij writes numbers from
/// 1e-5 on without one.
fn pythons_exponent(digits: &str) -> String {
    if let Some((mantissa, exponent)) = digits.split_once('e') {
        let (sign, exponent) = exponent.split_at(1);
        return format!("{mantissa}e{sign}{exponent:0>2}");
    }
    let (sign, digits) = digits.split_once("0.0000").unwrap_or(("", digits));
    let (first, others) = digits.split_at(1);
    let point = if others.is_empty() { "" } else { "." };
    format!("{sign}{first}{point}{others}e-05")
}

/// Python's spelling in serde_json's layout.
struct PythonLayout(PrettyFormatter<'static>);

impl Formatter for PythonLayout {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(python_repr(value, &mut zmij::Buffer::new()).as_bytes())
    }

    /// Writes text without quotes, backslashes and control characters. Characters other than
    /// printable ASCII become UTF-16 escapes, as with `ensure_ascii`.
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
    use proptest::prelude::*;

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

    /// Returns `number` as `d.ddde±x` with the same digits from Rust's formatting: the shortest
    /// ones, unless as many digits of the exact value, rounded to even, parse to the same number.
    fn reference_digits(number: f64) -> String {
        let shortest = format!("{number:e}");
        let n_digits = shortest.bytes().take_while(|&byte| byte != b'e').filter(u8::is_ascii_digit).count();
        let half_to_even = format!("{number:.*e}", n_digits - 1);
        if half_to_even.parse() == Ok(number) { half_to_even } else { shortest }
    }

    /// Returns the same digits with Python's rules for the point and the exponent.
    fn reference_repr(number: f64) -> String {
        let scientific = reference_digits(number);
        let (mantissa, exponent) = scientific.split_once('e').expect("an exponent");
        let exponent: i32 = exponent.parse().expect("a number");
        if !(-4..16).contains(&exponent) {
            return format!("{mantissa}e{exponent:+03}");
        }
        let digits = mantissa.replace(['-', '.'], "");
        let sign = if number.is_sign_negative() { "-" } else { "" };
        let shift = exponent.unsigned_abs() as usize;
        if exponent < 0 {
            return format!("{sign}0.{}{digits}", "0".repeat(shift - 1));
        }
        let padded = format!("{digits:0<width$}", width = shift + 2);
        let (whole, decimals) = padded.split_at(shift + 1);
        format!("{sign}{whole}.{decimals}")
    }

    fn assert_repr(number: f64) {
        assert_eq!(python_repr(number, &mut zmij::Buffer::new()), reference_repr(number));
    }

    #[test]
    fn floats_match_the_reference_where_their_spelling_changes() {
        for edge in [1e-5, 1e-4, 1e15, 1e16, 1e17, 1e99, 1e100, 1.0, 123.0, f64::MIN_POSITIVE, 5e-324, f64::MAX] {
            for number in [edge, edge.next_down(), edge.next_up().min(f64::MAX), 1.5 * (edge / 2.0)] {
                assert_repr(number);
                assert_repr(-number);
            }
        }
        assert_repr(0.0);
        assert_repr(-0.0);
    }

    proptest! {
        #[test]
        fn floats_match_the_reference(bits: u64) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            assert_repr(number);
        }

        /// Multiples of an eighth with 16 and 17 digits, where two of the shortest may be equally
        /// near.
        #[test]
        fn of_two_equally_near_spellings_the_even_one_is_written(eighths in 1_u64 << 49..1 << 53) {
            assert_repr(eighths as f64 / 8.0);
        }

        #[test]
        fn floats_of_ordinary_size_match_the_reference(mantissa in -10.0..10.0_f64, exponent in -8..20_i32) {
            assert_repr(mantissa * 10.0_f64.powi(exponent));
        }
    }
}
