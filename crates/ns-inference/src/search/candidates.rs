//! What a model indicates about further minima, and how much of it a fit looks at.

use super::explore::{MIDDLE, THOROUGH, has_other_side};
use super::mirror::Mirrors;
use super::suspects::{Suspect, SuspectKind, suspects};
use crate::minimize::{Domain, Minimum};
use ns_core::Model;
use std::sync::Arc;

/// The parameters of a model that may hide minima.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Candidates {
    /// Same-sign systematics, for which there may be a minimum on either side of zero (P); empty if
    /// there are none.
    pub same_sign: Vec<bool>,
    /// Parameters whose effect on the expected counts is far from linear. Shared, because every
    /// search has a copy.
    pub suspects: Arc<[Suspect]>,
    /// Parameters of formulas, with the model that says where their effect is the same again.
    pub mirrors: Option<Arc<Mirrors>>,
}

impl Candidates {
    /// Returns the candidates of `model`.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let same_sign = model.same_sign();
        let same_sign = if same_sign.contains(&true) { same_sign } else { Vec::new() };
        Self { same_sign, suspects: suspects(model).into(), mirrors: Mirrors::of(model) }
    }

    /// Returns `true` if exploring in `domain` takes many fits, so that a procedure of many fits
    /// should explore few of them.
    #[must_use]
    pub fn explore_widely(&self, domain: &Domain) -> bool {
        self.are_few(domain) || !self.moved_in_large(domain).is_empty()
    }

    /// Returns `true` if the model indicates no further minimum: there is nothing to explore.
    pub(crate) fn are_none(&self, domain: &Domain) -> bool {
        self.same_sign.is_empty() && self.free(domain).next().is_none()
    }

    /// Returns the suspects that are free in `domain`.
    pub(super) fn free(&self, domain: &Domain) -> impl Iterator<Item = &Suspect> {
        self.suspects.iter().filter(|suspect| suspect.parameters.iter().all(|&i| !domain.fixed[i]))
    }

    /// Returns `true` if there are suspects, and so few that each is moved in every fit.
    pub(super) fn are_few(&self, domain: &Domain) -> bool {
        let n = self.free(domain).filter(|suspect| suspect.kind != SuspectKind::Growth).count();
        n > 0 && n * domain.fixed.len().pow(2) <= THOROUGH
    }

    /// Returns the suspects that are moved where there are too many to move all, in this order.
    pub(super) fn moved_in_large(&self, domain: &Domain) -> Vec<&Suspect> {
        let is_middle = domain.fixed.len() <= MIDDLE;
        let is_moved = |suspect: &&Suspect| suspect.is_strong() || is_middle;
        let mut moved: Vec<&Suspect> = self.free(domain).filter(is_moved).collect();
        moved.sort_by_key(|suspect| (!suspect.is_strong(), suspect.kind != SuspectKind::Scale));
        moved
    }

    /// Returns the same-sign systematics for which there may be another minimum than `minimum` with
    /// the other sign.
    pub(super) fn to_reflect(&self, domain: &Domain, minimum: &Minimum) -> Vec<usize> {
        let is_one = |&i: &usize| self.same_sign[i] && has_other_side(domain, i, minimum.params[i]);
        if minimum.converged() { (0..self.same_sign.len()).filter(is_one).collect() } else { Vec::new() }
    }
}
