//! The functions of formulas: their names, values, and first and second derivatives.
//!
//! Names are those of C, with `pow` for powers; `TMath::ASin`, `TMath::Power` and `std::sqrt` are
//! the same functions. Where a function has a kink, such as `abs` at zero or `max` of equal
//! numbers, its derivatives are those of one side.

use crate::interpolate::Jet;

/// A function of one operand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UnaryFunction {
    /// -x
    Negate,
    /// 1 where x is 0, and 0 elsewhere.
    Not,
    /// e^x
    Exp,
    /// The natural logarithm.
    Log,
    /// The logarithm to base 10.
    Log10,
    /// The square root.
    Sqrt,
    /// |x|
    Abs,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// The tangent.
    Tan,
    /// The inverse sine.
    Asin,
    /// The inverse cosine.
    Acos,
    /// The inverse tangent.
    Atan,
    /// The hyperbolic sine.
    Sinh,
    /// The hyperbolic cosine.
    Cosh,
    /// The hyperbolic tangent.
    Tanh,
    /// x to a constant power.
    Power(f64),
}

/// A function of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryFunction {
    /// a + b
    Add,
    /// a - b
    Subtract,
    /// a · b
    Multiply,
    /// a / b
    Divide,
    /// a^b
    Power,
    /// The smaller of both.
    Min,
    /// The larger of both.
    Max,
    /// The angle of the point (b, a).
    Atan2,
    /// 1 where a < b, and 0 elsewhere.
    Less,
    /// 1 where a ≤ b, and 0 elsewhere.
    LessOrEqual,
    /// 1 where a = b, and 0 elsewhere.
    Equal,
    /// 1 where a ≠ b, and 0 elsewhere.
    NotEqual,
    /// 1 where neither is 0, and 0 elsewhere.
    And,
    /// 1 where one is not 0, and 0 elsewhere.
    Or,
}

/// A value f(a, b) with its first and second derivatives.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BinaryJet {
    /// f
    pub value: f64,
    /// ∂f/∂a and ∂f/∂b
    pub first: [f64; 2],
    /// ∂²f/∂a², ∂²f/∂a∂b and ∂²f/∂b²
    pub second: [f64; 3],
}

/// Functions of one operand by name.
const UNARY: [(&str, UnaryFunction); 15] = [
    ("exp", UnaryFunction::Exp),
    ("log", UnaryFunction::Log),
    ("log10", UnaryFunction::Log10),
    ("sqrt", UnaryFunction::Sqrt),
    ("abs", UnaryFunction::Abs),
    ("fabs", UnaryFunction::Abs),
    ("sin", UnaryFunction::Sin),
    ("cos", UnaryFunction::Cos),
    ("tan", UnaryFunction::Tan),
    ("asin", UnaryFunction::Asin),
    ("acos", UnaryFunction::Acos),
    ("atan", UnaryFunction::Atan),
    ("sinh", UnaryFunction::Sinh),
    ("cosh", UnaryFunction::Cosh),
    ("tanh", UnaryFunction::Tanh),
];

/// Functions of two operands by name; `min` and `max` take more of them too.
const BINARY: [(&str, BinaryFunction); 5] = [
    ("pow", BinaryFunction::Power),
    ("power", BinaryFunction::Power),
    ("min", BinaryFunction::Min),
    ("max", BinaryFunction::Max),
    ("atan2", BinaryFunction::Atan2),
];

/// A function that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Named {
    Unary(UnaryFunction),
    Binary(BinaryFunction),
    /// A constant that is written as a function, such as `TMath::Pi()`.
    Constant(f64),
}

/// Returns the function called `name`, with or without a namespace.
pub(super) fn by_name(name: &str) -> Option<Named> {
    let bare = match name.split_once("::") {
        None => name.to_owned(),
        Some(("std", bare)) => bare.to_owned(),
        Some(("TMath", bare)) => match bare {
            "Pi" => return Some(Named::Constant(std::f64::consts::PI)),
            "E" => return Some(Named::Constant(std::f64::consts::E)),
            _ => bare.to_lowercase(),
        },
        Some(_) => return None,
    };
    let unary = UNARY.iter().find(|(known, _)| *known == bare).map(|(_, function)| Named::Unary(*function));
    unary.or_else(|| BINARY.iter().find(|(known, _)| *known == bare).map(|(_, function)| Named::Binary(*function)))
}

/// Returns the hint for a name that is no function's.
pub(super) fn similar(name: &str) -> Option<String> {
    let bare = name.rsplit("::").next().unwrap_or(name);
    crate::did_you_mean(bare, UNARY.iter().map(|(known, _)| *known).chain(BINARY.iter().map(|(known, _)| *known)))
}

impl UnaryFunction {
    /// Returns f(x).
    #[must_use]
    pub fn value(self, x: f64) -> f64 {
        match self {
            Self::Negate => -x,
            Self::Not => f64::from(x == 0.0),
            Self::Exp => x.exp(),
            Self::Log => x.ln(),
            Self::Log10 => x.log10(),
            Self::Sqrt => x.sqrt(),
            Self::Abs => x.abs(),
            Self::Sin => x.sin(),
            Self::Cos => x.cos(),
            Self::Tan => x.tan(),
            Self::Asin => x.asin(),
            Self::Acos => x.acos(),
            Self::Atan => x.atan(),
            Self::Sinh => x.sinh(),
            Self::Cosh => x.cosh(),
            Self::Tanh => x.tanh(),
            Self::Power(exponent) => x.powf(exponent),
        }
    }

