//! Why a command cannot be done: what the libraries say, and what only the command can know.

use std::io;

use ns_compute::accel::AccelError;
use ns_core::CompileError;
use ns_core::likelihood::NonFinite;
use ns_inference::accelerator::Failure;
use ns_inference::memory::TooLarge;
use ns_inference::toys::ToysError;
use ns_translate::DocumentError;
use ns_translate::toys::ToyFileError;
use ns_translate::workspace::WorkspaceError;

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
    /// A scan of, or a ranking for, a parameter that cannot move.
    #[error("`{name}` is held fixed, so `{verb}` has nothing to move")]
    HeldFixed { name: String, verb: &'static str },
    /// A name that stands for several parameters where one is meant.
    #[error("`{option}` names `{name}`, which has {len} elements")]
    Vector { option: &'static str, name: String, len: usize },
    /// A scan of too many parameters, or of one twice.
    #[error("a scan is of one parameter or of two different ones, not of {}", .names.join(", "))]
    NotScannable { names: Vec<String> },
    /// An option for the second parameter, where there is one.
    #[error("`{option}` needs a scan of two parameters, and this one is of one")]
    NeedsTwo { option: &'static str },
    /// A scan that ends before it starts.
    #[error("the scan of `{name}` starts at {start} and stops at {stop}, which is not above")]
    EmptyScan { name: String, start: f64, stop: f64 },
    /// A group without members.
    #[error("no free parameter beside the parameter of interest matches the group `{name}`")]
    EmptyGroup { name: String },
    /// One parameter set twice.
    #[error("`{option}` sets `{name}` twice")]
    SetTwice { option: &'static str, name: String },
    /// No Asimov data set, because something expected is negative or not a number.
    #[error("the model has no Asimov data set at its starting values: {0}")]
    NoAsimov(NonFinite),
    /// A patch set without the name of a patch.
    #[error("`--patchset {path}` needs `--patch-name NAME`")]
    NoPatchName { path: String },
    /// Every patch of no patch set.
    #[error("`--every-patch` needs `--patchset FILE`")]
    NoPatchSet,
    /// A parameter that is tested and held at once.
    #[error("`{name}` is to be tested, but held fixed by the measurement or by `--fix`")]
    TestedIsFixed { name: String },
    /// A model whose matrices do not fit into memory.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// A group that is asked for twice.
    #[error("there are two groups called `{name}`; the patterns of one group are divided by commas")]
    TwoGroups { name: String },
    /// An Asimov data set with two values of the parameter of interest.
    #[error("`--asimov` and `--asimov-at` both give `{name}` a value")]
    AsimovTwice { name: String },
    /// A result in the place of what it is made from.
    #[error("{name} is read by this command, and its result would replace it")]
    OutputIsInput { name: String },
    /// A discovery test of something else than no signal.
    #[error("`q0` tests a parameter of interest of 0, not {mu}")]
    NotDiscovery { mu: f64 },
    /// A grid that leads nowhere.
    #[error("the grid's start {start} is not below its stop {stop}")]
    EmptyGrid { start: f64, stop: f64 },
    /// A device that cannot be had, or not with this model.
    #[error(transparent)]
    Device(#[from] AccelError),
    /// Something that no device computes.
    #[error("{what} is computed on the CPU only")]
    OnCpuOnly { what: &'static str },
    /// A device that stopped in the middle.
    #[error("on {device}: {error}")]
    DeviceFailed {
        /// Which.
        device: String,
        /// Its words.
        error: Failure,
    },
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
            Self::Device(error) => error.hint(),
            Self::OnCpuOnly { .. } | Self::DeviceFailed { .. } => Some("`--device cpu` does without it".to_owned()),
            Self::Toys(ToysError::NotThrown(_)) => {
                Some("`nextstat evaluate` shows what a model expects at a point".to_owned())
            }
            Self::Toys(_) | Self::NothingToThrowAt { .. } => Some(
                "`nextstat fit` says more; `--fix NAME=VALUE` holds the parameter of interest where toys are thrown"
                    .to_owned(),
            ),
            Self::Compile { error, .. } => error.hint(),
            Self::Workspace { error, .. } | Self::Combine { error, .. } => error.hint(),
            Self::TooLarge(_) => Some(
                "`nextstat prune` leaves out parts of a workspace; `nextstat evaluate` works without these matrices"
                    .to_owned(),
            ),
            Self::OutputIsInput { .. } => Some("write the result to another file".to_owned()),
            Self::NoDocument => Some("name a file, or `-` for standard input".to_owned()),
            Self::NotByToys { .. } => Some("`nextstat hypotest-toys` has what there is for toys".to_owned()),
            Self::UnknownParameter { similar: Some(similar), .. } => {
                Some(format!("parameter names are case sensitive; did you mean `{similar}`?"))
            }
            Self::UnknownParameter { .. } => Some("`nextstat inspect` lists the parameters".to_owned()),
            Self::NoPatchName { path } => Some(format!("`nextstat patchset list {path}` lists the names")),
            Self::Vector { name, .. } => Some(format!("name one of them, such as `{name}[0]`")),
            Self::NeedsTwo { .. } => Some("name both with `--parameter`".to_owned()),
            Self::EmptyGroup { .. } => {
                Some("`nextstat inspect` lists the parameters; `*` stands for anything".to_owned())
            }
            Self::NoPoi { .. } => Some("name one with `--poi NAME`".to_owned()),
            Self::NoAsimov(_) => Some("`nextstat check` says more about the bins of a model".to_owned()),
            _ => None,
        }
    }
}
