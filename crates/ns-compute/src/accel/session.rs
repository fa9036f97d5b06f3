//! A model on a device: its tables are uploaded once, then batches of points are evaluated and
//! fitted there.
//!
//! Each block of lanes works on one item after the other, in its own memory. The host adds the part
//! of -ln L that depends on the data alone, in double precision, so that a device in single
//! precision works with numbers that are small near a minimum.
//!
//! Legend: N items, P parameters, B bins, K auxiliary data.

use super::contents::check_contents;
use super::cost::{self, IterationCost};
use super::error::AccelError;
use super::kernels::LikelihoodKernel;
use super::layout::{self, Layout, NONE, Task};
use super::reals::RealBuffer;
use super::self_test::self_test;
use super::tables::{DeviceTables, PANEL};
use crate::cpu::plan::ModelPlan;
use crate::cpu::terms;
use ns_core::batch::{BatchData, BatchError, BatchFit, BatchFixed, BatchMinimizer, BatchTask};
use ns_core::model::{Data, Model};
use ns_core::templates::Inputs;
use ns_device::{Backend, Buffer, Device, DeviceError, KernelArgument, LaunchDims, Precision};

pub(super) mod template_batch;

/// Lanes of a block.
const LANES: u32 = 128;
/// An emulated block has as few lanes as a block can have: they take turns.
const EMULATED_LANES: u32 = 32;

/// The largest number of blocks of a launch.
const MOST_BLOCKS: u32 = 1024;

/// The preferred number of fits in one launch: a few for every block, so that slow ones do not
/// delay the others.
const BATCH: usize = 4 * MOST_BLOCKS as usize;

/// The approximate number of operations of one launch: a few seconds of a GPU, less than the
/// watchdog of a display allows.
const FLOPS_OF_LAUNCH: f64 = 2e13;

/// The typical number of iterations of a fit.
const ITERATIONS: f64 = 10.0;

/// Numbers of a fit's result.
const RESULT: usize = layout::RESULT_SIZE as usize;

/// The number of steps after which a fit on a device is left to the host.
const MAX_ITERATIONS: u32 = 100;

/// A model on a device.
///
/// ```
/// # use ns_core::spec::*;
/// # let mu = Modifier::new("mu", ModifierData::NormFactor);
/// # let signal = Sample { name: "signal".into(), data: vec![5.0], modifiers: vec![mu], ..Default::default() };
/// # let background = Sample { name: "background".into(), data: vec![10.0], modifiers: vec![], ..Default::default() };
/// # let workspace = Workspace {
/// #     channels: vec![Channel { name: "SR".into(), samples: vec![signal, background] }],
/// #     observations: vec![Observation { name: "SR".into(), data: vec![12.0] }],
/// #     measurements: vec![Measurement { name: "m".into(), poi: Some("mu".into()), parameters: vec![], ..Default::default() }],
/// # };
/// use ns_compute::accel::{BatchPoints, DeviceSession};
/// use ns_core::batch::BatchData;
/// use ns_core::{CompileOptions, compile};
/// use ns_device::{Backend, Device};
///
/// // λ = 5 μ + 10, and 12 events are observed. Builds for tests can emulate a device.
/// let model = compile(&workspace, &CompileOptions::default())?;
/// # if Backend::Emulated.is_built() {
/// let device = Device::open(Backend::Emulated, 0)?;
/// let mut session = DeviceSession::new(&device, &model)?;
/// let points = BatchPoints { data: BatchData::Shared(&model.observed), points: &[0.4, 1.0, 2.0] };
/// let (values, gradients) = session.nll_and_grad(&points)?;
/// assert_eq!(values.len(), 3);
/// // 5 (1 - 12/λ) at λ = 12, 15 and 20.
/// for (gradient, expected) in gradients.iter().zip([0.0, 1.0, 2.0]) {
///     assert!((gradient - expected).abs() < 1e-12);
/// }
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DeviceSession {
    device: Device,
    plan: ModelPlan,
    layout: Layout,
    indices: Buffer<u32>,
    reals: RealBuffer,
    n_entries: usize,
    lanes: u32,
    /// The inputs, if templates are replaced.
    inputs: Option<Inputs>,
    /// The tables of the batch of templates, once it is set; before, those of the model are used.
    batch: Option<template_batch::TemplateBatch>,
    /// The memory that kernels worked in, for a test.
    #[cfg(test)]
    kept: Vec<RealBuffer>,
}

