//! Follows a plan with the memory of every step kept, and back again.

use super::GroupGradients;
use crate::encoder::graph::{Port, Unary};
use crate::encoder::kernels::backward::{self, ComputedStep, NoGradient, Tools};
use crate::encoder::kernels::linear::Activation;
use crate::encoder::kernels::{self, Arg, Kernel, OutOfRange};
use crate::encoder::origin;
use crate::encoder::plan::{MOST_ELEMENTS, Plan, Source, Step, Value};
use crate::encoder::run::{EncoderInput, EncoderScratch, read, write};
use crate::encoder::tensor::{Class, Data, View};
use crate::encoder::{Encoder, EncoderOutput};
use crate::error::{Error, NodeProblem};

/// Memory of one pass; it grows when gradients are asked for, and only then.
#[derive(Debug, Default)]
pub(in crate::encoder) struct Tape {
    /// What each slot has.
    values: Vec<Data>,
    /// What a step has before its activation, by the step's place.
    products: Vec<Data>,
    /// The gradient with respect to each slot, if there is one.
    gradients: Vec<Option<Data>>,
}

impl Tape {
    pub(in crate::encoder) fn n_bytes(&self) -> usize {
        let gradients = self.gradients.iter().flatten();
        self.values.iter().chain(&self.products).chain(gradients).map(Data::n_bytes).sum()
    }
}

/// Computes the outputs, and the gradients with respect to the inputs that are `wanted`; the
/// cotangent of an output and its shape come from `cotangent`.
pub(super) fn differentiate(
    model: &Encoder,
    plan: &Plan,
    scratch: &mut EncoderScratch,
    inputs: &[EncoderInput<'_>],
    wanted: &[bool],
    cotangent: impl Fn((usize, &Port), &[usize]) -> Result<Option<Vec<f64>>, Error>,
) -> Result<GroupGradients, Error> {
    let mut tape = std::mem::take(&mut scratch.tape);
    let lengths = inputs.iter().map(|input| input.values.len()).collect();
    let mut pass = Pass { model, plan, scratch, tape: &mut tape, lengths };
    let done = pass.forward(inputs).and_then(|outputs| {
        for (place, (port, value)) in model.graph.outputs.iter().zip(&plan.outputs).enumerate() {
            if let Some(factors) = cotangent((place, port), value.shape())? {
                pass.seed(value, &factors);
            }
        }
        pass.backward(wanted)?;
        Ok((outputs, pass.take(wanted)))
    });
    scratch.tape = tape;
    done
}

struct Pass<'a> {
    model: &'a Encoder,
    plan: &'a Plan,
    scratch: &'a mut EncoderScratch,
    tape: &'a mut Tape,
    /// How many numbers each input has.
    lengths: Vec<usize>,
}

/// Makes memory large enough, of the right class.
fn prepare(memory: &mut Vec<Data>, place: usize, class: Class, length: usize) {
    if memory.len() <= place {
        memory.resize_with(place + 1, || Data::Int(Vec::new()));
    }
    let data = &mut memory[place];
    if data.class() != class || data.len() < length {
        *data = Data::zeros(class, length);
    }
}

impl Plan {
    fn class_of(&self, slot: usize) -> Class {
        self.buffers[self.buffer_of[slot]].0
    }
}

