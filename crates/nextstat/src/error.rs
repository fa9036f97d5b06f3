//! What can be wrong with a question: a document, a model, a setting or a device.
//!
//! An error holds names and values. Its text depends on the face that shows it, because the command
//! spells a setting `--fix` where Python and Rust call it `fixed`: see [`Error::message`].

use ns_compute::accel::AccelError;
use ns_core::CompileError;
use ns_core::likelihood::NonFinite;
use ns_inference::accelerator::AcceleratorFailure;
use ns_inference::memory::ModelTooLarge;
use ns_inference::toys::ToysError;
use ns_translate::DocumentError;
use ns_translate::pyhf::PyhfError;
use std::fmt;

/// An error that may come with one line of advice.
pub trait Hint {
    /// Returns the advice as `face` words it, or `None`.
    fn hint(&self, face: Face) -> Option<String>;
}

/// Who shows an error, and so how it spells settings and procedures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// The command: settings are options such as `--fix`.
    Command,
    /// Python and Rust: settings are arguments or fields such as `fixed`.
    Library,
}

impl Face {
    fn either<T>(self, command: T, library: T) -> T {
        match self {
            Self::Command => command,
            Self::Library => library,
        }
    }
}

/// A setting that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the field or argument of its name")]
pub enum Setting {
    Asimov,
    AsimovAt,
    Bounds,
    Data,
    Fixed,
    Init,
    Minos,
    Parameter,
    PoiUncertainty,
    Mu,
}

impl Setting {
    /// Returns the name that `face` gives the setting.
    #[must_use]
    pub fn name(self, face: Face) -> &'static str {
        let [command, library] = match self {
            Self::Asimov => ["--asimov", "asimov"],
            Self::AsimovAt => ["--asimov-at", "asimov_at"],
            Self::Bounds => ["--bounds", "bounds"],
            Self::Data => ["--data", "data"],
            Self::Fixed => ["--fix", "fixed"],
            Self::Init => ["--init", "init"],
            Self::Minos => ["--minos", "minos"],
            Self::Parameter => ["--parameter", "parameter"],
            Self::PoiUncertainty => ["--poi-uncertainty", "poi_uncertainty"],
            Self::Mu => ["--mu", "mu"],
        };
        face.either(command, library)
    }
}

/// A procedure that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the procedure of its name")]
pub enum Procedure {
    Contours,
    Hypotest,
    HypotestToys,
    Limit,
    Ranking,
    Scan,
    Session,
    Significance,
    Toys,
}

impl Procedure {
    /// Returns the name that `face` gives the procedure.
    #[must_use]
    pub fn name(self, face: Face) -> &'static str {
        let [command, library] = match self {
            Self::Contours => ["scan --contour", "contours"],
            Self::Hypotest => ["hypotest", "hypotest"],
            Self::HypotestToys => ["hypotest-toys", "hypotest_toys"],
            Self::Limit => ["limit", "upper_limit"],
            Self::Ranking => ["ranking", "ranking"],
            Self::Scan => ["scan", "profile_scan"],
            Self::Session => ["session", "ProfiledDifferentiableSession"],
            Self::Significance => ["significance", "significance"],
            Self::Toys => ["toys", "fit_toys"],
        };
        face.either(command, library)
    }
}

/// What needs a parameter of interest that the model does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedsPoi {
    /// A procedure.
    Procedure(Procedure),
    /// A setting.
    Setting(Setting),
}

impl NeedsPoi {
    fn name(self, face: Face) -> &'static str {
        match self {
            Self::Procedure(procedure) => procedure.name(face),
            Self::Setting(setting) => setting.name(face),
        }
    }
}

