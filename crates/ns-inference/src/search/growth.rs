//! Where a template with an explosive normsys may explain much of what its channel saw.
//!
//! One parameter alone rarely takes it there: with several systematics that each let the yield
//! grow, the cheapest way, that of the smallest sum of squared pulls, moves all of them. With
//! constraint widths σ and s_j = ∂ ln y/∂θ_j of the yield y, and with S = √(Σ s²σ²), parameter j
//! moves by t s_j σ_j²/S. That costs t²/2 in -ln L and multiplies the yield by exp(t S) to first
//! order.
//!
//! A template whose histosys together are larger than itself can also become negative, and then
//! grow to take away what other templates expect too much: its histosys are moved to where it has
//! changed its sign, and the factors (normsys and per-bin ones) let it grow from there.

use super::suspects::{Suspect, SuspectKind};
use ns_core::Model;

/// The fractions of the channel's counts that the template is to explain.
const FRACTIONS: [f64; 3] = [0.05, 0.3, 1.0];

/// The fractions that it is to take away.
const TAKEN: [f64; 2] = [0.05, 0.3];

/// The longest way t, in standard deviations.
const LONGEST: f64 = 4.0;

/// Parameters that let the yield grow by less than this part of what all do are not moved.
const LEAST_PART: f64 = 0.05;

/// What the yield of a template depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Histosys,
    Factor,
}

/// How fast a parameter lets the yield of a template grow.
#[derive(Debug, Clone, Copy)]
struct Rate {
    param: usize,
    effect: Effect,
    /// The width σ of its constraint term.
    width: f64,
    /// sσ.
    pull: f64,
    /// By how much of the template a standard deviation of a histosys lowers the yield, with the
    /// sign of the move that does; 0 for other modifiers.
    fall: f64,
}

/// Returns the parameter `explosive` and those that let the template grow on which its normsys is
/// largest; `None` if nothing but that parameter does.
pub(super) fn growth(model: &Model, explosive: usize, bend: f64) -> Option<Suspect> {
    let (channel, template) = most_explosive(model, explosive)?;
    let counts: f64 = model.observed.main[model.channel_bins(channel)].iter().sum();
    let cells = model.part(model.layout.template_cell, template);
    let nominal: f64 = model.values(model.layout.nominal)[cells].iter().sum();
    let mut rates = rates(model, template, explosive);
    let all = norm(&rates);
    rates.retain(|rate| rate.param == explosive || rate.pull.abs() > LEAST_PART * all);
    let is_positive = counts > 0.0 && nominal > 0.0;
    if rates.len() < 2 || !is_positive {
        return None;
    }
    // ln of the factor by which the yield has to grow.
    let needed = |fraction: f64| (fraction * counts / nominal).ln();
    let mut pulls: Vec<Vec<f64>> = Vec::new();
    for way in FRACTIONS.map(needed).into_iter().filter(|way| *way > 0.0) {
        let t = (way / norm(&rates)).min(LONGEST);
        pulls.push(rates.iter().map(|rate| t * rate.pull / norm(&rates)).collect());
    }
    let factors = norm(&rates.iter().copied().filter(|rate| rate.effect == Effect::Factor).collect::<Vec<_>>());
    let falls = rates.iter().fold(0.0, |sum, rate| sum + rate.fall.powi(2)).sqrt();
    // From the nominal yield to its negative.
    let reversal = 2.0 / falls;
    if reversal <= LONGEST {
        for way in TAKEN.map(needed).into_iter().filter(|way| *way > 0.0) {
            let t = (way / factors).min(LONGEST);
            let pull = |rate: &Rate| match rate.effect {
                Effect::Histosys => reversal * rate.fall / falls,
                Effect::Factor => t * rate.pull / factors,
            };
            pulls.push(rates.iter().map(pull).collect());
        }
    }
    let at = |pull: &Vec<f64>| {
        let moved = rates.iter().zip(pull);
        moved.map(|(rate, pull)| model.parameters.init[rate.param] + pull * rate.width).collect()
    };
    let points: Vec<Vec<f64>> = pulls.iter().map(at).collect();
    let parameters = rates.iter().map(|rate| rate.param).collect();
    (!points.is_empty()).then_some(Suspect { kind: SuspectKind::Growth, parameters, bend, points })
}

