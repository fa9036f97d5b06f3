//! Combinations by a map equal what `rename` and `combine` make, and splits are undone by rules
//! that correlate: on random workspaces, by digest.

use ns_core::spec::ModifierKind;
use ns_testkit::random::{Shape, workspace};
use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::workspace::{
    ChannelJoin, CorrelatedBy, CorrelationMap, DecorrelateRequest, LabelledWorkspace, MapSyntax, NewName,
    RenameRequest, SplitBy, WorkspaceDocument, WorkspaceJoin, combine, combine_by_map, decorrelate, rename, sort,
};
use ns_translate::{pyhf, python_json};
use serde_json::Value;

fn document(seed: u64) -> WorkspaceDocument {
    let text = pyhf::write_workspace(&workspace(seed, Shape::PYHF)).to_string();
    WorkspaceDocument::from_bytes(text.as_bytes()).expect("a workspace")
}

fn digest_of(document: &WorkspaceDocument) -> String {
    let text = python_json(document).expect("text keys");
    digest(text.as_bytes(), DigestAlgorithm::Sha256).expect("JSON")
}

fn value(document: &WorkspaceDocument) -> Value {
    serde_json::to_value(document).expect("text keys")
}

/// Returns every modifier: channel, sample, name and type.
fn modifiers(document: &WorkspaceDocument) -> Vec<[String; 4]> {
    let value = value(document);
    let text = |value: &Value, key: &str| value[key].as_str().expect("text").to_owned();
    let mut found = Vec::new();
    for channel in value["channels"].as_array().expect("a list") {
        for sample in channel["samples"].as_array().expect("a list") {
            for modifier in sample["modifiers"].as_array().expect("a list") {
                found.push([
                    text(channel, "name"),
                    text(sample, "name"),
                    text(modifier, "name"),
                    text(modifier, "type"),
                ]);
            }
        }
    }
    found
}

fn has(document: &WorkspaceDocument, name: &str) -> bool {
    modifiers(document).iter().any(|[_, _, found, _]| found == name)
}

fn renamed(document: WorkspaceDocument, modifiers: &[(&str, &str)], prefix: &str) -> WorkspaceDocument {
    let new = |from: &str, to: &str| NewName { from: from.to_owned(), to: to.to_owned() };
    let all = value(&document);
    let channels =
        all["channels"].as_array().expect("a list").iter().map(|channel| channel["name"].as_str().expect("text"));
    let channels = channels.map(|name| new(name, &format!("{prefix}{name}"))).collect();
    let modifiers = modifiers.iter().filter(|(from, _)| has(&document, from)).map(|(from, to)| new(from, to)).collect();
    rename(document, &RenameRequest { channels, modifiers, ..RenameRequest::default() }).expect("free names")
}

fn labelled(label: &str, document: WorkspaceDocument) -> LabelledWorkspace {
    LabelledWorkspace { label: label.to_owned(), file: None, document }
}

