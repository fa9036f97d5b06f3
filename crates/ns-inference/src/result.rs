//! What a fit returns: numbers, and a verdict that says whether to trust them and why not.
//!
//! Everything here serialises; the JSON that the command prints is made of these fields.

use crate::minimize::{BoundSide, Outcome};
use ns_core::likelihood::NonFinite;
use serde::{Deserialize, Serialize};

/// Below this fraction a parameter's uncertainty is decided by rounding, and none is given.
pub(crate) const UNDETERMINED: f64 = 1e-12;

/// A parameter that a fit left at a bound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtBound {
    /// Its name.
    pub parameter: String,
    /// Which bound.
    pub side: BoundSide,
    /// The bound.
    pub bound: f64,
}

/// A direction in which -ln L is so flat that its parameters cannot be told apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlatDirection {
    /// Curvature along it over the parameters' own curvatures: 1 for independent parameters, 0 for
    /// degenerate ones.
    pub curvature: f64,
    /// The parameters that take part, strongest first, with their share (of a unit vector in units
    /// of their own widths).
    pub parameters: Vec<(String, f64)>,
}

impl FlatDirection {
    /// Returns the warnings about it, in a sentence.
    pub(crate) fn warning(&self) -> String {
        let names: Vec<&str> = self.parameters.iter().take(5).map(|(name, _)| name.as_str()).collect();
        let how = if self.curvature < UNDETERMINED { "the data do not determine" } else { "nearly degenerate:" };
        format!("{how} `{}` (curvature {:.0e})", names.join("`, `"), self.curvature)
    }
}

/// Where -ln L, minimised over all other parameters, has risen by z²/2 on both sides of a
/// parameter's best fit: a two-sided interval at the confidence level of z standard deviations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MinosInterval {
    /// The parameter's name.
    pub parameter: String,
    /// The confidence level; 0.6827 for z = 1.
    #[serde(default = "one_sigma")]
    pub cl: f64,
    /// The best-fit value.
    pub bestfit: f64,
    /// Distance to the lower end, negative; `None` if the range ends before.
    pub down: Option<f64>,
    /// Distance to the upper end, positive; `None` if the range ends before.
    pub up: Option<f64>,
}

/// The two-sided confidence level of one standard deviation.
pub const ONE_SIGMA: f64 = 0.682_689_492_137_085_9;

/// The two-sided confidence level of two standard deviations.
pub const TWO_SIGMA: f64 = 0.954_499_736_103_641_6;

fn one_sigma() -> f64 {
    ONE_SIGMA
}

/// A parameter along which -ln L is not a parabola within its standard deviation σ: its uncertainty
/// does not describe the data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotParabolic {
    /// The parameter's name.
    pub parameter: String,
    /// The rise of 2·(-ln L) at -1σ, the other parameters nearly fitted: 1 for a parabola, infinite
    /// (`null` in JSON) where -ln L is; `None` if the range ends before.
    pub twice_delta_nll_down: Option<f64>,
    /// The same at +1σ.
    pub twice_delta_nll_up: Option<f64>,
}

/// The best fit of the parameter of interest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PoiBestFit {
    /// Its name.
    pub name: String,
    /// Its index among the parameters.
    pub index: usize,
    /// The best-fit value; `None` if the fit did not converge.
    pub bestfit: Option<f64>,
}

/// One of several distinct minima.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LocalMinimum {
    /// 2·(-ln L) there.
    pub twice_nll: f64,
    /// 2·(-ln L) above the lowest minimum found.
    pub depth: f64,
    /// The parameter of interest there, if the model has one.
    pub poi: Option<PoiBestFit>,
    /// How it was found first.
    pub found_by: String,
    /// Starting points that led there.
    pub n_starts: usize,
    /// The parameters there (P).
    #[serde(rename = "bestfit")]
    pub params: Vec<f64>,
}

