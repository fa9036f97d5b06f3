//! Checks of a model: problems that would make a fit fail or mislead.

use crate::cancel::{CancellableLikelihood, Cancellation};
use crate::document::{about, to_document};
use crate::{CompiledModel, Error};
use ns_compute::CpuLikelihood;
use ns_core::check::{Finding, Severity, check};
use ns_core::{Likelihood, expected};
use ns_inference::{degeneracy, memory};
use serde_json::{Value, json};
use std::sync::Arc;

impl CompiledModel {
    /// Finds errors and suspicious parts of the model, worst first. `cancellation` ends the search
    /// early; the caller then drops the result.
    ///
    /// # Errors
    /// A model whose matrices do not fit into memory.
    pub fn check(&self, cancellation: Option<Arc<dyn Cancellation>>) -> Result<Vec<Finding>, Error> {
        let data = expected::asimov(self.model(), &self.model().parameters.init);
        let likelihood = CpuLikelihood::with_plan(Arc::clone(self.plan()), &data);
        memory::require(&likelihood.structure())?;
        let mut likelihood = CancellableLikelihood::new(likelihood, cancellation);
        let mut findings = check(self.workspace(), self.model());
        findings.extend(degeneracy::findings(self.model(), &mut likelihood));
        findings.sort_by_key(Finding::severity);
        Ok(findings)
    }

    /// Returns the document of `findings`, with their number by severity.
    #[must_use]
    pub fn findings_document(&self, findings: &[Finding]) -> Value {
        let count = |severity| findings.iter().filter(|finding| finding.severity() == severity).count();
        let fields = json!({
            "n_errors": count(Severity::Error),
            "n_warnings": count(Severity::Warning),
            "n_notes": count(Severity::Note),
            "findings": to_document(&findings),
            "warnings": [],
        });
        about("check", &json!(self.model().measurement), json!(self.provenance()), fields)
    }
}
