//! What is measured of one model, and how: repeated calls, their minimum and median, and the peak
//! of memory.

use ns_compute::{BatchDataSet, BatchDataSets, CpuBatch, CpuLikelihood};
use ns_core::curvature::{Arrowhead, Curvature};
use ns_core::{Likelihood, Model};
use ns_inference::{FitOptions, FitResult, Problem, fit};
use ns_testkit::random::Random;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Minimum and median of repeated calls, in microseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) min_us: f64,
    pub(crate) median_us: f64,
    pub(crate) n: usize,
}

/// Calls `work` for about `budget`, three times at least, and once beforehand to warm up.
pub(crate) fn repeat(budget: Duration, work: impl FnMut()) -> Times {
    // Asked for the first time after the warm-up, which may take long.
    let begin = OnceCell::new();
    repeat_while(|n| begin.get_or_init(Instant::now).elapsed() < budget && n < 20_000 || n < 3, work)
}

/// Calls `work` `calls` times, at least once, and once beforehand.
pub(crate) fn repeat_times(calls: usize, work: impl FnMut()) -> Times {
    repeat_while(|n| n < calls.max(1), work)
}

fn repeat_while(goes_on: impl Fn(usize) -> bool, mut work: impl FnMut()) -> Times {
    work();
    let mut times = Vec::new();
    while goes_on(times.len()) {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Times { min_us: times[0], median_us: times[times.len() / 2], n: times.len() }
}

/// Everything measured of one model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) n_params: usize,
    pub(crate) n_bins: usize,
    pub(crate) nll: Times,
    pub(crate) gradient: Times,
    pub(crate) hessian: Times,
    /// Fit with uncertainties, with the evaluator ready as other engines have their models.
    pub(crate) fit: Times,
    pub(crate) twice_nll: f64,
    pub(crate) converged: bool,
    pub(crate) edm: f64,
    pub(crate) n_evaluations: usize,
    /// Most memory this process has held, in bytes; `None` where the system does not tell.
    pub(crate) peak_memory: Option<u64>,
}

/// A fit with uncertainties, as the command does it.
pub(crate) fn fit_once(model: &Model) -> FitResult {
    let mut likelihood = CpuLikelihood::new(model);
    fit(&mut Problem::new(model, &mut likelihood, &FitOptions::default()))
}

/// Measures `model`, spending about `budget` on each number.
pub(crate) fn measure(model: &Model, budget: Duration) -> Measured {
    let result = fit_once(model);
    let peak_memory = peak_memory();
    let mut likelihood = CpuLikelihood::new(model);
    let mut gradient = vec![0.0; model.n_params()];
    let mut hessian = Curvature::Exact(Arrowhead::zeros(likelihood.structure().partition));
    let point = &result.bestfit;
    Measured {
        n_params: model.n_params(),
        n_bins: model.n_bins(),
        nll: repeat(budget, || {
            black_box(likelihood.nll(black_box(point)));
        }),
        gradient: repeat(budget, || {
            black_box(likelihood.nll_and_grad(black_box(point), &mut gradient));
        }),
        hessian: repeat(budget, || {
            black_box(likelihood.nll_and_curvature(black_box(point), &mut gradient, &mut hessian));
        }),
        fit: repeat(budget, || {
            black_box(fit(&mut Problem::new(black_box(model), &mut likelihood, &FitOptions::default())));
        }),
        twice_nll: result.twice_nll,
        converged: result.converged,
        edm: result.edm,
        n_evaluations: result.n_evaluations,
        peak_memory,
    }
}

/// Points that a batch is measured with.
pub(crate) const BATCH: usize = 1000;

/// A thousand evaluations with gradient at once, on one thread and on two. Each point has its own
/// data, as toys have: counts and auxiliary data scattered round what was observed, parameters by
/// their prior widths round the start.
pub(crate) fn measure_batch(model: &Model, budget: Duration) -> [Times; 2] {
    let batch = CpuBatch::new(CpuLikelihood::new(model).plan().clone());
    let mut random = Random::new(1);
    let mut params = Vec::with_capacity(BATCH * model.n_params());
    let mut sets = Vec::with_capacity(BATCH);
    for _ in 0..BATCH {
        params.extend(scattered_point(model, &mut random));
        let mut data = model.observed.clone();
        data.main.iter_mut().for_each(|n| *n = (*n + n.sqrt() * normal(&mut random)).round().max(0.0));
        data.aux.iter_mut().for_each(|a| *a += 0.01 * *a * normal(&mut random));
        sets.push(BatchDataSet::new(batch.plan(), data));
    }
    let each: Vec<&BatchDataSet> = sets.iter().collect();
    let mut out = BatchOutput { nll: vec![0.0; BATCH], gradient: vec![0.0; params.len()] };
    [1, 2].map(|n_threads| {
        let mut batches = vec![batch.clone(); n_threads];
        repeat(budget, || evaluate_batch(&mut batches, &each, black_box(&params), &mut out))
    })
}

/// Where a batch of N points is written.
struct BatchOutput {
    /// -ln L (N).
    nll: Vec<f64>,
    /// Its gradients (N × P).
    gradient: Vec<f64>,
}

fn evaluate_batch(batches: &mut [CpuBatch], data: &[&BatchDataSet], params: &[f64], out: &mut BatchOutput) {
    let BatchOutput { nll, gradient } = out;
    if let [batch] = batches {
        return batch.nll_and_grad(BatchDataSets::Each(data), params, nll, gradient);
    }
    let (n, p) = (BATCH.div_ceil(batches.len()), params.len() / BATCH);
    let parts = data.chunks(n).zip(params.chunks(n * p)).zip(nll.chunks_mut(n).zip(gradient.chunks_mut(n * p)));
    std::thread::scope(|scope| {
        for (batch, ((data, params), (nll, gradient))) in batches.iter_mut().zip(parts) {
            scope.spawn(move || batch.nll_and_grad(BatchDataSets::Each(data), params, nll, gradient));
        }
    });
}

fn scattered_point(model: &Model, random: &mut Random) -> Vec<f64> {
    let parameters = &model.parameters;
    let coordinate = |p: usize| {
        let width = parameters.constraint[p].map_or(0.1, |c| c.width(parameters.init[p]));
        let value = parameters.init[p] + width * normal(random);
        value.clamp(parameters.lower[p], parameters.upper[p])
    };
    (0..parameters.len()).map(coordinate).collect()
}

/// Nearly a standard normal number: twelve uniform ones.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.between(-0.5, 0.5)).sum()
}

/// The most memory that this process has held, from the kernel's own account (Linux).
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
