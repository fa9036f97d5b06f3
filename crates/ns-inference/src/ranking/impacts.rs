//! The refits of one nuisance parameter, each started where the covariance points to.

use super::{Covariance, Impact, Impacts, RankingOptions};
use crate::accelerator::WarmStarts;
use crate::hessian::Hessian;
use crate::minimize::{Domain, Minimum};
use crate::minos::{self, MinosProfile, MinosRequest};
use crate::options::FitOptions;
use crate::parallel::ExecutionContext;
use crate::problem::Problem;
use crate::profile::Profiler;
use crate::pulls::prefit_widths;
use crate::result::{BestFit, MinosInterval, ONE_SIGMA};
use crate::search::{BasinPool, Candidates, Search, is_better_end};
use ns_core::{Data, DataLikelihood, Model};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A conditional minimum this much higher than a parabola's may be the wrong one of several: it is
/// looked for from elsewhere, too.
const STEEP: f64 = 1.02;

/// What the work on all parameters shares; nothing in it changes meanwhile.
pub(super) struct Plan<'a> {
    pub(super) model: &'a Model,
    pub(super) data: &'a Data,
    pub(super) options: &'a RankingOptions,
    /// How each fit is done.
    pub(super) fit: &'a FitOptions,
    pub(super) minimum: Minimum,
    pub(super) best: BestFit,
    /// Minima beside the lowest, from which every refit starts too.
    pub(super) pool: BasinPool,
    pub(super) domain: Domain,
    pub(super) candidates: Candidates,
    pub(super) covariance: Covariance,
    /// Where an accelerator has found the minima of the classic refits.
    pub(super) warm_starts: Arc<WarmStarts>,
}

/// Where a parameter is fixed, and how far that is along its column of the covariance.
struct Refit {
    at: f64,
    step: f64,
}

/// What was done for one parameter.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) minos: Option<MinosInterval>,
    pub(super) prefit: Option<Impacts>,
    pub(super) postfit: Option<Impacts>,
    pub(super) global: Option<Impacts>,
    /// A free minimum that is lower than the known one.
    pub(super) lower: Option<Minimum>,
    /// Whether a search for lower minima was cut short.
    pub(super) is_cut_short: bool,
}

impl<'a> Plan<'a> {
    /// Returns the plan round the best fit that `profiler` knows.
    pub(super) fn new<L: DataLikelihood>(
        problem: &'a Problem<'_, L>,
        options: &'a RankingOptions,
        profiler: &mut Profiler<'_, L>,
    ) -> Self {
        let (model, data, fit) = (problem.model, problem.data(), problem.options);
        let best = profiler.best_fit();
        let domain = profiler.domain().clone();
        let candidates = profiler.search().candidates.clone();
        let covariance = Covariance::new(profiler, &best, options.poi);
        let (minimum, pool) = (profiler.best().clone(), profiler.pool().clone());
        Self {
            model,
            data,
            fit,
            options,
            minimum,
            best,
            pool,
            domain,
            candidates,
            covariance,
            warm_starts: Arc::default(),
        }
    }

    /// Lets an accelerator find the minima of the classic refits, for the host to start from.
    pub(super) fn prefitted(mut self, execution: ExecutionContext<'_>) -> Self {
        let Some(fitter) = execution.batch_fitter.filter(|_| self.options.methods.classic) else { return self };
        let points = (0..self.n_works()).flat_map(|k| {
            let i = self.covariance.nuisances[k];
            let best = self.best.params[i];
            let widths = [self.best.uncertainties[i].map(|sigma| [sigma; 2]), prefit_widths(self.model, self.data, i)];
            let ends = widths.into_iter().flatten().flat_map(|[down, up]| [best - down, best + up]);
            let point = |wanted| {
                let Refit { at, step } = self.refit_at(k, i, wanted);
                (vec![(i, at)], self.predicted(&self.covariance.columns[k], step))
            };
            ends.map(point).collect::<Vec<_>>()
        });
        self.warm_starts = Arc::new(fitter.conditional(&self.domain, points, execution.monitor));
        self
    }

    /// Returns where parameter `i`, the `k`-th nuisance, is fixed when it should be at `wanted`.
    fn refit_at(&self, k: usize, i: usize, wanted: f64) -> Refit {
        let at = wanted.clamp(self.domain.lower[i], self.domain.upper[i]);
        let variance = self.covariance.columns[k][i];
        Refit { at, step: if variance > 0.0 { (at - self.best.params[i]) / variance } else { 0.0 } }
    }

    /// Returns how many parameters there is work on.
    pub(super) fn n_works(&self) -> usize {
        if self.best.converged { self.covariance.nuisances.len() } else { 0 }
    }

    /// Computes everything that is wanted of the `k`-th nuisance parameter.
    pub(super) fn work<L: DataLikelihood>(&self, likelihood: &mut L, k: usize) -> Work {
        let i = self.covariance.nuisances[k];
        let mut work = Work::default();
        if self.options.methods.classic {
            self.classic(likelihood, k, i, &mut work);
        }
        if self.options.methods.global {
            work.global = self.global(likelihood, k, i);
        }
        work
    }

