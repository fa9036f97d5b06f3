//! A model as kernels read it: one buffer of indices, one of numbers, and the [`Layout`] with the
//! place of each table.
//!
//! It is the plan of the CPU bodies, plus lists by which every lane gathers what it writes, so that
//! no number is written by two lanes.

use super::layout::{self, FACTOR_ENTRY, HISTOSYS_ENTRY, Layout, NONE, SCALAR_ENTRY};
use crate::cpu::plan::{BinFactorTarget, ChannelPlan, ModelPlan, TemplatePlan};
use ns_core::Constraint;
use ns_core::interpolate::{HistoSysInterpolation, NormSysFactor, NormSysInterpolation};
use ns_core::model::Model;
use ns_core::templates::Inputs;

/// Rows of Jacobians are padded to a multiple of this.
const TILE: usize = layout::TILE as usize;

/// Rows of the factor that are worked on at once.
pub(crate) const PANEL: usize = layout::PANEL as usize;

/// The tables of a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeviceTables {
    pub(crate) layout: Layout,
    pub(crate) indices: Vec<u32>,
    pub(crate) reals: Vec<f64>,
    /// Entries of all columns.
    pub(crate) n_entries: usize,
}

/// One modifier's share of a column of the Jacobian.
#[derive(Debug, Clone, Copy)]
struct Entry {
    kind: u32,
    modifier: u32,
    template: u32,
    bin: u32,
}

impl DeviceTables {
    /// Returns the tables of `model`, laid out like `plan`, and those of `inputs`, if any.
    ///
    /// # Errors
    /// The number of working numbers if they cannot be counted with 32 bits.
    pub(crate) fn new(model: &Model, plan: &ModelPlan, inputs: Option<&Inputs>) -> Result<Self, TooLarge> {
        let mut tables = Self { layout: Layout::default(), indices: Vec::new(), reals: Vec::new(), n_entries: 0 };
        tables.add_sizes(model, plan);
        tables.add_templates(plan);
        tables.add_histosys(plan);
        tables.add_scalars(model, plan);
        tables.add_constraints(model, plan);
        tables.add_partition(plan);
        tables.add_columns(plan);
        let extent = tables.add_channels(plan);
        tables.add_slots(plan);
        tables.layout.n_row_reals = tables.reals.len() as u32;
        if let Some(inputs) = inputs {
            tables.add_inputs(plan, inputs);
        }
        tables.add_workspace(plan, &extent)?;
        let longest = tables.indices.len().max(tables.reals.len()) as u64;
        if longest > u64::from(u32::MAX) { Err(TooLarge { numbers: longest }) } else { Ok(tables) }
    }

    pub(super) fn index(&mut self, values: impl IntoIterator<Item = u32>) -> u32 {
        let start = self.indices.len() as u32;
        self.indices.extend(values);
        start
    }

    pub(super) fn real(&mut self, values: impl IntoIterator<Item = f64>) -> u32 {
        let start = self.reals.len() as u32;
        self.reals.extend(values);
        start
    }

    fn add_sizes(&mut self, model: &Model, plan: &ModelPlan) {
        let layout = &mut self.layout;
        let count = |n: usize| n as u32;
        layout.n_params = count(plan.n_params);
        layout.n_bins = count(plan.n_bins());
        layout.n_channels = count(plan.channels.len());
        layout.n_templates = count(plan.templates.len());
        layout.n_cells = plan.channels.iter().map(|c| count(c.bins.len() * c.templates.len())).sum();
        layout.n_scalars = count(plan.scales.len() + plan.normsys.len());
        layout.n_weights = count(plan.histosys_params.len());
        layout.n_histosys = count(plan.histosys.len());
        layout.n_terms = count(plan.terms.len());
        layout.n_global = count(plan.partition.n_global());
        layout.n_local = count(plan.partition.n_local());
        layout.matrix_stride = count(plan.partition.n_global().next_multiple_of(TILE));
        layout.panel_stride = count((plan.partition.n_global() + 1 + TILE).next_multiple_of(TILE));
        layout.normsys_rule = match model.interpolation.normsys {
            NormSysInterpolation::Exponential => layout::NORMSYS_EXPONENTIAL,
            NormSysInterpolation::SmoothExponential => layout::NORMSYS_SMOOTH,
        };
        layout.histosys_rule = match model.interpolation.histosys {
            HistoSysInterpolation::Linear => layout::HISTOSYS_LINEAR,
            HistoSysInterpolation::Quadratic => layout::HISTOSYS_QUADRATIC,
            HistoSysInterpolation::SmoothLinear => layout::HISTOSYS_SMOOTH,
        };
    }

