//! Tests random starts: they find minima that no suspect indicates, and abandon starts in known
//! basins.

use super::pairs::numbered;
use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_core::interpolate::Interpolation;
use ns_core::spec::ModifierData::{HistoSys, NormFactor};
use ns_core::spec::ParameterConfig;
use ns_inference::minimize::Minimum;
use ns_inference::options::domain_and_start;
use ns_inference::search::{Candidates, FoundBy, Search};
use ns_inference::{FitOptions, MultiStart, Problem, fit};
use ns_testkit::assert_close;
use ns_testkit::random::{self, Shape};
use ns_testkit::small::{self, region, sample};

/// Returns a model whose systematic raises the yield in both directions, so that there is a minimum
/// on either side of zero. The one at `start` < 0 is the higher.
fn two_minima() -> Model {
    let shift = HistoSys { hi_data: vec![130.0, 52.0], lo_data: vec![125.0, 45.0] };
    let samples = vec![
        sample("signal", &[1.0, 4.0], &[("mu", NormFactor)]),
        sample("background", &[100.0, 50.0], &[("alpha", shift)]),
    ];
    let mu = ParameterConfig { name: "mu".to_owned(), bounds: Some(vec![[0.0, 20.0]]), ..ParameterConfig::default() };
    small::model(vec![region("channel", samples, &[160.0, 58.0])], vec![mu])
}

/// Small models without flat directions.
const SHAPE: Shape = Shape { oddities: false, ..Shape::SMALL };

/// The minima that random starts led to, the lowest first, and how many starts were abandoned.
struct Ends {
    minima: Vec<(Minimum, FoundBy)>,
    n_abandoned: usize,
}

/// Runs random starts for `model` from `start`, or from the starting values, without suspects.
/// Unless `abandons`, all starts are minimised in full, because random points near kinks are never
/// abandoned.
fn run_all(model: &Model, start: Option<&[f64]>, (n_starts, seed): (usize, u64), abandons: bool) -> Ends {
    let mut likelihood = CpuLikelihood::new(model);
    let (mut domain, default_start) = domain_and_start(model, &FitOptions::default());
    if !abandons {
        domain.kinked = vec![false; model.n_params()];
    }
    let options = FitOptions::default().minimize;
    let mut search = Search::new(&mut likelihood, domain, Candidates::default(), options);
    let found = search.run_all(model, start.unwrap_or(&default_start), n_starts, seed);
    Ends { minima: found.minima, n_abandoned: found.n_known }
}

/// Returns the minimum that a fit from `start` reaches.
fn local(model: &Model, start: &[f64]) -> Minimum {
    run_all(model, Some(start), (0, 0), true).minima[0].0.clone()
}

#[test]
fn random_starts_find_the_lower_of_two_minima() {
    let model = two_minima();
    let start_at = |alpha: f64| -> Vec<f64> {
        let each = model.parameters.names.iter().zip(&model.parameters.init);
        each.map(|(name, init)| if name == "alpha" { alpha } else { *init }).collect()
    };
    let sides = [-1.0, 1.0].map(|alpha| local(&model, &start_at(alpha)));
    let [low, high] = if sides[0].nll < sides[1].nll { [&sides[0], &sides[1]] } else { [&sides[1], &sides[0]] };
    assert!(high.nll > low.nll + 0.01, "{} and {}", low.nll, high.nll);
    for seed in 0..10 {
        // Points are drawn around the start, and one in sixteen of those around the higher minimum
        // leads to the other.
        for (start, n_starts) in [(None, 40), (Some(&high.params[..]), 100)] {
            let found = run_all(&model, start, (n_starts, seed), true);
            assert_close(found.minima[0].0.nll, low.nll, 1e-9, "the lowest");
        }
    }
    let options = FitOptions { multi_start: Some(MultiStart::default()), ..FitOptions::default() };
    let fitted = fit(&mut Problem::new(&model, &mut CpuLikelihood::new(&model), &options));
    assert_close(fitted.nll, low.nll, 1e-9, "the fit");
    assert!(fitted.minima.len() >= 2, "{:?}", fitted.minima);
}

#[test]
fn starts_in_a_known_basin_are_abandoned() {
    // Starts are not abandoned if the minimum is at a bound or has a flat direction.
    // These are rarer without constraint terms and rules of single modifiers.
    let shape = Shape { terms: false, rules: false, ..SHAPE };
    let mut n_models = 0;
    for seed in 0..20 {
        let model = random::model(seed, shape, Interpolation::default());
        let found = run_all(&model, None, (40, seed), true);
        n_models += usize::from(found.n_abandoned > 0);
        assert!(found.n_abandoned + found.minima.len() <= 41, "model {seed}: more ends than starts");
    }
    assert!(n_models >= 10, "{n_models} models");
}

/// Every third start is drawn from the constraint terms, with or without abandoning. Minimised in
/// full, none of those may end lower.
#[test]
fn abandoning_starts_misses_no_lower_minimum() {
    let mut n_abandoned = 0;
    for k in 0..70 {
        let (cause, seed, model) = numbered(k);
        let found = run_all(&model, None, (30, k), true);
        let full = run_all(&model, None, (30, k), false);
        assert_eq!(full.n_abandoned, 0, "{} {seed}", cause.name());
        let is_same_start = |by: FoundBy| match by {
            FoundBy::RandomStart(k) => k % 3 == 0,
            _ => true,
        };
        let same = full.minima.iter().filter(|(minimum, by)| minimum.converged() && is_same_start(*by));
        let lowest = same.map(|(minimum, _)| minimum.nll).fold(f64::INFINITY, f64::min);
        let ours = found.minima[0].0.nll;
        assert!(ours <= lowest + 1e-6, "{} {seed}: {ours}, and {lowest} if none is abandoned", cause.name());
        n_abandoned += found.n_abandoned;
    }
    assert!(n_abandoned > 0, "none was abandoned");
}
