//! Errors of the command: those of the libraries, and those of its own arguments and files.

use nextstat::data_sets::DataSetsError;
use nextstat::error::SettingsError;
use nextstat::exclusion::ExclusionError;
use nextstat::fits::FitsFileError;
use nextstat::full_report::NotAPage;
use nextstat::jobs::JobError;
use nextstat::patchsets::GridMergeError;
use nextstat::schema::UnknownSchema;
use nextstat::stored::StoredFitError;
use nextstat::tables::TableError;
use nextstat::{Face, Hint};
use ns_core::CompileError;
use ns_translate::toys::ToyFileError;
use ns_translate::workspace::WorkspaceError;
use ns_translate::{ConversionError, DocumentError, SourceError, XmlFilesError};
use std::error::Error;
use std::io;

/// Why a command has no result. All but [`CliError::BrokenPipe`] are exit code 2.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CliError {
    /// A procedure without a result; its causes are in [`CliError::cause`].
    #[error("{}", .0.message(Face::Command))]
    Library(nextstat::Error),
    /// A document that cannot be read, patched or verified.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A workspace that is not a model.
    #[error("in {name}: {error}")]
    Compile {
        /// The workspace in backticks, or `standard input`.
        name: String,
        /// The problem.
        error: CompileError,
    },
    /// A document that cannot be rewritten.
    #[error(transparent)]
    NotRewritable(DocumentError),
    /// A workspace that cannot be changed as requested.
    #[error("in {name}: {error}")]
    Workspace {
        /// The workspace in backticks, or `standard input`.
        name: String,
        /// The problem.
        error: WorkspaceError,
    },
    /// A workspace that a format cannot hold.
    #[error("in {name}: {error}")]
    Conversion {
        /// The workspace in backticks, or `standard input`.
        name: String,
        /// What it cannot hold.
        error: ConversionError,
    },
    /// A document of several files without a place for them.
    #[error("HistFactory XML is several files, which standard output cannot hold")]
    SeveralFiles,
    /// A name that a combination cannot have.
    #[error(transparent)]
    XmlFiles(XmlFilesError),
    /// A stored fit that cannot be used.
    #[error("in {name}: {error}")]
    StoredFit {
        /// The file in backticks.
        name: String,
        /// The problem.
        error: StoredFitError,
    },
    /// A grid of signals without exclusion contours.
    #[error("in {name}: {error}")]
    Exclusion {
        /// The file in backticks, or `standard input`.
        name: String,
        /// The problem.
        error: ExclusionError,
    },
    /// A document without such a table.
    #[error("in {name}: {error}")]
    Table {
        /// The file in backticks, or `standard input`.
        name: String,
        /// The problem.
        error: TableError,
    },
    /// A result without such a table.
    #[error(transparent)]
    ResultTable(TableError),
    /// The name of a table without a format of tables.
    #[error("`--table` needs `--format latex`, `csv` or `md`")]
    NeedsFormat,
    /// A page for a browser with the name of another kind of file.
    #[error("`--html`: {0}")]
    NotAPage(#[from] NotAPage),
    /// `--poi none` beside a name.
    #[error("`--poi none` and `--poi {name}` contradict each other")]
    PoiAndNone { name: String },
    /// An option for the second parameter of a scan of one.
    #[error("`{option}` needs a scan of two parameters, and this scan has one")]
    NeedsTwo { option: &'static str },
    /// A scan that ends before it starts.
    #[error("the scan of `{name}` starts at {start}, which is not below its end {stop}")]
    EmptyScan { name: String, start: f64, stop: f64 },
    /// A patch set without the name of a patch.
    #[error("`--patchset {path}` needs `--patch-name NAME`")]
    NoPatchName { path: String },
    /// An option or a verb that needs a patch set, without one.
    #[error("`{what}` needs `--patchset FILE`")]
    NoPatchSet { what: &'static str },
    /// An option for one model where all of a patch set are analysed.
    #[error("`{what}` takes every patch of a set; leave `{option}` out")]
    WholePatchSet { what: &'static str, option: &'static str },
    /// A result that would replace an input.
    #[error("{name} is an input of this command, and the result would replace it")]
    OutputIsInput { name: String },
    /// Two results for one place.
    #[error("two results would go to {name}")]
    OneOutput { name: String },
    /// A grid that does not ascend.
    #[error("the grid starts at {start}, which is not below its end {stop}")]
    EmptyGrid { start: f64, stop: f64 },
    /// A grid of another number of parameters than two.
    #[error("a region has two parameters, and `--grid` is given {found} {}", if *found == 1 { "time" } else { "times" })]
    NotTwoAxes { found: usize },
    /// Several confidence levels of an interval.
    #[error("an interval has one confidence level, and `--cl` is given {found} times")]
    SeveralLevels { found: usize },
    /// A table that does not have data sets of the model.
    #[error("in {name}: {error}")]
    DataSets {
        /// The table in backticks, or `standard input`.
        name: String,
        /// The problem.
        error: DataSetsError,
    },
    /// Files that do not have the fits of data sets.
    #[error("in {name}: {error}")]
    FitsFile {
        /// The first file in backticks.
        name: String,
        /// The problem.
        error: FitsFileError,
    },
    /// A file of toys that cannot be written, continued or merged.
    #[error(transparent)]
    ToyFile(#[from] ToyFileError),
    /// An option that needs a file of toys.
    #[error("`{option}` needs a NumPy file: `{file}`")]
    NeedsToyFile { option: &'static str, file: &'static str },
    /// A file of toys without the statistic of the data.
    #[error("the document beside {name} does not contain the observed statistic")]
    NoObserved { name: String },
    /// No document, and a terminal as standard input.
    #[error("no document was named, and standard input is a terminal")]
    NoDocument,
    /// An option that has no test by toys.
    #[error("`--calctype toybased` does not support `{option}`")]
    NotByToys { option: &'static str },
    /// Toys by Combine's flag, which has only its expected data here.
    #[error("`-t {n}` throws toys in Combine; here `-t` takes -1 only, for expected data")]
    CombineToys { n: i64 },
    /// A flag of Combine where there are several models.
    #[error("`{flag}` is for one model, and every patch makes another one")]
    OneModelOnly { flag: &'static str },
    /// A signal strength of expected data for several parameters of interest.
    #[error("`--expectSignal` is one signal strength, and the parameters of interest are {}", .names.join(", "))]
    ExpectSignalOfSeveral { names: Vec<String> },
    /// A range of the parameter of interest of a model that has none.
    #[error("`--rMin` and `--rMax` are the range of the parameter of interest, and the model has none")]
    RangeWithoutPoi,
    /// Two flags for the range of one parameter, or one flag twice.
    #[error("{}", two_ranges(.flags, .name))]
    TwoRanges { flags: [&'static str; 2], name: String },
    /// Two documents that both come from standard input.
    #[error("only one document can be read from standard input")]
    TwoFromStdin,
    /// A verb of the Python package without a Python.
    #[error("`{verb}` runs in the Python package, and `{python}` cannot be run")]
    NoPython { verb: &'static str, python: String, source: io::Error },
    /// A verb of the Python package, which is not there.
    #[error("`{verb}` runs in the Python package nextstat-rs, which `{python}` does not have")]
    NoPythonPackage { verb: &'static str, python: String },
    /// A job of a verb that takes no shards.
    #[error("`{verb}` cannot be divided into shards")]
    NoShards { verb: String, known: Vec<String> },
    /// A job of a command that is a shard itself.
    #[error("a job sets `--shard` itself")]
    OwnShard,
    /// A job whose result has no file.
    #[error("a job needs a file for its result")]
    JobToStdout,
    /// A job that would read standard input, which it does not have.
    #[error("a job has no standard input to read from")]
    JobFromStdin,
    /// A job whose result would be a table.
    #[error("shards are merged to JSON, and not to the table that `--format` asks for")]
    JobOfTable,
    /// An option that is joined to other ones.
    #[error("`{option} {value}` is not written as an option of its own")]
    HiddenOption { option: &'static str, value: String },
    /// A job that cannot be written.
    #[error(transparent)]
    Job(#[from] JobError),
    /// Documents that are not the shards of one grid.
    #[error(transparent)]
    GridMerge(#[from] GridMergeError),
    /// The working directory cannot be named.
    #[error("cannot find the working directory")]
    NoWorkingDirectory(#[source] io::Error),
    /// A manual page for a verb that does not exist.
    #[error("there is no verb `{name}`")]
    UnknownVerb { name: String, similar: Option<String> },
    /// A schema that does not exist.
    #[error(transparent)]
    Schema(#[from] UnknownSchema),
    /// The result cannot be written.
    #[error("cannot write {name}")]
    Unwritable {
        /// The file in backticks, or `standard output`.
        name: String,
        /// Its reason.
        source: io::Error,
    },
    /// The reader of standard output closed it.
    #[error("standard output was closed")]
    BrokenPipe,
}

impl From<nextstat::Error> for CliError {
    fn from(error: nextstat::Error) -> Self {
        Self::Library(error)
    }
}

impl From<SourceError> for CliError {
    fn from(error: SourceError) -> Self {
        Self::Document(error.into())
    }
}

impl From<SettingsError> for CliError {
    fn from(error: SettingsError) -> Self {
        Self::Library(error.into())
    }
}

impl CliError {
    /// Returns the cause that the message does not contain.
    pub(crate) fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Library(error) => error.source(),
            other => other.source(),
        }
    }

    /// Returns one line of advice, or `None`.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Document(error) => error.hint(Face::Command),
            // The verbs that rewrite documents have no options for patches.
            Self::NotRewritable(error) if error.is_of_patches() => {
                Some("`nextstat patchset apply` writes a workspace with a patch of a set applied".to_owned())
            }
            Self::NotRewritable(error) => error.hint(Face::Command),
            Self::DataSets { error, .. } => nextstat::Error::from(error.clone()).hint(Face::Command),
            Self::ToyFile(error) => error.hint(),
            Self::FitsFile { error, .. } => error.hint(Face::Command),
            Self::Library(error) => error.hint(Face::Command),
            Self::Compile { error, .. } => error.hint(Face::Command),
            Self::Workspace { error, .. } => error.hint(),
            Self::Conversion { error, .. } => error.hint(Face::Command),
            Self::SeveralFiles => Some("name the combination: `-o model.xml`".to_owned()),
            Self::XmlFiles(error) => error.hint(Face::Command),
            Self::StoredFit { error, .. } => error.hint(Face::Command),
            Self::Exclusion { error, .. } => error.hint(Face::Command),
            Self::OneOutput { .. } | Self::OutputIsInput { .. } => Some("write the result to another file".to_owned()),
            Self::Table { error, .. } | Self::ResultTable(error) => error.hint(Face::Command),
            Self::NotAPage(error) => Some(error.hint()),
            Self::CombineToys { .. } => Some("`nextstat toys` throws toys".to_owned()),
            Self::ExpectSignalOfSeveral { names } => Some(format!(
                "`--setParameters {}=1,…` gives each a value",
                names.first().map_or("NAME", String::as_str)
            )),
            Self::TwoRanges { .. } => Some("a parameter has one range; leave one of them out".to_owned()),
            Self::RangeWithoutPoi => Some("`--bounds NAME=LO:HI` is the range of any parameter".to_owned()),
            Self::NotTwoAxes { .. } => {
                Some("`--grid mu=0:3:31 --grid theta=-2:2:21` is a grid of 31 × 21 points".to_owned())
            }
            Self::SeveralLevels { .. } => Some("ask for one interval after the other, with the same seed".to_owned()),
            Self::NoDocument => Some("name a file, or `-` for standard input".to_owned()),
            Self::NotByToys { .. } => Some("`nextstat hypotest-toys` has the options of tests by toys".to_owned()),
            Self::NoPatchName { path } => Some(format!("`nextstat patchset list {path}` lists the names")),
            Self::NoPython { .. } => Some("NEXTSTAT_PYTHON names the Python to use".to_owned()),
            Self::NoPythonPackage { .. } => Some(
                "`pip install 'nextstat-rs[build,xmlio]'` installs it; NEXTSTAT_PYTHON names the Python to use"
                    .to_owned(),
            ),
            Self::UnknownVerb { similar, .. } => Some(match similar {
                Some(similar) => format!("did you mean `{similar}`?"),
                None => "`nextstat --help` lists the verbs".to_owned(),
            }),
            Self::NoShards { verb, .. } if ["hypotest", "limit"].contains(&verb.as_str()) => {
                Some("`--every-patch` analyses a patch set, which can be divided".to_owned())
            }
            Self::NoShards { known, .. } => Some(format!("`{}` can", known.join("`, `"))),
            Self::OwnShard => Some("leave it out: `job --shards N` is the number of shards".to_owned()),
            Self::JobToStdout => Some("name it in the command: `--output-file FILE`".to_owned()),
            Self::JobFromStdin => Some("name the files that the command reads".to_owned()),
            Self::JobOfTable => Some("`nextstat table` writes a table of the merged result".to_owned()),
            Self::HiddenOption { option, value } => Some(format!("write `{option} {value}`")),
            Self::GridMerge(error) => error.hint().map(str::to_owned),
            Self::Job(error) => error.hint().map(str::to_owned),
            Self::Schema(error) => Some(error.hint()),
            Self::NeedsTwo { .. } => Some("name two parameters with `--parameter`".to_owned()),
            _ => None,
        }
    }
}

/// Says which flags set the range of the parameter `name`.
fn two_ranges([first, second]: &[&str; 2], name: &str) -> String {
    if first == second {
        format!("`{first}` sets the range of `{name}` twice")
    } else {
        format!("`{first}` and `{second}` both set the range of `{name}`")
    }
}
