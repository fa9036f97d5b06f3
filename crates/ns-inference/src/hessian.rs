//! The exact Hessian at a minimum: uncertainties, covariance, and directions that the data do not
//! determine.
//!
//! Parameters that are fixed or at a bound are left out of the inverse. A matrix that is not
//! positive definite is damped until it can be factorised; beyond rounding, it then gives a
//! direction that leads down, and no uncertainties.

use crate::linear::{MatrixFactor, SparseRows, StopCheck, WhitenedRows};
use crate::minimize::Domain;
use crate::result::{FlatDirection, UNDETERMINED};
use ns_core::curvature::{Arrowhead, Curvature};
use ns_core::{Parameters, SearchLikelihood};
use std::sync::OnceLock;

/// A direction counts as flat if its parameters' curvatures cancel to this fraction.
const FLAT: f64 = 1e-6;

/// With more damping than this the matrix is not that of a minimum, and its inverse no covariance.
const MOST_DAMPING: f64 = 1e-10;

/// Flat directions are looked for where correlations raise a variance by this factor.
const SUSPICIOUS: f64 = 1e5;

/// The factorised Hessian at a point.
#[derive(Debug)]
pub struct Hessian {
    factor: MatrixFactor,
    /// Parameters that are neither fixed nor at a bound (P).
    pub free: Vec<bool>,
    /// Its diagonal (P).
    diagonal: Vec<f64>,
    /// Diagonal of the inverse (P), once it has been asked for; 0 for parameters that are not free.
    variance: OnceLock<Vec<f64>>,
    /// Damping that was needed to make it positive definite, relative to the diagonal.
    damping: f64,
    /// Whether no damping made it so.
    singular: bool,
}

impl Hessian {
    /// Returns the Hessian of `likelihood` at `params` (P).
    pub fn at<L: SearchLikelihood + ?Sized>(likelihood: &mut L, params: &[f64], domain: &Domain) -> Self {
        Self::damped_at(likelihood, params, domain, &[0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0, 3.0, 100.0])
    }

    /// Returns the same with the first of these dampings (relative to the diagonal) that makes it
    /// positive definite.
    pub fn damped_at<L: SearchLikelihood + ?Sized>(
        likelihood: &mut L,
        params: &[f64],
        domain: &Domain,
        dampings: &[f64],
    ) -> Self {
        let n = params.len();
        let mut curvature = Curvature::Exact(Arrowhead::zeros(likelihood.structure().partition));
        let mut gradient = vec![0.0; n];
        likelihood.nll_and_curvature(params, &mut gradient, &mut curvature);
        let Curvature::Exact(matrix) = curvature else { unreachable!("the kind of curvature does not change") };
        let free: Vec<bool> = (0..n).map(|i| !domain.fixed[i] && domain.bound_at(i, params[i]).is_none()).collect();
        let mut diagonal = vec![0.0; n];
        matrix.diagonal(&mut diagonal);
        let mut hessian = Self {
            factor: MatrixFactor::new(&matrix.partition),
            free,
            diagonal,
            variance: OnceLock::new(),
            damping: 0.0,
            singular: false,
        };
        hessian.factor(&matrix, dampings, &|| likelihood.is_stopped());
        hessian
    }

    fn factor(&mut self, matrix: &Arrowhead, dampings: &[f64], stop: StopCheck<'_>) {
        let mean = self.diagonal.iter().map(|d| d.abs()).sum::<f64>() / self.diagonal.len().max(1) as f64;
        for &relative in dampings {
            if relative > 0.0 && stop() {
                break;
            }
            let damping: Vec<f64> = self.diagonal.iter().map(|d| relative * d.abs().max(1e-12 * mean)).collect();
            if self.factor.factor(matrix, &damping, &self.free, stop).is_ok() {
                self.damping = relative;
                return;
            }
        }
        self.singular = true;
    }

    /// Returns `true` if it is positive definite without damping.
    #[must_use]
    pub fn is_positive_definite(&self) -> bool {
        self.damping == 0.0 && !self.singular
    }

    /// Returns the direction (P) in which -ln L curves down most, in units of each parameter's own
    /// width; for matrices that are not positive definite.
    #[must_use]
    pub fn downward_direction(&mut self) -> Vec<f64> {
        let n = self.free.len();
        let width: Vec<f64> =
            self.diagonal.iter().map(|d| if *d == 0.0 { 1.0 } else { 1.0 / d.abs().sqrt() }).collect();
        let mut x: Vec<f64> = (0..n).map(|i| (crate::random::uniform(2, 0, i as u64) - 0.5) * width[i]).collect();
        let mut rhs = vec![0.0; n];
        for _ in 0..8 {
            let norm = x.iter().zip(&width).map(|(x, w)| (x / w).powi(2)).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            for i in 0..n {
                x[i] /= norm;
                rhs[i] = if self.free[i] { x[i] / (width[i] * width[i]) } else { 0.0 };
            }
            self.factor.solve(&rhs, &mut x);
        }
        let norm = x.iter().zip(&width).map(|(x, w)| (x / w).powi(2)).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        x.iter().map(|x| x / norm).collect()
    }

