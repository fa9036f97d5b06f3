//! Batches of likelihoods and whole fits on an accelerator: one kernel text for CUDA, Metal and the emulation on the host.

mod layout;
mod tables;
#[cfg(all(test, feature = "emulated"))]
mod tests;
