//! HistFactory XML that is written: it is read back as the same workspace, and as the same
//! likelihood by what the XML alone says; and what it cannot hold is named.

use std::fs;
use std::path::{Path, PathBuf};

use ns_core::expected::expected_main;
use ns_core::likelihood::nll;
use ns_core::spec::{Measurement, Workspace};
use ns_core::{CompileOptions, Model, PoiChoice, compile};
use ns_testkit::random::{Random, Shape, point, workspace};
use ns_translate::{
    ConvertedDocument, DocumentSource, KeptKeys, LoadRequest, LoadedWorkspace, TargetFormat, WriteRequest, XmlLayout,
    convert, convert_as, convert_to_pyhf_xml, full_message, load_document, pyhf,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::histfactory_against_root::{FLAT, TWICE_NLL, YIELDS, by_channel, differences, point as point_of_root};

/// Squares of uncertainties, ratios and products are rounded.
const ROUNDED: f64 = 1e-11;

fn testdata(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(folder)
}

fn load(path: &Path) -> LoadedWorkspace {
    load_document(&LoadRequest::new(DocumentSource::Path(path.to_owned())))
        .unwrap_or_else(|error| panic!("{}", full_message(&error)))
}

/// Puts the files of a combination into a folder. Returns that folder and the combination.
fn stored(converted: &ConvertedDocument) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    for file in &converted.files {
        let path = folder.path().join(&file.path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, &file.bytes).expect("written");
    }
    let top = folder.path().join("model.xml");
    fs::write(&top, &converted.text).expect("written");
    (folder, top)
}

fn converted(workspace: &Workspace) -> Result<ConvertedDocument, ns_translate::ConversionError> {
    let kept = KeptKeys::default();
    convert_as(workspace, &WriteRequest { stem: "model", ..WriteRequest::new(&kept) }, TargetFormat::Xml)
}

/// Returns the document without what only this program reads.
fn for_others(converted: &ConvertedDocument) -> ConvertedDocument {
    let text = match (converted.text.find("<?"), converted.text.find("?>\n")) {
        (Some(start), Some(end)) => [&converted.text[..start], &converted.text[end + 3..]].concat(),
        _ => converted.text.clone(),
    };
    ConvertedDocument { text, ..converted.clone() }
}

/// Returns the model of a measurement, if it makes one.
fn model(workspace: &Workspace, measurement: &Measurement) -> Option<Model> {
    let (measurement, poi) = (Some(measurement.name.clone()), PoiChoice::None);
    compile(workspace, &CompileOptions { measurement, poi, ..CompileOptions::default() }).ok()
}

/// Returns the name in XML of a parameter: a staterror is called after its channel.
fn name_in_xml(workspace: &Workspace, name: &str) -> String {
    let (vector, element) = name.split_once('[').map_or((name, ""), |(vector, bin)| (vector, bin));
    for channel in &workspace.channels {
        let mut modifiers = channel.samples.iter().flat_map(|sample| &sample.modifiers);
        if modifiers.any(|one| one.kind() == ns_core::spec::ModifierKind::StatError && one.name == vector) {
            let bracket = if element.is_empty() { "" } else { "[" };
            return format!("staterror_{}{bracket}{element}", channel.name);
        }
    }
    name.to_owned()
}

/// Returns the point of `after` at which parameters have the values that `before` has at `point`.
fn translated(workspace: &Workspace, before: &Model, after: &Model, point: &[f64]) -> Vec<f64> {
    let mut there = after.parameters.init.clone();
    for (name, value) in before.parameters.names.iter().zip(point) {
        let name = name_in_xml(workspace, name);
        let bare = name.strip_suffix("[0]").unwrap_or(&name);
        let index = after.parameters.index_of(&name).or_else(|| after.parameters.index_of(bare));
        there[index.unwrap_or_else(|| panic!("no parameter `{name}` in {:?}", after.parameters.names))] = *value;
    }
    there
}

