//! Counts, means, standard deviations and correlations over the fits of many data sets.

use super::{FitsFileError, KIND};
use crate::Document;
use crate::document::about;
use crate::fit_counts::FitCounts;
use ns_inference::FitResult;
use ns_inference::replicas::ReplicaMoments;
use ns_translate::toys::{DataSetRecord, DataSetRecordFormat, MergedToys, ToyFitStatus, ToyRunIdentity};
use serde::{Deserialize, Serialize};
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

/// The fit to the nominal data, with the written parameters (W), as the document beside a file has
/// it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NominalFit {
    converged: bool,
    twice_nll: Option<f64>,
    bestfit: Vec<Option<f64>>,
    uncertainties: Vec<Option<f64>>,
    warnings: Vec<String>,
}

impl NominalFit {
    /// Keeps the parameters `written` (W) of a fit.
    pub(super) fn new(fit: &FitResult, written: &[usize]) -> Self {
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        Self {
            converged: fit.converged,
            twice_nll: finite(fit.twice_nll),
            bestfit: written.iter().map(|&i| finite(fit.bestfit[i])).collect(),
            uncertainties: written.iter().map(|&i| fit.uncertainties[i]).collect(),
            warnings: fit.warnings.clone(),
        }
    }
}

impl FitsSummary {
    /// Starts the summary of `n_wanted` fits of the run `identity`.
    pub(super) fn new(identity: &ToyRunIdentity, nominal: NominalFit, n_wanted: u64) -> Self {
        let setting = |key: &str| identity.settings.get(key);
        let text = |key: &str| setting(key).and_then(Value::as_str).map(str::to_owned);
        let names = setting("parameters").and_then(Value::as_array).into_iter().flatten();
        let names: Vec<String> = names.filter_map(|name| name.as_str().map(str::to_owned)).collect();
        Self {
            measurement: text("measurement").unwrap_or_default(),
            data_sha256: setting("data_sha256").cloned().unwrap_or_default(),
            counts: FitCounts::new(n_wanted),
            moments: ReplicaMoments::new(names.len()),
            poi: text("poi").and_then(|poi| names.iter().position(|name| *name == poi)),
            names,
            nominal,
        }
    }

    /// Reads the fits of the joined files of a run, passes them to `receive`, and returns their
    /// summary.
    ///
    /// # Errors
    /// Files of toys, a document without the fit to the nominal data or that does not describe the
    /// file, or the file system.
    pub fn of_files(merged: &MergedToys, mut receive: impl FnMut(DataSetRecord)) -> Result<Self, FitsFileError> {
        let identity = &merged.identity;
        if identity.kind != KIND {
            return Err(FitsFileError::Toys);
        }
        let nominal = identity.settings.get("nominal").cloned().unwrap_or_default();
        let nominal: NominalFit = serde_json::from_value(nominal).map_err(|_| FitsFileError::NoNominal)?;
        let mut summary = Self::new(identity, nominal, identity.n_toys);
        let n = summary.names.len();
        let lists = [summary.nominal.bestfit.len(), summary.nominal.uncertainties.len()];
        let format = DataSetRecordFormat::of(identity);
        if let Some(&n_values) = lists.iter().find(|length| **length != n) {
            return Err(FitsFileError::NominalLength { n_parameters: n, n_values });
        }
        if format.n_parameters != n || format.layout() != identity.layout {
            return Err(FitsFileError::Columns { n_parameters: n });
        }
        merged.read(|bytes| {
            let record = format.decode(bytes);
            summary.add(&record);
            receive(record);
            true
        })?;
        Ok(summary)
    }

    /// Returns the name of the measurement.
    #[must_use]
    pub fn measurement(&self) -> &str {
        &self.measurement
    }

    /// Counts a fit that a file has.
    pub(super) fn add(&mut self, record: &DataSetRecord) {
        self.count(record.status, &record.bestfit);
    }

    /// Counts a fit with these values of the written parameters (W).
    pub(super) fn count(&mut self, status: ToyFitStatus, bestfit: &[f64]) {
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
            bestfit: self.nominal.bestfit[i].filter(is_known),
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

    /// Returns the fields of the document; `data_sets` is empty.
    #[must_use]
    pub fn document_fields(&self) -> Value {
        let parameters = self.parameters();
        let poi = self.poi.map(|index| {
            let ParameterSummary { parameter, bestfit, uncertainty, .. } = &parameters[index];
            json!({"name": parameter, "index": index, "bestfit": bestfit, "uncertainty": uncertainty})
        });
        let twice_nll = self.nominal.twice_nll.filter(|_| self.nominal.converged);
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
