//! From the parameter names that a user types to the indices of a model.

use std::ops::Range;

use ns_core::Parameters;

use crate::error::CliError;

/// The elements that `name` stands for: one parameter, or every element of a vector.
pub(crate) fn elements(parameters: &Parameters, option: &'static str, name: &str) -> Result<Range<usize>, CliError> {
    if let Some(index) = parameters.index_of(name) {
        return Ok(index..index + 1);
    }
    parameters.set(name).map(ns_core::parameters::ParameterSet::range).ok_or_else(|| CliError::UnknownParameter {
        option,
        name: name.to_owned(),
        similar: parameters.similar(name).map(str::to_owned),
    })
}

/// `(element, value)` for each name and value; none may be set twice.
pub(crate) fn settings<'a, V: Copy + 'a>(
    parameters: &Parameters,
    option: &'static str,
    given: impl Iterator<Item = (&'a str, V)>,
) -> Result<Vec<(usize, V)>, CliError> {
    let mut settings: Vec<(usize, V)> = Vec::new();
    for (name, value) in given {
        for element in elements(parameters, option, name)? {
            if settings.iter().any(|(known, _)| *known == element) {
                return Err(CliError::SetTwice { option, name: parameters.names[element].clone() });
            }
            settings.push((element, value));
        }
    }
    Ok(settings)
}
