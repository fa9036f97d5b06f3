//! The verbs that are one call each. Each returns whether the comparison it makes, if any,
//! succeeded.

use std::io::{self, Write};
use std::sync::Arc;

use ns_device::Device;
use ns_terminal::escape;
use serde_json::json;

use crate::backend;
use crate::cli::args::{
    ChatArgs, DeviceArg, GenerateArgs, InfoArgs, InputArgs, LogitsArgs, ModelArgs, SamplingArgs, TokenizeArgs, Verb,
};
use crate::cli::{CliError, bench, encode, print_json, print_text, score, verify};
use crate::cpu::Threads;
use crate::cpu::integers::Activations;
use crate::device::estimate_device_memory;
use crate::encoder::Encoder;
use crate::engine::{Engine, KvCache, LogitRows};
use crate::error::Error;
use crate::files::json;
use crate::model::memory;
use crate::model::{LoadOptions, Model, check_tokens};
use crate::text::Tokenizer;
use crate::text::chat::{ChatTemplate, Message};
use crate::text::generate::{GenerateOptions, Generation, generate};
use crate::text::sampling::{Sampler, Step};

/// Runs `verb`.
pub(super) fn run(verb: Verb) -> Result<bool, CliError> {
    match verb {
        Verb::Generate(args) => generate_text(&args).map(|()| true),
        Verb::Chat(args) => chat(&args).map(|()| true),
        Verb::Logits(args) => logits(&args).map(|()| true),
        Verb::Score(args) => score::run(&args).map(|()| true),
        Verb::Encode(args) => encode::run(&args).map(|()| true),
        Verb::Tokenize(args) => tokenize(&args).map(|()| true),
        Verb::Info(args) => info(&args).map(|()| true),
        Verb::Verify(args) => verify::run(&args),
        Verb::Bench(args) => bench::run(&args).map(|()| true),
    }
}

/// Opens the model, if it and the keys and values of `positions` fit into memory.
pub(super) fn engine(args: &ModelArgs, positions: usize) -> Result<Engine, CliError> {
    engine_in_chunks(args, positions, args.chunk.unwrap_or(Engine::DEFAULT_CHUNK))
}

/// Opens the model as [`engine`] does, with at most `chunk` tokens at once.
pub(super) fn engine_in_chunks(args: &ModelArgs, positions: usize, chunk: usize) -> Result<Engine, CliError> {
    let device = device(args)?;
    let model = Arc::new(match device {
        // The weights pass through the host's memory piece by piece; the device's is looked at
        // below.
        Some(_) => open_within(args, positions, u64::MAX)?,
        None => open(args, positions)?,
    });
    let activations = Activations::from(args.activations);
    if activations == Activations::Int8 && n_rounded(&model, activations) == 0 {
        eprintln!("warning: no matrix of this model is quantised: `--activations int8` changes nothing");
    }
    let engine = match device {
        Some(device) => Engine::on_device_with_chunk(model, &device, positions, chunk)?,
        None => Engine::new(model, Threads::new(args.threads)).with_chunk(chunk),
    };
    Ok(engine.with_activations(activations)?)
}

/// Opens the requested device, if it can do what else is requested.
fn device(args: &ModelArgs) -> Result<Option<Device>, CliError> {
    let DeviceArg(preference) = args.device;
    match preference.backend() {
        Some(backend) if Activations::from(args.activations) != Activations::Exact => {
            Err(Error::ExactOnly { device: backend.name() }.into())
        }
        _ => Ok(backend::open_device(preference)?),
    }
}

/// Returns the number of multiplied matrices whose inputs `activations` rounds.
pub(super) fn n_rounded(model: &Model, activations: Activations) -> usize {
    model.multiplied().filter(|matrix| activations.rounds(matrix.format())).count()
}

/// Opens the model unless it needs more than `limit`, or than the limit that was given.
fn open_within(args: &ModelArgs, positions: usize, limit: u64) -> Result<Model, CliError> {
    let memory_limit = Some(args.memory_limit.as_deref().map_or(Ok(limit), size)?);
    Ok(Model::open_with(&args.model, &LoadOptions { memory_limit, positions })?)
}

fn open(args: &ModelArgs, positions: usize) -> Result<Model, CliError> {
    let memory_limit = args.memory_limit.as_deref().map(size).transpose()?;
    Ok(Model::open_with(&args.model, &LoadOptions { memory_limit, positions })?)
}

/// Parses a size such as `8GiB`, `512 MiB` or `1000`.
fn size(text: &str) -> Result<u64, CliError> {
    let wrong = || CliError::Size(text.to_owned());
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(wrong)
}

/// Returns the token ids of the arguments, and the tokenizer if there is one.
fn input(engine: &Engine, args: &InputArgs) -> Result<(Vec<u32>, Option<Tokenizer>), CliError> {
    let tokenizer = Tokenizer::of(engine.model());
    match &args.prompt {
        Some(prompt) => {
            let tokenizer = tokenizer?;
            Ok((tokenizer.encode(prompt, true)?, Some(tokenizer)))
        }
        None if args.tokens.is_empty() => Err(CliError::NothingGiven),
        None => Ok((args.tokens.clone(), tokenizer.ok())),
    }
}

