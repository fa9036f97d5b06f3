//! -ln L as a function of templates: the evaluator of a model whose chosen histograms are replaced between evaluations.
//!
//! A session owns its copy of the plan and writes new yields into it in place: nothing is compiled again and nothing is allocated per call. Gradients go
//! backwards through the same tiles as those of [`CpuLikelihood`]; changes along lines of parameters, of which a profiled statistic needs one or two, are left to the
//! plain code of `ns_core::templates`, on a model that follows.

use super::channel::{Point, Tile, TileWork, tiles};
use super::evaluator::{CpuLikelihood, add_gradient, bins, rates};
use super::isa::{Body, Isa, dispatch};
use super::plan::{ChannelPlan, ModelPlan, TILE};
use super::terms;
use ns_core::curvature::{Curvature, CurvatureStructure};
use ns_core::taylor::Taylor;
use ns_core::templates::choice::YieldSource;
use ns_core::templates::{self, LineExpansion};
use ns_core::{Data, DataLikelihood, Inputs, Likelihood, Model, SearchLikelihood, TemplateLikelihood};
use std::sync::Arc;

/// A [`CpuLikelihood`] whose chosen templates can be replaced, with derivatives with respect to them.
///
/// M is the number of inputs, P that of parameters, B that of bins.
#[derive(Debug, Clone)]
pub struct DifferentiableSession {
    likelihood: CpuLikelihood,
    /// The model with the inputs in it.
    model: Model,
    inputs: Arc<Inputs>,
    first: [f64; TILE],
    second: [f64; TILE],
    /// A line of parameters (P), the bins' weights along it (B), and the sums by the inputs (M).
    line: Vec<Taylor>,
    weights: Vec<Taylor>,
    changes: Vec<Taylor>,
}

