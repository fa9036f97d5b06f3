//! The constraint terms: the density f(a | θ) of the auxiliary datum a of one parameter θ.
//!
//! | term | -ln f(a \| θ) | θ̂ of a alone | width |
//! |---|---|---|---|
//! | Gaussian | ½ ((a - θ)/σ)² + ln(σ√2π) | a | σ |
//! | asymmetric Gaussian | the same with σ₋ for θ < a and σ₊ for θ > a, and σ = (σ₋ + σ₊)/2 in the logarithm | a | (σ₋ + σ₊)/2 |
//! | Poisson | τθ - a ln(τθ) + ln Γ(a + 1) | a/τ | √(θ/τ) |
//! | gamma | the same, minus ln τ | a/τ | √(θ/τ) |
//! | log-normal | ½ ((ln(a/θ) - b)/σ)² + ln(aσ√2π) | a exp(-b) | θσ |
//!
//! The gamma density of θ with shape a + 1 and rate τ is τ times the Poisson probability of a, so
//! that it is that term but for a constant, and its datum is a count. A log-normal term is the
//! density of a with median θ exp(b) and σ = ln κ. With b = 0 it is smallest at θ = a. The
//! log-normal density of θ with median a ([`crate::spec::LogNormalDensity::Parameter`]) is the same
//! function of θ as b = σ², and normalised in a it is that term.

use crate::double_double::DoubleDouble;
use crate::interpolate::Jet;
use crate::poisson::{self, LARGE_COUNT, half_deviance, half_deviance_double_double, log_normaliser};
use crate::spec::{ConstraintTerm, LogNormalDensity};

/// The constraint term of one parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Constraint {
    /// N(a | θ, σ): auxiliary datum a, width σ.
    Gaussian {
        /// The width σ.
        sigma: f64,
    },
    /// Two halves of normal distributions.
    AsymmetricGaussian {
        /// The width σ₋ for θ < a.
        sigma_lo: f64,
        /// The width σ₊ for θ ≥ a.
        sigma_hi: f64,
    },
    /// Pois(a | τθ): auxiliary datum a, scale τ.
    Poisson {
        /// The scale τ, the squared inverse relative uncertainty.
        tau: f64,
    },
    /// The gamma density of θ with shape a + 1 and rate τ.
    Gamma {
        /// The rate τ.
        tau: f64,
    },
    /// The log-normal density of a with median θ exp(`shift`).
    LogNormal {
        /// The standard deviation σ of ln a.
        sigma: f64,
        /// The logarithm b of the ratio of the median to θ.
        shift: f64,
    },
}

impl Constraint {
    /// Returns the term that a document describes, or `None` for a flat one.
    #[must_use]
    pub fn from_term(term: ConstraintTerm) -> Option<Self> {
        Some(match term {
            ConstraintTerm::Gaussian { sigma } => Self::Gaussian { sigma },
            ConstraintTerm::AsymmetricGaussian { sigma_lo, sigma_hi } => Self::AsymmetricGaussian { sigma_lo, sigma_hi },
            ConstraintTerm::Poisson { tau } => Self::Poisson { tau },
            ConstraintTerm::Gamma { tau } => Self::Gamma { tau },
            ConstraintTerm::LogNormal { kappa, density } => {
                let sigma = kappa.ln();
                let shift = match density {
                    LogNormalDensity::Datum => 0.0,
                    LogNormalDensity::Parameter => sigma * sigma,
                };
                Self::LogNormal { sigma, shift }
            }
            ConstraintTerm::Flat => return None,
        })
    }

