//! Ensembles of toys: each thrown at one point and fitted.
//!
//! An ensemble may be larger than memory, so fits go to a sink as they come, and the result is
//! their summary. [`ToyFitRecord`] is one fit as files have it, and [`row`] as documents do.

use crate::answer::{Answer, Document};
use crate::error::{NeedsPoi, Setting, SettingsError};
use crate::provenance::{asimov_parameters, by_name, codes};
use crate::settings::{AsimovPoint, DataSource, elements, require_finite};
use crate::{Analysis, Error, device, document};
use ns_inference::minimize::Outcome;
use ns_inference::monitor::Monitor;
use ns_inference::toys::{
    AuxTreatment, Ensemble, RunStatus, ToyFit, ToyFitter, ToyRun, ToySampler, ToySource, ToysError,
};
use ns_inference::{FitOptions, Problem, Uncertainties, fit};
use ns_translate::toys::{FitRecordFormat, RecordLayout, Shard, ToyFitRecord, ToyFitStatus, ToyRunIdentity};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::Range;

mod summary;

pub use summary::{ToysSummary, warnings};

/// The warning about toys with fixed auxiliary data.
pub const FIXED_AUX: &str =
    "auxiliary data are fixed at their observed values: toys fluctuate too little, and p-values from them are wrong";

/// How toys are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToyOptions {
    /// What happens to auxiliary data.
    pub aux: AuxTreatment,
    /// Which toys of the run to make.
    pub part: ToyPart,
    /// Toys that a thread takes at a time; no result depends on it.
    pub batch: NonZeroUsize,
}

impl Default for ToyOptions {
    fn default() -> Self {
        Self { aux: AuxTreatment::Fluctuated, part: ToyPart::Shard(Shard::WHOLE), batch: ToyRun::BATCH }
    }
}

/// Which toys of a run to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToyPart {
    /// One of several contiguous parts, or all.
    Shard(Shard),
    /// The toys with these numbers.
    Range(Range<u64>),
}

impl ToyPart {
    /// Returns the numbers of the toys to make out of `n_toys`.
    #[must_use]
    pub fn range(&self, n_toys: u64) -> Range<u64> {
        match self {
            Self::Shard(shard) => shard.range(n_toys),
            Self::Range(range) => range.clone(),
        }
    }

    /// Returns the shard that the document beside a file of toys names.
    pub(crate) fn shard(&self) -> Shard {
        match self {
            Self::Shard(shard) => *shard,
            Self::Range(_) => Shard::WHOLE,
        }
    }
}

/// Where toys are thrown, and what is kept of their fits.
///
/// ```
/// use nextstat::toys::ToysRequest;
/// use nextstat::{Analysis, CompiledModel, Error, NoMonitor, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let analysis = Analysis::new(&model, &Settings { seed: 1, ..Settings::default() })?;
/// let mut toys = analysis.toys(&ToysRequest { n_toys: 100, ..ToysRequest::default() })?;
/// let mut signal_strengths = Vec::new();
/// toys.run(&NoMonitor, |_, fits| {
///     signal_strengths.extend(fits.iter().map(|fit| fit.params[0]));
///     Ok::<(), Error>(())
/// })?;
/// assert_eq!(signal_strengths.len(), 100);
/// assert_eq!(toys.answer()?.result.n_failed(), 0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToysRequest {
    /// Toys of the whole run.
    pub n_toys: u64,
    /// Where to throw them.
    pub throw_at: ThrowAt,
    /// Parameters in files and documents: names, or all if empty.
    pub parameters: Vec<String>,
    /// Whether to compute the standard deviation of the parameter of interest.
    pub poi_uncertainty: bool,
    /// How to make them.
    pub options: ToyOptions,
}

impl Default for ToysRequest {
    fn default() -> Self {
        let (parameters, poi_uncertainty) = (Vec::new(), false);
        let (throw_at, options) = (ThrowAt::BestFit { mu: None }, ToyOptions::default());
        Self { n_toys: 1000, throw_at, parameters, poi_uncertainty, options }
    }
}

