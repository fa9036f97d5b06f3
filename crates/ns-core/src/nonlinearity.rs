//! Measures how nonlinear the effect of each parameter is: whether -ln L may curve down along it
//! and have a second minimum.
//!
//! With expected counts λ_b(α), the other parameters at their starting values, and counts n_b,
//! d²(-ln L)/dα² = 1 + Σ_b [n_b λ'_b²/λ_b² + (1 - n_b/λ_b) λ''_b]. With n_b = λ_b + z_b √λ_b that
//! is 1 + Σ_b λ'_b²/λ_b - Σ_b z_b (λ''_b - λ'_b²/λ_b)/√λ_b, and what can make it negative is the
//! last sum. The *bend* of α is the ratio of Σ_b |λ''_b|/√λ_b to 1 + Σ_b λ'_b²/λ_b, the largest at
//! α = -1, 0 and +1: where every bin is 1/bend standard deviations off, -ln L can curve down. The
//! λ'²/λ of the last sum is left out: with λ'' = 0 nothing curves down, and an exponential λ, for
//! which the two terms cancel, is examined without need.
//!
//! Two parameters with nearly the same effect move against each other along a direction in which
//! the λ' cancel and the λ'' do not: the bend of such a pair is that of this direction. A sum over
//! hundreds of bins is large even if no data of the model make -ln L curve down, because Σ_b z_b
//! λ''_b/√λ_b fluctuates by √(Σ_b λ''_b²/λ_b) only. So the bend of a pair has 12 √(Σ_b c_b²) in
//! place of Σ_b |c_b|, with c = λ''/√λ, where that is less. As Σ_b |c_b| ≤ √n √(Σ_b c_b²) in n
//! bins, nothing changes in up to 144.

use crate::expected::morph;
use crate::interpolate::{HistoSysInterpolation, Jet, NormSysFactor, NormSysInterpolation};
use crate::model::Model;
use crate::response::{FactorRule, HistoSysResponse, NormSysResponse};
use serde::Serialize;

/// The points at which the bend is evaluated.
const POINTS: [f64; 3] = [-1.0, 0.0, 1.0];

/// The number of parameters among which pairs are searched for: those with the largest
/// Σ_b |λ''_b|/√λ_b.
const MOST_PAIRED: usize = 64;

/// Parameters with a smaller sum are in no pair.
const LEAST_PAIRED: f64 = 0.3;

/// Two parameters have nearly the same effect if the cosine of the angle between their λ'/√λ is
/// larger than this.
const SAME_EFFECT: f64 = 0.9;

/// The bend of a pair counts no more bins than the square of this, if their changes are equal.
const MOST_BINS_ROOT: f64 = 12.0;

/// The effect of a parameter on one bin: change of the nominal count, λ' and λ'' at α = -1, then λ'
/// and λ'' at α = 0, where nothing changes, and then all three at α = +1.
type BinResponse = [f64; 8];

/// How nonlinear the effect of each parameter is.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Nonlinearity {
    /// The bend of each parameter (P); 0 for parameters without a normsys or histosys.
    pub bend: Vec<f64>,
    /// The largest factor that a normsys of each parameter (P) has at ±1σ; 1 without one.
    pub factor: Vec<f64>,
    /// Pairs with nearly the same effect that are more bent than either of their parameters, most
    /// bent first.
    pub pairs: Vec<NearDegeneratePair>,
}

/// Two parameters with nearly the same effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NearDegeneratePair {
    /// The parameters.
    pub parameters: [usize; 2],
    /// -1 if they have the same effect, +1 if they have opposite ones: the effects of 1 and of this
    /// cancel.
    pub sign: f64,
    /// The bend of the direction in which their effects cancel.
    pub bend: f64,
}

impl Nonlinearity {
    /// Returns the nonlinearity of the parameters of `model`.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let mut factor = vec![1.0_f64; model.n_params()];
        let (lo, hi) = (model.values(model.layout.normsys_lo), model.values(model.layout.normsys_hi));
        for (entry, &param) in model.table(model.layout.normsys_param).iter().enumerate() {
            let largest = &mut factor[param as usize];
            *largest = largest.max(lo[entry]).max(hi[entry]);
        }
        let sums = bend_sums(model);
        let bend: Vec<f64> = sums.iter().map(bend).collect();
        let pairs = pairs(model, &sums, &bend);
        Self { bend, factor, pairs }
    }
}

