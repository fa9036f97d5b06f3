//! The verbs of the command: a table, and one file for each with its arguments, its work and its
//! summary.
//!
//! To add a verb, write a file with a clap struct that implements [`Command`], and add a line to
//! the table.

mod check;
mod combine;
mod completions;
mod convert;
mod coverage;
mod decorrelate;
mod devices;
mod digest;
mod evaluate;
mod every_patch;
mod every_poi;
mod exclusion;
mod fit;
mod fit_runs;
mod fits;
mod gof;
mod hypotest;
mod hypotest_toys;
mod in_python;
mod inspect;
mod interval;
mod job;
mod json2xml;
mod limit;
mod limit_scan;
mod man;
mod merge;
mod patchset;
mod prune;
mod ranking;
mod rename;
mod report;
mod scan;
mod schema;
mod search;
mod signal_scan;
mod significance;
mod simplify;
mod sort;
mod table;
mod toy_limits;
mod toys;
mod yields;

use crate::args::ShardedArgs;
use crate::args::files::Files;
use crate::error::CliError;
use crate::status::Status;
use clap::{Parser, Subcommand};

macro_rules! exit_codes {
    () => {
        "\
Exit codes:
  0  done
  1  done, but a fit did not converge, `check` found errors, or `patchset verify` found another workspace
  2  bad input or usage
  130  interrupted by Ctrl-C; results obtained until then are written

A terminal gets the table of a result; a pipe, and a file named with --output-file, get JSON, and --json writes it to a terminal, too. --summary prints the table in any case, --quiet in none."
    };
}

/// What the help of a verb ends with.
pub(crate) const EXIT_CODES: &str = exit_codes!();

const AFTER_HELP: &str = concat!(
    "build, hepdata, plot, xml2json and contrib run in the Python package (pip install 'nextstat-rs[build,hepdata,plot,xmlio]'), with the `python3` of the search path or that of NEXTSTAT_PYTHON.\n\n",
    exit_codes!()
);

/// Statistical inference for binned particle-physics analyses (HistFactory)
#[derive(Debug, Parser)]
#[command(name = "nextstat", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The arguments of a verb.
pub(crate) trait Command: Sized {
    /// Returns the files that the verb reads and writes, which must be different ones.
    fn files(&self) -> Files<'_> {
        Files::default()
    }

    /// Returns what a job must know of a run that can be divided into shards, and `None` for
    /// every other one.
    fn sharded(&self) -> Option<ShardedArgs<'_>> {
        None
    }

    /// Does the work of the verb and writes its result.
    fn run(self) -> Result<Status, CliError>;
}

