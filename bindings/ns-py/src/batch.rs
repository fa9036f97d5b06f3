//! Batches of inputs: -ln L and its gradients on several threads or on a device, and what a device
//! computes of tensors that are in its memory already.
//!
//! Functions whose names end in `resident` take addresses of such memory; the Python side keeps the
//! tensors alive and makes them contiguous, of double precision and of the right sizes. Each
//! function says what passes through the host.
//!
//! Legend: N batch elements, M inputs, P parameters.

use std::ops::Range;

use ns_compute::accel::{AccelError, DeviceInput};
use ns_core::batch::BatchMinimizer;
use ns_device::DeviceError;
use ns_inference::differentiable::{BatchPoints, DifferentiableError, InvalidInputs};
use ns_inference::parallel::all_threads;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::convert::shaped;
use crate::differentiable::{PySession, Session};
use crate::error;
use crate::on_device::{OnDevice, Output, OutputAddresses, Tensor};
use crate::tests_of_mu::one_sided;

/// -ln L (N) and its gradients by parameters (N × P) and by inputs (N × M), as arrays.
type Arrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// What a device found of a batch.
#[derive(IntoPyObject)]
struct DeviceValues {
    /// Values (N); 0 of those that are left.
    values: Vec<f64>,
    /// Indices of the batch elements that are left to the host.
    left: Vec<usize>,
}

/// An element of a batch, for messages.
#[derive(Debug, Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
struct Place {
    batch_element: usize,
    n_batch: usize,
}

impl Place {
    /// Returns the beginning of a message, if there are several elements.
    fn prefix(self) -> String {
        let Self { batch_element, n_batch } = self;
        if n_batch > 1 { format!("batch element {batch_element} of {n_batch}: ") } else { String::new() }
    }
}

#[derive(Debug)]
enum Problem {
    Device(AccelError),
    Input {
        error: InvalidInputs,
        n_batch: usize,
    },
    Fit(DifferentiableError),
    /// Of an element that the device has left to the host.
    Left {
        error: DifferentiableError,
        place: Place,
    },
}

impl From<AccelError> for Problem {
    fn from(error: AccelError) -> Self {
        Self::Device(error)
    }
}

impl From<DeviceError> for Problem {
    fn from(error: DeviceError) -> Self {
        Self::Device(error.into())
    }
}

impl Problem {
    fn raised(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Device(found @ AccelError::Input { .. }) => error::parameter(py, found.to_string(), found.hint()),
            Self::Device(found) => error::device(py, found),
            Self::Input { error: InvalidInputs { batch_element, error: found }, n_batch } => {
                let prefix = Place { batch_element: *batch_element, n_batch: *n_batch }.prefix();
                error::parameter(py, format!("{prefix}{found}"), found.hint())
            }
            Self::Left { error: found, place } => {
                let hint = found.hint().map(str::to_owned);
                error::gradient(py, format!("{}{found}", place.prefix()), hint)
            }
            Self::Fit(DifferentiableError::Device { reason }) => error::lost_device(py, reason),
            Self::Fit(found) => error::gradient(py, found.to_string(), found.hint().map(str::to_owned)),
        }
    }
}

impl PySession {
    fn on_device(&self) -> PyResult<&OnDevice> {
        self.device.as_ref().ok_or_else(|| error::data("the session has no device".to_owned()))
    }

    fn output(&self, addresses: OutputAddresses) -> Output {
        Output { addresses, n_params: self.n_params, n_inputs: self.inputs.len() }
    }

