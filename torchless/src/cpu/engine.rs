//! The forward pass on the CPU, with the same bits for any number of threads and any number of
//! tokens at once.
//!
//! Legend: T tokens of this pass, D width of a head. Every buffer is (T, width), token by token.

use std::ops::Range;

use super::attention::{Attend, Places, put_by_heads};
use super::integers::Activations;
use super::kernels;
use super::kv_cache::{CpuKvCache, KeysAndValues};
use super::products::{LinearScratch, Product, multiply};
use super::threads::Threads;
use crate::config::{Config, Rope};
use crate::model::{Layer, Linear, Model, Observer, Pass, Span};
use crate::simd::LANES;

/// Tokens whose logits are computed at once.
const LOGITS_AT_ONCE: usize = 48;

/// Computes a model on the CPU.
#[derive(Debug)]
pub(crate) struct CpuEngine {
    threads: Threads,
    work: Work,
}

/// Buffers of a pass, kept between passes.
#[derive(Debug, Default)]
struct Work {
    residual: Vec<f32>,
    normed: Vec<f32>,
    queries: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    attended: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    change: Vec<f32>,
    logits: Vec<f32>,
    cosines: Vec<f32>,
    sines: Vec<f32>,
    linear: LinearScratch,
}

impl CpuEngine {
    pub(crate) fn new(threads: Threads) -> CpuEngine {
        CpuEngine { threads, work: Work::default() }
    }

    /// Changes how products see their inputs.
    pub(crate) fn set_activations(&mut self, activations: Activations) {
        self.work.linear.activations = activations;
    }

    pub(crate) fn activations(&self) -> Activations {
        self.work.linear.activations
    }

    /// Computes all layers and leaves the normed residual stream in `work.normed`.
    ///
    /// With a cache, keys and values are added to those of earlier passes; without one, every
    /// sequence of the pass is whole.
    pub(crate) fn pass(
        &mut self,
        model: &Model,
        pass: Pass<'_>,
        mut kv: Option<&mut CpuKvCache>,
        observer: Observer<'_>,
    ) {
        let Config { hidden, epsilon, .. } = model.config;
        let threads = self.threads.clone();
        let isa = threads.instruction_set();
        self.work.resize(&model.config, pass.tokens.len());
        self.turns(model, pass.spans);
        for (token, residual) in pass.tokens.iter().zip(self.work.residual.chunks_exact_mut(hidden)) {
            model.embedding.row(*token as usize, residual);
        }
        observer(0, &self.work.residual);
        for (index, layer) in model.layers.iter().enumerate() {
            threads.inside(pass.tokens.len() * layer.n_weights(), || {
                self.attention(model, index, pass.spans, kv.as_deref_mut());
                self.mlp(model, layer);
            });
            observer(index + 1, &self.work.residual);
        }
        kernels::rms_norm(isa, &self.work.residual, &model.norm, epsilon, &mut self.work.normed);
    }

    /// Computes the cosines and sines of every token's position.
    fn turns(&mut self, model: &Model, spans: &[Span]) {
        let frequencies = &model.frequencies;
        let half = frequencies.len();
        for span in spans {
            for token in span.tokens.clone() {
                let position = span.position + token - span.tokens.start;
                let at = token * half..(token + 1) * half;
                Rope::turn(frequencies, position, &mut self.work.cosines[at.clone()], &mut self.work.sines[at]);
            }
        }
    }