/// The memory that blocks work in.
#[derive(Debug)]
struct BlockMemory {
    blocks: u32,
    numbers: RealBuffer,
}

/// A batch of items: data and a point for each of them.
#[derive(Debug, Clone, Copy)]
pub struct BatchPoints<'a> {
    /// The data.
    pub data: BatchData<'a>,
    /// The points (N × P), row by row.
    pub points: &'a [f64],
}

/// The data of a batch on the device.
struct UploadedData {
    counts: RealBuffer,
    aux: RealBuffer,
    /// The part of -ln L of each item that depends on its data alone; one number if they are
    /// shared.
    constants: Vec<f64>,
    counts_step: u32,
    aux_step: u32,
}

impl DeviceSession {
    /// Uploads `model`. Before its first use in a process, a device must agree with the CPU on a
    /// small test model.
    ///
    /// # Errors
    /// A device that fails the test or lacks memory, or a model that does not fit the numbers of
    /// the device.
    pub fn new(device: &Device, model: &Model) -> Result<Self, AccelError> {
        self_test(device)?;
        Self::untested(device, model)
    }

    /// Uploads `model` to a device that has not been tested.
    pub(super) fn untested(device: &Device, model: &Model) -> Result<Self, AccelError> {
        Self::made(device, model, None)
    }

