//! The flat buffers of a model, filled from a checked workspace and its parameters.

use super::error::CompileError;
use super::formulas::Derivation;
use super::responses::{histosys_response, index_of, normsys_response, scaling_factor, scaling_response};
use super::structure::SortedOrder;
use crate::formula::Formula;
use crate::interpolate::Interpolation;
use crate::model::{Model, ModelLayout, TableSpan, TemplateShifts};
use crate::parameters::Parameters;
use crate::response::{NormSysResponse, Responses};
use crate::spec::{Clipping, Expression, Modifier, ModifierData, Sample, Workspace};
use crate::yield_rules::{McStat, ScalingHistoSys, ShapeRule, TemplateErrors, YieldRules};
use std::collections::HashMap;
use std::ops::Range;

/// The tables under construction; each becomes a span of one of the two buffers.
pub(super) struct Tables {
    responses: Responses,
    channel_bin: Vec<usize>,
    channel_template: Vec<usize>,
    template_sample: Vec<usize>,
    template_cell: Vec<usize>,
    template_scale: Vec<usize>,
    scale_param: Vec<usize>,
    template_normsys: Vec<usize>,
    normsys_param: Vec<usize>,
    normsys_response: Vec<usize>,
    template_histosys: Vec<usize>,
    histosys_param: Vec<usize>,
    histosys_response: Vec<usize>,
    histosys_cell: Vec<usize>,
    template_morphing: Vec<usize>,
    morphing_param: Vec<usize>,
    morphing_cell: Vec<usize>,
    /// The text of the coefficient of each morphing term.
    coefficients: Vec<String>,
    template_bin_factor: Vec<usize>,
    bin_factor_param: Vec<usize>,
    nominal: Vec<f64>,
    normsys_hi: Vec<f64>,
    normsys_lo: Vec<f64>,
    shifts: TemplateShifts,
    morphing: Vec<f64>,
    rules: YieldRules,
}

/// What the tables are made of, beside the workspace.
pub(super) struct TableSources<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) formulas: &'a Derivation,
    pub(super) interpolation: Interpolation,
    pub(super) clip: Clipping,
}

/// The flat buffers and their layout.
pub(super) struct FlatTables {
    pub(super) indices: Vec<u32>,
    pub(super) reals: Vec<f64>,
    pub(super) shifts: TemplateShifts,
    pub(super) layout: ModelLayout,
    pub(super) samples: Vec<String>,
    pub(super) coefficients: Vec<String>,
    pub(super) responses: Responses,
    pub(super) rules: YieldRules,
}

/// Fills the buffers. Names and lengths have been checked.
pub(super) fn flatten(
    workspace: &Workspace,
    order: &SortedOrder,
    sources: &TableSources<'_>,
) -> Result<FlatTables, CompileError> {
    let &TableSources { parameters, formulas, interpolation, clip } = sources;
    let first_param: HashMap<&str, usize> = parameters.sets.iter().map(|set| (set.name.as_str(), set.first)).collect();
    let mut samples: Vec<&str> =
        workspace.channels.iter().flat_map(|c| c.samples.iter().map(|s| s.name.as_str())).collect();
    samples.sort_unstable();
    samples.dedup();

    let mut tables = Tables::new(Responses::new(interpolation), clip.samples, clip.bins);
    let mut staterror_bins: HashMap<&str, usize> = HashMap::new();
    let mut bin = 0;
    for (&c, sorted) in order.channels.iter().zip(&order.samples) {
        let channel = &workspace.channels[c];
        tables.begin_channel(bin);
        for &s in sorted {
            let sample = &channel.samples[s];
            tables.template_sample.push(samples.partition_point(|name| *name < sample.name.as_str()));
            let place = TemplatePlace { parameters: &first_param, staterror_bins: &staterror_bins, at: [c, s] };
            tables.add_template(sample, &place, formulas);
            tables.add_shape_rule(sample, &first_param, clip.templates);
        }
        let n_bins = channel.samples[0].data.len();
        let mut names: Vec<&str> = channel.samples.iter().flat_map(staterror_names).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            *staterror_bins.entry(name).or_insert(0) += n_bins;
        }
        bin += n_bins;
    }
    tables.end(bin);
    tables.into_flat(parameters, samples.into_iter().map(str::to_owned).collect())
}

