//! HistFactory XML: what is read, what is said of what is not, and where files are looked for.

use std::fs;
use std::path::{Path, PathBuf};

use ns_translate::{DocumentSource, LoadRequest, LoadedWorkspace, full_message, load_document, read_workspace_text};
use tempfile::TempDir;

fn testdata() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/histfactory")
}

const SAMPLE: &str = r#"<Sample Name="signal" HistoName="signal"><NormFactor Name="mu" Low="0" High="5"/></Sample>"#;
const MEASUREMENT: &str = r#"<Measurement Name="m" Lumi="1" LumiRelErr="0.1"><POI>mu</POI></Measurement>"#;

/// Writes a combination of one channel next to the histograms of the test data.
fn written(contents: &str, measurement: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(testdata().join("data.root"), folder.path().join("data.root")).expect("copied");
    let channel =
        format!("<Channel Name=\"SR\" InputFile=\"data.root\">\n<Data HistoName=\"data\"/>\n{contents}\n</Channel>");
    fs::write(folder.path().join("SR.xml"), channel).expect("written");
    let top = format!("<Combination OutputFilePrefix=\"x\">\n<Input>SR.xml</Input>\n{measurement}\n</Combination>");
    fs::write(folder.path().join("top.xml"), top).expect("written");
    folder
}

fn load_in(folder: &Path) -> Result<LoadedWorkspace, ns_translate::DocumentError> {
    load_document(&LoadRequest::new(DocumentSource::Path(folder.join("top.xml"))))
}

/// Returns the message and the hint, without the name of the folder.
fn refused(contents: &str, measurement: &str) -> String {
    let folder = written(contents, measurement);
    let error = load_in(folder.path()).expect_err("refused");
    let message =
        error.advice().map_or_else(|| full_message(&error), |hint| format!("{}; {hint}", full_message(&error)));
    message.replace(&format!("{}/", folder.path().display()), "")
}

fn warnings(contents: &str, measurement: &str) -> Vec<String> {
    let folder = written(contents, measurement);
    let loaded = load_in(folder.path()).unwrap_or_else(|error| panic!("{}", full_message(&error)));
    let path = format!("{}/", folder.path().display());
    loaded.warnings.iter().map(|warning| warning.replace(&path, "")).collect()
}

