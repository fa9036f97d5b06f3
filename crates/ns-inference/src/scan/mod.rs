//! Profile scans: how much worse the best fit becomes as one or two parameters are moved.
//!
//! At each point the scanned parameters are fixed and all others refitted; the curve is the lowest
//! that neighbouring points lead to. A point that lies below the free minimum shows that the free
//! minimum was another one: the scan then starts again from there, so that everything refers to the
//! lowest.

mod grid;
mod range;
mod sweep;

pub use grid::GridPart;

use crate::minimize::{Minimum, Outcome};
use crate::parallel::{ExecutionContext, WorkPart};
use crate::problem::Problem;
use crate::profile::Profiler;
use crate::response::Response;
use crate::result::BestFit;
use crate::search::{is_better_end, without_rounding};
use ns_core::{Model, SearchLikelihood};
use serde::Serialize;
use std::sync::Arc;
use sweep::Sweep;

/// How often a lower free minimum may make a scan start again.
pub(crate) const ROUNDS: usize = 10;

/// A parameter to scan, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanAxis {
    /// Its index.
    pub parameter: usize,
    /// The values to fix it at.
    pub values: ScanValues,
}

/// Where to scan a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum ScanValues {
    /// At these values, which may lie outside the parameter's range, in any order.
    Given(Vec<f64>),
    /// At this many values, equally far apart, from where 2 Δ(-ln L) is about 9 on one side of the
    /// best fit to where it is on the other, or to the end of the parameter's range.
    Automatic(usize),
}

impl ScanValues {
    /// Returns `points` values from `start` to `stop`, equally far apart.
    ///
    /// ```
    /// use ns_inference::scan::ScanValues;
    /// assert_eq!(ScanValues::between(0.0, 5.0, 3), ScanValues::Given(vec![0.0, 2.5, 5.0]));
    /// ```
    #[must_use]
    pub fn between(start: f64, stop: f64, points: usize) -> Self {
        let last = points.saturating_sub(1).max(1) as f64;
        let value = |i: usize| if i as f64 == last { stop } else { start + (stop - start) * (i as f64 / last) };
        Self::Given((0..points).map(value).collect())
    }
}

/// A profile scan of one or two parameters. Lists of points run over the last parameter first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scan {
    /// Names of the scanned parameters.
    pub parameters: Vec<String>,
    /// The values of each.
    pub values: Vec<Vec<f64>>,
    /// -ln L above that of the best fit, per point; `None` where a fit did not converge. Below zero
    /// only where a value outside its parameter's range fits better than any inside.
    pub delta_nll: Vec<Option<f64>>,
    /// Twice that: -2 ln λ, the profile likelihood ratio.
    pub twice_delta_nll: Vec<Option<f64>>,
    /// The parameters of each conditional fit (P); `None` where it did not converge.
    #[serde(rename = "conditional_bestfit")]
    pub params: Vec<Option<Vec<f64>>>,
    /// How each conditional fit ended; `None` if it was not done.
    pub outcomes: Vec<Option<Outcome>>,
    /// The free fit that everything refers to.
    #[serde(rename = "fit")]
    pub best: BestFit,
    /// Whether all points were done; a scan that was stopped has fewer.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// Whether the free fit and every point that was done converged.
    pub converged: bool,
    /// What a reader should know before using the numbers, one sentence each.
    pub warnings: Vec<String>,
}

/// Conditional minima, in the order of the points; `None` where nothing was done.
pub(crate) type Minima = Vec<Option<Minimum>>;

/// Scans one parameter of `model`, which must be free, on one thread.
///
/// From the best fit outwards to both sides, each point predicted from the ones before it, then
/// back inwards wherever the outer neighbour leads elsewhere.
pub fn scan<L: SearchLikelihood + ?Sized>(
    problem: &mut Problem<'_, L>,
    axis: &ScanAxis,
    execution: ExecutionContext<'_>,
) -> Scan {
    let Problem { model, options, .. } = *problem;
    let mut profiler = Profiler::new(model, problem.likelihood, options);
    let mut best = profiler.best_fit();
    let values = range::resolve(&mut profiler, axis, &best);
    let mut minima: Minima = vec![None; values.len()];
    for _ in 0..ROUNDS {
        best = profiler.best_fit();
        if !best.nll.is_finite() {
            break;
        }
        let domain = profiler.domain().clone();
        let response = Response::at(model, profiler.likelihood(), &domain, &best.params, &[axis.parameter]);
        if let Some(fitter) = execution.batch_fitter {
            let point = |&value: &f64| (vec![(axis.parameter, value)], response.moved(&best.params, &[value]));
            let warm_starts = fitter.conditional(&domain, values.iter().map(point), execution.monitor);
            profiler.warm_start(&Arc::new(warm_starts));
        }
        let line = Sweep { fixed: &[], parameter: axis.parameter, values: &values, response: &response, execution };
        let found = line.run(&mut profiler, &best.params);
        keep_lower(&mut minima, found);
        if profiler.best().nll == best.nll || execution.monitor.is_cancelled() {
            break;
        }
    }
    best = profiler.best_fit();
    let verdict = Verdict { has_several_minima: profiler.has_several_minima(), warnings: profiler.search_warnings() };
    assemble(model, &[(axis.parameter, values)], best, &minima, verdict)
}

