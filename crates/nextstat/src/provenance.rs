//! How a result was computed: everything that its numbers depend on.

use crate::CompiledModel;
use crate::analysis::Analysis;
use crate::device;
use crate::document::VERSION;
use crate::number::significant;
use crate::regions::by_channel;
use crate::settings::{AsimovPoi, AsimovPoint, DataSource, Settings, Start};
use ns_core::interpolate::Interpolation;
use ns_core::{Data, Model};
use ns_inference::yields::YieldPropagation;
use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::{CardOptions, DocumentSource};
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
    /// The workspace.
    pub workspace: WorkspaceProvenance,
    /// Name of the measurement.
    pub measurement: String,
    /// Parameters of interest; usually one.
    pub pois: Vec<String>,
    /// Settings that differ from the defaults: `blinded`, `bounds`, `fixed`, `init`,
    /// `interpolation`, `masked`, `multi_start` and `propagation`, each as the document of a run of
    /// toys has it.
    pub settings: Map<String, Value>,
    /// The data.
    pub data: DataProvenance,
    /// The stored fit that the result refers to, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_fit: Option<StoredFitProvenance>,
    /// Backend of the device, or `cpu`.
    pub device: &'static str,
    /// Seed of everything random.
    pub seed: u64,
}

/// Which stored fit a result refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredFitProvenance {
    /// SHA-256 digest of its names, values and covariance as a JSON list.
    pub sha256: String,
}

/// Which workspace a model was made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkspaceProvenance {
    /// SHA-256 digest of the contents of the workspace with its patches applied, as `nextstat
    /// digest` prints it and patch sets have it: not that of the bytes of the file.
    pub digest: String,
    /// The file, `-` for standard input; `None` for a workspace that was not read from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Further files that the document names and that were read: channels and histograms of a
    /// combination in HistFactory XML.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// How the data card was read, if the workspace was one and its reader was told something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card: Option<CardProvenance>,
    /// The files of JSON patches that were applied, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<String>,
    /// The patch set, and the name of its patch that was applied first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patchset: Option<[String; 2]>,
}

/// What the reader of a data card was told.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CardProvenance {
    /// The mass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// The physics model, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physics_model: Option<String>,
    /// Its options, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_options: Vec<String>,
    /// What keywords stand for.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub keywords: Map<String, Value>,
}

impl CardProvenance {
    /// Returns the provenance of a card that was read with `options`; `None` for the defaults.
    pub(crate) fn of(options: &CardOptions) -> Option<Self> {
        let CardOptions { mass, physics_model, model_options, keywords } = options.clone();
        let keywords = keywords.into_iter().map(|(word, value)| (word, Value::String(value))).collect();
        (!options.is_default()).then_some(Self { mass, physics_model, model_options, keywords })
    }

    /// Describes the options in a line.
    fn described(&self) -> String {
        let mass = self.mass.map(|mass| format!("mass {mass}"));
        let model = self.physics_model.as_ref().map(|name| name.rsplit(':').next().unwrap_or(name).to_owned());
        let keywords = self.keywords.iter().map(|(word, value)| format!("{word}={}", value.as_str().unwrap_or("")));
        let parts: Vec<String> =
            mass.into_iter().chain(model).chain(self.model_options.iter().cloned()).chain(keywords).collect();
        parts.join(", ")
    }
}

impl WorkspaceProvenance {
    /// Returns the provenance of the workspace of `compiled`, whose digest is `digest`.
    fn new(digest: String, compiled: &CompiledModel) -> Self {
        let origin = compiled.origin();
        Self {
            digest,
            files: compiled.files().iter().map(|path| path.display().to_string()).collect(),
            file: origin.map(|origin| file_name(&origin.workspace)),
            card: origin.and_then(|origin| CardProvenance::of(&origin.card)),
            patches: origin.map(|origin| origin.patches.iter().map(file_name).collect()).unwrap_or_default(),
            patchset: origin
                .and_then(|origin| origin.patchset.as_ref())
                .map(|(path, patch)| [path.display().to_string(), patch.clone()]),
        }
    }
}

/// Returns the name of a source, `-` for standard input.
pub(crate) fn file_name(source: &DocumentSource) -> String {
    source.path().map_or("-".to_owned(), |path| path.display().to_string())
}

