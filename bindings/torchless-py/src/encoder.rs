//! A model, with the memory and the threads of its calls.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use torchless::Threads;
use torchless::encoder::{
    Dimension, EncodeOptions, Encoder, EncoderEvents, EncoderOptions, EncoderPort, EncoderPrecision, FixedInput,
    ScratchPool,
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
        fixed: Vec<(String, PyReadonlyArrayDyn<'_, f64>)>,
    ) -> PyResult<RawEncoder> {
        let precision = if is_double { EncoderPrecision::Double } else { EncoderPrecision::Single };
        let fixed = fixed.iter().map(|(name, array)| {
            let values = array.as_array().iter().copied().collect();
            FixedInput { name: name.clone(), shape: array.shape().to_vec(), values }
        });
        let options = EncoderOptions { precision, fixed: fixed.collect() };
        let encoder = py.detach(|| Encoder::open_with(path, &options)).map_err(|error| error::library(py, &error))?;
        Ok(RawEncoder { encoder, scratches: ScratchPool::new(), threads: Mutex::new(None) })
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
        let found = PyDict::new(py);
        for output in outputs.map_err(|error| error::library(py, &error))? {
            let name = output.name.clone();
            found.set_item(name, arrays::array(py, output)?)?;
        }
        Ok(found)
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
