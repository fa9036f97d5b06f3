//! One step: the minimum of the quadratic model inside the box.
//!
//! min gᵀp + ½ pᵀ(H + Λ)p subject to lower ≤ x + p ≤ upper, by a primal-dual active set
//! (Hintermüller, Ito and Kunisch, SIAM J. Optim. 13 (2002) 865): parameters whose step leaves the
//! box are put on the bound, those whose multiplier has the wrong sign are released, until nothing
//! changes. Kinks add Σ w max(0, ∓c - ∇c·p), the upper sign above their limits (`limit_kinks`).

use super::Domain;
use super::limit_kinks::KinkMultipliers;
use super::system::System;
use crate::linear::NotPositiveDefinite;
use ns_core::LimitKinks;

/// Which side of the box a parameter is fixed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BoundStatus {
    Free,
    Fixed,
    Lower,
    Upper,
}

/// The quadratic model of a step, beside the matrix: where it begins and may lead (each P).
#[derive(Clone, Copy)]
pub(super) struct StepProblem<'a> {
    /// The point, and the gradient there.
    pub(super) x: &'a [f64],
    pub(super) g: &'a [f64],
    pub(super) domain: &'a Domain,
    /// Λ.
    pub(super) damping: &'a [f64],
    /// The kinks near the point.
    pub(super) kinks: &'a LimitKinks,
}

/// A step with the memory to compute it (each P).
#[derive(Debug, Default)]
pub(super) struct Step {
    /// The step.
    pub(super) p: Vec<f64>,
    /// Where each parameter is fixed.
    pub(super) status: Vec<BoundStatus>,
    /// What is fixed at no bound.
    pub(super) free: Vec<bool>,
    /// (H + Λ)p, and then Hp.
    product: Vec<f64>,
    rhs: Vec<f64>,
    bound_step: Vec<f64>,
    /// Whether no parameter was moved onto a bound.
    is_interior: bool,
    /// The kinks that the step reaches.
    pub(super) kinks: KinkMultipliers,
}

/// The active set is found in a few rounds or not at all; then one bound at a time, which always
/// ends.
const ROUNDS: usize = 8;
const MOST_CHANGES: usize = 400;

impl Step {
    pub(super) fn new(n: usize) -> Self {
        let zeros = || vec![0.0; n];
        Self {
            p: zeros(),
            status: vec![BoundStatus::Free; n],
            free: vec![true; n],
            product: zeros(),
            rhs: zeros(),
            bound_step: zeros(),
            is_interior: false,
            kinks: KinkMultipliers::default(),
        }
    }

    /// Guesses the active set: parameters on a bound towards which -g points are fixed there.
    fn guess(&mut self, x: &[f64], g: &[f64], domain: &Domain) {
        for i in 0..x.len() {
            self.status[i] = if domain.fixed[i] {
                BoundStatus::Fixed
            } else if x[i] <= domain.lower[i] && g[i] > 0.0 {
                BoundStatus::Lower
            } else if x[i] >= domain.upper[i] && g[i] < 0.0 {
                BoundStatus::Upper
            } else {
                BoundStatus::Free
            };
        }
    }

    /// Computes the step.
    pub(super) fn compute(&mut self, system: &mut System, problem: StepProblem<'_>) -> Result<(), NotPositiveDefinite> {
        let StepProblem { x, g, domain, .. } = problem;
        self.guess(x, g, domain);
        for _ in 0..ROUNDS {
            self.solve(system, problem)?;
            let fixed = self.fix_violators(x, domain);
            let released = self.release_all(system, problem);
            if !fixed && !released {
                return Ok(());
            }
        }
        self.compute_one_by_one(system, problem)
    }

    /// Returns the same by a primal active set: every round moves downhill inside the box and
    /// changes one bound, so it cannot go round in circles.
    fn compute_one_by_one(&mut self, system: &mut System, problem: StepProblem<'_>) -> Result<(), NotPositiveDefinite> {
        let StepProblem { x, g, domain, .. } = problem;
        self.guess(x, g, domain);
        let mut inside = vec![0.0; x.len()];
        for _ in 0..MOST_CHANGES {
            self.solve(system, problem)?;
            if self.fix_first_violator(x, domain, &mut inside) {
                continue;
            }
            inside.copy_from_slice(&self.p);
            if !self.release_worst(system, problem) {
                return Ok(());
            }
        }
        self.p.copy_from_slice(&inside);
        self.kinks.measure(problem.kinks, &self.p);
        self.is_interior = false;
        Ok(())
    }

    /// Moves `inside` (a step in the box) towards the step computed last, until the first bound;
    /// fixes that parameter. Whether there was one.
    fn fix_first_violator(&mut self, x: &[f64], domain: &Domain, inside: &mut [f64]) -> bool {
        let mut first: Option<(usize, f64)> = None;
        for i in (0..x.len()).filter(|&i| self.status[i] == BoundStatus::Free) {
            let direction = self.p[i] - inside[i];
            let room =
                if direction < 0.0 { domain.lower[i] - x[i] - inside[i] } else { domain.upper[i] - x[i] - inside[i] };
            let part = if direction == 0.0 { 1.0 } else { (room / direction).max(0.0) };
            if part < first.map_or(1.0, |(_, least)| least) {
                first = Some((i, part));
            }
        }
        let Some((i, part)) = first else { return false };
        self.status[i] = if self.p[i] < inside[i] { BoundStatus::Lower } else { BoundStatus::Upper };
        for k in 0..x.len() {
            inside[k] += part * (self.p[k] - inside[k]);
        }
        true
    }

