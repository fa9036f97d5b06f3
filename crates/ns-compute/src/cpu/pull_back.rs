//! The way from an extended point back to the parameters: gradient and second-order information of
//! models with formulas.
//!
//! An evaluator without formulas computes g and H at the extended point (parameters θ, then derived
//! quantities d(θ)). With J = ∂d/∂θ the gradient is g_θ + Jᵀg_d, and the Hessian H_θθ + JᵀH_dθ +
//! H_θd J + JᵀH_dd J + Σ_d g_d ∇²d. The Gauss-Newton matrix has no last term. Derived quantities
//! are the last global positions, and no local parameter is an argument of a formula, so that
//! blocks stay as they are.

use super::gram::{GramMatrix, PulledColumn};
use super::plan::ModelPlan;
use ns_core::LimitKinks;
use ns_core::curvature::{Arrowhead, GaussNewton};
use ns_core::derived::{DerivativeOrder, DerivedPoint};
use ns_core::formula::Tape;

/// An extended point, and memory for derivatives there.
#[derive(Debug, Clone)]
pub(crate) struct ExtendedPoint {
    point: DerivedPoint,
    /// The gradient at the extended point (P + D).
    gradient: Vec<f64>,
    /// Made when they are first needed.
    rows: Option<GaussNewton>,
    matrix: Option<Arrowhead>,
    /// Global positions of the arguments of each derived quantity, back to back.
    positions: Vec<usize>,
}

/// An extended point with the memory that an evaluator writes to.
pub(crate) struct ExtendedOutput<'a, M> {
    pub(crate) params: &'a [f64],
    pub(crate) gradient: &'a mut [f64],
    pub(crate) curvature: &'a mut M,
}

impl ExtendedPoint {
    pub(crate) fn new(plan: &ModelPlan) -> Self {
        let arguments = plan.derived.tapes.iter().flat_map(Tape::arguments);
        Self {
            point: DerivedPoint::new(&plan.derived),
            gradient: vec![0.0; plan.n_extended],
            rows: None,
            matrix: None,
            positions: arguments.map(|&param| plan.outer_partition.position[param as usize] as usize).collect(),
        }
    }

    /// Moves to `params` (P). Returns whether all derived quantities, with derivatives up to
    /// `order`, are finite.
    pub(crate) fn set(&mut self, plan: &ModelPlan, params: &[f64], order: DerivativeOrder) -> bool {
        self.point.set(&plan.derived, params, order)
    }

    /// Returns the extended point (P + D).
    pub(crate) fn params(&self) -> &[f64] {
        &self.point.extended
    }

    /// Returns the extended point, and the memory for a gradient there.
    pub(crate) fn output(&mut self) -> (&[f64], &mut [f64]) {
        (&self.point.extended, &mut self.gradient)
    }

