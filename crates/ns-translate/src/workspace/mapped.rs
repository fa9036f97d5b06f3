//! Combines any number of workspaces as a correlation map says, and splits parameters of one.
//!
//! The order: one measurement of each workspace is chosen, parameters are split by channel or
//! sample, the rules and then [`SameNames`] decide names, and what has one name
//! is one parameter. The result has one measurement.

use std::collections::HashMap;

use ns_core::spec::ModifierKind;

use super::combine::repeated_name;
use super::correlate::{self, Namings, Rule, Unmatched, namings};
use super::map::{CorrelationMap, DecorrelateRule, MapError, MapProblem, Placed, SameNames, SplitBy};
use super::report::{
    CombinationReport, Contribution, ContributionList, Described, RuleOutcome, describe, measurements_of,
};
use super::settings::merged_settings;
use super::split::{Split, require_effect, require_names, split};
use super::uses::Uses;
use super::{Config, Measurement, WorkspaceDocument};
use crate::json::WrittenValue;

/// A workspace to combine with others.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledWorkspace {
    /// What maps, suffixes and messages call it.
    pub label: String,
    /// The file that it is from, if it is from one.
    pub file: Option<String>,
    /// The workspace.
    pub document: WorkspaceDocument,
}

/// A workspace with the account of what was correlated and split.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedWorkspace {
    /// The workspace.
    pub document: WorkspaceDocument,
    /// What was done to it.
    pub report: CombinationReport,
}

/// The name of a measurement made of several of different names.
const COMBINATION: &str = "combination";

/// Returns the combination of `analyses` as `map` says, with one measurement.
///
/// # Errors
///
/// Names and patterns of the map that nothing has; two rules for one parameter; rules without an
/// effect; names that are taken; channels that two workspaces have; types of modifiers that cannot
/// share a parameter; settings that contradict each other; parameters of interest that differ.
pub fn combine_by_map(mut analyses: Vec<LabelledWorkspace>, map: &CorrelationMap) -> Result<MappedWorkspace, MapError> {
    label(&mut analyses, map)?;
    for analysis in &mut analyses {
        require_unique(analysis)?;
        choose_measurement(analysis, map)?;
    }
    let splits = split_all(&mut analyses, map)?;
    let named: Vec<correlate::Named<'_>> = analyses
        .iter()
        .zip(&splits)
        .map(|(analysis, splits)| correlate::Named {
            label: &analysis.label,
            uses: Uses::of(&analysis.document),
            splits,
        })
        .collect();
    let (namings, unmatched) = namings(map, &named)?;
    let contributions = contributions(&named, &namings, map);
    require_pois(&analyses, &splits, map)?;
    let combination = Combination { map, contributions };
    combination.build(&analyses, &namings, &unmatched)
}

/// Gives the workspaces the labels of the map.
fn label(analyses: &mut [LabelledWorkspace], map: &CorrelationMap) -> Result<(), MapError> {
    for entry in &map.analyses {
        let i = match &entry.file {
            Some(file) => by_file(analyses, file)?,
            None => {
                let known: Vec<&str> = analyses.iter().map(|analysis| &*analysis.label).collect();
                super::split::require_label(&entry.label, &known)?;
                known.iter().position(|label| *label == entry.label.text).unwrap_or_default()
            }
        };
        analyses[i].label.clone_from(&entry.label.text);
    }
    let labels = analyses.iter().map(|analysis| &*analysis.label);
    match repeated_name(labels) {
        None => Ok(()),
        Some(label) => Err(MapError { problem: MapProblem::LabelTwice { label: label.to_owned() }, place: None }),
    }
}

