//! Evaluates -ln L as a function of templates: chosen histograms are replaced between evaluations.
//!
//! A session owns its copy of the plan and writes new yields into it in place: nothing is compiled
//! again. Gradients use the same tiles as those of [`CpuLikelihood`], at the extended point of a
//! model with formulas, and allocate nothing. Derivatives along lines of parameters, of which a
//! profiled statistic needs one or two, use the reference implementation in `ns_core::templates`,
//! on a copy of the model.

use super::channel::{PointTerms, Site, TileWork, tiles};
use super::evaluator::{CpuLikelihood, add_gradient, rates};
use super::isa::{Isa, VectorBody, dispatch};
use super::plan::{ModelPlan, TILE};
use super::pull_back::ExtendedPoint;
use super::terms;
use ns_core::curvature::{Curvature, CurvatureStructure};
use ns_core::derived::DerivativeOrder;
use ns_core::taylor::Taylor;
use ns_core::templates::choice::YieldSource;
use ns_core::templates::{self, JointDirection, LineExpansion, ParameterLine};
use ns_core::{Data, DataLikelihood, Inputs, Likelihood, LimitKinks, Model, SearchLikelihood, TemplateLikelihood};
use std::sync::Arc;

/// A [`CpuLikelihood`] whose chosen templates can be replaced, with derivatives with respect to
/// them.
///
/// M is the number of inputs, P that of parameters, B that of bins.
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
/// use ns_compute::DifferentiableSession;
/// use ns_core::templates::{Inputs, TemplateSelection, TemplateVariations};
/// use ns_core::{CompileOptions, TemplateLikelihood, compile};
///
/// // λ = s μ + 10 with the input s = 5, and 12 events are observed.
/// let model = compile(&workspace, &CompileOptions::default())?;
/// let signal =
///     TemplateSelection { sample: "signal".into(), channel: None, variations: TemplateVariations::None };
/// let mut session = DifferentiableSession::new(&model, Inputs::new(&model, &[signal])?);
/// let (mut by_mu, mut by_s) = ([0.0], [0.0]);
/// session.nll_and_gradients(&[1.0], &mut by_mu, &mut by_s);
/// // (1 - 12/15) times s, and times μ.
/// assert!((by_mu[0] - 1.0).abs() < 1e-15 && (by_s[0] - 0.2).abs() < 1e-15);
///
/// session.set_inputs(&[2.0]);
/// session.nll_and_gradients(&[1.0], &mut by_mu, &mut by_s);
/// assert_eq!((by_mu, by_s), ([0.0], [0.0])); // λ = 12
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct DifferentiableSession {
    likelihood: CpuLikelihood,
    /// The model with the inputs in it.
    model: Model,
    inputs: Arc<Inputs>,
    first: [f64; TILE],
    second: [f64; TILE],
    /// The extended point of a model with formulas.
    extended: Option<Box<ExtendedPoint>>,
    /// How that point moves along a line of parameters (P + D).
    extended_direction: Vec<f64>,
    /// A line of parameters (P), the bins' weights along it (B), and the sums by the inputs (M).
    line: Vec<Taylor>,
    weights: Vec<Taylor>,
    changes: Vec<Taylor>,
}