/// Where toys are thrown.
#[derive(Debug, Clone, PartialEq)]
pub enum ThrowAt {
    /// At the best fit to the data; with `mu`, at the best fit for this value of the parameter of
    /// interest.
    BestFit {
        /// The value of the parameter of interest.
        mu: Option<f64>,
    },
    /// At the model's starting values; with `mu`, at this value of the parameter of interest.
    Init {
        /// The value of the parameter of interest.
        mu: Option<f64>,
    },
    /// At these values (P).
    Params(Vec<f64>),
}

impl ThrowAt {
    fn mu(&self) -> Option<f64> {
        match self {
            Self::BestFit { mu } | Self::Init { mu } => *mu,
            Self::Params(_) => None,
        }
    }

    fn rule(&self) -> &'static str {
        match self {
            Self::BestFit { .. } => "mle",
            Self::Init { .. } => "init",
            Self::Params(_) => "given",
        }
    }
}

impl Analysis {
    /// Prepares an ensemble: fits the data if toys are thrown at the best fit, and throws none yet.
    ///
    /// # Errors
    /// Names that the model does not have, no parameter of interest, a device that is not
    /// available, a fit to the data that does not converge, a point at which no toys can be thrown,
    /// too little memory.
    pub fn toys(&self, request: &ToysRequest) -> Result<ToyEnsemble, Error> {
        let written = self.written(&request.parameters)?;
        let uncertainty_of = if request.poi_uncertainty { Some(self.poi_with_uncertainty()?) } else { None };
        if let Some(mu) = request.throw_at.mu() {
            let poi = self.poi(NeedsPoi::Setting(Setting::Mu))?;
            require_finite(Setting::Mu, &self.model().parameters.names[poi], mu)?;
            self.require_inside(Setting::Mu, poi, &[mu])?;
        }
        self.device()?;
        let params = self.throwing_point(&request.throw_at)?;
        let sampler = self.sampler(&params, request.options.aux)?;
        let format = FitRecordFormat { n_parameters: written.len(), has_poi_uncertainty: request.poi_uncertainty };
        let identity = self.identity(request, &params, &written, format);
        let range = request.options.part.range(request.n_toys);
        let summary = ToysSummary::new(&identity, range.end - range.start);
        let batch = request.options.batch;
        Ok(ToyEnsemble { analysis: self.clone(), sampler, written, uncertainty_of, identity, range, batch, summary })
    }

    /// Returns what throws toys at `params` (P), the same as those of [`Analysis::toys`].
    ///
    /// # Errors
    /// A point at which no toys can be thrown.
    pub fn sampler(&self, params: &[f64], aux: AuxTreatment) -> Result<ToySampler, Error> {
        let source = ToySource { seed: self.seed(), ensemble: Ensemble::Fits, aux };
        Ok(ToySampler::new(self.model(), self.data(), params, source).map_err(ToysError::from)?)
    }

    /// Returns the point at which toys are thrown (P).
    ///
    /// # Errors
    /// [`Error::NoThrowingPoint`], too little memory.
    pub fn throwing_point(&self, at: &ThrowAt) -> Result<Vec<f64>, Error> {
        let mut options = FitOptions { uncertainties: Uncertainties::None, ..self.options().clone() };
        if let Some((mu, poi)) = at.mu().zip(self.model().poi()) {
            options.fixed.retain(|(fixed, _)| *fixed != poi);
            options.fixed.push((poi, mu));
        }
        match at {
            ThrowAt::Params(params) => Ok(params.clone()),
            ThrowAt::Init { .. } => {
                let mut params = self.model().parameters.init.clone();
                options.fixed.iter().for_each(|&(i, value)| params[i] = value);
                Ok(params)
            }
            ThrowAt::BestFit { .. } => {
                let best = fit(&mut Problem::new(self.model(), &mut self.likelihood()?, &options));
                if best.converged { Ok(best.bestfit) } else { Err(Error::NoThrowingPoint { warnings: best.warnings }) }
            }
        }
    }