    fn add_templates(&mut self, plan: &ModelPlan) {
        let (mut channel_of, mut first_cell, mut cell_template) = (Vec::new(), Vec::new(), Vec::new());
        let mut nominal = Vec::new();
        for (c, t, template, n_bins) in each_template(plan) {
            channel_of.push(c as u32);
            first_cell.push(cell_template.len() as u32);
            cell_template.extend(std::iter::repeat_n(t as u32, n_bins));
            nominal.extend_from_slice(&plan.nominal[template.cells..template.cells + n_bins]);
        }
        let ends = |end: fn(&TemplatePlan) -> usize| -> Vec<u32> {
            std::iter::once(0).chain(plan.templates.iter().map(|template| end(template) as u32)).collect()
        };
        self.layout.template_channel = self.index(channel_of);
        self.layout.template_cell = self.index(first_cell);
        self.layout.cell_template = self.index(cell_template);
        // Scalar modifiers are numbered by template, scales before normsys.
        self.layout.template_scalar = self.index(ends(|template| template.scales.end + template.normsys.end));
        self.layout.template_histosys = self.index(ends(|template| template.histosys.end));
        self.layout.template_factor = self.index(ends(|template| template.bin_factors.end));
        self.layout.factor_param = self.index(plan.bin_factors.iter().map(|f| f.first_param));
        self.layout.nominal = self.real(nominal);
    }

    fn add_histosys(&mut self, plan: &ModelPlan) {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let (mut cell, mut template_of) = (Vec::new(), Vec::new());
        for (_, t, template, n_bins) in each_template(plan) {
            for modifier in &plan.histosys[template.histosys.clone()] {
                let cells = modifier.cells as usize..modifier.cells as usize + n_bins;
                cell.push(up.len() as u32);
                template_of.push(t as u32);
                up.extend_from_slice(&plan.shifts.up[cells.clone()]);
                down.extend_from_slice(&plan.shifts.down[cells]);
            }
        }
        let weight = |param: u32| plan.histosys_params.partition_point(|&p| p < param) as u32;
        self.layout.weight_param = self.index(plan.histosys_params.iter().copied());
        self.layout.histosys_weight = self.index(plan.histosys.iter().map(|h| weight(h.param)));
        self.layout.histosys_cell = self.index(cell);
        self.layout.histosys_template = self.index(template_of);
        self.layout.up = self.real(up);
        self.layout.down = self.real(down);
    }

    fn add_scalars(&mut self, model: &Model, plan: &ModelPlan) {
        let (mut params, mut normsys_of) = (Vec::new(), Vec::new());
        for template in &plan.templates {
            for scale in &plan.scales[template.scales.clone()] {
                params.push(scale.param);
                normsys_of.push(NONE);
            }
            for (e, normsys) in template.normsys.clone().zip(&plan.normsys[template.normsys.clone()]) {
                params.push(normsys.param);
                normsys_of.push(e as u32);
            }
        }
        self.layout.scalar_param = self.index(params);
        self.layout.scalar_normsys = self.index(normsys_of);
        self.layout.normsys = self.real(normsys_numbers(model));
    }

    fn add_constraints(&mut self, model: &Model, plan: &ModelPlan) {
        let mut term_of = vec![NONE; model.n_params()];
        let (mut is_poisson, mut scale) = (Vec::new(), Vec::new());
        for (k, term) in plan.terms.iter().enumerate() {
            term_of[term.param as usize] = k as u32;
            let (poisson, value) = match term.constraint {
                Constraint::Gaussian { sigma } => (0, sigma),
                Constraint::Poisson { tau } => (1, tau),
                _ => unreachable!("the session refuses other terms"),
            };
            is_poisson.push(poisson);
            scale.push(value);
        }
        self.layout.term_param = self.index(plan.terms.iter().map(|term| term.param));
        self.layout.term_is_poisson = self.index(is_poisson);
        self.layout.param_term = self.index(term_of);
        self.layout.term_scale = self.real(scale);
    }

