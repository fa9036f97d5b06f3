//! Operators that move elements or ask for shapes: views where a view can express it, constants
//! where only shapes matter.

use std::sync::Arc;

use super::graph::Op;
use super::kernels::Kernel;
use super::kernels::movement::{Running, index, points};
use super::kernels::tables::Table;
use super::lower::{Inputs, axis};
use super::plan::{Builder, Lowered, MOST_ELEMENTS, Refusal, Source, Value};
use super::tensor::{Class, Data, Kind, Tensor, View};
use crate::error::NodeProblem;

fn int_constant(shape: &[usize], values: Vec<i64>) -> Value {
    Value::constant(Arc::new(Tensor::ints(shape, values)))
}

/// Returns sizes that were given as integers.
fn sizes(values: &[i64]) -> Result<Vec<usize>, Refusal> {
    let sizes = values.iter().map(|&size| usize::try_from(size).ok()).collect::<Option<Vec<usize>>>();
    let sizes = sizes.ok_or(NodeProblem::Index)?;
    let length = sizes.iter().try_fold(1_usize, |length, &size| length.checked_mul(size));
    match length {
        Some(length) if length <= MOST_ELEMENTS => Ok(sizes),
        _ => Err(NodeProblem::TooLarge { shape: format!("{values:?}"), limit: MOST_ELEMENTS }.into()),
    }
}

/// Returns axes that may count from the end, in ascending order and each once.
fn axes(values: &[i64], n_axes: usize) -> Result<Vec<usize>, Refusal> {
    let mut axes = values.iter().map(|&value| axis(value, n_axes)).collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    axes.dedup();
    Ok(axes)
}

impl Builder {
    pub(super) fn movement(&mut self, op: &Op, inputs: &Inputs) -> Lowered {
        match op {
            Op::Concat { axis } => self.concat(*axis, inputs),
            Op::ConstantOfShape { value } => constant_of_shape(value, inputs),
            Op::CumSum { is_exclusive, is_reversed } => {
                let running = Running { is_exclusive: *is_exclusive, is_reversed: *is_reversed };
                self.running_sum(running, inputs)
            }
            Op::Expand => {
                let (value, wanted) = (inputs.get(0)?, sizes(&inputs.ints(1)?)?);
                let shape = super::tensor::broadcast_shape(value.shape(), &wanted).ok_or_else(|| inputs.shapes())?;
                let view = value.view.broadcast(&shape).ok_or_else(|| inputs.shapes())?;
                Ok(value.seen(view))
            }
            Op::Flatten { axis } => {
                let value = inputs.get(0)?;
                let shape = value.shape();
                let at = index(*axis, shape.len() + 1).ok_or(NodeProblem::Index)?;
                let at = if *axis < 0 { at - 1 } else { at };
                let matrix = [shape[..at].iter().product(), shape[at..].iter().product()];
                self.reshape(&value.clone(), &matrix)
            }
            Op::Gather { axis } => self.gather(*axis, inputs),
            Op::TableRows { table } => self.table_rows(table, inputs),
            Op::GatherElements { axis } => self.gather_elements(*axis, inputs),
            Op::GatherNd => self.gather_nd(inputs),
            Op::NonZero => non_zero(inputs),
            Op::Pad => self.pad(inputs),
            Op::Range => self.range(inputs),
            Op::Reshape { allows_zero } => self.reshape_to(*allows_zero, inputs),
            Op::ScatterNd => self.scatter_nd(inputs),
            Op::Shape { start, end } => Ok(shape(inputs.get(0)?, *start, *end)),
            Op::Size => Ok(int_constant(&[], vec![inputs.get(0)?.view.len() as i64])),
            Op::Slice => slice(inputs),
            Op::Squeeze => squeeze(inputs),
            Op::Tile => self.tile(inputs),
            Op::Transpose { order } => transpose(order.as_deref(), inputs),
            Op::Trilu { is_upper } => self.triangle(*is_upper, inputs),
            Op::Unsqueeze => unsqueeze(inputs),
            _ => Ok(inputs.get(0)?.clone()),
        }
    }

