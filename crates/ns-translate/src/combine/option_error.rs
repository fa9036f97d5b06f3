//! Errors of the options that say how a card is read.

use crate::hint::meant_or_known;

/// What is wrong with the options that say how a card is read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CardOptionError {
    /// A physics model that there is not.
    #[error("there is no physics model `{name}`")]
    UnknownModel {
        /// The name as given.
        name: String,
    },
    /// An option that the physics model does not have, or cannot read.
    #[error("the physics model `{model}` cannot read the option `{option}`: expected {wanted}")]
    ModelOption {
        /// The model.
        model: &'static str,
        /// The option as given.
        option: String,
        /// What its options are like.
        wanted: &'static str,
    },
    /// Options for the default model, which has none.
    #[error("the option `{option}` is for a physics model, and none was chosen")]
    NoModel {
        /// The option as given.
        option: String,
    },
    /// A pattern that is not a regular expression.
    #[error("`{pattern}` is not a regular expression that can be read: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why not.
        reason: String,
    },
    /// A process whose name the model cannot interpret.
    #[error(
        "the physics model `{model}` does not know what the process `{process}` of the channel `{channel}` is: {reason}"
    )]
    Process {
        /// The model.
        model: &'static str,
        /// The process.
        process: String,
        /// The channel.
        channel: String,
        /// What the model needs.
        reason: &'static str,
    },
    /// A label that two cards have.
    #[error("two cards have the label `{label}`")]
    Label {
        /// The label.
        label: String,
    },
    /// A label that names of channels cannot begin with.
    #[error("`{label}` cannot be the label of a card")]
    BadLabel {
        /// The label.
        label: String,
    },
    /// Options for cards with a document that is not a card.
    #[error("a mass, a physics model or a keyword is for a Combine card, and the document is {found}")]
    NotACard {
        /// What the document is.
        found: String,
    },
}

impl CardOptionError {
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownModel { name } => {
                let name = name.rsplit(':').next().unwrap_or(name);
                Some(meant_or_known(name, super::physics::MODELS.iter().copied(), "there are"))
            }
            Self::BadLabel { .. } => Some(
                "names of channels begin with it, and must not begin with a digit; `.` leaves them as they are"
                    .to_owned(),
            ),
            Self::NoModel { .. } => Some("`-P multiSignalModel` or `-P floatingXSHiggs` chooses one".to_owned()),
            _ => None,
        }
    }
}
