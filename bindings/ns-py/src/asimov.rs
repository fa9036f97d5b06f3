//! Asimov data, which know the point that they were made at, and the stored fits that give such a
//! point.

use std::sync::Arc;

use nextstat::DataSource;
use nextstat::settings::AsimovPoint;
use nextstat::stored::StoredFit;
use ns_core::Model;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::convert::array;
use crate::error;
use crate::model::PyModel;
use crate::numbers::unchecked_data;
use crate::points::{by_name, point};

/// The JSON text of a stored fit's document, and the name of its file if it was read from one.
pub(crate) type FitText = (String, Option<String>);

/// Reads a stored fit.
pub(crate) fn read_fit(py: Python<'_>, (text, file): FitText) -> PyResult<StoredFit> {
    let fit = StoredFit::from_json(text.as_bytes()).map_err(|problem| error::library(py, &problem.into()))?;
    Ok(match file {
        Some(file) => fit.from_file(file),
        None => fit,
    })
}

/// The point of an Asimov data set; pickled as what it was made of.
#[pyclass(name = "RawAsimov", module = "nextstat._nextstat", frozen)]
pub(crate) struct PyAsimov {
    point: AsimovPoint,
    fit: Option<FitText>,
}

#[pymethods]
impl PyAsimov {
    /// Makes the point of `parameters` by name, and of the stored `fit` or the starting values.
    #[new]
    #[pyo3(signature = (parameters, fit=None))]
    fn new(py: Python<'_>, parameters: Vec<(String, f64)>, fit: Option<FitText>) -> PyResult<Self> {
        let stored = fit.clone().map(|fit| read_fit(py, fit)).transpose()?;
        let point = AsimovPoint { fit: stored.map(Arc::new), parameters, ..AsimovPoint::default() };
        Ok(Self { point, fit })
    }

    /// Makes the point of `params`: an array (P), or values by name over those of the stored `fit`
    /// or the starting values.
    #[staticmethod]
    #[pyo3(signature = (model, params, fit=None))]
    fn at(py: Python<'_>, model: &PyModel, params: Option<&Bound<'_, PyAny>>, fit: Option<FitText>) -> PyResult<Self> {
        let Some(params) = params else { return Self::new(py, Vec::new(), fit) };
        if let Some(parameters) = by_name(params)? {
            return Self::new(py, parameters, fit);
        }
        let values = point(model.model(), params, "params")?;
        let point = AsimovPoint::at(model.model(), &values).map_err(|problem| error::settings(py, &problem))?;
        Ok(Self { point, fit: None })
    }

    /// Returns the data of `model`: main bins, then auxiliary data (B + K).
    fn data<'py>(&self, py: Python<'py>, model: &PyModel) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let data = self.point.data(model.model()).map_err(|problem| error::settings(py, &problem))?;
        Ok(array(py, &[data.main, data.aux].concat()))
    }

    /// Returns what the stored fit and `model` do not have in common.
    fn warnings(&self, model: &PyModel) -> Vec<String> {
        self.point.warnings(model.model())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, PickledAsimov)> {
        Ok((py.get_type::<Self>(), (self.point.parameters.clone(), self.fit.clone())))
    }
}

/// The arguments of `RawAsimov`.
type PickledAsimov = (Vec<(String, f64)>, Option<FitText>);

/// Reads the data of an analysis. Those of `asimov_data` are Asimov data as long as they are what
/// the model expects at the point that they were made at.
pub(crate) fn source(model: &Model, values: &Bound<'_, PyAny>) -> PyResult<DataSource> {
    let data = unchecked_data(model, values)?;
    Ok(match asimov(values) {
        Some(asimov) => DataSource::of(data, &asimov.get().point, model),
        None => DataSource::Given(data),
    })
}

/// Returns what an array remembers of the point that it was made at.
fn asimov<'py>(values: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAsimov>> {
    let asimov = values.getattr_opt("asimov").ok().flatten()?;
    asimov.cast_into::<PyAsimov>().ok()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyAsimov>()
}
