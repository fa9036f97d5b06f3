//! Evaluates one tile of a channel: expected yields, and their Jacobian.
//!
//! A tile is up to [`TILE`](super::plan::TILE) neighbouring bins of one channel, padded to whole
//! vectors. Strips of N bins stay in registers during the loop over the modifiers of a template.

use super::factors::NormSysValues;
use super::isa::Isa;
use super::nonzero;
use super::plan::{BinFactorTarget, ChannelPlan, ModelPlan, PAD, TILE, TemplatePlan};
use super::rules::SumWork;
use ns_core::shape::ShapePoint;
use std::iter::StepBy;
use std::ops::Range;

/// Expected counts below this are zero.
pub(crate) const NEGLIGIBLE: f64 = 1e-50;

/// Neighbouring bins of a channel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tile {
    /// First bin, counted inside the channel.
    pub(crate) start: usize,
    /// Number of bins.
    pub(crate) len: usize,
    /// Number of bins, padded.
    pub(crate) width: usize,
}

/// Returns the tiles of a channel, in order.
pub(crate) fn tiles(channel: &ChannelPlan) -> impl Iterator<Item = Tile> + use<> {
    let (n_bins, width) = (channel.bins.len(), channel.width);
    (0..width).step_by(TILE).map(move |start| Tile {
        start,
        len: TILE.min(n_bins - start),
        width: TILE.min(width - start),
    })
}

/// Where a body evaluates: a tile of a channel, at a point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) plan: &'a ModelPlan,
    pub(crate) channel: &'a ChannelPlan,
    pub(crate) tile: Tile,
    /// The terms of the point that are the same in every bin.
    pub(crate) point: &'a PointTerms,
    /// The point (P).
    pub(crate) params: &'a [f64],
}

impl Site<'_> {
    /// Returns the bins of the tile among those of the model.
    pub(crate) fn bins(&self) -> Range<usize> {
        let start = self.channel.bins.start + self.tile.start;
        start..start + self.tile.len
    }
}

/// The terms of a point that depend on the parameters but not on the bin.
#[derive(Debug, Clone)]
pub(crate) struct PointTerms {
    /// Histosys weights p, q, p', q', p'', q'' of each parameter (P), then those of own responses.
    pub(crate) weights: Vec<[f64; 6]>,
    /// Normsys factors.
    pub(crate) factors: NormSysValues,
    /// K, the product of scale and normsys factors of each template (T).
    pub(crate) scale: Vec<f64>,
    /// Nominal yields with the morphing terms added, and templates with a shape, padded; empty if
    /// no template has either.
    pub(crate) morphed: Vec<f64>,
    /// The templates with a shape.
    pub(crate) shapes: Vec<ShapePoint>,
}

impl PointTerms {
    pub(crate) fn new(plan: &ModelPlan) -> Self {
        Self {
            weights: vec![[0.0; 6]; plan.n_weights()],
            factors: plan.normsys_table.factors(),
            scale: vec![0.0; plan.templates.len()],
            morphed: if plan.morphs.is_empty() && plan.shapes.is_empty() { Vec::new() } else { plan.nominal.clone() },
            shapes: plan.shapes.iter().map(|plan| ShapePoint::new(&plan.shape)).collect(),
        }
    }

    /// Adds the morphing terms to the nominal yields.
    #[inline(always)]
    fn morph<I: Isa>(&mut self, isa: I, plan: &ModelPlan, params: &[f64]) {
        for channel in &plan.channels {
            for template in &plan.templates[channel.templates.clone()] {
                if template.morphs.is_empty() {
                    continue;
                }
                let cells = template.cells..template.cells + channel.width;
                let morphed = &mut self.morphed[cells.clone()];
                morphed.copy_from_slice(&plan.nominal[cells]);
                for term in &plan.morphs[template.morphs.clone()] {
                    let values = &plan.morphing[term.cells as usize..][..channel.width];
                    add_scaled(isa, morphed, values, params[term.param as usize]);
                }
            }
        }
    }

