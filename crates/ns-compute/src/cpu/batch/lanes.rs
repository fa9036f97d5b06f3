//! Eight numbers, one of each point of a group, and the arithmetic on them.
//!
//! Plain loops over a fixed-size array, which the compiler turns into vector instructions of the
//! body's instruction set. No lane ever meets another one, so a point's result is the same to the
//! bit whatever the other lanes contain.

use crate::cpu::isa::Isa;
use std::ops::{Add, Mul};

/// Points that are evaluated together.
pub(crate) const LANES: usize = 8;

/// One number of each point, aligned to a cache line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub(crate) [f64; LANES]);

impl Lanes {
    pub(crate) const ZERO: Self = Self([0.0; LANES]);
    pub(crate) const ONE: Self = Self([1.0; LANES]);

    /// Returns `x` in every lane.
    #[inline(always)]
    pub(crate) fn all(x: f64) -> Self {
        Self([x; LANES])
    }

    /// Returns self · b + c.
    #[inline(always)]
    pub(crate) fn times_plus<I: Isa>(self, isa: I, b: Self, c: Self) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            out.0[lane] = isa.fma(self.0[lane], b.0[lane], c.0[lane]);
        }
        out
    }
}

impl Add for Lanes {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            out.0[lane] = self.0[lane] + other.0[lane];
        }
        out
    }
}

impl Mul for Lanes {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            out.0[lane] = self.0[lane] * other.0[lane];
        }
        out
    }
}
