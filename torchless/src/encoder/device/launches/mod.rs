//! The launches of a plan: every step becomes one or a few, with all places decided.
//!
//! A step without a kernel is refused by its node; nothing is computed on the CPU instead.

mod elementwise;
mod ints;
mod movement;
mod products;
mod rows;

use std::sync::Arc;

use super::EncoderDevice;
use super::kernels::EncoderKernel;
use super::layout::{ElementsLayout, FillLayout};
use super::memory::{Memory, Shared, reach};
use crate::encoder::kernels::Kernel;
use crate::encoder::plan::{Plan, Source, Step};
use crate::encoder::tensor::{Class, View};
use crate::error::{Error, NodeProblem};

/// Lanes of every block.
pub(super) const LANES: u32 = 128;
/// Blocks of a kernel that treats elements one by one, at most.
const MOST_BLOCKS: u32 = 4096;

/// One launch of a kernel.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) kernel: EncoderKernel,
    pub(super) blocks: u32,
    pub(super) shared_reals: u32,
    /// Its constants.
    pub(super) words: Vec<u32>,
    pub(super) inputs: Vec<Input>,
    pub(super) output: Output,
}

/// Where a launch reads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Input {
    Views,
    Buffer(usize),
    Constant(usize),
}

/// Where it writes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Output {
    Buffer(usize),
    Faults,
}

/// A plan for a device.
#[derive(Debug)]
pub(in crate::encoder) struct DevicePlan {
    pub(super) launches: Vec<Launch>,
    pub(super) views: Memory,
    pub(super) constants: Vec<Shared>,
    /// What each check finds.
    pub(super) faults: Vec<StepFault>,
}

/// What is wrong with a step if its check says so.
#[derive(Debug, Clone, Copy)]
pub(super) enum StepFault {
    /// An index that is out of range.
    Index { node: usize },
    /// An integer of more than 32 bits.
    Integer { node: usize },
}

/// An input of a step.
#[derive(Debug, Clone)]
struct Operand {
    input: Input,
    view: View,
    class: Class,
}

/// Views of one shape, as kernels find them.
struct Views {
    n_axes: u32,
    view: u32,
}

/// Why a step has no launches.
enum Refusal {
    /// Of its node.
    Node(NodeProblem),
    Device(Error),
}

impl From<NodeProblem> for Refusal {
    fn from(problem: NodeProblem) -> Refusal {
        Refusal::Node(problem)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Device(error)
    }
}

type Done = Result<(), Refusal>;

/// Returns the refusal of a step whose numbers are of a class.
fn no_kernel(class: Class) -> Refusal {
    let elements = match class {
        Class::F32 => "numbers",
        Class::F64 => "numbers before the first product",
        Class::Int => "integers",
    };
    NodeProblem::NoKernel { elements }.into()
}

/// Converts a count to 32 bits.
fn word(count: usize) -> Result<u32, Refusal> {
    u32::try_from(count).map_err(|_| Error::TooLargeForDevice.into())
}

/// Returns a distance modulo 2³².
fn distance(stride: isize) -> u32 {
    stride as i64 as u32
}

/// The launches of a plan in the making.
pub(super) struct Launches<'a> {
    device: &'a EncoderDevice,
    plan: &'a Plan,
    launches: Vec<Launch>,
    views: Vec<u32>,
    constants: Vec<Shared>,
    faults: Vec<StepFault>,
}

impl DevicePlan {
    /// Finds the launches of every step.
    pub(super) fn of(device: &EncoderDevice, plan: &Plan) -> Result<DevicePlan, Error> {
        let mut making = Launches { device, plan, launches: vec![], views: vec![], constants: vec![], faults: vec![] };
        for step in &plan.steps {
            making.step(step).map_err(|refusal| match refusal {
                Refusal::Node(problem) => {
                    let (name, operator) = &plan.nodes[step.node];
                    Error::node(name, operator, problem)
                }
                Refusal::Device(error) => error,
            })?;
        }
        // A buffer of a launch is never empty.
        making.views.push(0);
        let views = Memory::Words(device.device.upload(&making.views)?);
        let Launches { launches, constants, faults, .. } = making;
        Ok(DevicePlan { launches, views, constants, faults })
    }
}

