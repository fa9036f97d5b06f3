//! What a physicist who knows pyhf, cabinetry, TRExFitter and Combine expects of the command on the
//! first day: the usual workflows, results that say what they are, and output for a paper. What is
//! mistyped is in `plausible_mistakes`, and what Python is asked for in `test_new_users.py`.

use crate::support::{Run, Scratch, folder, nextstat};
use serde_json::{Value, json};

fn run(line: &str) -> Run {
    nextstat(&folder("examples"), &line.split(' ').collect::<Vec<_>>())
}

/// The table that the command prints.
fn table(line: &str) -> String {
    let run = run(&format!("{line} --summary -o /dev/null"));
    assert_eq!(run.code, Some(0), "nextstat {line}: {}", run.stderr);
    run.stderr
}

fn document(line: &str) -> Value {
    let run = run(line);
    assert_eq!(run.code, Some(0), "nextstat {line}: {}", run.stderr);
    run.document()
}

/// The words of the line that begins with `label`.
fn row(table: &str, label: &str) -> Vec<String> {
    let line = table.lines().find(|line| line.trim_start().starts_with(label));
    line.unwrap_or_else(|| panic!("no line `{label}` in\n{table}")).split_whitespace().map(str::to_owned).collect()
}

// Workflows.

#[test]
fn each_usual_question_has_a_verb() {
    let help = run("--help").stdout;
    for verb in [
        "fit",
        "fits",
        "gof",
        "report",
        "yields",
        "scan",
        "ranking",
        "hypotest",
        "limit",
        "exclusion",
        "significance",
        "search",
        "signal-scan",
        "table",
        "toys",
        "hypotest-toys",
        "interval",
        "coverage",
        "job",
        "inspect",
        "check",
        "combine",
        "simplify",
        "prune",
        "rename",
        "decorrelate",
        "patchset",
        "build",
        "hepdata",
        "plot",
        "xml2json",
        "json2xml",
        "contrib",
        "man",
    ] {
        assert!(help.lines().any(|line| line.split_whitespace().next() == Some(verb)), "{verb}");
    }
}

#[test]
fn asimov_data_are_of_any_values_and_the_table_says_so() {
    let said = table("fit shapes.json --asimov=0.5 --asimov-at norm_ttbar=1.15");
    assert!(said.starts_with("data: Asimov (mu = 0.5, norm_ttbar = 1.15)\n"), "{said}");
    assert_eq!(row(&said, "norm_ttbar =")[2], "1.15");
}

#[test]
fn asimov_data_of_a_fit_have_its_nuisance_parameters_and_another_signal() {
    let scratch = Scratch::new("asimov_of_a_fit");
    let fit = scratch.path("fit.json");
    assert_eq!(run(&format!("fit shapes.json --covariance -q -o {fit}")).code, Some(0));
    let said = table(&format!("fit shapes.json --asimov-from {fit} --set mu=2"));
    assert!(said.starts_with("data: Asimov (at the fit in ") && said.contains("mu = 2)\n"), "{said}");
    assert_eq!([&row(&said, "mu =")[2], &row(&said, "norm_ttbar =")[2]], ["2.00", "1.04"]);
}

#[test]
fn reports_hide_data_on_demand() {
    let said = table("report shapes.json --blind-above 0.2");
    assert_eq!(row(&said, "data  ").last().map(String::as_str), Some("723"));
    assert!(
        said.contains("blinded: signal_region (bins 2, 3)\n") && said.contains("data               blinded"),
        "{said}"
    );
}

