//! Text to [`Node`] tree, strictly as RFC 8259 has it, but for Python's `NaN` and `Infinity`, which become nodes.

use std::borrow::Cow;

use super::syntax::SEPARATOR;
use super::{DEPTH_LIMIT, Member, Node, SyntaxProblem, Tree};
use crate::DocumentError;
use crate::place::{DocumentPlace, TextPosition, push_index, push_key};

/// Reads a whole document.
pub(crate) fn parse(text: &str) -> Result<Node<'_>, DocumentError> {
    parse_to_depth(text, DEPTH_LIMIT)
}

/// Reads a whole document but stores only the outermost `depth` levels of lists and objects.
pub(crate) fn parse_to_depth(text: &str, depth: usize) -> Result<Node<'_>, DocumentError> {
    let mut reader = Reader::new(text, depth);
    reader.document().map_err(|problem| reader.error(problem, ""))
}

/// Reads the one value that begins at byte `start` of `text` and stands at `pointer`; what follows it is not looked at.
pub(crate) fn parse_part<'a>(text: &'a str, start: usize, pointer: &str) -> Result<Node<'a>, DocumentError> {
    let mut reader = Reader::new(text, DEPTH_LIMIT);
    reader.at = start;
    reader.value().map_err(|problem| reader.error(problem, pointer))
}

enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    keep_depth: usize,
    /// The way from the top to the value being read; its length is the depth.
    path: Vec<Step<'a>>,
}

type Read<T> = Result<T, SyntaxProblem>;

impl<'a> Reader<'a> {
    fn new(text: &'a str, keep_depth: usize) -> Self {
        Self { text, at: 0, keep_depth, path: Vec::new() }
    }

    fn error(&self, problem: SyntaxProblem, prefix: &str) -> DocumentError {
        let mut pointer = prefix.to_owned();
        // A runaway nesting has no useful pointer: its beginning says enough.
        for step in self.path.iter().take(16) {
            match step {
                Step::Key(key) => push_key(&mut pointer, key),
                Step::Index(index) => push_index(&mut pointer, *index),
            }
        }
        let position = Some(TextPosition::of(self.text, self.at));
        DocumentError::Syntax { problem, place: DocumentPlace { pointer, position } }
    }

    fn document(&mut self) -> Read<Node<'a>> {
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

    fn value(&mut self) -> Read<Node<'a>> {
        self.skip_blanks();
        let start = self.at;
        let tree = match self.peek().ok_or(SyntaxProblem::Truncated)? {
            b'{' => self.object()?,
            b'[' => self.list()?,
            b'"' => Tree::Text(self.string()?),
            b'-' if self.rest().starts_with("-Infinity") => Tree::NonFinite(self.take("-Infinity".len())),
            b'-' | b'0'..=b'9' => Tree::Number(self.number()?),
            b'+' | b'.' => return Err(self.bad_number()),
            _ => self.word()?,
        };
        Ok(Node { start, tree })
    }

    fn word(&mut self) -> Read<Tree<'a>> {
        let rest = self.rest();
        let length = rest.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let word = &rest[..length];
        let tree = match word {
            "null" => Tree::Null,
            "true" => Tree::Bool(true),
            "false" => Tree::Bool(false),
            "NaN" | "Infinity" => Tree::NonFinite(word),
            _ if length == rest.len() && is_cut_word(word) => return Err(SyntaxProblem::Truncated),
            _ => return Err(self.unexpected("a value")),
        };
        self.at += length;
        Ok(tree)
    }

    /// Steps over an opening bracket; true when what it opens is to be stored.
    fn open(&mut self) -> Read<bool> {
        if self.path.len() >= DEPTH_LIMIT {
            return Err(SyntaxProblem::TooDeep { limit: DEPTH_LIMIT });
        }
        self.at += 1;
        Ok(self.path.len() < self.keep_depth)
    }

    fn list(&mut self) -> Read<Tree<'a>> {
        let keep = self.open()?;
        let mut items = Vec::new();
        if self.closes(b']') {
            return Ok(if keep { Tree::List(items) } else { Tree::Skipped });
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
        Ok(if keep { Tree::List(items) } else { Tree::Skipped })
    }

    fn object(&mut self) -> Read<Tree<'a>> {
        let keep = self.open()?;
        let mut members = Vec::new();
        if self.closes(b'}') {
            return Ok(if keep { Tree::Object(members) } else { Tree::Skipped });
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
        Ok(if keep { Tree::Object(members) } else { Tree::Skipped })
    }

    fn member(&mut self) -> Read<Member<'a>> {
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
        let value = self.value()?;
        self.path.pop();
        Ok(Member { start, key, value })
    }

    /// Whether the bracket just opened closes at once.
    fn closes(&mut self, close: u8) -> bool {
        self.skip_blanks();
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        closes
    }

    /// Steps over what follows an entry: true for the closing bracket, false for a comma.
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

    /// The string that begins at the quote here, borrowed from the text where it has no escapes.
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

    /// The characters up to the next quote or backslash.
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

    /// The code unit of the `\uXXXX` here, without stepping over it.
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

/// Whether `word`, the last thing in the text, is the beginning of a word that JSON knows.
fn is_cut_word(word: &str) -> bool {
    !word.is_empty() && ["null", "true", "false"].iter().any(|whole| whole.starts_with(word))
}
