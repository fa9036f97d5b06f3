//! The kernels one by one on a device. Every call copies its numbers there and back; matrices are
//! uploaded once and stay.

use ns_device::Device;

use super::launch::{Launcher, Product, ScoredRows, TokenPlaces, Turn, Turned};
use super::memory::DeviceMemoryPool;
use super::weights::DeviceMatrix;
use crate::config::{Rope, RopePairs};
use crate::cpu::backend::{Heads, KernelBackend, check, rows};
use crate::error::Error;
use crate::model::check_tokens;
use crate::weights::Matrix;

/// A device.
#[derive(Debug)]
pub struct DeviceBackend {
    launcher: Launcher,
    pool: DeviceMemoryPool,
    /// The host's matrix is kept, so that no other can take its place in memory and be taken for
    /// it.
    matrices: Vec<(Matrix, DeviceMatrix)>,
    is_tiled: bool,
}

impl DeviceBackend {
    /// Computes on a device of single precision, as [`open`](super::open) gives it.
    pub fn new(device: Device) -> Result<DeviceBackend, Error> {
        let (launcher, pool) = (Launcher::new(device.clone())?, DeviceMemoryPool::new(device));
        Ok(DeviceBackend { launcher, pool, matrices: Vec::new(), is_tiled: false })
    }

    /// Returns the backend with vectors that go through shared memory tile by tile, which changes
    /// no bit of any result.
    #[must_use]
    pub fn with_tiles(mut self, is_tiled: bool) -> DeviceBackend {
        self.is_tiled = is_tiled;
        self
    }

    /// Returns its memory, with statistics and counters.
    pub fn pool(&self) -> &DeviceMemoryPool {
        &self.pool
    }

    /// Uploads the matrix if it is not on the device yet, and returns its index there.
    fn resident(&mut self, matrix: &Matrix) -> Result<usize, Error> {
        let is_same = |(other, _): &(Matrix, DeviceMatrix)| {
            std::ptr::eq(other.stored(), matrix.stored())
                && (other.format(), other.rows()) == (matrix.format(), matrix.rows())
        };
        if let Some(place) = self.matrices.iter().position(is_same) {
            return Ok(place);
        }
        let uploaded = DeviceMatrix::upload(self.pool.device(), &[matrix])?;
        self.matrices.push((matrix.clone(), uploaded));
        Ok(self.matrices.len() - 1)
    }

    fn multiply(&mut self, matrix: &Matrix, x: &[f32], n_vectors: usize, out: &mut [f32]) -> Result<(), Error> {
        let place = self.resident(matrix)?;
        let x = self.pool.items(x)?;
        let mut result = self.pool.device().uninitialised(out.len())?;
        let product = Product { is_tiled: self.is_tiled, ..Product::new(&self.matrices[place].1, &x, n_vectors) };
        self.launcher.product(product, &mut result)?;
        Ok(result.download_into(out)?)
    }
}

impl KernelBackend for DeviceBackend {
    fn name(&self) -> String {
        let device = self.pool.device();
        format!("{} ({})", device.backend(), device.properties().name)
    }

    fn rmsnorm(&mut self, x: &mut [f32], weight: &[f32], epsilon: f64) -> Result<(), Error> {
        let n_rows = rows("rmsnorm", "x", x.len(), weight.len())?;
        let (from, weight) = (self.pool.items(x)?, self.pool.items(weight)?);
        let mut to = self.pool.device().uninitialised(x.len())?;
        self.launcher.norm(&from, &weight, epsilon, n_rows, &mut to)?;
        Ok(to.download_into(x)?)
    }

    fn softmax(&mut self, x: &mut [f32]) -> Result<(), Error> {
        if x.is_empty() {
            return Ok(());
        }
        let mut on_device = self.pool.items(x)?;
        self.launcher.softmax(&mut on_device, 1, x.len())?;
        Ok(on_device.download_into(x)?)
    }

    fn silu(&mut self, x: &mut [f32]) -> Result<(), Error> {
        if x.is_empty() {
            return Ok(());
        }
        let mut on_device = self.pool.items(x)?;
        self.launcher.silu(&mut on_device, x.len())?;
        Ok(on_device.download_into(x)?)
    }

    fn fused_silu_mul(&mut self, gate: &mut [f32], up: &[f32]) -> Result<(), Error> {
        check("fused_silu_mul", "up", up.len(), gate.len())?;
        if gate.is_empty() {
            return Ok(());
        }
        let joined = self.pool.items(&[&*gate, up].concat())?;
        let mut out = self.pool.device().uninitialised(gate.len())?;
        self.launcher.silu_mul(&joined, 1, gate.len(), &mut out)?;
        Ok(out.download_into(gate)?)
    }