    fn add_partition(&mut self, plan: &ModelPlan) {
        let partition = &*plan.partition;
        let (mut bin_channel, mut bin_local, mut bin_block) = (Vec::new(), vec![0], Vec::new());
        let (mut local_bin, mut local_coupling) = (Vec::new(), Vec::new());
        let (mut coupling, mut block) = (0, 0);
        for (c, channel) in plan.channels.iter().enumerate() {
            for bin in channel.bins.clone() {
                bin_channel.push(c as u32);
                bin_block.push(block);
                block += (channel.n_slots * channel.n_slots) as u32;
                for _ in 0..channel.n_slots {
                    local_bin.push(bin as u32);
                    local_coupling.push(coupling);
                    coupling += stride(channel) as u32;
                }
                bin_local.push(local_bin.len() as u32);
            }
        }
        self.layout.bin_channel = self.index(bin_channel);
        self.layout.bin_local = self.index(bin_local);
        self.layout.bin_block = self.index(bin_block);
        self.layout.local_bin = self.index(local_bin);
        self.layout.local_coupling = self.index(local_coupling);
        self.layout.global_param = self.index(partition.global.iter().copied());
        self.layout.local_param = self.index(partition.local.iter().copied());
    }

    /// Adds the columns of all channels with their entries, and for each global position the
    /// columns that are its own.
    fn add_columns(&mut self, plan: &ModelPlan) {
        let mut uses = vec![Vec::new(); plan.partition.n_global()];
        let (mut starts, mut entries, mut positions) = (vec![0], Vec::new(), Vec::new());
        for (c, channel) in plan.channels.iter().enumerate() {
            for (column, entries_of) in column_entries(plan, channel).into_iter().enumerate() {
                positions.push(channel.columns[column]);
                uses[channel.columns[column] as usize].push([c as u32, column as u32]);
                entries.extend(entries_of);
                starts.push(entries.len() as u32);
            }
        }
        self.n_entries = entries.len();
        self.layout.column_position = self.index(positions);
        self.layout.column_entry = self.index(starts);
        self.layout.entry_kind = self.index(entries.iter().map(|entry: &Entry| entry.kind));
        self.layout.entry_use = self.index(entries.iter().map(|entry| entry.modifier));
        self.layout.entry_template = self.index(entries.iter().map(|entry| entry.template));
        self.layout.entry_bin = self.index(entries.iter().map(|entry| entry.bin));
        let ends = uses.iter().scan(0, |end, columns| {
            *end += columns.len() as u32;
            Some(*end)
        });
        let starts: Vec<u32> = std::iter::once(0).chain(ends).collect();
        self.layout.position_column = self.index(starts);
        self.layout.use_channel = self.index(uses.iter().flatten().map(|[channel, _]| *channel));
        self.layout.use_column = self.index(uses.iter().flatten().map(|[_, column]| *column));
    }

    fn add_channels(&mut self, plan: &ModelPlan) -> Extent {
        let mut extent = Extent::default();
        let mut tables: [Vec<u32>; 8] = std::array::from_fn(|_| Vec::new());
        let mut factor_columns = Vec::new();
        for channel in &plan.channels {
            let factors = shared_factors(plan, channel);
            let numbers = [
                channel.bins.start,
                channel.templates.start,
                extent.columns,
                stride(channel),
                extent.jacobian,
                extent.pairs,
                extent.dots,
                factor_columns.len(),
            ];
            tables.iter_mut().zip(numbers).for_each(|(table, number)| table.push(number as u32));
            extent.add(channel, factors.len());
            factor_columns.extend(factors);
        }
        let ends = [plan.n_bins(), plan.templates.len(), extent.columns, 0, 0, 0, 0, factor_columns.len()];
        tables.iter_mut().zip(ends).for_each(|(table, end)| table.push(end as u32));
        let [bins, templates, columns, strides, jacobian, pairs, dots, factors] = tables;
        self.layout.channel_bin = self.index(bins);
        self.layout.channel_template = self.index(templates);
        self.layout.channel_column = self.index(columns);
        self.layout.channel_stride = self.index(strides);
        self.layout.channel_jacobian = self.index(jacobian);
        self.layout.channel_pairs = self.index(pairs);
        self.layout.channel_dots = self.index(dots);
        self.layout.channel_factor = self.index(factors);
        self.layout.factor_column = self.index(factor_columns);
        extent
    }

