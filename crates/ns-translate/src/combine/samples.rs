//! Makes the sample of a process in a channel: its yields, and what changes them.

use std::sync::Arc;

use ns_core::interpolate::InterpolationRule;
use ns_core::spec::{Expression, Modifier, ModifierData, ModifierInterpolation, Sample, TemplateRule};

use super::card::{Card, ColumnName, Effect, McStats, ShapeKind, Systematic, SystematicKind};
use super::error::{CardError, CardProblem};
use super::morph::{Ends, LOWEST, Morphed, Morphing, TemplateMode, Variation, norm_factor};
use super::numbers::{six_decimals, six_digits};
use super::templates::{Template, TemplateReader, TemplateRequest};

/// A sample, and the statistical uncertainties of its template if it has one.
pub(super) struct BuiltSample {
    pub(super) sample: Sample,
    pub(super) errors: Option<Vec<f64>>,
}

/// Makes one sample.
pub(super) struct SampleBuilder<'b, 'c> {
    pub(super) card: &'c Card,
    pub(super) templates: &'b mut TemplateReader<'c>,
    pub(super) warnings: &'b mut Vec<String>,
    pub(super) column: usize,
    /// The bins of the channel.
    pub(super) n_bins: usize,
}

/// What the uncertainties of a sample do.
#[derive(Default)]
struct Effects {
    factors: Vec<LogNormalFactor>,
    /// Factors that are parameters or formulas.
    others: Vec<Modifier>,
    variations: Vec<Variation>,
    is_logarithmic: bool,
    sideband: Option<Sideband>,
}

/// The factor of an uncertainty.
struct LogNormalFactor {
    name: String,
    at: Ends<f64>,
}

/// What `gmN` has instead of the rate.
#[derive(Clone, Copy)]
struct Sideband {
    /// Its events.
    events: f64,
    /// The expected events for one of them.
    factor: f64,
}

/// How many events a template stands for.
#[derive(Clone, Copy)]
struct Normalization {
    /// The expected events without factors.
    events: f64,
    /// The part of the template that is meant: that of one event of a sideband.
    share: f64,
}

