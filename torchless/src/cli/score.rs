//! `score`: events of a file, log-likelihood ratios and histograms out.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::cli::args::ScoreArgs;
use crate::cli::{CliError, command, print_json, print_text};
use crate::error::Error;
use crate::files::json;
use crate::text::score::{DEFAULT_BATCH, ScoreOptions, histogram, log_probabilities};

/// Ratios of a list, and its name if it has one.
type Ratios = (Option<String>, Vec<f64>);

/// One list of events, or several with names.
enum Events {
    One(Vec<Vec<u32>>),
    Named(Vec<(String, Vec<Vec<u32>>)>),
}

impl Events {
    /// Returns the lists and the names that messages give them.
    fn lists(&self) -> Vec<(&str, &[Vec<u32>])> {
        match self {
            Events::One(events) => vec![("the list", events)],
            Events::Named(named) => named.iter().map(|(name, events)| (name.as_str(), &events[..])).collect(),
        }
    }
}

pub(super) fn run(args: &ScoreArgs) -> Result<(), CliError> {
    let is_ascending = args.edges.len() != 1 && args.edges.windows(2).all(|pair| pair[0] < pair[1]);
    if !is_ascending {
        return Err(CliError::Edges);
    }
    let events = read(&args.events)?;
    let batch = args.model.chunk.unwrap_or(DEFAULT_BATCH).max(1);
    // The end is one token at most.
    let longer = if args.prefix.len() > args.against.len() { &args.prefix } else { &args.against };
    let largest = ScoreOptions { prefix: longer.clone(), end: vec![0], batch };
    let most = events.lists().iter().map(|(_, events)| largest.most_at_once(events)).max().unwrap_or(0);
    let mut engine = command::engine_in_chunks(&args.model, 0, most)?;
    let end = match args.end {
        _ if args.no_end => Vec::new(),
        Some(end) => vec![end],
        None => vec![*engine.model().config().eos.first().ok_or(CliError::NoEnd)?],
    };
    let under = [&args.prefix, &args.against];
    let under = under.map(|prefix| ScoreOptions { prefix: prefix.clone(), end: end.clone(), batch });
    for (name, list) in events.lists() {
        let checked = under.iter().try_for_each(|options| options.check(engine.model().config(), list));
        checked.map_err(|error| place(args, name, error))?;
    }
    let mut all = Vec::new();
    for (name, list) in events.lists() {
        let name = matches!(events, Events::Named(_)).then(|| name.to_owned());
        let [above, below] = &under;
        let (above, below) =
            (log_probabilities(&mut engine, list, above)?, log_probabilities(&mut engine, list, below)?);
        all.push((name, above.iter().zip(&below).map(|(above, below)| above - below).collect()));
    }
    if args.json { print_json(&answer(&all, &args.edges)) } else { print_table(&all, &args.edges) }
}

/// Adds the file and the event to an error.
fn place(args: &ScoreArgs, list: &str, error: Error) -> CliError {
    match error {
        Error::InSequence { index, source } => {
            CliError::Event { path: args.events.clone(), index, list: list.to_owned(), source }
        }
        other => other.into(),
    }
}

fn print_table(ratios: &[Ratios], edges: &[f64]) -> Result<(), CliError> {
    for (name, ratios) in ratios {
        let name = name.as_deref().unwrap_or("events");
        // Nothing has no mean.
        let mean = match ratios.len() {
            0 => "null".to_owned(),
            n => format!("{:.5}", ratios.iter().sum::<f64>() / n as f64),
        };
        let name = ns_terminal::escape(name);
        print_text(&format!("{name:<20} {:>8} events, mean log-likelihood ratio {mean}\n", ratios.len()))?;
        if !edges.is_empty() {
            print_text(&format!("{:<20} {:?}\n", "", histogram(ratios, edges)))?;
        }
    }
    Ok(())
}

/// Returns a number, or the text that Python's `float` reads where JSON has no number.
fn number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string().to_lowercase()) }
}

fn answer(ratios: &[Ratios], edges: &[f64]) -> Value {
    let all = |value: &dyn Fn(&[f64]) -> Value| match ratios {
        [(None, ratios)] => value(ratios),
        named => {
            let named = named.iter().map(|(name, ratios)| (name.clone().unwrap_or_default(), value(ratios)));
            Value::Object(named.collect::<Map<String, Value>>())
        }
    };
    let numbers = |values: &[f64]| -> Value { values.iter().copied().map(number).collect() };
    let llr = all(&numbers);
    match edges {
        [] => json!({ "llr": llr }),
        edges => json!({ "llr": llr, "edges": numbers(edges), "hist": all(&|ratios| json!(histogram(ratios, edges))) }),
    }
}

fn read(path: &Path) -> Result<Events, CliError> {
    let document = json::read_given(path)?;
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
    let events = events.as_array().ok_or_else(|| wrong(None, "is not a list of events"))?;
    let one = |(index, event): (usize, &Value)| {
        let tokens = event.as_array().ok_or_else(|| wrong(Some(index), "is not a list of token ids"))?;
        let id = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok());
        let ids = tokens.iter().map(id).collect::<Option<Vec<u32>>>();
        ids.ok_or_else(|| wrong(Some(index), "has an element that is not a token id"))
    };
    events.iter().enumerate().map(one).collect()
}
