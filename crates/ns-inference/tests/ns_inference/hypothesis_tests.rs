//! Tests hypothesis tests, significances and limits against closed forms, explicit fits, and
//! published reference numbers.

use ns_compute::CpuLikelihood;
use ns_core::interpolate::Interpolation;
use ns_core::spec::Workspace;
use ns_core::{CompileOptions, Model, compile};
use ns_inference::hypotest::{HypotestResult, SignificanceResult, hypotest, significance};
use ns_inference::limit::{LimitOptions, LimitResult, limit, limit_from_grid};
use ns_inference::minimize::MinimizeOptions;
use ns_inference::normal::upper_tail;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::{FitOptions, MultiStart, Problem, fit};
use ns_testkit::random::{self, Random, Shape};
use ns_testkit::{assert_close, published};
use proptest::prelude::*;
use serde_json::{Value, json};

fn model_of(document: &Value, interpolation: Interpolation) -> Model {
    let workspace: Workspace = ns_translate::pyhf::from_value(document).expect("a workspace");
    compile(&workspace, &CompileOptions { interpolation, ..Default::default() }).expect("a model")
}

/// Returns a model of a signal region, n ~ Pois(μs + b), whose background is known to `uncertainty`
/// from m = (b/u)² counts in a control region.
fn on_off(signal: f64, background: f64, uncertainty: f64, n: f64, range: [f64; 2]) -> Model {
    let document = json!({
        "channels": [{"name": "c", "samples": [
            {"name": "s", "data": [signal], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "b", "data": [background], "modifiers": [{"name": "g", "type": "shapesys", "data": [uncertainty]}]}]}],
        "observations": [{"name": "c", "data": [n]}],
        "measurements": [{"name": "m", "config": {"poi": "mu",
            "parameters": [{"name": "mu", "inits": [range[1].min(1.0)], "bounds": [range]}]}}],
        "version": "1.0.0"});
    model_of(&document, Interpolation::default())
}

/// The closed form of the on-off problem: the conditional background is the solution of a quadratic
/// equation.
struct OnOff {
    s: f64,
    b: f64,
    tau: f64,
}

impl OnOff {
    fn new(s: f64, b: f64, uncertainty: f64) -> Self {
        Self { s, b, tau: (b / uncertainty).powi(2) }
    }

    /// Returns the factor γ of the background that maximises the likelihood at μ.
    fn gamma(&self, mu: f64, n: f64, m: f64) -> f64 {
        let (a, c) = (mu * self.s, self.b);
        // n c/(a + cγ) - c + m/γ - τ = 0
        let (p, q) = (c * (c + self.tau), a * (c + self.tau) - c * (n + m));
        (-q + (q * q + 4.0 * p * m * a).sqrt()) / (2.0 * p)
    }

    fn twice_nll(&self, mu: f64, gamma: f64, n: f64, m: f64) -> f64 {
        let term = |k: f64, x: f64| if k > 0.0 { 2.0 * (x - k - k * (x / k).ln()) } else { 2.0 * x };
        term(n, mu * self.s + self.b * gamma) + term(m, self.tau * gamma)
    }

    fn profile(&self, mu: f64, n: f64, m: f64) -> f64 {
        self.twice_nll(mu, self.gamma(mu, n, m), n, m)
    }

    fn q(&self, mu: f64, n: f64, m: f64) -> f64 {
        let free = (n - self.b * m / self.tau) / self.s;
        if free > mu {
            return 0.0;
        }
        self.profile(mu, n, m) - if free >= 0.0 { 0.0 } else { self.profile(0.0, n, m) }
    }

    /// Returns q̃ of the observed and of the Asimov data.
    fn pair(&self, mu: f64, n: f64) -> [f64; 2] {
        let gamma = self.gamma(0.0, n, self.tau);
        [self.q(mu, n, self.tau), self.q(mu, self.b * gamma, self.tau * gamma)]
    }

    fn cls(&self, mu: f64, n: f64) -> f64 {
        let [q, q_asimov] = self.pair(mu, n);
        let distance = if q > q_asimov { (q - q_asimov) / (2.0 * q_asimov.sqrt()) } else { q.sqrt() - q_asimov.sqrt() };
        upper_tail(distance + q_asimov.sqrt()) / upper_tail(distance)
    }
}

