//! HistFactory XML instead of a workspace.

use std::fs;

use crate::support::{Run, Scratch, folder, nextstat};

const COMBINATION: &str = "histfactory/combination.xml";

fn examples(arguments: &[&str]) -> Run {
    nextstat(&folder("examples"), arguments)
}

#[test]
fn a_combination_is_fitted_and_its_files_are_in_the_provenance() {
    let run = examples(&["fit", COMBINATION, "--json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let document = run.document();
    assert_eq!(document["poi"]["name"], "mu");
    let workspace = &document["provenance"]["workspace"];
    assert_eq!(workspace["file"], COMBINATION);
    let files: Vec<&str> =
        workspace["files"].as_array().expect("files").iter().filter_map(|file| file.as_str()).collect();
    assert_eq!(files, ["histfactory/SR.xml", "histfactory/histograms.root", "histfactory/CR.xml"]);
}

#[test]
fn a_combination_and_the_workspace_made_of_it_are_one() {
    let scratch = Scratch::new("histfactory");
    let json = scratch.path("workspace.json");
    assert_eq!(examples(&["sort", COMBINATION, "--output-file", &json]).code, Some(0));
    let sorted = scratch.path("sorted.json");
    assert_eq!(examples(&["sort", &json, "--output-file", &sorted]).code, Some(0));
    assert_eq!(examples(&["digest", &sorted]).stdout, examples(&["digest", &json]).stdout);
    let fit = |workspace: &str| {
        let run = examples(&["fit", workspace, "--json", "--measurement", "without_JES"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.result()
    };
    assert_eq!(fit(COMBINATION)["twice_nll"], fit(&json)["twice_nll"]);
}

#[test]
fn every_verb_about_documents_reads_a_combination() {
    for arguments in [&["inspect", COMBINATION][..], &["check", COMBINATION], &["digest", COMBINATION]] {
        let run = examples(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {}", run.stderr);
    }
    let digest = examples(&["digest", COMBINATION, "--json"]).document();
    let fit = examples(&["fit", COMBINATION, "--json"]).document();
    assert_eq!(digest["sha256"], fit["provenance"]["workspace"]["digest"]);
}

#[test]
fn what_is_wrong_names_file_line_and_column() {
    let scratch = Scratch::new("histfactory-wrong");
    let top = scratch.path("top.xml");
    fs::write(&top, "<Combination>\n <Input>SR.xml</Input>\n <Measurement Nam=\"m\"/>\n</Combination>")
        .expect("written");
    let run = examples(&["fit", &top]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    let message = format!(
        "error: in `{top}`: unknown attribute `Nam` of `Measurement` at line 3, column 15\nhint: did you mean `Name`?\n"
    );
    assert_eq!(run.stderr, message);
}