/// Scans two parameters of `model`, which must be free, over a grid; rows, of the second
/// parameter's values, are shared among the threads.
pub fn grid<L: SearchLikelihood + Clone + Sync>(
    problem: &Problem<'_, L>,
    axes: [&ScanAxis; 2],
    execution: ExecutionContext<'_>,
) -> Scan {
    grid::grid(problem, axes, &[], execution)
}

/// Returns part `part` of a [`grid`]: its share of the first parameter's values.
///
/// A cancelled run has fewer of them.
pub fn grid_part<L: SearchLikelihood + Clone + Sync>(
    problem: &Problem<'_, L>,
    axes: [&ScanAxis; 2],
    part: WorkPart,
    execution: ExecutionContext<'_>,
) -> GridPart {
    grid::part(problem, axes, part, execution)
}

/// Computes a grid, of which `parts` are done already: the result is that of [`grid`].
///
/// Comparing the rows with each other is left to do here, and so is everything if the parts show
/// that there is a lower minimum.
pub fn grid_of_parts<L: SearchLikelihood + Clone + Sync>(
    problem: &Problem<'_, L>,
    axes: [&ScanAxis; 2],
    parts: &[GridPart],
    execution: ExecutionContext<'_>,
) -> Scan {
    grid::grid(problem, axes, parts, execution)
}

/// Keeps the lower one of two results for each point.
pub(crate) fn keep_lower(minima: &mut Minima, others: Minima) {
    for (known, other) in minima.iter_mut().zip(others) {
        let Some(other) = other else { continue };
        if known.as_ref().is_none_or(|known| is_better_end(&other, known)) {
            *known = Some(other);
        }
    }
}

/// What the search for minima has to say.
struct Verdict {
    has_several_minima: bool,
    warnings: Vec<String>,
}

/// Returns the result, with everything referred to `best`.
fn assemble(model: &Model, axes: &[(usize, Vec<f64>)], best: BestFit, minima: &Minima, verdict: Verdict) -> Scan {
    let good = |minimum: &Option<Minimum>| minimum.clone().filter(|m| m.converged() && best.converged);
    let delta_nll: Vec<Option<f64>> = minima
        .iter()
        .map(|minimum| good(minimum).map(|m| m.nll - best.nll))
        .map(|delta| delta.map(|rise| without_rounding(rise, best.nll)))
        .collect();
    let outcomes: Vec<Option<Outcome>> = minima.iter().map(|m| m.as_ref().map(|m| m.outcome)).collect();
    let failed = outcomes.iter().flatten().filter(|outcome| **outcome != Outcome::Converged).count();
    let mut scan = Scan {
        parameters: axes.iter().map(|(i, _)| model.parameters.names[*i].clone()).collect(),
        values: axes.iter().map(|(_, values)| values.clone()).collect(),
        twice_delta_nll: delta_nll.iter().map(|delta| delta.map(|d| 2.0 * d)).collect(),
        params: minima.iter().map(|minimum| minimum.clone().filter(Minimum::converged).map(|m| m.params)).collect(),
        is_complete: minima.iter().all(Option::is_some),
        converged: best.converged && failed == 0,
        delta_nll,
        outcomes,
        best,
        warnings: Vec::new(),
    };
    scan.warnings = warnings(&scan, failed, verdict);
    scan
}

fn warnings(scan: &Scan, failed: usize, verdict: Verdict) -> Vec<String> {
    let n = scan.outcomes.len();
    let done = scan.outcomes.iter().flatten().count();
    let below = scan.delta_nll.iter().flatten().filter(|delta| **delta < 0.0).count();
    let mut warnings = Vec::new();
    if !scan.best.converged {
        warnings.push("the free fit did not converge, so there is nothing to refer to".to_owned());
    }
    if failed > 0 {
        warnings.push(format!("{failed} of {n} points did not converge; they are null"));
    }
    if done < n && scan.best.nll.is_finite() {
        warnings.push(format!("stopped after {done} of {n} points"));
    }
    if below > 0 {
        warnings.push(format!("{below} of {n} points fit better than the best fit that the parameters' ranges allow"));
    }
    if verdict.has_several_minima {
        warnings.push("several minima were found; the lowest was taken at each point".to_owned());
    }
    warnings.extend(verdict.warnings);
    warnings
}
