//! Confidence intervals by toys: the values of a parameter that a test with toys accepts.
//!
//! The construction is that of Neyman with the profile likelihood ratio, G. J. Feldman and R. D.
//! Cousins, Phys. Rev. D 57 (1998) 3873: a value is accepted if at least a fraction 1 - CL of the
//! toys thrown there are as extreme as the data. Nuisance parameters are at their conditional best
//! fits to the data, and each toy is fitted. Values are tested outwards from the best fit, first a
//! few with few toys, then more and more near each crossing of the level (`crossing`).
//!
//! `search` tests values and finds the ends of the accepted regions, and `report` makes the result.

mod report;
mod search;

use super::hypotest::ToysError;
use super::jobs::{Stop, Unfinished};
use super::p_value::ToyPValue;
use super::run::ToyRun;
use super::tested_points::{TestedPoints, ToyBudget};
use super::throw::{AuxTreatment, Ensemble, ToySource};
use crate::problem::Problem;
use crate::result::PoiBestFit;
use ns_core::DataLikelihood;
use search::IntervalSolver;
use serde::Serialize;

/// Which values an interval consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Construction {
    /// Those at which t_μ of the data is not among the largest 1 - CL of the toys.
    #[default]
    #[serde(rename = "fc")]
    FeldmanCousins,
    /// Those at which the data are not among the lowest or the highest ½ (1 - CL) of the toys.
    #[serde(rename = "central")]
    Central,
    /// Those at which the data are not among the lowest 1 - CL of the toys: an upper limit.
    #[serde(rename = "upper")]
    Upper,
}

impl Construction {
    /// Returns the construction of that name in documents and arguments.
    ///
    /// ```
    /// use ns_inference::toys::Construction;
    /// assert_eq!(Construction::named("central"), Some(Construction::Central));
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "fc" => Some(Self::FeldmanCousins),
            "central" => Some(Self::Central),
            "upper" => Some(Self::Upper),
            _ => None,
        }
    }
}

/// Which interval is wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalSettings {
    /// The construction.
    pub construction: Construction,
    /// The index of the parameter.
    pub poi: usize,
    /// The confidence level.
    pub cl: f64,
    /// The error at which an end is known well enough, in standard deviations of the parameter.
    pub tolerance: f64,
    /// The largest number of toys.
    pub max_toys: u64,
    /// The seed.
    pub seed: u64,
    /// The treatment of the auxiliary data.
    pub aux: AuxTreatment,
}

/// One end of an accepted region.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct IntervalEnd {
    /// The value; `None` if there is no end on this side, or if no tested value is beyond it.
    pub value: Option<f64>,
    /// Its Monte Carlo error; `None` at an end of the parameter's range, which has none. Whether
    /// the region reaches it is certain only if the interval converged.
    pub error: Option<f64>,
    /// Whether the region ends because the range of the parameter does, whose end was tested and
    /// is accepted.
    pub at_bound: bool,
}

/// A region of accepted values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AcceptedRegion {
    /// Its lower end.
    pub lower: IntervalEnd,
    /// Its upper end.
    pub upper: IntervalEnd,
}

/// The test of one value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct IntervalPoint {
    /// The value.
    pub value: f64,
    /// t_μ of the data.
    pub t: f64,
    /// The fraction of toys in the tail that the construction counts on this side of the best fit.
    pub p_value: ToyPValue,
}

/// A confidence interval by toys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToyInterval {
    /// The parameter, with its best fit.
    pub poi: PoiBestFit,
    /// The construction.
    pub construction: Construction,
    /// The confidence level.
    pub cl: f64,
    /// The lower end of the lowest accepted region; `None` if no value is accepted.
    pub lower: Option<IntervalEnd>,
    /// The upper end of the highest accepted region.
    pub upper: Option<IntervalEnd>,
    /// The accepted regions, ascending; more than one if values between them are excluded.
    pub regions: Vec<AcceptedRegion>,
    /// The ends of the interval by asymptotic formulas; `None` where the range ends before.
    pub asymptotic: [Option<f64>; 2],
    /// The range of the parameter.
    pub range: [f64; 2],
    /// How nuisance parameters of toys are chosen: `conditional_best_fit`, at their best fit to the
    /// data for the tested value.
    pub nuisance_parameters: &'static str,
    /// The wanted error of the ends, in standard deviations.
    pub tolerance: f64,
    /// The treatment of the auxiliary data.
    pub aux: AuxTreatment,
    /// The seed.
    pub seed: u64,
    /// The number of toys, including failed ones.
    pub n_toys: u64,
    /// The number of toys for which a fit did not converge.
    pub n_failed: u64,
    /// Whether every end is known to the tolerance and the fits of all toys converged.
    pub converged: bool,
    /// Whether the run was not cancelled.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// Messages to read before using the numbers.
    pub warnings: Vec<String>,
    /// The tested values, ascending.
    pub tested: Vec<IntervalPoint>,
}

/// Finds the values of a parameter that toys accept.
///
/// # Errors
/// If a fit to the data does not converge or ends where no toys can be thrown, or if the
/// accelerator fails.
pub fn interval<L: DataLikelihood + Clone + Sync>(
    problem: &mut Problem<'_, L>,
    settings: IntervalSettings,
    run: &ToyRun<'_>,
) -> Result<ToyInterval, ToysError> {
    let likelihood = problem.likelihood.clone();
    let source = ToySource { seed: settings.seed, ensemble: Ensemble::Intervals, aux: settings.aux };
    let tested = [settings.poi];
    let points = TestedPoints::new(
        problem.reborrow(),
        &likelihood,
        &tested,
        source,
        ToyBudget { run: *run, max_toys: settings.max_toys },
    );
    let mut solver = IntervalSolver::new(settings, points)?;
    let is_complete = match solver.solve() {
        Ok(()) => true,
        Err(Stop::Unfinished(Unfinished::Cancelled)) => false,
        Err(Stop::Unfinished(Unfinished::Failed)) => return Err(ToysError::Accelerator),
        Err(Stop::Toys(error)) => return Err(error),
    };
    Ok(solver.report(is_complete))
}
