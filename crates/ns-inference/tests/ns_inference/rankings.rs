//! Tests rankings on the CPU against explicit fits, the covariance, and published impacts.

use crate::common;

use common::StopAfter;
use ns_compute::CpuLikelihood;
use ns_core::interpolate::Interpolation;
use ns_core::spec::ModifierData;
use ns_core::{CompileOptions, Constraint, Data, DataLikelihood, Model, compile};
use ns_inference::minimize::Outcome;
use ns_inference::monitor::Monitor;
use ns_inference::parallel::{ExecutionContext, WorkPart};
use ns_inference::ranking::{
    Impact, ParameterGroup, Ranking, RankingEntry, RankingMethods, RankingOptions, ranking, ranking_of_parts,
    ranking_part,
};
use ns_inference::{FitOptions, FitResult, MultiStart, Problem, Uncertainties, fit};
use ns_testkit::assert_close;
use ns_testkit::published::data_folder;
use ns_testkit::random::{self, Shape};
use ns_testkit::small::{self, one_channel, region, sample};
use std::num::NonZeroUsize;

fn fit_data(model: &Model, data: &Data, options: &FitOptions) -> FitResult {
    let mut likelihood = CpuLikelihood::new(model);
    likelihood.set_data(data);
    fit(&mut Problem::new(model, &mut likelihood, options))
}

fn options(model: &Model) -> RankingOptions {
    let poi = model.poi().expect("has one");
    RankingOptions { poi, methods: RankingMethods::ALL, minos: false, groups: Vec::new() }
}

fn rank(model: &Model, options: &RankingOptions) -> Ranking {
    rank_under(model, options, &FitOptions::default())
}

fn rank_under(model: &Model, options: &RankingOptions, fit: &FitOptions) -> Ranking {
    let mut likelihood = CpuLikelihood::new(model);
    ranking(&Problem::new(model, &mut likelihood, fit), options, ExecutionContext::SINGLE_THREADED)
}

fn entry<'r>(ranking: &'r Ranking, name: &str) -> &'r RankingEntry {
    ranking.entries.iter().find(|entry| entry.parameter == name).expect("ranked")
}

fn impact(impact: Impact) -> f64 {
    impact.impact.expect("converged")
}

use ModifierData::{NormFactor, NormSys, ShapeSys};

/// Returns a model of a signal region and a control region with a free factor, Gaussian and Poisson
/// constraints, and `scale` times as many events.
fn model(scale: f64) -> Model {
    let scaled = |data: &[f64]| data.iter().map(|y| y * scale).collect::<Vec<f64>>();
    let one = |size: f64| NormSys { lo: 1.0 - size, hi: 1.0 + size };
    let signal = sample("signal", &scaled(&[8.0, 20.0]), &[("mu", NormFactor), ("xs", one(0.05))]);
    let shape = ShapeSys(vec![4.0 * scale, 5.0 * scale]);
    let factor = ("k", NormFactor);
    let large = sample("large", &scaled(&[60.0, 50.0]), &[factor.clone(), ("jes", one(0.06)), ("gamma", shape)]);
    let control = sample("large", &scaled(&[200.0]), &[factor, ("jes", one(-0.03))]);
    let regions =
        vec![region("CR", vec![control], &scaled(&[210.0])), region("SR", vec![signal, large], &scaled(&[75.0, 77.0]))];
    small::model(regions, Vec::new())
}

#[test]
fn classic_impacts_match_explicit_refits() {
    let mut n_unique = 0;
    for seed in [None, Some(3), Some(14), Some(15)] {
        let small = Shape { oddities: false, ..Shape::SMALL };
        let model = seed.map_or_else(|| model(1.0), |seed| random::model(seed, small, Interpolation::default()));
        let poi = model.poi().expect("has one");
        let free = fit_data(&model, &model.observed, &FitOptions::default());
        let result = rank(&model, &options(&model));
        assert!(result.converged && result.is_complete, "{:?}", result.warnings);
        assert_eq!(result.entries.len(), free.n_free - 1);
        for entry in &result.entries {
            let i = model.parameters.index_of(&entry.parameter).expect("known");
            for impacts in [&entry.prefit, &entry.postfit].into_iter().flatten() {
                for side in [impacts.down, impacts.up] {
                    // Random models may have several conditional minima, and a refit ends in one of
                    // them.
                    let minima = all_minima(&model, (i, side.at));
                    let is_known = |at: &f64| (at - free.bestfit[poi] - impact(side)).abs() < 1e-6;
                    assert!(minima.iter().map(|params| params[poi]).any(|at| is_known(&at)), "{}", entry.parameter);
                    n_unique += usize::from(minima.len() == 1);
                }
            }
            let Some((sigma, post)) = free.uncertainties[i].zip(entry.postfit.as_ref()) else { continue };
            let inside = |side: Impact| !side.clipped;
            assert!(!inside(post.up) || (post.up.at - entry.bestfit - sigma).abs() < 1e-6 * sigma);
            assert!(!inside(post.down) || (entry.bestfit - post.down.at - sigma).abs() < 1e-6 * sigma);
        }
    }
    assert!(n_unique > 60, "{n_unique} refits have one minimum only");
}

