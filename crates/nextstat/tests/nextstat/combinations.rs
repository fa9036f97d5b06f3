//! Likelihoods of combinations: the sum of those of their parts if nothing is shared, and one fit
//! where everything is apart is as many fits.

use nextstat::combination::{Combination, CombinationInput, CombinationMap, CombineRequest, combine};
use nextstat::{Analysis, CardOptions, CompiledModel, DocumentSource, Face, FitRequest, Settings};
use ns_core::Likelihood;
use ns_core::spec::Workspace;
use ns_testkit::random::{Random, Shape, point, workspace};
use ns_translate::workspace::{ChannelJoin, CorrelatedBy, WorkspaceJoin};
use ns_translate::{pyhf, python_json};

/// Returns a random workspace whose channels have names of their own.
fn part(seed: u64, label: &str, shape: Shape) -> Workspace {
    let mut made = workspace(seed, shape);
    for channel in &mut made.channels {
        channel.name = format!("{label}_{}", channel.name);
    }
    for observation in &mut made.observations {
        observation.name = format!("{label}_{}", observation.name);
    }
    made
}

fn input(workspace: &Workspace, label: &str) -> CombinationInput {
    let text = pyhf::write_workspace(workspace).to_string();
    CombinationInput::from_json(text.as_bytes()).expect("a workspace").labelled_as(label.to_owned())
}

fn combined(parts: &[(&Workspace, &str)], map: &str) -> Combination {
    let map = Some(CombinationMap::from_yaml(map.as_bytes()).expect("a map"));
    let inputs = parts.iter().map(|(workspace, label)| input(workspace, label)).collect();
    combine(inputs, &CombineRequest { map, ..CombineRequest::default() }).unwrap_or_else(|error| panic!("{error}"))
}

fn compiled(made: &Combination) -> CompiledModel {
    let text = python_json(&made.workspace).expect("text keys");
    CompiledModel::from_json(text.as_bytes(), &Default::default()).expect("a model")
}

/// Returns the index in a combination of each parameter of a part. Elements keep their number:
/// `stat_0[1]` is `stat_0_A[1]`.
fn indices(part: &CompiledModel, whole: &CompiledModel, label: &str) -> Vec<usize> {
    let names = &whole.model().parameters.names;
    let renamed = |name: &String| match name.split_once('[') {
        Some((name, element)) => format!("{name}_{label}[{element}"),
        None => format!("{name}_{label}"),
    };
    let find = |name: &String| names.iter().position(|known| *known == renamed(name) || known == name);
    part.model().parameters.names.iter().map(|name| find(name).unwrap_or_else(|| panic!("{name}"))).collect()
}

const SHAPE: Shape = Shape { oddities: false, ..Shape::PYHF };
const LABELS: [&str; 3] = ["A", "B", "C"];

#[test]
fn minus_ln_l_of_a_decorrelated_combination_is_the_sum_of_its_parts() {
    let mut worst = 0.0_f64;
    for seed in 0..30 {
        let parts: Vec<Workspace> = (0..3).map(|i| part(3 * seed + i, LABELS[i as usize], SHAPE)).collect();
        let labelled: Vec<(&Workspace, &str)> = parts.iter().zip(LABELS).collect();
        let whole = compiled(&combined(&labelled, "same_names: decorrelate\npoi: mu_B\n"));
        let models: Vec<CompiledModel> =
            parts.iter().map(|part| CompiledModel::new(part.clone(), &Default::default()).expect("a model")).collect();
        let n_params: usize = models.iter().map(|model| model.model().n_params()).sum();
        assert_eq!(whole.model().n_params(), n_params);
        let mut random = Random::new(seed);
        for _ in 0..5 {
            let mut at = vec![0.0; n_params];
            let mut sum = 0.0;
            for (model, label) in models.iter().zip(LABELS) {
                let here = point(&model.model().parameters, &mut random, 2.0);
                indices(model, &whole, label).into_iter().zip(&here).for_each(|(i, &value)| at[i] = value);
                sum += nll(model, &here);
            }
            let of_whole = nll(&whole, &at);
            if sum.is_finite() || of_whole.is_finite() {
                worst = worst.max((of_whole - sum).abs() / sum.abs());
            }
        }
    }
    // Sums of terms in another order.
    assert!(worst < 1e-12, "{worst:e}");
}

fn nll(model: &CompiledModel, at: &[f64]) -> f64 {
    ns_compute::CpuLikelihood::new(model.model()).nll(at)
}

