"""What packages that import pyhf do with it, and the shim once did not."""

import logging
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import nextstat.pyhf as pyhf
import numpy as np
import pytest
from nextstat.pyhf.optimize import common

sys.path.insert(0, str(Path(__file__).parent))
from specifications import SPECS, data_of, points_of  # noqa: E402

names = pytest.mark.parametrize("name", SPECS)


@pytest.fixture(autouse=True)
def default_backend():
    yield
    pyhf.set_backend("numpy")


def case(name="two_channels"):
    model = pyhf.Model(SPECS[name])
    return model, data_of(model, name)


def run(code):
    """What a new interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def differences(function, point, steps=1e-5):
    """Derivatives (P × …) of `function` by central differences."""
    shifts = steps * np.eye(len(point))
    return np.array([(np.asarray(function(point + shift)) - function(point - shift)) / (2.0 * steps) for shift in shifts])


# -- modules, loggers, schemas --


def test_the_place_of_schemas_is_saved_and_restored(tmp_path):
    variables = pyhf.schema.variables
    folder, cache = variables.schemas, variables.SCHEMA_CACHE
    assert folder == pyhf.schema.path and variables.SCHEMA_VERSION == pyhf.schema.version
    (tmp_path / "1.0.0").mkdir()
    (tmp_path / "1.0.0" / "model.json").write_text('{"type": "array"}')
    try:
        variables.schemas = tmp_path
        assert pyhf.schema.path == tmp_path
        assert pyhf.schema.load_schema("1.0.0/model.json") == {"type": "array"} and len(cache) == 1
    finally:
        variables.schemas = folder
    assert pyhf.schema.load_schema("1.0.0/model.json")["$id"].endswith("1.0.0/model.json")


def test_listed_names_are_pyhfs():
    assert "HypoTestFitResults" not in dir(pyhf.infer.calculators) and "writexml" not in dir(pyhf.writexml)
    assert pyhf.infer.calculators.HypoTestFitResults and pyhf.writexml.writexml


@pytest.mark.parametrize(
    ("text", "value"),
    [("True", True), ("TRUE", True), ("yes", True), ("No", False), ("off", False), ("false", False), ("1", 1), ("0.1", 0.1), ("null", None)]
    + [("~", None), ("", None), ("tRUE", "tRUE"), ("SLSQP", "SLSQP"), ("a=b", "a=b"), ("[1, 2]", [1, 2])],
)
def test_options_of_the_command_line_are_read_as_yaml_has_them(text, value):
    found = pyhf.utils.options_from_eqdelimstring([f"name={text}"])
    assert found == {"name": value} and type(found["name"]) is type(value)


# -- XML --


def test_unknown_modifiers_are_left_out_of_xml(caplog):
    modifier = {"name": "custom", "type": "newtype", "data": None}
    with caplog.at_level(logging.WARNING, logger="pyhf"):
        assert pyhf.writexml.build_modifier({}, modifier, "SR", "signal", [1.0]) is None
    assert "Skipping modifier custom(newtype)" in caplog.text


def test_whole_numbers_are_whole_in_xml():
    spec = {"measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]}
    built = pyhf.writexml.build_modifier(spec, {"name": "mu", "type": "normfactor", "data": None}, "SR", "signal", [1.0])
    assert built.attrib == {"Name": "mu", "Val": "1", "Low": "0", "High": "10"}


@pytest.mark.parametrize("attributes", ['HistoName="" InputFile="" HistoPath=""', 'HistoName="data" InputFile=""', 'HistoName=""'])
def test_data_that_are_declared_absent_are_refused_before_files_are_looked_for(attributes):
    channel = ElementTree.fromstring(f'<Channel Name="SR" InputFile="nowhere.root"><Data {attributes}/><Sample Name="s" HistoName="h"/></Channel>')
    with pytest.raises(NotImplementedError, match="workspaces without data"):
        pyhf.readxml.process_channel(channel, pyhf.readxml.resolver_factory(".", []))


# -- figures --


@pytest.mark.parametrize("has_components", [False, True])
def test_bands_are_drawn_of_nested_results(has_components):
    figure = pytest.importorskip("matplotlib.figure")
    from nextstat.pyhf.contrib.viz import brazil

    tails = [[np.array([0.1]), [0.2]]] if has_components else []
    results = [[[1.0 / k], *tails, [[0.1 / k], [0.2 / k], [0.3 / k], [0.4 / k], [0.5 / k]]] for k in (1, 2)]
    drawn = brazil.plot_results([0.0, 1.0], results, ax=figure.Figure().subplots(), components=has_components)
    np.testing.assert_allclose(drawn.cls_obs.get_ydata(), [1.0, 0.5])
    np.testing.assert_allclose(drawn.cls_exp[4].get_ydata(), [0.5, 0.25])
