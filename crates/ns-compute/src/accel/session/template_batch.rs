//! Batches of templates on a device: their tables, computed there from inputs, and -ln L with its
//! gradients.
//!
//! A session with inputs has tables for every set of templates of the batch; item i of an
//! evaluation or fit uses set i modulo R. Inputs, points and results are in memory of the host, or
//! in memory of the device that another library owns: then only the result of the check of the
//! inputs passes through the host.
//!
//! Legend: R sets of templates, M inputs, N items, P parameters.

use super::super::error::AccelError;
use super::super::kernels::LikelihoodKernel;
use super::super::layout::Task;
use super::super::reals::RealBuffer;
use super::{BatchPoints, DeviceSession, MOST_BLOCKS, check_size};
use ns_core::Inputs;
use ns_core::batch::{BatchData, BatchError, TemplateBatchMinimizer, TemplateMinimizer};
use ns_core::model::{Data, Model};
use ns_core::templates::InputError;
use ns_device::{Device, ExternalBuffer, KernelArgument, LaunchDims, Precision};

/// The tables of R sets of templates.
#[derive(Debug)]
pub(super) struct TemplateBatch {
    pub(super) n: u32,
    pub(super) tables: RealBuffer,
}

/// Numbers for a device.
#[derive(Debug, Clone, Copy)]
pub enum DeviceInput<'a> {
    /// In memory of the host, to be copied.
    Host(&'a [f64]),
    /// In memory of the device already.
    Resident(&'a ExternalBuffer<f64>),
}

/// Memory of a device for values (N) and for gradients by parameters (N × P) and by inputs (N × M).
#[derive(Debug)]
pub struct DeviceGradients<'a> {
    /// -ln L (N).
    pub values: &'a mut ExternalBuffer<f64>,
    /// Its gradient by the parameters (N × P).
    pub by_params: &'a mut ExternalBuffer<f64>,
    /// Its gradient by the inputs (N × M).
    pub by_inputs: &'a mut ExternalBuffer<f64>,
}

/// Values and gradients of a batch on the host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchGradients {
    /// -ln L (N); +∞ outside the domain.
    pub values: Vec<f64>,
    /// Its gradient by the parameters (N × P); NaN outside the domain.
    pub by_params: Vec<f64>,
    /// Its gradient by the inputs (N × M); NaN outside the domain.
    pub by_inputs: Vec<f64>,
}

/// Numbers that kernels read: a copy, or memory of another library.
enum KernelInput<'a> {
    Copied(RealBuffer),
    Resident(&'a ExternalBuffer<f64>),
}

impl KernelInput<'_> {
    fn read(&self) -> KernelArgument<'_> {
        match self {
            Self::Copied(reals) => reals.read(),
            Self::Resident(memory) => KernelArgument::read_external(memory),
        }
    }
}

impl DeviceInput<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Host(numbers) => numbers.len(),
            Self::Resident(memory) => memory.len(),
        }
    }
}

impl<'a> DeviceInput<'a> {
    fn on(self, device: &Device) -> Result<KernelInput<'a>, AccelError> {
        match self {
            Self::Host(numbers) => Ok(KernelInput::Copied(RealBuffer::upload(device, numbers)?)),
            Self::Resident(_) if device.precision() == Precision::Single => Err(AccelError::Single),
            Self::Resident(memory) => Ok(KernelInput::Resident(memory)),
        }
    }
}

/// What gradients are computed of.
#[derive(Clone, Copy)]
struct GradientBatch<'a> {
    data: &'a Data,
    points: DeviceInput<'a>,
    /// The number of items.
    n: usize,
    /// Whether kernels add the part of -ln L that depends on the data alone.
    with_constant: bool,
}

impl DeviceSession {
    /// Uploads `model`, whose `inputs` can then be replaced. Before its first use in a process, a
    /// device must agree with the CPU on a small test model.
    ///
    /// # Errors
    /// A device that fails the test or lacks memory, or a model that does not fit the numbers of
    /// the device.
    pub fn with_inputs(device: &Device, model: &Model, inputs: Inputs) -> Result<Self, AccelError> {
        super::self_test(device)?;
        Self::made(device, model, Some(inputs))
    }

