//! Tests scans and contours on the CPU: known curves, brute force, intervals, finite ranges,
//! several minima, and threads.

use crate::common;

use common::StopAfter;
use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_core::interpolate::Interpolation;
use ns_core::spec::{ModifierData, ParameterConfig, Sample};
use ns_inference::contour::{ContourCut, ContourOptions, Contours, contours};
use ns_inference::minimize::BoundSide;
use ns_inference::minimize::Outcome;
use ns_inference::options::domain_and_start;
use ns_inference::parallel::{ExecutionContext, WorkPart};
use ns_inference::scan::{Scan, ScanAxis, ScanValues, grid, grid_of_parts, grid_part, scan};
use ns_inference::search::{Candidates, Search};
use ns_inference::{FitOptions, FitResult, MultiStart, Problem, Uncertainties, fit};
use ns_testkit::random::{self, Shape};
use ns_testkit::small::{self, region, sample};
use ns_testkit::{assert_all_close, assert_close};
use std::num::NonZeroUsize;

fn fit_model(model: &Model, options: &FitOptions) -> FitResult {
    fit(&mut Problem::new(model, &mut CpuLikelihood::new(model), options))
}

fn scan_model(model: &Model, parameter: usize, values: ScanValues) -> Scan {
    let axis = ScanAxis { parameter, values };
    scan(
        &mut Problem::new(model, &mut CpuLikelihood::new(model), &FitOptions::default()),
        &axis,
        ExecutionContext::SINGLE_THREADED,
    )
}

/// Returns a model of one channel, with the parameter of interest `mu` in `range`.
fn one_channel(samples: Vec<Sample>, observed: &[f64], range: [f64; 2]) -> Model {
    let mu = ParameterConfig { name: "mu".to_owned(), bounds: Some(vec![range]), ..ParameterConfig::default() };
    small::model(vec![region("channel", samples, observed)], vec![mu])
}

use ModifierData::{HistoSys, NormFactor, NormSys};

/// Returns a model that expects 10 μ + 50 events and has no other parameters.
fn counting(observed: f64) -> Model {
    let samples = vec![sample("signal", &[10.0], &[("mu", NormFactor)]), sample("background", &[50.0], &[])];
    one_channel(samples, &[observed], [0.0, 10.0])
}

/// Returns -2 ln of the ratio of Pois(n | 10 μ + 50) to its largest value.
fn counting_curve(n: f64, mu: f64) -> f64 {
    let lambda = 10.0 * mu + 50.0;
    2.0 * (lambda - n - n * (lambda / n).ln())
}

/// Returns a model with two free factors of overlapping shapes and a constrained parameter.
fn two_factors(range: [f64; 2]) -> Model {
    let samples = vec![
        sample("signal", &[10.0, 30.0, 5.0], &[("mu", NormFactor)]),
        sample("large", &[50.0, 40.0, 30.0], &[("k", NormFactor), ("alpha", NormSys { lo: 0.8, hi: 1.25 })]),
    ];
    one_channel(samples, &[55.0, 80.0, 33.0], range)
}

/// Returns a model whose systematic raises the yield in both directions, so that there is a minimum
/// on either side of zero; which one is lower depends on the signal.
fn two_branches() -> Model {
    let shift = HistoSys { hi_data: vec![130.0, 52.0], lo_data: vec![125.0, 45.0] };
    let samples = vec![
        sample("signal", &[1.0, 4.0], &[("mu", NormFactor)]),
        sample("background", &[100.0, 50.0], &[("alpha", shift)]),
    ];
    one_channel(samples, &[160.0, 58.0], [0.0, 20.0])
}

#[test]
fn scan_of_a_counting_experiment_matches_its_formula() {
    // 2 Δ at μ = 0 is 2 (50 - 65 + 65 ln 1.3) = 4.10735...
    let result = scan_model(&counting(65.0), 0, ScanValues::between(-2.0, 4.0, 13));
    assert!(result.converged && result.is_complete, "{:?}", result.warnings);
    assert_close(result.best.params[0], 1.5, 1e-6, "best fit");
    for (&mu, twice) in result.values[0].iter().zip(&result.twice_delta_nll) {
        assert_close(twice.unwrap_or(f64::NAN), counting_curve(65.0, mu), 1e-11, "2ΔNLL");
    }
    assert_close(result.twice_delta_nll[4].unwrap_or(f64::NAN), 4.107_354_380_773_836, 1e-12, "at 0");
}

