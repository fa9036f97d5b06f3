//! Scans of many signals: against a workspace with each signal, and against the full search.

use nextstat::error::ScannerError;
use nextstat::hypothesis::{HypotestRequest, LimitLevel, LimitRequest};
use nextstat::scanner::{Scanner, SignalScan, SignalScanRequest, SignalSlot, Signals};
use nextstat::settings::{AsimovPoi, AsimovPoint};
use nextstat::{
    Analysis, CompiledModel, DataSource, DocumentSource, Error, Face, Hint as _, LoadRequest, NumberTable, Settings,
};
use ns_core::CompileOptions;
use ns_core::spec::Workspace;
use ns_inference::parallel::ExecutionContext;
use ns_testkit::multimodal::{self, Cause};
use ns_testkit::random::Random;
use ns_testkit::{assert_all_close, assert_close, published};
use ns_translate::patchset::PatchSet;
use ns_translate::pyhf::{from_value, read_value, write_workspace};
use ns_translate::{DocumentText, LoadedWorkspace, read_bytes};
use serde_json::{Value, json};
use std::num::NonZeroUsize;

const EXAMPLE: &str = "../../examples/background.json";

fn loaded(workspace: Workspace) -> LoadedWorkspace {
    let text = write_workspace(&workspace).to_string();
    LoadedWorkspace::from_memory(workspace, DocumentText::new(text.into_bytes()))
}

fn scanner_with(settings: &Settings, slot: &SignalSlot) -> Result<Scanner, Error> {
    let request = LoadRequest::new(DocumentSource::Path(EXAMPLE.into()));
    Scanner::load(&request, &CompileOptions::default(), settings, slot)
}

fn scanner() -> Scanner {
    scanner_with(&Settings::default(), &SignalSlot::default()).unwrap()
}

fn table(rows: &[&[f64]]) -> NumberTable {
    NumberTable { values: rows.concat(), n_rows: rows.len(), n_columns: rows[0].len() }
}

/// Signals of one channel of the example.
fn signals(rows: &[&[f64]], uncertainties: Option<&[&[f64]]>) -> Signals {
    let mut signals = Signals::default();
    signals.yields.insert("signal_region".to_owned(), table(rows));
    let uncertainties = uncertainties.map(|rows| ("signal_region".to_owned(), table(rows)));
    signals.uncertainties.extend(uncertainties);
    signals
}

const ROWS: [&[f64]; 3] = [&[1.0, 4.0, 9.0, 12.0], &[0.0, 0.0, 2.0, 3.5], &[6.0, 3.0, 1.0, 0.0]];

/// The example with one more sample.
fn with_signal(yields: &[f64], uncertainties: &[f64]) -> CompiledModel {
    let mut document: Value = serde_json::from_slice(&std::fs::read(EXAMPLE).unwrap()).unwrap();
    for channel in document["channels"].as_array_mut().unwrap() {
        let name = channel["name"].as_str().unwrap().to_owned();
        let here = name == "signal_region";
        let n_bins = channel["samples"][0]["data"].as_array().unwrap().len();
        let (yields, uncertainties) =
            if here { (yields.to_vec(), uncertainties.to_vec()) } else { (vec![0.0; n_bins], vec![0.0; n_bins]) };
        let modifiers = json!([
            {"name": "mu", "type": "normfactor", "data": null},
            {"name": "lumi", "type": "lumi", "data": null},
            {"name": "theory_signal", "type": "normsys", "data": {"lo": 0.9, "hi": 1.15}},
            {"name": format!("staterror_signal_{name}"), "type": "staterror", "data": uncertainties},
        ]);
        channel["samples"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "signal", "data": yields, "modifiers": modifiers}));
    }
    CompiledModel::from_json(document.to_string().as_bytes(), &CompileOptions::default()).unwrap()
}

