//! Writes channels, and the histograms of their samples.

use ns_core::spec::{Channel, Modifier, ModifierData, ModifierKind, PerBinKind, Sample, Workspace};

use super::element::NewElement;
use super::histograms::{Contents, Histograms};
use super::roles::{RoleKind, Roles, VectorTerms};
use super::settings::{check_interpolation, luminosity};
use super::{XmlDialect, XmlLayout};
use crate::not_representable::Lacking;

/// Writes the channels of a workspace.
pub(super) struct ChannelWriter<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) roles: &'a Roles<'a>,
    pub(super) layout: &'a XmlLayout,
    pub(super) dialect: XmlDialect,
    pub(super) histograms: Histograms,
    pub(super) lacking: &'a mut Lacking,
}

/// A sample to be written.
struct Written<'a> {
    channel: &'a Channel,
    sample: &'a Sample,
    pointer: String,
    /// What its histograms are divided by: readers multiply them by it.
    scale: f64,
}

fn word(kind: PerBinKind) -> &'static str {
    match kind {
        PerBinKind::Gaussian => "Gaussian",
        PerBinKind::Poisson => "Poisson",
    }
}

fn follows_luminosity(sample: &Sample) -> bool {
    sample.modifiers.iter().any(|modifier| modifier.kind() == ModifierKind::Lumi)
}

fn stat_error(sample: &Sample) -> Option<&Vec<f64>> {
    sample.modifiers.iter().find_map(|modifier| match &modifier.data {
        ModifierData::StatError(errors) => Some(errors),
        _ => None,
    })
}

fn divided(values: &[f64], scale: f64) -> Vec<f64> {
    values.iter().map(|value| value / scale).collect()
}

