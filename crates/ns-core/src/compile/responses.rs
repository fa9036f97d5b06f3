//! Resolves how modifiers are interpolated, and refuses what models do not have.

use super::error::CompileError;
use crate::interpolate::{HistoSysInterpolation, InterpolationRule, NormSysFactor, NormSysInterpolation};
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

/// Returns how the factors of a histosys follow its parameter, or `None` if it shifts.
pub(super) fn scaling_response(own: ModifierInterpolation) -> Option<NormSysResponse> {
    own.rule.filter(|rule| additive(*rule).is_none())?;
    let standard = FactorRule::Standard(NormSysInterpolation::SmoothExponential);
    Some(normsys_response(NormSysResponse { rule: standard, scale: 1.0 }, own))
}

/// Returns the factor of one bin of a histosys that scales, or `None` if `rule` cannot have these
/// yields.
///
/// A bin that is empty and stays empty is not scaled. Combine's `shapeN` does not scale towards or
/// from an empty bin.
pub(super) fn scaling_factor(rule: InterpolationRule, nominal: f64, [lo, hi]: [f64; 2]) -> Option<NormSysFactor> {
    let ratio = |varied: f64| {
        let ratio = varied / nominal;
        let is_possible = nominal > 0.0 && varied > 0.0 && ratio.is_finite() && ratio > 0.0;
        let is_left = rule == InterpolationRule::SmoothLogarithm || (nominal == 0.0 && varied == 0.0);
        if is_possible { Some(ratio) } else { is_left.then_some(1.0) }
    };
    Some(NormSysFactor::new(ratio(lo)?, ratio(hi)?))
}

/// Returns how a histosys that shifts follows its parameter, if `standard` is the model's rule.
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
            (ModifierData::HistoSys { lo_data, hi_data }, None) => {
                let mut bins = lo_data.iter().zip(hi_data).zip(&sample.data).enumerate();
                let wrong = bins.find(|(_, ((lo, hi), n))| scaling_factor(rule, **n, [**lo, **hi]).is_none());
                if let Some((bin, ((&lo, &hi), &nominal))) = wrong {
                    let pointer = at(m, "interpolation");
                    return Err(CompileError::NotScalable { rule, bin, nominal, varied: [lo, hi], pointer });
                }
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
