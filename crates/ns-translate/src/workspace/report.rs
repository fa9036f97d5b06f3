//! What a combination did: which parameters are one and why, and what differs between workspaces
//! that share one.

use std::collections::HashMap;

use ns_core::spec::ModifierKind;
use serde::Serialize;

use super::correlate::Rule;
use super::map::{CorrelationMap, DecorrelateRule, MapError, MapProblem};
use super::settings::is_set;
use super::uses::{Use, Uses, push};
use super::{Setting, WorkspaceDocument};
use crate::hint::in_backticks;
use crate::json::WrittenValue;

/// What a combination, or the splitting of parameters, did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CombinationReport {
    /// The workspaces.
    pub analyses: Vec<AnalysisSummary>,
    /// The measurements of the result.
    pub measurements: Vec<MeasurementSummary>,
    /// What each rule of the map did, those of `correlate` first.
    pub rules: Vec<RuleOutcome>,
    /// The parameters of the result, in order of appearance.
    pub parameters: Vec<CombinedParameter>,
    /// Differences between workspaces that share a parameter.
    pub warnings: Vec<String>,
}

/// A workspace of a combination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnalysisSummary {
    /// Its label.
    pub label: String,
    /// Its channels.
    pub channels: Vec<String>,
    /// The measurements that were combined.
    pub measurements: Vec<MeasurementSummary>,
}

/// A measurement and its parameter of interest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MeasurementSummary {
    /// Its name.
    pub name: String,
    /// The parameter of interest; empty for none.
    pub poi: String,
}

/// What a rule did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleOutcome {
    /// Its JSON pointer in the map; empty for one that is not from a document.
    pub rule: String,
    /// Its line in the map.
    pub line: Option<usize>,
    /// `correlate` or `decorrelate`.
    pub action: &'static str,
    /// The parameters of the result that it made.
    pub parameters: Vec<String>,
    /// Parameters that its patterns match in one workspace only, which keep their names: label and
    /// name of each.
    pub without_counterpart: Vec<[String; 2]>,
}

/// Why several parameters are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CorrelatedBy {
    /// A rule of the map says so.
    Map,
    /// They have the same name, and no rule mentions them.
    Name,
}

/// A parameter of a combination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CombinedParameter {
    /// Its name.
    pub parameter: String,
    /// Why it is one for several workspaces; `None` if it is of one only.
    pub correlated_by: Option<CorrelatedBy>,
    /// JSON pointers of the rules that made it.
    pub rules: Vec<String>,
    /// What it is in each workspace.
    pub uses: Vec<ParameterUse>,
    /// What differs between them.
    pub differences: Vec<String>,
}

/// What a parameter of a combination is in one workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParameterUse {
    /// The label of the workspace.
    pub analysis: String,
    /// Its names there.
    pub names: Vec<String>,
    /// Channels with its modifiers.
    pub channels: Vec<String>,
    /// Samples with its modifiers.
    pub samples: Vec<String>,
    /// Types of its modifiers; none for a parameter that only a measurement names.
    #[serde(serialize_with = "words")]
    pub kinds: Vec<ModifierKind>,
}

fn words<S: serde::Serializer>(kinds: &[ModifierKind], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(kinds.iter().map(|kind| kind.as_str()))
}

impl CombinationReport {
    /// Returns the parameters of several workspaces that no rule mentions.
    pub fn by_name_alone(&self) -> impl Iterator<Item = &CombinedParameter> {
        self.parameters.iter().filter(|found| found.correlated_by == Some(CorrelatedBy::Name))
    }
}

impl RuleOutcome {
    pub(super) fn of_split(rule: &DecorrelateRule, parameters: Vec<String>) -> Self {
        let place = rule.place.as_ref();
        Self {
            rule: place.map(|place| place.pointer.clone()).unwrap_or_default(),
            line: place.and_then(|place| place.position).map(|position| position.line),
            action: "decorrelate",
            parameters,
            without_counterpart: Vec::new(),
        }
    }
}

