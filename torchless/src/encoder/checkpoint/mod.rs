//! Encoders whose weights are in safetensors and whose sizes are in a `config.json` beside them.
//!
//! The graph that is made of them has the operators of an ONNX file, so that everything after it is
//! shared. Every tensor of the file has a place in the model, and every field that changes the
//! output is read or refused.

mod bert;
mod distilbert;
mod network;
mod pairs;
mod part;
mod vit;

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::graph::{Dimension, Graph, Unary};
use crate::error::{Error, Problem};
use crate::files::hugging_face::Fields;
use crate::files::{Tensors, json, safetensors};
use network::Network;

/// The kinds of encoders that are known, as `model_type` names them.
const MODEL_TYPES: [&str; 5] = ["bert", "distilbert", "roberta", "vit", "particle_transformer"];

/// A graph, and the kind of model that it is.
pub(super) struct Checkpoint {
    pub(super) model_type: &'static str,
    pub(super) graph: Graph,
}

/// Returns whether `path` is a folder or a `.safetensors` file, and not an ONNX file.
pub(super) fn is_checkpoint(path: &Path) -> bool {
    path.is_dir() || path.extension().is_some_and(|extension| extension == "safetensors")
}

/// Returns whether `path` is such a folder or file, and its `config.json` names an encoder.
pub(super) fn is_encoder(path: &Path) -> bool {
    let named = || -> Option<bool> {
        let object = json::read_object(&config_path(path)).ok()?;
        Some(MODEL_TYPES.contains(&object.get("model_type")?.as_str()?))
    };
    is_checkpoint(path) && named().unwrap_or(false)
}

fn config_path(path: &Path) -> std::path::PathBuf {
    if path.is_dir() { path.join("config.json") } else { path.with_file_name("config.json") }
}

/// Reads the model in a folder, or in a `.safetensors` file beside its `config.json`.
pub(super) fn read(path: &Path) -> Result<Checkpoint, Error> {
    let config = config_path(path);
    let object: Map<String, Value> = json::read_object(&config)?;
    let fields = Fields { path: &config, prefix: "", object: &object };
    let name = fields.text("model_type")?.ok_or_else(|| fields.error("model_type", Problem::Missing))?;
    let known = MODEL_TYPES.into_iter().find(|known| *known == name);
    let model_type = known.ok_or_else(|| one_of(&fields, "model_type", name, &MODEL_TYPES))?;
    let mut network = Network::new(tensors(path)?);
    match model_type {
        "bert" => bert::build(&fields, &mut network, &bert::BERT)?,
        "roberta" => bert::build(&fields, &mut network, &bert::ROBERTA)?,
        "distilbert" => distilbert::build(&fields, &mut network)?,
        "vit" => vit::build(&fields, &mut network)?,
        _ => part::build(&fields, &mut network)?,
    }
    Ok(Checkpoint { model_type, graph: network.finish()? })
}

fn tensors(path: &Path) -> Result<Tensors, Error> {
    if path.is_dir() {
        return safetensors::read_folder(path);
    }
    let mut by_name = HashMap::new();
    safetensors::read(path, &mut by_name)?;
    Ok(Tensors { path: path.into(), by_name })
}

/// Returns the error of a field that must be one of `known`.
fn one_of(fields: &Fields<'_>, name: &str, found: &str, known: &[&str]) -> Error {
    let expected = format!("one of {}", known.join(", "));
    fields.error(name, Problem::Unexpected { expected, found: format!("`{found}`") })
}

/// Refuses a field that is given with another value than the only one that is computed.
fn only(fields: &Fields<'_>, name: &str, value: &Value) -> Result<(), Error> {
    match fields.get(name) {
        Some(found) if found != value => Err(fields.unexpected(name, &format!("{value} or left out"), found)),
        _ => Ok(()),
    }
}

/// Returns the activation that a field names.
fn activation(fields: &Fields<'_>, name: &str, default: &'static str) -> Result<Unary, Error> {
    const KNOWN: [(&str, Unary); 7] = [
        ("gelu", Unary::Gelu),
        ("gelu_new", Unary::GeluTanh),
        ("gelu_pytorch_tanh", Unary::GeluTanh),
        ("relu", Unary::Relu),
        ("silu", Unary::Silu),
        ("swish", Unary::Silu),
        ("tanh", Unary::Tanh),
    ];
    let found = fields.text(name)?.unwrap_or(default);
    let known = KNOWN.into_iter().find(|(known, _)| *known == found).map(|(_, unary)| unary);
    known.ok_or_else(|| one_of(fields, name, found, &KNOWN.map(|(known, _)| known)))
}

/// Returns the head that `architectures` names, the first of `known` if it is left out.
fn head(fields: &Fields<'_>, known: &[&'static str]) -> Result<&'static str, Error> {
    let Some(value) = fields.get("architectures") else { return Ok(known[0]) };
    let only = value.as_array().filter(|names| names.len() == 1).and_then(|names| names[0].as_str());
    let only = only.ok_or_else(|| fields.unexpected("architectures", "the name of one class", value))?;
    let found = known.iter().copied().find(|name| *name == only);
    found.ok_or_else(|| one_of(fields, "architectures", only, known))
}

/// Returns the number of labels: the length of `id2label`, or `num_labels`, or 2.
fn n_labels(fields: &Fields<'_>) -> Result<usize, Error> {
    match fields.get("id2label") {
        None => fields.size_or("num_labels", Some(2)),
        Some(Value::Object(labels)) if !labels.is_empty() => Ok(labels.len()),
        Some(other) => Err(fields.unexpected("id2label", "an object with a name of each label", other)),
    }
}

/// Returns the number of heads, which divides `width`.
fn n_heads(fields: &Fields<'_>, name: &str, width: usize, default: usize) -> Result<usize, Error> {
    let n_heads = fields.size_or(name, Some(default))?;
    if width.is_multiple_of(n_heads) {
        return Ok(n_heads);
    }
    let expected = "it must divide the width of the model";
    Err(fields.error(name, Problem::OutOfRange { value: n_heads.to_string(), expected }))
}

fn named(name: &str) -> Dimension {
    Dimension::Named(name.to_owned())
}