/// Returns the index of the workspace from a file, which is named by its path, its name, or its
/// name without what follows the first dot.
fn by_file(analyses: &[LabelledWorkspace], file: &Placed) -> Result<usize, MapError> {
    let paths: Vec<Option<&str>> = analyses.iter().map(|analysis| analysis.file.as_deref()).collect();
    let same = |name: fn(&str) -> &str| {
        let found = paths.iter().enumerate().filter(|(_, path)| path.is_some_and(|path| name(path) == file.text));
        found.map(|(i, _)| i).collect::<Vec<_>>()
    };
    let ways: [fn(&str) -> &str; 3] = [|path| path, file_name, stem];
    match ways.into_iter().map(same).find(|found| !found.is_empty()).as_deref() {
        Some([i]) => Ok(*i),
        Some(several) => Err(file.error(MapProblem::AmbiguousFile { file: file.text.clone(), n_found: several.len() })),
        None => {
            let known = paths.into_iter().flatten().map(str::to_owned).collect();
            Err(file.error(MapProblem::UnknownFile { file: file.text.clone(), known }))
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns the name of a file without folders and without what follows its first dot: the label of
/// a workspace that has no other.
#[must_use]
pub fn stem(path: &str) -> &str {
    let name = file_name(path);
    match name.split_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

/// Refuses a workspace in which two items have one name.
fn require_unique(analysis: &LabelledWorkspace) -> Result<(), MapError> {
    match super::combine::duplicate(&analysis.document) {
        None => Ok(()),
        Some((part, name, scope)) => {
            let analysis = analysis.label.clone();
            Err(MapError { problem: MapProblem::Duplicate { analysis, part, name, scope }, place: None })
        }
    }
}

/// Leaves the measurement that the map names, or the only one.
fn choose_measurement(analysis: &mut LabelledWorkspace, map: &CorrelationMap) -> Result<(), MapError> {
    let label = &analysis.label;
    let entry = map.analyses.iter().find(|entry| entry.label.text == *label);
    let measurements = &mut analysis.document.measurements;
    let known = || measurements.iter().map(|measurement| measurement.name.clone()).collect();
    match entry.and_then(|entry| entry.measurement.as_ref()) {
        Some(wanted) if !measurements.iter().any(|measurement| measurement.name == wanted.text) => {
            let (analysis, name) = (label.clone(), wanted.text.clone());
            Err(wanted.error(MapProblem::UnknownMeasurement { analysis, name, known: known() }))
        }
        Some(wanted) => {
            measurements.retain(|measurement| measurement.name == wanted.text);
            Ok(())
        }
        None if measurements.len() > 1 => {
            let problem = MapProblem::SeveralMeasurements { analysis: label.clone(), known: known() };
            Err(MapError { problem, place: None })
        }
        None => Ok(()),
    }
}

/// Splits by channel and by sample, and returns what was split in each workspace.
fn split_all(analyses: &mut [LabelledWorkspace], map: &CorrelationMap) -> Result<Vec<Vec<Split>>, MapError> {
    let all: Vec<&DecorrelateRule> = map.decorrelate.iter().collect();
    let documents: Vec<(&str, &WorkspaceDocument)> =
        analyses.iter().map(|analysis| (&*analysis.label, &analysis.document)).collect();
    require_names(&all, &documents)?;
    let rules: Vec<_> = all.into_iter().enumerate().filter(|(_, rule)| rule.by.is_some()).collect();
    let mut splits = Vec::new();
    for analysis in analyses {
        splits.push(split(&mut analysis.document, &analysis.label, &rules)?);
    }
    require_effect(&rules, &splits.concat())?;
    Ok(splits)
}

/// Returns the parameters of the combination with what each is made of, in order of appearance.
fn contributions<'m>(
    analyses: &[correlate::Named<'_>],
    namings: &[Namings<'m>],
    map: &'m CorrelationMap,
) -> Vec<(String, Vec<Contribution<'m>>)> {
    let mut parameters = ContributionList::default();
    for (i, (analysis, namings)) in analyses.iter().zip(namings).enumerate() {
        for name in analysis.uses.names() {
            let naming = namings.get(name);
            let split = analysis.splits.iter().find(|split| split.parts.contains(name));
            let found = Contribution {
                analysis: i,
                name: name.clone(),
                used: analysis.uses.get(name).cloned().unwrap_or_default(),
                rule: naming.and_then(|naming| naming.rule),
                split: split.map(|split| Rule::Decorrelate(&map.decorrelate[split.rule])),
            };
            parameters.add(naming.map_or(name, |naming| &naming.to), found);
        }
    }
    parameters.list
}

/// Refuses a split parameter of interest unless the map says which part is of interest.
fn require_pois(analyses: &[LabelledWorkspace], splits: &[Vec<Split>], map: &CorrelationMap) -> Result<(), MapError> {
    if map.poi.is_some() {
        return Ok(());
    }
    for (analysis, splits) in analyses.iter().zip(splits) {
        for measurement in &analysis.document.measurements {
            if let Some(split) = split_poi(splits, measurement) {
                return Err(poi_split(split, measurement, &map.decorrelate[split.rule]));
            }
        }
    }
    Ok(())
}

/// Returns the first of `splits` that split a parameter of interest of `measurement`, whose other
/// settings are those of the parts.
fn split_poi<'s>(splits: &'s [Split], measurement: &Measurement) -> Option<&'s Split> {
    let pois: Vec<&str> = measurement.config.pois().collect();
    let is_poi = |name: &String| pois.contains(&name.as_str());
    splits.iter().find(|split| is_poi(&split.parameter) || split.parts.iter().any(is_poi))
}

fn poi_split(split: &Split, measurement: &Measurement, rule: &DecorrelateRule) -> MapError {
    rule.error(MapProblem::PoiSplit {
        poi: split.parameter.clone(),
        parts: split.parts.clone(),
        measurement: measurement.name.clone(),
    })
}

struct Combination<'m> {
    map: &'m CorrelationMap,
    contributions: Vec<(String, Vec<Contribution<'m>>)>,
}

impl Combination<'_> {
    fn build(
        &self,
        analyses: &[LabelledWorkspace],
        namings: &[Namings<'_>],
        unmatched: &[Unmatched],
    ) -> Result<MappedWorkspace, MapError> {
        let labels: Vec<&str> = analyses.iter().map(|analysis| &*analysis.label).collect();
        let documents: Vec<&WorkspaceDocument> = analyses.iter().map(|analysis| &analysis.document).collect();
        let described =
            Described { labels: &labels, documents: &documents, map: Some(self.map), parameters: &self.contributions };
        described.require_compatible(self.map)?;
        let mut renamed: Vec<WorkspaceDocument> = analyses
            .iter()
            .zip(namings)
            .map(|(analysis, namings)| renamed(analysis, namings))
            .collect::<Result<_, _>>()?;
        if let Some(poi) = &self.map.poi {
            let measurements = renamed.iter_mut().flat_map(|document| &mut document.measurements);
            measurements.for_each(|measurement| measurement.config.set_poi(&poi.text));
        }
        let settings = merged_settings(&described, &renamed, self.map)?;
        let poi = self.poi(&labels, &renamed)?;
        let clip = common_clip(&labels, &renamed)?;
        let measurement = Measurement { config: Config { clip, parameters: settings, poi }, name: self.name(&renamed) };
        let document = joined(&labels, renamed, measurement)?;
        let mut report = describe(&described, measurements_of(&document));
        report.rules = self.outcomes(unmatched);
        Ok(MappedWorkspace { document, report })
    }

    /// Returns the first parameter of interest: that of the map, which is the only one, or the one
    /// that all workspaces have.
    fn poi(&self, labels: &[&str], renamed: &[WorkspaceDocument]) -> Result<String, MapError> {
        if let Some(poi) = &self.map.poi {
            let known: Vec<&str> = self.contributions.iter().map(|(name, _)| &**name).collect();
            super::split::require_known(std::slice::from_ref(poi), &known, "parameter")?;
            return Ok(poi.text.clone());
        }
        let poi = |document: &WorkspaceDocument| document.measurements.first().map(|m| m.config.poi.clone());
        let pois: Vec<[String; 2]> = labels
            .iter()
            .zip(renamed)
            .filter_map(|(label, document)| Some([(*label).to_owned(), poi(document).filter(|poi| !poi.is_empty())?]))
            .collect();
        match pois.first() {
            None => Ok(String::new()),
            Some([_, first]) if pois.iter().all(|[_, poi]| poi == first) => Ok(first.clone()),
            Some(_) => Err(MapError { problem: MapProblem::PoisDiffer { pois }, place: None }),
        }
    }

    /// Returns the name of the measurement: that of the map, or the one that all workspaces have.
    fn name(&self, renamed: &[WorkspaceDocument]) -> String {
        if let Some(name) = &self.map.measurement {
            return name.clone();
        }
        let mut names: Vec<&str> =
            renamed.iter().flat_map(|document| &document.measurements).map(|measurement| &*measurement.name).collect();
        names.dedup();
        if let [name] = names[..] { name.to_owned() } else { COMBINATION.to_owned() }
    }

    /// Returns what each rule did, in the order of the map.
    fn outcomes(&self, unmatched: &[Unmatched]) -> Vec<RuleOutcome> {
        let gives = |rule: Rule<'_>| {
            let is_made = |contributions: &&(String, Vec<Contribution<'_>>)| {
                contributions.1.iter().any(|found| found.rule == Some(rule) || found.split == Some(rule))
            };
            self.contributions.iter().filter(is_made).map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let correlate = self.map.correlate.iter().map(|rule| RuleOutcome {
            rule: rule.place.pointer.clone(),
            line: rule.place.position.map(|position| position.line),
            action: "correlate",
            parameters: gives(Rule::Correlate(rule)),
            without_counterpart: unmatched
                .iter()
                .filter(|found| found.rule == rule.place.pointer)
                .map(|found| [found.analysis.clone(), found.parameter.clone()])
                .collect(),
        });
        let decorrelate =
            self.map.decorrelate.iter().map(|rule| RuleOutcome::of_split(rule, gives(Rule::Decorrelate(rule))));
        let place = self.map.same_names_place.as_ref();
        let same_names = (self.map.same_names == SameNames::Decorrelate).then(|| {
            let whole = DecorrelateRule { place: place.cloned(), ..DecorrelateRule::default() };
            RuleOutcome::of_split(&whole, gives(Rule::SameNames(place)))
        });
        correlate.chain(decorrelate).chain(same_names).collect()
    }
}

/// Returns the clipping that all workspaces have, each with one measurement.
fn common_clip(labels: &[&str], documents: &[WorkspaceDocument]) -> Result<Option<WrittenValue>, MapError> {
    let clip = |document: &WorkspaceDocument| document.measurements.first().and_then(|m| m.config.clip.clone());
    let clips: Vec<Option<WrittenValue>> = documents.iter().map(clip).collect();
    let Some(other) = clips.iter().position(|clip| *clip != clips[0]) else {
        return Ok(clips.into_iter().next().flatten());
    };
    let analyses = [labels[0].to_owned(), labels[other].to_owned()];
    Err(MapError { problem: MapProblem::ClipsDiffer { analyses }, place: None })
}

/// Returns a workspace with new names of parameters.
fn renamed(analysis: &LabelledWorkspace, namings: &Namings<'_>) -> Result<WorkspaceDocument, MapError> {
    let mut document = analysis.document.clone();
    for channel in &mut document.channels {
        for sample in &mut channel.samples {
            let mut seen: Vec<(String, ModifierKind)> = Vec::new();
            for modifier in &mut sample.modifiers {
                modifier.rename_parameters(|name| namings.get(name).map_or(name, |naming| &*naming.to).to_owned());
                let old = modifier.name.clone();
                let Some(naming) = namings.get(&old) else {
                    seen.push((old, modifier.kind));
                    continue;
                };
                let error = |problem: MapProblem| match naming.rule {
                    Some(rule) => rule.error(problem),
                    None => MapError { problem, place: None },
                };
                if modifier.kind == ModifierKind::Lumi && naming.to != "lumi" {
                    return Err(error(MapProblem::Lumi { to: naming.to.clone() }));
                }
                modifier.name.clone_from(&naming.to);
                let key = (naming.to.clone(), modifier.kind);
                if old != naming.to && seen.contains(&key) {
                    let (channel, sample) = (channel.name.clone(), sample.name.clone());
                    return Err(error(MapProblem::TwiceInSample { name: key.0, channel, sample, kind: key.1 }));
                }
                seen.push(key);
            }
        }
    }
    for config in document.measurements.iter_mut().map(|measurement| &mut measurement.config) {
        for name in config.parameters.iter_mut().map(|setting| &mut setting.name).chain([&mut config.poi]) {
            if let Some(naming) = namings.get(name) {
                name.clone_from(&naming.to);
            }
        }
    }
    Ok(document)
}

/// Returns the channels and observations of all workspaces with one measurement.
fn joined(
    labels: &[&str],
    renamed: Vec<WorkspaceDocument>,
    measurement: Measurement,
) -> Result<WorkspaceDocument, MapError> {
    let mut owners: HashMap<String, &str> = HashMap::new();
    for (label, document) in labels.iter().zip(&renamed) {
        for channel in &document.channels {
            if let Some(other) = owners.insert(channel.name.clone(), label) {
                let analyses = [other, label].map(str::to_owned);
                let problem = MapProblem::ChannelInBoth { channel: channel.name.clone(), analyses };
                return Err(MapError { problem, place: None });
            }
        }
    }
    let version = renamed.first().map(|document| document.version.clone()).unwrap_or_default();
    let (mut channels, mut observations) = (Vec::new(), Vec::new());
    for document in renamed {
        channels.extend(document.channels);
        observations.extend(document.observations);
    }
    Ok(WorkspaceDocument { channels, measurements: vec![measurement], observations, version })
}

/// The parameters of one workspace to split.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecorrelateRequest {
    /// Names and patterns of parameters.
    pub parameters: Vec<String>,
    /// What the parts differ in.
    pub by: SplitBy,
    /// Names and patterns of the channels in which modifiers are split off; none are all.
    pub channels: Vec<String>,
    /// Names and patterns of the samples; none are all.
    pub samples: Vec<String>,
    /// Suffixes with the names and patterns of the channels or samples that have them; without any,
    /// each channel or sample is a part with its own name as the suffix.
    pub parts: Vec<(String, Vec<String>)>,
    /// The only parameter of interest of every measurement, which must be stated if one of those of
    /// a measurement is split.
    pub poi: Option<String>,
}

impl DecorrelateRequest {
    fn rule(&self) -> DecorrelateRule {
        let placed = |names: &[String]| names.iter().cloned().map(Placed::from).collect::<Vec<_>>();
        DecorrelateRule {
            parameters: placed(&self.parameters),
            by: Some(self.by),
            channels: placed(&self.channels),
            samples: placed(&self.samples),
            parts: self.parts.iter().map(|(part, names)| (Placed::from(part.clone()), placed(names))).collect(),
            ..DecorrelateRule::default()
        }
    }
}

/// Returns a workspace with parameters split: the modifier `X` in the part `P` becomes `X_P`, with
/// the settings of `X` in every measurement.
///
/// # Errors
/// Names and patterns that nothing has, a part without a modifier, a channel or a sample in two
/// parts, new names that are taken, modifiers that cannot be split, and a parameter of interest
/// that is split without a new one.
pub fn decorrelate(mut analysis: LabelledWorkspace, request: &DecorrelateRequest) -> Result<MappedWorkspace, MapError> {
    let rule = request.rule();
    let map = CorrelationMap { decorrelate: vec![rule], ..CorrelationMap::default() };
    let rules = [(0, &map.decorrelate[0])];
    require_names(&[&map.decorrelate[0]], &[(&analysis.label, &analysis.document)])?;
    let splits = split(&mut analysis.document, &analysis.label, &rules)?;
    require_effect(&rules, &splits)?;
    let uses = Uses::of(&analysis.document);
    for measurement in &mut analysis.document.measurements {
        match &request.poi {
            None => {
                if let Some(split) = split_poi(&splits, measurement) {
                    return Err(poi_split(split, measurement, rules[0].1));
                }
            }
            Some(poi) => measurement.config.set_poi(poi),
        }
    }
    if let Some(poi) = &request.poi {
        let known: Vec<&str> = uses.names().iter().map(String::as_str).collect();
        super::split::require_known(&[Placed::from(poi.clone())], &known, "parameter")?;
    }
    let named = [correlate::Named { label: &analysis.label, uses: Uses::of(&analysis.document), splits: &splits }];
    let parameters = contributions(&named, &[Namings::new()], &map);
    let described = Described {
        labels: &[&analysis.label],
        documents: &[&analysis.document],
        map: Some(&map),
        parameters: &parameters,
    };
    let mut report = describe(&described, measurements_of(&analysis.document));
    let gives = splits.iter().flat_map(|split| split.parts.clone()).collect();
    report.rules = vec![RuleOutcome::of_split(rules[0].1, gives)];
    Ok(MappedWorkspace { document: analysis.document, report })
}
