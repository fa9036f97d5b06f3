//! Checks of a model: problems that would make a fit fail or mislead.

use crate::cancel::{CancellableLikelihood, Cancellation};
use crate::document::{about, to_document};
use crate::{Analysis, CompiledModel, Error};
use ns_compute::CpuLikelihood;
use ns_core::check::{Finding, FindingKind, Severity, check};
use ns_core::{Likelihood, expected};
use ns_inference::{degeneracy, memory};
use serde_json::{Value, json};
use std::sync::Arc;

impl Analysis {
    /// Finds errors and suspicious parts of the model, as [`CompiledModel::check`] does, without
    /// those that tell hidden data.
    ///
    /// # Errors
    /// A model whose matrices do not fit into memory.
    pub fn check(&self, cancellation: Option<Arc<dyn Cancellation>>) -> Result<Vec<Finding>, Error> {
        let mut findings = self.whole_compiled().check(cancellation)?;
        findings.retain(|finding| !self.tells_hidden(finding));
        Ok(findings)
    }

    /// Returns `true` if `finding` has a count of a channel with hidden bins.
    fn tells_hidden(&self, finding: &Finding) -> bool {
        let Some(hidden) = self.hidden_bins().filter(|hidden| hidden.contains(&true)) else { return false };
        match finding.problem {
            FindingKind::NotFiniteAtStart { .. } => return true,
            FindingKind::EmptyBin { .. } | FindingKind::FarFromObservation { .. } => {}
            _ => return false,
        }
        let (model, Some(channel)) = (self.whole_model(), &finding.at.channel) else { return true };
        let is_hidden = |c: usize| model.channel_bins(c).any(|bin| hidden[bin]);
        (0..model.channels.len()).any(|c| model.channels[c] == *channel && is_hidden(c))
    }
}

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
        let mut findings = check(&self.workspace(), self.model());
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
