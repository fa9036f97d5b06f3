//! How far each systematic is from linear: whether -ln L may curve down along it, and hide a minimum.
//!
//! With expected counts λ_b(α), the other parameters at their starting values, and counts n_b,
//! d²(-ln L)/dα² = 1 + Σ_b [n_b λ'_b²/λ_b² + (1 - n_b/λ_b) λ''_b]. With n_b = λ_b + z_b √λ_b that is
//! 1 + Σ_b λ'_b²/λ_b - Σ_b z_b λ''_b/√λ_b to first order in z, and what can make it negative is the last
//! sum. The *bend* of α is the ratio of Σ_b |λ''_b|/√λ_b to 1 + Σ_b λ'_b²/λ_b, the largest at
//! α = -1, 0 and +1: where every bin is 1/bend standard deviations off, -ln L can curve down.
//!
//! Two parameters with nearly the same effect move against each other along a direction in which the
//! λ' cancel and the λ'' do not: the bend of such a pair is that of this direction.

use crate::interpolate::{Jet, NormSysFactor, NormSysInterpolation};
use crate::model::Model;
use serde::Serialize;

/// Where the bend is evaluated.
const POINTS: [f64; 3] = [-1.0, 0.0, 1.0];

/// Pairs are looked for among so many parameters, those with the largest Σ_b |λ''_b|/√λ_b.
const MOST_PAIRED: usize = 64;

/// Parameters with less than that sum are in no pair.
const LEAST_PAIRED: f64 = 0.3;

/// Two parameters have nearly the same effect if the cosine of the angle between their λ'/√λ is larger than this.
const SAME_EFFECT: f64 = 0.9;

/// λ, λ' and λ'' of one bin, at each of [`POINTS`] one after the other; λ as a change of the nominal count.
type BinResponse = [f64; 9];

/// How nonlinear the effect of each parameter is.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Nonlinearity {
    /// The bend of each parameter (P); 0 for parameters without a normsys or histosys.
    pub bend: Vec<f64>,
    /// The largest factor that a normsys of each parameter (P) has at ±1σ; 1 without one.
    pub factor: Vec<f64>,
    /// Pairs with nearly the same effect that are more bent than either of their parameters, most bent first.
    pub pairs: Vec<NearDegeneratePair>,
}

/// Two parameters with nearly the same effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NearDegeneratePair {
    /// The parameters.
    pub parameters: [usize; 2],
    /// -1 if they have the same effect, +1 if they have opposite ones: the effects of 1 and of this cancel.
    pub sign: f64,
    /// The bend of the direction in which their effects cancel.
    pub bend: f64,
}

impl Nonlinearity {
    /// Of the parameters of `model`.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let mut factor = vec![1.0_f64; model.n_params()];
        let (lo, hi) = (model.values(model.layout.normsys_lo), model.values(model.layout.normsys_hi));
        for (entry, &param) in model.table(model.layout.normsys_param).iter().enumerate() {
            let largest = &mut factor[param as usize];
            *largest = largest.max(lo[entry]).max(hi[entry]);
        }
        let (sums, entries) = effects(model);
        let bend: Vec<f64> = sums.iter().map(bend).collect();
        let pairs = pairs(&entries, &sums, &bend);
        Self { bend, factor, pairs }
    }
}

/// The effect of one parameter at its starting value: λ'/√λ and λ''/√λ of the bins that it moves, by bin.
#[derive(Debug, Clone, Default)]
struct Effect {
    bins: Vec<(usize, [f64; 2])>,
}

impl Effect {
    /// Σ_b λ'_b μ'_b/λ_b with the other effect's μ', and Σ_b |λ''_b + μ''_b|/√λ_b.
    fn with(&self, other: &Self) -> [f64; 2] {
        let (mut a, mut b) = (self.bins.iter().peekable(), other.bins.iter().peekable());
        let (mut product, mut bent) = (0.0, 0.0);
        loop {
            let next = [&mut a, &mut b].map(|bins| bins.peek().map_or(usize::MAX, |(bin, _)| *bin));
            let bin = next[0].min(next[1]);
            if bin == usize::MAX {
                return [product, bent];
            }
            let [x, y] = [&mut a, &mut b].map(|bins| bins.next_if(|(at, _)| *at == bin).map_or([0.0; 2], |(_, v)| *v));
            product += x[0] * y[0];
            bent += (x[1] + y[1]).abs();
        }
    }
}

