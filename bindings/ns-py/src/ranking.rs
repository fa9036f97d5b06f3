//! Rankings of nuisance parameters.

use std::sync::Arc;

use nextstat::Analysis;
use nextstat::alarm::Alarm;
use nextstat::ranking::{RankingGroup, RankingGroups, RankingRequest};
use ns_inference::monitor::Monitor;
use ns_inference::parallel::WorkPart;
use ns_inference::ranking::{RankingMethods, RankingPart};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::depythonize;

use crate::asimov::{FitText, read_fit};
use crate::convert::{fields, object};
use crate::error;
use crate::model::PyModel;
use crate::settings::{analysis, annotate};
use crate::watch::{answer_watched, callback};

/// The ranking that is wanted.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct RankingWanted {
    /// `classic`, `global` and `covariance`, or some of them.
    methods: Vec<String>,
    /// Names with their patterns, or with none for a group of the measurement; `None` for all of
    /// the measurement.
    groups: Option<Vec<(String, Option<Vec<String>>)>>,
    minos: bool,
    /// A stored fit to refer to.
    fit: Option<FitText>,
}

impl RankingWanted {
    fn request(self, py: Python<'_>, parts: Vec<RankingPart>) -> PyResult<RankingRequest> {
        let Self { methods, groups, minos, fit } = self;
        let fit = fit.map(|fit| read_fit(py, fit)).transpose()?.map(Arc::new);
        let group = |(name, patterns): (String, Option<Vec<String>>)| match patterns {
            None => RankingGroup::Named(name),
            Some(patterns) => RankingGroup::Matching { name, patterns },
        };
        let groups = groups.map_or(RankingGroups::OfMeasurement, |groups| {
            RankingGroups::These(groups.into_iter().map(group).collect())
        });
        Ok(RankingRequest { methods: methods_of(py, methods)?, minos, groups, parts, fit })
    }
}

/// Ranks nuisance parameters; the impacts in `parts` are not computed again.
#[pyfunction]
#[pyo3(signature = (model, settings, wanted, progress, parts=Vec::new()))]
fn ranking_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: RankingWanted,
    progress: Option<Bound<'py, PyAny>>,
    parts: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let analysis = analysis(py, model, settings)?;
    let parts = parts.into_iter().map(|part| Ok(depythonize(&part)?)).collect::<PyResult<Vec<RankingPart>>>()?;
    let request = wanted.request(py, parts)?;
    let work = |analysis: &Analysis, monitor: &dyn Monitor| analysis.ranking(&request, monitor);
    let answer = answer_watched(py, callback(progress).as_ref(), &analysis, work)?;
    let document = fields(py, &answer.result_document())?;
    document.set_item("alarm", answer.result.alarm())?;
    annotate(&answer.analysis, &document)?;
    Ok(document)
}

/// Computes part `part[0]` of `part[1]` parts of a ranking, for `ranking_model`.
#[pyfunction]
fn ranking_part<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: RankingWanted,
    part: [usize; 2],
) -> PyResult<Bound<'py, PyAny>> {
    let analysis = analysis(py, model, settings)?;
    let request = wanted.request(py, Vec::new())?;
    let work = |analysis: &Analysis, monitor: &dyn Monitor| {
        analysis.ranking_part(&request, WorkPart { index: part[0], n_parts: part[1] }, monitor)
    };
    object(py, &answer_watched(py, None, &analysis, work)?)
}

fn methods_of(py: Python<'_>, methods: Vec<String>) -> PyResult<RankingMethods> {
    let mut wanted = RankingMethods { classic: false, global: false, covariance: false };
    for method in methods {
        match method.as_str() {
            "classic" => wanted.classic = true,
            "global" => wanted.global = true,
            "covariance" => wanted.covariance = true,
            unknown => {
                let hint = Some("choose one of `classic`, `global`, `covariance`".to_owned());
                return Err(error::parameter(py, format!("unknown ranking method `{unknown}`"), hint));
            }
        }
    }
    Ok(wanted)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ranking_model, module)?)?;
    module.add_function(wrap_pyfunction!(ranking_part, module)?)
}
