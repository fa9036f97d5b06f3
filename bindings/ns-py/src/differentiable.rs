//! Values and gradients with respect to templates: one call for a batch of inputs, the gradients beside the values.
//!
//! Every quantity comes back alike: values (N × K), their slopes with respect to the inputs (N × K × M) and to the tested value of the parameter of interest (N × K), where N is the
//! number of rows of inputs and K what the quantity has of numbers.

use std::sync::{Mutex, MutexGuard};

use nextstat::device::session_with_inputs;
use nextstat::error::Procedure;
use ns_compute::DifferentiableSession;
use ns_core::curvature::CurvatureStructure;
use ns_core::templates::{
    InputBlock, InputError, InputKind, Inputs, JointDirection, LineExpansion, TemplateSelection, TemplateVariations,
};
use ns_inference::differentiable::{
    AsimovPoint, DifferentiableError, DifferentiableOptions, FitStart, InputDirection, LimitKind,
    ProfiledDifferentiableSession,
};
use ns_inference::limit::LimitOptions;
use ns_inference::test_statistic::TestStatistic;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{array, shaped};
use crate::error;
use crate::model::PyModel;
use crate::rows::OnDevice;
use crate::settings::analysis;
use crate::tests_of_mu::one_sided;

pub(crate) type Session = ProfiledDifferentiableSession<DifferentiableSession>;

/// What to differentiate by: a sample, a channel or all, names of the parameters of variations or `None` for all of them.
type Chosen = (String, Option<String>, Option<Vec<String>>);

/// Values (N × K), slopes by inputs (N × K × M) and by the tested value (N × K); slopes are None where they were not asked for.
type Found<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

/// A model whose chosen templates are inputs, with the fits that statistics of it need.
#[pyclass(name = "RawSession", module = "nextstat._nextstat", frozen)]
pub(crate) struct PySession {
    session: Mutex<Session>,
    pub(crate) inputs: Inputs,
    values: Vec<f64>,
    pub(crate) n_params: usize,
    /// What fits need memory for.
    structure: CurvatureStructure,
    /// Rows of templates on a device, if the session has one.
    pub(crate) device: Option<OnDevice>,
}

/// A vector of NumPy's.
type Vector<'py> = Bound<'py, PyArray1<f64>>;

/// Directions of inputs (N × M) and of tested values (N).
type Directions<'py> = (Bound<'py, PyArray2<f64>>, Vec<f64>);

/// Products with Hessians: by inputs (N × M) and by tested values (N).
type Products<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// One row: values, slopes by inputs (K × M; empty if they are not wanted), slopes by the tested value.
struct Row<'a> {
    values: &'a mut [f64],
    by_inputs: &'a mut [f64],
    by_mu: &'a mut [f64],
}

/// A block: name, channel, sample, kind, parameter, start, end.
type Described<'a> = (String, &'a str, &'a str, &'static str, Option<&'a str>, usize, usize);

fn described(block: &InputBlock) -> Described<'_> {
    let (kind, parameter) = match &block.kind {
        InputKind::Nominal => ("nominal", None),
        InputKind::HistoSysHi(name) => ("histosys_hi", Some(name.as_str())),
        InputKind::HistoSysLo(name) => ("histosys_lo", Some(name.as_str())),
        InputKind::NormSysHi(name) => ("normsys_hi", Some(name.as_str())),
        InputKind::NormSysLo(name) => ("normsys_lo", Some(name.as_str())),
    };
    (block.name(), &block.channel, &block.sample, kind, parameter, block.range.start, block.range.end)
}

#[derive(Debug)]
enum Problem {
    Input(InputError),
    /// A row that failed, among how many.
    Row {
        row: usize,
        n_rows: usize,
        found: DifferentiableError,
    },
}

