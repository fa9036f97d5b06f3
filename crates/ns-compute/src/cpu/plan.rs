//! A model laid out for the CPU bodies: bins padded to whole vectors, and for every modifier the
//! column of its derivative.
//!
//! Made once per model and shared by all evaluators of it. The columns of a channel are the global
//! parameters that act on it, so that the Jacobian is dense inside a channel and absent outside it.
//!
//! Legend: P parameters, G global and L local parameters (see `ns_core::curvature`), C channels, T
//! templates.

use super::elimination;
use super::factors::NormSysTable;
use super::rules::{McStatPlan, ShapePlan};
use ns_core::Constraint;
use ns_core::SampleSlot;
use ns_core::curvature::{Clique, Partition};
use ns_core::derived::DerivedQuantities;
use ns_core::interpolate::HistoSysInterpolation;
use ns_core::model::{Model, TemplateShifts};
use ns_core::response::HistoSysResponse;
use ns_core::shape::Shape;
use ns_core::templates::Inputs;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The cost of adding one element of a matrix in its place, in elements of a product.
const SCATTERED: usize = 8;

/// Bins are padded to a multiple of this.
pub(crate) const PAD: usize = TemplateShifts::PADDING;

/// At most this many (padded) bins of a channel are worked on at once, so that their Jacobian stays
/// in cache.
pub(crate) const TILE: usize = 64;

/// A model, laid out for evaluation.
#[derive(Debug, Clone)]
pub struct ModelPlan {
    /// P
    pub(crate) n_params: usize,
    /// P + D, the length of an extended point.
    pub(crate) n_extended: usize,
    /// The partition of the parameters.
    pub(crate) outer_partition: Arc<Partition>,
    /// The partition of an extended point, whose derived quantities are the last global positions.
    pub(crate) partition: Arc<Partition>,
    pub(crate) derived: DerivedQuantities,
    /// For each parameter (P), whether formulas or morphing terms depend on it.
    pub(crate) moves_formulas: Vec<bool>,
    pub(crate) channels: Vec<ChannelPlan>,
    pub(crate) templates: Vec<TemplatePlan>,
    /// Nominal yields, padded.
    pub(crate) nominal: Vec<f64>,
    /// Scale modifiers: parameter and column.
    pub(crate) scales: Vec<ScalarUse>,
    /// Normsys modifiers: parameter and column, beside `normsys_table`.
    pub(crate) normsys: Vec<ScalarUse>,
    pub(crate) normsys_table: NormSysTable,
    /// Histosys modifiers.
    pub(crate) histosys: Vec<HistoSysUse>,
    pub(crate) histosys_rule: HistoSysInterpolation,
    /// Parameters that any histosys of the model's rule uses, ascending.
    pub(crate) histosys_params: Vec<u32>,
    /// The weights of histosys with a response of their own.
    pub(crate) own_weights: Vec<OwnWeights>,
    /// Template differences hi - nominal and lo - nominal, padded: those of the model.
    pub(crate) shifts: Arc<TemplateShifts>,
    /// Morphing terms.
    pub(crate) morphs: Vec<MorphingUse>,
    /// Indices of extended points that any morphing term uses, ascending.
    pub(crate) morphing_params: Vec<u32>,
    /// Templates of the morphing terms, padded.
    pub(crate) morphing: Vec<f64>,
    pub(crate) bin_factors: Vec<BinFactorUse>,
    /// Distinct global positions that each template's scalar and histosys modifiers act on,
    /// ascending, back to back.
    pub(crate) template_positions: Vec<u32>,
    pub(crate) terms: Vec<ConstraintTerm>,
    /// Templates that are not nominal plus shifts.
    pub(crate) shapes: Vec<ShapePlan>,
    /// The lowest yields of samples and of their sums.
    pub(crate) clip_samples: Option<f64>,
    pub(crate) clip_bins: Option<f64>,
    /// Whether the model has any of [`ns_core::yield_rules`], and whether templates or sums have
    /// limits.
    pub(crate) has_rules: bool,
    pub(crate) has_limits: bool,
}