    /// Does `work` on every part of a batch of inputs, which it sets on the device before.
    fn each_part(
        &self,
        py: Python<'_>,
        inputs: Tensor,
        stream: u64,
        mut work: impl FnMut(&mut Session, &OnDevice, Range<usize>) -> Result<(), Problem> + Send,
    ) -> PyResult<()> {
        let on_device = self.on_device()?;
        let run = || {
            let mut session = self.lock();
            on_device.follow(stream)?;
            for elements in on_device.parts(inputs.n_rows)? {
                let given = on_device.memory(inputs.address, self.inputs.len(), &elements)?;
                let set = on_device.session.lock().set_input_batch(DeviceInput::Resident(&given));
                set.map_err(|error| among(error, elements.start, inputs.n_rows))?;
                work(&mut session, on_device, elements)?;
            }
            Ok(())
        };
        py.detach(run).map_err(|found: Problem| found.raised(py))
    }
}

/// Returns `error` of a part of a batch that begins with element `first` of `n_batch`.
fn among(error: AccelError, first: usize, n_batch: usize) -> AccelError {
    match error {
        AccelError::Input { batch_element, error, .. } => {
            AccelError::Input { batch_element: first + batch_element, n_batch, error }
        }
        other => other,
    }
}

/// Returns -ln L at `params` (1 or N elements) and `inputs` (1 or N elements) and its gradients.
///
/// Gradients are NaN outside the domain. A device in double precision computes them, if the session
/// has one; else several threads do.
#[pyfunction]
fn nll_batch<'py>(
    py: Python<'py>,
    session: &Bound<'py, PySession>,
    params: &Bound<'py, PyArray2<f64>>,
    inputs: &Bound<'py, PyArray2<f64>>,
) -> PyResult<Arrays<'py>> {
    let session = session.get();
    let (p, m) = (session.n_params, session.inputs.len());
    let n_batch = inputs.shape()[0];
    let n = params.shape()[0].max(n_batch);
    let fits =
        |array: &Bound<'py, PyArray2<f64>>, width| [1, n].contains(&array.shape()[0]) && array.shape()[1] == width;
    if !fits(params, p) || !fits(inputs, m) {
        return Err(error::data(format!("{n} points of {p} parameters and {m} inputs are needed, or one for all")));
    }
    let borrowed = [params.try_readonly()?, inputs.try_readonly()?];
    let [params, inputs] = borrowed.each_ref().map(|array| array.as_slice());
    let contiguous = || error::data("values must be contiguous".to_owned());
    let at = BatchPoints { n, params: params.map_err(|_| contiguous())?, inputs: inputs.map_err(|_| contiguous())? };
    let run = || {
        let mut host = session.lock();
        match session.device.as_ref().filter(|device| device.session.is_exact()) {
            Some(device) => {
                check_inputs(session, at.inputs).map_err(|error| Problem::Input { error, n_batch })?;
                Ok(device.evaluated(&at, p, m)?)
            }
            None => host.nll_at(&at, all_threads()).map_err(|error| Problem::Input { error, n_batch }),
        }
    };
    let found = py.detach(run).map_err(|found: Problem| found.raised(py))?;
    let values = shaped(py, found.values, &[n])?;
    Ok((values, shaped(py, found.by_params, &[n, p])?, shaped(py, found.by_inputs, &[n, m])?))
}

/// Checks inputs on the host: a device could only tell the place of one that is not valid.
fn check_inputs(session: &PySession, inputs: &[f64]) -> Result<(), InvalidInputs> {
    let mut each = inputs.chunks(session.inputs.len()).enumerate();
    each.try_for_each(|(batch_element, inputs)| {
        session.inputs.check(inputs).map_err(|error| InvalidInputs { batch_element, error })
    })
}

/// An evaluation of -ln L at tensors in the device's memory.
#[derive(Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
struct ResidentNll {
    stream: u64,
    /// N.
    n_batch: usize,
    params: Tensor,
    inputs: Tensor,
    output: OutputAddresses,
}

