//! What a stored fit predicts for the channels of a model.

use crate::answer::Document;
use crate::document::to_document;
use crate::stored::StoredFit;
use crate::yields::channels;
use crate::{Analysis, Answer, Error};
use ns_inference::propagate::Propagator;
use ns_inference::pulls::prefit_width;
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
        let whole = self.whole_model();
        let matched = fit.matched(whole)?;
        let fixed = self.domain().fixed;
        let width = |i: usize| if fixed[i] { 0.0 } else { prefit_width(whole, self.shown_data(), i).unwrap_or(0.0) };
        let propagator = Propagator::of_covariance(fit.covariance(&matched, width)?);
        let mut likelihood = self.likelihood()?;
        let prefit = prefit(&self.problem(&mut likelihood), whole, self.threads());
        let postfit = at(whole, &matched.params, &propagator, self.threads());
        let warnings = matched.warnings().into_iter().chain(fit.undetermined()).collect();
        self.answer(Projection { prefit, postfit, unmatched: matched.unmatched, unused: matched.unused, warnings })
    }
}

impl Document for Projection {
    /// `{channels, unmatched, unused, converged, warnings}`
    fn fields(answer: &Answer<Self>) -> Value {
        let Self { prefit, postfit, unmatched, unused, warnings } = &answer.result;
        json!({
            // What did not converge is no stored fit.
            "converged": true,
            "warnings": warnings,
            "channels": channels(&answer.analysis, prefit, postfit),
            "unmatched": to_document(unmatched),
            "unused": to_document(unused),
        })
    }
}
