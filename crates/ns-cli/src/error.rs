//! Why a command cannot be done: what the libraries say, and what only the command can know.

use std::io;

use ns_core::CompileError;
use ns_core::likelihood::NonFinite;
use ns_inference::toys::ToysError;
use ns_translate::DocumentError;
use ns_translate::toys::ToyFileError;

/// Why a command cannot be done. All but [`CliError::BrokenPipe`] are exit code 2.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CliError {
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
    /// A parameter name that the model does not have.
    #[error("`{option}` names the parameter `{name}`, which the model does not have")]
    UnknownParameter { option: &'static str, name: String, similar: Option<String> },
    /// An option that needs a parameter of interest.
    #[error("`{option}` needs a parameter of interest, and the model has none")]
    NoPoi { option: &'static str },
    /// `--poi none` beside a name.
    #[error("`--poi none` and `--poi {name}` contradict each other")]
    PoiAndNone { name: String },
    /// An interval of a parameter that cannot move.
    #[error("`--minos` names the parameter `{name}`, which is held fixed")]
    MinosOfFixed { name: String },
    /// One parameter set twice.
    #[error("`{option}` sets `{name}` twice")]
    SetTwice { option: &'static str, name: String },
    /// No Asimov data set, because something expected is negative or not a number.
    #[error("the model has no Asimov data set at its starting values: {0}")]
    NoAsimov(NonFinite),
    /// A file of toys that cannot be written, continued or merged.
    #[error(transparent)]
    ToyFile(#[from] ToyFileError),
    /// Toys that cannot be thrown.
    #[error(transparent)]
    Toys(#[from] ToysError),
    /// No point at which toys could be thrown.
    #[error("the fit of the data, at which toys are to be thrown, did not converge: {why}")]
    NothingToThrowAt { why: String },
    /// An option that makes sense with a file of toys only.
    #[error("`{option}` needs a file of toys: `{file}`")]
    NeedsToyFile { option: &'static str, file: &'static str },
    /// A file of toys without the statistic of the data.
    #[error("the document beside {name} does not have the observed statistic")]
    NoObserved { name: String },
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

impl CliError {
    /// One line of advice, where there is any.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Document(error) => error.hint(),
            Self::ToyFile(error) => error.hint(),
            Self::Toys(ToysError::NotThrown(_)) => {
                Some("`nextstat evaluate` shows what a model expects at a point".to_owned())
            }
            Self::Toys(_) | Self::NothingToThrowAt { .. } => Some(
                "`nextstat fit` says more; `--fix NAME=VALUE` holds the parameter of interest where toys are thrown"
                    .to_owned(),
            ),
            Self::Compile { error, .. } => error.hint(),
            Self::UnknownParameter { similar: Some(similar), .. } => {
                Some(format!("parameter names are case sensitive; did you mean `{similar}`?"))
            }
            Self::UnknownParameter { .. } => Some("`nextstat inspect` lists the parameters".to_owned()),
            Self::NoPoi { .. } => Some("name one with `--poi NAME`".to_owned()),
            Self::NoAsimov(_) => Some("`nextstat check` says more about the bins of a model".to_owned()),
            _ => None,
        }
    }
}
