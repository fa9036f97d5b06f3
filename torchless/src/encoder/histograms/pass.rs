//! One pass over events: chunk by chunk, scores of the nominal and of varied inputs, and then the
//! weights of every histogram.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::score::CheckedScore;
use super::{BinSums, EventWeights, FillOptions, ScoreHistograms, WeightedEvents, of_variation};
use crate::cpu::Threads;
use crate::encoder::batch::{Group, ScratchPool, groups};
use crate::encoder::events::CheckedEvents;
use crate::encoder::ragged::EncoderEvents;
use crate::encoder::{Encoder, EncoderInput, RaggedInput};
use crate::error::{Error, HistogramProblem, InputProblem};

/// Events that fit the model, and what is filled of them.
pub(super) struct Pass<'a> {
    encoder: &'a Encoder,
    score: CheckedScore<'a>,
    edges: &'a [f64],
    options: &'a FillOptions,
    n_events: usize,
    /// The nominal inputs, and those of each variation that has some.
    input_sets: Vec<InputSet<'a>>,
    /// The nominal histogram, and one of each variation.
    histograms: Vec<Filling<'a>>,
}

/// Inputs of all events, of which a score is computed.
struct InputSet<'a> {
    /// The variation; None for the nominal inputs.
    variation: Option<&'a str>,
    dense: Vec<EncoderInput<'a>>,
    ragged: Vec<RaggedInput<'a>>,
}

/// What a histogram is filled with.
struct Filling<'a> {
    input_set: usize,
    weights: Option<EventWeights<'a>>,
}

/// A group of a chunk's events, and the places of its events among the edges.
struct ScoredGroup {
    input_set: usize,
    group: usize,
    places: Result<Vec<u32>, Error>,
}

/// Additions to exact sums that take as long as this many multiplications.
const ADDITION_COST: usize = 16;