impl PySession {
    /// The session, when nobody else uses it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// `quantity` of every row of `inputs` (N × M): values, slopes by inputs (none if they are not wanted) and by the tested value.
    fn evaluated<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        (n_values, gradient): (usize, bool),
        quantity: impl Fn(&mut Session, usize, Row<'_>) -> Result<(), DifferentiableError> + Send + Sync,
    ) -> PyResult<[Vec<f64>; 3]> {
        let (n, m) = (inputs.shape()[0], self.inputs.len());
        if inputs.shape()[1] != m {
            return Err(problem(py, &Problem::Input(InputError::Length { found: inputs.shape()[1], wanted: m })));
        }
        crate::memory::for_fits_of(&self.structure)?;
        let borrowed = inputs.try_readonly()?;
        let given = borrowed.as_slice().map_err(|_| error::data("inputs are to be contiguous".to_owned()))?;
        let mut values = vec![0.0; n * n_values];
        let mut by_mu = vec![0.0; n * n_values];
        let mut by_inputs = vec![0.0; if gradient { n * n_values * m } else { 0 }];
        let done = py.detach(|| {
            let mut session = self.lock();
            for row in 0..n {
                session.set_inputs(&given[row * m..(row + 1) * m]).map_err(Problem::Input)?;
                let (start, end) = (row * n_values, (row + 1) * n_values);
                let slopes = if gradient { start * m..end * m } else { 0..0 };
                let out = Row {
                    values: &mut values[start..end],
                    by_inputs: &mut by_inputs[slopes],
                    by_mu: &mut by_mu[start..end],
                };
                quantity(&mut session, row, out).map_err(|found| Problem::Row { row, n_rows: n, found })?;
            }
            Ok(())
        });
        done.map_err(|found| problem(py, &found))?;
        Ok([values, by_inputs, by_mu])
    }

    /// The same as arrays.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        (n_values, gradient): (usize, bool),
        quantity: impl Fn(&mut Session, usize, Row<'_>) -> Result<(), DifferentiableError> + Send + Sync,
    ) -> PyResult<Found<'py>> {
        let [values, by_inputs, by_mu] = self.evaluated(py, inputs, (n_values, gradient), quantity)?;
        let (n, m) = (inputs.shape()[0], self.inputs.len());
        let by_inputs = gradient.then(|| shaped(py, by_inputs, &[n, n_values, m])).transpose()?;
        let by_mu = gradient.then(|| shaped(py, by_mu, &[n, n_values])).transpose()?;
        Ok((shaped(py, values, &[n, n_values])?, by_inputs, by_mu))
    }

    /// Evaluates `product`, a Hessian times a direction, of every row of `inputs` (N × M).
    fn products<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        (along, along_mu): Directions<'py>,
        product: impl Fn(&mut Session, usize, InputDirection<'_>, &mut [f64]) -> Result<f64, DifferentiableError>
        + Send
        + Sync,
    ) -> PyResult<Products<'py>> {
        let (n, m) = (inputs.shape()[0], self.inputs.len());
        if along.shape() != [n, m] || along_mu.len() != n {
            return Err(error::data(format!("{n} directions of {m} inputs and of the tested value are needed")));
        }
        let borrowed = along.try_readonly()?;
        let directions = borrowed.as_slice().map_err(|_| error::data("directions are to be contiguous".to_owned()))?;
        let [_, by_inputs, by_mu] = self.evaluated(py, inputs, (1, true), |session, i, row| {
            let direction = InputDirection { inputs: &directions[i * m..(i + 1) * m], mu: along_mu[i] };
            row.by_mu[0] = product(session, i, direction, row.by_inputs)?;
            Ok(())
        })?;
        Ok((shaped(py, by_inputs, &[n, m])?, shaped(py, by_mu, &[n])?))
    }
}

/// Room for one gradient, if there is any.
fn wanted(by_inputs: &mut [f64]) -> Option<&mut [f64]> {
    (!by_inputs.is_empty()).then_some(by_inputs)
}

