//! Tests the coverage of intervals against sums over all outcomes, and against the normal
//! distribution.

use crate::common::on_off::OnOff;
use ns_compute::CpuLikelihood;
use ns_core::Model;
use ns_core::spec::ModifierData::NormFactor;
use ns_core::spec::ParameterConfig;
use ns_inference::monitor::{Monitor, NoMonitor};
use ns_inference::normal::upper_tail;
use ns_inference::toys::{
    AuxTreatment, Coverage, CoverageMethod, CoveragePoint, CoverageSettings, CoverageVerdict, ToyRun, ToysError,
    coverage,
};
use ns_inference::{FitOptions, Problem};
use ns_testkit::small::{self, region, sample};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};

fn threads(n: usize) -> ToyRun<'static> {
    ToyRun::new(NonZeroUsize::new(n).expect("not zero"), &NoMonitor)
}

fn settings(true_values: &[f64], cl: f64, n_toys: u64) -> CoverageSettings {
    let (true_values, methods) = (true_values.to_vec(), CoverageMethod::ALL.to_vec());
    let (max_inner_toys, tolerance, seed, aux) = (400, 0.02, 5, AuxTreatment::Fluctuated);
    CoverageSettings { poi: 0, true_values, methods, cl, n_toys, max_inner_toys, tolerance, seed, aux }
}

fn find(model: &Model, settings: CoverageSettings, run: &ToyRun<'_>) -> Coverage {
    let (mut likelihood, options) = (CpuLikelihood::new(model), FitOptions::default());
    let poi = model.poi().expect("every model here has mu");
    let problem = &mut Problem::new(model, &mut likelihood, &options);
    coverage(problem, &CoverageSettings { poi, ..settings }, run).expect("the data can be fitted")
}

/// Returns a model with `mu` ≥ 0 times `signal` expected events and a known background.
fn counting(signal: f64, background: f64, n: f64) -> Model {
    let signal = sample("signal", &[signal], &[("mu", NormFactor)]);
    let mu = ParameterConfig { name: "mu".to_owned(), bounds: Some(vec![[0.0, 100.0]]), ..Default::default() };
    small::model(vec![region("channel", vec![signal, sample("background", &[background], &[])], &[n])], vec![mu])
}

/// Returns the probability of `n` events where `mean` are expected.
fn poisson(n: f64, mean: f64) -> f64 {
    if mean == 0.0 {
        return f64::from(n == 0.0);
    }
    (n * mean.ln() - mean - libm::lgamma(n + 1.0)).exp()
}

/// Returns -2 ln L of `n` events where `mean` are expected, up to constants of the data.
fn twice_nll(n: f64, mean: f64) -> f64 {
    2.0 * (mean - if n > 0.0 { n * mean.ln() } else { 0.0 })
}

/// Returns the asymptotic CLs of q̃ (arXiv:1007.1727, eqs. 65 and 66).
fn cls(q: f64, q_asimov: f64) -> f64 {
    let (root, a) = (q.sqrt(), q_asimov.sqrt());
    let [tested, background] =
        if q <= q_asimov { [root, root - a] } else { [(q + q_asimov) / (2.0 * a), (q - q_asimov) / (2.0 * a)] };
    upper_tail(tested) / upper_tail(background)
}

/// 90 % of a normal distribution of two tails.
const Z90: f64 = 1.644_853_626_951_472_7;
/// 95 %.
const Z95: f64 = 1.959_963_984_540_054;

/// Asserts that a coverage is the `exact` one within four standard errors and the error of toys
/// that are not decided.
fn assert_covers(point: &CoveragePoint, exact: f64, error: f64) {
    let found = point.coverage.expect("no toy fails");
    let n = point.n_toys as f64;
    let allowed = 4.0 * (exact * (1.0 - exact).max(0.0) / n).sqrt() + point.n_undecided as f64 / n + 1.0 / n + error;
    assert!((found - exact).abs() <= allowed, "{point:?} is not {exact}");
}

/// Counts of a known background b = 3.
struct Counts;

impl Counts {
    const BACKGROUND: f64 = 3.0;

    fn t(mu: f64, n: f64) -> f64 {
        let b = Self::BACKGROUND;
        twice_nll(n, mu + b) - twice_nll(n, n.max(b))
    }

    /// Returns whether the 90 % interval for `n` events contains `mu`.
    fn covers(method: CoverageMethod, mu: f64, n: f64) -> bool {
        let b = Self::BACKGROUND;
        match method {
            // The second derivative of -ln L is n/λ².
            CoverageMethod::Hessian => n > 0.0 && (n.max(b) - b - mu).abs() <= Z90 * n.max(b) / n.sqrt(),
            CoverageMethod::Minos => Self::t(mu, n) <= Z90 * Z90,
            CoverageMethod::Cls => n > mu + b || cls(Self::t(mu, n), Self::t(mu, b)) >= 0.1,
            CoverageMethod::FeldmanCousins => {
                let extreme = (0..80).map(f64::from).filter(|toy| Self::t(mu, *toy) >= Self::t(mu, n) - 1e-9);
                extreme.map(|toy| poisson(toy, mu + b)).sum::<f64>() > 0.1
            }
        }
    }

