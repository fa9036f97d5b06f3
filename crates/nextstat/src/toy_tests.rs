//! Hypothesis tests by toys: CLs without asymptotic formulas.

use crate::answer::{Answer, Document};
use crate::document::{about, to_document};
use crate::error::{Procedure, SettingsError};
use crate::hypothesis::tested;
use crate::toys::{FIXED_AUX, ToyOptions};
use crate::{Analysis, Error};
use ns_inference::monitor::Monitor;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{
    HypotestSettings, HypotestToys, HypothesisToy, ObservedStatistic, RunStatus, StatisticSamples, ToyHypotest, ToyRun,
    ToyTest,
};
use ns_translate::toys::{Shard, ToyRunIdentity, ToyTestRecord};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::ops::{ControlFlow, Range};

/// Which value of the parameter of interest to test by toys.
///
/// ```
/// use nextstat::toy_tests::ToyTestRequest;
/// use nextstat::{Analysis, CompiledModel, Error, NoMonitor, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let analysis = Analysis::new(&model, &Settings::default())?;
/// let request = ToyTestRequest { n_toys: [200; 2], ..ToyTestRequest::default() };
/// let mut test = analysis.hypotest_toys(&request)?;
/// test.run(&NoMonitor, |_| Ok::<(), Error>(()))?;
/// assert_eq!(test.answer()?.result.test.n_toys, [200, 200]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToyTestRequest {
    /// The tested value; `None` for 1, and for 0 with q₀.
    pub mu: Option<f64>,
    /// The test statistic: q̃, q or q₀.
    pub statistic: TestStatistic,
    /// Toys of the tested and of the alternative hypothesis.
    pub n_toys: [u64; 2],
    /// Stop as soon as the Monte Carlo error of CLs is below this.
    pub stop_at_error: Option<f64>,
    /// How to make the toys.
    pub options: ToyOptions,
}

impl Default for ToyTestRequest {
    fn default() -> Self {
        let options = ToyOptions::default();
        Self { mu: None, statistic: TestStatistic::QTilde, n_toys: [1000; 2], stop_at_error: None, options }
    }
}

/// The statistics that toys are made for.
const BY_TOYS: &[&str] = &["qtilde", "q", "q0"];

impl Analysis {
    /// Prepares a test by toys: fits the data to both hypotheses, and throws no toys yet.
    ///
    /// # Errors
    /// No parameter of interest, or a fixed one; a two-sided statistic; q₀ of another value than 0;
    /// a device that is not available; fits to the data that do not converge; too little memory.
    pub fn hypotest_toys(&self, request: &ToyTestRequest) -> Result<ToyTestRun<'_>, Error> {
        let settings = self.toy_test_settings(request)?;
        self.device()?;
        let mut likelihood = self.likelihood()?;
        let test = ToyHypotest::new(self.model(), &mut likelihood, self.options(), settings)?;
        let identity = self.test_identity(request, &test);
        let range = request.options.part.range(settings.n_units());
        let request = request.clone();
        let (samples, n_done, ended) = (StatisticSamples::default(), 0, RunStatus::Done);
        Ok(ToyTestRun { analysis: self, test, request, identity, range, samples, n_done, ended })
    }

    fn toy_test_settings(&self, request: &ToyTestRequest) -> Result<HypotestSettings, SettingsError> {
        let ToyTestRequest { statistic, n_toys, .. } = *request;
        if !statistic.is_one_sided() {
            let name = statistic.name().to_owned();
            let procedure = Procedure::HypotestToys;
            return Err(SettingsError::NoSuchStatistic { procedure, name, known: BY_TOYS });
        }
        let mu = tested(statistic, request.mu)?;
        let (poi, aux) = (self.varied(None, Procedure::HypotestToys)?, request.options.aux);
        Ok(HypotestSettings { test_statistic: statistic, poi, mu, n_toys, seed: self.seed(), aux })
    }

    fn test_identity(&self, request: &ToyTestRequest, test: &ToyHypotest<'_>) -> ToyRunIdentity {
        let mut settings = self.toy_settings(request.options.aux);
        let [tested, alternative] = test.thrown_at();
        settings.extend([
            ("observed".to_owned(), to_document(&test.observed())),
            ("thrown_at".to_owned(), json!({"tested": tested, "alternative": alternative})),
            ("n_toys_of_hypotheses".to_owned(), json!(request.n_toys)),
            ("stop_at_error".to_owned(), json!(request.stop_at_error)),
        ]);
        let n_units = test.settings().n_units();
        self.identity_of("hypotest", settings, ToyTestRecord::layout(), n_units, request.options.part.shard())
    }
}

