//! Histograms of a score: nominal and of every variation of the events, filled in one pass.
//!
//! A variation has inputs of its own, weights of its own, or both; what it does not have is
//! nominal. The score is computed once for the nominal inputs and once for each variation with
//! inputs. Sums of weights and of their squares are exact until they are read, so that no bit
//! depends on threads, on chunks, on the order of events, or on how they are divided into calls.

mod exact;
mod pass;
mod score;

use exact::ExactSum;
use pass::Pass;
pub use score::{ClassFraction, Score, ScoreTransform};

use super::batch::{EncodeOptions, ScratchPool};
use super::ragged::EncoderEvents;
use super::{Encoder, EncoderInput, RaggedInput};
use crate::cpu::Threads;
use crate::error::{Error, HistogramProblem};

/// Events with weights, and their variations.
#[derive(Debug, Clone, Copy)]
pub struct WeightedEvents<'a> {
    /// The nominal inputs.
    pub inputs: EncoderEvents<'a>,
    /// The nominal weights; None for 1. An event of weight 0 counts nowhere, whatever its score.
    pub weights: Option<EventWeights<'a>>,
    /// The variations; their names differ.
    pub variations: &'a [Variation<'a>],
}

/// What a variation has of its own: inputs, weights, or both.
#[derive(Debug, Clone, Copy)]
pub struct Variation<'a> {
    /// Its name.
    pub name: &'a str,
    /// Inputs with one shape for all events, in place of the nominal ones of these names.
    pub dense: &'a [EncoderInput<'a>],
    /// Ragged inputs in place of the nominal ones of these names.
    pub ragged: &'a [RaggedInput<'a>],
    /// Weights in place of the nominal ones.
    pub weights: Option<EventWeights<'a>>,
}

/// A weight of each event.
#[derive(Debug, Clone, Copy)]
pub enum EventWeights<'a> {
    /// Single precision; sums have double precision anyway.
    F32(&'a [f32]),
    /// Double precision.
    F64(&'a [f64]),
}

/// How events are computed. No option changes a result.
#[derive(Debug, Clone)]
pub struct FillOptions {
    /// Events that are computed together, and the mask of particles.
    pub encode: EncodeOptions,
    /// Events whose scores are in memory at once.
    pub chunk_size: usize,
}

impl Default for FillOptions {
    fn default() -> FillOptions {
        FillOptions { encode: EncodeOptions::default(), chunk_size: 8192 }
    }
}

/// What happens to events outside of all bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// They are in no bin.
    #[default]
    Drop,
    /// They join the first and the last bin.
    Merge,
}

/// A histogram of B bins. Bin b has the scores from `edges[b]` (included) to `edges[b + 1]`
/// (excluded).
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreHistogram {
    /// Σw of the events of every bin (B).
    pub values: Vec<f64>,
    /// Σw² of the events of every bin (B).
    pub variances: Vec<f64>,
    /// Σw and Σw² below the first edge; 0 if they joined the first bin.
    pub underflow: [f64; 2],
    /// Σw and Σw² from the last edge on; 0 if they joined the last bin.
    pub overflow: [f64; 2],
}

/// Histograms of the score of events, which are filled by one call or by several.
///
/// ```
/// use torchless::encoder::{Encoder, EncoderEvents, EncoderInput, EventWeights, Flow, InputValues, ScratchPool};
/// use torchless::encoder::{FillOptions, Score, ScoreHistograms, Variation, WeightedEvents};
/// use torchless::Threads;
///
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/encoders"))?;
/// let model = Encoder::open("mlp.onnx")?; // x [batch, 3] in, 2 logits out
/// let x = [EncoderInput { name: "x", shape: &[2, 3], values: InputValues::F32(&[0.5, -1.0, 2.0, 0.0, 1.0, 0.0]) }];
/// let inputs = EncoderEvents { dense: &x, ragged: &[] };
/// let up = EventWeights::F64(&[1.5, 2.5]);
/// let variations = [Variation { name: "pileup_up", dense: &[], ragged: &[], weights: Some(up) }];
/// let events = WeightedEvents { inputs, weights: None, variations: &variations };
/// let mut histograms = ScoreHistograms::new(&[f64::NEG_INFINITY, f64::INFINITY], Score::default(), Flow::Drop)?;
/// histograms.fill(&model, &Threads::new(1), &ScratchPool::new(), &events, &FillOptions::default())?;
/// assert_eq!(histograms.nominal().values, [2.0]);
/// assert_eq!(histograms.variation("pileup_up").map(|up| up.values), Some(vec![4.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ScoreHistograms {
    edges: Vec<f64>,
    score: Score,
    flow: Flow,
    /// Names of the variations; None before the first events.
    names: Option<Vec<String>>,
    /// The nominal histogram and one of each variation.
    sums: Vec<BinSums>,
}

/// Exact sums of each bin of a histogram: the underflow, the bins, the overflow (B + 2).
type BinSums = Vec<WeightSums>;

/// Exact sums of weights and of their squares.
#[derive(Debug, Clone)]
struct WeightSums {
    weights: ExactSum,
    squares: ExactSum,
}

impl ScoreHistograms {
    /// The name that stands for the nominal histogram.
    pub const NOMINAL: &'static str = "nominal";

