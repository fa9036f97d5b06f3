//! A model for inputs of given shapes: a list of steps with every shape, place and buffer decided.
//!
//! What depends on shapes and constants only is computed here, once, and kept as a constant.
//! Reshaping, transposing, slicing and broadcasting become views; only arithmetic becomes a step.

use std::collections::HashMap;
use std::sync::Arc;

use super::graph::{Graph, Node, ValueId};
use super::kernels::{self, Arg, Kernel, KernelScratch};
use super::tensor::{Class, Data, Kind, Tensor, View};
use crate::error::{Error, NodeProblem};
use crate::simd::InstructionSet;

/// The most elements of a tensor, and of all buffers of a plan: a gigabyte at most.
pub(super) const MOST_ELEMENTS: usize = 1 << 27;

/// Where the numbers of a value are.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Constant(Arc<Tensor>),
    /// What a step, or the caller, writes.
    Slot(usize),
}

/// A value while a plan is made.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) source: Source,
    pub(super) view: View,
    pub(super) kind: Kind,
    pub(super) class: Class,
}

impl Value {
    pub(super) fn constant(tensor: Arc<Tensor>) -> Value {
        let (view, kind, class) = (tensor.view(), tensor.kind, tensor.data.class());
        Value { source: Source::Constant(tensor), view, kind, class }
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.view.shape
    }

    /// Returns the same numbers seen through another view.
    pub(super) fn seen(&self, view: View) -> Value {
        Value { view, ..self.clone() }
    }

    pub(super) fn is_constant(&self) -> bool {
        matches!(self.source, Source::Constant(_))
    }

    /// Returns the integers of a constant.
    pub(super) fn ints(&self) -> Option<Vec<i64>> {
        match &self.source {
            Source::Constant(tensor) => match &tensor.data {
                Data::Int(values) => Some(self.view.places().map(|place| values[place]).collect()),
                _ => None,
            },
            Source::Slot(_) => None,
        }
    }

    /// Returns the numbers of a constant.
    pub(super) fn numbers(&self) -> Option<Vec<f64>> {
        let Source::Constant(tensor) = &self.source else { return None };
        let values = tensor.to_f64();
        Some(self.view.places().map(|place| values[place]).collect())
    }
}

/// One thing to compute.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) kernel: Kernel,
    pub(super) args: Vec<(Source, View)>,
    pub(super) out: usize,
    pub(super) out_view: View,
    /// The node that it is a part of.
    pub(super) node: usize,
}

/// What is to be computed for inputs of some shapes.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// The buffer of each slot.
    pub(super) buffer_of: Vec<usize>,
    pub(super) buffers: Vec<(Class, usize)>,
    /// The slots of the inputs.
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<Value>,
    pub(super) nodes: Vec<(Arc<str>, Arc<str>)>,
    /// Bytes of the plan itself, about.
    pub(super) n_bytes: usize,
}

/// A slot while a plan is made.
#[derive(Debug, Clone, Copy)]
struct Slot {
    class: Class,
    length: usize,
}

/// The numbers that floating-point values are computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncoderPrecision {
    /// Single precision; what comes before the first product, normalisation or softmax is computed
    /// in double precision and rounded once: features of pairs of particles are differences of
    /// large numbers.
    #[default]
    Single,
    /// Double precision throughout, by plain loops: a reference, and slow.
    Double,
}

impl EncoderPrecision {
    /// Returns the class of products and of what follows them.
    pub(super) fn class(self) -> Class {
        match self {
            EncoderPrecision::Single => Class::F32,
            EncoderPrecision::Double => Class::F64,
        }
    }
}

/// A plan in the making.
pub(super) struct Builder {
    pub(super) precision: EncoderPrecision,
    isa: InstructionSet,
    pub(super) values: HashMap<ValueId, Value>,
    steps: Vec<Step>,
    slots: Vec<Slot>,
    inputs: Vec<usize>,
    nodes: Vec<(Arc<str>, Arc<str>)>,
    scratch: KernelScratch,
    /// Elements of constants that were computed.
    n_computed: usize,
}

