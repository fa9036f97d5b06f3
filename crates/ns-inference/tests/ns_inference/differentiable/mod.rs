//! Tests gradients of profiled statistics against differences of tight fits, at and away from
//! bounds.

mod batches;
mod failures;
mod formulas;
mod second;
mod starts;

use ns_compute::DifferentiableSession;
use ns_core::interpolate::Interpolation;
use ns_core::spec::ModifierData;
use ns_core::templates::{Inputs, TemplateSelection, TemplateVariations};
use ns_core::{Model, TemplateLikelihood};
use ns_inference::differentiable::{
    AsimovPoint, CLS, DifferentiableError, DifferentiableOptions, FitStart, LimitKind, ProfiledDifferentiableSession,
    TestValues,
};
use ns_inference::hypotest::hypotest;
use ns_inference::limit::{LimitOptions, limit};
use ns_inference::minimize::MinimizeOptions;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::{FitOptions, Problem, fit};
use ns_testkit::random::{self, Random, Shape};
use ns_testkit::small::{one_channel, sample};
use ns_testkit::{assert_close, published};
use rayon::prelude::*;

type Session = ProfiledDifferentiableSession<DifferentiableSession>;

/// Returns options for fits as tight as rounding allows, whose differences are compared with
/// gradients.
fn tight(asimov: AsimovPoint) -> DifferentiableOptions {
    let minimize = MinimizeOptions { tolerance: 1e-24, max_iterations: 500 };
    DifferentiableOptions { fit: FitOptions { minimize, ..FitOptions::default() }, asimov, start: FitStart::Initial }
}

fn inputs_of(model: &Model, samples: &[&str], variations: &TemplateVariations) -> Inputs {
    let selection =
        |&sample: &&str| TemplateSelection { sample: sample.to_owned(), channel: None, variations: variations.clone() };
    Inputs::new(model, &samples.iter().map(selection).collect::<Vec<_>>()).expect("samples of the model")
}

fn session_of(model: &Model, inputs: Inputs, options: DifferentiableOptions) -> Session {
    let poi = model.poi().expect("a parameter of interest");
    Session::new(model, DifferentiableSession::new(model, inputs), poi, options)
}

/// A quantity whose gradient a session returns.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Quantity {
    Nll(Option<f64>),
    Observed(TestStatistic, f64),
    Asimov(TestStatistic, f64),
    Cls(TestStatistic, f64, usize),
    Limit(TestStatistic, LimitKind),
    Sigma,
    AsimovSigma(f64),
}

impl Quantity {
    /// Returns all quantities; those of one test are neighbours.
    fn all() -> Vec<Self> {
        use TestStatistic::{Q, Q0, QTilde};
        let mut all =
            vec![Self::Nll(None), Self::Nll(Some(1.0)), Self::Sigma, Self::AsimovSigma(0.0), Self::AsimovSigma(1.0)];
        for (statistic, mu, n_cls) in [(Q0, 0.0, 1), (QTilde, 1.5, CLS), (Q, 1.5, 1)] {
            all.extend([Self::Observed(statistic, mu), Self::Asimov(statistic, mu)]);
            all.extend((0..n_cls).map(|i| Self::Cls(statistic, mu, i)));
        }
        all.extend(
            [LimitKind::Observed, LimitKind::Expected(-2.0), LimitKind::Expected(0.0), LimitKind::Expected(1.0)]
                .map(|w| Self::Limit(QTilde, w)),
        );
        all
    }