/// Σ_b |λ''_b|/√λ_b and Σ_b λ'_b²/λ_b of a parameter, at each of [`POINTS`].
type BendSums = [[f64; 2]; 3];

/// The bins of a channel that a parameter has a systematic in, with its λ'/√λ and λ''/√λ in each,
/// at its starting value.
#[derive(Clone, Copy)]
struct ChannelEffects<'a> {
    first_bin: usize,
    effects: &'a [[f64; 2]],
}

/// Returns the effects in the channel whose first bin is `first_bin`; nothing if there are none.
fn effects_in<'a>(runs: &[ChannelEffects<'a>], first_bin: usize) -> &'a [[f64; 2]] {
    runs.binary_search_by_key(&first_bin, |run| run.first_bin).map_or(&[], |k| runs[k].effects)
}

/// Returns Σ_b λ'_b μ'_b/λ_b of two parameters, which have the runs `a` and `b`, by bin.
fn product(a: &[ChannelEffects<'_>], b: &[ChannelEffects<'_>]) -> f64 {
    let bins = a.iter().flat_map(|run| run.effects.iter().zip(effects_in(b, run.first_bin)));
    bins.map(|(x, y)| x[0] * y[0]).sum()
}

/// Returns Σ_b |c_b| of two parameters, c = (λ'' + μ'')/√λ, or if that is less, 12 √(Σ_b c_b²).
fn bent_together(a: &[ChannelEffects<'_>], b: &[ChannelEffects<'_>]) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut add = |change: f64| {
        sum += change.abs();
        squares += change * change;
    };
    let bins = a.iter().flat_map(|run| run.effects.iter().zip(effects_in(b, run.first_bin)));
    bins.for_each(|(x, y)| add(x[1] + y[1]));
    for (runs, others) in [(a, b), (b, a)] {
        let is_alone = |run: &&ChannelEffects<'_>| effects_in(others, run.first_bin).is_empty();
        runs.iter().filter(is_alone).flat_map(|run| run.effects).for_each(|[_, second]| add(*second));
    }
    sum.min(MOST_BINS_ROOT * squares.sqrt())
}

/// The effects of some parameters, one after the other.
#[derive(Default)]
struct Effects {
    /// For each channel and each parameter that has a systematic in it.
    rows: Vec<EffectRow>,
    /// λ'/√λ and λ''/√λ at the parameter's starting value, row by row.
    values: Vec<[f64; 2]>,
}

/// The effects of a parameter in the bins of a channel.
struct EffectRow {
    param: u32,
    first_bin: usize,
    /// Where they start in [`Effects::values`].
    start: usize,
}

impl Effects {
    /// Returns the effects of the parameters `which`.
    fn of(model: &Model, which: &[usize]) -> Self {
        let mut effects = Self::default();
        let mut wanted = vec![false; model.n_params()];
        which.iter().for_each(|&i| wanted[i] = true);
        each_row(model, &wanted, |row| {
            effects.rows.push(EffectRow { param: row.param, first_bin: row.first_bin, start: effects.values.len() });
            effects.values.extend(row.bins.iter().zip(row.nominal).map(|(response, count)| {
                let [_, _, _, first, second, ..] = *response;
                let inverse_deviation = count.max(1.0).sqrt().recip();
                [first * inverse_deviation, second * inverse_deviation]
            }));
        });
        effects
    }

    /// Returns the runs of each of the parameters `which`, by bin; `n_params` is P.
    fn runs(&self, which: &[usize], n_params: usize) -> Vec<Vec<ChannelEffects<'_>>> {
        let mut place = vec![usize::MAX; n_params];
        which.iter().enumerate().for_each(|(k, &i)| place[i] = k);
        let mut runs = vec![Vec::new(); which.len()];
        let ends = self.rows.iter().skip(1).map(|row| row.start).chain([self.values.len()]);
        for (&EffectRow { param, first_bin, start }, end) in self.rows.iter().zip(ends) {
            runs[place[param as usize]].push(ChannelEffects { first_bin, effects: &self.values[start..end] });
        }
        runs
    }
}