/// A test by toys: run it once, then take its answer.
#[derive(Debug)]
pub struct ToyTestRun<'a> {
    analysis: &'a Analysis,
    test: ToyHypotest<'a>,
    request: ToyTestRequest,
    identity: ToyRunIdentity,
    range: Range<u64>,
    samples: StatisticSamples,
    n_done: u64,
    ended: RunStatus,
}

impl ToyTestRun<'_> {
    /// Returns everything that the toys depend on, for the document beside a file of them.
    #[must_use]
    pub fn identity(&self) -> &ToyRunIdentity {
        &self.identity
    }

    /// Returns the toy that unit `unit` of the run is.
    #[must_use]
    pub fn unit(&self, unit: u64) -> HypothesisToy {
        self.test.settings().unit(unit)
    }

    /// Counts the next toy of the run, whose statistic was computed before; `None` is that of a
    /// failed fit.
    pub fn resume(&mut self, value: Option<f64>) {
        let which = self.unit(self.next()).which;
        self.samples.push(which, value);
        self.n_done += 1;
    }

    /// Returns `true` if no further toys are wanted: all are there, or the error of CLs is small
    /// enough.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let (settings, stop) = (self.test.settings(), self.request.stop_at_error);
        self.next() >= self.range.end || settings.is_enough(self.next(), &self.samples, &self.test.observed(), stop)
    }

    /// Returns the first unit that is still to be done.
    fn next(&self) -> u64 {
        self.range.start + self.n_done
    }

    /// Throws the toys that are left and passes their statistics to `sink`, in order and many at a
    /// time.
    ///
    /// # Errors
    /// Those of `sink`; a device that is not available; too little memory.
    pub fn run<E: From<Error>>(
        &mut self,
        monitor: &dyn Monitor,
        mut sink: impl FnMut(&[ToyTest]) -> Result<(), E>,
    ) -> Result<RunStatus, E> {
        let whole = Some([self.range.start, self.range.end]);
        let run = ToyRun { batch: self.request.options.batch, whole, ..self.analysis.run(monitor)? };
        let likelihood = self.analysis.likelihood()?;
        while !self.is_finished() {
            let next = self.next();
            let end = self.test.settings().next_check(next, self.request.stop_at_error).min(self.range.end);
            let Self { test, samples, n_done, .. } = self;
            self.ended = test.run(&likelihood, next..end, &run, |tests| {
                sink(&tests)?;
                tests.iter().for_each(|test| samples.push(test.unit.which, test.value));
                *n_done += tests.len() as u64;
                Ok::<_, E>(ControlFlow::Continue(()))
            })?;
            if matches!(self.ended, RunStatus::Cancelled | RunStatus::Failed) {
                break;
            }
        }
        Ok(self.ended)
    }

    /// Returns the result of the toys so far.
    ///
    /// # Errors
    /// A device that failed: its fits are then not to be used.
    pub fn answer(self) -> Result<Answer<ToyTestResult>, Error> {
        let interrupted =
            (self.ended == RunStatus::Cancelled).then_some((self.n_done, self.range.end - self.range.start));
        let test = HypotestToys::new(self.test.observed(), &self.samples);
        let thrown_at = self.test.thrown_at().map(<[f64]>::to_vec);
        let mut result = ToyTestResult::new(self.identity, test, interrupted);
        (result.samples, result.thrown_at) = (self.samples, thrown_at);
        result.test.warnings.extend(self.analysis.first_of_several());
        self.analysis.answer(result)
    }
}

/// The result of a test by toys, with its diagnosis.
#[derive(Debug, Clone)]
pub struct ToyTestResult {
    /// CLs, observed and expected, with errors and warnings.
    pub test: HypotestToys,
    /// What the run is.
    pub identity: ToyRunIdentity,
    /// The statistics of the toys; empty for merged files.
    pub samples: StatisticSamples,
    /// Where the toys of the tested and of the alternative hypothesis were thrown (P each); empty
    /// for merged files.
    pub thrown_at: [Vec<f64>; 2],
    /// Whether the monitor cancelled the run.
    pub is_interrupted: bool,
}

