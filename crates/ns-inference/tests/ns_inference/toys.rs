//! Tests toys against exact sums and asymptotic formulas: right distributions, the same bits for
//! any threads and batches, and complete results.

use crate::common;

use common::StopAfter;
use common::on_off::{ON_OFF, OnOff};
use ns_compute::CpuLikelihood;
use ns_core::expected::asimov;
use ns_core::interpolate::Interpolation;
use ns_core::spec::ModifierData::{self, HistoSys, Lumi, NormFactor, NormSys, ShapeFactor, ShapeSys, StatError};
use ns_core::spec::ParameterConfig;
use ns_core::{CompileOptions, Data, DataLikelihood, Model, compile};
use ns_inference::gof::Deviance;
use ns_inference::hypotest::hypotest;
use ns_inference::minimize::{MinimizeOptions, Outcome};
use ns_inference::monitor::NoMonitor;
use ns_inference::normal::upper_tail;
use ns_inference::test_statistic::{TestStatistic, test};
use ns_inference::toys::{
    AuxTreatment, Ensemble, HypotestSettings, HypotestToys, RunStatus, ToyFit, ToyFitter, ToyHypotest, ToyRun,
    ToySampler, ToySource, ToysError, fit_toys, goodness_toys, hypotest_toys,
};
use ns_inference::{FitOptions, MultiStart, Problem, fit};
use ns_testkit::assert_close;
use ns_testkit::published::data_folder;
use ns_testkit::random::Shape;
use ns_testkit::small::{self, one_channel, region, sample};
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

fn threads(n: usize) -> ToyRun<'static> {
    ToyRun::new(NonZeroUsize::new(n).expect("not zero"), &NoMonitor)
}

const FITS: ToySource = ToySource { seed: 1, ensemble: Ensemble::Fits, aux: AuxTreatment::Fluctuated };

fn test_by_toys(model: &Model, settings: HypotestSettings, run: &ToyRun<'_>) -> HypotestToys {
    let (mut likelihood, options) = (CpuLikelihood::new(model), FitOptions::default());
    let problem = &mut Problem::new(model, &mut likelihood, &options);
    hypotest_toys(problem, settings, run, None).expect("the data can be fitted")
}

fn settings(n_toys: u64, aux: AuxTreatment) -> HypotestSettings {
    HypotestSettings { test_statistic: TestStatistic::QTilde, poi: 0, mu: 1.0, n_toys: [n_toys; 2], seed: 4, aux }
}

/// Returns these settings for the parameter of interest of `model`.
fn of(settings: HypotestSettings, model: &Model) -> HypotestSettings {
    HypotestSettings { poi: model.poi().expect("every model here has mu"), ..settings }
}

#[test]
fn cls_of_on_off_models_matches_the_exact_sum() {
    for on_off in ON_OFF {
        for aux in [AuxTreatment::Fluctuated, AuxTreatment::Fixed] {
            let model = on_off.model();
            let settings = of(settings(8000, aux), &model);
            let result = test_by_toys(&model, settings, &threads(2));
            assert!((result.observed.value - on_off.q_tilde(1.0, on_off.n, on_off.tau())).abs() < 1e-8, "{on_off:?}");
            let (clsb, clb) = (on_off.p_value(1.0, aux), on_off.p_value(0.0, aux));
            for (p, exact) in [(result.clsb, clsb), (result.clb, clb)] {
                assert!((p.value - exact).abs() < 4.0 * p.error, "{on_off:?} {aux:?}: {p:?} for {exact}");
            }
            let off = (result.cls_observed - clsb / clb) / result.cls_observed_error;
            assert!(off.abs() < 4.0, "{on_off:?} {aux:?}: {result:?} for {}", clsb / clb);
            assert_eq!(result.n_failed, [0, 0]);
        }
    }
}

