//! The likelihood: the traits that minimisers and searches use, and the reference implementation
//! that tests compare every evaluator with.
//!
//! -ln L(θ) = Σ_bins -ln Pois(n_b | λ_b(θ)) + Σ_terms -ln f(a_k | θ), with every constant, so that
//! 2·(-ln L) is pyhf's `twice_nll` (CERN-OPEN-2012-016, eq. 1; constants as in pyhf 0.7).

use crate::curvature::{Curvature, CurvatureStructure};
use crate::double_double::DoubleDouble;
use crate::expected::{expected_aux, expected_main};
use crate::interpolate::Jet;
use crate::kinks::LimitKinks;
use crate::model::{BinPlace, Data, Model};
use crate::poisson::{derivatives, half_deviance, log_normaliser};
use crate::scalar::{HyperDual, Scalar};

/// A negative log-likelihood of P parameters, with derivatives.
///
/// These methods are all that a minimiser needs, and the last one has a default. A search for the
/// lowest of several minima also needs [`SearchLikelihood`], whose methods have defaults: `impl
/// SearchLikelihood for MyLikelihood {}` is enough.
///
/// A point outside the domain of the model gives +∞ with a zero gradient, and no error: minimisers
/// step there and must be able to step back.
pub trait Likelihood {
    /// Returns P, the number of parameters.
    fn n_params(&self) -> usize;

    /// Returns the shape of the second-order information, so that callers can provide the memory.
    fn structure(&self) -> CurvatureStructure;

    /// Returns -ln L at `params` (P).
    fn nll(&mut self, params: &[f64]) -> f64;

    /// Returns -ln L at `params` (P), and writes its gradient to `gradient` (P).
    fn nll_and_grad(&mut self, params: &[f64], gradient: &mut [f64]) -> f64;

    /// Returns -ln L at `params` (P), and writes its gradient to `gradient` (P) and second-order
    /// information to `curvature`, whose variant selects the kind.
    fn nll_and_curvature(&mut self, params: &[f64], gradient: &mut [f64], curvature: &mut Curvature) -> f64;

    /// Writes the kinks of -ln L near `params` (P), where it is finite, to `out`. Costs little at
    /// the point of the last call that returned a gradient.
    ///
    /// The default has none. A likelihood that has kinks and lists none is still minimised, but
    /// slowly where a minimum lies on one.
    fn kinks(&mut self, _params: &[f64], out: &mut LimitKinks) {
        out.clear();
    }
}

/// What a search for the lowest of several minima asks of a likelihood beyond its derivatives.
///
/// The defaults are correct for every likelihood. Implement the methods to make a search faster
/// ([`nll_and_derivative_moved`](Self::nll_and_derivative_moved)), to let it enter the domain from
/// outside ([`set_floor`](Self::set_floor)), or to cancel it ([`is_stopped`](Self::is_stopped)).
///
/// ```
/// use ns_core::{Curvature, CurvatureStructure, Likelihood, SearchLikelihood};
/// use ns_core::curvature::Partition;
///
/// /// ½ (x - 3)² of one parameter.
/// struct Parabola;
///
/// impl Likelihood for Parabola {
///     fn n_params(&self) -> usize {
///         1
///     }
///     fn structure(&self) -> CurvatureStructure {
///         CurvatureStructure { partition: Partition::new(1, &[]).into(), n_rows: 1 }
///     }
///     fn nll(&mut self, x: &[f64]) -> f64 {
///         0.5 * (x[0] - 3.0).powi(2)
///     }
///     fn nll_and_grad(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
///         gradient[0] = x[0] - 3.0;
///         self.nll(x)
///     }
///     fn nll_and_curvature(&mut self, x: &[f64], gradient: &mut [f64], curvature: &mut Curvature) -> f64 {
///         match curvature {
///             Curvature::GaussNewton(factors) => factors.diagonal[0] = 1.0,
///             Curvature::GaussNewtonProduct(matrix) | Curvature::Exact(matrix) => matrix.global[0] = 1.0,
///         }
///         self.nll_and_grad(x, gradient)
///     }
/// }
///
/// impl SearchLikelihood for Parabola {}
///
/// let mut out = Vec::new();
/// Parabola.nll_and_derivative_moved(&[0.0], &[(0, 1.0), (0, 5.0)], &mut out);
/// assert_eq!(out, [[2.0, -2.0], [2.0, 2.0]]);
/// ```
pub trait SearchLikelihood: Likelihood {
    /// Writes to `out`, for each (parameter, value) of `moves` alone, -ln L where that parameter of
    /// `params` (P) has that value, and the derivative with respect to it there.
    fn nll_and_derivative_moved(&mut self, params: &[f64], moves: &[(usize, f64)], out: &mut Vec<[f64; 2]>) {
        each_move(self, params, moves, out);
    }

