//! Renames parts of a workspace.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use ns_core::spec::ModifierKind;

use super::{NameScope, Named, WorkspaceDocument, WorkspaceError, WorkspacePart};

/// An old name and a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewName {
    /// The name in the workspace.
    pub from: String,
    /// The name that replaces it.
    pub to: String,
}

/// The parts to rename. All names are replaced at once, so two of them may be swapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenameRequest {
    /// Channels, with their observations.
    pub channels: Vec<NewName>,
    /// Samples, in every channel.
    pub samples: Vec<NewName>,
    /// Modifiers, in every sample, with parameters of interest, the settings of measurements for
    /// their parameters, and the names in formulas.
    pub modifiers: Vec<NewName>,
    /// New names of measurements.
    pub measurements: Vec<NewName>,
}

type Names<'r> = HashMap<&'r str, &'r str>;

/// Returns the workspace with the new names. Two modifiers may get one name, which correlates
/// systematics.
///
/// # Errors
///
/// If the workspace does not have a name, a name has two new ones, a new name would not be unique,
/// or a `lumi` modifier would have another name than `lumi`.
pub fn rename(mut document: WorkspaceDocument, wanted: &RenameRequest) -> Result<WorkspaceDocument, WorkspaceError> {
    // In the order of pyhf, so that of two mistakes the same one is named.
    let modifiers = names(&document, WorkspacePart::Modifier, &wanted.modifiers)?;
    let samples = names(&document, WorkspacePart::Sample, &wanted.samples)?;
    let channels = names(&document, WorkspacePart::Channel, &wanted.channels)?;
    let measurements = names(&document, WorkspacePart::Measurement, &wanted.measurements)?;
    keep_formulas(&document, &modifiers)?;

    for channel in &mut document.channels {
        for sample in &mut channel.samples {
            for modifier in &mut sample.modifiers {
                let new = new_name(&modifiers, &modifier.name);
                if modifier.kind == ModifierKind::Lumi && new != "lumi" {
                    return Err(WorkspaceError::LumiRenamed { to: new.to_owned() });
                }
            }
            for modifier in &mut sample.modifiers {
                modifier.rename_parameters(|name| renamed_element(&modifiers, name));
            }
            let scope = || NameScope::Sample { channel: channel.name.clone(), sample: sample.name.clone() };
            each(&mut sample.modifiers, &modifiers, |m| (&mut m.name, m.kind))
                .map_err(taken(WorkspacePart::Modifier, scope))?;
        }
        let scope = || NameScope::Channel(channel.name.clone());
        each(&mut channel.samples, &samples, |s| (&mut s.name, ())).map_err(taken(WorkspacePart::Sample, scope))?;
    }
    for measurement in &mut document.measurements {
        let config = &mut measurement.config;
        let scope = || NameScope::Measurement(measurement.name.clone());
        each(&mut config.parameters, &modifiers, |s| (&mut s.name, ()))
            .map_err(taken(WorkspacePart::Setting, scope))?;
        config.poi = new_name(&modifiers, &config.poi).to_owned();
    }
    let scope = || NameScope::Workspace;
    each(&mut document.channels, &channels, |c| (&mut c.name, ())).map_err(taken(WorkspacePart::Channel, scope))?;
    each(&mut document.observations, &channels, |o| (&mut o.name, ()))
        .map_err(taken(WorkspacePart::Observation, scope))?;
    each(&mut document.measurements, &measurements, |m| (&mut m.name, ()))
        .map_err(taken(WorkspacePart::Measurement, scope))?;
    Ok(document)
}

fn names<'r>(
    document: &WorkspaceDocument,
    part: WorkspacePart,
    wanted: &'r [NewName],
) -> Result<Names<'r>, WorkspaceError> {
    document.require(part, wanted.iter().map(|name| &name.from))?;
    let mut names = Names::new();
    for NewName { from, to } in wanted {
        match names.insert(from.as_str(), to.as_str()) {
            Some(other) if other != to => {
                let to = [other.to_owned(), to.clone()];
                return Err(WorkspaceError::RenamedTwice { part, name: from.clone(), to });
            }
            _ => {}
        }
    }
    Ok(names)
}

/// Checks that every formula keeps its meaning: that no new name is that of a formula, of what the
/// formulas name beside parameters (`pi`), or, for a formula, of anything.
fn keep_formulas(document: &WorkspaceDocument, names: &Names<'_>) -> Result<(), WorkspaceError> {
    let modifiers = || document.channels.iter().flat_map(|c| &c.samples).flat_map(|s| &s.modifiers);
    let formulas: HashSet<&str> =
        modifiers().filter(|m| m.kind == ModifierKind::Formula).map(|m| m.name.as_str()).collect();
    let mut parameters: HashSet<&str> =
        modifiers().filter(|m| m.kind != ModifierKind::Formula).map(|m| m.name.as_str()).collect();
    parameters.extend(document.measurements.iter().flat_map(|m| &m.config.parameters).map(|s| s.name.as_str()));
    let named: HashSet<&str> = modifiers().flat_map(|m| &m.parameters).map(String::as_str).collect();
    for (&from, &to) in names.iter().filter(|(from, to)| from != to && !names.contains_key(*to)) {
        let is_other = named.contains(to) && !parameters.contains(to);
        let is_taken = formulas.contains(from) && (named.contains(to) || parameters.contains(to));
        if is_other || is_taken || formulas.contains(to) {
            return Err(WorkspaceError::NamedInFormula { name: from.to_owned(), to: to.to_owned() });
        }
    }
    Ok(())
}

/// Returns the new name of a parameter, or of the element of a vector (`gamma[3]`).
fn renamed_element(names: &Names<'_>, old: &str) -> String {
    match (names.get(old), old.split_once('[')) {
        (None, Some((set, index))) => format!("{}[{index}", new_name(names, set)),
        (new, _) => new.copied().unwrap_or(old).to_owned(),
    }
}

fn new_name<'n>(names: &Names<'n>, old: &'n str) -> &'n str {
    names.get(old).copied().unwrap_or(old)
}

/// Renames every item of a list. `identity` returns the name of an item, and a key in which two
/// items of one name must differ.
///
/// A new name that another item has or gets is an error.
fn each<T: Named, K: Hash + Eq>(
    items: &mut [T],
    names: &Names<'_>,
    identity: impl Fn(&mut T) -> (&mut String, K),
) -> Result<(), NewName> {
    let mut seen: HashMap<(String, K), String> = HashMap::new();
    for item in items {
        let (name, kind) = identity(item);
        let new = new_name(names, name).to_owned();
        let old = std::mem::replace(name, new.clone());
        let other = seen.insert((new.clone(), kind), old.clone());
        // Two items that had the same name before are accepted.
        match other {
            Some(other) if old == new && other != new => return Err(NewName { from: other, to: new }),
            Some(_) if old != new => return Err(NewName { from: old, to: new }),
            _ => {}
        }
    }
    Ok(())
}

fn taken(part: WorkspacePart, scope: impl Fn() -> NameScope) -> impl Fn(NewName) -> WorkspaceError {
    move |NewName { from, to }| WorkspaceError::Taken { part, name: from, to, scope: scope() }
}
