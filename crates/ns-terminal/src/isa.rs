//! Warns of a `NEXTSTAT_ISA` that is not an instruction set.

use crate::escape;

/// The valid values of `NEXTSTAT_ISA`. Some are the baseline of a machine or of an engine: the
/// baseline of fits on aarch64 is NEON.
const KNOWN: [&str; 4] = ["baseline", "neon", "avx2", "avx512"];

/// Returns a warning if `NEXTSTAT_ISA` is set and is not an instruction set, or else `None`.
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
