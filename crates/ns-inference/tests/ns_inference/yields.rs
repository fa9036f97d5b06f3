//! Tests yields with uncertainties against dense algebra and cabinetry, and without a covariance.

use ns_compute::CpuLikelihood;
use ns_core::expected::cell_yields;
use ns_core::interpolate::Interpolation;
use ns_core::scalar::HyperDual;
use ns_core::spec::ModifierData;
use ns_core::{CompileOptions, Model, compile};
use ns_inference::pulls::pulls;
use ns_inference::yields::{self, ChannelPrediction, Prediction, PredictionRequest, SampleGroup};
use ns_inference::{FitOptions, FitResult, Problem, Uncertainties, fit, parallel};
use ns_testkit::assert_close;
use ns_testkit::random::{self, Shape};
use ns_testkit::small::{one_channel, sample};
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;

/// Returns the yields at the starting values.
fn prefit(model: &Model, options: &FitOptions) -> Vec<ChannelPrediction> {
    let groups = groups(model);
    let request =
        PredictionRequest { model, groups: &groups, propagation: Default::default(), threads: parallel::all_threads() };
    yields::prefit(&Problem::new(model, &mut CpuLikelihood::new(model), options), request)
}

/// Returns groups of the first two samples, of every other sample, and of all of them.
fn groups(model: &Model) -> Vec<SampleGroup> {
    let n = model.samples.len();
    let group = |name: &str, samples: Vec<usize>| SampleGroup { name: name.to_owned(), samples };
    vec![
        group("first", (0..n.min(2)).collect()),
        group("odd", (0..n).step_by(2).collect()),
        group("all", (0..n).collect()),
    ]
}

fn fit_and_predict(model: &Model, options: &FitOptions) -> (FitResult, Vec<ChannelPrediction>) {
    let mut likelihood = CpuLikelihood::new(model);
    let result = fit(&mut Problem::new(model, &mut likelihood, options));
    let mut problem = Problem::new(model, &mut likelihood, options);
    let groups = groups(model);
    let request =
        PredictionRequest { model, groups: &groups, propagation: Default::default(), threads: parallel::all_threads() };
    let after = yields::postfit(&mut problem, &result, request);
    (result, after)
}

/// Returns √(j C jᵀ) for the sum of `cells` with a dense covariance C.
fn dense(yields: &[HyperDual], cells: impl Iterator<Item = usize>, covariance: &[f64], n: usize) -> f64 {
    let mut j = vec![0.0; n];
    for cell in cells {
        yields[cell].gradient.iter().zip(&mut j).for_each(|(g, j)| *j += g);
    }
    let product = |i: usize| (0..n).map(|k| covariance[i * n + k] * j[k]).sum::<f64>();
    (0..n).map(|i| j[i] * product(i)).sum::<f64>().max(0.0).sqrt()
}

