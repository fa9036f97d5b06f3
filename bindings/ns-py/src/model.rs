//! A compiled model in Python: immutable, shared by threads, pickled as its workspace.

use std::path::PathBuf;
use std::sync::Arc;

use nextstat::CompiledModel;
use nextstat::evaluate::PointBatch;
use nextstat::pois::poi_index;
use nextstat::settings::index_of;
use ns_core::likelihood::diagnose;
use ns_core::summary::summarize;
use ns_core::{CompileOptions, Constraint, Data, Model};
use ns_translate::pyhf::{from_value, read_value, write_workspace};
use ns_translate::{DocumentSource, DocumentText, LoadRequest, LoadedWorkspace, load_document};
use numpy::PyArray1;
use pyo3::exceptions::{PyTypeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyList, PyTuple};

use crate::card::GivenCardOptions;
use crate::choice::Choice;
use crate::convert::{array, fields, frozen_array, frozen_matrix, matrix, object};
use crate::error;
use crate::interrupt::in_parts;
use crate::memory::{filled, room};
use crate::numbers::{HasAux, data, data_sets, shown};
use crate::points::{point, points};

/// A statistical model with its observed data: immutable, shared by threads.
///
/// P is the number of parameters, B that of bins, K that of auxiliary data.
#[pyclass(name = "Model", module = "nextstat", frozen, weakref)]
pub(crate) struct PyModel {
    choice: Choice,
    compiled: CompiledModel,
    /// Of `compiled`.
    model: Arc<Model>,
    /// Parameter names as a Python tuple, which all results of the model share.
    names: PyOnceLock<Py<PyTuple>>,
}

impl PyModel {
    /// Compiles a workspace and keeps the text that it was read from.
    fn of_document(py: Python<'_>, loaded: LoadedWorkspace, choice: Choice) -> PyResult<Self> {
        Self::compile(py, choice, |options| Ok(CompiledModel::from_loaded(loaded, options)?))
    }

    /// Makes a model with `compile`, without the interpreter's lock.
    pub(crate) fn compile(
        py: Python<'_>,
        choice: Choice,
        compile: impl FnOnce(&CompileOptions) -> Result<CompiledModel, nextstat::Error> + Send,
    ) -> PyResult<Self> {
        let options = choice.options(py)?;
        let made = py.detach(|| compile(&options));
        let compiled = made.map_err(|problem| error::library(py, &problem))?;
        Ok(Self { choice, model: Arc::clone(compiled.model()), compiled, names: PyOnceLock::new() })
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the model with its workspace.
    pub(crate) fn compiled(&self) -> &CompiledModel {
        &self.compiled
    }

    pub(crate) fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let made = || PyTuple::new(py, &self.model.parameters.names).map(Bound::unbind);
        Ok(self.names.get_or_try_init(py, made)?.bind(py).clone())
    }
}

/// Values at points.
struct BatchValues {
    /// -ln L (N).
    nll: Vec<f64>,
    /// Its gradients (N × P), if asked for.
    gradient: Vec<f64>,
}

/// Issues a warning about a document, at the line outside the package that reads it.
pub(crate) fn warn(py: Python<'_>, warning: &str) -> PyResult<()> {
    let category = py.get_type::<PyUserWarning>();
    py.import("nextstat._errors")?.call_method1("warn", (warning, category)).map(drop)
}

/// The files that a model is read from, as Python passes them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Files {
    workspace: PathBuf,
    patches: Vec<PathBuf>,
    /// A patch set and the name of one of its patches, which is applied first.
    patchset: Option<PathBuf>,
    patch_name: Option<String>,
    card: GivenCardOptions,
}

