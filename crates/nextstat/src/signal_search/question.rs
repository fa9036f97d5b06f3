//! Answers a search: one signal after the other, and then what is global.

use super::background::Background;
use super::row::Row;
use super::{Search, SearchRequest, SearchToys, StrongestSignal, TrialsPoint, Upcrossings};
use crate::error::{Procedure, SearchError};
use crate::hypothesis::{LimitRequest, SignificanceRequest};
use crate::patchsets::{GridRequest, SignalGrid, failed_patches};
use crate::{Analysis, Error, Provenance};
use ns_inference::global_significance::{
    GlobalPValue, SignificanceField, signal_yields, toy_p, upcrossing_p, upcrossings,
};
use ns_inference::monitor::WithoutProgress;
use ns_inference::normal::upper_tail;
use ns_inference::parallel::{self, ExecutionContext};
use ns_inference::toys::{SearchSignal, ToySampler, ToysError};
use ns_translate::patchset::PatchEntry;
use serde_json::{Map, Value, json};

/// Local significances at which global p-values are given.
const CURVE: [f64; 9] = [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0];

/// The level whose upcrossings are counted: a local q₀ of ½.
const LEVEL: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Scores that are more skewed are far from normal in their tails.
const SKEWED: f64 = 0.3;

/// The number of standard errors from which on the global p-values by the field and by toys count
/// as different.
const DIFFERENT: f64 = 4.0;

/// The smallest number of samples of the field, which the hint of `SearchError` names, too.
const FEWEST_SAMPLES: usize = 100;

/// A search of a patch set.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) grid: &'a SignalGrid,
    pub(super) request: &'a GridRequest<'a>,
    pub(super) search: &'a SearchRequest,
    pub(super) execution: ExecutionContext<'a>,
}

/// A signal with a local significance.
struct LocalSignal {
    /// The index of its patch.
    entry: usize,
    z: f64,
    p0: f64,
    /// What it adds to each bin per unit of its strength (B).
    yields: Vec<f64>,
}

/// What was found of one patch.
struct PatchAnswer {
    /// The documents of the results, by key.
    documents: Map<String, Value>,
    provenance: Provenance,
    converged: bool,
    z: Option<f64>,
    p0: Option<f64>,
    yields: Vec<f64>,
}

/// The signals of the field, and what toys say of them.
struct Global<'a> {
    field: &'a SignificanceField,
    signals: &'a [&'a LocalSignal],
    /// The largest local significance of each toy that did not fail; `None` without toys.
    maxima: Option<Vec<f64>>,
    /// The largest local significance of the data.
    largest: f64,
    /// Expected upcrossings, for signals in a row.
    expected: Option<f64>,
    seed: u64,
}