#[pymethods]
impl PySession {
    #[new]
    fn new(
        py: Python<'_>,
        model: &PyModel,
        settings: &Bound<'_, PyDict>,
        chosen: Vec<Chosen>,
        asimov: &str,
        warm_start: bool,
    ) -> PyResult<Self> {
        let start = if warm_start { FitStart::Warm } else { FitStart::Initial };
        let asimov = match asimov {
            "fitted" => AsimovPoint::Fitted,
            "nominal" => AsimovPoint::Nominal,
            other => {
                let hint = Some("there are `fitted` and `nominal`".to_owned());
                return Err(error::parameter(py, format!("`{other}` is no place for Asimov data"), hint));
            }
        };
        let device: Option<String> = settings.get_item("device")?.map(|name| name.extract()).transpose()?;
        if device.is_some() {
            // The model's own session on a device keeps its templates: this one has another.
            settings.del_item("device")?;
        }
        let analysis = analysis(py, model, settings)?;
        let poi = analysis.varied(None, Procedure::Session).map_err(|problem| error::settings(py, &problem))?;
        let (model, data, options) = (analysis.model(), analysis.data(), analysis.options().clone());
        let selection = |(sample, channel, parameters): Chosen| TemplateSelection {
            sample,
            channel,
            variations: parameters.map_or(TemplateVariations::All, |names| {
                if names.is_empty() { TemplateVariations::None } else { TemplateVariations::Named(names) }
            }),
        };
        let selections: Vec<TemplateSelection> = chosen.into_iter().map(selection).collect();
        let inputs = Inputs::new(model, &selections).map_err(|found| problem(py, &Problem::Input(found)))?;
        let values = inputs.values(model);
        let mut likelihood = DifferentiableSession::new(model, inputs.clone());
        ns_core::DataLikelihood::set_data(&mut likelihood, data);
        let options = DifferentiableOptions { fit: options, asimov, start };
        let structure = ns_core::Likelihood::structure(&likelihood);
        let mut session = Session::new(model, likelihood, poi, options);
        let mut rows = None;
        if let Some(name) = device {
            let backend = name.parse().map_err(|_| error::unknown_device(&name))?;
            let made = py.detach(|| session_with_inputs(backend, model, inputs.clone()));
            let made = made.map_err(|problem| error::device(py, &problem))?;
            session = session.on_device(Box::new(made.clone()), data.clone());
            rows = Some(OnDevice::new(made, data.clone()));
        }
        let n_params = model.n_params();
        Ok(Self { session: Mutex::new(session), inputs, values, n_params, structure, device: rows })
    }