    /// Returns `true` if its inverse is a covariance: positive definite, but for damping that is no
    /// more than rounding.
    #[must_use]
    pub fn is_covariance(&self) -> bool {
        !self.singular && self.damping <= MOST_DAMPING
    }

    /// Returns linear functions of the parameters, such that inner products are covariances; only
    /// if [`Hessian::is_covariance`].
    #[must_use]
    pub fn whiten(&self, rows: &SparseRows) -> WhitenedRows {
        self.factor.whiten(rows)
    }

    /// Solves H x = `rhs` (P) over the free parameters; the others get 0.
    pub fn solve(&mut self, rhs: &[f64], x: &mut [f64]) {
        self.factor.solve(rhs, x);
    }

    /// Writes column `i` of the covariance to `out` (P); zeros if the parameter is not free, or
    /// if nothing made the matrix positive definite.
    pub fn covariance_column(&mut self, i: usize, out: &mut [f64]) {
        if self.singular {
            out.fill(0.0);
            return;
        }
        let mut unit = vec![0.0; out.len()];
        unit[i] = 1.0;
        self.factor.solve(&unit, out);
    }

    /// Returns `true` if parameter `i` is free and its variance more than rounding or damping:
    /// correlations leave some of its own curvature.
    #[must_use]
    pub fn determines(&self, i: usize) -> bool {
        let excess = self.variance(i) * self.diagonal[i];
        self.variance(i) > 0.0 && excess > 0.0 && excess * UNDETERMINED.max(100.0 * self.damping) < 1.0
    }

    /// Returns the standard deviation of parameter `i`; `None` if it is not free, if the data do
    /// not determine it, or if the matrix is not that of a minimum.
    #[must_use]
    pub fn sigma(&self, i: usize) -> Option<f64> {
        (self.is_covariance() && self.determines(i)).then(|| self.variance(i).sqrt())
    }

    /// Returns the variance of parameter `i`; 0 if it is not free.
    #[must_use]
    pub fn variance(&self, i: usize) -> f64 {
        self.variances(&|| false)[i]
    }

    /// Returns the variances of all parameters (P); 0 for those that are not free, and for all if
    /// `stop` said so while they were computed.
    pub fn variances(&self, stop: StopCheck<'_>) -> &[f64] {
        self.variance.get_or_init(|| {
            let mut variances = vec![0.0; self.free.len()];
            if !self.singular {
                self.factor.inverse_diagonal(&mut variances, stop);
            }
            variances
        })
    }

    /// Returns the parameters whose variance correlations raise by `excess` or more: C_ii H_ii =
    /// 1/(1 - R_i²), with R_i the multiple correlation of parameter i with all others.
    pub(crate) fn inflated(&self, excess: f64) -> Vec<usize> {
        (0..self.free.len()).filter(|&i| self.variance(i) * self.diagonal[i] >= excess).collect()
    }

    /// Returns the covariance (P × P, row by row), zero for parameters that are not free.
    #[must_use]
    pub fn covariance(&mut self) -> Option<Vec<f64>> {
        if !self.is_covariance() {
            return None;
        }
        let n = self.free.len();
        let mut covariance = vec![0.0; n * n];
        for i in 0..n {
            if self.free[i] {
                self.covariance_column(i, &mut covariance[i * n..(i + 1) * n]);
            }
        }
        for i in 0..n {
            for j in 0..i {
                let mean = 0.5 * (covariance[i * n + j] + covariance[j * n + i]);
                (covariance[i * n + j], covariance[j * n + i]) = (mean, mean);
            }
        }
        Some(covariance)
    }

    /// Returns standard deviations (P); `None` for parameters that are not free or that the data do
    /// not determine.
    #[must_use]
    pub fn uncertainties(&self, flat: &[FlatDirection], parameters: &Parameters) -> Vec<Option<f64>> {
        let undetermined = |i: usize| {
            flat.iter()
                .filter(|d| d.curvature < UNDETERMINED)
                .any(|d| d.parameters.iter().any(|(name, _)| *name == parameters.names[i]))
        };
        // Flat directions need damping and have a name; without one, a damped matrix is not that of
        // a minimum.
        let is_sound = self.damping <= MOST_DAMPING || (!flat.is_empty() && self.damping < 1e-3);
        let uncertainty = |i: usize| {
            let variance = self.variance(i);
            (self.free[i] && is_sound && !self.singular && variance > 0.0 && variance.is_finite() && !undetermined(i))
                .then(|| variance.sqrt())
        };
        (0..self.free.len()).map(uncertainty).collect()
    }

    /// Returns `true` if parameter `i` may take part in a flat direction: correlations take away
    /// nearly all of its own curvature, or it has none. P is `n`.
    pub(crate) fn is_suspicious(&mut self, i: usize, n: usize) -> bool {
        let mut column = vec![0.0; n];
        self.covariance_column(i, &mut column);
        !self.is_positive_definite() || column[i] * self.diagonal[i] >= SUSPICIOUS
    }

