//! Scans of two parameters: rows are lines of their own, shared among threads, and then compared
//! with their neighbours.

use super::sweep::Sweep;
use super::{Minima, ROUNDS, Scan, ScanAxis, Verdict, assemble, keep_lower, range};
use crate::accelerator::WarmStarts;
use crate::minimize::{Domain, Minimum};
use crate::monitor::WithoutProgress;
use crate::options::FitOptions;
use crate::parallel::{self, ExecutionContext, WorkPart};
use crate::problem::Problem;
use crate::profile::Profiler;
use crate::response::Response;
use crate::search::{BasinPool, is_better_end, lowest_of};
use ns_core::{Model, SearchLikelihood};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// Everything that the rows share; nothing in it changes while they are worked on.
struct Shared<'a, L> {
    model: &'a Model,
    likelihood: &'a L,
    options: &'a FitOptions,
    parameters: [usize; 2],
    values: [Vec<f64>; 2],
    best: Minimum,
    /// Minima beside the lowest, from which every row starts too.
    pool: BasinPool,
    /// Of the first parameter, and of both.
    first: Response,
    both: Response,
    /// Where an accelerator has found the minima of the points.
    warm_starts: Arc<WarmStarts>,
    execution: ExecutionContext<'a>,
}

/// What one row found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Row {
    minima: Minima,
    /// A free minimum that is lower than the one that was known.
    lower: Option<Minimum>,
    seen: Seen,
}

/// What the searches of rows have met.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct Seen {
    several_minima: bool,
    /// Whether one was cut short.
    cut_short: bool,
}

/// Some rows of a grid round its first free minimum, made elsewhere; for [`super::grid_of_parts`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GridPart {
    /// The first of the rows.
    first: usize,
    rows: Vec<Row>,
}

pub(super) fn part<L: SearchLikelihood + Clone + Sync>(
    problem: &Problem<'_, L>,
    axes: [&ScanAxis; 2],
    part: WorkPart,
    execution: ExecutionContext<'_>,
) -> GridPart {
    let mut own = problem.likelihood.clone();
    let mut profiler = Profiler::new(problem.model, &mut own, problem.options);
    let best = profiler.best_fit();
    let values = axes.map(|axis| range::resolve(&mut profiler, axis, &best));
    let n_rows = if best.nll.is_finite() { values[0].len() } else { 0 };
    let Range { start: first, end } = part.of(n_rows);
    let shared = Shared::new(problem, &mut profiler, axes, &values, execution);
    let rows = shared.map(end - first, execution, |profiler, j| shared.row(profiler, first + j));
    GridPart { first, rows: rows.into_iter().map_while(|row| row).collect() }
}

pub(super) fn grid<L: SearchLikelihood + Clone + Sync>(
    problem: &Problem<'_, L>,
    axes: [&ScanAxis; 2],
    mut parts: &[GridPart],
    execution: ExecutionContext<'_>,
) -> Scan {
    let mut own = problem.likelihood.clone();
    let mut profiler = Profiler::new(problem.model, &mut own, problem.options);
    let best = profiler.best_fit();
    let values = axes.map(|axis| range::resolve(&mut profiler, axis, &best));
    let mut minima: Minima = vec![None; values[0].len() * values[1].len()];
    let mut seen = Seen::default();
    for _ in 0..ROUNDS {
        let best = profiler.best_fit();
        if !best.nll.is_finite() {
            break;
        }
        let shared = Shared::new(problem, &mut profiler, axes, &values, execution);
        let (found, lower) = shared.round(parts, &mut seen);
        // Of another minimum than the one of the next round.
        parts = &[];
        keep_lower(&mut minima, found);
        let Some(lower) = lower else { break };
        let known = profiler.best().nll;
        profiler.try_from_point(&lower.params);
        if profiler.best().nll == known || execution.monitor.is_cancelled() {
            break;
        }
    }
    let best = profiler.best_fit();
    let [a, b] = axes.map(|axis| axis.parameter);
    let [values_a, values_b] = values;
    profiler.note_cut_short(seen.cut_short);
    let verdict = Verdict { has_several_minima: seen.several_minima, warnings: profiler.search_warnings() };
    assemble(problem.model, &[(a, values_a), (b, values_b)], best, &minima, verdict)
}

impl<'a, L: SearchLikelihood + Clone + Sync> Shared<'a, L> {
    /// Prepares a scan round the free minimum that `profiler` knows.
    fn new(
        problem: &'a Problem<'_, L>,
        profiler: &mut Profiler<'_, L>,
        axes: [&ScanAxis; 2],
        values: &[Vec<f64>; 2],
        execution: ExecutionContext<'a>,
    ) -> Self {
        let Problem { model, ref likelihood, options } = *problem;
        let domain = profiler.domain().clone();
        let parameters = axes.map(|axis| axis.parameter);
        let best = profiler.best().clone();
        let mut respond = |moved: &[usize]| Response::at(model, profiler.likelihood(), &domain, &best.params, moved);
        let (first, both) = (respond(&parameters[..1]), respond(&parameters));
        let mut shared = Self {
            model,
            likelihood,
            options,
            parameters,
            values: values.clone(),
            best,
            pool: profiler.pool().clone(),
            first,
            both,
            warm_starts: Arc::default(),
            execution,
        };
        shared.warm_starts = Arc::new(shared.prefit(&domain));
        shared
    }

