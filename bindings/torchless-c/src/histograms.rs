//! Histograms of a score, filled with events and their variations.

use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard, TryLockError};

use torchless::encoder::{
    ClassFraction, EncoderEvents, EncoderInput, EventWeights, FillOptions, Flow, InputValues, RaggedInput, Score,
    ScoreHistogram, ScoreHistograms, ScoreTransform, Variation, WeightedEvents,
};

use crate::border::{array, array_mut, call, numbers, object, text};
use crate::encode::{EventParts, Scratch, encode_options};
use crate::error::{CError, Failure};
use crate::model::Model;
use crate::types::{CScore, CVariation};

/// `torchless_histograms`.
#[derive(Debug)]
pub struct Histograms(Mutex<ScoreHistograms>);

impl Histograms {
    fn lock(&self) -> Result<MutexGuard<'_, ScoreHistograms>, Failure> {
        match self.0.try_lock() {
            Ok(histograms) => Ok(histograms),
            // A call that panicked added nothing.
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Failure::BusyHistograms),
        }
    }
}

/// Makes histograms.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_histograms_new(
    edges: *const f64,
    n_edges: usize,
    score: *const CScore,
    merges_flow: i32,
    histograms: *mut *mut Histograms,
    error: *mut *mut CError,
) -> i32 {
    call(error, || {
        // SAFETY: as the header says.
        let place = unsafe { array_mut("histograms", histograms, 1)? };
        place[0] = std::ptr::null_mut();
        // SAFETY: as the header says.
        let (edges, score) = unsafe { (array("edges", edges, n_edges)?, score_of(score)?) };
        let flow = match merges_flow {
            0 => Flow::Drop,
            1 => Flow::Merge,
            found => return Err(Failure::Flow { found }),
        };
        let made = ScoreHistograms::new(edges, score, flow)?;
        place[0] = Box::into_raw(Box::new(Histograms(Mutex::new(made))));
        Ok(())
    })
}

/// Frees histograms.
///
/// # Safety
///
/// As the header says: NULL, or histograms that no thread uses.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_histograms_free(histograms: *mut Histograms) {
    if !histograms.is_null() {
        // SAFETY: `torchless_histograms_new` has made it by `Box::into_raw`, and the caller gives
        // it back once.
        drop(unsafe { Box::from_raw(histograms) });
    }
}

/// Adds events and their variations.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_histograms_fill(
    histograms: *mut Histograms,
    model: *const Model,
    scratch: *mut Scratch,
    nominal: *const CVariation,
    variations: *const CVariation,
    n_variations: usize,
    mask: *const c_char,
    events_at_once: usize,
    error: *mut *mut CError,
) -> i32 {
    call(error, || {
        // SAFETY: as the header says.
        let (histograms, model, scratch) = unsafe {
            let histograms = object("the histograms", histograms.cast_const())?;
            (histograms, object("the model", model)?, object("the scratch", scratch.cast_const())?)
        };
        let (mut filled, memory) = (histograms.lock()?, scratch.lock()?);
        // SAFETY: as the header says.
        let (encode, nominal, variations) = unsafe {
            let nominal = GivenEvents::of("", object("the structure of nominal events", nominal)?)?;
            (encode_options(mask, events_at_once)?, nominal, varied(array("variations", variations, n_variations)?)?)
        };
        let options = FillOptions { encode, ..FillOptions::default() };
        let parts: Vec<Inputs<'_>> = variations.iter().map(GivenEvents::inputs).collect();
        let variations: Vec<Variation<'_>> =
            variations.iter().zip(&parts).map(|(given, inputs)| given.variation(inputs)).collect();
        let inputs = nominal.inputs();
        let inputs = EncoderEvents { dense: &inputs.dense, ragged: &inputs.ragged };
        let events = WeightedEvents { inputs, weights: nominal.weights, variations: &variations };
        Ok(filled.fill(&model.encoder, &memory.threads, &memory.pool, &events, &options)?)
    })
}

/// Writes the numbers of a histogram to the caller's memory.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_histogram(
    histograms: *mut Histograms,
    variation: *const c_char,
    values: *mut f64,
    variances: *mut f64,
    n_bins: usize,
    underflow: *mut f64,
    overflow: *mut f64,
    error: *mut *mut CError,
) -> i32 {
    call(error, || {
        // SAFETY: as the header says.
        let histograms = unsafe { object("the histograms", histograms.cast_const())? }.lock()?;
        // SAFETY: as the header says.
        let found = unsafe { histogram_of(&histograms, variation)? };
        let ScoreHistogram { values: sums, variances: squares, underflow: below, overflow: above } = found;
        if n_bins != sums.len() {
            return Err(Failure::Bins { found: n_bins, expected: sums.len() });
        }
        let parts = [("values", values, &sums[..], true), ("variances", variances, &squares, true)];
        let flows = [("underflow", underflow, &below[..], false), ("overflow", overflow, &above, false)];
        for (what, to, from, is_needed) in parts.into_iter().chain(flows) {
            if is_needed || !to.is_null() {
                // SAFETY: as the header says.
                unsafe { array_mut(what, to, from.len())? }.copy_from_slice(from);
            }
        }
        Ok(())
    })
}

