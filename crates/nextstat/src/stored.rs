//! Fits that were made earlier, of this model or of one with other channels: parameters are matched
//! by name. What they predict is in `projection`.

use ns_core::Model;
use ns_inference::FitResult;
use serde::Deserialize;
use serde_json::Value;

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
}

/// A document that is not a stored fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StoredFitError {
    /// A document that is not the JSON of a fit.
    #[error("the document is not a fit: {reason}")]
    NotAFit {
        /// The parser's message.
        reason: String,
    },
    /// Lists of different lengths.
    #[error("`{key}` of the fit has {found} entries for {expected} parameters")]
    WrongLength {
        /// The key.
        key: &'static str,
        /// Its number of entries.
        found: usize,
        /// The number of parameters.
        expected: usize,
    },
    /// A fit that did not converge.
    #[error("the fit did not converge")]
    NotConverged,
    /// A best-fit value that is not a number.
    #[error("the fit has no value of `{name}`")]
    NoValue {
        /// The parameter.
        name: String,
    },
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

impl StoredFitError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotAFit { .. } => Some("`nextstat fit --covariance --output-file fit.json` writes one"),
            Self::NoCovariance => Some("store it with `nextstat fit --covariance`"),
            _ => None,
        }
    }
}

/// What is read of the document of a fit.
#[derive(Deserialize)]
struct FitFields {
    par_names: Vec<String>,
    bestfit: Vec<Option<f64>>,
    uncertainties: Vec<Option<f64>>,
    #[serde(default)]
    covariance: Option<Vec<Vec<f64>>>,
    #[serde(default)]
    correlation: Option<Vec<Vec<f64>>>,
    #[serde(default = "yes")]
    converged: bool,
}

fn yes() -> bool {
    true
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
        let not_a_fit = |error: serde_json::Error| StoredFitError::NotAFit { reason: error.to_string() };
        let mut document: Value = serde_json::from_slice(text).map_err(not_a_fit)?;
        // A report has a fit in it.
        let fit = document.get_mut("fit").filter(|fit| fit.is_object()).map(Value::take).unwrap_or(document);
        Self::of_fields(serde_json::from_value(fit).map_err(not_a_fit)?)
    }

    fn of_fields(fit: FitFields) -> Result<Self, StoredFitError> {
        if !fit.converged {
            return Err(StoredFitError::NotConverged);
        }
        let n = fit.par_names.len();
        require_length("bestfit", fit.bestfit.len(), n)?;
        require_length("uncertainties", fit.uncertainties.len(), n)?;
        let value = |(name, value): (&String, Option<f64>)| {
            value.filter(|value| value.is_finite()).ok_or_else(|| StoredFitError::NoValue { name: name.clone() })
        };
        let values = fit.par_names.iter().zip(fit.bestfit).map(value).collect::<Result<_, _>>()?;
        let widths: Vec<f64> = fit.uncertainties.iter().map(|width| width.unwrap_or(0.0)).collect();
        let is_undetermined: Vec<bool> = fit.uncertainties.iter().map(Option::is_none).collect();
        let mut covariance = match (fit.covariance, fit.correlation) {
            (Some(covariance), _) => Some(square("covariance", &covariance, n)?),
            (None, Some(correlation)) => {
                let mut matrix = square("correlation", &correlation, n)?;
                matrix.iter_mut().enumerate().for_each(|(k, entry)| *entry *= widths[k / n] * widths[k % n]);
                Some(matrix)
            }
            (None, None) => None,
        };
        // What the data do not determine has a variance and no uncertainty; fixed parameters have
        // neither.
        for (k, entry) in covariance.iter_mut().flatten().enumerate() {
            if *entry != 0.0 && (is_undetermined[k / n] || is_undetermined[k % n]) {
                *entry = f64::NAN;
            }
        }
        Ok(Self { names: fit.par_names, values, covariance, source: None })
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
        Ok(Self { names, values, covariance: result.covariance.clone(), source: None })
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

    /// Matches the fit with the parameters of `model`, by name.
    ///
    /// # Errors
    /// No common parameter.
    pub(crate) fn matched(&self, model: &Model) -> Result<Matched, StoredFitError> {
        let names = &model.parameters.names;
        let index: Vec<Option<usize>> =
            names.iter().map(|name| self.names.iter().position(|known| known == name)).collect();
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

fn require_length(key: &'static str, found: usize, expected: usize) -> Result<(), StoredFitError> {
    if found == expected { Ok(()) } else { Err(StoredFitError::WrongLength { key, found, expected }) }
}

/// Joins the rows of a matrix (n × n).
fn square(key: &'static str, rows: &[Vec<f64>], n: usize) -> Result<Vec<f64>, StoredFitError> {
    require_length(key, rows.len(), n)?;
    rows.iter().try_for_each(|row| require_length(key, row.len(), n))?;
    Ok(rows.concat())
}