    /// Returns the minima of all points that an accelerator finds, if there is one.
    fn prefit(&self, domain: &Domain) -> WarmStarts {
        let Some(fitter) = self.execution.batch_fitter else { return WarmStarts::default() };
        let [a, b] = self.parameters;
        let point = |x: f64, y: f64| (vec![(a, x), (b, y)], self.both.moved(&self.best.params, &[x, y]));
        let points = self.values[0].iter().flat_map(|&x| self.values[1].iter().map(move |&y| point(x, y)));
        fitter.conditional(domain, points, self.execution.monitor)
    }

    /// Returns all rows, those of `parts` as they are, compared with their neighbours until nothing
    /// changes; and the lowest free minimum met, if it is lower than the known one.
    fn round(&self, parts: &[GridPart], seen: &mut Seen) -> (Minima, Option<Minimum>) {
        let (n_rows, width) = (self.values[0].len(), self.values[1].len());
        let known = |j: usize| parts.iter().find_map(|part| part.rows.get(j.checked_sub(part.first)?));
        let mut rows = self.map(n_rows, self.execution, |profiler, j| match known(j) {
            Some(_) => Minima::new(),
            None => self.row(profiler, j),
        });
        for (j, row) in rows.iter_mut().enumerate() {
            if let Some(known) = known(j).filter(|_| row.is_some()) {
                *row = Some(known.clone());
            }
        }
        let mut lower = note(&rows, seen);
        let mut minima: Minima = Vec::with_capacity(n_rows * width);
        rows.iter_mut().for_each(|row| minima.extend(row.take().map_or_else(|| vec![None; width], |row| row.minima)));
        let mut is_new = vec![true; minima.len()];
        for _ in 0..n_rows {
            if lower.is_some() || self.execution.monitor.is_cancelled() || !is_new.contains(&true) {
                break;
            }
            let quiet = WithoutProgress(self.execution.monitor);
            let execution = ExecutionContext { monitor: &quiet, ..self.execution };
            let mut better = self.map(n_rows, execution, |profiler, j| self.compare(profiler, &minima, &is_new, j));
            lower = note(&better, seen);
            is_new.fill(false);
            for (j, row) in better.iter_mut().enumerate() {
                let found = row.take().map_or_else(Vec::new, |row| row.minima);
                for (k, minimum) in found.into_iter().enumerate().filter(|(_, minimum)| minimum.is_some()) {
                    minima[j * width + k] = minimum;
                    is_new[j * width + k] = true;
                }
            }
        }
        (minima, lower)
    }

    /// Computes rows on all threads, each with a profiler of its own.
    fn map(
        &self,
        n_rows: usize,
        execution: ExecutionContext<'_>,
        work: impl Fn(&mut Profiler<'_, L>, usize) -> Minima + Sync,
    ) -> Vec<Option<Row>> {
        let make = || self.likelihood.clone();
        parallel::map(n_rows, execution, make, |likelihood, j| {
            let around = Profiler::around(self.model, likelihood, self.options, &self.best);
            let mut profiler = around.with_pool(&self.pool);
            profiler.warm_start(&self.warm_starts);
            let minima = work(&mut profiler, j);
            let lower = profiler.lower_than(&self.best);
            let seen = Seen { several_minima: profiler.has_several_minima(), cut_short: profiler.is_cut_short() };
            Row { minima, lower, seen }
        })
    }

    fn sweep<'s>(&'s self, fixed: &'s [(usize, f64)]) -> Sweep<'s> {
        Sweep {
            fixed,
            parameter: self.parameters[1],
            values: &self.values[1],
            response: &self.both,
            execution: self.execution,
        }
    }

    /// Computes row `j`: its own minimum, and from there to both sides.
    fn row(&self, profiler: &mut Profiler<'_, L>, j: usize) -> Minima {
        let fixed = [(self.parameters[0], self.values[0][j])];
        let predicted = self.first.moved(&self.best.params, &[fixed[0].1]);
        let center = profiler.at_from(&fixed, std::slice::from_ref(&predicted));
        self.sweep(&fixed).run(profiler, if center.converged() { &center.params } else { &predicted })
    }

    /// Returns the points of row `j` that are lower from a point above or below them that is new,
    /// and leads elsewhere.
    fn compare(&self, profiler: &mut Profiler<'_, L>, minima: &Minima, is_new: &[bool], j: usize) -> Minima {
        let width = self.values[1].len();
        let fixed = [(self.parameters[0], self.values[0][j])];
        let sweep = self.sweep(&fixed);
        let mut found: Minima = vec![None; width];
        let rows = [j.checked_sub(1), Some(j + 1).filter(|&next| next < self.values[0].len())];
        for (k, &value) in self.values[1].iter().enumerate() {
            for row in rows.into_iter().flatten().filter(|row| is_new[row * width + k]) {
                let Some(neighbour) = minima[row * width + k].as_ref().filter(|m| m.converged()) else { continue };
                let Some(known) = found[k].as_ref().or(minima[j * width + k].as_ref()) else { continue };
                let start = sweep.moved(&neighbour.params, value);
                if known.converged() && self.both.is_same(&start, &known.params) {
                    continue;
                }
                let other = profiler.at_from(&sweep.fixed_at(value), &[start]);
                if is_better_end(&other, known) {
                    found[k] = Some(other);
                }
            }
        }
        found
    }
}

/// Returns the lowest of the free minima that rows met, the first one of equals.
fn note(rows: &[Option<Row>], seen: &mut Seen) -> Option<Minimum> {
    seen.several_minima |= rows.iter().flatten().any(|row| row.seen.several_minima);
    seen.cut_short |= rows.iter().flatten().any(|row| row.seen.cut_short);
    let lower = rows.iter().flatten().filter_map(|row| row.lower.as_ref());
    lowest_of(lower, |minimum| minimum.nll).cloned()
}
