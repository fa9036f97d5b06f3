//! `verify`: compares logits and residual streams with stored ones, names the first layer that
//! diverges, and says what is absent.

use std::collections::HashSet;

use serde::Serialize;

use crate::cli::args::VerifyArgs;
use crate::cli::reference::{Prompt, Reference, Stored};
use crate::cli::{CliError, command, print_json, print_text};
use crate::config::Config;
use crate::engine::{Engine, LogitRows};
use crate::error::quoted;

/// One prompt of the reference.
#[derive(Debug, Default, Serialize)]
struct Verdict {
    name: String,
    /// The tokens of the prompt.
    tokens: usize,
    /// The tokens whose logits were compared.
    tokens_with_logits: usize,
    /// The greatest difference of a logit, if the reference has logits of this prompt.
    logits: Option<f64>,
    /// The greatest difference after the embedding and after each layer, up to the last one that
    /// the reference has; none for those that are absent.
    layers: Vec<Option<f64>>,
    /// The first of them that is above the tolerance: 0 is the embedding.
    diverges_at: Option<usize>,
    /// What the reference does not have of this prompt: `logits`, and the parts whose residual
    /// streams are absent.
    absent: Vec<String>,
    /// Whether something was compared.
    is_compared: bool,
    /// Whether something was compared and none of it differs.
    is_good: bool,
}

pub(super) fn run(args: &VerifyArgs) -> Result<bool, CliError> {
    let reference = Reference::open(args)?;
    let mut engine = command::engine(&args.model, reference.longest())?;
    let stored = reference.of(args.set.as_deref(), engine.model())?;
    if !reference.prompts.iter().any(|prompt| stored.has(prompt)) {
        return Err(CliError::NothingStored { path: stored.path().into(), prompts: reference.prompts_of.clone() });
    }
    let unused = stored.unused(&reference.prompts);
    let one = |prompt| one(&mut engine, &stored, prompt, args.tolerance);
    let verdicts: Vec<Verdict> = reference.prompts.iter().map(one).collect::<Result<_, _>>()?;
    let is_good = verdicts.iter().all(|verdict| verdict.is_good);
    if args.json {
        let answer = serde_json::json!({ "prompts": verdicts, "prompts_of": reference.prompts_of, "set": stored.set,
            "tolerance": args.tolerance, "tensors_of_no_prompt": unused, "is_good": is_good });
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
    let differs = verdicts.iter().any(|verdict| verdict.is_compared && !verdict.is_good);
    if differs && verdicts.iter().all(|verdict| verdict.layers.is_empty()) {
        eprintln!("note: the reference has no residual streams: which layer diverges cannot be said");
    }
    let n_absent = verdicts.iter().filter(|verdict| !verdict.is_compared).count();
    if n_absent > 0 {
        eprintln!("note: {n_absent} of {} prompts have nothing stored, and were not compared", verdicts.len());
    }
    if let [first, rest @ ..] = &unused[..] {
        eprintln!("note: tensors of no prompt were not compared: `{}` and {} more", quoted(first), rest.len());
    }
    Ok(is_good)
}

fn print(verdict: &Verdict) -> Result<(), CliError> {
    let Verdict { name, tokens, tokens_with_logits, logits, layers, diverges_at, absent, is_compared, is_good } =
        verdict;
    let logits = logits.map_or("no logits".to_owned(), |off| format!("{off:.2e}"));
    let said = match (is_compared, is_good) {
        (false, _) => "ABSENT",
        (true, false) => "BAD",
        (true, true) => "good",
    };
    let name = quoted(name);
    let mut line = format!("{:<20} {logits:<10} {said:<4}", ns_terminal::escape(&name));
    if *tokens_with_logits > 0 {
        line.push_str(&format!("  logits of {tokens_with_logits} of {tokens} tokens"));
    }
    let compared = layers.iter().enumerate().filter_map(|(stream, off)| Some((stream, (*off)?)));
    for (index, (stream, off)) in compared.enumerate() {
        line.push_str(&format!("{}{}: {off:.1e}", if index == 0 { "  after " } else { ", " }, part(stream)));
    }
    if *is_compared && !absent.is_empty() {
        line.push_str(&format!("; absent: {}", absent.join(", ")));
    }
    if let Some(stream) = *diverges_at {
        let is_first = stream.checked_sub(1).is_none_or(|before| layers[before].is_some());
        line.push_str(&format!("; diverges at {}{}", part(stream), if is_first { "" } else { " or before" }));
    }
    print_text(&(line.trim_end().to_owned() + "\n"))
}

/// Returns the part that a residual stream is the output of: first the embedding, then layer 0.
fn part(stream: usize) -> String {
    stream.checked_sub(1).map_or("the embedding".to_owned(), |layer| format!("layer {layer}"))
}

fn one(engine: &mut Engine, stored: &Stored<'_>, prompt: &Prompt, tolerance: f64) -> Result<Verdict, CliError> {
    let Prompt { name, tokens, .. } = prompt;
    let Config { vocabulary, hidden, .. } = *engine.model().config();
    if !stored.has(prompt) {
        let (name, tokens, absent) = (name.clone(), tokens.len(), vec!["logits".to_owned(), STREAMS.to_owned()]);
        return Ok(Verdict { name, tokens, absent, ..Verdict::default() });
    }
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
    let compare = |(found, expected): (&Vec<f32>, &Option<Vec<f32>>)| Some(distance(found, expected.as_ref()?));
    let layers: Vec<Option<f64>> = streams.iter().zip(&layers).map(compare).collect();
    let is_within = |off: f64| off <= tolerance;
    let diverges_at = layers.iter().position(|off| off.is_some_and(|off| !is_within(off)));
    let is_compared = logits.is_some() || layers.iter().any(Option::is_some);
    let is_good = is_compared && logits.is_none_or(is_within) && diverges_at.is_none();
    let tokens_with_logits = if logits.is_some() { rows.iter().collect::<HashSet<_>>().len() } else { 0 };
    let absent = absent(logits.is_some(), &layers, streams.len());
    let (name, tokens) = (name.clone(), tokens.len());
    Ok(Verdict { name, tokens, tokens_with_logits, logits, layers, diverges_at, absent, is_compared, is_good })
}

/// What is absent if no residual stream is stored.
const STREAMS: &str = "residual streams";

/// Returns what a reference does not have, of `n_streams` residual streams.
fn absent(has_logits: bool, layers: &[Option<f64>], n_streams: usize) -> Vec<String> {
    let mut absent = if has_logits { Vec::new() } else { vec!["logits".to_owned()] };
    if layers.is_empty() {
        absent.push(STREAMS.to_owned());
        return absent;
    }
    let is_absent = |stream: &usize| layers.get(*stream).is_none_or(Option::is_none);
    absent.extend((0..n_streams).filter(is_absent).map(part));
    absent
}

/// Returns the greatest absolute difference: infinite if a number is NaN, or if the lengths differ.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    let differences = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    differences.fold(0.0, |most, one| if one.is_nan() { f64::INFINITY } else { most.max(one) })
}
