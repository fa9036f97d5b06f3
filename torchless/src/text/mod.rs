//! From tokens to text and events: tokenizers, chat templates, sampling, generation and scores.

pub mod chat;
mod chat_blocks;
mod chat_limits;
pub mod generate;
mod percent;
mod python;
pub mod sampling;
pub mod score;
mod tokenizer;

pub use tokenizer::{TextStream, Tokenizer};