/// A channel's place in the tables.
#[derive(Debug, Clone)]
pub(crate) struct ChannelPlan {
    /// Its bins among the model's.
    pub(crate) bins: Range<usize>,
    /// Number of bins, padded.
    pub(crate) width: usize,
    pub(crate) templates: Range<usize>,
    /// Global position of each column, ascending.
    pub(crate) columns: Vec<u32>,
    /// Local parameters per bin (m), and the position of the first among all local parameters: bin
    /// b, slot s is `first_local + b·m + s`.
    pub(crate) n_slots: usize,
    pub(crate) first_local: usize,
    /// Block of the first bin in the partition.
    pub(crate) first_block: usize,
    /// Statistical uncertainties of the sum.
    pub(crate) mc_stats: Vec<McStatPlan>,
    /// Local per-bin factors that every template has once: they scale the expected count itself.
    pub(crate) shared_factors: Vec<BinFactorUse>,
    /// Whether most global parameters act on most of its templates, so that the second derivatives
    /// of all templates together are a product of matrices.
    pub(crate) is_dense: bool,
}

/// A template's modifiers, as ranges of the plan's lists.
#[derive(Debug, Clone)]
pub(crate) struct TemplatePlan {
    /// Offset of its padded nominal yields.
    pub(crate) cells: usize,
    pub(crate) scales: Range<usize>,
    pub(crate) normsys: Range<usize>,
    pub(crate) histosys: Range<usize>,
    pub(crate) morphs: Range<usize>,
    pub(crate) bin_factors: Range<usize>,
    pub(crate) positions: Range<usize>,
    /// Its place among the plan's shapes; it has no histosys and no morphing terms then.
    pub(crate) shape: Option<usize>,
    /// Whether the yields before shifts and factors are those of a point, and not the nominal ones.
    pub(crate) is_moved: bool,
}

/// A modifier that scales a whole template.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScalarUse {
    pub(crate) param: u32,
    /// Column in the channel's Jacobian.
    pub(crate) column: u32,
    /// Index into the template's positions.
    pub(crate) slot: u32,
}

/// A modifier that shifts a template.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoSysUse {
    pub(crate) param: u32,
    /// Place of its weights among those of a point: the parameter, or after all parameters if it
    /// has a response of its own.
    pub(crate) weight: u32,
    pub(crate) column: u32,
    pub(crate) slot: u32,
    /// Offset of its padded differences.
    pub(crate) cells: u32,
}

/// The weights of a parameter's histosys with a response of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OwnWeights {
    pub(crate) param: u32,
    pub(crate) response: HistoSysResponse,
}

/// A term that is linear in an entry of the extended point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MorphingUse {
    pub(crate) param: u32,
    pub(crate) column: u32,
    pub(crate) slot: u32,
    /// Offset of its padded template.
    pub(crate) cells: u32,
}

/// A modifier with one factor per bin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BinFactorUse {
    /// Parameter of the channel's first bin.
    pub(crate) first_param: u32,
    pub(crate) target: BinFactorTarget,
}

/// The column of the derivative with respect to a per-bin factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinFactorTarget {
    /// The factors of one bin only: slot among the local parameters of that bin.
    Local { slot: u32 },
    /// Shared between channels: column of the first bin.
    Global { first_column: u32 },
}

/// A constraint term.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstraintTerm {
    pub(crate) param: u32,
    pub(crate) constraint: Constraint,
}

impl ModelPlan {
    /// Lays out `model`.
    #[must_use]
    pub fn new(model: &Model) -> Self {
        let locals = LocalParams::find(model);
        let outer_partition = Arc::new(Partition::new(model.n_params(), &locals.blocks));
        let partition = match model.derived.is_empty() {
            true => Arc::clone(&outer_partition),
            false => Arc::new(Partition::new(model.n_extended(), &locals.blocks)),
        };
        let mut plan = Self {
            n_params: model.n_params(),
            n_extended: model.n_extended(),
            outer_partition,
            derived: model.derived.clone(),
            moves_formulas: moves_formulas(model),
            channels: Vec::new(),
            templates: Vec::new(),
            nominal: Vec::new(),
            scales: Vec::new(),
            normsys: Vec::new(),
            normsys_table: NormSysTable::new(model),
            histosys: Vec::new(),
            histosys_rule: model.interpolation.histosys,
            histosys_params: standard_params(model),
            own_weights: Vec::new(),
            shifts: Arc::clone(&model.shifts),
            morphs: Vec::new(),
            morphing_params: sorted_distinct(model.table(model.layout.morphing_param).to_vec()),
            morphing: Vec::new(),
            bin_factors: Vec::new(),
            template_positions: Vec::new(),
            terms: constraint_terms(model),
            shapes: Vec::new(),
            clip_samples: model.rules.clip_samples,
            clip_bins: model.rules.clip_bins,
            has_rules: !model.rules.is_empty(),
            has_limits: model.rules.clip_bins.is_some() || model.rules.shapes.iter().any(|rule| rule.clip.is_some()),
            partition,
        };
        for channel in 0..model.channels.len() {
            plan.add_channel(model, channel, &locals);
        }
        plan.find_sparsity();
        plan
    }

