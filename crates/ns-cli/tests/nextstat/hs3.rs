//! HS3: `convert`, and verbs on documents instead of workspaces.

use serde_json::Value;

use crate::support::{Scratch, folder, nextstat};

fn json(scratch: &Scratch, name: &str) -> Value {
    serde_json::from_slice(&scratch.read(name)).expect("JSON")
}

#[test]
fn a_workspace_goes_to_hs3_and_back_and_every_step_has_the_same_fit() {
    let scratch = Scratch::new("hs3-and-back");
    let (examples, hs3, back) = (folder("examples"), scratch.path("model.json"), scratch.path("back.json"));
    for arguments in [&["convert", "shapes.json", &hs3, "--to", "hs3"][..], &["convert", &hs3, &back, "--to", "pyhf"]] {
        let run = nextstat(&examples, arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{}", run.stderr);
        assert!(run.stderr.is_empty(), "{}", run.stderr);
    }
    assert_eq!(json(&scratch, "model.json")["metadata"]["hs3_version"], "0.2");
    let fitted = |file: &str| nextstat(&examples, &["fit", file]).document()["bestfit"].clone();
    let bestfit = fitted("shapes.json");
    assert!(bestfit.is_array());
    assert_eq!((fitted(&hs3), fitted(&back)), (bestfit.clone(), bestfit));
    let digest = |file: &str| nextstat(&examples, &["digest", file]).stdout;
    assert_eq!(digest(&hs3), digest(&back));
}

#[test]
fn convert_names_what_a_format_cannot_hold_and_writes_nothing() {
    let scratch = Scratch::new("hs3-refused");
    let out = scratch.path("out.json");
    let run = nextstat(&folder("testdata/hs3/models"), &["convert", "poisson.json", &out, "--to", "pyhf"]);
    assert_eq!(run.code, Some(2));
    let wanted = "error: in `poisson.json`: pyhf JSON cannot hold constraint terms of `k` \
                  (`/measurements/0/config/parameters/0/constraints`)";
    assert!(run.stderr.starts_with(wanted), "{}", run.stderr);
    assert!(scratch.names().is_empty());
    let run = nextstat(&folder("examples"), &["convert", "eft.json", &out, "--to", "hs3"]);
    assert!(run.code == Some(2) && run.stderr.contains("a formula or morphing"), "{}", run.stderr);
    assert!(run.stderr.ends_with("hint: `nextstat convert --to extended` writes every model\n"), "{}", run.stderr);
}

#[test]
fn an_analysis_is_chosen_like_a_measurement() {
    let root = folder("testdata/hs3/root");
    let observed = |arguments: &[&str]| {
        let run = nextstat(&root, &[&["convert", "norm_factors.json", "--to", "extended"], arguments].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.document()["observations"].clone()
    };
    let first = observed(&[]);
    assert_eq!(first, observed(&["--measurement", "simPdf_obsData"]));
    assert_ne!(first, observed(&["--analysis", "simPdf_asimovData"]));
    for verb in ["fit", "check", "limit"] {
        let run = nextstat(&root, &[verb, "norm_factors.json", "--measurement", "simPdf_asimovdata"]);
        assert_eq!(run.code, Some(2), "{verb}");
        assert!(run.stderr.contains("the document has no analysis `simPdf_asimovdata`"), "{}", run.stderr);
        assert!(run.stderr.contains("did you mean `simPdf_asimovData`?"), "{}", run.stderr);
    }
}
