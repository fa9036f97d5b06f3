//! Why signals cannot be scanned.

use super::settings::quoted;
use crate::number::significant;
use ns_core::did_you_mean;

/// Why signals cannot be scanned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScannerError {
    /// A measurement without a parameter of interest.
    #[error("the measurement `{measurement}` names no parameter of interest")]
    NoStrength {
        /// The measurement.
        measurement: String,
    },
    /// A strength that the background has already.
    #[error("`{name}` scales the sample `{sample}` of the background, so it cannot be the strength of the signals")]
    StrengthInUse {
        /// The parameter.
        name: String,
        /// The sample.
        sample: String,
    },
    /// A sample that the background has already.
    #[error("the background has a sample `{name}` already")]
    SampleInUse {
        /// The sample.
        name: String,
    },
    /// Statistical uncertainties that the background has already.
    #[error(
        "the sample `{sample}` of the background has a modifier `{name}`, as the statistical uncertainties of signals are called"
    )]
    UncertaintyInUse {
        /// The name.
        name: String,
        /// The sample.
        sample: String,
    },
    /// Asimov data with a signal.
    #[error("a scan has no Asimov data with a signal, which would be other data for every signal")]
    AsimovSignal,
    /// A confidence level in place of CLs.
    #[error("the level {level} is CLs at the limits, which is below 0.5")]
    LevelIsConfidence {
        /// The level.
        level: f64,
    },
    /// Tables without rows.
    #[error("there are no signals")]
    NoSignals,
    /// A channel that the background does not have.
    #[error("the background has no channel `{channel}`")]
    UnknownChannel {
        /// The channel.
        channel: String,
        /// The channels of the background.
        known: Vec<String>,
    },
    /// Uncertainties of events that are not there.
    #[error("the channel `{channel}` has uncertainties of its signals, but no events")]
    UncertaintyAlone {
        /// The channel.
        channel: String,
    },
    /// A table of another shape.
    #[error(
        "the {what} of the channel `{channel}` are {} × {} numbers instead of {} × {} (signals × bins)",
        found[0], found[1], expected[0], expected[1]
    )]
    Shape {
        /// The channel.
        channel: String,
        /// What the table has.
        what: &'static str,
        /// Rows and columns that it should have.
        expected: [usize; 2],
        /// Those that it has.
        found: [usize; 2],
    },
    /// A number that cannot be one of events.
    #[error("the {what} of signal {signal} in bin {bin} of the channel `{channel}` are {value}")]
    NotACount {
        /// The channel.
        channel: String,
        /// What the number is of.
        what: &'static str,
        /// The signal, from 0.
        signal: usize,
        /// The bin, from 0.
        bin: usize,
        /// The number.
        value: f64,
    },
    /// A background that did not converge.
    #[error("the fit of the background did not converge, so that signals cannot be compared with it")]
    Background,
}

/// What to do where the background has the sample, or a modifier with its name.
const OTHER_SAMPLE: &str = "remove it from the background, or give the sample of the signals another name";

impl ScannerError {
    /// Returns one line of advice.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoStrength { .. } => Some("name the parameter that scales the signals: the strength".to_owned()),
            Self::StrengthInUse { sample, .. } => {
                Some(format!("remove the sample `{sample}` from the background, or give the strength another name"))
            }
            Self::SampleInUse { .. } | Self::UncertaintyInUse { .. } => Some(OTHER_SAMPLE.to_owned()),
            Self::LevelIsConfidence { level } => {
                Some(format!("a confidence level of {level} is the level {}", significant(1.0 - level, 6)))
            }
            Self::AsimovSignal => {
                Some("the data expected without signal are those with a strength of 0: `--asimov=0`".to_owned())
            }
            Self::UnknownChannel { channel, known } => {
                let similar = did_you_mean(channel, known.iter().map(String::as_str));
                Some(similar.unwrap_or_else(|| format!("its channels are {}", quoted(known))))
            }
            Self::NotACount { .. } => {
                Some("numbers of events and their uncertainties are finite, and 0 or more".to_owned())
            }
            Self::NoSignals | Self::UncertaintyAlone { .. } | Self::Shape { .. } | Self::Background => None,
        }
    }
}
