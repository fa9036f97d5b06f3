//! Maximum-likelihood fits.

use crate::answer::Document;
pub use crate::document::Matrices;
use crate::document::{DocumentParts, to_document};
use crate::error::{NeedsPoi, Setting, SettingsError};
use crate::settings::{elements, require_probability};
use crate::{Analysis, Answer, Error};
use ns_core::expected::lowest_negative_yield;
use ns_core::parameters::ParameterSet;
use ns_inference::hessian::Hessian;
use ns_inference::minimize::Outcome;
use ns_inference::pulls::{self, Pull};
use ns_inference::{FitOptions, FitResult, Problem, Uncertainties};
use ns_translate::{FitDocument, fit_checksums};
use serde_json::{Map, Value, json};

/// What to compute at the minimum.
///
/// ```
/// # use nextstat::{Analysis, CompiledModel, Settings};
/// use nextstat::FitRequest;
/// use nextstat::fit::IntervalTarget;
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let request = FitRequest { minos: vec![IntervalTarget::OfInterest], ..FitRequest::default() };
/// let fit = Analysis::new(&model, &Settings::default())?.fit(&request)?;
/// assert_eq!(fit.result.minos[0].parameter, "mu");
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FitRequest {
    /// The uncertainties.
    pub uncertainties: Uncertainties,
    /// Parameters that get asymmetric (MINOS) intervals.
    pub minos: Vec<IntervalTarget>,
    /// Two-sided confidence levels of these intervals; empty for one standard deviation.
    pub minos_cls: Vec<f64>,
    /// Matrices of the document.
    pub matrices: Matrices,
}

/// Parameters whose asymmetric (MINOS) intervals a fit computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntervalTarget {
    /// The parameter, or every element of the vector, of this name; `all` means
    /// [`IntervalTarget::AllFree`], unless the model has a parameter of that name.
    Named(String),
    /// Every free parameter.
    AllFree,
    /// The parameters of interest.
    OfInterest,
}

/// The name that stands for every free parameter.
const ALL: &str = "all";

impl Analysis {
    /// Fits the model to the data.
    ///
    /// # Errors
    /// Names that the model does not have, intervals of fixed parameters, a device that is not
    /// available or fails, too little memory. A fit that does not converge is a result.
    pub fn fit(&self, request: &FitRequest) -> Result<Answer<FitResult>, Error> {
        let options = FitOptions {
            uncertainties: request.uncertainties,
            minos: self.minos(&request.minos)?,
            minos_cls: checked_cls(&request.minos_cls)?,
            ..self.options().clone()
        };
        let options = self.started(options)?;
        let mut likelihood = self.likelihood()?;
        let result = ns_inference::fit(&mut Problem::new(self.model(), &mut likelihood, &options));
        self.answer_with(result, DocumentParts { matrices: request.matrices, ..DocumentParts::default() })
    }

    /// Resolves the parameters that get intervals, each once.
    fn minos(&self, targets: &[IntervalTarget]) -> Result<Vec<usize>, SettingsError> {
        let (model, parameters) = (self.model(), &self.model().parameters);
        let all_free = || (0..parameters.len()).filter(|&i| !self.is_fixed(i)).collect();
        let mut wanted = Vec::new();
        for target in targets {
            let named: Vec<usize> = match target {
                IntervalTarget::OfInterest if model.pois.is_empty() => {
                    return Err(SettingsError::NoPoi(NeedsPoi::Setting(Setting::Minos)));
                }
                IntervalTarget::OfInterest => model.pois.clone(),
                IntervalTarget::AllFree => all_free(),
                IntervalTarget::Named(name) if name == ALL && parameters.set(ALL).is_none() => all_free(),
                IntervalTarget::Named(name) => elements(parameters, Setting::Minos, name)?,
            };
            if let Some(&fixed) = named.iter().find(|&&i| self.is_fixed(i)) {
                return Err(SettingsError::MinosOfFixed { name: parameters.names[fixed].clone() });
            }
            wanted.extend(named);
        }
        let mut seen = vec![false; parameters.len()];
        wanted.retain(|&i| !std::mem::replace(&mut seen[i], true));
        Ok(wanted)
    }
}

/// Refuses confidence levels outside 0 to 1.
fn checked_cls(cls: &[f64]) -> Result<Vec<f64>, SettingsError> {
    cls.iter().try_for_each(|cl| require_probability(Setting::MinosCl, *cl))?;
    Ok(cls.to_vec())
}

