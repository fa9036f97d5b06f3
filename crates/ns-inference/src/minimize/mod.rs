//! Minimising a likelihood in a box: bounded Gauss-Newton with damping from afar, the exact Hessian
//! near the minimum.
//!
//! Far away the Gauss-Newton matrix D + JᵀJ is positive definite and its steps are good; near the
//! minimum the exact Hessian makes convergence quadratic. Both are damped as Levenberg and
//! Marquardt do (Marquardt, SIAM J. Appl. Math. 11 (1963) 431) when a step promises more than it
//! keeps. Bounds are an active set inside each step (`step`). Kinks at zero are handled as bounds
//! that a step may reach but not cross (`kinks`); those where limits replace yields are part of the
//! model of a step (`limit_kinks`). No finite differences, no line searches, no randomness.

mod kinks;
mod limit_kinks;
mod newton;
mod step;
mod system;

pub use newton::Minimizer;

use serde::{Deserialize, Serialize};

/// The box to stay in, and which parameters to leave alone (each P).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Domain {
    /// Lower bounds.
    pub lower: Vec<f64>,
    /// Upper bounds.
    pub upper: Vec<f64>,
    /// Parameters that keep their starting values.
    pub fixed: Vec<bool>,
    /// Parameters with a kink at zero, where +0 and -0 have the derivatives of the two sides; empty
    /// if there are none.
    pub kinked: Vec<bool>,
}

/// Which end of its range a parameter is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundSide {
    /// The lower bound.
    Lower,
    /// The upper bound.
    Upper,
}

impl Domain {
    /// Returns the bound that parameter `i` is at when it has `value`, to within a rounding that no
    /// measurement could see.
    #[must_use]
    pub fn bound_at(&self, i: usize, value: f64) -> Option<BoundSide> {
        let near = |bound: f64| bound.is_finite() && (value - bound).abs() <= 1e-8 * bound.abs().max(1.0);
        if near(self.lower[i]) || value < self.lower[i] {
            Some(BoundSide::Lower)
        } else if near(self.upper[i]) || value > self.upper[i] {
            Some(BoundSide::Upper)
        } else {
            None
        }
    }
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MinimizeOptions {
    /// Stop once the estimated distance to the minimum, ½ gᵀH⁻¹g in -ln L, is below this.
    pub tolerance: f64,
    /// Give up after this many steps.
    pub max_iterations: usize,
}

impl Default for MinimizeOptions {
    fn default() -> Self {
        Self { tolerance: 1e-15, max_iterations: 500 }
    }
}

/// Why a minimisation stopped. Running out of iterations is an outcome, not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The estimated distance to the minimum is below the tolerance.
    Converged,
    /// The iterations ran out.
    IterationLimit,
    /// No step makes progress, although the distance is not below the tolerance.
    Stalled,
    /// The derivative vanishes, but -ln L curves down in some direction, and no lower point was
    /// found along it.
    Saddle,
    /// -ln L is not finite at the starting point.
    NotFinite,
}

/// Where a minimisation ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Minimum {
    /// The parameters (P).
    pub params: Vec<f64>,
    /// -ln L there.
    pub nll: f64,
    /// Its gradient there (P). On a kink of limited yields, where each side has its own, that
    /// between the two that vanishes along the free parameters.
    pub gradient: Vec<f64>,
    /// The estimated distance ½ gᵀH⁻¹g to the minimum in -ln L.
    pub edm: f64,
    /// Why it stopped.
    pub outcome: Outcome,
    /// Steps taken or tried.
    pub iterations: usize,
    /// Evaluations of the likelihood, of any kind.
    pub evaluations: usize,
    /// Whether it is at the edge of the domain, where some bin that saw nothing expects nothing and
    /// -ln L would fall further outside.
    pub at_edge: bool,
}

impl Minimum {
    /// Returns `true` if the minimisation converged.
    #[must_use]
    pub fn converged(&self) -> bool {
        self.outcome == Outcome::Converged
    }
}

#[cfg(test)]
mod tests {
    use super::{MinimizeOptions, Minimizer, Outcome};
    use crate::hessian::Hessian;
    use crate::options::{FitOptions, domain_and_start};
    use ns_compute::CpuLikelihood;
    use ns_core::Likelihood;
    use ns_core::interpolate::Interpolation;
    use ns_core::spec::ModifierData;
    use ns_testkit::random::{self, Shape};
    use ns_testkit::small::{one_channel, sample};

    #[test]
    fn a_search_resumed_outside_the_domain_does_not_converge() {
        let model = |background: f64| {
            let signal = sample("s", &[5.0], &[("mu", ModifierData::NormFactor)]);
            one_channel(vec![signal, sample("b", &[background], &[])], &[35.0])
        };
        let (before, after) = (model(50.0), model(10.0));
        let options = MinimizeOptions::default();
        let (mut domain, start) = domain_and_start(&before, &FitOptions::default());
        domain.lower[0] = -5.0;
        let mut likelihood = CpuLikelihood::new(&before);
        let mut minimizer = Minimizer::new(&likelihood.structure());
        let first = minimizer.minimize(&mut likelihood, &start, &domain, &options);
        assert!(first.converged() && first.params[0] < -2.0, "{first:?}");
        // There the other model expects -5 events.
        let second = minimizer.resume(&mut CpuLikelihood::new(&after), &first.params, &domain, &options);
        assert_eq!(second.outcome, Outcome::NotFinite, "{second:?}");
    }
    #[test]
    fn columns_of_the_last_factor_are_those_of_the_covariance_there_and_nowhere_else() {
        // Without terms and rules whose curvature changes between the last step and the minimum.
        let shape = Shape { oddities: false, terms: false, rules: false, ..Shape::SMALL };
        let model = random::model(3, shape, Interpolation::default());
        let (domain, start) = domain_and_start(&model, &FitOptions::default());
        let mut likelihood = CpuLikelihood::new(&model);
        let mut minimizer = Minimizer::new(&likelihood.structure());
        let found = minimizer.minimize(&mut likelihood, &start, &domain, &MinimizeOptions::default());
        assert!(found.converged(), "{found:?}");
        let mut hessian = Hessian::at(&mut likelihood, &found.params, &domain);
        let (mut column, mut exact) = (vec![0.0; start.len()], vec![0.0; start.len()]);
        let free: Vec<usize> = (0..start.len()).filter(|&i| hessian.free[i]).collect();
        for &i in &free {
            assert!(minimizer.covariance_column(&found.params, i, &mut column));
            hessian.covariance_column(i, &mut exact);
            // The factor is of a point near the minimum.
            let scale = exact[i].abs();
            assert!(column.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 0.05 * scale), "{i}: {column:?}, {exact:?}");
        }
        assert!(free.len() > 3 && !minimizer.covariance_column(&start, free[0], &mut column), "of another point");
    }
}
