//! Confidence intervals by toys: the values of a parameter that a test with toys accepts.
//!
//! The construction is that of Neyman with the profile likelihood ratio, G. J. Feldman and R. D.
//! Cousins, Phys. Rev. D 57 (1998) 3873: a value is accepted if at least a fraction 1 - CL of the
//! toys thrown there are as extreme as the data. Nuisance parameters are at their conditional best
//! fits to the data, and each toy is fitted. Values are tested outwards from the best fit, first a
//! few with few toys, then more and more near each crossing of the level (`crossing`).

use super::crossing::{CrossingSearch, Estimate};
use super::hypotest::ToysError;
use super::jobs::{Stop, Unfinished};
use super::p_value::ToyPValue;
use super::pilot::ToySearch;
use super::run::ToyRun;
use super::tested_points::{MoreToys, Tail, TestedPoint, TestedPoints, ToyBudget};
use super::throw::{AuxTreatment, Ensemble, ToySource};
use crate::normal::{density, significance};
use crate::problem::Problem;
use crate::result::PoiBestFit;
use crate::root::{Root, RootInterval, increasing};
use ns_core::DataLikelihood;
use serde::Serialize;

/// The values of the first round, in units of the distance to the asymptotic end.
const FIRST: [f64; 7] = [0.25, 0.5, 0.75, 0.9, 1.1, 1.3, 1.6];

/// The same in units of the distance to the end of the range, if the asymptotic interval ends
/// there.
const TO_BOUND: [f64; 4] = [0.25, 0.5, 0.75, 1.0];

/// The factor from a value that is not clearly excluded to the next one, and the largest number of
/// such values.
const OUTWARDS: f64 = 1.25;
const MOST_OUTWARDS: usize = 16;

/// Beyond the values that toys exclude, t_μ of the data is computed at distances in this ratio, up
/// to so many times the distance to the asymptotic end. Where √t_μ is within this of the asymptotic
/// height, toys are thrown, too.
const FAR_RATIO: f64 = 1.15;
const FARTHEST: f64 = 20.0;
const NEARLY: f64 = 0.5;

/// The number of toys in the first round at a value, times the level, and the least number.
const FIRST_TOYS: f64 = 20.0;
const LEAST_TOYS: f64 = 100.0;

/// The largest fraction of all toys that is spent at an end of the range.
const AT_BOUND: u64 = 8;

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

/// One side of the best fit. Distances from it count outwards.
struct Side {
    /// -1 below the best fit, 1 above.
    sign: f64,
    /// The tail that is counted, and the level of its probability.
    tail: Tail,
    level: f64,
    /// The number of standard deviations of the asymptotic end.
    height: f64,
    /// The distance to the end of the range.
    limit: f64,
    /// The distance to the asymptotic end; `None` if the range ends before.
    asymptotic: Option<f64>,
    /// How the minima of toys are sought.
    search: ToySearch,
    /// The distances and the indices of tested points, ascending.
    points: Vec<(f64, usize)>,
    /// Whether the best fit is accepted.
    accepts_best: bool,
    /// The ends of accepted regions, outwards.
    ends: Vec<EndSearch>,
}

impl Side {
    /// Returns the distance that is a standard deviation.
    fn unit(&self) -> f64 {
        self.asymptotic.unwrap_or(self.limit) / self.height
    }
}

struct IntervalSolver<'a, L> {
    settings: IntervalSettings,
    points: TestedPoints<'a, L>,
    best: f64,
    sides: Vec<Side>,
    /// Whether the ends of the accepted regions are bracketed.
    has_ends: bool,
    /// Whether that was done with fewer toys than were wanted.
    is_scan_cut_short: bool,
}

impl<'a, L: DataLikelihood + Clone + Sync> IntervalSolver<'a, L> {
    fn new(settings: IntervalSettings, points: TestedPoints<'a, L>) -> Result<Self, ToysError> {
        let best = points.profiler.best();
        if !best.converged() {
            return Err(ToysError::Free);
        }
        let best = best.params[settings.poi];
        Ok(Self { settings, points, best, sides: Vec::new(), has_ends: false, is_scan_cut_short: false })
    }