impl Pass<'_> {
    /// Computes every step, and returns the outputs: the bits of a pass without gradients.
    fn forward(&mut self, inputs: &[EncoderInput<'_>]) -> Result<Vec<EncoderOutput>, Error> {
        let plan = self.plan;
        self.tape.gradients.clear();
        self.tape.gradients.resize(plan.buffer_of.len(), None);
        let mut n_elements: usize = 0;
        for (input, &slot) in inputs.iter().zip(&plan.inputs) {
            prepare(&mut self.tape.values, slot, plan.class_of(slot), input.values.len());
            write(input.values, &mut self.tape.values[slot]);
        }
        let inputs: Vec<&EncoderInput<'_>> = inputs.iter().collect();
        for (place, step) in plan.steps.iter().enumerate() {
            n_elements += step.out_view.len();
            if n_elements > MOST_ELEMENTS {
                let shape = format!("[{n_elements}]");
                return Err(self.node_error(step, NodeProblem::TooLarge { shape, limit: MOST_ELEMENTS }));
            }
            let done = self.compute(place, step);
            done.map_err(|found| origin::error(plan, step, found, &inputs))?;
        }
        let outputs = self.model.graph.outputs.iter().zip(&plan.outputs);
        Ok(outputs.map(|(port, value)| read(port, value, |slot| &self.tape.values[slot])).collect())
    }

    fn node_error(&self, step: &Step, problem: NodeProblem) -> Error {
        let (name, operator) = &self.plan.nodes[step.node];
        Error::node(name, operator, problem)
    }

    fn compute(&mut self, place: usize, step: &Step) -> Result<(), OutOfRange> {
        let (class, length) = (self.plan.class_of(step.out), step.out_view.len());
        prepare(&mut self.tape.values, step.out, class, length);
        let mut out = std::mem::replace(&mut self.tape.values[step.out], Data::Int(Vec::new()));
        let args = arguments(step, &self.tape.values);
        let (isa, scratch) = (self.model.isa, &mut self.scratch.kernels);
        let done = match split(&step.kernel) {
            Some((product, activation)) => {
                prepare(&mut self.tape.products, place, class, length);
                let between = &mut self.tape.products[place];
                kernels::run(&product, isa, scratch, &args, between, &step.out_view).and_then(|()| {
                    let arg = Arg { data: between.borrow(), view: &step.out_view };
                    kernels::run(&Kernel::Unary(activation), isa, scratch, &[arg], &mut out, &step.out_view)
                })
            }
            None => kernels::run(&step.kernel, isa, scratch, &args, &mut out, &step.out_view),
        };
        self.tape.values[step.out] = out;
        done
    }

    /// Adds a cotangent to the gradient with respect to an output.
    fn seed(&mut self, value: &Value, factors: &[f64]) {
        let Source::Slot(slot) = value.source else { return };
        let mut gradient = self.take_gradient(slot);
        let places = value.view.places().zip(factors);
        match &mut gradient {
            Data::F32(to) => places.for_each(|(place, factor)| to[place] += *factor as f32),
            Data::F64(to) => places.for_each(|(place, factor)| to[place] += *factor),
            Data::Int(_) => {}
        }
        self.tape.gradients[slot] = Some(gradient);
    }

    /// Returns the gradient with respect to a slot: zeros if nothing was added yet.
    fn take_gradient(&mut self, slot: usize) -> Data {
        let zeros = || Data::zeros(self.plan.class_of(slot), self.tape.values[slot].len());
        self.tape.gradients[slot].take().unwrap_or_else(zeros)
    }

    /// Follows the steps back.
    fn backward(&mut self, wanted: &[bool]) -> Result<(), Error> {
        let is_active = self.active(wanted);
        for (place, step) in self.plan.steps.iter().enumerate().rev() {
            if !is_active[step.out] {
                continue;
            }
            let Some(gradient) = self.tape.gradients[step.out].take() else { continue };
            self.step_back(place, step, gradient, &is_active).map_err(|problem| {
                let problem = match problem {
                    NoGradient::Unknown => NodeProblem::NoGradient,
                    NoGradient::OutOfRange(found) => found.into(),
                };
                self.node_error(step, problem)
            })?;
        }
        Ok(())
    }

    fn step_back(&mut self, place: usize, step: &Step, gradient: Data, is_active: &[bool]) -> Result<(), NoGradient> {
        let mut gradient = gradient;
        let mut kernel = &step.kernel;
        let split = split(kernel);
        if let Some((product, activation)) = &split {
            gradient = self.activation_back(place, step, *activation, &gradient)?;
            kernel = product;
        }
        for (index, (source, _)) in step.args.iter().enumerate() {
            let Source::Slot(slot) = *source else { continue };
            if !is_active[slot] {
                continue;
            }
            let mut to = self.take_gradient(slot);
            let args = arguments(step, &self.tape.values);
            let out = self.tape.values[step.out].borrow();
            let computed = ComputedStep { kernel, args: &args, out, out_view: &step.out_view, gradient: &gradient };
            let mut tools = tools(self.model, self.scratch);
            backward::add_gradient(&computed, index, &mut tools, &mut to)?;
            self.tape.gradients[slot] = Some(to);
        }
        Ok(())
    }

    /// Returns the gradient with respect to a product whose activation is a part of the step.
    fn activation_back(
        &mut self,
        place: usize,
        step: &Step,
        activation: Unary,
        gradient: &Data,
    ) -> Result<Data, NoGradient> {
        let mut before = Data::zeros(gradient.class(), step.out_view.len());
        let args = [Arg { data: self.tape.products[place].borrow(), view: &step.out_view }];
        let (kernel, out) = (Kernel::Unary(activation), self.tape.values[step.out].borrow());
        let computed = ComputedStep { kernel: &kernel, args: &args, out, out_view: &step.out_view, gradient };
        backward::add_gradient(&computed, 0, &mut tools(self.model, self.scratch), &mut before)?;
        Ok(before)
    }

    /// Returns which slots depend on wanted inputs by numbers.
    fn active(&self, wanted: &[bool]) -> Vec<bool> {
        let mut is_active = vec![false; self.plan.buffer_of.len()];
        for (&slot, wanted) in self.plan.inputs.iter().zip(wanted) {
            is_active[slot] = *wanted;
        }
        for step in &self.plan.steps {
            let is_from_active =
                |(source, _): &(Source, View)| matches!(source, Source::Slot(slot) if is_active[*slot]);
            is_active[step.out] = self.plan.class_of(step.out) != Class::Int && step.args.iter().any(is_from_active);
        }
        is_active
    }

    /// Takes the gradients with respect to the inputs; zeros where no output depends on one.
    fn take(&mut self, wanted: &[bool]) -> Vec<Option<Vec<f64>>> {
        let plan = self.plan;
        let take = |(place, &slot): (usize, &usize)| {
            // Inputs are kept in double precision.
            let Data::F64(mut gradient) = self.take_gradient(slot) else { return None };
            gradient.truncate(self.lengths[place]);
            wanted[place].then_some(gradient)
        };
        plan.inputs.iter().enumerate().map(take).collect()
    }
}