#[test]
fn a_fit_of_control_regions_predicts_the_signal_region() {
    let scratch = Scratch::new("control_regions");
    let (fit, pruned) = (scratch.path("fit.json"), scratch.path("pruned.json"));
    let fixed = "--fix fakes_control_region=1";
    assert_eq!(run(&format!("fit shapes.json --mask signal_region {fixed} --covariance -q -o {fit}")).code, Some(0));
    let predicted = document(&format!("yields shapes.json --from {fit} --blind *"));
    assert!(predicted["channels"][1]["postfit"]["total"]["uncertainties"][3].as_f64().expect("a number") > 0.0);
    assert_eq!(predicted["channels"][1]["data"], json!([null, null, null, null]));
    // To mask a region is to fit the workspace without it.
    assert_eq!(run(&format!("prune shapes.json -c signal_region -q -o {pruned}")).code, Some(0));
    let alone = document(&format!("fit {pruned} --poi none {fixed}"));
    let masked: Value = serde_json::from_slice(&scratch.read("fit.json")).expect("JSON");
    let norm = |fit: &Value| fit["mle_parameters"]["norm_ttbar"][0].as_f64().expect("a number");
    assert!((norm(&alone) - norm(&masked)).abs() < 1e-8);
}

#[test]
fn many_data_sets_are_one_command() {
    let scratch = Scratch::new("new_user_fits");
    std::fs::write(scratch.path("rows.txt"), "57 63\n51 48\n60 60\n").expect("a scratch folder");
    let fits = document(&format!("fits simple.json --data {}", scratch.path("rows.txt")));
    assert_eq!(fits["data_sets"].as_array().map(Vec::len), Some(3));
}

#[test]
fn any_number_of_workspaces_combine() {
    let scratch = Scratch::new("combine_three");
    let text = std::fs::read_to_string(folder("examples").join("shapes.json")).expect("an example");
    for name in ["a", "b", "c"] {
        std::fs::write(scratch.path(name), text.replace("_region\"", &format!("_{name}\""))).expect("a scratch folder");
    }
    let [a, b, c] = ["a", "b", "c"].map(|name| scratch.path(name));
    let combined = document(&format!("combine {a} {b} {c}"));
    assert_eq!(combined["channels"].as_array().map(Vec::len), Some(6));
}

#[test]
fn parameters_are_decorrelated_by_region_and_removed_by_pattern() {
    let text = run("decorrelate shapes.json -m theory_ttbar --by region").stdout;
    assert!(text.contains("theory_ttbar_signal_region") && text.contains("theory_ttbar_control_region"));
    let text = run("prune shapes.json -m theory_*").stdout;
    assert!(!text.contains("theory_") && text.contains("norm_ttbar"));
}

#[test]
fn tables_are_latex_csv_and_markdown() {
    for (format, part) in [("latex", r"\toprule"), ("csv", "region,sample,prefit"), ("md", "| region | sample |")] {
        let run = run(&format!("yields shapes.json --format {format}"));
        assert!(run.code == Some(0) && run.stdout.contains(part), "{}", run.stdout);
    }
}

#[test]
fn a_report_is_a_page_for_a_browser() {
    let scratch = Scratch::new("new_user_page");
    assert_eq!(run(&format!("report simple.json --html {} -q", scratch.path("report.html"))).code, Some(0));
    let page = String::from_utf8(scratch.read("report.html")).expect("text");
    assert!(page.starts_with("<!DOCTYPE html>") && page.len() < 3_000_000);
}

// Results say what they are.

#[test]
fn every_result_names_its_workspace_its_data_and_its_settings() {
    for verb in [
        "fit",
        "yields",
        "report",
        "gof",
        "limit",
        "significance",
        "hypotest",
        "ranking --method covariance",
        "scan --points 3",
        "toys --n-toys 2",
        "hypotest-toys --n-toys 2",
        "interval --max-toys 500",
        "coverage --true 1 --n-toys 50",
        "limit --toys --max-toys 500",
        "significance --toys --max-toys 500",
    ] {
        let (verb, options) =
            verb.split_once(' ').map_or((verb, String::new()), |(verb, options)| (verb, format!(" {options}")));
        let run = run(&format!("{verb} shapes.json{options} --asimov=1 --fix lumi=1 --bounds mu=0:8"));
        let provenance = &run.document()["provenance"];
        assert_eq!(provenance["workspace"]["digest"].as_str().map(str::len), Some(64), "{verb}");
        assert_eq!(provenance["nextstat_version"], env!("CARGO_PKG_VERSION"), "{verb}");
        assert_eq!(provenance["data"], json!({"source": "asimov", "parameters": {"mu": 1.0}}), "{verb}");
        assert_eq!(provenance["settings"]["fixed"], json!({"lumi": 1.0}), "{verb}");
        assert_eq!(provenance["settings"]["bounds"], json!({"mu": [0.0, 8.0]}), "{verb}");
        assert_eq!([&provenance["command"][0], &provenance["command"][1]], ["nextstat", verb]);
    }
}

