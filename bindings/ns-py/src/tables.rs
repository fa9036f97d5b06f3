//! Tables of results for papers, made of the JSON text of their documents.

use nextstat::stored::StoredFit;
use nextstat::tables::{FlatValue, Table, TableFormat, TableRequest, UnknownFormat};
use pyo3::prelude::*;

use crate::error;

/// A table of the result in a JSON text.
#[pyclass(name = "RawTable", module = "nextstat._nextstat", frozen)]
struct PyTable(Table);

#[pymethods]
impl PyTable {
    /// Reads the table `table`, or the first, with the rows that `rows` names.
    #[new]
    fn new(
        py: Python<'_>,
        document: &[u8],
        table: Option<String>,
        rows: Vec<String>,
        caption: Option<String>,
        label: Option<String>,
    ) -> PyResult<Self> {
        let made = py.detach(|| Table::from_json(document, &TableRequest { table, rows, caption, label }));
        made.map(Self).map_err(|problem| error::table(py, &problem))
    }

    /// The name of the table.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// What a reader must know of the numbers; None if they can be used without.
    #[getter]
    fn alarm(&self) -> Option<String> {
        self.0.alarm()
    }

    /// Returns the table as `latex`, `csv` or `md`.
    fn text(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        let format: Result<TableFormat, UnknownFormat> = format.parse();
        let format = format.map_err(|problem| error::parameter(py, problem.to_string(), None))?;
        Ok(self.0.text(format))
    }

    /// Returns name and values of each column, with a column for each number.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Vec<Bound<'py, PyAny>>)>> {
        let value = |value: FlatValue| match value {
            FlatValue::Empty => Ok(py.None().into_bound(py)),
            FlatValue::Text(text) => Ok(text.into_pyobject(py)?.into_any()),
            FlatValue::Number(number) => Ok(number.into_pyobject(py)?.into_any()),
        };
        let column = |(name, values): (String, Vec<FlatValue>)| {
            Ok((name, values.into_iter().map(value).collect::<PyResult<Vec<_>>>()?))
        };
        self.0.flat().into_iter().map(column).collect()
    }
}

/// Refuses the JSON text of a fit that is damaged, or whose numbers were changed.
#[pyfunction]
fn require_sound_fit(py: Python<'_>, document: &[u8]) -> PyResult<()> {
    let checked = py.detach(|| StoredFit::require_sound(document));
    checked.map_err(|problem| error::table(py, &problem.into()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(require_sound_fit, module)?)?;
    module.add_class::<PyTable>()
}
