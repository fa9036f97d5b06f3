//! Conditional minima near a minimum, roughly: Newton steps with the Hessian of that minimum.
//!
//! A step costs a gradient only, where a minimisation makes and factorises a new Hessian for each.
//! With H⁻¹ = C at the minimum and the parameters S fixed, the others respond to a move of S by
//! C_·S C_SS⁻¹, and a step of theirs is -(C - C_·S C_SS⁻¹ C_S·) g.

use super::Search;
use crate::minimize::{BoundSide, Domain, Minimizer, Minimum, Outcome};
use crate::response::ResponseColumns;
use ns_core::{Likelihood, SearchLikelihood};

/// Steps after which a minimisation takes over.
const MOST_STEPS: usize = 4;

/// A step must shrink the estimated distance by this factor to be followed by another.
const GAIN: f64 = 0.3;

/// Which conditional minimum is wanted.
#[derive(Clone, Copy)]
pub(super) struct Condition<'a> {
    /// The one or two parameters that are fixed.
    pub(super) which: &'a [usize],
    /// Their values.
    pub(super) values: &'a [f64],
}

/// The factorised Hessian at a minimum.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// Where the minimum is (P).
    params: Vec<f64>,
    /// The minimiser that found it, in whose memory the factor is.
    minimizer: Minimizer,
    /// How the others follow the parameters that were moved last.
    response: Option<ResponseColumns>,
}

impl<L: SearchLikelihood + ?Sized> Search<'_, L> {
    /// Keeps the factor of the Hessian at `minimum` for
    /// [`conditional_nearby`](Self::conditional_nearby), if it is at hand and the model has no
    /// kinks.
    pub(super) fn keep_factor(&mut self, minimum: &Minimum) {
        let is_kinked = self.domain.kinked.contains(&true);
        let minimizer = self.minimizer.take_if(|minimizer| !is_kinked && minimizer.ended_at(&minimum.params));
        let at_minimum = |minimizer| Surroundings { params: minimum.params.clone(), minimizer, response: None };
        self.surroundings = minimizer.map(at_minimum);
    }

    /// Returns the factor to the minimiser, which may need it again.
    pub(super) fn return_factor(&mut self) {
        if let Some(surroundings) = self.surroundings.take() {
            self.minimizer = Some(surroundings.minimizer);
        }
    }

    /// Returns the conditional minimum that `from` (P) leads to, if steps with the Hessian of the
    /// minimum lead there.
    pub(super) fn conditional_nearby(&mut self, condition: Condition<'_>, from: &[f64]) -> Option<Minimum> {
        let Self { surroundings, likelihood, domain, options, spent, .. } = self;
        let surroundings = surroundings.as_mut()?;
        let (found, evaluations) = surroundings.conditional(*likelihood, domain, condition, from, options.tolerance);
        spent.evaluations += evaluations;
        found
    }
}

