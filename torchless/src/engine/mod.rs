//! The forward pass: tokens in, logits out, on the CPU or handed to a device, with the same bits for any number of threads and any
//! number of tokens at once.
//!
//! Legend: T tokens of this pass, D width of a head. Every buffer is (T, width), row by row.

mod kv_cache;

use std::ops::Range;
use std::sync::Arc;

use ns_device::Device;

use crate::config::{Config, Rope};
use crate::cpu::Threads;
use crate::cpu::attention::{Attend, Places, Span, put_by_heads};
use crate::cpu::integers::Activations;
use crate::cpu::kernels;
use crate::cpu::products::{LinearScratch, Product, multiply};
use crate::device::{DeviceEngine, DevicePass, MetalMemoryPool};
use crate::error::Error;
use crate::model::{Layer, Linear, Model, Observer, check_tokens};
use kv_cache::KeysAndValues;

pub use kv_cache::KvCache;

/// Where keys and values of a pass live.
enum Kv<'a> {
    /// In a cache, with those of earlier passes.
    Cache(&'a mut KvCache),
    /// In the pass itself: every sequence is whole.
    Pass,
}

/// Which rows of logits are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogitRows {
    /// That of the last token.
    Last,
    /// Those of all tokens.
    All,
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

/// What an engine did: the proof of where the work was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct EngineCounters {
    /// Passes through the layers on the CPU.
    pub passes: u64,
    /// Passes through the layers on a device.
    pub device_passes: u64,
    /// Tokens of them.
    pub tokens: u64,
    /// Rows of logits.
    pub logit_rows: u64,
}

/// Computes a model: on the CPU, or on a device that it was given.
#[derive(Debug)]
pub struct Engine {
    model: Arc<Model>,
    threads: Threads,
    /// Tokens of a pass at most.
    chunk: usize,
    work: Work,
    counters: EngineCounters,
    /// Computes instead of the CPU, if there is one.
    device: Option<DeviceEngine>,
}

impl Engine {
    /// The number of tokens of a pass by default.
    pub const DEFAULT_CHUNK: usize = 192;
    /// The number of tokens of a pass over whole sequences, as `score` makes, by default.
    pub const DEFAULT_SEQUENCE_TOKENS: usize = 1024;

    /// An engine for `model`.
    pub fn new(model: Arc<Model>, threads: Threads) -> Engine {
        Engine {
            model,
            threads,
            chunk: Self::DEFAULT_CHUNK,
            work: Work::default(),
            counters: EngineCounters::default(),
            device: None,
        }
    }

    /// An engine for `model` on a device that [`device::open`](crate::device::open) gave: weights are uploaded once, and stay.
    ///
    /// # Errors
    ///
    /// More memory than the device has for the weights and the keys and values of `positions`, before anything is uploaded.
    pub fn on_device(model: Arc<Model>, device: &Device, positions: usize) -> Result<Engine, Error> {
        // Without positions, whole sequences are computed, as many at once as `score` takes.
        let chunk = if positions == 0 { Self::DEFAULT_SEQUENCE_TOKENS } else { Self::DEFAULT_CHUNK };
        Ok(Engine::on_device_with_chunk(model, device, positions, chunk)?.with_chunk(Self::DEFAULT_CHUNK))
    }

    /// The same for at most `chunk` tokens to a pass, for which there must be memory, too.
    pub fn on_device_with_chunk(
        model: Arc<Model>,
        device: &Device,
        positions: usize,
        chunk: usize,
    ) -> Result<Engine, Error> {
        let on_device = DeviceEngine::new(&model, device, positions.min(model.config.context), chunk)?;
        Ok(Engine { device: Some(on_device), ..Engine::new(model, Threads::new(1)) }.with_chunk(chunk))
    }

    /// The memory of the device that computes, with its counters; none if the CPU does.
    pub fn device_pool(&self) -> Option<&MetalMemoryPool> {
        self.device.as_ref().map(DeviceEngine::pool)
    }

    /// The same, with at most `chunk` tokens to a pass; this changes no bit of any result.
    #[must_use]
    pub fn with_chunk(mut self, chunk: usize) -> Engine {
        self.chunk = chunk.max(1);
        self
    }

