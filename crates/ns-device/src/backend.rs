//! The kinds of devices and what is known about one before any work is given to it.

use std::fmt;
use std::str::FromStr;

/// A way to reach devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// NVIDIA GPUs, through the driver's library, found at run time.
    Cuda,
    /// Apple GPUs.
    Metal,
    /// The host, lanes as fibers or threads. For tests.
    Emulated,
}

impl Backend {
    /// Every backend, in the order in which they are listed and preferred.
    pub const ALL: [Backend; 3] = [Backend::Cuda, Backend::Metal, Backend::Emulated];

    /// The name as a user writes it, which is also the feature's.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Cuda => "cuda",
            Backend::Metal => "metal",
            Backend::Emulated => "emulated",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = ();

    fn from_str(name: &str) -> Result<Backend, ()> {
        Backend::ALL.into_iter().find(|backend| backend.name() == name).ok_or(())
    }
}

/// What the kernels' `real` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// `double`: f64.
    Double,
    /// `float`: f32. All that Metal has.
    Single,
}

impl Precision {
    /// Bytes of one `real`.
    pub fn bytes(self) -> usize {
        match self {
            Precision::Double => 8,
            Precision::Single => 4,
        }
    }

    /// The spacing of reals at 1.
    pub fn epsilon(self) -> f64 {
        match self {
            Precision::Double => f64::EPSILON,
            Precision::Single => f64::from(f32::EPSILON),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Precision::Double => "f64",
            Precision::Single => "f32",
        })
    }
}

/// What one launch may ask for at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Lanes of a block. A kernel may allow fewer.
    pub lanes: u32,
    /// Bytes of a block's shared memory.
    pub shared_bytes: usize,
    /// Bytes of one launch's constants.
    pub constants_bytes: usize,
}

/// Bytes of a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Not in use by anyone.
    pub free: u64,
    /// All of it.
    pub total: u64,
}

/// What is known about a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// As its maker calls it.
    pub name: String,
    /// The precisions that kernels can have here, the preferred one first.
    pub precisions: Vec<Precision>,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Of an NVIDIA GPU.
    pub compute_capability: Option<(u32, u32)>,
    /// Sums and products in double precision that it can do in a second at its highest clock, where its kind is known.
    pub double_flops: Option<u64>,
    /// What one launch may ask for.
    pub limits: Limits,
}
