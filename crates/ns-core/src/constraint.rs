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
//!
//! Gamma and log-normal terms may constrain β = offset + factor·θ in place of θ. A point where θ
//! (or β) must be positive and is not has -ln f = +∞.

use crate::double_double::DoubleDouble;
use crate::interpolate::Jet;
use crate::poisson::{self, LARGE_COUNT, half_deviance, half_deviance_double_double, log_normaliser};
use crate::spec::{ConstrainedQuantity, ConstraintTerm, LogNormalDensity};

/// Closer to its datum than this part of a width, the second derivative of an asymmetric Gaussian
/// is that of the mean of its widths: uncertainties there must not depend on rounding.
const BETWEEN: f64 = 1e-3;

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
        /// What is constrained.
        beta: ConstrainedQuantity,
    },
    /// The log-normal density of a with median θ exp(`shift`).
    LogNormal {
        /// The standard deviation σ of ln a.
        sigma: f64,
        /// The logarithm b of the ratio of the median to θ.
        shift: f64,
        /// What is constrained.
        beta: ConstrainedQuantity,
    },
}

impl ConstrainedQuantity {
    /// Returns β at θ.
    #[must_use]
    pub fn at(self, param: f64) -> f64 {
        self.offset + self.factor * param
    }

    /// Returns θ where β is `value`.
    #[must_use]
    pub fn param_at(self, value: f64) -> f64 {
        (value - self.offset) / self.factor
    }
}

/// The datum that a term expects, as a function of θ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectedDatum {
    /// Its value at θ = 0.
    pub offset: f64,
    /// Its change per unit of θ.
    pub ratio: f64,
}

impl ExpectedDatum {
    /// Returns the datum at θ.
    #[must_use]
    pub fn at(self, param: f64) -> f64 {
        let datum = param * self.ratio;
        // A plain ratio keeps the sign of zero.
        if self.offset == 0.0 { datum } else { datum + self.offset }
    }

    /// Returns θ at which `datum` is expected.
    #[must_use]
    pub fn param_at(self, datum: f64) -> f64 {
        let datum = if self.offset == 0.0 { datum } else { datum - self.offset };
        datum / self.ratio
    }
}

impl Constraint {
    /// Returns the term that a document describes, or `None` for a flat one.
    #[must_use]
    pub fn from_term(term: ConstraintTerm, beta: ConstrainedQuantity) -> Option<Self> {
        Some(match term {
            ConstraintTerm::Gaussian { sigma } => Self::Gaussian { sigma },
            ConstraintTerm::AsymmetricGaussian { sigma_lo, sigma_hi } => {
                Self::AsymmetricGaussian { sigma_lo, sigma_hi }
            }
            ConstraintTerm::Poisson { tau } => Self::Poisson { tau },
            ConstraintTerm::Gamma { tau } => Self::Gamma { tau, beta },
            ConstraintTerm::LogNormal { kappa, density } => {
                let sigma = kappa.ln();
                let shift = match density {
                    LogNormalDensity::Datum => 0.0,
                    LogNormalDensity::Parameter => sigma * sigma,
                };
                Self::LogNormal { sigma, shift, beta }
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
            Self::Poisson { tau } if aux >= LARGE_COUNT => half_deviance_double_double(aux, tau, param),
            Self::Poisson { tau } => half_deviance(aux, tau * param).into(),
            Self::AsymmetricGaussian { .. } | Self::Gamma { .. } | Self::LogNormal { .. } => {
                self.rare_deviance(aux, param)
            }
        }
    }

    /// Returns the deviance of the terms that few models have.
    #[inline(never)]
    fn rare_deviance(self, aux: f64, param: f64) -> DoubleDouble {
        match self {
            Self::Gamma { tau, beta } => Self::Poisson { tau }.deviance(aux, beta.at(param)),
            Self::LogNormal { sigma, shift, beta } => {
                let beta = beta.at(param);
                if beta.is_nan() || beta <= 0.0 {
                    return f64::INFINITY.into();
                }
                let pull = ((aux / beta).ln() - shift) / sigma;
                (0.5 * pull * pull).into()
            }
            Self::AsymmetricGaussian { .. } => Self::Gaussian { sigma: self.side(aux, param) }.deviance(aux, param),
            Self::Gaussian { .. } | Self::Poisson { .. } => self.deviance(aux, param),
        }
    }

    /// Returns σ of a Gaussian, of the half in which θ is.
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
            Self::Gamma { tau, .. } => log_normaliser(aux) - tau.ln(),
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
            Self::Poisson { tau } => {
                let (first, second) = poisson::derivatives(aux, tau * param);
                (tau * first, tau * tau * second)
            }
            Self::AsymmetricGaussian { .. } | Self::Gamma { .. } | Self::LogNormal { .. } => {
                self.rare_derivatives(aux, param)
            }
        }
    }