/// A parameter of one workspace that becomes one of the combination.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contribution<'m> {
    /// Index of the workspace.
    pub(super) analysis: usize,
    pub(super) name: String,
    pub(super) used: Use,
    /// The rule that names it.
    pub(super) rule: Option<Rule<'m>>,
    /// The rule that split it off.
    pub(super) split: Option<Rule<'m>>,
}

/// The parameters of a result with what each is made of, in order of appearance.
#[derive(Default)]
pub(super) struct ContributionList<'m> {
    pub(super) list: Vec<(String, Vec<Contribution<'m>>)>,
    index: HashMap<String, usize>,
}

impl<'m> ContributionList<'m> {
    /// Adds what `parameter` is made of.
    pub(super) fn add(&mut self, parameter: &str, found: Contribution<'m>) {
        let at = *self.index.entry(parameter.to_owned()).or_insert(self.list.len());
        match self.list.get_mut(at) {
            Some((_, contributions)) => contributions.push(found),
            None => self.list.push((parameter.to_owned(), vec![found])),
        }
    }
}

/// What a report is made of.
pub(super) struct Described<'d> {
    pub(super) labels: &'d [&'d str],
    /// Before parameters are renamed.
    pub(super) documents: &'d [&'d WorkspaceDocument],
    /// The map, which makes one measurement; `None` where each workspace has its own.
    pub(super) map: Option<&'d CorrelationMap>,
    /// By their names in the result.
    pub(super) parameters: &'d [(String, Vec<Contribution<'d>>)],
}

/// Returns the measurements of a workspace.
pub(super) fn measurements_of(document: &WorkspaceDocument) -> Vec<MeasurementSummary> {
    let summary = |measurement: &super::Measurement| MeasurementSummary {
        name: measurement.name.clone(),
        poi: measurement.config.poi.clone(),
    };
    document.measurements.iter().map(summary).collect()
}

/// Returns the report of workspaces that are combined by the names of parameters, as
/// [`combine`](super::combine()) does it.
#[must_use]
pub fn report_by_name(analyses: &[(&str, &WorkspaceDocument)], result: &WorkspaceDocument) -> CombinationReport {
    let (labels, documents): (Vec<&str>, Vec<&WorkspaceDocument>) = analyses.iter().copied().unzip();
    let mut parameters = ContributionList::default();
    for (analysis, document) in documents.iter().enumerate() {
        let uses = Uses::of(document);
        for name in uses.names() {
            let used = uses.get(name).cloned().unwrap_or_default();
            parameters.add(name, Contribution { analysis, name: name.clone(), used, rule: None, split: None });
        }
    }
    let described = Described { labels: &labels, documents: &documents, map: None, parameters: &parameters.list };
    describe(&described, measurements_of(result))
}

/// Returns the report, without outcomes of rules.
pub(super) fn describe(described: &Described<'_>, measurements: Vec<MeasurementSummary>) -> CombinationReport {
    let summary = |(label, document): (&&str, &&WorkspaceDocument)| AnalysisSummary {
        label: (*label).to_owned(),
        channels: document.channels.iter().map(|channel| channel.name.clone()).collect(),
        measurements: measurements_of(document),
    };
    let analyses = described.labels.iter().zip(described.documents).map(summary).collect();
    let parameters: Vec<CombinedParameter> =
        described.parameters.iter().map(|(name, contributions)| described.parameter(name, contributions)).collect();
    let warning = |found: &CombinedParameter| {
        let name = found.parameter.clone();
        found
            .differences
            .iter()
            .map(move |difference| format!("`{name}` is one parameter, but {difference}"))
            .collect::<Vec<_>>()
    };
    let warnings = parameters.iter().flat_map(warning).collect();
    CombinationReport { analyses, measurements, rules: Vec::new(), parameters, warnings }
}

