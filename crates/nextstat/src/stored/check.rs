//! Checks of the numbers of a stored fit: a file that was edited or cut must not become a
//! prediction.

use super::StoredFitError;
use ns_inference::linear::is_positive_semidefinite;
use ns_translate::{FitDocument, fit_checksums};
use std::collections::HashSet;

/// No parameter and no uncertainty is larger: their squares must be finite.
const LARGEST: f64 = 1e100;

/// Relative to one, what is rounding in documents that other programs wrote with six digits.
const ROUNDING: f64 = 1e-5;

/// A number of a document that no fit has.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A parameter name that is there twice.
    #[error("the fit has the parameter `{name}` twice,")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A value whose square overflows.
    #[error("{value:e} is not a value of `{name}` that a fit finds,")]
    TooLarge {
        /// The parameter.
        name: String,
        /// The value.
        value: f64,
    },
    /// A negative uncertainty or variance.
    #[error("the {what} of `{name}` is {value}, which is negative,")]
    Negative {
        /// `uncertainty` or `variance`.
        what: &'static str,
        /// The parameter.
        name: String,
        /// The value.
        value: f64,
    },
    /// A variance that is not the square of the uncertainty.
    #[error("the variance of `{name}` is {variance}, and its uncertainty {uncertainty},")]
    Inconsistent {
        /// The parameter.
        name: String,
        /// Its variance.
        variance: f64,
        /// Its uncertainty.
        uncertainty: f64,
    },
    /// A correlation of a parameter with itself other than 1.
    #[error("the correlation of `{name}` with itself is {value}")]
    NotOne {
        /// The parameter.
        name: String,
        /// The correlation.
        value: f64,
    },
    /// A correlation outside -1 to 1.
    #[error("the correlation of `{}` and `{}` is {value}, which is not between -1 and 1,", .names[0], .names[1])]
    Correlation {
        /// The parameters.
        names: [String; 2],
        /// The correlation.
        value: f64,
    },
    /// Two entries that should be equal.
    #[error("the matrix is not symmetric: {value} for `{}` and `{}`, and {other} the other way round,", .names[0], .names[1])]
    Asymmetric {
        /// The parameters.
        names: [String; 2],
        /// The entry.
        value: f64,
        /// Its mirror image.
        other: f64,
    },
    /// A matrix with a negative eigenvalue.
    #[error("the matrix is not positive semidefinite")]
    Indefinite,
}

/// Refuses what no fit has.
///
/// # Errors
/// [`StoredFitError::Damaged`]
pub(super) fn check(fit: &FitDocument) -> Result<(), StoredFitError> {
    let mut seen = HashSet::new();
    for (k, name) in fit.par_names.iter().enumerate() {
        let name = || name.clone();
        if !seen.insert(name()) {
            return Err(damaged(fit, Damage::Duplicate { name: name() }, &format!("/par_names/{k}")));
        }
        let (value, width) = (fit.bestfit[k], fit.uncertainties[k].unwrap_or(0.0));
        if value.abs() > LARGEST {
            return Err(damaged(fit, Damage::TooLarge { name: name(), value }, &format!("/bestfit/{k}")));
        }
        let at = format!("/uncertainties/{k}");
        if width < 0.0 {
            return Err(damaged(fit, Damage::Negative { what: "uncertainty", name: name(), value: width }, &at));
        }
        if width > LARGEST {
            return Err(damaged(fit, Damage::TooLarge { name: name(), value: width }, &at));
        }
    }
    if let Some(covariance) = &fit.covariance {
        Matrix { fit, key: "covariance", entries: covariance, widths: standard_deviations(fit, covariance)? }
            .check()?;
    }
    if let Some(correlation) = &fit.correlation {
        let widths = units(fit, correlation)?;
        Matrix { fit, key: "correlation", entries: correlation, widths }.check()?;
    }
    Ok(())
}