impl Builder {
    pub(super) fn new(precision: EncoderPrecision, isa: InstructionSet) -> Builder {
        Builder {
            precision,
            isa,
            values: HashMap::new(),
            steps: Vec::new(),
            slots: Vec::new(),
            inputs: Vec::new(),
            nodes: Vec::new(),
            scratch: KernelScratch::default(),
            n_computed: 0,
        }
    }

    /// Plans `graph` for inputs of `shapes`.
    pub(super) fn plan(mut self, graph: &Graph, shapes: &[Vec<usize>]) -> Result<Plan, Error> {
        for (port, shape) in graph.inputs.iter().zip(shapes) {
            // Before the first product everything is in double precision.
            let class = kernels::class(port.kind, Class::F64);
            let slot = self.slot(class, shape.iter().product());
            self.inputs.push(slot);
            let value = Value { source: Source::Slot(slot), view: View::contiguous(shape), kind: port.kind, class };
            self.values.insert(port.value, value);
        }
        for node in &graph.nodes {
            self.lower(graph, node)?;
        }
        let outputs = graph.outputs.iter().map(|port| {
            let value = self.value(graph, port.value);
            value.ok_or_else(|| Error::node(&port.name, "output", NodeProblem::Input { index: 0 }))
        });
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        self.finish(outputs)
    }

    /// Returns a value that was computed, or a constant of the model.
    pub(super) fn value(&self, graph: &Graph, id: ValueId) -> Option<Value> {
        let constant = || graph.constants.get(&id).map(|tensor| Value::constant(Arc::clone(tensor)));
        self.values.get(&id).cloned().or_else(constant)
    }

    /// Adds the steps of a node.
    pub(super) fn lower(&mut self, graph: &Graph, node: &Node) -> Result<(), Error> {
        self.nodes.push((Arc::clone(&node.name), Arc::clone(&node.operator)));
        let lowered = self.lower_operator(graph, node);
        lowered.map_err(|problem| match problem {
            Refusal::Here(problem) => Error::node(&node.name, &node.operator, problem),
            Refusal::Inside(error) => *error,
        })
    }

    fn slot(&mut self, class: Class, length: usize) -> usize {
        self.slots.push(Slot { class, length });
        self.slots.len() - 1
    }

    /// Adds a step, or computes it now if all of its inputs are constants.
    pub(super) fn push(
        &mut self,
        kernel: Kernel,
        args: &[Value],
        shape: &[usize],
        kind: Kind,
        class: Class,
    ) -> Lowered {
        let view = View::contiguous(shape);
        let length = shape.iter().try_fold(1_usize, |length, &size| length.checked_mul(size));
        let too_large = || NodeProblem::TooLarge { shape: format!("{shape:?}"), limit: MOST_ELEMENTS };
        let length = length.filter(|&length| length <= MOST_ELEMENTS).ok_or_else(too_large)?;
        if args.iter().all(Value::is_constant) {
            self.n_computed += length;
            if self.n_computed > MOST_ELEMENTS {
                return Err(too_large().into());
            }
            return self.compute(&kernel, args, view, kind, class);
        }
        let out = self.slot(class, length);
        let args = args.iter().map(|value| (value.source.clone(), value.view.clone())).collect();
        self.steps.push(Step { kernel, args, out, out_view: view.clone(), node: self.nodes.len() - 1 });
        Ok(Value { source: Source::Slot(out), view, kind, class })
    }

    fn compute(&mut self, kernel: &Kernel, args: &[Value], view: View, kind: Kind, class: Class) -> Lowered {
        let mut data = Data::zeros(class, view.len());
        let constants = args.iter().filter_map(|value| match &value.source {
            Source::Constant(tensor) => Some(Arg { data: tensor.data.borrow(), view: &value.view }),
            Source::Slot(_) => None,
        });
        let constants: Vec<Arg<'_>> = constants.collect();
        let done = kernels::run(kernel, self.isa, &mut self.scratch, &constants, &mut data, &view);
        done.map_err(NodeProblem::from)?;
        Ok(Value::constant(Arc::new(Tensor { kind, shape: view.shape, data })))
    }

