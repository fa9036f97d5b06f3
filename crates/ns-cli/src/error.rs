//! Why a command cannot be done: what the libraries say, and what only the command can know.

use std::io;

use nextstat::error::SettingsError;
use nextstat::{Face, Hint};
use ns_core::CompileError;
use ns_inference::toys::ToysError;
use ns_translate::toys::ToyFileError;
use ns_translate::workspace::WorkspaceError;
use ns_translate::{DocumentError, SourceError};

/// Why a command cannot be done. All but [`CliError::BrokenPipe`] are exit code 2.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CliError {
    /// A question that the library cannot answer.
    #[error("{}", .0.message(Face::Command))]
    Library(nextstat::Error),
    /// A document that cannot be read, patched or verified.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A workspace that is no model.
    #[error("in {name}: {error}")]
    Compile {
        /// The workspace in backticks, or `standard input`.
        name: String,
        /// What is wrong in it.
        error: CompileError,
    },
    /// A document of which no other can be made.
    #[error(transparent)]
    NotRewritable(DocumentError),
    /// A workspace of which nothing can be made as asked.
    #[error("in {name}: {error}")]
    Workspace {
        /// The workspace in backticks, or `standard input`.
        name: String,
        /// Why not.
        error: WorkspaceError,
    },
    /// Two workspaces that do not go together.
    #[error("cannot combine {} with {}: {error}", .names[0], .names[1])]
    Combine {
        /// The first and the second, in backticks, or `standard input`.
        names: [String; 2],
        /// Why not.
        error: WorkspaceError,
    },
    /// `--poi none` beside a name.
    #[error("`--poi none` and `--poi {name}` contradict each other")]
    PoiAndNone { name: String },
    /// An option for the second parameter, where there is one.
    #[error("`{option}` needs a scan of two parameters, and this one is of one")]
    NeedsTwo { option: &'static str },
    /// A scan that ends before it starts.
    #[error("the scan of `{name}` starts at {start} and stops at {stop}, which is not above")]
    EmptyScan { name: String, start: f64, stop: f64 },
    /// A patch set without the name of a patch.
    #[error("`--patchset {path}` needs `--patch-name NAME`")]
    NoPatchName { path: String },
    /// Every patch of no patch set.
    #[error("`--every-patch` needs `--patchset FILE`")]
    NoPatchSet,
    /// A result in the place of what it is made from.
    #[error("{name} is read by this command, and its result would replace it")]
    OutputIsInput { name: String },
    /// A grid that leads nowhere.
    #[error("the grid's start {start} is not below its stop {stop}")]
    EmptyGrid { start: f64, stop: f64 },
    /// A file of toys that cannot be written, continued or merged.
    #[error(transparent)]
    ToyFile(#[from] ToyFileError),
    /// No point at which toys could be thrown.
    #[error("the fit of the data, at which toys are to be thrown, did not converge: {why}")]
    NothingToThrowAt { why: String },
    /// An option that makes sense with a file of toys only.
    #[error("`{option}` needs a file of toys: `{file}`")]
    NeedsToyFile { option: &'static str, file: &'static str },
    /// A file of toys without the statistic of the data.
    #[error("the document beside {name} does not have the observed statistic")]
    NoObserved { name: String },
    /// No document, and nothing that is piped in.
    #[error("no document was named, and nothing is piped in")]
    NoDocument,
    /// Toys where there are none.
    #[error("`--calctype toybased` does not go with `{option}`")]
    NotByToys { option: &'static str },
    /// Two documents that both come from standard input.
    #[error("only one document can be read from standard input")]
    TwoFromStdin,
    /// The result cannot be written.
    #[error("cannot write {name}")]
    Unwritable {
        /// The file in backticks, or `standard output`.
        name: String,
        /// Its reason.
        source: io::Error,
    },
    /// Nobody reads standard output any more.
    #[error("standard output was closed")]
    BrokenPipe,
}

/// Advice where the data have no fit at which toys could be thrown.
const HOLD_TO_THROW: &str =
    "`nextstat fit` says more; `--fix NAME=VALUE` holds the parameter of interest where toys are thrown";

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

impl From<ToysError> for CliError {
    fn from(error: ToysError) -> Self {
        Self::Library(error.into())
    }
}

impl CliError {
    /// One line of advice, where there is any.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Document(error) => error.hint(),
            // Patches are options of the verbs that use a model, and not of these.
            Self::NotRewritable(error) if error.is_of_patches() => {
                Some("`nextstat patchset apply` makes a workspace of another one and a patch of a set".to_owned())
            }
            Self::NotRewritable(error) => error.hint(),
            Self::ToyFile(error) => error.hint(),
            Self::Library(error) => error.hint(Face::Command),
            Self::NothingToThrowAt { .. } => Some(HOLD_TO_THROW.to_owned()),
            Self::Compile { error, .. } => error.hint(),
            Self::Workspace { error, .. } | Self::Combine { error, .. } => error.hint(),
            Self::OutputIsInput { .. } => Some("write the result to another file".to_owned()),
            Self::NoDocument => Some("name a file, or `-` for standard input".to_owned()),
            Self::NotByToys { .. } => Some("`nextstat hypotest-toys` has what there is for toys".to_owned()),
            Self::NoPatchName { path } => Some(format!("`nextstat patchset list {path}` lists the names")),
            Self::NeedsTwo { .. } => Some("name both with `--parameter`".to_owned()),
            _ => None,
        }
    }
}
