//! A model's weights on a device: uploaded once, as they are stored, and resident afterwards.

use ns_device::{Buffer, Device};

use super::launch::most_room_of_tiles;
use super::layout::{
    FORMAT_BF16, FORMAT_F16, FORMAT_F32, FORMAT_Q4_0, FORMAT_Q4_1, FORMAT_Q4K, FORMAT_Q5_0, FORMAT_Q5K, FORMAT_Q6K,
    FORMAT_Q8_0,
};
use crate::config::Config;
use crate::cpu::backend::Heads;
use crate::error::Error;
use crate::model::memory;
use crate::model::{Layer, Linear, Model};
use crate::weights::Matrix;
use crate::weights::format::Format;

/// Bytes that are copied at once on their way to a device.
const PIECE: usize = 8 << 20;

/// A matrix on a device, as it is stored.
#[derive(Debug)]
pub(super) struct DeviceMatrix {
    /// Every format's blocks are whole words of 16 bits.
    pub(super) words: Buffer<u16>,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_words: u32,
    pub(super) format: u32,
}

impl DeviceMatrix {
    /// Uploads the rows of `matrices`, which have one format and one width, one after the other.
    pub(super) fn upload(device: &Device, matrices: &[&Matrix]) -> Result<DeviceMatrix, Error> {
        let (format, columns) = (matrices[0].format(), matrices[0].columns());
        debug_assert!(matrices.iter().all(|matrix| (matrix.format(), matrix.columns()) == (format, columns)));
        let rows = matrices.iter().map(|matrix| matrix.rows()).sum();
        let n_words = n_words(matrices);
        u32::try_from(n_words).map_err(|_| Error::TooLargeForDevice)?;
        let mut words = device.uninitialised(n_words)?;
        let mut first = 0;
        for piece in matrices.iter().flat_map(|matrix| matrix.stored().chunks(PIECE)) {
            let piece: Vec<u16> = piece.as_chunks::<2>().0.iter().map(|word| u16::from_le_bytes(*word)).collect();
            words.upload_at(first, &piece)?;
            first += piece.len();
        }
        let row_words = (n_words / rows) as u32;
        Ok(DeviceMatrix { words, rows, columns, row_words, format: number_of(format) })
    }
}

/// Returns the number of 16-bit words of several matrices.
fn n_words(matrices: &[&Matrix]) -> usize {
    matrices.iter().map(|matrix| matrix.n_bytes() / 2).sum()
}

fn number_of(format: Format) -> u32 {
    match format {
        Format::F32 => FORMAT_F32,
        Format::F16 => FORMAT_F16,
        Format::Bf16 => FORMAT_BF16,
        Format::Q8_0 => FORMAT_Q8_0,
        Format::Q4_0 => FORMAT_Q4_0,
        Format::Q4_1 => FORMAT_Q4_1,
        Format::Q5_0 => FORMAT_Q5_0,
        Format::Q4K => FORMAT_Q4K,
        Format::Q5K => FORMAT_Q5K,
        Format::Q6K => FORMAT_Q6K,
    }
}

/// A matrix and what is added to its products.
#[derive(Debug)]
pub(super) struct DeviceLinear {
    pub(super) matrix: DeviceMatrix,
    pub(super) bias: Option<Buffer<f32>>,
}

impl DeviceLinear {
    /// Uploads matrices and their biases; zeros take the place of a missing bias.
    fn upload(device: &Device, linears: &[&Linear]) -> Result<DeviceLinear, Error> {
        let matrices: Vec<&Matrix> = linears.iter().map(|linear| &linear.matrix).collect();
        let bias = has_bias(linears).then(|| {
            let of_one = |linear: &&Linear| linear.bias.clone().unwrap_or_else(|| vec![0.0; linear.matrix.rows()]);
            device.upload(&linears.iter().flat_map(of_one).collect::<Vec<f32>>())
        });
        Ok(DeviceLinear { matrix: DeviceMatrix::upload(device, &matrices)?, bias: bias.transpose()? })
    }
}

fn has_bias(linears: &[&Linear]) -> bool {
    linears.iter().any(|linear| linear.bias.is_some())
}

/// Matrices that share their inputs; their outputs are side by side.
#[derive(Debug)]
pub(super) struct JoinedLinear {
    /// Neighbours of one format are one matrix of more rows, so that one launch computes them.
    pub(super) parts: Vec<DeviceLinear>,
    /// Outputs of all parts.
    pub(super) rows: usize,
}

