//! Tests that a missing value or gradient is an error with a reason, and that no gradient is
//! written.

use super::{Quantity, inputs_of, session_of};
use ns_core::spec::ModifierData;
use ns_core::templates::TemplateVariations;
use ns_inference::FitOptions;
use ns_inference::differentiable::{AsimovPoint, DifferentiableError, DifferentiableOptions, FitStart, LimitKind};
use ns_inference::limit::LimitOptions;
use ns_inference::minimize::MinimizeOptions;
use ns_inference::test_statistic::TestStatistic;
use ns_testkit::small::{one_channel, sample};

#[test]
fn failures_return_errors_and_write_no_gradients() {
    let model =
        one_channel(vec![sample("s", &[5.0], &[("mu", ModifierData::NormFactor)]), sample("b", &[50.0], &[])], &[60.0]);
    let mut session = session_of(
        &model,
        inputs_of(&model, &["s", "b"], &TemplateVariations::None),
        DifferentiableOptions {
            fit: FitOptions {
                minimize: MinimizeOptions { tolerance: 1e-15, max_iterations: 1 },
                ..FitOptions::default()
            },
            ..DifferentiableOptions::default()
        },
    );
    let mut gradient = vec![7.0; 2];
    let error = session.statistic(TestStatistic::Q0, 0.0, Some(&mut gradient)).expect_err("one step is not enough");
    assert!(
        error.to_string().starts_with("the free fit to the observed data did not converge: its iterations ran out"),
        "{error}"
    );
    assert_eq!(gradient, [7.0, 7.0]);
    let mut session =
        session_of(&model, inputs_of(&model, &["s", "b"], &TemplateVariations::None), DifferentiableOptions::default());
    let (signal, background) = if session.inputs().blocks()[0].sample == "s" { (0, 1) } else { (1, 0) };
    let mut values = vec![0.0; 2];
    (values[signal], values[background]) = (f64::NAN, 50.0);
    assert!(session.set_inputs(&values).is_err());
    assert!(session.set_inputs(&[1.0]).is_err());
    (values[signal], values[background]) = (0.0, 50.0);
    session.set_inputs(&values).expect("an empty template is valid");
    assert!(session.limit(LimitOptions::default(), LimitKind::Expected(0.0), None).is_err());
    assert!(session.asimov_sigma(0.0, None).is_err());
}

#[test]
fn an_empty_signal_has_no_sigma() {
    let variation = ("k", ModifierData::NormSys { lo: 0.9, hi: 1.1 });
    let signal = sample("s", &[0.0], &[("mu", ModifierData::NormFactor)]);
    let model = one_channel(vec![signal, sample("b", &[50.0], &[variation])], &[60.0]);
    let inputs = inputs_of(&model, &["s"], &TemplateVariations::None);
    let mut session = session_of(&model, inputs, DifferentiableOptions::default());
    let undetermined = session.asimov_sigma(0.0, None).expect_err("nothing depends on mu");
    assert_eq!(undetermined.to_string(), "`mu` has no uncertainty: the data do not determine it");
    assert_eq!(undetermined.hint(), None);
}

#[test]
fn a_minimum_at_the_edge_of_the_domain_has_no_gradient() {
    // The first bin has no events, so μ̂ is where its expected count is zero: at -1/5, which moves
    // with both templates although the gradient does not vanish there.
    let signal = sample("s", &[5.0, 1.0], &[("mu", ModifierData::NormFactor)]);
    let model = one_channel(vec![signal, sample("b", &[1.0, 50.0], &[])], &[0.0, 50.0]);
    let fit = FitOptions { bounds: vec![(0, [-5.0, 10.0])], ..FitOptions::default() };
    for start in [FitStart::Initial, FitStart::Warm] {
        let options = DifferentiableOptions { fit: fit.clone(), start, ..DifferentiableOptions::default() };
        let mut session = session_of(&model, inputs_of(&model, &["s", "b"], &TemplateVariations::None), options);
        let mut gradient = vec![0.0; 4];
        let error = session.profiled_nll(None, Some(&mut gradient)).expect_err("no gradient");
        assert_eq!(
            error.to_string(),
            "the free fit to the observed data ended at the edge of the domain of -ln L, where the minimum has no derivative with respect to the templates"
        );
        assert!(session.statistic(TestStatistic::Q, 1.0, Some(&mut gradient)).is_err());
        assert!(session.sigma(Some(&mut gradient)).is_err());
    }
}

#[test]
fn errors_name_the_empty_bin() {
    let model = one_channel(
        vec![sample("s", &[5.0, 2.0], &[("mu", ModifierData::NormFactor)]), sample("b", &[50.0, 0.0], &[])],
        &[60.0, 0.0],
    );
    let options = || DifferentiableOptions { asimov: AsimovPoint::Nominal, ..DifferentiableOptions::default() };
    let mut session = session_of(&model, inputs_of(&model, &["b"], &TemplateVariations::None), options());
    let mut gradient = vec![0.0; 2];
    let error = session.asimov_statistic(TestStatistic::QTilde, 1.0, Some(&mut gradient)).expect_err("no derivative");
    assert_eq!(
        error.to_string(),
        "channel `channel`, bin 1 has no expected events, so the statistic has no derivative with respect to the templates there"
    );
    // The same holds if no events are expected under either hypothesis.
    let model = one_channel(
        vec![sample("s", &[5.0, 0.0], &[("mu", ModifierData::NormFactor)]), sample("b", &[50.0, 0.0], &[])],
        &[60.0, 0.0],
    );
    for asimov in [AsimovPoint::Nominal, AsimovPoint::Fitted] {
        let options = DifferentiableOptions { asimov, ..DifferentiableOptions::default() };
        let mut session = session_of(&model, inputs_of(&model, &["b"], &TemplateVariations::None), options);
        for quantity in [Quantity::Asimov(TestStatistic::QTilde, 1.0), Quantity::AsimovSigma(0.0)] {
            let error = quantity.of(&mut session, Some(&mut gradient)).expect_err("no derivative");
            assert!(matches!(error, DifferentiableError::Empty { .. }), "{quantity:?}: {error}");
            assert!(quantity.of(&mut session, None).is_ok());
        }
    }
    let model = one_channel(
        vec![sample("s", &[5.0, 2.0], &[("mu", ModifierData::NormFactor)]), sample("b", &[50.0, 0.0], &[])],
        &[60.0, 0.0],
    );
    // The signal alone may change, because it adds nothing to the Asimov data at μ = 0.
    let mut session = session_of(&model, inputs_of(&model, &["s"], &TemplateVariations::None), options());
    session.asimov_statistic(TestStatistic::QTilde, 1.0, Some(&mut gradient)).expect("a derivative");
    assert!(gradient.iter().all(|derivative| derivative.is_finite()));
}
