//! The rule of the Particle Data Group for rounding values and uncertainties.
//!
//! The three highest digits of the uncertainty decide: from 100 to 354 two digits are shown, from
//! 355 to 949 one, and from 950 to 999 it is rounded up to 1000 and two digits are shown. The value
//! has the same decimals. Source: Review of Particle Physics, introduction, "Rounding".

use crate::number::significant;

/// The largest exponent of numbers that are written out.
const LARGEST: i32 = 8;

/// The smallest exponent of uncertainties that are written out.
const SMALLEST: i32 = -6;

/// Significant digits of a value whose uncertainty is not known.
const WITHOUT_UNCERTAINTY: usize = 5;

/// A value and its uncertainties with the same decimals, in units of 10 to the power `exponent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rounded {
    pub(super) value: String,
    pub(super) uncertainties: Vec<String>,
    pub(super) exponent: i32,
}

/// Rounds `value` by the smallest of `uncertainties` that is not 0.
///
/// The uncertainties are sizes; those that are 0 stay 0.
pub(super) fn rounded(value: f64, uncertainties: &[f64]) -> Rounded {
    let sizes = uncertainties.iter().filter(|u| u.is_finite() && **u > 0.0).copied();
    let smallest = sizes.clone().fold(f64::INFINITY, f64::min);
    if !smallest.is_finite() {
        let zeros = uncertainties.iter().map(|_| "0".to_owned()).collect();
        return Rounded { value: significant(value, WITHOUT_UNCERTAINTY), uncertainties: zeros, exponent: 0 };
    }
    let largest = sizes.fold(value.abs(), f64::max);
    let exponent = exponent_of(largest);
    let exponent = if exponent > LARGEST || exponent_of(smallest) < SMALLEST { exponent } else { 0 };
    let decimals = decimals(smallest) + exponent;
    let fixed = |number: f64| without_sign_of_zero(scaled(number, exponent, decimals));
    // What is a half in decimals is rounded up, also where the binary number is a little smaller.
    let uncertainties = uncertainties.iter().map(|u| fixed(u * (1.0 + 1e-12))).collect();
    Rounded { value: fixed(value), uncertainties, exponent }
}

/// Returns the number of decimals to which an uncertainty is rounded; negative for tens.
fn decimals(uncertainty: f64) -> i32 {
    // `d.dde±x`: the three highest digits and the exponent.
    let text = format!("{uncertainty:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: u32 = digits.replace('.', "").parse().unwrap_or(100);
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if digits < 355 { 1 - exponent } else { -exponent }
}

fn exponent_of(number: f64) -> i32 {
    format!("{number:e}").split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

/// Formats `number` in units of 10 to the power `exponent` with `decimals` decimals of these units.
fn scaled(number: f64, exponent: i32, decimals: i32) -> String {
    // Exact scaling: through the decimal text, not by a product.
    let scaled: f64 = format!("{number:e}")
        .split_once('e')
        .and_then(|(digits, power)| format!("{digits}e{}", power.parse::<i32>().ok()? - exponent).parse().ok())
        .unwrap_or(number);
    match usize::try_from(decimals) {
        Ok(decimals) => format!("{scaled:.decimals$}"),
        Err(_) => {
            let unit = 10f64.powi(-decimals);
            format!("{:.0}", (scaled / unit).round() * unit)
        }
    }
}

/// Formats `number` with `digits` significant digits, zeros at the end included.
pub(super) fn with_digits(number: f64, digits: usize) -> String {
    // The exponent of the rounded number: 0.0996 becomes 0.10.
    let rounded: f64 = format!("{number:.*e}", digits.max(1) - 1).parse().unwrap_or(number);
    let decimals = i32::try_from(digits).unwrap_or(i32::MAX) - 1 - exponent_of(rounded);
    match usize::try_from(decimals) {
        Ok(decimals) if number != 0.0 && decimals < SMALLEST.unsigned_abs() as usize + digits => {
            fixed(number, decimals)
        }
        _ => significant(number, digits),
    }
}

/// Formats `number` with `decimals` decimals; what is rounded to zero has no sign.
pub(super) fn fixed(number: f64, decimals: usize) -> String {
    without_sign_of_zero(format!("{number:.decimals$}"))
}

fn without_sign_of_zero(text: String) -> String {
    if text.bytes().all(|c| b"-0.".contains(&c)) { text.trim_start_matches('-').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the Review of Particle Physics, and the limits between its cases.
    #[test]
    fn rounding_is_that_of_the_particle_data_group() {
        let cases = [
            (0.827, 0.119, "0.83", "0.12"),
            (0.827, 0.367, "0.8", "0.4"),
            (0.827, 0.354, "0.83", "0.35"),
            (0.827, 0.355, "0.8", "0.4"),
            (0.827, 0.949, "0.8", "0.9"),
            (0.827, 0.950, "0.8", "1.0"),
            (0.827, 0.097, "0.83", "0.10"),
            (1282.4, 90.2, "1280", "90"),
            (1282.4, 99.9, "1280", "100"),
            (1282.4, 120.0, "1280", "120"),
            (-0.004, 0.25, "0.00", "0.25"),
            (52.345, 4.123, "52", "4"),
        ];
        for (value, uncertainty, wanted, of_uncertainty) in cases {
            let found = rounded(value, &[uncertainty]);
            let found = (found.value.as_str(), found.uncertainties[0].as_str(), found.exponent);
            assert_eq!(found, (wanted, of_uncertainty, 0), "{value} ± {uncertainty}");
        }
    }

    #[test]
    fn significant_zeros_are_kept() {
        let cases = [
            (0.1035, "0.10"),
            (-0.0996, "-0.10"),
            (0.2, "0.20"),
            (1.04, "1.0"),
            (12.3, "12"),
            (0.0, "0"),
            (1.04e-9, "1e-9"),
            (f64::NAN, "NaN"),
        ];
        for (number, wanted) in cases {
            assert_eq!(with_digits(number, 2), wanted, "{number}");
        }
    }

    #[test]
    fn the_smaller_side_of_an_interval_decides() {
        let found = rounded(1.2345, &[0.4, 0.123]);
        assert_eq!(found.uncertainties, ["0.40", "0.12"]);
        assert_eq!(found.value, "1.23");
    }

    #[test]
    fn large_and_small_numbers_have_a_power_of_ten() {
        let found = rounded(1.234e-7, &[5.6e-9]);
        assert_eq!(found, Rounded { value: "1.23".into(), uncertainties: vec!["0.06".into()], exponent: -7 });
        let found = rounded(2.345e15, &[1.2e13]);
        assert_eq!(found, Rounded { value: "2.345".into(), uncertainties: vec!["0.012".into()], exponent: 15 });
    }

    #[test]
    fn nothing_is_lost_without_an_uncertainty() {
        for uncertainties in [&[][..], &[0.0]] {
            assert_eq!(rounded(12.3456, uncertainties).value, "12.346");
        }
    }
}
