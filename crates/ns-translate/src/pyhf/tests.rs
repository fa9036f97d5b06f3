//! Compares the fast reader with the diagnosing one, and tries both on arbitrary bytes.

use ns_core::interpolate::InterpolationRule;
use ns_core::spec::{
    Channel, Clipping, ConstrainedQuantity, ConstraintTerm, Expression, LogNormalDensity, Measurement, Modifier,
    ModifierData, ModifierInterpolation, MorphingTerm, Observation, ParameterConfig, PerBinConstraint, PerBinKind,
    Sample, TemplateRule, Workspace,
};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z_]{1,8}", "\\PC{0,6}", Just("lumi".to_owned())]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![-1e3..1e3, proptest::num::f64::NORMAL, (0_u32..1000).prop_map(f64::from)]
}

fn numbers() -> impl Strategy<Value = Vec<f64>> {
    vec(number(), 1..5)
}

fn expression() -> impl Strategy<Value = Expression> {
    let text = prop_oneof![Just("mu*(1 + x[0]^2)".to_owned()), "\\PC{0,8}"];
    (text, option::of(vec(name(), 1..3))).prop_map(|(text, parameters)| Expression { text, parameters })
}

fn modifier() -> impl Strategy<Value = Modifier> {
    let term = (expression(), numbers()).prop_map(|(coefficient, data)| MorphingTerm { coefficient, data });
    let data = prop_oneof![
        expression().prop_map(ModifierData::Formula),
        vec(term, 1..3).prop_map(ModifierData::Morphing),
        Just(ModifierData::NormFactor),
        Just(ModifierData::ShapeFactor),
        Just(ModifierData::Lumi),
        numbers().prop_map(ModifierData::ShapeSys),
        numbers().prop_map(ModifierData::StatError),
        numbers().prop_map(ModifierData::McStat),
        (number(), number()).prop_map(|(lo, hi)| ModifierData::NormSys { lo, hi }),
        (numbers(), numbers()).prop_map(|(lo_data, hi_data)| ModifierData::HistoSys { lo_data, hi_data }),
    ];
    let rule = option::of(proptest::sample::select(InterpolationRule::ALL.to_vec()));
    (name(), data, rule, option::of(number())).prop_map(|(name, data, rule, scale)| {
        let name = if data == ModifierData::Lumi { "lumi".to_owned() } else { name };
        let is_interpolated = matches!(data, ModifierData::NormSys { .. } | ModifierData::HistoSys { .. });
        let interpolation = ModifierInterpolation { rule, scale };
        let interpolation = if is_interpolated { interpolation } else { ModifierInterpolation::default() };
        Modifier { name, data, interpolation }
    })
}

fn constraint_term() -> impl Strategy<Value = ConstraintTerm> {
    let density = prop_oneof![Just(LogNormalDensity::Datum), Just(LogNormalDensity::Parameter)];
    prop_oneof![
        number().prop_map(|sigma| ConstraintTerm::Gaussian { sigma }),
        (number(), number()).prop_map(|(sigma_lo, sigma_hi)| ConstraintTerm::AsymmetricGaussian { sigma_lo, sigma_hi }),
        number().prop_map(|tau| ConstraintTerm::Poisson { tau }),
        number().prop_map(|tau| ConstraintTerm::Gamma { tau }),
        (number(), density).prop_map(|(kappa, density)| ConstraintTerm::LogNormal { kappa, density }),
        Just(ConstraintTerm::Flat),
    ]
}

fn extension() -> impl Strategy<Value = ParameterConfig> {
    let kind = option::of(prop_oneof![Just(PerBinKind::Gaussian), Just(PerBinKind::Poisson)]);
    let per_bin = option::of((kind, option::of(number())));
    let beta = option::of((number(), number()));
    let elements = option::of(vec(name(), 1..4));
    let terms = option::of(vec(constraint_term(), 1..4));
    // A parameter is in a group once.
    let groups = btree_set(name(), 0..3).prop_map(|groups| groups.into_iter().collect::<Vec<_>>());
    let of_interest = (any::<bool>(), groups);
    (terms, per_bin, beta, elements, of_interest).prop_map(
        |(constraints, per_bin, beta, elements, (is_poi, groups))| {
            let per_bin =
                per_bin.map(|(constraint, relative_threshold)| PerBinConstraint { constraint, relative_threshold });
            let beta = beta.map(|(offset, factor)| ConstrainedQuantity { offset, factor });
            ParameterConfig { constraints, per_bin, beta, elements, is_poi, groups, ..Default::default() }
        },
    )
}

fn clipping() -> impl Strategy<Value = Clipping> {
    [(); 3].map(|()| option::of(number())).prop_map(|[templates, samples, bins]| Clipping { templates, samples, bins })
}

