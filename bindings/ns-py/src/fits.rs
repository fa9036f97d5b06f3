//! Fits.

use std::sync::Arc;

use ns_cli::documents;
use ns_compute::CpuLikelihood;
use ns_compute::cpu::Plan;
use ns_core::{Data, Model};
use ns_inference::fit::domain_and_start;
use ns_inference::hessian::Hessian;
use ns_inference::minimize::Domain;
use ns_inference::pulls::pulls;
use ns_inference::{Errors, FitOptions, FitResult, fit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::convert::{array, fields, matrix, object, optional_array};
use crate::error;
use crate::interrupt::interruptible;
use crate::model::PyModel;
use crate::settings::{Setup, elements, setup};

/// Where a fit ended, from which its covariance follows: for large models that takes longer than the fit, and few who fit look at it.
#[pyclass(name = "RawCovariance", module = "nextstat._nextstat", frozen)]
pub(crate) struct PyCovariance {
    plan: Arc<Plan>,
    data: Data,
    domain: Domain,
    params: Vec<f64>,
}

#[pymethods]
impl PyCovariance {
    /// The inverse of the exact Hessian (P × P), zero for parameters without uncertainty; None if it has none.
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let n = self.params.len();
        let values = py.detach(|| {
            let mut likelihood = CpuLikelihood::with_plan(Arc::clone(&self.plan), &self.data);
            Hessian::at(&mut likelihood, &self.params, &self.domain).covariance()
        });
        values.map(|values| matrix(py, &values, [n, n])).transpose()
    }
}

/// A fit; `errors` is `none`, `hessian` or `covariance`, which is then in `later`; `minos` names parameters.
#[pyfunction]
fn fit_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    errors: &str,
    minos: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let plan = Arc::clone(model.plan());
    let Setup { model, data, likelihood, options, .. } = setup(py, model, settings)?;
    let (domain, _) = domain_and_start(&model, &options);
    let minos = minos_of(py, &model, minos, &domain.fixed)?;
    let has_covariance = errors == "covariance";
    let errors = if errors == "none" { Errors::None } else { Errors::Hessian };
    let options = FitOptions { errors, minos, ..options };
    let mut result = interruptible(py, likelihood, |likelihood| fit(&model, &data, likelihood, &options))?;
    if result.nll.is_finite() {
        result.warnings.extend(documents::negative_yield(&model, &result.bestfit));
    }
    let params = (has_covariance && result.nll.is_finite()).then(|| result.bestfit.clone());
    let document = fit_document(py, (&model, &data), result, &options)?;
    if let Some(params) = params {
        document.del_item("covariance")?;
        document.del_item("correlation")?;
        document.set_item("later", Bound::new(py, PyCovariance { plan, data, domain, params })?)?;
    }
    Ok(document)
}

/// The fields of a fit to `data`, with its pulls if there are uncertainties.
pub(crate) fn fit_document<'py>(
    py: Python<'py>,
    (model, data): (&Model, &Data),
    result: FitResult,
    options: &FitOptions,
) -> PyResult<Bound<'py, PyDict>> {
    let (domain, _) = domain_and_start(model, options);
    let pulls = (options.errors != Errors::None).then(|| pulls(model, data, &result, &domain.fixed));
    let document = fit_fields(py, model, result)?;
    if options.multi_start.is_none() {
        document.del_item("minima")?;
    }
    document.set_item("pulls", object(py, &pulls)?)?;
    Ok(document)
}

/// The parameters that are named, each once; `all` is every free one.
fn minos_of(py: Python<'_>, model: &Model, names: Vec<String>, fixed: &[bool]) -> PyResult<Vec<usize>> {
    let mut wanted = Vec::new();
    for name in names {
        if name == "all" && model.parameters.set(&name).is_none() {
            wanted.extend((0..model.n_params()).filter(|&i| !fixed[i]));
            continue;
        }
        let named = elements(py, model, &name)?;
        if let Some(held) = named.clone().find(|&i| fixed[i]) {
            let name = &model.parameters.names[held];
            return Err(error::parameter(py, format!("`{name}` is held fixed and has no interval"), None));
        }
        wanted.extend(named);
    }
    let mut seen = vec![false; model.n_params()];
    wanted.retain(|&i| !std::mem::replace(&mut seen[i], true));
    Ok(wanted)
}

/// The fields of a fit's result, its vectors and matrices as arrays.
fn fit_fields<'py>(py: Python<'py>, model: &Model, mut result: FitResult) -> PyResult<Bound<'py, PyDict>> {
    let n = result.par_names.len();
    let correlation = result.correlation();
    // As Python floats they would take longer than the fit.
    let covariance = result.covariance.take();
    let (bestfit, uncertainties) = (std::mem::take(&mut result.bestfit), std::mem::take(&mut result.uncertainties));
    let document = fields(py, &result)?;
    document.set_item("bestfit", array(py, &bestfit))?;
    document.set_item("uncertainties", optional_array(py, &uncertainties))?;
    let square = |values: Option<Vec<f64>>| values.map(|values| matrix(py, &values, [n, n])).transpose();
    document.set_item("covariance", square(covariance)?)?;
    document.set_item("correlation", square(correlation)?)?;
    let pois = PyList::empty(py);
    for &index in &model.pois {
        let poi = PyDict::new(py);
        poi.set_item("name", &model.parameters.names[index])?;
        poi.set_item("index", index)?;
        poi.set_item("bestfit", bestfit[index])?;
        poi.set_item("uncertainty", uncertainties[index])?;
        pois.append(poi)?;
    }
    document.set_item("poi", pois.iter().next())?;
    document.set_item("pois", pois)?;
    let by_set = PyDict::new(py);
    for set in &model.parameters.sets {
        by_set.set_item(&set.name, &bestfit[set.range()])?;
    }
    document.set_item("mle_parameters", by_set)?;
    document.set_item("measurement", &model.measurement)?;
    Ok(document)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCovariance>()?;
    module.add_function(wrap_pyfunction!(fit_model, module)?)
}
