//! Data cards of examples/combine equal an independent evaluation of Combine's semantics
//! (scripts/combine_evaluator.py), and mistakes in cards are explained.

use std::path::PathBuf;

use ns_core::likelihood::nll;
use ns_core::{CompileOptions, Model, compile};
use ns_translate::{
    CardOptions, DocumentError, DocumentSource, LabelledCard, LoadRequest, ReadDocument, ReadRequest, full_message,
    join_cards, load_document, pyhf, read_document, read_document_with,
};
use serde_json::Value;

/// The same sums in another order.
const NLL: f64 = 1e-10;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/combine")
}

fn read_with(text: &[u8], card: &CardOptions) -> Result<ReadDocument, DocumentError> {
    read_document_with(text, &ReadRequest { card: Some(card), ..ReadRequest::new(&DocumentSource::Stdin) })
}

fn model(card: &str) -> Model {
    let loaded = load_document(&LoadRequest::new(DocumentSource::Path(folder().join(card))));
    let loaded = loaded.unwrap_or_else(|error| panic!("{card}: {}", full_message(&error)));
    compile(&loaded.workspace, &CompileOptions::default()).unwrap_or_else(|error| panic!("{card}: {error}"))
}

#[test]
fn likelihoods_are_those_of_an_independent_evaluation() {
    let text = std::fs::read(folder().join("../../testdata/combine/reference.json")).expect("readable");
    let cases: Value = serde_json::from_slice(&text).expect("JSON");
    let cases = cases.as_object().expect("cards");
    assert_eq!(cases.len(), 2);
    for (card, points) in cases {
        let model = model(card);
        let points = points.as_array().expect("points");
        let value = |one: &Value| {
            let mut at = model.parameters.init.clone();
            for (name, value) in one["values"].as_object().expect("values") {
                let index = model.parameters.index_of(name).unwrap_or_else(|| panic!("{card}: `{name}`"));
                at[index] = value.as_f64().expect("a number");
            }
            nll(&model, &model.observed, &at)
        };
        for one in &points[1..] {
            let found = value(one) - value(&points[0]);
            let wanted = one["nll"].as_f64().expect("a number") - points[0]["nll"].as_f64().expect("a number");
            assert!((found - wanted).abs() <= NLL * wanted.abs().max(1.0), "{card}: {found} and {wanted}");
        }
    }
}

#[test]
fn parameters_have_the_starts_and_ranges_of_combine() {
    let model = model("counting.txt");
    let of = |name: &str| {
        let index = model.parameters.index_of(name).expect("a parameter");
        [model.parameters.init[index], model.parameters.lower[index], model.parameters.upper[index]]
    };
    assert_eq!(of("r"), [1.0, 0.0, 20.0]);
    assert_eq!(of("lumi"), [0.0, -7.0, 7.0]);
    assert_eq!(of("model"), [0.0, -1.0, 1.0]);
    assert_eq!(of("norm"), [1.0, 0.2, 3.0]);
    assert_eq!(of("sideband")[0], 13.0);
}

/// A card that is whole, of which the tests damage lines.
const WHOLE: &str = "imax 1\njmax 1\nkmax *\nbin a\nobservation 5\nbin a a\nprocess S B\nprocess 0 1\nrate 1 4\n\
                     lumi lnN 1.1 1.2\n";

fn message(text: &str) -> String {
    let error = read_document(text.as_bytes(), &DocumentSource::Stdin).expect_err(text);
    let hint = error.advice().map(|hint| format!(" ({hint})")).unwrap_or_default();
    full_message(&error) + &hint
}

#[test]
fn mistakes_are_explained_with_their_place() {
    read_document(WHOLE.as_bytes(), &DocumentSource::Stdin).expect("a card");
    for (old, new, wanted) in [
        ("imax 1", "imax 2", "`imax` declares 2 channels, and the card has 1 at line 1, column 6 (`*` counts them)"),
        ("lnN 1.1 1.2", "lnN 1.1", "the line `lumi lnN` has 1 entries, and 2 are needed at line 10, column 1"),
        (
            "lnN",
            "rateparam",
            "unknown kind of uncertainty `rateparam` at line 10, column 6 (did you mean `rateParam`?)",
        ),
        (
            "lnN 1.1",
            "lnN 1,1",
            "expected a number, two numbers with a slash, or `-`, found `1,1` at line 10, column 10",
        ),
        ("rate 1 4", "rate 1 x", "expected a number of expected events, or -1, found `x` at line 9, column 8"),
        (
            "process 0 1",
            "process 1 1",
            "the card has no signal: no process has an index of 0 or below at line 4, column 5",
        ),
        ("rate 1 4", "bin a\nrate 1 4", "the line `bin` has 1 entries, and 2 are needed at line 10, column 1"),
        ("bin a\n", "bin 1\n", "the name of the channel `1` begins with a digit at line 4, column 5"),
    ] {
        let found = message(&WHOLE.replacen(old, new, 1));
        assert!(found.starts_with(wanted), "{found}");
    }
    assert!(message(&(WHOLE.to_owned() + "x discrete\n")).starts_with("`discrete` is not supported"));
    let shapes = WHOLE.replace("kmax *", "kmax *\nshapes * * data.root w:$PROCESS");
    assert!(message(&shapes).starts_with("there is no file `data.root` at line 4, column 12"));
}