/// Evaluates -ln L and its gradients at N points in the device's memory.
///
/// One number for each element passes through the host: the first input that no template can have.
#[pyfunction]
fn nll_resident(py: Python<'_>, session: &Bound<'_, PySession>, wanted: ResidentNll) -> PyResult<()> {
    let session = session.get();
    let ResidentNll { stream, n_batch: n, params, inputs, output } = wanted;
    if ![1, n].contains(&params.n_rows) || ![1, n].contains(&inputs.n_rows) {
        let (n_points, n_inputs) = (params.n_rows, inputs.n_rows);
        return Err(error::data(format!("{n_points} points and {n_inputs} input vectors for {n} values")));
    }
    let output = session.output(output);
    session.each_part(py, inputs, stream, |_, device, elements| {
        // One vector of inputs serves all points, as many at a time as there is memory for.
        let parts = if inputs.n_rows == n { vec![elements] } else { device.parts(n)? };
        for part in parts {
            let points = if params.n_rows == n { part.clone() } else { 0..1 };
            let points = device.memory(params.address, session.n_params, &points)?;
            device.gradients_into(DeviceInput::Resident(&points), &part, output)?;
        }
        Ok(())
    })
}

/// Minima of -ln L of a batch in the device's memory.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ResidentMinima {
    stream: u64,
    inputs: Tensor,
    /// The values at which the parameter of interest is fixed (N); free if None.
    mu: Option<Vec<f64>>,
    /// Where the gradients go, if they are wanted.
    output: Option<OutputAddresses>,
}

/// Finds the minima of -ln L of a batch in the device's memory, and their gradients.
///
/// The device fits from the starting values. Parameters and -ln L of the fits pass through the
/// host, and of each element the first input that no template can have.
#[pyfunction]
fn profiled_nll_resident(
    py: Python<'_>,
    session: &Bound<'_, PySession>,
    wanted: ResidentMinima,
) -> PyResult<DeviceValues> {
    let session = session.get();
    let ResidentMinima { stream, inputs, mu, output } = wanted;
    let mu = mu.map(|mu| one_each(mu, inputs.n_rows)).transpose()?;
    let mut found = Found::new(inputs.n_rows, session.n_params);
    session.each_part(py, inputs, stream, |host, device, elements| {
        let mu = mu.as_deref().map(|mu| &mu[elements.clone()]);
        let minima = host.profiled_nll_of_batch(&mut device.session.clone(), &device.data, mu).map_err(Problem::Fit)?;
        let mut points = Vec::with_capacity(elements.len() * session.n_params);
        for (element, minimum) in elements.clone().zip(minima) {
            found.push(element, minimum.map(|minimum| (minimum.nll, minimum.params)), &mut points);
        }
        match output {
            Some(output) => Ok(device.gradients_into(DeviceInput::Host(&points), &elements, session.output(output))?),
            None => Ok(()),
        }
    })?;
    Ok(found.values)
}

/// What has been found of a batch so far.
struct Found {
    values: DeviceValues,
    n_params: usize,
}

impl Found {
    fn new(n_batch: usize, n_params: usize) -> Self {
        Self { values: DeviceValues { values: vec![0.0; n_batch], left: Vec::new() }, n_params }
    }

    /// Takes the value of an element and adds its point to `points`; NaN if it is left to the host.
    fn push(&mut self, element: usize, found: Option<(f64, Vec<f64>)>, points: &mut Vec<f64>) {
        match found {
            Some((value, params)) => {
                self.values.values[element] = value;
                points.extend(params);
            }
            None => {
                self.values.left.push(element);
                points.extend(std::iter::repeat_n(f64::NAN, self.n_params));
            }
        }
    }
}

/// A statistic of the observed data of a batch in the device's memory.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ResidentStatistic {
    stream: u64,
    inputs: Tensor,
    test_stat: String,
    /// The tested values (N).
    mu: Vec<f64>,
    /// Where the gradients go, if they are wanted: first those at the conditional minima (N), then
    /// those at the free ones (N).
    output: Option<OutputAddresses>,
}

