//! A sample of a compiled model whose numbers can be replaced: signals of a scan, which differ in
//! their yields alone, share everything else.
//!
//! [`Model::set_sample`] makes the model that compiling the workspace with the other yields makes,
//! to the bit, but for [`Model::nonlinearity`], which stays that of the first yields.

use crate::constraint::Constraint;
use crate::model::Model;
use std::ops::Range;
use std::sync::Arc;

/// Where the numbers of one sample are in a model.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleSlot {
    /// The sample's part of each channel (C).
    parts: Vec<SamplePart>,
}

/// The part of a slot in one channel.
#[derive(Debug, Clone, PartialEq)]
struct SamplePart {
    /// Bins of the model.
    bins: Range<usize>,
    /// Its nominal yields in [`Model::reals`].
    nominal: Range<usize>,
    /// The template.
    template: usize,
    /// First parameter of its own per-bin factors, if it has them.
    first_factor: Option<usize>,
}

impl SampleSlot {
    /// Returns the slot of the sample `name` of `model`; `None` unless every channel has the
    /// sample, without shifts, and with no per-bin factor but a staterror of its own.
    #[must_use]
    pub fn of(model: &Model, name: &str) -> Option<Self> {
        let sample = model.samples.iter().position(|sample| sample == name)?;
        let part = |channel: usize| {
            let is_it = |&t: &usize| model.table(model.layout.template_sample)[t] as usize == sample;
            let template = model.channel_templates(channel).find(is_it)?;
            let cells = model.part(model.layout.template_cell, template);
            let factors = model.part(model.layout.template_bin_factor, template);
            let has_shifts = !model.part(model.layout.template_histosys, template).is_empty()
                || !model.part(model.layout.template_morphing, template).is_empty()
                || model.rules.shape(template).is_some();
            if has_shifts || factors.len() > 1 {
                return None;
            }
            let first_factor = model.table(model.layout.bin_factor_param)[factors].first().map(|&p| p as usize);
            if first_factor.is_some_and(|first| !is_own(model, channel, template, first)) {
                return None;
            }
            let start = model.layout.nominal.start;
            Some(SamplePart {
                bins: model.channel_bins(channel),
                nominal: start + cells.start..start + cells.end,
                template,
                first_factor,
            })
        };
        let parts: Option<Vec<SamplePart>> = (0..model.channels.len()).map(part).collect();
        Some(Self { parts: parts? })
    }

    /// Returns the template of the sample in each channel (C).
    pub fn templates(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().map(|part| part.template)
    }

    /// Returns what the normalisations of its factors' constraint terms add to -ln L of `model`:
    /// Σ ln(σ√2π).
    #[must_use]
    pub fn normalisation(&self, model: &Model) -> f64 {
        let factors = self.parts.iter().flat_map(|part| part.first_factor.map(|first| first..first + part.bins.len()));
        let term = |i: usize| match model.parameters.constraint[i] {
            Some(Constraint::Gaussian { sigma }) => sigma.ln() + 0.5 * (2.0 * std::f64::consts::PI).ln(),
            _ => 0.0,
        };
        factors.flatten().map(term).sum()
    }
}

/// Returns `true` if the per-bin factors from `first` on are a staterror of `template` alone.
fn is_own(model: &Model, channel: usize, template: usize, first: usize) -> bool {
    let is_gaussian = model
        .channel_bins(channel)
        .enumerate()
        .all(|(i, _)| matches!(model.parameters.constraint.get(first + i), Some(Some(Constraint::Gaussian { .. }))));
    let others = (0..model.n_templates()).filter(|&other| other != template);
    let uses = |other: usize| {
        let factors = model.part(model.layout.template_bin_factor, other);
        model.table(model.layout.bin_factor_param)[factors].iter().any(|&param| param as usize == first)
    };
    is_gaussian && !others.into_iter().any(uses)
}

