//! Parameters that even perfect data would hardly tell apart: the correlations that a model expects
//! before any fit.
//!
//! At Asimov data the exact Hessian is the Fisher information of the model, so what it shows is a
//! property of the model and not of an observation. `nextstat check` asks.

use crate::hessian::Hessian;
use crate::linear::SparseRows;
use crate::minimize::Domain;
use crate::result::FlatDirection;
use ns_core::check::{Finding, FindingKind, FindingPlace};
use ns_core::{Model, SearchLikelihood};

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

/// Looks at `likelihood`, that of the Asimov data of `model` at its starting values, and lists
/// pairs correlated by more than `limit`.
pub fn degeneracy<L: SearchLikelihood + ?Sized>(model: &Model, likelihood: &mut L, limit: f64) -> Degeneracy {
    let parameters = &model.parameters;
    let domain = Domain { fixed: parameters.fixed.clone(), ..unbounded(parameters.len()) };
    let hessian = Hessian::at(likelihood, &parameters.init, &domain);
    let flat_directions = hessian.flat_directions(likelihood, &parameters.init, parameters);
    let is_usable = hessian.is_covariance() && flat_directions.is_empty() && !likelihood.is_stopped();
    let pairs = if is_usable { correlated_pairs(&hessian, limit) } else { Vec::new() };
    Degeneracy { flat_directions, pairs }
}

/// Finds parameters that the expected data hardly distinguish, as the check of a model lists them.
/// `likelihood` is that of [`degeneracy`].
pub fn findings(model: &Model, likelihood: &mut impl SearchLikelihood) -> Vec<Finding> {
    /// Expected correlations above this are worth a warning.
    const CORRELATION_LIMIT: f64 = 0.995;

    if !likelihood.nll(&model.parameters.init).is_finite() {
        return Vec::new();
    }
    let found = degeneracy(model, likelihood, CORRELATION_LIMIT);
    let name = |i: usize| model.parameters.names[i].clone();
    // A single parameter that nothing determines has its own finding.
    let directions =
        found.flat_directions.into_iter().filter(|direction| direction.parameters.len() > 1).map(|direction| {
            let problem = FindingKind::Degenerate { curvature: direction.curvature, parameters: direction.parameters };
            Finding { problem, at: FindingPlace::default() }
        });
    let pairs = found.pairs.into_iter().map(|pair| {
        let problem = FindingKind::StronglyCorrelated { other: name(pair.second), correlation: pair.correlation };
        Finding { problem, at: FindingPlace { parameter: Some(name(pair.first)), ..FindingPlace::default() } }
    });
    directions.chain(pairs).collect()
}

/// Returns the pairs correlated by more than `limit`, strongest first.
///
/// A correlation ρ raises the variances of both parameters by 1/(1 - ρ²) at least, so that only
/// covariances of parameters with such a variance are computed.
fn correlated_pairs(hessian: &Hessian, limit: f64) -> Vec<CorrelatedPair> {
    /// For rounding, which must not decide whether a pair is looked at.
    const MARGIN: f64 = 0.99;
    let suspects = hessian.inflated(MARGIN / (1.0 - limit * limit));
    let mut units = SparseRows::default();
    suspects.iter().for_each(|&i| units.push([(i, 1.0)]));
    let covariance = hessian.whiten(&units);
    let width: Vec<f64> = (0..suspects.len()).map(|k| covariance.variance(k).sqrt()).collect();
    let mut pairs = Vec::new();
    for k in 0..suspects.len() {
        for m in 0..k {
            let correlation = covariance.covariance(k, m) / (width[k] * width[m]);
            if correlation.abs() > limit {
                pairs.push(CorrelatedPair { first: suspects[m], second: suspects[k], correlation });
            }
        }
    }
    pairs.sort_by(|a, b| b.correlation.abs().total_cmp(&a.correlation.abs()));
    pairs
}