    fn rope(&mut self, x: &mut [f32], pairs: RopePairs, frequencies: &[f64], position: usize) -> Result<(), Error> {
        let head_dim = 2 * frequencies.len();
        let n_heads = rows("rope", "x", x.len(), head_dim)?;
        if x.is_empty() {
            return Ok(());
        }
        let mut turns = vec![0.0; head_dim];
        let (cosines, sines) = turns.split_at_mut(head_dim / 2);
        Rope::turn(frequencies, position, cosines, sines);
        // The only row of angles is that of the position.
        let (turns, positions) = (self.pool.items(&turns)?, self.pool.items(&[0_u32])?);
        let (device, joined) = (self.pool.device(), self.pool.items(x)?);
        let mut turned = device.uninitialised(x.len())?;
        // The heads are those of queries alone.
        let turn = Turn { n_rows: 1, n_heads, n_kv_heads: 0, head_dim, pairs, kv_row: 0, n_positions: 1 };
        let (mut keys, mut values) = (device.uninitialised(1)?, device.uninitialised(1)?);
        let to = Turned { queries: &mut turned, keys: &mut keys, values: &mut values };
        self.launcher.rope(turn, &joined, &turns, TokenPlaces { places: &positions, offset: 0 }, to)?;
        Ok(turned.download_into(x)?)
    }

    fn attention_scores(
        &mut self,
        heads: Heads,
        queries: &[f32],
        keys: &[f32],
        scale: f32,
        scores: &mut [f32],
    ) -> Result<(), Error> {
        let n_positions = heads.positions("attention_scores", queries.len(), keys.len())?;
        check("attention_scores", "scores", scores.len(), heads.n_heads * n_positions)?;
        let (queries, keys) = (self.pool.items(queries)?, self.pool.items(keys)?);
        let mut out = self.pool.device().uninitialised(scores.len())?;
        self.launcher.scores(heads, scale, n_positions, ScoredRows { queries: &queries, keys: &keys }, &mut out)?;
        Ok(out.download_into(scores)?)
    }

    fn weighted_sum(&mut self, heads: Heads, weights: &[f32], values: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let n_positions = heads.positions("weighted_sum", out.len(), values.len())?;
        check("weighted_sum", "weights", weights.len(), heads.n_heads * n_positions)?;
        let (weights, values) = (self.pool.items(weights)?, self.pool.items(values)?);
        let mut result = self.pool.device().uninitialised(out.len())?;
        self.launcher.weighted_sum(heads, n_positions, &weights, &values, &mut result)?;
        Ok(result.download_into(out)?)
    }

    fn matmul_vec(&mut self, matrix: &Matrix, x: &[f32], out: &mut [f32]) -> Result<(), Error> {
        check("matmul_vec", "x", x.len(), matrix.columns())?;
        check("matmul_vec", "out", out.len(), matrix.rows())?;
        self.multiply(matrix, x, 1, out)
    }

    fn matmul(&mut self, matrix: &Matrix, x: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let n_vectors = rows("matmul", "x", x.len(), matrix.columns())?;
        check("matmul", "out", out.len(), matrix.rows() * n_vectors)?;
        self.multiply(matrix, x, n_vectors, out)
    }

    fn add(&mut self, x: &mut [f32], y: &[f32]) -> Result<(), Error> {
        check("add", "y", y.len(), x.len())?;
        if x.is_empty() {
            return Ok(());
        }
        let (mut on_device, y) = (self.pool.items(x)?, self.pool.items(y)?);
        self.launcher.add(&mut on_device, &y, x.len())?;
        Ok(on_device.download_into(x)?)
    }

    fn embedding(&mut self, matrix: &Matrix, tokens: &[u32], out: &mut [f32]) -> Result<(), Error> {
        check("embedding", "out", out.len(), tokens.len() * matrix.columns())?;
        check_tokens(matrix.rows(), tokens)?;
        if tokens.is_empty() {
            return Ok(());
        }
        let place = self.resident(matrix)?;
        let tokens_there = self.pool.items(tokens)?;
        let mut result = self.pool.device().uninitialised(out.len())?;
        self.launcher.embedding(&self.matrices[place].1, &tokens_there, tokens.len(), &mut result)?;
        Ok(result.download_into(out)?)
    }
}
