//! What can be wrong with histograms of a score: edges, weights, variations, and the score.

use super::listed;

/// Why histograms of a score cannot be filled.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HistogramProblem {
    /// Edges of no bin.
    #[error("a histogram has two edges or more, and not {found}")]
    Edges {
        /// How many there are.
        found: usize,
    },
    /// Edges that do not ascend, or that are not numbers.
    #[error("edge {place} is {edge}, and must be above {before}")]
    Edge {
        /// Which, from 0.
        place: usize,
        /// What it is.
        edge: f64,
        /// The edge before it.
        before: f64,
    },
    /// A score of an output that the model does not have.
    #[error("score: the model has no output `{name}`; it has {}", listed(.known))]
    UnknownOutput {
        /// What was asked for.
        name: String,
        /// The outputs.
        known: Vec<String>,
    },
    /// A score of no named output, where there are several.
    #[error("score: the model has several outputs ({}), and none is named", listed(.known))]
    SeveralOutputs {
        /// The outputs.
        known: Vec<String>,
    },
    /// An output with numbers of every particle.
    #[error("score: the output `{output}` has an axis of particles, and not the same numbers of each event")]
    OutputOfParticles {
        /// The output.
        output: String,
    },
    /// A column that the output does not have.
    #[error("score: the output `{output}` has {n_columns} numbers of an event, and no column {column}")]
    Column {
        /// The output.
        output: String,
        /// What was asked for, from 0.
        column: usize,
        /// What there are.
        n_columns: usize,
    },
    /// A fraction of a class that is not one.
    #[error("score: the fraction of column {column} is {fraction}, and must be above 0 and finite")]
    Fraction {
        /// The class.
        column: usize,
        /// Its fraction.
        fraction: f64,
    },
    /// A ratio to nothing.
    #[error("score: a log ratio needs classes to compare with, and there are none")]
    NoClasses,
    /// A score that is not a number.
    #[error("the score of event {event} is NaN")]
    Score {
        /// Which, from 0.
        event: usize,
    },
    /// More or fewer weights than events.
    #[error("there are {found} weights, and {expected} events")]
    Weights {
        /// The weights.
        found: usize,
        /// The events.
        expected: usize,
    },
    /// A weight that cannot be added.
    #[error("the weight of event {event} is {weight}, and its square must be finite")]
    Weight {
        /// Which, from 0.
        event: usize,
        /// What it is.
        weight: f64,
    },
    /// Varied inputs of another number of events.
    #[error("its inputs have {found} events, and there are {expected}")]
    Events {
        /// Those of the variation.
        found: usize,
        /// Those of the nominal inputs.
        expected: usize,
    },
    /// A variation that varies nothing.
    #[error("it has neither inputs nor weights of its own")]
    Unchanged,
    /// A name of several variations, or the name of the nominal histogram.
    #[error("the name is taken")]
    Taken,
    /// A variation of earlier events that these do not have.
    #[error("it is not given, and earlier events have it")]
    Missing,
    /// A variation that earlier events do not have.
    #[error("earlier events do not have it")]
    New,
}

impl HistogramProblem {
    /// Returns one line of advice, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            HistogramProblem::Score { .. } => {
                Some("an event without particles has no score; events of weight 0 are not computed")
            }
            HistogramProblem::Missing | HistogramProblem::New => Some(
                "all events have the same variations; one that does not change some events repeats their nominal weights",
            ),
            _ => None,
        }
    }
}
