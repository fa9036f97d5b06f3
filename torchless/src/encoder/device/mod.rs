//! Encoders on a device: the steps of a plan as launches of kernels of one text, in single
//! precision.
//!
//! Constants are uploaded once; inputs and outputs cross, and what is between stays on the device.
//! Launches of one call are queued one after another, and only the copies of the outputs wait.

mod kernels;
mod launches;
mod layout;
mod memory;
mod operations;
mod self_test;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ns_device::{Device, KernelArgument, LaunchDims, Precision};

pub(super) use launches::DevicePlan;
use launches::{Input, LANES, Launch, Output, StepFault};
pub(super) use memory::require_range;
use memory::{Memory, Shared};

use super::graph::Graph;
use super::kernels::linear::PackedMatrix;
use super::plan::{Plan, Source};
use super::run::EncoderInput;
use super::tensor::{Data, Tensor};
use crate::error::{Error, NodeProblem};

/// A model's place on a device.
#[derive(Debug)]
pub(super) struct EncoderDevice {
    device: Device,
    /// Constants of the model, which many plans use.
    of_model: HashSet<usize>,
    resident: Mutex<Resident>,
    /// Held by the call whose launches are queued.
    turn: Mutex<()>,
}

/// What was uploaded, by the addresses of what is kept on the host.
#[derive(Debug, Default)]
struct Resident {
    tensors: HashMap<usize, (Arc<Tensor>, Shared)>,
    matrices: HashMap<usize, (Arc<PackedMatrix>, Shared)>,
}

fn address<T>(shared: &Arc<T>) -> usize {
    Arc::as_ptr(shared).addr()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EncoderDevice {
    /// Takes a device of single precision whose kernels compute what the CPU does.
    pub(super) fn new(device: &Device, graph: &Graph) -> Result<EncoderDevice, Error> {
        // Kernels of another precision would take buffers for longer than they are.
        if device.precision() != Precision::Single {
            return Err(Error::NotSinglePrecision { precision: device.precision() });
        }
        self_test::once(device)?;
        let of_model = graph.constants.values().map(address).collect();
        Ok(EncoderDevice { of_model, ..EncoderDevice::untested(device) })
    }

    /// Takes a device as it is.
    fn untested(device: &Device) -> EncoderDevice {
        let of_model = HashSet::new();
        EncoderDevice { device: device.clone(), of_model, resident: Mutex::default(), turn: Mutex::default() }
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Returns a constant on the device: of the model, it stays there.
    fn constant(&self, tensor: &Arc<Tensor>) -> Result<Result<Shared, NodeProblem>, Error> {
        let mut resident = lock(&self.resident);
        if let Some((_, memory)) = resident.tensors.get(&address(tensor)) {
            return Ok(Ok(Arc::clone(memory)));
        }
        let memory = match Memory::of(&self.device, tensor.data.borrow())? {
            Ok(memory) => Arc::new(memory),
            Err(problem) => return Ok(Err(problem)),
        };
        if self.of_model.contains(&address(tensor)) {
            resident.tensors.insert(address(tensor), (Arc::clone(tensor), Arc::clone(&memory)));
        }
        Ok(Ok(memory))
    }

    /// Returns a constant right factor on the device, (rows, columns); None if it is not stored in
    /// single precision.
    fn matrix(&self, matrix: &Arc<PackedMatrix>) -> Result<Option<Shared>, Error> {
        let mut resident = lock(&self.resident);
        if let Some((_, memory)) = resident.matrices.get(&address(matrix)) {
            return Ok(Some(Arc::clone(memory)));
        }
        let Some(values) = matrix.rows_of_f32() else { return Ok(None) };
        let memory = Arc::new(Memory::Reals(self.device.upload(&values)?));
        resident.matrices.insert(address(matrix), (Arc::clone(matrix), Arc::clone(&memory)));
        Ok(Some(memory))
    }

    /// Makes the launches of a plan.
    ///
    /// # Errors
    ///
    /// A step without a kernel, by its node; no memory.
    pub(super) fn plan(&self, plan: &Plan) -> Result<DevicePlan, Error> {
        DevicePlan::of(self, plan)
    }

    /// Computes the outputs of a plan: the memory of their slots, as far as it is needed.
    pub(super) fn run(
        &self,
        plan: &Plan,
        planned: &DevicePlan,
        inputs: &[&EncoderInput<'_>],
    ) -> Result<HashMap<usize, Data>, Error> {
        let _turn = lock(&self.turn);
        let room = |&(class, length): &(_, usize)| Memory::room(&self.device, class, length).map(Some);
        let mut buffers = plan.buffers.iter().map(room).collect::<Result<Vec<_>, _>>()?;
        for (input, &slot) in inputs.iter().zip(&plan.inputs) {
            if let Some(buffer) = &mut buffers[plan.buffer_of[slot]] {
                buffer.write(input.name, input.values)?;
            }
        }
        let mut faults = Memory::Words(self.device.uninitialised(planned.faults.len())?);
        for launch in &planned.launches {
            self.launch(planned, launch, &mut buffers, &mut faults)?;
        }
        let mut outputs = HashMap::new();
        for value in &plan.outputs {
            let Source::Slot(slot) = value.source else { continue };
            if let Some(buffer) = &buffers[plan.buffer_of[slot]] {
                let longest = |data: &Data| data.len() >= memory::reach(&value.view);
                if !outputs.get(&slot).is_some_and(longest) {
                    outputs.insert(slot, buffer.read(value.class, &value.view)?);
                }
            }
        }
        check_faults(plan, planned, &faults)?;
        Ok(outputs)
    }

    fn launch(
        &self,
        planned: &DevicePlan,
        launch: &Launch,
        buffers: &mut [Option<Memory>],
        faults: &mut Memory,
    ) -> Result<(), Error> {
        // The output is taken out, so that inputs can be borrowed meanwhile.
        let mut taken = match launch.output {
            Output::Buffer(buffer) => buffers[buffer].take(),
            Output::Faults => None,
        };
        let mut arguments = vec![KernelArgument::uints(&launch.words)];
        for input in &launch.inputs {
            let memory = match *input {
                Input::Views => Some(&planned.views),
                Input::Buffer(buffer) => buffers[buffer].as_ref(),
                Input::Constant(constant) => Some(&*planned.constants[constant]),
            };
            arguments.extend(memory.map(Memory::read_argument));
        }
        arguments.push(taken.as_mut().unwrap_or(faults).write_argument());
        let dims = LaunchDims { blocks: launch.blocks, lanes: LANES, shared_reals: launch.shared_reals };
        let launched = self.device.launch(launch.kernel, dims, &arguments);
        drop(arguments);
        if let Output::Buffer(buffer) = launch.output {
            buffers[buffer] = taken;
        }
        Ok(launched?)
    }
}

/// Reports the first step that an index or an integer kept from its result.
fn check_faults(plan: &Plan, planned: &DevicePlan, faults: &Memory) -> Result<(), Error> {
    let Memory::Words(faults) = faults else { return Ok(()) };
    if planned.faults.is_empty() {
        return Ok(());
    }
    let found = faults.download()?.into_iter().zip(&planned.faults).find(|(fault, _)| *fault != 0);
    found.map_or(Ok(()), |(_, fault)| {
        let (node, problem) = match *fault {
            StepFault::Index { node } => (node, NodeProblem::Index),
            StepFault::Integer { node } => (node, NodeProblem::DeviceResult),
        };
        let (name, operator) = &plan.nodes[node];
        Err(Error::node(name, operator, problem))
    })
}
