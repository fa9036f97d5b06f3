//! `format % values` of CPython's texts.
//!
//! Conversions, flags, width and precision as in CPython 3.11; what it refuses is refused in its
//! words. Widths are checked before memory is taken.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::python::{self, Tuple, not_finite, power, repr_of, str_of};

/// Charges for bytes that are made, or refuses them.
type Charge<'a> = &'a dyn Fn(u64) -> Result<(), Error>;

/// Returns `format % values`, of at most `limit` bytes. What a conversion makes is charged for,
/// even if it is cut.
pub(super) fn percent(format: &str, values: &Value, limit: usize, charge: Charge<'_>) -> Result<String, Error> {
    let mut formatter = Formatter::new(values, limit, charge);
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        formatter.push(before)?;
        let mut characters = after.chars();
        formatter.convert(&mut characters, format)?;
        rest = characters.as_str();
    }
    formatter.push(rest)?;
    formatter.finish()
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// What follows a percent sign, up to the letter.
#[derive(Debug, Default)]
struct Spec {
    is_left: bool,
    has_sign: bool,
    has_blank: bool,
    is_alternate: bool,
    has_zeros: bool,
    width: usize,
    precision: Option<usize>,
}

/// The text that is made, and the values that are left.
struct Formatter<'a> {
    out: String,
    limit: usize,
    charge: Charge<'a>,
    /// Whether the value is not defined, and so need not be converted.
    is_undefined: bool,
    /// What names in parentheses are looked up in.
    mapping: Option<&'a Value>,
    left: std::vec::IntoIter<Value>,
}

