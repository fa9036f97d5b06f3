//! Tests of the parameter of interest by asymptotic formulas (arXiv:1007.1727): CLs, significances
//! and upper limits.

use crate::error::{Procedure, SettingsError, ValuesProblem};
use crate::{Analysis, Answer, Error};
use ns_inference::hypotest::{HypotestResult, SignificanceResult};
use ns_inference::limit::{LimitOptions, LimitResult};
use ns_inference::test_statistic::TestStatistic;
use serde_json::Value;

/// What upper limits are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitRequest {
    /// The level of CLs at the limit: 0.05 for a confidence level of 95 %.
    pub level: f64,
    /// q̃ or q.
    pub statistic: TestStatistic,
    /// Ascending values between which to interpolate CLs, as pyhf does, instead of a root finder.
    pub grid: Option<Vec<f64>>,
}

impl Default for LimitRequest {
    fn default() -> Self {
        Self { level: 0.05, statistic: TestStatistic::QTilde, grid: None }
    }
}

/// The statistics that give upper limits.
const OF_LIMITS: &[&str] = &["qtilde", "q"];

impl LimitRequest {
    fn check(&self) -> Result<(), SettingsError> {
        if !(0.0 < self.level && self.level < 1.0) {
            return Err(SettingsError::BadLevel { level: self.level });
        }
        if !matches!(self.statistic, TestStatistic::Q | TestStatistic::QTilde) {
            let name = self.statistic.name().to_owned();
            return Err(SettingsError::NoSuchStatistic { procedure: Procedure::Limit, name, known: OF_LIMITS });
        }
        if self.grid.as_ref().is_some_and(|grid| grid.len() < 2 || !grid.is_sorted_by(|a, b| a < b)) {
            return Err(SettingsError::BadValues { problem: ValuesProblem::NotAscending });
        }
        Ok(())
    }
}

impl Analysis {
    /// Tests the value `mu` of the parameter of interest; q₀ always tests 0.
    ///
    /// # Errors
    /// No parameter of interest, or a fixed one; a value that is not finite; too little memory.
    pub fn hypotest(&self, statistic: TestStatistic, mu: f64) -> Result<Answer<HypotestResult>, Error> {
        let mu = testable(if statistic == TestStatistic::Q0 { 0.0 } else { mu })?;
        let poi = self.varied(None, Procedure::Hypotest)?;
        self.require_cpu("a hypothesis test by formulas")?;
        let mut likelihood = self.likelihood()?;
        self.answer(ns_inference::hypotest::hypotest(&mut self.problem(&mut likelihood), statistic, poi, mu))
    }

    /// Returns the significance of the data, and the one expected for the signal strength `mu`.
    ///
    /// # Errors
    /// As [`Analysis::hypotest`].
    pub fn significance(&self, mu: f64) -> Result<Answer<SignificanceResult>, Error> {
        let mu = testable(mu)?;
        let poi = self.varied(None, Procedure::Significance)?;
        self.require_cpu("a significance")?;
        let mut likelihood = self.likelihood()?;
        self.answer(ns_inference::hypotest::significance(&mut self.problem(&mut likelihood), poi, mu))
    }

    /// Finds upper limits on the parameter of interest, observed and expected.
    ///
    /// # Errors
    /// As [`Analysis::hypotest`]; a level outside 0 to 1; another statistic than q̃ or q; a grid
    /// that does not ascend.
    pub fn limit(&self, request: &LimitRequest) -> Result<Answer<LimitResult>, Error> {
        request.check()?;
        let poi = self.varied(None, Procedure::Limit)?;
        self.require_cpu("a limit")?;
        let wanted = LimitOptions { level: request.level, statistic: request.statistic };
        let mut likelihood = self.likelihood()?;
        self.answer(match &request.grid {
            None => ns_inference::limit::limit(&mut self.problem(&mut likelihood), poi, wanted),
            Some(grid) => ns_inference::limit::limit_from_grid(&mut self.problem(&mut likelihood), poi, wanted, grid),
        })
    }
}

/// Returns the value that toys test: `mu`; 1 if it is not given, or 0 for q₀.
///
/// # Errors
/// [`SettingsError::NotDiscovery`] for q₀ of another value than 0, or
/// [`SettingsError::Untestable`].
pub fn tested_by_toys(statistic: TestStatistic, mu: Option<f64>) -> Result<f64, SettingsError> {
    match (statistic, mu) {
        (TestStatistic::Q0, Some(mu)) if mu != 0.0 => Err(SettingsError::NotDiscovery { mu }),
        (TestStatistic::Q0, _) => Ok(0.0),
        (_, mu) => testable(mu.unwrap_or(1.0)),
    }
}

/// Returns `mu` if it can be tested.
fn testable(mu: f64) -> Result<f64, SettingsError> {
    if mu.is_finite() { Ok(mu) } else { Err(SettingsError::Untestable { mu }) }
}

impl Answer<HypotestResult> {
    /// Returns the document, with pyhf's keys.
    #[must_use]
    pub fn document(&self) -> Value {
        self.plain_document()
    }
}

impl Answer<SignificanceResult> {
    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> Value {
        self.plain_document()
    }
}

impl Answer<LimitResult> {
    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> Value {
        self.plain_document()
    }
}
