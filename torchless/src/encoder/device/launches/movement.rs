//! Launches that move elements and do not change them: copies, gathers, scatters.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    Class, Done, EncoderKernel, Input, LANES, Launch, Launches, Operand, Output, Views, blocks_of, both, distance,
    no_kernel, part, with_axis, word,
};
use crate::encoder::device::layout::{GatherLayout, IndicesLayout, ScatterLayout};
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
        match &step.args[1].0 {
            Source::Constant(tensor) => check_constant_indices(&tensor.data, &indices.view, size)?,
            Source::Slot(_) => self.check_indices(indices, size, step.node)?,
        }
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

    /// Has indices that events decide on checked on the device.
    fn check_indices(&mut self, indices: &Operand, size: usize, node: usize) -> Done {
        let Views { n_axes, view } = self.add_views(&[&indices.view])?;
        let (n, first) = (word(indices.view.len())?, word(indices.view.offset)?);
        let size = i32::try_from(size).map_err(|_| Error::TooLargeForDevice)? as u32;
        let fault = word(self.faults.len())?;
        self.faults.push(node);
        self.launches.push(Launch {
            kernel: EncoderKernel::CheckIndices,
            blocks: 1,
            shared_reals: LANES / ns_device::WARP,
            words: IndicesLayout { n, n_axes, view, indices: first, size, fault }.words().to_vec(),
            inputs: vec![Input::Views, indices.input],
            output: Output::Faults,
        });
        Ok(())
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