    fn concat(&mut self, at: i64, inputs: &Inputs) -> Lowered {
        let mut values = Vec::new();
        while let Some(value) = inputs.optional(values.len()) {
            values.push(value.clone());
        }
        let first = inputs.get(0)?;
        let (kind, mut shape) = (first.kind, first.shape().to_vec());
        let at = axis(at, shape.len())?;
        let borrowed: Vec<&Value> = values.iter().collect();
        let class = if kind == Kind::Float { self.common_class(&borrowed) } else { Class::Int };
        shape[at] = 0;
        for value in &mut values {
            let mut other = value.shape().to_vec();
            if other.len() != shape.len() || value.kind != kind {
                return Err(inputs.shapes());
            }
            let size = std::mem::replace(&mut other[at], 0);
            other[at] = shape[at];
            if other != shape {
                return Err(inputs.shapes());
            }
            shape[at] += size;
            *value = self.in_class(value, class)?;
        }
        let whole = View::contiguous(&shape);
        let mut offset = 0;
        let part = |value: &Value| {
            let here = offset * whole.strides[at] as usize;
            offset += value.shape()[at];
            View { shape: value.shape().to_vec(), strides: whole.strides.clone(), offset: here }
        };
        let parts = values.iter().map(part).collect();
        self.push(Kernel::Place { parts, fill: None }, &values, &shape, kind, class)
    }

    pub(super) fn split(&mut self, inputs: &Inputs, at: i64, n_parts: usize) -> Result<Vec<Value>, Refusal> {
        let value = inputs.get(0)?;
        let at = axis(at, value.shape().len())?;
        let size = value.shape()[at];
        let lengths = match inputs.optional_ints(1)? {
            Some(lengths) => sizes(&lengths)?,
            None => {
                let each = size.div_ceil(n_parts.max(1));
                (0..n_parts).map(|part| each.min(size.saturating_sub(part * each))).collect()
            }
        };
        if lengths.len() != n_parts || lengths.iter().sum::<usize>() != size {
            return Err(inputs.shapes());
        }
        let mut first = 0;
        let part = |length: usize| {
            let mut view = value.view.clone();
            view.offset = (view.offset as isize + first as isize * view.strides[at]) as usize;
            view.shape[at] = length;
            first += length;
            value.seen(view)
        };
        Ok(lengths.into_iter().map(part).collect())
    }

    fn gather(&mut self, at: i64, inputs: &Inputs) -> Lowered {
        let (value, indices) = (inputs.get(0)?.clone(), inputs.get(1)?.clone());
        let at = axis(at, value.shape().len())?;
        if indices.kind != Kind::Int {
            return Err(NodeProblem::Input { index: 1 }.into());
        }
        if let (true, Some([only])) = (indices.shape().is_empty(), indices.ints().as_deref()) {
            let chosen = index(*only, value.shape()[at]).ok_or(NodeProblem::Index)?;
            let mut view = value.view.clone();
            view.offset = (view.offset as isize + chosen as isize * view.strides[at]) as usize;
            view.shape.remove(at);
            view.strides.remove(at);
            return Ok(value.seen(view));
        }
        let mut shape = value.shape()[..at].to_vec();
        shape.extend(indices.shape());
        shape.extend(&value.shape()[at + 1..]);
        let (kind, class) = (value.kind, value.class);
        self.push(Kernel::Gather { axis: at }, &[value, indices], &shape, kind, class)
    }

    fn table_rows(&mut self, table: &Arc<Table>, inputs: &Inputs) -> Lowered {
        let indices = inputs.get(0)?.clone();
        if indices.kind != Kind::Int {
            return Err(NodeProblem::Input { index: 1 }.into());
        }
        let mut shape = indices.shape().to_vec();
        shape.push(table.columns);
        self.push(Kernel::TableRows { table: Arc::clone(table) }, &[indices], &shape, Kind::Float, Class::F32)
    }

