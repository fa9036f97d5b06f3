//! Settings by name, and the wording of their errors.

use crate::{example, model};
use nextstat::error::SettingsError;
use nextstat::hypothesis::{LimitLevel, LimitRequest};
use nextstat::settings::{AsimovPoi, AsimovPoint};
use nextstat::{Analysis, DataSource, Error, Face, FitRequest, Hint, Settings};

fn fixed(name: &str, value: f64) -> Settings {
    Settings { fixed: vec![(name.to_owned(), value)], ..Settings::default() }
}

fn refused(settings: &Settings) -> Error {
    Analysis::new(&model(), settings).expect_err("settings that do not fit")
}

#[test]
fn a_vector_is_fixed_as_a_whole() {
    let analysis = Analysis::new(&model(), &fixed("stat", 1.0)).expect("sound settings");
    let fit = analysis.fit(&FitRequest::default()).expect("a fit");
    let of = |name: &str| fit.result.par_names.iter().position(|known| known == name).expect("a parameter");
    for name in ["stat[0]", "stat[1]"] {
        assert_eq!(fit.result.bestfit[of(name)], 1.0);
        assert_eq!(fit.result.uncertainties[of(name)], None);
    }
    assert!(fit.result.converged);
}

#[test]
fn messages_spell_settings_as_their_face_does() {
    let error = refused(&fixed("Mu", 1.0));
    assert_eq!(error.message(Face::Command), "`--fix` names the parameter `Mu`, which the model does not have");
    assert_eq!(error.message(Face::Library), "`fixed` names the parameter `Mu`, which the model does not have");
    let hint = "parameter names are case sensitive; did you mean `mu`?";
    assert_eq!(error.hint(Face::Command).as_deref(), Some(hint));
    let unlike = refused(&fixed("nothing_like_it", 1.0));
    assert_eq!(unlike.hint(Face::Command).as_deref(), Some("`nextstat inspect` lists the parameters"));
    assert_eq!(unlike.hint(Face::Library).as_deref(), Some("`model.par_names` lists the parameters"));
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let twice = Settings { fixed: vec![("stat".to_owned(), 1.0), ("stat[1]".to_owned(), 2.0)], ..Settings::default() };
    assert_eq!(refused(&twice).to_string(), "`fixed` sets `stat[1]` twice");
    assert_eq!(refused(&fixed("mu", f64::NAN)).to_string(), "`fixed` sets `mu` to NaN, which is not a finite number");
    let empty = Settings { bounds: vec![("mu".to_owned(), [2.0, 1.0])], ..Settings::default() };
    assert_eq!(refused(&empty).to_string(), "`bounds`: the range 2 to 1 of `mu` is empty");
    let point = AsimovPoint { fit: None, poi: AsimovPoi::At(1.0), parameters: vec![("mu".to_owned(), 2.0)] };
    let both = Settings { data: DataSource::Asimov(point), ..Settings::default() };
    assert!(matches!(refused(&both), Error::Settings(SettingsError::AsimovTwice { .. })));
}

#[test]
fn a_fixed_parameter_of_interest_has_no_limit() {
    let analysis = Analysis::new(&model(), &fixed("mu", 1.0)).expect("sound settings");
    let error = analysis.limit(&LimitRequest::default()).expect_err("nothing to vary");
    assert_eq!(error.message(Face::Command), "`limit` varies `mu`, which is fixed by the measurement or by `--fix`");
    let level = LimitRequest { level: LimitLevel::Cls(1.5), ..LimitRequest::default() };
    let error = Analysis::new(&model(), &Settings::default()).and_then(|analysis| analysis.limit(&level));
    assert_eq!(error.expect_err("no level").to_string(), "`level` is 1.5, which is not between 0 and 1");
    let level = LimitRequest { level: LimitLevel::Confidence(0.3), ..LimitRequest::default() };
    let error = Analysis::new(&model(), &Settings::default()).and_then(|analysis| analysis.limit(&level));
    let message = "an upper limit needs a confidence level above 0.5, and 0.3 is not";
    assert_eq!(error.expect_err("no limit").to_string(), message);
}

