//! Settings that do not fit the model or contradict each other.

use super::{Face, Hint, NeedsPoi, Procedure, Setting};
use crate::data_sets::InvalidNumber;
use crate::number::{counted, significant};
use crate::sample_groups::GroupTwice;
use crate::stored::StoredFitError;
use ns_core::likelihood::NonFinite;
use ns_inference::toys::MOST_TOYS;
use std::fmt;

/// A setting that does not fit the model or contradicts another one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SettingsError {
    /// A parameter that the model does not have.
    UnknownParameter {
        /// The setting that names it; `None` where only one is possible.
        setting: Option<Setting>,
        /// The name.
        name: String,
        /// The parameter with the most similar name, if one is similar.
        similar: Option<String>,
    },
    /// The name of a vector where one parameter is expected.
    Vector {
        /// The setting that names it.
        setting: Option<Setting>,
        /// The name.
        name: String,
        /// Its number of elements.
        len: usize,
    },
    /// A channel that the model does not have.
    UnknownChannel {
        /// The setting that names it.
        setting: Setting,
        /// The name.
        name: String,
        /// The channel with the most similar name, if one is similar.
        similar: Option<String>,
    },
    /// Bins that a channel does not have.
    NoSuchBins {
        /// The setting that names them.
        setting: Setting,
        /// The channel with the bins, as given.
        selection: String,
        /// The channel.
        channel: String,
        /// Its number of bins.
        n_bins: usize,
    },
    /// No bin is left to fit.
    EverythingMasked,
    /// No bin is left to fit, because data are hidden.
    EverythingBlinded,
    /// Hidden data that are to be fitted, and a stored fit that makes no other fit.
    FitsBlinded,
    /// A threshold of the signal that is negative or not a number.
    BadThreshold {
        /// The threshold.
        value: f64,
    },
    /// One parameter set twice.
    SetTwice {
        /// The setting.
        setting: Setting,
        /// The parameter.
        name: String,
    },
    /// A value that is not a finite number.
    NotFinite {
        /// The setting.
        setting: Setting,
        /// The parameter.
        name: String,
        /// The value.
        value: f64,
    },
    /// A number of the caller's data that is not valid.
    InvalidData(InvalidNumber),
    /// A wrong number of values.
    WrongLength {
        /// The setting.
        setting: Setting,
        /// The number of values given.
        found: usize,
        /// The number of values expected.
        expected: usize,
    },
    /// A range whose lower end is not below its upper end.
    EmptyRange {
        /// The setting.
        setting: Setting,
        /// The parameter.
        name: String,
        /// Its ends.
        bounds: [f64; 2],
    },
    /// No parameter of interest.
    NoPoi(NeedsPoi),
    /// A fixed parameter that the procedure varies.
    VariesFixed {
        /// The procedure.
        procedure: Procedure,
        /// The parameter.
        name: String,
    },
    /// A parameter that only masked bins depend on.
    VariesMasked {
        /// The procedure.
        procedure: Procedure,
        /// The parameter.
        name: String,
    },
    /// A MINOS interval of a fixed parameter.
    MinosOfFixed {
        /// The parameter.
        name: String,
    },
    /// Two values for one parameter of an Asimov data set.
    AsimovTwice {
        /// The parameter.
        name: String,
    },
    /// A point at which the model has no Asimov data set.
    NoAsimov(NonFinite),
    /// A stored fit that gives no point of the model.
    StoredFit(StoredFitError),
    /// A stored fit that was not made with this fixed value or range.
    StoredElsewhere {
        /// The setting.
        setting: Setting,
        /// The parameter.
        name: String,
    },
    /// A stored fit that is not the minimum of this likelihood, to which refits would refer.
    NotThisMinimum(NotThisMinimum),
    /// A scan of more than two parameters, or of one against itself.
    NotScannable {
        /// The parameters.
        names: Vec<String>,
    },
    /// A scan without values or with one that is not finite, or a grid of CLs that does not ascend.
    BadValues {
        /// The problem.
        problem: ValuesProblem,
    },
    /// A parameter whose fixed values limits are not a function of.
    NotAt {
        /// The parameter.
        name: String,
        /// The problem.
        problem: AtProblem,
    },
    /// A confidence level or a level of CLs outside 0 to 1.
    BadLevel {
        /// The setting.
        setting: Setting,
        /// The level.
        level: f64,
    },
    /// A confidence level so small that 1 minus it is rounded to 1.
    NegligibleConfidence {
        /// The confidence level.
        cl: f64,
    },
    /// A value outside the range of its parameter.
    ValueOutside {
        /// The setting.
        setting: Setting,
        /// The parameter.
        name: String,
        /// The value.
        value: f64,
        /// The ends of the range.
        bounds: [f64; 2],
    },
    /// Toys of the background, which is outside the range of the parameter of interest.
    BackgroundOutside {
        /// The parameter.
        name: String,
        /// The ends of the range.
        bounds: [f64; 2],
    },
    /// Importance sampling of toys whose auxiliary data are fixed.
    ImportanceOfFixedAux,
    /// An upper limit below the best fit.
    LowConfidence {
        /// The confidence level.
        cl: f64,
    },
    /// A tolerance of a Monte Carlo error that is not positive.
    BadTolerance {
        /// The tolerance.
        tolerance: f64,
    },
    /// A way to join workspaces for data cards, which are joined in one way only.
    JoinOfCards {
        /// The setting.
        setting: Setting,
    },
    /// No method that makes intervals.
    NoMethod,
    /// More toys than there are random numbers for.
    TooManyToys {
        /// Their number.
        n_toys: u128,
    },
    /// A level of CLs that is a confidence level.
    LevelIsConfidence {
        /// The level.
        level: f64,
    },
    /// A group that the measurement does not have.
    UnknownGroup {
        /// Its name.
        name: String,
        /// The groups that it has.
        known: Vec<String>,
    },
    /// A group of parameters without a member.
    EmptyGroup {
        /// Its name.
        name: String,
    },
    /// Two groups of parameters of one name.
    TwoGroups(GroupTwice),
    /// A statistic that the procedure does not have.
    NoSuchStatistic {
        /// The procedure.
        procedure: Procedure,
        /// The statistic.
        name: String,
        /// The statistics that it supports.
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
    /// A seed that is not a whole number from 0 on.
    BadSeed {
        /// What was given.
        found: String,
    },
    /// A value of the parameter of interest that is not finite.
    Untestable {
        /// The value.
        mu: f64,
    },
}

