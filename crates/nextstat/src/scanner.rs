//! Scans of many signals over one background.
//!
//! A signal is a number of expected events in each bin of the background, with a statistical
//! uncertainty if it has one. The background is compiled once, and a signal replaces the numbers of
//! one sample. The lowest minima are searched for with every signal, or, much faster in large
//! models, with the background and where there is reason to: [`ns_inference::signal_scan`] says
//! where.
//!
//! ```
//! use nextstat::scanner::{SignalScanRequest, Scanner, SignalSlot, Signals};
//! use nextstat::{DocumentSource, LoadRequest, NumberTable, Settings};
//! use ns_inference::parallel::ExecutionContext;
//!
//! let background = LoadRequest::new(DocumentSource::Path("../../examples/background.json".into()));
//! let scanner = Scanner::load(&background, &Default::default(), &Settings::default(), &SignalSlot::default())?;
//! let mut signals = Signals::default();
//! // Two signals, and the events of each in the four bins of one channel.
//! let values = vec![0.0, 2.0, 6.0, 9.0, 0.0, 1.0, 3.0, 4.5];
//! signals.yields.insert("signal_region".to_owned(), NumberTable { values, n_rows: 2, n_columns: 4 });
//! let found = scanner.scan(&signals, &SignalScanRequest::default(), ExecutionContext::SINGLE_THREADED)?;
//! assert!(found.cls_obs[0] < found.cls_obs[1]);
//! # Ok::<(), nextstat::Error>(())
//! ```

mod result;
mod signals;
mod slot;

pub use result::{SignalScan, SignalScanLimits};
pub use signals::Signals;
pub use slot::SignalSlot;

use crate::error::{Procedure, ScannerError};
use crate::hypothesis::{LEAST_CONFIDENCE, LimitLevel, LimitRequest, tested};
use crate::settings::{AsimovPoi, DataSource};
use crate::{Analysis, CompiledModel, Error, Settings};
use ns_compute::CpuLikelihood;
use ns_core::nonlinearity::Nonlinearity;
use ns_core::{CompileOptions, Model, SampleSlot};
use ns_inference::Problem;
use ns_inference::limit::LimitResult;
use ns_inference::parallel::{self, ExecutionContext};
use ns_inference::search::is_lower_in_twice_nll;
use ns_inference::signal_scan::{BackgroundMinima, SignalResult, SignalTest};
use ns_inference::test_statistic::TestStatistic;
use ns_translate::{LoadRequest, LoadedWorkspace, load_document};
use std::sync::{Arc, OnceLock};

/// One pilot per this many signals: where the scan does without the full search, pilots are tested
/// with it as well.
const PILOT_STEP: usize = 64;

/// The largest number of pilots.
const MOST_PILOTS: usize = 16;

/// A limit that is higher by this, relative to itself, is of another minimum.
const OTHER_LIMIT: f64 = 1e-3;

/// What is computed for every signal.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalScanRequest {
    /// The tested strength of the signals; 1 if not given.
    pub mu: Option<f64>,
    /// q̃ or q.
    pub statistic: TestStatistic,
    /// The level of CLs at upper limits on the strengths; no limits if not given.
    pub limit_level: Option<f64>,
    /// Whether to search for the lowest minima with every signal. Otherwise fits start at the
    /// minima of the background, and search only where the model or the signal gives reason to:
    /// much faster in large models, and some end in higher minima.
    pub explore: bool,
}

impl Default for SignalScanRequest {
    fn default() -> Self {
        Self { mu: None, statistic: TestStatistic::QTilde, limit_level: None, explore: true }
    }
}

/// What the signals have shown that were tested with both searches.
#[derive(Debug, Clone, Copy)]
struct Pilots {
    /// How many of them have lower minima than the fits found that start at the background's.
    n_missed: usize,
    n: usize,
}

/// A background that signals are tested with.
#[derive(Debug)]
pub struct Scanner {
    /// The background with a sample for signals without uncertainties.
    exact: Background,
    /// The same for signals with uncertainties.
    uncertain: Background,
    slot: SignalSlot,
}

/// A background with a sample for signals.
#[derive(Debug)]
struct Background {
    analysis: Analysis,
    slot: SampleSlot,
    poi: usize,
    minima: OnceLock<Option<BackgroundMinima>>,
}

/// What a thread works with.
struct Worker {
    model: Model,
    observed: CpuLikelihood,
    asimov: CpuLikelihood,
}

