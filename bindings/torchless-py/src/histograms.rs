//! Histograms of a score, and the events that they are filled with.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use torchless::encoder::{
    ClassFraction, Column, EncodeOptions, EncoderEvents, EncoderInput, EventWeights, FillOptions, Flow, RaggedInput,
    Score, ScoreHistogram, ScoreHistograms, ScoreTransform, Variation, WeightedEvents,
};

use crate::encoder::RawEncoder;
use crate::error::{self, input_error};
use crate::inputs::{GivenDense, GivenRagged, InputArrays};

/// Histograms of a score.
#[pyclass(module = "torchless._torchless", frozen)]
pub(crate) struct RawHistograms(Mutex<ScoreHistograms>);

/// A score as Python gives it: its output, column, transform, and columns with fractions.
type GivenScore = (Option<String>, usize, String, Vec<(usize, f64)>);

/// Events as Python gives them: inputs, ragged inputs, and weights.
type GivenEvents<'py> = (Vec<GivenDense<'py>>, Vec<GivenRagged<'py>>, Option<Bound<'py, PyAny>>);

/// How events are computed: the mask, events at once, events of a chunk, and threads.
type GivenOptions = (Option<String>, usize, usize, usize);

/// Sums of weights and of squares: of the bins, below them, and above them.
type HistogramParts<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, [f64; 2], [f64; 2]);

#[pymethods]
impl RawHistograms {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "what Python passes is made for the call")]
    fn new(py: Python<'_>, edges: Vec<f64>, score: GivenScore, merge: bool) -> PyResult<RawHistograms> {
        let (output, column, transform, against) = score;
        let classes = || against.iter().map(|&(column, fraction)| ClassFraction { column, fraction }).collect();
        let transform = match transform.as_str() {
            "softmax" => ScoreTransform::Softmax,
            "log_ratio" => ScoreTransform::LogRatio(classes()),
            "log_ratio_of_probabilities" => ScoreTransform::LogRatioOfProbabilities(classes()),
            _ => ScoreTransform::Number,
        };
        let score = Score { output, column, transform };
        let flow = if merge { Flow::Merge } else { Flow::Drop };
        let histograms = ScoreHistograms::new(&edges, score, flow).map_err(|error| error::library(py, &error))?;
        Ok(RawHistograms(Mutex::new(histograms)))
    }

    fn fill<'py>(
        &self,
        py: Python<'py>,
        model: &RawEncoder,
        events: GivenEvents<'py>,
        variations: Vec<(String, GivenEvents<'py>)>,
        options: GivenOptions,
    ) -> PyResult<()> {
        let (mask, events_at_once, chunk_size, threads) = options;
        let options = FillOptions { encode: EncodeOptions { events_at_once, mask }, chunk_size };
        let nominal = EventArrays::new(events)?;
        let varied = variations.into_iter().map(|(name, events)| {
            let arrays = EventArrays::new(events).map_err(|raised| error::in_variation(py, &name, raised))?;
            Ok((name, arrays))
        });
        let varied: Vec<(String, EventArrays<'py>)> = varied.collect::<PyResult<_>>()?;
        let columns = nominal.inputs.columns(py)?;
        let nominal = nominal.read(py, &columns)?;
        let all_columns = varied
            .iter()
            .map(|(name, arrays)| arrays.inputs.columns(py).map_err(|raised| error::in_variation(py, name, raised)));
        let all_columns = all_columns.collect::<PyResult<Vec<_>>>()?;
        let read = varied.iter().zip(&all_columns).map(|((name, arrays), columns)| {
            arrays.read(py, columns).map_err(|raised| error::in_variation(py, name, raised))
        });
        let read = read.collect::<PyResult<Vec<_>>>()?;
        let variations: Vec<Variation<'_>> = varied
            .iter()
            .zip(&read)
            .map(|((name, _), read)| Variation {
                name,
                dense: &read.dense,
                ragged: &read.ragged,
                weights: read.weights,
            })
            .collect();
        let inputs = EncoderEvents { dense: &nominal.dense, ragged: &nominal.ragged };
        let events = WeightedEvents { inputs, weights: nominal.weights, variations: &variations };
        let filled = py.detach(|| {
            let threads = model.threads(threads);
            self.lock().fill(&model.encoder, &threads, &model.scratches, &events, &options)
        });
        filled.map_err(|error| error::library(py, &error))
    }

    fn names(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.lock().names().to_vec())
    }

    /// Returns the nominal histogram, or that of a variation.
    fn histogram<'py>(&self, py: Python<'py>, variation: Option<&str>) -> Option<HistogramParts<'py>> {
        let found = py.detach(|| match variation {
            Some(name) => self.lock().variation(name),
            None => Some(self.lock().nominal()),
        });
        let ScoreHistogram { values, variances, underflow, overflow } = found?;
        Some((PyArray1::from_vec(py, values), PyArray1::from_vec(py, variances), underflow, overflow))
    }
}

impl RawHistograms {
    fn lock(&self) -> MutexGuard<'_, ScoreHistograms> {
        // A call that panicked added nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events whose arrays are read.
struct EventArrays<'py> {
    inputs: InputArrays<'py>,
    weights: Option<WeightArray<'py>>,
}

enum WeightArray<'py> {
    F32(PyReadonlyArray1<'py, f32>),
    F64(PyReadonlyArray1<'py, f64>),
}

/// Events as the library takes them.
struct ReadEvents<'a> {
    dense: Vec<EncoderInput<'a>>,
    ragged: Vec<RaggedInput<'a>>,
    weights: Option<EventWeights<'a>>,
}

impl<'py> EventArrays<'py> {
    fn new((dense, ragged, weights): GivenEvents<'py>) -> PyResult<EventArrays<'py>> {
        let inputs = InputArrays::new(dense, ragged)?;
        let read = |array: Bound<'py, PyAny>| match (array.extract(), array.extract()) {
            (Ok(array), _) => Ok(WeightArray::F64(array)),
            (_, Ok(array)) => Ok(WeightArray::F32(array)),
            _ => {
                let message = format!("weights: arrays of {} are not taken", array.getattr("dtype")?.str()?);
                Err(input_error(array.py(), message, Some("give numbers of single or double precision in one axis")))
            }
        };
        Ok(EventArrays { inputs, weights: weights.map(read).transpose()? })
    }

    fn read<'a>(&'a self, py: Python<'_>, columns: &'a [Vec<Column<'a>>]) -> PyResult<ReadEvents<'a>> {
        let weights = self.weights.as_ref().map(|array| {
            Ok::<_, PyErr>(match array {
                WeightArray::F32(array) => EventWeights::F32(array.as_slice()?),
                WeightArray::F64(array) => EventWeights::F64(array.as_slice()?),
            })
        });
        let (dense, ragged) = (self.inputs.dense(py)?, self.inputs.ragged(py, columns)?);
        Ok(ReadEvents { dense, ragged, weights: weights.transpose()? })
    }
}
