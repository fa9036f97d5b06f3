//! Batches of likelihoods and whole fits on an accelerator: one kernel text for CUDA, Metal and the
//! emulation on the host.
//!
//! A [`DeviceSession`] is a model on a device of `ns_device`; its templates can be replaced, by a
//! batch of several sets too. Its data sets contain main bins *and* auxiliary data, one pair for
//! each toy.

mod contents;
mod cost;
mod error;
mod gpu_session;
mod input_tables;
mod kernels;
mod layout;
mod reals;
mod self_test;
mod session;
mod tables;
mod templates;

pub use cost::IterationCost;
pub use error::AccelError;
pub use gpu_session::GpuSession;
pub use self_test::self_test;
pub use session::template_batch::{BatchGradients, DeviceGradients, DeviceInput};
pub use session::{BatchPoints, DeviceSession};
