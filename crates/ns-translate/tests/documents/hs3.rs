//! HS3: what is read, what is refused and where, and what is written and kept.

use std::path::Path;

use ns_core::spec::{ConstraintTerm, ModifierKind, PerBinKind, Workspace};
use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::{
    ConvertedDocument, DocumentError, DocumentSource, LoadRequest, LoadedWorkspace, ReadDocument, ReadRequest,
    TargetFormat, convert, full_message, load_document, read_bytes, read_document, read_document_with,
};
use serde_json::{Value, json};

/// A document with every top-level list, and one channel with two bins.
fn document() -> Value {
    let axes = json!([{"name": "x", "min": 0.0, "max": 2.0, "nbins": 2}]);
    let jes = json!({"name": "JES", "type": "normsys", "parameter": "alpha_JES", "constraint_name": "JES_term",
                     "data": {"lo": 0.9, "hi": 1.1}});
    let shape = json!({"name": "shape", "type": "shapesys", "parameters": ["gamma_shape_bin_0", "gamma_shape_bin_1"],
                       "constraint_type": "Poisson", "data": {"vals": [0.1, 0.2]}});
    let mu = json!({"name": "mu", "type": "normfactor", "parameter": "mu"});
    let data =
        |name: &str, contents: [f64; 2]| json!({"name": name, "type": "binned", "axes": axes, "contents": contents});
    json!({
        "metadata": {"hs3_version": "0.2"},
        "distributions": [
            {"name": "model_SR", "type": "histfactory_dist", "axes": axes, "samples": [
                {"name": "signal", "data": {"contents": [5.0, 6.0]}, "modifiers": [mu]},
                {"name": "background", "data": {"contents": [50.0, 40.0]}, "modifiers": [jes, shape]}]},
            {"name": "JES_term", "type": "gaussian_dist", "x": "alpha_JES", "mean": "nom_alpha_JES", "sigma": 1.0}],
        "data": [data("obsData_SR", [53.0, 47.0]), data("asimovData_SR", [55.0, 46.0])],
        "likelihoods": [
            {"name": "asimov", "distributions": ["model_SR"], "data": ["asimovData_SR"]},
            {"name": "observed", "distributions": ["model_SR"], "data": ["obsData_SR"]}],
        "analyses": [
            {"name": "expected", "likelihood": "asimov", "parameters_of_interest": ["mu"]},
            {"name": "search", "likelihood": "observed", "parameters_of_interest": ["mu"], "domains": ["domain"]}],
        "domains": [{"name": "domain", "type": "product_domain", "axes": [{"name": "mu", "min": 0.0, "max": 4.0}]}],
        "parameter_points": [{"name": "default_values", "parameters": [
            {"name": "mu", "value": 1.5}, {"name": "nom_alpha_JES", "value": 0.0, "const": true}]}]
    })
}

fn read_for(document: &Value, measurement: Option<&str>) -> Result<ReadDocument, DocumentError> {
    let request = ReadRequest { measurement, ..ReadRequest::new(&DocumentSource::Stdin) };
    read_document_with(document.to_string().as_bytes(), &request)
}

fn read(document: &Value) -> ReadDocument {
    read_for(document, None).unwrap_or_else(|error| panic!("{}", full_message(&error)))
}

/// Returns the document with the value at `pointer` replaced.
fn with(pointer: &str, value: Value) -> Value {
    let mut document = document();
    *document.pointer_mut(pointer).expect("a place") = value;
    document
}

/// Returns the document with `key` added to the object at `pointer`.
fn adding(pointer: &str, key: &str, value: Value) -> Value {
    let mut document = document();
    document.pointer_mut(pointer).expect("a place")[key] = value;
    document
}

fn refused(document: &Value) -> (String, String) {
    let error = read_for(document, None).expect_err("refused");
    let pointer = error.pointer().unwrap_or_default().to_owned();
    let message = full_message(&error);
    (message.split(" at `").next().unwrap_or_default().to_owned(), pointer)
}

