//! Models of one bin whose background is known from an auxiliary count, with exact sums over all
//! outcomes.

use ns_core::Model;
use ns_core::poisson::{half_deviance, log_normaliser};
use ns_core::spec::ModifierData::{NormFactor, ShapeSys};
use ns_inference::toys::AuxTreatment;
use ns_testkit::small::{one_channel, sample};

/// A model of one bin with signal and background, where an auxiliary measurement determines the
/// background with relative uncertainty db/b, that is with τ = (b/db)² events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnOff {
    pub(crate) s: f64,
    pub(crate) b: f64,
    pub(crate) db: f64,
    pub(crate) n: f64,
}

impl OnOff {
    pub(crate) fn tau(self) -> f64 {
        (self.b / self.db).powi(2)
    }

    pub(crate) fn model(self) -> Model {
        let background = sample("background", &[self.b], &[("gamma", ShapeSys(vec![self.db]))]);
        one_channel(vec![sample("signal", &[self.s], &[("mu", NormFactor)]), background], &[self.n])
    }

    /// Returns -ln L at the conditional minimum, up to constants of the data, and γ there: the
    /// positive root of a quadratic equation.
    pub(crate) fn conditional(self, mu: f64, n: f64, m: f64) -> (f64, f64) {
        let (b, tau, signal) = (self.b, self.tau(), mu * self.s);
        let (two, one, none) = ((b + tau) * b, (b + tau) * signal - (n + m) * b, -m * signal);
        let gamma = (-one + (one * one - 4.0 * two * none).sqrt()) / (2.0 * two);
        (half_deviance(n, signal + gamma * b) + half_deviance(m, tau * gamma), gamma)
    }

    /// Returns the best fit of μ ≥ 0 for n events and m auxiliary events.
    pub(crate) fn mu_hat(self, n: f64, m: f64) -> f64 {
        ((n - m / self.tau() * self.b) / self.s).max(0.0)
    }

    /// Returns t̃ at `mu` for n events and m auxiliary events.
    pub(crate) fn t_tilde(self, mu: f64, n: f64, m: f64) -> f64 {
        let best = if n * self.tau() < m * self.b { self.conditional(0.0, n, m).0 } else { 0.0 };
        2.0 * (self.conditional(mu, n, m).0 - best).max(0.0)
    }

    /// Returns q̃ at `mu` for n events and m auxiliary events.
    pub(crate) fn q_tilde(self, mu: f64, n: f64, m: f64) -> f64 {
        if self.mu_hat(n, m) > mu { 0.0 } else { self.t_tilde(mu, n, m) }
    }

    /// Returns P(q̃ ≥ observed) at μ = 1 under `thrown_at`.
    pub(crate) fn p_value(self, thrown_at: f64, aux: AuxTreatment) -> f64 {
        let observed = self.q_tilde(1.0, self.n, self.tau());
        self.probability(thrown_at, aux, |n, m| self.q_tilde(1.0, n, m) >= observed - 1e-8)
    }

    /// Returns the probability of the outcomes that `counts` accepts, thrown at `mu` with the
    /// nuisance parameter at its conditional best fit, as a sum over all outcomes.
    pub(crate) fn probability(self, mu: f64, aux: AuxTreatment, counts: impl Fn(f64, f64) -> bool) -> f64 {
        let tau = self.tau();
        let (_, gamma) = self.conditional(mu, self.n, tau);
        let pmf = |k: f64, mean: f64| (-half_deviance(k, mean) - log_normaliser(k)).exp();
        let until = |mean: f64| (0..(mean + 12.0 * mean.sqrt() + 12.0) as u32).map(f64::from);
        let of_n = |m: f64| -> f64 {
            let mean = mu * self.s + gamma * self.b;
            until(mean).filter(|&n| counts(n, m)).map(|n| pmf(n, mean)).sum()
        };
        match aux {
            AuxTreatment::Fixed => of_n(tau),
            AuxTreatment::Fluctuated => until(tau * gamma).map(|m| pmf(m, tau * gamma) * of_n(m)).sum(),
        }
    }
}

pub(crate) const ON_OFF: [OnOff; 4] = [
    OnOff { s: 30.0, b: 100.0, db: 20.0, n: 100.0 },
    OnOff { s: 10.0, b: 50.0, db: 5.0, n: 48.0 },
    OnOff { s: 5.0, b: 3.0, db: 1.0, n: 4.0 },
    OnOff { s: 60.0, b: 400.0, db: 25.0, n: 430.0 },
];
