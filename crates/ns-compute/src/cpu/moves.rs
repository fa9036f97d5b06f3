//! Evaluates the Poisson terms where one parameter has another value, for several such moves at
//! once. Only what a move changes is computed again.
//!
//! A template (S + Σ shifts)·K·Πγ = y whose shifts change by δ and whose factors change by r yields
//! y + (r - 1)·y + r·K·Πγ·δ. Its derivative with respect to the parameter is
//! u·(y + r·K·Πγ·δ + (r - 1)·y) + r·K·Πγ·δ' with u = Σ f'/f of the changed factors.

use super::channel::{PointTerms, Site, Tile, TileWork, add_yields, flush_tiny, multiply_bin_factors, tiles};
use super::isa::{Isa, VectorBody};
use super::nonzero;
use super::plan::{HistoSysUse, ModelPlan, TILE, TemplatePlan};
use super::terms;
use ns_core::Data;
use ns_core::interpolate::Jet;

/// The largest number of moves in one pass.
pub(super) const MAX_MOVES: usize = 16;

/// Marks a parameter that does not move.
const NONE: u8 = u8::MAX;

/// Evaluates the Poisson terms and their derivative with respect to the moved parameter, for each
/// of `moves` alone: at most [`MAX_MOVES`], of different parameters. +∞ outside the domain.
pub(super) struct MovedTerms<'a> {
    pub(super) plan: &'a ModelPlan,
    pub(super) data: &'a Data,
    pub(super) floor: Option<f64>,
    pub(super) point: &'a mut PointTerms,
    pub(super) work: &'a mut TileWork,
    pub(super) params: &'a [f64],
    pub(super) moves: &'a [(usize, f64)],
}

impl VectorBody for MovedTerms<'_> {
    type Output = [[f64; 2]; MAX_MOVES];

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Self::Output {
        let Self { plan, data, floor, point, work, params, moves } = self;
        point.set::<I, true>(isa, plan, params);
        let mut changes = Changes::new(plan, params, moves);
        let mut sums = [[0.0; 2]; MAX_MOVES];
        for channel in &plan.channels {
            for tile in tiles(channel) {
                changes.begin_tile();
                work.lambda[..tile.width].fill(0.0);
                for t in channel.templates.clone() {
                    let site = Site { plan, channel, tile, point, params };
                    let mut at = TemplateYields { scales: [point.scale[t]; TILE], yields: [0.0; TILE] };
                    multiply_bin_factors(site, t, nonzero, &mut at.scales);
                    add_yields(isa, site, t, &at.scales, &mut at.yields);
                    changes.add_template(&plan.templates[t], tile, point, &at);
                    (0..tile.width).for_each(|bin| work.lambda[bin] += at.yields[bin]);
                }
                let observed = &data.main[Site { plan, channel, tile, point, params }.bins()];
                changes.add_terms(observed, &work.lambda, floor, &mut sums);
            }
        }
        sums
    }
}

/// K·Πγ and the yield of a template in each bin of a tile.
struct TemplateYields {
    scales: [f64; TILE],
    yields: [f64; TILE],
}

/// Returns the changes of p and q, and p', q' after them.
fn changed_weights([before, after]: [(Jet, Jet); 2]) -> [f64; 4] {
    [after.0.value - before.0.value, after.1.value - before.1.value, after.0.first, after.1.first]
}

/// The changes that the moves make in one tile.
struct Changes<'a> {
    plan: &'a ModelPlan,
    params: &'a [f64],
    moves: &'a [(usize, f64)],
    /// Place of each parameter (P) in `moves`.
    places: Vec<u8>,
    /// Histosys weights: changes of p and q, and p', q' after them.
    weights: [[f64; 4]; MAX_MOVES],
    /// r and u of the current template.
    factors: [[f64; 2]; MAX_MOVES],
    /// The changes of λ, and its derivatives after the move.
    changes: [[f64; TILE]; MAX_MOVES],
    rates: [[f64; TILE]; MAX_MOVES],
}

impl<'a> Changes<'a> {
    fn new(plan: &'a ModelPlan, params: &'a [f64], moves: &'a [(usize, f64)]) -> Self {
        let (mut places, mut weights) = (vec![NONE; plan.n_extended], [[0.0; 4]; MAX_MOVES]);
        for (c, &(i, value)) in moves.iter().enumerate() {
            places[i] = c as u8;
            weights[c] = changed_weights([params[i], value].map(|alpha| plan.histosys_rule.weights(alpha)));
        }
        let zeros = [[0.0; TILE]; MAX_MOVES];
        Self { plan, params, moves, places, weights, factors: [[1.0, 0.0]; MAX_MOVES], changes: zeros, rates: zeros }
    }

