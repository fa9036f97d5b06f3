//! Decides the name that each parameter of each workspace gets in their combination.

use std::collections::{BTreeMap, HashMap};

use ns_core::pattern;

use super::map::{
    CorrelateRule, CorrelationMap, DecorrelateRule, MapError, MapProblem, Members, Placed, SameNames, chosen,
};
use super::split::{Split, require_label, unknown};
use super::uses::{Uses, push};
use crate::place::DocumentPlace;

/// What is known of one workspace when names are decided.
pub(super) struct Named<'d> {
    pub(super) label: &'d str,
    pub(super) uses: Uses,
    pub(super) splits: &'d [Split],
}

/// The new name of a parameter, and the rule that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Naming<'m> {
    pub(super) to: String,
    pub(super) rule: Option<Rule<'m>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule<'m> {
    Correlate(&'m CorrelateRule),
    Decorrelate(&'m DecorrelateRule),
    /// `same_names: decorrelate`, with its place.
    SameNames(Option<&'m DocumentPlace>),
}

impl Rule<'_> {
    pub(super) fn error(self, problem: MapProblem) -> MapError {
        match self {
            Self::Correlate(rule) => rule.error(problem),
            Self::Decorrelate(rule) => rule.error(problem),
            Self::SameNames(place) => MapError { problem, place: place.cloned() },
        }
    }

    /// Returns the JSON pointer of the rule.
    pub(super) fn pointer(self) -> String {
        let place = match self {
            Self::Correlate(rule) => Some(&rule.place),
            Self::Decorrelate(rule) => rule.place.as_ref(),
            Self::SameNames(place) => place,
        };
        place.map(|place| place.pointer.clone()).unwrap_or_default()
    }
}

/// The names of one workspace that change or have a rule, by the old name.
pub(super) type Namings<'m> = HashMap<String, Naming<'m>>;

/// A parameter that a pattern matched and that has no counterpart: it keeps its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unmatched {
    /// Pointer of the rule.
    pub(super) rule: String,
    /// Label of the workspace.
    pub(super) analysis: String,
    pub(super) parameter: String,
}

/// Returns the new names for each workspace.
///
/// # Errors
/// Rules for what is not there or for the same parameter, rules without an effect, and names that
/// are taken.
pub(super) fn namings<'m>(
    map: &'m CorrelationMap,
    analyses: &[Named<'_>],
) -> Result<(Vec<Namings<'m>>, Vec<Unmatched>), MapError> {
    for rule in &map.correlate {
        require_members(rule, analyses)?;
    }
    let mut namings: Vec<Namings<'m>> =
        analyses.iter().map(|analysis| by_rules(map, analysis)).collect::<Result<_, _>>()?;
    let unmatched = drop_unmatched(&mut namings, analyses);
    for rule in &map.correlate {
        require_two(rule, &namings, analyses)?;
    }
    apply_same_names(map, &mut namings, analyses)?;
    require_free(&namings, analyses)?;
    Ok((namings, unmatched))
}

/// Returns the names and patterns of the rule for a workspace.
fn patterns_for<'m>(rule: &'m CorrelateRule, label: &str) -> &'m [Placed] {
    match &rule.members {
        Members::SameName(labels) if labels.is_empty() || labels.iter().any(|named| named.text == label) => {
            std::slice::from_ref(&rule.name)
        }
        Members::SameName(_) => &[],
        Members::Named(members) => {
            members.iter().find(|(named, _)| named.text == label).map_or(&[], |(_, patterns)| patterns)
        }
    }
}

