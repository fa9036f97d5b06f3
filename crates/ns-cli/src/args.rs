//! What can be asked of the command: clap structs whose doc comments are the help.
//!
//! Nothing here looks into a workspace; names and numbers are taken as typed, and `command` finds out what is meant.

mod check;
mod device;
mod digest;
mod evaluate;
mod files;
mod fit;
mod gof;
mod hypotest;
mod ignored;
mod model;
mod patchset;
mod ranking;
mod report;
mod scan;
mod setup;
mod toys;
mod values;
mod workspaces;

pub(crate) use check::CheckArgs;
pub(crate) use device::{DeviceArgs, DevicesArgs};
pub(crate) use digest::DigestArgs;
pub(crate) use evaluate::EvaluateArgs;
pub(crate) use fit::FitArgs;
pub(crate) use gof::GofArgs;
pub(crate) use hypotest::{CalculatorArg, HypotestArgs, LimitArgs, SignificanceArgs};
pub(crate) use ignored::IgnoredArgs;
pub(crate) use model::{
    InputArgs, InterpolationDefaults, ModelArgs, OutputArgs, SourceArgs, ThreadArgs, named_or_piped,
};
pub(crate) use patchset::{ApplyArgs, ExtractArgs, PatchsetArgs, PatchsetVerb, SetArgs, VerifyArgs};
pub(crate) use ranking::RankingArgs;
pub(crate) use report::ReportArgs;
pub(crate) use scan::ScanArgs;
pub(crate) use setup::SetupArgs;
pub(crate) use toys::{HypotestToysArgs, MergeArgs, RunArgs, ThrowArgs, ThrowAt, ToyStatistic, ToysArgs, ToysVerb};
pub(crate) use values::{Assignment, Range};
pub(crate) use workspaces::{CombineArgs, PruneArgs, RenameArgs, SortArgs};

use clap::{Args, Parser, Subcommand};

macro_rules! exit_codes {
    () => {
        "\
Exit codes:
  0  done
  1  done, but the answer is no: a fit did not converge, `check` found errors, `patchset verify` found another workspace
  2  bad input or usage
  130  interrupted by Ctrl-C; what was done until then is written

JSON goes to standard output. If standard error is a terminal, a summary for people goes there, unless --quiet; --summary prints it anywhere."
    };
}

const EXIT_CODES: &str = exit_codes!();

const AFTER_HELP: &str = concat!(
    "Only the `nextstat` of the Python package has `xml2json` and `json2xml` (HistFactory XML with its ROOT files) and `contrib download`.\n\n",
    exit_codes!()
);

/// Statistical inference for binned particle-physics analyses (HistFactory)
#[derive(Debug, Parser)]
#[command(name = "nextstat", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// One variant per verb; each has a file of the same name in `command`.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Fit a model to its data: best-fit parameters, uncertainties, and whether to trust them
    Fit(Box<FitArgs>),
    /// Goodness of fit: the distance to the saturated model, its degrees of freedom and p-value, as a whole and channel by channel
    Gof(GofArgs),
    /// Everything about one fit: parameters, pulls, correlations, yields before and after with uncertainties, goodness of fit
    Report(ReportArgs),
    /// Scan the profile likelihood of one or two parameters
    Scan(Box<ScanArgs>),
    /// Rank nuisance parameters by their impact on the parameter of interest
    Ranking(Box<RankingArgs>),
    /// Evaluate the likelihood, its gradient and the expected data at given points
    Evaluate(EvaluateArgs),
    /// Test a value of the parameter of interest: CLs, observed and expected
    #[command(visible_alias = "cls")]
    Hypotest(Box<HypotestArgs>),
    /// Upper limits on the parameter of interest, observed and expected
    Limit(Box<LimitArgs>),
    /// The significance of a discovery, observed and expected
    Significance(Box<SignificanceArgs>),
    /// Throw toys from a model and fit each of them
    Toys(Box<ToysArgs>),
    /// Test a value of the parameter of interest by toys: CLs without asymptotic formulas
    HypotestToys(Box<HypotestToysArgs>),
    /// Show what a workspace contains
    Inspect(InspectArgs),
    /// Find what makes a model wrong before a fit does
    Check(CheckArgs),
    /// Combine two workspaces into one
    Combine(CombineArgs),
    /// Leave out channels, samples, modifiers or measurements of a workspace
    Prune(PruneArgs),
    /// Rename channels, samples, modifiers or measurements of a workspace
    Rename(RenameArgs),
    /// Sort a workspace by names
    Sort(SortArgs),
    /// Work with patch sets: many signals for one background-only workspace
    Patchset(PatchsetArgs),
    /// Print the digest of a workspace, as patch sets carry it
    Digest(DigestArgs),
    /// List the devices that can compute, test each, and say of the others why they cannot
    Devices(DevicesArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// Arguments of `inspect`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// The measurement to mark as chosen; the first one if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) measurement: Option<String>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to write for
    pub(crate) shell: clap_complete::Shell,
}
