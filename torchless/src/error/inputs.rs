//! What can be wrong with an input of an encoder.

/// Why an encoder does not take an input.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InputProblem {
    /// The model needs it, and it is not given.
    #[error("it is not given")]
    Missing,
    /// The model has no input of this name.
    #[error("the model has no such input")]
    Unknown,
    /// Its elements are of another type.
    #[error("it must be made of {expected}")]
    Kind {
        /// What it must be made of.
        expected: &'static str,
    },
    /// Its shape is another.
    #[error("its shape is {found:?}, and the model declares {declared}")]
    Shape {
        /// What it is.
        found: Vec<usize>,
        /// What the model declares.
        declared: String,
    },
    /// It has more or fewer numbers than its shape says.
    #[error("it has {found} numbers, and {expected} are needed")]
    Length {
        /// What it has.
        found: usize,
        /// What its shape says.
        expected: usize,
    },
    /// A mask whose last axis has no name in the model.
    #[error("its last axis has no name, so the axes of particles are not known")]
    NoParticles,
    /// It has another number of events than an input before it.
    #[error("it has {found} events, and other inputs have {expected}")]
    Events {
        /// What it has.
        found: usize,
        /// What the others have.
        expected: usize,
    },
    /// An output whose shape differs between groups of events, so that they cannot be joined.
    #[error("the shape of this output depends on the events: {found:?} and {expected:?}")]
    Output {
        /// That of some events.
        found: Vec<usize>,
        /// That of others.
        expected: Vec<usize>,
    },
    /// An output of all events that is too large: one long event makes it long for all.
    #[error("there is no memory for this output of shape {shape:?}")]
    OutputMemory {
        /// That of all events.
        shape: Vec<usize>,
    },
    /// It is given more than once.
    #[error("it is given more than once")]
    Twice,
    /// It has another number of particles than the padded inputs before it.
    #[error("its axis of particles has the size {found}, and that of other inputs {expected}")]
    ParticleSize {
        /// What it has.
        found: usize,
        /// What the others have.
        expected: usize,
    },
    /// It has events, and no number in any of them.
    #[error("it has {n_events} events, and no numbers")]
    NoNumbers {
        /// Its events.
        n_events: usize,
    },
    /// A number of a fixed input that its kind does not have.
    #[error("number {place} is {value}, and it must be made of {expected}")]
    Value {
        /// Which, from 0.
        place: usize,
        /// What it is.
        value: f64,
        /// What the model declares.
        expected: &'static str,
    },
    /// An index, such as that of a token, that a node does not have.
    #[error("{} to the index {index} at node `{node}` ({operator}), which has {size}", leads(*.event))]
    Index {
        /// The event, from 0, if it is known which.
        event: Option<usize>,
        /// The index; negative ones count from the end.
        index: i64,
        /// How many there are to choose from.
        size: usize,
        /// The node's name.
        node: String,
        /// The node's operator.
        operator: String,
    },
    /// A mask that is 0 for particles and 1 for padding.
    #[error("it is 1 only where all other inputs are 0, and 0 where they are not")]
    Inverted,
    /// It is ragged, and the model does not say which of its axes is that of particles.
    #[error("it is ragged, and the model's shape of it does not have one axis of particles")]
    NoParticleAxis,
    /// It has an axis of particles and one length for all events, and other inputs are ragged.
    #[error("it has an axis of particles, and must be ragged as other inputs are")]
    NotRagged,
    /// It has another number of columns than the model.
    #[error("each particle has {found} numbers, and the model declares {declared}")]
    Columns {
        /// What it has.
        found: usize,
        /// What the model declares.
        declared: String,
    },
    /// It has no offsets, not even that of no events.
    #[error("it has no offsets; of E events there are E + 1")]
    NoOffsets,
    /// Offsets that decrease, or that are negative.
    #[error("offset {place} is {offset}, and must be at least {least}")]
    Offset {
        /// Which, from 0.
        place: usize,
        /// What it is.
        offset: i64,
        /// What it must be at least.
        least: i64,
    },
    /// Offsets that leave the particles.
    #[error("it has {found} particles, and its offsets end at {expected}")]
    TooFewParticles {
        /// What it has.
        found: usize,
        /// The last offset.
        expected: i64,
    },
    /// An event with another number of particles than in a ragged input before it.
    #[error("event {event} has {found} particles, and {expected} in other inputs")]
    Particles {
        /// Which, from 0.
        event: usize,
        /// What it has.
        found: usize,
        /// What the others have.
        expected: usize,
    },
}

impl InputProblem {
    /// Returns one line of advice, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            InputProblem::Missing | InputProblem::Unknown => Some("`torchless info` lists the inputs of a model"),
            InputProblem::Inverted => Some("the mask is 1 for particles, and 0 for padding behind them"),
            InputProblem::OutputMemory { .. } => Some("give fewer events in one call"),
            InputProblem::NoParticleAxis => {
                Some("name the mask, or give the axis of particles a name in `dynamic_axes` when the model is exported")
            }
            _ => None,
        }
    }
}

/// Returns what leads to an index: an event, or the whole input.
fn leads(event: Option<usize>) -> String {
    event.map_or("it leads".to_owned(), |event| format!("event {event} leads"))
}