/// Refuses labels, names and patterns of a rule that nothing has.
fn require_members(rule: &CorrelateRule, analyses: &[Named<'_>]) -> Result<(), MapError> {
    let known: Vec<&str> = analyses.iter().map(|analysis| analysis.label).collect();
    let labels: Vec<&Placed> = match &rule.members {
        Members::SameName(labels) => labels.iter().collect(),
        Members::Named(members) => members.iter().map(|(label, _)| label).collect(),
    };
    labels.iter().try_for_each(|label| require_label(label, &known))?;
    let has = |analysis: &Named<'_>, placed: &Placed| {
        let mut names = analysis.uses.names().iter();
        names.any(|name| *name == placed.text || pattern::matches(&placed.text, name))
    };
    if labels.is_empty() {
        if analyses.iter().any(|analysis| has(analysis, &rule.name)) {
            return Ok(());
        }
        let mut names = Vec::new();
        analyses.iter().flat_map(|analysis| analysis.uses.names()).for_each(|name| push(&mut names, name));
        return Err(missing(&rule.name, None, names, analyses));
    }
    for analysis in analyses.iter().filter(|analysis| labels.iter().any(|label| label.text == analysis.label)) {
        for placed in patterns_for(rule, analysis.label) {
            if !has(analysis, placed) {
                let known = analysis.uses.names().to_vec();
                return Err(missing(placed, Some(analysis.label), known, std::slice::from_ref(analysis)));
            }
        }
    }
    Ok(())
}

/// Returns the error of a name or a pattern that nothing has; what it was split into is told.
fn missing(placed: &Placed, analysis: Option<&str>, known: Vec<String>, analyses: &[Named<'_>]) -> MapError {
    let mut problem = unknown("parameter", placed, analysis, known);
    if let MapProblem::Unknown { name, parts, .. } = &mut problem {
        let splits = analyses.iter().flat_map(|analysis| analysis.splits);
        splits
            .filter(|split| split.parameter == *name)
            .flat_map(|split| &split.parts)
            .for_each(|part| push(parts, part));
    }
    placed.error(problem)
}

/// Returns the names that rules give the parameters of one workspace.
fn by_rules<'m>(map: &'m CorrelationMap, analysis: &Named<'_>) -> Result<Namings<'m>, MapError> {
    let label = analysis.label;
    let mut namings = Namings::new();
    for name in analysis.uses.names() {
        let correlate = map.correlate.iter().map(|rule| (Rule::Correlate(rule), patterns_for(rule, label)));
        let by_analysis = map.decorrelate.iter().filter(|rule| rule.by.is_none() && rule.is_for(label));
        let decorrelate = by_analysis.map(|rule| (Rule::Decorrelate(rule), &*rule.parameters));
        let Some((rule, placed)) = chosen(name, correlate.chain(decorrelate))? else { continue };
        let to = match rule {
            Rule::Decorrelate(_) | Rule::SameNames(_) => format!("{name}_{label}"),
            Rule::Correlate(rule) if rule.members.are_named() && rule.name.is_pattern() => {
                pattern::fill(&rule.name.text, &pattern::captures(&placed.text, name).unwrap_or_default())
            }
            Rule::Correlate(rule) if rule.members.are_named() => rule.name.text.clone(),
            Rule::Correlate(_) => name.clone(),
        };
        namings.insert(name.clone(), Naming { to, rule: Some(rule) });
    }
    Ok(namings)
}

impl Members {
    fn are_named(&self) -> bool {
        matches!(self, Self::Named(_))
    }
}

/// Takes the names back that a rule with a pattern gives to one parameter alone, and returns what
/// has them.
fn drop_unmatched(namings: &mut [Namings<'_>], analyses: &[Named<'_>]) -> Vec<Unmatched> {
    let mut n_members: HashMap<(String, String), usize> = HashMap::new();
    let key = |naming: &Naming<'_>| match naming.rule {
        Some(Rule::Correlate(rule)) if rule.name.is_pattern() => Some((rule.place.pointer.clone(), naming.to.clone())),
        _ => None,
    };
    for found in namings.iter().flat_map(Namings::values).filter_map(key) {
        *n_members.entry(found).or_default() += 1;
    }
    let mut unmatched = Vec::new();
    for (namings, analysis) in namings.iter_mut().zip(analyses) {
        for name in analysis.uses.names() {
            let Some(found) = namings.get(name).and_then(key) else { continue };
            if n_members[&found] == 1 {
                namings.remove(name);
                let (rule, _) = found;
                unmatched.push(Unmatched { rule, analysis: analysis.label.to_owned(), parameter: name.clone() });
            }
        }
    }
    unmatched
}

