//! Adds Σ_b w_b ∇²λ_b, the part of the exact Hessian that the Gauss-Newton matrix lacks; w = 1 -
//! n/λ.
//!
//! With y_b = (nominal + Σ shifts)·K·Πγ of one template, u_e = f'_e/f_e of its scalar factors and
//! r_hb = K Πγ δ'_hb of its shifts, every second derivative is a product of first ones: ∂²y/∂e∂f =
//! y u_e u_f, ∂²y/∂e∂h = u_e r_h, ∂²y/∂e∂γ = y u_e/γ, ∂²y/∂h∂γ = r_h/γ, ∂²y/∂γ∂γ' = y/(γγ'), but
//! for the diagonals y f''_e/f_e and K Πγ δ''_h. Summed over bins, the global part of a template is
//! a symmetric product of two short vectors.

use super::channel::{PointTerms, Site, TileWork};
use super::gram::{ROWS, add_lower_product};
use super::nonzero;
use super::plan::{BinFactorTarget, BinFactorUse, ChannelPlan, ModelPlan, TILE, TemplatePlan};
use super::rules::{RuleSums, ShapeSite};
use ns_core::Arrowhead;

/// Sums over the bins of a channel, per template and per histosys modifier.
#[derive(Debug, Clone)]
pub(crate) struct SecondDerivatives {
    /// Σ_b w_b y_b of each template.
    weighted_yield: Vec<f64>,
    /// Σ_b w_b K Πγ δ'_hb of each histosys modifier of the model.
    derivative: Vec<f64>,
    /// Σ_b w_b K Πγ δ''_hb of each histosys modifier of the model.
    curve: Vec<f64>,
    /// Σ_b w_b K Πγ T_b of each morphing term of the model.
    morphing: Vec<f64>,
    /// u and d of one template, over its positions.
    scalar: Vec<f64>,
    shift: Vec<f64>,
    rows: TemplateRows,
    rules: RuleSums,
}

/// U and V of the templates of dense channels, over the global parameters.
#[derive(Debug, Clone, Default)]
struct TemplateRows {
    n_global: usize,
    /// Rows of U and V in turn.
    left: Vec<f64>,
    /// Rows of V and U in turn.
    right: Vec<f64>,
    /// The diagonal of a matrix that a product is added to.
    diagonal: Vec<f64>,
}

