//! Cuts off templates at zero where ROOT does, in HistFactory XML and in HS3: in samples with a
//! histosys, after its shifts.
//!
//! Only samples get the limit whose template can fall below zero within the ranges of the
//! parameters: on the others it would have no effect.

use ns_core::interpolate::InterpolationRule;
use ns_core::spec::{Channel, Measurement, ModifierData, Sample};

/// ROOT's range of α is from minus this to this.
pub(crate) const ALPHA_LIMIT: f64 = 5.0;

/// Sets the limit of the samples of `channel` whose templates can fall below zero in any of
/// `measurements`.
pub(crate) fn cut_off(channel: &mut Channel, measurements: &[Measurement]) {
    for sample in &mut channel.samples {
        if falls_below_zero(sample, measurements) {
            sample.template.clip = Some(0.0);
        }
    }
}

/// Returns whether shifts in one direction, each as far as its parameter goes, may make a bin
/// negative. Ranges end beyond one standard deviation, where the usual interpolations are linear
/// and largest; others may always do.
fn falls_below_zero(sample: &Sample, measurements: &[Measurement]) -> bool {
    let mut lowest = sample.data.clone();
    let mut has_histosys = false;
    for modifier in &sample.modifiers {
        let ModifierData::HistoSys { lo_data, hi_data } = &modifier.data else { continue };
        has_histosys = true;
        if !matches!(
            modifier.interpolation.rule,
            None | Some(InterpolationRule::SmoothLinear | InterpolationRule::Linear)
        ) {
            return true;
        }
        let reach = reach(&modifier.name, measurements);
        for (bin, low) in lowest.iter_mut().enumerate() {
            let shift = |varied: &[f64]| (varied[bin] - sample.data[bin]).abs();
            *low -= reach * shift(lo_data).max(shift(hi_data));
        }
    }
    has_histosys && lowest.iter().any(|low| *low < 0.0)
}

/// Returns how far from zero the parameter `name` goes.
fn reach(name: &str, measurements: &[Measurement]) -> f64 {
    let settings = measurements.iter().flat_map(|measurement| &measurement.parameters);
    let bounds = settings.filter(|setting| setting.name == name).filter_map(|setting| setting.bounds.as_ref());
    bounds.flatten().flatten().fold(ALPHA_LIMIT, |reach, end| reach.max(end.abs()))
}
