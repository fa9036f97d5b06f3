//! A device against the CPU: toys, the batch from which it is faster, single kernels, and what was
//! launched and moved.
//!
//! Two published models where they are there, else two of the generated family that are as large.

use crate::family::{Kind, workspace};
use clap::Args;
use ns_compute::CpuLikelihood;
use ns_compute::accel::{BatchPoints, DeviceSession, IterationCost};
use ns_core::batch::{BatchData, BatchFixed, BatchTask};
use ns_core::{CompileOptions, Data, DataLikelihood, Likelihood, Model, compile};
use ns_device::{Backend, Device, Precision};
use ns_inference::accelerator::Accelerator;
use ns_inference::minimize::{Domain, MinimizeOptions, Minimizer, Outcome};
use ns_inference::monitor::NoMonitor;
use ns_inference::options::domain_and_start;
use ns_inference::parallel::{self, ExecutionContext, all_threads};
use ns_inference::toys::{AuxTreatment, Ensemble, ToyFitter, ToyRun, ToySampler, ToySource};
use ns_inference::{FitOptions, Problem, fit};
use ns_testkit::published;
use std::convert::Infallible;
use std::error::Error;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

const NAMES: [&str; 2] = ["atlas_tHu_fcnc", "atlas_tttt"];
/// Items of the launches by which single kernels are timed.
const N_ITEMS: usize = 1024;

#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// Where to compute
    #[arg(long, default_value = "cuda")]
    device: Backend,
    /// Toys of each ensemble
    #[arg(long, default_value_t = 10_000)]
    toys: u64,
}

pub(crate) fn run(arguments: &DevicesArgs) -> Result<(), Box<dyn Error>> {
    let device = Device::open(arguments.device, 0)?;
    println!("{} ({}), {} threads of the CPU.", device.properties().name, device.precision(), all_threads());
    for (name, model) in models()? {
        println!("\n`{name}`, {} parameters, {} bins:\n", model.n_params(), model.observed.main.len());
        let bench = Bench::new(&device, &model)?;
        bench.cost()?;
        bench.toys(arguments.toys)?;
        bench.crossover(arguments.toys)?;
        bench.kernels()?;
    }
    Ok(())
}

fn models() -> Result<Vec<(String, Model)>, Box<dyn Error>> {
    let is_wanted = |case: &published::PublishedCase| NAMES.contains(&case.name.as_str());
    let found: Vec<_> = published::cases().into_iter().filter(is_wanted).map(|case| (case.name, case.model)).collect();
    if found.len() == NAMES.len() {
        return Ok(found);
    }
    let generated = |kind, n_params, n_bins| -> Result<(String, Model), Box<dyn Error>> {
        let model = compile(&workspace(kind, n_params, n_bins), &CompileOptions::default())?;
        Ok((format!("generated: {kind:?}"), model))
    };
    Ok(vec![generated(Kind::Gammas, 184, 41)?, generated(Kind::Systematics, 250, 160)?])
}

struct Bench<'a> {
    device: &'a Device,
    model: &'a Model,
    sampler: ToySampler,
    domain: Domain,
    start: Vec<f64>,
}

impl<'a> Bench<'a> {
    /// Toys are thrown at the best fit.
    fn new(device: &'a Device, model: &'a Model) -> Result<Self, Box<dyn Error>> {
        let options = FitOptions::default();
        let (domain, _) = domain_and_start(model, &options);
        let truth = fit(&mut Problem::new(model, &mut CpuLikelihood::new(model), &options)).bestfit;
        let source = ToySource { seed: 0, ensemble: Ensemble::Fits, aux: AuxTreatment::Fluctuated };
        let sampler = ToySampler::new(model, &model.observed, &truth, source)?;
        Ok(Self { device, model, sampler, domain, start: truth })
    }

    /// Seconds, and how many toys did not converge, with the device or without.
    fn ensemble(&self, n: u64, threads: NonZeroUsize, accelerator: Option<&Accelerator>) -> (f64, u64) {
        let options = FitOptions::default();
        let toys = ToyFitter { model: self.model, options: &options, sampler: &self.sampler, uncertainty_of: None };
        let run = ToyRun { accelerator, ..ToyRun::new(threads, &NoMonitor) };
        let (start, mut n_failed) = (Instant::now(), 0);
        let Ok(_) = toys.run(&CpuLikelihood::new(self.model), 0..n, &run, |fits| {
            n_failed += fits.iter().filter(|fit| fit.outcome != Outcome::Converged).count() as u64;
            Ok::<_, Infallible>(())
        });
        (start.elapsed().as_secs_f64(), n_failed)
    }

