//! Arguments of `toys` and `hypotest-toys`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ns_inference::toys::AuxTreatment;
use ns_translate::toys::Shard;

use super::values::{ValueError, finite, n_toys};
use super::{DeviceArgs, EXIT_CODES, OutputArgs, SetupArgs, ThreadArgs};

/// Toys that a thread takes at a time, if nothing is said.
pub(super) const BATCH: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// Arguments of `toys`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ToysArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<ToysVerb>,

    #[command(flatten)]
    pub(crate) throw: ThrowArgs,
}

/// What can be done with toys that are there.
#[derive(Debug, Subcommand)]
pub(crate) enum ToysVerb {
    /// Join the shards of a run, of `toys` or `hypotest-toys`: the result is that of one run of all its toys
    Merge(MergeArgs),
}

/// Arguments of `toys merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The files of all shards, in any order, each with its `.json` beside it
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `toys` without a verb of its own.
#[derive(Debug, Args)]
pub(crate) struct ThrowArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,

    /// How many toys to throw and fit
    #[arg(long, value_name = "N", value_parser = n_toys, default_value = "1000", allow_hyphen_values = true)]
    pub(crate) n_toys: u64,

    /// Where to throw them
    #[arg(long, value_name = "POINT", value_enum, default_value_t)]
    pub(crate) throw_at: ThrowAt,

    /// Throw them with the parameter of interest at MU, the others where the data want them then
    #[arg(long, value_name = "MU", value_parser = finite, allow_hyphen_values = true)]
    pub(crate) mu: Option<f64>,

    /// Write this parameter only; the bare name of a vector writes every element; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) parameter: Vec<String>,

    /// Write the standard deviation of the parameter of interest too
    #[arg(long)]
    pub(crate) poi_uncertainty: bool,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

/// Arguments of `hypotest-toys`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct HypotestToysArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,

    /// The tested value of the parameter of interest, 1 if not given; `q0` always tests 0
    #[arg(long, value_name = "MU", value_parser = finite, allow_hyphen_values = true)]
    pub(crate) mu: Option<f64>,

    /// Toys of the tested hypothesis
    #[arg(long, value_name = "N", value_parser = n_toys, default_value = "1000", allow_hyphen_values = true)]
    pub(crate) n_toys: u64,

    /// Toys of the other hypothesis; as many if not given
    #[arg(long, value_name = "N", value_parser = n_toys, allow_hyphen_values = true)]
    pub(crate) n_toys_b: Option<u64>,

    /// The test statistic
    #[arg(long, value_name = "STATISTIC", value_enum, default_value_t)]
    pub(crate) test_stat: ToyStatistic,

    /// Stop as soon as the Monte-Carlo error of CLs is below this, which is looked at every 500 toys
    #[arg(long, value_name = "ERROR", value_parser = finite, conflicts_with = "shard", allow_hyphen_values = true)]
    pub(crate) stop_at_error: Option<f64>,

    /// Keep the statistic of every toy in this NumPy file
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) toys_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

/// How toys are made and divided.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What happens to the auxiliary data of toys
    #[arg(long, value_name = "AUX", value_enum, default_value_t)]
    pub(crate) aux: AuxChoice,

    /// Make only the K-th of N contiguous shares of the toys, K from 1; needs a NumPy file, `toys merge` joins them
    #[arg(long, value_name = "K/N", value_parser = shard)]
    pub(crate) shard: Option<Shard>,

    /// Go on where a run with the same arguments was interrupted or killed; needs a NumPy file
    #[arg(long)]
    pub(crate) resume: bool,

    /// Toys that a thread takes at a time; results are the same for any number
    #[arg(long, value_name = "N", default_value_t = BATCH)]
    pub(crate) batch: NonZeroUsize,
}

/// What happens to the auxiliary data of toys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuxChoice {
    /// They are drawn like the main bins
    #[default]
    Fluctuated,
    /// They stay as observed; for comparisons only, p-values come out wrong
    Fixed,
}

impl AuxChoice {
    pub(crate) fn aux(self) -> AuxTreatment {
        match self {
            Self::Fluctuated => AuxTreatment::Fluctuated,
            Self::Fixed => AuxTreatment::Fixed,
        }
    }
}

/// Where toys are thrown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThrowAt {
    /// At the best fit to the data
    #[default]
    Mle,
    /// At the model's starting values
    Init,
}

/// The test statistics that toys are made for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToyStatistic {
    /// For upper limits
    Q,
    /// The same for a parameter of interest that is not negative
    #[default]
    Qtilde,
    /// For a discovery
    Q0,
}

fn shard(text: &str) -> Result<Shard, ValueError> {
    const FORM: ValueError = ValueError::Form { form: "K/N" };
    let (index, of) = text.split_once('/').ok_or(FORM)?;
    let (Ok(index), Ok(of)) = (index.trim().parse::<u64>(), of.trim().parse::<u64>()) else { return Err(FORM) };
    if (1..=of).contains(&index) { Ok(Shard { index, of }) } else { Err(ValueError::NoSuchShard { index, of }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_count_from_one() {
        assert_eq!(shard("2/3"), Ok(Shard { index: 2, of: 3 }));
        let messages =
            ["0/3", "4/3", "1", "a/b"].map(|text| shard(text).map_or_else(|e| e.to_string(), |_| "ok".into()));
        assert_eq!(
            messages,
            [
                "there is no share 0 of 3; they count from 1",
                "there is no share 4 of 3; they count from 1",
                "expected `K/N`",
                "expected `K/N`"
            ]
        );
    }
}
