//! Where to compute, as a caller names it.

use std::fmt;

/// Where to compute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackendPreference {
    /// The processor, too: where a GPU is faster has not been measured on one yet, and this does
    /// not guess.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// An Apple GPU.
    Metal,
    /// The host, lane by lane, under rules that devices do not enforce. For tests.
    #[cfg(feature = "emulated")]
    Emulated,
}

impl fmt::Display for BackendPreference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            BackendPreference::Auto => "auto",
            BackendPreference::Cpu => "cpu",
            BackendPreference::Cuda => "cuda",
            BackendPreference::Metal => "metal",
            #[cfg(feature = "emulated")]
            BackendPreference::Emulated => "emulated",
        })
    }
}
