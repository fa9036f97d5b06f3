//! Tests of the parameter of interest by asymptotic formulas (arXiv:1007.1727): CLs, significances
//! and upper limits.

use crate::cancel::CancellableLikelihood;
use crate::error::{Procedure, Setting, SettingsError, ValuesProblem};
use crate::settings::require_probability;
use crate::{Analysis, Answer, Error};
use ns_inference::Problem;
use ns_inference::hypotest::{HypotestResult, SignificanceResult};
use ns_inference::limit::{LimitOptions, LimitResult};
use ns_inference::test_statistic::TestStatistic;

/// Which value of the parameter of interest to test, and how.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HypotestRequest {
    /// The tested value; if it is `None` 1, and 0 for q₀, which tests no other.
    pub mu: Option<f64>,
    /// The test statistic.
    pub statistic: TestStatistic,
}

/// The significance of a discovery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignificanceRequest {
    /// The signal strength that the expected significance is given for.
    pub mu: f64,
}

impl Default for SignificanceRequest {
    fn default() -> Self {
        Self { mu: 1.0 }
    }
}

/// The level of an upper limit, as the caller gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LimitLevel {
    /// CLs at the limit, below 0.5.
    Cls(f64),
    /// The confidence level, 1 minus CLs at the limit, above 0.5.
    Confidence(f64),
}

impl LimitLevel {
    /// Returns CLs at the limit.
    ///
    /// ```
    /// use nextstat::hypothesis::LimitLevel;
    /// assert_eq!(LimitLevel::Confidence(0.75).cls(), LimitLevel::Cls(0.25).cls());
    /// ```
    #[must_use]
    pub fn cls(self) -> f64 {
        match self {
            Self::Cls(level) => level,
            Self::Confidence(cl) => 1.0 - cl,
        }
    }

    /// Refuses what is not a level, in terms of the number that the caller gave.
    ///
    /// # Errors
    /// [`SettingsError::BadLevel`], [`SettingsError::LevelIsConfidence`],
    /// [`SettingsError::LowConfidence`]
    pub fn check(self) -> Result<(), SettingsError> {
        match self {
            Self::Cls(level) => {
                require_probability(Setting::Level, level)?;
                if level < LEAST_CONFIDENCE { Ok(()) } else { Err(SettingsError::LevelIsConfidence { level }) }
            }
            Self::Confidence(cl) => {
                require_probability(Setting::Cl, cl)?;
                if self.cls() < LEAST_CONFIDENCE { Ok(()) } else { Err(SettingsError::LowConfidence { cl }) }
            }
        }
    }
}

/// How to find upper limits.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitRequest {
    /// The level: CLs at the limit, or the confidence level.
    pub level: LimitLevel,
    /// q̃ or q.
    pub statistic: TestStatistic,
    /// Ascending values between which to interpolate CLs, as pyhf does, instead of a root finder.
    pub grid: Option<Vec<f64>>,
}

impl Default for LimitRequest {
    fn default() -> Self {
        Self { level: LimitLevel::Cls(0.05), statistic: TestStatistic::QTilde, grid: None }
    }
}

/// A level of CLs from here on was meant as a confidence level.
pub(crate) const LEAST_CONFIDENCE: f64 = 0.5;

/// The statistics that give upper limits.
const OF_LIMITS: &[&str] = &["qtilde", "q"];

impl LimitRequest {
    /// Finds the limits on parameter `poi`.
    pub(crate) fn find(&self, problem: &mut Problem<'_, CancellableLikelihood>, poi: usize) -> LimitResult {
        let wanted = LimitOptions { level: self.level.cls(), statistic: self.statistic };
        match &self.grid {
            None => ns_inference::limit::limit(problem, poi, wanted),
            Some(grid) => ns_inference::limit::limit_from_grid(problem, poi, wanted, grid),
        }
    }

    /// Refuses what cannot be asked for.
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        self.level.check()?;
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
    /// Tests a value of the parameter of interest.
    ///
    /// ```
    /// # use nextstat::{Analysis, CompiledModel, Settings};
    /// use nextstat::hypothesis::HypotestRequest;
    ///
    /// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
    /// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
    /// let analysis = Analysis::new(&model, &Settings::default())?;
    /// let test = analysis.hypotest(&HypotestRequest { mu: Some(2.5), ..Default::default() })?;
    /// assert!(test.result.cls_obs.unwrap() < 0.05);
    /// # Ok::<(), nextstat::Error>(())
    /// ```
    ///
    /// # Errors
    /// No parameter of interest, or a fixed one; a value that is not finite, or for q₀ not 0; a
    /// device, which this does not use; too little memory.
    pub fn hypotest(&self, request: &HypotestRequest) -> Result<Answer<HypotestResult>, Error> {
        let HypotestRequest { mu, statistic } = *request;
        let mu = tested(statistic, mu)?;
        let poi = self.varied(None, Procedure::Hypotest)?;
        self.require_cpu("a hypothesis test by formulas")?;
        let mut likelihood = self.likelihood()?;
        let mut found = ns_inference::hypotest::hypotest(&mut self.problem(&mut likelihood), statistic, poi, mu);
        found.warnings.extend(self.first_of_several());
        self.answer(found)
    }

    /// Computes the significance of the data, and the expected one.
    ///
    /// # Errors
    /// As [`Analysis::hypotest`].
    pub fn significance(&self, request: &SignificanceRequest) -> Result<Answer<SignificanceResult>, Error> {
        let mu = testable(request.mu)?;
        let poi = self.varied(None, Procedure::Significance)?;
        self.require_cpu("a significance")?;
        let mut likelihood = self.likelihood()?;
        let mut found = ns_inference::hypotest::significance(&mut self.problem(&mut likelihood), poi, mu);
        found.warnings.extend(self.first_of_several());
        self.answer(found)
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
        let mut likelihood = self.likelihood()?;
        let mut found = request.find(&mut self.problem(&mut likelihood), poi);
        found.warnings.extend(self.first_of_several());
        self.answer(found)
    }
}

/// Returns the value that is tested: `mu`, or if it is `None` 1, and 0 for q₀.
///
/// # Errors
/// [`SettingsError::NotDiscovery`] for q₀ of another value than 0, or
/// [`SettingsError::Untestable`].
pub(crate) fn tested(statistic: TestStatistic, mu: Option<f64>) -> Result<f64, SettingsError> {
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