/// Returns the nominal histogram for NULL, or that of a variation.
///
/// # Safety
///
/// The name is as the header says.
#[expect(unsafe_code, reason = "the border to C: a name")]
unsafe fn histogram_of(histograms: &ScoreHistograms, variation: *const c_char) -> Result<ScoreHistogram, Failure> {
    if variation.is_null() {
        return Ok(histograms.nominal());
    }
    // SAFETY: as the header says.
    let name = unsafe { text("the name of a variation", variation)? };
    let unknown = || Failure::UnknownVariation { name: name.to_owned(), known: histograms.names().to_vec() };
    histograms.variation(name).ok_or_else(unknown)
}

/// Returns a score of C; NULL is the number of the first column.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C: a score")]
unsafe fn score_of(score: *const CScore) -> Result<Score, Failure> {
    if score.is_null() {
        return Ok(Score::default());
    }
    // SAFETY: as the header says.
    let score = unsafe { object("the score", score)? };
    // SAFETY: as the header says.
    let against = unsafe { array("against", score.against, score.n_against)? };
    let classes = || against.iter().map(|one| ClassFraction { column: one.column, fraction: one.fraction }).collect();
    let transform = match score.transform {
        0 => ScoreTransform::Number,
        1 => ScoreTransform::Softmax,
        2 => ScoreTransform::LogRatio(classes()),
        3 => ScoreTransform::LogRatioOfProbabilities(classes()),
        found => return Err(Failure::Transform { found }),
    };
    if score.transform < 2 && !against.is_empty() {
        return Err(Failure::NoRatio);
    }
    // SAFETY: as the header says.
    let name = |name: *const c_char| unsafe { text("the output of the score", name) };
    let output = if score.output.is_null() { None } else { Some(name(score.output)?.to_owned()) };
    Ok(Score { output, column: score.column, transform })
}

/// Events of C, whose shapes and columns have a place.
struct GivenEvents<'a> {
    name: &'a str,
    parts: EventParts<'a>,
    weights: Option<EventWeights<'a>>,
}

/// Inputs as the library takes them.
struct Inputs<'a> {
    dense: Vec<EncoderInput<'a>>,
    ragged: Vec<RaggedInput<'a>>,
}

impl<'a> GivenEvents<'a> {
    /// Returns what `given` leads to.
    ///
    /// # Safety
    ///
    /// The pointers are as the header says, during `'a`.
    #[expect(unsafe_code, reason = "the border to C: events with weights")]
    unsafe fn of(name: &'a str, given: &CVariation) -> Result<GivenEvents<'a>, Failure> {
        // SAFETY: as the header says.
        let parts = unsafe { EventParts::of(&given.events)? };
        if given.weights.is_null() && given.n_weights == 0 {
            return Ok(GivenEvents { name, parts, weights: None });
        }
        // SAFETY: as the header says.
        let weights = match unsafe { numbers("weights", given.weights_type, given.weights, given.n_weights)? } {
            InputValues::F32(weights) => EventWeights::F32(weights),
            InputValues::F64(weights) => EventWeights::F64(weights),
            _ => return Err(Failure::WeightsType { found: given.weights_type }),
        };
        Ok(GivenEvents { name, parts, weights: Some(weights) })
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs { dense: self.parts.dense(), ragged: self.parts.ragged() }
    }

    fn variation<'b>(&'b self, inputs: &'b Inputs<'_>) -> Variation<'b> {
        Variation { name: self.name, dense: &inputs.dense, ragged: &inputs.ragged, weights: self.weights }
    }
}

/// Returns the variations of C; an error of one has its name.
///
/// # Safety
///
/// The pointers are as the header says, during `'a`.
#[expect(unsafe_code, reason = "the border to C: variations")]
unsafe fn varied<'a>(given: &[CVariation]) -> Result<Vec<GivenEvents<'a>>, Failure> {
    let one = |given: &CVariation| {
        // SAFETY: as the header says.
        let name = unsafe { text("the name of a variation", given.name)? };
        // SAFETY: as the header says.
        let read = unsafe { GivenEvents::of(name, given) };
        read.map_err(|failure| Failure::InVariation { name: name.to_owned(), source: Box::new(failure) })
    };
    given.iter().map(one).collect()
}
