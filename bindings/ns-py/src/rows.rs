//! Rows of inputs at once: -ln L and its gradients on several threads or on a device, and what a device does with tensors that are in its memory already.
//!
//! Functions whose names end in `resident` take addresses of such memory and how many rows are there; Python's side keeps the tensors alive and makes them contiguous, of
//! double precision and of the sizes that are said here. What passes through the host is said with each.
//!
//! Legend: N rows, M inputs, P parameters.

use std::sync::atomic::{AtomicU64, Ordering};

use ns_compute::accel::{AccelError, BatchGradients, DeviceGradients, DeviceInput, GpuSession};
use ns_core::Data;
use ns_core::batch::BatchMinimizer;
use ns_device::{Backend, DeviceError, ExternalBuffer};
use ns_inference::differentiable::{BatchPoints, BatchValues, DifferentiableError, InvalidInputs};
use ns_inference::parallel::all_threads;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::convert::shaped;
use crate::differentiable::{PySession, Session};
use crate::error;
use crate::tests_of_mu::one_sided;

/// A session's device, and the observed data.
#[derive(Debug)]
pub(crate) struct OnDevice {
    rows: GpuSession,
    data: Data,
    n_points: AtomicU64,
}

/// Where a tensor is, and how many rows it has.
type Memory = (u64, usize);

/// -ln L (N) and its gradients by parameters (N × P) and by inputs (N × M), as arrays.
type Arrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Values of all rows (N), and the rows that are left to the host.
type Left = (Vec<f64>, Vec<usize>);

/// Addresses of room for -ln L, for its gradients by parameters and by inputs; rows of conditional fits first, those of free ones behind them.
type Room = (u64, u64, u64);

#[derive(Debug)]
enum Problem {
    Device(AccelError),
    Row {
        error: InvalidInputs,
        n_rows: usize,
    },
    Fit(DifferentiableError),
    /// Of a row that the device has left.
    Left {
        error: DifferentiableError,
        row: usize,
        n_rows: usize,
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
            Self::Row { error: InvalidInputs { row, error: found }, n_rows } => {
                error::parameter(py, format!("{}{found}", place_of(*row, *n_rows)), found.hint())
            }
            Self::Left { error: found, row, n_rows } => {
                let hint = found.hint().map(str::to_owned);
                error::gradient(py, format!("{}{found}", place_of(*row, *n_rows)), hint)
            }
            Self::Fit(DifferentiableError::Device { reason }) => error::lost_device(py, reason),
            Self::Fit(found) => error::gradient(py, found.to_string(), found.hint().map(str::to_owned)),
        }
    }
}

/// Which row, where there are several.
fn place_of(row: usize, n_rows: usize) -> String {
    if n_rows > 1 { format!("row {row} of {n_rows}: ") } else { String::new() }
}

impl OnDevice {
    pub(crate) fn new(rows: GpuSession, data: Data) -> Self {
        Self { rows, data, n_points: AtomicU64::new(0) }
    }

