//! Splits parameters by channel or by sample: a modifier `X` in a part `P` becomes `X_P`.

use std::collections::HashMap;

use ns_core::spec::ModifierKind;

use super::map::{DecorrelateRule, MapError, MapProblem, Placed, SplitBy, chosen, matched};
use super::uses::{Uses, push};
use super::{Measurement, Modifier, Named, Setting, WorkspaceDocument, WorkspacePart};

/// What a rule did to one parameter of one workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Split {
    /// Index of the rule.
    pub(super) rule: usize,
    /// The name before.
    pub(super) parameter: String,
    /// The names of the parts, in document order, and the old name if modifiers keep it.
    pub(super) parts: Vec<String>,
}

/// Splits the parameters of `document`, whose label is `label`, as the rules with an index in
/// `rules` say, those that are for it.
///
/// Settings of measurements are copied to every part. A measurement whose parameter of interest is
/// split keeps its name.
///
/// # Errors
/// Two rules for a parameter, a part in two ways, a new name that is taken, modifiers that cannot
/// be split.
pub(super) fn split(
    document: &mut WorkspaceDocument,
    label: &str,
    rules: &[(usize, &DecorrelateRule)],
) -> Result<Vec<Split>, MapError> {
    let uses = Uses::of(document);
    let mut splitter = Splitter { label, uses: &uses, splits: HashMap::new(), owners: HashMap::new() };
    let rules: Vec<_> = rules.iter().filter(|(_, rule)| rule.is_for(label)).copied().collect();
    let mut assigned = HashMap::new();
    for name in uses.names() {
        let candidates = rules.iter().map(|found| (*found, &*found.1.parameters));
        if let Some((rule, _)) = chosen(name, candidates)? {
            assigned.insert(name.clone(), rule);
        }
    }
    for channel in &mut document.channels {
        for sample in &mut channel.samples {
            for modifier in &mut sample.modifiers {
                if let Some((name, (_, rule))) =
                    modifier.parameters.iter().find_map(|name| assigned.get_key_value(name))
                {
                    let (name, formula) = (name.clone(), modifier.name.clone());
                    return Err(rule.error(MapProblem::InFormula { name, formula }));
                }
                if let Some(&(index, rule)) = assigned.get(&modifier.name) {
                    splitter.rename(modifier, index, rule, [&channel.name, &sample.name])?;
                }
            }
        }
    }
    document.measurements.iter_mut().for_each(|measurement| splitter.copy_settings(measurement));
    let in_order = uses.names().iter().filter_map(|name| splitter.splits.remove(name));
    let is_split = |split: &Split| split.parts != [split.parameter.clone()];
    Ok(in_order.filter(is_split).collect())
}

struct Splitter<'d> {
    label: &'d str,
    uses: &'d Uses,
    splits: HashMap<String, Split>,
    /// The parameter that each new name is for.
    owners: HashMap<String, String>,
}

impl Splitter<'_> {
    /// Gives a modifier in a channel and a sample the name of its part.
    fn rename(
        &mut self,
        modifier: &mut Modifier,
        index: usize,
        rule: &DecorrelateRule,
        [channel, sample]: [&str; 2],
    ) -> Result<(), MapError> {
        let old = modifier.name.clone();
        let split = self.splits.entry(old.clone());
        let split = split.or_insert_with(|| Split { rule: index, parameter: old.clone(), parts: Vec::new() });
        let is_selected = |names: &[Placed], name: &str| names.is_empty() || matched(names, name).is_some();
        let part = match is_selected(&rule.channels, channel) && is_selected(&rule.samples, sample) {
            true => part_of(rule, if rule.by == Some(SplitBy::Sample) { sample } else { channel })?,
            false => None,
        };
        let Some(part) = part else {
            push(&mut split.parts, &old);
            return Ok(());
        };
        let new = format!("{old}_{part}");
        push(&mut split.parts, &new);
        if modifier.kind == ModifierKind::Lumi {
            return Err(rule.error(MapProblem::Lumi { to: new }));
        }
        if modifier.kind == ModifierKind::StatError && rule.by == Some(SplitBy::Sample) {
            return Err(rule.error(MapProblem::StatErrorBySample { name: old }));
        }
        let owner = self.owners.entry(new.clone()).or_insert_with(|| old.clone());
        if *owner != old || self.uses.contains(&new) {
            let by = if *owner == old { &new } else { &*owner };
            let taken_by = format!("the parameter `{by}` has that name");
            return Err(rule.error(MapProblem::Taken {
                from: old,
                analysis: self.label.to_owned(),
                to: new,
                taken_by,
            }));
        }
        modifier.name = new;
        Ok(())
    }

    /// Gives every part the settings of what was split.
    fn copy_settings(&self, measurement: &mut Measurement) {
        let settings = std::mem::take(&mut measurement.config.parameters);
        let copies = |setting: Setting| match self.splits.get(setting.name()) {
            None => vec![setting],
            Some(split) => {
                let copy = |name: &String| Setting { name: name.clone(), values: setting.values.clone() };
                split.parts.iter().map(copy).collect()
            }
        };
        measurement.config.parameters = settings.into_iter().flat_map(copies).collect();
    }
}

