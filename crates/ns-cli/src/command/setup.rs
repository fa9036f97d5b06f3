//! From the arguments that verbs with fits share to an analysis.

use std::num::NonZeroUsize;

use nextstat::settings::{AsimovPoi, AsimovPoint};
use nextstat::{Analysis, CompiledModel, DataSource, Settings};
use ns_device::Backend;

use super::model;
use crate::args::{Assignment, DeviceArgs, SetupArgs, ThreadArgs};
use crate::error::CliError;

/// What a verb with fits computes on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Machine {
    threads: Option<NonZeroUsize>,
    device: Option<Backend>,
}

impl Machine {
    /// The CPU only.
    pub(super) fn cpu(threads: &ThreadArgs) -> Self {
        Self { threads: Some(threads.count()), device: None }
    }

    /// The CPU, and the device that is asked for.
    pub(super) fn with_device(threads: &ThreadArgs, device: &DeviceArgs) -> Self {
        Self { threads: Some(threads.count()), device: device.backend() }
    }
}

/// Reads and compiles what `args` mean.
pub(super) fn analysis(args: &SetupArgs, machine: Machine) -> Result<Analysis, CliError> {
    analysis_of(args, &model::model(&args.model)?, machine)
}

/// The same for a model that was compiled already.
pub(super) fn analysis_of(args: &SetupArgs, model: &CompiledModel, machine: Machine) -> Result<Analysis, CliError> {
    Ok(Analysis::new(model, &settings(args, machine))?)
}

fn settings(args: &SetupArgs, Machine { threads, device }: Machine) -> Settings {
    Settings {
        data: data(args),
        fixed: named(&args.fix),
        bounds: args.bounds.iter().map(|range| (range.name.clone(), range.bounds)).collect(),
        multi_start: args.multi_start,
        seed: args.seed,
        threads,
        device,
        ..Settings::default()
    }
}

fn data(args: &SetupArgs) -> DataSource {
    if args.asimov.is_none() && args.asimov_at.is_empty() {
        return DataSource::Observed;
    }
    let poi = match args.asimov {
        None => AsimovPoi::Initial,
        Some(None) => AsimovPoi::One,
        Some(Some(mu)) => AsimovPoi::At(mu),
    };
    DataSource::Asimov(AsimovPoint { poi, parameters: named(&args.asimov_at) })
}

fn named(given: &[Assignment]) -> Vec<(String, f64)> {
    given.iter().map(|assignment| (assignment.name.clone(), assignment.value)).collect()
}