#[test]
fn values_outside_the_range_that_fit_better_are_reported() {
    let result = scan_model(&counting(45.0), 0, ScanValues::Given(vec![1.0, -0.5, 0.0, -6.0]));
    let offset = counting_curve(45.0, 0.0);
    for (k, mu) in [(0, 1.0), (1, -0.5), (2, 0.0)] {
        let twice = result.twice_delta_nll[k].unwrap_or(f64::NAN);
        assert_close(twice, counting_curve(45.0, mu) - offset, 1e-11, "2ΔNLL");
    }
    assert!(result.twice_delta_nll[1].is_some_and(|twice| twice < 0.0));
    // The expected count is negative.
    assert_eq!((result.delta_nll[3], &result.params[3], result.outcomes[3]), (None, &None, Some(Outcome::NotFinite)));
    assert!(!result.converged);
    let warnings = result.warnings.join("\n");
    assert!(
        warnings.contains("1 of 4 points did not converge") && warnings.contains("1 of 4 points fit better"),
        "{warnings}"
    );
}

#[test]
fn automatic_ranges_end_where_the_curve_has_risen_or_at_a_bound() {
    for (observed, at_bound) in [(90.0, false), (65.0, true), (45.0, true)] {
        let result = scan_model(&counting(observed), 0, ScanValues::Automatic(21));
        let (first, last) = (result.values[0][0], result.values[0][20]);
        assert_eq!(first == 0.0, at_bound, "{observed}");
        let rise = |k: usize| result.twice_delta_nll[k].unwrap_or(f64::NAN);
        assert!(at_bound || (rise(0) - 9.0).abs() < 0.5, "{observed}: {}", rise(0));
        assert!((rise(20) - 9.0).abs() < 0.5, "{observed}: {} at {last}", rise(20));
    }
    let narrow = one_channel(vec![sample("signal", &[10.0], &[("mu", NormFactor)])], &[9.0], [0.5, 1.25]);
    assert_eq!(scan_model(&narrow, 0, ScanValues::Automatic(3)).values[0], [0.5, 0.875, 1.25]);
    // Without background, the domain of the likelihood ends at zero, because there are observed
    // events.
    let open = one_channel(vec![sample("signal", &[10.0], &[("mu", NormFactor)])], &[9.0], [-5.0, 10.0]);
    let result = scan_model(&open, 0, ScanValues::Automatic(5));
    assert!(result.converged && result.values[0][0] > 0.0, "{result:?}");
}

#[test]
fn scans_of_random_models_match_single_fits_and_intervals() {
    for seed in 0..30 {
        let model = random::model(seed, Shape { oddities: false, ..Shape::SMALL }, Interpolation::default());
        let poi = model.poi().expect("random models have one");
        let free = fit_model(&model, &FitOptions { minos: vec![poi], ..FitOptions::default() });
        let interval = &free.minos[0];
        let ends = [interval.down, interval.up].map(|end| end.map(|end| interval.bestfit + end));
        let mut values: Vec<f64> = ends.into_iter().flatten().collect();
        let n_ends = values.len();
        values.extend([0.1, 0.7, 1.9, 3.3]);
        let result = scan_model(&model, poi, ScanValues::Given(values.clone()));
        assert!(result.converged && result.best.nll <= free.nll + 1e-9, "{seed}: {:?}", result.warnings);
        for (k, &value) in values.iter().enumerate() {
            let fixed =
                FitOptions { fixed: vec![(poi, value)], uncertainties: Uncertainties::None, ..FitOptions::default() };
            let single = fit_model(&model, &fixed);
            let rise = result.delta_nll[k].unwrap_or(f64::NAN);
            assert!(
                rise >= 0.0 && rise <= single.nll - result.best.nll + 1e-8,
                "{seed}: {rise} at {value}, {}",
                single.nll - result.best.nll
            );
            // If there is one minimum only, 2 Δ is 1 at the ends of the interval.
            let is_one = result.warnings.is_empty() && (single.nll - result.best.nll - rise).abs() < 1e-8;
            assert!(k >= n_ends || !is_one || (2.0 * rise - 1.0).abs() < 1e-6, "{seed}: {rise} at {value}");
        }
    }
}