impl Surroundings {
    /// Returns the conditional minimum that `from` (P) leads to inside `domain`, to an estimated
    /// distance of `tolerance` in -ln L, and the number of evaluations; no minimum if steps with
    /// the Hessian of the minimum do not lead there.
    fn conditional<L: Likelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        domain: &Domain,
        condition: Condition<'_>,
        from: &[f64],
        tolerance: f64,
    ) -> (Option<Minimum>, usize) {
        if self.response.as_ref().is_none_or(|response| response.parameters() != condition.which) {
            self.response = self.response_to(condition.which);
        }
        let Self { params, minimizer, response: Some(response) } = self else { return (None, 0) };
        let mut at = response.moved(from, condition.values);
        let (mut gradient, mut step, mut last) = (vec![0.0; at.len()], vec![0.0; at.len()], f64::INFINITY);
        for evaluations in 1..=MOST_STEPS {
            if !is_inside(domain, &at) {
                return (None, evaluations - 1);
            }
            let nll = likelihood.nll_and_grad(&at, &mut gradient);
            if !nll.is_finite() || !minimizer.newton_step(params, &gradient, &mut step) {
                return (None, evaluations);
            }
            response.fix(&mut step);
            let edm = -0.5 * gradient.iter().zip(&step).map(|(g, s)| g * s).sum::<f64>();
            if edm.abs() <= tolerance {
                if leaves_a_bound(domain, condition, &at, &gradient) {
                    return (None, evaluations);
                }
                let (outcome, iterations) = (Outcome::Converged, evaluations);
                let found =
                    Minimum { params: at, nll, gradient, edm, outcome, iterations, evaluations, at_edge: false };
                return (Some(found), evaluations);
            }
            if edm.is_nan() || edm > GAIN * last {
                return (None, evaluations);
            }
            last = edm;
            at.iter_mut().zip(&step).for_each(|(x, s)| *x += s);
        }
        (None, MOST_STEPS)
    }

    /// Returns how all parameters follow one or two; `None` if the Hessian is not at hand or does
    /// not determine them.
    fn response_to(&mut self, which: &[usize]) -> Option<ResponseColumns> {
        if !(1..=2).contains(&which.len()) {
            return None;
        }
        let mut columns = vec![vec![0.0; self.params.len()]; which.len()];
        for (&i, column) in which.iter().zip(&mut columns) {
            if !self.minimizer.covariance_column(&self.params, i, column) {
                return None;
            }
        }
        ResponseColumns::new(which, columns)
    }
}

/// Returns `true` if no parameter but fixed ones is outside its range in `at` (P).
fn is_inside(domain: &Domain, at: &[f64]) -> bool {
    let Domain { lower, upper, fixed, .. } = domain;
    (0..at.len()).all(|i| fixed[i] || (lower[i]..=upper[i]).contains(&at[i]))
}

