//! Fits that were made earlier, of this model or of one with other channels: parameters are matched
//! by name. What they predict is in `projection`.

mod check;

pub use check::Damage;

use ns_core::Model;
use ns_inference::FitResult;
use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::{DocumentPlace, FitDocument, FitOrigin, JsonError, read_fit};
use serde_json::json;
use std::collections::HashMap;

/// Best-fit values with their covariance, by the names of the parameters. P is their number.
///
/// ```
/// use nextstat::stored::StoredFit;
///
/// let text = r#"{"par_names": ["mu"], "bestfit": [1.2], "uncertainties": [0.4], "correlation": [[1.0]]}"#;
/// let fit = StoredFit::from_json(text.as_bytes())?;
/// assert_eq!(fit.value("mu"), Some(1.2));
/// # Ok::<(), nextstat::stored::StoredFitError>(())
/// ```
#[derive(Debug, Clone)]
pub struct StoredFit {
    names: Vec<String>,
    values: Vec<f64>,
    /// The covariance (P × P, by rows), NaN where the data do not determine it; `None` if it was
    /// not stored.
    covariance: Option<Vec<f64>>,
    /// Where it was stored, for provenance.
    source: Option<String>,
    /// What it was made of, as its document says.
    origin: Option<FitOrigin>,
}

/// A document that is not a stored fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StoredFitError {
    /// A document that is not the JSON of a fit.
    #[error("the document is not a fit: {0}")]
    NotAFit(#[from] JsonError),
    /// A number that no fit has.
    #[error("{problem} {place}")]
    Damaged {
        /// The problem.
        problem: Damage,
        /// The place in the document.
        place: DocumentPlace,
    },
    /// Numbers that are not those of the checksum beside them.
    #[error("the numbers of the fit were changed: those of `{what}` do not have their checksum, {place}")]
    Changed {
        /// What the checksum is of: `parameters`, or a matrix.
        what: String,
        /// The place of the checksum.
        place: DocumentPlace,
    },
    /// A fit that did not converge.
    #[error("the fit did not converge")]
    NotConverged,
    /// A fit without covariance, where one is needed.
    #[error("the fit has neither `covariance` nor `correlation`")]
    NoCovariance,
    /// A fit that has no parameter in common with the model.
    #[error("the model has none of the {n_params} parameters of the fit")]
    NothingInCommon {
        /// The number of parameters of the fit.
        n_params: usize,
    },
}

/// Stored fits are equal if all their numbers are, NaN included.
impl PartialEq for StoredFit {
    fn eq(&self, other: &Self) -> bool {
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let numbers = |fit: &Self| (bits(&fit.values), fit.covariance.as_deref().map(bits));
        (&self.names, &self.source, numbers(self)) == (&other.names, &other.source, numbers(other))
    }
}

impl StoredFit {
    /// Reads the document of `nextstat fit` or `nextstat report`.
    ///
    /// # Errors
    /// A document that is not a fit, or a fit that did not converge.
    pub fn from_json(text: &[u8]) -> Result<Self, StoredFitError> {
        let document = read_fit(text)?;
        if !document.converged {
            return Err(StoredFitError::NotConverged);
        }
        check::check(&document)?;
        check::require_unchanged(&document)?;
        Ok(Self::of_document(document))
    }