#[test]
fn scan_is_the_lower_envelope_of_two_branches() {
    let model = two_branches();
    let poi = model.poi().expect("has one");
    let result = scan_model(&model, poi, ScanValues::between(0.0, 20.0, 41));
    assert!(result.converged, "{:?}", result.warnings);
    let mut sides = [0, 0];
    let alpha = 1 - poi;
    for (k, &mu) in result.values[0].iter().enumerate() {
        let options = FitOptions {
            fixed: vec![(poi, mu)],
            multi_start: Some(MultiStart { n_starts: 20, seed: 1 }),
            uncertainties: Uncertainties::None,
            ..FitOptions::default()
        };
        let lowest = fit_model(&model, &options).nll - result.best.nll;
        assert_close(result.delta_nll[k].unwrap_or(f64::NAN), lowest, 1e-8, &format!("Δ at {mu}"));
        let at = result.params[k].as_ref().expect("converged")[alpha];
        sides[usize::from(at > 0.0)] += 1;
    }
    assert!(sides[0] > 0 && sides[1] > 0, "both branches are part of the curve: {sides:?}");
}

#[test]
fn every_procedure_finds_the_lowest_minimum_from_a_start_on_the_wrong_side() {
    let model = two_branches();
    let alpha = model.parameters.index_of("alpha").expect("has it");
    let best = fit_model(&model, &FitOptions { multi_start: Some(MultiStart::default()), ..FitOptions::default() });
    // A start on the wrong side of zero leads to the higher minimum, at -1.81, whose reflection is
    // outside the range.
    let mut start = best.bestfit.clone();
    start[alpha] = -start[alpha];
    let wrong = FitOptions { start: Some(start), bounds: vec![(alpha, [-5.0, 1.75])], ..FitOptions::default() };
    let (domain, start) = domain_and_start(&model, &wrong);
    let mut likelihood = CpuLikelihood::new(&model);
    let descended = Search::new(&mut likelihood, domain, Candidates::of(&model), wrong.minimize).run(&start);
    assert!(descended.converged() && descended.nll > best.nll + 0.01, "{} {}", descended.nll, best.nll);
    let fitted = fit_model(&model, &wrong);
    assert_close(fitted.nll, best.nll, 1e-9, "the lowest minimum of the fit");
    assert_eq!(fitted.minima.len(), 2, "{:?}", fitted.minima);
    let axis = ScanAxis { parameter: alpha, values: ScanValues::between(-3.0, 1.5, 19) };
    let result = scan(
        &mut Problem::new(&model, &mut CpuLikelihood::new(&model), &wrong),
        &axis,
        ExecutionContext::SINGLE_THREADED,
    );
    assert_close(result.best.nll, best.nll, 1e-9, "the lowest minimum");
    assert!(result.is_complete && result.delta_nll.iter().all(|delta| delta.is_some_and(|delta| delta >= 0.0)));
    let both = [&axis, &ScanAxis { parameter: 1 - alpha, values: ScanValues::between(0.0, 20.0, 5) }];
    let result =
        grid(&Problem::new(&model, &mut CpuLikelihood::new(&model), &wrong), both, ExecutionContext::SINGLE_THREADED);
    assert_close(result.best.nll, best.nll, 1e-9, "the lowest minimum of the grid");
    assert!(result.is_complete && result.delta_nll.iter().all(|delta| delta.is_some_and(|delta| delta >= 0.0)));
}

#[test]
fn grids_match_single_fits_for_any_number_of_threads() {
    let model = two_factors([0.0, 10.0]);
    let index = |name: &str| model.parameters.index_of(name).expect("has it");
    let axes = [("mu", 0.0, 2.5), ("k", 0.6, 1.4)]
        .map(|(name, start, stop)| ScanAxis { parameter: index(name), values: ScanValues::between(start, stop, 7) });
    let run = |threads: usize| {
        let execution = ExecutionContext {
            threads: NonZeroUsize::new(threads).expect("not zero"),
            ..ExecutionContext::SINGLE_THREADED
        };
        grid(
            &Problem::new(&model, &mut CpuLikelihood::new(&model), &FitOptions::default()),
            [&axes[0], &axes[1]],
            execution,
        )
    };
    let result = run(1);
    assert!(result.converged && result.delta_nll.len() == 49, "{:?}", result.warnings);
    for (at, delta) in result.delta_nll.iter().enumerate() {
        let fixed = vec![(index("mu"), result.values[0][at / 7]), (index("k"), result.values[1][at % 7])];
        let single = fit_model(&model, &FitOptions { fixed, ..FitOptions::default() });
        assert_close(delta.unwrap_or(f64::NAN), single.nll - result.best.nll, 1e-9, "Δ");
        assert_all_close(result.params[at].as_ref().expect("converged"), &single.bestfit, 1e-6, "parameters");
    }
    assert_eq!(result, run(2));
    assert_eq!(result, run(5));
}

