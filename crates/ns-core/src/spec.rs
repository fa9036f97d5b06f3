//! A workspace as written in its document: channels, samples, modifiers, observations and
//! measurements, with names and options.
//!
//! Nothing here is checked beyond its shape. [`crate::compile()`] turns a workspace into a
//! [`crate::Model`], and every check is there; reading and writing documents is another crate's
//! work. The nouns are those of the pyhf JSON schema 1.0.0 and of HistFactory (CERN-OPEN-2012-016).
//! What pyhf's schema cannot say is optional, and absent from pyhf's documents: how a modifier is
//! interpolated ([`Modifier::interpolation`]), constraint terms ([`ParameterConfig::constraints`],
//! [`ParameterConfig::per_bin`], [`ParameterConfig::beta`]), clipping ([`Measurement::clip`]), the
//! sum of a sample's template ([`Sample::template`]), statistical uncertainties of a channel's sum
//! ([`ModifierData::McStat`]), and names of elements ([`ParameterConfig::elements`]).

use crate::interpolate::InterpolationRule;

/// The contents of one document: channels, observations, and measurements.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Workspace {
    /// Disjoint selections of events, in document order.
    pub channels: Vec<Channel>,
    /// Event counts, one entry per channel, in document order.
    pub observations: Vec<Observation>,
    /// Parameters of interest and parameter settings, in document order.
    pub measurements: Vec<Measurement>,
}

/// A selection of events, binned.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Channel {
    /// The channel's name, unique in the workspace.
    pub name: String,
    /// The physics processes that contribute to it.
    pub samples: Vec<Sample>,
}

/// A process's nominal yields in one channel, and what may change them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// The sample's name, unique in its channel.
    pub name: String,
    /// Nominal yields, one per bin.
    pub data: Vec<f64>,
    /// What scales, shifts or reshapes the yields.
    pub modifiers: Vec<Modifier>,
    /// What becomes of the template after its shifts.
    pub template: TemplateRule,
}

/// What becomes of a sample's template after the shifts of its histosys, before any factor: first
/// it is clipped, then it is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TemplateRule {
    /// The lowest value of a bin, in place of [`Clipping::templates`].
    pub clip: Option<f64>,
    /// Whether the template is scaled to the sum of the nominal yields, so that shifts change its
    /// shape only: Combine's templates.
    pub normalize: bool,
}

/// A named effect on one sample; equal names share a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Modifier {
    /// The name of the parameter (or parameter vector) that controls the effect.
    pub name: String,
    /// What kind of effect, with its numbers.
    pub data: ModifierData,
    /// How a normsys or histosys follows its parameter, where that is not the default.
    pub interpolation: ModifierInterpolation,
}

/// How a normsys or histosys follows its parameter; absent means "as the model's default".
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModifierInterpolation {
    /// The interpolation rule.
    pub rule: Option<InterpolationRule>,
    /// The factor on α: the effect is that of `scale`·α. Combine's `shape` with a number has one.
    pub scale: Option<f64>,
}

/// The kinds of modifier and what each carries.
#[derive(Debug, Clone, PartialEq)]
pub enum ModifierData {
    /// A free multiplicative factor.
    NormFactor,
    /// A constrained factor on the whole sample: its value at -1σ and at +1σ.
    NormSys {
        /// The factor at -1σ.
        lo: f64,
        /// The factor at +1σ.
        hi: f64,
    },
    /// A constrained shift of the shape: the templates at -1σ and at +1σ.
    HistoSys {
        /// Yields at -1σ, one per bin.
        lo_data: Vec<f64>,
        /// Yields at +1σ, one per bin.
        hi_data: Vec<f64>,
    },
    /// One Poisson-constrained factor per bin: absolute uncertainties, one per bin.
    ShapeSys(Vec<f64>),
    /// One free factor per bin.
    ShapeFactor,
    /// One Gaussian-constrained factor per bin, shared by the samples of a channel: absolute
    /// uncertainties, one per bin.
    StatError(Vec<f64>),
    /// The integrated luminosity: a constrained factor whose numbers are in the measurement.
    Lumi,
    /// A factor that is a formula of parameters.
    Formula(Expression),
    /// Shifts that are linear in formulas of parameters: yields are nominal + Σ formula · data.
    Morphing(Vec<MorphingTerm>),
    /// A statistical uncertainty of the channel's sum, with one parameter ν per bin that the
    /// samples of a channel share: Combine's `autoMCStats`. The sum of a bin grows by
    /// ν √Σ(c e)², e being the absolute uncertainties given here, one per bin, and c the product of
    /// the sample's factors that are the same in all bins.
    McStat(Vec<f64>),
}

/// A formula as written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Expression {
    /// Its text, in the syntax of [`crate::formula`].
    pub text: String,
    /// What `@0`, `@1`, … or `x[0]`, `x[1]`, … in the text stand for; `None` if there are none.
    pub parameters: Option<Vec<String>>,
}

impl Expression {
    /// Returns the formula of `text` without a list of parameters.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), parameters: None }
    }
}

