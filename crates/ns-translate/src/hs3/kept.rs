//! Keys that the standard does not have: they are kept with their place, and written back.
//!
//! Entries of lists are found by name, because a document that is written has another order than
//! the one that was read.

use std::collections::HashSet;

use serde_json::Value;

use super::Hs3Error;
use crate::json::{JsonCursor, JsonObject, to_value};

/// The number of unknown keys that warnings name.
const NAMED: usize = 10;

/// A step from an object of a document to one below it.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(&'static str),
    /// The entry of a list with this name, and of this type if entries of several types may have
    /// the same name.
    Entry {
        name: String,
        kind: Option<String>,
    },
}

/// The address of the object that is being read.
#[derive(Clone, Copy)]
pub(super) struct Address<'a> {
    parent: Option<&'a Address<'a>>,
    step: AddressStep<'a>,
}

#[derive(Clone, Copy)]
enum AddressStep<'a> {
    Top,
    Key(&'static str),
    Entry { name: &'a str, kind: Option<&'a str> },
}

impl<'a> Address<'a> {
    /// The whole document.
    pub(super) const TOP: Address<'static> = Address { parent: None, step: AddressStep::Top };

    /// Returns the address of the value of `key`.
    pub(super) fn key(&'a self, key: &'static str) -> Self {
        Self { parent: Some(self), step: AddressStep::Key(key) }
    }

    /// Returns the address of the entry called `name`.
    pub(super) fn entry(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: AddressStep::Entry { name, kind: None } }
    }

    /// Returns the address of the entry called `name` of this type.
    pub(super) fn entry_of(&'a self, name: &'a str, kind: &'a str) -> Self {
        Self { parent: Some(self), step: AddressStep::Entry { name, kind: Some(kind) } }
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = self.parent.map(Address::steps).unwrap_or_default();
        match self.step {
            AddressStep::Top => {}
            AddressStep::Key(key) => steps.push(Step::Key(key)),
            AddressStep::Entry { name, kind } => {
                steps.push(Step::Entry { name: name.to_owned(), kind: kind.map(str::to_owned) });
            }
        }
        steps
    }
}

/// One key with its value.
#[derive(Debug, Clone, PartialEq)]
struct KeptKey {
    steps: Vec<Step>,
    key: String,
    value: Value,
    /// Where it was.
    pointer: String,
    concern: Concern,
}

/// Whom a key concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Concern {
    /// No one: the standard does not have it.
    Unknown,
    /// The reader of the document: the standard has it, and a workspace has not.
    Known,
    /// A program: what it needs is written anew.
    Internal,
}

/// The keys of `misc` that are written anew.
const INTERNAL: [&str; 2] = ["ROOT_internal", super::origin::KEY];

/// What a document has and a workspace has not: keys that the standard does not have, the binning,
/// and what is for people and other programs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeptKeys {
    keys: Vec<KeptKey>,
    /// Where they were.
    pointers: HashSet<String>,
}

impl KeptKeys {
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the JSON pointers of all of them.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().filter(|kept| kept.concern != Concern::Internal).map(|kept| kept.pointer.as_str())
    }

    /// Returns the object at `cursor`; of its keys, those that are not in `known` are kept.
    pub(super) fn object<'k>(
        &mut self,
        cursor: &'k JsonCursor<'k>,
        known: &[&str],
        address: Address<'_>,
    ) -> Result<JsonObject<'k>, Hs3Error> {
        let object = cursor.open_object()?;
        for (member, value) in cursor.members()?.filter(|(member, _)| !known.contains(&&*member.key)) {
            self.push(&value, &member.key, address, Concern::Unknown)?;
        }
        Ok(object)
    }

    /// Keeps a key of the standard of which a workspace knows nothing.
    pub(super) fn keep(&mut self, object: &JsonObject<'_>, key: &str, address: Address<'_>) -> Result<(), Hs3Error> {
        object.get(key).map_or(Ok(()), |value| self.push(&value, key, address, Concern::Known))
    }

    /// Keeps the entries of `misc`.
    pub(super) fn keep_misc(&mut self, misc: &JsonCursor<'_>, address: Address<'_>) -> Result<(), Hs3Error> {
        misc.open_object()?;
        for (member, value) in misc.members()? {
            let concern = if INTERNAL.contains(&&*member.key) { Concern::Internal } else { Concern::Known };
            self.push(&value, &member.key, address, concern)?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        value: &JsonCursor<'_>,
        key: &str,
        address: Address<'_>,
        concern: Concern,
    ) -> Result<(), Hs3Error> {
        let (steps, key, pointer) = (address.steps(), key.to_owned(), value.pointer());
        // A distribution that several modifiers name is read for each of them.
        if !self.pointers.insert(pointer.clone()) {
            return Ok(());
        }
        self.keys.push(KeptKey { steps, key, value: to_value(value)?, pointer, concern });
        Ok(())
    }

    /// Returns what there is to say about unknown keys.
    pub(super) fn warnings(&self) -> Vec<String> {
        let unknown: Vec<&KeptKey> = self.keys.iter().filter(|kept| kept.concern == Concern::Unknown).collect();
        let shown = unknown.iter().take(NAMED);
        let mut warnings: Vec<String> =
            shown.map(|kept| format!("the key at `{}` is unknown and has no effect", kept.pointer)).collect();
        if unknown.len() > NAMED {
            warnings.push(format!("{} more keys are unknown and have no effect", unknown.len() - NAMED));
        }
        warnings
    }

    /// Puts the keys into `document`, and returns the pointers of those that have no place there.
    pub(super) fn write_into(&self, document: &mut Value) -> Vec<&str> {
        self.keys.iter().filter(|kept| !kept.write_into(document)).map(|kept| kept.pointer.as_str()).collect()
    }
}

impl KeptKey {
    fn write_into(&self, document: &mut Value) -> bool {
        let Some(Value::Object(object)) = descend(document, &self.steps) else { return false };
        match object.get_mut(&self.key) {
            // What was generated for other programs is put beside what they had written.
            Some(Value::Object(generated)) => {
                if let Value::Object(kept) = &self.value {
                    let new = kept.iter().filter(|(key, _)| !generated.contains_key(*key));
                    let new: Vec<_> = new.map(|(key, value)| (key.clone(), value.clone())).collect();
                    generated.extend(new);
                }
            }
            _ => {
                object.insert(self.key.clone(), self.value.clone());
            }
        }
        true
    }
}

fn descend<'v>(value: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    let below = match step {
        Step::Key(key) => value.get_mut(*key)?,
        Step::Entry { name, kind } => value
            .as_array_mut()?
            .iter_mut()
            .find(|entry| is_named(entry, name) && kind.as_deref().is_none_or(|kind| entry["type"] == kind))?,
    };
    descend(below, rest)
}

/// Distributions that are written are called `model_SR`, as ROOT calls them.
fn is_named(entry: &Value, name: &str) -> bool {
    entry["name"].as_str().is_some_and(|written| written == name || written.strip_prefix("model_") == Some(name))
}
