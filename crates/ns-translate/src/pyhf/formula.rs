//! The data of formula and morphing modifiers, which pyhf's documents do not have.
//!
//! A formula is an object with `expression` and, for `@0` or `x[0]` in it, `parameters`; a morphing
//! is a list of `terms`, each a formula with the `data` that it scales. Whether a text is a formula
//! is the compiler's business.

use ns_core::formula::Formula;
use ns_core::spec::{Expression, ModifierData, MorphingTerm};
use serde_json::{Map, Value, json};

use crate::json::{JsonCursor, JsonError, JsonObject, WrittenValue};

/// Reads the data of a formula modifier.
pub(super) fn formula(cursor: &JsonCursor<'_>) -> Result<ModifierData, JsonError> {
    expression(&cursor.object(&["expression", "parameters"])?).map(ModifierData::Formula)
}

/// Reads the data of a morphing.
pub(super) fn morphing(cursor: &JsonCursor<'_>) -> Result<ModifierData, JsonError> {
    let term = |cursor: JsonCursor<'_>| {
        let object = cursor.object(&["expression", "parameters", "data"])?;
        Ok(MorphingTerm { coefficient: expression(&object)?, data: object.need("data")?.numbers()? })
    };
    let terms = cursor.object(&["terms"])?.need("terms")?.filled_list()?.map(term).collect::<Result<_, JsonError>>()?;
    Ok(ModifierData::Morphing(terms))
}

fn expression(object: &JsonObject<'_>) -> Result<Expression, JsonError> {
    let names = |list: JsonCursor<'_>| list.filled_list()?.map(|item| item.text().map(str::to_owned)).collect();
    let text = object.need("expression")?.text()?.to_owned();
    Ok(Expression { text, parameters: object.get("parameters").map(names).transpose()? })
}

/// Returns the data of a formula modifier as a document has them.
pub(super) fn write_formula(expression: &Expression) -> Value {
    Value::Object(members(expression))
}

/// Returns the data of a morphing as a document has them.
pub(super) fn write_morphing(terms: &[MorphingTerm]) -> Value {
    let term = |term: &MorphingTerm| {
        let mut object = members(&term.coefficient);
        object.insert("data".to_owned(), json!(term.data));
        Value::Object(object)
    };
    json!({"terms": terms.iter().map(term).collect::<Vec<_>>()})
}

fn members(expression: &Expression) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("expression".to_owned(), json!(expression.text));
    if let Some(parameters) = &expression.parameters {
        object.insert("parameters".to_owned(), json!(parameters));
    }
    object
}

/// Returns the names in the formulas of a modifier's data, each once; none if it has no formulas.
pub(crate) fn names(data: &WrittenValue) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    each(data, &mut |text, arguments| {
        // A text that is not a formula has no names; the compiler says what is wrong with it.
        let formula = Formula::parse(text, arguments);
        for name in formula.iter().flat_map(Formula::names) {
            if !found.contains(name) {
                found.push(name.clone());
            }
        }
    });
    found
}

fn each(data: &WrittenValue, visit: &mut impl FnMut(&str, &[String])) {
    let WrittenValue::Object(members) = data else { return };
    if let Some(WrittenValue::List(terms)) = members.get("terms") {
        terms.iter().for_each(|term| each(term, visit));
    }
    if let Some(WrittenValue::Text(text)) = members.get("expression") {
        visit(text, &arguments(members.get("parameters")));
    }
}

fn arguments(list: Option<&WrittenValue>) -> Vec<String> {
    let Some(WrittenValue::List(items)) = list else { return Vec::new() };
    items
        .iter()
        .filter_map(|item| if let WrittenValue::Text(name) = item { Some(name.clone()) } else { None })
        .collect()
}

/// Gives the names in the formulas of a modifier's data the new names that `new_name` returns.
pub(crate) fn rename(data: &mut WrittenValue, new_name: &impl Fn(&str) -> String) {
    let WrittenValue::Object(members) = data else { return };
    if let Some(WrittenValue::List(terms)) = members.get_mut("terms") {
        terms.iter_mut().for_each(|term| rename(term, new_name));
    }
    let arguments = arguments(members.get("parameters"));
    if let Some(WrittenValue::Text(text)) = members.get_mut("expression")
        && let Ok(formula) = Formula::parse(text, &arguments)
    {
        *text = formula.renamed(new_name);
    }
    if let Some(WrittenValue::List(names)) = members.get_mut("parameters") {
        for name in names {
            if let WrittenValue::Text(name) = name {
                *name = new_name(name);
            }
        }
    }
}
