"""HistFactory XML: what is written is read again as the same likelihood, elements mean what the
format says, and mistakes are named.
"""

import copy
import importlib.util
import json
import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

uproot = pytest.importorskip("uproot")

import nextstat  # noqa: E402
import nextstat.pyhf as pyhf  # noqa: E402
from nextstat.pyhf import readxml, writexml  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
from specifications import MU, SPECS, workspace  # noqa: E402


def modifier(kind, name, data=None):
    return {"name": name, "type": kind, "data": data}


def everything():
    """A workspace with every modifier, two measurements, and settings of parameters."""
    signal = [MU, modifier("lumi", "lumi"), modifier("normsys", "acceptance", {"hi": 1.05, "lo": 0.93})]
    background = [
        modifier("lumi", "lumi"),
        modifier("normsys", "jes", {"hi": 1.02, "lo": 0.97}),
        modifier("histosys", "jes", {"hi_data": [66.0, 41.0], "lo_data": [57.0, 36.0]}),
        modifier("staterror", "staterror_SR", [3.0, 2.5]),
        modifier("shapesys", "uncorrelated", [4.0, 0.0]),
    ]
    # A statistical uncertainty where nothing is expected is not relative to anything.
    other = [modifier("shapefactor", "free"), modifier("staterror", "staterror_SR", [1.0, 0.5])]
    lumi = {"name": "lumi", "auxdata": [2.0], "sigmas": [0.06], "bounds": [[1.7, 2.3]], "inits": [2.0], "fixed": True}
    parameters = [lumi, {"name": "mu", "inits": [0.5], "bounds": [[-2.0, 5.0]]}, {"name": "acceptance", "fixed": True, "inits": [0.2]}]
    samples = [
        {"name": "signal", "data": [5.0, 10.0], "modifiers": signal},
        {"name": "background", "data": [60.0, 40.0], "modifiers": background},
        {"name": "other", "data": [10.0, 0.0], "modifiers": other},
    ]
    fixed = {"name": "staterror_SR", "fixed": True, "inits": [1.0, 1.0]}
    return {
        "channels": [{"name": "SR", "samples": samples}],
        "observations": [{"name": "SR", "data": [170.0, 104.0]}],
        "measurements": [
            {"name": "fit", "config": {"poi": "mu", "parameters": parameters}},
            {"name": "another", "config": {"poi": "mu", "parameters": [{**lumi, "fixed": False}, {"name": "mu", "inits": [0.7]}, fixed]}},
        ],
        "version": "1.0.0",
    }


WORKSPACES = {**{name: workspace(name) for name in SPECS}, "everything": everything()}


def write(spec, folder):
    """Writes `spec`; the path of the top-level file."""
    top = folder / "top.xml"
    top.write_bytes(writexml.writexml(copy.deepcopy(spec), folder / "config", folder / "data", "fit"))
    return top


def in_xml(name):
    """A parameter by the name that it has after a round trip."""
    return name.replace("stat_SR", "staterror_SR", 1) if name.startswith("stat_SR") else name


def assert_same_likelihood(before, after, measurement):
    models = [pyhf.Workspace(spec).model(measurement_index=measurement) for spec in (before, after)]
    names = [[in_xml(name) for name in models[0].config.par_names], models[1].config.par_names]
    order = [names[0].index(name) for name in names[1]]
    for settings in ("suggested_init", "suggested_fixed"):
        first, second = (getattr(model.config, settings)() for model in models)
        assert [first[i] for i in order] == second
    start, random = np.array(models[0].config.suggested_init()), np.random.default_rng(2)
    for _ in range(5):
        point = start + random.normal(0.0, 0.05, len(start))
        first, second = (model.logpdf(params, pyhf.Workspace(spec).data(model)) for model, params, spec in zip(models, (point, point[order]), (before, after)))
        # Errors are kept as squares.
        np.testing.assert_allclose(second, first, rtol=1e-12)


