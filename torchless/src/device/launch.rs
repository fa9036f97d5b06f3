//! Launches of the kernels on buffers, with every length checked against what the kernel touches.
//!
//! No kernel reads or writes past an end as long as the numbers *in* the buffers of token ids,
//! positions and rows are in the ranges that the caller guarantees: they are on the device and are
//! not checked here.
//!
//! Legend: T rows, one for each token; D width of a head.

mod attention;

use ns_device::{Buffer, BufferItem, Device, KernelArgument, LaunchDims, Precision, WARP};

pub(super) use attention::{Attend, ScoredRows, check_head_dim, most_room_of_tiles, room_of_tiles};

use super::kernels::TransformerKernel;
use super::layout::{
    ElementLayout, EmbeddingLayout, GateLayout, PAIRS_HALVES, PAIRS_NEIGHBOURS, ProductLayout, ROWS_OF_VECTOR,
    ROWS_OF_VECTORS, RopeLayout, RowLayout, TILE, VECTORS_AT_ONCE,
};
use super::weights::DeviceMatrix;
use crate::config::RopePairs;
use crate::error::Error;

/// Lanes of every block.
const LANES: u32 = 128;
/// Blocks of a kernel that treats numbers one by one, at most: enough to keep any device busy.
const MOST_BLOCKS: u32 = 4096;

/// A product and where its vectors come from and go to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Product<'a> {
    pub(super) matrix: &'a DeviceMatrix,
    pub(super) bias: Option<&'a Buffer<f32>>,
    /// (T, columns), from `x_offset` on.
    pub(super) x: &'a Buffer<f32>,
    pub(super) x_offset: usize,
    pub(super) n_vectors: usize,
    /// Where (T, rows) goes.
    pub(super) out_offset: usize,
    /// Distance between the outputs of two vectors: `rows`, or more if there are others between
    /// them.
    pub(super) out_stride: usize,
    /// Whether it is added to what is there.
    pub(super) adds: bool,
    /// Whether one vector goes through shared memory.
    pub(super) is_tiled: bool,
}

impl<'a> Product<'a> {
    /// Returns the product of the first `n_vectors` of `x`, written to the beginning of the output.
    pub(super) fn new(matrix: &'a DeviceMatrix, x: &'a Buffer<f32>, n_vectors: usize) -> Product<'a> {
        let out_stride = matrix.rows;
        let (bias, x_offset, out_offset) = (None, 0, 0);
        Product { matrix, bias, x, x_offset, n_vectors, out_offset, out_stride, adds: false, is_tiled: false }
    }
}

/// Queries, keys and values of T tokens side by side, (T, heads + 2 KV heads, D), which are turned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) n_rows: usize,
    pub(super) n_heads: usize,
    pub(super) n_kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) pairs: RopePairs,
    /// The row of keys and values of the first token.
    pub(super) kv_row: usize,
    /// More than the greatest position of a token, which is the caller's promise.
    pub(super) n_positions: usize,
}

/// Numbers for each token in a buffer: positions, or the rows of their keys and values.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenPlaces<'a> {
    pub(super) places: &'a Buffer<u32>,
    /// Where they begin there.
    pub(super) offset: usize,
}

/// Where queries, keys and values go.
#[derive(Debug)]
pub(super) struct Turned<'a> {
    /// (T, heads, D)
    pub(super) queries: &'a mut Buffer<f32>,
    /// (positions, KV heads, D)
    pub(super) keys: &'a mut Buffer<f32>,
    pub(super) values: &'a mut Buffer<f32>,
}

/// A device, and what launches on it need.
#[derive(Debug)]
pub(super) struct Launcher {
    device: Device,
    /// The bias of a product without one.
    nothing: Buffer<f32>,
}

/// Checks a buffer's length against what a kernel will touch.
fn holds<T: BufferItem>(
    kernel: TransformerKernel,
    argument: &'static str,
    buffer: &Buffer<T>,
    expected: usize,
) -> Result<(), Error> {
    reaches(kernel, argument, buffer.len(), expected)
}

