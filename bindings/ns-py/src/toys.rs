//! Toys: their data, their fits, and tests and goodness of fit by toys.

use nextstat::alarm::Alarm;
use nextstat::goodness::GoodnessRequest;
use nextstat::toy_tests::{ToyTestRequest, ToyTestResult};
use nextstat::toys::{FIXED_AUX, ThrowAt, ToyOptions, ToyPart, ToysRequest};
use nextstat::{Analysis, Answer};
use ns_core::Data;
use ns_inference::minimize::Outcome;
use ns_inference::monitor::Monitor;
use ns_inference::replicas::ReplicaMoments;
use ns_inference::result::PoiBestFit;
use ns_inference::toys::{AuxTreatment, ToyFit};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{array, fields, frozen_matrix, matrix, object, optional_array};
use crate::error;
use crate::interrupt::{answer, in_parts};
use crate::memory::room;
use crate::model::PyModel;
use crate::numbers::list;
use crate::points::point;
use crate::settings::{analysis, annotate};
use crate::tests_of_mu::statistic;
use crate::watch::{answer_watched, callback};

/// Returns what happens to the auxiliary data of toys.
pub(crate) fn aux(is_fixed: bool) -> AuxTreatment {
    if is_fixed { AuxTreatment::Fixed } else { AuxTreatment::Fluctuated }
}

/// Which toys are thrown.
#[derive(FromPyObject, Clone, Copy)]
#[pyo3(from_item_all)]
struct ThrowWanted {
    first: u64,
    end: u64,
    is_aux_fixed: bool,
}

/// Returns the data of toys (T × (B + K)), thrown at `params`.
#[pyfunction]
fn throw_toys<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    params: &Bound<'py, PyAny>,
    wanted: ThrowWanted,
) -> PyResult<Bound<'py, PyAny>> {
    let ThrowWanted { first, end, is_aux_fixed } = wanted;
    let analysis = analysis(py, model, settings)?;
    let params = point(analysis.model(), params, "params")?;
    let sampler = analysis.sampler(&params, aux(is_aux_fixed)).map_err(|problem| error::library(py, &problem))?;
    let n_toys = end - first;
    let width = analysis.model().n_bins() + analysis.model().n_aux();
    let mut all = room(n_toys, width, "toys")?;
    let mut data = Data::default();
    in_parts(py, n_toys as usize, width, |part| {
        for toy in part {
            sampler.throw(first + toy as u64, &mut data);
            all.extend(data.main.iter().chain(&data.aux));
        }
    })?;
    matrix(py, all, [n_toys as usize, width])
}

/// Returns the point at which toys are thrown: the best fit to the data.
#[pyfunction]
fn throwing_point<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let analysis = analysis(py, model, settings)?;
    let at = ThrowAt::BestFit { mu: None };
    Ok(PyArray1::from_vec(py, answer(py, &analysis, |analysis| analysis.throwing_point(&at))?))
}

/// Which toys are fitted.
#[derive(FromPyObject, Clone, Copy)]
#[pyo3(from_item_all)]
struct FitsWanted {
    first: u64,
    end: u64,
    is_aux_fixed: bool,
    wants_uncertainty: bool,
}

/// Fits toys, thrown at `params` or, if None, at the best fit to the data.
#[pyfunction]
fn fit_toys_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    params: Option<&Bound<'py, PyAny>>,
    wanted: FitsWanted,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let FitsWanted { first, end, is_aux_fixed, wants_uncertainty } = wanted;
    let analysis = analysis(py, model, settings)?;
    let given = params.map(|params| point(analysis.model(), params, "params")).transpose()?;
    let part = ToyPart::Range(first..end);
    let request = ToysRequest {
        n_toys: end,
        throw_at: given.map_or(ThrowAt::BestFit { mu: None }, ThrowAt::Params),
        poi_uncertainty: wants_uncertainty,
        options: ToyOptions { aux: aux(is_aux_fixed), part, ..ToyOptions::default() },
        ..ToysRequest::default()
    };
    let mut fits = Fits { params: room(end - first, analysis.model().n_params(), "toys")?, each: Vec::new() };
    let params = answer_watched(py, callback(progress).as_ref(), &analysis, |analysis, monitor| {
        let mut toys = analysis.toys(&request)?;
        toys.run(monitor, |_, more| {
            more.into_iter().for_each(|fit| fits.push(fit));
            Ok::<_, nextstat::Error>(())
        })?;
        // Refuses fits of a device that failed.
        toys.answer().map(|_| toys.params().to_vec())
    })?;
    let document = toy_fields(py, &analysis, fits, wants_uncertainty)?;
    document.set_item("thrown_at", array(py, &params))?;
    document.set_item("aux", object(py, &aux(is_aux_fixed))?)?;
    document.set_item("devices", [nextstat::device::name_of(analysis.backend())])?;
    annotate(&analysis, &document)?;
    Ok(document)
}

