//! A model's weights on a device: uploaded once, as they are stored, and resident from then on.

use ns_device::{Buffer, Device};

use super::layout::{
    FORMAT_BF16, FORMAT_F16, FORMAT_F32, FORMAT_Q4_0, FORMAT_Q4_1, FORMAT_Q4K, FORMAT_Q5_0, FORMAT_Q5K, FORMAT_Q6K,
    FORMAT_Q8_0,
};
use crate::config::Config;
use crate::error::Error;
use crate::format::Format;
use crate::linear::Matrix;
use crate::memory;
use crate::model::{Layer, Linear, Model};

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
    pub(super) fn upload(device: &Device, matrix: &Matrix) -> Result<DeviceMatrix, Error> {
        let (bytes, rows, columns) = (matrix.stored(), matrix.rows(), matrix.columns());
        let n_words = bytes.len() / 2;
        u32::try_from(n_words).map_err(|_| Error::TooLargeForDevice)?;
        let mut words = device.uninitialised(n_words)?;
        for (index, piece) in bytes.chunks(PIECE).enumerate() {
            let piece: Vec<u16> = piece.as_chunks::<2>().0.iter().map(|word| u16::from_le_bytes(*word)).collect();
            words.upload_at(index * (PIECE / 2), &piece)?;
        }
        let row_words = (n_words / rows.max(1)) as u32;
        Ok(DeviceMatrix { words, rows, columns, row_words, format: number_of(matrix.format()) })
    }
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
    fn upload(device: &Device, linear: &Linear) -> Result<DeviceLinear, Error> {
        let bias = linear.bias.as_ref().map(|bias| device.upload(bias)).transpose()?;
        Ok(DeviceLinear { matrix: DeviceMatrix::upload(device, &linear.matrix)?, bias })
    }
}

/// One layer of the decoder.
#[derive(Debug)]
pub(super) struct DeviceLayer {
    pub(super) attention_norm: Buffer<f32>,
    pub(super) query: DeviceLinear,
    pub(super) key: DeviceLinear,
    pub(super) value: DeviceLinear,
    pub(super) output: DeviceLinear,
    pub(super) mlp_norm: Buffer<f32>,
    pub(super) gate: DeviceLinear,
    pub(super) up: DeviceLinear,
    pub(super) down: DeviceLinear,
}

impl DeviceLayer {
    fn upload(device: &Device, layer: &Layer) -> Result<DeviceLayer, Error> {
        let linear = |linear: &Linear| DeviceLinear::upload(device, linear);
        Ok(DeviceLayer {
            attention_norm: device.upload(&layer.attention_norm)?,
            query: linear(&layer.query)?,
            key: linear(&layer.key)?,
            value: linear(&layer.value)?,
            output: linear(&layer.output)?,
            mlp_norm: device.upload(&layer.mlp_norm)?,
            gate: linear(&layer.gate)?,
            up: linear(&layer.up)?,
            down: linear(&layer.down)?,
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
            embedding: DeviceMatrix::upload(device, &model.embedding)?,
            layers: model.layers.iter().map(|layer| DeviceLayer::upload(device, layer)).collect::<Result<_, _>>()?,
            norm: device.upload(&model.norm)?,
            head: model.head.as_ref().map(|head| DeviceMatrix::upload(device, head)).transpose()?,
        })
    }

    /// The matrix of the logits.
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
    /// Rows of the tokens that are computed at once, logits, rotary angles.
    pub work: u64,
}

impl DeviceMemory {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.cache).saturating_add(self.work)
    }
}

/// What `model` takes with room for `positions`, at most `chunk` tokens at once. Blocks of the pool waste a fifth at most, which is counted.
///
/// Without positions, whole sequences are computed: `chunk` tokens of them at once.
pub fn estimate_device_memory(model: &Model, positions: usize, chunk: usize) -> DeviceMemory {
    let config = model.config();
    let in_blocks = |bytes: u64| bytes.saturating_add(bytes / 4).saturating_add(1 << 16);
    let rows = |n_rows: usize, width: usize| (n_rows as u64).saturating_mul(width as u64).saturating_mul(4);
    let (chunk, turns) = match positions {
        0 => (chunk, chunk.min(config.context)),
        positions => (chunk.min(positions), positions),
    };
    let work = rows(chunk, row_width(config))
        .saturating_add(rows(chunk.min(super::engine::ROWS_AT_ONCE), config.vocabulary))
        .saturating_add(rows(turns, config.head_dim));
    DeviceMemory {
        weights: in_blocks(model.weight_bytes().saturating_add(vectors_bytes(model))),
        cache: in_blocks(memory::estimate_kv_cache_memory(config, positions)),
        work: in_blocks(work),
    }
}

/// Numbers of one token's rows.
fn row_width(config: &Config) -> usize {
    // And three numbers that say which token it is, and where.
    2 * config.hidden + 2 * config.query_width() + 2 * config.kv_width() + 2 * config.intermediate + 3
}

fn vectors_bytes(model: &Model) -> u64 {
    let of_layer = |layer: &Layer| {
        let linears = [&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate, &layer.up, &layer.down];
        let biases: usize = linears.iter().filter_map(|linear| linear.bias.as_ref()).map(Vec::len).sum();
        biases + 2 * model.config().hidden
    };
    4 * (model.layers.iter().map(of_layer).sum::<usize>() + model.config().hidden) as u64
}
