//! The example with formulas and morphing against an independent likelihood in SciPy, and the
//! procedures on models with formulas against the same models without.

use ns_compute::CpuLikelihood;
use ns_core::likelihood::nll;
use ns_core::spec::{ConstraintTerm, ModifierData, Workspace};
use ns_core::{CompileOptions, Likelihood, Model, compile, expected};
use ns_inference::hypotest::hypotest;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::{FitOptions, FitResult, Problem, fit};
use ns_testkit::assert_close;
use ns_testkit::formulas::{declared, formula, morphing};
use ns_testkit::random::{self, Shape};
use ns_testkit::small::{self, region, sample};
use serde_json::Value;

fn read(path: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).expect("a file of the repository")
}

fn example() -> Model {
    let workspace = ns_translate::pyhf::read_workspace(&read("examples/eft.json")).expect("a workspace");
    compile(&workspace, &CompileOptions::default()).expect("a sound workspace")
}

/// Returns the numbers of SciPy.
fn reference() -> Value {
    serde_json::from_slice(&read("testdata/formulas/eft.json")).expect("JSON")
}

/// Returns a point of the reference in the order of `model`.
fn point(model: &Model, reference: &Value, point: &Value) -> Vec<f64> {
    let names = reference["parameters"].as_array().unwrap();
    let value = |name: &String| {
        let place = names.iter().position(|known| known.as_str() == Some(name)).expect("a parameter of the reference");
        point[place].as_f64().unwrap()
    };
    model.parameters.names.iter().map(value).collect()
}

fn fitted(model: &Model) -> FitResult {
    fit(&mut Problem::new(model, &mut CpuLikelihood::new(model), &FitOptions::default()))
}

#[test]
fn the_likelihood_of_the_example_is_scipys() {
    let (model, reference) = (example(), reference());
    let mut likelihood = CpuLikelihood::new(&model);
    for row in reference["points"].as_array().unwrap() {
        let (params, expected) = (point(&model, &reference, &row["point"]), row["twice_nll"].as_f64().unwrap());
        assert_close(2.0 * likelihood.nll(&params), expected, 1e-12, "evaluator");
        assert_close(2.0 * nll(&model, &model.observed, &params), expected, 1e-12, "reference implementation");
    }
}

#[test]
fn the_fit_of_the_example_finds_every_minimum_that_scipy_finds() {
    let (model, reference) = (example(), reference());
    let result = fitted(&model);
    let minima = reference["minima"].as_array().unwrap();
    assert!(result.converged);
    // Nelder-Mead ends within 1e-9 of a minimum, and never below it.
    assert_close(result.twice_nll, minima[0]["twice_nll"].as_f64().unwrap(), 1e-9, "the lowest minimum");
    for minimum in minima {
        let depth = minimum["twice_nll"].as_f64().unwrap() - result.twice_nll;
        let is_found = result.minima.iter().any(|found| (found.depth - depth).abs() < 1e-6);
        assert!(is_found, "no minimum is {depth} above the lowest: {:?}", result.minima);
    }
}

/// Returns a random workspace, and the same with `mu` as a formula.
fn with_and_without(seed: u64, text: &str) -> [Workspace; 2] {
    let normfactor = random::workspace(seed, Shape::SMALL);
    let mut workspace = normfactor.clone();
    for sample in workspace.channels.iter_mut().flat_map(|channel| &mut channel.samples) {
        for modifier in &mut sample.modifiers {
            if modifier.data == ModifierData::NormFactor && modifier.name == "mu" {
                *modifier = formula("rate", text);
            }
        }
    }
    [normfactor, workspace]
}

#[test]
fn a_fit_with_the_formula_mu_is_that_of_a_normfactor_bit_for_bit() {
    for seed in 0..20 {
        let results = with_and_without(seed, "mu").map(|workspace| {
            let model = compile(&workspace, &CompileOptions::default()).expect("a sound workspace");
            let result = fitted(&model);
            (result.bestfit, result.twice_nll.to_bits(), result.uncertainties)
        });
        assert_eq!(results[0], results[1], "seed {seed}");
    }
}

