//! Tests products with the Hessians of minima and statistics against differences of their
//! gradients, at and away from bounds and kinks.

use super::{SHAPE, Session, inputs_of, session_of, tight};
use ns_core::Model;
use ns_core::interpolate::Interpolation;
use ns_core::response::Responses;
use ns_core::spec::ModifierData;
use ns_core::templates::TemplateVariations;
use ns_inference::Problem;
use ns_inference::differentiable::{AsimovPoint, DifferentiableError, DifferentiableOptions, FitStart, InputDirection};
use ns_inference::test_statistic::TestStatistic;
use ns_testkit::random::{self, Random};
use ns_testkit::small::{one_channel, sample};
use ns_testkit::{assert_close, published};

/// A quantity with second derivatives.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Quantity {
    Free,
    Fixed,
    Statistic(TestStatistic),
}

const ALL: [Quantity; 5] = [
    Quantity::Free,
    Quantity::Fixed,
    Quantity::Statistic(TestStatistic::Q0),
    Quantity::Statistic(TestStatistic::Q),
    Quantity::Statistic(TestStatistic::QTilde),
];

type Found = Result<Vec<f64>, DifferentiableError>;

impl Quantity {
    /// Returns the gradient with respect to the inputs and, last, to `mu` (M + 1).
    fn gradient(self, session: &mut Session, mu: f64) -> Found {
        let mut gradient = vec![0.0; session.inputs().len()];
        let [_, by_mu] = match self {
            Self::Free => session.profiled_nll(None, Some(&mut gradient))?,
            Self::Fixed => session.profiled_nll(Some(mu), Some(&mut gradient))?,
            Self::Statistic(statistic) => session.statistic(statistic, mu, Some(&mut gradient))?,
        };
        gradient.push(by_mu);
        Ok(gradient)
    }

    /// Returns the product of the Hessian with respect to the inputs and `mu` with `direction` (M +
    /// 1).
    fn product(self, session: &mut Session, mu: f64, direction: &[f64]) -> Found {
        let m = session.inputs().len();
        let mut product = vec![f64::NAN; m];
        let along = InputDirection { inputs: &direction[..m], mu: direction[m] };
        let by_mu = match self {
            Self::Free => session.profiled_nll_product(None, along, &mut product)?,
            Self::Fixed => session.profiled_nll_product(Some(mu), along, &mut product)?,
            Self::Statistic(statistic) => session.statistic_product(statistic, mu, along, &mut product)?,
        };
        product.push(by_mu);
        Ok(product)
    }
}

/// Returns a random direction of the inputs, in proportion to `values` (M), and of the tested value
/// (last).
fn direction(values: &[f64], seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    let along = |value: &f64| value.abs().max(0.5) * random.between(-1.0, 1.0);
    let mut direction: Vec<f64> = values.iter().map(along).collect();
    direction.push(random.between(0.5, 1.0));
    direction
}

/// The result of comparing a product with differences of gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Compared {
    /// The derivatives on both sides agree; their largest element.
    Smooth(f64),
    /// The product is the derivative on one side: a minimum leaves a bound or a kink exactly here.
    OneSided,
}

/// Returns the derivatives on either side of a function with the values `at` -4h, -3h … 4h, by
/// fourth-order differences; none if they differ from third-order ones. If both sides agree,
/// returns only the central difference, which is more precise.
fn derivatives(at: &[Vec<f64>], h: f64) -> Vec<Vec<f64>> {
    let n = at[0].len();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-4 * b.abs().max(1.0);
    let side = |sign: i32| {
        let element = |i: usize| {
            let f = |k: i32| at[usize::try_from(4 + sign * k).expect("a step")][i];
            let fourth = -25.0 * f(0) + 48.0 * f(1) - 36.0 * f(2) + 16.0 * f(3) - 3.0 * f(4);
            let third = -11.0 * f(0) + 18.0 * f(1) - 9.0 * f(2) + 2.0 * f(3);
            let [fourth, third] = [fourth / 12.0, third / 6.0].map(|d| f64::from(sign) * d / h);
            close(third, fourth).then_some(fourth)
        };
        (0..n).map(element).collect::<Option<Vec<f64>>>()
    };
    match [side(1), side(-1)] {
        [Some(up), Some(down)] if up.iter().zip(&down).all(|(up, down)| close(*up, *down)) => {
            let across = |i: usize| (8.0 * (at[5][i] - at[3][i]) - (at[6][i] - at[2][i])) / (12.0 * h);
            vec![(0..n).map(across).collect()]
        }
        [Some(up), Some(down)] => vec![up, down],
        _ => Vec::new(),
    }
}