/// Settings that do not fit the model or each other.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SettingsError {
    /// A parameter that the model does not have.
    UnknownParameter {
        /// Where it was named; `None` where nothing else could be meant.
        setting: Option<Setting>,
        /// The name.
        name: String,
        /// The parameter with the most similar name, if one is similar.
        similar: Option<String>,
    },
    /// The name of a vector where one parameter is wanted.
    Vector {
        /// Where it was named.
        setting: Option<Setting>,
        /// The name.
        name: String,
        /// How many parameters it stands for.
        len: usize,
    },
    /// One parameter set twice.
    SetTwice {
        /// By what.
        setting: Setting,
        /// The parameter.
        name: String,
    },
    /// A value that is not a finite number.
    NotFinite {
        /// What gives it.
        setting: Setting,
        /// The parameter.
        name: String,
        /// The value.
        value: f64,
    },
    /// More values than there are places for them, or fewer.
    WrongLength {
        /// What gives them.
        setting: Setting,
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A range whose lower end is not below its upper end.
    EmptyRange {
        /// The parameter.
        name: String,
        /// Its ends.
        bounds: [f64; 2],
    },
    /// No parameter of interest.
    NoPoi(NeedsPoi),
    /// A procedure that varies a fixed parameter.
    VariesFixed {
        /// The procedure.
        procedure: Procedure,
        /// The parameter.
        name: String,
    },
    /// An interval of a fixed parameter.
    MinosOfFixed {
        /// The parameter.
        name: String,
    },
    /// Two values of the parameter of interest of an Asimov data set.
    AsimovTwice {
        /// The parameter.
        name: String,
    },
    /// A point at which the model has no Asimov data set.
    NoAsimov(NonFinite),
    /// A scan of more than two parameters, or of one against itself.
    NotScannable {
        /// The parameters.
        names: Vec<String>,
    },
    /// A scan with no values or with one that is not finite, or a grid of CLs that does not ascend.
    BadValues {
        /// What is wrong.
        problem: ValuesProblem,
    },
    /// A confidence level or a level of CLs outside 0 to 1.
    BadLevel {
        /// The level.
        level: f64,
    },
    /// A group of parameters without a member.
    EmptyGroup {
        /// Its name.
        name: String,
    },
    /// Two groups of one name.
    TwoGroups {
        /// The name.
        name: String,
    },
    /// A statistic that the procedure does not have.
    NoSuchStatistic {
        /// The procedure.
        procedure: Procedure,
        /// The statistic.
        name: String,
        /// Those that it has.
        known: &'static [&'static str],
    },
    /// A discovery test of another value than 0.
    NotDiscovery {
        /// The value.
        mu: f64,
    },
    /// The uncertainty of a fixed parameter of interest.
    UncertaintyOfFixed {
        /// The parameter.
        name: String,
    },
    /// A value of the parameter of interest that cannot be tested.
    Untestable {
        /// The value.
        mu: f64,
    },
}

/// What is wrong with the values of a scan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValuesProblem {
    /// There are none.
    Empty,
    /// One is not finite.
    NotFinite(f64),
    /// A grid has fewer than two, or they do not ascend.
    NotAscending,
}

impl SettingsError {
    /// Returns the message as `face` words it.
    #[must_use]
    pub fn message(&self, face: Face) -> String {
        let named = |setting: &Setting| setting.name(face);
        match self {
            Self::UnknownParameter { setting: Some(setting), name, .. } => {
                format!("`{}` names the parameter `{name}`, which the model does not have", named(setting))
            }
            Self::UnknownParameter { name, .. } => format!("the model has no parameter `{name}`"),
            Self::Vector { setting: Some(setting), name, len } => {
                format!("`{}` names `{name}`, which has {len} elements", named(setting))
            }
            Self::Vector { name, len, .. } => format!("`{name}` is a vector of {len} parameters"),
            Self::SetTwice { setting, name } => format!("`{}` sets `{name}` twice", named(setting)),
            Self::NotFinite { setting, name, value } => {
                format!("`{}` sets `{name}` to {value}, which is not a finite number", named(setting))
            }
            Self::WrongLength { setting, found, expected } => {
                format!("`{}` has {found} values instead of {expected}", named(setting))
            }
            Self::EmptyRange { name, bounds: [lower, upper] } => {
                format!("the range {lower} to {upper} of `{name}` is empty")
            }
            Self::NoPoi(what) => {
                format!("`{}` needs a parameter of interest, and the model has none", what.name(face))
            }
            Self::VariesFixed { procedure, name } => {
                let (procedure, fixed) = (procedure.name(face), named(&Setting::Fixed));
                format!("`{procedure}` varies `{name}`, which is fixed by the measurement or by `{fixed}`")
            }
            Self::MinosOfFixed { name } => {
                format!("`{}` names the parameter `{name}`, which is fixed", named(&Setting::Minos))
            }
            Self::AsimovTwice { name } => {
                let (asimov, at) = (named(&Setting::Asimov), named(&Setting::AsimovAt));
                format!("`{asimov}` and `{at}` both give `{name}` a value")
            }
            Self::NoAsimov(reason) => format!("the model has no Asimov data set at its starting values: {reason}"),
            Self::NotScannable { names } => {
                format!("scans and contours are of different parameters, two at most, and not of {}", quoted(names))
            }
            Self::BadValues { problem } => problem.to_string(),
            Self::BadLevel { level } => format!("a level of {level} is not between 0 and 1"),
            Self::EmptyGroup { name } => {
                format!("no free parameter beside the parameter of interest matches the group `{name}`")
            }
            Self::TwoGroups { name } => {
                format!("there are two groups called `{name}`; the patterns of one group are divided by commas")
            }
            Self::NoSuchStatistic { procedure, name, .. } => {
                format!("`{}` does not have the test statistic `{name}`", procedure.name(face))
            }
            Self::NotDiscovery { mu } => format!("`q0` tests the value 0 of the parameter of interest, not {mu}"),
            Self::UncertaintyOfFixed { name } => {
                format!("`{}` is that of the parameter `{name}`, which is fixed", named(&Setting::PoiUncertainty))
            }
            Self::Untestable { mu } => format!("`{}` must be finite, got {mu}", named(&Setting::Mu)),
        }
    }
}