@pytest.mark.parametrize("name", WORKSPACES)
def test_what_is_written_is_read_again_as_the_same_likelihood(name, tmp_path, caplog):
    top = write(WORKSPACES[name], tmp_path)
    caplog.clear()
    after = readxml.parse(top, tmp_path)
    # What is written can be said by a workspace.
    assert not caplog.records
    for measurement in range(len(WORKSPACES[name]["measurements"])):
        assert_same_likelihood(WORKSPACES[name], after, measurement)


#: In a process of its own: pyhf must not be imported where its names are replaced.
READ_BY_PYHF = "import json, sys; from pyhf import readxml; print(json.dumps(readxml.parse(sys.argv[1], '.')))"


# The folder of these tests has that name too, and no origin.
@pytest.mark.skipif(getattr(importlib.util.find_spec("pyhf"), "origin", None) is None, reason="pyhf is not installed")
# pyhf does not fix vectors of parameters.
@pytest.mark.parametrize("name", SPECS)
def test_pyhf_reads_what_is_written(name, tmp_path):
    top = write(WORKSPACES[name], tmp_path)
    done = subprocess.run([sys.executable, "-c", READ_BY_PYHF, str(top)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == json.loads(json.dumps(readxml.parse(top, ".")))


def test_writing_twice_is_the_same_and_leaves_nothing_else(tmp_path):
    first = write(WORKSPACES["lumi"], tmp_path).read_bytes()
    assert write(WORKSPACES["lumi"], tmp_path).read_bytes() == first
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert found == ["HistFactorySchema.dtd", "config/HistFactorySchema.dtd", "config/fit_SR.xml", "data/data.root", "top.xml"]


def test_names_need_not_be_names_of_files(tmp_path):
    spec = json.loads(json.dumps(WORKSPACES["correlated"]).replace("SR", "a/b ../c").replace("background", "x;y/z"))
    assert readxml.parse(write(spec, tmp_path), tmp_path)["channels"][0]["name"] == "a/b ../c"


def modifiers(spec, sample):
    return spec["channels"][0]["samples"][sample]["modifiers"]


def changed(change):
    spec = copy.deepcopy(WORKSPACES["everything"])
    change(spec)
    return spec


@pytest.mark.parametrize(
    ("change", "exception", "message"),
    [
        (lambda spec: modifiers(spec, 1).append(modifier("staterror", "b", [1.0, 1.0])), "Unsupported", "a second staterror of the channel, `b`"),
        (lambda spec: spec["measurements"][0]["config"].update(poi="a b"), "Unsupported", "a name with blanks in a list"),
        (lambda spec: [one.update(name="a b") for one in (spec["measurements"][0]["config"]["parameters"][2], modifiers(spec, 0)[2])], "Unsupported", "a name with blanks in a list"),
        (lambda spec: spec["measurements"][1]["config"]["parameters"][2].update(inits=[1.0, 1.1]), "Unsupported", "different values"),
        (lambda spec: spec.pop("observations"), "InvalidSpecification", "observations"),
    ],
)
def test_what_xml_cannot_hold_is_refused_before_anything_is_written(change, exception, message, tmp_path):
    with pytest.raises(getattr(pyhf.exceptions, exception), match=message) as error:
        write(changed(change), tmp_path)
    if exception == "Unsupported":
        assert error.value.hint == '`nextstat.convert(..., "extended")` writes every model'
    assert list(tmp_path.iterdir()) == []


def test_what_only_moves_the_start_of_a_fit_is_warned_of(tmp_path, caplog):
    spec = changed(lambda spec: spec["measurements"][0]["config"]["parameters"].append({"name": "jes", "bounds": [[-1.0, 1.0]]}))
    with caplog.at_level(logging.WARNING):
        write(spec, tmp_path)
    assert "cannot say bounds of `jes`" in caplog.text


# -- single elements --

TOP = """<Combination OutputFilePrefix="x"><Input> ch.xml </Input>
<Measurement Name="m" Lumi="2." LumiRelErr="0.1"><POI>mu</POI>{settings}</Measurement></Combination>"""
CHANNEL = """<Channel Name="SR" {channel}>{data}{config}<Sample Name="signal" HistoName="signal" {signal}><NormFactor Name="mu" Val="1" Low="0." High="3."/></Sample>
<Sample Name="background" {background}>{modifiers}</Sample></Channel>"""
USUAL = {"channel": 'InputFile="a.root"', "data": '<Data HistoName="data"/>', "config": "", "signal": "", "background": 'HistoName="background"', "modifiers": ""}


def histogram(values, errors):
    # Sums of squared weights are what hist's weighted storage writes.
    hist = pytest.importorskip("hist")
    made = hist.Hist(hist.axis.Regular(len(values), 0, len(values)), storage=hist.storage.Weight())
    made.view().value, made.view().variance = values, np.square(errors)
    return made


@pytest.fixture
def parse(tmp_path):
    """Reads a channel with the given pieces of XML."""
    with uproot.recreate(tmp_path / "a.root") as file:
        for name, values in {"data": [51.0, 48.0], "signal": [12.0, 11.0], "up": [55.0, 50.0], "down": [45.0, 51.0], "relative": [0.1, 0.2]}.items():
            file[name] = (np.array(values), np.arange(3.0))
        file["background"] = histogram([50.0, 52.0], [3.0, 7.0])
        file["folder/background"] = histogram([40.0, 41.0], [2.0, 1.0])
        file["folder/up"], file["folder/down"] = ((np.array(values), np.arange(3.0)) for values in ([42.0, 43.0], [38.0, 39.0]))
        file["three"] = (np.ones(3), np.arange(4.0))
        file["flat"] = (np.ones((2, 2)), np.arange(3.0), np.arange(3.0))
    with uproot.recreate(tmp_path / "b.root") as file:
        file["up"], file["down"] = ((np.array(values), np.arange(3.0)) for values in ([155.0, 150.0], [145.0, 151.0]))

    def parse(settings="", **pieces):
        (tmp_path / "top.xml").write_text(TOP.format(settings=settings))
        (tmp_path / "ch.xml").write_text(CHANNEL.format(**{**USUAL, **pieces}))
        return readxml.parse(tmp_path / "top.xml", tmp_path)

    return parse


def background(spec):
    return spec["channels"][0]["samples"][1]


@pytest.mark.parametrize(
    ("element", "wanted"),
    [
        ('<OverallSys Name="x" High="1.1" Low="0.9"/>', modifier("normsys", "x", {"lo": 0.9, "hi": 1.1})),
        ('<HistoSys Name="x" HistoNameHigh="up" HistoNameLow="down"/>', modifier("histosys", "x", {"lo_data": [45.0, 51.0], "hi_data": [55.0, 50.0]})),
        (
            '<HistoSys Name="x" HistoNameHigh="up" HistoNameLow="down" HistoFileHigh="b.root" HistoPathLow="folder"/>',
            modifier("histosys", "x", {"lo_data": [38.0, 39.0], "hi_data": [155.0, 150.0]}),
        ),
        (
            '<HistoSys Name="x" HistoNameHigh="up" HistoNameLow="down" InputFile="b.root"/>',
            modifier("histosys", "x", {"lo_data": [145.0, 151.0], "hi_data": [155.0, 150.0]}),
        ),
        ('<NormFactor Name="k" Val="1" Low="0" High="2" Const="True"/>', modifier("normfactor", "k")),
        ('<ShapeFactor Name="x"/>', modifier("shapefactor", "x")),
        ('<ShapeSys Name="x" HistoName="relative" ConstraintType="Poisson"/>', modifier("shapesys", "x", [5.0, 10.4])),
        ('<StatError Activate="True"/>', modifier("staterror", "staterror_SR", [3.0, 7.0])),
        ('<StatError Activate="true" HistoName="relative"/>', modifier("staterror", "staterror_SR", [5.0, 10.4])),
        ('<StatError Activate="False"/>', None),
    ],
)
def test_elements_are_modifiers(element, wanted, parse):
    (found,) = background(parse(modifiers=element))["modifiers"] or [None]
    assert json.dumps(found) == pytest.approx(json.dumps(wanted)) or found == pytest.approx(wanted)


def test_paths_and_names_hold_for_what_is_inside(parse):
    inside = parse(background='HistoName="background" HistoPath="folder"', modifiers='<HistoSys Name="x" HistoNameHigh="up" HistoNameLow="down"/>')
    assert background(inside)["data"] == [40.0, 41.0]
    assert background(inside)["modifiers"][0]["data"] == {"lo_data": [38.0, 39.0], "hi_data": [42.0, 43.0]}
    assert background(parse(channel='InputFile="a.root" HistoName="background"', background=""))["data"] == [50.0, 52.0]


def test_theory_means_the_luminosity(parse):
    spec = parse(signal='NormalizeByTheory="True"', settings='<ParamSetting Const="True" Val="1.9">Lumi</ParamSetting>')
    assert modifier("lumi", "lumi") in spec["channels"][0]["samples"][0]["modifiers"]
    lumi = spec["measurements"][0]["config"]["parameters"][0]
    assert lumi == {"name": "lumi", "auxdata": [2.0], "sigmas": [0.2], "bounds": [[1.0, 3.0]], "inits": [1.9], "fixed": True}


def test_settings_of_vectors_are_of_all_elements(parse):
    stat, both = '<StatError Activate="True"/>', "gamma_stat_SR_bin_0 gamma_stat_SR_bin_1"
    spec = parse(modifiers=stat, settings=f'<ParamSetting Const="True" Val="1.1">{both}</ParamSetting>')
    assert spec["measurements"][0]["config"]["parameters"][-1] == {"name": "staterror_SR", "fixed": True, "inits": [1.1, 1.1]}
    with pytest.raises(ValueError, match="2 elements"):
        parse(modifiers=stat, settings='<ParamSetting Const="True">gamma_stat_SR_bin_0</ParamSetting>')


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ({"settings": '<ConstraintTerm Type="Gamma" RelativeUncertainty=".3">x</ConstraintTerm>'}, "no Gamma constraint of x"),
        ({"config": '<StatErrorConfig RelErrorThreshold="0.05"/>', "modifiers": '<StatError Activate="True"/>'}, "below 0.05"),
        ({"config": '<StatErrorConfig ConstraintType="Poisson"/>', "modifiers": '<StatError Activate="True"/>'}, "Poisson constraint"),
        ({"modifiers": '<ShapeSys Name="x" HistoName="relative" ConstraintType="Gaussian"/>'}, "non-poisson"),
        ({"modifiers": "<Other/>"}, "not considering modifier tag Other"),
    ],
)
def test_what_a_workspace_cannot_say_is_warned_of(pieces, message, parse, caplog):
    with caplog.at_level(logging.WARNING):
        parse(**pieces)
    assert message in caplog.text