    /// Returns f(x) with f'(x) and f''(x).
    #[must_use]
    pub fn jet(self, x: f64) -> Jet {
        let value = self.value(x);
        let [first, second] = match self {
            Self::Negate => [-1.0, 0.0],
            Self::Not => [0.0, 0.0],
            Self::Exp => [value, value],
            Self::Log => [1.0 / x, -1.0 / (x * x)],
            Self::Log10 => [1.0 / x, -1.0 / (x * x)].map(|derivative| derivative * std::f64::consts::LOG10_E),
            Self::Sqrt => [0.5 / value, -0.25 / (value * x)],
            Self::Abs => [if x == 0.0 { 0.0 } else { x.signum() }, 0.0],
            Self::Sin => [x.cos(), -value],
            Self::Cos => [-x.sin(), -value],
            Self::Tan => [1.0 + value * value, 2.0 * value * (1.0 + value * value)],
            Self::Asin => arc_sine(x),
            Self::Acos => arc_sine(x).map(|derivative| -derivative),
            Self::Atan => [1.0 / (1.0 + x * x), -2.0 * x / ((1.0 + x * x) * (1.0 + x * x))],
            Self::Sinh => [x.cosh(), value],
            Self::Cosh => [x.sinh(), value],
            Self::Tanh => hyperbolic_tangent(x, value),
            Self::Power(exponent) => power(x, exponent),
        };
        Jet { value, first, second }
    }
}

/// Returns the derivatives of the inverse sine. 1 - x² loses digits near ±1 where (1 - x)(1 + x)
/// does not.
fn arc_sine(x: f64) -> [f64; 2] {
    let square = (1.0 - x) * (1.0 + x);
    let first = 1.0 / square.sqrt();
    [first, x * first / square]
}

/// Returns the derivatives of the hyperbolic tangent, of value `value`. 1 - tanh² loses digits far
/// from zero where 1/cosh² does not.
fn hyperbolic_tangent(x: f64, value: f64) -> [f64; 2] {
    let first = x.cosh().powi(-2);
    [first, -2.0 * value * first]
}

/// Returns the derivatives of x^n for a constant n. A factor of zero makes them zero, also where
/// the power that is left is infinite.
fn power(x: f64, n: f64) -> [f64; 2] {
    let term = |factor: f64, exponent: f64| if factor == 0.0 { 0.0 } else { factor * x.powf(exponent) };
    [term(n, n - 1.0), term(n * (n - 1.0), n - 2.0)]
}

impl BinaryFunction {
    /// Returns f(a, b).
    #[must_use]
    pub fn value(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide => a / b,
            Self::Power => a.powf(b),
            // Both propagate NaN, which `f64::min` would hide.
            Self::Min => {
                if b < a || b.is_nan() {
                    b
                } else {
                    a
                }
            }
            Self::Max => {
                if b > a || b.is_nan() {
                    b
                } else {
                    a
                }
            }
            Self::Atan2 => a.atan2(b),
            Self::Less => condition(a, b, a < b),
            Self::LessOrEqual => condition(a, b, a <= b),
            Self::Equal => condition(a, b, a == b),
            Self::NotEqual => condition(a, b, a != b),
            Self::And => condition(a, b, a != 0.0 && b != 0.0),
            Self::Or => condition(a, b, a != 0.0 || b != 0.0),
        }
    }

    /// Returns f(a, b) with its derivatives.
    #[must_use]
    pub fn jet(self, a: f64, b: f64) -> BinaryJet {
        let value = self.value(a, b);
        let (first, second) = match self {
            Self::Add => ([1.0, 1.0], [0.0; 3]),
            Self::Subtract => ([1.0, -1.0], [0.0; 3]),
            Self::Multiply => ([b, a], [0.0, 1.0, 0.0]),
            Self::Divide => ([1.0 / b, -value / b], [0.0, -1.0 / (b * b), 2.0 * value / (b * b)]),
            Self::Power => general_power(a, b, value),
            Self::Min | Self::Max => {
                let is_second = value == b && value != a;
                ([f64::from(!is_second), f64::from(is_second)], [0.0; 3])
            }
            Self::Atan2 => angle(a, b),
            _ => ([0.0; 2], [0.0; 3]),
        };
        BinaryJet { value, first, second }
    }
}

fn condition(a: f64, b: f64, holds: bool) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { f64::from(holds) }
}

/// Returns the derivatives of a^b. At a = 0, where ln a is infinite, a^b ln a tends to zero for
/// b > 0.
fn general_power(a: f64, b: f64, value: f64) -> ([f64; 2], [f64; 3]) {
    let [by_a, by_a_twice] = power(a, b);
    if a == 0.0 && b > 0.0 {
        let mixed = if b > 1.0 { 0.0 } else { f64::NEG_INFINITY };
        return ([by_a, 0.0], [by_a_twice, mixed, 0.0]);
    }
    let log = a.ln();
    let mixed = a.powf(b - 1.0) * (1.0 + b * log);
    ([by_a, value * log], [by_a_twice, mixed, value * log * log])
}

/// Returns the derivatives of the angle of the point (x, y).
fn angle(y: f64, x: f64) -> ([f64; 2], [f64; 3]) {
    let square = x * x + y * y;
    let fourth = square * square;
    let mixed = (y - x) * (y + x) / fourth;
    ([x / square, -y / square], [-2.0 * x * y / fourth, mixed, 2.0 * x * y / fourth])
}