    #[inline(never)]
    fn rare_derivatives(self, aux: f64, param: f64) -> (f64, f64) {
        match self {
            Self::Gamma { tau, beta } => {
                let (first, second) = Self::Poisson { tau }.derivatives(aux, beta.at(param));
                (beta.factor * first, beta.factor * beta.factor * second)
            }
            Self::LogNormal { sigma, shift, beta } => {
                let (excess, rate) = ((aux / beta.at(param)).ln() - shift, beta.factor / (sigma * beta.at(param)));
                (-excess * rate / sigma, (1.0 + excess) * rate * rate)
            }
            _ => {
                let sigma = self.side(aux, param);
                let is_between = (param - aux).abs() < BETWEEN * sigma;
                let width = if is_between { self.width(param) } else { sigma };
                ((param - aux) / (sigma * sigma), 1.0 / (width * width))
            }
        }
    }

    /// Returns the derivative of -ln f with respect to θ as a function of θ. The second derivative
    /// of an asymmetric Gaussian jumps at θ = a, where its own derivative is given as 0.
    #[must_use]
    pub fn derivative_jet(self, aux: f64, param: f64) -> Jet {
        let (value, first) = self.derivatives(aux, param);
        let second = match self {
            Self::Gaussian { .. } | Self::AsymmetricGaussian { .. } => 0.0,
            Self::Poisson { .. } | Self::Gamma { .. } if aux == 0.0 => 0.0,
            Self::Poisson { .. } => -2.0 * first / param,
            Self::Gamma { beta, .. } => -2.0 * first * beta.factor / beta.at(param),
            Self::LogNormal { sigma, shift, beta } => {
                let (excess, rate) = ((aux / beta.at(param)).ln() - shift, beta.factor / beta.at(param));
                -(3.0 + 2.0 * excess) * rate * rate * rate / (sigma * sigma)
            }
        };
        Jet { value, first, second }
    }

    /// Returns how much one unit of the datum lowers the derivative of -ln f with respect to θ.
    #[must_use]
    pub fn datum_weight(self, aux: f64, param: f64) -> f64 {
        match self {
            Self::Gaussian { .. } | Self::AsymmetricGaussian { .. } => {
                let sigma = self.side(aux, param);
                1.0 / (sigma * sigma)
            }
            Self::Poisson { .. } => 1.0 / param,
            Self::Gamma { beta, .. } => beta.factor / beta.at(param),
            Self::LogNormal { sigma, beta, .. } => beta.factor / (beta.at(param) * aux * sigma * sigma),
        }
    }

    /// Returns the derivative with respect to the datum of the difference between -ln f at θ =
    /// `left` and at θ = `right`.
    #[must_use]
    pub fn datum_derivative(self, aux: f64, left: f64, right: f64) -> f64 {
        match self {
            Self::Gaussian { sigma } => (right - left) / (sigma * sigma),
            Self::AsymmetricGaussian { .. } => {
                let derivative = |param: f64| (aux - param) / self.side(aux, param).powi(2);
                derivative(left) - derivative(right)
            }
            _ if left == right => 0.0,
            Self::Poisson { .. } => (right / left).ln(),
            Self::Gamma { beta, .. } => (beta.at(right) / beta.at(left)).ln(),
            Self::LogNormal { sigma, beta, .. } => (beta.at(right) / beta.at(left)).ln() / (aux * sigma * sigma),
        }
    }

    /// Returns the derivative with respect to the datum of v² ∂²(-ln f)/∂θ².
    #[must_use]
    pub fn datum_curvature(self, aux: f64, param: f64, v: f64) -> f64 {
        match self {
            Self::Gaussian { .. } | Self::AsymmetricGaussian { .. } => 0.0,
            Self::Poisson { .. } => (v / param).powi(2),
            Self::Gamma { beta, .. } => (v * beta.factor / beta.at(param)).powi(2),
            Self::LogNormal { sigma, beta, .. } => (v * beta.factor / (sigma * beta.at(param))).powi(2) / aux,
        }
    }

