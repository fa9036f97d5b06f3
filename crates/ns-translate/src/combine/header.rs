//! Reads the lines of a card up to `rate`: counts, shapes, channels, processes.

use std::collections::{HashMap, HashSet};

use super::card::{Card, CardChannel, CardProcess, Column, ShapesLine};
use super::error::{CardError, CardProblem};
use super::words::{CardPlace, Line, Word};

/// What `imax`, `jmax` and `kmax` declare; `None` for `*` or no line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Declared {
    channels: Option<Count>,
    processes: Option<Count>,
    pub(super) systematics: Option<Count>,
}

/// A declared number and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    number: usize,
    place: CardPlace,
}

impl Count {
    /// Refuses a declaration of another number than `found`.
    pub(super) fn require(self, declaration: &'static str, what: &'static str, found: usize) -> Result<(), CardError> {
        if self.number == found {
            return Ok(());
        }
        Err(CardProblem::Declared { declaration, what, declared: self.number, found }.at(self.place))
    }
}

/// The lines before the uncertainties, as they come.
#[derive(Default)]
struct Header<'a> {
    declared: Declared,
    /// The line `bin` that no other line has used yet.
    bins: Vec<Word<'a>>,
    /// The channels of the observations.
    declared_bins: Vec<Word<'a>>,
    observed: Option<(CardPlace, Vec<f64>)>,
    processes: Vec<Word<'a>>,
    indices: Vec<Word<'a>>,
    shapes: Vec<ShapesLine>,
}

/// Reads the lines up to `rate`, which it takes from `lines`, of the card with index `index`.
pub(super) fn read<'a>(
    lines: &mut impl Iterator<Item = Line<'a>>,
    index: usize,
) -> Result<(Card, Declared), CardError> {
    let mut header = Header::default();
    for line in lines {
        match line.first().text {
            "imax" => header.declared.channels = count(&line, 0)?,
            "jmax" => header.declared.processes = count(&line, 1)?,
            "kmax" => header.declared.systematics = count(&line, 0)?,
            "shapes" => header.shapes.push(shapes_line(&line, &header.shapes)?),
            "observation" | "Observation" => header.observation(&line)?,
            "bin" => header.bins = bins(&line)?,
            "process" => header.process(&line)?,
            "rate" => return header.card(&line),
            // Combine takes all other lines for remarks.
            _ => {}
        }
    }
    Err(CardProblem::NoLine { name: "rate" }.at(CardPlace::start(index)))
}

fn count(line: &Line<'_>, more: usize) -> Result<Option<Count>, CardError> {
    let word = line.word(1, "a number or `*`")?;
    if word.text == "*" {
        return Ok(None);
    }
    let number: usize = word.text.parse().map_err(|_| word.unexpected("a number or `*`"))?;
    Ok(Some(Count { number: number.saturating_add(more), place: word.place }))
}

fn shapes_line(line: &Line<'_>, known: &[ShapesLine]) -> Result<ShapesLine, CardError> {
    const WANTED: &str = "`shapes PROCESS CHANNEL FILE TEMPLATE [TEMPLATE_OF_UNCERTAINTY]`";
    let [process, channel, file] = [line.word(1, WANTED)?, line.word(2, WANTED)?, line.word(3, WANTED)?];
    let names: Vec<String> = line.words[3..].iter().map(|word| word.text.to_owned()).collect();
    if names.len() < 2 && file.text != "FAKE" {
        return Err(line.too_short(WANTED));
    }
    if known.iter().any(|rule| rule.process == process.text && rule.channel == channel.text) {
        let name = format!("{} {}", process.text, channel.text);
        return Err(CardProblem::Twice { what: "the line `shapes` of", name }.at(process.place));
    }
    let (process, channel) = (process.text.to_owned(), channel.text.to_owned());
    Ok(ShapesLine { process, channel, names, place: file.place })
}

fn bins<'a>(line: &Line<'a>) -> Result<Vec<Word<'a>>, CardError> {
    let bins = line.words[1..].to_vec();
    match bins.iter().find(|bin| bin.text.starts_with(|c: char| c.is_ascii_digit())) {
        Some(bin) => Err(CardProblem::DigitFirst { name: bin.text.to_owned() }.at(bin.place)),
        None => Ok(bins),
    }
}

impl<'a> Header<'a> {
    fn observation(&mut self, line: &Line<'a>) -> Result<(), CardError> {
        let numbers: Result<Vec<f64>, CardError> = line.words[1..].iter().map(|word| observed(*word)).collect();
        let numbers = numbers?;
        if !self.bins.is_empty() {
            require_length(line, numbers.len(), self.bins.len())?;
            self.declared_bins = std::mem::take(&mut self.bins);
        }
        if let Some(declared) = self.declared.channels {
            declared.require("imax", "channels", numbers.len())?;
        }
        self.observed = Some((line.place(), numbers));
        Ok(())
    }

    fn process(&mut self, line: &Line<'a>) -> Result<(), CardError> {
        let words = line.words[1..].to_vec();
        if self.processes.is_empty() {
            require_length(line, words.len(), self.bins.len())?;
            self.processes = words;
            return Ok(());
        }
        require_length(line, words.len(), self.processes.len())?;
        self.indices = words;
        // The two lines may come in either order.
        if is_index(self.processes[0]) && !is_index(self.indices[0]) {
            std::mem::swap(&mut self.processes, &mut self.indices);
        }
        Ok(())
    }

