//! The warning about a `NEXTSTAT_ISA` that names no instruction set.

use crate::escape;

/// The words that `NEXTSTAT_ISA` may be. Some name the baseline of a machine or of an engine: fits
/// have NEON as their baseline on aarch64.
const KNOWN: [&str; 4] = ["baseline", "neon", "avx2", "avx512"];

/// What is said of `NEXTSTAT_ISA`, if it is set and names no instruction set.
pub fn unknown_instruction_set() -> Option<String> {
    warning_about(&std::env::var_os("NEXTSTAT_ISA")?.to_string_lossy())
}

fn warning_about(word: &str) -> Option<String> {
    let is_unknown = !word.is_empty() && !KNOWN.contains(&word);
    is_unknown.then(|| {
        let (word, known) = (escape(word), KNOWN.join("`, `"));
        format!("`NEXTSTAT_ISA={word}` names no instruction set and is ignored; known: `{known}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unknown_words_are_warned_of() {
        assert!(KNOWN.iter().chain(&[""]).all(|word| warning_about(word).is_none()));
        let said = warning_about("AVX2\u{1b}");
        let expected = "`NEXTSTAT_ISA=AVX2\\u{1b}` names no instruction set and is ignored; known: `baseline`, `neon`, `avx2`, `avx512`";
        assert_eq!(said.as_deref(), Some(expected));
    }
}
