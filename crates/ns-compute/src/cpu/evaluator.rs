//! The evaluator of one data set: implements `ns_core::Likelihood` with a plan and scratch memory.

use super::channel::{PointTerms, Site, TileWork, tiles};
use super::exact::SecondDerivatives;
use super::gram::GramMatrix;
use super::isa::{self, InstructionSet, Isa, VectorBody, dispatch};
use super::limits::{LimitWork, PoissonTerms};
use super::moves::{MAX_MOVES, MovedTerms};
use super::plan::{ChannelPlan, ModelPlan, TILE};
use super::pull_back::{ExtendedOutput, ExtendedPoint};
use super::terms;
use ns_core::curvature::{Arrowhead, Curvature, CurvatureStructure, GaussNewton};
use ns_core::derived::DerivativeOrder;
use ns_core::likelihood::each_move;
use ns_core::{Data, DataLikelihood, Likelihood, LimitKinks, Model, SampleSlot, SearchLikelihood};
use std::sync::Arc;

/// -ln L of one data set, evaluated on the CPU. Cheap to clone and to give other data. Allocates
/// nothing per evaluation, except a few vectors in [`SearchLikelihood::nll_and_derivative_moved`].
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
/// use ns_compute::CpuLikelihood;
/// use ns_core::{CompileOptions, Curvature, Likelihood, compile, curvature::Arrowhead};
///
/// // λ = 5 μ + 10, and 12 events are observed.
/// let model = compile(&workspace, &CompileOptions::default())?;
/// let mut likelihood = CpuLikelihood::new(&model);
/// let mut lambda = [0.0];
/// likelihood.expected_main(&[2.0], &mut lambda);
/// assert_eq!(lambda, [20.0]);
///
/// // The second derivative of λ - 12 ln λ is 12 (5/λ)² = 0.75 there.
/// let mut hessian = Curvature::Exact(Arrowhead::zeros(likelihood.structure().partition));
/// likelihood.nll_and_curvature(&[2.0], &mut [0.0], &mut hessian);
/// let Curvature::Exact(matrix) = hessian else { unreachable!() };
/// assert!((matrix.to_dense()[0] - 0.75).abs() < 1e-15);
/// # Ok::<(), ns_core::CompileError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CpuLikelihood {
    plan: Arc<ModelPlan>,
    isa: InstructionSet,
    data: Data,
    /// The part of -ln L that depends on the data only.
    constant: f64,
    floor: Option<f64>,
    scratch: Scratch,
    /// Derived quantities and the way back from them; `None` if the model has none.
    pull_back: Option<Box<ExtendedPoint>>,
}

#[derive(Debug, Clone)]
struct Scratch {
    point: PointTerms,
    work: TileWork,
    first: [f64; TILE],
    second: [f64; TILE],
    gram: GramMatrix,
    sums: SecondDerivatives,
    limits: LimitWork,
}

impl CpuLikelihood {
    /// Returns the likelihood of `model`'s observed data.
    #[must_use]
    pub fn new(model: &Model) -> Self {
        Self::with_plan(Arc::new(ModelPlan::new(model)), &model.observed)
    }

    /// Returns the likelihood of `data` under the model that `plan` lays out.
    #[must_use]
    pub fn with_plan(plan: Arc<ModelPlan>, data: &Data) -> Self {
        let scratch = Scratch {
            point: PointTerms::new(&plan),
            work: TileWork::new(&plan),
            first: [0.0; TILE],
            second: [0.0; TILE],
            gram: GramMatrix::new(plan.partition.n_global(), plan.has_rules || plan.partition.sparsity.is_some()),
            sums: SecondDerivatives::new(&plan),
            limits: LimitWork::default(),
        };
        let constant = terms::constants(&plan.terms, data);
        let pull_back = (!plan.derived.is_empty()).then(|| Box::new(ExtendedPoint::new(&plan)));
        Self { plan, isa: isa::best(), data: data.clone(), constant, floor: None, scratch, pull_back }
    }

    /// Selects another instruction set, which must be available on this machine.
    ///
    /// # Panics
    /// If `isa` is not among [`isa::available`].
    #[must_use]
    pub fn with_isa(mut self, isa: InstructionSet) -> Self {
        self.isa = isa::checked(isa);
        self
    }

    /// Returns the data.
    #[must_use]
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Returns the model's layout, to be shared with other evaluators.
    #[must_use]
    pub fn plan(&self) -> &Arc<ModelPlan> {
        &self.plan
    }

