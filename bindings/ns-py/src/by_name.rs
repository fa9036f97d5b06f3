//! Dictionaries of values by the names of parameters.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::numbers::shown;

/// A setting that is a dictionary of values by the names of parameters.
pub(crate) struct ByName {
    pub(crate) setting: &'static str,
    /// What the dictionary has for each name, in messages.
    pub(crate) form: &'static str,
}

impl ByName {
    /// Reads `given`; the values with `read`.
    pub(crate) fn read<'py, V>(
        &self,
        given: Option<Bound<'py, PyAny>>,
        read: impl Fn(&str, &Bound<'py, PyAny>) -> PyResult<V>,
    ) -> PyResult<Vec<(String, V)>> {
        let Self { setting, form } = self;
        let Some(given) = given else { return Ok(Vec::new()) };
        let Ok(given) = given.cast::<PyDict>() else {
            let found = shown(&given);
            let message = format!("`{setting}` must be a dictionary of names with {form}, not `{found}`");
            return Err(PyTypeError::new_err(message));
        };
        let pair = |(name, value): (Bound<'py, PyAny>, Bound<'py, PyAny>)| {
            let name: String = name.extract().map_err(|_| {
                let found = shown(&name);
                PyTypeError::new_err(format!("`{setting}` has names of parameters, and `{found}` is not a name"))
            })?;
            let value = read(&name, &value)?;
            Ok((name, value))
        };
        given.iter().map(pair).collect()
    }
}