    /// Computes the terms at `params`; with derivatives, zero factors are replaced by tiny ones.
    #[inline(always)]
    pub(crate) fn set<I: Isa, const DERIVATIVES: bool>(&mut self, isa: I, plan: &ModelPlan, params: &[f64]) {
        for &param in &plan.histosys_params {
            let (p, q) = plan.histosys_rule.weights(params[param as usize]);
            self.weights[param as usize] = [p.value, q.value, p.first, q.first, p.second, q.second];
        }
        for (own, weights) in plan.own_weights.iter().zip(&mut self.weights[plan.n_params..]) {
            let (p, q) = own.response.weights(params[own.param as usize]);
            *weights = [p.value, q.value, p.first, q.first, p.second, q.second];
        }
        plan.normsys_table.evaluate::<I, DERIVATIVES>(isa, params, &mut self.factors);
        if !plan.morphs.is_empty() {
            self.morph(isa, plan, params);
        }
        if !plan.shapes.is_empty() {
            self.set_shapes::<DERIVATIVES>(plan, params);
        }
        let factor = |x: f64| if DERIVATIVES { nonzero(x) } else { x };
        for (scale, template) in self.scale.iter_mut().zip(&plan.templates) {
            let scales: f64 =
                plan.scales[template.scales.clone()].iter().map(|s| factor(params[s.param as usize])).product();
            *scale = scales * product(&self.factors.value[template.normsys.clone()], factor);
        }
    }
}

/// Returns the product of `values`, in four interleaved chains so that the multiplications overlap.
#[inline(always)]
fn product(values: &[f64], factor: impl Fn(f64) -> f64) -> f64 {
    let mut chains = [1.0; 4];
    let (groups, rest) = values.as_chunks::<4>();
    for group in groups {
        for (chain, &value) in chains.iter_mut().zip(group) {
            *chain *= factor(value);
        }
    }
    for (chain, &value) in chains.iter_mut().zip(rest) {
        *chain *= factor(value);
    }
    (chains[0] * chains[1]) * (chains[2] * chains[3])
}

/// Rows of one number per bin of a tile, back to back: a tile of four bins has rows of four, so
/// that neighbours share cache lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct TileRows {
    width: usize,
    values: Vec<f64>,
}

impl TileRows {
    pub(super) fn with_capacity(n: usize) -> Self {
        Self { width: 0, values: vec![0.0; n] }
    }

    /// Makes the rows `width` long and sets the first `n` of them to zero.
    #[inline(always)]
    pub(super) fn reset(&mut self, n: usize, width: usize) {
        self.width = width;
        self.values[..n * width].fill(0.0);
    }

    /// Returns row `i`.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.width..(i + 1) * self.width]
    }

    #[inline(always)]
    pub(super) fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.values[i * self.width..(i + 1) * self.width]
    }
}

/// Yields and Jacobian of one tile.
#[derive(Debug, Clone)]
pub(crate) struct TileWork {
    /// λ of each bin.
    pub(crate) lambda: [f64; TILE],
    /// Yield of each template of the channel.
    pub(crate) yields: TileRows,
    /// K · Π γ of each template of the channel.
    pub(crate) scales: TileRows,
    /// ∂λ/∂θ, one row per column of the channel.
    pub(crate) jacobian: TileRows,
    /// ∂λ/∂γ, one row per local slot of the channel.
    pub(crate) local_jacobian: TileRows,
    /// Statistical uncertainties of the sums.
    pub(crate) sums: SumWork,
}

impl TileWork {
    pub(crate) fn new(plan: &ModelPlan) -> Self {
        let rows = |n_rows: fn(&ChannelPlan) -> usize| {
            let size = |c: &ChannelPlan| n_rows(c) * c.width.min(TILE);
            TileRows::with_capacity(plan.channels.iter().map(size).max().unwrap_or(0))
        };
        Self {
            lambda: [0.0; TILE],
            yields: rows(|c| c.templates.len()),
            scales: rows(|c| c.templates.len()),
            jacobian: rows(|c| c.columns.len()),
            local_jacobian: rows(|c| c.n_slots),
            sums: SumWork::new(plan),
        }
    }

    /// Computes the expected yields into `self.lambda`.
    #[inline(always)]
    pub(crate) fn expect<I: Isa>(&mut self, isa: I, site: Site<'_>) {
        let Site { channel, tile, point, .. } = site;
        self.lambda[..tile.width].fill(0.0);
        for t in channel.templates.clone() {
            let mut scale = [point.scale[t]; TILE];
            multiply_bin_factors(site, t, |x| x, &mut scale);
            match site.plan.clip_samples {
                None => add_yields(isa, site, t, &scale, &mut self.lambda),
                Some(limit) => self.add_clipped(isa, site, t, &scale, limit),
            }
        }
        if site.plan.has_rules {
            return self.complete_sums(site);
        }
        flush_tiny(&mut self.lambda[..tile.width]);
    }