    /// The same, with products that see their inputs as `activations` say.
    ///
    /// # Errors
    ///
    /// Rounded ones on a device: only the CPU has them.
    pub fn with_activations(mut self, activations: Activations) -> Result<Engine, Error> {
        match &self.device {
            Some(device) if activations != Activations::Exact => {
                Err(Error::ExactOnly { device: device.pool().device().backend().name() })
            }
            _ => {
                self.work.linear.activations = activations;
                Ok(self)
            }
        }
    }

    /// What products see of their inputs.
    pub fn activations(&self) -> Activations {
        self.work.linear.activations
    }

    /// What it computes.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// What it computes with.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// What it did so far.
    pub fn counters(&self) -> EngineCounters {
        self.counters
    }

    /// A cache with room for `positions`.
    pub fn cache(&self, positions: usize) -> Result<KvCache, Error> {
        match &self.device {
            None => KvCache::within(&self.model.config, positions, self.model.memory_limit()),
            Some(device) => KvCache::on_device(device.pool(), &self.model.config, positions),
        }
    }

    /// Goes on with the sequence of `cache`: logits (rows, vocabulary), row by row.
    ///
    /// # Errors
    ///
    /// No tokens, tokens that the model does not know, or more than the cache has room for; the cache is then as it was.
    pub fn logits(&mut self, cache: &mut KvCache, tokens: &[u32], rows: LogitRows) -> Result<Vec<f32>, Error> {
        let mut all = Vec::new();
        self.each_logits(cache, tokens, rows, &mut |_, logits| all.extend_from_slice(logits))?;
        Ok(all)
    }

    /// Goes on with the sequence of `cache`, and hands over each row of logits with its token's place in `tokens`.
    pub fn each_logits(
        &mut self,
        cache: &mut KvCache,
        tokens: &[u32],
        rows: LogitRows,
        each: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), Error> {
        self.each_pass(cache, tokens, rows, each, None)
    }

    /// The same, and shows the residual stream of every pass to `observer`.
    pub fn observed(
        &mut self,
        cache: &mut KvCache,
        tokens: &[u32],
        rows: LogitRows,
        each: &mut dyn FnMut(usize, &[f32]),
        observer: Observer<'_>,
    ) -> Result<(), Error> {
        self.each_pass(cache, tokens, rows, each, Some(observer))
    }

