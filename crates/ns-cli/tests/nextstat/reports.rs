//! `gof` and `report` on our own examples, with their summaries, their commonest mistakes, and fits
//! that fail.

use serde_json::{Value, json};
use std::fs;

use crate::support::{Run, Scratch, folder, nextstat, with_stdin};

fn examples(arguments: &[&str]) -> Run {
    nextstat(&folder("examples"), arguments)
}

/// The transcript without the minimiser's effort.
fn transcript(run: &Run) -> String {
    let line = |line: &str| match line.split_once("converged: ") {
        Some((before, _)) if before.trim().is_empty() => format!("{before}converged: …\n"),
        _ => format!("{line}\n"),
    };
    run.transcript().lines().map(line).collect()
}

macro_rules! snapshot {
    ($name:ident, $($argument:literal),+) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), transcript(&examples(&[$($argument),+])));
        }
    };
}

snapshot!(gof, "gof", "shapes.json", "--summary");
snapshot!(gof_of_asimov_data, "gof", "simple.json", "--asimov=1", "--fix", "mu=1");
snapshot!(gof_of_a_background_without_saying_so, "gof", "background.json");
snapshot!(gof_by_toys, "gof", "simple.json", "--toys", "400", "--summary");
snapshot!(gof_with_auxiliary_data_but_no_toys, "gof", "simple.json", "--aux", "fixed");
snapshot!(report, "report", "simple.json", "--summary", "--bins");
snapshot!(
    report_of_a_background,
    "report",
    "background.json",
    "--poi",
    "none",
    "--summary",
    "--output-file",
    "/dev/null"
);
snapshot!(report_with_a_threshold_in_percent, "report", "simple.json", "--correlation-threshold", "30");

#[test]
fn a_fit_that_fails_has_no_p_value_and_no_uncertainties_and_says_so() {
    let folder = folder("testdata/gallery");
    for verb in ["gof", "report"] {
        let run = nextstat(&folder, &[verb, "negative-total.json"]);
        assert_eq!(run.code, Some(1), "{verb}: {}", run.stderr);
        assert!(run.stderr.starts_with("warning: the fit could not start"), "{verb}: {}", run.stderr);
        let document = run.document();
        let goodness = if verb == "gof" { &document } else { &document["goodness_of_fit"] };
        assert_eq!((&goodness["p_value"], &goodness["statistic"]), (&Value::Null, &Value::Null));
        if verb == "report" {
            let total = &document["yields"]["channels"][0]["postfit"]["total"];
            assert!(total["yields"][0].is_number() && total["uncertainties"][0].is_null(), "{total}");
            assert!(document["fit"]["correlation"].is_null());
        }
        let summary = nextstat(&folder, &[verb, "negative-total.json", "--summary"]).stderr;
        assert_eq!(summary.matches("!!! THE FIT DID NOT CONVERGE").count(), 2, "{summary}");
    }
}

#[test]
fn names_cannot_command_a_terminal() {
    // Controls of bytes and of C1, bidirectional and invisible characters, a tag.
    let hidden = "\\u001b[2J\\n\\u009b\\u061c\\u200b\\u2028\\u202e\\u2066\\ufeff\\udb40\\udc41";
    let named = |name: &str| format!("{name}{hidden}");
    let text = std::fs::read_to_string(folder("examples").join("simple.json")).expect("an example");
    let names = ["singlechannel", "background", "uncorr_bkguncrt", "mu", "Measurement"];
    let text =
        names.iter().fold(text, |text, name| text.replace(&format!("\"{name}\""), &format!("\"{}\"", named(name))));
    for verb in ["gof", "report"] {
        let run = with_stdin(&folder("examples"), &[verb, "-", "--summary"], text.as_bytes());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let said = if verb == "gof" { 2 } else { 6 };
        assert!(run.stderr.matches("\\u{1b}[2J\\n").count() >= said, "{}", run.stderr);
        let escaped = "\\u{9b}\\u{61c}\\u{200b}\\u{2028}\\u{202e}\\u{2066}\\u{feff}\\u{e0041}";
        assert!(run.stderr.contains(escaped), "{}", run.stderr);
        assert!(run.stderr.chars().all(|c| c == '\n' || ns_terminal::is_visible(c)), "{:?}", run.stderr);
    }
}