    fn of(self, session: &mut Session, gradient: Option<&mut [f64]>) -> Result<f64, DifferentiableError> {
        match self {
            Self::Nll(mu) => Ok(session.profiled_nll(mu, gradient)?[0]),
            Self::Observed(statistic, mu) => Ok(session.statistic(statistic, mu, gradient)?[0]),
            Self::Asimov(statistic, mu) => Ok(session.asimov_statistic(statistic, mu, gradient)?[0]),
            Self::Sigma => session.sigma(gradient),
            Self::AsimovSigma(mu) => session.asimov_sigma(mu, gradient),
            Self::Limit(statistic, which) => session.limit(LimitOptions { level: 0.05, statistic }, which, gradient),
            Self::Cls(statistic, mu, i) => {
                let Some(gradient) = gradient else { return Ok(session.test(statistic, mu, None)?.cls()[i][0]) };
                let mut asimov = vec![0.0; gradient.len()];
                let values = session.test(statistic, mu, Some([&mut *gradient, &mut asimov]))?;
                let [value, by_q, by_q_asimov] = values.cls()[i];
                gradient.iter_mut().zip(&asimov).for_each(|(q, a)| *q = by_q * *q + by_q_asimov * a);
                Ok(value)
            }
        }
    }

    /// Returns the test that the quantity is a result of.
    fn test(self) -> Option<(TestStatistic, f64)> {
        match self {
            Self::Observed(statistic, mu) | Self::Asimov(statistic, mu) | Self::Cls(statistic, mu, _) => {
                Some((statistic, mu))
            }
            Self::Nll(_) | Self::Limit(..) | Self::Sigma | Self::AsimovSigma(_) => None,
        }
    }

    /// Returns the value of the quantity in a test.
    fn in_test(self, values: &TestValues) -> f64 {
        match self {
            Self::Observed(..) => values.q,
            Self::Asimov(..) => values.q_asimov,
            Self::Cls(_, _, i) => values.cls()[i][0],
            Self::Nll(_) | Self::Limit(..) | Self::Sigma | Self::AsimovSigma(_) => f64::NAN,
        }
    }
}

/// Returns the values of quantities, NaN where there is none. Those of one test share its fits.
fn values_of(session: &mut Session, quantities: &[Quantity]) -> Vec<f64> {
    let of_one_test = |one: &Quantity, other: &Quantity| one.test().is_some() && one.test() == other.test();
    let mut values = Vec::with_capacity(quantities.len());
    for group in quantities.chunk_by(of_one_test) {
        match group[0].test().map(|(statistic, mu)| session.test(statistic, mu, None)) {
            Some(Ok(test)) => values.extend(group.iter().map(|quantity| quantity.in_test(&test))),
            Some(Err(_)) | None => {
                values.extend(group.iter().map(|quantity| quantity.of(session, None).unwrap_or(f64::NAN)));
            }
        }
    }
    values
}

/// Compares the gradients of `quantities` with respect to the inputs `which` with fourth-order
/// differences, and returns how many could be compared.
fn check(session: &mut Session, values: &[f64], quantities: &[Quantity], which: &[usize], tolerance: f64) -> usize {
    session.set_inputs(values).expect("inputs");
    let mut with_gradients = Vec::new();
    for &quantity in quantities {
        let mut gradient = vec![f64::NAN; values.len()];
        let Ok(value) = quantity.of(session, Some(&mut gradient)) else { continue };
        assert_close(quantity.of(session, None).expect("as before"), value, 1e-9, "the value without a gradient");
        with_gradients.push((quantity, gradient));
    }
    let quantities: Vec<Quantity> = with_gradients.iter().map(|(quantity, _)| *quantity).collect();
    let mut n_compared = 0;
    for &i in which {
        let differences = differences(session, values, &quantities, i);
        for ((quantity, gradient), difference) in with_gradients.iter().zip(differences) {
            let Some(difference) = difference else { continue };
            let what = format!("{quantity:?}, input {i}: {} against {difference}", gradient[i]);
            assert!((gradient[i] - difference).abs() <= tolerance * gradient[i].abs().max(1.0), "{what}");
            n_compared += 1;
        }
    }
    n_compared
}

