//! The errors of formulas: what is wrong, and at which column of the text.

/// The longest part of a text that a message shows, in characters.
const SHOWN: usize = 80;

/// Why a text is not a formula.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at column {column} of `{}`", excerpt(.text))]
pub struct FormulaError {
    /// What is wrong.
    pub problem: FormulaProblem,
    /// Where, in characters from 1.
    pub column: usize,
    /// The text.
    pub text: String,
}

/// What is wrong with a formula.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormulaProblem {
    /// Something else had to come.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What had to come.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A character that no formula has.
    #[error("unexpected character `{0}`")]
    Character(char),
    /// A number that cannot be read or is too large.
    #[error("`{0}` is not a number")]
    Number(String),
    /// A backtick without its counterpart.
    #[error("a name in backticks does not end")]
    OpenName,
    /// A function that does not exist.
    #[error("unknown function `{0}`")]
    UnknownFunction(String),
    /// A function with the wrong number of operands.
    #[error("`{name}` takes {expected} operand{}, found {found}", if expected == "1" { "" } else { "s" })]
    Operands {
        /// The function.
        name: String,
        /// How many it takes.
        expected: String,
        /// How many there are.
        found: usize,
    },
    /// A position beyond the list of arguments.
    #[error("argument {position} does not exist: the list has {count}")]
    NoArgument {
        /// The position, from 0.
        position: usize,
        /// The length of the list.
        count: usize,
    },
    /// A quotient that is an integer in C and ROOT, and another number elsewhere.
    #[error("{0} is a quotient of integers, which ROOT rounds towards zero")]
    IntegerQuotient(String),
    /// Too many levels of parentheses, signs or powers.
    #[error("the formula is nested more than {0} levels deep")]
    TooDeep(usize),
    /// Too many operations.
    #[error("the formula has more than {0} operations")]
    TooLong(usize),
}

impl FormulaError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match &self.problem {
            FormulaProblem::UnknownFunction(name) => super::function::similar(name),
            FormulaProblem::NoArgument { count: 0, .. } => {
                Some("list the parameters that `@0`, `@1`, … stand for in `parameters`".to_owned())
            }
            FormulaProblem::IntegerQuotient(_) => {
                Some("write one of the numbers with a point, such as `1.0/2`, for real division".to_owned())
            }
            FormulaProblem::Character(_) => {
                Some("names with other characters than letters, digits, `_` and `.` stand in backticks".to_owned())
            }
            _ => None,
        }
    }
}

/// Returns the column of byte `offset` of `text`, counted in characters from 1.
pub(super) fn column(text: &str, offset: usize) -> usize {
    text.char_indices().take_while(|(start, _)| *start < offset).count() + 1
}

fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
