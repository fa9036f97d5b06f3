//! The facade: settings, procedures with toys, diagnoses and provenance.

mod answers;
mod blinding;
mod combinations;
mod comparison;
mod exclusion;
mod fits;
mod layers;
mod masks;
mod numbers;
mod pois;
mod scanner;
mod settings;
mod signal_search;
mod simplify;
mod stored;
mod tables;
mod tables_by_kind;
mod toys;

use nextstat::CompiledModel;
use serde_json::json;

fn model() -> CompiledModel {
    let workspace = json!({
        "version": "1.0.0",
        "channels": [{"name": "SR", "samples": [
            {"name": "signal", "data": [10.0, 2.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "background", "data": [50.0, 40.0], "modifiers": [
                {"name": "xs", "type": "normsys", "data": {"hi": 1.1, "lo": 0.9}},
                {"name": "stat", "type": "shapesys", "data": [5.0, 4.0]}
            ]}
        ]}],
        "observations": [{"name": "SR", "data": [57.0, 43.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]
    });
    CompiledModel::from_json(workspace.to_string().as_bytes(), &Default::default()).expect("a sound workspace")
}

/// The example of the repository that is called `name`.
fn example(name: &str) -> CompiledModel {
    let path = format!("{}/../../examples/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(path).expect("an example");
    CompiledModel::from_json(&text, &Default::default()).expect("a sound workspace")
}
