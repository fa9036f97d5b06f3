//! Encoders of events: transformers, and whatever else is made of their operators, from ONNX files,
//! and some families from safetensors.
//!
//! [`Encoder`] is a model; it is immutable, and threads share it in an `Arc`. [`EncoderScratch`] is
//! the memory of one thread: plans for the shapes that it has seen, and buffers. A plan resolves
//! every shape, so that what is left of the graph is arithmetic.
//!
//! Every event's numbers are the same bits for any batch, order and number of threads: each output
//! of a product is one chain of multiply-adds along the inner axis, sums add element i to lane
//! i mod 16, and no kernel looks at a neighbour. Numbers behind a mask do not change a bit either
//! if they stay finite in the model: their weights are exact zeros.
//!
//! A device computes the same plans ([`Encoder::on_device`]), with kernels of its own.

mod batch;
mod checkpoint;
mod device;
mod events;
mod fuse;
mod gradients;
mod graph;
mod histograms;
mod kernels;
mod lower;
mod memory;
mod onnx;
mod origin;
mod plan;
mod ragged;
mod run;
mod shapes;
mod simplify;
mod storage;
mod tensor;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ns_device::{Backend, Device};

pub use batch::{EncodeOptions, ScratchPool};
use device::EncoderDevice;
pub use gradients::{Cotangent, EncoderGradients, GradientTarget, InputGradient};
pub use graph::Dimension;
use graph::{Graph, Op, Port};
pub use histograms::{
    ClassFraction, EventWeights, FillOptions, Flow, Score, ScoreHistogram, ScoreHistograms, ScoreTransform, Variation,
    WeightedEvents,
};
pub use onnx::read_tensor;
use plan::Builder;
pub use plan::EncoderPrecision;
pub use ragged::{Column, EncoderEvents, Offsets, RaggedInput};
pub use run::{EncoderInput, EncoderOutput, EncoderScratch, InputValues, OutputValues};
pub use storage::WeightStorage;
use tensor::{Data, Kind, Tensor};

use crate::error::{Error, InputProblem};
use crate::preference::BackendPreference;
use crate::simd::InstructionSet;

/// A model that turns events into numbers.
///
/// ```
/// use torchless::encoder::{Encoder, EncoderInput, EncoderScratch, InputValues};
///
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/encoders");
/// # std::env::set_current_dir(folder)?;
/// let model = Encoder::open("mlp.onnx")?; // 3 features in, 2 logits out
/// let mut scratch = EncoderScratch::new();
/// let x = EncoderInput { name: "x", shape: &[1, 3], values: InputValues::F32(&[0.5, -1.0, 2.0]) };
/// let outputs = model.run(&mut scratch, &[x])?;
/// assert_eq!(outputs[0].name, "logits");
/// assert_eq!(outputs[0].shape, [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Encoder {
    architecture: &'static str,
    graph: Graph,
    precision: EncoderPrecision,
    weights: WeightStorage,
    isa: InstructionSet,
    /// Nodes of the file, or of the graph that was made of weights.
    n_nodes: usize,
    /// By which plans know their model.
    identity: Arc<()>,
    /// What gradients need of the weights.
    transposes: kernels::backward::Transposes,
    /// What computes instead of the CPU.
    device: Option<EncoderDevice>,
}

/// How a model is opened.
#[derive(Debug, Clone, Default)]
pub struct EncoderOptions {
    /// What is computed in single precision.
    pub precision: EncoderPrecision,
    /// How matrices are stored; double precision has single precision only.
    pub weights: WeightStorage,
    /// Inputs that are always the same; they may decide on shapes. The model has one input less for
    /// each.
    pub fixed: Vec<FixedInput>,
    /// What computes: by default the CPU. Devices have single precision, and weights of it.
    pub device: BackendPreference,
}

/// An input that is always the same.
#[derive(Debug, Clone)]
pub struct FixedInput {
    /// Its name in the model.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its numbers; integers and truth values are numbers, too.
    pub values: Vec<f64>,
}

/// What a model says of an input or an output.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderPort {
    /// Its name.
    pub name: String,
    /// What its elements are: `numbers`, `integers` or `truth values`.
    pub elements: &'static str,
    /// Its shape, if the model declares one.
    pub dimensions: Option<Vec<Dimension>>,
}

impl Encoder {
    /// Opens a model for single precision: an ONNX file (opsets 13 to 21), a folder with
    /// `config.json` and `model.safetensors`, or a `.safetensors` file beside its `config.json`.
    ///
    /// # Errors
    ///
    /// A file that breaks its format, and an operator, an attribute or a type that is not
    /// supported: the error names the node. Of a configuration the error names the field, and of
    /// weights the tensor: one that is missing, superfluous, or of another shape, or that has a
    /// number that is not finite.
    pub fn open(path: impl AsRef<Path>) -> Result<Encoder, Error> {
        Encoder::open_with(path, &EncoderOptions::default())
    }