fn test(model: &Model, statistic: TestStatistic, mu: f64, options: &FitOptions) -> HypotestResult {
    let poi = model.poi().expect("a parameter of interest");
    hypotest(&mut Problem::new(model, &mut CpuLikelihood::new(model), options), statistic, poi, mu)
}

fn discover(model: &Model, mu: f64) -> SignificanceResult {
    significance(
        &mut Problem::new(model, &mut CpuLikelihood::new(model), &FitOptions::default()),
        model.poi().expect("one"),
        mu,
    )
}

fn limits(model: &Model, wanted: LimitOptions) -> LimitResult {
    limit(
        &mut Problem::new(model, &mut CpuLikelihood::new(model), &FitOptions::default()),
        model.poi().expect("one"),
        wanted,
    )
}

const SETTINGS: [[f64; 4]; 5] = [
    [30.0, 100.0, 20.0, 100.0],
    [5.0, 3.0, 1.0, 7.0],
    [10.0, 50.0, 7.0, 30.0],
    [1.0, 0.5, 0.4, 0.0],
    [200.0, 1e4, 90.0, 1e4],
];

#[test]
fn cls_of_on_off_problems_matches_its_closed_form() {
    for [s, b, db, n] in SETTINGS {
        let (model, exact) = (on_off(s, b, db, n, [0.0, 10.0]), OnOff::new(s, b, db));
        for mu in [0.3, 1.0, 2.5] {
            let result = test(&model, TestStatistic::QTilde, mu, &FitOptions::default());
            let [q, q_asimov] = exact.pair(mu, n);
            assert!(result.converged, "{:?}", result.warnings);
            assert_close(result.q.expect("q"), q, 1e-9, "q");
            assert_close(result.q_asimov.expect("q_A"), q_asimov, 1e-8, "q_A");
            assert_close(result.cls_obs.expect("CLs"), exact.cls(mu, n), 1e-8, "CLs");
        }
    }
}

#[test]
fn significances_match_li_and_ma() {
    // Li and Ma, Astrophys. J. 272 (1983) 317, eq. 17: n counts in a signal region and m in a
    // control region.
    for [s, b, db, n] in [[30.0_f64, 100.0, 20.0, 160.0], [5.0, 3.0, 1.0, 17.0], [10.0, 1.0, 0.3, 9.0]] {
        let (tau, m) = ((b / db).powi(2) / b, (b / db).powi(2));
        let li_ma = n * ((1.0 + tau) * n / (n + m)).ln() + m * ((1.0 + 1.0 / tau) * m / (n + m)).ln();
        let result = discover(&on_off(s, b, db, n, [0.0, 1000.0]), 1.0);
        let z = result.z_obs.expect("a significance");
        assert_close(z, (2.0 * li_ma).sqrt(), 1e-9, "Z");
        assert_close(result.p0_obs.expect("a p-value") / upper_tail(z), 1.0, 1e-12, "p");
    }
}

#[test]
fn a_deficit_has_no_significance() {
    let result = discover(&on_off(30.0, 100.0, 20.0, 80.0, [-3.0, 10.0]), 1.0);
    assert!(result.poi.bestfit.expect("a minimum") < 0.0);
    assert_eq!((result.z_obs, result.p0_obs), (Some(0.0), Some(0.5)));
    assert!(result.z_exp.is_some_and(|z| z > 0.5));
}

#[test]
fn cls_without_signal_is_one_for_any_data() {
    for i in 0..120 {
        let model = on_off(10.0, 50.0, 7.0, 20.0 + 0.25 * f64::from(i), [0.0, 10.0]);
        for mu in [0.0, 1e-12] {
            let p = test(&model, TestStatistic::QTilde, mu, &FitOptions::default());
            let tails = [p.clsb_obs, p.clb_obs].map(|tail| tail.expect("the fits converge"));
            let what = format!("CLs of {mu} for {i} quarters more than 20 events");
            assert_close(p.cls_obs.expect("the fits converge"), 1.0, 1e-5, &what);
            assert!(tails.iter().all(|tail| *tail > 0.4), "{what}: {tails:?}");
        }
    }
}

