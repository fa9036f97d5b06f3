//! Describes the run of a file of toys: everything that two files must share to be parts of one
//! run, and which part it is.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Map, Value, json};

use super::RecordLayout;
use super::checksums::{ToyFileDescription, WrittenChecksums};
use crate::hint;

/// The name and the version of the format in documents.
const FORMAT: &str = "nextstat toys";
const VERSION: u64 = 1;

/// The largest difference of equal numbers of settings, relative to the larger of 1 and their size:
/// fits on processors with other vector instructions end at points that differ by rounding.
const SAME: f64 = 1e-6;

/// A contiguous part of the toys of a run: the `index`-th of `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which part, from 1.
    pub index: u64,
    /// The number of parts.
    pub of: u64,
}

impl Shard {
    /// The whole run.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// Returns its toys of `n`.
    ///
    /// ```
    /// use ns_translate::toys::Shard;
    /// assert_eq!(Shard { index: 2, of: 3 }.range(10), 3..6);
    /// assert_eq!(Shard { index: 3, of: 3 }.range(10), 6..10);
    /// ```
    #[must_use]
    pub fn range(self, n: u64) -> Range<u64> {
        let end = |k: u64| u64::try_from(u128::from(n) * u128::from(k) / u128::from(self.of.max(1))).unwrap_or(n);
        end(self.index.saturating_sub(1))..end(self.index)
    }
}

/// The run of a file of toys.
#[derive(Debug, Clone, PartialEq)]
pub struct ToyRunIdentity {
    /// The kind of its records, such as `fits`.
    pub kind: String,
    /// All other settings that the numbers depend on.
    pub settings: Map<String, Value>,
    /// The columns of its records.
    pub layout: RecordLayout,
    /// The number of records of the whole run.
    pub n_toys: u64,
    /// The part of them in this file.
    pub shard: Shard,
    /// The devices that found the minima, such as `cpu`. Runs that differ in them can be merged,
    /// because the minima are the same.
    pub devices: BTreeSet<String>,
}

impl ToyRunIdentity {
    /// Returns the range of the records of this file.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.shard.range(self.n_toys)
    }

    /// Returns the same run with the devices of `other` added.
    pub(super) fn with_devices_of(mut self, other: &Self) -> Self {
        self.devices.extend(other.devices.iter().cloned());
        self
    }

    /// Returns the document beside a file; `n_records` is that of a complete one.
    #[must_use]
    pub(super) fn to_value(&self, n_records: Option<u64>) -> Value {
        let range = self.range();
        json!({
            "format": FORMAT,
            "format_version": VERSION,
            "kind": self.kind,
            "settings": self.settings,
            "columns": self.layout.to_value(),
            "n_toys": self.n_toys,
            "shard": {"index": self.shard.index, "of": self.shard.of, "first": range.start, "n_toys": range.end - range.start},
            "n_records": n_records,
            "devices": self.devices,
        })
    }

    /// Returns the content of the document beside a file, or `None` if it does not describe toys.
    pub(super) fn from_value(value: &Value) -> Option<ToyFileDescription> {
        if value["format"] != FORMAT || value["format_version"] != VERSION {
            return None;
        }
        let shard = Shard { index: value["shard"]["index"].as_u64()?, of: value["shard"]["of"].as_u64()? };
        let devices = value["devices"].as_array().map_or(&[][..], Vec::as_slice);
        let identity = Self {
            kind: value["kind"].as_str()?.to_owned(),
            settings: value["settings"].as_object()?.clone(),
            layout: RecordLayout::from_value(&value["columns"])?,
            n_toys: value["n_toys"].as_u64()?,
            shard,
            devices: devices.iter().filter_map(|device| device.as_str().map(str::to_owned)).collect(),
        };
        let checksums = WrittenChecksums::from_value(&value["checksums"]);
        let n_records = value["n_records"].as_u64();
        ((1..=shard.of).contains(&shard.index)).then_some(ToyFileDescription { identity, n_records, checksums })
    }

    /// Returns the first difference between this run and another, for any shards: its name, the
    /// value here, and the value there.
    pub(super) fn difference(&self, other: &Self) -> Option<(String, String, String)> {
        let whole =
            |identity: &Self| Self { shard: Shard::WHOLE, devices: BTreeSet::new(), ..identity.clone() }.to_value(None);
        let (name, ours, theirs) = difference("", &whole(self), &whole(other))?;
        let name = name.trim_start_matches('.').trim_start_matches("settings.").to_owned();
        Some((name, shortened(&ours), shortened(&theirs)))
    }
}