/// Returns what a reader should know before using the fits of toys.
#[pyfunction]
fn toys_warnings(n_toys: u64, n_failed: u64, is_aux_fixed: bool) -> Vec<String> {
    nextstat::toys::warnings(n_toys, n_failed, is_aux_fixed)
}

/// Returns the mean and the standard deviation of `values`; None for fewer than two.
#[pyfunction]
fn mean_and_standard_deviation(values: Vec<f64>) -> Option<(f64, f64)> {
    let mut moments = ReplicaMoments::new(1);
    values.into_iter().for_each(|value| moments.add(&[value]));
    Some((moments.mean()[0], moments.standard_deviation(0)?))
}

/// Fits of toys, with the parameters of all in one matrix (T × P).
struct Fits {
    params: Vec<f64>,
    each: Vec<ToyFit>,
}

impl Fits {
    fn push(&mut self, mut fit: ToyFit) {
        self.params.append(&mut fit.params);
        self.each.push(fit);
    }
}

/// Returns fits as arrays over toys.
fn toy_fields<'py>(
    py: Python<'py>,
    analysis: &Analysis,
    Fits { params, each: fits }: Fits,
    wants_uncertainty: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let document = PyDict::new(py);
    document.set_item("par_names", &analysis.model().parameters.names)?;
    document.set_item("poi", analysis.model().poi().map(|i| &analysis.model().parameters.names[i]))?;
    let toys: Vec<u64> = fits.iter().map(|fit| fit.toy).collect();
    document.set_item("toys", PyArray1::from_vec(py, toys))?;
    document.set_item("bestfit", frozen_matrix(py, params, [fits.len(), analysis.model().n_params()])?)?;
    document.set_item("nll", PyArray1::from_vec(py, fits.iter().map(|fit| fit.nll).collect()))?;
    let converged: Vec<bool> = fits.iter().map(|fit| fit.outcome == Outcome::Converged).collect();
    document.set_item("n_failed", converged.iter().filter(|converged| !**converged).count())?;
    document.set_item("converged", PyArray1::from_vec(py, converged))?;
    let uncertainty: Vec<Option<f64>> = fits.iter().map(|fit| fit.uncertainty).collect();
    document.set_item("poi_uncertainty", wants_uncertainty.then(|| optional_array(py, &uncertainty)))?;
    let outcomes: Vec<Outcome> = fits.iter().map(|fit| fit.outcome).collect();
    document.set_item("outcomes", object(py, &outcomes)?)?;
    document.set_item("seed", analysis.seed())?;
    Ok(document)
}

/// The test by toys that is wanted.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TestWanted {
    /// 1 if None, or 0 for q₀.
    mu: Option<f64>,
    test_stat: String,
    n_toys: [u64; 2],
    is_aux_fixed: bool,
    stop_at_error: Option<f64>,
    /// The units of the run to make, from the first to before the last; all if None.
    range: Option<[u64; 2]>,
}

impl TestWanted {
    fn request(self, py: Python<'_>) -> PyResult<ToyTestRequest> {
        let [first, end] = self.range.unwrap_or([0, self.n_units()]);
        let part = ToyPart::Range(first..end);
        Ok(ToyTestRequest {
            mu: self.mu,
            statistic: statistic(py, &self.test_stat)?,
            n_toys: self.n_toys,
            stop_at_error: self.stop_at_error,
            options: ToyOptions { aux: aux(self.is_aux_fixed), part, ..ToyOptions::default() },
        })
    }

    fn n_units(&self) -> u64 {
        self.n_toys.iter().sum()
    }
}

/// Returns CLs by toys; of a range of units their statistics in order, NaN where a fit failed.
#[pyfunction]
fn hypotest_toys_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: TestWanted,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let analysis = analysis(py, model, settings)?;
    let range = wanted.range;
    let [first, end] = range.unwrap_or([0, wanted.n_units()]);
    let request = wanted.request(py)?;
    let mut units = room(end - first, 1, "toys")?;
    let answer = answer_watched(py, callback(progress).as_ref(), &analysis, |analysis, monitor| {
        let mut test = analysis.hypotest_toys(&request)?;
        test.run(monitor, |tests| {
            units.extend(tests.iter().map(|test| test.value.unwrap_or(f64::NAN)));
            Ok::<_, nextstat::Error>(())
        })?;
        test.answer()
    })?;
    let document = test_fields(py, &answer)?;
    annotate(&analysis, &document)?;
    Ok(if range.is_some() { PyArray1::from_vec(py, units).into_any() } else { document.into_any() })
}

