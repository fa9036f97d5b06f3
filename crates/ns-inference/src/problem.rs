//! The arguments that every procedure shares.

use crate::options::FitOptions;
use ns_core::{Data, DataLikelihood, Model};

/// A model, the likelihood of its data, and how to fit it: the first argument of every procedure.
///
/// ```
/// use ns_compute::CpuLikelihood;
/// use ns_core::{CompileOptions, compile};
/// use ns_inference::limit::{LimitOptions, limit};
/// use ns_inference::{FitOptions, Problem};
///
/// let workspace = br#"{
///     "version": "1.0.0",
///     "channels": [{"name": "SR", "samples": [
///         {"name": "signal", "data": [5.0],
///          "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
///         {"name": "background", "data": [50.0], "modifiers": []}
///     ]}],
///     "observations": [{"name": "SR", "data": [50.0]}],
///     "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]
/// }"#;
/// let workspace = ns_translate::pyhf::read_workspace(workspace)?;
/// let model = compile(&workspace, &CompileOptions::default())?;
/// let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
/// let mut problem = Problem::new(&model, &mut likelihood, &options);
/// let limits = limit(&mut problem, model.poi().unwrap(), LimitOptions::default());
/// // 15.17 events: where 2 (s - 50 ln(1 + s/50)) is 1.96².
/// assert!((limits.observed.unwrap() - 15.17 / 5.0).abs() < 1e-2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Problem<'a, L: ?Sized> {
    /// The model: names, ranges and starting values of the parameters.
    pub model: &'a Model,
    /// The likelihood of the data. Procedures that share work among threads clone it.
    pub likelihood: &'a mut L,
    /// How each fit is done.
    pub options: &'a FitOptions,
}

impl<'a, L: ?Sized> Problem<'a, L> {
    /// Returns the problem made of its parts. `likelihood` must be one of `model`.
    pub fn new(model: &'a Model, likelihood: &'a mut L, options: &'a FitOptions) -> Self {
        Self { model, likelihood, options }
    }

    /// Returns the same problem for a shorter time.
    pub fn reborrow(&mut self) -> Problem<'_, L> {
        Problem { model: self.model, likelihood: self.likelihood, options: self.options }
    }
}

impl<L: DataLikelihood + ?Sized> Problem<'_, L> {
    /// Returns the data.
    #[must_use]
    pub fn data(&self) -> &Data {
        self.likelihood.data()
    }
}
