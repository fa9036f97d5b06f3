//! Tests expected counts that are quadratic in a parameter: the fit must find the minimum on either
//! side of the vertex, in every data set; with several such parameters, the lowest minimum.

use ns_compute::CpuLikelihood;
use ns_core::spec::ModifierData::{NormSys, StatError};
use ns_core::{CompileOptions, Data, DataLikelihood, Model, compile, expected};
use ns_inference::parallel::ExecutionContext;
use ns_inference::scan::{ScanAxis, ScanValues, scan};
use ns_inference::{FitOptions, FitResult, MultiStart, Problem, Uncertainties, fit};
use ns_testkit::formulas::{OperatorShape, declared, formula, morphing, operators};
use ns_testkit::random::Random;
use ns_testkit::small::{self, region, sample};
use rayon::prelude::*;

const N_DATA_SETS: u64 = 1_000;

/// The values of the coefficient at which the profile is scanned.
const N_VALUES: usize = 41;

const SMALL: OperatorShape = OperatorShape { bins: 8, operators: 1, nuisances: 6, has_staterror: true };

fn fitted(model: &Model, data: &Data, fixed: Vec<(usize, f64)>, start: Option<Vec<f64>>) -> FitResult {
    let mut likelihood = CpuLikelihood::new(model);
    likelihood.set_data(data);
    let options = FitOptions { fixed, start, uncertainties: Uncertainties::None, ..FitOptions::default() };
    fit(&mut Problem::new(model, &mut likelihood, &options))
}

/// Returns data drawn around the expected ones at `params` (P), with standard deviations √λ.
fn drawn(model: &Model, params: &[f64], seed: u64) -> Data {
    let mut random = Random::new(seed);
    let mut normal = || (0..12).map(|_| random.between(-0.5, 0.5)).sum::<f64>();
    let main =
        expected::expected_main(model, params).iter().map(|y| (y + y.sqrt() * normal()).round().max(0.0)).collect();
    Data { main, aux: model.observed.aux.clone() }
}

/// Returns the coefficient at each local minimum of the profile of -ln L along `poi`, from a scan
/// that knows nothing of formulas.
fn minima_of_profile(model: &Model, data: &Data, poi: usize) -> Vec<f64> {
    let (lower, upper) = (model.parameters.lower[poi], model.parameters.upper[poi]);
    let value = |k: usize| lower + (upper - lower) * k as f64 / (N_VALUES - 1) as f64;
    let profile: Vec<f64> = (0..N_VALUES).map(|k| fitted(model, data, vec![(poi, value(k))], None).twice_nll).collect();
    (1..N_VALUES - 1).filter(|&k| profile[k] < profile[k - 1] && profile[k] < profile[k + 1]).map(value).collect()
}

/// The number of minima of a profile, and why the fit to its data is wrong, if it is.
struct Comparison {
    n_minima: usize,
    fault: Option<String>,
}

fn compare(model: &Model, truth: &[f64], seed: u64) -> Comparison {
    let poi = model.poi().expect("a parameter of interest");
    let data = drawn(model, truth, seed);
    let scanned = minima_of_profile(model, &data, poi);
    let result = fitted(model, &data, Vec::new(), None);
    let found: Vec<f64> = match result.minima.is_empty() {
        true => vec![result.bestfit[poi]],
        false => result.minima.iter().map(|minimum| minimum.params[poi]).collect(),
    };
    let step = (model.parameters.upper[poi] - model.parameters.lower[poi]) / (N_VALUES - 1) as f64;
    let is_found = |at: &f64| found.iter().any(|x| (x - at).abs() <= step);
    // The lower one must be reported, whichever side the fit starts on.
    let sides = scanned.iter().map(|&at| {
        let mut start = result.bestfit.clone();
        start[poi] = at;
        fitted(model, &data, Vec::new(), Some(start)).twice_nll
    });
    let lowest = sides.fold(f64::INFINITY, f64::min);
    let is_lowest = result.converged && result.twice_nll <= lowest + 1e-6;
    let is_right = !scanned.is_empty() && scanned.iter().all(is_found) && is_lowest;
    let fault = format!("data set {seed}: {scanned:?}, found {found:?}, {} where {lowest} is", result.twice_nll);
    Comparison { n_minima: scanned.len(), fault: (!is_right).then_some(fault) }
}

/// Fails if the fit to a data set misses a minimum of its profile. Returns how many data sets have
/// two minima.
fn assert_minima_are_found(model: &Model, truth: &[f64]) -> usize {
    let compared: Vec<Comparison> = (0..N_DATA_SETS).into_par_iter().map(|seed| compare(model, truth, seed)).collect();
    let faults: Vec<&String> = compared.iter().filter_map(|comparison| comparison.fault.as_ref()).collect();
    assert!(faults.is_empty(), "{} data sets: {:#?}", faults.len(), &faults[..faults.len().min(5)]);
    compared.iter().filter(|comparison| comparison.n_minima == 2).count()
}

fn at(model: &Model, poi: f64) -> Vec<f64> {
    let mut params = model.parameters.init.clone();
    params[model.poi().expect("a parameter of interest")] = poi;
    params
}

#[test]
fn both_minima_of_a_quadratic_morphing_are_found_in_all_data_sets() {
    let nominal = [30.0, 25.0, 20.0, 12.0];
    let scaled = |factors: [f64; 4]| nominal.iter().zip(factors).map(|(y, factor)| y * factor).collect::<Vec<f64>>();
    let mut signal = sample("signal", &nominal, &[("theory", NormSys { lo: 0.95, hi: 1.06 })]);
    let terms = vec![("mu", scaled([0.2, 0.3, 0.4, 0.5])), ("mu^2", scaled([0.4, 0.5, 0.6, 0.8]))];
    signal.modifiers.push(morphing("eft", terms));
    let background = sample("background", &[50.0, 45.0, 40.0, 35.0], &[("stat", StatError(vec![2.0; 4]))]);
    let region = region("SR", vec![signal, background], &[140.0, 130.0, 120.0, 95.0]);
    let model = small::model(vec![region], vec![declared("mu", 0.0, [-6.0, 6.0])]);
    assert_eq!(assert_minima_are_found(&model, &at(&model, 1.5)), N_DATA_SETS as usize);
}

