//! The model `multiSignalModel`: maps from patterns of channels and processes to parameters.

use regex_lite::Regex;

use super::{ModelFormula, ModelParameter, Physics, YieldScale};
use crate::combine::card::{Card, ColumnName};
use crate::combine::numbers::ordered;
use crate::combine::option_error::CardOptionError;
use crate::combine::patterns::beginning;

const MODEL: &str = "multiSignalModel";

/// Maps of one model, in their order.
#[derive(Default)]
pub(super) struct MultiSignal {
    maps: Vec<Map>,
    parameters: Vec<ModelParameter>,
    formulas: Vec<ModelFormula>,
}

struct Map {
    /// Of `CHANNEL/PROCESS`, from its beginning.
    patterns: Vec<Regex>,
    scale: YieldScale,
}

fn unreadable(option: &str) -> CardOptionError {
    const WANTED: &str = "`map=CHANNEL/PROCESS:NAME[START,LO,HI]`, a name without range, `0`, `1`, or `NAME=expr;;NAME(\"FORMULA\",ARGUMENTS)`";
    CardOptionError::ModelOption { model: MODEL, option: option.to_owned(), wanted: WANTED }
}

impl MultiSignal {
    pub(super) fn read(options: &[String]) -> Result<Self, CardOptionError> {
        let mut model = Self::default();
        // Combine appends what `turnoff` stands for to the other options.
        let (off, maps): (Vec<_>, Vec<_>) = options.iter().partition(|option| option.starts_with("turnoff="));
        for option in maps.into_iter().filter(|option| *option != "verbose") {
            let map = option.strip_prefix("map=").ok_or_else(|| unreadable(option))?;
            let (patterns, target) = map.split_once(':').ok_or_else(|| unreadable(option))?;
            let scale = model.target(target).ok_or_else(|| unreadable(option))?;
            model.map(patterns.split(','), scale)?;
        }
        for processes in off.into_iter().filter_map(|option| option.strip_prefix("turnoff=")) {
            let pattern = format!(".*/({})", processes.replace(',', "|"));
            model.map([pattern.as_str()], YieldScale::Zero)?;
        }
        model.require_all_known(options)?;
        Ok(model)
    }

    fn map<'p>(
        &mut self,
        patterns: impl IntoIterator<Item = &'p str>,
        scale: YieldScale,
    ) -> Result<(), CardOptionError> {
        let compile = |pattern: &str| {
            beginning(pattern)
                .map_err(|error| CardOptionError::Pattern { pattern: pattern.to_owned(), reason: error.to_string() })
        };
        let patterns = patterns.into_iter().map(compile).collect::<Result<_, _>>()?;
        self.maps.push(Map { patterns, scale });
        Ok(())
    }

    /// Reads what patterns are mapped to, and notes a parameter or formula that is new.
    fn target(&mut self, target: &str) -> Option<YieldScale> {
        match target {
            "0" => return Some(YieldScale::Zero),
            "1" => return Some(YieldScale::One),
            _ => {}
        }
        if let Some((name, factory)) = target.split_once('=') {
            let formula = formula(name, &factory.replace(';', ":"))?;
            if !self.formulas.contains(&formula) {
                self.formulas.push(formula);
            }
            return Some(YieldScale::Named(name.to_owned()));
        }
        let name = target.split('[').next()?;
        let known = self.parameters.iter().any(|parameter| parameter.name == name);
        if !known && target.contains('[') {
            self.parameters.push(parameter(name, target)?);
        }
        (!name.is_empty()).then(|| YieldScale::Named(name.to_owned()))
    }

    /// Refuses maps to names that no map gives a range.
    fn require_all_known(&self, options: &[String]) -> Result<(), CardOptionError> {
        let is_known = |name: &str| {
            self.parameters.iter().any(|parameter| parameter.name == name)
                || self.formulas.iter().any(|formula| formula.name == name)
        };
        let unknown = self.maps.iter().find_map(|map| match &map.scale {
            YieldScale::Named(name) if !is_known(name) => Some(name),
            _ => None,
        });
        let Some(name) = unknown else { return Ok(()) };
        let option = options.iter().find(|option| option.ends_with(&format!(":{name}")));
        Err(unreadable(option.unwrap_or(name)))
    }

    pub(super) fn apply(self, card: &Card) -> Result<Physics, CardOptionError> {
        let scale = |column: usize| {
            let ColumnName { channel, process } = card.column_name(column);
            let place = format!("{channel}/{process}");
            let of_place = |map: &&Map| map.patterns.iter().any(|pattern| pattern.is_match(&place));
            // The last map that fits counts.
            self.maps.iter().rev().find(of_place).map_or(YieldScale::One, |map| map.scale.clone())
        };
        let scales = (0..card.columns.len()).map(scale).collect();
        Ok(Physics { scales, parameters: self.parameters, formulas: self.formulas })
    }
}

/// Reads `NAME[START,LO,HI]`, or `NAME[VALUE]` for a constant.
fn parameter(name: &str, text: &str) -> Option<ModelParameter> {
    let inside = text.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
    let parts: Vec<&str> = inside.split(',').collect();
    let start = parts[0].trim().parse::<f64>().ok().filter(|start| start.is_finite())?;
    let range = match parts[..] {
        [_] => None,
        [_, low, high] => Some(ordered(low, high)?),
        _ => return None,
    };
    let is_within = range.is_none_or(|[low, high]| (low..=high).contains(&start));
    is_within.then(|| ModelParameter { name: name.to_owned(), start, range })
}

/// Reads `expr::NAME("FORMULA",ARGUMENT,…)`.
fn formula(name: &str, factory: &str) -> Option<ModelFormula> {
    let inside = factory.strip_prefix("expr::")?.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?;
    let quote = inside.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let (text, rest) = inside[1..].split_once(quote)?;
    let arguments: Vec<String> = match rest.strip_prefix(',') {
        Some(list) => list.trim_matches(['{', '}']).split(',').map(|name| name.trim().to_owned()).collect(),
        None => Vec::new(),
    };
    let parsed = ns_core::formula::Formula::parse(text, &arguments).is_ok();
    parsed.then(|| ModelFormula { name: name.to_owned(), text: text.to_owned(), arguments })
}
