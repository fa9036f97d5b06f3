//! Advice for errors of compilation, where there is any.

use super::CompileError;
use crate::advice::{Advice, AdvicePart, Remedy};

/// Advice on a workspace that names a parameter of interest, and has no signal with it.
const WITHOUT_SIGNAL: Advice = Advice::Naming(&[
    AdvicePart::Text("a background-only workspace has none: pass "),
    AdvicePart::Remedy(Remedy::NoPoi),
    AdvicePart::Text(", or patch a signal in"),
]);

impl CompileError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn advice(&self) -> Option<Advice> {
        match self {
            Self::UnknownPoi { similar: None, pointer: Some(_), .. } => Some(WITHOUT_SIGNAL),
            other => other.text_of_advice().map(Advice::from),
        }
    }

    /// Returns advice that is the same in every interface, or `None`.
    fn text_of_advice(&self) -> Option<String> {
        match self {
            Self::UnknownPoi { similar: Some(similar), .. } => {
                Some(format!("parameter names are case sensitive; did you mean `{similar}`?"))
            }
            Self::UnknownPoi { unconstrained, .. } if !unconstrained.is_empty() => {
                Some(format!("parameters without a constraint are `{}`", unconstrained.join("`, `")))
            }
            Self::VectorPoi { poi, .. } => Some(format!("name one element, such as `{poi}[0]`")),
            Self::UnknownMeasurement { name, known } => match crate::similar_name(name, known.iter().map(String::as_str)) {
                Some(similar) => Some(format!("did you mean `{similar}`?")),
                None => Some(format!("the workspace has `{}`", known.join("`, `"))),
            },
            Self::MissingObservation { channel, unused } => {
                let similar = crate::similar_name(channel, unused.iter().map(String::as_str))?;
                Some(format!("/observations has `{similar}`, which is not a channel; did you mean that?"))
            }
            Self::NormSysNotPositive { .. } => {
                Some("prune the modifier, or give its one-sided effect as lo = 1/hi".to_owned())
            }
            Self::SharedShapeSys { .. } => {
                Some("give each sample its own name, or use staterror for an uncertainty that samples share".to_owned())
            }
            Self::FormulaSetting { .. } => {
                Some("give the formula a name of its own, or leave out the settings".to_owned())
            }
            Self::LumiWithoutSettings { .. } => Some(
                "add {\"name\": \"lumi\", \"auxdata\": [1.0], \"sigmas\": [0.017], \"bounds\": [[0.5, 1.5]], \"inits\": [1.0]} to the \
                 measurement's parameters, with your numbers"
                    .to_owned(),
            ),
            Self::Duplicate { what: "modifier", .. } => {
                Some("pyhf keeps the last one silently; remove or rename one of the two".to_owned())
            }
            Self::TermOutOfRange { pointer, .. } if pointer.ends_with("/kappa") => {
                Some("kappa is above 1: 1.1 for 10 %".to_owned())
            }
            Self::TermOutOfRange { pointer, .. } if pointer.contains("/constraints/") && !ends_in_key(pointer) => {
                Some("give the auxiliary datum as `auxdata`, or a positive quantity as `beta`".to_owned())
            }
            Self::TermOutOfRange { .. } => Some("it must be finite and positive".to_owned()),
            Self::BetaWithoutTerm { .. } => {
                Some("Gaussian and Poisson terms constrain the parameter itself: shift their `auxdata`".to_owned())
            }
            Self::Formula { error, .. } => error.hint(),
            Self::UnknownFormulaName { similar: Some(similar), .. } => Some(format!("did you mean `{similar}`?")),
            Self::UnknownFormulaName { name, .. } => Some(format!(
                "declare a new parameter in the measurement's parameters: {{\"name\": \"{name}\", \"inits\": [0.0], \
                 \"bounds\": [[-5.0, 5.0]]}}, with your numbers"
            )),
            Self::VectorInFormula { name, .. } => Some(format!("name one of them, such as `{name}[0]`")),
            Self::FormulaCycle { .. } => Some("give the formula another name than those in its text".to_owned()),
            Self::FormulaDiffers { .. } => Some("rename one of them".to_owned()),
            Self::IncompatibleKinds { .. } => Some("rename one of the modifiers".to_owned()),
            _ => None,
        }
    }
}

/// Returns whether a pointer ends in a key, and not in an index.
fn ends_in_key(pointer: &str) -> bool {
    pointer.ends_with(|last: char| !last.is_ascii_digit())
}
