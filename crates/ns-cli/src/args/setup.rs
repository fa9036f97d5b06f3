//! Arguments of every verb that fits: the model, the data, and conditions on the parameters.

use super::combine_flags::CombineFlags;
use super::files::Files;
use super::values::{Assignment, GroupPatterns, Range, assignment, count, group, number, range, seed};
use super::{DeviceArgs, ModelArgs, ThreadArgs};
use crate::error::CliError;
use crate::output::{OutputArgs, reporter};
use clap::{Args, ValueEnum};
use nextstat::blinding::{Blinding, BlindingThreshold, SignalMeasure};
use nextstat::settings::{AsimovPoi, AsimovPoint};
use nextstat::stored::StoredFit;
use nextstat::{Analysis, DataSource, Settings, YieldPropagation};
use ns_translate::{DocumentSource, read_bytes};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A model, its data, and conditions on its parameters.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Fix a parameter at a value, which may be outside its range; the bare name of a vector fixes
    /// every element, a pattern (`JES_*`) all that it matches; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment, help_heading = "Data and fit")]
    fix: Vec<Assignment>,

    /// Range of a parameter, instead of the model's; repeatable
    #[arg(long, value_name = "NAME=LO:HI", value_parser = range, help_heading = "Data and fit")]
    bounds: Vec<Range>,

    /// Fit only channels with this name, or whose name matches this pattern (`CR_*`); repeatable
    #[arg(long, value_name = "CHANNEL", help_heading = "Data and fit")]
    fit_channels: Vec<String>,

    /// Leave a channel, or bins of it, out of the fit: `SR`, `SR_*`, `SR[3]`, or `SR[2:5]` for bins
    /// 2 to 4; yields and reports still predict them; repeatable
    #[arg(long, value_name = "CHANNEL", help_heading = "Data and fit")]
    mask: Vec<String>,

    /// Use the data expected at the model's starting values instead of the observed data, with the
    /// parameters of interest at MU (1 if not given)
    #[arg(long, value_name = "MU", num_args = 0..=1, require_equals = true, value_parser = number, allow_hyphen_values = true, help_heading = "Data and fit")]
    asimov: Option<Option<f64>>,

    /// Likewise, with the parameters at the best fit that `nextstat fit` or `nextstat report` wrote
    /// to this file, matched by name
    #[arg(long, value_name = "FILE", help_heading = "Data and fit")]
    asimov_from: Option<PathBuf>,

    /// Likewise, with another parameter at a value; repeatable
    #[arg(long, visible_alias = "set", value_name = "NAME=VALUE", value_parser = assignment, help_heading = "Data and fit")]
    asimov_at: Vec<Assignment>,

    /// Start each fit from N random points as well and keep the lowest minimum; N is 40 if not
    /// given
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, value_parser = count, default_missing_value = "40", help_heading = "Data and fit")]
    multi_start: Option<usize>,

    /// Seed of everything random
    #[arg(long, value_name = "SEED", value_parser = seed, default_value_t = 0, allow_hyphen_values = true, help_heading = "Data and fit")]
    seed: u64,

    #[command(flatten)]
    combine: CombineFlags,
}

/// Data that are not to be seen.
#[derive(Debug, Args)]
pub(crate) struct HideArgs {
    /// Hide the data of a channel, or of bins of it, and leave them out of the fit: `SR`, `SR_*`,
    /// `SR[3]`, or `SR[2:5]` for bins 2 to 4; repeatable
    #[arg(long, value_name = "CHANNEL", help_heading = "Data and fit")]
    blind: Vec<String>,

    /// Likewise every bin whose signal over background is at least this before the fit
    #[arg(long, value_name = "S/B", value_parser = number, allow_hyphen_values = true, help_heading = "Data and fit")]
    blind_above: Option<f64>,

    /// Measure of the signal s over the background b for --blind-above: `s/b`, `s/(s+b)`,
    /// `s/sqrt(b)` or `s/sqrt(s+b)`
    #[arg(long, value_name = "MEASURE", default_value_t, requires = "blind_above", help_heading = "Data and fit")]
    blind_by: SignalMeasure,
}

/// What yields and reports show: groups of samples, and which data not.
#[derive(Debug, Args)]
pub(crate) struct PredictionArgs {
    #[command(flatten)]
    hide: HideArgs,

    /// Fit the hidden data, although the fitted parameters show what they are
    #[arg(long, help_heading = "Data and fit")]
    fit_blinded: bool,

    /// Sum the samples with these names, or whose names match these patterns (`VV*`), with the
    /// correlations between them; tables show the group in place of its samples; repeatable
    #[arg(long, value_name = "NAME=PATTERN,…", value_parser = group, help_heading = "Yields")]
    group: Vec<GroupPatterns>,

    /// How the uncertainties of parameters become those of yields
    #[arg(long, value_name = "RULE", value_enum, default_value_t, help_heading = "Yields")]
    uncertainty: PropagationArg,
}

/// How the uncertainties of parameters become those of yields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum PropagationArg {
    /// By derivatives of the yields
    #[default]
    Derivative,
    /// By half the difference of the yields one standard deviation up and down, as in cabinetry
    HalfDifference,
}

impl From<PropagationArg> for YieldPropagation {
    fn from(arg: PropagationArg) -> Self {
        match arg {
            PropagationArg::Derivative => Self::Derivative,
            PropagationArg::HalfDifference => Self::HalfDifference,
        }
    }
}

