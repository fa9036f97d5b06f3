//! Newton steps against a dense solve on the CPU, and variances against its Hessian.

use crate::devices::models::{data_sets, edge_models, points, random_model, toys};
use crate::devices::{Expansion, TestDevice, cholesky, devices, difference, expansion, length};
use ns_compute::CpuLikelihood;
use ns_core::batch::{BatchData, BatchFixed, BatchTask};
use ns_core::{Data, Model};
use ns_inference::FitOptions;
use ns_inference::hessian::Hessian;
use ns_inference::options::domain_and_start;
use ns_testkit::random::Random;

fn solve(factor: &[f64], rhs: &[f64]) -> Vec<f64> {
    let m = rhs.len();
    let mut x = rhs.to_vec();
    for i in 0..m {
        let sum: f64 = (0..i).map(|k| factor[i * m + k] * x[k]).sum();
        x[i] = (x[i] - sum) / factor[i * m + i];
    }
    for i in (0..m).rev() {
        let sum: f64 = (i + 1..m).map(|k| factor[k * m + i] * x[k]).sum();
        x[i] = (x[i] - sum) / factor[i * m + i];
    }
    x
}

#[derive(Debug, Default)]
struct Found {
    compared: usize,
    indefinite: usize,
    worst: f64,
}

fn compare(tested: &TestDevice, model: &Model, exact: bool, random: &mut Random, found: &mut Found) {
    const N: usize = 9;
    let n_params = model.n_params();
    let points = tested.all_rounded(&points(model, random, N));
    let each: Vec<Data> = data_sets(model, random, N);
    let fixed: Vec<bool> =
        (0..N * n_params).map(|i| model.parameters.fixed[i % n_params] || random.one_in(6)).collect();
    let (lower, upper) = (&model.parameters.lower, &model.parameters.upper);
    let task = BatchTask {
        data: BatchData::Each(&each),
        starts: &points,
        lower,
        upper,
        fixed: BatchFixed::Each(&fixed),
        kinked: &[],
        variance_of: None,
    };
    let steps = tested.session(model).newton_steps(&task, exact).expect("the device computes");
    let mut likelihood = CpuLikelihood::new(model);
    for (i, point) in points.chunks(n_params).enumerate() {
        let data = Data { main: tested.all_rounded(&each[i].main), aux: tested.all_rounded(&each[i].aux) };
        let Expansion { value, gradient, matrix } = expansion(&mut likelihood, &data, point, exact);
        let step = &steps[i * n_params..(i + 1) * n_params];
        let is_free = |p: usize| {
            let leads_out = (point[p] <= lower[p] && gradient[p] > 0.0) || (point[p] >= upper[p] && gradient[p] < 0.0);
            !fixed[i * n_params + p] && !leads_out
        };
        let free: Vec<usize> = (0..n_params).filter(|&p| is_free(p)).collect();
        if !value.is_finite() {
            assert!(step.iter().all(|x| x.is_nan()), "outside the domain");
            continue;
        }
        let most = if tested.is_single() { 1e2 } else { 1e6 };
        match cholesky(&matrix, &free, n_params) {
            None => {
                found.indefinite += 1;
                // Singular to rounding may look either way, and then there is nothing to compare.
            }
            Some((_, condition)) if condition > most => {}
            Some((factor, condition)) => {
                let solution = solve(&factor, &free.iter().map(|&p| -gradient[p]).collect::<Vec<f64>>());
                let mut expected = vec![0.0; n_params];
                free.iter().zip(solution).for_each(|(&p, x)| expected[p] = x);
                let off = length(&matrix, &difference(step, &expected)) / length(&matrix, &expected).max(1.0);
                let has_step = !step.iter().any(|x| x.is_nan());
                assert!(
                    has_step,
                    "a positive definite matrix of condition {condition:e} has a step: at {point:?} of {:?}, {matrix:?}",
                    model.parameters.names
                );
                assert!(off <= tested.parity.newton_step, "{off:e}: {step:?} is not {expected:?}");
                (0..n_params).filter(|p| !free.contains(p)).for_each(|p| assert_eq!(step[p], 0.0, "tested"));
                found.worst = found.worst.max(off / tested.parity.newton_step);
                found.compared += 1;
            }
        }
    }
}