#[test]
fn an_impossible_asimov_point_is_named_with_what_is_expected_there() {
    let point = AsimovPoint { poi: AsimovPoi::At(-100.0), ..AsimovPoint::default() };
    let said = refused(&Settings { data: DataSource::Asimov(point), ..Settings::default() }).to_string();
    assert!(said.starts_with("the model has no Asimov data set at the requested point: channel `"), "{said}");
    assert!(said.contains("bin 0: -") && said.contains(" events expected (lowest yield: sample `"), "{said}");
    assert!(!said.contains("observed"), "{said}");
}

#[test]
fn an_asimov_data_set_is_fitted_where_it_was_made() {
    let point = AsimovPoint { fit: None, poi: AsimovPoi::At(2.0), parameters: vec![("xs".to_owned(), 0.5)] };
    let settings = Settings { data: DataSource::Asimov(point), ..Settings::default() };
    let fit = Analysis::new(&model(), &settings).and_then(|analysis| analysis.fit(&FitRequest::default()));
    let fit = fit.expect("a fit");
    assert!((fit.result.bestfit[fit.model().poi().expect("mu")] - 2.0).abs() < 1e-6, "{:?}", fit.result.bestfit);
    let document = fit.document();
    assert_eq!(document["poi"]["name"], "mu");
    assert_eq!(document["measurement"], "m");
    assert!(document.get("covariance").is_none());
}

#[test]
fn a_point_names_the_parameters_that_are_not_at_their_starting_values() {
    let model = model();
    let mut params = model.model().parameters.init.clone();
    assert_eq!(AsimovPoint::at(model.model(), &params), Ok(AsimovPoint::default()));
    params[0] = 0.25;
    let point = AsimovPoint::at(model.model(), &params).expect("a point");
    assert_eq!(point.parameters, [(model.model().parameters.names[0].clone(), 0.25)]);
    assert_eq!(point.resolve(model.model()), Ok(params.clone()));
    params[0] = f64::NAN;
    AsimovPoint::at(model.model(), &params).expect_err("not a number");
    AsimovPoint::at(model.model(), &params[1..]).expect_err("too few");
}

#[test]
fn data_are_asimov_data_to_the_last_bit_only() {
    let model = model();
    let point = AsimovPoint { parameters: vec![("mu".to_owned(), 0.5)], ..AsimovPoint::default() };
    let data = point.data(model.model()).expect("data");
    assert_eq!(DataSource::of(data.clone(), &point, model.model()), DataSource::Asimov(point.clone()));
    for k in 0..data.main.len() + data.aux.len() {
        let mut other = data.clone();
        let value = other.main.iter_mut().chain(&mut other.aux).nth(k).expect("a number");
        *value = f64::from_bits(value.to_bits() + 1);
        assert_eq!(DataSource::of(other.clone(), &point, model.model()), DataSource::Given(other));
    }
    let elsewhere = AsimovPoint { parameters: vec![("nu".to_owned(), 0.5)], ..AsimovPoint::default() };
    assert_eq!(DataSource::of(data.clone(), &elsewhere, model.model()), DataSource::Given(data));
}

#[test]
fn conditions_name_a_few_parameters_of_asimov_data() {
    let model = example("shapes");
    let params: Vec<f64> = model.model().parameters.init.iter().map(|value| value + 0.125).collect();
    let point = AsimovPoint::at(model.model(), &params).expect("a point");
    let settings = Settings { data: DataSource::Asimov(point), ..Settings::default() };
    let analysis = Analysis::new(&model, &settings).expect("sound settings");
    let [line] = &analysis.conditions()[..] else { panic!("one condition") };
    let mu = model.model().parameters.init[model.model().poi().expect("a parameter of interest")] + 0.125;
    assert!(line.starts_with(&format!("data: Asimov (mu = {mu}, ")), "{line}");
    assert!(line.ends_with(" and 10 more)") && line.matches(" = ").count() == 8, "{line}");
    let named = serde_json::json!(analysis.provenance())["data"]["parameters"].as_object().map(serde_json::Map::len);
    assert_eq!(named, Some(18));
}
