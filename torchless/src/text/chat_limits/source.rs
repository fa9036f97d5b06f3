//! What is checked before a template is compiled: the compiler recurses into expressions and
//! computes constants.

use minijinja::Error;
use minijinja::machinery::{Token, tokenize};

use super::{LONGEST_TEMPLATE, refused, whitespace};

/// The most tokens of one tag. The compiler's recursion is at most as deep.
const LONGEST_TAG: usize = 2000;
/// The most branches (`elif`): the parser recurses into each.
const MOST_BRANCHES: usize = 200;
/// The most bytes of constants that the compiler makes by multiplying text.
const LARGEST_CONSTANTS: f64 = 1e6;

/// What one tag has.
struct Tag {
    n_tokens: usize,
    n_products: usize,
    /// Bytes of literal text.
    text: usize,
    /// The product of all literal numbers, which no constant of them exceeds unless it has a power.
    factor: f64,
}

impl Tag {
    const EMPTY: Tag = Tag { n_tokens: 0, n_products: 0, text: 0, factor: 1.0 };

    fn add(&mut self, token: &Token<'_>) {
        self.n_tokens += 1;
        match token {
            Token::Mul => self.n_products += 1,
            Token::Pow => self.factor = f64::INFINITY,
            Token::Str(text) => self.text += text.len(),
            Token::String(text) => self.text += text.len(),
            Token::Int(number) => self.factor *= (*number as f64).max(2.0),
            Token::Int128(number) => self.factor *= **number as f64,
            Token::Float(number) => self.factor *= number.max(2.0),
            _ => {}
        }
    }

    /// Returns a bound of the constants that are products of text.
    fn constants(&self) -> f64 {
        if self.n_products == 0 || self.text == 0 { 0.0 } else { self.factor * self.text as f64 }
    }
}

/// Refuses templates that are too long or too complex to compile. Errors of syntax are left to the
/// parser.
pub(super) fn check(template: &str) -> Result<(), Error> {
    if template.len() > LONGEST_TEMPLATE {
        let limit = LONGEST_TEMPLATE >> 10;
        return Err(refused(format!("the template has {} bytes, and at most {limit} KiB are read", template.len())));
    }
    let (mut tag, mut n_branches, mut constants) = (Tag::EMPTY, 0, 0.0);
    for token in tokenize(template, false, Default::default(), whitespace()) {
        let Ok((token, _)) = token else { return Ok(()) };
        match token {
            Token::VariableStart | Token::BlockStart => tag = Tag::EMPTY,
            Token::VariableEnd | Token::BlockEnd => constants += tag.constants(),
            Token::Ident("elif") if tag.n_tokens == 0 => n_branches += 1,
            token => tag.add(&token),
        }
        if tag.n_tokens > LONGEST_TAG {
            return Err(refused(format!("one tag has more than {LONGEST_TAG} words")));
        }
        if n_branches > MOST_BRANCHES {
            return Err(refused(format!("the template has more than {MOST_BRANCHES} branches (`elif`)")));
        }
    }
    if constants > LARGEST_CONSTANTS {
        return Err(refused("the template multiplies constant text by large numbers"));
    }
    Ok(())
}