impl Launches<'_> {
    fn step(&mut self, step: &Step) -> Done {
        let operands = (0..step.args.len()).map(|index| self.operand(step, index)).collect::<Result<Vec<_>, _>>()?;
        if step.out_view.len() == 0 {
            return Ok(());
        }
        let out = self.result(step);
        match &step.kernel {
            Kernel::Binary(binary) => self.binary(*binary, step, &operands, &out),
            Kernel::Unary(unary) => self.unary(*unary, step, &operands, &out),
            Kernel::Convert { to } => self.convert(*to, &operands[0], &out),
            Kernel::Where => self.choose(&operands, &out),
            Kernel::Clip { has_lower, has_upper } => self.clip([*has_lower, *has_upper], &operands, &out),
            Kernel::Place { parts, fill } => self.place(parts, *fill, &operands, &out),
            Kernel::Gather { axis } => self.gather(*axis, step, &operands, &out),
            Kernel::GatherElements { axis } => self.gather_elements(*axis, step, &operands, &out),
            Kernel::GatherNd { shape, inner } => self.gather_points((shape, *inner), step, &operands, &out),
            Kernel::Trilu { is_upper, diagonal } => self.triangle((*is_upper, *diagonal), &operands[0], &out),
            Kernel::CumSum { length, inner, running } => {
                self.running_sum((*length, *inner, *running), step, &operands[0], &out)
            }
            Kernel::Scatter { points, inner } => self.scatter(points, *inner, &operands, &out),
            Kernel::Reduce { reduction, n_kept } => self.reduce(*reduction, *n_kept, &operands[0], &out),
            Kernel::Softmax { is_logarithm, .. } => self.softmax(*is_logarithm, &operands, &out),
            Kernel::LayerNorm { epsilon, is_rms, length } => self.norm((*epsilon, *is_rms, *length), &operands, &out),
            Kernel::Linear { activation, .. } => self.linear(step, *activation, &operands, &out),
            Kernel::Pointwise { activation } => self.pointwise(*activation, &operands, &out),
            Kernel::MatMul => self.matmul(&operands, &out),
            Kernel::ScatterNd { .. } | Kernel::TableRows { .. } => Err(no_kernel(out.class)),
        }
    }

    /// Returns an input of a step, whose places are all there.
    fn operand(&mut self, step: &Step, index: usize) -> Result<Operand, Refusal> {
        let (source, view) = &step.args[index];
        let (input, class, length) = match source {
            Source::Slot(slot) => {
                let buffer = self.plan.buffer_of[*slot];
                let (class, length) = self.plan.buffers[buffer];
                (Input::Buffer(buffer), class, length)
            }
            Source::Constant(tensor) => {
                let memory = self.device.constant(tensor)??;
                (self.constant(memory), tensor.data.class(), tensor.data.len())
            }
        };
        word(2 * length)?;
        if reach(view) > length {
            return Err(NodeProblem::Index.into());
        }
        Ok(Operand { input, view: view.clone(), class })
    }

    fn result(&self, step: &Step) -> Operand {
        let buffer = self.plan.buffer_of[step.out];
        Operand { input: Input::Buffer(buffer), view: step.out_view.clone(), class: self.plan.buffers[buffer].0 }
    }

    fn constant(&mut self, memory: Shared) -> Input {
        let place = self.constants.iter().position(|other| Arc::ptr_eq(other, &memory));
        Input::Constant(place.unwrap_or_else(|| {
            self.constants.push(memory);
            self.constants.len() - 1
        }))
    }

    /// Adds views of one shape, with axes merged that are evenly spaced in all of them.
    fn add_views(&mut self, views: &[&View]) -> Result<Views, Refusal> {
        let mut axes: Vec<(usize, Vec<isize>)> = Vec::new();
        let shape = views.first().map_or(&[][..], |view| &view.shape);
        for (axis, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
            let strides: Vec<isize> = views.iter().map(|view| view.strides[axis]).collect();
            match axes.last_mut() {
                Some((before, outer)) if outer.iter().zip(&strides).all(|(o, s)| *o == s * size as isize) => {
                    (*before, *outer) = (*before * size, strides);
                }
                _ => axes.push((size, strides)),
            }
        }
        let found = Views { n_axes: word(axes.len())?, view: word(self.views.len())? };
        for (size, _) in &axes {
            self.views.push(word(*size)?);
        }
        for tensor in 0..views.len() {
            self.views.extend(axes.iter().map(|(_, strides)| distance(strides[tensor])));
        }
        Ok(found)
    }

    /// Has one block look for something wrong in what it reads; `words` are given where the answer
    /// goes.
    fn check(
        &mut self,
        kernel: EncoderKernel,
        fault: StepFault,
        inputs: &[Input],
        words: impl FnOnce(u32) -> Vec<u32>,
    ) -> Done {
        let place = word(self.faults.len())?;
        self.faults.push(fault);
        self.launches.push(Launch {
            kernel,
            blocks: 1,
            shared_reals: LANES / ns_device::WARP,
            words: words(place),
            inputs: inputs.to_vec(),
            output: Output::Faults,
        });
        Ok(())
    }

    fn launch(&mut self, kernel: EncoderKernel, blocks: u32, words: &[u32], inputs: &[Input], out: &Operand) {
        let Input::Buffer(buffer) = out.input else { return };
        let (words, inputs) = (words.to_vec(), inputs.to_vec());
        let output = Output::Buffer(buffer);
        self.launches.push(Launch { kernel, blocks, shared_reals: 0, words, inputs, output });
    }

    /// Copies elements to those of `to`, a view of the result.
    fn copy(&mut self, from: &Operand, out: &Operand, to: &View) -> Done {
        let kernel = if out.class == Class::Int { EncoderKernel::PlaceInts } else { EncoderKernel::PlaceReals };
        let Views { n_axes, view } = self.add_views(&[&from.view, to])?;
        let (n, a, at) = (word(to.len())?, word(from.view.offset)?, word(to.offset)?);
        if n > 0 {
            let words = ElementsLayout { n, n_axes, view, operation: 0, a, b: 0, c: 0, out: at }.words();
            self.launch(kernel, blocks_of(n), &words, &[Input::Views, from.input], out);
        }
        Ok(())
    }

    fn fill(&mut self, number: f64, n: usize, out: &Operand) -> Done {
        let kernel = if out.class == Class::Int { EncoderKernel::FillInts } else { EncoderKernel::FillReals };
        let integer = i32::try_from(number as i64);
        let integer = integer.map_err(|_| NodeProblem::DeviceInteger { value: number as i64 });
        let integer = if out.class == Class::Int { integer? } else { 0 };
        let n = word(n)?;
        let words = FillLayout { n, number: number as f32, integer: integer as u32 }.words();
        self.launch(kernel, blocks_of(n), &words, &[], out);
        Ok(())
    }
}

