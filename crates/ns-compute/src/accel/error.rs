//! The errors of models and of batches of fits on a device.

use ns_core::templates::InputError;
use ns_device::DeviceError;
use thiserror::Error;

/// Why a device cannot evaluate or fit.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum AccelError {
    /// An error of the device itself.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A model that kernels cannot evaluate.
    #[error("{what} are not supported on a device")]
    Unsupported {
        /// What the model has.
        what: &'static str,
    },
    /// The results of the device differ from those of the CPU.
    #[error("the device is refused: {what} of a small model is {value} there and {expected} on the CPU")]
    SelfTest {
        /// What was compared.
        what: &'static str,
        /// The device's number.
        value: f64,
        /// The right one.
        expected: f64,
    },
    /// The model is too large for kernels, which count with 32 bits.
    #[error("the tables or one fit of this model have {numbers} numbers, and kernels can count 2^32 of them")]
    TooLarge {
        /// The number of numbers that one block would need.
        numbers: u64,
    },
    /// More items at once than kernels can count.
    #[error("{items} points at once are more than kernels can count: {most} for this model")]
    TooMany {
        /// The number of items.
        items: usize,
        /// The largest number.
        most: usize,
    },
    /// A batch whose sizes are not those of the model.
    #[error("{what}: expected {expected}, got {found}")]
    Size {
        /// What was counted.
        what: &'static str,
        /// The number passed.
        found: usize,
        /// The right number.
        expected: usize,
    },
    /// Inputs that are not valid for a template.
    #[error("{}{error}", place_in_batch(*batch_element, *n_batch))]
    Input {
        /// Their index in the batch.
        batch_element: usize,
        /// The number of batch elements.
        n_batch: usize,
        /// What is wrong.
        error: InputError,
    },
    /// A constraint term that kernels do not have.
    #[error("devices do not have the {term} constraint term of `{parameter}`")]
    Term {
        /// The parameter.
        parameter: String,
        /// The kind of term.
        term: &'static str,
    },
    /// A modifier that does not follow the model's interpolation rule.
    #[error("devices have one interpolation rule for all modifiers, and `{parameter}` has one of its own")]
    OwnInterpolation {
        /// The parameter.
        parameter: String,
    },
    /// Memory of another library has double precision, and the device computes in single precision.
    #[error("the device computes in single precision, but the memory of another library has double precision")]
    Single,
    /// A term of the model needs more digits than single precision has.
    #[error("the constraint of `{parameter}` has a rate of {tau:e}, which single precision cannot resolve")]
    TooPrecise {
        /// The parameter.
        parameter: String,
        /// The rate of its Poisson constraint.
        tau: f64,
    },
}

impl AccelError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Device(error) => error.hint(),
            Self::TooMany { .. } => Some("ask for fewer at a time".to_owned()),
            Self::Input { error, .. } => error.hint(),
            Self::Single => Some("copy the numbers to the host".to_owned()),
            Self::Size { .. } => None,
            Self::SelfTest { .. }
            | Self::TooLarge { .. }
            | Self::TooPrecise { .. }
            | Self::Term { .. }
            | Self::OwnInterpolation { .. }
            | Self::Unsupported { .. } => Some("the CPU can do it".to_owned()),
        }
    }
}

/// Returns the beginning of a message about a batch element, if there are several.
fn place_in_batch(batch_element: usize, n_batch: usize) -> String {
    if n_batch > 1 { format!("batch element {batch_element} of {n_batch}: ") } else { String::new() }
}
