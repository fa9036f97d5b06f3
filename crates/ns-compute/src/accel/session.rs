//! A model on a device: its tables are uploaded once, then batches of points and of fits are done there.
//!
//! Each block of lanes does one item after the other, in memory of its own. The part of -ln L that depends on the data alone is added on the host, in
//! double precision, so that a device in single precision works with numbers that are small near a minimum.
//!
//! Legend: N items, P parameters, B bins, K auxiliary data.

use super::cost::{self, Cost};
use super::error::AccelError;
use super::kernels::LikelihoodKernel;
use super::layout::{self, Layout, NONE, Task};
use super::reals::Reals;
use super::self_test::self_test;
use super::tables::{PANEL, Tables};
use crate::cpu::plan::Plan;
use crate::cpu::terms;
use ns_core::batch::{Arrival, BatchData, BatchError, BatchFixed, BatchMinimizer, BatchTask};
use ns_core::model::{Data, Model};
use ns_core::parameters::Constraint;
use ns_device::{Argument, Backend, Buffer, Device, DeviceError, Grid, Precision};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lanes of a block.
const LANES: u32 = 128;
/// An emulated block has as few lanes as a block can have: they take turns.
const EMULATED_LANES: u32 = 32;

/// Blocks that are kept on a device at a time, at most.
const MOST_BLOCKS: u32 = 1024;

/// Fits that are asked for at a time: enough for every block to have a few, so that slow ones do not hold up the rest.
const BATCH: usize = 4 * MOST_BLOCKS as usize;

/// Numbers of a fit's result.
const RESULT: usize = layout::RESULT_SIZE as usize;

/// Steps after which a fit on a device is left to the host.
const MAX_ITERATIONS: u32 = 100;

/// A Poisson constraint of a larger rate is narrower than single precision can resolve.
const LARGEST_SINGLE_RATE: f64 = 1e8;

