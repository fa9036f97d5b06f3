//! Changes uncertainties as the lines `nuisance edit` say, in the order of the card.
//!
//! Processes and channels are regular expressions that match whole names, or `*`; so are the names
//! of uncertainties but in `add` and `rename`.

use regex_lite::Regex;

use super::card::{Card, Effect, ShapeKind, Systematic, SystematicKind};
use super::error::{CardError, CardProblem};
use super::limits::Limits;
use super::numbers::positive;
use super::patterns::{NamePattern, escaped_plus};
use super::words::{CardPlace, Line, Word};

/// One line `nuisance edit`.
pub(super) struct EditReader<'c, 'a> {
    card: &'c mut Card,
    limits: &'c mut Limits,
    command: Word<'a>,
    words: Vec<Word<'a>>,
}

/// What an edit names first: processes in channels.
struct Selection {
    columns: Vec<usize>,
    /// Whether the channels are all: then finding nothing is no error.
    is_everywhere: bool,
}

impl<'c, 'a> EditReader<'c, 'a> {
    pub(super) fn new(card: &'c mut Card, limits: &'c mut Limits, line: &Line<'a>) -> Result<Self, CardError> {
        let command = line.word(2, "`nuisance edit COMMAND …`")?;
        Ok(Self { card, limits, command, words: line.words[3..].to_vec() })
    }

    /// Does what the line says.
    pub(super) fn edit(&mut self) -> Result<(), CardError> {
        let cost = self.card.columns.len().saturating_mul(self.card.systematics.len().max(1));
        self.limits.edited(cost, self.place())?;
        match self.command.text {
            "add" => self.add(),
            "drop" => self.change_each(2, "PROCESS CHANNEL NAME", |_, _| Ok(Effect::None)),
            "rename" if self.words.len() == 2 => self.rename_all(),
            "rename" => self.rename_some(),
            "changepdf" => self.change_kind(),
            "merge" => self.merge(),
            "split" => self.split(),
            "freeze" => self.freeze(),
            "flip" => self.flip(),
            _ => Err(self
                .command
                .unexpected("`add`, `drop`, `rename`, `changepdf`, `merge`, `split`, `freeze` or `flip`")),
        }
    }

    fn place(&self) -> CardPlace {
        self.command.place
    }

    fn text(&self) -> String {
        let words: Vec<&str> = [self.command].iter().chain(&self.words).map(|word| word.text).collect();
        words.join(" ")
    }

    fn impossible(&self, reason: impl Into<String>) -> CardError {
        CardProblem::Edit { edit: self.text(), reason: reason.into() }.at(self.place())
    }

