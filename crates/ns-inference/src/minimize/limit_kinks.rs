//! Kinks of limited yields that a step reaches: those that it crosses, and those that it ends on.
//!
//! With d the distance of a kink's excess c from zero at the point, d + a·p that after a step p (a
//! = ±∇c, so that d ≥ 0), a kink of weight w adds w max(0, -d - a·p) to the quadratic model. The
//! minimum is p = p₀ + Σ λ_k Z_k with Z = (H + Λ)⁻¹a and 0 ≤ λ ≤ w: λ = 0 for kinks on whose
//! near side the step ends, w for those that it crosses, and between the two where it ends on the
//! kink, c = 0. So λ minimises ½ λᵀSλ + λᵀ(d + a·p₀) in a box, S = aᵀZ (Fletcher, Practical Methods
//! of Optimization, section 14.3). Kinks that no step comes near cost a product each.

use super::system::System;
use crate::linear::{NotPositiveDefinite, factor_small, lower_small, upper_small};
use ns_core::{LimitKink, LimitKinks};

/// Passes over λ before the kinks that the step ends on are solved for together, and how often that
/// is done.
const SWEEPS: usize = 20;
const ROUNDS: usize = 20;

/// The relative size of what is added to the diagonal of S, for kinks that are the same surface.
const RIDGE: f64 = 1e-13;

/// The kinks that a step reaches, with their multipliers.
#[derive(Debug, Default)]
pub(super) struct KinkMultipliers {
    reached: Vec<Reached>,
    /// Z of each, back to back.
    columns: Vec<f64>,
    /// S (m × m).
    products: Vec<f64>,
    /// Memory for right-hand sides (P), and for a triangular factor.
    rhs: Vec<f64>,
    factor: Vec<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Reached {
    /// The kink's place in the list.
    kink: usize,
    /// ±1: the side of the kink that the point is on.
    side: f64,
    /// d, and d + a·p₀, and after the last step d + a·p.
    distance: f64,
    straight: f64,
    after: f64,
    /// w and λ.
    weight: f64,
    multiplier: f64,
}

impl Reached {
    /// Returns `true` if the step ends on the kink.
    fn is_active(&self) -> bool {
        self.multiplier > 0.0 && self.multiplier < self.weight
    }
}

fn side(kink: &LimitKink<'_>) -> f64 {
    if kink.value >= 0.0 { 1.0 } else { -1.0 }
}

impl KinkMultipliers {
    /// Returns `true` if the step reaches no kink.
    pub(super) fn is_empty(&self) -> bool {
        self.reached.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.reached.clear();
    }

    /// Returns `true` if the step ends on a kink or crosses one.
    pub(super) fn has_multipliers(&self) -> bool {
        self.reached.iter().any(|kink| kink.multiplier > 0.0)
    }

    /// Returns Σ w max(0, -d - a·p), what the kinks add to the quadratic model.
    pub(super) fn penalty(&self) -> f64 {
        self.reached.iter().map(|kink| kink.weight * (-kink.after).max(0.0)).sum()
    }

    /// Returns ½ Σ λ a·p.
    pub(super) fn multiplier_term(&self) -> f64 {
        0.5 * self.reached.iter().map(|kink| kink.multiplier * (kink.after - kink.distance)).sum::<f64>()
    }

    /// Returns Σ λ d, what the step gains by going to kinks.
    pub(super) fn distance_gain(&self) -> f64 {
        self.reached.iter().map(|kink| kink.multiplier * kink.distance).sum()
    }

    /// Adds -Σ λ a to `gradient` (P).
    pub(super) fn add_to_gradient(&self, kinks: &LimitKinks, gradient: &mut [f64]) {
        for &Reached { kink, side, multiplier, .. } in &self.reached {
            let kink = kinks.get(kink);
            for (&param, rate) in kink.params.iter().zip(kink.rates) {
                gradient[param as usize] -= multiplier * side * rate;
            }
        }
    }

    /// Changes the step `p` (P), which minimises the quadratic model over the `free` parameters, to
    /// the one that minimises the model with `kinks`.
    pub(super) fn constrain(&mut self, system: &mut System, kinks: &LimitKinks, free: &[bool], p: &mut [f64]) {
        self.reached.clear();
        self.columns.clear();
        self.products.clear();
        while self.reach(system, kinks, free, p) {
            let before: Vec<f64> = self.reached.iter().map(|kink| kink.multiplier).collect();
            self.multipliers();
            for ((kink, before), column) in self.reached.iter().zip(before).zip(self.columns.chunks_exact(p.len())) {
                let change = kink.multiplier - before;
                p.iter_mut().zip(column).for_each(|(p, z)| *p += change * z);
            }
        }
        self.measure(kinks, p);
        for kink in self.reached.iter_mut().filter(|kink| kink.is_active()) {
            // On the kink to the last digit, where rounding left it beside.
            kink.after = 0.0;
        }
    }

    /// Computes where the kinks are after the step `p` (P).
    pub(super) fn measure(&mut self, kinks: &LimitKinks, p: &[f64]) {
        for kink in &mut self.reached {
            kink.after = kink.distance + kink.side * kinks.get(kink.kink).change(p);
        }
    }

