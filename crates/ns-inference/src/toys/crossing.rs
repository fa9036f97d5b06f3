//! Finds where a probability that is estimated from toys falls through a level: a probit fit to the
//! estimates at several places, which says where more toys are worth most.
//!
//! Near the crossing, the probability is Q(a + b x), where Q is the upper tail of the normal
//! distribution: p-values of profile likelihood ratios are nearly of this form in a parameter of
//! interest. The fit is that of a generalised linear model (J. A. Nelder and R. W. M. Wedderburn,
//! J. R. Stat. Soc. A 135 (1972) 370), and is redone in ever smaller windows, so that other forms
//! are fitted, too. Probabilities of a few discrete outcomes have steps: there the crossing is only
//! bracketed.

use crate::normal::{density, significance, upper_tail};
use ns_core::poisson::half_deviance;

/// The number of iterations of a probit fit, each of which is a weighted linear one.
const ITERATIONS: usize = 12;

/// An estimate is significantly on one side of the level if it is this number of standard
/// deviations away; and where the crossing is only bracketed.
const SIGNIFICANT: f64 = 4.0;
const SIGNIFICANT_IN_BRACKET: f64 = 2.5;

/// The half width of the window of a fit, in units of the distance between new places.
const WINDOW: f64 = 3.0;

/// By how much the distance between new places changes at most from one round to the next.
const SHRINK: f64 = 0.25;

/// The largest distance of the two neighbours of a crossing, as the change of the probit between
/// them.
const NEIGHBOURS: f64 = 1.0;

/// The largest number of new trials in a round, relative to those in the window.
const GROWTH: f64 = 0.5;

/// A fit is that of a step where it falls more steeply than expected by this factor.
const STEEP: f64 = 4.0;

/// The probability that was estimated at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) x: f64,
    pub(super) probability: f64,
    /// The number of independent trials with the same error.
    pub(super) trials: f64,
}

impl Estimate {
    /// Returns the number of standard deviations by which the estimate is above `level`: the signed
    /// root of the deviance of a binomial count, whose tails are nearly normal for small counts,
    /// too.
    fn above(&self, level: f64) -> f64 {
        let (count, others) = (self.probability * self.trials, (1.0 - self.probability) * self.trials);
        let half = half_deviance(count, level * self.trials) + half_deviance(others, (1.0 - level) * self.trials);
        (2.0 * half).sqrt().copysign(self.probability - level)
    }

    /// Returns whether the probability is significantly above `level` (`true`) or below (`false`).
    pub(super) fn side(&self, level: f64) -> Option<bool> {
        self.side_by(level, SIGNIFICANT)
    }

    /// Returns the same, significant at the given number of standard deviations.
    pub(super) fn side_by(&self, level: f64, significance: f64) -> Option<bool> {
        let above = self.above(level);
        (above.abs() >= significance).then_some(above > 0.0)
    }
}

/// Searches for the place at which a probability falls through a level.
#[derive(Debug, Clone)]
pub(super) struct CrossingSearch {
    level: f64,
    /// The relative error of the level, if it is an estimate, too.
    level_error: f64,
    /// Places on both sides of the crossing.
    bracket: [f64; 2],
    /// The expected derivative of the probit.
    derivative: f64,
    /// Whether the probability has steps, so that the crossing is only bracketed.
    has_steps: bool,
    /// The best estimate so far.
    pub(super) x: f64,
    /// Its error.
    pub(super) error: f64,
    /// The distance of new places from it.
    step: f64,
    /// The number of trials in the window.
    trials: f64,
    /// Whether there are estimates near the crossing on both of its sides.
    is_surrounded: bool,
}

/// A straight line a + b (x - center), with the covariance of a and b.
struct Line {
    a: f64,
    b: f64,
    covariance: [f64; 3],
}

impl CrossingSearch {
    /// Starts at `x` between the places of `bracket`, the first of which has the higher
    /// probability. `derivative` > 0 is the expected derivative of the probit.
    pub(super) fn new(level: f64, bracket: [f64; 2], x: f64, derivative: f64) -> Self {
        let width = bracket[1] - bracket[0];
        let step = (0.5 * width).min(0.5 / derivative);
        Self {
            level,
            level_error: 0.0,
            bracket,
            derivative,
            has_steps: false,
            x,
            error: 0.5 * width,
            step,
            trials: 0.0,
            is_surrounded: false,
        }
    }

