//! Evaluates many points at once, each with its own data: -ln L and its gradient, eight points to a
//! group, one in each lane of the vectors.
//!
//! The model is read once per group. The gradient is computed by reverse accumulation (adjoints of
//! yields, then of factors and shifts), and costs about as much as the value. `CpuLikelihood` is
//! the reference implementation; it alone has curvature and a floor of the Poisson terms.
//!
//! Legend: N points, P parameters, B bins, K auxiliary data.

mod constraints;
mod factors;
mod lanes;
mod poisson;
mod tile;

use super::channel::tiles;
use super::evaluator::CpuLikelihood;
use super::isa::{self, InstructionSet, Isa, VectorBody, dispatch};
use super::plan::ModelPlan;
use super::terms;
use constraints::ConstrainedPoint;
use factors::{FactorChains, ShiftWeights};
use lanes::{LANES, Lanes};
use ns_core::derived::{DerivativeOrder, DerivedPoint, DerivedQuantities};
use ns_core::{Data, DataLikelihood, Likelihood};
use std::sync::Arc;
use tile::{BatchSite, BatchTileWork};

/// One data set, with the part of -ln L that depends on the data alone: prepared once, used at many
/// points.
#[derive(Debug, Clone)]
pub struct BatchDataSet {
    data: Data,
    constant: f64,
}

impl BatchDataSet {
    /// Prepares `data` for the model that `plan` lays out.
    ///
    /// # Panics
    /// If the numbers of bins and auxiliary data are not those of the model.
    #[must_use]
    pub fn new(plan: &ModelPlan, data: Data) -> Self {
        assert_eq!(
            (data.main.len(), data.aux.len()),
            (plan.n_bins(), plan.terms.len()),
            "the data are of another model"
        );
        let constant = terms::constants(&plan.terms, &data);
        Self { data, constant }
    }

    /// Returns the data.
    #[must_use]
    pub fn data(&self) -> &Data {
        &self.data
    }
}

/// The data of N points.
#[derive(Debug, Clone, Copy)]
pub enum BatchDataSets<'a> {
    /// The same for every point.
    Shared(&'a BatchDataSet),
    /// One for each point (N).
    Each(&'a [&'a BatchDataSet]),
}

impl<'a> BatchDataSets<'a> {
    fn of(self, point: usize) -> &'a BatchDataSet {
        match self {
            Self::Shared(data) => data,
            Self::Each(data) => data[point],
        }
    }
}

/// -ln L of many points at once. Cheap to clone, one for each thread; allocates nothing per
/// evaluation.
///
/// A point's result depends on its parameters and data only, to the bit: not on N, on its place, or
/// on the other points.
///
/// ```
/// use ns_compute::{CpuBatch, CpuLikelihood, BatchDataSet, BatchDataSets};
/// use ns_core::{CompileOptions, Likelihood, compile};
/// # let workspace = ns_testkit::random::workspace(1, ns_testkit::random::Shape::SMALL);
/// # let model = compile(&workspace, &CompileOptions::default())?;
/// let mut likelihood = CpuLikelihood::new(&model);
/// let mut batch = CpuBatch::new(likelihood.plan().clone());
/// let observed = BatchDataSet::new(batch.plan(), model.observed.clone());
/// let points = model.parameters.init.repeat(3);
/// let (mut nll, mut gradient) = ([0.0; 3], vec![0.0; points.len()]);
/// batch.nll_and_grad(BatchDataSets::Shared(&observed), &points, &mut nll, &mut gradient);
/// assert!((nll[2] - likelihood.nll(&model.parameters.init)).abs() < 1e-13 * nll[2].abs());
/// # Ok::<(), ns_core::CompileError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CpuBatch {
    plan: Arc<ModelPlan>,
    isa: InstructionSet,
    group: Group,
    scratch: Scratch,
    /// What evaluates models with rules of yields: one point at a time.
    single: Option<Box<CpuLikelihood>>,
}

/// Eight points and what is evaluated there.
#[derive(Debug, Clone)]
struct Group {
    /// The extended points (P + D).
    params: Vec<Lanes>,
    main: Vec<Lanes>,
    aux: Vec<Lanes>,
    constant: Lanes,
    gradient: Vec<Lanes>,
    /// The derived quantities of each point; empty if the model has none.
    points: Vec<DerivedPoint>,
    by_derived: Vec<f64>,
}

