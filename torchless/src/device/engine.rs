//! The forward pass on a device: weights, keys and values stay there; a pass costs one copy of
//! token ids and one of logits.
//!
//! Legend: T tokens of a pass, D width of a head. Launches are queued one after another, and only
//! the copy of the logits waits for them.

use std::ops::Range;

use ns_device::{Buffer, Device};

use super::launch::{Attend, Launcher, Product, TokenPlaces, Turn, Turned, check_head_dim, room_of_tiles};
use super::memory::{DeviceKvCache, DeviceMemoryPool, DeviceTensorBatch, KeysAndValues};
use super::weights::{
    DeviceLayer, DeviceMemory, JoinedLinear, Weights, estimate_device_memory, heads_of, joined_width, most_seen,
};
use crate::config::{Config, Rope};
use crate::error::Error;
use crate::model::{Model, Observer, Pass, Span};

/// The number of tokens whose logits are computed and copied at once.
pub(super) const LOGITS_AT_ONCE: usize = 48;

/// A model on a device.
#[derive(Debug)]
pub(crate) struct DeviceEngine {
    launcher: Launcher,
    pool: DeviceMemoryPool,
    weights: Weights,
    work: Option<Work>,
    turns: Turns,
    /// Tiles of attention that have blocks of their own.
    tiles: Buffer<f32>,
}

/// Rows of the tokens that are computed at once.
#[derive(Debug)]
struct Work {
    residual: DeviceTensorBatch,
    normed: DeviceTensorBatch,
    /// Queries, keys and values side by side; then gates and what they let through.
    joined: DeviceTensorBatch,
    queries: DeviceTensorBatch,
    attended: DeviceTensorBatch,
    /// Keys and values of whole sequences, which need no cache.
    pass: KeysAndValuesOfPass,
    gated: DeviceTensorBatch,
    logits: DeviceTensorBatch,
    /// Token ids, their positions, and the row of their sequence's first key: (3, T).
    places: Buffer<u32>,
}

#[derive(Debug)]
struct KeysAndValuesOfPass {
    keys: DeviceTensorBatch,
    values: DeviceTensorBatch,
}

/// Cosines and sines of every position: (positions, D).
#[derive(Debug)]
struct Turns {
    buffer: Buffer<f32>,
    positions: usize,
}

/// A cache that a pass adds to.
pub(crate) struct DeviceCache<'a> {
    pub(crate) kv: &'a mut DeviceKvCache,
    /// The number of positions that it has room for, for which angles are kept.
    pub(crate) capacity: usize,
}

/// The places of the tokens of a pass, one number for each.
struct Tokens {
    positions: Vec<u32>,
    /// The row of keys and values where the sequence of each token begins.
    starts: Vec<u32>,
}

impl Tokens {
    fn of(spans: &[Span]) -> Tokens {
        let each = || spans.iter().flat_map(|span| span.tokens.clone().map(move |token| (span, token)));
        let position = |(span, token): (&Span, usize)| (span.position + token - span.tokens.start) as u32;
        Tokens {
            positions: each().map(position).collect(),
            starts: each().map(|(span, _)| span.kv_row as u32).collect(),
        }
    }

    /// Returns one more than the last position.
    fn n_positions(&self) -> usize {
        self.positions.iter().max().map_or(0, |&last| last as usize + 1)
    }

    /// Returns the number of rows of keys and values up to the last that a token sees.
    fn kv_rows(&self) -> usize {
        let rows = self.starts.iter().zip(&self.positions);
        rows.map(|(&start, &position)| start as usize + position as usize + 1).max().unwrap_or(0)
    }
}

impl DeviceEngine {
    /// Uploads the model's weights, if they, the keys and values of `positions` and the work of
    /// `chunk` tokens fit.
    pub(crate) fn new(model: &Model, device: &Device, positions: usize, chunk: usize) -> Result<DeviceEngine, Error> {
        check_head_dim(model.config.head_dim)?;
        let DeviceMemory { weights, cache, work } = estimate_device_memory(model, positions, chunk);
        let (needed, available) = (weights.saturating_add(cache).saturating_add(work), device.memory()?.free);
        if needed > available {
            return Err(Error::Memory { needed, weights, cache, available });
        }
        Ok(DeviceEngine {
            launcher: Launcher::new(device.clone())?,
            pool: DeviceMemoryPool::new(device.clone()),
            weights: Weights::upload(device, model)?,
            work: None,
            turns: Turns { buffer: device.uninitialised(0)?, positions: 0 },
            tiles: device.uninitialised(0)?,
        })
    }