/// Returns the minima of fits with one parameter fixed, from many starting points.
fn all_minima(model: &Model, fixed: (usize, f64)) -> Vec<Vec<f64>> {
    let multi_start = Some(MultiStart { n_starts: 30, seed: 2 });
    let options =
        FitOptions { fixed: vec![fixed], multi_start, uncertainties: Uncertainties::None, ..FitOptions::default() };
    fit_data(model, &model.observed, &options).minima.into_iter().map(|minimum| minimum.params).collect()
}

#[test]
fn global_impacts_match_fits_to_shifted_auxiliary_data() {
    let model = model(1.0);
    let poi = model.poi().expect("has one");
    let free = fit_data(&model, &model.observed, &FitOptions::default());
    let result = rank(&model, &options(&model));
    let mut n = 0;
    for (i, name) in model.parameters.names.iter().enumerate().filter(|(i, _)| *i != poi) {
        let entry = entry(&result, name);
        let (Some(constraint), Some(term)) = (model.parameters.constraint[i], model.parameters.aux_index[i]) else {
            assert!(entry.global.is_none() && entry.prefit.is_none() && entry.pull.is_none(), "{name} is free");
            assert!(entry.postfit.is_some() && entry.covariance_postfit.is_some());
            continue;
        };
        let sigma = match constraint {
            Constraint::Gaussian { sigma } => sigma,
            Constraint::Poisson { tau } => (tau * free.bestfit[i]).sqrt(),
            other => unreachable!("the model has no {} term", other.name()),
        };
        let global = entry.global.as_ref().expect("constrained");
        for (side, sign) in [(global.down, -1.0), (global.up, 1.0)] {
            let mut data = model.observed.clone();
            data.aux[term] += sign * sigma;
            assert_close(side.at, data.aux[term], 1e-9, name);
            let refit = fit_data(&model, &data, &FitOptions::default()).bestfit[poi] - free.bestfit[poi];
            assert_close(impact(side), refit, 1e-6, name);
        }
        n += 1;
    }
    assert_eq!(n, 4);
}

#[test]
fn global_impacts_and_the_remainder_sum_to_the_variance_for_many_events() {
    // With many events and no pulls the model is linear: shifts, formulas and the two breakdowns of
    // the uncertainty agree.
    let model = model(1e2);
    let data = ns_core::expected::asimov(&model, &model.parameters.init);
    let mut likelihood = CpuLikelihood::new(&model);
    likelihood.set_data(&data);
    let fit = FitOptions::default();
    let problem = Problem::new(&model, &mut likelihood, &fit);
    let result = ranking(&problem, &options(&model), ExecutionContext::SINGLE_THREADED);
    let total = result.poi.uncertainty.expect("has one");
    let statistical = result.breakdown.global_statistical.expect("positive");
    let systematic = result.breakdown.global_systematic.expect("all done");
    assert_close(systematic.hypot(statistical), total, 1e-12, "sum");
    let mut linear = 0.0;
    for entry in result.entries.iter().filter(|entry| entry.global.is_some()) {
        let global = entry.global.as_ref().expect("filtered");
        let response = entry.global_linear.expect("constrained");
        assert_close(0.5 * (impact(global.up) - impact(global.down)) / total, response / total, 3e-3, &entry.parameter);
        linear += response * response;
    }
    assert_close(linear.sqrt() / total, systematic / total, 3e-3, "quadrature sum");
    // The statistical part alone, propagated from the fluctuations of the event counts by refits.
    let poi = model.poi().expect("has one");
    let mut by_counts = 0.0;
    for bin in 0..model.n_bins() {
        let mut shifted = data.clone();
        shifted.main[bin] += 0.1 * data.main[bin].sqrt();
        let best = result.poi.bestfit.expect("a minimum");
        let shift = fit_data(&model, &shifted, &FitOptions::default()).bestfit[poi] - best;
        by_counts += 100.0 * shift * shift;
    }
    // The shifts are finite, which matters for a small difference of large parts; the linear
    // responses are not affected.
    let rest = (total * total - linear).sqrt();
    assert_close(by_counts.sqrt() / rest, 1.0, 2e-2, "the statistical part");
}

