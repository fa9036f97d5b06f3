//! A model on a device: its tables are uploaded once, then batches of points and of fits are done there.
//!
//! Each block of lanes does one item after the other, in memory of its own. The part of -ln L that depends on the data alone is added on the host, in
//! double precision, so that a device in single precision works with numbers that are small near a minimum.
//!
//! Legend: N items, P parameters, B bins, K auxiliary data.

use super::cost::{self, IterationCost};
use super::error::AccelError;
use super::kernels::LikelihoodKernel;
use super::layout::{self, Layout, NONE, Task};
use super::reals::Reals;
use super::self_test::self_test;
use super::tables::{PANEL, Tables};
use crate::cpu::plan::ModelPlan;
use crate::cpu::terms;
use ns_core::batch::{BatchData, BatchError, BatchFit, BatchFixed, BatchMinimizer, BatchTask};
use ns_core::model::{Data, Model};
use ns_core::parameters::Constraint;
use ns_core::templates::Inputs;
use ns_device::{Backend, Buffer, Device, DeviceError, KernelArgument, LaunchDims, Precision};

pub(super) mod rows;

/// Lanes of a block.
const LANES: u32 = 128;
/// An emulated block has as few lanes as a block can have: they take turns.
const EMULATED_LANES: u32 = 32;

/// Blocks that are kept on a device at a time, at most.
const MOST_BLOCKS: u32 = 1024;

/// Fits that are asked for at a time: enough for every block to have a few, so that slow ones do not hold up the rest.
const BATCH: usize = 4 * MOST_BLOCKS as usize;

/// Operations that one launch may ask for, about: a second or few of a GPU, before a display's watchdog or a user loses patience.
const FLOPS_OF_LAUNCH: f64 = 2e13;

/// Iterations of a fit, about.
const ITERATIONS: f64 = 10.0;

/// Numbers of a fit's result.
const RESULT: usize = layout::RESULT_SIZE as usize;

/// Steps after which a fit on a device is left to the host.
const MAX_ITERATIONS: u32 = 100;

/// A Poisson constraint of a larger rate is narrower than single precision can resolve.
const LARGEST_SINGLE_RATE: f64 = 1e8;

/// A model on a device.
#[derive(Debug)]
pub struct DeviceSession {
    device: Device,
    plan: ModelPlan,
    layout: Layout,
    indices: Buffer<u32>,
    reals: Reals,
    n_entries: usize,
    lanes: u32,
    /// What of the templates is replaced, if anything is.
    inputs: Option<Inputs>,
    /// The rows of templates, once there are any; before, everything is of the model's own.
    rows: Option<rows::Rows>,
    /// The memory that kernels worked in, for a test that looks at it.
    #[cfg(test)]
    kept: Vec<Reals>,
}

/// The memory that blocks work in.
#[derive(Debug)]
struct Work {
    blocks: u32,
    numbers: Reals,
}

/// What a batch of items is: data and a point for each of them.
#[derive(Debug, Clone, Copy)]
pub struct BatchPoints<'a> {
    /// The data.
    pub data: BatchData<'a>,
    /// The points (N × P), row by row.
    pub points: &'a [f64],
}

/// The data of a batch on the device.
struct Uploaded {
    counts: Reals,
    aux: Reals,
    /// The part of -ln L of each item that depends on its data alone; one number if they are shared.
    constants: Vec<f64>,
    counts_step: u32,
    aux_step: u32,
}

impl DeviceSession {
    /// Uploads `model`. A device's first model is a small one of ours, on which it has to agree with the CPU.
    ///
    /// # Errors
    /// A device that computes wrongly or has no room, and models that a device's numbers cannot hold.
    pub fn new(device: &Device, model: &Model) -> Result<Self, AccelError> {
        self_test(device)?;
        Self::untested(device, model)
    }

    /// The same on a device that is still to be tested.
    pub(super) fn untested(device: &Device, model: &Model) -> Result<Self, AccelError> {
        Self::made(device, model, None)
    }

