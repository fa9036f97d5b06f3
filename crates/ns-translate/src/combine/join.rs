//! Joins cards to one, as Combine's `combineCards.py` does: parameters of one name are one.
//!
//! A card of one channel gives it its label; one of several puts its label before their names. The
//! label `.` leaves the names as they are.

use std::collections::{HashMap, HashSet};

use super::card::{Card, CardChannel, Column, Effect, RateParameter, RateValue, Systematic, SystematicKind};
use super::error::{CardError, CardProblem};
use super::limits::Limits;
use super::option_error::CardOptionError;
use crate::source::{DocumentSource, SourceError, read_bytes};

/// A card and the label of its channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledCard {
    /// The label; `None` for `ch1`, `ch2`, … by the order of the cards, and `.` for the names that
    /// the channels have in the card.
    pub label: Option<String>,
    /// Where the card is; its templates are searched for beside it.
    pub source: DocumentSource,
    /// The text of the card.
    pub bytes: Vec<u8>,
}

impl LabelledCard {
    /// The label that leaves the names of a card's channels as they are.
    pub const NO_LABEL: &str = ".";

    /// Reads the text of the card in `source`.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn load(label: Option<String>, source: DocumentSource) -> Result<Self, SourceError> {
        let bytes = read_bytes(&source)?;
        Ok(Self { label, source, bytes })
    }

    /// Returns the label of the card with this index.
    #[must_use]
    pub fn label_at(&self, index: usize) -> String {
        self.label.clone().unwrap_or_else(|| format!("ch{}", index + 1))
    }
}

/// Reads and joins `cards`.
pub(super) fn read(cards: &[LabelledCard]) -> Result<Card, CardError> {
    let mut limits = Limits::default();
    let mut joiner =
        Joiner { card: Card::default(), processes: HashMap::new(), rates: HashMap::new(), limits: &mut limits };
    let mut labels: Vec<String> = Vec::new();
    for (index, one) in cards.iter().enumerate() {
        let label = one.label_at(index);
        require_label(&label, &labels)?;
        let mut parse_limits = Limits::default();
        let card = super::parse(&one.bytes, index, &mut parse_limits)?;
        joiner.append(card, &label)?;
        labels.push(label);
    }
    require_unique_channels(&joiner.card)?;
    Ok(joiner.card)
}

/// Refuses a label that is there already, and one that makes names of channels which no card can
/// have.
fn require_label(label: &str, others: &[String]) -> Result<(), CardOptionError> {
    if label.is_empty() || label.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(CardOptionError::BadLabel { label: label.to_owned() });
    }
    if label != LabelledCard::NO_LABEL && others.iter().any(|other| other == label) {
        return Err(CardOptionError::Label { label: label.to_owned() });
    }
    Ok(())
}

/// Refuses channels of one name: cards without labels may have them.
fn require_unique_channels(card: &Card) -> Result<(), CardError> {
    let mut names = HashSet::new();
    match card.channels.iter().find(|channel| !names.insert(channel.name.as_str())) {
        None => Ok(()),
        Some(channel) => {
            let (what, name) = ("the channel", channel.name.clone());
            Err(CardProblem::Twice { what, name }.at(channel.place))
        }
    }
}

struct Joiner<'l> {
    card: Card,
    processes: HashMap<String, usize>,
    /// The values of the free factors by their names.
    rates: HashMap<String, RateValue>,
    limits: &'l mut Limits,
}

