//! Second-order information with its factorisation, whichever shape it has.

use crate::linear::{GaussNewtonFactor, MatrixFactor, NotPositiveDefinite};
use ns_core::curvature::{Arrowhead, Curvature, CurvatureStructure, GaussNewton};

/// Which approximation of the Hessian to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatrixKind {
    GaussNewton,
    Exact,
}

/// The matrices that a minimiser works with and their factors; one is current.
#[derive(Debug)]
pub(super) struct System {
    gauss_newton: Curvature,
    exact: Curvature,
    rows_factor: GaussNewtonFactor,
    matrix_factor: MatrixFactor,
    kind: MatrixKind,
    work: Vec<f64>,
}

impl System {
    pub(super) fn new(structure: &CurvatureStructure) -> Self {
        let arrow = || Arrowhead::zeros(structure.partition.clone());
        let gauss_newton = if rows_are_cheaper(structure) {
            Curvature::GaussNewton(GaussNewton::zeros(structure.n_rows, structure.partition.n_params()))
        } else {
            Curvature::GaussNewtonProduct(arrow())
        };
        Self {
            gauss_newton,
            exact: Curvature::Exact(arrow()),
            rows_factor: GaussNewtonFactor::default(),
            matrix_factor: MatrixFactor::new(&structure.partition),
            kind: MatrixKind::GaussNewton,
            work: Vec::new(),
        }
    }

    /// Returns the memory for second-order information of `kind`, which becomes the current one.
    pub(super) fn select(&mut self, kind: MatrixKind) -> &mut Curvature {
        self.kind = kind;
        match kind {
            MatrixKind::GaussNewton => &mut self.gauss_newton,
            MatrixKind::Exact => &mut self.exact,
        }
    }

    pub(super) fn kind(&self) -> MatrixKind {
        self.kind
    }

    fn current(&self) -> &Curvature {
        match self.kind {
            MatrixKind::GaussNewton => &self.gauss_newton,
            MatrixKind::Exact => &self.exact,
        }
    }

    /// Factorises the current matrix + diag(`damping`) over the `free` parameters.
    pub(super) fn factor(&mut self, damping: &[f64], free: &[bool]) -> Result<(), NotPositiveDefinite> {
        let current = if self.kind == MatrixKind::Exact { &self.exact } else { &self.gauss_newton };
        match current {
            Curvature::GaussNewton(rows) => self.rows_factor.factor(rows, damping, free),
            Curvature::GaussNewtonProduct(matrix) | Curvature::Exact(matrix) => {
                self.matrix_factor.factor(matrix, damping, free, &|| false)
            }
        }
    }

    /// Solves with the last factorisation.
    pub(super) fn solve(&mut self, rhs: &[f64], x: &mut [f64]) {
        match self.current() {
            Curvature::GaussNewton(_) => self.rows_factor.solve(rhs, x),
            _ => self.matrix_factor.solve(rhs, x),
        }
    }

    /// Writes the product of the current matrix (undamped) with `x` to `out`.
    pub(super) fn multiply(&mut self, x: &[f64], out: &mut [f64]) {
        let current = if self.kind == MatrixKind::Exact { &self.exact } else { &self.gauss_newton };
        match current {
            Curvature::GaussNewtonProduct(matrix) | Curvature::Exact(matrix) => matrix.multiply(x, out),
            Curvature::GaussNewton(rows) => {
                let p = x.len();
                self.work.clear();
                let dot = |row: &[f64]| row.iter().zip(x).map(|(j, x)| j * x).sum::<f64>();
                self.work.extend(rows.rows.chunks_exact(p.max(1)).map(dot));
                for i in 0..p {
                    out[i] = rows.diagonal[i] * x[i];
                }
                for (row, &weight) in rows.rows.chunks_exact(p.max(1)).zip(&self.work) {
                    out.iter_mut().zip(row).for_each(|(o, j)| *o += weight * j);
                }
            }
        }
    }

    /// Writes the diagonal of the current matrix to `out` (P).
    pub(super) fn diagonal(&self, out: &mut [f64]) {
        match self.current() {
            Curvature::GaussNewtonProduct(matrix) | Curvature::Exact(matrix) => matrix.diagonal(out),
            Curvature::GaussNewton(rows) => {
                out.copy_from_slice(&rows.diagonal);
                for row in rows.rows.chunks_exact(out.len().max(1)) {
                    out.iter_mut().zip(row).for_each(|(o, j)| *o += j * j);
                }
            }
        }
    }
}

/// Returns `true` if an R × R system costs less than eliminating local parameters and factorising a
/// G × G one. Nothing is assumed to cost less than a sparse system.
fn rows_are_cheaper(structure: &CurvatureStructure) -> bool {
    if structure.partition.sparsity.is_some() {
        return false;
    }
    let [r, p, g, l] = [
        structure.n_rows,
        structure.partition.n_params(),
        structure.partition.n_global(),
        structure.partition.n_local(),
    ]
    .map(|n| n as f64);
    r * r * p + r * r * r / 3.0 < (r + l) * g * g + g * g * g / 3.0
}
