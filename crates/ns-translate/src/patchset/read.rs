//! Checks the text of a patch set against pyhf's schema and locates its patches without reading
//! them.

use std::collections::HashMap;

use super::{PatchEntry, PatchSet, PatchSetError, PatchSetMetadata, PatchValue};
use crate::digest::DigestAlgorithm;
use crate::json::{self, JsonCursor, JsonError, JsonObject, JsonTree};
use crate::kind::DocumentKind;
use crate::patch;
use crate::pyhf;

type Read<T> = Result<T, PatchSetError>;

/// The set, its list of patches, a patch, its list of operations, an operation: deeper values are
/// read on demand.
const KEPT_DEPTH: usize = 5;

pub(super) fn patch_set(bytes: &[u8]) -> Read<PatchSet> {
    let text = json::decode(bytes)?;
    let root = json::parse_to_depth(text, KEPT_DEPTH)?;
    DocumentKind::PatchSet.require(&root)?;
    let root = JsonCursor::top(text, &root);
    let object = root.object(&["metadata", "patches", "version"])?;
    pyhf::check_version(&object.need("version")?)?;
    let metadata_start = object.need("metadata")?.node().start;
    let metadata = metadata(&object.need("metadata")?)?;
    let patches = object.need("patches")?;
    let entries: Vec<PatchEntry> =
        patches.filled_list()?.enumerate().map(|(index, item)| entry(index, &item)).collect::<Read<_>>()?;
    check_values(&patches, &entries, metadata.labels.len())?;
    Ok(PatchSet {
        text: text.to_owned(),
        metadata,
        metadata_start,
        by_name: index_names(&patches, &entries)?,
        by_values: index_values(&patches, &entries)?,
        patches: entries,
    })
}

fn metadata(cursor: &JsonCursor<'_>) -> Read<PatchSetMetadata> {
    let object = cursor.open_object()?;
    let labels = object.need("labels")?;
    Ok(PatchSetMetadata {
        references: references(&object.need("references")?)?,
        digests: digests(&object.need("digests")?)?,
        labels: labels.filled_list()?.map(|label| word(&label)).collect::<Result<_, JsonError>>()?,
        description: object.need("description")?.text()?.to_owned(),
    })
}

fn references(cursor: &JsonCursor<'_>) -> Read<Vec<(String, String)>> {
    let hepdata = only_key(&cursor.object(&["hepdata"])?, "hepdata", cursor)?;
    let digits = |text: &str| text.strip_prefix("ins").is_some_and(|id| id.len() == 7 && all_digits(id));
    let id = text_like(&hepdata, digits, "an INSPIRE identifier (`ins` and seven digits)")?;
    Ok(vec![("hepdata".to_owned(), id)])
}

fn only_key<'c>(object: &JsonObject<'c>, key: &str, cursor: &JsonCursor<'_>) -> Result<JsonCursor<'c>, JsonError> {
    object.get(key).ok_or_else(|| JsonError::Empty { place: cursor.place() })
}

fn digests(cursor: &JsonCursor<'_>) -> Read<Vec<(DigestAlgorithm, String)>> {
    cursor.object(&["md5", "sha256"])?;
    let mut digests = Vec::new();
    for (member, value) in cursor.members()? {
        let algorithm = DigestAlgorithm::from_word(&member.key)?;
        let digest = match algorithm {
            DigestAlgorithm::Md5 => {
                text_like(&value, |text| is_hex(text, 32, false), "an MD5 digest (32 of `0-9a-f`)")?
            }
            DigestAlgorithm::Sha256 => {
                text_like(&value, |text| is_hex(text, 64, true), "a SHA-256 digest (64 of `0-9a-f`)")?
            }
        };
        digests.push((algorithm, digest));
    }
    if digests.is_empty() {
        return Err(JsonError::Empty { place: cursor.place() }.into());
    }
    Ok(digests)
}

fn entry(index: usize, cursor: &JsonCursor<'_>) -> Read<PatchEntry> {
    let object = cursor.object(&["metadata", "patch"])?;
    let metadata = object.need("metadata")?;
    let metadata_start = metadata.node().start;
    let metadata = metadata.open_object()?;
    let operations = object.need("patch")?;
    for operation in operations.list()? {
        patch::check_operation(&operation)?;
    }
    let values = metadata.need("values")?;
    Ok(PatchEntry {
        name: word(&metadata.need("name")?)?,
        values: values.list()?.map(|item| value(&item)).collect::<Result<_, JsonError>>()?,
        index,
        start: operations.node().start,
        metadata_start,
    })
}

fn value(cursor: &JsonCursor<'_>) -> Result<PatchValue, JsonError> {
    match &cursor.node().tree {
        JsonTree::Text(text) => Ok(PatchValue::Text(text.to_string())),
        JsonTree::Number(_) | JsonTree::NonFinite(_) => cursor.number().map(PatchValue::Number),
        _ => Err(cursor.wrong_type("a number or a string")),
    }
}

fn word(cursor: &JsonCursor<'_>) -> Result<String, JsonError> {
    let is_word =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    text_like(cursor, is_word, "a name of letters, digits and underscores")
}

fn text_like(
    cursor: &JsonCursor<'_>,
    is_right: impl Fn(&str) -> bool,
    expected: &'static str,
) -> Result<String, JsonError> {
    let text = cursor.text()?;
    if is_right(text) {
        return Ok(text.to_owned());
    }
    Err(JsonError::Malformed { text: text.to_owned(), expected, place: cursor.place() })
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hex(text: &str, length: usize, upper_case_too: bool) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f') || (upper_case_too && byte.is_ascii_hexdigit());
    text.len() == length && text.bytes().all(is_digit)
}

fn check_values(patches: &JsonCursor<'_>, entries: &[PatchEntry], n_labels: usize) -> Read<()> {
    match entries.iter().find(|entry| entry.values.len() != n_labels) {
        None => Ok(()),
        Some(entry) => Err(PatchSetError::ValuesPerLabel {
            name: entry.name.clone(),
            expected: n_labels,
            found: entry.values.len(),
            place: patches.place_below(&format!("/{}/metadata/values", entry.index)),
        }),
    }
}

fn index_names(patches: &JsonCursor<'_>, entries: &[PatchEntry]) -> Read<HashMap<String, usize>> {
    let mut by_name = HashMap::with_capacity(entries.len());
    for entry in entries {
        if by_name.insert(entry.name.clone(), entry.index).is_some() {
            let place = patches.place_below(&format!("/{}/metadata/name", entry.index));
            let name = entry.name.clone();
            return Err(PatchSetError::DuplicatePatchName { name, place });
        }
    }
    Ok(by_name)
}

fn index_values(patches: &JsonCursor<'_>, entries: &[PatchEntry]) -> Read<HashMap<Vec<PatchValue>, usize>> {
    let mut by_values = HashMap::with_capacity(entries.len());
    for entry in entries {
        if let Some(first) = by_values.insert(entry.values.clone(), entry.index) {
            return Err(PatchSetError::DuplicatePatchValues {
                first: entries.get(first).map(|first| first.name.clone()).unwrap_or_default(),
                second: entry.name.clone(),
                place: patches.place_below(&format!("/{}/metadata/values", entry.index)),
            });
        }
    }
    Ok(by_values)
}
