//! The signals of a scan, by channel, and in the order of a model's bins.

use crate::error::ScannerError;
use ns_core::Model;
use ns_translate::NumberTable;
use std::collections::BTreeMap;

/// Expected events of many signals. A channel that is left out has none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Signals {
    /// The events of each channel: a row for each signal, a column for each bin.
    pub yields: BTreeMap<String, NumberTable>,
    /// Their absolute statistical uncertainties, of the same shape; the factors of different bins
    /// are independent, and normally distributed around 1.
    pub uncertainties: BTreeMap<String, NumberTable>,
}

/// What is appended to the name of a channel to name its uncertainties in a file.
const UNCERTAINTY: &str = ".uncertainty";

/// Signals in the order of a model's bins.
#[derive(Debug)]
pub(super) struct SignalPoints {
    /// Their number (N).
    pub(super) n: usize,
    n_bins: usize,
    /// N × B.
    yields: Vec<f64>,
    uncertainties: Vec<f64>,
}

impl Signals {
    /// Returns the signals of the `arrays` of a file: the name of a channel for its events, and
    /// that with `.uncertainty` appended for their uncertainties.
    #[must_use]
    pub fn of_arrays(arrays: Vec<(String, NumberTable)>) -> Self {
        let mut signals = Self::default();
        for (name, table) in arrays {
            match name.strip_suffix(UNCERTAINTY) {
                Some(channel) => signals.uncertainties.insert(channel.to_owned(), table),
                None => signals.yields.insert(name, table),
            };
        }
        signals
    }

    /// Returns the signals in the order of the bins of `model`.
    ///
    /// # Errors
    /// No signals; channels that the model does not have; tables of other shapes; numbers that are
    /// negative or not finite; uncertainties without events.
    pub(super) fn points(&self, model: &Model) -> Result<SignalPoints, ScannerError> {
        let n = self.yields.values().map(|table| table.n_rows).next().unwrap_or(0);
        if n == 0 {
            return Err(ScannerError::NoSignals);
        }
        let n_bins = model.n_bins();
        let mut points =
            SignalPoints { n, n_bins, yields: vec![0.0; n * n_bins], uncertainties: vec![0.0; n * n_bins] };
        for (channel, table) in &self.yields {
            put(model, channel, table, n, "events", &mut points.yields)?;
        }
        for (channel, table) in &self.uncertainties {
            if !self.yields.contains_key(channel) {
                return Err(ScannerError::UncertaintyAlone { channel: channel.clone() });
            }
            put(model, channel, table, n, "uncertainties", &mut points.uncertainties)?;
        }
        Ok(points)
    }
}

/// Writes `table`, of channel `channel`, to its columns of `out` (N × B).
fn put(
    model: &Model,
    channel: &str,
    table: &NumberTable,
    n: usize,
    what: &'static str,
    out: &mut [f64],
) -> Result<(), ScannerError> {
    let Some(index) = model.channels.iter().position(|name| name == channel) else {
        return Err(ScannerError::UnknownChannel { channel: channel.to_owned(), known: model.channels.clone() });
    };
    let bins = model.channel_bins(index);
    let (expected, found) = ([n, bins.len()], [table.n_rows, table.n_columns]);
    if expected != found {
        return Err(ScannerError::Shape { channel: channel.to_owned(), what, expected, found });
    }
    for (signal, row) in table.values.chunks_exact(bins.len().max(1)).enumerate() {
        if let Some(bin) = row.iter().position(|value| !(value.is_finite() && *value >= 0.0)) {
            let (channel, value) = (channel.to_owned(), row[bin]);
            return Err(ScannerError::NotACount { channel, what, signal, bin, value });
        }
        let start = signal * model.n_bins();
        out[start + bins.start..start + bins.end].copy_from_slice(row);
    }
    Ok(())
}

impl SignalPoints {
    /// Returns the same for the bins of `model`, which has some of the bins only: others are
    /// masked.
    pub(super) fn in_model(self, whole: &Model, model: &Model) -> Self {
        if model.n_bins() == self.n_bins {
            return self;
        }
        let place_of = |bin: usize| {
            let place = model.place(bin);
            let channel = whole.channels.iter().position(|name| *name == place.channel);
            whole.channel_bins(channel.expect("a model has the channels of its parts")).start + place.bin
        };
        let bins: Vec<usize> = (0..model.n_bins()).map(place_of).collect();
        let select = |values: &[f64]| -> Vec<f64> {
            values.chunks_exact(self.n_bins).flat_map(|row| bins.iter().map(|&bin| row[bin])).collect()
        };
        let (yields, uncertainties) = (select(&self.yields), select(&self.uncertainties));
        Self { n: self.n, n_bins: bins.len(), yields, uncertainties }
    }

    /// Returns the events and the uncertainties (B each) of signal `i`.
    pub(super) fn of(&self, i: usize) -> (&[f64], &[f64]) {
        let range = i * self.n_bins..(i + 1) * self.n_bins;
        (&self.yields[range.clone()], &self.uncertainties[range])
    }

    /// Returns the signals that have uncertainties in bins without events.
    pub(super) fn with_uncertainty_alone(&self) -> Vec<usize> {
        let is_alone = |(events, uncertainty): (&f64, &f64)| *events == 0.0 && *uncertainty > 0.0;
        let has_alone = |&i: &usize| {
            let (events, uncertainties) = self.of(i);
            self.has_events(i) && events.iter().zip(uncertainties).any(is_alone)
        };
        (0..self.n).filter(has_alone).collect()
    }

    /// Returns `true` if signal `i` has events.
    pub(super) fn has_events(&self, i: usize) -> bool {
        self.of(i).0.iter().any(|events| *events > 0.0)
    }
}