/// Refuses numbers that are not those of their checksums. A matrix that was removed has none.
///
/// # Errors
/// [`StoredFitError::Changed`]
pub(super) fn require_unchanged(fit: &FitDocument) -> Result<(), StoredFitError> {
    if fit.checksums.is_empty() {
        return Ok(());
    }
    let is_changed = |(what, digits): &(&'static str, String)| {
        fit.checksums.iter().any(|(known, written)| known == what && written != digits)
    };
    match fit_checksums(fit).iter().find(|found| is_changed(found)) {
        None => Ok(()),
        Some((what, _)) => {
            let place = fit.place(&format!("/checksums/{what}"));
            Err(StoredFitError::Changed { what: (*what).to_owned(), place })
        }
    }
}

fn damaged(fit: &FitDocument, problem: Damage, below: &str) -> StoredFitError {
    StoredFitError::Damaged { problem, place: fit.place(below) }
}

/// Returns the square roots of the variances (P), zero for parameters without uncertainty.
fn standard_deviations(fit: &FitDocument, covariance: &[f64]) -> Result<Vec<f64>, StoredFitError> {
    let n = fit.par_names.len();
    let width = |k: usize| {
        let (name, variance) = (fit.par_names[k].clone(), covariance[k * n + k]);
        let at = format!("/covariance/{k}/{k}");
        if variance < 0.0 {
            return Err(damaged(fit, Damage::Negative { what: "variance", name, value: variance }, &at));
        }
        let Some(uncertainty) = fit.uncertainties[k] else { return Ok(0.0) };
        let root = variance.sqrt();
        if (root - uncertainty).abs() > 1e-3 * uncertainty {
            return Err(damaged(fit, Damage::Inconsistent { name, variance, uncertainty }, &at));
        }
        Ok(root)
    };
    (0..n).map(width).collect()
}

/// Returns 1 for every parameter with an uncertainty, 0 for the others (P).
fn units(fit: &FitDocument, correlation: &[f64]) -> Result<Vec<f64>, StoredFitError> {
    let n = fit.par_names.len();
    let unit = |k: usize| {
        let value = correlation[k * n + k];
        match fit.uncertainties[k] {
            None => Ok(0.0),
            Some(_) if (value - 1.0).abs() <= ROUNDING => Ok(1.0),
            Some(_) => {
                let problem = Damage::NotOne { name: fit.par_names[k].clone(), value };
                Err(damaged(fit, problem, &format!("/correlation/{k}/{k}")))
            }
        }
    };
    (0..n).map(unit).collect()
}

/// A matrix of a fit, with the square roots of its diagonal; zero where nothing is checked, because
/// the fit does not determine the parameter.
struct Matrix<'a> {
    fit: &'a FitDocument,
    key: &'static str,
    entries: &'a [f64],
    widths: Vec<f64>,
}

impl Matrix<'_> {
    fn check(&self) -> Result<(), StoredFitError> {
        let n = self.widths.len();
        let known: Vec<usize> = (0..n).filter(|&k| self.widths[k] > 0.0).collect();
        let mut correlation = vec![0.0; known.len() * known.len()];
        for (a, &i) in known.iter().enumerate() {
            for (b, &j) in known.iter().enumerate() {
                correlation[a * known.len() + b] = self.correlation(i, j)?;
            }
        }
        let tolerance = ROUNDING * known.len() as f64;
        if is_positive_semidefinite(&correlation, known.len(), tolerance) {
            return Ok(());
        }
        Err(damaged(self.fit, Damage::Indefinite, &format!("/{}", self.key)))
    }

    /// Returns the correlation of parameters `i` and `j`.
    fn correlation(&self, i: usize, j: usize) -> Result<f64, StoredFitError> {
        let n = self.widths.len();
        let [value, other] = [self.entries[i * n + j], self.entries[j * n + i]];
        let unit = self.widths[i] * self.widths[j];
        let names = || [i, j].map(|k| self.fit.par_names[k].clone());
        let at = || format!("/{}/{i}/{j}", self.key);
        if (value / unit).abs() > 1.0 + ROUNDING {
            return Err(damaged(self.fit, Damage::Correlation { names: names(), value: value / unit }, &at()));
        }
        if (value - other).abs() > ROUNDING * unit {
            return Err(damaged(self.fit, Damage::Asymmetric { names: names(), value, other }, &at()));
        }
        Ok(value / unit)
    }
}
