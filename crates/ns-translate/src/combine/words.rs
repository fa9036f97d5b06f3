//! A card as lines of words, each with its place, and words as numbers.

use super::error::{CardError, CardProblem};
use crate::place::{DocumentPlace, TextPosition};

/// A line and a column of one of the cards that are read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CardPlace {
    /// Which card.
    pub(super) card: usize,
    position: TextPosition,
}

impl CardPlace {
    /// Returns the beginning of the card with this index.
    pub(super) fn start(card: usize) -> Self {
        Self { card, position: TextPosition { line: 1, column: 1 } }
    }

    pub(super) fn document(self) -> DocumentPlace {
        DocumentPlace { pointer: String::new(), position: Some(self.position) }
    }
}

/// A word of a card.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) place: CardPlace,
}

impl Word<'_> {
    /// Returns the finite number that the word is.
    pub(super) fn number(&self, wanted: &'static str) -> Result<f64, CardError> {
        self.text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(|| self.unexpected(wanted))
    }

    /// Returns the whole number that the word is.
    pub(super) fn integer(&self, wanted: &'static str) -> Result<i64, CardError> {
        self.text.parse().map_err(|_| self.unexpected(wanted))
    }

    pub(super) fn unexpected(&self, wanted: &'static str) -> CardError {
        CardProblem::Word { wanted, word: self.text.to_owned() }.at(self.place)
    }

    /// Returns whether it stands for nothing: dashes, as Combine has it.
    pub(super) fn is_dash(&self) -> bool {
        self.text.bytes().all(|byte| byte == b'-')
    }
}

/// A line with words, without its comment.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// At least one.
    pub(super) words: Vec<Word<'a>>,
}

impl<'a> Line<'a> {
    pub(super) fn first(&self) -> Word<'a> {
        self.words[0]
    }

    pub(super) fn place(&self) -> CardPlace {
        self.words[0].place
    }

    /// Returns word `index`, or an error that says what the line should have.
    pub(super) fn word(&self, index: usize, wanted: &'static str) -> Result<Word<'a>, CardError> {
        self.words.get(index).copied().ok_or_else(|| self.too_short(wanted))
    }

    pub(super) fn too_short(&self, wanted: &'static str) -> CardError {
        let line = self.words.iter().take(2).map(|word| word.text).collect::<Vec<_>>().join(" ");
        CardProblem::Short { line, wanted }.at(self.place())
    }
}

/// Returns the lines of the card with index `card` that are not blank, comments or rulers.
pub(super) fn lines(text: &str, card: usize) -> impl Iterator<Item = Line<'_>> {
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.starts_with("--") || line.starts_with('#') {
            return None;
        }
        let line = line.find('#').map_or(line, |comment| &line[..comment]);
        let words: Vec<Word<'_>> = words(line, card, index + 1).collect();
        (!words.is_empty()).then_some(Line { words })
    })
}

fn words(line: &str, card: usize, number: usize) -> impl Iterator<Item = Word<'_>> {
    let (mut at, mut column) = (0, 1);
    line.split_whitespace().map(move |text| {
        let start = text.as_ptr() as usize - line.as_ptr() as usize;
        column += line[at..start].chars().count();
        at = start;
        Word { text, place: CardPlace { card, position: TextPosition { line: number, column } } }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_their_line_and_column() {
        let text = "imax 1\n# all\n----\n  é  rate\t2 # comment\n\n";
        let found: Vec<Vec<String>> = lines(text, 0)
            .map(|line| line.words.iter().map(|word| format!("{} {}", word.text, word.place.document())).collect())
            .collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], ["imax at line 1, column 1", "1 at line 1, column 6"]);
        assert_eq!(found[1], ["é at line 4, column 3", "rate at line 4, column 6", "2 at line 4, column 11"]);
    }
}
