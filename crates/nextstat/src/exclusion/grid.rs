//! What is read of the document of a grid, and the choice of its plane.

use super::mesh::SMALLEST_DISTANCE;
use super::{ExclusionError, ExclusionPoint, ExclusionRequest, LeftOut, Quantity};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The confidence level where neither the request nor the document has one.
const DEFAULT_CL: f64 = 0.95;

/// The largest relative difference of results that are the same.
const SAME: f64 = 1e-6;

/// The number of values, patches or labels that a message lists.
const LISTED: usize = 8;

/// The results for every patch of a set.
pub(super) struct Grid {
    pub(super) quantity: Quantity,
    /// The confidence level of limits.
    pub(super) cl: Option<f64>,
    /// The tested signal strength, of CLs.
    pub(super) mu: Option<f64>,
    pub(super) is_complete: bool,
    /// The name of the measurement, or null.
    pub(super) measurement: Value,
    pub(super) provenance: Value,
    patches: Vec<Patch>,
}

/// The result for one patch.
#[derive(Debug, Clone)]
struct Patch {
    name: String,
    values: Map<String, Value>,
    outcome: Result<Values, String>,
    is_converged: bool,
}

/// Observed and expected CLs or limits.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Values {
    observed: Option<f64>,
    expected: [Option<f64>; 5],
}

/// The points of a plane.
pub(super) struct Selection {
    pub(super) axes: [String; 2],
    pub(super) at: Map<String, Value>,
    /// Sorted by x, then by y, without two at the same place.
    pub(super) points: Vec<ExclusionPoint>,
    pub(super) left_out: Vec<LeftOut>,
    /// Whether every result has all its numbers.
    pub(super) is_converged: bool,
    pub(super) warnings: Vec<String>,
}

impl Grid {
    /// Reads the document of `hypotest` or `limit` for every patch of a set.
    pub(super) fn read(document: &Value) -> Result<Self, ExclusionError> {
        let entries = document.get("patches").and_then(Value::as_array);
        let entries =
            entries.filter(|entries| entries.iter().all(|entry| entry.get("patch").is_some_and(Value::is_string)));
        let Some(entries) = entries.filter(|entries| !entries.is_empty()) else {
            return Err(ExclusionError::NotAGrid { found: kind(document) });
        };
        let quantity = quantity_of(entries)?;
        let read = |(i, entry)| Patch::read(entry, quantity, &format!("/patches/{i}"));
        let mut patches: Vec<Patch> = entries.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        patches.sort_by(|a, b| a.name.cmp(&b.name));
        let cl = match common(entries, "cl")? {
            Some(cl) => Some(cl),
            None => common(entries, "level")?.map(|level| 1.0 - level),
        };
        Ok(Self {
            quantity,
            cl: cl.filter(|_| quantity == Quantity::Limit),
            mu: if quantity == Quantity::Cls { common(entries, "mu")? } else { None },
            is_complete: document.get("complete").and_then(Value::as_bool).unwrap_or(true),
            measurement: document.get("measurement").cloned().unwrap_or_default(),
            provenance: document.get("provenance").cloned().unwrap_or_default(),
            patches,
        })
    }

    /// Returns the confidence level: `wanted`, that of the limits, or 0.95.
    pub(super) fn level(&self, wanted: Option<f64>) -> Result<f64, ExclusionError> {
        if let Some(cl) = wanted.filter(|cl| !(0.5..1.0).contains(cl)) {
            return Err(ExclusionError::BadLevel { cl });
        }
        match (wanted, self.cl) {
            (Some(cl), Some(found)) if (cl - found).abs() > 1e-9 => Err(ExclusionError::OtherLevel { cl, found }),
            (wanted, found) => Ok(found.or(wanted).unwrap_or(DEFAULT_CL)),
        }
    }