#[test]
fn edits_change_uncertainties() {
    let read = |edits: &str| {
        let text = WHOLE.to_owned() + edits;
        read_document(text.as_bytes(), &DocumentSource::Stdin).map(|read| pyhf::write_workspace(&read.workspace))
    };
    let names = |document: &Value, sample: usize| -> Vec<String> {
        let modifiers = document["channels"][0]["samples"][sample]["modifiers"].as_array().expect("modifiers").clone();
        modifiers.iter().map(|modifier| modifier["name"].as_str().expect("a name").to_owned()).collect()
    };
    let document = read("nuisance edit rename S a lumi lumi_S\nnuisance edit drop B a lumi\n").expect("readable");
    assert_eq!((names(&document, 0), names(&document, 1)), (vec!["r".into(), "lumi_S".into()], vec![]));
    let document = read("nuisance edit add B * lumi lnN 1.3 addq\n").expect("readable");
    let hi = document["channels"][0]["samples"][1]["modifiers"][0]["data"]["hi"].as_f64().expect("a number");
    assert!((hi - 1.2_f64.ln().hypot(1.3_f64.ln()).exp()).abs() < 1e-15);
    let error = read("nuisance edit freeze nothing\n").expect_err("nothing");
    assert!(full_message(&error).starts_with("`nuisance edit freeze nothing` finds nothing at line 11, column 15"));
}

#[test]
fn physics_models_scale_processes() {
    let options = |model: &str, options: &[&str]| CardOptions {
        physics_model: Some(model.to_owned()),
        model_options: options.iter().map(|option| (*option).to_owned()).collect(),
        ..CardOptions::default()
    };
    let read = |card: &CardOptions| read_with(WHOLE.as_bytes(), card);
    let map = options("PhysicsModel:multiSignalModel", &["map=.*/S:mu[1,-2,5]", "map=a/B:0"]);
    let workspace = read(&map).expect("readable").workspace;
    assert_eq!(workspace.channels[0].samples.len(), 1);
    assert_eq!(workspace.measurements[0].poi.as_deref(), Some("mu"));
    let error = read(&options("multiSignalModels", &[])).expect_err("unknown");
    assert_eq!(error.advice(), Some("did you mean `multiSignalModel`?".into()));
    assert!(read(&options("floatingXSHiggs", &[])).is_err(), "`S` is not a production");
    let json = br#"{"channels": [], "measurements": []}"#;
    let error = read_with(json, &map).expect_err("no card");
    assert!(error.to_string().contains("is for a Combine card"), "{error}");
}

/// Returns the card of examples/combine with a label.
fn card(label: &str, file: &str) -> LabelledCard {
    let source = DocumentSource::Path(folder().join(file));
    LabelledCard::load(Some(label.to_owned()), source).expect("readable")
}

#[test]
fn joined_cards_share_parameters_by_name() {
    let joined = join_cards(&[card("x", "counting.txt"), card("y", "counting.txt")], &CardOptions::default());
    let joined = joined.expect("readable");
    let workspace = pyhf::read_workspace(&joined.text.bytes).expect("a workspace");
    let model_of_both = compile(&workspace, &CompileOptions::default()).expect("a model");
    let one = model("counting.txt");
    assert_eq!(model_of_both.channels, ["x_high", "x_low", "y_high", "y_low"]);
    assert_eq!(model_of_both.parameters.names, one.parameters.names);
    assert_eq!(joined.channels, [["x_low", "x_high"], ["y_low", "y_high"]]);
}

#[test]
fn labels_of_joined_cards_make_names_that_cards_may_have() {
    let joined = |labels: [&str; 2]| {
        let cards = [card(labels[0], "counting.txt"), card(labels[1], "counting.txt")];
        join_cards(&cards, &CardOptions::default()).map(|joined| joined.channels).map_err(|error| full_message(&error))
    };
    assert_eq!(joined([".", "y"]), Ok(vec![vec!["low".into(), "high".into()], vec!["y_low".into(), "y_high".into()]]));
    for (labels, message) in [
        (["x", "x"], "two cards have the label `x`"),
        (["", "y"], "`` cannot be the label of a card"),
        (["1", "y"], "`1` cannot be the label of a card"),
        (["7TeV", "y"], "`7TeV` cannot be the label of a card"),
    ] {
        assert_eq!(joined(labels), Err(message.to_owned()));
    }
    let twice = joined([".", "."]).expect_err("one name");
    assert!(twice.ends_with("the channel `low` is there twice at line 7, column 14"), "{twice}");
}