fn difference(name: &str, a: &Value, b: &Value) -> Option<(String, Value, Value)> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let null = Value::Null;
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            let mut keys: Vec<&String> = keys.collect();
            // Warnings have numbers that differ by rounding, too, and follow from the rest.
            keys.retain(|key| *key != "warnings");
            // Settings first: they explain the other differences.
            keys.sort_by_key(|key| (*key != "settings", a.get(*key).is_some_and(Value::is_object), *key));
            keys.into_iter().find_map(|key| {
                difference(&format!("{name}.{key}"), a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(i, (a, b))| difference(&format!("{name}[{i}]"), a, b))
        }
        (Value::Number(x), Value::Number(y)) if x.is_f64() && y.is_f64() => {
            let (x, y) = (x.as_f64()?, y.as_f64()?);
            ((x - y).abs() > SAME * x.abs().max(1.0)).then(|| (name.to_owned(), a.clone(), b.clone()))
        }
        _ if a == b => None,
        _ => Some((name.to_owned(), a.clone(), b.clone())),
    }
}

/// Returns a value as in messages.
fn shortened(value: &Value) -> String {
    const LONGEST: usize = 60;
    hint::shortened(&value.as_str().map_or_else(|| value.to_string(), str::to_owned), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toys::ColumnKind;

    fn identity(settings: Value) -> ToyRunIdentity {
        let Value::Object(settings) = settings else { panic!("an object") };
        let layout = RecordLayout::new(&[("toy", ColumnKind::U64)]);
        let devices = BTreeSet::from(["cpu".to_owned()]);
        ToyRunIdentity { kind: "fits".to_owned(), settings, layout, n_toys: 10, shard: Shard::WHOLE, devices }
    }

    #[test]
    fn shards_divide_everything_once() {
        for (n, of) in [(10, 3), (2, 5), (1000, 7), (0, 2), (u64::MAX, 3)] {
            let ranges: Vec<_> = (1..=of).map(|index| Shard { index, of }.range(n)).collect();
            assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, n));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }

    #[test]
    fn differences_are_named_and_rounding_is_ignored() {
        let ours = identity(json!({"seed": 1, "thrown_at": {"mu": 1.0, "parameters": [0.5, 2.0]}}));
        let rounded = identity(json!({"seed": 1, "thrown_at": {"mu": 1.0, "parameters": [0.5 + 1e-9, 2.0]}}));
        assert_eq!(ours.difference(&rounded), None);
        let seed = identity(json!({"seed": 2, "thrown_at": {"mu": 1.0, "parameters": [0.6, 2.0]}}));
        let named = |name: &str, a: &str, b: &str| Some((name.to_owned(), a.to_owned(), b.to_owned()));
        assert_eq!(ours.difference(&seed), named("seed", "1", "2"));
        let other = identity(json!({"seed": 1, "thrown_at": {"mu": 1.0, "parameters": [0.5, 2.5]}}));
        assert_eq!(ours.difference(&other), named("thrown_at.parameters[1]", "2.0", "2.5"));
        let more = ToyRunIdentity { n_toys: 11, ..ours.clone() };
        assert_eq!(ours.difference(&more), named("n_toys", "10", "11"));
        let shard = ToyRunIdentity { shard: Shard { index: 2, of: 3 }, ..ours.clone() };
        assert_eq!(ours.difference(&shard), None);
        let elsewhere = ToyRunIdentity { devices: BTreeSet::from(["cuda".to_owned()]), ..ours.clone() };
        assert_eq!(ours.difference(&elsewhere), None);
    }

    #[test]
    fn documents_are_read_back() {
        let shard = ToyRunIdentity { shard: Shard { index: 2, of: 3 }, ..identity(json!({"seed": 1})) };
        for n_records in [Some(3), None] {
            let described = ToyFileDescription { identity: shard.clone(), n_records, checksums: None };
            assert_eq!(ToyRunIdentity::from_value(&shard.to_value(n_records)), Some(described));
        }
        assert_eq!(ToyRunIdentity::from_value(&json!({"format": FORMAT, "format_version": 2})), None);
    }
}