#[pymethods]
impl PyModel {
    /// Compiles a workspace given as JSON text.
    #[new]
    #[pyo3(signature = (workspace, choice=None))]
    fn new(py: Python<'_>, workspace: &Bound<'_, PyAny>, choice: Option<Choice>) -> PyResult<Self> {
        let Ok(workspace) = workspace.extract::<&[u8]>() else {
            let message =
                "`Model` takes JSON in bytes: `load_workspace` reads files, `model_of` takes dictionaries and text";
            return Err(PyTypeError::new_err(message));
        };
        let document = DocumentText::new(workspace.to_vec());
        let read = || read_value(document.bytes()).and_then(|value| from_value(&value));
        let workspace = py.detach(read).map_err(|problem| error::document(py, &problem.into()))?;
        Self::of_document(py, LoadedWorkspace::from_memory(workspace, document), choice.unwrap_or_default())
    }

    /// Reads a file, applies the patch of a set and then patches, and compiles.
    #[staticmethod]
    fn load(py: Python<'_>, files: Files, choice: Choice) -> PyResult<Self> {
        let Files { workspace, patches, patchset, patch_name, card } = files;
        let patches = patches.into_iter().map(DocumentSource::Path).collect();
        let request = LoadRequest {
            workspace: DocumentSource::Path(workspace),
            patches,
            patchset: patchset.zip(patch_name),
            measurement: choice.measurement.clone(),
            card: card.into(),
        };
        let loaded = py.detach(|| load_document(&request)).map_err(|problem| error::document(py, &problem))?;
        for warning in &loaded.warnings {
            warn(py, warning)?;
        }
        Self::of_document(py, loaded, choice)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (py, model) = (slf.py(), slf.get());
        let text = write_workspace(&model.compiled.workspace()).to_string();
        let arguments = (PyBytes::new(py, text.as_bytes()), model.choice.clone());
        Ok((slf.get_type().into_any(), arguments.into_pyobject(py)?.into_any()))
    }

    /// Returns the workspace as JSON text.
    fn workspace_json(&self) -> String {
        write_workspace(&self.compiled.workspace()).to_string()
    }

    /// The measurement's name.
    #[getter]
    fn measurement(&self) -> &str {
        &self.model.measurement
    }

