//! Models with rules of yields against pyhf and against formulas in NumPy
//! (testdata/yield_rules/generate.py), and what procedures make of them.

use ns_compute::CpuLikelihood;
use ns_core::expected::expected_main;
use ns_core::likelihood::nll;
use ns_core::sensitivity::{DerivativeColumns, SumDerivatives, complete_sum, derivatives};
use ns_core::{CompileOptions, DataLikelihood, Likelihood, Model, compile};
use ns_inference::toys::{AuxTreatment, Ensemble, ToySampler, ToySource};
use ns_inference::{FitOptions, Problem, fit};
use ns_testkit::assert_close;
use ns_testkit::random::{self, Random, Shape};
use ns_translate::pyhf;
use serde_json::{Map, Value};
use std::path::Path;

fn cases() -> Map<String, Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/yield_rules/reference.json");
    let table: Value = serde_json::from_slice(&std::fs::read(path).expect("in the repository")).expect("JSON");
    table["cases"].as_object().expect("cases").clone()
}

fn model(case: &Value) -> Model {
    compile(&pyhf::from_value(&case["workspace"]).expect("a workspace"), &CompileOptions::default()).expect("sound")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number")).collect()
}

fn params(model: &Model, point: &Value) -> Vec<f64> {
    let value = |name: &String| point["parameters"][name].as_f64().unwrap_or_else(|| panic!("no `{name}`"));
    model.parameters.names.iter().map(value).collect()
}

#[test]
fn expected_counts_and_likelihoods_are_those_of_pyhf_and_of_the_formulas() {
    for (name, case) in cases() {
        let model = model(&case);
        let mut fast = CpuLikelihood::new(&model);
        let points = case["points"].as_array().expect("points");
        assert!(points.iter().filter(|point| point["nll"].is_number()).count() >= 4, "{name}");
        for point in points {
            let params = params(&model, point);
            let mut lambda = vec![0.0; model.n_bins()];
            fast.expected_main(&params, &mut lambda);
            let reference = expected_main(&model, &params);
            for (bin, expected) in numbers(&point["expected"]).into_iter().enumerate() {
                assert_close(reference[bin], expected, 1e-12, &name);
                assert_close(lambda[bin], expected, 1e-12, &name);
            }
            if let Some(expected) = point["nll"].as_f64() {
                assert_close(nll(&model, &model.observed, &params), expected, 1e-12, &name);
                assert_close(fast.nll(&params), expected, 1e-12, &name);
            }
        }
    }
}

#[test]
fn fits_that_clip_are_as_low_as_those_of_pyhf() {
    for (name, case) in cases() {
        let Some(lowest) = case["lowest_nll"].as_f64() else { continue };
        let model = model(&case);
        let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
        let result = fit(&mut Problem::new(&model, &mut likelihood, &options));
        assert!(result.nll < lowest + 1e-7, "{name}: {} is above {lowest}", result.nll);
    }
}

#[test]
fn parameters_of_statistical_uncertainties_are_local_and_constrained() {
    let model = model(&cases()["morphing"]);
    let structure = CpuLikelihood::new(&model).structure();
    assert_eq!(structure.partition.n_local(), model.n_bins());
    let first = model.parameters.index_of("prop_binSR_bin0").expect("named as in Combine");
    assert_eq!((model.parameters.lower[first], model.parameters.upper[first]), (-7.0, 7.0));
    assert!(model.parameters.constraint[first].is_some());
}

#[test]
fn sums_of_yields_have_the_derivatives_of_expected_counts() {
    for seed in 0..60 {
        let model = random::model(seed, Shape::YIELD_RULES, Default::default());
        let params = random::point(&model.parameters, &mut Random::new(seed), 1.5);
        let reference = expected_main(&model, &ns_core::scalar::HyperDual::variables(&params));
        for channel in 0..model.channels.len() {
            let bins = model.channel_bins(channel);
            let columns = DerivativeColumns::of(&model, model.channel_templates(channel));
            let (mut total, mut rates) = (vec![0.0; bins.len()], vec![0.0; columns.len() * bins.len()]);
            let (mut part, mut part_rates) = (total.clone(), rates.clone());
            for template in model.channel_templates(channel) {
                derivatives(&model, template, &params, &columns, &mut part, &mut part_rates);
                total.iter_mut().zip(&part).for_each(|(sum, y)| *sum += y);
                rates.iter_mut().zip(&part_rates).for_each(|(sum, rate)| *sum += rate);
            }
            let sum = &mut SumDerivatives { total: &mut total, derivatives: &mut rates };
            complete_sum(&model, channel, &params, &columns, sum);
            for (bin, b) in bins.clone().enumerate() {
                assert_close(total[bin], reference[b].value, 1e-12, "sum");
                let mut gradient = vec![0.0; params.len()];
                (0..columns.len()).for_each(|c| gradient[columns.param(c, bin)] += rates[c * bins.len() + bin]);
                for (i, found) in gradient.into_iter().enumerate() {
                    let exact = reference[b].gradient.get(i).copied().unwrap_or(0.0);
                    assert!((found - exact).abs() < 1e-10 * exact.abs().max(1.0), "seed {seed}: {found}, not {exact}");
                }
            }
        }
    }
}

#[test]
fn toys_fluctuate_the_data_of_statistical_uncertainties() {
    let model = model(&cases()["morphing"]);
    let mut params = model.parameters.init.clone();
    let nu = model.parameters.index_of("prop_binSR_bin2").expect("a parameter");
    params[nu] = 0.7;
    let aux = model.parameters.aux_index[nu].expect("constrained");
    let source = ToySource { seed: 1, ensemble: Ensemble::Fits, aux: AuxTreatment::Fluctuated };
    let sampler = ToySampler::new(&model, &model.observed, &params, source).expect("a valid point");
    let n = 4000;
    let mut sums = [0.0; 2];
    let mut data = model.observed.clone();
    for toy in 0..n {
        sampler.throw(toy, &mut data);
        sums[0] += data.aux[aux];
        sums[1] += data.aux[aux] * data.aux[aux];
    }
    let [mean, square] = sums.map(|sum| sum / n as f64);
    // Five standard deviations of the mean and of the variance of a normal distribution around 0.7.
    assert!((mean - 0.7).abs() < 5.0 / (n as f64).sqrt(), "{mean}");
    assert!((square - mean * mean - 1.0).abs() < 5.0 * (2.0 / n as f64).sqrt(), "{square}");
    let mut likelihood = CpuLikelihood::new(&model);
    likelihood.set_data(&data);
    assert!(likelihood.nll(&params).is_finite());
}