@pytest.mark.parametrize(
    ("pieces", "exception", "message"),
    [
        ({"modifiers": '<OverallSys Name="x" High="1.1"/>'}, KeyError, "Channel `SR`: Sample `background`: OverallSys `x`: there is no attribute `Low`"),
        ({"modifiers": '<OverallSys Name="x" High="a" Low="1"/>'}, ValueError, "`High` is `a`, which is not a number"),
        ({"modifiers": '<StatError Activate="yes"/>'}, ValueError, "neither `True` nor `False`"),
        ({"modifiers": '<ShapeSys Name="x" HistoName="three"/>'}, ValueError, "3 bins for 2"),
        ({"background": 'HistoName="nowhere"'}, KeyError, "Sample `background`: there is no histogram `nowhere` in"),
        ({"background": 'HistoName="three"'}, pyhf.exceptions.InvalidSpecification, "has 3 bins"),
        ({"background": 'HistoName="flat"'}, ValueError, "not a histogram with one axis"),
        ({"background": 'HistoName="a" InputFile="nowhere.root"'}, FileNotFoundError, r"nowhere\.root`\nhint: names of files"),
        ({"background": 'HistoName="a" InputFile="ch.xml"'}, ValueError, r"ch\.xml` cannot be read as a ROOT file"),
        ({"channel": ""}, KeyError, "no attribute `InputFile`"),
        ({"data": ""}, RuntimeError, "there are no data"),
        ({"settings": '<ParamSetting Const="True">gamma_x_0</ParamSetting>'}, ValueError, "no sample has a modifier"),
    ],
)
def test_mistakes_are_named_with_their_place(pieces, exception, message, parse):
    with pytest.raises(exception, match=message):
        parse(**pieces)


