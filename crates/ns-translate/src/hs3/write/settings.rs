//! What the modifiers make of each parameter, and what the measurements set for it.

use std::collections::HashMap;

use ns_core::spec::{
    Channel, ConstraintTerm, Modifier, ModifierData, ModifierKind, ParameterConfig, PerBinKind, Sample, Workspace,
};

use super::names::TermNames;
use crate::not_representable::Lacking;

/// A parameter, or a vector of them.
pub(super) struct ParameterRole<'w> {
    pub(super) kind: ModifierKind,
    pub(super) n_elements: usize,
    /// The name of each element in the document.
    pub(super) elements: Vec<String>,
    /// The names of what its constraint term needs, if it has a distribution of its own.
    pub(super) names: TermNames,
    /// Relative uncertainties of a shapesys or staterror (B), 0 where the model has no term.
    pub(super) relative: Vec<f64>,
    /// The settings in each measurement.
    pub(super) configs: Vec<Option<&'w ParameterConfig>>,
    /// The place of its first use.
    pub(super) pointer: String,
    /// Of a staterror, Σ nominal and Σ squared uncertainties (B).
    sums: Vec<[f64; 2]>,
    channel: usize,
}

impl ParameterRole<'_> {
    /// Returns whether it has one element for each bin.
    pub(super) fn is_vector(&self) -> bool {
        matches!(self.kind, ModifierKind::ShapeSys | ModifierKind::StatError | ModifierKind::ShapeFactor)
    }

    /// Returns pyhf's starting value.
    pub(super) fn default_init(&self) -> f64 {
        if matches!(self.kind, ModifierKind::NormSys | ModifierKind::HistoSys) { 0.0 } else { 1.0 }
    }

    /// Returns pyhf's range.
    pub(super) fn default_bounds(&self) -> [f64; 2] {
        match self.kind {
            ModifierKind::NormSys | ModifierKind::HistoSys => [-5.0, 5.0],
            ModifierKind::ShapeSys | ModifierKind::StatError => [1e-10, 10.0],
            _ => [0.0, 10.0],
        }
    }

    /// Returns whether the model fixes an element by itself.
    pub(super) fn is_fixed_by_model(&self, element: usize, threshold: f64) -> bool {
        match self.kind {
            ModifierKind::ShapeSys | ModifierKind::StatError => {
                self.relative[element] <= 0.0 || self.relative[element] < threshold
            }
            _ => false,
        }
    }

    /// Returns the settings that decide on constraint terms: those of the first measurement.
    pub(super) fn config(&self) -> Option<&ParameterConfig> {
        self.configs.first().copied().flatten()
    }

    /// Returns the kind of per-bin terms, and the threshold.
    pub(super) fn per_bin(&self) -> (PerBinKind, f64) {
        let own = if self.kind == ModifierKind::StatError { PerBinKind::Gaussian } else { PerBinKind::Poisson };
        let per_bin = self.config().and_then(|config| config.per_bin);
        let kind = per_bin.and_then(|per_bin| per_bin.constraint).unwrap_or(own);
        (kind, per_bin.and_then(|per_bin| per_bin.relative_threshold).unwrap_or(0.0))
    }

    /// Returns the constraint term that measurements set for a parameter of one element.
    pub(super) fn own_term(&self) -> Option<ConstraintTerm> {
        let terms = self.config()?.constraints.as_deref()?;
        terms.first().copied()
    }
}

/// The parameters of a workspace, in the order in which they are met.
pub(super) struct Roles<'w> {
    pub(super) roles: Vec<(&'w str, ParameterRole<'w>)>,
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
                        continue;
                    }
                    roles.add(workspace, Use { channel: c, sample, modifier, pointer }, lacking);
                }
            }
            check_staterrors(c, channel, lacking);
        }
        for (_, role) in &mut roles.roles {
            role.finish();
        }
        roles.check_terms(workspace, lacking);
        roles
    }

    fn add(&mut self, workspace: &'w Workspace, used: Use<'w>, lacking: &mut Lacking) {
        let name = used.modifier.name.as_str();
        let kind = used.modifier.kind();
        let Some(&known) = self.index.get(name) else {
            self.index.insert(name, self.roles.len());
            self.roles.push((name, role(workspace, &used)));
            return;
        };
        let known = &mut self.roles[known].1;
        let alphas = [ModifierKind::NormSys, ModifierKind::HistoSys];
        if known.kind != kind && !(alphas.contains(&kind) && alphas.contains(&known.kind)) {
            lacking.add("modifiers of several types called", name, used.pointer);
        } else if kind == ModifierKind::StatError && known.channel != used.channel {
            lacking.add("a staterror of several channels", name, used.pointer);
        } else if kind == ModifierKind::StatError {
            known.add_sums(&used);
        } else if kind == ModifierKind::ShapeSys {
            lacking.add("a shapesys of several samples", name, used.pointer);
        }
    }

    /// Returns the role of `name`.
    pub(super) fn get(&self, name: &str) -> Option<&ParameterRole<'w>> {
        self.index.get(name).map(|&index| &self.roles[index].1)
    }

    /// Returns the name in the document of a parameter that may be an element of a vector, as
    /// `gamma[3]`; `None` if the model does not have it.
    pub(super) fn element<'n>(&'n self, name: &'n str) -> Option<&'n str> {
        if self.index.contains_key(name) {
            return Some(name);
        }
        let (vector, bin) = name.strip_suffix(']')?.rsplit_once('[')?;
        let vector = self.get(vector).filter(|role| role.is_vector())?;
        vector.elements.get(bin.parse::<usize>().ok()?).map(String::as_str)
    }

    /// Notes settings of measurements that HS3 has not.
    fn check_terms(&self, workspace: &Workspace, lacking: &mut Lacking) {
        for (m, measurement) in workspace.measurements.iter().enumerate() {
            for (p, config) in measurement.parameters.iter().enumerate() {
                let Some(role) = self.get(&config.name) else { continue };
                let pointer = format!("/measurements/{m}/config/parameters/{p}");
                check_setting(config, role, &pointer, lacking);
                let first = role.config();
                let terms = |config: &ParameterConfig| (config.constraints.clone(), config.per_bin);
                if first.map(terms).unwrap_or_default() != terms(config) {
                    lacking.add("constraint terms that differ between measurements of", &config.name, pointer);
                }
            }
        }
    }
}

