//! Tests how often upper limits from toys lie above the value at which the toys were thrown.

use ns_compute::CpuLikelihood;
use ns_core::spec::ModifierData::{NormFactor, ShapeSys};
use ns_core::{Data, DataLikelihood, Model};
use ns_inference::FitOptions;
use ns_inference::Problem;
use ns_inference::limit::{LimitOptions, limit};
use ns_inference::normal::upper_tail;
use ns_inference::toys::{AuxTreatment, Ensemble, ToySampler, ToySource};
use ns_testkit::assert_close;
use ns_testkit::small::{one_channel, sample};

const N_TOYS: u64 = 2000;

/// Returns a model of a signal over a background of 400 events known to 5%, as from a control
/// region.
fn model(signal: f64) -> Model {
    let signal = sample("signal", &[signal], &[("mu", NormFactor)]);
    let background = sample("background", &[400.0], &[("control", ShapeSys(vec![20.0]))]);
    one_channel(vec![signal, background], &[400.0])
}

/// Returns the fraction of toys, thrown at μ = 1, whose observed limit at CLs = `level` is at least
/// 1.
fn coverage(model: &Model, level: f64) -> f64 {
    let source = ToySource { seed: 11, ensemble: Ensemble::Fits, aux: AuxTreatment::Fluctuated };
    let sampler = ToySampler::new(model, &model.observed, &model.parameters.init, source).expect("a valid point");
    let (mut likelihood, mut data) = (CpuLikelihood::new(model), Data::default());
    let poi = model.poi().expect("mu");
    let wanted = LimitOptions { level, ..LimitOptions::default() };
    let covers = (0..N_TOYS).filter(|&toy| {
        sampler.throw(toy, &mut data);
        likelihood.set_data(&data);
        let result = limit(&mut Problem::new(model, &mut likelihood, &FitOptions::default()), poi, wanted);
        result.observed.expect("a limit") >= 1.0
    });
    covers.count() as f64 / N_TOYS as f64
}

/// Returns the coverage for a normally distributed measurement of a signal of `strength` standard
/// deviations. The limit covers unless the measurement is `t` or more below the signal, where
/// CLs(t) = level (A. L. Read, J. Phys. G 28 (2002) 2693).
fn gaussian_coverage(strength: f64, level: f64) -> f64 {
    let cls = |t: f64| upper_tail(t) / upper_tail(t - strength);
    let (mut low, mut high) = (0.0, 10.0);
    while high - low > 1e-12 {
        let middle = 0.5 * (low + high);
        if cls(middle) > level { low = middle } else { high = middle }
    }
    1.0 - upper_tail(low)
}

#[test]
fn limits_have_their_nominal_coverage_and_more_for_weak_signals() {
    for (signal, level) in [(120.0, 0.05), (25.0, 0.05), (120.0, 0.32)] {
        let measured = coverage(&model(signal), level);
        // The variance of signal and background events, and the uncertainty of the control region.
        let strength = signal / (400.0_f64 + signal + 400.0).sqrt();
        let expected = gaussian_coverage(strength, level);
        let error = (expected * (1.0 - expected) / N_TOYS as f64).sqrt();
        // The counts are integers and not exactly normal, which changes the coverage by half a per
        // cent.
        assert_close(measured, expected, 4.0 * error + 0.005, &format!("coverage of a signal of {signal}"));
        assert!(measured > 1.0 - level - 4.0 * error, "{signal}: {measured} is below the nominal coverage");
    }
}
