//! Several parameters of interest: the same question for each of them, the others being profiled as
//! nuisance parameters are.

use crate::answer::Document;
use crate::error::{Setting, SettingsError};
use crate::settings::index_of;
use crate::{Analysis, Answer, Error};
use ns_core::compile::{PoiChoice, choose_measurement, unknown_poi};
use ns_core::spec::Workspace;
use ns_core::{CompileError, CompileOptions, Model};
use ns_inference::parallel::{self, ExecutionContext};
use serde_json::{Value, json};
use std::num::NonZeroUsize;

/// The results of one question for each parameter of interest, in the order of the model.
#[derive(Debug, Clone)]
pub struct PoiResults<T> {
    /// One answer for each parameter; the analysis of each has this parameter of interest only.
    pub answers: Vec<Answer<T>>,
}

/// Returns the index of the parameter of `model` that is called `name` and is to be of interest.
///
/// # Errors
/// [`CompileError::UnknownPoi`], or [`CompileError::VectorPoi`] for a vector of several: what a
/// model that is compiled with this parameter of interest says.
pub fn poi_index(model: &Model, name: &str) -> Result<usize, CompileError> {
    let Model { parameters, measurement, .. } = model;
    index_of(parameters, Setting::Poi, name).map_err(|error| match error {
        SettingsError::Vector { name, len, .. } => CompileError::VectorPoi { poi: name, len },
        _ => unknown_poi(parameters, measurement, name, None),
    })
}

/// Returns the name of the first parameter of interest of `workspace`, by `options` or by the
/// measurement, whether a modifier uses it or not: signals may come later.
pub(crate) fn poi_named(workspace: &Workspace, options: &CompileOptions) -> Option<String> {
    if let PoiChoice::Named(names) = &options.poi
        && let Some(name) = names.first()
    {
        return Some(name.clone());
    }
    let (_, measurement) = choose_measurement(workspace, options.measurement.as_deref()).ok()?;
    measurement.poi.clone().filter(|poi| !poi.is_empty())
}

impl Analysis {
    /// Returns the same analysis with the parameter `name` as its only one of interest.
    ///
    /// The data stay what they are, Asimov data included.
    ///
    /// # Errors
    /// Those of [`poi_index`].
    pub fn with_poi(&self, name: &str) -> Result<Self, CompileError> {
        Ok(self.of_poi(poi_index(self.model(), name)?))
    }

    /// Asks the same question for every parameter of interest, with the others profiled.
    ///
    /// Each answer is bit for bit that of a model with this parameter of interest only, but hidden
    /// bins are those of all of them. The parameters are distributed over `threads`, each of which
    /// answers on its own; questions with threads of their own are asked one after the other.
    ///
    /// ```
    /// use nextstat::hypothesis::LimitRequest;
    /// use nextstat::{Analysis, CompileOptions, CompiledModel, PoiChoice, Settings};
    /// use std::num::NonZeroUsize;
    ///
    /// # let workspace = std::fs::read("../../examples/shapes.json").unwrap();
    /// let pois = ["mu", "norm_ttbar"].map(str::to_owned).to_vec();
    /// let options = CompileOptions { poi: PoiChoice::Named(pois), ..Default::default() };
    /// let model = CompiledModel::from_json(&workspace, &options)?;
    /// let analysis = Analysis::new(&model, &Settings::default())?;
    /// let limits = analysis.every_poi(NonZeroUsize::MIN, |analysis| analysis.limit(&LimitRequest::default()))?;
    /// let [mu, norm] = [0, 1].map(|k| limits.result.answers[k].result.observed.unwrap());
    /// assert!((mu - 2.857).abs() < 0.001 && norm > 1.0);
    /// # Ok::<(), nextstat::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error of a question.
    pub fn every_poi<T: Send>(
        &self,
        threads: NonZeroUsize,
        question: impl Fn(&Self) -> Result<Answer<T>, Error> + Sync,
    ) -> Result<Answer<PoiResults<T>>, Error> {
        self.every_poi_but(None, threads, question)
    }

    /// Asks the same question for every parameter of interest but `other`.
    pub(crate) fn every_poi_but<T: Send>(
        &self,
        other: Option<usize>,
        threads: NonZeroUsize,
        question: impl Fn(&Self) -> Result<Answer<T>, Error> + Sync,
    ) -> Result<Answer<PoiResults<T>>, Error> {
        let all = &self.model().pois;
        let asked: Vec<Self> = match all.as_slice() {
            [] | [_] => vec![self.clone()],
            pois => pois.iter().filter(|&&poi| Some(poi) != other).map(|&poi| self.of_poi(poi)).collect(),
        };
        let execution = ExecutionContext::with_threads(threads);
        let answers = parallel::map(asked.len(), execution, || (), |(), i| question(&asked[i]));
        // Nothing cancels them.
        let answers = answers.into_iter().flatten().collect::<Result<Vec<Answer<T>>, Error>>()?;
        let stored = answers.first().and_then(|answer| answer.analysis.stored_fit());
        let analysis = stored.map_or_else(|| self.clone(), |fit| self.referring_to(fit));
        analysis.answer(PoiResults { answers })
    }

    /// Returns a warning if the model has further parameters of interest than the first, which a
    /// procedure for one used.
    pub(crate) fn first_of_several(&self) -> Option<String> {
        let pois = &self.model().pois;
        let [first, _, ..] = pois.as_slice() else { return None };
        let (n_pois, name) = (pois.len(), &self.model().parameters.names[*first]);
        Some(format!("the model has {n_pois} parameters of interest, and this result is for the first, `{name}`"))
    }
}

impl<T> PoiResults<T> {
    /// Returns `text` about `answer` with the name of its parameter of interest, if there are
    /// several.
    pub(crate) fn attributed(&self, answer: &Answer<T>, text: &str) -> String {
        match (self.answers.len(), answer.model().poi()) {
            (2.., Some(poi)) => format!("`{}`: {text}", answer.model().parameters.names[poi]),
            _ => text.to_owned(),
        }
    }
}

impl<T: Document> Document for PoiResults<T> {
    const SCHEMA: &'static str = "every-poi";

    fn schema(&self) -> &'static str {
        match self.answers.as_slice() {
            [answer] => answer.result.schema(),
            _ => Self::SCHEMA,
        }
    }

    /// Returns the document of its result for one answer, and a list of these for several.
    fn fields(answer: &Answer<Self>) -> Value {
        let results = &answer.result;
        let mut documents: Vec<Value> = results.answers.iter().map(T::fields).collect();
        if let [document] = documents.as_mut_slice() {
            return document.take();
        }
        let warnings = results.answers.iter().zip(&documents).flat_map(|(answer, document)| {
            let warnings = document["warnings"].as_array().into_iter().flatten();
            warnings.filter_map(|text| Some(results.attributed(answer, text.as_str()?)))
        });
        let mut document = json!({
            "converged": documents.iter().all(|document| document["converged"] == json!(true)),
            "warnings": warnings.collect::<Vec<_>>(),
        });
        document["results"] = Value::Array(documents);
        document
    }
}
