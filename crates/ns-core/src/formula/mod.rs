//! Formulas of named parameters: text to a tree, and the tree to a [`Tape`] that gives the value
//! with exact first and second derivatives.
//!
//! The syntax is that of C, as in ROOT's TFormula and RooFormulaVar: `+ - * /`, `^` or `**` for
//! powers (from right to left, and before a sign: `-2^2` is -4), comparisons, `&& || !`, `? :`, and
//! the functions of [`function`], also as `TMath::Exp` or `std::exp`. `@0` and `x[0]` are the first
//! entry of a list of arguments. Names that contain other characters than letters, digits, `_` and
//! `.` stand in backticks. Division is that of real numbers; the quotient of two integers that ROOT
//! would round is refused.
//!
//! A formula outside its domain, such as the logarithm of a negative number, is NaN, and -ln L is
//! then +∞.

mod derivative;
mod error;
pub mod function;
mod lexer;
mod parser;
mod tape;

pub use error::{FormulaError, FormulaProblem};
pub use tape::{Argument, Expansion, Tape, TapeError, TapeScratch};

use function::{BinaryFunction, UnaryFunction};
use std::ops::Range;

/// The largest number of operations in a formula, including those of formulas that it names.
pub const MOST_NODES: usize = 20_000;

/// One operation; operands are indices of earlier ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Node {
    /// A constant.
    Number(f64),
    /// The name with this index.
    Name(u32),
    /// A function of one operand.
    Unary(UnaryFunction, u32),
    /// A function of two operands.
    Binary(BinaryFunction, u32, u32),
    /// The second operand where the first one is not zero, and the third elsewhere.
    Select(u32, u32, u32),
}

/// The place of a name in the text of a formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameUse {
    /// Index into [`Formula::names`].
    pub name: usize,
    /// Its bytes in the text, backticks included.
    pub span: Range<usize>,
    /// Whether the text has the position of an argument in place of the name.
    pub is_position: bool,
}

/// A formula that was parsed: operations in an order in which each can be computed from earlier
/// ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    text: String,
    names: Vec<String>,
    uses: Vec<NameUse>,
    nodes: Vec<Node>,
}

impl Formula {
    /// Parses `text`; `arguments` are what `@0`, `@1`, … or `x[0]`, `x[1]`, … stand for.
    ///
    /// # Errors
    /// [`FormulaError`] says what is wrong and at which column.
    ///
    /// ```
    /// use ns_core::formula::Formula;
    ///
    /// let formula = Formula::parse("mu * (1 + 0.2*kappa^2)", &[])?;
    /// assert_eq!(formula.names(), ["mu", "kappa"]);
    /// let error = Formula::parse("mu * exq(kappa)", &[]).unwrap_err();
    /// assert_eq!(error.to_string(), "unknown function `exq` at column 6 of `mu * exq(kappa)`");
    /// assert_eq!(error.hint().as_deref(), Some("did you mean `exp`?"));
    /// # Ok::<(), ns_core::formula::FormulaError>(())
    /// ```
    pub fn parse(text: &str, arguments: &[String]) -> Result<Self, FormulaError> {
        parser::parse(text, arguments)
    }

    /// Returns the text that was parsed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names in the formula, each once, by first appearance.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the column of the first use of name `name`, counted from 1.
    #[must_use]
    pub fn column_of(&self, name: usize) -> usize {
        let start = self.uses.iter().find(|used| used.name == name).map_or(0, |used| used.span.start);
        error::column(&self.text, start)
    }

    /// Returns the text with the names of the list of arguments in place of their positions.
    ///
    /// ```
    /// use ns_core::formula::Formula;
    ///
    /// let formula = Formula::parse("@0*x[1]^2", &["mu".into(), "b-tag".into()])?;
    /// assert_eq!(formula.named_text(), "mu*`b-tag`^2");
    /// # Ok::<(), ns_core::formula::FormulaError>(())
    /// ```
    #[must_use]
    pub fn named_text(&self) -> String {
        self.replaced(|used| used.is_position.then(|| quoted(&self.names[used.name])))
    }

    /// Returns the text with every name replaced by what `new_name` returns, in backticks where the
    /// syntax needs them. Positions of arguments stay.
    ///
    /// ```
    /// use ns_core::formula::Formula;
    ///
    /// let formula = Formula::parse("a*exp(b)", &[])?;
    /// let renamed = formula.renamed(|name| if name == "b" { "b-tag".into() } else { name.into() });
    /// assert_eq!(renamed, "a*exp(`b-tag`)");
    /// # Ok::<(), ns_core::formula::FormulaError>(())
    /// ```
    pub fn renamed(&self, new_name: impl Fn(&str) -> String) -> String {
        self.replaced(|used| {
            let old = &self.names[used.name];
            let new = Some(new_name(old)).filter(|new| !used.is_position && new != old);
            new.map(|new| quoted(&new))
        })
    }

    /// Returns the text with uses of names replaced by what `new_text` returns for them, if
    /// anything.
    fn replaced(&self, new_text: impl Fn(&NameUse) -> Option<String>) -> String {
        let (mut text, mut end) = (String::with_capacity(self.text.len()), 0);
        for used in &self.uses {
            let Some(new) = new_text(used) else { continue };
            text.push_str(&self.text[end..used.span.start]);
            text.push_str(&new);
            end = used.span.end;
        }
        text.push_str(&self.text[end..]);
        text
    }
}

/// Returns `name` as a formula spells it: in backticks unless it is a plain name.
#[must_use]
pub fn quoted(name: &str) -> String {
    if lexer::is_plain_name(name) { name.to_owned() } else { format!("`{name}`") }
}
