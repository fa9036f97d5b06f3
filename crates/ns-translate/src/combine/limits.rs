//! Bounds what a hostile card can ask for: short lines can name many things.

use super::error::{CardError, CardProblem};
use super::words::CardPlace;

/// Effects of uncertainties on processes. A card with all of CMS's Higgs channels has 10⁶.
const MOST_EFFECTS: usize = 50_000_000;

/// Factors of processes by `rateParam`.
const MOST_RATES: usize = 1_000_000;

/// Columns that edits look at.
const MOST_EDITED: usize = 100_000_000;

/// Numbers of all templates and their variations: 1 GB.
const MOST_CONTENTS: usize = 1 << 27;

/// What is left of each limit.
#[derive(Debug)]
pub(super) struct Limits {
    effects: usize,
    rates: usize,
    edited: usize,
    contents: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { effects: MOST_EFFECTS, rates: MOST_RATES, edited: MOST_EDITED, contents: MOST_CONTENTS }
    }
}

impl Limits {
    pub(super) fn effects(&mut self, wanted: usize, place: CardPlace) -> Result<(), CardError> {
        take(&mut self.effects, wanted, ("effects of uncertainties", MOST_EFFECTS), place)
    }

    pub(super) fn rates(&mut self, wanted: usize, place: CardPlace) -> Result<(), CardError> {
        take(&mut self.rates, wanted, ("factors by `rateParam`", MOST_RATES), place)
    }

    pub(super) fn edited(&mut self, wanted: usize, place: CardPlace) -> Result<(), CardError> {
        take(&mut self.edited, wanted, ("comparisons by `nuisance edit`", MOST_EDITED), place)
    }

    pub(super) fn contents(&mut self, wanted: usize, place: CardPlace) -> Result<(), CardError> {
        take(&mut self.contents, wanted, ("contents of templates", MOST_CONTENTS), place)
    }
}

fn take(left: &mut usize, wanted: usize, limit: (&'static str, usize), place: CardPlace) -> Result<(), CardError> {
    match left.checked_sub(wanted) {
        Some(rest) => {
            *left = rest;
            Ok(())
        }
        None => Err(CardProblem::TooMuch { what: limit.0, limit: limit.1 }.at(place)),
    }
}
