//! Tests p-values by importance sampling against exact sums over all counts, against toys of the
//! background alone, and their errors against repeated runs.

use crate::common::on_off::OnOff;

use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_core::expected::expected_main;
use ns_core::poisson::{half_deviance, log_normaliser};
use ns_core::spec::ModifierData::{self, HistoSys, NormFactor, NormSys, StatError};
use ns_inference::monitor::NoMonitor;
use ns_inference::normal::significance;
use ns_inference::toys::{
    AuxTreatment, ToyRun, ToySignificanceResult, ToySignificanceSettings, ToysError, toy_significance,
};
use ns_inference::{FitOptions, Problem};
use ns_testkit::formulas::declared;
use ns_testkit::small::{self, region, sample};
use std::num::NonZeroUsize;

fn settings(seed: u64) -> ToySignificanceSettings {
    let aux = AuxTreatment::Fluctuated;
    ToySignificanceSettings { poi: 0, tolerance: 0.05, max_toys: 200_000, seed, aux, importance_sampling: true }
}

fn find(model: &Model, settings: ToySignificanceSettings, threads: usize) -> ToySignificanceResult {
    find_with(model, &FitOptions::default(), settings, threads)
}

fn find_with(
    model: &Model,
    options: &FitOptions,
    settings: ToySignificanceSettings,
    threads: usize,
) -> ToySignificanceResult {
    let mut likelihood = CpuLikelihood::new(model);
    let poi = model.poi().expect("every model here has mu");
    let problem = &mut Problem::new(model, &mut likelihood, options);
    let run = ToyRun::new(NonZeroUsize::new(threads).expect("not zero"), &NoMonitor);
    toy_significance(problem, ToySignificanceSettings { poi, ..settings }, &run).expect("the data can be fitted")
}

fn counting(signal: f64, background: f64, n: f64) -> Model {
    let samples = vec![sample("signal", &[signal], &[("mu", NormFactor)]), sample("background", &[background], &[])];
    small::model(vec![region("channel", samples, &[n])], vec![declared("mu", 1.0, [0.0, 100.0])])
}

/// Returns P(N ≥ n) for a mean, of terms that are summed from the largest down.
fn at_least(n: u32, mean: f64) -> f64 {
    (n..n + 300).map(|k| (-half_deviance(f64::from(k), mean) - log_normaliser(f64::from(k))).exp()).sum()
}

/// Three bins with a signal, background of two samples, and systematics that the signal's shape can
/// be mistaken for.
fn shapes(observed: &[f64; 3]) -> Model {
    let varied = HistoSys { lo_data: vec![38.0, 31.0, 22.0], hi_data: vec![42.0, 29.0, 19.0] };
    let background = [
        ("norm", NormSys { lo: 0.9, hi: 1.1 }),
        ("shape", varied),
        ("staterror_channel", StatError(vec![1.5, 1.2, 1.0])),
    ];
    let signal = [("mu", NormFactor), ("norm", NormSys { lo: 0.95, hi: 1.08 })];
    let samples =
        vec![sample("signal", &[2.0, 6.0, 9.0], &signal), sample("background", &[40.0, 30.0, 20.0], &background)];
    small::model(vec![region("channel", samples, observed)], vec![declared("mu", 1.0, [0.0, 20.0])])
}

/// p₀ is P(N ≥ n | b), from 0.4 to 10⁻¹⁷⁸.
#[test]
fn p_values_of_counts_match_exact_sums() {
    for (b, n) in [(3.0, 4_u32), (3.0, 8), (3.0, 14), (50.0, 65), (50.0, 90), (400.0, 500), (50.0, 130), (100.0, 500)] {
        let found = find(&counting(5.0, b, f64::from(n)), settings(2), 2);
        let (exact, sampling) = (at_least(n, b), found.importance_sampling.as_ref().expect("it was asked for"));
        println!("{n} of {b}: {} ± {} is {exact}; {sampling:?}", found.p0_observed, found.p0_observed_error);
        assert!(found.converged && found.warnings.is_empty(), "{:?}", found.warnings);
        assert!((found.p0_observed - exact).abs() < 4.0 * found.p0_observed_error, "{found:?} is not {exact}");
        assert!(found.p0_observed_upper > found.p0_observed && found.n_toys <= 20_000, "{found:?}");
        let (z, error) = (found.z_observed.expect("a value"), found.z_observed_error.expect("its error"));
        assert!((z - significance(exact).max(0.0)).abs() < 4.0 * error + 1e-12, "{z} ± {error}");
    }
}