    /// Names of the channels, in the order of the data.
    #[getter]
    fn channels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.model.channels)
    }

    /// Names of the samples.
    #[getter]
    fn samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.model.samples)
    }

    /// Number of bins of each channel.
    #[getter]
    fn channel_n_bins(&self) -> Vec<usize> {
        (0..self.model.channels.len()).map(|c| self.model.channel_bins(c).len()).collect()
    }

    /// Parameter names (P), elements of vectors as `name` with their index.
    #[getter]
    fn par_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.model.parameters.names)
    }

    /// The parameter of interest.
    #[getter]
    fn poi(&self) -> Option<&str> {
        self.model.poi().map(|i| self.model.parameters.names[i].as_str())
    }

    /// All parameters of interest.
    #[getter]
    fn pois(&self) -> Vec<&str> {
        self.model.pois.iter().map(|&i| self.model.parameters.names[i].as_str()).collect()
    }

    /// The index of the parameter of interest.
    #[getter]
    fn poi_index(&self) -> Option<usize> {
        self.model.poi()
    }

    /// Returns the same model with the parameter `name` as its only one of interest.
    ///
    /// Examples
    /// --------
    /// >>> import nextstat
    /// >>> model = nextstat.load_workspace("examples/shapes.json")
    /// >>> model.with_poi("norm_ttbar").poi, model.poi
    /// ('norm_ttbar', 'mu')
    fn with_poi(&self, py: Python<'_>, name: &str) -> PyResult<Self> {
        let poi = poi_index(&self.model, name).map_err(|problem| error::poi(py, &problem))?;
        let (choice, compiled) = (self.choice.with_poi(name.to_owned()), self.compiled.with_poi(poi));
        Ok(Self { choice, model: Arc::clone(compiled.model()), compiled, names: PyOnceLock::new() })
    }

    /// Returns the index of the parameter `name`.
    ///
    /// Examples
    /// --------
    /// >>> import nextstat
    /// >>> model = nextstat.load_workspace("examples/simple.json")
    /// >>> model.index("mu")
    /// 0
    fn index(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<usize> {
        let found: PyResult<String> = name.extract();
        let wrong = |_| PyTypeError::new_err(format!("`name` must be that of a parameter, not `{}`", shown(name)));
        index_of(&self.model.parameters, None, &found.map_err(wrong)?).map_err(|problem| error::settings(py, &problem))
    }

    /// Starting values (P), read-only.
    #[getter]
    fn init<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        frozen_array(py, &self.model.parameters.init)
    }

    /// Ranges (P × 2), read-only.
    #[getter]
    fn bounds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let parameters = &self.model.parameters;
        let ends: Vec<f64> = parameters.lower.iter().zip(&parameters.upper).flat_map(|(lo, hi)| [*lo, *hi]).collect();
        frozen_matrix(py, ends, [parameters.len(), 2])
    }

    /// Whether the measurement fixes each parameter (P).
    #[getter]
    fn fixed(&self) -> Vec<bool> {
        self.model.parameters.fixed.clone()
    }

    /// P, the number of parameters.
    #[getter]
    fn n_params(&self) -> usize {
        self.model.n_params()
    }

    /// B, the number of bins.
    #[getter]
    fn n_bins(&self) -> usize {
        self.model.n_bins()
    }

    /// K, the number of auxiliary data.
    #[getter]
    fn n_aux(&self) -> usize {
        self.model.n_aux()
    }

    /// Observed data: main bins (B), then auxiliary data (K); read-only.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        frozen_array(py, &[&self.model.observed.main[..], &self.model.observed.aux[..]].concat())
    }

    /// Returns what is known of each set of parameters, in order.
    fn parameter_sets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for set in &self.model.parameters.sets {
            let entry = PyDict::new(py);
            entry.set_item("name", &set.name)?;
            entry.set_item("kinds", object(py, &set.kinds)?)?;
            entry.set_item("start", set.first)?;
            entry.set_item("len", set.len)?;
            entry.set_item("is_scalar", set.is_scalar)?;
            // pyhf's word for a Gaussian; a vector may have several kinds of term, or none for
            // some.
            let word = |constraint: Constraint| match constraint {
                Constraint::Gaussian { .. } => "normal",
                other => other.name(),
            };
            let kinds = set.range().map(|i| self.model.parameters.constraint[i].map(word));
            let kind = kinds.reduce(|first, kind| if first == kind { first } else { Some("mixed") });
            entry.set_item("constraint", kind.flatten())?;
            // σ of normal terms, τ of Poisson terms.
            let scales: Vec<f64> = set.range().filter_map(|i| self.model.parameters.constraint[i]).map(scale).collect();
            entry.set_item("scales", array(py, &scales))?;
            // One standard deviation below and above the starting value; NaN without a term.
            let parameters = &self.model.parameters;
            let of_element =
                |i: usize| parameters.constraint[i].map_or([f64::NAN; 2], |c| c.widths(parameters.init[i]));
            let widths: Vec<f64> = set.range().flat_map(of_element).collect();
            entry.set_item("widths", matrix(py, widths, [set.len, 2])?)?;
            let aux: Vec<usize> = set.range().filter_map(|i| self.model.parameters.aux_index[i]).collect();
            entry.set_item("aux_indices", aux)?;
            list.append(entry)?;
        }
        Ok(list)
    }

    /// Returns expected data at `params`, one point (P) or many (N, P).
    ///
    /// One point may be a dictionary of values by name, with the rest at their starting values.
    /// They are those of the main bins (B), and auxiliary data (K) if `aux`.
    ///
    /// Examples
    /// --------
    /// >>> import nextstat
    /// >>> model = nextstat.load_workspace("examples/simple.json")
    /// >>> float(model.expected_data(model.init, aux=False).sum())
    /// 125.0
    #[pyo3(signature = (params, *, aux=HasAux(true)), text_signature = "($self, params, *, aux=True)")]
    fn expected_data<'py>(
        &self,
        py: Python<'py>,
        params: &Bound<'py, PyAny>,
        aux: HasAux,
    ) -> PyResult<Bound<'py, PyAny>> {
        let HasAux(has_aux) = aux;
        let found = points(&self.model, params)?;
        let (n, n_params) = (found.rows.unwrap_or(1), self.model.n_params());
        let width = self.model.n_bins() + if has_aux { self.model.n_aux() } else { 0 };
        let mut all = room(n as u64, width, "points")?;
        in_parts(py, n, width + n_params, |part| {
            let params = &found.values[part.start * n_params..part.end * n_params];
            all.extend(self.compiled.expected(params, has_aux));
        })?;
        match found.rows {
            None => Ok(PyArray1::from_vec(py, all).into_any()),
            Some(rows) => matrix(py, all, [rows, width]),
        }
    }

    /// Returns -ln L at `params`, one point (P) or many (N, P).
    ///
    /// One point may be a dictionary of values by name, with the rest at their starting values.
    /// Of the observed data, of `data`, or of one row of `data` for each point. One point gives a
    /// number, many give an array (N); +inf outside the domain of the model.
    ///
    /// Examples
    /// --------
    /// >>> import nextstat
    /// >>> model = nextstat.load_workspace("examples/simple.json")
    /// >>> round(2 * model.nll(model.init), 6)
    /// 25.598897
    /// >>> model.nll([model.init, model.init]).shape
    /// (2,)
    /// >>> model.nll({"mu": 1.0}) == model.nll(model.init)
    /// True
    #[pyo3(signature = (params, data=None, *, threads=None))]
    fn nll<'py>(
        &self,
        py: Python<'py>,
        params: &Bound<'py, PyAny>,
        data: Option<&Bound<'py, PyAny>>,
        threads: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (found, rows) = self.evaluate::<false>(py, Asked { params, data, threads })?;
        per_point(py, found.nll, rows)
    }

    /// Returns -ln L and its gradient (P) or (N, P), which is NaN where -ln L is not finite.
    ///
    /// `params` are those of `nll`.
    ///
    /// Examples
    /// --------
    /// >>> import nextstat
    /// >>> model = nextstat.load_workspace("examples/simple.json")
    /// >>> nll, gradient = model.nll_and_grad(model.init)
    /// >>> round(float(gradient[model.index("mu")]), 6)
    /// 0.967742
    #[pyo3(signature = (params, data=None, *, threads=None))]
    fn nll_and_grad<'py>(
        &self,
        py: Python<'py>,
        params: &Bound<'py, PyAny>,
        data: Option<&Bound<'py, PyAny>>,
        threads: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (found, rows) = self.evaluate::<true>(py, Asked { params, data, threads })?;
        let gradient = match rows {
            None => PyArray1::from_vec(py, found.gradient).into_any(),
            Some(rows) => matrix(py, found.gradient, [rows, self.model.n_params()])?,
        };
        Ok((per_point(py, found.nll, rows)?, gradient))
    }

    /// Returns why -ln L is not finite at `params` (P); None where it is finite.
    ///
    /// Of the observed data or of `data`; `params` may be values by name.
    ///
    /// Examples
    /// --------
    /// >>> import nextstat
    /// >>> model = nextstat.load_workspace("examples/simple.json")
    /// >>> print(model.diagnose([-5.0, 1.0, 1.0]))
    /// channel `singlechannel`, bin 0: -10 events expected where 57 were observed (lowest yield: sample `signal`, -60)
    #[pyo3(signature = (params, data=None))]
    fn diagnose(&self, params: &Bound<'_, PyAny>, data: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
        let params = point(&self.model, params, "params")?;
        let data = self.data_or_observed(data)?;
        Ok(diagnose(&self.model, &data, &params).map(|reason| reason.to_string()))
    }

    /// Returns what the workspace contains.
    #[pyo3(name = "_inspect")]
    fn inspect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let summary = summarize(self.compiled.workspace_outline(), Some(&self.model.measurement));
        fields(py, &summary.map_err(|problem| error::compile(py, &problem))?)
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("nextstat._views")?.call_method1("model_html", (slf,))
    }

    fn __repr__(&self) -> String {
        let model = &self.model;
        let poi = self
            .poi()
            .map_or_else(|| "no parameter of interest".to_owned(), |name| format!("parameter of interest `{name}`"));
        let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let text = format!(
            "<nextstat.Model `{}`: {}, {}, {}, {poi}>",
            model.measurement,
            counted(model.channels.len(), "channel"),
            counted(model.n_bins(), "bin"),
            counted(model.n_params(), "parameter")
        );
        ns_terminal::escape(&text).into_owned()
    }
}