impl Scanner {
    /// Reads a background, and makes a place for signals in it.
    ///
    /// # Errors
    /// As [`Scanner::new`], and documents that cannot be read.
    pub fn load(
        request: &LoadRequest,
        options: &CompileOptions,
        settings: &Settings,
        slot: &SignalSlot,
    ) -> Result<Self, Error> {
        Self::new(&load_document(request)?, options, settings, slot)
    }

    /// Makes a place for signals in the background `loaded`.
    ///
    /// # Errors
    /// A background that has the sample or the strength of the slot already, that names no
    /// parameter of interest where the slot names none, or that is not a model; settings that do
    /// not fit; a device, which this does not use.
    pub fn new(
        loaded: &LoadedWorkspace,
        options: &CompileOptions,
        settings: &Settings,
        slot: &SignalSlot,
    ) -> Result<Self, Error> {
        require_background(&settings.data)?;
        let background = |has_uncertainties| {
            let mut loaded = loaded.clone();
            let options = slot.add_to(&mut loaded.workspace, options, has_uncertainties)?;
            Background::new(&CompiledModel::from_loaded(loaded, &options)?, settings, &slot.sample)
        };
        Ok(Self { exact: background(false)?, uncertain: background(true)?, slot: slot.clone() })
    }

    /// Returns the analysis of the background, with a sample for signals.
    #[must_use]
    pub fn analysis(&self) -> &Analysis {
        &self.exact.analysis
    }

    /// Tests every signal. Results are in the order of the signals, and the same for any number of
    /// threads.
    ///
    /// # Errors
    /// Signals that do not fit the background; a strength, a statistic or a level that cannot be
    /// tested; a background whose fit does not converge.
    pub fn scan(
        &self,
        signals: &Signals,
        request: &SignalScanRequest,
        execution: ExecutionContext<'_>,
    ) -> Result<SignalScan, Error> {
        let mu = tested(request.statistic, request.mu)?;
        let level = request.limit_level.unwrap_or(LimitRequest::default().level.cls());
        if (LEAST_CONFIDENCE..1.0).contains(&level) {
            return Err(ScannerError::LevelIsConfidence { level }.into());
        }
        LimitRequest { level: LimitLevel::Cls(level), statistic: request.statistic, grid: None }.check()?;
        let background = if signals.uncertainties.is_empty() { &self.exact } else { &self.uncertain };
        let (whole, model) = (background.analysis.whole_model(), background.analysis.model());
        let points = signals.points(whole)?.in_model(whole, model);
        let test =
            SignalTest { poi: background.poi, mu, statistic: request.statistic, limit_level: request.limit_level };
        let minima = background.minima()?;
        let run = |test: &SignalTest, which: &[usize], explores: bool| {
            parallel::map(
                which.len(),
                execution,
                || background.worker(),
                |worker, i| {
                    let (yields, uncertainties) = points.of(which[i]);
                    background.test(worker, test, minima, [yields, uncertainties], explores)
                },
            )
        };
        let mut head =
            result::ScanHead { mu, slot: &self.slot, request, background, minima, pilots: None, complete: true };
        let tested: Vec<usize> = (0..points.n).filter(|&i| points.has_events(i)).collect();
        let mut found = run(&test, &tested, request.explore);
        head.complete = found.iter().all(Option::is_some);
        if !request.explore && head.complete {
            let pilots = pilots(tested.len());
            let of_pilots: Vec<usize> = pilots.iter().map(|&k| tested[k]).collect();
            let again = run(&test, &of_pilots, true);
            head.complete = again.iter().all(Option::is_some);
            let mut n_missed = 0;
            for (&k, again) in pilots.iter().zip(again) {
                let pair = found[k].as_ref().zip(again.as_ref());
                if pair.is_some_and(|(found, again)| has_lower_minima(again, found)) {
                    n_missed += 1;
                    found[k] = again;
                }
            }
            head.pilots = Some(Pilots { n_missed, n: pilots.len() });
        }
        let mut all: Vec<Option<SignalResult>> = vec![None; points.n];
        tested.into_iter().zip(found).for_each(|(i, found)| all[i] = found);
        Ok(SignalScan::new(&head, &points, &all))
    }
}

/// Refuses Asimov data with a signal: each signal of a scan would have data of its own.
fn require_background(data: &DataSource) -> Result<(), ScannerError> {
    match data {
        DataSource::Asimov(point) if point.poi != AsimovPoi::At(0.0) => Err(ScannerError::AsimovSignal),
        _ => Ok(()),
    }
}

/// Returns the signals among `n` that are tested with the full search, too.
fn pilots(n: usize) -> Vec<usize> {
    let n_pilots = n.div_ceil(PILOT_STEP).min(MOST_PILOTS);
    (0..n_pilots).map(|k| k * n / n_pilots).collect()
}

