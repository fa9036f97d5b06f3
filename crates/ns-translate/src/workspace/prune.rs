//! Removes parts of a workspace by name or by type.

use std::collections::{BTreeSet, HashSet};

use ns_core::pattern::{is_pattern, matches};
use ns_core::spec::ModifierKind;

use super::{Measurement, Modifier, WorkspaceDocument, WorkspaceError, WorkspacePart};

/// The parts to remove: names, or patterns such as `JES_*` for all names that match. A name that
/// the workspace has is not a pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneRequest {
    /// Channels, with their observations.
    pub channels: Vec<String>,
    /// Samples, in every channel.
    pub samples: Vec<String>,
    /// Modifiers, in every sample, and the settings of measurements for their parameters.
    pub modifiers: Vec<String>,
    /// Modifiers of these types, in every sample.
    pub modifier_types: Vec<ModifierKind>,
    /// The names of the measurements.
    pub measurements: Vec<String>,
}

/// The rest of a workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct PrunedWorkspace {
    /// The workspace.
    pub document: WorkspaceDocument,
    /// Measurements with a parameter of interest that was removed, one entry for each; they keep
    /// the name of the first, as in pyhf.
    pub orphans: Vec<OrphanedMeasurement>,
}

/// A measurement with a parameter of interest that no modifier uses any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanedMeasurement {
    /// The measurement.
    pub measurement: String,
    /// The parameter of interest.
    pub poi: String,
}

/// Returns the workspace without the parts that `wanted` names.
///
/// # Errors
///
/// If the workspace does not have a name or a type, or nothing would be left where the schema
/// demands at least one entry.
pub fn prune(mut document: WorkspaceDocument, wanted: &PruneRequest) -> Result<PrunedWorkspace, WorkspaceError> {
    let wanted = &resolved(&document, wanted)?;
    let had_poi: HashSet<String> = document.names(WorkspacePart::Modifier).into_iter().map(str::to_owned).collect();
    // Settings of removed modifiers, which say what is of interest, are removed with them.
    let pois = |measurement: &Measurement| measurement.config.pois().map(str::to_owned).collect::<Vec<_>>();
    let had: Vec<(String, Vec<String>)> = document.measurements.iter().map(|m| (m.name.clone(), pois(m))).collect();
    remove(&mut document, wanted);
    require_filled(&document)?;
    require_no_formula(&document, &wanted.modifiers)?;
    let used: HashSet<&str> = document.names(WorkspacePart::Modifier).into_iter().collect();
    let orphan = |poi: &String| had_poi.contains(poi) && !used.contains(poi.as_str());
    let left = had.iter().filter(|(name, _)| !wanted.measurements.contains(name));
    let orphans = left.flat_map(|(measurement, pois)| {
        let gone = pois.iter().filter(|poi| orphan(poi));
        gone.map(|poi| OrphanedMeasurement { measurement: measurement.clone(), poi: poi.clone() })
    });
    let orphans = orphans.collect();
    Ok(PrunedWorkspace { document, orphans })
}

/// Returns the request with names in place of patterns.
fn resolved(document: &WorkspaceDocument, wanted: &PruneRequest) -> Result<PruneRequest, WorkspaceError> {
    let kinds: HashSet<ModifierKind> = document.modifiers().map(|modifier| modifier.kind).collect();
    if let Some(&kind) = wanted.modifier_types.iter().find(|kind| !kinds.contains(kind)) {
        let known = ModifierKind::ALL.into_iter().filter(|kind| kinds.contains(kind)).collect();
        return Err(WorkspaceError::NoSuchType { kind, known });
    }
    let modifiers = document.matching(WorkspacePart::Modifier, &wanted.modifiers)?;
    let samples = document.matching(WorkspacePart::Sample, &wanted.samples)?;
    let channels = document.matching(WorkspacePart::Channel, &wanted.channels)?;
    let measurements = document.matching(WorkspacePart::Measurement, &wanted.measurements)?;
    Ok(PruneRequest { channels, samples, modifiers, measurements, modifier_types: wanted.modifier_types.clone() })
}

fn remove(document: &mut WorkspaceDocument, wanted: &PruneRequest) {
    document.channels.retain(|channel| !wanted.channels.contains(&channel.name));
    document.observations.retain(|observation| !wanted.channels.contains(&observation.name));
    for channel in &mut document.channels {
        channel.samples.retain(|sample| !wanted.samples.contains(&sample.name));
        for sample in &mut channel.samples {
            sample.modifiers.retain(|modifier| {
                !wanted.modifiers.contains(&modifier.name) && !wanted.modifier_types.contains(&modifier.kind)
            });
        }
    }
    document.measurements.retain(|measurement| !wanted.measurements.contains(&measurement.name));
    for measurement in &mut document.measurements {
        measurement.config.parameters.retain(|setting| !wanted.modifiers.contains(&setting.name));
    }
}

/// Refuses a document with an empty list where the schema demands an entry.
fn require_filled(document: &WorkspaceDocument) -> Result<(), WorkspaceError> {
    let empty = |part, channel| Err(WorkspaceError::Emptied { part, channel });
    if document.channels.is_empty() {
        return empty(WorkspacePart::Channel, None);
    }
    if document.observations.is_empty() {
        return empty(WorkspacePart::Observation, None);
    }
    if document.measurements.is_empty() {
        return empty(WorkspacePart::Measurement, None);
    }
    match document.channels.iter().find(|channel| channel.samples.is_empty()) {
        None => Ok(()),
        Some(channel) => empty(WorkspacePart::Sample, Some(channel.name.clone())),
    }
}

/// Refuses to remove parameters that formulas name.
fn require_no_formula(document: &WorkspaceDocument, removed: &[String]) -> Result<(), WorkspaceError> {
    let named = |modifier: &Modifier| removed.iter().find(|name| modifier.parameters.contains(name)).cloned();
    match document.modifiers().find_map(|modifier| Some((named(modifier)?, modifier.name.clone()))) {
        None => Ok(()),
        Some((parameter, formula)) => Err(WorkspaceError::InFormula { parameter, formula }),
    }
}

impl WorkspaceDocument {
    /// Returns the names of `part` that `wanted` has, or that match its patterns.
    fn matching(&self, part: WorkspacePart, wanted: &[String]) -> Result<Vec<String>, WorkspaceError> {
        let known: BTreeSet<&str> = self.names(part).into_iter().collect();
        let mut found = Vec::new();
        for name in wanted {
            let is_match = |known: &&&str| is_pattern(name) && matches(name, known);
            let before = found.len();
            if !known.contains(name.as_str()) {
                found.extend(known.iter().filter(is_match).map(|&name| name.to_owned()));
            }
            if found.len() == before {
                self.require(part, [name])?;
                found.push(name.clone());
            }
        }
        Ok(found)
    }

    /// Refuses names that no `part` of the document has.
    pub(super) fn require<'n>(
        &self,
        part: WorkspacePart,
        names: impl IntoIterator<Item = &'n String>,
    ) -> Result<(), WorkspaceError> {
        let known: HashSet<&str> = self.names(part).into_iter().collect();
        match names.into_iter().find(|name| !known.contains(name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let mut known: Vec<String> = known.into_iter().map(str::to_owned).collect();
                known.sort();
                Err(WorkspaceError::Unknown { part, name: name.clone(), known })
            }
        }
    }
}
