//! Toys: thrown data, ensembles of fits, tests and goodness of fit by toys.

use std::ops::ControlFlow;

use ns_cli::documents;
use ns_core::Data;
use ns_inference::fit;
use ns_inference::gof::{goodness_of_fit, saturated_deviance};
use ns_inference::minimize::Outcome;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{
    Aux, Ended, Ensemble, FitToys, Hypotest, HypotestSettings, HypotestToys, Run, Samples, Source, Thrower, ToyFit,
    ToysError, goodness_toys,
};
use ns_inference::{Errors, FitOptions};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{array, fields, frozen_matrix, matrix, object, optional_array};
use crate::error;
use crate::interrupt::{in_parts, interruptible};
use crate::memory::room;
use crate::model::PyModel;
use crate::numbers::{list, point};
use crate::settings::{Setup, setup};
use crate::tests_of_mu::statistic;
use crate::watch::{callback, watched};

fn aux(is_fixed: bool) -> Aux {
    if is_fixed { Aux::Fixed } else { Aux::Fluctuated }
}

fn thrower(setup: &Setup, params: &[f64], ensemble: Ensemble, is_aux_fixed: bool) -> PyResult<Thrower> {
    let source = Source { seed: setup.seed, ensemble, aux: aux(is_aux_fixed) };
    Thrower::new(&setup.model, &setup.data, params, source).map_err(|reason| error::toys(&ToysError::from(reason)))
}

/// The data of the toys `first` to `end` (T × (B + K)), thrown at `params`.
#[pyfunction]
fn throw_toys<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    params: &Bound<'py, PyAny>,
    range: (u64, u64),
    is_aux_fixed: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let setup = setup(py, model, settings)?;
    let params = point(&setup.model, params, "params")?;
    let thrower = thrower(&setup, &params, Ensemble::Fits, is_aux_fixed)?;
    let (first, n_toys) = (range.0, range.1 - range.0);
    let width = setup.model.n_bins() + setup.model.n_aux();
    let mut all = room(n_toys, width, "toys")?;
    let mut data = Data::default();
    in_parts(py, (n_toys as usize, width), |part| {
        for toy in part {
            thrower.throw(first + toy as u64, &mut data);
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

/// Fits of toys, thrown at `params`.
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
    let setup = setup(py, model, settings)?;
    let params = point(&setup.model, params, "params")?;
    let thrower = thrower(&setup, &params, Ensemble::Fits, is_aux_fixed)?;
    let uncertainty_of = if wants_uncertainty { Some(setup.parameter(py, None, "fit_toys")?) } else { None };
    let toys = FitToys { model: &setup.model, options: &setup.options, thrower: &thrower, uncertainty_of };
    let mut fits = Fits { params: room(end - first, setup.model.n_params(), "toys")?, each: Vec::new() };
    watched(py, callback(progress).as_ref(), &setup.likelihood, |likelihood, monitor| {
        let run = setup.run(monitor);
        toys.run(likelihood, first..end, &run, |more| {
            more.into_iter().for_each(|fit| fits.push(fit));
            Ok::<_, std::convert::Infallible>(())
        })
    })?
    .unwrap_or_else(|never| match never {});
    let document = toy_fields(py, &setup, fits, wants_uncertainty)?;
    document.set_item("thrown_at", array(py, &params))?;
    document.set_item("aux", object(py, &aux(is_aux_fixed))?)?;
    let device = setup.device.as_ref().map_or("cpu".to_owned(), |device| device.backend().to_string());
    document.set_item("devices", [device])?;
    setup.sign(&document)?;
    Ok(document)
}

/// Fits of toys, the parameters of all in one place (T × P), where they stay.
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

/// Arrays over toys.
fn toy_fields<'py>(
    py: Python<'py>,
    setup: &Setup,
    Fits { params, each: fits }: Fits,
    wants_uncertainty: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let document = PyDict::new(py);
    document.set_item("par_names", &setup.model.parameters.names)?;
    document.set_item("poi", setup.model.poi().map(|i| &setup.model.parameters.names[i]))?;
    let toys: Vec<u64> = fits.iter().map(|fit| fit.toy).collect();
    document.set_item("toys", PyArray1::from_vec(py, toys))?;
    document.set_item("params", frozen_matrix(py, params, [fits.len(), setup.model.n_params()])?)?;
    document.set_item("nll", PyArray1::from_vec(py, fits.iter().map(|fit| fit.nll).collect()))?;
    let converged: Vec<bool> = fits.iter().map(|fit| fit.outcome == Outcome::Converged).collect();
    document.set_item("n_failed", converged.iter().filter(|converged| !**converged).count())?;
    document.set_item("converged", PyArray1::from_vec(py, converged))?;
    let uncertainty: Vec<Option<f64>> = fits.iter().map(|fit| fit.uncertainty).collect();
    document.set_item("poi_uncertainty", wants_uncertainty.then(|| optional_array(py, &uncertainty)))?;
    let outcomes: Vec<Outcome> = fits.iter().map(|fit| fit.outcome).collect();
    document.set_item("outcomes", object(py, &outcomes)?)?;
    document.set_item("measurement", &setup.model.measurement)?;
    document.set_item("seed", setup.seed)?;
    Ok(document)
}

/// What is tested by toys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TestWanted {
    mu: f64,
    test_stat: String,
    n_toys: [u64; 2],
    is_aux_fixed: bool,
    stop_at_error: Option<f64>,
    /// The units of the run to make, all if None; with units left out only the statistics of toys are of use.
    range: Option<(u64, u64)>,
}

