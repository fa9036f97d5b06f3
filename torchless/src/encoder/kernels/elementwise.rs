//! One number of the result from one number of each input: arithmetic, comparisons, functions.

use super::functions;
use crate::encoder::graph::{Binary, Unary};
use crate::encoder::kernels::linear::Activation;
use crate::encoder::tensor::View;
use crate::simd::{Body, InstructionSet, Simd, dispatch};

/// Runs of elements that are evenly spaced in all of `N` views of one shape.
pub(super) struct Runs<const N: usize> {
    shape: Vec<usize>,
    strides: Vec<[isize; N]>,
    offsets: [usize; N],
}

impl<const N: usize> Runs<N> {
    pub(super) fn of(views: [&View; N]) -> Runs<N> {
        let mut runs = Runs { shape: Vec::new(), strides: Vec::new(), offsets: views.map(|view| view.offset) };
        let shape = views.first().map_or(&[][..], |view| &view.shape);
        for (axis, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
            let here = views.map(|view| view.strides[axis]);
            match (runs.shape.last_mut(), runs.strides.last_mut()) {
                (Some(before), Some(spacing)) if (0..N).all(|i| spacing[i] == here[i] * size as isize) => {
                    (*before, *spacing) = (*before * size, here);
                }
                _ => {
                    runs.shape.push(size);
                    runs.strides.push(here);
                }
            }
        }
        runs
    }

    /// Calls `f` with the places where each run begins, in the order of the views, then with its
    /// spacing and its length.
    #[inline(always)]
    pub(super) fn each(&self, mut f: impl FnMut([usize; N], [isize; N], usize)) {
        if self.shape.contains(&0) {
            return;
        }
        let (length, outer) = self.shape.split_last().map_or((1, &[][..]), |(&length, outer)| (length, outer));
        let (spacing, strides) = self.strides.split_last().map_or(([1; N], &[][..]), |(&last, outer)| (last, outer));
        let mut index = vec![0; outer.len()];
        let mut place = self.offsets.map(|offset| offset as isize);
        loop {
            f(place.map(|place| place as usize), spacing, length);
            let mut axis = outer.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return };
                axis = next;
                index[axis] += 1;
                (0..N).for_each(|i| place[i] += strides[axis][i]);
                if index[axis] < outer[axis] {
                    break;
                }
                (0..N).for_each(|i| place[i] -= strides[axis][i] * outer[axis] as isize);
                index[axis] = 0;
            }
        }
    }
}

/// Returns the element at `index` of a run.
#[inline(always)]
pub(super) fn at(place: usize, spacing: isize, index: usize) -> usize {
    (place as isize + spacing * index as isize) as usize
}

/// Writes f(x) for every element of a view.
#[inline(always)]
pub(super) fn map1<A: Copy, B>(values: &[A], view: &View, out: &mut [B], f: impl Fn(A) -> B) {
    let mut done = 0;
    Runs::of([view]).each(|[place], [spacing], length| {
        let to = &mut out[done..][..length];
        done += length;
        match spacing {
            1 => to.iter_mut().zip(&values[place..][..length]).for_each(|(to, from)| *to = f(*from)),
            0 => to.iter_mut().for_each(|to| *to = f(values[place])),
            _ => to.iter_mut().enumerate().for_each(|(index, to)| *to = f(values[at(place, spacing, index)])),
        }
    });
}

/// Writes f(a, b) for every pair of elements of two views of one shape.
#[inline(always)]
pub(super) fn map2<A: Copy, B>(a: (&[A], &View), b: (&[A], &View), out: &mut [B], f: impl Fn(A, A) -> B) {
    let mut done = 0;
    let ((a, a_view), (b, b_view)) = (a, b);
    Runs::of([a_view, b_view]).each(|[pa, pb], [sa, sb], length| {
        let to = &mut out[done..][..length];
        done += length;
        match (sa, sb) {
            (1, 1) => {
                let pairs = a[pa..][..length].iter().zip(&b[pb..][..length]);
                to.iter_mut().zip(pairs).for_each(|(to, (a, b))| *to = f(*a, *b));
            }
            (1, 0) => {
                let b = b[pb];
                to.iter_mut().zip(&a[pa..][..length]).for_each(|(to, a)| *to = f(*a, b));
            }
            (0, 1) => {
                let a = a[pa];
                to.iter_mut().zip(&b[pb..][..length]).for_each(|(to, b)| *to = f(a, *b));
            }
            _ => {
                let pair = |index| f(a[at(pa, sa, index)], b[at(pb, sb, index)]);
                to.iter_mut().enumerate().for_each(|(index, to)| *to = pair(index));
            }
        }
    });
}

