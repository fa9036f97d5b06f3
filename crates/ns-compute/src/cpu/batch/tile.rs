//! Evaluates one tile of a channel at eight points: expected yields, and the adjoints of shifts,
//! scales and per-bin factors.
//!
//! y = (nominal + Σ shifts) · K · Πγ and λ = Σ y. With w = ∂(-ln L)/∂λ of a bin, the adjoint of K
//! is w · shifted · Πγ summed over bins, that of the shifted yield w · K · Πγ, and that of one γ w
//! · K · shifted times the other γ of that bin. There is no Jacobian.

use super::factors::{FactorChains, ShiftWeights};
use super::lanes::{LANES, Lanes};
use super::poisson;
use crate::cpu::channel::{NEGLIGIBLE, Tile};
use crate::cpu::isa::Isa;
use crate::cpu::plan::{BinFactorUse, ChannelPlan, HistoSysUse, ModelPlan, MorphingUse, TILE, TemplatePlan};

/// Where a body evaluates: a tile of a channel, at eight points.
#[derive(Clone, Copy)]
pub(crate) struct BatchSite<'a> {
    pub(crate) plan: &'a ModelPlan,
    pub(crate) channel: &'a ChannelPlan,
    pub(crate) tile: Tile,
    /// The extended points (P + D).
    pub(crate) params: &'a [Lanes],
}

impl<'a> BatchSite<'a> {
    /// Returns template `t`, from the first bin of the tile on.
    fn template(self, t: usize) -> TemplateSite<'a> {
        let Self { plan, params, tile, .. } = self;
        TemplateSite { plan, params, template: &plan.templates[t], start: tile.start }
    }
}

/// Neighbouring bins of a template.
#[derive(Clone, Copy)]
struct TemplateSite<'a> {
    plan: &'a ModelPlan,
    params: &'a [Lanes],
    template: &'a TemplatePlan,
    /// The first bin, counted inside the channel.
    start: usize,
}

impl<'a> TemplateSite<'a> {
    fn from(self, start: usize) -> Self {
        Self { start, ..self }
    }

    fn histosys(self) -> &'a [HistoSysUse] {
        &self.plan.histosys[self.template.histosys.clone()]
    }

    fn morphs(self) -> &'a [MorphingUse] {
        &self.plan.morphs[self.template.morphs.clone()]
    }

    fn bin_factors(self) -> &'a [BinFactorUse] {
        &self.plan.bin_factors[self.template.bin_factors.clone()]
    }

    /// Returns hi - nominal and lo - nominal of N bins.
    #[inline(always)]
    fn differences<const N: usize>(self, modifier: &HistoSysUse) -> (&'a [f64; N], &'a [f64; N]) {
        let start = modifier.cells as usize + self.start;
        (cells(&self.plan.shifts.up, start), cells(&self.plan.shifts.down, start))
    }
}

/// Yields of one tile at eight points.
#[derive(Debug, Clone)]
pub(crate) struct BatchTileWork {
    /// nominal + Σ shifts of each template of the channel and bin of the tile.
    shifted: Vec<Lanes>,
    /// Πγ, likewise.
    gammas: Vec<Lanes>,
    /// λ of each bin.
    lambda: Vec<Lanes>,
    /// w of each bin.
    derivative: Vec<Lanes>,
    /// Adjoint of the shifted yield of each bin, of the current template.
    adjoint: Vec<Lanes>,
}

impl BatchTileWork {
    pub(crate) fn new(plan: &ModelPlan) -> Self {
        let n_cells = plan.channels.iter().map(|c| c.templates.len() * c.bins.len().min(TILE)).max().unwrap_or(0);
        let room = |n| vec![Lanes::ZERO; n];
        Self {
            shifted: room(n_cells),
            gammas: room(n_cells),
            lambda: room(TILE),
            derivative: room(TILE),
            adjoint: room(TILE),
        }
    }

