"""Every bad configuration is an error with its place and, where there is one, a hint; the exit code
is 2, and nothing is written.
"""

import os

import pytest
from nextstat import WorkspaceError
from nextstat.build import _command, build, load

pytest.importorskip("yaml")

CONFIG = """\
General:
  Measurement: search
  POI: mu
  InputPath: histograms.root:{RegionPath}/{SamplePath}{VariationPath}
  HistogramFolder: folder/
Regions:
  - Name: SR
    RegionPath: SR
Samples:
  - Name: Data
    SamplePath: data
    Data: True
  - Name: signal
    SamplePath: signal
  - Name: ttbar
    SamplePath: ttbar
NormFactors:
  - Name: mu
    Samples: signal
    Bounds: [0, 10]
Systematics:
  - Name: luminosity
    Type: Normalization
    Up: {Normalization: 0.02}
    Down: {Normalization: -0.02}
  - Name: JES
    Type: NormPlusShape
    Up: {VariationPath: _JES_Up}
    Down: {VariationPath: _JES_Down}
    Samples: ttbar
    Smoothing: {Algorithm: "353QH, twice"}
Nextstat:
  Pruning: {Normalization: 0.001, Shape: 0.001}
"""

#: What is replaced by what; where the error is; what it says; the hint, or a part of it.
MISTAKES = {
    "tab": ("  POI: mu", "\tPOI: mu", "line 3, column 1", "not valid YAML", "indent with spaces"),
    "unclosed bracket": ("Bounds: [0, 10]", "Bounds: [0, 10", "line 21", "not valid YAML", None),
    "key twice": ("  POI: mu", "  POI: mu\n  POI: nu", "line 4", "`POI` is there twice, first in line 3", None),
    "typo in a section": ("NormFactors:", "NormFactor:", "line 17, /NormFactor", "unknown key", "did you mean `NormFactors`?"),
    "typo in a key": ("  Measurement:", "  Mesurement:", "line 2, /General/Mesurement", "unknown key `Mesurement`", "did you mean `Measurement`?"),
    "missing key": ("  HistogramFolder: folder/\n", "", "line 1, /General", "`HistogramFolder` is missing", "required are"),
    "missing section": ("Samples:\n", "", "config.yml, line 1", "the key `Samples` is missing", "required are"),
    "wrong type of a section": ("General:\n", "General: []\nNextsta:\n", "line 2, /Nextsta", "unknown key", "did you mean `Nextstat`?"),
    "list expected": ("Regions:\n  - Name: SR\n    RegionPath: SR", "Regions: SR", "line 6, /Regions", "expected a list, not `'SR'`", "start each entry"),
    "empty list": ("Regions:\n  - Name: SR\n    RegionPath: SR", "Regions: []", "line 6, /Regions", "the list is empty", None),
    "number for a name": ("Name: SR", "Name: 7", "line 7, /Regions/0/Name", "expected text, not `7`", 'quote it: "7"'),
    "text for a flag": ("Data: True", "Data: 'yes'", "line 12, /Samples/0/Data", "expected True or False", None),
    "no data": ("    Data: True\n", "", "line 9, /Samples", "no sample has the observed data", "`Data: True`"),
    "two samples of data": ("SamplePath: signal", "SamplePath: signal\n    Data: True", "/Samples/1/Data", "`Data` is a sample of data already", None),
    "names twice": ("Name: ttbar", "Name: signal", "line 15, /Samples/2/Name", "`signal` is there twice", None),
    "unknown parameter of interest": ("POI: mu", "POI: Mu", "line 3, /General/POI", "called `Mu`", "did you mean `mu`?"),
    "exponent without a point": ("-0.02", "-2e-2", "/Systematics/0/Down/Normalization", "expected a number", "write `-0.02`"),
    "quoted number": ("Normalization: 0.02", "Normalization: '0.02'", "/Systematics/0/Up/Normalization", "expected a number", "leave out the quotes"),
    "flag for a number": ("Normalization: 0.02", "Normalization: True", "/Systematics/0/Up/Normalization", "expected a number, not `True`", None),
    "key of a number": ("  POI: mu", "  POI: mu\n  7: mu", "line 4, /General/7", "unknown key `7`", "there are"),
    "not finite": ("Normalization: 0.02", "Normalization: .nan", "/Systematics/0/Up/Normalization", "nan is not a finite number", None),
    "reversed range": ("[0, 10]", "[10, 0]", "line 20, /NormFactors/0/Bounds", "lower one first", "[0, 10]"),
    "one bound": ("[0, 10]", "[0]", "line 20, /NormFactors/0/Bounds", "two numbers", None),
    "unknown type": ("Type: NormPlusShape", "Type: NormShape", "line 27, /Systematics/1/Type", "unknown value", "did you mean `NormPlusShape`?"),
    "rate without a number": ("Up: {Normalization: 0.02}", "Up: {}", "/Systematics/0/Up", "needs the key `Normalization`", "0.05"),
    "rate that is mirrored": ("Down: {Normalization: -0.02}", "Down: {Symmetrize: True}", "/Systematics/0/Down", "needs the key `Normalization`", None),
    "nothing left of the rate": (
        "Down: {Normalization: -0.02}",
        "Down: {Normalization: -1.5}",
        "line 25, /Systematics/0/Down/Normalization",
        "a change of -1.5 leaves nothing of the rate one standard deviation down",
        "-0.05 for 5 % less",
    ),
    "factors for changes": (
        "Up: {Normalization: 0.02}\n    Down: {Normalization: -0.02}",
        "Up: {Normalization: 1.15}\n    Down: {Normalization: 0.87}",
        "line 24, /Systematics/0/Up/Normalization",
        "the changes +115 % up and +87 % down look like factors of the rate",
        "`Up: {Normalization: 0.15}` and `Down: {Normalization: -0.13}`",
    ),
    "number for a template": (
        "Up: {VariationPath: _JES_Up}",
        "Up: {Normalization: 0.1}",
        "/Systematics/1/Up/Normalization",
        "has templates",
        "Type: Normalization",
    ),
    "up is mirrored": (
        "Up: {VariationPath: _JES_Up}",
        "Up: {Symmetrize: True}",
        "/Systematics/1/Up/Symmetrize",
        "only the template down",
        "Down: {Symmetrize: True}",
    ),
    "unknown smoothing": ("353QH, twice", "353QH twice", "/Systematics/1/Smoothing/Algorithm", "unknown value", "did you mean `353QH, twice`?"),
    "threshold in percent": ("Shape: 0.001", "Shape: 1", "line 33, /Nextstat/Pruning/Shape", "not between 0 and 1", "0.01 for 1 %"),
    "rebin without threshold": (
        "  Pruning: {Normalization: 0.001, Shape: 0.001}",
        "  Smoothing: {Algorithm: rebin}",
        "line 33",
        "`Threshold` goes with",
        "0.05",
    ),
    "decorrelated by nothing": (
        "  Pruning: {Normalization: 0.001, Shape: 0.001}",
        "  Decorrelate: {Parameters: JES, By: systematic}",
        "line 33, /Nextstat/Decorrelate/By",
        "unknown value `systematic`",
        "`region`, `channel` and `sample`",
    ),
    "decorrelated parameter that is not there": (
        "  Pruning: {Normalization: 0.001, Shape: 0.001}",
        "  Decorrelate: [{Parameters: lumi*, By: sample}, {Parameters: JSE, By: region}]",
        "line 33, /Nextstat/Decorrelate/1",
        "no parameter named `JSE`",
        "`JES`",
    ),
    "decorrelated parameter of interest": (
        "  Pruning: {Normalization: 0.001, Shape: 0.001}",
        "  Decorrelate: {Parameters: m*, By: sample}",
        "line 33, /Nextstat/Decorrelate",
        "the parameter of interest `mu` is split",
        "choose a narrower pattern",
    ),
    "decorrelated luminosity": (
        "  Pruning: {Normalization: 0.001, Shape: 0.001}",
        "  Lumi: {Uncertainty: 0.02}\n  Decorrelate: {Parameters: lumi, By: region}",
        "line 34, /Nextstat/Decorrelate",
        "lumi",
        None,
    ),
    "name of a factor": (
        "Name: luminosity",
        "Name: mu",
        "line 22, /Systematics/0/Name",
        "the systematic `mu` cannot share a parameter with the factor of this name",
        "another name",
    ),
    "name of a factor for the parameter": (
        "Name: luminosity",
        "Name: luminosity\n    ModifierName: mu",
        "line 23, /Systematics/0/ModifierName",
        "cannot share a parameter",
        "another name",
    ),
    "name of statistical errors": (
        "Name: luminosity",
        "Name: staterror_SR",
        "line 22, /Systematics/0/Name",
        "the systematic `staterror_SR` cannot share a parameter with the statistical errors",
        "another name",
    ),
    "name of the luminosity": (
        "  Pruning: {Normalization: 0.001, Shape: 0.001}",
        "  Lumi: {Name: luminosity, Uncertainty: 0.02}",
        "line 33, /Nextstat/Lumi/Name",
        "is called `lumi`, not `luminosity`",
        "leave out `Name`",
    ),
    "start above the range": (
        "Bounds: [0, 10]",
        "Bounds: [0, 10]\n    Nominal: 20",
        "line 21, /NormFactors/0/Nominal",
        "the starting value 20 of `mu` is outside the bounds [0, 10]",
        "starts at 1",
    ),
    "start above the range of a factor": ("Bounds: [0, 10]", "Nominal: 20", "line 20, /NormFactors/0/Nominal", "outside the bounds [0, 10]", "starts at 1"),
    "range without the start": ("[0, 10]", "[2, 10]", "line 20, /NormFactors/0/Bounds", "the starting value 1 of `mu` is outside", "starts at 1"),
    "parameter of interest of nothing": (
        "Samples: signal\n    Bounds",
        "Samples: sgnal\n    Bounds",
        "line 3, /General/POI",
        "asks for the parameter of interest `mu`, which no modifier uses",
        "choose nothing",
    ),
    "no path of a region": ("    RegionPath: SR\n", "", "line 7, /Regions/0", "needs `RegionPath`", "RegionPath: …"),
    "no path of a sample": ("    SamplePath: ttbar\n", "", "line 15, /Samples/2", "needs `SamplePath`", None),
    "no file": ("histograms.root:", "histogram.root:", "/Samples/1", "there is no file `histogram.root`", None),
    "no object in the file": (
        "histograms.root:{RegionPath}/{SamplePath}{VariationPath}",
        "histograms.root",
        "line 7, /Regions/0",
        "needs `Variable` and `Binning`",
        "has a colon",
    ),
    "no histogram": ("SamplePath: ttbar", "SamplePath: ttbr", "line 15, /Samples/2", "no histogram `SR/ttbr`", "did you mean `SR/ttbar`?"),
    "no variation": ("_JES_Up", "_JSE_Up", "line 28, /Systematics/1/Up", "no histogram `SR/ttbar_JSE_Up`", "did you mean `SR/ttbar_JES_Up`?"),
    "not a histogram": ("{RegionPath}/{SamplePath}{VariationPath}", "numbers", "/Samples/1", "`numbers` of `histograms.root` is a TObjString", None),
    "not a ROOT file": ("histograms.root:", "config.yml:", "/Samples/1", "cannot read `config.yml` as a ROOT file", None),
    "several files": ("SamplePath: ttbar", "SamplePath: [ttbar, zjets]", "line 16, /Samples/2/SamplePath", "in one file", "hadd"),
    "deep nesting": ("  POI: mu", "  POI: " + "[" * 60 + "]" * 60, "line 3", "nested too deeply", None),
    "recursive alias": ("  POI: mu", "  POI: &poi [*poi]", "line 3", "nested too deeply", None),
}


