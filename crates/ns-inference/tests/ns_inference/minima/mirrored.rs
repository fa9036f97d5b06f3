//! Tests strongly bent same-sign shapes in models of more than 60 parameters, where reflecting one
//! or two of them may lead to the lowest minimum.

use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_core::spec::ModifierData::{HistoSys, NormFactor, NormSys, StatError};
use ns_inference::{FitOptions, FitResult, MultiStart, Problem, fit};
use ns_testkit::random::Random;
use ns_testkit::small::{self, region, sample};

const BINS: usize = 35;

/// Returns a model of two channels whose background has two shapes with equal variations at ±1σ and
/// a same-sign normsys, and data drawn a few standard deviations away.
fn model(seed: u64) -> Model {
    let mut random = Random::new(seed);
    let mut uniform = move |low: f64, high: f64| random.between(low, high);
    let pulls = [uniform(0.3, 2.0), uniform(0.3, 2.0)];
    let mut channel = |name: &str| {
        let nominal: Vec<f64> = (0..BINS).map(|bin| 30.0 * (-0.05 * bin as f64).exp() * uniform(0.8, 1.2)).collect();
        let mut shape = || -> Vec<f64> {
            let (tilt, bump, size) = (uniform(-1.0, 1.0), uniform(0.0, 1.0), uniform(0.2, 1.2));
            let x = |bin: usize| bin as f64 / BINS as f64;
            (0..BINS).map(|bin| size * (tilt * (x(bin) - 0.5) + (6.0 * (x(bin) - bump)).tanh())).collect()
        };
        let shapes = [shape(), shape()];
        let moved = |shape: &[f64]| -> Vec<f64> { nominal.iter().zip(shape).map(|(y, s)| y * (1.0 + s)).collect() };
        let both_ways = |shape: &[f64]| HistoSys { hi_data: moved(shape), lo_data: moved(shape) };
        let expected = |bin: usize| nominal[bin] * (1.0 + pulls[0] * shapes[0][bin] + pulls[1] * shapes[1][bin]);
        let observed: Vec<f64> = (0..BINS).map(|bin| (expected(bin).max(0.0) * uniform(0.7, 1.3)).round()).collect();
        let background = sample(
            "background",
            &nominal,
            &[
                ("shape_0", both_ways(&shapes[0])),
                ("shape_1", both_ways(&shapes[1])),
                ("same_sign", NormSys { lo: 1.2, hi: 1.25 }),
                ("staterror", StatError(nominal.iter().map(|y| 0.05 * y).collect())),
            ],
        );
        let signal: Vec<f64> = (0..BINS).map(|bin| 5.0 * (-((bin as f64 - 20.0) / 4.0).powi(2)).exp()).collect();
        region(name, vec![sample("signal", &signal, &[("mu", NormFactor)]), background], &observed)
    };
    let regions = vec![channel("first"), channel("second")];
    small::model(regions, Vec::new())
}

fn fitted(model: &Model, options: &FitOptions) -> FitResult {
    fit(&mut Problem::new(model, &mut CpuLikelihood::new(model), options))
}

#[test]
fn default_fits_end_on_the_lower_side_of_zero() {
    let (mut above, mut n_compared) = (Vec::new(), 0);
    for seed in 9..33 {
        let model = model(seed);
        assert!(model.n_params() > 60);
        let poi = model.poi().expect("mu");
        for fixed in [vec![], vec![(poi, 1.0)]] {
            let options = FitOptions { fixed, ..FitOptions::default() };
            let multi_start = Some(MultiStart { n_starts: 40, seed: 1 });
            let exhaustive = fitted(&model, &FitOptions { multi_start, ..options.clone() });
            let default = fitted(&model, &options);
            // -ln L has an edge where a template is zero in a bin. Fits may stall there, with a
            // warning.
            if !default.converged {
                continue;
            }
            n_compared += 1;
            let rise = default.twice_nll - exhaustive.twice_nll;
            if rise.is_nan() || rise > 1e-5 {
                above.push(format!("model {seed} with {:?} fixed: {rise}", options.fixed));
            }
        }
    }
    assert!(n_compared > 40, "{n_compared} fits converged");
    assert!(above.is_empty(), "above 40 random starts:\n{}", above.join("\n"));
}