fn reaches(kernel: TransformerKernel, argument: &'static str, length: usize, expected: usize) -> Result<(), Error> {
    use ns_device::Kernel;
    if length >= expected { Ok(()) } else { Err(Error::Shape { kernel: kernel.name(), argument, length, expected }) }
}

/// Converts a count to 32 bits.
fn count(number: usize) -> Result<u32, Error> {
    u32::try_from(number).map_err(|_| Error::TooLargeForDevice)
}

/// Returns the number of items of a shape, if kernels can count them: an index that wraps would
/// read other memory.
pub(super) fn area(shape: &[usize]) -> Result<usize, Error> {
    let length = shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    length.filter(|&length| u32::try_from(length).is_ok()).ok_or(Error::TooLargeForDevice)
}

impl Launcher {
    pub(super) fn new(device: Device) -> Result<Launcher, Error> {
        // Kernels of another precision would take buffers for longer than they are.
        match device.precision() {
            Precision::Single => Ok(Launcher { nothing: device.zeroed(1)?, device }),
            precision => Err(Error::NotSinglePrecision { precision }),
        }
    }

    fn launch(
        &self,
        kernel: TransformerKernel,
        blocks: u32,
        shared_reals: u32,
        arguments: &[KernelArgument<'_>],
    ) -> Result<(), Error> {
        Ok(self.device.launch(kernel, LaunchDims { blocks, lanes: LANES, shared_reals }, arguments)?)
    }

    /// Copies rows of `matrix` to out (T, columns); that every token is one of them is the caller's
    /// promise.
    pub(super) fn embedding(
        &self,
        matrix: &DeviceMatrix,
        tokens: &Buffer<u32>,
        n_tokens: usize,
        out: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let kernel = TransformerKernel::Embedding;
        holds(kernel, "tokens", tokens, n_tokens)?;
        holds(kernel, "out", out, area(&[n_tokens, matrix.columns])?)?;
        let layout =
            EmbeddingLayout { columns: count(matrix.columns)?, row_words: matrix.row_words, format: matrix.format };
        let layout = layout.words();
        let matrix = KernelArgument::read(&matrix.words);
        let arguments =
            [KernelArgument::uints(&layout), matrix, KernelArgument::read(tokens), KernelArgument::write(out)];
        self.launch(kernel, count(n_tokens)?, 0, &arguments)
    }

    /// Computes to (T, width) = x / √(mean(x²) + ε) · weight (width).
    pub(super) fn norm(
        &self,
        x: &Buffer<f32>,
        weight: &Buffer<f32>,
        epsilon: f64,
        n_rows: usize,
        to: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let (kernel, width) = (TransformerKernel::RmsNorm, weight.len());
        let n = area(&[n_rows, width])?;
        holds(kernel, "x", x, n)?;
        holds(kernel, "to", to, n)?;
        let layout = RowLayout { width: count(width)?, epsilon: epsilon as f32 }.words();
        let arguments = [
            KernelArgument::uints(&layout),
            KernelArgument::read(x),
            KernelArgument::read(weight),
            KernelArgument::write(to),
        ];
        self.launch(kernel, count(n_rows)?, LANES / WARP, &arguments)
    }

    /// Replaces each row of x (T, width) by its softmax.
    pub(super) fn softmax(&self, x: &mut Buffer<f32>, n_rows: usize, width: usize) -> Result<(), Error> {
        let kernel = TransformerKernel::Softmax;
        holds(kernel, "x", x, area(&[n_rows, width])?)?;
        let layout = RowLayout { width: count(width)?, epsilon: 0.0 }.words();
        self.launch(kernel, count(n_rows)?, LANES / WARP, &[KernelArgument::uints(&layout), KernelArgument::write(x)])
    }

    /// Computes x (n) ← silu(x).
    pub(super) fn silu(&self, x: &mut Buffer<f32>, n: usize) -> Result<(), Error> {
        let kernel = TransformerKernel::Silu;
        holds(kernel, "x", x, n)?;
        let layout = ElementLayout { n: count(n)? }.words();
        self.launch(kernel, blocks_of(layout[0]), 0, &[KernelArgument::uints(&layout), KernelArgument::write(x)])
    }

    /// Computes x (n) ← x + y.
    pub(super) fn add(&self, x: &mut Buffer<f32>, y: &Buffer<f32>, n: usize) -> Result<(), Error> {
        let kernel = TransformerKernel::Add;
        holds(kernel, "x", x, n)?;
        holds(kernel, "y", y, n)?;
        let layout = ElementLayout { n: count(n)? }.words();
        let arguments = [KernelArgument::uints(&layout), KernelArgument::write(x), KernelArgument::read(y)];
        self.launch(kernel, blocks_of(layout[0]), 0, &arguments)
    }

    /// Computes out (T, width) = silu(gates)·others, of joined (T, gates and others, width each).
    pub(super) fn silu_mul(
        &self,
        joined: &Buffer<f32>,
        n_rows: usize,
        width: usize,
        out: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let (kernel, n) = (TransformerKernel::SiluMul, area(&[n_rows, width])?);
        holds(kernel, "joined", joined, area(&[n, 2])?)?;
        holds(kernel, "out", out, n)?;
        let layout = GateLayout { n: count(n)?, width: count(width)? };
        let words = layout.words();
        let arguments = [KernelArgument::uints(&words), KernelArgument::read(joined), KernelArgument::write(out)];
        self.launch(kernel, blocks_of(layout.n), 0, &arguments)
    }

    /// Turns queries and keys to the positions at `positions_offset` of `positions`, by their rows
    /// of `turns` (positions, D), and puts them and the values where they belong.
    pub(super) fn rope(
        &self,
        turn: Turn,
        joined: &Buffer<f32>,
        turns: &Buffer<f32>,
        TokenPlaces { places: positions, offset: positions_offset }: TokenPlaces<'_>,
        Turned { queries, keys, values }: Turned<'_>,
    ) -> Result<(), Error> {
        let (kernel, Turn { n_rows, n_heads, n_kv_heads, head_dim, .. }) = (TransformerKernel::Rope, turn);
        let n = area(&[n_rows, n_heads + 2 * n_kv_heads, head_dim])?;
        let n_kv = area(&[turn.kv_row + n_rows, n_kv_heads, head_dim])?;
        holds(kernel, "joined", joined, n)?;
        holds(kernel, "turns", turns, area(&[turn.n_positions, head_dim])?)?;
        holds(kernel, "positions", positions, positions_offset + n_rows)?;
        holds(kernel, "queries", queries, area(&[n_rows, n_heads, head_dim])?)?;
        holds(kernel, "keys", keys, n_kv)?;
        holds(kernel, "values", values, n_kv)?;
        let layout = RopeLayout { positions_offset: count(positions_offset)?, ..turn.layout()? }.words();
        let arguments = [
            KernelArgument::uints(&layout),
            KernelArgument::read(turns),
            KernelArgument::read(positions),
            KernelArgument::read(joined),
            KernelArgument::write(queries),
            KernelArgument::write(keys),
            KernelArgument::write(values),
        ];
        self.launch(kernel, blocks_of(count(n / 2)?), 0, &arguments)
    }

    /// Computes out (T, rows) = x (T, columns)·matrixᵀ, with what the product says.
    pub(super) fn product(&self, product: Product<'_>, out: &mut Buffer<f32>) -> Result<(), Error> {
        let Product { matrix, bias, x, x_offset, n_vectors, out_offset, out_stride, adds, is_tiled } = product;
        let layout = ProductLayout {
            rows: count(matrix.rows)?,
            columns: count(matrix.columns)?,
            row_words: matrix.row_words,
            format: matrix.format,
            n_vectors: count(n_vectors)?,
            x_offset: count(x_offset)?,
            out_offset: count(out_offset)?,
            out_stride: count(out_stride)?,
            has_bias: u32::from(bias.is_some()),
            adds: u32::from(adds),
        };
        let warps = LANES / WARP;
        let (kernel, rows, vectors, shared_reals) = match (n_vectors, is_tiled) {
            (1, false) => (TransformerKernel::MatVec, ROWS_OF_VECTOR, 1, 0),
            (1, true) => (TransformerKernel::MatVecTiled, ROWS_OF_VECTOR, 1, TILE),
            _ => (TransformerKernel::MatMul, ROWS_OF_VECTORS, VECTORS_AT_ONCE, VECTORS_AT_ONCE * TILE),
        };
        holds(kernel, "x", x, x_offset + area(&[n_vectors, matrix.columns])?)?;
        // The outputs of the last vector need not be followed by others.
        let before_last = area(&[n_vectors.saturating_sub(1), out_stride])?;
        holds(kernel, "out", out, out_offset + before_last + matrix.rows)?;
        bias.map_or(Ok(()), |bias| holds(kernel, "bias", bias, matrix.rows))?;
        let blocks = layout.rows.div_ceil(warps * rows).saturating_mul(layout.n_vectors.div_ceil(vectors));
        let words = layout.words();
        let arguments = [
            KernelArgument::uints(&words),
            KernelArgument::read(&matrix.words),
            KernelArgument::read(x),
            KernelArgument::read(bias.unwrap_or(&self.nothing)),
            KernelArgument::write(out),
        ];
        self.launch(kernel, blocks, shared_reals, &arguments)
    }
}

/// Returns the number of blocks for `n` numbers that are treated one by one.
fn blocks_of(n: u32) -> u32 {
    n.div_ceil(LANES).min(MOST_BLOCKS)
}

impl Turn {
    fn layout(&self) -> Result<RopeLayout, Error> {
        Ok(RopeLayout {
            n_rows: count(self.n_rows)?,
            n_heads: count(self.n_heads)?,
            n_kv_heads: count(self.n_kv_heads)?,
            head_dim: count(self.head_dim)?,
            pairs: match self.pairs {
                RopePairs::Halves => PAIRS_HALVES,
                RopePairs::Neighbours => PAIRS_NEIGHBOURS,
            },
            kv_row: count(self.kv_row)?,
            positions_offset: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{TokenPlaces, area};

    #[test]
    fn shapes_that_overflow_32_bits_are_refused() {
        assert_eq!(area(&[1 << 16, (1 << 16) - 1]).expect("32 bits"), (1 << 32) - (1 << 16));
        for shape in [&[1 << 16, 1 << 16][..], &[usize::MAX, 2], &[1 << 11, 1 << 11, 1 << 11]] {
            assert!(area(shape).is_err(), "{shape:?}");
        }
    }

    #[cfg(feature = "emulated")]
    #[test]
    fn positions_without_angles_are_refused() {
        use super::{Launcher, Turn, Turned};
        let device = crate::device::open(ns_device::Backend::Emulated, 0).expect("the emulation");
        let launcher = Launcher::new(device.clone()).expect("single precision");
        let zeros = |length: usize| device.upload(&vec![0.0_f32; length]).expect("memory");
        let (joined, turns, positions) = (zeros(3 * 8), zeros(5 * 8), device.upload(&[4_u32]).expect("memory"));
        let (mut queries, mut keys, mut values) = (zeros(8), zeros(8), zeros(8));
        let pairs = crate::config::RopePairs::Halves;
        let mut turned = |n_positions| {
            let turn = Turn { n_rows: 1, n_heads: 1, n_kv_heads: 1, head_dim: 8, pairs, kv_row: 0, n_positions };
            let to = Turned { queries: &mut queries, keys: &mut keys, values: &mut values };
            launcher
                .rope(turn, &joined, &turns, TokenPlaces { places: &positions, offset: 0 }, to)
                .map_err(|error| error.to_string())
        };
        assert_eq!(turned(5), Ok(()));
        assert!(turned(6).is_err_and(|message| message.contains("turns")));
    }
}