    /// Finds out whether few parameters meet. Then nothing is added to matrices that is over all
    /// global parameters. Derived quantities are not looked into.
    fn find_sparsity(&mut self) {
        if !self.derived.is_empty() {
            return;
        }
        let blocks = |channel: &ChannelPlan| match channel.n_slots {
            0 => 0..0,
            _ => channel.first_block..channel.first_block + channel.bins.len(),
        };
        let cliques: Vec<Clique<'_>> =
            self.channels.iter().map(|channel| Clique { global: &channel.columns, blocks: blocks(channel) }).collect();
        if let Some(sparsity) = elimination::sparsity(&self.partition, &cliques) {
            let partition = Partition { sparsity: Some(sparsity), ..Partition::clone(&self.partition) };
            self.partition = Arc::new(partition);
            self.outer_partition = Arc::clone(&self.partition);
            self.channels.iter_mut().for_each(|channel| channel.is_dense = false);
        }
    }

    /// Returns the partition into global and local parameters.
    #[must_use]
    #[expect(clippy::misnamed_getters, reason = "callers know the parameters only")]
    pub fn partition(&self) -> &Arc<Partition> {
        &self.outer_partition
    }

    /// Replaces the inputs by `values` (M).
    pub(crate) fn set_inputs(&mut self, inputs: &Inputs, values: &[f64]) {
        let shifts = Arc::make_mut(&mut self.shifts);
        for channel in &self.channels {
            let n_bins = channel.bins.len();
            for t in channel.templates.clone() {
                let Some(input) = inputs.of_template(t) else { continue };
                let nominal = &values[input.nominal..input.nominal + n_bins];
                self.nominal[self.templates[t].cells..][..n_bins].copy_from_slice(nominal);
                for histosys in &input.histosys {
                    let cells = self.histosys[histosys.entry].cells as usize;
                    histosys.hi.differences(values, nominal, &mut shifts.up[cells..][..n_bins]);
                    histosys.lo.differences(values, nominal, &mut shifts.down[cells..][..n_bins]);
                }
                for morphing in &input.morphing {
                    let cells = self.morphs[morphing.entry].cells as usize;
                    let term = &values[morphing.start..morphing.start + n_bins];
                    self.morphing[cells..][..n_bins].copy_from_slice(term);
                }
            }
        }
        inputs.each_normsys(values, |entry, factor| self.normsys_table.set(entry, factor));
    }

    /// Returns the number of pairs of histosys weights of a point.
    pub(crate) fn n_weights(&self) -> usize {
        self.n_params + self.own_weights.len()
    }

    /// Returns the place of the weights of histosys `entry`, of parameter `param`.
    fn weight_of(&mut self, model: &Model, entry: usize, param: u32) -> u32 {
        let response = model.histosys_response(entry);
        if response == model.responses.histosys[0] {
            return param;
        }
        let own = OwnWeights { param, response };
        let known = self.own_weights.iter().position(|known| *known == own);
        let place = known.unwrap_or_else(|| {
            self.own_weights.push(own);
            self.own_weights.len() - 1
        });
        (self.n_params + place) as u32
    }

    /// Returns B, the number of bins.
    pub(crate) fn n_bins(&self) -> usize {
        self.channels.last().map_or(0, |channel| channel.bins.end)
    }

