//! The command and the Python program that give the same numbers as a question.

use std::fmt::Write;

use serde::Serialize;
use serde_json::json;

use crate::question::{OpenRequest, Question, QuestionSettings, SCAN_POINTS};

/// How to get an answer without a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reproduction {
    /// A command line for a POSIX shell.
    pub command: String,
    /// Lines of Python.
    pub python: String,
}

/// Returns the command and the Python program that give the answer to `question` about a model with
/// a parameter of interest, or without one.
#[must_use]
pub fn reproduce(
    opened: &OpenRequest,
    has_poi: bool,
    question: &Question,
    settings: &QuestionSettings,
) -> Reproduction {
    let asked = Asked { opened, has_poi, question, settings };
    Reproduction { command: asked.command(), python: asked.python() }
}

/// A question and what it is about.
struct Asked<'a> {
    opened: &'a OpenRequest,
    has_poi: bool,
    question: &'a Question,
    settings: &'a QuestionSettings,
}

/// What the interfaces call a question: the command's verb, the function in Python, and the options
/// that both have.
struct Spelling {
    verb: &'static str,
    function: &'static str,
    /// Options of the command, and arguments in Python.
    options: Vec<(String, String)>,
}

fn spelling(question: &Question) -> Spelling {
    let plain = |verb, function| Spelling { verb, function, options: Vec::new() };
    let tested = |mu: &Option<f64>| mu.map(|mu| (format!("--mu={mu}"), format!("mu={mu:?}")));
    match question {
        Question::Inspect {} | Question::Tree {} | Question::Parameters {} => plain("inspect", "inspect"),
        Question::Overview {} | Question::Conditional {} | Question::Report {} => plain("report", "report"),
        Question::Fit {} => plain("fit", "fit"),
        Question::Ranking {} => plain("ranking", "ranking"),
        Question::Limit {} => plain("limit", "upper_limit"),
        Question::Significance {} => plain("significance", "significance"),
        Question::Hypotest { mu, .. } => {
            Spelling { options: tested(mu).into_iter().collect(), ..plain("hypotest", "hypotest") }
        }
        Question::HypotestToys { mu, n_toys, seed } => {
            let n_toys = n_toys.map(|n| (format!("--n-toys={n}"), format!("n_toys={n}")));
            let seed = seed.map(|seed| (format!("--seed={seed}"), format!("seed={seed}")));
            let options = tested(mu).into_iter().chain(n_toys).chain(seed).collect();
            Spelling { options, ..plain("hypotest-toys", "hypotest_toys") }
        }
        Question::Scan { parameter, points, range } => {
            let named = |name: &String| (format!("--parameter={}", shell(name)), format!("parameter={}", quoted(name)));
            let n_points = points.unwrap_or(SCAN_POINTS);
            let values = match range {
                None => (format!("--points={n_points}"), format!("points={n_points}")),
                Some([low, high]) => (
                    format!("--start={low} --stop={high} --points={n_points}"),
                    format!("mu_values=numpy.linspace({low:?}, {high:?}, {n_points})"),
                ),
            };
            let options = parameter.iter().map(named).chain([values]).collect();
            Spelling { options, ..plain("scan", "profile_scan") }
        }
    }
}