    /// Tensors of double precision on the host are the emulated device's, which has its memory.
    pub(crate) fn kind_of_tensors(&self) -> Option<&'static str> {
        match self.rows.device().backend() {
            Backend::Cuda if self.rows.is_exact() => Some("cuda"),
            Backend::Emulated if self.rows.is_exact() => Some("cpu"),
            _ => None,
        }
    }

    pub(crate) fn n_points(&self) -> u64 {
        self.n_points.load(Ordering::Relaxed)
    }

    /// `n` rows of `width` numbers from row `first` on of what begins at `address`.
    #[expect(unsafe_code, reason = "the border to tensors: Python hands over addresses")]
    fn memory(
        &self,
        address: u64,
        width: usize,
        (first, n): (usize, usize),
    ) -> Result<ExternalBuffer<f64>, DeviceError> {
        let start = address.wrapping_add((first * width * size_of::<f64>()) as u64);
        // SAFETY: the address is of a tensor that Python's side keeps alive until the call ends, contiguous, of this device, and with as many rows as it says; the functions
        // below wait for the device before they return, and PyTorch's own work has been waited for by `wait_for_stream`. Nobody else has the results' tensors yet.
        unsafe { self.rows.device().external_buffer(start, n * width) }
    }

    /// Lets the device wait for what PyTorch's `stream` has been given.
    #[expect(unsafe_code, reason = "the border to tensors: Python hands over a stream")]
    fn follow(&self, stream: u64) -> Result<(), DeviceError> {
        // SAFETY: PyTorch's current stream of the tensors' device, whose primary context is ours too.
        unsafe { self.rows.device().wait_for_stream(stream) }
    }

    /// Parts of `n` rows that the device has room for: first row and length.
    fn parts(&self, n: usize) -> Result<Vec<(usize, usize)>, AccelError> {
        let most = self.rows.lock().max_batch()?;
        Ok((0..n).step_by(most).map(|first| (first, most.min(n - first))).collect())
    }

    fn count(&self, n: usize) {
        self.n_points.fetch_add(n as u64, Ordering::Relaxed);
    }

    /// -ln L and its gradients of host rows.
    fn evaluated(&self, at: &BatchPoints<'_>, (p, m): (usize, usize)) -> Result<BatchValues, AccelError> {
        let part = |all: &[f64], width: usize, (first, n): (usize, usize)| {
            if all.len() == width { 0..width } else { first * width..(first + n) * width }
        };
        let mut found = BatchValues::default();
        for rows in self.parts(at.n)? {
            let mut session = self.rows.lock();
            session.set_input_batch(DeviceInput::Host(&at.inputs[part(at.inputs, m, rows)]))?;
            let points = DeviceInput::Host(&at.params[part(at.params, p, rows)]);
            let BatchGradients { values, by_params, by_inputs } =
                session.nll_and_gradients(&self.data, points, rows.1)?;
            found.values.extend(values);
            found.by_params.extend(by_params);
            found.by_inputs.extend(by_inputs);
        }
        self.count(at.n);
        Ok(found)
    }

    /// The gradients at `points` (n × P) of the rows that are on the device, written to rows from `first` on of `room`.
    fn gradients_into(
        &self,
        points: DeviceInput<'_>,
        (first, n): (usize, usize),
        (room, p, m): (Room, usize, usize),
    ) -> Result<(), AccelError> {
        let (values, by_params, by_inputs) = room;
        let mut values = self.memory(values, 1, (first, n))?;
        let mut by_params = self.memory(by_params, p, (first, n))?;
        let mut by_inputs = self.memory(by_inputs, m, (first, n))?;
        let out = DeviceGradients { values: &mut values, by_params: &mut by_params, by_inputs: &mut by_inputs };
        self.rows.lock().nll_and_gradients_into(&self.data, points, out)?;
        self.count(n);
        Ok(())
    }
}

impl PySession {
    fn on_device(&self) -> PyResult<&OnDevice> {
        self.device.as_ref().ok_or_else(|| error::data("the session has no device".to_owned()))
    }

    /// `work` on every part of `n` rows of inputs in the device's memory, when they are set there.
    fn each_part(
        &self,
        py: Python<'_>,
        (inputs, n): Memory,
        stream: u64,
        mut work: impl FnMut(&mut Session, &OnDevice, (usize, usize)) -> Result<(), Problem> + Send,
    ) -> PyResult<()> {
        let on_device = self.on_device()?;
        let run = || {
            let mut session = self.lock();
            on_device.follow(stream)?;
            for rows in on_device.parts(n)? {
                let given = on_device.memory(inputs, self.inputs.len(), rows)?;
                on_device
                    .rows
                    .lock()
                    .set_input_batch(DeviceInput::Resident(&given))
                    .map_err(|error| among(error, rows.0, n))?;
                work(&mut session, on_device, rows)?;
            }
            Ok(())
        };
        py.detach(run).map_err(|found: Problem| found.raised(py))
    }
}

/// `error` of rows that begin at row `first` of `n_rows`.
fn among(error: AccelError, first: usize, n_rows: usize) -> AccelError {
    match error {
        AccelError::Input { row, error, .. } => AccelError::Input { row: first + row, n_rows, error },
        other => other,
    }
}