/// A modifier and where it is.
struct Use<'w> {
    channel: usize,
    sample: &'w Sample,
    modifier: &'w Modifier,
    pointer: String,
}

fn role<'w>(workspace: &'w Workspace, used: &Use<'w>) -> ParameterRole<'w> {
    let Use { channel, sample, modifier, pointer } = used;
    let kind = modifier.kind();
    let setting = |measurement: &'w ns_core::spec::Measurement| {
        measurement.parameters.iter().find(|config| config.name == modifier.name)
    };
    let mut role = ParameterRole {
        kind,
        n_elements: 1,
        elements: Vec::new(),
        names: TermNames::default(),
        relative: Vec::new(),
        configs: workspace.measurements.iter().map(setting).collect(),
        pointer: pointer.clone(),
        sums: Vec::new(),
        channel: *channel,
    };
    if role.is_vector() {
        role.n_elements = sample.data.len();
    }
    match &modifier.data {
        ModifierData::ShapeSys(uncertainties) => role.relative = relative(&sample.data, uncertainties),
        ModifierData::StatError(_) => {
            role.sums = vec![[0.0; 2]; role.n_elements];
            role.add_sums(used);
        }
        _ => {}
    }
    role
}

/// Returns relative uncertainties, 0 where pyhf fixes the factor.
pub(super) fn relative(nominal: &[f64], uncertainties: &[f64]) -> Vec<f64> {
    let one = |(n, u): (&f64, &f64)| if *n > 0.0 && *u > 0.0 { u / n } else { 0.0 };
    nominal.iter().zip(uncertainties).map(one).collect()
}

impl ParameterRole<'_> {
    fn add_sums(&mut self, used: &Use<'_>) {
        let ModifierData::StatError(uncertainties) = &used.modifier.data else { return };
        for (sum, (n, u)) in self.sums.iter_mut().zip(used.sample.data.iter().zip(uncertainties)) {
            *sum = [sum[0] + n, sum[1] + u * u];
        }
    }

    fn finish(&mut self) {
        if self.kind == ModifierKind::StatError {
            let one = |&[n, square]: &[f64; 2]| if n > 0.0 { square.sqrt() / n } else { 0.0 };
            self.relative = self.sums.iter().map(one).collect();
        }
    }
}

/// Notes a second staterror of a channel: ROOT has one set of statistical uncertainties there.
fn check_staterrors(c: usize, channel: &Channel, lacking: &mut Lacking) {
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

fn check_setting(config: &ParameterConfig, role: &ParameterRole<'_>, pointer: &str, lacking: &mut Lacking) {
    let at = |key: &str| format!("{pointer}/{key}");
    let is_per_bin = matches!(role.kind, ModifierKind::ShapeSys | ModifierKind::StatError);
    let are_units = |values: &Vec<f64>| values.iter().all(|value| value.total_cmp(&1.0).is_eq());
    let auxdata = match role.kind {
        ModifierKind::ShapeSys => config.auxdata.is_some(),
        ModifierKind::StatError => !config.auxdata.as_ref().is_none_or(are_units),
        _ => false,
    };
    let threshold = config.per_bin.and_then(|per_bin| per_bin.relative_threshold);
    let keys = [
        ("the constrained quantity of", "beta", config.beta.is_some()),
        ("widths of terms of", "sigmas", is_per_bin && config.sigmas.is_some()),
        ("scales of terms of", "factors", config.factors.is_some()),
        ("auxiliary data of", "auxdata", auxdata),
        ("constraint terms of", "constraints", is_per_bin && config.constraints.is_some()),
        ("a threshold of the shapesys", "per_bin", role.kind == ModifierKind::ShapeSys && threshold.is_some()),
    ];
    for (what, key, _) in keys.into_iter().filter(|(.., is_given)| *is_given) {
        lacking.add(what, &config.name, at(key));
    }
}
