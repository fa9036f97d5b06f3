//! Launches that move elements and do not change them: copies, gathers, scatters.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    Class, Done, EncoderKernel, Input, Launches, Operand, Refusal, StepFault, Views, blocks_of, both, distance,
    no_kernel, part, with_axis, word,
};
use crate::encoder::device::layout::{
    GatherLayout, IndicesLayout, PickLayout, PointsLayout, ScatterLayout, TriangleLayout,
};
use crate::encoder::device::memory::Memory;
use crate::encoder::kernels::movement::index;
use crate::encoder::plan::{Source, Step};
use crate::encoder::tensor::{Data, View};
use crate::error::{Error, NodeProblem};

impl Launches<'_> {
    pub(super) fn place(&mut self, parts: &[View], fill: Option<f64>, operands: &[Operand], out: &Operand) -> Done {
        if let Some(number) = fill {
            if out.class == Class::F64 && number != 0.0 {
                return Err(no_kernel(out.class));
            }
            let n_each = if out.class == Class::F64 { 2 } else { 1 };
            self.fill(number, n_each * out.view.len(), out)?;
        }
        for (operand, part) in operands.iter().zip(parts) {
            match out.class {
                Class::F64 => self.copy(&both(operand), out, &with_axis(part, 2, 1))?,
                _ => self.copy(operand, out, part)?,
            }
        }
        Ok(())
    }

    pub(super) fn gather(&mut self, axis: usize, step: &Step, operands: &[Operand], out: &Operand) -> Done {
        let [values, indices] = operands else { return Err(no_kernel(out.class)) };
        let size = values.view.shape[axis];
        self.require_indices(step, indices, size)?;
        let values = if out.class == Class::F64 { both(values) } else { values.clone() };
        let kernel = if out.class == Class::Int { EncoderKernel::GatherInts } else { EncoderKernel::GatherReals };
        let lines = self.add_views(&[&part(&values.view, 0..axis)])?;
        let index = self.add_views(&[&indices.view])?;
        let slice_view = part(&values.view, axis + 1..values.view.shape.len());
        let slice = self.add_views(&[&slice_view])?;
        let n = word(out.view.len() * if out.class == Class::F64 { 2 } else { 1 })?;
        let layout = GatherLayout {
            n,
            slice_len: word(slice_view.len())?,
            n_indices: word(indices.view.len())?,
            size: word(size)?,
            distance: distance(values.view.strides[axis]),
            values: word(values.view.offset)?,
            indices: word(indices.view.offset)?,
            line_axes: lines.n_axes,
            line_view: lines.view,
            index_axes: index.n_axes,
            index_view: index.view,
            slice_axes: slice.n_axes,
            slice_view: slice.view,
        };
        if size > 0 {
            let inputs = [Input::Views, indices.input, values.input];
            self.launch(kernel, blocks_of(n), &layout.words(), &inputs, out);
        }
        Ok(())
    }

    /// Gathers an element for each index, all of it along one axis.
    pub(super) fn gather_elements(&mut self, axis: usize, step: &Step, operands: &[Operand], out: &Operand) -> Done {
        let [values, indices] = operands else { return Err(no_kernel(out.class)) };
        let size = values.view.shape[axis];
        self.require_indices(step, indices, size)?;
        // Where an element would be with the index 0.
        let mut from = View { shape: indices.view.shape.clone(), ..values.view.clone() };
        let right = std::mem::take(&mut from.strides[axis]);
        let (named, from, right) = match out.class {
            Class::F64 => (with_axis(&indices.view, 1, 0), with_axis(&from, 2, 1), 2 * right),
            _ => (indices.view.clone(), from, right),
        };
        let kernel = if out.class == Class::Int { EncoderKernel::PickInts } else { EncoderKernel::PickReals };
        let Views { n_axes, view } = self.add_views(&[&named, &from])?;
        let layout = PickLayout {
            n: word(from.len())?,
            n_axes,
            view,
            indices: word(named.offset)?,
            values: word(from.offset)?,
            size: word(size)?,
            distance: distance(right),
        };
        if size > 0 {
            let inputs = [Input::Views, indices.input, values.input];
            self.launch(kernel, blocks_of(layout.n), &layout.words(), &inputs, out);
        }
        Ok(())
    }

    /// Gathers the blocks of `inner` elements that tuples of indices name in a tensor of `shape`.
    pub(super) fn gather_points(
        &mut self,
        (shape, inner): (&[usize], usize),
        step: &Step,
        operands: &[Operand],
        out: &Operand,
    ) -> Done {
        let [values, indices] = operands else { return Err(no_kernel(out.class)) };
        let last = indices.view.shape.len() - 1;
        let (width, right) = (indices.view.shape[last], indices.view.strides[last]);
        let tuples = View { offset: indices.view.offset, ..part(&indices.view, 0..last) };
        for (axis, &size) in shape[..width].iter().enumerate() {
            let offset = (tuples.offset as isize + axis as isize * right) as usize;
            let along = Operand { view: View { offset, ..tuples.clone() }, ..indices.clone() };
            self.require_indices(step, &along, size)?;
        }
        let n_each = if out.class == Class::F64 { 2 } else { 1 };
        let kernel = if out.class == Class::Int { EncoderKernel::PointsOfInts } else { EncoderKernel::PointsOfReals };
        let Views { n_axes, view } = self.add_views(&[&tuples])?;
        let axes = self.add_axes(&shape[..width], &View::contiguous(shape).strides, n_each)?;
        let layout = PointsLayout {
            n: word(n_each * out.view.len())?,
            inner: word(n_each * inner)?,
            width: word(width)?,
            n_axes,
            view,
            indices: word(tuples.offset)?,
            right: distance(right),
            axes,
            values: word(n_each * values.view.offset)?,
        };
        if !shape[..width].contains(&0) {
            let inputs = [Input::Views, indices.input, values.input];
            self.launch(kernel, blocks_of(layout.n), &layout.words(), &inputs, out);
        }
        Ok(())
    }

    /// Adds sizes of axes, and distances of neighbours along them in numbers, `n_each` for an
    /// element.
    fn add_axes(&mut self, sizes: &[usize], strides: &[isize], n_each: usize) -> Result<u32, Refusal> {
        let first = word(self.views.len())?;
        for &size in sizes {
            self.views.push(word(size)?);
        }
        self.views.extend(strides.iter().take(sizes.len()).map(|stride| distance(stride * n_each as isize)));
        Ok(first)
    }

    /// Clears what is below or above the diagonals of matrices.
    pub(super) fn triangle(&mut self, (is_upper, diagonal): (bool, i64), operand: &Operand, out: &Operand) -> Done {
        let [.., rows, columns] = operand.view.shape[..] else { return Err(no_kernel(out.class)) };
        let (values, n_each) = match out.class {
            Class::F64 => (both(operand), 2),
            _ => (operand.clone(), 1),
        };
        let kernel =
            if out.class == Class::Int { EncoderKernel::TriangleOfInts } else { EncoderKernel::TriangleOfReals };
        let Views { n_axes, view } = self.add_views(&[&values.view])?;
        // Beyond the corners all diagonals are the same.
        let diagonal = diagonal.clamp(-(rows as i64), columns as i64);
        let layout = TriangleLayout {
            n: word(values.view.len())?,
            n_axes,
            view,
            a: word(values.view.offset)?,
            rows: word(rows)?,
            columns: word(columns)?,
            n_each,
            is_upper: u32::from(is_upper),
            diagonal: diagonal as i32 as u32,
        };
        self.launch(kernel, blocks_of(layout.n), &layout.words(), &[Input::Views, values.input], out);
        Ok(())
    }

    /// Refuses constant indices that are out of range, and has others checked on the device.
    fn require_indices(&mut self, step: &Step, indices: &Operand, size: usize) -> Done {
        if let Source::Constant(tensor) = &step.args[1].0 {
            return check_constant_indices(&tensor.data, &indices.view, size);
        }
        let Views { n_axes, view } = self.add_views(&[&indices.view])?;
        let (n, first) = (word(indices.view.len())?, word(indices.view.offset)?);
        let size = i32::try_from(size).map_err(|_| Error::TooLargeForDevice)? as u32;
        let words = |fault| IndicesLayout { n, n_axes, view, indices: first, size, fault }.words().to_vec();
        let fault = StepFault::Index { node: step.node };
        self.check(EncoderKernel::CheckIndices, fault, &[Input::Views, indices.input], words)
    }

    pub(super) fn scatter(&mut self, points: &[usize], inner: usize, operands: &[Operand], out: &Operand) -> Done {
        if out.class != Class::F32 {
            return Err(no_kernel(out.class));
        }
        self.copy(&operands[0], out, &out.view)?;
        let updates = operands.last().unwrap_or(&operands[0]);
        // Of two updates of one point the last counts.
        let mut last: BTreeMap<usize, usize> = BTreeMap::new();
        last.extend(points.iter().enumerate().map(|(index, &point)| (point, index * inner)));
        let n = word(last.len() * inner)?;
        if n == 0 {
            return Ok(());
        }
        let mut words = Vec::with_capacity(2 * last.len());
        for (point, update) in last {
            words.extend([word(point)?, word(update)?]);
        }
        let points = Memory::Words(self.device.device.upload(&words).map_err(Error::from)?);
        let points = self.constant(Arc::new(points));
        let layout = ScatterLayout { n, inner: word(inner)?, updates: word(updates.view.offset)? }.words();
        self.launch(EncoderKernel::ScatterReals, blocks_of(n), &layout, &[points, updates.input], out);
        Ok(())
    }
}

/// Refuses a constant index that is out of range.
fn check_constant_indices(data: &Data, view: &View, size: usize) -> Done {
    let Data::Int(indices) = data else { return Err(no_kernel(data.class())) };
    match view.places().all(|place| index(indices[place], size).is_some()) {
        true => Ok(()),
        false => Err(NodeProblem::Index.into()),
    }
}