    /// Computes the expected yields, and their derivatives with respect to every column and every
    /// local slot.
    #[inline(always)]
    pub(crate) fn differentiate<I: Isa>(&mut self, isa: I, site: Site<'_>) {
        let Site { channel, tile, point, .. } = site;
        self.lambda[..tile.width].fill(0.0);
        self.yields.reset(channel.templates.len(), tile.width);
        self.scales.reset(channel.templates.len(), tile.width);
        self.jacobian.reset(channel.columns.len(), tile.width);
        self.local_jacobian.reset(channel.n_slots, tile.width);
        for (i, t) in channel.templates.clone().enumerate() {
            self.scales.row_mut(i).fill(point.scale[t]);
            multiply_bin_factors(site, t, nonzero, self.scales.row_mut(i));
            if let Some(limit) = site.plan.clip_samples {
                self.clip(isa, site, i, limit);
            }
            let [broad, wide, narrow] = strips(tile.width);
            for start in broad {
                self.differentiate_strip::<I, 32>(isa, site, i, start);
            }
            for start in wide {
                self.differentiate_strip::<I, 8>(isa, site, i, start);
            }
            for start in narrow {
                self.differentiate_strip::<I, PAD>(isa, site, i, start);
            }
            self.differentiate_scalars(isa, site, i);
            self.differentiate_bin_factors(site, i);
            self.differentiate_shape(isa, site, i);
        }
        if site.plan.has_rules {
            return self.differentiate_sums(site);
        }
        flush_tiny(&mut self.lambda[..tile.width]);
    }

    #[inline(always)]
    fn differentiate_strip<I: Isa, const N: usize>(&mut self, isa: I, site: Site<'_>, i: usize, start: usize) {
        let Site { plan, channel, tile, point, .. } = site;
        let template = &plan.templates[channel.templates.start + i];
        let shifted = shifted_strip::<I, N>(isa, site, template, start);
        let scale: [f64; N] = *strip(self.scales.row(i), start);
        let yields: &mut [f64; N] = strip_mut(self.yields.row_mut(i), start);
        let lambda: &mut [f64; N] = strip_mut(&mut self.lambda, start);
        for lane in 0..N {
            yields[lane] = shifted[lane] * scale[lane];
            lambda[lane] += yields[lane];
        }
        let shifts = &*plan.shifts;
        for modifier in &plan.histosys[template.histosys.clone()] {
            let [_, _, p, q, ..] = point.weights[modifier.weight as usize];
            let cells = modifier.cells as usize + tile.start + start;
            let (up, down): (&[f64; N], &[f64; N]) = (strip(&shifts.up, cells), strip(&shifts.down, cells));
            let row: &mut [f64; N] = strip_mut(self.jacobian.row_mut(modifier.column as usize), start);
            for lane in 0..N {
                let derivative = isa.fma(p, up[lane], q * down[lane]);
                row[lane] = isa.fma(scale[lane], derivative, row[lane]);
            }
        }
        for term in &plan.morphs[template.morphs.clone()] {
            let values: &[f64; N] = strip(&plan.morphing, term.cells as usize + tile.start + start);
            let row: &mut [f64; N] = strip_mut(self.jacobian.row_mut(term.column as usize), start);
            for lane in 0..N {
                row[lane] = isa.fma(scale[lane], values[lane], row[lane]);
            }
        }
    }

    #[inline(always)]
    fn differentiate_scalars<I: Isa>(&mut self, isa: I, site: Site<'_>, i: usize) {
        let Site { plan, channel, point, params, .. } = site;
        let template = &plan.templates[channel.templates.start + i];
        let yields = self.yields.row(i);
        for s in &plan.scales[template.scales.clone()] {
            let derivative = 1.0 / nonzero(params[s.param as usize]);
            add_scaled(isa, self.jacobian.row_mut(s.column as usize), yields, derivative);
        }
        let derivatives = &point.factors.log_derivative[template.normsys.clone()];
        for (s, &derivative) in plan.normsys[template.normsys.clone()].iter().zip(derivatives) {
            add_scaled(isa, self.jacobian.row_mut(s.column as usize), yields, derivative);
        }
    }

    #[inline(always)]
    fn differentiate_bin_factors(&mut self, site: Site<'_>, i: usize) {
        let Site { plan, channel, tile, params, .. } = site;
        let template = &plan.templates[channel.templates.start + i];
        for factor in &plan.bin_factors[template.bin_factors.clone()] {
            for bin in 0..tile.len {
                let gamma = nonzero(params[factor.first_param as usize + tile.start + bin]);
                let derivative = self.yields.row(i)[bin] / gamma;
                match factor.target {
                    BinFactorTarget::Local { slot } => self.local_jacobian.row_mut(slot as usize)[bin] += derivative,
                    BinFactorTarget::Global { first_column } => {
                        self.jacobian.row_mut(first_column as usize + tile.start + bin)[bin] += derivative;
                    }
                }
            }
        }
    }
}

