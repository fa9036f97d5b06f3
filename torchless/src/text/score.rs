//! Exact log-probabilities of many short sequences of tokens, and their ratio under two prefixes.
//!
//! `log p(x | c) = Σ log softmax(logits after c, x₁ … x_{i−1})[x_i]`, and the ratio of two classes
//! is the best possible test of one against the other (Neyman and Pearson) as far as the model
//! knows them. Sequences are computed many at once; no result depends on how many.

use crate::config::Config;
use crate::engine::Engine;
use crate::error::Error;
use crate::model::check_tokens;

/// Returns `log softmax(logits)[token]`, in double precision.
///
/// ```
/// assert_eq!(torchless::score::log_probability(&[0.0, 0.0], 1), -std::f64::consts::LN_2);
/// ```
pub fn log_probability(logits: &[f32], token: u32) -> f64 {
    let greatest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - greatest).exp()).sum();
    f64::from(logits[token as usize]) - greatest - sum.ln()
}

/// The number of tokens that are computed at once by default.
pub const DEFAULT_BATCH: usize = Engine::DEFAULT_SEQUENCE_TOKENS;

/// What is scored.
#[derive(Debug, Clone)]
pub struct ScoreOptions {
    /// Tokens before every sequence; at least one.
    pub prefix: Vec<u32>,
    /// Tokens after every sequence, which count: a sequence that ends differs from one that
    /// continues.
    pub end: Vec<u32>,
    /// Tokens that are computed at once, about.
    pub batch: usize,
}

impl Default for ScoreOptions {
    fn default() -> ScoreOptions {
        ScoreOptions { prefix: Vec::new(), end: Vec::new(), batch: DEFAULT_BATCH }
    }
}

impl ScoreOptions {
    /// Returns the most tokens of one pass: a sequence is not divided, and each pass has at least
    /// one.
    pub fn most_at_once(&self, sequences: &[Vec<u32>]) -> usize {
        let longest = sequences.iter().map(|sequence| self.n_computed(sequence)).max().unwrap_or(0);
        let all = sequences.iter().fold(0_usize, |sum, sequence| sum.saturating_add(self.n_computed(sequence)));
        all.min(self.batch.saturating_add(longest))
    }

    /// Returns the number of tokens that are computed for a sequence: all but the last, whose
    /// logits are not needed.
    fn n_computed(&self, sequence: &[u32]) -> usize {
        (self.prefix.len() + sequence.len() + self.end.len()).saturating_sub(1)
    }

    /// Finds everything that cannot be computed, before anything is.
    ///
    /// # Errors
    ///
    /// An empty prefix; a token that the model does not know; a sequence that does not fit into its
    /// context.
    pub fn check(&self, config: &Config, sequences: &[Vec<u32>]) -> Result<(), Error> {
        if self.prefix.is_empty() {
            return Err(Error::NoTokens);
        }
        check_tokens(config.vocabulary, &self.prefix)?;
        check_tokens(config.vocabulary, &self.end)?;
        for (index, sequence) in sequences.iter().enumerate() {
            let asked = self.n_computed(sequence);
            let fits = if asked <= config.context { Ok(()) } else { Err(asked) };
            let fits = fits.map_err(|asked| Error::ContextOverflow { asked, limit: config.context });
            let checked = check_tokens(config.vocabulary, sequence).and(fits);
            checked.map_err(|error| Error::InSequence { index, source: Box::new(error) })?;
        }
        Ok(())
    }
}

/// Returns log p(sequence, end | prefix) of each sequence; 0 where there is neither.
///
/// # Errors
///
/// An empty prefix; a token that the model does not know; a sequence that does not fit into its
/// context: all before anything is computed.
pub fn log_probabilities(
    engine: &mut Engine,
    sequences: &[Vec<u32>],
    options: &ScoreOptions,
) -> Result<Vec<f64>, Error> {
    options.check(engine.model().config(), sequences)?;
    let mut sums = Vec::with_capacity(sequences.len());
    let mut rest = sequences;
    while !rest.is_empty() {
        let mut n_tokens = 0;
        let mut n_here = 0;
        while n_here < rest.len() && (n_here == 0 || n_tokens < options.batch) {
            n_tokens += options.n_computed(&rest[n_here]);
            n_here += 1;
        }
        let (here, after) = rest.split_at(n_here);
        batch(engine, here, options, &mut sums)?;
        rest = after;
    }
    Ok(sums)
}

fn batch(
    engine: &mut Engine,
    sequences: &[Vec<u32>],
    options: &ScoreOptions,
    sums: &mut Vec<f64>,
) -> Result<(), Error> {
    let first = sums.len();
    sums.resize(first + sequences.len(), 0.0);
    let n_given = options.prefix.len();
    let whole = sequences.iter().map(|sequence| [&options.prefix[..], sequence, &options.end].concat());
    let asked: Vec<(usize, Vec<u32>)> = whole.enumerate().filter(|(_, whole)| whole.len() > n_given).collect();
    let inputs: Vec<&[u32]> = asked.iter().map(|(_, whole)| &whole[..whole.len() - 1]).collect();
    engine.sequences(&inputs, &mut |index, position, logits| {
        let (place, whole) = &asked[index];
        if position + 1 >= n_given {
            sums[first + place] += log_probability(logits, whole[position + 1]);
        }
    })
}

/// Counts `values` in bins; bin i is from `edges[i]` (included) to `edges[i + 1]` (excluded).
/// Values outside all bins are not counted. Edges ascend.
///
/// ```
/// use torchless::score::histogram;
/// assert_eq!(histogram(&[-1.0, 0.0, 0.5, 1.0], &[f64::NEG_INFINITY, 0.0, 1.0]), [1, 2]);
/// ```
pub fn histogram(values: &[f64], edges: &[f64]) -> Vec<u64> {
    let mut counts = vec![0; edges.len().saturating_sub(1)];
    for value in values {
        let above = edges.partition_point(|edge| edge <= value);
        if let Some(count) = above.checked_sub(1).and_then(|bin| counts.get_mut(bin)) {
            *count += 1;
        }
    }
    counts
}
