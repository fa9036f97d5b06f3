//! Rewrites JSON as [`super::canonical`] does, in one pass over the bytes and without a tree.
//!
//! It takes documents as programs write them: valid, without escapes in strings and without
//! duplicate keys. For any other document it returns `None`, and the tree serves.
//!
//! Long lists of numbers, most of a large document, are rewritten one by one when all objects are
//! sorted, so that no other copy of the document is made.

use crate::json::{DEPTH_LIMIT, python_repr};
use std::ops::Range;

/// A list with more bytes between its brackets is rewritten last, if it has no strings, objects and
/// lists. Those of the tests are shorter.
const LONG: usize = if cfg!(test) { 32 } else { 256 };

/// Passes the canonical text of a document to `sink` part by part, or returns `None` if the
/// document is not of the usual kind. Parts may have been passed then.
pub(super) fn rewrite(text: &str, sink: &mut dyn FnMut(&[u8])) -> Option<()> {
    let mut rewriter = Rewriter { text: text.as_bytes(), leaves_out: true, ..Rewriter::default() };
    rewriter.value(0)?;
    rewriter.skip_blanks();
    if rewriter.at < rewriter.text.len() {
        return None;
    }
    rewriter.pass_to(sink)
}

#[derive(Default)]
struct Rewriter<'a> {
    text: &'a [u8],
    at: usize,
    out: Vec<u8>,
    /// Whether long lists of numbers are left out of `out`.
    leaves_out: bool,
    /// Those that were, in order.
    left_out: Vec<LeftOut>,
    /// The members of the objects that are open, outermost first.
    members: Vec<Member<'a>>,
    /// An object whose members are being sorted.
    sorted: Vec<u8>,
    digits: zmij::Buffer,
}

/// A member of an object: its key, where it is in `out`, and which lists were left out of it.
struct Member<'a> {
    key: &'a [u8],
    span: Range<usize>,
    left_out: Range<usize>,
}

/// A list that was left out.
#[derive(Clone)]
struct LeftOut {
    /// Where it belongs in `out`.
    at: usize,
    /// Where it is in the text, with its brackets.
    span: Range<usize>,
}

impl<'a> Rewriter<'a> {
    fn value(&mut self, depth: usize) -> Option<()> {
        self.skip_blanks();
        match self.peek()? {
            b'{' if depth < DEPTH_LIMIT => self.object(depth + 1),
            b'[' if depth < DEPTH_LIMIT => self.list(depth + 1),
            b'"' => self.string().map(|_| ()),
            b'0'..=b'9' => self.number(),
            b'-' if self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) => self.number(),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let (first_member, start) = (self.members.len(), self.out.len());
        self.at += 1;
        self.out.push(b'{');
        let mut is_sorted = true;
        while !self.ends(b'}', self.members.len() > first_member)? {
            let (start, first_left_out) = (self.out.len(), self.left_out.len());
            let key = self.string()?;
            self.skip_blanks();
            self.step_over(b':')?;
            self.out.extend_from_slice(b": ");
            self.value(depth)?;
            is_sorted &= self.members[first_member..].last().is_none_or(|last| last.key < key);
            let (span, left_out) = (start..self.out.len(), first_left_out..self.left_out.len());
            self.members.push(Member { key, span, left_out });
        }
        if !is_sorted {
            self.sort_members(first_member, start)?;
        }
        self.members.truncate(first_member);
        self.out.push(b'}');
        Some(())
    }

    /// Sorts the members of the object that begins at `start` of `out`.
    fn sort_members(&mut self, first_member: usize, start: usize) -> Option<()> {
        let members = &mut self.members[first_member..];
        // UTF-8 bytes sort as code points do.
        members.sort_unstable_by_key(|member| member.key);
        if members.windows(2).any(|pair| pair[0].key == pair[1].key) {
            return None;
        }
        self.sorted.clear();
        let first_left_out = members.iter().map(|member| member.left_out.start).min().unwrap_or(0);
        let mut left_out = Vec::with_capacity(self.left_out.len() - first_left_out);
        for (index, member) in members.iter().enumerate() {
            self.sorted.extend_from_slice(if index > 0 { b", " } else { b"{" });
            let moved_to = start + self.sorted.len();
            let of_member = self.left_out[member.left_out.clone()].iter();
            left_out
                .extend(of_member.map(|list| LeftOut { at: list.at - member.span.start + moved_to, ..list.clone() }));
            self.sorted.extend_from_slice(&self.out[member.span.clone()]);
        }
        self.left_out.truncate(first_left_out);
        self.left_out.append(&mut left_out);
        self.out.truncate(start);
        self.out.append(&mut self.sorted);
        Some(())
    }