def test_files_that_are_not_xml_are_named(tmp_path):
    (tmp_path / "top.xml").write_text("<Combination>")
    with pytest.raises(SyntaxError, match=r"top\.xml"):
        readxml.parse(tmp_path / "top.xml", tmp_path)
    (tmp_path / "top.xml").write_text("<Channel/>")
    with pytest.raises(pyhf.exceptions.InvalidSpecification, match="<Combination> was expected"):
        readxml.parse(tmp_path / "top.xml", tmp_path)


def test_mounts_say_where_folders_of_xml_are(tmp_path):
    resolve = readxml.resolver_factory(tmp_path, [(tmp_path / "local", "/data")])
    assert resolve("/data/x/a.root") == tmp_path / "local/x/a.root"
    assert resolve("./a.root") == tmp_path / "a.root"


# -- commands --


def command(*arguments, input=None):
    return subprocess.run([sys.executable, "-m", "nextstat", *map(str, arguments)], input=input, capture_output=True, text=True, check=False)


def test_the_commands_convert_there_and_back(tmp_path):
    there = command("json2xml", "--output-dir", tmp_path, "--resultprefix", "top", input=json.dumps(WORKSPACES["correlated"]))
    assert (there.returncode, there.stderr) == (0, "")
    back = command("xml2json", tmp_path / "top.xml", "--hide-progress")
    assert json.loads(back.stdout) == readxml.parse(tmp_path / "top.xml", ".")
    assert back.stdout == json.dumps(json.loads(back.stdout), indent=4, sort_keys=True) + "\n"