fn staterror_names(sample: &Sample) -> impl Iterator<Item = &str> {
    sample.modifiers.iter().filter(|m| matches!(m.data, ModifierData::StatError(_))).map(|m| m.name.as_str())
}

/// Where a template is, and what its modifiers need to know.
struct TemplatePlace<'a> {
    /// The first parameter of each name.
    parameters: &'a HashMap<&'a str, usize>,
    /// For each staterror name, the bins it has in the channels before this one.
    staterror_bins: &'a HashMap<&'a str, usize>,
    /// Channel and sample in the document.
    at: [usize; 2],
}

impl Tables {
    /// Returns empty tables of modifiers with these responses, and further ones as they come.
    pub(super) fn new(responses: Responses, clip_samples: Option<f64>, clip_bins: Option<f64>) -> Self {
        Self {
            responses,
            channel_bin: Vec::new(),
            channel_template: Vec::new(),
            template_sample: Vec::new(),
            template_cell: Vec::new(),
            template_scale: Vec::new(),
            scale_param: Vec::new(),
            template_normsys: Vec::new(),
            normsys_param: Vec::new(),
            normsys_response: Vec::new(),
            template_histosys: Vec::new(),
            histosys_param: Vec::new(),
            histosys_response: Vec::new(),
            histosys_cell: Vec::new(),
            template_morphing: Vec::new(),
            morphing_param: Vec::new(),
            morphing_cell: Vec::new(),
            coefficients: Vec::new(),
            template_bin_factor: Vec::new(),
            bin_factor_param: Vec::new(),
            nominal: Vec::new(),
            normsys_hi: Vec::new(),
            normsys_lo: Vec::new(),
            shifts: TemplateShifts::default(),
            morphing: Vec::new(),
            rules: YieldRules { clip_samples, clip_bins, ..YieldRules::default() },
        }
    }

    /// Begins a channel whose first bin is `bin`.
    pub(super) fn begin_channel(&mut self, bin: usize) {
        self.channel_bin.push(bin);
        self.channel_template.push(self.template_sample.len());
    }

    /// Ends the last channel of a model with `n_bins` bins.
    pub(super) fn end(&mut self, n_bins: usize) {
        self.begin_channel(n_bins);
        self.end_template_starts();
    }

    fn end_template_starts(&mut self) {
        self.template_cell.push(self.nominal.len());
        self.template_scale.push(self.scale_param.len());
        self.template_normsys.push(self.normsys_param.len());
        self.template_histosys.push(self.histosys_param.len());
        self.template_morphing.push(self.morphing_param.len());
        self.template_bin_factor.push(self.bin_factor_param.len());
    }

