//! Data cards of Combine and Combine's flags: cards that are joined, parameters of interest,
//! groups, frozen parameters, and what is said of mistakes.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Run, folder as folder_of, is_valid, nextstat};

/// Two productions in two channels, with groups of uncertainties.
const TWO_SIGNALS: &str = "\
imax 2\njmax 2\nkmax *\n\
bin incl dijet\nobservation 166 8\n\
bin incl incl incl dijet dijet dijet\n\
process ggH_hgg qqH_hgg bkg ggH_hgg qqH_hgg bkg\n\
process -1 0 1 -1 0 1\n\
rate 21 1.6 140 0.4 0.95 3.2\n\
QCDscale lnN 1.12 - - 1.12 - -\n\
pdf_gg lnN 1.08 - - 1.08 - -\n\
bg_incl lnN - - 1.05 - - -\n\
theory group = QCDscale pdf_gg\n\
exp group = bg_incl\n";

/// Lines for parameters without a Gaussian term.
const FREE: &str = "bg_shape lnU - - - - - 1.3\nextra rateParam dijet bkg 1 [0,5]\n";

/// A control region, which has no signal.
const CONTROL: &str =
    "imax 1\njmax 0\nkmax *\nbin cr\nobservation 100\nbin cr\nprocess bkg\nprocess 1\nrate 95\nbg_incl lnN 1.05\n";

/// A signal without events.
const NO_EVENTS: &str =
    "imax 1\njmax 1\nkmax *\nbin a\nobservation 5\nbin a a\nprocess S B\nprocess 0 1\nrate 0 4\nbg lnN - 1.2\n";

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let free = TWO_SIGNALS.to_owned() + FREE;
    for (name, text) in [("two.txt", TWO_SIGNALS), ("free.txt", &free), ("cr.txt", CONTROL), ("none.txt", NO_EVENTS)] {
        fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

fn run(arguments: &[&str]) -> Run {
    nextstat(folder().path(), arguments)
}

/// Options of a model with one strength for each production.
const MAPS: [&str; 6] =
    ["-P", "multiSignalModel", "--PO", "map=.*/ggH.*:r_ggH[1,0,10]", "--PO", "map=.*/qqH.*:r_qqH[1,0,20]"];

/// The fixed values of a result.
fn fixed(document: &Value) -> Value {
    document["provenance"]["settings"]["fixed"].clone()
}

#[test]
fn joined_cards_have_a_report() {
    let folder = folder();
    let arguments = ["combine", "sr=two.txt", "cr.txt", "-m", "125", "-o", "both.json", "--report", "report.json"];
    let made = nextstat(folder.path(), &arguments);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.path().join(name)).expect("written")).expect("JSON")
    };
    let report = read("report.json");
    assert!(is_valid(&report));
    assert_eq!(report["analyses"][0]["channels"], json!(["sr_incl", "sr_dijet"]));
    assert_eq!(report["analyses"][1]["channels"], json!(["ch2"]));
    assert_eq!(report["provenance"]["card"], json!({"mass": 125.0}));
    let shared =
        report["parameters"].as_array().expect("a list").iter().filter(|found| found["correlated_by"] == "name");
    assert_eq!(shared.map(|found| found["parameter"].clone()).collect::<Vec<_>>(), ["bg_incl"]);
    assert_eq!(nextstat(folder.path(), &["fit", "both.json"]).code, Some(0));
}