    fn add_channel(&mut self, model: &Model, channel: usize, locals: &LocalParams) {
        let bins = model.channel_bins(channel);
        let templates = model.channel_templates(channel);
        let positions = templates.clone().flat_map(|t| global_positions(model, &self.partition, locals, t, bins.len()));
        let shared = global_sets(model, locals, channel).map(|param| self.partition.position[param as usize]);
        let columns = sorted_distinct(positions.chain(shared).collect());
        let sets = &locals.sets[channel];
        let first_block = locals.first_block[channel];
        let first_local = if sets.is_empty() { 0 } else { self.partition.block(first_block).start };
        for t in templates.clone() {
            self.add_template(model, t, &columns, sets);
        }
        let width = bins.len().next_multiple_of(PAD);
        let n_slots = sets.len();
        let target = |first: u32| self.target(first, &columns, sets);
        let mc_stats = model.rules.mc_stats_of(channel).map(|mc| McStatPlan::new(mc, target(mc.first_param)));
        let mc_stats = mc_stats.collect();
        let is_dense = self.is_dense(templates.clone());
        let shared_factors = self.shared_factors(templates.clone());
        self.channels.push(ChannelPlan {
            bins,
            width,
            templates,
            columns,
            n_slots,
            first_local,
            first_block,
            mc_stats,
            shared_factors,
            is_dense,
        });
    }

    /// Returns the local per-bin factors that each of `templates` has once; none in a model with
    /// rules, where the expected count is not only the sum of templates.
    fn shared_factors(&self, templates: Range<usize>) -> Vec<BinFactorUse> {
        let is_local = |factor: &&BinFactorUse| matches!(factor.target, BinFactorTarget::Local { .. });
        let factors = |t: usize| &self.bin_factors[self.templates[t].bin_factors.clone()];
        let is_shared = |factor: &&BinFactorUse| {
            templates.clone().all(|t| factors(t).iter().filter(|other| other.target == factor.target).count() == 1)
        };
        let first = templates.clone().next().filter(|_| !self.has_rules);
        first.into_iter().flat_map(factors).filter(is_local).filter(is_shared).copied().collect()
    }

    /// Returns `true` if a product of matrices costs less than adding the second derivatives of
    /// each of `templates` where they belong.
    fn is_dense(&self, templates: Range<usize>) -> bool {
        let of_template = |t: usize| self.templates[t].positions.len().pow(2);
        let apart: usize = templates.clone().map(of_template).sum();
        SCATTERED * apart > 2 * templates.len() * self.partition.n_global().pow(2)
    }

    fn add_template(&mut self, model: &Model, t: usize, columns: &[u32], local_sets: &[u32]) {
        let layout = &model.layout;
        let partition = self.partition.clone();
        let position = |param: u32| partition.position[param as usize];
        let column = |param: u32| columns.partition_point(|&c| c < position(param)) as u32;
        let scales = model.part(layout.template_scale, t);
        let normsys = model.part(layout.template_normsys, t);
        let rule = model.rules.shape(t);
        let unless_shaped = |entries: Range<usize>| if rule.is_some() { entries.end..entries.end } else { entries };
        let histosys = unless_shaped(model.part(layout.template_histosys, t));
        let params_of = |span, range: &Range<usize>| model.table(span)[range.clone()].to_vec();
        let scale_params = params_of(layout.scale_param, &scales);
        let normsys_params = params_of(layout.normsys_param, &normsys);
        let histosys_params = params_of(layout.histosys_param, &histosys);
        let morphs = unless_shaped(model.part(layout.template_morphing, t));
        let morphing_params = params_of(layout.morphing_param, &morphs);
        let shape = rule.map(|rule| Shape::of(model, rule));
        let shape_params = shape.as_ref().map_or(&[][..], |shape| &shape.params);
        let shifts = histosys_params.iter().chain(&morphing_params).chain(shape_params);
        let all = scale_params.iter().chain(&normsys_params).chain(shifts);
        let distinct = sorted_distinct(all.map(|&p| position(p)).collect());
        let slot = |param: u32| distinct.partition_point(|&c| c < position(param)) as u32;
        let scalar = |param: u32| ScalarUse { param, column: column(param), slot: slot(param) };
        let scalar_uses: Vec<ScalarUse> = scale_params.into_iter().map(scalar).collect();
        let normsys_uses: Vec<ScalarUse> = normsys_params.into_iter().map(scalar).collect();
        let cells = pad_into(&mut self.nominal, &model.values(layout.nominal)[model.part(layout.template_cell, t)]);
        let histosys_uses: Vec<HistoSysUse> = histosys
            .zip(histosys_params)
            .map(|(entry, param)| self.add_histosys(model, entry, scalar(param)))
            .collect();
        let morphing_uses: Vec<MorphingUse> =
            morphs.zip(morphing_params).map(|(entry, param)| self.add_morph(model, entry, scalar(param))).collect();
        let factor_range = model.part(layout.template_bin_factor, t);
        let bin_factor =
            |&first_param: &u32| BinFactorUse { first_param, target: self.target(first_param, columns, local_sets) };
        let bin_factors: Vec<_> = model.table(layout.bin_factor_param)[factor_range].iter().map(bin_factor).collect();
        let is_moved = shape.is_some() || !morphing_uses.is_empty();
        let shape = shape.map(|shape| {
            let columns = shape.params.iter().map(|&param| column(param)).collect();
            let slots = shape.params.iter().map(|&param| slot(param)).collect();
            self.shapes.push(ShapePlan { shape, cells, columns, slots });
            self.shapes.len() - 1
        });
        self.templates.push(TemplatePlan {
            cells,
            scales: extend(&mut self.scales, scalar_uses),
            normsys: extend(&mut self.normsys, normsys_uses),
            histosys: extend(&mut self.histosys, histosys_uses),
            morphs: extend(&mut self.morphs, morphing_uses),
            bin_factors: extend(&mut self.bin_factors, bin_factors),
            positions: extend(&mut self.template_positions, distinct),
            shape,
            is_moved,
        });
    }

