//! Numbers with their first and second derivative along one line.
//!
//! If parameters move along θ + εv, a function of them that is computed with [`Taylor`] numbers has
//! exact derivatives d/dε and d²/dε² at ε = 0. Applied to a gradient, these are the product of the
//! Hessian with v, and the third derivatives contracted twice with v.

use crate::interpolate::Jet;
use crate::scalar::Scalar;
use std::ops::{Add, Mul};

/// f(ε) near ε = 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Taylor {
    /// f(0)
    pub value: f64,
    /// f'(0)
    pub first: f64,
    /// f''(0)
    pub second: f64,
}

impl Taylor {
    /// Returns start + ε·derivative.
    #[must_use]
    pub fn line(start: f64, derivative: f64) -> Self {
        Self { value: start, first: derivative, second: 0.0 }
    }
}

impl From<f64> for Taylor {
    fn from(value: f64) -> Self {
        Self { value, ..Self::default() }
    }
}

impl Add for Taylor {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { value: self.value + other.value, first: self.first + other.first, second: self.second + other.second }
    }
}

impl Mul for Taylor {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self {
            value: self.value * other.value,
            first: self.first * other.value + self.value * other.first,
            second: self.second * other.value + 2.0 * self.first * other.first + self.value * other.second,
        }
    }
}

impl Scalar for Taylor {
    fn value(&self) -> f64 {
        self.value
    }

    fn chain(&self, f: Jet) -> Self {
        Self {
            value: f.value,
            first: f.first * self.first,
            second: f.second * self.first * self.first + f.first * self.second,
        }
    }

    fn is_constant(&self) -> bool {
        self.first == 0.0 && self.second == 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_chains_keep_both_derivatives() {
        // f = exp((2 + 3ε)²): f = e⁴, f' = 12 e⁴, f'' = (18 + 144) e⁴
        let x = Taylor::line(2.0, 3.0);
        let e4 = 4.0_f64.exp();
        let f = (x * x).chain(Jet { value: e4, first: e4, second: e4 });
        assert_eq!((f.value, f.first, f.second), (e4, 12.0 * e4, 162.0 * e4));
    }
}
