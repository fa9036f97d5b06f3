//! Maximum-likelihood fits.

use nextstat::alarm::Alarm;
use nextstat::fit::IntervalTarget;
use nextstat::{Analysis, Answer, FitRequest};
use ns_inference::{FitResult, Uncertainties};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::convert::{array, fields, matrix, object, optional_array};
use crate::error;
use crate::interrupt::answer;
use crate::model::PyModel;
use crate::settings::{analysis, annotate};

/// What follows from a fit, computed when it is read: as Python objects it would take longer than
/// the fit.
#[pyclass(name = "RawFit", module = "nextstat._nextstat", frozen)]
pub(crate) struct PyFit(Answer<FitResult>);

#[pymethods]
impl PyFit {
    /// Returns the inverse of the exact Hessian (P × P); None if there is none.
    ///
    /// It is zero for parameters without uncertainty.
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let n = self.0.result.bestfit.len();
        let values = py.detach(|| self.0.covariance()).map_err(|problem| error::library(py, &problem))?;
        values.map(|values| matrix(py, values, [n, n])).transpose()
    }

    /// Returns the pulls of the constrained parameters.
    fn pulls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.0.pulls())
    }

    /// Returns what a reader should know before using the numbers.
    fn warnings(&self) -> Vec<String> {
        self.0.warnings()
    }

    /// Returns best-fit values by the names of the sets of parameters.
    fn mle_parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let by_set = PyDict::new(py);
        for set in &self.0.model().parameters.sets {
            by_set.set_item(&set.name, &self.0.result.bestfit[set.range()])?;
        }
        Ok(by_set)
    }
}

/// The fit that is wanted.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct FitWanted {
    /// Whether uncertainties are computed.
    errors: bool,
    /// Parameters whose asymmetric intervals are wanted.
    minos: PyIntervals,
    /// Confidence levels of these intervals.
    minos_cls: Vec<f64>,
}

/// The parameters whose intervals Python wants: names, or all that are free.
#[derive(FromPyObject)]
enum PyIntervals {
    #[pyo3(transparent)]
    Named(Vec<String>),
    #[pyo3(transparent)]
    All(bool),
}

impl PyIntervals {
    fn targets(self) -> Vec<IntervalTarget> {
        match self {
            Self::All(true) => vec![IntervalTarget::AllFree],
            Self::All(false) => Vec::new(),
            Self::Named(names) => names.into_iter().map(IntervalTarget::Named).collect(),
        }
    }
}

/// Fits a model. Matrices, pulls and values by set are in `later`.
#[pyfunction]
fn fit_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: FitWanted,
) -> PyResult<Bound<'py, PyDict>> {
    let FitWanted { errors, minos, minos_cls } = wanted;
    let analysis = analysis(py, model, settings)?;
    let request = FitRequest {
        uncertainties: if errors { Uncertainties::Hessian } else { Uncertainties::None },
        minos: minos.targets(),
        minos_cls,
        ..FitRequest::default()
    };
    let fit = answer(py, &analysis, |analysis| analysis.fit(&request))?;
    fit_document(py, &analysis, fit.result, model.names(py)?)
}

/// Returns the fields of a fit's result, its vectors as arrays.
pub(crate) fn fit_document<'py>(
    py: Python<'py>,
    analysis: &Analysis,
    mut result: FitResult,
    names: Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyDict>> {
    // What a stored fit has; otherwise it is computed when it is read.
    let covariance = result.covariance.take().filter(|_| analysis.stored_fit().is_some());
    let has_minima = !result.minima.is_empty();
    // As Python objects, one by one, they would take longer than the fit.
    let (bestfit, uncertainties) = (std::mem::take(&mut result.bestfit), std::mem::take(&mut result.uncertainties));
    let par_names = std::mem::take(&mut result.par_names);
    let document = fields(py, &result)?;
    document.del_item("covariance")?;
    document.del_item("splits")?;
    if analysis.stored_fit().is_none() {
        document.del_item("warnings")?;
    }
    if !has_minima {
        document.del_item("minima")?;
    }
    if result.not_parabolic.is_empty() {
        document.set_item("not_parabolic", PyTuple::empty(py))?;
    }
    document.set_item("par_names", names)?;
    document.set_item("bestfit", array(py, &bestfit))?;
    document.set_item("uncertainties", optional_array(py, &uncertainties))?;
    (result.bestfit, result.uncertainties, result.par_names) = (bestfit, uncertainties, par_names);
    result.covariance = covariance;
    let fit = Answer::new(analysis.on_cpu(), result);
    let pois = object(py, &fit.pois())?;
    document.set_item("poi", pois.try_iter()?.next().transpose()?)?;
    document.set_item("pois", pois)?;
    document.set_item("alarm", fit.alarm())?;
    document.set_item("later", Bound::new(py, PyFit(fit))?)?;
    annotate(analysis, &document)?;
    Ok(document)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFit>()?;
    module.add_function(wrap_pyfunction!(fit_model, module)?)
}