    /// Resolves the parameters in files and documents: the named ones in the model's order, or all.
    pub(crate) fn written(&self, names: &[String]) -> Result<Vec<usize>, SettingsError> {
        let parameters = &self.model().parameters;
        let mut wanted = vec![names.is_empty(); parameters.len()];
        for name in names {
            elements(parameters, Setting::Parameter, name)?.into_iter().for_each(|i| wanted[i] = true);
        }
        Ok((0..parameters.len()).filter(|&i| wanted[i]).collect())
    }

    fn identity(
        &self,
        request: &ToysRequest,
        params: &[f64],
        written: &[usize],
        format: FitRecordFormat,
    ) -> ToyRunIdentity {
        let mut settings = self.toy_settings(request.options.aux);
        let names: Vec<&String> = written.iter().map(|&i| &self.model().parameters.names[i]).collect();
        let at = &request.throw_at;
        settings.extend([
            ("ensemble".to_owned(), json!("fits")),
            ("thrown_at".to_owned(), json!({"rule": at.rule(), "mu": at.mu(), "parameters": params})),
            ("parameters".to_owned(), json!(names)),
        ]);
        self.identity_of("fits", settings, format.layout(), request.n_toys, request.options.part.shard())
    }

    /// Returns the identity of a run of `n_toys` toys and its shard.
    pub(crate) fn identity_of(
        &self,
        kind: &str,
        settings: Map<String, Value>,
        layout: RecordLayout,
        n_toys: u64,
        shard: Shard,
    ) -> ToyRunIdentity {
        let devices = BTreeSet::from([device::name_of(self.backend()).to_owned()]);
        ToyRunIdentity { kind: kind.to_owned(), settings, layout, n_toys, shard, devices }
    }

    /// Returns the settings that every run of toys depends on.
    pub(crate) fn toy_settings(&self, aux: AuxTreatment) -> Map<String, Value> {
        self.run_settings().into_iter().chain([("aux".to_owned(), json!(aux))]).collect()
    }

    /// Returns the settings that the fits of every run depend on.
    pub(crate) fn run_settings(&self) -> Map<String, Value> {
        let (model, settings) = (self.model(), self.settings());
        let (asimov, asimov_at) = match &settings.data {
            // One value says nothing about several parameters of interest.
            DataSource::Asimov(point) if model.pois.len() > 1 => (None, asimov_parameters(point, model)),
            DataSource::Asimov(AsimovPoint { poi, parameters, .. }) => (poi.value(), by_name(parameters)),
            _ => (None, Map::new()),
        };
        // Files of toys of earlier versions have no entry for masked bins.
        let masked = self.masked_by_channel().map(|masked| ("masked".to_owned(), Value::Object(masked)));
        let settings = [
            ("nextstat_version".to_owned(), json!(document::VERSION)),
            ("workspace_sha256".to_owned(), json!(self.compiled().written_sha256())),
            ("measurement".to_owned(), json!(model.measurement)),
            ("poi".to_owned(), json!(model.poi().map(|i| &model.parameters.names[i]))),
            ("interpolation".to_owned(), codes(model.interpolation)),
            ("fixed".to_owned(), Value::Object(self.fixed_by_name())),
            ("bounds".to_owned(), Value::Object(self.bounds_by_name())),
            ("asimov".to_owned(), json!(asimov)),
            ("asimov_at".to_owned(), Value::Object(asimov_at)),
            ("multi_start".to_owned(), json!(settings.multi_start)),
            ("seed".to_owned(), json!(settings.seed)),
            ("par_names".to_owned(), json!(model.parameters.names)),
        ];
        settings.into_iter().chain(masked).collect()
    }
}

/// An ensemble of toys: run it once, then take its answer.
#[derive(Debug)]
pub struct ToyEnsemble {
    analysis: Analysis,
    sampler: ToySampler,
    written: Vec<usize>,
    uncertainty_of: Option<usize>,
    identity: ToyRunIdentity,
    range: Range<u64>,
    batch: NonZeroUsize,
    summary: ToysSummary,
}

impl ToyEnsemble {
    /// Returns everything that the toys depend on, for the document beside a file of them.
    #[must_use]
    pub fn identity(&self) -> &ToyRunIdentity {
        &self.identity
    }

    /// Returns the point at which toys are thrown (P).
    #[must_use]
    pub fn params(&self) -> &[f64] {
        self.sampler.params()
    }