    pub(crate) fn pool(&self) -> &DeviceMemoryPool {
        &self.pool
    }

    /// Computes all layers and leaves the normed residual stream on the device. Keys and values go
    /// to the cache, or live for this pass only. An observer receives copies of the residual
    /// stream, which costs waits.
    pub(crate) fn pass(
        &mut self,
        model: &Model,
        pass: Pass<'_>,
        mut cache: Option<DeviceCache<'_>>,
        mut observer: Option<Observer<'_>>,
    ) -> Result<(), Error> {
        let config = &model.config;
        let (n_tokens, places) = (pass.tokens.len(), Tokens::of(pass.spans));
        let (n_positions, kv_rows) = (places.n_positions(), places.kv_rows());
        let capacity = cache.as_ref().map_or(n_positions, |cache| cache.capacity);
        self.grow(config, n_tokens)?;
        self.turns.grow(&self.pool, model, capacity)?;
        self.grow_tiles(config, n_tokens, capacity)?;
        let (launcher, turns, tiles) = (&self.launcher, &self.turns.buffer, &mut self.tiles);
        let Some(work) = &mut self.work else { return Err(Error::NoTokens) };
        work.places.upload(&[pass.tokens, &places.positions, &places.starts].concat())?;
        launcher.embedding(&self.weights.embedding, &work.places, n_tokens, &mut work.residual.buffer)?;
        show(&mut observer, 0, &work.residual, n_tokens)?;
        for (index, layer) in self.weights.layers.iter().enumerate() {
            let window = config.windows.of_layer(index);
            let step = Step { launcher, layer, config, n_tokens, n_positions, kv_rows, turns, window };
            // With a cache there is one sequence.
            let cache = cache.as_mut().map(|cache| (&mut cache.kv.layers[index], pass.spans[0].position));
            step.attention(work, tiles, cache)?;
            step.mlp(work)?;
            show(&mut observer, index + 1, &work.residual, n_tokens)?;
        }
        launcher.norm(&work.residual.buffer, &self.weights.norm, config.epsilon, n_tokens, &mut work.normed.buffer)
    }

    /// Calls `each` with the logits of some tokens of the last pass, each copied once.
    pub(crate) fn head(
        &mut self,
        config: &Config,
        tokens: Range<usize>,
        each: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), Error> {
        let Some(work) = &mut self.work else { return Err(Error::NoTokens) };
        let mut logits = vec![0.0; tokens.len().min(LOGITS_AT_ONCE) * config.vocabulary];
        for first in tokens.clone().step_by(LOGITS_AT_ONCE) {
            let some = first..(first + LOGITS_AT_ONCE).min(tokens.end);
            let product = Product {
                x_offset: first * config.hidden,
                ..Product::new(self.weights.head(), &work.normed.buffer, some.len())
            };
            self.launcher.product(product, &mut work.logits.buffer)?;
            let here = &mut logits[..some.len() * config.vocabulary];
            work.logits.download(here)?;
            for (token, logits) in some.zip(here.chunks_exact(config.vocabulary)) {
                each(token, logits);
            }
        }
        Ok(())
    }

    /// Makes room for T rows.
    fn grow(&mut self, config: &Config, n_tokens: usize) -> Result<(), Error> {
        if self.work.as_ref().is_some_and(|work| work.residual.n_batch() >= n_tokens) {
            return Ok(());
        }
        // What was there goes back to the pool first.
        self.work = None;
        let batch = |width| self.pool.batch(n_tokens, width);
        self.work = Some(Work {
            residual: batch(config.hidden)?,
            normed: batch(config.hidden)?,
            joined: batch(joined_width(config))?,
            queries: batch(config.query_width())?,
            attended: batch(config.query_width())?,
            pass: KeysAndValuesOfPass { keys: batch(config.kv_width())?, values: batch(config.kv_width())? },
            gated: batch(config.intermediate)?,
            logits: self.pool.batch(n_tokens.min(LOGITS_AT_ONCE), config.vocabulary)?,
            places: self.pool.items(&vec![0; 3 * n_tokens])?,
        });
        Ok(())
    }

    /// Makes room for the tiles of a pass, and of all later ones of up to `n_tokens` tokens.
    fn grow_tiles(&mut self, config: &Config, n_tokens: usize, capacity: usize) -> Result<(), Error> {
        let length = room_of_tiles(heads_of(config), n_tokens, most_seen(config, capacity));
        if self.tiles.len() < length {
            // What was there goes back to the pool first.
            self.tiles = self.pool.device().uninitialised(0)?;
            self.tiles = self.pool.device().uninitialised(length)?;
        }
        Ok(())
    }
}

