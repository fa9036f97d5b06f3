//! Results with the analysis that they belong to, their documents and their provenance.

use crate::Error;
use crate::analysis::Analysis;
use crate::document::{DocumentParts, about, to_document};
use crate::provenance::Provenance;
use ns_core::Model;
use serde_json::{Value, json};

/// A result, the analysis that it belongs to, and what the device did.
///
/// The result has the diagnosis: whether fits converged, and warnings that a reader needs before
/// using the numbers. [`Answer::document`] is the JSON document that the command prints;
/// [`Answer::provenance`] says how to reproduce the numbers.
///
/// ```
/// # use nextstat::{Analysis, CompiledModel, FitRequest, Settings};
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let fit = Analysis::new(&model, &Settings::default())?.fit(&FitRequest::default())?;
/// assert!(fit.result.converged && fit.result.warnings.is_empty());
/// assert_eq!(fit.document()["poi"]["name"], "mu");
/// assert_eq!(fit.provenance().measurement, "Measurement");
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Answer<T> {
    /// The result, with its diagnosis.
    pub result: T,
    /// The analysis.
    pub analysis: Analysis,
    /// What the device did; `None` on the CPU.
    pub device: Option<Value>,
    /// Optional parts of the document.
    pub(crate) parts: DocumentParts,
}

impl Analysis {
    /// Wraps up `result`.
    pub(crate) fn answer<T>(&self, result: T) -> Result<Answer<T>, Error> {
        self.answer_with(result, DocumentParts::default())
    }

    /// Wraps up `result`, whose document has optional `parts`.
    pub(crate) fn answer_with<T>(&self, result: T, parts: DocumentParts) -> Result<Answer<T>, Error> {
        Ok(Answer { result, device: self.device_report()?, analysis: self.clone(), parts })
    }
}

/// A result that has a JSON document.
pub trait Document: Sized {
    /// The name of its [schema](crate::schema).
    const SCHEMA: &'static str;

    /// Returns the name of the schema of this result.
    fn schema(&self) -> &'static str {
        Self::SCHEMA
    }

    /// Returns the keys of the document of `answer` that are not in its head, without what the
    /// device did.
    fn fields(answer: &Answer<Self>) -> Value;
}

impl<T> Answer<T> {
    /// Joins `result` and the analysis that it belongs to, for results computed elsewhere.
    #[must_use]
    pub fn new(analysis: Analysis, result: T) -> Self {
        Self { result, analysis, device: None, parts: DocumentParts::default() }
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &Model {
        self.analysis.model()
    }

    /// Returns how the result was computed. The first call for a model reads its whole workspace.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        self.analysis.provenance()
    }
}

impl<T: Document> Answer<T> {
    /// Returns the JSON document that the command prints: keys sorted, numbers that are not finite
    /// as `null`, an entry `provenance`, and on a device an entry `device` with what it did. It is
    /// valid by its [schema](crate::schema).
    #[must_use]
    pub fn document(&self) -> Value {
        let measurement = json!(self.model().measurement);
        about(self.result.schema(), &measurement, json!(self.provenance()), self.result_document())
    }

    /// Returns the document without its head: the provenance takes longer than a small fit.
    #[must_use]
    pub fn result_document(&self) -> Value {
        let mut document = T::fields(self);
        if let Some(device) = &self.device {
            document["device"] = device.clone();
        }
        document
    }
}

/// Implements [`Document`] for results whose document has exactly their fields.
macro_rules! plain_documents {
    ($($result:ty: $name:literal),+ $(,)?) => {$(
        impl Document for $result {
            const SCHEMA: &'static str = $name;

            fn fields(answer: &Answer<Self>) -> Value {
                to_document(&answer.result)
            }
        }
    )+};
}

plain_documents!(
    ns_inference::hypotest::HypotestResult: "hypotest",
    ns_inference::hypotest::SignificanceResult: "significance",
    ns_inference::limit::LimitResult: "limit",
);