    fn coverage(method: CoverageMethod, mu: f64) -> f64 {
        let counts = (0..80).map(f64::from).filter(|n| Self::covers(method, mu, *n));
        counts.map(|n| poisson(n, mu + Self::BACKGROUND)).sum()
    }
}

#[test]
fn coverages_of_counts_with_known_background_are_the_exact_ones() {
    const N_TOYS: u64 = 1500;
    let found = find(&counting(1.0, Counts::BACKGROUND, 4.0), settings(&[0.5, 4.2], 0.9, N_TOYS), &threads(2));
    assert_eq!((found.points.len(), found.converged, found.is_complete), (8, true, true));
    for point in &found.points {
        assert_covers(point, Counts::coverage(point.method, point.true_value), 0.0);
        let without = if point.method == CoverageMethod::Hessian { (-3.0 - point.true_value).exp() } else { 0.0 };
        let (n, error) = (N_TOYS as f64, 4.0 * (without / N_TOYS as f64).sqrt());
        assert!((point.n_without_interval as f64 / n - without).abs() <= error, "{point:?}");
        assert_eq!(point.n_inner_toys > 0, point.method == CoverageMethod::FeldmanCousins);
    }
    // Their exact coverages differ, so that one cannot be taken for another.
    let exact = CoverageMethod::ALL.map(|method| Counts::coverage(method, 0.5));
    assert!(exact.is_sorted_by(|a, b| a != b), "{exact:?}");
}

/// A measurement x = (n - b)/1000 of μ ≥ 0 with a standard deviation of 1 (to 1e-3).
#[test]
fn coverages_of_bounded_gaussian_measurements_are_the_exact_ones() {
    let within = |low: f64, high: f64| upper_tail(low) - upper_tail(high);
    for mu in [0.5, 3.0] {
        // Below 0, the best fit is 0, and t = μ² - 2μx. Above, it is (x - μ)².
        let lowest = if mu < Z95 { (mu * mu - Z95 * Z95) / (2.0 * mu) } else { mu - Z95 };
        // CLs is Q(μ - x)/Q(-x), which rises with x.
        let (mut low, mut high) = (mu - 8.0, mu);
        for _ in 0..60 {
            let x = 0.5 * (low + high);
            if upper_tail(mu - x) / upper_tail(-x) < 0.05 { low = x } else { high = x }
        }
        let exact = [
            within(if mu < Z95 { f64::NEG_INFINITY } else { -Z95 }, Z95),
            within(lowest - mu, Z95),
            upper_tail(low - mu),
        ];
        let asymptotic = CoverageMethod::ALL[..3].to_vec();
        let wanted = CoverageSettings { methods: asymptotic, ..settings(&[mu], 0.95, 4000) };
        let found = find(&counting(1000.0, 1e6, 1e6), wanted, &threads(2));
        assert_eq!((found.points.len(), found.max_inner_toys), (3, None));
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
        for (point, exact) in found.points.iter().zip(exact) {
            assert_covers(point, exact, 1e-3);
        }
        let verdict = if mu < Z95 { CoverageVerdict::OverCovers } else { CoverageVerdict::Compatible };
        assert_eq!(found.methods[1].verdict, verdict, "{:?}", found.methods);
    }
}

/// Outcomes of an on-off measurement, whose 90 % intervals are decided by sums over all outcomes.
struct OnOffCoverage {
    model: OnOff,
    mu: f64,
    /// t̃_μ of each outcome, and γ at the conditional minimum there.
    outcomes: Vec<(f64, f64, f64, f64)>,
}

const MOST_ON: usize = 40;
const MOST_OFF: usize = 45;

impl OnOffCoverage {
    fn new(model: OnOff, mu: f64) -> Self {
        let outcome = |k: usize| {
            let [n, m] = [k / MOST_OFF, k % MOST_OFF].map(|count| count as f64);
            (n, m, model.t_tilde(mu, n, m), model.conditional(mu, n, m).1)
        };
        Self { model, mu, outcomes: (0..MOST_ON * MOST_OFF).map(outcome).collect() }
    }

    /// Returns the probability of each outcome at μ and γ.
    fn probabilities(&self, gamma: f64) -> Vec<f64> {
        let OnOff { s, b, .. } = self.model;
        let on: Vec<f64> = (0..MOST_ON).map(|n| poisson(n as f64, self.mu * s + gamma * b)).collect();
        let off: Vec<f64> = (0..MOST_OFF).map(|m| poisson(m as f64, gamma * self.model.tau())).collect();
        on.iter().flat_map(|on| off.iter().map(move |off| on * off)).collect()
    }

