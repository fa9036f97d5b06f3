//! Fits of many data sets of the caller: bootstrap replicas, systematic variations of the data.
//!
//! All start at the best fit to the nominal data, and each is searched as a single fit is. Fits go
//! to a sink as they come, and the result is their summary; [`DataSetRecord`] is one fit as files
//! have it, and [`row`] as documents do.

use crate::answer::{Answer, Document};
use crate::data_sets::DataSets;
use crate::document::to_document;
use crate::toys::{ToyPart, status};
use crate::{Analysis, Error, Face, Hint};
use ns_inference::data_sets::{DataSetFit, DataSetFitter, DataTable};
use ns_inference::monitor::Monitor;
use ns_inference::toys::{RunStatus, ToyRun};
use ns_inference::{FitOptions, FitResult, Problem, Uncertainties, fit};
use ns_translate::NumberTable;
use ns_translate::digest::sha256_of_numbers;
use ns_translate::toys::{DataSetRecord, DataSetRecordFormat, Shard, ToyFileError, ToyRunIdentity, merge};
use serde_json::{Map, Value, json};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

mod summary;

use summary::NominalFit;
pub use summary::{FitsSummary, ParameterSummary};

/// The kind of files of fits of data sets.
pub const KIND: &str = "data_sets";

/// Data sets, and what is kept of their fits.
///
/// ```
/// use nextstat::fits::FitsRequest;
/// use nextstat::{Analysis, CompiledModel, Error, NoMonitor, NumberTable, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let table = NumberTable { values: vec![51.0, 48.0, 57.0, 63.0, 60.0, 55.0], n_rows: 3, n_columns: 2 };
/// let analysis = Analysis::new(&model, &Settings::default())?;
/// let mut fits = analysis.fits(&FitsRequest::new(table))?;
/// let mut signal_strengths = Vec::new();
/// fits.run(&NoMonitor, |_, more| {
///     signal_strengths.extend(more.iter().map(|fit| fit.bestfit[0]));
///     Ok::<(), Error>(())
/// })?;
/// assert_eq!(signal_strengths.len(), 3);
/// assert_eq!(fits.answer()?.result.n_failed(), 0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FitsRequest {
    /// The data sets in rows (N × B or N × (B + K)): event counts of all channels in the order of
    /// the model, those of masked bins included, then auxiliary data. Rows without auxiliary data
    /// get those of the nominal data.
    pub data: Arc<NumberTable>,
    /// Parameters in files and documents: names, or all if empty.
    pub parameters: Vec<String>,
    /// Whether to compute the standard deviations of the parameters in every data set.
    pub uncertainties: bool,
    /// Which of the data sets to fit.
    pub part: ToyPart,
}

impl FitsRequest {
    /// Asks for the best fits of `data`, with all parameters.
    #[must_use]
    pub fn new(data: NumberTable) -> Self {
        Self { data: Arc::new(data), parameters: Vec::new(), uncertainties: false, part: ToyPart::Shard(Shard::WHOLE) }
    }
}

impl Analysis {
    /// Prepares the fits of many data sets: fits the nominal data, which are those of the settings,
    /// and none of the data sets yet.
    ///
    /// # Errors
    /// [`Error::DataSets`] with the place of the first number that is not valid; names that the
    /// model does not have; a device that is not available; too little memory.
    pub fn fits(&self, request: &FitsRequest) -> Result<DataSetFits, Error> {
        let data = DataSets::new(self.whole_model(), &request.data, self.masked_bins())?;
        let written = self.written(&request.parameters)?;
        self.device()?;
        let options = FitOptions { uncertainties: Uncertainties::Hessian, ..self.options().clone() };
        let nominal = fit(&mut Problem::new(self.model(), &mut self.likelihood()?, &options));
        let format = DataSetRecordFormat { n_parameters: written.len(), has_uncertainties: request.uncertainties };
        let start = self.start_of_fits(&nominal);
        let nominal = NominalFit::new(&nominal, &written);
        let mut settings = self.settings_of_fits(&data, &start, &written);
        settings.insert("nominal".to_owned(), to_document(&nominal));
        let identity = self.identity_of(KIND, settings, format.layout(), data.n_sets(), request.part.shard());
        let range = request.part.range(data.n_sets());
        let summary = FitsSummary::new(&identity, nominal, range.end - range.start);
        Ok(DataSetFits { analysis: self.clone(), data, start, written, format, identity, range, summary })
    }

    /// Returns where the fits of data sets start (P): at the best fit to the nominal data, or at
    /// the starting values if there is none.
    fn start_of_fits(&self, nominal: &FitResult) -> Vec<f64> {
        if nominal.converged {
            return nominal.bestfit.clone();
        }
        self.options().start.clone().unwrap_or_else(|| self.model().parameters.init.clone())
    }

    /// Returns the settings that the fits depend on.
    fn settings_of_fits(&self, data: &DataSets, start: &[f64], written: &[usize]) -> Map<String, Value> {
        let mut settings = self.run_settings();
        let names: Vec<&String> = written.iter().map(|&i| &self.model().parameters.names[i]).collect();
        let table = data.table();
        settings.extend([
            ("start".to_owned(), json!(start)),
            ("data_sha256".to_owned(), json!(sha256_of_numbers(&table.values))),
            ("n_columns".to_owned(), json!(table.n_columns)),
            ("parameters".to_owned(), json!(names)),
        ]);
        settings
    }
}

/// Fits of data sets: run them once, then take the answer.
#[derive(Debug)]
pub struct DataSetFits {
    analysis: Analysis,
    data: DataSets,
    /// Where fits start (P).
    start: Vec<f64>,
    written: Vec<usize>,
    format: DataSetRecordFormat,
    identity: ToyRunIdentity,
    range: Range<u64>,
    summary: FitsSummary,
}

