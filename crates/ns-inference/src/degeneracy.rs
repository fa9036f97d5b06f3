//! Parameters that even perfect data would hardly tell apart: the correlations that a model expects before any fit.
//!
//! At Asimov data the exact Hessian is the Fisher information of the model, so what it shows is a property of the model and not of an
//! observation. `nextstat check` asks.

use crate::hessian::Hessian;
use crate::minimize::Domain;
use crate::result::FlatDirection;
use ns_core::{Likelihood, Model};

/// What the Fisher information says of parameters that are hard to tell apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Degeneracy {
    /// Directions without any curvature to speak of.
    pub flat_directions: Vec<FlatDirection>,
    /// Pairs of parameters whose expected correlation exceeds the limit in size, strongest first.
    pub pairs: Vec<CorrelatedPair>,
}

/// Two parameters and their expected correlation.
#[derive(Debug, Clone, PartialEq)]
pub struct CorrelatedPair {
    /// One of them.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// Their correlation, between -1 and 1.
    pub correlation: f64,
}

/// Looks at `likelihood`, that of the Asimov data of `model` at its starting values, and lists pairs correlated by more than `limit`.
pub fn degeneracy<L: Likelihood + ?Sized>(model: &Model, likelihood: &mut L, limit: f64) -> Degeneracy {
    let parameters = &model.parameters;
    let domain = Domain { fixed: parameters.fixed.clone(), ..unbounded(parameters.len()) };
    let mut hessian = Hessian::at(likelihood, &parameters.init, &domain);
    let flat_directions = hessian.flat_directions(likelihood, &parameters.init, parameters);
    let Some(covariance) = hessian.covariance().filter(|_| flat_directions.is_empty()) else {
        return Degeneracy { flat_directions, pairs: Vec::new() };
    };
    let n = parameters.len();
    let width: Vec<f64> = (0..n).map(|i| covariance[i * n + i].sqrt()).collect();
    let mut pairs = Vec::new();
    for first in 0..n {
        for second in 0..first {
            let correlation = covariance[first * n + second] / (width[first] * width[second]);
            if correlation.abs() > limit {
                pairs.push(CorrelatedPair { first: second, second: first, correlation });
            }
        }
    }
    pairs.sort_by(|a, b| b.correlation.abs().total_cmp(&a.correlation.abs()));
    Degeneracy { flat_directions, pairs }
}

/// A starting value at a bound is no reason to leave the parameter out.
fn unbounded(n: usize) -> Domain {
    Domain { lower: vec![f64::MIN; n], upper: vec![f64::MAX; n], ..Domain::default() }
}