/// Returns the suffix of the part that the channel or sample `name` is in; `None` for one that is
/// in no part.
fn part_of<'r>(rule: &'r DecorrelateRule, name: &'r str) -> Result<Option<&'r str>, MapError> {
    if rule.parts.is_empty() {
        return Ok(Some(name));
    }
    let candidates = rule.parts.iter().map(|(part, patterns)| (&*part.text, &**patterns));
    Ok(chosen(name, candidates)?.map(|(part, _)| part))
}

/// Refuses names and patterns of `rules` that nothing in `documents`, each with its label, is
/// called.
pub(super) fn require_names(
    rules: &[&DecorrelateRule],
    documents: &[(&str, &WorkspaceDocument)],
) -> Result<(), MapError> {
    let labels: Vec<&str> = documents.iter().map(|(label, _)| *label).collect();
    for rule in rules {
        rule.analyses.iter().try_for_each(|label| require_label(label, &labels))?;
        let those: Vec<_> = documents.iter().filter(|(label, _)| rule.is_for(label)).collect();
        let parameters: Vec<Uses> = those.iter().map(|(_, document)| Uses::of(document)).collect();
        let parameters: Vec<&str> = parameters.iter().flat_map(Uses::names).map(String::as_str).collect();
        let names = |part| those.iter().flat_map(|(_, document)| document.names(part)).collect::<Vec<_>>();
        let (channels, samples) = (names(WorkspacePart::Channel), names(WorkspacePart::Sample));
        require_known(&rule.parameters, &parameters, "parameter")?;
        require_known(&rule.channels, &channels, "channel")?;
        require_known(&rule.samples, &samples, "sample")?;
        for (_, patterns) in &rule.parts {
            match rule.by {
                Some(SplitBy::Sample) => require_known(patterns, &samples, "sample")?,
                _ => require_known(patterns, &channels, "channel")?,
            }
        }
    }
    Ok(())
}

/// Refuses a label that no workspace has.
pub(super) fn require_label(label: &Placed, known: &[&str]) -> Result<(), MapError> {
    if known.contains(&&*label.text) {
        return Ok(());
    }
    let known = known.iter().map(|label| (*label).to_owned()).collect();
    Err(label.error(MapProblem::UnknownAnalysis { label: label.text.clone(), known }))
}

/// Refuses a name or a pattern that none of `known` is called.
pub(super) fn require_known(patterns: &[Placed], known: &[&str], what: &'static str) -> Result<(), MapError> {
    for placed in patterns {
        if known.iter().any(|name| *name == placed.text || ns_core::pattern::matches(&placed.text, name)) {
            continue;
        }
        let mut names = Vec::new();
        known.iter().for_each(|name| push(&mut names, &(*name).to_owned()));
        return Err(placed.error(unknown(what, placed, None, names)));
    }
    Ok(())
}

/// Returns the error of a name or a pattern that none of `known` is called.
pub(super) fn unknown(what: &'static str, placed: &Placed, analysis: Option<&str>, known: Vec<String>) -> MapProblem {
    let (name, analysis) = (placed.text.clone(), analysis.map(str::to_owned));
    if placed.is_pattern() {
        MapProblem::NoMatch { what, pattern: name, analysis, known }
    } else {
        MapProblem::Unknown { what, name, analysis, known, parts: Vec::new() }
    }
}

/// Refuses rules without an effect: a part without a modifier, a parameter that stays as it is.
pub(super) fn require_effect(rules: &[(usize, &DecorrelateRule)], splits: &[Split]) -> Result<(), MapError> {
    for &(index, rule) in rules {
        let done: Vec<&Split> = splits.iter().filter(|split| split.rule == index).collect();
        let is_split = |name: &Placed| match name.is_pattern() {
            true => !done.is_empty(),
            false => done.iter().any(|split| split.parameter == name.text),
        };
        if let Some(name) = rule.parameters.iter().find(|name| !is_split(name)) {
            return Err(name.error(MapProblem::NothingSplit { name: name.text.clone() }));
        }
        let has = |part: &str| done.iter().any(|split| split.parts.contains(&format!("{}_{part}", split.parameter)));
        if let Some((part, _)) = rule.parts.iter().find(|(part, _)| !has(&part.text)) {
            let parameters = rule.parameters.iter().map(|name| name.text.clone()).collect();
            return Err(part.error(MapProblem::EmptyPart { part: part.text.clone(), parameters }));
        }
    }
    Ok(())
}