    fn classic<L: DataLikelihood>(&self, likelihood: &mut L, k: usize, i: usize, work: &mut Work) {
        let best = self.best.params[i];
        let mut ends = self.best.uncertainties[i].map(|sigma| [best - sigma, best + sigma]);
        if self.options.minos {
            match self.interval(likelihood, i) {
                Some(MinosProfile::Interval(interval)) => {
                    let open = [f64::NEG_INFINITY, f64::INFINITY];
                    let [down, up] = [interval.down, interval.up].map(|end| end.map(|end| best + end));
                    ends = Some([down.unwrap_or(open[0]), up.unwrap_or(open[1])]);
                    work.minos = Some(interval);
                }
                Some(MinosProfile::LowerMinimum(params)) => {
                    let mut profiler = Profiler::around(self.model, likelihood, self.fit, &self.minimum);
                    profiler.try_from_point(&params);
                    work.lower = profiler.lower_than(&self.minimum);
                }
                None => {}
            }
        }
        let around = Profiler::around(self.model, likelihood, self.fit, &self.minimum);
        let mut profiler = around.with_pool(&self.pool);
        profiler.warm_start(&self.warm_starts);
        work.postfit = ends.map(|ends| self.refits(&mut profiler, k, i, ends));
        let widths = prefit_widths(self.model, self.data, i);
        work.prefit =
            widths.map(|[down, up]| [best - down, best + up]).map(|ends| self.refits(&mut profiler, k, i, ends));
        work.lower = work.lower.take().or_else(|| profiler.lower_than(&self.minimum));
        work.is_cut_short = profiler.is_cut_short();
    }

    fn interval<L: DataLikelihood>(&self, likelihood: &mut L, i: usize) -> Option<MinosProfile> {
        let mut search = Search::new(likelihood, self.domain.clone(), self.candidates.clone(), self.fit.minimize);
        let mut hessian = Hessian::at(search.likelihood, &self.minimum.params, &search.domain);
        let around = MinosRequest { best: &self.minimum, pool: &self.pool, parameter: i, cl: ONE_SIGMA };
        Some(minos::interval(&mut search, &self.model.parameters, around, &mut hessian))
    }

    fn refits<L: DataLikelihood>(
        &self,
        profiler: &mut Profiler<'_, L>,
        k: usize,
        i: usize,
        [down, up]: [f64; 2],
    ) -> Impacts {
        let mut refit = |wanted: f64| {
            let Refit { at, step } = self.refit_at(k, i, wanted);
            let predicted = self.predicted(&self.covariance.columns[k], step);
            let mut minimum = profiler.at_from(&[(i, at)], &[predicted]);
            // ½ (θ - θ̂)²/C_θθ
            let parabola = 0.5 * step * (at - self.best.params[i]);
            let rise = minimum.nll - self.minimum.nll;
            if rise > STEEP * parabola {
                let other = profiler.at_from(&[(i, at)], &[profiler.start().to_vec()]);
                minimum = if is_better_end(&other, &minimum) { other } else { minimum };
            }
            self.impact(&minimum, at, at != wanted)
        };
        Impacts { down: refit(down), up: refit(up) }
    }

    fn predicted(&self, column: &[f64], step: f64) -> Vec<f64> {
        self.best.params.iter().zip(column).map(|(x, c)| x + step * c).collect()
    }

    fn impact(&self, minimum: &Minimum, at: f64, clipped: bool) -> Impact {
        let poi = self.options.poi;
        let impact = minimum.converged().then(|| minimum.params[poi] - self.best.params[poi]);
        Impact { impact, at, clipped, outcome: minimum.outcome }
    }

    /// Computes impacts by free fits with the auxiliary datum of parameter `i` moved by the
    /// standard deviation that it has at the best fit ([`ns_core::Constraint::datum_interval`]): σ
    /// for a Gaussian, √(τθ̂) for a count.
    fn global<L: DataLikelihood>(&self, likelihood: &mut L, k: usize, i: usize) -> Option<Impacts> {
        let constraint = self.model.parameters.constraint[i]?;
        let term = self.model.parameters.aux_index[i]?;
        let (theta, observed) = (self.best.params[i], self.data.aux[term]);
        let [down, up] = constraint.datum_interval(observed, theta);
        let (least, per_datum) = (constraint.least_datum(), constraint.datum_weight(observed, theta));
        let mut data = self.data.clone();
        let mut refit = |wanted: f64| {
            let at = wanted.max(least);
            data.aux[term] = at;
            likelihood.set_data(&data);
            let mut search =
                Search::new(&mut *likelihood, self.domain.clone(), self.candidates.clone(), self.fit.minimize);
            // The datum enters the derivative of -ln L by -per_datum, and the minimum answers along
            // the covariance.
            let step = (at - observed) * per_datum;
            let start = self.predicted(&self.covariance.columns[k], if step.is_finite() { step } else { 0.0 });
            self.impact(&search.lowest_from(&start, &self.pool), at, at != wanted)
        };
        let impacts = Impacts { down: refit(down), up: refit(up) };
        likelihood.set_data(self.data);
        Some(impacts)
    }
}
