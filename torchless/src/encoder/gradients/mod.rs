//! Gradients of a model's outputs with respect to its inputs, event by event.
//!
//! The forward pass is the ordinary one, step by step, with the memory of every step kept; the
//! derivatives of the steps are then followed back (reverse mode). Sums never cross events, so that
//! an event's gradients are the same bits in any batch, order and number of threads.

mod tape;
mod target;
#[cfg(test)]
mod tests;

use super::batch::{Group, Joined, Placement, ScratchPool, groups};
use super::events::{CheckedEvents, Input, Part};
use super::graph::Graph;
use super::ragged::EncoderEvents;
use super::run::{EncoderInput, EncoderOutput, EncoderScratch};
use super::tensor::Kind;
use super::{EncodeOptions, Encoder};
use crate::cpu::Threads;
use crate::error::{Error, InputProblem};
pub(super) use tape::Tape;
use target::CheckedTarget;
pub use target::{Cotangent, GradientTarget};

/// Outputs of many events, and gradients with respect to their inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderGradients {
    /// What [`Encoder::encode_events`] answers: the same bits.
    pub outputs: Vec<EncoderOutput>,
    /// One for each input that is made of numbers and is not the mask, in the order of the model.
    pub inputs: Vec<InputGradient>,
}

/// The gradient with respect to an input.
#[derive(Debug, Clone, PartialEq)]
pub struct InputGradient {
    /// The input's name in the model.
    pub name: String,
    /// The shape of the input; of a ragged one the number of particles of all events, and of
    /// columns.
    pub shape: Vec<usize>,
    /// Its numbers, the last axis running fastest; 0 for padding.
    pub values: Vec<f64>,
}

/// What a group of events has: outputs, and gradients with respect to the inputs that have one.
type GroupGradients = (Vec<EncoderOutput>, Vec<Option<Vec<f64>>>);

impl Encoder {
    /// Computes outputs y of many events, and the gradient of one number T with respect to their
    /// inputs x.
    ///
    /// T = Σₑ yₑ_c, the sum of a column c over events e, or T = Σᵢ wᵢ·yᵢ with a cotangent w, as
    /// `target` says. An event's outputs depend on its own inputs only, so that the gradient for
    /// event e is ∂yₑ_c/∂xₑ. Inputs may be ragged, as those of [`Encoder::encode_events`].
    /// Integers, truth values and the mask have no gradient.
    ///
    /// Derivatives where a function has none: 0 for |x| and ReLU at 0 and for steps (ceil, floor,
    /// sign); 1 for a clipped number at its limits; equal numbers share that of their maximum. What
    /// passes through integers or truth values has the derivative 0. A number whose derivative is
    /// infinite has a gradient that is infinite or NaN, unless the gradient that reaches it is 0.
    ///
    /// # Errors
    ///
    /// Those of [`Encoder::encode_events`]; targets that the model does not have, also if there are
    /// no events; an operator whose derivative is not computed, by its node; a model on a device.
    ///
    /// ```
    /// use torchless::Threads;
    /// use torchless::encoder::{
    ///     EncodeOptions, Encoder, EncoderEvents, EncoderInput, GradientTarget, InputValues, ScratchPool,
    /// };
    ///
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/encoders"))?;
    /// let model = Encoder::open("mlp.onnx")?; // 3 features in, 2 logits out
    /// let x = [EncoderInput { name: "x", shape: &[2, 3], values: InputValues::F32(&[0.5, -1.0, 2.0, 0.0, 1.0, 1.0]) }];
    /// let events = EncoderEvents { dense: &x, ragged: &[] };
    /// let target = GradientTarget::Column { output: None, column: 1 };
    /// let (threads, pool) = (Threads::new(1), ScratchPool::new());
    /// let found = model.gradients(&threads, &pool, events, &target, &EncodeOptions::default())?;
    /// assert_eq!(found.outputs[0].shape, [2, 2]);
    /// assert_eq!(found.inputs[0].shape, [2, 3]);
    /// // The second logit of the first event, with a little more of its third feature:
    /// let derivative = found.inputs[0].values[2];
    /// let x = EncoderInput { name: "x", shape: &[1, 3], values: InputValues::F32(&[0.5, -1.0, 2.001]) };
    /// let more = model.encode(&threads, &[x], &EncodeOptions::default())?;
    /// let change = more[0].values.to_f64()[1] - found.outputs[0].values.to_f64()[1];
    /// assert!((change - 0.001 * derivative).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn gradients(
        &self,
        threads: &Threads,
        scratches: &ScratchPool,
        events: EncoderEvents<'_>,
        target: &GradientTarget<'_>,
        options: &EncodeOptions,
    ) -> Result<EncoderGradients, Error> {
        if let Some(device) = self.device() {
            return Err(Error::EncoderOnCpuOnly { what: "gradients", device: device.backend().name() });
        }
        let events = CheckedEvents::new(&self.graph, events, options)?;
        events.check_mask(options)?;
        let target = CheckedTarget::new(&self.graph, &events, target)?;
        let wanted: Vec<bool> = self.graph.inputs.iter().map(|port| has_gradient(port, options)).collect();
        let groups = groups(&events, (0..events.n_events).collect(), options.events_at_once);
        // Before anything is computed, and also if there are no events.
        let first = groups.first().cloned().unwrap_or_else(|| events.first_group());
        target.check_column(&self.graph, |output| self.n_columns(scratches, &events, &first, output))?;
        let results = super::batch::each_group(threads, scratches, &groups, |scratch, group| {
            self.group_gradients(scratch, &events, &target, &wanted, group)
        });
        let mut joined = Joined::new(&self.graph, &events);
        let mut gradients = JoinedGradients::new(&self.graph, &events, &wanted)?;
        for (result, group) in results.into_iter().zip(&groups) {
            let (outputs, inputs) = result?;
            joined.add(outputs, group)?;
            gradients.add(&inputs, &events, group);
        }
        let outputs = if groups.is_empty() { self.outputs_of_no_events() } else { joined.outputs };
        Ok(EncoderGradients { outputs, inputs: gradients.0.into_iter().flatten().collect() })
    }

    /// Returns the names of the inputs that [`Encoder::gradients`] answers for.
    pub fn inputs_with_gradients(&self, options: &EncodeOptions) -> Vec<String> {
        let ports = self.graph.inputs.iter().filter(|port| has_gradient(port, options));
        ports.map(|port| port.name.clone()).collect()
    }

    fn group_gradients(
        &self,
        scratch: &mut EncoderScratch,
        events: &CheckedEvents<'_>,
        target: &CheckedTarget<'_>,
        wanted: &[bool],
        group: &Group,
    ) -> Result<GroupGradients, Error> {
        let parts: Vec<Part<'_>> = events.inputs.iter().map(|input| input.part(events, group)).collect();
        let inputs: Vec<EncoderInput<'_>> = parts.iter().map(Part::input).collect();
        self.check(&inputs)?;
        let plan = self.plan(scratch, inputs.iter().map(|input| input.shape))?;
        tape::differentiate(self, &plan, scratch, &inputs, wanted, |output, shape| {
            target.cotangent(output, shape, events, group)
        })
        .map_err(|error| group.place(error))
    }
}

