//! The likelihood: the trait that minimisers use, and the plain reference that every evaluator is tested against.
//!
//! -ln L(θ) = Σ_bins -ln Pois(n_b | λ_b(θ)) + Σ_terms -ln f(a_k | θ), with every constant, so that 2·(-ln L) is pyhf's `twice_nll`
//! (CERN-OPEN-2012-016, eq. 1; constants as in pyhf 0.7).

use crate::curvature::{Curvature, Structure};
use crate::expected::{expected_aux, expected_main};
use crate::interpolate::Jet;
use crate::model::{BinPlace, Data, Model};
use crate::parameters::Constraint;
use crate::poisson::{LARGE_COUNT, half_deviance, half_deviance_twofold, log_normaliser, slopes};
use crate::scalar::{HyperDual, Scalar};
use crate::twofold::Twofold;

/// A negative log-likelihood of P parameters, with derivatives.
///
/// A point outside the model's domain is +∞ with a zero gradient, not an error: minimisers step there and must be able to step back.
pub trait Likelihood {
    /// P, the number of parameters.
    fn n_params(&self) -> usize;

    /// The shape of its second-order information, so that callers can provide the memory.
    fn structure(&self) -> Structure;

    /// -ln L at `params` (P).
    fn nll(&mut self, params: &[f64]) -> f64;

    /// -ln L at `params` (P), and its gradient written to `gradient` (P).
    fn nll_and_grad(&mut self, params: &[f64], gradient: &mut [f64]) -> f64;

    /// Writes to `out`, for each of `moves` alone, -ln L where that parameter of `params` (P) has that
    /// value, and the derivative with respect to it there.
    fn nll_and_slope_moved(&mut self, params: &[f64], moves: &[(usize, f64)], out: &mut Vec<[f64; 2]>) {
        let (mut moved, mut gradient) = (params.to_vec(), vec![0.0; params.len()]);
        out.clear();
        for &(i, value) in moves {
            moved[i] = value;
            out.push([self.nll_and_grad(&moved, &mut gradient), gradient[i]]);
            moved[i] = params[i];
        }
    }

    /// Continues the Poisson terms below a small expected count by parabolas (`ns_core::poisson::floored`), so that -ln L is finite everywhere;
    /// `None` takes that back. Whether this likelihood can do so.
    fn set_floor(&mut self, floor: Option<f64>) -> bool;

    /// -ln L at `params` (P), its gradient (P), and second-order information of the kind that `curvature` is.
    fn nll_and_curvature(&mut self, params: &[f64], gradient: &mut [f64], curvature: &mut Curvature) -> f64;

    /// Whether whoever asked has lost interest: every point is then outside the domain, and searches from many points end where they are.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// A likelihood whose data can be replaced: what toys and Asimov data sets need.
pub trait DataLikelihood: Likelihood {
    /// The data.
    fn data(&self) -> &Data;

