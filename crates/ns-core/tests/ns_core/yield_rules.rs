//! What compilation makes of rules of yields, and what it refuses.

use ns_core::expected::expected_main;
use ns_core::interpolate::Interpolation;
use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Observation, ParameterConfig, Sample, Workspace};
use ns_core::templates::{Inputs, TemplateSelection, TemplateVariations};
use ns_core::{CompileError, CompileOptions, Model, compile};
use ns_testkit::assert_all_close;
use ns_testkit::random::{self, Random, Shape};
use ns_testkit::small::sample;

/// Returns a workspace of channels with two bins each, of one sample with a normfactor and an
/// `mcstat`.
fn workspace(channels: &[(&str, &str)], parameters: Vec<ParameterConfig>) -> Workspace {
    let channel = |&(name, mc_stat): &(&str, &str)| {
        let modifiers = [("mu", ModifierData::NormFactor), (mc_stat, ModifierData::McStat(vec![1.0, 0.0]))];
        Channel { name: name.to_owned(), samples: vec![sample("signal", &[5.0, 6.0], &modifiers)] }
    };
    let observation = |(name, _): &(&str, &str)| Observation { name: (*name).to_owned(), data: vec![4.0, 7.0] };
    Workspace {
        channels: channels.iter().map(channel).collect(),
        observations: channels.iter().map(observation).collect(),
        measurements: vec![Measurement { name: "m".to_owned(), parameters, ..Default::default() }],
    }
}

fn compiled(workspace: &Workspace) -> Result<Model, CompileError> {
    compile(workspace, &CompileOptions::default())
}

fn elements(name: &str, names: &[&str]) -> ParameterConfig {
    let elements = Some(names.iter().map(|&name| name.to_owned()).collect());
    ParameterConfig { name: name.to_owned(), elements, ..Default::default() }
}

#[test]
fn parameters_of_mcstat_are_named_as_in_combine_and_fixed_where_nothing_is_uncertain() {
    let model = compiled(&workspace(&[("SR", "prop_binSR")], Vec::new())).expect("sound");
    assert_eq!(model.parameters.names, ["mu", "prop_binSR_bin0", "prop_binSR_bin1"]);
    assert_eq!(model.parameters.fixed, [false, false, true]);
    // 2 · 5 + 0.5 · 2 · 1 in the first bin.
    assert_eq!(expected_main(&model, &[2.0, 0.5, 0.5]), [11.0, 12.0]);
}

#[test]
fn elements_have_the_names_that_a_measurement_gives() {
    let named = |names: &[&str]| compiled(&workspace(&[("SR", "stat")], vec![elements("stat", names)]));
    assert_eq!(named(&["first", "second"]).expect("sound").parameters.names, ["mu", "first", "second"]);
    let refused = |names: &[&str]| named(names).expect_err("refused").to_string();
    let place = "/measurements/0/config/parameters/0/elements";
    assert!(refused(&["first"]).contains(place), "{}", refused(&["first"]));
    for names in [["first", "first"], ["first", "mu"], ["stat", "second"]] {
        assert!(refused(&names).contains("is that of another parameter"), "{}", refused(&names));
    }
    let scalar = compiled(&workspace(&[("SR", "stat")], vec![elements("mu", &["r"])])).expect_err("refused");
    assert_eq!(scalar.to_string(), format!("{place}: `mu` is one number, and has no elements to name"));
}

#[test]
fn one_mcstat_in_two_channels_is_refused_with_both_places() {
    let error = compiled(&workspace(&[("A", "stat"), ("B", "stat")], Vec::new())).expect_err("refused");
    let text = error.to_string();
    assert!(text.starts_with("/channels/1/samples/0/modifiers/1: channel `B`, sample `signal`"), "{text}");
    assert!(text.ends_with("the other one is at /channels/0/samples/0/modifiers/1"), "{text}");
}

#[test]
fn masks_keep_rules_and_refuse_to_cut_a_normalised_template() {
    let mut workspace = workspace(&[("SR", "stat")], Vec::new());
    let params = [1.3, 0.4, 0.0];
    let whole = compiled(&workspace).expect("sound");
    let masked = whole.without_bins(&[false, true]).expect("sound");
    assert_eq!(expected_main(&masked, &params), expected_main(&whole, &params)[..1]);
    workspace.channels[0].samples[0].template.normalize = true;
    let whole = compiled(&workspace).expect("sound");
    let error = whole.without_bins(&[false, true]).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "bins of channel `SR` cannot be masked in part: sample `signal` is normalised over all of them"
    );
}

#[test]
fn masks_of_channels_leave_the_counts_of_the_others_as_they_are() {
    for seed in 0..40 {
        let model = random::model(seed, Shape::YIELD_RULES, Interpolation::default());
        let params = random::point(&model.parameters, &mut Random::new(seed), 1.0);
        let bins = model.channel_bins(0);
        if bins.len() == model.n_bins() {
            continue;
        }
        let masked: Vec<bool> = (0..model.n_bins()).map(|bin| bins.contains(&bin)).collect();
        let rest = model.without_bins(&masked).expect("whole channels");
        assert_all_close(&expected_main(&rest, &params), &expected_main(&model, &params)[bins.end..], 1e-14, "counts");
    }
}

#[test]
fn templates_of_models_with_rules_are_no_inputs() {
    let model = compiled(&workspace(&[("SR", "stat")], Vec::new())).expect("sound");
    let selection =
        TemplateSelection { sample: "signal".to_owned(), channel: None, variations: TemplateVariations::None };
    let error = Inputs::new(&model, &[selection]).expect_err("refused");
    assert_eq!(error.to_string(), "templates of models with mcstat modifiers cannot be inputs");
}

#[test]
fn a_normalised_template_keeps_its_sum_where_it_is_clipped() {
    let shift = ModifierData::HistoSys { lo_data: vec![1.0, 10.0, 4.0], hi_data: vec![9.0, 2.0, 4.0] };
    let modifiers = vec![Modifier::new("a", shift)];
    let data = vec![5.0, 6.0, 4.0];
    let mut sample = Sample { name: "b".to_owned(), data, modifiers, ..Default::default() };
    (sample.template.clip, sample.template.normalize) = (Some(0.5), true);
    let workspace = Workspace {
        channels: vec![Channel { name: "SR".to_owned(), samples: vec![sample] }],
        observations: vec![Observation { name: "SR".to_owned(), data: vec![1.0; 3] }],
        measurements: vec![Measurement { name: "m".to_owned(), ..Default::default() }],
    };
    let model = compiled(&workspace).expect("sound");
    // At 2 the shifts give 13, -2 and 4: clipped 13, 0.5 and 4, whose sum is 17.5 in place of 15.
    let expected: Vec<f64> = [13.0, 0.5, 4.0].iter().map(|t| t * 15.0 / 17.5).collect();
    assert_all_close(&expected_main(&model, &[2.0]), &expected, 1e-14, "counts");
}
