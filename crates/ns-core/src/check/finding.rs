//! A finding: what is suspicious, how severe it is, and its place in the document.

use crate::likelihood::NonFinite;
use crate::spec::ModifierKind;
use serde::{Serialize, Serializer};

/// How severe a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Fits will fail or be meaningless.
    Error,
    /// Probably a mistake.
    Warning,
    /// Worth knowing.
    Note,
}

/// The place of a finding in the document: names for the reader, a JSON pointer for programs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FindingPlace {
    /// JSON pointer into the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The channel's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The sample's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
    /// The modifier's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modifier: Option<String>,
    /// The bin, counted from 0 inside the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bin: Option<usize>,
    /// The parameter's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
}

impl std::fmt::Display for FindingPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut separator = "";
        let names = [("channel", &self.channel), ("sample", &self.sample), ("modifier", &self.modifier)];
        for (what, name) in names.into_iter().chain([("parameter", &self.parameter)]) {
            if let Some(name) = name {
                write!(f, "{separator}{what} `{name}`")?;
                separator = ", ";
            }
        }
        if let Some(bin) = self.bin {
            write!(f, "{separator}bin {bin}")?;
        }
        Ok(())
    }
}

/// A suspicious property of a workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What is suspicious.
    pub problem: FindingKind,
    /// The place.
    pub at: FindingPlace,
}

impl Finding {
    /// Returns how severe it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.problem.severity()
    }
}

/// Serialises to one flat object: severity, code with its numbers, place, and the message.
impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a> {
            severity: Severity,
            #[serde(flatten)]
            problem: &'a FindingKind,
            #[serde(flatten)]
            at: &'a FindingPlace,
            message: String,
        }
        let Self { problem, at } = self;
        Flat { severity: self.severity(), problem, at, message: problem.to_string() }.serialize(serializer)
    }
}

/// The kinds of findings. Shifts are relative to nominal: 0.1 is +10 %.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// Two names differ in case or blanks only.
    #[error("the {what} names `{name}` and `{other}` differ in case or blanks only")]
    SimilarNames {
        /// What has the names: channel, sample, …
        what: &'static str,
        /// One name.
        name: String,
        /// The other.
        other: String,
    },
    /// Two samples of a channel have the same nominal yields.
    #[error("the nominal yields are those of sample `{other}`, bin by bin")]
    SameTemplate {
        /// The first sample that has them.
        other: String,
    },
    /// The expected count of a bin is zero for all parameter values.
    #[error("no sample has any yield here, and {observed} events were observed")]
    EmptyBin {
        /// Observed events.
        observed: f64,
    },
    /// The nominal yields of a bin add up to less than zero.
    #[error("the nominal yields of the samples add up to {total}")]
    NegativeTotal {
        /// Their sum.
        total: f64,
    },
    /// The nominal yield of a sample is negative in some bins.
    #[error("the nominal yield is negative: {value}{}", in_bins(*.n_bins))]
    NegativeYield {
        /// The lowest yield.
        value: f64,
        /// The number of such bins.
        n_bins: usize,
    },
    /// The observation of a channel is far from its expectation.
    #[error("{observed} events were observed where {expected} are expected at the starting values")]
    FarFromObservation {
        /// Events observed in the channel.
        observed: f64,
        /// Events expected at the starting values.
        expected: f64,
    },
    /// -ln L is not finite at the starting values.
    #[error("-ln L is not finite at the starting values: {reason}")]
    NotFiniteAtStart {
        /// The cause.
        #[serde(rename = "cause")]
        reason: NonFinite,
    },
    /// The expected counts are so large that -ln L overflows.
    #[error("-ln L overflows at the starting values, where up to {expected} events are expected in a bin")]
    Overflow {
        /// The largest expected count of a bin.
        expected: f64,
    },
    /// A variation that changes nothing.
    #[error("this {kind} changes nothing")]
    NoEffect {
        /// The kind of modifier.
        kind: ModifierKind,
    },
    /// The variations at -1σ and +1σ are the same.
    #[error("this {kind} has the same variation at -1σ and +1σ ({})", Percent(*.up))]
    EqualVariations {
        /// The kind of modifier.
        kind: ModifierKind,
        /// The shift on both sides.
        up: f64,
    },
    /// The variations at -1σ and +1σ move the yield to the same side.
    #[error(
        "this {kind} moves the yield to the same side at -1σ ({}) and +1σ ({}){}",
        Percent(*.down), Percent(*.up), in_bins(*.n_bins)
    )]
    OneSided {
        /// The kind of modifier.
        kind: ModifierKind,
        /// The shift at -1σ, where it is largest.
        down: f64,
        /// The shift at +1σ in the same bin.
        up: f64,
        /// The number of such bins.
        n_bins: usize,
    },
    /// One variation is much larger than the other.
    #[error("this {kind} is kinked: {} at -1σ, {} at +1σ{}", Percent(*.down), Percent(*.up), in_bins(*.n_bins))]
    Kinked {
        /// The kind of modifier.
        kind: ModifierKind,
        /// The shift at -1σ, where it is largest.
        down: f64,
        /// The shift at +1σ in the same bin.
        up: f64,
        /// The number of such bins.
        n_bins: usize,
    },
    /// A variation of more than the yield itself.
    #[error("this {kind} is very large: {} at -1σ, {} at +1σ", Percent(*.down), Percent(*.up))]
    LargeEffect {
        /// The kind of modifier.
        kind: ModifierKind,
        /// The shift of the sample's yield at -1σ.
        down: f64,
        /// The shift at +1σ.
        up: f64,
    },
    /// Bins whose factor is fixed because yield or uncertainty is zero.
    #[error("the {kind} factors of {} bins are fixed at 1: no yield or no uncertainty there", .bins.len())]
    FixedGammas {
        /// The kind of modifier.
        kind: ModifierKind,
        /// The elements, counted from 0.
        bins: Vec<usize>,
    },
    /// A setting of a parameter that no modifier uses.
    #[error("the measurement sets `{name}`, which no modifier uses{}", meant(.similar))]
    UnusedSetting {
        /// The name.
        name: String,
        /// The most similar name in use.
        similar: Option<String>,
    },
    /// An observation of a channel that does not exist.
    #[error("`{name}` has observed data, but is not a channel{}", meant(.similar))]
    UnusedObservation {
        /// The name.
        name: String,
        /// The most similar channel.
        similar: Option<String>,
    },
    /// The parameter of interest changes nothing.
    #[error("the parameter of interest changes no yield")]
    PoiWithoutEffect,
    /// The measurement fixes the parameter of interest.
    #[error("the measurement fixes the parameter of interest at {value}")]
    PoiFixed {
        /// Its fixed value.
        value: f64,
    },
    /// A free parameter that changes nothing and has no constraint.
    #[error("this parameter has no constraint and changes no yield, so nothing determines it")]
    ParameterWithoutEffect,
    /// A starting value outside its own bounds.
    #[error("the starting value {start} is outside the bounds [{lower}, {upper}]")]
    StartOutsideBounds {
        /// The starting value.
        start: f64,
        /// The lower bound.
        lower: f64,
        /// The upper bound.
        upper: f64,
    },
    /// Parameters that no data can distinguish.
    #[error("no data can distinguish these parameters: {}", listed(.parameters))]
    Degenerate {
        /// Curvature of -ln L along the direction, over that of independent parameters.
        curvature: f64,
        /// The parameters that take part and their shares, strongest first.
        parameters: Vec<(String, f64)>,
    },
    /// Two parameters that data can hardly distinguish.
    #[error(
        "data can hardly distinguish this parameter from `{other}`: their expected correlation is {correlation:+.4}"
    )]
    StronglyCorrelated {
        /// The other parameter.
        other: String,
        /// The correlation that the model predicts before the fit.
        correlation: f64,
    },
}