/// Writes `a` where the condition holds and `b` elsewhere.
pub(super) fn choose<T: Copy>(condition: (&[i64], &View), a: (&[T], &View), b: (&[T], &View), out: &mut [T]) {
    let mut done = 0;
    let ((condition, condition_view), (a, a_view), (b, b_view)) = (condition, a, b);
    Runs::of([condition_view, a_view, b_view]).each(|[pc, pa, pb], [sc, sa, sb], length| {
        for (index, to) in out[done..][..length].iter_mut().enumerate() {
            let holds = condition[at(pc, sc, index)] != 0;
            *to = if holds { a[at(pa, sa, index)] } else { b[at(pb, sb, index)] };
        }
        done += length;
    });
}

/// Returns the larger number; NaN if one is.
#[inline(always)]
fn larger<T: PartialOrd>(a: T, b: T) -> T {
    if a > b || a.partial_cmp(&a).is_none() { a } else { b }
}

/// Returns the smaller number; NaN if one is.
#[inline(always)]
fn smaller<T: PartialOrd>(a: T, b: T) -> T {
    if a < b || a.partial_cmp(&a).is_none() { a } else { b }
}

macro_rules! float_arithmetic {
    ($visibility:vis $name:ident, $float:ty, $doc:literal) => {
        #[doc = $doc]
        #[inline(always)]
        $visibility fn $name(binary: Binary, a: (&[$float], &View), b: (&[$float], &View), out: &mut [$float]) {
            match binary {
                Binary::Add => map2(a, b, out, |a, b| a + b),
                Binary::Sub => map2(a, b, out, |a, b| a - b),
                Binary::Mul => map2(a, b, out, |a, b| a * b),
                Binary::Div => map2(a, b, out, |a, b| a / b),
                Binary::Max => map2(a, b, out, larger),
                Binary::Min => map2(a, b, out, smaller),
                Binary::Atan2 => map2(a, b, out, |a, b| f64::from(a).atan2(f64::from(b)) as $float),
                Binary::Pow => map2(a, b, out, |a, b| match b {
                    2.0 => a * a,
                    0.5 => a.sqrt(),
                    _ => f64::from(a).powf(f64::from(b)) as $float,
                }),
                Binary::Mod { follows_dividend: true } => map2(a, b, out, |a, b| a % b),
                _ => map2(a, b, out, |a, b| a - (a / b).floor() * b),
            }
        }
    };
}
float_arithmetic!(arithmetic_f32, f32, "Computes arithmetic of single precision.");
float_arithmetic!(pub(super) binary_f64, f64, "Computes arithmetic of double precision.");

struct Binary32<'a> {
    binary: Binary,
    a: (&'a [f32], &'a View),
    b: (&'a [f32], &'a View),
    out: &'a mut [f32],
}

impl Body for Binary32<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        arithmetic_f32(self.binary, self.a, self.b, self.out);
    }
}

/// Computes arithmetic of single precision.
pub(super) fn binary_f32(isa: InstructionSet, binary: Binary, a: (&[f32], &View), b: (&[f32], &View), out: &mut [f32]) {
    dispatch(isa, Binary32 { binary, a, b, out });
}

/// Computes arithmetic of integers; a quotient by 0 is 0, sums that are too large wrap.
pub(super) fn binary_int(binary: Binary, a: (&[i64], &View), b: (&[i64], &View), out: &mut [i64]) {
    match binary {
        Binary::Add => map2(a, b, out, i64::wrapping_add),
        Binary::Sub => map2(a, b, out, i64::wrapping_sub),
        Binary::Mul => map2(a, b, out, i64::wrapping_mul),
        Binary::Div => map2(a, b, out, |a, b| a.checked_div(b).unwrap_or(0)),
        Binary::Max => map2(a, b, out, i64::max),
        Binary::Min => map2(a, b, out, i64::min),
        Binary::Mod { follows_dividend: true } => map2(a, b, out, |a, b| a.checked_rem(b).unwrap_or(0)),
        Binary::Mod { .. } => map2(a, b, out, |a, b| match a.checked_rem(b) {
            Some(rest) if rest != 0 && (rest < 0) != (b < 0) => rest + b,
            rest => rest.unwrap_or(0),
        }),
        Binary::Pow => map2(a, b, out, |a, b| a.wrapping_pow(u32::try_from(b).unwrap_or(0))),
        Binary::And => map2(a, b, out, |a, b| i64::from(a != 0 && b != 0)),
        Binary::Or => map2(a, b, out, |a, b| i64::from(a != 0 || b != 0)),
        Binary::Xor => map2(a, b, out, |a, b| i64::from((a != 0) != (b != 0))),
        _ => compare(binary, a, b, out),
    }
}

