//! Values that chat templates write, as CPython writes them: `str`, `repr` and `%`, compared with
//! what Jinja2 makes of the same templates (`scripts/torchless_templates.py`).

use std::path::Path;

use serde_json::Value;
use torchless::Model;
use torchless::chat::{ChatTemplate, Message};

use crate::random_model::RandomModel;
use crate::support::json;

/// Renders the templates of a document, and returns those that become something else, and how many
/// there are.
fn differing(path: &Path, name: &str) -> (Vec<String>, usize) {
    let folder = RandomModel::new("llama").drawn().write_folder(name, true, 1);
    let model = Model::open(&folder).expect("a model");
    let document = json(path);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let message = |content| Message { role: "user".into(), content: text(content) };
    let messages: Vec<Message> = document["contents"].as_array().expect("texts").iter().map(message).collect();
    let cases = document["cases"].as_array().expect("cases");
    let one = |case: &Value| {
        let template = text(&case["template"]);
        std::fs::write(folder.join("chat_template.jinja"), &template).expect("a writable folder");
        let found = ChatTemplate::of(&model).and_then(|template| template.render(&messages, true));
        let is_same = found.as_ref().ok().map(String::as_str) == case["expected"].as_str();
        (!is_same).then(|| format!("{template}\n  found {found:?}\n  wanted {}", case["expected"]))
    };
    let found = (cases.iter().filter_map(one).collect(), cases.len());
    std::fs::remove_dir_all(folder).expect("a folder");
    found
}

#[test]
fn templates_write_values_as_python_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/templates/cases.json");
    let (differing, n_cases) = differing(&path, "templates");
    assert!(differing.is_empty(), "{} of {n_cases} differ:\n{}", differing.len(), differing.join("\n"));
    assert!(n_cases > 300, "{n_cases} cases");
}

#[test]
#[ignore = "needs templates of scripts/torchless_templates.py"]
fn templates_of_a_file_are_written_as_python_does() {
    let path = std::env::var("TORCHLESS_TEMPLATES").expect("TORCHLESS_TEMPLATES names a file");
    let (differing, n_cases) = differing(Path::new(&path), "templates-of-a-file");
    assert!(differing.is_empty(), "{} of {n_cases} differ:\n{}", differing.len(), differing.join("\n"));
    println!("{n_cases} templates are rendered as by Jinja2");
}
