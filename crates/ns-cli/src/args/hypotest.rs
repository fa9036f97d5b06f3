//! Arguments of `hypotest`, `significance` and `limit`.

use clap::{Args, ValueEnum};
use ns_inference::test_statistic::TestStatistic;

use super::toys::{AuxChoice, BATCH};
use super::values::{finite, fraction};
use super::{
    DeviceArgs, EXIT_CODES, HypotestToysArgs, IgnoredArgs, OutputArgs, RunArgs, SetupArgs, ThreadArgs, ToyStatistic,
};

/// Arguments of `hypotest`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct HypotestArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,

    /// The tested value of the parameter of interest; `q0` always tests 0
    #[arg(long, visible_alias = "test-poi", value_name = "MU", value_parser = finite, default_value_t = 1.0, allow_hyphen_values = true)]
    pub(crate) mu: f64,

    /// The test statistic
    #[arg(long, visible_alias = "teststat", value_enum, default_value_t)]
    pub(crate) test_stat: StatisticArg,

    /// How the distributions of the test statistic are found
    #[arg(long, value_enum, default_value_t)]
    pub(crate) calctype: CalculatorArg,

    #[command(flatten)]
    pub(crate) patches: EveryPatchArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    #[command(flatten)]
    pub(crate) ignored: IgnoredArgs,
}

impl HypotestArgs {
    /// The same test by toys, with as many as pyhf has by default; the error is what toys cannot do.
    pub(crate) fn by_toys(self) -> Result<HypotestToysArgs, &'static str> {
        const N_TOYS: u64 = 2000;
        let test_stat = match self.test_stat {
            StatisticArg::Qtilde => ToyStatistic::Qtilde,
            StatisticArg::Q => ToyStatistic::Q,
            StatisticArg::Q0 => ToyStatistic::Q0,
            StatisticArg::T => return Err("--test-stat t"),
            StatisticArg::Ttilde => return Err("--test-stat ttilde"),
        };
        if self.patches.every_patch {
            return Err("--every-patch");
        }
        Ok(HypotestToysArgs {
            setup: self.setup,
            mu: (test_stat != ToyStatistic::Q0).then_some(self.mu),
            n_toys: N_TOYS,
            n_toys_b: None,
            test_stat,
            stop_at_error: None,
            toys_file: None,
            run: RunArgs { aux: AuxChoice::default(), shard: None, resume: false, batch: BATCH },
            output: self.output,
            threads: self.threads,
            device: DeviceArgs::default(),
        })
    }
}

/// Calculators by pyhf's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CalculatorArg {
    /// By asymptotic formulas
    #[default]
    Asymptotics,
    /// By 2000 toys of each hypothesis; `hypotest-toys` has more to choose from
    Toybased,
}

/// Arguments of `significance`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct SignificanceArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,

    /// The value of the parameter of interest for which the expected significance is given
    #[arg(long, value_name = "MU", value_parser = finite, default_value_t = 1.0, allow_hyphen_values = true)]
    pub(crate) mu: f64,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}

/// Arguments of `limit`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct LimitArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,

    /// CLs at the limit: 0.05 for a limit at 95 % confidence level
    #[arg(long, value_name = "LEVEL", value_parser = fraction, default_value_t = 0.05, allow_hyphen_values = true)]
    pub(crate) level: f64,

    /// The test statistic
    #[arg(long, visible_alias = "teststat", value_enum, default_value_t)]
    pub(crate) test_stat: LimitStatisticArg,

    /// Interpolate the limits from CLs on a grid that begins here, as pyhf does, instead of finding them
    #[arg(long, value_name = "MU", value_parser = finite, requires = "stop", allow_hyphen_values = true)]
    pub(crate) start: Option<f64>,

    /// The end of the grid
    #[arg(long, value_name = "MU", value_parser = finite, requires = "start", allow_hyphen_values = true)]
    pub(crate) stop: Option<f64>,

    /// The number of values in the grid
    #[arg(long, value_name = "N", default_value_t = 41, requires = "start", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub(crate) points: u32,

    #[command(flatten)]
    pub(crate) patches: EveryPatchArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}

/// The same question for a whole grid of signals.
#[derive(Debug, Args)]
pub(crate) struct EveryPatchArgs {
    /// Answer for every patch of the patch set, one signal after the other
    #[arg(long, requires = "patchset", conflicts_with = "patch_name")]
    pub(crate) every_patch: bool,
}

/// Test statistics by pyhf's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatisticArg {
    /// q̃_μ, for upper limits on a parameter that is not negative
    #[default]
    Qtilde,
    /// q_μ, for upper limits
    Q,
    /// q₀, for a discovery
    Q0,
    /// t_μ, two-sided
    T,
    /// t̃_μ, two-sided for a parameter that is not negative
    Ttilde,
}

/// Test statistics that limits are made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LimitStatisticArg {
    /// q̃_μ, for a parameter that is not negative
    #[default]
    Qtilde,
    /// q_μ
    Q,
}

impl From<StatisticArg> for TestStatistic {
    fn from(arg: StatisticArg) -> Self {
        match arg {
            StatisticArg::Qtilde => Self::QTilde,
            StatisticArg::Q => Self::Q,
            StatisticArg::Q0 => Self::Q0,
            StatisticArg::T => Self::T,
            StatisticArg::Ttilde => Self::TTilde,
        }
    }
}

impl From<LimitStatisticArg> for TestStatistic {
    fn from(arg: LimitStatisticArg) -> Self {
        match arg {
            LimitStatisticArg::Qtilde => Self::QTilde,
            LimitStatisticArg::Q => Self::Q,
        }
    }
}