impl Asked<'_> {
    fn command(&self) -> String {
        let Self { opened, has_poi, question, settings } = *self;
        let Spelling { verb, options, .. } = spelling(question);
        // A name that begins as an option does is a file all the same behind its folder.
        let folder = if opened.workspace.starts_with('-') { "./" } else { "" };
        let workspace = shell(&format!("{folder}{}", opened.workspace));
        let mut words = vec!["nextstat".to_owned(), verb.to_owned(), workspace];
        let mut option = |name: &str, value: &str| words.push(format!("--{name}={}", shell(value)));
        if let Some(choice) = &opened.patchset {
            option("patchset", &choice.file);
            option("patch-name", &choice.patch);
        }
        opened.patches.iter().for_each(|patch| option("patch", patch));
        opened.measurement.iter().for_each(|name| option("measurement", name));
        opened.mass.iter().for_each(|mass| option("mass", &mass.to_string()));
        if verb != "inspect" {
            let none = (!has_poi).then_some("none");
            settings.poi.as_deref().or(none).iter().for_each(|name| option("poi", name));
            settings.asimov.iter().for_each(|mu| option("asimov", &mu.to_string()));
            settings.fixed.iter().for_each(|(name, value)| option("fix", &format!("{name}={value}")));
            settings.bounds.iter().for_each(|(name, [low, high])| option("bounds", &format!("{name}={low}:{high}")));
            settings.mask.iter().for_each(|bins| option("mask", bins));
        }
        words.extend(options.into_iter().map(|(option, _)| option));
        words.join(" ")
    }

    fn python(&self) -> String {
        let Self { opened, has_poi, question, settings } = *self;
        let Spelling { function, options, .. } = spelling(question);
        let mut model = vec![quoted(&opened.workspace)];
        if let Some(choice) = &opened.patchset {
            model.push(format!("patchset={}", quoted(&choice.file)));
            model.push(format!("patch_name={}", quoted(&choice.patch)));
        }
        if !opened.patches.is_empty() {
            model.push(format!("patches={}", json!(opened.patches)));
        }
        model.extend(opened.measurement.iter().map(|name| format!("measurement={}", quoted(name))));
        model.extend(opened.mass.iter().map(|mass| format!("mass={mass:?}")));
        let mut arguments = vec!["model".to_owned()];
        let mut lines = String::from("import nextstat\n");
        if options.iter().any(|(_, argument)| argument.contains("numpy.")) {
            lines.insert_str(0, "import numpy\n");
        }
        if function == "inspect" {
            let _ = write!(
                lines,
                "\nmodel = nextstat.load_workspace({})\nprint(model.channels, model.par_names)\n",
                model.join(", ")
            );
            return lines;
        }
        match &settings.poi {
            Some(name) => model.push(format!("poi={}", quoted(name))),
            None if !has_poi => model.push("poi=\"none\"".to_owned()),
            None => {}
        }
        let _ = write!(lines, "\nmodel = nextstat.load_workspace({})\n", model.join(", "));
        if let Some(mu) = settings.asimov {
            let _ = writeln!(lines, "data = nextstat.asimov_data(model, {{model.poi: {mu:?}}})");
            arguments.push("data=data".to_owned());
        }
        let entries = |fields: Vec<String>| fields.join(", ");
        if !settings.fixed.is_empty() {
            let fields = settings.fixed.iter().map(|(name, value)| format!("{}: {value:?}", quoted(name)));
            arguments.push(format!("fixed={{{}}}", entries(fields.collect())));
        }
        if !settings.bounds.is_empty() {
            let field = |(name, [low, high]): (&String, &[f64; 2])| format!("{}: ({low:?}, {high:?})", quoted(name));
            arguments.push(format!("bounds={{{}}}", entries(settings.bounds.iter().map(field).collect())));
        }
        if !settings.mask.is_empty() {
            arguments.push(format!("mask={}", json!(settings.mask)));
        }
        arguments.extend(options.into_iter().map(|(_, argument)| argument));
        let _ = write!(lines, "result = nextstat.{function}({})\nprint(result)\n", arguments.join(", "));
        lines
    }
}

/// Returns `word` as a POSIX shell reads it as one.
fn shell(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns `text` as Python and JSON write it.
fn quoted(text: &str) -> String {
    json!(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::PatchChoice;

    fn opened() -> OpenRequest {
        OpenRequest {
            workspace: "a b.json".to_owned(),
            patchset: None,
            patches: Vec::new(),
            measurement: None,
            mass: None,
        }
    }

    #[test]
    fn settings_and_options_are_spelled_out() {
        let settings = QuestionSettings {
            poi: Some("mu_ggH".to_owned()),
            asimov: Some(0.5),
            fixed: [("it's".to_owned(), -1.5)].into(),
            bounds: [("lumi".to_owned(), [0.0, 2.0])].into(),
            mask: vec!["SR[2:5]".to_owned()],
        };
        let choice = PatchChoice { file: "set.json".to_owned(), patch: "C1 900".to_owned() };
        let opened = OpenRequest { patchset: Some(choice), ..opened() };
        let question = Question::Scan { parameter: None, points: Some(5), range: Some([-1.0, 2.0]) };
        let Reproduction { command, python } = reproduce(&opened, true, &question, &settings);
        assert_eq!(
            command,
            "nextstat scan 'a b.json' --patchset=set.json --patch-name='C1 900' --poi=mu_ggH --asimov=0.5 \
             --fix='it'\\''s=-1.5' --bounds=lumi=0:2 --mask='SR[2:5]' --start=-1 --stop=2 --points=5"
        );
        let expected = r#"import numpy
import nextstat

model = nextstat.load_workspace("a b.json", patchset="set.json", patch_name="C1 900", poi="mu_ggH")
data = nextstat.asimov_data(model, {model.poi: 0.5})
result = nextstat.profile_scan(model, data=data, fixed={"it's": -1.5}, bounds={"lumi": (0.0, 2.0)}, mask=["SR[2:5]"], mu_values=numpy.linspace(-1.0, 2.0, 5))
print(result)
"#;
        assert_eq!(python, expected);
    }

    #[test]
    fn a_plain_fit_is_short() {
        let Reproduction { command, python } =
            reproduce(&opened(), true, &Question::Fit {}, &QuestionSettings::default());
        assert_eq!(command, "nextstat fit 'a b.json'");
        let card = OpenRequest { workspace: "-x.txt".to_owned(), mass: Some(125.5), ..opened() };
        let Reproduction { command, .. } = reproduce(&card, true, &Question::Fit {}, &QuestionSettings::default());
        assert_eq!(command, "nextstat fit ./-x.txt --mass=125.5");
        assert_eq!(
            python,
            "import nextstat\n\nmodel = nextstat.load_workspace(\"a b.json\")\nresult = nextstat.fit(model)\nprint(result)\n"
        );
    }
}
