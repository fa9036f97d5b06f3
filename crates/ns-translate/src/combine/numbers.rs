//! Numbers as Combine passes them through text, with six digits or six decimals, and pairs of
//! numbers as cards and options write them.

/// Returns `value` rounded to six significant digits, as C writes it with `%g`.
pub(super) fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Returns `value` rounded to six decimals, as C writes it with `%f`.
pub(super) fn six_decimals(value: f64) -> f64 {
    format!("{value:.6}").parse().unwrap_or(value)
}

/// Reads two positive numbers.
pub(super) fn positive(low: &str, high: &str) -> Option<[f64; 2]> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    Some([number(low)?, number(high)?])
}

/// Reads the ends of a range, the lower one first.
pub(super) fn ordered(low: &str, high: &str) -> Option<[f64; 2]> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let ends = [number(low)?, number(high)?];
    (ends[0] < ends[1]).then_some(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_as_by_printf() {
        assert_eq!([six_digits(1234567.0), six_digits(0.000123456789)], [1234570.0, 0.000123457]);
        assert_eq!([six_decimals(1.23456789), six_decimals(1e-9)], [1.234568, 0.0]);
    }
}