    fn toys(&self, n: u64) -> Result<(), Box<dyn Error>> {
        let accelerator = Accelerator::new(Box::new(DeviceSession::new(self.device, self.model)?));
        // The first launch compiles.
        self.ensemble(8, all_threads(), Some(&accelerator));
        let before = accelerator.share();
        self.device.reset_counters();
        let (seconds, n_failed) = self.ensemble(n, all_threads(), Some(&accelerator));
        let (share, counters) = (accelerator.share(), self.device.counters());
        if let Some(error) = accelerator.failure() {
            return Err(error.to_string().into());
        }
        println!("| {n} toys fitted | seconds | toys per second | did not converge |\n|---|---|---|---|");
        let row = |what: &str, n: u64, seconds: f64, n_failed: u64| {
            println!("| {what} | {seconds:.3} | {:.0} | {n_failed} |", n as f64 / seconds);
        };
        row("device", n, seconds, n_failed);
        if n_failed > 0 {
            return Err(format!("{n_failed} toys of {n} did not converge").into());
        }
        let few = n.min(2000);
        for threads in [NonZeroUsize::MIN, NonZeroUsize::MIN.saturating_add(1), all_threads()] {
            let (seconds, n_failed) = self.ensemble(few, threads, None);
            row(&format!("CPU, {threads} threads, {few} of them"), few, seconds, n_failed);
        }
        println!(
            "\n{} fits on the device, {} of them finished by the CPU; {} launches of {} blocks, {} bytes up in {} transfers, {} down in {}.\n",
            share.n_fits - before.n_fits,
            share.n_left - before.n_left,
            counters.launches,
            counters.blocks,
            counters.upload_bytes,
            counters.uploads,
            counters.download_bytes,
            counters.downloads
        );
        Ok(())
    }

    /// From how many fits at a time on the device is faster: fits of toys that are thrown before,
    /// from the same start.
    fn crossover(&self, most: u64) -> Result<(), Box<dyn Error>> {
        let mut session = DeviceSession::new(self.device, self.model)?;
        println!(
            "| fits at a time | device, ms | CPU, 2 threads, ms | CPU, {} threads, ms |\n|---|---|---|---|",
            all_threads()
        );
        for n in [1, 4, 16, 64, 256, 1024, 4096].into_iter().filter(|&n| n <= most) {
            let each = self.thrown(n);
            let starts = self.start.repeat(each.len());
            let task = self.task(BatchData::Each(&each), &starts);
            let device = best_of(|| session.fit(&task).map(drop))?;
            let two = NonZeroUsize::MIN.saturating_add(1);
            let on_cpu = |threads| {
                best_of(|| {
                    self.on_cpu(&each, threads);
                    Ok::<_, Infallible>(())
                })
            };
            let (Ok(cpu), Ok(all)) = (on_cpu(two), on_cpu(all_threads()));
            println!("| {n} | {:.2} | {:.2} | {:.2} |", 1e3 * device, 1e3 * cpu, 1e3 * all);
        }
        println!();
        Ok(())
    }

    fn thrown(&self, n: u64) -> Vec<Data> {
        let one = |toy| {
            let mut data = Data::default();
            self.sampler.throw(toy, &mut data);
            data
        };
        (0..n).map(one).collect()
    }