/// Returns whether an input has a gradient.
fn has_gradient(port: &super::graph::Port, options: &EncodeOptions) -> bool {
    port.kind == Kind::Float && options.mask.as_deref() != Some(port.name.as_str())
}

/// The gradients of all events; None for an input without one.
struct JoinedGradients(Vec<Option<InputGradient>>);

impl JoinedGradients {
    fn new(graph: &Graph, events: &CheckedEvents<'_>, wanted: &[bool]) -> Result<JoinedGradients, Error> {
        let one = |((port, input), wanted): ((&super::graph::Port, &Input<'_>), &bool)| {
            let shape = match input {
                _ if !wanted => return Ok(None),
                Input::Dense { input, .. } => input.shape.to_vec(),
                Input::Ragged(ragged) => vec![ragged.input.offsets.lengths().iter().sum(), ragged.input.columns.len()],
                Input::Mask(_) => return Ok(None),
            };
            let length = shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
            let name = port.name.clone();
            match length.and_then(super::batch::zeros) {
                Some(values) => Ok(Some(InputGradient { name, shape, values })),
                None => Err(Error::EncoderInput { name, problem: InputProblem::OutputMemory { shape } }),
            }
        };
        let all = graph.inputs.iter().zip(&events.inputs).zip(wanted).map(one);
        all.collect::<Result<_, _>>().map(JoinedGradients)
    }

    /// Puts the gradients of a group where its events are.
    fn add(&mut self, parts: &[Option<Vec<f64>>], events: &CheckedEvents<'_>, group: &Group) {
        for ((whole, part), input) in self.0.iter_mut().zip(parts).zip(&events.inputs) {
            let (Some(whole), Some(part)) = (whole, part) else { continue };
            match input {
                Input::Dense { axis, .. } => {
                    let axis = axis.filter(|_| group.length.is_some());
                    let mut shape = whole.shape.clone();
                    shape[0] = group.events.len();
                    if let (Some(axis), Some(length)) = (axis, group.length) {
                        shape[axis] = length;
                    }
                    Placement::new(group, events.lengths.as_deref(), axis, [&shape, &whole.shape])
                        .copy(part, &mut whole.values);
                }
                Input::Ragged(ragged) => {
                    ragged.scatter(&group.events, group.length.unwrap_or(0), part, &mut whole.values);
                }
                Input::Mask(_) => {}
            }
        }
    }
}
