//! Decoders that share weights and threads: each of sixteen gives the bits of one that is alone.
//!
//! `make torchless-sanitize` runs these tests, and those of encoders, under ThreadSanitizer.

use std::fmt::Debug;
use std::path::Path;
use std::sync::{Arc, Barrier};

use torchless::{Activations, Engine, LogitRows, Model, Threads};

use crate::random_model::{RandomModel, Stored};

const THREADS: usize = 16;

/// Does `work` in sixteen threads, which begin together; each must give what is expected.
pub(crate) fn in_sixteen_threads<T: PartialEq + Debug + Send + Sync>(expected: &T, work: impl Fn() -> T + Sync) {
    let start = Barrier::new(THREADS);
    let one = || {
        start.wait();
        work()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
        for thread in threads {
            assert!(thread.join().expect("no panic") == *expected, "other bits than one thread");
        }
    });
}

/// Returns the bits of the logits of a prompt, in passes of 7 tokens, and of a token after it.
fn logits(model: &Arc<Model>, threads: &Threads, activations: Activations) -> Vec<u32> {
    let engine = Engine::new(Arc::clone(model), threads.clone()).with_chunk(7);
    let mut engine = engine.with_activations(activations).expect("a processor");
    let mut cache = engine.cache(32).expect("a cache");
    let prompt: Vec<u32> = (0..23).map(|index| index * 37 % 70).collect();
    let found = [&prompt[..], &[5]].map(|part| engine.logits(&mut cache, part, LogitRows::All).expect("logits"));
    found.concat().iter().map(|value| value.to_bits()).collect()
}

fn check(path: &Path, activations: Activations) {
    let open = || Arc::new(Model::open(path).expect("a model"));
    let expected = logits(&open(), &Threads::new(1), activations);
    let (model, threads) = (open(), Threads::new(3));
    in_sixteen_threads(&expected, || logits(&model, &threads, activations));
}

#[test]
fn sixteen_engines_share_a_model_and_its_threads() {
    let shape = RandomModel { hidden: 64, heads: 4, head_dim: 16, intermediate: 96, ..RandomModel::new("llama") };
    let single = shape.clone().drawn();
    check(&single.write_folder("shared-f32", false, 2), Activations::Exact);
    let quantised = RandomModel { stored: Stored::Q8_0, ..shape }.drawn().write_gguf("shared-q8");
    check(&quantised, Activations::Exact);
    check(&quantised, Activations::Int8);
}
