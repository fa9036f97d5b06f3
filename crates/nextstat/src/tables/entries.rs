//! The results in a document: itself, or one for each patch, parameter of interest and value.

use super::document::Place;
use super::{Cell, Column, ColumnKind, TableError};
use serde_json::Value;

/// A result with what tells it from the others of its document.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    /// Label and value: the name of a patch, its values, a fixed parameter.
    pub(super) labels: Vec<(String, Cell)>,
    /// The result; `None` where there is none.
    pub(super) result: Option<Place<'a>>,
}

/// The results of a document, of one kind.
#[derive(Debug, Clone)]
pub(super) struct Entries<'a> {
    /// The kind, by the name of its schema.
    pub(super) kind: &'static str,
    /// The results.
    pub(super) all: Vec<Entry<'a>>,
    /// Why some patches have no result.
    pub(super) notes: Vec<String>,
}

/// The kinds of results that are told by a key. A result has several of them, so the first in this
/// list decides.
const KINDS: [(&str, &str); 16] = [
    ("left_out", "exclusion"),
    ("max_failed_fraction", "coverage"),
    ("points", "region"),
    ("ranking", "ranking"),
    ("tail_probabilities", "hypotest-toys"),
    ("signal_converged", "signal-scan"),
    ("CLs_obs", "hypotest"),
    ("Z_obs", "significance"),
    ("tested", "limit"),
    ("mle_parameters", "fit"),
    ("delta_nll", "scan"),
    ("contours", "contours"),
    ("constraint_deviance", "gof"),
    ("unmatched", "comparison"),
    ("thrown_at", "toys"),
    ("data_sets", "fits"),
];

impl<'a> Entries<'a> {
    /// Reads the results in `document`; `None` if they are of a kind without tables.
    pub(super) fn read(document: &Place<'a>) -> Result<Option<Self>, TableError> {
        let (mut all, mut notes) = (Vec::new(), Vec::new());
        collect(document, &[], &mut all, &mut notes)?;
        let results = || all.iter().filter_map(|entry| entry.result.as_ref());
        let Some(kind) = results().next().and_then(kind_of) else { return Ok(None) };
        if let Some(other) = results().find(|result| kind_of(result) != Some(kind)) {
            return Err(other.bad(format!("a result of `{kind}`, as the first")));
        }
        Ok(Some(Self { kind, all, notes }))
    }

    /// Returns the result, if the document has one only.
    pub(super) fn only(&self) -> Option<Place<'a>> {
        match self.all.as_slice() {
            [entry] if entry.labels.is_empty() => entry.result.clone(),
            _ => None,
        }
    }

    /// Returns the names of the labels, in the order in which they first occur.
    pub(super) fn labels(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.all.iter().flat_map(|entry| &entry.labels) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the columns of the labels.
    pub(super) fn columns(&self) -> Vec<Column> {
        let column = |name: &&str| {
            let mut cells = self.all.iter().map(|entry| entry.label(name));
            let is_number = cells.all(|cell| matches!(cell, Cell::Number(_) | Cell::Empty));
            Column::new(name, name, if is_number { ColumnKind::Number(8) } else { ColumnKind::Text })
        };
        self.labels().iter().map(column).collect()
    }

    /// Returns the cells of the labels of `entry`.
    pub(super) fn cells(&self, entry: &Entry<'_>, columns: &[Column]) -> Vec<Cell> {
        let cell = |column: &Column| match (entry.label(&column.name), column.kind) {
            // A label with numbers and names has names.
            (Cell::Number(number), ColumnKind::Text) => Cell::Text(number.to_string()),
            (cell, _) => cell,
        };
        columns.iter().take(self.labels().len()).map(cell).collect()
    }
}

impl Entry<'_> {
    fn label(&self, name: &str) -> Cell {
        self.labels.iter().find(|(label, _)| label == name).map_or(Cell::Empty, |(_, cell)| cell.clone())
    }
}

/// Returns the kind of a result.
fn kind_of(result: &Place<'_>) -> Option<&'static str> {
    KINDS.iter().find(|(key, _)| result.value.get(key).is_some()).map(|(_, kind)| *kind)
}

/// Adds the results in `place`, which `labels` tell from others.
fn collect<'a>(
    place: &Place<'a>,
    labels: &[(String, Cell)],
    all: &mut Vec<Entry<'a>>,
    notes: &mut Vec<String>,
) -> Result<(), TableError> {
    if let Some(patches) = place.get("patches") {
        for patch in patches.items()? {
            let labels = [labels, &labels_of(&patch)?].concat();
            match patch.get("result") {
                Some(result) => collect(&result, &labels, all, notes)?,
                None => {
                    let reason = patch.get("error").map_or(Ok("it has no result"), |error| error.text())?;
                    notes.push(format!("patch {}: {reason}", patch.text_of("patch")?));
                    all.push(Entry { labels, result: None });
                }
            }
        }
    } else if let Some(results) = place.get("results") {
        for result in results.items()? {
            collect(&result, labels, all, notes)?;
        }
    } else if let (Some(limits), Some(at)) = (place.get("limits"), place.get("at")) {
        let name = at.text_of("parameter")?;
        for limit in limits.items()? {
            let label = (name.to_owned(), Cell::number(limit.number_of("value")?));
            all.push(Entry { labels: [labels, &[label]].concat(), result: Some(limit) });
        }
    } else {
        all.push(Entry { labels: labels.to_vec(), result: Some(place.clone()) });
    }
    Ok(())
}

/// Returns the name of a patch and its values.
fn labels_of(patch: &Place<'_>) -> Result<Vec<(String, Cell)>, TableError> {
    let mut labels = vec![("patch".to_owned(), Cell::Text(patch.text_of("patch")?.to_owned()))];
    let values = patch.get("values");
    for (label, value) in values.iter().filter_map(|values| values.value.as_object()).flatten() {
        let cell = match value {
            Value::Number(number) => Cell::number(number.as_f64()),
            Value::String(text) => Cell::Text(text.clone()),
            Value::Null => Cell::Empty,
            other => Cell::Text(other.to_string()),
        };
        labels.push((label.clone(), cell));
    }
    Ok(labels)
}
