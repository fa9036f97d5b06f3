//! The lists of an HS3 document, and their entries by name.

use std::collections::HashMap;

use super::Hs3Error;
use super::kept::{Address, KeptKeys};
use crate::json::{JsonCursor, JsonError};
use crate::place::DocumentPlace;

pub(super) type Read<T> = Result<T, Hs3Error>;

/// The lists of a document.
const LISTS: [&str; 7] =
    ["distributions", "functions", "data", "likelihoods", "domains", "parameter_points", "analyses"];

/// The keys of a document.
const KEYS: [&str; 9] = [
    "distributions",
    "functions",
    "data",
    "likelihoods",
    "domains",
    "parameter_points",
    "analyses",
    "metadata",
    "misc",
];

/// Cursors at the lists of a document, in the order of [`LISTS`].
pub(super) struct Sections<'c> {
    lists: [Option<JsonCursor<'c>>; 7],
    /// The programs that wrote the document.
    pub(super) packages: Vec<String>,
}

impl<'c> Sections<'c> {
    /// Reads the top level of a document.
    pub(super) fn read(root: &'c JsonCursor<'c>, kept: &mut KeptKeys) -> Read<Self> {
        let object = kept.object(root, &KEYS, Address::TOP)?;
        if let Some(misc) = object.get("misc") {
            kept.keep_misc(&misc, Address::TOP.key("misc"))?;
        }
        let metadata = object.need("metadata")?;
        let packages = read_metadata(&metadata, kept)?;
        Ok(Self { lists: LISTS.map(|key| object.get(key)), packages })
    }
}

fn read_metadata(cursor: &JsonCursor<'_>, kept: &mut KeptKeys) -> Read<Vec<String>> {
    let address = Address::TOP.key("metadata");
    let known = ["hs3_version", "packages", "authors", "publications", "description"];
    let object = kept.object(cursor, &known, address)?;
    let version = object.need("hs3_version")?;
    let found = version.text()?;
    if found != "0.2" && !found.starts_with("0.2.") {
        return Err(Hs3Error::Version { found: found.to_owned(), place: version.place() });
    }
    for key in ["authors", "publications", "description"] {
        kept.keep(&object, key, address)?;
    }
    let Some(packages) = object.get("packages") else { return Ok(Vec::new()) };
    packages.list()?.map(|package| Ok(package.open_object()?.need("name")?.text()?.to_owned())).collect()
}

/// A document: the entries of its lists.
pub(super) struct Document<'d> {
    pub(super) distributions: Entries<'d>,
    pub(super) functions: Entries<'d>,
    pub(super) data: Entries<'d>,
    pub(super) likelihoods: Entries<'d>,
    pub(super) domains: Entries<'d>,
    pub(super) points: Entries<'d>,
    pub(super) analyses: Entries<'d>,
    /// The programs that wrote it.
    pub(super) packages: &'d [String],
}

impl<'d> Document<'d> {
    /// Finds the names of all entries.
    pub(super) fn new(sections: &'d Sections<'d>) -> Read<Self> {
        let list = |index: usize, what| Entries::new(sections.lists[index].as_ref(), what);
        Ok(Self {
            distributions: list(0, "distribution")?,
            functions: list(1, "function")?,
            data: list(2, "data set")?,
            likelihoods: list(3, "likelihood")?,
            domains: list(4, "domain")?,
            points: list(5, "parameter point")?,
            analyses: list(6, "analysis")?,
            packages: &sections.packages,
        })
    }
}

/// The entries of a list, each with a name of its own.
pub(super) struct Entries<'d> {
    what: &'static str,
    entries: Vec<(String, JsonCursor<'d>)>,
    index: HashMap<String, usize>,
}

impl<'d> Entries<'d> {
    fn new(list: Option<&'d JsonCursor<'d>>, what: &'static str) -> Read<Self> {
        let mut entries = Vec::new();
        let mut index = HashMap::new();
        for cursor in list.filter(|list| !list.is_null()).map(JsonCursor::list).transpose()?.into_iter().flatten() {
            let name = cursor.open_object()?.need("name")?.text()?.to_owned();
            if index.insert(name.clone(), entries.len()).is_some() {
                return Err(Hs3Error::DuplicateName { name, place: cursor.place() });
            }
            entries.push((name, cursor));
        }
        Ok(Self { what, entries, index })
    }

    /// Returns the entry called `name`.
    pub(super) fn get(&self, name: &str) -> Option<&JsonCursor<'d>> {
        self.index.get(name).map(|&index| &self.entries[index].1)
    }

    /// Returns the entry that the text at `reference` names.
    pub(super) fn named_at(&self, reference: &JsonCursor<'_>) -> Read<&JsonCursor<'d>> {
        let name = reference.text()?;
        self.get(name).ok_or_else(|| self.unknown(name, reference.place()))
    }

    fn unknown(&self, name: &str, place: DocumentPlace) -> Hs3Error {
        let known = self.entries.iter().map(|(name, _)| name.clone()).collect();
        Hs3Error::UnknownName { what: self.what, name: name.to_owned(), known, place }
    }

    /// Returns names and entries in document order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &JsonCursor<'d>)> {
        self.entries.iter().map(|(name, cursor)| (name.as_str(), cursor))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Returns the texts of a list.
pub(super) fn texts(cursor: &JsonCursor<'_>) -> Result<Vec<String>, JsonError> {
    cursor.list()?.map(|item| item.text().map(str::to_owned)).collect()
}

/// Refuses a list of another length than `expected`.
pub(super) fn require_length(cursor: &JsonCursor<'_>, what: &'static str, expected: usize) -> Read<()> {
    match cursor.list()?.len() {
        found if found != expected => Err(Hs3Error::Length { what, expected, found, place: cursor.place() }),
        _ => Ok(()),
    }
}