    /// Returns the points of the plane that `request` chooses.
    pub(super) fn select(&self, request: &ExclusionRequest) -> Result<Selection, ExclusionError> {
        let (patches, at) = self.selected(&request.at)?;
        let (mut known, mut left_out) = (Vec::new(), Vec::new());
        for patch in patches {
            match &patch.outcome {
                Ok(values) => known.push((patch, values)),
                Err(reason) => left_out.push(LeftOut { patch: patch.name.clone(), reason: reason.clone() }),
            }
        }
        if let (true, Some(LeftOut { patch, reason })) = (known.is_empty(), left_out.first().cloned()) {
            return Err(ExclusionError::AllFailed { n_patches: left_out.len(), patch, reason });
        }
        if known.len() < 3 {
            return Err(ExclusionError::TooFew { n_points: known.len() });
        }
        let is_converged = known.iter().all(|(patch, _)| patch.is_converged);
        let axes = axes(&known.iter().map(|(patch, _)| *patch).collect::<Vec<_>>(), request)?;
        let points = known.into_iter().map(|(patch, values)| Ok((patch, values.at(patch, &axes)?)));
        let points = points.collect::<Result<_, ExclusionError>>()?;
        let warnings = self.warnings(&left_out);
        Ok(Selection { points: distinct(points, &axes)?, axes, at, left_out, is_converged, warnings })
    }

    /// Returns the patches with the values `wanted`, and these as the patches have them.
    fn selected(&self, wanted: &[(String, String)]) -> Result<(Vec<&Patch>, Map<String, Value>), ExclusionError> {
        let (mut patches, mut at): (Vec<&Patch>, _) = (self.patches.iter().collect(), Map::new());
        for (label, value) in wanted {
            require_label(&patches, label)?;
            let has = |patch: &&Patch| patch.values.get(label).is_some_and(|found| is_value(found, value));
            let Some(found) = patches.iter().find(|patch| has(patch)) else {
                let known: BTreeSet<String> =
                    patches.iter().filter_map(|patch| patch.values.get(label)).map(shown).collect();
                let known = known.into_iter().take(LISTED).collect();
                return Err(ExclusionError::NoPatchAt { label: label.clone(), value: value.clone(), known });
            };
            at.insert(label.clone(), found.values[label].clone());
            patches.retain(has);
        }
        Ok((patches, at))
    }

    fn warnings(&self, left_out: &[LeftOut]) -> Vec<String> {
        let names = |left_out: &[LeftOut]| {
            let names: Vec<String> = left_out.iter().take(LISTED).map(|found| format!("`{}`", found.patch)).collect();
            let more = if left_out.len() > LISTED { ", …" } else { "" };
            format!("{}{more}", names.join(", "))
        };
        let failed = (!left_out.is_empty()).then(|| {
            let what = match left_out.len() {
                1 => "1 patch without a result is left out, and contours pass over its place".to_owned(),
                n => format!("{n} patches without a result are left out, and contours pass over their places"),
            };
            format!("{what}: {}", names(left_out))
        });
        let incomplete = (!self.is_complete).then(|| "the run over the patches was interrupted".to_owned());
        failed.into_iter().chain(incomplete).collect()
    }
}

impl Patch {
    fn read(entry: &Value, quantity: Quantity, pointer: &str) -> Result<Self, ExclusionError> {
        let name = entry["patch"].as_str().unwrap_or_default().to_owned();
        let values = entry["values"].as_object().cloned().ok_or_else(|| ExclusionError::BadValue {
            pointer: format!("{pointer}/values"),
            expected: "an object with the values of labels",
            found: shown(&entry["values"]),
        })?;
        let result = &entry["result"];
        let outcome = match (entry["error"].as_str(), result["converged"].as_bool()) {
            (Some(reason), _) => Err(reason.to_owned()),
            (None, Some(false)) => match Values::read(result, quantity, &format!("{pointer}/result"))? {
                // Of six limits, some may be missing.
                values if quantity == Quantity::Limit && !values.is_empty() => Ok(values),
                _ => Err("a fit did not converge".to_owned()),
            },
            (None, _) => Ok(Values::read(result, quantity, &format!("{pointer}/result"))?),
        };
        let is_converged = result["converged"].as_bool() != Some(false);
        Ok(Self { name, values, outcome, is_converged })
    }

    /// Returns the value of `label`, which is a finite number.
    fn number(&self, label: &str) -> Result<f64, ExclusionError> {
        let value = self.values.get(label);
        value.and_then(Value::as_f64).filter(|number| number.is_finite()).ok_or_else(|| ExclusionError::NotANumber {
            label: label.to_owned(),
            patch: self.name.clone(),
            found: value.map_or_else(|| "it has none".to_owned(), |value| format!("`{}`", shown(value))),
        })
    }
}