    /// Makes the card, with the rates of `line`.
    fn card(self, line: &Line<'_>) -> Result<(Card, Declared), CardError> {
        if self.processes.is_empty() || self.indices.is_empty() {
            return Err(CardProblem::NoLine { name: "process" }.at(line.place()));
        }
        require_length(line, line.words.len() - 1, self.processes.len())?;
        if self.bins.len() != self.processes.len() {
            let (found, wanted) = (self.bins.len(), self.processes.len());
            return Err(CardProblem::Length { line: "bin".to_owned(), found, wanted }.at(line.place()));
        }
        let mut card = Card { channels: self.channels()?, shapes: self.shapes.clone(), ..Card::default() };
        card.processes = self.read_processes()?;
        let by_channel: HashMap<&str, usize> =
            self.channel_words().into_iter().enumerate().map(|(index, word)| (word.text, index)).collect();
        let by_process: HashMap<String, usize> =
            card.processes.iter().enumerate().map(|(index, process)| (process.name.clone(), index)).collect();
        let mut seen = HashSet::new();
        for ((bin, process), rate) in self.bins.iter().zip(&self.processes).zip(&line.words[1..]) {
            let Some(&channel) = by_channel.get(bin.text) else {
                let known = card.channels.iter().map(|channel| channel.name.clone()).collect();
                return Err(CardProblem::Unknown { what: "channel", name: bin.text.to_owned(), known }.at(bin.place));
            };
            let process_index = by_process[process.text];
            if !seen.insert((channel, process_index)) {
                let name = format!("{} in {}", process.text, bin.text);
                return Err(CardProblem::Twice { what: "the process", name }.at(process.place));
            }
            let place = rate.place;
            card.columns.push(Column { channel, process: process_index, rate: read_rate(*rate)?, place });
        }
        if let Some(declared) = self.declared.channels {
            declared.require("imax", "channels", card.channels.len())?;
        }
        if let Some(declared) = self.declared.processes {
            declared.require("jmax", "processes (one more than its number)", card.processes.len())?;
        }
        Ok((card, self.declared))
    }

    /// Returns the channels in their order: that of the observations, or of the first columns.
    fn channel_words(&self) -> Vec<Word<'a>> {
        if !self.declared_bins.is_empty() {
            return self.declared_bins.clone();
        }
        let mut seen = HashSet::new();
        self.bins.iter().filter(|bin| seen.insert(bin.text)).copied().collect()
    }

    fn channels(&self) -> Result<Vec<CardChannel>, CardError> {
        let words = self.channel_words();
        let mut seen = HashSet::new();
        if let Some(word) = words.iter().find(|word| !seen.insert(word.text)) {
            return Err(CardProblem::Twice { what: "the channel", name: word.text.to_owned() }.at(word.place));
        }
        let Some((place, observed)) = &self.observed else {
            let place = words.first().map_or(CardPlace::start(0), |word| word.place);
            return Err(CardProblem::NoLine { name: "observation" }.at(place));
        };
        if observed.len() != words.len() {
            let (found, wanted) = (observed.len(), words.len());
            return Err(CardProblem::Length { line: "observation".to_owned(), found, wanted }.at(*place));
        }
        let channel = |(word, &observed): (Word<'_>, &f64)| {
            let (name, own_name) = (word.text.to_owned(), word.text.to_owned());
            CardChannel { name, own_name, observed, mc_stats: None, place: word.place }
        };
        Ok(words.into_iter().zip(observed).map(channel).collect())
    }

    fn read_processes(&self) -> Result<Vec<CardProcess>, CardError> {
        let mut found: Vec<CardProcess> = Vec::new();
        let mut kinds: HashMap<&str, bool> = HashMap::new();
        for (process, index) in self.processes.iter().zip(&self.indices) {
            let is_signal = index.integer("the index of a process, a whole number")? <= 0;
            let name = process.text.to_owned();
            match kinds.insert(process.text, is_signal) {
                None => found.push(CardProcess { name, is_signal }),
                Some(before) if before != is_signal => {
                    return Err(CardProblem::BothKinds { process: name }.at(index.place));
                }
                Some(_) => {}
            }
        }
        Ok(found)
    }
}

fn is_index(word: Word<'_>) -> bool {
    word.text.strip_prefix('-').unwrap_or(word.text).starts_with(|c: char| c.is_ascii_digit())
}

fn observed(word: Word<'_>) -> Result<f64, CardError> {
    let number = word.number("a number of observed events, or -1")?;
    if number < 0.0 && number != -1.0 {
        return Err(word.unexpected("a number of observed events, or -1"));
    }
    Ok(number)
}

fn read_rate(word: Word<'_>) -> Result<f64, CardError> {
    let number = word.number("a number of expected events, or -1")?;
    if number < 0.0 && number != -1.0 {
        return Err(word.unexpected("a number of expected events, or -1"));
    }
    Ok(number)
}

fn require_length(line: &Line<'_>, found: usize, wanted: usize) -> Result<(), CardError> {
    if found == wanted {
        return Ok(());
    }
    let line_name = line.first().text.to_owned();
    Err(CardProblem::Length { line: line_name, found, wanted }.at(line.place()))
}