/// Defines [`Verb`] from the table of verbs: help text, name and arguments.
macro_rules! verbs {
    ($($(#[$($attribute:tt)*])* $verb:ident: $arguments:ty,)+) => {
        /// One variant for each verb.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Verb {
            $($(#[$($attribute)*])* $verb(Box<$arguments>),)+
        }

        impl Command for Verb {
            fn files(&self) -> Files<'_> {
                match self {
                    $(Self::$verb(arguments) => arguments.files(),)+
                }
            }

            fn sharded(&self) -> Option<ShardedArgs<'_>> {
                match self {
                    $(Self::$verb(arguments) => arguments.sharded(),)+
                }
            }

            fn run(self) -> Result<Status, CliError> {
                match self {
                    $(Self::$verb(arguments) => arguments.run(),)+
                }
            }
        }
    };
}

verbs! {
    /// Fit a model to its data: best-fit parameters, uncertainties, and a verdict on the fit
    Fit: fit::FitArgs,
    /// Fit many data sets of your own, such as bootstrap replicas
    Fits: fits::FitsArgs,
    /// Test the goodness of fit: distance to the saturated model, degrees of freedom and p-value,
    /// in total and for each channel
    Gof: gof::GofArgs,
    /// Summarise one fit: parameters, pulls, correlations, pre-fit and post-fit yields, goodness of
    /// fit
    Report: report::ReportArgs,
    /// Predict the yields of every channel before and after a fit, or with a stored fit
    Yields: yields::YieldsArgs,
    /// Scan the profile likelihood of one or two parameters
    Scan: scan::ScanArgs,
    /// Rank nuisance parameters by their impact on the parameter of interest
    Ranking: ranking::RankingArgs,
    /// Evaluate the likelihood, its gradient and the expected data at given points
    Evaluate: evaluate::EvaluateArgs,
    /// Test a value of the parameter of interest: CLs, observed and expected
    #[command(visible_alias = "cls")]
    Hypotest: hypotest::HypotestArgs,
    /// Find upper limits on the parameter of interest, observed and expected
    Limit: limit::LimitArgs,
    /// Find exclusion contours in a plane of two labels, from the tests or limits of every patch
    Exclusion: exclusion::ExclusionArgs,
    /// Compute the significance of a discovery, observed and expected
    Significance: significance::SignificanceArgs,
    /// Search for every signal of a patch set: local significances, and the global significance of
    /// the largest
    Search: search::SearchArgs,
    /// Test many signals, given as numbers of events, with one background: CLs and upper limits
    SignalScan: signal_scan::SignalScanArgs,
    /// Write a table of a stored result as LaTeX, CSV or Markdown
    Table: table::TableArgs,
    /// Throw toys from a model and fit each of them
    Toys: toys::ToysArgs,
    /// Test a value of the parameter of interest by toys: CLs without asymptotic formulas
    HypotestToys: hypotest_toys::HypotestToysArgs,
    /// Find a confidence interval of the parameter of interest by toys: Feldman-Cousins
    Interval: interval::IntervalArgs,
    /// Determine the coverage of intervals by toys: how often they contain the true value
    Coverage: coverage::CoverageArgs,
    /// Write the scripts that run the shards of toys, fits or a patch set on a cluster, and merge
    /// them
    Job: job::JobArgs,
    /// Show the contents of a workspace
    Inspect: inspect::InspectArgs,
    /// Check a model for problems before fitting it
    Check: check::CheckArgs,
    /// Combine workspaces into one
    Combine: combine::CombineArgs,
    /// Remove channels, samples, modifiers or measurements from a workspace
    Prune: prune::PruneArgs,
    /// Rename channels, samples, modifiers or measurements of a workspace
    Rename: rename::RenameArgs,
    /// Split parameters of a workspace by channel or by sample
    Decorrelate: decorrelate::DecorrelateArgs,
    /// Convert a workspace to pyhf JSON, HS3 or HistFactory XML
    Convert: convert::ConvertArgs,
    /// Make a small workspace of the background of a few channels, with its moments
    Simplify: simplify::SimplifyArgs,
    /// Sort a workspace by name
    Sort: sort::SortArgs,
    /// Work with patch sets: many signals for one background-only workspace
    Patchset: patchset::PatchsetArgs,
    /// Print the digest of a workspace, as patch sets contain it
    Digest: digest::DigestArgs,
    /// Make a workspace of histograms or ntuples in ROOT files, as a configuration says
    Build: in_python::BuildArgs,
    /// Write a submission to HEPData from stored results and the workspace
    Hepdata: in_python::HepdataArgs,
    /// Draw a figure of stored results, such as pulls, a ranking, or data and prediction
    Plot: in_python::PlotArgs,
    /// Convert HistFactory XML with its ROOT files to a workspace
    #[command(name = "xml2json")]
    Xml2Json: in_python::Xml2JsonArgs,
    /// Convert a workspace to HistFactory XML with a ROOT file, in pyhf's folders
    #[command(name = "json2xml")]
    Json2Xml: json2xml::Json2XmlArgs,
    /// Download published likelihoods
    Contrib: in_python::ContribArgs,
    /// List the devices, test those that are available, and say why the others are not
    Devices: devices::DevicesArgs,
    /// Print the JSON schema of a document, or the names of the schemas
    Schema: schema::SchemaArgs,
    /// Print a completion script for a shell
    Completions: completions::CompletionsArgs,
    /// Print the manual page of the command or of a verb, or write all of them to a directory
    Man: man::ManArgs,
}
