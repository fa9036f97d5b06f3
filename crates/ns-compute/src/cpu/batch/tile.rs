//! One tile of a channel: expected yields of eight points, and the way back from λ to shifts, scales and per-bin factors.
//!
//! y = (nominal + Σ shifts) · K · Πγ and λ = Σ y. With w = ∂(-ln L)/∂λ of a bin, the adjoint of K is w · shifted · Πγ summed over bins, that of the shifted
//! yield w · K · Πγ, and that of one γ w · K · shifted times the other γ of that bin. No Jacobian is made.

use super::factors::{Chains, Weights};
use super::lanes::{LANES, Lanes};
use super::poisson;
use crate::cpu::channel::{NOTHING, Tile};
use crate::cpu::isa::Isa;
use crate::cpu::plan::{ChannelPlan, HistoSysUse, ModelPlan, TILE, TemplatePlan};

/// Yields of one tile.
#[derive(Debug, Clone)]
pub(crate) struct TileWork {
    /// nominal + Σ shifts of each template of the channel and bin of the tile.
    shifted: Vec<Lanes>,
    /// Πγ, likewise.
    gammas: Vec<Lanes>,
    /// λ of each bin.
    lambda: Vec<Lanes>,
    /// w of each bin.
    derivative: Vec<Lanes>,
    /// Adjoint of the shifted yield of each bin, of the template at hand.
    adjoint: Vec<Lanes>,
}

impl TileWork {
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

    /// Expected yields of `tile` into `self.lambda`.
    #[inline(always)]
    pub(crate) fn expect<I: Isa>(
        &mut self,
        isa: I,
        plan: &ModelPlan,
        channel: &ChannelPlan,
        tile: Tile,
        (weights, chains, params): (&Weights, &Chains, &[Lanes]),
    ) {
        let lambda = &mut self.lambda[..tile.len];
        lambda.fill(Lanes::ZERO);
        for (i, t) in channel.templates.clone().enumerate() {
            let template = &plan.templates[t];
            let row = i * tile.len..(i + 1) * tile.len;
            let (shifted, gammas) = (&mut self.shifted[row.clone()], &mut self.gammas[row]);
            shift(isa, plan, template, tile.start, weights, shifted);
            multiply_gammas(plan, template, tile.start, params, gammas);
            let scale = chains.scale[i];
            for ((lambda, &shifted), &gammas) in lambda.iter_mut().zip(&*shifted).zip(&*gammas) {
                *lambda = shifted.times_plus(isa, scale * gammas, *lambda);
            }
        }
        for lambda in lambda {
            for lane in 0..LANES {
                let value = lambda.0[lane];
                lambda.0[lane] = if value.abs() < NOTHING { 0.0 } else { value };
            }
        }
    }

    /// `sum` and the half-deviances of the tile's bins where `observed` was seen; with `GRADIENT`, their derivatives too.
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

    /// Adjoints of scales and weights, and `gradient` (P) of the per-bin factors.
    #[inline(always)]
    pub(crate) fn backward<I: Isa>(
        &mut self,
        isa: I,
        plan: &ModelPlan,
        channel: &ChannelPlan,
        tile: Tile,
        (weights, chains): (&mut Weights, &mut Chains),
        (params, gradient): (&[Lanes], &mut [Lanes]),
    ) {
        for (i, t) in channel.templates.clone().enumerate() {
            let template = &plan.templates[t];
            let row = i * tile.len..(i + 1) * tile.len;
            let (shifted, gammas) = (&self.shifted[row.clone()], &self.gammas[row]);
            let (scale, mut sum) = (chains.scale[i], chains.adjoint[i]);
            for bin in 0..tile.len {
                let pulled = self.derivative[bin] * gammas[bin];
                sum = pulled.times_plus(isa, shifted[bin], sum);
                self.adjoint[bin] = pulled * scale;
            }
            chains.adjoint[i] = sum;
            unshift(isa, plan, template, tile.start, &self.adjoint[..tile.len], weights);
            if !template.bin_factors.is_empty() {
                let derivatives = &self.derivative[..tile.len];
                differentiate_gammas(plan, template, tile.start, (scale, shifted, derivatives), (params, gradient));
            }
        }
    }
}

/// nominal + Σ shifts of neighbouring bins from `start` on, counted inside the channel.
#[inline(always)]
fn shift<I: Isa>(
    isa: I,
    plan: &ModelPlan,
    template: &TemplatePlan,
    start: usize,
    weights: &Weights,
    shifted: &mut [Lanes],
) {
    let (fours, rest) = shifted.as_chunks_mut::<4>();
    let (twos, ones) = rest.as_chunks_mut::<2>();
    let mut bin = start;
    for strip in fours {
        shift_strip(isa, plan, template, bin, weights, strip);
        bin += 4;
    }
    for strip in twos {
        shift_strip(isa, plan, template, bin, weights, strip);
        bin += 2;
    }
    for strip in ones.as_chunks_mut::<1>().0 {
        shift_strip(isa, plan, template, bin, weights, strip);
        bin += 1;
    }
}