fn converted(read: &ReadDocument, format: TargetFormat) -> ConvertedDocument {
    convert(&read.workspace, &read.kept, format).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn names_of_root_become_those_of_pyhf_and_settings_only_what_differs() {
    let workspace = read(&document()).workspace;
    let [channel] = &workspace.channels[..] else { panic!("one channel") };
    assert_eq!((channel.name.as_str(), workspace.observations[0].data.clone()), ("SR", vec![53.0, 47.0]));
    let names: Vec<_> = channel.samples[1].modifiers.iter().map(|one| (one.name.as_str(), one.kind())).collect();
    assert_eq!(names, [("JES", ModifierKind::NormSys), ("shape", ModifierKind::ShapeSys)]);
    let [search] = &workspace.measurements[..] else { panic!("one analysis has these data") };
    assert_eq!((search.name.as_str(), search.poi.as_deref()), ("search", Some("mu")));
    let [mu] = &search.parameters[..] else { panic!("{:?}", search.parameters) };
    assert_eq!((mu.inits.clone(), mu.bounds.clone(), mu.fixed), (Some(vec![1.5]), Some(vec![[0.0, 4.0]]), None));
}

#[test]
fn an_analysis_is_chosen_by_its_name_and_observed_data_come_first() {
    let first = read(&document());
    assert_eq!(first.workspace.measurements[0].name, "search");
    assert_eq!(
        first.warnings,
        ["`search` is read; analyses with other data are `expected`: the name of a measurement selects one"]
    );
    let expected = read_for(&document(), Some("expected")).expect("an analysis");
    assert_eq!(expected.workspace.observations[0].data, [55.0, 46.0]);
    assert!(expected.warnings.is_empty(), "{:?}", expected.warnings);
    let error = read_for(&document(), Some("Search")).expect_err("another name");
    assert_eq!(full_message(&error), "the document has no analysis `Search`");
    assert_eq!(error.advice(), Some("did you mean `search`?".into()));
}

#[test]
fn content_that_no_binned_model_has_is_refused_with_its_pointer() {
    let sample = "/distributions/0/samples/1";
    for (document, message, pointer) in [
        (
            with("/distributions/0/type", json!("generic_dist")),
            "a distribution of type `generic_dist` cannot be read",
            "/distributions/0/type",
        ),
        (with("/data/0/type", json!("unbinned")), "data of type `unbinned` cannot be read", "/data/0/type"),
        (
            with(&format!("{sample}/modifiers/0/type"), json!("custom")),
            "a modifier of type `custom` cannot be read",
            "/distributions/0/samples/1/modifiers/0/type",
        ),
        (
            adding(&format!("{sample}/modifiers/0"), "interpolation", json!(9)),
            "the interpolation `9` cannot be read",
            "/distributions/0/samples/1/modifiers/0/interpolation",
        ),
        (
            with("/distributions/1/type", json!("exponential_dist")),
            "a constraint term of type `exponential_dist` cannot be read",
            "/distributions/1/type",
        ),
        (with("/domains/0/type", json!("simplex")), "a domain of type `simplex` cannot be read", "/domains/0/type"),
        (with("/metadata/hs3_version", json!("1.0")), "version `1.0` of HS3 is not supported", "/metadata/hs3_version"),
        (with("/likelihoods/1/data/0", json!("obsData")), "unknown data set `obsData`", "/likelihoods/1/data/0"),
        (
            with("/data/0/contents", json!([1.0])),
            "the contents of the data of a channel must have 2 entries, found 1",
            "/data/0/contents",
        ),
        (
            with("/distributions/0/axes/0/nbins", json!(1_000_000_000_000_u64)),
            "the contents of these axes must have 1000000000000 entries, found 2",
            "/distributions/0/axes",
        ),
        (
            with("/distributions/0/axes/0/nbins", json!(2.5)),
            "the number of bins `2.5` cannot be read",
            "/distributions/0/axes/0/nbins",
        ),
        (with("/data/0/axes/0/nbins", json!(-2)), "the number of bins `-2` cannot be read", "/data/0/axes/0/nbins"),
        (
            with("/distributions/1/x", json!("alpha_JER")),
            "the distribution `JES_term` is not a constraint term of `alpha_JES`",
            "/distributions/1",
        ),
        (
            with("/parameter_points/0/parameters/1/name", json!("other")),
            "`nom_alpha_JES` has no value in a parameter point",
            "/distributions/1",
        ),
        (with("/distributions/1/name", json!("model_SR")), "the name `model_SR` is taken", "/distributions/1"),
        (
            with(&format!("{sample}/data/contents/0"), json!("x")),
            "expected a number, found the string `x`",
            "/distributions/0/samples/1/data/contents/0",
        ),
    ] {
        assert_eq!(refused(&document), (message.to_owned(), pointer.to_owned()));
    }
}

/// Returns the document with a domain of 10,000 axes that `n_analyses` analyses name.
fn with_analyses(n_analyses: usize) -> Value {
    let axes: Vec<Value> = (0..10_000).map(|axis| json!({"name": format!("p{axis}"), "min": 0.0})).collect();
    let mut document = with("/domains/0/axes", axes.into());
    let analysis =
        |a: usize| json!({"name": format!("a{a}"), "likelihood": "observed", "domains": ["domain", "domain"]});
    document["analyses"] = (0..n_analyses).map(analysis).collect();
    document
}

#[test]
fn analyses_times_parameters_are_limited() {
    let read = read(&with_analyses(60));
    assert_eq!(read.workspace.measurements.len(), 60);
    assert!(read.workspace.measurements.iter().all(|measurement| measurement.parameters.len() == 1), "only `mu`");
    let (message, pointer) = refused(&with_analyses(110));
    assert!(message.contains("more than 1000000 settings of analyses"), "{message}");
    assert_eq!(pointer, "/analyses/100");
}

#[test]
fn points_and_domains_that_analyses_share_are_those_of_each() {
    let mut document = document();
    let analysis = |name: &str, init: &str, domains: &[&str]| json!({"name": name, "likelihood": "observed", "domains": domains, "init": init});
    document["analyses"] = json!([
        analysis("one", "low", &["narrow", "domain"]),
        analysis("two", "high", &["domain", "narrow"]),
        analysis("three", "low", &["domain"]),
    ]);
    let point = |name: &str, mu: f64| json!({"name": name, "parameters": [{"name": "mu", "value": mu}]});
    document["parameter_points"].as_array_mut().expect("a list").extend([point("low", 0.5), point("high", 2.5)]);
    let narrow = json!({"name": "narrow", "type": "product_domain", "axes": [{"name": "mu", "min": 0.0, "max": 3.0}]});
    document["domains"].as_array_mut().expect("a list").push(narrow);
    let read = read(&document);
    let found: Vec<_> = read.workspace.measurements.iter().map(|measurement| &measurement.parameters[0]).collect();
    let found: Vec<_> = found.iter().map(|mu| (mu.inits.clone(), mu.bounds.clone())).collect();
    let wanted = |init, max| (Some(vec![init]), Some(vec![[0.0, max]]));
    assert_eq!(found, [wanted(0.5, 3.0), wanted(2.5, 4.0), wanted(0.5, 4.0)]);
}

#[test]
fn a_part_of_a_vector_cannot_be_constant() {
    let point = json!({"name": "gamma_shape_bin_0", "value": 1.0, "const": true});
    let document = with("/parameter_points/0/parameters/0", point);
    assert_eq!(
        refused(&document),
        ("1 of the 2 parameters of `shape` are constant".to_owned(), "/parameter_points/0".to_owned())
    );
}

#[test]
fn unknown_keys_have_a_warning_and_are_written_back() {
    let mut document = adding("/distributions/0/samples/1/modifiers/0", "color", json!({"line": 2}));
    document["extension"] = json!([1, 2.5]);
    document["metadata"]["authors"] = json!(["The Authors"]);
    document["misc"] = json!({"notes": "kept", "ROOT_internal": {"attributes": {}}});
    let read = read(&document);
    let unknown: Vec<&String> = read.warnings.iter().filter(|warning| warning.contains("unknown")).collect();
    assert_eq!(
        unknown,
        [
            "the key at `/extension` is unknown and has no effect",
            "the key at `/distributions/0/samples/1/modifiers/0/color` is unknown and has no effect",
        ]
    );
    let again = converted(&read, TargetFormat::Hs3);
    let value: Value = serde_json::from_str(&again.text).expect("JSON");
    assert_eq!(value["distributions"][0]["samples"][1]["modifiers"][0]["color"], json!({"line": 2}));
    assert_eq!((&value["extension"], &value["misc"]["notes"]), (&json!([1, 2.5]), &json!("kept")));
    assert_eq!(value["metadata"]["authors"], json!(["The Authors"]));
    assert_eq!(again.warnings, [] as [String; 0]);
    let lost = converted(&read, TargetFormat::Pyhf).warnings.concat();
    assert!(lost.contains("`/extension`") && lost.contains("`/metadata/authors`"), "{lost}");
}

#[test]
fn the_binning_of_a_document_is_written_back() {
    let mut document = document();
    let axes = json!([{"name": "mass", "min": 100.0, "max": 180.0, "edges": [100.0, 120.0, 180.0]}]);
    document["distributions"][0]["axes"] = axes.clone();
    document["data"][0]["axes"] = axes.clone();
    let value: Value = serde_json::from_str(&converted(&read(&document), TargetFormat::Hs3).text).expect("JSON");
    assert_eq!((&value["distributions"][0]["axes"], &value["data"][0]["axes"]), (&axes, &axes));
}

#[test]
fn vals_are_relative_with_a_constraint_type_and_absolute_without() {
    let shape = "/distributions/0/samples/1/modifiers/1";
    let uncertainties = |document: &Value| match &read(document).workspace.channels[0].samples[1].modifiers[1].data {
        ns_core::spec::ModifierData::ShapeSys(uncertainties) => uncertainties.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(uncertainties(&document()), [5.0, 8.0]);
    let mut standard = document();
    let modifier = standard.pointer_mut(shape).and_then(Value::as_object_mut).expect("a modifier");
    modifier.remove("constraint_type");
    modifier.insert("constraint".to_owned(), json!("Poisson"));
    assert_eq!(uncertainties(&standard), [0.1, 0.2]);
    // Before it wrote a `constraint_type`, ROOT had the auxiliary data in `vals`.
    standard["metadata"]["packages"] = json!([{"name": "ROOT", "version": "6.30"}]);
    assert_eq!(refused(&standard).1, format!("{shape}/type"));
}

#[test]
fn terms_are_read_from_modifiers_likelihoods_and_auxiliary_distributions() {
    let term_of = |document: &Value, name: &str| {
        let config = read(document).workspace.measurements[0].parameters.iter().find(|one| one.name == name).cloned();
        config.map(|config| (config.constraints.unwrap_or_default(), config.auxdata.unwrap_or_default()))
    };
    let mut in_likelihood = document();
    let term = json!({"name": "mu_term", "type": "gaussian_dist", "x": "measured", "mean": "mu", "sigma": 0.25});
    in_likelihood["distributions"].as_array_mut().expect("a list").push(term);
    in_likelihood["likelihoods"][1]["distributions"] = json!(["model_SR", "mu_term"]);
    in_likelihood["likelihoods"][1]["data"] = json!(["obsData_SR", 1.25]);
    let gaussian = (vec![ConstraintTerm::Gaussian { sigma: 0.25 }], vec![1.25]);
    assert_eq!(term_of(&in_likelihood, "mu"), Some(gaussian));

    let mut auxiliary = document();
    let term = json!({"name": "mu_term", "type": "poisson_dist", "x": 16.0, "mean": "mean"});
    auxiliary["distributions"].as_array_mut().expect("a list").push(term);
    auxiliary["functions"] = json!([{"name": "mean", "type": "product", "factors": [16.0, "mu"]}]);
    auxiliary["likelihoods"][1]["aux_distributions"] = json!(["mu_term"]);
    assert_eq!(term_of(&auxiliary, "mu"), Some((vec![ConstraintTerm::Poisson { tau: 16.0 }], vec![16.0])));

    let two = json!([{"name": "JES_term", "type": "gaussian_dist", "x": "alpha_JES", "mean": 0.0, "sigma": 1.0},
                     {"name": "again", "type": "gaussian_dist", "x": "alpha_JES", "mean": 0.0, "sigma": 2.0}]);
    let mut twice = document();
    twice["distributions"].as_array_mut().expect("a list").truncate(1);
    twice["distributions"].as_array_mut().expect("a list").extend(two.as_array().expect("a list").clone());
    twice["likelihoods"][1]["aux_distributions"] = json!(["again"]);
    assert_eq!(refused(&twice).0, "the parameter `alpha_JES` has two different constraint terms");
}

#[test]
fn factors_that_root_made_constant_below_its_threshold_have_that_threshold() {
    let mut document = document();
    let stat = json!({"name": "staterror", "type": "staterror", "constraint_type": "Poisson",
                      "parameters": ["gamma_stat_SR_bin_0", "gamma_stat_SR_bin_1"]});
    let sample = &mut document["distributions"][0]["samples"][1];
    sample["modifiers"][1] = stat;
    sample["data"]["errors"] = json!([1.0, 4.0]);
    let fixed = json!({"name": "gamma_stat_SR_bin_0", "value": 1.0, "const": true});
    document["parameter_points"][0]["parameters"].as_array_mut().expect("a list").push(fixed);
    let workspace = read(&document).workspace;
    let config = workspace.measurements[0].parameters.iter().find(|one| one.name == "staterror_SR");
    let per_bin = config.and_then(|config| config.per_bin).expect("terms");
    assert_eq!((per_bin.constraint, per_bin.relative_threshold), (Some(PerBinKind::Poisson), Some(0.1)));
}

#[test]
fn writers_name_what_a_format_cannot_hold() {
    let text = include_bytes!("../../../../testdata/fuzz/workspace/constraint_terms.json");
    let read = ns_translate::read_document(text, &DocumentSource::Stdin).expect("a workspace");
    for format in [TargetFormat::Pyhf, TargetFormat::Hs3] {
        let error = convert(&read.workspace, &read.kept, format).expect_err("beyond the format");
        assert!(!error.items.is_empty());
        let value: Value = serde_json::from_slice(text).expect("JSON");
        for item in &error.items {
            assert!(value.pointer(&item.pointer).is_some(), "{item}");
            assert!(error.items.len() > 10 || error.to_string().contains(&item.to_string()), "{error}");
        }
    }
    let written = convert(&read.workspace, &read.kept, TargetFormat::Extended).expect("has keys for everything");
    let back = ns_translate::read_document(written.text.as_bytes(), &DocumentSource::Stdin).expect("readable");
    assert_eq!(back.workspace, read.workspace);
}

/// Returns the path of a model of the test data.
fn test_data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// Returns a workspace with a signal and a background, and what `change` makes of it as JSON.
fn changed(change: impl FnOnce(&mut Value)) -> Workspace {
    let modifier = |name: &str| json!({"name": name, "type": "normfactor", "data": null});
    let mut document = json!({
        "channels": [{"name": "SR", "samples": [
            {"name": "signal", "data": [5.0, 6.0], "modifiers": [modifier("mu")]},
            {"name": "background", "data": [50.0, 40.0], "modifiers": [
                {"name": "shape", "type": "shapesys", "data": [5.0, 4.0]}]}]}],
        "observations": [{"name": "SR", "data": [53.0, 47.0]}],
        "measurements": [{"name": "search", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0"
    });
    change(&mut document);
    let read = read_document(document.to_string().as_bytes(), &DocumentSource::Stdin);
    read.unwrap_or_else(|error| panic!("{}", full_message(&error))).workspace
}

#[test]
fn names_that_are_made_are_none_of_the_model() {
    let workspace = load(&test_data("hs3/models/names.json")).workspace;
    let text = convert(&workspace, &Default::default(), TargetFormat::Hs3).expect("a model that HS3 has").text;
    let back = read_document(text.as_bytes(), &DocumentSource::Stdin).expect("readable");
    assert_eq!(back.workspace, workspace);
    let document: Value = serde_json::from_str(&text).expect("JSON");
    // ROOT has one place for all of these.
    let mut names: Vec<&str> = Vec::new();
    for list in ["/distributions", "/functions", "/parameter_points/0/parameters", "/distributions/0/axes"] {
        let entries = document.pointer(list).and_then(Value::as_array).expect("a list");
        names.extend(entries.iter().map(|entry| entry["name"].as_str().expect("a name")));
    }
    names
        .push(document["misc"]["ROOT_internal"]["combined_datasets"]["obsData"]["index_cat"].as_str().expect("a name"));
    names.sort_unstable();
    let n_names = names.len();
    names.dedup();
    assert_eq!(names.len(), n_names);
    for name in ["nom_k_2", "k_sigma_2", "p_mean_2", "log_l_2", "obs_x_SR_2", "channelCat_2", "shape_1"] {
        assert!(names.contains(&name), "{name}");
    }
    assert_eq!(document["analyses"][1]["init"], "default_values_2");
}

#[test]
fn names_that_a_document_cannot_have_are_refused() {
    let normfactor = |name: &str| json!({"name": name, "type": "normfactor", "data": null});
    let with_factors = |names: &[&str]| {
        changed(|document| {
            let signal = document.pointer_mut("/channels/0/samples/0/modifiers").expect("a list");
            signal.as_array_mut().expect("a list").extend(names.iter().map(|name| normfactor(name)));
        })
    };
    let with_term = |name: &str| {
        changed(|document| {
            document["channels"][0]["samples"][0]["modifiers"][0] = normfactor(name);
            let config = &mut document["measurements"][0]["config"];
            let term = json!({"name": name, "constraints": [{"type": "gaussian", "sigma": 0.1}], "auxdata": [1.0]});
            *config = json!({"poi": "", "parameters": [term]});
        })
    };
    let twice = |list: &'static str| {
        changed(|document| {
            let list = document[list].as_array_mut().expect("a list");
            list.push(list[0].clone());
        })
    };
    for (workspace, message) in [
        (
            with_factors(&["model_SR"]),
            "a parameter that is called like the distribution of a channel, `model_SR` \
             (`/channels/0/samples/0/modifiers/1`)",
        ),
        (
            with_factors(&["shape_bin_1", "shape_0", "shape[1]"]),
            "a vector whose elements are called like other parameters, `shape` (`/channels/0/samples/1/modifiers/0`)",
        ),
        (
            with_term("Lumi"),
            "a normfactor with a Gaussian term and the name of the luminosity, `Lumi` \
             (`/channels/0/samples/0/modifiers/0`)",
        ),
        (
            changed(|document| document["channels"][0]["samples"][0]["name"] = json!("background")),
            "a second sample of the channel, called `background` (`/channels/0/samples/1/name`)",
        ),
        (twice("channels"), "a second channel called `SR` (`/channels/1/name`)"),
        (twice("measurements"), "a second measurement called `search` (`/measurements/1/name`)"),
    ] {
        let error = convert(&workspace, &Default::default(), TargetFormat::Hs3).expect_err(message);
        assert!(error.to_string().contains(message), "{error}");
    }
}

/// Returns the clipping of the samples of the first channel.
fn clips(workspace: &Workspace) -> Vec<Option<f64>> {
    workspace.channels[0].samples.iter().map(|sample| sample.template.clip).collect()
}

#[test]
fn templates_are_cut_off_where_root_does_it() {
    // In the XML, in what ROOT exports, and in what is written of both.
    let xml = load(&test_data("histfactory/clipped.xml"));
    let root = load(&test_data("hs3/root/clipped.json"));
    assert_eq!(clips(&xml.workspace), [None, Some(0.0)]);
    assert_eq!(clips(&root.workspace), [Some(0.0), None]);
    for loaded in [xml, root] {
        let text = convert(&loaded.workspace, &loaded.kept, TargetFormat::Hs3).expect("a model that HS3 has").text;
        let back = read_document(text.as_bytes(), &DocumentSource::Stdin).expect("readable");
        assert_eq!(back.workspace, loaded.workspace);
    }
    // Others do not do it.
    let text = std::fs::read_to_string(test_data("hs3/root/clipped.json")).expect("readable");
    let other = text.replace("\"ROOT\"", "\"pyhs3\"");
    let read = read_document(other.as_bytes(), &DocumentSource::Stdin).expect("readable");
    assert_eq!(clips(&read.workspace), [None, None]);
}

#[test]
fn limits_of_templates_are_written_if_they_are_those_of_root() {
    let histosys = json!({"name": "steep", "type": "histosys", "data": {"lo_data": [1.0, 2.0], "hi_data": [9.0, 8.0]}});
    let limited = |lowest: Value, of_measurement: Value| {
        changed(|document| {
            document["channels"][0]["samples"][0]["modifiers"][0] = histosys.clone();
            document["measurements"][0]["config"] = json!({"poi": "", "parameters": [], "clip": of_measurement});
            document["channels"][0]["samples"][0]["clip"] = lowest;
        })
    };
    let of_root = limited(json!(0.0), json!({"templates": 0.0}));
    let text = convert(&of_root, &Default::default(), TargetFormat::Hs3).expect("a model that HS3 has").text;
    assert_eq!(read_document(text.as_bytes(), &DocumentSource::Stdin).expect("readable").workspace, of_root);
    let without_shift = changed(|document| document["channels"][0]["samples"][1]["clip"] = json!(0.0));
    for (other, message) in [
        (limited(json!(0.5), json!({})), "clipping of the sample `signal` (`/channels/0/samples/0/clip`)"),
        (without_shift, "clipping of the sample `background` (`/channels/0/samples/1/clip`)"),
        (
            limited(json!(0.0), json!({"templates": 1e-9})),
            "clipping in the measurement `search` (`/measurements/0/config/clip`)",
        ),
        (
            limited(json!(0.0), json!({"bins": 0.0})),
            "clipping in the measurement `search` (`/measurements/0/config/clip`)",
        ),
    ] {
        let error = convert(&other, &Default::default(), TargetFormat::Hs3).expect_err(message);
        assert!(error.to_string().contains(message), "{error}");
    }
}

fn load(path: &Path) -> LoadedWorkspace {
    load_document(&LoadRequest::new(DocumentSource::Path(path.to_owned())))
        .unwrap_or_else(|error| panic!("{}", full_message(&error)))
}

fn digest_after_hs3(workspace: &Workspace, name: &str) -> [String; 2] {
    let converted = |workspace: &Workspace, format| {
        convert(workspace, &Default::default(), format).unwrap_or_else(|error| panic!("{name}: {error}")).text
    };
    let back = ns_translate::read_document(converted(workspace, TargetFormat::Hs3).as_bytes(), &DocumentSource::Stdin);
    let back = back.unwrap_or_else(|error| panic!("{name}: {}", full_message(&error)));
    [workspace, &back.workspace].map(|workspace| {
        digest(converted(workspace, TargetFormat::Pyhf).as_bytes(), DigestAlgorithm::Sha256).expect("JSON")
    })
}

#[test]
fn examples_keep_their_digest_through_hs3() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for name in ["simple", "shapes", "background"] {
        let workspace = load(&examples.join(format!("{name}.json"))).workspace;
        let [before, after] = digest_after_hs3(&workspace, name);
        assert_eq!(before, after, "{name}");
    }
}

#[test]
#[ignore = "needs published likelihoods"]
fn published_workspaces_keep_their_digest_through_hs3() {
    let folder = ns_testkit::published::data_folder().join("workspaces");
    let mut n_read = 0;
    for path in std::fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path()) {
        let name = path.to_string_lossy().into_owned();
        if name.contains("patch") || name.contains("synthsig") {
            continue;
        }
        let [before, after] = digest_after_hs3(&load(&path).workspace, &name);
        assert_eq!(before, after, "{name}");
        n_read += 1;
    }
    assert!(n_read > 0);
}

#[test]
#[ignore = "needs published likelihoods"]
fn published_documents_of_root_are_read_and_written_back() {
    let folder = ns_testkit::published::data_folder().join("hs3");
    let mut n_read = 0;
    for path in std::fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path()) {
        let bytes = read_bytes(&DocumentSource::Path(path.clone())).expect("readable");
        let read = read_document(&bytes, &DocumentSource::Path(path.clone()))
            .unwrap_or_else(|error| panic!("{}", full_message(&error)));
        if path.to_string_lossy().ends_with("hifa.json") {
            continue;
        }
        let again = converted(&read, TargetFormat::Hs3);
        let back = ns_translate::read_document(again.text.as_bytes(), &DocumentSource::Stdin).expect("readable");
        assert_eq!(back.workspace, read.workspace, "{}", path.display());
        n_read += 1;
    }
    assert!(n_read > 0);
}