fn parameter() -> impl Strategy<Value = ParameterConfig> {
    let lists = [(); 4].map(|()| option::of(numbers()));
    let bounds = option::of(vec([number(), number()], 1..3));
    (name(), lists, bounds, option::of(any::<bool>()), extension()).prop_map(
        |(name, lists, bounds, fixed, extension)| {
            let [inits, auxdata, factors, sigmas] = lists;
            ParameterConfig { name, inits, bounds, auxdata, factors, sigmas, fixed, ..extension }
        },
    )
}

fn workspace() -> impl Strategy<Value = Workspace> {
    let template = (option::of(number()), any::<bool>()).prop_map(|(clip, normalize)| TemplateRule { clip, normalize });
    let sample = (name(), numbers(), vec(modifier(), 0..4), template)
        .prop_map(|(name, data, modifiers, template)| Sample { name, data, modifiers, template });
    let channel = (name(), vec(sample, 1..3)).prop_map(|(name, samples)| Channel { name, samples });
    let observation = (name(), numbers()).prop_map(|(name, data)| Observation { name, data });
    let poi = option::of("[a-z]{1,4}");
    let measurement = (name(), poi, vec(parameter(), 0..3), clipping())
        .prop_map(|(name, poi, parameters, clip)| Measurement { name, poi, parameters, clip });
    (vec(channel, 1..3), vec(observation, 1..3), vec(measurement, 1..3))
        .prop_map(|(channels, observations, measurements)| Workspace { channels, observations, measurements })
}

fn fast_text(text: &str) -> Option<Workspace> {
    fast::read(&mut serde_json::Deserializer::from_str(text)).ok()
}

/// What is done to one value somewhere in a document.
#[derive(Debug, Clone)]
enum Damage {
    Put(Value),
    Wrap,
    Rename(String),
    Drop,
    Duplicate,
}

fn damage() -> impl Strategy<Value = Damage> {
    let values = [
        "null",
        "true",
        "3",
        "-0.0",
        "\"x\"",
        "[]",
        "{}",
        "[1]",
        "[[1,2]]",
        "{\"lo\":1,\"hi\":2}",
        "\"flat\"",
        "\"linear\"",
        "\"datum\"",
    ];
    let words = [
        "name",
        "data",
        "type",
        "lo",
        "hi_data",
        "normsys",
        "lumi",
        "inits",
        "poi",
        "x",
        "clip",
        "normalize",
        "elements",
        "groups",
        "mcstat",
        "beta",
        "sigma",
        "tau",
        "gaussian",
        "constraint",
        "scale",
        "factor",
    ];
    prop_oneof![
        proptest::sample::select(values.to_vec())
            .prop_map(|text| Damage::Put(serde_json::from_str(text).unwrap_or_default())),
        Just(Damage::Wrap),
        proptest::sample::select(words.to_vec()).prop_map(|word| Damage::Rename(word.to_owned())),
        Just(Damage::Drop),
        Just(Damage::Duplicate),
    ]
}

/// Damages the `target`-th value of a document, counted from the top.
fn damaged(value: &mut Value, target: &mut usize, damage: &Damage) -> bool {
    if *target == 0 {
        match damage {
            Damage::Put(other) => *value = other.clone(),
            Damage::Wrap => *value = Value::Array(vec![value.take()]),
            Damage::Rename(word) => match value {
                Value::Object(map) => {
                    let first = map.keys().next().cloned().unwrap_or_default();
                    let moved = map.remove(&first).unwrap_or_default();
                    map.insert(word.clone(), moved);
                }
                other => *other = Value::String(word.clone()),
            },
            Damage::Drop => match value {
                Value::Object(map) => drop(map.pop_first_entry()),
                Value::Array(items) => drop(items.pop()),
                other => *other = Value::Null,
            },
            Damage::Duplicate => {
                if let Value::Array(items) = value {
                    items.extend(items.first().cloned());
                }
            }
        }
        return true;
    }
    *target -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| damaged(item, target, damage)),
        Value::Object(map) => map.values_mut().any(|item| damaged(item, target, damage)),
        _ => false,
    }
}

trait PopFirst {
    fn pop_first_entry(&mut self) -> Option<Value>;
}

impl PopFirst for serde_json::Map<String, Value> {
    fn pop_first_entry(&mut self) -> Option<Value> {
        let first = self.keys().next().cloned()?;
        self.remove(&first)
    }
}

