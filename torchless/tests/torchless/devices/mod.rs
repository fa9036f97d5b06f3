//! The kernels and the engine on the emulated device, against the CPU, stored logits and plain
//! reference implementations.
//!
//! `NEXTSTAT_TEST_DEVICE=cuda` (or `metal`, or `opencl`) tries a real device instead. Some tests
//! are of the emulation alone, which is where rules are enforced.

mod engine;
mod kernels;
mod launches;
mod reference;

use ns_device::{Backend, Device};

/// The device that is tested: the emulated one, or the real one that the environment names.
pub(crate) fn device() -> Device {
    let backend = match std::env::var("NEXTSTAT_TEST_DEVICE") {
        Ok(name) => name.parse::<Backend>().unwrap_or_else(|error| panic!("NEXTSTAT_TEST_DEVICE: {error}")),
        Err(_) => Backend::Emulated,
    };
    torchless::device::open(backend, 0).unwrap_or_else(|error| panic!("{error}"))
}
