//! One tile of a channel: expected yields, and their Jacobian.
//!
//! A tile is up to [`TILE`](super::plan::TILE) neighbouring bins of one channel, padded to whole vectors. Strips of N bins are kept in registers
//! while the modifiers of a template pass by.

use super::factors::Factors;
use super::isa::Isa;
use super::nonzero;
use super::plan::{BinFactorTarget, ChannelPlan, ModelPlan, PAD, TILE, TemplatePlan};
use std::iter::StepBy;
use std::ops::Range;

/// No expected count that a measurement can tell from zero is below this.
pub(crate) const NOTHING: f64 = 1e-50;

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

/// The tiles of a channel, in order.
pub(crate) fn tiles(channel: &ChannelPlan) -> impl Iterator<Item = Tile> + use<> {
    let (n_bins, width) = (channel.bins.len(), channel.width);
    (0..width).step_by(TILE).map(move |start| Tile {
        start,
        len: TILE.min(n_bins - start),
        width: TILE.min(width - start),
    })
}

/// What depends on the parameters but not on the bin.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// Histosys weights p, q, p', q', p'', q'' of each parameter (P).
    pub(crate) weights: Vec<[f64; 6]>,
    /// Normsys factors.
    pub(crate) factors: Factors,
    /// K, the product of scale and normsys factors of each template (T).
    pub(crate) scale: Vec<f64>,
}

impl Point {
    pub(crate) fn new(plan: &ModelPlan) -> Self {
        Self {
            weights: vec![[0.0; 6]; plan.n_params],
            factors: plan.normsys_table.factors(),
            scale: vec![0.0; plan.templates.len()],
        }
    }

    /// Prepares the evaluation at `params`; with derivatives, zero factors are replaced by tiny ones.
    #[inline(always)]
    pub(crate) fn set<I: Isa, const DERIVATIVES: bool>(&mut self, isa: I, plan: &ModelPlan, params: &[f64]) {
        for &param in &plan.histosys_params {
            let (p, q) = plan.histosys_rule.weights(params[param as usize]);
            self.weights[param as usize] = [p.value, q.value, p.first, q.first, p.second, q.second];
        }
        plan.normsys_table.evaluate::<I, DERIVATIVES>(isa, params, &mut self.factors);
        let factor = |x: f64| if DERIVATIVES { nonzero(x) } else { x };
        for (scale, template) in self.scale.iter_mut().zip(&plan.templates) {
            let scales: f64 =
                plan.scales[template.scales.clone()].iter().map(|s| factor(params[s.param as usize])).product();
            *scale = scales * product(&self.factors.value[template.normsys.clone()], factor);
        }
    }
}

/// The product of `values`, in four interleaved chains so that the multiplications overlap.
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

/// Rows of one number per bin of a tile, back to back: a tile of four bins has rows of four, so that neighbours share cache lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    width: usize,
    values: Vec<f64>,
}

impl Rows {
    fn with_capacity(n: usize) -> Self {
        Self { width: 0, values: vec![0.0; n] }
    }

    /// Makes the rows `width` long and sets the first `n` of them to zero.
    #[inline(always)]
    fn reset(&mut self, n: usize, width: usize) {
        self.width = width;
        self.values[..n * width].fill(0.0);
    }

    /// Row `i`.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.width..(i + 1) * self.width]
    }

    #[inline(always)]
    fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.values[i * self.width..(i + 1) * self.width]
    }
}

/// Yields and Jacobian of one tile.
#[derive(Debug, Clone)]
pub(crate) struct TileWork {
    /// λ of each bin.
    pub(crate) lambda: [f64; TILE],
    /// Yield of each template of the channel.
    pub(crate) yields: Rows,
    /// K · Π γ of each template of the channel.
    pub(crate) scales: Rows,
    /// ∂λ/∂θ, one row per column of the channel.
    pub(crate) jacobian: Rows,
    /// ∂λ/∂γ, one row per local slot of the channel.
    pub(crate) local_jacobian: Rows,
}

