//! A session's device: -ln L and its gradients of batches, from memory of the host or of the
//! device.
//!
//! Legend: N batch elements, M inputs, P parameters.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use ns_compute::accel::{AccelError, BatchGradients, DeviceGradients, DeviceInput, GpuSession};
use ns_core::Data;
use ns_core::batch::BatchMinimizer;
use ns_device::{Backend, DeviceError, ExternalBuffer};
use ns_inference::differentiable::{BatchPoints, BatchValues};
use pyo3::prelude::*;

/// A session's device, and the observed data.
#[derive(Debug)]
pub(crate) struct OnDevice {
    pub(crate) session: GpuSession,
    pub(crate) data: Data,
    n_points: AtomicU64,
}

/// A contiguous tensor of double precision in the device's memory.
#[derive(Debug, Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Tensor {
    pub(crate) address: u64,
    /// The number of its rows; 1 for a vector.
    pub(crate) n_rows: usize,
}

/// Addresses of tensors that the device writes into.
#[derive(Debug, Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct OutputAddresses {
    /// -ln L (N).
    values: u64,
    /// Its gradients by parameters (N × P).
    by_params: u64,
    /// Its gradients by inputs (N × M).
    by_inputs: u64,
}

/// Outputs with the lengths of their rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) addresses: OutputAddresses,
    pub(crate) n_params: usize,
    pub(crate) n_inputs: usize,
}

impl OnDevice {
    pub(crate) fn new(session: GpuSession, data: Data) -> Self {
        Self { session, data, n_points: AtomicU64::new(0) }
    }

    /// Returns the kind of PyTorch's tensors that the device reads in its memory, if any.
    ///
    /// The emulated device has the host's memory.
    pub(crate) fn kind_of_tensors(&self) -> Option<&'static str> {
        match self.session.device().backend() {
            Backend::Cuda if self.session.is_exact() => Some("cuda"),
            Backend::Emulated if self.session.is_exact() => Some("cpu"),
            _ => None,
        }
    }

    /// Returns the number of points at which the device computed gradients.
    pub(crate) fn n_points(&self) -> u64 {
        self.n_points.load(Ordering::Relaxed)
    }

    fn count(&self, n: usize) {
        self.n_points.fetch_add(n as u64, Ordering::Relaxed);
    }

    /// Returns the `rows` of `width` numbers of what begins at `address`.
    #[expect(unsafe_code, reason = "the border to tensors: Python passes addresses")]
    pub(crate) fn memory(
        &self,
        address: u64,
        width: usize,
        rows: &Range<usize>,
    ) -> Result<ExternalBuffer<f64>, DeviceError> {
        let start = address.wrapping_add((rows.start * width * size_of::<f64>()) as u64);
        // SAFETY: the address is that of a tensor that the Python side keeps alive until the call
        // ends; it is contiguous, of this device, and has as many rows as the call says. The calls
        // wait for the device before they return, and `follow` has waited for PyTorch's own work.
        // Nothing else uses the tensors of results yet.
        unsafe { self.session.device().external_buffer(start, rows.len() * width) }
    }

    /// Lets the device wait for the work that PyTorch's `stream` has been given.
    #[expect(unsafe_code, reason = "the border to tensors: Python passes a stream")]
    pub(crate) fn follow(&self, stream: u64) -> Result<(), DeviceError> {
        // SAFETY: it is PyTorch's current stream of the tensors' device, whose primary context we
        // use too.
        unsafe { self.session.device().wait_for_stream(stream) }
    }

    /// Returns the parts of a batch of `n` for which the device has memory.
    pub(crate) fn parts(&self, n: usize) -> Result<Vec<Range<usize>>, AccelError> {
        let most = self.session.lock().max_batch()?;
        Ok((0..n).step_by(most).map(|first| first..n.min(first + most)).collect())
    }

    /// Returns -ln L and its gradients at points and inputs in the host's memory.
    pub(crate) fn evaluated(
        &self,
        at: &BatchPoints<'_>,
        n_params: usize,
        n_inputs: usize,
    ) -> Result<BatchValues, AccelError> {
        let part = |all: &[f64], width: usize, rows: &Range<usize>| {
            if all.len() == width { 0..width } else { rows.start * width..rows.end * width }
        };
        let mut found = BatchValues::default();
        for rows in self.parts(at.n)? {
            let mut session = self.session.lock();
            session.set_input_batch(DeviceInput::Host(&at.inputs[part(at.inputs, n_inputs, &rows)]))?;
            let points = DeviceInput::Host(&at.params[part(at.params, n_params, &rows)]);
            let BatchGradients { values, by_params, by_inputs } =
                session.nll_and_gradients(&self.data, points, rows.len())?;
            found.values.extend(values);
            found.by_params.extend(by_params);
            found.by_inputs.extend(by_inputs);
        }
        self.count(at.n);
        Ok(found)
    }

    /// Writes the gradients at `points` to the `rows` of `output`.
    ///
    /// The inputs are those that were set on the device.
    pub(crate) fn gradients_into(
        &self,
        points: DeviceInput<'_>,
        rows: &Range<usize>,
        output: Output,
    ) -> Result<(), AccelError> {
        let Output { addresses, n_params, n_inputs } = output;
        let mut values = self.memory(addresses.values, 1, rows)?;
        let mut by_params = self.memory(addresses.by_params, n_params, rows)?;
        let mut by_inputs = self.memory(addresses.by_inputs, n_inputs, rows)?;
        let out = DeviceGradients { values: &mut values, by_params: &mut by_params, by_inputs: &mut by_inputs };
        self.session.lock().nll_and_gradients_into(&self.data, points, out)?;
        self.count(rows.len());
        Ok(())
    }
}
