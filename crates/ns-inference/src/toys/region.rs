//! Confidence regions of two parameters by toys: p-values on a grid, with more toys where a contour
//! passes.
//!
//! As for intervals (`interval`), toys are thrown at the conditional minimum of the data at each
//! point, and the p-value is the fraction of them with at least the t of the data. Points that
//! asymptotic formulas exclude by far are tested only next to points that toys do not exclude.

use super::hypotest::ToysError;
use super::jobs::Unfinished;
use super::p_value::ToyPValue;
use super::pilot::ToySearch;
use super::run::ToyRun;
use super::tested_points::{MoreToys, Tail, TestedPoint, TestedPoints, ToyBudget};
use super::throw::{AuxTreatment, Ensemble, ToySource};
use crate::chi_squared;
use crate::problem::Problem;
use ns_core::DataLikelihood;
use serde::Serialize;

/// Points whose asymptotic p-value is below this fraction of the smallest level are left out at
/// first.
const FAR: f64 = 0.1;

/// The number of toys in the first round at a point, times the smallest level, and the least
/// number.
const FIRST_TOYS: f64 = 10.0;
const LEAST_TOYS: f64 = 100.0;

/// A point is on one side of a contour if its p-value is this number of standard deviations away.
const SIGNIFICANT: f64 = 2.5;

/// Which region is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionSettings {
    /// The indices of the parameters.
    pub parameters: [usize; 2],
    /// The values of each parameter, ascending (A and B).
    pub values: [Vec<f64>; 2],
    /// The confidence levels of the contours.
    pub cls: Vec<f64>,
    /// The error at which a point next to a contour is known well enough, in standard deviations.
    pub tolerance: f64,
    /// The largest number of toys.
    pub max_toys: u64,
    /// The seed.
    pub seed: u64,
    /// The treatment of the auxiliary data.
    pub aux: AuxTreatment,
}

/// One point of the grid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegionPoint {
    /// The values of both parameters.
    pub values: [f64; 2],
    /// t of the data; `None` where a fit did not converge.
    pub t: Option<f64>,
    /// The fraction of toys with at least this t; `None` where none were thrown because the point
    /// is excluded by far.
    pub p_value: Option<ToyPValue>,
}

/// p-values by toys on a grid of two parameters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToyRegion {
    /// The names of the parameters.
    pub parameters: [String; 2],
    /// The values of each parameter (A and B).
    pub values: [Vec<f64>; 2],
    /// The best fit of each parameter.
    pub bestfit: [f64; 2],
    /// The confidence levels.
    #[serde(rename = "cl")]
    pub cls: Vec<f64>,
    /// The points (A·B), those of the first value of the first parameter first.
    pub points: Vec<RegionPoint>,
    /// How nuisance parameters of toys are chosen: `conditional_best_fit`.
    pub nuisance_parameters: &'static str,
    /// The wanted error of points next to a contour, in standard deviations.
    pub tolerance: f64,
    /// The treatment of the auxiliary data.
    pub aux: AuxTreatment,
    /// The seed.
    pub seed: u64,
    /// The number of toys, including failed ones.
    pub n_toys: u64,
    /// The number of toys for which a fit did not converge.
    pub n_failed: u64,
    /// Whether all fits converged and every point next to a contour is known to the tolerance.
    pub converged: bool,
    /// Whether the run was not cancelled.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// Messages to read before using the numbers.
    pub warnings: Vec<String>,
}

/// Finds p-values on a grid of two parameters by toys.
///
/// # Errors
/// If the free fit to the data does not converge, if no toys can be thrown at a point, or if the
/// accelerator fails.
pub fn region<L: DataLikelihood + Clone + Sync>(
    problem: &mut Problem<'_, L>,
    settings: &RegionSettings,
    run: &ToyRun<'_>,
) -> Result<ToyRegion, ToysError> {
    let likelihood = problem.likelihood.clone();
    let source = ToySource { seed: settings.seed, ensemble: Ensemble::Intervals, aux: settings.aux };
    let toys = ToyBudget { run: *run, max_toys: settings.max_toys };
    let mut points = TestedPoints::new(problem.reborrow(), &likelihood, &settings.parameters, source, toys);
    if !points.profiler.best().converged() {
        return Err(ToysError::Free);
    }
    let mut grid = Vec::with_capacity(settings.values[0].len() * settings.values[1].len());
    let mut is_cancelled = false;
    for &a in &settings.values[0] {
        for &b in &settings.values[1] {
            is_cancelled |= run.monitor.is_cancelled();
            if is_cancelled {
                grid.push(None);
                continue;
            }
            grid.push(match points.add(&[a, b]) {
                Ok(index) => Some(index),
                Err(ToysError::Conditional { .. }) => None,
                Err(error) => return Err(error),
            });
        }
    }
    let mut solver = RegionSolver { settings, points, grid };
    let is_complete = !is_cancelled
        && match solver.solve() {
            Ok(()) => true,
            Err(Unfinished::Cancelled) => false,
            Err(Unfinished::Failed) => return Err(ToysError::Accelerator),
        };
    Ok(solver.report(is_complete))
}