#[test]
fn arguments_that_cards_cannot_have_are_refused_by_name() {
    for (arguments, said) in [
        (&["--join", "outer"][..], "error: `--join` is for other workspaces: data cards are joined in one way only"),
        (&["--merge-channels"], "error: `--merge-channels` is for other workspaces"),
        (&["nope.txt"], "error: cannot read `nope.txt`"),
        (&["x=nope.txt"], "error: cannot read `nope.txt`"),
        (&["1=cr.txt"], "error: `1` cannot be the label of a card\nhint: names of channels begin with it"),
        (&["=cr.txt"], "error: `` cannot be the label of a card"),
        (&["both.json"], "error: `both.json` is not a data card of Combine, and another document is one"),
    ] {
        let folder = folder();
        let made = nextstat(folder.path(), &["combine", "a=two.txt", "b=cr.txt", "-o", "both.json"]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        let refused = nextstat(folder.path(), &[&["combine", "two.txt", "cr.txt"], arguments].concat());
        assert_eq!(refused.code, Some(2), "{arguments:?}");
        assert!(refused.stderr.starts_with(said), "{arguments:?}: {}", refused.stderr);
    }
}

#[test]
fn a_map_combines_cards_as_workspaces() {
    let folder = folder();
    fs::write(folder.path().join("map.yml"), "measurement: both\npoi: r\nsame_names: decorrelate\n").expect("written");
    let other = TWO_SIGNALS.replace("incl", "other").replace("dijet", "rest");
    fs::write(folder.path().join("other.txt"), other).expect("written");
    let arguments = ["combine", "A=two.txt", "B=other.txt", "--map", "map.yml", "-m", "125"];
    let made = nextstat(folder.path(), &arguments);
    assert_eq!(made.code, Some(2), "the parameter of interest is split: {}", made.stderr);
    fs::write(folder.path().join("map.yml"), "measurement: both\npoi: r\n").expect("written");
    let made = nextstat(folder.path(), &arguments);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert_eq!(made.document()["channels"].as_array().expect("a list").len(), 4);
    assert_eq!(made.document()["measurements"][0]["name"], "both");
}

#[test]
fn every_strength_of_a_physics_model_is_of_interest() {
    let fit = run(&[&["fit", "two.txt", "-m", "125"][..], &MAPS].concat()).document();
    assert_eq!(fit["provenance"]["pois"], json!(["r_ggH", "r_qqH"]));
    assert_eq!(fit["pois"].as_array().expect("a list").len(), 2);
    let limits = run(&[&["limit", "two.txt"][..], &MAPS].concat()).document();
    let names = limits["results"].as_array().expect("a list").iter().map(|result| result["poi"]["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["r_ggH", "r_qqH"]);
    let one = run(&[&["limit", "two.txt", "--poi", "r_qqH"][..], &MAPS].concat()).document();
    assert_eq!(one["poi"]["name"], "r_qqH");
    let production = ["-P", "floatingXSHiggs", "--PO", "modes=qqH,ggH"];
    let fit = run(&[&["fit", "two.txt", "-m", "125"][..], &production].concat()).document();
    assert_eq!(fit["provenance"]["pois"], json!(["r_qqH", "r_ggH"]));
    let card = &fit["provenance"]["workspace"]["card"];
    assert_eq!(*card, json!({"mass": 125.0, "physics_model": "floatingXSHiggs", "model_options": ["modes=qqH,ggH"]}));
}

#[test]
fn rewritten_workspaces_keep_parameters_of_interest_and_groups() {
    let folder = folder();
    let sorted = nextstat(folder.path(), &[&["sort", "two.txt", "-o", "two.json"][..], &MAPS].concat());
    assert_eq!(sorted.code, Some(0), "{}", sorted.stderr);
    let renamed = ["rename", "two.json", "-m", "r_qqH", "mu", "-m", "pdf_gg", "pdf", "-o", "renamed.json"];
    assert_eq!(nextstat(folder.path(), &renamed).code, Some(0));
    let ranking = nextstat(folder.path(), &["ranking", "renamed.json", "--method", "covariance"]).document();
    assert_eq!(ranking["provenance"]["pois"], json!(["r_ggH", "mu"]));
    let groups = &ranking["results"][0]["groups"];
    assert_eq!(
        groups[0],
        json!({"group": "theory", "members": ["QCDscale", "pdf"], "frozen": groups[0]["frozen"], "global": groups[0]["global"]})
    );
}

#[test]
fn groups_of_a_card_are_ranked() {
    let names = |run: &Run| -> Vec<Value> {
        run.document()["groups"].as_array().expect("a list").iter().map(|group| group["group"].clone()).collect()
    };
    assert_eq!(names(&run(&["ranking", "two.txt"])), ["theory", "exp"]);
    assert_eq!(names(&run(&["ranking", "two.txt", "--group", "exp", "--group", "all=*"])), ["exp", "all"]);
    let refused = run(&["ranking", "two.txt", "--group", "experiment"]);
    assert_eq!(refused.code, Some(2));
    assert_eq!(refused.stderr, "error: the measurement has no group `experiment`\nhint: it has `theory`, `exp`\n");
}

#[test]
fn frozen_parameters_are_those_of_combine() {
    let of = |list: &str| fixed(&run(&["fit", "free.txt", "--freezeParameters", list]).document());
    assert_eq!(of("pdf_gg,extra"), json!({"extra": 1.0, "pdf_gg": 0.0}));
    assert_eq!(of("allConstrainedNuisances"), json!({"QCDscale": 0.0, "bg_incl": 0.0, "bg_shape": 0.0, "pdf_gg": 0.0}));
    assert_eq!(of("rgx{bg_.*},pdf_gg"), json!({"bg_incl": 0.0, "bg_shape": 0.0, "pdf_gg": 0.0}));
    assert_eq!(of("var{ex.{1,3}a}"), json!({"extra": 1.0}));
    let set = ["--setParameters", "pdf_gg=1,extra=2", "--freezeParameters", "rgx{.*},extra", "--fix", "bg_incl=0.5"];
    let fit = run(&[&["fit", "free.txt"][..], &set].concat()).document();
    assert_eq!(fixed(&fit), json!({"QCDscale": 0.0, "bg_incl": 0.5, "bg_shape": 0.0, "extra": 2.0, "pdf_gg": 1.0}));
}

#[test]
fn names_that_the_model_does_not_have_are_errors_of_their_flag() {
    for (arguments, said) in [
        (["--freezeParameters", "pdf_qg"], "error: `--freezeParameters` names the parameter `pdf_qg`"),
        (["--setParameters", "pdf_qg=1"], "error: `--setParameters` names the parameter `pdf_qg`"),
        (["--setParameters", "mask_SR=1"], "error: `--setParameters` names the channel `SR`"),
        (["--setParameterRanges", "R=0,1"], "error: `--setParameterRanges` names the parameter `R`"),
        (["--setParameterRanges", "r=1:2"], "error: invalid value 'r=1' for '--setParameterRanges"),
        (["--freezeParameters", "rgx{(}"], "error: invalid value 'rgx{(}' for '--freezeParameters"),
    ] {
        let refused = run(&[&["fit", "two.txt"][..], &arguments].concat());
        assert_eq!(refused.code, Some(2), "{arguments:?}");
        assert!(refused.stderr.starts_with(said), "{arguments:?}: {}", refused.stderr);
    }
}

#[test]
fn expected_data_have_the_values_of_set_parameters() {
    let asimov = |arguments: &[&str]| {
        let fit = run(&[&["fit", "two.txt", "-t", "-1"][..], arguments].concat());
        assert_eq!(fit.code, Some(0), "{}", fit.stderr);
        fit.document()["provenance"]["data"]["parameters"].clone()
    };
    assert_eq!(asimov(&[]), json!({"r": 0.0}));
    assert_eq!(asimov(&["--setParameters", "r=2"]), json!({"r": 2.0}));
    // A frozen parameter has its value in the data, too.
    let frozen = ["--expectSignal", "1", "--setParameters", "pdf_gg=1", "--freezeParameters", "pdf_gg"];
    assert_eq!(asimov(&frozen), json!({"pdf_gg": 1.0, "r": 1.0}));
    // Of several strengths, those that are not set are 0.
    let of_two = |arguments: &[&str]| asimov(&[&MAPS[..], arguments].concat());
    assert_eq!(of_two(&[]), json!({"r_ggH": 0.0, "r_qqH": 0.0}));
    assert_eq!(of_two(&["--setParameters", "r_qqH=2"]), json!({"r_ggH": 0.0, "r_qqH": 2.0}));
    assert_eq!(of_two(&["--setParameters", "pdf_gg=1"]), json!({"pdf_gg": 1.0, "r_ggH": 0.0, "r_qqH": 0.0}));
    assert_eq!(of_two(&["--setParameters", "r_ggH=1,r_qqH=2"]), json!({"r_ggH": 1.0, "r_qqH": 2.0}));
    let both = ["--expectSignal", "1", "--setParameters", "r=2"];
    assert_eq!(asimov(&both), json!({"r": 1.0}));
    let refused = run(&[&["fit", "two.txt", "-t", "-1", "--expectSignal", "1"][..], &MAPS].concat());
    assert!(refused.stderr.starts_with("error: `--expectSignal` is one signal strength"), "{}", refused.stderr);
}

#[test]
fn ranges_are_those_of_combine() {
    let fit = run(&["fit", "two.txt", "--setParameterRanges", "r=-5,5:bg_incl=-2,2"]).document();
    assert_eq!(fit["provenance"]["settings"]["bounds"], json!({"bg_incl": [-2.0, 2.0], "r": [-5.0, 5.0]}));
}

#[test]
fn two_ranges_of_a_parameter_are_refused_by_their_flags() {
    for (arguments, said) in [
        (
            &["--setParameterRanges", "r=0,5", "--rMin", "-1"][..],
            "`--setParameterRanges` and `--rMin` both set the range of `r`",
        ),
        (&["--bounds", "r=0:5", "--rMax", "9"], "`--bounds` and `--rMax` both set the range of `r`"),
        (&["--setParameterRanges", "r=0,5:r=0,9"], "`--setParameterRanges` sets the range of `r` twice"),
        (&["--bounds", "r=0:5", "--bounds", "r=0:9"], "`--bounds` sets `r` twice"),
    ] {
        let refused = run(&[&["fit", "two.txt"], arguments].concat());
        assert_eq!(refused.code, Some(2), "{arguments:?}");
        assert!(refused.stderr.starts_with(&format!("error: {said}")), "{arguments:?}: {}", refused.stderr);
    }
    // A name goes before a pattern.
    let fit = run(&["fit", "two.txt", "--bounds", "*=-5:5", "--rMin", "-1", "--rMax", "9"]).document();
    assert_eq!(fit["provenance"]["settings"]["bounds"]["r"], json!([-1.0, 9.0]));
}

#[test]
fn a_part_of_the_frozen_parameters_that_matches_nothing_is_quoted() {
    let fit = run(&["fit", "two.txt", "--freezeParameters", "pdf_gg,rgx{pdf_q.*}"]);
    assert_eq!(fit.code, Some(0), "{}", fit.stderr);
    assert!(
        fit.stderr.contains("warning: `rgx{pdf_q.*}` of `--freezeParameters` matches no parameter\n"),
        "{}",
        fit.stderr
    );
}

#[test]
fn a_signal_without_events_is_reported() {
    let checked = run(&["check", "none.txt"]);
    let findings = checked.document()["findings"].clone();
    assert_eq!(findings[0]["message"], "the measurement sets `r`, which no modifier uses", "{findings}");
}

#[test]
fn edits_that_find_nothing_are_warned_of() {
    let folder = folder();
    let card = TWO_SIGNALS.to_owned() + "nuisance edit drop * * typo\nnuisance edit changepdf typo lnU\n";
    fs::write(folder.path().join("edited.txt"), card).expect("written");
    let fit = nextstat(Path::new(folder.path()), &["fit", "edited.txt"]);
    assert!(
        fit.stderr.contains("warning: `nuisance edit drop * * typo` finds nothing at line 15, column 15"),
        "{}",
        fit.stderr
    );
    assert!(fit.stderr.contains("warning: `nuisance edit changepdf typo lnU` finds nothing"), "{}", fit.stderr);
}

/// Returns what is in backticks.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Splits a command line as a shell does, but for quotes within words.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().expect("at least one").push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn flags_of_the_page_run() {
    let page = folder_of("docs/tutorials/coming-from-combine.md");
    let page = fs::read_to_string(page).expect("the page");
    let work = tempfile::tempdir().expect("a folder");
    for card in ["counting.txt", "templates.txt", "templates.csv", "productions.txt"] {
        fs::copy(folder_of("examples/combine").join(card), work.path().join(card)).expect("copied");
    }
    let (_, table) = page.split_once("| Combine | Command | Python |\n").expect("the table");
    let mut n_run = 0;
    for row in table.lines().skip(1).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let same = if cells[1].starts_with("the same") { code(cells[0]) } else { Vec::new() };
        let verbs = ["decorrelate", "prune", "rename"];
        let others = code(cells[1]).into_iter().filter(|one| one.starts_with(['-', 'n']) && !verbs.contains(one));
        for line in same.into_iter().chain(others.filter(|line| *line != "--mass")) {
            let card = if row.contains("ggH") { "productions.txt" } else { "counting.txt" };
            let mut arguments = words(line);
            match arguments[0].as_str() {
                "nextstat" => drop(arguments.remove(0)),
                _ => drop(arguments.splice(0..0, ["fit".to_owned(), card.to_owned()])),
            }
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let run = nextstat(work.path(), &arguments);
            assert_eq!(run.code, Some(0), "{arguments:?}: {}", run.stderr);
            n_run += 1;
        }
    }
    assert_eq!(n_run, 22);
}
