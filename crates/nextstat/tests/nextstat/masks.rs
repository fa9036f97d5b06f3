//! Masked bins: fits without them are fits of a workspace without them, and yields still predict
//! them.

use nextstat::blinding::Blinding;
use nextstat::fits::FitsRequest;
use nextstat::settings::Settings;
use nextstat::{Analysis, CompiledModel, DataSource, Error, Face, FitRequest, Hint, NoMonitor, NumberTable};
use ns_core::spec::{ModifierData, Workspace};
use ns_inference::FitResult;
use ns_testkit::random::{Shape, workspace};

/// In standard deviations; a fit that ends at an EDM of 1e-14 is that close to the minimum.
const SAME: f64 = 1e-6;
/// For differences of -ln L.
const SAME_NLL: f64 = 1e-10;

pub(crate) const SHAPE: Shape = Shape {
    channels: 4,
    bins: 5,
    samples: 3,
    systematics: 4,
    oddities: false,
    gentle: true,
    terms: true,
    rules: true,
    yield_rules: false,
};

pub(crate) fn masked(names: &[&str]) -> Settings {
    Settings { mask: names.iter().map(|name| (*name).to_owned()).collect(), ..Settings::default() }
}

pub(crate) fn compiled(workspace: &Workspace) -> CompiledModel {
    CompiledModel::new(workspace.clone(), &Default::default()).expect("a sound workspace")
}

fn fitted(model: &CompiledModel, settings: &Settings) -> FitResult {
    let analysis = Analysis::new(model, settings).expect("sound settings");
    analysis.fit(&FitRequest::default()).expect("a fit").result
}

/// The rise of 2 (-ln L) from the minimum to `mu` = 1, which is free of constants.
fn rise(model: &CompiledModel, settings: &Settings) -> f64 {
    let fixed = Settings { fixed: vec![("mu".to_owned(), 1.0)], ..settings.clone() };
    fitted(model, &fixed).twice_nll - fitted(model, settings).twice_nll
}

/// Asserts that all parameters of `pruned` are where those of `masked` are, by name; `renamed` says
/// what a parameter of the pruned workspace is called in the whole one.
fn assert_same(masked: &FitResult, pruned: &FitResult, renamed: impl Fn(&str) -> String, what: &str) {
    assert!(masked.converged && pruned.converged, "{what}: {:?} {:?}", masked.warnings, pruned.warnings);
    for (i, name) in pruned.par_names.iter().enumerate() {
        let other = renamed(name);
        let k = masked.par_names.iter().position(|known| *known == other).expect("a parameter");
        let width = pruned.uncertainties[i].unwrap_or(1.0);
        let [here, there] = [masked.bestfit[k], pruned.bestfit[i]];
        assert!((here - there).abs() < SAME * width, "{what}: {name}: {here} and {there}");
        match (masked.uncertainties[k], pruned.uncertainties[i]) {
            (Some(here), Some(there)) => assert!((here / there - 1.0).abs() < SAME, "{what}: {name} ± {here}, {there}"),
            (here, there) => assert_eq!(here, there, "{what}: {name}"),
        }
    }
}

#[test]
fn fits_without_a_channel_are_those_of_a_workspace_without_it() {
    let mut n_compared = 0;
    for seed in 0..40 {
        let whole = workspace(seed, SHAPE);
        if whole.channels.len() < 2 {
            continue;
        }
        let name = whole.channels[0].name.clone();
        let mut pruned = whole.clone();
        pruned.channels.retain(|channel| channel.name != name);
        pruned.observations.retain(|observation| observation.name != name);
        let (whole, pruned, settings) = (compiled(&whole), compiled(&pruned), masked(&[&name]));
        let (here, there) = (fitted(&whole, &settings), fitted(&pruned, &Settings::default()));
        assert_same(&here, &there, str::to_owned, &format!("seed {seed}"));
        let [here, there] = [rise(&whole, &settings), rise(&pruned, &Settings::default())];
        assert!((here - there).abs() < SAME_NLL * there.max(1.0), "seed {seed}: {here} and {there}");
        n_compared += 1;
    }
    assert!(n_compared > 20);
}

/// Removes bin `bin` of the first channel.
fn without_bin(whole: &Workspace, bin: usize) -> Workspace {
    let mut workspace = whole.clone();
    let name = workspace.channels[0].name.clone();
    for sample in &mut workspace.channels[0].samples {
        sample.data.remove(bin);
        for modifier in &mut sample.modifiers {
            match &mut modifier.data {
                ModifierData::HistoSys { lo_data, hi_data } => {
                    lo_data.remove(bin);
                    hi_data.remove(bin);
                }
                ModifierData::ShapeSys(values) | ModifierData::StatError(values) => drop(values.remove(bin)),
                _ => {}
            }
        }
    }
    let observed = workspace.observations.iter_mut().find(|observation| observation.name == name).expect("data");
    observed.data.remove(bin);
    workspace
}

