//! Resolves how modifiers are interpolated, and refuses what models do not have.

use super::error::CompileError;
use crate::interpolate::{HistoSysInterpolation, InterpolationRule, NormSysInterpolation};
use crate::response::{FactorRule, HistoSysResponse, NormSysResponse};
use crate::spec::{Modifier, ModifierData, ModifierInterpolation, Sample};

/// Returns how a normsys follows its parameter, if `standard` is the model's rule.
pub(super) fn normsys_response(standard: NormSysResponse, own: ModifierInterpolation) -> NormSysResponse {
    let rule = own.rule.map_or(standard.rule, |rule| match rule {
        InterpolationRule::Exponential => FactorRule::Standard(NormSysInterpolation::Exponential),
        InterpolationRule::SmoothExponential => FactorRule::Standard(NormSysInterpolation::SmoothExponential),
        InterpolationRule::Linear => FactorRule::Shift(HistoSysInterpolation::Linear),
        InterpolationRule::Quadratic => FactorRule::Shift(HistoSysInterpolation::Quadratic),
        InterpolationRule::SmoothLinear | InterpolationRule::SmoothFactor => {
            FactorRule::Shift(HistoSysInterpolation::SmoothLinear)
        }
        InterpolationRule::CombineLogNormal => FactorRule::CombineLogNormal,
        InterpolationRule::SmoothLogarithm => FactorRule::SmoothLogarithm,
    });
    NormSysResponse { rule, scale: own.scale.unwrap_or(standard.scale) }
}

/// Returns how a histosys follows its parameter, if `standard` is the model's rule. [`check`] has
/// refused multiplicative rules.
pub(super) fn histosys_response(standard: HistoSysResponse, own: ModifierInterpolation) -> HistoSysResponse {
    let rule = own.rule.and_then(additive).unwrap_or(standard.rule);
    HistoSysResponse { rule, scale: own.scale.unwrap_or(standard.scale) }
}

/// Returns the rule of shifts, or `None` for a rule of factors.
fn additive(rule: InterpolationRule) -> Option<HistoSysInterpolation> {
    match rule {
        InterpolationRule::Linear => Some(HistoSysInterpolation::Linear),
        InterpolationRule::Quadratic => Some(HistoSysInterpolation::Quadratic),
        InterpolationRule::SmoothLinear => Some(HistoSysInterpolation::SmoothLinear),
        InterpolationRule::Exponential
        | InterpolationRule::SmoothExponential
        | InterpolationRule::SmoothFactor
        | InterpolationRule::CombineLogNormal
        | InterpolationRule::SmoothLogarithm => None,
    }
}

/// Returns the place of `item` in `items`, where it is appended if it is new.
pub(super) fn index_of<T: PartialEq>(items: &mut Vec<T>, item: T) -> usize {
    items.iter().position(|known| *known == item).unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    })
}

/// Refuses modifiers of `sample`, at `pointer`, whose interpolation models do not have.
pub(super) fn check(sample: &Sample, pointer: &str) -> Result<(), CompileError> {
    let at = |m: usize, key: &str| format!("{pointer}/modifiers/{m}/{key}");
    let mut added = None;
    for (m, Modifier { data, interpolation, .. }) in sample.modifiers.iter().enumerate() {
        if let Some(value) = interpolation.scale.filter(|scale| !scale.is_finite() || *scale == 0.0) {
            return Err(CompileError::ScaleOutOfRange { value, pointer: at(m, "scale") });
        }
        let Some(rule) = interpolation.rule else { continue };
        match (data, additive(rule)) {
            (ModifierData::HistoSys { .. }, None) => {
                let what = "a multiplicative interpolation of a histosys";
                return Err(CompileError::Unsupported { what, pointer: at(m, "interpolation") });
            }
            (ModifierData::NormSys { .. }, Some(_)) if added.replace(m).is_some() => {
                let what = "a second normsys of the sample with an additive interpolation";
                return Err(CompileError::Unsupported { what, pointer: at(m, "interpolation") });
            }
            _ => {}
        }
    }
    Ok(())
}