#[test]
fn a_combination_with_separate_parameters_of_interest_is_fitted_like_its_parts() {
    let shape = Shape { gentle: true, ..SHAPE };
    let fit = |model: &CompiledModel| {
        let analysis = Analysis::new(model, &Settings::default()).expect("no settings");
        analysis.fit(&FitRequest::default()).expect("a fit").result
    };
    let mut n_compared = 0;
    for seed in [1, 4, 7, 10] {
        let parts = [part(seed, "A", shape), part(seed + 100, "B", shape)];
        let made = combined(&[(&parts[0], "A"), (&parts[1], "B")], "same_names: decorrelate\npoi: mu_A\n");
        let whole = compiled(&made);
        let together = fit(&whole);
        for (part, label) in parts.iter().zip(LABELS) {
            let model = CompiledModel::new(part.clone(), &Default::default()).expect("a model");
            let alone = fit(&model);
            for (p, i) in indices(&model, &whole, label).into_iter().enumerate() {
                let (Some(sigma), Some(sigma_of_whole)) = (alone.uncertainties[p], together.uncertainties[i]) else {
                    continue;
                };
                n_compared += 1;
                let name = &model.model().parameters.names[p];
                let shift = (alone.bestfit[p] - together.bestfit[i]) / sigma;
                assert!(shift.abs() < 1e-6, "{seed} {label} {name}: {shift:e} σ");
                assert!((sigma_of_whole / sigma - 1.0).abs() < 1e-6, "{seed} {label} {name}");
            }
        }
    }
    assert!(n_compared > 60, "{n_compared} parameters were compared");
}

#[test]
fn provenance_names_the_workspaces_and_the_map() {
    let parts = [part(1, "A", SHAPE), part(2, "B", SHAPE)];
    let document = |map: &str| combined(&[(&parts[0], "A"), (&parts[1], "B")], map).document();
    let yaml = document("same_names: decorrelate\npoi: mu_A\n");
    let json = document(r#"{"poi": "mu_A", "same_names": "decorrelate"}"#);
    assert_eq!(yaml["provenance"]["map"]["sha256"], json["provenance"]["map"]["sha256"]);
    let labels: Vec<&str> = yaml["provenance"]["workspaces"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|found| found["label"].as_str())
        .collect();
    assert_eq!(labels, ["A", "B"]);
    assert_eq!(yaml["nextstat_version"], env!("CARGO_PKG_VERSION"));
}

/// Returns the card of examples/combine, perhaps with a label.
fn card(file: &str, label: Option<&str>) -> CombinationInput {
    let path = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/combine").join(file);
    let input = CombinationInput::load(&DocumentSource::Path(path)).expect("a card");
    match label {
        Some(label) => input.labelled_as(label.to_owned()),
        None => input,
    }
}

#[test]
fn cards_are_joined_with_a_report_by_card() {
    let options = CardOptions { mass: Some(125.0), ..CardOptions::default() };
    let request = CombineRequest { card: options, ..CombineRequest::default() };
    let made = combine(vec![card("counting.txt", Some("A")), card("templates.txt", None)], &request).expect("cards");
    let analyses: Vec<(&str, usize)> =
        made.report.analyses.iter().map(|analysis| (analysis.label.as_str(), analysis.channels.len())).collect();
    assert_eq!(analyses, [("A", 2), ("ch2", 3)]);
    assert_eq!(made.report.analyses[0].channels, ["A_low", "A_high"]);
    let of = |name: &str| {
        let found = made.report.parameters.iter().find(|found| found.parameter == name).expect("a parameter");
        (found.correlated_by, found.uses.len())
    };
    assert_eq!(of("lumi"), (Some(CorrelatedBy::Name), 2));
    assert_eq!(of("xs_top"), (None, 1));
    assert_eq!(made.document()["provenance"]["card"]["mass"], 125.0);
    assert_eq!(compiled(&made).model().channels.len(), 5);
}

#[test]
fn a_map_combines_cards_with_other_workspaces() {
    let map = "poi: {name: mu, parameters: {A: r, B: mu}}\nmeasurement: both\n";
    let map = Some(CombinationMap::from_yaml(map.as_bytes()).expect("a map"));
    let inputs = || vec![card("counting.txt", Some("A")), card("../simple.json", Some("B"))];
    let made = combine(inputs(), &CombineRequest { map, ..CombineRequest::default() }).expect("a combination");
    assert!(made.report.analyses[0].channels.contains(&"low".to_owned()));
    let error = combine(inputs(), &CombineRequest::default()).expect_err("a card and another workspace");
    assert!(error.to_string().contains("simple.json` is not a data card of Combine"), "{error}");
}

#[test]
fn settings_of_joins_that_cards_do_not_have_are_refused() {
    let cards = || vec![card("counting.txt", None), card("templates.txt", None)];
    let refused = |request: CombineRequest| combine(cards(), &request).expect_err("refused").message(Face::Command);
    let join = CombineRequest { join: WorkspaceJoin::Outer, ..CombineRequest::default() };
    assert!(refused(join).starts_with("`--join` is for other workspaces"));
    let merge = CombineRequest { channels: ChannelJoin::Merged, ..CombineRequest::default() };
    assert!(refused(merge).starts_with("`--merge-channels` is for other workspaces"));
    let options = CardOptions { mass: Some(125.0), ..CardOptions::default() };
    let request = CombineRequest { card: options, ..CombineRequest::default() };
    let workspaces = vec![input(&part(0, "A", SHAPE), "A"), input(&part(1, "B", SHAPE), "B")];
    let error = combine(workspaces, &request).expect_err("no card");
    assert!(error.to_string().contains("is for a Combine card"), "{error}");
}
