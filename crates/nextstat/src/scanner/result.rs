//! What a scan has found, signal by signal.

use super::signals::SignalPoints;
use super::{Background, Pilots, SignalScanRequest, SignalSlot};
use crate::document::{about, to_document};
use ns_inference::signal_scan::{BackgroundMinima, SignalResult};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The largest number of signals that a warning names.
const NAMED: usize = 5;

/// The results of a scan. Lists have an entry for each signal (N), in their order; what a signal
/// does not have is NaN, and null in the document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SignalScan {
    /// The number of signals (N).
    pub n_signals: usize,
    /// The name of the signals as a sample.
    pub sample: String,
    /// The parameter that scales the signals.
    pub poi: String,
    /// The luminosity that scales them, too, if one does.
    pub lumi: Option<String>,
    /// Normalisation uncertainties of all signals: factors at -1 and +1 standard deviation.
    pub normsys: BTreeMap<String, [f64; 2]>,
    /// Its tested value.
    pub mu: f64,
    /// The test statistic.
    pub test_stat: &'static str,
    /// CLs of the data.
    #[serde(rename = "CLs_obs")]
    pub cls_obs: Vec<f64>,
    /// CLs expected if the background fluctuates by -2, -1, 0, +1, +2 standard deviations (N × 5).
    #[serde(rename = "CLs_exp")]
    pub cls_exp: Vec<[f64; 5]>,
    /// The test statistic of the data.
    pub q: Vec<f64>,
    /// The test statistic of the Asimov data set.
    pub q_asimov: Vec<f64>,
    /// The best fit of the strength.
    pub bestfit: Vec<f64>,
    /// -2 ln L at the tested strength, without the normalisations ln(σ√2π) of the statistical
    /// uncertainties of signals, so that different signals can be compared.
    pub twice_nll: Vec<f64>,
    /// The same at the best fit.
    pub twice_nll_best: Vec<f64>,
    /// The same without signal.
    pub twice_nll_background: f64,
    /// The upper limits on the strength, if they were wanted.
    pub limits: Option<SignalScanLimits>,
    /// Which signals have converged fits.
    pub signal_converged: Vec<bool>,
    /// Whether the lowest minima were searched for with every signal.
    pub explored: bool,
    /// Whether the run was not cancelled: then signals may have no numbers, or only those of fits
    /// that started at the minima of the background.
    pub complete: bool,
    /// Whether all fits of all signals with events converged.
    pub converged: bool,
    /// What to know before the numbers are used.
    pub warnings: Vec<String>,
    #[serde(skip)]
    measurement: Value,
    #[serde(skip)]
    provenance: Value,
}

/// Upper limits on the strengths of signals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SignalScanLimits {
    /// CLs at the limits.
    pub level: f64,
    /// The observed limits (N).
    pub observed: Vec<f64>,
    /// The limits expected if the background fluctuates by -2, -1, 0, +1, +2 standard deviations
    /// (N × 5).
    pub expected: Vec<[f64; 5]>,
}

/// What all signals of a scan have in common.
pub(super) struct ScanHead<'a> {
    pub(super) mu: f64,
    pub(super) request: &'a SignalScanRequest,
    pub(super) background: &'a Background,
    pub(super) minima: &'a BackgroundMinima,
    pub(super) slot: &'a SignalSlot,
    pub(super) pilots: Option<Pilots>,
    pub(super) complete: bool,
}