    /// Returns the datum for which -ln f is smallest at θ, that of an Asimov data set.
    #[must_use]
    pub fn expected_datum(self) -> ExpectedDatum {
        let of_beta = |beta: ConstrainedQuantity, ratio: f64| ExpectedDatum {
            offset: ratio * beta.offset,
            ratio: ratio * beta.factor,
        };
        match self {
            Self::Gaussian { .. } | Self::AsymmetricGaussian { .. } => ExpectedDatum { offset: 0.0, ratio: 1.0 },
            Self::Poisson { tau } => ExpectedDatum { offset: 0.0, ratio: tau },
            Self::Gamma { tau, beta } => of_beta(beta, tau),
            Self::LogNormal { shift, beta, .. } => of_beta(beta, shift.exp()),
        }
    }

    /// Returns where the datum alone puts the parameter.
    #[must_use]
    pub fn center(self, aux: f64) -> f64 {
        self.expected_datum().param_at(aux)
    }

    /// Returns the standard deviation that the constraint term gives the parameter at `center`: the
    /// change that raises the parabola of the term by ½, and the mean of both sides for an
    /// asymmetric Gaussian.
    #[must_use]
    pub fn width(self, center: f64) -> f64 {
        let count = |tau: f64, value: f64| (value.max(f64::MIN_POSITIVE) / tau).sqrt();
        match self {
            Self::Gaussian { sigma } => sigma,
            Self::AsymmetricGaussian { sigma_lo, sigma_hi } => 0.5 * (sigma_lo + sigma_hi),
            Self::Poisson { tau } => count(tau, center),
            Self::Gamma { tau, beta } => count(tau, beta.at(center)) / beta.factor,
            Self::LogNormal { sigma, beta, .. } => sigma * beta.at(center).max(f64::MIN_POSITIVE) / beta.factor,
        }
    }

    /// Returns how far one standard deviation goes below and above `center`: to where β is κ⁻¹ and
    /// κ times its value for a log-normal term, and the width for symmetric ones.
    #[must_use]
    pub fn widths(self, center: f64) -> [f64; 2] {
        match self {
            Self::AsymmetricGaussian { sigma_lo, sigma_hi } => [sigma_lo, sigma_hi],
            Self::LogNormal { sigma, beta, .. } => {
                let unit = beta.at(center).max(f64::MIN_POSITIVE) / beta.factor;
                [-unit * (-sigma).exp_m1(), unit * sigma.exp_m1()]
            }
            Self::Gaussian { .. } | Self::Poisson { .. } | Self::Gamma { .. } => [self.width(center); 2],
        }
    }

    /// Returns the distance of `param` from `center` in units of the width of that side; of
    /// logarithms for a log-normal term.
    #[must_use]
    pub fn pull(self, center: f64, param: f64) -> f64 {
        match self {
            Self::LogNormal { sigma, beta, .. } => (beta.at(param) / beta.at(center)).ln() / sigma,
            Self::AsymmetricGaussian { .. } => (param - center) / self.side(center, param),
            Self::Gaussian { .. } | Self::Poisson { .. } | Self::Gamma { .. } => (param - center) / self.width(center),
        }
    }

    /// Returns the datum `aux` moved down and up by the standard deviation that it has at θ. A
    /// datum below θ is on the side of σ₊ of an asymmetric Gaussian.
    #[must_use]
    pub fn datum_interval(self, aux: f64, param: f64) -> [f64; 2] {
        let around = |sigma: f64| [aux - sigma, aux + sigma];
        match self {
            Self::Gaussian { sigma } => around(sigma),
            Self::AsymmetricGaussian { sigma_lo, sigma_hi } => [aux - sigma_hi, aux + sigma_lo],
            Self::Poisson { tau } => around((tau * param.max(0.0)).sqrt()),
            Self::Gamma { tau, beta } => around((tau * beta.at(param).max(0.0)).sqrt()),
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

    /// Returns the value above which θ must be, if there is one.
    #[must_use]
    pub fn least_param(self) -> Option<f64> {
        match self {
            Self::Gaussian { .. } | Self::AsymmetricGaussian { .. } => None,
            Self::Poisson { .. } => Some(0.0),
            Self::Gamma { beta, .. } | Self::LogNormal { beta, .. } => Some(beta.param_at(0.0)),
        }
    }
}
