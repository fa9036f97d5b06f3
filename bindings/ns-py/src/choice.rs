//! How a workspace is to be read as a model: measurement, parameters of interest, interpolation.

use ns_core::interpolate::{HistoSysInterpolation, Interpolation, NormSysInterpolation};
use ns_core::{CompileOptions, PoiChoice};
use pyo3::prelude::*;

use crate::error;

/// `smooth` or `pyhf`, then rules of single kinds as (kind, code).
pub(crate) type Rules = (String, Vec<(String, String)>);

/// The same as Python passes it: measurement, parameters of interest, rules.
pub(crate) type PyChoice = (Option<String>, Option<Vec<String>>, Rules);

#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) measurement: Option<String>,
    /// None: the measurement's; empty: no parameter of interest.
    pub(crate) poi: Option<Vec<String>>,
    pub(crate) interpolation: Rules,
}

impl From<PyChoice> for Choice {
    fn from((measurement, poi, interpolation): PyChoice) -> Self {
        Self { measurement, poi, interpolation }
    }
}

impl Choice {
    pub(crate) fn options(&self, py: Python<'_>) -> PyResult<CompileOptions> {
        let poi = match &self.poi {
            None => PoiChoice::FromMeasurement,
            Some(names) if names.is_empty() => PoiChoice::None,
            Some(names) => PoiChoice::Named(names.clone()),
        };
        Ok(CompileOptions { measurement: self.measurement.clone(), poi, interpolation: self.rules(py)? })
    }

    fn rules(&self, py: Python<'_>) -> PyResult<Interpolation> {
        let unknown = |what: &str, choices: &str| {
            error::parameter(py, format!("`{what}` is no interpolation rule"), Some(format!("there are {choices}")))
        };
        let mut rules = match self.interpolation.0.as_str() {
            "smooth" => Interpolation::default(),
            "pyhf" => Interpolation::KINKED,
            other => return Err(unknown(other, "`smooth` and `pyhf`")),
        };
        for (kind, code) in &self.interpolation.1 {
            match (kind.as_str(), code.as_str()) {
                ("normsys", "code1") => rules.normsys = NormSysInterpolation::Exponential,
                ("normsys", "code4") => rules.normsys = NormSysInterpolation::SmoothExponential,
                ("histosys", "code0") => rules.histosys = HistoSysInterpolation::Linear,
                ("histosys", "code2") => rules.histosys = HistoSysInterpolation::Quadratic,
                ("histosys", "code4p") => rules.histosys = HistoSysInterpolation::SmoothLinear,
                _ => {
                    let choices = "`normsys` with `code1` or `code4`, `histosys` with `code0`, `code2` or `code4p`";
                    return Err(unknown(&format!("{kind}={code}"), choices));
                }
            }
        }
        Ok(rules)
    }
}
