//! Formats numbers for people, with a few significant digits: for the tables of every interface.

use ns_inference::minimize::BoundSide;
use ns_inference::result::{AtBound, MinosInterval, ONE_SIGMA};
use std::fmt;

/// Formats `value` with `digits` significant digits, without trailing zeros, as C's `%g` does.
///
/// ```
/// use nextstat::number::significant;
/// assert_eq!(significant(1234.5678, 6), "1234.57");
/// assert_eq!(significant(1.234e-7, 3), "1.23e-7");
/// ```
#[must_use]
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return format!("{value}");
    }
    let digits = digits.max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let limit = i32::try_from(digits).unwrap_or(i32::MAX);
    if (-5..limit).contains(&exponent) {
        let decimals = usize::try_from(limit - 1 - exponent).unwrap_or(0);
        return without_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    format!("{}e{exponent}", without_zeros(mantissa))
}

/// Formats a number of things.
///
/// ```
/// use nextstat::number::counted;
/// assert_eq!([counted(1_usize, "bin"), counted(0_usize, "note")], ["1 bin", "0 notes"]);
/// ```
#[must_use]
pub fn counted<N: fmt::Display + PartialEq + From<u8> + Copy>(n: N, thing: &str) -> String {
    let is_one = n == N::from(1);
    format!("{n} {thing}{}", if is_one { "" } else { "s" })
}

/// Formats an optional number; a missing one is a dash.
#[must_use]
pub fn optional(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| significant(value, digits))
}

/// What is shown instead of a value whose fit did not converge.
pub const NOT_CONVERGED: &str = "did not converge";

/// Formats the best-fit value of a parameter with five digits, or says that there is none because
/// its fit did not converge.
#[must_use]
pub fn best_fit(value: Option<f64>) -> String {
    value.map_or_else(|| NOT_CONVERGED.to_owned(), |value| significant(value, 5))
}

/// Formats `value ± uncertainty` with two digits of the uncertainty, or `value ± -` without one.
#[must_use]
pub fn measured(value: f64, uncertainty: Option<f64>) -> String {
    let Some(uncertainty) = uncertainty.filter(|u| *u > 0.0) else {
        return format!("{} ± {}", significant(value, 5), optional(uncertainty, 2));
    };
    let Some(decimals) = decimals(uncertainty).filter(|_| value.abs() < 1e12) else {
        return format!("{} ± {}", significant(value, 5), significant(uncertainty, 2));
    };
    let value = format!("{value:.decimals$}");
    // What is rounded to zero has no sign.
    let value = if value.bytes().all(|c| b"-0.".contains(&c)) { value.trim_start_matches('-') } else { &value };
    format!("{value} ± {uncertainty:.decimals$}")
}

/// Formats a part of `whole`, an uncertainty, with as many decimals as [`measured`] gives `whole`.
#[must_use]
pub fn part_of(whole: f64, part: f64) -> String {
    decimals(whole).map_or_else(|| significant(part, 2), |decimals| format!("{part:.decimals$}"))
}

/// Formats the best-fit value of a parameter: `1.11 ± 0.44`, `0 (at its lower bound)`, or
/// `1 (no uncertainty)`.
#[must_use]
pub fn fitted(bestfit: f64, uncertainty: Option<f64>, bound: Option<&AtBound>) -> String {
    match (uncertainty, bound) {
        (Some(uncertainty), _) => measured(bestfit, Some(uncertainty)),
        (None, Some(AtBound { side, bound, .. })) => {
            let side = if *side == BoundSide::Lower { "lower" } else { "upper" };
            format!("{} (at its {side} bound)", significant(*bound, 6))
        }
        (None, None) => format!("{} (no uncertainty)", significant(bestfit, 6)),
    }
}

/// Formats the parts of an uncertainty by the covariance
/// ([`UncertaintySplit`](ns_inference::result::UncertaintySplit)) with its decimals,
/// ` (stat. 0.40, syst. 0.19, by covariance)`; an empty text if they are not known or there is no
/// systematic one. A ranking's parts have another definition, so the text names this one.
///
/// ```
/// use nextstat::number::{measured, parts};
/// let text = measured(1.1087, Some(0.4407)) + &parts(Some(0.3976), Some(0.1901));
/// assert_eq!(text, "1.11 ± 0.44 (stat. 0.40, syst. 0.19, by covariance)");
/// ```
#[must_use]
pub fn parts(statistical: Option<f64>, systematic: Option<f64>) -> String {
    let Some((statistical, systematic)) = statistical.zip(systematic) else { return String::new() };
    if systematic == 0.0 {
        return String::new();
    }
    let [statistical, systematic] = [statistical, systematic].map(|part| part_of(statistical.hypot(systematic), part));
    format!(" (stat. {statistical}, syst. {systematic}, by covariance)")
}