/// One term of a morphing: a template and the formula that scales it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MorphingTerm {
    /// The coefficient, such as `c1*c2`.
    pub coefficient: Expression,
    /// What is added to the nominal yields where the coefficient is 1, one number per bin.
    pub data: Vec<f64>,
}

/// The kinds of modifier, without their numbers, in the order in which pyhf lays out parameters.
/// Parameters that only formulas name are laid out with those of normfactors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ModifierKind {
    /// `histosys`
    HistoSys,
    /// `lumi`
    Lumi,
    /// `normfactor`
    NormFactor,
    /// `formula`
    Formula,
    /// `morphing`
    Morphing,
    /// `normsys`
    NormSys,
    /// `shapefactor`
    ShapeFactor,
    /// `shapesys`
    ShapeSys,
    /// `staterror`
    StatError,
    /// `mcstat`
    McStat,
}

impl ModifierKind {
    /// Every kind, in parameter order.
    pub const ALL: [Self; 10] = [
        Self::HistoSys,
        Self::Lumi,
        Self::NormFactor,
        Self::Formula,
        Self::Morphing,
        Self::NormSys,
        Self::ShapeFactor,
        Self::ShapeSys,
        Self::StatError,
        Self::McStat,
    ];

    /// Returns its name in documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HistoSys => "histosys",
            Self::Lumi => "lumi",
            Self::NormFactor => "normfactor",
            Self::Formula => "formula",
            Self::Morphing => "morphing",
            Self::NormSys => "normsys",
            Self::ShapeFactor => "shapefactor",
            Self::ShapeSys => "shapesys",
            Self::StatError => "staterror",
            Self::McStat => "mcstat",
        }
    }

    /// Returns the kind that documents call `word`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl ModifierKind {
    /// Returns `true` if the modifier has no parameter of its own: its name is that of the formula,
    /// and its parameters are those that the formula names.
    #[must_use]
    pub fn has_formula(self) -> bool {
        matches!(self, Self::Formula | Self::Morphing)
    }

    /// Returns `true` if its parameter is a vector with one element per bin.
    #[must_use]
    pub fn is_per_bin(self) -> bool {
        matches!(self, Self::ShapeSys | Self::ShapeFactor | Self::StatError | Self::McStat)
    }
}

impl std::fmt::Display for ModifierKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Modifier {
    /// Creates a modifier that is interpolated by the model's default.
    #[must_use]
    pub fn new(name: impl Into<String>, data: ModifierData) -> Self {
        Self { name: name.into(), data, interpolation: ModifierInterpolation::default() }
    }

    /// Returns its formulas: that of a formula modifier, the coefficients of a morphing.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let (one, terms) = match &self.data {
            ModifierData::Formula(expression) => (Some(expression), &[][..]),
            ModifierData::Morphing(terms) => (None, &terms[..]),
            _ => (None, &[][..]),
        };
        one.into_iter().chain(terms.iter().map(|term| &term.coefficient))
    }

    /// Returns which kind it is.
    #[must_use]
    pub fn kind(&self) -> ModifierKind {
        match self.data {
            ModifierData::NormFactor => ModifierKind::NormFactor,
            ModifierData::NormSys { .. } => ModifierKind::NormSys,
            ModifierData::HistoSys { .. } => ModifierKind::HistoSys,
            ModifierData::ShapeSys(_) => ModifierKind::ShapeSys,
            ModifierData::ShapeFactor => ModifierKind::ShapeFactor,
            ModifierData::StatError(_) => ModifierKind::StatError,
            ModifierData::Lumi => ModifierKind::Lumi,
            ModifierData::Formula(_) => ModifierKind::Formula,
            ModifierData::Morphing(_) => ModifierKind::Morphing,
            ModifierData::McStat(_) => ModifierKind::McStat,
        }
    }
}

/// Event counts of one channel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observation {
    /// The channel's name.
    pub name: String,
    /// Counts, one per bin; not necessarily whole numbers.
    pub data: Vec<f64>,
}

/// A parameter of interest and settings of parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measurement {
    /// The measurement's name, unique in the workspace.
    pub name: String,
    /// The parameter of interest, or the first of several; `None` when the document leaves it
    /// empty. Others are of interest by [`ParameterConfig::is_poi`].
    pub poi: Option<String>,
    /// Settings, one entry per parameter that has any.
    pub parameters: Vec<ParameterConfig>,
    /// The lowest values of yields.
    pub clip: Clipping,
}

impl Measurement {
    /// Returns the names of the parameters of interest, the first one first.
    pub fn pois(&self) -> impl Iterator<Item = &str> {
        let first = self.poi.as_deref();
        let others = self.parameters.iter().filter(|config| config.is_poi).map(|config| config.name.as_str());
        first.into_iter().chain(others.filter(move |name| Some(*name) != first))
    }

    /// Returns the groups of uncertainties with the names of their parameters, in the order of the
    /// settings.
    #[must_use]
    pub fn groups(&self) -> Vec<(&str, Vec<&str>)> {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for config in &self.parameters {
            for group in &config.groups {
                match groups.iter_mut().find(|(name, _)| name == group) {
                    // A member counts once, however often it says so.
                    Some((_, members)) if members.contains(&&*config.name) => {}
                    Some((_, members)) => members.push(&config.name),
                    None => groups.push((group, vec![&config.name])),
                }
            }
        }
        groups
    }
}