#[test]
fn arguments_cannot_command_a_terminal() {
    for arguments in [
        &["fit", "--fo\u{9b}o\r\u{202e}"][..],
        &["fi\u{1b}[31mt\u{2066}"],
        &["fit", "no\u{1b}[31m\u{202e}where.json"],
        &["toys", "simple.json", "--n-toys", "1\u{1b}[31m"],
    ] {
        let run = nextstat(&folder("examples"), arguments);
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.contains("\\u{"), "{:?}", run.stderr);
        assert!(run.stderr.chars().all(|c| c == '\n' || ns_terminal::is_visible(c)), "{:?}", run.stderr);
    }
}

#[test]
fn a_report_has_what_its_parts_have() {
    let report = examples(&["report", "shapes.json"]).document();
    let mut fit = examples(&["fit", "shapes.json", "--correlation"]).result();
    // The head of the report has them.
    for key in ["$schema", "nextstat_version", "measurement"] {
        assert_eq!(fit.as_object_mut().expect("an object").remove(key).is_some(), report.get(key).is_some());
    }
    let pulls = fit.as_object_mut().and_then(|fit| fit.remove("pulls"));
    assert_eq!(pulls.as_ref(), report.get("pulls"));
    assert_eq!(report["fit"], fit);
    let gof = examples(&["gof", "shapes.json"]).document();
    for key in ["statistic", "n_dof", "p_value", "channels", "warnings"] {
        assert_eq!(report["goodness_of_fit"][key], gof[key], "{key}");
    }
    let one = examples(&["report", "shapes.json", "--threads", "1"]).result();
    assert_eq!(examples(&["report", "shapes.json", "--threads", "4"]).result(), one);
}

