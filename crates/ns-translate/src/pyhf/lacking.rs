//! What a workspace has beyond pyhf's schema.

use ns_core::spec::{ParameterConfig, Workspace};

use crate::not_representable::{Lacking, NotRepresentable, TemplateLimits};

/// Checks that a workspace has nothing beyond pyhf's schema.
///
/// # Errors
///
/// Everything that pyhf cannot read.
pub(crate) fn require_schema(workspace: &Workspace) -> Result<(), Vec<NotRepresentable>> {
    let mut lacking = Lacking::default();
    lacking.add_yield_rules(workspace, TemplateLimits::None);
    for (c, channel) in workspace.channels.iter().enumerate() {
        for (s, sample) in channel.samples.iter().enumerate() {
            for (m, modifier) in sample.modifiers.iter().enumerate() {
                let at = |key: &str| format!("/channels/{c}/samples/{s}/modifiers/{m}{key}");
                if modifier.kind().has_formula() {
                    lacking.add("a formula or morphing", &modifier.name, at("/type"));
                }
                if modifier.interpolation.rule.is_some() {
                    lacking.add("the interpolation rule of", &modifier.name, at("/interpolation"));
                }
                if modifier.interpolation.scale.is_some() {
                    lacking.add("the scale of", &modifier.name, at("/scale"));
                }
            }
        }
    }
    for (m, measurement) in workspace.measurements.iter().enumerate() {
        let pointer = format!("/measurements/{m}/config");
        for (p, config) in measurement.parameters.iter().enumerate() {
            setting(config, &format!("{pointer}/parameters/{p}"), &mut lacking);
        }
    }
    lacking.into_result()
}

fn setting(config: &ParameterConfig, pointer: &str, lacking: &mut Lacking) {
    let keys = [
        ("constraint terms of", "constraints", config.constraints.is_some()),
        ("the kind of terms of", "per_bin", config.per_bin.is_some()),
        ("the constrained quantity of", "beta", config.beta.is_some()),
    ];
    for (what, key, _) in keys.into_iter().filter(|(.., is_given)| *is_given) {
        lacking.add(what, &config.name, format!("{pointer}/{key}"));
    }
}