    /// Tests values until every end is known well enough, or the toys are used up.
    fn solve(&mut self) -> Result<(), Stop> {
        for sign in [-1.0, 1.0] {
            if sign > 0.0 || self.settings.construction != Construction::Upper {
                let side = self.side(sign)?;
                self.sides.push(side);
            }
        }
        for k in 0..self.sides.len() {
            self.scan(k)?;
        }
        (0..self.sides.len()).for_each(|k| self.find_ends(k));
        (self.has_ends, self.is_scan_cut_short) = (true, self.points.is_cut_short);
        while self.refine()? {}
        Ok(())
    }

    /// Prepares a side: finds the asymptotic end.
    fn side(&mut self, sign: f64) -> Result<Side, ToysError> {
        let IntervalSettings { construction, poi, cl, .. } = self.settings;
        let (tail, level) = match construction {
            Construction::FeldmanCousins => (Tail::Both, 1.0 - cl),
            Construction::Central => (if sign > 0.0 { Tail::Lower } else { Tail::Upper }, 0.5 * (1.0 - cl)),
            Construction::Upper => (Tail::Lower, 1.0 - cl),
        };
        let height = significance(if tail == Tail::Both { 0.5 * level } else { level });
        let domain = self.points.profiler.domain();
        let bound = if sign > 0.0 { domain.upper[poi] } else { domain.lower[poi] };
        let limit = (sign * (bound - self.best)).max(0.0);
        let width = self.points.profiler.width(poi).unwrap_or(1.0);
        let interval = RootInterval { lower: 0.0, upper: limit, guess: (height * width).min(limit) };
        let root = if limit > 0.0 {
            increasing(interval, |distance| {
                let (t, gradient) = self.points.statistic_at(&[self.best + sign * distance])?;
                let root = t.sqrt();
                Some([root - height, sign * gradient[0] / root])
            })
        } else {
            Root::Above
        };
        let asymptotic = match root {
            Root::At(distance) => Some(distance),
            Root::Above if limit.is_finite() => None,
            _ => return Err(ToysError::Observed { mu: self.best, reason: "the profile does not reach the level" }),
        };
        let search = ToySearch { n_starts: 1, explores: false };
        let (points, ends, accepts_best) = (Vec::new(), Vec::new(), true);
        Ok(Side { sign, tail, level, height, limit, asymptotic, search, points, accepts_best, ends })
    }

    /// Returns the value at `distance` on side `k`.
    fn value(&self, k: usize, distance: f64) -> f64 {
        let (side, domain) = (&self.sides[k], self.points.profiler.domain());
        let [lower, upper] = [domain.lower[self.settings.poi], domain.upper[self.settings.poi]];
        if distance >= side.limit {
            return if side.sign > 0.0 { upper } else { lower };
        }
        (self.best + side.sign * distance).clamp(lower, upper)
    }

    fn add(&mut self, k: usize, distance: f64) -> Result<usize, ToysError> {
        let index = self.points.add(&[self.value(k, distance)])?;
        let points = &mut self.sides[k].points;
        points.insert(points.partition_point(|(known, _)| *known < distance), (distance, index));
        Ok(index)
    }

    /// Returns the number of toys in the first round at a value.
    fn first_toys(&self, k: usize) -> u64 {
        (FIRST_TOYS / self.sides[k].level).max(LEAST_TOYS).ceil() as u64
    }

    /// Throws toys at point `index` of side `k`.
    fn throw(&mut self, k: usize, wanted: &[(usize, u64)]) -> Result<(), Stop> {
        let search = self.sides[k].search;
        let more = |&(index, n_toys): &(usize, u64)| MoreToys { index, which: 0, search, n_toys };
        let wanted: Vec<MoreToys> = wanted.iter().map(more).collect();
        Ok(self.points.throw(&wanted)?)
    }

