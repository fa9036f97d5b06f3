//! What instructions compute, on the bits of their operands.

use crate::instruction::{Binary, CarryOperation, Comparison, Kind, Rounding, Ternary, Type, Unary};

fn f64_of(bits: u64) -> f64 {
    f64::from_bits(bits)
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn bits_of(value: f32) -> u64 {
    u64::from(value.to_bits())
}

/// Returns the value of a signed integer.
fn signed(of: Type, bits: u64) -> i64 {
    let unused = 64 - of.bits;
    ((bits << unused) as i64) >> unused
}

/// Replaces a subnormal number by zero.
fn flush(value: f32) -> f32 {
    if value.is_subnormal() { 0.0_f32.copysign(value) } else { value }
}

/// Computes an operation of one operand; None if the type has none.
pub(crate) fn unary(operation: Unary, of: Type, a: u64) -> Option<u64> {
    match (of.kind, of.bits) {
        (Kind::Float, 64) => unary_f64(operation, f64_of(a)).map(f64::to_bits),
        (Kind::Float, _) => unary_f32(operation, f32_of(a)).map(bits_of),
        _ => Some(of.cut(match operation {
            Unary::Abs => signed(of, a).unsigned_abs(),
            Unary::Neg => a.wrapping_neg(),
            Unary::Not => !a,
            Unary::CountLeadingZeros => u64::from(of.cut(a).leading_zeros() - (64 - of.bits)),
            _ => return None,
        })),
    }
}

fn unary_f64(operation: Unary, a: f64) -> Option<f64> {
    Some(match operation {
        Unary::Abs => a.abs(),
        Unary::Neg => -a,
        Unary::Sqrt => a.sqrt(),
        Unary::Reciprocal => 1.0 / a,
        Unary::ReciprocalApproximate => {
            // Of the upper 32 bits only, and zeros in the lower ones.
            let upper = f64::from_bits(a.to_bits() >> 32 << 32);
            let upper = if upper.is_subnormal() { 0.0_f64.copysign(upper) } else { upper };
            let value = 1.0 / upper;
            let value = if value.is_subnormal() { 0.0_f64.copysign(value) } else { value };
            if value.is_nan() { value } else { f64::from_bits(value.to_bits() >> 32 << 32) }
        }
        _ => return None,
    })
}

fn unary_f32(operation: Unary, a: f32) -> Option<f32> {
    Some(match operation {
        Unary::Abs => a.abs(),
        Unary::Neg => -a,
        Unary::Sqrt => a.sqrt(),
        Unary::Reciprocal => 1.0 / a,
        Unary::ReciprocalApproximate => flush(1.0 / flush(a)),
        Unary::Exp2Approximate => flush(f64::from(flush(a)).exp2() as f32),
        _ => return None,
    })
}

/// Computes an operation of two operands; None if the type has none.
pub(crate) fn binary(operation: Binary, of: Type, a: u64, b: u64) -> Option<u64> {
    match (of.kind, of.bits) {
        (Kind::Float, 64) => binary_f64(operation, f64_of(a), f64_of(b)).map(f64::to_bits),
        (Kind::Float, _) => binary_f32(operation, f32_of(a), f32_of(b)).map(bits_of),
        (Kind::Signed, _) => binary_signed(operation, of, a, b),
        _ => binary_unsigned(operation, of, a, b),
    }
}

/// Defines an operation of two operands on floats; None where they have no such operation.
macro_rules! float_operation {
    ($name:ident, $float:ty) => {
        fn $name(operation: Binary, a: $float, b: $float) -> Option<$float> {
            Some(match operation {
                Binary::Add => a + b,
                Binary::Sub => a - b,
                Binary::Mul => a * b,
                Binary::Div => a / b,
                Binary::Min => a.min(b),
                Binary::Max => a.max(b),
                _ => return None,
            })
        }
    };
}

float_operation!(binary_f64, f64);
float_operation!(binary_f32, f32);

fn binary_signed(operation: Binary, of: Type, a: u64, b: u64) -> Option<u64> {
    let (x, y) = (signed(of, a), signed(of, b));
    Some(of.cut(match operation {
        Binary::Min => x.min(y) as u64,
        Binary::Max => x.max(y) as u64,
        Binary::MulWide => return Some(wide(of).cut(x.wrapping_mul(y) as u64)),
        Binary::MulHigh => ((i128::from(x) * i128::from(y)) >> of.bits) as u64,
        Binary::ShiftRight => (x >> b.min(u64::from(of.bits) - 1)) as u64,
        Binary::Div | Binary::Rem => return None,
        // The same bits for signed and unsigned integers.
        _ => return binary_unsigned(operation, of, a, b),
    }))
}

fn binary_unsigned(operation: Binary, of: Type, a: u64, b: u64) -> Option<u64> {
    Some(of.cut(match operation {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::MulLow => a.wrapping_mul(b),
        Binary::MulHigh => ((u128::from(a) * u128::from(b)) >> of.bits) as u64,
        Binary::MulWide => return Some(wide(of).cut(a.wrapping_mul(b))),
        Binary::Div => a.checked_div(b)?,
        Binary::Rem => a.checked_rem(b)?,
        Binary::Min => a.min(b),
        Binary::Max => a.max(b),
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::ShiftLeft => {
            if b >= u64::from(of.bits) {
                0
            } else {
                a << b
            }
        }
        Binary::ShiftRight => {
            if b >= u64::from(of.bits) {
                0
            } else {
                a >> b
            }
        }
        Binary::Mul => return None,
    }))
}

/// Returns the type with twice as many bits.
fn wide(of: Type) -> Type {
    Type { bits: (2 * of.bits).min(64), ..of }
}

/// Computes an operation of three operands; None if the type has none.
pub(crate) fn ternary(operation: Ternary, of: Type, [a, b, c]: [u64; 3]) -> Option<u64> {
    match (operation, of.kind, of.bits) {
        (Ternary::Select, ..) => Some(of.cut(if c != 0 { a } else { b })),
        (Ternary::Fma | Ternary::FmaSubtract | Ternary::FmaNegate, Kind::Float, _) => {
            let a = if operation == Ternary::FmaNegate { unary(Unary::Neg, of, a)? } else { a };
            let c = if operation == Ternary::FmaSubtract { unary(Unary::Neg, of, c)? } else { c };
            Some(match of.bits {
                64 => f64_of(a).mul_add(f64_of(b), f64_of(c)).to_bits(),
                _ => bits_of(f32_of(a).mul_add(f32_of(b), f32_of(c))),
            })
        }
        (Ternary::FmaDown, Kind::Float, 32) => Some(bits_of(fma_down(f32_of(a), f32_of(b), f32_of(c)))),
        (Ternary::MadLow, Kind::Signed | Kind::Unsigned, _) => Some(of.cut(a.wrapping_mul(b).wrapping_add(c))),
        (Ternary::MadWide, Kind::Signed | Kind::Unsigned, _) => {
            let product = binary(Binary::MulWide, of, a, b)?;
            Some(wide(of).cut(product.wrapping_add(c)))
        }
        _ => None,
    }
}

/// Returns a·b + c, rounded downwards.
fn fma_down(a: f32, b: f32, c: f32) -> f32 {
    // The product is exact in double precision; the sum has an error that is known exactly.
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    let virtual_c = sum - product;
    let error = (product - (sum - virtual_c)) + (c - virtual_c);
    let nearest = sum as f32;
    let is_above = f64::from(nearest) > sum || (f64::from(nearest) == sum && error < 0.0);
    if is_above && nearest.is_finite() { nearest.next_down() } else { nearest }
}

/// A value of 32 bits, and the carry out of it.
pub(crate) struct CarriedValue {
    pub(crate) value: u64,
    pub(crate) carry: bool,
}

/// Computes an operation on 32 bits with a carry.
pub(crate) fn with_carry(operation: CarryOperation, operands: [u64; 3], carry: bool) -> CarriedValue {
    let carry = u64::from(carry);
    let word = Type { kind: Kind::Unsigned, bits: 32 };
    let [a, b, c] = operands.map(|operand| word.cut(operand));
    let sum = match operation {
        CarryOperation::Add => a + b + carry,
        CarryOperation::Sub => a.wrapping_sub(b).wrapping_sub(carry),
        CarryOperation::MadLow => word.cut(a * b) + c + carry,
        CarryOperation::MadHigh => ((a * b) >> 32) + c + carry,
    };
    CarriedValue { value: word.cut(sum), carry: sum >> 32 != 0 }
}

/// Returns whether a comparison holds.
pub(crate) fn compare(comparison: Comparison, of: Type, a: u64, b: u64) -> bool {
    let ordering = match (of.kind, of.bits) {
        (Kind::Float, 64) => f64_of(a).partial_cmp(&f64_of(b)),
        (Kind::Float, _) => f32_of(a).partial_cmp(&f32_of(b)),
        (Kind::Signed, _) => Some(signed(of, a).cmp(&signed(of, b))),
        _ => Some(a.cmp(&b)),
    };
    let Some(ordering) = ordering else {
        return matches!(
            comparison,
            Comparison::EqualOrNan
                | Comparison::NotEqualOrNan
                | Comparison::LessOrNan
                | Comparison::LessEqualOrNan
                | Comparison::GreaterOrNan
                | Comparison::GreaterEqualOrNan
                | Comparison::OneIsNan
        );
    };
    match comparison {
        Comparison::Equal | Comparison::EqualOrNan => ordering.is_eq(),
        Comparison::NotEqual | Comparison::NotEqualOrNan => ordering.is_ne(),
        Comparison::Less | Comparison::LessOrNan => ordering.is_lt(),
        Comparison::LessEqual | Comparison::LessEqualOrNan => ordering.is_le(),
        Comparison::Greater | Comparison::GreaterOrNan => ordering.is_gt(),
        Comparison::GreaterEqual | Comparison::GreaterEqualOrNan => ordering.is_ge(),
        Comparison::Numbers => true,
        Comparison::OneIsNan => false,
    }
}

/// Converts a value; None for types and roundings that are not known.
pub(crate) fn convert(to: Type, from: Type, rounding: Rounding, value: u64) -> Option<u64> {
    if from.kind != Kind::Float && to.kind != Kind::Float {
        let extended = if from.kind == Kind::Signed { signed(from, value) as u64 } else { value };
        return (rounding == Rounding::None).then(|| to.cut(extended));
    }
    if from.kind != Kind::Float {
        return integer_to_float(to, from, rounding, value);
    }
    let number = if from.bits == 64 { f64_of(value) } else { f64::from(f32_of(value)) };
    if number.is_nan() && from.bits == 64 && to.kind != Kind::Float {
        return Some(1 << (to.bits - 1));
    }
    let rounded = match rounding {
        Rounding::None | Rounding::Nearest => number,
        Rounding::NearestInteger => number.round_ties_even(),
        Rounding::Down => number.floor(),
        Rounding::TowardsZero => number.trunc(),
        Rounding::Saturate => {
            if number.is_nan() {
                0.0
            } else {
                number.clamp(0.0, 1.0)
            }
        }
    };
    match (to.kind, to.bits) {
        (Kind::Float, 64) => Some(rounded.to_bits()),
        (Kind::Float, 32) => Some(bits_of(rounded as f32)),
        // The conversions of Rust saturate, as PTX's do, and give 0 for a NaN, as PTX's of `.f32`.
        (Kind::Signed, 32) => Some(to.cut(i64::from(rounded as i32) as u64)),
        (Kind::Unsigned, 32) => Some(u64::from(rounded as u32)),
        _ => None,
    }
}

fn integer_to_float(to: Type, from: Type, rounding: Rounding, value: u64) -> Option<u64> {
    if rounding != Rounding::Nearest {
        return None;
    }
    Some(match (to.bits, from.kind) {
        (64, Kind::Signed) => (signed(from, value) as f64).to_bits(),
        (64, _) => (value as f64).to_bits(),
        (_, Kind::Signed) => bits_of(signed(from, value) as f32),
        _ => bits_of(value as f32),
    })
}

/// Inserts the low `length` bits of `a` into `b` at `start`.
pub(crate) fn insert_bits(of: Type, [a, b, start, length]: [u64; 4]) -> u64 {
    let (start, length) = (start & 0xff, length & 0xff);
    if length == 0 || start >= u64::from(of.bits) {
        return b;
    }
    let ones = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    let mask = of.cut(ones << start);
    of.cut((b & !mask) | ((a << start) & mask))
}