    /// Returns the standard deviation of μ: that of n - b m/τ if the best fit is positive, and else
    /// from the second derivatives of -ln L.
    fn sigma(&self, n: f64, m: f64) -> f64 {
        let (OnOff { s, b, .. }, tau) = (self.model, self.model.tau());
        if n * tau > m * b {
            return (n + b * b * m / (tau * tau)).sqrt() / s;
        }
        let gamma = (n + m) / (b + tau);
        let by_rate = n / (gamma * b).powi(2);
        let by_gamma = b * b * by_rate + m / (gamma * gamma);
        (s * s * by_rate - (s * b * by_rate).powi(2) / by_gamma).powf(-0.5)
    }

    fn covers(&self, method: CoverageMethod, &(n, m, t, gamma): &(f64, f64, f64, f64)) -> bool {
        let (model, mu) = (self.model, self.mu);
        match method {
            CoverageMethod::Hessian => n > 0.0 && (model.mu_hat(n, m) - mu).abs() <= Z90 * self.sigma(n, m),
            CoverageMethod::Minos => t <= Z90 * Z90,
            CoverageMethod::Cls => {
                let background = (n + m) / (model.b + model.tau());
                let asimov = [model.b * background, model.tau() * background];
                model.mu_hat(n, m) > mu || cls(t, model.t_tilde(mu, asimov[0], asimov[1])) >= 0.1
            }
            CoverageMethod::FeldmanCousins => {
                let toys = self.outcomes.iter().zip(self.probabilities(gamma));
                toys.filter(|(toy, _)| toy.2 >= t - 1e-9).map(|(_, p)| p).sum::<f64>() > 0.1
            }
        }
    }

    fn coverage(&self, method: CoverageMethod) -> f64 {
        let (_, gamma) = self.model.conditional(self.mu, self.model.n, self.model.tau());
        let likely = self.outcomes.iter().zip(self.probabilities(gamma)).filter(|(_, p)| *p > 1e-8);
        likely.filter(|(outcome, _)| self.covers(method, outcome)).map(|(_, p)| p).sum()
    }
}

#[test]
fn coverages_of_on_off_measurements_are_the_exact_ones() {
    let model = OnOff { s: 5.0, b: 3.0, db: 1.0, n: 4.0 };
    let found = find(&model.model(), settings(&[0.2, 1.5], 0.9, 800), &threads(2));
    for point in &found.points {
        let exact = OnOffCoverage::new(model, point.true_value).coverage(point.method);
        assert_covers(point, exact, 0.0);
    }
}

#[test]
fn coverages_do_not_depend_on_threads_and_batches() {
    let model = OnOff { s: 5.0, b: 3.0, db: 1.0, n: 4.0 }.model();
    let wanted = CoverageSettings { max_inner_toys: 60, ..settings(&[0.5, 1.0], 0.9, 150) };
    let one = find(&model, wanted.clone(), &threads(1));
    assert_eq!(find(&model, wanted.clone(), &threads(3)), one);
    let batch = NonZeroUsize::new(7).expect("not zero");
    assert_eq!(find(&model, wanted.clone(), &ToyRun { batch, ..threads(2) }), one);
    // Methods do not change each other's toys.
    for method in CoverageMethod::ALL {
        let alone = find(&model, CoverageSettings { methods: vec![method], ..wanted.clone() }, &threads(2));
        let among = one.points.iter().filter(|point| point.method == method).cloned();
        assert_eq!(alone.points, among.collect::<Vec<CoveragePoint>>());
    }
}

#[test]
fn true_values_are_in_the_range_of_the_parameter() {
    let model = counting(1.0, Counts::BACKGROUND, 4.0);
    let (mut likelihood, options) = (CpuLikelihood::new(&model), FitOptions::default());
    let wanted = CoverageSettings { poi: model.poi().expect("mu"), ..settings(&[1.0, -1.0], 0.9, 10) };
    let found = coverage(&mut Problem::new(&model, &mut likelihood, &options), &wanted, &threads(1));
    assert_eq!(found, Err(ToysError::Outside { mu: -1.0, range: [0.0, 100.0] }));
}

/// Cancels once half of the toys are done.
struct HalfWay(AtomicBool);

impl Monitor for HalfWay {
    fn progress(&self, done: usize, total: usize) {
        if 2 * done >= total {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_cancelled_run_says_so() {
    let model = counting(1.0, Counts::BACKGROUND, 4.0);
    for methods in [vec![CoverageMethod::Minos], vec![CoverageMethod::FeldmanCousins]] {
        let monitor = HalfWay(AtomicBool::new(false));
        let run = ToyRun::new(NonZeroUsize::MIN, &monitor);
        let wanted = CoverageSettings { methods, max_inner_toys: 20, ..settings(&[1.0, 2.0], 0.9, 200) };
        let found = find(&model, wanted, &run);
        assert_eq!((found.is_complete, found.converged), (false, false));
        assert!(found.warnings[0].starts_with("interrupted"), "{:?}", found.warnings);
        let [first, last] = [&found.points[0], &found.points[1]];
        assert_eq!((first.n_toys, last.n_toys, last.coverage), (200, 0, None));
        assert_eq!(last.verdict, CoverageVerdict::NotEnoughToys);
    }
}