impl<'a> Pass<'a> {
    /// Checks everything that can be checked before a score is computed.
    pub(super) fn new(
        encoder: &'a Encoder,
        histograms: &'a ScoreHistograms,
        scratches: &ScratchPool,
        events: &WeightedEvents<'a>,
        options: &'a FillOptions,
    ) -> Result<Pass<'a>, Error> {
        let nominal =
            InputSet { variation: None, dense: events.inputs.dense.to_vec(), ragged: events.inputs.ragged.to_vec() };
        let checked = CheckedEvents::new(&encoder.graph, nominal.events(), &options.encode)?;
        let score = CheckedScore::new(&histograms.score, encoder)?;
        let port = score.port(encoder);
        if checked.particle_axis(port).is_some() {
            return Err(HistogramProblem::OutputOfParticles { output: port.name.clone() }.into());
        }
        checked.check_mask(&options.encode)?;
        // Before anything is computed, and also if there are no events.
        if let Some(n_columns) = encoder.n_columns(scratches, &checked, &checked.first_group(), score.output) {
            score.check_columns(&port.name, n_columns)?;
        }
        let n_events = checked.n_events;
        drop(checked);
        check_weights(events.weights, n_events)?;
        let mut fillings = vec![Filling { input_set: 0, weights: events.weights }];
        let mut input_sets = vec![nominal];
        for variation in events.variations {
            check_weights(variation.weights, n_events).map_err(|problem| of_variation(variation.name, problem))?;
            let has_inputs = !(variation.dense.is_empty() && variation.ragged.is_empty());
            let input_set = if has_inputs { input_sets.len() } else { 0 };
            fillings.push(Filling { input_set, weights: variation.weights.or(events.weights) });
            if has_inputs {
                let set = InputSet::varied(&input_sets[0], variation);
                set.check(encoder, options, n_events).map_err(|error| of_variation(variation.name, error))?;
                input_sets.push(set);
            }
        }
        Ok(Pass { encoder, score, edges: &histograms.edges, options, n_events, input_sets, histograms: fillings })
    }

    /// Adds the weights of all events to `sums` (of every histogram).
    pub(super) fn fill(&self, threads: &Threads, scratches: &ScratchPool, sums: &mut [BinSums]) -> Result<(), Error> {
        let chunk_size = self.options.chunk_size.max(1);
        for start in (0..self.n_events).step_by(chunk_size) {
            let chunk = start..self.n_events.min(start.saturating_add(chunk_size));
            let places = self.places(threads, scratches, &chunk)?;
            let items: Vec<(&Filling<'_>, &mut BinSums)> = self.histograms.iter().zip(&mut *sums).collect();
            let cost = chunk.len().saturating_mul(items.len()).saturating_mul(ADDITION_COST);
            let add = |(): &mut (), (filling, sums): (&Filling<'_>, &mut BinSums)| {
                filling.add(&places[filling.input_set], &chunk, sums);
            };
            threads.each(items, cost, || (), add);
        }
        Ok(())
    }

    /// Returns, for each set of inputs, the place of every event of a chunk among the edges: 0
    /// below the first, B + 1 from the last on. Places of events of weight 0 have no meaning.
    fn places(&self, threads: &Threads, scratches: &ScratchPool, chunk: &Range<usize>) -> Result<Vec<Vec<u32>>, Error> {
        let shapes: Vec<Vec<Vec<usize>>> = self.input_sets.iter().map(|set| set.shapes(chunk.len())).collect();
        let parts: Vec<InputSet<'_>> =
            self.input_sets.iter().zip(&shapes).map(|(set, shapes)| set.part(shapes, chunk)).collect();
        // What was checked as a whole is checked again, since a part of it is computed.
        let checked =
            parts.iter().map(|part| CheckedEvents::new(&self.encoder.graph, part.events(), &self.options.encode));
        let checked: Vec<CheckedEvents<'_>> = checked.collect::<Result<_, _>>()?;
        let grouped: Vec<Vec<Group>> = checked
            .iter()
            .enumerate()
            .map(|(set, events)| groups(events, self.counted(set, chunk), self.options.encode.events_at_once))
            .collect();
        let tasks: Vec<(usize, usize)> = grouped
            .iter()
            .enumerate()
            .flat_map(|(set, groups)| (0..groups.len()).map(move |group| (set, group)))
            .collect();
        let found: Mutex<Vec<ScoredGroup>> = Mutex::new(Vec::with_capacity(tasks.len()));
        let cost = if tasks.len() > 1 { usize::MAX } else { 0 };
        threads.each(
            tasks,
            cost,
            || (),
            |(), (input_set, group)| {
                let places = self.places_of(scratches, &checked[input_set], &grouped[input_set][group], chunk.start);
                let scored = ScoredGroup { input_set, group, places };
                found.lock().unwrap_or_else(PoisonError::into_inner).push(scored);
            },
        );
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        // In one order, so that of several errors the same one is reported.
        found.sort_by_key(|scored| (scored.input_set, scored.group));
        let mut places = vec![vec![0; chunk.len()]; self.input_sets.len()];
        for ScoredGroup { input_set, group, places: of_group } in found {
            let of_group = of_group.map_err(|error| match self.input_sets[input_set].variation {
                Some(name) => of_variation(name, error),
                None => error,
            })?;
            let events = &grouped[input_set][group].events;
            events.iter().zip(of_group).for_each(|(&event, place)| places[input_set][event] = place);
        }
        Ok(places)
    }

    /// Returns the places of a group's events, in the order of the group.
    fn places_of(
        &self,
        scratches: &ScratchPool,
        events: &CheckedEvents<'_>,
        group: &Group,
        first: usize,
    ) -> Result<Vec<u32>, Error> {
        let mut scratch = scratches.take();
        let outputs = self.encoder.encode_group(&mut scratch, events, group);
        scratches.give_back(scratch);
        let scores = self.score.of(&outputs.map_err(|error| placed(error, first))?, group.events.len())?;
        let place = |(&event, score): (&usize, f64)| match score {
            score if score.is_nan() => Err(HistogramProblem::Score { event: first + event }.into()),
            score => Ok(place_of(self.edges, score) as u32),
        };
        group.events.iter().zip(scores).map(place).collect()
    }

    /// Returns the events of a chunk that have a weight other than 0 in a histogram of a set of
    /// inputs.
    fn counted(&self, input_set: usize, chunk: &Range<usize>) -> Vec<usize> {
        let mut is_counted = vec![false; chunk.len()];
        for filling in self.histograms.iter().filter(|filling| filling.input_set == input_set) {
            match filling.weights {
                None => return (0..chunk.len()).collect(),
                Some(EventWeights::F32(weights)) => {
                    is_counted.iter_mut().zip(&weights[chunk.clone()]).for_each(|(is, weight)| *is |= *weight != 0.0);
                }
                Some(EventWeights::F64(weights)) => {
                    is_counted.iter_mut().zip(&weights[chunk.clone()]).for_each(|(is, weight)| *is |= *weight != 0.0);
                }
            }
        }
        (0..chunk.len()).filter(|&event| is_counted[event]).collect()
    }
}

