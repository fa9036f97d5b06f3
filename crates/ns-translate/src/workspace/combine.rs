//! Combines two workspaces.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::difference::{WorkspaceDifference, difference};
use super::{
    Channel, Config, Measurement, NameScope, Named, Observation, Sample, Setting, WorkspaceDocument, WorkspaceError,
    WorkspaceJoin, WorkspacePart, WorkspaceSide,
};

/// What happens to a channel that both workspaces have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChannelJoin {
    /// The join decides about the whole channel.
    #[default]
    Whole,
    /// The channel gets the samples of both. Of two samples with one name that of the workspace
    /// which comes first in the join is kept.
    Merged,
}

/// The combination of two workspaces, with the decisions of the join.
#[derive(Debug, Clone, PartialEq)]
pub struct CombinedWorkspace {
    /// The workspace.
    pub document: WorkspaceDocument,
    /// The items that differ, of which one was kept.
    pub kept: Vec<JoinDecision>,
}

/// An item that both workspaces have and that differs, of which one was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinDecision {
    /// What it is.
    pub part: WorkspacePart,
    /// Its name.
    pub name: String,
    /// The workspace of the kept one.
    pub side: WorkspaceSide,
    /// The difference.
    pub difference: WorkspaceDifference,
}

/// Returns the workspace with the items of `left` and `right`. Their versions agree, because only
/// one version is supported.
///
/// # Errors
///
/// With [`WorkspaceJoin::None`], if both have a channel, an observation or a measurement of one
/// name; with [`WorkspaceJoin::Distinct`], a channel or an observation; with it and
/// [`WorkspaceJoin::Outer`], if the others differ (of measurements the settings and the parameter
/// of interest). If a workspace has a name twice, or for [`ChannelJoin::Merged`] with a join that
/// allows no common channel.
pub fn combine(
    left: WorkspaceDocument,
    right: WorkspaceDocument,
    join: WorkspaceJoin,
    channels: ChannelJoin,
) -> Result<CombinedWorkspace, WorkspaceError> {
    if channels == ChannelJoin::Merged && matches!(join, WorkspaceJoin::None | WorkspaceJoin::Distinct) {
        return Err(WorkspaceError::MergeWithoutJoin);
    }
    require_unique(&left, WorkspaceSide::Left)?;
    require_unique(&right, WorkspaceSide::Right)?;
    let version = left.version.clone();
    let mut joiner = Joiner { join, kept: Vec::new() };
    let merge: Option<Merge<Channel>> = (channels == ChannelJoin::Merged).then_some(merge_samples);
    let channels = joiner.join(left.channels, right.channels, "/channels", merge)?;
    let observations = joiner.join(left.observations, right.observations, "/observations", None)?;
    let merges = matches!(join, WorkspaceJoin::Outer | WorkspaceJoin::Distinct);
    let merge: Option<Merge<Measurement>> = merges.then_some(merge_settings);
    let measurements = joiner.join(left.measurements, right.measurements, "/measurements", merge)?;
    let document = WorkspaceDocument { channels, measurements, observations, version };
    Ok(CombinedWorkspace { document, kept: joiner.kept })
}

/// Adds to its first argument what the second has beyond it. Both have the same name and are at
/// these pointers in the first and the second workspace. The last argument records decisions.
type Merge<T> = fn(&mut T, T, &[String; 2], &mut Joiner) -> Result<(), WorkspaceError>;

struct Joiner {
    join: WorkspaceJoin,
    kept: Vec<JoinDecision>,
}

/// An item that can be joined.
trait Item: Named + PartialEq + Serialize {
    const PART: WorkspacePart;
}

impl Item for Channel {
    const PART: WorkspacePart = WorkspacePart::Channel;
}

impl Item for Sample {
    const PART: WorkspacePart = WorkspacePart::Sample;
}

impl Item for Observation {
    const PART: WorkspacePart = WorkspacePart::Observation;
}

impl Item for Measurement {
    const PART: WorkspacePart = WorkspacePart::Measurement;
}

impl Item for Setting {
    const PART: WorkspacePart = WorkspacePart::Setting;
}

impl Joiner {
    /// Returns the items of the preferred workspace in their order, then those that the other adds.
    fn join<T: Item>(
        &mut self,
        left: Vec<T>,
        right: Vec<T>,
        pointer: &str,
        merge: Option<Merge<T>>,
    ) -> Result<Vec<T>, WorkspaceError> {
        let is_measurement = T::PART == WorkspacePart::Measurement;
        if self.join == WorkspaceJoin::None || (self.join == WorkspaceJoin::Distinct && !is_measurement) {
            require_disjoint(&left, &right)?;
        }
        let (mut joined, others) = if self.side() == WorkspaceSide::Left { (left, right) } else { (right, left) };
        let index: HashMap<String, usize> =
            joined.iter().enumerate().map(|(i, item)| (item.name().to_owned(), i)).collect();
        for (i, other) in others.into_iter().enumerate() {
            let Some(&first) = index.get(other.name()) else {
                joined.push(other);
                continue;
            };
            let at = self.in_order([first, i].map(|i| format!("{pointer}/{i}")));
            match merge {
                Some(merge) => merge(&mut joined[first], other, &at, self)?,
                None => self.decide(&joined[first], &other, at)?,
            }
        }
        Ok(joined)
    }

    /// Returns the preferred workspace, which comes first.
    fn side(&self) -> WorkspaceSide {
        if self.join == WorkspaceJoin::RightOuter { WorkspaceSide::Right } else { WorkspaceSide::Left }
    }

