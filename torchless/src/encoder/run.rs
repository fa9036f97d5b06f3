//! Runs a model: checks inputs, finds or makes the plan for their shapes, and follows its steps.

use std::ops::Range;
use std::sync::Arc;

use super::Encoder;
use super::device::{DevicePlan, EncoderDevice};
use super::gradients::Tape;
use super::graph::{Dimension, Port};
use super::kernels::{self, Arg, KernelScratch};
use super::origin;
use super::plan::{Builder, Plan, Source, Value};
use super::tensor::{Class, Data, Kind};
use crate::error::{Error, InputProblem, NodeProblem};

/// An input of one call: its name in the model, its shape, and its numbers, the last axis running
/// fastest.
#[derive(Debug, Clone, Copy)]
pub struct EncoderInput<'a> {
    /// Its name in the model.
    pub name: &'a str,
    /// Its shape.
    pub shape: &'a [usize],
    /// Its numbers.
    pub values: InputValues<'a>,
}

/// The numbers of an input.
#[derive(Debug, Clone, Copy)]
pub enum InputValues<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision.
    F64(&'a [f64]),
    /// Integers, such as token ids.
    I64(&'a [i64]),
    /// Truth values, such as masks.
    Bool(&'a [bool]),
}

impl InputValues<'_> {
    /// Returns how many there are.
    pub fn len(&self) -> usize {
        match self {
            InputValues::F32(values) => values.len(),
            InputValues::F64(values) => values.len(),
            InputValues::I64(values) => values.len(),
            InputValues::Bool(values) => values.len(),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether one of them is not 0.
    pub(super) fn is_set(&self, place: usize) -> bool {
        match self {
            InputValues::F32(values) => values[place] != 0.0,
            InputValues::F64(values) => values[place] != 0.0,
            InputValues::I64(values) => values[place] != 0,
            InputValues::Bool(values) => values[place],
        }
    }

    /// Returns some of them.
    pub(super) fn part(self, places: Range<usize>) -> Self {
        match self {
            InputValues::F32(values) => InputValues::F32(&values[places]),
            InputValues::F64(values) => InputValues::F64(&values[places]),
            InputValues::I64(values) => InputValues::I64(&values[places]),
            InputValues::Bool(values) => InputValues::Bool(&values[places]),
        }
    }

    pub(super) fn fits(&self, kind: Kind) -> bool {
        matches!(
            (self, kind),
            (InputValues::F32(_) | InputValues::F64(_), Kind::Float)
                | (InputValues::I64(_), Kind::Int)
                | (InputValues::Bool(_), Kind::Bool)
        )
    }
}

/// An output of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderOutput {
    /// Its name in the model.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its numbers, the last axis running fastest.
    pub values: OutputValues,
}

/// The numbers of an output.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputValues {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision: of a model that is opened so, or of what is computed before any product.
    F64(Vec<f64>),
    /// Integers and truth values.
    I64(Vec<i64>),
}

impl OutputValues {
    /// Returns the numbers in double precision.
    pub fn to_f64(&self) -> Vec<f64> {
        match self {
            OutputValues::F32(values) => values.iter().map(|&value| f64::from(value)).collect(),
            OutputValues::F64(values) => values.clone(),
            OutputValues::I64(values) => values.iter().map(|&value| value as f64).collect(),
        }
    }
}

/// Memory of one thread: plans for shapes that were seen, and buffers for numbers between steps.
///
/// One scratch may be used with one model after another; plans belong to the model that made them.
#[derive(Debug, Default)]
pub struct EncoderScratch {
    /// The most recent last.
    plans: Vec<KnownPlan>,
    buffers: Vec<Data>,
    pub(super) kernels: KernelScratch,
    pub(super) tape: Tape,
}

#[derive(Debug)]
struct KnownPlan {
    /// What the model was given when it was opened: no other model has it.
    model: Arc<()>,
    shapes: Vec<Vec<usize>>,
    plan: Arc<Plan>,
    /// Its launches, if a device computes it.
    planned: Option<Arc<DevicePlan>>,
}

impl EncoderScratch {
    /// The most bytes that plans take; older ones are forgotten.
    const MOST_PLAN_BYTES: usize = 8 << 20;

    /// Returns empty memory.
    pub fn new() -> EncoderScratch {
        EncoderScratch::default()
    }

    /// Returns the bytes that it holds, about.
    pub fn n_bytes(&self) -> usize {
        let plans: usize = self.plans.iter().map(|known| known.plan.n_bytes).sum();
        plans + self.buffers.iter().map(Data::n_bytes).sum::<usize>() + self.kernels.n_bytes() + self.tape.n_bytes()
    }

    fn find(&mut self, model: &Arc<()>, shapes: &[Vec<usize>]) -> Option<Arc<Plan>> {
        let place = self.plans.iter().position(|known| Arc::ptr_eq(&known.model, model) && known.shapes == shapes)?;
        let known = self.plans.remove(place);
        let plan = Arc::clone(&known.plan);
        self.plans.push(known);
        Some(plan)
    }

    fn keep(&mut self, model: &Arc<()>, shapes: Vec<Vec<usize>>, plan: Arc<Plan>) {
        self.plans.push(KnownPlan { model: Arc::clone(model), shapes, plan, planned: None });
        let bytes = |plans: &[KnownPlan]| plans.iter().map(|known| known.plan.n_bytes).sum::<usize>();
        while self.plans.len() > 1 && bytes(&self.plans) > Self::MOST_PLAN_BYTES {
            self.plans.remove(0);
        }
    }

    /// Finds or makes the launches of the plan that was found last.
    fn planned(&mut self, device: &EncoderDevice, plan: &Plan) -> Result<Arc<DevicePlan>, Error> {
        let known = self.plans.last_mut();
        if let Some(planned) = known.as_ref().and_then(|known| known.planned.as_ref()) {
            return Ok(Arc::clone(planned));
        }
        let planned = Arc::new(device.plan(plan)?);
        if let Some(known) = known {
            known.planned = Some(Arc::clone(&planned));
        }
        Ok(planned)
    }

    /// Makes the buffers of a plan large enough.
    fn prepare(&mut self, plan: &Plan) {
        for (index, &(class, length)) in plan.buffers.iter().enumerate() {
            match self.buffers.get_mut(index) {
                Some(buffer) if buffer.class() == class && buffer.len() >= length => {}
                Some(buffer) => *buffer = Data::zeros(class, length),
                None => self.buffers.push(Data::zeros(class, length)),
            }
        }
    }
}

impl Encoder {
    /// Computes the outputs for `inputs`, which may be in any order.
    ///
    /// # Errors
    ///
    /// Inputs that are missing, unknown, or not of the type and the shape that the model declares;
    /// shapes that the model's operators do not take together; an index that is out of range, such
    /// as that of a token, with its event and its input. On a device: operators without a kernel,
    /// by their nodes, and a device that fails.
    pub fn run(&self, scratch: &mut EncoderScratch, inputs: &[EncoderInput<'_>]) -> Result<Vec<EncoderOutput>, Error> {
        let ordered = self.check(inputs)?;
        let plan = self.plan(scratch, ordered.iter().map(|input| input.shape))?;
        if let Some(device) = &self.device {
            let planned = scratch.planned(device, &plan)?;
            let slots =
                device.run(&plan, &planned, &ordered).map_err(|error| self.explain(error, &plan, scratch, &ordered))?;
            let outputs = self.graph.outputs.iter().zip(&plan.outputs);
            return Ok(outputs.map(|(port, value)| read(port, value, |slot| &slots[&slot])).collect());
        }
        self.follow(&plan, scratch, &ordered)?;
        let outputs = self.graph.outputs.iter().zip(&plan.outputs);
        Ok(outputs.map(|(port, value)| read(port, value, |slot| &scratch.buffers[plan.buffer_of[slot]])).collect())
    }

    /// Finds or makes the plan for inputs of `shapes`, in the order of the model.
    pub(super) fn plan<'a>(
        &self,
        scratch: &mut EncoderScratch,
        shapes: impl Iterator<Item = &'a [usize]>,
    ) -> Result<Arc<Plan>, Error> {
        let shapes: Vec<Vec<usize>> = shapes.map(<[usize]>::to_vec).collect();
        if let Some(plan) = scratch.find(&self.identity, &shapes) {
            return Ok(plan);
        }
        let plan = Arc::new(Builder::new(self.precision, self.isa).plan(&self.graph, &shapes)?);
        scratch.keep(&self.identity, shapes, Arc::clone(&plan));
        Ok(plan)
    }

    /// Returns the bytes of buffers that inputs need.
    pub(super) fn buffer_bytes(
        &self,
        scratch: &mut EncoderScratch,
        inputs: &[EncoderInput<'_>],
    ) -> Result<usize, Error> {
        let ordered = self.check(inputs)?;
        let plan = self.plan(scratch, ordered.iter().map(|input| input.shape))?;
        Ok(plan.buffers.iter().map(|&(class, length)| length * class.n_bytes()).sum())
    }

    /// Returns the error of a device; for an index that is out of range, that of the same events on
    /// the CPU, where indices are at hand.
    fn explain(&self, error: Error, plan: &Plan, scratch: &mut EncoderScratch, inputs: &[&EncoderInput<'_>]) -> Error {
        match &error {
            Error::Node { problem: NodeProblem::Index, .. } => {
                self.follow(plan, scratch, inputs).err().unwrap_or(error)
            }
            _ => error,
        }
    }

    /// Computes every step of a plan for `inputs`, in the order of the model.
    fn follow(&self, plan: &Plan, scratch: &mut EncoderScratch, inputs: &[&EncoderInput<'_>]) -> Result<(), Error> {
        scratch.prepare(plan);
        for (input, &slot) in inputs.iter().zip(&plan.inputs) {
            write(input.values, &mut scratch.buffers[plan.buffer_of[slot]]);
        }
        for step in &plan.steps {
            let place = plan.buffer_of[step.out];
            // The output is taken out, so that inputs can be borrowed meanwhile.
            let mut out = std::mem::replace(&mut scratch.buffers[place], Data::Int(Vec::new()));
            let args: Vec<Arg<'_>> = step
                .args
                .iter()
                .map(|(source, view)| match source {
                    Source::Constant(tensor) => Arg { data: tensor.data.borrow(), view },
                    Source::Slot(slot) => Arg { data: scratch.buffers[plan.buffer_of[*slot]].borrow(), view },
                })
                .collect();
            let done = kernels::run(&step.kernel, self.isa, &mut scratch.kernels, &args, &mut out, &step.out_view);
            scratch.buffers[place] = out;
            done.map_err(|found| origin::error(plan, step, found, inputs))?;
        }
        Ok(())
    }

    /// Returns the inputs in the order of the model.
    pub(super) fn check<'a, 'b>(&self, inputs: &'b [EncoderInput<'a>]) -> Result<Vec<&'b EncoderInput<'a>>, Error> {
        let refuse = |name: &str, problem| Error::EncoderInput { name: name.to_owned(), problem };
        let is_known = |input: &&EncoderInput<'_>| self.graph.inputs.iter().any(|port| port.name == input.name);
        if let Some(unknown) = inputs.iter().find(|input| !is_known(input)) {
            return Err(refuse(unknown.name, InputProblem::Unknown));
        }
        let find = |port: &Port| {
            let input = inputs.iter().find(|input| input.name == port.name);
            let input = input.ok_or_else(|| refuse(&port.name, InputProblem::Missing))?;
            check(port, input).map_err(|problem| refuse(&port.name, problem))?;
            Ok(input)
        };
        self.graph.inputs.iter().map(find).collect()
    }
}

/// Refuses an input that is not what the model declares.
pub(super) fn check(port: &Port, input: &EncoderInput<'_>) -> Result<(), InputProblem> {
    if !input.values.fits(port.kind) {
        return Err(InputProblem::Kind { expected: port.kind.name() });
    }
    check_shape(port, input.shape, input.values.len())
}

/// Refuses a shape that is not what the model declares, or not that of `length` numbers.
pub(super) fn check_shape(port: &Port, shape: &[usize], length: usize) -> Result<(), InputProblem> {
    if let Some(dimensions) = &port.dimensions {
        let fits = |(dimension, &size): (&Dimension, &usize)| match dimension {
            Dimension::Fixed(fixed) => *fixed == size,
            Dimension::Named(_) => true,
        };
        if dimensions.len() != shape.len() || !dimensions.iter().zip(shape).all(fits) {
            let declared = dimensions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(InputProblem::Shape { found: shape.to_vec(), declared: format!("[{declared}]") });
        }
    }
    let expected = shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    match expected {
        Some(expected) if expected == length => Ok(()),
        expected => Err(InputProblem::Length { found: length, expected: expected.unwrap_or(usize::MAX) }),
    }
}

impl std::fmt::Display for Dimension {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dimension::Fixed(size) => write!(formatter, "{size}"),
            Dimension::Named(name) if name.is_empty() => formatter.write_str("?"),
            Dimension::Named(name) => formatter.write_str(&crate::error::quoted(name)),
        }
    }
}

/// Writes the numbers of an input where a plan has it.
pub(super) fn write(values: InputValues<'_>, buffer: &mut Data) {
    match (values, buffer) {
        (InputValues::F32(from), Data::F64(to)) => {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = f64::from(*from));
        }
        (InputValues::F64(from), Data::F64(to)) => to[..from.len()].copy_from_slice(from),
        (InputValues::I64(from), Data::Int(to)) => to[..from.len()].copy_from_slice(from),
        (InputValues::Bool(from), Data::Int(to)) => {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = i64::from(*from));
        }
        _ => {}
    }
}

/// Returns the numbers of an output; `slot` returns the memory of a slot.
pub(super) fn read<'a>(port: &Port, value: &'a Value, slot: impl Fn(usize) -> &'a Data) -> EncoderOutput {
    let data = match &value.source {
        Source::Constant(tensor) => &tensor.data,
        Source::Slot(place) => slot(*place),
    };
    let places = value.view.places();
    let values = match data {
        Data::F32(values) => OutputValues::F32(places.map(|place| values[place]).collect()),
        Data::F64(values) => OutputValues::F64(places.map(|place| values[place]).collect()),
        Data::Int(values) => OutputValues::I64(places.map(|place| values[place]).collect()),
    };
    debug_assert!(value.class == Class::Int || value.kind == Kind::Float);
    EncoderOutput { name: port.name.clone(), shape: value.view.shape.clone(), values }
}
