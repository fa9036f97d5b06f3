//! One model, and the answers to questions about it.

use nextstat::curves::{AxisRequest, ScanRequest};
use nextstat::document::{headed, to_document};
use nextstat::exclusion::{Exclusion, ExclusionRequest};
use nextstat::hypothesis::{HypotestRequest, LimitRequest, SignificanceRequest};
use nextstat::pois::poi_index;
use nextstat::ranking::RankingRequest;
use nextstat::toy_tests::ToyTestRequest;
use nextstat::{Analysis, CompileOptions, CompiledModel, Error, FitRequest, Monitor, PoiChoice, ScanValues};
use ns_core::CompileError;
use ns_core::summary::{WorkspaceSummary, summarize};
use ns_translate::{CardOptions, LoadRequest, load_document};
use serde::Deserialize;
use serde_json::Value;

use crate::contents::{parameters, tree};
use crate::error::EngineError;
use crate::files::Files;
use crate::question::{OpenRequest, Question, QuestionSettings, SCAN_POINTS, read};
use crate::reproduce::{Reproduction, reproduce};

/// Numbers of points that the command takes.
const SCAN_SIZES: std::ops::RangeInclusive<usize> = 2..=100_000;

/// A model and where it is from.
#[derive(Debug, Clone)]
pub struct Session {
    opened: OpenRequest,
    model: CompiledModel,
    warnings: Vec<String>,
}

impl Session {
    /// Makes a model of `files` as `request`, an [`OpenRequest`] in JSON, says.
    ///
    /// # Errors
    ///
    /// Files that cannot be read, with their place; a workspace that is not a model.
    ///
    /// A measurement whose parameter of interest nothing uses is no error but a warning: published
    /// backgrounds have the signal in patches.
    pub fn open(files: &Files, request: &str) -> Result<Self, EngineError> {
        let opened: OpenRequest = read(request)?;
        let load = LoadRequest {
            patches: opened.patches.iter().map(|path| files.source(path)).collect(),
            patchset: opened.patchset.as_ref().map(|choice| (choice.file.clone().into(), choice.patch.clone())),
            measurement: opened.measurement.clone(),
            card: CardOptions { mass: opened.mass, ..CardOptions::default() },
            ..LoadRequest::new(files.source(&opened.workspace))
        };
        let compile = |poi| {
            let loaded = load_document(&load)?;
            let warnings = loaded.warnings.clone();
            let options = CompileOptions { measurement: opened.measurement.clone(), poi, ..CompileOptions::default() };
            Ok::<_, Error>((CompiledModel::from_loaded(loaded, &options)?, warnings))
        };
        let (model, warnings) = match compile(PoiChoice::FromMeasurement) {
            // A background, whose signal is in patches.
            Err(Error::Compile(error @ CompileError::UnknownPoi { .. })) => {
                let (model, mut warnings) = compile(PoiChoice::None)?;
                warnings.push(format!("{error}: the model has no parameter of interest"));
                (model, warnings)
            }
            other => other?,
        };
        Ok(Self { opened, model, warnings })
    }

    /// Returns what the model does not have of its files, or has otherwise than they say.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the JSON document that answers `question`, a [`Question`] in JSON with its settings.
    ///
    /// The document is that of the command of the same name. An overview is what a report shows of
    /// one fit, with all digits.
    ///
    /// # Errors
    ///
    /// A question that is not valid, and everything that the procedure cannot do.
    pub fn run(&self, question: &str, monitor: &dyn Monitor) -> Result<String, EngineError> {
        let (question, settings) = Question::read(question)?;
        let seed = if let Question::HypotestToys { seed: Some(seed), .. } = question { seed } else { 0 };
        let model = self.model_for(&settings)?;
        let analysis = Analysis::new(&model, &settings.engine(seed))?;
        Ok(answer(&model, &analysis, &question, monitor)?.to_string())
    }

    /// Returns the command and the Python program that give the answer to `question`.
    ///
    /// # Errors
    ///
    /// A question that is not valid.
    pub fn reproduce(&self, question: &str) -> Result<Reproduction, EngineError> {
        let (question, settings) = Question::read(question)?;
        let has_poi = !self.model.model().pois.is_empty();
        Ok(reproduce(&self.opened, has_poi, &question, &settings))
    }

