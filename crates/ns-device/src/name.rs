//! A device as a user names it: `cuda`, `opencl:1`.

use crate::{Backend, UnknownBackend};
use std::fmt;
use std::str::FromStr;

/// A device by its backend and its number there.
///
/// ```
/// use ns_device::{Backend, DeviceName};
/// let second: DeviceName = "opencl:1".parse()?;
/// assert_eq!((second.backend, second.index), (Backend::OpenCl, 1));
/// assert_eq!(second.to_string(), "opencl:1");
/// assert_eq!("cuda".parse(), Ok(DeviceName::from(Backend::Cuda)));
/// assert!("cuda:first".parse::<DeviceName>().is_err() && "cuda:+1".parse::<DeviceName>().is_err());
/// # Ok::<(), ns_device::DeviceNameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceName {
    /// The backend.
    pub backend: Backend,
    /// Its number among the devices of the backend, as `nextstat devices` lists them.
    pub index: usize,
}

impl From<Backend> for DeviceName {
    /// Returns the first device of `backend`.
    fn from(backend: Backend) -> DeviceName {
        DeviceName { backend, index: 0 }
    }
}

impl fmt::Display for DeviceName {
    /// Writes the number if it is not the first one's.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            0 => write!(formatter, "{}", self.backend),
            index => write!(formatter, "{}:{index}", self.backend),
        }
    }
}

impl FromStr for DeviceName {
    type Err = DeviceNameError;

    fn from_str(name: &str) -> Result<DeviceName, DeviceNameError> {
        let Some((backend, number)) = name.split_once(':') else { return Ok(name.parse::<Backend>()?.into()) };
        let backend = backend.parse()?;
        // A sign would be parsed, too.
        let digits = Some(number).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let index = digits.and_then(|digits| digits.parse().ok());
        let index = index.ok_or_else(|| DeviceNameError::Number { backend, number: number.to_owned() })?;
        Ok(DeviceName { backend, index })
    }
}

/// Why a text names no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceNameError {
    /// No backend has the name.
    #[error(transparent)]
    Backend(#[from] UnknownBackend),
    /// What follows the backend is not a number.
    #[error("{}", wrong_number(*.backend, .number))]
    Number {
        /// The backend.
        backend: Backend,
        /// What was written for the number.
        number: String,
    },
}

fn wrong_number(backend: Backend, number: &str) -> String {
    match number {
        "" => format!("`{backend}:` lacks the number of a device"),
        _ => format!("`{number}` is not the number of a device in `{backend}:{number}`"),
    }
}

impl DeviceNameError {
    /// Returns one line of advice.
    ///
    /// ```
    /// let error = "opencl:x".parse::<ns_device::DeviceName>().unwrap_err();
    /// assert_eq!(error.to_string(), "`x` is not the number of a device in `opencl:x`");
    /// assert_eq!(error.hint(), "`opencl:0` is the first; `nextstat devices` lists them");
    /// ```
    pub fn hint(&self) -> String {
        match self {
            DeviceNameError::Backend(unknown) => unknown.hint(),
            DeviceNameError::Number { backend, .. } => {
                format!("`{backend}:0` is the first; `nextstat devices` lists them")
            }
        }
    }
}