/// Σ_b |λ''_b|/√λ_b and Σ_b λ'_b²/λ_b of a parameter, at each of [`POINTS`].
type Sums = [[f64; 2]; 3];

/// λ'/√λ and λ''/√λ that a parameter at its starting value has in a bin.
struct Entry {
    param: u32,
    bin: usize,
    effect: [f64; 2],
}

/// The pairs of nearly the same effect that are more bent than their parameters; `entries` are ordered by bin.
fn pairs(entries: &[Entry], sums: &[Sums], bend: &[f64]) -> Vec<NearDegeneratePair> {
    let bent = |i: usize| sums[i][1][0];
    let mut which: Vec<usize> = (0..sums.len()).filter(|&i| bent(i) > LEAST_PAIRED).collect();
    which.sort_by(|&a, &b| bent(b).total_cmp(&bent(a)));
    which.truncate(MOST_PAIRED);
    let mut place = vec![usize::MAX; sums.len()];
    which.iter().enumerate().for_each(|(k, &i)| place[i] = k);
    let mut effects = vec![Effect::default(); which.len()];
    for entry in entries.iter().filter(|entry| place[entry.param as usize] != usize::MAX) {
        effects[place[entry.param as usize]].bins.push((entry.bin, entry.effect));
    }
    let mut found = Vec::new();
    for (k, &i) in which.iter().enumerate() {
        for (l, &j) in which[..k].iter().enumerate() {
            let straight = [i, j].map(|i| sums[i][1][1]);
            let [product, bent] = effects[k].with(&effects[l]);
            if product.abs() <= SAME_EFFECT * (straight[0] * straight[1]).sqrt() {
                continue;
            }
            let left = 0.5 * (straight[0] + straight[1]) - product.abs();
            let pair_bend = 0.5 * bent / (1.0 + left.max(0.0));
            if pair_bend > bend[i].max(bend[j]) {
                found.push(NearDegeneratePair { parameters: [j, i], sign: -product.signum(), bend: pair_bend });
            }
        }
    }
    found.sort_by(|a, b| b.bend.total_cmp(&a.bend));
    found
}

/// The sums of each parameter (P), and the entries of all, by bin.
fn effects(model: &Model) -> (Vec<Sums>, Vec<Entry>) {
    let mut sums = vec![Sums::default(); model.n_params()];
    let mut entries = Vec::new();
    let mut place = vec![usize::MAX; model.n_params()];
    for channel in 0..model.channels.len() {
        let (params, responses) = channel_responses(model, channel, &mut place);
        let total = nominal_counts(model, channel);
        let (n_bins, first_bin) = (total.len(), model.channel_bins(channel).start);
        for (k, &param) in params.iter().enumerate() {
            for (bin, response) in responses[k * n_bins..][..n_bins].iter().enumerate() {
                add(&mut sums[param as usize], response, total[bin]);
                let [first, second] = [response[4], response[5]];
                if second.abs() > 0.0 {
                    let deviation = total[bin].max(1.0).sqrt();
                    let effect = [first / deviation, second / deviation];
                    entries.push(Entry { param, bin: first_bin + bin, effect });
                }
            }
            place[param as usize] = usize::MAX;
        }
    }
    (sums, entries)
}

/// The bend, from the sums at each of [`POINTS`].
fn bend(sums: &Sums) -> f64 {
    sums.iter().map(|[bent, straight]| bent / (1.0 + straight)).fold(0.0, f64::max)
}

/// Adds |λ''|/√λ and λ'²/λ of one bin.
fn add(sums: &mut [[f64; 2]; 3], response: &BinResponse, nominal: f64) {
    for (sum, at) in sums.iter_mut().zip(response.as_chunks::<3>().0) {
        let [change, first, second] = *at;
        // Less than one event is counted as one: what is seen there is 0 or 1.
        let lambda = (nominal + change).max(1.0);
        sum[0] += second.abs() / lambda.sqrt();
        sum[1] += first * first / lambda;
    }
}

