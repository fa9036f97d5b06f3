//! The self-test of a device before it is used: its kernels compute what the CPU does, for products
//! of every format, norms, positions and attention, one by one and as the engine launches them.

mod engine_kernels;

use std::sync::{Mutex, PoisonError};

use ns_device::{Backend, Device};

use super::backend::DeviceBackend;
use crate::config::{Rope, RopePairs, RopeScaling};
use crate::cpu::Threads;
use crate::cpu::backend::{CpuBackend, Heads, KernelBackend};
use crate::error::Error;
use crate::weights::Matrix;
use crate::weights::format::Format;

/// What single precision may lose in sums of a few hundred numbers, in parts of their root mean
/// square; a wrong kernel is off by a part of 1.
const TOLERANCE: f64 = 1e-4;

static DONE: Verdicts = Verdicts::new();

/// The verdicts on the devices that were tested.
pub(crate) struct Verdicts(Mutex<Vec<Verdict>>);

#[derive(Debug, Clone)]
struct Verdict {
    backend: Backend,
    index: usize,
    failure: Option<Failure>,
}

/// A number that a device computed wrongly.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) what: String,
    pub(crate) value: f32,
    pub(crate) expected: f32,
}

impl Verdicts {
    pub(crate) const fn new() -> Verdicts {
        Verdicts(Mutex::new(Vec::new()))
    }

    /// Tests a device by `compare` the first time, and remembers the verdict.
    pub(crate) fn once(
        &self,
        device: &Device,
        compare: impl FnOnce(&Device) -> Result<Option<Failure>, Error>,
    ) -> Result<(), Error> {
        let (backend, index) = (device.backend(), device.index());
        let mut done = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = done.iter().find(|verdict| (verdict.backend, verdict.index) == (backend, index));
        let failure = match known {
            Some(verdict) => verdict.failure.clone(),
            None => {
                let failure = compare(device)?;
                device.trim();
                device.reset_counters();
                done.push(Verdict { backend, index, failure: failure.clone() });
                failure
            }
        };
        failure.map_or(Ok(()), |failure| Err(failure.into()))
    }
}

/// Tests a device the first time in a process, and remembers the verdict.
pub(super) fn once(device: &Device) -> Result<(), Error> {
    DONE.once(device, compare)
}

/// Compares the kernels on a device with the CPU's.
///
/// # Errors
///
/// What differs, with both numbers.
pub fn self_test(device: &Device) -> Result<(), Error> {
    compare(device)?.map_or(Ok(()), |failure| Err(failure.into()))
}

impl From<Failure> for Error {
    fn from(Failure { what, value, expected }: Failure) -> Error {
        Error::DeviceRefused { what, value, expected }
    }
}

/// Parts of numbers, each of its own size.
type Parts = Vec<Vec<f32>>;
type Case = (String, Box<dyn Fn(&mut dyn KernelBackend) -> Result<Parts, Error>>);

fn compare(device: &Device) -> Result<Option<Failure>, Error> {
    let mut there = DeviceBackend::new(device.clone())?;
    let mut here = CpuBackend::new(Threads::new(1));
    for (what, case) in products().into_iter().chain(others()) {
        if let Some(failure) = differs(&what, &case(&mut there)?, &case(&mut here)?) {
            return Ok(Some(failure));
        }
    }
    engine_kernels::compare(device, &mut here)
}

/// Returns the first number whose error is above the tolerance of its part.
pub(crate) fn differs(what: &str, found: &[Vec<f32>], expected: &[Vec<f32>]) -> Option<Failure> {
    let lengths = |parts: &[Vec<f32>]| parts.iter().map(Vec::len).collect::<Vec<_>>();
    if lengths(found) != lengths(expected) {
        let first = expected.iter().flatten().next().copied().unwrap_or(f32::NAN);
        return Some(Failure { what: what.to_owned(), value: f32::NAN, expected: first });
    }
    for (found, expected) in found.iter().zip(expected) {
        let squares: f64 = expected.iter().map(|number| f64::from(*number).powi(2)).sum();
        let size = (squares / expected.len() as f64).sqrt();
        let is_off = |(found, expected): &(&f32, &f32)| {
            let off = (f64::from(**found) - f64::from(**expected)).abs();
            off.is_nan() || off > TOLERANCE * (size + f64::from(expected.abs()))
        };
        if let Some((&value, &expected)) = found.iter().zip(expected).find(is_off) {
            return Some(Failure { what: what.to_owned(), value, expected });
        }
    }
    None
}

