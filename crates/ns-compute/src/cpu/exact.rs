//! Adds Σ_b w_b ∇²λ_b, the part of the exact Hessian that the Gauss-Newton matrix lacks; w = 1 -
//! n/λ.
//!
//! With y_b = (nominal + Σ shifts)·K·Πγ of one template, u_e = f'_e/f_e of its scalar factors and
//! r_hb = K Πγ δ'_hb of its shifts, every second derivative is a product of first ones: ∂²y/∂e∂f =
//! y u_e u_f, ∂²y/∂e∂h = u_e r_h, ∂²y/∂e∂γ = y u_e/γ, ∂²y/∂h∂γ = r_h/γ, ∂²y/∂γ∂γ' = y/(γγ'), but
//! for the diagonals y f''_e/f_e and K Πγ δ''_h. Summed over bins, the global part of a template is
//! a symmetric product of two short vectors.

use super::channel::{PointTerms, Site, TileWork};
use super::nonzero;
use super::plan::{BinFactorTarget, BinFactorUse, ChannelPlan, ModelPlan, TemplatePlan};
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
    rules: RuleSums,
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
            rules: RuleSums::new(plan),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.weighted_yield.fill(0.0);
        self.derivative.fill(0.0);
        self.curve.fill(0.0);
        self.morphing.fill(0.0);
        self.rules.clear();
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
                let (mut up, mut down) = (0.0, 0.0);
                for bin in 0..tile.len {
                    let weight = scales[bin] * first[bin];
                    up += weight * plan.up[start + bin];
                    down += weight * plan.down[start + bin];
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
            for (k, &column) in positions.iter().enumerate() {
                let (u, d) = (self.scalar[k], self.shift[k]);
                let (scaled, column) = (total * u + d, &mut out.global[column as usize * g..][..g]);
                column[positions[k] as usize] += 2.0 * u * d;
                for (l, &row) in positions.iter().enumerate().skip(k + 1) {
                    column[row as usize] += scaled * self.scalar[l] + u * self.shift[l];
                }
            }
        }
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

/// Second derivatives in which a per-bin factor of one template takes part.
struct CrossTerms<'a> {
    site: Site<'a>,
    template: &'a TemplatePlan,
    first: &'a [f64],
    yields: &'a [f64],
    scales: &'a [f64],
}

impl CrossTerms<'_> {
    /// Adds the terms of `factor`, the `j`-th per-bin factor of its template, with scalars, shifts,
    /// and the factors before it.
    fn add(&self, factor: &BinFactorUse, j: usize, out: &mut Arrowhead) {
        let g = out.partition.n_global();
        for bin in 0..self.site.tile.len {
            let gamma = self.gamma(factor, bin);
            let target = self.target(factor, bin);
            let weight = self.first[bin] / gamma;
            let weighted_yield = weight * self.yields[bin];
            let mut add = |position: u32, value: f64| *target.entry(out, g, position as usize) += value;
            let columns = &self.site.channel.columns;
            for s in &self.site.plan.scales[self.template.scales.clone()] {
                add(columns[s.column as usize], weighted_yield / nonzero(self.site.params[s.param as usize]));
            }
            for e in self.template.normsys.clone() {
                let derivative = self.site.point.factors.log_derivative[e];
                add(columns[self.site.plan.normsys[e].column as usize], weighted_yield * derivative);
            }
            for modifier in &self.site.plan.histosys[self.template.histosys.clone()] {
                let [_, _, p, q, ..] = self.site.point.weights[modifier.weight as usize];
                let cell = modifier.cells as usize + self.site.tile.start + bin;
                let derivative = p * self.site.plan.up[cell] + q * self.site.plan.down[cell];
                add(columns[modifier.column as usize], weight * self.scales[bin] * derivative);
            }
            for term in &self.site.plan.morphs[self.template.morphs.clone()] {
                let value = self.site.plan.morphing[term.cells as usize + self.site.tile.start + bin];
                add(columns[term.column as usize], weight * self.scales[bin] * value);
            }
            if let Some(shape) = self.template.shape {
                let plan = &self.site.plan.shapes[shape];
                let jacobian = &self.site.point.shapes[shape].jacobian;
                for (slot, &column) in plan.columns.iter().enumerate() {
                    let derivative = plan.shape.row(jacobian, slot)[self.site.tile.start + bin];
                    add(columns[column as usize], weight * self.scales[bin] * derivative);
                }
            }
            for other in &self.site.plan.bin_factors[self.template.bin_factors.clone()][..j] {
                let value = weighted_yield / self.gamma(other, bin);
                self.add_pair(target, self.target(other, bin), value, out);
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