impl DifferentiableSession {
    /// Returns a session of `model` on its observed data, with the inputs of the model.
    #[must_use]
    pub fn new(model: &Model, inputs: Inputs) -> Self {
        let likelihood = CpuLikelihood::new(model);
        let plan = likelihood.plan();
        let extended = (!plan.derived.is_empty()).then(|| Box::new(ExtendedPoint::new(plan)));
        let inputs = Arc::new(inputs);
        Self {
            likelihood,
            model: model.clone(),
            inputs,
            first: [0.0; TILE],
            second: [0.0; TILE],
            extended,
            extended_direction: Vec::new(),
            line: Vec::new(),
            weights: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Returns the model with the inputs in it.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the data.
    #[must_use]
    pub fn data(&self) -> &Data {
        self.likelihood.data()
    }

    /// Computes the gradients with the weights c of the bins at `params` (P). Returns the Poisson
    /// terms with [`BinWeights::Poisson`], else 0. Outside the domain of a formula, returns +∞ with
    /// gradients of NaN.
    fn run(&mut self, params: &[f64], weights: BinWeights<'_>, gradient: &mut [f64], by_inputs: &mut [f64]) -> f64 {
        let Some(mut extended) = self.extended.take() else {
            return self.run_at(params, weights, gradient, by_inputs);
        };
        let plan = Arc::clone(self.likelihood.plan());
        let value = if extended.set(&plan, params, DerivativeOrder::Gradients) {
            let (params, by_extended) = extended.output();
            let value = self.run_at(params, weights, by_extended, by_inputs);
            extended.gradient(&plan, gradient);
            value
        } else {
            gradient.fill(f64::NAN);
            by_inputs.fill(f64::NAN);
            f64::INFINITY
        };
        self.extended = Some(extended);
        value
    }

    /// Computes the gradients at the extended point `params` (P + D), `gradient` (P + D) by its
    /// entries.
    fn run_at(&mut self, params: &[f64], weights: BinWeights<'_>, gradient: &mut [f64], by_inputs: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        by_inputs.fill(0.0);
        let Self { likelihood, inputs, first, second, .. } = self;
        let isa = likelihood.isa();
        let (plan, data, point, work) = likelihood.parts();
        dispatch(isa, PullBack { plan, data, inputs, params, weights, point, work, first, second, gradient, by_inputs })
    }

    /// Computes the bins' weights 1 - n/λ along `params` + ε `direction`, to first order; NaN
    /// outside the domain of a formula.
    fn weights_along(&mut self, params: &[f64], direction: &[f64]) {
        let Self { likelihood, model, extended, extended_direction, weights, .. } = self;
        weights.resize(model.n_bins(), Taylor::default());
        let isa = likelihood.isa();
        let (plan, data, point, work) = likelihood.parts();
        let Some(extended) = extended else {
            return dispatch(isa, WeightsAlong { plan, data, params, direction, point, work, weights });
        };
        if !extended.set(plan, params, DerivativeOrder::Gradients) {
            return weights.fill(Taylor { value: f64::NAN, first: f64::NAN, second: f64::NAN });
        }
        extended.direction(plan, direction, extended_direction);
        let (params, direction) = (extended.params(), &*extended_direction);
        dispatch(isa, WeightsAlong { plan, data, params, direction, point, work, weights });
    }
}

impl TemplateLikelihood for DifferentiableSession {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn set_inputs(&mut self, values: &[f64]) {
        self.inputs.apply(values, &mut self.model);
        self.likelihood.plan_mut().set_inputs(&self.inputs, values);
    }

    fn nll_and_gradients(&mut self, params: &[f64], gradient: &mut [f64], by_inputs: &mut [f64]) -> f64 {
        let main = self.run(params, BinWeights::Poisson, gradient, by_inputs);
        let constant = self.likelihood.constant();
        let (plan, data, ..) = self.likelihood.parts();
        let value = terms::add_constraints(&plan.terms, &data.aux, params, main + constant);
        if value.is_finite() {
            terms::add_constraint_derivatives(&plan.terms, &data.aux, params, gradient, |_, _| {});
            return value;
        }
        gradient.fill(0.0);
        by_inputs.fill(0.0);
        f64::INFINITY
    }

    fn expected(&mut self, params: &[f64], lambda: &mut [f64]) {
        self.likelihood.expected_main(params, lambda);
    }

    fn pull_back(&mut self, params: &[f64], weights: &[f64], gradient: &mut [f64], by_inputs: &mut [f64]) {
        self.run(params, BinWeights::Fixed(weights), gradient, by_inputs);
    }

    fn along(&mut self, params: &[f64], direction: &[f64], out: &mut LineExpansion) {
        let line = ParameterLine { start: params, direction, input_direction: None };
        templates::along(&self.model, &self.inputs, self.likelihood.data(), line, out);
    }

    fn inputs_along(&mut self, params: &[f64], direction: &[f64], by_inputs: &mut [f64]) {
        self.weights_along(params, direction);
        let Self { model, inputs, line, weights, changes, .. } = self;
        line.clear();
        line.extend(params.iter().zip(direction).map(|(&start, &derivative)| Taylor::line(start, derivative)));
        templates::pull_back_inputs(model, inputs, line, weights, changes);
        by_inputs.iter_mut().zip(changes).for_each(|(derivative, change)| *derivative = change.first);
    }

    fn hessian_product(&mut self, params: &[f64], direction: JointDirection<'_>, out: &mut LineExpansion) {
        let JointDirection { params: direction, inputs } = direction;
        let line = ParameterLine { start: params, direction, input_direction: Some(inputs) };
        templates::along(&self.model, &self.inputs, self.likelihood.data(), line, out);
    }
}

impl Likelihood for DifferentiableSession {
    fn n_params(&self) -> usize {
        self.likelihood.n_params()
    }

    fn structure(&self) -> CurvatureStructure {
        self.likelihood.structure()
    }

    fn nll(&mut self, params: &[f64]) -> f64 {
        self.likelihood.nll(params)
    }

    fn nll_and_grad(&mut self, params: &[f64], gradient: &mut [f64]) -> f64 {
        self.likelihood.nll_and_grad(params, gradient)
    }

    fn nll_and_curvature(&mut self, params: &[f64], gradient: &mut [f64], curvature: &mut Curvature) -> f64 {
        self.likelihood.nll_and_curvature(params, gradient, curvature)
    }

    fn kinks(&mut self, params: &[f64], out: &mut LimitKinks) {
        self.likelihood.kinks(params, out);
    }
}

impl SearchLikelihood for DifferentiableSession {
    fn nll_and_derivative_moved(&mut self, params: &[f64], moves: &[(usize, f64)], out: &mut Vec<[f64; 2]>) {
        self.likelihood.nll_and_derivative_moved(params, moves, out);
    }

    fn set_floor(&mut self, floor: Option<f64>) -> bool {
        self.likelihood.set_floor(floor)
    }
}

impl DataLikelihood for DifferentiableSession {
    fn data(&self) -> &Data {
        self.likelihood.data()
    }

    fn set_data(&mut self, data: &Data) {
        self.likelihood.set_data(data);
    }
}

/// The weights c of the bins.
#[derive(Clone, Copy)]
enum BinWeights<'a> {
    /// 1 - n/λ, those of -ln L.
    Poisson,
    /// These (B).
    Fixed(&'a [f64]),
}

/// Computes Σ_b c_b ∂λ_b/∂θ and Σ_b c_b ∂λ_b/∂x; with the weights of the Poisson terms also their
/// sum.
struct PullBack<'a> {
    plan: &'a ModelPlan,
    data: &'a Data,
    inputs: &'a Inputs,
    params: &'a [f64],
    weights: BinWeights<'a>,
    point: &'a mut PointTerms,
    work: &'a mut TileWork,
    first: &'a mut [f64; TILE],
    second: &'a mut [f64; TILE],
    gradient: &'a mut [f64],
    by_inputs: &'a mut [f64],
}

impl VectorBody for PullBack<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f64 {
        let Self { plan, data, inputs, params, weights, point, work, first, second, gradient, by_inputs } = self;
        point.set::<I, true>(isa, plan, params);
        let mut main = 0.0;
        for channel in &plan.channels {
            for tile in tiles(channel) {
                let site = Site { plan, channel, tile, point, params };
                work.differentiate(isa, site);
                match weights {
                    BinWeights::Fixed(weights) => first[..tile.len].copy_from_slice(&weights[site.bins()]),
                    BinWeights::Poisson => {
                        let (observed, lambda) = (&data.main[site.bins()], &work.lambda[..tile.len]);
                        main += terms::poisson_value(observed, lambda, None);
                        if !main.is_finite() {
                            return f64::INFINITY;
                        }
                        terms::derivatives(observed, lambda, None, first, second);
                    }
                }
                add_gradient(site, work, first, gradient);
                add_inputs(site, inputs, work, first, by_inputs);
            }
        }
        main
    }
}

