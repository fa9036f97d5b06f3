//! What HistFactory XML has no place for, in a processing instruction of the combination: other
//! programs pass it over.
//!
//! XML has neither settings that are the usual ones, nor ranges of most parameters, nor names of
//! statistical uncertainties, and squares of uncertainties are rounded. The instruction has a patch
//! that makes the workspace that was written of the one that the XML says. It holds for that one
//! only, which a digest tells: of files that were changed since, only the XML is read.

use std::collections::{HashMap, VecDeque};

use ns_core::spec::Workspace;
use serde_json::{Value, json};

use crate::digest::{DigestAlgorithm, digest};
use crate::histfactory::{INSTRUCTION, ReadCombination, WrittenCombination, read_written};
use crate::json::python_json;
use crate::message::full_message;
use crate::not_representable::NotRepresentable;
use crate::patch::{Patch, apply};
use crate::place::{push_index, push_key};
use crate::pyhf;

/// The key of the digest of the workspace that the XML says.
const DIGEST: &str = "sha256";

/// The key of the patch.
const PATCH: &str = "patch";

/// Adds to a combination what the XML does not say of `workspace`.
///
/// # Errors
///
/// A combination that is not read back.
pub(crate) fn annotate(written: &mut WrittenCombination, workspace: &Workspace) -> Result<(), NotRepresentable> {
    let read = read_written(&written.text, &written.files).map_err(|error| NotRepresentable {
        what: "what its reader refuses:",
        name: full_message(&error),
        pointer: String::new(),
        reason: None,
    })?;
    let (said, meant) = (pyhf::write_workspace(&read.workspace), pyhf::write_workspace(workspace));
    let mut operations = Vec::new();
    add_changes(&said, &meant, &mut String::new(), &mut operations);
    let Some(digest) = digest_of(&said).filter(|_| !operations.is_empty()) else { return Ok(()) };
    let content = json!({DIGEST: digest, PATCH: operations}).to_string();
    // Nothing in it may look like the end of the instruction.
    let instruction = format!("<?{INSTRUCTION} {}?>\n", content.replace('>', "\\u003e"));
    let end_of_type = written.text.find('\n').map_or(0, |end| end + 1);
    written.text.insert_str(end_of_type, &instruction);
    Ok(())
}

/// Returns what was written, if the combination says it; otherwise what the XML says.
pub(crate) fn restore(mut read: ReadCombination) -> ReadCombination {
    let Some(instruction) = read.instruction.take() else { return read };
    match restored(&read.workspace, &instruction) {
        // It has all that the XML does not have.
        Ok(workspace) => (read.workspace, read.warnings) = (workspace, Vec::new()),
        Err(problem) => read.warnings.push(format!("the instruction `<?{INSTRUCTION}?>` is left out: {problem}")),
    }
    read
}

fn restored(said: &Workspace, instruction: &str) -> Result<Workspace, &'static str> {
    const NOT_OURS: &str = "it is not as nextstat writes it";
    let content: Value = serde_json::from_str(instruction).map_err(|_| NOT_OURS)?;
    let mut document = pyhf::write_workspace(said);
    if digest_of(&document).is_none_or(|digest| content[DIGEST] != digest) {
        return Err("the files were changed after nextstat wrote them");
    }
    let patch = Patch::from_bytes(content[PATCH].to_string().as_bytes()).map_err(|_| NOT_OURS)?;
    apply(&mut document, &patch).map_err(|_| NOT_OURS)?;
    pyhf::from_value(&document).map_err(|_| NOT_OURS)
}

fn digest_of(document: &Value) -> Option<String> {
    let text = python_json(document).ok()?;
    digest(text.as_bytes(), DigestAlgorithm::Sha256).ok()
}

/// Adds the operations of a JSON patch that make `after` of `before`, which are at `pointer`.
fn add_changes(before: &Value, after: &Value, pointer: &mut String, operations: &mut Vec<Value>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(old), Value::Object(new)) => {
            let length = pointer.len();
            for (key, old) in old {
                push_key(pointer, key);
                match new.get(key) {
                    Some(new) => add_changes(old, new, pointer, operations),
                    None => operations.push(json!({"op": "remove", "path": pointer})),
                }
                pointer.truncate(length);
            }
            for (key, new) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                push_key(pointer, key);
                operations.push(json!({"op": "add", "path": pointer, "value": new}));
                pointer.truncate(length);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() && new.iter().all(Value::is_object) => {
            let ordered = add_moves(old, new, pointer, operations);
            let length = pointer.len();
            for (index, (old, new)) in ordered.into_iter().zip(new).enumerate() {
                push_index(pointer, index);
                add_changes(old, new, pointer, operations);
                pointer.truncate(length);
            }
        }
        _ => operations.push(json!({"op": "replace", "path": pointer, "value": after})),
    }
}