    fn attention(&mut self, model: &Model, index: usize, spans: &[Span], kv: Option<&mut CpuKvCache>) {
        let (config, layer) = (&model.config, &model.layers[index]);
        let work = &mut self.work;
        let (threads, isa) = (&self.threads, self.threads.instruction_set());
        kernels::rms_norm(isa, &work.residual, &layer.attention_norm, config.epsilon, &mut work.normed);
        let n_tokens = work.residual.len() / config.hidden;
        multiply(
            threads,
            &mut work.linear,
            &work.normed,
            n_tokens,
            &mut [
                product(&layer.query, &mut work.queries),
                product(&layer.key, &mut work.keys),
                product(&layer.value, &mut work.values),
            ],
        );
        let half = config.head_dim / 2;
        for (x, width) in [(&mut work.queries, config.query_width()), (&mut work.keys, config.kv_width())] {
            for (token, x) in x.chunks_exact_mut(width).enumerate() {
                let at = token * half..(token + 1) * half;
                kernels::rope(x, config.rope.pairs, &work.cosines[at.clone()], &work.sines[at]);
            }
        }
        let at = match kv {
            None => Places { keys: &work.keys, values: &work.values, head: config.head_dim, row: config.kv_width() },
            Some(cache) => {
                let (head, row) = (cache.capacity * config.head_dim, config.head_dim);
                let first = spans[0].position * row;
                let KeysAndValues { keys, values } = &mut cache.layers[index];
                put_by_heads(keys, head, first, &work.keys, row);
                put_by_heads(values, head, first, &work.values, row);
                Places { keys, values, head, row }
            }
        };
        let window = config.windows.of_layer(index);
        let attend = Attend { config, isa, queries: &work.queries, at, window };
        attend.run(threads, spans, &mut work.attended);
        let change = &mut work.change;
        multiply(threads, &mut work.linear, &work.attended, n_tokens, &mut [product(&layer.output, change)]);
        kernels::add(&mut work.residual, change);
    }

    fn mlp(&mut self, model: &Model, layer: &Layer) {
        let work = &mut self.work;
        let (threads, isa) = (&self.threads, self.threads.instruction_set());
        let Config { hidden, epsilon, .. } = model.config;
        let n_tokens = work.residual.len() / hidden;
        kernels::rms_norm(isa, &work.residual, &layer.mlp_norm, epsilon, &mut work.normed);
        let mut products = [product(&layer.gate, &mut work.gate), product(&layer.up, &mut work.up)];
        multiply(threads, &mut work.linear, &work.normed, n_tokens, &mut products);
        let up = &work.up;
        let cost = 8 * up.len();
        let part = up.len().div_ceil(4 * threads.count()).max(1024).next_multiple_of(LANES);
        let parts = work.gate.chunks_mut(part).zip(up.chunks(part)).collect();
        threads.each(parts, cost, || (), |(), (gate, up)| kernels::silu_mul(isa, gate, up));
        multiply(threads, &mut work.linear, &work.gate, n_tokens, &mut [product(&layer.down, &mut work.change)]);
        kernels::add(&mut work.residual, &work.change);
    }

    /// Computes the logits of some tokens of the last pass, a few tokens at a time.
    pub(crate) fn head(&mut self, model: &Model, tokens: Range<usize>, each: &mut dyn FnMut(usize, &[f32])) {
        let Config { hidden, vocabulary, .. } = model.config;
        let head = model.head.as_ref().unwrap_or(&model.embedding);
        for first in tokens.clone().step_by(LOGITS_AT_ONCE) {
            let some = first..(first + LOGITS_AT_ONCE).min(tokens.end);
            let Work { normed, logits, linear, .. } = &mut self.work;
            logits.resize(some.len() * vocabulary, 0.0);
            let x = &normed[some.start * hidden..some.end * hidden];
            let product = Product { matrix: head, bias: None, out: logits };
            multiply(&self.threads, linear, x, some.len(), &mut [product]);
            for (token, logits) in some.zip(logits.chunks_exact(vocabulary)) {
                each(token, logits);
            }
        }
    }
}

fn product<'a>(linear: &'a Linear, out: &'a mut Vec<f32>) -> Product<'a> {
    Product { matrix: &linear.matrix, bias: linear.bias.as_deref(), out }
}

impl Work {
    fn resize(&mut self, config: &Config, n_tokens: usize) {
        let half = config.head_dim / 2;
        let sizes = [
            (&mut self.residual, config.hidden),
            (&mut self.normed, config.hidden),
            (&mut self.change, config.hidden),
            (&mut self.queries, config.query_width()),
            (&mut self.attended, config.query_width()),
            (&mut self.keys, config.kv_width()),
            (&mut self.values, config.kv_width()),
            (&mut self.gate, config.intermediate),
            (&mut self.up, config.intermediate),
            (&mut self.cosines, half),
            (&mut self.sines, half),
        ];
        for (buffer, width) in sizes {
            buffer.resize(n_tokens * width, 0.0);
        }
    }
}
