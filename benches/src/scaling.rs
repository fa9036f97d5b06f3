//! Time and memory against model size: three series of generated models, a table and a plot.

use crate::family::{Kind, workspace};
use crate::measure::{Measured, measure};
use crate::plot::{Plot, Series};
use clap::Args;
use ns_core::{CompileOptions, compile};
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct ScalingArgs {
    /// Write benchmarks.md and its plot into this folder
    #[arg(long)]
    write: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PointArgs {
    /// What most parameters are
    #[arg(long, value_enum)]
    kind: Kind,
    /// Parameters
    #[arg(long)]
    params: usize,
    /// Bins
    #[arg(long)]
    bins: usize,
}

/// A row of models in which one thing grows.
struct Growth {
    title: &'static str,
    kind: Kind,
    /// Parameters and bins.
    sizes: &'static [(usize, usize)],
}

const GROWTHS: [Growth; 3] = [
    Growth {
        title: "systematics, 100 bins",
        kind: Kind::Systematics,
        sizes: &[(10, 100), (30, 100), (100, 100), (300, 100), (1000, 100), (3000, 100)],
    },
    Growth {
        title: "bins, 50 parameters",
        kind: Kind::Systematics,
        sizes: &[(50, 10), (50, 30), (50, 100), (50, 300), (50, 1000), (50, 3000), (50, 10_000)],
    },
    Growth {
        title: "bins with a gamma each, 50 other parameters",
        kind: Kind::Gammas,
        sizes: &[(60, 10), (80, 30), (150, 100), (350, 300), (1050, 1000), (3000, 2950), (10_050, 10_000)],
    },
];

pub(crate) fn run_point(arguments: &PointArgs) -> Result<(), Box<dyn Error>> {
    let workspace = workspace(arguments.kind, arguments.params, arguments.bins);
    let model = compile(&workspace, &CompileOptions::default())?;
    drop(workspace);
    if model.n_params() != arguments.params {
        return Err(format!("asked for {} parameters, made {}", arguments.params, model.n_params()).into());
    }
    println!("{}", serde_json::to_string(&measure(&model, Duration::from_millis(300)))?);
    Ok(())
}

pub(crate) fn run(arguments: &ScalingArgs) -> Result<(), Box<dyn Error>> {
    let mut rows = Vec::new();
    println!("{HEADER}");
    for growth in &GROWTHS {
        for &(params, bins) in growth.sizes {
            let measured = point_in_own_process(growth.kind, params, bins)?;
            println!("{}", row(growth, &measured));
            rows.push((growth, measured));
        }
    }
    if let Some(folder) = &arguments.write {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("benchmarks.svg"), plot(&rows).to_svg())?;
        std::fs::write(folder.join("benchmarks.md"), document(&rows)?)?;
    }
    Ok(())
}

fn point_in_own_process(kind: Kind, params: usize, bins: usize) -> Result<Measured, Box<dyn Error>> {
    let kind = if kind == Kind::Gammas { "gammas" } else { "systematics" };
    let (params, bins) = (params.to_string(), bins.to_string());
    let done = Command::new(std::env::current_exe()?)
        .args(["point", "--kind", kind, "--params", &params, "--bins", &bins])
        .output()?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&done.stdout)?)
}

const HEADER: &str = "| what grows | parameters | bins | NLL µs | gradient µs | Hessian µs | fit ms | evaluations | peak memory MB | converged |
|---|---|---|---|---|---|---|---|---|---|";

fn row(growth: &Growth, m: &Measured) -> String {
    let memory = m.peak_memory.map_or("–".to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1e6));
    format!(
        "| {} | {} | {} | {:.1} | {:.1} | {:.0} | {:.2} | {} | {memory} | {} |",
        growth.title,
        m.n_params,
        m.n_bins,
        m.nll.median_us,
        m.gradient.median_us,
        m.hessian.median_us,
        m.fit.median_us / 1e3,
        m.n_evaluations,
        if m.converged { "yes" } else { "**no**" },
    )
}

fn plot(rows: &[(&Growth, Measured)]) -> Plot {
    let series = |growth: &Growth, name: &str, value: fn(&Measured) -> f64| {
        let of_growth = rows.iter().filter(|(g, _)| g.title == growth.title);
        let grows_in_bins = growth.sizes[0].1 != growth.sizes[1].1;
        let size = |m: &Measured| if grows_in_bins { m.n_bins } else { m.n_params } as f64;
        Series {
            name: format!("{name}: {}", growth.title),
            points: of_growth.map(|(_, m)| (size(m), value(m))).collect(),
        }
    };
    let mut all = Vec::new();
    for growth in &GROWTHS {
        all.push(series(growth, "fit", |m| m.fit.median_us));
        all.push(series(growth, "NLL and gradient", |m| m.gradient.median_us));
    }
    Plot { x: "what grows: parameters or bins".to_owned(), y: "µs".to_owned(), series: all }
}

fn document(rows: &[(&Growth, Measured)]) -> Result<String, std::fmt::Error> {
    let mut text = String::from(INTRODUCTION);
    writeln!(text, "Measured on {} with one thread; medians of repeated calls.\n\n{HEADER}", processor())?;
    for (growth, measured) in rows {
        writeln!(text, "{}", row(growth, measured))?;
    }
    writeln!(text, "\n![time against size](benchmarks.svg)\n\n{EXPLANATION}")?;
    Ok(text)
}

const INTRODUCTION: &str = "# Time and memory against model size

Written by `make bench-scaling`; do not edit. The models are generated (`benches/src/family.rs`): channels of 20 bins with four samples, and
systematics that each act as a normsys and a histosys on every fourth sample, or a staterror gamma in every bin. A fit starts from the
model's own starting values, has its evaluator ready, and ends with uncertainties from the exact Hessian. Memory is the peak of a whole
process that makes one model and fits it once. Published cases are measured by `make bench`: evaluations, fits, and the procedures that are made of
many fits (tests, limits, scans, rankings, toys). Other engines are measured beside them, fits and procedures, by `make bench-peers`
([benches/RECORD.md](../benches/RECORD.md)).

";

const EXPLANATION: &str = "How it grows:

- **A value or a gradient** reads each number of the model once or twice, so it grows with the number of template cells: in proportion to
  the bins, and to the systematics times the bins that each acts on.
- **The exact Hessian** adds a product of each pair of parameters that meet in a bin: quadratic in the systematics, linear in the bins. A gamma
  meets only the parameters of its bin, so it adds a row and no square.
- **A fit** takes a handful of evaluations whatever the size, and a factorisation for each: with few bins and many systematics its cost is set by
  the bins (the Gauss-Newton matrix has as many rows), and the exact Hessian of the end is cubic in the systematics; gammas are eliminated one
  by one.
- **Memory** is the model (its cells), one Hessian (quadratic in the systematics, gammas times systematics for the coupling), and the
  process itself (a few MB).
";

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |key: &str| info.lines().find(|line| line.starts_with(key)).and_then(|line| line.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let family = field("cpu family").map_or(String::new(), |family| format!(" (family {family})"));
    format!(
        "{}{family}, {cores} cores, {}",
        field("model name").unwrap_or(std::env::consts::ARCH),
        std::env::consts::OS
    )
}
