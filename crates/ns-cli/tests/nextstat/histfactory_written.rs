//! HistFactory XML that the command writes: `convert --to xml` and `json2xml`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{Scratch, folder, nextstat};

/// Returns the files below a folder, with their contents.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            found.push((name, fs::read(path).expect("readable")));
        }
    }
    found.sort();
    found
}

fn names(folder: &Path) -> Vec<String> {
    files(folder).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_workspace_goes_to_xml_and_back_and_every_step_has_the_same_digest() {
    let scratch = Scratch::new("xml-and-back");
    let examples = folder("examples");
    fs::create_dir(scratch.path("out")).expect("a folder");
    let (xml, back) = (scratch.path("out/model.xml"), scratch.path("back.json"));
    for arguments in [&["convert", "shapes.json", &xml, "--to", "xml"][..], &["convert", &xml, &back, "--to", "pyhf"]] {
        let run = nextstat(&examples, arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{}", run.stderr);
    }
    let digest = |file: &str| nextstat(&examples, &["digest", file]).stdout;
    assert_eq!((digest(&xml), digest(&back)), (digest("shapes.json"), digest("shapes.json")));
    let out = scratch.path("out");
    let found = names(Path::new(&out));
    assert!(
        found.contains(&"model.root".to_owned()) && found.contains(&"HistFactorySchema.dtd".to_owned()),
        "{found:?}"
    );
    assert!(found.iter().all(|name| name.starts_with("model") || name == "HistFactorySchema.dtd"), "{found:?}");
    let first = files(Path::new(&out));
    let option = nextstat(&examples, &["convert", "shapes.json", "--to", "xml", "-o", &xml]);
    assert_eq!(option.code, Some(0), "{}", option.stderr);
    assert!(files(Path::new(&out)) == first, "the same files again");
}

#[test]
fn several_files_need_a_name_and_replace_no_input() {
    let examples = folder("examples");
    for arguments in [&["--to", "xml"][..], &["--to", "xml", "-o", "-"]] {
        let run = nextstat(&examples, &[&["convert", "simple.json"], arguments].concat());
        let wanted = "error: HistFactory XML is several files, which standard output cannot hold\nhint: name the combination: \
                      `-o model.xml`\n";
        assert_eq!((run.code, run.stderr.as_str()), (Some(2), wanted));
    }
    let scratch = Scratch::new("xml-inputs");
    let model = scratch.path("model.xml");
    let written = nextstat(&examples, &["convert", "simple.json", &model, "--to", "xml"]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    // The file of its channel would be the one that is read.
    let copy = scratch.path("copy.xml");
    fs::copy(&model, &copy).expect("copied");
    let run = nextstat(&examples, &["convert", &copy, &model, "--to", "xml"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("model_singlechannel.xml` is an input of this command"), "{}", run.stderr);
}

#[test]
fn a_combination_does_not_replace_its_own_files() {
    let examples = folder("examples");
    for (name, named) in
        [("model.root", "model.xml"), ("Model.ROOT", "Model.xml"), ("HistFactorySchema.dtd", "HistFactorySchema.xml")]
    {
        let scratch = Scratch::new(&format!("xml-own-{name}"));
        let (target, named) = (scratch.path(name), scratch.path(named));
        let run = nextstat(&examples, &["convert", "simple.json", &target, "--to", "xml"]);
        let wanted = format!(
            "error: the combination and a file that it names would both be `{target}`\nhint: name the combination \
             `{named}`\n"
        );
        assert_eq!((run.code, run.stderr.as_str()), (Some(2), wanted.as_str()));
        assert!(scratch.names().is_empty());
        let run = nextstat(&examples, &["convert", "simple.json", &named, "--to", "xml"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
}

#[test]
fn a_combination_has_the_name_of_a_file() {
    let examples = folder("examples");
    for (target, hint) in [("..", "../model.xml"), ("/", "/model.xml")] {
        let run = nextstat(&examples, &["convert", "simple.json", target, "--to", "xml"]);
        let wanted = format!("error: `{target}` is not the name of a file\nhint: name the combination: `{hint}`\n");
        assert_eq!((run.code, run.stderr.as_str()), (Some(2), wanted.as_str()));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_unicode_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let done = Command::new(env!("CARGO_BIN_EXE_nextstat"))
        .args(["convert", "simple.json", "--to", "xml"])
        .arg(std::ffi::OsStr::from_bytes(b"\xff.xml"))
        .current_dir(folder("examples"))
        .output()
        .expect("the command starts");
    let message = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2));
    assert!(message.contains("which is not Unicode\nhint: give the combination another name\n"), "{message}");
}

/// Returns a workspace with `n` channels of one bin.
fn of_channels(n: usize) -> String {
    let modifiers = json!([{"name": "mu", "type": "normfactor", "data": null}]);
    let channel = |c: usize| {
        let sample = json!({"name": "signal", "data": [5.0], "modifiers": modifiers});
        json!({"name": format!("SR{c}"), "samples": [sample]})
    };
    let observation = |c: usize| json!({"name": format!("SR{c}"), "data": [5.0]});
    json!({"channels": (0..n).map(channel).collect::<Vec<_>>(),
        "observations": (0..n).map(observation).collect::<Vec<_>>(),
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}], "version": "1.0.0"})
    .to_string()
}

#[cfg(unix)]
#[test]
fn there_may_be_more_channels_than_open_files() {
    let scratch = Scratch::new("xml-many");
    let (workspace, target) = (scratch.path("many.json"), scratch.path("out/many.xml"));
    fs::write(&workspace, of_channels(100)).expect("written");
    let done = Command::new("sh")
        .args(["-c", "ulimit -n 40 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_nextstat"), "convert"])
        .args([&workspace, &target, "--to", "xml"])
        .output()
        .expect("the shell starts");
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(names(Path::new(&scratch.path("out"))).len(), 103);
}

#[test]
fn a_model_that_xml_cannot_hold_writes_nothing() {
    let scratch = Scratch::new("xml-refused");
    let out = scratch.path("out.xml");
    let run = nextstat(&folder("testdata/hs3/models"), &["convert", "poisson.json", &out, "--to", "xml"]);
    let wanted = "error: in `poisson.json`: HistFactory XML cannot hold constraint terms of `k` \
                  (`/measurements/0/config/parameters/0/constraints`)\nhint: `nextstat convert --to extended` writes every model\n";
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), wanted));
    let run = nextstat(&folder("testdata/hs3/models"), &["json2xml", "poisson.json", "--output-dir", &out]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), wanted));
    assert!(scratch.names().is_empty());
}