impl SecondDerivatives {
    pub(crate) fn new(plan: &ModelPlan) -> Self {
        let longest = plan.templates.iter().map(|t| t.positions.len()).max().unwrap_or(0);
        Self {
            weighted_yield: vec![0.0; plan.templates.len()],
            derivative: vec![0.0; plan.histosys.len()],
            curve: vec![0.0; plan.histosys.len()],
            morphing: vec![0.0; plan.morphs.len()],
            scalar: vec![0.0; longest],
            shift: vec![0.0; longest],
            rows: TemplateRows { n_global: plan.partition.n_global(), ..TemplateRows::default() },
            rules: RuleSums::new(plan),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.weighted_yield.fill(0.0);
        self.derivative.fill(0.0);
        self.curve.fill(0.0);
        self.morphing.fill(0.0);
        self.rules.clear();
        self.rows.left.clear();
        self.rows.right.clear();
    }

    /// Adds one tile, whose yields and derivatives `work` holds; `first` is w of each bin. Terms
    /// with a per-bin factor go to `out` at once.
    pub(crate) fn add_tile(&mut self, site: Site<'_>, work: &TileWork, first: &[f64], out: &mut Arrowhead) {
        let Site { plan, channel, tile, point, .. } = site;
        for (i, t) in channel.templates.clone().enumerate() {
            let template = &plan.templates[t];
            let (yields, scales) = (&work.yields.row(i)[..tile.len], &work.scales.row(i)[..tile.len]);
            self.weighted_yield[t] += yields.iter().zip(first).map(|(y, w)| y * w).sum::<f64>();
            for h in template.histosys.clone() {
                let modifier = &plan.histosys[h];
                let [_, _, p, q, p2, q2] = point.weights[modifier.weight as usize];
                let start = modifier.cells as usize + tile.start;
                let cells = start..start + tile.len;
                let shifts = plan.shifts.up[cells.clone()].iter().zip(&plan.shifts.down[cells]);
                let (mut up, mut down) = (0.0, 0.0);
                for ((scale, w), (shift_up, shift_down)) in scales.iter().zip(first).zip(shifts) {
                    let weight = scale * w;
                    up += weight * shift_up;
                    down += weight * shift_down;
                }
                self.derivative[h] += p * up + q * down;
                self.curve[h] += p2 * up + q2 * down;
            }
            for m in template.morphs.clone() {
                let values = &plan.morphing[plan.morphs[m].cells as usize + tile.start..];
                let weighted = scales.iter().zip(first).zip(values).map(|((scale, w), value)| scale * w * value);
                self.morphing[m] += weighted.sum::<f64>();
            }
            if let Some(shape) = template.shape {
                self.rules.add_shape(shape, tile, scales, first);
            }
            let cross = CrossTerms { site, template, first, yields, scales };
            for (j, factor) in plan.bin_factors[template.bin_factors.clone()].iter().enumerate() {
                cross.add(factor, j, out);
            }
        }
        for factor in &channel.shared_factors {
            add_shared_factor(site, work, first, factor, out);
        }
        self.rules.add_sums(site, work, first, out);
    }

    /// Adds the global part of every template of `channel` to `out`, once all its tiles are in.
    pub(crate) fn finish(
        &mut self,
        plan: &ModelPlan,
        channel: &ChannelPlan,
        point: &PointTerms,
        params: &[f64],
        out: &mut Arrowhead,
    ) {
        let g = out.partition.n_global();
        for t in channel.templates.clone() {
            let template = &plan.templates[t];
            let positions = &plan.template_positions[template.positions.clone()];
            let total = self.weighted_yield[t];
            self.collect(plan, template, point, params);
            if plan.has_rules {
                self.finish_rules(plan, t, point, out);
            }
            let mut diagonal = |slot: u32, value: f64| {
                let at = positions[slot as usize] as usize;
                out.global[at * g + at] += value;
            };
            for e in template.normsys.clone() {
                diagonal(plan.normsys[e].slot, total * point.factors.relative_curvature[e]);
            }
            for h in template.histosys.clone() {
                diagonal(plan.histosys[h].slot, self.curve[h]);
            }
            let n = positions.len();
            if channel.is_dense {
                for ((&position, u), d) in positions.iter().zip(&self.scalar).zip(&self.shift) {
                    out.global[position as usize * (g + 1)] += 2.0 * u * d;
                }
                self.rows.add(positions, [&self.scalar[..n], &self.shift[..n]], total);
                continue;
            }
            for (k, &column) in positions.iter().enumerate() {
                let (u, d) = (self.scalar[k], self.shift[k]);
                let (scaled, column) = (total * u + d, &mut out.global[column as usize * g..][..g]);
                column[positions[k] as usize] += 2.0 * u * d;
                let after = positions[k + 1..].iter().zip(&self.scalar[k + 1..n]).zip(&self.shift[k + 1..n]);
                for ((&row, scalar), shift) in after {
                    column[row as usize] += scaled * scalar + u * shift;
                }
            }
        }
        if self.rows.left.len() >= ROWS * self.rows.n_global {
            self.rows.flush(out);
        }
    }

    /// Adds what is left to add once all channels are finished.
    pub(crate) fn flush(&mut self, out: &mut Arrowhead) {
        self.rows.flush(out);
    }

    /// Computes u and d over the template's positions.
    fn collect(&mut self, plan: &ModelPlan, template: &TemplatePlan, point: &PointTerms, params: &[f64]) {
        let n = template.positions.len();
        self.scalar[..n].fill(0.0);
        self.shift[..n].fill(0.0);
        for s in &plan.scales[template.scales.clone()] {
            self.scalar[s.slot as usize] = 1.0 / nonzero(params[s.param as usize]);
        }
        for e in template.normsys.clone() {
            self.scalar[plan.normsys[e].slot as usize] = point.factors.log_derivative[e];
        }
        for h in template.histosys.clone() {
            self.shift[plan.histosys[h].slot as usize] += self.derivative[h];
        }
        for m in template.morphs.clone() {
            self.shift[plan.morphs[m].slot as usize] += self.morphing[m];
        }
        if let Some(shape) = template.shape {
            self.rules.collect_shape(ShapeSite::of(plan, point, shape), &mut self.shift);
        }
    }

    /// Adds the second derivatives of the shape of template `t`, and its part in those of the
    /// statistical uncertainty of its channel's sums.
    fn finish_rules(&mut self, plan: &ModelPlan, t: usize, point: &PointTerms, out: &mut Arrowhead) {
        let template = &plan.templates[t];
        let positions = &plan.template_positions[template.positions.clone()];
        if let Some(shape) = template.shape {
            self.rules.finish_shape(ShapeSite::of(plan, point, shape), positions, out);
        }
        let (weight, g) = (self.rules.variances[t], out.partition.n_global());
        for e in template.normsys.clone() {
            let at = positions[plan.normsys[e].slot as usize] as usize;
            out.global[at * g + at] += weight * point.factors.relative_curvature[e];
        }
        for (k, &column) in positions.iter().enumerate() {
            let (u, column) = (weight * self.scalar[k], column as usize * g);
            out.global[column + positions[k] as usize] += u * self.scalar[k];
            for (l, &row) in positions.iter().enumerate().skip(k + 1) {
                out.global[column + row as usize] += 2.0 * u * self.scalar[l];
            }
        }
    }
}

impl TemplateRows {
    /// Adds a template: u and d of the global parameters at `positions`, and `total` = Σ_b w_b y_b.
    fn add(&mut self, positions: &[u32], [scalar, shift]: [&[f64]; 2], total: f64) {
        let (g, start) = (self.n_global, self.left.len());
        for rows in [&mut self.left, &mut self.right] {
            rows.resize(start + 2 * g, 0.0);
        }
        let (left, right) = (&mut self.left[start..], &mut self.right[start..]);
        for ((&position, &u), &d) in positions.iter().zip(scalar).zip(shift) {
            let (at, v) = (position as usize, 0.5 * total * u + d);
            (left[at], left[g + at]) = (u, v);
            (right[at], right[g + at]) = (v, u);
        }
    }