impl TileWork {
    pub(crate) fn new(plan: &ModelPlan) -> Self {
        let rows = |n_rows: fn(&ChannelPlan) -> usize| {
            let size = |c: &ChannelPlan| n_rows(c) * c.width.min(TILE);
            Rows::with_capacity(plan.channels.iter().map(size).max().unwrap_or(0))
        };
        Self {
            lambda: [0.0; TILE],
            yields: rows(|c| c.templates.len()),
            scales: rows(|c| c.templates.len()),
            jacobian: rows(|c| c.columns.len()),
            local_jacobian: rows(|c| c.n_slots),
        }
    }

    /// Expected yields of `tile` into `self.lambda`.
    #[inline(always)]
    pub(crate) fn expect<I: Isa>(
        &mut self,
        isa: I,
        plan: &ModelPlan,
        channel: &ChannelPlan,
        tile: Tile,
        at: (&Point, &[f64]),
    ) {
        self.lambda[..tile.width].fill(0.0);
        for t in channel.templates.clone() {
            let mut scale = [at.0.scale[t]; TILE];
            add_template(isa, plan, t, tile, at, |x| x, (&mut scale, &mut self.lambda));
        }
        forget_next_to_nothing(&mut self.lambda[..tile.width]);
    }

    /// Expected yields, and their derivatives with respect to every column and every local slot.
    #[inline(always)]
    pub(crate) fn differentiate<I: Isa>(
        &mut self,
        isa: I,
        plan: &ModelPlan,
        channel: &ChannelPlan,
        tile: Tile,
        at: (&Point, &[f64]),
    ) {
        let (point, params) = at;
        self.lambda[..tile.width].fill(0.0);
        self.yields.reset(channel.templates.len(), tile.width);
        self.scales.reset(channel.templates.len(), tile.width);
        self.jacobian.reset(channel.columns.len(), tile.width);
        self.local_jacobian.reset(channel.n_slots, tile.width);
        for (i, t) in channel.templates.clone().enumerate() {
            let template = &plan.templates[t];
            self.scales.row_mut(i).fill(point.scale[t]);
            multiply_bin_factors(plan, template, tile, params, nonzero, self.scales.row_mut(i));
            let (wide, narrow) = strips(tile.width);
            for start in wide {
                self.differentiate_strip::<I, 8>(isa, plan, template, tile, point, (i, start));
            }
            for start in narrow {
                self.differentiate_strip::<I, PAD>(isa, plan, template, tile, point, (i, start));
            }
            self.differentiate_scalars(isa, plan, template, (point, params), i);
            self.differentiate_bin_factors(plan, template, tile, params, i);
        }
        forget_next_to_nothing(&mut self.lambda[..tile.width]);
    }

    #[inline(always)]
    fn differentiate_strip<I: Isa, const N: usize>(
        &mut self,
        isa: I,
        plan: &ModelPlan,
        template: &TemplatePlan,
        tile: Tile,
        point: &Point,
        (i, start): (usize, usize),
    ) {
        let shifted = shifted_strip::<I, N>(isa, plan, template, tile.start + start, point);
        let scale: [f64; N] = *strip(self.scales.row(i), start);
        let yields: &mut [f64; N] = strip_mut(self.yields.row_mut(i), start);
        let lambda: &mut [f64; N] = strip_mut(&mut self.lambda, start);
        for lane in 0..N {
            yields[lane] = shifted[lane] * scale[lane];
            lambda[lane] += yields[lane];
        }
        for modifier in &plan.histosys[template.histosys.clone()] {
            let [_, _, p, q, ..] = point.weights[modifier.param as usize];
            let cells = modifier.cells as usize + tile.start + start;
            let (up, down): (&[f64; N], &[f64; N]) = (strip(&plan.up, cells), strip(&plan.down, cells));
            let row: &mut [f64; N] = strip_mut(self.jacobian.row_mut(modifier.column as usize), start);
            for lane in 0..N {
                let derivative = isa.fma(p, up[lane], q * down[lane]);
                row[lane] = isa.fma(scale[lane], derivative, row[lane]);
            }
        }
    }

