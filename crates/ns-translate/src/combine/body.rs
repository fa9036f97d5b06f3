//! Reads the lines after `rate`: uncertainties, parameters, groups, edits, statistics of templates.

use std::collections::HashMap;

use ns_core::pattern;

use super::card::{
    Card, Effect, ExternalParameter, Group, McStats, ParameterTerm, ShapeKind, Systematic, SystematicKind,
};
use super::edits::EditReader;
use super::error::{CardError, CardProblem};
use super::header::Declared;
use super::limits::Limits;
use super::numbers::{ordered, positive};
use super::rates;
use super::words::{Line, Word};

/// Reads the rest of a card.
pub(super) struct BodyReader<'c> {
    pub(super) card: &'c mut Card,
    pub(super) limits: &'c mut Limits,
    channels: HashMap<String, usize>,
    processes: HashMap<String, usize>,
    /// The names of kinds that a name had before.
    kinds: HashMap<String, Vec<String>>,
    was_edited: bool,
}

impl<'c> BodyReader<'c> {
    pub(super) fn new(card: &'c mut Card, limits: &'c mut Limits) -> Self {
        let channels = card.channels.iter().enumerate().map(|(index, channel)| (channel.name.clone(), index)).collect();
        let processes =
            card.processes.iter().enumerate().map(|(index, process)| (process.name.clone(), index)).collect();
        Self { card, limits, channels, processes, kinds: HashMap::new(), was_edited: false }
    }

