//! Flags of Combine's command, where they mean the same here.
//!
//! `--setParameters` sets where fits start in Combine, and what is constant; here it gives frozen
//! parameters their values, those of `-t -1` the values at which data are expected, and masks.

use clap::Args;
use nextstat::settings::{AsimovPoi, AsimovPoint};
use nextstat::{CompiledModel, DataSource, Settings};

use super::values::{Assignment, assignment, finite};
use crate::error::CliError;
use crate::output::reporter;

/// Flags with Combine's names.
#[derive(Debug, Args)]
pub(crate) struct CombineFlags {
    /// Values of parameters that are frozen, of the data expected with `-t -1`, and of masks
    /// (`mask_CHANNEL=1`), as in Combine
    #[arg(long = "setParameters", value_name = "NAME=VALUE,…", value_delimiter = ',', value_parser = assignment, help_heading = "Combine's flags")]
    set_parameters: Vec<Assignment>,

    /// Parameters that are fixed where they start, or where `--setParameters` sets them
    #[arg(long = "freezeParameters", value_name = "NAME,…", value_delimiter = ',', help_heading = "Combine's flags")]
    freeze_parameters: Vec<String>,

    /// `-1` for the data expected with the signal strength of `--expectSignal`
    #[arg(short = 't', value_name = "-1", allow_hyphen_values = true, help_heading = "Combine's flags")]
    combine_toys: Option<i64>,

    /// Signal strength of the data expected with `-t -1`; 0 if not given, as in Combine
    #[arg(long = "expectSignal", value_name = "R", value_parser = finite, allow_hyphen_values = true, requires = "combine_toys", help_heading = "Combine's flags")]
    expect_signal: Option<f64>,

    /// Lower end of the range of the parameter of interest
    #[arg(long = "rMin", value_name = "R", value_parser = finite, allow_hyphen_values = true, help_heading = "Combine's flags")]
    r_min: Option<f64>,

    /// Upper end of the range of the parameter of interest
    #[arg(long = "rMax", value_name = "R", value_parser = finite, allow_hyphen_values = true, help_heading = "Combine's flags")]
    r_max: Option<f64>,
}

impl CombineFlags {
    fn value(&self, name: &str) -> Option<f64> {
        self.set_parameters.iter().rev().find(|one| one.name == name).map(|one| one.value)
    }

    /// Adds to `settings` what needs no model: the data, masks, and values of frozen parameters.
    pub(crate) fn add(&self, settings: Settings) -> Result<Settings, CliError> {
        let is_asimov = match self.combine_toys {
            None => false,
            Some(-1) => true,
            Some(n) => return Err(CliError::CombineToys { n }),
        };
        let mut settings = settings;
        let mut expected = Vec::new();
        for Assignment { name, value } in &self.set_parameters {
            match name.strip_prefix("mask_") {
                Some(channel) if *value != 0.0 => settings.mask.push(channel.to_owned()),
                Some(_) => {}
                None if self.freeze_parameters.contains(name) => settings.fixed.push((name.clone(), *value)),
                None if is_asimov => expected.push((name.clone(), *value)),
                None => reporter::warning(&format!(
                    "`--setParameters {name}={value}` says where fits start: it has no effect on results here"
                )),
            }
        }
        if is_asimov {
            let poi = AsimovPoi::At(self.expect_signal.unwrap_or(0.0));
            settings.data = DataSource::Asimov(AsimovPoint { fit: None, poi, parameters: expected });
        }
        Ok(settings)
    }

    /// Adds to `settings` what is taken from the model: where frozen parameters start, and the
    /// other end of a range.
    pub(crate) fn add_of_model(&self, settings: Settings, model: &CompiledModel) -> Result<Settings, CliError> {
        let mut settings = settings;
        let parameters = &model.model().parameters;
        for name in self.freeze_parameters.iter().filter(|name| self.value(name).is_none()) {
            // An unknown name keeps a value, so that the settings name it as unknown.
            let start = parameters.index_of(name).map_or(0.0, |index| parameters.init[index]);
            settings.fixed.push((name.clone(), start));
        }
        if self.r_min.is_some() || self.r_max.is_some() {
            let poi = model.model().poi().ok_or(CliError::RangeWithoutPoi)?;
            let low = self.r_min.unwrap_or(parameters.lower[poi]);
            let high = self.r_max.unwrap_or(parameters.upper[poi]);
            settings.bounds.push((parameters.names[poi].clone(), [low, high]));
        }
        Ok(settings)
    }
}