#[derive(Debug, Clone)]
struct Scratch {
    weights: ShiftWeights,
    chains: FactorChains,
    work: BatchTileWork,
}

impl CpuBatch {
    /// Returns an evaluator of the model that `plan` lays out.
    #[must_use]
    pub fn new(plan: Arc<ModelPlan>) -> Self {
        let room = |n| vec![Lanes::ZERO; n];
        let group = Group {
            params: room(plan.n_extended),
            main: room(plan.n_bins()),
            aux: room(plan.terms.len()),
            constant: Lanes::ZERO,
            gradient: room(plan.n_extended),
            points: if plan.derived.is_empty() { Vec::new() } else { vec![DerivedPoint::new(&plan.derived); LANES] },
            by_derived: vec![0.0; plan.derived.len()],
        };
        let scratch = Scratch {
            weights: ShiftWeights::new(&plan),
            chains: FactorChains::new(&plan),
            work: BatchTileWork::new(&plan),
        };
        let single = plan.has_rules.then(|| {
            let data = Data { main: vec![0.0; plan.n_bins()], aux: vec![0.0; plan.terms.len()] };
            Box::new(CpuLikelihood::with_plan(Arc::clone(&plan), &data))
        });
        Self { plan, isa: isa::best(), group, scratch, single }
    }

    /// Selects another instruction set, which must be available on this machine.
    ///
    /// # Panics
    /// If `isa` is not among [`isa::available`].
    #[must_use]
    pub fn with_isa(mut self, isa: InstructionSet) -> Self {
        self.isa = isa::checked(isa);
        self.single = self.single.map(|single| Box::new(single.with_isa(isa)));
        self
    }

    /// Returns the model's layout, to be shared with other evaluators.
    #[must_use]
    pub fn plan(&self) -> &Arc<ModelPlan> {
        &self.plan
    }

    /// Writes -ln L at each point of `params` (N × P) to `nll` (N); +∞ outside the domain.
    ///
    /// # Panics
    /// If the lengths are inconsistent.
    pub fn nll(&mut self, data: BatchDataSets<'_>, params: &[f64], nll: &mut [f64]) {
        self.evaluate::<false>(data, params, nll, &mut []);
    }

    /// Writes -ln L at each point of `params` (N × P) to `nll` (N), and the gradients to `gradient`
    /// (N × P); zero for a point outside the domain.
    ///
    /// # Panics
    /// If the lengths are inconsistent.
    pub fn nll_and_grad(&mut self, data: BatchDataSets<'_>, params: &[f64], nll: &mut [f64], gradient: &mut [f64]) {
        assert_eq!(gradient.len(), params.len(), "one derivative for each parameter of each point");
        self.evaluate::<true>(data, params, nll, gradient);
    }

    fn evaluate<const GRADIENT: bool>(
        &mut self,
        data: BatchDataSets<'_>,
        params: &[f64],
        nll: &mut [f64],
        gradient: &mut [f64],
    ) {
        let n_params = self.plan.n_params;
        assert_eq!(params.len(), nll.len() * n_params, "one parameter vector for each point");
        if let Some(single) = &mut self.single {
            return one_by_one::<GRADIENT>(single, data, params, nll, gradient);
        }
        match data {
            BatchDataSets::Shared(data) => self.group.set_data(&[data; LANES]),
            BatchDataSets::Each(data) => assert_eq!(data.len(), nll.len(), "one data set for each point"),
        }
        for (g, nll) in nll.chunks_mut(LANES).enumerate() {
            let first = g * LANES;
            // The last group is filled up with its last point.
            let points: [usize; LANES] = std::array::from_fn(|lane| first + lane.min(nll.len() - 1));
            if let BatchDataSets::Each(_) = data {
                self.group.set_data(&points.map(|point| data.of(point)));
            }
            let order = if GRADIENT { DerivativeOrder::Gradients } else { DerivativeOrder::Values };
            let rows = points.map(|point| &params[point * n_params..(point + 1) * n_params]);
            let in_domain = self.group.set_params(&self.plan.derived, &rows, order);
            let Self { plan, isa, group, scratch, .. } = self;
            let value = dispatch(*isa, Evaluate::<GRADIENT> { plan, group, scratch });
            for (lane, nll) in nll.iter_mut().enumerate() {
                let is_finite = in_domain[lane] && value.0[lane].is_finite();
                *nll = if is_finite { value.0[lane] } else { f64::INFINITY };
                if GRADIENT {
                    let point = first + lane;
                    let out = &mut gradient[point * n_params..(point + 1) * n_params];
                    group.write_gradient(lane, is_finite, &plan.derived, out);
                }
            }
        }
    }
}