    /// Adds the kinks that `p` crosses and that are not known yet. Returns whether there are any.
    fn reach(&mut self, system: &mut System, kinks: &LimitKinks, free: &[bool], p: &[f64]) -> bool {
        let known = self.reached.len();
        for (k, kink) in kinks.iter().enumerate() {
            let (side, distance) = (side(&kink), kink.value.abs());
            let after = distance + side * kink.change(p);
            if after >= 0.0 || self.reached[..known].iter().any(|reached| reached.kink == k) {
                continue;
            }
            // What the multipliers of the known ones have done to p is not in p₀.
            self.reached.push(Reached {
                kink: k,
                side,
                distance,
                straight: after,
                after,
                weight: kink.weight,
                multiplier: 0.0,
            });
        }
        for new in known..self.reached.len() {
            self.add_column(system, kinks, free, new);
        }
        self.reached.len() > known
    }

    /// Computes Z of kink `new`, its row and column of S, and its d + a·p₀.
    fn add_column(&mut self, system: &mut System, kinks: &LimitKinks, free: &[bool], new: usize) {
        let n = free.len();
        self.rhs.clear();
        self.rhs.resize(n, 0.0);
        let kink = kinks.get(self.reached[new].kink);
        for (&param, rate) in kink.params.iter().zip(kink.rates) {
            if free[param as usize] {
                self.rhs[param as usize] += self.reached[new].side * rate;
            }
        }
        self.columns.resize((new + 1) * n, 0.0);
        system.solve(&self.rhs, &mut self.columns[new * n..]);
        self.columns[new * n..].iter_mut().zip(free).for_each(|(z, free)| *z = if *free { *z } else { 0.0 });
        let m = new + 1;
        let mut products = vec![0.0; m * m];
        for (row, old) in products.chunks_exact_mut(m).zip(self.products.chunks_exact(new.max(1))) {
            row[..new].copy_from_slice(old);
        }
        for k in 0..m {
            let product: f64 = self.columns[k * n..][..n].iter().zip(&self.rhs).map(|(z, a)| z * a).sum();
            (products[k * m + new], products[new * m + k]) = (product, product);
        }
        self.products = products;
        let done: f64 = (0..new).map(|k| self.reached[k].multiplier * self.products[k * m + new]).sum();
        self.reached[new].straight -= done;
    }

    /// Finds λ.
    fn multipliers(&mut self) {
        let m = self.reached.len();
        for _ in 0..ROUNDS {
            for _ in 0..SWEEPS {
                if !self.sweep() {
                    break;
                }
            }
            if m == 1 || self.solve_active() {
                return;
            }
        }
    }

    /// Minimises over one λ after the other. Returns whether any changed.
    fn sweep(&mut self) -> bool {
        let m = self.reached.len();
        let mut changed = false;
        for k in 0..m {
            let curve = self.products[k * m + k];
            let after = self.reached[k].straight + self.along(k);
            let Reached { weight, multiplier, .. } = self.reached[k];
            // A kink that no free parameter moves stays as it is.
            let next = if curve > 0.0 { (multiplier - after / curve).clamp(0.0, weight) } else { multiplier };
            changed |= next != multiplier;
            self.reached[k].multiplier = next;
        }
        changed
    }

    /// Returns Σ_l S_kl λ_l.
    fn along(&self, k: usize) -> f64 {
        let m = self.reached.len();
        self.products[k * m..][..m].iter().zip(&self.reached).map(|(s, kink)| s * kink.multiplier).sum()
    }

    /// Solves for the λ that are inside their ranges, the others being what they are. Returns
    /// whether the solution is inside, too, and every other λ is on the right end of its range.
    fn solve_active(&mut self) -> bool {
        let m = self.reached.len();
        let active: Vec<usize> = (0..m).filter(|&k| self.reached[k].is_active()).collect();
        let mut rhs: Vec<f64> = active.iter().map(|&k| -(self.reached[k].straight + self.along(k))).collect();
        if self.factor_active(&active).is_err() {
            return false;
        }
        lower_small(&self.factor, active.len(), &mut rhs);
        upper_small(&self.factor, active.len(), &mut rhs);
        let inside = active.iter().zip(&rhs).all(|(&k, change)| {
            let Reached { multiplier, weight, .. } = self.reached[k];
            (0.0..=weight).contains(&(multiplier + change))
        });
        if !inside {
            return false;
        }
        active.iter().zip(&rhs).for_each(|(&k, change)| self.reached[k].multiplier += change);
        (0..m).all(|k| {
            let after = self.reached[k].straight + self.along(k);
            let rounding = 1e-12 * (self.reached[k].straight.abs() + self.products[k * m + k] * self.reached[k].weight);
            let Reached { multiplier, weight, .. } = self.reached[k];
            (multiplier > 0.0 || after >= -rounding) && (multiplier < weight || after <= rounding)
        })
    }

    /// Factorises the part of S of the kinks `active`.
    fn factor_active(&mut self, active: &[usize]) -> Result<(), NotPositiveDefinite> {
        let (m, n) = (self.reached.len(), active.len());
        self.factor.clear();
        for &i in active {
            self.factor.extend(active.iter().map(|&j| self.products[i * m + j]));
        }
        for i in 0..n {
            self.factor[i * n + i] *= 1.0 + RIDGE;
        }
        factor_small(&mut self.factor, n)
    }
}