    /// Returns the flat directions: every parameter that changes nothing, then at most three
    /// directions, flattest first.
    ///
    /// A parameter's variance times its own curvature says how much of that curvature correlations
    /// take away. Only where nearly all of it is gone the flattest directions are worked out, on
    /// the Gauss-Newton matrix: it is exactly flat where the data do not change, whatever the
    /// gradient.
    #[must_use]
    pub fn flat_directions<L: SearchLikelihood + ?Sized>(
        &self,
        likelihood: &mut L,
        params: &[f64],
        parameters: &Parameters,
    ) -> Vec<FlatDirection> {
        let stop = || likelihood.is_stopped();
        self.variances(&stop);
        let worst = (0..self.free.len()).map(|i| self.variance(i) * self.diagonal[i]).fold(0.0, f64::max);
        if self.is_positive_definite() && worst < SUSPICIOUS {
            return Vec::new();
        }
        let n = params.len();
        let mut curvature = Curvature::GaussNewtonProduct(Arrowhead::zeros(likelihood.structure().partition));
        likelihood.nll_and_curvature(params, &mut vec![0.0; n], &mut curvature);
        let Curvature::GaussNewtonProduct(matrix) = curvature else {
            unreachable!("the kind of curvature does not change")
        };
        Flatness::new(&matrix, &self.free, &|| likelihood.is_stopped())
            .map_or_else(Vec::new, |flatness| flatness.directions(parameters))
    }
}

/// Inverse iteration on a matrix scaled to unit diagonal.
struct Flatness {
    factor: MatrixFactor,
    free: Vec<bool>,
    /// Square roots of the diagonal (P); 0 for parameters that change nothing.
    root: Vec<f64>,
}

impl Flatness {
    fn new(matrix: &Arrowhead, free: &[bool], stop: StopCheck<'_>) -> Option<Self> {
        let n = free.len();
        let mut root = vec![0.0; n];
        matrix.diagonal(&mut root);
        root.iter_mut().for_each(|d| *d = d.max(0.0).sqrt());
        let free_and_felt: Vec<bool> = (0..n).map(|i| free[i] && root[i] > 0.0).collect();
        let damping: Vec<f64> = root.iter().map(|r| 1e-13 * r * r).collect();
        let mut factor = MatrixFactor::new(&matrix.partition);
        factor.factor(matrix, &damping, &free_and_felt, stop).ok()?;
        Some(Self { factor, free: free.to_vec(), root })
    }

    fn directions(mut self, parameters: &Parameters) -> Vec<FlatDirection> {
        let unfelt = (0..self.free.len()).filter(|&i| self.free[i] && self.root[i] == 0.0);
        let alone = |i: usize| FlatDirection { curvature: 0.0, parameters: vec![(parameters.names[i].clone(), 1.0)] };
        let mut directions: Vec<FlatDirection> = unfelt.map(alone).collect();
        let mut found: Vec<Vec<f64>> = Vec::new();
        for _ in 0..3 {
            let (direction, curvature) = self.flattest(&found);
            if curvature.is_nan() || curvature > FLAT {
                break;
            }
            directions.push(describe(&direction, curvature, parameters));
            found.push(direction);
        }
        directions
    }

    /// Returns the flattest direction orthogonal to `others`, as a unit vector in the scaled space,
    /// and its curvature there.
    fn flattest(&mut self, others: &[Vec<f64>]) -> (Vec<f64>, f64) {
        let n = self.free.len();
        let mut z: Vec<f64> = (0..n).map(|i| crate::random::uniform(1, 0, i as u64) - 0.5).collect();
        let (mut rhs, mut x, mut curvature) = (vec![0.0; n], vec![0.0; n], f64::INFINITY);
        for _ in 0..8 {
            for other in others {
                let overlap: f64 = z.iter().zip(other).map(|(a, b)| a * b).sum();
                z.iter_mut().zip(other).for_each(|(a, b)| *a -= overlap * b);
            }
            let norm = z.iter().map(|v| v * v).sum::<f64>().sqrt();
            for i in 0..n {
                z[i] /= norm;
                rhs[i] = self.root[i] * z[i];
            }
            self.factor.solve(&rhs, &mut x);
            for i in 0..n {
                z[i] = self.root[i] * x[i];
            }
            curvature = 1.0 / z.iter().map(|v| v * v).sum::<f64>().sqrt();
        }
        z.iter_mut().for_each(|v| *v *= curvature);
        (z, curvature)
    }
}

fn describe(direction: &[f64], curvature: f64, parameters: &Parameters) -> FlatDirection {
    let mut shares: Vec<(String, f64)> = direction
        .iter()
        .enumerate()
        .filter(|(_, v)| v.abs() > 0.05)
        .map(|(i, &v)| (parameters.names[i].clone(), v))
        .collect();
    shares.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    FlatDirection { curvature, parameters: shares }
}
