//! `nextstat exclusion`: contours of the example grid, and what is said of grids without them.

use crate::support::{Run, Scratch, folder, nextstat, with_stdin};
use serde_json::{Value, json};
use std::path::Path;

/// Tests or limits of every signal of the example plane.
fn example(verb: &str) -> Vec<u8> {
    let arguments = [verb, "background.json", "--patchset", "plane.json", "--every-patch"];
    let run = nextstat(&folder("examples"), &arguments);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.stdout.into_bytes()
}

fn exclusion(grid: &[u8], arguments: &[&str]) -> Run {
    let arguments: Vec<&str> = ["exclusion", "-"].iter().chain(arguments).copied().collect();
    with_stdin(Path::new("."), &arguments, grid)
}

#[test]
fn the_table_of_a_grid_has_every_signal() {
    for verb in ["hypotest", "limit"] {
        let run = exclusion(&example(verb), &["--summary"]);
        assert_eq!(run.code, Some(0));
        insta::assert_snapshot!(format!("the_table_of_{verb}"), run.stderr);
    }
}

#[test]
fn grids_of_asimov_data_are_not_called_observed() {
    for verb in ["hypotest", "limit"] {
        let arguments = [verb, "background.json", "--patchset", "plane.json", "--every-patch", "--asimov=0"];
        let more = ["--mask", "control_region[0]", "--bounds", "mu=0:50", "--summary"];
        let run = nextstat(&folder("examples"), &[&arguments[..], &more].concat());
        let head = "data: Asimov (mu = 0)\nranges: mu from 0 to 50\nmasked: control_region (bins 0)\n";
        assert!(run.stderr.starts_with(head), "{}", run.stderr);
        assert!(run.stderr.contains("Asimov data") && !run.stderr.contains("observed"), "{}", run.stderr);
        let contours = exclusion(run.stdout.as_bytes(), &["--summary"]);
        assert!(contours.stderr.starts_with("data: Asimov (mu = 0)\n"), "{}", contours.stderr);
        assert!(contours.stderr.contains("  Asimov data: ") && !contours.stderr.contains("observed"));
    }
}

#[test]
fn the_document_of_a_grid_has_its_contours() {
    let run = exclusion(&example("hypotest"), &["--cl", "0.9", "--x", "m_lsp"]);
    insta::assert_snapshot!(run.transcript());
    let provenance = &run.document()["provenance"];
    assert_eq!(provenance["file"], "-");
    assert!(provenance["grid"]["patchset"]["digest"].is_string() && provenance["command"].is_array());
}

/// A grid of 9 signals as `change` makes it.
fn grid(change: impl Fn(usize, &mut Value)) -> String {
    let patch = |i: usize| {
        let cls = 0.01 * (1 + i) as f64;
        let mut patch = json!({
            "patch": format!("s{i}"),
            "values": {"mass": 100 * (i % 3), "other": 10 * (i / 3), "kind": "bino"},
            "result": {"converged": true, "CLs_obs": cls, "CLs_exp": [cls, cls, cls, cls, cls]},
        });
        change(i, &mut patch);
        patch
    };
    json!({"complete": true, "n_patches": 9, "patches": (0..9).map(patch).collect::<Vec<_>>()}).to_string()
}

/// A document, arguments, exit code, and what standard error contains.
type Mistake<'a> = (&'a str, &'a [&'a str], i32, &'a [&'a str]);

