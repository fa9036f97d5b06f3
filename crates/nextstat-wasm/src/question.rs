//! What can be asked, as JSON.

use std::collections::BTreeMap;

use nextstat::settings::{AsimovPoi, AsimovPoint};
use nextstat::{DataSource, Settings};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use crate::error::EngineError;

/// The number of values of a scan that names none, as in a report.
pub(crate) const SCAN_POINTS: usize = 41;

/// Which model to make of the files.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenRequest {
    /// The path of the workspace.
    pub workspace: String,
    /// A patch of a patch set.
    pub patchset: Option<PatchChoice>,
    /// JSON patches, applied in order.
    #[serde(default)]
    pub patches: Vec<String>,
    /// The measurement; the first one if `None`.
    pub measurement: Option<String>,
    /// The mass that `$MASS` stands for in a data card of Combine.
    pub mass: Option<f64>,
}

/// A patch of a patch set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchChoice {
    /// The path of the set.
    pub file: String,
    /// The name of the patch.
    pub patch: String,
}

/// A procedure with its options; they have the names that the command gives them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// The contents of the workspace.
    Inspect {},
    /// Channels, samples and modifiers.
    Tree {},
    /// Parameters with their starting values and ranges.
    Parameters {},
    /// What a report shows of one fit.
    Overview {},
    /// The fit, its pulls and yields, as an overview has them.
    Conditional {},
    /// The same with all keys of the command.
    Report {},
    /// A fit.
    Fit {},
    /// Impacts of nuisance parameters.
    Ranking {},
    /// A profile of a parameter, the one of interest if there is no name.
    Scan {
        /// The parameter.
        parameter: Option<String>,
        /// The number of values; 41 if `None`.
        points: Option<usize>,
        /// The first and the last value; chosen around the minimum if `None`.
        range: Option<[f64; 2]>,
    },
    /// Upper limits.
    Limit {},
    /// The significance of a discovery.
    Significance {},
    /// CLs by formulas.
    Hypotest {
        /// The tested value; 1 if `None`.
        mu: Option<f64>,
        /// Whether the document has its head and says how it was computed, for which the whole
        /// workspace is read; a grid of signals has this once.
        provenance: Option<bool>,
    },
    /// CLs by toys.
    HypotestToys {
        /// The tested value; 1 if `None`.
        mu: Option<f64>,
        /// Toys of each hypothesis; 1000 if `None`.
        n_toys: Option<u64>,
        /// The seed of the toys; 0 if `None`.
        seed: Option<u64>,
    },
}

/// Data and conditions on the parameters.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuestionSettings {
    /// The parameter of interest; that of the measurement if `None`.
    pub poi: Option<String>,
    /// The value of the parameter of interest at which Asimov data replace the observed ones.
    pub asimov: Option<f64>,
    /// Fixed parameters.
    pub fixed: BTreeMap<String, f64>,
    /// Ranges instead of those of the model.
    pub bounds: BTreeMap<String, [f64; 2]>,
    /// Channels and bins that fits leave out.
    pub mask: Vec<String>,
}

impl QuestionSettings {
    /// Returns the settings of the engine: one thread, because a browser has workers instead.
    pub(crate) fn engine(&self, seed: u64) -> Settings {
        let asimov = |mu| DataSource::Asimov(AsimovPoint { poi: AsimovPoi::At(mu), ..AsimovPoint::default() });
        Settings {
            data: self.asimov.map_or(DataSource::Observed, asimov),
            mask: self.mask.clone(),
            fixed: self.fixed.clone().into_iter().collect(),
            bounds: self.bounds.clone().into_iter().collect(),
            threads: Some(std::num::NonZeroUsize::MIN),
            seed,
            ..Settings::default()
        }
    }
}

impl Question {
    /// Returns the question and its settings, of an object with the keys `verb`, those of its
    /// options, and `settings`.
    pub(crate) fn read(text: &str) -> Result<(Self, QuestionSettings), EngineError> {
        let mut value: Value = read(text)?;
        let settings = value.as_object_mut().and_then(|fields| fields.remove("settings"));
        let question = serde_json::from_value(value).map_err(|error| EngineError::question(&error))?;
        let settings = settings.map(serde_json::from_value).transpose();
        let settings = settings
            .map_err(|error| EngineError::question(&serde_json::Error::custom(format_args!("`settings`: {error}"))))?;
        Ok((question, settings.unwrap_or_default()))
    }
}

/// Reads the JSON of a question.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, EngineError> {
    serde_json::from_str(text).map_err(|error| EngineError::question(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_stand_beside_the_options() {
        let text = r#"{"verb": "hypotest-toys", "mu": 2, "settings": {"fixed": {"a": 1}, "mask": ["SR"]}}"#;
        let (question, settings) = Question::read(text).expect("a question");
        assert_eq!(question, Question::HypotestToys { mu: Some(2.0), n_toys: None, seed: None });
        assert_eq!((settings.fixed["a"], settings.mask), (1.0, vec!["SR".to_owned()]));
    }

    #[test]
    fn misspelt_keys_are_named() {
        for (text, name) in [
            (r#"{"verb": "fits"}"#, "fits"),
            (r#"{"verb": "fit", "seed": 1}"#, "seed"),
            (r#"{"verb": "fit", "settings": {"fix": {}}}"#, "fix"),
            (r#"{"verb": "hypotest", "mu": "one"}"#, "one"),
            ("[]", "question"),
        ] {
            let error = Question::read(text).expect_err("not a question");
            assert!(error.message.contains(name), "{error}");
        }
    }
}
