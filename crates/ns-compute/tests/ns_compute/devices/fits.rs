//! Whole fits against the CPU's minimiser; no fit may report convergence wrongly.

use crate::devices::models::{edge_models, random_model, toys};
use crate::devices::{TestDevice, cholesky, constants, devices, difference, expansion, length};
use ns_compute::CpuLikelihood;
use ns_core::batch::{BatchData, BatchFit, BatchFixed, BatchTask};
use ns_core::{Data, DataLikelihood, Likelihood, Model};
use ns_inference::FitOptions;
use ns_inference::minimize::{Domain, MinimizeOptions, Minimizer, Minimum};
use ns_inference::options::domain_and_start;
use ns_testkit::random::Random;
use std::time::Instant;

/// Single precision knows minima of matrices with a ratio of pivots, relative to their diagonals,
/// up to this one.
const RESOLVED: f64 = 1e6;

/// What became of the fits.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) fits: usize,
    /// Fits that report no convergence.
    pub(crate) left: usize,
    /// Those of them whose fit on the CPU converges.
    left_alone: usize,
    /// Those in single precision with directions that it cannot tell from flat ones: the CPU has to
    /// go on.
    unresolved: usize,
    /// Those that ended in another, lower minimum than the CPU's.
    lower: usize,
    /// Those that ended in another minimum, higher than the CPU's, from the same start.
    higher: usize,
    /// The largest distances, as parts of what is allowed: 2NLL, parameters, and parameters after
    /// the CPU went on from there.
    worst: [f64; 3],
    iterations: usize,
    /// On the device.
    milliseconds: f64,
    /// Those that led nowhere.
    unreached: usize,
}

pub(crate) fn minimize(likelihood: &mut CpuLikelihood, start: &[f64], domain: &Domain) -> Minimum {
    Minimizer::new(&likelihood.structure()).minimize(likelihood, start, domain, &MinimizeOptions::default())
}

/// Fits of `each` from `start` tested against the CPU's from the same start, and against what the
/// CPU makes of where they ended.
pub(crate) fn compare(
    tested: &TestDevice,
    model: &Model,
    each: &[Data],
    (domain, start): (&Domain, &[f64]),
    tally: &mut Tally,
) {
    let starts = start.repeat(each.len());
    let Domain { lower, upper, fixed, kinked, .. } = domain;
    let (data, fixed) = (BatchData::Each(each), BatchFixed::Shared(fixed));
    let task = BatchTask { data, starts: &starts, lower, upper, fixed, kinked, variance_of: None };
    let mut session = tested.session(model);
    let clock = Instant::now();
    let device_fits = session.fit(&task).expect("the device computes");
    tally.milliseconds += 1e3 * clock.elapsed().as_secs_f64();
    assert_eq!(device_fits.len(), each.len());
    let mut likelihood = CpuLikelihood::new(model);
    for (device_fit, data) in device_fits.iter().zip(each) {
        likelihood.set_data(data);
        let cpu = minimize(&mut likelihood, start, domain);
        tally.fits += 1;
        tally.iterations += device_fit.iterations;
        let constant = constants(model, data);
        compare_one(tested, &mut likelihood, (device_fit, data, constant), domain, &cpu, tally);
    }
}

fn compare_one(
    tested: &TestDevice,
    likelihood: &mut CpuLikelihood,
    (device_fit, data, constant): (&BatchFit, &Data, f64),
    domain: &Domain,
    cpu: &Minimum,
    tally: &mut Tally,
) {
    let inside = |p: usize| {
        let slack = if tested.is_single() {
            1e-6 * domain.lower[p].abs().max(domain.upper[p].abs()).clamp(1.0, 1e9)
        } else {
            0.0
        };
        domain.fixed[p]
            || (device_fit.params[p] >= domain.lower[p] - slack && device_fit.params[p] <= domain.upper[p] + slack)
    };
    assert!((0..device_fit.params.len()).all(inside), "inside the box: {device_fit:?}");
    if !device_fit.converged {
        tally.left += 1;
        tally.left_alone += usize::from(cpu.converged());
        if !device_fit.nll.is_finite() {
            tally.unreached += 1;
        }
        return;
    }
    // What it says of where it is holds there.
    let there = expansion(likelihood, data, &device_fit.params, true);
    let nll_off = (device_fit.nll - there.value).abs();
    // In single precision the part that depends on the data alone is the host's.
    let varying = if tested.is_single() { 1e-3 * (there.value - constant) } else { there.value };
    assert!(nll_off <= tested.parity.nll * varying.abs().max(1.0), "{device_fit:?} has -ln L {}", there.value);
    // A minimum has nothing lower near it: the CPU, started there, stays.
    let polished = minimize(likelihood, &device_fit.params, domain);
    let matrix = expansion(likelihood, data, &polished.params, true).matrix;
    let free: Vec<usize> = (0..domain.lower.len()).filter(|&p| !domain.fixed[p]).collect();
    let n_params = domain.lower.len();
    let condition = cholesky(&matrix, &free, n_params).map_or(f64::INFINITY, |(_, condition)| condition);
    if tested.is_single() && condition > RESOLVED {
        tally.unresolved += 1;
        return;
    }
    let fall = 2.0 * (there.value - polished.nll);
    assert!(
        fall <= tested.parity.twice_nll_of_fit,
        "{fall:e} above the minimum that the CPU reaches from {device_fit:?}"
    );
    tally.worst[0] = tally.worst[0].max(fall / tested.parity.twice_nll_of_fit);
    let moved = length(&matrix, &difference(&device_fit.params, &polished.params));
    assert!(moved <= tested.parity.parameters, "{moved:e} standard deviations from the minimum: {device_fit:?}");
    tally.worst[1] = tally.worst[1].max(moved / tested.parity.parameters);
    if !cpu.converged() {
        return;
    }
    // The CPU's fit from the same start may have found another minimum, as a path may lead to
    // either.
    let above = 2.0 * (polished.nll - cpu.nll);
    if above > tested.parity.twice_nll_of_fit {
        tally.higher += 1;
    } else if above < -tested.parity.twice_nll_of_fit {
        tally.lower += 1;
    } else if condition < 1e6 {
        // Where parameters are degenerate, both ends are right and far apart.
        let off = length(&matrix, &difference(&polished.params, &cpu.params));
        assert!(
            off <= tested.parity.polished_parameters,
            "{off:e} standard deviations between {polished:?} and {cpu:?}, {domain:?}"
        );
        tally.worst[2] = tally.worst[2].max(off / tested.parity.polished_parameters);
    }
}

