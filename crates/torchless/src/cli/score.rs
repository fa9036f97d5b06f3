//! `score`: events of a file, log-likelihood ratios and histograms out.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::cli::args::ScoreArgs;
use crate::cli::{CliError, command, print_json, print_text, read_json};
use crate::engine::Engine;
use crate::score::{ScoreOptions, histogram, log_probabilities};

/// One list of events, or several with names.
enum Events {
    One(Vec<Vec<u32>>),
    Named(Vec<(String, Vec<Vec<u32>>)>),
}

pub(super) fn run(args: &ScoreArgs) -> Result<(), CliError> {
    let events = read(&args.events)?;
    let mut engine = command::engine(&args.model, 0)?;
    let end = match args.end {
        _ if args.no_end => Vec::new(),
        Some(end) => vec![end],
        None => vec![*engine.model().config().eos.first().ok_or(CliError::NoEnd)?],
    };
    let ratios = match &events {
        Events::One(events) => vec![(None, ratios(&mut engine, args, &end, events)?)],
        Events::Named(named) => {
            let each = named.iter();
            let each = each.map(|(name, events)| Ok((Some(name), ratios(&mut engine, args, &end, events)?)));
            each.collect::<Result<Vec<_>, CliError>>()?
        }
    };
    if args.json {
        return print_json(&answer(&ratios, &args.edges));
    }
    for (name, ratios) in &ratios {
        let name = name.map_or("events", String::as_str);
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        print_text(&format!("{name:<20} {:>8} events, mean log-likelihood ratio {mean:.5}\n", ratios.len()))?;
        if !args.edges.is_empty() {
            print_text(&format!("{:<20} {:?}\n", "", histogram(ratios, &args.edges)))?;
        }
    }
    Ok(())
}

fn ratios(engine: &mut Engine, args: &ScoreArgs, end: &[u32], events: &[Vec<u32>]) -> Result<Vec<f64>, CliError> {
    let mut under = |prefix: &[u32]| {
        let options = ScoreOptions { prefix: prefix.to_vec(), end: end.to_vec(), ..ScoreOptions::default() };
        log_probabilities(engine, events, &options)
    };
    let (above, below) = (under(&args.prefix)?, under(&args.against)?);
    Ok(above.iter().zip(&below).map(|(above, below)| above - below).collect())
}

fn answer(ratios: &[(Option<&String>, Vec<f64>)], edges: &[f64]) -> Value {
    let all = |value: &dyn Fn(&[f64]) -> Value| match ratios {
        [(None, ratios)] => value(ratios),
        named => {
            let named = named.iter().map(|(name, ratios)| (name.cloned().unwrap_or_default(), value(ratios)));
            Value::Object(named.collect::<Map<String, Value>>())
        }
    };
    let llr = all(&|ratios| json!(ratios));
    match edges {
        [] => json!({ "llr": llr }),
        edges => json!({ "llr": llr, "edges": edges, "hist": all(&|ratios| json!(histogram(ratios, edges))) }),
    }
}

fn read(path: &Path) -> Result<Events, CliError> {
    let document = read_json(path)?;
    // The reference file itself: its events.
    let document = match document {
        Value::Object(mut object) if object.contains_key("events") => object.remove("events").unwrap_or_default(),
        other => other,
    };
    match &document {
        Value::Array(_) => Ok(Events::One(list(path, "the list", &document)?)),
        Value::Object(named) => {
            let named = named.iter().map(|(name, events)| Ok((name.clone(), list(path, name, events)?)));
            Ok(Events::Named(named.collect::<Result<Vec<_>, CliError>>()?))
        }
        _ => Err(CliError::Events { path: path.into(), name: "the document".into(), problem: "has no events" }),
    }
}

fn list(path: &Path, name: &str, events: &Value) -> Result<Vec<Vec<u32>>, CliError> {
    let wrong = |index: Option<usize>, problem| {
        let name = index.map_or(name.to_owned(), |index| format!("event {index} of {name}"));
        CliError::Events { path: path.into(), name, problem }
    };
    let events = events.as_array().ok_or_else(|| wrong(None, "is no list of events"))?;
    let one = |(index, event): (usize, &Value)| {
        let tokens = event.as_array().ok_or_else(|| wrong(Some(index), "is no list of token ids"))?;
        let id = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok());
        let ids = tokens.iter().map(id).collect::<Option<Vec<u32>>>();
        ids.ok_or_else(|| wrong(Some(index), "has something that is no token id"))
    };
    events.iter().enumerate().map(one).collect()
}
