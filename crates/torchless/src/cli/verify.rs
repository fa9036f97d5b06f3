//! `verify`: logits and residual streams against stored ones; says which layer diverges first.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::cli::args::VerifyArgs;
use crate::cli::{CliError, command, print_json, print_text, read_json};
use crate::config::Config;
use crate::engine::{Engine, LogitRows};
use crate::error::{Error, Problem};
use crate::file::Tensors;
use crate::safetensors;

/// One prompt of the reference.
#[derive(Debug, Serialize)]
struct Verdict {
    name: String,
    /// The greatest difference of a logit, if the reference has logits of this prompt.
    logits: Option<f64>,
    /// The greatest difference after the embedding and after each layer that the reference has.
    layers: Vec<f64>,
    /// The first of them that is above the tolerance: 0 is the embedding.
    diverges_at: Option<usize>,
    /// Whether something was compared and none of it differs.
    is_good: bool,
}

pub(super) fn run(args: &VerifyArgs) -> Result<bool, CliError> {
    let folder = args.reference.as_deref().unwrap_or(&args.model.model);
    let path = folder.join("reference.json");
    let reference = read_json(&path)?;
    let missing = || Error::malformed(&path, "`prompts`", Problem::Missing);
    let prompts = reference["prompts"].as_array().filter(|prompts| !prompts.is_empty()).ok_or_else(missing)?;
    let mut by_name = HashMap::new();
    let stored = folder.join("reference_logits.safetensors");
    safetensors::read(&stored, &mut by_name)?;
    let tensors = Tensors { path: stored.into(), by_name };
    let prompts: Vec<_> = prompts.iter().map(|entry| prompt(&path, entry)).collect::<Result<_, _>>()?;
    let longest = prompts.iter().map(|(_, tokens, _)| tokens.len()).max().unwrap_or(0);
    let mut engine = command::engine(&args.model, longest)?;
    let mut verdicts = Vec::new();
    for (name, tokens, rows) in prompts {
        verdicts.push(one(&mut engine, &tensors, name, (&tokens, &rows), args.tolerance)?);
    }
    let is_good = verdicts.iter().all(|verdict| verdict.is_good);
    if args.json {
        print_json(&serde_json::json!({ "prompts": verdicts, "tolerance": args.tolerance, "is_good": is_good }))?;
        return Ok(is_good);
    }
    for Verdict { name, logits, layers, diverges_at, is_good } in &verdicts {
        let logits = logits.map_or("no logits".to_owned(), |off| format!("{off:.2e}"));
        let verdict = if *is_good { "good" } else { "BAD" };
        print_text(&format!("{name:<20} {logits:<10} {verdict}"))?;
        for (layer, off) in layers.iter().enumerate() {
            print_text(&format!("{}{layer}: {off:.1e}", if layer == 0 { "  after layer " } else { ", " }))?;
        }
        print_text(&diverges_at.map_or("\n".to_owned(), |layer| format!("; diverges at {layer}\n")))?;
    }
    Ok(is_good)
}

fn numbers(value: &Value) -> Option<Vec<u32>> {
    value.as_array()?.iter().map(|number| number.as_u64().and_then(|number| u32::try_from(number).ok())).collect()
}

