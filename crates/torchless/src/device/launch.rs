//! Launches of the kernels on buffers, with every length held against the kernel's: nothing here reads or writes past an end.
//!
//! Legend: T rows, one for each token; D width of a head.

use ns_device::{Argument, Buffer, Constants, Device, Grid, Item, Precision, WARP};

use super::kernels::TransformerKernel;
use super::layout::{
    AttentionLayout, ElementLayout, EmbeddingLayout, MAX_HEAD_DIM, PAIRS_HALVES, PAIRS_NEIGHBOURS, ProductLayout,
    ROWS_OF_VECTOR, ROWS_OF_VECTORS, RopeLayout, RowLayout, TILE, VECTORS_AT_ONCE,
};
use super::weights::DeviceMatrix;
use crate::backend::Heads;
use crate::error::Error;
use crate::kernels::RopePairs;

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
    /// Whether it is added to what is there.
    pub(super) adds: bool,
    /// Whether one vector goes through shared memory.
    pub(super) is_tiled: bool,
}

impl<'a> Product<'a> {
    /// The first `n_vectors` of `x` to the beginning of the output.
    pub(super) fn new(matrix: &'a DeviceMatrix, x: &'a Buffer<f32>, n_vectors: usize) -> Product<'a> {
        Product { matrix, bias: None, x, x_offset: 0, n_vectors, out_offset: 0, adds: false, is_tiled: false }
    }
}

/// Heads that are turned: (T, heads, D) from `offset` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) n_rows: usize,
    pub(super) n_heads: usize,
    pub(super) head_dim: usize,
    pub(super) pairs: RopePairs,
    pub(super) offset: usize,
}

/// Attention of T tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attend<'a> {
    pub(super) heads: Heads,
    pub(super) n_rows: usize,
    pub(super) window: Option<usize>,
    pub(super) scale: f32,
    /// (T, heads, D)
    pub(super) queries: &'a Buffer<f32>,
    /// (positions, KV heads, D)
    pub(super) keys: &'a Buffer<f32>,
    pub(super) values: &'a Buffer<f32>,
}

/// A device, and what launches on it need.
#[derive(Debug)]
pub(super) struct Launcher {
    device: Device,
    /// Stands where a product has no bias.
    nothing: Buffer<f32>,
}

/// Holds a buffer's length against what a kernel will touch.
fn holds<T: Item>(
    kernel: TransformerKernel,
    argument: &'static str,
    buffer: &Buffer<T>,
    expected: usize,
) -> Result<(), Error> {
    use ns_device::Kernel;
    let length = buffer.len();
    if length >= expected { Ok(()) } else { Err(Error::Shape { kernel: kernel.name(), argument, length, expected }) }
}

/// A number as kernels have it.
fn count(number: usize) -> Result<u32, Error> {
    u32::try_from(number).map_err(|_| Error::TooLargeForDevice)
}

