//! What a stored fit predicts for the channels of a model, and the report of one.

use crate::answer::Document;
use crate::document::to_document;
use crate::stored::StoredFit;
use crate::stored_point::StoredPoint;
use crate::yields::{Overview, Yields, channels};
use crate::{Analysis, Answer, Error};
use ns_core::Likelihood;
use ns_inference::FitResult;
use ns_inference::minimize::Outcome;
use ns_inference::propagate::Propagator;
use ns_inference::yields::{ChannelPrediction, at, prefit};
use serde_json::{Value, json};

/// What a stored fit predicts for every channel of a model.
#[derive(Debug, Clone)]
pub struct Projection {
    /// The yields at the starting values.
    pub prefit: Vec<ChannelPrediction>,
    /// The yields at the stored fit, with its covariance.
    pub postfit: Vec<ChannelPrediction>,
    /// Parameters of the model that the fit does not have: they stay at their starting values, with
    /// the uncertainty of their constraint term and no correlations.
    pub unmatched: Vec<String>,
    /// Parameters of the fit that the model does not have.
    pub unused: Vec<String>,
    /// What a reader should know before using the numbers.
    pub warnings: Vec<String>,
}

impl Analysis {
    /// Returns the yields that a stored fit predicts, without another fit.
    ///
    /// # Errors
    /// A fit without covariance, or without a parameter of the model; a device, which this does not
    /// use; too little memory.
    pub fn project(&self, fit: &StoredFit) -> Result<Answer<Projection>, Error> {
        self.require_cpu("a table of yields")?;
        let StoredPoint { params, covariance, unmatched, unused, warnings, .. } = self.stored_point(fit)?;
        let [prefit, postfit] = self.predictions(&params, covariance)?;
        self.referring_to(fit).answer(Projection { prefit, postfit, unmatched, unused, warnings })
    }

    /// Returns the yields at the starting values, and those at `params` (P) with this covariance
    /// (P × P).
    fn predictions(&self, params: &[f64], covariance: Vec<f64>) -> Result<[Vec<ChannelPrediction>; 2], Error> {
        let propagator = Propagator::of_covariance(covariance);
        let mut likelihood = self.likelihood()?;
        let request = self.prediction_request();
        let prefit = prefit(&self.problem(&mut likelihood), request);
        Ok([prefit, at(params, &propagator, request)])
    }

    /// Returns the report of a stored fit: its parameters, pulls and correlations, its yields, and
    /// how well it predicts the data.
    ///
    /// The fit of the result has the stored values, and no iterations.
    ///
    /// # Errors
    /// As [`Analysis::project`].
    pub fn report_from(&self, fit: &StoredFit) -> Result<Answer<Overview>, Error> {
        self.require_cpu("a table of yields")?;
        let point = self.stored_point(fit)?;
        let [prefit, postfit] = self.predictions(&point.params, point.covariance.clone())?;
        let comparison = self.comparison(fit, &point);
        let referring = self.referring_to(fit);
        let fit = referring.answer(self.stored_result(point)?)?;
        let yields = Yields { fit, prefit, postfit };
        referring.answer(Overview { yields, goodness: None, comparison: Some(comparison) })
    }

    /// Returns `point` as the result of a fit.
    fn stored_result(&self, point: StoredPoint) -> Result<FitResult, Error> {
        // Nothing hidden is at hand where everything is.
        let nll = if self.hides_everything() { f64::NAN } else { self.likelihood()?.nll(&point.params) };
        Ok(FitResult {
            par_names: self.model().parameters.names.clone(),
            n_free: point.uncertainties.iter().flatten().count(),
            bestfit: point.params,
            uncertainties: point.uncertainties,
            splits: Vec::new(),
            covariance: Some(point.covariance),
            twice_nll: 2.0 * nll,
            nll,
            // A fit that did not converge cannot be stored.
            converged: true,
            outcome: Outcome::Converged,
            edm: f64::NAN,
            projected_gradient: f64::NAN,
            n_iterations: 0,
            n_evaluations: 0,
            at_bounds: Vec::new(),
            flat_directions: Vec::new(),
            not_parabolic: Vec::new(),
            not_finite: None,
            minos: Vec::new(),
            minima: Vec::new(),
            warnings: point.warnings,
        })
    }
}

impl Document for Projection {
    const SCHEMA: &'static str = "yields";

    /// Returns `{channels, unmatched, unused, converged, warnings}`.
    fn fields(answer: &Answer<Self>) -> Value {
        let Self { prefit, postfit, unmatched, unused, warnings } = &answer.result;
        json!({
            // A fit that did not converge cannot be stored.
            "converged": true,
            "warnings": warnings,
            "channels": channels(&answer.analysis, prefit, postfit),
            "unmatched": to_document(unmatched),
            "unused": to_document(unused),
        })
    }
}
