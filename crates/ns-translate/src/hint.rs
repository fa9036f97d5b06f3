//! Words that hints and lists in messages are made of.

use std::fmt;
use std::path::PathBuf;

use ns_core::did_you_mean;

/// Returns "did you mean `…`?" where one of `known` is similar to `word`, and otherwise all of
/// `known` after `introduction`.
pub(crate) fn meant_or_known<'k>(
    word: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
    introduction: &str,
) -> String {
    did_you_mean(word, known.clone()).unwrap_or_else(|| format!("{introduction} {}", in_backticks(known)))
}

/// Returns `words` in backticks, separated by commas.
pub(crate) fn in_backticks(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{}`", word.as_ref())).collect();
    words.join(", ")
}

/// The most items that [`listed`] shows.
const LISTED: usize = 10;

/// Returns `items` separated by commas: at most ten, and how many more there are.
pub(crate) fn listed(items: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let mut items = items.into_iter();
    let shown: Vec<String> = items.by_ref().take(LISTED).map(|item| item.to_string()).collect();
    let rest = items.count();
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}

/// Returns `words` in backticks, as [`listed`] shows them.
pub(crate) fn listed_in_backticks(words: impl IntoIterator<Item = impl fmt::Display>) -> String {
    listed(words.into_iter().map(|word| format!("`{word}`")))
}

/// Returns where a file was looked for, each place once.
pub(crate) fn tried(places: impl IntoIterator<Item = PathBuf>) -> Vec<String> {
    let (mut known, mut tried) = (Vec::new(), Vec::new());
    for place in places {
        let whole = std::path::absolute(&place).unwrap_or_else(|_| place.clone());
        if !known.contains(&whole) {
            tried.push(place.display().to_string());
            known.push(whole);
        }
    }
    tried
}

/// Returns `text`, cut after `longest` characters.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_say_how_many_more_there_are() {
        assert_eq!(listed(["a", "b"]), "a, b");
        assert_eq!(listed(1..=10), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10");
        assert_eq!(listed_in_backticks(1..=12), "`1`, `2`, `3`, `4`, `5`, `6`, `7`, `8`, `9`, `10` and 2 more");
    }

    #[test]
    fn places_of_one_file_are_listed_once() {
        let places = ["a.root", "./a.root", "inputs/a.root", "a.root"].map(PathBuf::from);
        assert_eq!(tried(places), ["a.root", "inputs/a.root"]);
    }
}
