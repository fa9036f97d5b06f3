//! Arguments of verbs that throw toys: how the toys are made and divided.

use super::values::ValueError;
use crate::error::CliError;
use clap::{Args, ValueEnum};
use nextstat::toys::{ToyOptions, ToyPart};
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{AuxTreatment, ToyRun};
use ns_translate::toys::{Shard, ToyFileMode};
use std::num::NonZeroUsize;
use std::path::Path;

/// How toys are made and divided.
#[derive(Debug, Args)]
pub(crate) struct ToyRunArgs {
    /// Auxiliary data of toys
    #[arg(long, value_name = "AUX", value_enum, default_value_t)]
    aux: AuxChoice,

    /// Make only the K-th of N contiguous shards of the toys, K from 1; needs a NumPy file; `toys
    /// merge` joins shards
    #[arg(long, value_name = "K/N", value_parser = shard)]
    shard: Option<Shard>,

    /// Continue a run with the same arguments that was interrupted or killed; needs a NumPy file
    #[arg(long)]
    resume: bool,

    /// Toys that a thread takes at a time; results do not depend on it
    #[arg(long, value_name = "N", default_value_t = ToyRun::BATCH, allow_hyphen_values = true)]
    batch: NonZeroUsize,
}

impl Default for ToyRunArgs {
    fn default() -> Self {
        Self { aux: AuxChoice::default(), shard: None, resume: false, batch: ToyRun::BATCH }
    }
}

impl ToyRunArgs {
    /// Returns how toys are made.
    pub(crate) fn options(&self) -> ToyOptions {
        let part = ToyPart::Shard(self.shard.unwrap_or(Shard::WHOLE));
        ToyOptions { aux: self.aux.aux(), part, batch: self.batch }
    }

    /// Returns how a file of toys is opened.
    pub(crate) fn mode(&self) -> ToyFileMode {
        if self.resume { ToyFileMode::Resume } else { ToyFileMode::Fresh }
    }

    /// Returns the shard, if one was given, and whether a run is continued.
    pub(crate) fn division(&self) -> (Option<Shard>, bool) {
        (self.shard, self.resume)
    }

    /// Refuses options that need the file of toys that the option `file` names.
    pub(crate) fn require_no_file_options(&self, file: &'static str) -> Result<(), CliError> {
        let shard = self.shard.map(|_| "--shard");
        match shard.or_else(|| self.resume.then_some("--resume")) {
            Some(option) => Err(CliError::NeedsToyFile { option, file }),
            None => Ok(()),
        }
    }
}

/// How toys are made by verbs that decide from the toys so far how many more to throw.
#[derive(Debug, Args)]
pub(crate) struct AdaptiveToyArgs {
    /// Auxiliary data of toys
    #[arg(long, value_name = "AUX", value_enum, default_value_t)]
    aux: AuxChoice,

    /// Toys that a thread takes at a time; results do not depend on it
    #[arg(long, value_name = "N", default_value_t = ToyRun::BATCH, allow_hyphen_values = true)]
    batch: NonZeroUsize,
}

impl AdaptiveToyArgs {
    /// Returns how toys are made.
    pub(crate) fn options(&self) -> ToyOptions {
        ToyOptions { aux: self.aux.aux(), batch: self.batch, ..ToyOptions::default() }
    }
}

/// Returns `true` if `path` names a NumPy file.
pub(crate) fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npy")
}

/// What happens to the auxiliary data of toys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuxChoice {
    /// Drawn like the main bins
    #[default]
    Fluctuated,
    /// Fixed at their observed values, for comparisons only: p-values are wrong
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

/// The test statistics that can be tested by toys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToyStatistic {
    /// q_μ, for upper limits
    Q,
    /// q̃_μ, for upper limits on a parameter that is not negative
    #[default]
    Qtilde,
    /// q₀, for a discovery
    Q0,
}

impl From<ToyStatistic> for TestStatistic {
    fn from(statistic: ToyStatistic) -> Self {
        match statistic {
            ToyStatistic::Q => Self::Q,
            ToyStatistic::Qtilde => Self::QTilde,
            ToyStatistic::Q0 => Self::Q0,
        }
    }
}

/// Parses `K/N`.
pub(crate) fn shard(text: &str) -> Result<Shard, ValueError> {
    let form = || ValueError::Form { form: "K/N", example: "1/4".to_owned() };
    let (index, of) = text.split_once('/').ok_or_else(form)?;
    let (Ok(index), Ok(of)) = (index.trim().parse::<u64>(), of.trim().parse::<u64>()) else { return Err(form()) };
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
                "there is no shard 0 of 3: K is 1 to 3",
                "there is no shard 4 of 3: K is 1 to 3",
                "expected `K/N`, such as `1/4`",
                "expected `K/N`, such as `1/4`"
            ]
        );
    }
}
