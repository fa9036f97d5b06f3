//! Rankings: how much each nuisance parameter matters to the parameter of interest, by three
//! definitions side by side.
//!
//! With μ the parameter of interest, θ a nuisance parameter, θ₀ and σ₀ the centre and the width of
//! its constraint, and C the inverse of the exact Hessian:
//!
//! | definition | impact of θ on μ |
//! |---|---|
//! | classic, post-fit | μ̂ refitted with θ fixed at θ̂ ± σ_θ, minus μ̂ |
//! | classic, pre-fit | the same at θ̂ ± σ₀ |
//! | global | μ̂ refitted with the auxiliary datum of θ one standard deviation higher or lower, minus μ̂ |
//! | covariance, post-fit | C_μθ / σ_θ |
//! | covariance, pre-fit | C_μθ σ₀ / σ_θ² |
//! | linear response, of the global impact | C_μθ / σ₀ |
//!
//! Only global impacts add up: their squares, with the statistical rest, are the variance of μ̂ (A.
//! Pinto et al., arXiv:2307.04007). The others count what correlated parameters share more than
//! once.

mod group;
mod impacts;
mod report;
mod stored;

pub use group::ParameterGroup;
pub use stored::{EarlierFit, ranking_of_covariance};

use crate::minimize::{Domain, Minimum, Outcome};
use crate::parallel::{self, ExecutionContext, WorkPart};
use crate::problem::Problem;
use crate::profile::Profiler;
use crate::result::{BestFit, MinosInterval};
use crate::scan::ROUNDS;
use crate::search::{is_below, lowest_of};
use impacts::{Plan, Work};
use ns_core::DataLikelihood;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What to rank, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct RankingOptions {
    /// The parameter of interest, which must be free.
    pub poi: usize,
    /// The definitions that are wanted.
    pub methods: RankingMethods,
    /// Whether the classic post-fit impacts fix parameters at the ends of their MINOS intervals,
    /// rather than one standard deviation away.
    pub minos: bool,
    /// Groups of parameters, whose common impact is wanted.
    pub groups: Vec<ParameterGroup>,
}

/// Which definitions are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankingMethods {
    /// Conditional refits.
    pub classic: bool,
    /// Shifts of auxiliary data.
    pub global: bool,
    /// Formulas of the covariance.
    pub covariance: bool,
}

impl RankingMethods {
    /// All of them.
    pub const ALL: Self = Self { classic: true, global: true, covariance: true };
    /// Formulas alone, without a refit.
    pub const COVARIANCE: Self = Self { classic: false, global: false, covariance: true };
}

/// A ranking of the nuisance parameters, the most important one first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranking {
    /// The parameter of interest.
    pub poi: RankingPoi,
    /// One per free parameter other than the parameter of interest: by the larger post-fit impact,
    /// or if there is none, by the covariance's or the global one.
    pub entries: Vec<RankingEntry>,
    /// The groups that were asked for, in that order.
    pub groups: Vec<GroupImpact>,
    /// The uncertainty of the parameter of interest, divided.
    pub breakdown: UncertaintyBreakdown,
    /// The fit that everything refers to.
    pub best: BestFit,
    /// Whether every parameter was done; a ranking that was stopped has fewer entries.
    pub is_complete: bool,
    /// Whether the free fit and every refit converged.
    pub converged: bool,
    /// What a reader should know before using the numbers, one sentence each.
    pub warnings: Vec<String>,
}

/// The parameter of interest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankingPoi {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: usize,
    /// Its best-fit value; `None` if the fit did not converge.
    pub bestfit: Option<f64>,
    /// Its standard deviation.
    pub uncertainty: Option<f64>,
}