fn quoted(names: &[impl fmt::Display]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for ValuesProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a scan needs one value or more"),
            Self::NotFinite(value) => write!(f, "a scan cannot go to {value}"),
            Self::NotAscending => f.write_str("a grid has two values or more, ascending"),
        }
    }
}

impl Hint for SettingsError {
    fn hint(&self, face: Face) -> Option<String> {
        let either = |command: &str, library: &str| Some(face.either(command, library).to_owned());
        match self {
            Self::UnknownParameter { similar: Some(similar), .. } => {
                Some(format!("parameter names are case sensitive; did you mean `{similar}`?"))
            }
            Self::UnknownParameter { .. } => {
                either("`nextstat inspect` lists the parameters", "`model.par_names` lists the parameters")
            }
            Self::Vector { name, .. } => Some(format!("name one of them, such as `{name}[0]`")),
            Self::NoPoi(_) => either("name one with `--poi NAME`", "name one: `load_workspace(..., poi=...)`"),
            Self::NoAsimov(_) => {
                either("`nextstat check` says more about the bins of a model", "`check` says more about the bins")
            }
            Self::EmptyGroup { .. } => either(
                "`nextstat inspect` lists the parameters; `*` stands for anything",
                "`model.par_names` lists the parameters; `*` stands for anything",
            ),
            Self::NoSuchStatistic { known, .. } => Some(format!("there are {}", quoted(known))),
            Self::BadLevel { .. } => Some("levels are probabilities, such as 0.05 and 0.95".to_owned()),
            _ => None,
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(Face::Library))
    }
}

impl std::error::Error for SettingsError {}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A document that cannot be read, patched or verified.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A workspace that is not a model.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// Settings that do not fit.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A model whose matrices do not fit into memory.
    #[error(transparent)]
    TooLarge(#[from] ModelTooLarge),
    /// Toys that cannot be thrown.
    #[error(transparent)]
    Toys(#[from] ToysError),
    /// A device that is not available, or not with this model.
    #[error(transparent)]
    Device(#[from] AccelError),
    /// A device that failed while it computed.
    #[error("on {device}: {error}")]
    DeviceFailed {
        /// Which.
        device: String,
        /// Its own message.
        error: AcceleratorFailure,
    },
    /// Something that is not computed on devices.
    #[error("{what} is computed on the CPU only")]
    OnCpuOnly {
        /// What.
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
}

impl Hint for Error {
    fn hint(&self, face: Face) -> Option<String> {
        match self {
            Self::Document(error) => error.hint(),
            Self::Compile(error) => error.hint(),
            Self::Settings(error) => error.hint(face),
            Self::Device(error) => error.hint(),
            Self::TooLarge(_) if face == Face::Command => Some(
                "`nextstat prune` leaves out parts of a workspace; `nextstat evaluate` works without these matrices"
                    .to_owned(),
            ),
            Self::Toys(ToysError::NotThrown(_)) if face == Face::Command => {
                Some("`nextstat evaluate` shows what a model expects at a point".to_owned())
            }
            Self::Toys(_) if face == Face::Command => Some(
                "`nextstat fit` says more; `--fix NAME=VALUE` holds the parameter of interest where toys are thrown"
                    .to_owned(),
            ),
            Self::TooLarge(_) | Self::Toys(_) => None,
            Self::DeviceFailed { .. } | Self::OnCpuOnly { .. } => {
                let device = face.either("`--device cpu`", "`device=\"cpu\"`");
                Some(format!("{device} does without it"))
            }
        }
    }
}