/// The lowest values of yields, at three stages; absent means "no limit". A yield below its limit
/// is replaced by the limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Clipping {
    /// For the template of a sample that has a histosys, with its shifts and before any factor: 0
    /// in ROOT. [`TemplateRule::clip`] replaces it.
    pub templates: Option<f64>,
    /// For a sample's yield with all its factors: pyhf's `clip_sample_data`.
    pub samples: Option<f64>,
    /// For the sum of all samples: pyhf's `clip_bin_data`.
    pub bins: Option<f64>,
}

/// What a measurement sets for one parameter (or parameter vector); absent means "as the modifier
/// has it".
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParameterConfig {
    /// The parameter's name.
    pub name: String,
    /// Starting values.
    pub inits: Option<Vec<f64>>,
    /// Allowed ranges.
    pub bounds: Option<Vec<[f64; 2]>>,
    /// Centres of the constraint terms.
    pub auxdata: Option<Vec<f64>>,
    /// Scale factors τ of Poisson constraint terms.
    pub factors: Option<Vec<f64>>,
    /// Widths of Gaussian constraint terms.
    pub sigmas: Option<Vec<f64>>,
    /// Whether fits keep the parameter at its starting value.
    pub fixed: Option<bool>,
    /// Constraint terms in place of the modifier's, one per element.
    pub constraints: Option<Vec<ConstraintTerm>>,
    /// Constraint terms whose widths are the relative uncertainties of a staterror or shapesys.
    pub per_bin: Option<PerBinConstraint>,
    /// The quantity that the terms of [`Self::constraints`] constrain, if it is not the parameter.
    pub beta: Option<ConstrainedQuantity>,
    /// Names of the elements of a vector, in place of `name[i]`.
    pub elements: Option<Vec<String>>,
    /// Whether the parameter is of interest beside [`Measurement::poi`]; without a meaning if no
    /// modifier uses it.
    pub is_poi: bool,
    /// The groups of uncertainties that the parameter, or the vector, belongs to.
    pub groups: Vec<String>,
}

/// The constraint term of one element of a parameter; `a` is its auxiliary datum.
///
/// Without `auxdata` the datum is the one that the term expects where the parameter is nominal: at
/// 0 for normsys and histosys, and at 1 for all others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ConstraintTerm {
    /// Normal distribution of a around θ.
    Gaussian {
        /// The standard deviation.
        sigma: f64,
    },
    /// Two halves of normal distributions that meet at θ = a.
    AsymmetricGaussian {
        /// The standard deviation for θ < a.
        sigma_lo: f64,
        /// The standard deviation for θ > a.
        sigma_hi: f64,
    },
    /// Poisson distribution of a with mean τθ.
    Poisson {
        /// The scale τ.
        tau: f64,
    },
    /// Gamma density of θ (or β) with shape a + 1 and rate τ: the Poisson term but for a constant.
    Gamma {
        /// The rate τ.
        tau: f64,
    },
    /// Log-normal distribution, whose logarithm has the standard deviation ln κ.
    LogNormal {
        /// κ, above 1.
        kappa: f64,
        /// Of which quantity it is the density.
        density: LogNormalDensity,
    },
    /// No constraint term: the element is free.
    Flat,
}

/// The quantity of which a log-normal constraint term is the density.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogNormalDensity {
    /// The auxiliary datum, with median θ: -ln L is smallest at θ = a.
    #[default]
    Datum,
    /// The parameter, with median a, as in HistFactory: -ln L is smallest at θ = a exp(-ln²κ).
    Parameter,
}

/// The constraint terms of a staterror or shapesys whose relative uncertainties are its own.
///
/// With the relative uncertainty r of a bin, a Gaussian term has σ = r, and a Poisson term τ =
/// 1/r².
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerBinConstraint {
    /// The kind of term; `None` for that of the modifier.
    pub constraint: Option<PerBinKind>,
    /// Bins with a relative uncertainty below this are fixed at 1 and have no term: 0.05 for a
    /// staterror in ROOT, unless its configuration says otherwise.
    pub relative_threshold: Option<f64>,
}

/// The kind of the constraint terms of a staterror or shapesys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PerBinKind {
    /// As pyhf's staterror.
    Gaussian,
    /// As pyhf's shapesys, and ROOT's default for a staterror.
    Poisson,
}

/// The quantity β = offset + factor·θ in place of θ in gamma and log-normal constraint terms.
///
/// HistFactory constrains the factor β of a systematic whose α is (β - 1)/s: offset 1 and factor s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConstrainedQuantity {
    /// Its value at θ = 0.
    pub offset: f64,
    /// Its change per unit of θ, which is positive.
    pub factor: f64,
}

impl Default for ConstrainedQuantity {
    /// Returns the parameter itself.
    fn default() -> Self {
        Self { offset: 0.0, factor: 1.0 }
    }
}
