//! Tests intervals by toys against the tables of Feldman and Cousins, and against exact sums over
//! all counts.

use crate::common::on_off::{ON_OFF, OnOff};

use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_core::poisson::{half_deviance, log_normaliser};
use ns_core::spec::ModifierData::NormFactor;
use ns_core::spec::ParameterConfig;
use ns_inference::monitor::NoMonitor;
use ns_inference::toys::{
    AuxTreatment, Construction, IntervalSettings, RegionSettings, ToyInterval, ToyRun, interval,
    region as region_by_toys,
};
use ns_inference::{FitOptions, Problem};
use ns_testkit::formulas::{declared, formula};
use ns_testkit::small::{self, region, sample};
use std::num::NonZeroUsize;

fn threads(n: usize) -> ToyRun<'static> {
    ToyRun::new(NonZeroUsize::new(n).expect("not zero"), &NoMonitor)
}

fn settings(construction: Construction, tolerance: f64) -> IntervalSettings {
    let (cl, max_toys, aux) = (0.9, 400_000, AuxTreatment::Fluctuated);
    IntervalSettings { construction, poi: 0, cl, tolerance, max_toys, seed: 1, aux }
}

fn find(model: &Model, settings: IntervalSettings, run: &ToyRun<'_>) -> ToyInterval {
    let (mut likelihood, options) = (CpuLikelihood::new(model), FitOptions::default());
    let poi = model.poi().expect("every model here has mu");
    let problem = &mut Problem::new(model, &mut likelihood, &options);
    interval(problem, IntervalSettings { poi, ..settings }, run).expect("the data can be fitted")
}

/// Returns a model with `mu` ≥ 0 times `signal` expected events and a known background.
fn counting(signal: f64, background: f64, n: f64) -> Model {
    let signal = sample("signal", &[signal], &[("mu", NormFactor)]);
    let mu = ParameterConfig { name: "mu".to_owned(), bounds: Some(vec![[0.0, 100.0]]), ..Default::default() };
    small::model(vec![region("channel", vec![signal, sample("background", &[background], &[])], &[n])], vec![mu])
}

/// A count n of known background b = 3 with its 90 % interval, as an exact sum has it.
struct KnownBackground(f64);

impl KnownBackground {
    const BACKGROUND: f64 = 3.0;

    fn model(&self) -> Model {
        counting(1.0, Self::BACKGROUND, self.0)
    }

    /// Returns t̃ at `mu` for n events.
    fn t(mu: f64, n: f64) -> f64 {
        let best = n.max(Self::BACKGROUND);
        2.0 * (half_deviance(n, mu + Self::BACKGROUND) - half_deviance(n, best))
    }

    /// Returns the probability at `mu` of counts with at least the t̃ that was observed.
    fn p_value(&self, mu: f64) -> f64 {
        let (mean, threshold) = (mu + Self::BACKGROUND, Self::t(mu, self.0) - 1e-9);
        let counts = (0..100).map(f64::from).filter(|n| Self::t(mu, *n) >= threshold);
        counts.map(|n| (-half_deviance(n, mean) - log_normaliser(n)).exp()).sum()
    }

    /// Returns the lowest and the highest accepted value.
    fn interval(&self) -> [f64; 2] {
        let accepted = (0..32_000).map(|i| 0.0005 * f64::from(i)).filter(|mu| self.p_value(*mu) > 0.1);
        accepted.fold([f64::INFINITY, 0.0], |[low, high], mu| [low.min(mu), high.max(mu)])
    }
}

/// Table IV of Phys. Rev. D 57 (1998) 3873 for b = 3, but for n = 0 and 7, whose upper ends the
/// authors moved so that they do not rise as b falls.
#[test]
fn exact_sums_agree_with_the_table_of_feldman_and_cousins() {
    const TABLE: [(f64, [f64; 2]); 8] = [
        (1.0, [0.0, 1.88]),
        (2.0, [0.0, 3.04]),
        (3.0, [0.0, 4.42]),
        (4.0, [0.0, 5.60]),
        (5.0, [0.0, 6.99]),
        (6.0, [0.15, 8.47]),
        (8.0, [1.51, 10.99]),
        (10.0, [2.63, 13.50]),
    ];
    for (n, table) in TABLE {
        let exact = KnownBackground(n).interval();
        // The table has steps of 0.005 and two decimals.
        assert!((0..2).all(|k| (exact[k] - table[k]).abs() < 0.011), "{n}: {exact:?} is not {table:?}");
    }
}

/// Where the p-value is a step function, the error is half of what brackets the end.
#[test]
fn intervals_of_counts_bracket_the_exact_ones() {
    for n in [0.0, 1.0, 3.0, 6.0, 10.0] {
        let found = find(&KnownBackground(n).model(), settings(Construction::FeldmanCousins, 0.05), &threads(2));
        let exact = KnownBackground(n).interval();
        for (end, exact) in [found.lower, found.upper].into_iter().zip(exact) {
            let end = end.expect("some values are accepted");
            let (value, error) = (end.value.expect("an end"), end.error.unwrap_or(0.0));
            assert_eq!(end.at_bound, exact == 0.0, "{n}: {end:?}");
            assert!((value - exact).abs() <= error + 1e-3, "{n}: {end:?} is not {exact}");
            // For n = 3, p is within 0.005 of 0.1 for a long way.
            assert!(error < if n == 3.0 { 0.25 } else { 0.2 }, "{n}: {end:?}");
        }
    }
}

