//! Values and gradients with respect to templates, of a batch of inputs in one call.
//!
//! Every quantity has values (N × K), and gradients by the inputs (N × K × M) and by the tested
//! value of the parameter of interest (N × K). N is the number of input vectors, M that of inputs,
//! and K that of the quantity's numbers.

use std::sync::{Mutex, MutexGuard};

use nextstat::device::session_with_inputs;
use nextstat::error::Procedure;
use nextstat::hypothesis::LimitLevel;
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
use crate::on_device::OnDevice;
use crate::settings::analysis;
use crate::tests_of_mu::one_sided;

pub(crate) type Session = ProfiledDifferentiableSession<DifferentiableSession>;

/// Templates that are inputs.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Chosen {
    sample: String,
    /// All channels if None.
    channel: Option<String>,
    /// The parameters whose variations are inputs too; all if None.
    variations: Option<Vec<String>>,
}

impl Chosen {
    fn selection(self) -> TemplateSelection {
        let variations = match self.variations {
            None => TemplateVariations::All,
            Some(names) if names.is_empty() => TemplateVariations::None,
            Some(names) => TemplateVariations::Named(names),
        };
        TemplateSelection { sample: self.sample, channel: self.channel, variations }
    }
}

/// The session that is wanted.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct SessionWanted {
    chosen: Vec<Chosen>,
    /// `fitted` or `nominal`.
    asimov: String,
    warm_start: bool,
}

/// Values (N × K) and gradients by inputs (N × K × M) and by the tested value (N × K); gradients
/// are None if they are not wanted.
type Found<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

/// A model whose chosen templates are inputs, with the fits that statistics of it need.
#[pyclass(name = "RawSession", module = "nextstat._nextstat", frozen)]
pub(crate) struct PySession {
    session: Mutex<Session>,
    pub(crate) inputs: Inputs,
    values: Vec<f64>,
    pub(crate) n_params: usize,
    /// The structure of the matrices of a fit.
    structure: CurvatureStructure,
    /// The session's device, if it has one.
    pub(crate) device: Option<OnDevice>,
}

/// A NumPy vector.
type Vector<'py> = Bound<'py, PyArray1<f64>>;

/// Directions of derivatives, one for each batch element.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Directions<'py> {
    /// Of the inputs (N × M).
    inputs: Bound<'py, PyArray2<f64>>,
    /// Of the tested values (N).
    mu: Vec<f64>,
}

/// Products with Hessians: by inputs (N × M) and by tested values (N).
type Products<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Parameters (P) and inputs (M): a point, or a direction.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Point<'py> {
    params: Vector<'py>,
    inputs: Vector<'py>,
}

/// What is written of one batch element: values (K) and derivatives by inputs (K × M; empty if they
/// are not wanted) and by the tested value (K).
struct ElementOutput<'a> {
    values: &'a mut [f64],
    by_inputs: &'a mut [f64],
    by_mu: &'a mut [f64],
}

/// A block of inputs, as Python has it.
#[derive(IntoPyObject)]
struct Described<'a> {
    name: String,
    channel: &'a str,
    sample: &'a str,
    kind: &'static str,
    parameter: Option<&'a str>,
    start: usize,
    stop: usize,
}

/// What is evaluated: the number of values of a quantity (K), and whether gradients are wanted.
#[derive(Clone, Copy)]
struct Extent {
    n_values: usize,
    gradient: bool,
}

fn described(block: &InputBlock) -> Described<'_> {
    let (kind, parameter) = match &block.kind {
        InputKind::Nominal => ("nominal", None),
        InputKind::HistoSysHi(name) => ("histosys_hi", Some(name.as_str())),
        InputKind::HistoSysLo(name) => ("histosys_lo", Some(name.as_str())),
        InputKind::NormSysHi(name) => ("normsys_hi", Some(name.as_str())),
        InputKind::NormSysLo(name) => ("normsys_lo", Some(name.as_str())),
        InputKind::Morphing(coefficient) => ("morphing", Some(coefficient.as_str())),
    };
    let (start, stop) = (block.range.start, block.range.end);
    Described { name: block.name.clone(), channel: &block.channel, sample: &block.sample, kind, parameter, start, stop }
}

#[derive(Debug)]
enum Problem {
    Input(InputError),
    /// A batch element that failed.
    Element {
        batch_element: usize,
        n_batch: usize,
        found: DifferentiableError,
    },
}

