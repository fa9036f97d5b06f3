//! The covariance between the results of two analyses, from common replicas of their data.
//!
//! If row i of both analyses is made of the same replica of the events, their results fluctuate
//! together as the events that they share do. The sample covariance over the replicas then
//! estimates the statistical covariance of the two results.

use ns_inference::replicas::ReplicaMoments;
use serde::Serialize;

/// The best fits of an analysis to N replicas.
#[derive(Debug, Clone, Copy)]
pub struct ReplicaFits<'a> {
    /// The names of the parameters (P).
    pub par_names: &'a [String],
    /// Their values, row by row (N × P).
    pub bestfit: &'a [f64],
    /// Whether each fit converged (N).
    pub converged: &'a [bool],
}

/// The covariance between the parameters of two analyses, a with P parameters and b with Q.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplicaCovariance {
    /// The parameters of a (P).
    pub par_names_a: Vec<String>,
    /// The parameters of b (Q).
    pub par_names_b: Vec<String>,
    /// The number of replicas.
    pub n_replicas: usize,
    /// The number of replicas in which both fits converged; all numbers are of these.
    pub n_common: usize,
    /// The means of a's parameters (P).
    pub mean_a: Vec<f64>,
    /// The means of b's parameters (Q).
    pub mean_b: Vec<f64>,
    /// The covariance of a's parameters (P × P).
    pub covariance_a: Vec<Vec<f64>>,
    /// The covariance of b's parameters (Q × Q).
    pub covariance_b: Vec<Vec<f64>>,
    /// The covariance of a's parameters with b's (P × Q).
    pub covariance: Vec<Vec<f64>>,
    /// The correlation of a's parameters with b's (P × Q); `None` where one of them does not vary.
    pub correlation: Vec<Vec<Option<f64>>>,
    /// The statistical error of each correlation ρ (P × Q), (1 - ρ²)/√(n - 1).
    pub correlation_error: Vec<Vec<Option<f64>>>,
    /// What a reader should know before using the numbers.
    pub warnings: Vec<String>,
}

/// Why two sets of replicas have no covariance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplicasError {
    /// Different numbers of replicas.
    #[error("one analysis has {a} replicas and the other {b}: row i of both must be of the same replica")]
    DifferentNumbers {
        /// The number of the first analysis.
        a: usize,
        /// The number of the second.
        b: usize,
    },
    /// Too few replicas in which both fits converged.
    #[error("both fits converged in {n_common} of {n_replicas} replicas, and a covariance needs at least 2")]
    TooFew {
        /// The number of common replicas.
        n_common: usize,
        /// The number of all.
        n_replicas: usize,
    },
}

/// Returns the covariance between two analyses over the replicas in which both fits converged.
///
/// # Errors
/// [`ReplicasError`]
///
/// ```
/// use nextstat::replicas::{ReplicaFits, replica_covariance};
/// let names = ["mu".to_owned()];
/// let a = ReplicaFits { par_names: &names, bestfit: &[1.0, 2.0, 3.0], converged: &[true; 3] };
/// let b = ReplicaFits { bestfit: &[2.0, 5.0, 5.0], ..a };
/// let found = replica_covariance(&a, &b)?;
/// assert_eq!(found.covariance[0][0], 1.5);
/// assert!((found.correlation[0][0].unwrap() - 0.75_f64.sqrt()).abs() < 1e-12);
/// # Ok::<(), nextstat::replicas::ReplicasError>(())
/// ```
pub fn replica_covariance(a: &ReplicaFits<'_>, b: &ReplicaFits<'_>) -> Result<ReplicaCovariance, ReplicasError> {
    let (n_replicas, p, q) = (a.converged.len(), a.par_names.len(), b.par_names.len());
    if n_replicas != b.converged.len() {
        return Err(ReplicasError::DifferentNumbers { a: n_replicas, b: b.converged.len() });
    }
    let mut moments = ReplicaMoments::new(p + q);
    for i in (0..n_replicas).filter(|&i| a.converged[i] && b.converged[i]) {
        moments.add(&[&a.bestfit[i * p..(i + 1) * p], &b.bestfit[i * q..(i + 1) * q]].concat());
    }
    let n_common = moments.n_replicas() as usize;
    if n_common < 2 {
        return Err(ReplicasError::TooFew { n_common, n_replicas });
    }
    let covariance = |i: usize, j: usize| moments.covariance(i, j).unwrap_or(f64::NAN);
    let left_out = n_replicas - n_common;
    let warning = (left_out > 0)
        .then(|| format!("{left_out} of {n_replicas} replicas are left out because a fit did not converge"));
    Ok(ReplicaCovariance {
        par_names_a: a.par_names.to_vec(),
        par_names_b: b.par_names.to_vec(),
        n_replicas,
        n_common,
        mean_a: moments.mean()[..p].to_vec(),
        mean_b: moments.mean()[p..].to_vec(),
        covariance_a: matrix([p, p], covariance),
        covariance_b: matrix([q, q], |i, j| covariance(p + i, p + j)),
        covariance: matrix([p, q], |i, j| covariance(i, p + j)),
        correlation: matrix([p, q], |i, j| moments.correlation(i, p + j)),
        correlation_error: matrix([p, q], |i, j| moments.correlation_error(i, p + j)),
        warnings: warning.into_iter().collect(),
    })
}

fn matrix<T>([n_rows, n_columns]: [usize; 2], entry: impl Fn(usize, usize) -> T) -> Vec<Vec<T>> {
    (0..n_rows).map(|i| (0..n_columns).map(|j| entry(i, j)).collect()).collect()
}
