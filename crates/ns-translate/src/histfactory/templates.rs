//! Turns a channel as written into its templates and observed counts, and notes what it says of
//! parameters.

use ns_core::spec::{Channel, Modifier, ModifierData, PerBinKind, Sample};
use ns_root::Histogram;

use super::channel::{Effect, EffectKind, HistogramName, StatError, WrittenChannel, WrittenSample};
use super::error::{HistFactoryError, HistFactoryProblem};
use super::files::{InputFiles, require_finite};
use super::parameters::{Norm, Parameters, ShapeUncertainty, VectorKind, VectorParameter};
use crate::place::DocumentPlace;

/// A channel with its numbers.
pub(super) struct ReadChannel {
    pub(super) channel: Channel,
    /// The observed counts (B), if the channel has data.
    pub(super) observed: Option<Vec<f64>>,
}

/// Something to say about an element.
pub(super) struct Remark {
    pub(super) text: String,
    pub(super) place: DocumentPlace,
}

/// What reading a channel needs, and what it adds to.
pub(super) struct ChannelReader<'a> {
    pub(super) files: &'a mut InputFiles,
    pub(super) parameters: &'a mut Parameters,
    /// The nominal luminosity, which scales samples that are not normalised by theory.
    pub(super) lumi: f64,
    pub(super) remarks: Vec<Remark>,
    /// Bins of the channel (B), once its first histogram has been read.
    n_bins: Option<usize>,
}

/// The statistical uncertainties of one sample.
struct SampleErrors {
    /// The sample's index.
    sample: usize,
    /// Absolute uncertainties of the histogram (B).
    errors: Vec<f64>,
    /// The histogram itself (B), before the luminosity scales it.
    nominal: Vec<f64>,
}

impl<'a> ChannelReader<'a> {
    pub(super) fn new(files: &'a mut InputFiles, parameters: &'a mut Parameters, lumi: f64) -> Self {
        Self { files, parameters, lumi, remarks: Vec::new(), n_bins: None }
    }

    pub(super) fn read(&mut self, written: &WrittenChannel) -> Result<ReadChannel, HistFactoryError> {
        let mut samples = Vec::new();
        let mut uncertain = Vec::new();
        for sample in &written.samples {
            let nominal = self.histogram(&sample.nominal)?;
            if let Some(errors) = self.stat_errors(sample, &nominal)? {
                uncertain.push(SampleErrors { sample: samples.len(), errors, nominal: nominal.values().to_vec() });
            }
            samples.push(self.sample(sample, &nominal)?);
        }
        if !uncertain.is_empty() {
            self.add_stat_errors(written, &uncertain, &mut samples)?;
        }
        let observed = match &written.data {
            Some(name) => Some(self.histogram(name)?.values().to_vec()),
            None => None,
        };
        Ok(ReadChannel { channel: Channel { name: written.name.clone(), samples }, observed })
    }

    fn remark(&mut self, text: String, place: &DocumentPlace) {
        self.remarks.push(Remark { text, place: place.clone() });
    }

    /// Reads a histogram, which must have as many bins as the first one.
    fn histogram(&mut self, name: &HistogramName) -> Result<Histogram, HistFactoryError> {
        let histogram = self.files.histogram(name)?;
        let (found, wanted) = (histogram.n_bins(), *self.n_bins.get_or_insert(histogram.n_bins()));
        if found == wanted {
            return Ok(histogram);
        }
        Err(HistFactoryProblem::Bins { histogram: name.path.clone(), found, wanted }.at(&name.place))
    }

    fn sample(&mut self, written: &WrittenSample, nominal: &Histogram) -> Result<Sample, HistFactoryError> {
        let mut modifiers = Vec::new();
        let scale = if written.is_normalised_by_theory {
            self.parameters.has_lumi = true;
            modifiers.push(Modifier::new("lumi", ModifierData::Lumi));
            1.0
        } else {
            self.parameters.scaled_sample.get_or_insert_with(|| written.name.clone());
            self.lumi
        };
        let data = scaled(nominal.values(), scale);
        for effect in &written.effects {
            if let Some(data) = self.modifier(effect, &data, scale)? {
                modifiers.push(Modifier::new(effect.name.clone(), data));
            }
        }
        Ok(Sample { name: written.name.clone(), data, modifiers, ..Default::default() })
    }

