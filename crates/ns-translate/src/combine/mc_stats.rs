//! The statistical parameters of a channel's bins, as `autoMCStats` asks for them.
//!
//! A bin with more unweighted events than the threshold has one parameter, which adds ν √Σ(c e)² to
//! its sum. In a bin with fewer every process has a parameter: a factor x/n with a Poisson term
//! where the process has n unweighted events there, or ν e with a Gaussian term where n is above
//! the threshold too or e is larger than the content. Contents and factors are those where the
//! parameters start. Names and rules were taken from Combine's `CMSHistErrorPropagator`.

use ns_core::spec::{Modifier, ModifierData, ParameterConfig};

use super::card::McStats;

/// The group of all statistical parameters.
const GROUP: &str = "autoMCStats";

/// A process in a channel where the parameters start.
pub(super) struct Contribution {
    pub(super) process: String,
    pub(super) is_signal: bool,
    /// The factor of the template.
    pub(super) coefficient: f64,
    /// Contents of the template (B).
    pub(super) values: Vec<f64>,
    /// Uncertainties of the template (B).
    pub(super) errors: Vec<f64>,
}

/// What the bins of a channel have.
pub(super) struct BinParameters {
    /// Modifiers of each contribution.
    pub(super) modifiers: Vec<Vec<Modifier>>,
    pub(super) settings: Vec<ParameterConfig>,
}

/// How the statistical uncertainty of a process in a bin is treated.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BinTerm {
    None,
    /// By the parameter of the bin.
    Shared,
    /// By a factor with a Poisson term, with this number of events.
    Poisson(f64),
    /// By a parameter with a Gaussian term.
    Gaussian,
}

/// Returns the parameters of the bins of `channel`.
pub(super) fn bin_parameters(channel: &str, stats: McStats, contributions: &[Contribution]) -> BinParameters {
    let mut found = BinParameters { modifiers: Vec::new(), settings: Vec::new() };
    let n_bins = contributions.first().map_or(0, |contribution| contribution.values.len());
    let bins: Vec<Vec<BinTerm>> = (0..n_bins).map(|bin| terms(bin, stats, contributions)).collect();
    let has_shared = bins.iter().any(|terms| terms.contains(&BinTerm::Shared));
    if has_shared {
        found.settings.push(ParameterConfig { name: format!("prop_bin{channel}"), ..ParameterConfig::default() });
    }
    for (index, contribution) in contributions.iter().enumerate() {
        let terms: Vec<BinTerm> = bins.iter().map(|terms| terms[index]).collect();
        let name = format!("prop_bin{channel}");
        let mut modifiers = Vec::new();
        let errors_where = |wanted: fn(&BinTerm) -> bool| -> Vec<f64> {
            let pairs = terms.iter().zip(&contribution.errors);
            pairs.map(|(term, &error)| if wanted(term) { error } else { 0.0 }).collect()
        };
        if has_shared {
            let errors = errors_where(|term| *term == BinTerm::Shared);
            modifiers.push(Modifier::new(name.clone(), ModifierData::McStat(errors)));
        }
        if terms.contains(&BinTerm::Gaussian) {
            let own = format!("{name}_{}_gaussian", contribution.process);
            let errors = errors_where(|term| *term == BinTerm::Gaussian);
            modifiers.push(Modifier::new(own.clone(), ModifierData::McStat(errors)));
            let elements = elements(&own, &name, &contribution.process, &terms, |term| term == BinTerm::Gaussian);
            found.settings.push(ParameterConfig { name: own, elements: Some(elements), ..ParameterConfig::default() });
        }
        if terms.iter().any(|term| matches!(term, BinTerm::Poisson(_))) {
            let own = format!("{name}_{}_poisson", contribution.process);
            let uncertainty = |(term, &value): (&BinTerm, &f64)| match term {
                BinTerm::Poisson(events) => value / events.sqrt(),
                _ => 0.0,
            };
            let data = terms.iter().zip(&contribution.values).map(uncertainty).collect();
            modifiers.push(Modifier::new(own.clone(), ModifierData::ShapeSys(data)));
            found.settings.push(poisson_settings(own, &name, &contribution.process, &terms));
        }
        found.modifiers.push(modifiers);
    }
    for settings in &mut found.settings {
        settings.groups = vec![GROUP.to_owned()];
    }
    found
}

/// Returns the terms of the contributions in one bin.
fn terms(bin: usize, stats: McStats, contributions: &[Contribution]) -> Vec<BinTerm> {
    let none = vec![BinTerm::None; contributions.len()];
    if stats.threshold < 0.0 {
        return none;
    }
    let counted = contributions.iter().filter(|one| stats.include_signal || !one.is_signal);
    let (sum, square) = counted.fold((0.0, 0.0), |(sum, square), one| {
        (sum + one.coefficient * one.values[bin], square + (one.coefficient * one.errors[bin]).powi(2))
    });
    if square <= 0.0 {
        return none;
    }
    if whole_events(sum, square.sqrt()) > stats.threshold {
        return vec![BinTerm::Shared; contributions.len()];
    }
    contributions.iter().map(|one| own_term(one.values[bin], one.errors[bin], stats.threshold)).collect()
}

fn own_term(value: f64, error: f64, threshold: f64) -> BinTerm {
    // Combine tolerates rounding of contents with one event.
    const NEARLY: f64 = 0.999;
    if error <= 0.0 {
        return BinTerm::None;
    }
    if value < error * NEARLY {
        return if error > value { BinTerm::Gaussian } else { BinTerm::None };
    }
    let events = whole_events(value, error);
    if events <= threshold { BinTerm::Poisson(events) } else { BinTerm::Gaussian }
}

/// Returns the number of unweighted events of a content and its uncertainty, rounded.
fn whole_events(value: f64, error: f64) -> f64 {
    (0.5 + value * value / (error * error)).floor()
}

/// Returns the names of a vector's elements: Combine's for those that are `used`.
fn elements(
    vector: &str,
    channel: &str,
    process: &str,
    terms: &[BinTerm],
    used: impl Fn(BinTerm) -> bool,
) -> Vec<String> {
    let name = |(bin, term): (usize, &BinTerm)| match used(*term) {
        true => format!("{channel}_bin{bin}_{process}"),
        false => format!("{vector}[{bin}]"),
    };
    terms.iter().enumerate().map(name).collect()
}

fn poisson_settings(own: String, channel: &str, process: &str, terms: &[BinTerm]) -> ParameterConfig {
    let elements = elements(&own, channel, process, terms, |term| matches!(term, BinTerm::Poisson(_)));
    let bounds = terms.iter().map(|term| match term {
        BinTerm::Poisson(events) => factor_range(*events),
        _ => [0.0, 10.0],
    });
    ParameterConfig {
        name: own,
        bounds: Some(bounds.collect()),
        elements: Some(elements),
        ..ParameterConfig::default()
    }
}

/// Returns the range of a factor whose term has `events` events: 7 standard deviations, by the
/// cube-root approximation of Wilson and Hilferty for quantiles of the gamma distribution.
fn factor_range(events: f64) -> [f64; 2] {
    const DEVIATIONS: f64 = 7.0;
    let quantile = |shape: f64, deviations: f64| {
        let ninth = 1.0 / (9.0 * shape);
        (shape * (1.0 - ninth + deviations * ninth.sqrt()).max(0.0).powi(3)).max(0.0)
    };
    [quantile(events, -DEVIATIONS) / events, quantile(events + 1.0, DEVIATIONS) / events]
}