/// Returns `true` if -ln L falls from a bound where a free parameter is in `at` (P) into its range:
/// the Hessian at hand leaves out parameters that were at a bound.
fn leaves_a_bound(domain: &Domain, condition: Condition<'_>, at: &[f64], gradient: &[f64]) -> bool {
    let falls_inside = |i: usize| match domain.bound_at(i, at[i]) {
        Some(BoundSide::Lower) => gradient[i] < 0.0,
        Some(BoundSide::Upper) => gradient[i] > 0.0,
        None => false,
    };
    (0..at.len()).any(|i| !domain.fixed[i] && !condition.which.contains(&i) && falls_inside(i))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minimize::MinimizeOptions;
    use crate::search::Candidates;
    use ns_core::curvature::{Arrowhead, Curvature, CurvatureStructure, Partition};
    use std::sync::Arc;

    /// Σ_i ½ (x_i - i)² + ½ (Σ x_i - 5)² + ε Σ x_i⁴ of four parameters.
    struct Quartic(f64);

    impl Likelihood for Quartic {
        fn n_params(&self) -> usize {
            4
        }
        fn structure(&self) -> CurvatureStructure {
            CurvatureStructure { partition: Arc::new(Partition::new(4, &[])), n_rows: 5 }
        }
        fn nll(&mut self, x: &[f64]) -> f64 {
            self.nll_and_grad(x, &mut [0.0; 4])
        }
        fn nll_and_grad(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
            let sum = x.iter().sum::<f64>() - 5.0;
            let mut value = 0.5 * sum * sum;
            for (i, (&x, g)) in x.iter().zip(gradient).enumerate() {
                let away = x - i as f64;
                value += 0.5 * away * away + self.0 * x.powi(4);
                *g = sum + away + 4.0 * self.0 * x.powi(3);
            }
            value
        }
        fn nll_and_curvature(&mut self, x: &[f64], gradient: &mut [f64], curvature: &mut Curvature) -> f64 {
            let own = |i: usize| 2.0 + 12.0 * self.0 * x[i] * x[i];
            match curvature {
                Curvature::Exact(matrix) | Curvature::GaussNewtonProduct(matrix) => {
                    fill(matrix, own);
                }
                Curvature::GaussNewton(rows) => {
                    rows.rows.fill(0.0);
                    rows.rows[..4].fill(1.0);
                    (0..4).for_each(|i| rows.diagonal[i] = own(i) - 1.0);
                }
            }
            self.nll_and_grad(x, gradient)
        }
    }

    impl SearchLikelihood for Quartic {}

    fn fill(matrix: &mut Arrowhead, own: impl Fn(usize) -> f64) {
        matrix.clear();
        for column in 0..4 {
            for row in column..4 {
                matrix.global[column * 4 + row] = if row == column { own(column) } else { 1.0 };
            }
        }
    }

    fn open() -> Domain {
        Domain { lower: vec![-50.0; 4], upper: vec![50.0; 4], fixed: vec![false; 4], ..Domain::default() }
    }

    /// Returns the conditional minimum with `which` at `values` by steps with the Hessian of the
    /// minimum, and by a minimisation.
    fn both(bend: f64, which: &[usize], values: &[f64]) -> (Option<Minimum>, Minimum) {
        let mut likelihood = Quartic(bend);
        let options = MinimizeOptions { tolerance: 1e-6, ..MinimizeOptions::default() };
        let mut search = Search::new(&mut likelihood, open(), Candidates::default(), options);
        let minimum = search.run(&[0.5; 4]);
        assert!(minimum.converged());
        search.keep_factor(&minimum);
        let nearby = search.conditional_nearby(Condition { which, values }, &minimum.params);
        search.return_factor();
        assert!(search.minimizer.as_ref().is_some_and(|minimizer| minimizer.ended_at(&minimum.params)));
        let mut start = minimum.params.clone();
        which.iter().zip(values).for_each(|(&i, &value)| {
            start[i] = value;
            search.domain.fixed[i] = true;
        });
        (nearby, search.run(&start))
    }

    #[test]
    fn conditional_minima_are_those_of_a_minimisation() {
        for (which, values) in [(&[2][..], &[-1.0][..]), (&[0, 3], &[2.0, 1.0]), (&[3, 1], &[0.0, 4.0])] {
            for bend in [0.0, 1e-3, 1e-2] {
                let (nearby, wanted) = both(bend, which, values);
                let nearby = nearby.expect("steps lead there");
                assert!((nearby.nll - wanted.nll).abs() <= 1e-6, "{bend}: {} and {}", nearby.nll, wanted.nll);
                for (x, y) in nearby.params.iter().zip(&wanted.params) {
                    assert!((x - y).abs() <= 2e-3, "{bend}: {x} and {y}");
                }
                let bits: Vec<f64> = which.iter().map(|&i| nearby.params[i]).collect();
                assert_eq!(bits, values);
            }
        }
    }

    #[test]
    fn steps_that_do_not_lead_there_give_no_minimum() {
        // Far off, the Hessian at the minimum says nothing.
        assert!(both(1.0, &[2], &[40.0]).0.is_none());
        assert!(both(1.0, &[1, 2], &[-40.0, 40.0]).0.is_none());
        // The third parameter would have to leave its range.
        let mut likelihood = Quartic(0.0);
        let mut domain = open();
        domain.upper[2] = 2.5;
        let mut search = Search::new(&mut likelihood, domain, Candidates::default(), MinimizeOptions::default());
        let minimum = search.run(&[0.5; 4]);
        search.keep_factor(&minimum);
        assert!(search.surroundings.is_some());
        let condition = Condition { which: &[0], values: &[-45.0] };
        assert!(search.conditional_nearby(condition, &minimum.params).is_none());
    }

    #[test]
    fn parameters_that_would_leave_a_bound_are_left_to_a_minimisation() {
        let mut likelihood = Quartic(0.0);
        let mut domain = open();
        domain.lower[1] = 0.9;
        let mut search = Search::new(&mut likelihood, domain, Candidates::default(), MinimizeOptions::default());
        let minimum = search.run(&[2.0; 4]);
        assert_eq!(minimum.params[1], 0.9);
        search.keep_factor(&minimum);
        let mut nearby =
            |value: f64| search.conditional_nearby(Condition { which: &[0], values: &[value] }, &minimum.params);
        // With the first parameter lower, the second one moves away from its bound.
        assert!(nearby(-3.0).is_none());
        assert_eq!(nearby(1.0).expect("it stays at its bound").params[1], 0.9);
    }
}
