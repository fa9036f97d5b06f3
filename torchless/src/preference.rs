//! Where to compute, as a caller names it.

use ns_device::Backend;
use std::fmt;

/// Where to compute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackendPreference {
    /// The processor, too: where a GPU is faster was measured on one machine alone, and this does
    /// not guess.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// A device of this backend.
    Device(Backend),
}

impl BackendPreference {
    /// Returns every preference that a program offers its users.
    pub fn offered() -> impl Iterator<Item = BackendPreference> {
        let backends = Backend::offered().map(BackendPreference::Device);
        [BackendPreference::Auto, BackendPreference::Cpu].into_iter().chain(backends)
    }

    /// Returns the preference that is offered by a name.
    ///
    /// ```
    /// use torchless::backend::{Backend, BackendPreference};
    /// assert_eq!(BackendPreference::named("cuda"), Some(BackendPreference::Device(Backend::Cuda)));
    /// assert_eq!(BackendPreference::named("gpu"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<BackendPreference> {
        BackendPreference::offered().find(|preference| preference.name() == name)
    }

    /// Returns the name as a user writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BackendPreference::Auto => "auto",
            BackendPreference::Cpu => "cpu",
            BackendPreference::Device(backend) => backend.name(),
        }
    }

    /// Returns the backend of the device; `None` for the processor.
    #[must_use]
    pub fn backend(self) -> Option<Backend> {
        match self {
            BackendPreference::Auto | BackendPreference::Cpu => None,
            BackendPreference::Device(backend) => Some(backend),
        }
    }
}

impl fmt::Display for BackendPreference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
