//! First derivatives of the functions of formulas for any number type, written in terms of the
//! functions themselves: differentiating them again needs no further table.

use super::function::{BinaryFunction, UnaryFunction};
use super::tape::{has_constant_exponent, unary as apply};
use crate::scalar::Scalar;

/// Returns f'(x); `value` is f(x).
pub(super) fn unary<S: Scalar + Copy>(function: UnaryFunction, x: S, value: S) -> S {
    let one = S::from(1.0);
    let minus = |x: S| apply(UnaryFunction::Negate, &x);
    let power = |x: S, exponent: f64| apply(UnaryFunction::Power(exponent), &x);
    // (1 - x²)^-1/2, factorised as 1 - x² loses digits near ±1.
    let arc_sine = |x: S| power((one + minus(x)) * (one + x), -0.5);
    match function {
        UnaryFunction::Negate => S::from(-1.0),
        UnaryFunction::Not => S::from(0.0),
        UnaryFunction::Exp => value,
        UnaryFunction::Log => power(x, -1.0),
        UnaryFunction::Log10 => power(x, -1.0) * S::from(std::f64::consts::LOG10_E),
        UnaryFunction::Sqrt => power(value, -1.0) * S::from(0.5),
        UnaryFunction::Abs => S::from(function.jet(x.value()).first),
        UnaryFunction::Sin => apply(UnaryFunction::Cos, &x),
        UnaryFunction::Cos => minus(apply(UnaryFunction::Sin, &x)),
        UnaryFunction::Tan => one + value * value,
        UnaryFunction::Asin => arc_sine(x),
        UnaryFunction::Acos => minus(arc_sine(x)),
        UnaryFunction::Atan => power(one + x * x, -1.0),
        UnaryFunction::Sinh => apply(UnaryFunction::Cosh, &x),
        UnaryFunction::Cosh => apply(UnaryFunction::Sinh, &x),
        UnaryFunction::Tanh => {
            // 4e/(1 + e)² with e = exp(-2|x|), which no x makes infinite.
            let e = apply(UnaryFunction::Exp, &(x * S::from(-2.0_f64.copysign(x.value()))));
            S::from(4.0) * e * power(one + e, -2.0)
        }
        UnaryFunction::Power(0.0) => S::from(0.0),
        UnaryFunction::Power(exponent) => power(x, exponent - 1.0) * S::from(exponent),
    }
}

/// Returns ∂f/∂a and ∂f/∂b of `operands` a and b; `value` is f(a, b).
pub(super) fn binary<S: Scalar + Copy>(function: BinaryFunction, operands: [S; 2], value: S) -> [S; 2] {
    let [a, b] = operands;
    let minus = |x: S| apply(UnaryFunction::Negate, &x);
    let inverse = |x: S| apply(UnaryFunction::Power(-1.0), &x);
    match function {
        BinaryFunction::Add => [1.0, 1.0].map(S::from),
        BinaryFunction::Subtract => [1.0, -1.0].map(S::from),
        BinaryFunction::Multiply => [b, a],
        BinaryFunction::Divide => [inverse(b), minus(value * inverse(b))],
        BinaryFunction::Power if has_constant_exponent(&a, &b) => {
            let by_a = b * apply(UnaryFunction::Power(b.value() - 1.0), &a);
            [by_a, if a.value() == 0.0 { S::from(0.0) } else { value * apply(UnaryFunction::Log, &a) }]
        }
        BinaryFunction::Power => [b * value * inverse(a), value * apply(UnaryFunction::Log, &a)],
        BinaryFunction::Atan2 => {
            let inverse_square = inverse(a * a + b * b);
            [b * inverse_square, minus(a * inverse_square)]
        }
        // These are constants on either side of their kinks and steps.
        BinaryFunction::Min
        | BinaryFunction::Max
        | BinaryFunction::Less
        | BinaryFunction::LessOrEqual
        | BinaryFunction::Equal
        | BinaryFunction::NotEqual
        | BinaryFunction::And
        | BinaryFunction::Or => function.jet(a.value(), b.value()).first.map(S::from),
    }
}