    /// Takes over the numbers of `model`, which [`Model::set_sample`] made with `slot` of the model
    /// of this plan.
    pub(crate) fn set_sample(&mut self, model: &Model, slot: &SampleSlot) {
        for template in slot.templates() {
            let start = self.templates[template].cells;
            let yields = &model.values(model.layout.nominal)[model.part(model.layout.template_cell, template)];
            self.nominal[start..start + yields.len()].copy_from_slice(yields);
        }
        for term in &mut self.terms {
            if let Some(constraint) = model.parameters.constraint[term.param as usize] {
                term.constraint = constraint;
            }
        }
    }

    /// Adds the variations of the histosys `entry`.
    fn add_histosys(&mut self, model: &Model, entry: usize, used: ScalarUse) -> HistoSysUse {
        let ScalarUse { param, column, slot } = used;
        let cells = model.table(model.layout.histosys_cell)[entry];
        HistoSysUse { param, weight: self.weight_of(model, entry, param), column, slot, cells }
    }

    /// Adds the template of the morphing term `entry`.
    fn add_morph(&mut self, model: &Model, entry: usize, used: ScalarUse) -> MorphingUse {
        let (layout, ScalarUse { param, column, slot }) = (&model.layout, used);
        let term = &model.values(layout.morphing)[model.part(layout.morphing_cell, entry)];
        MorphingUse { param, column, slot, cells: pad_into(&mut self.morphing, term) as u32 }
    }

    /// Returns where the derivatives with respect to the per-bin parameters from `first_param` on
    /// go, in a channel with these columns and local sets.
    fn target(&self, first_param: u32, columns: &[u32], local_sets: &[u32]) -> BinFactorTarget {
        match local_sets.iter().position(|&set| set == first_param) {
            Some(slot) => BinFactorTarget::Local { slot: slot as u32 },
            None => {
                let position = self.partition.position[first_param as usize];
                BinFactorTarget::Global { first_column: columns.partition_point(|&c| c < position) as u32 }
            }
        }
    }
}

/// Per-bin factors that act on one bin only: those whose parameters are used once.
struct LocalParams {
    /// First parameters of the local sets of each channel.
    sets: Vec<Vec<u32>>,
    /// First block of each channel.
    first_block: Vec<usize>,
    /// Parameters of each block: one block per bin of a channel that has local sets.
    blocks: Vec<Vec<u32>>,
}