fn show(
    observer: &mut Option<Observer<'_>>,
    layer: usize,
    rows: &DeviceTensorBatch,
    n_tokens: usize,
) -> Result<(), Error> {
    if let Some(observer) = observer {
        let mut copy = vec![0.0; n_tokens * rows.width()];
        rows.download(&mut copy)?;
        observer(layer, &copy);
    }
    Ok(())
}

impl Turns {
    /// Computes the angles of all positions below `positions`, in double precision.
    fn grow(&mut self, pool: &DeviceMemoryPool, model: &Model, positions: usize) -> Result<(), Error> {
        if self.positions >= positions {
            return Ok(());
        }
        let head_dim = model.config.head_dim;
        let mut turns = vec![0.0; positions * head_dim];
        for (position, row) in turns.chunks_exact_mut(head_dim).enumerate() {
            let (cosines, sines) = row.split_at_mut(head_dim / 2);
            Rope::turn(&model.frequencies, position, cosines, sines);
        }
        *self = Turns { buffer: pool.items(&turns)?, positions };
        Ok(())
    }
}

/// One layer of one pass.
struct Step<'a> {
    launcher: &'a Launcher,
    layer: &'a DeviceLayer,
    config: &'a Config,
    n_tokens: usize,
    n_positions: usize,
    kv_rows: usize,
    turns: &'a Buffer<f32>,
    window: Option<usize>,
}

impl Step<'_> {
    fn attention(
        &self,
        work: &mut Work,
        tiles: &mut Buffer<f32>,
        cache: Option<(&mut KeysAndValues, usize)>,
    ) -> Result<(), Error> {
        let Step { launcher, layer, config, n_tokens, n_positions, kv_rows, .. } = *self;
        let Config { n_heads, n_kv_heads, head_dim, .. } = *config;
        let norm = &layer.attention_norm;
        launcher.norm(&work.residual.buffer, norm, config.epsilon, n_tokens, &mut work.normed.buffer)?;
        let (keys, values, kv_row) = match cache {
            Some((layer, first)) => (&mut layer.keys.buffer, &mut layer.values.buffer, first),
            None => (&mut work.pass.keys.buffer, &mut work.pass.values.buffer, 0),
        };
        self.product(&layer.attention, &work.normed.buffer, false, &mut work.joined.buffer)?;
        let turn =
            Turn { n_rows: n_tokens, n_heads, n_kv_heads, head_dim, pairs: config.rope.pairs, kv_row, n_positions };
        let to = Turned { queries: &mut work.queries.buffer, keys, values };
        launcher.rope(
            turn,
            &work.joined.buffer,
            self.turns,
            TokenPlaces { places: &work.places, offset: n_tokens },
            to,
        )?;
        let attend = Attend {
            heads: heads_of(config),
            n_rows: n_tokens,
            n_positions,
            kv_rows,
            window: self.window,
            scale: (1.0 / (head_dim as f64).sqrt()) as f32,
            places: TokenPlaces { places: &work.places, offset: n_tokens },
            queries: &work.queries.buffer,
            keys,
            values,
        };
        launcher.attention(attend, tiles, &mut work.attended.buffer)?;
        self.product(&layer.output, &work.attended.buffer, true, &mut work.residual.buffer)
    }

    fn mlp(&self, work: &mut Work) -> Result<(), Error> {
        let Step { launcher, layer, config, n_tokens, .. } = *self;
        let norm = &layer.mlp_norm;
        launcher.norm(&work.residual.buffer, norm, config.epsilon, n_tokens, &mut work.normed.buffer)?;
        self.product(&layer.gated, &work.normed.buffer, false, &mut work.joined.buffer)?;
        launcher.silu_mul(&work.joined.buffer, n_tokens, config.intermediate, &mut work.gated.buffer)?;
        self.product(&layer.down, &work.gated.buffer, true, &mut work.residual.buffer)
    }

    /// Computes out (T, outputs) = the products of `linear`'s parts, or adds them to it; a launch
    /// for each part.
    fn product(&self, linear: &JoinedLinear, x: &Buffer<f32>, adds: bool, out: &mut Buffer<f32>) -> Result<(), Error> {
        let mut out_offset = 0;
        for part in &linear.parts {
            let (bias, out_stride) = (part.bias.as_ref(), linear.rows);
            let product =
                Product { bias, out_offset, out_stride, adds, ..Product::new(&part.matrix, x, self.n_tokens) };
            self.launcher.product(product, out)?;
            out_offset += part.matrix.rows;
        }
        Ok(())
    }
}
