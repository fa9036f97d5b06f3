//! Reads correlation maps, YAML or JSON, and checks what can be checked without workspaces.

use ns_core::pattern;

use super::super::read::setting;
use super::{
    AnalysisEntry, CorrelateRule, CorrelationMap, DecorrelateRule, MapError, MapProblem, Members, Placed, SameNames,
    SplitBy,
};
use crate::digest::{DigestAlgorithm, digest};
use crate::json::{self, JsonCursor, JsonError, JsonObject};
use crate::place::DocumentPlace;
use crate::source::DocumentSource;
use crate::{pyhf, yaml};

type Read<T> = Result<T, MapError>;

const KEYS: &[&str] = &["analyses", "measurement", "poi", "same_names", "correlate", "decorrelate", "settings"];
const DECORRELATE_KEYS: &[&str] = &["parameters", "by", "analyses", "channels", "samples", "parts"];

/// The syntax of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapSyntax {
    /// YAML 1.2 without anchors, aliases and tags.
    Yaml,
    /// JSON.
    Json,
}

impl MapSyntax {
    /// Returns JSON for a file whose name ends in `.json`, and YAML, of which JSON is a part, for
    /// others.
    #[must_use]
    pub fn of(source: &DocumentSource) -> Self {
        let ending = source.path().and_then(|path| path.extension());
        if ending.is_some_and(|ending| ending.eq_ignore_ascii_case("json")) { Self::Json } else { Self::Yaml }
    }
}

impl CorrelationMap {
    /// Reads a map.
    ///
    /// # Errors
    ///
    /// Text that is not YAML or JSON, unknown keys and values of another type, a rule without a
    /// name, patterns whose wildcards do not fit: each with its place.
    ///
    /// # Example
    ///
    /// ```
    /// use ns_translate::workspace::{CorrelationMap, MapSyntax};
    ///
    /// let map = "correlate:\n- lumi\n- {name: 'JES_*', parameters: {A: 'ATLAS_JES_*', B: jes}}\n";
    /// let error = CorrelationMap::from_bytes(map.as_bytes(), MapSyntax::Yaml).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "`jes` has 0 wildcards, and the common name `JES_*` has 1, \
    ///      at `/correlate/1/parameters/B` (line 3, column 53)"
    /// );
    /// ```
    pub fn from_bytes(bytes: &[u8], syntax: MapSyntax) -> Result<Self, MapError> {
        let text = json::decode(bytes)?;
        let root = match syntax {
            MapSyntax::Yaml => yaml::parse(text)?,
            MapSyntax::Json => json::parse(text)?,
        };
        let cursor = JsonCursor::top(text, &root);
        let map = read(&cursor)?;
        let json = serde_json::to_vec(&json::WrittenValue::read(&cursor)?).unwrap_or_default();
        // The text is valid JSON, and nothing else can fail.
        Ok(CorrelationMap { sha256: digest(&json, DigestAlgorithm::Sha256).unwrap_or_default(), ..map })
    }
}

fn read(root: &JsonCursor<'_>) -> Read<CorrelationMap> {
    let object = root.object(KEYS)?;
    let mut map = CorrelationMap {
        analyses: object.get("analyses").map(|cursor| analyses(&cursor)).transpose()?.unwrap_or_default(),
        measurement: object.get("measurement").map(|cursor| named(&cursor)).transpose()?.map(|placed| placed.text),
        same_names: object.get("same_names").map(|cursor| same_names(&cursor)).transpose()?.unwrap_or_default(),
        same_names_place: object.get("same_names").map(|cursor| cursor.place()),
        correlate: list_of(&object, "correlate", correlate)?,
        decorrelate: list_of(&object, "decorrelate", decorrelate)?,
        settings: list_of(&object, "settings", parameter_setting)?,
        poi: None,
        sha256: String::new(),
    };
    if let Some(cursor) = object.get("poi") {
        poi(&cursor, &mut map)?;
    }
    Ok(map)
}