impl SignalScan {
    /// Returns the results of `points`; `found` has `None` for signals that were not tested because
    /// the run was cancelled.
    pub(super) fn new(head: &ScanHead<'_>, points: &SignalPoints, found: &[Option<SignalResult>]) -> Self {
        let analysis = &head.background.analysis;
        let names = &analysis.model().parameters.names;
        let usable = |i: usize| found[i].as_ref().filter(|_| points.has_events(i));
        let each = |value: &dyn Fn(&SignalResult) -> Option<f64>| -> Vec<f64> {
            (0..points.n).map(|i| usable(i).and_then(value).unwrap_or(f64::NAN)).collect()
        };
        let bands = |value: &dyn Fn(&SignalResult) -> Option<[Option<f64>; 5]>| -> Vec<[f64; 5]> {
            let band = |i: usize| usable(i).and_then(value).unwrap_or_default();
            (0..points.n).map(|i| band(i).map(|entry| entry.unwrap_or(f64::NAN))).collect()
        };
        let limits = head.request.limit_level.map(|level| SignalScanLimits {
            level,
            observed: each(&|found| found.limit.as_ref()?.observed),
            expected: bands(&|found| Some(found.limit.as_ref()?.expected)),
        });
        let has_converged =
            |found: &SignalResult| found.test.converged && found.limit.as_ref().is_none_or(|limit| limit.converged);
        let signal_converged: Vec<bool> = (0..points.n).map(|i| usable(i).is_some_and(has_converged)).collect();
        let has_result = |i: &usize| points.has_events(*i);
        Self {
            n_signals: points.n,
            sample: head.slot.sample.clone(),
            poi: names[head.background.poi].clone(),
            lumi: head.slot.lumi.clone(),
            normsys: head.slot.normsys.iter().cloned().collect(),
            mu: head.mu,
            test_stat: head.request.statistic.name(),
            cls_obs: each(&|found| found.test.cls_obs),
            cls_exp: bands(&|found| found.test.cls_exp.map(|band| band.map(Some))),
            q: each(&|found| found.test.q),
            q_asimov: each(&|found| found.test.q_asimov),
            bestfit: each(&|found| found.test.poi.bestfit),
            twice_nll: each(&|found| found.test.q.map(|_| found.twice_nll)),
            twice_nll_best: each(&|found| found.test.poi.bestfit.map(|_| found.twice_nll_best)),
            twice_nll_background: head.background.twice_nll(head.minima),
            limits,
            explored: head.request.explore,
            complete: head.complete,
            converged: head.complete && (0..points.n).filter(has_result).all(|i| signal_converged[i]),
            signal_converged,
            warnings: warnings(head, points, found),
            measurement: analysis.model().measurement.clone().into(),
            provenance: to_document(&analysis.provenance()),
        }
    }

    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> Value {
        about("signal-scan", &self.measurement, self.provenance.clone(), to_document(self))
    }

    /// Returns how it was computed.
    #[must_use]
    pub fn provenance(&self) -> &Value {
        &self.provenance
    }

    /// Returns the warnings in one line, if there are any.
    #[must_use]
    pub fn alarm(&self) -> Option<String> {
        (!self.warnings.is_empty()).then(|| self.warnings.join("; "))
    }
}

/// Returns what to know of the signals: each sentence once, with how many signals it is about.
fn warnings(head: &ScanHead<'_>, points: &SignalPoints, found: &[Option<SignalResult>]) -> Vec<String> {
    let mut warnings = Vec::new();
    let empty: Vec<usize> = (0..points.n).filter(|&i| !points.has_events(i)).collect();
    if !empty.is_empty() {
        let verb = if empty.len() == 1 { "has" } else { "have" };
        warnings.push(format!("{} {verb} no events, and so no result", numbered(&empty)));
    }
    let dropped = points.with_uncertainty_alone();
    if !dropped.is_empty() {
        warnings.push(format!("{}: uncertainties of bins without events are left out", numbered(&dropped)));
    }
    if let Some(Pilots { n_missed, n }) = head.pilots.filter(|pilots| pilots.n_missed > 0) {
        warnings.push(format!(
            "{n_missed} of {n} signals that were tested with the full search, too, have lower minima than the fits that start at those of the background, and the results of that search; others may have such minima"
        ));
    }
    let mut said: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, found) in found.iter().enumerate().filter(|(i, _)| points.has_events(*i)) {
        let Some(found) = found else { continue };
        let of_limit = found.limit.iter().flat_map(|limit| &limit.warnings);
        for warning in found.test.warnings.iter().chain(of_limit) {
            let signals = said.entry(warning).or_default();
            if signals.last() != Some(&i) {
                signals.push(i);
            }
        }
    }
    warnings.extend(said.into_iter().map(|(warning, signals)| format!("{}: {warning}", numbered(&signals))));
    warnings
}

/// Returns how many signals, and which.
fn numbered(signals: &[usize]) -> String {
    let named: Vec<String> = signals.iter().take(NAMED).map(ToString::to_string).collect();
    let more = if signals.len() > NAMED { ", …" } else { "" };
    let plural = if signals.len() == 1 { "" } else { "s" };
    format!("{} signal{plural} (index {}{more})", signals.len(), named.join(", "))
}
