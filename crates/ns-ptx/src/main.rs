//! `ns-ptx MODULE.ptx [OPTION…] RECORDING…`: executes recorded launches and compares what they
//! write with the recordings.
//!
//! - `--scratch KERNEL=INDEX`: an argument that the kernel uses for itself, which is not compared.
//! - `--tolerance KERNEL=VALUE`: the largest difference of a real, relative to the larger of 1 and
//!   its magnitude; 1e-12 unless given. NaN is equal to NaN.
//! - `--may-differ KERNEL=COUNT`: up to COUNT of its launches may differ, and are reported.
//! - `--fuse SEED`: with products and sums fused at random.
//! - `--least-coverage PERCENT`: of the basic blocks of the module.
//!
//! Prints a line for each kernel; exit code 1 where something differs, violates a rule, or where no
//! recording is of a kernel of the module.

use ns_ptx::recording::reals;
use ns_ptx::{Argument, Coverage, LaneOrder, Module, Outcome, Recording, fuse_at_random, run};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;

type Failure = Box<dyn std::error::Error>;

/// The largest difference that is allowed where no option gives another.
const TOLERANCE: f64 = 1e-12;

#[derive(Default)]
struct Options {
    module: PathBuf,
    recordings: Vec<PathBuf>,
    /// Indices of arguments by kernel.
    scratch: HashMap<String, HashSet<usize>>,
    tolerances: HashMap<String, f64>,
    may_differ: HashMap<String, usize>,
    fuse: Option<u64>,
    least_coverage: f64,
}

/// What is known of a kernel after its launches.
#[derive(Default)]
struct Tally {
    n_launches: usize,
    worst: f64,
    n_instructions: u64,
    n_accesses: u64,
    n_faults: usize,
    /// Launches that differ from their recordings.
    differing: HashSet<String>,
    failures: Vec<String>,
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)).and_then(|options| replay(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(2)
        }
    }
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut paths = Vec::new();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
        match word.as_str() {
            "--scratch" => {
                let (kernel, index) = of_kernel(&value()?)?;
                options.scratch.entry(kernel).or_default().insert(index.parse()?);
            }
            "--tolerance" => {
                let (kernel, tolerance) = of_kernel(&value()?)?;
                options.tolerances.insert(kernel, tolerance.parse()?);
            }
            "--may-differ" => {
                let (kernel, count) = of_kernel(&value()?)?;
                options.may_differ.insert(kernel, count.parse()?);
            }
            "--fuse" => options.fuse = Some(value()?.parse()?),
            "--least-coverage" => options.least_coverage = value()?.parse()?,
            _ => paths.push(PathBuf::from(word)),
        }
    }
    let mut paths = paths.into_iter();
    options.module = paths.next().ok_or("usage: ns-ptx MODULE.ptx [OPTION…] RECORDING…")?;
    options.recordings = paths.collect();
    Ok(options)
}