impl<'a> Formatter<'a> {
    fn new(values: &'a Value, limit: usize, charge: Charge<'a>) -> Formatter<'a> {
        let tuple = values.downcast_object_ref::<Tuple>();
        let left = tuple.map_or_else(|| vec![values.clone()], |tuple| tuple.0.clone());
        // A list is a mapping here, too.
        let mapping = (tuple.is_none() && values.as_object().is_some()).then_some(values);
        let (out, is_undefined) = (String::new(), values.is_undefined());
        Formatter { out, limit, charge, is_undefined, mapping, left: left.into_iter() }
    }

    fn push(&mut self, text: &str) -> Result<(), Error> {
        self.reserve(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    /// Refuses a text that would be too long.
    fn reserve(&self, more: usize) -> Result<(), Error> {
        match self.out.len().checked_add(more) {
            Some(length) if length <= self.limit => Ok(()),
            _ => Err(refused(format!("a text or a value has more than {} MiB", self.limit >> 20))),
        }
    }

    fn next(&mut self) -> Result<Value, Error> {
        self.left.next().ok_or_else(|| refused("not enough arguments for format string"))
    }

    fn finish(self) -> Result<String, Error> {
        if self.mapping.is_none() && !self.is_undefined && !self.left.as_slice().is_empty() {
            return Err(refused("not all arguments converted during string formatting"));
        }
        Ok(self.out)
    }

    /// Reads what follows a percent sign, and writes the value that it stands for.
    fn convert(&mut self, characters: &mut std::str::Chars<'_>, format: &str) -> Result<(), Error> {
        if let Some(after) = characters.as_str().strip_prefix('%') {
            *characters = after.chars();
            return self.push("%");
        }
        let incomplete = || refused("incomplete format");
        if characters.as_str().starts_with('(') {
            let mapping = self.mapping.ok_or_else(|| refused("format requires a mapping"))?;
            let key = key(characters).ok_or_else(|| refused("incomplete format key"))?;
            if mapping.kind() != ValueKind::Map {
                return Err(refused("list indices must be integers or slices, not str"));
            }
            let value = mapping.as_object().and_then(|object| object.get_value(&Value::from(key)));
            let value = value.ok_or_else(|| refused(format!("KeyError: {}", repr_of(&Value::from(key)))))?;
            self.left = vec![value].into_iter();
        }
        let mut spec = Spec::default();
        let mut letter = characters.next().ok_or_else(incomplete)?;
        while spec.flag(letter) {
            letter = characters.next().ok_or_else(incomplete)?;
        }
        if letter == '*' {
            let width = self.whole()?;
            (spec.is_left, spec.width) = (spec.is_left || width < 0, size(width.unsigned_abs()));
            letter = characters.next().ok_or_else(incomplete)?;
        } else {
            spec.width = digits(&mut letter, characters).ok_or_else(incomplete)?;
        }
        if letter == '.' {
            letter = characters.next().ok_or_else(incomplete)?;
            spec.precision = Some(if letter == '*' {
                let precision = self.whole()?;
                letter = characters.next().ok_or_else(incomplete)?;
                size(precision.max(0).unsigned_abs())
            } else {
                digits(&mut letter, characters).ok_or_else(incomplete)?
            });
        }
        if matches!(letter, 'h' | 'l' | 'L') {
            letter = characters.next().ok_or_else(incomplete)?;
        }
        // A precision may make a number as long as a width.
        let length = spec.width.max(spec.precision.filter(|_| !"sra".contains(letter)).unwrap_or(0));
        self.reserve(length)?;
        (self.charge)(length as u64)?;
        let value = self.next()?;
        self.write(&spec, letter, &value, || format.chars().count() - characters.as_str().chars().count() - 1)
    }

    /// Returns the whole number that a star stands for.
    fn whole(&mut self) -> Result<i128, Error> {
        let value = self.next()?;
        whole(&value).ok_or_else(|| refused("* wants int"))
    }

    /// Writes `value` as `letter` says, which `place` finds in the format.
    fn write(&mut self, spec: &Spec, letter: char, value: &Value, place: impl Fn() -> usize) -> Result<(), Error> {
        match letter {
            's' => self.text(spec, &str_of(value)),
            'r' => self.text(spec, &repr_of(value)),
            'a' => self.text(spec, &ascii(&repr_of(value))),
            'c' => self.text(&Spec { precision: None, ..*spec }, &character(value)?.to_string()),
            'd' | 'i' | 'u' | 'o' | 'x' | 'X' => self.number(spec, letter, &integer(spec, letter, value)?),
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                let number = real(value)?;
                self.number(spec, letter, &floating(spec, letter, number))
            }
            _ => Err(refused(format!(
                "unsupported format character '{letter}' (0x{:x}) at index {}",
                u32::from(letter),
                place()
            ))),
        }
    }

    /// Writes a text, cut to the precision and filled up to the width.
    fn text(&mut self, spec: &Spec, text: &str) -> Result<(), Error> {
        (self.charge)(text.len() as u64)?;
        let n_characters = text.chars().count();
        let kept = spec.precision.map_or(n_characters, |precision| precision.min(n_characters));
        let end = text.char_indices().nth(kept).map_or(text.len(), |(at, _)| at);
        let fill = spec.width.saturating_sub(kept);
        self.reserve(end + fill)?;
        let [before, after] = if spec.is_left { [0, fill] } else { [fill, 0] };
        self.out.extend(std::iter::repeat_n(' ', before));
        self.out.push_str(&text[..end]);
        self.out.extend(std::iter::repeat_n(' ', after));
        Ok(())
    }

    /// Writes a number with its sign, its prefix and what fills it up.
    fn number(&mut self, spec: &Spec, letter: char, digits: &str) -> Result<(), Error> {
        let (sign, digits) = match digits.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None if spec.has_sign => ("+", digits),
            None if spec.has_blank => (" ", digits),
            None => ("", digits),
        };
        let prefix = match letter {
            'o' if spec.is_alternate => "0o",
            'x' if spec.is_alternate => "0x",
            'X' if spec.is_alternate => "0X",
            _ => "",
        };
        let length = sign.len() + prefix.len() + digits.len();
        let fill = spec.width.saturating_sub(length);
        self.reserve(length + fill)?;
        let [blanks, zeros, after] = match (spec.is_left, spec.has_zeros) {
            (true, _) => [0, 0, fill],
            (false, true) => [0, fill, 0],
            (false, false) => [fill, 0, 0],
        };
        self.out.extend(std::iter::repeat_n(' ', blanks));
        self.out.push_str(sign);
        self.out.push_str(prefix);
        self.out.extend(std::iter::repeat_n('0', zeros));
        self.out.push_str(digits);
        self.out.extend(std::iter::repeat_n(' ', after));
        Ok(())
    }
}

