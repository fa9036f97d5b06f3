//! Parameter points and domains, one of each for every measurement.

use ns_core::spec::ModifierKind;
use serde_json::{Map, Value, json};

use super::names::DocumentNames;
use super::settings::{ParameterRole, Roles};
use super::terms;

/// Returns the domains of all measurements.
pub(super) fn domains(roles: &Roles<'_>, names: &DocumentNames) -> Vec<Value> {
    let domain = |(m, name): (usize, &String)| {
        let mut axes = Vec::new();
        for (_, role) in &roles.roles {
            let bounds = role.configs[m].and_then(|config| config.bounds.as_deref()).unwrap_or_default();
            for (element, name) in role.elements.iter().enumerate() {
                let [min, max] = bounds.get(element).copied().unwrap_or(role.default_bounds());
                axes.push(json!({"name": name, "min": min, "max": max}));
            }
        }
        json!({"name": name, "type": "product_domain", "axes": axes})
    };
    names.domains.iter().enumerate().map(domain).collect()
}

/// Returns the parameter points of all measurements.
pub(super) fn points(roles: &Roles<'_>, names: &DocumentNames) -> Vec<Value> {
    let point = |(m, name): (usize, &String)| {
        let mut parameters = Vec::new();
        for (_, role) in &roles.roles {
            parameters.extend(entries(role, m));
            let values = terms::values(role, m).into_iter();
            parameters.extend(values.map(|value| json!({"name": value.name, "value": value.value, "const": true})));
        }
        json!({"name": name, "parameters": parameters})
    };
    names.points.iter().enumerate().map(point).collect()
}

fn entries(role: &ParameterRole<'_>, m: usize) -> Vec<Value> {
    let config = role.configs[m];
    let inits = config.and_then(|config| config.inits.as_deref()).unwrap_or_default();
    let is_fixed = config.and_then(|config| config.fixed).unwrap_or(false);
    let threshold = if role.kind == ModifierKind::StatError { role.per_bin().1 } else { 0.0 };
    let entry = |(element, name): (usize, &String)| {
        let value = inits.get(element).copied().unwrap_or(role.default_init());
        let mut entry = Map::new();
        entry.insert("name".to_owned(), name.as_str().into());
        entry.insert("value".to_owned(), json!(value));
        if is_fixed || role.is_fixed_by_model(element, threshold) {
            entry.insert("const".to_owned(), true.into());
        }
        Value::Object(entry)
    };
    role.elements.iter().enumerate().map(entry).collect()
}
