//! Models with formulas and morphing: every CPU evaluator against the reference implementation, and
//! a formula that is a parameter against a normfactor.

use ns_compute::{BatchDataSet, BatchDataSets, CpuBatch, CpuLikelihood};
use ns_core::curvature::{Arrowhead, Curvature, GaussNewton};
use ns_core::likelihood::nll_hyperdual;
use ns_core::spec::{ModifierData, Workspace};
use ns_core::{CompileOptions, Likelihood, Model, SearchLikelihood, compile, expected};
use ns_testkit::formulas::{formula, random_workspace};
use ns_testkit::random::{self, Random, Shape};
use ns_testkit::{assert_all_close, assert_close};

const SEEDS: std::ops::Range<u64> = 0..60;

fn model(workspace: &Workspace) -> Model {
    compile(workspace, &CompileOptions::default()).expect("a sound workspace")
}

fn exact(likelihood: &mut CpuLikelihood, params: &[f64]) -> (f64, Vec<f64>, Vec<f64>) {
    let mut gradient = vec![f64::NAN; params.len()];
    let mut matrix = Curvature::Exact(Arrowhead::zeros(likelihood.structure().partition));
    let value = likelihood.nll_and_curvature(params, &mut gradient, &mut matrix);
    let Curvature::Exact(matrix) = matrix else { unreachable!() };
    (value, gradient, matrix.to_dense())
}

#[test]
fn value_gradient_and_hessian_match_dual_numbers() {
    for seed in SEEDS {
        let model = model(&random_workspace(seed, Shape::SMALL));
        assert!(!model.derived.is_empty() && model.layout.morphing_param.len + 1 > 0);
        let params = random::point(&model.parameters, &mut Random::new(seed), 1.0);
        let reference = nll_hyperdual(&model, &model.observed, &params);
        let mut likelihood = CpuLikelihood::new(&model);
        let (value, gradient, hessian) = exact(&mut likelihood, &params);
        if !reference.value.is_finite() {
            assert_eq!((value, likelihood.nll(&params)), (f64::INFINITY, f64::INFINITY), "seed {seed}");
            continue;
        }
        assert_close(value, reference.value, 1e-12, "nll with derivatives");
        assert_close(likelihood.nll(&params), reference.value, 1e-12, "nll");
        let largest = |values: &[f64]| values.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        assert_all_close(&gradient, &reference.gradient, 1e-11 * largest(&reference.gradient), "gradient");
        assert_all_close(&hessian, &reference.hessian, 1e-11 * largest(&reference.hessian), "Hessian");
        let mut lambda = vec![0.0; model.n_bins()];
        likelihood.expected_main(&params, &mut lambda);
        assert_all_close(&lambda, &expected::expected_main(&model, &params), 1e-12, "yields");
    }
}

#[test]
fn both_forms_of_the_gauss_newton_matrix_agree() {
    for seed in SEEDS {
        let model = model(&random_workspace(seed, Shape::SMALL));
        let (params, n) = (random::point(&model.parameters, &mut Random::new(seed), 0.5), model.n_params());
        let mut likelihood = CpuLikelihood::new(&model);
        let mut gradient = vec![0.0; n];
        let mut rows = Curvature::GaussNewton(GaussNewton::zeros(model.n_bins(), n));
        let mut product = Curvature::GaussNewtonProduct(Arrowhead::zeros(likelihood.structure().partition));
        if !likelihood.nll_and_curvature(&params, &mut gradient, &mut rows).is_finite() {
            continue;
        }
        likelihood.nll_and_curvature(&params, &mut gradient, &mut product);
        let (Curvature::GaussNewton(rows), Curvature::GaussNewtonProduct(product)) = (rows, product) else {
            unreachable!()
        };
        let mut dense = vec![0.0; n * n];
        for (i, row) in dense.chunks_exact_mut(n).enumerate() {
            row[i] = rows.diagonal[i];
            for (j, entry) in row.iter_mut().enumerate() {
                *entry += rows.rows.chunks_exact(n).map(|r| r[i] * r[j]).sum::<f64>();
            }
        }
        let scale = dense.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        assert_all_close(&dense, &product.to_dense(), 1e-11 * scale, "Gauss-Newton");
    }
}

