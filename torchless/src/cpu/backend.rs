//! Kernels one by one, on a backend of choice, with every shape checked: for those who build
//! something else out of them.
//!
//! The engine itself calls `kernels` and `linear` directly. A backend that is named and not there
//! is an error; nothing else computes instead.

use std::fmt;

use super::integers::Activations;
use super::kernels::{self, HeadRows, RopePairs};
use super::products::{LinearScratch, Product, multiply};
use super::threads::Threads;
use crate::error::Error;
use crate::model::check_tokens;
use crate::weights::Matrix;

/// The kernels of a transformer. Shapes are written as (rows, columns), row by row.
pub trait KernelBackend: fmt::Debug + Send {
    /// Returns the name of the backend: `cpu (avx512, 2 threads)`.
    fn name(&self) -> String;
    /// Computes x ← x / √(mean(x²) + ε) · weight: `x` is (T, width), `weight` (width).
    fn rmsnorm(&mut self, x: &mut [f32], weight: &[f32], epsilon: f64) -> Result<(), Error>;
    /// Computes x ← exp(x − max) / Σ.
    fn softmax(&mut self, x: &mut [f32]) -> Result<(), Error>;
    /// Computes x ← x / (1 + exp(−x)).
    fn silu(&mut self, x: &mut [f32]) -> Result<(), Error>;
    /// Computes gate ← silu(gate)·up.
    fn fused_silu_mul(&mut self, gate: &mut [f32], up: &[f32]) -> Result<(), Error>;
    /// Turns the heads of one token to `position`: `x` is (heads, D), `frequencies` (D/2).
    fn rope(&mut self, x: &mut [f32], pairs: RopePairs, frequencies: &[f64], position: usize) -> Result<(), Error>;
    /// Computes scores (H, positions) = q·k·scale: `queries` is (H, D), `keys` (positions, KV
    /// heads, D); head h uses KV head h / (H / KV heads).
    fn attention_scores(
        &mut self,
        heads: Heads,
        queries: &[f32],
        keys: &[f32],
        scale: f32,
        scores: &mut [f32],
    ) -> Result<(), Error>;
    /// Computes out (H, D) = Σ weights (H, positions) · values (positions, KV heads, D).
    fn weighted_sum(&mut self, heads: Heads, weights: &[f32], values: &[f32], out: &mut [f32]) -> Result<(), Error>;
    /// Computes out (rows) = M·x (columns).
    fn matmul_vec(&mut self, matrix: &Matrix, x: &[f32], out: &mut [f32]) -> Result<(), Error>;
    /// Computes out (T, rows) = x (T, columns)·Mᵀ, with tiles of sums in registers.
    fn matmul(&mut self, matrix: &Matrix, x: &[f32], out: &mut [f32]) -> Result<(), Error>;
    /// Computes x ← x + y.
    fn add(&mut self, x: &mut [f32], y: &[f32]) -> Result<(), Error>;
    /// Copies rows of a matrix to out (T, columns).
    fn embedding(&mut self, matrix: &Matrix, tokens: &[u32], out: &mut [f32]) -> Result<(), Error>;
}

/// Sizes of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// Heads of queries.
    pub n_heads: usize,
    /// Heads of keys and values; divides `n_heads`.
    pub n_kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
}

/// The processor.
#[derive(Debug)]
pub struct CpuBackend {
    threads: Threads,
    linear: LinearScratch,
}

impl CpuBackend {
    /// Computes with these threads.
    pub fn new(threads: Threads) -> CpuBackend {
        CpuBackend { threads, linear: LinearScratch::default() }
    }

    /// Returns the backend with products that see their inputs as `activations` say.
    #[must_use]
    pub fn with_activations(self, activations: Activations) -> CpuBackend {
        CpuBackend { linear: LinearScratch::new(activations), ..self }
    }
}

pub(crate) fn check(kernel: &'static str, argument: &'static str, length: usize, expected: usize) -> Result<(), Error> {
    if length == expected { Ok(()) } else { Err(Error::Shape { kernel, argument, length, expected }) }
}

/// Returns how many rows of `width` numbers there are; an error if they are not whole rows, at
/// least one, of at least one number.
pub(crate) fn rows(kernel: &'static str, argument: &'static str, length: usize, width: usize) -> Result<usize, Error> {
    let n_rows = length.checked_div(width).ok_or(Error::Empty { kernel, argument })?.max(1);
    check(kernel, argument, length, n_rows * width)?;
    Ok(n_rows)
}

impl Heads {
    /// Checks the shapes, and returns the number of positions of `cache`, (positions, KV heads, D).
    pub(crate) fn positions(self, kernel: &'static str, queries: usize, cache: usize) -> Result<usize, Error> {
        let Heads { n_heads, n_kv_heads, head_dim } = self;
        if n_heads == 0 || n_kv_heads == 0 || head_dim == 0 || !n_heads.is_multiple_of(n_kv_heads) {
            return Err(Error::Heads { kernel, n_heads, n_kv_heads, head_dim });
        }
        check(kernel, "queries", queries, n_heads.saturating_mul(head_dim))?;
        rows(kernel, "cache", cache, n_kv_heads.saturating_mul(head_dim))
    }