impl ToyTestResult {
    /// Adds the warnings about the run to those of `test`; `interrupted` has the numbers of toys
    /// done and wanted of an interrupted run.
    #[must_use]
    pub fn new(identity: ToyRunIdentity, mut test: HypotestToys, interrupted: Option<(u64, u64)>) -> Self {
        if identity.settings["aux"] == "fixed" {
            test.warnings.insert(0, FIXED_AUX.to_owned());
        }
        if identity.shard != Shard::WHOLE {
            let Shard { index, of } = identity.shard;
            test.warnings
                .insert(0, format!("these are the toys of shard {index} of {of} only; `toys merge` joins shards"));
        }
        if let Some(limit) = identity.settings["stop_at_error"].as_f64().filter(|_| interrupted.is_none()) {
            let error = test.cls_observed_error;
            let is_large = error.is_nan() || error >= limit;
            let warning = || format!("the error of CLs is not below {limit} after all toys");
            test.warnings.extend(is_large.then(warning));
        }
        if let Some((done, wanted)) = interrupted {
            test.warnings.insert(0, format!("interrupted after {done} of {wanted} toys"));
        }
        let (samples, thrown_at) = (StatisticSamples::default(), [Vec::new(), Vec::new()]);
        Self { test, identity, samples, thrown_at, is_interrupted: interrupted.is_some() }
    }

    /// Returns the number of toys whose fits did not converge.
    #[must_use]
    pub fn n_failed(&self) -> u64 {
        self.test.n_failed.iter().sum()
    }

    /// Returns the document of merged files, which have no provenance.
    #[must_use]
    pub fn merged_document(&self) -> Value {
        about(Self::SCHEMA, &self.identity.settings["measurement"], Value::Null, self.document_fields())
    }

    fn document_fields(&self) -> Value {
        let (settings, test) = (&self.identity.settings, &self.test);
        let Value::Object(mut document) = to_document(test) else { return Value::Null };
        for key in ["seed", "aux", "thrown_at", "par_names"] {
            document.insert(key.to_owned(), settings[key].clone());
        }
        let (poi, mut names) = (&settings["poi"], settings["par_names"].as_array().into_iter().flatten());
        let bestfit = document.remove("mu_hat").unwrap_or_default();
        let poi = json!({"name": poi, "index": names.position(|name| name == poi), "bestfit": bestfit});
        document.insert("poi".to_owned(), poi);
        let counts = ["CLsb_obs", "CLb_obs"].map(|key| (key.to_owned(), document.remove(key).unwrap_or_default()));
        for ((key, _), tail) in counts.iter().zip([test.clsb, test.clb]) {
            document.insert(key.clone(), json!(tail.value));
            document.insert(format!("{key}_error"), json!(tail.error));
        }
        document.insert("tail_probabilities".to_owned(), Value::Object(Map::from_iter(counts)));
        document.insert("complete".to_owned(), json!(!self.is_interrupted));
        document.insert("converged".to_owned(), json!(self.n_failed() == 0));
        document.insert("n_toys_wanted".to_owned(), settings["n_toys_of_hypotheses"].clone());
        Value::Object(document)
    }
}

impl Document for ToyTestResult {
    const SCHEMA: &'static str = "hypotest-toys";

    fn fields(answer: &Answer<Self>) -> Value {
        answer.result.document_fields()
    }
}

/// The statistic of the data, as the document beside a file of toys has it.
#[derive(Deserialize)]
struct WrittenObserved {
    test_stat: String,
    mu: f64,
    q: f64,
    mu_hat: f64,
}

/// Returns the statistic of the data that `identity` describes; `None` if the document beside the
/// file does not have it.
#[must_use]
pub fn observed(identity: &ToyRunIdentity) -> Option<ObservedStatistic> {
    let WrittenObserved { test_stat, mu, q, mu_hat } =
        serde_json::from_value(identity.settings.get("observed")?.clone()).ok()?;
    let known = [TestStatistic::Q, TestStatistic::QTilde, TestStatistic::Q0];
    let test_statistic = known.into_iter().find(|statistic| to_document(statistic) == test_stat.as_str())?;
    Some(ObservedStatistic { test_statistic, mu, value: q, mu_hat })
}

/// Returns the statistic of a toy as files have it.
#[must_use]
pub fn record(test: &ToyTest) -> ToyTestRecord {
    let HypothesisToy { which, toy } = test.unit;
    ToyTestRecord { toy, hypothesis: which as u8, value: test.value, mu_hat: test.mu_hat }
}