    fn gather_elements(&mut self, at: i64, inputs: &Inputs) -> Lowered {
        let (value, indices) = (inputs.get(0)?.clone(), inputs.get(1)?.clone());
        let at = axis(at, value.shape().len())?;
        let fits = |(dimension, (&asked, &size)): (usize, (&usize, &usize))| dimension == at || asked <= size;
        let same_rank = indices.shape().len() == value.shape().len();
        if indices.kind != Kind::Int || !same_rank || !indices.shape().iter().zip(value.shape()).enumerate().all(fits) {
            return Err(inputs.shapes());
        }
        let value = self.without_gaps(&value)?;
        let (shape, kind, class) = (indices.shape().to_vec(), value.kind, value.class);
        self.push(Kernel::GatherElements { axis: at }, &[value, indices], &shape, kind, class)
    }

    fn gather_nd(&mut self, inputs: &Inputs) -> Lowered {
        let value = self.without_gaps(inputs.get(0)?)?;
        let indices = inputs.get(1)?.clone();
        let width = indices.shape().last().copied().filter(|&width| width > 0 && width <= value.shape().len());
        let width = width.filter(|_| indices.kind == Kind::Int).ok_or_else(|| inputs.shapes())?;
        let mut shape = indices.shape()[..indices.shape().len() - 1].to_vec();
        shape.extend(&value.shape()[width..]);
        let inner = value.shape()[width..].iter().product();
        let kernel = Kernel::GatherNd { shape: value.shape().to_vec(), inner };
        let (kind, class) = (value.kind, value.class);
        self.push(kernel, &[value, indices], &shape, kind, class)
    }

    fn scatter_nd(&mut self, inputs: &Inputs) -> Lowered {
        let [value, indices, updates] = [inputs.get(0)?.clone(), inputs.get(1)?.clone(), inputs.get(2)?.clone()];
        let shape = value.shape().to_vec();
        let width = indices.shape().last().copied().filter(|&width| width > 0 && width <= shape.len());
        let width = width.filter(|_| indices.kind == Kind::Int).ok_or_else(|| inputs.shapes())?;
        let inner: usize = shape[width..].iter().product();
        let mut expected = indices.shape()[..indices.shape().len() - 1].to_vec();
        expected.extend(&shape[width..]);
        if updates.shape() != expected || updates.kind != value.kind {
            return Err(inputs.shapes());
        }
        let class = if value.kind == Kind::Float { self.common_class(&[&value, &updates]) } else { Class::Int };
        let value = self.in_class(&value, class)?;
        let updates = self.in_class(&updates, class)?;
        let updates = self.without_gaps(&updates)?;
        let kind = value.kind;
        let Some(known) = known(&indices) else {
            return self.push(Kernel::ScatterNd { inner }, &[value, indices, updates], &shape, kind, class);
        };
        // Where the indices are known, so is where the blocks go.
        let points = points(known, &indices.view, &shape).map_err(NodeProblem::from)?.into();
        self.push(Kernel::Scatter { points, inner }, &[value, updates], &shape, kind, class)
    }

    fn running_sum(&mut self, running: Running, inputs: &Inputs) -> Lowered {
        let value = inputs.get(0)?.clone();
        let at = inputs.ints(1)?;
        let at = axis(*at.first().ok_or(NodeProblem::Input { index: 1 })?, value.shape().len())?;
        let shape = value.shape().to_vec();
        let kernel = Kernel::CumSum { length: shape[at], inner: shape[at + 1..].iter().product(), running };
        let (kind, class) = (value.kind, value.class);
        self.push(kernel, &[value], &shape, kind, class)
    }