    /// Returns the summary of the toys so far.
    #[must_use]
    pub fn summary(&self) -> &ToysSummary {
        &self.summary
    }

    /// Returns `fit` as files and documents have it.
    #[must_use]
    pub fn record(&self, fit: &ToyFit) -> ToyFitRecord {
        let poi_uncertainty = self.uncertainty_of.map(|_| fit.uncertainty.unwrap_or(f64::NAN));
        let parameters = self.written.iter().map(|&i| fit.params[i]).collect();
        ToyFitRecord { toy: fit.toy, status: status(fit.outcome), nll: fit.nll, poi_uncertainty, parameters }
    }

    /// Counts the next toy of the run, which was fitted before, so that it is not fitted again.
    pub fn resume(&mut self, record: &ToyFitRecord) {
        self.summary.add(record);
    }

    /// Throws and fits the toys that are left, and passes the fits to `sink`, in order and many at
    /// a time.
    ///
    /// # Errors
    /// Those of `sink`; a device that is not available; too little memory.
    pub fn run<E: From<Error>>(
        &mut self,
        monitor: &dyn Monitor,
        mut sink: impl FnMut(&Self, Vec<ToyFit>) -> Result<(), E>,
    ) -> Result<RunStatus, E> {
        let mut summary = self.summary.clone();
        let whole = Some([self.range.start, self.range.end]);
        let run = ToyRun { batch: self.batch, whole, ..self.analysis.run(monitor)? };
        let (model, options) = (self.analysis.model(), self.analysis.options());
        let toys = ToyFitter { model, options, sampler: &self.sampler, uncertainty_of: self.uncertainty_of };
        let left = self.range.start + summary.n_toys()..self.range.end;
        let poi = summary.poi_place().map(|place| self.written[place]);
        let likelihood = self.analysis.likelihood()?;
        let ended = toys.run(&likelihood, left, &run, |fits| {
            fits.iter().for_each(|fit| summary.count(status(fit.outcome), poi.map(|poi| fit.params[poi])));
            sink(self, fits)
        })?;
        summary.counts.ended = ended;
        self.summary = summary;
        Ok(ended)
    }

    /// Returns the summary of the toys that were run.
    ///
    /// # Errors
    /// A device that failed: its fits are then not to be used.
    pub fn answer(&self) -> Result<Answer<ToysSummary>, Error> {
        self.analysis.answer(self.summary.clone())
    }
}

impl Document for ToysSummary {
    const SCHEMA: &'static str = "toys";

    /// Returns what the ensemble is, and its summary; `toys` is empty, because fits went to the
    /// sink.
    fn fields(answer: &Answer<Self>) -> Value {
        answer.result.document_fields()
    }
}

/// Returns the row of a document for a fit.
#[must_use]
pub fn row(fit: &ToyFitRecord) -> Value {
    let mut row = json!({
        "toy": fit.toy,
        "outcome": fit.status.as_str(),
        "nll": fit.nll,
        "bestfit": fit.parameters,
    });
    if let Some(uncertainty) = fit.poi_uncertainty {
        row["poi_uncertainty"] = json!(uncertainty);
    }
    row
}

/// Returns the outcome that a status of a file stands for.
#[must_use]
pub fn outcome(status: ToyFitStatus) -> Outcome {
    match status {
        ToyFitStatus::Converged => Outcome::Converged,
        ToyFitStatus::IterationLimit => Outcome::IterationLimit,
        ToyFitStatus::Stalled => Outcome::Stalled,
        ToyFitStatus::Saddle => Outcome::Saddle,
        ToyFitStatus::NotFinite => Outcome::NotFinite,
    }
}

/// Returns the status that files and documents have for an outcome.
pub(crate) fn status(outcome: Outcome) -> ToyFitStatus {
    match outcome {
        Outcome::Converged => ToyFitStatus::Converged,
        Outcome::IterationLimit => ToyFitStatus::IterationLimit,
        Outcome::Stalled => ToyFitStatus::Stalled,
        Outcome::Saddle => ToyFitStatus::Saddle,
        Outcome::NotFinite => ToyFitStatus::NotFinite,
    }
}
