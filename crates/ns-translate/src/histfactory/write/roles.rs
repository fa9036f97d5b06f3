//! What the modifiers make of each parameter, and what the measurements set for it.

use std::collections::HashMap;

use ns_core::spec::{Channel, ConstraintTerm, Modifier, ModifierKind, ParameterConfig, PerBinKind, Sample, Workspace};

use crate::not_representable::Lacking;

/// What a parameter, or a vector of them, is in HistFactory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RoleKind {
    /// `NormFactor`.
    Norm,
    /// The luminosity.
    Lumi,
    /// `OverallSys` and `HistoSys`, with whether there is any of each.
    Systematic { has_overall: bool, has_histo: bool },
    /// `StatError` of a channel.
    Stat { channel: usize },
    /// `ShapeSys`.
    Shape,
    /// `ShapeFactor`; one with constraint terms is written as a `ShapeSys`.
    Free,
}

impl RoleKind {
    fn of(modifier: &Modifier, channel: usize) -> Option<Self> {
        Some(match modifier.kind() {
            ModifierKind::NormFactor => Self::Norm,
            ModifierKind::Lumi => Self::Lumi,
            ModifierKind::NormSys => Self::Systematic { has_overall: true, has_histo: false },
            ModifierKind::HistoSys => Self::Systematic { has_overall: false, has_histo: true },
            ModifierKind::StatError => Self::Stat { channel },
            ModifierKind::ShapeSys => Self::Shape,
            ModifierKind::ShapeFactor => Self::Free,
            // Each is refused where its modifier is.
            ModifierKind::Formula | ModifierKind::Morphing | ModifierKind::McStat => return None,
        })
    }
}

/// A parameter, or a vector of them.
pub(super) struct Role<'w> {
    pub(super) name: &'w str,
    pub(super) kind: RoleKind,
    /// One for each bin of a vector, or 1.
    pub(super) n_elements: usize,
    /// What the names of its parameters begin with in ROOT: all of the name if it is no vector.
    pub(super) root_name: String,
    /// The settings in each measurement.
    pub(super) configs: Vec<Option<&'w ParameterConfig>>,
    /// The place of its first use.
    pub(super) pointer: String,
    /// How many samples use it.
    pub(super) n_uses: usize,
    /// Whether all yields of the samples that use it are positive.
    pub(super) has_positive_yields: bool,
}

/// The term in place of the normal distribution of a systematic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Replacement {
    /// With a relative uncertainty.
    Gamma(f64),
    /// With a relative uncertainty.
    LogNormal(f64),
    /// No term.
    Uniform,
}

/// The terms of a vector whose relative uncertainties are its own.
pub(super) struct VectorTerms {
    pub(super) kind: PerBinKind,
    /// Relative uncertainties (B).
    pub(super) relative: Vec<f64>,
}