impl<'c> SampleBuilder<'_, 'c> {
    /// Makes the sample, which has `modifiers` first.
    pub(super) fn build(mut self, mut modifiers: Vec<Modifier>) -> Result<BuiltSample, CardError> {
        let nominal = self.nominal()?;
        let rate = self.rate(nominal.as_deref())?;
        let mut effects = self.effects(nominal.is_some(), rate)?;
        let has_factors = !modifiers.is_empty() || !effects.factors.is_empty() || !effects.others.is_empty();
        modifiers.append(&mut effects.others);
        let events = effects.sideband.map_or(rate, |sideband| sideband.factor);
        // Combine passes rates that nothing changes through text.
        let events = if has_factors { events } else { six_digits(events) };
        // A sideband with events scales a template down to one of them.
        let share = effects.sideband.filter(|one| one.events > 0.0).map_or(1.0, |one| 1.0 / one.events);
        let norm = Normalization { events, share };
        let (morphed, errors) = match nominal {
            None => (Morphed { data: vec![events], shifts: Vec::new(), rule: TemplateRule::default() }, None),
            Some(template) => {
                let errors = template.errors.iter().map(|error| error * share).collect();
                (self.morphed(&template, &mut effects, norm)?, Some(errors))
            }
        };
        modifiers.extend(effects.factors.into_iter().map(log_normal));
        modifiers.extend(morphed.shifts);
        let name = self.names().process.to_owned();
        let sample = Sample { name, data: morphed.data, modifiers, template: morphed.rule };
        Ok(BuiltSample { sample, errors })
    }

    fn names(&self) -> ColumnName<'c> {
        self.card.column_name(self.column)
    }

    fn stats(&self) -> Option<McStats> {
        self.card.channels[self.card.columns[self.column].channel].mc_stats
    }

    fn nominal(&mut self) -> Result<Option<Arc<Template>>, CardError> {
        let place = self.card.columns[self.column].place;
        let template = self.template("", place)?;
        if let Some(template) = &template {
            self.require_bins(template, "")?;
        }
        Ok(template)
    }

    fn request<'s>(&self, systematic: &'s str, place: super::words::CardPlace) -> TemplateRequest<'s>
    where
        'c: 's,
    {
        let channel = self.card.columns[self.column].channel;
        TemplateRequest { channel, process: Some(self.names().process), systematic, place }
    }

    fn template(
        &mut self,
        systematic: &str,
        place: super::words::CardPlace,
    ) -> Result<Option<Arc<Template>>, CardError> {
        let channel = self.card.columns[self.column].channel;
        let process = Some(self.names().process);
        self.templates.need(TemplateRequest { channel, process, systematic, place })
    }

    fn require_bins(&mut self, template: &Template, systematic: &str) -> Result<(), CardError> {
        let (found, wanted) = (template.values.len(), self.n_bins);
        let column = self.card.columns[self.column];
        self.templates.limits.contents(found, column.place)?;
        if found == wanted {
            return Ok(());
        }
        let ColumnName { channel, process } = self.names();
        let template = format!("{process} {systematic}").trim_end().to_owned();
        Err(CardProblem::Bins { template, found, channel: channel.to_owned(), wanted }.at(column.place))
    }

    /// Returns the expected events: those of the card, or of the template where it has -1.
    fn rate(&self, nominal: Option<&Template>) -> Result<f64, CardError> {
        let column = self.card.columns[self.column];
        let ColumnName { channel, process } = self.names();
        let sum = nominal.map(|template| template.sum).filter(|sum| *sum != 0.0);
        match sum {
            Some(sum) if column.rate < 0.0 => Ok(sum),
            // Combine allows a difference of one per cent.
            Some(sum) if (sum - column.rate).abs() > 0.01 * column.rate.max(1.0) => {
                let (process, channel) = (process.to_owned(), channel.to_owned());
                Err(CardProblem::Rate { process, channel, rate: column.rate, sum }.at(column.place))
            }
            None if column.rate < 0.0 => {
                let template = format!("{process}` in `{channel}");
                Err(CardProblem::Sum { template, sum: 0.0 }.at(column.place))
            }
            _ => Ok(column.rate),
        }
    }

    fn effects(&mut self, has_template: bool, rate: f64) -> Result<Effects, CardError> {
        let mut found = Effects::default();
        let mut algorithm = None;
        for systematic in &self.card.systematics {
            let effect = systematic.effects.get(self.column).copied().unwrap_or(Effect::None);
            if effect.is_null(&systematic.kind) {
                continue;
            }
            match (&systematic.kind, effect) {
                (SystematicKind::Shape(kind), _) if !has_template => {
                    if kind.is_optional {
                        add_factor(&mut found, &systematic.name, low_high(effect));
                    } else {
                        self.warn_of_no_effect(systematic);
                    }
                }
                (SystematicKind::Shape(kind), _) => {
                    let is_shape = self.shape(systematic, effect, *kind, &mut found)?;
                    if is_shape && algorithm.replace(kind.is_logarithmic).is_some_and(|was| was != kind.is_logarithmic)
                    {
                        let ColumnName { channel, process } = self.names();
                        let (process, channel) = (process.to_owned(), channel.to_owned());
                        return Err(CardProblem::Algorithms { process, channel }.at(systematic.place));
                    }
                }
                _ => self.factor(systematic, effect, rate, &mut found)?,
            }
        }
        found.is_logarithmic = algorithm == Some(true);
        Ok(found)
    }

    fn warn_of_no_effect(&mut self, systematic: &Systematic) {
        let ColumnName { channel, process } = self.names();
        let name = &systematic.name;
        self.warnings.push(format!("`{name}` has no effect on `{process}` in `{channel}`, which has no template"));
    }

    fn factor(&self, systematic: &Systematic, effect: Effect, rate: f64, found: &mut Effects) -> Result<(), CardError> {
        let name = &systematic.name;
        match (&systematic.kind, effect) {
            (SystematicKind::LogNormal | SystematicKind::LogUniform, _) => add_factor(found, name, low_high(effect)),
            (SystematicKind::GammaCount(events), Effect::Value(factor)) => {
                let sideband = Sideband { events: *events, factor };
                self.require_rate(systematic, sideband, rate)?;
                if found.sideband.replace(sideband).is_some() {
                    let reason = "the process has two of them in this channel";
                    return Err(CardProblem::Unsupported { kind: "gmN".to_owned(), reason }.at(systematic.place));
                }
                found.others.push(Modifier::new(name.clone(), ModifierData::NormFactor));
            }
            (SystematicKind::GammaMultiplier, _) => {
                self.require_one_width(systematic)?;
                found.others.push(Modifier::new(name.clone(), ModifierData::NormFactor));
            }
            (SystematicKind::TruncatedGaussian | SystematicKind::Uniform(_), Effect::Value(value)) => {
                let ColumnName { channel, process } = self.names();
                let expression = Expression {
                    text: format!("1+({})*@0", six_decimals(value)),
                    parameters: Some(vec![name.clone()]),
                };
                let own = format!("{name}_{channel}_{process}");
                found.others.push(Modifier::new(own, ModifierData::Formula(expression)));
            }
            _ => {}
        }
        Ok(())
    }

    /// Refuses a `gmN` whose events times the factor are far from the rate.
    fn require_rate(&self, systematic: &Systematic, sideband: Sideband, rate: f64) -> Result<(), CardError> {
        let Sideband { events: count, factor } = sideband;
        if (factor * count - rate).abs() <= (0.05 * rate.max(1.0)).max(factor) {
            return Ok(());
        }
        let ColumnName { channel, process } = self.names();
        let (process, channel) = (process.to_owned(), channel.to_owned());
        Err(CardProblem::GammaRate { count, factor, rate, process, channel }.at(systematic.place))
    }

    fn require_one_width(&self, systematic: &Systematic) -> Result<(), CardError> {
        let widths = systematic.effects.iter().filter_map(|effect| match effect {
            Effect::Value(width) => Some(*width),
            _ => None,
        });
        let (low, high) = widths.fold((f64::INFINITY, 0.0_f64), |(low, high), width| (low.min(width), high.max(width)));
        if low == high && high < 1.0 {
            return Ok(());
        }
        let reason = "its widths must be equal and below 1";
        Err(CardProblem::Unsupported { kind: "gmM".to_owned(), reason }.at(systematic.place))
    }

    /// Reads the templates of an uncertainty; returns whether there are any.
    fn shape(
        &mut self,
        systematic: &Systematic,
        effect: Effect,
        kind: ShapeKind,
        found: &mut Effects,
    ) -> Result<bool, CardError> {
        let name = self.card.template_names.get(&(systematic.name.clone(), self.column)).unwrap_or(&systematic.name);
        let (up, down) = (format!("{name}Up"), format!("{name}Down"));
        if kind.is_optional && self.templates.find(self.request(&up, systematic.place))?.is_none() {
            add_factor(found, &systematic.name, low_high(effect));
            return Ok(false);
        }
        let Effect::Value(effect) = effect else {
            let word = "LO/HI".to_owned();
            return Err(CardProblem::TwoValues { word, kind: systematic.kind.word() }.at(systematic.place));
        };
        let Some(up_template) = self.template(&up, systematic.place)? else { return Ok(false) };
        let Some(down_template) = self.template(&down, systematic.place)? else { return Ok(false) };
        for (template, end) in [(&up_template, &up), (&down_template, &down)] {
            self.require_bins(template, end)?;
            if template.sum <= 0.0 {
                let template_name = format!("{} {end}", self.names().process);
                return Err(CardProblem::Sum { template: template_name, sum: template.sum }.at(systematic.place));
            }
        }
        let name = systematic.name.clone();
        found.variations.push(Variation { name, effect, up: up_template, down: down_template });
        Ok(true)
    }

    fn morphed(
        &mut self,
        template: &Template,
        effects: &mut Effects,
        norm: Normalization,
    ) -> Result<Morphed, CardError> {
        let column = self.card.columns[self.column];
        if template.sum == 0.0 && !effects.variations.is_empty() {
            let ColumnName { channel, process } = self.names();
            let name = format!("{process}` in `{channel}");
            return Err(CardProblem::Sum { template: name, sum: 0.0 }.at(column.place));
        }
        let mode = match self.stats() {
            None => TemplateMode::Normalized,
            Some(McStats { keeps_norm: false, .. }) => TemplateMode::Scaled,
            Some(McStats { keeps_norm: true, .. }) => TemplateMode::AsWritten,
        };
        if mode != TemplateMode::AsWritten {
            let norms = effects.variations.iter().map(|one| (one.name.clone(), norm_factor(template, one)));
            let norms: Vec<_> = norms.filter_map(|(name, factor)| Some((name, factor?))).collect();
            norms.into_iter().for_each(|(name, factor)| add_factor(effects, &name, factor));
        }
        let (variations, is_logarithmic) = (&effects.variations[..], effects.is_logarithmic);
        let morphing = Morphing { nominal: template, variations, mode, is_logarithmic, events: norm.events };
        let mut morphed = morphing.morphed();
        if mode != TemplateMode::Normalized && norm.share != 1.0 {
            scale(&mut morphed, norm.share);
        }
        if morphed.shifts.is_empty() && mode != TemplateMode::Normalized {
            morphed.data.iter_mut().for_each(|content| *content = content.max(LOWEST));
        }
        Ok(morphed)
    }
}