#[test]
fn a_signal_has_the_results_of_a_workspace_with_it() {
    let uncertainties: [&[f64]; 3] = [&[0.2, 0.5, 0.6, 1.0], &[0.0, 0.0, 0.0, 0.5], &[1.0, 0.5, 0.4, 0.0]];
    let slot = SignalSlot {
        lumi: Some("lumi".to_owned()),
        normsys: vec![("theory_signal".to_owned(), [0.9, 1.15])],
        ..SignalSlot::default()
    };
    let scanner = scanner_with(&Settings::default(), &slot).unwrap();
    let request = SignalScanRequest { mu: Some(1.3), limit_level: Some(0.1), ..SignalScanRequest::default() };
    let found =
        scanner.scan(&signals(&ROWS, Some(&uncertainties)), &request, ExecutionContext::SINGLE_THREADED).unwrap();
    assert!(found.converged && found.explored && found.warnings.is_empty(), "{:?}", found.warnings);
    let limits = found.limits.unwrap();
    for (i, (yields, uncertainties)) in ROWS.iter().zip(uncertainties).enumerate() {
        let analysis = Analysis::new(&with_signal(yields, uncertainties), &Settings::default()).unwrap();
        let test = analysis.hypotest(&HypotestRequest { mu: Some(1.3), ..HypotestRequest::default() }).unwrap().result;
        assert_close(found.cls_obs[i], test.cls_obs.unwrap(), 1e-8, "CLs");
        for (found, wanted) in found.cls_exp[i].iter().zip(test.cls_exp.unwrap()) {
            assert_close(*found, wanted, 1e-8, "expected CLs");
        }
        assert_close(found.bestfit[i], test.poi.bestfit.unwrap(), 1e-5, "best fit");
        assert_close(found.q[i], test.q.unwrap(), 1e-8, "q");
        let rise = found.twice_nll[i] - found.twice_nll_best[i];
        assert!(found.q[i] == 0.0 || (rise - found.q[i]).abs() < 1e-8, "{rise}");
        let limit =
            analysis.limit(&LimitRequest { level: LimitLevel::Cls(0.1), ..LimitRequest::default() }).unwrap().result;
        assert_close(limits.observed[i], limit.observed.unwrap(), 1e-5, "limit");
        for (found, wanted) in limits.expected[i].iter().zip(limit.expected) {
            assert_close(*found, wanted.unwrap(), 1e-5, "expected limit");
        }
    }
}

#[test]
fn results_do_not_depend_on_threads_and_other_signals() {
    let scanner = scanner();
    let request = SignalScanRequest { limit_level: Some(0.05), ..SignalScanRequest::default() };
    let scan = |rows: &[&[f64]], threads: usize| {
        let execution = ExecutionContext::with_threads(NonZeroUsize::new(threads).unwrap());
        scanner.scan(&signals(rows, None), &request, execution).unwrap()
    };
    let together = scan(&ROWS, 1);
    assert_eq!(scan(&ROWS, 3), together);
    for (i, row) in ROWS.iter().enumerate() {
        let alone = scan(&[row], 1);
        assert_eq!(alone.cls_obs[0].to_bits(), together.cls_obs[i].to_bits());
        assert_eq!(alone.twice_nll_background.to_bits(), together.twice_nll_background.to_bits());
        assert_eq!(
            alone.limits.unwrap().observed[0].to_bits(),
            together.limits.as_ref().unwrap().observed[i].to_bits()
        );
    }
}

#[test]
fn masked_bins_of_signals_do_not_count() {
    let masked = Settings { mask: vec!["signal_region[0:2]".to_owned()], ..Settings::default() };
    let scanner = scanner_with(&masked, &SignalSlot::default()).unwrap();
    let scan = |rows: &[&[f64]]| {
        scanner.scan(&signals(rows, None), &SignalScanRequest::default(), ExecutionContext::SINGLE_THREADED).unwrap()
    };
    let found = scan(&[&[1.0, 4.0, 9.0, 12.0], &[50.0, 90.0, 9.0, 12.0], &[3.0, 0.0, 0.0, 0.0]]);
    assert_eq!(found.cls_obs[0].to_bits(), found.cls_obs[1].to_bits());
    assert!(found.cls_obs[2].is_nan() && !found.signal_converged[2] && found.converged);
    assert_eq!(found.warnings, ["1 signal (index 2) has no events, and so no result"]);
    assert!(found.document()["CLs_obs"][2].is_null());
}

