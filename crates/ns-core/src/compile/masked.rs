//! A model without some of its bins, for fits in control regions and for blinded bins.

use super::error::CompileError;
use super::tables::{FlatTables, Tables};
use crate::model::{Data, Model};
use crate::nonlinearity::Nonlinearity;
use std::ops::Range;

impl Model {
    /// Returns the model without the bins that `masked` (B) marks.
    ///
    /// The parameters stay, and so do their constraint terms and auxiliary data: a point of one
    /// model is a point of the other, and the minimum is that of a workspace without these bins. A
    /// parameter without a constraint term that no remaining bin depends on is fixed at its
    /// starting value. A channel of which bins remain in several pieces becomes a channel per
    /// piece, named after its bins: `SR[0:3]` has bins 0 to 2. Messages name the whole channel and
    /// count its bins.
    ///
    /// # Errors
    /// A part of a channel whose template is normalised over all bins.
    ///
    /// ```
    /// use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Observation, Sample, Workspace};
    ///
    /// let mu = Modifier::new("mu", ModifierData::NormFactor);
    /// let background = Sample { name: "background".into(), data: vec![5.0, 6.0, 7.0], modifiers: vec![mu], ..Default::default() };
    /// let workspace = Workspace {
    ///     channels: vec![Channel { name: "SR".into(), samples: vec![background] }],
    ///     observations: vec![Observation { name: "SR".into(), data: vec![4.0, 8.0, 6.0] }],
    ///     measurements: vec![Measurement { name: "m".into(), poi: None, parameters: vec![], ..Default::default() }],
    /// };
    /// let model = ns_core::compile(&workspace, &Default::default())?;
    /// let masked = model.without_bins(&[false, true, false])?;
    /// assert_eq!(masked.channels, ["SR[0:1]", "SR[2:3]"]);
    /// assert_eq!(masked.place(1).to_string(), "channel `SR`, bin 2");
    /// assert_eq!(masked.observed.main, [4.0, 6.0]);
    /// # Ok::<(), ns_core::CompileError>(())
    /// ```
    pub fn without_bins(&self, masked: &[bool]) -> Result<Self, CompileError> {
        let mut tables = Tables::new(self.responses.clone(), self.rules.clip_samples, self.rules.clip_bins);
        let (mut channels, mut channel_origins, mut main) = (Vec::new(), Vec::new(), Vec::new());
        for channel in 0..self.channels.len() {
            let bins = self.channel_bins(channel);
            for run in unmasked_runs(&masked[bins.clone()]) {
                tables.begin_channel(main.len());
                let mut templates = self.channel_templates(channel);
                templates.try_for_each(|template| tables.copy_template(self, template, run.clone()))?;
                channels.push(self.piece_name(channel, &run));
                channel_origins.push(self.place_in(channel, run.start));
                main.extend_from_slice(&self.observed.main[bins.start + run.start..bins.start + run.end]);
            }
        }
        tables.end(main.len());
        let mut parameters = self.parameters.clone();
        for (i, is_used) in tables.used_params(self).into_iter().enumerate() {
            parameters.fixed[i] |= !is_used && parameters.constraint[i].is_none();
        }
        let FlatTables { indices, reals, shifts, layout, samples, coefficients, responses, rules } =
            tables.into_flat(&parameters, self.samples.clone())?;
        let mut model = Self {
            channels,
            channel_origins,
            samples,
            parameters,
            pois: self.pois.clone(),
            measurement: self.measurement.clone(),
            interpolation: self.interpolation,
            responses,
            observed: Data { main, aux: self.observed.aux.clone() },
            indices: indices.into(),
            reals: reals.into(),
            shifts: shifts.into(),
            layout,
            coefficients,
            derived: self.derived.clone(),
            rules,
            nonlinearity: Nonlinearity::default(),
        };
        model.nonlinearity = Nonlinearity::of(&model);
        Ok(model)
    }

    /// Returns the name of a piece of `channel` that has the bins `run`.
    fn piece_name(&self, channel: usize, run: &Range<usize>) -> String {
        let name = &self.channels[channel];
        if run.len() == self.channel_bins(channel).len() {
            return name.clone();
        }
        format!("{name}[{}:{}]", run.start, run.end)
    }
}

impl Data {
    /// Returns the data without the bins that `masked` (B) marks.
    #[must_use]
    pub fn without_bins(&self, masked: &[bool]) -> Self {
        let main = self.main.iter().zip(masked).filter(|(_, is_masked)| !**is_masked).map(|(n, _)| *n).collect();
        Self { main, aux: self.aux.clone() }
    }
}

/// Returns the longest ranges of bins that are not masked, in order.
fn unmasked_runs(masked: &[bool]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for bin in (0..masked.len()).filter(|&bin| !masked[bin]) {
        match runs.last_mut() {
            Some(run) if run.end == bin => run.end += 1,
            _ => runs.push(bin..bin + 1),
        }
    }
    runs
}