impl Filling<'_> {
    /// Adds the weights of a chunk's events at their `places`.
    fn add(&self, places: &[u32], chunk: &Range<usize>, sums: &mut BinSums) {
        let mut add = |place: u32, weight: f64| {
            if weight != 0.0 {
                sums[place as usize].add(weight);
            }
        };
        match self.weights {
            None => places.iter().for_each(|&place| add(place, 1.0)),
            Some(EventWeights::F32(weights)) => {
                let weights = &weights[chunk.clone()];
                places.iter().zip(weights).for_each(|(&place, &weight)| add(place, f64::from(weight)));
            }
            Some(EventWeights::F64(weights)) => {
                let weights = &weights[chunk.clone()];
                places.iter().zip(weights).for_each(|(&place, &weight)| add(place, weight));
            }
        }
    }
}

impl<'a> InputSet<'a> {
    /// Returns nominal inputs with those of a variation in their place.
    fn varied(nominal: &InputSet<'a>, variation: &super::Variation<'a>) -> InputSet<'a> {
        let own = variation.dense.iter().map(|input| input.name);
        let own: Vec<&str> = own.chain(variation.ragged.iter().map(|input| input.name)).collect();
        let dense = nominal.dense.iter().filter(|input| !own.contains(&input.name)).chain(variation.dense);
        let ragged = nominal.ragged.iter().filter(|input| !own.contains(&input.name)).chain(variation.ragged);
        InputSet { variation: Some(variation.name), dense: dense.copied().collect(), ragged: ragged.copied().collect() }
    }

    fn events(&self) -> EncoderEvents<'_> {
        EncoderEvents { dense: &self.dense, ragged: &self.ragged }
    }

    /// Refuses inputs that do not fit the model, each other, or the `n_events` nominal events.
    fn check(&self, encoder: &Encoder, options: &FillOptions, n_events: usize) -> Result<(), Error> {
        let checked = CheckedEvents::new(&encoder.graph, self.events(), &options.encode)?;
        checked.check_mask(&options.encode)?;
        let found = checked.n_events;
        if found != n_events {
            return Err(HistogramProblem::Events { found, expected: n_events }.into());
        }
        Ok(())
    }

    /// Returns the shapes of the dense inputs of `n_events`.
    fn shapes(&self, n_events: usize) -> Vec<Vec<usize>> {
        let cut = |input: &EncoderInput<'_>| {
            let mut shape = input.shape.to_vec();
            shape.iter_mut().take(1).for_each(|size| *size = n_events);
            shape
        };
        self.dense.iter().map(cut).collect()
    }

    /// Returns the inputs of a chunk of events, whose dense ones have `shapes`.
    fn part<'b>(&self, shapes: &'b [Vec<usize>], chunk: &Range<usize>) -> InputSet<'b>
    where
        'a: 'b,
    {
        let dense = self.dense.iter().zip(shapes).map(|(input, shape)| {
            let per_event: usize = shape.iter().skip(1).product();
            let values = input.values.part(chunk.start * per_event..chunk.end * per_event);
            EncoderInput { name: input.name, shape, values }
        });
        let ragged =
            self.ragged.iter().map(|input| RaggedInput { offsets: input.offsets.part(chunk.clone()), ..*input });
        InputSet { variation: self.variation, dense: dense.collect(), ragged: ragged.collect() }
    }
}

