//! A forward pass as both processors see it: its tokens, the sequences that they belong to, and who
//! receives the residual stream.

use std::ops::Range;

use crate::error::Error;

/// Tokens that are computed at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pass<'a> {
    pub(crate) tokens: &'a [u32],
    /// The sequences that the tokens belong to, in order. With a cache there is one.
    pub(crate) spans: &'a [Span],
}

/// Consecutive tokens of one sequence within a pass.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    /// The tokens of the pass that belong to it.
    pub(crate) tokens: Range<usize>,
    /// The position of its first token.
    pub(crate) position: usize,
    /// The row of keys and values that has position 0.
    pub(crate) kv_row: usize,
}

/// Receives the residual stream after the embedding (0) and after each layer (1 …): (T, hidden).
pub type Observer<'a> = &'a mut dyn FnMut(usize, &[f32]);

/// Refuses tokens that the embedding has no row for.
pub(crate) fn check_tokens(vocabulary: usize, tokens: &[u32]) -> Result<(), Error> {
    match tokens.iter().position(|&token| token as usize >= vocabulary) {
        None => Ok(()),
        Some(position) => Err(Error::TokenOutOfRange { position, id: u64::from(tokens[position]), vocabulary }),
    }
}
