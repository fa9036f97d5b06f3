//! Patterns of names: `JES_*` for all parameters whose name begins with `JES_`.

/// Returns `true` if `name` is what `pattern` says, in which `*` stands for any characters and `?`
/// for one.
///
/// ```
/// use ns_core::pattern::matches;
/// assert!(matches("JES_*", "JES_flavour") && matches("stat_?[*]", "stat_A[12]") && !matches("JES_*", "JER_JES_1"));
/// ```
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    captures(pattern, name).is_some()
}

/// Returns what each `*` and `?` of `pattern` stands for in `name`, in order, or `None` if the name
/// is not what the pattern says.
///
/// Where several choices are possible, every `*` but the last stands for as little as it can.
///
/// ```
/// use ns_core::pattern::captures;
/// assert_eq!(captures("JES_*_?", "JES_eta_1"), Some(vec!["eta".to_owned(), "1".to_owned()]));
/// assert_eq!(captures("*_*", "a_b_c"), Some(vec!["a".to_owned(), "b_c".to_owned()]));
/// assert_eq!(captures("lumi", "lumi"), Some(vec![]));
/// assert_eq!(captures("JES_*", "JER_1"), None);
/// ```
#[must_use]
pub fn captures(pattern: &str, name: &str) -> Option<Vec<String>> {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut read) = (0, 0);
    // Where what each wildcard stands for begins and ends.
    let mut spans: Vec<[usize; 2]> = Vec::new();
    // The last star with its number among the wildcards; where the rest does not fit it takes one
    // character more.
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, spans.len()));
                spans.push([read, read]);
                at += 1;
            }
            Some('?') => {
                spans.push([read, read + 1]);
                (at, read) = (at + 1, read + 1);
            }
            Some(&c) if c == name[read] => (at, read) = (at + 1, read + 1),
            _ => {
                let (back, number) = star?;
                spans.truncate(number + 1);
                spans[number][1] += 1;
                (at, read) = (back + 1, spans[number][1]);
            }
        }
    }
    let rest = &pattern[at..];
    spans.extend(rest.iter().map(|_| [read, read]));
    let text = |[start, end]: [usize; 2]| name[start..end].iter().collect();
    rest.iter().all(|&c| c == '*').then(|| spans.into_iter().map(text).collect())
}

/// Returns `template` with its wildcards replaced by `captured`, one after the other.
///
/// ```
/// use ns_core::pattern::{captures, fill};
/// let captured = captures("ATLAS_JES_*", "ATLAS_JES_eta").unwrap();
/// assert_eq!(fill("JES_*", &captured), "JES_eta");
/// ```
#[must_use]
pub fn fill(template: &str, captured: &[String]) -> String {
    let mut captured = captured.iter();
    let mut filled = String::with_capacity(template.len());
    for character in template.chars() {
        match character {
            '*' | '?' => filled.push_str(captured.next().map_or("", String::as_str)),
            other => filled.push(other),
        }
    }
    filled
}

/// Returns the number of wildcards of `pattern`.
#[must_use]
pub fn n_wildcards(pattern: &str) -> usize {
    pattern.chars().filter(|&c| c == '*' || c == '?').count()
}

/// Returns `true` if `name` has a character that a pattern gives a meaning.
///
/// ```
/// assert!(ns_core::pattern::is_pattern("JES_*") && !ns_core::pattern::is_pattern("staterror_SR[2]"));
/// ```
#[must_use]
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_take_as_much_as_they_must() {
        let cases = [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-cd", false),
            ("*[0]", "gamma[0]", true),
            ("?", "é", true),
            ("**a", "bba", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_filled_with_what_it_captured_is_the_name() {
        let parts = ["", "a", "b", "ab", "*", "?", "a*", "*b", "é"];
        let names = ["", "a", "ab", "aab", "abab", "bé", "éabba"];
        let patterns = parts.iter().flat_map(|x| parts.iter().flat_map(move |y| parts.map(|z| format!("{x}{y}{z}"))));
        let mut n_matches = 0;
        for pattern in patterns {
            for name in names {
                let Some(captured) = captures(&pattern, name) else { continue };
                n_matches += 1;
                assert_eq!(captured.len(), n_wildcards(&pattern), "{pattern} {name}");
                assert_eq!(fill(&pattern, &captured), name, "{pattern}");
            }
        }
        assert!(n_matches > 500, "{n_matches}");
    }
}