fn list_of<T>(object: &JsonObject<'_>, key: &str, read: fn(&JsonCursor<'_>) -> Read<T>) -> Read<Vec<T>> {
    match object.get(key) {
        Some(cursor) if !cursor.is_null() => cursor.list()?.map(|item| read(&item)).collect(),
        _ => Ok(Vec::new()),
    }
}

/// Reads a name or a pattern, which is not empty.
fn named(cursor: &JsonCursor<'_>) -> Read<Placed> {
    let (text, place) = (cursor.text()?.to_owned(), Some(cursor.place()));
    if text.is_empty() { Err(MapError { problem: MapProblem::EmptyName, place }) } else { Ok(Placed { text, place }) }
}

/// Reads one name, or a list with at least one.
fn one_or_more(cursor: &JsonCursor<'_>) -> Read<Vec<Placed>> {
    match cursor.text() {
        Ok(_) => Ok(vec![named(cursor)?]),
        Err(_) => cursor
            .filled_list()
            .map_err(|_| cursor.wrong_type("a name or a list of names"))?
            .map(|item| named(&item))
            .collect(),
    }
}

fn names(object: &JsonObject<'_>, key: &str) -> Read<Vec<Placed>> {
    object.get(key).map_or_else(|| Ok(Vec::new()), |cursor| one_or_more(&cursor))
}

/// Reads the keys of an object as names, with their values.
fn by_name<T>(cursor: &JsonCursor<'_>, read: fn(&JsonCursor<'_>) -> Read<T>) -> Read<Vec<(Placed, T)>> {
    cursor.open_object()?;
    let entry = |(member, value): (&json::ObjectMember<'_>, JsonCursor<'_>)| {
        let (text, place) = (member.key.to_string(), Some(value.place()));
        if text.is_empty() {
            return Err(MapError { problem: MapProblem::EmptyName, place });
        }
        Ok((Placed { text, place }, read(&value)?))
    };
    let entries = cursor.members()?.map(entry).collect::<Read<Vec<_>>>()?;
    if entries.is_empty() { Err(JsonError::Empty { place: cursor.place() }.into()) } else { Ok(entries) }
}

fn analyses(cursor: &JsonCursor<'_>) -> Read<Vec<AnalysisEntry>> {
    let details = |cursor: &JsonCursor<'_>| -> Read<[Option<Placed>; 2]> {
        if cursor.text().is_ok() {
            return Ok([Some(named(cursor)?), None]);
        }
        let object = cursor.object(&["file", "measurement"])?;
        let [file, measurement] = ["file", "measurement"].map(|key| object.get(key).map(|cursor| named(&cursor)));
        Ok([file.transpose()?, measurement.transpose()?])
    };
    let entries = by_name(cursor, details)?.into_iter();
    Ok(entries.map(|(label, [file, measurement])| AnalysisEntry { label, file, measurement }).collect())
}

