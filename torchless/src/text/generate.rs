//! Generation: one token after another, until the text ends, is stopped or is long enough.

use super::sampling::Sampler;
use super::tokenizer::{TextStream, Tokenizer};
use crate::engine::{Engine, LogitRows};
use crate::error::Error;

/// Why generation ended. None of these is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model ended the text.
    End,
    /// A stop string was found.
    Stop,
    /// As many tokens as were asked for.
    Length,
    /// The context is full.
    Context,
}

/// When to end.
#[derive(Debug, Clone)]
pub struct GenerateOptions {
    /// Tokens at most.
    pub max_tokens: usize,
    /// Texts to end before; special tokens by their names, too.
    pub stops: Vec<String>,
    /// Whether the model may end the text.
    pub ends: bool,
}

impl Default for GenerateOptions {
    fn default() -> GenerateOptions {
        GenerateOptions { max_tokens: 128, stops: Vec::new(), ends: true }
    }
}

/// The tokens and the text that were generated.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Generation {
    /// The new tokens, the one that ended the text not among them.
    pub tokens: Vec<u32>,
    /// Their text, if there is a tokenizer.
    pub text: Option<String>,
    /// Why it ended.
    pub finish: Finish,
}

/// Generates after `prompt`, and calls `each` with the text piece by piece, whole characters only.
///
/// # Errors
///
/// A prompt that is empty, has unknown tokens or does not fit into the context; texts to end
/// before, and no tokenizer to find them with.
pub fn generate(
    engine: &mut Engine,
    tokenizer: Option<&Tokenizer>,
    prompt: &[u32],
    sampler: &mut Sampler,
    options: &GenerateOptions,
    each: &mut dyn FnMut(&str),
) -> Result<Generation, Error> {
    let config = engine.model().config();
    let (context, eos) = (config.context, config.eos.clone());
    let room =
        context.checked_sub(prompt.len()).ok_or(Error::ContextOverflow { asked: prompt.len(), limit: context })?;
    // The last token is chosen but not computed, so one more than there is room for can come.
    let mut cache = engine.cache(prompt.len() + room.min(options.max_tokens.saturating_sub(1)))?;
    let stop_tokens = special_tokens(engine, tokenizer, &options.stops)?;
    let mut stream = tokenizer.map(|tokenizer| TextStream::new(tokenizer, &options.stops));
    let (mut all, mut tokens, mut text) = (prompt.to_vec(), Vec::new(), String::new());
    let mut write = |piece: String| {
        if !piece.is_empty() {
            each(&piece);
            text.push_str(&piece);
        }
    };
    let mut next = prompt.to_vec();
    let finish = loop {
        if tokens.len() == options.max_tokens {
            break Finish::Length;
        }
        if cache.len() + next.len() > cache.capacity() {
            break Finish::Context;
        }
        let logits = engine.logits(&mut cache, &next, LogitRows::Last)?;
        let token = sampler.choose(&logits, &all)?;
        if options.ends && eos.contains(&token) {
            break Finish::End;
        }
        if stop_tokens.contains(&token) {
            break Finish::Stop;
        }
        tokens.push(token);
        all.push(token);
        next = vec![token];
        if let Some(stream) = &mut stream {
            write(stream.push(token)?);
            if stream.is_stopped() {
                break Finish::Stop;
            }
        }
    };
    if let Some(stream) = &mut stream {
        write(stream.finish()?);
    }
    Ok(Generation { tokens, text: tokenizer.map(|_| text), finish })
}

/// Returns the ids of the stops that are special tokens, which have no text.
fn special_tokens(engine: &Engine, tokenizer: Option<&Tokenizer>, stops: &[String]) -> Result<Vec<u32>, Error> {
    let Some(tokenizer) = tokenizer else {
        let path = || engine.model().path().to_owned();
        return if stops.is_empty() { Ok(Vec::new()) } else { Err(Error::NoTokenizer { path: path() }) };
    };
    let mut ids = Vec::new();
    for id in stops.iter().filter_map(|stop| tokenizer.id(stop)) {
        if tokenizer.decode(&[id], false)?.is_empty() {
            ids.push(id);
        }
    }
    Ok(ids)
}
