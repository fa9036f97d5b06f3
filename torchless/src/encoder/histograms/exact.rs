//! Sums of numbers of double precision that are exact until they are rounded, once.
//!
//! The sum is an integer in units of the least positive number, 2⁻¹⁰⁷⁴, in chunks of 32 bits: a
//! number is added to three of them, and carries wait. So the sum does not depend on the order of
//! the numbers, nor on how they are divided. R. M. Neal calls it a small superaccumulator
//! (arXiv:1505.05571).

/// Chunks of 32 bits: 2098 bits of the largest numbers, and room for more of them
/// than can be counted.
const N_CHUNKS: usize = 67;

/// Additions after which carries are done: chunks of 64 bits have room for twice as many.
const ADDITIONS: u32 = 1 << 30;

/// Stored bits of a significand.
const FRACTION_BITS: u32 = 52;

/// An exact sum of finite numbers.
#[derive(Debug, Clone)]
pub(super) struct ExactSum {
    /// The sum is Σᵢ chunkᵢ 2³²ⁱ⁻¹⁰⁷⁴.
    chunks: [i64; N_CHUNKS],
    n_additions: u32,
}

impl ExactSum {
    /// The sum of nothing.
    pub(super) const ZERO: ExactSum = ExactSum { chunks: [0; N_CHUNKS], n_additions: 0 };

    /// Adds a finite number.
    pub(super) fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let fraction = bits & ((1 << FRACTION_BITS) - 1);
        let exponent = (bits >> FRACTION_BITS) as usize & 0x7ff;
        // A number that is not normal has the exponent of the least normal one, and no leading bit.
        let (significand, place) =
            if exponent == 0 { (fraction, 0) } else { (fraction | 1 << FRACTION_BITS, exponent - 1) };
        let shifted = u128::from(significand) << (place % 32);
        let sign = if value.is_sign_negative() { -1 } else { 1 };
        let first = (place / 32).min(N_CHUNKS - 3);
        for (index, chunk) in self.chunks[first..first + 3].iter_mut().enumerate() {
            *chunk += sign * i64::from((shifted >> (32 * index)) as u32);
        }
        self.n_additions += 1;
        if self.n_additions == ADDITIONS {
            self.carry();
        }
    }

    /// Adds another sum.
    pub(super) fn merge(&mut self, other: &ExactSum) {
        let mut other = other.clone();
        other.carry();
        self.carry();
        self.chunks.iter_mut().zip(&other.chunks).for_each(|(chunk, more)| *chunk += more);
        self.n_additions = 1;
    }

    /// Returns the sum, rounded to the nearest number; of two, to the even one.
    pub(super) fn value(&self) -> f64 {
        let mut magnitude = self.clone();
        magnitude.carry();
        let is_negative = magnitude.chunks[N_CHUNKS - 1] < 0;
        if is_negative {
            magnitude.chunks.iter_mut().for_each(|chunk| *chunk = -*chunk);
            magnitude.carry();
        }
        let value = rounded(&magnitude.chunks);
        if is_negative { -value } else { value }
    }

    /// Brings all chunks but the last into 0 to 2³² - 1; the last has the sign of the sum.
    fn carry(&mut self) {
        let mut carried = 0;
        let (others, last) = self.chunks.split_at_mut(N_CHUNKS - 1);
        for chunk in others {
            let sum = *chunk + carried;
            (*chunk, carried) = (sum & 0xffff_ffff, sum >> 32);
        }
        last[0] += carried;
        self.n_additions = 1;
    }
}

