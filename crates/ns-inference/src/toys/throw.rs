//! Throws toys: pseudo-experiments with main and auxiliary data at given parameters.
//!
//! Main bins are Poisson(λ_b). Auxiliary data are drawn from their constraint terms: normal(θ, σ),
//! two halves of normal distributions, Poisson(τθ) as a count (gamma terms, too), or log-normal.
//! Keeping them at their observed values instead ([`AuxTreatment::Fixed`]) makes tests conditional
//! on one auxiliary measurement, and CLs wrong by large factors.

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
    /// Toys for confidence intervals, regions and limits.
    Intervals = 4,
    /// Toys whose intervals are counted for their coverage.
    Coverage = 5,
    /// Toys that one of those is compared with.
    Inner = 6,
    /// Toys of the background of a search.
    Search = 7,
    /// Samples of the local significances of a search.
    Field = 8,
    /// Toys of the background and of signals for importance sampling.
    Importance = 9,
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
    /// The parameter of each auxiliary datum, and their term (K).
    terms: Vec<(usize, Constraint)>,
}

#[derive(Debug, Clone, Copy)]
enum AuxDraw {
    Fixed(f64),
    Normal {
        mean: f64,
        sigma: f64,
    },
    /// Half a normal distribution on each side of `center`.
    Halves {
        center: f64,
        below: f64,
        above: f64,
    },
    Count {
        mean: f64,
    },
    LogNormal {
        median: f64,
        sigma: f64,
    },
}

impl AuxDraw {
    /// Returns how the datum of `constraint` is distributed at `theta`.
    fn of(constraint: Constraint, theta: f64) -> Self {
        match constraint {
            Constraint::Gaussian { sigma } => Self::Normal { mean: theta, sigma },
            // A datum below θ is on the side of σ₊.
            Constraint::AsymmetricGaussian { sigma_lo, sigma_hi } => {
                Self::Halves { center: theta, below: sigma_hi, above: sigma_lo }
            }
            Constraint::Poisson { .. } | Constraint::Gamma { .. } => {
                Self::Count { mean: constraint.expected_datum().at(theta) }
            }
            Constraint::LogNormal { sigma, .. } => {
                Self::LogNormal { median: constraint.expected_datum().at(theta), sigma }
            }
        }
    }

    fn draw(self, stream: &mut RandomStream) -> f64 {
        match self {
            Self::Fixed(value) => value,
            Self::Normal { mean, sigma } => mean + sigma * normal(stream),
            Self::Halves { center, below, above } => {
                let size = normal(stream).abs();
                let (side, _) = stream.pair();
                if side * (below + above) < below { center - below * size } else { center + above * size }
            }
            Self::Count { mean } => poisson(mean, stream),
            Self::LogNormal { median, sigma } => median * (sigma * normal(stream)).exp(),
        }
    }
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
                (_, Some(constraint)) => AuxDraw::of(constraint, theta),
            }
        };
        let terms = model.table(model.layout.constraint_param).iter().enumerate();
        let (lambda, aux) = (expected_main(model, params), terms.map(term).collect());
        Ok(Self { source, params: params.to_vec(), lambda, aux, terms: model.constraint_terms().collect() })
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
        let draw = |(aux, k): (&AuxDraw, u32)| aux.draw(&mut stream(FIRST_AUX | k));
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
/// `terms` (K) are those of [`Model::constraint_terms`].
pub(crate) fn at_aux(params: &[f64], terms: &[(usize, Constraint)], data: &Data) -> Vec<f64> {
    let mut found = params.to_vec();
    for (&(param, constraint), &aux) in terms.iter().zip(&data.aux) {
        found[param] = constraint.center(aux);
    }
    found
}
