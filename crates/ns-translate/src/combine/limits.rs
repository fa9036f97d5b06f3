//! Bounds what a hostile card can ask for: short lines can name many things.

use super::error::{CardError, CardProblem};
use super::words::CardPlace;

/// What a card can ask for.
#[derive(Debug)]
pub(super) struct Limits {
    effects: Limit,
    rates: Limit,
    edited: Limit,
    contents: Limit,
}

/// How much of something there may be, and how much of that is left.
#[derive(Debug)]
struct Limit {
    what: &'static str,
    most: usize,
    left: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A card with all of CMS's Higgs channels has 10⁶.
            effects: Limit::new("effects of uncertainties", 50_000_000),
            rates: Limit::new("factors by `rateParam`", 1_000_000),
            // Columns that edits look at.
            edited: Limit::new("comparisons by `nuisance edit`", 100_000_000),
            // Numbers of all templates and their variations: 1 GB.
            contents: Limit::new("contents of templates", 1 << 27),
        }
    }
}

impl Limits {
    pub(super) fn effects(&mut self, wanted: usize, place: CardPlace) -> Result<(), CardError> {
        self.effects.take(wanted, place)
    }

    pub(super) fn rates(&mut self, wanted: usize, place: CardPlace) -> Result<(), CardError> {
        self.rates.take(wanted, place)
    }

    pub(super) fn edited(&mut self, wanted: usize, place: CardPlace) -> Result<(), CardError> {
        self.edited.take(wanted, place)
    }

    pub(super) fn contents(&mut self, wanted: usize, place: CardPlace) -> Result<(), CardError> {
        self.contents.take(wanted, place)
    }
}

impl Limit {
    fn new(what: &'static str, most: usize) -> Self {
        Self { what, most, left: most }
    }

    fn take(&mut self, wanted: usize, place: CardPlace) -> Result<(), CardError> {
        match self.left.checked_sub(wanted) {
            Some(rest) => {
                self.left = rest;
                Ok(())
            }
            None => Err(CardProblem::TooMuch { what: self.what, limit: self.most }.at(place)),
        }
    }
}
