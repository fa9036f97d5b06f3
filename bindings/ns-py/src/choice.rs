//! How a workspace becomes a model: measurement, parameters of interest, interpolation.

use std::collections::BTreeMap;

use ns_core::interpolate::{HistoSysInterpolation, Interpolation, NormSysInterpolation};
use ns_core::{CompileOptions, PoiChoice};
use pyo3::prelude::*;

use crate::error;

/// The choices as Python passes them, in a dictionary with these keys.
#[derive(Debug, Clone, FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Choice {
    pub(crate) measurement: Option<String>,
    /// None: the measurement's; empty: no parameter of interest.
    poi: Option<Vec<String>>,
    /// `smooth` or `pyhf`.
    interp_defaults: String,
    /// Codes of single kinds of modifiers, by kind.
    interpolation: BTreeMap<String, String>,
}

impl Default for Choice {
    fn default() -> Self {
        Self { measurement: None, poi: None, interp_defaults: "smooth".to_owned(), interpolation: BTreeMap::new() }
    }
}

impl Choice {
    /// Returns the same choices with `name` as the parameter of interest.
    pub(crate) fn with_poi(&self, name: String) -> Self {
        Self { poi: Some(vec![name]), ..self.clone() }
    }

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
            error::parameter(
                py,
                format!("unknown interpolation rule `{what}`"),
                Some(format!("choose one of {choices}")),
            )
        };
        let mut rules = match self.interp_defaults.as_str() {
            "smooth" => Interpolation::default(),
            "pyhf" => Interpolation::KINKED,
            other => return Err(unknown(other, "`smooth`, `pyhf`")),
        };
        for (kind, code) in &self.interpolation {
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