#[test]
fn fixed_auxiliary_data_make_cls_wrong_by_a_factor_of_three() {
    let cls = |aux| ON_OFF[0].p_value(1.0, aux) / ON_OFF[0].p_value(0.0, aux);
    // The same sums in Python with `lgamma`. Of these values, 0.0014 and 0.023 belong to the
    // observed outcome itself, which the rounding of a fit must not exclude.
    assert!((cls(AuxTreatment::Fluctuated) - 0.151_871_321).abs() < 1e-8, "{}", cls(AuxTreatment::Fluctuated));
    assert!((cls(AuxTreatment::Fixed) - 0.467_030_705).abs() < 1e-8, "{}", cls(AuxTreatment::Fixed));
}

/// At counts of a million, eq. 59 and 65 of arXiv:1007.1727 with the Asimov value of q are accurate
/// to far less than the Monte Carlo error.
#[test]
fn toys_agree_with_asymptotic_formulas_at_large_counts() {
    let on_off = OnOff { s: 6e3, b: 1e6, db: 2e3, n: 1.002e6 };
    let model = on_off.model();
    let poi = model.poi().expect("mu");
    for test_statistic in [TestStatistic::QTilde, TestStatistic::Q0] {
        let mu = if test_statistic == TestStatistic::Q0 { 0.0 } else { 1.0 };
        let settings = of(HypotestSettings { test_statistic, mu, ..settings(4000, AuxTreatment::Fluctuated) }, &model);
        let result = test_by_toys(&model, settings, &threads(2));
        let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
        let hypotest = ToyHypotest::new(&model, &mut likelihood, &options, settings).expect("fits");
        let alternative = hypotest.thrown_at()[1].to_vec();
        likelihood.set_data(&asimov(&model, &alternative));
        let mut profiler = ns_inference::profile::Profiler::of_asimov(&model, &mut likelihood, &options, &alternative);
        let of_asimov = test(&mut profiler, test_statistic, poi, mu).value.expect("a fit");
        let (root, root_asimov) = (result.observed.value.sqrt(), of_asimov.sqrt());
        let (clsb, clb) = (upper_tail(root), upper_tail(root - root_asimov));
        assert!((result.clsb.value - clsb).abs() < 4.0 * result.clsb.error, "{test_statistic:?}: {clsb} {result:?}");
        assert!((result.clb.value - clb).abs() < 4.0 * result.clb.error, "{test_statistic:?}: {clb} {result:?}");
        for (z, (expected, error)) in (-2..=2).zip(result.cls_expected.iter().zip(result.cls_expected_errors)) {
            let z = -f64::from(z);
            let tested = upper_tail(root_asimov + z);
            let exact = if test_statistic == TestStatistic::Q0 { tested } else { tested / upper_tail(z) };
            // If the alternative's best fit is above μ, the statistic is 0 and its p-value 1.
            let exact = if root_asimov + z <= 0.0 { 1.0 } else { exact };
            assert!((expected - exact).abs() < 4.0 * error, "{test_statistic:?} {z}: {expected} ± {error} for {exact}");
        }
    }
}

/// Returns a model in which the modifier `name` is `data`, and the index of its first parameter.
fn model_with(name: &str, data: ModifierData) -> (Model, usize) {
    // The luminosity is known to 0.1%.
    let lumi = ParameterConfig {
        name: "lumi".to_owned(),
        inits: Some(vec![1.0]),
        bounds: Some(vec![[0.5, 1.5]]),
        auxdata: Some(vec![1.0]),
        sigmas: Some(vec![0.001]),
        ..ParameterConfig::default()
    };
    let lumi = if data == Lumi { vec![lumi] } else { Vec::new() };
    let mut workspace_samples = vec![sample("signal", &[4e4, 6e4], &[("mu", NormFactor)])];
    workspace_samples.push(sample("background", &[1e6, 1e6], &[(name, data)]));
    let model = small::model(vec![region("channel", workspace_samples, &[1.04e6, 1.06e6])], lumi);
    let at = model.parameters.sets.iter().find(|set| set.name == name).expect("it is there").first;
    (model, at)
}