/// Refuses a rule that makes nothing one.
fn require_two(rule: &CorrelateRule, namings: &[Namings<'_>], analyses: &[Named<'_>]) -> Result<(), MapError> {
    let is_of_rule = |naming: &&Naming<'_>| naming.rule == Some(Rule::Correlate(rule));
    let n_members = |namings: &Namings<'_>| namings.values().filter(is_of_rule).count();
    if namings.iter().map(n_members).sum::<usize>() > 1 {
        return Ok(());
    }
    let name = rule.name.text.clone();
    if rule.name.is_pattern() {
        return Err(rule.error(MapProblem::NothingInTwo { name }));
    }
    let that_have = namings.iter().zip(analyses).filter(|(namings, _)| n_members(namings) > 0);
    let analyses = that_have.map(|(_, analysis)| analysis.label.to_owned()).collect();
    Err(rule.error(MapProblem::Alone { name, analyses }))
}

/// Does with names of several workspaces that have no rule what the map says.
fn apply_same_names<'m>(
    map: &'m CorrelationMap,
    namings: &mut [Namings<'m>],
    analyses: &[Named<'_>],
) -> Result<(), MapError> {
    let error = |problem| MapError { problem, place: map.same_names_place.clone() };
    let mut owners: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, analysis) in analyses.iter().enumerate() {
        for name in analysis.uses.names().iter().filter(|name| !namings[i].contains_key(*name)) {
            owners.entry(name).or_default().push(i);
        }
    }
    owners.retain(|_, analyses| analyses.len() > 1);
    match map.same_names {
        SameNames::Error if !owners.is_empty() => {
            Err(error(MapProblem::SameNames { names: owners.keys().map(|&name| name.to_owned()).collect() }))
        }
        SameNames::Decorrelate => {
            let rule = Some(Rule::SameNames(map.same_names_place.as_ref()));
            for (name, owners) in owners {
                for i in owners {
                    let to = format!("{name}_{}", analyses[i].label);
                    namings[i].insert(name.to_owned(), Naming { to, rule });
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Refuses a new name that another parameter has or gets, unless one rule gives it to both.
fn require_free(namings: &[Namings<'_>], analyses: &[Named<'_>]) -> Result<(), MapError> {
    type Owner<'a, 'm> = (&'a str, &'a str, Option<&'a Naming<'m>>);
    let mut owners: HashMap<&str, Vec<Owner<'_, '_>>> = HashMap::new();
    for (namings, analysis) in namings.iter().zip(analyses) {
        for name in analysis.uses.names() {
            let naming = namings.get(name);
            let to = naming.map_or(&**name, |naming| &naming.to);
            owners.entry(to).or_default().push((analysis.label, name, naming));
        }
    }
    for (namings, analysis) in namings.iter().zip(analyses) {
        for from in analysis.uses.names() {
            let Some(naming) = namings.get(from) else { continue };
            let is_same_rule = |other: &Naming<'_>| match naming.rule {
                Some(Rule::Correlate(_)) => other.rule == naming.rule,
                _ => false,
            };
            let is_other = |(label, name, other): &&Owner<'_, '_>| {
                (*label, *name) != (analysis.label, from) && !other.is_some_and(is_same_rule)
            };
            let Some((label, name, other)) = owners[&*naming.to].iter().find(is_other) else { continue };
            let taken_by = match other.and_then(|other| other.rule) {
                Some(rule) => format!("`{name}` of `{label}` gets that name by `{}`", rule.pointer()),
                None => format!("the parameter `{name}` of `{label}` has that name"),
            };
            let (from, analysis, to) = (from.clone(), analysis.label.to_owned(), naming.to.clone());
            let problem = MapProblem::Taken { from, analysis, to, taken_by };
            return Err(naming.rule.map_or_else(
                || MapError { problem: problem.clone(), place: None },
                |rule| rule.error(problem.clone()),
            ));
        }
    }
    Ok(())
}
