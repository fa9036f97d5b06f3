//! `verify`: compares logits and residual streams with stored ones, and names the first layer that
//! diverges.

use serde::Serialize;

use crate::cli::args::VerifyArgs;
use crate::cli::reference::{Prompt, Reference, Stored};
use crate::cli::{CliError, command, print_json, print_text};
use crate::config::Config;
use crate::engine::{Engine, LogitRows};
use crate::error::quoted;

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
    let reference = Reference::open(args)?;
    let mut engine = command::engine(&args.model, reference.longest())?;
    let stored = reference.of(args.set.as_deref(), engine.model())?;
    let one = |prompt| one(&mut engine, &stored, prompt, args.tolerance);
    let verdicts: Vec<Verdict> = reference.prompts.iter().map(one).collect::<Result<_, _>>()?;
    let is_good = verdicts.iter().all(|verdict| verdict.is_good);
    if args.json {
        let answer = serde_json::json!({ "prompts": verdicts, "prompts_of": reference.prompts_of, "set": stored.set,
            "tolerance": args.tolerance, "is_good": is_good });
        return print_json(&answer).map(|()| is_good);
    }
    if let Some(set) = stored.set.as_ref().filter(|_| args.prompts.is_none() && reference.is_of_two_documents()) {
        eprintln!(
            "note: prompts are those of `{}`; the set is `{}`",
            ns_terminal::escape(&reference.prompts_of.to_string_lossy()),
            quoted(set)
        );
    }
    verdicts.iter().try_for_each(print)?;
    if !is_good && verdicts.iter().all(|verdict| verdict.layers.is_empty()) {
        eprintln!("note: the reference has no residual streams: which layer diverges cannot be said");
    }
    Ok(is_good)
}

fn print(verdict: &Verdict) -> Result<(), CliError> {
    let Verdict { name, logits, layers, diverges_at, is_good } = verdict;
    let logits = logits.map_or("no logits".to_owned(), |off| format!("{off:.2e}"));
    let verdict = if *is_good { "good" } else { "BAD" };
    let name = quoted(name);
    let name = ns_terminal::escape(&name);
    print_text(&format!("{name:<20} {logits:<10} {verdict}"))?;
    for (stream, off) in layers.iter().enumerate() {
        print_text(&format!("{}{}: {off:.1e}", if stream == 0 { "  after " } else { ", " }, part(stream)))?;
    }
    print_text(&diverges_at.map_or("\n".to_owned(), |stream| format!("; diverges at {}\n", part(stream))))
}

/// Returns the part that a residual stream is the output of: first the embedding, then layer 0.
fn part(stream: usize) -> String {
    stream.checked_sub(1).map_or("the embedding".to_owned(), |layer| format!("layer {layer}"))
}

fn one(engine: &mut Engine, stored: &Stored<'_>, prompt: &Prompt, tolerance: f64) -> Result<Verdict, CliError> {
    let Prompt { name, tokens, .. } = prompt;
    let Config { vocabulary, hidden, .. } = *engine.model().config();
    let (rows, logits) = stored.logits(prompt, vocabulary)?;
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
    let logits = logits.map(|expected| distance(&found, &expected));
    let layers = stored.layers(prompt, streams.len(), hidden)?;
    let layers: Vec<f64> = streams.iter().zip(&layers).map(|(found, expected)| distance(found, expected)).collect();
    let is_within = |off: f64| off <= tolerance;
    let diverges_at = layers.iter().position(|off| !is_within(*off));
    let is_compared = logits.is_some() || !layers.is_empty();
    let is_good = is_compared && logits.is_none_or(is_within) && diverges_at.is_none();
    Ok(Verdict { name: name.clone(), logits, layers, diverges_at, is_good })
}

/// Returns the greatest absolute difference: infinite if a number is NaN, or if the lengths differ.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    let differences = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    differences.fold(0.0, |most, one| if one.is_nan() { f64::INFINITY } else { most.max(one) })
}
