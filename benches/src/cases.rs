//! Published cases: evaluations and fits of the named ones, and the whole corpus in one process.

use crate::measure::{BATCH, Measured, Times, fit_once, measure, measure_batch};
use crate::procedures::{Procedures, measure_procedures};
use clap::Args;
use ns_core::{CompileOptions, Model, PoiChoice, compile};
use ns_translate::{DocumentSource, LoadRequest, load};
use serde_json::Value;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The cases that are measured when none is named.
const NAMED: &[&str] = &[
    "pyhf_2bin_1ch",
    "atlas_jets0l_GGd1+sig",
    "atlas_tHu_fcnc",
    "atlas_tttt",
    "atlas_1lbb+C1N2_Wh_hbb_500_150",
    "atlas_3l_offshell+sig",
];

/// The cases that toys are thrown of.
const TOYS: &[&str] = &["atlas_tHu_fcnc", "atlas_tttt"];

#[derive(Debug, Args)]
pub(crate) struct CasesArgs {
    /// Where the published workspaces are
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// Measure this case; repeatable
    #[arg(long)]
    case: Vec<String>,
    /// Measure only this workspace, of any format that the engine reads; repeatable
    #[arg(long, conflicts_with_all = ["case", "json"])]
    workspace: Vec<PathBuf>,
    /// Print JSON, and leave out the corpus
    #[arg(long)]
    json: bool,
    /// Milliseconds spent on each number
    #[arg(long, default_value_t = 500)]
    budget: u64,
}

pub(crate) fn run(arguments: &CasesArgs) -> Result<(), Box<dyn Error>> {
    let budget = Duration::from_millis(arguments.budget);
    if !arguments.workspace.is_empty() {
        return workspaces(&arguments.workspace, budget);
    }
    let list = arguments.data.join("cases.json");
    if !list.exists() {
        println!("skipped: no published workspaces in {}", arguments.data.display());
        return Ok(());
    }
    let cases: Value = serde_json::from_slice(&std::fs::read(list)?)?;
    let named: Vec<String> = if arguments.case.is_empty() {
        NAMED.iter().map(|&name| name.to_owned()).collect()
    } else {
        arguments.case.clone()
    };
    let mut all = serde_json::Map::new();
    let mut procedures = Vec::new();
    if !arguments.json {
        print_heading();
    }
    for name in named {
        let entry = cases.get(&name).ok_or_else(|| format!("no case is called `{name}`"))?;
        let model = read(&arguments.data, entry)?;
        let measured = measure(&model, budget);
        if arguments.json {
            all.insert(name, serde_json::to_value(&measured)?);
        } else {
            print_row(&name, &measured);
            print_batch(measure_batch(&model, budget));
            procedures.extend(model.poi().map(|poi| (name, measure_procedures(&model, poi, budget))));
        }
    }
    if arguments.json {
        println!("{}", Value::Object(all));
        return Ok(());
    }
    print_procedures(&procedures);
    for name in TOYS.iter().filter(|name| arguments.case.is_empty() || arguments.case.iter().any(|case| case == *name))
    {
        let entry = cases.get(*name).ok_or_else(|| format!("no case is called `{name}`"))?;
        crate::toys::print_rows(name, &read(&arguments.data, entry)?)?;
    }
    corpus(&arguments.data, &cases)
}

/// Measures the workspaces in `files`.
fn workspaces(files: &[PathBuf], budget: Duration) -> Result<(), Box<dyn Error>> {
    print_heading();
    let mut procedures = Vec::new();
    for file in files {
        let workspace = load(&LoadRequest::new(DocumentSource::Path(file.clone())))?;
        let model = compile(&workspace, &CompileOptions::default())?;
        let name = file.display().to_string();
        print_row(&name, &measure(&model, budget));
        procedures.extend(model.poi().map(|poi| (name, measure_procedures(&model, poi, budget))));
    }
    print_procedures(&procedures);
    Ok(())
}

fn print_heading() {
    println!(
        "{:34} {:>5} {:>5} {:>17} {:>17} {:>17} {:>19}",
        "case", "P", "B", "NLL µs", "gradient µs", "Hessian µs", "fit ms"
    );
}

