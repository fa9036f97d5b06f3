//! Fits of many data sets: summaries, masks, resumed runs, refused tables, and the covariance of
//! two analyses that share events.

use crate::model;
use nextstat::bootstrap::{BootstrapError, BootstrapRequest, bootstrap};
use nextstat::fits::{FitsRequest, row};
use nextstat::replicas::{ReplicaFits, ReplicasError, replica_covariance};
use nextstat::{Analysis, CompiledModel, Error, FitRequest, NoMonitor, NumberTable, Settings};
use ns_inference::data_sets::DataSetFit;
use ns_testkit::assert_close;
use ns_translate::toys::DataSetRecord;
use serde_json::{Value, json};
use std::num::NonZeroUsize;

fn table(rows: &[&[f64]]) -> NumberTable {
    NumberTable { values: rows.concat(), n_rows: rows.len(), n_columns: rows.first().map_or(0, |row| row.len()) }
}

fn analysis(settings: &Settings) -> Analysis {
    Analysis::new(&model(), settings).expect("sound settings")
}

/// Returns the fits of the data sets, and the document of their summary.
fn run(analysis: &Analysis, request: &FitsRequest) -> (Vec<DataSetFit>, Value) {
    let mut fits = analysis.fits(request).expect("sound data sets");
    let mut all = Vec::new();
    fits.run(&NoMonitor, |_, more| {
        all.extend(more);
        Ok::<_, Error>(())
    })
    .expect("fits");
    (all, fits.answer().expect("a summary").document())
}

const ROWS: [&[f64]; 4] = [&[57.0, 43.0], &[66.0, 40.0], &[50.0, 31.0], &[71.0, 52.0]];

#[test]
fn the_summary_is_that_of_the_fits() {
    let analysis = analysis(&Settings::default());
    let (fits, document) = run(&analysis, &FitsRequest::new(table(&ROWS)));
    let single = analysis.fit(&FitRequest::default()).expect("a fit").result;
    assert_close(fits[0].twice_nll, single.twice_nll, 1e-10, "the observed data");
    let mu: Vec<f64> = fits.iter().map(|fit| fit.bestfit[0]).collect();
    let mean = mu.iter().sum::<f64>() / 4.0;
    let width = (mu.iter().map(|mu| (mu - mean).powi(2)).sum::<f64>() / 3.0).sqrt();
    let parameter = &document["parameters"][0];
    assert_eq!((&parameter["parameter"], &document["poi"]["name"]), (&json!("mu"), &json!("mu")));
    let number = |value: &Value| value.as_f64().expect("a number");
    assert_close(number(&parameter["mean"]), mean, 1e-12, "the mean");
    assert_close(number(&parameter["standard_deviation"]), width, 1e-12, "the standard deviation");
    assert_close(number(&parameter["bestfit"]), single.bestfit[0], 1e-9, "the nominal fit");
    assert_eq!(document["correlation"][0][0], json!(1.0));
    let counts =
        ["n_data_sets", "n_data_sets_wanted", "n_failed", "complete", "converged"].map(|key| document[key].clone());
    assert_eq!(counts, [json!(4), json!(4), json!(0), json!(true), json!(true)]);
}

#[test]
fn masked_bins_are_columns_that_are_not_fitted() {
    let masked = analysis(&Settings { mask: vec!["SR[1]".to_owned()], ..Settings::default() });
    let of = |second: f64| run(&masked, &FitsRequest::new(table(&[&[57.0, second]]))).0;
    assert_eq!(of(43.0), of(90.0));
    let single = masked.fit(&FitRequest::default()).expect("a fit").result;
    assert_close(of(43.0)[0].twice_nll, single.twice_nll, 1e-10, "2NLL");
}

#[test]
fn a_resumed_run_is_the_whole_run() {
    let analysis = analysis(&Settings::default());
    let request = FitsRequest { parameters: vec!["mu".to_owned()], ..FitsRequest::new(table(&ROWS)) };
    let run = |resumed: &[DataSetRecord]| {
        let mut fits = analysis.fits(&request).expect("sound data sets");
        resumed.iter().for_each(|record| fits.resume(record));
        let mut records = resumed.to_vec();
        fits.run(&NoMonitor, |fits, more| {
            records.extend(more.iter().map(|fit| fits.record(fit)));
            Ok::<_, Error>(())
        })
        .expect("fits");
        (records.iter().map(row).collect::<Vec<_>>(), fits.answer().expect("a summary").document(), records)
    };
    let (rows, document, records) = run(&[]);
    let (of_resumed, document_of_resumed, _) = run(&records[..3]);
    assert_eq!((of_resumed, document_of_resumed), (rows, document));
    assert_eq!(records[0].bestfit.len(), 1);
}

