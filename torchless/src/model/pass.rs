//! What a forward pass is given, whichever processor computes it.

use crate::error::Error;

/// Receives the residual stream after the embedding (0) and after each layer (1 …): (T, hidden).
pub type Observer<'a> = &'a mut dyn FnMut(usize, &[f32]);

/// Refuses tokens that the embedding has no row for.
pub(crate) fn check_tokens(vocabulary: usize, tokens: &[u32]) -> Result<(), Error> {
    match tokens.iter().position(|&token| token as usize >= vocabulary) {
        None => Ok(()),
        Some(position) => Err(Error::TokenOutOfRange { position, id: u64::from(tokens[position]), vocabulary }),
    }
}