    /// Refuses the document of a fit that is damaged, or whose numbers were changed. A fit that did
    /// not converge has none.
    ///
    /// # Errors
    /// As [`StoredFit::from_json`], but for the fit that did not converge.
    pub fn require_sound(text: &[u8]) -> Result<(), StoredFitError> {
        match Self::from_json(text) {
            Ok(_) | Err(StoredFitError::NotConverged) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn of_document(fit: FitDocument) -> Self {
        let n = fit.par_names.len();
        let widths: Vec<f64> = fit.uncertainties.iter().map(|width| width.unwrap_or(0.0)).collect();
        let is_undetermined = undetermined(&fit);
        let mut covariance = match (fit.covariance, fit.correlation) {
            (Some(covariance), _) => Some(covariance),
            (None, Some(mut correlation)) => {
                let widths = |k: usize| if is_undetermined[k] { f64::INFINITY } else { widths[k] };
                let scale = |(k, entry): (usize, &mut f64)| {
                    if *entry != 0.0 {
                        *entry *= widths(k / n) * widths(k % n);
                    }
                };
                correlation.iter_mut().enumerate().for_each(scale);
                Some(correlation)
            }
            (None, None) => None,
        };
        for (k, entry) in covariance.iter_mut().flatten().enumerate() {
            if *entry != 0.0 && (is_undetermined[k / n] || is_undetermined[k % n]) {
                *entry = f64::NAN;
            }
        }
        Self { names: fit.par_names, values: fit.bestfit, covariance, source: None, origin: fit.origin }
    }

    /// Stores the result of a fit.
    ///
    /// # Errors
    /// A fit that did not converge.
    pub fn of(result: &FitResult) -> Result<Self, StoredFitError> {
        if !result.converged {
            return Err(StoredFitError::NotConverged);
        }
        let (names, values) = (result.par_names.clone(), result.bestfit.clone());
        Ok(Self { names, values, covariance: result.covariance.clone(), source: None, origin: None })
    }

    /// Returns the fit with the name of the file that it was read from.
    #[must_use]
    pub fn from_file(self, name: String) -> Self {
        Self { source: Some(name), ..self }
    }

    /// Returns the name of the file that the fit was read from, if it was read from one.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Returns the SHA-256 digest of names, values and covariance as a JSON list, with `null` for
    /// what the fit does not determine.
    #[must_use]
    pub fn sha256(&self) -> String {
        let numbers = json!([self.names, self.values, self.covariance]);
        // The text is valid JSON, and nothing else can fail.
        digest(numbers.to_string().as_bytes(), DigestAlgorithm::Sha256).unwrap_or_default()
    }

    /// Returns the best-fit value of the parameter `name`.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.names.iter().position(|known| known == name).map(|i| self.values[i])
    }

    /// Returns the point of `model` (P) where the parameters of the fit have its values, and the
    /// others their starting values.
    ///
    /// # Errors
    /// No common parameter.
    pub fn point(&self, model: &Model) -> Result<Vec<f64>, StoredFitError> {
        self.matched(model).map(|matched| matched.params)
    }

    /// Returns what the fit was made of, if its document says so.
    #[must_use]
    pub fn origin(&self) -> Option<&FitOrigin> {
        self.origin.as_ref()
    }

    /// Returns which parameters `model` and the fit do not have in common, one sentence for each
    /// side; empty if they have the same parameters.
    ///
    /// # Errors
    /// No common parameter.
    pub fn mismatches(&self, model: &Model) -> Result<Vec<String>, StoredFitError> {
        self.matched(model).map(|matched| matched.warnings())
    }

    /// Returns the warning about parameters that the data of the fit did not determine.
    pub(crate) fn undetermined(&self) -> Option<String> {
        let (n, covariance) = (self.names.len(), self.covariance.as_ref()?);
        let names: Vec<String> =
            (0..n).filter(|&k| covariance[k * n + k].is_nan()).map(|k| self.names[k].clone()).collect();
        (!names.is_empty()).then(|| {
            format!(
                "the stored fit did not determine {}; yields that depend on them have no uncertainty, \
                 also where a combination of them is determined, which only a new fit tells",
                first_of(&names)
            )
        })
    }

    /// Returns the warning about free parameters of `model` that the fit left where they were,
    /// because only bins that it masked depend on them, but for those that it fixed or that
    /// `are_set` afterwards.
    pub(crate) fn left_alone(&self, model: &Model, are_set: impl Fn(usize) -> bool) -> Option<String> {
        let origin = self.origin.as_ref().filter(|origin| !origin.masked.is_empty())?;
        let covariance = self.covariance.as_ref()?;
        let parameters = &model.parameters;
        let is_left = |i: &usize| {
            let Some(k) = self.names.iter().position(|name| *name == parameters.names[*i]) else { return false };
            let is_at_bound = [parameters.lower[*i], parameters.upper[*i]].contains(&self.values[k]);
            covariance[k * self.names.len() + k] == 0.0 && !is_at_bound && !origin.fixed.contains(&self.names[k])
        };
        let is_free = |i: &usize| !parameters.fixed[*i] && parameters.constraint[*i].is_none() && !are_set(*i);
        let left: Vec<String> =
            (0..parameters.len()).filter(is_free).filter(is_left).map(|i| parameters.names[i].clone()).collect();
        (!left.is_empty()).then(|| {
            let names = first_of(&left);
            format!("the stored fit kept the starting values of {names}: only bins that it masked depend on them")
        })
    }

    /// Matches the fit with the parameters of `model`, by name.
    ///
    /// # Errors
    /// No common parameter.
    pub(crate) fn matched(&self, model: &Model) -> Result<Matched, StoredFitError> {
        let names = &model.parameters.names;
        let stored: HashMap<&str, usize> = self.names.iter().enumerate().map(|(k, name)| (name.as_str(), k)).collect();
        let index: Vec<Option<usize>> = names.iter().map(|name| stored.get(name.as_str()).copied()).collect();
        if !names.is_empty() && index.iter().all(Option::is_none) {
            return Err(StoredFitError::NothingInCommon { n_params: self.names.len() });
        }
        let unmatched = (0..names.len()).filter(|&i| index[i].is_none()).map(|i| names[i].clone()).collect();
        let unused = self.names.iter().filter(|name| !names.contains(name)).cloned().collect();
        let params = (0..names.len()).map(|i| index[i].map_or(model.parameters.init[i], |k| self.values[k])).collect();
        Ok(Matched { index, params, unmatched, unused })
    }

    /// Returns the covariance of the parameters of `model` (P × P): that of the fit for those that
    /// it has, and the width of the constraint term without correlations for the others.
    pub(crate) fn covariance(
        &self,
        matched: &Matched,
        widths: impl Fn(usize) -> f64,
    ) -> Result<Vec<f64>, StoredFitError> {
        let stored = self.covariance.as_ref().ok_or(StoredFitError::NoCovariance)?;
        let (n, n_stored) = (matched.index.len(), self.names.len());
        let mut covariance = vec![0.0; n * n];
        for i in 0..n {
            match matched.index[i] {
                None => covariance[i * n + i] = widths(i).powi(2),
                Some(k) => {
                    let columns = (0..n).filter_map(|j| matched.index[j].map(|l| (j, l)));
                    columns.for_each(|(j, l)| covariance[i * n + j] = stored[k * n_stored + l]);
                }
            }
        }
        Ok(covariance)
    }
}

/// A stored fit, matched with the parameters of a model.
pub(crate) struct Matched {
    /// For each parameter of the model its index in the fit (P).
    index: Vec<Option<usize>>,
    /// The point (P): starting values where the fit has none.
    pub(crate) params: Vec<f64>,
    pub(crate) unmatched: Vec<String>,
    pub(crate) unused: Vec<String>,
}

impl Matched {
    /// Returns what a reader should know before using a prediction: which parameters of the model
    /// the fit does not have, and which of the fit the model does not have.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let listed = |names: &[String], what: &str| {
            let number = match names.len() {
                1 => "1 parameter".to_owned(),
                n => format!("{n} parameters"),
            };
            (!names.is_empty()).then(|| format!("{number} {what}: {}", first_of(names)))
        };
        let unmatched = listed(&self.unmatched, "of the model not in the stored fit, left at starting values");
        let unused = listed(&self.unused, "of the stored fit not in the model");
        unmatched.into_iter().chain(unused).collect()
    }
}

/// Lists the first of `names`.
pub(crate) fn first_of(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown}, …") } else { shown }
}

/// Returns which parameters the data do not determine (P): what has a variance or a correlation and
/// no uncertainty. Fixed parameters have none of them.
fn undetermined(fit: &FitDocument) -> Vec<bool> {
    let n = fit.par_names.len();
    let has_variance = |k: usize| fit.covariance.as_ref().map(|matrix| matrix[k * n + k] != 0.0);
    let has_correlation =
        |k: usize| fit.correlation.as_ref().is_some_and(|matrix| (0..n).any(|j| j != k && matrix[k * n + j] != 0.0));
    (0..n).map(|k| fit.uncertainties[k].is_none() && has_variance(k).unwrap_or_else(|| has_correlation(k))).collect()
}