/// Returns the number nearest to a sum that is not negative, after its carries.
fn rounded(chunks: &[i64; N_CHUNKS]) -> f64 {
    let Some(highest) = chunks.iter().rposition(|chunk| *chunk != 0) else { return 0.0 };
    let chunk = |below: usize| highest.checked_sub(below).map_or(0, |index| chunks[index] as u128);
    // The highest 65 bits or more, and whether anything follows.
    let window = chunk(0) << 64 | chunk(1) << 32 | chunk(2);
    let has_rest = chunks[..highest.saturating_sub(2)].iter().any(|chunk| *chunk != 0);
    let n_bits = 128 - window.leading_zeros();
    // The place of the highest bit, in which 1 is 2⁻¹⁰⁷⁴; the window ends at chunk `highest - 2`.
    let place = (highest as u32 * 32 + n_bits - 1).saturating_sub(64);
    if place <= FRACTION_BITS {
        // All bits fit, and they are those of the number.
        return f64::from_bits((chunk(0) << (32 * highest) | chunk(1)) as u64);
    }
    let n_dropped = n_bits - (FRACTION_BITS + 1);
    let kept = (window >> n_dropped) as u64;
    let dropped = window & ((1 << n_dropped) - 1);
    let half = 1 << (n_dropped - 1);
    let is_up = dropped > half || (dropped == half && (has_rest || kept % 2 == 1));
    // The leading bit of the significand, and a carry out of it, count in the exponent.
    let exponent = u64::from(place - FRACTION_BITS);
    let bits = (exponent << FRACTION_BITS) + kept + u64::from(is_up);
    f64::from_bits(bits.min(f64::INFINITY.to_bits()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(values: &[f64]) -> ExactSum {
        let mut sum = ExactSum::ZERO;
        values.iter().for_each(|&value| sum.add(value));
        sum
    }

    proptest! {
        #[test]
        fn sums_are_those_of_integers(terms in prop::collection::vec((-(1_i64 << 53)..=1 << 53, 0_u32..60), 0..200), split in 0_usize..200) {
            // Integers of 128 bits are exact, too, and Rust rounds them to nearest, ties to even.
            let expected: i128 = terms.iter().map(|&(significand, shift)| i128::from(significand) << shift).sum();
            let values: Vec<f64> = terms.iter().map(|&(significand, shift)| significand as f64 * 2_f64.powi(shift as i32)).collect();
            prop_assert_eq!(sum(&values).value(), expected as f64);
            // In units of the least number, too, which are not normal numbers.
            let small: Vec<f64> = terms.iter().map(|&(significand, shift)| (significand >> 20) as f64 * 2_f64.powi(shift as i32 - 537) * 2_f64.powi(-537)).collect();
            let expected: i128 = terms.iter().map(|&(significand, shift)| i128::from(significand >> 20) << shift).sum();
            prop_assert_eq!(sum(&small).value(), expected as f64 * 2_f64.powi(-537) * 2_f64.powi(-537));
            let (first, second) = values.split_at(split.min(values.len()));
            let mut merged = sum(second);
            merged.merge(&sum(first));
            prop_assert_eq!(merged.value().to_bits(), sum(&values).value().to_bits());
        }

        #[test]
        fn one_number_is_itself(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            prop_assert_eq!(sum(&[value]).value(), value);
            prop_assert_eq!(sum(&[value, 1e300, -value, -1e300]).value().to_bits(), 0);
        }
    }

    #[test]
    fn ties_go_to_the_even_number_and_large_sums_to_infinity() {
        let half = f64::EPSILON / 2.0;
        assert_eq!(sum(&[1.0, half]).value(), 1.0);
        assert_eq!(sum(&[1.0, half, f64::from_bits(1)]).value(), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[1.0 + f64::EPSILON, half]).value(), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!(sum(&[f64::MAX, f64::MAX]).value(), f64::INFINITY);
        assert_eq!(sum(&[-f64::MAX, -f64::MAX]).value(), f64::NEG_INFINITY);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]).value(), f64::MAX);
    }

    #[test]
    fn carries_do_not_wait_too_long() {
        let mut sum = ExactSum::ZERO;
        sum.add(-1.0);
        sum.n_additions = ADDITIONS - 1;
        sum.add(3.0);
        assert_eq!((sum.value(), sum.n_additions), (2.0, 1));
    }
}
