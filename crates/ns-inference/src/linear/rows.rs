//! Sparse rows over the parameters, and what a factorised matrix makes of them: variances and
//! covariances of linear functions.

use super::cholesky::dot;

/// Sparse rows over P parameters, back to back. A parameter may occur more than once in a row; its
/// elements add.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SparseRows {
    /// End of each row in the elements.
    ends: Vec<usize>,
    elements: Vec<(u32, f64)>,
}

impl SparseRows {
    /// Appends a row of (parameter, value).
    pub fn push(&mut self, row: impl IntoIterator<Item = (usize, f64)>) {
        let elements = row.into_iter().filter(|(_, value)| *value != 0.0);
        self.elements.extend(elements.map(|(param, value)| (param as u32, value)));
        self.ends.push(self.elements.len());
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns `true` if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the elements of row `r`: parameter and value.
    pub fn row(&self, r: usize) -> impl Iterator<Item = (usize, f64)> {
        let start = if r == 0 { 0 } else { self.ends[r - 1] };
        self.elements[start..self.ends[r]].iter().map(|&(param, value)| (param as usize, value))
    }
}

/// Rows j of linear functions as L⁻¹j: their inner products are the functions' covariances. g free
/// global parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct WhitenedRows {
    /// g.
    pub(super) n_global: usize,
    /// Rows × g, row by row.
    pub(super) global: Vec<f64>,
    /// For each row the elements of local parameters, by position among the locals, ascending.
    pub(super) local: Vec<Vec<(u32, f64)>>,
}

impl WhitenedRows {
    /// Returns the variance of the function of row `r`.
    #[must_use]
    pub fn variance(&self, r: usize) -> f64 {
        self.covariance(r, r)
    }

    /// Returns the covariance of the functions of rows `r` and `s`.
    #[must_use]
    pub fn covariance(&self, r: usize, s: usize) -> f64 {
        let global = |i: usize| &self.global[i * self.n_global..(i + 1) * self.n_global];
        dot(global(r), global(s)) + sparse_dot(&self.local[r], &self.local[s])
    }
}

fn sparse_dot(a: &[(u32, f64)], b: &[(u32, f64)]) -> f64 {
    let (mut i, mut k, mut sum) = (0, 0, 0.0);
    while i < a.len() && k < b.len() {
        match a[i].0.cmp(&b[k].0) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => k += 1,
            std::cmp::Ordering::Equal => {
                sum += a[i].1 * b[k].1;
                i += 1;
                k += 1;
            }
        }
    }
    sum
}
