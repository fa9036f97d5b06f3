//! What the evaluator does for models with [`ns_core::yield_rules`]: templates with a shape,
//! statistical uncertainties of sums, and lowest yields.
//!
//! A yield below its limit keeps no derivative: its factor K·Πγ is set to zero, so that every
//! product with it vanishes. The statistical uncertainty of a sum is ν E with E² = Σ_t (K_t e_t)².
//! With u = K'/K its derivatives are E_i = Σ_t (K_t e_t)² u_ti / E and E_ij = Σ_t (K_t e_t)²
//! (2 u_ti u_tj) / E - E_i E_j / E, where the diagonal has u² + K''/K in place of 2 u².

use super::channel::{NEGLIGIBLE, PointTerms, Site, Tile, TileRows, TileWork, add_yields, flush_tiny};
use super::exact::Target;
use super::isa::Isa;
use super::limits::sum_rates;
use super::nonzero;
use super::plan::{BinFactorTarget, ChannelPlan, ModelPlan, TILE};
use ns_core::shape::{Shape, ShapePoint, ShapeScratch};
use ns_core::yield_rules::{McStat, TemplateErrors};
use ns_core::{Arrowhead, LimitKinks};
use std::mem::take;

/// A template with a shape, and where its derivatives go.
#[derive(Debug, Clone)]
pub(crate) struct ShapePlan {
    pub(crate) shape: Shape,
    /// Offset of the template's padded cells.
    pub(crate) cells: usize,
    /// Column in the channel's Jacobian, and place among the template's positions, of each of its
    /// parameters.
    pub(crate) columns: Vec<u32>,
    pub(crate) slots: Vec<u32>,
}

/// A template with a shape, at a point.
#[derive(Clone, Copy)]
pub(super) struct ShapeSite<'a> {
    plan: &'a ShapePlan,
    at: &'a ShapePoint,
    /// Its place among the plan's shapes.
    index: usize,
}

impl<'a> ShapeSite<'a> {
    /// Returns the shape at place `index`.
    pub(super) fn of(plan: &'a ModelPlan, point: &'a PointTerms, index: usize) -> Self {
        Self { plan: &plan.shapes[index], at: &point.shapes[index], index }
    }
}

/// A statistical uncertainty of a channel's sums.
#[derive(Debug, Clone)]
pub(crate) struct McStatPlan {
    first_param: u32,
    target: BinFactorTarget,
    errors: Vec<TemplateErrors>,
}

impl McStatPlan {
    pub(crate) fn new(mc_stat: &McStat, target: BinFactorTarget) -> Self {
        Self { first_param: mc_stat.first_param, target, errors: mc_stat.errors.clone() }
    }

    /// Writes E of the tile's bins to `out`, zero where it is negligible.
    fn roots(&self, tile: Tile, point: &PointTerms, out: &mut [f64]) {
        out.fill(0.0);
        for TemplateErrors { template, errors } in &self.errors {
            let scale = point.scale[*template];
            for (sum, error) in out.iter_mut().zip(&errors[tile.start..]) {
                *sum += (scale * error).powi(2);
            }
        }
        for root in out {
            *root = root.sqrt();
            *root = if *root < NEGLIGIBLE { 0.0 } else { *root };
        }
    }
}

/// The statistical uncertainties of the sums of a tile.
#[derive(Debug, Clone, Default)]
pub(crate) struct SumWork {
    /// E, one row per uncertainty of the channel.
    roots: TileRows,
    /// E_i, one row per column of the channel, for one uncertainty after the other.
    rates: TileRows,
    /// The bins whose sums a limit replaces, and these sums without it, with their derivatives.
    pub(super) limited_bins: Vec<usize>,
    pub(super) limited: LimitKinks,
}

impl SumWork {
    pub(crate) fn new(plan: &ModelPlan) -> Self {
        let rows = |n_rows: fn(&ChannelPlan) -> usize| {
            let size = |c: &ChannelPlan| n_rows(c) * c.width.min(TILE);
            TileRows::with_capacity(plan.channels.iter().map(size).max().unwrap_or(0))
        };
        Self {
            roots: rows(|c| c.mc_stats.len()),
            rates: rows(|c| c.mc_stats.len() * c.columns.len()),
            limited_bins: Vec::new(),
            limited: LimitKinks::default(),
        }
    }
}