    /// Returns the changes of the weights of `shift` in move `c`, and their derivatives after it.
    #[inline(always)]
    fn weights_of(&self, shift: &HistoSysUse, c: usize) -> [f64; 4] {
        let Some(own) = (shift.weight as usize).checked_sub(self.plan.n_params) else { return self.weights[c] };
        let response = self.plan.own_weights[own].response;
        let (i, value) = self.moves[c];
        changed_weights([self.params[i], value].map(|param| response.weights(param)))
    }

    fn begin_tile(&mut self) {
        let n = self.moves.len();
        self.changes[..n].fill([0.0; TILE]);
        self.rates[..n].fill([0.0; TILE]);
    }

    fn place(&self, param: u32) -> Option<usize> {
        let place = self.places[param as usize];
        (place != NONE).then_some(place as usize)
    }

    /// Adds the changes of a template.
    #[inline(always)]
    fn add_template(&mut self, template: &TemplatePlan, tile: Tile, point: &PointTerms, at: &TemplateYields) {
        let TemplateYields { scales, yields } = at;
        self.collect_factors(template, point);
        self.add_shifts(template, tile, scales);
        for c in 0..self.moves.len() {
            let [ratio, derivative] = std::mem::replace(&mut self.factors[c], [1.0, 0.0]);
            if ratio != 1.0 || derivative != 0.0 {
                for bin in 0..tile.len {
                    self.changes[c][bin] += (ratio - 1.0) * yields[bin];
                    self.rates[c][bin] += derivative * ratio * yields[bin];
                }
            }
        }
        self.add_bin_factors(template, tile, yields);
    }

    /// Computes r and u of the scale and normsys factors.
    #[inline(always)]
    fn collect_factors(&mut self, template: &TemplatePlan, point: &PointTerms) {
        for scale in &self.plan.scales[template.scales.clone()] {
            let Some(c) = self.place(scale.param) else { continue };
            let (before, after) = (nonzero(self.params[scale.param as usize]), nonzero(self.moves[c].1));
            self.factors[c][0] *= after / before;
            self.factors[c][1] += 1.0 / after;
        }
        for e in template.normsys.clone() {
            let Some(c) = self.place(self.plan.normsys[e].param) else { continue };
            let after = self.plan.normsys_table.at(e, self.moves[c].1);
            self.factors[c][0] *= nonzero(after.value) / nonzero(point.factors.value[e]);
            self.factors[c][1] += after.first / nonzero(after.value);
        }
    }

    #[inline(always)]
    fn add_shifts(&mut self, template: &TemplatePlan, tile: Tile, scale: &[f64; TILE]) {
        for shift in &self.plan.histosys[template.histosys.clone()] {
            let Some(c) = self.place(shift.param) else { continue };
            let ([ratio, derivative], [dp, dq, p, q]) = (self.factors[c], self.weights_of(shift, c));
            let start = shift.cells as usize + tile.start;
            let shifts = &*self.plan.shifts;
            let (up, down) = (&shifts.up[start..][..tile.len], &shifts.down[start..][..tile.len]);
            for bin in 0..tile.len {
                let scale = ratio * scale[bin];
                let change = scale * (dp * up[bin] + dq * down[bin]);
                self.changes[c][bin] += change;
                self.rates[c][bin] += scale * (p * up[bin] + q * down[bin]) + derivative * change;
            }
        }
    }

    #[inline(always)]
    fn add_bin_factors(&mut self, template: &TemplatePlan, tile: Tile, yields: &[f64; TILE]) {
        for factor in &self.plan.bin_factors[template.bin_factors.clone()] {
            for bin in 0..tile.len {
                let param = factor.first_param + (tile.start + bin) as u32;
                let Some(c) = self.place(param) else { continue };
                let gamma = nonzero(self.params[param as usize]);
                self.changes[c][bin] += (self.moves[c].1 / gamma - 1.0) * yields[bin];
                self.rates[c][bin] += yields[bin] / gamma;
            }
        }
    }

    /// Adds the tile's terms and their derivatives to `sums`; `lambda` is the expectation without a
    /// move.
    #[inline(always)]
    fn add_terms(&self, observed: &[f64], lambda: &[f64; TILE], floor: Option<f64>, sums: &mut [[f64; 2]; MAX_MOVES]) {
        let (mut first, mut second) = ([0.0; TILE], [0.0; TILE]);
        for (c, sum) in sums[..self.moves.len()].iter_mut().enumerate() {
            let mut moved = [0.0; TILE];
            (0..observed.len()).for_each(|bin| moved[bin] = lambda[bin] + self.changes[c][bin]);
            flush_tiny(&mut moved);
            let moved = &moved[..observed.len()];
            sum[0] += terms::poisson_value(observed, moved, floor);
            terms::derivatives(observed, moved, floor, &mut first, &mut second);
            sum[1] += self.rates[c].iter().zip(&first).take(observed.len()).map(|(rate, w)| rate * w).sum::<f64>();
        }
    }
}