    fn pad(&mut self, inputs: &Inputs) -> Lowered {
        let value = inputs.get(0)?.clone();
        let n_axes = value.shape().len();
        let named = match inputs.optional_ints(3)? {
            Some(axes) => axes.iter().map(|&at| axis(at, n_axes)).collect::<Result<Vec<_>, _>>()?,
            None => (0..n_axes).collect(),
        };
        let pads = sizes(&inputs.ints(1)?)?;
        if pads.len() != 2 * named.len() {
            return Err(inputs.shapes());
        }
        let mut shape = value.shape().to_vec();
        let mut before = vec![0; n_axes];
        for (index, &at) in named.iter().enumerate() {
            before[at] = pads[index];
            shape[at] = shape[at].saturating_add(pads[index]).saturating_add(pads[named.len() + index]);
        }
        let fill = match inputs.optional(2) {
            Some(fill) => fill.numbers().and_then(|numbers| numbers.first().copied()),
            None => Some(0.0),
        };
        let fill = fill.ok_or(NodeProblem::NotConstant { index: 2 })?;
        sizes(&shape.iter().map(|&size| i64::try_from(size).unwrap_or(i64::MAX)).collect::<Vec<_>>())?;
        let whole = View::contiguous(&shape);
        let offset = before.iter().zip(&whole.strides).map(|(&before, &stride)| before * stride as usize).sum();
        let part = View { shape: value.shape().to_vec(), strides: whole.strides, offset };
        let (kind, class) = (value.kind, value.class);
        self.push(Kernel::Place { parts: vec![part], fill: Some(fill) }, &[value], &shape, kind, class)
    }

    fn range(&mut self, inputs: &Inputs) -> Lowered {
        let mut limits = [0.0; 3];
        for (index, limit) in limits.iter_mut().enumerate() {
            let numbers = inputs.get(index)?.numbers().ok_or(NodeProblem::NotConstant { index })?;
            *limit = *numbers.first().ok_or(NodeProblem::Input { index })?;
        }
        let [start, end, step] = limits;
        let length = ((end - start) / step).ceil().max(0.0);
        if length > MOST_ELEMENTS as f64 {
            return Err(NodeProblem::TooLarge { shape: format!("[{length}]"), limit: MOST_ELEMENTS }.into());
        }
        let (length, kind) = (length as usize, inputs.get(0)?.kind);
        let numbers = (0..length).map(|index| start + index as f64 * step);
        if kind == Kind::Int {
            return Ok(int_constant(&[length], numbers.map(|number| number as i64).collect()));
        }
        let data = Data::F64(numbers.collect());
        let value = Value::constant(Arc::new(Tensor { kind, shape: vec![length], data }));
        self.narrow(&value)
    }

    fn reshape_to(&mut self, allows_zero: bool, inputs: &Inputs) -> Lowered {
        let (value, wanted) = (inputs.get(0)?.clone(), inputs.ints(1)?);
        let mut shape = Vec::with_capacity(wanted.len());
        let mut unknown = None;
        for (at, &size) in wanted.iter().enumerate() {
            match size {
                -1 if unknown.is_none() => {
                    unknown = Some(at);
                    shape.push(1);
                }
                0 if !allows_zero => shape.push(*value.shape().get(at).ok_or_else(|| inputs.shapes())?),
                _ => shape.push(usize::try_from(size).map_err(|_| inputs.shapes())?),
            }
        }
        let known = shape.iter().try_fold(1_usize, |length, &size| length.checked_mul(size));
        let known = known.ok_or_else(|| inputs.shapes())?;
        if let Some(at) = unknown {
            shape[at] = value.view.len().checked_div(known).unwrap_or(0);
        }
        if shape.iter().product::<usize>() != value.view.len() {
            return Err(inputs.shapes());
        }
        self.reshape(&value, &shape)
    }

