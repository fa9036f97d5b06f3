//! Rows of templates on a device: made there of rows of inputs, which may be there already, and -ln L of them with its gradients.
//!
//! A session with inputs has tables of its own for every row; whatever it evaluates or fits is of them then, item i of row i modulo R. Inputs, points and results are
//! the host's, or stand in memory of the device that another library owns: then nothing passes through the host but which inputs no template can have.
//!
//! Legend: R rows, M inputs, N items, P parameters.

use super::super::error::AccelError;
use super::super::kernels::LikelihoodKernel;
use super::super::layout::Task;
use super::super::reals::Reals;
use super::{BatchPoints, DeviceSession, MOST_BLOCKS, check_size};
use ns_core::Inputs;
use ns_core::batch::{BatchData, BatchError, TemplateBatchMinimizer, TemplateMinimizer};
use ns_core::model::{Data, Model};
use ns_core::templates::InputError;
use ns_device::{Device, ExternalBuffer, KernelArgument, LaunchDims, Precision};

/// The tables of R rows.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) n: u32,
    pub(super) tables: Reals,
}

/// Numbers that a device is given.
#[derive(Debug, Clone, Copy)]
pub enum DeviceInput<'a> {
    /// The host's, which are copied.
    Host(&'a [f64]),
    /// In the device's memory already.
    Resident(&'a ExternalBuffer<f64>),
}

/// Where values (N) and gradients by parameters (N × P) and by inputs (N × M) go on a device.
#[derive(Debug)]
pub struct DeviceGradients<'a> {
    /// -ln L (N).
    pub values: &'a mut ExternalBuffer<f64>,
    /// Its gradient by the parameters (N × P).
    pub by_params: &'a mut ExternalBuffer<f64>,
    /// Its gradient by the inputs (N × M).
    pub by_inputs: &'a mut ExternalBuffer<f64>,
}

/// The same on the host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchGradients {
    /// -ln L (N); +∞ outside the domain.
    pub values: Vec<f64>,
    /// Its gradient by the parameters (N × P); NaN outside the domain.
    pub by_params: Vec<f64>,
    /// Its gradient by the inputs (N × M); NaN outside the domain.
    pub by_inputs: Vec<f64>,
}

/// Numbers that kernels read: copied, or where they were.
enum Readable<'a> {
    Copied(Reals),
    Resident(&'a ExternalBuffer<f64>),
}

impl Readable<'_> {
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
    fn on(self, device: &Device) -> Result<Readable<'a>, AccelError> {
        match self {
            Self::Host(numbers) => Ok(Readable::Copied(Reals::upload(device, numbers)?)),
            Self::Resident(_) if device.precision() == Precision::Single => Err(AccelError::Single),
            Self::Resident(memory) => Ok(Readable::Resident(memory)),
        }
    }
}

impl DeviceSession {
    /// Uploads `model`, whose `inputs` can be replaced then. A device's first model is a small one of ours, on which it has to agree with the CPU.
    ///
    /// # Errors
    /// A device that computes wrongly or has no room, and models that a device's numbers cannot hold.
    pub fn with_inputs(device: &Device, model: &Model, inputs: Inputs) -> Result<Self, AccelError> {
        super::self_test(device)?;
        Self::made(device, model, Some(inputs))
    }

    /// The same on a device that is still to be tested.
    pub(in super::super) fn untested_with_inputs(
        device: &Device,
        model: &Model,
        inputs: Inputs,
    ) -> Result<Self, AccelError> {
        Self::made(device, model, Some(inputs))
    }

    /// M, the inputs of a row.
    #[must_use]
    pub fn n_inputs(&self) -> usize {
        self.layout.n_inputs as usize
    }

    /// As many rows of templates as the device has room for, about: they may take half of what is free.
    ///
    /// # Errors
    /// What the device says.
    pub fn max_batch(&self) -> Result<usize, AccelError> {
        let numbers = u64::from(self.layout.n_row_reals).max(u64::from(self.layout.n_inputs)).max(1);
        let fitting = self.device.memory()?.free / 2 / (numbers * self.device.precision().bytes() as u64);
        Ok(fitting.min(u64::from(u32::MAX) / numbers).max(1) as usize)
    }