    /// Returns the model with the parameter of interest that the settings name.
    fn model_for(&self, settings: &QuestionSettings) -> Result<CompiledModel, EngineError> {
        let Some(poi) = &settings.poi else { return Ok(self.model.clone()) };
        let poi = poi_index(self.model.model(), poi).map_err(nextstat::Error::from)?;
        Ok(self.model.with_poi(poi))
    }
}

fn answer(
    model: &CompiledModel,
    analysis: &Analysis,
    question: &Question,
    monitor: &dyn Monitor,
) -> Result<Value, EngineError> {
    Ok(match question {
        Question::Inspect {} => headed("inspect", to_document(&summary(model)?)),
        Question::Tree {} => tree(model),
        Question::Parameters {} => parameters(model)?,
        Question::Overview {} => ns_report::overview(&analysis.report()?, &summary(model)?, &analysis.check(None)?),
        Question::Conditional {} => ns_report::shown_report(&analysis.report()?),
        Question::Report {} => analysis.report()?.document(),
        Question::Fit {} => analysis.fit(&FitRequest::default())?.diagnosed().document(),
        Question::Ranking {} => analysis.ranking(&RankingRequest::default(), monitor)?.document(),
        Question::Scan { parameter, points, range } => {
            let points = points.unwrap_or(SCAN_POINTS);
            if !SCAN_SIZES.contains(&points) {
                let message = format!("a scan has 2 to {} points, and not {points}", SCAN_SIZES.end());
                return Err(EngineError { message, hint: None });
            }
            let values = match range {
                Some([low, high]) => ScanValues::between(*low, *high, points),
                None => ScanValues::Automatic(points),
            };
            let axes = vec![AxisRequest { parameter: parameter.clone(), values }];
            analysis.scan(&ScanRequest { axes, has_params: true, ..ScanRequest::default() }, monitor)?.document()
        }
        Question::Limit {} => analysis.limit(&LimitRequest::default())?.document(),
        Question::Significance {} => analysis.significance(&SignificanceRequest::default())?.document(),
        Question::Hypotest { mu, provenance } => {
            let test = analysis.hypotest(&HypotestRequest { mu: *mu, ..HypotestRequest::default() })?;
            if *provenance == Some(false) { test.result_document() } else { test.document() }
        }
        Question::HypotestToys { mu, n_toys, .. } => by_toys(analysis, *mu, *n_toys, monitor)?,
    })
}

fn summary(model: &CompiledModel) -> Result<WorkspaceSummary, EngineError> {
    Ok(summarize(model.workspace_outline(), Some(&model.model().measurement))?)
}

fn by_toys(
    analysis: &Analysis,
    mu: Option<f64>,
    n_toys: Option<u64>,
    monitor: &dyn Monitor,
) -> Result<Value, EngineError> {
    let default = ToyTestRequest::default();
    let n_toys = n_toys.map_or(default.n_toys, |n_toys| [n_toys; 2]);
    let mut test = analysis.hypotest_toys(&ToyTestRequest { mu, n_toys, ..default })?;
    test.run(monitor, |_| Ok::<(), Error>(()))?;
    Ok(test.answer()?.document())
}

/// The plane of an exclusion contour.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExclusionQuestion {
    /// The answers for the patches of a set, as in the document of `hypotest --every-patch`.
    grid: Value,
    /// The label on the x axis.
    x: Option<String>,
    /// The label on the y axis.
    y: Option<String>,
}

/// Returns the document of the exclusion contours of a grid: `question` has the keys `grid`, the
/// document of `hypotest` for every patch, and the labels `x` and `y`.
///
/// # Errors
///
/// A question that is not valid, and a grid without contours.
pub fn exclusion(question: &str) -> Result<String, EngineError> {
    let ExclusionQuestion { grid, x, y } = read(question)?;
    let request = ExclusionRequest { x, y, ..ExclusionRequest::default() };
    Ok(Exclusion::of(&grid, &request)?.document().to_string())
}