/// The number of items of a shape, if kernels can count them: an index that wraps reads what nobody asked for.
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
        (blocks, shared_reals): (u32, u32),
        layout: &Constants,
        arguments: Vec<Argument<'_>>,
    ) -> Result<(), Error> {
        let all: Vec<Argument<'_>> = std::iter::once(Argument::constants(layout.bytes())).chain(arguments).collect();
        Ok(self.device.launch(kernel, Grid { blocks, lanes: LANES, shared_reals }, &all)?)
    }

    /// out (T, columns): rows of `matrix`; every token is one of them.
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
        let arguments = vec![Argument::read(&matrix.words), Argument::read(tokens), Argument::write(out)];
        self.launch(kernel, (count(n_tokens)?, 0), &layout.constants(), arguments)
    }

    /// to (T, width) = x / √(mean(x²) + ε) · weight (width).
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
        let layout = RowLayout { width: count(width)?, epsilon };
        let arguments = vec![Argument::read(x), Argument::read(weight), Argument::write(to)];
        self.launch(kernel, (count(n_rows)?, LANES / WARP), &layout.constants(), arguments)
    }

    /// Each row of x (T, width) ← its softmax.
    pub(super) fn softmax(&self, x: &mut Buffer<f32>, n_rows: usize, width: usize) -> Result<(), Error> {
        let kernel = TransformerKernel::Softmax;
        holds(kernel, "x", x, area(&[n_rows, width])?)?;
        let layout = RowLayout { width: count(width)?, epsilon: 0.0 };
        self.launch(kernel, (count(n_rows)?, LANES / WARP), &layout.constants(), vec![Argument::write(x)])
    }

    /// One by one: with `other` where the kernel takes one.
    fn each(
        &self,
        kernel: TransformerKernel,
        x: &mut Buffer<f32>,
        other: Option<&Buffer<f32>>,
        n: usize,
    ) -> Result<(), Error> {
        holds(kernel, "x", x, n)?;
        other.map_or(Ok(()), |other| holds(kernel, "other", other, n))?;
        let layout = ElementLayout { n: count(n)? };
        let arguments = std::iter::once(Argument::write(x)).chain(other.map(Argument::read)).collect();
        let blocks = layout.n.div_ceil(LANES).min(MOST_BLOCKS);
        self.launch(kernel, (blocks, 0), &layout.constants(), arguments)
    }

    pub(super) fn silu(&self, x: &mut Buffer<f32>, n: usize) -> Result<(), Error> {
        self.each(TransformerKernel::Silu, x, None, n)
    }

    /// gate (n) ← silu(gate)·up.
    pub(super) fn silu_mul(&self, gate: &mut Buffer<f32>, up: &Buffer<f32>, n: usize) -> Result<(), Error> {
        self.each(TransformerKernel::SiluMul, gate, Some(up), n)
    }

    pub(super) fn add(&self, x: &mut Buffer<f32>, y: &Buffer<f32>, n: usize) -> Result<(), Error> {
        self.each(TransformerKernel::Add, x, Some(y), n)
    }

    /// Turns heads to the positions at `positions_offset` of `positions`, all of which have a row in `turns` (positions, D).
    pub(super) fn rope(
        &self,
        turn: Turn,
        turns: &Buffer<f32>,
        (positions, positions_offset): (&Buffer<u32>, usize),
        x: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let (kernel, Turn { n_rows, n_heads, head_dim, pairs, offset }) = (TransformerKernel::Rope, turn);
        holds(kernel, "x", x, offset + area(&[n_rows, n_heads, head_dim])?)?;
        holds(kernel, "positions", positions, positions_offset + n_rows)?;
        let layout = RopeLayout {
            n_rows: count(n_rows)?,
            n_heads: count(n_heads)?,
            head_dim: count(head_dim)?,
            pairs: match pairs {
                RopePairs::Halves => PAIRS_HALVES,
                RopePairs::Neighbours => PAIRS_NEIGHBOURS,
            },
            x_offset: count(offset)?,
            positions_offset: count(positions_offset)?,
        };
        let blocks = count(n_rows * n_heads * head_dim / 2)?.div_ceil(LANES).min(MOST_BLOCKS);
        let arguments = vec![Argument::read(turns), Argument::read(positions), Argument::write(x)];
        self.launch(kernel, (blocks, 0), &layout.constants(), arguments)
    }

    /// out (T, rows) = x (T, columns)·matrixᵀ, with what the product says.
    pub(super) fn product(&self, product: Product<'_>, out: &mut Buffer<f32>) -> Result<(), Error> {
        let Product { matrix, bias, x, x_offset, n_vectors, out_offset, adds, is_tiled } = product;
        let layout = ProductLayout {
            rows: count(matrix.rows)?,
            columns: count(matrix.columns)?,
            row_words: matrix.row_words,
            format: matrix.format,
            n_vectors: count(n_vectors)?,
            x_offset: count(x_offset)?,
            out_offset: count(out_offset)?,
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
        holds(kernel, "out", out, out_offset + area(&[n_vectors, matrix.rows])?)?;
        bias.map_or(Ok(()), |bias| holds(kernel, "bias", bias, matrix.rows))?;
        let blocks = layout.rows.div_ceil(warps * rows).saturating_mul(layout.n_vectors.div_ceil(vectors));
        let arguments = vec![
            Argument::read(&matrix.words),
            Argument::read(x),
            Argument::read(bias.unwrap_or(&self.nothing)),
            Argument::write(out),
        ];
        self.launch(kernel, (blocks, shared_reals), &layout.constants(), arguments)
    }

    /// out (T, heads, D): attention of every token, whose position and whose sequence's first row of keys stand in `places` (2, T) at an offset.
    pub(super) fn attention(
        &self,
        attend: Attend<'_>,
        (places, places_offset): (&Buffer<u32>, usize),
        out: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let (kernel, Attend { heads, n_rows, queries, keys, values, .. }) = (TransformerKernel::Attention, attend);
        let n = area(&[n_rows, heads.n_heads, heads.head_dim])?;
        holds(kernel, "queries", queries, n)?;
        holds(kernel, "out", out, n)?;
        holds(kernel, "places", places, places_offset + 2 * n_rows)?;
        let layout = AttentionLayout {
            window: attend.window.map_or(Ok(0), count)?,
            places_offset: count(places_offset)?,
            ..sizes(heads, n_rows, attend.scale)?
        };
        let shared = layout.head_dim + LANES + LANES / WARP * (1 + layout.head_dim);
        let arguments = vec![
            Argument::read(places),
            Argument::read(queries),
            Argument::read(keys),
            Argument::read(values),
            Argument::write(out),
        ];
        let blocks = count(n_rows * heads.n_heads)?;
        self.launch(kernel, (blocks, shared), &layout.constants(), arguments)
    }

    /// scores (heads, positions) of one token.
    pub(super) fn scores(
        &self,
        heads: Heads,
        scale: f32,
        n_positions: usize,
        (queries, keys): (&Buffer<f32>, &Buffer<f32>),
        scores: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let kernel = TransformerKernel::AttentionScores;
        holds(kernel, "queries", queries, area(&[heads.n_heads, heads.head_dim])?)?;
        holds(kernel, "keys", keys, area(&[n_positions, heads.n_kv_heads, heads.head_dim])?)?;
        holds(kernel, "scores", scores, area(&[heads.n_heads, n_positions])?)?;
        let layout = sizes(heads, n_positions, scale)?;
        const POSITIONS_OF_BLOCK: u32 = LANES / 8;
        let blocks = layout.n_heads.saturating_mul(layout.n_rows.div_ceil(POSITIONS_OF_BLOCK));
        let arguments = vec![Argument::read(queries), Argument::read(keys), Argument::write(scores)];
        self.launch(kernel, (blocks, 0), &layout.constants(), arguments)
    }

    /// out (heads, D) of one token.
    pub(super) fn weighted_sum(
        &self,
        heads: Heads,
        n_positions: usize,
        (weights, values): (&Buffer<f32>, &Buffer<f32>),
        out: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let kernel = TransformerKernel::WeightedSum;
        holds(kernel, "weights", weights, area(&[heads.n_heads, n_positions])?)?;
        holds(kernel, "values", values, area(&[n_positions, heads.n_kv_heads, heads.head_dim])?)?;
        holds(kernel, "out", out, area(&[heads.n_heads, heads.head_dim])?)?;
        let layout = sizes(heads, n_positions, 0.0)?;
        let arguments = vec![Argument::read(weights), Argument::read(values), Argument::write(out)];
        let shared = LANES / WARP * layout.head_dim;
        self.launch(kernel, (layout.n_heads, shared), &layout.constants(), arguments)
    }
}