#[test]
fn pulls_are_standard_normal_for_every_kind_of_modifier() {
    let shape = HistoSys { hi_data: vec![1.001e6, 0.999e6], lo_data: vec![0.999e6, 1.001e6] };
    let kinds = [
        ("normsys", NormSys { lo: 0.999, hi: 1.001 }),
        ("histosys", shape),
        ("lumi", Lumi),
        ("staterror", StatError(vec![1e3, 2e3])),
        ("shapesys", ShapeSys(vec![1e3, 2e3])),
        ("normfactor", NormFactor),
        ("shapefactor", ShapeFactor),
    ];
    for (kind, data) in kinds {
        let (model, at) = model_with(kind, data);
        let mut likelihood = CpuLikelihood::new(&model);
        let mu = model.poi().expect("mu");
        // With a free shape, the data do not determine the signal.
        let fixed = if kind == "shapefactor" { vec![(mu, 1.0)] } else { Vec::new() };
        let options = FitOptions { fixed, ..FitOptions::default() };
        let truth = fit(&mut Problem::new(&model, &mut likelihood, &options)).bestfit;
        let sampler = ToySampler::new(&model, &model.observed, &truth, FITS).expect("a valid point");
        let toys = ToyFitter { model: &model, options: &options, sampler: &sampler, uncertainty_of: Some(at) };
        let mut pulls = Vec::new();
        let sink = |fits: Vec<ToyFit>| {
            let pull = |fit: &ToyFit| (fit.params[at] - truth[at]) / fit.uncertainty.expect("determined");
            pulls.extend(fits.iter().map(pull));
            Ok::<_, Infallible>(())
        };
        let Ok(_) = toys.run(&likelihood, 0..10_000, &threads(2), sink);
        let mean = pulls.iter().sum::<f64>() / pulls.len() as f64;
        let width = (pulls.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / pulls.len() as f64).sqrt();
        assert_eq!(pulls.len(), 10_000);
        assert!(mean.abs() < 0.03 && (width - 1.0).abs() < 0.03, "{kind}: {mean} ± {width}");
    }
}

fn bits(fits: &[ToyFit]) -> Vec<u64> {
    let of_one = |fit: &ToyFit| {
        let numbers = fit.params.iter().chain([&fit.nll]).map(|x| x.to_bits());
        numbers.chain([fit.toy, u64::from(fit.outcome == Outcome::Converged)]).collect::<Vec<u64>>()
    };
    fits.iter().flat_map(of_one).collect()
}

#[test]
fn toys_do_not_depend_on_threads_batches_or_ranges() {
    let shape = Shape {
        channels: 4,
        bins: 8,
        samples: 4,
        systematics: 8,
        oddities: true,
        gentle: false,
        terms: true,
        rules: true,
        yield_rules: false,
    };
    let model = ns_testkit::random::model(17, shape, Interpolation::default());
    let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
    let truth = fit(&mut Problem::new(&model, &mut likelihood, &options)).bestfit;
    let sampler = ToySampler::new(&model, &model.observed, &truth, FITS).expect("a valid point");
    let toys = ToyFitter { model: &model, options: &options, sampler: &sampler, uncertainty_of: None };
    let run = |run: &ToyRun<'_>, ranges: &[std::ops::Range<u64>]| {
        let mut all = Vec::new();
        for range in ranges {
            let Ok(_) = toys.run(&likelihood, range.clone(), run, |fits| {
                all.extend(fits);
                Ok::<_, Infallible>(())
            });
        }
        bits(&all)
    };
    let reference = bits(&fit_toys(&toys, &likelihood, 0..70));
    for n_threads in [1, 2, 7] {
        for batch in [1, 13, 64] {
            let batch = NonZeroUsize::new(batch).expect("not zero");
            let all = run(&ToyRun { batch, ..threads(n_threads) }, std::slice::from_ref(&(0..70)));
            assert_eq!(all, reference, "{n_threads} threads, {batch}");
        }
    }
    assert_eq!(run(&threads(2), &[0..33, 33..34, 34..70]), reference);
    // Each separate run begins with pilot toys, which take longer than the toy.
    let alone: Vec<u64> = (0..4).flat_map(|toy| bits(&fit_toys(&toys, &likelihood.clone(), toy..toy + 1))).collect();
    assert_eq!(alone, bits(&fit_toys(&toys, &likelihood, 0..4)));
    assert!(reference.starts_with(&alone), "the first toys of a run are those of shorter runs");
}

