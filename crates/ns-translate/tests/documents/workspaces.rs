//! Operations on workspaces undo each other and change only what they name: on random, example and
//! published workspaces.

use std::fs;
use std::path::{Path, PathBuf};

use ns_translate::workspace::{
    ChannelJoin, NewName, PruneRequest, RenameRequest, WorkspaceDocument, WorkspaceJoin, combine, prune, rename, sort,
};
use ns_translate::{DocumentSource, pyhf, python_json, read_bytes};
use serde_json::Value;

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

const LARGE: usize = 1_000_000;

/// Returns the random workspaces of `testdata/pyhf`, the examples, and published workspaces where
/// they are there.
fn texts() -> Vec<Vec<u8>> {
    let cases = fs::read(repository().join("testdata/pyhf/cases.json")).expect("in the repository");
    let cases: Value = serde_json::from_slice(&cases).expect("JSON");
    let cases = cases["cases"].as_array().expect("a list").iter();
    let mut texts: Vec<Vec<u8>> = cases.map(|case| case["workspace"].to_string().into_bytes()).collect();
    let mut files: Vec<PathBuf> =
        ["simple", "shapes"].iter().map(|name| repository().join(format!("examples/{name}.json"))).collect();
    files.push(repository().join("testdata/commands/spelling.json"));
    // More where they are there: the others are enough to fail.
    if let Some(folder) = ns_testkit::published::folder("workspaces") {
        files.extend(fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path()));
    }
    for file in files {
        let bytes = read_bytes(&DocumentSource::Path(file)).expect("readable");
        // Patches and patch sets lie beside the workspaces. The largest would take longer than all
        // the others.
        if bytes.len() < LARGE && pyhf::read_workspace(&bytes).is_ok() {
            texts.push(bytes);
        }
    }
    texts
}

fn each(check: impl Fn(&[u8], WorkspaceDocument)) {
    let texts = texts();
    assert!(texts.len() > 15);
    for text in texts {
        let document = WorkspaceDocument::from_bytes(&text).expect("a workspace");
        check(&text, document);
    }
}

fn text(document: &WorkspaceDocument) -> String {
    python_json(document).expect("text keys")
}

/// Returns every name of a kind once, sorted.
fn names(document: &WorkspaceDocument, pick: fn(&Value) -> Vec<&str>) -> Vec<String> {
    let value = serde_json::from_str(&text(document)).expect("JSON");
    let mut names: Vec<String> = pick(&value).into_iter().map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

fn items<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value[key].as_array().expect("a list").iter()
}

fn name(value: &Value) -> &str {
    value["name"].as_str().expect("a name")
}

fn channels(value: &Value) -> Vec<&str> {
    items(value, "channels").map(name).collect()
}

fn measurements(value: &Value) -> Vec<&str> {
    items(value, "measurements").map(name).collect()
}

fn samples(value: &Value) -> Vec<&str> {
    items(value, "channels").flat_map(|channel| items(channel, "samples")).map(name).collect()
}

fn modifiers(value: &Value) -> Vec<&str> {
    let samples = items(value, "channels").flat_map(|channel| items(channel, "samples"));
    let modifiers = samples.flat_map(|sample| items(sample, "modifiers"));
    modifiers.filter(|modifier| modifier["type"] != "lumi").map(name).collect()
}

/// Returns new names for all names, or the old ones for the new.
fn primed(names: &[String], back: bool) -> Vec<NewName> {
    let new = |name: &String| format!("{name}′");
    let pair = |name: &String| match back {
        false => NewName { from: name.clone(), to: new(name) },
        true => NewName { from: new(name), to: name.clone() },
    };
    names.iter().map(pair).collect()
}

/// Returns the request that renames everything, or everything back.
fn renaming(original: &WorkspaceDocument, back: bool) -> RenameRequest {
    RenameRequest {
        channels: primed(&names(original, channels), back),
        samples: primed(&names(original, samples), back),
        modifiers: primed(&names(original, modifiers), back),
        measurements: primed(&names(original, measurements), back),
    }
}

#[test]
fn written_workspaces_are_read_back() {
    each(|bytes, document| {
        let written = text(&document);
        assert_eq!(WorkspaceDocument::from_bytes(written.as_bytes()).expect("a workspace"), document);
        let (read, read_back) = (pyhf::read_workspace(bytes), pyhf::read_workspace(written.as_bytes()));
        assert_eq!(read_back.expect("a workspace"), read.expect("a workspace"));
    });
}

#[test]
fn sorting_is_idempotent() {
    each(|_, document| {
        let once = sort(document);
        assert_eq!(text(&sort(once.clone())), text(&once));
    });
}

#[test]
fn renaming_back_undoes_renaming() {
    each(|_, document| {
        let there = rename(document.clone(), &renaming(&document, false)).expect("new names are free");
        assert!(names(&there, samples).iter().all(|name| name.ends_with('′')));
        let back = rename(there, &renaming(&document, true)).expect("old names are free");
        assert_eq!(text(&back), text(&document));
    });
}

#[test]
fn pruning_undoes_combining() {
    each(|_, document| {
        let other = rename(document.clone(), &renaming(&document, false)).expect("new names are free");
        let others = PruneRequest {
            channels: names(&other, channels),
            measurements: names(&other, measurements),
            ..PruneRequest::default()
        };
        for join in [WorkspaceJoin::None, WorkspaceJoin::Outer, WorkspaceJoin::LeftOuter, WorkspaceJoin::RightOuter] {
            let combination = combine(document.clone(), other.clone(), join, ChannelJoin::Whole).expect("disjoint");
            assert!(combination.kept.is_empty());
            let pruned = prune(combination.document, &others).expect("its names");
            assert_eq!(text(&sort(pruned.document)), text(&sort(document.clone())));
        }
    });
}

#[test]
fn an_outer_join_of_a_workspace_with_itself_changes_nothing() {
    each(|_, document| {
        for join in [WorkspaceJoin::Outer, WorkspaceJoin::LeftOuter, WorkspaceJoin::RightOuter] {
            for channels in [ChannelJoin::Whole, ChannelJoin::Merged] {
                let combination = combine(document.clone(), document.clone(), join, channels).expect("the same");
                assert_eq!(combination.document, document);
            }
        }
    });
}
