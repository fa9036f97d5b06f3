//! Gives modifiers of random workspaces interpolation rules of their own.

use crate::random::Random;
use ns_core::interpolate::InterpolationRule::{self, *};
use ns_core::spec::{Channel, ModifierData, ModifierInterpolation};

const MULTIPLICATIVE: [InterpolationRule; 5] =
    [Exponential, SmoothExponential, SmoothFactor, CombineLogNormal, SmoothLogarithm];
const ADDITIVE: [InterpolationRule; 3] = [Linear, Quadratic, SmoothLinear];

/// Gives about a quarter of the normsys and histosys a rule, a scale, or both.
pub(crate) fn set(random: &mut Random, channels: &mut [Channel]) {
    for sample in channels.iter_mut().flat_map(|channel| &mut channel.samples) {
        // A sample has one normsys of an additive rule at most.
        let mut has_additive = false;
        for modifier in &mut sample.modifiers {
            let scale = random.one_in(4).then(|| random.between(0.4, 1.2));
            let rule = match modifier.data {
                ModifierData::NormSys { .. } if random.one_in(4) => {
                    let may_add = !std::mem::replace(&mut has_additive, true);
                    Some(if may_add { *pick(random, &ADDITIVE) } else { *pick(random, &MULTIPLICATIVE) })
                }
                ModifierData::NormSys { .. } => random.one_in(4).then(|| *pick(random, &MULTIPLICATIVE)),
                ModifierData::HistoSys { .. } => random.one_in(4).then(|| *pick(random, &ADDITIVE)),
                _ => continue,
            };
            modifier.interpolation = ModifierInterpolation { rule, scale };
        }
    }
}

fn pick<'a, T>(random: &mut Random, items: &'a [T]) -> &'a T {
    &items[random.below(items.len())]
}
