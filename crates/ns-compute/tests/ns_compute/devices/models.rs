//! The models that devices are tried on: random ones with every modifier, and small ones at the
//! edges of what a model can be.

use ns_core::interpolate::{HistoSysInterpolation, Interpolation, NormSysInterpolation};
use ns_core::spec::ModifierData::{HistoSys, Lumi, NormFactor, NormSys, ShapeFactor, ShapeSys, StatError};
use ns_core::spec::ParameterConfig;
use ns_core::{CompileOptions, Data, Model, compile};
use ns_testkit::random::{self, Random, Shape};
use ns_testkit::small::{one_channel, region, sample};

pub(crate) const RULES: [Interpolation; 3] = [
    Interpolation::KINKED,
    Interpolation { normsys: NormSysInterpolation::SmoothExponential, histosys: HistoSysInterpolation::SmoothLinear },
    Interpolation { normsys: NormSysInterpolation::SmoothExponential, histosys: HistoSysInterpolation::Quadratic },
];

/// A random model; in every third one, a yield of the signal is negative.
pub(crate) fn random_model(seed: u64) -> Model {
    let mut workspace = random::workspace(seed, Shape::PYHF);
    if seed.is_multiple_of(3) {
        workspace.channels[0].samples[0].data[0] = -0.4;
    }
    let options = CompileOptions { interpolation: RULES[seed as usize / 3 % 3], ..CompileOptions::default() };
    compile(&workspace, &options).expect("random workspaces are sound")
}

/// Points inside the bounds (N × P), with signed zeros, ends of the interpolation, factors of zero
/// and points outside the domain among them.
pub(crate) fn points(model: &Model, random: &mut Random, n: usize) -> Vec<f64> {
    let mut all = Vec::new();
    for i in 0..n {
        let spread = [0.3, 1.0, 2.5][i % 3];
        let mut point = random::point(&model.parameters, random, spread);
        for (p, value) in point.iter_mut().enumerate() {
            let is_alpha = model.parameters.init[p] == 0.0;
            match random.below(12) {
                0 if is_alpha => *value = 0.0,
                1 if is_alpha => *value = -0.0,
                2 if is_alpha => *value = if random.one_in(2) { 1.0 } else { -1.0 },
                3 if i % 4 == 1 && !is_alpha => *value = 0.0,
                _ => {}
            }
            if i % 7 == 3 && model.poi() == Some(p) {
                *value = -1e6;
            }
        }
        all.extend(point);
    }
    all
}

/// N data sets, empty bins among them.
pub(crate) fn data_sets(model: &Model, random: &mut Random, n: usize) -> Vec<Data> {
    let mut vary = |values: &[f64]| -> Vec<f64> {
        values
            .iter()
            .map(|v| if random.one_in(15) { 0.0 } else { (v * random.between(0.7, 1.3) * 64.0).round() / 64.0 })
            .collect()
    };
    (0..n).map(|_| Data { main: vary(&model.observed.main), aux: vary(&model.observed.aux) }).collect()
}

/// Toys of a kind: counts and auxiliary data near what the model expects at its start.
pub(crate) fn toys(model: &Model, random: &mut Random, n: usize) -> Vec<Data> {
    let mut toys = data_sets(model, random, n);
    for toy in &mut toys {
        toy.main.iter_mut().for_each(|count| *count = count.round());
        for (aux, (&observed, constraint)) in
            toy.aux.iter_mut().zip(model.observed.aux.iter().zip(model.parameters.constraint.iter().flatten()))
        {
            let width = constraint.width(1.0) * if observed > 2.0 { observed } else { 1.0 };
            *aux = ((observed + width * random.between(-1.5, 1.5)).max(if observed > 0.0 { 0.0 } else { -9.0 })
                * 4096.0)
                .round()
                / 4096.0;
        }
    }
    toys
}

/// Every parameter of these is tested.
pub(crate) fn all_fixed(names: &[&str]) -> Vec<ParameterConfig> {
    let fixed =
        |name: &&str| ParameterConfig { name: (*name).to_owned(), fixed: Some(true), ..ParameterConfig::default() };
    names.iter().map(fixed).collect()
}