    /// Tests the first few values of side `k`, outwards until one is clearly excluded.
    fn scan(&mut self, k: usize) -> Result<(), Stop> {
        let Side { limit, asymptotic, tail, .. } = self.sides[k];
        if limit <= 0.0 && tail != Tail::Lower {
            return Ok(());
        }
        let mut distances: Vec<f64> = match asymptotic {
            Some(end) => FIRST.iter().map(|f| f * end).filter(|d| *d < limit).collect(),
            None => TO_BOUND.iter().map(|f| f * limit).collect(),
        };
        let is_cut = asymptotic.is_some_and(|end| FIRST[FIRST.len() - 1] * end >= limit);
        distances.extend(is_cut.then_some(limit));
        if tail == Tail::Lower {
            // The best fit itself may be excluded.
            distances.insert(0, 0.0);
        }
        distances.dedup();
        let n_toys = self.first_toys(k);
        let indices = distances.iter().map(|d| self.add(k, *d)).collect::<Result<Vec<usize>, _>>()?;
        let pilot = indices[(indices.len() * 4 / 7).min(indices.len() - 1)];
        self.sides[k].search = self.points.search(pilot);
        let wanted: Vec<(usize, u64)> = indices.into_iter().map(|index| (index, n_toys)).collect();
        self.throw(k, &wanted)?;
        for _ in 0..MOST_OUTWARDS {
            let (distance, index) = self.sides[k].points[self.sides[k].points.len() - 1];
            if self.estimate(k, (distance, index)).side(self.sides[k].level) == Some(false) {
                break;
            }
            if distance >= limit {
                self.decide(k, index)?;
                break;
            }
            if self.points.is_cut_short {
                break;
            }
            let next = (OUTWARDS * distance).min(limit);
            if next.is_nan() || next <= distance {
                break;
            }
            let next = self.add(k, next)?;
            self.throw(k, &[(next, n_toys)])?;
        }
        let far = self.far_values(k);
        let indices = far.iter().map(|d| self.add(k, *d)).collect::<Result<Vec<usize>, _>>()?;
        let wanted: Vec<(usize, u64)> = indices.into_iter().map(|index| (index, n_toys)).collect();
        self.throw(k, &wanted)
    }

    /// Returns distances beyond the tested ones at which the data may accept the value again, and
    /// those next to them.
    fn far_values(&mut self, k: usize) -> Vec<f64> {
        let Side { asymptotic: Some(end), limit, height, ref points, .. } = self.sides[k] else { return Vec::new() };
        let Some(&(last, _)) = points.last() else { return Vec::new() };
        let farthest = limit.min(FARTHEST * end);
        let next = |d: &f64| Some(FAR_RATIO * d).filter(|next| next > d && *next <= farthest);
        let distances: Vec<f64> = std::iter::successors(next(&last), next).collect();
        let mut is_wanted = vec![false; distances.len()];
        for (i, distance) in distances.iter().enumerate() {
            let t = self.points.statistic_at(&[self.value(k, *distance)]).map(|(t, _)| t);
            if t.is_some_and(|t| t.sqrt() < height + NEARLY) {
                is_wanted[i.saturating_sub(1)..(i + 2).min(distances.len())].fill(true);
            }
        }
        distances.into_iter().zip(is_wanted).filter_map(|(distance, wanted)| wanted.then_some(distance)).collect()
    }

    /// Throws toys at the end of the range until it is clear whether it is accepted.
    fn decide(&mut self, k: usize, index: usize) -> Result<(), Stop> {
        let level = self.sides[k].level;
        while self.estimate(k, (0.0, index)).side(level).is_none()
            && self.points.points[index].n_toys()[0] < self.settings.max_toys / AT_BOUND
        {
            let n_toys = self.points.points[index].n_toys()[0];
            if n_toys == 0 || self.points.is_cut_short {
                break;
            }
            self.throw(k, &[(index, n_toys)])?;
        }
        Ok(())
    }

    fn estimate(&self, k: usize, (distance, index): (f64, usize)) -> Estimate {
        let p = self.points.p_value(index, self.sides[k].tail);
        Estimate { x: distance, probability: p.value, trials: p.n_toys as f64 }
    }

    fn estimates(&self, k: usize) -> Vec<Estimate> {
        let estimates = self.sides[k].points.iter().map(|point| self.estimate(k, *point));
        // There is none where the fits of all toys failed.
        estimates.filter(|estimate| estimate.trials > 0.0).collect()
    }

