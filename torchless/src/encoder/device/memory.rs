//! Numbers on a device: single precision, integers of 32 bits, and what is computed in double
//! precision on the CPU as pairs of single precision, the nearest number and what is left, side by
//! side.

use std::sync::Arc;

use ns_device::{Buffer, Device, KernelArgument};

use crate::encoder::run::InputValues;
use crate::encoder::tensor::{Class, Data, DataRef, View};
use crate::error::{Error, InputProblem, NodeProblem};

/// Numbers of one kind on a device.
#[derive(Debug)]
pub(super) enum Memory {
    Reals(Buffer<f32>),
    Ints(Buffer<i32>),
    Words(Buffer<u32>),
}

impl Memory {
    /// Returns room for `length` elements of a class.
    pub(super) fn room(device: &Device, class: Class, length: usize) -> Result<Memory, Error> {
        Ok(match class {
            Class::F32 => Memory::Reals(device.uninitialised(length)?),
            Class::F64 => Memory::Reals(device.uninitialised(2 * length)?),
            Class::Int => Memory::Ints(device.uninitialised(length)?),
        })
    }

    /// Uploads a constant; an integer that has more than 32 bits is a problem of its node.
    pub(super) fn of(device: &Device, data: DataRef<'_>) -> Result<Result<Memory, NodeProblem>, Error> {
        Ok(Ok(match data {
            DataRef::F32(values) => Memory::Reals(device.upload(values)?),
            DataRef::F64(values) => Memory::Reals(device.upload(&pairs(values.iter().copied()))?),
            DataRef::Int(values) => match ints(values.iter().copied()) {
                Ok(values) => Memory::Ints(device.upload(&values)?),
                Err((_, value)) => return Ok(Err(NodeProblem::DeviceInteger { value })),
            },
        }))
    }

    /// Uploads the numbers of an input over the first elements.
    pub(super) fn write(&mut self, name: &str, values: InputValues<'_>) -> Result<(), Error> {
        require_range(name, values)?;
        match (self, values) {
            (Memory::Reals(to), InputValues::F32(values)) => {
                to.upload(&values.iter().flat_map(|&value| [value, 0.0]).collect::<Vec<f32>>())?;
            }
            (Memory::Reals(to), InputValues::F64(values)) => {
                to.upload(&pairs(values.iter().copied()))?;
            }
            (Memory::Ints(to), InputValues::I64(values)) => {
                to.upload(&values.iter().map(|&value| value as i32).collect::<Vec<i32>>())?;
            }
            (Memory::Ints(to), InputValues::Bool(values)) => {
                to.upload(&values.iter().map(|&value| i32::from(value)).collect::<Vec<i32>>())?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Copies the elements that a view needs to the host, after the work that was asked for.
    pub(super) fn read(&self, class: Class, view: &View) -> Result<Data, Error> {
        let length = reach(view);
        Ok(match (self, class) {
            (Memory::Reals(from), Class::F64) => {
                let mut pairs = vec![0.0; 2 * length];
                from.download_into(&mut pairs)?;
                let number = |[high, low]: &[f32; 2]| f64::from(*high) + f64::from(*low);
                Data::F64(pairs.as_chunks::<2>().0.iter().map(number).collect())
            }
            (Memory::Reals(from), _) => {
                let mut values = vec![0.0; length];
                from.download_into(&mut values)?;
                Data::F32(values)
            }
            (Memory::Ints(from), _) => {
                let mut values = vec![0; length];
                from.download_into(&mut values)?;
                Data::Int(values.into_iter().map(i64::from).collect())
            }
            (Memory::Words(_), _) => Data::zeros(class, length),
        })
    }

    pub(super) fn read_argument(&self) -> KernelArgument<'_> {
        match self {
            Memory::Reals(buffer) => KernelArgument::read(buffer),
            Memory::Ints(buffer) => KernelArgument::read(buffer),
            Memory::Words(buffer) => KernelArgument::read(buffer),
        }
    }

    pub(super) fn write_argument(&mut self) -> KernelArgument<'_> {
        match self {
            Memory::Reals(buffer) => KernelArgument::write(buffer),
            Memory::Ints(buffer) => KernelArgument::write(buffer),
            Memory::Words(buffer) => KernelArgument::write(buffer),
        }
    }
}

/// Refuses a number of an input that a device does not have: an integer of more than 32 bits, or
/// one beyond the range of single precision.
pub(in crate::encoder) fn require_range(name: &str, values: InputValues<'_>) -> Result<(), Error> {
    let refuse = |place: usize, value: f64, expected| {
        let problem = InputProblem::Value { place, value, expected };
        Err(Error::EncoderInput { name: name.to_owned(), problem })
    };
    let is_too_large = |value: &f64| value.is_finite() && !(*value as f32).is_finite();
    match values {
        InputValues::F64(values) => match values.iter().enumerate().find(|(_, value)| is_too_large(value)) {
            Some((place, value)) => refuse(place, *value, "numbers of single precision on a device"),
            None => Ok(()),
        },
        InputValues::I64(values) => {
            match values.iter().enumerate().find(|(_, value)| i32::try_from(**value).is_err()) {
                Some((place, value)) => refuse(place, *value as f64, "integers of 32 bits on a device"),
                None => Ok(()),
            }
        }
        InputValues::F32(_) | InputValues::Bool(_) => Ok(()),
    }
}

/// Memory that plans share.
pub(super) type Shared = Arc<Memory>;

/// Splits numbers into the nearest one of single precision and the nearest to what is left, which
/// is 0 behind an infinite one.
fn pairs(values: impl Iterator<Item = f64>) -> Vec<f32> {
    let pair = |value: f64| {
        let high = value as f32;
        [high, if high.is_finite() { (value - f64::from(high)) as f32 } else { 0.0 }]
    };
    values.flat_map(pair).collect()
}

/// Returns integers of 32 bits, or the first that has more, with its place.
fn ints(values: impl Iterator<Item = i64>) -> Result<Vec<i32>, (usize, i64)> {
    values.enumerate().map(|(place, value)| i32::try_from(value).map_err(|_| (place, value))).collect()
}

/// Returns one more than the last place of a view.
pub(super) fn reach(view: &View) -> usize {
    if view.shape.contains(&0) {
        return 0;
    }
    let along = |(&size, &stride): (&usize, &isize)| (size as isize - 1) * stride.max(0);
    let last: isize = view.shape.iter().zip(&view.strides).map(along).sum();
    (view.offset as isize + last + 1) as usize
}
