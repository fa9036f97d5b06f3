//! How the best values of all parameters follow one or two of them that are moved: straight lines
//! along the covariance.
//!
//! The prediction is exact for a parabola. What lies off it by much is another branch of the
//! likelihood, or a long way.

use crate::hessian::Hessian;
use crate::minimize::Domain;
use ns_core::{Model, SearchLikelihood};

/// Conditional minima whose parameters agree to this fraction of a width lie on the same branch.
const SAME: f64 = 0.05;

/// Derivatives of the conditional minimum with respect to one or two fixed parameters.
#[derive(Debug, Clone)]
pub(crate) struct ResponseColumns {
    moved: Vec<usize>,
    /// One per moved parameter (P): 1 for itself, 0 for the other moved one.
    columns: Vec<Vec<f64>>,
}

impl ResponseColumns {
    /// Solves for derivatives from the covariance columns (P) of the one or two `moved` parameters,
    /// one of them at a time while the other is fixed. Returns `None` if the data do not determine
    /// them.
    pub(crate) fn new(moved: &[usize], mut columns: Vec<Vec<f64>>) -> Option<Self> {
        let c: Vec<f64> = columns.iter().flat_map(|column| moved.iter().map(|&i| column[i])).collect();
        let determinant = if moved.len() == 1 { c[0] } else { c[0] * c[3] - c[1] * c[2] };
        let scale = if moved.len() == 1 { 1.0 } else { c[0] * c[3] };
        if !(determinant.is_finite() && determinant > 1e-14 * scale && c[0] > 0.0) {
            return None;
        }
        if let [first, second] = columns.as_mut_slice() {
            for (a, b) in first.iter_mut().zip(second) {
                (*a, *b) = ((*a * c[3] - *b * c[1]) / determinant, (*b * c[0] - *a * c[1]) / determinant);
            }
        } else {
            columns[0].iter_mut().for_each(|value| *value /= determinant);
        }
        Some(Self::with_moved(moved, columns))
    }

    /// Returns columns in which no other parameter follows.
    fn alone(moved: &[usize], n_params: usize) -> Self {
        Self::with_moved(moved, vec![vec![0.0; n_params]; moved.len()])
    }

    fn with_moved(moved: &[usize], mut columns: Vec<Vec<f64>>) -> Self {
        for (k, column) in columns.iter_mut().enumerate() {
            moved.iter().enumerate().for_each(|(l, &i)| column[i] = f64::from(k == l));
        }
        Self { moved: moved.to_vec(), columns }
    }

    /// Returns the moved parameters.
    pub(crate) fn parameters(&self) -> &[usize] {
        &self.moved
    }

    /// Returns where the conditional minimum `from` (P) should be once the moved parameters have
    /// `values`.
    pub(crate) fn moved(&self, from: &[f64], values: &[f64]) -> Vec<f64> {
        let mut to = from.to_vec();
        for ((column, &i), value) in self.columns.iter().zip(&self.moved).zip(values) {
            let step = value - from[i];
            to.iter_mut().zip(column).for_each(|(t, c)| *t += step * c);
        }
        self.moved.iter().zip(values).for_each(|(&i, &value)| to[i] = value);
        to
    }

    /// Makes of the step of all parameters to a minimum (P) the one to the conditional minimum:
    /// takes out what follows the moved parameters.
    pub(crate) fn fix(&self, step: &mut [f64]) {
        for (column, &i) in self.columns.iter().zip(&self.moved) {
            let own = step[i];
            step.iter_mut().zip(column).for_each(|(s, c)| *s -= own * c);
        }
        self.moved.iter().for_each(|&i| step[i] = 0.0);
    }
}

/// The same with how far parameters go.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    columns: ResponseColumns,
    /// The moved parameters' covariance, row by row.
    covariance: Vec<f64>,
    /// How far parameters go (P): standard deviations where there are any.
    widths: Vec<f64>,
}

impl Response {
    /// Computes the response to one or two `moved` parameters round the minimum `best` (P), as if
    /// those had no bounds and were not fixed.
    pub(crate) fn at<L: SearchLikelihood + ?Sized>(
        model: &Model,
        likelihood: &mut L,
        domain: &Domain,
        best: &[f64],
        moved: &[usize],
    ) -> Self {
        let mut open = domain.clone();
        for &i in moved {
            (open.lower[i], open.upper[i], open.fixed[i]) = (f64::NEG_INFINITY, f64::INFINITY, false);
        }
        let mut hessian = Hessian::at(likelihood, best, &open);
        let widths: Vec<f64> = (0..best.len()).map(|i| width(model, domain, &hessian, i)).collect();
        let mut columns = vec![vec![0.0; best.len()]; moved.len()];
        for (column, &i) in columns.iter_mut().zip(moved) {
            hessian.covariance_column(i, column);
        }
        let covariance: Vec<f64> = columns.iter().flat_map(|column| moved.iter().map(|&i| column[i])).collect();
        if let Some(columns) = ResponseColumns::new(moved, columns) {
            return Self { columns, covariance, widths };
        }
        let diagonal = |at: usize| {
            if at.is_multiple_of(moved.len() + 1) { widths[moved[at % moved.len()]].powi(2) } else { 0.0 }
        };
        let covariance = (0..covariance.len()).map(diagonal).collect();
        Self { columns: ResponseColumns::alone(moved, best.len()), covariance, widths }
    }

    /// Returns where the conditional minimum `from` (P) should be once the moved parameters have
    /// `values`.
    pub(crate) fn moved(&self, from: &[f64], values: &[f64]) -> Vec<f64> {
        self.columns.moved(from, values)
    }

    /// Returns `true` if two conditional minima of the same fixed values, or a minimum and its
    /// prediction, are the same.
    pub(crate) fn is_same(&self, a: &[f64], b: &[f64]) -> bool {
        a.iter().zip(b).zip(&self.widths).all(|((a, b), width)| (a - b).abs() <= SAME * width)
    }

    /// Returns how far moved parameter `k` goes, the others being free.
    pub(crate) fn width(&self, k: usize) -> f64 {
        self.widths[self.columns.moved[k]]
    }

    /// Returns the lower triangle L₀₀, L₁₀, L₁₁ of the Cholesky factor of two moved parameters'
    /// covariance.
    pub(crate) fn triangle(&self) -> [f64; 3] {
        let [aa, ab, _, bb] = self.covariance[..] else { return [self.width(0), 0.0, 0.0] };
        let first = aa.sqrt();
        [first, ab / first, (bb - ab * ab / aa).sqrt()]
    }
}

/// Returns the standard deviation, or something of its size where there is none: at a bound, or
/// where the data do not determine it.
fn width(model: &Model, domain: &Domain, hessian: &Hessian, i: usize) -> f64 {
    let sigma = hessian.variance(i).sqrt();
    if sigma > 0.0 && sigma.is_finite() {
        return sigma;
    }
    let range = domain.upper[i] - domain.lower[i];
    let parameters = &model.parameters;
    match parameters.constraint[i] {
        Some(constraint) => constraint.width(parameters.init[i].abs()),
        None if range.is_finite() && range > 0.0 => 0.1 * range,
        None => 0.1 * parameters.init[i].abs().max(1.0),
    }
}