    /// Reads all of `lines` and compares the number of uncertainties with `declared`.
    pub(super) fn read<'a>(
        mut self,
        lines: impl Iterator<Item = Line<'a>>,
        declared: Declared,
    ) -> Result<(), CardError> {
        for line in lines.filter(|line| line.words.len() > 1) {
            self.line(&line)?;
        }
        match declared.systematics.filter(|_| !self.was_edited) {
            Some(count) => count.require("kmax", "uncertainties", self.card.systematics.len()),
            None => Ok(()),
        }
    }

    fn line(&mut self, line: &Line<'_>) -> Result<(), CardError> {
        match line.words[1].text {
            "param" => self.parameter(line),
            "flatParam" => {
                self.card.flats.push(name(line));
                Ok(())
            }
            "extArg" => self.external(line),
            "rateParam" => rates::read(self, line),
            "group" => self.group(line),
            "autoMCStats" => self.mc_stats(line),
            "edit" => {
                self.was_edited = true;
                EditReader::new(self.card, self.limits, line)?.edit()
            }
            kind => self.systematic(line, kind),
        }
    }

    fn systematic(&mut self, line: &Line<'_>, word: &str) -> Result<(), CardError> {
        let (kind, first) = systematic_kind(line, word)?;
        let name = name(line);
        self.require_agreement(&name, &kind, line)?;
        let n_columns = self.card.columns.len();
        let entries = line.words.get(first..).unwrap_or_default();
        if entries.len() < n_columns {
            let (line_name, found) = (format!("{name} {word}"), entries.len());
            return Err(CardProblem::Length { line: line_name, found, wanted: n_columns }.at(line.place()));
        }
        self.limits.effects(n_columns, line.place())?;
        let effects = entries[..n_columns].iter().map(|entry| effect(*entry, &kind)).collect::<Result<Vec<_>, _>>()?;
        if let SystematicKind::GammaCount(_) = kind {
            self.raise_rates(&effects);
        }
        self.card.systematics.push(Systematic { name, kind, effects, place: line.place() });
        Ok(())
    }

    /// Gives backgrounds whose sideband is empty the tiny rate that Combine gives them.
    fn raise_rates(&mut self, effects: &[Effect]) {
        const TINY: f64 = 1e-6;
        for (column, effect) in self.card.columns.iter_mut().zip(effects) {
            if column.rate == 0.0 && *effect != Effect::None {
                column.rate = TINY;
            }
        }
    }

    /// Refuses a `shape` with the name of an `lnN`, which Combine takes for a mistake.
    fn require_agreement(&mut self, name: &str, kind: &SystematicKind, line: &Line<'_>) -> Result<(), CardError> {
        let word = kind.word();
        let before = self.kinds.entry(name.to_owned()).or_default();
        let other = match word.as_str() {
            "lnN" => "shape",
            "shape" => "lnN",
            _ => "",
        };
        if before.iter().any(|kind| kind == other) {
            let (name, other) = (name.to_owned(), other.to_owned());
            return Err(CardProblem::Kinds { name, kind: word, other }.at(line.place()));
        }
        if !before.contains(&word) {
            before.push(word);
        }
        Ok(())
    }

    fn parameter(&mut self, line: &Line<'_>) -> Result<(), CardError> {
        let kind = SystematicKind::Parameter(parameter_term(line)?);
        self.card.systematics.push(Systematic { name: name(line), kind, effects: Vec::new(), place: line.place() });
        Ok(())
    }

    fn external(&mut self, line: &Line<'_>) -> Result<(), CardError> {
        let value = line.word(2, "`NAME extArg VALUE [LO,HI]`")?;
        if value.text.contains(':') {
            let reason = "its value is in a RooWorkspace";
            return Err(CardProblem::Unsupported { kind: "extArg".to_owned(), reason }.at(value.place));
        }
        let start = value.number("the value of the parameter")?;
        let limits = line.words.get(3);
        let is_constant = limits.is_some_and(|word| word.text == "[const]");
        let range = limits.filter(|_| !is_constant).map(|word| range(*word)).transpose()?;
        self.card.externals.push(ExternalParameter { name: name(line), start, range, is_constant });
        Ok(())
    }

    fn group(&mut self, line: &Line<'_>) -> Result<(), CardError> {
        const WANTED: &str = "`NAME group = PARAMETER …`";
        let sign = line.word(2, WANTED)?;
        let members: Vec<String> = line.words[3..].iter().map(|word| word.text.to_owned()).collect();
        let name = line.first().text;
        let known = self.card.groups.iter_mut().find(|group| group.name == name);
        match (sign.text, known) {
            ("=", None) => {
                self.card.groups.push(Group { name: name.to_owned(), members, place: line.place() });
                Ok(())
            }
            ("+=", Some(group)) => {
                group.members.extend(members);
                Ok(())
            }
            ("=", Some(_)) => Err(CardProblem::Twice { what: "the group", name: name.to_owned() }.at(line.place())),
            ("+=", None) => {
                let known = self.card.groups.iter().map(|group| group.name.clone()).collect();
                Err(CardProblem::Unknown { what: "group", name: name.to_owned(), known }.at(line.place()))
            }
            _ => Err(sign.unexpected("`=` or `+=`")),
        }
    }

    fn mc_stats(&mut self, line: &Line<'_>) -> Result<(), CardError> {
        const WANTED: &str = "`CHANNEL autoMCStats THRESHOLD [INCLUDE_SIGNAL] [HIST_MODE]`";
        let threshold = line.word(2, WANTED)?.number("the threshold, a number of events")?;
        let include_signal = match line.words.get(3) {
            Some(word) => word.integer("0 or 1")? != 0,
            None => false,
        };
        let keeps_norm = match line.words.get(4).map(|word| word.text) {
            None | Some("1") => false,
            Some("2") => true,
            Some(_) => return Err(line.words[4].unexpected("1 or 2, the mode of the templates")),
        };
        let mc_stats = Some(McStats { threshold, include_signal, keeps_norm });
        let pattern = line.first();
        if !pattern.text.contains('*') {
            let channel = self.channel(pattern)?;
            self.card.channels[channel].mc_stats = mc_stats;
            return Ok(());
        }
        for channel in self.card.channels.iter_mut().filter(|channel| pattern::matches(pattern.text, &channel.name)) {
            channel.mc_stats = mc_stats;
        }
        Ok(())
    }

    /// Returns the channel that `word` names.
    pub(super) fn channel(&self, word: Word<'_>) -> Result<usize, CardError> {
        self.channels.get(word.text).copied().ok_or_else(|| {
            let known = self.card.channels.iter().map(|channel| channel.name.clone()).collect();
            CardProblem::Unknown { what: "channel", name: word.text.to_owned(), known }.at(word.place)
        })
    }

    /// Returns the process that `word` names.
    pub(super) fn process(&self, word: Word<'_>) -> Result<usize, CardError> {
        self.processes.get(word.text).copied().ok_or_else(|| {
            let known = self.card.processes.iter().map(|process| process.name.clone()).collect();
            CardProblem::Unknown { what: "process", name: word.text.to_owned(), known }.at(word.place)
        })
    }
}

/// Returns the name of the parameter of a line: Combine prefixes numbers.
fn name(line: &Line<'_>) -> String {
    let name = line.first().text.trim_end_matches("[nofloat]");
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("theta{name}") } else { name.to_owned() }
}

