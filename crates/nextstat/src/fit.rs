//! Maximum-likelihood fits.

use crate::document::{identify, to_document};
use crate::error::{NeedsPoi, Setting, SettingsError};
use crate::settings::elements;
use crate::{Analysis, Answer, Error};
use ns_core::Model;
use ns_core::expected::lowest_negative_yield;
use ns_core::parameters::ParameterSet;
use ns_inference::hessian::Hessian;
use ns_inference::pulls::{self, Pull};
use ns_inference::{FitOptions, FitResult, Problem, Uncertainties};
use serde_json::{Map, Value, json};

/// What a fit is asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FitRequest {
    /// What to compute at the minimum.
    pub uncertainties: Uncertainties,
    /// Parameters whose asymmetric intervals are wanted.
    pub minos: Vec<IntervalTarget>,
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

/// Which matrices a document shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Matrices {
    /// The covariance (P × P).
    pub covariance: bool,
    /// The correlations (P × P).
    pub correlation: bool,
}

impl Analysis {
    /// Fits the model to the data.
    ///
    /// # Errors
    /// Names that the model does not have, fixed parameters whose intervals are wanted, too little
    /// memory, or a failing device. A fit that does not converge is a result.
    pub fn fit(&self, request: &FitRequest) -> Result<Answer<FitResult>, Error> {
        let options = FitOptions {
            uncertainties: request.uncertainties,
            minos: self.minos(&request.minos)?,
            ..self.options().clone()
        };
        let options = self.started(options);
        let mut likelihood = self.likelihood()?;
        let result = ns_inference::fit(&mut Problem::new(self.model(), &mut likelihood, &options));
        self.answer(result)
    }

    /// Resolves the parameters whose intervals are wanted, each once.
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
                IntervalTarget::Named(name) => elements(parameters, Setting::Minos, name)?.collect(),
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

impl Answer<FitResult> {
    /// Returns the warnings of the fit and of the model at its minimum.
    ///
    /// The latter look for negative yields, which takes a tenth of a fit.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let negative =
            self.result.nll.is_finite().then(|| negative_yield(self.model(), &self.result.bestfit)).flatten();
        let known = &self.result.warnings;
        known.iter().cloned().chain(negative.filter(|warning| !known.contains(warning))).collect()
    }

    /// Adds the warnings about the model at its minimum to those of the fit.
    #[must_use]
    pub fn diagnosed(mut self) -> Self {
        self.result.warnings = self.warnings();
        self
    }

    /// Computes the inverse of the exact Hessian (P × P, by rows), zero for parameters without
    /// uncertainty; `None` if there is none.
    ///
    /// # Errors
    /// A model whose matrices do not fit into memory.
    pub fn covariance(&self) -> Result<Option<Vec<f64>>, Error> {
        if !self.result.nll.is_finite() {
            return Ok(None);
        }
        let mut likelihood = self.analysis.likelihood()?;
        Ok(Hessian::at(&mut likelihood, &self.result.bestfit, &self.analysis.domain()).covariance())
    }

    /// Returns where the fit left the constrained parameters.
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

    /// Returns name, index, best fit and uncertainty of each parameter of interest.
    #[must_use]
    pub fn pois(&self) -> Vec<Value> {
        let result = &self.result;
        let poi = |&index: &usize| {
            let (bestfit, uncertainty) = (result.bestfit[index], result.uncertainties[index]);
            json!({"name": result.par_names[index], "index": index, "bestfit": bestfit, "uncertainty": uncertainty})
        };
        self.model().pois.iter().map(poi).collect()
    }

    /// Returns the document: the library's fields, and pyhf's. Its warnings are those of the
    /// result.
    #[must_use]
    pub fn document(&self, wanted: Matrices) -> Value {
        self.sign(self.fields(wanted))
    }

    pub(crate) fn fields(&self, wanted: Matrices) -> Value {
        let result = &self.result;
        let Value::Object(mut document) = to_document(result) else { return Value::Null };
        document.remove("covariance");
        if result.minima.is_empty() {
            document.remove("minima");
        }
        let n = result.par_names.len();
        if wanted.covariance {
            document.insert("covariance".to_owned(), matrix(result.covariance.as_deref(), n));
        }
        if wanted.correlation {
            document.insert("correlation".to_owned(), matrix(result.correlation().as_deref(), n));
        }
        let pois = self.pois();
        document.extend([
            ("mle_parameters".to_owned(), self.mle_parameters()),
            ("poi".to_owned(), json!(pois.first())),
            ("pois".to_owned(), json!(pois)),
        ]);
        let mut document = Value::Object(document);
        identify(&mut document, self.model());
        document
    }
}

fn matrix(values: Option<&[f64]>, n: usize) -> Value {
    values.map_or(Value::Null, |values| values.chunks(n.max(1)).map(|row| json!(row)).collect())
}

/// Returns the warning about the lowest negative yield of a sample at `params` (P), if there is
/// one.
///
/// pyhf allows a negative yield of one sample, ROOT does not: readers who compare the two must
/// know.
fn negative_yield(model: &Model, params: &[f64]) -> Option<String> {
    let (place, sample, lowest) = lowest_negative_yield(model, params)?;
    Some(format!(
        "sample `{sample}` has a negative yield ({lowest:.4}) in {place} at the minimum; ROOT would \
         clip it at zero and find another minimum"
    ))
}
