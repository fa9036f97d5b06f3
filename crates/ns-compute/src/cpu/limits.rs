//! Collects the kinks of -ln L at a point ([`ns_core::kinks`]): templates and sums whose limits are
//! near, and by how much the derivative of -ln L jumps there.
//!
//! With w = 1 - n/λ where the bin's yield is at its limit, the derivative with respect to C, the
//! limited value of a template, is s (w K Πγ - V / Σ C) above the limit and 0 below, and that with
//! respect to a sum is w. The limits of samples have kinks, too, which are not listed.

use super::channel::{PointTerms, Site, TileWork};
use super::evaluator::locals;
use super::plan::{ChannelPlan, ModelPlan};
use super::rules::ShapePlan;
use ns_core::LimitKinks;
use ns_core::model::Data;
use ns_core::poisson;

/// How far all parameters of a template may have to change to take it to a limit that counts as
/// near: shape parameters have widths of about 1.
const REACH: f64 = 3.0;

/// A sum without observed events that is larger than this is not near its limit.
const LARGE: f64 = 30.0;

/// The kinks of the last point with derivatives, and what they are made of.
#[derive(Debug, Clone, Default)]
pub(crate) struct LimitWork {
    /// The extended point; empty if there is none yet.
    pub(crate) at: Vec<f64>,
    pub(crate) kinks: LimitKinks,
    /// λ and w of each bin of the model.
    lambda: Vec<f64>,
    first: Vec<f64>,
    /// K Πγ of each bin of each template of a channel, row by row.
    scales: Vec<f64>,
    /// w K Πγ of each bin of a template.
    weights: Vec<f64>,
}

/// The data and the floor under the expected counts, if any.
#[derive(Clone, Copy)]
pub(crate) struct PoissonTerms<'a> {
    pub(crate) data: &'a Data,
    pub(crate) floor: Option<f64>,
}

impl PoissonTerms<'_> {
    /// Returns the derivative of the term of bin `bin` with respect to λ, at `lambda`; -∞ where the
    /// term is infinite.
    fn first(self, bin: usize, lambda: f64) -> f64 {
        let n = self.data.main[bin];
        match self.floor {
            Some(floor) => poisson::floored(n, lambda, floor).first,
            None if n == 0.0 || lambda > 0.0 => poisson::derivatives(n, lambda).0,
            None => f64::NEG_INFINITY,
        }
    }
}

impl LimitWork {
    /// Forgets the last point, and begins the extended point `params`.
    pub(super) fn begin(&mut self, plan: &ModelPlan, params: &[f64]) {
        self.at.clear();
        self.at.extend_from_slice(params);
        self.kinks.clear();
        self.lambda.resize(plan.n_bins(), 0.0);
        self.first.resize(plan.n_bins(), 0.0);
    }

    /// Keeps what the templates of a tile need, and adds the kinks of its sums; `first` is w of
    /// each bin.
    pub(super) fn add_tile(&mut self, site: Site<'_>, work: &TileWork, first: &[f64], terms: PoissonTerms<'_>) {
        let Site { plan, channel, tile, .. } = site;
        let n_bins = channel.bins.len();
        self.lambda[site.bins()].copy_from_slice(&work.lambda[..tile.len]);
        self.first[site.bins()].copy_from_slice(&first[..tile.len]);
        if tile.start == 0 {
            self.scales.clear();
            self.scales.resize(channel.templates.len() * n_bins, 0.0);
        }
        for i in 0..channel.templates.len() {
            let scales = &mut self.scales[i * n_bins + tile.start..][..tile.len];
            scales.copy_from_slice(&work.scales.row(i)[..tile.len]);
        }
        if let Some(limit) = plan.clip_bins {
            self.add_sums(site, work, limit, terms);
        }
    }

    fn add_sums(&mut self, site: Site<'_>, work: &TileWork, limit: f64, terms: PoissonTerms<'_>) {
        let bins = site.bins();
        for (&bin, kink) in work.sums.limited_bins.iter().zip(work.sums.limited.iter()) {
            let weight = terms.first(bins.start + bin, limit);
            if weight > 0.0 {
                self.kinks.push(kink.value, weight, kink.params.iter().copied().zip(kink.rates.iter().copied()));
            }
        }
        for bin in 0..site.tile.len {
            let (weight, value) = (terms.first(bins.start + bin, limit), work.lambda[bin] - limit);
            if weight > 0.0 && value <= LARGE && !work.sums.limited_bins.contains(&bin) {
                self.kinks.push(value, weight, sum_rates(site, work, bin));
            }
        }
    }

    /// Adds the kinks of the templates of `channel`, once all its tiles are in.
    pub(super) fn add_templates(
        &mut self,
        plan: &ModelPlan,
        channel: &ChannelPlan,
        point: &PointTerms,
        terms: PoissonTerms<'_>,
    ) {
        for (i, t) in channel.templates.clone().enumerate() {
            let Some(index) = plan.templates[t].shape else { continue };
            let shape = &plan.shapes[index];
            if shape.shape.is_limited() {
                self.add_template(channel, i, LimitedTemplate { shape, point, index, terms });
            }
        }
    }

    fn add_template(&mut self, channel: &ChannelPlan, i: usize, template: LimitedTemplate<'_>) {
        let LimitedTemplate { shape: ShapePlan { shape, .. }, point, index, terms } = template;
        let (at, n_bins) = (&point.shapes[index], channel.bins.len());
        let scales = &self.scales[i * n_bins..][..n_bins];
        let (lambda, first) = (&self.lambda[channel.bins.clone()], &self.first[channel.bins.clone()]);
        self.weights.clear();
        self.weights.extend(scales.iter().zip(first).map(|(scale, w)| scale * w));
        let [scale, mean] = shape.scale_and_mean(at, &self.weights);
        let kinks = &mut self.kinks;
        shape.each_near_limit(at, REACH, |near| {
            let factor = scales[near.bin];
            let at_limit = lambda[near.bin] - near.excess * scale * factor;
            let weight = scale * (terms.first(channel.bins.start + near.bin, at_limit) * factor - mean);
            if weight > 0.0 && weight.is_finite() {
                let rate = |(slot, &param): (usize, &u32)| (param, shape.unlimited_rate(at, slot, near.bin));
                kinks.push(near.value, weight, shape.params.iter().enumerate().map(rate));
            }
        });
    }
}

/// A template with a limit, at a point.
#[derive(Clone, Copy)]
struct LimitedTemplate<'a> {
    shape: &'a ShapePlan,
    point: &'a PointTerms,
    /// Its place among the plan's shapes.
    index: usize,
    terms: PoissonTerms<'a>,
}

/// Iterates over the entries of the extended point that the sum of bin `bin` of the tile depends
/// on, each with the derivative.
pub(super) fn sum_rates<'a>(site: Site<'a>, work: &'a TileWork, bin: usize) -> impl Iterator<Item = (u32, f64)> + 'a {
    let Site { plan, channel, tile, .. } = site;
    let param = |position: u32| plan.partition.global[position as usize];
    let columns = channel.columns.iter().enumerate();
    let global = columns.map(move |(column, &position)| (param(position), work.jacobian.row(column)[bin]));
    let own = locals(plan, channel, tile.start + bin);
    let local = own.map(move |(param, slot)| (param as u32, work.local_jacobian.row(slot)[bin]));
    global.chain(local).filter(|(_, rate)| *rate != 0.0)
}