impl Group {
    fn set_data(&mut self, data: &[&BatchDataSet; LANES]) {
        gather(&mut self.main, &data.map(|set| &set.data.main[..]));
        gather(&mut self.aux, &data.map(|set| &set.data.aux[..]));
        self.constant = Lanes(data.map(|set| set.constant));
    }

    /// Sets the points (P), and returns for each whether its derived quantities are finite.
    fn set_params(
        &mut self,
        derived: &DerivedQuantities,
        params: &[&[f64]; LANES],
        order: DerivativeOrder,
    ) -> [bool; LANES] {
        if derived.is_empty() {
            gather(&mut self.params, params);
            return [true; LANES];
        }
        let in_domain = std::array::from_fn(|lane| self.points[lane].set(derived, params[lane], order));
        gather(&mut self.params, &std::array::from_fn(|lane| &self.points[lane].extended[..]));
        in_domain
    }

    fn write_gradient(&mut self, lane: usize, is_finite: bool, derived: &DerivedQuantities, out: &mut [f64]) {
        if !is_finite {
            return out.fill(0.0);
        }
        for (out, derivative) in out.iter_mut().zip(&self.gradient) {
            *out = derivative.0[lane];
        }
        if !derived.is_empty() {
            let by_derived = self.gradient[out.len()..].iter().map(|derivative| derivative.0[lane]);
            self.by_derived.iter_mut().zip(by_derived).for_each(|(to, from)| *to = from);
            self.points[lane].pull_back(derived, &self.by_derived, out);
        }
    }
}

/// Evaluates one point after the other.
fn one_by_one<const GRADIENT: bool>(
    likelihood: &mut CpuLikelihood,
    data: BatchDataSets<'_>,
    params: &[f64],
    nll: &mut [f64],
    gradient: &mut [f64],
) {
    let n_params = likelihood.n_params();
    for (point, nll) in nll.iter_mut().enumerate() {
        if point == 0 || matches!(data, BatchDataSets::Each(_)) {
            likelihood.set_data(data.of(point).data());
        }
        let range = point * n_params..(point + 1) * n_params;
        *nll = match GRADIENT {
            true => likelihood.nll_and_grad(&params[range.clone()], &mut gradient[range]),
            false => likelihood.nll(&params[range]),
        };
    }
}

/// Interleaves eight rows, one in each lane.
fn gather(columns: &mut [Lanes], rows: &[&[f64]; LANES]) {
    let rows = rows.map(|row| &row[..columns.len()]);
    for (i, column) in columns.iter_mut().enumerate() {
        for lane in 0..LANES {
            column.0[lane] = rows[lane][i];
        }
    }
}

/// Evaluates one group, with its gradient if `GRADIENT`.
struct Evaluate<'a, const GRADIENT: bool> {
    plan: &'a ModelPlan,
    group: &'a mut Group,
    scratch: &'a mut Scratch,
}

impl<const GRADIENT: bool> VectorBody for Evaluate<'_, GRADIENT> {
    type Output = Lanes;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Lanes {
        let Self { plan, group: Group { params, main, aux, constant, gradient, .. }, scratch } = self;
        let Scratch { weights, chains, work } = scratch;
        weights.set(plan, params);
        chains.find_outer(plan, params);
        gradient.fill(Lanes::ZERO);
        let mut sum = Lanes::ZERO;
        for channel in &plan.channels {
            chains.forward(isa, plan, channel, params);
            for tile in tiles(channel) {
                let first = channel.bins.start + tile.start;
                let site = BatchSite { plan, channel, tile, params };
                work.expect(isa, site, weights, chains);
                sum = work.compare::<I, GRADIENT>(isa, &main[first..first + tile.len], sum);
                if GRADIENT {
                    work.backward(isa, site, weights, chains, gradient);
                }
            }
            if GRADIENT {
                chains.backward(isa, plan, channel, params, gradient);
            }
        }
        if GRADIENT {
            weights.finish(isa, plan, gradient);
        }
        let point = ConstrainedPoint { aux, params };
        constraints::add::<I, GRADIENT>(isa, &plan.terms, point, gradient, sum + *constant)
    }
}