fn logits(args: &LogitsArgs) -> Result<(), CliError> {
    let mut engine = engine(&args.model, args.input.tokens.len())?;
    let (tokens, tokenizer) = input(&engine, &args.input)?;
    let mut cache = engine.cache(tokens.len())?;
    let rows = if args.all { LogitRows::All } else { LogitRows::Last };
    let vocabulary = engine.model().config().vocabulary;
    if args.json {
        return print_logits(&mut engine, &mut cache, &tokens, rows);
    }
    let logits = engine.logits(&mut cache, &tokens, rows)?;
    for row in logits.chunks(vocabulary) {
        let mut order: Vec<u32> = (0..vocabulary as u32).collect();
        order.sort_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]));
        for &token in order.iter().take(10) {
            let text = tokenizer.as_ref().and_then(|tokenizer| tokenizer.token(token)).unwrap_or_default();
            let probability = crate::text::score::log_probability(row, token).exp();
            print_text(&format!("{token:>8}  {:>10.5}  {probability:.5}  {}\n", row[token as usize], escape(&text)))?;
        }
        print_text("\n")?;
    }
    Ok(())
}

/// Writes rows as JSON as they come: all of a long prompt may be more than fits into memory.
fn print_logits(engine: &mut Engine, cache: &mut KvCache, tokens: &[u32], rows: LogitRows) -> Result<(), CliError> {
    let mut out = io::BufWriter::new(super::stdout().map_err(CliError::Unwritable)?);
    let (mut written, mut before) = (Ok(()), "{\"logits\":[");
    let mut each = |_: usize, row: &[f32]| {
        if written.is_ok() {
            let start = out.write_all(before.as_bytes());
            written = start.and_then(|()| serde_json::to_writer(&mut out, row).map_err(io::Error::from));
            before = ",";
        }
    };
    engine.each_logits(cache, tokens, rows, &mut each)?;
    written.and_then(|()| out.write_all(b"]}\n")).and_then(|()| out.flush()).map_err(CliError::Unwritable)
}

fn sampler(args: &SamplingArgs) -> Result<Sampler, CliError> {
    let penalty = args.repetition_penalty.map(Step::RepetitionPenalty);
    if args.temperature == 0.0 && penalty.is_none() {
        return Ok(Sampler::greedy());
    }
    let temperature = if args.temperature == 0.0 { Step::TopK(1) } else { Step::Temperature(args.temperature) };
    let rest = [args.top_k.map(Step::TopK), args.top_p.map(Step::TopP), args.min_p.map(Step::MinP)];
    let steps = penalty.into_iter().chain([temperature]).chain(rest.into_iter().flatten()).collect();
    Ok(Sampler::new(steps, args.seed)?)
}

/// Generates and prints: the text as it is generated, or all of it as JSON.
fn answer(
    engine: &mut Engine,
    tokenizer: Option<&Tokenizer>,
    prompt: &[u32],
    args: &SamplingArgs,
    as_json: bool,
) -> Result<(), CliError> {
    let options = GenerateOptions { max_tokens: args.max_tokens, stops: args.stop.clone(), ends: !args.ignore_eos };
    let mut written = Ok(());
    let mut each = |piece: &str| {
        if !as_json && written.is_ok() {
            written = print_text(piece);
        }
    };
    let generation: Generation = generate(engine, tokenizer, prompt, &mut sampler(args)?, &options, &mut each)?;
    written?;
    if as_json {
        return print_json(&generation);
    }
    match generation.text {
        Some(_) => print_text("\n"),
        None => print_text(&format!("{:?}\n", generation.tokens)),
    }
}

fn generate_text(args: &GenerateArgs) -> Result<(), CliError> {
    let mut engine = engine(&args.model, args.input.tokens.len().saturating_add(args.sampling.max_tokens))?;
    let (tokens, tokenizer) = input(&engine, &args.input)?;
    answer(&mut engine, tokenizer.as_ref(), &tokens, &args.sampling, args.json)
}

fn messages(args: &ChatArgs) -> Result<Vec<Message>, CliError> {
    if let Some(path) = &args.messages {
        return Ok(json::read_given(path)?);
    }
    let message = |role: &str, content: &String| Message { role: role.into(), content: content.clone() };
    let system = args.system.iter().map(|content| message("system", content));
    Ok(system.chain(args.user.iter().map(|content| message("user", content))).collect())
}

