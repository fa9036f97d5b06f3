//! Derivatives of products of matrices, which are products, too: with the gradient G of A·B those
//! of the factors are G·Bᵀ and Aᵀ·G.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{ComputedStep, NoGradient, Real, Tools, add_each};
use crate::encoder::kernels::linear::{Activation, PackedMatrix};
use crate::encoder::kernels::{self, Arg, Kernel};
use crate::encoder::tensor::{Data, View};

/// The transposed matrices of a model's weights, each made when it is first needed.
#[derive(Debug, Default)]
pub(in crate::encoder) struct Transposes(Mutex<HashMap<usize, Arc<PackedMatrix>>>);

impl Transposes {
    /// Returns the transpose of a matrix that lives as long as the model.
    fn of(&self, weights: &Arc<PackedMatrix>) -> Arc<PackedMatrix> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let made = known.entry(Arc::as_ptr(weights) as usize).or_insert_with(|| weights.transposed().into());
        Arc::clone(made)
    }

    pub(in crate::encoder) fn n_bytes(&self) -> usize {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().map(|weights| weights.n_bytes()).sum()
    }
}

/// Adds the gradient with respect to a factor, or to what is added to the product.
pub(super) fn add(
    step: &ComputedStep<'_>,
    index: usize,
    tools: &mut Tools<'_>,
    to: &mut Data,
) -> Result<(), NoGradient> {
    let gradient = Arg { data: step.gradient.borrow(), view: step.out_view };
    let (own, other) = (step.args[index].view, step.args.get(1 - index.min(1)));
    let transposed = other.map(|other| last_two_swapped(other.view));
    let none = Activation::None;
    match (step.kernel, index, other, &transposed) {
        (Kernel::Linear { weights, .. }, 0, _, _) => {
            let rows = View::contiguous(&[own.shape[0], weights.columns]);
            let kernel = Kernel::Linear { weights: tools.transposes.of(weights), activation: none };
            multiply(&kernel, &[Arg { view: &rows, ..gradient }], tools, (to, own))
        }
        (Kernel::MatMul, 0, Some(other), Some(view)) => {
            multiply(&Kernel::MatMul, &[gradient, Arg { view, ..*other }], tools, (to, own))
        }
        (Kernel::MatMul, 1, Some(other), Some(view)) => {
            multiply(&Kernel::MatMul, &[Arg { view, ..*other }, gradient], tools, (to, own))
        }
        (Kernel::Pointwise { .. }, 0, Some(other), Some(view)) => {
            multiply(&Kernel::Pointwise { activation: none }, &[gradient, Arg { view, ..*other }], tools, (to, own))
        }
        _ => Err(NoGradient::Unknown),
    }
}

/// Adds a product to the elements of a view.
fn multiply(
    kernel: &Kernel,
    args: &[Arg<'_>],
    tools: &mut Tools<'_>,
    (to, view): (&mut Data, &View),
) -> Result<(), NoGradient> {
    let mut product = Data::zeros(to.class(), view.len());
    kernels::run(kernel, tools.isa, tools.scratch, args, &mut product, &View::contiguous(&view.shape))?;
    match (&product, to) {
        (Data::F32(from), Data::F32(to)) => add_all(from, to, view),
        (Data::F64(from), Data::F64(to)) => add_all(from, to, view),
        _ => {}
    }
    Ok(())
}

fn add_all<T: Real>(from: &[T], to: &mut [T], view: &View) {
    add_each(to, view, |place| from[place]);
}

fn last_two_swapped(view: &View) -> View {
    let mut order: Vec<usize> = (0..view.shape.len()).collect();
    if let [.., a, b] = &mut order[..] {
        std::mem::swap(a, b);
    }
    view.transposed(&order)
}
