//! Threads that share the work of one loop, and the instructions that they do it with.

use std::sync::Arc;

use rayon::prelude::*;

use super::integers::IntegerSet;
use crate::simd::InstructionSet;

/// More threads gain nothing and take seconds to start.
const MOST_THREADS: usize = 1024;

/// Multiplications that take about as long as waking a thread.
const WORTH_SHARING: usize = 1 << 15;

/// Threads that share work, and the instruction set that they work with.
#[derive(Debug, Clone)]
pub struct Threads {
    /// None for one thread: the caller's.
    pool: Option<Arc<rayon::ThreadPool>>,
    n_threads: usize,
    isa: InstructionSet,
    integers: IntegerSet,
}

impl Threads {
    /// Starts `n_threads`, but no more than 1024, or as many as the machine has if 0; one if the
    /// system gives no more.
    pub fn new(n_threads: usize) -> Threads {
        let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let n_threads = if n_threads == 0 { available() } else { n_threads.min(MOST_THREADS) };
        let build = || rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().ok().map(Arc::new);
        let pool = if n_threads > 1 { build() } else { None };
        let isa = InstructionSet::best();
        let n_threads = if pool.is_some() { n_threads } else { 1 };
        Threads { n_threads, pool, isa, integers: IntegerSet::best(isa) }
    }

    /// Returns the threads with another instruction set, for tests and measurements.
    #[must_use]
    pub fn with_instruction_set(mut self, isa: InstructionSet) -> Threads {
        self.isa = isa;
        self.integers = IntegerSet::best(isa);
        self
    }

    /// Returns the threads with other instructions for products of bytes, for tests and
    /// measurements.
    #[must_use]
    pub fn with_integer_set(mut self, integers: IntegerSet) -> Threads {
        self.integers = integers;
        self
    }

    /// Returns the number of threads.
    pub fn count(&self) -> usize {
        self.n_threads
    }

    /// Returns the instruction set that they use.
    pub fn instruction_set(&self) -> InstructionSet {
        self.isa
    }

    /// Returns the instructions that they multiply bytes with.
    pub fn integer_set(&self) -> IntegerSet {
        self.integers
    }

    /// Does `work` on one of the threads if that is worth it, so that parts it shares with the
    /// others begin without waking the pool again. `cost` is about the number of multiplications.
    pub(crate) fn inside<R: Send>(&self, cost: usize, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) if cost > WORTH_SHARING => pool.install(work),
            _ => work(),
        }
    }

    /// Does every item, on several threads if the whole is worth it: `cost` is about the number of
    /// multiplications.
    pub(crate) fn each<T: Send, S>(
        &self,
        items: Vec<T>,
        cost: usize,
        scratch: impl Fn() -> S + Sync + Send,
        work: impl Fn(&mut S, T) + Sync + Send,
    ) {
        match &self.pool {
            Some(pool) if cost > WORTH_SHARING && items.len() > 1 => {
                pool.install(|| items.into_par_iter().for_each_init(&scratch, |scratch, item| work(scratch, item)));
            }
            _ => {
                let mut scratch = scratch();
                items.into_iter().for_each(|item| work(&mut scratch, item));
            }
        }
    }
}
