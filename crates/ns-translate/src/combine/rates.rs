//! Reads `rateParam`: factors of processes in channels, which are parameters or formulas of them.

use ns_core::pattern;

use super::body::{BodyReader, range};
use super::card::{RateParameter, RateValue};
use super::error::{CardError, CardProblem};
use super::words::Line;

const WANTED: &str = "`NAME rateParam CHANNEL PROCESS VALUE [LO,HI]`, or `… FORMULA ARGUMENTS`";

/// Reads the line `rateParam` for all channels and processes that it names.
pub(super) fn read(reader: &mut BodyReader<'_>, line: &Line<'_>) -> Result<(), CardError> {
    let value = value(line)?;
    let (name, place) = (line.first().text.to_owned(), line.place());
    for column in columns(reader, line)? {
        reader.limits.rates(1, place)?;
        reader.card.rates.push(RateParameter { name: name.clone(), column, value: value.clone(), place });
    }
    Ok(())
}

fn value(line: &Line<'_>) -> Result<RateValue, CardError> {
    let first = line.word(4, WANTED)?;
    if line.words.len() > 6 {
        return Err(line.words[6].unexpected("the end of the line"));
    }
    match line.words.get(5) {
        None if first.text.contains(".root") && first.text.contains(':') => {
            let reason = "its value is in a RooWorkspace";
            Err(CardProblem::Unsupported { kind: "rateParam".to_owned(), reason }.at(first.place))
        }
        None => Ok(RateValue::Free { start: first.number("a value or a formula with its arguments")?, range: None }),
        Some(word) if word.text.contains('[') && word.text.contains(']') => {
            let start = first.number("a value")?;
            let ends = range(*word)?;
            if start < ends[0] || start > ends[1] {
                return Err(first.unexpected("a value within its range"));
            }
            Ok(RateValue::Free { start, range: Some(ends) })
        }
        Some(word) => {
            let arguments: Vec<String> = word.text.split(',').map(str::to_owned).collect();
            let text = first.text.to_owned();
            if let Err(error) = ns_core::formula::Formula::parse(&text, &arguments) {
                return Err(CardProblem::Formula { formula: text }.because(error, first.place));
            }
            Ok(RateValue::Formula { text, arguments })
        }
    }
}

/// Returns the columns of the channels and processes of a line, which may be patterns.
fn columns(reader: &BodyReader<'_>, line: &Line<'_>) -> Result<Vec<usize>, CardError> {
    let (channel, process) = (line.word(2, WANTED)?, line.word(3, WANTED)?);
    if !channel.text.contains('*') && !process.text.contains('*') {
        let wanted = (reader.channel(channel)?, reader.process(process)?);
        let columns = reader.card.columns.iter().enumerate();
        // A process that does not contribute to the channel has no column, and no effect.
        return Ok(columns.filter(|(_, column)| (column.channel, column.process) == wanted).map(|(i, _)| i).collect());
    }
    let matches = |index: &usize| {
        let name = reader.card.column_name(*index);
        pattern::matches(channel.text, name.channel) && pattern::matches(process.text, name.process)
    };
    let found: Vec<usize> = (0..reader.card.columns.len()).filter(matches).collect();
    if found.is_empty() {
        let name = format!("{} {}", channel.text, process.text);
        return Err(CardProblem::Unknown { what: "process in a channel", name, known: Vec::new() }.at(channel.place));
    }
    Ok(found)
}
