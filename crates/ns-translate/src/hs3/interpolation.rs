//! How variations are interpolated: ROOT's codes, the names of pyhf and those of the standard.

use ns_core::interpolate::InterpolationRule;

use super::document::Read;
use crate::json::JsonObject;

/// What is interpolated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interpolated {
    /// A factor: ROOT's `FlexibleInterpVar`.
    NormSys,
    /// A template: ROOT's `PiecewiseInterpolation`.
    HistoSys,
}

impl Interpolated {
    /// Returns the rule without which nothing is written.
    pub(super) fn default_rule(self) -> InterpolationRule {
        match self {
            Self::NormSys => InterpolationRule::SmoothExponential,
            Self::HistoSys => InterpolationRule::SmoothLinear,
        }
    }

    /// Returns the rule of a code of ROOT.
    fn of_code(self, code: f64) -> Option<InterpolationRule> {
        let code = (0..=6).find(|known| f64::from(*known).total_cmp(&code).is_eq())?;
        match self {
            Self::NormSys => InterpolationRule::from_flexible_interp_var(code),
            Self::HistoSys => InterpolationRule::from_piecewise_interpolation(code),
        }
    }

    /// Returns the code of ROOT for a rule, if there is one.
    pub(super) fn code(self, rule: InterpolationRule) -> Option<u32> {
        // Of several codes the largest: ROOT takes 4 for 5 and 3 for 2, and writes 5.
        (0..=6_u32).filter(|&code| code != 3).rfind(|&code| self.of_code(f64::from(code)) == Some(rule))
    }

    /// Returns the name of pyhf's and pyhs3's for a rule, if there is one.
    pub(super) fn word(self, rule: InterpolationRule) -> Option<&'static str> {
        match (self, rule) {
            (Self::NormSys, InterpolationRule::Exponential) => Some("code1"),
            (Self::NormSys, InterpolationRule::SmoothExponential) => Some("code4"),
            (Self::HistoSys, InterpolationRule::Linear) => Some("code0"),
            (Self::HistoSys, InterpolationRule::Quadratic) => Some("code2"),
            (Self::HistoSys, InterpolationRule::SmoothLinear) => Some("code4p"),
            _ => None,
        }
    }
}

/// Reads how a modifier is interpolated; `None` is the default for its kind.
///
/// ROOT writes a number as a key of the modifier, the standard has a word there, and pyhs3 has one
/// among the data.
pub(super) fn read(
    modifier: &JsonObject<'_>,
    data: &JsonObject<'_>,
    what: Interpolated,
) -> Read<Option<InterpolationRule>> {
    let Some(written) = modifier.get("interpolation").or_else(|| data.get("interpolation")) else { return Ok(None) };
    let rule = match written.text_if_any() {
        Some(word) => rule_of_word(word),
        None => what.of_code(written.number()?),
    };
    match rule {
        Some(rule) => Ok((rule != what.default_rule()).then_some(rule)),
        None => Err(super::unsupported("the interpolation", &written)),
    }
}

fn rule_of_word(word: &str) -> Option<InterpolationRule> {
    match word {
        "lin" | "code0" => Some(InterpolationRule::Linear),
        "log" | "exp" | "code1" => Some(InterpolationRule::Exponential),
        "parabolic" | "code2" => Some(InterpolationRule::Quadratic),
        "poly6" | "code4p" => Some(InterpolationRule::SmoothLinear),
        "code4" => Some(InterpolationRule::SmoothExponential),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_are_written_are_read_back() {
        for what in [Interpolated::NormSys, Interpolated::HistoSys] {
            for rule in InterpolationRule::ALL {
                if let Some(code) = what.code(rule) {
                    assert_eq!(what.of_code(f64::from(code)), Some(rule), "{what:?} {rule}");
                }
                assert!(what.word(rule).is_none_or(|word| rule_of_word(word) == Some(rule)), "{what:?} {rule}");
            }
            assert!([0.5, -1.0, 7.0].into_iter().all(|code| what.of_code(code).is_none()));
        }
        assert_eq!(Interpolated::NormSys.code(InterpolationRule::SmoothExponential), Some(5));
        assert_eq!(Interpolated::HistoSys.code(InterpolationRule::SmoothLinear), Some(4));
        assert_eq!(Interpolated::NormSys.code(InterpolationRule::SmoothLinear), None);
    }
}