impl Answer<FitResult> {
    /// Returns the warnings of the fit and of the model at its minimum.
    ///
    /// The latter search for negative yields, which takes a tenth of the time of a fit.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let lowest = || lowest_negative_yield(self.model(), &self.result.bestfit);
        let negative = self.is_finite().then(lowest).flatten().map(|found| found.to_string());
        let masked = self.analysis.fixed_by_mask().into_iter().map(|i| {
            format!("only masked bins depend on `{}`, which stays at its starting value", self.result.par_names[i])
        });
        let known = &self.result.warnings;
        known.iter().cloned().chain(masked.chain(negative).filter(|warning| !known.contains(warning))).collect()
    }

    /// Returns `true` if -ln L is finite where the fit ended; the value itself may be hidden.
    fn is_finite(&self) -> bool {
        self.result.outcome != Outcome::NotFinite
    }

    /// Adds the warnings about the model at its minimum to those of the fit.
    #[must_use]
    pub fn diagnosed(mut self) -> Self {
        self.result.warnings = self.warnings();
        self
    }

    /// Returns the covariance of the result, or computes the inverse of the exact Hessian (P × P).
    ///
    /// It is zero for parameters without uncertainty; `None` if there is none.
    ///
    /// # Errors
    /// A model whose matrices do not fit into memory.
    pub fn covariance(&self) -> Result<Option<Vec<f64>>, Error> {
        if !self.is_finite() {
            return Ok(None);
        }
        if let Some(covariance) = &self.result.covariance {
            return Ok(Some(covariance.clone()));
        }
        let mut likelihood = self.analysis.likelihood()?;
        Ok(Hessian::at(&mut likelihood, &self.result.bestfit, &self.analysis.domain()).covariance())
    }

    /// Returns the pulls of the constrained parameters.
    #[must_use]
    pub fn pulls(&self) -> Vec<Pull> {
        pulls::pulls(self.model(), self.analysis.data(), &self.result, &self.analysis.domain().fixed)
    }

    /// Returns `{name: [best-fit value of each element]}`.
    #[must_use]
    pub fn mle_parameters(&self) -> Value {
        let values = |set: &ParameterSet| (set.name.clone(), json!(self.result.bestfit[set.range()]));
        Value::Object(self.model().parameters.sets.iter().map(values).collect::<Map<_, _>>())
    }

    /// Returns name, index, best fit, uncertainty and its parts of each parameter of interest.
    #[must_use]
    pub fn pois(&self) -> Vec<Value> {
        let result = &self.result;
        let poi = |(k, &index): (usize, &usize)| {
            let split = result.splits.get(k);
            json!({
                "name": result.par_names[index],
                "index": index,
                "bestfit": result.bestfit[index],
                "uncertainty": result.uncertainties[index],
                "statistical": split.and_then(|split| split.statistical),
                "systematic": split.and_then(|split| split.systematic),
            })
        };
        self.model().pois.iter().enumerate().map(poi).collect()
    }
}

impl Document for FitResult {
    const SCHEMA: &'static str = "fit";

    /// Returns the fields of the result, its pulls, and pyhf's names for the same numbers.
    fn fields(answer: &Answer<Self>) -> Value {
        let mut document = fields(answer, answer.parts.matrices);
        document["pulls"] = to_document(&answer.pulls());
        document
    }
}

/// Returns the document of a fit with these matrices and without its pulls, which a report has
/// beside it.
pub(crate) fn fields(fit: &Answer<FitResult>, wanted: Matrices) -> Value {
    let result = &fit.result;
    let Value::Object(mut document) = to_document(result) else { return Value::Null };
    document.remove("covariance");
    // The parameters of interest have them.
    document.remove("splits");
    if result.minima.is_empty() {
        document.remove("minima");
    }
    let n = result.par_names.len();
    let numbers = FitDocument {
        par_names: result.par_names.clone(),
        bestfit: result.bestfit.clone(),
        uncertainties: result.uncertainties.clone(),
        covariance: result.covariance.clone().filter(|_| wanted.covariance),
        correlation: result.correlation().filter(|_| wanted.correlation),
        ..FitDocument::default()
    };
    if wanted.covariance {
        document.insert("covariance".to_owned(), matrix(numbers.covariance.as_deref(), n));
    }
    if wanted.correlation {
        document.insert("correlation".to_owned(), matrix(numbers.correlation.as_deref(), n));
    }
    let checksums = fit_checksums(&numbers).into_iter().map(|(name, digits)| (name.to_owned(), json!(digits)));
    document.insert("checksums".to_owned(), Value::Object(checksums.collect()));
    let pois = fit.pois();
    document.extend([
        ("mle_parameters".to_owned(), fit.mle_parameters()),
        ("poi".to_owned(), json!(pois.first())),
        ("pois".to_owned(), json!(pois)),
    ]);
    Value::Object(document)
}

fn matrix(values: Option<&[f64]>, n: usize) -> Value {
    values.map_or(Value::Null, |values| values.chunks(n.max(1)).map(|row| json!(row)).collect())
}