#[test]
fn grids_take_the_lower_of_two_branches() {
    let model = two_branches();
    let poi = model.poi().expect("has one");
    let axes = [
        ScanAxis { parameter: poi, values: ScanValues::between(0.0, 20.0, 11) },
        ScanAxis { parameter: 1 - poi, values: ScanValues::between(-3.0, 3.0, 13) },
    ];
    let run = |axes: [&ScanAxis; 2]| {
        grid(
            &Problem::new(&model, &mut CpuLikelihood::new(&model), &FitOptions::default()),
            axes,
            ExecutionContext::SINGLE_THREADED,
        )
    };
    let result = run([&axes[0], &axes[1]]);
    let turned = run([&axes[1], &axes[0]]);
    for (at, delta) in result.delta_nll.iter().enumerate() {
        let (j, k) = (at / 13, at % 13);
        assert_close(delta.unwrap_or(f64::NAN), turned.delta_nll[k * 11 + j].unwrap_or(-1.0), 1e-10, "turned");
    }
}

#[test]
fn a_cancelled_scan_returns_its_completed_points() {
    let model = counting(65.0);
    let monitor = StopAfter::new(4);
    let axis = ScanAxis { parameter: 0, values: ScanValues::between(0.0, 4.0, 9) };
    let execution = ExecutionContext { monitor: &monitor, ..ExecutionContext::SINGLE_THREADED };
    let result =
        scan(&mut Problem::new(&model, &mut CpuLikelihood::new(&model), &FitOptions::default()), &axis, execution);
    assert_eq!(result.delta_nll.iter().flatten().count(), 4);
    assert!(!result.is_complete && result.converged);
    assert_eq!(result.warnings, ["stopped after 4 of 9 points"]);
}

fn contours_of(model: &Model, parameters: [usize; 2], threads: usize) -> Contours {
    let wanted = ContourOptions { parameters, levels: vec![0.68, 0.95], n_points: 72 };
    let execution = ExecutionContext {
        threads: NonZeroUsize::new(threads).expect("not zero"),
        ..ExecutionContext::SINGLE_THREADED
    };
    contours(&Problem::new(model, &mut CpuLikelihood::new(model), &FitOptions::default()), &wanted, execution)
}

/// Returns whether `point` is inside `polygon` (even-odd rule).
fn is_inside(polygon: &[[f64; 2]], [x, y]: [f64; 2]) -> bool {
    let n = polygon.len();
    let crosses = |i: usize| {
        let ([x0, y0], [x1, y1]) = (polygon[i], polygon[(i + 1) % n]);
        (y0 > y) != (y1 > y) && x < x0 + (y - y0) / (y1 - y0) * (x1 - x0)
    };
    (0..n).filter(|&i| crosses(i)).count() % 2 == 1
}

