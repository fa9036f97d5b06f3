//! Every instruction set against plain arrays, bit by bit, and sums against the order that they are
//! defined in.

use super::*;

#[test]
fn every_half_precision_number_is_converted_exactly() {
    for bits in 0..=u16::MAX {
        let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
        let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
        let expected = match exponent {
            0 => sign * fraction * 2f64.powi(-24),
            31 if fraction == 0.0 => sign * f64::INFINITY,
            31 => f64::NAN,
            _ => sign * (1024.0 + fraction) * 2f64.powi(exponent - 25),
        };
        let got = f64::from(half(bits));
        assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(), "{bits:04x}: {got}");
    }
}

/// Returns the bits to compare: the same for every NaN.
pub(crate) fn bits(lanes: [f32; LANES]) -> [u32; LANES] {
    lanes.map(|lane| if lane.is_nan() { f32::NAN.to_bits() } else { lane.to_bits() })
}

/// Returns random bytes.
pub(crate) fn random_bytes<const N: usize>(state: &mut u64) -> [u8; N] {
    std::array::from_fn(|_| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 56) as u8
    })
}

struct Loads([u8; 64]);
impl Body for Loads {
    type Output = Vec<[u32; LANES]>;
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Loads(bytes) = self;
        let (halves, codes) = (bytes.as_chunks::<32>().0, bytes.as_chunks::<LANES>().0);
        let word = u16::from_le_bytes([bytes[0], bytes[1]]);
        let (numbers, others, ones) = (simd.numbers(&codes[1]), simd.numbers(&codes[2]), simd.number_of_bits(word));
        let mut vectors = vec![simd.load_f32(&bytes), simd.load_f16(&halves[0]), simd.load_bf16(&halves[1])];
        vectors.extend([simd.load_i8(&codes[3]), simd.splat_half(word), simd.splat(simd.half1(word))]);
        let other = u16::from_le_bytes([bytes[2], bytes[3]]);
        vectors.extend([simd.load_u8(&codes[3]), simd.splat_halves([word, other])]);
        for (zero, offset) in
            [(Zero::First, Some(0.3)), (Zero::First, None), (Zero::Eighth, None), (Zero::Eighth, Some(7e5))]
        {
            let line = |factor| {
                simd.table(Line { factor: simd.splat(factor), zero, offset: offset.map(|offset| simd.splat(offset)) })
            };
            vectors.extend(simd.look_up(&codes[0], line(0.6875), line(-1.3e3)));
        }
        for right in 0..8 {
            let low = simd.bits_of(numbers, right, 15);
            vectors.push(simd.joined(low, simd.bits_of(others, right, 3), 32));
            vectors.push(simd.joined(simd.bits_of(numbers, right, 3), simd.bits_of(others, right, 1), 0));
            vectors.push(simd.joined(low, ones, 16));
        }
        vectors.iter().map(|vector| bits(simd.lanes(*vector))).collect()
    }
}

#[test]
fn every_instruction_set_reads_the_same_numbers() {
    let mut state = 1;
    for round in 0..2000 {
        let bytes = random_bytes(&mut state);
        let plain = dispatch(InstructionSet::Baseline, Loads(bytes));
        assert_eq!(plain.len(), 40);
        for isa in InstructionSet::available() {
            let found = dispatch(isa, Loads(bytes));
            assert!(found == plain, "{isa:?}, round {round}: {bytes:?}");
        }
    }
}

struct Halves;
impl Body for Halves {
    type Output = Vec<u32>;
    fn run<S: Simd>(self, simd: S) -> Vec<u32> {
        (0..=u16::MAX).map(|word| bits([simd.half1(word); LANES])[0]).collect()
    }
}

#[test]
fn every_instruction_set_widens_half_precision_alike() {
    for isa in InstructionSet::available() {
        assert!(dispatch(isa, Halves) == dispatch(InstructionSet::Baseline, Halves), "{isa:?}");
    }
}

struct Sums([[f32; LANES]; 4]);
impl Body for Sums {
    type Output = [u32; 12];
    fn run<S: Simd>(self, simd: S) -> [u32; 12] {
        let vectors = self.0.map(|vector| simd.load(&vector));
        let [a, b, c, d] = vectors;
        let mixed = simd.sum4([simd.add(a, b), simd.mul(b, c), simd.add(c, d), simd.mul(d, a)]);
        let (apart, together) = (vectors.map(|vector| simd.sum(vector)), simd.sum4(vectors));
        let mut sums = [apart, together, mixed].into_iter().flatten();
        std::array::from_fn(|_| sums.next().map_or(0, f32::to_bits))
    }
}

/// Returns the sum of lanes by its definition.
fn halved(lanes: &[f32]) -> f32 {
    let (low, high) = lanes.split_at(lanes.len() / 2);
    let sums: Vec<f32> = low.iter().zip(high).map(|(low, high)| low + high).collect();
    if sums.len() == 1 { sums[0] } else { halved(&sums) }
}

#[test]
fn every_instruction_set_adds_lanes_in_the_same_order() {
    let mut state = 2;
    for _ in 0..2000 {
        // Signs, and exponents far enough from each other that another order has another rounding.
        let vectors: [[f32; LANES]; 4] = std::array::from_fn(|_| {
            std::array::from_fn(|_| {
                let [a, b, c, d] = random_bytes(&mut state);
                f32::from_le_bytes([a, b, c, d & 0x83 | 0x3c])
            })
        });
        let expected = vectors.map(|vector| halved(&vector).to_bits());
        let plain = dispatch(InstructionSet::Baseline, Sums(vectors));
        for isa in InstructionSet::available() {
            let found = dispatch(isa, Sums(vectors));
            assert_eq!(found[..8], [expected, expected].concat(), "{isa:?}");
            assert_eq!(found, plain, "{isa:?}");
        }
    }
}
