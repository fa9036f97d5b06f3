//! The histograms of a combination: a name for each, and the ROOT file that they are in.

use ns_root::{Histogram, RootWriteError, RootWriter};

use super::free_names::{FreeNames, numbered};
use crate::not_representable::{Lacking, NotRepresentable};

/// The histograms of a combination. What cannot be written is noted when the file is finished.
pub(super) struct Histograms {
    writer: Result<RootWriter, RootWriteError>,
    names: FreeNames,
    /// Histograms that the file cannot have.
    failed: Vec<NotRepresentable>,
}

/// The contents of a histogram.
pub(super) struct Contents {
    /// One for each bin (B).
    pub(super) values: Vec<f64>,
    /// Sums of squared weights (B), if there are any.
    pub(super) variances: Option<Vec<f64>>,
}

impl From<Vec<f64>> for Contents {
    fn from(values: Vec<f64>) -> Self {
        Self { values, variances: None }
    }
}

/// Returns a name without what means something in paths.
pub(super) fn as_file(name: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || matches!(character, '_' | '.' | '-');
    name.chars().map(|character| if is_plain(character) { character } else { '_' }).collect()
}

impl Histograms {
    /// Returns the histograms of a file that calls itself `file`.
    pub(super) fn new(file: &str) -> Self {
        Self { writer: RootWriter::new(file), names: FreeNames::default(), failed: Vec::new() }
    }

    /// Adds a histogram, called by the names of what it is of. Returns its name.
    pub(super) fn add(&mut self, of: &[&str], contents: impl Into<Contents>, pointer: &str) -> String {
        let Contents { values, variances } = contents.into();
        let wanted = format!("hist{}", as_file(&of.join("_")));
        let name = numbered(&wanted, self.names.take(&wanted));
        let edges = (0..=values.len()).map(|edge| edge as f64).collect();
        if let Err(reason) = self.put(&name, edges, &values, variances.as_deref()) {
            self.failed.push(NotRepresentable {
                what: "a histogram that a ROOT file cannot have, of",
                name: of.last().copied().unwrap_or_default().to_owned(),
                pointer: pointer.to_owned(),
                reason: Some(reason),
            });
        }
        name
    }

    /// Puts a histogram into the file, if there is one. Returns why it cannot have it.
    fn put(&mut self, name: &str, edges: Vec<f64>, values: &[f64], variances: Option<&[f64]>) -> Result<(), String> {
        let Ok(writer) = &mut self.writer else { return Ok(()) };
        if !values.iter().chain(variances.into_iter().flatten()).all(|number| number.is_finite()) {
            return Err("a number or the square of an uncertainty is too large or too small".to_owned());
        }
        let histogram = Histogram::new(name, "", edges, values, variances);
        histogram.and_then(|histogram| writer.add("", &histogram)).map_err(|error| error.to_string())
    }

    /// Returns the bytes of the file.
    pub(super) fn finish(self, lacking: &mut Lacking) -> Vec<u8> {
        self.failed.into_iter().for_each(|item| lacking.push(item));
        self.writer.and_then(RootWriter::finish).unwrap_or_else(|error| {
            lacking.add("the ROOT file of the workspace:", &error.to_string(), String::new());
            Vec::new()
        })
    }
}
