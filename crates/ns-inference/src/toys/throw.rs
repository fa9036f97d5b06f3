//! Throwing: one pseudo-experiment after the other, main and auxiliary data, at fixed parameters.
//!
//! Main bins are Poisson(λ_b). Auxiliary data fluctuate as their constraint terms say: normal(θ, σ), or Poisson(τθ) as a count. Holding them at what was
//! observed instead ([`AuxTreatment::Fixed`]) makes tests of nuisance parameters conditional on one auxiliary measurement: CLs comes out wrong by large factors.

use super::distribution::{RandomStream, normal, poisson};
use ns_core::expected::{asimov, expected_main};
use ns_core::likelihood::{NonFinite, diagnose};
use ns_core::{Constraint, Data, Model};
use serde::Serialize;

/// Elements from here on are auxiliary data.
const FIRST_AUX: u32 = 1 << 31;

/// What happens to the auxiliary data of toys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuxTreatment {
    /// They are drawn like the main bins.
    #[default]
    Fluctuated,
    /// They stay as observed; for comparisons only.
    Fixed,
}

/// What an ensemble of toys is for; toys of different ensembles share no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ensemble {
    /// Fits.
    Fits = 0,
    /// The hypothesis that is tested: signal and background for upper limits, background alone for a discovery.
    Tested = 1,
    /// The other hypothesis.
    Alternative = 2,
    /// Goodness of fit.
    Goodness = 3,
}

/// Which random numbers toys are made of, and what is drawn with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToySource {
    /// Toys of two seeds share nothing.
    pub seed: u64,
    /// Nor do those of two ensembles.
    pub ensemble: Ensemble,
    /// What happens to the auxiliary data.
    pub aux: AuxTreatment,
}

/// Throws toys at one point.
#[derive(Debug, Clone)]
pub struct ToySampler {
    source: ToySource,
    params: Vec<f64>,
    /// Expected event counts (B).
    lambda: Vec<f64>,
    /// Where and how each auxiliary datum is drawn (K).
    aux: Vec<AuxDraw>,
    /// The parameter of each auxiliary datum, and what the datum is in units of it (K).
    terms: Vec<(usize, f64)>,
}

#[derive(Debug, Clone, Copy)]
enum AuxDraw {
    Fixed(f64),
    Normal { mean: f64, sigma: f64 },
    Count { mean: f64 },
}

impl ToySampler {
    /// Toys of `model` at `params` (P); `observed` has the auxiliary data for [`AuxTreatment::Fixed`].
    ///
    /// # Errors
    /// A point at which something expected is negative or not a number: nothing can be thrown there.
    pub fn new(model: &Model, observed: &Data, params: &[f64], source: ToySource) -> Result<Self, NonFinite> {
        if let Some(reason) = diagnose(model, &asimov(model, params), params) {
            // The same with what was really seen, for the message.
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
        Ok(Self { source, params: params.to_vec(), lambda, aux, terms: scales(model) })
    }

    /// Where it throws (P).
    #[must_use]
    pub fn params(&self) -> &[f64] {
        &self.params
    }

    /// Where to start the fit of a toy (P each): where it was thrown, and where its own auxiliary data are.
    pub(super) fn starts(&self, toy: &Data) -> [Vec<f64>; 2] {
        let mut at_aux = self.params.clone();
        for (&(param, scale), &aux) in self.terms.iter().zip(&toy.aux) {
            at_aux[param] = aux / scale;
        }
        [self.params.clone(), at_aux]
    }

    /// Toy number `toy`, written to `out`. Each datum depends on seed, ensemble, toy and its own position only.
    pub fn throw(&self, toy: u64, out: &mut Data) {
        let ToySource { seed, ensemble, .. } = self.source;
        let words = |element: u32| RandomStream::new(seed, ensemble as u16, toy, element);
        out.main.clear();
        out.main.extend(self.lambda.iter().zip(0..).map(|(&mean, bin)| poisson(mean, &mut words(bin))));
        let draw = |(aux, k): (&AuxDraw, u32)| match *aux {
            AuxDraw::Fixed(value) => value,
            AuxDraw::Normal { mean, sigma } => mean + sigma * normal(&mut words(FIRST_AUX | k)),
            AuxDraw::Count { mean } => poisson(mean, &mut words(FIRST_AUX | k)),
        };
        out.aux.clear();
        out.aux.extend(self.aux.iter().zip(0..).map(draw));
    }
}

/// The parameter of each constraint term, and its auxiliary datum over the parameter (K).
fn scales(model: &Model) -> Vec<(usize, f64)> {
    let scale = |&param: &u32| match model.parameters.constraint[param as usize] {
        Some(Constraint::Poisson { tau }) => (param as usize, tau),
        _ => (param as usize, 1.0),
    };
    model.table(model.layout.constraint_param).iter().map(scale).collect()
}