    /// Adds which templates have the local factor of each slot, and of each local parameter of each
    /// bin.
    fn add_slots(&mut self, plan: &ModelPlan) {
        let (mut first_mask, mut masks) = (Vec::new(), Vec::new());
        let (mut starts, mut templates) = (vec![0], Vec::new());
        for channel in &plan.channels {
            first_mask.push(masks.len() as u32);
            let has = slot_masks(plan, channel);
            for _ in channel.bins.clone() {
                for mask in has.chunks(channel.templates.len().max(1)) {
                    let of_slot = channel.templates.clone().zip(mask).filter(|(_, has)| **has == 1);
                    templates.extend(of_slot.map(|(t, _)| t as u32));
                    starts.push(templates.len() as u32);
                }
            }
            masks.extend(has);
        }
        self.layout.channel_mask = self.index(first_mask);
        self.layout.slot_mask = self.index(masks);
        self.layout.local_entry = self.index(starts);
        self.layout.local_template = self.index(templates);
    }

    fn add_workspace(&mut self, plan: &ModelPlan, extent: &Extent) -> Result<(), TooLarge> {
        let layout = &mut self.layout;
        let (p, n_bins, n_local) = (plan.n_params, plan.n_bins(), plan.partition.n_local());
        let (n_cells, n_scalars) = (layout.n_cells as usize, layout.n_scalars as usize);
        let (n_templates, n_histosys) = (plan.templates.len(), plan.histosys.len());
        let matrix = (plan.partition.n_global() + 1) * layout.matrix_stride as usize;
        let mut end: u64 = 0;
        let mut place = |slot: &mut u32, len: usize| {
            *slot = u32::try_from(end).unwrap_or(u32::MAX);
            end += len as u64;
        };
        for slot in [
            &mut layout.work_point,
            &mut layout.work_trial,
            &mut layout.work_step,
            &mut layout.work_gradient,
            &mut layout.work_constraint,
            &mut layout.work_diagonal,
            &mut layout.work_scale,
            &mut layout.work_bound_status,
            &mut layout.work_displaced,
            &mut layout.work_product,
            &mut layout.work_rhs,
        ] {
            place(slot, p);
        }
        place(&mut layout.work_dots, extent.dots);
        place(&mut layout.work_scalar_value, n_scalars);
        place(&mut layout.work_scalar_derivative, n_scalars);
        place(&mut layout.work_scalar_curve, n_scalars);
        place(&mut layout.work_weights, 6 * plan.histosys_params.len());
        place(&mut layout.work_template_scale, n_templates);
        place(&mut layout.work_template_sum, n_templates);
        place(&mut layout.work_histosys_derivative, n_histosys);
        place(&mut layout.work_histosys_curve, n_histosys);
        place(&mut layout.work_cell_yield, n_cells);
        place(&mut layout.work_cell_scale, n_cells);
        place(&mut layout.work_first, n_bins);
        place(&mut layout.work_second, n_bins);
        place(&mut layout.work_row_weight, n_bins);
        place(&mut layout.work_jacobian, extent.jacobian);
        place(&mut layout.work_pairs, extent.pairs);
        place(&mut layout.work_column_diagonal, extent.columns);
        place(&mut layout.work_local_derivative, n_local);
        place(&mut layout.work_coupling, extent.coupling);
        place(&mut layout.work_eliminated, extent.coupling);
        place(&mut layout.work_blocks, extent.blocks);
        place(&mut layout.work_block_factors, extent.blocks);
        place(&mut layout.work_local_rhs, n_local);
        place(&mut layout.work_matrix, matrix);
        place(&mut layout.work_panel, PANEL * layout.panel_stride as usize);
        layout.workspace = u32::try_from(end).map_err(|_| TooLarge { numbers: end })?;
        Ok(())
    }
}

/// A model whose tables or working memory cannot be addressed with 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge {
    /// The number of numbers that a block would work with.
    pub(crate) numbers: u64,
}

/// How far the pieces of working memory reach that channels share.
#[derive(Debug, Default)]
struct Extent {
    columns: usize,
    jacobian: usize,
    pairs: usize,
    dots: usize,
    coupling: usize,
    blocks: usize,
}

