//! What the engine would compute otherwise than Python, in other words: tuples, which it takes for
//! lists, and constants that it joins to texts before a template runs.
//!
//! `(a, b)` becomes `TUPLE(a, b)`, `()` becomes `TUPLE()` and `{% set x = a, b %}` becomes
//! `{% set x = TUPLE(a, b) %}`, `TUPLE` being a function that makes tuples. What is assigned to,
//! arguments and groups are no tuples. `[a] ~ b` becomes `[a] ~ NOTHING ~ b`, `NOTHING` being a
//! variable that no template has, so that it is no constant. Only insertions are made, so that
//! lines stay what they are.

use std::borrow::Cow;

use minijinja::machinery::{Token, tokenize};

use super::whitespace;

/// The function that makes tuples.
pub(super) const TUPLE: &str = "__tuple__";
/// The same behind the `=` of `set`.
const TUPLE_OF: &str = " __tuple__(";
/// A variable that is not defined, and so no text, between two operators.
const NOTHING: &str = " __nothing__ ~";

/// An insertion into a template.
struct Insertion {
    at: usize,
    text: &'static str,
}

/// Parentheses, brackets or braces that are open, or the right side of `set`.
struct Open {
    kind: Kind,
    /// Where a tuple would begin.
    start: usize,
    has_comma: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Parentheses round an expression or a tuple.
    Group,
    /// Arguments, lists, dictionaries.
    Other,
    /// What is behind the `=` of `set`.
    Assigned,
}

/// What is between the beginning of a block and its expression.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    /// Up to `in`.
    OfFor,
    /// Up to `=`.
    OfSet,
    None,
}

/// Returns `template` in words that the engine computes as Python does. Errors of syntax are left
/// to the parser.
pub(super) fn in_words_of_the_engine(template: &str) -> Cow<'_, str> {
    let mut reader = Reader {
        insertions: Vec::new(),
        open: Vec::new(),
        target: Target::None,
        before: Before::Nothing,
        tilde: None,
        is_constant: false,
    };
    for token in tokenize(template, false, Default::default(), whitespace()) {
        let Ok((token, span)) = token else { return Cow::Borrowed(template) };
        reader.take(&token, span.start_offset as usize, span.end_offset as usize);
    }
    let mut insertions = reader.insertions;
    if insertions.is_empty() {
        return Cow::Borrowed(template);
    }
    insertions.sort_by_key(|insertion| insertion.at);
    let (mut out, mut done) = (String::with_capacity(template.len() + 16 * insertions.len()), 0);
    for Insertion { at, text } in insertions {
        let Some(part) = template.get(done..at) else { return Cow::Borrowed(template) };
        out.push_str(part);
        out.push_str(text);
        done = at;
    }
    out.push_str(&template[done..]);
    Cow::Owned(out)
}

/// What a parenthesis follows.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// The beginning of a block.
    Block,
    /// A value, of which it is a call.
    Value,
    /// An operator, or a word that is one.
    Nothing,
}

struct Reader {
    insertions: Vec<Insertion>,
    open: Vec<Open>,
    target: Target,
    before: Before,
    /// Where the `~` before this token ends, if there is one.
    tilde: Option<usize>,
    /// Whether the token before may end a constant that is no text.
    is_constant: bool,
}

/// Returns whether a token may begin or end a constant that is no text.
fn is_constant(token: &Token<'_>) -> bool {
    use Token as T;
    match token {
        T::Int(_) | T::Int128(_) | T::Float(_) | T::Minus => true,
        T::BracketOpen | T::BraceOpen | T::ParenOpen | T::BracketClose | T::BraceClose | T::ParenClose => true,
        T::Ident(word) => ["true", "false", "none"].iter().any(|constant| word.eq_ignore_ascii_case(constant)),
        _ => false,
    }
}

impl Reader {
    fn take(&mut self, token: &Token<'_>, start: usize, end: usize) {
        let was_constant = std::mem::replace(&mut self.is_constant, is_constant(token));
        if let Some(at) = self.tilde.take().filter(|_| self.is_constant) {
            self.insertions.push(Insertion { at, text: NOTHING });
        }
        if matches!(token, Token::Tilde) {
            match was_constant {
                true => self.insertions.push(Insertion { at: end, text: NOTHING }),
                false => self.tilde = Some(end),
            }
        }
        let is_first = self.before == Before::Block;
        let before = std::mem::replace(&mut self.before, Before::Nothing);
        match token {
            Token::BlockStart => {
                self.open.clear();
                self.target = Target::None;
                self.before = Before::Block;
            }
            Token::VariableStart => self.open.clear(),
            Token::BlockEnd | Token::VariableEnd => self.end_of_tag(start),
            Token::ParenOpen => {
                let is_group = before != Before::Value && self.target == Target::None;
                let kind = if is_group { Kind::Group } else { Kind::Other };
                self.open.push(Open { kind, start, has_comma: false });
            }
            Token::BracketOpen | Token::BraceOpen => {
                self.open.push(Open { kind: Kind::Other, start, has_comma: false });
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                self.before = Before::Value;
                self.close(start);
            }
            Token::Comma => self.open.iter_mut().last().into_iter().for_each(|open| open.has_comma = true),
            Token::Assign if self.target == Target::OfSet && self.open.is_empty() => {
                self.target = Target::None;
                self.open.push(Open { kind: Kind::Assigned, start: end, has_comma: false });
            }
            Token::Ident(word) => self.word(word, is_first),
            Token::Str(_) | Token::String(_) | Token::Int(_) | Token::Int128(_) | Token::Float(_) => {
                self.before = Before::Value;
            }
            _ => {}
        }
    }