#[test]
fn minima_are_found_where_bins_have_different_vertices() {
    let model = compile(&operators(3, SMALL, &[2.0]), &CompileOptions::default()).expect("a sound workspace");
    let n_with_two = assert_minima_are_found(&model, &at(&model, 2.0));
    assert!((100..900).contains(&n_with_two), "{n_with_two} data sets have two minima");
}

#[test]
fn both_minima_of_a_quadratic_formula_are_found_in_all_data_sets() {
    let mut signal = sample("signal", &[12.0, 25.0, 40.0, 30.0], &[]);
    signal.modifiers.push(formula("rate", "1 + 0.3*mu + 0.4*mu^2"));
    let background = sample("background", &[50.0, 45.0, 40.0, 35.0], &[("bkg", NormSys { lo: 0.9, hi: 1.1 })]);
    let region = region("SR", vec![signal, background], &[60.0, 70.0, 80.0, 65.0]);
    let model = small::model(vec![region], vec![declared("mu", 0.0, [-6.0, 6.0])]);
    assert_eq!(assert_minima_are_found(&model, &at(&model, 1.8)), N_DATA_SETS as usize);
}

#[test]
fn a_fit_of_a_large_model_ends_in_the_lowest_minimum_from_either_side() {
    let shape = OperatorShape { bins: 60, operators: 1, nuisances: 80, has_staterror: false };
    for seed in 0..10 {
        let model = compile(&operators(seed, shape, &[1.5]), &CompileOptions::default()).expect("a sound workspace");
        assert!(model.n_params() > 60);
        let from = |c0: f64| fitted(&model, &model.observed, Vec::new(), Some(at(&model, c0)));
        let found = [-4.0, -2.0, 0.0, 1.5, 4.0].map(from);
        let lowest = found.iter().fold(f64::INFINITY, |lowest, result| lowest.min(result.twice_nll));
        let heights = found.each_ref().map(|result| result.twice_nll - lowest);
        assert!(heights.iter().all(|height| *height < 1e-6), "seed {seed}: {heights:?}");
    }
}

/// Returns a model of two to five coefficients, and data drawn at a random point.
fn several_coefficients(seed: u64) -> (Model, Data) {
    let mut random = Random::new(seed);
    let mut whole = |least: f64, most: f64| random.between(least, most).round() as usize;
    let (n_operators, bins, nuisances) = (whole(2.0, 5.0), whole(3.0, 40.0), whole(0.0, 8.0));
    let shape = OperatorShape { bins, operators: n_operators, nuisances, has_staterror: false };
    let truth: Vec<f64> = (0..n_operators).map(|_| random.between(-2.5, 2.5)).collect();
    let model = compile(&operators(seed, shape, &truth), &CompileOptions::default()).expect("a sound workspace");
    let mut params = model.parameters.init.clone();
    for (i, value) in truth.iter().enumerate() {
        params[model.parameters.names.iter().position(|name| *name == format!("c{i}")).expect("declared")] = *value;
    }
    let data = drawn(&model, &params, seed);
    (model, data)
}

/// Returns the rises of a fit, and of the points of a scan, above the lowest of 60 random starts.
fn above_exhaustive(seed: u64) -> Vec<f64> {
    let (model, data) = several_coefficients(seed);
    let mut likelihood = CpuLikelihood::new(&model);
    likelihood.set_data(&data);
    let poi = model.poi().expect("a parameter of interest");
    let exhaustive = |fixed: Vec<(usize, f64)>, likelihood: &mut CpuLikelihood| {
        let multi_start = Some(MultiStart { n_starts: 60, seed });
        let options = FitOptions { fixed, multi_start, uncertainties: Uncertainties::None, ..FitOptions::default() };
        fit(&mut Problem::new(&model, likelihood, &options)).nll
    };
    let values = vec![-4.0, -2.0, -0.5, 1.0, 3.0];
    let axis = ScanAxis { parameter: poi, values: ScanValues::Given(values.clone()) };
    let options = FitOptions::default();
    let free = fit(&mut Problem::new(&model, &mut likelihood, &options)).nll;
    let scanned = scan(&mut Problem::new(&model, &mut likelihood, &options), &axis, ExecutionContext::SINGLE_THREADED);
    let mut above = vec![free - exhaustive(Vec::new(), &mut likelihood)];
    for (value, delta) in values.into_iter().zip(&scanned.delta_nll) {
        let nll = delta.map_or(f64::INFINITY, |delta| delta + scanned.best.nll);
        above.push(nll - exhaustive(vec![(poi, value)], &mut likelihood));
    }
    above
}

#[test]
fn fits_and_scans_of_several_coefficients_are_as_low_as_an_exhaustive_search() {
    let above: Vec<Vec<f64>> = (0..120).into_par_iter().map(above_exhaustive).collect();
    let is_higher = |above: &f64| above.is_nan() || *above >= 1e-5;
    let n_fits = above.iter().filter(|above| is_higher(&above[0])).count();
    let n_points = above.iter().flat_map(|above| &above[1..]).filter(|above| is_higher(above)).count();
    assert_eq!((n_fits, n_points), (0, 0), "fits and points of scans above the lowest minimum");
}
