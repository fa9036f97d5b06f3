//! Where an index that is out of range comes from: which event of which input.

use std::collections::HashSet;

use super::kernels::OutOfRange;
use super::plan::{Plan, Source, Step};
use super::run::EncoderInput;
use crate::error::{Error, InputProblem, NodeProblem, quoted};

/// An element of a slot's memory; None if it is not known which.
type Element = (usize, Option<usize>);

/// Returns the error of a step whose index is out of range. It names the input, if the index is
/// made of one input, and the event in the order of `inputs`, if it is made element by element.
pub(super) fn error(plan: &Plan, step: &Step, found: OutOfRange, inputs: &[&EncoderInput<'_>]) -> Error {
    let (name, operator) = &plan.nodes[step.node];
    let OutOfRange { place, index, size } = found;
    let origins = match step.args[step.kernel.indices_argument()].0 {
        Source::Slot(slot) => origins(plan, (slot, Some(place))),
        Source::Constant(_) => Vec::new(),
    };
    let [(first, _), ..] = origins[..] else { return Error::node(name, operator, found.into()) };
    if origins.iter().any(|(input, _)| *input != first) {
        return Error::node(name, operator, found.into());
    }
    let input = inputs[first];
    let per_event = input.values.len() / input.shape.first().map_or(1, |n_events| (*n_events).max(1));
    let mut events = origins.iter().map(|(_, place)| Some((*place)? / per_event.max(1)));
    let event = events.next().flatten().filter(|event| events.all(|other| other == Some(*event)));
    let problem = InputProblem::Index { event, index, size, node: quoted(name), operator: quoted(operator) };
    Error::EncoderInput { name: input.name.to_owned(), problem }
}

/// Returns the elements of inputs that an element is made of: which input, and which element.
fn origins(plan: &Plan, element: Element) -> Vec<Element> {
    let (mut found, mut seen, mut left) = (Vec::new(), HashSet::new(), vec![element]);
    while let Some((slot, place)) = left.pop() {
        if !seen.insert((slot, place)) {
            continue;
        }
        if let Some(input) = plan.inputs.iter().position(|&other| other == slot) {
            found.push((input, place));
        } else if let Some(step) = plan.steps.iter().find(|step| step.out == slot) {
            left.extend(sources(step, place));
        }
    }
    found
}

/// Returns the elements that an element of a step's output is made of.
fn sources(step: &Step, place: Option<usize>) -> impl Iterator<Item = Element> {
    let place = place.filter(|_| step.kernel.is_elementwise());
    step.args.iter().filter_map(move |(source, view)| match source {
        Source::Slot(slot) => {
            let same = place.filter(|_| view.shape == step.out_view.shape);
            Some((*slot, same.and_then(|place| view.places().nth(place))))
        }
        Source::Constant(_) => None,
    })
}

impl From<OutOfRange> for NodeProblem {
    fn from(found: OutOfRange) -> NodeProblem {
        NodeProblem::IndexOutOfRange { index: found.index, size: found.size }
    }
}