    /// Returns its name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gaussian { .. } => "gaussian",
            Self::AsymmetricGaussian { .. } => "asymmetric_gaussian",
            Self::Poisson { .. } => "poisson",
            Self::Gamma { .. } => "gamma",
            Self::LogNormal { .. } => "lognormal",
        }
    }

    /// Returns -ln f(a | θ) with all constants.
    #[must_use]
    pub fn nll(self, aux: f64, param: f64) -> f64 {
        self.deviance(aux, param).round() + self.normaliser(aux)
    }

    /// Returns the part of -ln f that depends on θ, 0 at its minimum: ½ ((a - θ)/σ)², or D(a, τθ)
    /// in full precision.
    #[must_use]
    #[inline]
    pub fn deviance(self, aux: f64, param: f64) -> DoubleDouble {
        match self {
            Self::Gaussian { sigma } => {
                let pull = (aux - param) / sigma;
                (0.5 * pull * pull).into()
            }
            Self::Poisson { tau } | Self::Gamma { tau } if aux >= LARGE_COUNT => {
                half_deviance_double_double(aux, tau, param)
            }
            Self::Poisson { tau } | Self::Gamma { tau } => half_deviance(aux, tau * param).into(),
            Self::AsymmetricGaussian { .. } | Self::LogNormal { .. } => self.smooth_deviance(aux, param).into(),
        }
    }

    /// Returns the deviance of the terms that few models have.
    #[inline(never)]
    fn smooth_deviance(self, aux: f64, param: f64) -> f64 {
        match self {
            Self::LogNormal { .. } if param.is_nan() || param <= 0.0 => f64::INFINITY,
            Self::LogNormal { sigma, shift } => {
                let pull = (log_ratio(aux, param) - shift) / sigma;
                0.5 * pull * pull
            }
            _ => {
                let pull = (aux - param) / self.side(aux, param);
                0.5 * pull * pull
            }
        }
    }

    /// Returns the width of the half of an asymmetric Gaussian in which θ is.
    fn side(self, aux: f64, param: f64) -> f64 {
        match self {
            Self::AsymmetricGaussian { sigma_lo, .. } if param < aux => sigma_lo,
            Self::AsymmetricGaussian { sigma_hi, .. } => sigma_hi,
            Self::Gaussian { sigma } => sigma,
            Self::Poisson { .. } | Self::Gamma { .. } | Self::LogNormal { .. } => self.width(param),
        }
    }

    /// Returns the part of -ln f that does not depend on θ.
    #[must_use]
    pub fn normaliser(self, aux: f64) -> f64 {
        let gaussian = |sigma: f64| (std::f64::consts::TAU.sqrt() * sigma).ln();
        match self {
            Self::Gaussian { sigma } => gaussian(sigma),
            Self::AsymmetricGaussian { sigma_lo, sigma_hi } => gaussian(0.5 * (sigma_lo + sigma_hi)),
            Self::Poisson { .. } => log_normaliser(aux),
            Self::Gamma { tau } => log_normaliser(aux) - tau.ln(),
            Self::LogNormal { sigma, .. } => gaussian(sigma) + aux.ln(),
        }
    }

    /// Returns -ln f as a function of θ.
    #[must_use]
    pub fn jet(self, aux: f64, param: f64) -> Jet {
        let (first, second) = self.derivatives(aux, param);
        Jet { value: self.nll(aux, param), first, second }
    }

    /// Returns the first and second derivative of -ln f with respect to θ.
    #[must_use]
    #[inline]
    pub fn derivatives(self, aux: f64, param: f64) -> (f64, f64) {
        match self {
            Self::Gaussian { sigma } => ((param - aux) / (sigma * sigma), 1.0 / (sigma * sigma)),
            Self::Poisson { tau } | Self::Gamma { tau } => {
                let (first, second) = poisson::derivatives(aux, tau * param);
                (tau * first, tau * tau * second)
            }
            Self::AsymmetricGaussian { .. } | Self::LogNormal { .. } => self.smooth_derivatives(aux, param),
        }
    }

    #[inline(never)]
    fn smooth_derivatives(self, aux: f64, param: f64) -> (f64, f64) {
        if let Self::LogNormal { sigma, shift } = self {
            let (excess, inverse) = (log_ratio(aux, param) - shift, (sigma * param).recip());
            return (-excess * inverse / sigma, (1.0 + excess) * inverse * inverse);
        }
        let sigma = self.side(aux, param);
        ((param - aux) / (sigma * sigma), 1.0 / (sigma * sigma))
    }

    /// Returns the derivative of -ln f with respect to θ as a function of θ. The second derivative
    /// of an asymmetric Gaussian jumps at θ = a, where its own derivative is given as 0.
    #[must_use]
    pub fn derivative_jet(self, aux: f64, param: f64) -> Jet {
        let (value, first) = self.derivatives(aux, param);
        let second = match self {
            Self::Gaussian { .. } | Self::AsymmetricGaussian { .. } => 0.0,
            Self::Poisson { .. } | Self::Gamma { .. } if aux == 0.0 => 0.0,
            Self::Poisson { .. } | Self::Gamma { .. } => -2.0 * first / param,
            Self::LogNormal { sigma, shift } => {
                let excess = log_ratio(aux, param) - shift;
                -(3.0 + 2.0 * excess) / (sigma * sigma * param * param * param)
            }
        };
        Jet { value, first, second }
    }

    /// Returns -∂²ln f/∂θ∂a with a minus sign: how much one unit of the datum moves the derivative
    /// of -ln f down.
    #[must_use]
    pub fn datum_weight(self, aux: f64, param: f64) -> f64 {
        match self {
            Self::Gaussian { .. } | Self::AsymmetricGaussian { .. } => {
                let sigma = self.side(aux, param);
                1.0 / (sigma * sigma)
            }
            Self::Poisson { .. } | Self::Gamma { .. } => 1.0 / param,
            Self::LogNormal { sigma, .. } => 1.0 / (aux * param * sigma * sigma),
        }
    }

    /// Returns ∂/∂a [-ln f(a | `left`) + ln f(a | `right`)].
    #[must_use]
    pub fn datum_derivative(self, aux: f64, left: f64, right: f64) -> f64 {
        match self {
            Self::Gaussian { sigma } => (right - left) / (sigma * sigma),
            Self::AsymmetricGaussian { .. } => {
                let derivative = |param: f64| (aux - param) / self.side(aux, param).powi(2);
                derivative(left) - derivative(right)
            }
            Self::Poisson { .. } | Self::Gamma { .. } if left == right => 0.0,
            Self::Poisson { .. } | Self::Gamma { .. } => (right / left).ln(),
            Self::LogNormal { sigma, .. } => (right / left).ln() / (aux * sigma * sigma),
        }
    }

    /// Returns the derivative of ∂²(-ln f)/∂θ² with respect to the datum.
    #[must_use]
    pub fn datum_curvature(self, aux: f64, param: f64) -> f64 {
        match self {
            Self::Gaussian { .. } | Self::AsymmetricGaussian { .. } => 0.0,
            Self::Poisson { .. } | Self::Gamma { .. } => 1.0 / (param * param),
            Self::LogNormal { sigma, .. } => 1.0 / (aux * (sigma * param).powi(2)),
        }
    }

    /// Returns the ratio of the datum to the parameter where -ln f is smallest: the datum of an
    /// Asimov data set is this times θ.
    #[must_use]
    pub fn datum_ratio(self) -> f64 {
        match self {
            Self::Gaussian { .. } | Self::AsymmetricGaussian { .. } => 1.0,
            Self::Poisson { tau } | Self::Gamma { tau } => tau,
            Self::LogNormal { shift, .. } => shift.exp(),
        }
    }

    /// Returns where the datum alone puts the parameter.
    #[must_use]
    pub fn center(self, aux: f64) -> f64 {
        aux / self.datum_ratio()
    }

    /// Returns the standard deviation that the constraint term gives the parameter at `center`: the
    /// change that raises the parabola of the term by ½, and the mean of both sides for an
    /// asymmetric Gaussian.
    #[must_use]
    pub fn width(self, center: f64) -> f64 {
        match self {
            Self::Gaussian { sigma } => sigma,
            Self::AsymmetricGaussian { sigma_lo, sigma_hi } => 0.5 * (sigma_lo + sigma_hi),
            Self::Poisson { tau } | Self::Gamma { tau } => (center.max(f64::MIN_POSITIVE) / tau).sqrt(),
            Self::LogNormal { sigma, .. } => sigma * center.max(f64::MIN_POSITIVE),
        }
    }

    /// Returns the parameter one standard deviation below and above `center`: `center` ∓ the width,
    /// but κ⁻¹ and κ times `center` for a log-normal term.
    #[must_use]
    pub fn interval(self, center: f64) -> [f64; 2] {
        match self {
            Self::AsymmetricGaussian { sigma_lo, sigma_hi } => [center - sigma_lo, center + sigma_hi],
            Self::LogNormal { sigma, .. } => [center * (-sigma).exp(), center * sigma.exp()],
            Self::Gaussian { .. } | Self::Poisson { .. } | Self::Gamma { .. } => {
                let width = self.width(center);
                [center - width, center + width]
            }
        }
    }

    /// Returns the distance of `param` from `center` in units of the width on its side; of
    /// logarithms for a log-normal term.
    #[must_use]
    pub fn pull(self, center: f64, param: f64) -> f64 {
        match self {
            Self::LogNormal { sigma, .. } => (param / center).ln() / sigma,
            Self::AsymmetricGaussian { .. } => (param - center) / self.side(center, param),
            Self::Gaussian { .. } | Self::Poisson { .. } | Self::Gamma { .. } => (param - center) / self.width(center),
        }
    }

    /// Returns the datum `aux` moved down and up by the standard deviation that it has at `param`.
    /// A datum below a `param` is on the side of σ₊ of an asymmetric Gaussian.
    #[must_use]
    pub fn datum_interval(self, aux: f64, param: f64) -> [f64; 2] {
        match self {
            Self::Gaussian { sigma } => [aux - sigma, aux + sigma],
            Self::AsymmetricGaussian { sigma_lo, sigma_hi } => [aux - sigma_hi, aux + sigma_lo],
            Self::Poisson { tau } | Self::Gamma { tau } => {
                let sigma = (tau * param.max(0.0)).sqrt();
                [aux - sigma, aux + sigma]
            }
            Self::LogNormal { sigma, .. } => [aux * (-sigma).exp(), aux * sigma.exp()],
        }
    }

    /// Returns the smallest value that the datum can have.
    #[must_use]
    pub fn least_datum(self) -> f64 {
        match self {
            Self::Gaussian { .. } | Self::AsymmetricGaussian { .. } => f64::NEG_INFINITY,
            Self::Poisson { .. } | Self::Gamma { .. } => 0.0,
            Self::LogNormal { .. } => f64::MIN_POSITIVE,
        }
    }

    /// Returns whether the parameter must be positive.
    #[must_use]
    pub fn needs_positive(self) -> bool {
        !matches!(self, Self::Gaussian { .. } | Self::AsymmetricGaussian { .. })
    }
}

/// Returns ln(a/θ).
fn log_ratio(aux: f64, param: f64) -> f64 {
    (aux / param).ln()
}