/// Compares a product with differences of gradients over the longest suitable step. Returns `None`
/// if the gradients are not smooth for any step.
fn check(session: &mut Session, values: &[f64], quantity: Quantity, seed: u64) -> Option<Compared> {
    let (mu, direction) = (1.5, direction(values, seed));
    session.set_inputs(values).expect("inputs");
    let product = quantity.product(session, mu, &direction).unwrap_or_else(|error| panic!("{quantity:?}: {error}"));
    let mut at = |step: f64| {
        let moved: Vec<f64> = values.iter().zip(&direction).map(|(x, v)| x + step * v).collect();
        session.set_inputs(&moved).expect("inputs");
        quantity.gradient(session, mu + step * direction[values.len()]).unwrap_or(vec![f64::NAN; direction.len()])
    };
    let distance = |found: &Vec<f64>| {
        let each = product.iter().zip(found).map(|(p, d)| (p - d).abs() / d.abs().max(1.0));
        // NaN counts as an infinite distance.
        each.fold(0.0, |most: f64, one| if one.is_nan() { f64::INFINITY } else { most.max(one) })
    };
    let mut nearest = f64::INFINITY;
    for h in [1e-3, 3e-4, 3e-5, 1e-5, 3e-6] {
        let around: Vec<Vec<f64>> = (-4..=4).map(|k| at(f64::from(k) * h)).collect();
        let found = derivatives(&around, h);
        let here = found.iter().map(distance).fold(f64::INFINITY, f64::min);
        if here <= 1e-6 {
            let largest = product.iter().fold(0.0, |most: f64, p| p.abs().max(most));
            return Some(if found.len() == 1 { Compared::Smooth(largest) } else { Compared::OneSided });
        }
        nearest = nearest.min(here);
    }
    assert!(nearest.is_infinite(), "{quantity:?}: deviates from differences by at least {nearest}");
    None
}

#[test]
fn products_match_differences_of_gradients() {
    let (mut n_requested, mut n_smooth, mut n_zero, mut n_at_bound) = (0, 0, 0, 0);
    for seed in 0..20 {
        let model = random::model(seed, SHAPE, Interpolation::default());
        let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
        let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
        let values = inputs.values(&model);
        let mut session = session_of(&model, inputs.clone(), tight(AsimovPoint::Nominal));
        let derivative_at_zero = session.profiled_nll(Some(0.0), None).expect("a fit")[1];
        n_at_bound += usize::from(derivative_at_zero > 0.0);
        for quantity in ALL {
            n_requested += 1;
            let Some(Compared::Smooth(largest)) = check(&mut session, &values, quantity, seed) else { continue };
            n_smooth += 1;
            n_zero += usize::from(largest == 0.0);
        }
    }
    assert!(n_at_bound > 4, "{n_at_bound} models whose best fit is at zero");
    assert!(20 * n_smooth > 19 * n_requested, "{n_smooth} of {n_requested} compared");
    assert!(n_zero > 2 && n_smooth > 3 * n_zero, "{n_zero} of {n_smooth} are of constant statistics");
}

