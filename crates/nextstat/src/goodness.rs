//! Goodness of fit by the saturated model, with p-values by formula and by toys.

use crate::document::{identify, to_document};
use crate::{Analysis, Answer, Error};
use ns_inference::gof::{GoodnessOfFit, goodness_of_fit, saturated_deviance};
use ns_inference::monitor::Monitor;
use ns_inference::toys::{
    AuxTreatment, Ensemble, GoodnessToys, RunStatus, ToySampler, ToySource, ToysError, goodness_toys,
};
use ns_inference::{FitOptions, FitResult, Problem, Uncertainties, fit};
use serde::Serialize;
use serde_json::{Value, json};

/// Which toys are thrown for p-values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoodnessRequest {
    /// How many; `None` for no p-value by toys.
    pub n_toys: Option<u64>,
    /// What happens to auxiliary data.
    pub aux: AuxTreatment,
}

impl Default for GoodnessRequest {
    fn default() -> Self {
        Self { n_toys: None, aux: AuxTreatment::Fluctuated }
    }
}

/// The goodness of one fit.
#[derive(Debug, Clone)]
pub struct Goodness {
    /// The fit.
    pub fit: FitResult,
    /// The statistic with its p-value by formula.
    pub goodness: GoodnessOfFit,
    /// The p-values by toys; `None` if no toys were asked for, or if the fit did not converge.
    pub toys: Option<GoodnessByToys>,
}

/// p-values by toys, and how the toys were made.
#[derive(Debug, Clone, Serialize)]
pub struct GoodnessByToys {
    /// Toys asked for.
    pub n_toys_wanted: u64,
    /// Their seed.
    pub seed: u64,
    /// What happened to auxiliary data.
    pub aux: AuxTreatment,
    /// The p-values.
    #[serde(flatten)]
    pub p_values: GoodnessToys,
    /// Whether all toys were thrown.
    #[serde(skip)]
    pub ended: RunStatus,
}

impl Analysis {
    /// Fits the data, compares the fit with the saturated model, and throws toys if they are asked
    /// for.
    ///
    /// # Errors
    /// A device without toys; a best fit at which no toys can be thrown; too little memory.
    pub fn goodness(&self, request: &GoodnessRequest, monitor: &dyn Monitor) -> Result<Answer<Goodness>, Error> {
        if request.n_toys.is_none() {
            self.require_cpu("goodness of fit without toys")?;
        }
        let model = self.model();
        let mut likelihood = self.likelihood()?;
        // Uncertainties need the exact Hessian, so the fit ends at the exact minimum.
        let options = FitOptions { uncertainties: Uncertainties::Hessian, ..self.options().clone() };
        let fit = fit(&mut Problem::new(model, &mut likelihood, &options));
        let goodness = goodness_of_fit(&mut Problem::new(model, &mut likelihood, &options), &fit, self.threads());
        let n_toys = request.n_toys.filter(|_| fit.converged);
        let toys = n_toys.map(|n_toys| self.goodness_by_toys(&fit, n_toys, request.aux, monitor)).transpose()?;
        self.answer(Goodness { fit, goodness, toys })
    }

    fn goodness_by_toys(
        &self,
        fit: &FitResult,
        n_toys: u64,
        aux: AuxTreatment,
        monitor: &dyn Monitor,
    ) -> Result<GoodnessByToys, Error> {
        let (model, data) = (self.model(), self.data());
        let source = ToySource { seed: self.seed(), ensemble: Ensemble::Goodness, aux };
        let sampler = ToySampler::new(model, data, &fit.bestfit, source).map_err(ToysError::from)?;
        let observed = saturated_deviance(model, data, &fit.bestfit, &self.domain().fixed);
        let mut likelihood = self.likelihood()?;
        let problem = self.problem(&mut likelihood);
        let (p_values, ended) = goodness_toys(&problem, &sampler, 0..n_toys, &self.run(monitor), &observed);
        Ok(GoodnessByToys { n_toys_wanted: n_toys, seed: self.seed(), aux, p_values, ended })
    }
}

/// Returns the goodness by the formula, with the verdict on the fit that it is of.
fn by_formula(answer: &Answer<Goodness>) -> Value {
    let Goodness { fit, goodness, .. } = &answer.result;
    let mut document = to_document(goodness);
    document["fit"] = verdict(fit);
    identify(&mut document, answer.model());
    document
}

/// Whether the fit can be trusted, without its parameters.
fn verdict(result: &FitResult) -> Value {
    json!({
        "converged": result.converged,
        "outcome": result.outcome,
        "edm": result.edm,
        "twice_nll": result.twice_nll,
        "at_bounds": result.at_bounds,
        "flat_directions": result.flat_directions,
        "not_finite": result.not_finite,
        "warnings": result.warnings,
    })
}

impl Answer<Goodness> {
    /// Returns the document; `warnings_of_toys` are added to those of the formula.
    #[must_use]
    pub fn document(&self, warnings_of_toys: &[String]) -> Value {
        let mut document = by_formula(self);
        document["toys"] = to_document(&self.result.toys);
        document["warnings"] = json!([&self.result.goodness.warnings[..], warnings_of_toys].concat());
        self.sign(document)
    }
}