/// Adds the yields of template `t` to `out`; `scale` is K·Πγ of each bin.
#[inline(always)]
pub(crate) fn add_yields<I: Isa>(isa: I, site: Site<'_>, t: usize, scale: &[f64; TILE], out: &mut [f64; TILE]) {
    let template = &site.plan.templates[t];
    let [broad, wide, narrow] = strips(site.tile.width);
    for start in broad {
        let shifted = shifted_strip::<I, 32>(isa, site, template, start);
        add_products(isa, &shifted, strip(scale, start), strip_mut(out, start));
    }
    for start in wide {
        let shifted = shifted_strip::<I, 8>(isa, site, template, start);
        add_products(isa, &shifted, strip(scale, start), strip_mut(out, start));
    }
    for start in narrow {
        let shifted = shifted_strip::<I, PAD>(isa, site, template, start);
        add_products(isa, &shifted, strip(scale, start), strip_mut(out, start));
    }
}

/// Sets sums to zero that consist of tiny replacements of zero factors only, with and without
/// derivatives, so that both give the same counts.
#[inline(always)]
pub(crate) fn flush_tiny(lambda: &mut [f64]) {
    for lambda in lambda {
        *lambda = if lambda.abs() < NEGLIGIBLE { 0.0 } else { *lambda };
    }
}

/// Returns where the strips of 32, of 8 and of 4 bins start that cover `width` bins. The variations
/// of a large model come from memory, where the bins of a strip are next to each other.
///
/// Loops, not a closure: a closure is compiled without the instruction set of the function that
/// calls it.
#[inline(always)]
fn strips(width: usize) -> [StepBy<Range<usize>>; 3] {
    let (broad, wide) = (width / 32 * 32, width / 8 * 8);
    [(0..broad).step_by(32), (broad..wide).step_by(8), (wide..width).step_by(PAD)]
}

#[inline(always)]
fn strip<const N: usize>(values: &[f64], start: usize) -> &[f64; N] {
    values[start..].first_chunk().expect("rows are padded to whole strips")
}

#[inline(always)]
fn strip_mut<const N: usize>(values: &mut [f64], start: usize) -> &mut [f64; N] {
    values[start..].first_chunk_mut().expect("rows are padded to whole strips")
}

/// Returns nominal + Σ shifts of N bins from `start` on, counted inside the tile.
#[inline(always)]
fn shifted_strip<I: Isa, const N: usize>(isa: I, site: Site<'_>, template: &TemplatePlan, start: usize) -> [f64; N] {
    let Site { plan, tile, point, .. } = site;
    let start = tile.start + start;
    let nominal = if template.is_moved { &point.morphed } else { &plan.nominal };
    let mut sum: [f64; N] = *strip(nominal, template.cells + start);
    let shifts = &*plan.shifts;
    for modifier in &plan.histosys[template.histosys.clone()] {
        let [p, q, ..] = point.weights[modifier.weight as usize];
        let cells = modifier.cells as usize + start;
        let (up, down): (&[f64; N], &[f64; N]) = (strip(&shifts.up, cells), strip(&shifts.down, cells));
        for lane in 0..N {
            sum[lane] = isa.fma(p, up[lane], isa.fma(q, down[lane], sum[lane]));
        }
    }
    sum
}

/// Adds the products of `a` and `b` to `out`.
#[inline(always)]
fn add_products<I: Isa, const N: usize>(isa: I, a: &[f64; N], b: &[f64; N], out: &mut [f64; N]) {
    for lane in 0..N {
        out[lane] = isa.fma(a[lane], b[lane], out[lane]);
    }
}

/// Multiplies the per-bin factors of template `t` into `scale`.
#[inline(always)]
pub(crate) fn multiply_bin_factors(site: Site<'_>, t: usize, factor: impl Fn(f64) -> f64, scale: &mut [f64]) {
    let Site { plan, tile, params, .. } = site;
    for modifier in &plan.bin_factors[plan.templates[t].bin_factors.clone()] {
        let first = modifier.first_param as usize + tile.start;
        for (scale, &gamma) in scale.iter_mut().zip(&params[first..first + tile.len]) {
            *scale *= factor(gamma);
        }
    }
}

#[inline(always)]
fn add_scaled<I: Isa>(isa: I, row: &mut [f64], values: &[f64], scale: f64) {
    let (row, values) = (row.as_chunks_mut::<PAD>().0, values.as_chunks::<PAD>().0);
    for (row, values) in row.iter_mut().zip(values) {
        for lane in 0..PAD {
            row[lane] = isa.fma(scale, values[lane], row[lane]);
        }
    }
}
