//! How far systematics are from linear: bends against differences of expected counts, and which
//! parameters and pairs have one.

use ns_core::expected::expected_main;
use ns_core::nonlinearity::Nonlinearity;
use ns_core::spec::{Modifier, ModifierData, Sample};
use ns_core::{CompileOptions, Model, compile};
use ns_testkit::assert_close;
use ns_testkit::random::{self, Shape};
use ns_testkit::small::{self, one_channel, region, sample};

use ModifierData::{HistoSys, NormFactor, NormSys};

/// Σ_b |λ''_b|/√λ_b over 1 + Σ_b λ'_b²/λ_b at `alpha` along `direction`, parameters with how fast
/// each of them changes, by differences of expected counts.
fn bend_at(model: &Model, direction: &[(usize, f64)], alpha: f64) -> f64 {
    let h = 1e-4;
    let at = |alpha: f64| {
        let mut params = model.parameters.init.clone();
        direction.iter().for_each(|&(i, speed)| params[i] = speed * alpha);
        expected_main(model, &params)
    };
    let points = [-1.0, 0.0, 1.0].map(|k| at(alpha + h * k));
    let (mut bent, mut straight) = (0.0, 0.0);
    for ((below, here), above) in points[0].iter().zip(&points[1]).zip(&points[2]) {
        let first = (above - below) / (2.0 * h);
        let second = (above - 2.0 * here + below) / (h * h);
        let lambda = here.max(1.0);
        bent += second.abs() / lambda.sqrt();
        straight += first * first / lambda;
    }
    bent / (1.0 + straight)
}

/// Small, with the systematics of a sample either normsys or histosys: the bend adds what each
/// changes, and leaves out what they change together.
fn random_model(seed: u64) -> Model {
    let shape = Shape {
        channels: 3,
        bins: 4,
        samples: 3,
        systematics: 3,
        oddities: false,
        gentle: false,
        terms: true,
        rules: false,
        yield_rules: false,
    };
    let mut workspace = random::workspace(seed, shape);
    for sample in workspace.channels.iter_mut().flat_map(|channel| &mut channel.samples) {
        let is_normsys = |modifier: &Modifier| matches!(modifier.data, NormSys { .. });
        let scaled: Vec<String> = sample.modifiers.iter().filter(|m| is_normsys(m)).map(|m| m.name.clone()).collect();
        sample.modifiers.retain(|m| is_normsys(m) || !scaled.contains(&m.name));
    }
    compile(&workspace, &CompileOptions::default()).expect("a sound workspace")
}

#[test]
fn bends_are_those_of_the_expected_counts() {
    let mut n_bent = 0;
    for seed in 0..60 {
        let model = random_model(seed);
        let Nonlinearity { bend, .. } = Nonlinearity::of(&model);
        for (i, name) in model.parameters.names.iter().enumerate().filter(|(_, name)| name.starts_with("alpha")) {
            let expected =
                [-1.0, 0.0, 1.0].map(|alpha| bend_at(&model, &[(i, 1.0)], alpha)).into_iter().fold(0.0, f64::max);
            // At -1 and +1 the second derivative has a kink, which differences see to first order
            // in their step.
            assert_close(bend[i], expected, 2e-3, &format!("seed {seed}, {name}"));
            n_bent += usize::from(bend[i] > 0.1);
        }
    }
    assert!(n_bent > 20, "only {n_bent} bent parameters");
}

/// A signal, and a background of 50 and 40 events with `systematics`.
fn model(systematics: &[(&str, ModifierData)]) -> Model {
    with_samples(vec![sample("background", &[50.0, 40.0], systematics)])
}

fn with_samples(mut samples: Vec<Sample>) -> Model {
    samples.push(sample("signal", &[5.0, 10.0], &[("mu", NormFactor)]));
    one_channel(samples, &[55.0, 50.0])
}

fn bend(model: &Model, name: &str) -> f64 {
    let i = model.parameters.names.iter().position(|other| other == name).expect("a parameter of the model");
    Nonlinearity::of(model).bend[i]
}

/// The bend from which a parameter counts as one that may hide minima.
const BENT: f64 = 0.3;