fn assert_close(found: f64, wanted: f64, place: &str) {
    assert!((found - wanted).abs() <= ROUNDED * wanted.abs().max(1.0), "{place}: {found:e} and {wanted:e}");
}

/// Checks that the XML alone has the likelihood of `workspace` for every measurement.
fn assert_same_likelihood(workspace: &Workspace, read: &Workspace, place: &str) {
    for (before, after) in workspace.measurements.iter().zip(&read.measurements) {
        let Some(old) = model(workspace, before) else { continue };
        let new = model(read, after).unwrap_or_else(|| panic!("{place}: no model"));
        assert_eq!(old.n_params(), new.n_params(), "{place}");
        let start = translated(workspace, &old, &new, &old.parameters.init);
        assert_eq!(old.observed.main, new.observed.main, "{place}");
        for (a, b) in start.iter().zip(&new.parameters.init) {
            assert_close(*b, *a, &format!("{place}: start"));
        }
        let mut random = Random::new(7);
        let mut difference = None;
        for _ in 0..4 {
            let here = point(&old.parameters, &mut random, 0.2);
            let there = translated(workspace, &old, &new, &here);
            for (a, b) in expected_main(&old, &here).iter().zip(&expected_main(&new, &there)) {
                assert_close(*b, *a, &format!("{place}: yields"));
            }
            let values = [nll(&old, &old.observed, &here), nll(&new, &new.observed, &there)];
            if values.iter().all(|value| value.is_finite()) {
                // Data of terms that are made of rounded uncertainties shift all values alike.
                let shift = *difference.get_or_insert(values[1] - values[0]);
                assert!(
                    (values[1] - values[0] - shift).abs() <= 1e-9 * values[0].abs().max(1.0),
                    "{place}: {values:?}"
                );
            }
        }
    }
}

/// Returns the workspace with the templates cut off at zero that are in `read`, as ROOT does.
fn cut_off(workspace: &Workspace, read: &Workspace) -> Workspace {
    let mut cut = workspace.clone();
    for (channel, other) in cut.channels.iter_mut().zip(&read.channels) {
        for (sample, other) in channel.samples.iter_mut().zip(&other.samples) {
            sample.template.clip = sample.template.clip.or(other.template.clip);
        }
    }
    cut
}

/// Writes and reads a workspace. Returns whether XML can hold it.
fn check_round_trip(workspace: &Workspace, place: &str) -> bool {
    let written = match converted(workspace) {
        Ok(written) => written,
        Err(error) => {
            assert!(
                !error.items.is_empty() && error.items.iter().all(|item| !item.name.is_empty()),
                "{place}: {error}"
            );
            return false;
        }
    };
    assert_eq!(converted(workspace).expect("a second time"), written, "{place}");
    let (_folder, top) = stored(&written);
    let read = load(&top);
    assert_eq!(read.workspace, *workspace, "{place}");
    assert_eq!(read.files.len(), workspace.channels.len() + 1, "{place}");
    assert!(read.warnings.is_empty() || !written.text.contains("<?"), "{place}: {:?}", read.warnings);
    let (_folder, top) = stored(&for_others(&written));
    let read = load(&top).workspace;
    let cut = cut_off(workspace, &read);
    let warns = written.warnings.iter().any(|text| text.starts_with("ROOT cuts off templates at zero"));
    assert_eq!(warns, cut != *workspace, "{place}: {:?}", written.warnings);
    assert_same_likelihood(&cut, &read, place);
    true
}

#[test]
fn examples_are_read_back_as_they_are() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for name in ["simple", "shapes", "background"] {
        assert!(check_round_trip(&load(&examples.join(format!("{name}.json"))).workspace, name), "{name}");
    }
}