/// Returns the derivative of each of `quantities` with respect to input `i` by fourth-order
/// differences. A statistic may have a kink nearby, so the longest step is used over which two
/// differences agree; None where none do.
fn differences(session: &mut Session, values: &[f64], quantities: &[Quantity], i: usize) -> Vec<Option<f64>> {
    let mut differences = vec![None; quantities.len()];
    for scale in [1.0, 0.1, 0.02] {
        let open: Vec<usize> = (0..quantities.len()).filter(|&k| differences[k].is_none()).collect();
        let wanted: Vec<Quantity> = open.iter().map(|&k| quantities[k]).collect();
        let h = 2e-3 * scale * values[i].abs().max(0.5);
        let [up, down, far_up, far_down] = [h, -h, 2.0 * h, -2.0 * h].map(|step| {
            let mut moved = values.to_vec();
            moved[i] += step;
            session.set_inputs(&moved).expect("inputs");
            values_of(session, &wanted)
        });
        for (n, k) in open.into_iter().enumerate() {
            let (near, far) = ((up[n] - down[n]) / (2.0 * h), (far_up[n] - far_down[n]) / (4.0 * h));
            let agree = (near - far).abs() <= 1e-5 * near.abs().max(1.0);
            differences[k] = agree.then_some((4.0 * near - far) / 3.0);
        }
    }
    differences
}

/// Returns `n` random indices below `m`, the same for the same seed.
fn random_indices(m: usize, seed: u64, n: usize) -> Vec<usize> {
    let mut random = Random::new(seed);
    (0..n.min(m)).map(|_| random.below(m)).collect()
}

/// Returns the values of `inputs` of `model` after each of `n_steps` relative steps of up to
/// `size`. All yields move together, and by up to a fortieth of the step on their own: nominal and
/// varied templates move together, as in training, and the variations stay nearly linear.
fn walk(model: &Model, inputs: &Inputs, (n_steps, size): (usize, f64), seed: u64) -> Vec<Vec<f64>> {
    let mut random = Random::new(seed);
    let mut at = inputs.values(model);
    let mut is_factor = vec![false; at.len()];
    for normsys in inputs.templates().iter().flat_map(|template| &template.normsys) {
        is_factor[normsys.hi..normsys.hi + 2].fill(true);
    }
    (0..n_steps)
        .map(|_| {
            let together = 1.0 + random.between(-size, size);
            for (value, _) in at.iter_mut().zip(&is_factor).filter(|(_, is_factor)| !**is_factor) {
                *value *= together * (1.0 + random.between(-size, size) / 40.0);
            }
            at.clone()
        })
        .collect()
}

const SHAPE: Shape = Shape { oddities: false, ..Shape::PYHF };

/// Models without hidden minima, which a device may fit.
const GENTLE: Shape = Shape { gentle: true, ..SHAPE };

/// How many gradients of a random model were requested and compared with differences.
struct Compared {
    is_at_zero: bool,
    n_requested: usize,
    n_checked: usize,
}

impl Compared {
    fn of(seed: u64, asimov: AsimovPoint) -> Self {
        let model = random::model(seed, SHAPE, Interpolation::default());
        let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
        let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
        let values = inputs.values(&model);
        let mut session = session_of(&model, inputs.clone(), tight(asimov));
        let mut likelihood = ns_compute::CpuLikelihood::new(&model);
        let best = fit(&mut Problem::new(&model, &mut likelihood, &FitOptions::default()));
        let is_at_zero = best.bestfit[model.poi().expect("one")] <= 0.0;
        let which = random_indices(inputs.len(), seed, 3);
        let quantities = Quantity::all();
        let n_requested = quantities.len() * which.len();
        let n_checked = check(&mut session, &values, &quantities, &which, 1e-6);
        Self { is_at_zero, n_requested, n_checked }
    }
}

#[test]
fn gradients_match_differences_of_tight_fits() {
    let points = [AsimovPoint::Fitted, AsimovPoint::Nominal];
    let cases: Vec<(u64, AsimovPoint)> = (0..16).flat_map(|seed| points.map(|point| (seed, point))).collect();
    let compared: Vec<Compared> = cases.into_par_iter().map(|(seed, point)| Compared::of(seed, point)).collect();
    let n_at_zero = compared.iter().filter(|compared| compared.is_at_zero).count();
    let n_inside = compared.len() - n_at_zero;
    assert!(n_at_zero > 5 && n_inside > 5, "{n_at_zero} best fits at zero, {n_inside} inside");
    // σ has no gradient where the best fit is at zero, and few statistics have no value.
    let n_requested: usize = compared.iter().map(|compared| compared.n_requested).sum();
    let n_checked: usize = compared.iter().map(|compared| compared.n_checked).sum();
    assert!(n_checked * 10 > n_requested * 9, "{n_checked} of {n_requested} compared");
}

