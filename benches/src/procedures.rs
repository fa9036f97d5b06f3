//! Procedures of one model that are made of many fits: tests, limits, scans, rankings and toys,
//! with their results.

use crate::cases::read;
use crate::measure::{Times, measure_batch, repeat};
use crate::toys::{Timed, fits, goodness, test};
use clap::Args;
use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_inference::FitOptions;
use ns_inference::Problem;
use ns_inference::hypotest::{HypotestResult, hypotest};
use ns_inference::limit::{LimitOptions, LimitResult, limit};
use ns_inference::monitor::NoMonitor;
use ns_inference::parallel::{ExecutionContext, all_threads};
use ns_inference::ranking::{Ranking, RankingMethods, RankingOptions, ranking};
use ns_inference::scan::{Scan, ScanAxis, ScanValues, scan};
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::ToyRun;
use serde::Serialize;
use serde_json::{Value, json};
use std::error::Error;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct ProceduresArgs {
    /// Where the published workspaces are
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// The case
    #[arg(long)]
    case: String,
    /// Milliseconds spent on each number
    #[arg(long, default_value_t = 1000)]
    budget: u64,
    /// How often toys are run; the fastest counts
    #[arg(long, default_value_t = 3)]
    repeats: usize,
}

/// What a procedure took, and its result.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Done<T> {
    #[serde(flatten)]
    pub(crate) times: Times,
    pub(crate) threads: NonZeroUsize,
    pub(crate) result: T,
}

/// Procedures with a model and its evaluator ready, free fit included.
#[derive(Debug, Clone)]
pub(crate) struct Procedures {
    /// CLs at 1 with its expected band; one thread.
    pub(crate) cls: Done<HypotestResult>,
    /// The observed upper limit and the five expected ones; one thread.
    pub(crate) limit: Done<LimitResult>,
    /// A scan of 21 points of the parameter of interest, its range found by itself; one thread.
    pub(crate) scan: Done<Scan>,
    /// The classic ranking, pre-fit and post-fit, of all nuisance parameters; all threads.
    pub(crate) ranking: Done<Ranking>,
    /// How many conditional fits that ranking is made of.
    pub(crate) n_refits: usize,
}

fn done<T>(budget: Duration, threads: NonZeroUsize, mut work: impl FnMut() -> T) -> Done<T> {
    let result = work();
    let times = repeat(budget, || drop(black_box(work())));
    Done { times, threads, result }
}

/// Measures the procedures on `model`, spending about `budget` on each.
pub(crate) fn measure_procedures(model: &Model, poi: usize, budget: Duration) -> Procedures {
    let mut likelihood = CpuLikelihood::new(model);
    let (options, one) = (FitOptions::default(), NonZeroUsize::MIN);
    let cls = done(budget, one, || {
        hypotest(&mut Problem::new(black_box(model), &mut likelihood, &options), TestStatistic::QTilde, poi, 1.0)
    });
    let limit = done(budget, one, || {
        limit(&mut Problem::new(black_box(model), &mut likelihood, &options), poi, LimitOptions::default())
    });
    let axis = ScanAxis { parameter: poi, values: ScanValues::Automatic(21) };
    let scan = done(budget, one, || {
        scan(&mut Problem::new(black_box(model), &mut likelihood, &options), &axis, ExecutionContext::SINGLE_THREADED)
    });
    let ranking = measure_ranking(model, poi, budget, all_threads());
    let impacts = ranking.result.entries.iter().flat_map(|entry| [&entry.prefit, &entry.postfit]);
    let n_refits = impacts.flatten().count() * 2;
    Procedures { cls, limit, scan, ranking, n_refits }
}

fn measure_ranking(model: &Model, poi: usize, budget: Duration, threads: NonZeroUsize) -> Done<Ranking> {
    let (mut likelihood, fit) = (CpuLikelihood::new(model), FitOptions::default());
    let methods = RankingMethods { classic: true, global: false, covariance: false };
    let options = RankingOptions { poi, methods, minos: false, groups: Vec::new() };
    let execution = ExecutionContext { threads, ..ExecutionContext::SINGLE_THREADED };
    done(budget, threads, || ranking(&Problem::new(black_box(model), &mut likelihood, &fit), &options, execution))
}

pub(crate) fn run(arguments: &ProceduresArgs) -> Result<(), Box<dyn Error>> {
    let cases: Value = serde_json::from_slice(&std::fs::read(arguments.data.join("cases.json"))?)?;
    let name = &arguments.case;
    let entry = cases.get(name).ok_or_else(|| format!("no case is called `{name}`"))?;
    let model = read(&arguments.data, entry)?;
    let poi = model.poi().ok_or("a case without a parameter of interest")?;
    let budget = Duration::from_millis(arguments.budget);
    let done = measure_procedures(&model, poi, budget);
    let one_thread = measure_ranking(&model, poi, budget, NonZeroUsize::MIN);
    let document = json!({
        "cls": &done.cls,
        "limit": &done.limit,
        "scan": scan_document(&done.scan),
        "n_refits": done.n_refits,
        "ranking": [ranking_document(&one_thread), ranking_document(&done.ranking)],
        "batch": measure_batch(&model, budget),
        "toys": toys_document(&model, arguments.repeats)?,
    });
    println!("{document}");
    Ok(())
}

/// The curve without the parameters of each point.
fn scan_document(done: &Done<Scan>) -> Value {
    let Done { times, threads, result } = done;
    json!({
        "min_us": times.min_us, "median_us": times.median_us, "n": times.n, "threads": threads,
        "result": { "values": result.values[0], "twice_delta_nll": result.twice_delta_nll, "converged": result.converged },
    })
}

/// The post-fit impacts, down and up.
fn ranking_document(done: &Done<Ranking>) -> Value {
    let Done { times, threads, result } = done;
    let impacts: serde_json::Map<String, Value> = (result.entries.iter())
        .filter_map(|entry| Some((entry.parameter.clone(), entry.postfit.as_ref()?)))
        .map(|(name, impacts)| (name, json!([impacts.down.impact, impacts.up.impact])))
        .collect();
    json!({
        "min_us": times.min_us, "median_us": times.median_us, "n": times.n, "threads": threads,
        "result": { "converged": result.converged, "impacts": impacts },
    })
}

/// Ensembles on one thread and on all: the fastest of `repeats`.
fn toys_document(model: &Model, repeats: usize) -> Result<Value, Box<dyn Error>> {
    let mut document = json!({ "fits": [], "hypotest": [], "goodness": [] });
    for threads in [NonZeroUsize::MIN, all_threads()] {
        let run = ToyRun::new(threads, &NoMonitor);
        let mut add = |what: &str, timed: Value| document[what].as_array_mut().expect("an array").push(timed);
        add("fits", fastest(repeats, || fits(model, &run))?);
        add("hypotest", fastest(repeats, || test(model, &run))?);
        add("goodness", fastest(repeats, || goodness(model, &run))?);
    }
    Ok(document)
}

fn fastest<T: Serialize>(
    repeats: usize,
    mut work: impl FnMut() -> Result<Timed<T>, Box<dyn Error>>,
) -> Result<Value, Box<dyn Error>> {
    let mut all = (0..repeats.max(1)).map(|_| work()).collect::<Result<Vec<_>, _>>()?;
    all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(serde_json::to_value(&all[0])?)
}