    /// Writes the expected event counts at `params` (P) to `out` (B); NaN outside the domain of a
    /// formula.
    pub fn expected_main(&mut self, params: &[f64], out: &mut [f64]) {
        let Some(mut pull_back) = self.pull_back.take() else { return self.expected_at(params, out) };
        pull_back.set(&self.plan, params, DerivativeOrder::Values);
        self.expected_at(pull_back.params(), out);
        self.pull_back = Some(pull_back);
    }

    /// Writes the expected event counts at the extended point `params` (P + D) to `out` (B).
    fn expected_at(&mut self, params: &[f64], out: &mut [f64]) {
        let (plan, scratch) = (&*self.plan, &mut self.scratch);
        dispatch(
            self.isa,
            Expect {
                plan,
                scratch,
                params,
                visit: |bins: std::ops::Range<usize>, lambda: &[f64]| {
                    out[bins].copy_from_slice(lambda);
                },
            },
        );
    }

    /// Returns the plan for changes, after copying it if it is shared.
    pub(crate) fn plan_mut(&mut self) -> &mut ModelPlan {
        Arc::make_mut(&mut self.plan)
    }

    /// Returns the plan, the data, and the scratch memory.
    pub(crate) fn parts(&mut self) -> (&ModelPlan, &Data, &mut PointTerms, &mut TileWork) {
        (&self.plan, &self.data, &mut self.scratch.point, &mut self.scratch.work)
    }

    pub(crate) fn isa(&self) -> InstructionSet {
        self.isa
    }

    /// Returns the part of -ln L that depends on the data only.
    pub(crate) fn constant(&self) -> f64 {
        self.constant
    }

    /// Returns -ln L at the extended point `params` (P + D).
    fn nll_at(&mut self, params: &[f64]) -> f64 {
        let Self { plan, isa, data, constant, floor, scratch, .. } = self;
        let mut main = 0.0;
        let visit = |bins: std::ops::Range<usize>, lambda: &[f64]| {
            main += terms::poisson_value(&data.main[bins], lambda, *floor);
        };
        dispatch(*isa, Expect { plan, scratch, params, visit });
        let value = terms::add_constraints(&plan.terms, &data.aux, params, main + *constant);
        if value.is_finite() { value } else { f64::INFINITY }
    }

    /// Returns -ln L at `params` (P), and writes what is asked for, by way of the extended point.
    #[expect(clippy::needless_pass_by_value, reason = "a reference to an optional reference says less")]
    fn pulled_back(
        &mut self,
        pull_back: &mut ExtendedPoint,
        params: &[f64],
        gradient: &mut [f64],
        curvature: Option<&mut Curvature>,
    ) -> f64 {
        let plan = Arc::clone(&self.plan);
        let is_exact = matches!(curvature, Some(Curvature::Exact(_)));
        let order = if is_exact { DerivativeOrder::Hessians } else { DerivativeOrder::Gradients };
        if !pull_back.set(&plan, params, order) {
            gradient.fill(0.0);
            return f64::INFINITY;
        }
        let value = match &curvature {
            None => {
                let (params, gradient) = pull_back.output();
                self.differentiate(params, gradient, Output::Gradient)
            }
            Some(Curvature::GaussNewton(_)) => {
                let n_rows = self.data.main.len();
                let ExtendedOutput { params, gradient, curvature } = pull_back.output_with_rows(n_rows);
                self.differentiate(params, gradient, Output::rows(curvature))
            }
            Some(Curvature::GaussNewtonProduct(_) | Curvature::Exact(_)) => {
                pull_back.pull_columns(&plan, &mut self.scratch.gram);
                let ExtendedOutput { params, gradient, curvature } = pull_back.output_with_matrix(&plan);
                let value = self.differentiate(params, gradient, Output::matrix(curvature, is_exact));
                self.scratch.gram.pull_none();
                value
            }
        };
        pull_back.gradient(&plan, gradient);
        match curvature {
            None => {}
            Some(Curvature::GaussNewton(out)) => pull_back.rows(&plan, out),
            Some(Curvature::GaussNewtonProduct(out) | Curvature::Exact(out)) => pull_back.matrix(&plan, is_exact, out),
        }
        value
    }

    fn differentiate(&mut self, params: &[f64], gradient: &mut [f64], output: Output<'_>) -> f64 {
        let Self { plan, isa, data, constant, floor, scratch, .. } = self;
        gradient.fill(0.0);
        let value = dispatch(
            *isa,
            Differentiate { plan, data, constant: *constant, floor: *floor, scratch, params, gradient, output },
        );
        if value.is_finite() {
            return value;
        }
        gradient.fill(0.0);
        f64::INFINITY
    }
}

impl Likelihood for CpuLikelihood {
    fn n_params(&self) -> usize {
        self.plan.n_params
    }