#[test]
fn mistakes_are_explained() {
    let good = grid(|_, _| {});
    let one_label = grid(|i, patch| patch["values"] = json!({"mass": i}));
    let words = grid(|i, patch| patch["values"]["other"] = json!(if i == 4 { json!("heavy") } else { json!(i) }));
    let failed = grid(|_, patch| patch["error"] = json!("no minimum"));
    let nearly_failed = grid(|i, patch| patch["result"]["converged"] = json!(i < 2));
    let line = grid(|i, patch| patch["values"] = json!({"mass": 0.1 * i as f64, "other": 0.3 * i as f64}));
    let excluded = grid(|_, patch| patch["result"]["CLs_obs"] = json!(0.001));
    let without = grid(|_, patch| {
        patch["result"] = json!({"converged": true, "poi": {"name": "mu"}});
    });
    let mixed = grid(|i, patch| patch["result"]["mu"] = json!(1 + i / 8));
    let bad = grid(|i, patch| patch["result"]["CLs_obs"] = json!(if i == 2 { 1.5 } else { 0.1 }));
    let same = grid(|i, patch| patch["values"] = json!({"mass": i % 2, "other": i % 3, "width": i / 6}));
    let fit = nextstat(&folder("examples"), &["fit", "simple.json"]).stdout;
    let test = nextstat(&folder("examples"), &["hypotest", "simple.json"]).stdout;
    let set = std::fs::read_to_string(folder("examples/plane.json")).expect("an example");
    let workspace = std::fs::read_to_string(folder("examples/background.json")).expect("an example");
    let writes = "hint: `nextstat hypotest --patchset FILE --every-patch` writes one, and `limit` does";
    let mistakes: &[Mistake<'_>] = &[
        (&one_label, &[], 2, &["there is only `mass`", "hint: `nextstat.plot.limits` of the Python package"]),
        (&good, &["--x", "kind"], 2, &["the value of `kind` of the patch `s0` is not a number: `bino`", "hint: "]),
        (&words, &["--y", "other"], 2, &["of the patch `s4` is not a number: `heavy`", "hint: `--x LABEL`"]),
        (
            &nearly_failed,
            &[],
            2,
            &["a triangulation needs three signals, and there are 2", "hint: patches that failed"],
        ),
        (&line, &[], 2, &["the 9 signals are on one line", "hint: "]),
        (&good, &["--x", "mas"], 2, &["the patches have no label `mas`", "hint: did you mean `mass`?"]),
        (&good, &["--at", "weight=1"], 2, &["no label `weight`", "hint: the labels are `kind`, `mass`, `other`"]),
        (&good, &["--at", "kind=wino"], 2, &["no patch has the value `wino` of `kind`", "hint: its values are `bino`"]),
        (&good, &["--at", "kind"], 2, &["expected `LABEL=VALUE`, such as `kind=60`"]),
        (&good, &["--x", "mass", "--y", "mass"], 2, &["`mass` is the label of both axes", "hint: "]),
        (&failed, &[], 2, &["all 9 patches failed; the first, `s0`: no minimum"]),
        (&excluded, &[], 0, &["warning: observed: every signal is excluded, so that there is no contour"]),
        (&good, &["--cl", "95"], 2, &["the confidence level 95 is not between 0.5 and 1", "hint: 95 % is `--cl 0.95`"]),
        (&good, &["--cl", "0.05"], 2, &["hint: exclusion at CLs = 0.05 is `--cl 0.95`"]),
        (&good, &["--cl", "1"], 2, &["hint: a confidence level is a probability, such as 0.95"]),
        (&fit, &[], 2, &["the document is the result of a fit, not the results of every patch", writes]),
        (&test, &[], 2, &["the document is the result of a single test", writes]),
        (&set, &[], 2, &["the document is a patch set", writes]),
        (&workspace, &[], 2, &["the document is a workspace", writes]),
        ("{", &[], 2, &["in standard input: the document is not JSON: EOF", writes]),
        ("{}", &[], 2, &["the document is something else", writes]),
        (&without, &[], 2, &["no patch has CLs or a limit", writes]),
        (&mixed, &[], 2, &["the patches have different values of `mu`: 1 and 2"]),
        (&bad, &[], 2, &["at /patches/2/result/CLs_obs: expected a probability, found `1.5`"]),
        (&same, &["--x", "mass", "--y", "other"], 2, &["are at the same point and differ", "hint: `width` tells them"]),
    ];
    for (document, arguments, code, fragments) in mistakes {
        let run = exclusion(document.as_bytes(), arguments);
        assert_eq!(run.code, Some(*code), "{arguments:?}: {}", run.stderr);
        assert_eq!(*code == 2, run.stdout.is_empty(), "{arguments:?}");
        for fragment in *fragments {
            assert!(run.stderr.contains(fragment), "{arguments:?}: `{fragment}` is not in {}", run.stderr);
        }
    }
}

#[test]
fn a_grid_with_failures_is_done_but_not_converged() {
    let scratch = Scratch::new("exclusion");
    let some = grid(|i, patch| patch["result"]["converged"] = json!(i != 4));
    std::fs::write(scratch.path("grid.json"), some).expect("a scratch folder");
    let run = nextstat(Path::new(&scratch.path(".")), &["exclusion", "grid.json", "-o", "contours.json"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.starts_with("warning: 1 patch without a result is left out"), "{}", run.stderr);
    let document: Value = serde_json::from_slice(&scratch.read("contours.json")).expect("JSON");
    assert_eq!(document["left_out"], json!([{"patch": "s4", "reason": "a fit did not converge"}]));
    assert_eq!(document["converged"], json!(false));
    // A result does not replace the grid.
    let run = nextstat(Path::new(&scratch.path(".")), &["exclusion", "grid.json", "-o", "grid.json"]);
    assert!(run.code == Some(2) && run.stderr.contains("the result would replace it"), "{}", run.stderr);
}
