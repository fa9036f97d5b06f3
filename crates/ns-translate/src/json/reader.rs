//! Parses text to a tree of [`JsonNode`]s, strictly by RFC 8259; Python's `NaN` and `Infinity`
//! become nodes too.

use std::borrow::Cow;

use super::syntax::SEPARATOR;
use super::{DEPTH_LIMIT, JsonError, JsonNode, JsonTree, ObjectMember, SyntaxProblem};
use crate::place::{DocumentPlace, TextPosition, push_index, push_key};

/// Reads a whole document.
pub(crate) fn parse(text: &str) -> Result<JsonNode<'_>, JsonError> {
    parse_to_depth(text, DEPTH_LIMIT)
}

/// Reads a whole document and stores only the outermost `depth` levels of lists and objects.
pub(crate) fn parse_to_depth(text: &str, depth: usize) -> Result<JsonNode<'_>, JsonError> {
    let mut reader = Reader::new(text, depth);
    reader.document().map_err(|problem| reader.error(problem, ""))
}

/// Reads the one value that begins at byte `start` of `text` and is at `pointer`. What follows it
/// is not read.
pub(crate) fn parse_part<'a>(text: &'a str, start: usize, pointer: &str) -> Result<JsonNode<'a>, JsonError> {
    let mut reader = Reader::new(text, DEPTH_LIMIT);
    reader.at = start;
    reader.value().map_err(|problem| reader.error(problem, pointer))
}

/// Calls `decide` with the keys of the object at the top of `text`, or of the objects in the list
/// there (its first argument is true), in document order, and returns its first result that is not
/// `None`. What follows that key need not be JSON; before it, the scan ends at the first error.
pub(crate) fn first_keys<T>(text: &str, mut decide: impl FnMut(bool, &str) -> Option<T>) -> Option<T> {
    let mut reader = Reader::new(text, 0);
    reader.skip_blanks();
    match reader.peek()? {
        b'{' => reader.keys(|key| decide(false, key)),
        b'[' => {
            reader.at += 1;
            loop {
                reader.skip_blanks();
                let found = (reader.peek()? == b'{').then(|| reader.keys(|key| decide(true, key)))?;
                if found.is_some() || reader.ends(b']').ok()? {
                    return found;
                }
            }
        }
        _ => None,
    }
}

enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    keep_depth: usize,
    /// The steps from the top to the value being read; their number is the depth.
    path: Vec<Step<'a>>,
}

type Read<T> = Result<T, SyntaxProblem>;

impl<'a> Reader<'a> {
    fn new(text: &'a str, keep_depth: usize) -> Self {
        Self { text, at: 0, keep_depth, path: Vec::new() }
    }

    fn error(&self, problem: SyntaxProblem, prefix: &str) -> JsonError {
        let mut pointer = prefix.to_owned();
        // The pointer of a runaway nesting is cut: its beginning is enough.
        for step in self.path.iter().take(16) {
            match step {
                Step::Key(key) => push_key(&mut pointer, key),
                Step::Index(index) => push_index(&mut pointer, *index),
            }
        }
        let position = Some(TextPosition::of(self.text, self.at));
        JsonError::Syntax { problem, place: DocumentPlace { pointer, position } }
    }