    fn structure(&self) -> CurvatureStructure {
        CurvatureStructure { partition: self.plan.outer_partition.clone(), n_rows: self.data.main.len() }
    }

    fn nll(&mut self, params: &[f64]) -> f64 {
        let Some(mut pull_back) = self.pull_back.take() else { return self.nll_at(params) };
        let in_domain = pull_back.set(&self.plan, params, DerivativeOrder::Values);
        let value = if in_domain { self.nll_at(pull_back.params()) } else { f64::INFINITY };
        self.pull_back = Some(pull_back);
        value
    }

    fn nll_and_grad(&mut self, params: &[f64], gradient: &mut [f64]) -> f64 {
        let Some(mut pull_back) = self.pull_back.take() else {
            return self.differentiate(params, gradient, Output::Gradient);
        };
        let value = self.pulled_back(&mut pull_back, params, gradient, None);
        self.pull_back = Some(pull_back);
        value
    }

    fn nll_and_curvature(&mut self, params: &[f64], gradient: &mut [f64], curvature: &mut Curvature) -> f64 {
        if let Some(mut pull_back) = self.pull_back.take() {
            let value = self.pulled_back(&mut pull_back, params, gradient, Some(curvature));
            self.pull_back = Some(pull_back);
            return value;
        }
        let output = match curvature {
            Curvature::GaussNewton(rows) => Output::rows(rows),
            Curvature::GaussNewtonProduct(matrix) => Output::matrix(matrix, false),
            Curvature::Exact(matrix) => Output::matrix(matrix, true),
        };
        self.differentiate(params, gradient, output)
    }

    fn kinks(&mut self, params: &[f64], out: &mut LimitKinks) {
        out.clear();
        if !self.plan.has_limits {
            return;
        }
        let Some(mut pull_back) = self.pull_back.take() else {
            if self.scratch.limits.at != params {
                self.nll_and_grad(params, &mut vec![0.0; params.len()]);
            }
            return out.clone_from(&self.scratch.limits.kinks);
        };
        let plan = Arc::clone(&self.plan);
        if pull_back.set(&plan, params, DerivativeOrder::Gradients) {
            let (extended, gradient) = pull_back.output();
            if self.scratch.limits.at != extended {
                self.differentiate(extended, gradient, Output::Gradient);
            }
            pull_back.kinks(&plan, &self.scratch.limits.kinks, out);
        }
        self.pull_back = Some(pull_back);
    }
}

impl SearchLikelihood for CpuLikelihood {
    fn nll_and_derivative_moved(&mut self, params: &[f64], moves: &[(usize, f64)], out: &mut Vec<[f64; 2]>) {
        if self.plan.has_rules {
            return each_move(self, params, moves, out);
        }
        out.clear();
        let Some(mut pull_back) = self.pull_back.take() else { return self.moved_at(params, moves, out) };
        let in_domain = pull_back.set(&self.plan, params, DerivativeOrder::Values);
        let mut gradient = vec![0.0; params.len()];
        let mut moved = params.to_vec();
        let plan = Arc::clone(&self.plan);
        for chunk in moves.chunk_by(|a, b| plan.moves_formulas[a.0] == plan.moves_formulas[b.0]) {
            if in_domain && !plan.moves_formulas[chunk[0].0] {
                self.moved_at(pull_back.params(), chunk, out);
                continue;
            }
            for &(i, value) in chunk {
                moved[i] = value;
                let nll = self.pulled_back(&mut pull_back, &moved, &mut gradient, None);
                out.push([nll, gradient[i]]);
                moved[i] = params[i];
            }
            pull_back.set(&plan, params, DerivativeOrder::Values);
        }
        self.pull_back = Some(pull_back);
    }

    fn set_floor(&mut self, floor: Option<f64>) -> bool {
        self.floor = floor;
        self.scratch.limits.at.clear();
        true
    }
}

impl CpuLikelihood {
    /// Appends to `out` what [`SearchLikelihood::nll_and_derivative_moved`] writes, at the extended
    /// point `params` (P + D), for parameters that no formula or morphing term depends on.
    fn moved_at(&mut self, params: &[f64], moves: &[(usize, f64)], out: &mut Vec<[f64; 2]>) {
        let Self { plan, isa, data, constant, floor, scratch, .. } = self;
        let Scratch { point, work, .. } = scratch;
        let mut moved = params.to_vec();
        for moves in passes(moves) {
            let sums = dispatch(*isa, MovedTerms { plan, data, floor: *floor, point, work, params, moves });
            for (&(i, value), [main, derivative]) in moves.iter().zip(sums) {
                moved[i] = value;
                let value = terms::add_constraints(&plan.terms, &data.aux, &moved, main + *constant);
                let derivative = derivative + terms::constraint_derivative(&plan.terms, &data.aux, &moved, i);
                out.push(if value.is_finite() { [value, derivative] } else { [f64::INFINITY, 0.0] });
                moved[i] = params[i];
            }
        }
    }
}