    fn word(&self, index: usize, wanted: &'static str) -> Result<Word<'a>, CardError> {
        let line = format!("nuisance edit {}", self.command.text);
        self.words.get(index).copied().ok_or_else(|| CardProblem::Short { line, wanted }.at(self.place()))
    }

    fn has_option(&self, option: &str) -> bool {
        self.words.iter().any(|word| word.text == option)
    }

    /// Returns the columns of the processes and channels that the first two words name.
    fn selection(&self) -> Result<Selection, CardError> {
        const WANTED: &str = "PROCESS CHANNEL …";
        let (process, channel) = (self.word(0, WANTED)?, self.word(1, WANTED)?);
        let processes = NamePattern::read(process.text, process.place)?;
        let channels = NamePattern::read(&escaped_plus(channel.text), channel.place)?;
        let is_selected = |index: &usize| {
            let name = self.card.column_name(*index);
            channels.matches(name.channel) && processes.matches(name.process)
        };
        let columns = (0..self.card.columns.len()).filter(is_selected).collect();
        Ok(Selection { columns, is_everywhere: channel.text == "*" })
    }

    fn pattern(&self, word: Word<'_>) -> Result<Regex, CardError> {
        super::patterns::whole(word.text)
            .map_err(|error| CardProblem::Pattern { pattern: word.text.to_owned() }.because(error, word.place))
    }

    /// Returns the uncertainties with effects whose names match word `index`.
    fn matching(&self, index: usize, wanted: &'static str) -> Result<Vec<usize>, CardError> {
        let pattern = self.pattern(self.word(index, wanted)?)?;
        let systematics = self.card.systematics.iter().enumerate();
        Ok(systematics.filter(|(_, systematic)| pattern.is_match(&systematic.name)).map(|(i, _)| i).collect())
    }

    /// Refuses an edit that found nothing, unless it says that it may; in all channels, where
    /// Combine allows it, a warning is enough.
    fn require_found(&mut self, is_found: bool, is_everywhere: bool) -> Result<(), CardError> {
        if is_found || self.has_option("ifexists") {
            return Ok(());
        }
        if is_everywhere {
            let warning = format!("`nuisance edit {}` finds nothing {}", self.text(), self.place().document());
            self.card.warnings.push(warning);
            return Ok(());
        }
        Err(CardProblem::NothingFound { edit: self.text() }.at(self.place()))
    }

    /// Replaces the effects of the uncertainties that word `index` names in the selected columns.
    fn change_each(
        &mut self,
        index: usize,
        wanted: &'static str,
        new: impl Fn(&Systematic, Effect) -> Result<Effect, String>,
    ) -> Result<(), CardError> {
        let selection = self.selection()?;
        let mut is_found = false;
        for i in self.matching(index, wanted)? {
            for &column in &selection.columns {
                let systematic = &self.card.systematics[i];
                let Some(&old) = systematic.effects.get(column) else { continue };
                is_found = true;
                let changed = new(systematic, old).map_err(|reason| self.impossible(reason))?;
                self.card.systematics[i].effects[column] = changed;
            }
        }
        self.require_found(is_found, selection.is_everywhere)
    }

    fn add(&mut self) -> Result<(), CardError> {
        const WANTED: &str = "PROCESS CHANNEL NAME KIND VALUE [addq|overwrite]";
        let selection = self.selection()?;
        let (name, kind) = (self.word(2, WANTED)?.text.to_owned(), self.kind(self.word(3, WANTED)?)?);
        let value = self.value(self.word(4, WANTED)?)?;
        let conflict = if self.has_option("addq") {
            Conflict::AddInQuadrature
        } else if self.has_option("overwrite") {
            Conflict::Overwrite
        } else {
            Conflict::Refuse
        };
        self.add_to(&Addition { name, kind, value, conflict }, &selection.columns)?;
        self.require_found(!selection.columns.is_empty(), true)
    }

    fn add_to(&mut self, addition: &Addition, columns: &[usize]) -> Result<(), CardError> {
        let index = self.systematic(&addition.name, &addition.kind)?;
        if matches!(addition.value, Effect::None | Effect::Value(1.0)) {
            return Ok(());
        }
        for &column in columns {
            let old = self.card.systematics[index].effects[column];
            let is_free = matches!(old, Effect::None | Effect::Value(1.0));
            let new = match addition.conflict {
                _ if is_free => addition.value,
                Conflict::Overwrite => addition.value,
                Conflict::AddInQuadrature => {
                    in_quadrature(&addition.kind, old, addition.value).map_err(|reason| self.impossible(reason))?
                }
                Conflict::Refuse => {
                    return Err(self.impossible("there is an effect already; `addq` adds, `overwrite` replaces it"));
                }
            };
            self.card.systematics[index].effects[column] = new;
        }
        Ok(())
    }

    /// Returns the uncertainty `name`, which is made if it is new.
    fn systematic(&mut self, name: &str, kind: &SystematicKind) -> Result<usize, CardError> {
        let known = self.card.systematics.iter().rposition(|systematic| systematic.name == name);
        if let Some(index) = known {
            let other = &self.card.systematics[index].kind;
            if other != kind {
                return Err(self.impossible(format!("`{name}` is {} already", other.word())));
            }
            return Ok(index);
        }
        self.limits.effects(self.card.columns.len(), self.place())?;
        let effects = vec![Effect::None; self.card.columns.len()];
        let (name, kind, place) = (name.to_owned(), kind.clone(), self.place());
        self.card.systematics.push(Systematic { name, kind, effects, place });
        Ok(self.card.systematics.len() - 1)
    }

    fn kind(&self, word: Word<'_>) -> Result<SystematicKind, CardError> {
        match word.text {
            "lnN" => Ok(SystematicKind::LogNormal),
            "lnU" => Ok(SystematicKind::LogUniform),
            "trG" => Ok(SystematicKind::TruncatedGaussian),
            "gmM" => Ok(SystematicKind::GammaMultiplier),
            other => ShapeKind::from_word(other).map(SystematicKind::Shape).ok_or_else(|| {
                let reason = "an edit cannot make uncertainties of this kind";
                CardProblem::Unsupported { kind: other.to_owned(), reason }.at(word.place)
            }),
        }
    }

    fn value(&self, word: Word<'_>) -> Result<Effect, CardError> {
        const WANTED: &str = "a number, or two with a slash";
        let Some((low, high)) = word.text.split_once('/') else {
            let value = word.number(WANTED)?;
            return Ok(if value == 0.0 { Effect::None } else { Effect::Value(value) });
        };
        positive(low, high).map(Effect::LowHigh).ok_or_else(|| word.unexpected(WANTED))
    }

    fn change_kind(&mut self) -> Result<(), CardError> {
        let new = self.kind(self.word(1, "NAME KIND")?)?;
        let found = self.matching(0, "NAME KIND")?;
        self.require_found(!found.is_empty(), true)?;
        for index in found {
            let systematic = &self.card.systematics[index];
            if systematic.kind == new {
                continue;
            }
            let effects = converted(systematic, &new).map_err(|reason| self.impossible(reason))?;
            let systematic = &mut self.card.systematics[index];
            (systematic.effects, systematic.kind) = (effects, new.clone());
        }
        Ok(())
    }

    fn merge(&mut self) -> Result<(), CardError> {
        const WANTED: &str = "PROCESS CHANNEL NAME OTHER";
        let (selection, name) = (self.selection()?, self.word(2, WANTED)?.text.to_owned());
        let mut is_found = false;
        for index in self.matching(3, WANTED)? {
            for &column in &selection.columns {
                let other = &mut self.card.systematics[index];
                let Some(effect) = other.effects.get_mut(column) else { continue };
                let value = std::mem::replace(effect, Effect::None);
                let addition = Addition {
                    name: name.clone(),
                    kind: other.kind.clone(),
                    value,
                    conflict: Conflict::AddInQuadrature,
                };
                is_found = true;
                self.add_to(&addition, &[column])?;
            }
        }
        self.require_found(is_found, selection.is_everywhere)
    }

    fn split(&mut self) -> Result<(), CardError> {
        const WANTED: &str = "PROCESS CHANNEL OLD NEW1 NEW2 VALUE1 VALUE2";
        let selection = self.selection()?;
        let parts = [(3, 5), (4, 6)].map(|(name, value)| -> Result<(String, Effect), CardError> {
            Ok((self.word(name, WANTED)?.text.to_owned(), self.value(self.word(value, WANTED)?)?))
        });
        let [first, second] = parts;
        let parts = [first?, second?];
        let mut is_found = false;
        for index in self.matching(2, WANTED)? {
            for &column in &selection.columns {
                let old = &mut self.card.systematics[index];
                let Some(effect) = old.effects.get_mut(column) else { continue };
                let effect = std::mem::replace(effect, Effect::None);
                let kind = old.kind.clone();
                is_found = true;
                if matches!(effect, Effect::None | Effect::Value(1.0)) {
                    continue;
                }
                for (name, value) in parts.clone() {
                    let conflict = Conflict::Overwrite;
                    self.add_to(&Addition { name, kind: kind.clone(), value, conflict }, &[column])?;
                }
            }
        }
        self.require_found(is_found, selection.is_everywhere)
    }

    fn freeze(&mut self) -> Result<(), CardError> {
        let pattern = self.pattern(self.word(0, "NAME [ifexists]")?)?;
        let others = self.card.flats.iter().chain(self.card.rates.iter().map(|rate| &rate.name));
        let others = others.chain(self.card.externals.iter().map(|external| &external.name));
        let mut found: Vec<String> = others.filter(|name| pattern.is_match(name)).cloned().collect();
        if found.is_empty() {
            let systematics = self.card.systematics.iter().map(|systematic| &systematic.name);
            found = systematics.filter(|name| pattern.is_match(name)).cloned().collect();
        }
        self.require_found(!found.is_empty(), false)?;
        self.card.frozen.extend(found);
        Ok(())
    }

    fn flip(&mut self) -> Result<(), CardError> {
        let (up, down) = (self.has_option("p2n"), self.has_option("n2p"));
        if !up && !down {
            return Err(self.impossible("it needs the option `p2n`, `n2p` or both"));
        }
        let flips = move |value: f64| (up && value > 1.0) || (down && value < 1.0);
        self.change_each(2, "PROCESS CHANNEL NAME p2n|n2p", move |systematic, old| {
            if systematic.kind != SystematicKind::LogNormal {
                return Err("only `lnN` can be flipped".to_owned());
            }
            Ok(match old {
                Effect::Value(value) if flips(value) => Effect::Value(1.0 / value),
                // The first value, which is that of -1σ, decides, with the options the other way.
                Effect::LowHigh([low, high]) if (up && low < 1.0) || (down && low > 1.0) => {
                    Effect::LowHigh([1.0 / low, 1.0 / high])
                }
                other => other,
            })
        })
    }

    fn rename_all(&mut self) -> Result<(), CardError> {
        let (old, new) = (self.words[0].text.to_owned(), self.words[1].text.to_owned());
        for index in self.named(&old)? {
            self.require_compatible(index, &new)?;
            let systematic = &mut self.card.systematics[index];
            systematic.name.clone_from(&new);
            let affected: Vec<usize> =
                (0..systematic.effects.len()).filter(|&column| systematic.effects[column] != Effect::None).collect();
            if systematic.kind.has_effects() {
                self.keep_templates(&old, &new, &affected);
            } else {
                self.rename_in_formulas(&old, &new);
            }
        }
        Ok(())
    }

    fn rename_some(&mut self) -> Result<(), CardError> {
        const WANTED: &str = "PROCESS CHANNEL OLD NEW [ifexists], or OLD NEW";
        let selection = self.selection()?;
        let (old, new) = (self.word(2, WANTED)?.text.to_owned(), self.word(3, WANTED)?.text.to_owned());
        for index in self.named(&old)? {
            if !self.card.systematics[index].kind.has_effects() {
                continue;
            }
            self.require_compatible(index, &new)?;
            self.require_found(!selection.columns.is_empty(), false)?;
            let kind = self.card.systematics[index].kind.clone();
            let target = self.systematic(&new, &kind)?;
            for &column in &selection.columns {
                let effect = std::mem::replace(&mut self.card.systematics[index].effects[column], Effect::None);
                // Where the old name has no effect, that of the new one stays.
                if effect != Effect::None {
                    self.card.systematics[target].effects[column] = effect;
                }
            }
            self.keep_templates(&old, &new, &selection.columns);
        }
        Ok(())
    }

    /// Returns the uncertainties with this name, at least one.
    fn named(&self, name: &str) -> Result<Vec<usize>, CardError> {
        let systematics = self.card.systematics.iter().enumerate();
        let found: Vec<usize> = systematics.filter(|(_, one)| one.name == name).map(|(index, _)| index).collect();
        if found.is_empty() {
            let known = self.card.systematics.iter().map(|systematic| systematic.name.clone()).collect();
            return Err(CardProblem::Unknown { what: "uncertainty", name: name.to_owned(), known }.at(self.place()));
        }
        Ok(found)
    }

    /// Refuses to give uncertainty `index` the name of one with another constraint term.
    fn require_compatible(&self, index: usize, new: &str) -> Result<(), CardError> {
        let kind = &self.card.systematics[index].kind;
        if matches!(kind, SystematicKind::TruncatedGaussian | SystematicKind::GammaCount(_)) {
            return Err(self.impossible(format!("{} cannot be renamed", kind.word())));
        }
        let same_name = self.card.systematics.iter().filter(|other| other.name == new);
        let is_compatible = |other: &SystematicKind| match (kind, other) {
            (SystematicKind::Parameter(one), SystematicKind::Parameter(two)) => {
                one.mean == two.mean && one.sigmas == two.sigmas
            }
            (SystematicKind::Parameter(one), _) | (_, SystematicKind::Parameter(one)) => {
                one.mean == 0.0 && one.sigmas == [1.0; 2]
            }
            _ => true,
        };
        match same_name.map(|other| &other.kind).find(|other| !is_compatible(other)) {
            Some(other) => Err(self.impossible(format!("`{new}` is {} already, with another term", other.word()))),
            None => Ok(()),
        }
    }

    /// Notes that the templates of an uncertainty keep its old name.
    fn keep_templates(&mut self, old: &str, new: &str, columns: &[usize]) {
        for &column in columns {
            let oldest = self.card.template_names.get(&(old.to_owned(), column)).cloned();
            let oldest = oldest.unwrap_or_else(|| old.to_owned());
            self.card.template_names.insert((new.to_owned(), column), oldest);
        }
    }

    fn rename_in_formulas(&mut self, old: &str, new: &str) {
        for rate in &mut self.card.rates {
            rate.value.rename(old, new);
        }
    }
}

/// What to do with an effect that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conflict {
    Refuse,
    AddInQuadrature,
    Overwrite,
}