    /// Replaces the level by an estimate with a relative error.
    pub(super) fn set_level(&mut self, level: f64, relative_error: f64) {
        (self.level, self.level_error) = (level, relative_error);
    }

    /// Returns whether the crossing is where the search has put it, rather than anywhere between
    /// its ends.
    pub(super) fn is_found(&self) -> bool {
        self.error < 0.5 * self.x.abs() && (self.is_surrounded || self.has_steps)
    }

    /// Returns whether the probability is above the level in most of the range that ends at
    /// `upper`, and not known to be below it anywhere.
    pub(super) fn is_beyond(&self, upper: f64) -> bool {
        self.bracket[0] > 0.5 * upper && self.bracket[1] >= upper
    }

    /// Returns the largest error of the probability that makes one of at most `tolerance` in the
    /// place.
    fn probability_error(&self, tolerance: f64) -> f64 {
        let z = significance(self.level);
        tolerance * self.derivative * density(z)
    }

    /// Returns whether the place with the higher probability is `x`.
    pub(super) fn starts_at(&self, x: f64) -> bool {
        self.bracket[0] == x
    }

    /// Makes further updates only bracket the crossing if the probability has steps of size
    /// `largest` that matter for an error of `tolerance`.
    pub(super) fn note_steps(&mut self, largest: f64, tolerance: f64) {
        self.has_steps |= largest > 2.0 * self.probability_error(tolerance);
    }

    /// Takes the estimates so far into account.
    pub(super) fn update(&mut self, estimates: &[Estimate]) {
        self.narrow(estimates);
        let width = self.bracket[1] - self.bracket[0];
        if self.has_steps {
            (self.x, self.error) = (self.bracket[0] + 0.5 * width, 0.5 * width);
            return;
        }
        if estimates.is_empty() {
            return;
        }
        self.x = self.x.clamp(self.bracket[0] + 0.1 * width, self.bracket[1] - 0.1 * width);
        let mut window: Vec<Estimate> = estimates.to_vec();
        window.sort_by(|p, q| (p.x - self.x).abs().total_cmp(&(q.x - self.x).abs()));
        let n_near = window.partition_point(|e| (e.x - self.x).abs() <= WINDOW * self.step * (1.0 + 1e-9));
        window.truncate(n_near.max(3));
        self.trials = window.iter().map(|e| e.trials).sum();
        let line = self.fit(&window);
        let offset = (significance(self.level) - line.a) / line.b;
        let [aa, ab, bb] = line.covariance;
        let of_level = self.level_error * self.level / density(significance(self.level));
        let error = (aa + 2.0 * offset * ab + offset * offset * bb).max(0.0).sqrt().hypot(of_level) / line.b;
        let found = self.x + offset;
        let inside = found.clamp(self.bracket[0] + 0.1 * width, self.bracket[1] - 0.1 * width);
        (self.x, self.error) = (inside, error.max((found - inside).abs().min(width)));
        if line.b > STEEP * self.derivative {
            // The probability may be a step anywhere between the neighbours.
            self.error = self.error.max(0.5 * self.gap(estimates));
        }
        self.is_surrounded = self.gap(estimates) <= NEIGHBOURS / self.derivative;
        self.step = (2.0 * self.error).clamp(SHRINK * self.step, self.step).min(0.4 * width);
    }

    /// Moves the ends of the bracket to the nearest places that are significantly on their sides.
    fn narrow(&mut self, estimates: &[Estimate]) {
        let [mut low, mut high] = self.bracket;
        let significance = if self.has_steps { SIGNIFICANT_IN_BRACKET } else { SIGNIFICANT };
        // A level that is itself uncertain has to be missed by its error, too.
        let margin = (significance * self.level_error).min(0.9);
        let [highest, lowest] = [self.level * (1.0 + margin), self.level * (1.0 - margin)];
        for estimate in estimates {
            if estimate.x > low && estimate.x < high && estimate.side_by(highest, significance) == Some(true) {
                low = estimate.x;
            }
        }
        for estimate in estimates {
            if estimate.x > low && estimate.x < high && estimate.side_by(lowest, significance) == Some(false) {
                high = estimate.x;
            }
        }
        self.bracket = [low, high];
    }