fn one(
    engine: &mut Engine,
    tensors: &Tensors,
    name: &str,
    (tokens, rows): (&[u32], &[u32]),
    tolerance: f64,
) -> Result<Verdict, CliError> {
    let Config { vocabulary, hidden, .. } = *engine.model().config();
    let mut streams: Vec<Vec<f32>> = Vec::new();
    let mut found = vec![0.0; rows.len() * vocabulary];
    let mut cache = engine.cache(tokens.len())?;
    // The rows of the reference are in its own order.
    let mut each = |row: usize, logits: &[f32]| {
        let places = rows.iter().zip(found.chunks_exact_mut(vocabulary));
        places.filter(|(listed, _)| **listed as usize == row).for_each(|(_, place)| place.copy_from_slice(logits));
    };
    let mut observer = |layer: usize, residual: &[f32]| {
        if streams.len() <= layer {
            streams.push(Vec::new());
        }
        streams[layer].extend_from_slice(residual);
    };
    engine.observed(&mut cache, tokens, LogitRows::All, &mut each, &mut observer)?;
    let logits = stored(tensors, &format!("{name}.logits"), rows.len(), vocabulary)?;
    let logits = logits.map(|expected| distance(&found, &expected));
    let layers = layers(tensors, name, &streams, (tokens.len(), hidden))?;
    let is_within = |off: f64| off <= tolerance;
    let diverges_at = layers.iter().position(|off| !is_within(*off));
    let is_compared = logits.is_some() || !layers.is_empty();
    let is_good = is_compared && logits.is_none_or(is_within) && diverges_at.is_none();
    Ok(Verdict { name: name.to_owned(), logits, layers, diverges_at, is_good })
}

/// The greatest difference after the embedding and each layer: of all of them, or of none if the reference has none.
fn layers(
    tensors: &Tensors,
    name: &str,
    streams: &[Vec<f32>],
    (rows, hidden): (usize, usize),
) -> Result<Vec<f64>, Error> {
    let of_layer = |layer: usize| format!("{name}.hidden{layer}");
    let prefix = format!("{name}.hidden");
    let is_layer = |tensor: &&String| tensor.strip_prefix(&prefix).is_some_and(|rest| rest.parse::<usize>().is_ok());
    let n_stored = tensors.by_name.keys().filter(is_layer).count();
    if n_stored > streams.len() {
        let (expected, found) = (format!("of {} at most", streams.len()), format!("one of {n_stored}"));
        let field = format!("tensors `{prefix}…`");
        return Err(Error::malformed(&*tensors.path, field, Problem::Unexpected { expected, found }));
    }
    let mut layers = Vec::new();
    for (layer, stream) in streams.iter().enumerate().take(n_stored) {
        let missing = || Error::malformed(&*tensors.path, format!("tensor `{}`", of_layer(layer)), Problem::Missing);
        let expected = stored(tensors, &of_layer(layer), rows, hidden)?.ok_or_else(missing)?;
        layers.push(distance(stream, &expected));
    }
    Ok(layers)
}

/// Token ids and rows of a prompt; every row is that of a token.
fn prompt<'a>(path: &Path, prompt: &'a Value) -> Result<(&'a str, Vec<u32>, Vec<u32>), Error> {
    let error = |field: &str, problem| Error::malformed(path, format!("`prompts.{field}`"), problem);
    let missing = |field: &str| error(field, Problem::Missing);
    let name = prompt["name"].as_str().ok_or_else(|| missing("name"))?;
    let tokens = numbers(&prompt["ids"]).ok_or_else(|| missing("ids"))?;
    let rows = numbers(&prompt["logit_rows"]).ok_or_else(|| missing("logit_rows"))?;
    match rows.iter().find(|row| **row as usize >= tokens.len()) {
        None => Ok((name, tokens, rows)),
        Some(row) => {
            let (value, expected) = (row.to_string(), "rows are those of `ids`, counted from 0");
            Err(error("logit_rows", Problem::OutOfRange { value, expected }))
        }
    }
}

/// A stored matrix, if there is one of that name and it has rows.
fn stored(tensors: &Tensors, name: &str, rows: usize, columns: usize) -> Result<Option<Vec<f32>>, Error> {
    if rows == 0 || !tensors.has(name) {
        return Ok(None);
    }
    let matrix = tensors.matrix(name, rows, columns)?;
    let mut values = vec![0.0; rows * columns];
    for (row, out) in values.chunks_mut(columns).enumerate() {
        matrix.row(row, out);
    }
    Ok(Some(values))
}

/// The greatest absolute difference; infinite where one is not a number, and where one has more of them.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    let differences = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    differences.fold(0.0, |most, one| if one.is_nan() { f64::INFINITY } else { most.max(one) })
}
