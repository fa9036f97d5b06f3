//! Derivatives of activations in single precision, for loops that the compiler makes vectors of.

use super::{ComputedStep, Real, add_each, times};
use crate::encoder::graph::Unary;
use crate::encoder::kernels::elementwise::map1;
use crate::encoder::kernels::functions::{Erf, Exp, Function, Sigmoid, apply};
use crate::encoder::tensor::View;
use crate::simd::{Body, InstructionSet, Simd, dispatch};

/// Φ(x) + x·φ(x), the derivative of x·Φ(x).
struct GeluDerivative;
/// The derivative of x·σ(2u) with u = √(2/π)·(x + 0.044715·x³).
struct GeluTanhDerivative;
/// σ(x)·(1 + x·σ(-x)), the derivative of x·σ(x).
struct SiluDerivative;

impl Function for GeluDerivative {
    #[inline(always)]
    fn of<S: Simd>(simd: S, x: f32) -> f32 {
        const DENSITY: f32 = 0.398_942_3;
        let below = 0.5 * (1.0 + Erf::of(simd, x * std::f32::consts::FRAC_1_SQRT_2));
        below + x * DENSITY * Exp::of(simd, -0.5 * x * x)
    }
}

impl Function for GeluTanhDerivative {
    #[inline(always)]
    fn of<S: Simd>(simd: S, x: f32) -> f32 {
        const FACTOR: f32 = 1.595_769;
        let inner = FACTOR * (x + 0.044_715 * x * x * x);
        let (above, below) = (Sigmoid::of(simd, inner), Sigmoid::of(simd, -inner));
        let derivative = FACTOR * (1.0 + 3.0 * 0.044_715 * x * x);
        // Far from 0 the last product is 0 times a large number, or infinity.
        if below * above == 0.0 { above } else { above + x * above * below * derivative }
    }
}

impl Function for SiluDerivative {
    #[inline(always)]
    fn of<S: Simd>(simd: S, x: f32) -> f32 {
        let (above, below) = (Sigmoid::of(simd, x), Sigmoid::of(simd, -x));
        if below == 0.0 { above } else { above * (1.0 + x * below) }
    }
}

/// Replaces numbers by derivatives.
struct Derivatives<'a> {
    unary: Unary,
    values: &'a [f32],
    view: &'a View,
    out: &'a mut [f32],
}

impl Body for Derivatives<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Derivatives { unary, values, view, out } = self;
        map1(values, view, out, |x| x);
        match unary {
            Unary::Gelu => apply::<GeluDerivative, S>(simd, out),
            Unary::GeluTanh => apply::<GeluTanhDerivative, S>(simd, out),
            _ => apply::<SiluDerivative, S>(simd, out),
        }
    }
}

/// Returns whether there are vectors of the derivative of a function.
pub(super) fn is_known(unary: Unary) -> bool {
    matches!(unary, Unary::Gelu | Unary::GeluTanh | Unary::Silu)
}

/// Adds the gradient with respect to the argument of an activation.
pub(super) fn add(isa: InstructionSet, unary: Unary, step: &ComputedStep<'_>, to: &mut [f32]) {
    let (values, view) = step.args[0].f32();
    let gradient = f32::numbers(step.gradient.borrow());
    let mut derivatives = vec![0.0; step.out_view.len()];
    dispatch(isa, Derivatives { unary, values, view, out: &mut derivatives });
    add_each(to, view, |place| times(gradient[place], derivatives[place]));
}
