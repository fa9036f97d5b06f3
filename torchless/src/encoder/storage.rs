//! How the matrices of a model are kept in memory: in single precision, in two bytes a number, or
//! as bytes with scales.
//!
//! Numbers of two bytes are widened inside a product, and sums are in single precision. A file that
//! holds such numbers loses nothing: its outputs have the bits of widened weights. Bytes are the
//! fast mode of decoders: weights are rounded, and so are the inputs of products.

use crate::weights::Matrix;
use crate::weights::format::Format;

/// How the matrices of an encoder are stored: constant right factors of products, and tables whose
/// rows are gathered. Everything else is in single precision.
///
/// ```
/// use torchless::encoder::{Encoder, EncoderOptions, WeightStorage};
///
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/encoders"))?;
/// let options = EncoderOptions { weights: WeightStorage::F16, ..EncoderOptions::default() };
/// let model = Encoder::open_with("text17.onnx", &options)?;
/// assert!(model.weight_bytes() < Encoder::open("text17.onnx")?.weight_bytes());
/// assert!(!model.is_approximate());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum WeightStorage {
    /// Single precision.
    #[default]
    F32,
    /// Half precision: 11 bits, numbers up to 65504.
    F16,
    /// bfloat16: 8 bits, numbers as large as those of single precision.
    Bf16,
    /// **Approximate**: bytes with a scale for 32 of them, of the inputs of products, too.
    Int8,
}

impl WeightStorage {
    /// Every form.
    pub const ALL: [WeightStorage; 4] =
        [WeightStorage::F32, WeightStorage::F16, WeightStorage::Bf16, WeightStorage::Int8];

    /// Returns its name: `f32`, `f16`, `bf16` or `int8`.
    pub fn name(self) -> &'static str {
        match self {
            WeightStorage::F32 => "f32",
            WeightStorage::F16 => "f16",
            WeightStorage::Bf16 => "bf16",
            WeightStorage::Int8 => "int8",
        }
    }

    /// Returns the form of a name.
    pub fn named(name: &str) -> Option<WeightStorage> {
        Self::ALL.into_iter().find(|storage| storage.name() == name)
    }

    /// Returns whether products are computed with rounded inputs.
    pub fn is_approximate(self) -> bool {
        self == WeightStorage::Int8
    }

    /// Returns the largest number that can be stored.
    pub(super) fn largest(self) -> f32 {
        match self {
            WeightStorage::F32 => f32::MAX,
            WeightStorage::F16 => LARGEST_HALF,
            WeightStorage::Bf16 => f32::from_bits(0x7f7f_0000),
            WeightStorage::Int8 => 127.0 * LARGEST_HALF,
        }
    }
}

/// The largest number of half precision.
const LARGEST_HALF: f32 = 65_504.0;

/// Weights that share a scale.
const BLOCK: usize = 32;

/// A number that a form of storage does not have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OutOfStorage {
    pub(super) value: f32,
}

/// Rounds to half precision, ties to even.
pub(super) fn to_half(value: f32) -> Result<u16, OutOfStorage> {
    let (bits, sign) = (value.to_bits() & 0x7fff_ffff, (value.to_bits() >> 16 & 0x8000) as u16);
    let magnitude = match bits {
        0x7f80_0001.. => 0x7e00,
        0x7f80_0000 => 0x7c00,
        // From the middle between the largest number and the next one on.
        0x477f_f000.. => return Err(OutOfStorage { value }),
        0x3880_0000.. => (bits - 0x3800_0000 + 0x0fff + (bits >> 13 & 1)) >> 13,
        // Multiples of 2^-24.
        _ => (f32::from_bits(bits) * 16_777_216.0).round_ties_even() as u32,
    };
    Ok(sign | magnitude as u16)
}

/// Rounds to bfloat16, ties to even.
pub(super) fn to_brain_half(value: f32) -> Result<u16, OutOfStorage> {
    let bits = value.to_bits();
    if value.is_nan() {
        return Ok((bits >> 16) as u16 | 0x40);
    }
    let rounded = bits + 0x7fff + (bits >> 16 & 1);
    match value.is_finite() && rounded & 0x7f80_0000 == 0x7f80_0000 {
        true => Err(OutOfStorage { value }),
        false => Ok((rounded >> 16) as u16),
    }
}

/// Rounds numbers to blocks of 32 bytes behind a scale in half precision, zeros behind the last:
/// scale = max |x| / 127, and the integers nearest to x/scale.
fn to_bytes(values: &[f32], stored: &mut Vec<u8>) -> Result<(), OutOfStorage> {
    for block in values.chunks(BLOCK) {
        let most = block.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        if let Some(&value) = block.iter().find(|value| !value.is_finite()) {
            return Err(OutOfStorage { value });
        }
        let scale = to_half(most / 127.0).map_err(|_| OutOfStorage { value: most })?;
        stored.extend(scale.to_le_bytes());
        let scale = crate::simd::half(scale);
        let byte = |value: &f32| match scale {
            0.0 => 0,
            _ => (value / scale).round_ties_even().clamp(-127.0, 127.0) as i8,
        };
        stored.extend(block.iter().map(|value| byte(value) as u8));
        stored.resize(stored.len() + BLOCK - block.len(), 0);
    }
    Ok(())
}