#[test]
fn limits_scale_with_the_signal_from_1e_minus_4_to_1e4() {
    let of_scale = |scale: f64| {
        let result = limits(&on_off(scale * 30.0, 100.0, 20.0, 95.0, [0.0, 10.0 / scale]), LimitOptions::default());
        assert!(result.converged && result.warnings.is_empty(), "{:?}", result.warnings);
        let found = std::iter::once(result.observed).chain(result.expected);
        found.map(|limit| limit.expect("a limit") * scale).collect::<Vec<_>>()
    };
    let unit = of_scale(1.0);
    assert!(unit[1..].is_sorted(), "{unit:?}");
    for scale in [1e-4, 1e-2, 30.0, 1e4] {
        for (limit, unit) in of_scale(scale).iter().zip(&unit) {
            assert_close(limit / unit, 1.0, 1e-9, "limit");
        }
    }
}

#[test]
fn cls_at_a_limit_equals_the_level() {
    for [s, b, db, n] in SETTINGS {
        let (model, exact) = (on_off(s, b, db, n, [0.0, 20.0]), OnOff::new(s, b, db));
        for level in [0.01, 0.05, 0.1, 0.32] {
            let result = limits(&model, LimitOptions { level, ..LimitOptions::default() });
            let observed = result.observed.expect("a limit");
            assert_close(exact.cls(observed, n) / level, 1.0, 1e-8, "CLs at the observed limit");
            for (i, expected) in result.expected.into_iter().enumerate() {
                let band = test(&model, TestStatistic::QTilde, expected.expect("a limit"), &FitOptions::default());
                assert_close(band.cls_exp.expect("a band")[i] / level, 1.0, 1e-8, "CLs at an expected limit");
            }
            assert!(result.expected.is_sorted());
        }
    }
}