    fn solve(&mut self, system: &mut System, problem: StepProblem<'_>) -> Result<(), NotPositiveDefinite> {
        let StepProblem { x, g, domain, damping, kinks } = problem;
        let mut moved = false;
        for i in 0..x.len() {
            self.free[i] = self.status[i] == BoundStatus::Free;
            self.bound_step[i] = match self.status[i] {
                BoundStatus::Free | BoundStatus::Fixed => 0.0,
                BoundStatus::Lower => domain.lower[i] - x[i],
                BoundStatus::Upper => domain.upper[i] - x[i],
            };
            moved |= self.bound_step[i] != 0.0;
        }
        self.is_interior = !moved;
        system.factor(damping, &self.free)?;
        if moved {
            system.multiply(&self.bound_step, &mut self.product);
        } else {
            self.product.fill(0.0);
        }
        for i in 0..x.len() {
            self.rhs[i] = -g[i] - self.product[i];
        }
        system.solve(&self.rhs, &mut self.p);
        for i in 0..x.len() {
            if !self.free[i] {
                self.p[i] = self.bound_step[i];
            }
        }
        self.kinks.constrain(system, kinks, &self.free, &mut self.p);
        Ok(())
    }

    /// Holds free parameters whose step leaves the box. Returns whether there were any.
    fn fix_violators(&mut self, x: &[f64], domain: &Domain) -> bool {
        let mut any = false;
        for i in 0..x.len() {
            if self.status[i] != BoundStatus::Free {
                continue;
            }
            if x[i] + self.p[i] < domain.lower[i] {
                self.status[i] = BoundStatus::Lower;
            } else if x[i] + self.p[i] > domain.upper[i] {
                self.status[i] = BoundStatus::Upper;
            }
            any |= self.status[i] != BoundStatus::Free;
        }
        any
    }

    /// Releases fixed parameters that the quadratic model would rather have inside. Returns whether
    /// there were any.
    fn release_all(&mut self, system: &mut System, problem: StepProblem<'_>) -> bool {
        let mut any = false;
        self.each_wrong_multiplier(system, problem, |_, _, status| {
            *status = BoundStatus::Free;
            any = true;
        });
        any
    }

    /// Releases the one whose release gains most. Returns whether there was one.
    fn release_worst(&mut self, system: &mut System, problem: StepProblem<'_>) -> bool {
        let mut worst: Option<(usize, f64)> = None;
        self.each_wrong_multiplier(system, problem, |i, multiplier, _| {
            if multiplier.abs() > worst.map_or(0.0, |(_, most)| most) {
                worst = Some((i, multiplier.abs()));
            }
        });
        if let Some((i, _)) = worst {
            self.status[i] = BoundStatus::Free;
        }
        worst.is_some()
    }

    /// Visits the parameters fixed at a bound from which the derivative of the quadratic model
    /// leads away, into the box.
    fn each_wrong_multiplier(
        &mut self,
        system: &mut System,
        problem: StepProblem<'_>,
        mut visit: impl FnMut(usize, f64, &mut BoundStatus),
    ) {
        let StepProblem { g, damping, kinks, .. } = problem;
        if !self
            .status
            .iter()
            .zip(&self.free)
            .any(|(status, free)| !free && matches!(status, BoundStatus::Lower | BoundStatus::Upper))
        {
            return;
        }
        system.multiply(&self.p, &mut self.product);
        self.kinks.add_to_gradient(kinks, &mut self.product);
        for i in (0..g.len()).filter(|&i| !self.free[i]) {
            let multiplier = g[i] + self.product[i] + damping[i] * self.p[i];
            let wrong = match self.status[i] {
                BoundStatus::Lower => multiplier < 0.0,
                BoundStatus::Upper => multiplier > 0.0,
                BoundStatus::Free | BoundStatus::Fixed => false,
            };
            if wrong {
                visit(i, multiplier, &mut self.status[i]);
            }
        }
    }

    /// Returns the decrease of -ln L that the undamped quadratic model promises for this step:
    /// -gᵀp - ½ pᵀHp.
    ///
    /// Where nothing was put on a bound, (H + Λ)p = -g + Σ λa gives it without a product: -½ gᵀp +
    /// ½ pᵀΛp, and what kinks add.
    pub(super) fn predicted_decrease(&mut self, system: &mut System, g: &[f64], damping: &[f64]) -> f64 {
        if self.is_interior {
            let smooth = 0.5 * (0..g.len()).map(|i| self.p[i] * (damping[i] * self.p[i] - g[i])).sum::<f64>();
            return if self.kinks.is_empty() {
                smooth
            } else {
                smooth - self.kinks.multiplier_term() - self.kinks.penalty()
            };
        }
        system.multiply(&self.p, &mut self.product);
        let smooth = -(0..g.len()).map(|i| self.p[i] * (g[i] + 0.5 * self.product[i])).sum::<f64>();
        if self.kinks.is_empty() { smooth } else { smooth - self.kinks.penalty() }
    }

    /// Returns ½ gᵀH⁻¹g over the free parameters: the decrease that a step without damping promises
    /// when nothing is moved onto a bound.
    pub(super) fn edm(&self, g: &[f64]) -> f64 {
        -0.5 * (0..g.len()).filter(|&i| self.free[i]).map(|i| g[i] * self.p[i]).sum::<f64>()
    }

    /// Writes x + p to `out`, inside the box whatever the rounding.
    pub(super) fn apply(&self, x: &[f64], domain: &Domain, out: &mut [f64]) {
        for i in 0..x.len() {
            out[i] = match self.status[i] {
                BoundStatus::Fixed => x[i],
                BoundStatus::Lower if !self.free[i] => domain.lower[i],
                BoundStatus::Upper if !self.free[i] => domain.upper[i],
                _ => (x[i] + self.p[i]).clamp(domain.lower[i], domain.upper[i]),
            };
        }
    }
}
