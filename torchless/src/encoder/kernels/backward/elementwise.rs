//! Derivatives of one number with respect to another: arithmetic, functions, choices.

use super::{ComputedStep, NoGradient, Real, Runs, add_each, at, times};
use crate::encoder::graph::{Binary, Unary};
use crate::encoder::kernels::Pair;
use crate::encoder::tensor::View;

/// Adds term(i, own, other) to element i of `own`, where `other` has the same shape.
#[inline(always)]
fn add_pairs<T: Real>(to: &mut [T], own: Pair<'_, T>, other: Pair<'_, T>, term: impl Fn(usize, T, T) -> T) {
    let ((own, own_view), (other, other_view)) = (own, other);
    let mut done = 0;
    Runs::of([own_view, other_view]).each(|[place, beside], [spacing, step], length| {
        match (spacing, step) {
            (1, 1) => {
                let pairs = own[place..][..length].iter().zip(&other[beside..][..length]);
                let all = to[place..][..length].iter_mut().zip(pairs).enumerate();
                all.for_each(|(index, (to, (own, other)))| *to += term(done + index, *own, *other));
            }
            (1, 0) => {
                let other = other[beside];
                let all = to[place..][..length].iter_mut().zip(&own[place..][..length]).enumerate();
                all.for_each(|(index, (to, own))| *to += term(done + index, *own, other));
            }
            _ => {
                for index in 0..length {
                    let here = at(place, spacing, index);
                    to[here] += term(done + index, own[here], other[at(beside, step, index)]);
                }
            }
        }
        done += length;
    });
}

/// Adds the gradient with respect to one operand.
pub(super) fn binary<T: Real>(
    binary: Binary,
    step: &ComputedStep<'_>,
    index: usize,
    to: &mut [T],
) -> Result<(), NoGradient> {
    let (own, other) = (T::pair(&step.args[index]), T::pair(&step.args[1 - index]));
    let (gradient, out) = (T::numbers(step.gradient.borrow()), T::numbers(step.out));
    let is_first = index == 0;
    let half = T::of(0.5);
    // A larger or smaller number, or one of two equal ones.
    let chosen = |gradient: T, is_own: bool, is_equal: bool| match (is_own, is_equal) {
        (_, true) => gradient * half,
        (true, _) => gradient,
        (false, _) => T::default(),
    };
    match binary {
        Binary::Add => add_each(to, own.1, |i| gradient[i]),
        Binary::Sub if is_first => add_each(to, own.1, |i| gradient[i]),
        Binary::Sub => add_each(to, own.1, |i| -gradient[i]),
        Binary::Mul => add_pairs(to, own, other, |i, _, other| times(gradient[i], other)),
        Binary::Div if is_first => add_pairs(to, own, other, |i, _, other| times(gradient[i], T::of(1.0) / other)),
        Binary::Div => add_pairs(to, own, other, |i, own, _| times(gradient[i], -out[i] / own)),
        Binary::Max => add_pairs(to, own, other, |i, own, other| chosen(gradient[i], own > other, own == other)),
        Binary::Min => add_pairs(to, own, other, |i, own, other| chosen(gradient[i], own < other, own == other)),
        Binary::Atan2 => {
            let sign = T::of(if is_first { 1.0 } else { -1.0 });
            let derivative = |own: T, other: T| sign * other / (own * own + other * other);
            add_pairs(to, own, other, |i, own, other| times(gradient[i], derivative(own, other)));
        }
        Binary::Pow if is_first => add_pairs(to, own, other, |i, own, other| times(gradient[i], of_base(own, other))),
        Binary::Pow => add_pairs(to, own, other, |i, own, other| times(gradient[i], of_exponent(other, own, out[i]))),
        Binary::Mod { .. } if is_first => add_each(to, own.1, |i| gradient[i]),
        Binary::Mod { follows_dividend } => {
            let whole = |quotient: f64| if follows_dividend { quotient.trunc() } else { quotient.floor() };
            let derivative = |own: T, other: T| T::of(-whole((other / own).wide()));
            add_pairs(to, own, other, |i, own, other| times(gradient[i], derivative(own, other)));
        }
        _ => return Err(NoGradient::Unknown),
    }
    Ok(())
}

