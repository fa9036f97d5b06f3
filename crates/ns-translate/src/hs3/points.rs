//! Parameter points and domains: values, constant parameters and ranges by name.
//!
//! Each is read once, whatever the number of analyses that name it.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

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

type PointValues = HashMap<String, PointValue>;

/// A range; a side without a limit is `None`.
pub(super) type OpenRange = [Option<f64>; 2];

/// The parameter points of an analysis.
pub(super) struct Points {
    /// The JSON pointer of the point that the analysis starts from.
    pub(super) pointer: String,
    start: Rc<PointValues>,
    /// Values of all points, the first of each name.
    all: Rc<PointValues>,
}

impl Points {
    /// Returns what the point that the analysis starts from says of `name`.
    pub(super) fn start(&self, name: &str) -> Option<PointValue> {
        self.start.get(name).copied()
    }

    /// Returns the value of `name` in that point, or in the first other one that has it.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.start.get(name).or_else(|| self.all.get(name)).map(|point| point.value)
    }
}

/// The parameter points of a document.
pub(super) struct PointTable<'d> {
    points: &'d Entries<'d>,
    all: Rc<PointValues>,
    /// The points that analyses start from, by JSON pointer.
    starts: HashMap<String, Rc<PointValues>>,
}

impl<'d> PointTable<'d> {
    /// Reads all points.
    pub(super) fn read(points: &'d Entries<'d>) -> Read<Self> {
        let mut all = HashMap::new();
        for (_, cursor) in points.iter() {
            read_point(cursor, &mut all, &mut KeptKeys::default())?;
        }
        Ok(Self { points, all: Rc::new(all), starts: HashMap::new() })
    }

    /// Returns the points of an analysis that starts from the point that `init` names.
    pub(super) fn points(&mut self, init: Option<&JsonCursor<'_>>, kept: &mut KeptKeys) -> Read<Points> {
        let first = match init {
            Some(reference) => Some(self.points.named_at(reference)?),
            None => self.points.get(DEFAULT_POINT).or_else(|| self.points.iter().next().map(|(_, cursor)| cursor)),
        };
        let pointer = first.map(JsonCursor::pointer).unwrap_or_default();
        let start = match (self.starts.get(&pointer), first) {
            (Some(start), _) => Rc::clone(start),
            (None, None) => Rc::default(),
            (None, Some(cursor)) => {
                let mut start = HashMap::new();
                read_point(cursor, &mut start, kept)?;
                Rc::clone(self.starts.entry(pointer.clone()).or_insert(Rc::new(start)))
            }
        };
        Ok(Points { pointer, start, all: Rc::clone(&self.all) })
    }
}

fn read_point(cursor: &JsonCursor<'_>, values: &mut PointValues, kept: &mut KeptKeys) -> Read<()> {
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
#[derive(Default)]
pub(super) struct Ranges {
    ranges: HashMap<Rc<str>, OpenRange>,
    /// Axes of all domains of the analysis.
    pub(super) n_axes: usize,
}

impl Ranges {
    fn add(&mut self, domain: &Domain) {
        self.n_axes += domain.len();
        for (name, range) in domain {
            self.ranges.entry(Rc::clone(name)).or_insert(*range);
        }
    }

    /// Returns the range of `name`, with the limits of `default` where it has none.
    pub(super) fn of(&self, name: &str, default: [f64; 2]) -> [f64; 2] {
        let [lower, upper] = self.ranges.get(name).copied().unwrap_or_default();
        [lower.unwrap_or(default[0]), upper.unwrap_or(default[1])]
    }
}

type Domain = Vec<(Rc<str>, OpenRange)>;

/// The domains of a document.
pub(super) struct DomainTable<'d> {
    document: &'d Document<'d>,
    /// Those that analyses name, by JSON pointer.
    domains: HashMap<String, Domain>,
}

impl<'d> DomainTable<'d> {
    pub(super) fn new(document: &'d Document<'d>) -> Self {
        Self { document, domains: HashMap::new() }
    }

    /// Returns the ranges of the domains at `references`; where they have no range of a name,
    /// ROOT's domain of all parameters has it.
    pub(super) fn ranges(&mut self, references: &[JsonCursor<'_>], kept: &mut KeptKeys) -> Read<Ranges> {
        let document = self.document;
        let named = references.iter().map(|reference| document.domains.named_at(reference));
        let default = document.domains.get(DEFAULT_DOMAIN).map(Ok);
        let (mut ranges, mut seen) = (Ranges::default(), HashSet::new());
        for cursor in named.chain(default) {
            let cursor = cursor?;
            let pointer = cursor.pointer();
            if !seen.insert(pointer.clone()) {
                continue;
            }
            if !self.domains.contains_key(&pointer) {
                self.domains.insert(pointer.clone(), read_domain(cursor, kept)?);
            }
            ranges.add(&self.domains[&pointer]);
        }
        Ok(ranges)
    }
}

fn read_domain(cursor: &JsonCursor<'_>, kept: &mut KeptKeys) -> Read<Domain> {
    let list = Address::TOP.key("domains");
    let name = cursor.open_object()?.need("name")?;
    let domain = list.entry(name.text()?);
    let object = kept.object(cursor, &["name", "type", "axes"], domain)?;
    let kind = object.need("type")?;
    if kind.text()? != "product_domain" {
        return Err(super::unsupported("a domain of type", &kind));
    }
    // ROOT writes `null` for a domain without axes.
    let Some(axes) = object.get("axes").filter(|axes| !axes.is_null()) else { return Ok(Vec::new()) };
    let address = domain.key("axes");
    let mut ranges = Vec::new();
    for axis in axes.list()? {
        let name = axis.open_object()?.need("name")?;
        let name = name.text()?;
        let object = kept.object(&axis, &["name", "min", "max"], address.entry(name))?;
        let limit = |key| object.get(key).map(|cursor| cursor.number()).transpose();
        ranges.push((Rc::from(name), [limit("min")?, limit("max")?]));
    }
    Ok(ranges)
}
