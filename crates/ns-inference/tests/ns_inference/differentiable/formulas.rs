//! Gradients of statistics by templates of models with formulas and morphing.

use super::{GENTLE, Quantity, SHAPE, Session, check, inputs_of, random_indices, session_of, tight};
use ns_core::spec::{ConstraintTerm, ModifierData, Workspace};
use ns_core::templates::TemplateVariations;
use ns_core::{CompileOptions, Model, compile};
use ns_inference::differentiable::{AsimovPoint, CLS, InputDirection, LimitKind};
use ns_inference::test_statistic::TestStatistic;
use ns_testkit::formulas::{OperatorShape, declared, formula, operators, random_workspace};
use ns_testkit::random::{self, Shape};
use ns_testkit::{assert_all_close, assert_close};

fn compiled(workspace: &Workspace) -> Model {
    compile(workspace, &CompileOptions::default()).expect("a valid workspace")
}

fn every_template(model: &Model, asimov: AsimovPoint) -> Session {
    let samples: Vec<&str> = model.samples.iter().map(String::as_str).collect();
    session_of(model, inputs_of(model, &samples, &TemplateVariations::All), tight(asimov))
}

/// Returns how many gradients of `quantities` with respect to three inputs agree with differences.
fn n_checked(model: &Model, asimov: AsimovPoint, quantities: &[Quantity], seed: u64) -> usize {
    let mut session = every_template(model, asimov);
    let values = session.inputs().values(model);
    check(&mut session, &values, quantities, &random_indices(values.len(), seed, 3), 1e-6)
}

/// Every kind of quantity, with the two ways to depend on a test.
fn quantities() -> Vec<Quantity> {
    use TestStatistic::QTilde;
    let limits = [LimitKind::Observed, LimitKind::Expected(1.0)].map(|kind| Quantity::Limit(QTilde, kind));
    let tests = [
        Quantity::Observed(QTilde, 1.5),
        Quantity::Asimov(QTilde, 1.5),
        Quantity::Cls(QTilde, 1.5, 0),
        Quantity::Cls(QTilde, 1.5, CLS - 1),
    ];
    let fits = [Quantity::Nll(None), Quantity::Nll(Some(1.0)), Quantity::Sigma, Quantity::AsimovSigma(1.0)];
    fits.into_iter().chain(tests).chain(limits).collect()
}

/// Returns the random model of `seed`, whose coefficients have constraint terms so that few bins
/// determine them.
fn random_model(seed: u64) -> Model {
    let shape = Shape { channels: 2, bins: 3, samples: 2, systematics: 2, ..GENTLE };
    let mut workspace = random_workspace(seed, shape);
    let coefficients = workspace.measurements[0].parameters.iter_mut().filter(|config| config.name.starts_with('c'));
    for config in coefficients {
        config.auxdata.clone_from(&config.inits);
        config.constraints = Some(vec![ConstraintTerm::Gaussian { sigma: 0.2 }]);
    }
    compiled(&workspace)
}

#[test]
fn gradients_of_random_models_match_differences() {
    use TestStatistic::QTilde;
    let quantities =
        [Quantity::Nll(None), Quantity::Sigma, Quantity::Cls(QTilde, 1.5, 0), Quantity::Cls(QTilde, 1.5, CLS - 1)];
    let mut n = 0;
    for seed in 0..6 {
        let point = if seed % 2 == 0 { AsimovPoint::Fitted } else { AsimovPoint::Nominal };
        n += n_checked(&random_model(seed), point, &quantities, seed);
    }
    // σ has no gradient where the best fit is at zero.
    let n_requested = 6 * 3 * quantities.len();
    assert!(10 * n > 8 * n_requested, "{n} of {n_requested} compared");
}

#[test]
fn gradients_of_quadratic_operators_match_differences() {
    let shape = OperatorShape { bins: 6, operators: 2, nuisances: 4, has_staterror: true };
    let mut workspace = operators(3, shape, &[1.2, -0.4]);
    workspace.measurements[0].parameters = vec![declared("c0", 0.5, [0.0, 5.0]), declared("c1", 0.0, [-5.0, 5.0])];
    let model = compiled(&workspace);
    let quantities = quantities();
    let n: usize = [AsimovPoint::Fitted, AsimovPoint::Nominal]
        .into_iter()
        .map(|point| n_checked(&model, point, &quantities, 1))
        .sum();
    assert_eq!(n, 2 * 3 * quantities.len());
}

