//! Stored fits as a model sees them: values, uncertainties and covariance of its own parameters.

use crate::error::{Setting, SettingsError};
use crate::stored::StoredFit;
use crate::{Analysis, Error};
use ns_inference::options::domain_and_start;
use ns_inference::pulls::prefit_width;

/// The relative difference of a stored value from a fixed one that its digits may explain.
pub(crate) const SAME_VALUE: f64 = 1e-9;

/// A stored fit, matched with a model. P is the number of parameters of the model.
#[derive(Debug, Clone)]
pub(crate) struct StoredPoint {
    /// Values (P): starting values for parameters that the fit does not have.
    pub(crate) params: Vec<f64>,
    /// Standard deviations (P): those of the constraint terms for parameters that the fit does not
    /// have; `None` for fixed parameters, and where the fit does not determine one.
    pub(crate) uncertainties: Vec<Option<f64>>,
    /// The covariance (P × P, by rows), NaN where it is not known.
    pub(crate) covariance: Vec<f64>,
    /// Parameters of the model that the fit does not have.
    pub(crate) unmatched: Vec<String>,
    /// Parameters of the fit that the model does not have.
    pub(crate) unused: Vec<String>,
    /// What a reader should know before using the numbers.
    pub(crate) warnings: Vec<String>,
}

impl Analysis {
    /// Matches `fit` with the parameters of the model.
    ///
    /// # Errors
    /// A fit without covariance, or without a parameter of the model; settings that are to fit
    /// hidden data.
    pub(crate) fn stored_point(&self, fit: &StoredFit) -> Result<StoredPoint, Error> {
        if self.settings().blind.is_fitted {
            return Err(SettingsError::FitsBlinded.into());
        }
        let whole = self.whole_model();
        let matched = fit.matched(whole)?;
        let (domain, _) = domain_and_start(whole, self.options());
        let width =
            |i: usize| if domain.fixed[i] { 0.0 } else { prefit_width(whole, self.shown_data(), i).unwrap_or(0.0) };
        let covariance = fit.covariance(&matched, width)?;
        let n = matched.params.len();
        let uncertainty = |i: usize| Some(covariance[i * n + i].sqrt()).filter(|width| *width > 0.0);
        let uncertainties: Vec<Option<f64>> = (0..n).map(uncertainty).collect();
        self.require_conditions(&matched.params, &uncertainties)?;
        let left = fit.left_alone(whole, |i| domain.fixed[i]);
        let of_fit = fit.undetermined().into_iter().chain(left).chain(self.used_hidden(fit));
        let warnings = matched.warnings().into_iter().chain(of_fit).collect();
        let (unmatched, unused) = (matched.unmatched, matched.unused);
        Ok(StoredPoint { params: matched.params, uncertainties, covariance, unmatched, unused, warnings })
    }

    /// Refuses a stored fit with these values (P) and uncertainties (P) that was not made under the
    /// conditions of the settings: they would not apply to its numbers.
    fn require_conditions(&self, params: &[f64], uncertainties: &[Option<f64>]) -> Result<(), SettingsError> {
        let names = &self.whole_model().parameters.names;
        for &(i, fixed) in &self.options().fixed {
            if uncertainties[i].is_some() || (params[i] - fixed).abs() > SAME_VALUE * (1.0 + fixed.abs()) {
                return Err(SettingsError::StoredElsewhere { setting: Setting::Fixed, name: names[i].clone() });
            }
        }
        for &(i, [lower, upper]) in &self.options().bounds {
            if !(lower..=upper).contains(&params[i]) {
                return Err(SettingsError::StoredElsewhere { setting: Setting::Bounds, name: names[i].clone() });
            }
        }
        Ok(())
    }

    /// Returns which bins of the whole model (B) `fit` used, if its document tells that it is of
    /// the same workspace and its observed data.
    fn used_by(&self, fit: &StoredFit) -> Option<Vec<bool>> {
        let origin = fit.origin()?;
        let is_same = origin.is_observed && origin.workspace_sha256 == self.compiled().workspace_sha256();
        if !is_same || !self.data_provenance().is_observed() {
            return None;
        }
        let model = self.whole_model();
        let mut used = vec![true; model.n_bins()];
        for (name, masked) in &origin.masked {
            let Some(channel) = model.channels.iter().position(|known| known == name) else { continue };
            let bins = model.channel_bins(channel);
            match masked {
                None => used[bins].fill(false),
                Some(masked) => {
                    masked.iter().filter(|b| **b < bins.len()).for_each(|b| used[bins.start + b] = false);
                }
            }
        }
        Some(used)
    }

    /// Returns the warning that `fit` used data that are hidden here.
    fn used_hidden(&self, fit: &StoredFit) -> Option<String> {
        let hidden = self.hidden_bins()?;
        let used = self.used_by(fit)?;
        hidden.iter().zip(&used).any(|(hidden, used)| *hidden && *used).then(|| {
            "the stored fit used data that are hidden, so its parameters and yields show what they are".to_owned()
        })
    }

    /// Returns the channels that are not masked and whose data `fit` used, as far as its document
    /// tells.
    pub(crate) fn channels_used_by(&self, fit: &StoredFit) -> Vec<String> {
        let Some(used) = self.used_by(fit) else { return Vec::new() };
        let model = self.whole_model();
        let is_shown = |b: usize| self.masked_bins().is_none_or(|masked| !masked[b]);
        let is_used = |c: &usize| model.channel_bins(*c).any(|b| used[b] && is_shown(b));
        (0..model.channels.len()).filter(is_used).map(|c| model.channels[c].clone()).collect()
    }
}
