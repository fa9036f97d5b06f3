//! The fast mode: products of quantised weights with inputs that are rounded to bytes. Off by
//! default.
//!
//! Inputs are rounded in blocks of 32: d = max |x| / 127 and q the integers nearest to x/d. A
//! format's weights are groups of 16 or 32 codes c, c₀ that of 0, with a scale s and perhaps a
//! minimum m. An output is the sum over the groups, one after the other, of
//!
//! ```text
//! (s · Σ (c − c₀)·q  +  m · Σ q) · d
//! ```
//!
//! Both inner sums are integers below 2^24, thus exact, in single precision too; each product and
//! each sum outside is rounded by itself. So there is one result, to the bit, for every instruction
//! set, any number of threads and any number of inputs at once. An input that is not finite makes
//! d, and with it every output, NaN.

mod codes;
mod inputs;
mod products;
mod simd;

use std::marker::PhantomData;

use crate::weights::format::Format;

pub(crate) use inputs::{InputMemory, Inputs};
pub use simd::IntegerSet;

pub(crate) use products::Unpacked;

use codes::with_coded;
use products::{NARROW, Rows};
use simd::dispatch_integers;

/// What products see of their inputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Activations {
    /// Single precision.
    #[default]
    Exact,
    /// Bytes with one scale to 32 of them, where weights are quantised; single precision where they
    /// are not.
    Int8,
}

impl Activations {
    /// Returns whether inputs of a matrix of `format` are rounded.
    pub fn rounds(self, format: Format) -> bool {
        self == Activations::Int8 && format.block_len() > 1
    }
}

/// Returns the number of inputs of a tile.
pub(crate) fn width(set: IntegerSet, n_inputs: usize) -> usize {
    match n_inputs {
        1 => 1,
        5.. if set == IntegerSet::Avx512Vnni => 8,
        _ => NARROW,
    }
}

/// Rows of a quantised matrix.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'a> {
    pub(crate) format: Format,
    pub(crate) bytes: &'a [u8],
    pub(crate) row_bytes: usize,
}

/// Writes to `out` (rows, T) the products of some rows with all inputs.
pub(crate) fn multiply_rows(
    set: IntegerSet,
    stored: Stored<'_>,
    x: Inputs<'_>,
    unpacked: &mut Unpacked,
    out: &mut [f32],
) {
    let Stored { format, bytes, row_bytes } = stored;
    with_coded!(format, L => {
        dispatch_integers(set, Rows { coded: PhantomData::<L>, bytes, row_bytes, x, unpacked, out });
    }, else unreachable!("inputs of {format} are not rounded"));
}
