//! Splits the text of a formula into numbers, names and symbols.

use super::error::FormulaProblem;
use std::ops::Range;

/// A part of a formula.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A number, and whether it is written as an integer.
    Number(f64, bool),
    /// A name as written, with `::` and a bracketed index if it has them.
    Name(String),
    /// The position of an argument: `@0`.
    Position(usize),
    /// An operator or a bracket.
    Symbol(&'static str),
    /// The end of the text.
    End,
}

impl Token {
    /// Returns the token as a message names it.
    pub(super) fn found(&self) -> String {
        match self {
            Self::Number(value, _) => format!("`{value}`"),
            Self::Name(name) => format!("`{name}`"),
            Self::Position(position) => format!("`@{position}`"),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Operators and brackets; of two that begin alike, the longer one first.
const SYMBOLS: [&str; 20] =
    ["**", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "^", "(", ")", ",", "<", ">", "!", "?", ":"];

/// Reads the tokens of a text one after the other.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next token and its bytes; an error has the byte at which it is.
    pub(super) fn next(&mut self) -> Result<(Token, Range<usize>), (FormulaProblem, usize)> {
        let rest = self.text[self.at..].trim_start();
        let start = self.text.len() - rest.len();
        let Some(first) = rest.chars().next() else { return Ok((Token::End, start..start)) };
        let (token, len) = match first {
            '0'..='9' | '.' => number(rest),
            '@' => position(rest),
            '`' => backticks(rest),
            _ if is_start(first) => Ok(name(rest)),
            _ => symbol(rest, first),
        }
        .map_err(|problem| (problem, start))?;
        self.at = start + len;
        Ok((token, start..self.at))
    }
}

fn is_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// Returns whether `name` needs no backticks in a formula.
pub(super) fn is_plain_name(text: &str) -> bool {
    text.starts_with(is_start) && !text.contains("::") && name(text).1 == text.len()
}

/// Reads a name with its `::` parts, and an index in brackets, as elements of vectors have it.
fn name(rest: &str) -> (Token, usize) {
    let plain = |from: usize| rest[from..].find(|c| !is_part(c)).map_or(rest.len(), |len| from + len);
    let mut end = plain(0);
    while rest[end..].strip_prefix("::").is_some_and(|after| after.starts_with(is_start)) {
        end = plain(end + 2);
    }
    if let Some(index) = rest[end..].strip_prefix('[').and_then(|inside| inside.split_once(']')) {
        let is_index = !index.0.is_empty() && index.0.bytes().all(|b| b.is_ascii_digit());
        end += if is_index { index.0.len() + 2 } else { 0 };
    }
    (Token::Name(rest[..end].to_owned()), end)
}

fn backticks(rest: &str) -> Result<(Token, usize), FormulaProblem> {
    match rest[1..].split_once('`') {
        Some((name, _)) if !name.is_empty() => Ok((Token::Name(name.to_owned()), name.len() + 2)),
        _ => Err(FormulaProblem::OpenName),
    }
}

fn position(rest: &str) -> Result<(Token, usize), FormulaProblem> {
    let digits = rest[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - 1);
    let number = rest[1..=digits].parse().map_err(|_| FormulaProblem::Number(rest[..=digits].to_owned()))?;
    Ok((Token::Position(number), digits + 1))
}

fn number(rest: &str) -> Result<(Token, usize), FormulaProblem> {
    let digits = |from: usize| rest[from..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |len| from + len);
    let whole = digits(0);
    let mut end = if rest[whole..].starts_with('.') { digits(whole + 1) } else { whole };
    if rest[end..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        end = if exponent > end + 1 + sign { exponent } else { end };
    }
    let is_integer = end == whole;
    match rest[..end].parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Token::Number(value, is_integer), end)),
        _ => Err(FormulaProblem::Number(rest[..end.max(1)].to_owned())),
    }
}

fn symbol(rest: &str, first: char) -> Result<(Token, usize), FormulaProblem> {
    let found = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
    found.map(|symbol| (Token::Symbol(symbol), symbol.len())).ok_or(FormulaProblem::Character(first))
}