    #[inline(always)]
    fn differentiate_scalars<I: Isa>(
        &mut self,
        isa: I,
        plan: &ModelPlan,
        template: &TemplatePlan,
        (point, params): (&Point, &[f64]),
        i: usize,
    ) {
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
    fn differentiate_bin_factors(
        &mut self,
        plan: &ModelPlan,
        template: &TemplatePlan,
        tile: Tile,
        params: &[f64],
        i: usize,
    ) {
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

/// The yields of template `t`, added to `out`; `scale` is K in every bin and becomes K·Πγ.
#[inline(always)]
pub(crate) fn add_template<I: Isa>(
    isa: I,
    plan: &ModelPlan,
    t: usize,
    tile: Tile,
    (point, params): (&Point, &[f64]),
    factor: impl Fn(f64) -> f64,
    (scale, out): (&mut [f64; TILE], &mut [f64; TILE]),
) {
    let template = &plan.templates[t];
    multiply_bin_factors(plan, template, tile, params, factor, scale);
    let (wide, narrow) = strips(tile.width);
    for start in wide {
        add_yield::<I, 8>(isa, plan, template, tile, point, start, scale, out);
    }
    for start in narrow {
        add_yield::<I, PAD>(isa, plan, template, tile, point, start, scale, out);
    }
}

/// What only tiny stand-ins for zero factors add up to is zero; with and without derivatives, so that both say the same.
#[inline(always)]
pub(crate) fn forget_next_to_nothing(lambda: &mut [f64]) {
    for lambda in lambda {
        *lambda = if lambda.abs() < NOTHING { 0.0 } else { *lambda };
    }
}

/// Where the strips of 8 bins start that cover `width` bins, and the strip of 4 that may be left.
///
/// Loops, not a closure: a closure is compiled without the instruction set of the function that calls it.
#[inline(always)]
fn strips(width: usize) -> (StepBy<Range<usize>>, StepBy<Range<usize>>) {
    let wide = width / 8 * 8;
    ((0..wide).step_by(8), (wide..width).step_by(PAD))
}

#[inline(always)]
fn strip<const N: usize>(values: &[f64], start: usize) -> &[f64; N] {
    values[start..].first_chunk().expect("rows are padded to whole strips")
}

#[inline(always)]
fn strip_mut<const N: usize>(values: &mut [f64], start: usize) -> &mut [f64; N] {
    values[start..].first_chunk_mut().expect("rows are padded to whole strips")
}

/// nominal + Σ shifts of N bins from `start` on, counted inside the channel.
#[inline(always)]
fn shifted_strip<I: Isa, const N: usize>(
    isa: I,
    plan: &ModelPlan,
    template: &TemplatePlan,
    start: usize,
    point: &Point,
) -> [f64; N] {
    let mut sum: [f64; N] = *strip(&plan.nominal, template.cells + start);
    for modifier in &plan.histosys[template.histosys.clone()] {
        let [p, q, ..] = point.weights[modifier.param as usize];
        let cells = modifier.cells as usize + start;
        let (up, down): (&[f64; N], &[f64; N]) = (strip(&plan.up, cells), strip(&plan.down, cells));
        for lane in 0..N {
            sum[lane] = isa.fma(p, up[lane], isa.fma(q, down[lane], sum[lane]));
        }
    }
    sum
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "a strip of the loop in `expect`; a struct would be built per strip")]
fn add_yield<I: Isa, const N: usize>(
    isa: I,
    plan: &ModelPlan,
    template: &TemplatePlan,
    tile: Tile,
    point: &Point,
    start: usize,
    scale: &[f64; TILE],
    lambda: &mut [f64; TILE],
) {
    let shifted = shifted_strip::<I, N>(isa, plan, template, tile.start + start, point);
    let (scale, lambda): (&[f64; N], &mut [f64; N]) = (strip(scale, start), strip_mut(lambda, start));
    for lane in 0..N {
        lambda[lane] = isa.fma(shifted[lane], scale[lane], lambda[lane]);
    }
}

/// Multiplies the per-bin factors of `template` into `scale`.
#[inline(always)]
fn multiply_bin_factors(
    plan: &ModelPlan,
    template: &TemplatePlan,
    tile: Tile,
    params: &[f64],
    factor: impl Fn(f64) -> f64,
    scale: &mut [f64],
) {
    for modifier in &plan.bin_factors[template.bin_factors.clone()] {
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