    /// Returns the distance between the two places next to the crossing.
    fn gap(&self, estimates: &[Estimate]) -> f64 {
        let below = estimates.iter().map(|e| e.x).filter(|x| *x <= self.x).fold(self.bracket[0], f64::max);
        let above = estimates.iter().map(|e| e.x).filter(|x| *x > self.x).fold(self.bracket[1], f64::min);
        above - below
    }

    /// Fits a line to the probits of `window`, with the expected derivative as a weak constraint.
    fn fit(&self, window: &[Estimate]) -> Line {
        let start = Line { a: significance(self.level), b: self.derivative, covariance: [0.0; 3] };
        probit_line(window, self.x, &start, self.derivative.powi(-2), 0.05 * self.derivative)
    }

    /// Returns the places at which more trials are worth most, and their numbers; `least` of them
    /// at a new place. There is none if the error is at most `tolerance`, or if more trials at any
    /// place would not help.
    pub(super) fn wanted(&self, estimates: &[Estimate], tolerance: f64, least: u64) -> Vec<(f64, u64)> {
        if self.error <= tolerance && (self.is_surrounded || self.has_steps) {
            return Vec::new();
        }
        if self.has_steps {
            return self.wanted_in_bracket(estimates, tolerance, least).into_iter().collect();
        }
        let [low, high] = self.bracket;
        let margin = 0.05 * (high - low);
        let factor = (self.error / tolerance).powi(2) - 1.0;
        let least = least as f64;
        let n = (0.5 * (1.05 * factor * self.trials).clamp(least, (GROWTH * self.trials).max(least))).ceil() as u64;
        [self.x - self.step, self.x + self.step].map(|x| (x.clamp(low + margin, high - margin), n)).to_vec()
    }

    /// Returns a place near the middle of the bracket: one that is undecided, or a new one. Leaves
    /// places that are undecided after as many trials as the tolerance needs.
    fn wanted_in_bracket(&self, estimates: &[Estimate], tolerance: f64, least: u64) -> Option<(f64, u64)> {
        let [low, high] = self.bracket;
        let error = self.probability_error(0.5 * tolerance) / SIGNIFICANT_IN_BRACKET;
        let enough = self.level * (1.0 - self.level) / (error * error);
        let mut undecided: Vec<&Estimate> = estimates.iter().filter(|e| e.x > low && e.x < high).collect();
        undecided.sort_by(|a, b| a.x.total_cmp(&b.x));
        let (given_up, open): (Vec<&Estimate>, Vec<&Estimate>) =
            undecided.into_iter().partition(|e| e.trials >= enough);
        // The crossing is beyond the places that are given up, on one side or the other.
        let parts = [[low, given_up.first().map_or(high, |e| e.x)], [given_up.last().map_or(low, |e| e.x), high]];
        let [from, to] = if parts[1][1] - parts[1][0] >= parts[0][1] - parts[0][0] { parts[1] } else { parts[0] };
        if to - from <= tolerance {
            return None;
        }
        let quarter = 0.25 * (to - from);
        let near = open.into_iter().find(|e| e.x > from + quarter && e.x < to - quarter);
        Some(near.map_or((0.5 * (from + to), least), |e| (e.x, e.trials as u64)))
    }
}

/// Fits a line a + b (x - `center`) to the probits of `estimates`. It begins with `start`, whose b
/// is a constraint of weight `prior`; b is at least `least`. Estimates that scatter more than they
/// should belong to a curve, or to a step: the covariance is scaled by their χ².
fn probit_line(estimates: &[Estimate], center: f64, start: &Line, prior: f64, least: f64) -> Line {
    let (mut a, mut b) = (start.a, start.b);
    let mut covariance = [0.0; 3];
    let mut chi_squared = 0.0;
    for _ in 0..ITERATIONS {
        let [mut w, mut wx, mut wxx, mut wz, mut wxz] = [0.0, 0.0, prior, 0.0, prior * start.b];
        chi_squared = 0.0;
        for e in estimates {
            let x = e.x - center;
            let eta = (a + b * x).clamp(-5.0, 5.0);
            let (p, height) = (upper_tail(eta), density(eta));
            let weight = e.trials * height * height / (p * (1.0 - p));
            let z = eta - ((e.probability - p) / height).clamp(-3.0, 3.0);
            chi_squared += e.trials * (e.probability - p).powi(2) / (p * (1.0 - p));
            w += weight;
            wx += weight * x;
            wxx += weight * x * x;
            wz += weight * z;
            wxz += weight * x * z;
        }
        let determinant = w * wxx - wx * wx;
        (a, b) = ((wz * wxx - wxz * wx) / determinant, (w * wxz - wx * wz) / determinant);
        covariance = [wxx / determinant, -wx / determinant, w / determinant];
        b = b.max(least);
    }
    let n_dof = estimates.len().saturating_sub(2).max(1) as f64;
    let scale = (chi_squared / n_dof).max(1.0);
    Line { a, b, covariance: covariance.map(|c| c * scale) }
}