impl Role<'_> {
    /// Returns whether it has one element for each bin.
    pub(super) fn is_vector(&self) -> bool {
        matches!(self.kind, RoleKind::Stat { .. } | RoleKind::Shape | RoleKind::Free)
    }

    /// Returns whether it is the parameter of systematics.
    pub(super) fn is_systematic(&self) -> bool {
        matches!(self.kind, RoleKind::Systematic { .. })
    }

    /// Returns where it starts without a setting.
    pub(super) fn default_init(&self) -> f64 {
        if self.is_systematic() { 0.0 } else { 1.0 }
    }

    /// Returns the value of an element at the start in the measurement `m`.
    pub(super) fn init(&self, m: usize, element: usize) -> f64 {
        let inits = self.configs[m].and_then(|config| config.inits.as_ref());
        inits.and_then(|inits| inits.get(element).copied()).unwrap_or(self.default_init())
    }

    /// Returns the names of its parameters in ROOT, in the measurement `m`.
    pub(super) fn root_names(&self, m: usize) -> Vec<String> {
        if self.is_vector() {
            return (0..self.n_elements).map(|bin| format!("{}_bin_{bin}", self.root_name)).collect();
        }
        match self.replacement(m) {
            Some(Replacement::Gamma(_)) => vec![format!("beta_{}", self.name)],
            _ => vec![self.root_name.clone()],
        }
    }

    /// Returns the first setting of any measurement.
    pub(super) fn first_config(&self) -> Option<&ParameterConfig> {
        self.configs.iter().flatten().copied().next()
    }

    /// Returns the values of the elements at the start, if all measurements have the same ones and
    /// they are not all 1.
    pub(super) fn initial_shape(&self) -> Option<Vec<f64>> {
        let shape = |m: usize| (0..self.n_elements).map(|element| self.init(m, element)).collect::<Vec<f64>>();
        let first = shape(0);
        let is_shared = (1..self.configs.len()).all(|m| shape(m) == first);
        (is_shared && first.iter().any(|value| *value != 1.0)).then_some(first)
    }

    /// Returns the value and the range of a factor for all measurements.
    pub(super) fn factor(&self) -> (f64, [f64; 2]) {
        let config = self.first_config();
        let value = config.and_then(|config| config.inits.as_ref()).and_then(|inits| inits.first().copied());
        let range = config.and_then(|config| config.bounds.as_ref()).and_then(|bounds| bounds.first().copied());
        (value.unwrap_or(1.0), range.unwrap_or([0.0, 10.0]))
    }

    /// Returns the kind of the terms of bins, and the threshold: those of the first measurement.
    pub(super) fn per_bin(&self) -> (PerBinKind, f64) {
        let own = if self.kind == RoleKind::Shape { PerBinKind::Poisson } else { PerBinKind::Gaussian };
        let per_bin = self.configs.first().copied().flatten().and_then(|config| config.per_bin);
        let kind = per_bin.and_then(|per_bin| per_bin.constraint).unwrap_or(own);
        (kind, per_bin.and_then(|per_bin| per_bin.relative_threshold).unwrap_or(0.0))
    }

    /// Returns the one constraint term that the measurement `m` sets.
    pub(super) fn term(&self, m: usize) -> Option<ConstraintTerm> {
        self.configs[m]?.constraints.as_ref()?.first().copied()
    }

    /// Returns the term in place of the normal distribution in the measurement `m`, if it is one
    /// that XML has.
    pub(super) fn replacement(&self, m: usize) -> Option<Replacement> {
        let RoleKind::Systematic { has_histo, .. } = self.kind else { return None };
        let config = self.configs[m]?;
        let term = self.term(m)?;
        if term == ConstraintTerm::Flat {
            return Some(Replacement::Uniform);
        }
        let beta = config.beta.filter(|beta| beta.offset.total_cmp(&1.0).is_eq() && beta.factor > 0.0)?;
        let relative = beta.factor;
        let has_datum = |expected: f64| match config.auxdata.as_deref() {
            Some([datum]) => is_close(*datum, expected),
            _ => true,
        };
        match term {
            ConstraintTerm::Gamma { tau }
                if !has_histo && is_close(tau, 1.0 / (relative * relative)) && has_datum(tau) =>
            {
                Some(Replacement::Gamma(relative))
            }
            ConstraintTerm::LogNormal { kappa, density: ns_core::spec::LogNormalDensity::Datum }
                if !has_histo && is_close(kappa, 1.0 + relative) && has_datum(1.0) =>
            {
                Some(Replacement::LogNormal(relative))
            }
            _ => None,
        }
    }

    /// Returns the terms of a shapefactor, if all measurements have the same ones and a `ShapeSys`
    /// has them: all Gaussian around 1, or all Poisson with the data that they expect.
    pub(super) fn vector_terms(&self) -> Option<VectorTerms> {
        let config = self.configs.first().copied().flatten()?;
        let mut kind = None;
        let mut relative = Vec::new();
        for (bin, term) in config.constraints.as_ref()?.iter().enumerate() {
            let (own, width, expected) = match *term {
                ConstraintTerm::Gaussian { sigma } => (PerBinKind::Gaussian, sigma, 1.0),
                ConstraintTerm::Poisson { tau } => (PerBinKind::Poisson, tau.sqrt().recip(), tau),
                _ => return None,
            };
            let datum = config.auxdata.as_ref().and_then(|data| data.get(bin).copied());
            if *kind.get_or_insert(own) != own || datum.is_some_and(|datum| !is_close(datum, expected)) || width <= 0.0
            {
                return None;
            }
            relative.push(width);
        }
        let is_read_back = self.n_uses > 1 || self.has_positive_yields;
        Some(VectorTerms { kind: kind.filter(|_| is_read_back)?, relative })
    }
}

/// Returns whether two numbers are the same but for a few roundings.
pub(super) fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * b.abs()
}

/// The parameters of a workspace, in the order in which they are met.
pub(super) struct Roles<'w> {
    pub(super) roles: Vec<Role<'w>>,
    index: HashMap<&'w str, usize>,
}

impl<'w> Roles<'w> {
    /// Finds the parameters of all modifiers.
    pub(super) fn collect(workspace: &'w Workspace, lacking: &mut Lacking) -> Self {
        let mut roles = Self { roles: Vec::new(), index: HashMap::new() };
        for (c, channel) in workspace.channels.iter().enumerate() {
            for (s, sample) in channel.samples.iter().enumerate() {
                for (m, modifier) in sample.modifiers.iter().enumerate() {
                    let pointer = format!("/channels/{c}/samples/{s}/modifiers/{m}");
                    if modifier.kind().has_formula() {
                        lacking.add("a formula or morphing", &modifier.name, format!("{pointer}/type"));
                    }
                    if let Some(kind) = RoleKind::of(modifier, c) {
                        roles.add(workspace, Use { channel, sample, modifier, kind, pointer }, lacking);
                    }
                }
            }
            check_stat_errors(c, channel, lacking);
        }
        roles
    }