    fn task<'t>(&'t self, data: BatchData<'t>, starts: &'t [f64]) -> BatchTask<'t> {
        let Domain { lower, upper, fixed, kinked, .. } = &self.domain;
        BatchTask { data, starts, lower, upper, fixed: BatchFixed::Shared(fixed), kinked, variance_of: None }
    }

    /// The same fits on the CPU.
    fn on_cpu(&self, each: &[Data], threads: NonZeroUsize) {
        let make = || {
            let likelihood = CpuLikelihood::new(self.model);
            (Minimizer::new(&likelihood.structure()), likelihood)
        };
        let fit = |(minimizer, likelihood): &mut (Minimizer, CpuLikelihood), i: usize| {
            likelihood.set_data(&each[i]);
            minimizer.minimize(likelihood, &self.start, &self.domain, &MinimizeOptions::default());
        };
        parallel::map(each.len(), ExecutionContext::with_threads(threads), make, fit);
    }

    /// What an iteration computes and moves, and the memory that a block works in.
    fn cost(&self) -> Result<(), Box<dyn Error>> {
        let session = DeviceSession::new(self.device, self.model)?;
        println!(
            "{} kB of memory per block.\n\n| one iteration | kflop | kB, L1 |\n|---|---|---|",
            session.bytes_per_block() / 1000
        );
        let parts = session.cost_of_iteration();
        let sum = |part: fn(&IterationCost) -> f64| parts.iter().map(|(_, cost)| part(cost)).sum();
        let whole = IterationCost { flops: sum(|cost| cost.flops), bytes: sum(|cost| cost.bytes) };
        for (what, cost) in parts.iter().chain([&("together", whole)]) {
            println!("| {what} | {:.0} | {:.0} |", cost.flops / 1e3, cost.bytes / 1e3);
        }
        println!();
        Ok(())
    }

    /// What each kernel takes for many items, transfers included, by the device's events; and -ln L
    /// with its gradient on the CPU.
    fn kernels(&self) -> Result<(), Box<dyn Error>> {
        let mut session = DeviceSession::new(self.device, self.model)?;
        let each = self.thrown(N_ITEMS as u64);
        let points = self.start.repeat(N_ITEMS);
        let items = BatchPoints { data: BatchData::Each(&each), points: &points };
        let task = self.task(items.data, &points);
        let parts = session.cost_of_iteration();
        let (evaluation, iteration) = (parts[0].1.flops, parts.iter().map(|(_, cost)| cost.flops).sum());
        println!("| {N_ITEMS} items at a time | µs per item | GFLOP/s | of the peak |\n|---|---|---|---|");
        let row = |what: &str, time: Duration, flops: Option<f64>| self.row(what, time, flops);
        row("-ln L", self.timed(|| session.nll(&items).map(drop))?, Some(evaluation));
        row("with its gradient", self.timed(|| session.nll_and_grad(&items).map(drop))?, None);
        row("Newton step, Gauss-Newton matrix", self.timed(|| session.newton_steps(&task, false).map(drop))?, None);
        row("Newton step, exact Hessian", self.timed(|| session.newton_steps(&task, true).map(drop))?, Some(iteration));
        let mut iterations = 0;
        let time =
            self.timed(|| session.fit(&task).map(|fits| iterations = fits.iter().map(|fit| fit.iterations).sum()))?;
        row("fit", time, None);
        row("fit, per iteration", time.mul_f64(N_ITEMS as f64 / iterations.max(1) as f64), Some(iteration));
        let mut cpu = CpuLikelihood::new(self.model);
        let (start, mut gradient) = (Instant::now(), vec![0.0; self.start.len()]);
        for _ in 0..N_ITEMS {
            cpu.nll_and_grad(&self.start, &mut gradient);
        }
        row("CPU, one thread: -ln L with its gradient", start.elapsed(), None);
        Ok(())
    }

    /// A row of the kernels' table: `flops` is what an item costs, where it is counted.
    fn row(&self, what: &str, time: Duration, flops: Option<f64>) {
        let seconds = time.as_secs_f64() / N_ITEMS as f64;
        let rate = flops.map(|flops| flops / seconds);
        let peak = self.device.properties().double_flops.filter(|_| self.device.precision() == Precision::Double);
        let share = rate.zip(peak).map(|(rate, peak)| format!("{:.1} %", 100.0 * rate / peak as f64));
        let rate = rate.map(|rate| format!("{:.1}", rate / 1e9));
        println!("| {what} | {:.3} | {} | {} |", seconds * 1e6, rate.unwrap_or_default(), share.unwrap_or_default());
    }

    /// The shortest of three, after one that is not counted.
    fn timed<E: Error + 'static>(&self, mut work: impl FnMut() -> Result<(), E>) -> Result<Duration, Box<dyn Error>> {
        work()?;
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let start = self.device.record()?;
            work()?;
            best = best.min(self.device.record()?.since(&start)?);
        }
        Ok(best)
    }
}

/// Seconds of the shortest of three, after one that is not counted.
fn best_of<E>(mut work: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    work()?;
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}