/// Returns the kind of an uncertainty, and the index of the word of its first effect.
fn systematic_kind(line: &Line<'_>, word: &str) -> Result<(SystematicKind, usize), CardError> {
    let place = line.words[1].place;
    let unsupported = |reason| CardProblem::Unsupported { kind: word.to_owned(), reason }.at(place);
    Ok(match word {
        "lnN" => (SystematicKind::LogNormal, 2),
        "lnU" => (SystematicKind::LogUniform, 2),
        "gmM" => (SystematicKind::GammaMultiplier, 2),
        "trG" => (SystematicKind::TruncatedGaussian, 2),
        "gmN" => {
            let count = line.word(2, "the number of events in the sideband")?;
            let events = count.text.parse::<u64>().map_err(|_| count.unexpected("a whole number of events"))?;
            (SystematicKind::GammaCount(events as f64), 3)
        }
        "unif" => {
            const WANTED: &str = "the lower and the upper end of the range";
            let (low, high) = (line.word(2, WANTED)?, line.word(3, WANTED)?);
            let ends = [low.number("a number")?, high.number("a number")?];
            if ends[0] >= ends[1] {
                return Err(high.unexpected("a number above the lower end"));
            }
            (SystematicKind::Uniform(ends), 4)
        }
        "dFD" | "dFD2" => return Err(unsupported("it has a double Fermi-Dirac distribution")),
        "constr" => return Err(unsupported("it constrains a function of parameters")),
        "discrete" => return Err(unsupported("it chooses between parametric shapes")),
        _ => match ShapeKind::from_word(word) {
            Some(shape) => (SystematicKind::Shape(shape), 2),
            None if word.starts_with("shape") => return Err(unsupported("this variant is obsolete or unknown")),
            None => return Err(CardProblem::UnknownKind { kind: word.to_owned() }.at(place)),
        },
    })
}

/// Reads the effect of an uncertainty on one process in one channel.
fn effect(word: Word<'_>, kind: &SystematicKind) -> Result<Effect, CardError> {
    const WANTED: &str = "a number, two numbers with a slash, or `-`";
    if word.is_dash() {
        return Ok(Effect::None);
    }
    if let Some((low, high)) = word.text.split_once('/') {
        let takes_two = match kind {
            SystematicKind::LogNormal | SystematicKind::LogUniform => true,
            SystematicKind::Shape(shape) => shape.is_optional,
            _ => false,
        };
        if !takes_two {
            return Err(CardProblem::TwoValues { word: word.text.to_owned(), kind: kind.word() }.at(word.place));
        }
        let pair = positive(low, high).map(Effect::LowHigh);
        return pair.ok_or_else(|| word.unexpected("two positive numbers with a slash"));
    }
    let value = word.number(WANTED)?;
    if value < 0.0 && *kind != SystematicKind::TruncatedGaussian {
        return Err(word.unexpected("a number that is not negative"));
    }
    Ok(if value == 0.0 { Effect::None } else { Effect::Value(value) })
}

/// Reads what is after `param`: the mean, the width or widths, and perhaps the range.
fn parameter_term(line: &Line<'_>) -> Result<ParameterTerm, CardError> {
    const WANTED: &str = "`NAME param MEAN SIGMA [LO,HI]`";
    /// The range without one, in standard deviations.
    const WIDTHS: f64 = 4.0;
    let mean = line.word(2, WANTED)?.number("the mean")?;
    let width = line.word(3, WANTED)?;
    let sigmas = widths(width)?;
    let range = match line.words.get(4) {
        Some(word) => range(*word)?,
        None => [mean - WIDTHS * sigmas[0], mean + WIDTHS * sigmas[1]],
    };
    Ok(ParameterTerm { mean, sigmas, range })
}

fn widths(word: Word<'_>) -> Result<[f64; 2], CardError> {
    const TWO: &str = "a positive width, or two as `-0.1/+0.2`";
    let width = |text: &str| text.parse::<f64>().ok().filter(|width| width.is_finite() && *width > 0.0);
    let found = match word.text.split_once('/') {
        None => width(word.text).map(|width| [width; 2]),
        Some((low, high)) => {
            let low = low.strip_prefix('-').and_then(width);
            let high = high.strip_prefix('+').and_then(width);
            low.zip(high).map(|(low, high)| [low, high])
        }
    };
    found.ok_or_else(|| word.unexpected(TWO))
}

/// Reads a range as `[LO,HI]`.
pub(super) fn range(word: Word<'_>) -> Result<[f64; 2], CardError> {
    const WANTED: &str = "a range such as `[0,5]`";
    let inside = word.text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let (low, high) = inside.and_then(|inside| inside.split_once(',')).ok_or_else(|| word.unexpected(WANTED))?;
    ordered(low, high).ok_or_else(|| word.unexpected(WANTED))
}
