//! One line of a scan: from its minimum outwards to both sides, and back.

use super::Minima;
use crate::minimize::Minimum;
use crate::parallel::ExecutionContext;
use crate::profile::Profiler;
use crate::response::Response;
use crate::search::is_better_end;
use ns_core::SearchLikelihood;

/// A secant needs points that are not much closer to each other than the next one is.
const SECANT: f64 = 0.2;

/// Values of one parameter, while others are fixed.
pub(super) struct Sweep<'a> {
    /// Parameters that are fixed all along, with their values; none or one.
    pub(super) fixed: &'a [(usize, f64)],
    /// The parameter that moves.
    pub(super) parameter: usize,
    /// Where to, in any order.
    pub(super) values: &'a [f64],
    /// Of `fixed` and then `parameter`.
    pub(super) response: &'a Response,
    pub(super) execution: ExecutionContext<'a>,
}

/// A place of the line where the conditional minimum is known.
#[derive(Clone, Copy)]
struct Known<'a> {
    value: f64,
    params: &'a [f64],
}

impl Sweep<'_> {
    /// Returns the conditional minima along the line whose own minimum is at `center` (P). Stops
    /// early when it is cancelled or the profiler finds a lower free minimum.
    pub(super) fn run<L: SearchLikelihood + ?Sized>(&self, profiler: &mut Profiler<'_, L>, center: &[f64]) -> Minima {
        let mut minima: Minima = vec![None; self.values.len()];
        let middle = center[self.parameter];
        let mut order: Vec<usize> = (0..self.values.len()).collect();
        order.sort_by(|&a, &b| self.values[a].total_cmp(&self.values[b]));
        let (mut below, above): (Vec<usize>, Vec<usize>) = order.iter().partition(|&&k| self.values[k] < middle);
        below.reverse();
        let best = profiler.best().nll;
        for side in [below, above] {
            self.outwards(profiler, center, &side, &mut minima);
            self.inwards(profiler, &side, &mut minima);
            if profiler.best().nll != best {
                break;
            }
        }
        minima
    }

    /// Returns the parameters to fix for `value`.
    pub(super) fn fixed_at(&self, value: f64) -> Vec<(usize, f64)> {
        self.fixed.iter().copied().chain([(self.parameter, value)]).collect()
    }

    /// Returns where `value` should lead from a conditional minimum `from`, with the same
    /// parameters fixed.
    pub(super) fn moved(&self, from: &[f64], value: f64) -> Vec<f64> {
        let values: Vec<f64> = self.fixed.iter().map(|&(_, value)| value).chain([value]).collect();
        self.response.moved(from, &values)
    }

    fn outwards<L: SearchLikelihood + ?Sized>(
        &self,
        profiler: &mut Profiler<'_, L>,
        center: &[f64],
        side: &[usize],
        minima: &mut Minima,
    ) {
        let best = profiler.best().nll;
        let mut last = Known { value: center[self.parameter], params: center };
        let mut before: Option<Known<'_>> = None;
        let mut found: Vec<(usize, Minimum)> = Vec::with_capacity(side.len());
        for &k in side {
            if self.execution.monitor.is_cancelled() || profiler.best().nll != best {
                break;
            }
            let mut starts = vec![self.predict(last, before, self.values[k])];
            let fixed = self.fixed_at(self.values[k]);
            let minimum = if side.last() == Some(&k) {
                // A branch that no neighbour leads to: the fits of the way back start on it for as
                // long as it is the lower one.
                starts.push(profiler.start().to_vec());
                profiler.at_end(&fixed, &starts)
            } else {
                profiler.at_from(&fixed, &starts)
            };
            found.push((k, minimum));
            let converged: Vec<Known<'_>> = found
                .iter()
                .rev()
                .filter(|(_, m)| m.converged())
                .take(2)
                .map(|(k, m)| Known { value: self.values[*k], params: &m.params })
                .collect();
            let middle = Known { value: center[self.parameter], params: center };
            last = *converged.first().unwrap_or(&middle);
            before = converged.get(1).copied().or_else(|| converged.first().map(|_| middle));
            if self.fixed.is_empty() {
                self.execution.monitor.progress(minima.iter().flatten().count() + found.len(), minima.len());
            }
        }
        for (k, minimum) in found {
            minima[k] = Some(minimum);
        }
    }

    /// Predicts along the last two points, or if those are too close to each other, along the
    /// covariance.
    fn predict(&self, last: Known<'_>, before: Option<Known<'_>>, value: f64) -> Vec<f64> {
        let (gone, step) = (last.value - before.map_or(last.value, |b| b.value), value - last.value);
        let Some(before) = before.filter(|_| gone.abs() > SECANT * step.abs()) else {
            return self.moved(last.params, value);
        };
        let ratio = step / gone;
        last.params.iter().zip(before.params).map(|(l, b)| l + ratio * (l - b)).collect()
    }

    /// Tries each point again from its outer neighbour, where that leads elsewhere.
    fn inwards<L: SearchLikelihood + ?Sized>(
        &self,
        profiler: &mut Profiler<'_, L>,
        side: &[usize],
        minima: &mut Minima,
    ) {
        for pair in side.windows(2).rev() {
            let (inner, outer) = (pair[0], pair[1]);
            let (Some(known), Some(neighbour)) = (&minima[inner], &minima[outer]) else { continue };
            if !neighbour.converged() {
                continue;
            }
            let value = self.values[inner];
            let start = self.moved(&neighbour.params, value);
            if known.converged() && self.response.is_same(&start, &known.params) {
                continue;
            }
            let other = profiler.at_from(&self.fixed_at(value), &[start]);
            if is_better_end(&other, known) {
                minima[inner] = Some(other);
            }
        }
    }
}