    /// Computes the expected yields into `self.lambda`.
    #[inline(always)]
    pub(crate) fn expect<I: Isa>(
        &mut self,
        isa: I,
        site: BatchSite<'_>,
        weights: &ShiftWeights,
        chains: &FactorChains,
    ) {
        let BatchSite { channel, tile, params, .. } = site;
        let lambda = &mut self.lambda[..tile.len];
        lambda.fill(Lanes::ZERO);
        for (i, t) in channel.templates.clone().enumerate() {
            let row = i * tile.len..(i + 1) * tile.len;
            let (shifted, gammas) = (&mut self.shifted[row.clone()], &mut self.gammas[row]);
            shift(isa, site.template(t), weights, shifted);
            multiply_gammas(site.template(t), params, gammas);
            let scale = chains.scale[i];
            for ((lambda, &shifted), &gammas) in lambda.iter_mut().zip(&*shifted).zip(&*gammas) {
                *lambda = shifted.times_plus(isa, scale * gammas, *lambda);
            }
        }
        for lambda in lambda {
            for lane in 0..LANES {
                let value = lambda.0[lane];
                lambda.0[lane] = if value.abs() < NEGLIGIBLE { 0.0 } else { value };
            }
        }
    }

    /// Returns the sum of `sum` and of the half-deviances of the tile's bins from `observed`; with
    /// `GRADIENT`, computes their derivatives too.
    #[inline(always)]
    pub(crate) fn compare<I: Isa, const GRADIENT: bool>(
        &mut self,
        isa: I,
        observed: &[Lanes],
        mut sum: Lanes,
    ) -> Lanes {
        for ((&n, &lambda), derivative) in observed.iter().zip(&self.lambda).zip(&mut self.derivative) {
            sum = sum + poisson::half_deviance(isa, n, lambda);
            if GRADIENT {
                *derivative = poisson::derivative(n, lambda);
            }
        }
        sum
    }

    /// Adds to the adjoints of scales and weights, and the derivatives of per-bin factors to
    /// `gradient` (P).
    #[inline(always)]
    pub(crate) fn backward<I: Isa>(
        &mut self,
        isa: I,
        site: BatchSite<'_>,
        weights: &mut ShiftWeights,
        chains: &mut FactorChains,
        gradient: &mut [Lanes],
    ) {
        let BatchSite { channel, tile, params, .. } = site;
        for (i, t) in channel.templates.clone().enumerate() {
            let template = site.template(t);
            let row = i * tile.len..(i + 1) * tile.len;
            let (shifted, gammas) = (&self.shifted[row.clone()], &self.gammas[row]);
            let (scale, mut sum) = (chains.scale[i], chains.adjoint[i]);
            for bin in 0..tile.len {
                let pulled = self.derivative[bin] * gammas[bin];
                sum = pulled.times_plus(isa, shifted[bin], sum);
                self.adjoint[bin] = pulled * scale;
            }
            chains.adjoint[i] = sum;
            unshift(isa, template, &self.adjoint[..tile.len], weights);
            if !template.bin_factors().is_empty() {
                let pulled = PulledYields { scale, shifted, derivatives: &self.derivative[..tile.len] };
                differentiate_gammas(template, params, pulled, gradient);
            }
        }
    }
}

/// Writes nominal + Σ shifts of neighbouring bins to `shifted`.
#[inline(always)]
fn shift<I: Isa>(isa: I, site: TemplateSite<'_>, weights: &ShiftWeights, shifted: &mut [Lanes]) {
    let (fours, rest) = shifted.as_chunks_mut::<4>();
    let (twos, ones) = rest.as_chunks_mut::<2>();
    let mut bin = site.start;
    for strip in fours {
        shift_strip(isa, site.from(bin), weights, strip);
        bin += 4;
    }
    for strip in twos {
        shift_strip(isa, site.from(bin), weights, strip);
        bin += 2;
    }
    for strip in ones.as_chunks_mut::<1>().0 {
        shift_strip(isa, site.from(bin), weights, strip);
        bin += 1;
    }
}

#[inline(always)]
fn shift_strip<I: Isa, const N: usize>(
    isa: I,
    site: TemplateSite<'_>,
    weights: &ShiftWeights,
    shifted: &mut [Lanes; N],
) {
    let nominal: &[f64; N] = cells(&site.plan.nominal, site.template.cells + site.start);
    let mut sum = [Lanes::ZERO; N];
    for i in 0..N {
        sum[i] = Lanes::all(nominal[i]);
    }
    for modifier in site.histosys() {
        let [p, q] = weights.value[modifier.weight as usize];
        let (up, down) = site.differences::<N>(modifier);
        for i in 0..N {
            sum[i] = p.times_plus(isa, Lanes::all(up[i]), q.times_plus(isa, Lanes::all(down[i]), sum[i]));
        }
    }
    for term in site.morphs() {
        let coefficient = site.params[term.param as usize];
        let values: &[f64; N] = cells(&site.plan.morphing, term.cells as usize + site.start);
        for i in 0..N {
            sum[i] = coefficient.times_plus(isa, Lanes::all(values[i]), sum[i]);
        }
    }
    *shifted = sum;
}

