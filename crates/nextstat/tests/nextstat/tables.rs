//! Tables of documents: their numbers are those of the document, names cannot do harm, and nothing
//! that the document hides or that did not converge is in them.

use nextstat::blinding::Blinding;
use nextstat::curves::{AxisRequest, ScanRequest};
use nextstat::hypothesis::LimitRequest;
use nextstat::ranking::RankingRequest;
use nextstat::tables::{Table, TableError, TableFormat, TableRequest};
use nextstat::{Analysis, CompiledModel, FitRequest, Hint, NoMonitor, ScanValues, Settings};
use serde_json::{Value, json};
use std::process::Command;

use crate::tables_by_kind::{data_sets, goodness, grid, plane, toy_test};
use crate::{example, model};

const FORMATS: [TableFormat; 3] = [TableFormat::Latex, TableFormat::Csv, TableFormat::Markdown];

pub(crate) fn named(table: &str) -> TableRequest {
    TableRequest { table: Some(table.to_owned()), ..TableRequest::default() }
}

pub(crate) fn table(document: &Value, name: &str) -> Table {
    Table::of(document, &named(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn yields(model: &CompiledModel, settings: &Settings) -> Value {
    Analysis::new(model, settings).expect("settings").yields().expect("yields").document()
}

/// Reads RFC 4180: rows of fields.
pub(crate) fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut is_quoted, mut characters) = (false, text.chars().peekable());
    while let Some(c) = characters.next() {
        match c {
            '"' if is_quoted && characters.peek() == Some(&'"') => field.extend(characters.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut field)),
            '\r' if !is_quoted && characters.peek() == Some(&'\n') => {
                characters.next();
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    assert!(row.is_empty() && field.is_empty(), "the last line has an end");
    rows
}

#[test]
fn csv_has_the_numbers_of_the_document_to_the_last_bit() {
    let settings = Settings {
        sample_groups: vec![("other".to_owned(), vec!["wjets".to_owned(), "fake*".to_owned()])],
        ..Settings::default()
    };
    let document = yields(&example("shapes"), &settings);
    let rows = parse_csv(&table(&document, "yields").text(TableFormat::Csv));
    let header = ["region", "sample", "prefit", "prefit_uncertainty", "postfit", "postfit_uncertainty"];
    assert_eq!(rows[0], header);
    let mut n_compared = 0;
    for channel in document["channels"].as_array().expect("channels") {
        for (stage, first) in [("prefit", 2), ("postfit", 4)] {
            let group = &channel[stage]["groups"][0];
            let total = &channel[stage]["total"];
            for (name, part) in [("other", group), ("total", total)] {
                let is_it = |row: &&Vec<String>| row[0] == channel["channel"] && row[1] == name;
                let row = rows.iter().find(is_it).expect("a row");
                let found = [&row[first], &row[first + 1]].map(|text| text.parse::<f64>().expect("a number"));
                assert_eq!(json!(found), json!([part["sum"], part["sum_uncertainty"]]));
                n_compared += 1;
            }
        }
    }
    assert_eq!(n_compared, 8);
    assert!(rows.iter().all(|row| row.len() == 6 && row[1] != "wjets"), "a group replaces its samples");
}

#[test]
fn hidden_data_are_in_no_table() {
    let blind = Blinding { bins: vec!["signal_region[2:]".to_owned()], ..Blinding::default() };
    let model = example("shapes");
    let document = yields(&model, &Settings { blind, ..Settings::default() });
    // The counts of the hidden bins, and of the region.
    let data = yields(&model, &Settings::default())["channels"][1]["data"].clone();
    let data: Vec<f64> =
        data.as_array().expect("counts").iter().map(|count| count.as_f64().expect("a count")).collect();
    let secrets = [data[2], data[3], data.iter().sum::<f64>(), data[2] + data[3]];
    for name in ["yields", "prefit", "postfit", "bins"] {
        let rows = parse_csv(&table(&document, name).text(TableFormat::Csv));
        let counts: Vec<&str> =
            rows.iter().filter(|row| row.contains(&"data".to_owned())).flatten().map(String::as_str).collect();
        for secret in secrets {
            assert!(!counts.contains(&format!("{secret:?}").as_str()), "{name}: {secret} is in {counts:?}");
        }
    }
    let text = table(&document, "postfit").text(TableFormat::Latex);
    let data = text.lines().find(|line| line.contains("data &")).expect("a row of data");
    assert_eq!(data.trim(), r"data & \num{723} & --- \\");
}

#[test]
fn a_fit_that_did_not_converge_has_no_numbers() {
    let analysis = Analysis::new(&model(), &Settings::default()).expect("settings");
    let mut fit = analysis.fit(&FitRequest::default()).expect("a fit").document();
    let mut report = analysis.report().expect("a report").document();
    for document in [&mut fit, &mut report] {
        document["converged"] = json!(false);
    }
    report["fit"]["converged"] = json!(false);
    for format in FORMATS {
        let digits = |text: &str| text.lines().filter(|line| line.contains("xs")).any(|line| line.contains("0."));
        assert!(!digits(&table(&fit, "parameters").text(format)), "{format}");
        assert!(!digits(&table(&report, "pulls").text(format)), "{format}");
        assert!(!digits(&table(&report, "correlation").text(format)), "{format}");
    }
    let rows = parse_csv(&table(&report, "yields").text(TableFormat::Csv));
    assert!(rows[1..].iter().filter(|row| row[1] != "data").all(|row| !row[2].is_empty() && row[4].is_empty()));
    assert!(table(&fit, "parameters").text(TableFormat::Latex).contains("% NOT CONVERGED"));
}

/// Names that CSV, spreadsheets, Markdown or LaTeX would take for something else.
const HOSTILE: [&str; 9] = [
    "=cmd|' /C calc'!A0",
    "a,b \"c\"\nd",
    "x | y_z ^ 100 % & # $ { } ~ \\",
    "\\input{/etc/passwd} \\end{tabular}",
    "[3pt] *",
    "<script>alert(1)</script>",
    "μ_τ → ééß ττ̄ 中",
    "--- '' ,, `",
    "@SUM(1)\t\u{1b}[31m",
];

/// A model whose samples have hostile names.
fn hostile() -> CompiledModel {
    let sample = |(i, name): (usize, &&str)| {
        let modifier = match i {
            0 => json!({"name": "mu", "type": "normfactor", "data": null}),
            _ => json!({"name": name, "type": "normsys", "data": {"hi": 1.1, "lo": 0.9}}),
        };
        json!({"name": name, "data": [10.0 + i as f64, 5.0], "modifiers": [modifier]})
    };
    let samples: Vec<Value> = HOSTILE.iter().enumerate().map(sample).collect();
    let workspace = json!({
        "version": "1.0.0",
        "channels": [{"name": "+SR, \"x\" | y_1", "samples": samples}],
        "observations": [{"name": "+SR, \"x\" | y_1", "data": [130.0, 40.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]
    });
    CompiledModel::from_json(workspace.to_string().as_bytes(), &Default::default()).expect("a sound workspace")
}

/// Every table of a model with hostile names.
fn hostile_tables() -> Vec<Table> {
    let analysis = Analysis::new(&hostile(), &Settings::default()).expect("settings");
    let report = analysis.report().expect("a report").document();
    let ranking = analysis.ranking(&RankingRequest::default(), &NoMonitor).expect("a ranking").document();
    let limit = analysis.limit(&LimitRequest::default()).expect("limits").document();
    let of_report = ["parameters", "pulls", "correlation", "yields", "prefit", "postfit", "bins"];
    let mut tables: Vec<Table> = of_report.iter().map(|name| table(&report, name)).collect();
    tables.extend([table(&ranking, "ranking"), table(&ranking, "breakdown"), table(&limit, "limits")]);
    tables
}

#[test]
fn hostile_names_break_no_table() {
    for table in hostile_tables() {
        let rows = parse_csv(&table.text(TableFormat::Csv));
        assert_eq!(rows.len(), table.rows.len() + 1, "{}", table.name);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{}", table.name);
        let is_number = |field: &str| field.parse::<f64>().is_ok();
        for field in rows.iter().flatten().filter(|field| !is_number(field)) {
            assert!(!field.starts_with(['=', '+', '-', '@', '\t', '\r']), "a formula: {field:?}");
            assert!(!field.contains('\u{1b}'));
        }
        let markdown = table.text(TableFormat::Markdown);
        let lines: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(lines.len(), table.rows.len() + 2, "{markdown}");
        for line in lines {
            let n_pipes = line.replace("\\\\", "").replace("\\|", "").matches('|').count();
            assert_eq!(n_pipes, table.columns.len() + 1, "{line}");
            assert!(!line.replace("\\<", "").contains('<'), "{line}");
        }
    }
    // A name with everything that needs quotes is read back as it was.
    let analysis = Analysis::new(&hostile(), &Settings::default()).expect("settings");
    let fit = analysis.fit(&FitRequest::default()).expect("a fit").document();
    let names: Vec<String> =
        parse_csv(&table(&fit, "parameters").text(TableFormat::Csv)).into_iter().map(|row| row[0].clone()).collect();
    for name in &HOSTILE[1..7] {
        let wanted = if name.starts_with('=') { format!("'{name}") } else { (*name).to_owned() };
        assert!(names.contains(&wanted), "{wanted:?} is not in {names:?}");
    }
}

/// Compiles tables with LaTeX, and returns its log.
fn compiled(tables: &[Table], name: &str) -> String {
    let bodies: String = tables.iter().map(|table| table.text(TableFormat::Latex)).collect();
    let preamble = "\\documentclass{article}\n\\usepackage{booktabs,graphicx,siunitx}\n";
    let text = format!("{preamble}\\begin{{document}}\n{bodies}\\end{{document}}\n");
    let folder = std::env::temp_dir().join(format!("nextstat-latex-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    std::fs::write(folder.join("tables.tex"), &text).expect("a file");
    let output = Command::new("pdflatex")
        .args(["-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"])
        .current_dir(&folder)
        .output()
        .expect("pdflatex is installed");
    let log = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}\n{text}", &log[log.len().saturating_sub(2000)..]);
    assert!(folder.join("tables.pdf").is_file());
    std::fs::remove_dir_all(folder).expect("the folder was made here");
    log
}

#[test]
#[ignore = "needs pdflatex with booktabs, graphicx and siunitx"]
fn pdflatex_compiles_every_table() {
    let mut tables = hostile_tables();
    let patches = |value: f64| json!({"patch": "a_1", "values": {"m_χ": value, "model": "T2$"}, "error": "100% wrong_\n\\undefined"});
    let limit = Analysis::new(&model(), &Settings::default()).expect("settings").limit(&LimitRequest::default());
    let result = limit.expect("limits").result_document();
    let done = json!({"patch": "b", "values": {"m_χ": 2.0, "model": "T2"}, "result": result});
    let grid = json!({"$schema": "urn:nextstat:schema:every-patch:1", "patches": [patches(1.0), done]});
    tables.push(table(&grid, "limits"));
    let log = compiled(&tables, "every");
    // Something is set for every character.
    assert!(!log.contains("Missing character"), "{log}");
}

/// Yields of eight regions, and long names of parameters.
#[test]
#[ignore = "needs pdflatex with booktabs, graphicx and siunitx"]
fn pdflatex_sets_tables_no_wider_than_the_line() {
    let mut workspace: Value =
        serde_json::from_slice(include_bytes!("../../../../examples/shapes.json")).expect("JSON");
    for part in ["channels", "observations"] {
        let parts = workspace[part].as_array_mut().expect("a list");
        let original = parts[0].clone();
        parts.extend((0..6).map(|i| {
            let mut copy = original.clone();
            copy["name"] = json!(format!("validation_region_{i}"));
            for sample in copy.get_mut("samples").and_then(Value::as_array_mut).into_iter().flatten() {
                sample["modifiers"] = json!([]);
            }
            copy
        }));
    }
    let text = workspace.to_string().replace("theory_ttbar", "ATLAS_theory_ttbar_matching_and_parton_shower_combined");
    let model = CompiledModel::from_json(text.as_bytes(), &Default::default()).expect("a model");
    let analysis = Analysis::new(&model, &Settings::default()).expect("settings");
    let report = analysis.report().expect("a report").document();
    let ranking = analysis.ranking(&RankingRequest::default(), &NoMonitor).expect("a ranking").document();
    let limit = analysis.limit(&LimitRequest::default()).expect("limits").document();
    let of_report = ["parameters", "correlation", "postfit"].map(|name| table(&report, name));
    let tables = [&of_report[..], &[table(&ranking, "ranking"), table(&limit, "limits")]].concat();
    let log = compiled(&tables, "wide");
    assert!(!log.contains("Overfull \\hbox"), "{log}");
}

/// The reference is the text of the rule applied by hand to the numbers of the document.
#[test]
fn latex_rounds_by_the_rule_of_the_particle_data_group() {
    let fit = json!({
        "$schema": "urn:nextstat:schema:fit:1", "mle_parameters": {}, "converged": true,
        "par_names": ["a", "b", "c", "d", "e"],
        "bestfit": [0.827, 0.827, 1234.5, 1.5e-9, 3.0],
        "uncertainties": [0.119, 0.367, 96.0, 2.5e-10, null],
        "minos": [{"parameter": "a", "cl": 0.682_689_492_137_085_9, "bestfit": 0.827, "down": -0.112, "up": 0.4}],
    });
    let table = Table::of(&fit, &TableRequest::default()).expect("a table");
    let text = table.text(TableFormat::Latex);
    let cells: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_suffix(" \\\\")).skip(1).collect();
    assert_eq!(
        cells,
        [
            r"a & $\num{0.83} \pm \num{0.12}$ & $\num{0.83}^{+\num{0.40}}_{-\num{0.11}}$",
            r"b & $\num{0.8} \pm \num{0.4}$ & ---",
            r"c & $\num{1230} \pm \num{100}$ & ---",
            r"d & $(\num{1.50} \pm \num{0.25}) \times 10^{-9}$ & ---",
            r"e & \num{3} & ---",
        ]
    );
}

#[test]
fn rows_are_chosen_by_name_and_by_pattern() {
    let analysis = Analysis::new(&example("shapes"), &Settings::default()).expect("settings");
    let report = analysis.report().expect("a report").document();
    let request = TableRequest { rows: vec!["mu".to_owned(), "theory_*".to_owned()], ..named("correlation") };
    let chosen = Table::of(&report, &request).expect("a table");
    let names: Vec<&str> = chosen.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["parameter", "mu", "theory_ttbar", "theory_wjets", "theory_signal"]);
    assert_eq!(chosen.rows.len(), 4);
    let request = TableRequest { rows: vec!["theory_tbar".to_owned()], ..named("parameters") };
    let error = Table::of(&report, &request).expect_err("no such row");
    assert_eq!(error.hint(nextstat::Face::Command).as_deref(), Some("did you mean `theory_ttbar`?"));
}

#[test]
fn a_damaged_document_is_an_error_with_its_place() {
    let analysis = Analysis::new(&example("shapes"), &Settings::default()).expect("settings");
    let sound = analysis.report().expect("a report").document();
    let cases = [
        ("/fit/par_names/0", json!(1), "at /fit/par_names/0: expected text, found `1`"),
        ("/fit/bestfit", json!([1.0]), "at /fit/bestfit: expected a list of 18, found `[1.0]`"),
        ("/fit/uncertainties/3", json!("x"), "at /fit/uncertainties/3: expected a number, found `\"x\"`"),
        ("/fit/bestfit", Value::Null, "at /fit/bestfit: expected a value, found `null`"),
    ];
    for (pointer, value, wanted) in cases {
        let mut document = sound.clone();
        *document.pointer_mut(pointer).expect("a value") = value;
        let error = Table::of(&document, &TableRequest::default()).expect_err(pointer);
        assert_eq!(error.to_string(), wanted);
    }
    let message = |text: &str| Table::from_json(text.as_bytes(), &TableRequest::default()).expect_err(text).to_string();
    assert!(message("{").starts_with("the document is not JSON"));
    assert_eq!(message("{}"), "the document is not a result of nextstat: it has no `$schema`");
    assert_eq!(message(r#"{"$schema": "urn:nextstat:schema:check:1"}"#), "a result of `check` has no tables");
    let error = Table::of(&sound, &named("yield")).expect_err("no such table");
    assert!(matches!(&error, TableError::NoSuchTable { .. }));
    assert_eq!(error.hint(nextstat::Face::Command).as_deref(), Some("did you mean `yields`?"));
}

/// No part of a document may cause a panic, whatever it is replaced by.
#[test]
fn any_damage_of_a_document_is_survived() {
    let analysis = Analysis::new(&model(), &Settings::default()).expect("settings");
    let documents = [
        (analysis.report().expect("a report").document(), &["parameters", "correlation", "yields", "bins"][..]),
        (analysis.limit(&LimitRequest::default()).expect("limits").document(), &["limits"]),
        (
            analysis.ranking(&RankingRequest::default(), &NoMonitor).expect("a ranking").document(),
            &["ranking", "groups", "breakdown"],
        ),
        (goodness(&analysis), &["goodness"]),
        (grid(), &["scan", "contours"]),
        (toy_test(), &["tests", "p_values"]),
        (data_sets(), &["parameters", "data_sets", "correlation"]),
        (plane(), &["points", "contours"]),
    ];
    fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
        found.push(at.to_owned());
        match value {
            Value::Array(items) => items.iter().enumerate().for_each(|(i, v)| pointers(v, &format!("{at}/{i}"), found)),
            Value::Object(members) => members.iter().for_each(|(k, v)| pointers(v, &format!("{at}/{k}"), found)),
            _ => {}
        }
    }
    let mut n_errors = 0;
    for (document, names) in &documents {
        let mut all = Vec::new();
        pointers(document, "", &mut all);
        for pointer in &all {
            for value in [Value::Null, json!([]), json!({}), json!("x"), json!(-1e300)] {
                let mut damaged = document.clone();
                let Some(place) = damaged.pointer_mut(pointer) else { continue };
                *place = value;
                for name in *names {
                    match Table::of(&damaged, &named(name)) {
                        Ok(table) => FORMATS.iter().for_each(|format| drop(table.text(*format))),
                        Err(_) => n_errors += 1,
                    }
                }
            }
        }
    }
    assert!(n_errors > 100, "{n_errors}");
}

/// cabinetry 0.6 (testdata/cabinetry/yields.json) has the uncertainties; its tables round them,
/// ours in CSV do not.
#[test]
fn yields_agree_with_cabinetry() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(folder.join(name)).expect("in the repository")).expect("JSON")
    };
    let (theirs, workspaces) = (read("cabinetry/yields.json"), read("pyhf/cases.json"));
    let mut n_compared = 0;
    for case in theirs["cases"].as_array().expect("cases").iter().filter(|case| case["setting"] != "code1_code0") {
        let text = workspaces["cases"][case["case"].as_u64().expect("a number") as usize]["workspace"].to_string();
        let model = CompiledModel::from_json(text.as_bytes(), &Default::default()).expect("valid");
        let document = yields(&model, &Settings::default());
        let rows = parse_csv(&table(&document, "yields").text(TableFormat::Csv));
        let samples: Vec<&Value> = case["samples"].as_array().expect("names").iter().collect();
        for (c, channel) in document["channels"].as_array().expect("channels").iter().enumerate() {
            for row in rows.iter().filter(|row| channel["channel"] == row[0].as_str() && row[1] != "data") {
                let place = samples.iter().position(|name| **name == row[1].as_str()).unwrap_or(samples.len());
                for (stage, column) in [("prefit", 3), ("postfit", 5)] {
                    let ours: f64 = row[column].parse().expect("a number");
                    let theirs = case[stage]["sums"][c][place].as_f64().expect("a number");
                    // The error of cabinetry's finite variations.
                    assert!((ours - theirs).abs() < 2e-9 * theirs.abs().max(1.0), "{ours} and {theirs}");
                    n_compared += 1;
                }
            }
        }
    }
    assert!(n_compared > 100, "{n_compared}");
}

fn known(error: TableError) -> Vec<&'static str> {
    let TableError::NoSuchTable { known, .. } = error else { panic!("{error}") };
    known
}

#[test]
fn tables_are_refused_before_the_work_by_the_names_that_documents_have() {
    let analysis = Analysis::new(&model(), &Settings::default()).expect("settings");
    let axis = AxisRequest { parameter: None, values: ScanValues::Automatic(5) };
    let scan = ScanRequest { axes: vec![axis], ..ScanRequest::default() };
    let documents = [
        analysis.fit(&FitRequest::default()).expect("a fit").document(),
        analysis.report().expect("a report").document(),
        analysis.yields().expect("yields").document(),
        analysis.ranking(&RankingRequest::default(), &NoMonitor).expect("a ranking").document(),
        analysis.limit(&LimitRequest::default()).expect("a limit").document(),
        analysis.scan(&scan, &NoMonitor).expect("a scan").document(),
    ];
    for document in documents {
        let kind = document["$schema"].as_str().and_then(|urn| urn.split(':').nth(3)).expect("a schema").to_owned();
        let late = known(Table::of(&document, &named("nothing")).expect_err("no such table"));
        let early = known(Table::require(&kind, "nothing").expect_err("no such table"));
        assert!(late.iter().all(|name| early.contains(name)), "{kind}: {late:?} and {early:?}");
        assert_eq!(early[0], late[0], "{kind}");
    }
    // Results without tables, and those that are not known, are refused when they are there.
    assert_eq!(Table::require("check", "nothing"), Ok(()));
}
