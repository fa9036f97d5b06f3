//! Procedures by toys: results do not depend on how runs are divided, and warn about failed fits.

use crate::model;
use nextstat::goodness::{Goodness, GoodnessByToys, GoodnessRequest};
use nextstat::toy_tests::ToyTestRequest;
use nextstat::toys::{ThrowAt, ToyOptions, ToyPart, ToysRequest, row};
use nextstat::{Analysis, Error, Settings};
use ns_inference::monitor::NoMonitor;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::toys::{AuxTreatment, HypotestToys, StatisticSamples};
use ns_translate::toys::ToyFitRecord;

fn analysis() -> Analysis {
    Analysis::new(&model(), &Settings { seed: 3, ..Settings::default() }).expect("sound settings")
}

fn request(part: ToyPart) -> ToysRequest {
    let options = ToyOptions { part, ..ToyOptions::default() };
    ToysRequest { n_toys: 30, poi_uncertainty: true, options, ..ToysRequest::default() }
}

#[test]
fn a_resumed_run_is_the_whole_run() {
    let analysis = analysis();
    let whole = ToyPart::Range(0..30);
    let run = |part, resumed: &[ToyFitRecord]| {
        let mut toys = analysis.toys(&request(part)).expect("an ensemble");
        resumed.iter().for_each(|record| toys.resume(record));
        let mut records = resumed.to_vec();
        let sink = |toys: &nextstat::toys::ToyEnsemble, fits: Vec<_>| {
            records.extend(fits.iter().map(|fit| toys.record(fit)));
            Ok::<_, Error>(())
        };
        toys.run(&NoMonitor, sink).expect("fits");
        let answer = toys.answer().expect("a summary");
        (records, answer.document())
    };
    // Rows, because an uncertainty that does not exist is NaN.
    let rows = |records: &[ToyFitRecord]| records.iter().map(row).collect::<Vec<_>>();
    let (all, document) = run(whole.clone(), &[]);
    let (resumed, of_resumed) = run(whole, &all[..12]);
    assert_eq!((rows(&resumed), of_resumed), (rows(&all), document));
    assert_eq!(rows(&run(ToyPart::Range(10..20), &[]).0), rows(&all[10..20]));
    assert_eq!(row(&all[0])["outcome"], "converged");
}

#[test]
fn requests_that_toys_cannot_satisfy_are_refused() {
    let two_sided = ToyTestRequest { statistic: TestStatistic::T, ..ToyTestRequest::default() };
    let error = analysis().hypotest_toys(&two_sided).expect_err("no such test").to_string();
    assert_eq!(error, "`hypotest_toys` does not support the test statistic `t`");
    let not_zero = ToyTestRequest { statistic: TestStatistic::Q0, mu: Some(1.0), ..ToyTestRequest::default() };
    let error = analysis().hypotest_toys(&not_zero).expect_err("no such test").to_string();
    assert_eq!(error, "`q0` tests the value 0 of the parameter of interest, not 1");
    let unknown = ToysRequest { parameters: vec!["nope".to_owned()], ..ToysRequest::default() };
    assert!(analysis().toys(&unknown).is_err());
}

#[test]
fn toys_at_the_initial_values_are_thrown_there() {
    let at = ThrowAt::Init { mu: Some(2.0) };
    let toys = analysis().toys(&ToysRequest { throw_at: at, ..ToysRequest::default() }).expect("an ensemble");
    assert_eq!(toys.params()[analysis().model().poi().expect("mu")], 2.0);
}

#[test]
fn toys_are_not_thrown_outside_the_range_of_the_parameter_of_interest() {
    for throw_at in [ThrowAt::Init { mu: Some(-1.0) }, ThrowAt::BestFit { mu: Some(11.0) }] {
        let refused = analysis().toys(&ToysRequest { throw_at, ..ToysRequest::default() });
        let error = refused.expect_err("no ensemble").to_string();
        assert!(error.contains("outside its range, 0 to 10"), "{error}");
    }
    let throw_at = ThrowAt::BestFit { mu: Some(f64::NAN) };
    assert!(analysis().toys(&ToysRequest { throw_at, ..ToysRequest::default() }).is_err());
}

#[test]
fn p_values_of_failed_toys_warn() {
    let request = GoodnessRequest { n_toys: Some(20), aux: AuxTreatment::Fixed };
    let mut answer = analysis().goodness(&request, &NoMonitor).expect("a fit");
    let Goodness { toys: Some(toys), .. } = &mut answer.result else { panic!("toys were requested") };
    assert_eq!(toys.warnings().len(), 1, "{:?}", toys.warnings());
    let n_failed = 5;
    *toys = GoodnessByToys {
        p_values: ns_inference::toys::GoodnessToys { n_failed, ..toys.p_values.clone() },
        ..toys.clone()
    };
    toys.n_toys_wanted = 30;
    let warnings = answer.result.warnings();
    assert!(warnings[0].starts_with("interrupted after 25 of 30 toys"), "{warnings:?}");
    assert!(
        warnings[2].starts_with("the fits of 5 of 25 toys did not converge: the p-value is between"),
        "{warnings:?}"
    );
    assert_eq!(answer.document()["warnings"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_test_without_toys_has_no_p_value() {
    let test = analysis();
    let test = test.hypotest_toys(&ToyTestRequest::default()).expect("fits of the data");
    let result = test.answer().expect("an answer").result;
    let expected = HypotestToys::new(result.test.observed, &StatisticSamples::default());
    assert_eq!(result.test.n_toys, expected.n_toys);
}
