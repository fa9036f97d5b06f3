//! Counter-based random numbers: the same key and counter give the same numbers, in any order and
//! on any thread.
//!
//! Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC '11, "Parallel random numbers: as easy as 1, 2,
//! 3").

/// Returns four random 32-bit words for `counter` under `key`.
///
/// ```
/// use ns_inference::random::philox;
/// // the generator's published test vector
/// assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
/// ```
#[must_use]
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
    const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
    for _ in 0..10 {
        let product = |i: usize| u64::from(MULTIPLIERS[i]) * u64::from(counter[2 * i]);
        let (p0, p1) = (product(0), product(1));
        counter =
            [(p1 >> 32) as u32 ^ counter[1] ^ key[0], p1 as u32, (p0 >> 32) as u32 ^ counter[3] ^ key[1], p0 as u32];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// Returns a number in (0, 1) for element `index` of stream `stream` under `seed`, from 52 random
/// bits.
#[must_use]
pub fn uniform(seed: u64, stream: u64, index: u64) -> f64 {
    let counter = [index as u32, (index >> 32) as u32, stream as u32, (stream >> 32) as u32];
    let words = philox(counter, [seed as u32, (seed >> 32) as u32]);
    let bits = (u64::from(words[0]) << 20) | u64::from(words[1] >> 12);
    (bits as f64 + 0.5) / (1_u64 << 52) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_the_published_generator() {
        let ones = u32::MAX;
        assert_eq!(philox([ones; 4], [ones; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        assert_eq!(philox(pi, [0xa409_3822, 0x299f_31d0]), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn uniforms_have_the_mean_and_variance_of_uniforms() {
        let n = 20_000;
        let values: Vec<f64> = (0..n).map(|i| uniform(7, 1, i)).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.01 && (variance - 1.0 / 12.0).abs() < 0.002);
        assert_ne!(uniform(7, 1, 0), uniform(8, 1, 0));
    }
}