/// Computes a statistic of the observed data of a batch in the device's memory.
///
/// The same numbers pass through the host as of [`profiled_nll_resident`].
#[pyfunction]
fn statistic_resident(
    py: Python<'_>,
    session: &Bound<'_, PySession>,
    wanted: ResidentStatistic,
) -> PyResult<DeviceValues> {
    let ResidentStatistic { stream, inputs, test_stat, mu, output } = wanted;
    let statistic = one_sided(py, &test_stat)?;
    let session = session.get();
    let n = inputs.n_rows;
    let mu = one_each(mu, n)?;
    let mut values = Found::new(n, session.n_params);
    session.each_part(py, inputs, stream, |host, device, elements| {
        let (mut session_on_device, mu) = (device.session.clone(), &mu[elements.clone()]);
        let found = host.statistic_of_batch(&mut session_on_device, &device.data, statistic, mu);
        let found = found.map_err(Problem::Fit)?;
        let [mut conditional, mut free] = [(); 2].map(|()| Vec::with_capacity(elements.len() * session.n_params));
        for (element, compared) in elements.clone().zip(found) {
            let (at_mu, at_best) = match compared {
                Some(compared) => (Some((compared.q, compared.conditional)), compared.free),
                None => (None, vec![f64::NAN; session.n_params]),
            };
            values.push(element, at_mu, &mut conditional);
            free.extend(at_best);
        }
        if let Some(output) = output.map(|output| session.output(output)) {
            device.gradients_into(DeviceInput::Host(&conditional), &elements, output)?;
            device.gradients_into(DeviceInput::Host(&free), &(n + elements.start..n + elements.end), output)?;
        }
        Ok(())
    })?;
    Ok(values.values)
}

/// What is wanted of an element that a device has left to the host.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ElementWanted {
    /// The minimum of -ln L if None.
    test_stat: Option<String>,
    /// The tested value.
    mu: Option<f64>,
    place: Place,
}

/// Computes on the host an element that the device has left: its value, and the derivatives by the
/// inputs (M) and by the tested value.
#[pyfunction]
fn element_on_host<'py>(
    py: Python<'py>,
    session: &Bound<'py, PySession>,
    inputs: &Bound<'py, PyArray1<f64>>,
    wanted: ElementWanted,
) -> PyResult<(f64, Bound<'py, PyArray1<f64>>, f64)> {
    let ElementWanted { test_stat, mu, place } = wanted;
    let statistic = test_stat.map(|name| one_sided(py, &name)).transpose()?;
    let borrowed = inputs.try_readonly()?;
    let given = borrowed.as_slice().map_err(|_| error::data("inputs must be contiguous".to_owned()))?;
    let session = session.get();
    let mut by_inputs = vec![0.0; session.inputs.len()];
    let run = || {
        session.lock().on_host(|host| {
            let Place { batch_element, n_batch } = place;
            let refused = |error| Problem::Input { error: InvalidInputs { batch_element, error }, n_batch };
            host.set_inputs(given).map_err(refused)?;
            let found = match statistic {
                Some(statistic) => host.statistic(statistic, mu.unwrap_or(0.0), Some(&mut by_inputs)),
                None => host.profiled_nll(mu, Some(&mut by_inputs)),
            };
            found.map_err(|error| Problem::Left { error, place })
        })
    };
    let [value, by_mu] = py.detach(run).map_err(|found: Problem| found.raised(py))?;
    Ok((value, PyArray1::from_vec(py, by_inputs), by_mu))
}

/// Returns `mu` if it has a value for each of `n` elements.
fn one_each(mu: Vec<f64>, n: usize) -> PyResult<Vec<f64>> {
    if mu.len() == n { Ok(mu) } else { Err(error::data(format!("{} tested values for {n} batch elements", mu.len()))) }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(nll_batch, module)?)?;
    module.add_function(wrap_pyfunction!(nll_resident, module)?)?;
    module.add_function(wrap_pyfunction!(profiled_nll_resident, module)?)?;
    module.add_function(wrap_pyfunction!(statistic_resident, module)?)?;
    module.add_function(wrap_pyfunction!(element_on_host, module)?)
}