impl Values {
    fn is_empty(&self) -> bool {
        self.observed.is_none() && self.expected.iter().all(Option::is_none)
    }

    fn read(entry: &Value, quantity: Quantity, pointer: &str) -> Result<Self, ExclusionError> {
        let [observed, expected] = keys(quantity);
        let read = |value: &Value, place: String| match (value, value.as_f64()) {
            (Value::Null, _) => Ok(None),
            (_, Some(cls)) if quantity == Quantity::Limit || (0.0..=1.0).contains(&cls) => Ok(Some(cls)),
            _ => Err(ExclusionError::BadValue {
                pointer: format!("{pointer}/{place}"),
                expected: if quantity == Quantity::Cls { "a probability" } else { "a number" },
                found: shown(value),
            }),
        };
        let mut found = Self { observed: read(&entry[observed], observed.to_owned())?, expected: [None; 5] };
        match &entry[expected] {
            Value::Null => {}
            Value::Array(band) if band.len() == 5 => {
                for (i, value) in band.iter().enumerate() {
                    found.expected[i] = read(value, format!("{expected}/{i}"))?;
                }
            }
            other => {
                let pointer = format!("{pointer}/{expected}");
                return Err(ExclusionError::BadValue { pointer, expected: "a list of 5 numbers", found: shown(other) });
            }
        }
        Ok(found)
    }

    fn at(self, patch: &Patch, [x, y]: &[String; 2]) -> Result<ExclusionPoint, ExclusionError> {
        Ok(ExclusionPoint {
            patch: patch.name.clone(),
            x: patch.number(x)?,
            y: patch.number(y)?,
            observed: self.observed,
            expected: self.expected,
            excluded: None,
            excluded_expected: None,
        })
    }

    fn is_like(&self, other: &Self) -> bool {
        let close = |pair: (Option<f64>, Option<f64>)| match pair {
            (Some(a), Some(b)) => (a - b).abs() <= SAME * a.abs().max(b.abs()),
            (a, b) => a == b,
        };
        close((self.observed, other.observed)) && self.expected.into_iter().zip(other.expected).all(close)
    }
}

/// Returns the keys of observed and expected values.
fn keys(quantity: Quantity) -> [&'static str; 2] {
    match quantity {
        Quantity::Cls => ["CLs_obs", "CLs_exp"],
        Quantity::Limit => ["observed", "expected"],
    }
}

fn quantity_of(entries: &[Value]) -> Result<Quantity, ExclusionError> {
    let first = |quantity| {
        let has = |entry: &&Value| keys(quantity).iter().any(|key| entry["result"].get(key).is_some());
        entries.iter().find(has).map(|entry| entry["patch"].as_str().unwrap_or_default().to_owned())
    };
    match (first(Quantity::Cls), first(Quantity::Limit)) {
        (Some(_), None) => Ok(Quantity::Cls),
        (None, Some(_)) => Ok(Quantity::Limit),
        (Some(cls), Some(limit)) => Err(ExclusionError::TwoQuantities { cls, limit }),
        (None, None) => {
            match entries.iter().find_map(|entry| Some((entry["patch"].as_str()?, entry["error"].as_str()?))) {
                Some((patch, reason)) => Err(ExclusionError::AllFailed {
                    n_patches: entries.len(),
                    patch: patch.to_owned(),
                    reason: reason.to_owned(),
                }),
                None => Err(ExclusionError::NoResults),
            }
        }
    }
}

/// Returns the value of `key` that all entries with one share.
fn common(entries: &[Value], key: &'static str) -> Result<Option<f64>, ExclusionError> {
    let mut values = entries.iter().filter_map(|entry| entry["result"][key].as_f64());
    let Some(first) = values.next() else { return Ok(None) };
    match values.find(|value| *value != first) {
        Some(other) => Err(ExclusionError::Different { key, values: [first, other] }),
        None => Ok(Some(first)),
    }
}

/// Returns what a document is that is not that of a grid, with its article.
fn kind(document: &Value) -> &'static str {
    let has = |key| document.get(key).is_some();
    match () {
        () if has("x") && has("points") && has("coordinates") => "already one of exclusion contours",
        () if has("patches") && (has("metadata") || has("labels")) => "a patch set",
        () if has("patches") => "a list of patches without names or results",
        () if has("channels") && has("measurements") => "a workspace",
        () if has("bestfit") && has("par_names") => "the result of a fit",
        () if has("CLs_obs") => "the result of a single test",
        () if has("observed") && has("expected") => "the result of a single limit",
        () => "something else",
    }
}