    fn each_pass(
        &mut self,
        cache: &mut KvCache,
        tokens: &[u32],
        rows: LogitRows,
        each: &mut dyn FnMut(usize, &[f32]),
        mut observer: Option<Observer<'_>>,
    ) -> Result<(), Error> {
        self.check(tokens)?;
        cache.check(&self.model.config, self.device.is_some())?;
        let (asked, limit) = (cache.length + tokens.len(), cache.capacity.min(self.model.config.context));
        if asked > limit {
            return Err(Error::ContextOverflow { asked, limit });
        }
        cache.attempt(|cache| {
            for (index, chunk) in tokens.chunks(self.chunk).enumerate() {
                let first = index * self.chunk;
                let spans = [Span { rows: 0..chunk.len(), position: cache.length, kv_row: 0 }];
                // Reborrowed with the type that says that it may be called again.
                let observer = observer.as_mut().map(|observer| &mut **observer as Observer<'_>);
                self.pass(chunk, &spans, &mut Kv::Cache(cache), observer)?;
                cache.length += chunk.len();
                let is_last = first + chunk.len() == tokens.len();
                let wanted = match rows {
                    LogitRows::All => 0..chunk.len(),
                    LogitRows::Last if is_last => chunk.len() - 1..chunk.len(),
                    LogitRows::Last => continue,
                };
                self.head(wanted, &mut |row, logits| each(first + row, logits))?;
            }
            Ok(())
        })
    }

    /// Computes whole sequences at once, each from position 0, and hands over each row of logits with its sequence and position.
    pub(crate) fn sequences(
        &mut self,
        sequences: &[&[u32]],
        each: &mut dyn FnMut(usize, usize, &[f32]),
    ) -> Result<(), Error> {
        let mut tokens = Vec::new();
        let mut spans = Vec::new();
        let mut places = Vec::new();
        for (index, sequence) in sequences.iter().enumerate() {
            self.check(sequence)?;
            if sequence.len() > self.model.config.context {
                return Err(Error::ContextOverflow { asked: sequence.len(), limit: self.model.config.context });
            }
            let first = tokens.len();
            tokens.extend_from_slice(sequence);
            spans.push(Span { rows: first..tokens.len(), position: 0, kv_row: first });
            places.extend((0..sequence.len()).map(|position| (index, position)));
        }
        if tokens.is_empty() {
            return Ok(());
        }
        self.pass(&tokens, &spans, &mut Kv::Pass, None)?;
        self.head(0..tokens.len(), &mut |row, logits| each(places[row].0, places[row].1, logits))
    }

    fn check(&self, tokens: &[u32]) -> Result<(), Error> {
        if tokens.is_empty() {
            return Err(Error::NoTokens);
        }
        check_tokens(self.model.config.vocabulary, tokens)
    }

    /// All layers, where the engine computes; leaves the normed residual stream there.
    fn pass(
        &mut self,
        tokens: &[u32],
        spans: &[Span],
        kv: &mut Kv<'_>,
        observer: Option<Observer<'_>>,
    ) -> Result<(), Error> {
        self.counters.tokens += tokens.len() as u64;
        let Some(device) = &mut self.device else {
            self.pass_here(tokens, spans, kv, observer.unwrap_or(&mut |_, _| ()));
            return Ok(());
        };
        self.counters.device_passes += 1;
        let row_of = |span: &Span, row: usize| (span.position + row - span.rows.start) as u32;
        let rows = || spans.iter().flat_map(|span| span.rows.clone().map(move |row| (span, row)));
        let positions: Vec<u32> = rows().map(|(span, row)| row_of(span, row)).collect();
        let starts: Vec<u32> = rows().map(|(span, _)| span.kv_row as u32).collect();
        let (cache, capacity) = match kv {
            Kv::Cache(cache) => (cache.on_device.as_mut().map(|layers| (layers, cache.length)), cache.capacity),
            Kv::Pass => (None, positions.iter().max().map_or(0, |&last| last as usize + 1)),
        };
        let pass = DevicePass { tokens, positions: &positions, starts: &starts, cache, capacity };
        device.pass(&self.model, pass, observer)
    }

    /// All layers on the CPU; leaves the normed residual stream in `work.normed`.
    fn pass_here(&mut self, tokens: &[u32], spans: &[Span], kv: &mut Kv<'_>, observer: Observer<'_>) {
        let model = Arc::clone(&self.model);
        let Config { hidden, epsilon, .. } = model.config;
        let threads = self.threads.clone();
        let isa = threads.instruction_set();
        self.counters.passes += 1;
        self.work.resize(&model.config, tokens.len());
        self.turns(spans);
        for (token, row) in tokens.iter().zip(self.work.residual.chunks_exact_mut(hidden)) {
            model.embedding.row(*token as usize, row);
        }
        observer(0, &self.work.residual);
        for (index, layer) in model.layers.iter().enumerate() {
            threads.inside(tokens.len() * layer.n_weights(), || {
                self.attention(index, layer, spans, kv);
                self.mlp(layer);
            });
            observer(index + 1, &self.work.residual);
        }
        kernels::rms_norm(isa, &self.work.residual, &model.norm, epsilon, &mut self.work.normed);
    }

    /// Cosines and sines of every row's position.
    fn turns(&mut self, spans: &[Span]) {
        let frequencies = &self.model.frequencies;
        let half = frequencies.len();
        for span in spans {
            for row in span.rows.clone() {
                let position = span.position + row - span.rows.start;
                let at = row * half..(row + 1) * half;
                Rope::turn(frequencies, position, &mut self.work.cosines[at.clone()], &mut self.work.sines[at]);
            }
        }
    }

    fn attention(&mut self, index: usize, layer: &Layer, spans: &[Span], kv: &mut Kv<'_>) {
        let config = &self.model.config;
        let work = &mut self.work;
        let (threads, isa) = (&self.threads, self.threads.instruction_set());
        kernels::rms_norm(isa, &work.residual, &layer.attention_norm, config.epsilon, &mut work.normed);
        let n_rows = work.residual.len() / config.hidden;
        multiply(
            threads,
            &mut work.linear,
            &work.normed,
            n_rows,
            &mut [
                product(&layer.query, &mut work.queries),
                product(&layer.key, &mut work.keys),
                product(&layer.value, &mut work.values),
            ],
        );
        let half = config.head_dim / 2;
        for (x, width) in [(&mut work.queries, config.query_width()), (&mut work.keys, config.kv_width())] {
            for (row, x) in x.chunks_exact_mut(width).enumerate() {
                let at = row * half..(row + 1) * half;
                kernels::rope(x, config.rope.pairs, &work.cosines[at.clone()], &work.sines[at]);
            }
        }
        let at = match kv {
            Kv::Pass => {
                Places { keys: &work.keys, values: &work.values, head: config.head_dim, row: config.kv_width() }
            }
            Kv::Cache(cache) => {
                let (head, row) = (cache.capacity * config.head_dim, config.head_dim);
                let KeysAndValues { keys, values } = &mut cache.layers[index];
                put_by_heads(keys, head, cache.length * row, &work.keys, row);
                put_by_heads(values, head, cache.length * row, &work.values, row);
                Places { keys, values, head, row }
            }
        };
        let window = config.windows.of_layer(index);
        let attend = Attend { config, isa, queries: &work.queries, at, window };
        attend.run(threads, spans, &mut work.attended);
        let change = &mut work.change;
        multiply(threads, &mut work.linear, &work.attended, n_rows, &mut [product(&layer.output, change)]);
        kernels::add(&mut work.residual, change);
    }

    fn mlp(&mut self, layer: &Layer) {
        let work = &mut self.work;
        let (threads, isa) = (&self.threads, self.threads.instruction_set());
        let Config { hidden, epsilon, .. } = self.model.config;
        let n_rows = work.residual.len() / hidden;
        kernels::rms_norm(isa, &work.residual, &layer.mlp_norm, epsilon, &mut work.normed);
        let mut products = [product(&layer.gate, &mut work.gate), product(&layer.up, &mut work.up)];
        multiply(threads, &mut work.linear, &work.normed, n_rows, &mut products);
        let up = &work.up;
        let cost = 8 * up.len();
        let part = up.len().div_ceil(4 * threads.count()).max(1024).next_multiple_of(crate::simd::LANES);
        let parts = work.gate.chunks_mut(part).zip(up.chunks(part)).collect();
        threads.each(parts, cost, || (), |(), (gate, up)| kernels::silu_mul(isa, gate, up));
        multiply(threads, &mut work.linear, &work.gate, n_rows, &mut [product(&layer.down, &mut work.change)]);
        kernels::add(&mut work.residual, &work.change);
    }

    /// Logits of some rows of the pass, a few rows at a time.
    fn head(&mut self, rows: Range<usize>, each: &mut dyn FnMut(usize, &[f32])) -> Result<(), Error> {
        const ROWS_AT_ONCE: usize = 48;
        let Config { hidden, vocabulary, .. } = self.model.config;
        let head = self.model.head.as_ref().unwrap_or(&self.model.embedding);
        self.counters.logit_rows += rows.len() as u64;
        if let Some(device) = &mut self.device {
            return device.head(&self.model.config, rows, each);
        }
        for first in rows.clone().step_by(ROWS_AT_ONCE) {
            let some = first..(first + ROWS_AT_ONCE).min(rows.end);
            let Work { normed, logits, linear, .. } = &mut self.work;
            logits.resize(some.len() * vocabulary, 0.0);
            let x = &normed[some.start * hidden..some.end * hidden];
            let product = Product { matrix: head, bias: None, out: logits };
            multiply(&self.threads, linear, x, some.len(), &mut [product]);
            for (row, logits) in some.zip(logits.chunks_exact(vocabulary)) {
                each(row, logits);
            }
        }
        Ok(())
    }
}

fn product<'a>(linear: &'a Linear, out: &'a mut Vec<f32>) -> Product<'a> {
    Product { matrix: &linear.matrix, bias: linear.bias.as_deref(), out }
}

impl Work {
    fn resize(&mut self, config: &Config, n_rows: usize) {
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
            buffer.resize(n_rows * width, 0.0);
        }
    }
}
