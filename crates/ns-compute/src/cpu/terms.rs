//! The Poisson terms of the bins and the constraint terms: value, and first and second derivative
//! with respect to λ or θ.

use super::accelerate;
use super::plan::ConstraintTerm;
use ns_core::double_double::DoubleDouble;
use ns_core::model::Data;
use ns_core::poisson::{self, log_normaliser};

/// Returns the part of -ln L that depends on the data only: normalisations of all Poisson and
/// Gaussian terms.
pub(crate) fn constants(terms: &[ConstraintTerm], data: &Data) -> f64 {
    let main: f64 = data.main.iter().map(|&n| log_normaliser(n)).sum();
    let normaliser = |(term, &aux): (&ConstraintTerm, &f64)| term.constraint.normaliser(aux);
    main + terms.iter().zip(&data.aux).map(normaliser).sum::<f64>()
}

/// Returns Σ half-deviances of bins with counts `observed` and expectations `lambda`, continued
/// below `floor` if any.
#[inline(always)]
pub(crate) fn poisson_value(observed: &[f64], lambda: &[f64], floor: Option<f64>) -> f64 {
    match floor {
        None => accelerate::half_deviances(observed, lambda),
        Some(floor) => observed.iter().zip(lambda).map(|(&n, &l)| poisson::floored(n, l, floor).value).sum(),
    }
}

/// Writes the first and second derivatives of the bins' terms.
#[inline(always)]
pub(crate) fn derivatives(observed: &[f64], lambda: &[f64], floor: Option<f64>, first: &mut [f64], second: &mut [f64]) {
    for (bin, (&n, &l)) in observed.iter().zip(lambda).enumerate() {
        (first[bin], second[bin]) = match floor {
            None => poisson::derivatives(n, l),
            Some(floor) => {
                let jet = poisson::floored(n, l, floor);
                (jet.first, jet.second)
            }
        };
    }
}

/// Returns the sum of `rest` (the other terms) and of the constraint terms without their
/// normalisations, rounded once at the end.
#[inline(always)]
pub(crate) fn add_constraints(terms: &[ConstraintTerm], aux: &[f64], params: &[f64], rest: f64) -> f64 {
    let (mut small, mut large) = (0.0, DoubleDouble::default());
    for (term, &aux) in terms.iter().zip(aux) {
        let deviance = term.constraint.deviance(aux, params[term.param as usize]);
        if deviance.lo == 0.0 { small += deviance.hi } else { large = large + deviance }
    }
    (large + DoubleDouble::sum(small, rest)).round()
}

/// Adds the derivatives of the constraint terms to `gradient` (P) and passes their second
/// derivatives to `curve`.
#[inline(always)]
pub(crate) fn add_constraint_derivatives(
    terms: &[ConstraintTerm],
    aux: &[f64],
    params: &[f64],
    gradient: &mut [f64],
    mut curve: impl FnMut(usize, f64),
) {
    for (term, &aux) in terms.iter().zip(aux) {
        let param = term.param as usize;
        let (first, second) = term.constraint.derivatives(aux, params[param]);
        gradient[param] += first;
        curve(param, second);
    }
}

/// Returns the constraint terms' derivative along parameter `i` alone.
pub(crate) fn constraint_derivative(terms: &[ConstraintTerm], aux: &[f64], params: &[f64], i: usize) -> f64 {
    let own = terms.iter().zip(aux).filter(|(term, _)| term.param as usize == i);
    own.map(|(term, &aux)| term.constraint.derivatives(aux, params[i]).0).sum()
}
