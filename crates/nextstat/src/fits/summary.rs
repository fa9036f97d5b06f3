//! Counts, means, standard deviations and correlations over the fits of many data sets.

use crate::Document;
use crate::document::about;
use crate::fit_counts::FitCounts;
use ns_core::Model;
use ns_inference::FitResult;
use ns_inference::replicas::ReplicaMoments;
use ns_translate::toys::{ToyFitStatus, ToyRunIdentity};
use serde::Serialize;
use serde_json::{Value, json};

/// A parameter over the data sets whose fits converged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParameterSummary {
    /// Its name.
    pub parameter: String,
    /// The best fit to the nominal data; `None` if it did not converge.
    pub bestfit: Option<f64>,
    /// The uncertainty of that fit, from the Hessian.
    pub uncertainty: Option<f64>,
    /// The mean; `None` if no fit converged.
    pub mean: Option<f64>,
    /// The standard deviation; `None` if fewer than two fits converged.
    pub standard_deviation: Option<f64>,
}

/// Counts and moments of the fits of many data sets, with their diagnosis.
#[derive(Debug, Clone)]
pub struct FitsSummary {
    measurement: String,
    /// The digest of the data sets.
    data_sha256: Value,
    pub(super) counts: FitCounts,
    moments: ReplicaMoments,
    /// The names of the written parameters (W).
    names: Vec<String>,
    /// The place of the parameter of interest among them.
    poi: Option<usize>,
    nominal: NominalFit,
}

/// The fit to the nominal data, with the written parameters (W).
#[derive(Debug, Clone)]
struct NominalFit {
    converged: bool,
    twice_nll: f64,
    bestfit: Vec<f64>,
    uncertainties: Vec<Option<f64>>,
    warnings: Vec<String>,
}

impl FitsSummary {
    /// Starts the summary of the run `identity`, of which the parameters `written` (W) are kept.
    pub(super) fn new(model: &Model, nominal: &FitResult, written: &[usize], identity: &ToyRunIdentity) -> Self {
        let poi = model.poi().and_then(|poi| written.iter().position(|&i| i == poi));
        let nominal = NominalFit {
            converged: nominal.converged,
            twice_nll: nominal.twice_nll,
            bestfit: written.iter().map(|&i| nominal.bestfit[i]).collect(),
            uncertainties: written.iter().map(|&i| nominal.uncertainties[i]).collect(),
            warnings: nominal.warnings.clone(),
        };
        Self {
            measurement: model.measurement.clone(),
            data_sha256: identity.settings.get("data_sha256").cloned().unwrap_or_default(),
            counts: FitCounts::new(identity.n_toys),
            moments: ReplicaMoments::new(written.len()),
            names: written.iter().map(|&i| model.parameters.names[i].clone()).collect(),
            poi,
            nominal,
        }
    }

    /// Counts a fit with these values of the written parameters (W).
    pub(super) fn add(&mut self, status: ToyFitStatus, bestfit: &[f64]) {
        self.counts.add(status);
        if status == ToyFitStatus::Converged {
            self.moments.add(bestfit);
        }
    }

    /// Returns the number of data sets that were fitted.
    #[must_use]
    pub fn n_done(&self) -> u64 {
        self.counts.n_done()
    }

    /// Returns the number of data sets whose fit converged.
    #[must_use]
    pub fn n_converged(&self) -> u64 {
        self.counts.n_converged()
    }

    /// Returns the number of data sets whose fit did not converge.
    #[must_use]
    pub fn n_failed(&self) -> u64 {
        self.counts.n_failed()
    }

    /// Returns `true` if all data sets were fitted.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.counts.is_complete()
    }

    /// Returns `true` if the monitor cancelled the run.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.counts.is_interrupted()
    }

    /// Returns `true` if every fit converged, that to the nominal data included.
    #[must_use]
    pub fn converged(&self) -> bool {
        self.nominal.converged && self.n_failed() == 0
    }

    /// Returns the means, covariances and correlations of the written parameters over the fits that
    /// converged.
    #[must_use]
    pub fn moments(&self) -> &ReplicaMoments {
        &self.moments
    }

    /// Returns the place of the parameter of interest in [`Self::parameters`].
    #[must_use]
    pub fn poi(&self) -> Option<usize> {
        self.poi
    }

    /// Returns the written parameters.
    #[must_use]
    pub fn parameters(&self) -> Vec<ParameterSummary> {
        let is_known = |_: &f64| self.nominal.converged;
        let one = |(i, name): (usize, &String)| ParameterSummary {
            parameter: name.clone(),
            bestfit: Some(self.nominal.bestfit[i]).filter(is_known),
            uncertainty: self.nominal.uncertainties[i].filter(is_known),
            mean: (self.n_converged() > 0).then(|| self.moments.mean()[i]),
            standard_deviation: self.moments.standard_deviation(i),
        };
        self.names.iter().enumerate().map(one).collect()
    }

    /// Returns the correlations of the written parameters (W × W); `None` where one of the two does
    /// not vary.
    #[must_use]
    pub fn correlation(&self) -> Vec<Vec<Option<f64>>> {
        let n = self.names.len();
        (0..n).map(|i| (0..n).map(|j| self.moments.correlation(i, j)).collect()).collect()
    }

    /// Returns what a reader should know before using the fits.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let n_done = self.n_done();
        let interrupted = self.counts.interrupted("data sets");
        let failed = (self.n_failed() > 0)
            .then(|| format!("the fits of {} of {n_done} data sets did not converge", self.n_failed()));
        let nominal = (!self.nominal.converged).then(|| {
            let why = self.nominal.warnings.join("; ");
            format!("the fit to the nominal data, at whose minimum fits should start, did not converge: {why}")
        });
        let of_nominal = self.nominal.warnings.iter().map(|warning| format!("nominal data: {warning}"));
        let of_nominal = of_nominal.filter(|_| self.nominal.converged);
        [interrupted, failed, nominal].into_iter().flatten().chain(of_nominal).collect()
    }

    /// Returns the document; `data_sets` is empty.
    #[must_use]
    pub fn document(&self, provenance: Value) -> Value {
        about(Self::SCHEMA, &json!(self.measurement), provenance, self.document_fields())
    }

    pub(super) fn document_fields(&self) -> Value {
        let parameters = self.parameters();
        let poi = self.poi.map(|index| {
            let ParameterSummary { parameter, bestfit, uncertainty, .. } = &parameters[index];
            json!({"name": parameter, "index": index, "bestfit": bestfit, "uncertainty": uncertainty})
        });
        let twice_nll = Some(self.nominal.twice_nll).filter(|_| self.nominal.converged);
        json!({
            "data_sha256": self.data_sha256,
            "par_names": self.names,
            "poi": poi,
            "nominal": {"converged": self.nominal.converged, "twice_nll": twice_nll},
            "complete": self.is_complete(),
            "converged": self.converged(),
            "n_data_sets": self.n_done(),
            "n_data_sets_wanted": self.counts.n_wanted,
            "n_failed": self.n_failed(),
            "failures": self.counts.failures(),
            "parameters": parameters,
            "correlation": self.correlation(),
            "warnings": self.warnings(),
            "data_sets": [],
        })
    }
}