impl TestWanted {
    fn settings(self, py: Python<'_>, setup: &Setup) -> PyResult<HypotestSettings> {
        let test_statistic = statistic(py, &self.test_stat)?;
        if !matches!(test_statistic, TestStatistic::Q | TestStatistic::QTilde | TestStatistic::Q0) {
            let hint = Some("there are `qtilde`, `q` and `q0`".to_owned());
            return Err(error::parameter(py, format!("`{}` is not tested by toys", self.test_stat), hint));
        }
        Ok(HypotestSettings {
            test_statistic,
            poi: setup.parameter(py, None, "hypotest_toys")?,
            mu: self.mu,
            n_toys: self.n_toys,
            seed: setup.seed,
            aux: aux(self.is_aux_fixed),
        })
    }
}

/// CLs by toys; of a range of units their statistics in order, NaN where a fit failed.
#[pyfunction]
fn hypotest_toys_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: TestWanted,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let TestWanted { stop_at_error, range, .. } = wanted;
    let setup = setup(py, model, settings)?;
    let wanted = wanted.settings(py, &setup)?;
    let test = test(py, &setup, wanted)?;
    let (first, end) = range.unwrap_or((0, wanted.n_units()));
    let mut units = room(end - first, 1, "toys")?;
    let mut samples = Samples::default();
    watched(py, callback(progress).as_ref(), &setup.likelihood, |likelihood, monitor| {
        let run = Run { whole: Some([first, end]), ..setup.run(monitor) };
        let mut next = first;
        while next < end
            && !monitor.is_cancelled()
            && !wanted.is_enough(next, &samples, &test.observed(), stop_at_error)
        {
            let stop = wanted.next_check(next, stop_at_error).min(end);
            let Ok(ended) = test.run(likelihood, next..stop, &run, |tests| {
                tests.iter().for_each(|test| samples.push(test.unit.which, test.value));
                units.extend(tests.iter().map(|test| test.value.unwrap_or(f64::NAN)));
                Ok::<_, std::convert::Infallible>(ControlFlow::Continue(()))
            });
            if ended == Ended::Failed {
                break;
            }
            next = stop;
        }
    })?;
    let document = test_fields(py, &setup, &test, &samples)?;
    setup.sign(&document)?;
    Ok(if range.is_some() { PyArray1::from_vec(py, units).into_any() } else { document.into_any() })
}