fn chat(args: &ChatArgs) -> Result<(), CliError> {
    let mut engine = engine(&args.model, args.sampling.max_tokens)?;
    let tokenizer = Tokenizer::of(engine.model())?;
    let rendered = ChatTemplate::of(engine.model())?.render(&messages(args)?, true)?;
    // The template writes the special tokens itself.
    let tokens = tokenizer.encode(&rendered, false)?;
    if args.render {
        return match args.json {
            true => print_json(&json!({ "text": rendered, "ids": tokens })),
            false => print_text(&rendered),
        };
    }
    answer(&mut engine, Some(&tokenizer), &tokens, &args.sampling, args.json)
}

fn tokenize(args: &TokenizeArgs) -> Result<(), CliError> {
    // Nothing is computed: a model that does not fit can be looked at.
    let model = open_within(&args.model, 0, u64::MAX)?;
    let tokenizer = Tokenizer::of(&model)?;
    let Some(text) = &args.text else {
        check_tokens(model.config().vocabulary, &args.decode)?;
        let text = tokenizer.decode(&args.decode, !args.no_special)?;
        return if args.json { print_json(&json!({ "text": text })) } else { print_text(&format!("{text}\n")) };
    };
    let ids = tokenizer.encode(text, !args.no_special)?;
    let tokens: Vec<String> = ids.iter().map(|&id| tokenizer.token(id).unwrap_or_default()).collect();
    if args.json {
        return print_json(&json!({ "ids": ids, "tokens": tokens }));
    }
    ids.iter().zip(&tokens).try_for_each(|(id, token)| print_text(&format!("{id:>8}  {}\n", escape(token))))
}

/// Describes what will compute, and what it takes of a device's memory.
fn computes(device: Option<&Device>, args: &ModelArgs, model: &Model) -> Result<serde_json::Value, CliError> {
    let Some(device) = device else {
        let threads = Threads::new(args.threads);
        let activations = Activations::from(args.activations);
        let mut answer = json!({ "name": "cpu", "instruction_set": threads.instruction_set().name(),
            "threads": threads.count(), "activations": activations });
        if activations == Activations::Int8 {
            answer["integer_set"] = threads.integer_set().name().into();
            answer["quantised_matrices"] = n_rounded(model, activations).into();
        }
        return Ok(answer);
    };
    let context = model.config().context;
    let needed = estimate_device_memory(model, context, args.chunk.unwrap_or(Engine::DEFAULT_CHUNK));
    let there = device.memory().map_err(Error::from)?;
    Ok(json!({
        "name": device.backend().name(),
        "model": device.properties().name,
        "precision": device.precision().to_string(),
        "computes": "all layers and the logits; the CPU tokenizes and samples",
        "memory": { "weights": needed.weights, "kv_cache_full": needed.cache, "work": needed.work,
            "available": there.free },
        "fits": needed.total() <= there.free,
    }))
}

fn info(args: &InfoArgs) -> Result<(), CliError> {
    if Encoder::is_model(&args.model.model) {
        return encode::info(&args.model.model, args.model.device.0, args.json);
    }
    let device = device(&args.model)?;
    // Nothing is computed: a model that does not fit can be looked at.
    let model = open_within(&args.model, 0, u64::MAX)?;
    let config = model.config();
    let formats: serde_json::Map<String, serde_json::Value> =
        model.formats().into_iter().map(|(format, count)| (format.name().to_owned(), count.into())).collect();
    let windows: Vec<usize> = (0..config.n_layers).filter_map(|layer| config.windows.of_layer(layer)).collect();
    let limit = args.model.memory_limit.as_deref().map(size).transpose()?.or_else(memory::memory_of_machine);
    if limit.is_none() {
        eprintln!("note: this system does not say what memory it has: only what exceeds --memory-limit is refused");
    }
    let answer = json!({
        "architecture": config.architecture,
        "weights": model.n_weights(),
        "layers": config.n_layers,
        "hidden_size": config.hidden,
        "intermediate_size": config.intermediate,
        "heads": config.n_heads,
        "kv_heads": config.n_kv_heads,
        "head_dim": config.head_dim,
        "vocabulary": config.vocabulary,
        "context": config.context,
        "window": windows.first(),
        "layers_with_window": windows.len(),
        "rope": { "theta": config.rope.theta, "scaling": format!("{:?}", config.rope.scaling),
            "pairs": format!("{:?}", config.rope.pairs).to_lowercase() },
        "tied_embeddings": config.is_tied,
        "bos": config.bos,
        "eos": config.eos,
        "formats": formats,
        "memory": {
            "weights": model.weight_bytes(),
            "kv_cache_per_token": memory::estimate_kv_cache_memory(config, 1),
            "kv_cache_full": memory::estimate_kv_cache_memory(config, config.context),
            "available": memory::available_memory(),
            "limit": limit,
        },
        "device": computes(device.as_ref(), &args.model, &model)?,
    });
    if args.json {
        return print_json(&answer);
    }
    let object = answer.as_object().map(|object| object.iter()).into_iter().flatten();
    object.into_iter().try_for_each(|(name, value)| print_text(&format!("{name:<20} {value}\n")))
}