#[test]
fn systematics_on_a_kink_outside_a_corner_contribute_to_sigma() {
    let (mut n_checked, mut n_wider) = (0, 0);
    for seed in 0..6 {
        let model = random::model(seed, SHAPE, Interpolation::KINKED);
        let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
        let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
        let values = inputs.values(&model);
        let mut session = session_of(&model, inputs.clone(), tight(AsimovPoint::Nominal));
        let mut fixed = tight(AsimovPoint::Nominal);
        fixed.fit.fixed = (0..model.n_params()).filter(|&i| model.kinked()[i]).map(|i| (i, 0.0)).collect();
        // At a bound, a kink has one side only.
        let mut bounded = DifferentiableOptions { fit: fixed.fit.clone(), ..tight(AsimovPoint::Nominal) };
        bounded.fit.bounds = std::mem::take(&mut bounded.fit.fixed).iter().map(|&(i, _)| (i, [0.0, 5.0])).collect();
        let mut bounded = session_of(&model, inputs.clone(), bounded);
        let mut fixed = session_of(&model, inputs.clone(), fixed);
        for quantity in [Quantity::AsimovSigma(0.0), Quantity::AsimovSigma(1.0)] {
            let [sigma, without] = [&mut session, &mut fixed].map(|s| quantity.of(s, None).expect("a width"));
            assert_close(quantity.of(&mut bounded, None).expect("a width"), without, 1e-12, "at a bound");
            n_wider += usize::from(sigma > 1.000_1 * without);
            n_checked += check(&mut session, &values, &[quantity], &random_indices(inputs.len(), seed, 6), 1e-6);
        }
    }
    assert!(n_checked > 60, "{n_checked} compared");
    assert!(n_wider > 6, "{n_wider} of 12 wider than without the systematics");
}

#[test]
fn values_match_hypotest_and_limit() {
    for seed in [1, 4, 9] {
        let model = random::model(seed, SHAPE, Interpolation::default());
        let mut session = session_of(
            &model,
            inputs_of(&model, &["signal"], &TemplateVariations::None),
            DifferentiableOptions::default(),
        );
        let mut likelihood = ns_compute::CpuLikelihood::new(&model);
        let (options, poi) = (FitOptions::default(), model.poi().expect("one"));
        let result = hypotest(&mut Problem::new(&model, &mut likelihood, &options), TestStatistic::QTilde, poi, 1.5);
        let values = session.test(TestStatistic::QTilde, 1.5, None).expect("fits that converge").cls();
        assert_close(values[0][0], result.cls_obs.expect("a value"), 1e-8, "observed CLs");
        for (value, expected) in values[1..].iter().zip(result.cls_exp.expect("values")) {
            assert_close(value[0], expected, 1e-8, "expected CLs");
        }
        let limits = limit(&mut Problem::new(&model, &mut likelihood, &options), poi, LimitOptions::default());
        let wanted = LimitOptions::default();
        let observed = session.limit(wanted, LimitKind::Observed, None).expect("a limit");
        assert_close(observed, limits.observed.expect("a limit"), 1e-7, "observed limit");
        for (n, expected) in ns_inference::asymptotic::BAND.into_iter().zip(limits.expected) {
            let value = session.limit(wanted, LimitKind::Expected(n), None).expect("a limit");
            assert_close(value, expected.expect("a limit"), 1e-7, "expected limit");
        }
    }
}

