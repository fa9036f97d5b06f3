//! Toys: their data, their fits, and tests and goodness of fit by toys.

use std::ops::ControlFlow;

use nextstat::Analysis;
use nextstat::error::Procedure;
use nextstat::goodness::GoodnessRequest;
use nextstat::hypothesis::tested_by_toys;
use ns_core::Data;
use ns_inference::minimize::Outcome;
use ns_inference::monitor::Monitor;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{
    AuxTreatment, Ensemble, HypotestSettings, HypotestToys, RunStatus, StatisticSamples, ToyFit, ToyFitter,
    ToyHypotest, ToyRun, ToySampler, ToySource, ToysError,
};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{array, fields, frozen_matrix, matrix, object, optional_array};
use crate::error;
use crate::interrupt::{answer, in_parts};
use crate::memory::room;
use crate::model::PyModel;
use crate::numbers::{list, point};
use crate::settings::{analysis, annotate};
use crate::tests_of_mu::statistic;
use crate::watch::{answer_watched, callback};

/// Returns what happens to the auxiliary data of toys.
fn aux(is_fixed: bool) -> AuxTreatment {
    if is_fixed { AuxTreatment::Fixed } else { AuxTreatment::Fluctuated }
}

/// Returns what throws the toys of fits at `params`.
fn sampler(analysis: &Analysis, params: &[f64], is_aux_fixed: bool) -> PyResult<ToySampler> {
    let source = ToySource { seed: analysis.seed(), ensemble: Ensemble::Fits, aux: aux(is_aux_fixed) };
    ToySampler::new(analysis.model(), analysis.data(), params, source)
        .map_err(|reason| error::toys(&ToysError::from(reason)))
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
    let sampler = sampler(&analysis, &params, is_aux_fixed)?;
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

/// Which toys are fitted.
#[derive(FromPyObject, Clone, Copy)]
#[pyo3(from_item_all)]
struct FitsWanted {
    first: u64,
    end: u64,
    is_aux_fixed: bool,
    wants_uncertainty: bool,
}

/// Fits toys, thrown at `params`.
#[pyfunction]
fn fit_toys_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    params: &Bound<'py, PyAny>,
    wanted: FitsWanted,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let FitsWanted { first, end, is_aux_fixed, wants_uncertainty } = wanted;
    let analysis = analysis(py, model, settings)?;
    let params = point(analysis.model(), params, "params")?;
    let sampler = sampler(&analysis, &params, is_aux_fixed)?;
    let poi = || analysis.poi_with_uncertainty().map_err(|problem| error::settings(py, &problem));
    let uncertainty_of = if wants_uncertainty { Some(poi()?) } else { None };
    let toys = ToyFitter { model: analysis.model(), options: analysis.options(), sampler: &sampler, uncertainty_of };
    let mut fits = Fits { params: room(end - first, analysis.model().n_params(), "toys")?, each: Vec::new() };
    answer_watched(py, callback(progress).as_ref(), &analysis, |analysis, monitor| {
        let run = analysis.run(monitor);
        let Ok(_) = toys.run(&analysis.likelihood()?, first..end, &run, |more| {
            more.into_iter().for_each(|fit| fits.push(fit));
            Ok::<_, std::convert::Infallible>(())
        });
        Ok(())
    })?;
    let document = toy_fields(py, &analysis, fits, wants_uncertainty)?;
    document.set_item("thrown_at", array(py, &params))?;
    document.set_item("aux", object(py, &aux(is_aux_fixed))?)?;
    let device = analysis.device().map_or("cpu".to_owned(), |device| device.backend().to_string());
    document.set_item("devices", [device])?;
    annotate(&analysis, &document)?;
    Ok(document)
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
    document.set_item("params", frozen_matrix(py, params, [fits.len(), analysis.model().n_params()])?)?;
    document.set_item("nll", PyArray1::from_vec(py, fits.iter().map(|fit| fit.nll).collect()))?;
    let converged: Vec<bool> = fits.iter().map(|fit| fit.outcome == Outcome::Converged).collect();
    document.set_item("n_failed", converged.iter().filter(|converged| !**converged).count())?;
    document.set_item("converged", PyArray1::from_vec(py, converged))?;
    let uncertainty: Vec<Option<f64>> = fits.iter().map(|fit| fit.uncertainty).collect();
    document.set_item("poi_uncertainty", wants_uncertainty.then(|| optional_array(py, &uncertainty)))?;
    let outcomes: Vec<Outcome> = fits.iter().map(|fit| fit.outcome).collect();
    document.set_item("outcomes", object(py, &outcomes)?)?;
    document.set_item("measurement", &analysis.model().measurement)?;
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
    fn settings(self, py: Python<'_>, analysis: &Analysis) -> PyResult<HypotestSettings> {
        let test_statistic = statistic(py, &self.test_stat)?;
        if !matches!(test_statistic, TestStatistic::Q | TestStatistic::QTilde | TestStatistic::Q0) {
            let hint = Some("there are `qtilde`, `q` and `q0`".to_owned());
            let message = format!("toys do not have the test statistic `{}`", self.test_stat);
            return Err(error::parameter(py, message, hint));
        }
        let mu = tested_by_toys(test_statistic, self.mu).map_err(|problem| error::settings(py, &problem))?;
        Ok(HypotestSettings {
            test_statistic,
            poi: poi(py, analysis)?,
            mu,
            n_toys: self.n_toys,
            seed: analysis.seed(),
            aux: aux(self.is_aux_fixed),
        })
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
    let TestWanted { stop_at_error, range, .. } = wanted;
    let analysis = analysis(py, model, settings)?;
    let wanted = wanted.settings(py, &analysis)?;
    let test = test(py, &analysis, wanted)?;
    let [first, end] = range.unwrap_or([0, wanted.n_units()]);
    let mut units = room(end - first, 1, "toys")?;
    let mut samples = StatisticSamples::default();
    answer_watched(py, callback(progress).as_ref(), &analysis, |analysis, monitor| {
        let run = ToyRun { whole: Some([first, end]), ..analysis.run(monitor) };
        let likelihood = analysis.likelihood()?;
        let mut next = first;
        while next < end
            && !monitor.is_cancelled()
            && !wanted.is_enough(next, &samples, &test.observed(), stop_at_error)
        {
            let stop = wanted.next_check(next, stop_at_error).min(end);
            let Ok(ended) = test.run(&likelihood, next..stop, &run, |tests| {
                tests.iter().for_each(|test| samples.push(test.unit.which, test.value));
                units.extend(tests.iter().map(|test| test.value.unwrap_or(f64::NAN)));
                Ok::<_, std::convert::Infallible>(ControlFlow::Continue(()))
            });
            if ended == RunStatus::Failed {
                break;
            }
            next = stop;
        }
        Ok(())
    })?;
    let document = test_fields(py, &analysis, &test, &samples)?;
    annotate(&analysis, &document)?;
    Ok(if range.is_some() { PyArray1::from_vec(py, units).into_any() } else { document.into_any() })
}

/// Prepares a test by toys: fits the data.
fn test<'a>(py: Python<'_>, analysis: &'a Analysis, wanted: HypotestSettings) -> PyResult<ToyHypotest<'a>> {
    answer(py, analysis, |stoppable| {
        let likelihood = &mut stoppable.likelihood()?;
        Ok(ToyHypotest::new(analysis.model(), likelihood, analysis.options(), wanted)?)
    })
}

/// Returns the parameter of interest, which a test varies.
fn poi(py: Python<'_>, analysis: &Analysis) -> PyResult<usize> {
    analysis.varied(None, Procedure::HypotestToys).map_err(|problem| error::settings(py, &problem))
}

/// Returns the command's document with the statistic of every toy.
fn test_fields<'py>(
    py: Python<'py>,
    analysis: &Analysis,
    test: &ToyHypotest<'_>,
    samples: &StatisticSamples,
) -> PyResult<Bound<'py, PyDict>> {
    let result = HypotestToys::new(test.observed(), samples);
    let document = fields(py, &result)?;
    let tails = PyDict::new(py);
    for (key, tail) in [("CLsb_obs", &result.clsb), ("CLb_obs", &result.clb)] {
        tails.set_item(key, object(py, tail)?)?;
        document.set_item(key, tail.value)?;
        document.set_item(format!("{key}_error"), tail.error)?;
    }
    document.set_item("tail_probabilities", tails)?;
    let (model, wanted) = (analysis.model(), test.settings());
    document.set_item("n_toys_wanted", wanted.n_toys)?;
    document.set_item("seed", wanted.seed)?;
    document.set_item("aux", object(py, &wanted.aux)?)?;
    document.set_item("parameter", &model.parameters.names[wanted.poi])?;
    document.set_item("measurement", &model.measurement)?;
    document.set_item("par_names", &model.parameters.names)?;
    let [tested, alternative] = test.thrown_at();
    let thrown_at = PyDict::new(py);
    thrown_at.set_item("tested", array(py, tested))?;
    thrown_at.set_item("alternative", array(py, alternative))?;
    document.set_item("thrown_at", thrown_at)?;
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
    let stop_at_error = wanted.stop_at_error;
    let analysis = analysis(py, model, settings)?;
    let wanted = wanted.settings(py, &analysis)?;
    let (test, values) = (test(py, &analysis, wanted)?, list(values, "values")?);
    let mut samples = StatisticSamples::default();
    for (unit, value) in (0..).zip(&values) {
        if wanted.is_enough(unit, &samples, &test.observed(), stop_at_error) {
            return test_fields(py, &analysis, &test, &samples).map(Some);
        }
        samples.push(wanted.unit(unit).which, Some(*value).filter(|value| !value.is_nan()));
    }
    let n_done = values.len() as u64;
    let is_over = n_done == wanted.n_units() || wanted.is_enough(n_done, &samples, &test.observed(), stop_at_error);
    is_over.then(|| test_fields(py, &analysis, &test, &samples)).transpose()
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
    let document = fields(py, &answer.document(&[]))?;
    document.set_item("converged", answer.result.fit.converged)?;
    // Not from the JSON document, which has no NaN.
    document.set_item("toys", object(py, &answer.result.toys)?)?;
    Ok(document)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(throw_toys, module)?)?;
    module.add_function(wrap_pyfunction!(fit_toys_model, module)?)?;
    module.add_function(wrap_pyfunction!(hypotest_toys_model, module)?)?;
    module.add_function(wrap_pyfunction!(hypotest_of_units, module)?)?;
    module.add_function(wrap_pyfunction!(goodness_model, module)?)
}
