//! Tests limits and significances by toys against exact sums over all counts.

use crate::common::on_off::{ON_OFF, OnOff};

use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_core::poisson::{half_deviance, log_normaliser};
use ns_core::spec::ModifierData::NormFactor;
use ns_inference::monitor::NoMonitor;
use ns_inference::normal::significance;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{
    AuxTreatment, LimitCriterion, ToyLimit, ToyLimitSettings, ToyRun, ToySignificanceResult, ToySignificanceSettings,
    ToysError, toy_limit, toy_significance,
};
use ns_inference::{FitOptions, Problem};
use ns_testkit::formulas::declared;
use ns_testkit::small::{self, region, sample};
use std::num::NonZeroUsize;

fn threads(n: usize) -> ToyRun<'static> {
    ToyRun::new(NonZeroUsize::new(n).expect("not zero"), &NoMonitor)
}

fn settings(criterion: LimitCriterion, tolerance: f64) -> ToyLimitSettings {
    ToyLimitSettings {
        poi: 0,
        level: 0.05,
        statistic: TestStatistic::QTilde,
        criterion,
        expected: false,
        tolerance,
        max_toys: 200_000,
        seed: 5,
        aux: AuxTreatment::Fluctuated,
    }
}

fn find(model: &Model, settings: ToyLimitSettings, run: &ToyRun<'_>) -> ToyLimit {
    let (mut likelihood, options) = (CpuLikelihood::new(model), FitOptions::default());
    let poi = model.poi().expect("every model here has mu");
    let problem = &mut Problem::new(model, &mut likelihood, &options);
    toy_limit(problem, ToyLimitSettings { poi, ..settings }, run).expect("the data can be fitted")
}

fn counting(signal: f64, background: f64, n: f64) -> Model {
    let samples = vec![sample("signal", &[signal], &[("mu", NormFactor)]), sample("background", &[background], &[])];
    small::model(vec![region("channel", samples, &[n])], vec![declared("mu", 1.0, [0.0, 100.0])])
}

/// Returns P(N ≤ n) for a mean.
fn at_most(n: u32, mean: f64) -> f64 {
    (0..=n).map(|k| (-half_deviance(f64::from(k), mean) - log_normaliser(f64::from(k))).exp()).sum()
}

