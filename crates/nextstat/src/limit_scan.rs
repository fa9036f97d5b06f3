//! Upper limits as a function of another parameter, which is fixed at each of several values.

use crate::answer::Document;
use crate::error::{AtProblem, Procedure, Setting, SettingsError, ValuesProblem};
use crate::hypothesis::LimitRequest;
use crate::number::significant;
use crate::pois::PoiResults;
use crate::settings::index_of;
use crate::{Analysis, Answer, Error};
use ns_inference::limit::LimitResult;
use ns_inference::monitor::Monitor;
use ns_inference::parallel::{self, ExecutionContext};
use ns_inference::{FitOptions, Problem};
use serde_json::{Value, json};
use std::num::NonZeroUsize;

/// Which limits, and at which values of which other parameter.
///
/// ```
/// use nextstat::limit_scan::LimitScanRequest;
/// use nextstat::{Analysis, CompiledModel, NoMonitor, Settings};
///
/// # let workspace = std::fs::read("../../examples/shapes.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let analysis = Analysis::new(&model, &Settings::default())?;
/// let request = LimitScanRequest::new("norm_ttbar", vec![0.9, 1.0, 1.1]);
/// let scan = analysis.limit_scan(&request, &NoMonitor)?.result;
/// let observed: Vec<f64> = scan.limits.iter().flatten().filter_map(|limit| limit.observed).collect();
/// assert!(observed.len() == 3 && observed.is_sorted_by(|a, b| a > b));
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LimitScanRequest {
    /// How to find the limit at each value.
    pub limit: LimitRequest,
    /// The other parameter.
    pub parameter: String,
    /// Its values (N), in any order.
    pub values: Vec<f64>,
}

impl LimitScanRequest {
    /// Asks for limits at 95 % confidence level with `parameter` fixed at `values` (N).
    #[must_use]
    pub fn new(parameter: &str, values: Vec<f64>) -> Self {
        Self { limit: LimitRequest::default(), parameter: parameter.to_owned(), values }
    }
}

/// Upper limits at each of N values of another parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitScan {
    /// The index of the parameter that the limits are on.
    pub poi: usize,
    /// The other parameter.
    pub parameter: String,
    /// Its values (N).
    pub values: Vec<f64>,
    /// The limits at each value (N), each as with the parameter fixed there; `None` where a
    /// cancelled run left one undone. A limit that was not found is missing in its entry.
    pub limits: Vec<Option<LimitResult>>,
    /// The warnings of the limits, each with the values that it is about.
    pub warnings: Vec<String>,
}

impl LimitScan {
    /// Returns `true` if every limit that was computed was found.
    #[must_use]
    pub fn is_converged(&self) -> bool {
        self.limits.iter().flatten().all(|limit| limit.converged)
    }

    /// Returns `true` unless the run was cancelled.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.limits.iter().all(Option::is_some)
    }
}

impl Analysis {
    /// Finds upper limits on the parameter of interest (of several, on the first other one) with
    /// another parameter fixed at each of several values.
    ///
    /// Each is bit for bit the limit with the parameter fixed there by
    /// [`Settings::fixed`](crate::Settings::fixed), for any number of threads.
    ///
    /// # Errors
    /// As [`Analysis::limit`]; an unknown parameter, that of interest itself, or one that the
    /// settings fix; no values, or values that are not finite or outside the range of the
    /// parameter.
    pub fn limit_scan(&self, request: &LimitScanRequest, monitor: &dyn Monitor) -> Result<Answer<LimitScan>, Error> {
        request.limit.check()?;
        let poi = self.limited(&request.parameter)?;
        let parameter = self.fixed_in_turn(request, poi)?;
        self.require_cpu("a limit")?;
        let likelihood = self.likelihood()?;
        let limit = |i: usize| {
            let mut options = FitOptions::clone(self.options());
            options.fixed.push((parameter, request.values[i]));
            let mut likelihood = likelihood.clone();
            request.limit.find(&mut Problem::new(self.model(), &mut likelihood, &options), poi)
        };
        let execution = ExecutionContext::new(self.threads(), monitor);
        let limits = parallel::map(request.values.len(), execution, || (), |(), i| limit(i));
        let n_limited = self.model().pois.iter().filter(|&&i| i != parameter).count();
        let unused = (n_limited > 1).then(|| {
            let (n_pois, name) = (self.model().pois.len(), &self.model().parameters.names[poi]);
            format!("the model has {n_pois} parameters of interest, and this result is for one of them, `{name}`")
        });
        let parameter = self.model().parameters.names[parameter].clone();
        let mut warnings = warnings(&parameter, &request.values, &limits);
        warnings.extend(unused);
        self.answer(LimitScan { poi, parameter, values: request.values.clone(), limits, warnings })
    }

