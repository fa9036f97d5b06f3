//! Tests of what operations refuse and decide, on a workspace small enough to read.

use serde_json::{Value, json};

use super::*;

/// Returns one channel with a signal and a background, and one measurement.
fn value(channel: &str, background: f64) -> Value {
    json!({
        "channels": [{"name": channel, "samples": [
            {"name": "signal", "data": [5], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "background", "data": [background], "modifiers": [
                {"name": "xs", "type": "normsys", "data": {"lo": 0.9, "hi": 1.1}},
                {"name": "xs", "type": "histosys", "data": {"lo_data": [49], "hi_data": [51]}},
                {"name": "lumi", "type": "lumi", "data": null}]}]}],
        "observations": [{"name": channel, "data": [55]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": [{"name": "xs", "inits": [0.0]}]}}],
        "version": "1.0.0"
    })
}

fn document(value: &Value) -> WorkspaceDocument {
    WorkspaceDocument::from_bytes(value.to_string().as_bytes()).expect("a workspace")
}

fn good() -> WorkspaceDocument {
    document(&value("SR", 50.0))
}

/// Returns the same with the value at a pointer replaced.
fn changed(pointer: &str, new: Value) -> WorkspaceDocument {
    let mut value = value("SR", 50.0);
    *value.pointer_mut(pointer).expect("a pointer into it") = new;
    document(&value)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn new_names(names: &[(&str, &str)]) -> Vec<NewName> {
    names.iter().map(|&(from, to)| NewName { from: from.to_owned(), to: to.to_owned() }).collect()
}

/// Formats error and hint as one text.
fn said<T: std::fmt::Debug>(result: Result<T, WorkspaceError>) -> String {
    let error = result.expect_err("refused");
    error.hint().map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}"))
}

fn combined(
    left: WorkspaceDocument,
    right: WorkspaceDocument,
    join: WorkspaceJoin,
) -> Result<CombinedWorkspace, WorkspaceError> {
    combine(left, right, join, ChannelJoin::Whole)
}

const JOINS: [WorkspaceJoin; 4] =
    [WorkspaceJoin::None, WorkspaceJoin::Outer, WorkspaceJoin::LeftOuter, WorkspaceJoin::RightOuter];

#[test]
fn unknown_names_are_refused_with_the_nearest_one() {
    let refused = |wanted: PruneRequest| said(prune(good(), &wanted));
    assert_eq!(
        refused(PruneRequest { samples: names(&["Signal"]), ..PruneRequest::default() }),
        "the workspace has no sample named `Signal`; names are case sensitive; did you mean `signal`?"
    );
    assert_eq!(
        refused(PruneRequest { modifiers: names(&["b_tagging"]), ..PruneRequest::default() }),
        "the workspace has no modifier named `b_tagging`; it has `lumi`, `mu`, `xs`"
    );
    assert_eq!(
        refused(PruneRequest { modifier_types: vec![ModifierKind::ShapeSys], ..PruneRequest::default() }),
        "no modifier of the workspace is of the type `shapesys`; it has `histosys`, `lumi`, `normfactor`, `normsys`"
    );
    let wanted = RenameRequest { measurements: new_names(&[("n", "k")]), ..RenameRequest::default() };
    assert_eq!(said(rename(good(), &wanted)), "the workspace has no measurement named `n`; it has `m`");
}

#[test]
fn pruning_refuses_to_empty_a_list_that_must_have_an_entry() {
    let refused = |wanted: PruneRequest| said(prune(good(), &wanted));
    assert_eq!(
        refused(PruneRequest { channels: names(&["SR"]), ..PruneRequest::default() }),
        "no channel would be left"
    );
    assert_eq!(
        refused(PruneRequest { measurements: names(&["m"]), ..PruneRequest::default() }),
        "no measurement would be left"
    );
    assert_eq!(
        refused(PruneRequest { samples: names(&["signal", "background"]), ..PruneRequest::default() }),
        "no sample would be left in the channel `SR`; leave out the channel `SR` as a whole"
    );
}

#[test]
fn pruning_by_name_removes_settings_and_pruning_by_type_does_not() {
    let without = prune(good(), &PruneRequest { modifiers: names(&["xs"]), ..PruneRequest::default() }).expect("there");
    assert_eq!(without.document.names(WorkspacePart::Modifier), ["mu", "lumi"]);
    assert!(without.document.names(WorkspacePart::Setting).is_empty() && without.orphans.is_empty());

    // The histosys of `xs` is there beside a normsys of the same name.
    let wanted = PruneRequest { modifier_types: vec![ModifierKind::HistoSys], ..PruneRequest::default() };
    let without = prune(good(), &wanted).expect("there");
    assert_eq!(without.document.names(WorkspacePart::Modifier), ["mu", "xs", "lumi"]);
    assert_eq!(without.document.names(WorkspacePart::Setting), ["xs"]);
}

#[test]
fn measurements_without_their_parameter_of_interest_are_reported() {
    let without =
        prune(good(), &PruneRequest { samples: names(&["signal"]), ..PruneRequest::default() }).expect("there");
    assert_eq!(without.orphans, [OrphanedMeasurement { measurement: "m".to_owned(), poi: "mu".to_owned() }]);
    let again =
        prune(without.document, &PruneRequest { modifiers: names(&["xs"]), ..PruneRequest::default() }).expect("there");
    assert!(again.orphans.is_empty(), "it was so before");
}

#[test]
fn a_new_name_must_be_free() {
    let refused = |wanted: RenameRequest| said(rename(good(), &wanted));
    assert_eq!(
        refused(RenameRequest { samples: new_names(&[("signal", "background")]), ..RenameRequest::default() }),
        "the sample `signal` cannot be called `background`: the channel `SR` would have that name twice"
    );
    assert_eq!(
        refused(RenameRequest {
            samples: new_names(&[("signal", "all"), ("background", "all")]),
            ..RenameRequest::default()
        }),
        "the sample `background` cannot be called `all`: the channel `SR` would have that name twice"
    );
    assert_eq!(
        refused(RenameRequest { samples: new_names(&[("signal", "a"), ("signal", "b")]), ..RenameRequest::default() }),
        "the sample `signal` is given two new names, `a` and `b`"
    );
    assert_eq!(
        refused(RenameRequest { modifiers: new_names(&[("lumi", "luminosity")]), ..RenameRequest::default() }),
        "a `lumi` modifier must be named `lumi`, not `luminosity`"
    );
    let two = changed(
        "/channels/0/samples/0/modifiers",
        json!([
        {"name": "a", "type": "normfactor", "data": null}, {"name": "b", "type": "normfactor", "data": null}]),
    );
    assert_eq!(
        said(rename(two, &RenameRequest { modifiers: new_names(&[("b", "a")]), ..RenameRequest::default() })),
        "the modifier `b` cannot be called `a`: the sample `signal` of the channel `SR` would have that name twice"
    );
}

#[test]
fn names_can_be_swapped_and_modifiers_correlated() {
    let wanted = RenameRequest {
        samples: new_names(&[("signal", "background"), ("background", "signal")]),
        ..RenameRequest::default()
    };
    let swapped = rename(good(), &wanted).expect("both are free");
    assert_eq!(swapped.names(WorkspacePart::Sample), ["background", "signal"]);
    assert_eq!(rename(swapped, &wanted).expect("both are free"), good());

    let wanted = RenameRequest { modifiers: new_names(&[("mu", "xs")]), ..RenameRequest::default() };
    let correlated = rename(good(), &wanted).expect("no sample has both");
    assert_eq!(correlated.names(WorkspacePart::Modifier), ["xs", "xs", "xs", "lumi"]);
    assert_eq!(correlated.measurements[0].config.poi, "xs");
}

#[test]
fn without_a_join_common_names_are_refused() {
    assert_eq!(
        said(combined(good(), good(), WorkspaceJoin::None)),
        "both have the channel `SR`; rename them in one workspace, or choose an outer join"
    );
    let other = document(&value("CR", 50.0));
    assert_eq!(
        said(combined(good(), other, WorkspaceJoin::None)),
        "both have the measurement `m`; rename them in one workspace, or merge what they set with an outer join"
    );
}

#[test]
fn an_outer_join_refuses_differences_and_names_the_first() {
    let refused = |pointer, new| said(combined(good(), changed(pointer, new), WorkspaceJoin::Outer));
    assert_eq!(
        refused("/channels/0/samples/1/modifiers/0/data/hi", json!(1.2)),
        "the channel `SR` of the two differs: the number `1.1` at `/channels/0/samples/1/modifiers/0/data/hi` of the first, \
         the number `1.2` at `/channels/0/samples/1/modifiers/0/data/hi` of the second; \
         left and right outer joins keep one of the two; merging keeps the samples of both"
    );
    assert_eq!(
        refused("/observations/0/data", json!([55, 1])),
        "the observation `SR` of the two differs: a list of 1 at `/observations/0/data` of the first, \
         a list of 2 at `/observations/0/data` of the second; left and right outer joins keep one of the two"
    );
    assert_eq!(
        refused("/measurements/0/config/poi", json!("xs")),
        "the measurement `m` of the two differs: the string `mu` at `/measurements/0/config/poi` of the first, \
         the string `xs` at `/measurements/0/config/poi` of the second; left and right outer joins keep one of the two"
    );
    assert_eq!(
        refused("/measurements/0/config/parameters/0", json!({"name": "xs", "inits": [0], "fixed": true})),
        "the parameter setting `xs` of the two differs: nothing at `/measurements/0/config/parameters/0/fixed` of the first, \
         `true` at `/measurements/0/config/parameters/0/fixed` of the second; left and right outer joins keep one of the two"
    );
    // `50` is `50.0`.
    let same = changed("/channels/0/samples/1/data/0", json!(50));
    assert_eq!(combined(good(), same, WorkspaceJoin::Outer).expect("the same").document, good());
}

#[test]
fn outer_joins_add_settings_and_keep_their_order() {
    let other = changed("/measurements/0/config/parameters", json!([{"name": "mu", "fixed": true}]));
    let joined = |join| combined(good(), other.clone(), join).expect("compatible").document;
    assert_eq!(joined(WorkspaceJoin::Outer).names(WorkspacePart::Setting), ["xs", "mu"]);
    assert_eq!(joined(WorkspaceJoin::LeftOuter).names(WorkspacePart::Setting), ["xs"]);
    assert_eq!(joined(WorkspaceJoin::RightOuter).names(WorkspacePart::Setting), ["mu"]);
}

#[test]
fn left_and_right_joins_report_their_decisions() {
    let other = changed("/channels/0/samples/1/data/0", json!(60));
    for (join, side, kept) in [
        (WorkspaceJoin::LeftOuter, WorkspaceSide::Left, good()),
        (WorkspaceJoin::RightOuter, WorkspaceSide::Right, other.clone()),
    ] {
        let combination = combined(good(), other.clone(), join).expect("one is kept");
        assert_eq!(combination.document, kept);
        let [decision] = &combination.kept[..] else { panic!("{:?}", combination.kept) };
        assert_eq!((decision.part, decision.name.as_str(), decision.side), (WorkspacePart::Channel, "SR", side));
        assert_eq!(
            decision.difference.to_string(),
            "the number `50.0` at `/channels/0/samples/1/data/0` of the first, \
             the number `60` at `/channels/0/samples/1/data/0` of the second"
        );
    }
}

#[test]
fn merged_channels_have_the_samples_of_both() {
    let other = changed("/channels/0/samples/0/name", json!("fakes"));
    let merged = |join| combine(good(), other.clone(), join, ChannelJoin::Merged).expect("compatible");
    assert_eq!(merged(WorkspaceJoin::Outer).document.names(WorkspacePart::Sample), ["signal", "background", "fakes"]);
    assert_eq!(
        merged(WorkspaceJoin::RightOuter).document.names(WorkspacePart::Sample),
        ["fakes", "background", "signal"]
    );
    assert!(merged(WorkspaceJoin::LeftOuter).kept.is_empty());

    let other = changed("/channels/0/samples/1/data/0", json!(60));
    let combination = combine(good(), other, WorkspaceJoin::RightOuter, ChannelJoin::Merged).expect("compatible");
    let [decision] = &combination.kept[..] else { panic!("{:?}", combination.kept) };
    assert_eq!(
        (decision.part, decision.name.as_str(), decision.side),
        (WorkspacePart::Sample, "background", WorkspaceSide::Right)
    );
    assert_eq!(decision.difference.left.pointer, "/channels/0/samples/1/data/0");

    assert_eq!(
        said(combine(good(), good(), WorkspaceJoin::None, ChannelJoin::Merged)),
        "channels are merged by outer joins only; choose `outer`, `left outer` or `right outer` as the join"
    );
}

#[test]
fn a_workspace_with_a_duplicate_name_is_not_joined() {
    let mut twice = value("SR", 50.0);
    twice["channels"][0]["samples"][0]["name"] = json!("background");
    let twice = document(&twice);
    for join in JOINS {
        assert_eq!(
            said(combined(document(&value("CR", 1.0)), twice.clone(), join)),
            "the second one has the sample `background` twice in the channel `SR`"
        );
    }
}

/// Returns the workspace with a formula of `mu` and `tilt` on the background, and a morphing on the
/// signal.
fn with_formulas() -> WorkspaceDocument {
    let mut value = value("SR", 50.0);
    let rate = json!({"name": "rate", "type": "formula",
        "data": {"expression": "@0*(1 + 0.1*tilt)", "parameters": ["mu"]}});
    let eft = json!({"name": "eft", "type": "morphing",
        "data": {"terms": [{"expression": "tilt^2", "data": [1]}, {"expression": "mu*tilt", "data": [2]}]}});
    let samples = value["channels"][0]["samples"].as_array_mut().expect("samples");
    samples[1]["modifiers"].as_array_mut().expect("modifiers").push(rate);
    samples[0]["modifiers"].as_array_mut().expect("modifiers").push(eft);
    let settings = value["measurements"][0]["config"]["parameters"].as_array_mut().expect("settings");
    settings.push(json!({"name": "tilt", "bounds": [[-1, 1]]}));
    document(&value)
}

#[test]
fn parameters_are_renamed_in_formulas() {
    let wanted = RenameRequest { modifiers: new_names(&[("tilt", "b-tag"), ("mu", "r")]), ..RenameRequest::default() };
    let renamed = serde_json::to_value(rename(with_formulas(), &wanted).expect("new names")).expect("JSON");
    let modifier = |sample: usize, k: usize| &renamed["channels"][0]["samples"][sample]["modifiers"][k];
    assert_eq!(modifier(1, 3)["data"], json!({"expression": "@0*(1 + 0.1*`b-tag`)", "parameters": ["r"]}));
    assert_eq!(modifier(0, 1)["data"]["terms"][0], json!({"expression": "`b-tag`^2", "data": [1]}));
    assert_eq!(modifier(0, 1)["data"]["terms"][1]["expression"], "r*`b-tag`");
    assert_eq!(modifier(0, 0)["name"], "r");
    assert_eq!(renamed["measurements"][0]["config"]["parameters"][1]["name"], "b-tag");
    assert_eq!(renamed["measurements"][0]["config"]["poi"], "r");
}

#[test]
fn formulas_keep_their_meaning_when_names_change() {
    let mut value = serde_json::to_value(with_formulas()).expect("JSON");
    let modifiers = &mut value["channels"][0]["samples"][1]["modifiers"];
    let modifiers = modifiers.as_array_mut().expect("modifiers");
    modifiers.push(json!({"name": "circle", "type": "formula", "data": {"expression": "1 + pi*rate*tilt"}}));
    let document = document(&value);
    let renamed = |pairs: &[(&str, &str)]| {
        rename(document.clone(), &RenameRequest { modifiers: new_names(pairs), ..RenameRequest::default() })
    };
    for (from, to) in [("tilt", "pi"), ("rate", "tilt"), ("tilt", "rate"), ("mu", "circle"), ("circle", "mu")] {
        let wanted = format!(
            "the modifier `{from}` cannot be called `{to}`: a formula has that name or uses it; choose a name that \
             nothing has and no formula uses"
        );
        assert_eq!(said(renamed(&[(from, to)])), wanted);
    }
    assert!(renamed(&[("rate", "r"), ("circle", "rate")]).is_ok());
    assert!(renamed(&[("rate", "circle"), ("circle", "rate")]).is_ok());
}

#[test]
fn parameters_in_formulas_are_not_pruned() {
    let modifiers = names(&["tilt"]);
    let wanted = PruneRequest { modifiers, ..PruneRequest::default() };
    assert_eq!(
        said(prune(with_formulas(), &wanted)),
        "cannot remove the parameter `tilt`: the formula of `eft` names it; \
         remove `eft` too, or fix the parameter in fits"
    );
    let modifiers = names(&["tilt", "eft", "rate"]);
    let wanted = PruneRequest { modifiers, ..PruneRequest::default() };
    assert_eq!(prune(with_formulas(), &wanted).expect("nothing names it").document, good());
}

#[test]
fn documents_with_formulas_are_sorted_and_combined_as_they_are() {
    let sorted = sort(with_formulas());
    assert_eq!(sorted.counts(), with_formulas().counts());
    let both = combined(with_formulas(), document(&value("CR", 9.0)), WorkspaceJoin::Outer);
    let written = serde_json::to_string(&both.expect("distinct channels").document).expect("JSON");
    assert!(written.contains("tilt^2") && written.contains("@0*(1 + 0.1*tilt)"), "{written}");
}

/// Returns [`good`] with a signal of its own parameter of interest `nu`, which is in two channels.
fn two_pois() -> WorkspaceDocument {
    let mut value = value("SR", 50.0);
    value["channels"][0]["samples"][1]["modifiers"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "nu", "type": "normfactor", "data": null}));
    let mut other = value["channels"][0].clone();
    other["name"] = json!("CR");
    value["channels"].as_array_mut().expect("a list").push(other);
    value["observations"].as_array_mut().expect("a list").push(json!({"name": "CR", "data": [55]}));
    value["measurements"][0]["config"]["parameters"] =
        json!([{"name": "xs", "inits": [0.0]}, {"name": "nu", "poi": true}]);
    document(&value)
}

