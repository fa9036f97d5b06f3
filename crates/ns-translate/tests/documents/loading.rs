//! `load`: workspaces from files, compressed or not, with patches and patches of sets, and the
//! files that errors name.

use std::fs;
use std::path::PathBuf;

use ns_core::spec::Workspace;
use ns_translate::{DocumentError, DocumentSource, LoadRequest, SourceError, full_message, load, pyhf};

const WORKSPACE: &str = r#"{"channels": [{"name": "SR", "samples": [{"name": "b", "data": [1.0], "modifiers": []}]}],
"observations": [{"name": "SR", "data": [1]}],
"measurements": [{"name": "m", "config": {"poi": "", "parameters": []}}], "version": "1.0.0"}"#;

/// A folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ns-translate-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).expect("a temporary file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn request(workspace: PathBuf, patches: &[&PathBuf]) -> LoadRequest {
    LoadRequest {
        patches: patches.iter().map(|&path| DocumentSource::Path(path.clone())).collect(),
        ..LoadRequest::new(DocumentSource::Path(workspace))
    }
}

#[test]
fn patches_apply_in_order() {
    let folder = Folder::new("order");
    let workspace = folder.file("ws.json", WORKSPACE);
    let first = folder.file("first.json", r#"[{"op": "replace", "path": "/observations/0/data/0", "value": 2}]"#);
    let second = folder.file(
        "second.json",
        r#"[{"op": "test", "path": "/observations/0/data/0", "value": 2.0},
            {"op": "replace", "path": "/observations/0/data/0", "value": 3}]"#,
    );
    let observed = |workspace: &Workspace| workspace.observations[0].data[0];
    assert_eq!(observed(&load(&request(workspace.clone(), &[])).expect("good")), 1.0);
    assert_eq!(observed(&load(&request(workspace.clone(), &[&first, &second])).expect("good")), 3.0);

    let error = load(&request(workspace, &[&second, &first])).expect_err("the wrong order");
    let expected = format!(
        "in `{}`: operation 0 (`test /observations/0/data/0`): the document has the number `1` there",
        second.display()
    );
    assert_eq!(full_message(&error), expected);
}

#[test]
fn errors_name_the_file() {
    let folder = Folder::new("fault");
    let good = folder.file("ws.json", WORKSPACE);
    let bad = folder.file("bad.json", &WORKSPACE.replace("1.0]", "\"1\"]"));
    let breaking = folder.file("patch.json", r#"[{"op": "remove", "path": "/channels/0/samples/0/data"}]"#);

    let error = load(&request(bad.clone(), &[])).expect_err("a bad workspace");
    let error = full_message(&error);
    assert!(
        error.starts_with(&format!("in `{}`: expected a number, found the string `1` at", bad.display())),
        "{error}"
    );
    let error = load(&request(good.clone(), &[&breaking])).expect_err("no longer a workspace");
    let expected =
        format!("in `{}`, patched: missing key `data` in the object at `/channels/0/samples/0`", good.display());
    assert_eq!(full_message(&error), expected);
    let error = load(&request(good.clone(), &[&good])).expect_err("not a patch");
    assert_eq!(full_message(&error), format!("in `{}`: expected a JSON patch, found a pyhf workspace", good.display()));
    let error = load(&request(good, &[&folder.0.join("absent.json")])).expect_err("no such file");
    assert!(matches!(error, DocumentError::Source(SourceError::Unreadable { .. })), "{error}");
}

fn published() -> PathBuf {
    ns_testkit::published::data_folder().join("workspaces")
}

#[test]
#[ignore = "needs published likelihoods"]
fn published_signal_patches_apply() {
    let folder = published();
    for (workspace, patch) in [
        ("atlas_3l_offshell.json", "atlas_3l_offshell.synthsig.json"),
        ("atlas_sbottom_regionA.json", "atlas_sbottom_regionA.patch.sbottom_1300_205_60.json"),
    ] {
        let plain = load(&request(folder.join(workspace), &[])).expect("published");
        let patched = load(&request(folder.join(workspace), &[&folder.join(patch)])).expect("published");
        assert_ne!(plain, patched);
        assert_eq!(pyhf::from_value(&pyhf::write_workspace(&patched)).expect("written by us"), patched);
    }
}

#[test]
#[ignore = "needs published likelihoods"]
fn published_patch_sets_apply_by_name() {
    let folder = published();
    for (workspace, set, name) in [
        ("atlas_1lbb.json.zst", "atlas_1lbb.patchset.json.zst", "C1N2_Wh_hbb_500_150"),
        ("atlas_3l_rjr.json", "atlas_3l_rjr.patchset.json.zst", "ERJR_500p0_0p0"),
    ] {
        let mut request = request(folder.join(workspace), &[]);
        let plain = load(&request).expect("published");
        request.patchset = Some((folder.join(set), name.to_owned()));
        assert_ne!(load(&request).expect("published"), plain);

        request.patchset = Some((folder.join(set), format!("{name}0")));
        let error = load(&request).expect_err("no such patch");
        let hint = error.advice().expect("a hint").to_string();
        assert!(hint.contains(&format!("`{name}`")), "{hint}");
    }
}