impl Joiner<'_> {
    fn append(&mut self, card: Card, label: &str) -> Result<(), CardError> {
        let (first_channel, first_column) = (self.card.channels.len(), self.card.columns.len());
        let is_single = card.channels.len() == 1;
        let renamed = |channel: &CardChannel| {
            let name = match (label, is_single) {
                (LabelledCard::NO_LABEL, _) => channel.name.clone(),
                (_, true) => label.to_owned(),
                (_, false) => format!("{label}_{}", channel.name),
            };
            CardChannel { name, ..channel.clone() }
        };
        self.card.channels.extend(card.channels.iter().map(renamed));
        for column in &card.columns {
            let process = self.process(&card, column)?;
            self.card.columns.push(Column { channel: first_channel + column.channel, process, ..*column });
        }
        self.widen(first_column, &card)?;
        for systematic in card.systematics {
            self.systematic(systematic, first_column)?;
        }
        self.card.shapes.extend(card.shapes);
        for rate in card.rates {
            self.rate(rate, first_column)?;
        }
        let names = card.template_names.into_iter();
        self.card.template_names.extend(names.map(|((name, column), old)| ((name, first_column + column), old)));
        self.card.externals.extend(card.externals);
        self.card.flats.extend(card.flats);
        self.card.frozen.extend(card.frozen);
        self.card.warnings.extend(card.warnings.into_iter().map(|warning| format!("`{label}`: {warning}")));
        for group in card.groups {
            match self.card.groups.iter_mut().find(|known| known.name == group.name) {
                Some(known) => known.members.extend(group.members),
                None => self.card.groups.push(group),
            }
        }
        Ok(())
    }

    fn process(&mut self, card: &Card, column: &Column) -> Result<usize, CardError> {
        let process = &card.processes[column.process];
        if let Some(&index) = self.processes.get(&process.name) {
            if self.card.processes[index].is_signal != process.is_signal {
                return Err(CardProblem::BothKinds { process: process.name.clone() }.at(column.place));
            }
            return Ok(index);
        }
        let index = self.card.processes.len();
        self.processes.insert(process.name.clone(), index);
        self.card.processes.push(process.clone());
        Ok(index)
    }

    /// Gives the uncertainties of earlier cards no effect on the new columns.
    fn widen(&mut self, first: usize, card: &Card) -> Result<(), CardError> {
        let Some(place) = card.channels.first().map(|channel| channel.place) else { return Ok(()) };
        let added = self.card.columns.len() - first;
        for systematic in self.card.systematics.iter_mut().filter(|systematic| systematic.kind.has_effects()) {
            self.limits.effects(added, place)?;
            systematic.effects.resize(self.card.columns.len(), Effect::None);
        }
        Ok(())
    }

    /// Adds an uncertainty: to one of its name and kind, or as a new line.
    fn systematic(&mut self, new: Systematic, first: usize) -> Result<(), CardError> {
        let same_name = self.card.systematics.iter().position(|known| known.name == new.name);
        if let Some(index) = same_name {
            self.require_same_term(index, &new)?;
        }
        if !new.kind.has_effects() {
            if same_name.is_none() {
                self.card.systematics.push(new);
            }
            return Ok(());
        }
        self.limits.effects(self.card.columns.len(), new.place)?;
        let mut effects = vec![Effect::None; first];
        effects.extend(new.effects);
        self.card.systematics.push(Systematic { effects, ..new });
        Ok(())
    }

    fn require_same_term(&self, index: usize, new: &Systematic) -> Result<(), CardError> {
        let known = &self.card.systematics[index].kind;
        let reason = match (known, &new.kind) {
            (SystematicKind::GammaCount(one), SystematicKind::GammaCount(other)) if one != other => {
                "the events in the sideband"
            }
            (SystematicKind::Parameter(one), SystematicKind::Parameter(other))
                if (one.mean, one.sigmas) != (other.mean, other.sigmas) =>
            {
                "the mean or the width"
            }
            (one, other)
                if std::mem::discriminant(one) != std::mem::discriminant(other) && !are_compatible(one, other) =>
            {
                "the kind of the uncertainty"
            }
            _ => return Ok(()),
        };
        Err(CardProblem::Join { name: new.name.clone(), reason }.at(new.place))
    }

    fn rate(&mut self, rate: RateParameter, first: usize) -> Result<(), CardError> {
        self.limits.rates(1, rate.place)?;
        match self.rates.get(&rate.name) {
            Some(known) if *known != rate.value => {
                let reason = "the value or range of the rateParam";
                return Err(CardProblem::Join { name: rate.name, reason }.at(rate.place));
            }
            None if matches!(rate.value, RateValue::Free { .. }) => {
                self.rates.insert(rate.name.clone(), rate.value.clone());
            }
            _ => {}
        }
        self.card.rates.push(RateParameter { column: first + rate.column, ..rate });
        Ok(())
    }
}

/// Returns whether uncertainties of two kinds can share a parameter: all with a Gaussian term.
fn are_compatible(one: &SystematicKind, other: &SystematicKind) -> bool {
    let is_normal = |kind: &SystematicKind| match kind {
        SystematicKind::LogNormal => true,
        SystematicKind::Shape(shape) => !shape.is_flat,
        _ => false,
    };
    is_normal(one) && is_normal(other)
}
