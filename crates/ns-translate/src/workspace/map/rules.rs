//! Finds the rule of a name: an exact name precedes patterns, and two rules of one rank contradict
//! each other.

use ns_core::pattern;

use super::{MapError, MapProblem, Placed};

/// Returns the pattern that matches `name`: the one that is equal to it, else the first that
/// matches.
pub(in crate::workspace) fn matched<'p>(patterns: &'p [Placed], name: &str) -> Option<&'p Placed> {
    let exact = patterns.iter().find(|placed| placed.text == name);
    exact.or_else(|| patterns.iter().find(|placed| pattern::matches(&placed.text, name)))
}

/// Returns the candidate that applies to `name`. Each of `candidates` has patterns of names.
///
/// # Errors
/// If several candidates have a pattern that is equal to `name`, or if none has and the patterns of
/// several match it.
pub(in crate::workspace) fn chosen<'c, T>(
    name: &str,
    candidates: impl Iterator<Item = (T, &'c [Placed])>,
) -> Result<Option<(T, &'c Placed)>, MapError> {
    let found = candidates.filter_map(|(rule, patterns)| Some((rule, matched(patterns, name)?)));
    let (exact, by_pattern): (Vec<_>, Vec<_>) = found.partition(|(_, placed)| placed.text == name);
    let is_exact = !exact.is_empty();
    let mut found = if is_exact { exact } else { by_pattern }.into_iter();
    let (first, second) = (found.next(), found.next());
    match (&first, second) {
        (Some((_, first)), Some((_, placed))) => {
            let first = first.place.clone();
            Err(placed.error(MapProblem::TwoRules { name: name.to_owned(), first, is_exact }))
        }
        _ => Ok(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_name_precedes_patterns_in_any_order() {
        let rules = ["theory_*", "theory_ttbar", "*_ttbar"];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let patterns = order.map(|i| [Placed { text: rules[i].to_owned(), place: None }]);
            let candidates = |n: usize| order.into_iter().zip(patterns[..n].iter().map(|pattern| &pattern[..]));
            let found = chosen("theory_ttbar", candidates(3)).expect("one rule").expect("a rule");
            assert_eq!((found.0, &*found.1.text), (1, "theory_ttbar"), "{order:?}");
            let is_decided = order[..2].contains(&1);
            assert_eq!(chosen("theory_ttbar", candidates(2)).is_ok(), is_decided, "{order:?}");
            assert!(chosen("theory_ttbar", candidates(3).chain(candidates(3))).is_err(), "twice");
            assert!(chosen("other", candidates(3)).expect("no rule").is_none());
        }
    }
}