/// An effect to add.
struct Addition {
    name: String,
    kind: SystematicKind,
    value: Effect,
    conflict: Conflict,
}

/// Adds two effects in quadrature, in their logarithms.
fn in_quadrature(kind: &SystematicKind, one: Effect, two: Effect) -> Result<Effect, String> {
    if !matches!(kind, SystematicKind::LogNormal | SystematicKind::LogUniform) {
        return Err(format!("effects of {} cannot be added in quadrature", kind.word()));
    }
    let sum = |one: f64, two: f64| -> Result<f64, String> {
        if one.ln() * two.ln() < 0.0 {
            return Err(format!("{one} and {two} go in different directions"));
        }
        let sum = one.ln().hypot(two.ln()).exp();
        Ok(if one > 1.0 { sum } else { 1.0 / sum })
    };
    match (one, two) {
        (Effect::Value(one), Effect::Value(two)) => sum(one, two).map(Effect::Value),
        (Effect::None, other) | (other, Effect::None) => Ok(other),
        _ => {
            let (one, two) = (one.factors(), two.factors());
            Ok(Effect::LowHigh([sum(one[0], two[0])?, sum(one[1], two[1])?]))
        }
    }
}

/// Returns the effects of `systematic` as those of kind `new`.
fn converted(systematic: &Systematic, new: &SystematicKind) -> Result<Vec<Effect>, String> {
    let is_log = |kind: &SystematicKind| matches!(kind, SystematicKind::LogNormal | SystematicKind::LogUniform);
    let refused = || Err(format!("{} cannot become {}", systematic.kind.word(), new.word()));
    let each = |convert: fn(f64) -> f64| {
        let one = |effect: &Effect| match *effect {
            Effect::Value(1.0) | Effect::None => Ok(Effect::None),
            Effect::Value(value) => Ok(Effect::Value(convert(value))),
            Effect::LowHigh(_) => Err("an effect with two values cannot be converted".to_owned()),
        };
        systematic.effects.iter().map(one).collect()
    };
    match (&systematic.kind, new) {
        (old, new) if is_log(old) && is_log(new) => Ok(systematic.effects.clone()),
        (old, SystematicKind::TruncatedGaussian) if is_log(old) => each(f64::ln),
        (SystematicKind::TruncatedGaussian, new) if is_log(new) => each(f64::exp),
        (SystematicKind::Shape(_), SystematicKind::Shape(_)) => Ok(systematic.effects.clone()),
        _ => refused(),
    }
}
