//! Finds and reads the templates that the lines `shapes` name: histograms in ROOT files, and rows
//! of tables in CSV files.
//!
//! Combine copies every template to single precision before it uses its bins, and takes its sum
//! before that; so does this module. Overflow and underflow have no effect.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ns_root::RootFile;

use super::card::{Card, ShapesLine};
use super::error::{CardError, CardProblem};
use super::limits::Limits;
use super::options::CardOptions;
use super::table::TemplateTable;
use super::words::CardPlace;
use crate::hint::tried;
use crate::source::{DocumentSource, read_bytes};

/// Files that are open at a time: systems limit them.
const OPEN_LIMIT: usize = 64;

/// What stands for the data in lines `shapes`.
const DATA: &str = "data_obs";

/// A template.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template {
    /// Contents in single precision (B).
    pub(super) values: Vec<f64>,
    /// Uncertainties (B), which may be no numbers: ROOT files have negative sums of squares.
    pub(super) errors: Vec<f64>,
    /// The sum of the contents before they were rounded.
    pub(super) sum: f64,
}

/// What to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct TemplateRequest<'a> {
    pub(super) channel: usize,
    /// A process, or [`None`] for the data.
    pub(super) process: Option<&'a str>,
    /// An uncertainty with `Up` or `Down`; empty for none.
    pub(super) systematic: &'a str,
    /// Where errors are that are not about the line `shapes`.
    pub(super) place: CardPlace,
}

/// Where the templates of a process in a channel are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemplatePlace {
    /// Nowhere: the channel is a counting experiment.
    Counting,
    /// Where this line `shapes` says.
    Rule(usize),
}

/// All files of a card.
pub(super) struct TemplateReader<'c> {
    card: &'c Card,
    options: &'c CardOptions,
    /// The cards.
    origins: Vec<DocumentSource>,
    /// The cards with lines `shapes`.
    has_shapes: HashSet<usize>,
    /// Indices of rules by card, channel and process.
    rules: HashMap<(usize, &'c str, &'c str), usize>,
    open: HashMap<PathBuf, OpenFile>,
    read: HashMap<(PathBuf, String), Arc<Template>>,
    /// All files that were read, each once.
    files: Vec<PathBuf>,
    pub(super) limits: Limits,
}

enum OpenFile {
    Root(Box<RootFile>),
    Table(TemplateTable),
}

impl<'c> TemplateReader<'c> {
    pub(super) fn new(card: &'c Card, options: &'c CardOptions, origins: Vec<DocumentSource>) -> Self {
        let key = |rule: &'c ShapesLine| (rule.place.card, rule.channel.as_str(), rule.process.as_str());
        let rules = card.shapes.iter().enumerate().map(|(index, rule)| (key(rule), index)).collect();
        let has_shapes = card.shapes.iter().map(|line| line.place.card).collect();
        let (open, read) = (HashMap::new(), HashMap::new());
        Self { card, options, origins, has_shapes, rules, open, read, files: Vec::new(), limits: Limits::default() }
    }

    pub(super) fn into_files(self) -> Vec<PathBuf> {
        self.files
    }

    /// Returns where the templates of a process, or of the data, are.
    pub(super) fn place(&self, channel: usize, process: Option<&str>) -> Result<TemplatePlace, CardError> {
        let channel = &self.card.channels[channel];
        let card = channel.place.card;
        if !self.has_shapes.contains(&card) {
            return Ok(TemplatePlace::Counting);
        }
        let process = process.unwrap_or(DATA);
        let own = channel.own_name.as_str();
        let names = [(own, process), (own, "*"), ("*", process), ("*", "*")];
        let found = names.into_iter().find_map(|(channel, process)| self.rules.get(&(card, channel, process)));
        match found {
            Some(&index) if self.card.shapes[index].names[0] == "FAKE" => Ok(TemplatePlace::Counting),
            Some(&index) => Ok(TemplatePlace::Rule(index)),
            None => {
                let (process, name) = (process.to_owned(), channel.name.clone());
                Err(CardProblem::NoShape { process, channel: name }.at(channel.place))
            }
        }
    }

    /// Reads a template that must be there; `None` if the channel is a counting experiment.
    pub(super) fn need(&mut self, request: TemplateRequest<'_>) -> Result<Option<Arc<Template>>, CardError> {
        let TemplatePlace::Rule(index) = self.place(request.channel, request.process)? else { return Ok(None) };
        let rule = &self.card.shapes[index];
        let pattern = rule.names.get(if request.systematic.is_empty() { 1 } else { 2 });
        let pattern = pattern.ok_or_else(|| self.no_variation(request))?;
        self.template(rule, pattern, request).map(Some)
    }

    /// Reads the template of an uncertainty, or returns `None` if it is not there.
    pub(super) fn find(&mut self, request: TemplateRequest<'_>) -> Result<Option<Arc<Template>>, CardError> {
        let TemplatePlace::Rule(index) = self.place(request.channel, request.process)? else { return Ok(None) };
        let rule = &self.card.shapes[index];
        let Some(pattern) = rule.names.get(2) else { return Ok(None) };
        match self.template(rule, pattern, request) {
            Err(error) if error.is_absent_template() => Ok(None),
            other => other.map(Some),
        }
    }

