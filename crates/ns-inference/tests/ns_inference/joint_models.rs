//! Tests fits of models that join analyses, whose matrices are sparse, against fits of each
//! analysis alone.

use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_core::likelihood::Likelihood;
use ns_core::spec::ModifierData;
use ns_inference::hypotest::ProfileRatioTest;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::{FitOptions, FitResult, Problem, fit};
use ns_testkit::assert_close;
use ns_testkit::small::{Region, model, region, sample};

/// Analyses that are joined.
const N_ANALYSES: usize = 6;

/// Normalisation uncertainties of each.
const N_SYSTEMATICS: usize = 60;

/// Returns the channel of analysis `k`: a signal of strength `poi`, and backgrounds with
/// systematics of this analysis alone, a free factor and statistical uncertainties.
fn analysis(k: usize, poi: &str) -> Region {
    let pull = |i: usize, b: usize| 0.01 + 0.02 * (((7 * i + 3 * b + 5 * k) % 11) as f64) / 11.0;
    let systematics: Vec<(String, ModifierData)> = (0..N_SYSTEMATICS)
        .map(|i| (format!("a{k}_{i}"), ModifierData::NormSys { hi: 1.0 + pull(i, 0), lo: 1.0 - pull(i, 1) }))
        .collect();
    let mut modifiers: Vec<(&str, ModifierData)> =
        systematics.iter().map(|(name, data)| (name.as_str(), data.clone())).collect();
    let free = format!("norm{k}");
    modifiers.push((&free, ModifierData::NormFactor));
    let (stat, shape) = (format!("stat{k}"), format!("shape{k}"));
    let background = [50.0, 80.0, 30.0 + k as f64];
    modifiers.push((&stat, ModifierData::ShapeSys(vec![5.0, 6.0, 4.0])));
    let hi: Vec<f64> = background.iter().enumerate().map(|(b, y)| y * (1.0 + 0.05 * b as f64)).collect();
    let lo: Vec<f64> = background.iter().enumerate().map(|(b, y)| y * (1.0 - 0.04 * b as f64)).collect();
    modifiers.push((&shape, ModifierData::HistoSys { hi_data: hi, lo_data: lo }));
    let samples = vec![
        sample("signal", &[2.0, 6.0, 12.0], &[(poi, ModifierData::NormFactor)]),
        sample("background", &background, &modifiers),
        sample("fixed", &[10.0, 4.0, 2.0], &modifiers[..10]),
    ];
    region(&format!("region{k}"), samples, &[60.0 + 3.0 * k as f64, 92.0, 45.0 - k as f64])
}

fn fitted(model: &Model) -> FitResult {
    fit(&mut Problem::new(model, &mut CpuLikelihood::new(model), &FitOptions::default()))
}

fn is_sparse(model: &Model) -> bool {
    CpuLikelihood::new(model).structure().partition.sparsity.is_some()
}

/// Returns the fit of analysis `k` alone with its strength fixed at `mu`.
fn alone_at(k: usize, mu: f64) -> FitResult {
    let model = model(vec![analysis(k, "mu")], Vec::new());
    let poi = model.poi().expect("it has one");
    let options = FitOptions { fixed: vec![(poi, mu)], ..FitOptions::default() };
    fit(&mut Problem::new(&model, &mut CpuLikelihood::new(&model), &options))
}

#[test]
fn analyses_without_common_parameters_have_the_fits_that_they_have_alone() {
    let strength = |k: usize| if k == 0 { "mu".to_owned() } else { format!("mu{k}") };
    let joint = model((0..N_ANALYSES).map(|k| analysis(k, &strength(k))).collect(), Vec::new());
    assert!(is_sparse(&joint), "this is a test of sparse matrices");
    let together = fitted(&joint);
    let mut n = 0;
    for k in 0..N_ANALYSES {
        let single = model(vec![analysis(k, "mu")], Vec::new());
        assert!(!is_sparse(&single));
        let alone = fitted(&single);
        for (i, name) in single.parameters.names.iter().enumerate() {
            let name = if name == "mu" { &strength(k) } else { name };
            let j = joint.parameters.index_of(name).expect("it is in both");
            assert_close(together.bestfit[j], alone.bestfit[i], 1e-8, name);
            let [both, one] = [together.uncertainties[j], alone.uncertainties[i]].map(|sigma| sigma.unwrap_or(-1.0));
            assert_close(both, one, 1e-8, name);
            n += 1;
        }
    }
    assert_eq!(n, joint.n_params());
}

#[test]
fn a_common_strength_has_the_sum_of_the_profiles_of_the_analyses() {
    let joint = model((0..N_ANALYSES).map(|k| analysis(k, "mu")).collect(), Vec::new());
    assert!(is_sparse(&joint));
    let together = fitted(&joint);
    let poi = joint.poi().expect("it has one");
    let (mu, step) = (together.bestfit[poi], 0.02);
    let profile = |mu: f64| (0..N_ANALYSES).map(|k| alone_at(k, mu).nll).sum::<f64>();
    let [below, at, above] = [mu - step, mu, mu + step].map(profile);
    assert_close(together.nll, at, 1e-10, "-ln L");
    assert_close((above - below) / (2.0 * step), 0.0, 1e-4, "the derivative");
    let sigma = together.uncertainties[poi].expect("it is determined");
    assert_close(sigma, step / (above - 2.0 * at + below).sqrt(), 1e-3, "the uncertainty");
}

#[test]
fn tests_of_a_common_strength_use_the_profiles_of_the_analyses() {
    let joint = model((0..N_ANALYSES).map(|k| analysis(k, "mu")).collect(), Vec::new());
    assert!(is_sparse(&joint));
    let poi = joint.poi().expect("it has one");
    let [mut likelihood, mut scratch] = [CpuLikelihood::new(&joint), CpuLikelihood::new(&joint)];
    let (options, statistic) = (FitOptions::default(), TestStatistic::QTilde);
    let problem = Problem::new(&joint, &mut likelihood, &options);
    let mut test = ProfileRatioTest::new(problem, &mut scratch, statistic, poi, 0.0);
    let q = test.result(2.0).q.expect("it converged");
    let profile = |mu: f64| (0..N_ANALYSES).map(|k| alone_at(k, mu).nll).sum::<f64>();
    assert_close(q, 2.0 * (profile(2.0) - profile(test.observed.best().params[poi])), 1e-8, "q");
}