impl Described<'_> {
    fn parameter(&self, name: &str, contributions: &[Contribution<'_>]) -> CombinedParameter {
        let mut uses: Vec<ParameterUse> = Vec::new();
        let mut rules = Vec::new();
        for found in contributions {
            for rule in [found.split, found.rule].into_iter().flatten() {
                push(&mut rules, &rule.pointer());
            }
            let analysis = self.labels[found.analysis];
            if uses.last().is_none_or(|last| last.analysis != analysis) {
                let (names, channels, samples, kinds) = Default::default();
                uses.push(ParameterUse { analysis: analysis.to_owned(), names, channels, samples, kinds });
            }
            let Some(last) = uses.last_mut() else { continue };
            push(&mut last.names, &found.name);
            found.used.channels.iter().for_each(|channel| push(&mut last.channels, channel));
            found.used.samples.iter().for_each(|sample| push(&mut last.samples, sample));
            found.used.kinds.iter().for_each(|kind| push(&mut last.kinds, kind));
        }
        let is_ruled = contributions.iter().any(|found| matches!(found.rule, Some(Rule::Correlate(_))));
        let correlated_by = match contributions.len() {
            0 | 1 => None,
            _ if is_ruled => Some(CorrelatedBy::Map),
            _ => Some(CorrelatedBy::Name),
        };
        let differences =
            if correlated_by.is_some() { self.differences(name, contributions, &uses) } else { Vec::new() };
        rules.retain(|rule| !rule.is_empty());
        CombinedParameter { parameter: name.to_owned(), correlated_by, rules, uses, differences }
    }

    /// Returns what differs between the members of a parameter.
    fn differences(&self, name: &str, contributions: &[Contribution<'_>], uses: &[ParameterUse]) -> Vec<String> {
        let mut differences = Vec::new();
        let sorted = |kinds: &[ModifierKind]| {
            let mut words: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
            words.sort_unstable();
            words.join(" and ")
        };
        let used: Vec<&ParameterUse> = uses.iter().filter(|found| !found.kinds.is_empty()).collect();
        if let Some((first, other)) = used
            .first()
            .and_then(|first| Some((first, used.iter().find(|other| sorted(&other.kinds) != sorted(&first.kinds))?)))
        {
            let [a, b] = [first, other].map(|found| format!("{} in `{}`", sorted(&found.kinds), found.analysis));
            differences.push(format!("it is {a} and {b}"));
        }
        let Some(map) = self.map else { return differences };
        if let Some(unused) = uses.iter().find(|found| found.kinds.is_empty()) {
            differences.push(format!("no modifier of `{}` uses it", unused.analysis));
        }
        differences.extend(self.one_sided_settings(map, name, contributions));
        differences
    }

    /// Returns the settings that some of the members have and others do not. Starting values do not
    /// count: no result depends on them.
    fn one_sided_settings(&self, map: &CorrelationMap, name: &str, contributions: &[Contribution<'_>]) -> Vec<String> {
        let set = |found: &Contribution<'_>| {
            let measurements = self.documents[found.analysis].measurements.iter();
            let settings = measurements.flat_map(|measurement| &measurement.config.parameters);
            settings.filter(|setting| setting.name == found.name).collect::<Vec<&Setting>>()
        };
        let keys = ["auxdata", "beta", "bounds", "constraints", "factors", "fixed", "per_bin", "sigmas"];
        let mut one_sided: Vec<([usize; 2], Vec<&str>)> = Vec::new();
        for key in keys.into_iter().filter(|key| !is_set(map, name, key)) {
            let has = |found: &&Contribution<'_>| set(found).iter().any(|setting| setting.values.contains_key(key));
            let Some(with) = contributions.iter().find(has) else { continue };
            let without = contributions.iter().find(|found| !has(found) && found.analysis != with.analysis);
            let Some(without) = without else { continue };
            let sides = [with.analysis, without.analysis];
            match one_sided.iter_mut().find(|(known, _)| *known == sides) {
                Some((_, keys)) => keys.push(key),
                None => one_sided.push((sides, vec![key])),
            }
        }
        let text = |([with, without], keys): ([usize; 2], Vec<&str>)| {
            let [with, without] = [with, without].map(|i| self.labels[i]);
            format!("only `{with}` sets its {}, for `{without}`, too", in_backticks(keys))
        };
        one_sided.into_iter().map(text).collect()
    }

    /// Returns an error of the parameter `name`, at the rule that made it.
    pub(super) fn error(&self, name: &str, problem: MapProblem) -> MapError {
        let contributions = self.parameters.iter().find(|(known, _)| known == name).map(|(_, found)| found);
        let rule = contributions.and_then(|found| found.iter().find_map(|found| found.rule));
        match rule {
            Some(rule) => rule.error(problem),
            None => MapError { problem, place: None },
        }
    }

    /// Refuses types of modifiers that cannot share a parameter.
    pub(super) fn require_compatible(&self, map: &CorrelationMap) -> Result<(), MapError> {
        for (name, contributions) in self.parameters.iter().filter(|(_, found)| found.len() > 1) {
            let problem = self.kinds(name, contributions).or_else(|| self.per_bin(name, contributions));
            if let Some(problem) = problem {
                let mut error = self.error(name, problem);
                if error.place.is_none() {
                    error.place.clone_from(&map.same_names_place);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn kinds(&self, name: &str, contributions: &[Contribution<'_>]) -> Option<MapProblem> {
        let is_shift = |kind: &ModifierKind| matches!(kind, ModifierKind::NormSys | ModifierKind::HistoSys);
        let all = contributions.iter().flat_map(|found| found.used.kinds.iter().map(|&kind| (found.analysis, kind)));
        // Formulas may use parameters of every kind.
        let all: Vec<(usize, ModifierKind)> = all.filter(|(_, kind)| !kind.has_formula()).collect();
        let &(i, first) = all.first()?;
        let can_be_one = |kind: &ModifierKind| *kind == first || (is_shift(kind) && is_shift(&first));
        let &(j, other) = all.iter().find(|(_, kind)| !can_be_one(kind))?;
        let analyses = [i, j].map(|i| self.labels[i].to_owned());
        Some(MapProblem::Kinds { name: name.to_owned(), analyses, kinds: [first, other] })
    }

    /// Returns the problem of a parameter whose elements belong to the bins of several channels.
    fn per_bin(&self, name: &str, contributions: &[Contribution<'_>]) -> Option<MapProblem> {
        let used = contributions.iter().filter(|found| !found.used.kinds.is_empty());
        let used: Vec<&Contribution<'_>> = used.collect();
        let kinds = [ModifierKind::StatError, ModifierKind::ShapeSys, ModifierKind::ShapeFactor, ModifierKind::McStat];
        let kind = kinds.into_iter().find(|kind| used.iter().any(|found| found.used.kinds.contains(kind)))?;
        let mut channels: Vec<(usize, String)> = Vec::new();
        for found in &used {
            found.used.channels.iter().for_each(|channel| push(&mut channels, &(found.analysis, channel.clone())));
        }
        let mut n_bins: Vec<usize> = channels.iter().map(|(i, channel)| bins(self.documents[*i], channel)).collect();
        n_bins.dedup();
        let is_one = match kind {
            ModifierKind::ShapeFactor => n_bins.len() == 1,
            // One sample in one channel, which contributes twice, is refused elsewhere.
            _ => used.len() < 2,
        };
        let channels = channels.into_iter().map(|(_, channel)| channel).collect();
        (!is_one).then(|| MapProblem::PerBin { name: name.to_owned(), kind, channels })
    }
}

/// Returns the number of bins of a channel.
fn bins(document: &WorkspaceDocument, name: &str) -> usize {
    let channel = document.channels.iter().find(|channel| channel.name == name);
    match channel.and_then(|channel| channel.samples.first()).map(|sample| &sample.data) {
        Some(WrittenValue::List(bins)) => bins.len(),
        _ => 0,
    }
}
