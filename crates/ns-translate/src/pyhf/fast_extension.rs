//! The fast reader of what a workspace may have beyond pyhf's schema.

use std::borrow::Cow;

use ns_core::interpolate::InterpolationRule;
use ns_core::spec::{Clipping, ConstrainedQuantity, ConstraintTerm, LogNormalDensity, PerBinConstraint, PerBinKind};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::extension::{density, per_bin_kind};
use super::fast::{Form, Object, filled_objects};

pub(super) fn some_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(deserializer).map(Some)
}

pub(super) fn interpolation_rule<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<InterpolationRule>, D::Error> {
    let word = Cow::<'de, str>::deserialize(deserializer)?;
    InterpolationRule::from_word(&word).map(Some).ok_or_else(|| D::Error::custom("unknown interpolation rule"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClippingForm {
    #[serde(default, deserialize_with = "some_number")]
    templates: Option<f64>,
    #[serde(default, deserialize_with = "some_number")]
    samples: Option<f64>,
    #[serde(default, deserialize_with = "some_number")]
    bins: Option<f64>,
}

pub(super) fn clipping<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Clipping, D::Error> {
    let ClippingForm { templates, samples, bins } = Object::deserialize(deserializer)?.0;
    Ok(Clipping { templates, samples, bins })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuantityForm {
    offset: f64,
    factor: f64,
}

pub(super) fn constrained_quantity<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ConstrainedQuantity>, D::Error> {
    let QuantityForm { offset, factor } = Object::deserialize(deserializer)?.0;
    Ok(Some(ConstrainedQuantity { offset, factor }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PerBinForm<'a> {
    #[serde(default, borrow, deserialize_with = "some_word")]
    constraint: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "some_number")]
    relative_threshold: Option<f64>,
}

pub(super) fn per_bin<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PerBinConstraint>, D::Error> {
    let PerBinForm { constraint, relative_threshold } = Object::deserialize(deserializer)?.0;
    let known = |word: Cow<'_, str>| per_bin_kind(&word).ok_or_else(|| D::Error::custom("unknown constraint"));
    let constraint: Option<PerBinKind> = constraint.map(known).transpose()?;
    Ok(Some(PerBinConstraint { constraint, relative_threshold }))
}

fn some_word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Word<'a>(#[serde(borrow)] Cow<'a, str>);
    Word::deserialize(deserializer).map(|word| Some(word.0))
}

/// A constraint term by its keys: `type` may come last.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TermForm<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, deserialize_with = "some_number")]
    sigma: Option<f64>,
    #[serde(default, deserialize_with = "some_number")]
    sigma_lo: Option<f64>,
    #[serde(default, deserialize_with = "some_number")]
    sigma_hi: Option<f64>,
    #[serde(default, deserialize_with = "some_number")]
    tau: Option<f64>,
    #[serde(default, deserialize_with = "some_number")]
    kappa: Option<f64>,
    #[serde(default, borrow, deserialize_with = "some_word")]
    density: Option<Cow<'a, str>>,
}

impl Form for TermForm<'_> {
    type Spec = ConstraintTerm;

    fn into_spec<E: Error>(self) -> Result<ConstraintTerm, E> {
        let Self { kind, sigma, sigma_lo, sigma_hi, tau, kappa, density: word } = self;
        let numbers = [sigma, sigma_lo, sigma_hi, tau, kappa];
        let known = |word: Cow<'_, str>| density(&word).ok_or_else(|| E::custom("unknown density"));
        let density: Option<LogNormalDensity> = word.map(known).transpose()?;
        match (&*kind, numbers, density) {
            ("gaussian", [Some(sigma), None, None, None, None], None) => Ok(ConstraintTerm::Gaussian { sigma }),
            ("asymmetric_gaussian", [None, Some(sigma_lo), Some(sigma_hi), None, None], None) => {
                Ok(ConstraintTerm::AsymmetricGaussian { sigma_lo, sigma_hi })
            }
            ("poisson", [None, None, None, Some(tau), None], None) => Ok(ConstraintTerm::Poisson { tau }),
            ("gamma", [None, None, None, Some(tau), None], None) => Ok(ConstraintTerm::Gamma { tau }),
            ("lognormal", [None, None, None, None, Some(kappa)], density) => {
                Ok(ConstraintTerm::LogNormal { kappa, density: density.unwrap_or_default() })
            }
            ("flat", [None, None, None, None, None], None) => Ok(ConstraintTerm::Flat),
            _ => Err(E::custom("a constraint term's type and keys do not go together")),
        }
    }
}

pub(super) fn constraint_terms<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<ConstraintTerm>>, D::Error> {
    filled_objects::<D, TermForm<'_>>(deserializer).map(Some)
}
