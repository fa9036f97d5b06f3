//! The coverage of intervals: how often those of toys contain the value at which the toys were
//! thrown.
//!
//! At each true value, toys are thrown with the nuisance parameters at their conditional best fits
//! to the data, and each is fitted. Intervals are not constructed: for each toy and method it is
//! decided whether the interval would contain the true value (`decide`). A Feldman-Cousins interval
//! takes toys of each toy for that, only as many as the decision needs (`inner`). `count` makes
//! fractions and verdicts of the decisions.

mod count;
mod decide;
mod inner;

use super::hypotest::{ToysError, require_inside};
use super::jobs::Unfinished;
use super::pilot::toy_search;
use super::point::Hypothesis;
use super::prefit::DevicePrefit;
use super::run::{BatchWork, RunStatus, ToyRun, in_batches};
use super::throw::{AuxTreatment, Ensemble, ToySource};
use crate::accelerator::Accelerator;
use crate::monitor::{Monitor, WithoutProgress};
use crate::problem::Problem;
use crate::profile::Profiler;
use crate::result::PoiBestFit;
use count::{Tally, results};
use decide::{CoverageFits, DecidedToy, FittedToy, ToyDecider, ToyDecisions};
use inner::InnerToys;
use ns_core::{Data, DataLikelihood};
use serde::Serialize;
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};

pub use count::{CoveragePoint, CoverageVerdict, MethodCoverage};

/// The number of toys that are decided before the next ones are thrown: if some need inner toys,
/// and if none does.
const WITH_INNER: u64 = 128;
const WITHOUT_INNER: u64 = 4096;

/// The largest fraction of toys without a decision for which there is a coverage.
pub(crate) const MOST_FAILED: f64 = 0.01;

/// A method that makes intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CoverageMethod {
    /// z standard deviations by the Hessian on both sides of the best fit.
    Hessian,
    /// Where 2Δ(-ln L) of the profile is at most z²: MINOS intervals of profiles with one minimum.
    Minos,
    /// Values below the upper limit by the asymptotic CLs of q̃_μ.
    Cls,
    /// Feldman-Cousins intervals by toys.
    #[serde(rename = "fc")]
    FeldmanCousins,
}

impl CoverageMethod {
    /// Every method.
    pub const ALL: [Self; 4] = [Self::Hessian, Self::Minos, Self::Cls, Self::FeldmanCousins];

    /// Returns the name in documents and arguments.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hessian => "hessian",
            Self::Minos => "minos",
            Self::Cls => "cls",
            Self::FeldmanCousins => "fc",
        }
    }

    /// Returns the method of that name.
    ///
    /// ```
    /// use ns_inference::toys::CoverageMethod;
    /// assert_eq!(CoverageMethod::named("fc"), Some(CoverageMethod::FeldmanCousins));
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    fn index(self) -> usize {
        self as usize
    }
}

/// Which coverage is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct CoverageSettings {
    /// The index of the parameter of interest.
    pub poi: usize,
    /// Its true values, in its range.
    pub true_values: Vec<f64>,
    /// The methods.
    pub methods: Vec<CoverageMethod>,
    /// The confidence level of the intervals.
    pub cl: f64,
    /// The number of toys at each true value.
    pub n_toys: u64,
    /// The largest number of inner toys of each toy, for Feldman-Cousins intervals. The product of
    /// the numbers of values, toys and inner toys is at most [`MOST_TOYS`](super::MOST_TOYS).
    pub max_inner_toys: u64,
    /// The deviation of the coverage from `cl` that is small enough.
    pub tolerance: f64,
    /// The seed.
    pub seed: u64,
    /// The treatment of the auxiliary data.
    pub aux: AuxTreatment,
}

impl CoverageSettings {
    fn wants(&self, method: CoverageMethod) -> bool {
        self.methods.contains(&method)
    }

    /// Returns the methods, each once.
    fn methods(&self) -> impl Iterator<Item = CoverageMethod> {
        CoverageMethod::ALL.into_iter().filter(|method| self.wants(*method))
    }
}

/// The coverage of intervals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coverage {
    /// The parameter of interest, with its best fit to the data.
    pub poi: PoiBestFit,
    /// The confidence level of the intervals.
    pub cl: f64,
    /// What each method's coverage says of its intervals.
    pub methods: Vec<MethodCoverage>,
    /// The coverage at each true value by each method.
    pub points: Vec<CoveragePoint>,
    /// How nuisance parameters of toys are chosen: `conditional_best_fit`, at their best fit to the
    /// data for the true value; those of inner toys at their best fit to the toy.
    pub nuisance_parameters: &'static str,
    /// The deviation of the coverage from `cl` that is small enough.
    pub tolerance: f64,
    /// The largest fraction of failed toys for which there is a coverage.
    pub max_failed_fraction: f64,
    /// The treatment of the auxiliary data.
    pub aux: AuxTreatment,
    /// The seed.
    pub seed: u64,
    /// The wanted number of toys at each true value.
    pub n_toys: u64,
    /// The largest number of inner toys of each toy; `None` without Feldman-Cousins intervals.
    pub max_inner_toys: Option<u64>,
    /// Whether every coverage is known.
    pub converged: bool,
    /// Whether the run was not cancelled.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// Messages to read before using the numbers.
    pub warnings: Vec<String>,
}