    fn tile(&mut self, inputs: &Inputs) -> Lowered {
        let (value, repeats) = (inputs.get(0)?.clone(), sizes(&inputs.ints(1)?)?);
        if repeats.len() != value.shape().len() {
            return Err(inputs.shapes());
        }
        let (mut view, mut shape) = (View { shape: vec![], strides: vec![], offset: value.view.offset }, vec![]);
        for (axis, &count) in repeats.iter().enumerate() {
            view.shape.extend([count, value.shape()[axis]]);
            view.strides.extend([0, value.view.strides[axis]]);
            shape.push(count.saturating_mul(value.shape()[axis]));
        }
        self.reshape(&value.seen(view), &shape)
    }

    fn triangle(&mut self, is_upper: bool, inputs: &Inputs) -> Lowered {
        let value = inputs.get(0)?.clone();
        let diagonal = inputs.optional_ints(1)?.and_then(|values| values.first().copied()).unwrap_or(0);
        if value.shape().len() < 2 {
            return Err(inputs.shapes());
        }
        let (shape, kind, class) = (value.shape().to_vec(), value.kind, value.class);
        self.push(Kernel::Trilu { is_upper, diagonal }, &[value], &shape, kind, class)
    }

    pub(super) fn reduce(&mut self, op: &Op, inputs: &Inputs) -> Lowered {
        let Op::Reduce { reduction, axes: given, keeps, empty_is_identity } = op else {
            return Err(NodeProblem::Unsupported.into());
        };
        let value = inputs.get(0)?.clone();
        let given = match given {
            Some(given) => Some(given.clone()),
            None => inputs.optional_ints(1)?,
        };
        let n_axes = value.shape().len();
        let given = given.filter(|axes| !axes.is_empty());
        if given.is_none() && *empty_is_identity {
            return Ok(value);
        }
        let all: Vec<usize> = (0..n_axes).collect();
        let reduced = given.map_or(Ok(all), |given| axes(&given, n_axes))?;
        let (mut order, mut shape, mut final_shape) = (Vec::new(), Vec::new(), Vec::new());
        for at in 0..n_axes {
            match reduced.contains(&at) {
                true if *keeps => final_shape.push(1),
                true => {}
                false => {
                    order.push(at);
                    shape.push(value.shape()[at]);
                    final_shape.push(value.shape()[at]);
                }
            }
        }
        let n_kept = order.len();
        order.extend(&reduced);
        let moved = value.seen(value.view.transposed(&order));
        let kernel = Kernel::Reduce { reduction: *reduction, n_kept };
        let result = self.push(kernel, &[moved], &shape, value.kind, value.class)?;
        self.reshape(&result, &final_shape)
    }
}

/// Returns the memory of constant integers.
fn known(value: &Value) -> Option<&[i64]> {
    match &value.source {
        Source::Constant(tensor) => match &tensor.data {
            Data::Int(values) => Some(values),
            _ => None,
        },
        Source::Slot(_) => None,
    }
}

fn constant_of_shape(value: &Arc<Tensor>, inputs: &Inputs) -> Lowered {
    let shape = sizes(&inputs.ints(0)?)?;
    // One element, seen many times.
    let view = value.view().reshaped(&[]).and_then(|view| view.broadcast(&shape)).ok_or(NodeProblem::Index)?;
    Ok(Value::constant(Arc::clone(value)).seen(view))
}

fn non_zero(inputs: &Inputs) -> Lowered {
    let value = inputs.get(0)?;
    let numbers = value.numbers().ok_or(NodeProblem::NotConstant { index: 0 })?;
    let n_axes = value.shape().len();
    let strides = View::contiguous(value.shape()).strides;
    let found: Vec<usize> =
        numbers.iter().enumerate().filter(|(_, number)| **number != 0.0).map(|(place, _)| place).collect();
    let mut indices = Vec::with_capacity(n_axes * found.len());
    for axis in 0..n_axes {
        let along = |place: &usize| (place / strides[axis].max(1) as usize % value.shape()[axis].max(1)) as i64;
        indices.extend(found.iter().map(along));
    }
    Ok(int_constant(&[n_axes, found.len()], indices))
}

