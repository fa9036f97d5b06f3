//! Reads text with a row of numbers on each line.

use super::{NumberTable, NumberTableError};
use crate::hint::shortened;

/// The longest word that a message shows.
const LONGEST: usize = 40;

/// Reads the lines of `text`.
pub(super) fn read(text: &str) -> Result<NumberTable, NumberTableError> {
    let mut table = NumberTable::default();
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    for (i, (line, row)) in lines.enumerate() {
        if i == 0 && words(row).all(|word| word.parse::<f64>().is_err()) {
            continue;
        }
        let before = table.values.len();
        for (column, word) in (1..).zip(words(row)) {
            let not_a_number = |_| NumberTableError::NotANumber { text: shortened(word, LONGEST), line, column };
            table.values.push(word.parse().map_err(not_a_number)?);
        }
        let found = table.values.len() - before;
        if table.n_rows == 0 {
            table.n_columns = found;
        } else if found != table.n_columns {
            return Err(NumberTableError::Ragged { line, found, expected: table.n_columns });
        }
        table.n_rows += 1;
    }
    Ok(table)
}

/// Returns the words of a line: between commas if there are any, otherwise between blanks.
fn words(line: &str) -> Box<dyn Iterator<Item = &str> + '_> {
    if line.contains(',') { Box::new(line.split(',').map(str::trim)) } else { Box::new(line.split_whitespace()) }
}