impl Spec {
    /// Notes a flag, and returns whether it is one.
    fn flag(&mut self, letter: char) -> bool {
        match letter {
            '-' => self.is_left = true,
            '+' => self.has_sign = true,
            ' ' => self.has_blank = true,
            '#' => self.is_alternate = true,
            '0' => self.has_zeros = true,
            _ => return false,
        }
        true
    }
}

/// Reads a name in parentheses, which may have parentheses in pairs.
fn key<'f>(characters: &mut std::str::Chars<'f>) -> Option<&'f str> {
    characters.next();
    let (text, mut depth) = (characters.as_str(), 1);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            *characters = text[at + 1..].chars();
            return Some(&text[..at]);
        }
    }
    None
}

/// Reads a number that begins with `letter`, which becomes what follows it; 0 if there is none.
fn digits(letter: &mut char, characters: &mut std::str::Chars<'_>) -> Option<usize> {
    let mut number = 0_usize;
    while let Some(digit) = letter.to_digit(10) {
        number = number.saturating_mul(10).saturating_add(digit as usize);
        *letter = characters.next()?;
    }
    Some(number)
}

fn size(number: u128) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Returns a whole number or a truth value as one.
fn whole(value: &Value) -> Option<i128> {
    match value.kind() {
        ValueKind::Bool => Some(i128::from(value.is_true())),
        ValueKind::Number if value.is_integer() => i128::try_from(value.clone()).ok(),
        _ => None,
    }
}

/// Returns the name of a value's type.
fn type_name(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::Undefined => "Undefined",
        ValueKind::None => "NoneType",
        ValueKind::Bool => "bool",
        ValueKind::Number if value.is_integer() => "int",
        ValueKind::Number => "float",
        ValueKind::String => "str",
        ValueKind::Map => "dict",
        _ if value.downcast_object_ref::<Tuple>().is_some() => "tuple",
        _ => "list",
    }
}

/// Returns the digits of a whole number, with its sign and at least as many as the precision.
fn integer(spec: &Spec, letter: char, value: &Value) -> Result<String, Error> {
    let is_decimal = matches!(letter, 'd' | 'i' | 'u');
    let digits = match (whole(value), python::float(value)) {
        (Some(number), _) => {
            let magnitude = number.unsigned_abs();
            let digits = match letter {
                'o' => format!("{magnitude:o}"),
                'x' => format!("{magnitude:x}"),
                'X' => format!("{magnitude:X}"),
                _ => magnitude.to_string(),
            };
            if number < 0 { format!("-{digits}") } else { digits }
        }
        (None, Some(number)) if is_decimal && number.is_finite() => {
            let digits = format!("{:.0}", number.trunc());
            // Nothing is negative about 0.
            if digits == "-0" { "0".to_owned() } else { digits }
        }
        (None, Some(number)) if is_decimal => {
            let found = if number.is_nan() { "float NaN" } else { "float infinity" };
            return Err(refused(format!("cannot convert {found} to integer")));
        }
        _ if value.kind() == ValueKind::Number && is_decimal => value.to_string(),
        _ => {
            let wanted = if is_decimal { "a real number" } else { "an integer" };
            return Err(refused(format!("%{letter} format: {wanted} is required, not {}", type_name(value))));
        }
    };
    let (sign, digits) = digits.strip_prefix('-').map_or(("", &digits[..]), |digits| ("-", digits));
    let zeros = spec.precision.unwrap_or(0).saturating_sub(digits.len());
    Ok(format!("{sign}{}{digits}", "0".repeat(zeros)))
}