#[test]
fn failed_fits_are_counted_and_have_no_numbers() {
    let workspace = json!({
        "version": "1.0.0",
        "channels": [{"name": "SR", "samples": [
            {"name": "signal", "data": [5.0, 0.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "background", "data": [50.0, 0.0], "modifiers": []}
        ]}],
        "observations": [{"name": "SR", "data": [50.0, 0.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]
    });
    let model = CompiledModel::from_json(workspace.to_string().as_bytes(), &Default::default()).expect("a workspace");
    let analysis = Analysis::new(&model, &Settings::default()).expect("sound settings");
    let (fits, document) = run(&analysis, &FitsRequest::new(table(&[&[60.0, 0.0], &[60.0, 1.0], &[50.0, 0.0]])));
    assert!(fits[1].bestfit[0].is_nan() && fits[1].twice_nll.is_nan(), "{fits:?}");
    assert_eq!((&document["converged"], &document["failures"]), (&json!(false), &json!({"not_finite": 1})));
    let at_bound = "nominal data: `mu` is at its lower bound 0; its uncertainty is not defined, its MINOS interval is";
    assert_eq!(document["warnings"], json!(["the fits of 1 of 3 data sets did not converge", at_bound]));
    assert_close(document["parameters"][0]["mean"].as_f64().expect("a mean"), 1.0, 1e-6, "the mean of 2 and 0");
}

#[test]
fn tables_that_are_not_of_the_model_are_refused_with_the_place() {
    let analysis = analysis(&Settings::default());
    let said = |rows: &[&[f64]]| {
        let error = analysis.fits(&FitsRequest::new(table(rows))).expect_err("no data sets");
        let Error::DataSets(error) = error else { panic!("{error}") };
        (error.to_string(), error.hint().unwrap_or_default())
    };
    assert_eq!(said(&[]).0, "there are no data sets: the table has no rows");
    let (message, hint) = said(&[&[1.0, 2.0, 3.0]]);
    assert_eq!(
        message,
        "a row has 3 numbers, but the model has 2 bins and 3 auxiliary data: each data set is a row of the bins, or of both"
    );
    assert_eq!(hint, "columns are the bins of the channels in the order of the model: `SR` (2)");
    let transposed = said(&[&[57.0, 66.0, 50.0], &[43.0, 40.0, 31.0]]).1;
    assert!(transposed.ends_with("transpose it"), "{transposed}");
    for (row, expected) in [
        ([57.0, f64::NAN], "data set 1, channel `SR`, bin 1: NaN is not a valid number of events"),
        ([-2.0, 40.0], "data set 1, channel `SR`, bin 0: -2 is not a valid number of events"),
        ([f64::INFINITY, 40.0], "data set 1, channel `SR`, bin 0: inf is not a valid number of events"),
    ] {
        assert_eq!(said(&[ROWS[0], &row]).0, expected);
    }
    let (message, _) = said(&[&[57.0, 43.0, 0.0, f64::NAN, 64.0]]);
    assert_eq!(message, "data set 0: the auxiliary datum of `stat[0]` is NaN");
}

/// A model of one bin without systematics, whose best fit is (n - b)/s.
fn counting(signal: f64, background: f64) -> Analysis {
    let workspace = json!({
        "version": "1.0.0",
        "channels": [{"name": "SR", "samples": [
            {"name": "signal", "data": [signal], "modifiers": [{"name": "mu", "type": "normfactor", "data": null}]},
            {"name": "background", "data": [background], "modifiers": []}
        ]}],
        "observations": [{"name": "SR", "data": [signal + background]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": [
            {"name": "mu", "bounds": [[-100.0, 100.0]]}
        ]}}]
    });
    let model = CompiledModel::from_json(workspace.to_string().as_bytes(), &Default::default()).expect("a workspace");
    Analysis::new(&model, &Settings::default()).expect("sound settings")
}

#[test]
fn analyses_that_share_events_have_the_correlation_of_their_overlap() {
    const N: u32 = 2000;
    let fits = |signal: f64, background: f64, events: std::ops::Range<u64>| {
        let events: Vec<u64> = events.collect();
        let bins = vec![0; events.len()];
        let (runs, weights, replicas) = (&[1][..], &[][..], 0..N);
        let request = BootstrapRequest { bins: &bins, events: &events, runs, weights, n_bins: 1, seed: 2, replicas };
        let replicas = bootstrap(&request, NonZeroUsize::MIN, &NoMonitor).expect("sound").expect("not cancelled");
        let table = NumberTable { values: replicas, n_rows: N as usize, n_columns: 1 };
        let (fits, _) = run(&counting(signal, background), &FitsRequest::new(table));
        fits.iter().map(|fit| fit.bestfit[0]).collect::<Vec<f64>>()
    };
    // 800 and 600 events, of which 400 are common.
    let (a, b) = (fits(100.0, 700.0, 0..800), fits(50.0, 550.0, 400..1000));
    let (names, converged) = (["mu".to_owned()], vec![true; N as usize]);
    let of_a = ReplicaFits { par_names: &names, bestfit: &a, converged: &converged };
    let found = replica_covariance(&of_a, &ReplicaFits { bestfit: &b, ..of_a }).expect("a covariance");
    let exact = 400.0 / (800.0_f64 * 600.0).sqrt();
    let (rho, error) = (found.correlation[0][0].expect("both vary"), found.correlation_error[0][0].expect("both vary"));
    assert_close(error, (1.0 - exact * exact) / f64::from(N - 1).sqrt(), 2e-3, "the error");
    assert!((rho - exact).abs() < 4.0 * error, "{rho} ± {error} is not {exact}");
    // The variance of μ̂ = (n - b)/s is n/s², and the covariance n_common/(s s').
    for (found, exact) in [
        (found.covariance_a[0][0], 800.0 / 100.0_f64.powi(2)),
        (found.covariance_b[0][0], 600.0 / 50.0_f64.powi(2)),
        (found.covariance[0][0], 400.0 / (100.0 * 50.0)),
    ] {
        assert!((found / exact - 1.0).abs() < 5.0 * (2.0 / f64::from(N)).sqrt(), "{found} is not {exact}");
    }
}

#[test]
fn replicas_of_which_a_fit_failed_are_left_out() {
    let names = ["mu".to_owned()];
    let bestfit = [1.0, f64::NAN, 2.0, 4.0];
    let a = ReplicaFits { par_names: &names, bestfit: &bestfit, converged: &[true, false, true, true] };
    let b = ReplicaFits { bestfit: &[1.0, 5.0, 2.0, f64::NAN], converged: &[true, true, true, false], ..a };
    let found = replica_covariance(&a, &b).expect("two common replicas");
    assert_eq!((found.n_replicas, found.n_common, found.covariance[0][0]), (4, 2, 0.5));
    assert_eq!(found.warnings, ["2 of 4 replicas are left out because a fit did not converge"]);
    let few = ReplicaFits { converged: &[true, false, false, false], ..b };
    assert_eq!(replica_covariance(&a, &few), Err(ReplicasError::TooFew { n_common: 1, n_replicas: 4 }));
    let short = ReplicaFits { bestfit: &[1.0], converged: &[true], ..b };
    assert_eq!(replica_covariance(&a, &short), Err(ReplicasError::DifferentNumbers { a: 4, b: 1 }));
}

#[test]
fn events_that_are_not_sound_are_refused() {
    let sound = BootstrapRequest {
        bins: &[0, 1, -1],
        events: &[1, 2, 3],
        runs: &[7],
        weights: &[],
        n_bins: 2,
        seed: 0,
        replicas: 0..3,
    };
    let made = |request: &BootstrapRequest<'_>| bootstrap(request, NonZeroUsize::MIN, &NoMonitor);
    assert_eq!(made(&sound).expect("sound").expect("not cancelled").len(), 6);
    let said = |request: BootstrapRequest<'_>| made(&request).expect_err("not sound");
    let length = |column, found| BootstrapError::Length { column, found, expected: 3 };
    assert_eq!(said(BootstrapRequest { bins: &[0], ..sound.clone() }), length("bins", 1));
    assert_eq!(said(BootstrapRequest { runs: &[1, 2], ..sound.clone() }), length("runs", 2));
    assert_eq!(said(BootstrapRequest { weights: &[1.0], ..sound.clone() }), length("weights", 1));
    let beyond = said(BootstrapRequest { bins: &[0, 2, -1], ..sound.clone() });
    assert_eq!(beyond.to_string(), "event 1 is in bin 2, and there are 2 bins");
    let nan = said(BootstrapRequest { weights: &[1.0, f64::NAN, 1.0], ..sound.clone() });
    assert_eq!(nan.to_string(), "event 1 has the weight NaN, which is not finite");
}