impl Extent {
    /// Makes room for `channel`, which has `n_factors` columns of factors that it shares with other
    /// channels.
    fn add(&mut self, channel: &ChannelPlan, n_factors: usize) {
        let (n_bins, n_rows) = (channel.bins.len(), channel.templates.len() + n_factors);
        self.columns += channel.columns.len();
        self.jacobian += n_bins * stride(channel);
        self.pairs += 2 * n_rows * stride(channel);
        self.dots += n_bins + 2 * n_rows;
        self.coupling += n_bins * channel.n_slots * stride(channel);
        self.blocks += n_bins * channel.n_slots * channel.n_slots;
    }
}

/// Returns every template with its number, its channel's number, and the channel's number of bins.
fn each_template(plan: &ModelPlan) -> impl Iterator<Item = (usize, usize, &TemplatePlan, usize)> {
    plan.channels.iter().enumerate().flat_map(move |(c, channel)| {
        channel.templates.clone().map(move |t| (c, t, &plan.templates[t], channel.bins.len()))
    })
}

/// Returns the row length of a channel's Jacobian.
fn stride(channel: &ChannelPlan) -> usize {
    channel.columns.len().next_multiple_of(TILE)
}

/// Returns ln hi, ln lo and the six coefficients of every normsys.
fn normsys_numbers(model: &Model) -> Vec<f64> {
    let (lo, hi) = (model.values(model.layout.normsys_lo), model.values(model.layout.normsys_hi));
    let numbers = |(&lo, &hi): (&f64, &f64)| {
        let factor = NormSysFactor::new(lo, hi);
        let [a, b, c, d, e, f] = factor.coefficients;
        [factor.ln_hi, factor.ln_lo, a, b, c, d, e, f]
    };
    lo.iter().zip(hi).flat_map(numbers).collect()
}

/// Returns the entries of each column of `channel`.
fn column_entries(plan: &ModelPlan, channel: &ChannelPlan) -> Vec<Vec<Entry>> {
    let mut columns = vec![Vec::new(); channel.columns.len()];
    for t in channel.templates.clone() {
        let template = &plan.templates[t];
        let mut add = |column: usize, kind, modifier: usize, bin| {
            columns[column].push(Entry { kind, modifier: modifier as u32, template: t as u32, bin });
        };
        // Scalar modifiers are numbered by template, scales before normsys.
        let first_scalar = template.scales.start + template.normsys.start;
        for (i, scale) in plan.scales[template.scales.clone()].iter().enumerate() {
            add(scale.column as usize, SCALAR_ENTRY, first_scalar + i, NONE);
        }
        for (i, normsys) in plan.normsys[template.normsys.clone()].iter().enumerate() {
            add(normsys.column as usize, SCALAR_ENTRY, first_scalar + template.scales.len() + i, NONE);
        }
        for (h, histosys) in template.histosys.clone().zip(&plan.histosys[template.histosys.clone()]) {
            add(histosys.column as usize, HISTOSYS_ENTRY, h, NONE);
        }
        for (f, factor) in template.bin_factors.clone().zip(&plan.bin_factors[template.bin_factors.clone()]) {
            if let BinFactorTarget::Global { first_column } = factor.target {
                for bin in 0..channel.bins.len() {
                    add(first_column as usize + bin, FACTOR_ENTRY, f, bin as u32);
                }
            }
        }
    }
    columns
}

/// Returns the columns of `channel` whose parameters are per-bin factors shared with other
/// channels, ascending.
fn shared_factors(plan: &ModelPlan, channel: &ChannelPlan) -> Vec<u32> {
    let entries = column_entries(plan, channel);
    let is_factor = |(_, entries): &(usize, Vec<Entry>)| entries.iter().any(|entry| entry.kind == FACTOR_ENTRY);
    entries.into_iter().enumerate().filter(is_factor).map(|(column, _)| column as u32).collect()
}

/// Returns, for each slot and each template of `channel`, whether the template has the local factor
/// of that slot.
fn slot_masks(plan: &ModelPlan, channel: &ChannelPlan) -> Vec<u32> {
    let mut masks = vec![0; channel.n_slots * channel.templates.len()];
    for (i, t) in channel.templates.clone().enumerate() {
        for factor in &plan.bin_factors[plan.templates[t].bin_factors.clone()] {
            if let BinFactorTarget::Local { slot } = factor.target {
                masks[slot as usize * channel.templates.len() + i] = 1;
            }
        }
    }
    masks
}