/// Why a stored fit is not the minimum of a likelihood.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotThisMinimum {
    /// A parameter that the fit does not have.
    #[error("it does not have the parameter `{name}`")]
    Unmatched {
        /// The parameter.
        name: String,
    },
    /// A point from which a fit goes elsewhere.
    #[error("there the estimated distance to the minimum of -ln L is {edm:.2e}")]
    Edm {
        /// ½ gᵀH⁻¹g; NaN if -ln L is not finite, negative at a saddle point.
        edm: f64,
    },
    /// Another value of a parameter that the measurement fixes.
    #[error("it has `{name}` at {stored}, and the measurement fixes it at {here}")]
    Fixed {
        /// The parameter.
        name: String,
        /// The value of the stored fit.
        stored: f64,
        /// That of this model.
        here: f64,
    },
    /// Another uncertainty than that of this likelihood.
    #[error("the uncertainty of `{name}` is {} there and {here:.4} here", .stored.map_or("none".to_owned(), |width| format!("{width:.4}")))]
    Uncertainty {
        /// The parameter.
        name: String,
        /// The uncertainty of the stored fit.
        stored: Option<f64>,
        /// That of this likelihood at the same point.
        here: f64,
    },
}

/// A problem with the values of a scan or a grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValuesProblem {
    /// No values.
    Empty,
    /// A value that is not finite.
    NotFinite(f64),
    /// A grid of fewer than two values, or of values that do not ascend.
    NotAscending,
}

/// A problem with the parameter that limits are a function of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AtProblem {
    /// It is the parameter that the limits are on.
    IsPoi,
    /// Another setting fixes it.
    IsFixed,
    /// A value outside its range.
    Outside {
        /// The value.
        value: f64,
        /// The ends of the range.
        bounds: [f64; 2],
    },
}

/// Returns how to give the parameter `name` another range.
fn another_range(name: &str, face: Face) -> String {
    face.either(
        format!("`--bounds {name}=LO:HI` sets another range"),
        format!("`bounds={{\"{name}\": (lo, hi)}}` sets another range"),
    )
}

