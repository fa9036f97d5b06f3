//! Does what `nextstat`, `torchless` and the Python package have in common at a terminal: escapes
//! text from untrusted sources, detects a closed standard output, and warns of an unknown
//! instruction set.
//!
//! Names in documents and model files are arbitrary text. If they are printed as they are, control
//! characters command the terminal, bidirectional controls reorder the numbers beside a name, and
//! invisible characters make different names look the same.
//!
//! | function | what it does |
//! |---|---|
//! | [`escape`], [`escape_lines`], [`escape_arguments`] | text, lines and arguments that are safe to print |
//! | [`is_visible`] | whether a character is printed as it is |
//! | [`look_at_stdout`], [`is_stdout_closed`] | whether a reader such as `head` still reads |
//! | [`unknown_instruction_set`] | a warning of a `NEXTSTAT_ISA` that names no instruction set |
//!
//! ```
//! // A name that would print backwards is shown with its control character.
//! assert_eq!(ns_terminal::escape("mu\u{202e}"), r"mu\u{202e}");
//! assert_eq!(ns_terminal::escape_lines("one\ntwo\u{7}"), "one\ntwo\\u{7}");
//! ```

mod isa;
mod stdout;

use std::borrow::Cow;
use std::ffi::OsString;

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

pub use isa::unknown_instruction_set;
pub use stdout::{is_stdout_closed, look_at_stdout};

/// Returns `text` with every character that is not [`is_visible`] escaped as in Rust: `\n`,
/// `\u{202e}`.
///
/// ```
/// assert_eq!(ns_terminal::escape("µ\u{1b}[31m\u{202e}"), "µ\\u{1b}[31m\\u{202e}");
/// ```
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_but(text, |_| false)
}

/// Returns `text` escaped like [`escape`], but with its line feeds and tabs.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_but(text, |character| matches!(character, '\n' | '\t'))
}

/// Returns command-line arguments for a parser whose errors quote them: those that are text are
/// [`escape`]d.
pub fn escape_arguments(arguments: &[OsString]) -> Vec<OsString> {
    let one = |argument: &OsString| {
        argument.to_str().map_or_else(|| argument.clone(), |text| escape(text).into_owned().into())
    };
    arguments.iter().map(one).collect()
}

fn escape_but(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_fine = |character: char| is_visible(character) || is_kept(character);
    if text.chars().all(is_fine) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_fine(character) {
            escaped.push(character);
        } else {
            escaped.extend(character.escape_default());
        }
    }
    Cow::Owned(escaped)
}

/// Returns `false` for controls (Cc), format characters (Cf, which include bidirectional controls),
/// line and paragraph separators (Zl, Zp), and every other character that Unicode declares
/// ignorable.
pub fn is_visible(character: char) -> bool {
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator};
    // Most text is printable ASCII.
    matches!(character, ' '..='~')
        || !(is_ignorable(character)
            || matches!(character.general_category(), Control | Format | LineSeparator | ParagraphSeparator))
}

/// Returns whether `character` has `Default_Ignorable_Code_Point` and is not Cf: fillers, variation
/// selectors, and unassigned ones such as most tags (`DerivedCoreProperties.txt` of the Unicode
/// Character Database).
fn is_ignorable(character: char) -> bool {
    matches!(
        character,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2065}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_invisible_characters_are_escaped() {
        let hidden = [
            '\0',
            '\n',
            '\r',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{180e}',
            '\u{200b}',
            '\u{200d}',
            '\u{200f}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2065}',
            '\u{2066}',
            '\u{2069}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{1d173}',
            '\u{e0000}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e007f}',
            '\u{e0100}',
            '\u{e0fff}',
        ];
        for character in hidden {
            assert!(!is_visible(character), "{character:?}");
            assert_eq!(escape(&format!("a{character}b")), format!("a{}b", character.escape_default()));
        }
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        let text = "µ ± 0.5 \\ \"q\" é e\u{301} 信号 сигнал إشارة 👍 \u{a0}";
        assert!(matches!(escape(text), Cow::Borrowed(same) if same == text));
        assert_eq!(escape_lines("a\n\tb\r"), "a\n\tb\\r");
    }
}