    /// Returns the memory for a gradient and the factors of the Gauss-Newton matrix of `n_rows`
    /// bins.
    pub(crate) fn output_with_rows(&mut self, n_rows: usize) -> ExtendedOutput<'_, GaussNewton> {
        let Self { point, gradient, rows, .. } = self;
        let curvature = rows.get_or_insert_with(|| GaussNewton::zeros(n_rows, gradient.len()));
        ExtendedOutput { params: &point.extended, gradient, curvature }
    }

    /// Returns the memory for a gradient and a matrix.
    pub(crate) fn output_with_matrix(&mut self, plan: &ModelPlan) -> ExtendedOutput<'_, Arrowhead> {
        let Self { point, gradient, matrix, .. } = self;
        let curvature = matrix.get_or_insert_with(|| Arrowhead::zeros(plan.partition.clone()));
        ExtendedOutput { params: &point.extended, gradient, curvature }
    }

    /// Lets `gram` pull back what it multiplies.
    pub(crate) fn pull_columns(&self, plan: &ModelPlan, gram: &mut GramMatrix) {
        let g = plan.outer_partition.n_global();
        gram.pull(g, |push| self.each(|d, to, rate| push(PulledColumn { from: g + d, to, rate })));
    }

    /// Writes the gradient to `gradient` (P).
    pub(crate) fn gradient(&self, plan: &ModelPlan, gradient: &mut [f64]) {
        let (own, by_derived) = self.gradient.split_at(plan.n_params);
        gradient.copy_from_slice(own);
        self.point.pull_back(&plan.derived, by_derived, gradient);
    }

    /// Writes how the extended point (P + D) moves where the parameters move along `direction` (P)
    /// to `out`.
    pub(crate) fn direction(&self, plan: &ModelPlan, direction: &[f64], out: &mut Vec<f64>) {
        out.clear();
        out.extend_from_slice(direction);
        out.extend(plan.derived.tapes.iter().zip(&self.point.expansions).map(|(tape, expansion)| {
            let terms = tape.arguments().iter().zip(&expansion.gradient);
            terms.map(|(&argument, rate)| rate * direction[argument as usize]).sum::<f64>()
        }));
    }

    /// Adds `kinks` of the extended point to `out`.
    pub(crate) fn kinks(&self, plan: &ModelPlan, kinks: &LimitKinks, out: &mut LimitKinks) {
        let mut rates = vec![0.0; plan.n_params];
        let mut by_derived = vec![0.0; plan.n_extended - plan.n_params];
        for kink in kinks.iter() {
            by_derived.fill(0.0);
            rates.fill(0.0);
            for (&param, rate) in kink.params.iter().zip(kink.rates) {
                match (param as usize).checked_sub(plan.n_params) {
                    None => rates[param as usize] += rate,
                    Some(d) => by_derived[d] += rate,
                }
            }
            self.point.pull_back(&plan.derived, &by_derived, &mut rates);
            let rates = rates.iter().enumerate().filter(|(_, rate)| **rate != 0.0);
            out.push(kink.value, kink.weight, rates.map(|(param, rate)| (param as u32, *rate)));
        }
    }

    /// Writes the factors of the Gauss-Newton matrix to `out`.
    pub(crate) fn rows(&self, plan: &ModelPlan, out: &mut GaussNewton) {
        let (n, n_extended) = (plan.n_params, plan.n_extended);
        let Some(rows) = &self.rows else { return };
        out.diagonal.copy_from_slice(&rows.diagonal[..n]);
        for (row, out) in rows.rows.chunks_exact(n_extended).zip(out.rows.chunks_exact_mut(n)) {
            let (own, by_derived) = row.split_at(n);
            out.copy_from_slice(own);
            self.point.pull_back(&plan.derived, by_derived, out);
        }
    }

    /// Writes the matrix to `out`; with `is_exact`, including the second derivatives of the
    /// formulas.
    pub(crate) fn matrix(&self, plan: &ModelPlan, is_exact: bool, out: &mut Arrowhead) {
        let Some(matrix) = &self.matrix else { return };
        let (g, g_extended) = (plan.outer_partition.n_global(), plan.partition.n_global());
        for (column, from) in matrix.global.chunks_exact(g_extended.max(1)).take(g).enumerate() {
            out.global[column * g..][column..g].copy_from_slice(&from[column..g]);
        }
        out.blocks.copy_from_slice(&matrix.blocks);
        let rows = matrix.coupling.chunks_exact(g_extended.max(1)).zip(out.coupling.chunks_exact_mut(g.max(1)));
        for (from, to) in rows {
            to.copy_from_slice(&from[..g]);
            self.each(|d, position, rate| to[position] += from[g + d] * rate);
        }
        self.pull_global(matrix, g, out);
        if is_exact {
            self.add_second_derivatives(plan, out);
        }
    }

    /// Adds the entries of derived quantities in the global block to those of their arguments.
    fn pull_global(&self, matrix: &Arrowhead, g: usize, out: &mut Arrowhead) {
        let g_extended = matrix.partition.n_global();
        let mut add = |a: usize, b: usize, value: f64| out.global[a.min(b) * g + a.max(b)] += value;
        self.each(|d, position, rate| {
            for other in 0..g {
                let value = rate * matrix.global[other * g_extended + g + d];
                add(position, other, if other == position { 2.0 * value } else { value });
            }
        });
        self.each(|d, a, rate_a| {
            self.each(|e, b, rate_b| {
                let value = rate_a * rate_b * matrix.global[(g + d.min(e)) * g_extended + g + d.max(e)];
                // Each pair of different positions is met twice, and its entry is written once.
                add(a, b, if a == b { value } else { 0.5 * value });
            });
        });
    }

    /// Calls `visit` with each derived quantity, the position of each of its arguments, and the
    /// derivative with respect to it.
    fn each(&self, mut visit: impl FnMut(usize, usize, f64)) {
        let mut positions = self.positions.iter();
        for (d, expansion) in self.point.expansions.iter().enumerate() {
            for (rate, &position) in expansion.gradient.iter().zip(positions.by_ref()) {
                visit(d, position, *rate);
            }
        }
    }

    fn add_second_derivatives(&self, plan: &ModelPlan, out: &mut Arrowhead) {
        let (g, mut positions) = (plan.outer_partition.n_global(), &self.positions[..]);
        for (expansion, by_derived) in self.point.expansions.iter().zip(&self.gradient[plan.n_params..]) {
            let (own, rest) = positions.split_at(expansion.gradient.len());
            positions = rest;
            for (row, second) in own.iter().zip(expansion.hessian.chunks_exact(own.len().max(1))) {
                // Arguments are ascending, and so are their positions.
                for (column, second) in own.iter().zip(second).take_while(|(column, _)| *column <= row) {
                    out.global[column * g + row] += by_derived * second;
                }
            }
        }
    }
}
