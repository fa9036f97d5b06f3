//! Sorts the parts of a workspace by name.

use super::{Named, WorkspaceDocument};

/// Returns the workspace with channels, samples, measurements, settings and observations sorted by
/// name, and modifiers by name and type. Names are compared by code point, and items of one name
/// keep their order, as in pyhf.
///
/// # Example
///
/// ```
/// use ns_translate::{python_json, workspace::{WorkspaceDocument, sort}};
///
/// # let bytes = std::fs::read("../../examples/shapes.json")?;
/// let document = WorkspaceDocument::from_bytes(&bytes)?;
/// let sorted = sort(document);
/// assert!(python_json(&sorted)?.starts_with("{\n    \"channels\": ["));
/// assert_eq!(sort(sorted.clone()), sorted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn sort(mut document: WorkspaceDocument) -> WorkspaceDocument {
    by_name(&mut document.channels);
    for channel in &mut document.channels {
        by_name(&mut channel.samples);
        for sample in &mut channel.samples {
            sample.modifiers.sort_by(|a, b| (&a.name, a.kind.as_str()).cmp(&(&b.name, b.kind.as_str())));
        }
    }
    by_name(&mut document.measurements);
    document.measurements.iter_mut().for_each(|measurement| by_name(&mut measurement.config.parameters));
    by_name(&mut document.observations);
    document
}

/// Sorts by the bytes of UTF-8, which have the order of code points.
fn by_name<T: Named>(items: &mut [T]) {
    items.sort_by(|a, b| a.name().cmp(b.name()));
}