#[test]
fn tests_stop_at_the_same_toy_for_any_number_of_threads() {
    let model = ON_OFF[0].model();
    let settings = of(settings(20_000, AuxTreatment::Fluctuated), &model);
    let run = |n_threads, batch| {
        let mut likelihood = CpuLikelihood::new(&model);
        let run = ToyRun { batch: NonZeroUsize::new(batch).expect("not zero"), ..threads(n_threads) };
        let options = FitOptions::default();
        let problem = &mut Problem::new(&model, &mut likelihood, &options);
        hypotest_toys(problem, settings, &run, Some(0.012)).expect("fits")
    };
    let first = run(1, 16);
    assert!(first.cls_observed_error < 0.012 && first.n_toys[0] < 20_000, "{first:?}");
    assert_eq!(first.n_toys[0], first.n_toys[1]);
    assert_eq!(run(2, 7), first);
    assert_eq!(run(7, 64), first);
}

#[test]
fn observed_statistic_matches_the_asymptotic_test() {
    // Several of these models have more than one minimum.
    for seed in 200..300 {
        let shape = Shape { oddities: false, systematics: 8, ..Shape::SMALL };
        let model = ns_testkit::random::model(seed, shape, Interpolation::default());
        let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
        let settings = HypotestSettings { mu: 5.0, ..of(settings(0, AuxTreatment::Fluctuated), &model) };
        let HypotestSettings { test_statistic, poi, mu, .. } = settings;
        let asymptotic = hypotest(&mut Problem::new(&model, &mut likelihood, &options), test_statistic, poi, mu);
        let test = ToyHypotest::new(&model, &mut likelihood, &options, settings).expect("fits");
        assert_close(test.observed().value, asymptotic.q.expect("fits"), 1e-8, &format!("q of model {seed}"));
    }
}

#[test]
fn units_enumerate_every_toy_of_both_hypotheses_once() {
    for n_toys in [[5, 5], [3, 7], [7, 3], [0, 4], [4, 0]] {
        let settings = HypotestSettings { n_toys, ..settings(0, AuxTreatment::Fluctuated) };
        let mut units: Vec<(usize, u64)> =
            (0..settings.n_units()).map(|unit| settings.unit(unit)).map(|unit| (unit.which, unit.toy)).collect();
        units.sort_unstable();
        let all = (0..2).flat_map(|which| (0..n_toys[which]).map(move |toy| (which, toy)));
        assert_eq!(units, all.collect::<Vec<_>>());
    }
}

#[test]
fn failed_fits_are_counted() {
    let model = ON_OFF[0].model();
    let mut likelihood = CpuLikelihood::new(&model);
    let options = FitOptions {
        minimize: MinimizeOptions { max_iterations: 1, ..MinimizeOptions::default() },
        ..FitOptions::default()
    };
    let sampler = ToySampler::new(&model, &model.observed, &model.parameters.init, FITS).expect("a valid point");
    let toys = ToyFitter { model: &model, options: &options, sampler: &sampler, uncertainty_of: None };
    let fits = fit_toys(&toys, &likelihood, 0..20);
    assert!(fits.iter().filter(|fit| fit.outcome == Outcome::IterationLimit).count() > 10);
    let observed = Deviance { total: 0.0, channels: vec![0.0], constraints: 0.0 };
    let (goodness, _) =
        goodness_toys(&Problem::new(&model, &mut likelihood, &options), &sampler, 0..20, &threads(1), &observed);
    assert!(goodness.n_failed > 10 && goodness.total.high - goodness.total.low > 0.5);
    let failed = ToyHypotest::new(&model, &mut likelihood, &options, of(settings(1, AuxTreatment::Fluctuated), &model));
    assert!(matches!(failed, Err(ToysError::Observed { .. })), "{failed:?}");
}

#[test]
fn negative_expected_counts_are_refused() {
    let model = ON_OFF[0].model();
    let mut params = model.parameters.init.clone();
    params[model.poi().expect("mu")] = -10.0;
    assert!(ToySampler::new(&model, &model.observed, &params, FITS).is_err());
}

