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
}
