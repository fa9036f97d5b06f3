//! Parameter points and domains: values, constant parameters and ranges by name.

use std::collections::HashMap;

use super::document::{Document, Entries, Read};
use super::kept::{Address, KeptKeys};
use crate::json::JsonCursor;

/// The point that ROOT reads if an analysis names none.
const DEFAULT_POINT: &str = "default_values";
/// The domain that ROOT writes for all parameters.
const DEFAULT_DOMAIN: &str = "default_domain";

/// What a parameter point says of one parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct PointValue {
    pub(super) value: f64,
    pub(super) is_const: bool,
}

/// A range; a side without a limit is `None`.
pub(super) type OpenRange = [Option<f64>; 2];

/// The parameter points of an analysis.
pub(super) struct Points {
    /// The JSON pointer of the point that the analysis starts from.
    pub(super) pointer: String,
    start: HashMap<String, PointValue>,
    /// Values of all other points, the first of each name.
    others: HashMap<String, PointValue>,
}

impl Points {
    /// Reads all points; `init` names the one that the analysis starts from.
    pub(super) fn read(points: &Entries<'_>, init: Option<&JsonCursor<'_>>, kept: &mut KeptKeys) -> Read<Self> {
        let first = match init {
            Some(reference) => Some(points.named_at(reference)?),
            None => points.get(DEFAULT_POINT).or_else(|| points.iter().next().map(|(_, cursor)| cursor)),
        };
        let mut start = HashMap::new();
        if let Some(cursor) = first {
            read_point(cursor, &mut start, kept)?;
        }
        let pointer = first.map(JsonCursor::pointer).unwrap_or_default();
        let mut others = HashMap::new();
        for (_, cursor) in points.iter() {
            read_point(cursor, &mut others, &mut KeptKeys::default())?;
        }
        Ok(Self { pointer, start, others })
    }

    /// Returns what the point that the analysis starts from says of `name`.
    pub(super) fn start(&self, name: &str) -> Option<PointValue> {
        self.start.get(name).copied()
    }

    /// Returns the value of `name` in that point, or in the first other one that has it.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.start.get(name).or_else(|| self.others.get(name)).map(|point| point.value)
    }
}

fn read_point(cursor: &JsonCursor<'_>, values: &mut HashMap<String, PointValue>, kept: &mut KeptKeys) -> Read<()> {
    let list = Address::TOP.key("parameter_points");
    let name = cursor.open_object()?.need("name")?;
    let point = list.entry(name.text()?);
    let object = kept.object(cursor, &["name", "parameters"], point)?;
    let parameters = object.need("parameters")?;
    let address = point.key("parameters");
    for entry in parameters.list()? {
        let name = entry.open_object()?.need("name")?;
        let name = name.text()?;
        let known = ["name", "value", "const", "min", "max", "nbins"];
        let object = kept.object(&entry, &known, address.entry(name))?;
        let is_const = object.get("const").map(|cursor| cursor.boolean()).transpose()?.unwrap_or(false);
        let value = object.need("value")?.number()?;
        values.entry(name.to_owned()).or_insert(PointValue { value, is_const });
    }
    Ok(())
}

/// The ranges of an analysis.
pub(super) struct Ranges(HashMap<String, OpenRange>);

impl Ranges {
    /// Reads the domains at `references`; where they have no range of a name, ROOT's domain of all
    /// parameters has it.
    pub(super) fn read(document: &Document<'_>, references: &[JsonCursor<'_>], kept: &mut KeptKeys) -> Read<Self> {
        let mut ranges = HashMap::new();
        for reference in references {
            read_domain(document.domains.named_at(reference)?, &mut ranges, kept)?;
        }
        if let Some(domain) = document.domains.get(DEFAULT_DOMAIN) {
            read_domain(domain, &mut ranges, kept)?;
        }
        Ok(Self(ranges))
    }

    /// Returns the range of `name`, with the limits of `default` where it has none.
    pub(super) fn of(&self, name: &str, default: [f64; 2]) -> [f64; 2] {
        let [lower, upper] = self.0.get(name).copied().unwrap_or_default();
        [lower.unwrap_or(default[0]), upper.unwrap_or(default[1])]
    }
}

fn read_domain(cursor: &JsonCursor<'_>, ranges: &mut HashMap<String, OpenRange>, kept: &mut KeptKeys) -> Read<()> {
    let list = Address::TOP.key("domains");
    let name = cursor.open_object()?.need("name")?;
    let domain = list.entry(name.text()?);
    let object = kept.object(cursor, &["name", "type", "axes"], domain)?;
    let kind = object.need("type")?;
    if kind.text()? != "product_domain" {
        return Err(super::unsupported("a domain of type", &kind));
    }
    // ROOT writes `null` for a domain without axes.
    let Some(axes) = object.get("axes").filter(|axes| !axes.is_null()) else { return Ok(()) };
    let address = domain.key("axes");
    for axis in axes.list()? {
        let name = axis.open_object()?.need("name")?;
        let name = name.text()?;
        let object = kept.object(&axis, &["name", "min", "max"], address.entry(name))?;
        let limit = |key| object.get(key).map(|cursor| cursor.number()).transpose();
        let range = [limit("min")?, limit("max")?];
        ranges.entry(name.to_owned()).or_insert(range);
    }
    Ok(())
}
