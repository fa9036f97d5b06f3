//! How a result was computed: everything that its numbers depend on.

use crate::analysis::Analysis;
use crate::device;
use crate::document::VERSION;
use crate::regions::by_channel;
use crate::settings::{AsimovPoi, DataSource, Settings, Start};
use ns_core::interpolate::Interpolation;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// How a result was computed. Two results with equal provenance have equal numbers, up to the last
/// digits on different devices.
///
/// The number of threads is left out because no result depends on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Provenance {
    /// Version of nextstat.
    pub nextstat_version: &'static str,
    /// SHA-256 digest of the workspace with its patches applied, as `nextstat digest` prints it.
    pub workspace_sha256: String,
    /// Name of the measurement.
    pub measurement: String,
    /// Parameters of interest; usually one.
    pub pois: Vec<String>,
    /// Settings that differ from the defaults: `bounds`, `fixed`, `init`, `interpolation`, `masked`
    /// and `multi_start`, each as the document of a run of toys has it.
    pub settings: Map<String, Value>,
    /// The data.
    pub data: DataProvenance,
    /// Backend of the device, or `cpu`.
    pub device: &'static str,
    /// Seed of everything random.
    pub seed: u64,
}

/// Where the data came from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "source")]
pub enum DataProvenance {
    /// The observed data of the workspace.
    Observed,
    /// Data passed by the caller.
    Given,
    /// Expected data.
    Asimov {
        /// Value of the parameter of interest; `None` for its starting value.
        poi: Option<f64>,
        /// Values of other parameters; those not listed have their starting values.
        parameters: Map<String, Value>,
    },
}

impl DataProvenance {
    fn of(data: &DataSource) -> Self {
        match data {
            DataSource::Observed => Self::Observed,
            DataSource::Given(_) => Self::Given,
            DataSource::Asimov(point) => {
                Self::Asimov { poi: point.poi.value(), parameters: by_name(&point.parameters) }
            }
        }
    }
}

impl AsimovPoi {
    /// Returns the value; `None` for the starting value.
    pub(crate) fn value(self) -> Option<f64> {
        match self {
            Self::Initial => None,
            Self::One => Some(1.0),
            Self::At(mu) => Some(mu),
        }
    }
}

/// Returns values by name as an object.
pub(crate) fn by_name<V: Serialize>(values: &[(String, V)]) -> Map<String, Value> {
    values.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
}

impl Analysis {
    /// Returns how results of this analysis are computed. The first call for a model reads its
    /// whole workspace.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        let model = self.model();
        Provenance {
            nextstat_version: VERSION,
            workspace_sha256: self.compiled().workspace_sha256().to_owned(),
            measurement: model.measurement.clone(),
            pois: model.pois.iter().map(|&i| model.parameters.names[i].clone()).collect(),
            settings: self.changed_settings(),
            data: DataProvenance::of(&self.settings().data),
            device: device::name_of(self.backend()),
            seed: self.seed(),
        }
    }

    fn changed_settings(&self) -> Map<String, Value> {
        let Settings { start, multi_start, .. } = self.settings();
        let init = match start {
            Start::Model => Value::Null,
            Start::All(values) => json!(values),
            Start::Named(values) => Value::Object(by_name(values)),
        };
        let interpolation = self.model().interpolation;
        let all = [
            ("bounds", Value::Object(self.bounds_by_name())),
            ("fixed", Value::Object(self.fixed_by_name())),
            ("init", init),
            ("masked", self.masked_by_channel().map_or(Value::Null, Value::Object)),
            (
                "interpolation",
                if interpolation == Interpolation::default() { Value::Null } else { codes(interpolation) },
            ),
            ("multi_start", json!(multi_start)),
        ];
        let is_default = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
        let changed = all.into_iter().filter(|(_, value)| !is_default(value));
        changed.map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// Returns the masked bins by channel, `all` for a whole channel; `None` if there are none.
    pub(crate) fn masked_by_channel(&self) -> Option<Map<String, Value>> {
        self.masked_bins().map(|masked| by_channel(self.whole_model(), masked))
    }

    /// Returns the values of the parameters that the settings fix.
    pub(crate) fn fixed_by_name(&self) -> Map<String, Value> {
        self.options().fixed.iter().map(|&(i, value)| (self.name(i), json!(value))).collect()
    }

    /// Returns the ranges that the settings change.
    pub(crate) fn bounds_by_name(&self) -> Map<String, Value> {
        self.options().bounds.iter().map(|&(i, ends)| (self.name(i), json!(ends))).collect()
    }

    fn name(&self, i: usize) -> String {
        self.model().parameters.names[i].clone()
    }
}

/// Returns the codes of the interpolation rules.
pub(crate) fn codes(interpolation: Interpolation) -> Value {
    json!({"normsys": interpolation.normsys.code(), "histosys": interpolation.histosys.code()})
}