#[test]
fn moved_parameters_and_batches_agree_with_single_points() {
    for seed in SEEDS {
        let model = model(&random_workspace(seed, Shape::SMALL));
        let params = random::point(&model.parameters, &mut Random::new(seed), 0.5);
        let mut likelihood = CpuLikelihood::new(&model);
        let moves: Vec<(usize, f64)> = (0..params.len()).map(|i| (i, 0.9 * params[i] + 0.05)).collect();
        let mut moved = Vec::new();
        likelihood.nll_and_derivative_moved(&params, &moves, &mut moved);
        let mut points = Vec::new();
        let mut expected = Vec::new();
        for &(i, value) in &moves {
            let mut at = params.clone();
            at[i] = value;
            let mut gradient = vec![0.0; params.len()];
            expected.push((likelihood.nll_and_grad(&at, &mut gradient), gradient));
            points.extend(at);
        }
        let mut batch = CpuBatch::new(likelihood.plan().clone());
        let data = BatchDataSet::new(batch.plan(), model.observed.clone());
        let (mut nll, mut gradients) = (vec![0.0; moves.len()], vec![0.0; points.len()]);
        batch.nll_and_grad(BatchDataSets::Shared(&data), &points, &mut nll, &mut gradients);
        for (k, (value, gradient)) in expected.iter().enumerate() {
            let scale = gradient.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
            assert_close(moved[k][0], *value, 1e-11, "moved");
            assert_close(moved[k][1], gradient[moves[k].0], 1e-10 * scale, "derivative after the move");
            assert_close(nll[k], *value, 1e-11, "batch");
            assert_all_close(&gradients[k * params.len()..][..params.len()], gradient, 1e-10 * scale, "batch gradient");
        }
    }
}

#[test]
fn the_formula_mu_equals_the_normfactor_mu_bit_for_bit() {
    for seed in SEEDS {
        let normfactor = random::workspace(seed, Shape::SMALL);
        let mut with_formula = normfactor.clone();
        for sample in with_formula.channels.iter_mut().flat_map(|channel| &mut channel.samples) {
            for modifier in &mut sample.modifiers {
                if modifier.name == "mu" && modifier.data == ModifierData::NormFactor {
                    *modifier = formula("scale", "mu");
                }
            }
        }
        let (a, b) = (model(&normfactor), model(&with_formula));
        assert_eq!((&a.parameters.names, &a.parameters.init), (&b.parameters.names, &b.parameters.init));
        assert!(b.derived.is_empty());
        let params = random::point(&a.parameters, &mut Random::new(seed), 1.0);
        let found = [&a, &b].map(|model| exact(&mut CpuLikelihood::new(model), &params));
        assert_eq!(found[0], found[1], "seed {seed}");
    }
}

#[test]
fn a_point_outside_the_domain_of_a_formula_is_infinite() {
    let mut workspace = random::workspace(1, Shape::SMALL);
    workspace.channels[0].samples[0].modifiers.push(formula("f", "log(mu - 1)"));
    let model = model(&workspace);
    let mut params = model.parameters.init.clone();
    params[model.pois[0]] = 0.5;
    let mut likelihood = CpuLikelihood::new(&model);
    let (value, gradient, _) = exact(&mut likelihood, &params);
    assert_eq!((value, likelihood.nll(&params)), (f64::INFINITY, f64::INFINITY));
    assert!(gradient.iter().all(|g| *g == 0.0));
}

#[test]
fn where_a_derivative_is_infinite_every_evaluation_is() {
    for (text, place) in [
        ("sqrt(c1)", 0.0),
        ("c1^0.5", 0.0),
        ("c1^1.5", 0.0),
        ("sqrt(c1^2)", 0.0),
        ("acos(1 - c1)", 0.0),
        ("(1 - c1)^c1", 1.0),
        ("atan2(c1, c1)", 0.0),
    ] {
        let mut workspace = random_workspace(1, Shape::SMALL);
        workspace.channels[0].samples[0].modifiers.push(formula("steep", &format!("1 + 0.1*{text}")));
        let model = model(&workspace);
        let c1 = model.parameters.index_of("c1").expect("a parameter");
        let mut params = model.parameters.init.clone();
        for (value, is_finite) in [(place, false), (0.25, true)] {
            params[c1] = value;
            let mut likelihood = CpuLikelihood::new(&model);
            let mut gradient = vec![0.0; params.len()];
            let values = [
                likelihood.nll(&params),
                likelihood.nll_and_grad(&params, &mut gradient),
                exact(&mut likelihood, &params).0,
            ];
            assert_eq!(values.map(f64::is_finite), [is_finite; 3], "{text} at {value}");
        }
    }
}
