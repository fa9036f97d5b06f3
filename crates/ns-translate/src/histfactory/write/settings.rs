//! Finds what XML cannot say: of names, of modifiers, and of what measurements set.

use std::collections::{HashMap, HashSet};

use ns_core::interpolate::InterpolationRule;
use ns_core::spec::{ConstraintTerm, Modifier, ModifierKind, ParameterConfig, Workspace};

use super::XmlDialect;
use super::roles::{Role, RoleKind, Roles};
use crate::not_representable::Lacking;

/// Notes what XML cannot say of a workspace.
pub(super) fn check(workspace: &Workspace, roles: &Roles<'_>, dialect: XmlDialect, lacking: &mut Lacking) {
    check_names(workspace, lacking);
    check_sizes(workspace, lacking);
    check_root_names(roles, lacking);
    check_luminosities(workspace, roles, dialect, lacking);
    for role in &roles.roles {
        check_role(role, lacking);
        for (m, measurement) in workspace.measurements.iter().enumerate() {
            let Some(p) = measurement.parameters.iter().position(|config| config.name == role.name) else { continue };
            let pointer = format!("/measurements/{m}/config/parameters/{p}");
            check_setting(&measurement.parameters[p], role, m, &pointer, lacking);
            let starts = measurement.parameters[p].inits.as_deref().unwrap_or_default();
            if dialect == XmlDialect::Pyhf && starts.windows(2).any(|pair| pair[0].total_cmp(&pair[1]).is_ne()) {
                lacking.add("different values of the elements at the start of", role.name, format!("{pointer}/inits"));
            }
        }
    }
}

/// Notes names that XML or its readers would change.
fn check_names(workspace: &Workspace, lacking: &mut Lacking) {
    let mut check = |name: &str, pointer: String| {
        let is_control = |character: char| character < ' ' && !matches!(character, '\t' | '\n' | '\r');
        let is_no_character = |character: char| is_control(character) || matches!(character, '\u{fffe}' | '\u{ffff}');
        if name.is_empty() || name.trim() != name || name.contains(is_no_character) {
            lacking.add("the name", name, pointer);
        }
    };
    for (c, channel) in workspace.channels.iter().enumerate() {
        check(&channel.name, format!("/channels/{c}/name"));
        for (s, sample) in channel.samples.iter().enumerate() {
            check(&sample.name, format!("/channels/{c}/samples/{s}/name"));
            for (m, modifier) in sample.modifiers.iter().enumerate() {
                if !matches!(modifier.kind(), ModifierKind::Lumi | ModifierKind::StatError) {
                    check(&modifier.name, format!("/channels/{c}/samples/{s}/modifiers/{m}/name"));
                }
            }
        }
    }
    for (m, measurement) in workspace.measurements.iter().enumerate() {
        check(&measurement.name, format!("/measurements/{m}/name"));
    }
}

/// Notes lists that are empty, and those whose lengths are not the number of bins.
fn check_sizes(workspace: &Workspace, lacking: &mut Lacking) {
    let counts = [("channels", workspace.channels.len()), ("measurements", workspace.measurements.len())];
    for (name, _) in counts.into_iter().filter(|(_, count)| *count == 0) {
        lacking.add("the empty list", name, format!("/{name}"));
    }
    for (c, channel) in workspace.channels.iter().enumerate() {
        let pointer = format!("/channels/{c}");
        let Some(first) = channel.samples.first() else {
            lacking.add("the empty channel", &channel.name, pointer);
            continue;
        };
        let n_bins = first.data.len();
        for (s, sample) in channel.samples.iter().enumerate() {
            let is_other = |modifier: &Modifier| lengths(modifier).into_iter().flatten().any(|length| length != n_bins);
            if sample.data.len() != n_bins || sample.modifiers.iter().any(is_other) {
                lacking.add(
                    "several numbers of bins in one channel, as of",
                    &sample.name,
                    format!("{pointer}/samples/{s}"),
                );
            }
        }
        let observed = workspace.observations.iter().find(|observation| observation.name == channel.name);
        match observed {
            Some(observation) if observation.data.len() == n_bins => {}
            Some(_) => lacking.add("observations with other bins than the channel", &channel.name, pointer),
            None => lacking.add("no observations of the channel", &channel.name, pointer),
        }
    }
}