/// A measurement x = (n - b)/1000 of μ ≥ 0 with a standard deviation of 1 (to 1e-3). The ends
/// follow from the normal distribution: P(t̃ ≥ t̃(x)) = 0.1, in agreement with table X of Feldman
/// and Cousins, which has [0, 0.26], [0, 0.81], [0, 1.64], [0, 2.64], [0.58, 3.64] and [1.37,
/// 4.64].
#[test]
fn intervals_of_bounded_gaussian_measurements_match_the_exact_ones() {
    const EXACT: [(f64, [f64; 2]); 6] = [
        (-3.0, [0.0, 0.264]),
        (-1.0, [0.0, 0.814]),
        (0.0, [0.0, 1.645]),
        (1.0, [0.0, 2.645]),
        (2.0, [0.583, 3.645]),
        (3.0, [1.368, 4.645]),
    ];
    for (x, exact) in EXACT {
        let model = counting(1000.0, 1e6, 1e6 + 1000.0 * x);
        let found = find(&model, settings(Construction::FeldmanCousins, 0.03), &threads(2));
        assert!(found.converged && found.warnings.is_empty(), "{x}: {:?}", found.warnings);
        for (end, exact) in [found.lower, found.upper].into_iter().zip(exact) {
            let end = end.expect("some values are accepted");
            assert_eq!((end.at_bound, end.error.is_none()), (exact == 0.0, exact == 0.0), "{x}: {end:?}");
            let (value, error) = (end.value.expect("an end"), end.error.unwrap_or(1e-9));
            assert!((value - exact).abs() < 4.0 * error && error <= 0.03, "{x}: {end:?} is not {exact}");
        }
    }
}