/// Returns how far, in standard deviations, the histosys of `template` have to go at least to make
/// its yield zero.
pub(super) fn reversal(model: &Model, template: usize) -> f64 {
    let (layout, parameters) = (model.layout, &model.parameters);
    let nominal: f64 = model.values(layout.nominal)[model.part(layout.template_cell, template)].iter().sum();
    let falls = model.part(layout.template_histosys, template).map(|entry| {
        let param = model.table(layout.histosys_param)[entry] as usize;
        let constraint = parameters.constraint[param].filter(|_| !parameters.fixed[param]);
        let width = constraint.map_or(0.0, |constraint| constraint.width(parameters.init[param]));
        let [up, down] = changes(model, entry);
        fall(up, down).abs() * width / nominal
    });
    let squared = falls.fold(0.0, |sum, fall| sum + fall * fall);
    if nominal > 0.0 { squared.sqrt().recip() } else { f64::INFINITY }
}

/// Returns what histosys `entry` adds to the yield of its template at +1 and at -1.
fn changes(model: &Model, entry: usize) -> [f64; 2] {
    // What is beyond the last bin is zero.
    let cells = model.part(model.layout.histosys_cell, entry);
    [&model.shifts.up, &model.shifts.down].map(|shifts| shifts[cells.clone()].iter().sum())
}

/// Returns by how much a histosys that adds `up` at +1 and `down` at -1 can lower a yield, with the
/// sign of the move that does.
fn fall(up: f64, down: f64) -> f64 {
    if up < down { (-up).max(0.0) } else { -(-down).max(0.0) }
}

/// Returns √(Σ s²σ²); zero, and not the -0 of an empty sum, if there are none.
fn norm(rates: &[Rate]) -> f64 {
    rates.iter().fold(0.0, |sum, rate| sum + rate.pull.powi(2)).sqrt()
}

/// Returns the channel and the template on which the normsys of parameter `param` has the largest
/// factor.
fn most_explosive(model: &Model, param: usize) -> Option<(usize, usize)> {
    let layout = model.layout;
    let (lo, hi) = (model.values(layout.normsys_lo), model.values(layout.normsys_hi));
    let factor = |template: usize| {
        let entries = model.part(layout.template_normsys, template);
        let of_param = entries.filter(|&entry| model.table(layout.normsys_param)[entry] as usize == param);
        of_param.map(|entry| lo[entry].max(hi[entry])).reduce(f64::max)
    };
    let templates = (0..model.channels.len()).flat_map(|c| model.channel_templates(c).map(move |t| (c, t)));
    let with_factor = templates.filter_map(|(c, t)| Some((factor(t)?, (c, t))));
    with_factor.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, place)| place)
}

/// Returns the rates of the constrained parameters that `template` depends on, `first` before the
/// others.
///
/// A parameter with a histosys and a normsys counts as the one of them that is faster.
fn rates(model: &Model, template: usize, first: usize) -> Vec<Rate> {
    let layout = model.layout;
    let nominal = &model.values(layout.nominal)[model.part(layout.template_cell, template)];
    let total: f64 = nominal.iter().sum();
    let mut found: Vec<Rate> = Vec::new();
    let mut add = |param: usize, [derivative, fall]: [f64; 2], effect: Effect| {
        let parameters = &model.parameters;
        let Some(constraint) = parameters.constraint[param].filter(|_| !parameters.fixed[param]) else { return };
        let width = constraint.width(parameters.init[param]);
        let rate = Rate { param, effect, width, pull: derivative * width, fall: fall * width };
        match found.iter_mut().find(|known| known.param == param) {
            Some(known) if known.pull.abs() < rate.pull.abs() => *known = rate,
            Some(_) => {}
            None => found.push(rate),
        }
    };
    for entry in model.part(layout.template_normsys, template) {
        let (lo, hi) = (model.values(layout.normsys_lo)[entry], model.values(layout.normsys_hi)[entry]);
        let derivative = if hi >= lo { hi.ln() } else { -lo.ln() };
        add(model.table(layout.normsys_param)[entry] as usize, [derivative, 0.0], Effect::Factor);
    }
    for entry in model.part(layout.template_histosys, template) {
        let [up, down] = changes(model, entry);
        let derivative = if up >= down { up / total } else { -down / total };
        add(model.table(layout.histosys_param)[entry] as usize, [derivative, fall(up, down) / total], Effect::Histosys);
    }
    for entry in model.part(layout.template_bin_factor, template) {
        let param = model.table(layout.bin_factor_param)[entry] as usize;
        nominal.iter().enumerate().for_each(|(bin, y)| add(param + bin, [y / total, 0.0], Effect::Factor));
    }
    found.retain(|rate| rate.pull.is_finite());
    found.sort_by_key(|rate| (rate.param != first, rate.param));
    found
}
