//! Why a model cannot be simplified.

use super::settings::quoted;
use ns_inference::memory::MemoryShortage;

/// Why a model cannot be simplified.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimplifyError {
    /// No channel was named.
    #[error("there is no channel to simplify")]
    NoChannel,
    /// Some bins of a channel, where whole channels are simplified.
    #[error("`{selection}` names bins of a channel, and channels are simplified as a whole")]
    Bins {
        /// The selection.
        selection: String,
    },
    /// A background whose fit did not converge.
    #[error("the fit of the background to the other channels did not converge: {}", .warnings.join("; "))]
    Background {
        /// The warnings of the fit.
        warnings: Vec<String>,
    },
    /// A parameter that no channel determines but those that are simplified.
    #[error("nothing but the simplified channels determines `{name}`, on which their yields depend")]
    Undetermined {
        /// The parameter.
        name: String,
    },
    /// Second derivatives that do not fit into memory.
    #[error("for the second derivatives of the yields {0}")]
    TooLarge(#[from] MemoryShortage),
    /// Moments that are not finite.
    #[error("the yield in {bin} or one of its derivatives is not finite where it is expanded")]
    NotFinite {
        /// The bin.
        bin: String,
    },
    /// Several strengths of signals.
    #[error("a simplified model has one signal, and {} are parameters of interest", quoted(.names))]
    SeveralStrengths {
        /// The parameters of interest.
        names: Vec<String>,
    },
    /// A comparison without a signal.
    #[error("there is no signal to compare the simplified model with")]
    NoSignal,
    /// A signal that is fixed in the background.
    #[error("`{name}` is fixed at {value}: a background has no signal")]
    FixedSignal {
        /// The strength of the signal.
        name: String,
        /// Its value.
        value: f64,
    },
    /// Yields that are not linear in the strength of the signal.
    #[error("the yields of channel `{channel}` are not linear in `{name}`")]
    NotLinear {
        /// The channel.
        channel: String,
        /// The strength of the signal.
        name: String,
    },
    /// Masked bins.
    #[error("bins of channel `{channel}` are masked, and channels are simplified as a whole")]
    Masked {
        /// The channel.
        channel: String,
    },
    /// A signal whose patch changes the background.
    #[error("its patch changes the background of the simplified channels")]
    OtherBackground,
    /// Data that are hidden.
    #[error("the data of channel `{channel}` are hidden, and a simplified model has the data of its channels")]
    Hidden {
        /// The channel.
        channel: String,
    },
    /// A signal with other channels, bins or data than the background.
    #[error("its bins or their data are not those of the background")]
    OtherBins,
}

impl SimplifyError {
    /// Returns one line of advice.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoChannel => Some("name the signal regions".to_owned()),
            Self::Bins { .. } => Some("name the channel alone".to_owned()),
            Self::Undetermined { name } => {
                Some(format!("leave a channel that determines `{name}` to the fit, or fix it"))
            }
            Self::SeveralStrengths { .. } | Self::NotLinear { .. } => {
                Some("name another parameter of interest".to_owned())
            }
            Self::TooLarge(_) => Some("simplify fewer channels".to_owned()),
            Self::Masked { .. } => Some("simplified channels are not fitted in any case".to_owned()),
            Self::OtherBackground
            | Self::NotFinite { .. }
            | Self::NoSignal
            | Self::Background { .. }
            | Self::FixedSignal { .. }
            | Self::Hidden { .. }
            | Self::OtherBins => None,
        }
    }
}