/// Procedures made of many fits, each with its own free fit: milliseconds, least and median.
fn print_procedures(rows: &[(String, Procedures)]) {
    println!(
        "\n{:34} {:>17} {:>17} {:>17} {:>7} {:>19}",
        "case, ms", "CLs", "limits", "scan, 21 points", "refits", "classic ranking"
    );
    for (name, done) in rows {
        let both = |t: &Times| format!("{:.2} / {:.2}", t.min_us / 1e3, t.median_us / 1e3);
        println!(
            "{name:34} {:>17} {:>17} {:>17} {:>7} {:>19}",
            both(&done.cls.times),
            both(&done.limit.times),
            both(&done.scan.times),
            done.n_refits,
            both(&done.ranking.times)
        );
    }
    println!();
}

fn print_row(name: &str, m: &Measured) {
    let both = |min: f64, median: f64| format!("{min:.1} / {median:.1}");
    println!(
        "{name:34} {:>5} {:>5} {:>17} {:>17} {:>17} {:>19}{}",
        m.n_params,
        m.n_bins,
        both(m.nll.min_us, m.nll.median_us),
        both(m.gradient.min_us, m.gradient.median_us),
        both(m.hessian.min_us, m.hessian.median_us),
        format!("{:.3} / {:.3}", m.fit.min_us / 1e3, m.fit.median_us / 1e3),
        if m.converged { "" } else { "  did not converge" }
    );
}

fn print_batch(threads: [Times; 2]) {
    let [one, two] = threads.map(|t| format!("{:.2} / {:.2} ms", t.min_us / 1e3, t.median_us / 1e3));
    println!("{:34} {BATCH} batched NLL + gradient: {one} on one thread, {two} on two", "");
}

/// Every case read, compiled and fitted with uncertainties, one after the other.
fn corpus(data: &Path, cases: &Value) -> Result<(), Box<dyn Error>> {
    let entries = cases.as_object().ok_or("cases.json is not an object")?;
    let (mut reading, mut fitting, mut failed) = (Duration::ZERO, Duration::ZERO, Vec::new());
    for (name, entry) in entries {
        let start = Instant::now();
        let model = read(data, entry)?;
        reading += start.elapsed();
        let start = Instant::now();
        if !fit_once(&model).converged {
            failed.push(name.as_str());
        }
        fitting += start.elapsed();
    }
    let (reading, fitting) = (reading.as_secs_f64(), fitting.as_secs_f64());
    println!(
        "the whole corpus, {} cases, one process: {:.3} s (reading and compiling {reading:.3} s, fits with uncertainties {fitting:.3} s)",
        entries.len(),
        reading + fitting
    );
    if !failed.is_empty() {
        println!("did not converge: {}", failed.join(", "));
    }
    Ok(())
}

/// The model of one entry of cases.json.
pub(crate) fn read(data: &Path, entry: &Value) -> Result<Model, Box<dyn Error>> {
    let text = |key: &str| entry[key].as_str().map(str::to_owned);
    let mut request =
        LoadRequest::new(DocumentSource::Path(file(data, entry["file"].as_str().ok_or("a case without a file")?)));
    for patch in entry["patches"].as_array().into_iter().flatten() {
        let part = |i: usize| patch[i].as_str().ok_or("a patch that is not a list of words");
        match part(0)? {
            "patchset" => request.patchset = Some((file(data, part(1)?), part(2)?.to_owned())),
            _ => request.patches.push(DocumentSource::Path(file(data, part(1)?))),
        }
    }
    let poi = if entry["poi"].is_null() { PoiChoice::None } else { PoiChoice::FromMeasurement };
    let options = CompileOptions { measurement: text("measurement"), poi, ..Default::default() };
    Ok(compile(&load(&request)?, &options)?)
}

fn file(data: &Path, stem: &str) -> PathBuf {
    let plain = data.join("workspaces").join(format!("{stem}.json"));
    if plain.exists() { plain } else { plain.with_extension("json.zst") }
}