    /// Opens a model as `options` say.
    ///
    /// # Errors
    ///
    /// Those of [`Encoder::open`], fixed inputs that the model does not have, and weights that
    /// cannot be stored as `options` say: the error names the tensor. A device that is not there,
    /// and what [`Encoder::on_device`] refuses.
    pub fn open_with(path: impl AsRef<Path>, options: &EncoderOptions) -> Result<Encoder, Error> {
        let (architecture, graph) = match checkpoint::is_checkpoint(path.as_ref()) {
            true => checkpoint::read(path.as_ref()).map(|read| (read.model_type, read.graph))?,
            false => ("onnx", onnx::read(path.as_ref())?),
        };
        let encoder = Encoder::of_graph(graph, options, InstructionSet::best())?;
        if let Some(backend) = options.device.backend() {
            check_options_of_device(backend, options)?;
        }
        let encoder = match open_device(options.device)? {
            Some(device) => encoder.on_device(&device)?,
            None => encoder,
        };
        memory::give_back();
        Ok(Encoder { architecture, ..encoder })
    }

    /// Returns the model computed on a device, as [`crate::device::open`] gives it.
    ///
    /// Its weights are uploaded when they are needed first. Where an operator without a kernel
    /// depends on shapes, it is refused when events have such shapes.
    ///
    /// # Errors
    ///
    /// An operator that has no kernel, by its node; a model of double precision, or with weights
    /// that are not stored in single precision; a device that computes something else than the CPU.
    ///
    /// ```
    /// # #[cfg(feature = "emulated")] {
    /// use torchless::backend::Backend;
    /// use torchless::encoder::{Encoder, EncoderInput, EncoderScratch, InputValues};
    ///
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/encoders"))?;
    /// let device = torchless::device::open(Backend::Emulated, 0)?; // or Backend::Cuda
    /// let model = Encoder::open("mlp.onnx")?.on_device(&device)?;
    /// let x = EncoderInput { name: "x", shape: &[1, 3], values: InputValues::F32(&[0.5, -1.0, 2.0]) };
    /// let outputs = model.run(&mut EncoderScratch::new(), &[x])?;
    /// assert_eq!(outputs[0].shape, [1, 2]);
    /// assert!(device.counters().launches > 0);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_device(self, device: &Device) -> Result<Encoder, Error> {
        let backend = device.backend();
        let options = EncoderOptions { precision: self.precision, weights: self.weights, ..EncoderOptions::default() };
        check_options_of_device(backend, &options)?;
        device.check_fits(self.weight_bytes() as u64)?;
        let there = EncoderDevice::new(device, &self.graph)?;
        // Shapes that the model does not take are refused when events have them.
        if let Some(shapes) = self.example_shapes()
            && let Ok(plan) = Builder::new(self.precision, self.isa).plan(&self.graph, &shapes)
        {
            there.plan(&plan)?;
        }
        // Scratches that have computed elsewhere have plans of this identity.
        Ok(Encoder { device: Some(there), identity: Arc::default(), ..self })
    }

    /// Returns shapes that inputs may have, if the model declares them.
    fn example_shapes(&self) -> Option<Vec<Vec<usize>>> {
        let size = |(axis, dimension): (usize, &Dimension)| match dimension {
            Dimension::Fixed(size) => *size,
            Dimension::Named(_) => [2, 8][usize::from(axis > 0)],
        };
        let shape = |port: &Port| Some(port.dimensions.as_ref()?.iter().enumerate().map(size).collect());
        self.graph.inputs.iter().map(shape).collect()
    }

    /// Returns whether `path` is one that [`Encoder::open`] reads, by its name and, of safetensors,
    /// by the `model_type` of its configuration.
    pub fn is_model(path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        path.extension().is_some_and(|extension| extension == "onnx") || checkpoint::is_encoder(path)
    }

    fn of_graph(mut graph: Graph, options: &EncoderOptions, isa: InstructionSet) -> Result<Encoder, Error> {
        let EncoderOptions { precision, weights, .. } = *options;
        if precision == EncoderPrecision::Double && weights != WeightStorage::F32 {
            return Err(Error::StorageOfDouble { storage: weights.name() });
        }
        let n_nodes = graph.nodes.len();
        options.fixed.iter().try_for_each(|fixed| fix(&mut graph, fixed))?;
        simplify::convert_constants(&mut graph, precision);
        simplify::share(&mut graph);
        simplify::evaluate_constants(&mut graph, precision, isa)?;
        simplify::share(&mut graph);
        fuse::activations(&mut graph);
        fuse::angles(&mut graph);
        fuse::delay_gathers(&mut graph);
        simplify::share(&mut graph);
        simplify::prune(&mut graph);
        fuse::softmax_sums(&mut graph);
        fuse::products(&mut graph, precision, weights)?;
        simplify::prune(&mut graph);
        graph.tensor_names.clear();
        Ok(Encoder {
            architecture: "onnx",
            graph,
            precision,
            weights,
            isa,
            n_nodes,
            identity: Arc::default(),
            transposes: Default::default(),
            device: None,
        })
    }

    /// Returns the model computed with another instruction set, for tests and measurements.
    #[must_use]
    pub fn with_instruction_set(mut self, isa: InstructionSet) -> Encoder {
        self.isa = isa;
        self
    }

    /// Returns `onnx`, or the `model_type` of the configuration.
    pub fn architecture(&self) -> &'static str {
        self.architecture
    }

    /// Returns what the model wants.
    pub fn inputs(&self) -> Vec<EncoderPort> {
        self.graph.inputs.iter().map(EncoderPort::of).collect()
    }

    /// Returns what the model answers with.
    pub fn outputs(&self) -> Vec<EncoderPort> {
        self.graph.outputs.iter().map(EncoderPort::of).collect()
    }

    /// Returns the numbers in which it computes.
    pub fn precision(&self) -> EncoderPrecision {
        self.precision
    }

    /// Returns how its matrices are stored.
    pub fn weights(&self) -> WeightStorage {
        self.weights
    }

    /// Returns whether products are computed with rounded inputs: only if it was asked for.
    pub fn is_approximate(&self) -> bool {
        self.weights.is_approximate()
    }

    /// Returns the device that computes it, if that is not the CPU.
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref().map(EncoderDevice::device)
    }

    /// Returns the name of what computes it: `cpu`, or that of a backend.
    pub fn device_name(&self) -> &'static str {
        self.device().map_or(BackendPreference::Cpu.name(), |device| device.backend().name())
    }

    /// Returns the number of nodes in the file, and of those that are left.
    pub fn n_nodes(&self) -> [usize; 2] {
        [self.n_nodes, self.graph.nodes.len()]
    }

    /// Returns the bytes of its weights as they are kept; those that only gradients need count when
    /// they were computed.
    pub fn weight_bytes(&self) -> usize {
        let constants = self.graph.constants.values().map(|tensor| tensor.data.n_bytes());
        // Several nodes may share a matrix.
        let mut stored: HashMap<usize, usize> = HashMap::new();
        for node in &self.graph.nodes {
            match &node.op {
                Op::Linear { weights, .. } => stored.insert(Arc::as_ptr(weights).addr(), weights.n_bytes()),
                Op::TableRows { table } => stored.insert(Arc::as_ptr(table).addr(), table.n_bytes()),
                _ => None,
            };
        }
        constants.sum::<usize>() + stored.into_values().sum::<usize>() + self.transposes.n_bytes()
    }
}