#[test]
fn fits_of_random_models_end_where_the_cpus_do() {
    for tested in devices() {
        let mut tally = Tally::default();
        for seed in 0..150 {
            let model = random_model(seed);
            let mut each = toys(&model, &mut Random::new(seed), 8);
            each.push(model.observed.clone());
            let (domain, start) = domain_and_start(&model, &FitOptions::default());
            compare(&tested, &model, &each, (&domain, &start), &mut tally);
        }
        println!("{}: {tally:?} of what is allowed", tested.device.precision());
        let most_left = if tested.is_single() { tally.fits / 10 } else { tally.fits / 100 };
        assert!(tally.left_alone <= most_left, "{tally:?}");
        assert!(tally.higher <= tally.fits / if tested.is_single() { 50 } else { 100 }, "{tally:?}");
    }
}

#[test]
fn fits_of_odd_models_end_where_the_cpus_do() {
    for tested in devices() {
        let mut tally = Tally::default();
        for (what, model) in edge_models() {
            println!("{what}");
            let each = toys(&model, &mut Random::new(9), 12);
            let (domain, start) = domain_and_start(&model, &FitOptions::default());
            compare(&tested, &model, &each, (&domain, &start), &mut tally);
        }
        println!("{}: {tally:?} of what is allowed", tested.device.precision());
        assert!(tally.left_alone <= 4, "{tally:?}");
    }
}

#[test]
fn each_fit_holds_what_is_its_own() {
    for tested in devices() {
        for seed in 0..20 {
            let model = random_model(seed);
            let n_params = model.n_params();
            let mut random = Random::new(seed);
            let each = toys(&model, &mut random, 7);
            let (domain, start) = domain_and_start(&model, &FitOptions::default());
            let fixed: Vec<bool> = (0..7 * n_params).map(|i| domain.fixed[i % n_params] || random.one_in(4)).collect();
            let starts: Vec<f64> = (0..7 * n_params)
                .map(|i| start[i % n_params] + if fixed[i] { 0.01 * (i % 5) as f64 } else { 0.0 })
                .collect();
            let (lower, upper) = (&domain.lower, &domain.upper);
            let together = BatchTask {
                data: BatchData::Each(&each),
                starts: &starts,
                lower,
                upper,
                fixed: BatchFixed::Each(&fixed),
                kinked: &domain.kinked,
                variance_of: Some(0),
            };
            let mut session = tested.session(&model);
            let device_fits = session.fit(&together).expect("the device computes");
            for (i, device_fit) in device_fits.iter().enumerate() {
                let own = i * n_params..(i + 1) * n_params;
                for p in 0..n_params {
                    assert!(
                        !fixed[own.clone()][p] || device_fit.params[p] == starts[own.clone()][p] + 0.0,
                        "fixed at its own value"
                    );
                }
                let alone = BatchTask {
                    data: BatchData::Shared(&each[i]),
                    starts: &starts[own.clone()],
                    fixed: BatchFixed::Shared(&fixed[own]),
                    ..together
                };
                assert_eq!(
                    session.fit(&alone).expect("the device computes"),
                    std::slice::from_ref(device_fit),
                    "alone and in company"
                );
            }
        }
    }
}

#[test]
fn a_fit_that_cannot_start_says_so() {
    for tested in devices() {
        let model = random_model(1);
        let (domain, mut start) = domain_and_start(&model, &FitOptions::default());
        let poi = model.poi().expect("there is one");
        start[poi] = -1e6;
        let mut lower = domain.lower.clone();
        lower[poi] = -1e7;
        let task = BatchTask {
            data: BatchData::Shared(&model.observed),
            starts: &start,
            lower: &lower,
            upper: &domain.upper,
            fixed: BatchFixed::Shared(&domain.fixed),
            kinked: &[],
            variance_of: Some(poi),
        };
        let device_fits = tested.session(&model).fit(&task).expect("the device computes");
        assert!(!device_fits[0].converged && device_fits[0].nll == f64::INFINITY && device_fits[0].variance.is_none());
    }
}