#[test]
fn newton_steps_are_those_of_a_dense_solve() {
    for tested in devices() {
        for exact in [false, true] {
            let mut found = Found::default();
            for seed in 0..60 {
                compare(&tested, &random_model(seed), exact, &mut Random::new(seed), &mut found);
            }
            for (what, model) in edge_models() {
                println!("{what}");
                compare(&tested, &model, exact, &mut Random::new(5), &mut found);
            }
            println!("{}, exact: {exact}: {found:?}", tested.device.precision());
            assert!(found.compared > if exact { 60 } else { 200 }, "{found:?}");
        }
    }
}

#[test]
fn a_matrix_that_is_clearly_indefinite_has_no_step() {
    // Far out, where the exact Hessian of a product of factors is indefinite: the determinant of a
    // 2 x 2 block is negative.
    let (_, model) =
        edge_models().into_iter().find(|(what, _)| *what == "one parameter in several factors").expect("there");
    for tested in devices() {
        let (mut n_nan, mut random) = (0, Random::new(11));
        for _ in 0..200 {
            let point: Vec<f64> = (0..model.n_params()).map(|_| tested.rounded(random.between(0.01, 3.0))).collect();
            let fixed = vec![false; point.len()];
            let (lower, upper) = (&vec![-1e9; point.len()], &vec![1e9; point.len()]);
            let task = BatchTask {
                data: BatchData::Shared(&model.observed),
                starts: &point,
                lower,
                upper,
                fixed: BatchFixed::Shared(&fixed),
                kinked: &[],
                variance_of: None,
            };
            let step = tested.session(&model).newton_steps(&task, true).expect("the device computes");
            let cpu = expansion(&mut CpuLikelihood::new(&model), &model.observed, &point, true);
            let all: Vec<usize> = (0..point.len()).collect();
            match cholesky(&cpu.matrix, &all, point.len()) {
                None => {
                    assert!(step.iter().all(|x| x.is_nan()), "{step:?} at {point:?}");
                    n_nan += 1;
                }
                Some((_, condition)) => assert!(condition > 1e2 || step.iter().all(|x| x.is_finite())),
            }
        }
        assert!(n_nan > 20, "{n_nan} indefinite ones");
    }
}

#[test]
fn variances_are_those_of_the_cpus_hessian() {
    for tested in devices() {
        let (mut n_compared, mut worst) = (0, 0.0_f64);
        for seed in 0..60 {
            let model = random_model(seed);
            let mut random = Random::new(seed);
            let each = toys(&model, &mut random, 6);
            let (domain, start) = domain_and_start(&model, &FitOptions::default());
            let param = random.below(model.n_params());
            let (starts, (lower, upper)) = (start.repeat(each.len()), (&domain.lower, &domain.upper));
            let task = BatchTask {
                data: BatchData::Each(&each),
                starts: &starts,
                lower,
                upper,
                fixed: BatchFixed::Shared(&domain.fixed),
                kinked: &domain.kinked,
                variance_of: Some(param),
            };
            let device_fits = tested.session(&model).fit(&task).expect("the device computes");
            for (device_fit, data) in device_fits.iter().zip(&each) {
                let mut likelihood = CpuLikelihood::new(&model);
                ns_core::DataLikelihood::set_data(&mut likelihood, data);
                let hessian = Hessian::at(&mut likelihood, &device_fit.params, &domain);
                let is_edge = (0..start.len()).any(|p| {
                    domain.bound_at(p, device_fit.params[p]).is_some()
                        || (device_fit.params[p].abs() < 1e-3 && domain.kinked.get(p) == Some(&true))
                });
                let all: Vec<usize> = (0..start.len()).collect();
                let matrix = expansion(&mut likelihood, data, &device_fit.params, true).matrix;
                let is_sound = cholesky(&matrix, &all, all.len())
                    .is_some_and(|(_, condition)| condition < if tested.is_single() { 1e2 } else { 1e6 });
                if !device_fit.converged {
                    assert_eq!(device_fit.variance, None, "no variance elsewhere");
                } else if !is_edge && is_sound && hessian.is_positive_definite() {
                    let expected = hessian.variance(param);
                    let found = device_fit.variance.expect("there is one");
                    let off = (found - expected).abs() / expected / tested.parity.variance;
                    assert!(off <= 1.0, "seed {seed}: {found} is not {expected}");
                    (n_compared, worst) = (n_compared + 1, worst.max(off));
                }
            }
        }
        println!("{}: {n_compared} variances, worst {worst} of what is allowed", tested.device.precision());
        assert!(n_compared > 50);
    }
}
