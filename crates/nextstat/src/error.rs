//! What can be wrong with a question: a document, a model, a setting or a device.
//!
//! An error holds names and values. Its text depends on the face that shows it, because the command
//! spells a setting `--fix` where Python and Rust call it `fixed`: see [`Error::message`].

mod conversion;
mod documents;
mod names;
mod scanner;
mod search;
mod settings;
mod simplify;

pub use names::{Face, NeedsPoi, Procedure, Setting};
pub use scanner::ScannerError;
pub use search::SearchError;
pub use settings::{AtProblem, NotThisMinimum, SettingsError, ValuesProblem};
pub use simplify::SimplifyError;

use crate::data_sets::DataSetsError;
use crate::sample_groups::SampleGroupError;
use crate::stored::StoredFitError;
use ns_compute::accel::AccelError;
use ns_core::CompileError;
use ns_inference::accelerator::AcceleratorFailure;
use ns_inference::memory::ModelTooLarge;
use ns_inference::toys::ToysError;
use ns_translate::pyhf::PyhfError;
use ns_translate::workspace::WorkspaceError;
use ns_translate::{DocumentError, full_message};

/// An error that may come with one line of advice.
pub trait Hint {
    /// Returns the advice as `face` words it, or `None`.
    fn hint(&self, face: Face) -> Option<String>;
}

/// Why a procedure has no result.
///
/// ```
/// use nextstat::{Analysis, CompiledModel, Face, Hint, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let settings = Settings { fixed: vec![("Mu".to_owned(), 1.0)], ..Settings::default() };
/// let error = Analysis::new(&model, &settings).unwrap_err();
/// let message = "`fixed` names the parameter `Mu`, which the model does not have";
/// assert_eq!(error.to_string(), message);
/// let hint = error.hint(Face::Library).unwrap();
/// assert_eq!(hint, "parameter names are case sensitive; did you mean `mu`?");
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A document that cannot be read, patched or verified.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Two workspaces that cannot be combined.
    #[error("cannot combine {} with {}: {error}", .names[0], .names[1])]
    Combine {
        /// The first and the second, in backticks, or `standard input`.
        names: [String; 2],
        /// The problem.
        error: WorkspaceError,
    },
    /// A document that is no data card beside cards, which are joined.
    #[error("{name} is not a data card of Combine, and another document is one: only cards are joined with cards")]
    NotACard {
        /// The document, in backticks if it has a name.
        name: String,
    },
    /// A combination of no workspace.
    #[error("there is no workspace to combine")]
    NothingToCombine,
    /// A workspace that is not a model.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// Settings that do not fit.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Groups that do not fit the samples of a model.
    #[error(transparent)]
    SampleGroup(#[from] SampleGroupError),
    /// A stored fit that cannot be used.
    #[error(transparent)]
    StoredFit(#[from] StoredFitError),
    /// Data sets that are not of the model.
    #[error(transparent)]
    DataSets(#[from] DataSetsError),
    /// A model whose matrices do not fit into memory.
    #[error(transparent)]
    TooLarge(#[from] ModelTooLarge),
    /// Toys that cannot be thrown.
    #[error(transparent)]
    Toys(#[from] ToysError),
    /// A fit to the data that did not converge, so that toys cannot be thrown at its minimum.
    #[error("the fit to the data, at whose minimum toys are thrown, did not converge: {}", .warnings.join("; "))]
    NoThrowingPoint {
        /// The warnings of the fit.
        warnings: Vec<String>,
    },
    /// A search without a result.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// A model that cannot be simplified.
    #[error(transparent)]
    Simplify(#[from] SimplifyError),
    /// Signals that cannot be scanned.
    #[error(transparent)]
    Scanner(#[from] ScannerError),
    /// A device that is not available, or not with this model.
    #[error(transparent)]
    Device(#[from] AccelError),
    /// A device that failed while it computed.
    #[error("on {device}: {error}")]
    DeviceFailed {
        /// The device.
        device: String,
        /// Its message.
        error: AcceleratorFailure,
    },
    /// A procedure that has no device implementation.
    #[error("{what} is computed on the CPU only")]
    OnCpuOnly {
        /// The procedure.
        what: &'static str,
    },
}

impl From<PyhfError> for Error {
    fn from(error: PyhfError) -> Self {
        Self::Document(error.into())
    }
}

impl Error {
    /// Returns the message as `face` words it, without the errors that caused it.
    #[must_use]
    pub fn message(&self, face: Face) -> String {
        match self {
            Self::Settings(error) => error.message(face),
            other => other.to_string(),
        }
    }

    /// Returns the message as `face` words it, with the errors that caused it.
    #[must_use]
    pub fn full_message(&self, face: Face) -> String {
        match self {
            Self::Settings(error) => error.message(face),
            other => full_message(other),
        }
    }
}

impl Hint for Error {
    fn hint(&self, face: Face) -> Option<String> {
        match self {
            Self::Document(error) => error.hint(face),
            Self::Combine { error, .. } => error.hint(),
            Self::NotACard { .. } => Some(face.either(
                "`nextstat sort CARD -o FILE` makes JSON of a card; `--map` combines workspaces of any kind".to_owned(),
                "`map` combines workspaces of any kind".to_owned(),
            )),
            Self::NothingToCombine => None,
            Self::Compile(error) => error.hint(face),
            Self::Settings(error) => error.hint(face),
            Self::DataSets(DataSetsError::Number { problem, .. }) => settings::hint_of_number(problem, face),
            Self::DataSets(error) => error.hint(),
            Self::SampleGroup(SampleGroupError::Twice(twice)) => SettingsError::TwoGroups(twice.clone()).hint(face),
            Self::SampleGroup(error) => error.hint(),
            Self::Device(error) => error.hint(),
            Self::Search(error) => error.hint(),
            Self::Scanner(error) => error.hint(),
            Self::Simplify(error) => error.hint(),
            Self::StoredFit(error) => error.hint(face),
            Self::TooLarge(_) if face == Face::Command => Some(
                "remove parts of the workspace with `nextstat prune`; `nextstat evaluate` does not need these matrices"
                    .to_owned(),
            ),
            Self::Toys(ToysError::NotThrown(_)) if face == Face::Command => {
                Some("`nextstat evaluate` prints the data that a model expects at a point".to_owned())
            }
            Self::Toys(_) | Self::NoThrowingPoint { .. } if face == Face::Command => Some(
                "`nextstat fit` shows the fit; `--fix NAME=VALUE` fixes the parameter of interest where toys are thrown"
                    .to_owned(),
            ),
            Self::TooLarge(_) | Self::Toys(_) | Self::NoThrowingPoint { .. } => None,
            Self::DeviceFailed { .. } => {
                let device = face.either("`--device cpu`", "`device=\"cpu\"`");
                Some(format!("use {device}"))
            }
            Self::OnCpuOnly { .. } => {
                let [option, device] = face.either(["--device", "--device cpu"], ["device", "device=\"cpu\""]);
                Some(format!("leave `{option}` out, or say `{device}`"))
            }
        }
    }
}
