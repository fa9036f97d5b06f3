//! The engine: tokens in, logits out, on the CPU or on a device, with the same bits for any number
//! of tokens at once.
//!
//! What computes is one of two: `cpu::CpuEngine` or `device::DeviceEngine`. Here is what both have
//! in common: what may be asked, passes of at most a chunk of tokens, caches and counters.

mod kv_cache;

use std::ops::Range;
use std::sync::Arc;

use ns_device::Device;

use crate::cpu::integers::Activations;
use crate::cpu::{CpuEngine, Threads};
use crate::device::{DeviceCache, DeviceEngine, DeviceMemoryPool};
use crate::error::Error;
use crate::model::{Model, Observer, Pass, Span, check_tokens};
pub use kv_cache::KvCache;
use kv_cache::Storage;

/// Which rows of logits are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogitRows {
    /// That of the last token.
    Last,
    /// Those of all tokens.
    All,
}

/// What an engine did: it shows where the work was done.
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

/// Computes a model on the CPU, or on a device.
///
/// ```no_run
/// use std::sync::Arc;
/// use torchless::{Engine, LogitRows, Model, Threads};
/// let mut engine = Engine::new(Arc::new(Model::open("model")?), Threads::new(0));
/// let mut cache = engine.cache(16)?;
/// let first = engine.logits(&mut cache, &[8, 3], LogitRows::Last)?;
/// let second = engine.logits(&mut cache, &[3], LogitRows::Last)?;
/// assert_eq!(cache.len(), 3);
/// # Ok::<(), torchless::Error>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    model: Arc<Model>,
    threads: Threads,
    /// The most tokens of a pass.
    chunk: usize,
    counters: EngineCounters,
    processor: Processor,
}

/// What computes the passes.
#[derive(Debug)]
enum Processor {
    Cpu(Box<CpuEngine>),
    Device(Box<DeviceEngine>),
}

impl Engine {
    /// The number of tokens of a pass by default.
    pub const DEFAULT_CHUNK: usize = 192;
    /// The number of tokens of a pass over whole sequences, as `score` makes them, by default.
    pub const DEFAULT_SEQUENCE_TOKENS: usize = 1024;

    /// Returns an engine that computes `model` on the CPU.
    pub fn new(model: Arc<Model>, threads: Threads) -> Engine {
        let processor = Processor::Cpu(Box::new(CpuEngine::new(threads.clone())));
        Engine { model, threads, chunk: Self::DEFAULT_CHUNK, counters: EngineCounters::default(), processor }
    }

    /// Returns an engine that computes `model` on a device that
    /// [`device::open`](crate::device::open) gave. The weights are uploaded once, and stay.
    ///
    /// # Errors
    ///
    /// More memory than the device has for the weights and the keys and values of `positions`,
    /// before anything is uploaded.
    pub fn on_device(model: Arc<Model>, device: &Device, positions: usize) -> Result<Engine, Error> {
        // Without positions, whole sequences are computed, as many at once as `score` takes.
        let chunk = if positions == 0 { Self::DEFAULT_SEQUENCE_TOKENS } else { Self::DEFAULT_CHUNK };
        Ok(Engine::on_device_with_chunk(model, device, positions, chunk)?.with_chunk(Self::DEFAULT_CHUNK))
    }

    /// Returns an engine on a device as [`Engine::on_device`] does, with memory for passes of at
    /// most `chunk` tokens.
    pub fn on_device_with_chunk(
        model: Arc<Model>,
        device: &Device,
        positions: usize,
        chunk: usize,
    ) -> Result<Engine, Error> {
        let on_device = DeviceEngine::new(&model, device, positions.min(model.config.context), chunk)?;
        let processor = Processor::Device(Box::new(on_device));
        let (threads, counters) = (Threads::new(1), EngineCounters::default());
        Ok(Engine { model, threads, chunk: chunk.max(1), counters, processor })
    }

    /// Returns the memory of the device that computes, with its counters, or none if the CPU does.
    pub fn device_pool(&self) -> Option<&DeviceMemoryPool> {
        match &self.processor {
            Processor::Cpu(_) => None,
            Processor::Device(device) => Some(device.pool()),
        }
    }

    /// Returns the engine with at most `chunk` tokens to a pass; this changes no bit of any result.
    #[must_use]
    pub fn with_chunk(mut self, chunk: usize) -> Engine {
        self.chunk = chunk.max(1);
        self
    }

    /// Returns the engine with products that see their inputs as `activations` say.
    ///
    /// # Errors
    ///
    /// Rounded ones on a device: only the CPU has them.
    pub fn with_activations(mut self, activations: Activations) -> Result<Engine, Error> {
        match &mut self.processor {
            Processor::Cpu(cpu) => cpu.set_activations(activations),
            Processor::Device(_) if activations == Activations::Exact => {}
            Processor::Device(device) => {
                return Err(Error::ExactOnly { device: device.pool().device().backend().name() });
            }
        }
        Ok(self)
    }

    /// Returns what products see of their inputs.
    pub fn activations(&self) -> Activations {
        match &self.processor {
            Processor::Cpu(cpu) => cpu.activations(),
            Processor::Device(_) => Activations::Exact,
        }
    }

    /// Returns the model that it computes.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Returns the threads of the host: one for an engine on a device.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Returns what it did so far.
    pub fn counters(&self) -> EngineCounters {
        self.counters
    }

