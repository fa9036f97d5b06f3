//! Throws toys: pseudo-experiments with main and auxiliary data at given parameters.
//!
//! Main bins are Poisson(λ_b). Auxiliary data are drawn from their constraint terms: normal(θ, σ),
//! or Poisson(τθ) as a count. Keeping them at their observed values instead
//! ([`AuxTreatment::Fixed`]) makes tests conditional on one auxiliary measurement, and CLs wrong by
//! large factors.

use super::distribution::{RandomStream, normal, poisson};
use super::prefit::DataSetSource;
use ns_core::expected::{asimov, expected_main};
use ns_core::likelihood::{NonFinite, diagnose};
use ns_core::{Constraint, Data, Model};
use serde::Serialize;

/// The first element index of auxiliary data.
const FIRST_AUX: u32 = 1 << 31;

/// The treatment of the auxiliary data of toys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuxTreatment {
    /// Auxiliary data are drawn like main bins.
    #[default]
    Fluctuated,
    /// Auxiliary data keep their observed values; for comparisons only.
    Fixed,
}

/// The purpose of an ensemble of toys. Toys of different ensembles share no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ensemble {
    /// Toys to be fitted.
    Fits = 0,
    /// Toys of the tested hypothesis: signal and background for upper limits, background alone for
    /// a discovery.
    Tested = 1,
    /// Toys of the alternative hypothesis.
    Alternative = 2,
    /// Toys for the goodness of fit.
    Goodness = 3,
}

/// The random numbers of toys, and what is drawn with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToySource {
    /// The seed. Toys of different seeds share no random numbers.
    pub seed: u64,
    /// The ensemble. Toys of different ensembles share no random numbers.
    pub ensemble: Ensemble,
    /// The treatment of the auxiliary data.
    pub aux: AuxTreatment,
}

/// Throws toys at one point of the parameter space.
#[derive(Debug, Clone)]
pub struct ToySampler {
    source: ToySource,
    params: Vec<f64>,
    /// The expected event counts (B).
    lambda: Vec<f64>,
    /// How each auxiliary datum is drawn (K).
    aux: Vec<AuxDraw>,
    /// The parameter of each auxiliary datum, and the ratio of the datum to it (K).
    terms: Vec<(usize, f64)>,
}

#[derive(Debug, Clone, Copy)]
enum AuxDraw {
    Fixed(f64),
    Normal { mean: f64, sigma: f64 },
    Count { mean: f64 },
}

impl ToySampler {
    /// Creates a sampler for toys of `model` at `params` (P). `observed` provides the auxiliary
    /// data for [`AuxTreatment::Fixed`].
    ///
    /// # Errors
    /// If an expected value at `params` is negative or not a number.
    pub fn new(model: &Model, observed: &Data, params: &[f64], source: ToySource) -> Result<Self, NonFinite> {
        if let Some(reason) = diagnose(model, &asimov(model, params), params) {
            // The message names the data that were really observed.
            return Err(diagnose(model, observed, params).unwrap_or(reason));
        }
        let term = |(k, &param): (usize, &u32)| {
            let theta = params[param as usize];
            match (source.aux, model.parameters.constraint[param as usize]) {
                (AuxTreatment::Fixed, _) | (_, None) => AuxDraw::Fixed(observed.aux[k]),
                (_, Some(Constraint::Gaussian { sigma })) => AuxDraw::Normal { mean: theta, sigma },
                (_, Some(Constraint::Poisson { tau })) => AuxDraw::Count { mean: tau * theta },
            }
        };
        let terms = model.table(model.layout.constraint_param).iter().enumerate();
        let (lambda, aux) = (expected_main(model, params), terms.map(term).collect());
        Ok(Self { source, params: params.to_vec(), lambda, aux, terms: aux_scales(model) })
    }

    /// Returns the parameters at which toys are thrown (P).
    #[must_use]
    pub fn params(&self) -> &[f64] {
        &self.params
    }

    /// Writes the toy with index `toy` to `out`. Each datum depends only on the seed, the ensemble,
    /// the toy and its own position.
    pub fn throw(&self, toy: u64, out: &mut Data) {
        let ToySource { seed, ensemble, .. } = self.source;
        let stream = |element: u32| RandomStream::new(seed, ensemble as u16, toy, element);
        out.main.clear();
        out.main.extend(self.lambda.iter().zip(0..).map(|(&mean, bin)| poisson(mean, &mut stream(bin))));
        let draw = |(aux, k): (&AuxDraw, u32)| match *aux {
            AuxDraw::Fixed(value) => value,
            AuxDraw::Normal { mean, sigma } => mean + sigma * normal(&mut stream(FIRST_AUX | k)),
            AuxDraw::Count { mean } => poisson(mean, &mut stream(FIRST_AUX | k)),
        };
        out.aux.clear();
        out.aux.extend(self.aux.iter().zip(0..).map(draw));
    }
}

impl DataSetSource for ToySampler {
    fn write(&self, index: u64, out: &mut Data) {
        self.throw(index, out);
    }

    /// Returns where the toy was thrown, and where its own auxiliary data are.
    fn starts(&self, toy: &Data) -> [Vec<f64>; 2] {
        [self.params.clone(), at_aux(&self.params, &self.terms, toy)]
    }
}

/// Returns `params` (P) with the constrained parameters where the auxiliary data of `data` are;
/// `scales` (K) are those of [`aux_scales`].
pub(crate) fn at_aux(params: &[f64], scales: &[(usize, f64)], data: &Data) -> Vec<f64> {
    let mut found = params.to_vec();
    for (&(param, scale), &aux) in scales.iter().zip(&data.aux) {
        found[param] = aux / scale;
    }
    found
}

/// Returns the parameter of each constraint term, and the ratio of its auxiliary datum to the
/// parameter (K).
pub(crate) fn aux_scales(model: &Model) -> Vec<(usize, f64)> {
    let scale = |&param: &u32| match model.parameters.constraint[param as usize] {
        Some(Constraint::Poisson { tau }) => (param as usize, tau),
        _ => (param as usize, 1.0),
    };
    model.table(model.layout.constraint_param).iter().map(scale).collect()
}