/// Returns an error of a chunk's events with the number that an event has among all.
fn placed(mut error: Error, first: usize) -> Error {
    if let Error::EncoderInput { problem: InputProblem::Index { event: Some(event), .. }, .. } = &mut error {
        *event += first;
    }
    error
}

/// Refuses weights that are not those of `n_events`, or that cannot be added.
fn check_weights(weights: Option<EventWeights<'_>>, n_events: usize) -> Result<(), HistogramProblem> {
    let Some(weights) = weights else { return Ok(()) };
    if weights.len() != n_events {
        return Err(HistogramProblem::Weights { found: weights.len(), expected: n_events });
    }
    let is_wrong = |weight: f64| !(weight * weight).is_finite();
    let wrong = match weights {
        EventWeights::F32(weights) => {
            let place = weights.iter().position(|weight| is_wrong(f64::from(*weight)));
            place.map(|event| (event, f64::from(weights[event])))
        }
        EventWeights::F64(weights) => {
            let place = weights.iter().position(|weight| is_wrong(*weight));
            place.map(|event| (event, weights[event]))
        }
    };
    match wrong {
        Some((event, weight)) => Err(HistogramProblem::Weight { event, weight }),
        None => Ok(()),
    }
}

/// Returns the place of a score among ascending edges of B bins: 0 below them, B + 1 above, and the
/// number of its bin, from 1, between them. An infinite last edge is in its bin, as an infinite
/// first one is.
fn place_of(edges: &[f64], score: f64) -> usize {
    let place = edges.partition_point(|edge| *edge <= score);
    if score == f64::INFINITY && edges.last() == Some(&score) { place - 1 } else { place }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::{Flow, InputValues, Score, Variation};

    #[test]
    fn variations_of_weights_alone_compute_no_score() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/encoders/mlp.onnx");
        let encoder = Encoder::open(folder).expect("a model");
        let x = [EncoderInput { name: "x", shape: &[2, 3], values: InputValues::F32(&[0.5; 6]) }];
        let weights = Some(EventWeights::F64(&[1.0, 0.0]));
        let variation = |name, dense, weights| Variation { name, dense, ragged: &[], weights };
        let variations = [variation("up", &[], weights), variation("both", &x, weights), variation("x", &x, None)];
        let histograms = ScoreHistograms::new(&[-9.0, 9.0], Score::default(), Flow::Drop).expect("edges");
        let inputs = EncoderEvents { dense: &x, ragged: &[] };
        let events = WeightedEvents { inputs, weights, variations: &variations };
        let (options, scratches) = (FillOptions::default(), ScratchPool::new());
        let pass = Pass::new(&encoder, &histograms, &scratches, &events, &options).expect("events that fit");
        assert_eq!(pass.histograms.iter().map(|filling| filling.input_set).collect::<Vec<_>>(), [0, 0, 1, 2]);
        assert_eq!(pass.input_sets.len(), 3);
        // Nor do events whose weight is 0.
        assert_eq!(pass.counted(0, &(0..2)), [0]);
    }

    #[test]
    fn infinite_scores_are_in_bins_that_end_there() {
        let (open, closed) = ([f64::NEG_INFINITY, 0.0, f64::INFINITY], [-1.0, 0.0, 1.0]);
        let scores = [f64::NEG_INFINITY, -0.5, 0.0, f64::INFINITY];
        assert_eq!(scores.map(|score| place_of(&open, score)), [1, 1, 2, 2]);
        assert_eq!(scores.map(|score| place_of(&closed, score)), [0, 1, 2, 3]);
    }
}