/// Refuses heads that are wider than a lane has sums for.
pub(super) fn check_head_dim(head_dim: usize) -> Result<(), Error> {
    let limit = MAX_HEAD_DIM as usize;
    if head_dim <= limit { Ok(()) } else { Err(Error::HeadTooWide { head_dim, limit }) }
}

fn sizes(heads: Heads, n_rows: usize, scale: f32) -> Result<AttentionLayout, Error> {
    check_head_dim(heads.head_dim)?;
    Ok(AttentionLayout {
        n_rows: count(n_rows)?,
        n_heads: count(heads.n_heads)?,
        n_kv_heads: count(heads.n_kv_heads)?,
        head_dim: count(heads.head_dim)?,
        window: 0,
        places_offset: 0,
        scale: f64::from(scale),
    })
}

#[cfg(test)]
mod tests {
    use super::area;

    #[test]
    fn what_kernels_cannot_count_is_refused() {
        assert_eq!(area(&[1 << 16, (1 << 16) - 1]).expect("32 bits"), (1 << 32) - (1 << 16));
        for shape in [&[1 << 16, 1 << 16][..], &[usize::MAX, 2], &[1 << 11, 1 << 11, 1 << 11]] {
            assert!(area(shape).is_err(), "{shape:?}");
        }
    }
}