impl Question<'_> {
    /// Returns the answer.
    pub(super) fn answer(&self) -> Result<Search, Error> {
        let Self { grid, search, execution, .. } = *self;
        if search.n_samples < FEWEST_SAMPLES {
            return Err(SearchError::TooFewSamples { n: search.n_samples }.into());
        }
        let row = Row::of(grid.set(), search.label.as_deref())?;
        let background = self.background()?;
        let entries = grid.set().patches();
        let answers = parallel::map(entries.len(), execution, || (), |(), i| self.local(&background, &entries[i]));
        let (mut found, signals) = self.collected(answers);
        if found.complete && !signals.is_empty() {
            self.add_global(&mut found, &background, &signals, row.as_ref())?;
        }
        Ok(found)
    }

    /// Fits the background, in the model of the first signal that can be analysed.
    fn background(&self) -> Result<Background, Error> {
        let analysis = self.grid.first_analysis(self.request, Procedure::Significance)?;
        analysis.require_cpu("a search")?;
        Background::fit(analysis)
    }

    /// Returns the analysis of the model with one signal.
    fn analysis(&self, entry: &PatchEntry) -> Result<Analysis, Error> {
        self.grid.analysis(entry, self.request)
    }

    /// Returns what was found of the signal of `entry`.
    fn local(&self, background: &Background, entry: &PatchEntry) -> Result<PatchAnswer, Error> {
        let analysis = self.analysis(entry)?;
        if !background.has_bins_of(&analysis) {
            return Err(SearchError::OtherBins.into());
        }
        let significance = analysis.significance(&SignificanceRequest::default())?;
        let limit = self.search.limits.then(|| analysis.limit(&LimitRequest::default())).transpose()?;
        let converged = significance.result.converged && limit.as_ref().is_none_or(|limit| limit.result.converged);
        let limit = limit.map_or(Value::Null, |limit| limit.result_document());
        let documents =
            Map::from_iter([("result".to_owned(), significance.result_document()), ("limit".to_owned(), limit)]);
        let poi = significance.result.poi.index;
        let yields = signal_yields(analysis.model(), poi, &background.at(&analysis, poi));
        let provenance = analysis.provenance_of(self.grid.workspace_provenance());
        let (z, p0) = (significance.result.z_obs, significance.result.p0_obs);
        Ok(PatchAnswer { documents, provenance, converged, z, p0, yields })
    }

    /// Returns the `answers` for the patches, without what is global, and the signals that have a
    /// local significance. An answer that is `None` was not computed because the run was cancelled.
    fn collected(&self, answers: Vec<Option<Result<PatchAnswer, Error>>>) -> (Search, Vec<LocalSignal>) {
        let entries = self.grid.set().patches();
        let (mut patches, mut signals, mut n_bad, mut first) = (Vec::new(), Vec::new(), 0, None);
        for (index, (entry, answer)) in entries.iter().zip(answers).enumerate() {
            let mut patch = self.grid.head(entry);
            match answer {
                None => continue,
                Some(Err(error)) => {
                    n_bad += 1;
                    patch.insert("error".to_owned(), json!(Error::full_message(&error, self.request.face)));
                }
                Some(Ok(answer)) => {
                    n_bad += usize::from(!answer.converged);
                    first.get_or_insert(answer.provenance);
                    patch.extend(answer.documents);
                    patch.extend(["Z_linear", "skewness"].map(|key| (key.to_owned(), Value::Null)));
                    if let (Some(z), Some(p0)) = (answer.z, answer.p0) {
                        signals.push(LocalSignal { entry: index, z, p0, yields: answer.yields });
                    }
                }
            }
            patches.push(Value::Object(patch));
        }
        let found = Search {
            n_patches: entries.len(),
            strongest: None,
            field: None,
            upcrossings: None,
            toys: None,
            curve: Vec::new(),
            correlation: None,
            complete: patches.len() == entries.len(),
            converged: n_bad == 0,
            warnings: failed_patches(n_bad, patches.len()).into_iter().collect(),
            provenance: self.grid.with_patchset(first.as_ref()),
            patches,
        };
        (found, signals)
    }

    /// Adds what is global to `found`, all of whose patches were analysed.
    fn add_global(
        &self,
        found: &mut Search,
        background: &Background,
        signals: &[LocalSignal],
        row: Option<&Row>,
    ) -> Result<(), Error> {
        let yields: Vec<Vec<f64>> = signals.iter().map(|signal| signal.yields.clone()).collect();
        let field = SignificanceField::new(&mut background.scores()?, &yields, &background.analysis.data().main);
        found.warnings.extend(indistinct(signals.len() - field.len()));
        let signals: Vec<&LocalSignal> = field.signals.iter().map(|&k| &signals[k]).collect();
        let Some(strongest) = signals.iter().max_by(|a, b| a.z.total_cmp(&b.z)) else { return Ok(()) };
        let patch = self.grid.set().patches()[strongest.entry].name.clone();
        found.strongest = Some(StrongestSignal { patch, z: strongest.z, p0: strongest.p0 });
        for (k, signal) in signals.iter().enumerate() {
            if let Some(patch) = found.patches[signal.entry].as_object_mut() {
                patch.insert("Z_linear".to_owned(), json!(field.linear[k]));
                patch.insert("skewness".to_owned(), json!(field.skewness[k]));
            }
        }
        let (largest, seed) = (strongest.z, background.analysis.seed());
        let mut global = Global { field: &field, signals: &signals, maxima: None, largest, expected: None, seed };
        found.upcrossings = row.map(|row| global.upcrossings(row));
        global.expected = found.upcrossings.as_ref().map(|upcrossings| upcrossings.expected);
        if self.search.n_toys > 0 {
            let Some((maxima, n_failed)) = self.toy_maxima(background, &signals)? else {
                found.complete = false;
                return Ok(());
            };
            global.maxima = Some(maxima);
            found.toys = Some(SearchToys { n_toys: self.search.n_toys, n_failed, global: global.by_toys(largest) });
        }
        self.add_field(found, &global);
        found.warnings.extend(global_warnings(found, &field));
        Ok(())
    }

    /// Adds the global p-values by the field of local significances.
    fn add_field(&self, found: &mut Search, global: &Global<'_>) {
        let quiet = WithoutProgress(self.execution.monitor);
        let execution = ExecutionContext::new(self.execution.threads, &quiet);
        let by_field = |z: f64| global.field.global_p(z, self.search.n_samples, global.seed, execution);
        // Every signal without an excess has a significance of 0, and so nothing is below it.
        let everywhere = GlobalPValue { p_value: 1.0, error: None, significance: None };
        found.field = if global.largest > 0.0 { by_field(global.largest) } else { Some(everywhere) };
        let point = |z: f64| {
            Some(TrialsPoint {
                z,
                p_local: upper_tail(z),
                field: by_field(z)?,
                upcrossings: global.expected.map(|expected| upcrossing_p(z, LEVEL, expected)),
                toys: global.by_toys(z),
            })
        };
        found.curve = CURVE.into_iter().map_while(point).collect();
        found.complete &= found.field.is_some() && found.curve.len() == CURVE.len();
        if self.search.correlations {
            let n = global.field.len();
            let row = |a: usize| (0..n).map(|b| global.field.correlation(a, b)).collect();
            found.correlation = Some((0..n).map(row).collect());
        }
    }

    /// Returns the largest local significance of each toy that did not fail, and the number of
    /// those that did; `None` if the run is cancelled.
    fn toy_maxima(&self, background: &Background, signals: &[&LocalSignal]) -> Result<Option<(Vec<f64>, u64)>, Error> {
        let sampler = background.sampler()?;
        let mut maxima: Vec<Option<f64>> = vec![Some(f64::NEG_INFINITY); self.search.n_toys as usize];
        for (done, signal) in signals.iter().enumerate() {
            let entry = &self.grid.set().patches()[signal.entry];
            let Some(found) = self.toys_under(entry, background, &sampler)? else { return Ok(None) };
            for (max, z) in maxima.iter_mut().zip(found) {
                *max = max.zip(z).map(|(max, z)| max.max(z));
            }
            self.execution.monitor.progress(done + 1, signals.len());
        }
        let n_failed = maxima.iter().filter(|max| max.is_none()).count() as u64;
        Ok(Some((maxima.into_iter().flatten().collect(), n_failed)))
    }

    /// Returns the local significances of all toys under the signal of `entry`; `None` if the run
    /// is cancelled.
    fn toys_under(
        &self,
        entry: &PatchEntry,
        background: &Background,
        sampler: &ToySampler,
    ) -> Result<Option<Vec<Option<f64>>>, Error> {
        let analysis = self.analysis(entry)?;
        let poi = analysis.varied(None, Procedure::Significance)?;
        let names = &analysis.model().parameters.names;
        let shared = analysis.model().constraint_terms().map(|(i, _)| background.aux.get(&names[i]).copied());
        let signal = SearchSignal {
            model: analysis.model(),
            options: analysis.options(),
            poi,
            background: background.at(&analysis, poi),
            shared: shared.collect(),
        };
        let quiet = WithoutProgress(self.execution.monitor);
        let execution = ExecutionContext::new(self.execution.threads, &quiet);
        let (likelihood, seed) = (analysis.likelihood()?, analysis.seed());
        let found = signal.significances(&likelihood, sampler, seed, self.search.n_toys, execution);
        Ok(found.map_err(ToysError::from)?)
    }
}