fn require_label(patches: &[&Patch], label: &str) -> Result<(), ExclusionError> {
    if patches.iter().any(|patch| patch.values.contains_key(label)) {
        return Ok(());
    }
    Err(ExclusionError::UnknownLabel { label: label.to_owned(), known: labels(patches).into_iter().collect() })
}

fn labels(patches: &[&Patch]) -> BTreeSet<String> {
    patches.iter().flat_map(|patch| patch.values.keys().cloned()).collect()
}

/// Returns the labels of the axes: those of the request, then the first in alphabetical order whose
/// values are numbers and differ.
fn axes(patches: &[&Patch], request: &ExclusionRequest) -> Result<[String; 2], ExclusionError> {
    for label in request.x.iter().chain(&request.y) {
        require_label(patches, label)?;
    }
    let is_wanted = |label: &String| Some(label) == request.x.as_ref() || Some(label) == request.y.as_ref();
    let is_axis = |label: &String| {
        let numbers: Option<Vec<f64>> =
            patches.iter().map(|patch| patch.values.get(label).and_then(Value::as_f64)).collect();
        numbers.is_some_and(|numbers| numbers.iter().any(|number| *number != numbers[0]))
    };
    let candidates: Vec<String> = labels(patches).into_iter().filter(is_axis).collect();
    let mut others = candidates.iter().filter(|label| !is_wanted(label)).cloned();
    let x = request.x.clone().or_else(|| others.next());
    let y = request.y.clone().or_else(|| others.next());
    match (x, y) {
        (Some(x), Some(y)) if x == y => Err(ExclusionError::SameLabel { label: x }),
        (Some(x), Some(y)) => Ok([x, y]),
        _ => Err(ExclusionError::NoPlane { labels: candidates }),
    }
}

/// Sorts points by place, and keeps one of those with the same results at the same place.
fn distinct(
    mut points: Vec<(&Patch, ExclusionPoint)>,
    axes: &[String; 2],
) -> Result<Vec<ExclusionPoint>, ExclusionError> {
    points.sort_by(|(_, a), (_, b)| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)).then(a.patch.cmp(&b.patch)));
    let range = |of: fn(&ExclusionPoint) -> f64| {
        let values = points.iter().map(|(_, point)| of(point));
        values.clone().fold(f64::NEG_INFINITY, f64::max) - values.fold(f64::INFINITY, f64::min)
    };
    let near = [range(|point| point.x), range(|point| point.y)].map(|range| SMALLEST_DISTANCE * range);
    let mut kept: Vec<(&Patch, ExclusionPoint)> = Vec::with_capacity(points.len());
    for (patch, point) in points {
        let candidates = kept.iter().rev().take_while(|(_, other)| point.x - other.x <= near[0]);
        match candidates.into_iter().find(|(_, other)| (point.y - other.y).abs() <= near[1]) {
            None => kept.push((patch, point)),
            Some((other, _)) if same_results(patch, other) => {}
            Some((other, _)) => return Err(same_point(other, patch, axes)),
        }
    }
    Ok(kept.into_iter().map(|(_, point)| point).collect())
}

fn same_results(a: &Patch, b: &Patch) -> bool {
    matches!((&a.outcome, &b.outcome), (Ok(a), Ok(b)) if a.is_like(b))
}

/// Returns the error about two patches at one place, with another label that tells them apart.
fn same_point(a: &Patch, b: &Patch, axes: &[String; 2]) -> ExclusionError {
    let differs = |(label, value): &(&String, &Value)| !axes.contains(label) && b.values.get(*label) != Some(*value);
    let label = a.values.iter().find(differs).map(|(label, value)| [label.clone(), shown(value)]);
    ExclusionError::SamePoint { patches: [a.name.clone(), b.name.clone()], label }
}

/// Returns whether a value is the one that was written as `text`.
fn is_value(found: &Value, text: &str) -> bool {
    match (found.as_f64(), text.trim().parse::<f64>()) {
        (Some(found), Ok(wanted)) => found == wanted,
        _ => found.as_str() == Some(text),
    }
}

/// Returns a value as messages show it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string().chars().take(60).collect(),
    }
}