    /// Of which kind of PyTorch's devices tensors are read where they are; nothing if of none.
    #[getter]
    fn resident_on(&self) -> Option<&'static str> {
        self.device.as_ref().and_then(OnDevice::kind_of_tensors)
    }

    /// At how many points the device has found -ln L and its gradients.
    #[getter]
    fn n_device_points(&self) -> u64 {
        self.device.as_ref().map_or(0, OnDevice::n_points)
    }

    /// How many fits have ended in a minimum on the device.
    #[getter]
    fn n_device_fits(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().n_device_fits())
    }

    /// M, the number of inputs.
    #[getter]
    fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The inputs that the model has (M).
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array(py, &self.values)
    }

    /// Name, channel, sample, kind, parameter, start and end of every block of inputs.
    fn blocks(&self) -> Vec<Described<'_>> {
        self.inputs.blocks().iter().map(described).collect()
    }

    /// -ln L at `params` (P) and its gradients by parameters (P) and inputs (M), which are NaN outside the domain.
    fn nll<'py>(
        &self,
        py: Python<'py>,
        params: &Vector<'py>,
        inputs: &Vector<'py>,
    ) -> PyResult<(f64, Vector<'py>, Vector<'py>)> {
        let borrowed = [params.try_readonly()?, inputs.try_readonly()?];
        let (params, inputs) = (self.point(&borrowed[0])?, contiguous(&borrowed[1])?);
        let (mut gradient, mut by_inputs) = (vec![0.0; self.n_params], vec![0.0; self.inputs.len()]);
        let value = py.detach(|| {
            let mut session = self.lock();
            session.set_inputs(inputs)?;
            let value = session.nll(params, &mut gradient, &mut by_inputs);
            if !value.is_finite() {
                // Zeros would pass for a minimum.
                gradient.fill(f64::NAN);
                by_inputs.fill(f64::NAN);
            }
            Ok(value)
        });
        let value = value.map_err(|found| problem(py, &Problem::Input(found)))?;
        Ok((value, PyArray1::from_vec(py, gradient), PyArray1::from_vec(py, by_inputs)))
    }

    /// The product of the Hessian of -ln L by parameters and inputs with a direction (P and M), parameters first.
    fn hessian_product<'py>(
        &self,
        py: Python<'py>,
        params: &Vector<'py>,
        inputs: &Vector<'py>,
        by_params: &Vector<'py>,
        by_inputs: &Vector<'py>,
    ) -> PyResult<(Vector<'py>, Vector<'py>)> {
        let borrowed = [params.try_readonly()?, inputs.try_readonly()?];
        let (params, inputs) = (self.point(&borrowed[0])?, contiguous(&borrowed[1])?);
        let direction = [by_params.try_readonly()?, by_inputs.try_readonly()?];
        let (of_params, of_inputs) = (self.point(&direction[0])?, contiguous(&direction[1])?);
        if of_inputs.len() != self.inputs.len() {
            let found = InputError::Length { found: of_inputs.len(), wanted: self.inputs.len() };
            return Err(problem(py, &Problem::Input(found)));
        }
        let mut out = LineExpansion::default();
        let done = py.detach(|| {
            let mut session = self.lock();
            session.set_inputs(inputs)?;
            session.hessian_product(params, JointDirection { params: of_params, inputs: of_inputs }, &mut out);
            Ok(())
        });
        done.map_err(|found| problem(py, &Problem::Input(found)))?;
        let first = |list: &[ns_core::taylor::Taylor]| PyArray1::from_iter(py, list.iter().map(|change| change.first));
        Ok((first(&out.gradient), first(&out.by_inputs)))
    }

    /// The minimum of -ln L, with the parameter of interest free, or held at one value for each row.
    fn profiled_nll<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        is_held: bool,
        mu: Vec<f64>,
        gradient: bool,
    ) -> PyResult<Found<'py>> {
        self.rows(py, inputs, (1, gradient), move |session, i, row| {
            let [value, by_mu] = session.profiled_nll(is_held.then(|| mu[i % mu.len()]), wanted(row.by_inputs))?;
            (row.values[0], row.by_mu[0]) = (value, by_mu);
            Ok(())
        })
    }

    /// Of every row the product of the minimum's Hessian by inputs and tested value with a direction: by inputs (N × M) and by the tested value (N).
    fn profiled_nll_product<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        is_held: bool,
        mu: Vec<f64>,
        along: Directions<'py>,
    ) -> PyResult<Products<'py>> {
        self.products(py, inputs, along, move |session, i, direction, out| {
            session.profiled_nll_product(is_held.then(|| mu[i % mu.len()]), direction, out)
        })
    }

    /// The same of a statistic of the observed data.
    fn statistic_product<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        test_stat: &str,
        mu: Vec<f64>,
        along: Directions<'py>,
    ) -> PyResult<Products<'py>> {
        let statistic = one_sided(py, test_stat)?;
        self.products(py, inputs, along, move |session, i, direction, out| {
            session.statistic_product(statistic, mu[i % mu.len()], direction, out)
        })
    }

    /// A statistic of the observed data or of the Asimov data set, at one value for each row.
    fn statistic<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        test_stat: &str,
        mu: Vec<f64>,
        is_asimov: bool,
        gradient: bool,
    ) -> PyResult<Found<'py>> {
        let statistic = one_sided(py, test_stat)?;
        self.rows(py, inputs, (1, gradient), move |session, i, row| {
            let mu = mu[i % mu.len()];
            let [q, by_mu] = if is_asimov {
                session.asimov_statistic(statistic, mu, wanted(row.by_inputs))?
            } else {
                session.statistic(statistic, mu, wanted(row.by_inputs))?
            };
            (row.values[0], row.by_mu[0]) = (q, by_mu);
            Ok(())
        })
    }

    /// p-values (`CLs`, `CLsb`, `CLb`), observed and expected, at one value for each row.
    fn p_values<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        test_stat: &str,
        mu: Vec<f64>,
        which: &str,
        gradient: bool,
    ) -> PyResult<Found<'py>> {
        let statistic = one_sided(py, test_stat)?;
        let m = self.inputs.len();
        self.rows(py, inputs, (ns_inference::differentiable::CLS, gradient), move |session, i, row| {
            let mut slopes = [vec![0.0; m], vec![0.0; m]];
            let room = gradient.then(|| slopes.each_mut().map(Vec::as_mut_slice));
            let found = session.test(statistic, mu[i % mu.len()], room)?;
            let values = match which {
                "CLsb" => found.clsb(),
                "CLb" => found.clb(),
                _ => found.cls(),
            };
            for (k, [value, by_q, by_q_asimov]) in values.into_iter().enumerate() {
                row.values[k] = value;
                row.by_mu[k] = by_q * found.q_by_mu + by_q_asimov * found.q_asimov_by_mu;
                if gradient {
                    let out = row.by_inputs[k * m..(k + 1) * m].iter_mut();
                    out.zip(&slopes[0])
                        .zip(&slopes[1])
                        .for_each(|((out, q), asimov)| *out = by_q * q + by_q_asimov * asimov);
                }
            }
            Ok(())
        })
    }

    /// Upper limits: `None` is the observed one, a number the one expected as many standard deviations from the median.
    fn limits<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        which: Vec<Option<f64>>,
        level: f64,
        test_stat: &str,
        gradient: bool,
    ) -> PyResult<Found<'py>> {
        let wanted_limit = LimitOptions { level, statistic: one_sided(py, test_stat)? };
        if !(0.0 < level && level < 1.0) {
            return Err(error::parameter(py, format!("a level of {level} is not between 0 and 1"), None));
        }
        if wanted_limit.statistic == TestStatistic::Q0 {
            let hint = Some("there are `qtilde` and `q`".to_owned());
            return Err(error::parameter(py, format!("`{test_stat}` gives no upper limits"), hint));
        }
        let m = self.inputs.len();
        self.rows(py, inputs, (which.len(), gradient), move |session, _, row| {
            for (k, which) in which.iter().enumerate() {
                let out = if gradient { Some(&mut row.by_inputs[k * m..(k + 1) * m]) } else { None };
                row.values[k] =
                    session.limit(wanted_limit, which.map_or(LimitKind::Observed, LimitKind::Expected), out)?;
            }
            Ok(())
        })
    }

    /// σ(μ̂) of the observed data, or of the Asimov data set of `mu`.
    fn sigma<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        mu: Option<f64>,
        gradient: bool,
    ) -> PyResult<Found<'py>> {
        self.rows(py, inputs, (1, gradient), move |session, _, row| {
            row.values[0] = match mu {
                None => session.sigma(wanted(row.by_inputs))?,
                Some(mu) => session.asimov_sigma(mu, wanted(row.by_inputs))?,
            };
            Ok(())
        })
    }
}

impl PySession {
    fn point<'a>(&self, values: &'a PyReadonlyArray1<'_, f64>) -> PyResult<&'a [f64]> {
        let found = contiguous(values)?;
        if found.len() != self.n_params {
            return Err(error::data(format!("{} values for {} parameters", found.len(), self.n_params)));
        }
        Ok(found)
    }
}

fn contiguous<'a>(values: &'a PyReadonlyArray1<'_, f64>) -> PyResult<&'a [f64]> {
    values.as_slice().map_err(|_| error::data("values are to be contiguous".to_owned()))
}

fn problem(py: Python<'_>, problem: &Problem) -> PyErr {
    match problem {
        Problem::Input(found) => error::parameter(py, found.to_string(), found.hint()),
        Problem::Row { found: DifferentiableError::Device { reason }, .. } => error::lost_device(py, reason),
        Problem::Row { row, n_rows, found } => {
            let place = if *n_rows > 1 { format!("row {row} of {n_rows}: ") } else { String::new() };
            error::gradient(py, format!("{place}{found}"), found.hint().map(str::to_owned))
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySession>()
}
