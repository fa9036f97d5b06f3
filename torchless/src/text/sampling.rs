//! From logits to the next token: the usual changes of a distribution, in double precision, and
//! draws that a seed repeats.
//!
//! Each step is defined as in Hugging Face's transformers; steps are done in the order in which
//! they are listed.

use crate::error::Error;

/// One change of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Logits of tokens that were there before are divided by this if positive, multiplied if
    /// negative.
    RepetitionPenalty(f64),
    /// Logits are divided by this.
    Temperature(f64),
    /// The k greatest stay, and what equals the last of them.
    TopK(usize),
    /// The fewest tokens whose probabilities reach this stay.
    TopP(f64),
    /// Tokens of less than this part of the greatest probability go.
    MinP(f64),
}

impl Step {
    fn check(self) -> Result<(), Error> {
        let (setting, value, is_good, expected) = match self {
            Step::RepetitionPenalty(value) => ("the repetition penalty", value, value > 0.0, "it must be positive"),
            Step::Temperature(value) => ("the temperature", value, value > 0.0, "it must be positive; 0 is `greedy`"),
            Step::TopK(value) => ("top-k", value as f64, value > 0, "it must be at least 1"),
            Step::TopP(value) => ("top-p", value, value > 0.0 && value <= 1.0, "it must be above 0 and at most 1"),
            Step::MinP(value) => ("min-p", value, (0.0..=1.0).contains(&value), "it must be between 0 and 1"),
        };
        if is_good && value.is_finite() { Ok(()) } else { Err(Error::Sampling { setting, value, expected }) }
    }

    fn apply(self, logits: &mut [f64], before: &[u32]) {
        match self {
            Step::RepetitionPenalty(penalty) => {
                let mut seen = before.to_vec();
                seen.sort_unstable();
                seen.dedup();
                for token in seen {
                    if let Some(logit) = logits.get_mut(token as usize) {
                        *logit = if *logit < 0.0 { *logit * penalty } else { *logit / penalty };
                    }
                }
            }
            Step::Temperature(temperature) => logits.iter_mut().for_each(|logit| *logit /= temperature),
            Step::TopK(k) => {
                let order = descending(logits);
                let least = logits[order[k.min(order.len()) - 1]];
                remove(logits, |logit| logit < least);
            }
            Step::TopP(p) => top_p(logits, p),
            Step::MinP(p) => {
                let greatest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                remove(logits, |logit| (logit - greatest).exp() < p && logit < greatest);
            }
        }
    }
}

fn remove(logits: &mut [f64], is_out: impl Fn(f64) -> bool) {
    logits.iter_mut().filter(|logit| is_out(**logit)).for_each(|logit| *logit = f64::NEG_INFINITY);
}

/// Returns the indices, the greatest logit first, the lower index first among equals.
fn descending(logits: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    order
}

/// Excludes, from the least probable on, what sums to 1 − p at most; the most probable stays.
fn top_p(logits: &mut [f64], p: f64) {
    let probabilities = softmax(logits);
    let mut sum = 0.0;
    let order = descending(logits);
    for &token in order[1..].iter().rev() {
        sum += probabilities[token];
        if sum > 1.0 - p {
            break;
        }
        logits[token] = f64::NEG_INFINITY;
    }
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let greatest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut probabilities: Vec<f64> = logits.iter().map(|logit| (logit - greatest).exp()).collect();
    let sum: f64 = probabilities.iter().sum();
    probabilities.iter_mut().for_each(|probability| *probability /= sum);
    probabilities
}

/// Returns the distribution of the next token after `steps`: (vocabulary). `before` are the tokens
/// so far.
///
/// ```
/// use torchless::sampling::{Step, distribution};
/// let kept = distribution(&[2.0, 1.0, 0.0], &[], &[Step::TopK(2)])?;
/// assert!((kept[0] - 1.0 / (1.0 + (-1.0_f64).exp())).abs() < 1e-12 && kept[2] == 0.0);
/// # Ok::<(), torchless::Error>(())
/// ```
///
/// # Errors
///
/// A step with an invalid setting; no logits; logits that are NaN or infinite, at first or after a
/// step.
pub fn distribution(logits: &[f32], before: &[u32], steps: &[Step]) -> Result<Vec<f64>, Error> {
    if logits.is_empty() {
        return Err(Error::NoTokens);
    }
    let mut logits: Vec<f64> = logits.iter().map(|&logit| f64::from(logit)).collect();
    check(logits.iter().copied())?;
    for step in steps {
        step.check()?;
        step.apply(&mut logits, before);
        check(logits.iter().copied())?;
    }
    Ok(softmax(&logits))
}

/// Refuses logits that leave no distribution: one that is NaN or infinite, or only −∞.
fn check(logits: impl Iterator<Item = f64>) -> Result<(), Error> {
    let mut is_possible = false;
    for (token, value) in logits.enumerate() {
        if value.is_nan() || value == f64::INFINITY {
            return Err(Error::Logit { token, value });
        }
        is_possible |= value > f64::NEG_INFINITY;
    }
    if is_possible { Ok(()) } else { Err(Error::Logit { token: 0, value: f64::NEG_INFINITY }) }
}

/// Returns the token of the greatest logit; the first one among equals.
pub fn greedy(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (token, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = token;
        }
    }
    best as u32
}

/// Chooses tokens.
#[derive(Debug, Clone)]
pub struct Sampler {
    /// None for the most probable token.
    steps: Option<Vec<Step>>,
    state: u64,
}

impl Sampler {
    /// Returns a sampler that always takes the most probable token.
    pub fn greedy() -> Sampler {
        Sampler { steps: None, state: 0 }
    }

    /// Draws from the distribution that `steps` leave; the same tokens for the same seed.
    pub fn new(steps: Vec<Step>, seed: u64) -> Result<Sampler, Error> {
        steps.iter().try_for_each(|step| step.check())?;
        Ok(Sampler { steps: Some(steps), state: seed })
    }

    /// Chooses the next token.
    ///
    /// # Errors
    ///
    /// Logits that are NaN or infinite.
    pub fn choose(&mut self, logits: &[f32], before: &[u32]) -> Result<u32, Error> {
        let Some(steps) = &self.steps else {
            check(logits.iter().map(|&logit| f64::from(logit)))?;
            return Ok(greedy(logits));
        };
        let probabilities = distribution(logits, before, steps)?;
        let mut left = self.uniform();
        let mut last = 0;
        for (token, probability) in probabilities.iter().enumerate() {
            if *probability > 0.0 {
                last = token;
                left -= probability;
                if left < 0.0 {
                    break;
                }
            }
        }
        Ok(last as u32)
    }

    /// Draws from [0, 1), 53 bits. SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
