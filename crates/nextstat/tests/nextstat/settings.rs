//! Settings by name, and the wording of their errors.

use crate::model;
use nextstat::error::SettingsError;
use nextstat::hypothesis::LimitRequest;
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
    assert_eq!(refused(&empty).to_string(), "the range 2 to 1 of `mu` is empty");
    let point = AsimovPoint { fit: None, poi: AsimovPoi::At(1.0), parameters: vec![("mu".to_owned(), 2.0)] };
    let both = Settings { data: DataSource::Asimov(point), ..Settings::default() };
    assert!(matches!(refused(&both), Error::Settings(SettingsError::AsimovTwice { .. })));
}

#[test]
fn a_fixed_parameter_of_interest_has_no_limit() {
    let analysis = Analysis::new(&model(), &fixed("mu", 1.0)).expect("sound settings");
    let error = analysis.limit(&LimitRequest::default()).expect_err("nothing to vary");
    assert_eq!(error.message(Face::Command), "`limit` varies `mu`, which is fixed by the measurement or by `--fix`");
    let level = LimitRequest { level: 1.5, ..LimitRequest::default() };
    let error = Analysis::new(&model(), &Settings::default()).and_then(|analysis| analysis.limit(&level));
    assert_eq!(error.expect_err("no level").to_string(), "the level 1.5 is not between 0 and 1");
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