/// Determines the coverage of intervals by toys.
///
/// # Errors
/// If a true value is outside the range of the parameter of interest, if a fit to the data does not
/// converge or ends where no toys can be thrown, or if the accelerator fails.
pub fn coverage<L: DataLikelihood + Clone + Sync>(
    problem: &mut Problem<'_, L>,
    settings: &CoverageSettings,
    run: &ToyRun<'_>,
) -> Result<Coverage, ToysError> {
    let (likelihood, data) = (problem.likelihood.clone(), problem.data().clone());
    let (model, options) = (problem.model, problem.options);
    let mut profiler = Profiler::new(model, problem.likelihood, options);
    if !profiler.best().converged() {
        return Err(ToysError::Free);
    }
    let mut hypotheses = Vec::with_capacity(settings.true_values.len());
    for value in &settings.true_values {
        require_inside(profiler.domain(), settings.poi, *value)?;
        let source = ToySource { seed: settings.seed, ensemble: Ensemble::Coverage, aux: settings.aux };
        hypotheses.push(Hypothesis::at_best_fit(&mut profiler, &data, &[(settings.poi, *value)], source)?.0);
    }
    let monitor = WithoutProgress(run.monitor);
    let quiet = ToyRun { monitor: &monitor, whole: None, ..*run };
    let fits = CoverageFits { model, options, settings };
    let inner = InnerToys::new(fits, &likelihood, quiet);
    let mut ensemble = CoverageRun { fits, likelihood: &likelihood, run, inner };
    let mut tallies = vec![Tally::default(); hypotheses.len()];
    let mut is_complete = true;
    for (k, (hypothesis, tally)) in hypotheses.iter().zip(&mut tallies).enumerate() {
        match ensemble.at(k, hypothesis, tally) {
            Ok(()) => {}
            Err(Unfinished::Failed) => return Err(ToysError::Accelerator),
            Err(Unfinished::Cancelled) => {
                is_complete = false;
                break;
            }
        }
    }
    let bestfit = Some(profiler.best().params[settings.poi]);
    let poi = PoiBestFit { name: model.parameters.names[settings.poi].clone(), index: settings.poi, bestfit };
    Ok(results(settings, poi, &tallies, is_complete))
}

/// Throws and decides the toys of one true value after the other.
struct CoverageRun<'a, L> {
    fits: CoverageFits<'a>,
    likelihood: &'a L,
    run: &'a ToyRun<'a>,
    inner: InnerToys<'a, L>,
}

impl<L: DataLikelihood + Clone + Sync> CoverageRun<'_, L> {
    /// Adds the toys of true value `k` to `tally`.
    fn at(&mut self, k: usize, hypothesis: &Hypothesis, tally: &mut Tally) -> Result<(), Unfinished> {
        let CoverageFits { model, options, settings } = self.fits;
        let (n_toys, n_values) = (settings.n_toys, settings.true_values.len() as u64);
        let search = toy_search(model, self.likelihood, options, &hypothesis.sampler, &[], self.run);
        let decider = ToyDecider::new(self.fits, k, hypothesis, search);
        let has_inner = settings.wants(CoverageMethod::FeldmanCousins);
        let (chunk, total) = (if has_inner { WITH_INNER } else { WITHOUT_INNER }, n_toys * n_values);
        let (mut next, end) = (k as u64 * n_toys, (k as u64 + 1) * n_toys);
        while next < end {
            let units = next..end.min(next.saturating_add(chunk));
            next = units.end;
            let mut toys = self.decide(&decider, units.clone(), total)?;
            if has_inner {
                let monitor = self.run.monitor;
                let progress = |n_decided| monitor.progress(count(units.start + n_decided), count(total));
                self.inner.decide(&mut toys, decider.tested(), search, progress)?;
            }
            toys.iter().for_each(|toy| tally.add(toy));
        }
        Ok(())
    }

    /// Throws the toys `units` of `total` and decides them; leaves open what takes inner toys.
    fn decide(&self, decider: &ToyDecider<'_>, units: Range<u64>, total: u64) -> Result<Vec<ToyDecisions>, Unfinished> {
        let quiet = WithoutProgress(self.run.monitor);
        let has_inner = self.fits.settings.wants(CoverageMethod::FeldmanCousins);
        let monitor: &dyn Monitor = if has_inner { &quiet } else { self.run.monitor };
        let run = ToyRun { monitor, whole: Some([0, total]), ..*self.run };
        let prefit = |accelerator: &Accelerator, units: Range<u64>| decider.prefit(accelerator, units, &run);
        let work = |[likelihood, scratch]: &mut [L; 2], prefit: &DevicePrefit, units: Range<u64>| {
            let mut profiler = Profiler::unfitted(self.fits.model, likelihood, self.fits.options);
            let mut data = Data::default();
            let toy = |unit| {
                let fitted = prefit.of(unit).zip(run.accelerator);
                DecidedToy { unit, fitted: fitted.map(|(fitted, accelerator)| FittedToy { fitted, accelerator }) }
            };
            units.map(|unit| decider.decide(&mut profiler, scratch, &mut data, toy(unit))).collect()
        };
        let make = || [self.likelihood.clone(), self.likelihood.clone()];
        let mut toys = Vec::new();
        let Ok(ended) = in_batches(units, &run, BatchWork { prefit, make, work }, |decided| {
            toys.extend(decided);
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        });
        match ended {
            RunStatus::Done | RunStatus::Enough => Ok(toys),
            RunStatus::Cancelled => Err(Unfinished::Cancelled),
            RunStatus::Failed => Err(Unfinished::Failed),
        }
    }
}

fn count(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
