//! Models with rules of yields against pyhf and against formulas in NumPy
//! (testdata/yield_rules/generate.py), and what procedures make of them.

use ns_compute::CpuLikelihood;
use ns_core::expected::expected_main;
use ns_core::likelihood::nll;
use ns_core::sensitivity::{DerivativeColumns, SumDerivatives, complete_sum, derivatives};
use ns_core::spec::{ModifierData, Sample};
use ns_core::{CompileOptions, DataLikelihood, Likelihood, Model, compile};
use ns_inference::toys::{AuxTreatment, Ensemble, ToySampler, ToySource};
use ns_inference::{FitOptions, FitResult, Problem, fit};
use ns_testkit::assert_close;
use ns_testkit::random::{self, Random, Shape};
use ns_testkit::small::{one_channel, sample};
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

/// Combine's lowest content of a bin.
const LOWEST: f64 = 1e-9;

fn shift(lo: &[f64], hi: &[f64]) -> ModifierData {
    ModifierData::HistoSys { lo_data: lo.to_vec(), hi_data: hi.to_vec() }
}

fn clipped(mut sample: Sample) -> Sample {
    sample.template.clip = Some(LOWEST);
    sample
}

fn fitted(model: &Model, options: &FitOptions) -> FitResult {
    fit(&mut Problem::new(model, &mut CpuLikelihood::new(model), options))
}

/// Checks that a fit has converged in few steps to -ln L above `constant`, where `values` are.
fn check_minimum(model: &Model, values: &[(&str, f64)], above: f64) {
    let result = fitted(model, &FitOptions::default());
    assert!(result.converged && result.projected_gradient < 1e-9, "{result:?}");
    assert!(result.n_evaluations < 60, "{} evaluations", result.n_evaluations);
    for (name, value) in values {
        let index = model.parameters.index_of(name).expect("a parameter");
        assert_close(result.bestfit[index], *value, 1e-7, name);
    }
    let at_start = nll(model, &model.observed, &model.parameters.init);
    assert_close(result.nll - at_start, above, 1e-9, "-ln L");
}

#[test]
fn a_minimum_where_a_template_is_cut_off_is_found_in_few_steps() {
    // Nothing is seen in the second bin, where 3 (1 + a) are expected: a gains by falling to -1,
    // and no more beyond.
    let b = clipped(sample("b", &[10.0, 3.0], &[("a", shift(&[10.0, 0.0], &[10.0, 6.0]))]));
    let s = sample("s", &[1.0, 0.0], &[("mu", ModifierData::NormFactor)]);
    check_minimum(&one_channel(vec![b, s], &[11.0, 0.0]), &[("a", -1.0), ("mu", 1.0)], 0.5 - 3.0);
}

#[test]
fn a_minimum_on_a_surface_of_two_parameters_is_found() {
    // 3 + 3 a + 1.5 c vanish nearest to zero at a = -0.8 and c = -0.4.
    let shifts = [("a", shift(&[10.0, 0.0], &[10.0, 6.0])), ("c", shift(&[10.0, 1.5], &[10.0, 4.5]))];
    let b = clipped(sample("b", &[10.0, 3.0], &shifts));
    let s = sample("s", &[1.0, 0.0], &[("mu", ModifierData::NormFactor)]);
    let expected = [("a", -0.8), ("c", -0.4), ("mu", 1.0)];
    check_minimum(&one_channel(vec![b, s], &[11.0, 0.0]), &expected, 0.4 - 3.0);
}

#[test]
fn a_minimum_where_a_sum_is_cut_off_is_found() {
    // λ = 2 + 4 ν ends at ν = -½, at less cost than the two events.
    let b = sample("b", &[10.0, 2.0], &[("stat", ModifierData::McStat(vec![0.0, 4.0]))]);
    let s = sample("s", &[1.0, 0.0], &[("mu", ModifierData::NormFactor)]);
    let mut model = one_channel(vec![b, s], &[11.0, 0.0]);
    model.rules.clip_bins = Some(LOWEST);
    let nu = model.parameters.names.iter().find(|name| name.ends_with("bin1")).expect("of the second bin").clone();
    check_minimum(&model, &[(&nu, -0.5), ("mu", 1.0)], 0.125 - 2.0);
}

#[test]
fn a_kink_beyond_the_minimum_does_not_hold_it() {
    // With a derivative of ½ the minimum is at a = -½, above the kink.
    let b = clipped(sample("b", &[10.0, 0.5], &[("a", shift(&[10.0, 0.0], &[10.0, 1.0]))]));
    let s = sample("s", &[1.0, 0.0], &[("mu", ModifierData::NormFactor)]);
    check_minimum(&one_channel(vec![b, s], &[11.0, 0.0]), &[("a", -0.5), ("mu", 1.0)], -0.125);
}

#[test]
fn no_point_near_a_minimum_of_normalised_templates_is_lower() {
    let mut n_kinked = 0;
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let nominal: Vec<f64> = (0..6).map(|_| random.between(0.5, 4.0)).collect();
        // One parameter for each bin, which takes away all of it at -1, and one for all.
        let of_bin = |bin: usize| -> (String, ModifierData) {
            let (mut lo, mut hi) = (nominal.clone(), nominal.clone());
            (lo[bin], hi[bin]) = (0.0, 2.0 * nominal[bin]);
            (format!("bin_{bin}"), shift(&lo, &hi))
        };
        let mut shifts: Vec<(String, ModifierData)> = (0..6).map(of_bin).collect();
        let tilt = |sign: f64| -> Vec<f64> {
            (0..6).map(|bin| nominal[bin] * (1.0 + sign * 0.06 * (bin as f64 - 2.5))).collect()
        };
        shifts.push(("tilt".to_owned(), shift(&tilt(-1.0), &tilt(1.0))));
        let shifts: Vec<(&str, ModifierData)> =
            shifts.iter().map(|(name, data)| (name.as_str(), data.clone())).collect();
        let mut b = clipped(sample("b", &nominal, &shifts));
        b.template.normalize = true;
        let s = sample("s", &[0.1, 0.1, 0.1, 0.1, 0.1, 3.0], &[("mu", ModifierData::NormFactor)]);
        let observed: Vec<f64> = (0..6).map(|bin| if bin % 2 == 0 { 0.0 } else { random.below(5) as f64 }).collect();
        let model = one_channel(vec![b, s], &observed);
        let mut likelihood = CpuLikelihood::new(&model);
        let result = fitted(&model, &FitOptions::default());
        assert!(result.converged, "seed {seed}: {:?}", result.warnings);
        let value = |name: &str| result.bestfit[model.parameters.index_of(name).expect("a parameter")];
        let rest = |bin: usize| 1.0 + value(&format!("bin_{bin}")) + 0.06 * value("tilt") * (bin as f64 - 2.5);
        n_kinked += usize::from((0..6).any(|bin| rest(bin).abs() < 1e-6));
        for k in 0..400 {
            let size = 0.1_f64.powi(k % 6);
            let beside: Vec<f64> = result.bestfit.iter().map(|x| x + size * random.between(-0.5, 0.5)).collect();
            let inside = beside.iter().zip(&model.parameters.lower).all(|(x, lower)| x >= lower);
            let value = likelihood.nll(&beside);
            assert!(!inside || value >= result.nll - 1e-12, "seed {seed}: {value} is below {}", result.nll);
        }
    }
    assert!(n_kinked > 10, "{n_kinked} minima on kinks");
}
