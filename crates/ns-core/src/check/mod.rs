//! Finds suspicious properties of a model that compiles, before a fit fails because of them.
//!
//! Each is a [`Finding`]: its kind, its severity, and its place in the document. What makes a
//! workspace impossible to compile is a [`crate::CompileError`]; parameters that data cannot
//! distinguish need an evaluator and are found elsewhere.

mod finding;
mod names;
mod parameters;
mod variations;
mod yields;

pub use finding::{Finding, FindingKind, FindingPlace, Severity};

use crate::model::Model;
use crate::spec::Workspace;

/// Returns all findings about `workspace` and about `model`, which was compiled from it: errors
/// first, then in document order.
///
/// ```
/// use ns_core::check::{FindingKind, check};
/// # use ns_core::spec::*;
/// # let mu = Modifier::new("mu", ModifierData::NormFactor);
/// # let sample = Sample { name: "signal".to_owned(), data: vec![0.0], modifiers: vec![mu], ..Default::default() };
/// # let workspace = Workspace {
/// #     channels: vec![Channel { name: "SR".to_owned(), samples: vec![sample] }],
/// #     observations: vec![Observation { name: "SR".to_owned(), data: vec![3.0] }],
/// #     measurements: vec![Measurement { name: "m".to_owned(), poi: Some("mu".to_owned()), parameters: vec![], ..Default::default() }],
/// # };
/// // One sample without a yield, where three events were seen.
/// let model = ns_core::compile(&workspace, &Default::default())?;
/// let findings = check(&workspace, &model);
/// assert_eq!(findings[0].problem, FindingKind::EmptyBin { observed: 3.0 });
/// assert_eq!(findings[0].at.pointer.as_deref(), Some("/channels/0"));
/// # Ok::<(), ns_core::CompileError>(())
/// ```
#[must_use]
pub fn check(workspace: &Workspace, model: &Model) -> Vec<Finding> {
    let mut findings = Vec::new();
    names::look(workspace, model, &mut findings);
    yields::look(workspace, model, &mut findings);
    variations::look(workspace, &mut findings);
    parameters::look(workspace, model, &mut findings);
    findings.sort_by_key(Finding::severity);
    findings
}
