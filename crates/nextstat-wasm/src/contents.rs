//! Channels, samples and parameters of a model, for a page to browse.

use nextstat::CompiledModel;
use ns_core::spec::{Channel, Sample};
use ns_core::summary::summarize;
use serde_json::{Value, json};

use crate::error::EngineError;

/// Returns the channels of the workspace with their samples and modifiers.
pub(crate) fn tree(model: &CompiledModel) -> Value {
    let sample = |sample: &Sample| {
        let modifiers: Vec<Value> = sample
            .modifiers
            .iter()
            .map(|modifier| json!({"name": modifier.name, "type": modifier.kind().as_str()}))
            .collect();
        json!({"name": sample.name, "modifiers": modifiers})
    };
    let channel = |channel: &Channel| {
        let n_bins = channel.samples.first().map_or(0, |sample| sample.data.len());
        let samples: Vec<Value> = channel.samples.iter().map(sample).collect();
        json!({"name": channel.name, "n_bins": n_bins, "samples": samples})
    };
    json!({"channels": model.workspace_outline().channels.iter().map(channel).collect::<Vec<_>>()})
}

/// Returns the parameters (P) of a model with their starting values and ranges (`null` for an end
/// that is not bounded), in the order of its parameters.
pub(crate) fn parameters(compiled: &CompiledModel) -> Result<Value, EngineError> {
    let model = compiled.model();
    let summary = summarize(compiled.workspace_outline(), Some(&model.measurement))?;
    let constraint = |name: &str| {
        let bare = name.split('[').next().unwrap_or(name);
        let found = summary.systematics.iter().find(|(known, _, _)| known == name || known == bare);
        found.map(|(_, constraint, _)| constraint.as_str())
    };
    let parameters = &model.parameters;
    let parameter = |i: usize| {
        let name = &parameters.names[i];
        let (low, high) = (parameters.lower[i], parameters.upper[i]);
        json!({
            "name": name,
            "init": parameters.init[i],
            "bounds": [finite(low), finite(high)],
            "fixed": parameters.fixed[i],
            "constraint": constraint(name),
            "is_poi": model.pois.contains(&i),
        })
    };
    Ok((0..parameters.names.len()).map(parameter).collect())
}

fn finite(end: f64) -> Option<f64> {
    Some(end).filter(|end| end.is_finite())
}