    /// Replaces the data: main bins (B) and auxiliary data (K).
    fn set_data(&mut self, data: &Data);
}

/// -ln f(a | θ) of a constraint term, with all constants.
#[must_use]
pub fn constraint_nll(constraint: Constraint, aux: f64, param: f64) -> f64 {
    constraint_deviance(constraint, aux, param).round() + constraint_normaliser(constraint, aux)
}

/// The part of a constraint term that depends on θ, 0 where θ meets its auxiliary datum: ½ ((a - θ)/σ)², or D(a, τθ) in full precision.
#[must_use]
#[inline]
pub fn constraint_deviance(constraint: Constraint, aux: f64, param: f64) -> Twofold {
    match constraint {
        Constraint::Gaussian { sigma } => {
            let pull = (aux - param) / sigma;
            (0.5 * pull * pull).into()
        }
        Constraint::Poisson { tau } if aux >= LARGE_COUNT => half_deviance_twofold(aux, tau, param),
        Constraint::Poisson { tau } => half_deviance(aux, tau * param).into(),
    }
}

/// The part of a constraint term that does not depend on θ.
#[must_use]
pub fn constraint_normaliser(constraint: Constraint, aux: f64) -> f64 {
    match constraint {
        Constraint::Gaussian { sigma } => (std::f64::consts::TAU.sqrt() * sigma).ln(),
        Constraint::Poisson { .. } => log_normaliser(aux),
    }
}

/// -ln L of `data` at `params` (P): the plain reference.
#[must_use]
pub fn nll(model: &Model, data: &Data, params: &[f64]) -> f64 {
    let lambda = expected_main(model, params);
    let bins = lambda.iter().zip(&data.main).map(|(&lambda, &n)| half_deviance(n, lambda) + log_normaliser(n));
    let main: f64 = bins.sum();
    let mut total = Twofold::from(main);
    for (&param, &aux) in model.table(model.layout.constraint_param).iter().zip(&data.aux) {
        let param = param as usize;
        let Some(constraint) = model.parameters.constraint[param] else { continue };
        total = total + constraint_deviance(constraint, aux, params[param]);
        total = total + constraint_normaliser(constraint, aux).into();
    }
    if total.hi.is_finite() { total.round() } else { f64::INFINITY }
}

/// -ln L with exact gradient and Hessian by second-order dual numbers: the slow twin of every analytic derivative.
#[must_use]
pub fn nll_hyperdual(model: &Model, data: &Data, params: &[f64]) -> HyperDual {
    let variables = HyperDual::variables(params);
    let mut total = HyperDual::from(0.0);
    for (lambda, &n) in expected_main(model, &variables).into_iter().zip(&data.main) {
        total = total + lambda.chain(poisson_jet(n, lambda.value));
    }
    for (k, &param) in model.table(model.layout.constraint_param).iter().enumerate() {
        let theta = &variables[param as usize];
        let Some(constraint) = model.parameters.constraint[param as usize] else {
            continue;
        };
        total = total + theta.chain(constraint_jet(constraint, data.aux[k], theta.value));
    }
    total
}

/// -ln Pois(n | λ) as a function of λ.
#[must_use]
pub fn poisson_jet(n: f64, lambda: f64) -> Jet {
    let (first, second) = slopes(n, lambda);
    Jet { value: half_deviance(n, lambda) + log_normaliser(n), first, second }
}

/// -ln f(a | θ) of a constraint term as a function of θ.
#[must_use]
pub fn constraint_jet(constraint: Constraint, aux: f64, param: f64) -> Jet {
    let (first, second) = constraint_slopes(constraint, aux, param);
    Jet { value: constraint_nll(constraint, aux, param), first, second }
}

/// First and second derivative of a constraint term with respect to θ.
#[must_use]
pub fn constraint_slopes(constraint: Constraint, aux: f64, param: f64) -> (f64, f64) {
    match constraint {
        Constraint::Gaussian { sigma } => ((param - aux) / (sigma * sigma), 1.0 / (sigma * sigma)),
        Constraint::Poisson { tau } => {
            let (first, second) = slopes(aux, tau * param);
            (tau * first, tau * tau * second)
        }
    }
}

/// Why -ln L is not finite at a point.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum NonFinite {
    /// The expected count of a bin is negative, not a number, or zero where something was seen.
    Bin {
        /// Which bin.
        place: BinPlace,
        /// Events seen there.
        observed: f64,
        /// Events expected there.
        expected: f64,
        /// The sample with the lowest yield in that bin.
        sample: String,
        /// That sample's yield.
        sample_yield: f64,
    },
    /// A constraint term is not finite.
    Constraint {
        /// Name of the constrained parameter.
        parameter: String,
        /// Its value.
        value: f64,
    },
}

impl std::fmt::Display for NonFinite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bin { place, observed, expected, sample, sample_yield } => write!(
                f,
                "{place}: {expected} events expected where {observed} were observed (lowest yield: sample `{sample}`, {sample_yield})"
            ),
            Self::Constraint { parameter, value } => {
                write!(f, "the constraint term of `{parameter}` is not finite at {value}")
            }
        }
    }
}

impl std::error::Error for NonFinite {}

/// The first term of -ln L that is not finite at `params` (P), if any.
#[must_use]
pub fn diagnose(model: &Model, data: &Data, params: &[f64]) -> Option<NonFinite> {
    let lambda = expected_main(model, params);
    let bad_bin = (0..model.n_bins()).find(|&b| !half_deviance(data.main[b], lambda[b]).is_finite());
    if let Some(bin) = bad_bin {
        return Some(blame_sample(model, params, bin, data.main[bin], lambda[bin]));
    }
    let aux = expected_aux(model, params);
    let params_of_terms = model.table(model.layout.constraint_param);
    let bad_term = (0..model.n_aux()).find(|&k| {
        let param = params_of_terms[k] as usize;
        let value = model.parameters.constraint[param].map(|c| constraint_nll(c, data.aux[k], params[param]));
        !aux[k].is_finite() || value.is_some_and(|v| !v.is_finite())
    })?;
    let param = params_of_terms[bad_term] as usize;
    Some(NonFinite::Constraint { parameter: model.parameters.names[param].clone(), value: params[param] })
}

fn blame_sample(model: &Model, params: &[f64], bin: usize, observed: f64, expected: f64) -> NonFinite {
    let yields = crate::expected::cell_yields(model, params);
    let place = model.place(bin);
    let channel = model.channels.iter().position(|name| *name == place.channel).unwrap_or(0);
    let cell = |template: usize| yields[model.part(model.layout.template_cell, template).start + place.bin];
    let lowest = model.channel_templates(channel).min_by(|&a, &b| cell(a).total_cmp(&cell(b)));
    let template = lowest.unwrap_or(0);
    let sample = model.samples[model.table(model.layout.template_sample)[template] as usize].clone();
    let sample_yield = cell(template);
    NonFinite::Bin { place, observed, expected, sample, sample_yield }
}
