//! The number types of the reference implementation: f64, and second-order dual numbers that carry
//! derivatives.
//!
//! [`HyperDual`] holds a value, a gradient and a Hessian with respect to chosen directions and
//! propagates them exactly through sums, products and functions with known derivatives. It is for
//! tests and for checking, not for speed.

use crate::interpolate::Jet;
use std::ops::{Add, Mul};

/// A number that can be added, multiplied, and put through a function whose derivatives are known.
pub trait Scalar: Clone + From<f64> + Add<Output = Self> + Mul<Output = Self> {
    /// Returns the plain value.
    fn value(&self) -> f64;

    /// Returns f(self), given value and derivatives of f at [`Scalar::value`].
    #[must_use]
    fn chain(&self, f: Jet) -> Self;

    /// Returns whether all of its derivatives are zero.
    fn is_constant(&self) -> bool;
}

impl Scalar for f64 {
    fn value(&self) -> f64 {
        *self
    }

    fn chain(&self, f: Jet) -> Self {
        f.value
    }

    fn is_constant(&self) -> bool {
        true
    }
}

/// A value with its gradient (n) and Hessian (n × n, row by row); constants have empty ones.
#[derive(Debug, Clone, PartialEq)]
pub struct HyperDual {
    /// The value.
    pub value: f64,
    /// First derivatives (n), or empty for a constant.
    pub gradient: Vec<f64>,
    /// Second derivatives (n × n), or empty for a constant.
    pub hessian: Vec<f64>,
}

impl HyperDual {
    /// Returns independent variables at `point` (n), each with respect to all of them.
    #[must_use]
    pub fn variables(point: &[f64]) -> Vec<Self> {
        let n = point.len();
        let unit = |i: usize| (0..n).map(|j| f64::from(i == j)).collect();
        let variable = |(i, &value)| Self { value, gradient: unit(i), hessian: vec![0.0; n * n] };
        point.iter().enumerate().map(variable).collect()
    }
}

impl From<f64> for HyperDual {
    fn from(value: f64) -> Self {
        Self { value, gradient: Vec::new(), hessian: Vec::new() }
    }
}

fn add_scaled(a: &[f64], a_scale: f64, b: &[f64], b_scale: f64) -> Vec<f64> {
    match (a.is_empty(), b.is_empty()) {
        (_, true) => a.iter().map(|x| x * a_scale).collect(),
        (true, _) => b.iter().map(|x| x * b_scale).collect(),
        _ => a.iter().zip(b).map(|(x, y)| x * a_scale + y * b_scale).collect(),
    }
}

/// Adds scale · (a bᵀ + b aᵀ) to `hessian`.
fn add_symmetric_product(hessian: &mut [f64], scale: f64, a: &[f64], b: &[f64]) {
    for (i, row) in hessian.chunks_mut(a.len().max(1)).enumerate() {
        for (j, h) in row.iter_mut().enumerate() {
            *h += scale * (a[i] * b[j] + b[i] * a[j]);
        }
    }
}

impl Add for HyperDual {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            gradient: add_scaled(&self.gradient, 1.0, &other.gradient, 1.0),
            hessian: add_scaled(&self.hessian, 1.0, &other.hessian, 1.0),
        }
    }
}

impl Mul for HyperDual {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let mut hessian = add_scaled(&self.hessian, other.value, &other.hessian, self.value);
        if !self.gradient.is_empty() && !other.gradient.is_empty() {
            add_symmetric_product(&mut hessian, 1.0, &self.gradient, &other.gradient);
        }
        Self {
            value: self.value * other.value,
            gradient: add_scaled(&self.gradient, other.value, &other.gradient, self.value),
            hessian,
        }
    }
}

impl Scalar for HyperDual {
    fn value(&self) -> f64 {
        self.value
    }

    fn chain(&self, f: Jet) -> Self {
        let mut hessian = add_scaled(&self.hessian, f.first, &[], 0.0);
        add_symmetric_product(&mut hessian, f.second / 2.0, &self.gradient, &self.gradient);
        Self { value: f.value, gradient: add_scaled(&self.gradient, f.first, &[], 0.0), hessian }
    }

    fn is_constant(&self) -> bool {
        self.gradient.iter().chain(&self.hessian).all(|&derivative| derivative == 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_of_a_product_and_a_chain_are_exact() {
        // f = (x y) squared at (2, 3): f = 36, gradient (2 x y², 2 x² y) = (36, 24), Hessian (2y²,
        // 4xy; 4xy, 2x²)
        let v = HyperDual::variables(&[2.0, 3.0]);
        let product = v[0].clone() * v[1].clone();
        let squared = product.chain(Jet { value: 36.0, first: 12.0, second: 2.0 });
        assert_eq!(squared.gradient, [36.0, 24.0]);
        assert_eq!(squared.hessian, [18.0, 24.0, 24.0, 8.0]);
    }

    #[test]
    fn constants_have_no_derivatives() {
        let v = HyperDual::variables(&[2.0]);
        let scaled = v[0].clone() * HyperDual::from(3.0) + HyperDual::from(1.0);
        assert_eq!((scaled.value, scaled.gradient, scaled.hessian), (7.0, vec![3.0], vec![0.0]));
    }
}