    /// Returns what an effect does to a sample with the yields `data` (B), whose histograms are
    /// scaled by `scale`.
    fn modifier(
        &mut self,
        effect: &Effect,
        data: &[f64],
        scale: f64,
    ) -> Result<Option<ModifierData>, HistFactoryError> {
        let modifier = match &effect.kind {
            EffectKind::Norm { value, limits, has_const } => {
                self.norm(effect, Norm { name: effect.name.clone(), value: *value, limits: *limits }, *has_const);
                ModifierData::NormFactor
            }
            EffectKind::Overall { low, high } => {
                self.parameters.systematic(&effect.name).has_overall = true;
                ModifierData::NormSys { lo: *low, hi: *high }
            }
            EffectKind::Histo { low, high } => {
                self.parameters.systematic(&effect.name).has_histo = true;
                let lo_data = scaled(self.histogram(low)?.values(), scale);
                ModifierData::HistoSys { lo_data, hi_data: scaled(self.histogram(high)?.values(), scale) }
            }
            EffectKind::ShapeSys { relative, kind } => self.shape_sys(effect, relative, *kind, data)?,
            EffectKind::ShapeFactor { initial, is_const } => {
                let initial = initial.as_ref().map(|name| self.histogram(name)).transpose()?;
                let initial = initial.map(|histogram| histogram.values().to_vec());
                self.add_vector(effect, VectorKind::Free { initial, is_const: *is_const }, data.len())?;
                ModifierData::ShapeFactor
            }
            EffectKind::Ignored => {
                let text = format!("`HistoFactor` `{}` is left out, as in ROOT", effect.name);
                self.remark(text, &effect.place);
                return Ok(None);
            }
        };
        Ok(Some(modifier))
    }

    fn norm(&mut self, effect: &Effect, norm: Norm, has_const: bool) {
        if has_const {
            let text = format!(
                "`Const` of the factor `{0}` has no effect, as in ROOT: fix it by `<ParamSetting Const=\"True\">{0}`",
                norm.name
            );
            self.remark(text, &effect.place);
        }
        let name = norm.name.clone();
        if self.parameters.add_norm(norm) {
            let text =
                format!("the factor `{name}` has other values than before: the first ones are taken, as in ROOT");
            self.remark(text, &effect.place);
        }
    }

    fn shape_sys(
        &mut self,
        effect: &Effect,
        name: &HistogramName,
        kind: PerBinKind,
        data: &[f64],
    ) -> Result<ModifierData, HistFactoryError> {
        let histogram = self.histogram(name)?;
        // ROOT fixes bins without a positive uncertainty.
        let relative: Vec<f64> = histogram.values().iter().map(|relative| relative.max(0.0)).collect();
        let absolute = relative.iter().zip(data).map(|(relative, yields)| relative * yields.abs()).collect();
        let shape = ShapeUncertainty { kind, relative, is_shared: false };
        self.add_vector(effect, VectorKind::Shape(shape), data.len())?;
        Ok(ModifierData::ShapeSys(absolute))
    }

    fn add_vector(&mut self, effect: &Effect, kind: VectorKind, n_bins: usize) -> Result<(), HistFactoryError> {
        let name = effect.name.clone();
        let root_name = format!("gamma_{name}");
        match self.parameters.add_vector(VectorParameter { name: name.clone(), root_name, n_bins, kind }) {
            None => Ok(()),
            Some(what) => Err(HistFactoryProblem::Contradiction { name, what }.at(&effect.place)),
        }
    }

    /// Returns the absolute statistical uncertainties of a sample (B), if it has any.
    fn stat_errors(
        &mut self,
        written: &WrittenSample,
        nominal: &Histogram,
    ) -> Result<Option<Vec<f64>>, HistFactoryError> {
        let (errors, name) = match &written.stat_error {
            StatError::Off => return Ok(None),
            StatError::OfNominal => (nominal.errors(), &written.nominal),
            StatError::Relative(name) => {
                let relative = self.histogram(name)?;
                let pairs = relative.values().iter().zip(nominal.values());
                (pairs.map(|(relative, yields)| relative * yields).collect(), name)
            }
        };
        require_finite("the uncertainty", &errors, name)?;
        Ok(Some(errors))
    }

    /// Adds the statistical uncertainties of the samples in `uncertain`.
    ///
    /// The relative uncertainty of a bin is that of the sum of their histograms as they are in the
    /// files. Where the luminosity scales only some of them, absolute uncertainties are scaled so
    /// that it stays.
    fn add_stat_errors(
        &mut self,
        written: &WrittenChannel,
        uncertain: &[SampleErrors],
        samples: &mut [Sample],
    ) -> Result<(), HistFactoryError> {
        let (name, n_bins) = (format!("staterror_{}", written.name), self.n_bins.unwrap_or_default());
        let factors: Vec<f64> = (0..n_bins)
            .map(|bin| {
                let as_read: f64 = uncertain.iter().map(|one| one.nominal[bin]).sum();
                let as_scaled: f64 = uncertain.iter().map(|one| samples[one.sample].data[bin]).sum();
                // Without a positive sum ROOT has no uncertainty.
                if as_read <= 0.0 || as_scaled <= 0.0 { 0.0 } else { as_scaled / as_read }
            })
            .collect();
        for one in uncertain {
            let errors = one.errors.iter().zip(&factors).map(|(error, factor)| error.abs() * factor).collect();
            samples[one.sample].modifiers.push(Modifier::new(name.clone(), ModifierData::StatError(errors)));
        }
        let (root_name, kind) = (format!("gamma_stat_{}", written.name), VectorKind::Stat(written.stat_errors));
        match self.parameters.add_vector(VectorParameter { name: name.clone(), root_name, n_bins, kind }) {
            None => Ok(()),
            Some(what) => Err(HistFactoryProblem::Contradiction { name, what }.at(&written.place)),
        }
    }
}

fn scaled(values: &[f64], scale: f64) -> Vec<f64> {
    values.iter().map(|value| value * scale).collect()
}