/// Returns the random workspace of `seed`, in which the signal strength is a normfactor or, if
/// asked for, this formula of its parameter.
fn with_signal_strength(seed: u64, text: Option<&str>) -> Workspace {
    let mut workspace = random::workspace(seed, SHAPE);
    let samples = workspace.channels.iter_mut().flat_map(|channel| &mut channel.samples);
    for modifier in samples.flat_map(|sample| &mut sample.modifiers) {
        let is_strength = modifier.name == "mu" && modifier.data == ModifierData::NormFactor;
        if let Some(text) = text.filter(|_| is_strength) {
            *modifier = formula("strength", text);
        }
    }
    workspace
}

/// Returns the values of all quantities of `model` with their gradients.
fn values_and_gradients(model: &Model) -> Vec<Option<(f64, Vec<f64>)>> {
    let mut session = every_template(model, AsimovPoint::Fitted);
    let mut gradient = vec![f64::NAN; session.inputs().len()];
    let mut found = |quantity: Quantity| {
        let value = quantity.of(&mut session, Some(&mut gradient)).ok()?;
        Some((value, gradient.clone()))
    };
    quantities().into_iter().map(&mut found).collect()
}

#[test]
fn formulas_of_mu_have_the_gradients_of_a_normfactor() {
    let mut n = 0;
    for seed in 0..4 {
        let [plain, alias, product] = [None, Some("mu"), Some("1*mu")].map(|text| {
            let mut workspace = with_signal_strength(seed, text);
            if text.is_some() {
                workspace.measurements[0].parameters.push(declared("mu", 1.0, [0.0, 10.0]));
            }
            compiled(&workspace)
        });
        // A formula that is a parameter is that parameter; others are derived quantities.
        assert!(alias.derived.is_empty() && !product.derived.is_empty());
        let [plain, alias, product] = [&plain, &alias, &product].map(values_and_gradients);
        assert_eq!(plain, alias, "seed {seed}");
        for (one, other) in plain.iter().zip(&product) {
            let (Some((value, gradient)), Some((other_value, other_gradient))) = (one, other) else {
                assert_eq!(one.is_some(), other.is_some());
                continue;
            };
            assert_close(*value, *other_value, 1e-10, "the value");
            let scale = gradient.iter().fold(1.0_f64, |scale, g| scale.max(g.abs()));
            assert_all_close(gradient, other_gradient, 1e-9 * scale, "the gradient");
            n += 1;
        }
    }
    assert!(n > 30, "{n} compared");
}

#[test]
fn products_with_hessians_match_differences_of_gradients() {
    let shape = OperatorShape { bins: 5, operators: 2, nuisances: 3, has_staterror: false };
    let mut workspace = operators(5, shape, &[0.9, 0.3]);
    let strength = formula("strength", "exp(0.2*c0) / (1 + 0.1*c1^2)");
    workspace.channels[0].samples[0].modifiers.push(strength);
    let model = compiled(&workspace);
    let mut session = every_template(&model, AsimovPoint::Nominal);
    let values = session.inputs().values(&model);
    let direction: Vec<f64> = values.iter().enumerate().map(|(i, x)| x * (0.3 - 0.1 * (i % 5) as f64)).collect();
    let (mu, along_mu) = (1.1, 0.7);
    let mut product = vec![f64::NAN; values.len()];
    let by_mu = session
        .profiled_nll_product(Some(mu), InputDirection { inputs: &direction, mu: along_mu }, &mut product)
        .expect("a fit");
    let h = 1e-4;
    let [above, below] = [h, -h].map(|step| {
        let moved: Vec<f64> = values.iter().zip(&direction).map(|(x, v)| x + step * v).collect();
        session.set_inputs(&moved).expect("inputs");
        let mut gradient = vec![f64::NAN; values.len()];
        let [_, by_mu] = session.profiled_nll(Some(mu + step * along_mu), Some(&mut gradient)).expect("a fit");
        gradient.push(by_mu);
        gradient
    });
    for (exact, (above, below)) in product.iter().chain([&by_mu]).zip(above.iter().zip(&below)) {
        let difference = (above - below) / (2.0 * h);
        assert!((exact - difference).abs() <= 1e-6 * difference.abs().max(1.0), "{exact} is not {difference}");
    }
}