impl AtProblem {
    fn message(self, name: &str, face: Face) -> String {
        let [at, fixed] = [Setting::At, Setting::Fixed].map(|setting| setting.name(face));
        match self {
            Self::IsPoi => format!("`{at}` names `{name}`, the parameter that the limits are on"),
            Self::IsFixed => format!("`{at}` and `{fixed}` both fix `{name}`"),
            Self::Outside { value, bounds: [lower, upper] } => {
                format!("`{at}` sets `{name}` to {value}, outside its range, {lower} to {upper}")
            }
        }
    }

    fn hint(self, name: &str, face: Face) -> Option<String> {
        match self {
            Self::IsPoi => Some(face.either(
                format!("name the parameter that the limits are on with `--poi`, and another one than `{name}` here"),
                format!("name the parameter that the limits are on with `poi=`, and another one than `{name}` here"),
            )),
            Self::IsFixed => None,
            Self::Outside { .. } => Some(another_range(name, face)),
        }
    }
}

impl SettingsError {
    /// Returns the message as `face` words it.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "one text for each variant: the compiler asks for that of a new one")]
    pub fn message(&self, face: Face) -> String {
        let named = |setting: &Setting| setting.name(face);
        match self {
            // Names that do not fit.
            Self::UnknownParameter { setting: Some(setting), name, .. } => {
                format!("`{}` names the parameter `{name}`, which the model does not have", named(setting))
            }
            Self::UnknownParameter { name, .. } => format!("the model has no parameter `{name}`"),
            Self::Vector { setting: Some(setting), name, len } => {
                format!("`{}` names `{name}`, which has {len} elements", named(setting))
            }
            Self::Vector { name, len, .. } => format!("`{name}` is a vector of {len} parameters"),
            Self::UnknownChannel { setting, name, .. } => {
                format!("`{}` names the channel `{name}`, which the model does not have", named(setting))
            }
            Self::NoSuchBins { setting, selection, channel, n_bins } => {
                let bins = counted(*n_bins, "bin");
                format!("`{}` names `{selection}`, and the channel `{channel}` has {bins}", named(setting))
            }
            Self::NotScannable { names } => {
                format!("a scan or a contour takes one or two different parameters, not {}", quoted(names))
            }
            Self::EmptyGroup { name } => {
                format!("the group `{name}` matches no free nuisance parameter")
            }
            Self::UnknownGroup { name, .. } => format!("the measurement has no group `{name}`"),
            Self::TwoGroups(twice) => twice.to_string(),
            // Values that do not fit.
            Self::SetTwice { setting, name } => format!("`{}` sets `{name}` twice", named(setting)),
            Self::NotFinite { setting, name, value } => {
                format!("`{}` sets `{name}` to {value}, which is not a finite number", named(setting))
            }
            Self::WrongLength { setting, found, expected } => {
                format!("`{}` has {found} values instead of {expected}", named(setting))
            }
            Self::EmptyRange { setting, name, bounds: [lower, upper] } => {
                format!("`{}`: the range {lower} to {upper} of `{name}` is empty", named(setting))
            }
            Self::AsimovTwice { name } => {
                let (asimov, at) = (named(&Setting::Asimov), named(&Setting::AsimovAt));
                format!("`{asimov}` and `{at}` both give `{name}` a value")
            }
            Self::InvalidData(problem) => problem.to_string(),
            Self::BadValues { problem } => problem.to_string(),
            Self::NotAt { name, problem } => problem.message(name, face),
            Self::BadLevel { setting, level } => {
                format!("`{}` is {level}, which is not between 0 and 1", named(setting))
            }
            Self::NegligibleConfidence { cl } => {
                format!("the confidence level {cl} is too small: 1 minus it is rounded to 1")
            }
            Self::ValueOutside { setting, name, value, bounds: [lower, upper] } => {
                let setting = named(setting);
                format!("`{setting}` sets `{name}` to {value}, outside its range, {lower} to {upper}")
            }
            Self::BackgroundOutside { name, bounds: [lower, upper] } => {
                format!(
                    "the background is `{name}` = 0, outside its range, {lower} to {upper}, in which toys are fitted"
                )
            }
            Self::ImportanceOfFixedAux => {
                "importance sampling weights auxiliary data by their probability, and they are fixed".to_owned()
            }
            Self::LowConfidence { cl } => {
                format!("an upper limit needs a confidence level above 0.5, and {cl} is not")
            }
            Self::BadTolerance { tolerance } => format!("the tolerance {tolerance} is not a positive number"),
            Self::NoMethod => "at least one method is needed".to_owned(),
            Self::TooManyToys { n_toys } => {
                format!("{n_toys} toys are too many, inner ones included: there are random numbers for {MOST_TOYS}")
            }
            Self::LevelIsConfidence { level } => {
                format!("the level {level} is the CLs of a limit, which is below 0.5")
            }
            Self::NoSuchStatistic { procedure, name, .. } => {
                format!("`{}` does not support the test statistic `{name}`", procedure.name(face))
            }
            Self::NotDiscovery { mu } => format!("`q0` tests the value 0 of the parameter of interest, not {mu}"),
            Self::BadSeed { found } => {
                format!("`{}` must be a whole number from 0 to {}, got `{found}`", named(&Setting::Seed), u64::MAX)
            }
            Self::BadThreshold { value } => {
                format!("`{}` must be a number from 0 on, got {value}", named(&Setting::BlindAbove))
            }
            Self::Untestable { mu } => {
                format!("`{}` is {mu}, which is not a finite number", named(&Setting::Mu))
            }
            // Settings and models that do not fit together.
            Self::EverythingMasked => {
                format!("`{}` and `{}` leave no bin to fit", named(&Setting::FitChannels), named(&Setting::Mask))
            }
            Self::FitsBlinded => {
                let fitted = face.either("--fit-blinded", "fit_blinded");
                format!("`{fitted}` is a condition of a fit, and a stored fit is not fitted again")
            }
            Self::EverythingBlinded => {
                let hidden = [Setting::Blind, Setting::BlindAbove].map(|setting| named(&setting));
                format!("`{}` or `{}` leaves no bin to fit", hidden[0], hidden[1])
            }
            Self::NoPoi(what) => {
                format!("`{}` needs a parameter of interest, and the model has none", what.name(face))
            }
            Self::VariesMasked { procedure, name } => {
                let (procedure, mask) = (procedure.name(face), Setting::Mask.name(face));
                let channels = Setting::FitChannels.name(face);
                format!("`{procedure}` varies `{name}`, and `{mask}` or `{channels}` leaves no bin that depends on it")
            }
            Self::VariesFixed { procedure, name } => {
                let (procedure, fixed) = (procedure.name(face), named(&Setting::Fixed));
                format!("`{procedure}` varies `{name}`, which is fixed by the measurement or by `{fixed}`")
            }
            Self::MinosOfFixed { name } => {
                format!("`{}` names the parameter `{name}`, which is fixed", named(&Setting::Minos))
            }
            Self::JoinOfCards { setting } => {
                format!("`{}` is for other workspaces: data cards are joined in one way only", named(setting))
            }
            Self::StoredFit(error) => error.to_string(),
            Self::StoredElsewhere { setting, name } => {
                format!("the stored fit was not made with the `{}` of `{name}`", named(setting))
            }
            Self::NotThisMinimum(reason) => {
                format!("the stored fit is not the minimum of this likelihood, to which refits refer: {reason}")
            }
            Self::NoAsimov(reason) => {
                format!("the model has no Asimov data set at the requested point: {}", unexpected(reason))
            }
            Self::UncertaintyOfFixed { name } => {
                format!("`{}` needs a free parameter, and `{name}` is fixed", named(&Setting::PoiUncertainty))
            }
        }
    }
}