/// The nuisance parameter is at its conditional best fit, as in the exact sum.
#[test]
fn p_values_of_on_off_models_match_exact_sums() {
    for on_off in [
        OnOff { s: 30.0, b: 100.0, db: 20.0, n: 190.0 },
        OnOff { s: 10.0, b: 50.0, db: 5.0, n: 95.0 },
        OnOff { s: 5.0, b: 3.0, db: 1.0, n: 16.0 },
        OnOff { s: 60.0, b: 400.0, db: 25.0, n: 580.0 },
    ] {
        let q0 = |n, m| if on_off.mu_hat(n, m) > 0.0 { on_off.t_tilde(0.0, n, m) } else { 0.0 };
        let observed = q0(on_off.n, on_off.tau()) - 1e-8;
        let exact = on_off.probability(0.0, AuxTreatment::Fluctuated, |n, m| q0(n, m) >= observed);
        let found = find(&on_off.model(), settings(3), 2);
        println!("{on_off:?}: {} ± {} is {exact}, {} toys", found.p0_observed, found.p0_observed_error, found.n_toys);
        assert!(found.converged && found.warnings.is_empty(), "{:?}", found.warnings);
        assert!((found.p0_observed - exact).abs() < 4.0 * found.p0_observed_error, "{found:?} is not {exact}");
    }
}

#[test]
fn p_values_match_those_of_toys_of_the_background() {
    for observed in [[44.0, 40.0, 29.0], [45.0, 43.0, 32.0]] {
        let model = shapes(&observed);
        let weighted = find(&model, settings(4), 2);
        let plain =
            find(&model, ToySignificanceSettings { importance_sampling: false, tolerance: 0.08, ..settings(5) }, 2);
        let error = weighted.p0_observed_error.hypot(plain.p0_observed_error);
        println!(
            "{} and {} ± {error}, {} and {} toys",
            weighted.p0_observed, plain.p0_observed, weighted.n_toys, plain.n_toys
        );
        assert!(weighted.converged && plain.converged, "{weighted:?}, {plain:?}");
        assert!((weighted.p0_observed - plain.p0_observed).abs() < 3.5 * error, "{weighted:?} is not {plain:?}");
    }
}

#[test]
fn errors_are_those_of_repeated_runs() {
    for (b, n) in [(3.0, 11_u32), (50.0, 85)] {
        let (model, exact) = (counting(5.0, b, f64::from(n)), at_least(n, b));
        let pull = |seed| {
            let found = find(&model, settings(seed), 2);
            (found.p0_observed - exact) / found.p0_observed_error
        };
        let pulls: Vec<f64> = (0..40).map(pull).collect();
        let (mean, squares) = (pulls.iter().sum::<f64>() / 40.0, pulls.iter().map(|p| p * p).sum::<f64>() / 40.0);
        println!("{n} of {b}: pulls of mean {mean:.2} and rms {:.2}", squares.sqrt());
        assert!(mean.abs() < 0.55 && (0.75..1.3).contains(&squares.sqrt()), "{n}: mean {mean}, rms {}", squares.sqrt());
    }
}

/// At three standard deviations, as many toys of the background would have ten times the variance.
#[test]
fn a_tenth_of_the_toys_gives_the_same_error_at_three_standard_deviations() {
    for model in [counting(5.0, 50.0, 73.0), shapes(&[46.0, 46.0, 36.0])] {
        let found = find(&model, settings(6), 2);
        let (z, sampling) = (found.z_observed.expect("a value"), found.importance_sampling.expect("it was asked for"));
        println!("Z = {z:.2}: {} toys for {:.0}", found.n_toys, sampling.n_toys_without);
        assert!((2.7..3.4).contains(&z), "{z}");
        assert!(sampling.n_toys_without > 10.0 * found.n_toys as f64, "{} of {sampling:?}", found.n_toys);
    }
}

#[test]
fn p_values_do_not_depend_on_threads() {
    let model = shapes(&[45.0, 43.0, 33.0]);
    let one = find(&model, settings(7), 1);
    assert_eq!(one, find(&model, settings(7), 3));
    assert_ne!(one.p0_observed, find(&model, settings(8), 1).p0_observed);
}

/// The background gives no events in the second bin, so that most toys of the signal count nothing.
/// p₀ is P(N ≥ 80 | 50) of the first bin: with events in the second, q₀ would be infinite.
#[test]
fn toys_that_the_background_cannot_give_count_as_nothing() {
    let samples = vec![sample("signal", &[5.0, 1.0], &[("mu", NormFactor)]), sample("background", &[50.0, 0.0], &[])];
    let model = small::model(vec![region("channel", samples, &[80.0, 0.0])], vec![declared("mu", 1.0, [0.0, 100.0])]);
    let found = find(&model, ToySignificanceSettings { tolerance: 0.1, ..settings(10) }, 2);
    let exact = at_least(80, 50.0);
    println!("{} ± {} is {exact}, {} toys", found.p0_observed, found.p0_observed_error, found.n_toys);
    assert!((found.p0_observed - exact).abs() < 4.0 * found.p0_observed_error, "{found:?} is not {exact}");
    assert!(found.converged && found.n_failed == 0 && found.warnings.is_empty(), "{:?}", found.warnings);
}

