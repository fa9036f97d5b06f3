//! Evaluates -ln L and its gradients for a batch of points, with shared inputs or inputs for each,
//! on several threads. The bits of the results do not depend on the number of threads.
//!
//! Legend: N points, M inputs, P parameters.

use super::ProfiledDifferentiableSession;
use crate::parallel::run_all;
use ns_core::TemplateLikelihood;
use ns_core::templates::InputError;
use std::num::NonZeroUsize;

/// The numbers in the model's tables that justify another thread: some tens of microseconds of
/// work.
const WORTH_A_THREAD: usize = 1 << 15;

/// A batch of points at which -ln L is evaluated.
#[derive(Debug, Clone, Copy)]
pub struct BatchPoints<'a> {
    /// The number of points (N).
    pub n: usize,
    /// The parameters: shared (P), or for each point (N × P).
    pub params: &'a [f64],
    /// The inputs: shared (M), or for each point (N × M).
    pub inputs: &'a [f64],
}

/// -ln L and its gradients, which are NaN where -ln L is not finite.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchValues {
    /// -ln L (N); +∞ outside the domain.
    pub values: Vec<f64>,
    /// The gradients with respect to the parameters (N × P).
    pub by_params: Vec<f64>,
    /// The gradients with respect to the inputs (N × M).
    pub by_inputs: Vec<f64>,
}

/// The inputs of a batch element that are not valid for templates.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidInputs {
    /// The index of the batch element.
    pub batch_element: usize,
    /// The reason.
    pub error: InputError,
}

/// Some of the points, and the slices for their results.
struct Part<'a> {
    first: usize,
    values: &'a mut [f64],
    by_params: &'a mut [f64],
    by_inputs: &'a mut [f64],
}

impl<L: TemplateLikelihood + Clone + Send> ProfiledDifferentiableSession<L> {
    /// Returns -ln L of the observed data and both gradients at the points `at`, on at most
    /// `threads` threads. The session keeps its own inputs.
    ///
    /// # Panics
    /// If the lengths in `at` do not match its N.
    ///
    /// # Errors
    /// The first inputs that are not valid for templates.
    pub fn nll_at(&mut self, at: &BatchPoints<'_>, threads: NonZeroUsize) -> Result<BatchValues, InvalidInputs> {
        let (p, m) = (self.model.n_params(), self.inputs.len());
        assert!(at.params.len() == p || at.params.len() == at.n * p, "one point, or one for each batch element");
        if !at.inputs.len().is_multiple_of(m) || (at.inputs.len() != m && at.inputs.len() != at.n * m) {
            let error = InputError::Length { found: at.inputs.len(), wanted: m };
            return Err(InvalidInputs { batch_element: 0, error });
        }
        for (batch_element, inputs) in at.inputs.chunks(m).enumerate() {
            self.inputs.check(inputs).map_err(|error| InvalidInputs { batch_element, error })?;
        }
        let mut found =
            BatchValues { values: vec![0.0; at.n], by_params: vec![0.0; at.n * p], by_inputs: vec![0.0; at.n * m] };
        let n_threads = threads.get().min(at.n * self.model.reals.len() / WORTH_A_THREAD).max(1);
        while self.evaluators.len() < n_threads {
            self.evaluators.push(self.observed.clone());
        }
        self.evaluate_in_parts(at, n_threads, &mut found);
        Ok(found)
    }

    fn evaluate_in_parts(&mut self, at: &BatchPoints<'_>, n_threads: usize, found: &mut BatchValues) {
        let (p, m) = (self.model.n_params(), self.inputs.len());
        let each = at.n.div_ceil(n_threads).max(1);
        let values = found.values.chunks_mut(each);
        // A model has at least one input, but may have no parameters.
        let mut by_params = found.by_params.chunks_mut((each * p).max(1));
        let parts = values.zip(found.by_inputs.chunks_mut(each * m)).enumerate().map(|(k, (values, by_inputs))| Part {
            first: k * each,
            values,
            by_params: by_params.next().unwrap_or_default(),
            by_inputs,
        });
        let work = self.evaluators.iter_mut().zip(parts);
        run_all(work.map(|(likelihood, part)| move || evaluate(likelihood, at, part)).collect());
    }
}

/// Evaluates the points of `part`.
fn evaluate<L: TemplateLikelihood>(likelihood: &mut L, at: &BatchPoints<'_>, part: Part<'_>) {
    let (p, m) = (likelihood.n_params(), likelihood.inputs().len());
    let Part { first, values, by_params, by_inputs } = part;
    for (k, value) in values.iter_mut().enumerate() {
        let offset = |all: &[f64], len: usize| if all.len() == len { 0 } else { (first + k) * len };
        let (point, inputs) = (offset(at.params, p), offset(at.inputs, m));
        if k == 0 || at.inputs.len() != m {
            likelihood.set_inputs(&at.inputs[inputs..inputs + m]);
        }
        let (gradient, derivatives) = (&mut by_params[k * p..(k + 1) * p], &mut by_inputs[k * m..(k + 1) * m]);
        *value = likelihood.nll_and_gradients(&at.params[point..point + p], gradient, derivatives);
        if !value.is_finite() {
            // A zero gradient would suggest a minimum.
            gradient.fill(f64::NAN);
            derivatives.fill(f64::NAN);
        }
    }
}
