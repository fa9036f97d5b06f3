//! Data compared with what a stored fit predicts.

use crate::answer::Document;
use crate::document::to_document;
use crate::stored::{StoredFit, first_of};
use crate::stored_point::StoredPoint;
use crate::{Analysis, Answer, Error};
use ns_core::Model;
use ns_inference::prediction_test::{ChannelTest, FitPoint, PredictionTest, test_prediction};
use serde_json::{Value, json};

/// How well a stored fit predicts the data of channels that it did not use.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// χ² with the covariance of the prediction.
    pub test: PredictionTest,
    /// Parameters of the model that the fit does not have: they stay at their starting values, with
    /// the uncertainty of their constraint term and no correlations.
    pub unmatched: Vec<String>,
    /// Parameters of the fit that the model does not have.
    pub unused: Vec<String>,
    /// What a reader should know before using the numbers.
    pub warnings: Vec<String>,
}

impl Analysis {
    /// Compares the data of all bins that are not masked with what a stored fit predicts, without
    /// another fit.
    ///
    /// # Errors
    /// A fit without covariance, or without a parameter of the model; a device, which this does not
    /// use; settings that are to fit hidden data.
    pub fn compare(&self, fit: &StoredFit) -> Result<Answer<Comparison>, Error> {
        self.require_cpu("a comparison with a stored fit")?;
        let point = self.stored_point(fit)?;
        let compared = self.comparison(fit, &point);
        self.referring_to(fit).answer(compared)
    }

    /// Compares the data with `point`, which is that of `fit`.
    pub(crate) fn comparison(&self, fit: &StoredFit, point: &StoredPoint) -> Comparison {
        let test = match self.hides_everything() {
            true => nothing_compared(self.model()),
            false => {
                let at = FitPoint { params: &point.params, covariance: &point.covariance };
                test_prediction(self.model(), self.data(), at, self.threads())
            }
        };
        let used = if self.hides_everything() { Vec::new() } else { self.channels_used_by(fit) };
        let used = (!used.is_empty()).then(|| {
            format!("the stored fit used the data of {}, so χ² is too small there: mask them", first_of(&used))
        });
        let warnings = point.warnings.iter().cloned().chain(used).chain(test.warnings.iter().cloned()).collect();
        Comparison { test, unmatched: point.unmatched.clone(), unused: point.unused.clone(), warnings }
    }
}

/// Returns the comparison of a prediction with data that are all hidden.
fn nothing_compared(model: &Model) -> PredictionTest {
    let channel = |channel: &String| ChannelTest { channel: channel.clone(), statistic: None, n_dof: 0, p_value: None };
    PredictionTest {
        statistic: None,
        n_dof: 0,
        p_value: None,
        channels: model.channels.iter().map(channel).collect(),
        warnings: vec!["all data are hidden, so the prediction is not compared with them".to_owned()],
    }
}

impl Comparison {
    /// Returns the test with all warnings, as documents have it.
    pub(crate) fn fields(&self) -> Value {
        let mut document = to_document(&self.test);
        document["warnings"] = json!(self.warnings);
        document
    }
}

impl Document for Comparison {
    const SCHEMA: &'static str = "comparison";

    /// Returns the test, `unmatched` and `unused`.
    fn fields(answer: &Answer<Self>) -> Value {
        let compared = &answer.result;
        let mut document = compared.fields();
        // A fit that did not converge cannot be stored.
        document["converged"] = json!(true);
        document["unmatched"] = json!(compared.unmatched);
        document["unused"] = json!(compared.unused);
        document
    }
}