    /// Adds the template of a sample.
    fn add_template(&mut self, sample: &Sample, place: &TemplatePlace<'_>, formulas: &Derivation) {
        self.end_template_starts();
        self.nominal.extend_from_slice(&sample.data);
        let mut sorted: Vec<_> = sample.modifiers.iter().enumerate().collect();
        sorted.sort_by_key(|(_, m)| m.name.as_str());
        for (m, modifier) in sorted {
            let name = modifier.name.as_str();
            // The names of formulas are not those of parameters.
            let param = || place.parameters[name];
            let derived = formulas.of_modifier([place.at[0], place.at[1], m]);
            match &modifier.data {
                ModifierData::Formula(_) => self.scale_param.extend_from_slice(derived),
                ModifierData::Morphing(terms) => {
                    for (term, index) in terms.iter().zip(derived) {
                        self.morphing_param.push(*index);
                        self.coefficients.push(named_text(&term.coefficient));
                        self.morphing_cell.push(self.morphing.len());
                        self.morphing.extend_from_slice(&term.data);
                    }
                }
                ModifierData::NormFactor | ModifierData::Lumi => self.scale_param.push(param()),
                ModifierData::NormSys { lo, hi } => {
                    self.normsys_param.push(param());
                    let response = normsys_response(self.responses.normsys[0], modifier.interpolation);
                    self.normsys_response.push(index_of(&mut self.responses.normsys, response));
                    self.normsys_lo.push(*lo);
                    self.normsys_hi.push(*hi);
                }
                // `add_shape_rule` adds those that scale.
                ModifierData::HistoSys { .. } if scaling_response(modifier.interpolation).is_some() => {}
                ModifierData::HistoSys { lo_data, hi_data } => {
                    self.histosys_param.push(param());
                    let response = histosys_response(self.responses.histosys[0], modifier.interpolation);
                    self.histosys_response.push(index_of(&mut self.responses.histosys, response));
                    let [up, down] = [hi_data, lo_data].map(|data| data.iter().zip(&sample.data).map(|(y, n)| y - n));
                    self.histosys_cell.push(self.shifts.push(up, down));
                }
                ModifierData::StatError(_) => {
                    self.bin_factor_param.push(param() + place.staterror_bins.get(name).copied().unwrap_or(0));
                }
                ModifierData::ShapeSys(_) | ModifierData::ShapeFactor => self.bin_factor_param.push(param()),
                ModifierData::McStat(errors) => {
                    self.add_errors(param() as u32, errors.clone());
                }
            }
        }
    }

    /// Adds what becomes of the last template after its shifts, if anything does; `clip` is the
    /// lowest value of templates with a histosys.
    fn add_shape_rule(&mut self, sample: &Sample, parameters: &HashMap<&str, usize>, clip: Option<f64>) {
        let mut sorted: Vec<&Modifier> = sample.modifiers.iter().collect();
        sorted.sort_by_key(|modifier| modifier.name.as_str());
        let histosys = || sorted.iter().filter(|modifier| matches!(modifier.data, ModifierData::HistoSys { .. }));
        let scaling = histosys().filter_map(|modifier| {
            let response = scaling_response(modifier.interpolation)?;
            scaling_histosys(sample, modifier, parameters[modifier.name.as_str()] as u32, response)
        });
        let rule = ShapeRule {
            template: self.template_sample.len() - 1,
            scaling: scaling.collect(),
            clip: sample.template.clip.or(clip.filter(|_| histosys().next().is_some())),
            total: sample.template.normalize.then(|| sample.data.iter().sum()),
        };
        if !rule.scaling.is_empty() || rule.clip.is_some() || rule.total.is_some() {
            self.rules.shapes.push(rule);
        }
    }

    /// Adds the statistical uncertainties of the last template, in the channel begun last.
    fn add_errors(&mut self, first_param: u32, errors: Vec<f64>) {
        let (channel, template) = (self.channel_bin.len() - 1, self.template_sample.len() - 1);
        let part = TemplateErrors { template, errors };
        let mut known = self.rules.mc_stats.iter_mut();
        match known.find(|known| known.channel == channel && known.first_param == first_param) {
            Some(known) => known.errors.push(part),
            None => self.rules.mc_stats.push(McStat { channel, first_param, errors: vec![part] }),
        }
    }

    /// Copies what becomes of the yields of template `template` of `model` to the last template.
    fn copy_rules(&mut self, model: &Model, template: usize, bins: &Range<usize>) -> Result<(), CompileError> {
        let n_bins = model.part(model.layout.template_cell, template).len();
        if let Some(rule) = model.rules.shape(template) {
            if rule.total.is_some() && bins.len() < n_bins {
                let channel = model.table(model.layout.channel_template);
                let channel = channel.partition_point(|&start| start as usize <= template) - 1;
                let sample = model.table(model.layout.template_sample)[template] as usize;
                let (channel, sample) = (model.channels[channel].clone(), model.samples[sample].clone());
                return Err(CompileError::MaskedNormalised { channel, sample });
            }
            self.rules.shapes.push(rule.part(self.template_sample.len() - 1, bins));
        }
        for mc_stat in &model.rules.mc_stats {
            for part in mc_stat.errors.iter().filter(|part| part.template == template) {
                let first_param = mc_stat.first_param + bins.start as u32;
                self.add_errors(first_param, part.errors[bins.clone()].to_vec());
            }
        }
        Ok(())
    }