/// -ln L at `params` (1 or N rows) and `inputs` (1 or N rows) and its gradients, which are NaN outside the domain: on a device in double precision, if the session has one, or on
/// several threads.
#[pyfunction]
fn nll_rows<'py>(
    py: Python<'py>,
    session: &Bound<'py, PySession>,
    params: &Bound<'py, PyArray2<f64>>,
    inputs: &Bound<'py, PyArray2<f64>>,
) -> PyResult<Arrays<'py>> {
    let session = session.get();
    let (p, m) = (session.n_params, session.inputs.len());
    let inputs_given = inputs.shape()[0];
    let n = params.shape()[0].max(inputs_given);
    let fits =
        |array: &Bound<'py, PyArray2<f64>>, width| [1, n].contains(&array.shape()[0]) && array.shape()[1] == width;
    if !fits(params, p) || !fits(inputs, m) {
        return Err(error::data(format!("{n} points of {p} parameters and {m} inputs are needed, or one for all")));
    }
    let borrowed = [params.try_readonly()?, inputs.try_readonly()?];
    let [params, inputs] = borrowed.each_ref().map(|array| array.as_slice());
    let contiguous = || error::data("values are to be contiguous".to_owned());
    let at = BatchPoints { n, params: params.map_err(|_| contiguous())?, inputs: inputs.map_err(|_| contiguous())? };
    let run = || {
        let mut host = session.lock();
        match session.device.as_ref().filter(|device| device.rows.is_exact()) {
            Some(device) => {
                check_rows(session, at.inputs).map_err(|error| Problem::Row { error, n_rows: inputs_given })?;
                Ok(device.evaluated(&at, (p, m))?)
            }
            None => host.nll_at(&at, all_threads()).map_err(|error| Problem::Row { error, n_rows: inputs_given }),
        }
    };
    let found = py.detach(run).map_err(|found: Problem| found.raised(py))?;
    let values = shaped(py, found.values, &[n])?;
    Ok((values, shaped(py, found.by_params, &[n, p])?, shaped(py, found.by_inputs, &[n, m])?))
}

/// Says of the host's numbers what is wrong with them, which a device could only say of their places.
fn check_rows(session: &PySession, inputs: &[f64]) -> Result<(), InvalidInputs> {
    let mut rows = inputs.chunks(session.inputs.len()).enumerate();
    rows.try_for_each(|(row, inputs)| session.inputs.check(inputs).map_err(|error| InvalidInputs { row, error }))
}

/// The same of `n` points with tensors in the device's memory, written to `room`. Through the host passes which inputs no template can have, one number of each row.
#[pyfunction]
fn nll_resident(
    py: Python<'_>,
    session: &Bound<'_, PySession>,
    stream: u64,
    n: usize,
    params: Memory,
    inputs: Memory,
    room: Room,
) -> PyResult<()> {
    let session = session.get();
    let ((params, n_points), (inputs, n_rows)) = (params, inputs);
    let (p, m) = (session.n_params, session.inputs.len());
    if ![1, n].contains(&n_points) || ![1, n].contains(&n_rows) {
        return Err(error::data(format!("{n_points} points and {n_rows} rows of inputs for {n} values")));
    }
    session.each_part(py, (inputs, n_rows), stream, |_, device, rows| {
        // One row of inputs serves all points, as many at a time as there is room for.
        let parts = if n_rows == n { vec![rows] } else { device.parts(n)? };
        for part in parts {
            let points = if n_points == n { part } else { (0, 1) };
            let points = device.memory(params, p, points)?;
            device.gradients_into(DeviceInput::Resident(&points), part, (room, p, m))?;
        }
        Ok(())
    })
}

/// The minima of -ln L of rows in the device's memory, with the parameter of interest free or held at each row's value, and their gradients in `room`, if that is given. The device fits
/// from the starting values; parameters and -ln L of the fits pass through the host, and of each row which input no template can have. Rows that are left to the host are 0 here.
#[pyfunction]
#[pyo3(signature = (session, stream, inputs, mu, room))]
fn profiled_nll_resident(
    py: Python<'_>,
    session: &Bound<'_, PySession>,
    stream: u64,
    inputs: Memory,
    mu: Option<Vec<f64>>,
    room: Option<Room>,
) -> PyResult<Left> {
    let session = session.get();
    let mu = mu.map(|mu| one_each(mu, inputs.1)).transpose()?;
    let (p, m) = (session.n_params, session.inputs.len());
    let (mut values, mut left) = (vec![0.0; inputs.1], Vec::new());
    session.each_part(py, inputs, stream, |host, device, (first, n)| {
        let mu = mu.as_deref().map(|mu| &mu[first..first + n]);
        let found = host.profiled_nll_of_batch(&mut device.rows.clone(), &device.data, mu).map_err(Problem::Fit)?;
        let mut points = Vec::with_capacity(n * p);
        for (row, minimum) in found.into_iter().enumerate() {
            match minimum {
                Some(minimum) => {
                    values[first + row] = minimum.nll;
                    points.extend(minimum.params);
                }
                None => {
                    left.push(first + row);
                    points.extend(std::iter::repeat_n(f64::NAN, p));
                }
            }
        }
        match room {
            Some(room) => Ok(device.gradients_into(DeviceInput::Host(&points), (first, n), (room, p, m))?),
            None => Ok(()),
        }
    })?;
    Ok((values, left))
}

