//! Tests the goodness of fit with toys: how often toys thrown at the best fit are farther from the
//! saturated model than the data.
//!
//! The test does not need large counts, and accounts for the effect of bounds and kinks on the
//! degrees of freedom.

use super::fit::{refit, refit_from};
use super::p_value::{ToyPValue, threshold};
use super::pilot::toy_search;
use super::prefit::{DataSetRequest, DevicePrefit, PrefitRequest};
use super::run::{BatchWork, RunStatus, ToyRun, in_batches};
use super::throw::ToySampler;
use crate::accelerator::Accelerator;
use crate::gof::{Deviance, saturated_deviance};
use crate::options::domain_and_start;
use crate::problem::Problem;
use crate::profile::Profiler;
use ns_core::{Data, DataLikelihood};
use serde::Serialize;
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};

/// P-values of the goodness of fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GoodnessToys {
    /// The p-value of all channels together.
    pub total: ToyPValue,
    /// The p-value of each channel (C).
    pub channels: Vec<ToyPValue>,
    /// The number of toys whose fit did not converge.
    pub n_failed: u64,
}

/// Refits each toy of `sampler`, and compares its distance to the saturated model with `observed`,
/// that of the fit to the data with the same options. Returns the p-values and how the run ended.
///
/// A cancelled run returns the p-values of the completed toys.
pub fn goodness_toys<L: DataLikelihood + Clone + Sync>(
    problem: &Problem<'_, L>,
    sampler: &ToySampler,
    toys: Range<u64>,
    run: &ToyRun<'_>,
    observed: &Deviance,
) -> (GoodnessToys, RunStatus) {
    let Problem { model, ref likelihood, options } = *problem;
    let likelihood: &L = likelihood;
    let search = toy_search(model, likelihood, options, sampler, &[], run);
    let (domain, _) = domain_and_start(model, options);
    let prefit = |accelerator: &Accelerator, toys| {
        let request_of = |index| DataSetRequest { source: sampler, index, search };
        PrefitRequest { accelerator, model, options, run, variance_of: None }.free(toys, request_of)
    };
    let batch = |likelihood: &mut L, prefit: &DevicePrefit, toys: Range<u64>| {
        let mut profiler = Profiler::unfitted(model, likelihood, options);
        profiler.set_exploring(search.explores);
        let mut data = Data::default();
        let mut one = |toy| {
            if let Some((fitted, accelerator)) = prefit.of(toy).zip(run.accelerator) {
                refit_from(&mut profiler, accelerator, fitted);
                data.clone_from(fitted.data);
            } else {
                sampler.throw(toy, &mut data);
                refit(&mut profiler, sampler, &data, search);
            }
            let best = profiler.best();
            best.converged().then(|| saturated_deviance(model, &data, &best.params, &domain.fixed))
        };
        toys.map(&mut one).collect::<Vec<Option<Deviance>>>()
    };
    let mut tally = Tally::of(observed);
    let Ok(ended) = in_batches(toys, run, BatchWork { prefit, make: || likelihood.clone(), work: batch }, |toys| {
        toys.iter().for_each(|toy| tally.add(toy.as_ref()));
        Ok::<_, Infallible>(ControlFlow::Continue(()))
    });
    (tally.p_values(), ended)
}

/// Counts the toys that are at least as far from the saturated model as the data.
struct Tally {
    /// The thresholds: of all channels together, then of each channel.
    thresholds: Vec<f64>,
    n_extreme: Vec<u64>,
    n_toys: u64,
    n_failed: u64,
}

fn entries(deviance: &Deviance) -> impl Iterator<Item = f64> {
    std::iter::once(deviance.total).chain(deviance.channels.iter().copied())
}

impl Tally {
    fn of(observed: &Deviance) -> Self {
        let thresholds: Vec<f64> = entries(observed).map(threshold).collect();
        Self { n_extreme: vec![0; thresholds.len()], thresholds, n_toys: 0, n_failed: 0 }
    }

    fn add(&mut self, toy: Option<&Deviance>) {
        let Some(deviance) = toy else {
            self.n_failed += 1;
            return;
        };
        self.n_toys += 1;
        for ((count, threshold), value) in self.n_extreme.iter_mut().zip(&self.thresholds).zip(entries(deviance)) {
            *count += u64::from(value >= *threshold);
        }
    }

    fn p_values(&self) -> GoodnessToys {
        let mut all = self.n_extreme.iter().map(|&k| ToyPValue::from_counts(k, self.n_toys, self.n_failed));
        let total = all.next().expect("the total comes first");
        GoodnessToys { total, channels: all.collect(), n_failed: self.n_failed }
    }
}