/// Formats a MINOS interval that follows a value: `, MINOS -0.4124 +0.4610`, with its confidence
/// level unless that is one standard deviation.
#[must_use]
pub fn interval(MinosInterval { cl, down, up, .. }: &MinosInterval) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| "(at its bound)".to_owned(), |end| format!("{end:+.4}"));
    let level = if *cl == ONE_SIGMA { String::new() } else { format!(" {} % CL", significant(100.0 * cl, 4)) };
    format!(", MINOS{level} {} {}", end(*down), end(*up))
}

/// Formats a change of the parameter of interest with its sign and three digits; a missing one is
/// a dash.
#[must_use]
pub fn impact(change: Option<f64>) -> String {
    let Some(change) = change else { return "-".to_owned() };
    let digits = significant(change, 3);
    if change > 0.0 { format!("+{digits}") } else { digits }
}

/// Formats a pull with its sign and two decimals, `+0.00` if it is rounded to zero; a missing one
/// is a dash.
#[must_use]
pub fn pull(pull: Option<f64>) -> String {
    // Adding zero removes the sign of what is rounded to zero.
    pull.map_or_else(|| "-".to_owned(), |pull| format!("{:+.2}", (100.0 * pull).round() / 100.0 + 0.0))
}

/// Returns the number of decimals that show two digits of `uncertainty`; `None` where these would
/// be too many.
fn decimals(uncertainty: f64) -> Option<usize> {
    let rounded: f64 = format!("{uncertainty:.1e}").parse().unwrap_or(uncertainty);
    let exponent = rounded.log10().floor();
    let decimals = if exponent < 1.0 { (1.0 - exponent) as usize } else { 0 };
    (-6.0..9.0).contains(&exponent).then_some(decimals)
}

fn without_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::{fitted, impact, interval, measured, part_of, parts, pull, significant};
    use ns_inference::minimize::BoundSide;
    use ns_inference::result::{AtBound, MinosInterval, ONE_SIGMA};

    #[test]
    fn numbers_have_the_requested_digits() {
        let cases = [(0.0, "0"), (1.0, "1"), (-0.25, "-0.25"), (1234.5678, "1234.57"), (1e12, "1e12")];
        for (value, expected) in cases {
            assert_eq!(significant(value, 6), expected);
        }
        assert_eq!(significant(1.234e-7, 3), "1.23e-7");
        assert_eq!(significant(999.96, 4), "1000");
        assert_eq!(significant(f64::NAN, 4), "NaN");
        assert_eq!(significant(-0.0, 4), "0");
    }

    #[test]
    fn the_uncertainty_sets_the_decimals_of_the_value() {
        assert_eq!(measured(52.345, Some(4.123)), "52.3 ± 4.1");
        assert_eq!(measured(1234.5, Some(99.9)), "1234 ± 100");
        assert_eq!(measured(0.0, Some(0.0)), "0 ± 0");
        assert_eq!(measured(-0.0, Some(-0.0)), "0 ± 0");
        assert_eq!(measured(-0.0, Some(0.25)), "0.00 ± 0.25");
        assert_eq!(measured(-1e-9, Some(0.25)), "0.00 ± 0.25");
        assert_eq!(measured(7.0, None), "7 ± -");
        assert_eq!(measured(1e-3, Some(2.5e-4)), "0.00100 ± 0.00025");
        assert_eq!(part_of(0.74, 0.7), "0.70");
        assert_eq!(measured(2e15, Some(3.21e12)), "2e15 ± 3.2e12");
    }

    #[test]
    fn a_value_without_uncertainty_says_why() {
        let bound = AtBound { parameter: "mu".to_owned(), side: BoundSide::Lower, bound: 0.0 };
        assert_eq!(fitted(1e-12, None, Some(&bound)), "0 (at its lower bound)");
        assert_eq!(fitted(1.0, None, None), "1 (no uncertainty)");
        assert_eq!(fitted(1.1087, Some(0.4407), None), "1.11 ± 0.44");
        assert_eq!(parts(Some(0.44), Some(0.0)) + &parts(None, Some(0.1)), "");
    }

    #[test]
    fn intervals_name_levels_other_than_one_sigma() {
        let parameter = "mu".to_owned();
        let one = MinosInterval { parameter, cl: ONE_SIGMA, bestfit: 1.2, down: None, up: Some(0.461) };
        assert_eq!(interval(&one), ", MINOS (at its bound) +0.4610");
        assert_eq!(interval(&MinosInterval { cl: 0.95, ..one }), ", MINOS 95 % CL (at its bound) +0.4610");
    }

    #[test]
    fn what_is_rounded_to_zero_has_no_sign() {
        assert_eq!([pull(Some(-0.004)), pull(Some(-0.0151)), pull(None)], ["+0.00", "-0.02", "-"]);
        assert_eq!([impact(Some(0.03671)), impact(Some(-0.5)), impact(None)], ["+0.0367", "-0.5", "-"]);
    }
}