/// Returns a probability at `x` and its relative error, from a line through the probits of
/// `estimates`, which is nearly flat over a distance of 1/`derivative`. `None` without estimates.
pub(super) fn smooth(estimates: &[Estimate], x: f64, derivative: f64) -> Option<(f64, f64)> {
    let (n, k) = estimates.iter().fold((0.0, 0.0), |(n, k), e| (n + e.trials, k + e.trials * e.probability));
    if n == 0.0 {
        return None;
    }
    // With half a count, a probability that was never seen has a finite probit.
    let start = Line { a: significance((k + 0.5) / (n + 1.0)), b: 0.0, covariance: [0.0; 3] };
    let line = probit_line(estimates, x, &start, (0.3 * derivative).powi(-2), -derivative);
    let p = upper_tail(line.a);
    let error = density(line.a) * line.covariance[0].max(0.0).sqrt();
    Some((p, error / p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toys::{RandomStream, poisson};

    /// Searches until the error is below `tolerance` with counts of `probability`, which has
    /// steps of size `step`, and returns the search and the number of trials.
    fn search(seed: u64, probability: impl Fn(f64) -> f64, step: f64, tolerance: f64) -> (CrossingSearch, f64) {
        let (mut search, mut estimates, mut total) =
            (CrossingSearch::new(0.05, [0.0, 4.0], 2.0, 1.1), Vec::<Estimate>::new(), 0.0);
        search.note_steps(step, tolerance);
        for round in 0..100 {
            for (k, (x, n)) in search.wanted(&estimates, tolerance, 400).into_iter().enumerate() {
                let n = n as f64;
                // Poisson counts are nearly binomial for probabilities near 0.05.
                let count = poisson(n * probability(x), &mut RandomStream::new(seed, 9, round, k as u32));
                estimates.push(Estimate { x, probability: (count / n).min(1.0), trials: n });
                total += n;
            }
            search.update(&estimates);
            if search.error <= tolerance || total > 1e6 {
                break;
            }
        }
        (search, total)
    }

    #[test]
    fn errors_of_smooth_crossings_are_right_and_nearly_optimal() {
        let (mut sum, mut sum_of_squares, mut sum_of_totals) = (0.0, 0.0, 0.0);
        for seed in 0..200 {
            let (found, total) = search(seed, |x| 2.0 * upper_tail(x), 0.0, 0.02);
            assert!(found.error <= 0.02, "{}", found.error);
            sum_of_totals += total;
            let pull = (found.x - 1.959_964) / found.error;
            sum += pull;
            sum_of_squares += pull * pull;
        }
        let (mean, rms) = (sum / 200.0, (sum_of_squares / 200.0_f64).sqrt());
        assert!(mean.abs() < 0.3 && (0.8..1.25).contains(&rms), "pulls of mean {mean} and rms {rms}");
        // (0.05 · 0.95)/(0.117 · 0.02)² trials at the crossing for the derivative 0.117 of the
        // p-value.
        assert!(sum_of_totals / 200.0 < 2.0 * 8_700.0, "{sum_of_totals}");
    }

    #[test]
    fn steps_are_found_to_the_tolerance() {
        for (seed, place) in [(1, 0.31), (2, 1.7), (3, 2.0), (4, 3.1)] {
            let (found, total) = search(seed, |x| if x < place { 0.2 - 0.02 * x } else { 0.03 }, 0.1, 0.01);
            assert!((found.x - place).abs() < 0.02, "{} is not {place}", found.x);
            assert!(total < 30_000.0, "{total}");
        }
    }
}
