//! Tests an ABCD plane: the background of each region is a product of free factors, and a small
//! sample has a very large normsys.

use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_core::spec::ModifierData::{self, NormFactor, NormSys, ShapeFactor, StatError};
use ns_core::spec::ParameterConfig;
use ns_inference::FitOptions;
use ns_inference::Problem;
use ns_inference::hypotest::hypotest;
use ns_inference::limit::{LimitOptions, limit};
use ns_inference::test_statistic::TestStatistic;
use ns_testkit::assert_close;
use ns_testkit::small::{self, region, sample};

fn plane() -> Model {
    let normsys = |hi: f64, lo: f64| NormSys { lo, hi };
    let fake = |factors: &[(&str, ModifierData)]| sample("fake", &[1.0, 1.0], factors);
    let signal = |data: [f64; 2], acceptance: Option<ModifierData>| {
        let acceptance = acceptance.map(|data| ("acceptance", data));
        let modifiers: Vec<(&str, ModifierData)> = [("mu", NormFactor)].into_iter().chain(acceptance).collect();
        sample("signal", &data, &modifiers)
    };
    let a = vec![
        fake(&[("low", ShapeFactor), ("transfer", NormFactor)]),
        signal([17.7098, 13.12], Some(normsys(5.4085, 0.84419))),
        sample("prompt", &[3.38944, 2.51355], &[("xs", normsys(5.99827, 0.56516))]),
    ];
    let b = vec![
        fake(&[("high", ShapeFactor), ("transfer", NormFactor)]),
        signal([1.83991, 1.3633], Some(normsys(1.74174, 0.76116))),
        sample("prompt", &[2.19097, 1.6257], &[("xs", normsys(8.97449, 0.71839))]),
    ];
    let c = vec![
        fake(&[("low", ShapeFactor)]),
        signal([1.72617, 1.27904], None),
        sample("prompt", &[1.65674, 1.22993], &[("xs", normsys(9.01563, 0.22672))]),
    ];
    let few_events = StatError(vec![0.26961, 0.66439]);
    let d = vec![
        fake(&[("high", ShapeFactor)]),
        signal([3.08119, 2.28286], Some(normsys(3.21493, 0.28912))),
        sample(
            "prompt",
            &[1.66126, 1.23328],
            &[("xs", normsys(6.61502, 0.5281)), ("stat", few_events), ("isolation", normsys(1.07939, 1.67563))],
        ),
    ];
    let regions = [("A", a, [2.0, 4.0]), ("B", b, [14.0, 24.0]), ("C", c, [7.0, 14.0]), ("D", d, [36.0, 28.0])];
    let shape = |name: &str| ParameterConfig {
        name: name.to_owned(),
        inits: Some(vec![11.64053, 8.62352]),
        bounds: Some(vec![[0.0, 602.03]; 2]),
        ..ParameterConfig::default()
    };
    let regions = regions.into_iter().map(|(name, samples, observed)| region(name, samples, &observed));
    small::model(regions.collect(), vec![shape("low"), shape("high")])
}

#[test]
fn tests_at_expected_limits_find_the_same_branch() {
    let model = plane();
    let (poi, options) = (model.poi().expect("mu"), FitOptions::default());
    let mut likelihood = CpuLikelihood::new(&model);
    let limits = limit(&mut Problem::new(&model, &mut likelihood, &options), poi, LimitOptions::default());
    for (k, mu) in limits.expected.into_iter().enumerate() {
        let mu = mu.expect("a limit");
        let tested = hypotest(&mut Problem::new(&model, &mut likelihood, &options), TestStatistic::QTilde, poi, mu);
        assert_close(tested.cls_exp.expect("a value")[k], 0.05, 1e-6, &format!("CLs at {mu}"));
    }
}