#[test]
fn a_linear_formula_is_fitted_like_a_normfactor() {
    for seed in 0..20 {
        // 2μ - μ is computed by a tape.
        let [a, b] = with_and_without(seed, "2*mu - mu").map(|workspace| {
            let model = compile(&workspace, &CompileOptions::default()).expect("a sound workspace");
            let result = fitted(&model);
            (model.derived.len(), result)
        });
        assert_eq!((a.0, b.0), (0, 1));
        assert_close(b.1.twice_nll, a.1.twice_nll, 1e-11, "2·(-ln L)");
        for (x, y) in a.1.uncertainties.iter().zip(&b.1.uncertainties) {
            assert_eq!(x.is_some(), y.is_some(), "seed {seed}");
            assert_close(y.unwrap_or(0.0), x.unwrap_or(0.0), 1e-6, "uncertainty");
        }
    }
}

#[test]
fn derivatives_of_yields_are_those_of_finite_differences() {
    let model = example();
    let params: Vec<f64> = model.parameters.init.iter().enumerate().map(|(i, x)| x + 0.1 * (i as f64 - 2.0)).collect();
    let step = 1e-6;
    for template in 0..model.n_templates() {
        use ns_core::sensitivity::{DerivativeColumns, derivatives};
        let columns = DerivativeColumns::of(&model, template..template + 1);
        let cells = model.part(model.layout.template_cell, template);
        let (mut yields, mut out) = (vec![0.0; cells.len()], vec![0.0; cells.len() * columns.len()]);
        derivatives(&model, template, &params, &columns, &mut yields, &mut out);
        assert_eq!(yields, expected::cell_yields(&model, &params)[cells.clone()]);
        for (column, rows) in out.chunks_exact(cells.len()).enumerate() {
            let moved = |sign: f64| {
                let mut at = params.clone();
                at[columns.param(column, 0)] += sign * step;
                expected::cell_yields(&model, &at)[cells.clone()].to_vec()
            };
            let (up, down) = (moved(1.0), moved(-1.0));
            for (bin, derivative) in rows.iter().enumerate() {
                let difference = (up[bin] - down[bin]) / (2.0 * step);
                assert_close(*derivative, difference, 1e-6, "derivative of a yield");
            }
        }
    }
}

/// Returns a model of two bins whose background has a morphing term with this coefficient of `c`.
fn with_coefficient(text: &str, init: f64, bounds: [f64; 2]) -> Model {
    let mut background = sample("background", &[50.0, 40.0], &[]);
    background.modifiers.push(morphing("shape", vec![(text, vec![-5.0, -3.0])]));
    let signal = sample("signal", &[10.0, 5.0], &[("mu", ModifierData::NormFactor)]);
    let mut c = declared("c", init, bounds);
    c.auxdata = Some(vec![0.0]);
    c.constraints = Some(vec![ConstraintTerm::Gaussian { sigma: 0.5 }]);
    let regions = vec![region("SR", vec![signal, background], &[52.0, 41.0])];
    small::model(regions, vec![c])
}

/// Compares the fit and a test of `model` with those of `known`, which has the same minima and
/// finite derivatives there, where they converged.
fn assert_same_or_failed(model: &Model, known: &Model) {
    let [found, wanted] = [model, known].map(fitted);
    assert!(wanted.converged, "{:?}", wanted.warnings);
    assert!(!found.converged || (found.nll - wanted.nll).abs() < 1e-4, "{} and {}", found.nll, wanted.nll);
    let options = FitOptions::default();
    let [found, wanted] = [model, known].map(|model| {
        let mut likelihood = CpuLikelihood::new(model);
        let mut problem = Problem::new(model, &mut likelihood, &options);
        hypotest(&mut problem, TestStatistic::QTilde, model.pois[0], 1.0)
    });
    if found.converged {
        let [found, wanted] = [found, wanted].map(|test| (test.cls_obs.expect("CLs"), test.cls_exp.expect("CLs")[2]));
        assert_close(found.0, wanted.0, 1e-3, "CLs");
        assert_close(found.1, wanted.1, 1e-3, "expected CLs");
    }
}

#[test]
fn where_a_derivative_is_infinite_fits_end_in_the_minimum_or_fail() {
    let all = [-3.0, 3.0];
    assert_same_or_failed(&with_coefficient("sqrt(c^2)", 0.0, all), &with_coefficient("abs(c)", 0.0, all));
    let positive = [0.0, 3.0];
    assert_same_or_failed(&with_coefficient("c^1.5", 0.0, all), &with_coefficient("abs(c)^1.5", 0.1, positive));
    let near = with_coefficient("sqrt(c + 1e-9)", 0.1, positive);
    assert_same_or_failed(&with_coefficient("sqrt(c)", 0.1, positive), &near);
    assert_same_or_failed(&with_coefficient("c^0.5", 0.1, positive), &near);
}