/// Returns the sums of each parameter (P).
fn bend_sums(model: &Model) -> Vec<BendSums> {
    let mut sums = vec![BendSums::default(); model.n_params()];
    each_row(model, &vec![true; model.n_params()], |row| {
        let sums = &mut sums[row.param as usize];
        row.bins.iter().zip(row.nominal).for_each(|(response, count)| add(sums, response, *count));
    });
    sums
}

/// Returns the pairs of nearly the same effect that are more bent than their parameters, which have
/// the sums `sums` (P) and are bent by `bend` (P).
fn pairs(model: &Model, sums: &[BendSums], bend: &[f64]) -> Vec<NearDegeneratePair> {
    let bent = |i: usize| sums[i][1][0];
    let mut which: Vec<usize> = (0..sums.len()).filter(|&i| bent(i) > LEAST_PAIRED).collect();
    which.sort_by(|&a, &b| bent(b).total_cmp(&bent(a)));
    which.truncate(MOST_PAIRED);
    let effects = Effects::of(model, &which);
    let runs = effects.runs(&which, sums.len());
    let mut found = Vec::new();
    for (k, &i) in which.iter().enumerate() {
        for (l, &j) in which[..k].iter().enumerate() {
            let straight = [i, j].map(|i| sums[i][1][1]);
            let product = product(&runs[k], &runs[l]);
            if product.abs() <= SAME_EFFECT * (straight[0] * straight[1]).sqrt() {
                continue;
            }
            let left = 0.5 * (straight[0] + straight[1]) - product.abs();
            let pair_bend = 0.5 * bent_together(&runs[k], &runs[l]) / (1.0 + left.max(0.0));
            if pair_bend > bend[i].max(bend[j]) {
                found.push(NearDegeneratePair { parameters: [j, i], sign: -product.signum(), bend: pair_bend });
            }
        }
    }
    found.sort_by(|a, b| b.bend.total_cmp(&a.bend));
    found
}

/// Returns the bend, from the sums at each of [`POINTS`].
fn bend(sums: &BendSums) -> f64 {
    sums.iter().map(|[bent, straight]| bent / (1.0 + straight)).fold(0.0, f64::max)
}

/// Adds |λ''|/√λ and λ'²/λ of one bin.
fn add(sums: &mut BendSums, response: &BinResponse, nominal: f64) {
    let [below, derivative_below, curve_below, derivative, curve, above, derivative_above, curve_above] = *response;
    let points =
        [[below, derivative_below, curve_below], [0.0, derivative, curve], [above, derivative_above, curve_above]];
    for (sum, [change, first, second]) in sums.iter_mut().zip(points) {
        // Less than one event is counted as one: what is seen there is 0 or 1.
        let inverse = (nominal + change).max(1.0).recip();
        sum[0] += second.abs() * inverse.sqrt();
        sum[1] += first * first * inverse;
    }
}

/// Returns the expected counts of `channel` at the nominal point, with scale factors at their
/// starting values.
fn nominal_counts(model: &Model, channel: usize, start: &[f64]) -> Vec<f64> {
    let mut total = vec![0.0; model.channel_bins(channel).len()];
    for template in model.channel_templates(channel) {
        let scale = nominal_scale(model, template, start);
        let mut yields = model.values(model.layout.nominal)[model.part(model.layout.template_cell, template)].to_vec();
        morph(model, template, start, &mut yields);
        total.iter_mut().zip(&yields).for_each(|(sum, y)| *sum += scale * y);
    }
    total
}

fn nominal_scale(model: &Model, template: usize, start: &[f64]) -> f64 {
    let params = &model.table(model.layout.scale_param)[model.part(model.layout.template_scale, template)];
    params.iter().map(|&param| start[param as usize]).product()
}

/// The responses of a channel's bins to a parameter of its systematics.
struct ResponseRow<'a> {
    param: u32,
    first_bin: usize,
    /// The expected counts at the nominal point, one per bin.
    nominal: &'a [f64],
    bins: &'a [BinResponse],
}