impl EncoderPort {
    fn of(port: &Port) -> EncoderPort {
        EncoderPort { name: port.name.clone(), elements: port.kind.name(), dimensions: port.dimensions.clone() }
    }
}

/// Refuses what devices do not compute.
fn check_options_of_device(backend: Backend, options: &EncoderOptions) -> Result<(), Error> {
    let what = match (options.precision, options.weights) {
        (EncoderPrecision::Double, _) => "double precision",
        (_, WeightStorage::F32) => return Ok(()),
        _ => "weights that are not stored in single precision",
    };
    Err(Error::EncoderOnCpuOnly { what, device: backend.name() })
}

/// Opens the device that `preference` names; `None` is the processor. The kernels of decoders are
/// neither tested nor compiled: those of encoders are other ones, with a test of their own.
pub(crate) fn open_device(preference: BackendPreference) -> Result<Option<Device>, Error> {
    let Some(backend) = preference.backend() else { return Ok(None) };
    let device = crate::device::open_untested(backend, 0);
    device.map(Some).map_err(|error| Error::NoBackend { preference, why: error.to_string() })
}

/// Makes a constant of an input.
fn fix(graph: &mut Graph, fixed: &FixedInput) -> Result<(), Error> {
    let refuse = |problem| Error::EncoderInput { name: fixed.name.clone(), problem };
    let place = graph.inputs.iter().position(|port| port.name == fixed.name);
    let place = place.ok_or_else(|| refuse(InputProblem::Unknown))?;
    run::check_shape(&graph.inputs[place], &fixed.shape, fixed.values.len()).map_err(refuse)?;
    let port = graph.inputs.remove(place);
    let data = match port.kind {
        Kind::Float => Data::F64(fixed.values.clone()),
        kind => Data::Int(integers(kind, &fixed.values).map_err(refuse)?),
    };
    let tensor = Tensor { kind: port.kind, shape: fixed.shape.clone(), data };
    graph.constants.insert(port.value, tensor.into());
    Ok(())
}

/// Returns numbers as integers or truth values, if they are those.
fn integers(kind: Kind, values: &[f64]) -> Result<Vec<i64>, InputProblem> {
    let fits = |value: f64| match kind {
        Kind::Bool => value == 0.0 || value == 1.0,
        // Conversions saturate, and the upper limit is not an integer of 64 bits.
        _ => value as i64 as f64 == value && value < i64::MAX as f64,
    };
    let convert = |(place, &value): (usize, &f64)| match fits(value) {
        true => Ok(value as i64),
        false => Err(InputProblem::Value { place, value, expected: kind.name() }),
    };
    values.iter().enumerate().map(convert).collect()
}