#[test]
fn saturated_deviances_of_toys_follow_chi_squared() {
    let data: Vec<f64> = (1..=20).map(|i| 1e4 * f64::from(i)).collect();
    let model = one_channel(vec![sample("signal", &data, &[("mu", NormFactor)])], &data);
    let mut likelihood = CpuLikelihood::new(&model);
    let options = FitOptions::default();
    let sampler = ToySampler::new(&model, &model.observed, &model.parameters.init, FITS).expect("a valid point");
    // χ² with 19 degrees of freedom exceeds 27.2036 with probability 0.1.
    let observed = Deviance { total: 27.2036, channels: vec![27.2036], constraints: 0.0 };
    let (result, _) =
        goodness_toys(&Problem::new(&model, &mut likelihood, &options), &sampler, 0..4000, &threads(2), &observed);
    let p = result.total;
    assert!((p.value - 0.1).abs() < 4.0 * p.error, "{p:?}");
    assert_eq!((result.n_failed, p.n_toys, result.channels), (0, 4000, vec![p]));
}

#[test]
fn cancelled_runs_return_complete_batches_in_order() {
    let model = ON_OFF[0].model();
    let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
    let settings = of(settings(500, AuxTreatment::Fluctuated), &model);
    let hypotest = ToyHypotest::new(&model, &mut likelihood, &options, settings).expect("fits");
    for (n_threads, n_batches) in [(1, 0), (1, 5), (3, 5)] {
        let monitor = StopAfter::new(n_batches);
        let run = ToyRun::new(NonZeroUsize::new(n_threads).expect("not zero"), &monitor);
        let mut units = Vec::new();
        let ended = hypotest.run(&likelihood, 0..settings.n_units(), &run, |tests| {
            units.extend(tests.iter().map(|test| test.unit));
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        });
        assert_eq!(ended, Ok(RunStatus::Cancelled));
        // Threads complete the batch that they have begun.
        let (batch, least) = (ToyRun::BATCH.get(), n_batches * ToyRun::BATCH.get());
        assert!(units.len().is_multiple_of(batch) && units.len() >= least && units.len() < least + n_threads * batch);
        assert_eq!(units, (0..units.len() as u64).map(|unit| settings.unit(unit)).collect::<Vec<_>>());
    }
}

#[test]
#[ignore = "needs published likelihoods"]
fn toys_of_published_likelihoods_end_in_their_lowest_minima() {
    let folder = data_folder().join("workspaces");
    for name in ["atlas_tHu_fcnc", "atlas_tttt"] {
        let path = folder.join(format!("{name}.json"));
        let request = ns_translate::LoadRequest::new(ns_translate::DocumentSource::Path(path));
        let workspace = ns_translate::load(&request).expect("a published workspace");
        let model = compile(&workspace, &CompileOptions::default()).expect("a valid workspace");
        assert_every_toy_is_lowest(name, &model);
    }
}

fn assert_every_toy_is_lowest(name: &str, model: &Model) {
    let (mut likelihood, options) = (CpuLikelihood::new(model), FitOptions::default());
    let truth = fit(&mut Problem::new(model, &mut likelihood, &options)).bestfit;
    let sampler = ToySampler::new(model, &model.observed, &truth, FITS).expect("a valid point");
    let toys = ToyFitter { model, options: &options, sampler: &sampler, uncertainty_of: None };
    let mut data = Data::default();
    for toy in fit_toys(&toys, &likelihood, 0..50) {
        assert_eq!(toy.outcome, Outcome::Converged, "{name}, toy {}", toy.toy);
        sampler.throw(toy.toy, &mut data);
        likelihood.set_data(&data);
        let multi_start = Some(MultiStart { n_starts: 1, seed: toy.toy });
        for start in [None, Some(toy.params.clone())] {
            let again =
                fit(&mut Problem::new(model, &mut likelihood, &FitOptions { start, multi_start, ..options.clone() }));
            assert!(toy.nll <= again.nll + 1e-8, "{name}, toy {}: {} above {}", toy.toy, toy.nll, again.nll);
        }
    }
}