#[inline(always)]
fn shift_strip<I: Isa, const N: usize>(
    isa: I,
    plan: &ModelPlan,
    template: &TemplatePlan,
    bin: usize,
    weights: &Weights,
    shifted: &mut [Lanes; N],
) {
    let nominal: &[f64; N] = cells(&plan.nominal, template.cells + bin);
    let mut sum = [Lanes::ZERO; N];
    for i in 0..N {
        sum[i] = Lanes::all(nominal[i]);
    }
    for modifier in &plan.histosys[template.histosys.clone()] {
        let [p, q] = weights.value[modifier.param as usize];
        let (up, down) = differences::<N>(plan, modifier, bin);
        for i in 0..N {
            sum[i] = p.times_plus(isa, Lanes::all(up[i]), q.times_plus(isa, Lanes::all(down[i]), sum[i]));
        }
    }
    *shifted = sum;
}

/// Adds what the shifted yields' adjoints mean for the weights.
#[inline(always)]
fn unshift<I: Isa>(
    isa: I,
    plan: &ModelPlan,
    template: &TemplatePlan,
    start: usize,
    adjoint: &[Lanes],
    weights: &mut Weights,
) {
    for (strip, bin) in adjoint.chunks(8).zip((start..).step_by(8)) {
        match strip.len() {
            1 => unshift_strip::<I, 1>(isa, plan, template, bin, strip, weights),
            2 => unshift_strip::<I, 2>(isa, plan, template, bin, strip, weights),
            3 => unshift_strip::<I, 3>(isa, plan, template, bin, strip, weights),
            4 => unshift_strip::<I, 4>(isa, plan, template, bin, strip, weights),
            5 => unshift_strip::<I, 5>(isa, plan, template, bin, strip, weights),
            6 => unshift_strip::<I, 6>(isa, plan, template, bin, strip, weights),
            7 => unshift_strip::<I, 7>(isa, plan, template, bin, strip, weights),
            _ => unshift_strip::<I, 8>(isa, plan, template, bin, strip, weights),
        }
    }
}

#[inline(always)]
fn unshift_strip<I: Isa, const N: usize>(
    isa: I,
    plan: &ModelPlan,
    template: &TemplatePlan,
    bin: usize,
    adjoint: &[Lanes],
    weights: &mut Weights,
) {
    let adjoint: [Lanes; N] = *adjoint.first_chunk().expect("a strip of N bins");
    for modifier in &plan.histosys[template.histosys.clone()] {
        let [mut p, mut q] = weights.adjoint[modifier.param as usize];
        let (up, down) = differences::<N>(plan, modifier, bin);
        for i in 0..N {
            p = adjoint[i].times_plus(isa, Lanes::all(up[i]), p);
            q = adjoint[i].times_plus(isa, Lanes::all(down[i]), q);
        }
        weights.adjoint[modifier.param as usize] = [p, q];
    }
}

/// hi - nominal and lo - nominal of N bins from `bin` on.
#[inline(always)]
fn differences<'a, const N: usize>(
    plan: &'a ModelPlan,
    modifier: &HistoSysUse,
    bin: usize,
) -> (&'a [f64; N], &'a [f64; N]) {
    let start = modifier.cells as usize + bin;
    (cells(&plan.up, start), cells(&plan.down, start))
}

#[inline(always)]
fn cells<const N: usize>(values: &[f64], start: usize) -> &[f64; N] {
    values[start..].first_chunk().expect("every bin of a template has its cell")
}

/// Πγ of neighbouring bins from `start` on.
#[inline(always)]
fn multiply_gammas(plan: &ModelPlan, template: &TemplatePlan, start: usize, params: &[Lanes], gammas: &mut [Lanes]) {
    gammas.fill(Lanes::ONE);
    for factor in &plan.bin_factors[template.bin_factors.clone()] {
        let first = factor.first_param as usize + start;
        for (product, &gamma) in gammas.iter_mut().zip(&params[first..]) {
            *product = *product * gamma;
        }
    }
}

#[inline(always)]
fn differentiate_gammas(
    plan: &ModelPlan,
    template: &TemplatePlan,
    start: usize,
    (scale, shifted, derivatives): (Lanes, &[Lanes], &[Lanes]),
    (params, gradient): (&[Lanes], &mut [Lanes]),
) {
    let factors = &plan.bin_factors[template.bin_factors.clone()];
    for (bin, (&shifted, &derivative)) in shifted.iter().zip(derivatives).enumerate() {
        for (i, factor) in factors.iter().enumerate() {
            let mut adjoint = derivative * scale * shifted;
            for (j, other) in factors.iter().enumerate() {
                if i != j {
                    adjoint = adjoint * params[other.first_param as usize + start + bin];
                }
            }
            let param = factor.first_param as usize + start + bin;
            gradient[param] = gradient[param] + adjoint;
        }
    }
}