    /// Continues the Poisson terms below a small expected count by parabolas
    /// ([`floored`](crate::poisson::floored)), so that -ln L is finite everywhere; `None` undoes
    /// that. Returns `false` if this likelihood cannot do so.
    fn set_floor(&mut self, _floor: Option<f64>) -> bool {
        false
    }

    /// Returns `true` after cancellation. Every evaluation then returns +∞, so that running
    /// searches terminate.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Writes to `out` what [`SearchLikelihood::nll_and_derivative_moved`] does, by one evaluation for
/// each move.
pub fn each_move<L: Likelihood + ?Sized>(
    likelihood: &mut L,
    params: &[f64],
    moves: &[(usize, f64)],
    out: &mut Vec<[f64; 2]>,
) {
    let (mut moved, mut gradient) = (params.to_vec(), vec![0.0; params.len()]);
    out.clear();
    for &(i, value) in moves {
        moved[i] = value;
        out.push([likelihood.nll_and_grad(&moved, &mut gradient), gradient[i]]);
        moved[i] = params[i];
    }
}

/// A likelihood whose data can be replaced, as toys and Asimov data sets require.
pub trait DataLikelihood: SearchLikelihood {
    /// Returns the data.
    fn data(&self) -> &Data;

    /// Replaces the data: main bins (B) and auxiliary data (K).
    fn set_data(&mut self, data: &Data);
}

/// Returns -ln L of `data` at `params` (P): the reference implementation.
#[must_use]
pub fn nll(model: &Model, data: &Data, params: &[f64]) -> f64 {
    let lambda = expected_main(model, params);
    let bins = lambda.iter().zip(&data.main).map(|(&lambda, &n)| half_deviance(n, lambda) + log_normaliser(n));
    let main: f64 = bins.sum();
    let mut total = DoubleDouble::from(main);
    for (&param, &aux) in model.table(model.layout.constraint_param).iter().zip(&data.aux) {
        let param = param as usize;
        let Some(constraint) = model.parameters.constraint[param] else { continue };
        total = total + constraint.deviance(aux, params[param]);
        total = total + constraint.normaliser(aux).into();
    }
    if total.hi.is_finite() { total.round() } else { f64::INFINITY }
}

/// Returns -ln L with its exact gradient and Hessian by second-order dual numbers: the reference
/// implementation of every analytic derivative.
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
        total = total + theta.chain(constraint.jet(data.aux[k], theta.value));
    }
    total
}

/// Returns -ln Pois(n | λ) as a function of λ.
#[must_use]
pub fn poisson_jet(n: f64, lambda: f64) -> Jet {
    let (first, second) = derivatives(n, lambda);
    Jet { value: half_deviance(n, lambda) + log_normaliser(n), first, second }
}

/// Why -ln L is not finite at a point.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum NonFinite {
    /// The expected count of a bin is negative, NaN, or zero although events were observed.
    Bin {
        /// The bin.
        place: BinPlace,
        /// Events observed there.
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

/// Returns the first term of -ln L that is not finite at `params` (P), if any.
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
        let value = model.parameters.constraint[param].map(|c| c.nll(data.aux[k], params[param]));
        !aux[k].is_finite() || value.is_some_and(|v| !v.is_finite())
    })?;
    let param = params_of_terms[bad_term] as usize;
    Some(NonFinite::Constraint { parameter: model.parameters.names[param].clone(), value: params[param] })
}

fn blame_sample(model: &Model, params: &[f64], bin: usize, observed: f64, expected: f64) -> NonFinite {
    let yields = crate::expected::cell_yields(model, params);
    let channel = model.channel_of(bin);
    let bin_of_channel = bin - model.channel_bins(channel).start;
    let cell = |template: usize| yields[model.part(model.layout.template_cell, template).start + bin_of_channel];
    let lowest = model.channel_templates(channel).min_by(|&a, &b| cell(a).total_cmp(&cell(b)));
    let template = lowest.unwrap_or(0);
    let sample = model.samples[model.table(model.layout.template_sample)[template] as usize].clone();
    let sample_yield = cell(template);
    NonFinite::Bin { place: model.place(bin), observed, expected, sample, sample_yield }
}