fn scale(constraint: Constraint) -> f64 {
    match constraint {
        Constraint::Gaussian { sigma, .. } => sigma,
        Constraint::Poisson { tau } | Constraint::Gamma { tau, .. } => tau,
        Constraint::AsymmetricGaussian { .. } | Constraint::LogNormal { .. } => constraint.width(1.0),
    }
}

/// Arguments of an evaluation.
struct Asked<'a, 'py> {
    params: &'a Bound<'py, PyAny>,
    data: Option<&'a Bound<'py, PyAny>>,
    threads: Option<&'a Bound<'py, PyAny>>,
}

impl PyModel {
    fn data_or_observed(&self, values: Option<&Bound<'_, PyAny>>) -> PyResult<Data> {
        values.map_or_else(|| Ok(self.model.observed.clone()), |values| data(&self.model, values))
    }

    /// Evaluates -ln L; returns the number of rows too, if there are rows.
    ///
    /// One point may go with many sets of data, and one set with many points.
    fn evaluate<const GRADIENT: bool>(
        &self,
        py: Python<'_>,
        Asked { params, data, threads }: Asked<'_, '_>,
    ) -> PyResult<(BatchValues, Option<usize>)> {
        let threads = crate::numbers::threads(py, threads)?;
        let mut found = points(&self.model, params)?;
        let (sets, data_rows) =
            data.map_or_else(|| Ok((vec![self.model.observed.clone()], None)), |data| data_sets(&self.model, data))?;
        let rows = match (found.rows, data_rows) {
            (Some(points), Some(sets)) if points != sets => {
                return Err(error::data(format!(
                    "{points} points and {sets} sets of data: give one of either, or as many"
                )));
            }
            (Some(rows), _) => Some(rows),
            (None, Some(rows)) => {
                let mut values = room(rows as u64, found.values.len(), "points")?;
                (0..rows).for_each(|_| values.extend_from_slice(&found.values));
                found.values = values;
                Some(rows)
            }
            (None, None) => None,
        };
        let (n, n_params) = (rows.unwrap_or(1), self.model.n_params());
        let mut all = BatchValues {
            nll: filled(0.0, n, 1, "points")?,
            gradient: if GRADIENT { filled(0.0, n, n_params, "gradients")? } else { Vec::new() },
        };
        in_parts(py, n, n_params, |part| {
            let params = &found.values[part.start * n_params..part.end * n_params];
            let data = if let [_] = sets.as_slice() { &sets[..] } else { &sets[part.clone()] };
            let batch = PointBatch { params, n: part.len(), data, threads };
            if GRADIENT {
                let gradient = part.start * n_params..part.end * n_params;
                self.compiled.nll_and_grad(&batch, &mut all.nll[part], &mut all.gradient[gradient]);
            } else {
                self.compiled.nll(&batch, &mut all.nll[part]);
            }
        })?;
        Ok((all, rows))
    }
}

/// Returns a number, or an array with a number for each row.
fn per_point(py: Python<'_>, values: Vec<f64>, rows: Option<usize>) -> PyResult<Bound<'_, PyAny>> {
    match (rows, values.as_slice()) {
        (None, [value]) => Ok(PyFloat::new(py, *value).into_any()),
        _ => Ok(PyArray1::from_vec(py, values).into_any()),
    }
}