/// Stores rows of `columns` numbers in fewer bytes; rows of bytes are filled up with zeros to whole
/// blocks. None if there is nothing to store, or `storage` is single precision.
pub(super) fn store(
    storage: WeightStorage,
    rows: impl ExactSizeIterator<Item = Vec<f32>>,
    columns: usize,
) -> Result<Option<Matrix>, OutOfStorage> {
    let (n_rows, mut stored) = (rows.len(), Vec::new());
    let (format, columns) = match storage {
        WeightStorage::F32 => return Ok(None),
        WeightStorage::F16 => (Format::F16, columns),
        WeightStorage::Bf16 => (Format::Bf16, columns),
        WeightStorage::Int8 => (Format::Q8_0, columns.next_multiple_of(BLOCK)),
    };
    stored.reserve_exact(n_rows * format.row_bytes(columns).unwrap_or(0));
    for row in rows {
        match storage {
            WeightStorage::Int8 => to_bytes(&row, &mut stored)?,
            WeightStorage::Bf16 => each(&row, &mut stored, to_brain_half)?,
            _ => each(&row, &mut stored, to_half)?,
        }
    }
    Ok(Matrix::from_bytes(&stored, format, n_rows, columns))
}

fn each(
    values: &[f32],
    stored: &mut Vec<u8>,
    round: impl Fn(f32) -> Result<u16, OutOfStorage>,
) -> Result<(), OutOfStorage> {
    for &value in values {
        stored.extend(round(value)?.to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{brain_half, half};

    #[test]
    fn numbers_of_two_bytes_are_stored_as_they_are() {
        for bits in 0..=u16::MAX {
            if half(bits).is_nan() {
                assert!(half(to_half(half(bits)).expect("NaN")).is_nan());
            } else {
                assert_eq!(to_half(half(bits)), Ok(bits), "{bits:04x}");
            }
            if brain_half(bits).is_nan() {
                assert!(brain_half(to_brain_half(brain_half(bits)).expect("NaN")).is_nan());
            } else {
                assert_eq!(to_brain_half(brain_half(bits)), Ok(bits), "{bits:04x}");
            }
        }
    }

    /// Between two neighbours, the nearest is taken, and of two the one with an even last bit.
    #[test]
    fn numbers_between_are_rounded_to_the_nearest_ties_to_even() {
        type Round = fn(f32) -> Result<u16, OutOfStorage>;
        type Widen = fn(u16) -> f32;
        let forms: [(Round, Widen, u16); 2] = [(to_half, half, 0x7bff), (to_brain_half, brain_half, 0x7f7f)];
        for (round, widen, last) in forms {
            for bits in (0..last).step_by(7) {
                let (below, above) = (f64::from(widen(bits)), f64::from(widen(bits + 1)));
                let middle = (below + above) / 2.0;
                let even = if bits % 2 == 0 { bits } else { bits + 1 };
                // Below the smallest numbers of single precision there is nothing between.
                if f64::from(middle as f32) == middle {
                    assert_eq!(round(middle as f32), Ok(even), "{middle}");
                    assert_eq!(round((middle as f32).next_down()), Ok(bits), "below {middle}");
                    assert_eq!(round((middle as f32).next_up()), Ok(bits + 1), "above {middle}");
                    assert_eq!(round(-(middle as f32)), Ok(even | 0x8000), "-{middle}");
                }
            }
        }
    }

    #[test]
    fn finite_numbers_that_would_become_infinite_are_refused() {
        assert_eq!(to_half(65_519.996), Ok(0x7bff));
        assert_eq!(to_half(-65_520.0), Err(OutOfStorage { value: -65_520.0 }));
        assert_eq!(to_half(f32::INFINITY), Ok(0x7c00));
        assert_eq!(to_brain_half(f32::MAX), Err(OutOfStorage { value: f32::MAX }));
        assert_eq!(to_brain_half(f32::NEG_INFINITY), Ok(0xff80));
        assert!(to_bytes(&[1e7], &mut Vec::new()).is_err());
        assert!(to_bytes(&[f32::NAN], &mut Vec::new()).is_err());
    }

    #[test]
    fn bytes_are_within_half_a_step_of_their_scale() {
        let row: Vec<f32> = (0..45).map(|index| ((index * 37 % 91) as f32 - 45.0) * 0.013).collect();
        let stored = store(WeightStorage::Int8, [row.clone()].into_iter(), row.len()).expect("in range");
        let stored = stored.expect("a matrix");
        let mut widened = vec![0.0; 64];
        stored.row(0, &mut widened);
        for (block, widened) in row.chunks(BLOCK).zip(widened.chunks(BLOCK)) {
            let step = block.iter().fold(0.0_f32, |most, value| most.max(value.abs())) / 127.0;
            // The scale is rounded to 11 bits.
            block.iter().zip(widened).for_each(|(a, b)| assert!((a - b).abs() <= 0.57 * step, "{a} and {b}"));
        }
        assert_eq!(widened[45..], [0.0; 19]);
    }
}