def run(capfd, *arguments):
    code = _command.main(["build", *map(str, arguments)], "nextstat")
    return code, capfd.readouterr()


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name, files, capfd):
    old, new, place, message, hint = MISTAKES[name]
    assert old in CONFIG
    (files / "config.yml").write_text(CONFIG.replace(old, new, 1))
    before = sorted(os.listdir())
    code, said = run(capfd, "config.yml", "-o", "workspace.json", "--report", "report")
    assert code == 2 and said.out == ""
    assert said.err.startswith("error: config.yml"), said.err
    assert place in said.err and message in said.err, said.err
    if hint is not None:
        assert hint in said.err.partition("\nhint: ")[2], said.err
    assert sorted(os.listdir()) == before


def test_the_configuration_without_a_mistake_is_built(files, capfd):
    (files / "config.yml").write_text(CONFIG)
    code, said = run(capfd, "config.yml", "-o", "workspace.json")
    assert (code, said.out) == (0, "")
    assert (files / "workspace.json").read_text().startswith("{\n")


@pytest.mark.parametrize("content", [b"", b"[1, 2]", b"text", b"null", b"\xff\xfe\x00", b"root\x00\x00\xf3"])
def test_what_is_not_a_configuration_is_refused(content, tmp_path, capfd):
    path = tmp_path / "config.yml"
    path.write_bytes(content)
    code, said = run(capfd, path)
    assert code == 2 and said.err.startswith("error: "), said.err