    /// Returns the rows of the head of keys or values that a head of queries uses.
    fn rows(self, cache: &[f32], head: usize) -> HeadRows<'_> {
        let kv_head = head / (self.n_heads / self.n_kv_heads);
        HeadRows { values: &cache[kv_head * self.head_dim..], stride: self.n_kv_heads * self.head_dim }
    }
}

impl KernelBackend for CpuBackend {
    fn name(&self) -> String {
        format!("cpu ({}, {} threads)", self.threads.instruction_set().name(), self.threads.count())
    }

    fn rmsnorm(&mut self, x: &mut [f32], weight: &[f32], epsilon: f64) -> Result<(), Error> {
        rows("rmsnorm", "x", x.len(), weight.len())?;
        let from = x.to_vec();
        kernels::rms_norm(self.threads.instruction_set(), &from, weight, epsilon, x);
        Ok(())
    }

    fn softmax(&mut self, x: &mut [f32]) -> Result<(), Error> {
        kernels::softmax(self.threads.instruction_set(), x);
        Ok(())
    }

    fn silu(&mut self, x: &mut [f32]) -> Result<(), Error> {
        kernels::silu(self.threads.instruction_set(), x);
        Ok(())
    }

    fn fused_silu_mul(&mut self, gate: &mut [f32], up: &[f32]) -> Result<(), Error> {
        check("fused_silu_mul", "up", up.len(), gate.len())?;
        kernels::silu_mul(self.threads.instruction_set(), gate, up);
        Ok(())
    }

    fn rope(&mut self, x: &mut [f32], pairs: RopePairs, frequencies: &[f64], position: usize) -> Result<(), Error> {
        rows("rope", "x", x.len(), 2 * frequencies.len())?;
        let (mut cosines, mut sines) = (vec![0.0; frequencies.len()], vec![0.0; frequencies.len()]);
        crate::config::Rope::turn(frequencies, position, &mut cosines, &mut sines);
        kernels::rope(x, pairs, &cosines, &sines);
        Ok(())
    }

    fn attention_scores(
        &mut self,
        heads: Heads,
        queries: &[f32],
        keys: &[f32],
        scale: f32,
        scores: &mut [f32],
    ) -> Result<(), Error> {
        let n_positions = heads.positions("attention_scores", queries.len(), keys.len())?;
        check("attention_scores", "scores", scores.len(), heads.n_heads * n_positions)?;
        let each = queries.chunks_exact(heads.head_dim).zip(scores.chunks_exact_mut(n_positions));
        for (head, (query, scores)) in each.enumerate() {
            kernels::attention_scores(self.threads.instruction_set(), query, heads.rows(keys, head), scale, scores);
        }
        Ok(())
    }

    fn weighted_sum(&mut self, heads: Heads, weights: &[f32], values: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let n_positions = heads.positions("weighted_sum", out.len(), values.len())?;
        check("weighted_sum", "weights", weights.len(), heads.n_heads * n_positions)?;
        let each = weights.chunks_exact(n_positions).zip(out.chunks_exact_mut(heads.head_dim));
        for (head, (weights, out)) in each.enumerate() {
            kernels::weighted_sum(self.threads.instruction_set(), weights, heads.rows(values, head), out);
        }
        Ok(())
    }

    fn matmul_vec(&mut self, matrix: &Matrix, x: &[f32], out: &mut [f32]) -> Result<(), Error> {
        check("matmul_vec", "x", x.len(), matrix.columns())?;
        check("matmul_vec", "out", out.len(), matrix.rows())?;
        multiply(&self.threads, &mut self.linear, x, 1, &mut [Product { matrix, bias: None, out }]);
        Ok(())
    }

    fn matmul(&mut self, matrix: &Matrix, x: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let n_vectors = rows("matmul", "x", x.len(), matrix.columns())?;
        check("matmul", "out", out.len(), matrix.rows() * n_vectors)?;
        multiply(&self.threads, &mut self.linear, x, n_vectors, &mut [Product { matrix, bias: None, out }]);
        Ok(())
    }

    fn add(&mut self, x: &mut [f32], y: &[f32]) -> Result<(), Error> {
        check("add", "y", y.len(), x.len())?;
        kernels::add(x, y);
        Ok(())
    }

    fn embedding(&mut self, matrix: &Matrix, tokens: &[u32], out: &mut [f32]) -> Result<(), Error> {
        check("embedding", "out", out.len(), tokens.len() * matrix.columns())?;
        check_tokens(matrix.rows(), tokens)?;
        for (&token, out) in tokens.iter().zip(out.chunks_exact_mut(matrix.columns())) {
            matrix.row(token as usize, out);
        }
        Ok(())
    }
}
