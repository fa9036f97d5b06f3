//! Data cards of CMS Combine: counting experiments and templates, read as Combine reads them.
//!
//! Processes with an index of 0 or below are signals, which the parameter `r` scales, unless a
//! physics model says otherwise. Parameters have Combine's names, starting values and ranges.
//! Shapes in RooWorkspaces are refused. What the numbers mean was taken from Combine's manual and
//! from the behaviour of release 10.6.0; tests compare with numbers that it computed.
//!
//! | module | what it does |
//! |---|---|
//! | `words`, `header`, `body`, `rates` | text to a `card` |
//! | `edits`, `patterns` | `nuisance edit` |
//! | `join` | several cards to one |
//! | `physics`, `options` | what the command line of Combine says |
//! | `templates`, `table` | histograms and tables |
//! | `morph`, `samples`, `mc_stats`, `parameters`, `build` | a card to a workspace |
//! | `limits` | what a card can ask for |

mod body;
mod build;
mod card;
mod coefficients;
mod edits;
mod error;
mod header;
mod join;
mod limits;
mod mc_stats;
mod morph;
mod numbers;
mod option_error;
mod options;
mod parameters;
mod patterns;
mod physics;
mod rates;
mod samples;
mod table;
mod templates;
mod words;

use std::path::PathBuf;

use ns_core::spec::Workspace;

use self::body::BodyReader;
use self::card::{Card, Group};
pub use self::error::{CardCause, CardError, CardProblem};
pub use self::join::LabelledCard;
use self::limits::Limits;
pub use self::option_error::CardOptionError;
pub use self::options::CardOptions;
use crate::source::DocumentSource;
use crate::text;

/// A card that was read.
pub(crate) struct ReadCard {
    pub(crate) workspace: Workspace,
    /// The files of its templates.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) warnings: Vec<String>,
}

/// Reads the card in `bytes`, with the templates that it names.
pub(crate) fn read(bytes: &[u8], origin: &DocumentSource, options: &CardOptions) -> Result<ReadCard, CardError> {
    let card = parse(bytes, 0, &mut Limits::default())?;
    finish(&card, options, vec![origin.clone()])
}

/// Cards that were read as one.
pub(crate) struct ReadCards {
    pub(crate) whole: ReadCard,
    /// The names of the channels of each card.
    pub(crate) channels: Vec<Vec<String>>,
}

/// Reads several cards as one: the channels of each have its label before their names.
pub(crate) fn read_joined(cards: &[LabelledCard], options: &CardOptions) -> Result<ReadCards, CardError> {
    let names: Vec<String> = cards.iter().map(|card| card.source.name()).collect();
    let origins = cards.iter().map(|card| card.source.clone()).collect();
    let joined = join::read(cards).map_err(|error| error.in_card(&names))?;
    let mut channels = vec![Vec::new(); cards.len()];
    for channel in &joined.channels {
        channels[channel.place.card].push(channel.name.clone());
    }
    let whole = finish(&joined, options, origins).map_err(|error| error.in_card(&names))?;
    Ok(ReadCards { whole, channels })
}

/// Parses the card in `bytes`, which is the one with index `index`.
fn parse(bytes: &[u8], index: usize, limits: &mut Limits) -> Result<Card, CardError> {
    let text = text::decode(bytes)?;
    let mut lines = words::lines(text, index);
    let (mut card, declared) = header::read(&mut lines, index)?;
    BodyReader::new(&mut card, limits).read(lines, declared)?;
    Ok(card)
}

fn finish(card: &Card, options: &CardOptions, origins: Vec<DocumentSource>) -> Result<ReadCard, CardError> {
    require_processes(card)?;
    card.groups.iter().try_for_each(|group| require_members(card, group))?;
    let build::BuiltWorkspace { workspace, files, warnings } = build::build(card, options, origins)?;
    let warnings = [card.warnings.clone(), warnings].concat();
    Ok(ReadCard { workspace, files, warnings })
}

/// Refuses cards without signals, and channels without backgrounds.
fn require_processes(card: &Card) -> Result<(), CardError> {
    let start = card.channels.first().map_or(words::CardPlace::start(0), |channel| channel.place);
    if !card.processes.iter().any(|process| process.is_signal) {
        return Err(CardProblem::NoSignal.at(start));
    }
    for (channel, columns) in card.channels.iter().zip(card.columns_by_channel()) {
        let mut contributing = columns.into_iter().filter(|&column| card.columns[column].rate != 0.0).peekable();
        let what = if contributing.peek().is_none() {
            "process with a rate"
        } else if contributing.all(|column| card.is_signal(column)) {
            "background with a rate"
        } else {
            continue;
        };
        return Err(CardProblem::EmptyChannel { channel: channel.name.clone(), what }.at(channel.place));
    }
    Ok(())
}

/// Refuses groups of parameters that the card does not have.
fn require_members(card: &Card, group: &Group) -> Result<(), CardError> {
    let systematics = card.systematics.iter().map(|systematic| &systematic.name);
    let others = card.rates.iter().map(|rate| &rate.name).chain(&card.flats);
    let names = || systematics.clone().chain(others.clone()).chain(card.externals.iter().map(|one| &one.name));
    match group.members.iter().find(|member| !names().any(|name| name == *member)) {
        Some(member) => {
            let known = names().cloned().collect();
            Err(CardProblem::Unknown { what: "parameter", name: member.clone(), known }.at(group.place))
        }
        None => Ok(()),
    }
}