    /// Brackets the ends of accepted regions on side `k` between values that are clearly accepted
    /// and clearly excluded.
    fn find_ends(&mut self, k: usize) {
        let Side { tail, level, height, .. } = self.sides[k];
        // A p-value of two tails is 2 Q(r): the derivative of its probit along r.
        let factor = if tail == Tail::Both { 2.0 * density(height) / density(significance(level)) } else { 1.0 };
        let derivative = factor / self.sides[k].unit();
        let estimates = self.estimates(k);
        // The best fit is accepted by a test of both tails.
        let (mut from, mut is_accepted, mut ends) = (0.0, true, Vec::new());
        for (n, estimate) in estimates.iter().enumerate() {
            let is_decisive = estimate.x == 0.0 || n + 1 == estimates.len();
            let decided = is_decisive.then_some(estimate.probability > level);
            let Some(accepts) = estimate.side(level).or(decided) else { continue };
            if estimate.x == 0.0 {
                self.sides[k].accepts_best = accepts;
            } else if accepts != is_accepted {
                let bracket = if accepts { [-estimate.x, -from] } else { [from, estimate.x] };
                let search = CrossingSearch::new(level, bracket, 0.5 * (bracket[0] + bracket[1]), derivative);
                ends.push(EndSearch { search, rises: accepts });
            }
            (from, is_accepted) = (estimate.x, accepts);
        }
        let tolerance = self.settings.tolerance * self.sides[k].unit();
        // The order of outcomes by t_μ depends on μ. By the signed statistic it does not, and the
        // only step is next to a best fit at the end of the range.
        let steps = self.sides[k].points.iter().map(|&(_, index)| self.points.largest_step(index));
        let largest = if tail == Tail::Both { steps.fold(0.0, f64::max) } else { 0.0 };
        for end in &mut ends {
            let largest = if tail != Tail::Both && end.search.starts_at(0.0) { 1.0 } else { largest };
            end.search.note_steps(largest, tolerance);
            end.update(&estimates);
        }
        self.sides[k].ends = ends;
    }

    /// Throws more toys near every end that is not known well enough. Returns `false` if there is
    /// none, or if no toys are left.
    fn refine(&mut self) -> Result<bool, Stop> {
        let mut wanted: Vec<(usize, f64, u64)> = Vec::new();
        for (k, side) in self.sides.iter().enumerate() {
            let (tolerance, estimates) = (self.settings.tolerance * side.unit(), self.estimates(k));
            for end in &side.ends {
                let places = end.search.wanted(&end.turned(&estimates), tolerance, self.first_toys(k));
                let places = places.into_iter().filter(|(x, n_toys)| x.is_finite() && *n_toys > 0);
                wanted.extend(places.map(|(x, n_toys)| (k, x.abs(), n_toys)));
            }
        }
        if wanted.is_empty() || self.points.is_cut_short {
            return Ok(false);
        }
        let mut jobs = Vec::with_capacity(wanted.len());
        for (k, distance, n_toys) in wanted {
            let known = self.sides[k].points.iter().find(|(known, _)| *known == distance).map(|(_, index)| *index);
            let index = known.map_or_else(|| self.add(k, distance), Ok)?;
            jobs.push(MoreToys { index, which: 0, search: self.sides[k].search, n_toys });
        }
        self.points.throw(&jobs)?;
        for k in 0..self.sides.len() {
            let estimates = self.estimates(k);
            self.sides[k].ends.iter_mut().for_each(|end| end.update(&estimates));
        }
        Ok(true)
    }

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

    fn report(self, is_complete: bool) -> ToyInterval {
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

/// The search for one end of an accepted region.
struct EndSearch {
    search: CrossingSearch,
    /// Whether the probability rises outwards; the search then counts distances inwards.
    rises: bool,
}

impl EndSearch {
    /// Returns `estimates` at the distances of the search.
    fn turned(&self, estimates: &[Estimate]) -> Vec<Estimate> {
        let sign = if self.rises { -1.0 } else { 1.0 };
        estimates.iter().map(|e| Estimate { x: sign * e.x, ..*e }).collect()
    }

    fn update(&mut self, estimates: &[Estimate]) {
        let turned = self.turned(estimates);
        self.search.update(&turned);
    }
}