#[test]
fn signals_that_do_not_fit_are_refused() {
    let scanner = scanner();
    let refused = |signals: &Signals| match scanner.scan(
        signals,
        &SignalScanRequest::default(),
        ExecutionContext::SINGLE_THREADED,
    ) {
        Err(Error::Scanner(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&Signals::default()), ScannerError::NoSignals);
    let error = refused(&signals(&[&[1.0, 2.0, 3.0]], None));
    assert_eq!(
        error.to_string(),
        "the events of the channel `signal_region` are 1 × 3 numbers instead of 1 × 4 (signals × bins)"
    );
    let error = refused(&signals(&[&[1.0, 2.0, -3.0, 0.0]], None));
    assert_eq!(error.to_string(), "the events of signal 0 in bin 2 of the channel `signal_region` are -3");
    assert!(matches!(refused(&signals(&[&[1.0, f64::NAN, 3.0, 0.0]], None)), ScannerError::NotACount { bin: 1, .. }));
    assert!(matches!(refused(&signals(&ROWS, Some(&[&[0.1; 4]]))), ScannerError::Shape { what: "uncertainties", .. }));
    let mut other = Signals::default();
    other.yields.insert("signal_regoin".to_owned(), table(&[&[1.0]]));
    assert_eq!(refused(&other).hint().unwrap(), "did you mean `signal_region`?");
    let mut alone = signals(&[&[1.0; 4]], None);
    alone.uncertainties.insert("control_region".to_owned(), table(&[&[1.0]]));
    assert!(matches!(refused(&alone), ScannerError::UncertaintyAlone { .. }));
}

#[test]
fn names_that_are_in_use_are_refused() {
    let error = |slot: &SignalSlot| scanner_with(&Settings::default(), slot).unwrap_err();
    let used = error(&SignalSlot { strength: Some("norm_ttbar".to_owned()), ..SignalSlot::default() });
    assert_eq!(
        used.message(Face::Library),
        "`norm_ttbar` scales the sample `ttbar` of the background, so it cannot be the strength of the signals"
    );
    assert!(used.hint(Face::Library).unwrap().contains("remove the sample `ttbar`"));
    let used = error(&SignalSlot { sample: "ttbar".to_owned(), ..SignalSlot::default() });
    assert_eq!(used.message(Face::Library), "the background has a sample `ttbar` already");
    let fixed = Settings { fixed: vec![("mu".to_owned(), 1.0)], ..Settings::default() };
    assert!(matches!(scanner_with(&fixed, &SignalSlot::default()), Err(Error::Settings(_))));
}

/// Returns the background of a model with several minima, and eight random signals.
fn with_several_minima(cause: Cause, seed: u64) -> (Scanner, Signals) {
    let mut workspace = multimodal::workspace(cause, seed);
    let mut random = Random::new(seed ^ 0x51);
    let mut signals = Signals::default();
    for channel in &mut workspace.channels {
        channel.samples.retain(|sample| sample.name != "signal");
        let n_bins = channel.samples[0].data.len();
        let total = |b: usize| channel.samples.iter().map(|sample| sample.data[b]).sum::<f64>();
        let values = (0..8 * n_bins).map(|k| total(k % n_bins) * random.between(0.0, 0.3)).collect();
        signals.yields.insert(channel.name.clone(), NumberTable { values, n_rows: 8, n_columns: n_bins });
    }
    let (options, settings, slot) = (CompileOptions::default(), Settings::default(), SignalSlot::default());
    (Scanner::new(&loaded(workspace), &options, &settings, &slot).unwrap(), signals)
}

#[test]
fn scans_that_start_at_minima_of_the_background_say_that_they_miss_others() {
    let (mut n_warned, mut n_missed, mut n) = (0, 0, 0);
    for (cause, seed) in Cause::ALL.into_iter().flat_map(|cause| (0..3).map(move |seed| (cause, seed))) {
        let (scanner, signals) = with_several_minima(cause, seed);
        let scan = |explore| {
            let request = SignalScanRequest { explore, ..SignalScanRequest::default() };
            scanner.scan(&signals, &request, ExecutionContext::SINGLE_THREADED)
        };
        let (Ok(found), Ok(wanted)) = (scan(false), scan(true)) else { continue };
        n_warned += usize::from(found.warnings.iter().any(|warning| warning.contains("of 1 signals that were tested")));
        for i in 0..8 {
            n += 1;
            let is_alike = (found.q[i] - wanted.q[i]).abs() <= 1e-4 || (found.q[i].is_nan() && wanted.q[i].is_nan());
            n_missed += usize::from(!is_alike);
        }
    }
    assert!(n > 100 && n_warned > 0 && n_missed <= n / 20, "{n_missed} of {n} signals missed, {n_warned} warnings");
}

#[test]
fn scans_search_with_every_signal_where_a_normsys_multiplies_a_yield_several_times() {
    for seed in [2, 9, 20] {
        let (scanner, signals) = with_several_minima(Cause::HugeNormsys, seed);
        let scan = |explore| {
            let request = SignalScanRequest { explore, limit_level: Some(0.05), ..SignalScanRequest::default() };
            scanner.scan(&signals, &request, ExecutionContext::SINGLE_THREADED).unwrap()
        };
        let (found, wanted) = (scan(false), scan(true));
        assert_all_close(&found.cls_obs, &wanted.cls_obs, 1e-6, "CLs");
        let limits = |scan: SignalScan| scan.limits.unwrap().observed;
        assert_all_close(&limits(found), &limits(wanted), 1e-6, "limits");
    }
}

/// The public signals, as events without systematics.
#[test]
#[ignore = "needs published likelihoods"]
fn starts_at_the_background_find_what_the_full_search_finds_in_published_searches() {
    {
        let name = "atlas_3l_rjr";
        let folder = published::data_folder().join("workspaces");
        let read = |name: String| read_bytes(&DocumentSource::Path(folder.join(name))).unwrap();
        let set = PatchSet::from_bytes(&read(format!("{name}.patchset.json.zst"))).unwrap();
        let background = read_value(&read(format!("{name}.json"))).unwrap();
        let workspace = from_value(&background).unwrap();
        let mut signals = Signals::default();
        for entry in set.patches() {
            let patched = set.workspace(&background, entry).unwrap();
            for (channel, with) in workspace.channels.iter().zip(&patched.channels) {
                assert_eq!(channel.name, with.name);
                let n_bins = channel.samples[0].data.len();
                let own =
                    with.samples.iter().filter(|sample| channel.samples.iter().all(|known| known.name != sample.name));
                let row = own
                    .fold(vec![0.0; n_bins], |sum, sample| sum.iter().zip(&sample.data).map(|(a, b)| a + b).collect());
                let table = signals.yields.entry(channel.name.clone()).or_default();
                table.values.extend(row);
                (table.n_rows, table.n_columns) = (table.n_rows + 1, n_bins);
            }
        }
        let scanner =
            Scanner::new(&loaded(workspace), &CompileOptions::default(), &Settings::default(), &SignalSlot::default())
                .unwrap();
        let scan = |explore| {
            let request = SignalScanRequest { explore, ..SignalScanRequest::default() };
            scanner.scan(&signals, &request, ExecutionContext::SINGLE_THREADED).unwrap()
        };
        let (from_background, explored) = (scan(false), scan(true));
        for i in 0..from_background.n_signals {
            assert_close(from_background.cls_obs[i], explored.cls_obs[i], 1e-7, "CLs");
            for (a, b) in from_background.cls_exp[i].iter().zip(explored.cls_exp[i]) {
                assert_close(*a, b, 1e-7, "expected CLs");
            }
        }
    }
}

#[test]
fn asimov_data_are_those_without_signal() {
    let scanner_of = |poi| {
        let data = DataSource::Asimov(AsimovPoint { fit: None, poi, parameters: Vec::new() });
        scanner_with(&Settings { data, ..Settings::default() }, &SignalSlot::default())
    };
    let scanner = scanner_of(AsimovPoi::At(0.0)).unwrap();
    let found = scanner.scan(&signals(&ROWS, None), &SignalScanRequest::default(), ExecutionContext::SINGLE_THREADED);
    let found = found.unwrap();
    assert!(found.bestfit.iter().all(|mu| mu.abs() < 1e-4), "{:?}", found.bestfit);
    for poi in [AsimovPoi::One, AsimovPoi::Initial, AsimovPoi::At(2.0)] {
        assert!(matches!(scanner_of(poi), Err(Error::Scanner(ScannerError::AsimovSignal))));
    }
}