    fn add(&mut self, workspace: &'w Workspace, used: Use<'w>, lacking: &mut Lacking) {
        let name = used.modifier.name.as_str();
        let Some(&known) = self.index.get(name) else {
            self.index.insert(name, self.roles.len());
            self.roles.push(role(workspace, used));
            return;
        };
        let known = &mut self.roles[known];
        known.n_uses += 1;
        known.has_positive_yields &= has_positive_yields(used.sample);
        match (&mut known.kind, used.kind) {
            (
                RoleKind::Systematic { has_overall, has_histo },
                RoleKind::Systematic { has_overall: overall, has_histo: histo },
            ) => {
                *has_overall |= overall;
                *has_histo |= histo;
            }
            (RoleKind::Stat { channel }, RoleKind::Stat { channel: other }) if *channel != other => {
                lacking.add("a staterror of several channels", name, used.pointer);
            }
            (RoleKind::Shape, RoleKind::Shape) => lacking.add("a shapesys of several samples", name, used.pointer),
            (known, other) if *known != other => {
                lacking.add("modifiers of several types called", name, used.pointer);
            }
            _ => {}
        }
    }

    /// Returns the role of `name`.
    pub(super) fn get(&self, name: &str) -> Option<&Role<'w>> {
        self.index.get(name).map(|&index| &self.roles[index])
    }

    /// Returns the role of the luminosity, if any sample follows it.
    pub(super) fn lumi(&self) -> Option<&Role<'w>> {
        self.roles.iter().find(|role| role.kind == RoleKind::Lumi)
    }

    /// Returns the name in ROOT of a parameter that may be an element of a vector, as `gamma[3]`;
    /// `None` if the model does not have it.
    pub(super) fn root_name(&self, name: &str, m: usize) -> Option<String> {
        if let Some(role) = self.get(name) {
            return if role.is_vector() { None } else { role.root_names(m).into_iter().next() };
        }
        let (vector, bin) = name.strip_suffix(']')?.rsplit_once('[')?;
        let role = self.get(vector).filter(|role| role.is_vector())?;
        role.root_names(m).into_iter().nth(bin.parse().ok()?)
    }
}

/// A modifier and where it is.
struct Use<'w> {
    channel: &'w Channel,
    sample: &'w Sample,
    modifier: &'w Modifier,
    kind: RoleKind,
    pointer: String,
}

fn role<'w>(workspace: &'w Workspace, used: Use<'w>) -> Role<'w> {
    let Use { channel, sample, modifier, kind, pointer } = used;
    let name = modifier.name.as_str();
    let root_name = match kind {
        RoleKind::Norm => name.to_owned(),
        RoleKind::Lumi => "Lumi".to_owned(),
        RoleKind::Systematic { .. } => format!("alpha_{name}"),
        RoleKind::Stat { .. } => format!("gamma_stat_{}", channel.name),
        RoleKind::Shape | RoleKind::Free => format!("gamma_{name}"),
    };
    let is_vector = matches!(kind, RoleKind::Stat { .. } | RoleKind::Shape | RoleKind::Free);
    let n_elements = if is_vector { sample.data.len() } else { 1 };
    let setting =
        |measurement: &'w ns_core::spec::Measurement| measurement.parameters.iter().find(|config| config.name == name);
    let configs = workspace.measurements.iter().map(setting).collect();
    let has_positive_yields = has_positive_yields(sample);
    Role { name, kind, n_elements, root_name, configs, pointer, n_uses: 1, has_positive_yields }
}

fn has_positive_yields(sample: &Sample) -> bool {
    sample.data.iter().all(|yields| *yields > 0.0)
}

/// Notes a second staterror of a channel: ROOT has one set of statistical uncertainties there.
fn check_stat_errors(c: usize, channel: &Channel, lacking: &mut Lacking) {
    let mut first: Option<&str> = None;
    for (s, sample) in channel.samples.iter().enumerate() {
        let mut in_sample = 0;
        for (m, modifier) in sample.modifiers.iter().enumerate() {
            if modifier.kind() != ModifierKind::StatError {
                continue;
            }
            in_sample += 1;
            let first = *first.get_or_insert(&modifier.name);
            if first != modifier.name || in_sample > 1 {
                let pointer = format!("/channels/{c}/samples/{s}/modifiers/{m}");
                lacking.add("a second staterror of the channel,", &modifier.name, pointer);
            }
        }
    }
}
