//! Which parameters Combine's `--freezeParameters` names.

use nextstat::CompiledModel;
use nextstat::error::Setting;
use nextstat::settings::elements;
use regex_lite::Regex;

use crate::error::CliError;
use crate::output::reporter;

/// The parameters of one `--freezeParameters`.
#[derive(Debug, Clone)]
pub(crate) struct FrozenParameters(Vec<FrozenPart>);

/// One part of the list.
#[derive(Debug, Clone)]
struct FrozenPart {
    /// As it is given.
    text: String,
    names: Frozen,
}

/// What a part names.
#[derive(Debug, Clone)]
enum Frozen {
    Name(String),
    /// `allConstrainedNuisances`
    Constrained,
    /// `rgx{…}`: constrained parameters whose whole name matches.
    ConstrainedLike(Regex),
    /// `var{…}`: all such parameters.
    Like(Regex),
}

/// Parses `NAME,…`, in which commas within braces are parts of names.
pub(crate) fn frozen(text: &str) -> Result<FrozenParameters, String> {
    let parts = split_at_commas(text);
    parts.into_iter().filter(|part| !part.is_empty()).map(part).collect::<Result<_, _>>().map(FrozenParameters)
}

fn part(text: &str) -> Result<FrozenPart, String> {
    Ok(FrozenPart { text: text.to_owned(), names: names(text)? })
}

fn names(text: &str) -> Result<Frozen, String> {
    let inside = |prefix: &str| text.strip_prefix(prefix)?.strip_suffix('}');
    let regex = |pattern: &str| {
        Regex::new(&format!("^(?:{pattern})$"))
            .map_err(|error| format!("`{pattern}` is not a regular expression: {error}"))
    };
    match (inside("rgx{"), inside("var{")) {
        (Some(pattern), _) => regex(pattern).map(Frozen::ConstrainedLike),
        (_, Some(pattern)) => regex(pattern).map(Frozen::Like),
        _ if text == "allConstrainedNuisances" => Ok(Frozen::Constrained),
        _ => Ok(Frozen::Name(text.to_owned())),
    }
}

fn split_at_commas(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|character| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .collect()
}

impl FrozenParameters {
    /// Returns the indices of the parameters of all flags, with duplicates.
    pub(crate) fn resolve(flags: &[Self], model: &CompiledModel) -> Result<Vec<usize>, CliError> {
        let names = &model.model().parameters.names;
        let constrained = constrained(model);
        let mut found = Vec::new();
        for part in flags.iter().flat_map(|flag| &flag.0) {
            let matching = |pattern: &Regex, among: &mut dyn Iterator<Item = usize>| -> Vec<usize> {
                among.filter(|&i| pattern.is_match(&names[i])).collect()
            };
            let of_part = match &part.names {
                Frozen::Name(name) => elements(&model.model().parameters, Setting::FreezeParameters, name)?,
                Frozen::Constrained => constrained.clone(),
                Frozen::ConstrainedLike(pattern) => matching(pattern, &mut constrained.iter().copied()),
                Frozen::Like(pattern) => matching(pattern, &mut (0..names.len())),
            };
            if of_part.is_empty() {
                reporter::warning(&format!("`{}` of `--freezeParameters` matches no parameter", part.text));
            }
            found.extend(of_part);
        }
        Ok(found)
    }
}

/// Returns the nuisance parameters with a term, those with a flat one included: Combine calls all
/// parameters of uncertainties constrained, and not those of `rateParam`.
fn constrained(model: &CompiledModel) -> Vec<usize> {
    let (measurement, model) = (model.measurement(), model.model());
    let parameters = &model.parameters;
    let has_term = |name: &str| {
        let mut configs = measurement.into_iter().flat_map(|measurement| &measurement.parameters);
        configs.any(|config| config.name == name && config.constraints.is_some())
    };
    let of_set = |set: &ns_core::parameters::ParameterSet| {
        let is_declared = has_term(&set.name);
        set.range().filter(move |&i| is_declared || parameters.constraint[i].is_some()).collect::<Vec<usize>>()
    };
    let all = parameters.sets.iter().flat_map(of_set);
    all.filter(|i| !model.pois.contains(i) && !parameters.fixed[*i]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_within_braces_are_parts_of_patterns() {
        assert_eq!(split_at_commas("a,rgx{b{1,2}},c"), ["a", "rgx{b{1,2}}", "c"]);
        let FrozenParameters(parts) = frozen("allConstrainedNuisances,,rgx{lumi.*},var{r_.*},x").expect("readable");
        let names: Vec<Frozen> = parts.into_iter().map(|part| part.names).collect();
        assert!(matches!(
            names[..],
            [Frozen::Constrained, Frozen::ConstrainedLike(_), Frozen::Like(_), Frozen::Name(_)]
        ));
        assert!(frozen("rgx{(}").expect_err("no pattern").starts_with("`(` is not a regular expression"));
    }
}