/// Adds the contributions of the shifted yields' adjoints to those of the weights.
#[inline(always)]
fn unshift<I: Isa>(isa: I, site: TemplateSite<'_>, adjoint: &[Lanes], weights: &mut ShiftWeights) {
    for (strip, bin) in adjoint.chunks(8).zip((site.start..).step_by(8)) {
        let site = site.from(bin);
        match strip.len() {
            1 => unshift_strip::<I, 1>(isa, site, strip, weights),
            2 => unshift_strip::<I, 2>(isa, site, strip, weights),
            3 => unshift_strip::<I, 3>(isa, site, strip, weights),
            4 => unshift_strip::<I, 4>(isa, site, strip, weights),
            5 => unshift_strip::<I, 5>(isa, site, strip, weights),
            6 => unshift_strip::<I, 6>(isa, site, strip, weights),
            7 => unshift_strip::<I, 7>(isa, site, strip, weights),
            _ => unshift_strip::<I, 8>(isa, site, strip, weights),
        }
    }
}

#[inline(always)]
fn unshift_strip<I: Isa, const N: usize>(
    isa: I,
    site: TemplateSite<'_>,
    adjoint: &[Lanes],
    weights: &mut ShiftWeights,
) {
    let adjoint: [Lanes; N] = *adjoint.first_chunk().expect("a strip of N bins");
    for modifier in site.histosys() {
        let [mut p, mut q] = weights.adjoint[modifier.weight as usize];
        let (up, down) = site.differences::<N>(modifier);
        for i in 0..N {
            p = adjoint[i].times_plus(isa, Lanes::all(up[i]), p);
            q = adjoint[i].times_plus(isa, Lanes::all(down[i]), q);
        }
        weights.adjoint[modifier.weight as usize] = [p, q];
    }
    for term in site.morphs() {
        let mut sum = weights.morphing[term.param as usize];
        let values: &[f64; N] = cells(&site.plan.morphing, term.cells as usize + site.start);
        for i in 0..N {
            sum = adjoint[i].times_plus(isa, Lanes::all(values[i]), sum);
        }
        weights.morphing[term.param as usize] = sum;
    }
}

#[inline(always)]
fn cells<const N: usize>(values: &[f64], start: usize) -> &[f64; N] {
    values[start..].first_chunk().expect("every bin of a template has its cell")
}

/// Writes Πγ of neighbouring bins to `gammas`.
#[inline(always)]
fn multiply_gammas(site: TemplateSite<'_>, params: &[Lanes], gammas: &mut [Lanes]) {
    gammas.fill(Lanes::ONE);
    for factor in site.bin_factors() {
        let first = factor.first_param as usize + site.start;
        for (product, &gamma) in gammas.iter_mut().zip(&params[first..]) {
            *product = *product * gamma;
        }
    }
}

/// K, the shifted yields, and w of neighbouring bins of a template.
#[derive(Clone, Copy)]
struct PulledYields<'a> {
    scale: Lanes,
    shifted: &'a [Lanes],
    derivatives: &'a [Lanes],
}

/// Adds the derivatives with respect to the per-bin factors to `gradient` (P).
#[inline(always)]
fn differentiate_gammas(site: TemplateSite<'_>, params: &[Lanes], pulled: PulledYields<'_>, gradient: &mut [Lanes]) {
    let PulledYields { scale, shifted, derivatives } = pulled;
    let factors = site.bin_factors();
    for (bin, (&shifted, &derivative)) in shifted.iter().zip(derivatives).enumerate() {
        for (i, factor) in factors.iter().enumerate() {
            let mut adjoint = derivative * scale * shifted;
            for (j, other) in factors.iter().enumerate() {
                if i != j {
                    adjoint = adjoint * params[other.first_param as usize + site.start + bin];
                }
            }
            let param = factor.first_param as usize + site.start + bin;
            gradient[param] = gradient[param] + adjoint;
        }
    }
}