impl ChannelWriter<'_> {
    /// Returns the element of the channel `c`.
    pub(super) fn channel(&mut self, c: usize) -> NewElement {
        let (workspace, channel) = (self.workspace, &self.workspace.channels[c]);
        let mut element = NewElement::new("Channel")
            .attribute("Name", channel.name.as_str())
            .attribute("InputFile", self.layout.root_file.as_str());
        if let Some(observation) = workspace.observations.iter().find(|observation| observation.name == channel.name) {
            let pointer = format!("/channels/{c}");
            let name = self.histograms.add(&[&channel.name, "data"], observation.data.clone(), &pointer);
            let data = NewElement::new("Data").attribute("HistoName", name);
            element.push(data.attribute("InputFile", self.layout.root_file.as_str()));
        }
        let is_of_channel = |kind: RoleKind| kind == RoleKind::Stat { channel: c };
        if let Some(role) = self.roles.roles.iter().find(|role| is_of_channel(role.kind)) {
            // ROOT's own are Poisson, and none where the uncertainty is below 5%.
            let (kind, threshold) = role.per_bin();
            let config = NewElement::new("StatErrorConfig").number("RelErrorThreshold", threshold);
            element.push(config.attribute("ConstraintType", word(kind)));
        }
        let errors_scale = self.errors_scale(channel);
        for (s, sample) in channel.samples.iter().enumerate() {
            let (pointer, scale) = (format!("/channels/{c}/samples/{s}"), self.scale(sample));
            element.push(self.sample(&Written { channel, sample, pointer, scale }, &errors_scale));
        }
        element
    }

    /// Returns what ROOT multiplies the histograms of a sample by that does not follow the
    /// luminosity: its nominal value.
    fn scale(&self, sample: &Sample) -> f64 {
        match self.roles.lumi() {
            Some(role) if self.dialect == XmlDialect::Root && !follows_luminosity(sample) => {
                luminosity(role, 0).map_or(1.0, |lumi| lumi.nominal)
            }
            _ => 1.0,
        }
    }

    /// Returns what the statistical uncertainties of a channel are multiplied by (B), so that their
    /// ratio to the sum of the histograms is that to the sum of the yields.
    fn errors_scale(&self, channel: &Channel) -> Vec<f64> {
        let n_bins = channel.samples.first().map_or(0, |sample| sample.data.len());
        let uncertain: Vec<&Sample> = channel.samples.iter().filter(|sample| stat_error(sample).is_some()).collect();
        let sum = |bin: usize, divides: bool| -> f64 {
            let yields = |sample: &&Sample| sample.data.get(bin).copied().unwrap_or(0.0);
            let one = |sample: &&Sample| yields(sample) / if divides { self.scale(sample) } else { 1.0 };
            uncertain.iter().map(one).sum()
        };
        let of_bin = |bin: usize| {
            let (written, yields) = (sum(bin, true), sum(bin, false));
            if written > 0.0 && yields > 0.0 { written / yields } else { 1.0 }
        };
        (0..n_bins).map(of_bin).collect()
    }

    fn sample(&mut self, written: &Written<'_>, errors_scale: &[f64]) -> NewElement {
        let Written { channel, sample, pointer, scale } = written;
        let variance = |(error, scale): (&f64, &f64)| {
            let square = (error * scale) * (error * scale);
            // No histogram has what cannot be squared.
            if square.is_normal() || *error == 0.0 { square } else { f64::NAN }
        };
        let variances = stat_error(sample).map(|errors| errors.iter().zip(errors_scale).map(variance).collect());
        let contents = Contents { values: divided(&sample.data, *scale), variances };
        let name = self.histograms.add(&[&channel.name, &sample.name], contents, pointer);
        let follows = if follows_luminosity(sample) { "True" } else { "False" };
        let mut element = NewElement::new("Sample")
            .attribute("Name", sample.name.as_str())
            .attribute("HistoName", name)
            .attribute("InputFile", self.layout.root_file.as_str())
            .attribute("NormalizeByTheory", follows);
        for (m, modifier) in sample.modifiers.iter().enumerate() {
            let pointer = format!("{pointer}/modifiers/{m}");
            check_interpolation(modifier, &pointer, self.lacking);
            if let Some(made) = self.modifier(written, modifier, &pointer) {
                element.push(made);
            }
        }
        element
    }

    /// Returns the element of a modifier; `None` for the luminosity, which is an attribute of the
    /// sample, and for what XML does not have.
    fn modifier(&mut self, written: &Written<'_>, modifier: &Modifier, pointer: &str) -> Option<NewElement> {
        let name = modifier.name.as_str();
        let named = |element| NewElement::new(element).attribute("Name", name);
        Some(match &modifier.data {
            ModifierData::NormFactor => {
                let (value, [low, high]) = self.roles.get(name)?.factor();
                named("NormFactor").number("Val", value).number("Low", low).number("High", high)
            }
            ModifierData::NormSys { lo, hi } => named("OverallSys").number("High", *hi).number("Low", *lo),
            ModifierData::HistoSys { lo_data, hi_data } => {
                let mut side = |values: &[f64], side: &str| {
                    let of = [&written.channel.name, &written.sample.name, &format!("{name}{side}")[..]];
                    self.histograms.add(&of, divided(values, written.scale), pointer)
                };
                let (low, high) = (side(lo_data, "Low"), side(hi_data, "High"));
                named("HistoSys").attribute("HistoNameLow", low).attribute("HistoNameHigh", high)
            }
            ModifierData::ShapeSys(uncertainties) => {
                let ratio = |(u, n): (&f64, &f64)| if *n > 0.0 && *u > 0.0 { u / n } else { 0.0 };
                let relative = uncertainties.iter().zip(&written.sample.data).map(ratio).collect();
                let kind = self.roles.get(name)?.per_bin().0;
                self.shape_sys(written, modifier, VectorTerms { kind, relative }, pointer)
            }
            ModifierData::ShapeFactor => match self.roles.get(name)?.vector_terms() {
                Some(terms) => self.shape_sys(written, modifier, terms, pointer),
                None => self.shape_factor(written, modifier, pointer),
            },
            // Its uncertainties are those of the sample's histogram.
            ModifierData::StatError(_) => NewElement::new("StatError").attribute("Activate", "True"),
            ModifierData::Lumi | ModifierData::Formula(_) | ModifierData::Morphing(_) | ModifierData::McStat(_) => {
                return None;
            }
        })
    }

    fn shape_sys(
        &mut self,
        written: &Written<'_>,
        modifier: &Modifier,
        terms: VectorTerms,
        pointer: &str,
    ) -> NewElement {
        let of = [&written.channel.name, &written.sample.name, &modifier.name[..]];
        let name = self.histograms.add(&of, terms.relative, pointer);
        NewElement::new("ShapeSys")
            .attribute("Name", modifier.name.as_str())
            .attribute("ConstraintType", word(terms.kind))
            .attribute("HistoName", name)
    }

    /// Returns a `ShapeFactor`, with the values at the start if all measurements have the same and
    /// they are not 1.
    fn shape_factor(&mut self, written: &Written<'_>, modifier: &Modifier, pointer: &str) -> NewElement {
        let element = NewElement::new("ShapeFactor").attribute("Name", modifier.name.as_str());
        let initial = match self.roles.get(&modifier.name) {
            Some(role) if self.dialect == XmlDialect::Root => role.initial_shape(),
            _ => None,
        };
        let Some(initial) = initial else { return element };
        let of = [&written.channel.name, &written.sample.name, &modifier.name[..]];
        let name = self.histograms.add(&of, initial, pointer);
        element.attribute("HistoName", name)
    }
}