impl CpuLikelihood {
    /// Takes over the numbers of `model`, which [`Model::set_sample`] made with `slot` of the model
    /// of this likelihood; the data stay.
    pub fn set_sample(&mut self, model: &Model, slot: &SampleSlot) {
        Arc::make_mut(&mut self.plan).set_sample(model, slot);
        self.scratch.limits.at.clear();
        self.constant = terms::constants(&self.plan.terms, &self.data);
    }
}

impl DataLikelihood for CpuLikelihood {
    fn data(&self) -> &Data {
        &self.data
    }

    fn set_data(&mut self, data: &Data) {
        self.data.main.copy_from_slice(&data.main);
        self.data.aux.copy_from_slice(&data.aux);
        self.scratch.limits.at.clear();
        self.constant = terms::constants(&self.plan.terms, &self.data);
    }
}

/// Splits `moves` into parts that one pass can evaluate: of different parameters, and at most
/// [`MAX_MOVES`].
fn passes(mut moves: &[(usize, f64)]) -> impl Iterator<Item = &[(usize, f64)]> {
    std::iter::from_fn(move || {
        let is_new = |k: &usize| moves[..*k].iter().all(|(i, _)| *i != moves[*k].0);
        let n = (0..moves.len().min(MAX_MOVES)).take_while(is_new).count();
        let (pass, rest) = moves.split_at(n);
        moves = rest;
        (n > 0).then_some(pass)
    })
}

/// Evaluates expected yields, tile by tile.
struct Expect<'a, V> {
    plan: &'a ModelPlan,
    scratch: &'a mut Scratch,
    params: &'a [f64],
    /// Called with the bins of each tile and their λ.
    visit: V,
}

impl<V: FnMut(std::ops::Range<usize>, &[f64])> VectorBody for Expect<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let Scratch { point, work, .. } = self.scratch;
        point.set::<I, false>(isa, self.plan, self.params);
        for channel in &self.plan.channels {
            for tile in tiles(channel) {
                let site = Site { plan: self.plan, channel, tile, point, params: self.params };
                work.expect(isa, site);
                (self.visit)(site.bins(), &work.lambda[..tile.len]);
            }
        }
    }
}

/// The output beside value and gradient.
enum Output<'a> {
    Gradient,
    Rows(&'a mut GaussNewton),
    Product(&'a mut Arrowhead),
    Exact(&'a mut Arrowhead),
}

impl<'a> Output<'a> {
    /// Returns the output of the factors of a Gauss-Newton matrix, set to zero.
    fn rows(rows: &'a mut GaussNewton) -> Self {
        rows.rows.fill(0.0);
        rows.diagonal.fill(0.0);
        Self::Rows(rows)
    }

    /// Returns the output of a matrix, set to zero: the Hessian or the Gauss-Newton matrix.
    fn matrix(matrix: &'a mut Arrowhead, is_exact: bool) -> Self {
        matrix.clear();
        if is_exact { Self::Exact(matrix) } else { Self::Product(matrix) }
    }
}

/// Evaluates value, gradient and curvature; returns +∞ at the first bin that is not finite.
struct Differentiate<'a> {
    plan: &'a ModelPlan,
    data: &'a Data,
    constant: f64,
    floor: Option<f64>,
    scratch: &'a mut Scratch,
    params: &'a [f64],
    gradient: &'a mut [f64],
    output: Output<'a>,
}

impl VectorBody for Differentiate<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f64 {
        let Self { plan, data, constant, floor, scratch, params, gradient, mut output } = self;
        let Scratch { point, work, first, second, gram, sums, limits } = scratch;
        point.set::<I, true>(isa, plan, params);
        if plan.has_limits {
            limits.begin(plan, params);
        }
        if matches!(output, Output::Exact(_)) {
            sums.clear();
        }
        let mut main = 0.0;
        for channel in &plan.channels {
            for tile in tiles(channel) {
                let site = Site { plan, channel, tile, point, params };
                work.differentiate(isa, site);
                let (observed, lambda) = (&data.main[site.bins()], &work.lambda[..tile.len]);
                main += terms::poisson_value(observed, lambda, floor);
                if !main.is_finite() {
                    gram.forget();
                    return f64::INFINITY;
                }
                terms::derivatives(observed, lambda, floor, first, second);
                add_gradient(site, work, first, gradient);
                if plan.has_limits {
                    limits.add_tile(site, work, first, PoissonTerms { data, floor });
                }
                match &mut output {
                    Output::Gradient => {}
                    Output::Rows(rows) => set_factor_rows(site, work, second, rows),
                    Output::Product(out) => gram.add_tile(channel, tile, work, second, out),
                    Output::Exact(out) => {
                        gram.add_tile(channel, tile, work, second, out);
                        sums.add_tile(site, work, first, out);
                    }
                }
            }
            if let Output::Exact(out) = &mut output {
                sums.finish(plan, channel, point, params, out);
            }
            if plan.has_limits {
                limits.add_templates(plan, channel, point, PoissonTerms { data, floor });
            }
        }
        if let Output::Exact(out) = &mut output {
            sums.flush(out);
        }
        finish(plan, data, gram, params, gradient, &mut output);
        terms::add_constraints(&plan.terms, &data.aux, params, main + constant)
    }
}