/// What the bins of `channel` expect at the nominal point, scale factors at their starting values.
fn nominal_counts(model: &Model, channel: usize) -> Vec<f64> {
    let mut total = vec![0.0; model.channel_bins(channel).len()];
    for template in model.channel_templates(channel) {
        let scale = nominal_scale(model, template);
        let cells = model.part(model.layout.template_cell, template);
        total.iter_mut().zip(&model.values(model.layout.nominal)[cells]).for_each(|(sum, y)| *sum += scale * y);
    }
    total
}

fn nominal_scale(model: &Model, template: usize) -> f64 {
    let params = &model.table(model.layout.scale_param)[model.part(model.layout.template_scale, template)];
    params.iter().map(|&param| model.parameters.init[param as usize]).product()
}

/// The parameters of `channel`'s systematics, and the response of each of its bins to each of them.
fn channel_responses(model: &Model, channel: usize, place: &mut [usize]) -> (Vec<u32>, Vec<BinResponse>) {
    let n_bins = model.channel_bins(channel).len();
    let (mut params, mut responses) = (Vec::new(), Vec::new());
    let mut row = |param: u32, responses: &mut Vec<BinResponse>| {
        if place[param as usize] == usize::MAX {
            place[param as usize] = params.len();
            params.push(param);
            responses.resize(params.len() * n_bins, BinResponse::default());
        }
        place[param as usize] * n_bins
    };
    let layout = model.layout;
    let (lo, hi) = (model.values(layout.normsys_lo), model.values(layout.normsys_hi));
    let (up, down) = (model.values(layout.histosys_up), model.values(layout.histosys_down));
    let weights = POINTS.map(|alpha| model.interpolation.histosys.weights(alpha));
    let (p, q) = (flat(weights.map(|(p, _)| p)), flat(weights.map(|(_, q)| q)));
    for template in model.channel_templates(channel) {
        let scale = nominal_scale(model, template);
        let nominal = &model.values(layout.nominal)[model.part(layout.template_cell, template)];
        for entry in model.part(layout.template_normsys, template) {
            let first = row(model.table(layout.normsys_param)[entry], &mut responses);
            let jets = normsys(lo[entry], hi[entry], model.interpolation.normsys);
            for (response, y) in responses[first..].iter_mut().zip(nominal) {
                let count = scale * y;
                (0..9).for_each(|k| response[k] += count * jets[k]);
            }
        }
        for entry in model.part(layout.template_histosys, template) {
            let first = row(model.table(layout.histosys_param)[entry], &mut responses);
            let start = model.table(layout.histosys_cell)[entry] as usize;
            let cells = start..start + n_bins;
            let shifts = up[cells.clone()].iter().zip(&down[cells]);
            for (response, (up, down)) in responses[first..].iter_mut().zip(shifts) {
                let (up, down) = (scale * up, scale * down);
                (0..9).for_each(|k| response[k] += p[k] * up + q[k] * down);
            }
        }
    }
    (params, responses)
}

/// Value, slope and curvature at each of [`POINTS`], one after the other.
fn flat(jets: [Jet; 3]) -> BinResponse {
    let [a, b, c] = jets;
    [a.value, a.first, a.second, b.value, b.first, b.second, c.value, c.first, c.second]
}

/// Change, slope and curvature of a normsys factor at each of [`POINTS`], one after the other.
fn normsys(lo: f64, hi: f64, rule: NormSysInterpolation) -> BinResponse {
    let NormSysFactor { ln_lo, ln_hi, coefficients } = NormSysFactor::new(lo, hi);
    let [first, second] = match rule {
        NormSysInterpolation::SmoothExponential => [coefficients[0], 2.0 * coefficients[1]],
        NormSysInterpolation::Exponential => [ln_hi, ln_hi * ln_hi],
    };
    let (slope_lo, slope_hi) = (-lo * ln_lo, hi * ln_hi);
    [lo - 1.0, slope_lo, -slope_lo * ln_lo, 0.0, first, second, hi - 1.0, slope_hi, slope_hi * ln_hi]
}
