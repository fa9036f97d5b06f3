//! Searches for many signals: the local significance of each signal of a patch set, and the global
//! significance of the largest.
//!
//! The background is the model of the first signal that can be analysed, with the strength of the
//! signal at 0 and the other parameters at their best fit. Every signal must have the bins of the
//! background. How the global p-value is computed is on the page of
//! [`ns_inference::global_significance`].

mod background;
mod question;
mod row;

use crate::Error;
use crate::document::headed;
use crate::patchsets::{GridRequest, SignalGrid};
use ns_inference::global_significance::GlobalPValue;
use ns_inference::parallel::ExecutionContext;
use question::Question;
use serde::Serialize;
use serde_json::{Value, json};

/// How to search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest {
    /// Samples of the field for each global p-value.
    pub n_samples: usize,
    /// Toys of the background, each fitted under every signal; 0 for none.
    pub n_toys: u64,
    /// Whether upper limits on every signal are wanted.
    pub limits: bool,
    /// Whether the correlations of the local significances are wanted.
    pub correlations: bool,
    /// The label along which upcrossings are counted; if `None`, the only one with numbers that
    /// differ between all signals.
    pub label: Option<String>,
}

impl Default for SearchRequest {
    fn default() -> Self {
        Self { n_samples: 20_000, n_toys: 0, limits: false, correlations: false, label: None }
    }
}

/// The signal with the largest local significance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StrongestSignal {
    /// The name of its patch.
    pub patch: String,
    /// Its local significance.
    #[serde(rename = "Z_obs")]
    pub z: f64,
    /// The local p-value.
    #[serde(rename = "p0_obs")]
    pub p0: f64,
}

/// Upcrossings of a level by the local significances along a label.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Upcrossings {
    /// The label.
    pub label: String,
    /// The level, a local significance.
    pub level: f64,
    /// How many are expected of the background.
    pub expected: f64,
    /// How many the data have.
    pub observed: usize,
    /// The global p-value that follows; `None` if the largest significance is below the level.
    pub global: Option<GlobalPValue>,
}

/// Toys of the background, each fitted under every signal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchToys {
    /// Toys thrown.
    pub n_toys: u64,
    /// Toys of which a fit did not converge; they are not counted.
    pub n_failed: u64,
    /// The global p-value; `None` if every toy failed.
    pub global: Option<GlobalPValue>,
}

/// Global p-values of one local significance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrialsPoint {
    /// The local significance.
    #[serde(rename = "Z_local")]
    pub z: f64,
    /// Its p-value.
    pub p_local: f64,
    /// By the field.
    pub field: GlobalPValue,
    /// By upcrossings.
    pub upcrossings: Option<GlobalPValue>,
    /// By toys.
    pub toys: Option<GlobalPValue>,
}

/// The answer to a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Patches of the set.
    pub n_patches: usize,
    /// Those that were analysed, in the order of the set: `patch`, `values`, and `result`,
    /// `Z_linear` and `skewness`, or `error`.
    pub patches: Vec<Value>,
    /// The signal with the largest local significance; `None` if there is none.
    pub strongest: Option<StrongestSignal>,
    /// The global p-value by the field of local significances.
    pub field: Option<GlobalPValue>,
    /// That by upcrossings, for signals in a row.
    pub upcrossings: Option<Upcrossings>,
    /// That by toys.
    pub toys: Option<SearchToys>,
    /// Global p-values of several local significances.
    pub curve: Vec<TrialsPoint>,
    /// Correlations of the local significances of the signals without an error, in their order.
    pub correlation: Option<Vec<Vec<f64>>>,
    /// Whether the run was not cancelled.
    pub complete: bool,
    /// Whether every patch has a result whose fits converged.
    pub converged: bool,
    /// What to know before using the numbers.
    pub warnings: Vec<String>,
    /// How it was computed.
    provenance: Value,
}

impl Search {
    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> Value {
        let fields = json!({
            "complete": self.complete,
            "converged": self.converged,
            "correlation": self.correlation,
            "curve": self.curve,
            "field": self.field,
            "measurement": self.provenance.get("measurement"),
            "n_patches": self.n_patches,
            "patches": self.patches,
            "provenance": self.provenance,
            "strongest": self.strongest,
            "toys": self.toys,
            "upcrossings": self.upcrossings,
            "warnings": self.warnings,
        });
        headed("search", fields)
    }

    /// Returns the warnings in one line, if there are any.
    #[must_use]
    pub fn alarm(&self) -> Option<String> {
        (!self.warnings.is_empty()).then(|| self.warnings.join("; "))
    }
}

impl SignalGrid {
    /// Searches for every signal of the set.
    ///
    /// # Errors
    /// A label that the set does not have or along which its signals are no row; settings that no
    /// model of the set has; a background whose fit does not converge; a device, which this does
    /// not use.
    pub fn search(
        &self,
        request: &GridRequest<'_>,
        search: &SearchRequest,
        execution: ExecutionContext<'_>,
    ) -> Result<Search, Error> {
        Question { grid: self, request, search, execution }.answer()
    }
}
