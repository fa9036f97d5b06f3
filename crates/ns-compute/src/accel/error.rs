//! Why a model, or a batch of fits of it, cannot be had on a device.

use ns_core::templates::InputError;
use ns_device::DeviceError;
use thiserror::Error;

/// Why a device does not do what was asked of it.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum AccelError {
    /// The device itself says no.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device computed something else than the CPU.
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
        /// How many numbers one block would need.
        numbers: u64,
    },
    /// More items at once than kernels can count.
    #[error("{items} points are asked for at once, and kernels can count {most} of this model's")]
    TooMany {
        /// How many there are.
        items: usize,
        /// How many there can be.
        most: usize,
    },
    /// A batch that is not of the model's sizes.
    #[error("{what}: {found} were given where the model has {expected}")]
    Size {
        /// What was counted.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Inputs that no template can have.
    #[error("{}{error}", place_of_row(*row, *n_rows))]
    Input {
        /// Their row.
        row: usize,
        /// Of how many.
        n_rows: usize,
        /// What is wrong.
        error: InputError,
    },
    /// Numbers of another library are doubles, and the device has none.
    #[error("the device computes in single precision, and memory that is not its own is of double precision")]
    Single,
    /// Single precision cannot hold what a term of the model needs.
    #[error("the constraint of `{parameter}` has a rate of {tau:e}, which single precision cannot resolve")]
    TooPrecise {
        /// The parameter.
        parameter: String,
        /// The rate of its Poisson constraint.
        tau: f64,
    },
}

impl AccelError {
    /// What to do about it, if there is something.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Device(error) => error.hint(),
            Self::TooMany { .. } => Some("ask for fewer at a time".to_owned()),
            Self::Input { error, .. } => error.hint(),
            Self::Single => Some("copy the numbers to the host".to_owned()),
            Self::Size { .. } => None,
            Self::SelfTest { .. } | Self::TooLarge { .. } | Self::TooPrecise { .. } => {
                Some("the CPU can do it".to_owned())
            }
        }
    }
}

/// Which row, where there are several.
fn place_of_row(row: usize, n_rows: usize) -> String {
    if n_rows > 1 { format!("row {row} of {n_rows}: ") } else { String::new() }
}
