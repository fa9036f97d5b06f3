//! Times and memory of evaluations and fits: of published cases, and of a generated family against
//! its size.
//!
//! One thread, no harness: every number is the minimum and the median of repeated calls. Peers are
//! measured by `benches/peers.py` and `benches/procedures.py`, which call this program for our
//! side.

mod cases;
mod devices;
mod family;
mod gradients;
mod measure;
mod minima;
mod operators;
mod plot;
mod procedures;
mod scaling;
mod toys;
mod yields;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Times and memory of evaluations and fits")]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Published cases: evaluations, fits with uncertainties, the whole corpus
    Cases(cases::CasesArgs),
    /// Fits, toys and single kernels of two models on a device and on the CPU, as a section of
    /// benches/RECORD.md
    Devices(devices::DevicesArgs),
    /// Tests, limits, scans, rankings and toys of one published case, with their results, as JSON
    Procedures(procedures::ProceduresArgs),
    /// A generated family of models against its size
    Scaling(scaling::ScalingArgs),
    /// Yields with uncertainties and goodness of fit of a generated model of 1,000 bins, 10 samples
    /// and 1,200 parameters
    Yields(yields::YieldsArgs),
    /// Gradients with respect to templates of two models, of 8 and of 184 parameters
    Gradients(gradients::GradientsArgs),
    /// Default results against an exhaustive search for the lowest minimum, on random models with
    /// several minima
    Minima(minima::MinimaArgs),
    /// Fit and contour of an effective field theory of 300 bins, 8 coefficients and 200 nuisance
    /// parameters
    Operators(operators::OperatorsArgs),
    /// One model of the family, in this process, as JSON (`scaling` calls this, so that each peak
    /// of memory is its own)
    Point(scaling::PointArgs),
}

fn main() -> std::process::ExitCode {
    let done = match Arguments::parse().what {
        What::Cases(arguments) => cases::run(&arguments),
        What::Devices(arguments) => devices::run(&arguments),
        What::Procedures(arguments) => procedures::run(&arguments),
        What::Scaling(arguments) => scaling::run(&arguments),
        What::Yields(arguments) => yields::run(&arguments),
        What::Gradients(arguments) => gradients::run(&arguments),
        What::Minima(arguments) => minima::run(&arguments),
        What::Operators(arguments) => operators::run(&arguments),
        What::Point(arguments) => scaling::run_point(&arguments),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::from(2)
        }
    }
}