/// Returns a domain without bounds: a starting value at a bound is no reason to leave the parameter
/// out.
fn unbounded(n: usize) -> Domain {
    Domain { lower: vec![f64::MIN; n], upper: vec![f64::MAX; n], ..Domain::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ns_compute::CpuLikelihood;
    use ns_core::curvature::{Curvature, CurvatureStructure};
    use ns_core::expected::asimov;
    use ns_core::interpolate::Interpolation;
    use ns_core::spec::ModifierData::{NormFactor, NormSys};
    use ns_testkit::assert_close;
    use ns_testkit::random::{self, Shape};
    use ns_testkit::small::{one_channel, sample};
    use std::cell::Cell;

    fn expected(model: &Model) -> CpuLikelihood {
        let mut likelihood = CpuLikelihood::new(model);
        ns_core::DataLikelihood::set_data(&mut likelihood, &asimov(model, &model.parameters.init));
        likelihood
    }

    /// Returns every pair, from the whole covariance.
    fn all_pairs(model: &Model, limit: f64) -> Vec<CorrelatedPair> {
        let n = model.n_params();
        let domain = Domain { fixed: model.parameters.fixed.clone(), ..unbounded(n) };
        let mut hessian = Hessian::at(&mut expected(model), &model.parameters.init, &domain);
        let covariance = hessian.covariance().expect("positive definite");
        let pairs = (0..n).flat_map(|second| (0..second).map(move |first| (first, second)));
        let pair = |(first, second): (usize, usize)| {
            let width = |i: usize| covariance[i * n + i].sqrt();
            let correlation = covariance[second * n + first] / (width(first) * width(second));
            CorrelatedPair { first, second, correlation }
        };
        pairs.map(pair).filter(|pair| pair.correlation.abs() > limit).collect()
    }

    #[test]
    fn suspects_hold_every_correlated_pair() {
        let mut n_pairs = 0;
        for seed in 0..40 {
            let model = random::model(seed, Shape::SMALL, Interpolation::default());
            for limit in [0.3, 0.8] {
                let found = degeneracy(&model, &mut expected(&model), limit);
                if !found.flat_directions.is_empty() {
                    continue;
                }
                let all = all_pairs(&model, limit);
                assert_eq!(found.pairs.len(), all.len(), "seed {seed}, limit {limit}");
                for pair in &found.pairs {
                    let same = all.iter().find(|other| (other.first, other.second) == (pair.first, pair.second));
                    assert_close(pair.correlation, same.expect("found, too").correlation, 1e-9, "correlation");
                }
                n_pairs += all.len();
            }
        }
        assert!(n_pairs > 20, "{n_pairs} pairs are no test");
    }

    /// A likelihood that is to stop after its first derivatives; counts the times that it is asked.
    struct Stopped {
        inner: CpuLikelihood,
        n_evaluations: Cell<usize>,
    }

    impl ns_core::Likelihood for Stopped {
        fn n_params(&self) -> usize {
            self.inner.n_params()
        }

        fn structure(&self) -> CurvatureStructure {
            self.inner.structure()
        }

        fn nll(&mut self, params: &[f64]) -> f64 {
            self.inner.nll(params)
        }

        fn nll_and_grad(&mut self, params: &[f64], gradient: &mut [f64]) -> f64 {
            self.inner.nll_and_grad(params, gradient)
        }

        fn nll_and_curvature(&mut self, params: &[f64], gradient: &mut [f64], curvature: &mut Curvature) -> f64 {
            self.n_evaluations.set(self.n_evaluations.get() + 1);
            self.inner.nll_and_curvature(params, gradient, curvature)
        }
    }

    impl SearchLikelihood for Stopped {
        fn set_floor(&mut self, floor: Option<f64>) -> bool {
            self.inner.set_floor(floor)
        }

        fn is_stopped(&self) -> bool {
            self.n_evaluations.get() > 0
        }
    }

    #[test]
    fn a_request_to_stop_ends_the_factorisation_of_a_large_model() {
        let names: Vec<String> = (0..1500).map(|i| format!("n{i}")).collect();
        let size = NormSys { lo: 0.9, hi: 1.1 };
        let mut modifiers = vec![("mu", NormFactor)];
        modifiers.extend(names.iter().map(|name| (name.as_str(), size.clone())));
        let model = one_channel(vec![sample("signal", &[10.0, 20.0], &modifiers)], &[10.0, 20.0]);
        assert!(!degeneracy(&model, &mut expected(&model), 0.01).pairs.is_empty());
        let mut stopped = Stopped { inner: expected(&model), n_evaluations: Cell::new(0) };
        assert_eq!(degeneracy(&model, &mut stopped, 0.01), Degeneracy::default());
    }
}