impl JoinedLinear {
    fn upload(device: &Device, linears: &[&Linear]) -> Result<JoinedLinear, Error> {
        let parts = runs(linears).map(|run| DeviceLinear::upload(device, run)).collect::<Result<Vec<_>, _>>()?;
        Ok(JoinedLinear { rows: parts.iter().map(|part| part.matrix.rows).sum(), parts })
    }
}

/// Splits matrices into neighbours that can be one matrix: of one format, and together not more
/// than kernels can count.
fn runs<'a, 'b>(linears: &'b [&'a Linear]) -> impl Iterator<Item = &'b [&'a Linear]> {
    let mut rest = linears;
    std::iter::from_fn(move || {
        let format = rest.first()?.matrix.format();
        let is_one = |n: usize| {
            let matrices: Vec<&Matrix> = rest[..n].iter().map(|linear| &linear.matrix).collect();
            matrices[n - 1].format() == format && u32::try_from(n_words(&matrices)).is_ok()
        };
        let n = (2..=rest.len()).take_while(|&n| is_one(n)).last().unwrap_or(1);
        let (run, others) = rest.split_at(n);
        rest = others;
        Some(run)
    })
}

/// One layer of the decoder.
#[derive(Debug)]
pub(super) struct DeviceLayer {
    pub(super) attention_norm: Buffer<f32>,
    /// Of queries, keys and values.
    pub(super) attention: JoinedLinear,
    pub(super) output: JoinedLinear,
    pub(super) mlp_norm: Buffer<f32>,
    /// Of gates, and of what they let through.
    pub(super) gated: JoinedLinear,
    pub(super) down: JoinedLinear,
}

/// Groups the matrices of a layer that share their inputs.
fn groups(layer: &Layer) -> [Vec<&Linear>; 4] {
    let Layer { query, key, value, output, gate, up, down, .. } = layer;
    [vec![query, key, value], vec![output], vec![gate, up], vec![down]]
}

impl DeviceLayer {
    fn upload(device: &Device, layer: &Layer) -> Result<DeviceLayer, Error> {
        let [attention, output, gated, down] = groups(layer).map(|group| JoinedLinear::upload(device, &group));
        Ok(DeviceLayer {
            attention_norm: device.upload(&layer.attention_norm)?,
            attention: attention?,
            output: output?,
            mlp_norm: device.upload(&layer.mlp_norm)?,
            gated: gated?,
            down: down?,
        })
    }
}

/// All weights of a model.
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) embedding: DeviceMatrix,
    pub(super) layers: Vec<DeviceLayer>,
    pub(super) norm: Buffer<f32>,
    pub(super) head: Option<DeviceMatrix>,
}

impl Weights {
    pub(super) fn upload(device: &Device, model: &Model) -> Result<Weights, Error> {
        Ok(Weights {
            embedding: DeviceMatrix::upload(device, &[&model.embedding])?,
            layers: model.layers.iter().map(|layer| DeviceLayer::upload(device, layer)).collect::<Result<_, _>>()?,
            norm: device.upload(&model.norm)?,
            head: model.head.as_ref().map(|head| DeviceMatrix::upload(device, &[head])).transpose()?,
        })
    }

    /// Returns the matrix of the logits.
    pub(super) fn head(&self) -> &DeviceMatrix {
        self.head.as_ref().unwrap_or(&self.embedding)
    }
}

/// What a model takes of a device's memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Matrices as they are stored, norms and biases.
    pub weights: u64,
    /// Keys and values.
    pub cache: u64,
    /// Rows of the tokens that are computed at once, logits, rotary angles, tiles of attention.
    pub work: u64,
}

impl DeviceMemory {
    /// Returns the sum.
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.cache).saturating_add(self.work)
    }
}

/// Estimates the device memory of `model` with room for `positions` and at most `chunk` tokens at
/// once. It includes what blocks of the pool waste, at most a fifth.
///
/// Without positions, whole sequences are computed: `chunk` tokens of them at once.
pub fn estimate_device_memory(model: &Model, positions: usize, chunk: usize) -> DeviceMemory {
    let config = model.config();
    let in_blocks = |bytes: u64| bytes.saturating_add(bytes / 4).saturating_add(1 << 16);
    let rows = |n_rows: usize, width: usize| (n_rows as u64).saturating_mul(width as u64).saturating_mul(4);
    let (chunk, positions_at_once) = match positions {
        0 => (chunk, chunk.min(config.context)),
        positions => (chunk.min(positions), positions),
    };
    let work = rows(chunk, row_width(config))
        .saturating_add(rows(chunk.min(super::engine::LOGITS_AT_ONCE), config.vocabulary))
        .saturating_add(rows(positions_at_once, config.head_dim))
        .saturating_add(rows(1, most_room_of_tiles(heads_of(config), chunk, most_seen(config, positions_at_once))));
    DeviceMemory {
        weights: in_blocks(model.weight_bytes().saturating_add(vectors_bytes(model))),
        cache: in_blocks(memory::estimate_kv_cache_memory(config, positions)),
        work: in_blocks(work),
    }
}

