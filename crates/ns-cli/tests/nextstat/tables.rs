//! Tables instead of JSON, and of stored results.

use std::fs;
use std::path::Path;

use crate::support::{Scratch, folder, nextstat, with_stdin};

/// A scan of two parameters, and one with a contour.
const GRID: [&str; 8] = ["scan", "shapes.json", "--parameter", "mu", "--parameter", "lumi", "--points", "3"];
#[rustfmt::skip]
const CONTOUR: [&str; 12] = [
    "scan", "shapes.json", "--parameter", "mu", "--parameter", "lumi", "--points", "3", "--contour", "0.68",
    "--contour-points", "8",
];
#[rustfmt::skip]
const REGION: [&str; 8] = [
    "interval", "shapes.json", "--grid", "mu=0:4:4", "--grid", "norm_ttbar=0.7:1.3:4", "--tolerance", "0.5",
];

#[test]
fn a_stored_result_has_the_table_that_the_verb_writes() {
    let (examples, scratch) = (folder("examples"), Scratch::new("tables"));
    let cases: &[(&[&str], &str)] = &[
        (&["fit", "shapes.json", "--correlation"], "correlation"),
        (&["yields", "shapes.json", "--group", "other=wjets,fakes"], "yields"),
        (&["report", "shapes.json", "--blind", "signal_region[2:]"], "bins"),
        (&["ranking", "shapes.json"], "groups"),
        (&["limit", "shapes.json", "--at", "lumi=0.98:1.02:3"], "limits"),
        (&["limit", "shapes.json", "--poi", "mu", "--poi", "norm_ttbar"], "limits"),
        (&["limit", "background.json", "--patchset", "signals.json", "--every-patch"], "limits"),
        (&["hypotest", "shapes.json", "--asimov=0"], "tests"),
        (&["significance", "shapes.json"], "significance"),
        (&["scan", "shapes.json", "--points", "3"], "scan"),
        (&["scan", "shapes.json", "--points", "9"], "intervals"),
        (&GRID, "scan"),
        (&CONTOUR, "contours"),
        (&["gof", "shapes.json", "--toys", "20"], "goodness"),
        (&["report", "shapes.json"], "goodness"),
        (&["hypotest-toys", "simple.json", "--n-toys", "50"], "tests"),
        (&["hypotest-toys", "simple.json", "--n-toys", "50"], "p_values"),
        (&["coverage", "simple.json", "--true", "0,1", "--n-toys", "50"], "coverage"),
        (&REGION, "contours"),
        (&REGION, "points"),
        (
            &["coverage", "shapes.json", "--poi", "mu", "--poi", "norm_ttbar", "--true", "1", "--n-toys", "9"],
            "coverage",
        ),
    ];
    for (arguments, table) in cases {
        let stored = nextstat(&examples, arguments);
        for format in ["latex", "csv", "md"] {
            let written = nextstat(&examples, &[arguments, &["--format", format, "--table", table][..]].concat());
            assert_eq!(written.code, Some(0), "{arguments:?}: {}", written.stderr);
            let arguments = ["table", "-", "--format", format, "--table", table];
            let again = with_stdin(&examples, &arguments, stored.stdout.as_bytes());
            assert_eq!(again.stdout, written.stdout, "{arguments:?}");
            let path = scratch.path("table");
            let arguments = [&arguments[..], &["-o", &path]].concat();
            with_stdin(&examples, &arguments, stored.stdout.as_bytes());
            assert_eq!(fs::read_to_string(&path).expect("a table"), written.stdout);
        }
    }
}

#[test]
fn results_that_are_written_row_by_row_have_tables_when_they_are_stored() {
    let (examples, scratch) = (folder("examples"), Scratch::new("rows"));
    let data = scratch.path("data.json");
    fs::write(&data, "[[57, 63], [60, 50]]").expect("a scratch folder");
    let (toys, fits) = (["toys", "simple.json", "--n-toys", "3"], ["fits", "simple.json", "--data", &data]);
    let cases = [
        (toys, "toys", "toy,outcome,nll,mu,"),
        (fits, "parameters", "parameter,bestfit,bestfit_uncertainty,mean,"),
        (fits, "data_sets", "data_set,outcome,twice_nll,mu,"),
        (fits, "correlation", "parameter,mu,"),
    ];
    for (arguments, name, header) in cases {
        let stored = nextstat(&examples, &arguments);
        let table = ["table", "--format", "csv", "--table", name];
        let table = with_stdin(&examples, &table, stored.stdout.as_bytes());
        assert!(table.stdout.starts_with(header), "{arguments:?}: {}{}", table.stdout, table.stderr);
        assert_eq!(nextstat(&examples, &[&arguments[..], &["--format", "csv"]].concat()).code, Some(2));
    }
}