/// Returns the number of blocks for `n` elements.
fn blocks_of(n: u32) -> u32 {
    n.div_ceil(LANES).min(MOST_BLOCKS)
}

/// Returns the axes of a view in a range; those that do not start with the first begin at 0.
fn part(view: &View, range: std::ops::Range<usize>) -> View {
    View { shape: view.shape[range.clone()].to_vec(), strides: view.strides[range].to_vec(), offset: 0 }
}

/// Returns a view with distances `factor` times as large, and another axis of both numbers of a
/// pair, which are `right` apart.
fn with_axis(view: &View, factor: isize, right: isize) -> View {
    let mut view = scaled(view, factor);
    view.shape.push(2);
    view.strides.push(right);
    view
}

fn scaled(view: &View, factor: isize) -> View {
    let strides = view.strides.iter().map(|stride| stride * factor).collect();
    View { shape: view.shape.clone(), strides, offset: view.offset * factor as usize }
}

/// Returns the first numbers of pairs.
fn high(operand: &Operand) -> Operand {
    Operand { view: scaled(&operand.view, 2), ..operand.clone() }
}

/// Returns both numbers of pairs.
fn both(operand: &Operand) -> Operand {
    Operand { view: with_axis(&operand.view, 2, 1), ..operand.clone() }
}