/// Returns how many numbers a token takes in the buffers of a pass.
fn row_width(config: &Config) -> usize {
    // And three numbers for the token and its place.
    2 * config.hidden
        + joined_width(config)
        + 2 * config.query_width()
        + 2 * config.kv_width()
        + config.intermediate
        + 3
}

/// Returns the number of outputs that are side by side at one time: queries, keys and values, then
/// the gate and up projections.
pub(super) fn joined_width(config: &Config) -> usize {
    (config.query_width() + 2 * config.kv_width()).max(2 * config.intermediate)
}

pub(super) fn heads_of(config: &Config) -> Heads {
    Heads { n_heads: config.n_heads, n_kv_heads: config.n_kv_heads, head_dim: config.head_dim }
}

/// Returns the largest number of positions that a token sees in any layer, at most `positions`.
pub(super) fn most_seen(config: &Config, positions: usize) -> usize {
    let of_layer = |layer| config.windows.of_layer(layer).map_or(positions, |window| window.min(positions));
    (0..config.n_layers).map(of_layer).max().unwrap_or(0)
}

fn vectors_bytes(model: &Model) -> u64 {
    let biases = |group: Vec<&Linear>| -> usize {
        if has_bias(&group) { group.iter().map(|linear| linear.matrix.rows()).sum() } else { 0 }
    };
    let of_layer = |layer: &Layer| groups(layer).map(biases).into_iter().sum::<usize>() + 2 * model.config().hidden;
    4 * (model.layers.iter().map(of_layer).sum::<usize>() + model.config().hidden) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(format: Format, rows: usize, bias: Option<Vec<f32>>) -> Linear {
        let bytes = vec![0; rows * format.row_bytes(256).expect("whole blocks")];
        Linear { matrix: Matrix::from_bytes(&bytes, format, rows, 256).expect("a matrix"), bias }
    }

    #[test]
    fn neighbours_of_one_format_are_joined() {
        let [q4, q6, f16] = [Format::Q4K, Format::Q6K, Format::F16].map(|format| linear(format, 2, None));
        let lengths = |linears: &[&Linear]| runs(linears).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[&q4, &q4, &q4]), [3]);
        assert_eq!(lengths(&[&q4, &q4, &q6]), [2, 1]);
        assert_eq!(lengths(&[&q4, &q6, &q4]), [1, 1, 1]);
        assert_eq!(lengths(&[&f16, &q6]), [1, 1]);
        assert_eq!(lengths(&[&f16]), [1]);
    }

    #[cfg(feature = "emulated")]
    #[test]
    fn a_joined_matrix_has_all_rows_and_all_biases() {
        let device = crate::device::open(ns_device::Backend::Emulated, 0).expect("the emulation");
        let value = |first: f32, rows: usize, bias| {
            let values: Vec<f32> = (0..rows * 3).map(|index| first + index as f32).collect();
            Linear { matrix: Matrix::from_values(&values, rows, 3).expect("a matrix"), bias }
        };
        let [a, b] = [value(1.0, 2, Some(vec![5.0, 6.0])), value(7.0, 1, None)];
        let joined = JoinedLinear::upload(&device, &[&a, &b]).expect("memory");
        assert_eq!((joined.rows, joined.parts.len()), (3, 1));
        let words = joined.parts[0].matrix.words.download().expect("words");
        let numbers: Vec<f32> = words
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[low, high]| f32::from_bits(u32::from(*low) | u32::from(*high) << 16))
            .collect();
        assert_eq!(numbers, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        let bias = joined.parts[0].bias.as_ref().expect("a bias").download().expect("numbers");
        assert_eq!(bias, [5.0, 6.0, 0.0]);
        let other = linear(Format::Q8_0, 1, None);
        let mixed = JoinedLinear::upload(&device, &[&b, &a, &other]).expect("memory");
        assert_eq!((mixed.rows, mixed.parts.len()), (4, 2));
        assert!(mixed.parts[1].bias.is_none());
    }
}