impl DataSetFits {
    /// Returns everything that the fits depend on, for the document beside a file of them.
    #[must_use]
    pub fn identity(&self) -> &ToyRunIdentity {
        &self.identity
    }

    /// Returns the format of the records of a file.
    #[must_use]
    pub fn format(&self) -> DataSetRecordFormat {
        self.format
    }

    /// Returns the summary of the fits so far.
    #[must_use]
    pub fn summary(&self) -> &FitsSummary {
        &self.summary
    }

    /// Returns `fit` as files and documents have it.
    #[must_use]
    pub fn record(&self, fit: &DataSetFit) -> DataSetRecord {
        let written = |values: &[f64]| self.written.iter().map(|&i| values[i]).collect();
        DataSetRecord {
            data_set: fit.data_set,
            status: status(fit.outcome),
            twice_nll: fit.twice_nll,
            bestfit: written(&fit.bestfit),
            uncertainties: fit.uncertainties.as_deref().map(written),
        }
    }

    /// Counts the next data set, which was fitted before, so that it is not fitted again.
    pub fn resume(&mut self, record: &DataSetRecord) {
        self.summary.add(record);
    }

    /// Fits the data sets that are left, and passes the fits to `sink`, in order and many at a
    /// time.
    ///
    /// # Errors
    /// Those of `sink`; a device that is not available; too little memory.
    pub fn run<E: From<Error>>(
        &mut self,
        monitor: &dyn Monitor,
        mut sink: impl FnMut(&Self, Vec<DataSetFit>) -> Result<(), E>,
    ) -> Result<RunStatus, E> {
        let mut summary = self.summary.clone();
        let Range { start: first, end } = self.range;
        let run = ToyRun { whole: Some([first, end]), ..self.analysis.run(monitor)? };
        let likelihood = self.analysis.likelihood()?;
        let mut written = Vec::with_capacity(self.written.len());
        let ended = self.fitter().run(&likelihood, first + summary.n_done()..end, &run, |fits| {
            for fit in &fits {
                written.clear();
                written.extend(self.written.iter().map(|&i| fit.bestfit[i]));
                summary.count(status(fit.outcome), &written);
            }
            sink(self, fits)
        })?;
        summary.counts.ended = ended;
        self.summary = summary;
        Ok(ended)
    }

    fn fitter(&self) -> DataSetFitter<'_> {
        let (model, table) = (self.analysis.model(), self.data.table());
        let table = DataTable {
            values: &table.values,
            n_columns: table.n_columns,
            n_bins: self.data.n_bins(),
            masked: self.analysis.masked_bins(),
            aux: &self.analysis.data().aux,
        };
        let (options, start) = (self.analysis.options(), &self.start);
        DataSetFitter { model, options, table, start, wants_uncertainties: self.format.has_uncertainties }
    }

    /// Returns the summary of the fits that were run.
    ///
    /// # Errors
    /// A device that failed: its fits are then not to be used.
    pub fn answer(&self) -> Result<Answer<FitsSummary>, Error> {
        self.analysis.answer(self.summary.clone())
    }
}

impl Document for FitsSummary {
    const SCHEMA: &'static str = "fits";

    /// Returns the summary; `data_sets` is empty, because fits went to the sink.
    fn fields(answer: &Answer<Self>) -> Value {
        answer.result.document_fields()
    }
}

/// Reads the fits of a file, or of the files of all shards of a run in any order, and passes them
/// to `receive` in the order of the data sets. Returns their summary.
///
/// # Errors
/// Files that are not complete, not sound, not of one run, or not of fits of data sets.
pub fn read_files(paths: &[PathBuf], receive: impl FnMut(DataSetRecord)) -> Result<FitsSummary, FitsFileError> {
    FitsSummary::of_files(&merge(paths)?, receive)
}

/// Files that do not have the fits of data sets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitsFileError {
    /// Files that are not complete, not sound or not of one run.
    #[error(transparent)]
    File(#[from] ToyFileError),
    /// Files of toys.
    #[error("the file has toys, not fits of data sets")]
    Toys,
    /// Files whose document lacks the fit to the nominal data, as those of earlier versions do.
    #[error("the document beside the file does not have the fit to the nominal data")]
    NoNominal,
    /// A fit to the nominal data with another number of parameters than the data sets.
    #[error(
        "the document beside the file names {n_parameters} parameters, and its fit to the nominal data has \
         {n_values} values"
    )]
    NominalLength {
        /// The number of parameters.
        n_parameters: usize,
        /// The number of values.
        n_values: usize,
    },
    /// Records that are not those of fits with this number of parameters.
    #[error("the columns of the file are not those of fits with {n_parameters} parameters")]
    Columns {
        /// The number of parameters.
        n_parameters: usize,
    },
}

impl Hint for FitsFileError {
    fn hint(&self, face: Face) -> Option<String> {
        let either = |command: &str, library: &str| Some(face.either(command, library).to_owned());
        match self {
            Self::File(error) => error.hint(),
            Self::Toys => either("`nextstat toys merge` reads toys", "`nextstat.load_toys` reads toys"),
            Self::NoNominal | Self::NominalLength { .. } | Self::Columns { .. } => {
                either("fit the data sets again, with `nextstat fits`", "fit the data sets again, with `nextstat.fits`")
            }
        }
    }
}

/// Returns the row of a document for a fit.
#[must_use]
pub fn row(fit: &DataSetRecord) -> Value {
    let mut row = json!({
        "data_set": fit.data_set,
        "outcome": fit.status.as_str(),
        "twice_nll": fit.twice_nll,
        "bestfit": fit.bestfit,
    });
    if let Some(uncertainties) = &fit.uncertainties {
        row["uncertainties"] = json!(uncertainties);
    }
    row
}