/// Returns the data of the page that `report` with these arguments writes.
fn page(scratch: &Scratch, arguments: &[&str]) -> (String, Value) {
    let path = scratch.path("report.html");
    let run = examples(&[&["report"], arguments, &["--html", &path, "--quiet"]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{}", run.stderr);
    let page = String::from_utf8(scratch.read("report.html")).expect("text");
    let start = page.find(r#"id="report-data">"#).expect("the data") + r#"id="report-data">"#.len();
    let end = start + page[start..].find("</script>").expect("the end of the data");
    let data = serde_json::from_str(&page[start..end]).expect("JSON");
    (page, data)
}

#[test]
fn a_page_has_what_the_verbs_have() {
    let scratch = Scratch::new("page");
    let (_, data) = page(&scratch, &["shapes.json", "--poi", "mu", "--poi", "norm_ttbar"]);
    assert_eq!(data["absent"], json!({"minima": "only one starting point was tried"}));
    let near = |found: &Value, wanted: &Value| {
        let [found, wanted] = [found, wanted].map(|value| value.as_f64().expect("a number"));
        assert!((found - wanted).abs() <= 1e-6 * wanted.abs(), "{found} and {wanted}");
    };
    for (k, poi) in ["mu", "norm_ttbar"].into_iter().enumerate() {
        let limit = examples(&["limit", "shapes.json", "--poi", poi]).document();
        near(&data["limits"][k]["observed"], &limit["observed"]);
        let ranking = examples(&["ranking", "shapes.json", "--poi", poi]).document();
        assert_eq!(data["ranking"][k]["ranking"][0]["parameter"], ranking["ranking"][0]["parameter"]);
        near(
            &data["scans"][k]["intervals"][0]["up"],
            &examples(&["scan", "shapes.json", "--poi", poi]).document()["intervals"][0]["up"],
        );
    }
    let fit = examples(&["report", "shapes.json"]).document();
    let at = |name: &str| data["correlation"]["par_names"].as_array().expect("names").iter().position(|n| n == name);
    let [i, j] = [at("norm_ttbar").expect("it is there"), at("mu").expect("it is there")];
    let millionths = &data["correlation"]["millionths"][i.max(j)][i.min(j)];
    let whole = fit["fit"]["correlation"][i][j].as_f64().expect("a correlation");
    assert!((1e6 * whole - millionths.as_f64().expect("a number")).abs() <= 0.5);
    assert_eq!(data["report"]["provenance"]["command"][1], "report");
}

#[test]
fn a_page_does_not_have_what_is_hidden_or_impossible() {
    let scratch = Scratch::new("hidden-page");
    let text = fs::read_to_string(folder("examples").join("shapes.json")).expect("readable");
    let workspace = scratch.path("workspace.json");
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    for observation in document["observations"].as_array_mut().expect("a list") {
        if observation["name"] == "signal_region" {
            observation["data"] = json!([7611.0, 5512.0, 3613.0, 1514.0]);
        }
    }
    fs::write(&workspace, document.to_string()).expect("writable");
    for more in [&["--blind", "signal_region"][..], &["--blind", "signal_region", "--fit-blinded"]] {
        let (text, data) = page(&scratch, &[&[workspace.as_str()], more].concat());
        for count in ["7611", "5512", "3613", "1514", "18250"] {
            assert!(!text.contains(count), "{more:?}: {count}");
        }
        let absent = data["absent"].as_object().expect("an object");
        assert!(absent.contains_key("limits") && absent.contains_key("scans"), "{absent:?}");
    }
    let (_, data) = page(&scratch, &["shapes.json", "--poi", "none"]);
    assert_eq!(data["absent"]["limits"], "the model has no parameter of interest");
    let run = examples(&["report", &workspace, "--html", &workspace]);
    assert!(run.code == Some(2) && run.stderr.contains("is an input of this command"), "{}", run.stderr);
}

#[test]
fn a_page_whose_limit_does_not_exist_says_so_like_the_limit() {
    let scratch = Scratch::new("page-without-limit");
    // A signal that is too small to be excluded.
    let workspace = json!({
        "version": "1.0.0",
        "channels": [{"name": "SR", "samples": [
            {"name": "s", "data": [1e-6], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "b", "data": [50.0], "modifiers": [{"name": "n", "type": "normsys", "data": {"hi": 1.1, "lo": 0.9}}]},
        ]}],
        "observations": [{"name": "SR", "data": [52.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
    });
    fs::write(scratch.path("workspace.json"), workspace.to_string()).expect("writable");
    let path = scratch.path("report.html");
    let said = "the observed limit was not found: no value tested is excluded";
    for verb in [&["limit"][..], &["report", "--html", &path], &["report", "--html", &path, "--summary"]] {
        let run = examples(&[verb, &[&scratch.path("workspace.json")]].concat());
        assert!(run.code == Some(1) && run.stderr.contains(said), "{verb:?}: {:?}, {}", run.code, run.stderr);
    }
    assert!(scratch.read("report.html").starts_with(b"<!"));
}

#[test]
fn a_signal_strength_that_control_regions_do_not_determine_is_named() {
    let shapes = |more: &[&str]| {
        let run = examples(&[&["report", "shapes.json", "--summary", "--json"], more].concat());
        (run.stderr.contains("the data hardly determine `mu`"), run.document()["warnings"].to_string())
    };
    let (is_said, warnings) = shapes(&["--blind", "signal_region[2:]", "--bounds", "mu=0:4"]);
    assert!(is_said && warnings.contains("is larger than half of its range, 0 to 4"), "{warnings}");
    assert!(!shapes(&[]).0 && !shapes(&["--blind", "signal_region[2:]", "--fix", "mu=1"]).0);
}

#[test]
fn a_stored_fit_is_reported_with_all_data_hidden() {
    let (folder, scratch) = (folder("examples"), Scratch::new("report_hidden"));
    let (fit, page) = (scratch.path("fit.json"), scratch.path("page.html"));
    let stored =
        nextstat(&folder, &["fit", "shapes.json", "--mask", "signal_region", "--covariance", "-q", "-o", &fit]);
    assert_eq!(stored.code, Some(0), "{}", stored.stderr);
    let report = ["report", "shapes.json", "--from", &fit, "--blind", "*"];
    let document = nextstat(&folder, &report).document();
    assert!(document["fit"]["nll"].is_null() && document["goodness_of_fit"]["statistic"].is_null());
    for channel in document["yields"]["channels"].as_array().expect("channels") {
        assert!(channel["data"].as_array().expect("bins").iter().all(Value::is_null), "{channel}");
        assert!(channel["postfit"]["total"]["sum"].as_f64().is_some_and(|sum| sum > 0.0), "{channel}");
    }
    let said = nextstat(&folder, &[&report[..], &["--summary"]].concat()).stderr;
    assert!(said.contains("all data are hidden, so the prediction is not compared") && !said.contains("χ²"), "{said}");
    assert!(said.contains("575.507 (no uncertainty)"), "{said}");
    assert_eq!(nextstat(&folder, &[&report[..], &["--html", &page, "-q"]].concat()).code, Some(0));
}

#[test]
fn a_signal_that_the_other_bins_hardly_determine_is_warned_of() {
    let warned = |options: &[&str]| {
        let arguments = [&["yields", "shapes.json", "--summary", "-o", "/dev/null"], options].concat();
        nextstat(&folder("examples"), &arguments).stderr.contains("hardly determine `mu`, 1.6 ± 2.4")
    };
    assert!(warned(&["--blind", "signal_region[2:]"]));
    assert!(!warned(&["--blind", "signal_region[2:]", "--fix", "mu=1"]) && !warned(&["--mask", "signal_region[2:]"]));
}