/// A nuisance parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankingEntry {
    /// Its name.
    pub parameter: String,
    /// Its best-fit value θ̂.
    pub bestfit: f64,
    /// Its post-fit standard deviation.
    pub uncertainty: Option<f64>,
    /// Its MINOS interval, if that was used.
    pub minos: Option<MinosInterval>,
    /// The width σ₀ of its constraint, before the fit; `None` for free parameters.
    pub prefit_uncertainty: Option<f64>,
    /// (θ̂ - θ₀) / σ₀
    pub pull: Option<f64>,
    /// Post-fit over pre-fit uncertainty.
    pub constraint: Option<f64>,
    /// Classic impact, pre-fit.
    pub prefit: Option<Impacts>,
    /// Classic impact, post-fit.
    pub postfit: Option<Impacts>,
    /// Global impact: what the auxiliary datum does.
    pub global: Option<Impacts>,
    /// Linear response C_μθ / σ₀ to the auxiliary datum, a check of the global impact up.
    pub global_linear: Option<f64>,
    /// C_μθ σ₀ / σ_θ²
    pub covariance_prefit: Option<f64>,
    /// C_μθ / σ_θ
    pub covariance_postfit: Option<f64>,
}

/// What two shifts do to the parameter of interest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Impacts {
    /// The shift down.
    pub down: Impact,
    /// The shift up.
    pub up: Impact,
}

/// What one shift does to the parameter of interest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Impact {
    /// The change of μ̂; `None` if the refit did not converge.
    pub impact: Option<f64>,
    /// Where the parameter was fixed, or what the auxiliary datum was.
    pub at: f64,
    /// Whether the shift was cut short: at the end of the parameter's range, or at zero for a
    /// count.
    pub clipped: bool,
    /// How the refit ended.
    pub outcome: Outcome,
}

/// What a group of parameters does together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupImpact {
    /// The group's name.
    pub group: String,
    /// Its free members.
    pub members: Vec<String>,
    /// √(σ_μ² - σ²), where σ is the uncertainty of μ̂ with the group fixed at the best fit.
    pub frozen: Option<f64>,
    /// The quadrature sum of its members' global impacts.
    pub global: Option<f64>,
}

/// The uncertainty of the parameter of interest, divided into what auxiliary data and what event
/// counts are to blame for.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct UncertaintyBreakdown {
    /// The standard deviation σ_μ.
    pub total: Option<f64>,
    /// By global impacts: their quadrature sum, each side counted half.
    pub global_systematic: Option<f64>,
    /// By global impacts: √(σ_μ² - systematic²).
    pub global_statistical: Option<f64>,
    /// σ_μ with every constrained parameter fixed at the best fit.
    pub frozen_statistical: Option<f64>,
    /// √(σ_μ² - that²)
    pub frozen_systematic: Option<f64>,
}

/// The refits of some of a ranking's parameters, made elsewhere; for [`ranking_of_parts`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankingPart {
    /// The first of its parameters, among those that are ranked.
    first: usize,
    works: Vec<Work>,
}

/// Returns the ranking of the nuisance parameters of `problem`.
pub fn ranking<L: DataLikelihood + Clone + Sync>(
    problem: &Problem<'_, L>,
    options: &RankingOptions,
    execution: ExecutionContext<'_>,
) -> Ranking {
    ranking_of_parts(problem, options, &[], execution)
}

/// Returns part `part` of a ranking: all that [`ranking`] does for that share of the parameters.
///
/// A cancelled run has fewer of them.
pub fn ranking_part<L: DataLikelihood + Clone + Sync>(
    problem: &Problem<'_, L>,
    options: &RankingOptions,
    part: WorkPart,
    execution: ExecutionContext<'_>,
) -> RankingPart {
    let likelihood: &L = problem.likelihood;
    let mut own = likelihood.clone();
    let mut profiler = Profiler::new(problem.model, &mut own, problem.options);
    let plan = Plan::new(problem, options, &mut profiler);
    let Range { start: first, end } = part.of(plan.n_works());
    let make = || likelihood.clone();
    let works = parallel::map(end - first, execution, make, |likelihood, k| plan.work(likelihood, first + k));
    RankingPart { first, works: works.into_iter().map_while(|work| work).collect() }
}