#[inline(always)]
fn finish(
    plan: &ModelPlan,
    data: &Data,
    gram: &mut GramMatrix,
    params: &[f64],
    gradient: &mut [f64],
    output: &mut Output<'_>,
) {
    match output {
        Output::Gradient => terms::add_constraint_derivatives(&plan.terms, &data.aux, params, gradient, |_, _| {}),
        Output::Rows(rows) => {
            let diagonal = &mut rows.diagonal;
            terms::add_constraint_derivatives(&plan.terms, &data.aux, params, gradient, |param, c| {
                diagonal[param] += c;
            });
        }
        Output::Product(out) | Output::Exact(out) => {
            gram.flush(out);
            terms::add_constraint_derivatives(&plan.terms, &data.aux, params, gradient, |param, c| {
                out.add_diagonal(param, c);
            });
        }
    }
}

#[inline(always)]
pub(crate) fn add_gradient(site: Site<'_>, work: &TileWork, first: &[f64; TILE], gradient: &mut [f64]) {
    let Site { plan, channel, tile, .. } = site;
    let dot = |row: &[f64]| row[..tile.len].iter().zip(first).map(|(j, w)| j * w).sum::<f64>();
    for (column, &position) in channel.columns.iter().enumerate() {
        gradient[plan.partition.global[position as usize] as usize] += dot(work.jacobian.row(column));
    }
    for bin in 0..tile.len {
        for (local, slot) in locals(plan, channel, tile.start + bin) {
            gradient[local] += first[bin] * work.local_jacobian.row(slot)[bin];
        }
    }
}

/// Writes the derivatives of the tile's counts along `direction` (P) to `out`.
#[inline(always)]
pub(crate) fn rates(site: Site<'_>, work: &TileWork, direction: &[f64], out: &mut [f64; TILE]) {
    let Site { plan, channel, tile, .. } = site;
    out.fill(0.0);
    for (column, &position) in channel.columns.iter().enumerate() {
        let speed = direction[plan.partition.global[position as usize] as usize];
        let row = &work.jacobian.row(column)[..tile.len];
        out.iter_mut().zip(row).for_each(|(rate, derivative)| *rate += speed * derivative);
    }
    for bin in 0..tile.len {
        for (local, slot) in locals(plan, channel, tile.start + bin) {
            out[bin] += direction[local] * work.local_jacobian.row(slot)[bin];
        }
    }
}

/// Iterates over parameter and slot of each local parameter of a bin, counted inside the channel.
#[inline(always)]
pub(super) fn locals<'a>(
    plan: &'a ModelPlan,
    channel: &ChannelPlan,
    bin: usize,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let start = channel.first_local + bin * channel.n_slots;
    let params = &plan.partition.local[start..start + channel.n_slots];
    params.iter().enumerate().map(|(slot, &param)| (param as usize, slot))
}

/// Writes √W ∂λ/∂θ of the tile's bins to the rows of `out`.
fn set_factor_rows(site: Site<'_>, work: &TileWork, second: &[f64; TILE], out: &mut GaussNewton) {
    let Site { plan, channel, tile, .. } = site;
    for bin in 0..tile.len {
        let start = (channel.bins.start + tile.start + bin) * plan.n_extended;
        let row = &mut out.rows[start..start + plan.n_extended];
        let root = second[bin].sqrt();
        for (column, &position) in channel.columns.iter().enumerate() {
            row[plan.partition.global[position as usize] as usize] = root * work.jacobian.row(column)[bin];
        }
        for (param, slot) in locals(plan, channel, tile.start + bin) {
            row[param] = root * work.local_jacobian.row(slot)[bin];
        }
    }
}