/// Returns d(aᵇ)/da.
fn of_base<T: Real>(base: T, exponent: T) -> T {
    let (base, exponent) = (base.wide(), exponent.wide());
    T::of(match exponent {
        0.0 => 0.0,
        1.0 => 1.0,
        2.0 => 2.0 * base,
        0.5 => 0.5 / base.sqrt(),
        _ => exponent * base.powf(exponent - 1.0),
    })
}

/// Returns d(aᵇ)/db of a power: 0 of a base 0, whose powers are all 0.
fn of_exponent<T: Real>(base: T, exponent: T, power: T) -> T {
    match base.wide() {
        0.0 if exponent >= T::default() => T::default(),
        base => power * T::of(base.ln()),
    }
}

/// Adds the gradient with respect to the argument of a function.
pub(super) fn unary<T: Real>(unary: Unary, step: &ComputedStep<'_>, to: &mut [T]) {
    let own = T::pair(&step.args[0]);
    let (gradient, out) = (T::numbers(step.gradient.borrow()), T::numbers(step.out));
    match unary {
        Unary::Neg => add_each(to, own.1, |i| -gradient[i]),
        Unary::Relu => add_pairs(to, own, own, |i, x, _| if x > T::default() { gradient[i] } else { T::default() }),
        _ => {
            let derivative = |x: T, y: T| T::of(derivative(unary, x.wide(), y.wide()));
            add_pairs(to, own, own, |i, x, _| times(gradient[i], derivative(x, out[i])));
        }
    }
}

/// Returns the derivative of a function at x, where its value is y.
fn derivative(unary: Unary, x: f64, y: f64) -> f64 {
    use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, FRAC_2_SQRT_PI};
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    match unary {
        Unary::Abs if x == 0.0 => 0.0,
        Unary::Abs => x.signum(),
        Unary::Atan => 1.0 / (1.0 + x * x),
        Unary::Cos => -x.sin(),
        Unary::Erf => FRAC_2_SQRT_PI * (-x * x).exp(),
        Unary::Exp => y,
        // Φ(x) + x·φ(x).
        Unary::Gelu => {
            let density = 0.5 * FRAC_1_SQRT_2 * FRAC_2_SQRT_PI * (-0.5 * x * x).exp();
            0.5 * libm::erfc(-x * FRAC_1_SQRT_2) + x * density
        }
        Unary::GeluTanh => {
            let u = FRAC_2_PI.sqrt() * (x + 0.044715 * x * x * x);
            let t = u.tanh();
            0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * FRAC_2_PI.sqrt() * (1.0 + 3.0 * 0.044715 * x * x)
        }
        Unary::Log => 1.0 / x,
        Unary::Neg => -1.0,
        Unary::Reciprocal => -y * y,
        Unary::Relu => f64::from(u8::from(x > 0.0)),
        Unary::Sigmoid => y * (1.0 - y),
        Unary::Silu => sigmoid(x) * (1.0 + x * sigmoid(-x)),
        Unary::Sin => x.cos(),
        Unary::Softplus => sigmoid(x),
        Unary::Sqrt => 0.5 / y,
        Unary::Tanh => 1.0 - y * y,
        Unary::Ceil | Unary::Floor | Unary::Sign | Unary::IsNan | Unary::Not => 0.0,
    }
}

/// Adds the gradient where a condition chose the first, or the second, of two values.
pub(super) fn choose<T: Real>(
    (condition, condition_view): (&[i64], &View),
    is_first: bool,
    (to, view): (&mut [T], &View),
    gradient: &[T],
) {
    let mut done = 0;
    Runs::of([view, condition_view]).each(|[place, choice], [spacing, step], length| {
        for index in 0..length {
            let holds = condition[at(choice, step, index)] != 0;
            to[at(place, spacing, index)] += if holds == is_first { gradient[done + index] } else { T::default() };
        }
        done += length;
    });
}

/// Adds the gradient with respect to a number that is clipped: 1 where clipping does not change it.
pub(super) fn clip<T: Real>(step: &ComputedStep<'_>, index: usize, to: &mut [T]) -> Result<(), NoGradient> {
    if index != 0 {
        return Err(NoGradient::Unknown);
    }
    let own = T::pair(&step.args[0]);
    let (gradient, out) = (T::numbers(step.gradient.borrow()), T::numbers(step.out));
    add_pairs(to, own, own, |i, x, _| if x == out[i] { gradient[i] } else { T::default() });
    Ok(())
}
