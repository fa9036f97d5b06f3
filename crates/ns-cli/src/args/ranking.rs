//! Arguments of `ranking`.

use clap::{Args, ValueEnum};
use ns_inference::ranking::RankingMethods;

use super::values::{GroupPatterns, group};
use super::{DeviceArgs, EXIT_CODES, OutputArgs, SetupArgs, ThreadArgs};

/// Arguments of `ranking`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RankingArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,

    /// What impact means
    #[arg(long, value_name = "METHOD", value_enum, default_value_t)]
    pub(crate) method: Method,

    /// The common impact of all parameters whose name matches a pattern, in which `*` stands for anything and `?` for one character; repeatable
    #[arg(long, value_name = "NAME=PATTERN,…", value_parser = group)]
    pub(crate) group: Vec<GroupPatterns>,

    /// How many parameters the summary for people shows
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub(crate) top: usize,

    /// Take the post-fit impacts at the ends of MINOS intervals, rather than one standard deviation away
    #[arg(long)]
    pub(crate) minos: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

/// What impact means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Method {
    /// Refits with the parameter held one pre-fit and one post-fit uncertainty away
    Classic,
    /// Refits with its auxiliary datum shifted; these add up to the uncertainty of the parameter of interest
    Global,
    /// Formulas of the covariance, without refits
    Covariance,
    /// All of them, side by side
    #[default]
    All,
}

impl From<Method> for RankingMethods {
    fn from(method: Method) -> Self {
        let is = |wanted| method == wanted || method == Method::All;
        Self { classic: is(Method::Classic), global: is(Method::Global), covariance: is(Method::Covariance) }
    }
}