    /// Passes the text to `sink`, with the lists that were left out.
    fn pass_to(self, sink: &mut dyn FnMut(&[u8])) -> Option<()> {
        let Self { text, out, left_out, .. } = self;
        let (mut passed, mut lists) = (0, Rewriter::default());
        for LeftOut { at, span } in left_out {
            sink(&out[passed..at]);
            passed = at;
            (lists.text, lists.at) = (&text[span], 0);
            lists.out.clear();
            lists.list(DEPTH_LIMIT)?;
            if lists.at < lists.text.len() {
                return None;
            }
            sink(&lists.out);
        }
        sink(&out[passed..]);
        Some(())
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        if self.leaves_out && self.leave_out() {
            return Some(());
        }
        self.at += 1;
        self.out.push(b'[');
        let mut follows = false;
        while !self.ends(b']', follows)? {
            self.value(depth)?;
            follows = true;
        }
        self.out.push(b']');
        Some(())
    }

    /// Steps over the list that begins here if it is to be left out, and returns whether it is.
    fn leave_out(&mut self) -> bool {
        let rest = &self.text[self.at + 1..];
        let end = memchr::memchr3(b']', b'[', b'"', rest).filter(|&end| end > LONG && rest[end] == b']');
        let Some(end) = end.filter(|&end| memchr::memchr(b'{', &rest[..end]).is_none()) else { return false };
        let span = self.at..self.at + end + 2;
        self.at = span.end;
        self.left_out.push(LeftOut { at: self.out.len(), span });
        true
    }

    /// Steps over a closing bracket, or over the comma after a former entry, and returns whether it
    /// was the bracket.
    fn ends(&mut self, close: u8, follows: bool) -> Option<bool> {
        self.skip_blanks();
        if self.peek()? == close {
            self.at += 1;
            return Some(true);
        }
        if follows {
            self.step_over(b',')?;
            self.out.extend_from_slice(b", ");
            self.skip_blanks();
        }
        Some(false)
    }

    /// Copies a string without escapes, with its quotes, and returns what is between them.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.step_over(b'"')?;
        let rest = &self.text[self.at..];
        let string = &rest[..memchr::memchr2(b'"', b'\\', rest)?];
        if rest[string.len()] == b'\\' || string.iter().any(|&byte| byte < b' ') {
            return None;
        }
        self.out.push(b'"');
        self.out.extend_from_slice(string);
        self.out.push(b'"');
        self.at += string.len() + 1;
        Some(string)
    }

    fn number(&mut self) -> Option<()> {
        let spelling = &self.text[self.at..self.at + number_length(&self.text[self.at..])?];
        self.at += spelling.len();
        if !spelling.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            self.out.extend_from_slice(if spelling == b"-0" { b"0" } else { spelling });
        } else if is_surely_shortest(spelling) {
            self.out.extend_from_slice(spelling);
        } else {
            let number = std::str::from_utf8(spelling).ok()?.parse().ok()?;
            self.out.extend_from_slice(python_repr(number, &mut self.digits).as_bytes());
        }
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        let words = ["null", "true", "false", "NaN", "Infinity", "-Infinity"];
        let word = words.into_iter().find(|word| self.text[self.at..].starts_with(word.as_bytes()))?;
        self.at += word.len();
        self.out.extend_from_slice(word.as_bytes());
        Some(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn step_over(&mut self, byte: u8) -> Option<()> {
        let is_there = self.peek()? == byte;
        self.at += 1;
        is_there.then_some(())
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            // Most of an indented document is indentation.
            let indentation = self.text[self.at..].chunks_exact(8).take_while(|&chunk| chunk == b"        ").count();
            self.at += (8 * indentation).max(1);
        }
    }
}

/// Returns the length of the number at the beginning of `bytes`, or `None` if it is not JSON.
fn number_length(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut length = usize::from(bytes[0] == b'-');
    let whole = digits(length);
    if whole == 0 || (whole > 1 && bytes[length] == b'0') {
        return None;
    }
    length += whole;
    if bytes.get(length) == Some(&b'.') {
        let fraction = digits(length + 1);
        length += 1 + fraction;
        (fraction > 0).then_some(())?;
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        length += 1 + usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits(length);
        length += exponent;
        (exponent > 0).then_some(())?;
    }
    Some(length)
}

/// Returns whether a number with a point or an exponent is certainly spelt as Python's `repr`
/// spells it.
///
/// A number of at most 15 significant digits is the only one of that length that is nearest to its
/// double, so without trailing zeros it is the shortest one. Python writes it without an exponent
/// from 1e-4 to 1e16.
fn is_surely_shortest(spelling: &[u8]) -> bool {
    let unsigned = spelling.strip_prefix(b"-").unwrap_or(spelling);
    let Some(point) = memchr::memchr(b'.', unsigned) else { return false };
    let (whole, fraction) = (&unsigned[..point], &unsigned[point + 1..]);
    let zeros = fraction.iter().take_while(|&&digit| digit == b'0').count();
    fraction.iter().all(u8::is_ascii_digit)
        && unsigned.len() <= 16
        && (fraction == b"0" || fraction.last() != Some(&b'0'))
        && (whole != b"0" || zeros < 4)
}
