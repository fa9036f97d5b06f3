//! Flags of Combine's command, where they mean the same here.
//!
//! `--setParameters` sets where fits start in Combine, and what is constant; here it gives frozen
//! parameters their values, those of `-t -1` the values at which data are expected, and masks.
//! Combine passes over names that the model does not have; here they are errors.

use clap::Args;
use nextstat::error::{Setting, SettingsError};
use nextstat::settings::{AsimovPoi, AsimovPoint, elements, require_finite, require_range};
use nextstat::{CompiledModel, DataSource, Settings};
use ns_core::pattern::is_pattern;
use ns_core::similar_name;

use super::frozen::{FrozenParameters, frozen};
use super::values::{Assignment, Range, assignment, combine_range, finite};
use crate::error::CliError;
use crate::output::reporter;

/// Flags with Combine's names.
#[derive(Debug, Args)]
pub(crate) struct CombineFlags {
    /// Values of parameters that are frozen, of the data expected with `-t -1`, and of masks
    /// (`mask_CHANNEL=1`), as in Combine
    #[arg(long = "setParameters", value_name = "NAME=VALUE,…", value_delimiter = ',', value_parser = assignment, help_heading = "Combine's flags")]
    set_parameters: Vec<Assignment>,

    /// Parameters that are fixed where they start, or where `--setParameters` sets them: names,
    /// `allConstrainedNuisances`, and regular expressions for names of constrained parameters
    /// (`rgx{…}`) and of all (`var{…}`)
    #[arg(long = "freezeParameters", value_name = "NAME,…", value_parser = frozen, help_heading = "Combine's flags")]
    freeze_parameters: Vec<FrozenParameters>,

    /// Ranges of parameters, `NAME=LO,HI:…`, as in Combine
    #[arg(long = "setParameterRanges", value_name = "RANGES", value_delimiter = ':', value_parser = combine_range, help_heading = "Combine's flags")]
    set_parameter_ranges: Vec<Range>,

    /// `-1` for the data expected with the signal strength of `--expectSignal`
    #[arg(short = 't', value_name = "-1", allow_hyphen_values = true, conflicts_with_all = ["asimov", "asimov_from", "asimov_at"], help_heading = "Combine's flags")]
    combine_toys: Option<i64>,