fn scale(morphed: &mut Morphed, factor: f64) {
    morphed.data.iter_mut().for_each(|content| *content *= factor);
    for shift in &mut morphed.shifts {
        if let ModifierData::HistoSys { lo_data, hi_data } = &mut shift.data {
            lo_data.iter_mut().chain(hi_data).for_each(|content| *content *= factor);
        }
    }
    morphed.rule.clip = morphed.rule.clip.map(|clip| clip * factor);
}

/// Returns the factors at -1σ and +1σ of an effect.
fn low_high(effect: Effect) -> Ends<f64> {
    let [low, high] = effect.factors();
    Ends { low, high }
}

/// Multiplies the factor of the uncertainty `name`: logarithms of Combine's factors are linear in
/// those at ±1σ.
fn add_factor(found: &mut Effects, name: &str, at: Ends<f64>) {
    match found.factors.iter_mut().find(|known| known.name == name) {
        Some(known) => known.at = Ends { low: known.at.low * at.low, high: known.at.high * at.high },
        None => found.factors.push(LogNormalFactor { name: name.to_owned(), at }),
    }
}

fn log_normal(LogNormalFactor { name, at }: LogNormalFactor) -> Modifier {
    let rule = Some(InterpolationRule::CombineLogNormal);
    Modifier {
        name,
        data: ModifierData::NormSys { lo: at.low, hi: at.high },
        interpolation: ModifierInterpolation { rule, scale: None },
    }
}