def test_damaged_files_are_errors(files, capfd):
    (files / "config.yml").write_text(CONFIG)
    whole = (files / "histograms.root").read_bytes()
    for n in range(40):
        damaged = bytearray(whole[: len(whole) - (n % 4) * len(whole) // 5])
        for k in range(30):
            damaged[(7919 * (n + 1) * (k + 3)) % len(damaged)] ^= 255
        (files / "histograms.root").write_bytes(damaged)
        code, said = run(capfd, "config.yml", "--quiet")
        assert code == 0 or (code == 2 and said.err.startswith("error: ")), said.err


def test_a_missing_configuration_is_named(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(capfd, "nothing.yml") == (2, ("", "error: cannot read or write `nothing.yml`: no such file or directory\n"))


def test_a_folder_that_is_not_there_is_named_and_nothing_is_written(files, capfd):
    (files / "config.yml").write_text(CONFIG)
    code, said = run(capfd, "config.yml", "-o", "no/folder/workspace.json")
    assert code == 2 and "no/folder/workspace.json" in said.err


def test_names_that_nothing_has_are_warnings_with_a_place(files, capfd):
    (files / "config.yml").write_text(CONFIG.replace("    Samples: ttbar\n", "    Samples: [ttbar, zjet, signl]\n"))
    code, said = run(capfd, "config.yml", "-o", "workspace.json")
    assert code == 0
    assert "warning: config.yml, line 30, /Systematics/1/Samples: nothing is called `signl`; did you mean `signal`?" in said.err


def test_settings_that_change_nothing_are_warnings_with_a_place(files):
    yaml = pytest.importorskip("yaml")
    config = yaml.safe_load(CONFIG.replace("  Measurement:", "  Fixed: [{Name: JES, Value: 0}, {Name: ms, Value: 1}]\n  Measurement:"))
    config["Systematics"][1].update(ModifierName="energy", Up={"VariationPath": "_JES_Up", "RegionPath": "CR"})
    config["General"]["InputPath"] = "histograms.root:SR/{SamplePath}{VariationPath}"
    said = build(config).warnings
    for wanted in (
        "/General/Fixed: `JES` is not fixed: its parameter is called `energy`",
        "/General/Fixed: `ms` is neither a factor nor a systematic, and is not fixed",
        "/Regions/0/RegionPath: `InputPath` has no `{RegionPath}`, so this changes nothing",
        "/Systematics/1/Up/RegionPath: only trees of a template",
    ):
        assert any(one.startswith(wanted) for one in said), said


def test_a_change_above_one_that_is_no_factor_is_a_warning(files, capfd):
    (files / "config.yml").write_text(CONFIG.replace("Up: {Normalization: 0.02}", "Up: {Normalization: 1.2}"))
    code, said = run(capfd, "config.yml", "-o", "workspace.json")
    assert code == 0
    wanted = "warning: config.yml, line 24, /Systematics/0/Up/Normalization: a change of +120 %; a factor of 1.2 is a change of 0.2\n"
    assert wanted in said.err


def test_a_histogram_with_other_bins_says_which(files):
    config = load({**_as_dictionary(), "Nextstat": {}})
    histograms = {"Data": ([1.0, 2.0], [0, 1, 2]), "signal": ([1.0, 2.0], [0, 1, 2]), "ttbar": ([1.0, 2.0, 3.0], [0, 1, 2, 3])}
    with pytest.raises(WorkspaceError, match=r"/Samples/2: region `SR`, sample `ttbar`: 3 bins, but 2 in region `SR`, sample `signal`"):
        build(config, lambda region, sample, systematic, side: histograms[sample])
    histograms["ttbar"] = ([1.0, 2.0], [0, 1, 3])
    with pytest.raises(WorkspaceError, match="edge 2 is 3, but 2 in"):
        build(config, lambda region, sample, systematic, side: histograms[sample])
    histograms["ttbar"] = ([1.0, float("nan")], [0, 1, 2])
    with pytest.raises(WorkspaceError, match="bin 1: nan"):
        build(config, lambda region, sample, systematic, side: histograms[sample])


def test_a_rate_without_events_is_an_error_with_a_hint():
    def histograms(region, sample, systematic, side):
        return [0.0, 0.0] if sample == "ttbar" and systematic is None else [1.0, 2.0]

    with pytest.raises(WorkspaceError, match="systematic `JES`: 3 events against 0 nominal ones") as caught:
        build({**_as_dictionary(), "Nextstat": {"NoOps": "keep"}}, histograms)
    assert "leave the region or the sample out" in caught.value.hint


def test_negative_bins_of_every_template_are_warnings():
    """A sample without systematics, and one whose templates are negative in other bins, too."""
    contents = {("signal", None): [1.0, -0.4], ("ttbar", None): [9.0, -0.5]}
    contents |= {("ttbar", "Up"): [9.5, -0.6], ("ttbar", "Down"): [-0.1, 8.0], ("Data", None): [9.0, 5.0]}
    config = _as_dictionary()
    said = build(config, lambda region, sample, systematic, side: contents[sample, side]).warnings
    assert [one for one in said if "negative" in one] == [
        "region `SR`, sample `signal`, nominal: negative in bins [1]",
        "region `SR`, sample `ttbar`, nominal: negative in bins [1], and so are 1 of 2 varied templates",
        "region `SR`, sample `ttbar`, systematic `JES`, down: negative in bins [0]",
    ]


#: What the engine refuses and the configuration does not show: changes of it; the contents of a
#: template; the place, and what is said.
REFUSED = {
    "mirrored rate": ({"Down": {"Symmetrize": True}}, ("Up", [3.0, 4.0]), "/Systematics/1/Down: .*normsys `JES` has lo = -0.33"),
    "rate down": ({}, ("Down", [-3.0, 1.0]), "/Systematics/1/Down: .*normsys `JES` has lo = -0.66"),
    "rate up of a renamed parameter": ({"ModifierName": "energy"}, ("Up", [-4.0, 1.0]), "/Systematics/1/Up: .*normsys `energy` has hi = -1"),
    "decorrelated parameter": ({}, ("Down", [-3.0, 1.0]), "/Systematics/1/Down: .*normsys `JES_SR` has lo = -0.66"),
    "data": ({}, (None, [-3.0, 1.0]), "/Samples/0: .*-3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_engine_refuses_is_an_error_of_the_setting(name):
    settings, (wrong, contents), message = REFUSED[name]

    def histograms(region, sample, systematic, side):
        is_wrong = sample == ("Data" if wrong is None else "ttbar") and side == wrong
        return contents if is_wrong else [1.0, 2.0]

    config = _as_dictionary()
    config["Systematics"][1].update(settings)
    config["Nextstat"] = {"Decorrelate": {"Parameters": "JES", "By": "region"}} if name == "decorrelated parameter" else {}
    with pytest.raises(WorkspaceError, match=message):
        build(config, histograms)


def _as_dictionary():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(CONFIG.replace('    Smoothing: {Algorithm: "353QH, twice"}\n', ""))