#[test]
fn contours_enclose_the_points_of_a_dense_grid_below_their_level() {
    for (range, is_cut) in [([-2.0, 10.0], false), ([1.0, 2.0], true)] {
        let model = two_factors(range);
        let index = |name: &str| model.parameters.index_of(name).expect("has it");
        let found = contours_of(&model, [index("mu"), index("k")], 2);
        assert!(found.converged && found.is_complete, "{:?}", found.warnings);
        let axes = [("mu", range[0].max(-0.5), range[1].min(3.0)), ("k", 0.3, 2.0)].map(|(name, start, stop)| {
            ScanAxis { parameter: index(name), values: ScanValues::between(start, stop, 41) }
        });
        let execution =
            ExecutionContext { threads: NonZeroUsize::new(2).expect("not zero"), ..ExecutionContext::SINGLE_THREADED };
        let dense = grid(
            &Problem::new(&model, &mut CpuLikelihood::new(&model), &FitOptions::default()),
            [&axes[0], &axes[1]],
            execution,
        );
        for contour in &found.contours {
            let polygon: Vec<[f64; 2]> = contour.points.iter().map(|point| point.values).collect();
            let on_level = contour.points.iter().filter(|p| p.cut.is_none());
            for point in on_level {
                let twice = point.twice_delta_nll.unwrap_or(f64::NAN);
                assert!((twice - contour.twice_delta_nll).abs() < 1e-6, "{point:?}");
                let fixed = vec![(index("mu"), point.values[0]), (index("k"), point.values[1])];
                let single = fit_model(&model, &FitOptions { fixed, ..FitOptions::default() });
                assert_close(2.0 * (single.nll - found.best.nll), contour.twice_delta_nll, 1e-6, "2ΔNLL");
            }
            assert_eq!(contour.points.iter().any(|point| point.cut.is_some()), is_cut);
            let mut n_inside = 0;
            for (at, twice) in dense.twice_delta_nll.iter().enumerate() {
                let (point, twice) = ([dense.values[0][at / 41], dense.values[1][at % 41]], twice.expect("converged"));
                // Points on the bounds, and those closer to the curve than the polygon approximates
                // it, are not tested.
                let is_clear = (twice / contour.twice_delta_nll - 1.0).abs() > 0.02 && at / 41 != 0 && at / 41 != 40;
                assert!(
                    !is_clear || is_inside(&polygon, point) == (twice < contour.twice_delta_nll),
                    "{point:?} {twice}"
                );
                n_inside += usize::from(twice < contour.twice_delta_nll);
            }
            assert!(n_inside > 60, "the grid is dense enough: {n_inside}");
        }
    }
}

#[test]
fn a_cut_contour_has_the_exact_ends_of_the_cut() {
    let model = two_factors([1.0, 2.0]);
    let index = |name: &str| model.parameters.index_of(name).expect("has it");
    let found = contours_of(&model, [index("mu"), index("k")], 1);
    for contour in &found.contours {
        let is_end = |side: BoundSide| {
            contour.points.iter().filter(move |point| {
                let is_level = point.twice_delta_nll.is_some_and(|t| (t - contour.twice_delta_nll).abs() < 1e-6);
                is_level
                    && matches!(&point.cut, Some(ContourCut::Range(cut)) if cut.side == side && cut.parameter == "mu")
            })
        };
        assert_eq!((is_end(BoundSide::Lower).count(), is_end(BoundSide::Upper).count()), (2, 2), "{contour:?}");
        let exact = |p: &ns_inference::contour::ContourPoint| p.cut.is_none() || [1.0, 2.0].contains(&p.values[0]);
        assert!(contour.points.iter().all(exact));
    }
    assert_eq!(found, contours_of(&model, [index("mu"), index("k")], 5));
}

#[test]
fn a_best_fit_at_a_bound_has_half_a_contour() {
    let model = two_factors([2.5, 10.0]);
    let index = |name: &str| model.parameters.index_of(name).expect("has it");
    for parameters in [["mu", "k"], ["k", "mu"]] {
        let found = contours_of(&model, parameters.map(index), 1);
        let mu = usize::from(parameters[1] == "mu");
        assert_eq!(found.best.params[index("mu")], 2.5);
        for contour in &found.contours {
            assert!(contour.points.len() > 30, "{}", contour.points.len());
            assert!(contour.points.iter().all(|point| point.values[mu] >= 2.5 && point.twice_delta_nll.is_some()));
            assert_eq!(contour.points.iter().filter(|point| point.cut.is_some()).count(), 2, "{contour:?}");
        }
    }
}

#[test]
fn parts_of_a_grid_merge_to_the_same_bits_even_if_some_are_missing() {
    let options = FitOptions::default();
    for model in [two_factors([0.0, 5.0]), two_branches()] {
        let mut likelihood = CpuLikelihood::new(&model);
        let problem = Problem::new(&model, &mut likelihood, &options);
        let axes = [0, 1].map(|parameter| ScanAxis { parameter, values: ScanValues::Automatic(5) });
        let whole = grid(&problem, axes.each_ref(), ExecutionContext::SINGLE_THREADED);
        for of in [1, 3, 8] {
            let part = |index| {
                let part = WorkPart { index, n_parts: of };
                grid_part(&problem, axes.each_ref(), part, ExecutionContext::SINGLE_THREADED)
            };
            let mut parts: Vec<_> = (0..of).map(part).collect();
            for n_missing in 0..2 {
                parts.truncate(of - n_missing);
                let merged = grid_of_parts(&problem, axes.each_ref(), &parts, ExecutionContext::SINGLE_THREADED);
                assert_eq!(merged, whole, "{of} parts, {n_missing} missing");
            }
        }
    }
}
