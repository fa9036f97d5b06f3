//! What operations on values cost, and the budget that they are charged to.

use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::value::{DynObject, ObjectRepr, ValueKind};
use minijinja::{Error, State, Value};

use super::{DEEPEST, LARGEST, WORK, refused};
use crate::text::percent::percent;
use crate::text::python::{Tuple, str_of, tuples};

/// Bytes of a value in a list.
const ITEM: u64 = 24;
/// What visiting a value costs.
const VISIT: u64 = 4;
/// More than the comparisons per item of any sort.
const COMPARISONS: u64 = 24;

/// The filters that do not look into the items of a list or a map.
const ON_SURFACE: [&str; 21] = [
    "abs",
    "attr",
    "bool",
    "count",
    "d",
    "default",
    "first",
    "float",
    "int",
    "items",
    "keys",
    "last",
    "length",
    "list",
    "reject",
    "rejectattr",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
];

/// The filters that take a text as the list of its characters, if they get one.
const OF_CHARACTERS: [&str; 20] = [
    "batch",
    "chain",
    "dictsort",
    "first",
    "groupby",
    "join",
    "last",
    "list",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "slice",
    "sort",
    "sum",
    "unique",
];

/// The tests that ask for the kind of a value only.
const OF_KIND: [&str; 20] = [
    "boolean",
    "defined",
    "divisibleby",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "int",
    "integer",
    "iterable",
    "mapping",
    "none",
    "number",
    "odd",
    "safe",
    "sequence",
    "string",
    "true",
    "undefined",
];

/// The filters that take a value for the text that it is written as, and so do others of theirs.
const OF_TEXTS: [&str; 9] = ["capitalize", "e", "escape", "indent", "lower", "replace", "title", "trim", "upper"];

/// A budget of work, in bytes made or read.
#[derive(Debug)]
pub(super) struct Meter {
    left: AtomicU64,
}

fn too_much() -> Error {
    refused(format!("the template makes or reads more than {} MiB of text and values", WORK >> 20))
}

fn too_large() -> Error {
    refused(format!("a text or a value has more than {} MiB", LARGEST >> 20))
}

/// Returns whether an object is not data and may refer to itself: a namespace, a loop, a macro.
fn is_opaque(object: &DynObject) -> bool {
    let name = object.type_name();
    matches!(object.repr(), ObjectRepr::Plain)
        || ["Namespace", "Loop", "Macro", "Module", "Closure"].iter().any(|kind| name.ends_with(kind))
}

/// Returns the length of a text, and of a list or a map without what is in its items.
fn surface(value: &Value) -> u64 {
    match value.as_str() {
        Some(text) => text.len() as u64,
        None => (value.as_object().and_then(DynObject::enumerator_len).unwrap_or(0) as u64).saturating_mul(ITEM),
    }
}

/// Returns the whole numbers among arguments, named ones included, added without their signs.
fn numbers(arguments: &[Value]) -> u64 {
    let one = |value: &Value| value.as_i64().map_or(0, i64::unsigned_abs);
    let named = |value: &Value| {
        let pairs = value.is_kwargs().then(|| value.as_object()?.try_iter_pairs()).flatten();
        pairs.into_iter().flatten().fold(0, |sum: u64, (_, value)| sum.saturating_add(one(&value)))
    };
    arguments.iter().fold(0, |sum, value| sum.saturating_add(one(value)).saturating_add(named(value)))
}

/// Returns the sum of the numbers in a text: no width of a format is larger.
fn digits(text: &str) -> u64 {
    let numbers = text.split(|character: char| !character.is_ascii_digit()).filter(|digits| !digits.is_empty());
    numbers.fold(0, |sum, digits| sum.saturating_add(digits.parse().unwrap_or(u64::MAX)))
}

impl Meter {
    pub(super) fn new(budget: u64) -> Meter {
        Meter { left: AtomicU64::new(budget) }
    }