def test_the_commands_say_what_is_wrong(tmp_path):
    missing = command("xml2json", tmp_path / "nowhere.xml")
    assert missing.returncode == 2 and missing.stderr.startswith("error: there is no file") and not missing.stdout
    invalid = command("json2xml", "--output-dir", tmp_path / "out", input='{"channels": []}')
    assert invalid.returncode == 2 and "measurements" in invalid.stderr and not (tmp_path / "out").exists()


TESTDATA = Path(__file__).parents[4] / "testdata"


@pytest.mark.parametrize("name", ["stat_gaussian", "stat_pois_all", "shapesys_default", "clipped", "two_measurements"])
def test_json2xml_reads_hs3_and_xml_and_keeps_what_xml_has(name, tmp_path):
    # Terms of bins, thresholds, and templates that are cut off at zero.
    for source in (TESTDATA / "hs3/root" / f"{name}.json", TESTDATA / "histfactory" / f"{name}.xml"):
        there = command("json2xml", source, "--output-dir", tmp_path, "--resultprefix", "top")
        assert there.returncode == 0, there.stderr
        before, after = nextstat.load_workspace(source), nextstat.load_workspace(tmp_path / "top.xml")
        assert sorted(after.par_names) == sorted(before.par_names)
        order = [before.index(name) for name in after.par_names]
        width = np.where(before.fixed, 0.0, 0.25)
        points = before.init + width * np.random.default_rng(2).uniform(-1.0, 1.0, (6, before.n_params))
        first, second = before.nll(points), after.nll(points[:, order])
        # The data of terms that are made of rounded uncertainties shift all values alike.
        np.testing.assert_allclose(second - second[0], first - first[0], atol=1e-9)


