//! Gives parameters of random workspaces constraint terms of every kind.

use crate::random::Random;
use ns_core::spec::{
    Channel, ConstrainedQuantity, ConstraintTerm, LogNormalDensity, ModifierKind, ParameterConfig, PerBinConstraint,
    PerBinKind,
};

/// Returns the settings of about half of the parameters of `channels`, each with a term that is not
/// its modifier's.
pub(crate) fn settings(random: &mut Random, channels: &[Channel], oddities: bool) -> Vec<ParameterConfig> {
    let mut settings = Vec::new();
    let mut names: Vec<(&str, ModifierKind)> = channels
        .iter()
        .flat_map(|channel| &channel.samples)
        .flat_map(|sample| &sample.modifiers)
        .map(|modifier| (modifier.name.as_str(), modifier.kind()))
        .collect();
    names.sort_unstable();
    names.dedup_by_key(|(name, _)| *name);
    for (name, kind) in names {
        // The parameter of interest and the luminosity stay what tests expect of them.
        if !["mu", "lumi"].contains(&name) && random.one_in(2) {
            settings.extend(
                setting(random, kind, oddities).map(|found| ParameterConfig { name: name.to_owned(), ..found }),
            );
        }
    }
    settings
}

fn setting(random: &mut Random, kind: ModifierKind, oddities: bool) -> Option<ParameterConfig> {
    match kind {
        ModifierKind::NormSys | ModifierKind::HistoSys => Some(of_alpha(random, oddities)),
        ModifierKind::NormFactor => Some(of_factor(random, oddities)),
        ModifierKind::StatError | ModifierKind::ShapeSys => {
            let constraint = if random.one_in(2) { PerBinKind::Poisson } else { PerBinKind::Gaussian };
            let relative_threshold = random.one_in(2).then_some(0.05);
            let per_bin = Some(PerBinConstraint { constraint: Some(constraint), relative_threshold });
            Some(ParameterConfig { per_bin, ..Default::default() })
        }
        ModifierKind::ShapeFactor
        | ModifierKind::Lumi
        | ModifierKind::Formula
        | ModifierKind::Morphing
        | ModifierKind::McStat => None,
    }
}

fn density(random: &mut Random) -> LogNormalDensity {
    if random.one_in(2) { LogNormalDensity::Datum } else { LogNormalDensity::Parameter }
}

/// Returns a term for a parameter that is 0 at nominal. Only odd models have asymmetric Gaussians,
/// whose second derivative jumps where fits end.
fn of_alpha(random: &mut Random, oddities: bool) -> ParameterConfig {
    let size = random.between(0.05, 0.3);
    let beta = Some(ConstrainedQuantity { offset: 1.0, factor: size });
    let (term, beta) = match random.below(4) {
        1 if !oddities => (ConstraintTerm::Gaussian { sigma: 1.5 }, None),
        0 => (ConstraintTerm::Gaussian { sigma: random.between(0.5, 2.0) }, None),
        1 => {
            let (sigma_lo, sigma_hi) = (random.between(0.5, 1.5), random.between(0.5, 1.5));
            (ConstraintTerm::AsymmetricGaussian { sigma_lo, sigma_hi }, None)
        }
        2 => (ConstraintTerm::Gamma { tau: 1.0 / (size * size) }, beta),
        _ => (ConstraintTerm::LogNormal { kappa: 1.0 + size, density: density(random) }, beta),
    };
    ParameterConfig { constraints: Some(vec![term]), beta, ..Default::default() }
}

/// Returns a term for a parameter that is 1 at nominal.
fn of_factor(random: &mut Random, oddities: bool) -> ParameterConfig {
    let size = random.between(0.05, 0.3);
    let term = match random.below(5) {
        1 if !oddities => ConstraintTerm::Gaussian { sigma: 0.1 },
        0 => ConstraintTerm::Gaussian { sigma: size },
        1 => ConstraintTerm::AsymmetricGaussian { sigma_lo: size, sigma_hi: random.between(0.05, 0.3) },
        2 => ConstraintTerm::Poisson { tau: 1.0 / (size * size) },
        3 => ConstraintTerm::Gamma { tau: 1.0 / (size * size) },
        _ => ConstraintTerm::LogNormal { kappa: 1.0 + size, density: density(random) },
    };
    let auxdata = matches!(term, ConstraintTerm::Gaussian { .. }).then(|| vec![random.between(0.9, 1.1)]);
    ParameterConfig { constraints: Some(vec![term]), auxdata, ..Default::default() }
}