impl PySession {
    /// Locks the session; other threads wait.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Evaluates `quantity` of every batch element of `inputs` (N × M).
    ///
    /// Returns values, gradients by inputs (empty if they are not wanted) and by the tested value.
    fn evaluated<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        Extent { n_values, gradient }: Extent,
        quantity: impl Fn(&mut Session, usize, ElementOutput<'_>) -> Result<(), DifferentiableError> + Send + Sync,
    ) -> PyResult<[Vec<f64>; 3]> {
        let (n, m) = (inputs.shape()[0], self.inputs.len());
        if inputs.shape()[1] != m {
            return Err(problem(py, &Problem::Input(InputError::Length { found: inputs.shape()[1], wanted: m })));
        }
        crate::memory::for_fits_of(&self.structure)?;
        let borrowed = inputs.try_readonly()?;
        let given = borrowed.as_slice().map_err(|_| error::data("inputs must be contiguous".to_owned()))?;
        let mut values = vec![0.0; n * n_values];
        let mut by_mu = vec![0.0; n * n_values];
        let mut by_inputs = vec![0.0; if gradient { n * n_values * m } else { 0 }];
        let done = py.detach(|| {
            let mut session = self.lock();
            for batch_element in 0..n {
                session.set_inputs(&given[batch_element * m..(batch_element + 1) * m]).map_err(Problem::Input)?;
                let (start, end) = (batch_element * n_values, (batch_element + 1) * n_values);
                let derivatives = if gradient { start * m..end * m } else { 0..0 };
                let out = ElementOutput {
                    values: &mut values[start..end],
                    by_inputs: &mut by_inputs[derivatives],
                    by_mu: &mut by_mu[start..end],
                };
                quantity(&mut session, batch_element, out).map_err(|found| Problem::Element {
                    batch_element,
                    n_batch: n,
                    found,
                })?;
            }
            Ok(())
        });
        done.map_err(|found| problem(py, &found))?;
        Ok([values, by_inputs, by_mu])
    }

    /// Evaluates `quantity` of every batch element of `inputs` (N × M); returns arrays.
    fn arrays<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        extent: Extent,
        quantity: impl Fn(&mut Session, usize, ElementOutput<'_>) -> Result<(), DifferentiableError> + Send + Sync,
    ) -> PyResult<Found<'py>> {
        let Extent { n_values, gradient } = extent;
        let [values, by_inputs, by_mu] = self.evaluated(py, inputs, extent, quantity)?;
        let (n, m) = (inputs.shape()[0], self.inputs.len());
        let by_inputs = gradient.then(|| shaped(py, by_inputs, &[n, n_values, m])).transpose()?;
        let by_mu = gradient.then(|| shaped(py, by_mu, &[n, n_values])).transpose()?;
        Ok((shaped(py, values, &[n, n_values])?, by_inputs, by_mu))
    }

    /// Evaluates `product`, a Hessian times a direction, of every batch element of `inputs` (N ×
    /// M).
    fn products<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        along: Directions<'py>,
        product: impl Fn(&mut Session, usize, InputDirection<'_>, &mut [f64]) -> Result<f64, DifferentiableError>
        + Send
        + Sync,
    ) -> PyResult<Products<'py>> {
        let (n, m) = (inputs.shape()[0], self.inputs.len());
        let Directions { inputs: along, mu: along_mu } = along;
        if along.shape() != [n, m] || along_mu.len() != n {
            return Err(error::data(format!("{n} directions of {m} inputs and of the tested value are needed")));
        }
        let borrowed = along.try_readonly()?;
        let directions = borrowed.as_slice().map_err(|_| error::data("directions must be contiguous".to_owned()))?;
        let [_, by_inputs, by_mu] =
            self.evaluated(py, inputs, Extent { n_values: 1, gradient: true }, |session, i, element| {
                let direction = InputDirection { inputs: &directions[i * m..(i + 1) * m], mu: along_mu[i] };
                element.by_mu[0] = product(session, i, direction, element.by_inputs)?;
                Ok(())
            })?;
        Ok((shaped(py, by_inputs, &[n, m])?, shaped(py, by_mu, &[n])?))
    }
}

/// Returns the memory for one gradient, if it is wanted.
fn wanted(by_inputs: &mut [f64]) -> Option<&mut [f64]> {
    (!by_inputs.is_empty()).then_some(by_inputs)
}