fn tools<'a>(model: &'a Encoder, scratch: &'a mut EncoderScratch) -> Tools<'a> {
    Tools { isa: model.isa, scratch: &mut scratch.kernels, transposes: &model.transposes }
}

fn arguments<'a>(step: &'a Step, values: &'a [Data]) -> Vec<Arg<'a>> {
    let argument = |(source, view): &'a (Source, View)| match source {
        Source::Constant(tensor) => Arg { data: tensor.data.borrow(), view },
        Source::Slot(slot) => Arg { data: values[*slot].borrow(), view },
    };
    step.args.iter().map(argument).collect()
}

/// Returns a product and its activation as two steps.
fn split(kernel: &Kernel) -> Option<(Kernel, Unary)> {
    let of = |activation| match activation {
        Activation::None => None,
        Activation::Gelu => Some(Unary::Gelu),
        Activation::GeluTanh => Some(Unary::GeluTanh),
        Activation::Relu => Some(Unary::Relu),
        Activation::Silu => Some(Unary::Silu),
    };
    let none = Activation::None;
    match kernel {
        Kernel::Linear { weights, activation } => {
            of(*activation).map(|unary| (Kernel::Linear { weights: weights.clone(), activation: none }, unary))
        }
        Kernel::Pointwise { activation } => {
            of(*activation).map(|unary| (Kernel::Pointwise { activation: none }, unary))
        }
        _ => None,
    }
}
