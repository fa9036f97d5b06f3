//! The extension module of the Python package: each function is a call of one library function.
//!
//! Functions take a model and a dictionary of settings, release the interpreter's lock while they
//! compute, and return dictionaries whose large parts are NumPy arrays. The Python files have
//! names, defaults, documentation and result classes.

mod adaptive_toys;
mod asimov;
mod batch;
mod by_name;
mod card;
mod choice;
mod combination;
mod convert;
mod curves;
mod data_sets;
mod differentiable;
mod documents;
mod error;
mod fits;
mod floating;
mod interpolation;
mod interrupt;
mod memory;
mod model;
mod numbers;
mod on_device;
mod points;
mod ranking;
mod scanner;
mod settings;
mod simplify;
mod tables;
mod tests_of_mu;
mod text;
mod toys;
mod watch;
mod yields;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

/// Runs the command with `arguments`, the first of which is its own name; returns the exit code.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| ns_cli::run(arguments))
}

/// Returns `text` with control, bidirectional and invisible characters escaped.
///
/// With `keep_lines`, line feeds and tabs stay.
#[pyfunction]
#[pyo3(signature = (text, *, keep_lines = false))]
fn escape(text: &Bound<'_, PyString>, keep_lines: bool) -> PyResult<String> {
    // Lone surrogates, which Python allows in text, are not Unicode.
    let bytes = text.call_method1("encode", ("utf-8", "backslashreplace"))?.cast_into::<PyBytes>()?;
    let text = String::from_utf8_lossy(bytes.as_bytes());
    let escaped = if keep_lines { ns_terminal::escape_lines(&text) } else { ns_terminal::escape(&text) };
    Ok(escaped.into_owned())
}

/// Returns the names of the backends that have a device here.
#[pyfunction]
fn devices(py: Python<'_>) -> Vec<&'static str> {
    let found = py.detach(ns_device::probe);
    let mut names: Vec<&str> =
        found.iter().filter(|found| found.is_available()).map(|found| found.backend.name()).collect();
    names.dedup();
    names
}

#[pymodule]
fn _nextstat(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("BACKENDS", PyTuple::new(module.py(), ns_device::Backend::ALL.map(ns_device::Backend::name))?)?;
    if let Some(warning) = ns_terminal::unknown_instruction_set() {
        let message = std::ffi::CString::new(warning)?;
        PyErr::warn(module.py(), &module.py().get_type::<PyUserWarning>(), &message, 0)?;
    }
    module.add_class::<model::PyModel>()?;
    module.add_class::<floating::FloatingModel>()?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(devices, module)?)?;
    module.add_function(wrap_pyfunction!(escape, module)?)?;
    module.add_class::<interrupt::PyStopper>()?;
    numbers::register(module)?;
    asimov::register(module)?;
    text::register(module)?;
    error::register(module)?;
    combination::register(module)?;
    documents::register(module)?;
    simplify::register(module)?;
    interpolation::register(module)?;
    fits::register(module)?;
    tests_of_mu::register(module)?;
    curves::register(module)?;
    data_sets::register(module)?;
    ranking::register(module)?;
    scanner::register(module)?;
    toys::register(module)?;
    adaptive_toys::register(module)?;
    differentiable::register(module)?;
    batch::register(module)?;
    settings::register(module)?;
    tables::register(module)?;
    yields::register(module)
}
