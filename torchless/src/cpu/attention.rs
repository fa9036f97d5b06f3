//! Attention of a pass on the CPU: every token's heads, each over the keys and values of its own
//! sequence.

use super::kernels::{self, HeadRows};
use super::threads::Threads;
use crate::config::Config;
use crate::model::Span;
use crate::simd::InstructionSet;

/// Keys and values of a layer, in a cache or in the pass.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) keys: &'a [f32],
    pub(crate) values: &'a [f32],
    /// Numbers from one head to the next.
    pub(crate) head: usize,
    /// Numbers from one position of a head to the next.
    pub(crate) row: usize,
}

/// Puts rows `from` (T, heads, `width`) behind each other where each head has its place: heads are
/// `head_stride` apart, and rows begin at `at`.
///
/// # Panics
///
/// More rows than a head has room for.
pub(crate) fn put_by_heads(to: &mut [f32], head_stride: usize, at: usize, from: &[f32], width: usize) {
    let n_heads = to.len() / head_stride;
    for (head, place) in to.chunks_exact_mut(head_stride).enumerate() {
        for (row, heads) in from.chunks_exact(n_heads * width).enumerate() {
            place[at + row * width..][..width].copy_from_slice(&heads[head * width..][..width]);
        }
    }
}

/// Attention of one layer, head by head.
pub(crate) struct Attend<'a> {
    pub(crate) config: &'a Config,
    pub(crate) isa: InstructionSet,
    pub(crate) queries: &'a [f32],
    pub(crate) at: Places<'a>,
    pub(crate) window: Option<usize>,
}

impl Attend<'_> {
    pub(crate) fn run(&self, threads: &Threads, spans: &[Span], attended: &mut [f32]) {
        let Config { n_heads, head_dim, .. } = *self.config;
        let width = n_heads * head_dim;
        let mut items = Vec::new();
        let mut cost = 0;
        let mut rest = attended;
        for span in spans {
            let n_tokens = span.tokens.len();
            let (of_span, after) = rest.split_at_mut(n_tokens * width);
            rest = after;
            cost += n_tokens * (span.position + n_tokens) * width;
            // Long ones are shared head by head, many short ones token by token.
            let part = if n_tokens == 1 { head_dim } else { width };
            for (index, out) in of_span.chunks_mut(part).enumerate() {
                items.push((span, index * part, out));
            }
        }
        threads.each(items, cost, Vec::new, |scores, (span, first, out)| {
            for (index, out) in out.chunks_exact_mut(head_dim).enumerate() {
                let head = first / head_dim + index;
                self.head(span, head / n_heads, head % n_heads, scores, out);
            }
        });
    }

    /// Computes one head of one token of `span`.
    fn head(&self, span: &Span, token: usize, head: usize, scores: &mut Vec<f32>, out: &mut [f32]) {
        let Config { n_heads, n_kv_heads, head_dim, .. } = *self.config;
        let (isa, Places { keys, values, head: head_stride, row: stride }) = (self.isa, self.at);
        let position = span.position + token;
        let first = self.window.map_or(0, |window| (position + 1).saturating_sub(window));
        let kv_head = head / (n_heads / n_kv_heads);
        let query = &self.queries[((span.tokens.start + token) * n_heads + head) * head_dim..][..head_dim];
        let start = kv_head * head_stride + (span.kv_row + first) * stride;
        let end = kv_head * head_stride + (span.kv_row + position) * stride + head_dim;
        scores.clear();
        scores.resize(position + 1 - first, 0.0);
        let rows = |values| HeadRows { values, stride };
        let scale = (1.0 / (head_dim as f64).sqrt()) as f32;
        kernels::attention_scores(isa, query, rows(&keys[start..end]), scale, scores);
        kernels::softmax(isa, scores);
        // No position has a weight: every score was -∞, an overflow that has to be seen.
        if scores.iter().all(|weight| *weight == 0.0) {
            out.fill(f32::NAN);
            return;
        }
        kernels::weighted_sum(isa, scores, rows(&values[start..end]), out);
    }
}

#[cfg(test)]
mod tests {
    use super::put_by_heads;

    /// Two rows of two heads of two numbers.
    const ROWS: [f32; 8] = [10.0, 11.0, 20.0, 21.0, 12.0, 13.0, 22.0, 23.0];

    #[test]
    fn heads_have_their_rows_side_by_side() {
        let mut to = [0.0; 12];
        put_by_heads(&mut to, 6, 2, &ROWS, 2);
        assert_eq!(to, [0.0, 0.0, 10.0, 11.0, 12.0, 13.0, 0.0, 0.0, 20.0, 21.0, 22.0, 23.0]);
    }

    #[test]
    fn a_row_too_many_does_not_go_into_the_next_head() {
        let mut to = [0.0; 12];
        let put = std::panic::AssertUnwindSafe(|| put_by_heads(&mut to, 6, 4, &ROWS, 2));
        assert!(std::panic::catch_unwind(put).is_err());
        assert_eq!(to[6..], [0.0; 6]);
    }
}