#[test]
fn the_hint_of_a_list_without_entries_says_that_there_are_none() {
    for (list, said) in [("data", "the document has no data set"), ("domains", "the document has no domain")] {
        for empty in [Value::Null, json!([])] {
            let error = read_for(&with(&format!("/{list}"), empty), Some("search")).map(|_| ()).expect_err(list);
            assert_eq!(error.advice(), Some(said.into()), "{error}");
        }
    }
}

#[test]
fn the_list_of_parameters_of_interest_goes_before_what_is_kept_beside_it() {
    let workspace = json!({
        "channels": [{"name": "c", "samples": [{"name": "s", "data": [5.0], "modifiers": [
            {"name": "mu", "type": "normfactor", "data": null},
            {"name": "nu", "type": "normfactor", "data": null}]}]}],
        "observations": [{"name": "c", "data": [6.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": [{"name": "nu", "poi": true}]}}],
        "version": "1.0.0"});
    let read = |document: &Value| {
        read_document(document.to_string().as_bytes(), &DocumentSource::Stdin).expect("a readable document")
    };
    let first = read(&workspace);
    let written = convert(&first.workspace, &first.kept, TargetFormat::Hs3).expect("a document");
    let mut written: Value = serde_json::from_str(&written.text).expect("JSON");
    for (listed, taken, is_warned) in [
        (json!(["mu", "nu"]), &["mu", "nu"][..], false),
        (json!(["nu", "mu"]), &["nu"], true),
        (json!(["mu"]), &["mu"], false),
    ] {
        written["analyses"][0]["parameters_of_interest"] = listed.clone();
        let back = read(&written);
        assert_eq!(back.workspace.measurements[0].pois().collect::<Vec<_>>(), taken, "{listed}");
        let is_said = back.warnings.iter().any(|warning| warning.contains("has the parameters of interest"));
        assert_eq!(is_said, is_warned, "{listed}: {:?}", back.warnings);
    }
}