#[test]
fn covariance_impacts_and_groups_match_their_formulas() {
    let model = model(1.0);
    let poi = model.poi().expect("has one");
    let all = FitOptions { uncertainties: Uncertainties::Covariance, ..FitOptions::default() };
    let free = fit_data(&model, &model.observed, &all);
    let covariance = free.covariance.as_ref().expect("was asked for");
    let n = model.n_params();
    let groups = vec![
        ParameterGroup::matching("gammas", &["gamma"], &model.parameters),
        ParameterGroup::matching("both", &["j?s", "k"], &model.parameters),
    ];
    let methods = RankingMethods { classic: false, global: false, covariance: true };
    let result = rank(&model, &RankingOptions { methods, groups, ..options(&model) });
    for (i, name) in model.parameters.names.iter().enumerate().filter(|(i, _)| *i != poi) {
        let (entry, sigma) = (entry(&result, name), free.uncertainties[i].expect("free"));
        let post = covariance[poi * n + i] / sigma;
        assert_close(entry.covariance_postfit.expect("requested"), post, 1e-9, name);
        let pre = entry.prefit_uncertainty.map(|width| post * width / sigma);
        assert_eq!(entry.covariance_prefit.is_some(), pre.is_some());
        assert_close(entry.covariance_prefit.unwrap_or(0.0), pre.unwrap_or(0.0), 1e-9, name);
        assert!(entry.prefit.is_none() && entry.postfit.is_none() && entry.global.is_none());
    }
    let sizes: Vec<f64> = result.entries.iter().map(|e| e.covariance_postfit.unwrap_or(0.0).abs()).collect();
    assert!(sizes.windows(2).all(|pair| pair[0] >= pair[1]), "{sizes:?}");
    assert_eq!(result.groups[0].members, ["gamma[0]", "gamma[1]"]);
    assert_eq!(result.groups[1].members, ["k", "jes"]);
    for group in &result.groups {
        let indices = group.members.iter().map(|name| model.parameters.index_of(name).expect("known"));
        let fixed = indices.map(|i| (i, free.bestfit[i])).collect();
        let frozen = fit_data(&model, &model.observed, &FitOptions { fixed, ..FitOptions::default() });
        let (total, rest) = (free.uncertainties[poi].expect("free"), frozen.uncertainties[poi].expect("free"));
        assert_close(group.frozen.expect("less"), (total * total - rest * rest).sqrt(), 1e-6, &group.group);
        assert_eq!(group.global, None);
    }
}

#[test]
fn minos_ends_replace_standard_deviations() {
    let model = model(0.2);
    let result = rank(&model, &RankingOptions { minos: true, ..options(&model) });
    let i = model.parameters.index_of("jes").expect("has it");
    let free = fit_data(&model, &model.observed, &FitOptions { minos: vec![i], ..FitOptions::default() });
    let (interval, entry) = (&free.minos[0], entry(&result, "jes"));
    let postfit = entry.postfit.as_ref().expect("free");
    assert_close(postfit.up.at, interval.bestfit + interval.up.expect("closed"), 1e-7, "up");
    assert_close(postfit.down.at, interval.bestfit + interval.down.expect("closed"), 1e-7, "down");
}

#[test]
fn shifts_beyond_a_range_are_clipped_and_counted() {
    let model = model(1.0);
    let i = model.parameters.index_of("jes").expect("has it");
    let fit = FitOptions { bounds: vec![(i, [-3.0, 0.7])], ..FitOptions::default() };
    let result = rank_under(&model, &options(&model), &fit);
    let prefit = entry(&result, "jes").prefit.as_ref().expect("constrained");
    assert!(prefit.up.clipped && prefit.up.at == 0.7 && !prefit.down.clipped, "{prefit:?}");
    assert!(
        result.warnings.iter().any(|warning| warning.contains("end at the end of a range")),
        "{:?}",
        result.warnings
    );
}

