//! How weights are stored, and how they are unpacked where they are used.

pub mod format;
mod matrix;

pub(crate) use matrix::Bytes;
pub use matrix::Matrix;