#[test]
fn few_toys_are_never_enough() {
    for max_toys in [1, 2, 7, 16, 40] {
        for seed in 0..20 {
            let found = find(&counting(5.0, 50.0, 65.0), ToySignificanceSettings { max_toys, ..settings(seed) }, 1);
            assert!(!found.converged && found.n_toys == max_toys, "{found:?}");
            assert!(!found.warnings.iter().any(|warning| warning.contains("mean weight")), "{:?}", found.warnings);
        }
    }
}

#[test]
fn fixed_auxiliary_data_are_refused() {
    let model = shapes(&[45.0, 43.0, 33.0]);
    let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
    let settings = ToySignificanceSettings { poi: model.poi().expect("mu"), aux: AuxTreatment::Fixed, ..settings(1) };
    let run = ToyRun::new(NonZeroUsize::MIN, &NoMonitor);
    let found = toy_significance(&mut Problem::new(&model, &mut likelihood, &options), settings, &run);
    assert_eq!(found, Err(ToysError::ImportanceOfFixedAux));
}

/// A background that grows by half for either sign of a systematic, with 175 events where 100 are
/// expected: the fit of the background has two minima. It may have another systematic.
fn same_sign(other: Option<ModifierData>) -> Model {
    let mut modifiers = vec![("norm", NormSys { lo: 1.5, hi: 1.5 })];
    modifiers.extend(other.map(|other| ("other", other)));
    let samples = vec![sample("signal", &[10.0], &[("mu", NormFactor)]), sample("background", &[100.0], &modifiers)];
    small::model(vec![region("channel", samples, &[175.0])], vec![declared("mu", 1.0, [0.0, 100.0])])
}

/// Returns p₀ of that model: a sum over events and an integral over auxiliary data, with minima
/// found on a grid.
fn same_sign_p_value(model: &Model) -> f64 {
    let [mu, norm] = ["mu", "norm"].map(|name| model.parameters.names.iter().position(|n| n == name).expect("it is"));
    let params = |value: f64, alpha: f64| {
        let mut params = vec![0.0; 2];
        (params[mu], params[norm]) = (value, alpha);
        params
    };
    let alphas: Vec<f64> = (-300..=300).map(|i| f64::from(i) / 60.0).collect();
    let background: Vec<f64> = alphas.iter().map(|alpha| expected_main(model, &params(0.0, *alpha))[0]).collect();
    let lowest = |n: f64, aux: f64, has_signal: bool| {
        let at = |(alpha, b): (&f64, &f64)| {
            half_deviance(n, if has_signal { n.max(*b) } else { *b }) + 0.5 * (aux - alpha).powi(2)
        };
        alphas.iter().zip(&background).map(at).fold(f64::INFINITY, f64::min)
    };
    let q0 = |n: f64, aux: f64| 2.0 * (lowest(n, aux, false) - lowest(n, aux, true));
    let observed = q0(175.0, 0.0);
    let of_data = |i: &usize| half_deviance(175.0, background[*i]) + 0.5 * alphas[*i].powi(2);
    let best = (0..alphas.len()).min_by(|i, j| of_data(i).total_cmp(&of_data(j))).expect("a minimum");
    let step = 0.1;
    let of_aux = |k: i32| {
        let shift = f64::from(k) * step;
        let (mut below, mut above) = (0_u32, 2000_u32);
        while above - below > 1 {
            let middle = (below + above) / 2;
            if q0(f64::from(middle), alphas[best] + shift) >= observed { above = middle } else { below = middle }
        }
        step * (-0.5 * shift * shift).exp() / std::f64::consts::TAU.sqrt() * at_least(above, background[best])
    };
    (-50..=50).map(of_aux).sum()
}

/// Toys with the other sign of auxiliary data have their minimum without signal there.
#[test]
fn the_minima_of_toys_with_the_parameter_fixed_are_the_lowest() {
    let exact = same_sign_p_value(&same_sign(None));
    // A fixed parameter changes nothing, wherever its auxiliary data are.
    let model = same_sign(Some(NormSys { lo: 0.8, hi: 1.2 }));
    let other = model.parameters.names.iter().position(|name| name == "other").expect("it has two");
    let options = FitOptions { fixed: vec![(other, 0.0)], ..FitOptions::default() };
    for importance_sampling in [false, true] {
        let wanted = ToySignificanceSettings { tolerance: 0.08, importance_sampling, ..settings(11) };
        let found = find_with(&model, &options, wanted, 2);
        println!("{} ± {} is {exact}, {} toys", found.p0_observed, found.p0_observed_error, found.n_toys);
        assert!((found.p0_observed - exact).abs() < 4.0 * found.p0_observed_error, "{found:?} is not {exact}");
    }
}

/// A deficit has q₀ = 0, which every toy reaches.
#[test]
fn a_deficit_has_the_p_value_one() {
    let found = find(&counting(5.0, 50.0, 40.0), settings(9), 1);
    assert_eq!((found.p0_observed, found.z_observed), (1.0, Some(0.0)));
    assert!(found.converged && found.warnings.is_empty(), "{:?}", found.warnings);
}