    /// Uploads `model` to a device that has not been tested.
    pub(in super::super) fn untested_with_inputs(
        device: &Device,
        model: &Model,
        inputs: Inputs,
    ) -> Result<Self, AccelError> {
        Self::made(device, model, Some(inputs))
    }

    /// Returns M, the number of inputs of one set of templates.
    #[must_use]
    pub fn n_inputs(&self) -> usize {
        self.layout.n_inputs as usize
    }

    /// Returns the approximate number of sets of templates that fit into half of the free memory.
    ///
    /// # Errors
    /// The error of the device.
    pub fn max_batch(&self) -> Result<usize, AccelError> {
        let numbers = u64::from(self.layout.n_row_reals).max(u64::from(self.layout.n_inputs)).max(1);
        let fitting = self.device.memory()?.free / 2 / (numbers * self.device.precision().bytes() as u64);
        Ok(fitting.min(u64::from(u32::MAX) / numbers).max(1) as usize)
    }

    /// Replaces the templates by a batch of R sets with the inputs `given` (R × M).
    ///
    /// # Errors
    /// Inputs that are not valid for a template: then the session returns to the templates of the
    /// model. The error of the device.
    pub fn set_input_batch(&mut self, given: DeviceInput<'_>) -> Result<(), AccelError> {
        self.batch = None;
        let n_inputs = self.n_inputs();
        let n = given.len() / n_inputs.max(1);
        check_size("inputs of the batch", given.len(), (n * n_inputs).max(n_inputs))?;
        if n > u32::MAX as usize / self.layout.n_row_reals.max(self.layout.n_inputs).max(1) as usize {
            return Err(AccelError::TooMany { items: n, most: self.max_batch()? });
        }
        let inputs = given.on(&self.device)?;
        let mut tables = RealBuffer::uninitialised(&self.device, n * self.layout.n_row_reals as usize)?;
        let mut verdicts = RealBuffer::uninitialised(&self.device, n)?;
        let (layout, task) = (self.layout.words(), Task { n_rows: n as u32, ..Task::default() }.words());
        let arguments = [
            KernelArgument::uints(&layout),
            KernelArgument::uints(&task),
            KernelArgument::read(&self.indices),
            self.reals.read(),
            inputs.read(),
            tables.write(),
            verdicts.write(),
        ];
        let grid = LaunchDims { blocks: (n as u32).min(MOST_BLOCKS), lanes: self.lanes, shared_reals: self.lanes };
        self.device.launch(LikelihoodKernel::SetTemplates, grid, &arguments)?;
        self.check_verdicts(&verdicts.download()?)?;
        self.batch = Some(TemplateBatch { n: n as u32, tables });
        Ok(())
    }

    /// Fails if a set of templates has an invalid input.
    fn check_verdicts(&self, verdicts: &[f64]) -> Result<(), AccelError> {
        let (Some(inputs), n_inputs) = (&self.inputs, self.n_inputs()) else { return Ok(()) };
        let refused = verdicts.iter().position(|&first| first as usize != n_inputs);
        let Some(refused) = refused else { return Ok(()) };
        let (block, element) = inputs.place(verdicts[refused] as usize);
        let error = InputError::Refused { block, element };
        Err(AccelError::Input { batch_element: refused, n_batch: verdicts.len(), error })
    }