    fn no_variation(&self, request: TemplateRequest<'_>) -> CardError {
        let process = request.process.unwrap_or(DATA).to_owned();
        let (channel, systematic) = (self.card.channels[request.channel].name.clone(), request.systematic.to_owned());
        CardProblem::NoVariation { process, channel, systematic }.at(request.place)
    }

    /// Returns `pattern` with its words replaced by what they stand for.
    fn filled(&self, pattern: &str, request: TemplateRequest<'_>, place: CardPlace) -> Result<String, CardError> {
        let channel = &self.card.channels[request.channel].own_name;
        let mut filled = pattern
            .replace("$PROCESS", request.process.unwrap_or(DATA))
            .replace("$CHANNEL", channel)
            .replace("$SYSTEMATIC", request.systematic);
        if filled.contains("$MASS") {
            let mass = self.options.mass_text().ok_or_else(|| CardProblem::NoMass.at(place))?;
            filled = filled.replace("$MASS", &mass);
        }
        for (word, value) in &self.options.keywords {
            filled = filled.replace(&format!("${word}"), value);
        }
        Ok(filled)
    }

    fn template(
        &mut self,
        rule: &ShapesLine,
        pattern: &str,
        request: TemplateRequest<'_>,
    ) -> Result<Arc<Template>, CardError> {
        let place = rule.place;
        let file = self.filled(&rule.names[0], request, place)?;
        let name = self.filled(pattern, request, place)?;
        let path = self.located(&file, place)?;
        let key = (path.clone(), name.clone());
        if let Some(template) = self.read.get(&key) {
            return Ok(Arc::clone(template));
        }
        let template = Arc::new(self.read_template(&path, &name, place)?);
        self.limits.contents(2 * template.values.len(), place)?;
        self.read.insert(key, Arc::clone(&template));
        Ok(template)
    }

    fn read_template(&mut self, path: &Path, name: &str, place: CardPlace) -> Result<Template, CardError> {
        let file = path.display().to_string();
        let is_table = path.extension().is_some_and(|extension| extension == "csv");
        if !is_table && name.contains(':') {
            let reason = "the template is an object in a RooWorkspace or a tree: only histograms are read";
            return Err(CardProblem::Unsupported { kind: name.to_owned(), reason }.at(place));
        }
        let (contents, errors) = match self.opened(path, place)? {
            OpenFile::Table(table) => table.template(name).ok_or_else(|| {
                CardProblem::Template { template: name.to_owned(), file, known: table.names() }.at(place)
            })?,
            OpenFile::Root(root) => {
                let histogram = root.histogram(name).map_err(|error| {
                    let known = error.missing().map(|(_, known)| known.to_vec()).unwrap_or_default();
                    CardProblem::Template { template: name.to_owned(), file, known }.because(error, place)
                })?;
                (histogram.values().to_vec(), histogram.errors())
            }
        };
        rounded(&contents, errors, name, place)
    }

    fn opened(&mut self, path: &Path, place: CardPlace) -> Result<&mut OpenFile, CardError> {
        if !self.open.contains_key(path) {
            let source = self.source(path, place);
            let problem = || CardProblem::File { file: path.display().to_string() };
            let opened = if path.extension().is_some_and(|extension| extension == "csv") {
                let bytes = read_bytes(&source).map_err(|error| problem().because(error, place))?;
                OpenFile::Table(TemplateTable::read(&bytes).map_err(|wanted| {
                    let word = path.display().to_string();
                    CardProblem::Word { wanted, word }.at(place)
                })?)
            } else {
                let root = source.open_root().map_err(|error| problem().because(error, place))?;
                OpenFile::Root(Box::new(root))
            };
            if self.open.len() >= OPEN_LIMIT {
                self.open.clear();
            }
            self.open.insert(path.to_owned(), opened);
        }
        Ok(self.open.get_mut(path).unwrap_or_else(|| unreachable!("it was put there")))
    }

    /// Returns the file at `path`, where the card of `place` is: on the disk or in memory.
    fn source(&self, path: &Path, place: CardPlace) -> DocumentSource {
        self.origins.get(place.card).map_or_else(|| DocumentSource::Path(path.to_owned()), |card| card.sibling(path))
    }

    /// Returns where the file `written` is: in the folder of its card, or in the current one.
    fn located(&mut self, written: &str, place: CardPlace) -> Result<PathBuf, CardError> {
        let near = self.origins.get(place.card).map(|origin| origin.folder().join(written));
        let candidates: Vec<PathBuf> = near.into_iter().chain([PathBuf::from(written)]).collect();
        let Some(path) = candidates.iter().find(|path| self.source(path, place).is_file()) else {
            let tried = tried(candidates);
            return Err(CardProblem::NoFile { file: written.to_owned(), tried }.at(place));
        };
        if !self.files.contains(path) {
            self.files.push(path.clone());
        }
        Ok(path.clone())
    }
}

/// Rounds contents to single precision, as Combine stores them.
fn rounded(contents: &[f64], errors: Vec<f64>, name: &str, place: CardPlace) -> Result<Template, CardError> {
    let values: Vec<f64> = contents.iter().map(|&content| f64::from(content as f32)).collect();
    if let Some(bin) = values.iter().position(|value| !value.is_finite()) {
        let value = contents[bin];
        return Err(CardProblem::NotFinite { template: name.to_owned(), bin, value }.at(place));
    }
    Ok(Template { values, errors, sum: contents.iter().sum() })
}