/// Where the data came from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "source")]
pub enum DataProvenance {
    /// The observed data of the workspace.
    Observed,
    /// Data passed by the caller.
    Given {
        /// SHA-256 digest of the numbers as a JSON list: the event counts, then the auxiliary data.
        sha256: String,
    },
    /// Expected data.
    Asimov {
        /// Values of the parameter of interest and of those that the settings name; the others have
        /// the values of the fit, or their starting values.
        parameters: Map<String, Value>,
        /// The file of the stored fit.
        #[serde(skip_serializing_if = "Option::is_none")]
        fit: Option<String>,
        /// What the stored fit and the model do not have in common.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
}

impl DataProvenance {
    fn of(data: &DataSource, model: &Model, values: &Data) -> Self {
        match data {
            DataSource::Observed => Self::Observed,
            DataSource::Given(_) => {
                let numbers = json!([&values.main[..], &values.aux[..]].concat());
                // The text is valid JSON, and nothing else can fail.
                Self::Given {
                    sha256: digest(numbers.to_string().as_bytes(), DigestAlgorithm::Sha256).unwrap_or_default(),
                }
            }
            DataSource::Asimov(point) => Self::Asimov {
                parameters: asimov_parameters(point, model),
                fit: point.fit.as_ref().map(|fit| fit.file().unwrap_or(GIVEN).to_owned()),
                warnings: point.warnings(model),
            },
        }
    }

    /// Returns `true` for observed data.
    #[must_use]
    pub fn is_observed(&self) -> bool {
        *self == Self::Observed
    }
}

/// Returns the label of the data of a document with this `provenance`.
#[must_use]
pub fn label_of(provenance: &Value) -> &'static str {
    label(provenance["data"]["source"].as_str().unwrap_or_default())
}

fn label(source: &str) -> &'static str {
    match source {
        "asimov" => "Asimov data",
        "given" => "given data",
        _ => "observed",
    }
}

/// Describes Asimov data made at `fit` with `values`.
fn asimov(fit: Option<&str>, values: Option<String>) -> String {
    let fit = fit.map(|fit| match fit {
        GIVEN => "at a given fit".to_owned(),
        file => format!("at the fit in {file}"),
    });
    let parts: Vec<String> = fit.into_iter().chain(values).collect();
    if parts.is_empty() { "Asimov".to_owned() } else { format!("Asimov ({})", parts.join(", ")) }
}

/// Returns what a reader must know to understand a document with this `provenance`, one line each,
/// as [`Analysis::conditions`] does for a result.
#[must_use]
pub fn conditions_of(provenance: &Value) -> Vec<String> {
    let (data, settings) = (&provenance["data"], &provenance["settings"]);
    let map = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let text = match data["source"].as_str() {
        Some("asimov") => {
            let parameters = data["parameters"].as_object().filter(|parameters| !parameters.is_empty());
            asimov(data["fit"].as_str(), parameters.map(assignments))
        }
        Some("given") => GIVEN.to_owned(),
        Some(source) => source.to_owned(),
        None => return Vec::new(),
    };
    let listed = |what: &str, found: Map<String, Value>, format: fn(&Map<String, Value>) -> String| {
        (!found.is_empty()).then(|| format!("{what}: {}", format(&found)))
    };
    let propagation = settings["propagation"].as_str().map(|name| format!("uncertainties of yields: {name}"));
    let lines = [
        listed("fixed", map(&settings["fixed"]), |values| assignments(values)),
        listed("ranges", map(&settings["bounds"]), ranges),
        listed("interpolation", map(&settings["interpolation"]), |codes| assignments(codes)),
        listed("masked", map(&settings["masked"]), channels),
        listed("blinded", map(&settings["blinded"]), channels),
        propagation,
    ];
    std::iter::once(format!("data: {text}")).chain(lines.into_iter().flatten()).collect()
}

/// Formats ranges by name: `mu from 0 to 5`.
fn ranges(bounds: &Map<String, Value>) -> String {
    let range = |(name, ends): (&String, &Value)| {
        let [lower, upper] = [0, 1].map(|i| significant(ends[i].as_f64().unwrap_or(f64::NAN), 6));
        format!("{name} from {lower} to {upper}")
    };
    bounds.iter().map(range).collect::<Vec<_>>().join(", ")
}

/// What data, and a stored fit that was not read from a file, are called.
const GIVEN: &str = "given by the caller";

impl DataSource {
    /// Returns the label of numbers that the data give: `observed`, or what the data are instead.
    ///
    /// ```
    /// use nextstat::DataSource;
    /// assert_eq!(DataSource::Asimov(Default::default()).label(), "Asimov data");
    /// ```
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Observed => label("observed"),
            Self::Given(_) => label("given"),
            Self::Asimov(_) => label("asimov"),
        }
    }

    /// Returns the label of event counts: `data` if they were observed.
    #[must_use]
    pub fn counts_label(&self) -> &'static str {
        match self {
            Self::Observed => "data",
            other => other.label(),
        }
    }
}

/// Formats values by name: `mu = 1, lumi = 0.98`.
fn assignments<'a>(values: impl IntoIterator<Item = (&'a String, &'a Value)>) -> String {
    let value = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.as_f64().map_or_else(|| value.to_string(), |number| significant(number, 6)),
    };
    values.into_iter().map(|(name, found)| format!("{name} = {}", value(found))).collect::<Vec<_>>().join(", ")
}