/// Adds moves that bring the entries of `old` into the order of `new`, as far as names and types
/// tell which is which. Returns the entries in that order.
fn add_moves<'a>(old: &'a [Value], new: &'a [Value], pointer: &str, operations: &mut Vec<Value>) -> Vec<&'a Value> {
    let mut unplaced = Unplaced::new(old);
    // Those from `index` on are in the order of `old`, because each move takes one out.
    let mut ordered: Vec<usize> = (0..old.len()).collect();
    for (index, wanted) in new.iter().enumerate() {
        let found = unplaced.first_like(wanted).and_then(|entry| ordered[index..].binary_search(&entry).ok());
        if let Some(offset) = found.filter(|offset| *offset > 0) {
            ordered[index..=index + offset].rotate_right(1);
            let from = format!("{pointer}/{}", index + offset);
            operations.push(json!({"op": "move", "from": from, "path": format!("{pointer}/{index}")}));
        }
        unplaced.is_placed[ordered[index]] = true;
    }
    ordered.into_iter().map(|entry| &old[entry]).collect()
}

/// Entries of a list that have no place in its new order yet.
struct Unplaced<'a> {
    /// The indices of those with a name and a type.
    by_name: HashMap<[Option<&'a str>; 2], VecDeque<usize>>,
    /// The indices of those with a type.
    by_type: HashMap<&'a str, VecDeque<usize>>,
    /// Whether each entry has its place. Lists of indices may have such entries.
    is_placed: Vec<bool>,
}

impl<'a> Unplaced<'a> {
    fn new(entries: &'a [Value]) -> Self {
        let (mut by_name, mut by_type) = (HashMap::<_, VecDeque<_>>::new(), HashMap::<_, VecDeque<_>>::new());
        for (index, entry) in entries.iter().enumerate() {
            by_name.entry(name_and_type(entry)).or_default().push_back(index);
            if let Some(kind) = entry["type"].as_str() {
                by_type.entry(kind).or_default().push_back(index);
            }
        }
        Self { by_name, by_type, is_placed: vec![false; entries.len()] }
    }

    /// Returns the first entry with the name and the type of `wanted`, or else with its type.
    fn first_like(&mut self, wanted: &'a Value) -> Option<usize> {
        let named = self.by_name.get_mut(&name_and_type(wanted));
        first_unplaced(named, &self.is_placed).or_else(|| {
            // A staterror, whose name is another one.
            let of_type = wanted["type"].as_str().and_then(|kind| self.by_type.get_mut(kind));
            first_unplaced(of_type, &self.is_placed)
        })
    }
}

fn name_and_type(entry: &Value) -> [Option<&str>; 2] {
    [entry["name"].as_str(), entry["type"].as_str()]
}

fn first_unplaced(queue: Option<&mut VecDeque<usize>>, is_placed: &[bool]) -> Option<usize> {
    let queue = queue?;
    while queue.front().is_some_and(|index| is_placed[*index]) {
        queue.pop_front();
    }
    queue.front().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_make_the_one_of_the_other() {
        let before = json!({"list": [{"name": "a", "type": "x", "data": [1, 2]}, {"name": "b", "type": "y"},
            {"name": "c", "type": "z"}], "gone": 1, "same": [1, 2], "short": [{"name": "d"}]});
        let after = json!({"list": [{"name": "c", "type": "z"}, {"name": "other", "type": "y", "n": null},
            {"name": "a", "type": "x", "data": [1, 3]}], "same": [1, 2], "new/~": true, "short": []});
        let mut operations = Vec::new();
        add_changes(&before, &after, &mut String::new(), &mut operations);
        let patch = Patch::from_bytes(Value::Array(operations).to_string().as_bytes()).expect("a patch");
        let mut document = before;
        apply(&mut document, &patch).expect("it fits");
        assert_eq!(document, after);
    }

    /// Comparing each entry with all that follow would take 5,000,000,000 comparisons.
    #[test]
    fn long_lists_without_common_names_are_ordered() {
        let entries =
            |prefix: &str| -> Vec<Value> { (0..100_000).map(|n| json!({"name": format!("{prefix}{n}")})).collect() };
        let mut operations = Vec::new();
        let before = entries("a");
        assert_eq!(add_moves(&before, &entries("b"), "", &mut operations).len(), 100_000);
        assert!(operations.is_empty());
    }

    #[test]
    fn entries_of_one_name_keep_their_order() {
        let entry = |name: &str, kind: &str, n: u32| json!({"name": name, "type": kind, "n": n});
        let before = [entry("a", "x", 1), entry("a", "x", 2), entry("b", "y", 3), entry("c", "y", 4)];
        let after = [entry("d", "y", 5), entry("c", "y", 4), entry("a", "x", 1), entry("a", "x", 2)];
        let mut operations = Vec::new();
        let ordered = add_moves(&before, &after, "", &mut operations);
        assert_eq!(ordered, [&before[2], &before[3], &before[0], &before[1]]);
        let moves =
            [json!({"op": "move", "from": "/2", "path": "/0"}), json!({"op": "move", "from": "/3", "path": "/1"})];
        assert_eq!(operations, moves);
    }
}
