//! Encoders that share weights, threads and scratches: each of sixteen callers gets the bits that
//! one thread computes with a model of its own.

use torchless::Threads;
use torchless::encoder::{
    Column, EncodeOptions, Encoder, EncoderEvents, EncoderOptions, EncoderOutput, Flow, GradientTarget, InputValues,
    Offsets, RaggedInput, ScratchPool, WeightStorage,
};

use super::histograms::{Division, Scorer, Sentences, bits, filled_by};
use super::models::{Case, inputs, run};
use super::ragged::{Jets, masked};
use crate::sharing::in_sixteen_threads;

/// Models, whether they have a mask of particles, and how their weights are stored.
const MODELS: [(&str, bool, WeightStorage); 8] = [
    ("part", true, WeightStorage::F32),
    ("part3_weights", true, WeightStorage::F32),
    ("text20", true, WeightStorage::F32),
    ("roberta_logits", false, WeightStorage::F32),
    ("image", false, WeightStorage::F32),
    ("vit_pooled", false, WeightStorage::F16),
    ("part2_weights", true, WeightStorage::Bf16),
    ("part_weights", true, WeightStorage::Int8),
];

/// A model, and what callers share beside it.
struct Shared {
    model: Encoder,
    threads: Threads,
    pool: ScratchPool,
}

impl Shared {
    fn new(case: &Case, weights: WeightStorage, threads: usize) -> Shared {
        let options = EncoderOptions { weights, ..EncoderOptions::default() };
        let model = Encoder::open_with(&case.path, &options).expect("a model");
        Shared { model, threads: Threads::new(threads), pool: ScratchPool::new() }
    }

    fn encode(&self, events: EncoderEvents<'_>, options: &EncodeOptions) -> Vec<u64> {
        bits_of(&self.model.encode_events(&self.threads, &self.pool, events, options).expect("outputs"))
    }
}

fn bits_of(outputs: &[EncoderOutput]) -> Vec<u64> {
    outputs.iter().flat_map(|output| output.values.to_f64()).map(f64::to_bits).collect()
}

fn options(has_mask: bool) -> EncodeOptions {
    EncodeOptions { events_at_once: 3, ..if has_mask { masked() } else { EncodeOptions::default() } }
}

#[test]
fn sixteen_threads_share_a_model_in_every_form_of_weights() {
    for (name, has_mask, weights) in MODELS {
        let case = Case::of(name);
        // Callers have a scratch of their own, and take one of those that all share.
        let both = |shared: &Shared| {
            let inputs = inputs(&case.inputs);
            let events = EncoderEvents { dense: &inputs, ragged: &[] };
            (run(&shared.model, &case.inputs), shared.encode(events, &options(has_mask)))
        };
        let expected = both(&Shared::new(&case, weights, 1));
        let shared = Shared::new(&case, weights, 3);
        in_sixteen_threads(&expected, || both(&shared));
    }
}

#[test]
fn sixteen_threads_share_a_model_for_ragged_events_and_gradients() {
    for (name, weights) in [("part", WeightStorage::F32), ("part3", WeightStorage::F16)] {
        let (case, jets) = (Case::of(name), Jets::of(name));
        let offsets = jets.offsets(0);
        let rows = [jets.rows("x", 5), jets.rows("v", 4)];
        let [x, v] = [Column::of_rows(InputValues::F32(&rows[0]), 5), Column::of_rows(InputValues::F32(&rows[1]), 4)];
        let ragged = [("x", &x[..]), ("v", &v[..])];
        let ragged = ragged.map(|(name, columns)| RaggedInput { name, offsets: Offsets::I64(&offsets), columns });
        let events = EncoderEvents { dense: &[], ragged: &ragged };
        let target = GradientTarget::Column { output: None, column: 1 };
        let both = |shared: &Shared| {
            let Shared { model, threads, pool } = shared;
            let outputs = shared.encode(events, &options(true));
            let found = model.gradients(threads, pool, events, &target, &options(true)).expect("gradients");
            let gradients = found.inputs.iter().flat_map(|gradient| &gradient.values).map(|value| value.to_bits());
            (outputs, bits_of(&found.outputs), gradients.collect::<Vec<u64>>())
        };
        let expected = both(&Shared::new(&case, weights, 1));
        let shared = Shared::new(&case, weights, 3);
        in_sixteen_threads(&expected, || both(&shared));
    }
}

#[test]
fn sixteen_threads_fill_histograms_with_one_model() {
    let sentences = Sentences::new(60);
    let division = Division { threads: 3, chunk_size: 16, events_at_once: 4, call: 30 };
    let fill = |scorer: &Scorer| bits(&filled_by(scorer, &sentences, Flow::Merge, division));
    let expected = fill(&Scorer::new(1));
    let scorer = Scorer::new(division.threads);
    in_sixteen_threads(&expected, || fill(&scorer));
}
