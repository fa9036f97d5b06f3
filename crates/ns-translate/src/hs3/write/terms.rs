//! Constraint terms as distributions, with the functions and constants that they need.

use ns_core::spec::{ConstraintTerm, LogNormalDensity, ModifierKind, ParameterConfig, PerBinKind};
use serde_json::{Value, json};

use super::names::TermNames;
use super::settings::{ParameterRole, Roles};
use crate::not_representable::Lacking;

/// How a modifier with one parameter refers to its term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    /// It has none.
    None,
    /// A Gaussian of unit width around 0, which needs no distribution.
    Implied,
    /// A distribution of its own.
    Named,
}

/// The entries of lists that terms need.
#[derive(Default)]
pub(super) struct Terms {
    pub(super) distributions: Vec<Value>,
    pub(super) functions: Vec<Value>,
    /// Names of terms that programs find only among those of the likelihood.
    pub(super) auxiliary: Vec<String>,
}

/// A constant or an auxiliary datum, with its value in a measurement.
pub(super) struct NamedValue {
    pub(super) name: String,
    pub(super) value: f64,
}

/// Returns how modifiers refer to the term of a parameter of one element.
pub(super) fn reference(role: &ParameterRole<'_>) -> Reference {
    let is_zero = |config: &&ParameterConfig| {
        config.auxdata.as_ref().is_none_or(|data| data.iter().all(|datum| datum.total_cmp(&0.0).is_eq()))
    };
    match (role.kind, role.own_term()) {
        (_, Some(ConstraintTerm::Flat)) | (ModifierKind::NormFactor, None) => Reference::None,
        (ModifierKind::NormSys | ModifierKind::HistoSys, None) => {
            let is_standard = role.configs.iter().flatten().all(is_zero);
            if is_standard { Reference::Implied } else { Reference::Named }
        }
        _ => Reference::Named,
    }
}

/// Returns the terms of all parameters that need a distribution.
pub(super) fn write(roles: &Roles<'_>, lacking: &mut Lacking) -> Terms {
    let mut terms = Terms::default();
    for (name, role) in &roles.roles {
        if role.is_vector() {
            if role.kind == ModifierKind::ShapeFactor && role.own_term().is_some() && per_bin_terms(role).is_none() {
                lacking.add("constraint terms of the shapefactor", name, role.pointer.clone());
            }
            continue;
        }
        let is_alpha = matches!(role.kind, ModifierKind::NormSys | ModifierKind::HistoSys);
        if is_alpha && role.own_term() == Some(ConstraintTerm::Flat) {
            lacking.add("no constraint term of", name, role.pointer.clone());
        }
        if role.kind == ModifierKind::Lumi && role.own_term().is_none() && !has_width(role) {
            lacking.add("a luminosity without settings,", name, role.pointer.clone());
        }
        if reference(role) == Reference::Named {
            add_term(name, role, &mut terms, lacking);
        }
    }
    terms
}

fn has_width(role: &ParameterRole<'_>) -> bool {
    let has_width = |config: &Option<&ParameterConfig>| config.is_some_and(|config| config.sigmas.is_some());
    role.configs.iter().all(has_width)
}

fn add_term(name: &str, role: &ParameterRole<'_>, terms: &mut Terms, lacking: &mut Lacking) {
    let TermNames { term, datum, mean, tau, log, .. } = &role.names;
    match role.own_term().unwrap_or(ConstraintTerm::Gaussian { sigma: 1.0 }) {
        ConstraintTerm::Gaussian { .. } => {
            let sigma = width_operand(role);
            let distribution = json!({"name": term, "type": "gaussian_dist", "x": name, "mean": datum, "sigma": sigma});
            terms.distributions.push(distribution);
        }
        ConstraintTerm::Poisson { .. } => {
            terms.functions.push(json!({"name": mean, "type": "product", "factors": [name, tau]}));
            // ROOT needs to be told not to round.
            let distribution =
                json!({"name": term, "type": "poisson_dist", "x": datum, "mean": mean, "integer": false});
            terms.distributions.push(distribution);
        }
        ConstraintTerm::LogNormal { kappa, .. } if kappa <= 0.0 || !has_positive_data(role) => {
            lacking.add("a log-normal term without a logarithm, of", name, role.pointer.clone());
        }
        ConstraintTerm::LogNormal { density: LogNormalDensity::Parameter, .. } => {
            let sigma = width_operand(role);
            let distribution = json!({"name": term, "type": "lognormal_dist", "x": name, "mu": datum, "sigma": sigma});
            terms.distributions.push(distribution);
        }
        ConstraintTerm::LogNormal { density: LogNormalDensity::Datum, .. } => {
            let expression = format!("log({name})");
            terms.functions.push(json!({"name": log, "type": "generic_function", "expression": expression}));
            let sigma = width_operand(role);
            let distribution = json!({"name": term, "type": "lognormal_dist", "x": datum, "mu": log, "sigma": sigma});
            terms.distributions.push(distribution);
        }
        ConstraintTerm::AsymmetricGaussian { .. } => {
            lacking.add("the asymmetric Gaussian term of", name, role.pointer.clone());
        }
        ConstraintTerm::Gamma { .. } => lacking.add("the gamma term of", name, role.pointer.clone()),
        ConstraintTerm::Flat => {}
    }
    if matches!(role.kind, ModifierKind::NormFactor | ModifierKind::Lumi) {
        terms.auxiliary.push(term.clone());
    }
}

