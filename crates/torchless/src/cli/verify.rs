//! `verify`: logits and residual streams against stored ones; says which layer diverges first.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use crate::cli::args::VerifyArgs;
use crate::cli::{CliError, command, print_json, print_text, read_json};
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
    is_good: bool,
}

pub(super) fn run(args: &VerifyArgs) -> Result<bool, CliError> {
    let folder = args.reference.as_deref().unwrap_or(&args.model.model);
    let path = folder.join("reference.json");
    let reference = read_json(&path)?;
    let mut by_name = HashMap::new();
    let stored = folder.join("reference_logits.safetensors");
    safetensors::read(&stored, &mut by_name)?;
    let tensors = Tensors { path: stored.into(), by_name };
    let mut engine = command::engine(&args.model, 0)?;
    let missing = |field: &str| Error::malformed(&path, format!("`{field}`"), Problem::Missing);
    let prompts = reference["prompts"].as_array().ok_or_else(|| missing("prompts"))?;
    let mut verdicts = Vec::new();
    for prompt in prompts {
        let name = prompt["name"].as_str().ok_or_else(|| missing("prompts.name"))?;
        let tokens = numbers(&prompt["ids"]).ok_or_else(|| missing("prompts.ids"))?;
        let rows = numbers(&prompt["logit_rows"]).ok_or_else(|| missing("prompts.logit_rows"))?;
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
    let vocabulary = engine.model().config().vocabulary;
    let hidden = engine.model().config().hidden;
    let mut engine_chunk = Vec::new();
    let mut streams: Vec<Vec<f32>> = Vec::new();
    let mut cache = engine.cache(tokens.len())?;
    let mut each = |row: usize, logits: &[f32]| {
        if rows.contains(&(row as u32)) {
            engine_chunk.extend_from_slice(logits);
        }
    };
    let mut observer = |layer: usize, residual: &[f32]| {
        if streams.len() <= layer {
            streams.push(Vec::new());
        }
        streams[layer].extend_from_slice(residual);
    };
    engine.observed(&mut cache, tokens, LogitRows::All, &mut each, &mut observer)?;
    let logits = stored(tensors, &format!("{name}.logits"), rows.len(), vocabulary)?;
    let mut layers = Vec::new();
    for (layer, stream) in streams.iter().enumerate() {
        match stored(tensors, &format!("{name}.hidden{layer}"), tokens.len(), hidden)? {
            Some(expected) => layers.push(distance(stream, &expected)),
            None => break,
        }
    }
    let logits = logits.map(|expected| distance(&engine_chunk, &expected));
    let diverges_at = layers.iter().position(|off| *off > tolerance);
    let is_good = logits.is_none_or(|off| off <= tolerance) && diverges_at.is_none();
    Ok(Verdict { name: name.to_owned(), logits, layers, diverges_at, is_good })
}

/// A stored matrix, if there is one of that name.
fn stored(tensors: &Tensors, name: &str, rows: usize, columns: usize) -> Result<Option<Vec<f32>>, Error> {
    if !tensors.has(name) {
        return Ok(None);
    }
    let matrix = tensors.matrix(name, rows, columns)?;
    let mut values = vec![0.0; rows * columns];
    for (row, out) in values.chunks_mut(columns).enumerate() {
        matrix.row(row, out);
    }
    Ok(Some(values))
}

/// The greatest absolute difference; infinite where one is not a number.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let differences = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    differences.fold(0.0, |most, one| if one.is_nan() { f64::INFINITY } else { most.max(one) })
}
