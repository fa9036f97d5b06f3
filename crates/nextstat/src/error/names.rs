//! The names that the interfaces give to settings, procedures and remedies.

use ns_core::advice::{Advice, Remedy};

/// The interface that shows an error, which decides how settings and procedures are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// The command: settings are options such as `--fix`.
    Command,
    /// Python and Rust: settings are arguments or fields such as `fixed`.
    Library,
}

impl Face {
    /// Returns `advice` with the options or the arguments of this interface.
    #[must_use]
    pub fn words(self, advice: &Advice) -> String {
        advice.worded(|remedy| self.spells(remedy))
    }

    fn spells(self, remedy: Remedy) -> &'static str {
        let [command, library] = match remedy {
            Remedy::NoPoi => ["--poi none", "poi=\"none\""],
            Remedy::Patches => ["--patch", "patches=..."],
            Remedy::PatchFile => ["--patch FILE", "patches=..."],
            Remedy::PatchSet => ["--patchset", "patchset=..."],
            Remedy::NamedPatch => ["--patchset FILE --patch-name NAME", "patchset=..., patch_name=..."],
        };
        self.either(command, library)
    }

    pub(crate) fn either<T>(self, command: T, library: T) -> T {
        match self {
            Self::Command => command,
            Self::Library => library,
        }
    }
}

/// A setting named by an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the field or argument of its name")]
pub enum Setting {
    Asimov,
    AsimovAt,
    At,
    Blind,
    BlindAbove,
    Bounds,
    Channel,
    Cl,
    ContourLevels,
    Data,
    FitChannels,
    Fixed,
    FreezeParameters,
    Grid,
    Init,
    Join,
    Level,
    Mask,
    MergeChannels,
    Minos,
    MinosCl,
    Parameter,
    Poi,
    PoiUncertainty,
    Mu,
    Seed,
    SetParameterRanges,
    SetParameters,
    True,
}

impl Setting {
    /// Returns the name that `face` gives the setting.
    #[must_use]
    pub fn name(self, face: Face) -> &'static str {
        let [command, library] = match self {
            Self::Asimov => ["--asimov", "asimov"],
            Self::AsimovAt => ["--asimov-at", "params"],
            Self::At => ["--at", "at"],
            Self::Blind => ["--blind", "blind"],
            Self::BlindAbove => ["--blind-above", "blind_above"],
            Self::Bounds => ["--bounds", "bounds"],
            Self::Channel => ["--channel", "channels"],
            Self::Cl => ["--cl", "cl"],
            Self::ContourLevels => ["--contour", "levels"],
            Self::Data => ["--data", "data"],
            Self::FitChannels => ["--fit-channels", "fit_channels"],
            Self::Fixed => ["--fix", "fixed"],
            Self::FreezeParameters => ["--freezeParameters", "fixed"],
            Self::Grid => ["--grid", "grid"],
            Self::Init => ["--init", "init"],
            Self::Join => ["--join", "join"],
            Self::Level => ["--level", "level"],
            Self::Mask => ["--mask", "mask"],
            Self::MergeChannels => ["--merge-channels", "merge_channels"],
            Self::Minos => ["--minos", "minos"],
            Self::MinosCl => ["--minos-cl", "minos_cl"],
            Self::Parameter => ["--parameter", "parameter"],
            Self::Poi => ["--poi", "poi"],
            Self::PoiUncertainty => ["--poi-uncertainty", "poi_uncertainty"],
            Self::Mu => ["--mu", "mu"],
            Self::Seed => ["--seed", "seed"],
            Self::SetParameterRanges => ["--setParameterRanges", "bounds"],
            Self::SetParameters => ["--setParameters", "params"],
            Self::True => ["--true", "true_values"],
        };
        face.either(command, library)
    }
}

/// A procedure named by an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the procedure of its name")]
pub enum Procedure {
    Contours,
    Coverage,
    Hypotest,
    HypotestToys,
    Interval,
    Limit,
    Ranking,
    Scan,
    Session,
    Significance,
    Simplify,
    Toys,
}

impl Procedure {
    /// Returns the name that `face` gives the procedure.
    #[must_use]
    pub fn name(self, face: Face) -> &'static str {
        let [command, library] = match self {
            Self::Contours => ["scan --contour", "contours"],
            Self::Coverage => ["coverage", "coverage"],
            Self::Hypotest => ["hypotest", "hypotest"],
            Self::HypotestToys => ["hypotest-toys", "hypotest_toys"],
            Self::Interval => ["interval", "interval"],
            Self::Limit => ["limit", "upper_limit"],
            Self::Ranking => ["ranking", "ranking"],
            Self::Scan => ["scan", "profile_scan"],
            Self::Session => ["session", "ProfiledDifferentiableSession"],
            Self::Significance => ["significance", "significance"],
            Self::Simplify => ["simplify", "simplify"],
            Self::Toys => ["toys", "fit_toys"],
        };
        face.either(command, library)
    }
}

/// A procedure or a setting that needs a parameter of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedsPoi {
    /// A procedure.
    Procedure(Procedure),
    /// A setting.
    Setting(Setting),
}

impl NeedsPoi {
    pub(super) fn name(self, face: Face) -> &'static str {
        match self {
            Self::Procedure(procedure) => procedure.name(face),
            Self::Setting(setting) => setting.name(face),
        }
    }
}