impl LocalParams {
    fn find(model: &Model) -> Self {
        let firsts_of = |channel: usize| {
            let templates = model.channel_templates(channel);
            let ranges = templates.map(|t| model.part(model.layout.template_bin_factor, t));
            let factors = ranges.flat_map(|r| model.table(model.layout.bin_factor_param)[r].to_vec());
            sorted_distinct(factors.chain(model.rules.mc_stats_of(channel).map(|mc| mc.first_param)).collect())
        };
        let firsts: Vec<Vec<u32>> = (0..model.channels.len()).map(firsts_of).collect();
        let mut uses: HashMap<u32, usize> = HashMap::new();
        for &first in firsts.iter().flatten() {
            *uses.entry(first).or_default() += 1;
        }
        // What formulas depend on acts on more than its own bin.
        let is_argument = model.derived.arguments(model.n_params());
        let mut locals = Self { sets: Vec::new(), first_block: Vec::new(), blocks: Vec::new() };
        for (channel, firsts) in firsts.into_iter().enumerate() {
            let n_bins = model.channel_bins(channel).len();
            let is_argument = |first: u32| is_argument[first as usize..first as usize + n_bins].contains(&true);
            let is_local = |first: &u32| uses[first] == 1 && !is_argument(*first);
            let sets: Vec<u32> = firsts.into_iter().filter(is_local).collect();
            locals.first_block.push(locals.blocks.len());
            if !sets.is_empty() {
                let n_bins = model.channel_bins(channel).len() as u32;
                locals.blocks.extend((0..n_bins).map(|bin| sets.iter().map(|first| first + bin).collect::<Vec<u32>>()));
            }
            locals.sets.push(sets);
        }
        locals
    }
}

/// Returns the parameters of the statistical uncertainties of `channel` that are not local.
fn global_sets<'a>(model: &'a Model, locals: &'a LocalParams, channel: usize) -> impl Iterator<Item = u32> + 'a {
    let n_bins = model.channel_bins(channel).len() as u32;
    let firsts = model.rules.mc_stats_of(channel).map(|mc| mc.first_param);
    let shared = firsts.filter(move |first| !locals.sets[channel].contains(first));
    shared.flat_map(move |first| first..first + n_bins)
}

/// Returns the positions of the global parameters that act on template `t`.
fn global_positions(model: &Model, partition: &Partition, locals: &LocalParams, t: usize, n_bins: usize) -> Vec<u32> {
    let layout = &model.layout;
    let lists = [
        (layout.morphing_param, layout.template_morphing),
        (layout.scale_param, layout.template_scale),
        (layout.normsys_param, layout.template_normsys),
        (layout.histosys_param, layout.template_histosys),
    ];
    let mut params: Vec<u32> =
        lists.iter().flat_map(|&(span, starts)| model.table(span)[model.part(starts, t)].to_vec()).collect();
    params.extend(model.rules.scaling_params(t));
    for &first in &model.table(layout.bin_factor_param)[model.part(layout.template_bin_factor, t)] {
        if !locals.sets.iter().any(|sets| sets.contains(&first)) {
            params.extend(first..first + n_bins as u32);
        }
    }
    params.into_iter().map(|p| partition.position[p as usize]).collect()
}

/// Returns the parameters of histosys with the model's rule, ascending.
fn standard_params(model: &Model) -> Vec<u32> {
    let params = model.table(model.layout.histosys_param).iter().enumerate();
    let is_standard = |entry: usize| model.histosys_response(entry) == model.responses.histosys[0];
    sorted_distinct(params.filter(|(entry, _)| is_standard(*entry)).map(|(_, &param)| param).collect())
}

/// Returns for each parameter (P) whether formulas or morphing terms depend on it.
fn moves_formulas(model: &Model) -> Vec<bool> {
    let mut moves = model.derived.arguments(model.n_params());
    let terms = model.table(model.layout.morphing_param).iter();
    terms.flat_map(|&index| model.parameters_of(index)).for_each(|param| moves[param as usize] = true);
    moves
}

fn constraint_terms(model: &Model) -> Vec<ConstraintTerm> {
    let params = model.table(model.layout.constraint_param);
    let term = |&param: &u32| {
        model.parameters.constraint[param as usize].map(|constraint| ConstraintTerm { param, constraint })
    };
    params.iter().filter_map(term).collect()
}

fn sorted_distinct(mut values: Vec<u32>) -> Vec<u32> {
    values.sort_unstable();
    values.dedup();
    values
}

/// Appends `values`, filled up with zeros to a multiple of [`PAD`], and returns where they start.
fn pad_into(buffer: &mut Vec<f64>, values: &[f64]) -> usize {
    let start = buffer.len();
    buffer.extend_from_slice(values);
    buffer.resize(start + values.len().next_multiple_of(PAD), 0.0);
    start
}

fn extend<X>(list: &mut Vec<X>, items: Vec<X>) -> Range<usize> {
    let start = list.len();
    list.extend(items);
    start..list.len()
}
