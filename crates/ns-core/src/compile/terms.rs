//! Replaces the constraint terms that modifiers have by those of a measurement: element by element,
//! or by a kind of term for the bins of a staterror or shapesys.

use super::error::CompileError;
use super::settings::Requirement;
use crate::constraint::Constraint;
use crate::spec::{ConstraintTerm, ModifierKind, ParameterConfig, PerBinConstraint, PerBinKind};

/// How far above the end of a term's domain a range begins that no setting gives.
const LEAST: f64 = 1e-10;

/// The settings of one parameter that change its constraint terms.
pub(super) struct TermSettings<'a> {
    pub(super) config: &'a ParameterConfig,
    /// JSON pointer of the settings.
    pub(super) pointer: &'a str,
}

impl TermSettings<'_> {
    /// Applies `constraints` and `per_bin` to `requirement`, and their datum and range where no
    /// other setting gives one. Returns the elements that `per_bin` fixes.
    pub(super) fn apply(&self, requirement: &mut Requirement) -> Result<Vec<bool>, CompileError> {
        self.refuse_conflicts(requirement)?;
        let mut fixed = vec![false; requirement.init.len()];
        if let Some(per_bin) = self.config.per_bin {
            fixed = self.apply_per_bin(requirement, per_bin)?;
        }
        if let Some(terms) = &self.config.constraints {
            self.apply_terms(requirement, terms)?;
        }
        Ok(fixed)
    }

    fn refuse_conflicts(&self, requirement: &Requirement) -> Result<(), CompileError> {
        let config = self.config;
        let (terms, per_bin) = (config.constraints.is_some(), config.per_bin.is_some());
        let (sigmas, factors) = (config.sigmas.is_some(), config.factors.is_some());
        let pairs = [
            ("constraints", "sigmas", terms && sigmas),
            ("constraints", "factors", terms && factors),
            ("constraints", "per_bin", terms && per_bin),
            ("per_bin", "sigmas", per_bin && sigmas),
            ("per_bin", "factors", per_bin && factors),
        ];
        if let Some(&(field, other, _)) = pairs.iter().find(|(.., conflict)| *conflict) {
            let (parameter, pointer) = (requirement.name.clone(), self.at(field));
            return Err(CompileError::SettingsConflict { parameter, field, other, pointer });
        }
        let takes_beta =
            |term: &ConstraintTerm| matches!(term, ConstraintTerm::Gamma { .. } | ConstraintTerm::LogNormal { .. });
        if config.beta.is_some() && !config.constraints.iter().flatten().any(takes_beta) {
            let (parameter, pointer) = (requirement.name.clone(), self.at("beta"));
            return Err(CompileError::BetaWithoutTerm { parameter, pointer });
        }
        Ok(())
    }

    fn apply_terms(&self, requirement: &mut Requirement, terms: &[ConstraintTerm]) -> Result<(), CompileError> {
        let beta = self.config.beta.unwrap_or_default();
        if beta.factor <= 0.0 || !beta.offset.is_finite() || !beta.factor.is_finite() {
            let field = if beta.offset.is_finite() { "factor" } else { "offset" };
            let value = if beta.offset.is_finite() { beta.factor } else { beta.offset };
            return Err(self.out_of_range(requirement, &format!("beta/{field}"), value));
        }
        for (i, &term) in terms.iter().enumerate() {
            self.check_term(requirement, i, term)?;
            let constraint = Constraint::from_term(term, beta);
            requirement.constraints[i] = constraint;
            requirement.aux[i] = constraint.map_or(0.0, |c| c.expected_datum().at(requirement.init[i]));
            if self.config.auxdata.is_none() && is_impossible(constraint, requirement.aux[i]) {
                return Err(self.out_of_range(requirement, &format!("constraints/{i}"), requirement.aux[i]));
            }
            if let Some(least) = constraint.and_then(Constraint::least_param) {
                let [lower, _] = &mut requirement.bounds[i];
                *lower = lower.max(least + LEAST / beta.factor);
            }
            if let [lower, upper] = requirement.bounds[i]
                && self.config.bounds.is_none()
                && lower >= upper
            {
                let (parameter, pointer) = (requirement.name.clone(), self.at("beta"));
                return Err(CompileError::EmptyRange { parameter, lower, upper, pointer });
            }
        }
        Ok(())
    }

    fn check_term(&self, requirement: &Requirement, i: usize, term: ConstraintTerm) -> Result<(), CompileError> {
        let numbers = match term {
            ConstraintTerm::Gaussian { sigma } => vec![("sigma", sigma, 0.0)],
            ConstraintTerm::AsymmetricGaussian { sigma_lo, sigma_hi } => {
                vec![("sigma_lo", sigma_lo, 0.0), ("sigma_hi", sigma_hi, 0.0)]
            }
            ConstraintTerm::Poisson { tau } | ConstraintTerm::Gamma { tau } => vec![("tau", tau, 0.0)],
            ConstraintTerm::LogNormal { kappa, .. } => vec![("kappa", kappa, 1.0)],
            ConstraintTerm::Flat => Vec::new(),
        };
        match numbers.into_iter().find(|&(_, value, least)| !value.is_finite() || value <= least) {
            Some((field, value, _)) => Err(self.out_of_range(requirement, &format!("constraints/{i}/{field}"), value)),
            None => Ok(()),
        }
    }

    /// Bins without an uncertainty, or with one below the threshold, are fixed and have no term.
    fn apply_per_bin(
        &self,
        requirement: &mut Requirement,
        per_bin: PerBinConstraint,
    ) -> Result<Vec<bool>, CompileError> {
        let kind = requirement.kinds[0];
        let PerBinConstraint { constraint, relative_threshold } = per_bin;
        let own = match kind {
            ModifierKind::StatError => PerBinKind::Gaussian,
            ModifierKind::ShapeSys => PerBinKind::Poisson,
            _ => {
                let (parameter, pointer) = (requirement.name.clone(), self.at("per_bin"));
                return Err(CompileError::SettingUnused { parameter, field: "per_bin", kind, pointer });
            }
        };
        let threshold = relative_threshold.unwrap_or(0.0);
        if !threshold.is_finite() || threshold < 0.0 {
            return Err(self.out_of_range(requirement, "per_bin/relative_threshold", threshold));
        }
        for i in 0..requirement.init.len() {
            let relative = match requirement.constraints[i] {
                Some(Constraint::Gaussian { sigma }) if !requirement.fixed[i] => sigma,
                Some(Constraint::Poisson { tau }) if !requirement.fixed[i] => tau.sqrt().recip(),
                _ => 0.0,
            };
            if relative == 0.0 || relative < threshold {
                (requirement.constraints[i], requirement.fixed[i]) = (None, true);
                continue;
            }
            let term = match (constraint.unwrap_or(own), requirement.constraints[i]) {
                (PerBinKind::Gaussian, _) => Constraint::Gaussian { sigma: relative },
                (PerBinKind::Poisson, Some(term @ Constraint::Poisson { .. })) => term,
                (PerBinKind::Poisson, _) => Constraint::Poisson { tau: 1.0 / (relative * relative) },
            };
            (requirement.constraints[i], requirement.aux[i]) = (Some(term), term.expected_datum().at(1.0));
        }
        Ok(requirement.fixed.clone())
    }

    fn out_of_range(&self, requirement: &Requirement, field: &str, value: f64) -> CompileError {
        let pointer = format!("{}/{field}", self.pointer);
        CompileError::TermOutOfRange { parameter: requirement.name.clone(), value, pointer }
    }

    fn at(&self, field: &str) -> String {
        format!("{}/{field}", self.pointer)
    }
}

/// Returns the first element whose auxiliary datum no data set can have: a negative count, or 0 for
/// a log-normal term.
pub(super) fn impossible_datum(requirement: &Requirement) -> Option<usize> {
    let pairs = requirement.constraints.iter().zip(&requirement.aux);
    pairs.map(|(&term, &aux)| is_impossible(term, aux)).position(|wrong| wrong)
}

fn is_impossible(term: Option<Constraint>, aux: f64) -> bool {
    term.is_some_and(|term| !aux.is_finite() || aux < term.least_datum())
}
