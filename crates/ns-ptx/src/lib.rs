//! Executes the PTX that is shipped, without a GPU.
//!
//! No GPU may be at hand, but the text that its driver would compile is: this crate reads it and
//! executes recorded launches (`NEXTSTAT_RECORD_LAUNCHES`), lane by lane. Every access is checked:
//! bounds, alignment, stores to outputs only, loads through the read-only cache only of what no
//! lane writes, shared memory that was written before it is read, all lanes at the same barrier,
//! and whole warps at a shuffle. What a launch writes is compared with the recording, which the
//! emulation made from the C++ of the kernels.
//!
//! It knows the instructions that occur in this repository's PTX; any other is an error with its
//! line. Where PTX promises only an error bound (`rcp.approx`, `ex2.approx`), the result is the
//! nearest one, and products and sums without `.rn`, which a driver may fuse, are fused by
//! [`fuse_at_random`].
//!
//! | Module | What is in it |
//! |---|---|
//! | [`parse`] | the text as functions, instructions and global variables |
//! | [`instruction`] | what an instruction is |
//! | [`launch`] | a launch, its blocks and lanes |
//! | [`recording`] | recorded launches |
//! | [`coverage`] | which basic blocks were executed |
//! | [`fuse`] | products and sums with one rounding |

mod arithmetic;
pub mod coverage;
mod decode;
pub mod fuse;
pub mod instruction;
mod lane;
pub mod launch;
mod memory;
pub mod parse;
pub mod recording;

pub use coverage::{BlockCount, Coverage};
pub use fuse::{FusedModule, fuse_at_random};
pub use launch::{LaneOrder, Outcome, Violation, run};
pub use parse::{Module, ParseError};
pub use recording::{Argument, Recording};