/// Compares every number of `predictions` with dense algebra with `covariance`.
fn compare(model: &Model, params: &[f64], covariance: &[f64], predictions: &[ChannelPrediction]) {
    let n = model.n_params();
    let reference = cell_yields(model, &HyperDual::variables(params));
    let same = |prediction: &Prediction, templates: &[usize]| {
        let cells = |template: usize| model.part(model.layout.template_cell, template);
        let n_bins = prediction.yields.len();
        for bin in 0..n_bins {
            let summed = || templates.iter().map(|&template| cells(template).start + bin);
            let value: f64 = summed().map(|cell| reference[cell].value).sum();
            assert_close(prediction.yields[bin], value, 1e-12, "yield");
            let exact = dense(&reference, summed(), covariance, n);
            assert_close(prediction.uncertainties[bin].expect("known"), exact, 1e-8, "uncertainty");
        }
        let exact = dense(&reference, templates.iter().copied().flat_map(cells), covariance, n);
        assert_close(prediction.sum_uncertainty.expect("known"), exact, 1e-8, "uncertainty of the sum");
        assert_close(prediction.sum, prediction.yields.iter().sum(), 1e-15, "sum");
    };
    for (channel, predicted) in predictions.iter().enumerate() {
        let templates: Vec<usize> = model.channel_templates(channel).collect();
        same(&predicted.total, &templates);
        for (sample, template) in predicted.samples.iter().zip(&templates) {
            same(&sample.prediction, &[*template]);
        }
        for group in &predicted.groups {
            let place = |name: &String| predicted.samples.iter().position(|s| s.sample == *name).expect("a sample");
            let members: Vec<usize> = group.samples.iter().map(|name| templates[place(name)]).collect();
            same(&group.prediction, &members);
        }
        let all = predicted.groups.last().expect("the group of all samples");
        assert_eq!(all.prediction, predicted.total);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_121), ..ProptestConfig::default() })]

    #[test]
    fn uncertainties_match_the_dense_covariance(seed in any::<u64>()) {
        // At a kink the derivative is the mean of both sides', and that of dual numbers is not.
        let model = random::model(seed, Shape { rules: false, ..Shape::SMALL }, Interpolation::default());
        let options = FitOptions { uncertainties: Uncertainties::Covariance, ..FitOptions::default() };
        let (result, after) = fit_and_predict(&model, &options);
        prop_assume!(result.converged && result.flat_directions.is_empty());
        compare(&model, &result.bestfit, result.covariance.as_ref().expect("was asked for"), &after);

        let before = prefit(&model, &options);
        let n = model.n_params();
        let mut widths = vec![0.0; n * n];
        for pull in pulls(&model, &model.observed, &result, &model.parameters.fixed) {
            widths[pull.index * (n + 1)] = pull.prefit_uncertainty.powi(2);
        }
        compare(&model, &model.parameters.init, &widths, &before);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let model = random::model(
        11,
        Shape {
            channels: 6,
            bins: 10,
            samples: 5,
            systematics: 10,
            oddities: true,
            gentle: false,
            terms: true,
            rules: true,
            yield_rules: false,
        },
        Interpolation::default(),
    );
    let mut likelihood = CpuLikelihood::new(&model);
    let options = FitOptions::default();
    let result = fit(&mut Problem::new(&model, &mut likelihood, &options));
    let mut with = |n: usize| {
        let mut problem = Problem::new(&model, &mut likelihood, &options);
        let groups = groups(&model);
        let threads = n.try_into().expect("not zero");
        yields::postfit(
            &mut problem,
            &result,
            PredictionRequest { model: &model, groups: &groups, propagation: Default::default(), threads },
        )
    };
    assert_eq!(with(1), with(5));
}

#[test]
fn only_undetermined_yields_have_no_uncertainty() {
    // Two samples of one shape, each with a free factor: only their sum is determined.
    let model = one_channel(
        vec![
            sample("first", &[10.0, 20.0], &[("mu", ModifierData::NormFactor)]),
            sample("second", &[10.0, 20.0], &[("k", ModifierData::NormFactor)]),
            sample("third", &[30.0, 30.0], &[("alpha", ModifierData::NormSys { lo: 0.9, hi: 1.1 })]),
        ],
        &[52.0, 68.0],
    );
    let (result, after) = fit_and_predict(&model, &FitOptions::default());
    assert!(result.converged && !result.flat_directions.is_empty());
    let known: Vec<bool> = after[0].samples.iter().map(|s| s.prediction.sum_uncertainty.is_some()).collect();
    assert_eq!(known, [false, false, true]);
    // The same model without the degeneracy: one factor for both.
    let both = one_channel(
        vec![
            sample("both", &[20.0, 40.0], &[("mu", ModifierData::NormFactor)]),
            sample("third", &[30.0, 30.0], &[("alpha", ModifierData::NormSys { lo: 0.9, hi: 1.1 })]),
        ],
        &[52.0, 68.0],
    );
    let (_, determined) = fit_and_predict(&both, &FitOptions::default());
    for bin in 0..2 {
        let [flat, sound] = [&after, &determined].map(|p| p[0].total.uncertainties[bin].expect("determined"));
        assert_close(flat, sound, 1e-6, "uncertainty of the total");
    }
}