#[test]
fn constant_statistics_have_gradient_zero() {
    let background = [("mu", ModifierData::NormFactor)];
    let model = |n: f64| one_channel(vec![sample("s", &[5.0], &background), sample("b", &[50.0], &[])], &[n]);
    let mut gradient = vec![f64::NAN; 2];
    for (n, statistic, mu) in
        [(40.0, TestStatistic::Q0, 0.0), (80.0, TestStatistic::Q, 1.0), (80.0, TestStatistic::QTilde, 1.0)]
    {
        let model = model(n);
        let inputs = inputs_of(&model, &["s", "b"], &TemplateVariations::None);
        let mut session = session_of(&model, inputs, DifferentiableOptions::default());
        assert_eq!(session.statistic(statistic, mu, Some(&mut gradient)), Ok([0.0, 0.0]));
        assert_eq!(gradient, [0.0, 0.0]);
    }
}

#[test]
fn q0_tests_the_background_for_any_mu() {
    let model = random::model(4, SHAPE, Interpolation::default());
    let inputs = inputs_of(&model, &["signal"], &TemplateVariations::None);
    let mut session = session_of(&model, inputs, DifferentiableOptions::default());
    let [at_zero, at_one] = [0.0, 1.0].map(|mu| session.test(TestStatistic::Q0, mu, None).expect("fits"));
    assert!(at_zero.q_asimov > 0.0);
    assert_eq!(at_zero, at_one);
    let mut likelihood = ns_compute::CpuLikelihood::new(&model);
    let poi = model.poi().expect("one");
    let result =
        hypotest(&mut Problem::new(&model, &mut likelihood, &FitOptions::default()), TestStatistic::Q0, poi, 0.0);
    assert_close(at_one.cls()[0][0], result.cls_obs.expect("a value"), 1e-8, "the p-value of the background");
}

#[test]
fn gradient_of_a_counting_experiment_matches_its_formula() {
    // q₀ = 2 (n ln(n/b) - n + b), so dq₀/db = 2 (1 - n/b) for any signal.
    let model =
        one_channel(vec![sample("s", &[5.0], &[("mu", ModifierData::NormFactor)]), sample("b", &[50.0], &[])], &[60.0]);
    let inputs = inputs_of(&model, &["s", "b"], &TemplateVariations::None);
    let is_signal_first = inputs.blocks()[0].sample == "s";
    let mut session = session_of(&model, inputs, DifferentiableOptions::default());
    let mut gradient = vec![0.0; 2];
    let [q, _] = session.statistic(TestStatistic::Q0, 0.0, Some(&mut gradient)).expect("a fit");
    assert_close(q, 2.0 * (60.0 * 1.2_f64.ln() - 10.0), 1e-12, "q₀");
    let (signal, background) = if is_signal_first { (0, 1) } else { (1, 0) };
    assert_close(gradient[background], 2.0 * (1.0 - 60.0 / 50.0), 1e-9, "by the background");
    assert_close(gradient[signal], 0.0, 1e-9, "by the signal");
}

#[test]
#[ignore = "needs published likelihoods"]
fn gradients_of_published_models_match_differences() {
    let folder = published::data_folder().join("workspaces");
    let mut n_checked = 0;
    for (name, samples, seed) in [("atlas_tHu_fcnc.json", 2, 1), ("pyhf_2bin_1ch.json", 2, 2)] {
        let source = ns_translate::DocumentSource::Path(folder.join(name));
        let request = ns_translate::LoadRequest::new(source);
        let workspace = ns_translate::load(&request).expect("a workspace");
        let model = ns_core::compile(&workspace, &ns_core::CompileOptions::default()).expect("a model");
        let samples: Vec<&str> = model.samples.iter().rev().take(samples).map(String::as_str).collect();
        let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
        let values = inputs.values(&model);
        let mut session = session_of(&model, inputs.clone(), tight(AsimovPoint::Fitted));
        let which = random_indices(inputs.len(), seed, 2);
        n_checked += check(&mut session, &values, &Quantity::all(), &which, 1e-6);
    }
    assert!(n_checked > 60, "{n_checked} compared");
}

#[test]
fn sessions_accept_any_template_likelihood() {
    fn accepts<L: TemplateLikelihood + Clone>() {}
    accepts::<DifferentiableSession>();
}
