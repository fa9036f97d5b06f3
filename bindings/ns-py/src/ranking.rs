//! Rankings of nuisance parameters.

use ns_cli::documents;
use ns_core::likelihood::diagnose;
use ns_inference::parallel::Crew;
use ns_inference::ranking::{self, Group, Methods, RankingOptions, RankingPart};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::depythonize;

use crate::convert::{fields, object};
use crate::error;
use crate::model::PyModel;
use crate::settings::{Setup, setup};
use crate::watch::{callback, watched};

/// Groups by name, each with its patterns.
type Groups = Vec<(String, Vec<String>)>;

/// Impacts by the methods named, `classic`, `global` and `covariance`; what `parts` have is not done again.
#[pyfunction]
#[pyo3(signature = (model, settings, methods, groups, minos, progress, parts=Vec::new()))]
#[expect(clippy::too_many_arguments, reason = "they are the arguments of a Python function")]
fn ranking_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    methods: Vec<String>,
    groups: Groups,
    minos: bool,
    progress: Option<Bound<'py, PyAny>>,
    parts: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let setup = setup(py, model, settings)?;
    let options = options(py, &setup, methods, groups, minos)?;
    if setup.device.is_some() && !options.methods.classic {
        return Err(error::on_cpu_only(py, "a ranking without classic refits"));
    }
    let parts = parts.into_iter().map(|part| Ok(depythonize(&part)?)).collect::<PyResult<Vec<RankingPart>>>()?;
    let Setup { model, data, likelihood, threads, .. } = &setup;
    let mut result = watched(py, callback(progress).as_ref(), likelihood, |likelihood, monitor| {
        let crew = setup.assist(Crew::new(*threads, monitor));
        ranking::ranking_of_parts(model, data, likelihood, &options, (&parts, crew))
    })?;
    if !result.best.nll.is_finite() {
        result.warnings.extend(diagnose(model, data, &result.best.params).map(|reason| reason.to_string()));
    }
    let document = fields(py, &documents::ranking(model, &result))?;
    setup.sign(&document)?;
    Ok(document)
}

/// Part `part[0]` of `part[1]` parts of the same ranking, for `ranking_model`.
#[pyfunction]
fn ranking_part<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    methods: Vec<String>,
    groups: Groups,
    minos: bool,
    part: [usize; 2],
) -> PyResult<Bound<'py, PyAny>> {
    let setup = setup(py, model, settings)?;
    let options = options(py, &setup, methods, groups, minos)?;
    let Setup { model, data, likelihood, threads, .. } = setup;
    let result = watched(py, None, &likelihood, |likelihood, monitor| {
        ranking::ranking_part(&model, &data, likelihood, &options, (part, Crew::new(threads, monitor)))
    })?;
    object(py, &result)
}

fn options(
    py: Python<'_>,
    setup: &Setup,
    methods: Vec<String>,
    groups: Groups,
    minos: bool,
) -> PyResult<RankingOptions> {
    let poi = setup.parameter(py, None, "ranking")?;
    let mut wanted = Methods { classic: false, global: false, covariance: false };
    for method in methods {
        match method.as_str() {
            "classic" => wanted.classic = true,
            "global" => wanted.global = true,
            "covariance" => wanted.covariance = true,
            unknown => {
                let hint = Some("there are `classic`, `global` and `covariance`".to_owned());
                return Err(error::parameter(py, format!("`{unknown}` is no method of ranking"), hint));
            }
        }
    }
    let (domain, _) = ns_inference::fit::domain_and_start(&setup.model, &setup.options);
    let mut found = Vec::with_capacity(groups.len());
    let hint = || "`model.par_names` has the parameters; `*` stands for anything".to_owned();
    for (name, patterns) in groups {
        let group = Group::matching(&name, &patterns, &setup.model.parameters);
        if group.members.iter().all(|&i| i == poi || domain.fixed[i]) {
            return Err(error::parameter(py, format!("no parameter belongs to the group `{name}`"), Some(hint())));
        }
        found.push(group);
    }
    Ok(RankingOptions { poi, methods: wanted, minos, groups: found, fit: setup.options.clone() })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ranking_model, module)?)?;
    module.add_function(wrap_pyfunction!(ranking_part, module)?)
}