/// A test by toys, with the fits to the data that it begins with.
fn test<'a>(py: Python<'_>, setup: &'a Setup, wanted: HypotestSettings) -> PyResult<Hypotest<'a>> {
    let Setup { model, data, likelihood, options, .. } = setup;
    let work = |likelihood: &mut _| Hypotest::new(model, (data, likelihood), options, wanted);
    interruptible(py, likelihood.clone(), work)?.map_err(|problem| error::toys(&problem))
}

/// The command's document, and the statistic of every toy.
fn test_fields<'py>(
    py: Python<'py>,
    setup: &Setup,
    test: &Hypotest<'_>,
    samples: &Samples,
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
    let (model, wanted) = (&setup.model, test.settings());
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

/// CLs of toys that were made elsewhere: `values` has the statistics of the first units in order, as `hypotest_toys_model` returns them.
///
/// None if the stopping rule wants more of them than there are, and there are more to be made.
#[pyfunction]
fn hypotest_of_units<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    wanted: TestWanted,
    values: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let stop_at_error = wanted.stop_at_error;
    let setup = setup(py, model, settings)?;
    let wanted = wanted.settings(py, &setup)?;
    let (test, values) = (test(py, &setup, wanted)?, list(values, "values")?);
    let mut samples = Samples::default();
    for (unit, value) in (0..).zip(&values) {
        if wanted.is_enough(unit, &samples, &test.observed(), stop_at_error) {
            return test_fields(py, &setup, &test, &samples).map(Some);
        }
        samples.push(wanted.unit(unit).which, Some(*value).filter(|value| !value.is_nan()));
    }
    let n_done = values.len() as u64;
    let is_over = n_done == wanted.n_units() || wanted.is_enough(n_done, &samples, &test.observed(), stop_at_error);
    is_over.then(|| test_fields(py, &setup, &test, &samples)).transpose()
}

/// Goodness of fit, by the formula and by `n_toys` toys if that is not 0.
#[pyfunction]
fn goodness_model<'py>(
    py: Python<'py>,
    model: &PyModel,
    settings: &Bound<'py, PyDict>,
    n_toys: u64,
    is_aux_fixed: bool,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let setup = setup(py, model, settings)?;
    let Setup { model, data, likelihood, options, threads, .. } = &setup;
    // As in the command, whose fit ends at the exact minimum because it has uncertainties.
    let with_errors = FitOptions { errors: Errors::Hessian, ..options.clone() };
    let (result, goodness) = interruptible(py, likelihood.clone(), |likelihood| {
        let result = fit(model, data, likelihood, &with_errors);
        let goodness = goodness_of_fit(model, data, likelihood, (&result, options), *threads);
        (result, goodness)
    })?;
    let document = documents::goodness(model, &result, &goodness);
    let document = fields(py, &document)?;
    document.set_item("converged", result.converged)?;
    document.set_item("toys", py.None())?;
    if n_toys > 0 && result.converged {
        let thrower = thrower(&setup, &result.bestfit, Ensemble::Goodness, is_aux_fixed)?;
        let (domain, _) = ns_inference::fit::domain_and_start(model, options);
        let observed = saturated_deviance(model, data, &result.bestfit, &domain.fixed);
        let (toys, _) = watched(py, callback(progress).as_ref(), likelihood, |likelihood, monitor| {
            let run = setup.run(monitor);
            goodness_toys((model, likelihood, options), &thrower, 0..n_toys, &run, &observed)
        })?;
        let p_values = fields(py, &toys)?;
        p_values.set_item("n_toys_wanted", n_toys)?;
        p_values.set_item("seed", setup.seed)?;
        p_values.set_item("aux", object(py, &aux(is_aux_fixed))?)?;
        document.set_item("toys", p_values)?;
    }
    setup.sign(&document)?;
    Ok(document)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(throw_toys, module)?)?;
    module.add_function(wrap_pyfunction!(fit_toys_model, module)?)?;
    module.add_function(wrap_pyfunction!(hypotest_toys_model, module)?)?;
    module.add_function(wrap_pyfunction!(hypotest_of_units, module)?)?;
    module.add_function(wrap_pyfunction!(goodness_model, module)?)
}
