//! Rankings of nuisance parameters.

use ns_cli::documents;
use ns_core::likelihood::diagnose;
use ns_inference::parallel::Crew;
use ns_inference::ranking::{self, Group, Methods, RankingOptions};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::fields;
use crate::error;
use crate::model::PyModel;
use crate::settings::{Setup, setup};
use crate::watch::watched;

/// How impacts are found.
const METHODS: [&str; 3] = ["classic", "global", "covariance"];

/// Impacts by the methods named, `classic`, `global` and `covariance`; `groups` are names with patterns.
#[pyfunction]
fn ranking_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    methods: Vec<String>,
    groups: Vec<(String, Vec<String>)>,
    minos: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let setup = setup(py, model, settings)?;
    let poi = setup.parameter(py, None, "ranking")?;
    if let Some(unknown) = methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
        let hint = Some("there are `classic`, `global` and `covariance`".to_owned());
        return Err(error::parameter(py, format!("`{unknown}` is no method of ranking"), hint));
    }
    let has = |name: &str| methods.iter().any(|method| method == name);
    let methods = Methods { classic: has("classic"), global: has("global"), covariance: has("covariance") };
    let Setup { model, data, likelihood, options: fit, threads, .. } = setup;
    let (domain, _) = ns_inference::fit::domain_and_start(&model, &fit);
    let mut found = Vec::with_capacity(groups.len());
    let hint = || "`model.par_names` has the parameters; `*` stands for anything".to_owned();
    for (name, patterns) in &groups {
        let group = Group::matching(name, patterns, &model.parameters);
        if group.members.iter().all(|&i| i == poi || domain.fixed[i]) {
            return Err(error::parameter(py, format!("no parameter belongs to the group `{name}`"), Some(hint())));
        }
        found.push(group);
    }
    let options = RankingOptions { poi, methods, minos, groups: found, fit };
    let mut result = watched(py, progress.as_ref(), |monitor| {
        ranking::ranking(&model, &data, &likelihood, &options, Crew { threads, monitor })
    })?;
    if !result.best.nll.is_finite() {
        result.warnings.extend(diagnose(&model, &data, &result.best.params).map(|reason| reason.to_string()));
    }
    fields(py, &documents::ranking(&model, &result))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ranking_model, module)?)
}
