//! Groups of parameters, by patterns of their names.

use ns_core::Parameters;
use ns_core::pattern::matches;

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