    /// Appends the bins `bins` of template `template` of `model`, counted from the channel's first.
    ///
    /// # Errors
    /// A template that is normalised over more bins than these.
    pub(super) fn copy_template(
        &mut self,
        model: &Model,
        template: usize,
        bins: Range<usize>,
    ) -> Result<(), CompileError> {
        let layout = &model.layout;
        self.end_template_starts();
        self.template_sample.push(model.table(layout.template_sample)[template] as usize);
        let first = model.part(layout.template_cell, template).start;
        self.nominal.extend_from_slice(&model.values(layout.nominal)[first + bins.start..first + bins.end]);
        let copy = |params: TableSpan, i: usize| model.table(params)[i] as usize;
        self.scale_param.extend(model.part(layout.template_scale, template).map(|i| copy(layout.scale_param, i)));
        for i in model.part(layout.template_normsys, template) {
            self.normsys_param.push(copy(layout.normsys_param, i));
            self.normsys_response.push(copy(layout.normsys_response, i));
            self.normsys_lo.push(model.values(layout.normsys_lo)[i]);
            self.normsys_hi.push(model.values(layout.normsys_hi)[i]);
        }
        for i in model.part(layout.template_histosys, template) {
            self.histosys_param.push(copy(layout.histosys_param, i));
            self.histosys_response.push(copy(layout.histosys_response, i));
            let first = copy(layout.histosys_cell, i);
            let cells = first + bins.start..first + bins.end;
            let [up, down] = [&model.shifts.up, &model.shifts.down].map(|values| values[cells.clone()].iter().copied());
            self.histosys_cell.push(self.shifts.push(up, down));
        }
        for i in model.part(layout.template_morphing, template) {
            self.morphing_param.push(copy(layout.morphing_param, i));
            self.coefficients.push(model.coefficients[i].clone());
            self.morphing_cell.push(self.morphing.len());
            let first = copy(layout.morphing_cell, i);
            self.morphing.extend_from_slice(&model.values(layout.morphing)[first + bins.start..first + bins.end]);
        }
        let factors = model.part(layout.template_bin_factor, template);
        self.bin_factor_param.extend(factors.map(|i| copy(layout.bin_factor_param, i) + bins.start));
        self.copy_rules(model, template, &bins)
    }

    /// Returns for each parameter of `model` (P) whether a template depends on it.
    pub(super) fn used_params(&self, model: &Model) -> Vec<bool> {
        let mut used = vec![false; model.n_params()];
        for &index in self.scale_param.iter().chain(&self.morphing_param) {
            model.parameters_of(index as u32).for_each(|param| used[param as usize] = true);
        }
        for &param in self.normsys_param.iter().chain(&self.histosys_param) {
            used[param] = true;
        }
        for scaling in self.rules.shapes.iter().flat_map(|shape| &shape.scaling) {
            used[scaling.param as usize] = true;
        }
        for McStat { first_param, errors, .. } in &self.rules.mc_stats {
            used[*first_param as usize..][..errors[0].errors.len()].fill(true);
        }
        for (channel, bins) in self.channel_bin.windows(2).enumerate() {
            let templates = self.channel_template[channel]..self.channel_template[channel + 1];
            let factors = self.template_bin_factor[templates.start]..self.template_bin_factor[templates.end];
            for &first in &self.bin_factor_param[factors] {
                used[first..first + bins[1] - bins[0]].fill(true);
            }
        }
        used
    }