    /// Adds the products of the rows to `out`, and forgets the rows.
    ///
    /// Their diagonals are not second derivatives, and are huge where a factor is zero: that of
    /// `out` stays.
    fn flush(&mut self, out: &mut Arrowhead) {
        if !self.left.is_empty() {
            let stride = self.n_global + 1;
            self.diagonal.clear();
            self.diagonal.extend(out.global.iter().step_by(stride));
            add_lower_product(&self.left, &self.right, self.n_global, &mut out.global);
            out.global.iter_mut().step_by(stride).zip(&self.diagonal).for_each(|(entry, kept)| *entry = *kept);
        }
        self.left.clear();
        self.right.clear();
    }
}

/// Adds the second derivatives of `factor`, which every template of the channel has, with the
/// global parameters: the expected count is proportional to it, so that they are w/γ times its
/// first derivatives.
fn add_shared_factor(site: Site<'_>, work: &TileWork, first: &[f64], factor: &BinFactorUse, out: &mut Arrowhead) {
    let Site { channel, tile, params, .. } = site;
    let g = out.partition.n_global();
    for bin in 0..tile.len {
        let Target::Local { local, .. } = Target::of(factor.target, channel, tile.start + bin) else { continue };
        let weight = first[bin] / nonzero(params[factor.first_param as usize + tile.start + bin]);
        let coupling = &mut out.coupling[local * g..][..g];
        for (column, &position) in channel.columns.iter().enumerate() {
            coupling[position as usize] += weight * work.jacobian.row(column)[bin];
        }
    }
}

/// Second derivatives in which a per-bin factor of one template takes part.
struct CrossTerms<'a> {
    site: Site<'a>,
    template: &'a TemplatePlan,
    first: &'a [f64],
    yields: &'a [f64],
    scales: &'a [f64],
}

