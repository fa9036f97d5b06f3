//! Numbers as Combine passes them through text: six digits, or six decimals.

/// Returns `value` rounded to six significant digits, as C writes it with `%g`.
pub(super) fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Returns `value` rounded to six decimals, as C writes it with `%f`.
pub(super) fn six_decimals(value: f64) -> f64 {
    format!("{value:.6}").parse().unwrap_or(value)
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