#[test]
fn fits_without_a_bin_are_those_of_a_workspace_without_it() {
    let mut n_compared = 0;
    for seed in 100..140 {
        let whole = workspace(seed, SHAPE);
        let channel = &whole.channels[0];
        let n_bins = channel.samples[0].data.len();
        if n_bins < 2 {
            continue;
        }
        let bin = n_bins / 2;
        let settings = masked(&[&format!("{}[{bin}]", channel.name)]);
        // Vectors of the first channel lose one element.
        let own: Vec<&str> = (channel.samples.iter().flat_map(|sample| &sample.modifiers))
            .filter(|modifier| matches!(modifier.data, ModifierData::ShapeSys(_) | ModifierData::StatError(_)))
            .map(|modifier| modifier.name.as_str())
            .collect();
        let renamed = |name: &str| {
            let element = name.strip_suffix(']').and_then(|name| name.split_once('['));
            match element.filter(|(set, _)| own.contains(set)) {
                Some((set, k)) => {
                    let k: usize = k.parse().expect("an index");
                    format!("{set}[{}]", k + usize::from(k >= bin))
                }
                None => name.to_owned(),
            }
        };
        let (here, there) = (compiled(&whole), compiled(&without_bin(&whole, bin)));
        let what = format!("seed {seed}");
        assert_same(&fitted(&here, &settings), &fitted(&there, &Settings::default()), renamed, &what);
        let [here, there] = [rise(&here, &settings), rise(&there, &Settings::default())];
        assert!((here - there).abs() < SAME_NLL * there.max(1.0), "{what}: {here} and {there}");
        n_compared += 1;
    }
    assert!(n_compared > 15);
}

#[test]
fn channels_to_fit_are_the_complement_of_masked_ones() {
    let model = compiled(&workspace(0, SHAPE));
    let channels = &model.model().channels;
    assert!(channels.len() > 2, "{channels:?}");
    let fit_channels = Settings { fit_channels: vec![channels[0].clone()], ..Settings::default() };
    let others: Vec<&str> = channels[1..].iter().map(String::as_str).collect();
    assert_eq!(fitted(&model, &fit_channels), fitted(&model, &masked(&others)));
    let analysis = Analysis::new(&model, &fit_channels).expect("sound settings");
    assert_eq!(analysis.model().channels, channels[..1]);
    assert_eq!(analysis.provenance().settings["masked"].as_object().expect("an object").len(), others.len());
}

#[test]
fn yields_predict_masked_channels() {
    let whole = compiled(&workspace(0, SHAPE));
    let name = whole.model().channels[0].clone();
    let analysis = Analysis::new(&whole, &masked(&[&name])).expect("sound settings");
    let yields = analysis.yields().expect("yields").result;
    assert_eq!(yields.postfit.len(), whole.model().channels.len());
    assert_eq!(yields.postfit[0].channel, name);
    let expected = ns_core::expected::expected_main(whole.model(), &yields.fit.result.bestfit);
    let bins = whole.model().channel_bins(0);
    for (found, wanted) in yields.postfit[0].total.yields.iter().zip(&expected[bins]) {
        assert!((found / wanted - 1.0).abs() < 1e-12);
    }
    assert!(yields.postfit[0].total.uncertainties.iter().all(|uncertainty| uncertainty.is_some_and(|u| u > 0.0)));
}

#[test]
fn a_free_factor_of_masked_bins_alone_is_fixed() {
    use ns_testkit::small::{region, sample};
    let control = vec![sample("background", &[50.0, 60.0], &[("norm", ModifierData::NormFactor)])];
    let signal = vec![
        sample("background", &[5.0], &[("norm", ModifierData::NormFactor)]),
        sample("signal", &[3.0], &[("mu", ModifierData::NormFactor)]),
    ];
    let model =
        ns_testkit::small::model(vec![region("CR", control, &[55.0, 61.0]), region("SR", signal, &[9.0])], Vec::new());
    let masked = model.without_bins(&[false, false, true]).expect("a model");
    let of = |name: &str| model.parameters.names.iter().position(|known| known == name).expect("a parameter");
    assert!(masked.parameters.fixed[of("mu")] && !masked.parameters.fixed[of("norm")]);
}