    fn spend(&self, cost: u64) -> Result<(), Error> {
        let spent = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(cost));
        spent.map(|_| ()).map_err(|_| too_much())
    }

    /// Returns the bytes of `value` and of all that is in it, counted as often as it occurs.
    fn weigh(&self, value: &Value, depth: usize) -> Result<u64, Error> {
        self.spend(VISIT)?;
        let Some(object) = value.as_object() else {
            return Ok(ITEM + value.as_str().map_or(0, |text| text.len() as u64));
        };
        if is_opaque(object) {
            let is_inside = depth > 0 && !matches!(object.repr(), ObjectRepr::Plain);
            return if is_inside {
                Err(refused("lists, maps and namespaces cannot hold namespaces"))
            } else {
                Ok(ITEM)
            };
        }
        if depth == DEEPEST {
            return Err(refused(format!("lists and maps are nested more than {DEEPEST} deep")));
        }
        let mut weight = ITEM;
        let is_map = matches!(object.repr(), ObjectRepr::Map);
        let pairs = is_map.then(|| object.try_iter_pairs()).flatten();
        for (key, item) in pairs.into_iter().flatten() {
            weight += self.weigh(&key, depth + 1)? + self.weigh(&item, depth + 1)?;
        }
        let items = (!is_map).then(|| object.try_iter()).flatten();
        for item in items.into_iter().flatten() {
            weight += self.weigh(&item, depth + 1)?;
            if weight > LARGEST {
                return Err(too_large());
            }
        }
        if weight > LARGEST { Err(too_large()) } else { Ok(weight) }
    }

    /// Charges for reading all of `value`.
    pub(super) fn read(&self, value: &Value) -> Result<(), Error> {
        self.spend(self.weigh(value, 0)?)
    }

    /// Returns `value` as it is written, charging for both.
    pub(super) fn text(&self, value: &Value) -> Result<Value, Error> {
        self.read(value)?;
        if value.as_str().is_some() {
            return Ok(value.clone());
        }
        let text = str_of(value);
        self.spend(text.len() as u64)?;
        Ok(Value::from(text))
    }

    /// Returns `format % values` of texts, charging for what is read and made.
    pub(super) fn percent(&self, format: &str, values: &Value) -> Result<Value, Error> {
        self.spend(format.len() as u64)?;
        self.read(values)?;
        let text = percent(format, values, LARGEST as usize, &|length| self.spend(length))?;
        self.spend(text.len() as u64)?;
        Ok(Value::from(text))
    }

    /// Charges for reading the length of `value`, or its items without what is in them.
    pub(super) fn skim(&self, value: &Value) -> Result<(), Error> {
        self.spend(surface(value) + VISIT)
    }

    /// Charges for a value that was made, and refuses it if it is too large. Evaluates lazy lists.
    pub(super) fn keep(&self, value: Value) -> Result<Value, Error> {
        let value = if value.kind() == ValueKind::Iterable { self.collected(&value)? } else { value };
        self.weigh(&value, 0)?;
        self.spend(surface(&value))?;
        Ok(value)
    }

    fn collected(&self, value: &Value) -> Result<Value, Error> {
        let mut items = Vec::new();
        for item in value.try_iter()? {
            self.spend(ITEM)?;
            items.push(item);
        }
        Ok(Value::from(items))
    }

    /// Refuses namespaces as members of namespaces: one could hold itself.
    pub(super) fn member(&self, value: Value) -> Result<Value, Error> {
        match value.as_object() {
            Some(object) if is_opaque(object) => Err(refused("lists, maps and namespaces cannot hold namespaces")),
            _ => Ok(value),
        }
    }

    /// Charges for the text or the list that `value * times` makes.
    pub(super) fn product(&self, value: &Value, times: &Value) -> Result<(), Error> {
        let size =
            |value: &Value| surface(value).max(u64::from(value.as_str().is_some() || value.as_object().is_some()));
        let factor = |value: &Value| value.as_usize().map_or(0, |n| n as u64);
        let made = size(value).saturating_mul(factor(times)).max(size(times).saturating_mul(factor(value)));
        if made > LARGEST { Err(too_large()) } else { self.spend(made) }
    }

    /// Applies a filter; of `map`, the filter that it applies to each item.
    pub(super) fn filter(&self, state: &State<'_, '_>, name: &str, arguments: &[Value]) -> Result<Value, Error> {
        if let ("map", [items, filter, rest @ ..]) = (name, arguments)
            && let Some(filter) = filter.as_str()
        {
            self.skim(items)?;
            let mut mapped = Vec::new();
            for item in items.try_iter()? {
                let arguments: Vec<Value> = std::iter::once(item).chain(rest.iter().cloned()).collect();
                mapped.push(self.keep(self.filter(state, filter, &arguments)?)?);
            }
            return Ok(Value::from(mapped));
        }
        match (name, arguments) {
            ("string", [value]) => return self.text(value),
            ("format", [format, values @ ..]) => return self.format(format, values),
            ("items" | "dictsort", _) => {
                self.charge(name, arguments)?;
                return tuples(&self.keep(state.apply_filter(name, arguments)?)?);
            }
            _ => {}
        }
        let written = self.written(name, arguments)?;
        self.charge(name, &written)?;
        state.apply_filter(name, &written).map_err(|error| named(error, "filter", name))
    }

    /// Applies `format`: `%` with the named arguments or the others.
    fn format(&self, format: &Value, values: &[Value]) -> Result<Value, Error> {
        let format = self.text(format)?;
        let values = match values {
            [named] if named.is_kwargs() => named.clone(),
            all if all.iter().any(Value::is_kwargs) => {
                return Err(refused("can't handle positional and keyword arguments at the same time"));
            }
            all => Value::from_object(Tuple(all.to_vec())),
        };
        self.percent(format.as_str().unwrap_or_default(), &values)
    }

    /// Returns arguments with those written that a filter takes for texts.
    fn written(&self, name: &str, arguments: &[Value]) -> Result<Vec<Value>, Error> {
        match (name, arguments) {
            ("join", [items, rest @ ..]) if items.as_str().is_none() && rest.iter().all(|value| !value.is_kwargs()) => {
                self.skim(items)?;
                let texts = items.try_iter()?.map(|item| self.text(&item)).collect::<Result<Vec<_>, _>>()?;
                Ok(std::iter::once(Value::from(texts)).chain(rest.iter().cloned()).collect())
            }
            ("replace", _) => {
                let written = |value: &Value| if value.is_kwargs() { Ok(value.clone()) } else { self.text(value) };
                arguments.iter().map(written).collect()
            }
            (name, [first, rest @ ..]) if OF_TEXTS.contains(&name) => {
                Ok(std::iter::once(self.text(first)?).chain(rest.iter().cloned()).collect())
            }
            _ => Ok(arguments.to_vec()),
        }
    }

    /// Performs a test.
    pub(super) fn test(&self, state: &State<'_, '_>, name: &str, arguments: &[Value]) -> Result<bool, Error> {
        if !OF_KIND.contains(&name) {
            arguments.iter().try_for_each(|argument| self.read(argument))?;
        }
        state.perform_test(name, arguments).map_err(|error| named(error, "test", name))
    }

    /// Calls a method of Python's texts, lists and dictionaries.
    pub(super) fn method(
        &self,
        state: &State<'_, '_>,
        value: &Value,
        name: &str,
        arguments: &[Value],
    ) -> Result<Value, Error> {
        match (name, value.as_str(), arguments) {
            ("count", Some(text), [what]) if what.as_str() == Some("") => {
                return Ok(Value::from(text.chars().count() + 1));
            }
            ("count", None, _) => self.read(value)?,
            _ => self.skim(value)?,
        }
        arguments.iter().try_for_each(|argument| self.read(argument))?;
        match (name, arguments) {
            ("join", [items]) => self.spend(self.growth(name, &[items.clone(), value.clone()]))?,
            _ => {
                let all: Vec<Value> = std::iter::once(value).chain(arguments).cloned().collect();
                self.spend(self.growth(name, &all))?;
            }
        }
        let given: Vec<Value> = match (name, value.as_str()) {
            ("format", Some(format)) if !format.contains(['.', '[']) => {
                let is_written = |value: &Value| value.as_object().is_some() && !value.is_kwargs();
                let one = |value: &Value| if is_written(value) { self.text(value) } else { Ok(value.clone()) };
                arguments.iter().map(one).collect::<Result<_, _>>()?
            }
            _ => arguments.to_vec(),
        };
        let answer = minijinja_contrib::pycompat::unknown_method_callback(state, value, name, &given)?;
        if name == "items" && value.as_str().is_none() { tuples(&self.keep(answer)?) } else { Ok(answer) }
    }

    /// Charges for a filter before it is applied.
    fn charge(&self, name: &str, arguments: &[Value]) -> Result<(), Error> {
        let [value, rest @ ..] = arguments else { return Ok(()) };
        let for_each = if name.starts_with("select") || name.starts_with("reject") { surface(value) / ITEM } else { 0 };
        for argument in rest {
            self.spend(self.weigh(argument, 0)?.saturating_mul(1 + for_each))?;
        }
        if value.as_str().is_some() && OF_CHARACTERS.contains(&name) {
            self.spend(surface(value).saturating_mul(ITEM))?;
        } else if ON_SURFACE.contains(&name) {
            self.skim(value)?;
        } else {
            self.read(value)?;
        }
        self.spend(self.growth(name, arguments))
    }

    /// Returns the bytes that a filter or a method makes or reads beyond a small multiple of its
    /// input.
    fn growth(&self, name: &str, arguments: &[Value]) -> u64 {
        let text = |i: usize| arguments.get(i).and_then(Value::as_str);
        let size = arguments.first().map_or(0, surface);
        match (name, text(0), text(1)) {
            ("replace", Some(all), Some(old)) => {
                let new = text(2).map_or(0, str::len) as u64;
                (all.matches(old).count() as u64).saturating_mul(new)
            }
            ("join", list, separator) => {
                let n_items = list.map_or(size / ITEM, |list| list.len() as u64);
                n_items.saturating_mul(separator.map_or(0, str::len) as u64)
            }
            ("split", Some(all), Some(by)) if !by.is_empty() => (all.matches(by).count() as u64).saturating_mul(ITEM),
            ("split", Some(all), _) => (all.split_whitespace().count() as u64).saturating_mul(ITEM),
            ("lines" | "splitlines", Some(all), _) => (all.matches('\n').count() as u64).saturating_mul(ITEM),
            ("indent", Some(all), _) => (all.matches('\n').count() as u64 + 1).saturating_mul(numbers(&arguments[1..])),
            ("format", Some(form), _) => digits(form).saturating_add(numbers(&arguments[1..])),
            ("batch" | "slice", ..) => numbers(&arguments[1..]).saturating_mul(ITEM),
            ("sum", ..) => size.saturating_mul(size / ITEM),
            ("dictsort" | "groupby" | "max" | "min" | "sort" | "unique", ..) => size.saturating_mul(COMPARISONS),
            ("tojson", ..) => size.saturating_mul(numbers(&arguments[1..]).min(64)),
            _ => 0,
        }
    }
}

/// Returns the error with the unknown name.
fn named(error: Error, what: &str, name: &str) -> Error {
    use minijinja::ErrorKind::{UnknownFilter, UnknownTest};
    match error.kind() {
        kind @ (UnknownFilter | UnknownTest) if error.detail().is_none() => {
            Error::new(kind, format!("{what} {name} is unknown"))
        }
        _ => error,
    }
}
