//! Chooses the templates of a model as inputs.

use ns_core::Model;
use ns_core::templates::{Inputs, TemplateSelection, TemplateVariations};

/// Returns every template of `model` with all its variations and morphing terms, but those of
/// parameters with a normsys that has a rule of its own: it cannot be an input.
///
/// # Panics
/// If the model's own names cannot be chosen, which would be a fault of the engine.
#[must_use]
pub fn every_input(model: &Model) -> Inputs {
    let layout = &model.layout;
    let normsys = model.table(layout.normsys_param).iter().enumerate();
    let is_own = |entry: usize| model.normsys_response(entry) != model.responses.normsys[0];
    let own: Vec<u32> = normsys.filter(|(entry, _)| is_own(*entry)).map(|(_, &param)| param).collect();
    let moving = [layout.normsys_param, layout.histosys_param].map(|span| model.table(span)).concat();
    let mut params: Vec<u32> = moving.into_iter().filter(|param| !own.contains(param)).collect();
    params.sort_unstable();
    params.dedup();
    let mut names: Vec<String> = params.iter().map(|&param| model.parameters.names[param as usize].clone()).collect();
    names.extend_from_slice(&model.coefficients);
    let all = |sample: &String| TemplateSelection {
        sample: sample.clone(),
        channel: None,
        variations: TemplateVariations::Named(names.clone()),
    };
    Inputs::new(model, &model.samples.iter().map(all).collect::<Vec<_>>()).expect("names of the model")
}
