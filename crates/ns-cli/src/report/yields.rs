//! Tables of yields before and after a fit: a table for each channel, a line for each sample.

use std::fmt::Write;

use ns_inference::yields::{ChannelPrediction, Prediction};

use super::number::{measured, significant};
use super::table::{Align, table};
use super::talk::harmless;

/// One channel before and after the fit, with what was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChannelYields<'a> {
    pub(super) data: &'a [f64],
    pub(super) prefit: &'a ChannelPrediction,
    pub(super) postfit: &'a ChannelPrediction,
}

impl ChannelYields<'_> {
    /// The channel's table: sums over its bins, or every bin.
    pub(super) fn table(&self, has_bins: bool) -> String {
        let mut rows = Vec::new();
        for (before, after) in self.prefit.samples.iter().zip(&self.postfit.samples) {
            add(&mut rows, &harmless(&before.sample), (&before.prediction, &after.prediction), has_bins);
        }
        add(&mut rows, "total", (&self.prefit.total, &self.postfit.total), has_bins);
        let seen =
            |bin: &str, count: f64| vec!["data".to_owned(), bin.to_owned(), significant(count, 6), String::new()];
        if has_bins {
            rows.extend(self.data.iter().enumerate().map(|(bin, count)| seen(&bin.to_string(), *count)));
        }
        rows.push(seen("all", self.data.iter().sum()));
        let name = harmless(&self.prefit.channel);
        let columns =
            [(name.as_str(), Align::Left), ("bin", Align::Right), ("before", Align::Right), ("after", Align::Right)];
        if has_bins {
            return table(&columns, &rows);
        }
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
        table(&[columns[0], columns[2], columns[3]], &rows)
    }
}

/// Appends the lines of one sample: `name`, bin, before, after.
fn add(rows: &mut Vec<Vec<String>>, name: &str, (before, after): (&Prediction, &Prediction), has_bins: bool) {
    let bins = if has_bins { 0..before.yields.len() } else { 0..0 };
    for bin in bins {
        let of = |p: &Prediction| measured(p.yields[bin], p.uncertainties[bin]);
        rows.push(vec![name.to_owned(), bin.to_string(), of(before), of(after)]);
    }
    let sum = |p: &Prediction| measured(p.sum, p.sum_uncertainty);
    rows.push(vec![name.to_owned(), "all".to_owned(), sum(before), sum(after)]);
}

/// Every channel's table.
pub(super) fn tables<'a>(channels: impl Iterator<Item = ChannelYields<'a>>, has_bins: bool) -> String {
    let mut text = String::new();
    for channel in channels {
        let _ = write!(text, "\n{}", channel.table(has_bins));
    }
    text
}