    /// Signal strength of the data expected with `-t -1`, if the model has one; without it those
    /// that `--setParameters` does not name are 0
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
    /// Refuses flags where there is no single model that they are about.
    pub(crate) fn require_none(&self) -> Result<(), CliError> {
        let given = [
            ("--setParameters", !self.set_parameters.is_empty()),
            ("--freezeParameters", !self.freeze_parameters.is_empty()),
            ("--setParameterRanges", !self.set_parameter_ranges.is_empty()),
            ("-t", self.combine_toys.is_some()),
            ("--rMin", self.r_min.is_some()),
            ("--rMax", self.r_max.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(CliError::OneModelOnly { flag }),
            None => Ok(()),
        }
    }

    /// Adds to `settings` what the flags say about `model`.
    pub(crate) fn add(&self, mut settings: Settings, model: &CompiledModel) -> Result<Settings, CliError> {
        let is_asimov = match self.combine_toys {
            None => false,
            Some(-1) => true,
            Some(n) => return Err(CliError::CombineToys { n }),
        };
        let values = self.values(&mut settings, model)?;
        let frozen = self.frozen(&settings, model)?;
        let parameters = &model.model().parameters;
        for &i in &frozen {
            let value = values.iter().find(|(set, _)| *set == i).map_or(parameters.init[i], |(_, value)| *value);
            settings.fixed.push((parameters.names[i].clone(), value));
        }
        if is_asimov {
            settings.data = self.expected(values, model)?;
        } else {
            for (i, value) in values.iter().filter(|(i, _)| !frozen.contains(i)) {
                reporter::warning(&format!(
                    "`--setParameters {}={value}` says where fits start: it has no effect on results here",
                    parameters.names[*i]
                ));
            }
        }
        self.add_ranges(&mut settings, model)?;
        Ok(settings)
    }

    /// Returns the values that `--setParameters` gives parameters, and adds its masks to
    /// `settings`.
    fn values(&self, settings: &mut Settings, model: &CompiledModel) -> Result<Vec<(usize, f64)>, CliError> {
        let mut values: Vec<(usize, f64)> = Vec::new();
        for Assignment { name, value } in &self.set_parameters {
            if let Some(channel) = name.strip_prefix("mask_") {
                require_channel(channel, model)?;
                if *value != 0.0 {
                    settings.mask.push(channel.to_owned());
                }
                continue;
            }
            require_finite(Setting::SetParameters, name, *value)?;
            for i in elements(&model.model().parameters, Setting::SetParameters, name)? {
                // The last value counts.
                values.retain(|(set, _)| *set != i);
                values.push((i, *value));
            }
        }
        Ok(values)
    }

    /// Returns the parameters that are frozen, but for those that `--fix` gives a value.
    fn frozen(&self, settings: &Settings, model: &CompiledModel) -> Result<Vec<usize>, CliError> {
        let parameters = &model.model().parameters;
        let mut fixed = Vec::new();
        for (name, _) in &settings.fixed {
            fixed.extend(elements(parameters, Setting::Fixed, name)?);
        }
        let mut found: Vec<usize> = Vec::new();
        for i in FrozenParameters::resolve(&self.freeze_parameters, model)? {
            if !fixed.contains(&i) && !found.contains(&i) {
                found.push(i);
            }
        }
        Ok(found)
    }

    /// Returns the data expected with `-t -1`, where the parameters have these `values`.
    fn expected(&self, values: Vec<(usize, f64)>, model: &CompiledModel) -> Result<DataSource, CliError> {
        let (parameters, pois) = (&model.model().parameters, &model.model().pois);
        if self.expect_signal.is_some() && pois.len() > 1 {
            let names = pois.iter().map(|&poi| parameters.names[poi].clone()).collect();
            return Err(CliError::ExpectSignalOfSeveral { names });
        }
        let (of_pois, mut values): (Vec<_>, Vec<_>) = values.into_iter().partition(|(i, _)| pois.contains(i));
        let poi = match self.expect_signal {
            Some(r) => AsimovPoi::At(r),
            None if pois.len() == 1 && !of_pois.is_empty() => AsimovPoi::Initial,
            None => AsimovPoi::At(0.0),
        };
        if self.expect_signal.is_none() {
            values.extend(of_pois);
        } else if !of_pois.is_empty() {
            reporter::warning(
                "`--expectSignal` and `--setParameters` give the signal strength a value: the former counts",
            );
        }
        let named = values.into_iter().map(|(i, value)| (parameters.names[i].clone(), value)).collect();
        Ok(DataSource::Asimov(AsimovPoint { fit: None, poi, parameters: named }))
    }

    /// Adds the ranges of parameters, and that of the parameter of interest.
    fn add_ranges(&self, settings: &mut Settings, model: &CompiledModel) -> Result<(), CliError> {
        let parameters = &model.model().parameters;
        let mut flags = vec!["--bounds"; settings.bounds.len()];
        for Range { name, bounds } in &self.set_parameter_ranges {
            elements(parameters, Setting::SetParameterRanges, name)?;
            require_range(Setting::SetParameterRanges, name, *bounds)?;
            settings.bounds.push((name.clone(), *bounds));
            flags.push("--setParameterRanges");
        }
        if self.r_min.is_some() || self.r_max.is_some() {
            let poi = model.model().poi().ok_or(CliError::RangeWithoutPoi)?;
            let low = self.r_min.unwrap_or(parameters.lower[poi]);
            let high = self.r_max.unwrap_or(parameters.upper[poi]);
            settings.bounds.push((parameters.names[poi].clone(), [low, high]));
            flags.push(if self.r_min.is_some() { "--rMin" } else { "--rMax" });
        }
        require_one_range(&settings.bounds, &flags, model)
    }
}

/// Refuses two `ranges` of one parameter unless both are by `--bounds`, whose message is right. A
/// name goes before a pattern.
fn require_one_range(
    ranges: &[(String, [f64; 2])],
    flags: &[&'static str],
    model: &CompiledModel,
) -> Result<(), CliError> {
    let parameters = &model.model().parameters;
    let mut seen: Vec<(usize, bool, &'static str)> = Vec::new();
    for ((name, _), &flag) in ranges.iter().zip(flags) {
        let is_pattern = is_pattern(name);
        for i in elements(parameters, Setting::Bounds, name)? {
            let other = seen.iter().find(|(known, of_pattern, _)| *known == i && *of_pattern == is_pattern);
            if let Some((.., other)) = other.filter(|(.., other)| [*other, flag] != ["--bounds"; 2]) {
                return Err(CliError::TwoRanges { flags: [other, flag], name: parameters.names[i].clone() });
            }
            seen.push((i, is_pattern, flag));
        }
    }
    Ok(())
}

/// Refuses a mask of a channel that there is not.
fn require_channel(name: &str, model: &CompiledModel) -> Result<(), CliError> {
    let channels = &model.model().channels;
    if channels.iter().any(|channel| channel == name) {
        return Ok(());
    }
    let similar = similar_name(name, channels.iter().map(String::as_str)).map(str::to_owned);
    let (setting, name) = (Setting::SetParameters, name.to_owned());
    Err(SettingsError::UnknownChannel { setting, name, similar }.into())
}