    fn made(device: &Device, model: &Model, inputs: Option<Inputs>) -> Result<Self, AccelError> {
        if model.has_formulas() {
            return Err(AccelError::Unsupported { what: "formulas and morphing terms" });
        }
        if let Some(what) = model.rules.name() {
            return Err(AccelError::Unsupported { what });
        }
        let plan = ModelPlan::new(model);
        check_contents(model, device.precision())?;
        let tables = DeviceTables::new(model, &plan, inputs.as_ref())
            .map_err(|error| AccelError::TooLarge { numbers: error.numbers })?;
        // The tables and the least to work in: one block.
        let numbers = tables.reals.len() as u64 + u64::from(tables.layout.workspace);
        device.check_fits(4 * tables.indices.len() as u64 + numbers * device.precision().bytes() as u64)?;
        let (indices, reals) = (device.upload(&tables.indices)?, RealBuffer::upload(device, &tables.reals)?);
        Ok(Self {
            device: device.clone(),
            plan,
            layout: tables.layout,
            indices,
            reals,
            n_entries: tables.n_entries,
            lanes: if device.backend() == Backend::Emulated { EMULATED_LANES } else { LANES },
            inputs,
            batch: None,
            #[cfg(test)]
            kept: Vec::new(),
        })
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Sets the number of lanes of a block, a power of two: to tune a device, or to emulate one
    /// exactly.
    pub fn set_lanes(&mut self, lanes: u32) {
        self.lanes = lanes;
    }

    /// Returns the operations and bytes of one iteration of a fit, part by part.
    #[must_use]
    pub fn cost_of_iteration(&self) -> Vec<(&'static str, IterationCost)> {
        cost::of_iteration(&self.plan, self.n_entries)
    }

    /// Returns the bytes of memory that one block works in.
    #[must_use]
    pub fn bytes_per_block(&self) -> u64 {
        u64::from(self.layout.workspace) * self.device.precision().bytes() as u64
    }

    /// Returns -ln L of every item (N), with all constants; +∞ outside the model's domain.
    ///
    /// # Errors
    /// The error of the device.
    pub fn nll(&mut self, items: &BatchPoints<'_>) -> Result<Vec<f64>, AccelError> {
        self.check(items.data, items.points)?;
        let n = self.counted(self.n_items(items.points))?;
        let data = self.upload_data(items.data)?;
        let points = RealBuffer::upload(&self.device, items.points)?;
        let mut values = RealBuffer::uninitialised(&self.device, n)?;
        let task = self.task(n, &data, Task::default());
        let arguments = vec![data.counts.read(), data.aux.read(), points.read(), values.write()];
        self.run(LikelihoodKernel::Nll, &task, arguments)?;
        Ok(data.with_constants(values.download()?))
    }

    /// Returns -ln L of every item (N) and its gradient (N × P), which is zero outside the model's
    /// domain.
    ///
    /// # Errors
    /// The error of the device.
    pub fn nll_and_grad(&mut self, items: &BatchPoints<'_>) -> Result<(Vec<f64>, Vec<f64>), AccelError> {
        self.check(items.data, items.points)?;
        let n = self.counted(self.n_items(items.points))?;
        let data = self.upload_data(items.data)?;
        let points = RealBuffer::upload(&self.device, items.points)?;
        let mut values = RealBuffer::uninitialised(&self.device, n)?;
        let mut gradients = RealBuffer::uninitialised(&self.device, items.points.len())?;
        let task = self.task(n, &data, Task::default());
        let arguments = vec![data.counts.read(), data.aux.read(), points.read(), values.write(), gradients.write()];
        self.run(LikelihoodKernel::NllAndGradient, &task, arguments)?;
        Ok((data.with_constants(values.download()?), gradients.download()?))
    }

    /// Returns one Newton step of every fit of `task` from its start (N × P), with the exact
    /// Hessian or with the Gauss-Newton matrix; NaN where that is not positive definite. Parameters
    /// at a bound that the gradient pushes against are fixed.
    ///
    /// # Errors
    /// The error of the device.
    pub fn newton_steps(&mut self, task: &BatchTask<'_>, exact: bool) -> Result<Vec<f64>, AccelError> {
        self.check_task(task)?;
        let n = self.counted(self.n_items(task.starts))?;
        let data = self.upload_data(task.data)?;
        let domain = RealBuffer::upload(&self.device, &domain(task))?;
        let points = RealBuffer::upload(&self.device, task.starts)?;
        let mut steps = RealBuffer::uninitialised(&self.device, task.starts.len())?;
        let constants =
            self.task(n, &data, Task { exact: u32::from(exact), fixed_step: fixed_step(task), ..Task::default() });
        let arguments = vec![data.counts.read(), data.aux.read(), domain.read(), points.read(), steps.write()];
        self.run(LikelihoodKernel::Newton, &constants, arguments)?;
        Ok(steps.download()?)
    }

    /// Returns the result of every fit of `task`, [`batch_size`](BatchMinimizer::batch_size) at a
    /// time.
    ///
    /// # Errors
    /// The error of the device.
    pub fn fit(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, AccelError> {
        self.check_task(task)?;
        let (n, n_params) = (self.n_items(task.starts), self.plan.n_params);
        let most = self.most_items().min(self.batch_size());
        let mut fits = Vec::with_capacity(n);
        for first in (0..n).step_by(most) {
            let end = n.min(first + most);
            let data = match task.data {
                BatchData::Shared(data) => BatchData::Shared(data),
                BatchData::Each(sets) => BatchData::Each(&sets[first..end]),
            };
            let rows = first * n_params..end * n_params;
            let fixed = match task.fixed {
                BatchFixed::Shared(fixed) => BatchFixed::Shared(fixed),
                BatchFixed::Each(fixed) => BatchFixed::Each(&fixed[rows.clone()]),
            };
            let starts = &task.starts[rows];
            fits.extend(self.fit_at_once(first, &BatchTask { data, starts, fixed, ..*task })?);
        }
        Ok(fits)
    }

    /// Returns the results of `task`, whose first fit has the number `first`.
    fn fit_at_once(&mut self, first: usize, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, AccelError> {
        let n = self.n_items(task.starts);
        let data = self.upload_data(task.data)?;
        let domain = RealBuffer::upload(&self.device, &domain(task))?;
        let mut params = RealBuffer::upload(&self.device, task.starts)?;
        let mut results = RealBuffer::uninitialised(&self.device, n * RESULT)?;
        let variance_param = task.variance_of.map_or(NONE, |param| param as u32);
        let wanted = Task {
            max_iterations: MAX_ITERATIONS,
            variance_param,
            fixed_step: fixed_step(task),
            first_item: first as u32,
            ..Task::default()
        };
        let constants = self.task(n, &data, wanted);
        let arguments = vec![data.counts.read(), data.aux.read(), domain.read(), params.write(), results.write()];
        self.run(LikelihoodKernel::Fit, &constants, arguments)?;
        let (params, results) = (params.download()?, results.download()?);
        let n_params = self.plan.n_params;
        let rows = params.chunks_exact(n_params.max(1)).zip(results.chunks_exact(RESULT)).enumerate();
        let finished = |(i, (params, result)): (usize, (&[f64], &[f64]))| {
            let mut fit = batch_fit(params, result, data.constant(i));
            // Fixed parameters keep their values, and not those rounded to single precision.
            let fixed = fixed_of(task.fixed, i, n_params).iter().zip(&task.starts[i * n_params..]);
            for (param, (_, start)) in fit.params.iter_mut().zip(fixed).filter(|(_, (is_fixed, _))| **is_fixed) {
                *param = *start + 0.0;
            }
            fit
        };
        Ok(rows.map(finished).collect())
    }

    fn n_items(&self, points: &[f64]) -> usize {
        points.len() / self.plan.n_params.max(1)
    }

    /// Returns the largest number of items whose numbers kernels can count with 32 bits.
    fn most_items(&self) -> usize {
        let longest =
            self.plan.n_params.max(self.plan.n_bins()).max(self.plan.terms.len()).max(RESULT).max(self.n_inputs());
        u32::MAX as usize / longest
    }

    /// Rejects more items at once than kernels can count.
    fn counted(&self, n: usize) -> Result<usize, AccelError> {
        let most = self.most_items();
        if n <= most { Ok(n) } else { Err(AccelError::TooMany { items: n, most }) }
    }

    fn task(&self, n: usize, data: &UploadedData, wanted: Task) -> Task {
        let n_rows = self.batch.as_ref().map_or(1, |batch| batch.n);
        Task { n_items: n as u32, n_rows, counts_step: data.counts_step, aux_step: data.aux_step, ..wanted }
    }

    fn upload_data(&self, data: BatchData<'_>) -> Result<UploadedData, DeviceError> {
        let sets = sets_of(data);
        let step = |len: usize| if matches!(data, BatchData::Shared(_)) { 0 } else { len as u32 };
        let flat = |part: fn(&Data) -> &[f64]| -> Vec<f64> { sets.iter().flat_map(part).copied().collect() };
        Ok(UploadedData {
            counts: RealBuffer::upload(&self.device, &flat(|data| &data.main))?,
            aux: RealBuffer::upload(&self.device, &flat(|data| &data.aux))?,
            constants: sets.iter().map(|data| terms::constants(&self.plan.terms, data)).collect(),
            counts_step: step(self.plan.n_bins()),
            aux_step: step(self.plan.terms.len()),
        })
    }

    /// Launches `kernel` on as many blocks as there are items, or as fit into memory.
    fn run(&mut self, kernel: LikelihoodKernel, task: &Task, own: Vec<KernelArgument<'_>>) -> Result<(), AccelError> {
        if task.n_items == 0 {
            return Ok(());
        }
        let BlockMemory { blocks, mut numbers } = self.room(task.n_items)?;
        let Self { device, layout, indices, reals, lanes, batch, .. } = self;
        let reals = batch.as_ref().map_or(&*reals, |batch| &batch.tables);
        // Some devices have fewer lanes for a kernel that needs many registers; a power of two.
        let most = 1 << device.max_lanes(kernel)?.max(1).ilog2();
        let lanes = most.min(*lanes);
        let shared_reals = 2 * lanes + (PANEL * PANEL) as u32;
        let grid = LaunchDims { blocks, lanes, shared_reals };
        let (layout, task) = (layout.words(), task.words());
        let mut arguments = vec![
            KernelArgument::uints(&layout),
            KernelArgument::uints(&task),
            KernelArgument::read(indices),
            reals.read(),
        ];
        arguments.extend(own);
        arguments.push(numbers.write());
        device.launch(kernel, grid, &arguments)?;
        #[cfg(test)]
        self.kept.push(numbers);
        Ok(())
    }

    /// Allocates memory for as many blocks as there are items, or as fit into half of the free
    /// memory. It comes from the pool of the device and returns there.
    fn room(&self, n_items: u32) -> Result<BlockMemory, AccelError> {
        let workspace = u64::from(self.layout.workspace);
        let bytes = workspace * self.device.precision().bytes() as u64;
        let fitting = self.device.memory()?.free / 2 / bytes.max(1);
        let addressable = u64::from(u32::MAX) / workspace.max(1);
        let mut blocks = u64::from(n_items.min(MOST_BLOCKS)).min(fitting).min(addressable).max(1);
        loop {
            match RealBuffer::uninitialised(&self.device, (blocks * workspace) as usize) {
                Ok(numbers) => return Ok(BlockMemory { blocks: blocks as u32, numbers }),
                // Another process took memory meanwhile: fewer blocks do the same work.
                Err(DeviceError::OutOfMemory { .. }) if blocks > 1 => blocks /= 2,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Checks the sizes that kernels rely on.
    fn check(&self, data: BatchData<'_>, points: &[f64]) -> Result<(), AccelError> {
        let n_params = self.plan.n_params;
        let n = points.len() / n_params.max(1);
        check_size("a batch's points", points.len(), n * n_params)?;
        let sets = sets_of(data);
        if matches!(data, BatchData::Each(_)) {
            check_size("a batch's data sets", sets.len(), n)?;
        }
        for data in sets {
            check_size("observed counts", data.main.len(), self.plan.n_bins())?;
            check_size("auxiliary data", data.aux.len(), self.plan.terms.len())?;
        }
        Ok(())
    }

    /// Checks the sizes of a task too.
    fn check_task(&self, task: &BatchTask<'_>) -> Result<(), AccelError> {
        self.check(task.data, task.starts)?;
        let n_params = self.plan.n_params;
        check_size("lower bounds", task.lower.len(), n_params)?;
        check_size("upper bounds", task.upper.len(), n_params)?;
        match task.fixed {
            BatchFixed::Shared(fixed) => check_size("fixed parameters", fixed.len(), n_params)?,
            BatchFixed::Each(fixed) => check_size("fixed parameters of all fits", fixed.len(), task.starts.len())?,
        }
        check_size("kinks", task.kinked.len(), if task.kinked.is_empty() { 0 } else { n_params })?;
        let wanted = task.variance_of.unwrap_or(0);
        check_size("the parameter whose variance is wanted", wanted, wanted.min(n_params.saturating_sub(1)))
    }
}

fn sets_of(data: BatchData<'_>) -> &[Data] {
    match data {
        BatchData::Shared(data) => std::slice::from_ref(data),
        BatchData::Each(sets) => sets,
    }
}

fn check_size(what: &'static str, found: usize, expected: usize) -> Result<(), AccelError> {
    if found == expected { Ok(()) } else { Err(AccelError::Size { what, found, expected }) }
}

impl BatchMinimizer for DeviceSession {
    fn batch_size(&self) -> usize {
        let flops: f64 = self.cost_of_iteration().iter().map(|(_, cost)| cost.flops).sum();
        ((FLOPS_OF_LAUNCH / (ITERATIONS * flops)) as usize).clamp(1, BATCH)
    }

    fn is_exact(&self) -> bool {
        self.device.precision() == Precision::Double
    }

    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, BatchError> {
        Ok(self.fit(task)?)
    }
}

impl UploadedData {
    fn constant(&self, item: usize) -> f64 {
        self.constants[if self.constants.len() == 1 { 0 } else { item }]
    }

    fn with_constants(&self, values: Vec<f64>) -> Vec<f64> {
        values.into_iter().enumerate().map(|(i, value)| value + self.constant(i)).collect()
    }
}

/// Returns lower and upper bounds, flags of kinks at zero (each P), and of fixed parameters: P
/// flags, or P of each fit.
fn domain(task: &BatchTask<'_>) -> Vec<f64> {
    let flags = |flags: &[bool], n: usize| -> Vec<f64> {
        (0..n).map(|i| f64::from(flags.get(i).copied().unwrap_or(false))).collect()
    };
    let (BatchFixed::Shared(fixed) | BatchFixed::Each(fixed)) = task.fixed;
    [task.lower, task.upper, &flags(task.kinked, task.lower.len()), &flags(fixed, fixed.len())].concat()
}

/// Returns the flags of fit `i`.
fn fixed_of(fixed: BatchFixed<'_>, i: usize, n_params: usize) -> &[bool] {
    match fixed {
        BatchFixed::Shared(fixed) => fixed,
        BatchFixed::Each(fixed) => &fixed[i * n_params..(i + 1) * n_params],
    }
}

/// Returns the distance between the flags of two fits, 0 if they share them.
fn fixed_step(task: &BatchTask<'_>) -> u32 {
    match task.fixed {
        BatchFixed::Shared(_) => 0,
        BatchFixed::Each(_) => task.lower.len() as u32,
    }
}

fn batch_fit(params: &[f64], result: &[f64], constant: f64) -> BatchFit {
    let at = |place: u32| result[place as usize];
    let converged = at(layout::RESULT_STATUS) == f64::from(layout::CONVERGED);
    BatchFit {
        // -0 is the lower side of a kink.
        params: params.iter().map(|&x| x + 0.0).collect(),
        nll: if at(layout::RESULT_NLL).is_finite() { at(layout::RESULT_NLL) + constant } else { f64::INFINITY },
        edm: at(layout::RESULT_EDM),
        converged,
        variance: Some(at(layout::RESULT_VARIANCE))
            .filter(|variance| converged && *variance > 0.0 && variance.is_finite()),
        iterations: at(layout::RESULT_ITERATIONS) as usize,
    }
}

#[cfg(all(test, feature = "emulated"))]
mod tests;