#[test]
fn json2xml_writes_the_folders_of_pyhf_from_where_it_is_started() {
    let scratch = Scratch::new("json2xml");
    let here = Path::new(&scratch.path("")).to_owned();
    fs::copy(folder("examples").join("simple.json"), here.join("simple.json")).expect("copied");
    let run = nextstat(&here, &["json2xml", "simple.json", "--resultprefix", "fit"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    let wanted = [
        &with_types(&["config/fit_singlechannel.xml", "data/data.root", "fit.xml"], "config")[..],
        &["simple.json".to_owned()],
    ]
    .concat();
    assert_eq!(names(&here), wanted);
    let text = String::from_utf8(scratch.read("fit.xml")).expect("text");
    assert!(text.contains("<Input>config/fit_singlechannel.xml</Input>"), "{text}");
    // As JSON it is another workspace: settings of factors are written out.
    let fitted = |file: &str| nextstat(&here, &["fit", file, "--json"]).result()["twice_nll"].clone();
    let difference = fitted("fit.xml").as_f64().expect("a number") - fitted("simple.json").as_f64().expect("a number");
    assert!(difference.abs() < 1e-9, "{difference}");
    let options = ["--output-dir", "out", "--specroot", "xml", "--dataroot", "root"];
    let run = nextstat(&here, &[&["json2xml", "simple.json"], &options[..]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let wanted = with_types(&["FitConfig.xml", "root/data.root", "xml/FitConfig_singlechannel.xml"], "xml");
    assert_eq!(names(&here.join("out")), wanted);
}

/// Returns `names` and those of the definitions of the document type, in the folder for everything
/// and in that of channels.
fn with_types(names: &[&str], channels: &str) -> Vec<String> {
    let types = ["HistFactorySchema.dtd".to_owned(), format!("{channels}/HistFactorySchema.dtd")];
    let mut all: Vec<String> = names.iter().map(ToString::to_string).chain(types).collect();
    all.sort();
    all
}

/// ROOT's parser refuses a document without its definition, which it looks for beside the document.
#[test]
fn the_document_type_is_beside_every_document() {
    let cases = [
        (&["--specroot", "."][..], vec!["FitConfig.xml", "FitConfig_singlechannel.xml", "HistFactorySchema.dtd"]),
        (&["--specroot", "in/.."], vec!["FitConfig.xml", "FitConfig_singlechannel.xml", "HistFactorySchema.dtd"]),
        (
            &["--specroot", "a/b"],
            vec![
                "FitConfig.xml",
                "HistFactorySchema.dtd",
                "a/b/FitConfig_singlechannel.xml",
                "a/b/HistFactorySchema.dtd",
            ],
        ),
        (
            &["--resultprefix", "in/fit"],
            vec![
                "config/in/HistFactorySchema.dtd",
                "config/in/fit_singlechannel.xml",
                "in/HistFactorySchema.dtd",
                "in/fit.xml",
            ],
        ),
    ];
    let examples = folder("examples");
    for (i, (options, mut wanted)) in cases.into_iter().enumerate() {
        let scratch = Scratch::new(&format!("json2xml-types-{i}"));
        let out = scratch.path("all/out");
        // The second time replaces the files of the first.
        for _ in 0..2 {
            let run = nextstat(&examples, &[&["json2xml", "simple.json", "--output-dir", &out], options].concat());
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{options:?}");
        }
        wanted.push("data/data.root");
        wanted.sort_unstable();
        let all: Vec<String> = wanted.iter().map(|name| format!("out/{name}")).collect();
        assert_eq!(names(Path::new(&scratch.path("all"))), all, "{options:?}");
        for (name, bytes) in files(Path::new(&out)).into_iter().filter(|(name, _)| name.ends_with(".xml")) {
            let text = String::from_utf8(bytes).expect("text");
            assert!(
                text.starts_with("<!DOCTYPE") && text.contains(" SYSTEM 'HistFactorySchema.dtd'>"),
                "{name}: {text}"
            );
        }
    }
}

#[test]
fn json2xml_reads_standard_input_and_patches() {
    let scratch = Scratch::new("json2xml-stdin");
    let patch = scratch.path("patch.json");
    fs::write(&patch, r#"[{"op": "replace", "path": "/channels/0/name", "value": "SR"}]"#).expect("written");
    let workspace = fs::File::open(folder("examples").join("simple.json")).expect("an example");
    let out = scratch.path("out");
    let done = Command::new(env!("CARGO_BIN_EXE_nextstat"))
        .args(["json2xml", "-p", &patch, "-p", &patch, "--output-dir", &out])
        .stdin(Stdio::from(workspace))
        .output()
        .expect("the command starts");
    // The observations still have the old name.
    assert_eq!(done.status.code(), Some(2));
    let message = String::from_utf8(done.stderr).expect("text");
    assert!(message.contains("in standard input, patched: ") || message.contains("standard input"), "{message}");
    assert!(message.contains("no observations of the channel `SR`"), "{message}");
    assert!(!Path::new(&out).exists());
}
