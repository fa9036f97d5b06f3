//! A compiled model as Python holds it: immutable, shared by threads, pickled by its workspace.

use std::sync::Arc;

use ns_compute::cpu::Plan;
use ns_compute::{CpuBatch, DataSet, DataSets};
use ns_core::expected::{expected_data, expected_main};
use ns_core::interpolate::{HistoSysInterpolation, Interpolation, NormSysInterpolation};
use ns_core::likelihood::diagnose;
use ns_core::spec::Workspace;
use ns_core::{CompileOptions, Constraint, Model, PoiChoice, compile};
use ns_translate::pyhf::{from_value, read_value, write_workspace};
use ns_translate::{LoadRequest, Source, load};
use numpy::{AllowTypeChange, PyArray1, PyArrayLike2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::convert::{array, matrix, object};
use crate::error;
use crate::settings::{data, index_of, point};

/// How a workspace is to be read as a model.
#[derive(Debug, Clone, Default)]
struct Choice {
    measurement: Option<String>,
    /// None: the measurement's; empty: no parameter of interest.
    poi: Option<Vec<String>>,
    /// `smooth` or `pyhf`, then rules of single kinds as (kind, code).
    interpolation: (String, Vec<(String, String)>),
}

impl Choice {
    fn options(&self, py: Python<'_>) -> PyResult<CompileOptions> {
        let poi = match &self.poi {
            None => PoiChoice::FromMeasurement,
            Some(names) if names.is_empty() => PoiChoice::None,
            Some(names) => PoiChoice::Named(names.clone()),
        };
        Ok(CompileOptions { measurement: self.measurement.clone(), poi, interpolation: self.rules(py)? })
    }

    fn rules(&self, py: Python<'_>) -> PyResult<Interpolation> {
        let unknown = |what: &str, choices: &str| {
            error::parameter(py, format!("`{what}` is no interpolation rule"), Some(format!("there are {choices}")))
        };
        let mut rules = match self.interpolation.0.as_str() {
            "smooth" => Interpolation::default(),
            "pyhf" => Interpolation::KINKED,
            other => return Err(unknown(other, "`smooth` and `pyhf`")),
        };
        for (kind, code) in &self.interpolation.1 {
            match (kind.as_str(), code.as_str()) {
                ("normsys", "code1") => rules.normsys = NormSysInterpolation::Exponential,
                ("normsys", "code4") => rules.normsys = NormSysInterpolation::SmoothExponential,
                ("histosys", "code0") => rules.histosys = HistoSysInterpolation::Linear,
                ("histosys", "code2") => rules.histosys = HistoSysInterpolation::Quadratic,
                ("histosys", "code4p") => rules.histosys = HistoSysInterpolation::SmoothLinear,
                _ => {
                    return Err(unknown(&format!("{kind}={code}"), "normsys=code1|code4, histosys=code0|code2|code4p"));
                }
            }
        }
        Ok(rules)
    }
}

/// A statistical model with its observed data.
#[pyclass(name = "Model", module = "nextstat", frozen, weakref)]
pub(crate) struct PyModel {
    workspace: Arc<Workspace>,
    choice: Choice,
    model: Arc<Model>,
    plan: Arc<Plan>,
}

impl PyModel {
    fn of(py: Python<'_>, workspace: Workspace, choice: Choice) -> PyResult<Self> {
        let options = choice.options(py)?;
        let model = py.detach(|| compile(&workspace, &options)).map_err(|problem| error::compile(py, &problem))?;
        let plan = Arc::new(Plan::new(&model));
        Ok(Self { workspace: Arc::new(workspace), choice, model: Arc::new(model), plan })
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn shared(&self) -> Arc<Model> {
        Arc::clone(&self.model)
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    fn points<'py>(&self, points: &PyArrayLike2<'py, f64, AllowTypeChange>) -> PyResult<Vec<f64>> {
        let points = points.as_array();
        if points.ncols() != self.model.n_params() {
            return Err(error::data(format!("{} values for {} parameters", points.ncols(), self.model.n_params())));
        }
        Ok(points.iter().copied().collect())
    }
}

#[pymethods]
impl PyModel {
    /// Compiles a workspace given as JSON text.
    #[new]
    #[pyo3(signature = (workspace, measurement=None, poi=None, interpolation=("smooth".to_owned(), Vec::new())))]
    fn new(
        py: Python<'_>,
        workspace: &[u8],
        measurement: Option<String>,
        poi: Option<Vec<String>>,
        interpolation: (String, Vec<(String, String)>),
    ) -> PyResult<Self> {
        let read = || read_value(workspace).and_then(|value| from_value(&value));
        let workspace = py.detach(read).map_err(|problem| error::document(py, &problem))?;
        Self::of(py, workspace, Choice { measurement, poi, interpolation })
    }

    /// Reads a file, applies the patch of a set and then patches, and compiles.
    #[staticmethod]
    fn load(
        py: Python<'_>,
        path: std::path::PathBuf,
        patches: Vec<std::path::PathBuf>,
        patchset: Option<(std::path::PathBuf, String)>,
        choice: (Option<String>, Option<Vec<String>>, (String, Vec<(String, String)>)),
    ) -> PyResult<Self> {
        let request = LoadRequest { workspace: Source::Path(path), patches, patchset };
        let workspace = py.detach(|| load(&request)).map_err(|problem| error::document(py, &problem))?;
        let (measurement, poi, interpolation) = choice;
        Self::of(py, workspace, Choice { measurement, poi, interpolation })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (py, model) = (slf.py(), slf.get());
        let text = write_workspace(&model.workspace).to_string();
        let Choice { measurement, poi, interpolation } = model.choice.clone();
        let arguments = (PyBytes::new(py, text.as_bytes()), measurement, poi, interpolation);
        Ok((slf.get_type().into_any(), arguments.into_pyobject(py)?.into_any()))
    }

    /// The workspace as JSON text.
    fn workspace_json(&self) -> String {
        write_workspace(&self.workspace).to_string()
    }

    #[getter]
    fn measurement(&self) -> &str {
        &self.model.measurement
    }

    #[getter]
    fn channels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.model.channels)
    }

    #[getter]
    fn samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.model.samples)
    }

    /// Number of bins of each channel.
    #[getter]
    fn channel_n_bins(&self) -> Vec<usize> {
        (0..self.model.channels.len()).map(|c| self.model.channel_bins(c).len()).collect()
    }

    #[getter]
    fn par_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.model.parameters.names)
    }

    #[getter]
    fn poi(&self) -> Option<&str> {
        self.model.poi().map(|i| self.model.parameters.names[i].as_str())
    }

    #[getter]
    fn pois(&self) -> Vec<&str> {
        self.model.pois.iter().map(|&i| self.model.parameters.names[i].as_str()).collect()
    }

    #[getter]
    fn poi_index(&self) -> Option<usize> {
        self.model.poi()
    }

    fn index(&self, py: Python<'_>, name: &str) -> PyResult<usize> {
        index_of(py, &self.model, name)
    }

    #[getter]
    fn init<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array(py, &self.model.parameters.init)
    }

    /// Ranges (P × 2).
    #[getter]
    fn bounds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let parameters = &self.model.parameters;
        let ends: Vec<f64> = parameters.lower.iter().zip(&parameters.upper).flat_map(|(lo, hi)| [*lo, *hi]).collect();
        matrix(py, &ends, 2)
    }

    #[getter]
    fn fixed(&self) -> Vec<bool> {
        self.model.parameters.fixed.clone()
    }

    #[getter]
    fn n_params(&self) -> usize {
        self.model.n_params()
    }

    #[getter]
    fn n_bins(&self) -> usize {
        self.model.n_bins()
    }

    #[getter]
    fn n_aux(&self) -> usize {
        self.model.n_aux()
    }

    /// Observed data: main bins (B), then auxiliary data (K).
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array(py, &[&self.model.observed.main[..], &self.model.observed.aux[..]].concat())
    }

    /// What the sets of parameters are, in order.
    fn parameter_sets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for set in &self.model.parameters.sets {
            let entry = PyDict::new(py);
            entry.set_item("name", &set.name)?;
            entry.set_item("kinds", object(py, &set.kinds)?)?;
            entry.set_item("start", set.first)?;
            entry.set_item("len", set.len)?;
            entry.set_item("is_scalar", set.is_scalar)?;
            let constraint = (set.len > 0).then(|| self.model.parameters.constraint[set.first]).flatten();
            let kind = constraint.map(|constraint| match constraint {
                Constraint::Gaussian { .. } => "normal",
                Constraint::Poisson { .. } => "poisson",
            });
            entry.set_item("constraint", kind)?;
            // σ of normal terms, τ of Poisson terms.
            let scales: Vec<f64> = set.range().filter_map(|i| self.model.parameters.constraint[i]).map(scale).collect();
            entry.set_item("scales", array(py, &scales))?;
            let aux: Vec<usize> = set.range().filter_map(|i| self.model.parameters.aux_index[i]).collect();
            entry.set_item("aux_indices", aux)?;
            list.append(entry)?;
        }
        Ok(list)
    }

    /// Expected data at each of `points` (N × P): main bins, and auxiliary data if `aux`.
    fn expected<'py>(
        &self,
        py: Python<'py>,
        points: PyArrayLike2<'py, f64, AllowTypeChange>,
        aux: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (params, n_params) = (self.points(&points)?, self.model.n_params());
        let n = points.as_array().nrows();
        let one = |i: usize| {
            let params = &params[i * n_params..(i + 1) * n_params];
            if aux { expected_data(&self.model, params) } else { expected_main(&self.model, params) }
        };
        let all: Vec<f64> = py.detach(|| (0..n).flat_map(one).collect());
        matrix(py, &all, self.model.n_bins() + if aux { self.model.n_aux() } else { 0 })
    }

    /// -ln L at each of `points` (N × P), and its gradients (N × P) if `gradients`; `data` are shared, or one row each.
    fn nll<'py>(
        &self,
        py: Python<'py>,
        points: PyArrayLike2<'py, f64, AllowTypeChange>,
        data_sets: Vec<Bound<'py, PyAny>>,
        gradients: bool,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Option<Bound<'py, PyAny>>)> {
        let (params, n) = (self.points(&points)?, points.as_array().nrows());
        let mut sets = Vec::with_capacity(data_sets.len());
        for values in &data_sets {
            sets.push(DataSet::new(&self.plan, data(&self.model, values)?));
        }
        let (nll, gradient) = py.detach(|| self.batch(&params, n, &sets, gradients));
        let gradient = gradients.then(|| matrix(py, &gradient, self.model.n_params())).transpose()?;
        Ok((array(py, &nll), gradient))
    }

    /// Why -ln L is not finite at `params` (P); None where it is.
    fn diagnose(&self, params: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        let params = point(&self.model, params)?;
        Ok(diagnose(&self.model, &self.model.observed, &params).map(|reason| reason.to_string()))
    }

    fn __repr__(&self) -> String {
        let model = &self.model;
        let poi = self
            .poi()
            .map_or_else(|| "no parameter of interest".to_owned(), |name| format!("parameter of interest `{name}`"));
        format!(
            "<nextstat.Model `{}`: {} channels, {} bins, {} parameters, {poi}>",
            model.measurement,
            model.channels.len(),
            model.n_bins(),
            model.n_params()
        )
    }
}

fn scale(constraint: Constraint) -> f64 {
    match constraint {
        Constraint::Gaussian { sigma, .. } => sigma,
        Constraint::Poisson { tau } => tau,
    }
}

impl PyModel {
    fn batch(&self, params: &[f64], n: usize, sets: &[DataSet], gradients: bool) -> (Vec<f64>, Vec<f64>) {
        let own;
        let each: Vec<&DataSet> = sets.iter().collect();
        let sets = match sets {
            [] => {
                own = DataSet::new(&self.plan, self.model.observed.clone());
                DataSets::Shared(&own)
            }
            [one] => DataSets::Shared(one),
            _ => DataSets::Each(&each),
        };
        let mut batch = CpuBatch::new(Arc::clone(&self.plan));
        let mut nll = vec![0.0; n];
        let mut gradient = vec![0.0; if gradients { params.len() } else { 0 }];
        if gradients {
            batch.nll_and_grad(sets, params, &mut nll, &mut gradient);
        } else {
            batch.nll(sets, params, &mut nll);
        }
        (nll, gradient)
    }
}
