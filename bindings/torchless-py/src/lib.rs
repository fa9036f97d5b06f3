//! The extension module of the Python package: a model, histograms of its score, and errors as
//! exceptions.
//!
//! `Encoder` in Python prepares arrays; here they are read where they are, with the interpreter's
//! lock released.

mod arrays;
mod encoder;
mod error;
mod histograms;
mod inputs;

use pyo3::prelude::*;

#[pymodule]
fn _torchless(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<encoder::RawEncoder>()?;
    module.add_class::<histograms::RawHistograms>()?;
    error::register(module)
}
