//! -ln L and its gradients at many points, with one row of inputs for all of them or one for each: on several threads, with the same bits for any number.
//!
//! Legend: N points, M inputs, P parameters.

use super::ProfiledDifferentiableSession;
use crate::parallel::run_all;
use ns_core::TemplateLikelihood;
use ns_core::templates::InputError;
use std::num::NonZeroUsize;

/// A thread is worth its start for as many numbers of the model's tables: some tens of microseconds.
const WORTH_A_THREAD: usize = 1 << 15;

/// Where -ln L is wanted.
#[derive(Debug, Clone, Copy)]
pub struct BatchPoints<'a> {
    /// N.
    pub n: usize,
    /// Parameters: a point for all (P), or one for each (N × P).
    pub params: &'a [f64],
    /// Inputs: a row for all (M), or one for each (N × M).
    pub inputs: &'a [f64],
}

/// -ln L (N; +∞ outside the domain) and its gradients, which are NaN where it is not finite.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchValues {
    /// -ln L (N).
    pub values: Vec<f64>,
    /// Its gradients by the parameters (N × P).
    pub by_params: Vec<f64>,
    /// Its gradients by the inputs (N × M).
    pub by_inputs: Vec<f64>,
}

/// A row of inputs that no template can have.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidInputs {
    /// The row, from 0.
    pub row: usize,
    /// What is wrong with it.
    pub error: InputError,
}

/// Some of the points, and where their results go.
struct Part<'a> {
    first: usize,
    values: &'a mut [f64],
    by_params: &'a mut [f64],
    by_inputs: &'a mut [f64],
}

impl<L: TemplateLikelihood + Clone + Send> ProfiledDifferentiableSession<L> {
    /// -ln L of the observed data and both its gradients, on `threads` threads at most. The session's own inputs stay.
    ///
    /// # Panics
    /// If `at` has other numbers than its N says.
    ///
    /// # Errors
    /// The first row of inputs that no template can have.
    pub fn nll_at(&mut self, at: &BatchPoints<'_>, threads: NonZeroUsize) -> Result<BatchValues, InvalidInputs> {
        let (p, m) = (self.model.n_params(), self.inputs.len());
        assert!(at.params.len() == p || at.params.len() == at.n * p, "one point, or one for each row");
        if !at.inputs.len().is_multiple_of(m) || (at.inputs.len() != m && at.inputs.len() != at.n * m) {
            let error = InputError::Length { found: at.inputs.len(), wanted: m };
            return Err(InvalidInputs { row: 0, error });
        }
        for (row, inputs) in at.inputs.chunks(m).enumerate() {
            self.inputs.check(inputs).map_err(|error| InvalidInputs { row, error })?;
        }
        let mut found =
            BatchValues { values: vec![0.0; at.n], by_params: vec![0.0; at.n * p], by_inputs: vec![0.0; at.n * m] };
        let n_threads = threads.get().min(at.n * self.model.reals.len() / WORTH_A_THREAD).max(1);
        while self.evaluators.len() < n_threads {
            self.evaluators.push(self.observed.clone());
        }
        self.spread(at, n_threads, &mut found);
        Ok(found)
    }

    fn spread(&mut self, at: &BatchPoints<'_>, n_threads: usize, found: &mut BatchValues) {
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
        let row = |all: &[f64], len: usize| if all.len() == len { 0 } else { (first + k) * len };
        let (point, inputs) = (row(at.params, p), row(at.inputs, m));
        if k == 0 || at.inputs.len() != m {
            likelihood.set_inputs(&at.inputs[inputs..inputs + m]);
        }
        let (gradient, derivatives) = (&mut by_params[k * p..(k + 1) * p], &mut by_inputs[k * m..(k + 1) * m]);
        *value = likelihood.nll_and_gradients(&at.params[point..point + p], gradient, derivatives);
        if !value.is_finite() {
            // Zeros would pass for a minimum.
            gradient.fill(f64::NAN);
            derivatives.fill(f64::NAN);
        }
    }
}
