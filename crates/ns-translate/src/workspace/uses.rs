//! Where a workspace uses each parameter: channels, samples and types of modifiers.

use std::collections::HashMap;

use ns_core::spec::ModifierKind;

use super::{Named, WorkspaceDocument};

/// Where a parameter is used. Each list is in document order, without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) channels: Vec<String>,
    pub(super) samples: Vec<String>,
    pub(super) kinds: Vec<ModifierKind>,
}

/// The parameters of a workspace, in order of their first appearance: those of modifiers, then
/// those that only measurements name.
#[derive(Debug, Clone, Default)]
pub(super) struct Uses {
    names: Vec<String>,
    by_name: HashMap<String, Use>,
}

impl Uses {
    pub(super) fn of(document: &WorkspaceDocument) -> Self {
        let mut uses = Self::default();
        for channel in &document.channels {
            for sample in &channel.samples {
                for modifier in &sample.modifiers {
                    let own = (!modifier.kind.has_formula()).then_some(&modifier.name);
                    for name in own.into_iter().chain(&modifier.parameters) {
                        let found = uses.entry(name);
                        push(&mut found.channels, &channel.name);
                        push(&mut found.samples, &sample.name);
                        push(&mut found.kinds, &modifier.kind);
                    }
                }
            }
        }
        for config in document.measurements.iter().map(|measurement| &measurement.config) {
            for name in config.parameters.iter().map(Named::name).chain([&*config.poi]) {
                // A measurement without a parameter of interest has an empty name.
                if !name.is_empty() {
                    uses.entry(name);
                }
            }
        }
        uses
    }

    fn entry(&mut self, name: &str) -> &mut Use {
        if !self.by_name.contains_key(name) {
            self.names.push(name.to_owned());
        }
        self.by_name.entry(name.to_owned()).or_default()
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn get(&self, name: &str) -> Option<&Use> {
        self.by_name.get(name)
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }
}

/// Appends `item` unless it is there.
pub(super) fn push<T: PartialEq + Clone>(items: &mut Vec<T>, item: &T) {
    if !items.contains(item) {
        items.push(item.clone());
    }
}
