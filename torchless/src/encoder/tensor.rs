//! Numbers with a shape, and strided views of them.
//!
//! A view says which elements of some memory a tensor is made of. Transposing, slicing, splitting
//! and broadcasting change the view and move no number.

/// What the elements of a tensor mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Float,
    Int,
    Bool,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Float => "numbers",
            Kind::Int => "integers",
            Kind::Bool => "truth values",
        }
    }
}

/// How elements are stored. Truth values are the integers 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    F32,
    F64,
    Int,
}

impl Class {
    /// Returns the bytes of an element.
    pub(super) fn n_bytes(self) -> usize {
        if self == Class::F32 { 4 } else { 8 }
    }
}

/// Memory of one class.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data {
    F32(Vec<f32>),
    F64(Vec<f64>),
    Int(Vec<i64>),
}

/// Borrowed memory of one class.
#[derive(Debug, Clone, Copy)]
pub(super) enum DataRef<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    Int(&'a [i64]),
}

impl Data {
    pub(super) fn zeros(class: Class, length: usize) -> Data {
        match class {
            Class::F32 => Data::F32(vec![0.0; length]),
            Class::F64 => Data::F64(vec![0.0; length]),
            Class::Int => Data::Int(vec![0; length]),
        }
    }

    pub(super) fn class(&self) -> Class {
        match self {
            Data::F32(_) => Class::F32,
            Data::F64(_) => Class::F64,
            Data::Int(_) => Class::Int,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Data::F32(values) => values.len(),
            Data::F64(values) => values.len(),
            Data::Int(values) => values.len(),
        }
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.len() * self.class().n_bytes()
    }

    pub(super) fn borrow(&self) -> DataRef<'_> {
        match self {
            Data::F32(values) => DataRef::F32(values),
            Data::F64(values) => DataRef::F64(values),
            Data::Int(values) => DataRef::Int(values),
        }
    }
}

/// Which elements of some memory a tensor is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    pub(super) shape: Vec<usize>,
    /// Elements between neighbours of each axis; 0 where one element is repeated.
    pub(super) strides: Vec<isize>,
    pub(super) offset: usize,
}

impl View {
    /// Returns a view of memory in which the last axis runs fastest.
    pub(super) fn contiguous(shape: &[usize]) -> View {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis].max(1) as isize;
        }
        View { shape: shape.to_vec(), strides, offset: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    pub(super) fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.shape.contains(&0)
            || self.shape.iter().zip(&self.strides).rev().all(|(&size, &stride)| {
                let fits = size == 1 || stride == expected;
                expected *= size as isize;
                fits
            })
    }

    /// Returns the view with its axes in another order.
    pub(super) fn transposed(&self, order: &[usize]) -> View {
        View {
            shape: order.iter().map(|&axis| self.shape[axis]).collect(),
            strides: order.iter().map(|&axis| self.strides[axis]).collect(),
            offset: self.offset,
        }
    }

    /// Returns the view with elements repeated up to `shape`, if it can be.
    pub(super) fn broadcast(&self, shape: &[usize]) -> Option<View> {
        let missing = shape.len().checked_sub(self.shape.len())?;
        let mut strides = vec![0; shape.len()];
        for (axis, (&size, &stride)) in self.shape.iter().zip(&self.strides).enumerate() {
            match size {
                _ if size == shape[missing + axis] => strides[missing + axis] = stride,
                1 => {}
                _ => return None,
            }
        }
        Some(View { shape: shape.to_vec(), strides, offset: self.offset })
    }

    /// Returns the same elements in another shape, if a view can express it.
    pub(super) fn reshaped(&self, shape: &[usize]) -> Option<View> {
        if self.is_contiguous() {
            return Some(View { offset: self.offset, ..View::contiguous(shape) });
        }
        let mut strides = vec![0; shape.len()];
        let (old, mut next) = (self.merged(), shape.len());
        for (mut size, stride) in old.into_iter().rev() {
            let mut step = stride;
            while size > 1 {
                next = next.checked_sub(1)?;
                let here = shape[next];
                if here == 0 || size % here != 0 {
                    return None;
                }
                strides[next] = step;
                step *= here as isize;
                size /= here;
            }
        }
        shape[..next].iter().all(|&size| size == 1).then(|| View {
            shape: shape.to_vec(),
            strides,
            offset: self.offset,
        })
    }

    /// Returns sizes and strides with neighbours merged where they are evenly spaced.
    fn merged(&self) -> Vec<(usize, isize)> {
        let mut merged: Vec<(usize, isize)> = Vec::new();
        for (&size, &stride) in self.shape.iter().zip(&self.strides).filter(|(size, _)| **size != 1) {
            match merged.last_mut() {
                Some((before, spacing)) if *spacing == stride * size as isize => {
                    (*before, *spacing) = (*before * size, stride);
                }
                _ => merged.push((size, stride)),
            }
        }
        merged
    }

    /// Returns the elements' places in the order of the view.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        let mut index = vec![0_usize; self.shape.len()];
        let mut place = self.offset as isize;
        let (shape, strides) = (self.shape.clone(), self.strides.clone());
        (0..self.len()).map(move |_| {
            let here = place as usize;
            for axis in (0..shape.len()).rev() {
                index[axis] += 1;
                place += strides[axis];
                if index[axis] < shape[axis] {
                    break;
                }
                place -= strides[axis] * shape[axis] as isize;
                index[axis] = 0;
            }
            here
        })
    }
}

/// A tensor whose last axis runs fastest.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tensor {
    pub(super) kind: Kind,
    pub(super) shape: Vec<usize>,
    pub(super) data: Data,
}

impl Tensor {
    pub(super) fn ints(shape: &[usize], values: Vec<i64>) -> Tensor {
        Tensor { kind: Kind::Int, shape: shape.to_vec(), data: Data::Int(values) }
    }

    pub(super) fn view(&self) -> View {
        View::contiguous(&self.shape)
    }

    pub(super) fn to_f64(&self) -> Vec<f64> {
        match &self.data {
            Data::F32(values) => values.iter().map(|value| f64::from(*value)).collect(),
            Data::F64(values) => values.clone(),
            Data::Int(values) => values.iter().map(|value| *value as f64).collect(),
        }
    }

    /// Returns the single number of a tensor that has one.
    pub(super) fn scalar(&self) -> Option<f64> {
        match &self.data {
            Data::F32(values) if values.len() == 1 => Some(f64::from(values[0])),
            Data::F64(values) if values.len() == 1 => Some(values[0]),
            Data::Int(values) if values.len() == 1 => Some(values[0] as f64),
            _ => None,
        }
    }
}

/// Returns the shape that shapes broadcast to, if they do.
pub(super) fn broadcast_shape(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let n_axes = a.len().max(b.len());
    let size = |shape: &[usize], axis: usize| match (axis + shape.len()).checked_sub(n_axes) {
        Some(axis) => shape[axis],
        None => 1,
    };
    let sizes = (0..n_axes).map(|axis| match (size(a, axis), size(b, axis)) {
        (a, b) if a == b => Some(a),
        (1, b) => Some(b),
        (a, 1) => Some(a),
        _ => None,
    });
    sizes.collect()
}
