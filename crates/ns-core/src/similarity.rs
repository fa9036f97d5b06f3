//! Finds the name that a misspelt one was probably meant to be, for "did you mean" in messages.
//!
//! All crates that suggest names use these functions, so that all messages follow one rule.

/// The smallest [`name_similarity`] of two names of which one may be a misspelling of the other.
const ALIKE: f64 = 0.6;

/// The smallest Jaro-Winkler similarity of a name that is suggested.
const SUGGESTED: f64 = 0.8;

/// Bytes beyond which names are not compared: the time grows with the product of their lengths.
const LONGEST: usize = 500;

/// Returns the one of `candidates` that is most similar to `name`, or `None` if none is similar.
///
/// A name is similar to its own beginning and to names in which few letters differ. Case is
/// ignored.
///
/// ```
/// use ns_core::similar_name;
/// assert_eq!(similar_name("Mu", ["xs", "mu"]), Some("mu"));
/// assert_eq!(similar_name("mu_SIG", ["MUO_ID", "xs"]), None);
/// ```
pub fn similar_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let score = |candidate: &str| {
        if name.len().max(candidate.len()) > LONGEST {
            return 0.0;
        }
        let candidate = candidate.to_lowercase();
        let is_beginning = candidate.starts_with(&name) || name.starts_with(&candidate);
        let is_alike = is_beginning || strsim::normalized_damerau_levenshtein(&name, &candidate) >= ALIKE;
        if is_alike { strsim::jaro_winkler(&name, &candidate) } else { 0.0 }
    };
    let scored = candidates.into_iter().map(|candidate| (score(candidate), candidate));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > SUGGESTED).then_some(best.1)
}

/// Returns the hint "did you mean `…`?" with the [`similar_name`] of `candidates`, or `None` if
/// none is similar.
///
/// ```
/// use ns_core::did_you_mean;
/// assert_eq!(did_you_mean("normsy", ["histosys", "normsys"]).as_deref(), Some("did you mean `normsys`?"));
/// assert_eq!(did_you_mean("replace", ["add", "test"]), None);
/// ```
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    similar_name(name, candidates).map(|similar| format!("did you mean `{similar}`?"))
}

/// Returns how similar two names are, from 0 (nothing in common) to 1 (equal), ignoring case: for
/// lists of the nearest names.
///
/// The measure is the Damerau-Levenshtein distance divided by the length of the longer name,
/// subtracted from 1. Names of more than 500 bytes are not compared and give 0.
///
/// ```
/// use ns_core::name_similarity;
/// assert_eq!(name_similarity("lumi", "Lumi"), 1.0);
/// assert_eq!(name_similarity("lumi", "limu"), 0.5); // two of four letters differ
/// assert_eq!(name_similarity("lumi", "xs"), 0.0);
/// ```
#[must_use]
pub fn name_similarity(a: &str, b: &str) -> f64 {
    if a.len().max(b.len()) > LONGEST {
        return 0.0;
    }
    strsim::normalized_damerau_levenshtein(&a.to_lowercase(), &b.to_lowercase())
}