#[test]
fn limits_use_the_lower_of_two_conditional_minima() {
    let shift = json!({"hi_data": [58.0, 52.7], "lo_data": [48.7, 54.9]});
    let model = model_of(
        &json!({
            "channels": [{"name": "c", "samples": [
                {"name": "s", "data": [5.1, 4.8], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
                {"name": "b", "data": [64.2, 54.9], "modifiers": [{"name": "s0", "type": "histosys", "data": shift}]},
            ]}],
            "observations": [{"name": "c", "data": [83.0, 60.0]}],
            "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
            "version": "1.0.0",
        }),
        Interpolation::default(),
    );
    let found = limits(&model, LimitOptions::default());
    for (i, mu) in found.expected.into_iter().enumerate() {
        let mu = mu.expect("a limit");
        let options = FitOptions { multi_start: Some(MultiStart { n_starts: 20, seed: 1 }), ..FitOptions::default() };
        let cls = test(&model, TestStatistic::QTilde, mu, &options).cls_exp.expect("fits that converge")[i];
        assert_close(cls, 0.05, 1e-6, &format!("CLs at {mu}"));
    }
    // From a profile of -ln L on a grid of the systematic.
    assert_close(found.expected[4].expect("a limit"), 5.6953, 1e-4, "the limit at +2σ");
}

#[test]
fn limits_from_a_fine_grid_match_those_of_the_root_finder() {
    let model = on_off(30.0, 100.0, 20.0, 95.0, [0.0, 10.0]);
    let grid: Vec<f64> = (0..=500).map(|i| f64::from(i) * 0.01).collect();
    let poi = model.poi().expect("one");
    let mut likelihood = CpuLikelihood::new(&model);
    let wanted = LimitOptions::default();
    let of_grid =
        limit_from_grid(&mut Problem::new(&model, &mut likelihood, &FitOptions::default()), poi, wanted, &grid);
    let found = limits(&model, wanted);
    let both = of_grid.expected.into_iter().zip(found.expected).chain([(of_grid.observed, found.observed)]);
    for (a, b) in both {
        assert_close(a.expect("a limit"), b.expect("a limit"), 1e-4, "limit");
    }
    assert_eq!(of_grid.tested.len(), grid.len());
    let short =
        limit_from_grid(&mut Problem::new(&model, &mut likelihood, &FitOptions::default()), poi, wanted, &grid[..20]);
    assert_eq!((short.observed, short.converged), (None, false));
}

#[test]
fn all_values_of_a_grid_refer_to_the_lowest_minimum_found() {
    // From this start, the free fit first descends to a higher minimum.
    let model = random::model(387, Shape { oddities: false, ..Shape::SMALL }, Interpolation::default());
    let poi = model.poi().expect("one");
    let start = random::point(&model.parameters, &mut Random::new(387 * 7 + 2), 2.5);
    let options = FitOptions { start: Some(start), ..FitOptions::default() };
    let grid: Vec<f64> = (1..=20).map(|i| f64::from(i) * 0.2).collect();
    let mut likelihood = CpuLikelihood::new(&model);
    let result =
        limit_from_grid(&mut Problem::new(&model, &mut likelihood, &options), poi, LimitOptions::default(), &grid);
    let lowest = FitOptions { multi_start: Some(MultiStart::default()), ..FitOptions::default() };
    assert_eq!(result.tested.len(), grid.len());
    for point in result.tested {
        let exact = test(&model, TestStatistic::QTilde, point.mu, &lowest);
        assert_close(point.cls_obs.expect("CLs"), exact.cls_obs.expect("CLs"), 1e-6, &format!("CLs at {}", point.mu));
    }
}

#[test]
fn a_limit_beyond_the_range_is_returned_with_a_warning() {
    let result = limits(&on_off(30.0, 100.0, 20.0, 95.0, [0.0, 1.0]), LimitOptions::default());
    let wide = limits(&on_off(30.0, 100.0, 20.0, 95.0, [0.0, 10.0]), LimitOptions::default());
    assert_close(result.observed.expect("a limit"), wide.observed.expect("a limit"), 1e-9, "limit");
    assert!(
        result.warnings.iter().any(|w| w.contains("above the range of `mu`, which ends at 1")),
        "{:?}",
        result.warnings
    );
}

#[test]
fn a_best_fit_at_the_end_of_its_range_gives_no_observed_limit() {
    let result = limits(&on_off(30.0, 100.0, 20.0, 1000.0, [0.0, 2.0]), LimitOptions::default());
    assert_eq!((result.observed, result.converged), (None, false));
    assert!(result.expected.iter().all(Option::is_some));
    assert!(result.warnings.iter().any(|w| w.contains("at the end of its range, 2")), "{:?}", result.warnings);
}

/// Returns a model of two channels, one of which a systematic reduces at α = +1, the other at α =
/// -1. If the signal is too large, both reductions compensate for it.
fn two_minima() -> Model {
    let channel = |name: &str, hi: f64, lo: f64| {
        json!({"name": name, "samples": [
            {"name": "s", "data": [30.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "b", "data": [100.0], "modifiers": [{"name": "tilt", "type": "histosys",
                "data": {"hi_data": [hi], "lo_data": [lo]}}]}]})
    };
    let document = json!({
        "channels": [channel("a", 40.0, 100.0), channel("z", 100.0, 40.0)],
        "observations": [{"name": "a", "data": [101.0]}, {"name": "z", "data": [100.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0"});
    model_of(&document, Interpolation::KINKED)
}

#[test]
fn several_minima_are_reported_and_the_lowest_is_used() {
    let model = two_minima();
    let options = FitOptions { multi_start: Some(MultiStart::default()), ..FitOptions::default() };
    let result = test(&model, TestStatistic::QTilde, 2.0, &options);
    assert!(result.warnings.iter().any(|warning| warning.contains("several minima")), "{:?}", result.warnings);
    // Reducing the channel with fewer observed events costs less.
    let fixed = FitOptions { fixed: vec![(model.poi().expect("one"), 2.0)], ..options };
    let lowest = fit(&mut Problem::new(&model, &mut CpuLikelihood::new(&model), &fixed));
    assert_eq!(lowest.minima.len(), 2);
    let free = fit(&mut Problem::new(&model, &mut CpuLikelihood::new(&model), &FitOptions::default()));
    assert_close(result.q.expect("q"), lowest.twice_nll - free.twice_nll, 1e-9, "q");
}

/// Returns a model that expects 10 - 5 μ events: -ln L is infinite where the signal makes the bin
/// negative.
fn disappearance() -> Model {
    let document = json!({
        "channels": [{"name": "c", "samples": [
            {"name": "s", "data": [-5.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "b", "data": [10.0], "modifiers": []}]}],
        "observations": [{"name": "c", "data": [9.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0"});
    model_of(&document, Interpolation::default())
}

#[test]
fn a_failed_fit_returns_no_numbers() {
    let result = test(&disappearance(), TestStatistic::QTilde, 3.0, &FitOptions::default());
    assert_eq!((result.cls_obs, result.q, result.converged), (None, None, false));
    assert!(result.warnings.iter().any(|w| w.contains("did not converge")), "{:?}", result.warnings);
}

#[test]
fn a_free_fit_that_stopped_early_has_no_best_fit() {
    let model = disappearance();
    let minimize = MinimizeOptions { max_iterations: 0, ..MinimizeOptions::default() };
    let options = FitOptions { minimize, ..FitOptions::default() };
    let poi = model.poi().expect("one");
    let tested = test(&model, TestStatistic::QTilde, 0.5, &options).poi;
    let mut likelihood = CpuLikelihood::new(&model);
    let found = significance(&mut Problem::new(&model, &mut likelihood, &options), poi, 1.0).poi;
    assert_eq!([tested.bestfit, found.bestfit], [None, None]);
    let limits = limit(&mut Problem::new(&model, &mut likelihood, &options), poi, LimitOptions::default());
    assert_eq!((limits.poi.bestfit, limits.observed), (None, None));
    assert!(limits.warnings.iter().any(|w| w.contains("did not converge")), "{:?}", limits.warnings);
}

#[test]
fn asimov_data_outside_the_range_of_the_parameter_are_said_to_be() {
    // A signal of 2000 events on 50 is excluded at a hundredth of it.
    let model = on_off(2000.0, 50.0, 5.0, 60.0, [0.9, 1.1]);
    let mut likelihood = CpuLikelihood::new(&model);
    let poi = model.poi().expect("one");
    let options = FitOptions::default();
    let found = limit(&mut Problem::new(&model, &mut likelihood, &options), poi, LimitOptions::default());
    let said = |text: &str| found.warnings.iter().any(|warning| warning.contains(text));
    assert!(said("the Asimov data set is made for `mu` = 0, outside its range, 0.9 to 1.1"), "{found:?}");
}

#[test]
fn values_of_a_grid_that_cannot_be_tested_are_counted() {
    let model = disappearance();
    let (poi, wanted) = (model.poi().expect("one"), LimitOptions { level: 0.3, ..LimitOptions::default() });
    let of_grid = |grid: &[f64]| {
        let mut likelihood = CpuLikelihood::new(&model);
        limit_from_grid(&mut Problem::new(&model, &mut likelihood, &FitOptions::default()), poi, wanted, grid)
    };
    let (inside, beyond) = (of_grid(&[0.1, 0.5, 1.0, 1.5]), of_grid(&[0.1, 0.5, 1.0, 1.5, 2.5, 3.0]));
    assert!(inside.observed.is_some() && inside.warnings.is_empty(), "{inside:?}");
    assert_eq!((beyond.observed, beyond.expected), (inside.observed, inside.expected));
    assert!(beyond.warnings[0].starts_with("2 of 6 values of the grid have no CLs"), "{:?}", beyond.warnings);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 30, rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_121), ..ProptestConfig::default()
    })]

    #[test]
    fn statistics_match_explicit_fits(seed in any::<u64>(), mu in 0.1..3.0) {
        let model = random::model(seed, Shape { oddities: false, ..Shape::SMALL }, Interpolation::default());
        let Some(poi) = model.poi() else { return Ok(()) };
        let result = test(&model, TestStatistic::T, mu, &FitOptions::default());
        let several = FitOptions { multi_start: Some(MultiStart { n_starts: 10, seed: 1 }), ..FitOptions::default() };
        let mut likelihood = CpuLikelihood::new(&model);
        let free = fit(&mut Problem::new(&model, &mut likelihood, &several));
        let fixed = FitOptions { fixed: vec![(poi, mu)], ..several };
        let fixed = fit(&mut Problem::new(&model, &mut likelihood, &fixed));
        prop_assert!(result.converged, "{:?}", result.warnings);
        let (q, explicit) = (result.q.unwrap(), fixed.twice_nll - free.twice_nll);
        prop_assert!(q >= 0.0 && (q - explicit).abs() < 1e-7 * explicit.abs().max(1.0), "{} is not {}", q, explicit);
    }
}

fn document(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("readable")).expect("JSON")
}

fn statistic(name: &str) -> TestStatistic {
    match name {
        "q" => TestStatistic::Q,
        "q0" => TestStatistic::Q0,
        _ => TestStatistic::QTilde,
    }
}

#[test]
#[ignore = "needs published likelihoods"]
fn validation_cases_of_pyhf_have_their_exact_values() {
    let folder = published::data_folder().join("conformance");
    let files = std::fs::read_dir(folder).expect("readable").flatten().map(|entry| entry.path());
    let mut n = 0;
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
        let case = document(&path);
        let model = model_of(&case["workspace"], Interpolation::KINKED);
        let statistic = statistic(case["test_stat"].as_str().expect("a name"));
        let mu = case["mu"].as_f64().expect("a number");
        for multi_start in [None, Some(MultiStart::default())] {
            let result = test(&model, statistic, mu, &FitOptions { multi_start, ..FitOptions::default() });
            let relative = |value: f64, exact: &Value| value / exact.as_f64().expect("a number") - 1.0;
            assert!(relative(result.cls_obs.expect("CLs"), &case["exact"]["obs"]).abs() < 1e-7, "{}", path.display());
            for (i, expected) in result.cls_exp.expect("a band").into_iter().enumerate() {
                assert!(relative(expected, &case["exact"]["exp"][i]).abs() < 1e-6, "{}", path.display());
            }
            let is_bimodal = path.ends_with("2bin_2channel_coupledhistosys_mu1.json");
            let is_flagged = result.warnings.iter().any(|warning| warning.contains("several minima"));
            assert!(is_flagged || !is_bimodal, "a second minimum is not reported");
        }
        n += 1;
    }
    assert_eq!(n, 10);
}

#[test]
#[ignore = "needs published likelihoods"]
fn published_signals_have_their_known_cls() {
    let folder = published::data_folder().join("conformance/regression");
    let exact = document(&folder.join("values.json"));
    let workspaces = published::data_folder().join("workspaces");
    let mut n = 0;
    for (key, values) in exact.as_object().expect("an object") {
        let (region, signal) = key.split_once('/').expect("region and signal");
        // The background of region C is not among the data.
        if region == "C" {
            continue;
        }
        let own = folder.join(format!("Region{region}.BkgOnly.json"));
        let workspace = if own.exists() { own } else { workspaces.join(format!("atlas_sbottom_region{region}.json")) };
        assert!(workspace.exists(), "the background workspace of region {region} is missing: {}", workspace.display());
        let request = ns_translate::LoadRequest {
            patches: vec![ns_translate::DocumentSource::Path(
                folder.join(format!("Region{region}.patch.sbottom_{signal}.json")),
            )],
            ..ns_translate::LoadRequest::new(ns_translate::DocumentSource::Path(workspace))
        };
        let workspace = ns_translate::load(&request).expect("a workspace");
        let model = compile(&workspace, &CompileOptions::default()).expect("a model");
        let result = test(&model, TestStatistic::QTilde, 1.0, &FitOptions::default());
        let exact = values["exact_CLs_obs"].as_f64().expect("a number");
        assert!(
            (result.cls_obs.expect("CLs") / exact - 1.0).abs() < 1e-6,
            "{key}: {:?} is not {exact}",
            result.cls_obs
        );
        n += 1;
    }
    assert_eq!(n, 4);
}

/// Returns a model whose background of two bins a systematic raises at -1σ and at +1σ: -ln L has a
/// minimum on either side of zero.
fn same_sign(lo: [f64; 2], hi: [f64; 2]) -> Model {
    let document = json!({
        "channels": [{"name": "c", "samples": [
            {"name": "s", "data": [5.0, 8.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "b", "data": [50.0, 40.0], "modifiers": [{"name": "a", "type": "histosys", "data": {"lo_data": lo, "hi_data": hi}}]}]}],
        "observations": [{"name": "c", "data": [75.0, 60.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": [{"name": "mu", "bounds": [[0.0, 10.0]]}]}}],
        "version": "1.0.0"});
    model_of(&document, Interpolation::default())
}

#[test]
fn saddle_points_between_equal_minima_are_left() {
    let model = same_sign([57.0, 45.0], [57.0, 45.0]);
    let result = fit(&mut Problem::new(&model, &mut CpuLikelihood::new(&model), &FitOptions::default()));
    let lowest = fit(&mut Problem::new(&model, &mut CpuLikelihood::new(&model), &widely()));
    assert!(result.converged && result.bestfit[result.index_of("a").expect("a")].abs() > 0.3, "{result:?}");
    assert_close(result.nll, lowest.nll, 1e-10, "-ln L");
    let limits = limits(&model, LimitOptions::default());
    assert!(limits.converged && limits.observed.is_some(), "{:?}", limits.warnings);
}

#[test]
fn the_lower_of_two_reflected_minima_is_found_from_either_side() {
    let model = same_sign([60.0, 42.0], [53.0, 49.0]);
    let poi = model.poi().expect("mu");
    for start in [-1.5, 1.5] {
        let mut at = model.parameters.init.clone();
        at[model.parameters.index_of("a").expect("a")] = start;
        let options = FitOptions { start: Some(at), ..FitOptions::default() };
        for mu in [0.0, 0.5, 2.0] {
            let one = hypotest(
                &mut Problem::new(&model, &mut CpuLikelihood::new(&model), &options),
                TestStatistic::Q,
                poi,
                mu,
            );
            let all = hypotest(
                &mut Problem::new(&model, &mut CpuLikelihood::new(&model), &widely()),
                TestStatistic::Q,
                poi,
                mu,
            );
            assert_close(one.cls_obs.expect("CLs"), all.cls_obs.expect("CLs"), 1e-7, "CLs");
            assert_close(one.cls_exp.expect("a band")[2], all.cls_exp.expect("a band")[2], 1e-7, "expected CLs");
            // From the higher minimum both are found; from the lower one the other need not be.
            let is_reported = one.warnings.iter().any(|w| w.contains("several minima"));
            assert!(is_reported || start < 0.0, "{:?}", one.warnings);
        }
    }
}

fn widely() -> FitOptions {
    FitOptions { multi_start: Some(MultiStart::default()), ..FitOptions::default() }
}

/// Returns a model of one bin with `signal` μ and `background`, and `n` observed events.
fn counting(signal: f64, background: f64, n: f64) -> Model {
    let document = json!({
        "channels": [{"name": "c", "samples": [
            {"name": "s", "data": [signal], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "b", "data": [background], "modifiers": []}]}],
        "observations": [{"name": "c", "data": [n]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0"});
    model_of(&document, Interpolation::default())
}

#[test]
fn the_observed_significance_needs_no_asimov_data_set() {
    // With the signal expected by default, the expected count is -6.
    let result = discover(&counting(-16.0, 10.0, 9.0), 1.0);
    let q0 = 2.0 * (10.0 - 9.0 - 9.0 * (10.0_f64 / 9.0).ln());
    assert_close(result.q0.expect("q0"), q0, 1e-9, "q0");
    assert_close(result.z_obs.expect("Z"), q0.sqrt(), 1e-9, "Z");
    assert_eq!((result.z_exp, result.p0_exp, result.converged), (None, None, false));
    let known = [
        "there is no Asimov data set at `mu` = 1: the fit with `mu` = 1 to the observed data did not converge",
        "with `mu` at 1 and the other parameters at their starting values the data are impossible: channel `c`, bin 0: -6 events expected where 9 were \
         observed (lowest yield: sample `s`, -16)",
    ];
    assert_eq!(result.warnings, known);
}

#[test]
fn impossible_backgrounds_are_named_by_every_test() {
    let model = counting(5.0, 0.0, 3.0);
    let known = [
        "there is no Asimov data set at `mu` = 0: the fit with `mu` = 0 to the observed data did not converge",
        "with `mu` at 0 and the other parameters at their starting values the data are impossible: channel `c`, bin 0: 0 events expected where 3 were \
         observed (lowest yield: sample `b`, 0)",
    ];
    let tested = test(&model, TestStatistic::QTilde, 1.0, &FitOptions::default());
    assert_eq!(tested.warnings, known);
    let limits = limits(&model, LimitOptions::default());
    assert!(limits.warnings[0].ends_with(known[0]), "{:?}", limits.warnings);
    assert!(limits.warnings.iter().any(|w| w == known[1]), "{:?}", limits.warnings);
}

#[test]
fn tests_warn_of_a_parameter_that_the_data_do_not_determine() {
    let no_signal = counting(0.0, 50.0, 49.0);
    let two_names = json!({
        "channels": [{"name": "c", "samples": [{"name": "s", "data": [10.0, 12.0], "modifiers": [
            {"name": "mu", "type": "normfactor", "data": null}, {"name": "k", "type": "normfactor", "data": null}]},
            {"name": "b", "data": [50.0, 40.0], "modifiers": []}]}],
        "observations": [{"name": "c", "data": [62.0, 50.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0"});
    for model in [no_signal, model_of(&two_names, Interpolation::default())] {
        let of_fit = fit(&mut Problem::new(&model, &mut CpuLikelihood::new(&model), &FitOptions::default())).warnings;
        assert!(of_fit[0].contains("do not determine") && of_fit[0].contains("`mu`"), "{of_fit:?}");
        let tested = test(&model, TestStatistic::QTilde, 1.0, &FitOptions::default()).warnings;
        assert!(tested.contains(&of_fit[0]), "{tested:?}");
        let limits = limits(&model, LimitOptions::default()).warnings;
        assert!(limits.contains(&of_fit[0]), "{limits:?}");
        let discovery = discover(&model, 1.0).warnings;
        assert!(discovery.contains(&of_fit[0]), "{discovery:?}");
    }
    assert_eq!(discover(&counting(10.0, 50.0, 62.0), 1.0).warnings, [""; 0]);
}

/// -ln L is then a straight line along the signal, and its derivative at the end of the range
/// determines the signal.
#[test]
fn data_without_events_determine_the_signal() {
    let model = on_off(1.0, 0.5, 0.1, 0.0, [0.0, 10.0]);
    let mut likelihood = CpuLikelihood::new(&model);
    let (options, poi) = (FitOptions::default(), model.poi().expect("one"));
    let tested = hypotest(&mut Problem::new(&model, &mut likelihood, &options), TestStatistic::QTilde, poi, 1.0);
    assert_eq!(tested.warnings, Vec::<String>::new());
    // For zero events with a well-known background, q = 2μs.
    assert_close(tested.q.expect("a value"), 2.0, 1e-6, "q");
}

/// For a large deficit and a range that extends below zero, q̃ excludes every positive value, and
/// CLs jumps to 1 where the hypotheses differ only by rounding.
#[test]
fn a_jump_of_cls_next_to_zero_is_no_limit() {
    let model = on_off(10.0, 100.0, 5.0, 50.0, [-5.0, 10.0]);
    let mut likelihood = CpuLikelihood::new(&model);
    let (options, poi) = (FitOptions::default(), model.poi().expect("one"));
    let found = limit(&mut Problem::new(&model, &mut likelihood, &options), poi, LimitOptions::default());
    assert_eq!(found.observed, None);
    let reason = "the observed limit was not found: every value tested is excluded";
    assert!(found.warnings.iter().any(|warning| warning == reason), "{:?}", found.warnings);
}
