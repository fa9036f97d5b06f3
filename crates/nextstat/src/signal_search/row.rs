//! Signals in a row, along which upcrossings are counted.

use crate::error::SearchError;
use ns_translate::patchset::{PatchSet, PatchValue};

/// Signals that differ in the number of one label.
pub(super) struct Row {
    pub(super) label: String,
    /// The patches in ascending order.
    pub(super) order: Vec<usize>,
}

impl Row {
    /// Returns the row along `label`, or along the only label by which all signals of `set` differ.
    ///
    /// # Errors
    /// A label that the set does not have, or along which its signals are no row.
    pub(super) fn of(set: &PatchSet, label: Option<&str>) -> Result<Option<Self>, SearchError> {
        let labels = &set.metadata().labels;
        let Some(label) = label else {
            let mut rows = (0..labels.len()).filter_map(|k| Self::along(set, k));
            return Ok(rows.next().filter(|_| rows.next().is_none()));
        };
        let Some(k) = labels.iter().position(|known| known == label) else {
            return Err(SearchError::NoLabel { label: label.to_owned(), known: labels.clone() });
        };
        match Self::along(set, k) {
            Some(row) => Ok(Some(row)),
            None => Err(SearchError::NotInARow { label: label.to_owned() }),
        }
    }

    /// Returns the row along the label with index `k`, if it is one.
    fn along(set: &PatchSet, k: usize) -> Option<Self> {
        let values: Option<Vec<f64>> = set.patches().iter().map(|entry| number(entry.values.get(k)?)).collect();
        let values = values?;
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        let differ = order.windows(2).all(|pair| values[pair[0]] < values[pair[1]]);
        differ.then(|| Self { label: set.metadata().labels[k].clone(), order })
    }
}

/// Returns a value of a patch that is a number.
fn number(value: &PatchValue) -> Option<f64> {
    match value {
        PatchValue::Number(number) => Some(*number),
        PatchValue::Text(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}