/// A model on a device.
#[derive(Debug)]
pub struct Session {
    device: Device,
    plan: Plan,
    layout: Layout,
    indices: Buffer<u32>,
    reals: Reals,
    n_entries: usize,
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
pub struct Items<'a> {
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

impl Session {
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
        let plan = Plan::new(model);
        if device.precision() == Precision::Single {
            check_rates(model)?;
        }
        let tables = Tables::new(model, &plan).map_err(|error| AccelError::TooLarge { numbers: error.numbers })?;
        let (indices, reals) = (device.upload(&tables.indices)?, Reals::upload(device, &tables.reals)?);
        Ok(Self {
            device: device.clone(),
            plan,
            layout: tables.layout,
            indices,
            reals,
            n_entries: tables.n_entries,
            #[cfg(test)]
            kept: Vec::new(),
        })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What an iteration of one fit computes and moves, part by part.
    #[must_use]
    pub fn cost_of_iteration(&self) -> Vec<(&'static str, Cost)> {
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
    pub fn nll(&mut self, items: &Items<'_>) -> Result<Vec<f64>, AccelError> {
        self.check(items.data, items.points)?;
        let n = self.n_items(items.points);
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
    pub fn nll_and_grad(&mut self, items: &Items<'_>) -> Result<(Vec<f64>, Vec<f64>), AccelError> {
        self.check(items.data, items.points)?;
        let n = self.n_items(items.points);
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
    /// positive definite. Parameters at the end of their range towards which the slope leads are held.
    ///
    /// # Errors
    /// What the device says.
    pub fn newton_steps(&mut self, task: &BatchTask<'_>, exact: bool) -> Result<Vec<f64>, AccelError> {
        self.check_task(task)?;
        let n = self.n_items(task.starts);
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

    /// Does every fit of `task`, in as many launches as kernels' counting with 32 bits asks for.
    ///
    /// # Errors
    /// What the device says.
    pub fn fit(&mut self, task: &BatchTask<'_>) -> Result<Vec<Arrival>, AccelError> {
        self.check_task(task)?;
        let (n, n_params) = (self.n_items(task.starts), self.plan.n_params);
        let longest = n_params.max(self.plan.n_bins()).max(self.plan.terms.len()).max(RESULT);
        let most = u32::MAX as usize / longest;
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
            arrivals.extend(self.fit_at_once(&BatchTask { data, starts, fixed, ..*task })?);
        }
        Ok(arrivals)
    }

    fn fit_at_once(&mut self, task: &BatchTask<'_>) -> Result<Vec<Arrival>, AccelError> {
        let n = self.n_items(task.starts);
        let data = self.upload_data(task.data)?;
        let domain = Reals::upload(&self.device, &domain(task))?;
        let mut params = Reals::upload(&self.device, task.starts)?;
        let mut results = Reals::uninitialised(&self.device, n * RESULT)?;
        let variance_param = task.variance_of.map_or(NONE, |param| param as u32);
        let wanted =
            Task { max_iterations: MAX_ITERATIONS, variance_param, fixed_step: fixed_step(task), ..Task::default() };
        let constants = self.task(n, &data, wanted);
        let arguments = vec![data.counts.read(), data.aux.read(), domain.read(), params.write(), results.write()];
        self.run(LikelihoodKernel::Fit, &constants, arguments)?;
        let (params, results) = (params.download()?, results.download()?);
        let rows = params.chunks_exact(self.plan.n_params.max(1)).zip(results.chunks_exact(RESULT)).enumerate();
        Ok(rows.map(|(i, (params, result))| arrival(params, result, data.constant(i))).collect())
    }

    fn n_items(&self, points: &[f64]) -> usize {
        points.len() / self.plan.n_params.max(1)
    }

    fn task(&self, n: usize, data: &Uploaded, wanted: Task) -> Task {
        Task { n_items: n as u32, counts_step: data.counts_step, aux_step: data.aux_step, ..wanted }
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
    fn run(&mut self, kernel: LikelihoodKernel, task: &Task, own: Vec<Argument<'_>>) -> Result<(), AccelError> {
        if task.n_items == 0 {
            return Ok(());
        }
        let Work { blocks, mut numbers } = self.room(task.n_items)?;
        let Self { device, layout, indices, reals, .. } = self;
        let lanes = if device.backend() == Backend::Emulated { EMULATED_LANES } else { LANES };
        let shared_reals = 2 * lanes + (PANEL * PANEL) as u32;
        let grid = Grid { blocks, lanes, shared_reals };
        let (layout, task) = (layout.words(), task.words());
        let mut arguments =
            vec![Argument::uints(&layout), Argument::uints(&task), Argument::read(indices), reals.read()];
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
        let blocks = u64::from(n_items.min(MOST_BLOCKS)).min(fitting).min(addressable).max(1);
        let numbers = Reals::uninitialised(&self.device, (blocks * workspace) as usize)?;
        Ok(Work { blocks: blocks as u32, numbers })
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

impl BatchMinimizer for Session {
    fn batch_size(&self) -> usize {
        BATCH
    }

    fn is_exact(&self) -> bool {
        self.device.precision() == Precision::Double
    }

    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<Arrival>, BatchError> {
        Ok(self.fit(task)?)
    }
}

/// A model that stays on a device for fits, scans and toys of any data: a [`Session`] that several procedures use, one at a time. Copies are the same session.
#[derive(Debug, Clone)]
pub struct GpuSession {
    device: Device,
    session: Arc<Mutex<Session>>,
}

impl GpuSession {
    /// Shares `session`.
    #[must_use]
    pub fn new(session: Session) -> Self {
        Self { device: session.device.clone(), session: Arc::new(Mutex::new(session)) }
    }

    /// The device; asking does not wait.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The session, when nobody else uses it.
    pub fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BatchMinimizer for GpuSession {
    fn batch_size(&self) -> usize {
        BATCH
    }

    fn is_exact(&self) -> bool {
        self.device.precision() == Precision::Double
    }

    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<Arrival>, BatchError> {
        self.lock().minimize(task)
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

/// Flags from one fit's to the next.
fn fixed_step(task: &BatchTask<'_>) -> u32 {
    match task.fixed {
        BatchFixed::Shared(_) => 0,
        BatchFixed::Each(_) => task.lower.len() as u32,
    }
}

fn arrival(params: &[f64], result: &[f64], constant: f64) -> Arrival {
    let at = |place: u32| result[place as usize];
    let has_arrived = at(layout::RESULT_STATUS) == f64::from(layout::CONVERGED);
    Arrival {
        // -0 served as the lower side of a kink.
        params: params.iter().map(|&x| x + 0.0).collect(),
        nll: if at(layout::RESULT_NLL).is_finite() { at(layout::RESULT_NLL) + constant } else { f64::INFINITY },
        edm: at(layout::RESULT_EDM),
        has_arrived,
        variance: Some(at(layout::RESULT_VARIANCE)).filter(|variance| has_arrived && *variance > 0.0),
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
mod tests {
    use super::*;
    use ns_core::interpolate::Interpolation;
    use ns_testkit::random::{self, Shape};

    /// Numbers before and after every table of a block's memory.
    const GUARD: u32 = 8;

    /// Moves the tables of working memory apart. Where the gaps begin.
    fn move_apart(layout: &mut Layout) -> Vec<u32> {
        let mut gaps = vec![];
        let tables = layout.fields_mut().into_iter().filter(|(name, _)| name.starts_with("work_"));
        for (i, (_, offset)) in tables.enumerate() {
            *offset += i as u32 * GUARD;
            gaps.push(*offset);
            *offset += GUARD;
        }
        layout.workspace += gaps.len() as u32 * GUARD;
        gaps.push(layout.workspace);
        layout.workspace += GUARD;
        gaps
    }

    fn results(session: &mut Session, model: &Model) -> Vec<u64> {
        let parameters = &model.parameters;
        let items = Items { data: BatchData::Shared(&model.observed), points: &parameters.init };
        let task = BatchTask {
            data: BatchData::Shared(&model.observed),
            starts: &parameters.init,
            lower: &parameters.lower,
            upper: &parameters.upper,
            fixed: BatchFixed::Shared(&parameters.fixed),
            kinked: &model.kinked(),
            variance_of: model.poi(),
        };
        let (mut all, gradient) = session.nll_and_grad(&items).expect("the device computes");
        all.extend(gradient);
        all.extend(session.nll(&items).expect("the device computes"));
        for exact in [false, true] {
            all.extend(session.newton_steps(&task, exact).expect("the device computes"));
        }
        for arrival in session.fit(&task).expect("the device computes") {
            all.extend(arrival.params);
            all.extend([arrival.nll, arrival.edm, arrival.variance.unwrap_or(-1.0)]);
        }
        all.into_iter().map(f64::to_bits).collect()
    }

    /// An overrun of one table into the next stays inside the buffer, where no sanitizer sees it.
    #[test]
    fn no_kernel_reads_or_writes_beside_a_table_of_its_memory() {
        let device = Device::open(Backend::Emulated, 0).expect("the emulated device opens");
        for seed in 0..40 {
            let rule = if seed % 2 == 0 { Interpolation::default() } else { Interpolation::KINKED };
            let model = random::model(seed, Shape::SMALL, rule);
            let mut usual = Session::new(&device, &model).expect("the model fits");
            let mut guarded = Session::new(&device, &model).expect("the model fits");
            let gaps = move_apart(&mut guarded.layout);
            assert_eq!(results(&mut usual, &model), results(&mut guarded, &model), "seed {seed}: what is read");
            assert_eq!(guarded.kept.len(), 5, "every kernel ran");
            for work in guarded.kept.drain(..) {
                let work = work.download().expect("the device computes");
                for gap in &gaps {
                    let gap = *gap as usize..(gap + GUARD) as usize;
                    assert!(
                        work[gap.clone()].iter().all(|x| x.is_nan()),
                        "seed {seed}: something was written at {gap:?}"
                    );
                }
            }
        }
    }
}