    /// Returns the values of the preferred and the other workspace as those of the first and the
    /// second.
    fn in_order<V>(&self, [preferred, other]: [V; 2]) -> [V; 2] {
        if self.side() == WorkspaceSide::Left { [preferred, other] } else { [other, preferred] }
    }

    /// Records that `item` is kept and not `other`, or refuses it.
    fn decide<T: Item>(&mut self, item: &T, other: &T, at: [String; 2]) -> Result<(), WorkspaceError> {
        if item == other {
            return Ok(());
        }
        let [left, right] = self.in_order([item, other]);
        let (part, name, difference) = (T::PART, item.name().to_owned(), difference(left, right, at));
        if matches!(self.join, WorkspaceJoin::Outer | WorkspaceJoin::Distinct) {
            return Err(WorkspaceError::Differs { part, name, difference: Box::new(difference) });
        }
        self.kept.push(JoinDecision { part, name, side: self.side(), difference });
        Ok(())
    }
}

/// Adds the samples that the channel does not have. Those that it has are kept, for any join.
fn merge_samples(
    channel: &mut Channel,
    other: Channel,
    at: &[String; 2],
    joiner: &mut Joiner,
) -> Result<(), WorkspaceError> {
    let n_samples = channel.samples.len();
    for (i, sample) in other.samples.into_iter().enumerate() {
        let Some(first) = channel.samples[..n_samples].iter().position(|own| own.name == sample.name) else {
            channel.samples.push(sample);
            continue;
        };
        let own = &channel.samples[first];
        if *own != sample {
            let [first, i] = joiner.in_order([first, i]);
            let pointers = [format!("{}/samples/{first}", at[0]), format!("{}/samples/{i}", at[1])];
            let [left, right] = joiner.in_order([own, &sample]);
            let difference = difference(left, right, pointers);
            joiner.kept.push(JoinDecision {
                part: WorkspacePart::Sample,
                name: sample.name,
                side: joiner.side(),
                difference,
            });
        }
    }
    Ok(())
}

/// Adds the settings that the measurement does not have. Those that it has must be equal, and so
/// must the parameters of interest and the clipping.
fn merge_settings(
    measurement: &mut Measurement,
    other: Measurement,
    at: &[String; 2],
    joiner: &mut Joiner,
) -> Result<(), WorkspaceError> {
    let Config { clip, parameters, poi } = other.config;
    let [left, right] = at.each_ref().map(|pointer| format!("{pointer}/config"));
    if measurement.config.poi != poi {
        let at = [format!("{left}/poi"), format!("{right}/poi")];
        let difference = Box::new(difference(&measurement.config.poi, &poi, at));
        return Err(WorkspaceError::Differs { part: WorkspacePart::Measurement, name: other.name, difference });
    }
    if measurement.config.clip != clip {
        let at = [format!("{left}/clip"), format!("{right}/clip")];
        let difference = Box::new(difference(&measurement.config.clip, &clip, at));
        return Err(WorkspaceError::Differs { part: WorkspacePart::Measurement, name: other.name, difference });
    }
    let own = &mut measurement.config.parameters;
    let n_own = own.len();
    for (i, setting) in parameters.into_iter().enumerate() {
        match own[..n_own].iter().position(|own| own.name == setting.name) {
            None => own.push(setting),
            Some(first) => {
                let at = [format!("{left}/parameters/{first}"), format!("{right}/parameters/{i}")];
                joiner.decide(&own[first], &setting, at)?;
            }
        }
    }
    Ok(())
}

fn require_disjoint<T: Item>(left: &[T], right: &[T]) -> Result<(), WorkspaceError> {
    let in_left: HashSet<&str> = left.iter().map(Named::name).collect();
    let mut names: Vec<String> =
        right.iter().map(Named::name).filter(|name| in_left.contains(name)).map(str::to_owned).collect();
    names.sort();
    if names.is_empty() { Ok(()) } else { Err(WorkspaceError::InBoth { part: T::PART, names }) }
}

/// Refuses a workspace in which two items have one name: it cannot be joined by names.
fn require_unique(document: &WorkspaceDocument, side: WorkspaceSide) -> Result<(), WorkspaceError> {
    match duplicate(document) {
        None => Ok(()),
        Some((part, name, scope)) => Err(WorkspaceError::Twice { side, part, name, scope }),
    }
}

/// Returns the first name that a workspace has twice, with what it names and where.
pub(super) fn duplicate(document: &WorkspaceDocument) -> Option<(WorkspacePart, String, NameScope)> {
    let of_channel = |channel: &Channel| twice(&channel.samples, || NameScope::Channel(channel.name.clone()));
    let of_measurement = |measurement: &Measurement| {
        twice(&measurement.config.parameters, || NameScope::Measurement(measurement.name.clone()))
    };
    twice(&document.channels, || NameScope::Workspace)
        .or_else(|| twice(&document.observations, || NameScope::Workspace))
        .or_else(|| twice(&document.measurements, || NameScope::Workspace))
        .or_else(|| document.channels.iter().find_map(of_channel))
        .or_else(|| document.measurements.iter().find_map(of_measurement))
}

fn twice<T: Item>(items: &[T], scope: impl Fn() -> NameScope) -> Option<(WorkspacePart, String, NameScope)> {
    repeated_name(items.iter().map(Named::name)).map(|name| (T::PART, name.to_owned(), scope()))
}

/// Returns the first of `names` that was there before.
pub(super) fn repeated_name<'n>(mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut seen = HashSet::new();
    names.find(|name| !seen.insert(*name))
}