/// Compares numbers: 1 where the comparison holds.
pub(super) fn compare<T: Copy + PartialOrd>(binary: Binary, a: (&[T], &View), b: (&[T], &View), out: &mut [i64]) {
    match binary {
        Binary::Equal => map2(a, b, out, |a, b| i64::from(a == b)),
        Binary::Greater => map2(a, b, out, |a, b| i64::from(a > b)),
        Binary::GreaterOrEqual => map2(a, b, out, |a, b| i64::from(a >= b)),
        Binary::Less => map2(a, b, out, |a, b| i64::from(a < b)),
        _ => map2(a, b, out, |a, b| i64::from(a <= b)),
    }
}

struct Unary32<'a> {
    unary: Unary,
    values: &'a [f32],
    view: &'a View,
    out: &'a mut [f32],
}

impl Body for Unary32<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Unary32 { unary, values, view, out } = self;
        let vectors = match unary {
            Unary::Gelu => Some(Activation::Gelu),
            Unary::GeluTanh => Some(Activation::GeluTanh),
            Unary::Relu => Some(Activation::Relu),
            Unary::Silu => Some(Activation::Silu),
            _ => None,
        };
        if vectors.is_some() || matches!(unary, Unary::Exp | Unary::Erf | Unary::Sigmoid) {
            map1(values, view, out, |x| x);
        }
        match (unary, vectors) {
            (_, Some(activation)) => activation.apply(simd, out),
            (Unary::Exp, _) => functions::apply::<functions::Exp, S>(simd, out),
            (Unary::Erf, _) => functions::apply::<functions::Erf, S>(simd, out),
            (Unary::Sigmoid, _) => functions::apply::<functions::Sigmoid, S>(simd, out),
            (Unary::Abs, _) => map1(values, view, out, f32::abs),
            (Unary::Ceil, _) => map1(values, view, out, f32::ceil),
            (Unary::Floor, _) => map1(values, view, out, f32::floor),
            (Unary::Neg, _) => map1(values, view, out, |x| -x),
            (Unary::Reciprocal, _) => map1(values, view, out, |x| 1.0 / x),
            (Unary::Sqrt, _) => map1(values, view, out, f32::sqrt),
            // The others are rare; double precision, rounded once, is the nearest number.
            _ => map1(values, view, out, |x| function(unary, f64::from(x)) as f32),
        }
    }
}

/// Computes a function in single precision.
pub(super) fn unary_f32(isa: InstructionSet, unary: Unary, values: &[f32], view: &View, out: &mut [f32]) {
    dispatch(isa, Unary32 { unary, values, view, out });
}

/// Computes a function in double precision.
pub(super) fn unary_f64(unary: Unary, values: &[f64], view: &View, out: &mut [f64]) {
    match unary {
        Unary::Sqrt => map1(values, view, out, f64::sqrt),
        Unary::Log => map1(values, view, out, f64::ln),
        Unary::Neg => map1(values, view, out, |x| -x),
        _ => map1(values, view, out, |x| function(unary, x)),
    }
}

/// Computes a function of integers, or of truth values.
pub(super) fn unary_int(unary: Unary, values: &[i64], view: &View, out: &mut [i64]) {
    match unary {
        Unary::Abs => map1(values, view, out, i64::wrapping_abs),
        Unary::Neg => map1(values, view, out, i64::wrapping_neg),
        Unary::Sign => map1(values, view, out, i64::signum),
        Unary::Relu => map1(values, view, out, |x| x.max(0)),
        Unary::IsNan => out.fill(0),
        Unary::Not => map1(values, view, out, |x| i64::from(x == 0)),
        _ => map1(values, view, out, |x| x),
    }
}

fn function(unary: Unary, x: f64) -> f64 {
    match unary {
        Unary::Abs => x.abs(),
        Unary::Atan => x.atan(),
        Unary::Ceil => x.ceil(),
        Unary::Cos => x.cos(),
        Unary::Erf => libm::erf(x),
        Unary::Exp => x.exp(),
        Unary::Floor => x.floor(),
        Unary::Gelu => 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        Unary::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            0.5 * x * (1.0 + inner.tanh())
        }
        Unary::Log => x.ln(),
        Unary::Neg => -x,
        Unary::Reciprocal => 1.0 / x,
        Unary::Relu => larger(x, 0.0),
        Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Unary::Sign => {
            if x > 0.0 {
                1.0
            } else if x < 0.0 {
                -1.0
            } else {
                x
            }
        }
        Unary::Silu => x / (1.0 + (-x).exp()),
        Unary::Sin => x.sin(),
        Unary::Softplus => larger(x, 0.0) + (-x.abs()).exp().ln_1p(),
        Unary::Sqrt => x.sqrt(),
        Unary::Tanh => x.tanh(),
        Unary::IsNan | Unary::Not => x,
    }
}