#[test]
fn a_limit_of_asimov_data_has_no_row_called_observed() {
    let said = table("limit simple.json --asimov 0");
    assert!(!said.contains("observed") && row(&said, "Asimov data").len() == 3, "{said}");
}

#[test]
fn impacts_are_labelled_and_up_comes_first() {
    let said = table("ranking shapes.json --group theory=theory_*");
    let heading = row(&said, "impact on mu").join(" ");
    assert!(heading.contains("pre-fit +1σ -1σ post-fit +1σ -1σ global +1σ -1σ covariance"), "{heading}");
    let ranking = document("ranking shapes.json");
    let of_signal = |entry: &&Value| entry["parameter"] == "theory_signal";
    let entry = ranking["ranking"].as_array().expect("a list").iter().find(of_signal).expect("an entry");
    for (column, side) in [(3, "up"), (4, "down")] {
        let shown: f64 = row(&said, "theory_signal")[column].parse().expect("a number");
        assert!((shown - entry["prefit"][side]["impact"].as_f64().expect("a number")).abs() < 5e-4, "{side}");
    }
    assert_eq!(row(&said, "group"), ["group", "parameters", "frozen", "global"]);
}

#[test]
fn free_normalisations_are_in_the_table_with_and_without_a_signal() {
    for options in ["", " --poi none"] {
        let said = table(&format!("fit shapes.json{options}"));
        assert_eq!(row(&said, "norm_ttbar =")[2..], ["1.04", "±", "0.10"], "{said}");
    }
}

#[test]
fn uncertainties_that_are_not_parabolic_are_warned_of() {
    let said = table("fit shapes.json --asimov 0");
    assert!(said.contains("2ΔNLL of `norm_ttbar` is") && said.contains("MINOS gives asymmetric intervals"), "{said}");
}

#[test]
fn the_uncertainty_is_split_into_stat_and_syst() {
    assert!(table("fit shapes.json").contains("mu = 1.37 ± 0.74 (stat. 0.70, syst. 0.23, by covariance)"));
    assert!(table("ranking shapes.json").contains("syst. 0.213, stat. 0.7071, by refits with shifted auxiliary data"));
}

#[test]
fn low_counts_are_tested_by_toys_with_the_fraction_and_its_error() {
    let test = document("hypotest-toys simple.json --n-toys 200 --mu 2");
    assert!(test["CLs_obs"].is_number() && test["CLs_obs_error"].is_number(), "{test}");
}

// Numbers and words.

#[test]
fn intervals_have_any_level_and_scans_say_where_they_cross() {
    let said = table("fit shapes.json --minos mu --minos-cl 0.95");
    assert!(row(&said, "mu =").join(" ").contains("MINOS 95 % CL -1.3248 +1.7711"), "{said}");
    let said = table("scan shapes.json --points 9");
    assert_eq!(row(&said, "1σ, 68.27 %").len(), 5);
}

#[test]
fn numbers_are_rounded_as_in_a_paper() {
    let said = table("fit shapes.json --asimov 1");
    assert!(
        !said.split("pulls").nth(1).expect("a table").split("warning").next().expect("text").contains("e-"),
        "{said}"
    );
    assert_eq!(row(&table("yields shapes.json"), "total")[1..], ["702", "±", "36", "724", "±", "26"]);
}

