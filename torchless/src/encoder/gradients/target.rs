//! What is differentiated: a column of an output, or outputs with a cotangent each.

use crate::encoder::batch::Group;
use crate::encoder::events::{CheckedEvents, cut};
use crate::encoder::graph::{Graph, Port};
use crate::encoder::run::{EncoderInput, InputValues};
use crate::encoder::tensor::Kind;
use crate::error::{Error, GradientProblem};

/// The number T whose gradient is computed.
#[derive(Debug, Clone, Copy)]
pub enum GradientTarget<'a> {
    /// The sum over events of a column of an output: of an event's numbers of that output, all in
    /// order, the one at `column`.
    Column {
        /// The output; None for the only one.
        output: Option<&'a str>,
        /// The column, from 0.
        column: usize,
    },
    /// The sum of outputs times their cotangents. Outputs without one do not count.
    Cotangents(&'a [Cotangent<'a>]),
}

/// Factors of an output's numbers: ∂T/∂y.
#[derive(Debug, Clone, Copy)]
pub struct Cotangent<'a> {
    /// The output.
    pub output: &'a str,
    /// The shape of the output of all events.
    pub shape: &'a [usize],
    /// The factors, the last axis running fastest. Those behind an event's length do not count.
    pub values: &'a [f64],
}

/// A target that the model has.
pub(super) enum CheckedTarget<'a> {
    Column {
        output: usize,
        column: usize,
    },
    /// The place of the output, its axis of particles, and the cotangent.
    Cotangents(Vec<(usize, Option<usize>, EncoderInput<'a>)>),
}

impl<'a> CheckedTarget<'a> {
    pub(super) fn new(
        graph: &Graph,
        events: &CheckedEvents<'_>,
        target: &GradientTarget<'a>,
    ) -> Result<CheckedTarget<'a>, Error> {
        match *target {
            GradientTarget::Column { output, column } => {
                let output = match output {
                    Some(name) => find(graph, name)?,
                    None if graph.outputs.len() == 1 => 0,
                    None => return Err(GradientProblem::SeveralOutputs { known: names(graph) }.into()),
                };
                let port = check_numbers(&graph.outputs[output])?;
                if events.particle_axis(port).is_some() {
                    return Err(GradientProblem::OutputOfParticles { output: port.name.clone() }.into());
                }
                Ok(CheckedTarget::Column { output, column })
            }
            GradientTarget::Cotangents(given) => {
                let mut checked: Vec<(usize, Option<usize>, EncoderInput<'a>)> = Vec::with_capacity(given.len());
                for cotangent in given {
                    let output = find(graph, cotangent.output)?;
                    if checked.iter().any(|(other, ..)| *other == output) {
                        return Err(GradientProblem::Twice { output: cotangent.output.to_owned() }.into());
                    }
                    let port = check_numbers(&graph.outputs[output])?;
                    let axis = events.particle_axis(port).filter(|_| events.lengths.is_some());
                    check_shape(cotangent, axis, events)?;
                    let Cotangent { output: name, shape, values } = *cotangent;
                    checked.push((output, axis, EncoderInput { name, shape, values: InputValues::F64(values) }));
                }
                Ok(CheckedTarget::Cotangents(checked))
            }
        }
    }

    /// Refuses a column that its output does not have; `n_columns` returns how many an output has,
    /// if that is known.
    pub(super) fn check_column(
        &self,
        graph: &Graph,
        n_columns: impl Fn(usize) -> Option<usize>,
    ) -> Result<(), GradientProblem> {
        let CheckedTarget::Column { output, column } = *self else { return Ok(()) };
        match n_columns(output) {
            Some(n_columns) if column >= n_columns => {
                let output = graph.outputs[output].name.clone();
                Err(GradientProblem::Column { output, column, n_columns })
            }
            _ => Ok(()),
        }
    }

    /// Returns the cotangent of a group's output of `shape`, if the output counts.
    pub(super) fn cotangent(
        &self,
        (output, port): (usize, &Port),
        shape: &[usize],
        events: &CheckedEvents<'_>,
        group: &Group,
    ) -> Result<Option<Vec<f64>>, Error> {
        let wrong_shape = |found: &[usize]| GradientProblem::CotangentShape {
            output: port.name.clone(),
            found: found.to_vec(),
            expected: shape.to_vec(),
        };
        match self {
            CheckedTarget::Column { output: chosen, .. } if *chosen != output => Ok(None),
            CheckedTarget::Column { column, .. } => {
                let n_columns: usize = shape.iter().skip(1).product();
                if *column >= n_columns {
                    let (output, column) = (port.name.clone(), *column);
                    return Err(GradientProblem::Column { output, column, n_columns }.into());
                }
                let mut cotangent = vec![0.0; shape.iter().product()];
                cotangent.iter_mut().skip(*column).step_by(n_columns).for_each(|factor| *factor = 1.0);
                Ok(Some(cotangent))
            }
            CheckedTarget::Cotangents(given) => {
                let Some((_, axis, whole)) = given.iter().find(|(other, ..)| *other == output) else { return Ok(None) };
                let part = cut(whole, *axis, group);
                let part = part.input();
                if part.shape != shape {
                    return Err(wrong_shape(part.shape).into());
                }
                let InputValues::F64(values) = part.values else { return Ok(None) };
                let mut values = values.to_vec();
                if let (Some(axis), Some(lengths)) = (axis, &events.lengths) {
                    clear_padding(&mut values, shape, *axis, group.events.iter().map(|&event| lengths[event]));
                }
                Ok(Some(values))
            }
        }
    }
}

/// Sets what is behind the length of each event to 0.
fn clear_padding(values: &mut [f64], shape: &[usize], axis: usize, lengths: impl Iterator<Item = usize>) {
    let per_event: usize = shape[1..].iter().product();
    let (size, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    for (event, length) in values.chunks_exact_mut(per_event.max(1)).zip(lengths) {
        for row in event.chunks_exact_mut((size * inner).max(1)) {
            row[length.min(size) * inner..].fill(0.0);
        }
    }
}

fn names(graph: &Graph) -> Vec<String> {
    graph.outputs.iter().map(|port| port.name.clone()).collect()
}

fn find(graph: &Graph, name: &str) -> Result<usize, GradientProblem> {
    let place = graph.outputs.iter().position(|port| port.name == name);
    place.ok_or_else(|| GradientProblem::UnknownOutput { name: name.to_owned(), known: names(graph) })
}

/// Refuses an output that is not made of numbers.
fn check_numbers(port: &Port) -> Result<&Port, GradientProblem> {
    match port.kind {
        Kind::Float => Ok(port),
        kind => Err(GradientProblem::OutputKind { output: port.name.clone(), found: kind.name() }),
    }
}

/// Refuses a cotangent of other events, or of other numbers than its shape says.
fn check_shape(
    cotangent: &Cotangent<'_>,
    axis: Option<usize>,
    events: &CheckedEvents<'_>,
) -> Result<(), GradientProblem> {
    let shape = cotangent.shape;
    let length = shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    let has_size = |axis: usize| shape.get(axis) == Some(&events.size);
    if shape.first() == Some(&events.n_events) && length == Some(cotangent.values.len()) && axis.is_none_or(has_size) {
        return Ok(());
    }
    Err(GradientProblem::CotangentEvents {
        output: cotangent.output.to_owned(),
        found: shape.to_vec(),
        n_values: cotangent.values.len(),
        n_events: events.n_events,
    })
}