/// A statistic of the observed data of rows in the device's memory, at each row's value, likewise; `room` has the gradients of -ln L at the conditional minima, and N rows behind them
/// those at the free ones.
#[pyfunction]
#[pyo3(signature = (session, stream, inputs, test_stat, mu, room))]
fn statistic_resident(
    py: Python<'_>,
    session: &Bound<'_, PySession>,
    stream: u64,
    inputs: Memory,
    test_stat: &str,
    mu: Vec<f64>,
    room: Option<Room>,
) -> PyResult<Left> {
    let statistic = one_sided(py, test_stat)?;
    let session = session.get();
    let mu = one_each(mu, inputs.1)?;
    let (p, m) = (session.n_params, session.inputs.len());
    let (mut values, mut left) = (vec![0.0; inputs.1], Vec::new());
    session.each_part(py, inputs, stream, |host, device, (first, n)| {
        let (mut rows, mu) = (device.rows.clone(), &mu[first..first + n]);
        let found = host.statistic_of_batch(&mut rows, &device.data, statistic, mu).map_err(Problem::Fit)?;
        let [mut conditional, mut free] = [Vec::with_capacity(n * p), Vec::with_capacity(n * p)];
        for (row, compared) in found.into_iter().enumerate() {
            match compared {
                Some(compared) => {
                    values[first + row] = compared.q;
                    conditional.extend(compared.conditional);
                    free.extend(compared.free);
                }
                None => {
                    left.push(first + row);
                    for points in [&mut conditional, &mut free] {
                        points.extend(std::iter::repeat_n(f64::NAN, p));
                    }
                }
            }
        }
        if let Some(room) = room {
            device.gradients_into(DeviceInput::Host(&conditional), (first, n), (room, p, m))?;
            device.gradients_into(DeviceInput::Host(&free), (inputs.1 + first, n), (room, p, m))?;
        }
        Ok(())
    })?;
    Ok((values, left))
}

/// What the device has left to the host, of row `place.0` of `place.1`: the statistic `test_stat` at `mu`, or the minimum of -ln L; its value and slopes by inputs (M) and by `mu`.
#[pyfunction]
#[pyo3(signature = (session, inputs, test_stat, mu, place))]
fn row_on_host<'py>(
    py: Python<'py>,
    session: &Bound<'py, PySession>,
    inputs: &Bound<'py, PyArray1<f64>>,
    test_stat: Option<&str>,
    mu: Option<f64>,
    place: (usize, usize),
) -> PyResult<(f64, Bound<'py, PyArray1<f64>>, f64)> {
    let statistic = test_stat.map(|name| one_sided(py, name)).transpose()?;
    let borrowed = inputs.try_readonly()?;
    let given = borrowed.as_slice().map_err(|_| error::data("inputs are to be contiguous".to_owned()))?;
    let session = session.get();
    let mut by_inputs = vec![0.0; session.inputs.len()];
    let run = || {
        session.lock().on_host(|host| {
            let (row, n_rows) = place;
            let refused = |error| Problem::Row { error: InvalidInputs { row, error }, n_rows };
            host.set_inputs(given).map_err(refused)?;
            let found = match statistic {
                Some(statistic) => host.statistic(statistic, mu.unwrap_or(0.0), Some(&mut by_inputs)),
                None => host.profiled_nll(mu, Some(&mut by_inputs)),
            };
            found.map_err(|error| Problem::Left { error, row, n_rows })
        })
    };
    let [value, by_mu] = py.detach(run).map_err(|found: Problem| found.raised(py))?;
    Ok((value, PyArray1::from_vec(py, by_inputs), by_mu))
}

/// `mu`, if there is one for each of `n` rows.
fn one_each(mu: Vec<f64>, n: usize) -> PyResult<Vec<f64>> {
    if mu.len() == n { Ok(mu) } else { Err(error::data(format!("{} tested values for {n} rows", mu.len()))) }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(nll_rows, module)?)?;
    module.add_function(wrap_pyfunction!(nll_resident, module)?)?;
    module.add_function(wrap_pyfunction!(profiled_nll_resident, module)?)?;
    module.add_function(wrap_pyfunction!(statistic_resident, module)?)?;
    module.add_function(wrap_pyfunction!(row_on_host, module)?)
}
