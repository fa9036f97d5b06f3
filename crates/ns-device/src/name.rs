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
/// # Ok::<(), ns_device::UnknownBackend>(())
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
    type Err = UnknownBackend;

    fn from_str(name: &str) -> Result<DeviceName, UnknownBackend> {
        let Some((backend, index)) = name.split_once(':') else { return name.parse::<Backend>().map(Into::into) };
        let unknown = || UnknownBackend { name: name.to_owned() };
        // A sign would be parsed, too.
        let digits = Some(index).filter(|index| index.bytes().all(|byte| byte.is_ascii_digit()));
        let index = digits.and_then(|digits| digits.parse().ok()).ok_or_else(unknown)?;
        Ok(DeviceName { backend: backend.parse()?, index })
    }
}
