"""Combinations: what maps make, what pyhf makes of the same workspaces, and mistakes."""

import copy
import importlib.util
import json
import pickle
import subprocess
import sys

import nextstat
import numpy as np
import pytest


@pytest.fixture
def pair(root):
    """Two analyses with channels of their own, of which the second calls some parameters
    otherwise.
    """
    with open(root / "examples/shapes.json") as file:
        first = json.load(file)
    second = json.loads(json.dumps(first).replace("signal_region", "SR").replace("control_region", "CR"))
    for channel in second["channels"]:
        for sample in channel["samples"]:
            sample["data"] = [1.3 * value for value in sample["data"]]
            for modifier in sample["modifiers"]:
                renamed = {"jet_energy_scale": "JES", "mu": "r", "fakes_method": "fakes_SR"}
                modifier["name"] = renamed.get(modifier["name"], modifier["name"])
                if modifier["type"] == "histosys":
                    modifier["data"] = {key: [1.3 * value for value in values] for key, values in modifier["data"].items()}
    second["measurements"][0]["config"]["poi"] = "r"
    for setting in second["measurements"][0]["config"]["parameters"]:
        setting["name"] = {"mu": "r"}.get(setting["name"], setting["name"])
    return first, second


MAP = {
    "poi": {"name": "mu", "parameters": {"A": "mu", "B": "r"}},
    "correlate": [{"name": "jet_energy_scale", "parameters": {"A": "jet_energy_scale", "B": "JES"}}],
}


def renamed(workspace, names):
    """`workspace` with new names of modifiers, changed as text."""
    text = json.dumps(workspace)
    for old, new in names.items():
        text = text.replace(json.dumps(old), json.dumps(new))
    return json.loads(text)


# In a process of its own, because pyhf may be imported once and by one name only.
PYHF = """
import json, sys
import numpy as np
import pyhf

left, right, points = json.load(sys.stdin)
theirs = pyhf.Workspace.combine(pyhf.Workspace(left), pyhf.Workspace(right), join="outer")
codes = {"normsys": {"interpcode": "code4"}, "histosys": {"interpcode": "code4p"}}
model = theirs.model(modifier_settings=codes)
names = []
for name in model.config.par_order:
    parameters = model.config.param_set(name)
    elements = [f"{name}[{i}]" for i in range(parameters.n_parameters)]
    names += [name] if parameters.is_scalar else elements
data = theirs.data(model)
nll = [-float(model.logpdf(np.array([point[name] for name in names]), data)[0]) for point in points]
json.dump({"digest": pyhf.utils.digest(theirs), "nll": nll}, sys.stdout)
"""


def has_pyhf():
    # A folder of tests has that name, too.
    found = importlib.util.find_spec("pyhf")
    return found is not None and found.origin is not None


