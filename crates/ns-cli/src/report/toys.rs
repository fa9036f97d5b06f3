//! What `toys` says: the ensemble as a document, and a few words about it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};

use ns_translate::python_json;
use ns_translate::toys::ToyRunIdentity;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::number::significant;
use super::stream::Stream;
use super::talk::{Paint, harmless};
use crate::args::OutputArgs;
use crate::command::toys::record::{STATUS, WrittenFit};
use crate::error::CliError;

/// What is said of toys with fixed auxiliary data.
pub(crate) const FIXED_AUX: &str = "auxiliary data were held as observed (`--aux fixed`): such toys fluctuate too little, and p-values made of them are wrong";

/// Counts toys as they come.
#[derive(Debug)]
pub(crate) struct Tally {
    n_toys: u64,
    by_status: [u64; STATUS.len()],
    /// The parameter of interest, if it is written: its name, and its place among those that are.
    poi: Option<(String, usize)>,
    /// Its mean over the converged fits so far.
    mean: f64,
    /// The sum of its squared deviations from that mean.
    squares: f64,
    is_fixed_aux: bool,
}

impl Tally {
    pub(crate) fn new(identity: &ToyRunIdentity) -> Self {
        let poi = identity.settings["poi"].as_str().and_then(|name| {
            let written = identity.settings["parameters"].as_array()?;
            Some((name.to_owned(), written.iter().position(|parameter| parameter == name)?))
        });
        let is_fixed_aux = identity.settings["aux"] == "fixed";
        Self { n_toys: 0, by_status: [0; STATUS.len()], poi, mean: 0.0, squares: 0.0, is_fixed_aux }
    }

    pub(crate) fn add(&mut self, fit: &WrittenFit) {
        self.n_toys += 1;
        self.by_status[usize::from(fit.status)] += 1;
        if let (0, Some((_, at))) = (fit.status, &self.poi) {
            // Welford, Technometrics 4 (1962) 419
            let off = fit.parameters[*at] - self.mean;
            self.mean += off / self.by_status[0] as f64;
            self.squares += off * (fit.parameters[*at] - self.mean);
        }
    }

    pub(crate) fn n_toys(&self) -> u64 {
        self.n_toys
    }

    pub(crate) fn n_failed(&self) -> u64 {
        self.n_toys - self.by_status[0]
    }

    fn width(&self) -> f64 {
        (self.squares / (self.by_status[0] as f64 - 1.0)).sqrt()
    }

    fn warnings(&self) -> Vec<String> {
        let aux = self.is_fixed_aux.then(|| FIXED_AUX.to_owned());
        let failed = self.n_failed();
        let failed = (failed > 0).then(|| format!("the fits of {failed} of {} toys did not converge", self.n_toys));
        failed.into_iter().chain(aux).collect()
    }

    fn interruption(&self, wanted: u64, left: Option<&str>) -> Option<String> {
        let where_to = left.map_or(String::new(), |part| format!("; they are in `{part}`, and `--resume` continues"));
        (self.n_toys < wanted).then(|| format!("interrupted after {} of {wanted} toys{where_to}", self.n_toys))
    }