    /// Replaces the templates by those of the rows of `given` (R × M).
    ///
    /// # Errors
    /// Inputs that no template can have: the session has the model's own templates again then. What the device says.
    pub fn set_input_batch(&mut self, given: DeviceInput<'_>) -> Result<(), AccelError> {
        self.rows = None;
        let n_inputs = self.n_inputs();
        let n = given.len() / n_inputs.max(1);
        check_size("inputs of all rows", given.len(), (n * n_inputs).max(n_inputs))?;
        if n > u32::MAX as usize / self.layout.n_row_reals.max(self.layout.n_inputs).max(1) as usize {
            return Err(AccelError::TooMany { items: n, most: self.max_batch()? });
        }
        let inputs = given.on(&self.device)?;
        let mut tables = Reals::uninitialised(&self.device, n * self.layout.n_row_reals as usize)?;
        let mut verdicts = Reals::uninitialised(&self.device, n)?;
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
        self.judge(&verdicts.download()?)?;
        self.rows = Some(Rows { n: n as u32, tables });
        Ok(())
    }

    /// Fails if a row has an input that no template can have.
    fn judge(&self, verdicts: &[f64]) -> Result<(), AccelError> {
        let (Some(inputs), n_inputs) = (&self.inputs, self.n_inputs()) else { return Ok(()) };
        let refused = verdicts.iter().position(|&first| first as usize != n_inputs);
        let Some(row) = refused else { return Ok(()) };
        let (block, element) = inputs.place(verdicts[row] as usize);
        let error = InputError::Refused { block, element };
        Err(AccelError::Input { row, n_rows: verdicts.len(), error })
    }

    /// -ln L of `data` at `points` (N × P, or P for all) of the rows, and both its gradients, for `n` items.
    ///
    /// # Errors
    /// What the device says.
    pub fn nll_and_gradients(
        &mut self,
        data: &Data,
        points: DeviceInput<'_>,
        n: usize,
    ) -> Result<BatchGradients, AccelError> {
        let (n_params, n_inputs) = (self.plan.n_params, self.n_inputs());
        self.counted(n)?;
        let mut values = Reals::uninitialised(&self.device, n)?;
        let mut by_params = Reals::uninitialised(&self.device, n * n_params)?;
        let mut by_inputs = Reals::uninitialised(&self.device, n * n_inputs)?;
        let on_host = self.device.precision() == Precision::Single;
        let out = vec![values.write(), by_params.write(), by_inputs.write()];
        let constant = self.launch_gradients(data, points, (n, !on_host), out)?;
        let mut values = values.download()?;
        if on_host {
            values.iter_mut().for_each(|value| *value += constant);
        }
        Ok(BatchGradients { values, by_params: by_params.download()?, by_inputs: by_inputs.download()? })
    }

    /// The same, written to memory of the device. It is done when this returns.
    ///
    /// # Errors
    /// What the device says.
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
        check_size("derivatives by parameters", by_params.len(), n * self.plan.n_params)?;
        check_size("derivatives by inputs", by_inputs.len(), n * self.n_inputs())?;
        let out = vec![
            KernelArgument::write_external(values),
            KernelArgument::write_external(by_params),
            KernelArgument::write_external(by_inputs),
        ];
        self.launch_gradients(data, points, (n, true), out)?;
        Ok(self.device.synchronize()?)
    }

    /// Launches the gradients of `n` items into `out`; the part of -ln L that depends on the data alone, which is added there if `with_constant`.
    fn launch_gradients(
        &mut self,
        data: &Data,
        points: DeviceInput<'_>,
        (n, with_constant): (usize, bool),
        out: Vec<KernelArgument<'_>>,
    ) -> Result<f64, AccelError> {
        let n_params = self.plan.n_params;
        let is_shared = n != 1 && points.len() == n_params;
        check_size("a batch's points", points.len(), if is_shared { n_params } else { n * n_params })?;
        check_size("event counts", data.main.len(), self.plan.n_bins())?;
        check_size("auxiliary data", data.aux.len(), self.plan.terms.len())?;
        let uploaded = self.upload_data(BatchData::Shared(data))?;
        let constant = uploaded.constants[0];
        let added = Reals::upload(&self.device, &[if with_constant { constant } else { 0.0 }])?;
        let points = points.on(&self.device)?;
        let point_step = if is_shared { 0 } else { n_params as u32 };
        let task = self.task(n, &uploaded, Task { point_step, ..Task::default() });
        let mut arguments = vec![uploaded.counts.read(), uploaded.aux.read(), added.read(), points.read()];
        arguments.extend(out);
        self.run(LikelihoodKernel::NllAndGradients, &task, arguments)?;
        // What is uploaded and dropped here goes back to the pool, which hands it on in the order of the work.
        Ok(constant)
    }
}

impl TemplateMinimizer for DeviceSession {
    /// With inputs, those are all that is uploaded; without, all tables.
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
        self.rows.as_ref().map_or(1, |rows| rows.n as usize)
    }

    fn batch_gradients(&mut self, data: &Data, points: &[f64]) -> Result<(Vec<f64>, Vec<f64>), BatchError> {
        Ok(self.nll_and_grad(&BatchPoints { data: BatchData::Shared(data), points })?)
    }
}
