//! What can be wrong with the target of gradients: an output, a column, cotangents.

use super::listed;

/// Why gradients cannot be computed of a target.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GradientProblem {
    /// An output that the model does not have.
    #[error("gradients: the model has no output `{}`; it has {}", super::quoted(.name), listed(.known))]
    UnknownOutput {
        /// What was asked for.
        name: String,
        /// The outputs.
        known: Vec<String>,
    },
    /// No named output, where there are several.
    #[error("gradients: the model has several outputs ({}), and none is named", listed(.known))]
    SeveralOutputs {
        /// The outputs.
        known: Vec<String>,
    },
    /// An output of integers or truth values.
    #[error("gradients: the output `{}` is made of {found}, and has no gradient", super::quoted(.output))]
    OutputKind {
        /// The output.
        output: String,
        /// What it is made of.
        found: &'static str,
    },
    /// A column of an output with numbers of every particle.
    #[error("gradients: the output `{}` has an axis of particles, and no columns of each event", super::quoted(.output))]
    OutputOfParticles {
        /// The output.
        output: String,
    },
    /// A column that the output does not have.
    #[error("gradients: the output `{}` has {n_columns} numbers of an event, and no column {column}", super::quoted(.output))]
    Column {
        /// The output.
        output: String,
        /// What was asked for, from 0.
        column: usize,
        /// What there are.
        n_columns: usize,
    },
    /// A cotangent of other events, of another length, or with more or fewer numbers.
    #[error(
        "gradients: the cotangent of `{}` has {n_values} numbers and the shape {found:?}, and there are {n_events} events",
        super::quoted(.output)
    )]
    CotangentEvents {
        /// The output.
        output: String,
        /// The cotangent's shape.
        found: Vec<usize>,
        /// Its numbers.
        n_values: usize,
        /// The events.
        n_events: usize,
    },
    /// A cotangent of another shape than its output.
    #[error("gradients: the cotangent of `{}` has the shape {found:?} for events whose output has {expected:?}", super::quoted(.output))]
    CotangentShape {
        /// The output.
        output: String,
        /// That of the cotangent of some events.
        found: Vec<usize>,
        /// That of the output of these events.
        expected: Vec<usize>,
    },
    /// Two cotangents of one output.
    #[error("gradients: there are two cotangents of `{}`", super::quoted(.output))]
    Twice {
        /// The output.
        output: String,
    },
}

impl GradientProblem {
    /// Returns one line of advice, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            GradientProblem::OutputOfParticles { .. } => Some("give a cotangent of the output's shape"),
            GradientProblem::CotangentEvents { .. } | GradientProblem::CotangentShape { .. } => {
                Some("a cotangent has the shape of the output that `encode` answers with")
            }
            _ => None,
        }
    }
}