    /// Scans the limits on every parameter of interest but the one that is fixed.
    ///
    /// # Errors
    /// As [`Analysis::limit_scan`].
    pub fn limit_scans(
        &self,
        request: &LimitScanRequest,
        monitor: &dyn Monitor,
    ) -> Result<Answer<PoiResults<LimitScan>>, Error> {
        let other = self.model().parameters.index_of(&request.parameter);
        self.every_poi_but(other, NonZeroUsize::MIN, |analysis| analysis.limit_scan(request, monitor))
    }

    /// Returns the parameter that the limits are on: the first one of interest that is not `other`,
    /// if there is one.
    fn limited(&self, other: &str) -> Result<usize, SettingsError> {
        let names = &self.model().parameters.names;
        match self.model().pois.iter().find(|&&poi| names[poi] != other) {
            Some(&poi) => self.varied(Some(&names[poi]), Procedure::Limit),
            None => self.varied(None, Procedure::Limit),
        }
    }

    /// Returns the parameter that is fixed at each of the values.
    fn fixed_in_turn(&self, request: &LimitScanRequest, poi: usize) -> Result<usize, SettingsError> {
        let parameter = index_of(&self.model().parameters, Setting::At, &request.parameter)?;
        let name = || self.model().parameters.names[parameter].clone();
        let refused = |problem| Err(SettingsError::NotAt { name: name(), problem });
        if parameter == poi {
            return refused(AtProblem::IsPoi);
        }
        if self.options().fixed.iter().any(|(fixed, _)| *fixed == parameter) {
            return refused(AtProblem::IsFixed);
        }
        if self.fixed_by_mask().contains(&parameter) {
            return Err(SettingsError::VariesMasked { procedure: Procedure::Limit, name: name() });
        }
        if request.values.is_empty() {
            return Err(SettingsError::BadValues { problem: ValuesProblem::Empty });
        }
        let domain = self.domain();
        let bounds = [domain.lower[parameter], domain.upper[parameter]];
        for &value in &request.values {
            if !value.is_finite() {
                return Err(SettingsError::NotFinite { setting: Setting::At, name: name(), value });
            }
            if !(bounds[0]..=bounds[1]).contains(&value) {
                return refused(AtProblem::Outside { value, bounds });
            }
        }
        Ok(parameter)
    }
}

/// Returns every warning once, with the values that it is about, and which values were not reached.
fn warnings(parameter: &str, values: &[f64], limits: &[Option<LimitResult>]) -> Vec<String> {
    let mut found: Vec<(&String, Vec<f64>)> = Vec::new();
    for (&value, limit) in values.iter().zip(limits) {
        for warning in limit.iter().flat_map(|limit| &limit.warnings) {
            match found.iter_mut().find(|(known, _)| *known == warning) {
                Some((_, values)) => values.push(value),
                None => found.push((warning, vec![value])),
            }
        }
    }
    let listed = |values: &[f64]| values.iter().map(|value| significant(*value, 6)).collect::<Vec<_>>().join(", ");
    let of = |(warning, values): (&String, Vec<f64>)| format!("`{parameter}` = {}: {warning}", listed(&values));
    let n_done = limits.iter().flatten().count();
    let undone = (n_done < values.len()).then(|| format!("interrupted after {n_done} of {} values", values.len()));
    found.into_iter().map(of).chain(undone).collect()
}

impl Document for LimitScan {
    const SCHEMA: &'static str = "limit-scan";

    /// Returns one entry of `limits` for each value that was computed, with the keys of a limit.
    fn fields(answer: &Answer<Self>) -> Value {
        let scan = &answer.result;
        let row = |(value, limit): (&f64, &Option<LimitResult>)| {
            let limit = limit.clone()?;
            let mut document = LimitResult::fields(&Answer::new(answer.analysis.clone(), limit));
            document["value"] = json!(value);
            Some(document)
        };
        json!({
            "at": {"parameter": scan.parameter, "values": scan.values},
            "complete": scan.is_complete(),
            "converged": scan.is_converged(),
            "limits": scan.values.iter().zip(&scan.limits).filter_map(row).collect::<Vec<_>>(),
            "poi": {"name": answer.model().parameters.names[scan.poi], "index": scan.poi},
            "warnings": scan.warnings,
        })
    }
}
