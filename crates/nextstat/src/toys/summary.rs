//! Counts, mean and width of an ensemble of toys.

use super::FIXED_AUX;
use crate::Document;
use crate::document::about;
use crate::fit_counts::FitCounts;
use ns_inference::replicas::ReplicaMoments;
use ns_translate::toys::{ToyFitRecord, ToyFitStatus, ToyRunIdentity};
use serde_json::{Map, Value, json};

/// Returns what a reader should know before using `n_toys` fits of toys.
#[must_use]
pub fn warnings(n_toys: u64, n_failed: u64, is_aux_fixed: bool) -> Vec<String> {
    let failed = (n_failed > 0).then(|| format!("the fits of {n_failed} of {n_toys} toys did not converge"));
    let aux = is_aux_fixed.then(|| FIXED_AUX.to_owned());
    failed.into_iter().chain(aux).collect()
}

/// Counts, mean and width of an ensemble of toys, with its diagnosis.
#[derive(Debug, Clone)]
pub struct ToysSummary {
    /// What the ensemble is.
    settings: Map<String, Value>,
    pub(super) counts: FitCounts,
    /// The parameter of interest, if it is among the written ones: its name and its place there.
    poi: Option<(String, usize)>,
    /// Its best-fit values in the toys whose fits converged.
    moments: ReplicaMoments,
}

impl ToysSummary {
    /// Starts the summary of a run of which `n_wanted` toys are wanted.
    #[must_use]
    pub fn new(identity: &ToyRunIdentity, n_wanted: u64) -> Self {
        let mut settings = identity.settings.clone();
        settings.insert("n_toys_wanted".to_owned(), json!(identity.n_toys));
        settings.insert("devices".to_owned(), json!(identity.devices));
        let poi = settings["poi"].as_str().and_then(|name| {
            let written = settings["parameters"].as_array()?;
            Some((name.to_owned(), written.iter().position(|parameter| parameter == name)?))
        });
        Self { settings, counts: FitCounts::new(n_wanted), poi, moments: ReplicaMoments::new(1) }
    }

    /// Counts a toy.
    pub fn add(&mut self, record: &ToyFitRecord) {
        self.count(record.status, self.poi_place().map(|place| record.parameters[place]));
    }

    /// Counts a toy with this value of the parameter of interest.
    pub(super) fn count(&mut self, status: ToyFitStatus, poi: Option<f64>) {
        self.counts.add(status);
        if let (ToyFitStatus::Converged, Some(value)) = (status, poi) {
            self.moments.add(&[value]);
        }
    }

    /// Returns the place of the parameter of interest among the written parameters.
    pub(super) fn poi_place(&self) -> Option<usize> {
        self.poi.as_ref().map(|(_, place)| *place)
    }

    /// Returns the number of toys.
    #[must_use]
    pub fn n_toys(&self) -> u64 {
        self.counts.n_done()
    }

    /// Returns the number of toys whose fit converged.
    #[must_use]
    pub fn n_converged(&self) -> u64 {
        self.counts.n_converged()
    }

    /// Returns the number of toys whose fit did not converge.
    #[must_use]
    pub fn n_failed(&self) -> u64 {
        self.counts.n_failed()
    }

    /// Returns `true` if all toys that were wanted are there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.counts.is_complete()
    }

    /// Returns `true` if the monitor cancelled the run.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.counts.is_interrupted()
    }

    /// Returns name, mean and width of the parameter of interest over the converged fits; `None` if
    /// it was not written or fewer than two fits converged.
    #[must_use]
    pub fn poi(&self) -> Option<(&str, f64, f64)> {
        let ((name, _), width) = self.poi.as_ref().zip(self.moments.standard_deviation(0))?;
        Some((name, self.moments.mean()[0], width))
    }

    /// Returns the parameter of interest of the document; `null` if the model has none.
    fn poi_field(&self) -> Value {
        let name = &self.settings["poi"];
        if name.is_null() {
            return Value::Null;
        }
        let found = self.poi();
        json!({
            "name": name,
            "index": self.poi_place(),
            "mean": found.map(|(_, mean, _)| mean),
            "standard_deviation": found.map(|(_, _, width)| width),
        })
    }

    /// Returns what a reader should know before using the toys.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let interrupted = self.counts.interrupted("toys");
        let others = warnings(self.n_toys(), self.n_failed(), self.settings["aux"] == "fixed");
        interrupted.into_iter().chain(others).collect()
    }

    /// Returns the document; `toys` is empty. `provenance` is `null` for merged files, which have
    /// none.
    #[must_use]
    pub fn document(&self, provenance: Value) -> Value {
        about(Self::SCHEMA, &self.settings["measurement"], provenance, self.document_fields())
    }

    pub(super) fn document_fields(&self) -> Value {
        let mut fields = self.settings.clone();
        // They are in the head.
        fields.retain(|key, _| !matches!(key.as_str(), "measurement" | "nextstat_version"));
        // `par_names` of the document are the written ones.
        if let (Some(written), Some(all)) = (fields.remove("parameters"), fields.remove("par_names")) {
            fields.insert("par_names".to_owned(), written);
            let values = fields["thrown_at"]["parameters"].take();
            let (rule, mu) = (&fields["thrown_at"]["rule"], &fields["thrown_at"]["mu"]);
            let thrown_at = json!({"rule": rule, "mu": mu, "par_names": all, "values": values});
            fields.insert("thrown_at".to_owned(), thrown_at);
        }
        fields.extend([
            ("complete".to_owned(), json!(self.is_complete())),
            ("converged".to_owned(), json!(self.n_failed() == 0)),
            ("n_toys".to_owned(), json!(self.n_toys())),
            ("n_failed".to_owned(), json!(self.n_failed())),
            ("failures".to_owned(), self.counts.failures()),
            ("poi".to_owned(), self.poi_field()),
            ("warnings".to_owned(), json!(self.warnings())),
            ("toys".to_owned(), json!([])),
        ]);
        Value::Object(fields)
    }
}
