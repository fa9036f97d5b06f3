//! The names of parameters: those of pyhf for those of HS3.
//!
//! ROOT calls the parameter of the modifier `JES` `alpha_JES`, the luminosity `Lumi`, and the
//! factor of a bin `gamma_stat_SR_bin_0`. Here they are `JES`, `lumi` and `staterror_SR[0]`, as in
//! models that are read from HistFactory XML. Where that would make two parameters one, the names
//! of the document stay.

use std::collections::HashMap;

/// The names of all parameters of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NameTable {
    scalars: HashMap<String, String>,
    vectors: HashMap<Vec<String>, String>,
}

impl NameTable {
    /// Chooses names. Each scalar and each vector comes with the name of its first modifier;
    /// `lumi` is the parameter that is the luminosity.
    pub(super) fn choose(scalars: &[(&str, &str)], vectors: &[(&[String], &str)], lumi: Option<&str>) -> Self {
        let mut taken = TakenNames::default();
        let wanted: Vec<String> = scalars.iter().map(|(name, modifier)| scalar_name(name, modifier, lumi)).collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for name in &wanted {
            *counts.entry(name).or_default() += 1;
        }
        let mut chosen = HashMap::new();
        for ((written, _), wanted) in scalars.iter().zip(&wanted) {
            let is_free = counts[wanted.as_str()] == 1;
            let name = if is_free { wanted.clone() } else { (*written).to_owned() };
            chosen.insert((*written).to_owned(), taken.take(&name));
        }
        let mut names = HashMap::new();
        for (parameters, modifier) in vectors {
            names.insert(parameters.to_vec(), taken.take(&vector_name(parameters, modifier)));
        }
        Self { scalars: chosen, vectors: names }
    }

    /// Returns the name here of a parameter of the document that is one number, or the same name if
    /// the model has none.
    pub(super) fn scalar<'a>(&'a self, parameter: &'a str) -> &'a str {
        self.scalars.get(parameter).map_or(parameter, String::as_str)
    }

    /// Returns the name here of any parameter of the document.
    pub(super) fn parameter(&self, parameter: &str) -> String {
        let element = self.vectors.iter().find_map(|(elements, name)| {
            let bin = elements.iter().position(|element| element == parameter)?;
            Some(format!("{name}[{bin}]"))
        });
        element.unwrap_or_else(|| self.scalar(parameter).to_owned())
    }

    /// Returns the name here of a vector of parameters of the model.
    pub(super) fn vector<'a>(&'a self, parameters: &'a [String]) -> &'a str {
        self.vectors.get(parameters).map_or("", String::as_str)
    }
}

fn scalar_name(parameter: &str, modifier: &str, lumi: Option<&str>) -> String {
    if lumi == Some(parameter) {
        return "lumi".to_owned();
    }
    match parameter.strip_prefix("alpha_") {
        Some(rest) if rest == modifier => rest.to_owned(),
        _ => parameter.to_owned(),
    }
}

/// Returns the name of a vector: that which its elements have in common, without `gamma_`.
pub(super) fn vector_name(parameters: &[String], modifier: &str) -> String {
    let Some(base) = common_base(parameters) else { return modifier.to_owned() };
    if base == modifier {
        return base.to_owned();
    }
    match (base.strip_prefix("gamma_stat_"), base.strip_prefix("gamma_")) {
        (Some(channel), _) => format!("staterror_{channel}"),
        (None, Some(rest)) => rest.to_owned(),
        (None, None) => base.to_owned(),
    }
}

/// Returns what the names of the elements 0, 1, … begin with.
fn common_base(parameters: &[String]) -> Option<&str> {
    let endings = [|i: usize| format!("_bin_{i}"), |i| format!("_{i}"), |i| format!("[{i}]")];
    endings.into_iter().find_map(|ending| {
        let base = parameters.first()?.strip_suffix(&ending(0))?;
        let is_numbered = |(i, name): (usize, &String)| name.strip_suffix(&ending(i)) == Some(base);
        (!base.is_empty() && parameters.iter().enumerate().all(is_numbered)).then_some(base)
    })
}

/// Names that are taken, and the number that the next one of the same name gets.
#[derive(Default)]
struct TakenNames(HashMap<String, usize>);

impl TakenNames {
    /// Takes `name`, with a number if it is taken.
    fn take(&mut self, name: &str) -> String {
        let mut number = self.0.get(name).copied().unwrap_or(1);
        let mut free = name.to_owned();
        while self.0.contains_key(&free) {
            number += 1;
            free = format!("{name}_{number}");
        }
        self.0.insert(name.to_owned(), number);
        self.0.entry(free.clone()).or_insert(1);
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn names_of_root_become_those_of_pyhf() {
        let stat = strings(&["gamma_stat_SR_bin_0", "gamma_stat_SR_bin_1"]);
        let shape = strings(&["gamma_flat_bin_0"]);
        let other = strings(&["a", "b"]);
        let vectors: [(&[String], &str); 3] = [(&stat, "staterror"), (&shape, "flat"), (&other, "mine")];
        let names =
            NameTable::choose(&[("alpha_JES", "JES"), ("Lumi", "Lumi"), ("alpha_mu", "x")], &vectors, Some("Lumi"));
        assert_eq!(
            ["alpha_JES", "Lumi", "alpha_mu", "unknown"].map(|name| names.scalar(name)),
            ["JES", "lumi", "alpha_mu", "unknown"]
        );
        assert_eq!([&stat, &shape, &other].map(|list| names.vector(list)), ["staterror_SR", "flat", "mine"]);
    }

    #[test]
    fn two_parameters_never_become_one() {
        let names = NameTable::choose(&[("alpha_JES", "JES"), ("JES", "JES")], &[(&strings(&["JES_0"]), "JES")], None);
        assert_eq!(["alpha_JES", "JES"].map(|name| names.scalar(name)), ["alpha_JES", "JES"]);
        assert_eq!(names.vector(&strings(&["JES_0"])), "JES_2");
    }
}