    fn document(&mut self) -> Read<JsonNode<'a>> {
        self.skip_blanks();
        if self.peek().is_none() {
            return Err(SyntaxProblem::Blank);
        }
        let node = self.value()?;
        self.skip_blanks();
        match self.rest().chars().next() {
            None => Ok(node),
            Some(found) => Err(SyntaxProblem::Trailing { found }),
        }
    }

    fn value(&mut self) -> Read<JsonNode<'a>> {
        self.skip_blanks();
        let start = self.at;
        let tree = match self.peek().ok_or(SyntaxProblem::Truncated)? {
            b'{' => self.object()?,
            b'[' => self.list()?,
            b'"' => JsonTree::Text(self.string()?),
            b'-' if self.rest().starts_with("-Infinity") => JsonTree::NonFinite(self.take("-Infinity".len())),
            b'-' | b'0'..=b'9' => JsonTree::Number(self.number()?),
            b'+' | b'.' => return Err(self.bad_number()),
            _ => self.word()?,
        };
        Ok(JsonNode { start, tree })
    }

    fn word(&mut self) -> Read<JsonTree<'a>> {
        let rest = self.rest();
        let length = rest.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let word = &rest[..length];
        let tree = match word {
            "null" => JsonTree::Null,
            "true" => JsonTree::Bool(true),
            "false" => JsonTree::Bool(false),
            "NaN" | "Infinity" => JsonTree::NonFinite(word),
            _ if length == rest.len() && is_truncated_word(word) => return Err(SyntaxProblem::Truncated),
            _ => return Err(self.unexpected("a value")),
        };
        self.at += length;
        Ok(tree)
    }

    /// Steps over an opening bracket, and returns whether its contents are to be stored.
    fn open(&mut self) -> Read<bool> {
        if self.path.len() >= DEPTH_LIMIT {
            return Err(SyntaxProblem::TooDeep { limit: DEPTH_LIMIT });
        }
        self.at += 1;
        Ok(self.path.len() < self.keep_depth)
    }

    fn list(&mut self) -> Read<JsonTree<'a>> {
        let keep = self.open()?;
        let mut items = Vec::new();
        if self.closes(b']') {
            return Ok(if keep { JsonTree::List(items) } else { JsonTree::Skipped });
        }
        for index in 0.. {
            self.path.push(Step::Index(index));
            let item = self.value()?;
            if keep {
                items.push(item);
            }
            self.path.pop();
            if self.ends(b']')? {
                break;
            }
        }
        Ok(if keep { JsonTree::List(items) } else { JsonTree::Skipped })
    }

    fn object(&mut self) -> Read<JsonTree<'a>> {
        let keep = self.open()?;
        let mut members = Vec::new();
        if self.closes(b'}') {
            return Ok(if keep { JsonTree::Object(members) } else { JsonTree::Skipped });
        }
        loop {
            let member = self.member()?;
            if keep {
                members.push(member);
            }
            if self.ends(b'}')? {
                break;
            }
        }
        Ok(if keep { JsonTree::Object(members) } else { JsonTree::Skipped })
    }

    /// Reads the object here as far as the first key for which `decide` returns something.
    fn keys<T>(&mut self, mut decide: impl FnMut(&str) -> Option<T>) -> Option<T> {
        self.at += 1;
        if self.closes(b'}') {
            return None;
        }
        loop {
            let (_, key) = self.key().ok()?;
            if let Some(found) = decide(&key) {
                return Some(found);
            }
            self.value().ok()?;
            self.path.pop();
            if self.ends(b'}').ok()? {
                return None;
            }
        }
    }

    fn member(&mut self) -> Read<ObjectMember<'a>> {
        let (start, key) = self.key()?;
        let value = self.value()?;
        self.path.pop();
        Ok(ObjectMember { start, key, value })
    }

    /// Reads a key and the colon behind it, and puts the key on the path. Returns where it begins,
    /// and the key.
    fn key(&mut self) -> Read<(usize, Cow<'a, str>)> {
        self.skip_blanks();
        let start = self.at;
        match self.peek() {
            Some(b'"') => {}
            None => return Err(SyntaxProblem::Truncated),
            Some(_) => return Err(self.unexpected("a key in double quotes")),
        }
        let key = self.string()?;
        self.path.push(Step::Key(key.clone()));
        self.skip_blanks();
        match self.peek() {
            Some(b':') => self.at += 1,
            None => return Err(SyntaxProblem::Truncated),
            Some(_) => return Err(self.unexpected("a colon")),
        }
        Ok((start, key))
    }

    /// Steps over the closing bracket of an empty list or object, and returns whether it is there.
    fn closes(&mut self, close: u8) -> bool {
        self.skip_blanks();
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        closes
    }

    /// Steps over the closing bracket or the comma after an entry, and returns whether it is the
    /// bracket.
    fn ends(&mut self, close: u8) -> Read<bool> {
        self.skip_blanks();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Err(self.unexpected(SEPARATOR)),
            None => Err(SyntaxProblem::Truncated),
        }
    }

    fn number(&mut self) -> Read<&'a str> {
        let bytes = self.rest().as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let byte = |index: usize| bytes.get(index).copied();
        let mut length = usize::from(byte(0) == Some(b'-'));
        let whole = digits(length);
        let mut right = whole == 1 || (whole > 1 && byte(length) != Some(b'0'));
        length += whole;
        if byte(length) == Some(b'.') {
            let fraction = digits(length + 1);
            right &= fraction > 0;
            length += 1 + fraction;
        }
        if matches!(byte(length), Some(b'e' | b'E')) {
            length += 1 + usize::from(matches!(byte(length + 1), Some(b'+' | b'-')));
            let exponent = digits(length);
            right &= exponent > 0;
            length += exponent;
        }
        if right {
            return Ok(self.take(length));
        }
        Err(if length == bytes.len() { SyntaxProblem::Truncated } else { self.bad_number() })
    }

    fn bad_number(&self) -> SyntaxProblem {
        let is_part = |character: char| character.is_ascii_alphanumeric() || "+-._".contains(character);
        let found = self.rest().chars().take_while(|&character| is_part(character)).take(40).collect();
        SyntaxProblem::Number { found }
    }

    /// Reads the string that begins at the quote here, borrowed from the text if it has no escapes.
    fn string(&mut self) -> Read<Cow<'a, str>> {
        self.at += 1;
        let plain = self.plain_run()?;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(plain));
        }
        let mut string = plain.to_owned();
        while self.peek() == Some(b'\\') {
            string.push(self.escape()?);
            string.push_str(self.plain_run()?);
        }
        self.at += 1;
        Ok(Cow::Owned(string))
    }

    /// Reads the characters up to the next quote or backslash.
    fn plain_run(&mut self) -> Read<&'a str> {
        let rest = self.rest();
        let stop = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < 0x20);
        let Some(length) = stop else {
            self.at = self.text.len();
            return Err(SyntaxProblem::Truncated);
        };
        let run = self.take(length);
        match self.peek() {
            Some(code) if code < 0x20 => Err(SyntaxProblem::ControlCharacter { code }),
            _ => Ok(run),
        }
    }

    fn escape(&mut self) -> Read<char> {
        let code = self.rest().as_bytes().get(1).ok_or(SyntaxProblem::Truncated)?;
        let character = match code {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => {
                let found = self.rest().chars().take(2).collect();
                return Err(SyntaxProblem::Escape { found });
            }
        };
        self.at += 2;
        Ok(character)
    }

    fn unicode_escape(&mut self) -> Read<char> {
        let unit = self.code_unit()?;
        if let Some(character) = char::from_u32(u32::from(unit)) {
            self.at += 6;
            return Ok(character);
        }
        let high_at = self.at;
        self.at += 6;
        let low = if self.rest().starts_with("\\u") { self.code_unit().ok() } else { None };
        let decoded = low.and_then(|low| char::decode_utf16([unit, low]).next()?.ok());
        match decoded {
            Some(character) => {
                self.at += 6;
                Ok(character)
            }
            None => {
                self.at = high_at;
                Err(SyntaxProblem::LoneSurrogate { unit })
            }
        }
    }

    /// Returns the code unit of the `\uXXXX` here, without stepping over it.
    fn code_unit(&self) -> Read<u16> {
        let escape: String = self.rest().chars().take(6).collect();
        let digits = escape.get(2..).unwrap_or("");
        if digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return u16::from_str_radix(digits, 16).map_err(|_| SyntaxProblem::Escape { found: escape });
        }
        Err(if self.rest().len() < 6 { SyntaxProblem::Truncated } else { SyntaxProblem::Escape { found: escape } })
    }

    fn unexpected(&self, expected: &'static str) -> SyntaxProblem {
        let is_part = |character: &char| character.is_ascii_alphabetic();
        let word: String = self.rest().chars().take_while(is_part).take(20).collect();
        let first = || self.rest().chars().next().map(String::from);
        let found = if word.is_empty() { first().unwrap_or_default() } else { word };
        SyntaxProblem::Unexpected { found, expected }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, length: usize) -> &'a str {
        let taken = &self.rest()[..length];
        self.at += length;
        taken
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }
}

/// Returns whether `word`, which ends the text, is the beginning of a JSON word.
fn is_truncated_word(word: &str) -> bool {
    !word.is_empty() && ["null", "true", "false"].iter().any(|whole| whole.starts_with(word))
}
