//! The background that a search compares its signals with.

use crate::error::{Procedure, SearchError};
use crate::{Analysis, Error};
use ns_inference::Problem;
use ns_inference::fit::fit;
use ns_inference::global_significance::BackgroundScores;
use ns_inference::options::FitOptions;
use ns_inference::toys::{AuxTreatment, Ensemble, ToySampler, ToySource, ToysError};
use std::collections::HashMap;

/// The best fit of the background, by the names of parameters.
pub(super) struct Background {
    pub(super) analysis: Analysis,
    poi: usize,
    /// Best fit with the strength of the signal at 0 (P).
    params: Vec<f64>,
    values: HashMap<String, f64>,
    /// The position of each auxiliary datum, by the name of its parameter.
    pub(super) aux: HashMap<String, usize>,
}

impl Background {
    /// Fits the background of `analysis`, a model with a signal.
    pub(super) fn fit(analysis: Analysis) -> Result<Self, Error> {
        let poi = analysis.varied(None, Procedure::Significance)?;
        let mut options = FitOptions::clone(analysis.options());
        options.fixed.push((poi, 0.0));
        let mut likelihood = analysis.likelihood()?;
        let problem = &mut analysis.problem(&mut likelihood);
        let found = fit(&mut Problem { options: &options, ..problem.reborrow() });
        if !found.converged {
            return Err(SearchError::Background { reason: "did not converge" }.into());
        }
        let names = &analysis.model().parameters.names;
        let values = names.iter().cloned().zip(found.bestfit.iter().copied()).collect();
        let aux = analysis.model().constraint_terms().enumerate();
        let aux = aux.map(|(k, (i, _))| (names[i].clone(), k)).collect();
        Ok(Self { params: found.bestfit, values, aux, poi, analysis })
    }

    /// Returns the best fit as parameters of the model of `analysis`; those of its own signal have
    /// their starting values.
    pub(super) fn at(&self, analysis: &Analysis, poi: usize) -> Vec<f64> {
        let parameters = &analysis.model().parameters;
        let value = |(name, init): (&String, &f64)| self.values.get(name).copied().unwrap_or(*init);
        let mut params: Vec<f64> = parameters.names.iter().zip(&parameters.init).map(value).collect();
        for &(i, value) in &analysis.options().fixed {
            params[i] = value;
        }
        params[poi] = 0.0;
        params
    }

    /// Returns `true` if the bins of `analysis` are those of the background.
    pub(super) fn has_bins_of(&self, analysis: &Analysis) -> bool {
        let (own, other) = (self.analysis.model(), analysis.model());
        own.channels == other.channels
            && own.n_bins() == other.n_bins()
            && self.analysis.data().main == analysis.data().main
    }

    pub(super) fn scores(&self) -> Result<BackgroundScores, Error> {
        let mut likelihood = self.analysis.likelihood()?;
        let mut domain = self.analysis.domain();
        domain.fixed[self.poi] = true;
        let scores = BackgroundScores::new(self.analysis.model(), &mut likelihood, &self.params, &domain);
        Ok(scores.ok_or(SearchError::Background { reason: "does not determine all parameters" })?)
    }

    pub(super) fn sampler(&self) -> Result<ToySampler, Error> {
        let source =
            ToySource { seed: self.analysis.seed(), ensemble: Ensemble::Search, aux: AuxTreatment::Fluctuated };
        let sampler = ToySampler::new(self.analysis.model(), self.analysis.data(), &self.params, source);
        Ok(sampler.map_err(ToysError::from)?)
    }
}
