//! The root of an increasing function of one variable, with its own bracket: Newton's steps kept
//! inside what is known.
//!
//! For limits: every evaluation is a fit or two, derivatives come for free, and a value may be
//! missing where a fit failed.

/// A value and its derivative.
pub(crate) type ValueAndDerivative = [f64; 2];

/// Where the function may be evaluated and with what steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RootInterval {
    /// The function is negative here, or the root lies outside; it is not evaluated here.
    pub(crate) lower: f64,
    /// The largest argument to try.
    pub(crate) upper: f64,
    /// Where to begin, between the two.
    pub(crate) guess: f64,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Root {
    /// The root.
    At(f64),
    /// The function is positive down to the lower end.
    Below,
    /// The function is negative up to the upper end.
    Above,
    /// The function could not be evaluated where it had to be.
    Unknown,
}

/// Relative width of a bracket that is small enough.
const TOLERANCE: f64 = 1e-11;

/// A step of Newton's that is relatively smaller than this ends at the root: the error of the next
/// point is about its square.
const LAST_STEP: f64 = 1e-7;

/// Evaluations in all.
const MAX_EVALUATIONS: usize = 200;

/// How many failed evaluations in a row are too many.
const MAX_FAILURES: usize = 6;

/// How many are too many in all: a fit that fails costs many times what one that arrives does.
const MAX_FAILURES_IN_ALL: usize = 12;

/// Returns the root of `f` in `interval`.
pub(crate) fn increasing(interval: RootInterval, mut f: impl FnMut(f64) -> Option<ValueAndDerivative>) -> Root {
    let RootInterval { lower, upper, guess } = interval;
    let (mut low, mut high): (f64, Option<f64>) = (lower, None);
    // Something positive to measure steps with.
    let unit = (guess - lower).abs().max(f64::MIN_POSITIVE);
    let (mut x, mut failures, mut failures_in_all) = (guess.clamp(lower, upper), 0, 0);
    for _ in 0..MAX_EVALUATIONS {
        let Some([value, derivative]) = f(x).filter(|v| !v[0].is_nan()) else {
            (failures, failures_in_all) = (failures + 1, failures_in_all + 1);
            if failures > MAX_FAILURES || failures_in_all > MAX_FAILURES_IN_ALL {
                return Root::Unknown;
            }
            // Outwards something fails: stay further in.
            x = 0.5 * (low + x);
            continue;
        };
        failures = 0;
        if value == 0.0 {
            return Root::At(x);
        }
        if value < 0.0 {
            low = x;
        } else {
            high = Some(x);
        }
        let newton = x - value / derivative;
        let next = match high {
            None if x >= upper => return Root::Above,
            None => outwards(x, newton, unit, lower).min(upper),
            Some(high) => inside(low, high, newton, lower, unit),
        };
        let size = next.abs().max(1e-3 * unit);
        let is_last = next == newton && (next - x).abs() <= LAST_STEP * size;
        if is_last || high.is_some_and(|high| high - low <= TOLERANCE * size) {
            let is_at_lower = next - lower <= 1e-9 * unit;
            return if is_at_lower { Root::Below } else { Root::At(next) };
        }
        x = next;
    }
    Root::Unknown
}

/// Returns the next point while no upper end is known: Newton's if it leads outwards, at least a
/// little and at most tenfold.
fn outwards(x: f64, newton: f64, unit: f64, lower: f64) -> f64 {
    let done = (x - lower).max(0.1 * unit);
    let reach = if newton > x { newton - x } else { done };
    x + reach.clamp(1e-12 * done, 9.0 * done)
}

/// Returns the next point of a bracket: Newton's if inside, else the middle; the geometric one
/// where the ends are of different size.
fn inside(low: f64, high: f64, newton: f64, lower: f64, unit: f64) -> f64 {
    if newton > low && newton < high {
        return newton;
    }
    let (a, b) = (low - lower, high - lower);
    if b > 100.0 * a.max(1e-9 * unit) {
        return lower + (a.max(1e-10 * b) * b).sqrt();
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(target: f64, guess: f64, upper: f64) -> Root {
        let interval = RootInterval { lower: 0.0, upper, guess };
        increasing(interval, |x| Some([(1.0 + x).ln() - (1.0 + target).ln(), 1.0 / (1.0 + x)]))
    }

    #[test]
    fn roots_are_found_over_eight_orders_of_magnitude() {
        for target in [1e-4, 1e-2, 1.0, 50.0, 1e4] {
            for guess in [1e-3, 1.0, 1e3] {
                let Root::At(x) = root(target, guess, 1e9) else { panic!("no root at {target} from {guess}") };
                assert!((x / target - 1.0).abs() < 1e-9, "{x} for {target} from {guess}");
            }
        }
    }

    #[test]
    fn a_root_outside_is_said_to_be_there() {
        assert_eq!(root(20.0, 1.0, 10.0), Root::Above);
        let always_positive = |x: f64| Some([1.0 + x, 1.0]);
        assert_eq!(increasing(RootInterval { lower: 0.0, upper: 10.0, guess: 1.0 }, always_positive), Root::Below);
        assert_eq!(increasing(RootInterval { lower: 0.0, upper: 10.0, guess: 1.0 }, |_| None), Root::Unknown);
    }

    #[test]
    fn failures_far_out_do_not_keep_a_root_from_being_found() {
        let f = |x: f64| (x < 2.5).then_some([x - 2.0, 1.0]);
        let interval = RootInterval { lower: 0.0, upper: 1e3, guess: 100.0 };
        assert!(matches!(increasing(interval, f), Root::At(x) if (x - 2.0).abs() < 1e-9));
    }

    /// Every step towards a root beyond the end of what can be evaluated fails four times.
    #[test]
    fn the_number_of_failures_is_bounded() {
        let mut n_failures = 0;
        let f = |x: f64| {
            n_failures += u32::from(x > 1e5);
            (x <= 1e5).then(|| [-1.0, 1.0 / (9.0 * (1e5 - x))])
        };
        assert_eq!(increasing(RootInterval { lower: 0.0, upper: 1e9, guess: 1.0 }, f), Root::Unknown);
        assert!((7..=13).contains(&n_failures), "{n_failures} failures");
    }

    #[test]
    fn kinks_and_wrong_derivatives_only_cost_time() {
        let f = |x: f64| Some([if x < 3.0 { -1.0 } else { x - 3.0 + 1e-3 * (x - 3.0) }, 0.0]);
        let Root::At(x) = increasing(RootInterval { lower: 0.0, upper: 1e3, guess: 0.1 }, f) else { panic!() };
        assert!((x - 3.0).abs() < 1e-9);
    }
}
