//! Why a grid of signals has no exclusion contours.

use crate::error::{Face, Hint};

/// A document, labels or a confidence level without exclusion contours.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExclusionError {
    /// A document that is not JSON.
    #[error("the document is not JSON: {reason}")]
    NotJson {
        /// The parser's message.
        reason: String,
    },
    /// A document of something else.
    #[error("the document is {found}, not the results of every patch of a set")]
    NotAGrid {
        /// What it is, with its article.
        found: &'static str,
    },
    /// A value that is not what it must be.
    #[error("at {pointer}: expected {expected}, found `{found}`")]
    BadValue {
        /// JSON pointer to the value.
        pointer: String,
        /// What is expected.
        expected: &'static str,
        /// The value.
        found: String,
    },
    /// Patches with results that have neither CLs nor limits.
    #[error("no patch has CLs or a limit")]
    NoResults,
    /// Patches of which some have CLs and some limits.
    #[error("the patch `{cls}` has CLs and the patch `{limit}` has a limit")]
    TwoQuantities {
        /// A patch with CLs.
        cls: String,
        /// A patch with a limit.
        limit: String,
    },
    /// Patches that were tested at different signal strengths, or whose limits have different
    /// levels.
    #[error("the patches have different values of `{key}`: {} and {}", .values[0], .values[1])]
    Different {
        /// The key.
        key: &'static str,
        /// Two values.
        values: [f64; 2],
    },
    /// A grid without any result.
    #[error("all {n_patches} patches failed; the first, `{patch}`: {reason}")]
    AllFailed {
        /// The number of patches.
        n_patches: usize,
        /// The name of the first.
        patch: String,
        /// Why it failed.
        reason: String,
    },
    /// A label that the patches do not have.
    #[error("the patches have no label `{label}`")]
    UnknownLabel {
        /// The label.
        label: String,
        /// All labels.
        known: Vec<String>,
    },
    /// Fewer than two labels for a plane.
    #[error("a plane needs two labels whose values are numbers and differ, and there {}", few(.labels))]
    NoPlane {
        /// Those that there are.
        labels: Vec<String>,
    },
    /// The same label for both axes.
    #[error("`{label}` is the label of both axes")]
    SameLabel {
        /// The label.
        label: String,
    },
    /// A label whose values are not all numbers.
    #[error("the value of `{label}` of the patch `{patch}` is not a number: {found}")]
    NotANumber {
        /// The label.
        label: String,
        /// The patch.
        patch: String,
        /// The value.
        found: String,
    },
    /// A selection of no patch.
    #[error("no patch has the value `{value}` of `{label}`")]
    NoPatchAt {
        /// The label.
        label: String,
        /// The value.
        value: String,
        /// Some of its values.
        known: Vec<String>,
    },
    /// Fewer than three points.
    #[error("a triangulation needs three signals, and there are {n_points}")]
    TooFew {
        /// The number of points.
        n_points: usize,
    },
    /// Points on one line.
    #[error("the {n_points} signals are on one line")]
    OnLine {
        /// The number of points.
        n_points: usize,
    },
    /// Two patches with different results at one point.
    #[error("the patches `{}` and `{}` are at the same point and differ", .patches[0], .patches[1])]
    SamePoint {
        /// The patches.
        patches: [String; 2],
        /// A label that tells them apart, with the value of the first.
        label: Option<[String; 2]>,
    },
    /// A confidence level outside its range.
    #[error("the confidence level {cl} is not between 0.5 and 1")]
    BadLevel {
        /// The level.
        cl: f64,
    },
    /// A confidence level that the limits do not have.
    #[error("the limits have the confidence level {found}, not {cl}")]
    OtherLevel {
        /// The level that was asked for.
        cl: f64,
        /// That of the limits.
        found: f64,
    },
}

/// Says which labels there are.
fn few(labels: &[String]) -> String {
    match labels {
        [] => "is none".to_owned(),
        labels => format!("is only `{}`", labels.join("`, `")),
    }
}

impl Hint for ExclusionError {
    fn hint(&self, face: Face) -> Option<String> {
        let either = |command: &str, library: &str| Some(face.either(command, library).to_owned());
        let listed = |names: &[String]| format!("`{}`", names.join("`, `"));
        match self {
            Self::NotJson { .. } | Self::NotAGrid { .. } | Self::NoResults => either(
                "`nextstat hypotest --patchset FILE --every-patch` writes one, and `limit` does",
                "`nextstat.every_patch` with `hypotest` or `upper_limit` returns one",
            ),
            Self::UnknownLabel { label, known } => ns_core::did_you_mean(label, known.iter().map(String::as_str))
                .or_else(|| Some(format!("the labels are {}", listed(known)))),
            Self::NoPlane { .. } => either(
                "`nextstat.plot.limits` of the Python package draws limits against one label",
                "`nextstat.plot.limits` draws limits against one label",
            ),
            Self::SameLabel { .. } | Self::NotANumber { .. } => either(
                "`--x LABEL` and `--y LABEL` choose labels, and `--at LABEL=VALUE` patches",
                "`x` and `y` choose labels, and `at` patches",
            ),
            Self::NoPatchAt { known, .. } => Some(format!("its values are {}", listed(known))),
            Self::SamePoint { label: Some([label, value]), .. } => {
                let option = face.either(format!("`--at {label}={value}`"), format!("`at={{\"{label}\": {value}}}`"));
                Some(format!("`{label}` tells them apart: {option} selects patches with one value of it"))
            }
            Self::SamePoint { .. } => Some("remove one of them from the document".to_owned()),
            Self::BadLevel { cl } if *cl > 1.0 && *cl < 100.0 => Some(format!(
                "{cl} % is {}",
                face.either(format!("`--cl {}`", cl / 100.0), format!("`cl={}`", cl / 100.0))
            )),
            Self::BadLevel { cl } if *cl > 0.0 && *cl < 0.5 => {
                let level = 1.0 - cl;
                Some(format!(
                    "exclusion at CLs = {cl} is {}",
                    face.either(format!("`--cl {level}`"), format!("`cl={level}`"))
                ))
            }
            Self::BadLevel { .. } => Some("a confidence level is a probability, such as 0.95".to_owned()),
            Self::OtherLevel { cl, .. } => Some(face.either(
                format!("`nextstat limit --cl {cl}` finds limits of that level"),
                format!("`nextstat.upper_limit(model, cl={cl})` finds limits of that level"),
            )),
            Self::TooFew { .. } | Self::OnLine { .. } => either(
                "patches that failed or that `--at` does not select are left out",
                "patches that failed or that `at` does not select are left out",
            ),
            _ => None,
        }
    }
}
