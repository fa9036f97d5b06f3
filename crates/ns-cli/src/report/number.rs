//! Numbers for people: a few significant digits.

/// `value` with `digits` significant digits, without trailing zeros, as C's `%g` writes it.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
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

/// An uncertainty, or a dash.
pub(crate) fn optional(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| significant(value, digits))
}

fn without_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn numbers_have_as_many_digits_as_wanted() {
        let cases = [(0.0, "0"), (1.0, "1"), (-0.25, "-0.25"), (1234.5678, "1234.57"), (1e12, "1e12")];
        for (value, expected) in cases {
            assert_eq!(significant(value, 6), expected);
        }
        assert_eq!(significant(1.234e-7, 3), "1.23e-7");
        assert_eq!(significant(999.96, 4), "1000");
        assert_eq!(significant(f64::NAN, 4), "NaN");
    }
}