fn real(value: &Value) -> Result<f64, Error> {
    match value.kind() {
        ValueKind::Bool => Ok(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value.clone()).or_else(|_| {
            let whole = i128::try_from(value.clone())?;
            Ok(whole as f64)
        }),
        _ => Err(refused(format!("must be real number, not {}", type_name(value)))),
    }
}

/// Digits behind the point that a number of double precision has, at most; zeros follow.
const MOST_DIGITS: usize = 1100;

/// Returns a number as `%e`, `%f` or `%g` of C.
fn floating(spec: &Spec, letter: char, number: f64) -> String {
    let precision = spec.precision.unwrap_or(6);
    let is_upper = letter.is_ascii_uppercase();
    let text = match letter.to_ascii_lowercase() {
        _ if !number.is_finite() => not_finite(number).to_owned(),
        'f' => fixed(number, precision, spec.is_alternate),
        'e' => scientific(number, precision, spec.is_alternate),
        _ => general(number, precision.max(1), spec.is_alternate),
    };
    if is_upper { text.to_ascii_uppercase() } else { text }
}

fn fixed(number: f64, precision: usize, has_point: bool) -> String {
    let known = precision.min(MOST_DIGITS);
    let point = if has_point && precision == 0 { "." } else { "" };
    format!("{number:.known$}{point}{}", "0".repeat(precision - known))
}

fn scientific(number: f64, precision: usize, has_point: bool) -> String {
    let known = precision.min(MOST_DIGITS);
    let text = format!("{number:.known$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if has_point && precision == 0 { "." } else { "" };
    format!("{digits}{point}{}{}", "0".repeat(precision - known), power(exponent.parse().unwrap_or(0), 'e'))
}

/// Returns `precision` digits, without zeros at the end unless the point is wanted.
fn general(number: f64, precision: usize, has_point: bool) -> String {
    // Further digits are zeros, which go.
    let precision = if has_point { precision } else { precision.min(MOST_DIGITS) };
    let text = scientific(number, precision - 1, false);
    let exponent: i32 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let is_fixed = exponent >= -4 && i64::from(exponent) < precision as i64;
    let (digits, rest) = match is_fixed {
        true => (fixed(number, (precision as i64 - 1 - i64::from(exponent)) as usize, has_point), String::new()),
        false => {
            let text = scientific(number, precision - 1, has_point);
            let at = text.find('e').unwrap_or(text.len());
            (text[..at].to_owned(), text[at..].to_owned())
        }
    };
    match digits.contains('.') && !has_point {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned() + &rest,
        false => digits + &rest,
    }
}

/// Returns the one character of a text, or that of a number.
fn character(value: &Value) -> Result<char, Error> {
    let mut characters = value.as_str().unwrap_or_default().chars();
    match (characters.next(), characters.next(), whole(value)) {
        (Some(only), None, _) => Ok(only),
        (None, _, Some(number)) => {
            let number = u32::try_from(number).ok().filter(|number| *number < 0x11_0000);
            let number = number.ok_or_else(|| refused("%c arg not in range(0x110000)"))?;
            char::from_u32(number).ok_or_else(|| refused("%c of half of a surrogate pair is not supported here"))
        }
        _ => Err(refused("%c requires int or char")),
    }
}

/// Returns a `repr` with escapes for what is not ASCII.
fn ascii(repr: &str) -> String {
    let mut out = String::with_capacity(repr.len());
    for character in repr.chars() {
        match character.is_ascii() {
            true => out.push(character),
            false => python::write_escape(character, &mut out),
        }
    }
    out
}
