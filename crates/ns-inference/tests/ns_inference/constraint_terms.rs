//! Tests constraint terms of every kind: their densities against SciPy, models against ROOT, the
//! auxiliary data of toys against exact distributions, and what pulls and rankings make of them.

use ns_compute::CpuLikelihood;
use ns_core::expected::asimov;
use ns_core::likelihood::nll;
use ns_core::{CompileError, CompileOptions, Constraint, Data, Likelihood, Model, compile};
use ns_inference::normal::upper_tail;
use ns_inference::pulls::{prefit_widths, pulls};
use ns_inference::toys::{AuxTreatment, Ensemble, ToySampler, ToySource};
use ns_inference::{FitOptions, Problem, fit};
use ns_testkit::assert_close;
use ns_translate::pyhf;
use serde_json::{Value, json};
use std::path::Path;

fn reference(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/constraints").join(name);
    serde_json::from_slice(&std::fs::read(path).expect("in the repository")).expect("JSON")
}

fn compiled(document: &Value) -> Result<Model, CompileError> {
    compile(&pyhf::from_value(document).expect("a workspace"), &CompileOptions::default())
}

/// Returns a document in which modifier `x` acts on a background of 50 events in one bin.
fn document(modifier: Value, setting: Value) -> Value {
    let mut setting = setting;
    setting["name"] = json!("x");
    let mut modifier = modifier;
    modifier["name"] = json!("x");
    json!({
        "channels": [{"name": "SR", "samples": [
            {"name": "signal", "data": [10.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "background", "data": [50.0], "modifiers": [modifier]},
        ]}],
        "observations": [{"name": "SR", "data": [60.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": [setting]}}],
        "version": "1.0.0",
    })
}

fn normfactor() -> Value {
    json!({"type": "normfactor", "data": null})
}

fn normsys() -> Value {
    json!({"type": "normsys", "data": {"lo": 0.9, "hi": 1.1}})
}

/// Returns a model with the term on `x`, a normsys if there is a β and a normfactor if not.
fn with_term(term: &Value, beta: &Value, aux: f64) -> Model {
    let mut setting = json!({"constraints": [term], "auxdata": [aux], "bounds": [[-20.0, 20.0]]});
    let modifier = if beta.is_null() { normfactor() } else { normsys() };
    if !beta.is_null() {
        setting["beta"] = beta.clone();
    }
    compiled(&document(modifier, setting)).expect("sound")
}

fn term_of(model: &Model) -> (usize, Constraint) {
    model.constraint_terms().next().expect("x has a term")
}

#[test]
fn densities_are_those_of_scipy() {
    let table = reference("scipy.json");
    let rows = table["rows"].as_array().expect("rows");
    assert!(rows.len() >= 64);
    for row in rows {
        let [aux, theta, expected] = ["aux", "theta", "nll"].map(|key| row[key].as_f64().expect("a number"));
        let (_, term) = term_of(&with_term(&row["term"], &row["beta"], aux));
        assert_close(term.nll(aux, theta), expected, 1e-11, &row.to_string());
    }
}

#[test]
fn derivatives_of_terms_match_finite_differences() {
    let table = reference("scipy.json");
    for row in table["rows"].as_array().expect("rows") {
        let [aux, theta] = ["aux", "theta"].map(|key| row[key].as_f64().expect("a number"));
        let (_, term) = term_of(&with_term(&row["term"], &row["beta"], aux));
        let h = 1e-5;
        let (first, second) = term.derivatives(aux, theta);
        let difference = |f: &dyn Fn(f64) -> f64, x: f64| (f(x + h) - f(x - h)) / (2.0 * h);
        let near = |found: f64, by_difference: f64, what: &str| {
            let scale = found.abs().max(second.abs()).max(1.0);
            assert!((found - by_difference).abs() < 1e-6 * scale, "{what}: {found}, not {by_difference}: {row}");
        };
        near(first, difference(&|x| term.nll(aux, x), theta), "first");
        near(second, difference(&|x| term.derivatives(aux, x).0, theta), "second");
        near(term.derivative_jet(aux, theta).second, difference(&|x| term.derivatives(aux, x).1, theta), "third");
        near(term.datum_weight(aux, theta), -difference(&|a| term.derivatives(a, theta).0, aux), "by the datum");
        let along = |a: f64| term.nll(a, theta) - term.nll(a, theta + 0.1);
        near(term.datum_derivative(aux, theta, theta + 0.1), difference(&along, aux), "difference by the datum");
        let curvature = difference(&|a| 4.0 * term.derivatives(a, theta).1, aux);
        near(term.datum_curvature(aux, theta, 2.0), curvature, "curvature by the datum");
    }
}

#[test]
fn models_of_histfactory_have_the_likelihood_of_root() {
    let table = reference("roofit.json");
    let models = table["models"].as_array().expect("models");
    assert_eq!(models.len(), 3);
    for case in models {
        let model = compiled(&case["workspace"]).expect("sound");
        let mut likelihood = CpuLikelihood::new(&model);
        let mut first = None;
        for row in case["rows"].as_array().expect("rows") {
            let point = row["point"].as_object().expect("by name");
            let mut params = model.parameters.init.clone();
            for (name, value) in point {
                params[model.parameters.index_of(name).unwrap_or_else(|| panic!("`{name}` is a parameter"))] =
                    value.as_f64().expect("a number");
            }
            let values = [2.0 * nll(&model, &model.observed, &params), 2.0 * likelihood.nll(&params)];
            let start = *first.get_or_insert(values);
            for (value, start) in values.into_iter().zip(start) {
                assert_close(value - start, row["twice_nll"].as_f64().expect("a number"), 1e-10, "2 ΔNLL");
            }
        }
    }
}

/// Returns P(a ≤ x) of the auxiliary datum of `term` at θ, for terms whose datum is continuous.
fn distribution(term: Constraint, theta: f64, x: f64) -> f64 {
    let below = |z: f64| 1.0 - upper_tail(z);
    match term {
        Constraint::Gaussian { sigma } => below((x - theta) / sigma),
        // Each half has a weight proportional to its width; a datum below θ is on the side of σ₊.
        Constraint::AsymmetricGaussian { sigma_lo, sigma_hi } => {
            let total = sigma_lo + sigma_hi;
            if x < theta {
                2.0 * sigma_hi / total * below((x - theta) / sigma_hi)
            } else {
                sigma_hi / total + 2.0 * sigma_lo / total * (below((x - theta) / sigma_lo) - 0.5)
            }
        }
        Constraint::LogNormal { sigma, shift, beta } => below(((x / beta.at(theta)).ln() - shift) / sigma),
        Constraint::Poisson { .. } | Constraint::Gamma { .. } => unreachable!("counts are summed"),
    }
}

/// Returns P(a ≤ x) of a Poisson count.
fn count_distribution(mean: f64, x: f64) -> f64 {
    let log_factorial = |k: u32| (1..=k).map(|i| f64::from(i).ln()).sum::<f64>();
    let pmf = |k: u32| (f64::from(k) * mean.ln() - mean - log_factorial(k)).exp();
    if x < 0.0 { 0.0 } else { (0..=x as u32).map(pmf).sum() }
}

#[test]
fn auxiliary_data_of_toys_follow_their_terms() {
    const TOYS: u64 = 20_000;
    let beta = json!({"offset": 1.0, "factor": 0.3});
    let cases = [
        (json!({"type": "gaussian", "sigma": 0.4}), Value::Null, 1.2),
        (json!({"type": "asymmetric_gaussian", "sigma_lo": 0.2, "sigma_hi": 0.6}), Value::Null, 1.2),
        (json!({"type": "lognormal", "kappa": 1.5}), beta.clone(), 0.7),
        (json!({"type": "lognormal", "kappa": 1.5, "density": "parameter"}), beta.clone(), 0.7),
        (json!({"type": "poisson", "tau": 3.0}), Value::Null, 1.2),
        (json!({"type": "gamma", "tau": 3.0}), beta, 0.7),
    ];
    for (description, beta, theta) in cases {
        let model = with_term(&description, &beta, 1.0);
        let (_, term) = term_of(&model);
        let data = thrown(&model, theta, TOYS);
        let center = term.expected_datum().at(theta);
        let is_count = matches!(term, Constraint::Poisson { .. } | Constraint::Gamma { .. });
        let [low, high] = term.datum_interval(center, theta);
        for step in -4..=8 {
            let x = low + (high - low) * f64::from(step) / 4.0;
            let p = match is_count {
                true => count_distribution(center, x),
                false if x <= term.least_datum() => 0.0,
                false => distribution(term, theta, x),
            };
            let found = data.iter().filter(|&&a| a <= x).count();
            let (expected, deviation) = (TOYS as f64 * p, (TOYS as f64 * p * (1.0 - p)).sqrt());
            // Four standard deviations, for about 80 numbers of one seed.
            assert!(
                (found as f64 - expected).abs() <= 4.0 * deviation + 1e-6,
                "{description}: {found} below {x}, not {expected}"
            );
        }
    }
}

/// Returns the auxiliary data of toys at x = `theta`.
fn thrown(model: &Model, theta: f64, n_toys: u64) -> Vec<f64> {
    let mut params = model.parameters.init.clone();
    params[term_of(model).0] = theta;
    let source = ToySource { seed: 3, ensemble: Ensemble::Fits, aux: AuxTreatment::Fluctuated };
    let sampler = ToySampler::new(model, &model.observed, &params, source).expect("inside the domain");
    let mut toy = Data::default();
    let mut throw = |i: u64| {
        sampler.throw(i, &mut toy);
        toy.aux[0]
    };
    (0..n_toys).map(&mut throw).collect()
}

#[test]
fn a_fit_to_asimov_data_returns_their_point_for_every_term() {
    let table = reference("scipy.json");
    for row in table["rows"].as_array().expect("rows") {
        let theta = row["theta"].as_f64().expect("a number");
        let model = with_term(&row["term"], &row["beta"], row["aux"].as_f64().expect("a number"));
        let (param, _) = term_of(&model);
        // The background cannot be negative.
        if model.parameters.init[param] == 1.0 && theta < 0.1 {
            continue;
        }
        let mut params = model.parameters.init.clone();
        params[param] = theta;
        let mut model = model;
        model.observed = asimov(&model, &params);
        let mut likelihood = CpuLikelihood::new(&model);
        let found = fit(&mut Problem::new(&model, &mut likelihood, &FitOptions::default()));
        assert!(found.converged, "{row}");
        for (found, expected) in found.bestfit.iter().zip(&params) {
            assert_close(*found, *expected, 1e-5, &row.to_string());
        }
    }
}

#[test]
fn widths_and_pulls_are_those_of_the_side() {
    let cases = [
        (json!({"type": "asymmetric_gaussian", "sigma_lo": 0.2, "sigma_hi": 0.6}), 1.0, [0.2, 0.6]),
        (json!({"type": "lognormal", "kappa": 1.5}), 1.0, [1.0 - 1.0 / 1.5, 0.5]),
        (json!({"type": "gamma", "tau": 25.0}), 25.0, [0.2, 0.2]),
    ];
    for (term, aux, widths) in cases {
        let model = with_term(&term, &Value::Null, aux);
        let (param, constraint) = term_of(&model);
        let found = prefit_widths(&model, &model.observed, param).expect("x has a term");
        for (side, sign) in [(0, -1.0), (1, 1.0)] {
            assert_close(found[side], widths[side], 1e-12, "width");
            assert_close(constraint.pull(1.0, 1.0 + sign * widths[side]), sign, 1e-12, "pull");
        }
    }
}

#[test]
fn a_parameter_that_data_say_nothing_of_keeps_its_datum_and_its_width() {
    for (term, aux, width) in [
        (json!({"type": "lognormal", "kappa": 1.5}), 1.0, 1.5_f64.ln()),
        (json!({"type": "gamma", "tau": 25.0}), 25.0, 0.2),
        (json!({"type": "poisson", "tau": 25.0}), 25.0, 0.2),
    ] {
        let model = with_term(&term, &Value::Null, aux);
        let mut likelihood = CpuLikelihood::new(&model);
        let result = fit(&mut Problem::new(&model, &mut likelihood, &FitOptions::default()));
        // μ absorbs the observation.
        let pulls = pulls(&model, &model.observed, &result, &[false; 2]);
        assert_eq!(pulls.len(), 1, "mu has no term");
        assert_close(pulls[0].pull, 0.0, 1e-4, "pull");
        assert_close(pulls[0].prefit_uncertainty, width, 1e-12, "prefit");
        assert_close(pulls[0].constraint.expect("free"), 1.0, 1e-4, "constraint");
    }
}

#[test]
fn flat_terms_free_a_parameter_and_leave_it_no_datum() {
    let model = compiled(&document(normsys(), json!({"constraints": [{"type": "flat"}]}))).expect("sound");
    assert_eq!((model.n_aux(), model.constraint_terms().count()), (0, 0));
    let staterror = json!({"type": "staterror", "data": [5.0]});
    let model = compiled(&document(staterror, json!({"constraints": [{"type": "flat"}]}))).expect("sound");
    assert_eq!((model.n_aux(), model.parameters.fixed.as_slice()), (0, [false, false].as_slice()));
}

#[test]
fn bins_below_the_threshold_are_fixed_without_a_term() {
    let staterror = |error: f64| json!({"type": "staterror", "data": [error]});
    let setting = json!({"per_bin": {"constraint": "poisson", "relative_threshold": 0.05}});
    let model = compiled(&document(staterror(6.25), setting.clone())).expect("sound");
    let (param, term) = term_of(&model);
    assert_eq!((term, model.observed.aux.as_slice()), (Constraint::Poisson { tau: 64.0 }, [64.0].as_slice()));
    assert!(!model.parameters.fixed[param]);
    // ROOT compares with `<`: a bin exactly at the threshold keeps its parameter.
    assert_eq!(compiled(&document(staterror(2.5), setting.clone())).expect("sound").n_aux(), 1);
    let model = compiled(&document(staterror(2.0), setting)).expect("sound");
    assert_eq!((model.n_aux(), model.parameters.fixed.as_slice()), (0, [false, true].as_slice()));
    let shapesys = json!({"type": "shapesys", "data": [6.25]});
    let model = compiled(&document(shapesys, json!({"per_bin": {"constraint": "gaussian"}}))).expect("sound");
    assert_eq!((term_of(&model).1, model.observed.aux[0]), (Constraint::Gaussian { sigma: 0.125 }, 1.0));
}

#[test]
fn impossible_terms_are_refused_with_their_place() {
    let at = "/measurements/0/config/parameters/0";
    let refused = |modifier: Value, setting: Value, place: &str| {
        let error = compiled(&document(modifier, setting)).expect_err(place);
        let text = error.to_string();
        assert!(text.starts_with(&format!("{at}{place}:")), "{text} is not at {place}");
        text
    };
    let terms = |term: Value| json!({"constraints": [term]});
    refused(normfactor(), terms(json!({"type": "gaussian", "sigma": 0.0})), "/constraints/0/sigma");
    refused(normfactor(), terms(json!({"type": "poisson", "tau": -1.0})), "/constraints/0/tau");
    refused(normfactor(), terms(json!({"type": "lognormal", "kappa": 1.0})), "/constraints/0/kappa");
    // A normsys is 0 at nominal, which a log-normal datum cannot be.
    refused(normsys(), terms(json!({"type": "lognormal", "kappa": 1.1})), "/constraints/0");
    let flat = json!({"type": "flat"});
    let text = refused(normfactor(), json!({"constraints": [flat, flat]}), "/constraints");
    assert!(text.contains("2 values"), "{text}");
    refused(normfactor(), json!({"per_bin": {"constraint": "poisson"}}), "/per_bin");
    refused(normsys(), json!({"beta": {"offset": 1.0, "factor": 0.1}}), "/beta");
    let gamma = json!({"type": "gamma", "tau": 4.0});
    refused(normsys(), json!({"constraints": [gamma], "beta": {"offset": 1.0, "factor": -0.1}}), "/beta/factor");
    let staterror = json!({"type": "staterror", "data": [5.0]});
    refused(staterror, json!({"constraints": [flat], "sigmas": [0.1]}), "/constraints");
    refused(normfactor(), json!({"constraints": [gamma], "auxdata": [-1.0]}), "/auxdata/0");
}
