//! What a workspace may have beyond pyhf's schema: how modifiers are interpolated, constraint
//! terms, constrained quantities, names of elements, clipping, and rules of templates.
//!
//! The keys are optional and pyhf's documents have none of them. This module reads them with
//! places, writes them, and finds them in a workspace.

use ns_core::interpolate::InterpolationRule;
use ns_core::spec::{
    Clipping, ConstrainedQuantity, ConstraintTerm, LogNormalDensity, Modifier, ModifierInterpolation, ModifierKind,
    ParameterConfig, PerBinConstraint, PerBinKind, Sample, TemplateRule,
};
use serde_json::{Map, Value, json};

use super::PyhfError;
use crate::json::{JsonCursor, JsonError, JsonObject};

type Read<T> = Result<T, PyhfError>;

/// The types of constraint terms.
const TERMS: [&str; 6] = ["gaussian", "asymmetric_gaussian", "poisson", "gamma", "lognormal", "flat"];

/// Returns the kind of per-bin terms that documents call `word`.
pub(super) fn per_bin_kind(word: &str) -> Option<PerBinKind> {
    match word {
        "gaussian" => Some(PerBinKind::Gaussian),
        "poisson" => Some(PerBinKind::Poisson),
        _ => None,
    }
}

/// Returns the quantity that documents call `word`.
pub(super) fn density(word: &str) -> Option<LogNormalDensity> {
    match word {
        "datum" => Some(LogNormalDensity::Datum),
        "parameter" => Some(LogNormalDensity::Parameter),
        _ => None,
    }
}

/// Reads a word that `meaning` knows; `known` are all of them.
fn word<T>(cursor: &JsonCursor<'_>, known: &'static [&'static str], meaning: fn(&str) -> Option<T>) -> Read<T> {
    let word = cursor.text()?;
    meaning(word).ok_or_else(|| PyhfError::UnknownWord { word: word.to_owned(), known, place: cursor.place() })
}

fn number(object: &JsonObject<'_>, key: &'static str) -> Result<f64, JsonError> {
    object.need(key)?.number()
}

fn number_if_any(object: &JsonObject<'_>, key: &str) -> Result<Option<f64>, JsonError> {
    object.get(key).map(|cursor| cursor.number()).transpose()
}

/// Reads how a modifier of kind `kind` is interpolated.
pub(super) fn interpolation(object: &JsonObject<'_>, kind: ModifierKind) -> Read<ModifierInterpolation> {
    if !matches!(kind, ModifierKind::NormSys | ModifierKind::HistoSys)
        && let Some(cursor) = object.get("interpolation").or_else(|| object.get("scale"))
    {
        return Err(PyhfError::NotInterpolated { kind, place: cursor.place() });
    }
    let rule = object.get("interpolation");
    let rule = rule.map(|cursor| word(&cursor, &InterpolationRule::NAMES, InterpolationRule::from_word)).transpose()?;
    Ok(ModifierInterpolation { rule, scale: number_if_any(object, "scale")? })
}

/// Reads what becomes of a sample's template.
pub(super) fn template_rule(object: &JsonObject<'_>) -> Read<TemplateRule> {
    let normalize = object.get("normalize").map(|cursor| cursor.boolean()).transpose()?;
    Ok(TemplateRule { clip: number_if_any(object, "clip")?, normalize: normalize.unwrap_or_default() })
}

/// Reads the lowest values of yields.
pub(super) fn clipping(cursor: &JsonCursor<'_>) -> Read<Clipping> {
    let object = cursor.object(&["templates", "samples", "bins"])?;
    Ok(Clipping {
        templates: number_if_any(&object, "templates")?,
        samples: number_if_any(&object, "samples")?,
        bins: number_if_any(&object, "bins")?,
    })
}

/// Reads the quantity that terms constrain.
pub(super) fn constrained_quantity(cursor: &JsonCursor<'_>) -> Read<ConstrainedQuantity> {
    let object = cursor.object(&["offset", "factor"])?;
    Ok(ConstrainedQuantity { offset: number(&object, "offset")?, factor: number(&object, "factor")? })
}

/// Reads the terms of a staterror or shapesys.
pub(super) fn per_bin(cursor: &JsonCursor<'_>) -> Read<PerBinConstraint> {
    let object = cursor.object(&["constraint", "relative_threshold"])?;
    let constraint = object.get("constraint");
    let constraint = constraint.map(|cursor| word(&cursor, &["gaussian", "poisson"], per_bin_kind)).transpose()?;
    Ok(PerBinConstraint { constraint, relative_threshold: number_if_any(&object, "relative_threshold")? })
}

/// Reads one constraint term.
pub(super) fn constraint_term(cursor: &JsonCursor<'_>) -> Read<ConstraintTerm> {
    let object = cursor.open_object()?;
    let kind = object.need("type")?;
    word(&kind, &TERMS, |word| TERMS.contains(&word).then_some(()))?;
    Ok(match kind.text()? {
        "gaussian" => {
            let object = cursor.object(&["type", "sigma"])?;
            ConstraintTerm::Gaussian { sigma: number(&object, "sigma")? }
        }
        "asymmetric_gaussian" => {
            let object = cursor.object(&["type", "sigma_lo", "sigma_hi"])?;
            let (sigma_lo, sigma_hi) = (number(&object, "sigma_lo")?, number(&object, "sigma_hi")?);
            ConstraintTerm::AsymmetricGaussian { sigma_lo, sigma_hi }
        }
        "poisson" => ConstraintTerm::Poisson { tau: number(&cursor.object(&["type", "tau"])?, "tau")? },
        "gamma" => ConstraintTerm::Gamma { tau: number(&cursor.object(&["type", "tau"])?, "tau")? },
        "lognormal" => {
            let object = cursor.object(&["type", "kappa", "density"])?;
            let quantity = object.get("density");
            let quantity = quantity.map(|cursor| word(&cursor, &["datum", "parameter"], density)).transpose()?;
            ConstraintTerm::LogNormal { kappa: number(&object, "kappa")?, density: quantity.unwrap_or_default() }
        }
        _ => {
            cursor.object(&["type"])?;
            ConstraintTerm::Flat
        }
    })
}

/// Adds to `object` how `modifier` is interpolated.
pub(super) fn write_interpolation(modifier: &Modifier, object: &mut Map<String, Value>) {
    let ModifierInterpolation { rule, scale } = modifier.interpolation;
    object.extend(rule.map(|rule| ("interpolation".to_owned(), json!(rule.as_str()))));
    object.extend(scale.map(|scale| ("scale".to_owned(), json!(scale))));
}

/// Adds to `object` what becomes of the template of `sample`.
pub(super) fn write_template_rule(sample: &Sample, object: &mut Map<String, Value>) {
    let TemplateRule { clip, normalize } = sample.template;
    object.extend(clip.map(|clip| ("clip".to_owned(), json!(clip))));
    object.extend(normalize.then(|| ("normalize".to_owned(), json!(true))));
}

/// Adds to the configuration of a measurement the lowest values of yields, if any.
pub(super) fn write_clipping(clip: &Clipping, config: &mut Map<String, Value>) {
    let limits = [("templates", clip.templates), ("samples", clip.samples), ("bins", clip.bins)];
    let given: Map<String, Value> =
        limits.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))).collect();
    if !given.is_empty() {
        config.insert("clip".to_owned(), Value::Object(given));
    }
}