/// Returns a ranking, of which `parts` are done already: the result is that of [`ranking`].
///
/// What no part has is done here, and so is everything if the parts show that there is a lower
/// minimum.
pub fn ranking_of_parts<L: DataLikelihood + Clone + Sync>(
    problem: &Problem<'_, L>,
    options: &RankingOptions,
    parts: &[RankingPart],
    execution: ExecutionContext<'_>,
) -> Ranking {
    let mut own = problem.likelihood.clone();
    let mut profiler = Profiler::new(problem.model, &mut own, problem.options);
    let mut known = parts;
    for _ in 1..ROUNDS {
        let done = attempt(problem, options, known, execution, &mut profiler);
        known = &[];
        let known = profiler.best().nll;
        match done {
            Attempt::Finished(ranking) => return ranking,
            Attempt::Lower(lower, ranking) => {
                profiler.try_from_point(&lower.params);
                if !is_below(profiler.best().nll, known) {
                    return ranking;
                }
            }
        }
    }
    match attempt(problem, options, known, execution, &mut profiler) {
        Attempt::Finished(ranking) | Attempt::Lower(_, ranking) => ranking,
    }
}

/// How a ranking round one free minimum ended.
enum Attempt {
    Finished(Ranking),
    /// A refit found a free minimum that is lower.
    Lower(Minimum, Ranking),
}

fn attempt<L: DataLikelihood + Clone + Sync>(
    problem: &Problem<'_, L>,
    options: &RankingOptions,
    parts: &[RankingPart],
    execution: ExecutionContext<'_>,
    profiler: &mut Profiler<'_, L>,
) -> Attempt {
    let likelihood: &L = problem.likelihood;
    let plan = Plan::new(problem, options, profiler).prefitted(execution);
    let known = |k: usize| parts.iter().find_map(|part| part.works.get(k.checked_sub(part.first)?).cloned());
    let make = || likelihood.clone();
    let works = parallel::map(plan.n_works(), execution, make, |likelihood, k| {
        known(k).unwrap_or_else(|| plan.work(likelihood, k))
    });
    let lower = works.iter().flatten().filter_map(|work| work.lower.as_ref());
    let lower = lowest_of(lower, |minimum| minimum.nll).cloned();
    let ranking = report::assemble(&plan, works, profiler);
    match lower {
        Some(lower) if !execution.monitor.is_cancelled() => Attempt::Lower(lower, ranking),
        Some(_) => {
            let warning = "a refit ended below the best fit, which is therefore not the lowest minimum";
            let warnings = ranking.warnings.into_iter().chain([warning.to_owned()]).collect();
            Attempt::Finished(Ranking { warnings, ..ranking })
        }
        None => Attempt::Finished(ranking),
    }
}

/// The part of the covariance at the best fit that refits start from.
struct Covariance {
    /// Free parameters other than the parameter of interest.
    nuisances: Vec<usize>,
    /// Column of the covariance of each (P); zero where it has none.
    columns: Vec<Vec<f64>>,
}

impl Covariance {
    fn new<L: DataLikelihood>(profiler: &mut Profiler<'_, L>, best: &BestFit, poi: usize) -> Self {
        let fixed = profiler.domain().fixed.clone();
        let nuisances: Vec<usize> = (0..best.params.len()).filter(|&i| i != poi && !fixed[i]).collect();
        let mut columns = vec![vec![0.0; best.params.len()]; nuisances.len()];
        if best.converged {
            let hessian = profiler.hessian();
            for (column, &i) in columns.iter_mut().zip(&nuisances) {
                if hessian.variance(i) > 0.0 {
                    hessian.covariance_column(i, column);
                }
            }
        }
        Self { nuisances, columns }
    }
}

/// Returns σ_μ with the parameters for which `is_frozen` fixed at the best fit.
fn frozen_uncertainty<L: DataLikelihood>(
    profiler: &mut Profiler<'_, L>,
    domain: &Domain,
    poi: usize,
    is_frozen: impl Fn(usize) -> bool,
) -> Option<f64> {
    let mut frozen = domain.clone();
    (0..frozen.fixed.len()).for_each(|i| frozen.fixed[i] |= is_frozen(i));
    let at = profiler.best().params.clone();
    crate::hessian::Hessian::at(profiler.likelihood(), &at, &frozen).sigma(poi)
}