impl HideArgs {
    /// Returns what is hidden; fits leave it out.
    pub(crate) fn blinding(&self) -> Blinding {
        let above = self.blind_above.map(|value| BlindingThreshold { value, measure: self.blind_by });
        Blinding { bins: self.blind.clone(), above, ..Blinding::default() }
    }
}

impl PredictionArgs {
    /// Returns what is hidden, from yields that a stored fit predicts if `is_stored`.
    fn blinding(&self, is_stored: bool) -> Blinding {
        Blinding { is_fitted: self.fit_blinded, may_hide_all: is_stored, ..self.hide.blinding() }
    }
}

impl SetupArgs {
    /// Returns the files of a verb with these arguments and `output`.
    pub(crate) fn files<'a>(&'a self, output: &'a OutputArgs) -> Files<'a> {
        Files::new(&self.model.input, output).reading_paths(self.asimov_from.as_slice())
    }

    /// Reads and compiles the model for an analysis on the CPU that hides some data
    /// and sums some samples.
    pub(crate) fn prediction(&self, threads: &ThreadArgs, shown: &PredictionArgs) -> Result<Analysis, CliError> {
        self.predicting(threads, shown, shown.blinding(false))
    }

    /// Makes the analysis of a prediction of a stored fit, which may hide all data.
    pub(crate) fn projection(&self, threads: &ThreadArgs, shown: &PredictionArgs) -> Result<Analysis, CliError> {
        self.predicting(threads, shown, shown.blinding(true))
    }

    fn predicting(&self, threads: &ThreadArgs, shown: &PredictionArgs, blind: Blinding) -> Result<Analysis, CliError> {
        let group = |group: &GroupPatterns| (group.name.clone(), group.patterns.clone());
        let sample_groups = shown.group.iter().map(group).collect();
        let propagation = shown.uncertainty.into();
        let settings = self.settings()?;
        self.resolved(&Settings { threads: Some(threads.count()), blind, sample_groups, propagation, ..settings })
    }

    /// Reads and compiles the model for an analysis on the CPU.
    pub(crate) fn on_cpu(&self, threads: &ThreadArgs) -> Result<Analysis, CliError> {
        self.analysis(threads, &DeviceArgs::default())
    }

    /// Reads and compiles the model for an analysis on the device that the arguments choose.
    pub(crate) fn analysis(&self, threads: &ThreadArgs, device: &DeviceArgs) -> Result<Analysis, CliError> {
        self.resolved(&Settings { threads: Some(threads.count()), device: device.name(), ..self.settings()? })
    }

    fn resolved(&self, settings: &Settings) -> Result<Analysis, CliError> {
        let model = self.model.model()?;
        let settings = self.combine.add(settings.clone(), &model)?;
        let analysis = Analysis::new(&model, &settings)?;
        analysis.data_warnings().iter().for_each(|warning| reporter::warning(warning));
        Ok(analysis)
    }

    /// Returns the settings for several models, with all threads and on the CPU.
    pub(crate) fn settings_of_several(&self) -> Result<Settings, CliError> {
        self.combine.require_none()?;
        self.settings()
    }

    /// Returns the settings without those of Combine's flags, with all threads and on the CPU.
    fn settings(&self) -> Result<Settings, CliError> {
        Ok(Settings {
            data: self.data()?,
            fit_channels: self.fit_channels.clone(),
            mask: self.mask.clone(),
            fixed: by_name(&self.fix),
            bounds: self.bounds.iter().map(|range| (range.name.clone(), range.bounds)).collect(),
            multi_start: self.multi_start,
            seed: self.seed,
            ..Settings::default()
        })
    }

    fn data(&self) -> Result<DataSource, CliError> {
        if self.asimov.is_none() && self.asimov_at.is_empty() && self.asimov_from.is_none() {
            return Ok(DataSource::Observed);
        }
        let poi = match self.asimov {
            None => AsimovPoi::Initial,
            Some(None) => AsimovPoi::One,
            Some(Some(mu)) => AsimovPoi::At(mu),
        };
        let fit = self.asimov_from.as_deref().map(stored_fit).transpose()?.map(Arc::new);
        Ok(DataSource::Asimov(AsimovPoint { fit, poi, parameters: by_name(&self.asimov_at) }))
    }
}

/// Reads a fit that was stored in the file `path`.
pub(crate) fn stored_fit(path: &Path) -> Result<StoredFit, CliError> {
    let source = DocumentSource::Path(path.to_owned());
    let fit = StoredFit::from_json(&read_bytes(&source)?);
    let in_file = |error| CliError::StoredFit { name: source.name(), error };
    Ok(fit.map_err(in_file)?.from_file(path.display().to_string()))
}

/// Adds the name of the file `path` to an error about the fit in it.
pub(crate) fn in_fit(path: &Path) -> impl Fn(nextstat::Error) -> CliError {
    let name = format!("`{}`", path.display());
    move |error| match error {
        nextstat::Error::StoredFit(error) => CliError::StoredFit { name: name.clone(), error },
        other => other.into(),
    }
}

fn by_name(given: &[Assignment]) -> Vec<(String, f64)> {
    given.iter().map(|assignment| (assignment.name.clone(), assignment.value)).collect()
}