/// Returns pseudo-random numbers between -1 and 1.
pub(crate) fn numbers(length: usize, seed: u32) -> Vec<f32> {
    let hash = |index: u32| (index.wrapping_add(seed).wrapping_mul(2_654_435_761) ^ seed).wrapping_mul(2_246_822_519);
    (0..length as u32).map(|index| (hash(index) >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// Makes seven rows of 512 weights: plain ones of `numbers`, blocks of any bytes with scales about
/// 2⁻⁹.
fn matrix(format: Format) -> Matrix {
    let (rows, columns) = (7, 512);
    let plain = numbers(rows * columns, 1);
    let bytes: Vec<u8> = match format {
        Format::F32 => plain.iter().flat_map(|number| number.to_le_bytes()).collect(),
        Format::Bf16 => plain.iter().flat_map(|number| ((number.to_bits() >> 16) as u16).to_le_bytes()).collect(),
        // Between 1 and 2 in magnitude.
        Format::F16 => {
            plain.iter().flat_map(|number| (0x3c00 | number.to_bits() as u16 & 0x83ff).to_le_bytes()).collect()
        }
        _ => blocks(format, rows * columns / format.block_len()),
    };
    Matrix::from_bytes(&bytes, format, rows, columns).expect("whole rows")
}

fn blocks(format: Format, n_blocks: usize) -> Vec<u8> {
    let length = format.block_bytes();
    let halves: &[usize] = match format {
        Format::Q4_1 | Format::Q4K | Format::Q5K => &[0, 2],
        Format::Q6K => &[208],
        _ => &[0],
    };
    let mut bytes: Vec<u8> = numbers(n_blocks * length, 2).iter().map(|number| (number.to_bits() >> 3) as u8).collect();
    for block in bytes.chunks_exact_mut(length) {
        for &at in halves {
            block[at + 1] = block[at + 1] & 0x83 | 0x18;
        }
    }
    bytes
}

fn products() -> Vec<Case> {
    let of_format = |format: Format| -> Case {
        let product = move |backend: &mut dyn KernelBackend| {
            let matrix = matrix(format);
            let (x, mut one, mut several, mut rows) =
                (numbers(3 * 512, 3), vec![0.0; 7], vec![0.0; 21], vec![0.0; 1024]);
            backend.matmul_vec(&matrix, &x[..512], &mut one)?;
            backend.matmul(&matrix, &x, &mut several)?;
            backend.embedding(&matrix, &[6, 2], &mut rows)?;
            Ok(vec![one, several, rows])
        };
        (format!("a product of {format}"), Box::new(product))
    };
    Format::ALL.into_iter().map(of_format).collect()
}

fn others() -> Vec<Case> {
    let in_place = |what: &str, work: fn(&mut dyn KernelBackend, &mut [f32]) -> Result<(), Error>| -> Case {
        let case = move |backend: &mut dyn KernelBackend| {
            let mut x = numbers(300, 4);
            work(backend, &mut x)?;
            Ok(vec![x])
        };
        (what.to_owned(), Box::new(case))
    };
    vec![
        in_place("a norm", |backend, x| backend.rmsnorm(x, &numbers(100, 5), 1e-5)),
        in_place("a softmax", |backend, x| backend.softmax(x)),
        in_place("an activation", |backend, x| backend.silu(x)),
        in_place("a gated activation", |backend, x| backend.fused_silu_mul(x, &numbers(300, 6))),
        in_place("a sum", |backend, x| backend.add(x, &numbers(300, 7))),
        in_place("positions of halves", |backend, x| turn(backend, x, RopePairs::Halves)),
        in_place("positions of neighbours", |backend, x| turn(backend, x, RopePairs::Neighbours)),
        ("attention".to_owned(), Box::new(attention)),
    ]
}

fn turn(backend: &mut dyn KernelBackend, x: &mut [f32], pairs: RopePairs) -> Result<(), Error> {
    let frequencies = Rope { theta: 1e4, scaling: RopeScaling::None, pairs }.frequencies(50);
    backend.rope(x, pairs, &frequencies, 1234)
}

fn attention(backend: &mut dyn KernelBackend) -> Result<Parts, Error> {
    let (heads, n_positions) = (Heads { n_heads: 6, n_kv_heads: 2, head_dim: 40 }, 37);
    let (keys, values) = (numbers(n_positions * 80, 9), numbers(n_positions * 80, 10));
    let (mut scores, mut out) = (vec![0.0; 6 * n_positions], vec![0.0; 240]);
    backend.attention_scores(heads, &numbers(240, 8), &keys, 0.15, &mut scores)?;
    for row in scores.chunks_mut(n_positions) {
        backend.softmax(row)?;
    }
    backend.weighted_sum(heads, &scores, &values, &mut out)?;
    Ok(vec![scores, out])
}

#[cfg(test)]
mod tests {
    use super::differs;

    #[test]
    fn small_numbers_are_compared_as_closely_as_large_ones() {
        for size in [1e-6, 1.0, 1e6] {
            let right = vec![vec![1.0; 3], vec![size, -size, size]];
            let nearly = vec![vec![1.0; 3], vec![size, -size * 1.000_1, size]];
            let wrong = vec![vec![1.0; 3], vec![size, -size, size * 1.001]];
            assert!(differs("it", &nearly, &right).is_none() && differs("it", &wrong, &right).is_some(), "{size}");
        }
    }
}