/// Returns whether the data that measurements set have logarithms.
fn has_positive_data(role: &ParameterRole<'_>) -> bool {
    let data = role.configs.iter().flatten().filter_map(|config| config.auxdata.as_ref()).flatten();
    data.into_iter().all(|datum| *datum > 0.0)
}

/// Returns the width of a term in the measurement `m`; of a log-normal one, that of the logarithm.
fn width(role: &ParameterRole<'_>, m: usize) -> Option<f64> {
    match role.own_term() {
        Some(ConstraintTerm::Gaussian { sigma }) => Some(sigma),
        Some(ConstraintTerm::LogNormal { kappa, .. }) => Some(kappa.ln()),
        Some(_) => None,
        None if role.kind == ModifierKind::Lumi => role.configs[m]?.sigmas.as_ref()?.first().copied(),
        None => Some(1.0),
    }
}

/// Returns the width as a number, or as the name of a constant of each parameter point if the
/// measurements have different ones, or if ROOT would round it: it keeps six digits of numbers.
fn width_operand(role: &ParameterRole<'_>) -> Value {
    let mut widths = (0..role.configs.len()).map(|m| width(role, m));
    let first = widths.next().flatten();
    let is_rounded = first.is_some_and(|width| format!("{width:.5e}").parse() != Ok(width));
    if is_rounded || widths.any(|width| width != first) { json!(role.names.width) } else { json!(first) }
}

/// Returns the constants and auxiliary data of a parameter's term in the measurement `m`.
pub(super) fn values(role: &ParameterRole<'_>, m: usize) -> Vec<NamedValue> {
    if role.is_vector() || reference(role) != Reference::Named {
        return Vec::new();
    }
    let config = role.configs[m];
    let given = config.and_then(|config| config.auxdata.as_ref()).and_then(|data| data.first().copied());
    let term = role.own_term().unwrap_or(ConstraintTerm::Gaussian { sigma: 1.0 });
    let mut values = Vec::new();
    let nominal = role.default_init();
    let datum = match term {
        ConstraintTerm::Poisson { tau } => {
            values.push(NamedValue { name: role.names.tau.clone(), value: tau });
            given.unwrap_or(tau * nominal)
        }
        ConstraintTerm::LogNormal { density: LogNormalDensity::Parameter, kappa } => {
            // Without a datum it is the one that the term expects at the nominal value.
            given.map_or_else(|| nominal.ln() + kappa.ln().powi(2), f64::ln)
        }
        _ => given.unwrap_or(nominal),
    };
    values.push(NamedValue { name: role.names.datum.clone(), value: datum });
    if !matches!(term, ConstraintTerm::Poisson { .. }) && width_operand(role).is_string() {
        values.extend(width(role, m).map(|value| NamedValue { name: role.names.width.clone(), value }));
    }
    values
}

/// The terms of a vector, as those of a shapesys.
pub(super) struct PerBinTerms {
    pub(super) kind: PerBinKind,
    /// Relative uncertainties (B), 0 for a bin without a term.
    pub(super) relative: Vec<f64>,
}

/// Returns the terms of a shapefactor with constraint terms, if they are those that a shapesys may
/// have: all Gaussian around 1, or all Poisson with the data that they expect.
pub(super) fn per_bin_terms(role: &ParameterRole<'_>) -> Option<PerBinTerms> {
    let config = role.config()?;
    let terms = config.constraints.as_ref()?;
    let datum = |bin: usize| config.auxdata.as_ref().and_then(|data| data.get(bin).copied());
    let mut kind = None;
    let mut relative = Vec::new();
    for (bin, term) in terms.iter().enumerate() {
        let (own, width, expected) = match *term {
            ConstraintTerm::Gaussian { sigma } => (PerBinKind::Gaussian, sigma, 1.0),
            ConstraintTerm::Poisson { tau } => (PerBinKind::Poisson, tau.sqrt().recip(), tau),
            _ => return None,
        };
        let is_expected = datum(bin).is_none_or(|datum| (datum - expected).abs() <= 1e-12 * expected.abs());
        if !is_expected || *kind.get_or_insert(own) != own {
            return None;
        }
        relative.push(width);
    }
    Some(PerBinTerms { kind: kind?, relative })
}
