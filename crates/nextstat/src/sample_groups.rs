//! Groups of samples that yields sum: small or related backgrounds that a table has in one row.

use ns_core::Model;
use ns_core::pattern::{is_pattern, matches};
use ns_core::similarity::similar_name;
use ns_inference::yields::SampleGroup;

/// Groups that do not fit the samples of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleGroupError {
    /// A name or a pattern that no sample has.
    #[error("the group `{group}` names the sample `{name}`, which the model does not have")]
    UnknownSample {
        /// The group.
        group: String,
        /// The name or the pattern.
        name: String,
        /// The sample with the most similar name, if one is similar.
        similar: Option<String>,
        /// The samples.
        known: Vec<String>,
    },
    /// A sample in two groups, whose sums would count it twice.
    #[error("the sample `{sample}` is in the groups `{}` and `{}`", .groups[0], .groups[1])]
    InTwoGroups {
        /// The sample.
        sample: String,
        /// The groups.
        groups: [String; 2],
    },
    /// A group with the name of a sample that is not in it.
    #[error("the group `{name}` has the name of a sample that is not in it")]
    NamedLikeASample {
        /// The name.
        name: String,
    },
    /// Two groups of one name.
    #[error(transparent)]
    Twice(#[from] GroupTwice),
    /// A group without a name, or without a sample.
    #[error("the group `{name}` has no name or no sample")]
    Empty {
        /// The name.
        name: String,
    },
}

/// Two groups, of samples or of parameters, of one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the group `{name}` is defined twice")]
pub struct GroupTwice {
    /// The name.
    pub name: String,
}

impl SampleGroupError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownSample { similar: Some(similar), .. } => Some(format!("did you mean `{similar}`?")),
            Self::UnknownSample { known, .. } => Some(format!("the samples are `{}`", known.join("`, `"))),
            _ => None,
        }
    }
}

/// Returns the groups `wanted`, name and patterns of each, with the samples of `model`.
///
/// # Errors
/// A name or a pattern that no sample has, a sample in two groups, and names that are taken.
pub(crate) fn sample_groups(
    wanted: &[(String, Vec<String>)],
    model: &Model,
) -> Result<Vec<SampleGroup>, SampleGroupError> {
    let mut groups: Vec<SampleGroup> = Vec::with_capacity(wanted.len());
    for (name, patterns) in wanted {
        let group = resolved(model, name, patterns)?;
        if groups.iter().any(|known| known.name == *name) {
            return Err(GroupTwice { name: name.clone() }.into());
        }
        for known in &groups {
            if let Some(&both) = group.samples.iter().find(|sample| known.samples.contains(sample)) {
                let groups = [known.name.clone(), name.clone()];
                return Err(SampleGroupError::InTwoGroups { sample: model.samples[both].clone(), groups });
            }
        }
        groups.push(group);
    }
    Ok(groups)
}

/// Returns the samples of `model` that the `patterns` of a group name, in the order of the model.
fn resolved(model: &Model, name: &str, patterns: &[String]) -> Result<SampleGroup, SampleGroupError> {
    if name.is_empty() || patterns.is_empty() {
        return Err(SampleGroupError::Empty { name: name.to_owned() });
    }
    let names = || model.samples.iter().map(String::as_str);
    let mut is_member = vec![false; model.samples.len()];
    for pattern in patterns {
        let is_named = |sample: &str| sample == pattern || (is_pattern(pattern) && matches(pattern, sample));
        if !names().any(is_named) {
            return Err(SampleGroupError::UnknownSample {
                group: name.to_owned(),
                name: pattern.clone(),
                similar: similar_name(pattern, names()).map(str::to_owned),
                known: model.samples.clone(),
            });
        }
        is_member.iter_mut().zip(names()).for_each(|(is_member, sample)| *is_member |= is_named(sample));
    }
    if names().zip(&is_member).any(|(sample, is_member)| sample == name && !is_member) {
        return Err(SampleGroupError::NamedLikeASample { name: name.to_owned() });
    }
    let samples = (0..is_member.len()).filter(|&sample| is_member[sample]).collect();
    Ok(SampleGroup { name: name.to_owned(), samples })
}