def test_json2xml_reads_data_cards(tmp_path):
    (tmp_path / "card.txt").write_text("imax 1\njmax 1\nkmax 0\nbin SR\nobservation 12\nbin SR SR\nprocess s b\nprocess 0 1\nrate 3.0 10.0\n")
    done = command("json2xml", tmp_path / "card.txt", "--output-dir", tmp_path, "--resultprefix", "top")
    assert done.returncode == 0, done.stderr
    model = nextstat.load_workspace(tmp_path / "top.xml")
    assert model.expected_data({"r": 2.0}, aux=False).tolist() == [16.0]


def test_json2xml_names_what_xml_cannot_hold(tmp_path):
    done = command("json2xml", TESTDATA / "hs3/models/poisson.json", "--output-dir", tmp_path / "out")
    said = "HistFactory XML cannot hold constraint terms of `k` (`/measurements/0/config/parameters/0/constraints`)"
    message = f"error: in `{TESTDATA / 'hs3/models/poisson.json'}`: {said}\nhint: `nextstat convert --to extended` writes every model\n"
    assert (done.returncode, done.stderr) == (2, message) and not (tmp_path / "out").exists()


def test_json2xml_leaves_out_groups_and_further_parameters_of_interest_with_a_warning(tmp_path):
    workspace = json.loads((TESTDATA.parent / "examples/simple.json").read_text("utf-8"))
    config = workspace["measurements"][0]["config"]
    config["parameters"] = [{"name": "uncorr_bkguncrt", "groups": ["all"], "poi": True}]
    (tmp_path / "grouped.json").write_text(json.dumps(workspace))
    done = command("json2xml", tmp_path / "grouped.json", "--output-dir", tmp_path / "out")
    places = [f"`/measurements/0/config/parameters/0/{key}`" for key in ("poi", "groups")]
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"warning: left out, because HistFactory XML has no room for them: {', '.join(places)}\n"


def test_json2xml_says_where_a_document_is_wrong_and_what_helps(tmp_path):
    spec = json.dumps(WORKSPACES["correlated"]).replace("normfactor", "normfactr", 1)
    (tmp_path / "wrong.json").write_text(spec)
    for arguments, text, name in (((tmp_path / "wrong.json",), None, f"`{tmp_path / 'wrong.json'}`"), ((), spec, "standard input")):
        done = command("json2xml", *arguments, "--output-dir", tmp_path / "out", input=text)
        assert done.returncode == 2 and f"in {name}: unknown modifier type `normfactr` at `/channels/0/samples/0/modifiers/0/type`" in done.stderr
        assert "hint: did you mean `normfactor`?" in done.stderr


def test_xml_without_an_element_is_said_in_words(tmp_path):
    write(WORKSPACES["correlated"], tmp_path)
    text = (tmp_path / "top.xml").read_text()
    start, end = text.index("<Measurement"), text.index("</Measurement>") + len("</Measurement>")
    (tmp_path / "top.xml").write_text(text[:start] + text[end:])
    done = command("xml2json", tmp_path / "top.xml", "--basedir", tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("error: the combination has no element `Measurement`"), done.stderr
    assert "Schema" not in done.stderr and "Instance" not in done.stderr


def test_a_document_that_is_not_there_is_said_in_words():
    done = command("json2xml", "nope.json")
    assert done.returncode == 2 and done.stderr.startswith("error: cannot read `nope.json`: ")


def test_bars_are_for_terminals(tmp_path):
    command("json2xml", "--output-dir", tmp_path, "--resultprefix", "top", input=json.dumps(WORKSPACES["correlated"]))
    assert "it/s" not in command("xml2json", tmp_path / "top.xml").stderr
    assert command("xml2json", tmp_path / "top.xml").stderr == command("xml2json", tmp_path / "top.xml", "--hide-progress").stderr


def test_without_uproot_the_extra_is_named():
    code = "import sys; sys.modules['uproot'] = None; from nextstat.pyhf import readxml; readxml.parse('a.xml', '.')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'nextstat-rs[xmlio]'" in done.stderr