#[test]
fn unknown_elements_and_attributes_are_named_with_their_places() {
    assert_eq!(
        refused(r#"<Sample Name="signal" HistoName="signal"><OveralSys Name="a"/></Sample>"#, MEASUREMENT),
        "in `SR.xml`: unknown element `OveralSys` in `Sample` at line 3, column 42; did you mean `OverallSys`?"
    );
    assert_eq!(
        refused(r#"<Sample Name="signal" HistName="signal"/>"#, MEASUREMENT),
        "in `SR.xml`: unknown attribute `HistName` of `Sample` at line 3, column 23; did you mean `HistoName`?"
    );
    assert_eq!(
        refused(SAMPLE, r#"<Measurement Name="m" Luminosity="1"/>"#),
        "in `top.xml`: unknown attribute `Luminosity` of `Measurement` at line 3, column 23; did you mean `Lumi`?"
    );
}

#[test]
fn values_are_checked_where_they_are() {
    let overall = |attributes: &str| {
        refused(&format!("<Sample Name=\"s\" HistoName=\"signal\">\n <OverallSys {attributes}/></Sample>"), MEASUREMENT)
    };
    assert_eq!(
        overall(r#"Name="a" Low="0,9" High="1.1""#),
        "in `SR.xml`: expected a number for `Low`, found `0,9` at line 4, column 23"
    );
    assert_eq!(
        overall(r#"Name="a" Low="0.9""#),
        "in `SR.xml`: `OverallSys` has no attribute `High` at line 4, column 2"
    );
    assert_eq!(
        refused(r#"<StatErrorConfig ConstraintType="LogNormal"/>"#, MEASUREMENT),
        "in `SR.xml`: expected one of `Gaussian`, `Gauss`, `Poisson`, `Pois` for `ConstraintType`, found `LogNormal` \
         at line 3, column 18"
    );
    assert_eq!(
        refused(
            r#"<Sample Name="s" HistoName="signal"><NormFactor Name="mu" Val="7" Low="0" High="5"/></Sample>"#,
            MEASUREMENT
        ),
        "in `SR.xml`: the value 7 of `mu` is not within its limits 0 and 5 at line 3, column 37"
    );
    assert_eq!(
        refused(SAMPLE, r#"<Measurement Name="m"><ConstraintTerm Type="Gaussian">a</ConstraintTerm></Measurement>"#),
        "in `top.xml`: expected one of `Gamma`, `LogNormal`, `Uniform`, `NoConstraint` for `Type`, found `Gaussian` at \
         line 3, column 39"
    );
    assert_eq!(refused("", MEASUREMENT), "in `SR.xml`: `Channel` has no element `Sample` at line 1, column 1");
    assert_eq!(refused(SAMPLE, ""), "in `top.xml`: `Combination` has no element `Measurement` at line 1, column 1");
}

#[test]
fn missing_histograms_and_files_are_named() {
    assert_eq!(
        refused(r#"<Sample Name="s" HistoName="signl"/>"#, MEASUREMENT),
        "in `SR.xml`: the histogram `signl` of `data.root` cannot be read at line 3, column 1: there is no histogram \
         `signl`; did you mean `signal`?"
    );
    let absent = refused(r#"<Sample Name="s" InputFile="other.root" HistoName="signal"/>"#, MEASUREMENT);
    assert!(
        absent.starts_with("in `SR.xml`: there is no file `other.root` at line 3, column 1; looked for `other.root`, "),
        "{absent}"
    );
    assert_eq!(
        refused(r#"<Sample Name="s" InputFile="root://eos/a.root" HistoName="signal"/>"#, MEASUREMENT),
        "in `SR.xml`: `root://eos/a.root` is on the network at line 3, column 1; copy the file, and change `InputFile`"
    );
    assert_eq!(
        refused(r#"<Sample Name="s" InputFile="SR.xml" HistoName="signal"/>"#, MEASUREMENT),
        "in `SR.xml`: `SR.xml` cannot be read at line 3, column 1: this is not a ROOT file: it does not begin with `root`"
    );
    assert_eq!(
        refused(r#"<Sample Name="s" HistoName="float"/>"#, MEASUREMENT),
        "in `SR.xml`: the histogram `data` has 4 bins, and the channel has 2 at line 2, column 1"
    );
}

#[test]
fn what_models_here_do_not_have_is_refused_by_name() {
    let function = r#"<Function Name="f" Expression="sqrt(mu)" Dependents="mu[0,3]"/>"#;
    assert_eq!(
        refused(SAMPLE, &format!("{function}{MEASUREMENT}")),
        "in `top.xml`: functions of parameters are not supported: `f` at line 3, column 1"
    );
    let both = r#"<Sample Name="s" HistoName="signal"><OverallSys Name="a" Low="0.9" High="1.1"/>
        <HistoSys Name="a" HistoPath="shapes/inner" HistoNameLow="down" HistoNameHigh="up"/></Sample>"#;
    let gamma = r#"<Measurement Name="m"><ConstraintTerm Type="Gamma" RelativeUncertainty="0.3">a</ConstraintTerm></Measurement>"#;
    assert_eq!(
        refused(both, gamma),
        "in `top.xml`: this term is not supported for a systematic that has an `OverallSys` and a `HistoSys`: `a` at line \
         3, column 23"
    );
    let partly = r#"<Measurement Name="m"><ParamSetting Const="True">gamma_stat_SR_bin_1</ParamSetting></Measurement>"#;
    assert_eq!(
        refused(r#"<Sample Name="s" HistoName="signal"><StatError Activate="True"/></Sample>"#, partly),
        "in `top.xml`: 1 of the 4 parameters `gamma_stat_SR_bin_…` are constant: all or none can be at line 3, column 1"
    );
}

/// They share the parameters of one name, which have one kind.
#[test]
fn a_systematic_named_as_the_statistical_uncertainties_is_refused() {
    let contents = r#"<Sample Name="s" HistoName="signal"><StatError Activate="True"/>
<ShapeSys Name="staterror_SR" HistoName="signal"/></Sample>"#;
    let message = refused(contents, MEASUREMENT);
    assert!(message.starts_with("in `SR.xml`:") && message.contains("`staterror_SR`"), "{message}");
    assert!(message.contains("kinds") && message.ends_with("at line 1, column 1"), "{message}");
}

#[test]
fn a_channel_that_is_given_twice_is_left_for_compiling_to_refuse() {
    let sample = r#"<Sample Name="s" HistoName="signal"><StatError Activate="True"/></Sample>"#;
    let folder = written(sample, &format!("<Input>SR.xml</Input>\n{MEASUREMENT}"));
    let loaded = load_in(folder.path()).expect("a workspace");
    assert_eq!(loaded.workspace.channels.len(), 2);
}

#[test]
fn a_channel_whose_only_data_have_a_name_has_no_observed_data() {
    let folder = written(SAMPLE, MEASUREMENT);
    let channel = fs::read_to_string(folder.path().join("SR.xml")).expect("the channel");
    let named = channel.replace("<Data HistoName", "<Data Name=\"toy\" HistoName");
    fs::write(folder.path().join("SR.xml"), named).expect("written");
    let loaded = load_in(folder.path()).expect("a workspace");
    let wanted = "in `SR.xml`: the data `toy` are left out, and the channel has no observed ones, which have no `Name`";
    let said = loaded.warnings.iter().map(|warning| warning.replace(&format!("{}/", folder.path().display()), ""));
    assert!(said.clone().any(|warning| warning == wanted), "{:?}", said.collect::<Vec<_>>());
}

#[test]
fn what_is_left_out_is_said() {
    let contents = r#"<Data Name="toy" HistoName="data"/>
<Sample Name="s" HistoName="signal"><NormFactor Name="mu" Low="0" High="5" Const="True"/><HistoFactor Name="f"/></Sample>"#;
    let measurement = r#"<Measurement Name="m" BinLow="1" BinHigh="3"><POI>mu nu</POI>
<ParamSetting Const="True">alpha_none</ParamSetting></Measurement>"#;
    assert_eq!(
        warnings(contents, measurement),
        [
            "in `SR.xml`: the data `toy` are left out: those without a `Name` are the observed ones",
            "in `SR.xml` at line 4, column 37: `Const` of the factor `mu` has no effect, as in ROOT: fix it by \
             `<ParamSetting Const=\"True\">mu`",
            "in `SR.xml` at line 4, column 90: `HistoFactor` `f` is left out, as in ROOT",
            "in `top.xml` at line 4, column 1: no parameter is called `alpha_none`: its setting is left out",
            "in `top.xml` at line 3, column 1: the measurement `m` has the parameters of interest `mu`, `nu`: the first \
             is taken, `--poi` or `poi=` selects others",
            "in `top.xml` at line 3, column 1: `BinLow` and `BinHigh` have no effect, as in ROOT: all bins are taken",
        ]
    );
}

#[test]
fn a_luminosity_without_uncertainty_is_fixed() {
    let measurement = MEASUREMENT.replace("0.1", "0");
    let loaded =
        load_in(written(SAMPLE, &measurement).path()).unwrap_or_else(|error| panic!("{}", full_message(&error)));
    let model = ns_core::compile(&loaded.workspace, &ns_core::CompileOptions::default()).expect("a model");
    let lumi = model.parameters.index_of("lumi").expect("a luminosity");
    assert!(model.parameters.fixed[lumi] && model.parameters.constraint[lumi].is_none());
}

#[test]
fn values_of_a_systematic_without_own_term_are_taken_as_they_are() {
    let sample = r#"<Sample Name="s" HistoName="signal"><NormFactor Name="mu" Low="0" High="5"/>
        <HistoSys Name="a" HistoNameHigh="signal" HistoNameLow="signal"/></Sample>"#;
    let settings = r#"<ParamSetting Val="2">alpha_a</ParamSetting>
        <ConstraintTerm Type="LogNormal" RelativeUncertainty="0.5">a</ConstraintTerm></Measurement>"#;
    let measurement = MEASUREMENT.replace("</Measurement>", settings);
    let loaded =
        load_in(written(sample, &measurement).path()).unwrap_or_else(|error| panic!("{}", full_message(&error)));
    let config = loaded.workspace.measurements[0].parameters.iter().find(|config| config.name == "a");
    assert_eq!(config.and_then(|config| config.inits.clone()), Some(vec![2.0]));
}

#[test]
fn a_combination_that_was_moved_is_read_with_a_warning() {
    let contents = r#"<Sample Name="s" InputFile="fit/exports/data.root" HistoName="signal"/>"#;
    assert_eq!(
        warnings(contents, MEASUREMENT),
        ["there is no file `fit/exports/data.root`; `data.root` is read instead"]
    );
}

#[test]
fn names_may_start_from_a_folder_around_the_combination() {
    let folder = written(SAMPLE, MEASUREMENT);
    let inner = folder.path().join("config/inner");
    fs::create_dir_all(&inner).expect("a folder");
    fs::rename(folder.path().join("top.xml"), inner.join("top.xml")).expect("moved");
    let loaded = load_in(&inner).unwrap_or_else(|error| panic!("{}", full_message(&error)));
    assert!(loaded.warnings.is_empty());
    let names: Vec<_> = loaded.files.iter().map(|file| file.file_name().expect("a name").to_owned()).collect();
    assert_eq!(names, ["SR.xml", "data.root"]);
}

#[test]
fn the_document_of_a_combination_is_its_workspace() {
    let path = DocumentSource::Path(testdata().join("stat_gauss_all.xml"));
    let loaded = load_document(&LoadRequest::new(path.clone())).expect("readable");
    let text = read_workspace_text(&path).expect("readable");
    assert_eq!(loaded.document.bytes(), text.bytes);
    assert_eq!(ns_translate::pyhf::read_workspace(&text.bytes).expect("a workspace"), loaded.workspace);
}

#[test]
fn patches_apply_to_the_workspace_of_a_combination() {
    let folder = tempfile::tempdir().expect("a folder");
    let patch = folder.path().join("patch.json");
    fs::write(&patch, r#"[{"op": "replace", "path": "/channels/0/name", "value": "SR"}]"#).expect("written");
    let workspace = DocumentSource::Path(testdata().join("stat_default.xml"));
    let request = LoadRequest { patches: vec![DocumentSource::Path(patch)], ..LoadRequest::new(workspace) };
    let loaded = load_document(&request).unwrap_or_else(|error| panic!("{}", full_message(&error)));
    assert_eq!(loaded.files.len(), 2);
}

#[test]
fn a_channel_in_the_place_of_a_combination_is_explained() {
    let path = testdata().join("channels/stat_default_SR.xml");
    let error = load_document(&LoadRequest::new(DocumentSource::Path(path))).expect_err("a channel");
    assert!(full_message(&error).ends_with("expected an element `Combination`, found `Channel` at line 3, column 1"));
    assert!(error.advice().expect("a hint").to_string().starts_with("this is the file of one channel"));
}