#[pymethods]
impl PySession {
    #[new]
    fn new(py: Python<'_>, model: &PyModel, settings: &Bound<'_, PyDict>, wanted: SessionWanted) -> PyResult<Self> {
        let SessionWanted { chosen, asimov, warm_start } = wanted;
        let start = if warm_start { FitStart::Warm } else { FitStart::Initial };
        let asimov = match asimov.as_str() {
            "fitted" => AsimovPoint::Fitted,
            "nominal" => AsimovPoint::Nominal,
            other => {
                let hint = Some("choose one of `fitted`, `nominal`".to_owned());
                return Err(error::parameter(py, format!("`asimov` cannot be `{other}`"), hint));
            }
        };
        let device: Option<String> = settings.get_item("device")?.map(|name| name.extract()).transpose()?;
        if device.is_some() {
            // The model's own session on a device has fixed templates: this session opens another.
            settings.del_item("device")?;
        }
        let analysis = analysis(py, model, settings)?;
        let poi = analysis.varied(None, Procedure::Session).map_err(|problem| error::settings(py, &problem))?;
        let (model, data, options) = (analysis.model(), analysis.data(), analysis.options().clone());
        let selections: Vec<TemplateSelection> = chosen.into_iter().map(Chosen::selection).collect();
        let inputs = Inputs::new(model, &selections).map_err(|found| problem(py, &Problem::Input(found)))?;
        let values = inputs.values(model);
        let mut likelihood = DifferentiableSession::new(model, inputs.clone());
        ns_core::DataLikelihood::set_data(&mut likelihood, data);
        let options = DifferentiableOptions { fit: options, asimov, start };
        let structure = ns_core::Likelihood::structure(&likelihood);
        let mut session = Session::new(model, likelihood, poi, options);
        let mut on_device = None;
        if let Some(name) = device {
            let named = error::device_name(py, &name)?;
            let made = py.detach(|| session_with_inputs(named, model, inputs.clone()));
            let made = made.map_err(|problem| error::device(py, &problem))?;
            session = session.on_device(Box::new(made.clone()), data.clone());
            on_device = Some(OnDevice::new(made, data.clone()));
        }
        let n_params = model.n_params();
        Ok(Self { session: Mutex::new(session), inputs, values, n_params, structure, device: on_device })
    }

