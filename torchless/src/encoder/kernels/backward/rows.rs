//! Derivatives of what is computed of rows: normalisations, softmax, reductions.

use super::{ComputedStep, NoGradient, Real, add_each, times};
use crate::encoder::graph::Reduction;
use crate::encoder::kernels::Pair;
use crate::encoder::kernels::rows::{lane_sum, signed_places};
use crate::encoder::tensor::View;

/// Adds pᵢ·(gᵢ - Σⱼ pⱼ·gⱼ) for rows p of a softmax and their gradient g; gᵢ - pᵢ·Σⱼ gⱼ where the
/// output is the logarithm of p.
pub(super) fn softmax<T: Real>(
    length: usize,
    is_logarithm: bool,
    (to, view): (&mut [T], &View),
    [gradient, out]: [&[T]; 2],
) {
    let mut terms = vec![T::default(); gradient.len()];
    let rows = gradient.chunks_exact(length.max(1)).zip(out.chunks_exact(length.max(1)));
    for (terms, (gradient, out)) in terms.chunks_exact_mut(length.max(1)).zip(rows) {
        let pairs = || gradient.iter().zip(out);
        if gradient.iter().all(|gradient| *gradient == T::default()) {
            continue;
        }
        if is_logarithm {
            let sum: T = lane_sum(gradient.iter().copied());
            let probability = |out: T| T::of(out.wide().exp());
            terms.iter_mut().zip(pairs()).for_each(|(term, (g, out))| *term = *g - probability(*out) * sum);
        } else {
            let mean: T = lane_sum(pairs().map(|(g, p)| *g * *p));
            terms.iter_mut().zip(pairs()).for_each(|(term, (g, p))| *term = *p * (*g - mean));
        }
    }
    add_each(to, view, |place| terms[place]);
}

/// A normalisation of rows.
pub(super) struct Norm<T> {
    pub(super) epsilon: T,
    pub(super) is_rms: bool,
    pub(super) length: usize,
}

impl<T: Real> Norm<T> {
    /// Adds s·(h - mean h - z·mean(h·z)) for rows z = s·(x - mean x) and h = weight·gradient; a
    /// root mean square has no mean of x nor of h.
    pub(super) fn add(
        &self,
        step: &ComputedStep<'_>,
        index: usize,
        to: &mut [T],
        gradient: &[T],
    ) -> Result<(), NoGradient> {
        if index != 0 {
            return Err(NoGradient::Unknown);
        }
        let ((x, view), (weight, weight_view)) = (T::pair(&step.args[0]), T::pair(&step.args[1]));
        let weight = &weight[weight_view.offset..][..self.length];
        let places = view.offset..view.offset + view.len();
        let rows = x[places.clone()].chunks_exact(self.length.max(1)).zip(gradient.chunks_exact(self.length.max(1)));
        for (to, (x, gradient)) in to[places].chunks_exact_mut(self.length.max(1)).zip(rows) {
            self.add_row(x, weight, gradient, to);
        }
        Ok(())
    }

    fn add_row(&self, x: &[T], weight: &[T], gradient: &[T], to: &mut [T]) {
        if gradient.iter().all(|gradient| *gradient == T::default()) {
            return;
        }
        let count = T::of(x.len() as f64);
        let zero = T::default();
        let mean = if self.is_rms { zero } else { lane_sum(x.iter().copied()) / count };
        let variance = lane_sum(x.iter().map(|x| (*x - mean) * (*x - mean))) / count;
        let scale = T::of(1.0) / (variance + self.epsilon).root();
        let weighted = || gradient.iter().zip(weight).map(|(gradient, weight)| *gradient * *weight);
        let middle = if self.is_rms { zero } else { lane_sum(weighted()) / count };
        let along = lane_sum(weighted().zip(x).map(|(h, x)| h * ((*x - mean) * scale))) / count;
        let terms = weighted().zip(x).map(|(h, x)| scale * (h - middle - (*x - mean) * scale * along));
        to.iter_mut().zip(terms).for_each(|(to, term)| *to += term);
    }
}

/// Adds the gradient with respect to the numbers of a reduction, whose axes from `n_kept` on are
/// reduced.
pub(super) fn reduce<T: Real>(
    reduction: Reduction,
    n_kept: usize,
    (values, view): Pair<'_, T>,
    to: &mut [T],
    [gradient, out]: [&[T]; 2],
) {
    let axes = |range: std::ops::Range<usize>, offset| View {
        shape: view.shape[range.clone()].to_vec(),
        strides: view.strides[range].to_vec(),
        offset,
    };
    let inner = signed_places(&axes(n_kept..view.shape.len(), 0));
    let count = T::of(inner.len() as f64);
    for (row, place) in axes(0..n_kept, view.offset).places().enumerate() {
        let (gradient, out) = (gradient[row], out[row]);
        let at = |offset: &isize| (place as isize + offset) as usize;
        match reduction {
            Reduction::Sum => inner.iter().for_each(|offset| to[at(offset)] += gradient),
            Reduction::Mean => inner.iter().for_each(|offset| to[at(offset)] += gradient / count),
            Reduction::SumOfSquares => {
                inner.iter().for_each(|offset| to[at(offset)] += times(gradient, T::of(2.0) * values[at(offset)]));
            }
            // The length of a vector of zeros has no derivative in any direction.
            Reduction::Norm if out == T::default() => {}
            Reduction::Norm => {
                inner.iter().for_each(|offset| to[at(offset)] += times(gradient, values[at(offset)] / out));
            }
            Reduction::Max | Reduction::Min => {
                let n_equal = inner.iter().filter(|offset| values[at(offset)] == out).count();
                let share = gradient / T::of(n_equal as f64);
                let equal = inner.iter().filter(|offset| values[at(offset)] == out);
                equal.for_each(|offset| to[at(offset)] += share);
            }
            Reduction::Product => {
                let numbers: Vec<T> = inner.iter().map(|offset| values[at(offset)]).collect();
                let others = products_of_others(&numbers);
                inner.iter().zip(others).for_each(|(offset, others)| to[at(offset)] += times(gradient, others));
            }
        }
    }
}

/// Returns the product of all other numbers for each, without a division: some may be 0.
fn products_of_others<T: Real>(numbers: &[T]) -> Vec<T> {
    let mut others = vec![T::of(1.0); numbers.len()];
    let mut before = T::of(1.0);
    for (other, number) in others.iter_mut().zip(numbers) {
        *other = before;
        before = before * *number;
    }
    let mut behind = T::of(1.0);
    for (other, number) in others.iter_mut().zip(numbers).rev() {
        *other = *other * behind;
        behind = behind * *number;
    }
    others
}