    /// Returns a cache with room for `positions`, where the engine computes.
    pub fn cache(&self, positions: usize) -> Result<KvCache, Error> {
        match &self.processor {
            Processor::Cpu(_) => KvCache::within(&self.model.config, positions, self.model.memory_limit()),
            Processor::Device(device) => KvCache::on_device(device.pool(), &self.model.config, positions),
        }
    }

    /// Continues the sequence of `cache` with `tokens`, and returns logits (rows, vocabulary), row
    /// by row.
    ///
    /// # Errors
    ///
    /// No tokens, tokens that the model does not know, or more than the cache has room for; the
    /// cache is then as it was.
    pub fn logits(&mut self, cache: &mut KvCache, tokens: &[u32], rows: LogitRows) -> Result<Vec<f32>, Error> {
        let mut all = Vec::new();
        self.each_logits(cache, tokens, rows, &mut |_, logits| all.extend_from_slice(logits))?;
        Ok(all)
    }

    /// Continues the sequence of `cache`, and calls `each` with every row of logits and the place
    /// of its token in `tokens`.
    pub fn each_logits(
        &mut self,
        cache: &mut KvCache,
        tokens: &[u32],
        rows: LogitRows,
        each: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), Error> {
        self.each_pass(cache, tokens, rows, each, None)
    }

    /// Continues the sequence of `cache` as [`Engine::each_logits`] does, and calls `observer` with
    /// the residual stream of every pass.
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
        self.check_cache(cache)?;
        let (asked, limit) = (cache.len() + tokens.len(), cache.capacity().min(self.model.config.context));
        if asked > limit {
            return Err(Error::ContextOverflow { asked, limit });
        }
        cache.attempt(|cache| {
            for (index, chunk) in tokens.chunks(self.chunk).enumerate() {
                let first = index * self.chunk;
                let spans = [Span { tokens: 0..chunk.len(), position: cache.len(), kv_row: 0 }];
                // Reborrowed with the type that says that it may be called again.
                let observer = observer.as_mut().map(|observer| &mut **observer as Observer<'_>);
                self.pass(Pass { tokens: chunk, spans: &spans }, Some(cache), observer)?;
                cache.extend(chunk.len());
                let is_last = first + chunk.len() == tokens.len();
                let wanted = match rows {
                    LogitRows::All => 0..chunk.len(),
                    LogitRows::Last if is_last => chunk.len() - 1..chunk.len(),
                    LogitRows::Last => continue,
                };
                self.head(wanted, &mut |token, logits| each(first + token, logits))?;
            }
            Ok(())
        })
    }

    /// Computes whole sequences at once, each from position 0, and calls `each` with every row of
    /// logits, its sequence and its position.
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
            spans.push(Span { tokens: first..tokens.len(), position: 0, kv_row: first });
            places.extend((0..sequence.len()).map(|position| (index, position)));
        }
        if tokens.is_empty() {
            return Ok(());
        }
        self.pass(Pass { tokens: &tokens, spans: &spans }, None, None)?;
        self.head(0..tokens.len(), &mut |token, logits| each(places[token].0, places[token].1, logits))
    }

    fn check(&self, tokens: &[u32]) -> Result<(), Error> {
        if tokens.is_empty() {
            return Err(Error::NoTokens);
        }
        check_tokens(self.model.config.vocabulary, tokens)
    }

    /// Refuses a cache that is elsewhere, or of a model of other sizes.
    fn check_cache(&self, cache: &KvCache) -> Result<(), Error> {
        match (&self.processor, &cache.storage) {
            (Processor::Cpu(_), Storage::Cpu(_)) | (Processor::Device(_), Storage::Device(_)) => {
                cache.check(&self.model.config)
            }
            _ => Err(Error::CacheElsewhere),
        }
    }

    /// Computes all layers, and leaves the normed residual stream where they were computed.
    fn pass(
        &mut self,
        pass: Pass<'_>,
        cache: Option<&mut KvCache>,
        observer: Option<Observer<'_>>,
    ) -> Result<(), Error> {
        self.counters.tokens += pass.tokens.len() as u64;
        let capacity = cache.as_ref().map(|cache| cache.capacity());
        let storage = cache.map(|cache| &mut cache.storage);
        match (&mut self.processor, storage) {
            (Processor::Cpu(cpu), storage) => {
                let kv = match storage {
                    None => None,
                    Some(Storage::Cpu(kv)) => Some(kv),
                    Some(Storage::Device(_)) => return Err(Error::CacheElsewhere),
                };
                self.counters.passes += 1;
                cpu.pass(&self.model, pass, kv, observer.unwrap_or(&mut |_, _| ()));
                Ok(())
            }
            (Processor::Device(device), storage) => {
                let cache = match (storage, capacity) {
                    (Some(Storage::Device(kv)), Some(capacity)) => Some(DeviceCache { kv, capacity }),
                    (None, _) => None,
                    _ => return Err(Error::CacheElsewhere),
                };
                self.counters.device_passes += 1;
                device.pass(&self.model, pass, cache, observer)
            }
        }
    }

    /// Calls `each` with the logits of some tokens of the last pass.
    fn head(&mut self, tokens: Range<usize>, each: &mut dyn FnMut(usize, &[f32])) -> Result<(), Error> {
        self.counters.logit_rows += tokens.len() as u64;
        match &mut self.processor {
            Processor::Cpu(cpu) => {
                cpu.head(&self.model, tokens, each);
                Ok(())
            }
            Processor::Device(device) => device.head(&self.model.config, tokens, each),
        }
    }
}