#[test]
fn second_derivatives_fix_parameters_in_the_corner_of_a_kink() {
    // Both templates of `k` have more events than the nominal one, and the second bin has a
    // deficit, so -ln L rises on either side of 0. `l` is pulled.
    let varied = |name, nominal: &[f64], lo, hi| sample(name, nominal, &[("k", ModifierData::NormSys { lo, hi })]);
    let signal = sample("s", &[8.0, 0.5, 1.0], &[("mu", ModifierData::NormFactor)]);
    let other = sample("c", &[5.0, 20.0, 40.0], &[("l", ModifierData::NormSys { lo: 0.8, hi: 1.1 })]);
    let samples = vec![signal, varied("b", &[50.0, 60.0, 2.0], 1.1, 1.2), other];
    let (interpolation, responses) = (Interpolation::KINKED, Responses::new(Interpolation::KINKED));
    let model = Model { interpolation, responses, ..one_channel(samples, &[63.0, 70.0, 49.0]) };
    let mut likelihood = ns_compute::CpuLikelihood::new(&model);
    let best = ns_inference::fit(&mut Problem::new(&model, &mut likelihood, &tight(AsimovPoint::Nominal).fit));
    let at_zero: Vec<&str> =
        (0..model.n_params()).filter(|&i| best.bestfit[i] == 0.0).map(|i| model.parameters.names[i].as_str()).collect();
    assert_eq!(at_zero, ["k"]);
    let inputs = inputs_of(&model, &["s", "b", "c"], &TemplateVariations::All);
    let values = inputs.values(&model);
    let mut session = session_of(&model, inputs, tight(AsimovPoint::Nominal));
    for quantity in ALL {
        let found = check(&mut session, &values, quantity, 3);
        assert!(matches!(found, Some(Compared::Smooth(largest)) if largest > 0.1), "{quantity:?}: {found:?}");
    }
}

#[test]
fn products_exist_along_directions_without_a_push_on_the_parameters() {
    // A larger signal at a smaller strength, and events that move between samples: all pushes on
    // the parameters cancel up to rounding.
    let plain =
        |name: &str, nominal: &[f64]| sample(name, nominal, &[("k", ModifierData::NormSys { lo: 0.9, hi: 1.1 })]);
    let signal = sample("s", &[8.0, 12.0], &[("mu", ModifierData::NormFactor)]);
    let samples = vec![signal, plain("x", &[50.0, 60.0]), plain("y", &[31.0, 17.0]), plain("z", &[23.0, 41.0])];
    let model = one_channel(samples, &[120.0, 139.0]);
    let inputs = inputs_of(&model, &["s", "x", "y", "z"], &TemplateVariations::None);
    let values = inputs.values(&model);
    let mut session = session_of(&model, inputs, tight(AsimovPoint::Nominal));
    let mu = 1.5;
    for part in [0.3, 0.7, 1.0 / 3.0] {
        let mut scaled = vec![0.0; values.len()];
        scaled[..2].iter_mut().zip(&values).for_each(|(along, s)| *along = part * s);
        // f depends on the signal only through mu s. If both move in this way, mu s stays, and the
        // derivative with respect to mu changes by s per unit.
        let mut product = vec![f64::NAN; values.len()];
        let by_mu = session
            .profiled_nll_product(Some(mu), InputDirection { inputs: &scaled, mu: -part * mu }, &mut product)
            .expect("a product");
        let [_, derivative] = session.profiled_nll(Some(mu), None).expect("a fit");
        assert_close(by_mu, part * derivative, 1e-9, "by mu");
        let mut moved = vec![0.0; values.len()];
        for (sample, share) in [(1, part), (2, 0.4), (3, -part - 0.4)] {
            moved[2 * sample] = share * 3.0;
            moved[2 * sample + 1] = share * 5.0;
        }
        for quantity in ALL {
            let along: Vec<f64> = moved.iter().copied().chain([0.0]).collect();
            let product =
                quantity.product(&mut session, mu, &along).unwrap_or_else(|error| panic!("{quantity:?}: {error}"));
            assert!(product.iter().all(|p| p.abs() < 1e-9), "{quantity:?}: {product:?}");
        }
    }
}

