//! Goodness of fit by toys: how often data thrown at the best fit would agree with the model less than those that were seen.
//!
//! The measure of agreement is the caller's: a number for the whole, one per channel, or whatever else is asked of data and their best fit.

use super::fit::refit;
use super::p_value::PValue;
use super::pilot::n_starts;
use super::run::{Ended, Run, in_batches};
use super::throw::Thrower;
use crate::fit::FitOptions;
use crate::profile::Profiler;
use ns_core::{Data, DataLikelihood, Model};
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};

/// How well toys agree with the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GoodnessToys {
    /// The statistics of each toy, in order; `None` for a toy whose fit did not converge.
    pub toys: Vec<Option<Vec<f64>>>,
    /// For each entry of the statistic, the fraction of toys that agree no better than what was observed.
    pub p_values: Vec<PValue>,
    /// Toys whose fit did not converge.
    pub n_failed: u64,
}

/// Refits each toy of `thrower` and compares `statistic` of its data and best fit with `observed`, entry by entry; larger means worse agreement.
///
/// A cancelled run returns the toys that are done.
pub fn p_values<L: DataLikelihood + Clone + Sync>(
    (model, likelihood, options): (&Model, &L, &FitOptions),
    thrower: &Thrower,
    toys: Range<u64>,
    run: &Run<'_>,
    observed: &[f64],
    statistic: impl Fn(&Data, &[f64]) -> Vec<f64> + Sync,
) -> (GoodnessToys, Ended) {
    let n_starts = n_starts((model, likelihood, options), thrower, run);
    let batch = |likelihood: &mut L, toys: Range<u64>| {
        let mut profiler = Profiler::unfitted(model, likelihood, options);
        let mut data = Data::default();
        let mut one = |toy| {
            refit(&mut profiler, thrower, toy, &mut data, n_starts);
            profiler.best().converged().then(|| statistic(&data, &profiler.best().params))
        };
        toys.map(&mut one).collect::<Vec<Option<Vec<f64>>>>()
    };
    let mut all = Vec::new();
    let Ok(ended) = in_batches(
        toys,
        run,
        || likelihood.clone(),
        batch,
        |toys| {
            all.extend(toys);
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        },
    );
    let n_failed = all.iter().filter(|toy| toy.is_none()).count() as u64;
    let p_value = |entry: usize| {
        let values: Vec<f64> = all.iter().flatten().map(|statistics| statistics[entry]).collect();
        PValue::of(&values, observed[entry], n_failed)
    };
    let p_values = (0..observed.len()).map(p_value).collect();
    (GoodnessToys { toys: all, p_values, n_failed }, ended)
}
