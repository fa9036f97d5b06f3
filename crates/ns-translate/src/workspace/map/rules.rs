//! Finds the rule of a name: an exact name precedes patterns, and two rules of one rank contradict
//! each other.

use ns_core::pattern;

use super::{MapError, MapProblem, Placed};

/// Returns the first of `patterns` that says `name`, exact ones first.
pub(in crate::workspace) fn matched<'p>(patterns: &'p [Placed], name: &str) -> Option<&'p Placed> {
    let exact = patterns.iter().find(|placed| placed.text == name);
    exact.or_else(|| patterns.iter().find(|placed| pattern::matches(&placed.text, name)))
}

/// Returns the one of `candidates`, each with what it says of `name`, that applies to it.
///
/// # Errors
/// If several say it exactly, or none does and several say it by patterns.
pub(in crate::workspace) fn chosen<'c, T>(
    name: &str,
    candidates: impl Iterator<Item = (T, &'c [Placed])>,
) -> Result<Option<(T, &'c Placed)>, MapError> {
    let mut best: Option<(T, &Placed, bool)> = None;
    for (rule, patterns) in candidates {
        let Some(placed) = matched(patterns, name) else { continue };
        let is_exact = placed.text == name;
        match &best {
            Some((_, _, was_exact)) if *was_exact && !is_exact => {}
            Some((_, other, was_exact)) if *was_exact == is_exact => {
                let first = other.place.clone();
                return Err(placed.error(MapProblem::TwoRules { name: name.to_owned(), first, is_exact }));
            }
            _ => best = Some((rule, placed, is_exact)),
        }
    }
    Ok(best.map(|(rule, placed, _)| (rule, placed)))
}