#[test]
fn an_ordinary_normsys_is_not_bent() {
    let model = model(&[("alpha", NormSys { lo: 0.9, hi: 1.1 })]);
    assert!(bend(&model, "alpha") < 0.1, "{}", bend(&model, "alpha"));
    assert_eq!(Nonlinearity::of(&model).pairs, []);
}

#[test]
fn free_factors_have_no_bend_and_no_factor() {
    let model = model(&[]);
    let Nonlinearity { bend, factor, pairs } = Nonlinearity::of(&model);
    assert!(bend.iter().all(|bend| *bend == 0.0) && factor.iter().all(|factor| *factor == 1.0) && pairs.is_empty());
}

#[test]
fn a_huge_normsys_on_next_to_nothing_is_flagged() {
    let tiny = sample("tiny", &[0.02, 0.02], &[("huge", NormSys { lo: 0.01, hi: 40.0 })]);
    let model = with_samples(vec![sample("background", &[3.0, 2.0], &[]), tiny]);
    let nonlinearity = Nonlinearity::of(&model);
    let i = model.parameters.names.iter().position(|name| name == "huge").expect("huge");
    assert!(nonlinearity.bend[i] > BENT, "{}", nonlinearity.bend[i]);
    assert_close(nonlinearity.factor[i], 40.0, 1e-15, "its factor");
}

#[test]
fn systematics_that_go_the_same_way_on_both_sides_are_flagged() {
    for same_sign in [NormSys { lo: 1.3, hi: 1.4 }, HistoSys { lo_data: vec![65.0, 30.0], hi_data: vec![60.0, 32.0] }] {
        let model = model(&[("alpha", same_sign)]);
        assert!(bend(&model, "alpha") > BENT, "{}", bend(&model, "alpha"));
    }
}

#[test]
fn a_near_degenerate_pair_is_flagged_with_the_way_it_cancels() {
    let one = NormSys { lo: 0.5, hi: 1.6 };
    for (other, sign) in [(NormSys { lo: 0.51, hi: 1.58 }, -1.0), (NormSys { lo: 1.58, hi: 0.51 }, 1.0)] {
        let model = model(&[("one", one.clone()), ("other", other), ("plain", NormSys { lo: 0.98, hi: 1.02 })]);
        let nonlinearity = Nonlinearity::of(&model);
        let [pair] = &nonlinearity.pairs[..] else { panic!("{:?}", nonlinearity.pairs) };
        let names = pair.parameters.map(|i| model.parameters.names[i].as_str());
        assert!(names == ["one", "other"] || names == ["other", "one"], "{names:?}");
        assert_eq!(pair.sign, sign);
        assert!(pair.bend > BENT && pair.parameters.iter().all(|&i| pair.bend > nonlinearity.bend[i]), "{pair:?}");
    }
}

#[test]
fn the_bend_of_a_pair_is_that_of_the_direction_in_which_it_cancels() {
    for (lo, hi, sign) in [(0.51, 1.58, -1.0), (1.58, 0.51, 1.0)] {
        let one = |data: &[f64]| sample("a", data, &[("one", NormSys { lo: 0.5, hi: 1.6 })]);
        let other = |data: &[f64]| sample("b", data, &[("other", NormSys { lo, hi })]);
        // In the last two channels nothing cancels.
        let signal = sample("signal", &[5.0, 10.0], &[("mu", NormFactor)]);
        let both = region("both", vec![one(&[50.0, 40.0]), other(&[48.0, 41.0]), signal], &[100.0, 90.0]);
        let regions = vec![region("a", vec![one(&[3.0])], &[3.0]), both, region("b", vec![other(&[2.0])], &[2.0])];
        let model = small::model(regions, Vec::new());
        let nonlinearity = Nonlinearity::of(&model);
        let [pair] = &nonlinearity.pairs[..] else { panic!("{:?}", nonlinearity.pairs) };
        assert_eq!(pair.sign, sign);
        let [i, j] = pair.parameters;
        let along = std::f64::consts::FRAC_1_SQRT_2;
        assert_close(pair.bend, bend_at(&model, &[(i, along), (j, sign * along)], 0.0), 1e-5, "the direction");
    }
}