/// Where a free fit ended: what scans, contours and rankings refer to. P is the number of
/// parameters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BestFit {
    /// Parameter values (P).
    #[serde(rename = "bestfit")]
    pub params: Vec<f64>,
    /// Standard deviations from the exact Hessian (P); `None` for fixed parameters, those at
    /// bounds, and those without curvature.
    pub uncertainties: Vec<Option<f64>>,
    /// 2·(-ln L) there, with all constants.
    pub twice_nll: f64,
    /// -ln L there.
    pub nll: f64,
    /// Whether it is a minimum.
    pub converged: bool,
    /// Why the fit stopped.
    pub outcome: Outcome,
}

/// The result of a fit. P is the number of parameters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitResult {
    /// Parameter names (P).
    pub par_names: Vec<String>,
    /// Parameter values at the minimum (P).
    pub bestfit: Vec<f64>,
    /// Standard deviations from the exact Hessian (P); `None` for fixed parameters, those at
    /// bounds, and those without curvature.
    pub uncertainties: Vec<Option<f64>>,
    /// Parts of the uncertainties of the parameters of interest, in their order; empty without
    /// uncertainties.
    pub splits: Vec<UncertaintySplit>,
    /// Covariance over all parameters (P × P, row by row), zero for those without uncertainty; only
    /// if asked for.
    pub covariance: Option<Vec<f64>>,
    /// Number of parameters that the fit could move.
    pub n_free: usize,
    /// 2·(-ln L) at the minimum, with all constants.
    pub twice_nll: f64,
    /// -ln L at the minimum.
    pub nll: f64,
    /// Whether the fit ended at a minimum.
    pub converged: bool,
    /// Why it stopped.
    pub outcome: Outcome,
    /// Estimated vertical distance to the minimum, ½ gᵀH⁻¹g in -ln L.
    pub edm: f64,
    /// Largest gradient component of -ln L that points into the box.
    pub projected_gradient: f64,
    /// Steps taken.
    pub n_iterations: usize,
    /// Evaluations of the likelihood.
    pub n_evaluations: usize,
    /// Parameters that ended at a bound.
    pub at_bounds: Vec<AtBound>,
    /// Directions in which the data do not determine the parameters.
    pub flat_directions: Vec<FlatDirection>,
    /// Parameters whose uncertainties describe no parabola, worst first; looked for among the
    /// parameter of interest, the nonlinear systematics and the free scale factors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_parabolic: Vec<NotParabolic>,
    /// What makes -ln L not finite, if it is not.
    pub not_finite: Option<NonFinite>,
    /// Asymmetric uncertainties, if asked for.
    pub minos: Vec<MinosInterval>,
    /// Every distinct minimum that the search met, lowest first; empty if it met only one and no
    /// random starts were asked for.
    pub minima: Vec<LocalMinimum>,
    /// What a reader should know before using the numbers, one sentence each.
    pub warnings: Vec<String>,
}

/// The uncertainty of a parameter in two parts whose squares add up to its square
/// (arXiv:2307.04007).
///
/// Systematic is what the fluctuations of the auxiliary data contribute: Σ (C_μk / σ_k)² over the
/// constrained parameters k, C being the covariance and σ_k the width of the constraint term at the
/// best fit. Statistical is the rest, what the event counts contribute.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UncertaintySplit {
    /// The parameter.
    pub parameter: String,
    /// The statistical part; `None` if the parameter has no uncertainty.
    pub statistical: Option<f64>,
    /// The systematic part.
    pub systematic: Option<f64>,
}

impl FitResult {
    /// Returns the index of the parameter called `name`.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.par_names.iter().position(|n| n == name)
    }

    /// Returns the correlations from the covariance (P × P, row by row); 0 where there is no
    /// uncertainty, 1 on the diagonal.
    #[must_use]
    pub fn correlation(&self) -> Option<Vec<f64>> {
        let covariance = self.covariance.as_ref()?;
        let n = self.par_names.len();
        let width = |i: usize| covariance[i * n + i].sqrt();
        let entry = |i: usize, j: usize| match (i == j, width(i) * width(j)) {
            (true, _) => 1.0,
            (false, product) if product > 0.0 => covariance[i * n + j] / product,
            _ => 0.0,
        };
        Some((0..n * n).map(|at| entry(at / n, at % n)).collect())
    }
}