#[test]
fn a_model_without_a_minimum_is_not_ranked() {
    let samples = vec![sample("signal", &[-1.0], &[("mu", NormFactor), ("jes", NormSys { lo: 0.9, hi: 1.1 })])];
    let model = one_channel(samples, &[5.0]);
    let result = rank(&model, &options(&model));
    assert!(!result.converged && result.entries.is_empty() && result.best.outcome == Outcome::NotFinite);
    assert_eq!(result.warnings, ["the free fit did not converge, so there is nothing to rank"]);
    assert_eq!((result.poi.bestfit, result.poi.uncertainty), (None, None));
}

fn rank_with(model: &Model, threads: usize, monitor: &dyn Monitor) -> Ranking {
    let execution = ExecutionContext::new(NonZeroUsize::new(threads).expect("not zero"), monitor);
    let (mut likelihood, fit) = (CpuLikelihood::new(model), FitOptions::default());
    ranking(&Problem::new(model, &mut likelihood, &fit), &options(model), execution)
}

#[test]
fn rankings_do_not_depend_on_the_number_of_threads() {
    let shape = Shape {
        channels: 4,
        bins: 8,
        samples: 4,
        systematics: 12,
        oddities: true,
        gentle: false,
        terms: true,
        rules: true,
        yield_rules: false,
    };
    let model = random::model(11, shape, Interpolation::default());
    let alone = rank_with(&model, 1, &ns_inference::monitor::NoMonitor);
    assert!(alone.is_complete && alone.entries.len() > 10);
    assert_eq!(alone, rank_with(&model, 2, &ns_inference::monitor::NoMonitor));
    assert_eq!(alone, rank_with(&model, 7, &ns_inference::monitor::NoMonitor));
}

#[test]
fn a_cancelled_ranking_returns_completed_entries_and_no_sums() {
    let model = model(1.0);
    let whole = rank_with(&model, 1, &ns_inference::monitor::NoMonitor);
    let stopped = rank_with(&model, 1, &StopAfter::new(3));
    assert!(!stopped.is_complete && stopped.entries.len() == 3);
    assert!(stopped.entries.iter().all(|done| whole.entries.contains(done)));
    assert_eq!(stopped.breakdown.global_systematic, None);
    assert!(stopped.warnings[0].starts_with("stopped after 3 of "), "{:?}", stopped.warnings);
}

/// Returns a published model.
fn published(name: &str) -> Model {
    let path = data_folder().join("workspaces").join(name);
    let request = ns_translate::LoadRequest::new(ns_translate::DocumentSource::Path(path));
    let workspace = ns_translate::load(&request).expect("published");
    compile(&workspace, &CompileOptions::default()).expect("published")
}

#[test]
#[ignore = "needs published likelihoods"]
fn the_leading_impact_of_the_published_four_top_likelihood_is_known() {
    let model = published("atlas_tttt.json");
    let methods = RankingMethods { classic: true, global: false, covariance: false };
    let result = rank(&model, &RankingOptions { methods, ..options(&model) });
    let first = &result.entries[0];
    assert_eq!(first.parameter, "ttW_Syst_Ext_2b8j");
    // Known to three digits from conditional fits with other tools.
    let (pre, post) = (first.prefit.as_ref().expect("constrained"), first.postfit.as_ref().expect("free"));
    for (side, known) in [(pre.up, -0.339), (pre.down, 0.690), (post.up, -0.175), (post.down, 0.304)] {
        assert!((impact(side) - known).abs() < 6e-4, "{side:?} is not {known}");
    }
    let refits = result.entries.iter().flat_map(|e| [&e.prefit, &e.postfit]).flatten();
    assert!(refits.flat_map(|i| [i.down, i.up]).all(|side| side.impact.is_some()), "{:?}", result.warnings);
}

#[test]
fn parts_of_a_ranking_merge_to_the_same_bits_even_if_some_are_missing() {
    let model = model(1.0);
    let options = options(&model);
    let whole = rank(&model, &options);
    let (mut likelihood, fit) = (CpuLikelihood::new(&model), FitOptions::default());
    let problem = Problem::new(&model, &mut likelihood, &fit);
    for of in [1, 2, 7] {
        let part = |index| {
            let part = WorkPart { index, n_parts: of };
            ranking_part(&problem, &options, part, ExecutionContext::SINGLE_THREADED)
        };
        let mut parts: Vec<_> = (0..of).map(part).collect();
        parts.reverse();
        for n_missing in 0..2 {
            parts.truncate(of - n_missing);
            let merged = ranking_of_parts(&problem, &options, &parts, ExecutionContext::SINGLE_THREADED);
            assert_eq!(merged, whole, "{of} parts, {n_missing} missing");
        }
    }
}