/// Returns `true` if the full search has met lower minima than the fits that started at those of
/// the background.
fn has_lower_minima(explored: &SignalResult, from_background: &SignalResult) -> bool {
    let asimov = explored.test.q_asimov.zip(from_background.test.q_asimov);
    is_lower_in_twice_nll(explored.twice_nll_best, from_background.twice_nll_best)
        || is_lower_in_twice_nll(explored.twice_nll, from_background.twice_nll)
        || asimov.is_some_and(|(explored, from_background)| is_lower_in_twice_nll(explored, from_background))
        || (explored.test.converged && !from_background.test.converged)
        || explored.limit.as_ref().zip(from_background.limit.as_ref()).is_some_and(|(a, b)| has_higher_limit(a, b))
}

/// Returns `true` if a limit of the full search, `explored`, is higher than that of fits that start
/// at the background: those have met a conditional minimum that is not the lowest.
fn has_higher_limit(explored: &LimitResult, from_background: &LimitResult) -> bool {
    let limits = |result: &LimitResult| std::iter::once(result.observed).chain(result.expected);
    let is_higher = |(explored, other): (Option<f64>, Option<f64>)| match (explored, other) {
        (Some(explored), Some(other)) => explored > other * (1.0 + OTHER_LIMIT),
        (explored, _) => explored.is_some(),
    };
    limits(explored).zip(limits(from_background)).any(is_higher)
}

impl Background {
    fn new(model: &CompiledModel, settings: &Settings, sample: &str) -> Result<Self, Error> {
        let analysis = Analysis::new(model, settings)?;
        analysis.require_cpu("a scan of signals")?;
        let poi = analysis.varied(None, Procedure::Hypotest)?;
        let slot = SampleSlot::of(analysis.model(), sample)
            .ok_or_else(|| ScannerError::SampleInUse { name: sample.to_owned() })?;
        Ok(Self { analysis, slot, poi, minima: OnceLock::new() })
    }

    /// Returns what a thread works with; the signal is none.
    fn worker(&self) -> Worker {
        let analysis = &self.analysis;
        let likelihood = || CpuLikelihood::with_plan(Arc::clone(analysis.plan()), analysis.data());
        let mut worker = Worker { model: analysis.model().clone(), observed: likelihood(), asimov: likelihood() };
        let none = vec![0.0; worker.model.n_bins()];
        worker.set(&self.slot, [&none, &none]);
        worker
    }

    /// Returns the minima without signal, which are looked for once.
    fn minima(&self) -> Result<&BackgroundMinima, Error> {
        let find = || {
            let mut worker = self.worker();
            let options = self.analysis.options();
            BackgroundMinima::find(&mut Problem::new(&worker.model, &mut worker.observed, options), self.poi)
        };
        let found = self.minima.get_or_init(find);
        found.as_ref().ok_or_else(|| ScannerError::Background.into())
    }

    fn test(
        &self,
        worker: &mut Worker,
        test: &SignalTest,
        minima: &BackgroundMinima,
        numbers: [&[f64]; 2],
        explores: bool,
    ) -> SignalResult {
        worker.set(&self.slot, numbers);
        if explores {
            // What the full search looks at depends on the signal.
            worker.model.nonlinearity = Nonlinearity::of(&worker.model);
        }
        let problem = Problem::new(&worker.model, &mut worker.observed, self.analysis.options());
        let mut found = if explores {
            test.explore(problem, &mut worker.asimov)
        } else {
            test.from_background(problem, &mut worker.asimov, minima)
        };
        // With those of their factors, -2 ln L of different signals could not be compared.
        let normalisation = 2.0 * self.slot.normalisation(&worker.model);
        found.twice_nll -= normalisation;
        found.twice_nll_best -= normalisation;
        if let Some(limit) = &mut found.limit {
            limit.tested = Vec::new();
        }
        found
    }

    /// Returns -2 ln L without signal, without the normalisations of the signals' factors.
    fn twice_nll(&self, minima: &BackgroundMinima) -> f64 {
        2.0 * (minima.nll() - self.slot.normalisation(self.analysis.model()))
    }
}

impl Worker {
    /// Sets the yields and the uncertainties (B each) of the signal.
    fn set(&mut self, slot: &SampleSlot, [yields, uncertainties]: [&[f64]; 2]) {
        self.model.set_sample(slot, yields, uncertainties);
        self.observed.set_sample(&self.model, slot);
        self.asimov.set_sample(&self.model, slot);
    }
}