/// Returns how many numbers a modifier has for the bins.
fn lengths(modifier: &Modifier) -> [Option<usize>; 2] {
    use ns_core::spec::ModifierData::{HistoSys, McStat, ShapeSys, StatError};
    match &modifier.data {
        HistoSys { lo_data, hi_data } => [Some(lo_data.len()), Some(hi_data.len())],
        ShapeSys(numbers) | StatError(numbers) | McStat(numbers) => [Some(numbers.len()), None],
        _ => [None, None],
    }
}

/// Notes parameters to which ROOT or the XML gives the name of another one. Those of the XML are
/// kept apart by a blank, which no name of ROOT begins with.
fn check_root_names(roles: &Roles<'_>, lacking: &mut Lacking) {
    let mut known: HashMap<String, &str> = HashMap::from([("Lumi".to_owned(), "lumi")]);
    let mut channels = HashSet::new();
    for role in &roles.roles {
        // A second staterror of a channel is refused as such.
        if matches!(role.kind, RoleKind::Stat { channel } if !channels.insert(channel)) {
            continue;
        }
        let mut names = if role.is_vector() { role.root_names(0) } else { vec![role.root_name.clone()] };
        if role.is_systematic() {
            names.push(format!("beta_{}", role.name));
        }
        // A staterror is called after its channel.
        let own = role.root_name.strip_prefix("gamma_stat_").filter(|_| matches!(role.kind, RoleKind::Stat { .. }));
        names.push(own.map_or_else(|| format!(" {}", role.name), |channel| format!(" staterror_{channel}")));
        for name in names {
            if known.insert(name, role.name).is_some_and(|other| other != role.name) {
                lacking.add("a name that another parameter has in XML, that of", role.name, role.pointer.clone());
            }
        }
    }
}

fn check_luminosities(workspace: &Workspace, roles: &Roles<'_>, dialect: XmlDialect, lacking: &mut Lacking) {
    let Some(role) = roles.lumi() else { return };
    if role.name != "lumi" {
        lacking.add("a lumi modifier of another name,", role.name, role.pointer.clone());
    }
    let nominal: Vec<Option<f64>> =
        (0..role.configs.len()).map(|m| luminosity(role, m).map(|lumi| lumi.nominal)).collect();
    let is_followed_by_all = workspace
        .channels
        .iter()
        .flat_map(|channel| &channel.samples)
        .all(|sample| sample.modifiers.iter().any(|modifier| modifier.kind() == ModifierKind::Lumi));
    let is_one = nominal.windows(2).all(|pair| pair[0] == pair[1]);
    if dialect == XmlDialect::Root && !is_followed_by_all && !is_one {
        lacking.add("several luminosities, of which some sample follows none:", role.name, role.pointer.clone());
    }
    for m in (0..role.configs.len()).filter(|m| luminosity(role, *m).is_none()) {
        lacking.add("the settings of", role.name, format!("/measurements/{m}/config"));
    }
}

/// The luminosity of a measurement.
pub(super) struct Luminosity {
    pub(super) nominal: f64,
    pub(super) relative_error: f64,
}

/// Returns the luminosity of the measurement `m`, if XML has it.
pub(super) fn luminosity(role: &Role<'_>, m: usize) -> Option<Luminosity> {
    let config = role.configs[m]?;
    let first = |list: &Option<Vec<f64>>| list.as_ref().and_then(|list| list.first().copied());
    let sigma = match role.term(m) {
        Some(ConstraintTerm::Flat) if config.fixed == Some(true) => {
            let nominal = first(&config.inits)?;
            return (nominal > 0.0).then_some(Luminosity { nominal, relative_error: 0.0 });
        }
        Some(ConstraintTerm::Gaussian { sigma }) => sigma,
        Some(_) => return None,
        None => first(&config.sigmas)?,
    };
    let nominal = first(&config.auxdata)?;
    (nominal > 0.0 && sigma > 0.0).then_some(Luminosity { nominal, relative_error: sigma / nominal })
}

