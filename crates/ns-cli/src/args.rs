//! Arguments that verbs share, and how they become a workspace, a model or an analysis.

pub(crate) mod card;
mod combine_flags;
pub(crate) mod device;
pub(crate) mod files;
mod frozen;
mod ignored;
mod model;
mod setup;
mod sharded;
mod toy_run;
pub(crate) mod values;

pub(crate) use card::CardArgs;
pub(crate) use device::DeviceArgs;
pub(crate) use ignored::IgnoredArgs;
pub(crate) use model::{InputArgs, ModelArgs, SourceArgs, ThreadArgs, compile_error, named_or_piped};
pub(crate) use setup::{HideArgs, PredictionArgs, SetupArgs, in_fit, stored_fit};
pub(crate) use sharded::{ResultFile, ShardedArgs, is_piped};
pub(crate) use toy_run::{AdaptiveToyArgs, AuxChoice, ToyRunArgs, ToyStatistic, is_npy, shard};