impl PointTerms {
    /// Evaluates the templates with a shape at the extended point `params`.
    pub(super) fn set_shapes<const DERIVATIVES: bool>(&mut self, plan: &ModelPlan, params: &[f64]) {
        for (plan, at) in plan.shapes.iter().zip(&mut self.shapes) {
            plan.shape.evaluate::<DERIVATIVES>(params, at);
            self.morphed[plan.cells..][..at.values.len()].copy_from_slice(&at.values);
        }
    }
}

impl TileWork {
    /// Adds the yields of template `t`, none below `limit`; `scale` is K·Πγ of each bin.
    #[inline(always)]
    pub(super) fn add_clipped<I: Isa>(&mut self, isa: I, site: Site<'_>, t: usize, scale: &[f64; TILE], limit: f64) {
        let mut yields = [0.0; TILE];
        add_yields(isa, site, t, scale, &mut yields);
        for (lambda, y) in self.lambda.iter_mut().zip(yields) {
            *lambda += if y < limit { limit } else { y };
        }
    }

    /// Adds `limit` for the bins in which the yield of template `i` of the channel is below it, and
    /// sets its K·Πγ to zero there.
    #[inline(always)]
    pub(super) fn clip<I: Isa>(&mut self, isa: I, site: Site<'_>, i: usize, limit: f64) {
        let (mut yields, mut scale) = ([0.0; TILE], [0.0; TILE]);
        let scales = self.scales.row_mut(i);
        scale[..scales.len()].copy_from_slice(scales);
        add_yields(isa, site, site.channel.templates.start + i, &scale, &mut yields);
        for (bin, scale) in scales.iter_mut().enumerate().take(site.tile.len) {
            if yields[bin] < limit {
                self.lambda[bin] += limit;
                *scale = 0.0;
            }
        }
    }

    /// Adds the derivatives of the shape of template `i` of the channel, if it has one.
    #[inline(always)]
    pub(super) fn differentiate_shape<I: Isa>(&mut self, isa: I, site: Site<'_>, i: usize) {
        let Site { plan, channel, tile, point, .. } = site;
        let Some(shape) = plan.templates[channel.templates.start + i].shape else { return };
        let (plan, at) = (&plan.shapes[shape], &point.shapes[shape]);
        let scales = self.scales.row(i);
        for (slot, &column) in plan.columns.iter().enumerate() {
            let derivatives = &plan.shape.row(&at.jacobian, slot)[tile.start..][..tile.width];
            let row = self.jacobian.row_mut(column as usize);
            for (rate, (scale, derivative)) in row.iter_mut().zip(scales.iter().zip(derivatives)) {
                *rate = isa.fma(*scale, *derivative, *rate);
            }
        }
    }

    /// Adds the statistical uncertainties to the sums, and replaces those below the limit.
    pub(super) fn complete_sums(&mut self, site: Site<'_>) {
        let Site { plan, channel, tile, point, params } = site;
        let mut roots = [0.0; TILE];
        for mc_stat in &channel.mc_stats {
            mc_stat.roots(tile, point, &mut roots[..tile.len]);
            let nu = &params[mc_stat.first_param as usize + tile.start..][..tile.len];
            self.lambda.iter_mut().zip(nu.iter().zip(&roots)).for_each(|(lambda, (nu, root))| *lambda += nu * root);
        }
        flush_tiny(&mut self.lambda[..tile.width]);
        if let Some(limit) = plan.clip_bins {
            self.lambda.iter_mut().for_each(|lambda| *lambda = if *lambda < limit { limit } else { *lambda });
        }
    }