    /// Decides which slots share a buffer: a buffer is free after the last step that reads it.
    fn finish(self, outputs: Vec<Value>) -> Result<Plan, Error> {
        let mut last = vec![0; self.slots.len()];
        for (index, step) in self.steps.iter().enumerate() {
            for (source, _) in &step.args {
                if let Source::Slot(slot) = source {
                    last[*slot] = index;
                }
            }
        }
        for value in &outputs {
            if let Source::Slot(slot) = value.source {
                last[slot] = usize::MAX;
            }
        }
        let mut buffers = Buffers::default();
        let mut buffer_of = vec![usize::MAX; self.slots.len()];
        for &slot in &self.inputs {
            buffer_of[slot] = buffers.take(self.slots[slot]);
        }
        for (index, step) in self.steps.iter().enumerate() {
            buffer_of[step.out] = buffers.take(self.slots[step.out]);
            let mut read: Vec<usize> = step.args.iter().filter_map(|(source, _)| source.slot()).collect();
            read.push(step.out);
            read.sort_unstable();
            read.dedup();
            for slot in read.into_iter().filter(|&slot| last[slot] <= index) {
                buffers.free.push(buffer_of[slot]);
            }
        }
        let total: usize = buffers.sizes.iter().map(|(_, length)| length).sum();
        if total > MOST_ELEMENTS {
            let (name, operator) = self.nodes.last().cloned().unwrap_or_default();
            let problem = NodeProblem::TooLarge { shape: format!("[{total}]"), limit: MOST_ELEMENTS };
            return Err(Error::node(&name, &operator, problem));
        }
        let n_bytes = self.steps.iter().map(Step::n_bytes).sum::<usize>();
        let Builder { steps, inputs, nodes, .. } = self;
        Ok(Plan { steps, buffer_of, buffers: buffers.sizes, inputs, outputs, nodes, n_bytes })
    }
}

impl Source {
    fn slot(&self) -> Option<usize> {
        match self {
            Source::Slot(slot) => Some(*slot),
            Source::Constant(_) => None,
        }
    }
}

impl Step {
    fn n_bytes(&self) -> usize {
        let constants = self.args.iter().map(|(source, view)| match source {
            // Constants of the model have other owners, too.
            Source::Constant(tensor) if Arc::strong_count(tensor) == 1 => tensor.data.n_bytes(),
            _ => 48 * view.shape.len(),
        });
        let points = match &self.kernel {
            Kernel::Scatter { points, .. } => points.len() * 8,
            _ => 0,
        };
        constants.sum::<usize>() + points + 256
    }
}

/// Buffers that slots share.
#[derive(Default)]
struct Buffers {
    sizes: Vec<(Class, usize)>,
    free: Vec<usize>,
}

impl Buffers {
    /// Takes the free buffer that fits best, or the largest one and lets it grow, or a new one.
    fn take(&mut self, slot: Slot) -> usize {
        let fits = |&(_, buffer): &(usize, usize)| {
            let length = self.sizes[buffer].1;
            (length < slot.length, length.abs_diff(slot.length))
        };
        let free = self.free.iter().copied().enumerate().filter(|&(_, buffer)| self.sizes[buffer].0 == slot.class);
        match free.min_by_key(fits) {
            Some((place, buffer)) => {
                self.free.swap_remove(place);
                self.sizes[buffer].1 = self.sizes[buffer].1.max(slot.length);
                buffer
            }
            None => {
                self.sizes.push((slot.class, slot.length));
                self.sizes.len() - 1
            }
        }
    }
}

/// Why a node has no steps.
pub(super) enum Refusal {
    /// It is refused itself.
    Here(NodeProblem),
    /// A node inside it is.
    Inside(Box<Error>),
}

impl From<NodeProblem> for Refusal {
    fn from(problem: NodeProblem) -> Refusal {
        Refusal::Here(problem)
    }
}

/// A value, or why there is none.
pub(super) type Lowered = Result<Value, Refusal>;