#[test]
fn exclusion_planes_have_tables() {
    let grid = ["hypotest", "background.json", "--patchset", "plane.json", "--every-patch"];
    let stored = nextstat(&folder("examples"), &grid);
    for (table, header) in [("points", "patch,m_gluino,m_lsp,"), ("contours", "exclusion,contour,m_gluino,m_lsp")] {
        let arguments = ["exclusion", "--format", "csv", "--table", table];
        let run = with_stdin(&folder("examples"), &arguments, stored.stdout.as_bytes());
        assert!(run.stdout.starts_with(header), "{}{}", run.stdout, run.stderr);
    }
}

#[test]
fn json_is_the_default_and_has_a_name() {
    let arguments = ["limit", "shapes.json"];
    let plain = nextstat(&folder("examples"), &arguments).result();
    let named = nextstat(&folder("examples"), &[&arguments[..], &["--format", "json"]].concat()).result();
    assert_eq!(plain, named);
}

#[test]
fn a_table_that_cannot_be_made_writes_nothing() {
    let (examples, scratch) = (folder("examples"), Scratch::new("no-table"));
    let fit = nextstat(&examples, &["fit", "simple.json"]).stdout;
    fs::write(scratch.path("fit.json"), &fit).expect("a scratch folder");
    fs::write(scratch.path("check.json"), nextstat(&examples, &["check", "simple.json"]).stdout).expect("a file");
    let damaged = fit.replace("\"bestfit\": [", "\"bestfit\": [1, ");
    fs::write(scratch.path("damaged.json"), damaged).expect("a file");
    let here = scratch.path(".");
    let workspace = fs::read(examples.join("simple.json")).expect("an example");
    fs::write(scratch.path("simple.json"), workspace).expect("a file");
    let mistakes: &[(&[&str], &str)] = &[
        (&["table", "fit.json", "--table", "parameter"], "hint: did you mean `parameters`?"),
        (&["table", "fit.json", "--table", "correlation"], "hint: `nextstat fit --correlation` writes it"),
        (&["table", "fit.json", "--rows", "mv"], "no row has the name `mv`"),
        (&["table", "fit.json", "--format", "html"], "choose one of `latex`, `csv`, `md`"),
        (&["table", "check.json"], "a result of `check` has no tables"),
        (&["table", "simple.json"], "the document is not a result of nextstat"),
        (&["table", "damaged.json"], "in `damaged.json`: at /bestfit: expected a list of 3"),
        (&["table", "nowhere.json"], "nowhere.json"),
        (&["table", "fit.json", "-o", "fit.json"], "the result would replace it"),
        (&["fit", "simple.json", "--table", "correlation"], "--format"),
        (&["fit", "simple.json", "--format", "json", "--table", "correlation"], "`--table` needs `--format latex`"),
        (
            &["fit", "simple.json", "--format", "md", "--table", "correlation"],
            "error: the document has no `correlation`",
        ),
        (&["yields", "simple.json", "--group", "a=x*"], "the group `a` names the sample `x*`"),
    ];
    for (arguments, wanted) in mistakes {
        let run = nextstat(Path::new(&here), arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(run.stdout.is_empty() && run.stderr.contains(wanted), "{arguments:?}: {}", run.stderr);
    }
    assert_eq!(fs::read_to_string(scratch.path("fit.json")).expect("the fit"), fit);
}

#[test]
fn groups_take_the_place_of_their_samples() {
    let arguments = ["yields", "shapes.json", "--group", "other=wjets,fake*", "--summary", "-q", "--summary"];
    let run = nextstat(&folder("examples"), &arguments);
    assert!(run.stderr.contains("  other           137 ± 17"), "{}", run.stderr);
    assert!(!run.stderr.contains("wjets  "), "{}", run.stderr);
    let document = run.result();
    let names = |stage: &str| document["channels"][0][stage]["groups"][0]["samples"].clone();
    assert_eq!([names("prefit"), names("postfit")], [0, 1].map(|_| serde_json::json!(["fakes", "wjets"])));
}