/// Returns the value at which `p_value` falls to `level` between `low` and `high`.
fn fall(level: f64, [mut low, mut high]: [f64; 2], p_value: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..16 {
        let middle = 0.5 * (low + high);
        if p_value(middle) > level {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[test]
fn intervals_of_on_off_models_match_exact_sums_with_the_plug_in_nuisance_parameter() {
    let aux = AuxTreatment::Fluctuated;
    for on_off in &ON_OFF[..3] {
        let OnOff { n, .. } = *on_off;
        let (tau, model) = (on_off.tau(), on_off.model());
        let mu_hat = on_off.mu_hat(n, tau);
        let fc = |mu: f64| {
            let t = on_off.t_tilde(mu, n, tau) - 1e-8;
            on_off.probability(mu, aux, |n, m| on_off.t_tilde(mu, n, m) >= t)
        };
        let signed = |mu: f64, n: f64, m: f64| {
            let t = on_off.t_tilde(mu, n, m);
            if on_off.mu_hat(n, m) < mu { -t } else { t }
        };
        let lower_tail = |mu: f64| {
            let observed = signed(mu, n, tau) + 1e-8;
            on_off.probability(mu, aux, |n, m| signed(mu, n, m) <= observed)
        };
        let exact = [
            (Construction::FeldmanCousins, fall(0.1, [mu_hat, 4.0], fc)),
            (Construction::Central, fall(0.05, [mu_hat, 4.0], lower_tail)),
            (Construction::Upper, fall(0.1, [mu_hat, 4.0], lower_tail)),
        ];
        for (construction, exact) in exact {
            let found = find(&model, settings(construction, 0.04), &threads(2));
            let end = found.upper.expect("some values are accepted");
            let (value, error) = (end.value.expect("an end"), end.error.expect("an end inside the range"));
            assert!((value - exact).abs() < 4.0 * error, "{on_off:?} {construction:?}: {end:?} is not {exact}");
        }
    }
}

/// Of 100 + 100 μ² events, 200 are seen: μ is near 1 or near -1.
#[test]
fn excluded_values_between_accepted_ones_are_reported() {
    let mut signal = sample("signal", &[100.0], &[]);
    signal.modifiers.push(formula("square", "mu^2"));
    let regions = vec![region("channel", vec![signal, sample("background", &[100.0], &[])], &[200.0])];
    let model = small::model(regions, vec![declared("mu", 0.8, [-3.0, 3.0])]);
    let found = find(&model, settings(Construction::FeldmanCousins, 0.1), &threads(2));
    assert_eq!(found.regions.len(), 2, "{found:?}");
    assert!(found.warnings.iter().any(|text| text.contains("2 accepted regions")), "{:?}", found.warnings);
    // 200 ± 1.645·√200 events, to the skewness of the Poisson distribution.
    let ends = found.regions.iter().flat_map(|region| [region.lower, region.upper]);
    for (end, exact) in ends.zip([-1.12, -0.865, 0.865, 1.12]) {
        assert!((end.value.expect("an end") - exact).abs() < 0.03, "{end:?} is not {exact}");
    }
}

/// A model of two channels, in which -ln L is nearly quadratic in `mu` and in the free factor of
/// the background.
fn two_factors() -> Model {
    let signal = |rate: f64| sample("signal", &[rate], &[("mu", NormFactor)]);
    let background = |rate: f64| sample("background", &[rate], &[("k", NormFactor)]);
    let regions = vec![
        region("signal region", vec![signal(400.0), background(1000.0)], &[1400.0]),
        region("control region", vec![background(4000.0)], &[4000.0]),
    ];
    small::model(regions, Vec::new())
}

/// With large counts, p is exp(-t/2) for two parameters.
#[test]
fn p_values_of_regions_agree_with_asymptotic_formulas_at_large_counts() {
    let model = two_factors();
    let index = |name: &str| model.parameters.index_of(name).expect("a parameter");
    let values = |center: f64, width: f64| (-3..=3).map(|i| center + width * f64::from(i)).collect();
    let wanted = RegionSettings {
        parameters: [index("mu"), index("k")],
        values: [values(1.0, 0.1), values(1.0, 0.015)],
        cls: vec![0.68, 0.95],
        tolerance: 0.1,
        max_toys: 50_000,
        seed: 3,
        aux: AuxTreatment::Fluctuated,
    };
    let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
    let mut find = |wanted: &RegionSettings, run: &ToyRun<'_>| {
        region_by_toys(&mut Problem::new(&model, &mut likelihood, &options), wanted, run)
            .expect("the data can be fitted")
    };
    let few = RegionSettings { max_toys: 10, ..wanted.clone() };
    let found = find(&few, &threads(1));
    assert!(!found.converged && found.is_complete && found.n_toys == 10, "{found:?}");
    assert!(found.warnings.iter().any(|text| text.contains("points have no p-value")), "{:?}", found.warnings);
    let found = find(&wanted, &threads(2));
    assert!(found.converged && found.warnings.is_empty(), "{:?}", found.warnings);
    let (mut sum, mut n_tested) = (0.0, 0.0);
    for point in &found.points {
        let t = point.t.expect("every fit converges");
        let Some(p) = point.p_value else {
            assert!(t > 9.0, "{point:?}");
            continue;
        };
        let exact = (-0.5 * t).exp();
        let pull = (p.value - exact) / (exact * (1.0 - exact) / p.n_toys as f64).sqrt().max(1e-9);
        assert!(pull.abs() < 4.5 || t < 1e-9, "{point:?}: {pull}");
        (sum, n_tested) = (sum + pull.min(4.0).powi(2), n_tested + 1.0);
    }
    assert!(n_tested > 15.0 && sum / n_tested < 2.0, "{sum} for {n_tested}");
    assert_eq!(found, find(&wanted, &threads(1)));
}

#[test]
fn intervals_do_not_depend_on_threads_and_batches() {
    let wanted = settings(Construction::FeldmanCousins, 0.2);
    let model = ON_OFF[0].model();
    let one = find(&model, wanted, &threads(1));
    let batch = NonZeroUsize::new(7).expect("not zero");
    assert_eq!(one, find(&model, wanted, &ToyRun { batch, ..threads(3) }));
    assert_ne!(one.upper, find(&model, IntervalSettings { seed: 2, ..wanted }, &threads(1)).upper);
}

#[test]
fn a_run_that_may_not_throw_enough_toys_says_so() {
    let wanted = IntervalSettings { max_toys: 3000, ..settings(Construction::FeldmanCousins, 0.001) };
    let found = find(&ON_OFF[0].model(), wanted, &threads(1));
    assert!(!found.converged && found.is_complete && found.n_toys <= 3000);
    assert!(found.warnings[0].starts_with("the error of an end is above 0.001"), "{:?}", found.warnings);
}

#[test]
fn an_end_of_the_range_that_toys_do_not_clearly_accept_is_not_given_as_certain() {
    let model = ON_OFF[0].model();
    // No value near the best fit is excluded, and no other is tested.
    let wanted = IntervalSettings { cl: 1e-9, ..settings(Construction::FeldmanCousins, 0.1) };
    let found = find(&model, wanted, &threads(2));
    let end = found.upper.expect("the best fit is accepted");
    assert!(end.value.is_none() && !end.at_bound && !found.converged, "{found:?}");
    assert!(found.warnings.iter().any(|text| text.starts_with("the upper end is unknown")), "{:?}", found.warnings);
    // p is 0.16 at the bound, and a few hundred toys do not tell it from 0.14.
    let wanted = IntervalSettings { cl: 0.86, max_toys: 4000, ..settings(Construction::FeldmanCousins, 0.3) };
    let found = find(&counting(100.0, 1e4, 1e4 + 100.0), wanted, &threads(2));
    assert!(found.lower.is_some_and(|end| end.at_bound) && !found.converged, "{found:?}");
    let says_so = |text: &String| text.contains("the lower end of the range, but not significantly");
    assert!(found.warnings.iter().any(says_so), "{:?}", found.warnings);
}
