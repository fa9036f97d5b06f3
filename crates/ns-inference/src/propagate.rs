//! From derivatives to uncertainties: σ² = j C jᵀ for any smooth function of the parameters, j
//! being its gradient.
//!
//! C is never written out: a whitened gradient L⁻¹j, with H = L Lᵀ, has the variance as its square,
//! and the Hessian is factorised by its structure, so that a thousand gammas cost little. Where the
//! covariance is not known, neither is the uncertainty: `None`, never a number that merely looks
//! like one.

use crate::hessian::Hessian;
use crate::linear::SparseRows;
use crate::minimize::Domain;
use crate::pulls::prefit_width;
use crate::result::UNDETERMINED;
use ns_core::{Data, Model, SearchLikelihood};

/// Two variances that differ by more than this fraction when the damping does were made by the
/// damping.
const SAME: f64 = 1e-3;

/// The covariance of the parameters, in a form that gives variances of functions of them.
#[derive(Debug)]
pub struct Propagator(Kind);

#[derive(Debug)]
enum Kind {
    /// Nothing is known.
    Unknown,
    /// Standard deviations (P) without correlations.
    Widths(Vec<f64>),
    /// The covariance (P × P, by rows), NaN where it is not known.
    Covariance(Vec<f64>),
    /// The inverse of a Hessian.
    Inverse(Box<Hessian>),
    /// The same for a Hessian with flat directions, damped lightly and ten times as much: what does
    /// not feel the difference is determined.
    Flat(Box<[Hessian; 2]>),
}

impl Propagator {
    /// Returns what is known before a fit: the widths of the constraint terms, without
    /// correlations; parameters without a constraint and `fixed` ones (P) have none.
    #[must_use]
    pub fn prefit(model: &Model, data: &Data, fixed: &[bool]) -> Self {
        let width = |i: usize| if fixed[i] { 0.0 } else { prefit_width(model, data, i).unwrap_or(0.0) };
        Self(Kind::Widths((0..model.n_params()).map(width).collect()))
    }

    /// Returns what is known after a fit that ended at `params` (P): the inverse of the exact
    /// Hessian there. Fixed parameters and those at bounds have no uncertainty.
    ///
    /// Where the data leave directions undetermined, functions that change along those have no
    /// uncertainty (`None`), and all others have theirs.
    pub fn postfit<L: SearchLikelihood + ?Sized>(
        model: &Model,
        likelihood: &mut L,
        params: &[f64],
        domain: &Domain,
    ) -> Self {
        let hessian = Hessian::at(likelihood, params, domain);
        let flat = hessian.flat_directions(likelihood, params, &model.parameters);
        if flat.iter().any(|direction| direction.curvature < UNDETERMINED) {
            let pair = [1e-11, 1e-10].map(|damping| Hessian::damped_at(likelihood, params, domain, &[damping]));
            let is_sound = pair.iter().all(Hessian::is_covariance);
            return Self(if is_sound { Kind::Flat(Box::new(pair)) } else { Kind::Unknown });
        }
        Self(if hessian.is_covariance() { Kind::Inverse(Box::new(hessian)) } else { Kind::Unknown })
    }

    /// Returns the propagator of a fit whose covariance is `covariance` (P × P, by rows), NaN where
    /// it is not known.
    #[must_use]
    pub fn of_covariance(covariance: Vec<f64>) -> Self {
        Self(Kind::Covariance(covariance))
    }

    /// Returns what is known at a point that is not a minimum: nothing.
    #[must_use]
    pub fn unknown() -> Self {
        Self(Kind::Unknown)
    }

    /// Returns the standard deviations of the parameters (P = `n_params`); `None` where the data do
    /// not determine one.
    #[must_use]
    pub fn widths(&self, n_params: usize) -> Vec<Option<f64>> {
        let mut rows = SparseRows::default();
        (0..n_params).for_each(|i| rows.push([(i, 1.0)]));
        self.uncertainties(&rows)
    }

    /// Returns standard deviations of the functions whose gradients are `rows`; `None` where the
    /// data do not determine one.
    #[must_use]
    pub fn uncertainties(&self, rows: &SparseRows) -> Vec<Option<f64>> {
        let root = |variance: f64| (variance >= 0.0 && variance.is_finite()).then(|| variance.sqrt());
        match &self.0 {
            Kind::Unknown => vec![None; rows.len()],
            Kind::Widths(widths) => {
                let variance = |r: usize| rows.row(r).map(|(i, derivative)| (derivative * widths[i]).powi(2)).sum();
                (0..rows.len()).map(|r| root(variance(r))).collect()
            }
            Kind::Covariance(covariance) => {
                let n = covariance.len().isqrt();
                // What does not change a function may be undetermined.
                let moves = |r: usize| rows.row(r).filter(|(_, derivative)| *derivative != 0.0);
                let product = |r: usize, i: usize| moves(r).map(|(j, b)| b * covariance[i * n + j]).sum::<f64>();
                let variance = |r: usize| moves(r).map(|(i, a)| a * product(r, i)).sum();
                (0..rows.len()).map(|r| root(variance(r))).collect()
            }
            Kind::Inverse(hessian) => {
                let whitened = hessian.whiten(rows);
                (0..rows.len()).map(|r| root(whitened.variance(r))).collect()
            }
            Kind::Flat(pair) => {
                let [light, heavy] = pair.each_ref().map(|hessian| hessian.whiten(rows));
                let variance = |r: usize| (light.variance(r), heavy.variance(r));
                let is_same = |(light, heavy): (f64, f64)| (light - heavy).abs() <= SAME * light.abs();
                (0..rows.len()).map(|r| root(variance(r).0).filter(|_| is_same(variance(r)))).collect()
            }
        }
    }

    /// Returns the covariance of the parameters `which` (n × n, by rows); one of them that is not
    /// determined is the error.
    pub(crate) fn covariance(&self, which: &[usize]) -> Result<Vec<f64>, usize> {
        let n = which.len();
        let unit_rows = || {
            let mut rows = SparseRows::default();
            which.iter().for_each(|&i| rows.push([(i, 1.0)]));
            rows
        };
        let inverse = |hessian: &Hessian| {
            let whitened = hessian.whiten(&unit_rows());
            (0..n * n).map(|at| whitened.covariance(at / n, at % n)).collect::<Vec<f64>>()
        };
        let found = match &self.0 {
            Kind::Unknown => vec![f64::NAN; n * n],
            Kind::Widths(widths) => {
                (0..n * n).map(|at| if at / n == at % n { widths[which[at / n]].powi(2) } else { 0.0 }).collect()
            }
            Kind::Covariance(covariance) => {
                let n_params = covariance.len().isqrt();
                (0..n * n).map(|at| covariance[which[at / n] * n_params + which[at % n]]).collect()
            }
            Kind::Inverse(hessian) => inverse(hessian),
            Kind::Flat(pair) => {
                let determined = self.uncertainties(&unit_rows());
                if let Some(i) = determined.iter().position(Option::is_none) {
                    return Err(which[i]);
                }
                inverse(&pair[0])
            }
        };
        match found.iter().position(|covariance| !covariance.is_finite()) {
            Some(at) => Err(which[at / n]),
            None => Ok(found),
        }
    }
}