/// Reads one of `words`.
fn word<T: Copy>(cursor: &JsonCursor<'_>, words: &'static [(&'static str, T)]) -> Read<T> {
    let text = cursor.text()?;
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|&(_, value)| value).ok_or_else(|| MapError {
        problem: MapProblem::UnknownWord {
            word: text.to_owned(),
            known: words.iter().map(|(word, _)| *word).collect(),
        },
        place: Some(cursor.place()),
    })
}

fn same_names(cursor: &JsonCursor<'_>) -> Read<SameNames> {
    const WORDS: &[(&str, SameNames)] =
        &[("correlate", SameNames::Correlate), ("decorrelate", SameNames::Decorrelate), ("error", SameNames::Error)];
    word(cursor, WORDS)
}

/// Reads the parameter of interest: a name, or a rule that makes several parameters it.
fn poi(cursor: &JsonCursor<'_>, map: &mut CorrelationMap) -> Read<()> {
    let poi = match cursor.text() {
        Ok(_) => named(cursor)?,
        Err(_) => {
            let rule = correlate(cursor)?;
            map.correlate.push(rule);
            map.correlate[map.correlate.len() - 1].name.clone()
        }
    };
    if poi.is_pattern() {
        return Err(poi.error(MapProblem::PatternAsName { name: poi.text.clone() }));
    }
    map.poi = Some(poi);
    Ok(())
}

fn correlate(cursor: &JsonCursor<'_>) -> Read<CorrelateRule> {
    let place = cursor.place();
    if cursor.text().is_ok() {
        return Ok(CorrelateRule { name: named(cursor)?, members: Members::SameName(Vec::new()), place });
    }
    let object = cursor.object(&["name", "parameters", "analyses"])?;
    let name = named(&object.need("name")?)?;
    let members = match (object.get("parameters"), object.get("analyses")) {
        (Some(_), Some(analyses)) => {
            return Err(MapError { problem: MapProblem::TwoMembers, place: Some(analyses.place()) });
        }
        (Some(cursor), None) => Members::Named(by_name(&cursor, one_or_more)?),
        (None, Some(analyses)) => Members::SameName(one_or_more(&analyses)?),
        (None, None) => Members::SameName(Vec::new()),
    };
    require_fitting_wildcards(&name, &members)?;
    Ok(CorrelateRule { name, members, place })
}

/// Refuses patterns whose wildcards do not correspond to those of the common name. A common name
/// without wildcards takes whatever they match.
fn require_fitting_wildcards(name: &Placed, members: &Members) -> Read<()> {
    let expected = pattern::n_wildcards(&name.text);
    let Members::Named(members) = members else { return Ok(()) };
    for placed in members.iter().flat_map(|(_, patterns)| patterns) {
        let found = pattern::n_wildcards(&placed.text);
        if expected > 0 && found != expected {
            let (pattern, name) = (placed.text.clone(), name.text.clone());
            return Err(placed.error(MapProblem::Wildcards { pattern, name, found, expected }));
        }
    }
    Ok(())
}

fn decorrelate(cursor: &JsonCursor<'_>) -> Read<DecorrelateRule> {
    const WORDS: &[(&str, Option<SplitBy>)] =
        &[("analysis", None), ("channel", Some(SplitBy::Channel)), ("sample", Some(SplitBy::Sample))];
    let object = cursor.object(DECORRELATE_KEYS)?;
    let by = word(&object.need("by")?, WORDS)?;
    let rule = DecorrelateRule {
        parameters: one_or_more(&object.need("parameters")?)?,
        by,
        analyses: names(&object, "analyses")?,
        channels: names(&object, "channels")?,
        samples: names(&object, "samples")?,
        parts: object.get("parts").map(|cursor| by_name(&cursor, one_or_more)).transpose()?.unwrap_or_default(),
        place: Some(cursor.place()),
    };
    if by.is_none() {
        for key in ["channels", "samples", "parts"] {
            if let Some(cursor) = object.get(key) {
                return Err(MapError { problem: MapProblem::NotByAnalysis { key }, place: Some(cursor.place()) });
            }
        }
    }
    Ok(rule)
}

fn parameter_setting(cursor: &JsonCursor<'_>) -> Read<(super::Setting, DocumentPlace)> {
    pyhf::check_parameter(cursor)?;
    let object = cursor.open_object()?;
    let setting = setting(&object)?;
    if let Some(bounds) = object.get("bounds").filter(|bounds| !bounds.is_null()) {
        bounds.list()?.try_for_each(|range| require_range(&setting.name, &range))?;
    }
    Ok((setting, cursor.place()))
}

/// Refuses a range of the parameter `name` without a value.
fn require_range(name: &str, range: &JsonCursor<'_>) -> Read<()> {
    let ends = range.numbers()?;
    match ends[..] {
        [lower, upper] if lower >= upper => {
            let problem =
                MapProblem::EmptyRange { name: name.to_owned(), ends: [lower, upper].map(|end| end.to_string()) };
            Err(MapError { problem, place: Some(range.place()) })
        }
        _ => Ok(()),
    }
}
