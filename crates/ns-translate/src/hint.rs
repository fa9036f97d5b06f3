//! Words that hints are made of.

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
    fn places_of_one_file_are_listed_once() {
        let places = ["a.root", "./a.root", "inputs/a.root", "a.root"].map(PathBuf::from);
        assert_eq!(tried(places), ["a.root", "inputs/a.root"]);
    }
}