    /// Does what [`Self::complete_sums`] does, with derivatives.
    pub(super) fn differentiate_sums(&mut self, site: Site<'_>) {
        let Site { plan, channel, tile, .. } = site;
        self.sums.roots.reset(channel.mc_stats.len(), tile.width);
        self.sums.rates.reset(channel.mc_stats.len() * channel.columns.len(), tile.width);
        for k in 0..channel.mc_stats.len() {
            self.add_uncertainty(site, k);
        }
        flush_tiny(&mut self.lambda[..tile.width]);
        let Some(limit) = plan.clip_bins else { return };
        let (mut bins, mut limited) = (take(&mut self.sums.limited_bins), take(&mut self.sums.limited));
        bins.clear();
        limited.clear();
        for bin in (0..tile.len).filter(|&bin| self.lambda[bin] < limit) {
            bins.push(bin);
            limited.push(self.lambda[bin] - limit, 0.0, sum_rates(site, self, bin));
        }
        for &bin in &bins {
            self.lambda[bin] = limit;
            self.forget(channel, bin);
        }
        (self.sums.limited_bins, self.sums.limited) = (bins, limited);
    }

    /// Adds ν E of uncertainty `k` of the channel and its derivatives.
    fn add_uncertainty(&mut self, site: Site<'_>, k: usize) {
        let Site { channel, tile, point, params, .. } = site;
        let (mc_stat, n_columns) = (&channel.mc_stats[k], channel.columns.len());
        mc_stat.roots(tile, point, &mut self.sums.roots.row_mut(k)[..tile.len]);
        for part in &mc_stat.errors {
            self.add_rates(site, k, part);
        }
        let roots = self.sums.roots.row(k);
        let nu = &params[mc_stat.first_param as usize + tile.start..][..tile.len];
        for column in 0..n_columns {
            let rates = self.sums.rates.row(k * n_columns + column);
            let row = self.jacobian.row_mut(column);
            row.iter_mut().zip(nu.iter().zip(rates)).for_each(|(rate, (nu, own))| *rate += nu * own);
        }
        for (bin, (nu, root)) in nu.iter().zip(roots).enumerate() {
            self.lambda[bin] += nu * root;
            match mc_stat.target {
                BinFactorTarget::Local { slot } => self.local_jacobian.row_mut(slot as usize)[bin] += root,
                BinFactorTarget::Global { first_column } => {
                    self.jacobian.row_mut(first_column as usize + tile.start + bin)[bin] += root;
                }
            }
        }
    }

    /// Adds the part of one template to E_i of uncertainty `k`.
    fn add_rates(&mut self, site: Site<'_>, k: usize, part: &TemplateErrors) {
        let Site { plan, channel, tile, point, params } = site;
        let template = &plan.templates[part.template];
        let scale = point.scale[part.template];
        let scales = plan.scales[template.scales.clone()].iter();
        let factors = scales.map(|s| (s.column, 1.0 / nonzero(params[s.param as usize])));
        let normsys = template.normsys.clone().map(|e| (plan.normsys[e].column, point.factors.log_derivative[e]));
        for (column, u) in factors.chain(normsys) {
            let SumWork { roots, rates, .. } = &mut self.sums;
            let row = rates.row_mut(k * channel.columns.len() + column as usize);
            for ((rate, root), error) in row.iter_mut().zip(roots.row(k)).zip(&part.errors[tile.start..]).take(tile.len)
            {
                // Where E is negligible, so is its derivative.
                *rate += if *root > 0.0 { (scale * error).powi(2) * u / root } else { 0.0 };
            }
        }
    }

    /// Sets all derivatives in bin `bin` to zero.
    fn forget(&mut self, channel: &ChannelPlan, bin: usize) {
        let Self { yields, scales, jacobian, local_jacobian, sums, .. } = self;
        let n_templates = channel.templates.len();
        let rows = [
            (yields, n_templates),
            (scales, n_templates),
            (jacobian, channel.columns.len()),
            (local_jacobian, channel.n_slots),
            (&mut sums.roots, channel.mc_stats.len()),
            (&mut sums.rates, channel.mc_stats.len() * channel.columns.len()),
        ];
        for (rows, n_rows) in rows {
            (0..n_rows).for_each(|row| rows.row_mut(row)[bin] = 0.0);
        }
    }
}