/// Adds to `object` the settings of a parameter beyond pyhf's.
pub(super) fn write_parameter(parameter: &ParameterConfig, object: &mut Map<String, Value>) {
    let terms = parameter.constraints.as_ref().map(|terms| terms.iter().map(write_term).collect());
    let beta = parameter.beta.map(|ConstrainedQuantity { offset, factor }| json!({"offset": offset, "factor": factor}));
    let settings = [
        ("constraints", terms),
        ("per_bin", parameter.per_bin.map(write_per_bin)),
        ("beta", beta),
        ("elements", parameter.elements.as_ref().map(|names| json!(names))),
        ("poi", parameter.is_poi.then_some(json!(true))),
        ("groups", (!parameter.groups.is_empty()).then(|| json!(parameter.groups))),
    ];
    object.extend(settings.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
}

fn write_per_bin(per_bin: PerBinConstraint) -> Value {
    let kind = per_bin.constraint.map(|kind| match kind {
        PerBinKind::Gaussian => json!("gaussian"),
        PerBinKind::Poisson => json!("poisson"),
    });
    let threshold = per_bin.relative_threshold.map(|threshold| json!(threshold));
    let given = [("constraint", kind), ("relative_threshold", threshold)];
    given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect::<Map<_, _>>().into()
}

fn write_term(term: &ConstraintTerm) -> Value {
    match *term {
        ConstraintTerm::Gaussian { sigma } => json!({"type": "gaussian", "sigma": sigma}),
        ConstraintTerm::AsymmetricGaussian { sigma_lo, sigma_hi } => {
            json!({"type": "asymmetric_gaussian", "sigma_lo": sigma_lo, "sigma_hi": sigma_hi})
        }
        ConstraintTerm::Poisson { tau } => json!({"type": "poisson", "tau": tau}),
        ConstraintTerm::Gamma { tau } => json!({"type": "gamma", "tau": tau}),
        ConstraintTerm::LogNormal { kappa, density: LogNormalDensity::Datum } => {
            json!({"type": "lognormal", "kappa": kappa})
        }
        ConstraintTerm::LogNormal { kappa, density: LogNormalDensity::Parameter } => {
            json!({"type": "lognormal", "kappa": kappa, "density": "parameter"})
        }
        ConstraintTerm::Flat => json!({"type": "flat"}),
    }
}
