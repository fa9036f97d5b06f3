//! The coverage of intervals: how often those of toys contain the value at which the toys were
//! thrown.

use crate::answer::Document;
use crate::document::to_document;
use crate::error::{Procedure, Setting, SettingsError, ValuesProblem};
use crate::intervals::{require_confidence, require_tolerance};
use crate::settings::require_finite;
use crate::toys::{FIXED_AUX, ToyOptions};
use crate::{Analysis, Answer, Error};
use ns_inference::monitor::Monitor;
use ns_inference::toys::{AuxTreatment, Coverage, CoverageMethod, CoverageSettings, MOST_TOYS, ToyRun, coverage};
use serde_json::Value;

/// Which coverage to determine.
///
/// ```
/// use nextstat::coverage::CoverageRequest;
/// use nextstat::{Analysis, CompiledModel, NoMonitor, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let analysis = Analysis::new(&model, &Settings::default())?;
/// let request = CoverageRequest { n_toys: 500, ..CoverageRequest::new(vec![1.0]) };
/// let found = analysis.coverage(&request, &NoMonitor)?.result;
/// assert_eq!((found.points.len(), found.methods.len()), (3, 3));
/// let minos = &found.points[1];
/// assert!((minos.coverage.unwrap() - 0.95).abs() < 4.0 * minos.coverage_error.unwrap() + 0.01);
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CoverageRequest {
    /// The true values of the parameter of interest, at which toys are thrown.
    pub true_values: Vec<f64>,
    /// The methods that make the intervals.
    pub methods: Vec<CoverageMethod>,
    /// The confidence level of the intervals.
    pub cl: f64,
    /// The number of toys at each true value.
    pub n_toys: u64,
    /// The largest number of inner toys of each toy, for Feldman-Cousins intervals.
    pub max_inner_toys: u64,
    /// The deviation of the coverage from the confidence level that is small enough.
    pub tolerance: f64,
    /// How to make the toys. All of them are made: coverages have no shards.
    pub options: ToyOptions,
}

impl CoverageRequest {
    /// Asks for the coverage of 95 % intervals by all methods but Feldman-Cousins.
    #[must_use]
    pub fn new(true_values: Vec<f64>) -> Self {
        let methods = vec![CoverageMethod::Hessian, CoverageMethod::Minos, CoverageMethod::Cls];
        let (cl, tolerance, options) = (0.95, 0.02, ToyOptions::default());
        Self { true_values, methods, cl, n_toys: 5000, max_inner_toys: 10_000, tolerance, options }
    }

    /// Returns the largest number of toys, inner ones included.
    fn most_toys(&self) -> u128 {
        let has_inner = self.methods.contains(&CoverageMethod::FeldmanCousins);
        let inner = if has_inner { self.max_inner_toys } else { 1 };
        [self.n_toys, inner].into_iter().fold(self.true_values.len() as u128, |n, m| n.saturating_mul(u128::from(m)))
    }
}

impl Analysis {
    /// Determines the coverage of intervals by toys.
    ///
    /// # Errors
    /// No parameter of interest, or a fixed one; no true value, or one outside the range of the
    /// parameter; no method; a confidence level outside 0 to 1 or too near to 0; a tolerance that
    /// is not positive; too many toys; a device that is not available or fails; fits to the data
    /// that do not converge; too little memory.
    pub fn coverage(&self, request: &CoverageRequest, monitor: &dyn Monitor) -> Result<Answer<Coverage>, Error> {
        let CoverageRequest { cl, n_toys, max_inner_toys, tolerance, .. } = *request;
        require_confidence(cl)?;
        require_tolerance(tolerance)?;
        let poi = self.varied(None, Procedure::Coverage)?;
        self.require_true_values(poi, &request.true_values)?;
        if request.methods.is_empty() {
            return Err(SettingsError::NoMethod.into());
        }
        if request.most_toys() > u128::from(MOST_TOYS) {
            return Err(SettingsError::TooManyToys { n_toys: request.most_toys() }.into());
        }
        let (true_values, methods) = (request.true_values.clone(), request.methods.clone());
        let (seed, aux) = (self.seed(), request.options.aux);
        let settings = CoverageSettings { poi, true_values, methods, cl, n_toys, max_inner_toys, tolerance, seed, aux };
        let run = ToyRun { batch: request.options.batch, ..self.run(monitor)? };
        let mut likelihood = self.likelihood()?;
        let mut found = coverage(&mut self.problem(&mut likelihood), &settings, &run)?;
        let fixed = (aux == AuxTreatment::Fixed).then(|| FIXED_AUX.to_owned());
        found.warnings.extend(fixed.into_iter().chain(self.first_of_several()));
        self.answer(found)
    }

    /// Refuses values at which no toys can be thrown and fitted.
    fn require_true_values(&self, poi: usize, values: &[f64]) -> Result<(), SettingsError> {
        let (setting, name) = (Setting::True, &self.model().parameters.names[poi]);
        if values.is_empty() {
            return Err(SettingsError::BadValues { problem: ValuesProblem::Empty });
        }
        values.iter().try_for_each(|value| require_finite(setting, name, *value))?;
        self.require_inside(setting, poi, values)
    }
}

impl Document for Coverage {
    const SCHEMA: &'static str = "coverage";

    fn fields(answer: &Answer<Self>) -> Value {
        to_document(&answer.result)
    }
}
