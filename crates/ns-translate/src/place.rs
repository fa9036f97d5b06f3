//! Describes places in documents: a JSON pointer, and a line and a column where there is a text.
//!
//! Pointers follow RFC 6901: `/channels/0/samples/1/data/3`, with `~` and `/` in keys escaped.

use std::fmt;

/// A place in a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DocumentPlace {
    /// The JSON pointer; empty for the whole document.
    pub pointer: String,
    /// Line and column; `None` for a document that a patch has changed.
    pub position: Option<TextPosition>,
}

impl DocumentPlace {
    /// Returns whether this is the first character of the document.
    pub(crate) fn is_start(&self) -> bool {
        self.position.is_some_and(|position| (position.line, position.column) == (1, 1))
    }
}

/// A place in a text, counted as editors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPosition {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
}

impl TextPosition {
    /// Returns the position of the byte `offset` of `text`; an offset past the end is the end.
    pub(crate) fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: 1 + before.bytes().filter(|&byte| byte == b'\n').count(),
            column: 1 + before[line_start..].chars().count(),
        }
    }
}

/// Appends `key` to `pointer` as one more step.
pub(crate) fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for character in key.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// Appends a list index to `pointer` as one more step.
pub(crate) fn push_index(pointer: &mut String, index: usize) {
    pointer.push('/');
    pointer.push_str(&index.to_string());
}

impl fmt::Display for DocumentPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pointer.as_str(), self.position) {
            ("", None) => f.write_str("at the top level"),
            ("", Some(position)) => write!(f, "at {position}"),
            (pointer, None) => write!(f, "at `{pointer}`"),
            (pointer, Some(position)) => write!(f, "at `{pointer}` ({position})"),
        }
    }
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_and_survive_offsets_past_the_end() {
        let text = "{\n \"é\": x";
        assert_eq!(TextPosition::of(text, 0), TextPosition { line: 1, column: 1 });
        assert_eq!(TextPosition::of(text, text.find('x').unwrap_or(0)), TextPosition { line: 2, column: 7 });
        assert_eq!(TextPosition::of(text, 99), TextPosition { line: 2, column: 8 });
    }

    #[test]
    fn pointers_escape_tilde_and_slash() {
        let mut pointer = String::new();
        push_key(&mut pointer, "a/b~c");
        push_index(&mut pointer, 3);
        assert_eq!(pointer, "/a~1b~0c/3");
    }
}