/// Models at the edges, by what is odd about them.
pub(crate) fn edge_models() -> Vec<(&'static str, Model)> {
    let signal = || sample("signal", &[5.0], &[("mu", NormFactor)]);
    let plain = sample("background", &[50.0], &[]);
    let normsys = |name| (name, NormSys { lo: 0.8, hi: 1.3 });
    let two_bins = |extra: &[(&str, ns_core::spec::ModifierData)]| sample("background", &[50.0, 60.0], extra);
    let two_signal = || sample("signal", &[5.0, 9.0], &[("mu", NormFactor)]);
    let lumi = ParameterConfig {
        name: "lumi".to_owned(),
        inits: Some(vec![1.0]),
        bounds: Some(vec![[0.5, 1.5]]),
        auxdata: Some(vec![1.0]),
        sigmas: Some(vec![0.02]),
        ..ParameterConfig::default()
    };
    let locals = [
        ("stat", StatError(vec![4.0, 5.0])),
        ("shape_a", ShapeSys(vec![6.0, 5.0])),
        ("shape_b", ShapeSys(vec![3.0, 9.0])),
    ];
    let shifts = HistoSys { lo_data: vec![45.0, 66.0], hi_data: vec![57.0, 52.0] };
    let shared = |name, observed: &[f64]| {
        let data = sample(
            "background",
            &[40.0, 70.0],
            &[("common", ShapeFactor), normsys("scale"), ("shift", shifts.clone())],
        );
        region(name, vec![two_signal(), data], observed)
    };
    vec![
        ("one bin, no constraints", one_channel(vec![signal(), plain.clone()], &[58.0])),
        (
            "one bin, one local",
            one_channel(vec![signal(), sample("b", &[50.0], &[("g", ShapeSys(vec![7.0]))])], &[52.0]),
        ),
        ("no locals", one_channel(vec![two_signal(), two_bins(&[normsys("a"), ("b", shifts.clone())])], &[53.0, 77.0])),
        (
            "three locals per bin",
            one_channel(
                vec![two_signal(), two_bins(&locals), sample("other", &[9.0, 8.0], &locals[..1])],
                &[60.0, 90.0],
            ),
        ),
        ("one template with two of the locals' factors and a shift", {
            let modifiers =
                [locals[0].clone(), locals[1].clone(), ("shift", shifts.clone()), normsys("shift"), ("lumi", Lumi)];
            ns_testkit::small::model(
                vec![region("c", vec![two_signal(), two_bins(&modifiers)], &[61.0, 70.0])],
                vec![lumi],
            )
        }),
        (
            "a shapefactor that channels share",
            ns_testkit::small::model(vec![shared("c1", &[44.0, 70.0]), shared("c2", &[39.0, 80.0])], Vec::new()),
        ),
        ("two shapefactors of one sample, which channels share", {
            let channel = |name, [first, second, signal]: [[f64; 2]; 3], observed: &[f64]| {
                let both = sample("both", &first, &[("one", ShapeFactor), ("other", ShapeFactor), normsys("scale")]);
                let one = sample("one", &second, &[("one", ShapeFactor)]);
                region(name, vec![sample("signal", &signal, &[("mu", NormFactor)]), both, one], observed)
            };
            let channels = vec![
                channel("c1", [[40.0, 70.0], [20.0, 10.0], [1.0, 2.0]], &[66.0, 75.0]),
                channel("c2", [[15.0, 30.0], [60.0, 90.0], [2.0, 1.0]], &[70.0, 131.0]),
                channel("c3", [[30.0, 20.0], [30.0, 25.0], [25.0, 30.0]], &[82.0, 80.0]),
            ];
            ns_testkit::small::model(channels, Vec::new())
        }),
        ("one parameter in several factors", {
            let squared = sample("signal", &[5.0, 9.0], &[("mu", NormFactor), ("k", NormFactor), ("shift", shifts)]);
            one_channel(vec![squared, two_bins(&[("k", NormFactor)])], &[60.0, 70.0])
        }),
        ("nothing free", {
            let channel = region("c", vec![signal(), plain], &[57.0]);
            ns_testkit::small::model(vec![channel], all_fixed(&["mu"]))
        }),
        ("more global parameters than a panel", {
            let names: Vec<String> = (0..37).map(|i| format!("alpha_{i}")).collect();
            let random = |i: usize| 1.0 + 0.01 * (i % 7 + 1) as f64;
            let scales: Vec<_> = names
                .iter()
                .enumerate()
                .map(|(i, name)| (name.as_str(), NormSys { lo: 2.0 - random(i + 2), hi: random(i) }))
                .collect();
            one_channel(vec![two_signal(), two_bins(&scales)], &[60.0, 75.0])
        }),
    ]
}