/// Returns why nothing can be expected there, without the data: those of an Asimov data set are the
/// expected counts themselves.
fn unexpected(reason: &NonFinite) -> String {
    match reason {
        NonFinite::Bin { place, expected, sample, sample_yield, .. } => {
            format!("{place}: {expected} events expected (lowest yield: sample `{sample}`, {sample_yield})")
        }
        NonFinite::Constraint { .. } => reason.to_string(),
    }
}

/// Returns the advice about a number of a data set that is not valid.
pub(super) fn hint_of_number(problem: &InvalidNumber, face: Face) -> Option<String> {
    let mask = Setting::Mask.name(face);
    problem
        .is_missing()
        .then(|| format!("NaN stands for missing data only in bins that `{mask}` leaves out of the fit"))
}

/// Returns `names` in backticks.
pub(super) fn quoted(names: &[impl fmt::Display]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for ValuesProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("at least one value is needed"),
            Self::NotFinite(value) => write!(f, "values must be finite, got {value}"),
            Self::NotAscending => f.write_str("a grid needs at least two ascending values"),
        }
    }
}

impl Hint for SettingsError {
    fn hint(&self, face: Face) -> Option<String> {
        let either = |command: &str, library: &str| Some(face.either(command, library).to_owned());
        match self {
            Self::UnknownParameter { setting: Some(Setting::Minos), name, .. } if name.contains(',') => either(
                "commas do not separate names: repeat `--minos NAME`",
                "commas do not separate names: pass a list of them",
            ),
            Self::UnknownParameter { similar: Some(similar), .. } => {
                Some(format!("parameter names are case sensitive; did you mean `{similar}`?"))
            }
            Self::UnknownParameter { .. } => {
                either("`nextstat inspect` lists the parameters", "`model.par_names` lists the parameters")
            }
            Self::UnknownChannel { similar: Some(similar), .. } => Some(format!("did you mean `{similar}`?")),
            Self::UnknownChannel { .. } => either(
                "`nextstat inspect` lists the channels; `*` matches any characters",
                "`model.channels` lists the channels; `*` matches any characters",
            ),
            Self::NoSuchBins { channel, .. } => {
                Some(format!("bins are counted from 0: `{channel}[0]` is the first, `{channel}[0:2]` the first two"))
            }
            Self::InvalidData(problem) => hint_of_number(problem, face),
            Self::Vector { name, .. } => Some(format!("name one element, such as `{name}[0]`")),
            Self::StoredElsewhere { setting, .. } => Some(format!(
                "a stored fit is not fitted again: leave `{}` out, or store a fit made with it",
                setting.name(face)
            )),
            Self::NotThisMinimum(_) => either(
                "`--method covariance` ranks by the covariance of the stored fit, without refits",
                "`methods=\"covariance\"` ranks by the covariance of the stored fit, without refits",
            ),
            Self::EverythingBlinded => either(
                "`--asimov --fit-blinded` fits expected data instead of those that are hidden",
                "`data=asimov_data(model), fit_blinded=True` fits expected data instead of those that are hidden",
            ),
            Self::NoPoi(_) => either("name one with `--poi NAME`", "name one: `load_workspace(..., poi=...)`"),
            Self::NoAsimov(_) => {
                either("`nextstat check` lists suspicious bins", "`nextstat.check` lists suspicious bins")
            }
            Self::LevelIsConfidence { level } => Some(face.either(
                format!("`--cl {level}` is a confidence level"),
                format!("`cl={level}` is a confidence level"),
            )),
            Self::UnknownGroup { known, .. } if known.is_empty() => either(
                "`--group NAME=PATTERN,PATTERN` makes one of names and patterns",
                "a dictionary makes one of names and patterns: `{\"jets\": \"jes_*\"}`",
            ),
            Self::UnknownGroup { known, .. } => Some(format!("it has {}", quoted(known))),
            Self::EmptyGroup { .. } => either(
                "`nextstat inspect` lists the parameters; `*` matches any characters",
                "`model.par_names` lists the parameters; `*` matches any characters",
            ),
            Self::NoSuchStatistic { known, .. } => Some(format!("choose one of {}", quoted(known))),
            Self::BadLevel { setting: Setting::Level, .. } => {
                Some("the level of CLs is a probability, such as 0.05".to_owned())
            }
            Self::BadLevel { level, .. } if *level >= 50.0 && *level < 100.0 => {
                Some(format!("a confidence level is a probability: {} for {level} %", significant(level / 100.0, 6)))
            }
            Self::BadLevel { .. } => Some("a confidence level is a probability, such as 0.95".to_owned()),
            Self::BadTolerance { .. } => {
                Some("errors fall with the root of the number of toys: 0.02 takes 4 times the toys of 0.04".to_owned())
            }
            Self::ImportanceOfFixedAux => either("leave `--aux fixed` out", "leave `aux=\"fixed\"` out"),
            Self::NotAt { name, problem } => problem.hint(name, face),
            Self::ValueOutside { name, .. } | Self::BackgroundOutside { name, .. } => Some(another_range(name, face)),
            Self::TwoGroups(_) => either(
                "separate the patterns of one group by commas: `--group NAME=PATTERN,PATTERN`",
                "give the patterns of one group as one list",
            ),
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