#[test]
fn products_are_symmetric() {
    let model = random::model(4, SHAPE, Interpolation::default());
    let inputs = inputs_of(&model, &["signal"], &TemplateVariations::All);
    let values = inputs.values(&model);
    let mut session = session_of(&model, inputs, tight(AsimovPoint::Nominal));
    for quantity in ALL {
        let [a, b] = [1, 2].map(|seed| direction(&values, seed));
        let [of_a, of_b] = [&a, &b].map(|along| quantity.product(&mut session, 1.5, along).expect("a product"));
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        assert_close(dot(&of_a, &b), dot(&of_b, &a), 1e-9, &format!("{quantity:?}"));
    }
}

#[test]
#[ignore = "needs published likelihoods"]
fn products_of_published_models_match_differences() {
    let folder = published::data_folder().join("workspaces");
    let mut n_checked = 0;
    for name in ["atlas_tHu_fcnc.json", "pyhf_2bin_1ch.json"] {
        let source = ns_translate::DocumentSource::Path(folder.join(name));
        let request = ns_translate::LoadRequest::new(source);
        let workspace = ns_translate::load(&request).expect("a workspace");
        let model = ns_core::compile(&workspace, &ns_core::CompileOptions::default()).expect("a model");
        let samples: Vec<&str> = model.samples.iter().rev().take(2).map(String::as_str).collect();
        let inputs = inputs_of(&model, &samples, &TemplateVariations::All);
        let values = inputs.values(&model);
        let mut session = session_of(&model, inputs, tight(AsimovPoint::Nominal));
        n_checked += ALL.into_iter().filter(|&quantity| check(&mut session, &values, quantity, 7).is_some()).count();
    }
    assert!(n_checked > 8, "{n_checked} compared");
}

#[test]
fn second_derivative_of_a_counting_experiment_matches_its_formula() {
    // q₀ = 2 (n ln(n/b) - n + b), so d²q₀/db² = 2 n/b² for any signal.
    let (signal, background) = (sample("s", &[5.0], &[("mu", ModifierData::NormFactor)]), sample("b", &[50.0], &[]));
    let model = one_channel(vec![signal, background], &[60.0]);
    let inputs = inputs_of(&model, &["b"], &TemplateVariations::None);
    let mut product = vec![f64::NAN];
    for start in [FitStart::Initial, FitStart::Warm] {
        let options = DifferentiableOptions { start, ..DifferentiableOptions::default() };
        let mut session = session_of(&model, inputs.clone(), options);
        let of_q0 =
            session.statistic_product(TestStatistic::Q0, 3.0, InputDirection { inputs: &[2.0], mu: 9.0 }, &mut product);
        assert_eq!(of_q0, Ok(0.0), "q₀ does not depend on mu");
        assert_close(product[0], 2.0 * 2.0 * 60.0 / 2500.0, 1e-7, "along 2");
        // With μ̂ = 2 above the tested value, q_μ is constant.
        assert_eq!(
            session.statistic_product(TestStatistic::Q, 1.0, InputDirection { inputs: &[2.0], mu: 1.0 }, &mut product),
            Ok(0.0)
        );
        assert_eq!(product, [0.0]);
    }
}

#[test]
fn undetermined_parameters_have_no_second_derivative() {
    let signal = sample("s", &[0.0], &[("mu", ModifierData::NormFactor)]);
    let model = one_channel(vec![signal, sample("b", &[50.0], &[])], &[60.0]);
    let mut session =
        session_of(&model, inputs_of(&model, &["s"], &TemplateVariations::None), DifferentiableOptions::default());
    let mut product = vec![7.0];
    let error = session
        .profiled_nll_product(None, InputDirection { inputs: &[1.0], mu: 0.0 }, &mut product)
        .expect_err("no product");
    assert!(matches!(error, DifferentiableError::Curvature { .. }), "{error}");
    assert_eq!(product, [7.0]);
    // With its parameter fixed, nothing moves, and the expected counts do not change.
    session
        .profiled_nll_product(Some(0.0), InputDirection { inputs: &[1.0], mu: 0.0 }, &mut product)
        .expect("a product");
    assert_eq!(product, [0.0]);
}