impl DifferentiableSession {
    /// A session of `model` on its observed data; its inputs begin as the model has them.
    #[must_use]
    pub fn new(model: &Model, inputs: Inputs) -> Self {
        let likelihood = CpuLikelihood::new(model);
        let inputs = Arc::new(inputs);
        Self {
            likelihood,
            model: model.clone(),
            inputs,
            first: [0.0; TILE],
            second: [0.0; TILE],
            line: Vec::new(),
            weights: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// The model with the inputs in it.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The data it is the likelihood of.
    #[must_use]
    pub fn data(&self) -> &Data {
        self.likelihood.data()
    }

    /// Gradients of Σ_b of what `weights` says; -ln L itself with [`Weights::Poisson`].
    fn run(&mut self, params: &[f64], weights: Weights<'_>, gradient: &mut [f64], by_inputs: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        by_inputs.fill(0.0);
        let Self { likelihood, inputs, first, second, .. } = self;
        let isa = likelihood.isa();
        let (plan, data, point, work) = likelihood.parts();
        dispatch(isa, PullBack { plan, data, inputs, params, weights, point, work, first, second, gradient, by_inputs })
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
        let main = self.run(params, Weights::Poisson, gradient, by_inputs);
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
        self.run(params, Weights::Given(weights), gradient, by_inputs);
    }

    fn along(&mut self, params: &[f64], direction: &[f64], out: &mut LineExpansion) {
        templates::along(&self.model, &self.inputs, self.likelihood.data(), (params, direction), out);
    }

    fn inputs_along(&mut self, params: &[f64], direction: &[f64], by_inputs: &mut [f64]) {
        let Self { likelihood, model, inputs, line, weights, changes, .. } = self;
        weights.resize(model.n_bins(), Taylor::default());
        let isa = likelihood.isa();
        let (plan, data, point, work) = likelihood.parts();
        dispatch(isa, WeightsAlong { plan, data, params, direction, point, work, weights });
        line.clear();
        line.extend(params.iter().zip(direction).map(|(&start, &derivative)| Taylor::line(start, derivative)));
        templates::pull_back_inputs(model, inputs, line, weights, changes);
        by_inputs.iter_mut().zip(changes).for_each(|(derivative, change)| *derivative = change.first);
    }

    fn hessian_product(&mut self, params: &[f64], direction: (&[f64], &[f64]), out: &mut LineExpansion) {
        let data = self.likelihood.data();
        templates::hessian_product(&self.model, &self.inputs, data, (params, direction.0), direction.1, out);
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
enum Weights<'a> {
    /// 1 - n/λ, those of -ln L.
    Poisson,
    /// These (B).
    Given(&'a [f64]),
}

/// Σ_b c_b ∂λ_b/∂θ and Σ_b c_b ∂λ_b/∂x; with the Poisson terms' own weights also their sum.
struct PullBack<'a> {
    plan: &'a ModelPlan,
    data: &'a Data,
    inputs: &'a Inputs,
    params: &'a [f64],
    weights: Weights<'a>,
    point: &'a mut Point,
    work: &'a mut TileWork,
    first: &'a mut [f64; TILE],
    second: &'a mut [f64; TILE],
    gradient: &'a mut [f64],
    by_inputs: &'a mut [f64],
}

impl Body for PullBack<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f64 {
        let Self { plan, data, inputs, params, weights, point, work, first, second, gradient, by_inputs } = self;
        point.set::<I, true>(isa, plan, params);
        let mut main = 0.0;
        for channel in &plan.channels {
            for tile in tiles(channel) {
                work.differentiate(isa, plan, channel, tile, (point, params));
                match weights {
                    Weights::Given(weights) => first[..tile.len].copy_from_slice(&weights[bins(channel, tile)]),
                    Weights::Poisson => {
                        let (observed, lambda) = (&data.main[bins(channel, tile)], &work.lambda[..tile.len]);
                        main += terms::poisson_value(observed, lambda, None);
                        if !main.is_finite() {
                            return f64::INFINITY;
                        }
                        terms::derivatives(observed, lambda, None, first, second);
                    }
                }
                add_gradient(plan, channel, tile, work, first, gradient);
                let at = Place { plan, channel, tile, point, params };
                at.add_inputs(inputs, work, first, by_inputs);
            }
        }
        main
    }
}

/// The weights 1 - n/λ of the bins (B), and how they change along a direction of parameters (P).
struct WeightsAlong<'a> {
    plan: &'a ModelPlan,
    data: &'a Data,
    params: &'a [f64],
    direction: &'a [f64],
    point: &'a mut Point,
    work: &'a mut TileWork,
    weights: &'a mut [Taylor],
}

impl Body for WeightsAlong<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { plan, data, params, direction, point, work, weights } = self;
        point.set::<I, true>(isa, plan, params);
        let (mut first, mut second, mut rate) = ([0.0; TILE], [0.0; TILE], [0.0; TILE]);
        for channel in &plan.channels {
            for tile in tiles(channel) {
                work.differentiate(isa, plan, channel, tile, (point, params));
                let (observed, lambda) = (&data.main[bins(channel, tile)], &work.lambda[..tile.len]);
                terms::derivatives(observed, lambda, None, &mut first, &mut second);
                rates(plan, channel, tile, work, direction, &mut rate);
                for (bin, weight) in weights[bins(channel, tile)].iter_mut().enumerate() {
                    *weight = Taylor { value: first[bin], first: second[bin] * rate[bin], second: 0.0 };
                }
            }
        }
    }
}

/// A tile and the point it was evaluated at.
struct Place<'a> {
    plan: &'a ModelPlan,
    channel: &'a ChannelPlan,
    tile: Tile,
    point: &'a Point,
    params: &'a [f64],
}

impl Place<'_> {
    /// Adds what the tile's chosen templates contribute; `first` is c of each bin.
    #[inline(always)]
    fn add_inputs(&self, inputs: &Inputs, work: &TileWork, first: &[f64; TILE], by_inputs: &mut [f64]) {
        let Self { plan, channel, tile, point, params } = *self;
        for (i, t) in channel.templates.clone().enumerate() {
            let Some(input) = inputs.of_template(t) else { continue };
            let scales = &work.scales.row(i)[..tile.len];
            let mut rest = 1.0;
            for histosys in &input.histosys {
                let param = plan.histosys[histosys.entry].param as usize;
                let [p, q, ..] = point.weights[param];
                rest -= p + q;
                for (end, weight) in [(&histosys.hi, p), (&histosys.lo, q)] {
                    if let YieldSource::Input(start) = *end {
                        let out = &mut by_inputs[start + tile.start..][..tile.len];
                        add_products(out, scales, first, weight);
                    }
                }
            }
            add_products(&mut by_inputs[input.nominal + tile.start..][..tile.len], scales, first, rest);
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
}

#[inline(always)]
fn add_products(out: &mut [f64], scales: &[f64], first: &[f64; TILE], weight: f64) {
    for ((out, scale), c) in out.iter_mut().zip(scales).zip(first) {
        *out += weight * scale * c;
    }
}