impl FindingKind {
    /// Returns how severe it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::EmptyBin { observed } if *observed == 0.0 => Severity::Note,
            Self::EmptyBin { .. }
            | Self::NegativeTotal { .. }
            | Self::Overflow { .. }
            | Self::PoiWithoutEffect
            | Self::StartOutsideBounds { .. } => Severity::Error,
            Self::NoEffect { .. } | Self::Kinked { .. } | Self::FixedGammas { .. } => Severity::Note,
            _ => Severity::Warning,
        }
    }

    /// Returns its name in JSON and in tables.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::SimilarNames { .. } => "similar_names",
            Self::SameTemplate { .. } => "same_template",
            Self::EmptyBin { .. } => "empty_bin",
            Self::NegativeTotal { .. } => "negative_total",
            Self::NegativeYield { .. } => "negative_yield",
            Self::FarFromObservation { .. } => "far_from_observation",
            Self::NotFiniteAtStart { .. } => "not_finite_at_start",
            Self::Overflow { .. } => "overflow",
            Self::NoEffect { .. } => "no_effect",
            Self::EqualVariations { .. } => "equal_variations",
            Self::OneSided { .. } => "one_sided",
            Self::Kinked { .. } => "kinked",
            Self::LargeEffect { .. } => "large_effect",
            Self::FixedGammas { .. } => "fixed_gammas",
            Self::UnusedSetting { .. } => "unused_setting",
            Self::UnusedObservation { .. } => "unused_observation",
            Self::PoiWithoutEffect => "poi_without_effect",
            Self::PoiFixed { .. } => "poi_fixed",
            Self::ParameterWithoutEffect => "parameter_without_effect",
            Self::StartOutsideBounds { .. } => "start_outside_bounds",
            Self::Degenerate { .. } => "degenerate",
            Self::StronglyCorrelated { .. } => "strongly_correlated",
        }
    }
}

/// Displays a relative shift in percent.
struct Percent(f64);

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:+.3} %", 100.0 * self.0)
    }
}

fn in_bins(n_bins: usize) -> String {
    if n_bins > 1 { format!(", and so in {} more bins", n_bins - 1) } else { String::new() }
}

fn meant(similar: &Option<String>) -> String {
    similar.as_ref().map_or_else(String::new, |name| format!("; is `{name}` meant?"))
}

fn listed(parameters: &[(String, f64)]) -> String {
    let shares: Vec<String> = parameters.iter().map(|(name, share)| format!("`{name}` ({share:+.2})")).collect();
    shares.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_in_json_is_the_code_in_tables() {
        let kind = ModifierKind::NormSys;
        for problem in [
            FindingKind::PoiWithoutEffect,
            FindingKind::NoEffect { kind },
            FindingKind::EmptyBin { observed: 1.0 },
            FindingKind::Overflow { expected: 1e308 },
            FindingKind::OneSided { kind, down: 0.1, up: 0.2, n_bins: 1 },
        ] {
            let code = problem.code();
            assert!(format!("{problem:?}").to_lowercase().starts_with(&code.replace('_', "")), "{code}");
        }
    }
}