#[test]
fn a_fit_that_did_not_converge_has_no_uncertainties() {
    // -ln L is convex here, so the Hessian alone would already give uncertainties at the start.
    let model = one_channel(
        vec![
            sample("signal", &[10.0], &[("mu", ModifierData::NormFactor)]),
            sample("background", &[30.0], &[("alpha", ModifierData::NormSys { lo: 0.9, hi: 1.1 })]),
        ],
        &[47.0],
    );
    let minimize = ns_inference::minimize::MinimizeOptions { max_iterations: 0, ..Default::default() };
    let (result, after) = fit_and_predict(&model, &FitOptions { minimize, ..FitOptions::default() });
    assert!(!result.converged && result.uncertainties.iter().all(Option::is_some));
    let is_unknown = |p: &Prediction| p.sum_uncertainty.is_none() && p.uncertainties.iter().all(Option::is_none);
    assert!(is_unknown(&after[0].total) && after[0].samples.iter().all(|s| is_unknown(&s.prediction)));
}

#[test]
fn fixed_parameters_contribute_no_uncertainty() {
    let model = one_channel(
        vec![
            sample("signal", &[10.0], &[("mu", ModifierData::NormFactor)]),
            sample("background", &[30.0], &[("alpha", ModifierData::NormSys { lo: 0.9, hi: 1.1 })]),
        ],
        &[41.0],
    );
    let alpha = model.parameters.index_of("alpha").expect("made above");
    let options = FitOptions { fixed: vec![(alpha, 1.0)], ..FitOptions::default() };
    let (_, after) = fit_and_predict(&model, &options);
    let before = prefit(&model, &options);
    for prediction in [&before, &after] {
        let background = &prediction[0].samples[0].prediction;
        assert_close(background.yields[0], 33.0, 1e-12, "yield at the fixed value");
        assert_eq!(background.uncertainties, [Some(0.0)]);
    }
}

#[test]
fn uncertainties_agree_with_cabinetry() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(folder.join(name)).expect("in the repository")).expect("JSON")
    };
    let (theirs, workspaces) = (read("cabinetry/yields.json"), read("pyhf/cases.json"));
    let cases = theirs["cases"].as_array().expect("cases");
    assert!(cases.len() > 20);
    for case in cases {
        let text = workspaces["cases"][case["case"].as_u64().expect("a number") as usize]["workspace"].to_string();
        let workspace = ns_translate::pyhf::read_workspace(text.as_bytes()).expect("valid");
        let is_kinked = case["setting"] == "code1_code0";
        let interpolation = if is_kinked { Interpolation::KINKED } else { Interpolation::default() };
        let model = compile(&workspace, &CompileOptions { interpolation, ..Default::default() }).expect("valid");
        let options = FitOptions::default();
        let (_, after) = fit_and_predict(&model, &options);
        let before = prefit(&model, &options);
        // cabinetry's variations are 1e-5 of the uncertainties: their error is of first order in
        // that at a kink and of second order elsewhere, with a rounding of 1e-10.
        let tolerance = if is_kinked { 3e-6 } else { 2e-9 };
        compare_with_cabinetry(&before, &case["prefit"], &case["samples"], tolerance);
        compare_with_cabinetry(&after, &case["postfit"], &case["samples"], tolerance);
    }
}

fn compare_with_cabinetry(ours: &[ChannelPrediction], theirs: &Value, samples: &Value, tolerance: f64) {
    let number = |value: &Value| value.as_f64().expect("a number");
    let samples = samples.as_array().expect("names");
    for (c, channel) in ours.iter().enumerate() {
        let samples_with_index = channel.samples.iter().map(|sample| {
            let place = samples.iter().position(|name| *name == sample.sample).expect("the same names");
            (place, &sample.prediction)
        });
        for (s, prediction) in samples_with_index.chain([(samples.len(), &channel.total)]) {
            for (bin, uncertainty) in prediction.uncertainties.iter().enumerate() {
                assert_close(uncertainty.expect("known"), number(&theirs["bins"][c][s][bin]), tolerance, "bin");
            }
            assert_close(prediction.sum_uncertainty.expect("known"), number(&theirs["sums"][c][s]), tolerance, "sum");
        }
    }
}