impl CrossTerms<'_> {
    /// Adds the terms of `factor`, the `j`-th per-bin factor of its template, with scalars and
    /// shifts, unless every template has it, and with the factors before it.
    fn add(&self, factor: &BinFactorUse, j: usize, out: &mut Arrowhead) {
        let mut weights = [0.0; TILE];
        let weights = &mut weights[..self.site.tile.len];
        for (bin, weight) in weights.iter_mut().enumerate() {
            *weight = self.first[bin] / self.gamma(factor, bin);
        }
        if !self.site.channel.shared_factors.iter().any(|shared| shared.target == factor.target) {
            self.add_scalars(factor, weights, out);
            self.add_shifts(factor, weights, out);
        }
        for other in &self.site.plan.bin_factors[self.template.bin_factors.clone()][..j] {
            for (bin, weight) in weights.iter().enumerate() {
                let value = weight * self.yields[bin] / self.gamma(other, bin);
                self.add_pair(self.target(factor, bin), self.target(other, bin), value, out);
            }
        }
    }

    /// Adds the terms of `factor` with the template's scalar factors; `weights` is w/γ of each bin.
    fn add_scalars(&self, factor: &BinFactorUse, weights: &[f64], out: &mut Arrowhead) {
        let Site { plan, channel, params, point, .. } = self.site;
        let weighted_yields = || weights.iter().zip(self.yields).map(|(weight, y)| weight * y);
        for s in &plan.scales[self.template.scales.clone()] {
            let value = nonzero(params[s.param as usize]);
            self.add_column(factor, channel.columns[s.column as usize], weighted_yields().map(|y| y / value), out);
        }
        for e in self.template.normsys.clone() {
            let (column, derivative) = (plan.normsys[e].column, point.factors.log_derivative[e]);
            self.add_column(factor, channel.columns[column as usize], weighted_yields().map(|y| y * derivative), out);
        }
    }

    /// Adds the terms of `factor` with what shifts the template; `weights` is w/γ of each bin.
    fn add_shifts(&self, factor: &BinFactorUse, weights: &[f64], out: &mut Arrowhead) {
        let Site { plan, channel, tile, point, .. } = self.site;
        let scaled = || weights.iter().zip(self.scales).map(|(weight, scale)| weight * scale);
        for modifier in &plan.histosys[self.template.histosys.clone()] {
            let [_, _, p, q, ..] = point.weights[modifier.weight as usize];
            let start = modifier.cells as usize + tile.start;
            let cells = plan.shifts.up[start..].iter().zip(&plan.shifts.down[start..]);
            let terms = scaled().zip(cells).map(|(scaled, (up, down))| scaled * (p * up + q * down));
            self.add_column(factor, channel.columns[modifier.column as usize], terms, out);
        }
        for term in &plan.morphs[self.template.morphs.clone()] {
            let cells = &plan.morphing[term.cells as usize + tile.start..];
            let terms = scaled().zip(cells).map(|(scaled, value)| scaled * value);
            self.add_column(factor, channel.columns[term.column as usize], terms, out);
        }
        if let Some(shape) = self.template.shape {
            let (rule, jacobian) = (&plan.shapes[shape], &point.shapes[shape].jacobian);
            for (slot, &column) in rule.columns.iter().enumerate() {
                let derivatives = &rule.shape.row(jacobian, slot)[tile.start..];
                let terms = scaled().zip(derivatives).map(|(scaled, derivative)| scaled * derivative);
                self.add_column(factor, channel.columns[column as usize], terms, out);
            }
        }
    }

    /// Adds one term of each bin of the tile to the entries of `factor` with the global parameter
    /// at `position`.
    fn add_column(&self, factor: &BinFactorUse, position: u32, terms: impl Iterator<Item = f64>, out: &mut Arrowhead) {
        let Site { channel, tile, .. } = self.site;
        let (g, position) = (out.partition.n_global(), position as usize);
        match factor.target {
            BinFactorTarget::Local { slot } => {
                let first = channel.first_local + tile.start * channel.n_slots + slot as usize;
                let entries = out.coupling[first * g + position..].iter_mut().step_by(channel.n_slots * g);
                entries.zip(terms).for_each(|(entry, term)| *entry += term);
            }
            BinFactorTarget::Global { first_column } => {
                let owns = &channel.columns[first_column as usize + tile.start..];
                for (&own, term) in owns.iter().zip(terms) {
                    out.global[(own as usize).min(position) * g + (own as usize).max(position)] += term;
                }
            }
        }
    }

    fn gamma(&self, factor: &BinFactorUse, bin: usize) -> f64 {
        nonzero(self.site.params[factor.first_param as usize + self.site.tile.start + bin])
    }

    fn target(&self, factor: &BinFactorUse, bin: usize) -> Target {
        Target::of(factor.target, self.site.channel, self.site.tile.start + bin)
    }

    fn add_pair(&self, a: Target, b: Target, value: f64, out: &mut Arrowhead) {
        let g = out.partition.n_global();
        match (a, b) {
            (Target::Local { bin, slot: i, .. }, Target::Local { slot: j, .. }) => {
                let block = out.partition.block_offset[self.site.channel.first_block + bin];
                out.blocks[block + i.max(j) * self.site.channel.n_slots + i.min(j)] += value;
            }
            (local @ Target::Local { .. }, Target::Global(position)) | (Target::Global(position), local) => {
                *local.entry(out, g, position) += value;
            }
        }
    }
}

/// The row that a per-bin factor has in an arrowhead matrix.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    Local { local: usize, bin: usize, slot: usize },
    Global(usize),
}

impl Target {
    /// Returns that of bin `bin` of `channel`.
    pub(super) fn of(target: BinFactorTarget, channel: &ChannelPlan, bin: usize) -> Self {
        match target {
            BinFactorTarget::Local { slot } => Self::Local {
                local: channel.first_local + bin * channel.n_slots + slot as usize,
                bin,
                slot: slot as usize,
            },
            BinFactorTarget::Global { first_column } => {
                Self::Global(channel.columns[first_column as usize + bin] as usize)
            }
        }
    }

    /// Returns the entry of this factor with the global parameter at `position`.
    pub(super) fn entry(self, out: &mut Arrowhead, g: usize, position: usize) -> &mut f64 {
        match self {
            Self::Local { local, .. } => &mut out.coupling[local * g + position],
            Self::Global(own) => &mut out.global[own.min(position) * g + own.max(position)],
        }
    }
}