/// Returns the command's document with the statistic of every toy.
fn test_fields<'py>(py: Python<'py>, answer: &Answer<ToyTestResult>) -> PyResult<Bound<'py, PyDict>> {
    let ToyTestResult { test: result, identity, samples, .. } = &answer.result;
    let document = fields(py, result)?;
    let tails = PyDict::new(py);
    for (key, tail) in [("CLsb_obs", &result.clsb), ("CLb_obs", &result.clb)] {
        tails.set_item(key, object(py, tail)?)?;
        document.set_item(key, tail.value)?;
        document.set_item(format!("{key}_error"), tail.error)?;
    }
    document.set_item("tail_probabilities", tails)?;
    let (model, settings) = (answer.model(), &identity.settings);
    document.set_item("n_toys_wanted", object(py, &settings["n_toys_of_hypotheses"])?)?;
    document.set_item("seed", answer.analysis.seed())?;
    document.set_item("aux", object(py, &settings["aux"])?)?;
    let poi = model.poi().map(|index| {
        let (name, bestfit) = (model.parameters.names[index].clone(), Some(result.observed.mu_hat));
        PoiBestFit { name, index, bestfit }
    });
    document.del_item("mu_hat")?;
    document.set_item("poi", object(py, &poi)?)?;
    document.set_item("par_names", &model.parameters.names)?;
    let thrown_at = PyDict::new(py);
    for (key, params) in ["tested", "alternative"].iter().zip(&answer.result.thrown_at) {
        thrown_at.set_item(key, array(py, params))?;
    }
    document.set_item("thrown_at", thrown_at)?;
    document.set_item("alarm", answer.result.alarm())?;
    document.set_item("toys_tested", array(py, &samples.values[0]))?;
    document.set_item("toys_alternative", array(py, &samples.values[1]))?;
    Ok(document)
}

/// Returns CLs of toys that were made elsewhere.
///
/// `values` has the statistics of the first units in order, as `hypotest_toys_model` returns them.
/// None if the stopping rule needs more units than these, and there are more to be made.
#[pyfunction]
fn hypotest_of_units<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: TestWanted,
    values: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let analysis = analysis(py, model, settings)?;
    let (request, values) = (wanted.request(py)?, list(values, "values")?);
    let answer = answer(py, &analysis, |analysis| {
        let mut test = analysis.hypotest_toys(&request)?;
        for value in &values {
            if test.is_finished() {
                break;
            }
            test.resume(Some(*value).filter(|value| !value.is_nan()));
        }
        if test.is_finished() { test.answer().map(Some) } else { Ok(None) }
    })?;
    let Some(answer) = answer else { return Ok(None) };
    let document = test_fields(py, &answer)?;
    annotate(&analysis, &document)?;
    Ok(Some(document))
}

/// The toys of a goodness of fit.
#[derive(FromPyObject, Clone, Copy)]
#[pyo3(from_item_all)]
struct GoodnessWanted {
    /// 0 for the formula alone.
    n_toys: u64,
    is_aux_fixed: bool,
}

/// Returns the goodness of fit, by the formula and by toys if they are wanted.
#[pyfunction]
fn goodness_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: GoodnessWanted,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let GoodnessWanted { n_toys, is_aux_fixed } = wanted;
    let analysis = analysis(py, model, settings)?;
    let request = GoodnessRequest { n_toys: Some(n_toys).filter(|n| *n > 0), aux: aux(is_aux_fixed) };
    let work = |analysis: &Analysis, monitor: &dyn Monitor| analysis.goodness(&request, monitor);
    let answer = answer_watched(py, callback(progress).as_ref(), &analysis, work)?;
    let document = fields(py, &answer.result_document())?;
    document.set_item("alarm", answer.result.alarm())?;
    annotate(&analysis, &document)?;
    // Not from the JSON document, which has no NaN.
    document.set_item("toys", object(py, &answer.result.toys)?)?;
    Ok(document)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("FIXED_AUX", FIXED_AUX)?;
    module.add_function(wrap_pyfunction!(throw_toys, module)?)?;
    module.add_function(wrap_pyfunction!(throwing_point, module)?)?;
    module.add_function(wrap_pyfunction!(fit_toys_model, module)?)?;
    module.add_function(wrap_pyfunction!(toys_warnings, module)?)?;
    module.add_function(wrap_pyfunction!(mean_and_standard_deviation, module)?)?;
    module.add_function(wrap_pyfunction!(hypotest_toys_model, module)?)?;
    module.add_function(wrap_pyfunction!(hypotest_of_units, module)?)?;
    module.add_function(wrap_pyfunction!(goodness_model, module)?)
}
