//! What the verbs of `patchset` say to people.

use ns_translate::patchset::{PatchEntry, PatchSet};

use super::table::{Align, table};
use super::talk::harmless;

/// Description, labels, and a table of the patches.
pub(crate) fn summary(set: &PatchSet) -> String {
    let metadata = set.metadata();
    let columns: Vec<(&str, Align)> = std::iter::once(("patch", Align::Left))
        .chain(metadata.labels.iter().map(|label| (label.as_str(), Align::Right)))
        .collect();
    let row = |entry: &PatchEntry| {
        let values = entry.values.iter().map(|value| harmless(&value.to_string()));
        std::iter::once(entry.name.clone()).chain(values).collect()
    };
    let rows: Vec<Vec<String>> = set.patches().iter().map(row).collect();
    format!("{}\n{} patches\n\n{}", harmless(&metadata.description), rows.len(), table(&columns, &rows))
}

/// Whether the digests are those of the workspace, in one line.
pub(crate) fn verdict(verified: bool) -> &'static str {
    if verified {
        "all good: the patch set was made for this workspace"
    } else {
        "the patch set was made for another workspace: the digests differ"
    }
}