/// Returns where `f` falls through `level` between the two ends.
fn fall(level: f64, [mut low, mut high]: [f64; 2], f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if f(middle) > level { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

fn assert_near(found: Option<f64>, error: Option<f64>, exact: f64, what: &str) {
    let (found, error) = (found.expect("a limit"), error.expect("its error"));
    assert!((found - exact).abs() < 3.5 * error && error < 0.5 * exact, "{what}: {found} ± {error} is not {exact}");
}

/// q̃ orders counts: CLs+b is P(N ≤ n | s + b), and CLb P(N ≤ n | b).
#[test]
fn limits_of_counts_match_exact_sums() {
    for (s, b, n) in [(1.0, 3.0, 5_u32), (1.0, 3.0, 2), (5.0, 50.0, 55), (20.0, 400.0, 380)] {
        let model = counting(s, b, f64::from(n));
        for criterion in [LimitCriterion::Cls, LimitCriterion::Clsb] {
            let divisor = if criterion == LimitCriterion::Cls { at_most(n, b) } else { 1.0 };
            let exact = fall(0.05, [0.0, 100.0], |mu| at_most(n, mu * s + b) / divisor);
            let found = find(&model, settings(criterion, 0.03), &threads(2));
            assert!(found.converged && found.warnings.is_empty(), "{:?}", found.warnings);
            let what = format!("{criterion:?} of {n} for s = {s}, b = {b}");
            assert_near(found.observed, found.observed_error, exact, &what);
            assert!(found.observed_error < Some(0.03 * exact * 1.1), "{what}: {:?}", found.observed_error);
            assert_eq!(found.expected, [None; 5]);
        }
    }
}

/// The errors are those of repeated searches, also where CLb is small and few toys show it.
#[test]
fn errors_of_limits_are_those_of_repeated_searches() {
    let (s, b, n_seeds) = (5.0, 50.0, 40);
    for (n, tolerance) in [(40_u32, 0.06), (50, 0.06)] {
        let model = counting(s, b, f64::from(n));
        let exact = fall(0.05, [0.0, 100.0], |mu| at_most(n, mu * s + b) / at_most(n, b));
        let (mut sum, mut sum_of_squares) = (0.0, 0.0);
        for seed in 0..n_seeds {
            let found =
                find(&model, ToyLimitSettings { seed, ..settings(LimitCriterion::Cls, tolerance) }, &threads(2));
            assert!(found.converged, "{:?}", found.warnings);
            let pull = (found.observed.expect("a limit") - exact) / found.observed_error.expect("its error");
            sum += pull;
            sum_of_squares += pull * pull;
        }
        let (mean, rms) = (sum / n_seeds as f64, (sum_of_squares / n_seeds as f64).sqrt());
        println!("{n}: {exact}, pulls of mean {mean:.2} and rms {rms:.2}");
        assert!(mean.abs() < 0.5 && (0.7..1.3).contains(&rms), "{n}: pulls of mean {mean} and rms {rms}");
    }
}

/// The counts at -2 … +2 standard deviations are quantiles of the background.
#[test]
fn expected_limits_of_counts_match_exact_sums() {
    let (s, b) = (20.0, 400.0);
    let model = counting(s, b, 400.0);
    let found = find(&model, ToyLimitSettings { expected: true, ..settings(LimitCriterion::Cls, 0.03) }, &threads(2));
    assert!(found.converged, "{:?}", found.warnings);
    // The counts whose cumulative probability first reaches Φ(-2) … Φ(2).
    let quantile = |p: f64| (0..1000).find(|n| at_most(*n, b) >= p).expect("a count");
    for (i, p) in [0.022_75, 0.158_66, 0.5, 0.841_34, 0.977_25].into_iter().enumerate() {
        let n = quantile(p);
        let limit = |n: u32| fall(0.05, [0.0, 100.0], |mu| at_most(n, mu * s + b) / at_most(n, b));
        let (value, error) = (found.expected[i].expect("a limit"), found.expected_errors[i].expect("its error"));
        // A quantile of toys may be a count beside the exact one.
        let [low, high] = [limit(n - 1), limit(n + 1)];
        assert!(
            value > low - 3.5 * error && value < high + 3.5 * error && error < 0.15 * value,
            "{i}: {value} ± {error} is not from {low} to {high}"
        );
    }
}

#[test]
fn limits_of_on_off_models_match_exact_sums_with_the_plug_in_nuisance_parameter() {
    let aux = AuxTreatment::Fluctuated;
    for on_off in &ON_OFF[..3] {
        let OnOff { n, .. } = *on_off;
        let tau = on_off.tau();
        let cls = |mu: f64| {
            let q = on_off.q_tilde(mu, n, tau) - 1e-8;
            let of = |thrown_at| on_off.probability(thrown_at, aux, |n, m| on_off.q_tilde(mu, n, m) >= q);
            of(mu) / of(0.0)
        };
        let (mut low, mut high) = (on_off.mu_hat(n, tau).max(0.1), 6.0);
        for _ in 0..14 {
            let middle = 0.5 * (low + high);
            if cls(middle) > 0.05 { low = middle } else { high = middle }
        }
        let found = find(&on_off.model(), settings(LimitCriterion::Cls, 0.03), &threads(2));
        assert_near(found.observed, found.observed_error, 0.5 * (low + high), &format!("{on_off:?}"));
    }
}

#[test]
fn a_limit_beyond_the_range_is_not_found() {
    let samples = vec![sample("signal", &[1.0], &[("mu", NormFactor)]), sample("background", &[3.0], &[])];
    let model = small::model(vec![region("channel", samples, &[5.0])], vec![declared("mu", 1.0, [0.0, 5.0])]);
    let found = find(&model, ToyLimitSettings { max_toys: 20_000, ..settings(LimitCriterion::Cls, 0.01) }, &threads(2));
    assert!(!found.converged && found.n_failed == 0, "{found:?}");
    assert!(found.warnings.iter().any(|text| text.contains("near the end of the range")), "{:?}", found.warnings);
}

/// With 70 counts where 100 are expected, CLs+b is below the level for every signal.
#[test]
fn where_every_value_is_excluded_there_is_no_limit() {
    for lowest in [0.0, -10.0] {
        let samples = vec![sample("signal", &[10.0], &[("mu", NormFactor)]), sample("background", &[100.0], &[])];
        let model = small::model(vec![region("channel", samples, &[70.0])], vec![declared("mu", 1.0, [lowest, 10.0])]);
        let wanted = ToyLimitSettings { max_toys: 20_000, ..settings(LimitCriterion::Clsb, 0.05) };
        let found = find(&model, wanted, &threads(2));
        println!("{lowest}: {:?} {:?} {:?}", found.observed, found.observed_error, found.warnings);
        assert!(found.observed.is_none() && !found.converged, "{found:?}");
        assert!(!found.warnings.iter().any(|text| text.contains("near the end of the range")), "{:?}", found.warnings);
    }
}

#[test]
fn limits_do_not_depend_on_threads_and_batches() {
    let wanted = settings(LimitCriterion::Cls, 0.1);
    let model = ON_OFF[0].model();
    let batch = NonZeroUsize::new(7).expect("not zero");
    let one = find(&model, wanted, &threads(1));
    assert_eq!(one, find(&model, wanted, &ToyRun { batch, ..threads(3) }));
    assert_ne!(one.observed, find(&model, ToyLimitSettings { seed: 6, ..wanted }, &threads(1)).observed);
}

fn discovery(model: &Model, max_toys: u64) -> ToySignificanceResult {
    let (mut likelihood, options) = (CpuLikelihood::new(model), FitOptions::default());
    let problem = &mut Problem::new(model, &mut likelihood, &options);
    let (poi, aux) = (model.poi().expect("every model here has mu"), AuxTreatment::Fluctuated);
    let settings = ToySignificanceSettings { poi, tolerance: 0.05, max_toys, seed: 2, aux, importance_sampling: false };
    toy_significance(problem, settings, &threads(2)).expect("the data can be fitted")
}

/// p₀ is P(N ≥ n | b).
#[test]
fn significances_of_counts_match_exact_sums() {
    for (b, n) in [(3.0, 8_u32), (50.0, 65), (400.0, 440)] {
        let found = discovery(&counting(5.0, b, f64::from(n)), 200_000);
        let exact = 1.0 - at_most(n - 1, b);
        assert!(found.converged && found.warnings.is_empty(), "{:?}", found.warnings);
        assert!((found.p0_observed - exact).abs() < 4.0 * found.p0_observed_error, "{found:?} is not {exact}");
        let (z, error) = (found.z_observed.expect("some toys exceed"), found.z_observed_error.expect("its error"));
        assert!((z - significance(exact)).abs() < 4.0 * error && found.z_observed_lower < z, "{found:?}");
    }
}

#[test]
fn the_background_is_in_the_range_of_the_parameter() {
    let samples = vec![sample("signal", &[5.0], &[("mu", NormFactor)]), sample("background", &[3.0], &[])];
    let model = small::model(vec![region("channel", samples, &[9.0])], vec![declared("mu", 1.0, [0.5, 5.0])]);
    let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
    let (poi, aux) = (model.poi().expect("mu"), AuxTreatment::Fluctuated);
    let settings =
        ToySignificanceSettings { poi, tolerance: 0.05, max_toys: 100, seed: 2, aux, importance_sampling: false };
    let found = toy_significance(&mut Problem::new(&model, &mut likelihood, &options), settings, &threads(1));
    assert_eq!(found, Err(ToysError::Outside { mu: 0.0, range: [0.5, 5.0] }));
}

#[test]
fn significances_without_extreme_toys_are_bounded() {
    let found = discovery(&counting(5.0, 3.0, 30.0), 1000);
    assert_eq!((found.z_observed, found.p0_observed, found.converged), (None, 0.0, false));
    // 1 - 0.05^(1/1000)
    assert!((found.p0_observed_upper - 2.991_249e-3).abs() < 1e-8, "{}", found.p0_observed_upper);
    assert!((found.z_observed_lower - significance(found.p0_observed_upper)).abs() < 1e-12);
    assert!(found.warnings[0].starts_with("no toy of 1000 is as extreme"), "{:?}", found.warnings);
}