impl Global<'_> {
    /// Returns the upcrossings along `row`.
    fn upcrossings(&self, row: &Row) -> Upcrossings {
        let place = |&index: &usize| self.signals.iter().position(|signal| signal.entry == index);
        let order: Vec<usize> = row.order.iter().filter_map(place).collect();
        let along: Vec<f64> = order.iter().map(|&k| self.signals[k].z).collect();
        let expected = self.field.expected_upcrossings(&order, LEVEL);
        let global = (self.largest >= LEVEL).then(|| upcrossing_p(self.largest, LEVEL, expected));
        let (label, observed) = (row.label.clone(), upcrossings(&along, LEVEL));
        Upcrossings { label, level: LEVEL, expected, observed, global }
    }

    /// Returns the global p-value of `z` by toys, if there are any.
    fn by_toys(&self, z: f64) -> Option<GlobalPValue> {
        self.maxima.as_ref().filter(|maxima| !maxima.is_empty()).map(|maxima| toy_p(maxima, z))
    }
}

/// Returns a warning about `n` signals that are not in the field.
fn indistinct(n: usize) -> Option<String> {
    (n > 0).then(|| format!("{n} signals cannot be told from the background, and are not part of the global p-value"))
}

/// Returns what to know of the global p-values of `found`.
fn global_warnings(found: &Search, field: &SignificanceField) -> Vec<String> {
    let mut warnings = Vec::new();
    let n_skewed = field.skewness.iter().filter(|skewness| skewness.abs() > SKEWED).count();
    let largest = field.skewness.iter().fold(0.0_f64, |largest, s| largest.max(s.abs()));
    if n_skewed > 0 {
        warnings.push(format!(
            "the counts are small: the scores of {n_skewed} of {} signals are skewed by up to {largest:.2}, and the field of local significances takes them for normal; toys do not",
            field.len()
        ));
    }
    if let Some(toys) = &found.toys {
        if toys.n_failed > 0 {
            warnings.push(format!(
                "{} of {} toys have fits that did not converge; they are not counted",
                toys.n_failed, toys.n_toys
            ));
        }
        if let (Some(by_toys), Some(by_field)) = (toys.global, found.field) {
            let error = by_toys.error.unwrap_or_default().hypot(by_field.error.unwrap_or_default());
            if (by_toys.p_value - by_field.p_value).abs() > DIFFERENT * error && error > 0.0 {
                warnings.push(format!(
                    "the global p-value is {:.3} by toys and {:.3} by the field of local significances, which takes counts for large",
                    by_toys.p_value, by_field.p_value
                ));
            }
        }
    }
    warnings
}
