//! The errors of compilation: one variant per fault, with names, values and the place in the
//! document. Advice is in [`hint`].

mod hint;

use crate::formula::FormulaError;
use crate::interpolate::InterpolationRule;
use crate::spec::ModifierKind;

/// The place of a sample or of its modifier: names for the reader, a JSON pointer for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplePlace {
    /// JSON pointer of the faulty value in the document.
    pub pointer: String,
    /// The channel's name.
    pub channel: String,
    /// The sample's name.
    pub sample: String,
}

impl std::fmt::Display for SamplePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: channel `{}`, sample `{}`", self.pointer, self.channel, self.sample)
    }
}

/// Why a workspace cannot be compiled into a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// Two elements of the same kind have the same name.
    #[error("{pointer}: this {what} is called `{name}`, and so is the one at {first}")]
    Duplicate {
        /// What has the name: channel, sample, modifier, …
        what: &'static str,
        /// The name.
        name: String,
        /// JSON pointer of the first one.
        first: String,
        /// JSON pointer of the second one.
        pointer: String,
    },
    /// A sample has another number of bins than the first sample of its channel.
    #[error("{place} has {}, but the channel has {expected}", counted(*.found, "bin"))]
    SampleLength {
        /// The place.
        place: SamplePlace,
        /// Bins of the channel.
        expected: usize,
        /// Bins found.
        found: usize,
    },
    /// A modifier's list has another number of bins than its sample.
    #[error(
        "{place}: {kind} `{modifier}` has {} in `{field}`, but the sample has {}",
        counted(*.found, "number"), counted(*.expected, "bin")
    )]
    ModifierLength {
        /// The place.
        place: SamplePlace,
        /// Kind of modifier.
        kind: ModifierKind,
        /// Its name.
        modifier: String,
        /// `data`, `hi_data` or `lo_data`.
        field: &'static str,
        /// Bins of the sample.
        expected: usize,
        /// Entries found.
        found: usize,
    },
    /// A channel has no samples, or a sample no bins.
    #[error("{pointer}: {what} `{name}` is empty")]
    Empty {
        /// What is empty.
        what: &'static str,
        /// Its name.
        name: String,
        /// JSON pointer.
        pointer: String,
    },
    /// A channel has no observation.
    #[error("channel `{channel}` has no entry in /observations")]
    MissingObservation {
        /// The channel's name.
        channel: String,
        /// Names that have one but no channel.
        unused: Vec<String>,
    },
    /// An observation has another number of bins than its channel.
    #[error(
        "{pointer}: the observation of channel `{channel}` has {}, but the channel has {expected}",
        counted(*.found, "bin")
    )]
    ObservationLength {
        /// The channel's name.
        channel: String,
        /// JSON pointer.
        pointer: String,
        /// Bins of the channel.
        expected: usize,
        /// Bins found.
        found: usize,
    },
    /// An observed count is negative.
    #[error("{pointer}: channel `{channel}` observes {value} events in bin {bin}; counts cannot be negative")]
    NegativeObservation {
        /// The channel's name.
        channel: String,
        /// The bin.
        bin: usize,
        /// The count.
        value: f64,
        /// JSON pointer.
        pointer: String,
    },
    /// A number that must be finite is not.
    #[error("{pointer}: {value} is not a finite number")]
    NotFinite {
        /// JSON pointer.
        pointer: String,
        /// The value.
        value: f64,
    },
    /// A normsys factor is zero or negative, so that its logarithm does not exist.
    #[error("{place}: normsys `{modifier}` has {field} = {value}; both factors must be positive")]
    NormSysNotPositive {
        /// The place.
        place: SamplePlace,
        /// The modifier's name.
        modifier: String,
        /// `lo` or `hi`.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A lumi modifier whose name is not `lumi`.
    #[error("{place}: a lumi modifier must be called `lumi`, not `{modifier}`")]
    LumiName {
        /// The place.
        place: SamplePlace,
        /// The modifier's name.
        modifier: String,
    },
    /// A shapesys name is used on more than one sample.
    #[error("{place}: shapesys `{modifier}` is already used at {first}, and a shapesys cannot be shared")]
    SharedShapeSys {
        /// The place.
        place: SamplePlace,
        /// The modifier's name.
        modifier: String,
        /// JSON pointer of the first use.
        first: String,
    },
    /// One name is used by kinds of modifier that need different parameters.
    #[error("{place}: `{name}` is used as {kind} here and as {other} elsewhere, and these cannot share a parameter")]
    IncompatibleKinds {
        /// Where the kind was found.
        place: SamplePlace,
        /// The name.
        name: String,
        /// The kind found there.
        kind: ModifierKind,
        /// The kind found before.
        other: ModifierKind,
    },
    /// A shapefactor is shared by channels with different numbers of bins.
    #[error("{place}: shapefactor `{modifier}` has {} elsewhere, but this channel has {found}", counted(*.expected, "bin"))]
    ShapeFactorLength {
        /// The place.
        place: SamplePlace,
        /// The modifier's name.
        modifier: String,
        /// Bins at its first use.
        expected: usize,
        /// Bins here.
        found: usize,
    },
    /// The samples that carry one staterror do not all carry it in the same channels.
    #[error("{place}: staterror `{modifier}` is on this sample in other channels than on sample `{other_sample}`")]
    StatErrorChannels {
        /// The place.
        place: SamplePlace,
        /// The modifier's name.
        modifier: String,
        /// The sample that it is compared with.
        other_sample: String,
    },
    /// A lumi modifier is used, but the measurement lacks one of its numbers.
    #[error("{place} uses `lumi`, but measurement `{measurement}` has no `{field}` for it")]
    LumiWithoutSettings {
        /// The measurement's name.
        measurement: String,
        /// `inits`, `bounds`, `auxdata` or `sigmas`.
        field: &'static str,
        /// A sample that uses it.
        place: SamplePlace,
    },
    /// The workspace has no measurement.
    #[error("the workspace has no measurement")]
    NoMeasurement,
    /// No measurement has the requested name.
    #[error("unknown measurement `{name}`")]
    UnknownMeasurement {
        /// The name.
        name: String,
        /// The names of the measurements.
        known: Vec<String>,
    },
    /// A parameter of interest that no modifier uses.
    #[error("{}the parameter of interest `{poi}`, which no modifier uses", asker(.measurement, .pointer))]
    UnknownPoi {
        /// The measurement's name.
        measurement: String,
        /// The name of the parameter of interest.
        poi: String,
        /// The most similar name.
        similar: Option<String>,
        /// Parameters without a constraint term, some of them.
        unconstrained: Vec<String>,
        /// JSON pointer of the name; `None` if the caller passed it.
        pointer: Option<String>,
    },
    /// A parameter of interest that is a vector.
    #[error("the parameter of interest `{poi}` is a vector of {len} elements")]
    VectorPoi {
        /// The name.
        poi: String,
        /// Its number of elements.
        len: usize,
    },
    /// A setting has the wrong number of values.
    #[error("{pointer}: `{parameter}` has {} of `{field}`, but the parameter has {expected}", counted(*.found, "value"))]
    SettingLength {
        /// The parameter's name.
        parameter: String,
        /// The setting.
        field: &'static str,
        /// JSON pointer.
        pointer: String,
        /// Elements of the parameter.
        expected: usize,
        /// Values found.
        found: usize,
    },
    /// Settings of a parameter that has the name of a formula.
    #[error("{pointer}: `{name}` is a formula ({formula}), which has no settings, and not a parameter")]
    FormulaSetting {
        /// The name.
        name: String,
        /// JSON pointer of the formula modifier.
        formula: String,
        /// JSON pointer of the settings.
        pointer: String,
    },
    /// A setting that has no meaning for the kind of the parameter.
    #[error("{pointer}: `{field}` has no meaning for `{parameter}`, a parameter of {kind}")]
    SettingUnused {
        /// The parameter's name.
        parameter: String,
        /// The setting.
        field: &'static str,
        /// The kind of modifier.
        kind: ModifierKind,
        /// JSON pointer.
        pointer: String,
    },
    /// A range whose ends are in the wrong order.
    #[error("{pointer}: the bounds of `{parameter}` are [{lower}, {upper}]; the first must be below the second")]
    EmptyRange {
        /// The parameter's name.
        parameter: String,
        /// Lower end.
        lower: f64,
        /// Upper end.
        upper: f64,
        /// JSON pointer.
        pointer: String,
    },
    /// A width or scale that must be positive.
    #[error("{pointer}: `{field}` of `{parameter}` is {value}; it must be positive")]
    SettingNotPositive {
        /// The parameter's name.
        parameter: String,
        /// The setting.
        field: &'static str,
        /// The value.
        value: f64,
        /// JSON pointer.
        pointer: String,
    },
    /// A setting of the document that models do not have yet.
    #[error("{pointer}: {what} is not supported")]
    Unsupported {
        /// The setting.
        what: &'static str,
        /// JSON pointer.
        pointer: String,
    },
    /// A histosys that scales yields that have no ratio.
    #[error(
        "{pointer}: `{rule}` scales yields, but bin {bin} has the nominal yield {nominal} and the variations {} and {}",
        .varied[0], .varied[1]
    )]
    NotScalable {
        /// The rule.
        rule: InterpolationRule,
        /// The bin.
        bin: usize,
        /// Its nominal yield.
        nominal: f64,
        /// Its yields at -1σ and +1σ.
        varied: [f64; 2],
        /// JSON pointer.
        pointer: String,
    },
    /// A mask of some bins of a channel with a template that is normalised to all of them.
    #[error("bins of channel `{channel}` cannot be masked in part: sample `{sample}` is normalised over all of them")]
    MaskedNormalised {
        /// The channel.
        channel: String,
        /// The sample.
        sample: String,
    },
    /// Names of elements for a parameter that is one number.
    #[error("{pointer}: `{parameter}` is one number, and has no elements to name")]
    ElementsOfScalar {
        /// The parameter's name.
        parameter: String,
        /// JSON pointer.
        pointer: String,
    },
    /// A name of an element that another parameter has.
    #[error("{pointer}: the name `{name}` is that of another parameter")]
    ElementName {
        /// The name.
        name: String,
        /// JSON pointer.
        pointer: String,
    },
    /// A statistical uncertainty of sums in two channels.
    #[error("{place}: mcstat `{modifier}` is in two channels; the other one is at {first}")]
    SharedMcStat {
        /// The place of the second.
        place: SamplePlace,
        /// The modifier's name.
        modifier: String,
        /// JSON pointer of the first.
        first: String,
    },
    /// A factor on α that is zero or not finite.
    #[error("{pointer}: the scale {value} is not a number other than zero")]
    ScaleOutOfRange {
        /// The value.
        value: f64,
        /// JSON pointer.
        pointer: String,
    },
    /// Two settings that both give the constraint terms of a parameter.
    #[error("{pointer}: `{field}` and `{other}` both give the constraint terms of `{parameter}`")]
    SettingsConflict {
        /// The parameter's name.
        parameter: String,
        /// One setting.
        field: &'static str,
        /// The other one.
        other: &'static str,
        /// JSON pointer of the first.
        pointer: String,
    },
    /// A constrained quantity for a parameter whose terms constrain the parameter.
    #[error("{pointer}: `{parameter}` has no gamma or lognormal constraint term, which `beta` is for")]
    BetaWithoutTerm {
        /// The parameter's name.
        parameter: String,
        /// JSON pointer.
        pointer: String,
    },
    /// A number of a constraint term that gives no probability density.
    #[error("{pointer}: the constraint term of `{parameter}` cannot have {value} here")]
    TermOutOfRange {
        /// The parameter's name.
        parameter: String,
        /// The number.
        value: f64,
        /// JSON pointer.
        pointer: String,
    },
    /// A text that is not a formula.
    #[error("{place}: {error}")]
    Formula {
        /// The place.
        place: SamplePlace,
        /// What is wrong with it.
        error: FormulaError,
    },
    /// A name in a formula that nothing has.
    #[error("{place}: the formula names `{name}` at column {column}, which is no parameter or formula")]
    UnknownFormulaName {
        /// The place.
        place: SamplePlace,
        /// The name.
        name: String,
        /// Where it is in the text.
        column: usize,
        /// The most similar name.
        similar: Option<String>,
    },
    /// A name in a formula that stands for several numbers.
    #[error("{place}: the formula names `{name}`, a vector of {len} elements")]
    VectorInFormula {
        /// The place.
        place: SamplePlace,
        /// The name.
        name: String,
        /// Its number of elements.
        len: usize,
    },
    /// A formula that depends on itself.
    #[error("{place}: formula `{modifier}` depends on itself")]
    FormulaCycle {
        /// The place.
        place: SamplePlace,
        /// The modifier's name.
        modifier: String,
    },
    /// A formula that is too long with the formulas that it names.
    #[error("{place}: formula `{modifier}` is too long, with the formulas that it names")]
    FormulaTooLong {
        /// The place.
        place: SamplePlace,
        /// The modifier's name.
        modifier: String,
    },
    /// Two formulas of one name that differ.
    #[error("{place}: formula `{modifier}` is another one at {first}")]
    FormulaDiffers {
        /// The place.
        place: SamplePlace,
        /// The modifier's name.
        modifier: String,
        /// JSON pointer of the first one.
        first: String,
    },
    /// No modifier anywhere, so that there is nothing to fit.
    #[error("the workspace has no modifiers, so the model has no parameters")]
    NoParameters,
    /// More elements than the flat arrays can index.
    #[error("the model has {count} {what}; at most {limit} can be indexed")]
    TooLarge {
        /// Which elements.
        what: &'static str,
        /// Their number.
        count: usize,
        /// The largest number that can be indexed.
        limit: usize,
    },
}

fn asker(measurement: &str, pointer: &Option<String>) -> String {
    match pointer {
        Some(pointer) => format!("{pointer}: measurement `{measurement}` asks for "),
        None => "this model cannot have ".to_owned(),
    }
}

/// Formats a number with its noun: `1 bin`, `2 bins`.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("{count} {noun}") } else { format!("{count} {noun}s") }
}