/// Notes what XML cannot say of a parameter in all measurements.
fn check_role(role: &Role<'_>, lacking: &mut Lacking) {
    let at = || role.pointer.clone();
    if role.kind == RoleKind::Norm {
        let (value, [low, high]) = role.factor();
        if !(low < high && (low..=high).contains(&value)) {
            lacking.add("a start outside the range of", role.name, at());
        }
    }
    if matches!(role.kind, RoleKind::Stat { .. } | RoleKind::Shape) {
        let default = if role.kind == RoleKind::Shape { (true, 0.0) } else { (false, 0.0) };
        let terms = |config: &Option<&ParameterConfig>| {
            let per_bin = config.and_then(|config| config.per_bin);
            let kind = per_bin.and_then(|per_bin| per_bin.constraint);
            let is_poisson = kind.map_or(default.0, |kind| kind == ns_core::spec::PerBinKind::Poisson);
            (is_poisson, per_bin.and_then(|per_bin| per_bin.relative_threshold).unwrap_or(default.1))
        };
        if role.configs.iter().map(terms).any(|other| other != role.configs.first().map_or(default, terms)) {
            lacking.add("terms of bins that differ between measurements, of", role.name, at());
        }
    }
    let terms = |config: &Option<&ParameterConfig>| config.and_then(|config| config.constraints.clone());
    if role.kind == RoleKind::Free && role.configs.windows(2).any(|pair| terms(&pair[0]) != terms(&pair[1])) {
        lacking.add("constraint terms that differ between measurements, of", role.name, at());
    }
}

/// Notes what XML cannot say of a setting.
fn check_setting(config: &ParameterConfig, role: &Role<'_>, m: usize, pointer: &str, lacking: &mut Lacking) {
    let is = |values: &Option<Vec<f64>>, number: f64| {
        values.as_ref().is_none_or(|values| values.iter().all(|value| value.total_cmp(&number).is_eq()))
    };
    let is_flat = |term: &ConstraintTerm| *term == ConstraintTerm::Flat;
    let (is_replaced, is_shape) = (role.replacement(m).is_some(), role.kind == RoleKind::Shape);
    let is_per_bin = is_shape || matches!(role.kind, RoleKind::Stat { .. });
    let has_terms = config.constraints.as_ref().is_some_and(|terms| match role.kind {
        RoleKind::Norm => !terms.iter().all(is_flat),
        // Checked with its other settings.
        RoleKind::Lumi => false,
        RoleKind::Systematic { .. } => !is_replaced && terms[..] != [ConstraintTerm::Gaussian { sigma: 1.0 }],
        RoleKind::Stat { .. } | RoleKind::Shape => true,
        RoleKind::Free => !terms.iter().all(is_flat) && role.vector_terms().is_none(),
    });
    let has_data = match role.kind {
        RoleKind::Systematic { .. } => !is_replaced && !is(&config.auxdata, 0.0),
        RoleKind::Stat { .. } => !is(&config.auxdata, 1.0),
        RoleKind::Shape => config.auxdata.is_some(),
        RoleKind::Norm | RoleKind::Lumi | RoleKind::Free => false,
    };
    let threshold = config.per_bin.and_then(|per_bin| per_bin.relative_threshold).unwrap_or(0.0);
    let keys = [
        ("constraint terms of", "constraints", has_terms),
        ("the constrained quantity of", "beta", config.beta.is_some() && !is_replaced),
        ("auxiliary data of", "auxdata", has_data),
        ("widths of terms of", "sigmas", is_per_bin && config.sigmas.is_some()),
        ("scales of terms of", "factors", config.factors.is_some()),
        ("a threshold of the shapesys", "per_bin", is_shape && threshold > 0.0),
    ];
    for (what, key, _) in keys.into_iter().filter(|(.., is_given)| *is_given) {
        lacking.add(what, role.name, format!("{pointer}/{key}"));
    }
}

/// Notes the interpolation of a modifier, unless it is that of ROOT's HistFactory.
pub(super) fn check_interpolation(modifier: &Modifier, pointer: &str, lacking: &mut Lacking) {
    let usual = match modifier.kind() {
        ModifierKind::NormSys => Some(InterpolationRule::SmoothExponential),
        ModifierKind::HistoSys => Some(InterpolationRule::SmoothLinear),
        _ => None,
    };
    if modifier.interpolation.rule.is_some() && modifier.interpolation.rule != usual {
        lacking.add("the interpolation rule of", &modifier.name, format!("{pointer}/interpolation"));
    }
    if modifier.interpolation.scale.is_some() {
        lacking.add("the scale of", &modifier.name, format!("{pointer}/scale"));
    }
}