proptest! {
    #[test]
    fn a_written_workspace_reads_back_the_same(workspace in workspace()) {
        let document = write_workspace(&workspace);
        let text = document.to_string();
        prop_assert_eq!(&read_workspace(text.as_bytes()).map_err(|error| error.to_string()), &Ok(workspace.clone()));
        prop_assert_eq!(from_value(&document).map_err(|error| error.to_string()), Ok(workspace));
    }

    #[test]
    fn both_readers_agree_on_damaged_documents(
        workspace in workspace(), damages in vec((0_usize..60, damage()), 1..3)
    ) {
        let mut document = write_workspace(&workspace);
        for (mut target, damage) in damages {
            damaged(&mut document, &mut target, &damage);
        }
        let text = document.to_string();
        let diagnosed = diagnose_text(&text);
        prop_assert_eq!(&fast_text(&text), &diagnosed.as_ref().ok().cloned());
        prop_assert_eq!(&fast::read_value(&document).ok(), &diagnosed.as_ref().ok().cloned());
        if let Err(error) = diagnosed {
            let pointer = error.pointer().unwrap_or("").to_owned();
            // A missing key's pointer is its object's; every other one leads to something in the
            // document.
            prop_assert!(document.pointer(&pointer).is_some(), "{} in {}", error, text);
            prop_assert!(from_value(&document).is_err());
        }
    }

    #[test]
    fn both_readers_agree_on_documents_with_damaged_bytes(
        workspace in workspace(), place in any::<prop::sample::Index>(), bytes in "[\\[\\]{}\",:0-9eE.+ntu\\\\-]{0,3}", cut in 0_usize..4
    ) {
        let text = write_workspace(&workspace).to_string();
        let starts: Vec<usize> = text.char_indices().map(|(start, _)| start).collect();
        let start = *place.get(&starts);
        let end = text[start..].char_indices().nth(cut).map_or(text.len(), |(offset, _)| start + offset);
        let text = format!("{}{bytes}{}", &text[..start], &text[end..]);
        let diagnosed = diagnose_text(&text);
        prop_assert_eq!(&fast_text(&text), &diagnosed.ok(), "{}", text);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = read_workspace(&bytes);
        let _ = read_value(&bytes);
        let _ = crate::patch::Patch::from_bytes(&bytes);
        let _ = crate::patchset::PatchSet::from_bytes(&bytes);
        let _ = crate::digest::canonical_json(&bytes);
    }

    #[test]
    fn no_json_like_text_makes_a_reader_panic(text in "[\\[\\]{}\",:0-9eE.+\\\\ud8NaInfity -]{0,60}") {
        let ours = json::parse(&text).is_ok();
        let has_literal = text.contains("NaN") || text.contains("Infinity");
        // serde_json's own limit on depth and on numbers is met first by the strict reading of
        // values.
        let theirs = serde_json::from_str::<Value>(&text);
        if !has_literal && !theirs.as_ref().is_err_and(|error| error.to_string().contains("out of range")) {
            prop_assert_eq!(ours, theirs.is_ok(), "{}", text);
        }
    }
}

#[test]
#[ignore = "needs published likelihoods"]
fn both_readers_agree_on_published_workspaces() {
    let folder = ns_testkit::published::data_folder().join("workspaces");
    let mut n_read = 0;
    for path in std::fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path()) {
        let name = path.to_string_lossy().into_owned();
        if name.contains("patch") || name.contains("synthsig") {
            continue;
        }
        let bytes = crate::read_bytes(&crate::DocumentSource::Path(path)).expect("readable");
        let text = json::decode(&bytes).expect("text");
        let diagnosed = diagnose_text(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(fast_text(text), Some(diagnosed.clone()), "{name}");
        assert_eq!(from_value(&write_workspace(&diagnosed)).ok(), Some(diagnosed), "{name}");
        n_read += 1;
    }
    println!("{n_read} workspaces");
    assert!(n_read > 0);
}

#[test]
fn wrong_data_of_formulas_have_their_place() {
    let error = |kind: &str, data: Value| {
        let modifier = serde_json::json!({"name": "f", "type": kind, "data": data});
        let sample = serde_json::json!({"name": "s", "data": [1.0], "modifiers": [modifier]});
        let document = serde_json::json!({
            "channels": [{"name": "SR", "samples": [sample]}],
            "observations": [{"name": "SR", "data": [1]}],
            "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
            "version": "1.0.0"
        });
        read_workspace(document.to_string().as_bytes()).expect_err("wrong data").to_string()
    };
    let at = "/channels/0/samples/0/modifiers/0/data";
    let null = error("formula", Value::Null);
    assert!(null.contains("a `formula` modifier's data must be an object with `expression`, found `null`"), "{null}");
    let missing = error("formula", serde_json::json!({"parameters": ["mu"]}));
    assert!(missing.contains("expression") && missing.contains(at), "{missing}");
    let empty = error("morphing", serde_json::json!({"terms": []}));
    assert!(empty.contains(&format!("{at}/terms")), "{empty}");
    let unknown = error("morphing", serde_json::json!({"terms": [{"expression": "c", "data": [1], "dta": 2}]}));
    assert!(unknown.contains("dta") && unknown.contains(&format!("{at}/terms/0")), "{unknown}");
}