impl Model {
    /// Sets the yields (B) of the sample of `slot`, and the absolute uncertainties (B) of its
    /// staterror if it has one.
    ///
    /// A factor of a bin without yield or uncertainty is fixed.
    pub fn set_sample(&mut self, slot: &SampleSlot, yields: &[f64], uncertainties: &[f64]) {
        let reals = Arc::make_mut(&mut self.reals);
        for part in &slot.parts {
            reals[part.nominal.clone()].copy_from_slice(&yields[part.bins.clone()]);
            let Some(first) = part.first_factor else { continue };
            for (i, bin) in part.bins.clone().enumerate() {
                let (nominal, uncertainty) = (yields[bin], uncertainties[bin]);
                let sigma = if nominal > 0.0 { (uncertainty / nominal).powi(2).sqrt() } else { 0.0 };
                self.parameters.fixed[first + i] = sigma == 0.0;
                let sigma = if sigma == 0.0 { 1.0 } else { sigma };
                self.parameters.constraint[first + i] = Some(Constraint::Gaussian { sigma });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, compile};
    use crate::spec::{
        Channel, Measurement, Modifier, ModifierData, ModifierInterpolation, Observation, Sample, Workspace,
    };

    fn modifier(name: &str, data: ModifierData) -> Modifier {
        Modifier { name: name.to_owned(), data, interpolation: ModifierInterpolation::default() }
    }

    fn workspace(yields: [&[f64]; 2], uncertainties: [&[f64]; 2]) -> Workspace {
        let channel = |c: usize| {
            let own = modifier(&format!("stat_{c}"), ModifierData::StatError(uncertainties[c].to_vec()));
            let signal = Sample {
                name: "signal".into(),
                data: yields[c].to_vec(),
                modifiers: vec![modifier("mu", ModifierData::NormFactor), own],
                ..Sample::default()
            };
            let scale = modifier("scale", ModifierData::NormSys { lo: 0.9, hi: 1.2 });
            let background = Sample {
                name: "background".into(),
                data: vec![50.0; yields[c].len()],
                modifiers: vec![scale],
                ..Sample::default()
            };
            Channel { name: format!("channel_{c}"), samples: vec![background, signal] }
        };
        let channels: Vec<Channel> = (0..2).map(channel).collect();
        let observation = |c: &Channel| Observation { name: c.name.clone(), data: vec![50.0; c.samples[0].data.len()] };
        let observations = channels.iter().map(observation).collect();
        let measurement = Measurement { name: "m".into(), poi: Some("mu".into()), ..Measurement::default() };
        Workspace { channels, observations, measurements: vec![measurement] }
    }

    #[test]
    fn a_replaced_sample_is_the_sample_of_a_compiled_workspace() {
        let compiled = |workspace: &Workspace| compile(workspace, &CompileOptions::default()).expect("it is a model");
        let model = compiled(&workspace([&[1.0, 1.0], &[1.0]], [&[0.5, 0.5], &[0.5]]));
        let slot = SampleSlot::of(&model, "signal").expect("it has the sample");
        let mut replaced = model.clone();
        replaced.set_sample(&slot, &[3.0, 0.0, 7.0], &[0.3, 0.2, 0.0]);
        let wanted = compiled(&workspace([&[3.0, 0.0], &[7.0]], [&[0.3, 0.2], &[0.0]]));
        assert_eq!(replaced, Model { nonlinearity: replaced.nonlinearity.clone(), ..wanted });
        assert_ne!(replaced.reals, model.reals);
        assert_eq!(replaced.parameters.fixed, [false, false, false, true, true]);
    }

    #[test]
    fn samples_with_shifts_and_samples_of_some_channels_are_no_slots() {
        let mut written = workspace([&[1.0, 1.0], &[1.0]], [&[0.5, 0.5], &[0.5]]);
        written.channels[1].samples.pop();
        let model = compile(&written, &CompileOptions::default()).expect("it is a model");
        assert_eq!(SampleSlot::of(&model, "signal"), None);
        assert_eq!(SampleSlot::of(&model, "nothing"), None);
        let mut written = workspace([&[1.0, 1.0], &[1.0]], [&[0.5, 0.5], &[0.5]]);
        let shift = ModifierData::HistoSys { lo_data: vec![0.5], hi_data: vec![2.0] };
        written.channels[1].samples[1].modifiers.push(modifier("shift", shift));
        let model = compile(&written, &CompileOptions::default()).expect("it is a model");
        assert_eq!(SampleSlot::of(&model, "signal"), None);
        let mut shared = workspace([&[1.0, 1.0], &[1.0]], [&[0.5, 0.5], &[0.5]]);
        shared.channels[0].samples[0].modifiers.push(modifier("stat_0", ModifierData::StatError(vec![1.0; 2])));
        let model = compile(&shared, &CompileOptions::default()).expect("it is a model");
        assert_eq!(SampleSlot::of(&model, "signal"), None);
    }
}