@pytest.mark.skipif(not has_pyhf(), reason="there is no pyhf")
def test_a_correlated_combination_is_that_of_pyhf(pair):
    first, second = pair
    made = nextstat.combine({"A": first, "B": second}, map=MAP)
    model, random = nextstat.model_of(made.workspace), np.random.default_rng(1)
    points = [np.array(model.init) + random.uniform(-0.05, 0.05, model.n_params) for _ in range(10)]
    by_name = [dict(zip(model.par_names, point.tolist())) for point in points]
    question = json.dumps([first, renamed(second, {"JES": "jet_energy_scale", "r": "mu"}), by_name])
    done = subprocess.run([sys.executable, "-c", PYHF], input=question, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    assert nextstat.digest(made.workspace) == theirs["digest"]
    assert [model.nll(point) for point in points] == pytest.approx(theirs["nll"], rel=1e-12)


def test_the_command_and_python_report_the_same(pair, tmp_path):
    for name, workspace in zip("AB", pair):
        (tmp_path / f"{name}.json").write_text(json.dumps(workspace))
    (tmp_path / "map.json").write_text(json.dumps(MAP))
    files = [tmp_path / "A.json", tmp_path / "B.json"]
    out, report = tmp_path / "out.json", tmp_path / "report.json"
    done = nextstat.command(["combine", *files, "--map", tmp_path / "map.json", "-o", out, "--report", report])
    assert done.exit_code == 0, done.messages
    made = nextstat.combine(files, map=tmp_path / "map.json")
    assert nextstat.digest(made.workspace) == nextstat.digest(out)
    theirs = json.loads(report.read_text())
    ours = made.to_dict()
    # The command says how it was called.
    del theirs["provenance"]["command"]
    assert ours == theirs
    by_dict = nextstat.combine(dict(zip("AB", pair)), map=MAP)
    assert by_dict == made
    assert by_dict.provenance["map"] == {"sha256": made.provenance["map"]["sha256"]}


def test_yaml_and_json_maps_are_the_same(pair, tmp_path):
    text = """
# Jets of both experiments.
poi: {name: mu, parameters: {A: mu, B: r}}
correlate:
  - name: jet_energy_scale
    parameters: {A: jet_energy_scale, B: JES}
"""
    (tmp_path / "map.yml").write_text(text)
    workspaces = dict(zip("AB", pair))
    found = nextstat.combine(workspaces, map=tmp_path / "map.yml")
    assert found.workspace == nextstat.combine(workspaces, map=MAP).workspace
    assert [rule["line"] for rule in found.rules] == [5, 3]


def test_results_are_frozen_and_shown(pair):
    made = nextstat.combine(dict(zip("AB", pair)), map=MAP)
    assert pickle.loads(pickle.dumps(made)).workspace == made.workspace
    assert "jet_energy_scale" in repr(made)
    assert "workspace" not in made.to_dict()
    with pytest.raises(TypeError, match="frozen"):
        made.workspace["version"] = "2"
    assert "lumi" in [found["parameter"] for found in made.parameters if found["correlated_by"] == "name"]


def test_a_combination_with_everything_apart_has_the_sum_of_both_likelihoods(pair):
    first, second = (copy.deepcopy(found) for found in pair)
    second = renamed(second, {"JES": "jet_energy_scale", "r": "mu"})
    for workspace in (first, second):
        # A lumi cannot be split.
        for channel in workspace["channels"]:
            for sample in channel["samples"]:
                sample["modifiers"] = [found for found in sample["modifiers"] if found["type"] != "lumi"]
    made = nextstat.combine({"A": first, "B": second}, map={"same_names": "decorrelate", "poi": "mu_A"})
    whole, parts = nextstat.model_of(made.workspace), [nextstat.model_of(found) for found in (first, second)]
    total = sum(part.nll(part.init) for part in parts)
    assert whole.nll(whole.init) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (lambda a, b: nextstat.combine([a, b]), "both have", None),
        (lambda a, b: nextstat.combine([]), "there is no workspace to combine", None),
        (lambda a, b: nextstat.combine([a, b], map={"correlate": ["jet"]}), "there is no parameter named `jet`, at `/correlate/0`", None),
        (lambda a, b: nextstat.combine([a, b], map={"corelate": []}), "unknown key `corelate`", "did you mean `correlate`?"),
        (lambda a, b: nextstat.decorrelate(a, "jes"), "there is no parameter named `jes`", None),
        (lambda a, b: nextstat.decorrelate(a, "jet_energy_scale", by="bin"), "cannot be split by `bin`", "choose one of `channel`, `sample`"),
        (lambda a, b: nextstat.combine([a, b], join="inner"), "unknown join `inner`", None),
    ],
)
def test_mistakes_are_explained(pair, call, message, hint):
    with pytest.raises(nextstat.NextstatError) as caught:
        call(pair[0], copy.deepcopy(pair[0]) if message == "both have" else pair[1])
    assert message in str(caught.value)
    if hint is not None:
        assert caught.value.hint == hint


def test_a_region_is_a_channel(pair):
    made = [nextstat.decorrelate(pair[0], "jet_energy_scale", by=by) for by in ("channel", "region")]
    assert made[0].workspace == made[1].workspace


def test_wrong_types_are_refused(pair):
    with pytest.raises(TypeError, match="without a map"):
        nextstat.combine(pair, map=MAP, join="outer")
    with pytest.raises(TypeError, match="a list or a dictionary"):
        nextstat.combine("a.json")


def test_a_map_names_the_files_of_the_workspaces(pair, tmp_path):
    folder = tmp_path / "maps"
    folder.mkdir()
    for name, workspace in zip("AB", pair):
        (folder / f"{name}.json").write_text(json.dumps(workspace), "utf-8")
    named = {**MAP, "analyses": {"A": "A.json", "B": {"file": "B.json"}}}
    (folder / "map.json").write_text(json.dumps(named), "utf-8")
    # Files are those beside the map, wherever the work is done.
    found = nextstat.combine(map=folder / "map.json")
    wanted = nextstat.combine({"A": folder / "A.json", "B": folder / "B.json"}, map=MAP)
    assert found.workspace == wanted.workspace
    text = nextstat.command(["combine", "--map", str(folder / "map.json")]).output
    assert nextstat.digest(text) == nextstat.digest(found.workspace)
    (folder / "map.json").write_text(json.dumps({**named, "analyses": {"A": "A.json", "B": "C.json"}}), "utf-8")
    with pytest.raises(FileNotFoundError, match=r"C\.json"):
        nextstat.combine(map=folder / "map.json")
    with pytest.raises(nextstat.WorkspaceError, match="the map has no `analyses`") as refused:
        nextstat.combine(map=MAP)
    assert "their files in the map" in refused.value.hint