/// A systematic of a template.
#[derive(Clone, Copy)]
enum Systematic {
    /// A histosys that scales: its place among those of the template's rule.
    Scaling(usize),
    /// Its place in the model's table.
    NormSys(usize),
    HistoSys(usize),
}

/// A template at the starting point.
struct NominalTemplate {
    index: usize,
    scale: f64,
    /// Yields before scale factors.
    yields: Vec<f64>,
}

/// Calls `visit` with the responses to those parameters that are `wanted` (P), channel by channel
/// and, in a channel, by first appearance. One row is in memory at a time.
fn each_row(model: &Model, wanted: &[bool], mut visit: impl FnMut(ResponseRow<'_>)) {
    let start = model.extended(&model.parameters.init);
    let weights = of_response(model.responses.histosys[0]);
    let mut place = vec![usize::MAX; model.n_params()];
    for channel in 0..model.channels.len() {
        let first_bin = model.channel_bins(channel).start;
        let total = nominal_counts(model, channel, &start);
        let templates: Vec<NominalTemplate> =
            model.channel_templates(channel).map(|index| NominalTemplate::at(model, index, &start)).collect();
        let mut uses = uses(model, &templates, wanted);
        uses.iter().enumerate().for_each(|(k, &(param, ..))| {
            let first = &mut place[param as usize];
            *first = (*first).min(k);
        });
        // Stable, so that each row is summed in the order of its templates.
        uses.sort_by_key(|&(param, ..)| place[param as usize]);
        let mut bins = vec![BinResponse::default(); total.len()];
        for of_param in uses.chunk_by(|a, b| a.0 == b.0) {
            bins.fill(BinResponse::default());
            for &(_, template, systematic) in of_param {
                templates[template].add(model, systematic, &weights, &mut bins);
            }
            visit(ResponseRow { param: of_param[0].0, first_bin, nominal: &total, bins: &bins });
        }
        uses.iter().for_each(|&(param, ..)| place[param as usize] = usize::MAX);
    }
}

/// Returns the systematics of `templates` whose parameters are `wanted` (P), each with its
/// parameter and the place of its template.
fn uses(model: &Model, templates: &[NominalTemplate], wanted: &[bool]) -> Vec<(u32, usize, Systematic)> {
    let layout = model.layout;
    let mut uses = Vec::new();
    for (t, template) in templates.iter().enumerate() {
        let mut add = |param: u32, systematic: Systematic| {
            if wanted[param as usize] {
                uses.push((param, t, systematic));
            }
        };
        let scaling = model.rules.shape(template.index).into_iter().flat_map(|shape| &shape.scaling);
        scaling.enumerate().for_each(|(k, scaling)| add(scaling.param, Systematic::Scaling(k)));
        for entry in model.part(layout.template_normsys, template.index) {
            add(model.table(layout.normsys_param)[entry], Systematic::NormSys(entry));
        }
        for entry in model.part(layout.template_histosys, template.index) {
            add(model.table(layout.histosys_param)[entry], Systematic::HistoSys(entry));
        }
    }
    uses
}

impl NominalTemplate {
    /// Returns template `index` at the extended point `start` (P + D).
    fn at(model: &Model, index: usize, start: &[f64]) -> Self {
        let cells = model.part(model.layout.template_cell, index);
        let mut yields = model.values(model.layout.nominal)[cells].to_vec();
        morph(model, index, start, &mut yields);
        Self { index, scale: nominal_scale(model, index, start), yields }
    }

    /// Adds the response of the template to `systematic`; `weights` are those of shifts up and down
    /// of a histosys without a response of its own.
    fn add(&self, model: &Model, systematic: Systematic, weights: &[BinResponse; 2], bins: &mut [BinResponse]) {
        let (layout, scale) = (model.layout, self.scale);
        match systematic {
            Systematic::Scaling(k) => {
                let Some(shape) = model.rules.shape(self.index) else { return };
                let scaling = &shape.scaling[k];
                for ((bin, count), factor) in bins.iter_mut().zip(&self.yields).zip(&scaling.factors) {
                    let response = of_factor(scaling.response, factor);
                    (0..8).for_each(|k| bin[k] += scale * count * response[k]);
                }
            }
            Systematic::NormSys(entry) => {
                let (lo, hi) = (model.values(layout.normsys_lo)[entry], model.values(layout.normsys_hi)[entry]);
                let response = match model.normsys_response(entry) {
                    response if response == model.responses.normsys[0] => normsys(lo, hi),
                    response => of_factor(response, &NormSysFactor::new(lo, hi)),
                };
                let response = response.map(|value| scale * value);
                for (bin, count) in bins.iter_mut().zip(&self.yields) {
                    (0..8).for_each(|k| bin[k] += count * response[k]);
                }
            }
            Systematic::HistoSys(entry) => {
                let cells = model.histosys_cells(entry, bins.len());
                let [up, down] = [&model.shifts.up[cells.clone()], &model.shifts.down[cells]];
                let weights = match model.histosys_response(entry) {
                    response if response == model.responses.histosys[0] => *weights,
                    response => of_response(response),
                };
                let [of_up, of_down] = weights.map(|weights| weights.map(|weight| scale * weight));
                for ((bin, up), down) in bins.iter_mut().zip(up).zip(down) {
                    (0..8).for_each(|k| bin[k] += of_up[k] * up + of_down[k] * down);
                }
            }
        }
    }
}

/// Returns the weights of a histosys' shifts up and down.
fn of_response(response: HistoSysResponse) -> [BinResponse; 2] {
    // A kink at zero hides minima as the curvature of its smooth counterpart does.
    let rule = match response.rule {
        HistoSysInterpolation::Linear => HistoSysInterpolation::SmoothLinear,
        rule => rule,
    };
    let weights = POINTS.map(|alpha| HistoSysResponse { rule, ..response }.weights(alpha));
    [response_of(weights.map(|(up, _)| up)), response_of(weights.map(|(_, down)| down))]
}

/// Returns the numbers of a jet at each of [`POINTS`], without its value at 0.
fn response_of(jets: [Jet; 3]) -> BinResponse {
    let [a, b, c] = jets;
    [a.value, a.first, a.second, b.first, b.second, c.value, c.first, c.second]
}

/// Returns the effect of a normsys with a response of its own on a bin of one event.
fn of_factor(response: NormSysResponse, factor: &NormSysFactor) -> BinResponse {
    let rule = match response.rule {
        FactorRule::Standard(_) => FactorRule::Standard(NormSysInterpolation::SmoothExponential),
        FactorRule::Shift(HistoSysInterpolation::Linear) => FactorRule::Shift(HistoSysInterpolation::SmoothLinear),
        rule => rule,
    };
    response_of(POINTS.map(|alpha| {
        let jet = NormSysResponse { rule, ..response }.at(factor, alpha);
        Jet { value: jet.value - 1.0, ..jet }
    }))
}

/// Returns the effect of a normsys on a bin of one event, by the smooth rule.
fn normsys(lo: f64, hi: f64) -> BinResponse {
    let NormSysFactor { ln_lo, ln_hi, coefficients } = NormSysFactor::new(lo, hi);
    let (first, second) = (coefficients[0], 2.0 * coefficients[1]);
    let (derivative_lo, derivative_hi) = (-lo * ln_lo, hi * ln_hi);
    [lo - 1.0, derivative_lo, -derivative_lo * ln_lo, first, second, hi - 1.0, derivative_hi, derivative_hi * ln_hi]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how strongly two parameters bend that both change each of these bins by `changes`.
    fn bend(changes: &[f64]) -> f64 {
        let effects: Vec<[f64; 2]> = changes.iter().map(|&change| [1.0, 0.5 * change]).collect();
        let run = [ChannelEffects { first_bin: 0, effects: &effects }];
        bent_together(&run, &run)
    }

    #[test]
    fn many_bins_bend_a_pair_by_as_much_as_their_fluctuations() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12 * b;
        assert!(close(bend(&[0.2; 100]), 20.0));
        assert!(close(bend(&[0.2; 144]), 28.8));
        assert!(close(bend(&[0.2; 576]), 12.0 * 4.8));
        // Few of many bins change.
        let mut changes = [0.0; 1000];
        changes[..50].fill(0.4);
        assert!(close(bend(&changes), 20.0));
    }
}
