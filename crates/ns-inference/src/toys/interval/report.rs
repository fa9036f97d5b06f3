//! Makes the result of an interval by toys: its regions, what is unclear, and warnings.

use super::search::{EndSearch, IntervalSolver, Side};
use super::{AcceptedRegion, IntervalEnd, IntervalPoint, IntervalSettings, ToyInterval};
use crate::result::PoiBestFit;
use crate::toys::tested_points::TestedPoint;
use ns_core::DataLikelihood;

/// What toys say about the end of the range, if the outermost region has no other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeEnd {
    /// They accept it.
    Accepted,
    /// They accept it, but not significantly.
    Undecided,
    /// Nothing: values short of it are the last ones with toys.
    Untested,
}

impl<L: DataLikelihood + Clone + Sync> IntervalSolver<'_, L> {
    /// Returns the ends on side `k`, outwards: the crossings, and the end of the range if the last
    /// region reaches it.
    fn ends(&self, k: usize) -> Vec<IntervalEnd> {
        let side = &self.sides[k];
        let end = |end: &EndSearch| {
            let value = self.value(k, end.search.x.abs());
            IntervalEnd { value: Some(value), error: Some(end.search.error), at_bound: false }
        };
        let mut ends: Vec<IntervalEnd> = side.ends.iter().map(end).collect();
        ends.extend(self.range_end(k).map(|end| {
            let at_bound = end != RangeEnd::Untested;
            IntervalEnd { value: at_bound.then(|| self.value(k, side.limit)), error: None, at_bound }
        }));
        ends
    }

    /// Returns what is known of the end of the range on side `k`; `None` if the outermost region
    /// ends before.
    fn range_end(&self, k: usize) -> Option<RangeEnd> {
        let side = &self.sides[k];
        if side.accepts_best != side.ends.len().is_multiple_of(2) {
            return None;
        }
        if side.points.is_empty() && side.limit <= 0.0 {
            // A test of both tails accepts the best fit.
            return Some(RangeEnd::Accepted);
        }
        let last = self.estimates(k).pop().filter(|last| last.x >= side.limit);
        Some(match last.map(|last| last.side(side.level)) {
            None => RangeEnd::Untested,
            Some(Some(true)) => RangeEnd::Accepted,
            Some(_) => RangeEnd::Undecided,
        })
    }

    /// Returns a warning for each end of the range that may or may not be accepted.
    fn unclear_ends(&self) -> Vec<String> {
        let sides = (0..self.sides.len()).filter(|_| self.has_ends);
        let warning = |k: usize| {
            let name = if self.sides[k].sign > 0.0 { "upper" } else { "lower" };
            let bound = self.value(k, self.sides[k].limit);
            match self.range_end(k)? {
                RangeEnd::Accepted => None,
                RangeEnd::Undecided => {
                    Some(format!("toys accept {bound}, the {name} end of the range, but not significantly"))
                }
                RangeEnd::Untested => Some(match self.estimates(k).last() {
                    Some(last) => {
                        let last = self.value(k, last.x);
                        format!("the {name} end is unknown: {last} is accepted, and no value beyond it was tested")
                    }
                    None => format!("the {name} end is unknown: no value on that side was tested"),
                }),
            }
        };
        sides.filter_map(warning).collect()
    }

    /// Returns the accepted regions, ascending.
    fn regions(&self) -> Vec<AcceptedRegion> {
        let above = self.sides.iter().position(|side| side.sign > 0.0).filter(|_| self.has_ends);
        let Some(above) = above else { return Vec::new() };
        let (mut up, below) = (self.ends(above), self.sides.iter().position(|side| side.sign < 0.0));
        let none = IntervalEnd { value: None, error: None, at_bound: false };
        let mut down = below.map_or_else(|| vec![none], |below| self.ends(below));
        if !self.sides.iter().all(|side| side.accepts_best) {
            // Each side has its own test of the best fit, and one that excludes it has no end
            // there.
            down.clear();
        }
        // Ends alternate from one side to the other.
        down.reverse();
        down.append(&mut up);
        let pair = |pair: &[IntervalEnd]| AcceptedRegion { lower: pair[0], upper: pair[1] };
        down.chunks_exact(2).map(pair).collect()
    }

    pub(super) fn report(self, is_complete: bool) -> ToyInterval {
        let IntervalSettings { construction, poi, cl, tolerance, seed, aux, .. } = self.settings;
        let regions = self.regions();
        let model = self.points.profiler.model();
        let asymptotic = |sign: f64| {
            let side = self.sides.iter().find(|side| side.sign == sign)?;
            side.asymptotic.map(|distance| self.best + sign * distance)
        };
        let domain = self.points.profiler.domain();
        let is_known = |side: &Side| side.ends.iter().all(|end| end.search.error <= tolerance * side.unit());
        let is_precise = !self.is_scan_cut_short && self.sides.iter().all(is_known);
        let unclear = self.unclear_ends();
        let n_failed = self.points.points.iter().map(TestedPoint::n_failed).sum();
        let point = |k: usize, &(_, index): &(f64, usize)| IntervalPoint {
            value: self.points.points[index].values[0].1,
            t: self.points.observed(index),
            p_value: self.points.p_value(index, self.sides[k].tail),
        };
        let points = (0..self.sides.len()).flat_map(|k| self.sides[k].points.iter().map(move |p| (k, p)));
        let mut tested: Vec<IntervalPoint> = points.map(|(k, p)| point(k, p)).collect();
        tested.sort_by(|a, b| a.value.total_cmp(&b.value));
        ToyInterval {
            poi: PoiBestFit { name: model.parameters.names[poi].clone(), index: poi, bestfit: Some(self.best) },
            construction,
            cl,
            lower: regions.first().map(|region| region.lower),
            upper: regions.last().map(|region| region.upper),
            asymptotic: [asymptotic(-1.0), asymptotic(1.0)],
            range: [domain.lower[poi], domain.upper[poi]],
            nuisance_parameters: "conditional_best_fit",
            tolerance,
            aux,
            seed,
            n_toys: self.points.jobs.n_thrown,
            n_failed,
            converged: is_complete && is_precise && unclear.is_empty() && n_failed == 0,
            is_complete,
            warnings: self.warnings(&regions, is_complete, is_precise, n_failed, unclear),
            regions,
            tested,
        }
    }

    fn warnings(
        &self,
        regions: &[AcceptedRegion],
        is_complete: bool,
        is_precise: bool,
        n_failed: u64,
        unclear: Vec<String>,
    ) -> Vec<String> {
        let IntervalSettings { tolerance, max_toys, .. } = self.settings;
        let n_toys = self.points.jobs.n_thrown;
        let mut warnings = Vec::new();
        if !is_complete {
            warnings.push(format!("interrupted after {n_toys} toys; the ends are not final"));
        } else if !is_precise {
            warnings.push(format!(
                "the error of an end is above {tolerance} standard deviations after {n_toys} of at most {max_toys} toys"
            ));
        }
        warnings.extend(unclear);
        match regions {
            [] if !is_complete => {}
            [] => warnings.push("the test excludes every value, so the interval is empty".to_owned()),
            [_] => {}
            _ => warnings
                .push(format!("values inside the interval are excluded: there are {} accepted regions", regions.len())),
        }
        if n_failed > 0 {
            warnings
                .push(format!("the fits of {n_failed} of {n_toys} toys did not converge; the p-values exclude them"));
        }
        warnings
    }
}