/// Computes the weights 1 - n/λ of the bins (B), and their derivatives along a direction of the
/// extended point (P + D).
struct WeightsAlong<'a> {
    plan: &'a ModelPlan,
    data: &'a Data,
    params: &'a [f64],
    direction: &'a [f64],
    point: &'a mut PointTerms,
    work: &'a mut TileWork,
    weights: &'a mut [Taylor],
}

impl VectorBody for WeightsAlong<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { plan, data, params, direction, point, work, weights } = self;
        point.set::<I, true>(isa, plan, params);
        let (mut first, mut second, mut rate) = ([0.0; TILE], [0.0; TILE], [0.0; TILE]);
        for channel in &plan.channels {
            for tile in tiles(channel) {
                let site = Site { plan, channel, tile, point, params };
                work.differentiate(isa, site);
                let (observed, lambda) = (&data.main[site.bins()], &work.lambda[..tile.len]);
                terms::derivatives(observed, lambda, None, &mut first, &mut second);
                rates(site, work, direction, &mut rate);
                for (bin, weight) in weights[site.bins()].iter_mut().enumerate() {
                    *weight = Taylor { value: first[bin], first: second[bin] * rate[bin], second: 0.0 };
                }
            }
        }
    }
}

/// Adds the contributions of the tile's chosen templates; `first` is c of each bin.
#[inline(always)]
fn add_inputs(site: Site<'_>, inputs: &Inputs, work: &TileWork, first: &[f64; TILE], by_inputs: &mut [f64]) {
    let Site { plan, channel, tile, point, params } = site;
    for (i, t) in channel.templates.clone().enumerate() {
        let Some(input) = inputs.of_template(t) else { continue };
        let scales = &work.scales.row(i)[..tile.len];
        let mut rest = 1.0;
        for histosys in &input.histosys {
            let [p, q, ..] = point.weights[plan.histosys[histosys.entry].weight as usize];
            rest -= p + q;
            for (end, weight) in [(&histosys.hi, p), (&histosys.lo, q)] {
                if let YieldSource::Input(start) = *end {
                    let out = &mut by_inputs[start + tile.start..][..tile.len];
                    add_products(out, scales, first, weight);
                }
            }
        }
        add_products(&mut by_inputs[input.nominal + tile.start..][..tile.len], scales, first, rest);
        for morphing in &input.morphing {
            let coefficient = params[plan.morphs[morphing.entry].param as usize];
            add_products(&mut by_inputs[morphing.start + tile.start..][..tile.len], scales, first, coefficient);
        }
        if input.normsys.is_empty() {
            continue;
        }
        let yields = &work.yields.row(i)[..tile.len];
        let total: f64 = yields.iter().zip(first).map(|(y, c)| y * c).sum();
        for normsys in &input.normsys {
            let alpha = params[plan.normsys[normsys.entry].param as usize];
            let relative = total / super::nonzero(point.factors.value[normsys.entry]);
            let [by_lo, by_hi] = plan.normsys_table.by_ends(normsys.entry, alpha);
            by_inputs[normsys.hi] += relative * by_hi;
            by_inputs[normsys.hi + 1] += relative * by_lo;
        }
    }
}

#[inline(always)]
fn add_products(out: &mut [f64], scales: &[f64], first: &[f64; TILE], weight: f64) {
    for ((out, scale), c) in out.iter_mut().zip(scales).zip(first) {
        *out += weight * scale * c;
    }
}