    /// Returns -ln L of `data` at `points` (N × P, or P for all), and both its gradients, for `n`
    /// items.
    ///
    /// # Errors
    /// The error of the device.
    pub fn nll_and_gradients(
        &mut self,
        data: &Data,
        points: DeviceInput<'_>,
        n: usize,
    ) -> Result<BatchGradients, AccelError> {
        let (n_params, n_inputs) = (self.plan.n_params, self.n_inputs());
        self.counted(n)?;
        let mut values = RealBuffer::uninitialised(&self.device, n)?;
        let mut by_params = RealBuffer::uninitialised(&self.device, n * n_params)?;
        let mut by_inputs = RealBuffer::uninitialised(&self.device, n * n_inputs)?;
        let on_host = self.device.precision() == Precision::Single;
        let out = vec![values.write(), by_params.write(), by_inputs.write()];
        let batch = GradientBatch { data, points, n, with_constant: !on_host };
        let constant = self.launch_gradients(batch, out)?;
        let mut values = values.download()?;
        if on_host {
            values.iter_mut().for_each(|value| *value += constant);
        }
        Ok(BatchGradients { values, by_params: by_params.download()?, by_inputs: by_inputs.download()? })
    }

    /// Writes -ln L and both its gradients to memory of the device, and waits for the end.
    ///
    /// # Errors
    /// The error of the device.
    pub fn nll_and_gradients_into(
        &mut self,
        data: &Data,
        points: DeviceInput<'_>,
        out: DeviceGradients<'_>,
    ) -> Result<(), AccelError> {
        if self.device.precision() == Precision::Single {
            return Err(AccelError::Single);
        }
        let DeviceGradients { values, by_params, by_inputs } = out;
        let n = self.counted(values.len())?;
        check_size("gradients by parameters", by_params.len(), n * self.plan.n_params)?;
        check_size("gradients by inputs", by_inputs.len(), n * self.n_inputs())?;
        let out = vec![
            KernelArgument::write_external(values),
            KernelArgument::write_external(by_params),
            KernelArgument::write_external(by_inputs),
        ];
        self.launch_gradients(GradientBatch { data, points, n, with_constant: true }, out)?;
        Ok(self.device.synchronize()?)
    }

    /// Launches the gradients of `batch` into `out`. Returns the part of -ln L that depends on the
    /// data alone.
    fn launch_gradients(&mut self, batch: GradientBatch<'_>, out: Vec<KernelArgument<'_>>) -> Result<f64, AccelError> {
        let GradientBatch { data, points, n, with_constant } = batch;
        let n_params = self.plan.n_params;
        let is_shared = n != 1 && points.len() == n_params;
        check_size("a batch's points", points.len(), if is_shared { n_params } else { n * n_params })?;
        check_size("observed counts", data.main.len(), self.plan.n_bins())?;
        check_size("auxiliary data", data.aux.len(), self.plan.terms.len())?;
        let uploaded = self.upload_data(BatchData::Shared(data))?;
        let constant = uploaded.constants[0];
        let added = RealBuffer::upload(&self.device, &[if with_constant { constant } else { 0.0 }])?;
        let points = points.on(&self.device)?;
        let point_step = if is_shared { 0 } else { n_params as u32 };
        let task = self.task(n, &uploaded, Task { point_step, ..Task::default() });
        let mut arguments = vec![uploaded.counts.read(), uploaded.aux.read(), added.read(), points.read()];
        arguments.extend(out);
        self.run(LikelihoodKernel::NllAndGradients, &task, arguments)?;
        // Buffers dropped here return to the pool, which reuses them in the order of the work.
        Ok(constant)
    }
}

impl TemplateMinimizer for DeviceSession {
    /// Uploads the inputs only, or all tables in a session without inputs.
    fn replace_templates(&mut self, model: &Model) -> Result<(), BatchError> {
        match &self.inputs {
            Some(inputs) => self.set_input_batch(DeviceInput::Host(&inputs.values(model)))?,
            None => *self = Self::untested(&self.device().clone(), model)?,
        }
        Ok(())
    }
}

impl TemplateBatchMinimizer for DeviceSession {
    fn n_batch(&self) -> usize {
        self.batch.as_ref().map_or(1, |batch| batch.n as usize)
    }

    fn batch_gradients(&mut self, data: &Data, points: &[f64]) -> Result<(Vec<f64>, Vec<f64>), BatchError> {
        Ok(self.nll_and_grad(&BatchPoints { data: BatchData::Shared(data), points })?)
    }
}