    /// Returns empty histograms with the `edges` of B bins (B + 1); the outer ones may be
    /// infinite, and are then in their bins.
    ///
    /// # Errors
    ///
    /// Edges that do not ascend, or fewer than two.
    pub fn new(edges: &[f64], score: Score, flow: Flow) -> Result<ScoreHistograms, Error> {
        if edges.len() < 2 {
            return Err(HistogramProblem::Edges { found: edges.len() }.into());
        }
        // NaN is above nothing.
        if let Some(place) = edges.windows(2).position(|pair| !matches!(pair, [lower, upper] if lower < upper)) {
            let [before, edge] = [edges[place], edges[place + 1]];
            return Err(HistogramProblem::Edge { place: place + 1, edge, before }.into());
        }
        let sums = vec![empty(edges.len() - 1)];
        Ok(ScoreHistograms { edges: edges.to_vec(), score, flow, names: None, sums })
    }

    /// Adds events. A call that fails adds none.
    ///
    /// All calls have variations of the same names.
    ///
    /// # Errors
    ///
    /// Those of [`Encoder::encode_events`]; a score of an output or a column that the model does
    /// not have; weights that are not finite, or not as many as events; a score that is NaN of an
    /// event whose weight is not 0. The error of a variation has its name.
    pub fn fill(
        &mut self,
        encoder: &Encoder,
        threads: &Threads,
        scratches: &ScratchPool,
        events: &WeightedEvents<'_>,
        options: &FillOptions,
    ) -> Result<(), Error> {
        let order = self.order(events.variations)?;
        let pass = Pass::new(encoder, self, scratches, events, options)?;
        let n_bins = self.edges.len() - 1;
        let mut sums = vec![empty(n_bins); 1 + events.variations.len()];
        pass.fill(threads, scratches, &mut sums)?;
        if self.names.is_none() {
            self.names = Some(events.variations.iter().map(|variation| variation.name.to_owned()).collect());
            self.sums = sums;
            return Ok(());
        }
        for (place, more) in std::iter::once(0).chain(order.into_iter().map(|place| place + 1)).zip(&sums) {
            self.sums[place].iter_mut().zip(more).for_each(|(sums, more)| sums.merge(more));
        }
        Ok(())
    }

    /// Returns the edges of the bins (B + 1).
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// Returns the names of the variations, in the order of the first events.
    pub fn names(&self) -> &[String] {
        self.names.as_deref().unwrap_or_default()
    }

    /// Returns the nominal histogram.
    pub fn nominal(&self) -> ScoreHistogram {
        self.histogram(0)
    }

    /// Returns the histogram of a variation, if there is one of this name.
    pub fn variation(&self, name: &str) -> Option<ScoreHistogram> {
        let place = self.names().iter().position(|other| other == name)?;
        Some(self.histogram(place + 1))
    }

    fn histogram(&self, index: usize) -> ScoreHistogram {
        let mut sums = self.sums[index].clone();
        let n_bins = sums.len() - 2;
        if self.flow == Flow::Merge {
            for (outside, bin) in [(0, 1), (n_bins + 1, n_bins)] {
                let flow = std::mem::replace(&mut sums[outside], WeightSums::ZERO);
                sums[bin].merge(&flow);
            }
        }
        let both = |sums: &WeightSums| [sums.weights.value(), sums.squares.value()];
        let bins: Vec<[f64; 2]> = sums[1..=n_bins].iter().map(both).collect();
        ScoreHistogram {
            values: bins.iter().map(|[value, _]| *value).collect(),
            variances: bins.iter().map(|[_, variance]| *variance).collect(),
            underflow: both(&sums[0]),
            overflow: both(&sums[n_bins + 1]),
        }
    }

    /// Returns the place of each variation among those of earlier events.
    fn order(&self, variations: &[Variation<'_>]) -> Result<Vec<usize>, Error> {
        for (index, variation) in variations.iter().enumerate() {
            let is_taken = variations[..index].iter().any(|other| other.name == variation.name);
            if is_taken || variation.name == ScoreHistograms::NOMINAL {
                return Err(of_variation(variation.name, HistogramProblem::Taken));
            }
            if variation.dense.is_empty() && variation.ragged.is_empty() && variation.weights.is_none() {
                return Err(of_variation(variation.name, HistogramProblem::Unchanged));
            }
        }
        let Some(names) = &self.names else { return Ok((0..variations.len()).collect()) };
        if let Some(name) = names.iter().find(|name| variations.iter().all(|variation| variation.name != **name)) {
            return Err(of_variation(name, HistogramProblem::Missing));
        }
        let place = |variation: &Variation<'_>| {
            let place = names.iter().position(|name| name == variation.name);
            place.ok_or_else(|| of_variation(variation.name, HistogramProblem::New))
        };
        variations.iter().map(place).collect()
    }
}

impl EventWeights<'_> {
    /// Returns how many there are.
    pub fn len(&self) -> usize {
        match self {
            EventWeights::F32(weights) => weights.len(),
            EventWeights::F64(weights) => weights.len(),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl WeightSums {
    const ZERO: WeightSums = WeightSums { weights: ExactSum::ZERO, squares: ExactSum::ZERO };

    fn add(&mut self, weight: f64) {
        self.weights.add(weight);
        self.squares.add(weight * weight);
    }

    fn merge(&mut self, other: &WeightSums) {
        self.weights.merge(&other.weights);
        self.squares.merge(&other.squares);
    }
}

/// Returns the sums of no events in `n_bins`.
fn empty(n_bins: usize) -> BinSums {
    vec![WeightSums::ZERO; n_bins + 2]
}

/// Returns the error of a variation.
fn of_variation(name: &str, error: impl Into<Error>) -> Error {
    Error::InVariation { name: crate::error::quoted(name), source: Box::new(error.into()) }
}