#[test]
fn combinations_that_were_read_are_written_again() {
    let mut n_written = 0;
    let reference: Value =
        serde_json::from_slice(&fs::read(testdata("histfactory/reference.json")).expect("readable")).expect("JSON");
    for name in reference["cases"].as_object().expect("cases").keys() {
        let read = load(&testdata("histfactory").join(format!("{name}.xml")));
        assert!(check_round_trip(&read.workspace, name), "{name}: {}", converted(&read.workspace).unwrap_err());
        n_written += 1;
    }
    assert!(n_written > 30, "only {n_written} combinations");
}

#[test]
fn models_of_other_documents_are_written_or_refused_by_name() {
    let mut refused = Vec::new();
    // Terms of other widths or of other quantities, and interpolation that ROOT's HistFactory has
    // not.
    let wanted = [
        "gaussian_of_a_factor",
        "gaussian_of_a_systematic",
        "histosys_linear",
        "histosys_quadratic",
        "lognormal_of_the_datum",
        "lognormal_of_the_parameter",
        "names",
        "normsys_exponential",
        "normsys_linear",
        "normsys_quadratic",
        "poisson",
        "shifted_systematic",
    ];
    for path in fs::read_dir(testdata("hs3/models")).expect("a folder").map(|entry| entry.expect("readable").path()) {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if !check_round_trip(&load(&path).workspace, &name) {
            refused.push(name);
        }
    }
    refused.sort();
    assert_eq!(refused, wanted);
}

#[test]
fn random_workspaces_are_read_back_as_they_are() {
    let mut n_written = 0;
    for seed in 0..60 {
        let shape = Shape { terms: seed % 3 == 0, rules: false, ..Shape::SMALL };
        n_written += usize::from(check_round_trip(&workspace(seed, shape), &format!("seed {seed}")));
    }
    assert!(n_written >= 40, "only {n_written} were written");
}

#[test]
#[ignore = "needs published likelihoods"]
fn published_workspaces_are_read_back_as_they_are() {
    let folder = ns_testkit::published::data_folder().join("workspaces");
    let mut n_read = 0;
    for path in fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path()) {
        let name = path.to_string_lossy().into_owned();
        if !name.contains("patch") && !name.contains("synthsig") {
            let workspace = load(&path).workspace;
            assert!(check_round_trip(&workspace, &name), "{name}: {}", converted(&workspace).unwrap_err());
            n_read += 1;
        }
    }
    assert!(n_read > 10);
}