    fn made(device: &Device, model: &Model, inputs: Option<Inputs>) -> Result<Self, AccelError> {
        let plan = ModelPlan::new(model);
        if device.precision() == Precision::Single {
            check_rates(model)?;
        }
        let tables = Tables::new(model, &plan, inputs.as_ref())
            .map_err(|error| AccelError::TooLarge { numbers: error.numbers })?;
        // The tables and the least to work in: one block.
        let numbers = tables.reals.len() as u64 + u64::from(tables.layout.workspace);
        device.check_fits(4 * tables.indices.len() as u64 + numbers * device.precision().bytes() as u64)?;
        let (indices, reals) = (device.upload(&tables.indices)?, Reals::upload(device, &tables.reals)?);
        Ok(Self {
            device: device.clone(),
            plan,
            layout: tables.layout,
            indices,
            reals,
            n_entries: tables.n_entries,
            lanes: if device.backend() == Backend::Emulated { EMULATED_LANES } else { LANES },
            inputs,
            rows: None,
            #[cfg(test)]
            kept: Vec::new(),
        })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Lanes of a block from now on, a power of two: to tune a device, or to emulate one as it is.
    pub fn set_lanes(&mut self, lanes: u32) {
        self.lanes = lanes;
    }

    /// What an iteration of one fit computes and moves, part by part.
    #[must_use]
    pub fn cost_of_iteration(&self) -> Vec<(&'static str, IterationCost)> {
        cost::of_iteration(&self.plan, self.n_entries)
    }

    /// Bytes of memory that one block works in.
    #[must_use]
    pub fn bytes_per_block(&self) -> u64 {
        u64::from(self.layout.workspace) * self.device.precision().bytes() as u64
    }

    /// -ln L of every item (N), with all constants; +∞ outside the model's domain.
    ///
    /// # Errors
    /// What the device says.
    pub fn nll(&mut self, items: &BatchPoints<'_>) -> Result<Vec<f64>, AccelError> {
        self.check(items.data, items.points)?;
        let n = self.counted(self.n_items(items.points))?;
        let data = self.upload_data(items.data)?;
        let points = Reals::upload(&self.device, items.points)?;
        let mut values = Reals::uninitialised(&self.device, n)?;
        let task = self.task(n, &data, Task::default());
        let arguments = vec![data.counts.read(), data.aux.read(), points.read(), values.write()];
        self.run(LikelihoodKernel::Nll, &task, arguments)?;
        Ok(data.with_constants(values.download()?))
    }

    /// -ln L of every item (N) and its gradient (N × P), which is zero outside the model's domain.
    ///
    /// # Errors
    /// What the device says.
    pub fn nll_and_grad(&mut self, items: &BatchPoints<'_>) -> Result<(Vec<f64>, Vec<f64>), AccelError> {
        self.check(items.data, items.points)?;
        let n = self.counted(self.n_items(items.points))?;
        let data = self.upload_data(items.data)?;
        let points = Reals::upload(&self.device, items.points)?;
        let mut values = Reals::uninitialised(&self.device, n)?;
        let mut gradients = Reals::uninitialised(&self.device, items.points.len())?;
        let task = self.task(n, &data, Task::default());
        let arguments = vec![data.counts.read(), data.aux.read(), points.read(), values.write(), gradients.write()];
        self.run(LikelihoodKernel::NllAndGradient, &task, arguments)?;
        Ok((data.with_constants(values.download()?), gradients.download()?))
    }

    /// One Newton step of every fit of `task` from its start (N × P), with the exact Hessian or with the Gauss-Newton matrix; NaN where that is not
    /// positive definite. Parameters at the end of their range towards which the derivative leads are held.
    ///
    /// # Errors
    /// What the device says.
    pub fn newton_steps(&mut self, task: &BatchTask<'_>, exact: bool) -> Result<Vec<f64>, AccelError> {
        self.check_task(task)?;
        let n = self.counted(self.n_items(task.starts))?;
        let data = self.upload_data(task.data)?;
        let domain = Reals::upload(&self.device, &domain(task))?;
        let points = Reals::upload(&self.device, task.starts)?;
        let mut steps = Reals::uninitialised(&self.device, task.starts.len())?;
        let constants =
            self.task(n, &data, Task { exact: u32::from(exact), fixed_step: fixed_step(task), ..Task::default() });
        let arguments = vec![data.counts.read(), data.aux.read(), domain.read(), points.read(), steps.write()];
        self.run(LikelihoodKernel::Newton, &constants, arguments)?;
        Ok(steps.download()?)
    }

    /// Does every fit of `task`, [`batch_size`](BatchMinimizer::batch_size) at a time.
    ///
    /// # Errors
    /// What the device says.
    pub fn fit(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, AccelError> {
        self.check_task(task)?;
        let (n, n_params) = (self.n_items(task.starts), self.plan.n_params);
        let most = self.most_items().min(self.batch_size());
        let mut arrivals = Vec::with_capacity(n);
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
            arrivals.extend(self.fit_at_once(first, &BatchTask { data, starts, fixed, ..*task })?);
        }
        Ok(arrivals)
    }

    /// The fits of `task`, which are those from number `first` on.
    fn fit_at_once(&mut self, first: usize, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, AccelError> {
        let n = self.n_items(task.starts);
        let data = self.upload_data(task.data)?;
        let domain = Reals::upload(&self.device, &domain(task))?;
        let mut params = Reals::upload(&self.device, task.starts)?;
        let mut results = Reals::uninitialised(&self.device, n * RESULT)?;
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
            let mut arrival = arrival(params, result, data.constant(i));
            // What is held is what was asked for, not what single precision makes of it.
            let held = fixed_of(task.fixed, i, n_params).iter().zip(&task.starts[i * n_params..]);
            for (param, (_, start)) in arrival.params.iter_mut().zip(held).filter(|(_, (is_held, _))| **is_held) {
                *param = *start + 0.0;
            }
            arrival
        };
        Ok(rows.map(finished).collect())
    }

    fn n_items(&self, points: &[f64]) -> usize {
        points.len() / self.plan.n_params.max(1)
    }

    /// Items whose numbers can be counted with 32 bits, as kernels do.
    fn most_items(&self) -> usize {
        let longest =
            self.plan.n_params.max(self.plan.n_bins()).max(self.plan.terms.len()).max(RESULT).max(self.n_inputs());
        u32::MAX as usize / longest
    }

    /// Refuses more items at once than can be counted.
    fn counted(&self, n: usize) -> Result<usize, AccelError> {
        let most = self.most_items();
        if n <= most { Ok(n) } else { Err(AccelError::TooMany { items: n, most }) }
    }

    fn task(&self, n: usize, data: &Uploaded, wanted: Task) -> Task {
        let n_rows = self.rows.as_ref().map_or(1, |rows| rows.n);
        Task { n_items: n as u32, n_rows, counts_step: data.counts_step, aux_step: data.aux_step, ..wanted }
    }

    fn upload_data(&self, data: BatchData<'_>) -> Result<Uploaded, DeviceError> {
        let sets = sets_of(data);
        let step = |len: usize| if matches!(data, BatchData::Shared(_)) { 0 } else { len as u32 };
        let flat = |part: fn(&Data) -> &[f64]| -> Vec<f64> { sets.iter().flat_map(part).copied().collect() };
        Ok(Uploaded {
            counts: Reals::upload(&self.device, &flat(|data| &data.main))?,
            aux: Reals::upload(&self.device, &flat(|data| &data.aux))?,
            constants: sets.iter().map(|data| terms::constants(&self.plan.terms, data)).collect(),
            counts_step: step(self.plan.n_bins()),
            aux_step: step(self.plan.terms.len()),
        })
    }

    /// Launches `kernel` on as many blocks as there are items, or as fit.
    fn run(&mut self, kernel: LikelihoodKernel, task: &Task, own: Vec<KernelArgument<'_>>) -> Result<(), AccelError> {
        if task.n_items == 0 {
            return Ok(());
        }
        let Work { blocks, mut numbers } = self.room(task.n_items)?;
        let Self { device, layout, indices, reals, lanes, rows, .. } = self;
        let reals = rows.as_ref().map_or(&*reals, |rows| &rows.tables);
        let lanes = *lanes;
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

    /// Memory for as many blocks as there are items, or as fit into half of what is free. It comes from the device's pool and goes back there.
    fn room(&self, n_items: u32) -> Result<Work, AccelError> {
        let workspace = u64::from(self.layout.workspace);
        let bytes = workspace * self.device.precision().bytes() as u64;
        let fitting = self.device.memory()?.free / 2 / bytes.max(1);
        let addressable = u64::from(u32::MAX) / workspace.max(1);
        let mut blocks = u64::from(n_items.min(MOST_BLOCKS)).min(fitting).min(addressable).max(1);
        loop {
            match Reals::uninitialised(&self.device, (blocks * workspace) as usize) {
                Ok(numbers) => return Ok(Work { blocks: blocks as u32, numbers }),
                // Somebody else took memory meanwhile: fewer blocks do the same work.
                Err(DeviceError::OutOfMemory { .. }) if blocks > 1 => blocks /= 2,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Refuses what kernels would read beyond.
    fn check(&self, data: BatchData<'_>, points: &[f64]) -> Result<(), AccelError> {
        let n_params = self.plan.n_params;
        let n = points.len() / n_params.max(1);
        check_size("a batch's points", points.len(), n * n_params)?;
        let sets = sets_of(data);
        if matches!(data, BatchData::Each(_)) {
            check_size("a batch's data sets", sets.len(), n)?;
        }
        for data in sets {
            check_size("event counts", data.main.len(), self.plan.n_bins())?;
            check_size("auxiliary data", data.aux.len(), self.plan.terms.len())?;
        }
        Ok(())
    }

    /// The same for the box of a task.
    fn check_task(&self, task: &BatchTask<'_>) -> Result<(), AccelError> {
        self.check(task.data, task.starts)?;
        let n_params = self.plan.n_params;
        check_size("lower ends", task.lower.len(), n_params)?;
        check_size("upper ends", task.upper.len(), n_params)?;
        match task.fixed {
            BatchFixed::Shared(fixed) => check_size("held parameters", fixed.len(), n_params)?,
            BatchFixed::Each(fixed) => check_size("held parameters of all fits", fixed.len(), task.starts.len())?,
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

impl Uploaded {
    fn constant(&self, item: usize) -> f64 {
        self.constants[if self.constants.len() == 1 { 0 } else { item }]
    }

    fn with_constants(&self, values: Vec<f64>) -> Vec<f64> {
        values.into_iter().enumerate().map(|(i, value)| value + self.constant(i)).collect()
    }
}

/// Lower and upper ends, what has a kink at zero (each P), and what is fixed: P flags, or P of each fit.
fn domain(task: &BatchTask<'_>) -> Vec<f64> {
    let flags = |flags: &[bool], n: usize| -> Vec<f64> {
        (0..n).map(|i| f64::from(flags.get(i).copied().unwrap_or(false))).collect()
    };
    let (BatchFixed::Shared(fixed) | BatchFixed::Each(fixed)) = task.fixed;
    [task.lower, task.upper, &flags(task.kinked, task.lower.len()), &flags(fixed, fixed.len())].concat()
}

/// The flags of fit `i`.
fn fixed_of(fixed: BatchFixed<'_>, i: usize, n_params: usize) -> &[bool] {
    match fixed {
        BatchFixed::Shared(fixed) => fixed,
        BatchFixed::Each(fixed) => &fixed[i * n_params..(i + 1) * n_params],
    }
}

/// Flags from one fit's to the next.
fn fixed_step(task: &BatchTask<'_>) -> u32 {
    match task.fixed {
        BatchFixed::Shared(_) => 0,
        BatchFixed::Each(_) => task.lower.len() as u32,
    }
}

fn arrival(params: &[f64], result: &[f64], constant: f64) -> BatchFit {
    let at = |place: u32| result[place as usize];
    let converged = at(layout::RESULT_STATUS) == f64::from(layout::CONVERGED);
    BatchFit {
        // -0 served as the lower side of a kink.
        params: params.iter().map(|&x| x + 0.0).collect(),
        nll: if at(layout::RESULT_NLL).is_finite() { at(layout::RESULT_NLL) + constant } else { f64::INFINITY },
        edm: at(layout::RESULT_EDM),
        converged,
        variance: Some(at(layout::RESULT_VARIANCE)).filter(|variance| converged && *variance > 0.0),
        iterations: at(layout::RESULT_ITERATIONS) as usize,
    }
}

fn check_rates(model: &Model) -> Result<(), AccelError> {
    for (constraint, name) in model.parameters.constraint.iter().zip(&model.parameters.names) {
        match *constraint {
            Some(Constraint::Poisson { tau }) if tau > LARGEST_SINGLE_RATE => {
                return Err(AccelError::TooPrecise { parameter: name.clone(), tau });
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(all(test, feature = "emulated"))]
mod tests;