fn labelled(document: WorkspaceDocument) -> LabelledWorkspace {
    LabelledWorkspace { label: "A".to_owned(), file: None, document }
}

fn pois(document: &WorkspaceDocument) -> Vec<&str> {
    document.measurements[0].config.pois().collect()
}

#[test]
fn every_parameter_of_interest_that_is_split_needs_a_new_one() {
    assert_eq!(pois(&two_pois()), ["mu", "nu"]);
    let mut request = DecorrelateRequest { parameters: names(&["nu"]), ..DecorrelateRequest::default() };
    let refused = decorrelate(labelled(two_pois()), &request).expect_err("split");
    assert_eq!(refused.to_string(), "the parameter of interest `nu` is split into `nu_SR`, `nu_CR`");
    request.poi = Some("nu_SR".to_owned());
    let made = decorrelate(labelled(two_pois()), &request).expect("split");
    assert_eq!(pois(&made.document), ["nu_SR"]);
}

#[test]
fn the_parameter_of_interest_of_a_map_is_the_only_one() {
    let combined = |map: &CorrelationMap| combine_by_map(vec![labelled(two_pois())], map).expect("combined").document;
    assert_eq!(pois(&combined(&CorrelationMap::default())), ["mu", "nu"]);
    let map = CorrelationMap { poi: Some("mu".to_owned().into()), ..CorrelationMap::default() };
    assert_eq!(pois(&combined(&map)), ["mu"]);
}

#[test]
fn every_parameter_of_interest_without_a_modifier_is_reported() {
    let orphan = |poi: &str| OrphanedMeasurement { measurement: "m".to_owned(), poi: poi.to_owned() };
    let modifiers = PruneRequest { modifiers: names(&["nu"]), ..PruneRequest::default() };
    assert_eq!(prune(two_pois(), &modifiers).expect("there").orphans, [orphan("nu")]);
    let kind = PruneRequest { modifier_types: vec![ModifierKind::NormFactor], ..PruneRequest::default() };
    assert_eq!(prune(two_pois(), &kind).expect("there").orphans, [orphan("mu"), orphan("nu")]);
}