    /// Joins the tables. An index that is too large for a table is an error.
    pub(super) fn into_flat(
        mut self,
        parameters: &Parameters,
        samples: Vec<String>,
    ) -> Result<FlatTables, CompileError> {
        self.histosys_cell.push(self.shifts.up.len());
        self.morphing_cell.push(self.morphing.len());
        let mut buffers = Buffers::default();
        let constrained: Vec<usize> = (0..parameters.len()).filter(|&p| parameters.constraint[p].is_some()).collect();
        let layout = ModelLayout {
            channel_bin: buffers.indices(&self.channel_bin)?,
            channel_template: buffers.indices(&self.channel_template)?,
            template_sample: buffers.indices(&self.template_sample)?,
            template_cell: buffers.indices(&self.template_cell)?,
            template_scale: buffers.indices(&self.template_scale)?,
            scale_param: buffers.indices(&self.scale_param)?,
            template_normsys: buffers.indices(&self.template_normsys)?,
            normsys_param: buffers.indices(&self.normsys_param)?,
            normsys_response: buffers.indices(&self.normsys_response)?,
            template_histosys: buffers.indices(&self.template_histosys)?,
            histosys_param: buffers.indices(&self.histosys_param)?,
            histosys_response: buffers.indices(&self.histosys_response)?,
            histosys_cell: buffers.indices(&self.histosys_cell)?,
            template_morphing: buffers.indices(&self.template_morphing)?,
            morphing_param: buffers.indices(&self.morphing_param)?,
            morphing_cell: buffers.indices(&self.morphing_cell)?,
            template_bin_factor: buffers.indices(&self.template_bin_factor)?,
            bin_factor_param: buffers.indices(&self.bin_factor_param)?,
            constraint_param: buffers.indices(&constrained)?,
            nominal: buffers.reals(&self.nominal),
            normsys_hi: buffers.reals(&self.normsys_hi),
            normsys_lo: buffers.reals(&self.normsys_lo),
            morphing: buffers.reals(&self.morphing),
        };
        let Buffers { indices, reals } = buffers;
        let Self { coefficients, shifts, responses, rules, .. } = self;
        Ok(FlatTables { indices, reals, shifts, layout, samples, coefficients, responses, rules })
    }
}

/// Returns the text of a coefficient that was parsed, with names in place of positions.
fn named_text(coefficient: &Expression) -> String {
    let arguments = coefficient.parameters.as_deref().unwrap_or_default();
    Formula::parse(&coefficient.text, arguments)
        .map_or_else(|_| coefficient.text.clone(), |formula| formula.named_text())
}

/// Returns the factors of a histosys of `sample` that scales; its yields have been checked.
fn scaling_histosys(
    sample: &Sample,
    modifier: &Modifier,
    param: u32,
    response: NormSysResponse,
) -> Option<ScalingHistoSys> {
    let ModifierData::HistoSys { lo_data, hi_data } = &modifier.data else { return None };
    let rule = modifier.interpolation.rule?;
    let bins = lo_data.iter().zip(hi_data).zip(&sample.data);
    let factors = bins.map(|((&lo, &hi), &nominal)| scaling_factor(rule, nominal, [lo, hi]));
    Some(ScalingHistoSys { param, response, factors: factors.collect::<Option<_>>()? })
}

#[derive(Default)]
struct Buffers {
    indices: Vec<u32>,
    reals: Vec<f64>,
}

impl Buffers {
    fn indices(&mut self, table: &[usize]) -> Result<TableSpan, CompileError> {
        let start = self.indices.len();
        for &i in table {
            let small = u32::try_from(i);
            let too_large = CompileError::TooLarge { what: "table entries", count: i, limit: u32::MAX as usize };
            self.indices.push(small.map_err(|_| too_large)?);
        }
        Ok(TableSpan { start, len: table.len() })
    }

    fn reals(&mut self, table: &[f64]) -> TableSpan {
        let start = self.reals.len();
        self.reals.extend_from_slice(table);
        TableSpan { start, len: table.len() }
    }
}
