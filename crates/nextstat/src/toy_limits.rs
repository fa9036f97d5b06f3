//! Upper limits and significances by toys, with their Monte Carlo errors.

use crate::answer::Document;
use crate::document::to_document;
use crate::error::{Procedure, SettingsError};
use crate::hypothesis::{LimitLevel, LimitRequest};
use crate::intervals::require_tolerance;
use crate::toys::{FIXED_AUX, ToyOptions};
use crate::{Analysis, Answer, Error};
use ns_inference::monitor::Monitor;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{
    AuxTreatment, LimitCriterion, ToyLimit, ToyLimitSettings, ToyRun, ToySignificanceResult, ToySignificanceSettings,
    toy_limit, toy_significance,
};
use serde_json::Value;

/// Which upper limits to find by toys.
///
/// ```
/// use nextstat::toy_limits::ToyLimitRequest;
/// use nextstat::{Analysis, CompiledModel, NoMonitor, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let analysis = Analysis::new(&model, &Settings::default())?;
/// let request = ToyLimitRequest { tolerance: 0.05, expected: false, ..ToyLimitRequest::default() };
/// let limit = analysis.toy_limit(&request, &NoMonitor)?.result;
/// let (found, error) = (limit.observed.unwrap(), limit.observed_error.unwrap());
/// // The asymptotic limit is 1.705.
/// assert!((found - 1.7).abs() < 0.2 && error < 0.05 * found);
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToyLimitRequest {
    /// The level: CLs or CLs+b at the limit, or the confidence level.
    pub level: LimitLevel,
    /// q̃ or q.
    pub statistic: TestStatistic,
    /// What falls to the level.
    pub criterion: LimitCriterion,
    /// Whether expected limits are wanted, too.
    pub expected: bool,
    /// The error at which a limit is known well enough, relative to the limit.
    pub tolerance: f64,
    /// The largest number of toys of both hypotheses together.
    pub max_toys: u64,
    /// How to make the toys.
    pub options: ToyOptions,
}

impl Default for ToyLimitRequest {
    fn default() -> Self {
        let (statistic, criterion, options) = (TestStatistic::QTilde, LimitCriterion::Cls, ToyOptions::default());
        Self {
            level: LimitLevel::Cls(0.05),
            statistic,
            criterion,
            expected: true,
            tolerance: 0.02,
            max_toys: 200_000,
            options,
        }
    }
}

/// How to find the significance of a discovery by toys.
///
/// ```
/// use nextstat::toy_limits::ToySignificanceRequest;
/// use nextstat::{Analysis, CompiledModel, NoMonitor, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let analysis = Analysis::new(&model, &Settings::default())?;
/// let found = analysis.toy_significance(&ToySignificanceRequest::default(), &NoMonitor)?.result;
/// // The asymptotic significance is 1.32.
/// assert!((found.z_observed.unwrap() - 1.32).abs() < 0.2);
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToySignificanceRequest {
    /// The error of p₀ that is small enough, relative to p₀.
    pub tolerance: f64,
    /// The largest number of toys.
    pub max_toys: u64,
    /// Whether to throw toys with a signal, too, and to weight them: a small p-value then takes
    /// thousands of toys in place of millions.
    pub importance_sampling: bool,
    /// How to make the toys.
    pub options: ToyOptions,
}

impl Default for ToySignificanceRequest {
    fn default() -> Self {
        Self { tolerance: 0.1, max_toys: 100_000, importance_sampling: false, options: ToyOptions::default() }
    }
}

impl Analysis {
    /// Finds upper limits on the parameter of interest by toys, observed and expected.
    ///
    /// # Errors
    /// No parameter of interest, or a fixed one; a level outside 0 to 0.5; another statistic than
    /// q̃ or q; a tolerance that is not positive; a device that is not available or fails; fits to
    /// the data that do not converge; too little memory.
    pub fn toy_limit(&self, request: &ToyLimitRequest, monitor: &dyn Monitor) -> Result<Answer<ToyLimit>, Error> {
        let ToyLimitRequest { level, statistic, criterion, expected, tolerance, max_toys, .. } = *request;
        LimitRequest { level, statistic, grid: None }.check()?;
        require_tolerance(tolerance)?;
        let poi = self.varied(None, Procedure::Limit)?;
        let (seed, aux) = (self.seed(), request.options.aux);
        let level = level.cls();
        let settings = ToyLimitSettings { poi, level, statistic, criterion, expected, tolerance, max_toys, seed, aux };
        let mut likelihood = self.likelihood()?;
        let run = self.toy_run(&request.options, monitor)?;
        let mut found = toy_limit(&mut self.problem(&mut likelihood), settings, &run)?;
        found.warnings.extend(self.warnings_of_toys(aux));
        self.answer(found)
    }

    /// Computes the significance of a discovery by toys of the background.
    ///
    /// # Errors
    /// As [`Analysis::toy_limit`]; a range of the parameter of interest that does not contain 0;
    /// importance sampling of toys whose auxiliary data are fixed.
    pub fn toy_significance(
        &self,
        request: &ToySignificanceRequest,
        monitor: &dyn Monitor,
    ) -> Result<Answer<ToySignificanceResult>, Error> {
        let ToySignificanceRequest { tolerance, max_toys, importance_sampling, .. } = *request;
        require_tolerance(tolerance)?;
        if importance_sampling && request.options.aux == AuxTreatment::Fixed {
            return Err(SettingsError::ImportanceOfFixedAux.into());
        }
        let poi = self.varied(None, Procedure::Significance)?;
        let bounds = [self.domain().lower[poi], self.domain().upper[poi]];
        if !(bounds[0]..=bounds[1]).contains(&0.0) {
            // Minima of toys are sought in the range, and the tested value must be among them.
            let name = self.model().parameters.names[poi].clone();
            return Err(SettingsError::BackgroundOutside { name, bounds }.into());
        }
        let (seed, aux) = (self.seed(), request.options.aux);
        let settings = ToySignificanceSettings { poi, tolerance, max_toys, seed, aux, importance_sampling };
        let mut likelihood = self.likelihood()?;
        let run = self.toy_run(&request.options, monitor)?;
        let mut found = toy_significance(&mut self.problem(&mut likelihood), settings, &run)?;
        found.warnings.extend(self.warnings_of_toys(aux));
        self.answer(found)
    }

    fn toy_run<'a>(&'a self, options: &ToyOptions, monitor: &'a dyn Monitor) -> Result<ToyRun<'a>, Error> {
        Ok(ToyRun { batch: options.batch, ..self.run(monitor)? })
    }

    fn warnings_of_toys(&self, aux: AuxTreatment) -> Vec<String> {
        let fixed = (aux == AuxTreatment::Fixed).then(|| FIXED_AUX.to_owned());
        fixed.into_iter().chain(self.first_of_several()).collect()
    }
}

impl Document for ToyLimit {
    const SCHEMA: &'static str = "limit-toys";

    fn fields(answer: &Answer<Self>) -> Value {
        to_document(&answer.result)
    }
}

impl Document for ToySignificanceResult {
    const SCHEMA: &'static str = "significance-toys";

    fn fields(answer: &Answer<Self>) -> Value {
        to_document(&answer.result)
    }
}