struct RegionSolver<'a, L> {
    settings: &'a RegionSettings,
    points: TestedPoints<'a, L>,
    /// The index of each point of the grid (A·B); `None` where the fit to the data did not
    /// converge.
    grid: Vec<Option<usize>>,
}

impl<L: DataLikelihood + Clone + Sync> RegionSolver<'_, L> {
    fn solve(&mut self) -> Result<(), Unfinished> {
        let first = self.first_toys();
        let search = self.search();
        let near = self.grid.iter().flatten().copied().filter(|index| self.is_near(*index));
        let mut wanted: Vec<(usize, u64)> = near.map(|index| (index, first)).collect();
        while !wanted.is_empty() {
            let more = |&(index, n): &(usize, u64)| MoreToys { index, which: 0, search, n_toys: n };
            let jobs: Vec<MoreToys> = wanted.iter().map(more).collect();
            self.points.throw(&jobs)?;
            if self.points.is_cut_short {
                break;
            }
            wanted = self.wanted();
        }
        Ok(())
    }

    /// Returns whether asymptotic formulas do not exclude a point by far.
    fn is_near(&self, index: usize) -> bool {
        chi_squared::upper_tail(self.points.observed(index), 2.0) > FAR * self.smallest_level()
    }

    fn smallest_level(&self) -> f64 {
        self.settings.cls.iter().map(|cl| 1.0 - cl).fold(1.0, f64::min)
    }

    fn first_toys(&self) -> u64 {
        (FIRST_TOYS / self.smallest_level()).max(LEAST_TOYS).ceil() as u64
    }

    /// Determines how the minima of toys are sought: at the point nearest to the best fit, and at
    /// the last one that is not far.
    fn search(&self) -> ToySearch {
        let known = self.grid.iter().flatten().copied();
        let t = |index: &usize| self.points.observed(*index);
        let nearest = known.clone().min_by(|a, b| t(a).total_cmp(&t(b)));
        let is_inside = |index: &usize| chi_squared::upper_tail(t(index), 2.0) > self.smallest_level();
        let farthest = known.filter(is_inside).max_by(|a, b| t(a).total_cmp(&t(b)));
        let searches = nearest.into_iter().chain(farthest).map(|index| self.points.search(index));
        searches.fold(ToySearch::ONE_START, |a, b| ToySearch {
            n_starts: a.n_starts.max(b.n_starts),
            explores: a.explores || b.explores,
            restarts: a.restarts || b.restarts,
        })
    }

    fn p_value(&self, index: usize) -> Option<ToyPValue> {
        (self.points.points[index].n_toys()[0] > 0).then(|| self.points.p_value(index, Tail::Both))
    }

    /// Returns the neighbours of place `at` of the grid.
    fn neighbours(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let width = self.settings.values[1].len();
        let (row, column) = (at / width, at % width);
        let left = (column > 0).then(|| at - 1);
        let right = (column + 1 < width).then(|| at + 1);
        let before = (row > 0).then(|| at - width);
        let after = (at + width < self.grid.len()).then(|| at + width);
        [left, right, before, after].into_iter().flatten().filter_map(|at| self.grid[at])
    }

    /// Returns the points that need more toys, and how many: those next to a contour until their
    /// error is small enough, and untested ones next to a point that is not excluded.
    fn wanted(&self) -> Vec<(usize, u64)> {
        let mut wanted = Vec::new();
        for (at, index) in self.grid.iter().enumerate() {
            let Some(index) = *index else { continue };
            let n_toys = match self.p_value(index) {
                None => self.neighbours(at).any(|other| self.is_inside(other)).then(|| self.first_toys()),
                Some(p) => {
                    let levels = self.settings.cls.iter().map(|cl| 1.0 - cl);
                    let missing = levels.filter(|level| self.is_next_to(at, &p, *level));
                    let missing = missing.filter(|level| p.error > self.wanted_error(*level));
                    missing.map(|level| self.more_toys(&p, level)).max()
                }
            };
            wanted.extend(n_toys.map(|n_toys| (index, n_toys)));
        }
        wanted
    }

    /// Returns whether a tested point is not clearly excluded at the largest confidence level.
    fn is_inside(&self, index: usize) -> bool {
        self.p_value(index).is_some_and(|p| p.value + SIGNIFICANT * p.error > self.smallest_level())
    }

    /// Returns whether the contour at `level` may pass next to place `at`, whose p-value is `p`.
    fn is_next_to(&self, at: usize, p: &ToyPValue, level: f64) -> bool {
        let is_uncertain = (p.value - level).abs() < SIGNIFICANT * p.error;
        let others = self.neighbours(at).filter_map(|other| self.p_value(other));
        is_uncertain || others.into_iter().any(|other| (other.value > level) != (p.value > level))
    }

    /// Returns the error of a p-value near `level` that moves a contour by the tolerance, if the
    /// p-value is exp(-r²/2) at r standard deviations.
    fn wanted_error(&self, level: f64) -> f64 {
        self.settings.tolerance * level * (-2.0 * level.ln()).sqrt()
    }

    /// Returns how many more toys bring the error of `p` down to what is wanted, at most as many as
    /// there are.
    fn more_toys(&self, p: &ToyPValue, level: f64) -> u64 {
        let factor = (p.error / self.wanted_error(level)).powi(2) - 1.0;
        let n_toys = p.n_toys as f64;
        (1.05 * factor * n_toys).clamp(1.0, n_toys).ceil() as u64
    }

    fn report(self, is_complete: bool) -> ToyRegion {
        let RegionSettings { parameters, values, cls, tolerance, max_toys, seed, aux } = self.settings.clone();
        let model = self.points.profiler.model();
        let best = self.points.profiler.best().params.clone();
        let points: Vec<RegionPoint> = self
            .grid
            .iter()
            .enumerate()
            .map(|(at, index)| RegionPoint {
                values: [values[0][at / values[1].len()], values[1][at % values[1].len()]],
                t: index.map(|index| self.points.observed(index)),
                p_value: index.and_then(|index| self.p_value(index)),
            })
            .collect();
        let (n_toys, n_failed) =
            (self.points.jobs.n_thrown, self.points.points.iter().map(TestedPoint::n_failed).sum::<u64>());
        let has_p_value = |index: usize| self.p_value(index).is_some_and(|p| p.n_toys > 0);
        let near = self.grid.iter().flatten().copied().filter(|index| self.is_near(*index));
        let n_untested = near.filter(|index| !has_p_value(*index)).count();
        let is_precise = !is_complete || (n_untested == 0 && !self.points.is_cut_short && self.wanted().is_empty());
        let n_missing = points.iter().filter(|point| point.t.is_none()).count();
        let mut warnings = Vec::new();
        if !is_complete {
            warnings.push(format!("interrupted after {n_toys} toys; the p-values are not final"));
        }
        if !is_precise {
            warnings.push(format!(
                "points next to a contour have errors above {tolerance} standard deviations after {n_toys} of at most {max_toys} toys"
            ));
        }
        if n_untested > 0 && is_complete {
            warnings.push(format!(
                "{n_untested} of {} points have no p-value, although asymptotic formulas do not exclude them by far",
                points.len()
            ));
        }
        if n_missing > 0 && is_complete {
            warnings.push(format!("the fits to the data at {n_missing} of {} points did not converge", points.len()));
        }
        if n_failed > 0 {
            warnings
                .push(format!("the fits of {n_failed} of {n_toys} toys did not converge; the p-values exclude them"));
        }
        ToyRegion {
            parameters: parameters.map(|i| model.parameters.names[i].clone()),
            bestfit: parameters.map(|i| best[i]),
            values,
            cls,
            nuisance_parameters: "conditional_best_fit",
            tolerance,
            aux,
            seed,
            n_toys,
            n_failed,
            converged: is_complete && is_precise && n_missing == 0 && n_failed == 0,
            is_complete,
            warnings,
            points,
        }
    }
}