fn map(text: &str) -> CorrelationMap {
    CorrelationMap::from_bytes(text.as_bytes(), MapSyntax::Yaml).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

const PER_BIN: &str = "decorrelate: [{parameters: ['stat_*', 'shapesys_*', 'shape'], by: analysis}]\n";

/// Returns the map without the rules for parameters that nothing has.
fn per_bin(documents: &[&WorkspaceDocument]) -> String {
    let wanted = ["stat_*", "shapesys_*", "shape"].into_iter().filter(|pattern| {
        let all = documents.iter().flat_map(|document| modifiers(document));
        all.into_iter().any(|[_, _, name, _]| ns_core::pattern::matches(pattern, &name))
    });
    let names: Vec<String> = wanted.map(|pattern| format!("'{pattern}'")).collect();
    if names.is_empty() { String::new() } else { PER_BIN.replace("'stat_*', 'shapesys_*', 'shape'", &names.join(", ")) }
}

/// Returns two workspaces with different channels, of which the second calls its systematics
/// otherwise.
fn pair(seed: u64) -> [WorkspaceDocument; 2] {
    let second = [("alpha_0", "sys_0"), ("alpha_1", "sys_1"), ("alpha_2", "sys_2"), ("alpha_3", "sys_3"), ("mu", "r")];
    [renamed(document(2 * seed), &[], "A_"), renamed(document(2 * seed + 1), &second, "B_")]
}

#[test]
fn a_map_makes_what_renaming_and_combining_make() {
    let mut n_correlated = 0;
    for seed in 0..40 {
        let [a, b] = pair(seed);
        let text = format!("poi: {{name: mu, parameters: {{A: mu, B: r}}}}\n{}", per_bin(&[&a, &b]));
        let is_in_both = (0..4).any(|i| has(&a, &format!("alpha_{i}")) && has(&b, &format!("sys_{i}")));
        let rule = "correlate: [{name: 'alpha_*', parameters: {A: 'alpha_*', B: 'sys_*'}}]\n";
        let text = if is_in_both { text + rule } else { text };
        let made = combine_by_map(vec![labelled("A", a.clone()), labelled("B", b.clone())], &map(&text));
        let made = made.unwrap_or_else(|error| panic!("seed {seed}: {error} {:?}", error.hint()));

        // By hand: what both have, and the factors of bins apart.
        let bins = |document: &WorkspaceDocument, label: &str| -> Vec<(String, String)> {
            let kinds =
                [ModifierKind::StatError, ModifierKind::ShapeSys, ModifierKind::ShapeFactor].map(ModifierKind::as_str);
            let all = modifiers(document).into_iter().filter(|[_, _, _, kind]| kinds.contains(&&**kind));
            all.map(|[_, _, name, _]| (name.clone(), format!("{name}_{label}"))).collect()
        };
        let shared = (0..4).filter(|i| has(&a, &format!("alpha_{i}")) && has(&b, &format!("sys_{i}")));
        let shared: Vec<(String, String)> = shared.map(|i| (format!("sys_{i}"), format!("alpha_{i}"))).collect();
        n_correlated += shared.len();
        let by_hand = |document: WorkspaceDocument, names: Vec<(String, String)>| {
            let names: Vec<(&str, &str)> = names.iter().map(|(from, to)| (&**from, &**to)).collect();
            renamed(document, &names, "")
        };
        let left = by_hand(a.clone(), bins(&a, "A"));
        let right = by_hand(b.clone(), [vec![("r".to_owned(), "mu".to_owned())], shared, bins(&b, "B")].concat());
        let expected = combine(left, right, WorkspaceJoin::Distinct, ChannelJoin::Whole).expect("distinct channels");
        assert_eq!(digest_of(&made.document), digest_of(&expected.document), "seed {seed}");
        let mu = made.report.parameters.iter().find(|found| found.parameter == "mu").expect("it is there");
        assert_eq!((mu.correlated_by, mu.rules.as_slice()), (Some(CorrelatedBy::Map), &["/poi".to_owned()][..]));
    }
    assert!(n_correlated > 60, "{n_correlated} systematics were correlated");
}

#[test]
fn correlating_the_parts_undoes_a_split() {
    let mut n_split = 0;
    for (seed, by) in (0..60).map(|seed| (seed, if seed % 2 == 0 { SplitBy::Channel } else { SplitBy::Sample })) {
        let original = document(seed);
        let request = DecorrelateRequest {
            parameters: vec!["alpha_?".to_owned(), "mu".to_owned(), "xs".to_owned()],
            by,
            poi: Some(if by == SplitBy::Channel { "mu_channel_3" } else { "mu_signal" }.to_owned()),
            ..DecorrelateRequest::default()
        };
        if !(0..4).any(|i| has(&original, &format!("alpha_{i}"))) {
            continue;
        }
        let split = decorrelate(labelled("A", original.clone()), &request);
        let split = split.unwrap_or_else(|error| panic!("seed {seed}: {error} {:?}", error.hint())).document;
        let names: Vec<String> = modifiers(&split).into_iter().map(|[_, _, name, _]| name).collect();
        assert!(!names.iter().any(|name| name == "mu" || name == "alpha_0"));
        n_split += names.iter().filter(|name| name.starts_with("alpha_")).count();
        // A rule needs two members, and what has one part only is renamed back.
        let mut rules = Vec::new();
        let mut back = Vec::new();
        for parameter in ["alpha_0", "alpha_1", "alpha_2", "alpha_3", "mu", "xs"] {
            let mut parts: Vec<&String> =
                names.iter().filter(|name| name.starts_with(&format!("{parameter}_"))).collect();
            parts.sort();
            parts.dedup();
            match parts[..] {
                [] => {}
                [part] => back.push((part.as_str(), parameter)),
                _ => rules.push(format!("- {{name: {parameter}, parameters: {{A: '{parameter}_*'}}}}\n")),
            }
        }
        let text = format!("poi: mu\n{}{}", if rules.is_empty() { "" } else { "correlate:\n" }, rules.concat());
        let joined = combine_by_map(vec![labelled("A", renamed(split, &back, ""))], &map(&text));
        let joined = joined.unwrap_or_else(|error| panic!("seed {seed}: {error} {:?}\n{text}", error.hint()));
        assert_eq!(digest_of(&joined.document), digest_of(&original), "seed {seed}");
    }
    assert!(n_split > 200, "{n_split} modifiers were split");
}

#[test]
fn the_result_is_a_workspace_and_the_report_has_every_parameter() {
    let mut n_made = 0;
    for seed in 0..40 {
        let [a, b] = pair(seed);
        let text = format!(
            "poi: mu\nsame_names: decorrelate\n{}",
            if has(&a, "lumi") && has(&b, "lumi") { "correlate: [lumi]\n" } else { "" }
        );
        let made = combine_by_map(vec![labelled("A", a), labelled("B", b)], &map(&text));
        // `lumi` modifiers of one workspace only need a rule, because its settings are in both.
        let Ok(made) = made else { continue };
        n_made += 1;
        let text = python_json(&made.document).expect("text keys");
        pyhf::read_workspace(text.as_bytes()).expect("a workspace");
        assert_eq!(
            sort(WorkspaceDocument::from_bytes(text.as_bytes()).expect("a workspace")),
            sort(made.document.clone())
        );
        let mut used: Vec<String> = modifiers(&made.document).into_iter().map(|[_, _, name, _]| name).collect();
        used.retain(|name| !made.report.parameters.iter().any(|found| found.parameter == *name));
        assert_eq!(used, Vec::<String>::new());
    }
    assert!(n_made > 20, "{n_made} of 40 were combined");
}

#[test]
fn a_map_with_a_range_without_values_is_refused_with_its_place() {
    let map = |range: &str| {
        let text = format!("settings:\n- name: mu\n  bounds: [[-1, 1], {range}]\n");
        CorrelationMap::from_bytes(text.as_bytes(), MapSyntax::Yaml).map(|_| ()).map_err(|error| error.to_string())
    };
    let said = "the bounds of `mu` are [20, -5]; the first must be below the second, at `/settings/0/bounds/1`";
    let error = map("[20, -5]").expect_err("a range without a value");
    assert!(error.starts_with(said), "{error}");
    assert!(map("[2, 2]").is_err());
    assert_eq!(map("[-5, 20]"), Ok(()));
}
