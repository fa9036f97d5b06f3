//! Gives random workspaces rules of yields: templates that are clipped, normalised or scaled bin by
//! bin, statistical uncertainties of sums, and lowest yields.

use crate::random::Random;
use ns_core::interpolate::InterpolationRule::*;
use ns_core::spec::{Channel, Clipping, Modifier, ModifierData};

/// Gives about half of the samples rules, and about half of the channels statistical uncertainties.
/// Returns the lowest yields.
pub(crate) fn set(random: &mut Random, channels: &mut [Channel]) -> Clipping {
    for channel in channels.iter_mut() {
        let is_uncertain = random.one_in(2);
        for (s, sample) in channel.samples.iter_mut().enumerate() {
            let total: f64 = sample.data.iter().sum();
            sample.template.normalize = random.one_in(3);
            // High enough to act where a systematic lowers a bin.
            sample.template.clip =
                random.one_in(4).then(|| total / sample.data.len() as f64 * random.between(0.3, 0.95));
            for modifier in &mut sample.modifiers {
                if matches!(modifier.data, ModifierData::HistoSys { .. }) && random.one_in(3) {
                    let rules = [Exponential, SmoothExponential, SmoothFactor, CombineLogNormal, SmoothLogarithm];
                    modifier.interpolation.rule = Some(rules[random.below(rules.len())]);
                }
            }
            let errors = |random: &mut Random, share: f64| -> Vec<f64> {
                let error = |y: &f64| if random.one_in(8) { 0.0 } else { y * random.between(0.02, share) };
                sample.data.iter().map(error).collect()
            };
            if is_uncertain && !random.one_in(4) {
                let data = ModifierData::McStat(errors(random, 0.2));
                sample.modifiers.push(Modifier::new(format!("prop_bin{}", channel.name), data));
            }
            if random.one_in(6) {
                let data = ModifierData::McStat(errors(random, 0.1));
                sample.modifiers.push(Modifier::new(format!("prop_bin{}_{s}", channel.name), data));
            }
        }
    }
    let mut limit = |value: f64| random.one_in(3).then_some(value);
    Clipping { templates: limit(4.0), samples: limit(4.5), bins: limit(12.0) }
}
