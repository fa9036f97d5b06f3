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
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::convert::{array, fields, matrix, object, optional_array};
use crate::error;
use crate::interrupt::interruptible;
use crate::model::PyModel;
use crate::settings::{Setup, elements, setup, sign};

/// What follows from a fit and few look at who fit in a loop: as Python objects it would take longer than the fit.
#[pyclass(name = "RawFit", module = "nextstat._nextstat", frozen)]
pub(crate) struct PyFit {
    on: FittedOn,
    result: FitResult,
}

/// What a fit was of.
pub(crate) struct FittedOn {
    pub(crate) model: Arc<Model>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) data: Data,
    pub(crate) domain: Domain,
}

#[pymethods]
impl PyFit {
    /// The inverse of the exact Hessian (P × P), zero for parameters without uncertainty; None if it has none.
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let n = self.result.bestfit.len();
        let values = py.detach(|| -> PyResult<_> {
            let mut likelihood = CpuLikelihood::with_plan(Arc::clone(&self.on.plan), &self.on.data);
            crate::memory::for_fits(&likelihood)?;
            let is_finite = self.result.nll.is_finite();
            Ok(is_finite
                .then(|| Hessian::at(&mut likelihood, &self.result.bestfit, &self.on.domain).covariance())
                .flatten())
        });
        values?.map(|values| matrix(py, values, [n, n])).transpose()
    }

    /// Where the fit left the constrained parameters.
    fn pulls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &pulls(&self.on.model, &self.on.data, &self.result, &self.on.domain.fixed))
    }

    /// What a reader should know before using the numbers.
    fn warnings(&self) -> Vec<String> {
        warnings(&self.on.model, &self.result)
    }

    /// Best-fit values by the names of the sets of parameters.
    fn mle_parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let by_set = PyDict::new(py);
        for set in &self.on.model.parameters.sets {
            by_set.set_item(&set.name, &self.result.bestfit[set.range()])?;
        }
        Ok(by_set)
    }
}

/// A fit, with uncertainties if `errors`; `minos` names parameters. Matrices, pulls and values by set are in `later`.
#[pyfunction]
fn fit_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    errors: bool,
    minos: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let (names, plan) = (model.names(py)?, Arc::clone(model.plan()));
    let Setup { model, data, likelihood, options, device, .. } = setup(py, model, settings)?;
    let (domain, _) = domain_and_start(&model, &options);
    let minos = minos_of(py, &model, minos, &domain.fixed)?;
    let errors = if errors { Errors::Hessian } else { Errors::None };
    let options = FitOptions { errors, minos, ..options };
    let options = match &device {
        None => options,
        Some(device) => py.detach(|| device.started(&model, &data, options)),
    };
    let result = interruptible(py, likelihood, |likelihood| fit(&model, &data, likelihood, &options))?;
    let has_minima = !result.minima.is_empty();
    let document = fit_document(py, (FittedOn { model, plan, data, domain }, names), result)?;
    if !has_minima {
        document.del_item("minima")?;
    }
    sign(device.as_ref(), &document)?;
    Ok(document)
}

/// What the fit says, and what its best point deserves: looking for negative yields takes a tenth of a fit.
pub(crate) fn warnings(model: &Model, result: &FitResult) -> Vec<String> {
    let negative = result.nll.is_finite().then(|| documents::negative_yield(model, &result.bestfit)).flatten();
    result.warnings.iter().cloned().chain(negative).collect()
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

/// The fields of a fit's result, its vectors as arrays.
pub(crate) fn fit_document<'py>(
    py: Python<'py>,
    (on, names): (FittedOn, Bound<'py, PyTuple>),
    mut result: FitResult,
) -> PyResult<Bound<'py, PyDict>> {
    result.covariance = None;
    // As Python's numbers and words, one by one, they would take longer than the fit.
    let (bestfit, uncertainties) = (std::mem::take(&mut result.bestfit), std::mem::take(&mut result.uncertainties));
    let par_names = std::mem::take(&mut result.par_names);
    let document = fields(py, &result)?;
    document.del_item("covariance")?;
    document.del_item("warnings")?;
    if result.not_parabolic.is_empty() {
        document.set_item("not_parabolic", PyTuple::empty(py))?;
    }
    document.set_item("par_names", names)?;
    document.set_item("bestfit", array(py, &bestfit))?;
    document.set_item("uncertainties", optional_array(py, &uncertainties))?;
    (result.bestfit, result.uncertainties, result.par_names) = (bestfit, uncertainties, par_names);
    let pois = PyList::empty(py);
    for &index in &on.model.pois {
        let poi = PyDict::new(py);
        poi.set_item("name", &on.model.parameters.names[index])?;
        poi.set_item("index", index)?;
        poi.set_item("bestfit", result.bestfit[index])?;
        poi.set_item("uncertainty", result.uncertainties[index])?;
        pois.append(poi)?;
    }
    document.set_item("poi", pois.iter().next())?;
    document.set_item("pois", pois)?;
    document.set_item("measurement", &on.model.measurement)?;
    document.set_item("later", Bound::new(py, PyFit { on, result })?)?;
    Ok(document)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFit>()?;
    module.add_function(wrap_pyfunction!(fit_model, module)?)
}