    /// What a log must say, if anything.
    pub(crate) fn alarm(&self, wanted: u64, left: Option<&str>) -> Option<String> {
        let said: Vec<String> = self.interruption(wanted, left).into_iter().chain(self.warnings()).collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// A few lines for people.
    pub(crate) fn summary(&self, wanted: u64, left: Option<&str>, paint: Paint) -> String {
        let mut text = format!("  {} toys, {} converged\n", self.n_toys, self.by_status[0]);
        if let Some((name, _)) = self.poi.as_ref().filter(|_| self.by_status[0] > 1) {
            let (mean, width) = (self.mean, self.width());
            let error = width / (self.by_status[0] as f64).sqrt();
            let _ = writeln!(
                text,
                "  {}: mean {} ± {}, width {}",
                harmless(name),
                significant(mean, 5),
                significant(error, 2),
                significant(width, 4)
            );
        }
        if let Some(alarm) = self.alarm(wanted, left) {
            let _ = writeln!(text, "{} {}", paint.alarm("warning:"), harmless(&alarm));
        }
        text
    }

    fn totals(&self, wanted: u64) -> Value {
        let failed = STATUS.iter().zip(self.by_status).skip(1).filter(|(_, n)| *n > 0);
        let failures: Map<String, Value> = failed.map(|(word, n)| ((*word).to_owned(), json!(n))).collect();
        let has_poi = self.poi.is_some() && self.by_status[0] > 1;
        json!({
            "complete": self.n_toys >= wanted,
            "n_done": self.n_toys,
            "n_failed": self.n_failed(),
            "failures": failures,
            "poi_mean": has_poi.then_some(self.mean),
            "poi_width": has_poi.then(|| self.width()),
            "warnings": self.interruption(wanted, None).into_iter().chain(self.warnings()).collect::<Vec<_>>(),
        })
    }
}

/// An ensemble as a document. Toys come one by one and may be too many for memory, but keys that
/// stand before them are known at the end only. So toys are kept in a temporary file until then.
pub(crate) struct Document {
    stream: Stream,
    fields: Map<String, Value>,
    toys: BufWriter<File>,
    has_toys: bool,
}

impl Document {
    /// Opens the output, and keeps what the ensemble is.
    pub(crate) fn begin(identity: &ToyRunIdentity, output: &OutputArgs) -> Result<Self, CliError> {
        let stream = Stream::open(output)?;
        let mut fields = identity.settings.clone();
        fields.insert("n_toys".to_owned(), json!(identity.n_toys));
        fields.insert("devices".to_owned(), json!(identity.devices));
        let toys = BufWriter::new(tempfile::tempfile().map_err(not_kept)?);
        Ok(Self { stream, fields, toys, has_toys: false })
    }

    /// Adds a toy.
    pub(crate) fn toy(&mut self, fit: &WrittenFit) -> Result<(), CliError> {
        let mut row = json!({
            "toy": fit.toy,
            "status": STATUS[usize::from(fit.status)],
            "nll": fit.nll,
            "parameters": fit.parameters,
        });
        if let Some(uncertainty) = fit.poi_uncertainty {
            row["poi_uncertainty"] = json!(uncertainty);
        }
        let comma = if std::mem::replace(&mut self.has_toys, true) { "," } else { "" };
        let text = format!("{comma}\n{}", text_of(&row)?).replace('\n', "\n        ");
        self.toys.write_all(text.as_bytes()).map_err(not_kept)
    }

    /// Writes the document: what the ensemble is, its toys, and what they are together, of
    /// `wanted`.
    pub(crate) fn end(mut self, tally: &Tally, wanted: u64, device: Option<&Value>) -> Result<(), CliError> {
        const TOYS: &str = "\n    \"toys\": [";
        if let Value::Object(totals) = tally.totals(wanted) {
            self.fields.extend(totals);
        }
        self.fields.extend(device.map(|device| ("device".to_owned(), device.clone())));
        self.fields.insert("toys".to_owned(), json!([]));
        let text = text_of(&self.fields)?;
        let (before, after) = text.split_once(TOYS).unwrap_or((&text, ""));
        self.stream.write(before)?;
        self.stream.write(TOYS)?;
        let mut toys = self.toys.into_inner().map_err(|error| not_kept(error.into_error()))?;
        toys.seek(SeekFrom::Start(0)).map_err(not_kept)?;
        self.stream.copy(&mut toys)?;
        self.stream.write(if self.has_toys { "\n    " } else { "" })?;
        self.stream.write(after)?;
        self.stream.write("\n")?;
        self.stream.end()
    }
}

fn text_of(value: &impl Serialize) -> Result<String, CliError> {
    python_json(value).map_err(|error| not_kept(error.into()))
}

fn not_kept(source: io::Error) -> CliError {
    CliError::Unwritable { name: "a temporary file".to_owned(), source }
}