fn of_kernel(text: &str) -> Result<(String, String), Failure> {
    let (kernel, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not KERNEL=VALUE"))?;
    Ok((kernel.to_owned(), value.to_owned()))
}

/// Executes the recordings and returns whether all agree.
fn replay(options: &Options) -> Result<bool, Failure> {
    let text = std::fs::read_to_string(&options.module)?;
    let mut module = Module::parse(&text)?;
    if let Some(seed) = options.fuse {
        let fused = fuse_at_random(&module, seed);
        println!("{} products fused with sums, seed {seed}", fused.n_fused);
        module = fused.module;
    }
    let mut coverage = Coverage::new(&module);
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut others = BTreeSet::new();
    for path in &options.recordings {
        let recording = Recording::read(&std::fs::read(path)?).map_err(|e| format!("`{}`: {e}", path.display()))?;
        if module.kernel(&recording.kernel).is_none() {
            others.insert(recording.kernel);
            continue;
        }
        let tally = tallies.entry(recording.kernel.clone()).or_default();
        tally.n_launches += 1;
        for order in [LaneOrder::Ascending, LaneOrder::Descending] {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            match run(&module, &recording, order, &mut coverage) {
                Ok(outcome) => compare(options, &recording, &outcome, &name, tally),
                Err(fault) => {
                    tally.n_faults += 1;
                    tally.failures.push(format!("{name}: {fault}"));
                }
            }
        }
    }
    if !others.is_empty() {
        println!("not in this module: {}", others.into_iter().collect::<Vec<_>>().join(", "));
    }
    let agree = report(&tallies, &options.may_differ) && !tallies.is_empty();
    Ok(report_coverage(&module, &coverage, &tallies, options.least_coverage) && agree)
}

/// Compares what a launch wrote with what was recorded.
fn compare(options: &Options, recording: &Recording, outcome: &Outcome, name: &str, tally: &mut Tally) {
    tally.n_instructions += outcome.n_instructions;
    tally.n_accesses += outcome.n_accesses;
    let tolerance = options.tolerances.get(&recording.kernel).copied().unwrap_or(TOLERANCE);
    for (index, (argument, bytes)) in recording.arguments.iter().zip(&outcome.buffers).enumerate() {
        let Argument::Written { after, .. } = argument else { continue };
        if options.scratch.get(&recording.kernel).is_some_and(|indices| indices.contains(&index)) {
            continue;
        }
        let [is, should_be] = [bytes, after].map(|bytes| reals(bytes, recording.real_bytes));
        for (place, (is, should_be)) in is.into_iter().zip(should_be).enumerate() {
            let difference = difference(is, should_be);
            tally.worst = tally.worst.max(if difference.is_finite() { difference } else { 0.0 });
            if difference > tolerance {
                let what = format!("{name}: argument {index} at {place} is {is:e}, recorded {should_be:e}");
                tally.failures.push(what);
                tally.differing.insert(name.to_owned());
                return;
            }
        }
    }
}

/// Returns how far two reals are apart, infinity where one alone is not finite.
fn difference(is: f64, should_be: f64) -> f64 {
    if is.to_bits() == should_be.to_bits() || is == should_be || (is.is_nan() && should_be.is_nan()) {
        return 0.0;
    }
    let difference = (is - should_be).abs() / should_be.abs().max(1.0);
    if difference.is_nan() { f64::INFINITY } else { difference }
}

/// Prints what is known of each kernel and returns whether no launch faulted and no more differ
/// than may.
fn report(tallies: &BTreeMap<String, Tally>, may_differ: &HashMap<String, usize>) -> bool {
    for (kernel, tally) in tallies {
        println!(
            "{kernel}: {} launches in both orders, {} instructions, {} checked accesses, largest difference {:.1e}, {} faults, {} launches differ",
            tally.n_launches,
            tally.n_instructions,
            tally.n_accesses,
            tally.worst,
            tally.n_faults,
            tally.differing.len()
        );
        for failure in tally.failures.iter().take(5) {
            println!("  {failure}");
        }
    }
    let most = |kernel: &String| may_differ.get(kernel).copied().unwrap_or(0);
    tallies.iter().all(|(kernel, tally)| tally.n_faults == 0 && tally.differing.len() <= most(kernel))
}

/// Prints how many basic blocks were executed of each function of the module.
fn report_coverage(
    module: &Module,
    coverage: &Coverage,
    tallies: &BTreeMap<String, Tally>,
    least_percent: f64,
) -> bool {
    let (mut n_executed, mut n_blocks) = (0, 0);
    for count in coverage.blocks(module) {
        println!("  {}: {} of {} basic blocks", count.function, count.n_executed, count.n_blocks);
        n_executed += count.n_executed;
        n_blocks += count.n_blocks;
    }
    let percent = 100.0 * n_executed as f64 / n_blocks.max(1) as f64;
    println!("{n_executed} of {n_blocks} basic blocks ({percent:.1} %) of {} kernels", tallies.len());
    percent >= least_percent
}