    fn word(&mut self, word: &str, is_first: bool) {
        match word {
            "for" if is_first => self.target = Target::OfFor,
            "set" if is_first => self.target = Target::OfSet,
            "in" if self.target == Target::OfFor && self.open.is_empty() => self.target = Target::None,
            "in" | "not" | "and" | "or" | "if" | "else" | "is" => {}
            "elif" | "do" | "print" | "with" if is_first => {}
            // `call(arguments)` and `macro name(arguments)` declare.
            _ => self.before = Before::Value,
        }
    }

    /// Ends what a bracket at `start` closes.
    fn close(&mut self, start: usize) {
        let Some(open) = self.open.pop_if(|open| open.kind != Kind::Assigned) else { return };
        // The parser knows `()` as an empty tuple; so does the function.
        let is_empty = open.kind == Kind::Group && start == open.start + 1;
        if open.kind == Kind::Group && (open.has_comma || is_empty) {
            self.insertions.push(Insertion { at: open.start, text: TUPLE });
        }
    }

    /// Ends the right side of `set` at the end of its tag.
    fn end_of_tag(&mut self, at: usize) {
        if let Some(Open { kind: Kind::Assigned, start, has_comma: true }) = self.open.pop() {
            self.insertions.push(Insertion { at: start, text: TUPLE_OF });
            self.insertions.push(Insertion { at, text: ")" });
        }
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_are_calls_and_groups_are_not() {
        let cases = [
            ("{{ '%s' % (a, b) }}", "{{ '%s' % __tuple__(a, b) }}"),
            ("{{ (a) }} {{ (1 + 2) * 3 }} {{ () }}", "{{ (a) }} {{ (1 + 2) * 3 }} {{ __tuple__() }}"),
            (
                "{{ f(a, b) }} {{ x.f(a, (b,)) }} {{ x[0](a, b) }}",
                "{{ f(a, b) }} {{ x.f(a, __tuple__(b,)) }} {{ x[0](a, b) }}",
            ),
            ("{% for (a, b) in ((1, 2), x) %}", "{% for (a, b) in __tuple__(__tuple__(1, 2), x) %}"),
            ("{% for a, (b, c) in x if d in (1, 2) %}", "{% for a, (b, c) in x if d in __tuple__(1, 2) %}"),
            ("{% set (a, b) = (b, a) %}", "{% set (a, b) = __tuple__(b, a) %}"),
            ("{%- set a, b = b, a -%}", "{%- set a, b = __tuple__( b, a )-%}"),
            ("{% set a = [1, 2] %}{% set a = f(1, b=2) %}", "{% set a = [1, 2] %}{% set a = f(1, b=2) %}"),
            (
                "{% macro m(a, b) %}{% endmacro %}{% call(u, v) m(1, 2) %}",
                "{% macro m(a, b) %}{% endmacro %}{% call(u, v) m(1, 2) %}",
            ),
            (
                "{% if x in (1, 2) and not (a, b) %}{% elif (a, b) %}",
                "{% if x in __tuple__(1, 2) and not __tuple__(a, b) %}{% elif __tuple__(a, b) %}",
            ),
            ("{{ [(1, 2)] }}(a, b){# (1, 2) #}", "{{ [__tuple__(1, 2)] }}(a, b){# (1, 2) #}"),
            (
                "{{ x is divisibleby(3) }}{{ '(1, 2)' }}{{ x|f((1, 2), 3) }}",
                "{{ x is divisibleby(3) }}{{ '(1, 2)' }}{{ x|f(__tuple__(1, 2), 3) }}",
            ),
            (
                "{% raw %}{{ (1, 2) }}{% endraw %}é{{ (1, 'é') }}",
                "{% raw %}{{ (1, 2) }}{% endraw %}é{{ __tuple__(1, 'é') }}",
            ),
            (
                "{{ a ~ 'b' ~ c.d }}{{ 'a' ~ [1] ~ true }}",
                "{{ a ~ 'b' ~ c.d }}{{ 'a' ~ __nothing__ ~ [1] ~ __nothing__ ~ true }}",
            ),
            ("{{ (1, 2", "{{ (1, 2"),
        ];
        for (template, expected) in cases {
            assert_eq!(in_words_of_the_engine(template), expected);
        }
    }
}
