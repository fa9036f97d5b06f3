//! Scans of many signals over one background.

use nextstat::scanner::{Scanner, SignalScan, SignalScanLimits, SignalScanRequest, SignalSlot, Signals};
use ns_inference::parallel::ExecutionContext;
use ns_translate::pyhf::{from_value, read_value};
use ns_translate::{
    DocumentError, DocumentSource, DocumentText, LoadRequest, LoadedWorkspace, NumberTable, load_document, read_bytes,
};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::choice::Choice;
use crate::convert::{array, fields, matrix};
use crate::error;
use crate::model::warn;
use crate::settings::{annotate, of_any_model};
use crate::tests_of_mu::statistic;
use crate::watch::{callback, monitored};

/// A background that signals are tested with.
#[pyclass(name = "RawScanner", module = "nextstat._nextstat", frozen)]
pub(crate) struct PyScanner(Scanner);

/// Where a background is.
#[derive(FromPyObject)]
enum Source {
    Text(PyBackedBytes),
    Path(PathBuf),
}

/// The sample that signals take the place of.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Slot {
    sample: String,
    strength: Option<String>,
    lumi: Option<String>,
    normsys: Vec<(String, [f64; 2])>,
}

/// What is computed for every signal.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wanted {
    mu: f64,
    test_stat: String,
    level: Option<f64>,
    explore: bool,
}

/// Arrays by channel.
type Arrays<'py> = Vec<(String, PyReadonlyArray2<'py, f64>)>;

#[pymethods]
impl PyScanner {
    /// Makes a place for signals in a background: JSON text in bytes, or the path of a file.
    #[new]
    fn new(
        py: Python<'_>,
        workspace: Source,
        choice: Choice,
        settings: &Bound<'_, PyDict>,
        slot: Slot,
    ) -> PyResult<Self> {
        let (measurement, options) = (choice.measurement.clone(), { choice }.options(py)?);
        let settings = of_any_model(py, settings)?;
        let loaded = match workspace {
            Source::Text(text) => {
                let document = DocumentText::new(text.to_vec());
                let read = || read_value(document.bytes()).and_then(|value| from_value(&value));
                let workspace = py.detach(read).map_err(|problem| error::document(py, &problem.into()))?;
                LoadedWorkspace::from_memory(workspace, document)
            }
            Source::Path(path) => {
                let request = LoadRequest { measurement, ..LoadRequest::new(DocumentSource::Path(path)) };
                py.detach(|| load_document(&request)).map_err(|problem| error::document(py, &problem))?
            }
        };
        for warning in &loaded.warnings {
            warn(py, warning)?;
        }
        let Slot { sample, strength, lumi, normsys } = slot;
        let slot = SignalSlot { sample, strength, lumi, normsys };
        let made = py.detach(|| Scanner::new(&loaded, &options, &settings, &slot));
        made.map(Self).map_err(|problem| error::library(py, &problem))
    }

    /// Tests every signal.
    fn scan<'py>(
        &self,
        py: Python<'py>,
        yields: Arrays<'py>,
        uncertainties: Arrays<'py>,
        wanted: Wanted,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let signals = Signals { yields: tables(yields), uncertainties: tables(uncertainties) };
        let Wanted { mu, test_stat, level, explore } = wanted;
        let request =
            SignalScanRequest { mu: Some(mu), statistic: statistic(py, &test_stat)?, limit_level: level, explore };
        let threads = self.0.analysis().threads();
        let found = monitored(py, callback(progress).as_ref(), |monitor| {
            self.0.scan(&signals, &request, ExecutionContext::new(threads, monitor))
        })?;
        document(py, &self.0, &found.map_err(|problem| error::library(py, &problem))?)
    }

    /// Returns the names of the channels with their numbers of bins.
    fn channels(&self) -> Vec<(String, usize)> {
        let model = self.0.analysis().whole_model();
        model.channels.iter().enumerate().map(|(c, name)| (name.clone(), model.channel_bins(c).len())).collect()
    }
}

fn tables(arrays: Arrays<'_>) -> BTreeMap<String, NumberTable> {
    let table = |(name, array): (String, PyReadonlyArray2<'_, f64>)| {
        let array = array.as_array();
        let (n_rows, n_columns) = array.dim();
        (name, NumberTable { values: array.iter().copied().collect(), n_rows, n_columns })
    };
    arrays.into_iter().map(table).collect()
}

/// Returns the fields of `found`, its lists as arrays.
fn document<'py>(py: Python<'py>, scanner: &Scanner, found: &SignalScan) -> PyResult<Bound<'py, PyDict>> {
    let band = |values: &[[f64; 5]]| matrix(py, values.as_flattened().to_vec(), [values.len(), 5]);
    let alarm = found.alarm();
    let limits = found.limits.as_ref().map(|limits: &SignalScanLimits| {
        let fields = PyDict::new(py);
        fields.set_item("level", limits.level)?;
        fields.set_item("observed", array(py, &limits.observed))?;
        fields.set_item("expected", band(&limits.expected)?)?;
        Ok::<_, PyErr>(fields)
    });
    let fields = fields(py, found)?;
    fields.set_item("limits", limits.transpose()?)?;
    fields.set_item("CLs_exp", band(&found.cls_exp)?)?;
    let lists = [
        ("CLs_obs", &found.cls_obs),
        ("q", &found.q),
        ("q_asimov", &found.q_asimov),
        ("bestfit", &found.bestfit),
        ("twice_nll", &found.twice_nll),
        ("twice_nll_best", &found.twice_nll_best),
    ];
    for (name, values) in lists {
        fields.set_item(name, array(py, values))?;
    }
    fields.set_item("signal_converged", numpy::PyArray1::from_slice(py, &found.signal_converged))?;
    fields.set_item("measurement", &scanner.analysis().model().measurement)?;
    fields.set_item("alarm", alarm)?;
    annotate(scanner.analysis(), &fields)?;
    Ok(fields)
}

/// Returns the arrays in a NumPy archive or a JSON file, with their names.
#[pyfunction]
fn read_named_tables(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(String, Bound<'_, PyAny>)>> {
    let source = DocumentSource::Path(path);
    let read = || {
        let tables = ns_translate::read_named_tables(&read_bytes(&source)?);
        tables.map_err(|problem| DocumentError::from(problem).in_file(&source.name()))
    };
    let tables = py.detach(read).map_err(|problem| error::document(py, &problem))?;
    let array =
        |(name, table): (String, NumberTable)| Ok((name, matrix(py, table.values, [table.n_rows, table.n_columns])?));
    tables.into_iter().map(array).collect()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_named_tables, module)?)?;
    module.add_class::<PyScanner>()
}