/// Sums over the bins of a channel that second derivatives need.
#[derive(Debug, Clone)]
pub(super) struct RuleSums {
    /// w K Πγ of each bin of each template with a shape.
    weights: Vec<Vec<f64>>,
    scratch: ShapeScratch,
    /// Σ_b w ν (K e)² / E of each template.
    pub(super) variances: Vec<f64>,
}

impl RuleSums {
    pub(super) fn new(plan: &ModelPlan) -> Self {
        let n_bins = |shape: &ShapePlan| {
            let template = plan.templates.iter().position(|template| template.cells == shape.cells).unwrap_or(0);
            let channel = plan.channels.iter().find(|channel| channel.templates.contains(&template));
            vec![0.0; channel.map_or(0, |channel| channel.bins.len())]
        };
        Self {
            weights: plan.shapes.iter().map(n_bins).collect(),
            scratch: ShapeScratch::default(),
            variances: if plan.has_rules { vec![0.0; plan.templates.len()] } else { Vec::new() },
        }
    }

    pub(super) fn clear(&mut self) {
        self.variances.fill(0.0);
    }

    /// Keeps the weights of the tile's bins; `first` is w of each.
    pub(super) fn add_shape(&mut self, shape: usize, tile: Tile, scales: &[f64], first: &[f64]) {
        let weights = &mut self.weights[shape][tile.start..][..tile.len];
        weights.iter_mut().zip(scales.iter().zip(first)).for_each(|(weight, (scale, w))| *weight = scale * w);
    }

    /// Adds Σ_b w K Πγ S_i to `shift`, over the template's positions.
    pub(super) fn collect_shape(&self, site: ShapeSite<'_>, shift: &mut [f64]) {
        let ShapeSite { plan, at, index } = site;
        for (slot, &position) in plan.slots.iter().enumerate() {
            let rates = plan.shape.row(&at.jacobian, slot);
            shift[position as usize] += rates.iter().zip(&self.weights[index]).map(|(rate, w)| rate * w).sum::<f64>();
        }
    }

    /// Adds Σ_b w K Πγ S_ij to the global block; `positions` are those of the template.
    pub(super) fn finish_shape(&mut self, site: ShapeSite<'_>, positions: &[u32], out: &mut Arrowhead) {
        let ShapeSite { plan, at, index } = site;
        let g = out.partition.n_global();
        let position = |slot: usize| positions[plan.slots[slot] as usize] as usize;
        plan.shape.each_second(at, &self.weights[index], &mut self.scratch, |i, j, value| {
            out.global[position(j) * g + position(i)] += value;
        });
    }

    /// Adds the second derivatives of the statistical uncertainties of the tile's sums, but for the
    /// part of each template; `first` is w of each bin.
    pub(super) fn add_sums(&mut self, site: Site<'_>, work: &TileWork, first: &[f64], out: &mut Arrowhead) {
        let Site { channel, tile, point, params, .. } = site;
        let (g, n_columns) = (out.partition.n_global(), channel.columns.len());
        let rates = |k: usize, column: usize, bin: usize| work.sums.rates.row(k * n_columns + column)[bin];
        for (k, mc_stat) in channel.mc_stats.iter().enumerate() {
            let roots = work.sums.roots.row(k);
            for bin in (0..tile.len).filter(|&bin| roots[bin] > 0.0) {
                let target = Target::of(mc_stat.target, channel, tile.start + bin);
                let nu = params[mc_stat.first_param as usize + tile.start + bin];
                let weight = first[bin] * nu / roots[bin];
                for (column, &position) in channel.columns.iter().enumerate() {
                    let rate = rates(k, column, bin);
                    if rate == 0.0 {
                        continue;
                    }
                    *target.entry(out, g, position as usize) += first[bin] * rate;
                    let column_start = position as usize * g;
                    for (other, &row) in channel.columns.iter().enumerate().skip(column) {
                        out.global[column_start + row as usize] -= weight * rate * rates(k, other, bin);
                    }
                }
                for TemplateErrors { template, errors } in &mc_stat.errors {
                    let error = point.scale[*template] * errors[tile.start + bin];
                    self.variances[*template] += weight * error * error;
                }
            }
        }
    }
}