fn simple() -> Value {
    json!({
        "channels": [{"name": "SR", "samples": [
            {"name": "signal", "data": [5.0, 6.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "background", "data": [50.0, 40.0], "modifiers": [
                {"name": "scale", "type": "normsys", "data": {"lo": 0.9, "hi": 1.1}},
                {"name": "shape", "type": "histosys", "data": {"lo_data": [45.0, 41.0], "hi_data": [53.0, 38.0]}},
                {"name": "free", "type": "shapefactor", "data": null},
                {"name": "bins", "type": "shapesys", "data": [4.0, 3.0]},
                {"name": "stat", "type": "staterror", "data": [2.0, 2.5]}]}]}],
        "observations": [{"name": "SR", "data": [53.0, 47.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0"})
}

fn parsed(document: &Value) -> Workspace {
    pyhf::read_workspace(document.to_string().as_bytes()).unwrap_or_else(|error| panic!("{}", full_message(&error)))
}

/// Returns the workspace with the value at `pointer` replaced or added.
fn with(pointer: &str, value: Value) -> Workspace {
    let mut document = simple();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    match document.pointer_mut(parent).expect("a place") {
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => list[key.parse::<usize>().expect("an index")] = value,
        other => other[key] = value,
    }
    parsed(&document)
}

const SETTINGS: &str = "/measurements/0/config/parameters/-";
const MODIFIERS: &str = "/channels/0/samples/1/modifiers";

#[test]
fn what_xml_cannot_hold_is_named_with_its_place() {
    let setting = |value: Value| with(SETTINGS, value);
    let at = |what: &str, key: &str| format!("{what} (`/measurements/0/config/parameters/0{key}`)");
    for (workspace, message) in [
        (with("/measurements/0/config/poi", json!("a b")), "a name with blanks in a list of names, `a b`".to_owned()),
        (with("/measurements/0/config/clip", json!({"bins": 0.0})), "clipping in the measurement `m`".to_owned()),
        (with("/channels/0/samples/0/clip", json!(0.0)), "clipping of the sample `signal`".to_owned()),
        (with("/channels/0/name", json!(" SR")), "the name ` SR` (`/channels/0/name`)".to_owned()),
        (
            with("/observations/0/name", json!("other")),
            "no observations of the channel `SR` (`/channels/0`)".to_owned(),
        ),
        (
            with(&format!("{MODIFIERS}/0/interpolation"), json!("linear")),
            format!("the interpolation rule of `scale` (`{MODIFIERS}/0/interpolation`)"),
        ),
        (
            with(&format!("{MODIFIERS}/-"), json!({"name": "f", "type": "formula", "data": {"expression": "mu*mu"}})),
            format!("a formula or morphing `f` (`{MODIFIERS}/5/type`)"),
        ),
        (
            with(&format!("{MODIFIERS}/-"), json!({"name": "b", "type": "staterror", "data": [1.0, 1.0]})),
            format!("a second staterror of the channel, `b` (`{MODIFIERS}/5`)"),
        ),
        (
            with(&format!("{MODIFIERS}/-"), json!({"name": "alpha_scale", "type": "normfactor", "data": null})),
            format!("a name that another parameter has in XML, that of `alpha_scale` (`{MODIFIERS}/5`)"),
        ),
        (setting(json!({"name": "scale", "auxdata": [0.5]})), at("auxiliary data of `scale`", "/auxdata")),
        (
            setting(json!({"name": "scale", "constraints": [{"type": "gaussian", "sigma": 2.0}]})),
            at("constraint terms of `scale`", "/constraints"),
        ),
        (setting(json!({"name": "stat", "sigmas": [0.1, 0.1]})), at("widths of terms of `stat`", "/sigmas")),
        (setting(json!({"name": "bins", "auxdata": [9.0, 9.0]})), at("auxiliary data of `bins`", "/auxdata")),
        (
            setting(json!({"name": "mu", "inits": [3.0], "bounds": [[0.0, 2.0]]})),
            "a start outside the range of `mu`".to_owned(),
        ),
        (
            setting(json!({"name": "bins", "per_bin": {"relative_threshold": 0.1}})),
            at("a threshold of the shapesys `bins`", "/per_bin"),
        ),
        (
            with(&format!("{MODIFIERS}/4/data"), json!([1e200, 1.0])),
            "a histogram that a ROOT file cannot have, of `background` (`/channels/0/samples/1`: a number or the \
             square of an uncertainty is too large or too small)"
                .to_owned(),
        ),
        (
            with("/channels/0/samples/0/name", json!("n".repeat(9000))),
            format!(
                "a histogram that a ROOT file cannot have, of `{}` (`/channels/0/samples/0`: a name of 9007 bytes is too \
                 long for a ROOT file: 8000 are allowed)",
                "n".repeat(9000)
            ),
        ),
    ] {
        let error = converted(&workspace).expect_err(&message).to_string();
        assert!(error.starts_with(&format!("HistFactory XML cannot hold {message}")), "{error}\n{message}");
    }
}

#[test]
fn settings_of_every_kind_are_read_back_from_the_xml_alone() {
    let mut document = simple();
    document["measurements"][0]["config"]["parameters"] = json!([
        {"name": "mu", "inits": [0.5], "bounds": [[-1.0, 4.0]]},
        {"name": "scale", "inits": [0.3], "fixed": true},
        {"name": "free", "inits": [1.5, 0.5]},
        {"name": "stat", "inits": [1.1, 0.9], "per_bin": {"constraint": "poisson", "relative_threshold": 0.05}},
        {"name": "bins", "fixed": true, "per_bin": {"constraint": "gaussian"}}]);
    let second = json!({"name": "second", "config": {"poi": "shape", "parameters": [
        {"name": "mu", "poi": true, "groups": ["all"]},
        {"name": "free", "inits": [2.0, 2.0], "fixed": true},
        {"name": "stat", "per_bin": {"constraint": "poisson", "relative_threshold": 0.05}},
        {"name": "bins", "per_bin": {"constraint": "gaussian"}},
        {"name": "unused", "inits": [3.0]},
        {"name": "scale", "inits": [0.5], "beta": {"offset": 1.0, "factor": 0.5}, "auxdata": [1.0],
         "constraints": [{"type": "lognormal", "kappa": 1.5}]}]}});
    document["measurements"].as_array_mut().expect("a list").push(second);
    let workspace = parsed(&document);
    assert!(check_round_trip(&workspace, "settings"));
    let written = converted(&workspace).expect("a model that XML has");
    let lines = [
        "<POI>alpha_shape mu</POI>",
        "<ParamSetting Const=\"True\">alpha_scale gamma_bins_bin_0 gamma_bins_bin_1</ParamSetting>",
        "<ParamSetting Val=\"0.3\">alpha_scale</ParamSetting>",
        "<ParamSetting Val=\"1.1\">gamma_stat_SR_bin_0</ParamSetting>",
        "<ParamSetting Val=\"2\">gamma_free_bin_0 gamma_free_bin_1</ParamSetting>",
        "<ConstraintTerm Type=\"LogNormal\" RelativeUncertainty=\"0.5\">scale</ConstraintTerm>",
    ];
    for line in lines {
        assert!(written.text.contains(line), "no {line} in {}", written.text);
    }
    let said = ["modifier `stat` is called `staterror_SR` in XML: a staterror has no name of its own there"];
    assert_eq!(written.warnings, said);
    let (_folder, top) = stored(&for_others(&written));
    let read = load(&top).workspace;
    let config = |m: usize, name: &str| {
        let measurement: &Measurement = &read.measurements[m];
        measurement.parameters.iter().find(|config| config.name == name).cloned().unwrap_or_default()
    };
    assert_eq!(read.measurements[1].poi.as_deref(), Some("shape"));
    assert_eq!(config(0, "free").inits, Some(vec![1.5, 0.5]));
    assert_eq!((config(1, "mu").inits, config(1, "mu").bounds), (Some(vec![1.0]), Some(vec![[-1.0, 4.0]])));
}

/// The second measurement has no value for `mu`, which starts at 1 there.
#[test]
fn a_factor_starts_where_its_measurement_says() {
    let mut document = simple();
    let mut second = document["measurements"][0].clone();
    second["name"] = json!("second");
    document["measurements"].as_array_mut().expect("a list").push(second);
    document["measurements"][0]["config"]["parameters"] = json!([{"name": "mu", "inits": [0.5]}]);
    assert!(check_round_trip(&parsed(&document), "starts"));
}

#[test]
fn samples_that_do_not_follow_the_luminosity_are_written_for_root() {
    let mut document = simple();
    document["channels"][0]["samples"][0]["modifiers"] = json!([
        {"name": "mu", "type": "normfactor", "data": null}, {"name": "lumi", "type": "lumi", "data": null},
        {"name": "stat", "type": "staterror", "data": [0.5, 0.25]}]);
    document["measurements"][0]["config"]["parameters"] = json!([
        {"name": "lumi", "auxdata": [2.5], "sigmas": [0.1], "bounds": [[2.0, 3.0]], "inits": [2.6]}]);
    let workspace = parsed(&document);
    assert!(check_round_trip(&workspace, "luminosity"));
    let written = converted(&workspace).expect("a model that XML has");
    let warning = "ROOT 6.40 scales samples by Lumi that do not follow it here: `background`";
    assert!(written.warnings.iter().any(|text| text == warning), "{:?}", written.warnings);
    let histogram = |written: &ConvertedDocument| {
        let file = written.files.last().expect("a ROOT file");
        let mut read = ns_root_file(&file.bytes);
        read.histogram("histSR_background").expect("a histogram").values().to_vec()
    };
    assert_eq!(histogram(&written), [20.0, 16.0]);
    let more: Vec<Value> =
        (0..12).map(|n| json!({"name": format!("more{n}"), "data": [1.0, 1.0], "modifiers": []})).collect();
    document["channels"][0]["samples"].as_array_mut().expect("a list").extend(more);
    let written = converted(&parsed(&document)).expect("a model that XML has");
    let end = "`more6`, `more7`, `more8` and 3 more";
    assert!(written.warnings.iter().any(|text| text.ends_with(end)), "{:?}", written.warnings);
    let layout = XmlLayout::in_folders("", "config", "data", "fit");
    let of_pyhf = convert_to_pyhf_xml(&workspace, &KeptKeys::default(), &layout).expect("a model that XML has");
    assert_eq!(histogram(&of_pyhf), [50.0, 40.0]);
}

fn ns_root_file(bytes: &[u8]) -> ns_root::RootFile {
    ns_root::RootFile::from_bytes(bytes.to_vec()).expect("a ROOT file")
}

#[test]
fn files_that_were_changed_are_read_as_the_xml_says() {
    let written = converted(&parsed(&simple())).expect("a model that XML has");
    let (folder, top) = stored(&written);
    let channel = folder.path().join("model_SR.xml");
    let text = fs::read_to_string(&channel).expect("readable").replace("High=\"1.1\"", "High=\"1.2\"");
    fs::write(&channel, text).expect("written");
    let read = load(&top);
    let warning = "the instruction `<?nextstat?>` is left out: the files were changed after nextstat wrote them";
    assert!(read.warnings.iter().any(|text| text == warning), "{:?}", read.warnings);
    assert_eq!(read.workspace.channels[0].samples[1].modifiers.last().expect("one").name, "staterror_SR");
    for instruction in ["<?nextstat ?>", "<?nextstat {\"sha256\": 1}?>", "<?nextstat [?>"] {
        let start = written.text.find("<?").expect("an instruction");
        let end = written.text.find("?>").expect("its end") + 2;
        let text = [&written.text[..start], instruction, &written.text[end..]].concat();
        fs::write(&top, text).expect("written");
        assert!(load(&top).warnings.iter().any(|text| text.contains("is left out")), "{instruction}");
    }
}

#[test]
fn files_have_names_of_their_own() {
    let mut document = simple();
    for name in ["a/b", "a:b", "A?B", "α"] {
        let mut channel = document["channels"][0].clone();
        channel["name"] = json!(name);
        channel["samples"][1]["modifiers"].as_array_mut().expect("a list").truncate(2);
        document["channels"].as_array_mut().expect("a list").push(channel);
        document["observations"].as_array_mut().expect("a list").push(json!({"name": name, "data": [5.0, 6.0]}));
    }
    let workspace = parsed(&document);
    assert!(check_round_trip(&workspace, "names"));
    let names = |written: ConvertedDocument| -> Vec<String> {
        written.files.iter().map(|file| file.path.display().to_string()).collect()
    };
    let beside = ["model_SR.xml", "model_a_b.xml", "model_a_b_2.xml", "model_A_B_3.xml", "model_α.xml", "model.root"];
    let all = [&["HistFactorySchema.dtd"], &beside[..]].concat();
    assert_eq!(names(converted(&workspace).expect("a model that XML has")), all);
    let layout = XmlLayout::in_folders("out", "out/config", "out/data", "fit");
    let refused = convert_to_pyhf_xml(&workspace, &KeptKeys::default(), &layout).expect_err("two files of one name");
    assert!(refused.to_string().contains("a second file of the name that is that of channel `a:b`"), "{refused}");
    let one = convert_to_pyhf_xml(&parsed(&simple()), &KeptKeys::default(), &layout).expect("a model that XML has");
    assert!(one.text.contains("<Input>out/config/fit_SR.xml</Input>"), "{}", one.text);
    let types = ["out/HistFactorySchema.dtd", "out/config/HistFactorySchema.dtd"];
    assert_eq!(names(one), [types[0], types[1], "out/config/fit_SR.xml", "out/data/data.root"]);
}

#[test]
fn the_default_name_is_workspace() {
    let written = convert(&parsed(&simple()), &KeptKeys::default(), TargetFormat::Xml).expect("a model that XML has");
    assert!(written.text.contains("<Input>workspace_SR.xml</Input>"));
}

/// Returns the two models of a measurement: of the workspace, and of the XML alone.
fn both_models(workspace: &Workspace, written: &ConvertedDocument, measurement: &str) -> [Model; 2] {
    let (_folder, top) = stored(&for_others(written));
    let options = || CompileOptions { measurement: Some(measurement.to_owned()), ..CompileOptions::default() };
    [workspace, &load(&top).workspace]
        .map(|workspace| compile(workspace, &options()).unwrap_or_else(|error| panic!("{error}")))
}

/// Files that ROOT made models from are those that are written now, and the models have the yields
/// and the likelihood of the workspaces (testdata/histfactory/written.py).
#[test]
fn root_makes_the_same_models_of_what_is_written() {
    let text = fs::read(testdata("histfactory/written.json")).expect("readable");
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    let (mut wrong, mut n_compared) = (Vec::new(), 0);
    for (name, case) in document["cases"].as_object().expect("cases") {
        let (workspace, kept) = (parsed(&case["model"]), KeptKeys::default());
        let request = WriteRequest { stem: name, ..WriteRequest::new(&kept) };
        let written = convert_as(&workspace, &request, TargetFormat::Xml).unwrap_or_else(|error| panic!("{error}"));
        for (file, stored) in case["files"].as_object().expect("files") {
            let of_channel = written.files.iter().find(|one| one.path == Path::new(file));
            let text = of_channel.map_or(written.text.as_bytes(), |file| &file.bytes);
            let now = String::from_utf8(text.to_vec()).expect("text");
            assert_eq!(now, stored.as_str().expect("text"), "{file}: run testdata/histfactory/written.py");
        }
        for (measurement, of_root) in case["measurements"].as_object().expect("measurements") {
            for model in both_models(&workspace, &written, measurement) {
                wrong.extend(differences_from_root(&model, of_root, &format!("{name}, {measurement}")));
                n_compared += 1;
            }
        }
    }
    assert!(n_compared >= 40, "only {n_compared} models");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn differences_from_root(model: &Model, of_root: &Value, place: &str) -> Vec<String> {
    let observed = by_channel(model, &of_root["observed"]);
    let mut wrong = differences(&model.observed.main, &observed, YIELDS, place);
    let points = of_root["points"].as_array().expect("points");
    let here: Vec<Vec<f64>> = points.iter().map(|one| point_of_root(model, &one["parameters"], of_root)).collect();
    for (one, point) in points.iter().zip(&here) {
        wrong.extend(differences(&expected_main(model, point), &by_channel(model, &one["expected"]), YIELDS, place));
    }
    let rises = |values: Vec<f64>| -> Vec<f64> { values.iter().map(|value| value - values[0]).collect() };
    let found = rises(here.iter().map(|point| 2.0 * nll(model, &model.observed, point)).collect());
    let wanted = rises(points.iter().map(|one| one["twice_nll"].as_f64().expect("a number")).collect());
    let tolerance = if place.starts_with("uniform") { FLAT } else { TWICE_NLL };
    wrong.extend(differences(&found, &wanted, tolerance, place));
    wrong
}