#[test]
fn impossible_masks_are_errors_with_hints() {
    let model = crate::model();
    let refused = |mask: &[&str], fit_channels: &[&str]| {
        let fit_channels = fit_channels.iter().map(|name| (*name).to_owned()).collect();
        let settings = Settings { fit_channels, ..masked(mask) };
        let error = Analysis::new(&model, &settings).expect_err("no such channel");
        let face = nextstat::Face::Command;
        (error.message(face), error.hint(face).unwrap_or_default())
    };
    let (message, hint) = refused(&["sr"], &[]);
    assert_eq!(message, "`--mask` names the channel `sr`, which the model does not have");
    assert_eq!(hint, "did you mean `SR`?");
    let (message, _) = refused(&["SR[2]"], &[]);
    assert_eq!(message, "`--mask` names `SR[2]`, and the channel `SR` has 2 bins");
    let (message, _) = refused(&["*"], &[]);
    assert_eq!(message, "`--fit-channels` and `--mask` leave no bin to fit");
    let (message, hint) = refused(&[], &["CR_*"]);
    assert_eq!(message, "`--fit-channels` names the channel `CR_*`, which the model does not have");
    assert!(hint.contains("`*` matches any characters"), "{hint}");
    for bins in ["SR[]", "SR[1:1]", "SR[-1]", "SR[0:3]", "SR[a]"] {
        assert!(refused(&[bins], &[]).0.starts_with("`--mask` names `SR["), "{bins}");
    }
}

/// The data of the workspace with `value` in the first bin of the first channel.
fn with_first_bin(model: &CompiledModel, value: f64) -> DataSource {
    let mut data = model.model().observed.clone();
    data.main[0] = value;
    DataSource::Given(data)
}

#[test]
fn missing_data_are_accepted_where_nothing_is_computed_from_them() {
    let model = compiled(&workspace(3, SHAPE));
    let bin = format!("{}[0]", model.model().channels[0]);
    let blind = Blinding { bins: vec![bin.clone()], ..Blinding::default() };
    let hidden = Settings { blind: blind.clone(), ..Settings::default() };
    for conditions in [masked(&[&bin]), hidden] {
        let with = |value: f64| Settings { data: with_first_bin(&model, value), ..conditions.clone() };
        let (missing, there) = (fitted(&model, &with(f64::NAN)), fitted(&model, &with(7.0)));
        assert_eq!((missing.bestfit, missing.twice_nll), (there.bestfit, there.twice_nll));
        let analysis = Analysis::new(&model, &with(f64::NAN)).expect("sound settings");
        let document = analysis.report().expect("a report").document();
        assert_eq!(document["yields"]["channels"][0]["data"][0], serde_json::Value::Null);
        // A negative or infinite count is an error in masked bins, too.
        for value in [-1.0, f64::INFINITY] {
            let error = Analysis::new(&model, &with(value)).expect_err("not a number of events");
            assert!(error.to_string().ends_with(&format!("{value} is not a valid number of events")), "{error}");
            assert_eq!(error.hint(Face::Library), None);
        }
    }
    let fit_blinded = Settings { blind: Blinding { is_fitted: true, ..blind }, ..Settings::default() };
    for conditions in [Settings::default(), masked(&[&format!("{}[1]", model.model().channels[0])]), fit_blinded] {
        let settings = Settings { data: with_first_bin(&model, f64::NAN), ..conditions };
        let error = Analysis::new(&model, &settings).expect_err("a fit would use it");
        let place = format!("channel `{}`, bin 0", model.model().channels[0]);
        assert_eq!(error.to_string(), format!("{place}: NaN is not a valid number of events"));
        let hint = error.hint(Face::Library).expect("a hint");
        assert_eq!(hint, "NaN stands for missing data only in bins that `mask` leaves out of the fit");
    }
}

#[test]
fn data_sets_may_lack_masked_bins() {
    let model = compiled(&workspace(3, SHAPE));
    let bin = format!("{}[0]", model.model().channels[0]);
    let table = |value: f64| {
        let mut values = model.model().observed.main.clone();
        values[0] = value;
        NumberTable { n_columns: values.len(), n_rows: 1, values }
    };
    let bestfit = |settings: &Settings, value: f64| {
        let analysis = Analysis::new(&model, settings)?;
        let mut found = Vec::new();
        analysis.fits(&FitsRequest::new(table(value)))?.run(&NoMonitor, |_, fits| {
            found.extend(fits.into_iter().map(|fit| fit.bestfit));
            Ok::<_, Error>(())
        })?;
        Ok::<_, Error>(found)
    };
    let [missing, there] = [f64::NAN, 7.0].map(|value| bestfit(&masked(&[&bin]), value).expect("fits"));
    assert_eq!((missing.len(), &missing), (1, &there));
    let error = bestfit(&Settings::default(), f64::NAN).expect_err("a fit would use it");
    assert!(error.to_string().starts_with("data set 0, channel") && error.hint(Face::Library).is_some(), "{error}");
}