fn shape(value: &Value, start: i64, end: Option<i64>) -> Value {
    let n_axes = value.shape().len() as i64;
    let clamped = |at: i64| (if at < 0 { at.saturating_add(n_axes) } else { at }).clamp(0, n_axes) as usize;
    let (start, end) = (clamped(start), clamped(end.unwrap_or(n_axes)));
    let sizes: Vec<i64> = value.shape()[start..end.max(start)].iter().map(|&size| size as i64).collect();
    int_constant(&[sizes.len()], sizes)
}

fn slice(inputs: &Inputs) -> Lowered {
    let value = inputs.get(0)?;
    let (starts, ends) = (inputs.ints(1)?, inputs.ints(2)?);
    let named = inputs.optional_ints(3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = inputs.optional_ints(4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), named.len(), steps.len()].iter().any(|&length| length != starts.len()) {
        return Err(inputs.shapes());
    }
    let mut view = value.view.clone();
    for (index, &at) in named.iter().enumerate() {
        let (at, step) = (axis(at, view.shape.len())?, steps[index]);
        let size = view.shape[at] as i64;
        let from_start = |place: i64| if place < 0 { place.saturating_add(size) } else { place };
        let (first, last) = match step {
            1.. => (from_start(starts[index]).clamp(0, size), from_start(ends[index]).clamp(0, size)),
            0 => return Err(NodeProblem::Input { index: 4 }.into()),
            _ => (from_start(starts[index]).clamp(-1, size - 1), from_start(ends[index]).clamp(-1, size - 1)),
        };
        let span = if step > 0 { last - first } else { first - last };
        let length = if span <= 0 { 0 } else { (span as u64).div_ceil(step.unsigned_abs()) as usize };
        if length > 0 {
            view.offset = (view.offset as isize + first as isize * view.strides[at]) as usize;
        }
        view.shape[at] = length;
        view.strides[at] = if length > 1 { view.strides[at] * step as isize } else { view.strides[at] };
    }
    Ok(value.seen(view))
}

fn squeeze(inputs: &Inputs) -> Lowered {
    let value = inputs.get(0)?;
    let n_axes = value.shape().len();
    let removed = match inputs.optional_ints(1)? {
        Some(given) => axes(&given, n_axes)?,
        None => (0..n_axes).filter(|&at| value.shape()[at] == 1).collect(),
    };
    if removed.iter().any(|&at| value.shape()[at] != 1) {
        return Err(inputs.shapes());
    }
    let kept: Vec<usize> = (0..n_axes).filter(|at| !removed.contains(at)).collect();
    Ok(value.seen(value.view.transposed(&kept)))
}

fn unsqueeze(inputs: &Inputs) -> Lowered {
    let value = inputs.get(0)?;
    let given = inputs.ints(1)?;
    let added = axes(&given, value.shape().len().saturating_add(given.len()))?;
    if added.len() != given.len() {
        return Err(inputs.shapes());
    }
    let mut view = value.view.clone();
    for at in added {
        view.shape.insert(at, 1);
        view.strides.insert(at, 0);
    }
    Ok(value.seen(view))
}

fn transpose(order: Option<&[i64]>, inputs: &Inputs) -> Lowered {
    let value = inputs.get(0)?;
    let n_axes = value.shape().len();
    let order = match order {
        Some(order) => order.iter().map(|&at| axis(at, n_axes)).collect::<Result<Vec<_>, _>>()?,
        None => (0..n_axes).rev().collect(),
    };
    let is_complete = order.len() == n_axes && (0..n_axes).all(|at| order.contains(&at));
    if !is_complete {
        return Err(inputs.shapes());
    }
    Ok(value.seen(value.view.transposed(&order)))
}