/// Formats bins by channel: `SR, VR (bins 2, 3)`.
fn channels(bins: &Map<String, Value>) -> String {
    let channel = |(name, bins): (&String, &Value)| match bins {
        Value::Array(bins) => {
            format!("{name} (bins {})", bins.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
        }
        _ => name.clone(),
    };
    bins.iter().map(channel).collect::<Vec<_>>().join(", ")
}

/// Returns the parameters of interest and the named parameters of an Asimov data set.
pub(crate) fn asimov_parameters(point: &AsimovPoint, model: &Model) -> Map<String, Value> {
    // The settings were resolved before.
    let resolved = point.resolve(model).unwrap_or_else(|_| model.parameters.init.clone());
    let poi = |&i: &usize| (model.parameters.names[i].clone(), json!(resolved[i]));
    model.pois.iter().map(poi).chain(by_name(&point.parameters)).collect()
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

impl CompiledModel {
    /// Returns how results that need no settings are computed: with the observed data, on the CPU.
    /// The first call for a model reads its whole workspace.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        let interpolation = interpolation_setting(self.model());
        Provenance {
            nextstat_version: VERSION,
            workspace: WorkspaceProvenance::new(self.workspace_sha256().to_owned(), self),
            measurement: self.model().measurement.clone(),
            pois: poi_names(self.model()),
            stored_fit: None,
            settings: interpolation.map(|codes| ("interpolation".to_owned(), codes)).into_iter().collect(),
            data: DataProvenance::Observed,
            device: device::CPU,
            seed: 0,
        }
    }
}

/// Returns the codes of the interpolation if they are not the default.
fn interpolation_setting(model: &Model) -> Option<Value> {
    (model.interpolation != Interpolation::default()).then(|| codes(model.interpolation))
}

fn poi_names(model: &Model) -> Vec<String> {
    model.pois.iter().map(|&i| model.parameters.names[i].clone()).collect()
}

impl Analysis {
    /// Returns how results of this analysis are computed. The first call for a model reads its
    /// whole workspace.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        let compiled = self.compiled();
        self.provenance_of(WorkspaceProvenance::new(compiled.workspace_sha256().to_owned(), compiled))
    }

    /// Returns the provenance of results for `workspace`, whose digest the caller has.
    pub(crate) fn provenance_of(&self, workspace: WorkspaceProvenance) -> Provenance {
        let model = self.model();
        Provenance {
            nextstat_version: VERSION,
            workspace,
            measurement: model.measurement.clone(),
            pois: poi_names(model),
            settings: self.changed_settings(),
            data: self.data_provenance(),
            stored_fit: self.stored_fit().map(|fit| StoredFitProvenance { sha256: fit.sha256() }),
            device: device::name_of(self.backend()),
            seed: self.seed(),
        }
    }

    /// Returns where the data came from.
    #[must_use]
    pub fn data_provenance(&self) -> DataProvenance {
        DataProvenance::of(&self.settings().data, self.model(), self.shown_data())
    }

    /// Returns what a reader must know to understand a result, one line each: the data, the stored
    /// fit if there is one, and what is fixed, masked, blinded or has another range than in the
    /// workspace.
    ///
    /// ```
    /// # use nextstat::{Analysis, CompiledModel, DataSource, Settings};
    /// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
    /// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
    /// let fixed = vec![("uncorr_bkguncrt[0]".to_owned(), 1.0)];
    /// let settings = Settings { data: DataSource::Asimov(Default::default()), fixed, ..Settings::default() };
    /// let lines = Analysis::new(&model, &settings)?.conditions();
    /// assert_eq!(lines, ["data: Asimov (mu = 1)", "fixed: uncorr_bkguncrt[0] = 1"]);
    /// # Ok::<(), nextstat::Error>(())
    /// ```
    #[must_use]
    pub fn conditions(&self) -> Vec<String> {
        let listed = |name: &str, values: Map<String, Value>| {
            (!values.is_empty()).then(|| format!("{name}: {}", assignments(&values)))
        };
        let named = |what: &str, bins: &[bool]| {
            let found = by_channel(self.whole_model(), bins);
            (!found.is_empty()).then(|| format!("{what}: {}", channels(&found)))
        };
        let hidden = |b: usize| self.hidden_bins().is_some_and(|hidden| hidden[b]);
        let masked = self.masked_bins().and_then(|masked| {
            let shown: Vec<bool> = masked.iter().enumerate().map(|(b, masked)| *masked && !hidden(b)).collect();
            named("masked", &shown)
        });
        let what = if self.settings().blind.is_fitted { "blinded, but fitted" } else { "blinded" };
        // Who asked for a threshold must see that no bin reaches it.
        let blinded = self.hidden_bins().map(|hidden| named(what, hidden).unwrap_or("blinded: no bin".to_owned()));
        let range = |(name, [lower, upper]): &(String, [f64; 2])| format!("{name} from {lower} to {upper}");
        let ranges: Vec<String> = self.settings().bounds.iter().map(range).collect();
        let bounds = (!ranges.is_empty()).then(|| format!("ranges: {}", ranges.join(", ")));
        let data = Some(format!("data: {}", self.described_data()));
        let fit = self.stored_fit().map(|fit| format!("fit: {}", fit.file().unwrap_or(GIVEN)));
        let undetermined: Vec<String> = self.fixed_by_mask().into_iter().map(|i| self.name(i)).collect();
        let undetermined = (fit.is_none() && !undetermined.is_empty())
            .then(|| format!("only in masked bins, not fitted: {}", undetermined.join(", ")));
        let fixed = listed("fixed", by_name(&self.settings().fixed));
        let codes = interpolation_setting(self.model()).and_then(|codes| codes.as_object().cloned());
        let interpolation = codes.map(|codes| format!("interpolation: {}", assignments(&codes)));
        let propagation = self.changed_propagation().map(|name| format!("uncertainties of yields: {name}"));
        let lines = [
            data,
            self.card(),
            self.patches(),
            fit,
            fixed,
            bounds,
            interpolation,
            masked,
            blinded,
            undetermined,
            propagation,
        ];
        lines.into_iter().flatten().collect()
    }

    /// Returns how uncertainties of yields are propagated, if not by derivatives.
    fn changed_propagation(&self) -> Option<&'static str> {
        match self.settings().propagation {
            YieldPropagation::Derivative => None,
            YieldPropagation::HalfDifference => Some("half-difference"),
        }
    }

    /// Returns the line about how the data card was read.
    fn card(&self) -> Option<String> {
        let origin = self.compiled().origin()?;
        CardProvenance::of(&origin.card).map(|card| format!("card: {}", card.described()))
    }

    /// Returns the line about the patches of the workspace.
    fn patches(&self) -> Option<String> {
        let WorkspaceProvenance { patches, patchset, .. } = WorkspaceProvenance::new(String::new(), self.compiled());
        let of_set = patchset.map(|[_, patch]| patch);
        let all: Vec<String> = of_set.into_iter().chain(patches).collect();
        (!all.is_empty()).then(|| format!("patch: {}", all.join(", ")))
    }

    /// Describes the data; of Asimov data with a few parameters, those of interest first.
    fn described_data(&self) -> String {
        const SHOWN: usize = 8;
        let point = match &self.settings().data {
            DataSource::Observed => return "observed".to_owned(),
            DataSource::Given(_) => return GIVEN.to_owned(),
            DataSource::Asimov(point) => point,
        };
        let (pois, values) = (poi_names(self.model()), asimov_parameters(point, self.model()));
        let (first, others): (Vec<_>, Vec<_>) = values.iter().partition(|(name, _)| pois.contains(name));
        let shown = assignments(first.into_iter().chain(others).take(SHOWN));
        let more = values.len().saturating_sub(SHOWN);
        let values = if more == 0 { shown } else { format!("{shown} and {more} more") };
        let fit = point.fit.as_ref().map(|fit| fit.file().unwrap_or(GIVEN));
        asimov(fit, (!values.is_empty()).then_some(values))
    }

    fn changed_settings(&self) -> Map<String, Value> {
        let Settings { start, multi_start, .. } = self.settings();
        let init = match start {
            Start::Model => Value::Null,
            Start::All(values) => json!(values),
            Start::Named(values) => Value::Object(by_name(values)),
        };
        let all = [
            ("blinded", self.blinded_by_channel().map_or(Value::Null, Value::Object)),
            ("bounds", Value::Object(self.bounds_by_name())),
            ("fixed", Value::Object(self.fixed_by_name())),
            ("init", init),
            ("masked", self.masked_by_channel().map_or(Value::Null, Value::Object)),
            ("interpolation", interpolation_setting(self.model()).unwrap_or_default()),
            ("multi_start", json!(multi_start)),
            ("propagation", json!(self.changed_propagation())),
        ];
        let is_default = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
        let changed = all.into_iter().filter(|(_, value)| !is_default(value));
        changed.map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// Returns the masked bins by channel, `all` for a whole channel; `None` if there are none.
    pub(crate) fn masked_by_channel(&self) -> Option<Map<String, Value>> {
        self.masked_bins().map(|masked| by_channel(self.whole_model(), masked))
    }

    /// Returns the hidden bins by channel, likewise.
    pub(crate) fn blinded_by_channel(&self) -> Option<Map<String, Value>> {
        self.hidden_bins().map(|hidden| by_channel(self.whole_model(), hidden))
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
