//! Tests values outwards from the best fit, and finds where accepted regions end.

use super::{Construction, IntervalSettings};
use crate::normal::{density, significance};
use crate::root::{Root, RootInterval, increasing};
use crate::toys::crossing::{CrossingSearch, Estimate};
use crate::toys::hypotest::ToysError;
use crate::toys::jobs::Stop;
use crate::toys::pilot::ToySearch;
use crate::toys::tested_points::{MoreToys, Tail, TestedPoints};
use ns_core::DataLikelihood;

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
/// to this multiple of the distance to the asymptotic end. Where √t_μ is within this of the
/// asymptotic height, toys are thrown, too.
const FAR_RATIO: f64 = 1.15;
const FARTHEST: f64 = 20.0;
const NEARLY: f64 = 0.5;

/// The number of toys in the first round at a value, times the level, and the least number.
const FIRST_TOYS: f64 = 20.0;
const LEAST_TOYS: f64 = 100.0;

/// The largest fraction of all toys that is spent at an end of the range.
const AT_BOUND: u64 = 8;

/// One side of the best fit. Distances from it count outwards.
pub(super) struct Side {
    /// -1 below the best fit, 1 above.
    pub(super) sign: f64,
    /// The tail that is counted, and the level of its probability.
    pub(super) tail: Tail,
    pub(super) level: f64,
    /// The number of standard deviations of the asymptotic end.
    pub(super) height: f64,
    /// The distance to the end of the range.
    pub(super) limit: f64,
    /// The distance to the asymptotic end; `None` if the range ends before.
    pub(super) asymptotic: Option<f64>,
    /// How the minima of toys are sought.
    pub(super) search: ToySearch,
    /// The distances and the indices of tested points, ascending.
    pub(super) points: Vec<(f64, usize)>,
    /// Whether the best fit is accepted.
    pub(super) accepts_best: bool,
    /// The ends of accepted regions, outwards.
    pub(super) ends: Vec<EndSearch>,
}

impl Side {
    /// Returns the distance that is a standard deviation.
    pub(super) fn unit(&self) -> f64 {
        self.asymptotic.unwrap_or(self.limit) / self.height
    }
}

pub(super) struct IntervalSolver<'a, L> {
    pub(super) settings: IntervalSettings,
    pub(super) points: TestedPoints<'a, L>,
    pub(super) best: f64,
    pub(super) sides: Vec<Side>,
    /// Whether the ends of the accepted regions are bracketed.
    pub(super) has_ends: bool,
    /// Whether that was done with fewer toys than were wanted.
    pub(super) is_scan_cut_short: bool,
}

impl<'a, L: DataLikelihood + Clone + Sync> IntervalSolver<'a, L> {
    pub(super) fn new(settings: IntervalSettings, points: TestedPoints<'a, L>) -> Result<Self, ToysError> {
        let best = points.profiler.best();
        if !best.converged() {
            return Err(ToysError::Free);
        }
        let best = best.params[settings.poi];
        Ok(Self { settings, points, best, sides: Vec::new(), has_ends: false, is_scan_cut_short: false })
    }

    /// Tests values until every end is known well enough, or the toys are used up.
    pub(super) fn solve(&mut self) -> Result<(), Stop> {
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
        let search = ToySearch::ONE_START;
        let (points, ends, accepts_best) = (Vec::new(), Vec::new(), true);
        Ok(Side { sign, tail, level, height, limit, asymptotic, search, points, accepts_best, ends })
    }

    /// Returns the value at `distance` on side `k`.
    pub(super) fn value(&self, k: usize, distance: f64) -> f64 {
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

    pub(super) fn estimate(&self, k: usize, (distance, index): (f64, usize)) -> Estimate {
        let p = self.points.p_value(index, self.sides[k].tail);
        Estimate { x: distance, probability: p.value, trials: p.n_toys as f64 }
    }

    pub(super) fn estimates(&self, k: usize) -> Vec<Estimate> {
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
}

/// The search for one end of an accepted region.
pub(super) struct EndSearch {
    pub(super) search: CrossingSearch,
    /// Whether the probability rises outwards; the search then counts distances inwards.
    pub(super) rises: bool,
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
