//! A model, with the memory and the threads of its calls.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use torchless::Threads;
use torchless::backend::BackendPreference;
use torchless::encoder::{
    Cotangent, Dimension, EncodeOptions, Encoder, EncoderEvents, EncoderOptions, EncoderOutput, EncoderPort,
    EncoderPrecision, FixedInput, GradientTarget, InputGradient, ScratchPool, WeightStorage,
};

use crate::inputs::{GivenDense, GivenRagged, InputArrays};
use crate::{arrays, error};

/// A model.
#[pyclass(module = "torchless._torchless", frozen)]
pub(crate) struct RawEncoder {
    pub(crate) encoder: Encoder,
    /// Each call takes a scratch of its own.
    pub(crate) scratches: ScratchPool,
    threads: Mutex<Option<KnownThreads>>,
}

/// What is differentiated as Python gives it: an output and its column, or cotangents of outputs.
type GivenTarget<'py> = (Option<String>, usize, Option<Vec<(String, PyReadonlyArrayDyn<'py, f64>)>>);

/// How events are computed: the mask, events at once, and threads.
type GivenOptions = (Option<String>, usize, usize);

/// Outputs, and gradients with respect to inputs.
type Gradients<'py> = (Bound<'py, PyDict>, Bound<'py, PyDict>);

/// Threads of the last call that asked for several.
struct KnownThreads {
    asked: usize,
    /// Threads do not survive a fork.
    process: u32,
    threads: Threads,
}

#[pymethods]
impl RawEncoder {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "what Python passes is made for the call")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        is_double: bool,
        weights: &str,
        device: &str,
        fixed: Vec<(String, PyReadonlyArrayDyn<'_, f64>)>,
    ) -> PyResult<RawEncoder> {
        let precision = if is_double { EncoderPrecision::Double } else { EncoderPrecision::Single };
        let fixed = fixed.iter().map(|(name, array)| {
            let values = array.as_array().iter().copied().collect();
            FixedInput { name: name.clone(), shape: array.shape().to_vec(), values }
        });
        let weights = WeightStorage::named(weights).ok_or_else(|| error::unknown_weights(py, weights))?;
        let device = BackendPreference::named(device).ok_or_else(|| error::unknown_device(py, device))?;
        let options = EncoderOptions { precision, weights, fixed: fixed.collect(), device };
        let encoder = py.detach(|| Encoder::open_with(path, &options)).map_err(|error| error::library(py, &error))?;
        Ok(RawEncoder { encoder, scratches: ScratchPool::new(), threads: Mutex::new(None) })
    }

    /// Returns whether weights and the inputs of products are rounded to bytes.
    fn is_approximate(&self) -> bool {
        self.encoder.is_approximate()
    }

    /// Returns the name of what computes: `cpu`, or that of a device.
    fn device(&self) -> &'static str {
        self.encoder.device_name()
    }

    /// Returns the bytes of the weights as they are kept.
    fn weight_bytes(&self) -> usize {
        self.encoder.weight_bytes()
    }

    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        ports(py, self.encoder.inputs())
    }

    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        ports(py, self.encoder.outputs())
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        dense: Vec<GivenDense<'py>>,
        ragged: Vec<GivenRagged<'py>>,
        mask: Option<String>,
        events_at_once: usize,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let arrays = InputArrays::new(dense, ragged)?;
        let columns = arrays.columns(py)?;
        let (dense, ragged) = (arrays.dense(py)?, arrays.ragged(py, &columns)?);
        let options = EncodeOptions { events_at_once, mask };
        let events = EncoderEvents { dense: &dense, ragged: &ragged };
        let outputs = py.detach(|| {
            let threads = self.threads(threads);
            self.encoder.encode_events(&threads, &self.scratches, events, &options)
        });
        outputs_by_name(py, outputs.map_err(|error| error::library(py, &error))?)
    }

    #[expect(clippy::needless_pass_by_value, reason = "what Python passes is made for the call")]
    fn gradients<'py>(
        &self,
        py: Python<'py>,
        dense: Vec<GivenDense<'py>>,
        ragged: Vec<GivenRagged<'py>>,
        target: GivenTarget<'py>,
        options: GivenOptions,
    ) -> PyResult<Gradients<'py>> {
        let arrays = InputArrays::new(dense, ragged)?;
        let columns = arrays.columns(py)?;
        let (dense, ragged) = (arrays.dense(py)?, arrays.ragged(py, &columns)?);
        let (mask, events_at_once, threads) = options;
        let options = EncodeOptions { events_at_once, mask };
        let events = EncoderEvents { dense: &dense, ragged: &ragged };
        let (output, column, cotangents) = &target;
        let cotangents = cotangents.as_ref().map(|given| {
            let arrays = given
                .iter()
                .map(|(output, array)| Ok(Cotangent { output, shape: array.shape(), values: array.as_slice()? }));
            arrays.collect::<PyResult<Vec<_>>>()
        });
        let cotangents = cotangents.transpose()?;
        let target = match &cotangents {
            Some(cotangents) => GradientTarget::Cotangents(cotangents),
            None => GradientTarget::Column { output: output.as_deref(), column: *column },
        };
        let found = py.detach(|| {
            let threads = self.threads(threads);
            self.encoder.gradients(&threads, &self.scratches, events, &target, &options)
        });
        let found = found.map_err(|error| error::library(py, &error))?;
        let gradients = PyDict::new(py);
        for InputGradient { name, shape, values } in found.inputs {
            gradients.set_item(name, PyArray1::from_vec(py, values).reshape(shape)?)?;
        }
        Ok((outputs_by_name(py, found.outputs)?, gradients))
    }
}

impl RawEncoder {
    /// Returns threads, those of the last call if it asked for as many.
    pub(crate) fn threads(&self, asked: usize) -> Threads {
        if asked == 1 {
            return Threads::new(1);
        }
        let mut known = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        match &*known {
            Some(known) if known.asked == asked && known.process == process => return known.threads.clone(),
            _ => {}
        }
        let threads = Threads::new(asked);
        let last = known.replace(KnownThreads { asked, process, threads: threads.clone() });
        if let Some(last) = last.filter(|last| last.process != process) {
            // Nothing is left of them that could be ended.
            std::mem::forget(last);
        }
        threads
    }
}

/// Returns outputs as arrays.
fn outputs_by_name(py: Python<'_>, outputs: Vec<EncoderOutput>) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    for output in outputs {
        let name = output.name.clone();
        found.set_item(name, arrays::array(py, output)?)?;
    }
    Ok(found)
}

/// Returns names, kinds of elements, and shapes with numbers and names.
fn ports(py: Python<'_>, ports: Vec<EncoderPort>) -> PyResult<Bound<'_, PyList>> {
    let size = |dimension: Dimension| match dimension {
        Dimension::Fixed(size) => Ok(size.into_pyobject(py)?.into_any()),
        Dimension::Named(name) => Ok(name.into_pyobject(py)?.into_any()),
    };
    let found = PyList::empty(py);
    for port in ports {
        let shape = port.dimensions.map(|dimensions| dimensions.into_iter().map(size).collect::<PyResult<Vec<_>>>());
        found.append((port.name, port.elements, shape.transpose()?))?;
    }
    Ok(found)
}