#[test]
fn a_fit_at_a_bound_says_how_to_get_an_interval() {
    let said = table("fit simple.json --asimov 0 --bounds mu=0:10");
    assert!(said.contains("mu = 0 (at its lower bound)") && said.contains("its MINOS interval is"), "{said}");
    let said = table("fit simple.json --asimov 0 --bounds mu=0:10 --minos mu");
    assert!(row(&said, "mu =").join(" ").contains("MINOS (at its bound) +"), "{said}");
}

#[test]
fn columns_of_a_table_have_different_names() {
    assert_eq!(row(&table("fit shapes.json"), "pulls"), ["pulls", "best", "fit", "pull", "constraint"]);
}

#[test]
fn one_quantity_has_one_name_in_every_document() {
    for line in [
        "fit shapes.json",
        "ranking shapes.json --method covariance",
        "limit shapes.json",
        "significance shapes.json",
        "hypotest shapes.json",
    ] {
        let document = document(line);
        assert_eq!(document["poi"]["name"], "mu", "{line}");
        assert!((document["poi"]["bestfit"].as_f64().expect("a number") - 1.36686).abs() < 1e-4, "{line}");
        assert_eq!(document["converged"], true, "{line}");
    }
    assert_eq!(document("report shapes.json")["converged"], true);
}

#[test]
fn several_parameters_of_interest_have_limits_of_their_own() {
    let said = table("limit shapes.json --poi mu --poi norm_ttbar");
    assert!(said.contains("upper limits on `mu`") && said.contains("upper limits on `norm_ttbar`"), "{said}");
}

#[test]
fn a_clean_model_has_no_findings() {
    assert_eq!(document("check shapes.json")["findings"], json!([]));
}

#[test]
fn the_last_of_quiet_and_summary_wins() {
    assert!(run("fit simple.json --quiet --summary -o /dev/null").stderr.contains("mu = 0.72"));
    assert_eq!(run("fit simple.json --summary --quiet -o /dev/null").stderr, "");
}

#[test]
fn the_command_has_manual_pages_completions_and_grouped_options() {
    assert!(run("man limit").stdout.contains(".SH SYNOPSIS"));
    assert!(run("completions bash").stdout.contains("nextstat"));
    let help = run("fit --help").stdout;
    assert!(
        ["Model:", "Data and fit:", "Output:"].iter().all(|heading| help.lines().any(|line| line == *heading)),
        "{help}"
    );
}

#[test]
fn histfactory_xml_is_fitted_as_it_is() {
    let said = table("fit histfactory/combination.xml");
    assert!(said.starts_with("data: observed\n"), "{said}");
}

#[test]
fn a_grid_of_signals_has_an_exclusion_contour() {
    let scratch = Scratch::new("new_user_grid");
    let grid = scratch.path("grid.json");
    assert_eq!(
        run(&format!("hypotest background.json --patchset plane.json --every-patch -q -o {grid}")).code,
        Some(0)
    );
    let contours = document(&format!("exclusion {grid} --x m_gluino --y m_lsp"));
    assert!(!contours["expected"][2]["contours"].as_array().expect("a list").is_empty());
}

#[test]
fn models_have_formulas_and_constraint_terms_of_any_kind() {
    assert_eq!(document("fit eft.json")["converged"], true);
    let scratch = Scratch::new("new_user_terms");
    let mut workspace: Value =
        serde_json::from_slice(&std::fs::read(folder("examples").join("shapes.json")).expect("an example"))
            .expect("JSON");
    let parameters = workspace["measurements"][0]["config"]["parameters"].as_array_mut().expect("a list");
    parameters.push(json!({"name": "theory_ttbar", "constraints": [{"type": "gamma", "tau": 25}], "auxdata": [1],
                           "beta": {"offset": 1, "factor": 0.2}}));
    std::fs::write(scratch.path("terms.json"), workspace.to_string()).expect("a scratch folder");
    assert_eq!(document(&format!("fit {}", scratch.path("terms.json")))["converged"], true);
}