    /// The kind of PyTorch's devices whose tensors are read in their memory; None if there is none.
    #[getter]
    fn resident_on(&self) -> Option<&'static str> {
        self.device.as_ref().and_then(OnDevice::kind_of_tensors)
    }

    /// The number of points at which the device computed -ln L and its gradients.
    #[getter]
    fn n_device_points(&self) -> u64 {
        self.device.as_ref().map_or(0, OnDevice::n_points)
    }

    /// The number of fits that ended in a minimum on the device.
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

    /// Returns name, channel, sample, kind, parameter, start and stop of every block of inputs.
    fn blocks(&self) -> Vec<Described<'_>> {
        self.inputs.blocks().iter().map(described).collect()
    }

    /// Returns -ln L at `params` (P) and its gradients by parameters (P) and inputs (M).
    ///
    /// Gradients are NaN outside the domain.
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
                // Zeros would look like a minimum.
                gradient.fill(f64::NAN);
                by_inputs.fill(f64::NAN);
            }
            Ok(value)
        });
        let value = value.map_err(|found| problem(py, &Problem::Input(found)))?;
        Ok((value, PyArray1::from_vec(py, gradient), PyArray1::from_vec(py, by_inputs)))
    }

    /// Returns the product of the Hessian of -ln L by parameters and inputs with a direction.
    ///
    /// Product and direction have parameters (P) and inputs (M).
    fn hessian_product<'py>(
        &self,
        py: Python<'py>,
        at: Point<'py>,
        along: Point<'py>,
    ) -> PyResult<(Vector<'py>, Vector<'py>)> {
        let (params, inputs) = (at.params, at.inputs);
        let (by_params, by_inputs) = (along.params, along.inputs);
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

    /// Returns the minimum of -ln L, with the parameter of interest free, or fixed at a value for
    /// each batch element.
    fn profiled_nll<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        is_fixed: bool,
        mu: Vec<f64>,
        gradient: bool,
    ) -> PyResult<Found<'py>> {
        self.arrays(py, inputs, Extent { n_values: 1, gradient }, move |session, i, element| {
            let [value, by_mu] = session.profiled_nll(is_fixed.then(|| mu[i % mu.len()]), wanted(element.by_inputs))?;
            (element.values[0], element.by_mu[0]) = (value, by_mu);
            Ok(())
        })
    }

    /// Returns the products of the minimum's Hessian with directions, of every batch element.
    ///
    /// They are by inputs (N × M) and by the tested value (N).
    fn profiled_nll_product<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        is_fixed: bool,
        mu: Vec<f64>,
        along: Directions<'py>,
    ) -> PyResult<Products<'py>> {
        self.products(py, inputs, along, move |session, i, direction, out| {
            session.profiled_nll_product(is_fixed.then(|| mu[i % mu.len()]), direction, out)
        })
    }

    /// Returns the products of the Hessian of a statistic of the observed data with directions.
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

    /// Returns a statistic of the observed data or of the Asimov data set, at a value for each
    /// batch element.
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
        self.arrays(py, inputs, Extent { n_values: 1, gradient }, move |session, i, element| {
            let mu = mu[i % mu.len()];
            let [q, by_mu] = if is_asimov {
                session.asimov_statistic(statistic, mu, wanted(element.by_inputs))?
            } else {
                session.statistic(statistic, mu, wanted(element.by_inputs))?
            };
            (element.values[0], element.by_mu[0]) = (q, by_mu);
            Ok(())
        })
    }

    /// Returns p-values (`CLs`, `CLsb`, `CLb`), observed and expected, at a value for each batch
    /// element.
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
        self.arrays(
            py,
            inputs,
            Extent { n_values: ns_inference::differentiable::CLS, gradient },
            move |session, i, element| {
                let mut derivatives = [vec![0.0; m], vec![0.0; m]];
                let room = gradient.then(|| derivatives.each_mut().map(Vec::as_mut_slice));
                let found = session.test(statistic, mu[i % mu.len()], room)?;
                let values = match which {
                    "CLsb" => found.clsb(),
                    "CLb" => found.clb(),
                    _ => found.cls(),
                };
                for (k, [value, by_q, by_q_asimov]) in values.into_iter().enumerate() {
                    element.values[k] = value;
                    element.by_mu[k] = by_q * found.q_by_mu + by_q_asimov * found.q_asimov_by_mu;
                    if gradient {
                        let out = element.by_inputs[k * m..(k + 1) * m].iter_mut();
                        out.zip(&derivatives[0])
                            .zip(&derivatives[1])
                            .for_each(|((out, q), asimov)| *out = by_q * q + by_q_asimov * asimov);
                    }
                }
                Ok(())
            },
        )
    }

    /// Returns upper limits: the observed one for `None`, and for a
    /// number the one expected that number of standard deviations from the median.
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
        LimitLevel::Cls(level).check().map_err(|problem| error::settings(py, &problem))?;
        if wanted_limit.statistic == TestStatistic::Q0 {
            let hint = Some("choose one of `qtilde`, `q`".to_owned());
            let message = format!("upper limits do not have the test statistic `{test_stat}`");
            return Err(error::parameter(py, message, hint));
        }
        let m = self.inputs.len();
        self.arrays(py, inputs, Extent { n_values: which.len(), gradient }, move |session, _, element| {
            for (k, which) in which.iter().enumerate() {
                let out = if gradient { Some(&mut element.by_inputs[k * m..(k + 1) * m]) } else { None };
                element.values[k] =
                    session.limit(wanted_limit, which.map_or(LimitKind::Observed, LimitKind::Expected), out)?;
            }
            Ok(())
        })
    }

    /// Returns σ(μ̂) of the observed data, or of the Asimov data set of `mu`.
    fn sigma<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyArray2<f64>>,
        mu: Option<f64>,
        gradient: bool,
    ) -> PyResult<Found<'py>> {
        self.arrays(py, inputs, Extent { n_values: 1, gradient }, move |session, _, element| {
            element.values[0] = match mu {
                None => session.sigma(wanted(element.by_inputs))?,
                Some(mu) => session.asimov_sigma(mu, wanted(element.by_inputs))?,
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
    values.as_slice().map_err(|_| error::data("values must be contiguous".to_owned()))
}

fn problem(py: Python<'_>, problem: &Problem) -> PyErr {
    match problem {
        Problem::Input(found) => error::parameter(py, found.to_string(), found.hint()),
        Problem::Element { found: DifferentiableError::Device { reason }, .. } => error::lost_device(py, reason),
        Problem::Element { batch_element, n_batch, found } => {
            let place =
                if *n_batch > 1 { format!("batch element {batch_element} of {n_batch}: ") } else { String::new() };
            error::gradient(py, format!("{place}{found}"), found.hint().map(str::to_owned))
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySession>()
}
