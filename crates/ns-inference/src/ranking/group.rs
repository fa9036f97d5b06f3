//! Groups of parameters, by patterns of their names.

use ns_core::Parameters;

/// Parameters that are looked at together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterGroup {
    /// What it is called.
    pub name: String,
    /// Its members' indices, in order.
    pub members: Vec<usize>,
}

impl ParameterGroup {
    /// Returns the parameters whose name, or the name of the vector that they are an element of,
    /// matches one of `patterns`.
    #[must_use]
    pub fn matching<S: AsRef<str>>(name: &str, patterns: &[S], parameters: &Parameters) -> Self {
        let is_meant = |name: &str| patterns.iter().any(|pattern| matches(pattern.as_ref(), name));
        let mut members = Vec::new();
        for set in &parameters.sets {
            let is_whole = is_meant(&set.name);
            members.extend(set.range().filter(|&i| is_whole || is_meant(&parameters.names[i])));
        }
        Self { name: name.to_owned(), members }
    }
}

/// Returns `true` if `name` is what `pattern` says, in which `*` stands for any characters and `?`
/// for one.
///
/// ```
/// use ns_inference::ranking::matches;
/// assert!(matches("JES_*", "JES_flavour") && matches("stat_?[*]", "stat_A[12]") && !matches("JES_*", "JER_JES_1"));
/// ```
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut read) = (0, 0);
    // The last star, and how much of the name it stands for so far; where the rest does not fit it
    // takes one more.
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(&c) if c == '?' || c == name[read] => (at, read) = (at + 1, read + 1),
            _ => {
                let Some((back, taken)) = star else { return false };
                star = Some((back, taken + 1));
                (at, read) = (back + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|&c| c == '*')
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
}
